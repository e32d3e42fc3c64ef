// SPDX-License-Identifier: GPL-2.0-only
/*
 * The links of a plan: which connection each transfer to or from another node uses, and its number there.
 *
 * The i-th send of a to b on a channel meets the i-th receive of b from a; that number travels with the
 * message, so that messages find their receive by whatever path they come.
 */
#include <linux/slab.h>

#include "exec/task.h"
#include "plan/plan_conn.h"
#include "net.h"

/* While a plan is being read: by peer. */
struct peer_count {
	u32 nsend;
	u32 nrecv;
	u32 links;		/* newest link of this channel, chained by maker.next; SWC_NO_LINK: none */
};

struct maker {
	const struct swc_comm *comm;
	const struct swc_plan_view *view;
	struct peer_count *peer;
	struct swc_link *found;
	u32 *next;
	u32 nfound;
	u32 room;
};

static int add_link(struct maker *m, const struct swc_link *link)
{
	if (m->nfound == m->room) {
		u32 room = m->room ? 2 * m->room : 16;
		struct swc_link *found;
		u32 *next;

		found = kvmalloc_array(room, sizeof(*found), GFP_KERNEL_ACCOUNT);
		next = kvmalloc_array(room, sizeof(*next), GFP_KERNEL_ACCOUNT);
		if (!found || !next) {
			kvfree(found);
			kvfree(next);
			return -ENOMEM;
		}
		if (m->nfound) {
			memcpy(found, m->found, m->nfound * sizeof(*found));
			memcpy(next, m->next, m->nfound * sizeof(*next));
		}
		kvfree(m->found);
		kvfree(m->next);
		m->found = found;
		m->next = next;
		m->room = room;
	}
	m->found[m->nfound] = *link;
	m->next[m->nfound] = m->peer[link->peer].links;
	m->peer[link->peer].links = m->nfound++;
	return 0;
}

/* The link of a transfer on @channel, new if it is the first there. */
static int find_link(struct maker *m, const struct swc_plan_xfer *x, u16 channel, u32 *index)
{
	u32 npaths = swc_net_npaths(m->comm->net, m->comm->rank_node[x->rank]);
	struct swc_link link = { .peer = x->rank, .channel = channel };
	int ret;
	u32 i;

	if (!npaths)
		return -EHOSTUNREACH;
	link.path = x->path % npaths;
	for (i = m->peer[x->rank].links; i != SWC_NO_LINK; i = m->next[i]) {
		if (m->found[i].path == link.path) {
			*index = i;
			return 0;
		}
	}
	ret = add_link(m, &link);
	*index = m->nfound - 1;
	return ret;
}

static int read_channel(struct maker *m, u16 channel, u32 *ordinal, u32 *link)
{
	const struct swc_plan_view *v = m->view;
	const struct swc_plan_channel *chan = &v->channels[channel];
	u32 i, k;
	int ret;

	for (i = 0; i < m->comm->nranks; i++)
		m->peer[i] = (struct peer_count){ .links = SWC_NO_LINK };
	for (i = chan->first_step; i < chan->first_step + chan->nsteps; i++) {
		const struct swc_plan_step *s = &v->steps[i];

		if (s->kind != SWC_STEP_NET)
			continue;
		for (k = s->first_xfer; k < s->first_xfer + s->nsend + s->nrecv; k++) {
			const struct swc_plan_xfer *x = &v->xfers[k];
			struct peer_count *peer = &m->peer[x->rank];

			if (swc_comm_is_local(m->comm, x->rank))
				continue;
			ordinal[k] = k < s->first_xfer + s->nsend ? peer->nsend++ : peer->nrecv++;
			ret = find_link(m, x, channel, &link[k]);
			if (ret)
				return ret;
		}
		cond_resched();
	}
	return 0;
}

/* ------------------------------------------------------------------ fences */

/* Beyond so many blocks looked at, a plan gets no more freedom than one step at a time. */
#define FENCE_BUDGET	(4u << 20)

/* What the steps of a channel have done so far. Steps count from 1 here: behind which it was. */
struct past {
	/* By block, of the user's buffers, which may be one, and of scratch: */
	u32 *sent[2];		/* last sent to another node */
	u32 *used[2];		/* last used at all */
	u32 nblocks;
	u32 budget;
	u32 any_sent;
	u32 others;		/* others of this node may have used anything */
};

static u32 last_in(u32 *const *table, u8 buf, const struct swc_plan_xfer *x)
{
	const u32 *at = table[buf == SWC_BUF_SCRATCH] + x->first_block;
	u32 b, last = 0;

	for (b = 0; b < x->nblocks; b++)
		last = max(last, at[b]);
	return last;
}

static void note_in(u32 *const *table, u8 buf, const struct swc_plan_xfer *x, u32 step)
{
	u32 *at = table[buf == SWC_BUF_SCRATCH] + x->first_block;
	u32 b;

	for (b = 0; b < x->nblocks; b++)
		at[b] = step;
}

/* What the step @s, number @i, must wait for; and note what it sends. */
static u32 fence_of(const struct swc_comm *comm, const struct swc_plan_view *v, u32 i, struct past *past)
{
	const struct swc_plan_step *s = &v->steps[i];
	u32 k, fence = 0;

	/* Other ranks of this node may overwrite anything in local steps, and know of no message. */
	if (s->kind != SWC_STEP_NET)
		return past->any_sent;
	for (k = s->first_xfer + s->nsend; k < s->first_xfer + s->nsend + s->nrecv; k++)
		fence = max(fence, last_in(past->sent, v->xfers[k].buf, &v->xfers[k]));
	for (k = s->first_xfer; k < s->first_xfer + s->nsend; k++) {
		if (swc_comm_is_local(comm, v->xfers[k].rank))
			continue;
		past->any_sent = i + 1;
		note_in(past->sent, v->xfers[k].buf, &v->xfers[k], i + 1);
	}
	return fence;
}

/* From which step on the memory that the step @s, number @i, stores into is free; and note what it uses. */
static u32 early_of(const struct swc_comm *comm, const struct swc_plan_view *v, u32 i, struct past *past)
{
	const struct swc_plan_step *s = &v->steps[i];
	const struct swc_plan_xfer *x = &v->xfers[s->first_xfer], *recv = x + s->nsend;
	u32 k, early;

	if (s->kind != SWC_STEP_NET)
		past->others = i + 1;
	/* Several ranks wait for each other in ways that this plan does not tell. */
	early = comm->nlocal > 1 ? i : past->others;
	for (k = 0; k < s->nsend; k++)
		note_in(past->used, x[k].buf, &x[k], i + 1);
	for (k = 0; k < s->nrecv; k++)
		if (recv[k].flags & SWC_XFER_REDUCE)
			note_in(past->used, recv[k].operand, &recv[k], i + 1);
	for (k = 0; k < s->nrecv; k++)
		if (!(recv[k].flags & SWC_XFER_REDUCE))
			early = max(early, last_in(past->used, recv[k].buf, &recv[k]));
	for (k = 0; k < s->nrecv; k++)
		note_in(past->used, recv[k].buf, &recv[k], i + 1);
	return min(early, i);
}

static void look_at_step(const struct swc_comm *comm, const struct swc_plan_view *v, u32 i,
			 struct past *past, struct swc_links *links)
{
	const struct swc_plan_step *s = &v->steps[i];
	u32 k;

	for (k = s->first_xfer; s->kind == SWC_STEP_NET && k < s->first_xfer + s->nsend + s->nrecv; k++)
		past->budget -= min(past->budget, v->xfers[k].nblocks);
	links->fence[i] = past->budget ? fence_of(comm, v, i, past) : i;
	links->early[i] = past->budget ? early_of(comm, v, i, past) : i;
}

static int make_fences(const struct swc_comm *comm, const struct swc_plan_view *v, struct swc_links *links)
{
	struct past past = { .nblocks = v->nblocks, .budget = FENCE_BUDGET };
	u32 c, i;

	/* A run has records for all of these. */
	links->ahead = clamp(256 / max(v->max_sends, 1u), 1u, (u32)SWC_MAX_AHEAD);
	links->kept = clamp(64 / max(v->max_recvs, 1u), 1u, (u32)SWC_MAX_KEPT);
	past.sent[0] = kvmalloc_array(past.nblocks, 4 * sizeof(u32), GFP_KERNEL_ACCOUNT);
	if (!past.sent[0])
		return -ENOMEM;
	past.sent[1] = past.sent[0] + past.nblocks;
	past.used[0] = past.sent[1] + past.nblocks;
	past.used[1] = past.used[0] + past.nblocks;
	for (c = 0; c < v->hdr->nchannels; c++) {
		u32 first = v->channels[c].first_step;

		if (!v->channels[c].nsteps)
			continue;
		memset(past.sent[0], 0, 4 * sizeof(u32) * past.nblocks);
		past.budget -= min(past.budget, past.nblocks);
		past.any_sent = 0;
		past.others = first;
		for (i = first; i < first + v->channels[c].nsteps; i++)
			look_at_step(comm, v, i, &past, links);
		cond_resched();
	}
	kvfree(past.sent[0]);
	return 0;
}

/* ------------------------------------------------------------------ life */

/**
 * swc_links_make() - find the links of a verified plan
 *
 * Return: to be freed with swc_links_free(); -EHOSTUNREACH if a peer's node has no path; -ENOMEM.
 */
struct swc_links *swc_links_make(const struct swc_comm *comm, const struct swc_plan_view *view)
{
	struct maker m = { .comm = comm, .view = view };
	u32 i, n = view->hdr->nxfers, *tables;
	struct swc_links *links = NULL;
	int ret = -ENOMEM;

	tables = kvmalloc_array(2 * n + 2 * view->hdr->nsteps + 1, sizeof(u32), GFP_KERNEL_ACCOUNT);
	m.peer = kvmalloc_array(comm->nranks, sizeof(*m.peer), GFP_KERNEL_ACCOUNT);
	if (!tables || !m.peer)
		goto out;
	for (i = 0; i < n; i++)
		tables[n + i] = SWC_NO_LINK;
	for (i = 0; i < view->hdr->nchannels; i++) {
		ret = read_channel(&m, i, tables, tables + n);
		if (ret)
			goto out;
	}
	ret = -ENOMEM;
	links = kvzalloc(struct_size(links, links, m.nfound), GFP_KERNEL_ACCOUNT);
	if (!links)
		goto out;
	mutex_init(&links->lock);
	links->ordinal = tables;
	links->link = tables + n;
	links->fence = tables + 2 * n;
	links->early = links->fence + view->hdr->nsteps;
	links->nlinks = m.nfound;
	if (m.nfound)
		memcpy(links->links, m.found, m.nfound * sizeof(*m.found));
	ret = make_fences(comm, view, links);
	if (ret) {
		kvfree(links);
		links = NULL;
		goto out;
	}
	tables = NULL;
out:
	kvfree(tables);
	kvfree(m.peer);
	kvfree(m.found);
	kvfree(m.next);
	return links ?: ERR_PTR(ret);
}

/**
 * swc_links_open() - see to it that the connections are there, or on their way
 *
 * Does not wait for them: what is sent meanwhile waits in them.
 */
int swc_links_open(struct swc_links *links, struct swc_net *net, u32 me)
{
	int ret = 0;
	u32 i;

	/* Pairs with the release below: who sees it open sees all connections. */
	if (smp_load_acquire(&links->open))
		return 0;
	mutex_lock(&links->lock);
	for (i = 0; i < links->nlinks && !ret; i++) {
		struct swc_link *link = &links->links[i];
		struct swc_conn *conn;

		if (link->conn)
			continue;
		conn = swc_conn_get(net, me, link->peer, link->channel, link->path);
		if (IS_ERR(conn))
			ret = PTR_ERR(conn);
		else
			link->conn = conn;
	}
	if (!ret) {
		/* Pairs with the acquire above. */
		smp_store_release(&links->open, true);
	}
	mutex_unlock(&links->lock);
	return ret;
}

void swc_links_free(struct swc_links *links)
{
	u32 i;

	if (!links)
		return;
	for (i = 0; i < links->nlinks; i++)
		if (links->links[i].conn)
			swc_conn_put(links->links[i].conn);
	kvfree(links->ordinal);
	kvfree(links);
}
