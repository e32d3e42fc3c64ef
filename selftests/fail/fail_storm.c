// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kills at random moments. In each round some ranks run random collectives or partitioned ones without a pause, one of
 * them is killed, and the others must get an error and end. After the last round all counters of the module are
 * balanced.
 *
 * STORM_KILLS: so many, 300 if not set, 100 with SWC_TEST_SHORT=1; STORM_SECONDS: for so long instead; STORM_LOAD=1:
 * beside two busy processes for each CPU; STORM_SEED: repeat another run.
 */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "pairs.h"
#include "partitioned.h"
#include "stall.h"

#define DEADLINE_MS 8000
/* If a rank is killed before it is a member, all others wait for it. */
#define EARLY_DEADLINE_MS 1000
/* A round that is bad is void if the machine stood still for so long: ranks have come to their deadline. */
#define STALL_MS (DEADLINE_MS / 2)
#define SURVIVED 42 /* exit status of a rank that was notified */
#define RANKS 4
#define PARTITIONS 100

/* Shared with the ranks. */
struct shared {
	unsigned int created; /* counts ranks */
	uint64_t told[RANKS]; /* when the rank had its error */
};

static struct swingcoll_id id;
static unsigned int seed;
static struct shared *shared;
/* From the kill until a survivor had its error, of all survivors. */
static uint64_t *latency;
static size_t nlatency;
static unsigned int kills;

static unsigned int rnd(unsigned int *s)
{
	*s = *s * 1103515245 + 12345;
	return *s >> 8;
}

/* ------------------------------------------------------------------ ranks */

struct round {
	unsigned int seed;
	int nranks;
	bool early; /* the victim may not be a member yet */
};

/* Both return the first error. s: the same random series on all ranks. */
static int collectives(struct swingcoll_comm *comm, unsigned int *s)
{
	static char mem[1 << 20];
	uint64_t salt = 0;
	int ret;

	do {
		struct coll_case c = { .coll = rnd(s) % (SWINGCOLL_SCATTER + 1),
				       .dtype = SWINGCOLL_I32,
				       .in_place = rnd(s) & 1 };
		unsigned int size = rnd(s);

		c.count = c.coll == SWINGCOLL_BARRIER ? 0 : 1 + rnd(s) % (size & 3 ? 300 : 24000);
		ret = coll_run(&c, mem, comm, salt++);
	} while (!ret || ret == -EOPNOTSUPP);
	return ret;
}

static int partitions(struct swingcoll_comm *comm, uint32_t rank, unsigned int *s)
{
	const struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE,
				     .dtype = SWINGCOLL_F32,
				     .count = 1 + rnd(s) % 3000 };
	int n = 1 + rnd(s) % PARTITIONS, ret;
	struct partitioned p;

	ret = partitioned_open(&p, &c, n, comm);
	while (!ret) {
		ret = swingcoll_pstart(p.part);
		for (int i = 0; i < n && !ret; i++)
			ret = swingcoll_pready(p.part, (i + rank * 11) % n);
		if (!ret)
			ret = swingcoll_pwait(p.part, SWINGCOLL_ALL_PARTITIONS);
	}
	return ret;
}

static int rank_fn(uint32_t rank, void *arg)
{
	static const char *const algos[] = { NULL, "direct1", "direct2", "ring", "recdoub" };
	const struct round *r = arg;
	unsigned int s = r->seed;
	struct swingcoll_comm_opts opts = { .timeout_ms = r->early ? EARLY_DEADLINE_MS
								   : DEADLINE_MS };
	struct swingcoll_comm *comm;
	int ret;

	opts.algo = algos[rnd(&s) % ARRAY_SIZE(algos)];
	opts.use_io_uring = rnd(&s) & 1 ? 1 : -1;
	ret = swingcoll_comm_create(&comm, &id, r->nranks, rank, &opts);
	testlib_count(&shared->created);
	/* -ETIMEDOUT: a rank was killed before it was a member. */
	if (ret == -ECONNRESET || ret == -ECONNABORTED || ret == -ETIMEDOUT)
		return SURVIVED;
	if (ret) {
		ksft_print_msg("rank %u: creation: %s\n", rank, swingcoll_strerror(ret));
		return 1;
	}
	ret = rnd(&s) % 4 ? collectives(comm, &s) : partitions(comm, rank, &s);
	shared->told[rank] = testlib_now_ns();
	swingcoll_comm_destroy(comm);
	if (ret != -ECONNRESET && ret != -ECONNABORTED) {
		ksft_print_msg("rank %u: %s\n", rank, swingcoll_strerror(ret));
		return 1;
	}
	return SURVIVED;
}

/* ------------------------------------------------------------------ rounds */

static void add_latency(uint64_t ns)
{
	if (!(nlatency & (nlatency - 1)))
		latency = realloc(latency, (nlatency ? 2 * nlatency : 1) * sizeof(*latency));
	if (!latency)
		ksft_exit_fail_msg("no memory\n");
	latency[nlatency++] = ns;
}

/*
 * The victim was killed, and counts. One that is killed early may have come to its deadline before, if this process got
 * no processor for so long: then it is a survivor, too.
 */
static bool victim_ended(pid_t *pid, bool early)
{
	int status = testlib_wait_child(pid);

	kills += status == 256 + SIGKILL;
	if (status != 256 + SIGKILL)
		ksft_print_msg("the victim has ended before: %d\n", status);
	return status == 256 + SIGKILL || (early && status == SURVIVED);
}

/* Returns 0 if all survivors have been notified. */
static int one_round(void)
{
	struct round r = { .seed = rnd(&seed), .nranks = 2 + rnd(&seed) % (RANKS - 1) };
	int victim = rnd(&seed) % r.nranks, bad = 0;
	uint64_t killed;
	pid_t pid[RANKS];

	r.early = !(rnd(&seed) % 64);
	swingcoll_unique_id(&id);
	memset(shared, 0, sizeof(*shared));
	testlib_fork_ranks(pid, r.nranks, rank_fn, &r);
	if (!r.early && !testlib_wait_count(&shared->created, r.nranks))
		bad++;
	/* From microseconds to a twentieth of a second. */
	usleep(rnd(&seed) % (1u << (6 + rnd(&seed) % 11)));
	killed = testlib_now_ns();
	kill(pid[victim], SIGKILL);
	bad += !victim_ended(&pid[victim], r.early);
	for (int i = 0; i < r.nranks; i++) {
		if (i == victim)
			continue;
		bad += testlib_wait_child(&pid[i]) != SURVIVED;
		if (!r.early && shared->told[i] > killed)
			add_latency(shared->told[i] - killed);
	}
	return bad;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void print_latencies(void)
{
	if (!nlatency)
		return;
	qsort(latency, nlatency, sizeof(*latency), compare);
	ksft_print_msg(
		"%zu survivors had their error after: median %.1f ms, p99 %.1f ms, worst %.1f ms\n",
		nlatency, latency[nlatency / 2] * 1e-6,
		latency[nlatency - 1 - nlatency / 100] * 1e-6, latency[nlatency - 1] * 1e-6);
}

/* Keep all CPUs busy until this process ends. */
static void load_cpus(void)
{
	long n = 2 * sysconf(_SC_NPROCESSORS_ONLN);

	for (long i = 0; i < n; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			__asm__ volatile("");
	}
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

/* contexts: open before the test. */
static int counters_balanced(unsigned int contexts)
{
	uint64_t v[SWC_STAT_NR];

	CHECK_EQ(testlib_wait_released(contexts), 0);
	CHECK_EQ(testlib_stats(v, SWC_STAT_NR), 0);
	CHECK_EQ(v[SWC_STAT_OPS_SUBMITTED], v[SWC_STAT_OPS_COMPLETED] + v[SWC_STAT_OPS_FAILED]);
	return 0;
}

int main(void)
{
	unsigned int limit = testlib_env("STORM_KILLS", pairs_short() ? 100 : 300), rounds;
	unsigned int seconds = testlib_env("STORM_SECONDS", 0), bad = 0, voids = 0;
	uint64_t before, after, start = testlib_now_ns(), said = start;
	uint64_t v[SWC_STAT_NR];
	unsigned int contexts;

	coll_quiet = true;
	ksft_print_header();
	testlib_require_root();
	ksft_set_plan(3);
	shared = testlib_shared_alloc(sizeof(*shared));
	seed = testlib_env_seed("STORM_SEED");
	ksft_print_msg("STORM_SEED=%u\n", seed);
	stall_watch();
	if (testlib_env("STORM_LOAD", 0))
		load_cpus();
	if (testlib_stats(v, SWC_STAT_NR))
		ksft_exit_fail_msg("no counters\n");
	/* One is that of the query. */
	contexts = v[SWC_STAT_CONTEXTS_OPENED] - v[SWC_STAT_CONTEXTS_CLOSED] - 1;
	before = meminfo("MemAvailable");
	for (rounds = 0; bad < 5; rounds++) {
		uint64_t now = testlib_now_ns();
		unsigned int ret;
		uint64_t stall;

		if (seconds ? now - start >= seconds * 1000000000ull : kills >= limit)
			break;
		if (now - said >= 60000000000ull) {
			ksft_print_msg("%u kills\n", kills);
			said = now;
		}
		stall_longest();
		ret = one_round();
		stall = ret ? stall_longest() : 0;
		if (ret)
			ksft_print_msg("round %u: %u bad; the machine stood still for %llu ms\n",
				       rounds, ret, (unsigned long long)stall);
		if (stall > STALL_MS)
			voids++;
		else
			bad += ret;
	}
	print_latencies();
	if (voids)
		ksft_print_msg("%u rounds are void: the machine stood still\n", voids);
	ksft_test_result(!bad && kills, "kills at random moments");
	ksft_print_msg("%u kills\n", kills);
	ksft_test_result(!counters_balanced(contexts), "pages, regions and contexts are released");
	after = meminfo("MemAvailable");
	ksft_print_msg("available memory: %llu KiB before, %llu KiB after\n",
		       (unsigned long long)before, (unsigned long long)after);
	ksft_test_result(after + (64 << 10) > before, "memory is released");
	ksft_finished();
}
