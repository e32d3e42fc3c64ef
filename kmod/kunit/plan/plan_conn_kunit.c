// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connections of plans: which one a transfer uses, and its number there. Communicator and network are
 * fakes that have what kmod/plan/plan_conn.c uses.
 */
#include <linux/prandom.h>

#include "plan/hazard.h"
#include "plan/plan_conn.h"
#include "rdma/rdma.h"
#include "kunit/harness.h"

#define RANKS	7
#define NODES	3

struct fake {
	struct swc_comm *comm;
	struct swc_net net;
	u32 rank_node[RANKS];
	struct swc_node_path path[NODES * SWC_MAX_PATHS];
	u32 first_path[RANKS + 1];
	DECLARE_BITMAP(left, RANKS);
};

/* Ranks 0 and 1 are on node 0, 2 and 3 on node 1, the others on node 2. */
static struct fake *fake(struct kunit *test, u32 here, const u32 *npaths)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->comm = kunit_kzalloc(test, struct_size(f->comm, member, RANKS), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->comm);
	for (i = 0; i < RANKS; i++) {
		f->rank_node[i] = min(i / 2, NODES - 1u);
		f->first_path[i + 1] = f->first_path[i] + (i < NODES ? npaths[i] : 0);
	}
	/* The last reference is never put: this memory is KUnit's. */
	kref_init(&f->comm->ref);
	f->comm->nranks = RANKS;
	f->comm->rank_node = f->rank_node;
	f->comm->here = here;
	f->comm->timeout_ms = 1000;
	f->comm->net = &f->net;
	f->net.params = (struct swc_net_params){
		.comm = f->comm, .window = &f->comm->window, .nranks = RANKS, .rank_node = f->rank_node,
		.here = here, .timeout_ms = 1000,
	};
	f->net.paths.path = f->path;
	f->net.paths.first = f->first_path;
	f->net.left = f->left;
	swc_net_init_conns(&f->net);
	init_waitqueue_head(&f->net.abort_wq);
	return f;
}

static struct swc_plan_view view_of(const struct swc_plan_writer *p)
{
	return (struct swc_plan_view){ .hdr = &p->hdr, .channels = p->channels, .steps = p->steps,
				       .xfers = p->xfers, .max_sends = 4,
				       .nblocks = p->hdr.nshards * p->hdr.shard_blocks };
}

static void send_by(struct swc_plan_writer *p, u32 rank, u8 path)
{
	swc_t_send(p, rank, 0, 1, SWC_BUF_SEND);
	swc_t_path(p, path);
}

static void recv_by(struct swc_plan_writer *p, u32 rank, u8 path)
{
	swc_t_recv(p, rank, 0, 1, SWC_BUF_RECV, 0, 0);
	swc_t_path(p, path);
}

/* A plan with one network step open. */
static struct swc_plan_writer *plan_of(struct kunit *test, u32 rank)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, RANKS, rank, RANKS);

	swc_plan_write_channel(p);
	swc_plan_write_step(p, SWC_STEP_NET);
	return p;
}

static struct swc_plan_net *plan_net_of(struct kunit *test, const struct fake *f,
					const struct swc_plan_writer *p)
{
	struct swc_plan_view v = view_of(p);
	struct swc_plan_net *l = swc_plan_net_create(f->comm, &v);

	KUNIT_ASSERT_FALSE(test, IS_ERR(l));
	return l;
}

static void expect_conn(struct kunit *test, const struct swc_plan_net *l, u32 xfer, u32 ordinal, u32 peer,
			u16 channel, u16 path)
{
	const struct swc_plan_conn *conn;

	KUNIT_EXPECT_EQ_MSG(test, l->ordinal[xfer], ordinal, "transfer %u", xfer);
	KUNIT_ASSERT_LT_MSG(test, l->conn_of[xfer], l->nconns, "transfer %u", xfer);
	conn = &l->conns[l->conn_of[xfer]];
	KUNIT_EXPECT_EQ_MSG(test, conn->peer, peer, "transfer %u", xfer);
	KUNIT_EXPECT_EQ_MSG(test, conn->channel, channel, "transfer %u", xfer);
	KUNIT_EXPECT_EQ_MSG(test, conn->path, path, "transfer %u", xfer);
}

/* Two channels, two paths to node 1, one path to node 2. */
static void conn_by_hand(struct kunit *test)
{
	static const u32 npaths[NODES] = { 0, 2, 1 };
	struct fake *f = fake(test, 0, npaths);
	struct swc_plan_writer *p = plan_of(test, 0);
	struct swc_plan_net *l;

	send_by(p, 2, 0);	/* 0 */
	send_by(p, 2, 1);
	send_by(p, 1, 0);	/* 2: on this node */
	send_by(p, 4, 5);
	recv_by(p, 2, 3);	/* 4 */
	recv_by(p, 4, 0);
	recv_by(p, 1, 0);	/* 6: on this node */
	swc_plan_write_step(p, SWC_STEP_LOCAL);
	swc_t_send(p, 1, 0, 1, SWC_BUF_SEND);
	swc_t_recv(p, 0, 0, 1, SWC_BUF_RECV, 0, 0);
	swc_plan_write_step(p, SWC_STEP_SYNC);
	swc_plan_write_step(p, SWC_STEP_NET);
	send_by(p, 2, 2);	/* 9 */
	recv_by(p, 2, 0);
	swc_plan_write_channel(p);
	swc_plan_write_step(p, SWC_STEP_NET);
	send_by(p, 2, 0);	/* 11: numbers start again */
	recv_by(p, 3, 1);
	recv_by(p, 3, 1);

	l = plan_net_of(test, f, p);
	KUNIT_EXPECT_EQ(test, l->nconns, 5u);
	expect_conn(test, l, 0, 0, 2, 0, 0);
	expect_conn(test, l, 1, 1, 2, 0, 1);
	KUNIT_EXPECT_EQ(test, l->conn_of[2], SWC_NO_CONN);
	expect_conn(test, l, 3, 0, 4, 0, 0);
	expect_conn(test, l, 4, 0, 2, 0, 1);
	expect_conn(test, l, 5, 0, 4, 0, 0);
	KUNIT_EXPECT_EQ(test, l->conn_of[6], SWC_NO_CONN);
	KUNIT_EXPECT_EQ(test, l->conn_of[7], SWC_NO_CONN);
	KUNIT_EXPECT_EQ(test, l->conn_of[8], SWC_NO_CONN);
	/* Numbered across paths. */
	expect_conn(test, l, 9, 2, 2, 0, 0);
	expect_conn(test, l, 10, 1, 2, 0, 0);
	expect_conn(test, l, 11, 0, 2, 1, 0);
	expect_conn(test, l, 12, 0, 3, 1, 1);
	expect_conn(test, l, 13, 1, 3, 1, 1);
	/* Every later step of the channel may overwrite what the first step sends. */
	KUNIT_EXPECT_EQ(test, l->fence[0], 0u);
	KUNIT_EXPECT_EQ(test, l->fence[1], 1u);
	KUNIT_EXPECT_EQ(test, l->fence[2], 1u);
	KUNIT_EXPECT_EQ(test, l->fence[3], 1u);
	KUNIT_EXPECT_EQ(test, l->fence[4], 0u);
	KUNIT_EXPECT_FALSE(test, l->open);
	swc_plan_net_free(l);
}

/* Number of transfers before @k on its channel with the same peer and direction. */
static u32 count_before(const struct swc_plan_view *v, const struct swc_plan_channel *chan, u32 k, bool send)
{
	u32 i, j, n = 0;

	for (i = chan->first_step; i < chan->first_step + chan->nsteps; i++) {
		const struct swc_plan_step *s = &v->steps[i];

		for (j = s->first_xfer; j < s->first_xfer + s->nsend + s->nrecv; j++) {
			if (j == k)
				return n;
			n += v->xfers[j].rank == v->xfers[k].rank &&
			     (j < s->first_xfer + s->nsend) == send;
		}
	}
	return n;
}

static struct swc_plan_writer *random_plan(struct kunit *test, struct rnd_state *rnd, u32 here)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, RANKS, 2 * here, RANKS);
	u32 c, s, i;

	for (c = 1 + prandom_u32_state(rnd) % SWC_T_CHANNELS; c; c--) {
		swc_plan_write_channel(p);
		for (s = prandom_u32_state(rnd) % 5; s; s--) {
			swc_plan_write_step(p, SWC_STEP_NET);
			for (i = prandom_u32_state(rnd) % 6; i; i--)
				send_by(p, prandom_u32_state(rnd) % RANKS, prandom_u32_state(rnd));
			for (i = prandom_u32_state(rnd) % 6; i; i--)
				recv_by(p, prandom_u32_state(rnd) % RANKS, prandom_u32_state(rnd));
		}
	}
	return p;
}

/* How far a task may be ahead of its messages. */
static void conn_fences(struct kunit *test)
{
	static const u32 npaths[NODES] = { 0, 1, 1 };
	struct fake *f = fake(test, 0, npaths);
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, RANKS, 0, 32);
	struct swc_plan_view v;
	struct swc_plan_net *l;
	u32 i;

	swc_plan_write_channel(p);
	for (i = 0; i < 20; i++) {
		swc_plan_write_step(p, SWC_STEP_NET);
		swc_t_send(p, 2, i, 1, SWC_BUF_SEND);
		swc_t_recv(p, 2, i + 1, 1, SWC_BUF_RECV, 0, 0);
	}
	swc_plan_write_step(p, SWC_STEP_NET);	/* 20: overwrites what step 17 sent from SEND */
	swc_t_recv(p, 2, 15, 3, SWC_BUF_RECV, 0, 0);
	swc_plan_write_step(p, SWC_STEP_NET);	/* 21: the same blocks, in SCRATCH */
	swc_t_recv(p, 2, 15, 3, SWC_BUF_SCRATCH, 0, 0);
	v = view_of(p);
	l = swc_plan_net_create(f->comm, &v);
	KUNIT_ASSERT_FALSE(test, IS_ERR(l));
	KUNIT_EXPECT_EQ(test, l->send_window, (u32)SWC_MAX_SEND_WINDOW);
	for (i = 0; i < 20; i++)
		KUNIT_EXPECT_EQ(test, l->fence[i], 0u);
	KUNIT_EXPECT_EQ(test, l->fence[20], 18u);
	KUNIT_EXPECT_EQ(test, l->fence[21], 0u);
	swc_plan_net_free(l);
	/* More messages in a step: fewer steps. */
	v.max_sends = 100;
	l = swc_plan_net_create(f->comm, &v);
	KUNIT_ASSERT_FALSE(test, IS_ERR(l));
	KUNIT_EXPECT_EQ(test, l->send_window, 2u);
	swc_plan_net_free(l);
}

/* From which step on peers may write into the memory that a step receives into. */
static void conn_free_from(struct kunit *test)
{
	static const u32 npaths[NODES] = { 0, 1, 1 }, want[] = { 0, 0, 2, 1, 4, 5, 6, 5, 8, 8, 10, 8 };
	struct fake *f = fake(test, 0, npaths);
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, RANKS, 0, 32);
	struct swc_plan_net *l;
	u32 i;

	swc_plan_write_channel(p);
	swc_plan_write_step(p, SWC_STEP_NET);
	swc_t_send(p, 2, 0, 4, SWC_BUF_SEND);
	swc_t_recv(p, 2, 4, 4, SWC_BUF_RECV, SWC_BUF_SCRATCH, SWC_XFER_REDUCE);
	swc_plan_write_step(p, SWC_STEP_NET);
	swc_t_send(p, 2, 4, 2, SWC_BUF_RECV);
	swc_t_recv(p, 2, 6, 2, SWC_BUF_RECV, SWC_BUF_RECV, SWC_XFER_REDUCE);
	swc_plan_write_step(p, SWC_STEP_NET);	/* 2: step 1 sends it */
	swc_t_recv(p, 2, 3, 2, SWC_BUF_RECV, 0, 0);
	swc_plan_write_step(p, SWC_STEP_NET);	/* 3: step 0 sends or reads it (SEND: in place) */
	swc_t_recv(p, 2, 0, 3, SWC_BUF_RECV, 0, 0);
	swc_t_recv(p, 2, 4, 4, SWC_BUF_SCRATCH, 0, 0);
	swc_plan_write_step(p, SWC_STEP_SYNC);
	swc_plan_write_step(p, SWC_STEP_NET);	/* 5: other ranks may use it before the barrier */
	swc_t_recv(p, 2, 20, 1, SWC_BUF_RECV, 0, 0);
	swc_t_send(p, 2, 21, 1, SWC_BUF_RECV);
	swc_plan_write_step(p, SWC_STEP_NET);	/* 6: step 5 sends it */
	swc_t_recv(p, 2, 21, 1, SWC_BUF_RECV, 0, 0);
	swc_plan_write_step(p, SWC_STEP_NET);	/* 7: no step uses it */
	swc_t_recv(p, 2, 22, 1, SWC_BUF_RECV, 0, 0);
	swc_plan_write_channel(p);
	swc_plan_write_step(p, SWC_STEP_NET);	/* 8: another channel */
	swc_t_recv(p, 2, 0, 1, SWC_BUF_RECV, 0, 0);
	swc_plan_write_step(p, SWC_STEP_NET);	/* 9: reduces, does not store */
	swc_t_send(p, 2, 1, 1, SWC_BUF_RECV);
	swc_t_recv(p, 2, 0, 1, SWC_BUF_RECV, SWC_BUF_RECV, SWC_XFER_REDUCE);
	swc_plan_write_step(p, SWC_STEP_NET);	/* 10: steps 8 and 9 receive into it */
	swc_t_recv(p, 2, 0, 1, SWC_BUF_RECV, 0, 0);
	swc_plan_write_step(p, SWC_STEP_NET);	/* 11: SCRATCH is unused */
	swc_t_recv(p, 2, 0, 2, SWC_BUF_SCRATCH, 0, 0);
	f->comm->nlocal = 1;
	l = plan_net_of(test, f, p);
	KUNIT_EXPECT_EQ(test, l->rndv_window, (u32)SWC_MAX_RNDV_WINDOW);
	for (i = 0; i < p->hdr.nsteps; i++)
		KUNIT_EXPECT_EQ_MSG(test, l->free_from[i], want[i], "step %u", i);
	swc_plan_net_free(l);
	/* With other ranks on the node, whose plans may use it: never early. */
	f->comm->nlocal = 2;
	l = plan_net_of(test, f, p);
	for (i = 0; i < p->hdr.nsteps; i++)
		KUNIT_EXPECT_EQ(test, l->free_from[i], i);
	swc_plan_net_free(l);
}

#define COPIES	SWC_MAX_COPIES
#define BLOCKS	(2u << 20)

/* A step of copies takes no time for each block: here they are 10^11. Nothing is offered before it. */
static void conn_copies(struct kunit *test)
{
	static const u32 npaths[NODES] = { 0, 1, 1 };
	static const u32 want[] = { 0, 1, 1 };
	const struct swc_plan_header hdr = { .nchannels = 1, .nsteps = ARRAY_SIZE(want) };
	const struct swc_plan_channel chan = { .nsteps = ARRAY_SIZE(want) };
	const struct swc_plan_step steps[] = {
		{ .kind = SWC_STEP_COPY, .nsend = COPIES, .nrecv = COPIES },
		{ .kind = SWC_STEP_NET, .nrecv = 1, .first_xfer = 2 * COPIES },
		{ .kind = SWC_STEP_NET, .nrecv = 1, .first_xfer = 2 * COPIES + 1 },
	};
	struct fake *f = fake(test, 0, npaths);
	u32 fence[ARRAY_SIZE(want)], free_from[ARRAY_SIZE(want)], i;
	struct swc_plan_net pnet = { .fence = fence, .free_from = free_from };
	struct swc_plan_xfer *x = kvcalloc(2 * COPIES + 2, sizeof(*x), GFP_KERNEL);
	const struct swc_plan_view v = { .hdr = &hdr, .channels = &chan, .steps = steps, .xfers = x,
					 .nblocks = BLOCKS };

	KUNIT_ASSERT_NOT_NULL(test, x);
	for (i = 0; i < 2 * COPIES; i++)
		x[i] = (struct swc_plan_xfer){ .nblocks = BLOCKS,
					       .buf = i < COPIES ? SWC_BUF_SEND : SWC_BUF_RECV };
	for (; i < 2 * COPIES + 2; i++)
		x[i] = (struct swc_plan_xfer){ .rank = 2, .first_block = i - 2 * COPIES, .nblocks = 1,
					       .buf = SWC_BUF_RECV };
	f->comm->nlocal = 1;
	KUNIT_EXPECT_EQ(test, swc_hazards_find(f->comm, &v, &pnet), 0);
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		KUNIT_EXPECT_EQ_MSG(test, fence[i], 0u, "step %u", i);
		KUNIT_EXPECT_EQ_MSG(test, free_from[i], want[i], "step %u", i);
	}
	kvfree(x);
}

/* Random plans, compared with the definition. */
static void conn_random(struct kunit *test)
{
	struct rnd_state rnd;
	u32 round;

	prandom_seed_state(&rnd, 20250702);
	for (round = 0; round < 200; round++) {
		u32 here = round % NODES, npaths[NODES], c, i, k;
		struct swc_plan_view v;
		struct swc_plan_writer *p;
		struct swc_plan_net *l;
		struct fake *f;

		for (i = 0; i < NODES; i++)
			npaths[i] = i == here ? 0 : 1 + prandom_u32_state(&rnd) % 4;
		f = fake(test, here, npaths);
		p = random_plan(test, &rnd, here);
		v = view_of(p);
		l = swc_plan_net_create(f->comm, &v);
		KUNIT_ASSERT_FALSE(test, IS_ERR(l));
		for (c = 0; c < p->hdr.nchannels; c++) {
			const struct swc_plan_channel *chan = &v.channels[c];

			for (i = chan->first_step; i < chan->first_step + chan->nsteps; i++) {
				const struct swc_plan_step *s = &v.steps[i];

				for (k = s->first_xfer; k < s->first_xfer + s->nsend + s->nrecv; k++) {
					u32 rank = v.xfers[k].rank, node = f->rank_node[rank];
					bool send = k < s->first_xfer + s->nsend;

					if (node == here)
						KUNIT_EXPECT_EQ(test, l->conn_of[k], SWC_NO_CONN);
					else
						expect_conn(test, l, k,
							    count_before(&v, chan, k, send), rank, c,
							    v.xfers[k].path % npaths[node]);
				}
			}
		}
		/* No duplicates. */
		for (i = 0; i < l->nconns; i++)
			for (k = 0; k < i; k++)
				KUNIT_EXPECT_FALSE(test, l->conns[i].peer == l->conns[k].peer &&
						   l->conns[i].channel == l->conns[k].channel &&
						   l->conns[i].path == l->conns[k].path);
		swc_plan_net_free(l);
		kunit_kfree(test, p);
		kunit_kfree(test, f->comm);
		kunit_kfree(test, f);
	}
}

static void conn_none(struct kunit *test)
{
	static const u32 npaths[NODES] = { 0, 1, 0 };
	struct fake *f = fake(test, 0, npaths);
	struct swc_plan_writer *p = plan_of(test, 0);
	struct swc_plan_net *l = plan_net_of(test, f, p);
	struct swc_plan_view v;

	KUNIT_EXPECT_EQ(test, l->nconns, 0u);
	KUNIT_EXPECT_EQ(test, swc_plan_net_open(l, &f->net, 0), 0);
	KUNIT_EXPECT_TRUE(test, l->open);
	swc_plan_net_free(l);

	/* A node without a path is an error only for a plan that names a rank there. */
	send_by(p, 3, 0);
	l = plan_net_of(test, f, p);
	KUNIT_EXPECT_EQ(test, l->nconns, 1u);
	swc_plan_net_free(l);
	send_by(p, 4, 0);
	v = view_of(p);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(swc_plan_net_create(f->comm, &v)), -EHOSTUNREACH);
	swc_plan_net_free(NULL);
}

/* The highest rank never connects, it is connected to: its connections are only allocated. */
static void conn_open(struct kunit *test)
{
	static const u32 npaths[NODES] = { 1, 2, 0 };
	struct fake *f = fake(test, NODES - 1, npaths);
	struct swc_plan_writer *p = plan_of(test, RANKS - 1);
	struct swc_user *user = swc_user_get(current_euid());
	struct swc_plan_net *a, *b, *late;
	struct swc_conn *conn;
	unsigned long key;
	u32 i, n = 0;

	KUNIT_ASSERT_NOT_NULL(test, user);
	f->net.params.wq = user->wq[SWC_QUEUE_NET];
	send_by(p, 0, 0);
	send_by(p, 2, 0);
	send_by(p, 2, 1);
	swc_plan_write_channel(p);
	swc_plan_write_step(p, SWC_STEP_NET);
	recv_by(p, 2, 0);
	a = plan_net_of(test, f, p);
	b = plan_net_of(test, f, p);
	late = plan_net_of(test, f, p);
	KUNIT_EXPECT_EQ(test, a->nconns, 4u);
	KUNIT_EXPECT_EQ(test, swc_plan_net_open(a, &f->net, RANKS - 1), 0);
	KUNIT_EXPECT_EQ(test, swc_plan_net_open(a, &f->net, RANKS - 1), 0);
	/* Plans share connections. */
	KUNIT_EXPECT_EQ(test, swc_plan_net_open(b, &f->net, RANKS - 1), 0);
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_NOT_NULL(test, a->conns[i].conn);
		KUNIT_EXPECT_PTR_EQ(test, b->conns[i].conn, a->conns[i].conn);
		conn = a->conns[i].conn;
		KUNIT_EXPECT_EQ(test, conn->me, RANKS - 1u);
		KUNIT_EXPECT_EQ(test, conn->peer, a->conns[i].peer);
		KUNIT_EXPECT_EQ(test, conn->channel, a->conns[i].channel);
		KUNIT_EXPECT_EQ(test, conn->path, a->conns[i].path);
		KUNIT_EXPECT_EQ(test, conn->state, SWC_CONN_IDLE);
	}
	xa_for_each(&f->net.conns, key, conn)
		n++;
	KUNIT_EXPECT_EQ(test, n, 4u);

	/* The communicator is aborted. */
	mutex_lock(&f->net.lock);
	f->net.dead = true;
	mutex_unlock(&f->net.lock);
	xa_for_each(&f->net.conns, key, conn)
		swc_conn_close(conn, 0);
	flush_workqueue(user->wq[SWC_QUEUE_NET]);
	KUNIT_EXPECT_TRUE(test, xa_empty(&f->net.conns));
	KUNIT_EXPECT_EQ(test, kref_read(&f->comm->ref), 1u);
	KUNIT_EXPECT_EQ(test, swc_plan_net_open(late, &f->net, RANKS - 1), -ECONNABORTED);
	KUNIT_EXPECT_FALSE(test, late->open);
	swc_plan_net_free(a);
	swc_plan_net_free(b);
	swc_plan_net_free(late);
	swc_user_put(user);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(conn_by_hand),
	KUNIT_CASE(conn_fences),
	KUNIT_CASE(conn_free_from),
	KUNIT_CASE(conn_copies),
	KUNIT_CASE(conn_random),
	KUNIT_CASE(conn_none),
	KUNIT_CASE(conn_open),
	{}
};

struct kunit_suite swc_plan_conn_suite = { .name = "swc_plan_conn", .test_cases = cases };
