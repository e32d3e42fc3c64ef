// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connections that a plan needs: which of them each transfer to or from another node uses, and the
 * number of the message there.
 *
 * The i-th send of a to b on a channel meets the i-th receive of b from a; that number, the ordinal,
 * travels with the message, so that messages find their receive on any path.
 */
#include <linux/slab.h>

#include "comm/comm.h"
#include "compat.h"
#include "net.h"
#include "plan/hazard.h"
#include "plan/plan_conn.h"

/* While a channel is being read: by peer. */
struct peer_count {
	u32 nsend;
	u32 nrecv;
	u32 last;		/* newest connection, chained by builder.next, or SWC_NO_CONN */
};

/* While a plan is being read. */
struct builder {
	const struct swc_comm *comm;
	const struct swc_plan_view *view;
	struct peer_count *peer;
	struct swc_plan_conn *conns;
	u32 *next;
	u32 nconns;
	u32 room;
};

static int add_conn(struct builder *b, const struct swc_plan_conn *conn)
{
	if (b->nconns == b->room) {
		u32 room = b->room ? 2 * b->room : 16;
		struct swc_plan_conn *conns;
		u32 *next;

		conns = swc_kvgrow(b->conns, b->nconns, room, sizeof(*conns));
		if (!conns)
			return -ENOMEM;
		b->conns = conns;
		next = swc_kvgrow(b->next, b->nconns, room, sizeof(*next));
		if (!next)
			return -ENOMEM;
		b->next = next;
		b->room = room;
	}
	b->conns[b->nconns] = *conn;
	b->next[b->nconns] = b->peer[conn->peer].last;
	b->peer[conn->peer].last = b->nconns++;
	return 0;
}

/* The connection of a transfer on @channel, new if the transfer is the first there. */
static int find_conn(struct builder *b, const struct swc_plan_xfer *x, u16 channel, u32 *index)
{
	u32 npaths = swc_net_npaths(b->comm->net, b->comm->rank_node[x->rank]);
	struct swc_plan_conn conn = { .peer = x->rank, .channel = channel };
	int ret;
	u32 i;

	if (!npaths)
		return -EHOSTUNREACH;
	conn.path = x->path % npaths;
	for (i = b->peer[x->rank].last; i != SWC_NO_CONN; i = b->next[i]) {
		if (b->conns[i].path == conn.path) {
			*index = i;
			return 0;
		}
	}
	ret = add_conn(b, &conn);
	*index = b->nconns - 1;
	return ret;
}

static int read_channel(struct builder *b, u16 channel, u32 *ordinal, u32 *conn_of)
{
	const struct swc_plan_view *v = b->view;
	const struct swc_plan_channel *chan = &v->channels[channel];
	u32 i, k;
	int ret;

	for (i = 0; i < b->comm->nranks; i++)
		b->peer[i] = (struct peer_count){ .last = SWC_NO_CONN };
	for (i = chan->first_step; i < chan->first_step + chan->nsteps; i++) {
		const struct swc_plan_step *s = &v->steps[i];

		if (s->kind != SWC_STEP_NET)
			continue;
		for (k = s->first_xfer; k < s->first_xfer + s->nsend + s->nrecv; k++) {
			const struct swc_plan_xfer *x = &v->xfers[k];
			struct peer_count *peer = &b->peer[x->rank];

			if (swc_comm_is_local(b->comm, x->rank))
				continue;
			ordinal[k] = k < s->first_xfer + s->nsend ? peer->nsend++ : peer->nrecv++;
			ret = find_conn(b, x, channel, &conn_of[k]);
			if (ret)
				return ret;
		}
		cond_resched();
	}
	return 0;
}

/* The most messages of a network step of each channel, for the records of its task. */
static void find_most(struct swc_plan_net *pnet, const struct swc_plan_view *v)
{
	u32 c, i;

	for (c = 0; c < v->hdr->nchannels; c++) {
		const struct swc_plan_channel *chan = &v->channels[c];

		for (i = chan->first_step; i < chan->first_step + chan->nsteps; i++) {
			const struct swc_plan_step *s = &v->steps[i];

			if (s->kind != SWC_STEP_NET)
				continue;
			pnet->max_sends[c] = max_t(u32, pnet->max_sends[c], s->nsend);
			pnet->max_recvs[c] = max_t(u32, pnet->max_recvs[c], s->nrecv);
		}
		cond_resched();
	}
}

/* ------------------------------------------------------------------ life */

/* The most memory that swc_plan_net_create() needs for this plan, in the end. */
u64 swc_plan_net_bytes(const struct swc_plan_view *view)
{
	return sizeof(struct swc_plan_net) + 2ull * sizeof(u32) * (view->hdr->nxfers + view->hdr->nsteps) +
	       (u64)view->hdr->nxfers * sizeof(struct swc_plan_conn);
}

/**
 * swc_plan_net_create() - find the connections that a verified plan needs
 *
 * Return: to be freed with swc_plan_net_free(); -EHOSTUNREACH if a peer's node has no path; -ENOMEM.
 */
struct swc_plan_net *swc_plan_net_create(const struct swc_comm *comm, const struct swc_plan_view *view)
{
	struct builder b = { .comm = comm, .view = view };
	u32 i, n = view->hdr->nxfers, *tables;
	struct swc_plan_net *pnet = NULL;
	int ret = -ENOMEM;

	tables = kvmalloc_array(2 * n + 2 * view->hdr->nsteps + 1, sizeof(u32), GFP_KERNEL_ACCOUNT);
	b.peer = kvmalloc_array(comm->nranks, sizeof(*b.peer), GFP_KERNEL_ACCOUNT);
	if (!tables || !b.peer)
		goto out;
	for (i = 0; i < n; i++)
		tables[n + i] = SWC_NO_CONN;
	for (i = 0; i < view->hdr->nchannels; i++) {
		ret = read_channel(&b, i, tables, tables + n);
		if (ret)
			goto out;
	}
	ret = -ENOMEM;
	pnet = kvzalloc(struct_size(pnet, conns, b.nconns), GFP_KERNEL_ACCOUNT);
	if (!pnet)
		goto out;
	mutex_init(&pnet->lock);
	pnet->ordinal = tables;
	pnet->conn_of = tables + n;
	pnet->fence = tables + 2 * n;
	pnet->free_from = pnet->fence + view->hdr->nsteps;
	pnet->nconns = b.nconns;
	if (b.nconns)
		memcpy(pnet->conns, b.conns, b.nconns * sizeof(*b.conns));
	find_most(pnet, view);
	ret = swc_hazards_find(comm, view, pnet);
	if (ret) {
		kvfree(pnet);
		pnet = NULL;
		goto out;
	}
	tables = NULL;
out:
	kvfree(tables);
	kvfree(b.peer);
	kvfree(b.conns);
	kvfree(b.next);
	return pnet ?: ERR_PTR(ret);
}

/**
 * swc_plan_net_open() - open the connections of a plan
 *
 * Does not wait for them: messages queue in them meanwhile.
 */
int swc_plan_net_open(struct swc_plan_net *pnet, struct swc_net *net, u32 me)
{
	int ret = 0;
	u32 i;

	/* Pairs with the release below: with @open, all connections are visible. */
	if (smp_load_acquire(&pnet->open))
		return 0;
	mutex_lock(&pnet->lock);
	for (i = 0; i < pnet->nconns && !ret; i++) {
		struct swc_plan_conn *pc = &pnet->conns[i];
		struct swc_conn *conn;

		if (pc->conn)
			continue;
		conn = swc_conn_get(net, me, pc->peer, pc->channel, pc->path);
		if (IS_ERR(conn))
			ret = PTR_ERR(conn);
		else
			pc->conn = conn;
	}
	if (!ret) {
		/* Pairs with the acquire above. */
		smp_store_release(&pnet->open, true);
	}
	mutex_unlock(&pnet->lock);
	return ret;
}

void swc_plan_net_free(struct swc_plan_net *pnet)
{
	u32 i;

	if (!pnet)
		return;
	for (i = 0; i < pnet->nconns; i++)
		if (pnet->conns[i].conn)
			swc_conn_put(pnet->conns[i].conn);
	kvfree(pnet->ordinal);
	kvfree(pnet);
}
