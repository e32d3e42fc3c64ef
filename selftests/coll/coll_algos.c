// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every algorithm, and the automatic choice, by every collective, with 1 to 9 ranks, in place and out of place, for
 * counts that do not divide evenly and for none. SWC_TEST_SHORT=1: all pairs of these instead of all combinations.
 */
#include <errno.h>

#include "coll.h"
#include "pairs.h"

#define MAX_RANKS 9
#define MAX_ALGOS 32
#define NCOLLS (SWINGCOLL_SCATTER + 1)
#define LARGE 8 /* the last level of sizes; those before are of coll_case_nth() */
#define NSIZES (LARGE + 1)
#define GROUP_MS 600000 /* all algorithms with one number of ranks */

static struct swingcoll_id id;
static uint32_t nranks;
static unsigned int nalgos; /* the automatic choice is number 0 */
static struct pairs pairs;

/* What rank 0 tells the parent. */
struct outcome {
	struct pairs pairs;
	unsigned int done[MAX_ALGOS], total;
};

static const char *algo_name(unsigned int a)
{
	return a ? swingcoll_algo_name(a - 1) : NULL;
}

static struct coll_case case_of(int coll, unsigned int size)
{
	static const size_t counts[] = { 0, 1, 61, 4099 };

	if (size < LARGE)
		return coll_case_nth(coll, counts, size, nranks, 1);
	/* More than two huge pages; counts do not divide evenly. */
	return (struct coll_case){ .coll = coll,
				   .count = coll_is_sharded(coll) ? 175003 : 550007,
				   .in_place = coll & 1,
				   .dtype = SWINGCOLL_F64 };
}

/* Large vectors take long: with one number of ranks for each algorithm. */
static bool applies(unsigned int a, int coll, unsigned int size)
{
	return size < LARGE || (coll != SWINGCOLL_BARRIER && nranks == (a & 1 ? 3 : 4));
}

/* All collectives by one algorithm. Returns how many were right, or a negative number. */
static int one_algo(unsigned int a, struct swingcoll_comm *comm)
{
	bool skip[NCOLLS] = { false };
	int done = 0;

	/* Both change with every step. */
	for (unsigned int i = 0; i < NCOLLS * NSIZES; i++) {
		unsigned int coll = i % NCOLLS, size = (coll + i / NCOLLS) % NSIZES;
		const unsigned int level[] = { a, nranks, coll, size };
		struct coll_case c = case_of(coll, size);
		void *mem;
		int ret;

		if (!applies(a, coll, size) || skip[coll] || !pairs_due(&pairs, level))
			continue;
		mem = malloc(coll_bytes(&c, nranks));
		ret = coll_run(&c, mem, comm, i);
		free(mem);
		skip[coll] = ret == -EOPNOTSUPP;
		if (ret == -EOPNOTSUPP)
			continue;
		if (ret)
			return -1;
		done++;
		/* A substitute is tested under its own name. */
		skip[coll] = a && nranks > 1 && strcmp(swingcoll_comm_algo(comm), algo_name(a));
		if (!skip[coll])
			pairs_cover(&pairs, level);
	}
	return done;
}

static int all_algos(uint32_t rank, void *arg)
{
	struct outcome *out = arg;

	for (unsigned int a = 0; a < nalgos; a++) {
		struct swingcoll_comm_opts opts = { .algo = algo_name(a),
						    .timeout_ms = TESTLIB_EVENT_MS,
						    .slot_max = a ? -1 : 0 };
		struct swingcoll_id own = id;
		struct swingcoll_comm *comm;
		int done;

		own.bytes[0] += a;
		CHECK_EQ(swingcoll_comm_create(&comm, &own, nranks, rank, &opts), 0);
		done = one_algo(a, comm);
		if (done < 0) {
			ksft_print_msg("rank %u of %u: %s\n", rank, nranks, a ? opts.algo : "auto");
			return 1;
		}
		if (!rank) {
			out->done[a] += done;
			out->total += done;
		}
		CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	}
	if (!rank)
		out->pairs = pairs;
	return 0;
}

int main(void)
{
	pid_t pid[MAX_RANKS];
	struct outcome *out;

	ksft_print_header();
	testlib_require_device();
	out = testlib_shared_alloc(sizeof(*out));
	for (nalgos = 1; algo_name(nalgos); nalgos++)
		;
	ksft_set_plan(MAX_RANKS + nalgos);
	pairs_init(&pairs, 4);
	for (nranks = 1; nranks <= MAX_RANKS; nranks++) {
		unsigned int before = out->total;
		int bad;

		swingcoll_unique_id(&id);
		testlib_fork_ranks(pid, nranks, all_algos, out);
		bad = testlib_wait_ranks_ms(pid, nranks, GROUP_MS);
		if (!bad)
			pairs = out->pairs;
		ksft_test_result(!bad, "%u ranks: %u collectives by %u algorithms", nranks,
				 out->total - before, nalgos);
	}
	for (unsigned int a = 0; a < nalgos; a++)
		ksft_test_result(out->done[a], "%s: %u collectives right",
				 a ? algo_name(a) : "auto", out->done[a]);
	ksft_print_msg("%u combinations run, %u left out\n", pairs.run, pairs.skipped);
	ksft_finished();
}
