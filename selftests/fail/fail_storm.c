// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hundreds of kills at random moments. In each round some ranks run random collectives without a pause, one of them is
 * killed, and the others must get an error and end. After the last round all counters of the module are balanced.
 *
 * STORM_KILLS: so many, 300 if not set, 100 with SWC_TEST_SHORT=1; STORM_SEED: repeat another run.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "coll.h"
#include "pairs.h"

#define DEADLINE_MS 8000
#define SURVIVED 42 /* exit status of a rank that was notified */

static struct swingcoll_id id;
static unsigned int seed;
static unsigned int *created; /* counts ranks */

static unsigned int rnd(unsigned int *s)
{
	*s = *s * 1103515245 + 12345;
	return *s >> 8;
}

struct round {
	unsigned int seed;
	int nranks;
};

/* The same random series on all ranks. */
static int rank_fn(uint32_t rank, void *arg)
{
	static const char *const algos[] = { NULL, "direct1", "direct2", "ring", "recdoub" };
	const struct round *r = arg;
	unsigned int s = r->seed;
	struct swingcoll_comm_opts opts = { .timeout_ms = DEADLINE_MS };
	struct swingcoll_comm *comm;
	static char mem[1 << 20];
	uint64_t salt = 0;
	int ret;

	opts.algo = algos[rnd(&s) % ARRAY_SIZE(algos)];
	opts.use_io_uring = rnd(&s) & 1 ? 1 : -1;
	ret = swingcoll_comm_create(&comm, &id, r->nranks, rank, &opts);
	testlib_count(created);
	/* -ETIMEDOUT: a rank was killed before it was a member. */
	if (ret)
		return ret == -ECONNRESET || ret == -ECONNABORTED || ret == -ETIMEDOUT ? SURVIVED
										       : 1;
	for (;;) {
		struct coll_case c = { .coll = rnd(&s) % 6,
				       .dtype = SWINGCOLL_I32,
				       .in_place = rnd(&s) & 1 };
		unsigned int size = rnd(&s);

		c.count = c.coll == SWINGCOLL_BARRIER ? 0 : 1 + rnd(&s) % (size & 3 ? 300 : 24000);
		ret = coll_run(&c, mem, comm, salt++);
		if (ret == -EOPNOTSUPP)
			continue;
		if (ret)
			break;
	}
	swingcoll_comm_destroy(comm);
	if (ret != -ECONNRESET && ret != -ECONNABORTED) {
		ksft_print_msg("rank %u: %s\n", rank, swingcoll_strerror(ret));
		return 1;
	}
	return SURVIVED;
}

/* Returns 0 if all survivors have been notified. */
static int one_round(unsigned int *worst_ms)
{
	struct round r = { .seed = rnd(&seed), .nranks = 2 + rnd(&seed) % 3 };
	int victim = rnd(&seed) % r.nranks, bad = 0;
	uint64_t start;
	pid_t pid[4];

	swingcoll_unique_id(&id);
	*created = 0;
	testlib_fork_ranks(pid, r.nranks, rank_fn, &r);
	/* Once in a while before the rank is a member: then the others have to wait for their deadline. */
	if (rnd(&seed) % 64 && !testlib_wait_count(created, r.nranks))
		bad++;
	usleep(rnd(&seed) % 60000);
	kill(pid[victim], SIGKILL);
	start = testlib_now_ms();
	if (!testlib_was_killed(&pid[victim]))
		bad++;
	for (int i = 0; i < r.nranks; i++)
		if (i != victim && testlib_wait_child(&pid[i]) != SURVIVED)
			bad++;
	if (testlib_now_ms() - start > *worst_ms)
		*worst_ms = testlib_now_ms() - start;
	return bad;
}

static uint64_t meminfo(const char *key)
{
	unsigned long long kb = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			sscanf(line + strlen(key), ": %llu", &kb);
	if (f)
		fclose(f);
	return kb;
}

static int counters_balanced(void)
{
	uint64_t v[SWC_STAT_NR];

	CHECK_EQ(testlib_wait_released(0), 0);
	CHECK_EQ(testlib_stats(v, SWC_STAT_NR), 0);
	CHECK_EQ(v[SWC_STAT_OPS_SUBMITTED], v[SWC_STAT_OPS_COMPLETED] + v[SWC_STAT_OPS_FAILED]);
	return 0;
}

int main(void)
{
	int n = testlib_env("STORM_KILLS", pairs_short() ? 100 : 300), bad = 0;
	uint64_t before, after;
	unsigned int worst = 0;

	coll_quiet = true;
	ksft_print_header();
	testlib_require_root();
	ksft_set_plan(3);
	created = testlib_shared_alloc(sizeof(*created));
	seed = testlib_env_seed("STORM_SEED");
	ksft_print_msg("STORM_SEED=%u\n", seed);
	before = meminfo("MemAvailable");
	for (int i = 0; i < n && bad < 5; i++) {
		int ret = one_round(&worst);

		if (ret)
			ksft_print_msg("round %d: %d bad\n", i, ret);
		bad += ret;
	}
	ksft_print_msg("the slowest round has ended %u ms after the kill\n", worst);
	ksft_test_result(!bad, "%d kills at random moments", n);
	ksft_test_result(!counters_balanced(), "pages, regions and contexts are released");
	after = meminfo("MemAvailable");
	ksft_print_msg("available memory: %llu KiB before, %llu KiB after\n",
		       (unsigned long long)before, (unsigned long long)after);
	ksft_test_result(after + (64 << 10) > before, "memory is released");
	ksft_finished();
}
