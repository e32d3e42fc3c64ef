// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranks die during an agreement and a shrink, at random steps of them, several at once; all others end with the same flag
 * and in the same communicator. Runs on every node of a cluster at once, with two ranks on each.
 *
 * NET_AGREE_SEED: repeat another run. NET_AGREE_ROUNDS: so many random rounds instead of 20, or of 4 with
 * SWC_TEST_SHORT=1.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "doom.h"
#include "net_ranks.h"
#include "pairs.h"

/* An attempt to shrink waits a 64th of it for a rank that has died before it could join. */
#define TIMEOUT_MS 40000
#define STEPS 24

static struct doom_seen *seen; /* of this node's ranks, in their order */
static uint32_t dies_at[DOOM_MAX_RANKS];

static int rank_fn(uint32_t i, void *arg)
{
	int rank = net_layout_rank(&net_cluster, (int)i);
	struct swingcoll_comm *comm;

	(void)arg;
	CHECK_EQ(net_comm_create(&comm, rank, TIMEOUT_MS), 0);
	CHECK_EQ(swingcoll_barrier(comm), 0);
	return doom_run(comm, dies_at[rank], &seen[i]);
}

/* All that are not doomed must get through, and have seen the same on all nodes. */
static int run(void)
{
	struct doom_seen all[NET_MAX_NODES * NET_LOCAL_RANKS], by_rank[DOOM_MAX_RANKS];
	pid_t pid[NET_LOCAL_RANKS];
	int bad = 0, n = net_cluster.nranks;

	memset(seen, 0, NET_LOCAL_RANKS * sizeof(*seen));
	testlib_fork_ranks(pid, NET_LOCAL_RANKS, rank_fn, NULL);
	for (int i = 0; i < NET_LOCAL_RANKS; i++) {
		bool doomed = dies_at[net_layout_rank(&net_cluster, i)] != DOOM_NEVER;
		bool killed = doomed && testlib_was_killed(&pid[i]);

		if (!killed && pid[i])
			bad |= testlib_wait_ranks(&pid[i], 1);
		bad |= !killed && !seen[i].done;
	}
	net_allgather(seen, all, NET_LOCAL_RANKS * sizeof(*seen));
	for (int r = 0; r < n; r++)
		by_rank[r] = all[net_layout_node(&net_cluster, r) * NET_LOCAL_RANKS +
				 (r - net_cluster.first[net_layout_node(&net_cluster, r)])];
	bad |= doom_compare(by_rank, n);
	net_step++;
	return net_any(bad);
}

static int nobody_dies(void)
{
	memset(dies_at, 0xff, sizeof(dies_at));
	CHECK_EQ(run(), 0);
	CHECK_EQ(seen[0].agreed, 0);
	CHECK_EQ(__builtin_popcountll(seen[0].members), net_cluster.nranks);
	return 0;
}

/* Wait until the parent has set go to this. */
static int wait_go(int step)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;

	while (__atomic_load_n(&net_shared->go, __ATOMIC_ACQUIRE) < step) {
		CHECK(testlib_now_ms() < limit);
		testlib_sleep_ms(1);
	}
	return 0;
}

/*
 * Rank 0 dies before it has connected to anyone, and so cannot be missed by a connection that ends. It has the lowest
 * number: the others wait for it to connect. Those of its node know, must not connect before, and stay until the others
 * have asked them.
 */
static int unconnected_rank(uint32_t i, void *arg)
{
	int rank = net_layout_rank(&net_cluster, (int)i), culprit;
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS, one = 1;
	struct swingcoll_comm *comm;
	char text[256];

	(void)arg;
	CHECK_EQ(net_comm_create(&comm, rank, TIMEOUT_MS), 0);
	net_shared->started[i] = 1;
	CHECK_EQ(wait_go(1), 0);
	if (!rank)
		raise(SIGKILL);
	while (!net_node && !swingcoll_comm_error(comm, NULL, 0, NULL)) {
		CHECK(testlib_now_ms() < limit);
		testlib_sleep_ms(1);
	}
	CHECK(swingcoll_allreduce(&one, &one, 1, SWINGCOLL_U64, SWINGCOLL_SUM, comm));
	if (swingcoll_comm_error(comm, text, sizeof(text), &culprit) != -ECONNRESET || culprit) {
		ksft_print_msg("rank %d: rank at fault %d: %s\n", rank, culprit, text);
		return 1;
	}
	if (!net_node)
		CHECK_EQ(wait_go(2), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int unconnected_rank_dies(void)
{
	pid_t pid[NET_LOCAL_RANKS], victim = 0;
	int bad;

	memset(net_shared, 0, sizeof(*net_shared));
	testlib_fork_ranks(pid, NET_LOCAL_RANKS, unconnected_rank, NULL);
	bad = net_any(!net_all_started(pid));
	__atomic_store_n(&net_shared->go, 1, __ATOMIC_RELEASE);
	if (net_node) {
		bad |= testlib_wait_ranks(pid, NET_LOCAL_RANKS);
	} else {
		victim = pid[0];
		pid[0] = 0;
	}
	bad = net_any(bad);
	__atomic_store_n(&net_shared->go, 2, __ATOMIC_RELEASE);
	if (!net_node)
		bad |= testlib_wait_ranks(pid, NET_LOCAL_RANKS) | !testlib_was_killed(&victim);
	net_step++;
	return net_any(bad);
}

/* All ranks of a node die before anything else. */
static int nodes_ranks_die(void)
{
	memset(dies_at, 0xff, sizeof(dies_at));
	for (int i = 0; i < NET_LOCAL_RANKS; i++)
		dies_at[net_cluster.first[net_nodes - 1] + i] = 0;
	return run();
}

static int several_die(void)
{
	unsigned int seed = testlib_env_seed("NET_AGREE_SEED"), seeds[NET_MAX_NODES];
	int rounds = (int)testlib_env("NET_AGREE_ROUNDS", pairs_short() ? 4 : 20);
	int n = net_cluster.nranks;

	net_allgather(&seed, seeds, sizeof(seed));
	seed = seeds[0];
	if (!net_node)
		ksft_print_msg("NET_AGREE_SEED=%u\n", seed);
	for (int i = 0; i < rounds; i++) {
		memset(dies_at, 0xff, sizeof(dies_at));
		for (int k = 1 + rand_r(&seed) % (n - 1); k; k--)
			dies_at[rand_r(&seed) % n] = rand_r(&seed) % STEPS;
		/* One is left. */
		dies_at[rand_r(&seed) % n] = DOOM_NEVER;
		if (!run())
			continue;
		for (int r = 0; r < n && !net_node; r++)
			ksft_print_msg("round %d: rank %d died before step %d\n", i, r,
				       (int)dies_at[r]);
		return 1;
	}
	return 0;
}

static void cases(void)
{
	static const struct testlib_test tests[] = {
		{ "all agree", nobody_dies },
		{ "the ranks of a node die at once", nodes_ranks_die },
		{ "a rank dies before it has connected", unconnected_rank_dies },
		{ "several ranks die at random steps", several_die },
	};

	net_cases(tests, ARRAY_SIZE(tests));
}

int main(int argc, char **argv)
{
	seen = testlib_shared_alloc(NET_LOCAL_RANKS * sizeof(*seen));
	return net_main(argc, argv, cases);
}
