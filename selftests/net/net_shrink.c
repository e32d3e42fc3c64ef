// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shrinking a communicator after a rank has died. Runs on every node of a cluster at once, with two ranks on each. The
 * victim kills itself among collectives; the others get an error that names it, create a smaller communicator, and use it.
 */
#include <errno.h>
#include <signal.h>

#include "net_ranks.h"

#define ROUNDS 5
#define COUNT 5000
#define TIMEOUT_MS TESTLIB_EVENT_MS

/* Every rank gives its number in the first communicator plus one; check the sum. */
static int sum_is(struct swingcoll_comm *comm, int mine, long want)
{
	static long send[COUNT], recv[COUNT];
	int ret;

	for (int i = 0; i < COUNT; i++)
		send[i] = mine + 1;
	ret = swingcoll_allreduce(send, recv, COUNT, SWINGCOLL_I64, SWINGCOLL_SUM, comm);
	for (int i = 0; !ret && i < COUNT; i++)
		CHECK_EQ(recv[i], want);
	return ret;
}

/* Of the ranks of all nodes, but for one of them or none, in their order. */
static int nodes_are_known(const struct swingcoll_comm *comm, int without)
{
	int n = net_cluster.nranks, at = 0;

	for (int r = 0; r < n; r++)
		if (r != without)
			CHECK_EQ(swingcoll_comm_rank_node(comm, at++),
				 net_layout_node(&net_cluster, r));
	CHECK_EQ(swingcoll_comm_rank_node(comm, at), -EINVAL);
	CHECK_EQ(swingcoll_comm_rank_node(comm, -1), -EINVAL);
	return 0;
}

static int rank_fn(uint32_t i, void *arg)
{
	static const struct net_expected expected = { -ECONNRESET, 0, NET_CULPRIT_VICTIM };
	int rank = net_layout_rank(&net_cluster, i), n = net_cluster.nranks, ret;
	struct swingcoll_comm *comm, *rest;
	long all = (long)n * (n + 1) / 2;

	(void)arg;
	CHECK_EQ(net_comm_create(&comm, rank, TIMEOUT_MS), 0);
	CHECK_EQ(nodes_are_known(comm, -1), 0);
	/*
	 * The victim's last round ends with it alone: what it has still to send to the others in that round dies with
	 * it. Every round before that has ended on all ranks when they begin the next one.
	 */
	for (int k = 0; k < ROUNDS; k++)
		CHECK_EQ(sum_is(comm, rank, all), 0);
	if (rank == net_victim) {
		CHECK_EQ(sum_is(comm, rank, all), 0);
		raise(SIGKILL);
	}
	do {
		ret = sum_is(comm, rank, all);
	} while (!ret);
	CHECK_EQ(net_check_error(comm, &expected, ret), 0);
	CHECK(swingcoll_comm_failed(ret));

	CHECK_EQ(swingcoll_comm_shrink(comm, &rank, 1, &rest), -EINVAL);
	CHECK_EQ(swingcoll_comm_shrink(comm, NULL, 0, &rest), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	CHECK_EQ(swingcoll_comm_size(rest), n - 1);
	CHECK_EQ(nodes_are_known(rest, net_victim), 0);
	CHECK_EQ(swingcoll_comm_rank(rest), rank < net_victim ? rank : rank - 1);
	for (int k = 0; k < ROUNDS; k++)
		CHECK_EQ(sum_is(rest, rank, all - (net_victim + 1)), 0);
	CHECK_EQ(swingcoll_barrier(rest), 0);
	CHECK_EQ(swingcoll_comm_destroy(rest), 0);
	return 0;
}

int main(void)
{
	pid_t pid[NET_LOCAL_RANKS], victim_pid;
	int bad;

	net_ranks_init();
	net_victim = net_cluster.nranks / 2;
	testlib_fork_ranks(pid, NET_LOCAL_RANKS, rank_fn, NULL);
	victim_pid = net_detach_victim(pid);
	bad = testlib_wait_ranks(pid, NET_LOCAL_RANKS);
	if (victim_pid && !testlib_was_killed(&victim_pid))
		bad = 1;
	if (net_node)
		return bad;
	ksft_set_plan(1);
	ksft_test_result(!bad, "the ranks of node 0 continue without rank %d", net_victim);
	ksft_finished();
}
