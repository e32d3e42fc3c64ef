// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The walk through the plans of all ranks. Each rank is one thread per channel. A thread that opens
 * a network step looks for the matching transfers among the open steps of its peers; a peer that
 * opens its step later finds this one in the same way. So no table of pairs is needed. No locks;
 * everything belongs to the caller.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan/model/walk.h"
#include "plan/table.h"

struct swc_plan_view swc_walk_view(const void *plan)
{
	const struct swc_plan_header *h = plan;
	struct swc_plan_view v = { .hdr = h, .nblocks = h->nshards * h->shard_blocks };

	v.channels = (const void *)(h + 1);
	v.steps = (const void *)(v.channels + h->nchannels);
	v.xfers = (const void *)(v.steps + h->nsteps);
	return v;
}

int swc_walk_init(struct swc_walk *w, const struct swc_plan_args *args,
		  const struct swc_topo *nodes, char *why, size_t why_bytes)
{
	struct swc_plan_args a = *args;

	w->nodes = nodes;
	w->nranks = a.nranks;
	w->view = calloc(a.nranks ? a.nranks : 1, sizeof(*w->view));
	if (!w->view)
		return -ENOMEM;
	a.rank = 0;
	do {
		size_t bytes;
		void *plan;
		int ret = swc_plan_build(&a, &plan, &bytes, why, why_bytes);

		if (ret)
			return ret;
		w->view[a.rank] = swc_walk_view(plan);
		w->nsteps += w->view[a.rank].hdr->nsteps;
		if (w->view[a.rank].hdr->nchannels > w->nchannels)
			w->nchannels = w->view[a.rank].hdr->nchannels;
	} while (++a.rank < a.nranks);
	w->nthreads = w->nranks * w->nchannels;
	w->thread = calloc(w->nthreads, sizeof(*w->thread));
	w->queue = calloc(w->nthreads, sizeof(*w->queue));
	w->in_sync = calloc((size_t)nodes->nnodes * w->nchannels, sizeof(*w->in_sync));
	if (!w->thread || !w->queue || !w->in_sync)
		return -ENOMEM;
	swc_walk_rewind(w);
	return 0;
}

void swc_walk_free(struct swc_walk *w)
{
	for (uint32_t i = 0; w->thread && i < w->nthreads; i++)
		free(w->thread[i].half);
	for (uint32_t r = 0; w->view && r < w->nranks; r++)
		free((void *)w->view[r].hdr);
	free(w->view);
	free(w->thread);
	free(w->queue);
	free(w->in_sync);
}

static struct swc_thread *thread_of(struct swc_walk *w, uint32_t rank, uint32_t chan)
{
	return &w->thread[rank * w->nchannels + chan];
}

static void push(struct swc_walk *w, const struct swc_thread *t)
{
	uint32_t at = (uint32_t)(((uint64_t)w->head + w->queued++) % w->nthreads);

	w->queue[at] = (uint32_t)(t - w->thread);
}

void swc_walk_rewind(struct swc_walk *w)
{
	w->head = w->queued = w->ended = 0;
	w->opened = 0;
	for (uint32_t i = 0; i < w->nthreads; i++) {
		struct swc_thread *t = &w->thread[i];

		*t = (struct swc_thread){ .rank = i / w->nchannels,
					  .chan = i % w->nchannels,
					  .room = t->room,
					  .half = t->half };
		push(w, t);
	}
}

/* The transfers of a thread's open step with a peer in one direction; NULL if there are none. */
static struct swc_half *half_of(struct swc_thread *t, uint32_t peer, bool recv)
{
	for (uint32_t i = t->nhalves; i-- > 0;)
		if (t->half[i].peer == peer && t->half[i].recv == recv)
			return &t->half[i];
	return NULL;
}

static bool add_xfer(struct swc_walk *w, struct swc_thread *t, uint32_t peer, bool recv,
		     uint32_t index)
{
	struct swc_half *h = half_of(t, peer, recv);

	if (!h) {
		if (!swc_table_reserve(&t->half, t->nhalves, &t->room, sizeof(*t->half))) {
			w->error = -ENOMEM;
			return false;
		}
		h = &t->half[t->nhalves++];
		*h = (struct swc_half){ .peer = peer,
					.recv = recv,
					.next = index,
					.path = w->view[t->rank].xfers[index].path };
	}
	h->left++;
	h->blocks += w->view[t->rank].xfers[index].nblocks;
	t->left++;
	return true;
}

static void meet(struct swc_walk *w, struct swc_thread *t, struct swc_half *h)
{
	struct swc_thread *p = thread_of(w, h->peer, t->chan);
	struct swc_half *other = half_of(p, t->rank, !h->recv), *s = h->recv ? other : h;
	struct swc_thread *from = h->recv ? p : t;
	uint64_t blocks = 0;
	uint32_t n;

	if (!other || !other->left || !h->left)
		return;
	n = h->left < other->left ? h->left : other->left;
	h->left -= n;
	other->left -= n;
	for (uint32_t i = n; i; s->next++) {
		const struct swc_plan_xfer *x = &w->view[from->rank].xfers[s->next];

		if (x->rank == s->peer) {
			blocks += x->nblocks;
			i--;
		}
	}
	w->met(w, from, h->recv ? t : p, h->path, n, blocks);
}

/* An open step receives as many transfers of a message as it still waits for. */
static void claim(struct swc_walk *w, struct swc_message *m, struct swc_half *h)
{
	uint32_t waits = h ? h->left - h->claimed : 0, left = m->nxfers - m->claimed;
	uint32_t n = waits < left ? waits : left;

	if (!n)
		return;
	m->claimed += n;
	if (m->arrived) {
		h->left -= n;
		swc_walk_done(w, m->to, n);
	} else {
		h->claimed += n;
	}
}

void swc_walk_offer(struct swc_walk *w, struct swc_message *m)
{
	struct swc_message **at = &m->to->offered;

	m->claimed = 0;
	m->arrived = false;
	m->next = NULL;
	/* Not past an earlier one. */
	while (*at && (*at)->from != m->from)
		at = &(*at)->next;
	if (!*at)
		claim(w, m, half_of(m->to, m->from->rank, true));
	while (*at)
		at = &(*at)->next;
	if (m->claimed < m->nxfers)
		*at = m;
}

static void claim_offered(struct swc_walk *w, struct swc_thread *t, struct swc_half *h)
{
	struct swc_message **at = &t->offered;

	while (*at && h->left > h->claimed) {
		struct swc_message *m = *at;
		bool first = !m->claimed;

		if (m->from->rank != h->peer) {
			at = &m->next;
			continue;
		}
		claim(w, m, h);
		if (m->claimed == m->nxfers)
			*at = m->next;
		if (first)
			w->wanted(w, m);
		if (m->claimed == m->nxfers && m->arrived)
			w->over(w, m);
	}
}

void swc_walk_arrived(struct swc_walk *w, struct swc_message *m)
{
	struct swc_half *h = half_of(m->to, m->from->rank, true);

	m->arrived = true;
	if (m->claimed && h) {
		h->claimed -= m->claimed;
		h->left -= m->claimed;
		swc_walk_done(w, m->to, m->claimed);
	}
	if (m->claimed == m->nxfers)
		w->over(w, m);
}

static void open_net(struct swc_walk *w, struct swc_thread *t, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *x = w->view[t->rank].xfers;

	t->begin = t->ready;
	t->opened = w->now;
	t->nhalves = 0;
	for (uint32_t i = 0; i < (uint32_t)s->nsend + s->nrecv; i++)
		if (!add_xfer(w, t, x[s->first_xfer + i].rank, i >= s->nsend, s->first_xfer + i))
			return;
	for (uint32_t i = 0; i < t->nhalves; i++) {
		struct swc_half *h = &t->half[i];

		if (!w->posted)
			meet(w, t, h);
		else if (h->recv)
			claim_offered(w, t, h);
		else
			w->posted(w, t, thread_of(w, h->peer, t->chan), h->path, h->left,
				  h->blocks);
	}
}

/* Enter a barrier. Is it over? The last thread resumes the others. */
static bool pass_sync(struct swc_walk *w, struct swc_thread *t)
{
	uint32_t node = swc_topo_node_of(w->nodes, t->rank);
	uint32_t first = swc_topo_first(w->nodes, node), n = swc_topo_local(w->nodes, node);
	uint32_t *waiting = &w->in_sync[node * w->nchannels + t->chan], ready = 0;

	if (++*waiting < n)
		return false;
	*waiting = 0;
	for (uint32_t r = first; r < first + n; r++)
		if (thread_of(w, r, t->chan)->ready > ready)
			ready = thread_of(w, r, t->chan)->ready;
	for (uint32_t r = first; r < first + n; r++) {
		thread_of(w, r, t->chan)->ready = ready;
		if (r != t->rank)
			push(w, thread_of(w, r, t->chan));
	}
	return true;
}

/* Advance a thread to its next step that takes time. */
static void advance(struct swc_walk *w, struct swc_thread *t)
{
	const struct swc_plan_view *v = &w->view[t->rank];
	const struct swc_plan_channel *c = &v->channels[t->chan];

	while (t->chan < v->hdr->nchannels && t->at < c->nsteps) {
		const struct swc_plan_step *s = &v->steps[c->first_step + t->at++];

		w->opened++;
		if (s->kind == SWC_STEP_SYNC && !pass_sync(w, t))
			return;
		if (s->kind == SWC_STEP_NET && (s->nsend || s->nrecv)) {
			open_net(w, t, s);
			return;
		}
	}
	w->ended++;
}

void swc_walk_go(struct swc_walk *w)
{
	while (w->queued && !w->error) {
		struct swc_thread *t = &w->thread[w->queue[w->head]];

		w->head = (w->head + 1) % w->nthreads;
		w->queued--;
		advance(w, t);
	}
}

void swc_walk_done(struct swc_walk *w, struct swc_thread *t, uint32_t nxfers)
{
	t->left -= nxfers;
	if (!t->left)
		push(w, t);
}

int swc_walk_result(const struct swc_walk *w, char *why, size_t why_bytes)
{
	const struct swc_thread *waits = NULL, *more = NULL;

	if (w->error)
		return w->error;
	for (uint32_t i = w->nthreads; i-- > 0;) {
		waits = w->thread[i].left ? &w->thread[i] : waits;
		more = w->thread[i].offered ? &w->thread[i] : more;
	}
	if (w->ended == w->nthreads && !more)
		return 0;
	if (waits && why_bytes)
		snprintf(why, why_bytes,
			 "the plans do not match: rank %u waits for ever in step %u of channel %u",
			 waits->rank, waits->at - 1, waits->chan);
	else if (more && why_bytes)
		snprintf(why, why_bytes,
			 "the plans do not match: on channel %u rank %u sends rank %u too much",
			 more->chan, more->offered->from->rank, more->rank);
	return -EINVAL;
}
