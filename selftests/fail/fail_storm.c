// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kills at random moments, hundreds of them. Each round: some ranks do random collectives as fast as they
 * can, one is killed, the others must get an error and go by themselves. At the end every count of the module
 * is where it began.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "coll.h"

static struct swingcoll_id id;
static unsigned int seed;

static unsigned int rnd(unsigned int *s)
{
	*s = *s * 1103515245 + 12345;
	return *s >> 8;
}

struct round {
	unsigned int seed;
	int nranks;
};

/* The same series on all ranks. */
static int rank_fn(uint32_t rank, void *arg)
{
	static const char *const algos[] = { NULL, "direct1", "direct2", "ring", "recdoub" };
	const struct round *r = arg;
	unsigned int s = r->seed;
	struct swingcoll_comm_opts opts = { .timeout_ms = 8000 };
	struct swingcoll_comm *comm;
	static char mem[1 << 20];
	uint64_t salt = 0;
	int ret;

	opts.algo = algos[rnd(&s) % ARRAY_SIZE(algos)];
	opts.use_io_uring = rnd(&s) & 1 ? 1 : -1;
	ret = swingcoll_comm_create(&comm, &id, r->nranks, rank, &opts);
	/* -ETIMEDOUT: it was killed before it had joined; nobody could know. */
	if (ret)
		return ret == -ECONNRESET || ret == -ECONNABORTED || ret == -ETIMEDOUT ? 42 : 1;
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
	return 42;
}

/* 0: all survivors reported the death in time. */
static int one_round(unsigned int *worst_ms)
{
	struct round r = { .seed = rnd(&seed), .nranks = 2 + rnd(&seed) % 3 };
	int victim = rnd(&seed) % r.nranks, bad = 0, status;
	uint64_t start;
	pid_t pid[4];

	swingcoll_unique_id(&id);
	fflush(stdout);
	swct_fork(pid, r.nranks, rank_fn, &r);
	/* From before the join, which costs the others all of their deadline, to well into the series. */
	usleep(rnd(&seed) % 64 ? 15000 + rnd(&seed) % 60000 : rnd(&seed) % 15000);
	kill(pid[victim], SIGKILL);
	start = swct_ms();
	for (int i = 0; i < r.nranks; i++) {
		unsigned int nap = 1;

		while (!waitpid(pid[i], &status, WNOHANG)) {
			if (swct_ms() > start + 20000) {
				ksft_print_msg("rank %d of %d (killed: %d) does not end\n", i,
					       r.nranks, victim);
				for (int k = i; k < r.nranks; k++)
					kill(pid[k], SIGKILL);
				bad++;
				waitpid(pid[i], &status, 0);
				break;
			}
			swct_sleep_ms(nap);
		}
		if (i != victim && !(WIFEXITED(status) && WEXITSTATUS(status) == 42))
			bad++;
	}
	if (swct_ms() - start > *worst_ms)
		*worst_ms = swct_ms() - start;
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

static bool balanced(const uint64_t *v)
{
	/* The reader's own context is open. */
	return v[SWC_STAT_PAGES_PINNED] == v[SWC_STAT_PAGES_UNPINNED] &&
	       v[SWC_STAT_REGIONS_PINNED] == v[SWC_STAT_REGIONS_UNPINNED] &&
	       v[SWC_STAT_CONTEXTS_OPENED] == v[SWC_STAT_CONTEXTS_CLOSED] + 1;
}

static int counts_back(void)
{
	uint64_t v[SWC_STAT_NR], until = swct_ms() + 20000;

	do {
		CHECK_EQ(swct_stats(v, SWC_STAT_NR), 0);
		if (balanced(v))
			break;
		swct_sleep_ms(20);
	} while (swct_ms() < until);
	if (!balanced(v)) {
		ksft_print_msg("pages %llu/%llu, regions %llu/%llu, contexts %llu/%llu\n",
			       (unsigned long long)v[SWC_STAT_PAGES_PINNED],
			       (unsigned long long)v[SWC_STAT_PAGES_UNPINNED],
			       (unsigned long long)v[SWC_STAT_REGIONS_PINNED],
			       (unsigned long long)v[SWC_STAT_REGIONS_UNPINNED],
			       (unsigned long long)v[SWC_STAT_CONTEXTS_OPENED],
			       (unsigned long long)v[SWC_STAT_CONTEXTS_CLOSED]);
		return 1;
	}
	CHECK_EQ(v[SWC_STAT_OPS_SUBMITTED], v[SWC_STAT_OPS_COMPLETED] + v[SWC_STAT_OPS_FAILED]);
	return 0;
}

int main(void)
{
	const char *kills = getenv("STORM_KILLS"), *given = getenv("STORM_SEED");
	int n = kills ? atoi(kills) : 300, bad = 0;
	uint64_t before, after;
	unsigned int worst = 0;

	coll_quiet = true;
	ksft_print_header();
	swct_need_root();
	ksft_set_plan(3);
	seed = given ? strtoul(given, NULL, 0) : swct_ms();
	ksft_print_msg("STORM_SEED=%u\n", seed);
	before = meminfo("MemAvailable");
	for (int i = 0; i < n && bad < 5; i++) {
		int ret = one_round(&worst);

		if (ret)
			ksft_print_msg("round %d: %d bad\n", i, ret);
		bad += ret;
	}
	ksft_print_msg("slowest round ended %u ms after the kill\n", worst);
	ksft_test_result(!bad, "%d kills at random moments", n);
	ksft_test_result(!counts_back(), "pages, regions and contexts are given back");
	after = meminfo("MemAvailable");
	ksft_print_msg("available memory: %llu KiB before, %llu KiB after\n",
		       (unsigned long long)before, (unsigned long long)after);
	ksft_test_result(after + (64 << 10) > before, "memory is given back");
	ksft_finished();
}
