// SPDX-License-Identifier: GPL-2.0-only
/*
 * A node dies among collectives, as by a power failure: it says nothing any more. The ranks of the others are told
 * in time that it was one of its ranks, make a communicator without them, and go on. Runs on every node of a cluster
 * at once:
 *
 *	tools/vm/run --nodes 3 --kill 1@15 --env NET_KILL_NODE=1 -- net_kill
 */
#include <errno.h>

#include "net_ranks.h"

#define TIMEOUT_MS 15000
#define PATIENCE_MS 60000 /* until the node dies */
#define ROUNDS 10

static int dead;
static int *told_ms;

/* The others' ranks, in their order. */
static int go_on(struct swingcoll_comm *comm, int rank, struct coll_case *c, void *mem)
{
	struct swingcoll_comm *rest;
	int gone[NET_LOCAL];

	for (int i = 0; i < NET_LOCAL; i++)
		gone[i] = net_cluster.first[dead] + i;
	CHECK_EQ(swingcoll_comm_shrink(comm, gone, NET_LOCAL, &rest), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	CHECK_EQ(swingcoll_comm_size(rest), net_cluster.nranks - NET_LOCAL);
	CHECK_EQ(swingcoll_comm_rank(rest), rank < gone[0] ? rank : rank - NET_LOCAL);
	for (int i = 0; i < ROUNDS; i++) {
		c->coll = i % 2 ? SWINGCOLL_ALLREDUCE : SWINGCOLL_ALLGATHER;
		CHECK_EQ(coll_run(c, mem, rest, i), 0);
	}
	CHECK_EQ(swingcoll_barrier(rest), 0);
	CHECK_EQ(swingcoll_comm_destroy(rest), 0);
	return 0;
}

static int rank_fn(uint32_t i, void *arg)
{
	static const struct net_expected expected = { -ECONNRESET, 0, NET_VICTIMS_NODE };
	struct coll_case c = { .dtype = SWINGCOLL_I32, .count = 9001 };
	uint64_t start = swct_ms(), good = start, bad;
	int rank = net_layout_rank(&net_cluster, i), ret;
	struct swingcoll_comm *comm;
	char text[256];
	void *mem;

	(void)arg;
	c.coll = SWINGCOLL_ALLGATHER; /* the largest */
	mem = malloc(coll_bytes(&c, net_cluster.nranks));
	c.coll = SWINGCOLL_ALLREDUCE;
	CHECK_EQ(net_comm_create(&comm, rank, TIMEOUT_MS), 0);
	coll_quiet = true;
	do {
		CHECK(swct_ms() < start + PATIENCE_MS);
		good = swct_ms();
		ret = coll_run(&c, mem, comm, 1);
	} while (!ret);
	bad = swct_ms();
	swingcoll_comm_error(comm, text, sizeof(text), NULL);
	ksft_print_msg("rank %d, after %d ms: %s\n", rank, (int)(bad - good), text);
	CHECK_EQ(net_check_error(comm, &expected, ret), 0);
	CHECK(bad - good < TIMEOUT_MS + NET_GRACE_MS);
	*told_ms = (int)(bad - good);
	return go_on(comm, rank, &c, mem);
}

int main(void)
{
	const char *node = getenv("NET_KILL_NODE");
	int bad;

	net_ranks_start();
	if (!node || atoi(node) < 1 || atoi(node) >= net_nodes) {
		if (!net_node)
			ksft_exit_skip("needs NET_KILL_NODE, a node (not 0) that dies meanwhile\n");
		return 0;
	}
	dead = atoi(node);
	net_victim = net_cluster.first[dead];
	told_ms = swct_shared(sizeof(*told_ms));
	bad = swct_ranks(NET_LOCAL, PATIENCE_MS + 60000, rank_fn, NULL);
	if (net_node)
		return bad;
	ksft_set_plan(1);
	ksft_test_result(!bad, "node %d dies: told within %d ms, going on with %d ranks", dead,
			 *told_ms, net_cluster.nranks - NET_LOCAL);
	ksft_finished();
}
