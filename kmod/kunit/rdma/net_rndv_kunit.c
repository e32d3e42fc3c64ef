// SPDX-License-Identifier: GPL-2.0-only
/* Large messages between nodes: by rendezvous, straight into place, or in segments, in their order. */
#include <linux/delay.h>

#include "rdma/rdma.h"
#include "trace.h"
#include "kunit/harness.h"
#include "kunit/rdma/net_harness.h"

/* With two ranks, all stored blocks from 64 KiB on go by rendezvous, and no others. */
static void net_rndv(struct kunit *test)
{
	static const struct {
		u64 count, direct;
	} cases[] = { { 16368, 0 }, { 16384, 2 << 16 }, { 40000, 320000 } };
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 before = swc_stat_read(SWC_STAT_BYTES_DIRECT);

		swc_t_job_init(job, c, swc_t_ring, cases[i].count, false);
		swc_t_job_run(job, 0, true);
		KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_BYTES_DIRECT) - before, cases[i].direct);
	}
	swc_t_comm_end(c);
}

#define RNDVS	500

/* Rank 1 sends its vector to rank 0 so often, in one step. */
static struct swc_plan_writer *send_often(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, 2, rank, 1);
	u32 i;

	swc_plan_write_channel(p);
	swc_plan_write_step(p, SWC_STEP_NET);
	for (i = 0; i < RNDVS; i++) {
		if (rank)
			swc_t_send_stored(p, 0, 0, 1, SWC_BUF_SEND);
		else
			swc_t_recv(p, 1, 0, 1, SWC_BUF_RECV, 0, 0);
	}
	return p;
}

/* A transport that counts how often it is pumped. */
static struct {
	const struct swc_transport *of;
	atomic_t pumps;
} counted;

static void count_pump(struct swc_conn *conn, bool nested)
{
	atomic_inc(&counted.pumps);
	counted.of->pump(conn, nested);
}

/*
 * A step with many messages by rendezvous has its connection look for what can be sent a few times, not once
 * for each: a look takes the longer, the more messages wait.
 */
static void net_rndv_many(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_transport counting;
	struct swc_conn *conn;

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	conn = swc_net_known_conn(swc_t_net(c, 0), 0, 1, 0, 0);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	KUNIT_ASSERT_EQ(test, conn->state, SWC_CONN_LIVE);
	swc_t_job_init(job, c, send_often, SWC_WIRE_DIRECT / 8, false);
	counted.of = conn->transport;
	counting = *conn->transport;
	counting.pump = count_pump;
	atomic_set(&counted.pumps, 0);
	WRITE_ONCE(conn->transport, &counting);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), 0);
	KUNIT_EXPECT_GE(test, atomic_read(&counted.pumps), 1);
	KUNIT_EXPECT_LT(test, atomic_read(&counted.pumps), RNDVS / 5);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);
	swc_t_job_expect(job, 0);
	swc_t_expect_sent(job, 1);
	WRITE_ONCE(conn->transport, counted.of);
	swc_conn_put(conn);
	swc_t_comm_end(c);
}

/*
 * Memory is offered before its step. In a ring a step needs the data of the one before it: not all can be
 * early.
 */
static void net_rtr_early(struct kunit *test)
{
	static const struct swc_t_layout four_nodes = { 4, 1, false, { 0, 1, 2, 3 } };
	struct swc_t_comm *c = swc_t_comm_on(test, 4, SWC_T_NO_DEADLINE, &four_nodes);
	u64 before = swc_stat_read(SWC_STAT_RTR_EARLY);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 round;

	swc_t_job_init(job, c, swc_t_ring, 40000, false);
	for (round = 0; round < 5; round++)
		swc_t_job_run(job, round, true);
	KUNIT_EXPECT_GT(test, swc_stat_read(SWC_STAT_RTR_EARLY), before);
	/* Three steps of each rank store. */
	KUNIT_EXPECT_LE(test, swc_stat_read(SWC_STAT_RTR_EARLY), before + round * 4 * 3);
	swc_t_comm_end(c);
}

/* Segments of an operation that are not in the inbox of a task. */
static u32 unexpected(struct swc_comm *comm, u64 seq)
{
	struct swc_net_seg *seg;
	u32 n = 0;

	spin_lock(&comm->lock);
	list_for_each_entry(seg, &comm->unexpected[seq % SWC_UNEXPECTED_LISTS], node)
		n += seg->msg.seq == seq;
	spin_unlock(&comm->lock);
	return n;
}

/* Unexpected segments that were left when the operation had started. */
struct leftover {
	struct swc_comm *comm;
	u32 n;
};

static void on_start(void *data, const struct swc_op *op, u32 rank)
{
	struct leftover *o = data;

	if (op->comm == o->comm)
		o->n += unexpected(o->comm, op->seq);
}

/*
 * The first segments of a message arrive before the receiver has submitted the operation. When it starts,
 * further ones go to the task directly, and must not overtake them.
 */
static void net_in_order(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	struct leftover o = { .comm = swc_t_rank_comm(c, 1) };
	u32 i;

	swc_t_job_init(job, c, swc_t_ring, 40000, false);
	swc_t_job_run(job, 0, true);
	swc_t_job_fill(job);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), 0);
	for (i = 0; i < 100 && !unexpected(o.comm, 1); i++)
		msleep(20);
	KUNIT_EXPECT_GT(test, unexpected(o.comm, 1), 0u);
	KUNIT_ASSERT_EQ(test, register_trace_swc_match(on_start, &o), 0);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);
	unregister_trace_swc_match(on_start, &o);
	tracepoint_synchronize_unregister();
	swc_t_job_expect(job, 0);
	swc_t_job_check_sum(job);
	KUNIT_EXPECT_EQ(test, o.n, 0u);
	swc_t_comm_end(c);
}

/* More than one chunk. */
static void net_rndv_chunks(struct kunit *test)
{
	u64 direct = swc_stat_read(SWC_STAT_BYTES_DIRECT);
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 r;

	swc_t_job_init(job, c, swc_t_send_from_1, 140000, false);
	for (r = 0; r < 2; r++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
	swc_t_job_expect(job, 0);
	swc_t_expect_sent(job, 1);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_BYTES_DIRECT) - direct, 140000 * 8ull);
	swc_t_comm_end(c);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_SLOW(net_rndv),
	KUNIT_CASE_SLOW(net_rndv_many),
	KUNIT_CASE_SLOW(net_rtr_early),
	KUNIT_CASE_SLOW(net_in_order),
	KUNIT_CASE_SLOW(net_rndv_chunks),
	{}
};

struct kunit_suite swc_net_rndv_suite = {
	.name = "swc_net_rndv", .init = swc_t_net_init, .exit = swc_t_net_exit, .test_cases = cases,
};

/* Those that depend on nothing of RDMA. */
static struct kunit_case tcp_cases[] = {
	KUNIT_CASE_SLOW(net_rndv),
	KUNIT_CASE_SLOW(net_rndv_many),
	KUNIT_CASE_SLOW(net_in_order),
	{}
};

struct kunit_suite swc_net_rndv_tcp_suite = {
	.name = "swc_net_rndv_tcp", .init = swc_t_tcp_init, .exit = swc_t_tcp_exit, .test_cases = tcp_cases,
};
