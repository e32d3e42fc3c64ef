// SPDX-License-Identifier: GPL-2.0-only
/*
 * The links of plans: which connection a transfer uses, and its number there. Communicator and network are
 * made up, as far as plan/plan_conn.c looks at them.
 */
#include <linux/prandom.h>

#include "plan/plan_conn.h"
#include "rdma/rdma.h"
#include "kunit/harness.h"

#define RANKS	7
#define NODES	3

struct fake {
	struct swc_comm *comm;
	struct swc_net net;
	u32 rank_node[RANKS];
	u32 first_path[RANKS + 1];
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
	/* Never the last one: nobody must free this. */
	kref_init(&f->comm->ref);
	f->comm->nranks = RANKS;
	f->comm->rank_node = f->rank_node;
	f->comm->here = here;
	f->comm->timeout_ms = 1000;
	f->comm->net = &f->net;
	f->net.comm = f->comm;
	f->net.first_path = f->first_path;
	mutex_init(&f->net.lock);
	xa_init(&f->net.conns);
	INIT_LIST_HEAD(&f->net.all);
	init_waitqueue_head(&f->net.told);
	return f;
}

static struct swc_plan_view view_of(const struct swc_t_plan *p)
{
	return (struct swc_plan_view){ .hdr = &p->hdr, .channels = p->channels, .steps = p->steps,
				       .xfers = p->xfers, .max_sends = 4,
				       .nblocks = p->hdr.nparts * p->hdr.part_blocks };
}

static void send_by(struct swc_t_plan *p, u32 rank, u8 path)
{
	swc_t_send(p, rank, 0, 1, SWC_BUF_SEND);
	swc_t_path(p, path);
}

static void recv_by(struct swc_t_plan *p, u32 rank, u8 path)
{
	swc_t_recv(p, rank, 0, 1, SWC_BUF_RECV, 0, 0);
	swc_t_path(p, path);
}

/* With one step begun. */
static struct swc_t_plan *plan_of(struct kunit *test, u32 rank)
{
	struct swc_t_plan *p = swc_t_plan(test, SWC_ALLREDUCE, RANKS, rank, RANKS);

	swc_t_channel(p);
	swc_t_step(p, SWC_STEP_NET);
	return p;
}

static struct swc_links *links_of(struct kunit *test, const struct fake *f, const struct swc_t_plan *p)
{
	struct swc_plan_view v = view_of(p);
	struct swc_links *l = swc_links_make(f->comm, &v);

	KUNIT_ASSERT_FALSE(test, IS_ERR(l));
	return l;
}

static void expect_link(struct kunit *test, const struct swc_links *l, u32 xfer, u32 ordinal, u32 peer,
			u16 channel, u16 path)
{
	const struct swc_link *link;

	KUNIT_EXPECT_EQ_MSG(test, l->ordinal[xfer], ordinal, "transfer %u", xfer);
	KUNIT_ASSERT_LT_MSG(test, l->link[xfer], l->nlinks, "transfer %u", xfer);
	link = &l->links[l->link[xfer]];
	KUNIT_EXPECT_EQ_MSG(test, link->peer, peer, "transfer %u", xfer);
	KUNIT_EXPECT_EQ_MSG(test, link->channel, channel, "transfer %u", xfer);
	KUNIT_EXPECT_EQ_MSG(test, link->path, path, "transfer %u", xfer);
}

/* Written out: two channels, two paths to node 1, one to node 2. */
static void links_by_hand(struct kunit *test)
{
	static const u32 npaths[NODES] = { 0, 2, 1 };
	struct fake *f = fake(test, 0, npaths);
	struct swc_t_plan *p = plan_of(test, 0);
	struct swc_links *l;

	send_by(p, 2, 0);	/* 0 */
	send_by(p, 2, 1);
	send_by(p, 1, 0);	/* 2: on this node */
	send_by(p, 4, 5);
	recv_by(p, 2, 3);	/* 4 */
	recv_by(p, 4, 0);
	recv_by(p, 1, 0);	/* 6: likewise */
	swc_t_step(p, SWC_STEP_LOCAL);
	swc_t_send(p, 1, 0, 1, SWC_BUF_SEND);
	swc_t_recv(p, 0, 0, 1, SWC_BUF_RECV, 0, 0);
	swc_t_step(p, SWC_STEP_SYNC);
	swc_t_step(p, SWC_STEP_NET);
	send_by(p, 2, 2);	/* 9 */
	recv_by(p, 2, 0);
	swc_t_channel(p);
	swc_t_step(p, SWC_STEP_NET);
	send_by(p, 2, 0);	/* 11: numbers begin anew */
	recv_by(p, 3, 1);
	recv_by(p, 3, 1);

	l = links_of(test, f, p);
	KUNIT_EXPECT_EQ(test, l->nlinks, 5u);
	expect_link(test, l, 0, 0, 2, 0, 0);
	expect_link(test, l, 1, 1, 2, 0, 1);
	KUNIT_EXPECT_EQ(test, l->link[2], SWC_NO_LINK);
	expect_link(test, l, 3, 0, 4, 0, 0);
	expect_link(test, l, 4, 0, 2, 0, 1);
	expect_link(test, l, 5, 0, 4, 0, 0);
	KUNIT_EXPECT_EQ(test, l->link[6], SWC_NO_LINK);
	KUNIT_EXPECT_EQ(test, l->link[7], SWC_NO_LINK);
	KUNIT_EXPECT_EQ(test, l->link[8], SWC_NO_LINK);
	/* Whatever path the others took. */
	expect_link(test, l, 9, 2, 2, 0, 0);
	expect_link(test, l, 10, 1, 2, 0, 0);
	expect_link(test, l, 11, 0, 2, 1, 0);
	expect_link(test, l, 12, 0, 3, 1, 1);
	expect_link(test, l, 13, 1, 3, 1, 1);
	/* What the first step sends, all others of its channel overwrite, or let other ranks do so. */
	KUNIT_EXPECT_EQ(test, l->fence[0], 0u);
	KUNIT_EXPECT_EQ(test, l->fence[1], 1u);
	KUNIT_EXPECT_EQ(test, l->fence[2], 1u);
	KUNIT_EXPECT_EQ(test, l->fence[3], 1u);
	KUNIT_EXPECT_EQ(test, l->fence[4], 0u);
	KUNIT_EXPECT_FALSE(test, l->open);
	swc_links_free(l);
}

/* Of the transfers before @k in its channel, those with its peer, in its direction. */
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

static struct swc_t_plan *random_plan(struct kunit *test, struct rnd_state *rnd, u32 here)
{
	struct swc_t_plan *p = swc_t_plan(test, SWC_ALLREDUCE, RANKS, 2 * here, RANKS);
	u32 c, s, i;

	for (c = 1 + prandom_u32_state(rnd) % SWC_T_CHANNELS; c; c--) {
		swc_t_channel(p);
		for (s = prandom_u32_state(rnd) % 5; s; s--) {
			swc_t_step(p, SWC_STEP_NET);
			for (i = prandom_u32_state(rnd) % 6; i; i--)
				send_by(p, prandom_u32_state(rnd) % RANKS, prandom_u32_state(rnd));
			for (i = prandom_u32_state(rnd) % 6; i; i--)
				recv_by(p, prandom_u32_state(rnd) % RANKS, prandom_u32_state(rnd));
		}
	}
	return p;
}

/* How far a run may go ahead of its messages. */
static void links_fences(struct kunit *test)
{
	static const u32 npaths[NODES] = { 0, 1, 1 };
	struct fake *f = fake(test, 0, npaths);
	struct swc_t_plan *p = swc_t_plan(test, SWC_ALLREDUCE, RANKS, 0, 32);
	struct swc_plan_view v;
	struct swc_links *l;
	u32 i;

	swc_t_channel(p);
	for (i = 0; i < 20; i++) {
		swc_t_step(p, SWC_STEP_NET);
		swc_t_send(p, 2, i, 1, SWC_BUF_SEND);
		swc_t_recv(p, 2, i + 1, 1, SWC_BUF_RECV, 0, 0);
	}
	swc_t_step(p, SWC_STEP_NET);	/* 20: overwrites what step 17 has sent from the other buffer */
	swc_t_recv(p, 2, 15, 3, SWC_BUF_RECV, 0, 0);
	swc_t_step(p, SWC_STEP_NET);	/* 21: the same numbers, but no such buffer */
	swc_t_recv(p, 2, 15, 3, SWC_BUF_SCRATCH, 0, 0);
	v = view_of(p);
	l = swc_links_make(f->comm, &v);
	KUNIT_ASSERT_FALSE(test, IS_ERR(l));
	KUNIT_EXPECT_EQ(test, l->ahead, (u32)SWC_MAX_AHEAD);
	for (i = 0; i < 20; i++)
		KUNIT_EXPECT_EQ(test, l->fence[i], 0u);
	KUNIT_EXPECT_EQ(test, l->fence[20], 18u);
	KUNIT_EXPECT_EQ(test, l->fence[21], 0u);
	swc_links_free(l);
	/* Many messages in a step: fewer steps. */
	v.max_sends = 100;
	l = swc_links_make(f->comm, &v);
	KUNIT_ASSERT_FALSE(test, IS_ERR(l));
	KUNIT_EXPECT_EQ(test, l->ahead, 2u);
	swc_links_free(l);
}

/* From when on others may write into what a step receives. */
static void links_early(struct kunit *test)
{
	static const u32 npaths[NODES] = { 0, 1, 1 }, want[] = { 0, 0, 2, 1, 4, 5, 6, 5, 8, 8, 10, 8 };
	struct fake *f = fake(test, 0, npaths);
	struct swc_t_plan *p = swc_t_plan(test, SWC_ALLREDUCE, RANKS, 0, 32);
	struct swc_links *l;
	u32 i;

	swc_t_channel(p);
	swc_t_step(p, SWC_STEP_NET);
	swc_t_send(p, 2, 0, 4, SWC_BUF_SEND);
	swc_t_recv(p, 2, 4, 4, SWC_BUF_RECV, SWC_XFER_REDUCE, SWC_BUF_SCRATCH);
	swc_t_step(p, SWC_STEP_NET);
	swc_t_send(p, 2, 4, 2, SWC_BUF_RECV);
	swc_t_recv(p, 2, 6, 2, SWC_BUF_RECV, SWC_XFER_REDUCE, SWC_BUF_RECV);
	swc_t_step(p, SWC_STEP_NET);	/* 2: what step 1 has sent */
	swc_t_recv(p, 2, 3, 2, SWC_BUF_RECV, 0, 0);
	swc_t_step(p, SWC_STEP_NET);	/* 3: what step 0 has sent from the other buffer, or adds to */
	swc_t_recv(p, 2, 0, 3, SWC_BUF_RECV, 0, 0);
	swc_t_recv(p, 2, 4, 4, SWC_BUF_SCRATCH, 0, 0);
	swc_t_step(p, SWC_STEP_SYNC);
	swc_t_step(p, SWC_STEP_NET);	/* 5: others may have used it before the barrier */
	swc_t_recv(p, 2, 20, 1, SWC_BUF_RECV, 0, 0);
	swc_t_send(p, 2, 21, 1, SWC_BUF_RECV);
	swc_t_step(p, SWC_STEP_NET);	/* 6: what step 5 has sent */
	swc_t_recv(p, 2, 21, 1, SWC_BUF_RECV, 0, 0);
	swc_t_step(p, SWC_STEP_NET);	/* 7: what nobody has used */
	swc_t_recv(p, 2, 22, 1, SWC_BUF_RECV, 0, 0);
	swc_t_channel(p);
	swc_t_step(p, SWC_STEP_NET);	/* 8: of another channel */
	swc_t_recv(p, 2, 0, 1, SWC_BUF_RECV, 0, 0);
	swc_t_step(p, SWC_STEP_NET);	/* 9: nothing to store */
	swc_t_send(p, 2, 1, 1, SWC_BUF_RECV);
	swc_t_recv(p, 2, 0, 1, SWC_BUF_RECV, SWC_XFER_REDUCE, SWC_BUF_RECV);
	swc_t_step(p, SWC_STEP_NET);	/* 10: what step 8 has received, and 9 added to */
	swc_t_recv(p, 2, 0, 1, SWC_BUF_RECV, 0, 0);
	swc_t_step(p, SWC_STEP_NET);	/* 11: not so in scratch */
	swc_t_recv(p, 2, 0, 2, SWC_BUF_SCRATCH, 0, 0);
	f->comm->nlocal = 1;
	l = links_of(test, f, p);
	KUNIT_EXPECT_EQ(test, l->kept, (u32)SWC_MAX_KEPT);
	for (i = 0; i < p->hdr.nsteps; i++)
		KUNIT_EXPECT_EQ_MSG(test, l->early[i], want[i], "step %u", i);
	swc_links_free(l);
	/* Other ranks of the node have plans of their own. */
	f->comm->nlocal = 2;
	l = links_of(test, f, p);
	for (i = 0; i < p->hdr.nsteps; i++)
		KUNIT_EXPECT_EQ(test, l->early[i], i);
	swc_links_free(l);
}

/* Random plans against the definition. */
static void links_random(struct kunit *test)
{
	struct rnd_state rnd;
	u32 round;

	prandom_seed_state(&rnd, 20250702);
	for (round = 0; round < 200; round++) {
		u32 here = round % NODES, npaths[NODES], c, i, k;
		struct swc_plan_view v;
		struct swc_t_plan *p;
		struct swc_links *l;
		struct fake *f;

		for (i = 0; i < NODES; i++)
			npaths[i] = i == here ? 0 : 1 + prandom_u32_state(&rnd) % 4;
		f = fake(test, here, npaths);
		p = random_plan(test, &rnd, here);
		v = view_of(p);
		l = swc_links_make(f->comm, &v);
		KUNIT_ASSERT_FALSE(test, IS_ERR(l));
		for (c = 0; c < p->hdr.nchannels; c++) {
			const struct swc_plan_channel *chan = &v.channels[c];

			for (i = chan->first_step; i < chan->first_step + chan->nsteps; i++) {
				const struct swc_plan_step *s = &v.steps[i];

				for (k = s->first_xfer; k < s->first_xfer + s->nsend + s->nrecv; k++) {
					u32 rank = v.xfers[k].rank, node = f->rank_node[rank];
					bool send = k < s->first_xfer + s->nsend;

					if (node == here)
						KUNIT_EXPECT_EQ(test, l->link[k], SWC_NO_LINK);
					else
						expect_link(test, l, k,
							    count_before(&v, chan, k, send), rank, c,
							    v.xfers[k].path % npaths[node]);
				}
			}
		}
		/* None twice. */
		for (i = 0; i < l->nlinks; i++)
			for (k = 0; k < i; k++)
				KUNIT_EXPECT_FALSE(test, l->links[i].peer == l->links[k].peer &&
						   l->links[i].channel == l->links[k].channel &&
						   l->links[i].path == l->links[k].path);
		swc_links_free(l);
		kunit_kfree(test, p);
		kunit_kfree(test, f->comm);
		kunit_kfree(test, f);
	}
}

static void links_none(struct kunit *test)
{
	static const u32 npaths[NODES] = { 0, 1, 0 };
	struct fake *f = fake(test, 0, npaths);
	struct swc_t_plan *p = plan_of(test, 0);
	struct swc_links *l = links_of(test, f, p);
	struct swc_plan_view v;

	KUNIT_EXPECT_EQ(test, l->nlinks, 0u);
	KUNIT_EXPECT_EQ(test, swc_links_open(l, &f->net, 0), 0);
	KUNIT_EXPECT_TRUE(test, l->open);
	swc_links_free(l);

	/* A node without a path matters only to who wants to go there. */
	send_by(p, 3, 0);
	l = links_of(test, f, p);
	KUNIT_EXPECT_EQ(test, l->nlinks, 1u);
	swc_links_free(l);
	send_by(p, 4, 0);
	v = view_of(p);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(swc_links_make(f->comm, &v)), -EHOSTUNREACH);
	swc_links_free(NULL);
}

/* The highest rank only waits to be connected to: its connections are made and nothing more. */
static void links_open(struct kunit *test)
{
	static const u32 npaths[NODES] = { 1, 2, 0 };
	struct fake *f = fake(test, NODES - 1, npaths);
	struct swc_t_plan *p = plan_of(test, RANKS - 1);
	struct swc_links *a, *b, *late;
	struct swc_conn *conn;
	unsigned long key;
	u32 i, n = 0;

	send_by(p, 0, 0);
	send_by(p, 2, 0);
	send_by(p, 2, 1);
	swc_t_channel(p);
	swc_t_step(p, SWC_STEP_NET);
	recv_by(p, 2, 0);
	a = links_of(test, f, p);
	b = links_of(test, f, p);
	late = links_of(test, f, p);
	KUNIT_EXPECT_EQ(test, a->nlinks, 4u);
	KUNIT_EXPECT_EQ(test, swc_links_open(a, &f->net, RANKS - 1), 0);
	KUNIT_EXPECT_EQ(test, swc_links_open(a, &f->net, RANKS - 1), 0);
	/* Plans share connections. */
	KUNIT_EXPECT_EQ(test, swc_links_open(b, &f->net, RANKS - 1), 0);
	for (i = 0; i < 4; i++) {
		conn = a->links[i].conn;
		KUNIT_ASSERT_NOT_NULL(test, conn);
		KUNIT_EXPECT_PTR_EQ(test, b->links[i].conn, conn);
		KUNIT_EXPECT_EQ(test, conn->me, RANKS - 1u);
		KUNIT_EXPECT_EQ(test, conn->peer, a->links[i].peer);
		KUNIT_EXPECT_EQ(test, conn->channel, a->links[i].channel);
		KUNIT_EXPECT_EQ(test, conn->path, a->links[i].path);
		KUNIT_EXPECT_EQ(test, conn->state, SWC_CONN_IDLE);
	}
	xa_for_each(&f->net.conns, key, conn)
		n++;
	KUNIT_EXPECT_EQ(test, n, 4u);

	/* The communicator ends. */
	mutex_lock(&f->net.lock);
	f->net.dead = true;
	mutex_unlock(&f->net.lock);
	xa_for_each(&f->net.conns, key, conn)
		swc_conn_close(conn, 0);
	flush_workqueue(swc_net_wq);
	KUNIT_EXPECT_TRUE(test, xa_empty(&f->net.conns));
	KUNIT_EXPECT_EQ(test, kref_read(&f->comm->ref), 1u);
	KUNIT_EXPECT_EQ(test, swc_links_open(late, &f->net, RANKS - 1), -ECONNABORTED);
	KUNIT_EXPECT_FALSE(test, late->open);
	swc_links_free(a);
	swc_links_free(b);
	swc_links_free(late);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(links_by_hand),
	KUNIT_CASE(links_fences),
	KUNIT_CASE(links_early),
	KUNIT_CASE(links_random),
	KUNIT_CASE(links_none),
	KUNIT_CASE(links_open),
	{}
};

struct kunit_suite swc_links_suite = { .name = "swc_links", .test_cases = cases };
