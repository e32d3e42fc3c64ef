// SPDX-License-Identifier: GPL-2.0-only
/*
 * A rank dies, the others shrink the communicator, and a newcomer on any of the nodes brings it back to the old size. Runs
 * on every node of a cluster at once, with two ranks on each. SWC_TEST_SHORT=1: on half of the nodes.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "net_ranks.h"
#include "pairs.h"

#define ROUNDS 4
#define COUNT 5000
#define TIMEOUT_MS TESTLIB_EVENT_MS

static unsigned int *created; /* ranks of this node that have the first communicator */
static int round_number;

/* Every rank gives its number plus one. */
static int sum_is_right(struct swingcoll_comm *comm)
{
	long n = swingcoll_comm_size(comm);
	static long send[COUNT], recv[COUNT];

	for (int i = 0; i < COUNT; i++)
		send[i] = swingcoll_comm_rank(comm) + 1;
	CHECK_EQ(swingcoll_allreduce(send, recv, COUNT, SWINGCOLL_I64, SWINGCOLL_SUM, comm), 0);
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ(recv[i], n * (n + 1) / 2);
	return 0;
}

/* On a torus, ranks must be numbered node by node: newcomers, which come last, on the last node. */
static bool in_order(void)
{
	const char *topo = getenv("SWINGCOLL_TOPO");

	return topo && strncmp(topo, "switch", 6);
}

/* The node of the newcomer: all in turn, that of the dead rank, too. */
static int newcomer_node(void)
{
	return in_order() ? net_nodes - 1 : round_number % net_nodes;
}

/* Nodes have different numbers of ranks then. */
static void forget_switch(void)
{
	if (!in_order())
		unsetenv("SWINGCOLL_TOPO");
}

static int use_grown(struct swingcoll_comm *comm)
{
	int n = net_cluster.nranks;

	CHECK_EQ(swingcoll_comm_size(comm), n);
	CHECK_EQ(swingcoll_comm_rank_node(comm, 0), 0);
	CHECK_EQ(swingcoll_comm_rank_node(comm, n - 1), newcomer_node());
	for (int k = 0; k < 3; k++)
		CHECK_EQ(sum_is_right(comm), 0);
	CHECK_EQ(swingcoll_barrier(comm), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int newcomer(void)
{
	const struct swingcoll_comm_opts opts = { .timeout_ms = TIMEOUT_MS };
	struct swingcoll_comm *comm;

	/* Rank 0 does not listen for the ranks of the first communicator any more. */
	CHECK(testlib_wait_count(created, NET_LOCAL_RANKS));
	net_set_rank_env(&net_cluster, 0, net_step);
	setenv("SWINGCOLL_NRANKS", "1", 1);
	forget_switch();
	if (swingcoll_comm_join(NULL, 0, 0, &opts, &comm)) {
		ksft_print_msg("newcomer: %s\n", swingcoll_bootstrap_error());
		return 1;
	}
	CHECK_EQ(swingcoll_comm_rank(comm), net_cluster.nranks - 1);
	return use_grown(comm);
}

static int rank_fn(uint32_t i, void *arg)
{
	const struct swingcoll_comm_opts opts = { .timeout_ms = TIMEOUT_MS };
	int rank, flag = -1;
	struct swingcoll_comm *comm, *rest;

	(void)arg;
	if (i == NET_LOCAL_RANKS)
		return newcomer();
	rank = net_layout_rank(&net_cluster, (int)i);
	CHECK_EQ(net_comm_create(&comm, rank, TIMEOUT_MS), 0);
	testlib_count(created);
	CHECK_EQ(sum_is_right(comm), 0);
	CHECK_EQ(swingcoll_comm_agree(comm, &flag), 0);
	if (rank == net_victim)
		raise(SIGKILL);
	CHECK_EQ(swingcoll_comm_agree(comm, &flag), -ECONNRESET);
	CHECK_EQ(swingcoll_comm_shrink(comm, NULL, 0, &rest), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	CHECK_EQ(swingcoll_comm_size(rest), net_cluster.nranks - 1);
	CHECK_EQ(sum_is_right(rest), 0);
	forget_switch();
	if (swingcoll_comm_grow(rest, NULL, 1, &opts, &comm)) {
		ksft_print_msg("rank %d: %s\n", rank, swingcoll_bootstrap_error());
		return 1;
	}
	CHECK_EQ(swingcoll_comm_destroy(rest), 0);
	return use_grown(comm);
}

static int run(void)
{
	bool mine = newcomer_node() == net_node;
	pid_t pid[NET_LOCAL_RANKS + 1] = { 0 }, victim_pid;
	int bad;

	*created = 0;
	/* Not rank 0, where newcomers find the others. */
	net_victim = 1 + round_number % (net_cluster.nranks - 1);
	testlib_fork_ranks(pid, NET_LOCAL_RANKS + mine, rank_fn, NULL);
	victim_pid = net_detach_victim(pid);
	bad = testlib_wait_ranks(pid, NET_LOCAL_RANKS + mine);
	return (victim_pid && !testlib_was_killed(&victim_pid)) || bad;
}

static void cases(void)
{
	char name[64];

	for (round_number = 0; round_number < (pairs_short() ? ROUNDS / 2 : ROUNDS);
	     round_number++) {
		snprintf(name, sizeof(name), "round %d: a newcomer on node %d", round_number,
			 newcomer_node());
		if (net_case_begin(name))
			net_case_end(name, run());
	}
}

int main(int argc, char **argv)
{
	created = testlib_shared_alloc(sizeof(*created));
	return net_main(argc, argv, cases);
}
