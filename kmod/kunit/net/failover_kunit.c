// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections that lose their path and go on by another: cuts at any moment of operations of any size, and
 * requests of hosts that would like a connection to be lost.
 */
#include <linux/delay.h>
#include <linux/prandom.h>
#include <linux/tcp.h>
#include <net/sock.h>

#include "net/conn.h"
#include "net/trace.h"
#include "rdma/rdma.h"
#include "tcp/tcp.h"
#include "trace.h"
#include "kunit/harness.h"
#include "kunit/net/failover_harness.h"
#include "kunit/rdma/raw_peer.h"

static const struct swc_t_layout two_of_two = { 2, SWC_T_PATHS, false, { 0, 1, 0, 1 } };

/* ------------------------------------------------------------------ cuts */

/**
 * struct cutter - cuts connections at steps of operations
 * @every: at each so many-th step, in the mean
 * @cuts: so many so far
 */
struct cutter {
	struct swc_t_comm *c;
	struct rnd_state rnd;
	spinlock_t lock;
	u32 every;
	u32 cuts;
};

static u32 choose_below(struct cutter *cut, u32 n)
{
	u32 i;

	spin_lock(&cut->lock);
	i = prandom_u32_state(&cut->rnd) % n;
	spin_unlock(&cut->lock);
	return i;
}

/* A live connection of this net, with a reference; NULL if the one that was chosen is not. */
static struct swc_conn *find_live(struct cutter *cut, struct swc_net *net)
{
	struct swc_conn *conn, *found = NULL;
	u32 n = 0;

	xa_lock(&net->conns);
	list_for_each_entry(conn, &net->all, node)
		n++;
	n = n ? choose_below(cut, n) : 0;
	list_for_each_entry(conn, &net->all, node)
		if (!n--)
			found = conn;
	if (found && READ_ONCE(found->state) == SWC_CONN_LIVE)
		kref_get(&found->ref);
	else
		found = NULL;
	xa_unlock(&net->conns);
	return found;
}

/* As if the socket or the queue pair had reported that the peer has closed it. */
static void cut_at_step(void *data, const struct swc_req *req, u32 channel, u32 step, u32 kind)
{
	struct cutter *cut = data;
	struct swc_conn *conn;

	if (choose_below(cut, cut->every))
		return;
	conn = find_live(cut, req->op->comm->net);
	if (!conn)
		return;
	swc_conn_retry(conn, "cut", -ECONNRESET);
	swc_conn_put(conn);
	spin_lock(&cut->lock);
	cut->cuts++;
	spin_unlock(&cut->lock);
}

/*
 * The lower rank's attempt is live and sends AUTH: now and then the peer gives it up just then, as if AUTH
 * had taken too long. conn->lock is held: no other lock of a connection may be taken.
 */
static void cut_attempt(void *data, const struct swc_conn *conn, u32 from, u32 to)
{
	struct cutter *cut = data;
	struct swc_conn *other;
	unsigned long key;

	if (to != SWC_CONN_LIVE || conn->me > conn->peer || conn->net != swc_t_net(cut->c, conn->me) ||
	    choose_below(cut, 3))
		return;
	xa_for_each(&swc_t_net(cut->c, conn->peer)->conns, key, other)
		if (other->peer == conn->me && other->me == conn->peer && other->channel == conn->channel &&
		    other->path == conn->path)
			mod_delayed_work(swc_conn_wq(other), &other->connect_work, 0);
}

static void cutter_start(struct kunit *test, struct cutter *cut, struct swc_t_comm *c, u32 every, u64 seed)
{
	cut->c = c;
	cut->every = every;
	prandom_seed_state(&cut->rnd, seed);
	spin_lock_init(&cut->lock);
	KUNIT_ASSERT_EQ(test, register_trace_swc_step(cut_at_step, cut), 0);
	KUNIT_ASSERT_EQ(test, register_trace_swc_conn_state(cut_attempt, cut), 0);
}

static void cutter_stop(struct cutter *cut)
{
	unregister_trace_swc_step(cut_at_step, cut);
	unregister_trace_swc_conn_state(cut_attempt, cut);
	tracepoint_synchronize_unregister();
}

/* Empty, copied, several segments, just below and above a rendezvous, several pieces of a chunk. */
static const u64 counts[] = { 0, 1, 100, 1000, 9000, 16376, 16384, 90001 };

struct cut_case {
	const char *name;
	u32 nranks;
	const struct swc_t_layout *on;
	swc_t_planner planner;
	u32 every;
	unsigned int zerocopy_min;
	enum swc_transport_kind transport;
};

static const struct cut_case cut_cases[] = {
	{ "2 nodes", 2, &swc_t_three_paths, swc_t_ring, 3, 32 << 10, SWC_TRANSPORT_TCP },
	{ "2 nodes, 3 channels", 2, &swc_t_three_paths, swc_t_ring3, 5, 32 << 10, SWC_TRANSPORT_TCP },
	{ "2 nodes of 2, no copies", 4, &two_of_two, swc_t_ring, 5, 1, SWC_TRANSPORT_TCP },
	{ "2 nodes, copies", 2, &swc_t_three_paths, swc_t_ring, 3, U32_MAX, SWC_TRANSPORT_TCP },
	{ "TLS, 2 nodes", 2, &swc_t_three_paths, swc_t_ring, 3, 0, SWC_TRANSPORT_TLS },
	{ "TLS, 2 nodes, 3 channels", 2, &swc_t_three_paths, swc_t_ring3, 5, 0, SWC_TRANSPORT_TLS },
	{ "TLS, 2 nodes of 2", 4, &two_of_two, swc_t_ring, 5, 0, SWC_TRANSPORT_TLS },
	{ "RDMA, 2 nodes", 2, &swc_t_three_paths, swc_t_ring, 3, 0, SWC_TRANSPORT_RDMA },
	{ "RDMA, 2 nodes, 3 channels", 2, &swc_t_three_paths, swc_t_ring3, 5, 0, SWC_TRANSPORT_RDMA },
	{ "RDMA, 2 nodes of 2", 4, &two_of_two, swc_t_ring, 5, 0, SWC_TRANSPORT_RDMA },
};

static void cut_desc(const struct cut_case *s, char *desc)
{
	strscpy(desc, s->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(cut, cut_cases, cut_desc);

static void failover_cuts(struct kunit *test)
{
	const struct cut_case *s = test->param_value;
	u64 nsent = swc_stat_read(SWC_STAT_MSGS_SENT), ngot = swc_stat_read(SWC_STAT_MSGS_RECEIVED);
	u64 sent = swc_stat_read(SWC_STAT_BYTES_SENT), got = swc_stat_read(SWC_STAT_BYTES_RECEIVED);
	u64 resumed = swc_stat_read(SWC_STAT_CONNS_RESUMED), resent = swc_stat_read(SWC_STAT_BYTES_RESENT);
	struct cutter *cut = kunit_kzalloc(test, sizeof(*cut), GFP_KERNEL);
	struct swc_t_job *job = swc_t_job_new(test);
	unsigned int zerocopy_min = swc_tcp_zerocopy_min;
	struct swc_t_comm *c;
	u32 i, k;

	KUNIT_ASSERT_NOT_NULL(test, cut);
	swc_t_use_transport(test, s->transport);
	c = swc_t_comm_on(test, s->nranks, SWC_T_NO_DEADLINE, s->on);
	swc_tcp_zerocopy_min = s->zerocopy_min;
	cutter_start(test, cut, c, s->every, s - cut_cases + 1);
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		swc_t_job_init(job, c, s->planner, counts[i], i & 2);
		for (k = 0; k < 6; k++) {
			swc_t_job_fill(job);
			swc_t_job_run(job, i + k, i & 1);
		}
	}
	cutter_stop(cut);
	swc_tcp_zerocopy_min = zerocopy_min;
	KUNIT_EXPECT_EQ(test, swc_t_rank_comm(c, 0)->status, SWC_COMM_LIVE);
	KUNIT_EXPECT_GT(test, cut->cuts, 10u);
	KUNIT_EXPECT_GT(test, swc_stat_read(SWC_STAT_CONNS_RESUMED), resumed);
	KUNIT_EXPECT_GT(test, swc_stat_read(SWC_STAT_BYTES_RESENT), resent);
	/* Each message counts once. */
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_BYTES_SENT) - sent,
			swc_stat_read(SWC_STAT_BYTES_RECEIVED) - got);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_MSGS_SENT) - nsent,
			swc_stat_read(SWC_STAT_MSGS_RECEIVED) - ngot);
	kunit_info(test, "%u cuts, %llu resumed, %llu bytes sent again", cut->cuts,
		   swc_stat_read(SWC_STAT_CONNS_RESUMED) - resumed,
		   swc_stat_read(SWC_STAT_BYTES_RESENT) - resent);
	swc_t_expect_credits(c);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ ends */

/*
 * While connections are cut, a rank aborts, or its process dies: the others are told that, and not that a
 * connection was lost. Or all leave as soon as they have their results, which then have arrived everywhere.
 */
static void failover_ends(struct kunit *test)
{
	struct cutter *cut = kunit_kzalloc(test, sizeof(*cut), GFP_KERNEL);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 i, r;

	swc_t_use_param(test);
	KUNIT_ASSERT_NOT_NULL(test, cut);
	for (i = 0; i < 24; i++) {
		struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_three_paths);
		int error = i % 3 == 0 ? -ESHUTDOWN : -ECONNRESET;
		u32 culprit = i / 3 & 1;

		swc_t_job_init(job, c, swc_t_ring, counts[2 + i % 6], false);
		swc_t_job_run(job, i, true);
		swc_t_job_fill(job);
		cutter_start(test, cut, c, 2, i);
		for (r = 0; r < 2; r++)
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, i & 1), 0);
		if (i % 3 == 0)
			swc_comm_abort(swc_t_rank_comm(c, culprit), error, culprit, 0, "struck");
		else if (i % 3 == 1)
			swc_comm_ctx_died(&c->rank[culprit].ctx, "was killed");
		for (r = 0; r < 2; r++) {
			int ret = swc_t_result(&job->done[r]);

			if (!ret)
				continue;
			KUNIT_EXPECT_NE(test, i % 3, 2u);
			KUNIT_EXPECT_EQ_MSG(test, ret, error, "rank %u: %s", r, swc_t_rank_comm(c, r)->text);
			KUNIT_EXPECT_EQ_MSG(test, job->done[r].culprit, (int)culprit, "rank %u: %s", r,
					    swc_t_rank_comm(c, r)->text);
		}
		cutter_stop(cut);
		swc_t_comm_end(c);
	}
}

/* ------------------------------------------------------------------ requests */

/* Is the request refused with this reason, and does the connection stay what it is? */
static void expect_no_effect(struct swc_t_comm *c, u32 rank, const struct swc_wire_hello *h, int reason)
{
	struct swc_conn *conn = swc_t_only_conn(c, rank);
	struct swc_wire_reject reject = {};
	struct kunit *test = c->test;
	u32 attempt = conn->attempt;

	KUNIT_EXPECT_NULL(test, swc_request(swc_t_net(c, rank)->listeners.of[swc_t_transport], h,
					    sizeof(*h), NULL, &reject));
	KUNIT_EXPECT_EQ(test, le16_to_cpu(reject.reason), reason);
	KUNIT_EXPECT_EQ(test, conn->attempt, attempt);
	KUNIT_EXPECT_EQ(test, (int)conn->state, (int)SWC_CONN_LIVE);
	KUNIT_EXPECT_FALSE(test, test_bit(SWC_CONN_F_DROPPED, &conn->flags));
}

/*
 * Neither an old request nor an altered one ends a live connection, at either rank. Those that only the peer
 * can make do, and it goes on.
 */
static void failover_requests(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_before_loss before;
	struct swc_wire_reject reject;
	struct swc_wire_hello h;
	struct swc_conn *conn;
	struct swc_t_comm *c;

	swc_t_use_param(test);
	c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_three_paths);
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	before = swc_t_before_loss(c);

	/* To the higher rank: the last request once more, then a newer one that is altered. */
	conn = swc_t_only_conn(c, 1);
	swc_t_hello(swc_t_rank_comm(c, 1), 0, 1, &h);
	h.attempt = cpu_to_le32(conn->attempt);
	swc_t_sign(swc_t_rank_comm(c, 1), &h);
	expect_no_effect(c, 1, &h, SWC_WIRE_BUSY);
	h.attempt = cpu_to_le32(conn->attempt + 1);
	expect_no_effect(c, 1, &h, SWC_WIRE_DENIED);

	/* To the lower rank: that it should connect again, after an attempt that is over, or one to come. */
	conn = swc_t_only_conn(c, 0);
	swc_t_hello(swc_t_rank_comm(c, 0), 1, 0, &h);
	h.attempt = cpu_to_le32(conn->attempt + 1);
	swc_t_sign(swc_t_rank_comm(c, 0), &h);
	expect_no_effect(c, 0, &h, SWC_WIRE_BUSY);
	h.attempt = cpu_to_le32(conn->attempt);
	expect_no_effect(c, 0, &h, SWC_WIRE_DENIED);

	/* After its last attempt. */
	swc_t_sign(swc_t_rank_comm(c, 0), &h);
	KUNIT_EXPECT_NULL(test, swc_request(swc_t_net(c, 0)->listeners.of[swc_t_transport], &h, sizeof(h),
					    NULL, &reject));
	swc_t_wait_resumed(test, c, &before);
	/* Now it is over. */
	expect_no_effect(c, 0, &h, SWC_WIRE_BUSY);
	swc_t_job_run(job, 1, true);

	/* Without a connection of that name, none is made. */
	h.channel = 9;
	swc_t_sign(swc_t_rank_comm(c, 0), &h);
	expect_no_effect(c, 0, &h, SWC_WIRE_BUSY);
	swc_t_comm_end(c);
}

/* What the higher rank knows of the path when it gives the connection up. */
struct given_up {
	struct swc_t_comm *c;
	int state;
};

static void note_given_up(void *data, const struct swc_conn *conn, u32 from, u32 to)
{
	const struct swc_path_table *t = &conn->net->paths;
	struct given_up *up = data;

	if (conn->net == swc_t_net(up->c, 1) && from == SWC_CONN_LIVE && up->state < 0)
		up->state = t->health[t->first[conn->net->params.rank_node[conn->peer]] + conn->via].state;
}

/* The lower rank connects again, whether or not its path has failed: the higher one only follows. */
static void failover_replaced(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	struct given_up up = { .state = -1 };
	struct swc_t_before_loss before;
	struct swc_wire_reject reject;
	struct swc_wire_hello h;
	u32 i;

	swc_t_use_param(test);
	up.c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_three_paths);
	swc_t_job_init(job, up.c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	before = swc_t_before_loss(up.c);
	KUNIT_ASSERT_EQ(test, register_trace_swc_conn_state(note_given_up, &up), 0);
	swc_t_hello(swc_t_rank_comm(up.c, 1), 0, 1, &h);
	h.attempt = cpu_to_le32(swc_t_only_conn(up.c, 1)->attempt + 1);
	swc_t_sign(swc_t_rank_comm(up.c, 1), &h);
	KUNIT_EXPECT_NULL(test, swc_request(swc_t_net(up.c, 1)->listeners.of[swc_t_transport], &h, sizeof(h),
					    NULL, &reject));
	for (i = 0; i < 500 && READ_ONCE(up.state) < 0; i++)
		msleep(20);
	unregister_trace_swc_conn_state(note_given_up, &up);
	tracepoint_synchronize_unregister();
	KUNIT_EXPECT_EQ(test, up.state, (int)SWC_PATH_WELL);
	swc_t_wait_resumed(test, up.c, &before);
	swc_t_job_run(job, 1, true);
	swc_t_comm_end(up.c);
}

/*
 * The higher rank has not noticed that the connection is lost, and refuses it. The lower one tries again:
 * it counts each attempt once, however often its device reports that.
 */
static void failover_refused(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_before_loss before;
	struct swc_conn *lower, *higher;
	struct swc_t_comm *c;
	u32 attempt, nattempts, nfailed, i;
	bool set;

	swc_t_use_param(test);
	c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_three_paths);
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	before = swc_t_before_loss(c);
	lower = swc_t_only_conn(c, 0);
	higher = swc_t_only_conn(c, 1);
	spin_lock(&higher->lock);
	set = swc_conn_set_state(higher, SWC_CONN_LIVE, SWC_CONN_RESETTING);
	spin_unlock(&higher->lock);
	KUNIT_ASSERT_TRUE(test, set);
	attempt = lower->attempt;
	swc_conn_retry(lower, "cut", -ETIMEDOUT);
	for (i = 0; i < 500 && READ_ONCE(lower->attempt) < attempt + 4; i++)
		msleep(20);
	spin_lock(&lower->lock);
	nattempts = lower->attempt - attempt;
	nfailed = lower->nfailed;
	spin_unlock(&lower->lock);
	/* The last may not be over. */
	KUNIT_EXPECT_GE(test, nfailed, 3u);
	KUNIT_EXPECT_LE(test, nfailed, nattempts);
	spin_lock(&higher->lock);
	higher->state = SWC_CONN_LIVE;
	swc_resume_drop(higher, "cut");
	spin_unlock(&higher->lock);
	swc_t_wait_resumed(test, c, &before);
	swc_t_job_fill(job);
	swc_t_job_run(job, 1, true);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ silent devices */

/*
 * A device says nothing of a request that it must report: for as long as it may take it is waited for, then
 * the connection goes on by another queue pair.
 */
static void failover_silent_device(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_three_paths);
	struct swc_t_before_loss before;
	u32 seconds = swc_cm_answer_ms(8) / MSEC_PER_SEC;
	struct swc_conn *conn;
	u32 i;

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	before = swc_t_before_loss(c);
	conn = swc_t_only_conn(c, 0);
	spin_lock(&conn->lock);
	swc_rdma_conn(conn)->sq.probe_head = swc_rdma_conn(conn)->sq.tail + 1;
	for (i = 0; i <= seconds; i++)
		swc_rdma_watch(conn);
	KUNIT_EXPECT_FALSE(test, test_bit(SWC_CONN_F_DROPPED, &conn->flags));
	for (; i < seconds + 3; i++)
		swc_rdma_watch(conn);
	KUNIT_EXPECT_TRUE(test, test_bit(SWC_CONN_F_DROPPED, &conn->flags));
	spin_unlock(&conn->lock);
	swc_t_wait_resumed(test, c, &before);
	swc_t_job_fill(job);
	swc_t_job_run(job, 1, true);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ silent peers */

/* Is it found out, soon, that the peer has received all, as it is once a second while operations wait? */
static bool watch_until_received(struct swc_conn *base)
{
	bool received = false;
	u32 i;

	for (i = 0; i < 500 && !received; i++) {
		spin_lock(&base->lock);
		received = base->transport->watch(base);
		spin_unlock(&base->lock);
		if (!received)
			msleep(20);
	}
	return received;
}

/* The lower rank's end of a connection by TCP or TLS whose peer has received all. */
static struct swc_tcp_conn *connect_idle(struct kunit *test, enum swc_transport_kind kind,
					 struct swc_t_comm **c)
{
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_conn *base;

	swc_t_use_transport(test, kind);
	*c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_three_paths);
	swc_t_job_init(job, *c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	base = swc_t_only_conn(*c, 0);
	KUNIT_EXPECT_TRUE(test, watch_until_received(base));
	return swc_tcp_conn(base);
}

/* As after two messages in one go, both of which the peer's TCP has acknowledged since: a mark is between. */
static void stop_at_mark(struct swc_tcp_conn *conn)
{
	mutex_lock(&conn->tx_mutex);
	spin_lock(&conn->base.lock);
	conn->mark = conn->sent - SWC_HEADER;
	conn->acked = conn->mark - SWC_HEADER;
	conn->una = tcp_sk(conn->sock->sk)->snd_una;
	conn->marked = true;
	spin_unlock(&conn->base.lock);
	mutex_unlock(&conn->tx_mutex);
}

static int note_wake(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	atomic_inc(entry->private);
	return 0;
}

/*
 * The peer of an encrypted connection has received more than the last mark tells, and nothing else is sent:
 * that is found out. The peer would not be probed any more, and an abort would wait for it in vain.
 */
static void failover_marks(struct kunit *test)
{
	struct wait_queue_entry entry;
	atomic_t woken = ATOMIC_INIT(0);
	struct swc_tcp_conn *conn;
	struct swc_t_comm *c;

	conn = connect_idle(test, SWC_TRANSPORT_TLS, &c);
	stop_at_mark(conn);
	KUNIT_EXPECT_TRUE(test, watch_until_received(&conn->base));

	stop_at_mark(conn);
	WRITE_ONCE(conn->acks_wanted, true);
	init_waitqueue_func_entry(&entry, note_wake);
	entry.private = &woken;
	add_wait_queue(&conn->base.net->abort_wq, &entry);
	swc_tcp_pump(&conn->base, false);
	/* Another may have done it, and left it to that. */
	mutex_lock(&conn->tx_mutex);
	mutex_unlock(&conn->tx_mutex);
	KUNIT_EXPECT_GT(test, atomic_read(&woken), 0);
	remove_wait_queue(&conn->base.net->abort_wq, &entry);
	swc_t_comm_end(c);
}

/* The peer has accepted, and is not heard of any more: the connection goes on by another attempt. */
static void failover_unheard(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_before_loss before;
	struct swc_t_comm *c;
	struct swc_conn *conn;

	swc_t_use_param(test);
	c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_three_paths);
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	before = swc_t_before_loss(c);
	conn = swc_t_only_conn(c, 0);
	/* As when the time is over. */
	spin_lock(&conn->lock);
	set_bit(SWC_CONN_F_UNHEARD, &conn->flags);
	mod_delayed_work(swc_conn_wq(conn), &conn->connect_work, 0);
	spin_unlock(&conn->lock);
	swc_t_wait_resumed(test, c, &before);
	swc_t_job_fill(job);
	swc_t_job_run(job, 1, true);
	swc_t_comm_end(c);
}

/* The socket has no room for AUTH: it is sent when there is. */
static void failover_auth_waits(struct kunit *test)
{
	struct swc_tcp_conn *conn;
	struct swc_t_comm *c;
	struct sock *sk;
	u32 pending;
	int sndbuf;

	conn = connect_idle(test, SWC_TRANSPORT_TCP, &c);
	sk = conn->sock->sk;
	sndbuf = READ_ONCE(sk->sk_sndbuf);
	WRITE_ONCE(sk->sk_sndbuf, 0);
	spin_lock(&conn->base.lock);
	swc_conn_pend(&conn->base, SWC_PEND_AUTH);
	spin_unlock(&conn->base.lock);
	swc_tcp_pump(&conn->base, false);
	spin_lock(&conn->base.lock);
	pending = conn->base.pending;
	conn->base.pending &= ~SWC_PEND_AUTH;
	spin_unlock(&conn->base.lock);
	WRITE_ONCE(sk->sk_sndbuf, sndbuf);
	KUNIT_EXPECT_TRUE(test, pending & SWC_PEND_AUTH);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ peers that have left */

static struct {
	const struct swc_net_ops *ops;
	const struct swc_send *send;
	struct completion done;
	int error;
} held;

static void note_held(struct swc_send *send, int error, bool nested)
{
	if (send != held.send) {
		held.ops->send_done(send, error, nested);
		return;
	}
	held.error = error;
	complete(&held.done);
}

/*
 * The peer has left in order, and the path is lost before it is known that the last message has arrived: it
 * has, and nobody is at fault.
 */
static void failover_peer_left(struct kunit *test)
{
	struct swc_send *send = kunit_kzalloc(test, sizeof(*send), GFP_KERNEL);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_net_ops ops = *swc_net_ops;
	struct swc_conn *conn;
	struct swc_t_comm *c;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, send);
	swc_t_use_param(test);
	c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_three_paths);
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	held.ops = swc_net_ops;
	held.send = send;
	init_completion(&held.done);
	ops.send_done = note_held;
	WRITE_ONCE(swc_net_ops, &ops);
	conn = swc_t_only_conn(c, 0);
	spin_lock(&conn->lock);
	list_add_tail(&send->node, &conn->inflight);
	kref_get(&conn->ref);
	spin_unlock(&conn->lock);
	KUNIT_EXPECT_EQ(test, swc_t_leave(c, 1), 0);
	for (i = 0; i < 500 && !test_bit(SWC_CONN_F_PEER_LEFT, &conn->flags); i++)
		msleep(20);
	KUNIT_EXPECT_TRUE(test, test_bit(SWC_CONN_F_PEER_LEFT, &conn->flags));
	swc_conn_retry(conn, "cut", -ETIMEDOUT);
	KUNIT_EXPECT_GT(test, wait_for_completion_timeout(&held.done, msecs_to_jiffies(SWC_T_HANG)), 0ul);
	KUNIT_EXPECT_EQ(test, held.error, 0);
	KUNIT_EXPECT_EQ_MSG(test, swc_t_rank_comm(c, 0)->status, SWC_COMM_LIVE, "%s",
			    swc_t_rank_comm(c, 0)->text);
	swc_conn_put(conn);
	WRITE_ONCE(swc_net_ops, held.ops);
	KUNIT_EXPECT_EQ(test, swc_t_leave(c, 0), 0);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ the stream */

#define AT	1000

/* A message of the stream, not sent; as pump does, and swc_t_failover_exit. */
static void add_message(struct kunit *test, struct swc_tcp_conn *conn, u32 head, u32 payload, bool finished)
{
	KUNIT_ASSERT_TRUE(test, swc_tcp_stream_prepare(conn));
	spin_lock(&conn->base.lock);
	conn->tx = (struct swc_tcp_tx){ .page = swc_tcp_stream_page(conn), .head_end = head, .left = payload,
					.span.offset = AT };
	swc_tcp_stream_add(conn);
	if (finished)
		swc_tcp_stream_finish(conn, false);
	swc_tcp_stream_end(conn);
	spin_unlock(&conn->base.lock);
}

/* What is left to be sent, in all; the first message must be cut in the right place. */
static u64 left_to_send(struct kunit *test, struct swc_tcp_conn *conn)
{
	u64 n = 0;

	if (!conn->tx.head_end)
		return 0;
	if (conn->tx.head < conn->tx.head_end)
		KUNIT_EXPECT_EQ(test, conn->tx.span.offset, AT);
	spin_lock(&conn->base.lock);
	do
		n += conn->tx.head_end - conn->tx.head + conn->tx.left;
	while (swc_tcp_stream_again(conn));
	swc_tcp_stream_end(conn);
	spin_unlock(&conn->base.lock);
	return n;
}

/* A stream without a socket; swc_tcp_stream_reset() frees what is added to it. */
static struct swc_tcp_conn *new_stream(struct kunit *test)
{
	struct swc_tcp_conn *conn = kunit_kzalloc(test, sizeof(*conn), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, conn);
	conn->base.net = kunit_kzalloc(test, sizeof(*conn->base.net), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, conn->base.net);
	conn->base.transport = &swc_tcp_transport;
	conn->base.resumable = true;
	spin_lock_init(&conn->base.lock);
	mutex_init(&conn->tx_mutex);
	INIT_LIST_HEAD(&conn->records);
	return conn;
}

/* A peer that acknowledges nothing has so many messages kept for it, and no more until it does. */
static void failover_stream_full(struct kunit *test)
{
	u32 i, most = 4 * swc_tcp_rx_bufs + 64;
	struct swc_tcp_conn *conn = new_stream(test);
	LIST_HEAD(done);

	for (i = 0; i < most; i++) {
		KUNIT_ASSERT_FALSE(test, swc_tcp_stream_is_full(conn));
		add_message(test, conn, 64, 0, true);
	}
	KUNIT_EXPECT_TRUE(test, swc_tcp_stream_is_full(conn));
	KUNIT_EXPECT_TRUE(test, swc_tcp_stream_prepare(conn));
	KUNIT_EXPECT_NULL(test, swc_tcp_stream_page(conn));
	KUNIT_EXPECT_EQ(test, swc_tcp_stream_resume(&conn->base, 64), 0);
	spin_lock(&conn->base.lock);
	swc_tcp_stream_trim(conn, &done);
	spin_unlock(&conn->base.lock);
	KUNIT_EXPECT_NOT_NULL(test, swc_tcp_stream_page(conn));
	swc_tcp_stream_reset(conn);
}

/* From any byte that the peer names, all is sent again that it does not have; other numbers are refused. */
static void failover_stream(struct kunit *test)
{
	static const struct { u32 head, payload; } messages[] = {
		{ 64, 0 }, { 164, 0 }, { 64, 5000 }, { 80, 0 }, { 64, 300 },
	};
	struct swc_tcp_conn *conn = new_stream(test);
	u64 at, sent = 0;
	LIST_HEAD(done);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(messages); i++) {
		add_message(test, conn, messages[i].head, messages[i].payload, i < ARRAY_SIZE(messages) - 1);
		sent += messages[i].head + messages[i].payload;
	}
	KUNIT_EXPECT_EQ(test, conn->sent, sent);
	KUNIT_EXPECT_FALSE(test, swc_tcp_all_received(&conn->base));
	for (at = 0; at < sent; at++) {
		KUNIT_ASSERT_EQ(test, swc_tcp_stream_resume(&conn->base, at), 0);
		KUNIT_ASSERT_EQ(test, left_to_send(test, conn), sent - at);
		if (at)
			KUNIT_ASSERT_EQ(test, swc_tcp_stream_resume(&conn->base, at - 1), -EPROTO);
		KUNIT_ASSERT_EQ(test, swc_tcp_stream_resume(&conn->base, sent + 1), -EPROTO);
		/* The last message has not been given to a socket as a whole. */
		KUNIT_ASSERT_EQ(test, swc_tcp_stream_resume(&conn->base, sent), -EPROTO);
		spin_lock(&conn->base.lock);
		swc_tcp_stream_trim(conn, &done);
		spin_unlock(&conn->base.lock);
	}
	KUNIT_EXPECT_TRUE(test, list_is_singular(&conn->records));
	swc_tcp_stream_reset(conn);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(failover_cuts, cut_gen_params),
	KUNIT_CASE_PARAM(failover_ends, swc_t_transport_gen_params),
	KUNIT_CASE_PARAM(failover_requests, swc_t_transport_gen_params),
	KUNIT_CASE_PARAM(failover_replaced, swc_t_transport_gen_params),
	KUNIT_CASE_PARAM(failover_refused, swc_t_transport_gen_params),
	KUNIT_CASE(failover_silent_device),
	KUNIT_CASE(failover_marks),
	KUNIT_CASE_PARAM(failover_unheard, swc_t_transport_gen_params),
	KUNIT_CASE(failover_auth_waits),
	KUNIT_CASE_PARAM(failover_peer_left, swc_t_transport_gen_params),
	KUNIT_CASE(failover_stream),
	KUNIT_CASE(failover_stream_full),
	{}
};

struct kunit_suite swc_failover_suite = {
	.name = "swc_failover", .init = swc_t_net_init, .exit = swc_t_failover_exit, .test_cases = cases,
};
