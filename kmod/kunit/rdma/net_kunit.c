// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several nodes in one kernel, connected through an RDMA device: right sums for all sizes and kinds of
 * messages, and credits. Memory that peers write into is in net_rndv_kunit.c, leaving in
 * net_leave_kunit.c, aborts in net_teardown_kunit.c, hostile peers in adversary_kunit.c.
 *
 * Each test must return everything: see swc_t_comm_end() and swc_t_net_exit().
 */
#include <linux/prandom.h>

#include "net/policy.h"
#include "rdma/rdma.h"
#include "trace.h"
#include "kunit/harness.h"
#include "kunit/rdma/net_harness.h"

/* More than work queues run at a time. */
#define SLEEPERS	600

static const struct swc_t_layout three_nodes = { 3, 1, false, { 0, 1, 2 } };

/* ------------------------------------------------------------------ sums */

struct sum_case {
	const char *name;
	swc_t_planner planner;
	u32 nranks;
	struct swc_t_layout on;
};

static const struct sum_case sum_cases[] = {
	{ "2 nodes", swc_t_ring, 2, { 2, 1, false, { 0, 1 } } },
	{ "2 nodes by IPv6", swc_t_ring, 2, { 2, 1, true, { 0, 1 } } },
	{ "3 nodes", swc_t_ring, 3, { 3, 1, false, { 0, 1, 2 } } },
	{ "2 nodes of 2", swc_t_ring, 4, { 2, 1, false, { 0, 0, 1, 1 } } },
	{ "2 nodes of 2, alternating ranks", swc_t_ring, 4, { 2, 1, false, { 0, 1, 0, 1 } } },
	{ "3 nodes, 3 channels, 2 paths", swc_t_ring3, 3, { 3, 2, false, { 2, 0, 1 } } },
};

static void sum_desc(const struct sum_case *s, char *desc)
{
	strscpy(desc, s->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(sum, sum_cases, sum_desc);

/*
 * With two ranks, messages are half as long: empty; copied into the send queue entry, up to the largest
 * such; the smallest that is not; several segments; the largest without rendezvous, and the smallest with
 * it.
 */
static const u64 sum_counts[] = { 0, 1, 100, 1008, 1009, 9000, 16376, 16384, 90001 };

static void net_sums(struct kunit *test)
{
	const struct sum_case *s = test->param_value;
	u64 sent = swc_stat_read(SWC_STAT_BYTES_SENT), got = swc_stat_read(SWC_STAT_BYTES_RECEIVED);
	u64 nsent = swc_stat_read(SWC_STAT_MSGS_SENT), ngot = swc_stat_read(SWC_STAT_MSGS_RECEIVED);
	u64 direct = swc_stat_read(SWC_STAT_BYTES_DIRECT);
	struct swc_t_comm *c = swc_t_comm_on(test, s->nranks, SWC_T_NO_DEADLINE, &s->on);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sum_counts); i++) {
		swc_t_job_init(job, c, s->planner, sum_counts[i], i & 2);
		swc_t_job_run(job, i, i & 1);
	}
	KUNIT_EXPECT_GT(test, swc_stat_read(SWC_STAT_BYTES_SENT), sent);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_BYTES_SENT) - sent,
			swc_stat_read(SWC_STAT_BYTES_RECEIVED) - got);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_MSGS_SENT) - nsent,
			swc_stat_read(SWC_STAT_MSGS_RECEIVED) - ngot);
	KUNIT_EXPECT_GT(test, swc_stat_read(SWC_STAT_BYTES_DIRECT), direct);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ time slices */

/* Steps that one worker has run in a row: no other has begun, and the thread is the same. */
struct runs {
	struct task_struct *thread;
	u64 events, kthreads;
	bool event;
	u32 steps, most;
	u32 nevents;
};

/* Takes longer than the slice of an event, and less than that of a work item. */
static void slow_step(void *data, const struct swc_req *req, u32 channel, u32 step, u32 kind)
{
	u64 events = swc_stat_read(SWC_STAT_WORKER_EVENT), kthreads = swc_stat_read(SWC_STAT_WORKER_KTHREAD);
	struct runs *r = data;

	if (r->thread != current || r->events != events || r->kthreads != kthreads) {
		r->event = r->events != events && r->kthreads == kthreads;
		r->nevents += r->event;
		r->steps = 0;
		r->thread = current;
		r->events = events;
		r->kthreads = kthreads;
	}
	r->steps++;
	if (r->event)
		r->most = max(r->most, r->steps);
	swc_t_slice_pass(500 * NSEC_PER_USEC);
}

/*
 * A completion handler gives way after its first long step: other users wait for the same kernel threads. The
 * steps make the peer's next message arrive before they are over, so the handler would have more to do.
 */
static void net_event_slice(struct kunit *test)
{
	static const struct swc_t_layout on = { 2, 1, false, { 0, 0, 1, 1 } };
	struct swc_t_comm *c = swc_t_comm_on(test, 4, SWC_T_NO_DEADLINE, &on);
	struct runs *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	KUNIT_ASSERT_EQ(test, register_trace_swc_step(slow_step, r), 0);
	for (i = 0; i < 4; i++) {
		swc_t_job_init(job, c, swc_t_ring, 1000, false);
		swc_t_job_run(job, i, false);
	}
	unregister_trace_swc_step(slow_step, r);
	tracepoint_synchronize_unregister();
	KUNIT_EXPECT_GT(test, r->nevents, 0u);
	KUNIT_EXPECT_EQ(test, r->most, 1u);
	swc_t_comm_end(c);
}

/* How often the step of rank 0 begins or goes on. Each time takes longer than any slice. */
static void slow_sends(void *data, const struct swc_req *req, u32 channel, u32 step, u32 kind)
{
	*(u32 *)data += !req->member->rank;
	swc_t_slice_pass(NSEC_PER_SEC);
}

/* A worker gives way between the sends of a step, which another one continues. */
static void net_send_slice(struct kunit *test)
{
	static const struct swc_t_layout on = { 2, 1, false, { 0, 1 } };
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &on);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_region *recv;
	u32 runs = 0;
	u64 i;

	swc_t_job_init(job, c, swc_t_messages, 8 * SWC_T_MESSAGES, false);
	swc_t_job_fill(job);
	KUNIT_ASSERT_EQ(test, register_trace_swc_step(slow_sends, &runs), 0);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, false), 0);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, false), 0);
	swc_t_job_expect(job, 0);
	unregister_trace_swc_step(slow_sends, &runs);
	tracepoint_synchronize_unregister();
	/* After 16 and 32 of 40. */
	KUNIT_EXPECT_GE(test, runs, 3u);
	recv = swc_t_region(c, 1, job->desc[1].recv_region);
	for (i = 0; i < job->count; i++)
		KUNIT_EXPECT_EQ(test, *(u64 *)swc_t_at(recv, i * 8), swc_t_job_value(0, i));
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ credits */

/* Never more than the peer has receive buffers, at any step. */
static void check_credits(void *data, const struct swc_req *req, u32 channel, u32 step, u32 kind)
{
	struct swc_net *net = req->op->comm->net;
	struct swc_t_comm *c = data;
	struct swc_conn *conn;
	unsigned long key;

	xa_for_each(&net->conns, key, conn)
		if (READ_ONCE(conn->state) == SWC_CONN_LIVE &&
		    READ_ONCE(conn->credits) > READ_ONCE(conn->peer_rx_bufs))
			KUNIT_FAIL(c->test, "rank %u has %u credits for %u receive buffers of rank %u",
				   conn->me, conn->credits, conn->peer_rx_bufs, conn->peer);
}

/* Messages of many more segments than there are receive buffers, which are few and small. */
static void net_credits(struct kunit *test)
{
	u64 stalls = swc_stat_read(SWC_STAT_CREDIT_STALLS);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_comm *c;
	u32 i;

	swc_rdma_rx_bufs = SWC_WIRE_MIN_RX_BUFS;
	swc_rdma_rx_buf_kib = SWC_WIRE_MIN_RX_BUF >> 10;
	c = swc_t_comm_on(test, 3, SWC_T_NO_DEADLINE, &three_nodes);
	KUNIT_ASSERT_EQ(test, register_trace_swc_step(check_credits, c), 0);
	for (i = 0; i < 6; i++) {
		swc_t_job_init(job, c, i & 1 ? swc_t_ring3 : swc_t_ring, 20000 + 7000 * i, i & 2);
		swc_t_job_run(job, i, true);
	}
	unregister_trace_swc_step(check_credits, c);
	tracepoint_synchronize_unregister();
	KUNIT_EXPECT_GT(test, swc_stat_read(SWC_STAT_CREDIT_STALLS), stalls);
	swc_t_expect_credits(c);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ sizes of receive buffers */

/* Does every rank know of all peers that their receive buffers are of this size? */
static bool all_have(struct swc_t_comm *c, u32 bytes)
{
	struct swc_conn *conn;
	unsigned long key;
	bool all = true;
	u32 r;

	for (r = 0; r < c->nranks; r++)
		xa_for_each(&swc_t_net(c, r)->conns, key, conn)
			all &= READ_ONCE(conn->peer_rx_buf_bytes) == bytes;
	return all;
}

/* Receive buffers stay small however many messages fit them, and all become large when messages fill them. */
static void net_grow(struct kunit *test)
{
	struct swc_t_job *small = swc_t_job_new(test), *large = swc_t_job_new(test);
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	u32 i;

	swc_t_job_init(small, c, swc_t_ring, 900, false);
	for (i = 0; i < 40; i++)
		swc_t_job_run(small, i, true);
	KUNIT_EXPECT_TRUE(test, all_have(c, SWC_WIRE_MIN_RX_BUF));
	swc_t_job_init(large, c, swc_t_ring, 10000, false);
	for (i = 0; i < 40 && !all_have(c, swc_rdma_rx_buf_kib << 10); i++)
		swc_t_job_run(large, i, true);
	KUNIT_EXPECT_TRUE(test, all_have(c, swc_rdma_rx_buf_kib << 10));
	for (i = 0; i < 4; i++) {
		swc_t_job_run(large, i, true);
		swc_t_job_run(small, i, true);
	}
	swc_t_expect_credits(c);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ many operations */

#define MANY	24

static u64 many_count(u32 i)
{
	return i % 8 == 7 ? 40000 : i % 3 == 2 ? 3000 : 100 * i;
}

/*
 * Without the half of the credits that is reserved for the oldest operation, this would deadlock: rank 0
 * submits all operations before rank 1, then the other way round, then in random order.
 */
static void net_in_flight(struct kunit *test)
{
	struct swc_t_job *job = kunit_kcalloc(test, MANY, sizeof(*job), GFP_KERNEL);
	u32 i, r, round, at[SWC_T_RANKS];
	struct swc_t_comm *c;
	struct rnd_state rnd;

	KUNIT_ASSERT_NOT_NULL(test, job);
	prandom_seed_state(&rnd, 20250703);
	swc_rdma_rx_bufs = SWC_WIRE_MIN_RX_BUFS;
	swc_rdma_rx_buf_kib = SWC_WIRE_MIN_RX_BUF >> 10;
	c = swc_t_comm_on(test, 3, SWC_T_NO_DEADLINE, &three_nodes);
	for (i = 0; i < MANY; i++)
		swc_t_job_init(&job[i], c, swc_t_ring, many_count(i), i & 1);
	for (round = 0; round < 4; round++) {
		u32 left = 3 * MANY;

		memset(at, 0, sizeof(at));
		for (i = 0; i < MANY; i++)
			swc_t_job_fill(&job[i]);
		while (left) {
			if (round == 0)
				r = (3 * MANY - left) / MANY;
			else if (round == 1)
				r = (left - 1) / MANY;
			else
				r = prandom_u32_state(&rnd) % 3;
			if (at[r] == MANY)
				continue;
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(&job[at[r]++], r, false), 0);
			left--;
		}
		for (i = 0; i < MANY; i++) {
			swc_t_job_expect(&job[i], 0);
			swc_t_job_check_sum(&job[i]);
		}
	}
	swc_t_expect_credits(c);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ mismatches */

static void net_mismatch(struct kunit *test)
{
	struct swc_t_comm *c;
	struct swc_t_job *job = swc_t_job_new(test);
	u32 how, r;

	for (how = 0; how < 4; how++) {
		c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
		swc_t_job_init(job, c, swc_t_ring, 300, false);
		swc_t_job_run(job, how, true);
		if (how == 0)
			job->desc[1].count--;
		else if (how == 1)
			job->desc[1].redop = SWC_MAX;
		else if (how == 2)
			job->desc[1].dtype = SWC_I64;
		else
			job->desc[1].plan = swc_t_load(c, 1, swc_t_ring3(test, 2, 1));
		for (r = 0; r < 2; r++)
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
		swc_t_job_expect(job, -EPROTO);
		swc_t_comm_end(c);
	}
}

/* Messages by rendezvous only: no segment shows the mismatch. */
static void net_mismatch_rndv(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	u32 how, r;

	for (how = 0; how < 4; how++) {
		struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);

		swc_t_job_init(job, c, swc_t_send_from_1, 40000, false);
		job->desc[how & 1].count = how & 2 ? 20000 : 39999;
		for (r = 0; r < 2; r++)
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
		swc_t_job_expect(job, -EPROTO);
		KUNIT_EXPECT_TRUE_MSG(test, strstr(swc_t_rank_comm(c, 1)->text, "called"), "%s",
				      swc_t_rank_comm(c, 1)->text);
		swc_t_comm_end(c);
	}
}

static void net_not_stored(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 r;

	swc_t_job_init(job, c, swc_t_send_from_0, 20000, false);
	for (r = 0; r < 2; r++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
	swc_t_job_expect(job, 0);
	swc_t_expect_sent(job, 0);
	/* The mark makes no difference to small messages. */
	swc_t_job_init(job, c, swc_t_send_unmarked, 1000, false);
	for (r = 0; r < 2; r++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
	swc_t_job_expect(job, 0);
	swc_t_expect_sent(job, 0);

	swc_t_job_init(job, c, swc_t_send_unmarked, 20000, false);
	for (r = 0; r < 2; r++) {
		job->desc[r].timeout_ms = 2000;
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
	}
	KUNIT_EXPECT_LT(test, swc_t_result(&job->done[1]), 0);
	KUNIT_EXPECT_NE(test, swc_t_result(&job->done[0]), -ETIME);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ several messages in a segment */

/* Small messages of a step to one peer go together as far as they and their sizes fit, larger ones do not. */
static void net_together(struct kunit *test)
{
	static const struct {
		u64 count;
		u32 sends;
	} cases[] = {
		{ 4, 1 }, { 300, 1 }, { SWC_T_PARTS * 248, 2 }, { SWC_T_PARTS * 504, SWC_T_PARTS },
	};
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	u64 nsent = swc_stat_read(SWC_STAT_MSGS_SENT), ngot = swc_stat_read(SWC_STAT_MSGS_RECEIVED);
	struct swc_conn *conn;
	u32 i, r, before;

	conn = swc_net_find_conn(swc_t_net(c, 0), 0, 1, 0, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(conn));
	for (i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		swc_t_job_init(job, c, swc_t_send_parts, cases[i / 2].count, false);
		before = conn->nsent;
		for (r = 0; r < 2; r++)
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r ^ (i & 1), true), 0);
		swc_t_job_expect(job, 0);
		swc_t_expect_sent(job, 0);
		/* The first one connects. Nothing else is sent by this rank unless it waits for long. */
		if (i)
			KUNIT_EXPECT_EQ(test, conn->nsent - before, cases[i / 2].sends);
	}
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_MSGS_SENT) - nsent, i * SWC_T_PARTS);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_MSGS_RECEIVED) - ngot, i * SWC_T_PARTS);
	swc_conn_put(conn);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ memory that cannot be mapped */

/* For a while: operations take longer, by segments or by rendezvous. */
static void net_map_refused(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 3, SWC_T_NO_DEADLINE, &three_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 i;

	for (i = 0; i < 4; i++) {
		swc_t_job_init(job, c, swc_t_ring, i & 1 ? 90000 : 20000, i & 2);
		swc_t_refuse_maps(1500);
		swc_t_job_run(job, i, true);
		KUNIT_EXPECT_GT(test, swc_t_maps_refused(), 0);
	}
	swc_t_refuse_maps(0);
	swc_t_expect_credits(c);
	swc_t_comm_end(c);
}

/* For ever: all ranks get this reason. */
static void net_map_exhausted(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 i, n = 0;

	swc_t_job_init(job, c, swc_t_ring, 90000, false);
	swc_t_job_run(job, 0, true);
	swc_t_refuse_maps(-1);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, i, true), 0);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[i]), -EIO);
	/* One of them mostly by the ABORT of the other. */
	for (i = 0; i < 2; i++)
		n += !!strstr(swc_t_rank_comm(c, i)->text, "no memory could be mapped");
	KUNIT_EXPECT_EQ(test, n, 2);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ memory that is being sent */

/*
 * Rank 1 receives block 0 of rank 0 only after rank 0 has sent block 1 by way of rank 2. It does that in
 * a step in which it receives block 0 back: the step must send before it waits until block 0 has been
 * sent.
 */
static struct swc_plan_writer *detour(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, 2);

	swc_plan_write_channel(p);
	swc_plan_write_step(p, SWC_STEP_NET);
	if (rank == 0)
		swc_t_send_stored(p, 1, 0, 1, SWC_BUF_SEND);
	else
		swc_t_recv(p, rank == 1 ? 2 : 0, 1, 1, SWC_BUF_RECV, 0, 0);
	swc_plan_write_step(p, SWC_STEP_NET);
	if (rank == 0) {
		swc_t_send_stored(p, 2, 1, 1, SWC_BUF_SEND);
		swc_t_recv(p, 1, 0, 1, SWC_BUF_RECV, 0, 0);
	} else if (rank == 1) {
		swc_t_recv(p, 0, 0, 1, SWC_BUF_RECV, 0, 0);
	} else {
		swc_t_send_stored(p, 1, 1, 1, SWC_BUF_RECV);
	}
	if (rank == 1) {
		swc_plan_write_step(p, SWC_STEP_NET);
		swc_t_send_stored(p, 0, 0, 1, SWC_BUF_RECV);
	}
	return p;
}

static void net_send_first(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 3, 10000, &three_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 r;

	swc_t_job_init(job, c, detour, 32768, true);
	for (r = 0; r < 3; r++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
	swc_t_job_expect(job, 0);
	swc_t_expect_sent(job, 0);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ transports and states */

static void net_transport(struct kunit *test)
{
	KUNIT_EXPECT_PTR_EQ(test, swc_transport_get(SWC_TRANSPORT_RDMA), &swc_rdma_transport);
	KUNIT_EXPECT_NULL(test, swc_transport_get(SWC_TRANSPORT_NR));
}

/* A connection in state @from is to change to @to, as if it were in state @expected. */
static bool change(struct swc_conn *conn, enum swc_conn_state from, enum swc_conn_state expected,
		   enum swc_conn_state to)
{
	bool changed;

	spin_lock(&conn->lock);
	conn->state = from;
	changed = swc_conn_set_state(conn, expected, to);
	spin_unlock(&conn->lock);
	return changed;
}

static void net_states(struct kunit *test)
{
	struct swc_conn *conn = kunit_kzalloc(test, sizeof(*conn), GFP_KERNEL);
	enum swc_conn_state from, to;

	KUNIT_ASSERT_NOT_NULL(test, conn);
	spin_lock_init(&conn->lock);
	for (from = SWC_CONN_IDLE; from <= SWC_CONN_CLOSED; from++) {
		for (to = SWC_CONN_IDLE; to <= SWC_CONN_CLOSED; to++) {
			bool changed = change(conn, from, from, to);

			KUNIT_EXPECT_EQ(test, conn->state, changed ? to : from);
			/* A state is not entered twice, and the last two are not left for others. */
			if (to == from || from == SWC_CONN_CLOSED ||
			    (from == SWC_CONN_CLOSING && to != SWC_CONN_CLOSED))
				KUNIT_EXPECT_FALSE(test, changed);
			if (to == SWC_CONN_LIVE)
				KUNIT_EXPECT_EQ(test, changed, from == SWC_CONN_CONNECTING);
			if (to == SWC_CONN_CLOSED)
				KUNIT_EXPECT_EQ(test, changed, from == SWC_CONN_CLOSING);
			if (to == SWC_CONN_CLOSING)
				KUNIT_EXPECT_EQ(test, changed, from < SWC_CONN_CLOSING);
			KUNIT_EXPECT_EQ(test, test_and_clear_bit(SWC_CONN_F_PROVEN, &conn->flags),
					changed && to == SWC_CONN_LIVE);
			/* Not if it is in another state than the caller expects. */
			if (from != SWC_CONN_CONNECTING)
				KUNIT_EXPECT_FALSE(test, change(conn, from, SWC_CONN_CONNECTING, to));
		}
	}
}

/* Each wait is longer than the one before, to a limit; none goes beyond the deadline. */
static void net_backoff(struct kunit *test)
{
	unsigned long left = msecs_to_jiffies(30000), wait, before = 0, sum = 0;
	u32 i;

	for (i = 0; sum < left; i++) {
		wait = swc_conn_backoff(i, left - sum);
		KUNIT_ASSERT_GT(test, wait, 0);
		if (sum + wait < left)
			KUNIT_EXPECT_GE(test, wait, before);
		/* A peer that comes after a while is not kept waiting for as long again. */
		if (i)
			KUNIT_EXPECT_LE(test, wait, sum + msecs_to_jiffies(50));
		before = wait;
		sum += wait;
	}
	KUNIT_EXPECT_EQ(test, sum, left);
	/* 600 with a constant wait of 50 ms. */
	KUNIT_EXPECT_LT(test, i, 30);
	KUNIT_EXPECT_EQ(test, swc_conn_backoff(U32_MAX, left), msecs_to_jiffies(1600));
	KUNIT_EXPECT_EQ(test, swc_conn_backoff(0, 1), 1);
}

/* ------------------------------------------------------------------ users */

struct sleeper {
	struct work_struct work;
	struct completion *end;
};

static void sleep_fn(struct work_struct *work)
{
	wait_for_completion(container_of(work, struct sleeper, work)->end);
}

/* Connections are made, used, aborted and closed while the queues of another user are full. */
static void net_users(struct kunit *test)
{
	struct swc_user *other = swc_user_get(KUIDT_INIT(4711));
	struct sleeper *s = kunit_kcalloc(test, 2 * SLEEPERS, sizeof(*s), GFP_KERNEL);
	struct swc_t_job *job = swc_t_job_new(test);
	DECLARE_COMPLETION_ONSTACK(end);
	struct swc_t_comm *c;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_ASSERT_NOT_NULL(test, s);
	for (i = 0; i < 2 * SLEEPERS; i++) {
		s[i].end = &end;
		INIT_WORK(&s[i].work, sleep_fn);
		queue_work(other->wq[i % 2 ? SWC_QUEUE_NET : SWC_QUEUE_ABORT], &s[i].work);
	}
	c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	swc_t_job_init(job, c, swc_t_ring, 40000, false);
	swc_t_job_run(job, 0, true);
	swc_comm_abort(swc_t_rank_comm(c, 0), -ECANCELED, 0, 1, "enough");
	swc_t_comm_end(c);
	complete_all(&end);
	swc_user_put(other);
}

/*
 * At most four messages return all credits, as core/wire.h counts receives; and credits that wait for such a
 * message are not those that the smallest share of the sender needs.
 */
static void net_credit_messages(struct kunit *test)
{
	u32 n;

	for (n = SWC_WIRE_MIN_RX_BUFS; n <= SWC_WIRE_MAX_RX_BUFS; n++) {
		u32 each = swc_policy_return(n);

		KUNIT_EXPECT_GE_MSG(test, each, 1u, "%u buffers", n);
		KUNIT_EXPECT_LE_MSG(test, n / each, 4u, "%u buffers", n);
		KUNIT_EXPECT_GE_MSG(test, n - (each - 1), 3 * n / 4 + 1, "%u buffers", n);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(net_transport),
	KUNIT_CASE(net_credit_messages),
	KUNIT_CASE(net_users),
	KUNIT_CASE(net_states),
	KUNIT_CASE(net_backoff),
	KUNIT_CASE_PARAM(net_sums, sum_gen_params),
	KUNIT_CASE_SLOW(net_event_slice),
	KUNIT_CASE(net_send_slice),
	KUNIT_CASE_SLOW(net_credits),
	KUNIT_CASE_SLOW(net_grow),
	KUNIT_CASE_SLOW(net_in_flight),
	KUNIT_CASE_SLOW(net_mismatch),
	KUNIT_CASE_SLOW(net_mismatch_rndv),
	KUNIT_CASE_SLOW(net_not_stored),
	KUNIT_CASE(net_together),
	KUNIT_CASE_SLOW(net_send_first),
	KUNIT_CASE_SLOW(net_map_refused),
	KUNIT_CASE_SLOW(net_map_exhausted),
	{}
};

struct kunit_suite swc_net_suite = {
	.name = "swc_net", .init = swc_t_net_init, .exit = swc_t_net_exit, .test_cases = cases,
};

/* ------------------------------------------------------------------ by TCP */

/* Those that depend on nothing of RDMA. */
static struct kunit_case tcp_cases[] = {
	KUNIT_CASE(net_users),
	KUNIT_CASE_PARAM(net_sums, sum_gen_params),
	KUNIT_CASE_SLOW(net_in_flight),
	KUNIT_CASE_SLOW(net_mismatch),
	KUNIT_CASE_SLOW(net_mismatch_rndv),
	KUNIT_CASE_SLOW(net_not_stored),
	KUNIT_CASE_SLOW(net_send_first),
	{}
};

struct kunit_suite swc_net_tcp_suite = {
	.name = "swc_net_tcp", .init = swc_t_tcp_init, .exit = swc_t_tcp_exit, .test_cases = tcp_cases,
};
