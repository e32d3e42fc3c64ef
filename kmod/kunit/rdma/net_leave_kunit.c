// SPDX-License-Identifier: GPL-2.0-only
/* Ranks that leave a communicator of several nodes in order, while others are still at work. */
#include <linux/delay.h>

#include "rdma/rdma.h"
#include "kunit/harness.h"
#include "kunit/rdma/net_harness.h"

static const struct swc_t_layout three_nodes = { 3, 1, false, { 0, 1, 2 } };
static const struct swc_t_layout one_and_two = { 2, 1, false, { 0, 1, 1 } };

/*
 * A rank may leave after its last operation, long before its peer has submitted it: what it sent arrives.
 * The peer need not leave soon either.
 */
static void leave_before_slow(struct kunit *test, u32 sender)
{
	struct swc_t_job *job = kunit_kcalloc(test, 4, sizeof(*job), GFP_KERNEL);
	struct swc_t_job *first = swc_t_job_new(test);
	u32 i, slow = !sender;
	struct swc_t_comm *c;

	KUNIT_ASSERT_NOT_NULL(test, job);
	swc_rdma_rx_bufs = SWC_WIRE_MIN_RX_BUFS;
	c = swc_t_comm_on(test, 2, 4000, &swc_t_two_nodes);
	swc_t_job_init(first, c, swc_t_ring, 300, false);
	swc_t_job_run(first, 0, true);
	swc_t_expect_credits(c);
	/* Fewer than there are receive buffers: all can be sent. */
	for (i = 0; i < 3; i++) {
		swc_t_job_init(&job[i], c, sender ? swc_t_send_from_1 : swc_t_send_from_0, 100 + i, false);
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(&job[i], sender, true), 0);
		KUNIT_EXPECT_EQ(test, swc_t_result(&job[i].done[sender]), 0);
	}
	KUNIT_EXPECT_EQ(test, swc_t_leave(c, sender), 0);
	msleep(SWC_LINGER_MS + 1000);
	for (i = 0; i < 3; i++) {
		int ret = swc_t_job_submit(&job[i], slow, true);

		KUNIT_EXPECT_EQ_MSG(test, ret, 0, "operation %u", i);
		if (ret)
			continue;
		KUNIT_EXPECT_EQ(test, swc_t_result(&job[i].done[slow]), 0);
		swc_t_expect_sent(&job[i], sender);
	}
	/* But no more operations. */
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(first, slow, true), -ECONNRESET);
	/* All others must be notified of that, too, with the right culprit. */
	KUNIT_EXPECT_EQ(test, swc_t_rank_comm(c, slow)->status, SWC_COMM_ABORTED);
	KUNIT_EXPECT_EQ_MSG(test, swc_t_rank_comm(c, slow)->culprit, (int)sender, "%s",
			    swc_t_rank_comm(c, slow)->text);
	KUNIT_EXPECT_EQ(test, swc_t_leave(c, slow), 0);
	swc_t_comm_end(c);
}

static void net_leave_before_slow_higher(struct kunit *test)
{
	leave_before_slow(test, 0);
}

static void net_leave_before_slow_lower(struct kunit *test)
{
	leave_before_slow(test, 1);
}

/* Segments of operations that this node never submits are released, too. */
static void net_leave_unread(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, 9000, &swc_t_two_nodes);
	struct list_head *unexpected = &swc_t_rank_comm(c, 1)->unexpected[1];
	struct swc_t_job *job = swc_t_job_new(test);
	u32 i;

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	for (i = 0; i < 3; i++) {
		swc_t_job_init(job, c, swc_t_send_from_0, 100, false);
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), 0);
		KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[0]), 0);
	}
	for (i = 0; i < 100 && list_empty_careful(unexpected); i++)
		msleep(20);
	KUNIT_EXPECT_FALSE(test, list_empty_careful(unexpected));
	KUNIT_EXPECT_EQ(test, swc_t_leave(c, 0), 0);
	KUNIT_EXPECT_EQ(test, swc_t_leave(c, 1), 0);
	swc_t_comm_end(c);
}

/* All ranks leave at about the same time, right after an operation. */
static void net_leave(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	u64 aborted = swc_stat_read(SWC_STAT_COMMS_ABORTED);
	u32 i, r;

	for (i = 0; i < 6; i++) {
		struct swc_t_comm *c = swc_t_comm_on(test, 3, 9000, &three_nodes);

		swc_t_job_init(job, c, swc_t_ring, i & 1 ? 40000 : 300, false);
		for (r = 0; r < 3; r++)
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, false), 0);
		for (r = 0; r < 3; r++) {
			u32 leaver = (r + i) % 3;

			KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[leaver]), 0);
			KUNIT_EXPECT_EQ(test, swc_t_leave(c, leaver), 0);
		}
		swc_t_job_check_sum(job);
		swc_t_comm_end(c);
	}
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_COMMS_ABORTED), aborted);
}

/* Leaving while the other rank waits for one more operation aborts that, and names the rank that left. */
static void net_leave_early(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	u32 leaver;

	for (leaver = 0; leaver < 2; leaver++) {
		struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);

		swc_t_job_init(job, c, swc_t_ring, 300, false);
		swc_t_job_run(job, 0, true);
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, !leaver, true), 0);
		KUNIT_EXPECT_EQ(test, swc_t_leave(c, leaver), 0);
		KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[!leaver]), -ECONNRESET);
		KUNIT_EXPECT_EQ(test, job->done[!leaver].culprit, (int)leaver);
		KUNIT_EXPECT_EQ(test, swc_t_leave(c, !leaver), 0);
		swc_t_comm_end(c);
	}
}

/* Rank 1 sends a half of its vector by each of two channels. */
static struct swc_plan_writer *send_by_two(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, 2, rank, 2);
	u32 i;

	for (i = 0; i < 2; i++) {
		swc_plan_write_channel(p);
		swc_plan_write_step(p, SWC_STEP_NET);
		if (rank)
			swc_t_send(p, 0, i, 1, SWC_BUF_SEND);
		else
			swc_t_recv(p, 1, i, 1, SWC_BUF_RECV, 0, 0);
	}
	return p;
}

/* Segments of channel 1 are handled as soon as a test allows it. */
static struct {
	const struct swc_net_ops *ops;
	struct completion arrived;
	struct completion go;
} slow;

static void handle_slowly(struct swc_comm *comm, struct swc_net_seg *seg)
{
	if (seg->channel == 1) {
		complete(&slow.arrived);
		wait_for_completion(&slow.go);
	}
	slow.ops->segment(comm, seg);
}

/*
 * A rank that leaves is known to have left by one channel, while what it has sent by another before is still
 * being handled; even when it has closed that connection.
 */
static void net_leave_channels(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_comm *comm = swc_t_rank_comm(c, 0);
	struct swc_net_ops ops = *swc_net_ops;
	struct swc_conn *conn;
	u32 i;

	slow.ops = swc_net_ops;
	init_completion(&slow.arrived);
	init_completion(&slow.go);
	ops.segment = handle_slowly;
	swc_t_job_init(job, c, send_by_two, 300, false);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, false), 0);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, false), 0);
	swc_t_job_expect(job, 0);
	conn = swc_net_known_conn(comm->net, 0, 1, 1, 0);
	KUNIT_ASSERT_NOT_NULL(test, conn);

	WRITE_ONCE(swc_net_ops, &ops);
	swc_t_job_init(job, c, send_by_two, 301, false);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, false), 0);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, false), 0);
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[1]), 0);
	wait_for_completion(&slow.arrived);
	KUNIT_EXPECT_EQ(test, swc_t_leave(c, 1), 0);
	for (i = 0; i < 1000 && READ_ONCE(comm->gone_at) == U64_MAX; i++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, comm->gone_at, 2ull);
	for (i = 0; i < 1000 && !test_bit(SWC_CONN_F_DROPPED, &conn->flags); i++)
		msleep(20);
	KUNIT_EXPECT_TRUE(test, test_bit(SWC_CONN_F_DROPPED, &conn->flags));
	/* Longer than a connection that was dropped lives. */
	for (i = 0; i < 50 && READ_ONCE(comm->status) != SWC_COMM_ABORTED; i++)
		msleep(20);
	KUNIT_EXPECT_EQ_MSG(test, comm->status, SWC_COMM_LIVE, "%s", comm->text);
	KUNIT_EXPECT_FALSE(test, completion_done(&job->done[0].done));
	complete_all(&slow.go);
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[0]), 0);
	swc_t_expect_sent(job, 1);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, comm->culprit, 1);
	swc_conn_put(conn);
	swc_t_comm_end(c);
	WRITE_ONCE(swc_net_ops, slow.ops);
}

static void hold_fin(struct swc_comm *comm, u32 rank, u64 seq)
{
	complete(&slow.arrived);
	wait_for_completion(&slow.go);
	slow.ops->peer_left(comm, rank, seq);
}

static bool nothing_received(const struct swc_conn *conn)
{
	return false;
}

/* So many milliseconds after a rank has left, its connection is gone, though the peer has never answered. */
static u32 leave_unanswered(struct kunit *test, u32 timeout_ms)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, timeout_ms, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_net_ops ops = *swc_net_ops;
	const struct swc_transport *transport;
	struct swc_transport silent;
	unsigned long start, took;
	struct swc_conn *conn;

	slow.ops = swc_net_ops;
	init_completion(&slow.arrived);
	init_completion(&slow.go);
	ops.peer_left = hold_fin;
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	conn = swc_net_known_conn(swc_t_net(c, 1), 1, 0, 0, 0);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	transport = conn->transport;
	silent = *transport;
	silent.all_received = nothing_received;
	WRITE_ONCE(conn->transport, &silent);
	WRITE_ONCE(swc_net_ops, &ops);
	start = jiffies;
	KUNIT_EXPECT_EQ(test, swc_t_leave(c, 1), 0);
	wait_for_completion(&slow.arrived);
	while (READ_ONCE(conn->state) != SWC_CONN_CLOSED && time_before(jiffies, start + 120 * HZ))
		msleep(100);
	took = jiffies - start;
	KUNIT_EXPECT_EQ(test, conn->state, SWC_CONN_CLOSED);
	complete_all(&slow.go);
	KUNIT_EXPECT_EQ(test, swc_t_leave(c, 0), 0);
	swc_t_comm_end(c);
	WRITE_ONCE(conn->transport, transport);
	WRITE_ONCE(swc_net_ops, slow.ops);
	swc_conn_put(conn);
	return jiffies_to_msecs(took);
}

/* A rank that leaves waits for its peer to receive what it has sent, but not for ever. */
static void net_leave_unanswered(struct kunit *test)
{
	u32 took = leave_unanswered(test, SWC_T_NO_DEADLINE);

	KUNIT_EXPECT_GE(test, took, SWC_LEAVE_MS);
	KUNIT_EXPECT_LT(test, took, 2 * SWC_LEAVE_MS);
	took = leave_unanswered(test, SWC_LEAVE_MS / 3);
	KUNIT_EXPECT_GE(test, took, SWC_LEAVE_MS / 3);
	KUNIT_EXPECT_LT(test, took, SWC_LEAVE_MS);
}

/* A rank that leaves after an abort is not the culprit: no peer gets its FIN before the ABORT. */
static void net_leave_aborted(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 3, SWC_T_NO_DEADLINE, &one_and_two);
	struct swc_comm *peer = swc_t_rank_comm(c, 0);
	struct swc_net *net = swc_t_net(c, 0);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 i;

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), 0);
	swc_comm_abort(swc_t_rank_comm(c, 1), -ECONNRESET, 2, 1, "rank 2 is gone");
	KUNIT_EXPECT_EQ(test, swc_t_leave(c, 1), 0);
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[0]), -ECONNRESET);
	KUNIT_EXPECT_EQ_MSG(test, job->done[0].culprit, 2, "%s", peer->text);
	for (i = 0; i < 100 && !xa_empty(&net->conns); i++)
		msleep(20);
	KUNIT_EXPECT_TRUE(test, xa_empty(&net->conns));
	KUNIT_EXPECT_EQ(test, peer->gone_at, U64_MAX);
	swc_t_comm_end(c);
}

/* Of two ranks that have left, the one that did not call the operation is the culprit. */
static void net_leave_culprit(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 3, SWC_T_NO_DEADLINE, &one_and_two);
	struct swc_comm *comm = swc_t_rank_comm(c, 0);
	struct swc_t_job *job = swc_t_job_new(test);

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	swc_comm_peer_left(comm, 1, 2);
	swc_comm_peer_left(comm, 2, 1);
	/* By another connection, later than FIN. */
	swc_comm_peer_progress(comm, 2, 2);
	KUNIT_EXPECT_EQ(test, comm->gone_at, 1ull);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, comm->culprit, 2);
	KUNIT_EXPECT_STREQ(test, comm->text, "rank 2 left before operation 1");
	swc_t_comm_end(c);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(net_leave_culprit),
	KUNIT_CASE_SLOW(net_leave_before_slow_higher),
	KUNIT_CASE_SLOW(net_leave_before_slow_lower),
	KUNIT_CASE_SLOW(net_leave),
	KUNIT_CASE_SLOW(net_leave_unread),
	KUNIT_CASE_SLOW(net_leave_early),
	KUNIT_CASE_SLOW(net_leave_channels),
	KUNIT_CASE_SLOW(net_leave_unanswered),
	KUNIT_CASE(net_leave_aborted),
	{}
};

struct kunit_suite swc_net_leave_suite = {
	.name = "swc_net_leave", .init = swc_t_net_init, .exit = swc_t_net_exit, .test_cases = cases,
};
