// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of communicators of several nodes: abort, death of a process, and removal of the device,
 * at any moment. All ranks are notified, with the right culprit, and nothing leaks.
 */
#include <linux/delay.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "rdma/rdma.h"
#include "trace.h"
#include "kunit/harness.h"
#include "kunit/rdma/net_harness.h"

static const struct swc_t_layout three_nodes = { 3, 1, false, { 0, 1, 2 } };
static const struct swc_t_layout one_and_two = { 2, 1, false, { 0, 1, 1 } };

/* ------------------------------------------------------------------ aborts and deaths */

struct strike {
	struct swc_t_comm *c;
	u32 rank;
	bool die;
	int left;
};

static void strike_now(const struct strike *s)
{
	if (s->die)
		swc_comm_ctx_died(&s->c->rank[s->rank].ctx, "was killed");
	else
		swc_comm_abort(swc_t_rank_comm(s->c, s->rank), -ESHUTDOWN, s->rank, 0, "struck");
}

static void strike(struct strike *s)
{
	if (!--s->left)
		strike_now(s);
}

static void on_step(void *data, const struct swc_req *req, u32 channel, u32 step, u32 kind)
{
	strike(data);
}

static void on_submit(void *data, const struct swc_op *op, u32 rank)
{
	strike(data);
}

static void on_complete(void *data, const struct swc_req *req)
{
	strike(data);
}

static int watch(struct strike *s)
{
	return register_trace_swc_step(on_step, s) ?: register_trace_swc_match(on_submit, s) ?:
	       register_trace_swc_complete(on_complete, s);
}

static void unwatch(struct strike *s)
{
	unregister_trace_swc_step(on_step, s);
	unregister_trace_swc_match(on_submit, s);
	unregister_trace_swc_complete(on_complete, s);
	tracepoint_synchronize_unregister();
}

/*
 * The request of every rank that submitted one completes once, with success or with the error. It may
 * differ between nodes: the last message may have arrived. Returns how many failed.
 */
static u32 expect_struck(struct swc_t_job *job, const bool *submitted, const struct strike *s)
{
	struct kunit *test = job->c->test;
	int error = s->die ? -ECONNRESET : -ESHUTDOWN;
	u32 r, failed = 0;

	for (r = 0; r < job->c->nranks; r++) {
		int ret;

		if (!submitted[r])
			continue;
		ret = swc_t_result(&job->done[r]);
		KUNIT_EXPECT_EQ(test, atomic_read(&job->done[r].calls), 1);
		if (!ret)
			continue;
		failed++;
		KUNIT_EXPECT_EQ_MSG(test, ret, error, "rank %u: %s", r, swc_t_rank_comm(job->c, r)->text);
		KUNIT_EXPECT_EQ_MSG(test, job->done[r].culprit, (int)s->rank, "rank %u: %s", r,
				    swc_t_rank_comm(job->c, r)->text);
	}
	return failed;
}

/*
 * With live connections, strike @rank at the first event of an operation, then at a later one, and so on,
 * until the operation completes before the strike.
 */
static void strike_everywhere(struct kunit *test, const struct swc_t_layout *on, u32 nranks, u64 count,
			      u32 rank, bool die, u32 stride)
{
	struct swc_t_job *job = swc_t_job_new(test);
	struct strike s = { .rank = rank, .die = die };
	u32 r, moment, failures = 0;

	for (moment = 1; moment < 300; moment += stride) {
		struct swc_t_comm *c = swc_t_comm_on(test, nranks, 9000, on);
		bool submitted[SWC_T_RANKS];

		swc_t_job_init(job, c, swc_t_ring, count, false);
		swc_t_job_run(job, moment, true);
		swc_t_job_fill(job);
		s.c = c;
		s.left = moment;
		KUNIT_ASSERT_EQ(test, watch(&s), 0);
		for (r = 0; r < nranks; r++) {
			int ret = swc_t_job_submit(job, r, moment & 1);

			submitted[r] = !ret;
			if (ret)
				KUNIT_EXPECT_EQ(test, ret, -ECONNABORTED);
		}
		failures += expect_struck(job, submitted, &s);
		unwatch(&s);
		swc_t_comm_end(c);
		if (s.left > 0)
			break;
	}
	KUNIT_EXPECT_LT(test, moment, 300u);
	KUNIT_EXPECT_GT(test, failures, nranks);
}

static void net_abort_lower(struct kunit *test)
{
	strike_everywhere(test, &swc_t_two_nodes, 2, 300, 0, false, 1);
}

static void net_abort_higher(struct kunit *test)
{
	strike_everywhere(test, &swc_t_two_nodes, 2, 40000, 1, false, 1);
}

/* Also while memory is offered for later steps. */
static void net_abort_middle(struct kunit *test)
{
	u64 early = swc_stat_read(SWC_STAT_RTR_EARLY);

	strike_everywhere(test, &three_nodes, 3, 40000, 1, false, 3);
	KUNIT_EXPECT_GT(test, swc_stat_read(SWC_STAT_RTR_EARLY), early);
}

static void net_die_lower(struct kunit *test)
{
	strike_everywhere(test, &swc_t_two_nodes, 2, 40000, 0, true, 2);
}

static void net_die_higher(struct kunit *test)
{
	strike_everywhere(test, &swc_t_two_nodes, 2, 300, 1, true, 2);
}

/* How long a whole operation of two ranks takes. */
static u64 job_ns(struct swc_t_job *job)
{
	u64 start = ktime_get_ns();

	KUNIT_EXPECT_EQ(job->c->test, swc_t_job_submit(job, 0, false), 0);
	KUNIT_EXPECT_EQ(job->c->test, swc_t_job_submit(job, 1, false), 0);
	swc_t_job_expect(job, 0);
	return ktime_get_ns() - start;
}

/*
 * Not at an event of the module, but at sixteen moments of the time that an operation takes on this
 * machine, with and without connecting. On a busy machine a strike may come after the operation.
 */
static void net_abort_any_time(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	static const bool submitted[] = { true, true };
	u64 took[2] = { U64_MAX, U64_MAX };
	u32 i, failures = 0;

	for (i = 0; i < 64 && (i < 16 || failures <= 2); i++) {
		struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
		struct strike s = { .c = c, .rank = i & 1, .die = i & 2 };
		bool live = !(i & 4);
		unsigned long us;

		swc_t_job_init(job, c, swc_t_ring, 100000, false);
		if (live) {
			took[0] = min(took[0], job_ns(job));
			took[1] = min(took[1], job_ns(job));
			swc_t_job_check_sum(job);
		}
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, false), 0);
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, false), 0);
		/* Each sixteenth once, in mixed order. */
		us = div_u64(took[live], 16 * NSEC_PER_USEC) * (i * 7 % 16);
		usleep_range(us, us + 100);
		strike_now(&s);
		if (live)
			failures += expect_struck(job, submitted, &s);
		swc_t_comm_end(c);
	}
	KUNIT_EXPECT_GT(test, failures, 2u);
}

/* No operation is in flight: the others are notified all the same. */
static void net_die_idle(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 i;

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	swc_comm_ctx_died(&c->rank[1].ctx, "was killed");
	for (i = 0; i < 100 && READ_ONCE(swc_t_rank_comm(c, 0)->status) != SWC_COMM_ABORTED; i++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, swc_t_rank_comm(c, 0)->error, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, swc_t_rank_comm(c, 0)->culprit, 1);
	KUNIT_EXPECT_TRUE_MSG(test, strstr(swc_t_rank_comm(c, 0)->text, "was killed"), "%s",
			      swc_t_rank_comm(c, 0)->text);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), -ECONNABORTED);
	swc_t_comm_end(c);
}

static void await_abort(const struct swc_comm *comm)
{
	u32 i;

	for (i = 0; i < 100 && READ_ONCE(comm->status) != SWC_COMM_ABORTED; i++)
		msleep(20);
}

/* A buffer of rank 0 is refused: rank 1, which comes to that operation later, gets the error of a refusal. */
static void net_refused_late(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	job->desc[0].send_region = 999;
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, false), 0);
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[0]), -ENOENT);
	await_abort(swc_t_rank_comm(c, 1));
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), -ECANCELED);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), -ECONNABORTED);
	swc_t_comm_end(c);
}

/* Likewise, and rank 1, which has used no connection yet, finds none. */
static void net_refused_unconnected(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_comm *comm = swc_t_rank_comm(c, 1);
	u32 i;

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	job->desc[0].send_region = 999;
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, false), 0);
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[0]), -ENOENT);
	await_abort(comm);
	/* Where the peer closes before it acknowledges the last message, the device takes 8 s to say so. */
	for (i = 0; i < 1000 && !xa_empty(&comm->net->conns); i++)
		msleep(20);
	KUNIT_EXPECT_TRUE(test, xa_empty(&comm->net->conns));
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), -ECANCELED);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), -ECONNABORTED);
	swc_t_comm_end(c);
}

/* Likewise, but rank 1 is still in the operation before, which rank 0 may have ended with success. */
static void net_refused_behind(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, false), 0);
	swc_comm_abort(swc_t_rank_comm(c, 0), -ECANCELED, 0, 2, "refused");
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[1]), -ECONNABORTED);
	KUNIT_EXPECT_EQ(test, swc_t_rank_comm(c, 1)->error, -ECANCELED);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), -ECANCELED);
	swc_t_comm_end(c);
}

/* One rank does not arrive: the others fail, and name it. @timeout_ms: of each rank, 0: the communicator's */
static void expect_missing(struct kunit *test, const struct swc_t_layout *layout, u32 missing,
			   const u32 *timeout_ms)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 3, 20000, layout);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 r;

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	for (r = 0; r < 3; r++) {
		job->desc[r].timeout_ms = timeout_ms[r];
		if (r != missing)
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
	}
	for (r = 0; r < 3; r++) {
		if (r == missing)
			continue;
		KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[r]), -ETIMEDOUT);
		KUNIT_EXPECT_EQ(test, swc_t_rank_comm(c, r)->culprit, missing);
	}
	swc_t_comm_end(c);
}

/* The other rank waits for rank 0, and would name it if its deadline came first. */
static void net_missing(struct kunit *test)
{
	expect_missing(test, &three_nodes, 2, (u32 []){ 1500, 0, 0 });
}

/*
 * A node whose deadline passes first, and which waits for a rank that has arrived, leaves it to that rank's
 * node to name the late one.
 */
static void net_missing_there(struct kunit *test)
{
	expect_missing(test, &one_and_two, 1, (u32 []){ 1500, 0, 2500 });
}

/* ------------------------------------------------------------------ connecting */

/*
 * The ranks of the other node have left before there was a connection: a rank that comes later need not
 * wait.
 */
static void net_connect_late(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	u32 aborted;

	for (aborted = 0; aborted < 2; aborted++) {
		struct swc_t_comm *c = swc_t_comm_on(test, 3, SWC_T_NO_DEADLINE, &one_and_two);
		int error = aborted ? -ENODATA : -ECONNRESET, ret;
		u64 start = ktime_get_ns();

		if (aborted)
			swc_comm_abort(swc_t_rank_comm(c, 1), -ENODATA, 2, 0, "rank 2 has no data");
		KUNIT_EXPECT_EQ(test, swc_t_leave(c, 2), 0);
		KUNIT_EXPECT_EQ(test, swc_t_leave(c, 1), 0);
		/* Not sooner: rank 0 connects when it has a plan. */
		swc_t_job_init_for(job, c, 0, swc_t_ring, 300);
		ret = swc_t_job_submit(job, 0, true);
		/* Or it is notified while it submits. */
		if (ret)
			KUNIT_EXPECT_EQ(test, ret, -ECONNABORTED);
		else
			KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[0]), error);
		KUNIT_EXPECT_EQ(test, swc_t_rank_comm(c, 0)->error, error);
		KUNIT_EXPECT_LT(test, ktime_get_ns() - start, 5 * NSEC_PER_SEC);
		if (aborted)
			KUNIT_EXPECT_EQ_MSG(test, swc_t_rank_comm(c, 0)->culprit, 2, "%s",
					    swc_t_rank_comm(c, 0)->text);
		else
			KUNIT_EXPECT_GE(test, swc_t_rank_comm(c, 0)->culprit, 1);
		KUNIT_EXPECT_TRUE_MSG(test, strstr(swc_t_rank_comm(c, 0)->text, "ended there"), "%s",
				      swc_t_rank_comm(c, 0)->text);
		swc_t_comm_end(c);
	}
}

/* The ranks of the other node submit. Not rank 0, which would connect, and whose communicator has ended. */
static void expect_ended(struct kunit *test, struct swc_t_comm *c, int error)
{
	struct swc_comm *comm = swc_t_rank_comm(c, 1);
	struct swc_t_job *job[3];
	u32 r;

	for (r = 1; r < 3; r++) {
		job[r] = swc_t_job_new(test);
		swc_t_job_init_for(job[r], c, r, swc_t_ring, 300);
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job[r], r, true), 0);
	}
	for (r = 1; r < 3; r++)
		KUNIT_EXPECT_EQ(test, swc_t_result(&job[r]->done[r]), error);
	KUNIT_EXPECT_EQ_MSG(test, comm->culprit, 0, "%s", comm->text);
	KUNIT_EXPECT_TRUE_MSG(test, strstr(comm->text, "ended there"), "%s", comm->text);
	swc_t_comm_end(c);
}

/*
 * The lower rank's communicator was aborted before it had a reason to connect: the higher one, which waits
 * for that, finds out.
 */
static void net_connect_never(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 3, SWC_T_NO_DEADLINE, &one_and_two);

	swc_comm_abort(swc_t_rank_comm(c, 0), -ENODATA, 0, 0, "rank 0 has no data");
	expect_ended(test, c, -ENODATA);
}

/*
 * The lower rank has left in order before it had a reason to connect: the higher ones, whose messages wait
 * for that, find out long before their deadline.
 */
static void net_connect_left(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 3, SWC_T_NO_DEADLINE, &one_and_two);

	KUNIT_EXPECT_EQ(test, swc_t_leave(c, 0), 0);
	expect_ended(test, c, -ECONNRESET);
}

/*
 * Connections that are being made during an abort are completed, to notify the peer. On a busy machine the
 * operation may be over before the abort: then that was not tested.
 */
static void net_abort_connecting(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	bool over = true;
	int result[2];
	u32 i;

	for (i = 0; i < 20 && over; i++) {
		struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);

		swc_t_job_init(job, c, swc_t_ring, 300, false);
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, false), 0);
		swc_comm_abort(swc_t_rank_comm(c, 0), -ENODATA, 0, 0, "rank 0 has no data");
		result[1] = swc_t_result(&job->done[1]);
		result[0] = swc_t_result(&job->done[0]);
		over = !result[0] || !result[1];
		if (!over) {
			KUNIT_EXPECT_EQ(test, result[1], -ENODATA);
			KUNIT_EXPECT_EQ_MSG(test, job->done[1].culprit, 0, "%s",
					    swc_t_rank_comm(c, 1)->text);
			KUNIT_EXPECT_EQ(test, result[0], -ENODATA);
		}
		swc_t_comm_end(c);
	}
	KUNIT_EXPECT_FALSE(test, over);
}

/* A message that the device may still read, for net_abort_closing(). */
static struct {
	const struct swc_net_ops *ops;
	struct swc_send out;
	struct swc_conn *conn;
	u32 returned;
	bool in_use;
} held;

/* Not once its queue pair has failed and is drained. Process context; may sleep. */
static bool may_read(const struct swc_rdma_conn *conn)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	return conn->id &&
	       (ib_query_qp(conn->id->qp, &attr, IB_QP_STATE, &init) || attr.qp_state != IB_QPS_ERR);
}

static void note_held(struct swc_send *out, int error, bool nested)
{
	if (out != &held.out) {
		held.ops->send_done(out, error, nested);
		return;
	}
	held.returned++;
	held.in_use |= may_read(swc_rdma_conn(held.conn));
}

/*
 * A connection has failed and is about to be taken apart when its communicator is aborted: messages that
 * the device may still read are returned once it does not, and once.
 */
static void net_abort_closing(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_net *net = swc_t_net(c, 0);
	struct swc_net_ops ops = *swc_net_ops;

	held.ops = swc_net_ops;
	held.returned = 0;
	held.in_use = false;
	ops.send_done = note_held;
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	held.conn = swc_net_find_conn(net, 0, 1, 0, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(held.conn));
	KUNIT_EXPECT_EQ(test, held.conn->state, SWC_CONN_LIVE);
	WRITE_ONCE(swc_net_ops, &ops);
	spin_lock(&held.conn->lock);
	swc_conn_set_state(held.conn, SWC_CONN_LIVE, SWC_CONN_CLOSING);
	list_add_tail(&held.out.node, &held.conn->inflight);
	spin_unlock(&held.conn->lock);
	swc_comm_abort(swc_t_rank_comm(c, 0), -ENODATA, 0, 1, "rank 0 has no data");
	swc_t_comm_end(c);
	WRITE_ONCE(swc_net_ops, held.ops);
	KUNIT_EXPECT_EQ(test, held.returned, 1);
	KUNIT_EXPECT_FALSE(test, held.in_use);
	swc_conn_put(held.conn);
}

/* ------------------------------------------------------------------ cards and devices */

/*
 * A network card of this node that is down is named as the cause, on both nodes. The card only seems to be
 * down: rxe makes no connections any more once its connection manager had to send, be it for a test before,
 * and had no route.
 */
static void net_card_down(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	char text[SWC_TEXT_BYTES / 2], up[SWC_TEXT_BYTES / 2];
	struct swc_conn *conn;
	struct net_device *dev;
	int found;
	u32 r;

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	for (r = 0; r < 2; r++) {
		conn = swc_net_find_conn(swc_t_net(c, r), r, !r, 0, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(conn));
		dev = dev_get_by_index(&init_net, conn->card);
		KUNIT_ASSERT_NOT_NULL(test, dev);
		KUNIT_EXPECT_FALSE(test, swc_conn_card_down(conn, up, sizeof(up)));
		KUNIT_EXPECT_STREQ(test, up, "");
		rtnl_lock();
		clear_bit(__LINK_STATE_START, &dev->state);
		found = swc_net_card_down(conn->net, !r, text, sizeof(text));
		set_bit(__LINK_STATE_START, &dev->state);
		rtnl_unlock();
		dev_put(dev);
		KUNIT_EXPECT_EQ(test, found, (int)r);
		KUNIT_EXPECT_TRUE_MSG(test, strstr(text, "dummy0 is down"), "%s", text);
		KUNIT_EXPECT_EQ(test, swc_net_card_down(conn->net, !r, up, sizeof(up)), -1);
		swc_conn_put(conn);
	}
	swc_t_comm_end(c);
}

/* The last test: there is no device after it. */
static void net_device_removed(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	struct ib_device *ib;
	int ret;
	u32 r;

	swc_t_job_init(job, c, swc_t_ring, 40000, false);
	swc_t_job_run(job, 0, true);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, false), 0);
	ib = ib_device_get_by_name(SWC_T_DEVICE, RDMA_DRIVER_RXE);
	KUNIT_ASSERT_NOT_NULL(test, ib);
	ib_unregister_device_and_put(ib);
	/* The connection that is found first fails and disconnects; the other one may see that sooner. */
	ret = swc_t_result(&job->done[0]);
	KUNIT_EXPECT_EQ(test, swc_t_rank_comm(c, 1)->status, SWC_COMM_ABORTED);
	KUNIT_EXPECT_TRUE_MSG(test, ret == -ENODEV || swc_t_rank_comm(c, 1)->error == -ENODEV, "%s; %s",
			      swc_t_rank_comm(c, 0)->text, swc_t_rank_comm(c, 1)->text);
	if (ret != -ENODEV)
		KUNIT_EXPECT_EQ(test, ret, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), -ECONNABORTED);
	swc_t_comm_end(c);

	/*
	 * New communicators find no device, and report that at the deadline. They cannot notify others
	 * either.
	 */
	swc_abort_ms = 500;
	c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	for (r = 0; r < 2; r++) {
		job->desc[r].timeout_ms = 500;
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, false), 0);
	}
	swc_t_job_expect(job, -ETIMEDOUT);
	KUNIT_EXPECT_TRUE_MSG(test, strstr(swc_t_rank_comm(c, 0)->text, "no RDMA device has"), "%s",
			      swc_t_rank_comm(c, 0)->text);
	KUNIT_EXPECT_TRUE_MSG(test, strstr(swc_t_rank_comm(c, 1)->text, "rank 0: it has not connected"), "%s",
			      swc_t_rank_comm(c, 1)->text);
	swc_t_comm_end(c);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_SLOW(net_abort_lower),
	KUNIT_CASE_SLOW(net_abort_higher),
	KUNIT_CASE_SLOW(net_abort_middle),
	KUNIT_CASE_SLOW(net_die_lower),
	KUNIT_CASE_SLOW(net_die_higher),
	KUNIT_CASE_SLOW(net_abort_any_time),
	KUNIT_CASE(net_die_idle),
	KUNIT_CASE(net_refused_late),
	KUNIT_CASE(net_refused_unconnected),
	KUNIT_CASE(net_refused_behind),
	KUNIT_CASE_SLOW(net_missing),
	KUNIT_CASE_SLOW(net_missing_there),
	KUNIT_CASE_SLOW(net_connect_late),
	KUNIT_CASE_SLOW(net_connect_never),
	KUNIT_CASE_SLOW(net_connect_left),
	KUNIT_CASE_SLOW(net_abort_connecting),
	KUNIT_CASE_SLOW(net_abort_closing),
	KUNIT_CASE(net_card_down),
	KUNIT_CASE_SLOW(net_device_removed),
	{}
};

struct kunit_suite swc_net_teardown_suite = {
	.name = "swc_net_teardown", .init = swc_t_net_init, .exit = swc_t_net_exit, .test_cases = cases,
};
