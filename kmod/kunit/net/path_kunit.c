// SPDX-License-Identifier: GPL-2.0-only
/*
 * Paths: which one a connection goes by after it has lost its own, and how it returns.
 */
#include <linux/in.h>

#include "kunit/net/failover_harness.h"

/* Two nodes whose only connection is live. */
static struct swc_t_comm *connected(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_three_paths);

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	return c;
}

/* The node's address of a path becomes one that it does not have, or its own again. */
static void flip_address(struct swc_conn *conn, u16 path)
{
	u32 node = conn->net->params.rank_node[conn->peer];
	struct sockaddr_in *local = (void *)swc_net_path(conn->net, node, path)->local;

	local->sin_addr.s_addr ^= htonl(0xff000000);
}

/*
 * Nobody answers, and all paths but the first have failed so often that they are to be avoided for long: each
 * has its turn nevertheless. One that the peer has answered by is taken at once.
 */
static void path_turns(struct kunit *test)
{
	struct swc_t_comm *c = connected(test);
	struct swc_conn *conn = swc_t_only_conn(c, 0);
	unsigned long tried;
	u32 i, k;

	swc_path_well(conn, conn->path);
	KUNIT_EXPECT_EQ(test, swc_path_choose(conn), conn->path);
	for (i = 0; i < 8 * SWC_T_PATHS; i++)
		if (i % SWC_T_PATHS != conn->path)
			swc_path_failed(conn, i % SWC_T_PATHS);
	/* The order is that of jiffies. */
	schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, swc_path_choose(conn), conn->path);
	for (k = 0; k < 3; k++) {
		for (tried = 0, i = 0; i < SWC_T_PATHS; i++) {
			u16 path = swc_path_choose(conn);

			__set_bit(path, &tried);
			swc_path_tried(conn, path);
			swc_path_given_up(conn, path);
			schedule_timeout_uninterruptible(1);
		}
		KUNIT_EXPECT_EQ(test, tried, BIT(SWC_T_PATHS) - 1);
	}
	swc_path_well(conn, SWC_T_PATHS - 1);
	KUNIT_EXPECT_EQ(test, swc_path_choose(conn), SWC_T_PATHS - 1);
	swc_t_comm_end(c);
}

static struct swc_path_health *health_of(const struct swc_conn *conn, u16 path)
{
	const struct swc_path_table *t = &conn->net->paths;

	return &t->health[t->first[conn->net->params.rank_node[conn->peer]] + path];
}

/*
 * Many connections lose a path together, and one after the other tries others: none of them takes the lost
 * one, as long as it is not known that another does not work either. It is one failure.
 */
static void path_together(struct kunit *test)
{
	struct swc_t_comm *c = connected(test);
	struct swc_conn *conn = swc_t_only_conn(c, 0);
	u16 own, next, last;
	u32 i;

	own = conn->path;
	next = (own + 1) % SWC_T_PATHS;
	last = (own + 2) % SWC_T_PATHS;
	for (i = 0; i < 8; i++)
		swc_path_failed(conn, own);
	KUNIT_EXPECT_EQ(test, health_of(conn, own)->failed, 1u);
	for (i = 1; i < SWC_T_PATHS; i++) {
		schedule_timeout_uninterruptible(1);
		KUNIT_EXPECT_EQ(test, swc_path_choose(conn), (own + i) % SWC_T_PATHS);
		swc_path_tried(conn, (own + i) % SWC_T_PATHS);
	}
	KUNIT_EXPECT_EQ(test, swc_path_choose(conn), next);
	swc_path_given_up(conn, next);
	KUNIT_EXPECT_EQ(test, swc_path_choose(conn), last);
	swc_path_given_up(conn, last);
	KUNIT_EXPECT_EQ(test, swc_path_choose(conn), own);
	swc_path_well(conn, next);
	/* It has been answered meanwhile: the end of an older attempt says nothing. */
	swc_path_given_up(conn, next);
	KUNIT_EXPECT_EQ(test, swc_path_choose(conn), next);
	swc_t_comm_end(c);
}

/*
 * All paths are lost, but only one of them is known to be cut off, as this node has no card with its address:
 * it has its turn last, though it was tried longest ago.
 */
static void path_cut_off(struct kunit *test)
{
	struct swc_t_comm *c = connected(test);
	struct swc_conn *conn = swc_t_only_conn(c, 0);
	u16 own = conn->path;
	u32 i;

	for (i = 0; i < SWC_T_PATHS; i++) {
		swc_path_failed(conn, (own + i) % SWC_T_PATHS);
		/* The order is that of jiffies. */
		schedule_timeout_uninterruptible(1);
	}
	KUNIT_EXPECT_EQ(test, swc_path_choose(conn), own);
	flip_address(conn, own);
	for (i = 0; i < 2 * SWC_T_PATHS; i++) {
		u16 path = swc_path_choose(conn);

		KUNIT_EXPECT_NE(test, path, own);
		swc_path_failed(conn, path);
		schedule_timeout_uninterruptible(1);
	}
	/* Nobody has tried it yet, for all that is known. */
	swc_path_well(conn, own);
	KUNIT_EXPECT_NE(test, swc_path_choose(conn), own);
	flip_address(conn, own);
	KUNIT_EXPECT_EQ(test, swc_path_choose(conn), own);
	swc_t_comm_end(c);
}

/*
 * A peer has come by one of several paths with one address here: its own address tells by which, and if more
 * than one fits, it is the connection's own; never one of another transport.
 */
static void path_by_address(struct kunit *test)
{
	struct swc_t_comm *c = connected(test);
	struct swc_conn *conn = swc_t_only_conn(c, 1);
	u32 node = conn->net->params.rank_node[conn->peer], i;
	struct sockaddr_in local, remote, strange, *addr;
	struct swc_node_path *p;

	for (i = 0; i < SWC_T_PATHS; i++) {
		p = (void *)swc_net_path(conn->net, node, i);
		local = *(struct sockaddr_in *)p->local;
		remote = *(struct sockaddr_in *)p->remote;
		/* Of a socket. */
		local.sin_port = htons(1);
		remote.sin_port = htons(2);
		KUNIT_EXPECT_EQ(test, swc_path_by_address(conn, (void *)&local, (void *)&remote), conn->path);
	}
	strange = remote;
	strange.sin_addr.s_addr ^= htonl(0xff);
	for (i = 0; i < SWC_T_PATHS; i++) {
		p = (void *)swc_net_path(conn->net, node, i);
		addr = (void *)p->remote;
		addr->sin_addr = strange.sin_addr;
		KUNIT_EXPECT_EQ(test, swc_path_by_address(conn, (void *)&local, (void *)&strange), i);
		p->transport = (p->transport + 1) % SWC_TRANSPORT_NR;
		KUNIT_EXPECT_NE(test, swc_path_by_address(conn, (void *)&local, (void *)&strange), i);
		p->transport = (p->transport + SWC_TRANSPORT_NR - 1) % SWC_TRANSPORT_NR;
		addr->sin_addr = remote.sin_addr;
		/* No path has it: the nodes' tables differ. */
		KUNIT_EXPECT_EQ(test, swc_path_by_address(conn, (void *)&local, (void *)&strange),
				conn->path);
	}
	KUNIT_EXPECT_EQ(test, swc_path_by_address(conn, (void *)&strange, (void *)&remote), conn->path);
	swc_t_comm_end(c);
}

/* Once the time to leave the path alone is over, the connection asks for a path if it is to. */
static void ask(struct swc_conn *conn, u16 path)
{
	health_of(conn, path)->until = jiffies;
	queue_work(swc_conn_wq(conn), &conn->path_work);
	flush_work(&conn->path_work);
}

/* On a slow machine the answer may take too long, several times. */
#define MOST_TIMES	20

static void ask_until_well(struct kunit *test, struct swc_conn *conn, u16 path)
{
	u32 i;

	for (i = 0; i < MOST_TIMES && health_of(conn, path)->state != SWC_PATH_WELL; i++)
		ask(conn, path);
	KUNIT_EXPECT_EQ(test, (int)health_of(conn, path)->state, (int)SWC_PATH_WELL);
}

/*
 * A path has failed that is the own one of no connection: it would come last for ever, if no connection asked
 * for it. Each may, at either rank, but one at a time; only one whose own path it is goes by it then.
 */
static void path_asks(struct kunit *test)
{
	struct swc_t_comm *c;
	bool claimed;
	u32 r;

	swc_t_use_param(test);
	c = connected(test);
	for (r = 0; r < 2; r++) {
		struct swc_conn *conn = swc_t_only_conn(c, r);
		u16 other = (conn->path + 1) % SWC_T_PATHS;
		struct swc_path_health *h = health_of(conn, other);

		KUNIT_EXPECT_EQ(test, swc_path_to_ask(conn, NULL), -1);
		swc_path_failed(conn, other);
		KUNIT_EXPECT_EQ(test, swc_path_to_ask(conn, NULL), -1);
		h->until = jiffies;
		KUNIT_EXPECT_EQ(test, swc_path_to_ask(conn, NULL), (int)other);
		KUNIT_EXPECT_EQ(test, swc_path_to_ask(conn, &claimed), (int)other);
		KUNIT_EXPECT_TRUE(test, claimed);
		/* As another connection finds it. */
		KUNIT_EXPECT_EQ(test, swc_path_to_ask(conn, &claimed), -1);
		KUNIT_EXPECT_FALSE(test, claimed);
		swc_path_asked(conn, other, true, false);
		KUNIT_EXPECT_EQ(test, h->failed, 2u);
		KUNIT_EXPECT_TRUE(test, time_before(jiffies, h->until));

		/* This node does not have the address: no answer. */
		flip_address(conn, other);
		ask(conn, other);
		flip_address(conn, other);
		KUNIT_EXPECT_EQ(test, h->failed, 3u);
		KUNIT_EXPECT_EQ(test, (int)h->state, (int)SWC_PATH_LOST);

		ask_until_well(test, conn, other);
		KUNIT_EXPECT_EQ(test, swc_path_to_ask(conn, NULL), -1);
		KUNIT_EXPECT_EQ(test, (int)conn->state, (int)SWC_CONN_LIVE);
		KUNIT_EXPECT_FALSE(test, test_bit(SWC_CONN_F_DROPPED, &conn->flags));
		KUNIT_EXPECT_EQ(test, conn->via, conn->path);
	}
	swc_t_comm_end(c);
}

/* The connection is lost until it goes by another path than its own: that may be given up as well. */
static void leave_path(struct kunit *test, struct swc_t_comm *c, struct swc_conn *conn)
{
	struct swc_t_before_loss before;
	u32 i;

	for (i = 0; i < MOST_TIMES && conn->via == conn->path; i++) {
		before = swc_t_before_loss(c);
		swc_conn_retry(conn, "cut", -ETIMEDOUT);
		swc_t_wait_resumed(test, c, &before);
	}
	KUNIT_EXPECT_NE(test, conn->via, conn->path);
}

/* It asks for its own path until it goes by that. */
static void return_to_path(struct kunit *test, struct swc_t_comm *c, struct swc_conn *conn)
{
	struct swc_t_before_loss before;
	u32 i;

	for (i = 0; i < MOST_TIMES && conn->via != conn->path; i++) {
		before = swc_t_before_loss(c);
		ask(conn, conn->path);
		if (health_of(conn, conn->path)->state != SWC_PATH_LOST)
			swc_t_wait_resumed(test, c, &before);
	}
	KUNIT_EXPECT_EQ(test, conn->via, conn->path);
}

/* A connection that goes by another path than its own returns to that when it answers, by its lower rank. */
static void path_returns(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_conn *lower, *higher;
	struct swc_t_comm *c;
	bool claimed;
	u16 own;

	swc_t_use_param(test);
	c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_three_paths);
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	lower = swc_t_only_conn(c, 0);
	higher = swc_t_only_conn(c, 1);
	own = lower->path;
	leave_path(test, c, lower);
	KUNIT_EXPECT_EQ(test, (int)health_of(lower, own)->state, (int)SWC_PATH_LOST);
	/* Whatever it found: all paths of this test have the same address. */
	swc_path_failed(higher, own);
	ask_until_well(test, higher, own);
	KUNIT_EXPECT_FALSE(test, test_bit(SWC_CONN_F_DROPPED, &higher->flags));
	health_of(lower, own)->until = jiffies;
	KUNIT_EXPECT_EQ(test, swc_path_to_ask(lower, &claimed), (int)own);
	/* Others whose own path it is ask, too. */
	KUNIT_EXPECT_FALSE(test, claimed);
	return_to_path(test, c, lower);
	KUNIT_EXPECT_EQ(test, higher->via, own);
	swc_t_job_fill(job);
	swc_t_job_run(job, 1, true);
	swc_t_comm_end(c);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(path_turns),
	KUNIT_CASE(path_together),
	KUNIT_CASE(path_cut_off),
	KUNIT_CASE(path_by_address),
	KUNIT_CASE_PARAM(path_asks, swc_t_transport_gen_params),
	KUNIT_CASE_PARAM(path_returns, swc_t_transport_gen_params),
	{}
};

struct kunit_suite swc_path_suite = {
	.name = "swc_path", .init = swc_t_net_init, .exit = swc_t_failover_exit, .test_cases = cases,
};
