// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranks die during an agreement and a shrink, at each step of it, one or several at once; all others end with the same
 * flag and in the same communicator. One node. FAIL_AGREE_SEED: repeat another run. SWC_TEST_SHORT=1: each third step,
 * and a third of the random rounds.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "doom.h"

#define N 5
/* An attempt to shrink waits a 64th of it for a rank that has died before it could join. */
#define TIMEOUT_MS 20000
#define STEPS 24
/* When the victim has lived through so many in a row, it has no later ones. */
#define SURVIVED 3

static struct swingcoll_id id;
static struct doom_seen *seen;
static unsigned int *created;
static uint32_t dies_at[N];
static uint32_t stride = 1; /* of steps */

static int rank_fn(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = TIMEOUT_MS };
	struct swingcoll_comm *comm;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, N, rank, &opts), 0);
	CHECK(testlib_meet(created, N));
	return doom_run(comm, dies_at[rank], &seen[rank]);
}

static void reset(void)
{
	memset(seen, 0, N * sizeof(*seen));
	memset(dies_at, 0xff, sizeof(dies_at));
	*created = 0;
}

/* All that are not doomed must get through. */
static int run(void)
{
	pid_t pid[N];
	int bad = 0;

	swingcoll_unique_id(&id);
	testlib_fork_ranks(pid, N, rank_fn, NULL);
	for (int r = 0; r < N; r++) {
		bool killed = dies_at[r] != DOOM_NEVER && testlib_was_killed(&pid[r]);

		if (!killed && pid[r])
			bad |= testlib_wait_ranks(&pid[r], 1);
		bad |= !killed && !seen[r].done;
	}
	return bad || doom_compare(seen, N);
}

static int nobody_dies(void)
{
	reset();
	CHECK_EQ(run(), 0);
	CHECK_EQ(seen[0].agreed, 0);
	CHECK_EQ(seen[0].members, (1 << N) - 1);
	return 0;
}

static int one_dies(uint32_t victim)
{
	uint32_t died = 0, survived = 0;

	for (uint32_t at = 0; at < STEPS && survived < SURVIVED; at += stride) {
		reset();
		dies_at[victim] = at;
		if (run()) {
			ksft_print_msg("rank %u died before step %u\n", victim, at);
			return 1;
		}
		died += !seen[victim].done;
		survived = seen[victim].done ? survived + 1 : 0;
	}
	/* There are more for rank 0, which leads. */
	CHECK(stride * died >= 8);
	return 0;
}

static int first_dies(void)
{
	return one_dies(0);
}

static int last_dies(void)
{
	return one_dies(N - 1);
}

static int several_die(void)
{
	unsigned int seed = testlib_env_seed("FAIL_AGREE_SEED");

	ksft_print_msg("FAIL_AGREE_SEED=%u\n", seed);
	for (int i = 0; i < 24 / (int)stride; i++) {
		reset();
		for (int k = 1 + rand_r(&seed) % (N - 1); k; k--)
			dies_at[rand_r(&seed) % N] = rand_r(&seed) % STEPS;
		/* One is left. */
		dies_at[rand_r(&seed) % N] = DOOM_NEVER;
		if (run()) {
			ksft_print_msg("round %d: died before %d %d %d %d %d\n", i, (int)dies_at[0],
				       (int)dies_at[1], (int)dies_at[2], (int)dies_at[3],
				       (int)dies_at[4]);
			return 1;
		}
	}
	return 0;
}

/* Each attempt to shrink meets another death, of a rank that the others of its node wait for. */
static int one_after_the_other(void)
{
	reset();
	for (uint32_t r = 0; r < N - 1; r++)
		dies_at[r] = DOOM_JOIN + r;
	CHECK_EQ(run(), 0);
	CHECK_EQ(seen[N - 1].members, 1 << (N - 1));
	return 0;
}

/* Ranks that have seen different failures name different ranks; all get the same communicator. */
static int lists_rank(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = TIMEOUT_MS };
	struct swingcoll_comm *comm, *rest;
	int list[1] = { rank % 2 ? 3 : 4 };

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, N, rank, &opts), 0);
	CHECK(testlib_meet(created, N));
	if (rank == 3)
		raise(SIGKILL);
	if (rank < 3) {
		CHECK_EQ(swingcoll_comm_shrink(comm, list, rank ? 1 : 0, &rest), 0);
		CHECK_EQ(swingcoll_comm_size(rest), 3);
		CHECK_EQ(swingcoll_barrier(rest), 0);
		seen[rank].done = true;
		CHECK_EQ(swingcoll_comm_destroy(rest), 0);
	} else {
		/* It lives, but rank 2 goes on without it; it must not have to call anything. */
		CHECK(testlib_wait_count((unsigned int *)&seen[3].nfailed, 3));
	}
	if (rank < 3)
		testlib_count((unsigned int *)&seen[3].nfailed);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int different_lists(void)
{
	pid_t pid[N], victim;
	int bad;

	reset();
	swingcoll_unique_id(&id);
	testlib_fork_ranks(pid, N, lists_rank, NULL);
	victim = pid[3];
	pid[3] = 0;
	bad = testlib_wait_ranks(pid, N);
	return !testlib_was_killed(&victim) || bad;
}

/* A rank that does not come: the others get an error at the deadline. */
static int late_rank(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = 1000 };
	struct swingcoll_comm *comm;
	char text[512];
	int flag = -1;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, 3, rank, &opts), 0);
	CHECK(testlib_meet(created, 3));
	if (rank == 1) {
		CHECK(testlib_wait_count(created, 5));
	} else {
		/* Also when there is an error already. */
		if (rank)
			CHECK_EQ(swingcoll_comm_abort(comm), 0);
		CHECK_EQ(swingcoll_comm_agree(comm, &flag), -ETIMEDOUT);
		swingcoll_comm_error(comm, text, sizeof(text), NULL);
		/* Rank 2 waits for rank 0, or, if that has given up before, for rank 1. */
		CHECK(strstr(text, "agreement: rank 1") ||
		      (rank && strstr(text, "agreement: rank 0")));
	}
	testlib_count(created);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int late(void)
{
	reset();
	swingcoll_unique_id(&id);
	return testlib_run_ranks(3, late_rank, NULL);
}

int main(void)
{
	static const struct testlib_test tests[] = {
		{ "all agree", nobody_dies },
		{ "the first rank dies at each step", first_dies },
		{ "the last rank dies at each step", last_dies },
		{ "several ranks die at random steps", several_die },
		{ "one after the other dies before it joins", one_after_the_other },
		{ "survivors have seen different failures", different_lists },
		{ "a rank does not come", late },
	};

	ksft_print_header();
	testlib_require_device();
	if (testlib_env("SWC_TEST_SHORT", 0))
		stride = 3;
	seen = testlib_shared_alloc(N * sizeof(*seen));
	created = testlib_shared_alloc(sizeof(*created));
	testlib_run_tests(tests, ARRAY_SIZE(tests));
	ksft_finished();
}
