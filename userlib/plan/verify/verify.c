// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Proof that a set of plans is right: the plans of all ranks run on symbols instead of numbers.
 *
 * Each block of each buffer is a cell. A cell's value says whose contributions it has, how many
 * FINAL marks it has passed, and in which order it was reduced. Values do not change once they are
 * stored; cells and messages share them and count references. In place, the cells of SEND and RECV
 * are the same.
 *
 * Channels never wait for one another, so they run one after the other. On a channel each rank is a
 * thread; pairs.c finds first which send meets which receive. Then threads run as far as they can;
 * one that waits is resumed by the event that it waits for.
 *
 * One run cannot show what another order of events would do. Two rules make up for that. First, no
 * channel may write a cell that another channel accesses, because nothing orders them. Second,
 * within a channel whose LOCAL steps access buffers of other ranks, each thread has a vector clock:
 * it knows which steps of the other threads are certain to be over when it starts a step. A step
 * that accesses a cell is a fault if a step that is not certain to be over has written the cell, or
 * has read it and this one writes it. In other channels a cell is accessed by one thread only and
 * needs no clock. Without faults every order gives the result that this run gives. A send reads its
 * cells from the start of its step to its end, whichever end copies.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/verify/cells.h"

#define NONE SWC_VERIFY_NONE

static uint32_t node_of(const struct swc_verify_machine *m, uint32_t rank)
{
	return m->nodes ? swc_topo_node_of(m->nodes, rank) : 0;
}

static uint32_t node_first(const struct swc_verify_machine *m, uint32_t node)
{
	return m->nodes ? swc_topo_first(m->nodes, node) : 0;
}

static uint32_t node_ranks(const struct swc_verify_machine *m, uint32_t node)
{
	return m->nodes ? swc_topo_local(m->nodes, node) : m->nranks;
}

/*
 * Do two ranges have the same size for any vector? They begin at the same place of a shard and have
 * as many blocks.
 */
static bool same_size(const struct swc_verify_machine *m, const struct swc_plan_xfer *a,
		      const struct swc_plan_xfer *b)
{
	return a->nblocks == b->nblocks &&
	       a->first_block % m->shard_blocks == b->first_block % m->shard_blocks;
}

/* ---- threads ---- */

static void join(const struct swc_verify_machine *m, uint32_t *into, const uint32_t *from)
{
	for (uint32_t i = 0; i < m->nranks; i++)
		if (into[i] < from[i])
			into[i] = from[i];
}

/* Queue a thread whose step is over or has not begun. A thread is queued at most once. */
static void resume(struct swc_verify_machine *m, const struct swc_verify_thread *t)
{
	m->queue[m->queued++] = t->rank;
}

static void begin_step(struct swc_verify_machine *m, struct swc_verify_thread *t)
{
	t->posted = true;
	if (m->clocks)
		memcpy(t->next, t->clock, m->nranks * sizeof(*t->next));
}

static void end_step(struct swc_verify_machine *m, struct swc_verify_thread *t)
{
	t->at++;
	t->posted = false;
	for (uint32_t i = 0; i < t->used; i++)
		swc_verify_drop(m, t->message[i]);
	t->used = 0;
	if (!m->clocks)
		return;
	t->next[t->rank] = t->at + 1;
	memcpy(t->clock, t->next, m->nranks * sizeof(*t->clock));
}

/* ---- local steps ---- */

static void local_block(struct swc_verify_machine *m, struct swc_verify_thread *t,
			const struct swc_plan_step *s, const struct swc_plan_xfer *x, uint32_t i)
{
	const struct swc_plan_xfer *dst = x + s->nsend;
	uint64_t source = swc_verify_cell_at(m, x->rank, x->buf, x->first_block + i);
	uint32_t sum = swc_verify_load(m, t, x->rank, x->buf, x->first_block + i);

	for (uint32_t k = 1; !m->error && k < s->nsend; k++) {
		uint32_t v = swc_verify_load(m, t, x[k].rank, x[k].buf, x[k].first_block + i);

		if (!m->error)
			sum = swc_verify_reduce(m, t, sum, v);
		swc_verify_drop(m, v);
	}
	sum = swc_verify_mark_final(m, dst, sum);
	for (uint32_t k = 0; !m->error && k < s->nrecv; k++) {
		uint64_t at = swc_verify_cell_at(m, dst[k].rank, dst[k].buf,
						 dst[k].first_block + i);

		/* A copy onto itself stores nothing. */
		if (s->nsend > 1 || at != source)
			swc_verify_touch_write(m, t, at);
		swc_verify_store(m, at, swc_verify_hold(m, sum));
	}
	swc_verify_drop(m, sum);
}

/* Are two ranges of a rank's buffers in the same memory? */
static bool same_memory(const struct swc_verify_machine *m, uint32_t rank, uint8_t a, uint8_t b)
{
	return a == b || (m->in_place[rank] && a != SWC_BUF_SCRATCH && b != SWC_BUF_SCRATCH);
}

/* Within a step, element i of a destination may be element i of a source, but no other. */
static void check_local_overlap(struct swc_verify_machine *m, struct swc_verify_thread *t,
				const struct swc_plan_step *s, const struct swc_plan_xfer *x)
{
	for (uint32_t d = s->nsend; d < (uint32_t)s->nsend + s->nrecv; d++) {
		for (uint32_t k = 0; k < (uint32_t)s->nsend + s->nrecv; k++) {
			int64_t apart = (int64_t)x[d].first_block - x[k].first_block;

			if (k == d || x[k].rank != x[d].rank || llabs(apart) >= x[d].nblocks ||
			    (apart == 0 && k < s->nsend))
				continue;
			if (same_memory(m, x[d].rank, x[k].buf, x[d].buf))
				STEP_FAULT(m, t, "ranges overlap");
		}
	}
}

static void run_local(struct swc_verify_machine *m, struct swc_verify_thread *t)
{
	const struct swc_plan_step *s = swc_verify_step_of(m, t);
	const struct swc_plan_xfer *x = &m->view[t->rank].xfers[s->first_xfer];
	uint32_t node = node_of(m, t->rank);

	begin_step(m, t);
	for (uint32_t k = 0; k < (uint32_t)s->nsend + s->nrecv; k++) {
		if (!same_size(m, &x[0], &x[k]))
			STEP_FAULT(m, t, "ranges of different size");
		if (node_of(m, x[k].rank) != node)
			STEP_FAULT(m, t, "rank %u is on another node", x[k].rank);
		swc_verify_check_range(m, t, &x[k], x[k].buf, x[k].rank);
	}
	check_local_overlap(m, t, s, x);
	for (uint32_t i = 0; !m->error && i < x->nblocks; i++)
		local_block(m, t, s, x, i);
	end_step(m, t);
}

/* One copy after the other: each is a local step of its own, only that it begins with the step. */
static void run_copies(struct swc_verify_machine *m, struct swc_verify_thread *t)
{
	const struct swc_plan_step *s = swc_verify_step_of(m, t);
	const struct swc_plan_step one = { .kind = SWC_STEP_LOCAL, .nsend = 1, .nrecv = 1 };
	const struct swc_plan_xfer *x = &m->view[t->rank].xfers[s->first_xfer];

	begin_step(m, t);
	for (uint32_t k = 0; !m->error && k < s->nsend; k++) {
		const struct swc_plan_xfer pair[2] = { x[k], x[s->nsend + k] };

		if (!same_size(m, &pair[0], &pair[1]))
			STEP_FAULT(m, t, "ranges of different size");
		check_local_overlap(m, t, &one, pair);
		for (uint32_t i = 0; !m->error && i < pair->nblocks; i++)
			local_block(m, t, &one, pair, i);
	}
	end_step(m, t);
}

/* ---- barriers ---- */

/* The last thread that reaches the barrier resumes all. */
static void run_sync(struct swc_verify_machine *m, struct swc_verify_thread *t)
{
	uint32_t node = node_of(m, t->rank), n = node_ranks(m, node);
	struct swc_verify_thread *all = m->thread + node_first(m, node);

	begin_step(m, t);
	if (++m->in_sync[node] < n)
		return;
	m->in_sync[node] = 0;
	for (uint32_t i = 0; m->clocks && i < n; i++)
		join(m, t->next, all[i].clock);
	for (uint32_t i = 0; i < n; i++) {
		if (m->clocks && &all[i] != t)
			memcpy(all[i].next, t->next, m->nranks * sizeof(*t->next));
		resume(m, &all[i]);
	}
}

/* ---- network steps ---- */

static bool overlap(const struct swc_verify_machine *m, uint32_t rank,
		    const struct swc_plan_xfer *a, const struct swc_plan_xfer *b, uint8_t bbuf)
{
	return a->first_block < b->first_block + b->nblocks &&
	       b->first_block < a->first_block + a->nblocks && same_memory(m, rank, a->buf, bbuf);
}

/*
 * Transfers of one step are concurrent: no receive may write what a send reads, or what another
 * receive accesses, unless the later one of the two reduces: it is done after those before it.
 */
static void check_net_overlap(struct swc_verify_machine *m, struct swc_verify_thread *t,
			      const struct swc_plan_step *s, const struct swc_plan_xfer *x)
{
	for (uint32_t w = s->nsend; w < (uint32_t)s->nsend + s->nrecv; w++) {
		for (uint32_t k = 0; k < (uint32_t)s->nsend + s->nrecv; k++) {
			bool ordered = k >= s->nsend && x[k > w ? k : w].flags & SWC_XFER_REDUCE;
			bool hit = overlap(m, t->rank, &x[w], &x[k], x[k].buf);

			if (k >= s->nsend && x[k].flags & SWC_XFER_REDUCE)
				hit |= overlap(m, t->rank, &x[w], &x[k], x[k].operand);
			if (k != w && hit && !ordered)
				STEP_FAULT(m, t, "receive %u writes what transfer %u uses",
					   w - s->nsend, k);
		}
	}
}

/*
 * Store the blocks of one receive. The message has the values from the beginning of the sender's
 * step.
 */
static void receive(struct swc_verify_machine *m, struct swc_verify_thread *t,
		    const struct swc_plan_xfer *x, const uint32_t *message)
{
	for (uint32_t i = 0; !m->error && i < x->nblocks; i++) {
		uint32_t v = swc_verify_hold(m, message[i]);
		uint64_t at = swc_verify_cell_at(m, t->rank, x->buf, x->first_block + i);

		if (x->flags & SWC_XFER_REDUCE) {
			uint32_t o = swc_verify_load(m, t, t->rank, x->operand, x->first_block + i);

			if (!m->error)
				v = swc_verify_reduce(m, t, v, o);
			swc_verify_drop(m, o);
		}
		swc_verify_touch_write(m, t, at);
		swc_verify_store(m, at, swc_verify_mark_final(m, x, v));
	}
}

/* Do both ends of a message agree on how it is moved? */
static bool same_handling(struct swc_verify_machine *m, const struct swc_verify_thread *t,
			  const struct swc_plan_xfer *send, const struct swc_plan_xfer *recv)
{
	bool stored = send->flags & SWC_XFER_STORED, reduced = recv->flags & SWC_XFER_REDUCE;

	if (stored == reduced)
		STEP_FAULT(m, t, "rank %u sends %s what rank %u %s", recv->rank,
			   stored ? "as stored" : "without the stored mark", t->rank,
			   reduced ? "reduces" : "stores");
	else if (send->path != recv->path)
		STEP_FAULT(m, t, "rank %u sends by path %u what rank %u receives by path %u",
			   recv->rank, send->path, t->rank, recv->path);
	return !m->error;
}

static void xfer_done(struct swc_verify_machine *m, struct swc_verify_thread *t,
		      struct swc_verify_link *l)
{
	l->done = true;
	if (!--t->left)
		resume(m, t);
}

/* Do receive k of the plan if its sender's step is open. Returns whether it was done. */
static bool try_receive(struct swc_verify_machine *m, struct swc_verify_thread *t, uint32_t k)
{
	const struct swc_plan_xfer *x = &m->view[t->rank].xfers[k], *sx;
	struct swc_verify_thread *from = &m->thread[x->rank];
	struct swc_verify_link *l = &m->link[t->rank][k], *sl;
	const struct swc_plan_step *s;

	if (m->error || l->done || l->other == NONE || !from->posted)
		return false;
	s = swc_verify_step_of(m, from);
	if (s->kind != SWC_STEP_NET || l->other < s->first_xfer ||
	    l->other - s->first_xfer >= s->nsend)
		return false;
	sl = &m->link[x->rank][l->other];
	sx = &m->view[x->rank].xfers[l->other];
	if (!same_size(m, sx, x)) {
		STEP_FAULT(m, t, "rank %u sends another size", x->rank);
		return false;
	}
	if (!same_handling(m, t, sx, x))
		return false;
	receive(m, t, x, from->message + sl->at);
	if (m->clocks) {
		/* Both ends have begun the step now, and end it later. */
		join(m, t->next, from->clock);
		join(m, from->next, t->clock);
	}
	xfer_done(m, from, sl);
	xfer_done(m, t, l);
	return true;
}

/* A message has arrived for receive k. Receives that reduce are done after those before them. */
static void arrive(struct swc_verify_machine *m, struct swc_verify_thread *t, uint32_t k)
{
	const struct swc_plan_step *s = swc_verify_step_of(m, t);
	const struct swc_plan_xfer *x = m->view[t->rank].xfers;
	uint32_t end = s->first_xfer + s->nsend + s->nrecv;

	if (!(x[k].flags & SWC_XFER_REDUCE))
		try_receive(m, t, k);
	while (t->next_recv < end &&
	       (m->link[t->rank][t->next_recv].done || try_receive(m, t, t->next_recv)))
		t->next_recv++;
}

static void run_net(struct swc_verify_machine *m, struct swc_verify_thread *t)
{
	const struct swc_plan_step *s = swc_verify_step_of(m, t);
	const struct swc_plan_xfer *x = m->view[t->rank].xfers;
	struct swc_verify_link *l = m->link[t->rank];
	uint32_t recv = s->first_xfer + s->nsend;

	check_net_overlap(m, t, s, x + s->first_xfer);
	begin_step(m, t);
	t->left = (uint32_t)s->nsend + s->nrecv;
	t->next_recv = recv;
	for (uint32_t k = s->first_xfer; !m->error && k < recv; k++) {
		l[k].at = t->used;
		if (!swc_verify_grow(m, &t->message, (uint64_t)t->used + x[k].nblocks, &t->room,
				     sizeof(*t->message)))
			return;
		for (uint32_t i = 0; !m->error && i < x[k].nblocks; i++)
			t->message[t->used++] = swc_verify_load(m, t, t->rank, x[k].buf,
								x[k].first_block + i);
	}
	for (uint32_t k = s->first_xfer; !m->error && k < recv; k++) {
		struct swc_verify_thread *to = &m->thread[x[k].rank];
		const struct swc_plan_step *ts = to->posted ? swc_verify_step_of(m, to) : NULL;
		uint32_t other = l[k].other;

		if (ts && other != NONE && other < ts->first_xfer + ts->nsend + ts->nrecv)
			arrive(m, to, other);
	}
	for (uint32_t k = recv; !m->error && k < recv + s->nrecv; k++)
		arrive(m, t, k);
}

/* ---- all channels ---- */

static void check_plans(struct swc_verify_machine *m, const void *const *plans, const size_t *bytes)
{
	for (uint32_t r = 0; !m->error && r < m->nranks; r++) {
		const struct swc_plan_header *h, *h0;
		char why[120];

		if (swc_plan_check(plans[r], bytes[r], &m->view[r], why, sizeof(why))) {
			swc_verify_fault(m, r, "%s", why);
			return;
		}
		h = m->view[r].hdr;
		h0 = m->view[0].hdr;
		if (h->nranks != m->nranks || h->rank != r)
			swc_verify_fault(m, r, "plan is for rank %u of %u", h->rank, h->nranks);
		else if (h->coll != h0->coll || h->root != h0->root || h->family != h0->family ||
			 h->shard_blocks != h0->shard_blocks || h->nchannels != h0->nchannels)
			swc_verify_fault(m, r, "plan is of another family than rank 0's");
		else if (m->in_place[r] && (h->flags & SWC_PLAN_NOT_IN_PLACE))
			swc_verify_fault(m, r, "plan is not for in-place operations");
	}
	if (m->nodes && m->nodes->nranks != m->nranks)
		swc_verify_fault(m, 0, "there are %u plans, but %u ranks on the nodes", m->nranks,
				 m->nodes->nranks);
}

/* Do LOCAL steps of the channel access other ranks' buffers? */
static bool accesses_others(const struct swc_verify_machine *m, uint32_t chan)
{
	for (uint32_t r = 0; r < m->nranks; r++) {
		uint32_t nsteps;
		const struct swc_plan_step *s = swc_verify_steps(m, r, chan, &nsteps);

		for (uint32_t i = 0; i < nsteps; i++)
			for (uint32_t k = 0;
			     s[i].kind == SWC_STEP_LOCAL && k < (uint32_t)s[i].nsend + s[i].nrecv;
			     k++)
				if (m->view[r].xfers[s[i].first_xfer + k].rank != r)
					return true;
	}
	return false;
}

static void setup(struct swc_verify_machine *m)
{
	uint64_t nxfers = 0, at = 0, n = m->nranks;
	struct swc_verify_link *link;
	bool clocks = m->view[0].hdr->coll == SWC_BARRIER;

	m->nblocks = m->view[0].nblocks;
	m->shard_blocks = m->view[0].hdr->shard_blocks;
	m->coll = m->view[0].hdr->coll;
	m->words = (m->nranks + 63) / 64;
	swc_verify_setup_cells(m);
	for (uint32_t r = 0; r < m->nranks; r++)
		nxfers += m->view[r].hdr->nxfers;
	m->link = swc_verify_alloc(m, n, sizeof(*m->link));
	link = swc_verify_alloc(m, nxfers, sizeof(*link));
	if (m->link)
		m->link[0] = link;
	for (uint32_t r = 0; !m->error && r < m->nranks; r++) {
		m->link[r] = link + at;
		at += m->view[r].hdr->nxfers;
	}
	for (uint64_t i = 0; !m->error && i < nxfers; i++)
		link[i].other = NONE;
	for (uint32_t c = 0; c < m->view[0].hdr->nchannels; c++)
		clocks |= accesses_others(m, c);
	m->thread = swc_verify_alloc(m, n, sizeof(*m->thread));
	m->queue = swc_verify_alloc(m, n, sizeof(*m->queue));
	m->in_sync = swc_verify_alloc(m, m->nodes ? m->nodes->nnodes : 1, sizeof(*m->in_sync));
	if (clocks)
		m->clock = swc_verify_alloc(m, n * n * 2, sizeof(*m->clock));
	if (m->coll == SWC_BARRIER)
		m->met = swc_verify_alloc(m, n * m->words, sizeof(*m->met));
}

static void free_machine(struct swc_verify_machine *m)
{
	for (uint32_t r = 0; m->thread && r < m->nranks; r++)
		free(m->thread[r].message);
	for (int buf = 0; buf < SWC_BUF_NR; buf++)
		free(m->first_cell[buf]);
	if (m->link)
		free(m->link[0]);
	free(m->link);
	free(m->cell);
	free(m->touches);
	free(m->values.at);
	free(m->readers.at);
	free(m->thread);
	free(m->clock);
	free(m->queue);
	free(m->in_sync);
	free(m->met);
	free(m->view);
}

/* Report what a thread waits for that cannot continue. */
static void stuck(struct swc_verify_machine *m, const struct swc_verify_thread *t)
{
	const struct swc_plan_step *s = swc_verify_step_of(m, t);

	if (s->kind == SWC_STEP_SYNC)
		STEP_FAULT(m, t, "waits for ever for other ranks at the barrier");
	for (uint32_t k = 0; k < (uint32_t)s->nsend + s->nrecv; k++)
		if (!m->link[t->rank][s->first_xfer + k].done)
			STEP_FAULT(m, t, "waits for ever for rank %u %s",
				   m->view[t->rank].xfers[s->first_xfer + k].rank,
				   k < s->nsend ? "to receive a message" : "to send a message");
}

static void run_channel(struct swc_verify_machine *m, uint32_t chan)
{
	size_t n = m->nranks;

	m->chan = chan;
	m->clocks = m->met || accesses_others(m, chan);
	if (m->clocks)
		memset(m->clock, 0, n * n * 2 * sizeof(*m->clock));
	swc_verify_pair(m, chan);
	for (uint32_t r = 0; r < m->nranks; r++) {
		struct swc_verify_thread *t = &m->thread[r];

		t->rank = r;
		t->at = 0;
		t->nsteps = m->view[r].channels[chan].nsteps;
		if (m->clocks) {
			t->clock = m->clock + n * r;
			t->next = m->clock + n * (n + r);
			t->clock[r] = 1;
		}
		resume(m, t);
	}
	while (!m->error && m->queued) {
		struct swc_verify_thread *t = &m->thread[m->queue[--m->queued]];

		if (t->posted)
			end_step(m, t);
		while (!m->error && !t->posted && t->at < t->nsteps) {
			uint8_t kind = swc_verify_step_of(m, t)->kind;

			if (kind == SWC_STEP_LOCAL)
				run_local(m, t);
			else if (kind == SWC_STEP_COPY)
				run_copies(m, t);
			else if (kind == SWC_STEP_SYNC)
				run_sync(m, t);
			else
				run_net(m, t);
		}
	}
	for (uint32_t r = 0; !m->error && r < m->nranks; r++)
		if (m->thread[r].at < m->thread[r].nsteps)
			stuck(m, &m->thread[r]);
	for (size_t i = 0; !m->error && m->met && i < n * n; i++)
		if (m->clock[i])
			m->met[i / n * m->words + i % n / 64] |= 1ull << i % n % 64;
}

/* The rank whose contribution is block b of a result, or NONE if all contribute. */
static uint32_t source_of(const struct swc_verify_machine *m, uint32_t b)
{
	switch (m->coll) {
	case SWC_ALLGATHER:
	case SWC_ALLTOALL:
	case SWC_GATHER:
		return b / m->shard_blocks;
	case SWC_BROADCAST:
	case SWC_SCATTER:
		return m->view[0].hdr->root;
	default:
		return NONE;
	}
}

static void check_result(struct swc_verify_machine *m, uint32_t r, uint32_t b)
{
	uint64_t at = swc_verify_cell_at(m, r, SWC_BUF_RECV, b);
	uint32_t v = m->cell[at].value, from = source_of(m, b), block = b;
	bool own_send = !v && at < m->first_cell[SWC_BUF_SEND][m->nranks];
	const struct swc_verify_value *x;

	/* In place, a block that was never written is the rank's own contribution. */
	if (own_send)
		v = swc_verify_contribution(m, r, b);
	x = swc_verify_value(m, v);
	/* Alltoall moves a block to another number: that of the sender's shard for this rank. */
	if (m->coll == SWC_ALLTOALL)
		block = r * m->shard_blocks + b % m->shard_blocks;
	if (!v || x->block != block) {
		if (!m->error)
			swc_verify_fault(m, r, "block %u of the result is missing", b);
		return;
	}
	for (uint32_t q = 0; x->ncontrib != (from == NONE ? m->nranks : 1) && q < m->nranks; q++)
		if (swc_verify_has_rank(x, q) != (from == NONE || from == q))
			swc_verify_fault(
				m, r, "block %u of the result has rank %u's contribution %u times",
				b, q, swc_verify_has_rank(x, q));
	if (from != NONE && x->one != from)
		swc_verify_fault(m, r,
				 "block %u of the result has rank %u's contribution, not rank %u's",
				 b, x->one, from);
	/*
	 * Only results of reductions need the FINAL mark: a copy needs no last operation, and in
	 * place a block may be complete from the start.
	 */
	if (swc_coll_reduces(m->coll) && x->finals != 1)
		swc_verify_fault(m, r, "block %u of the result passed %u final marks", b,
				 x->finals);
	if (m->coll == SWC_ALLREDUCE && r && !(m->view[r].hdr->flags & SWC_PLAN_ORDER_VARIES) &&
	    swc_verify_value(m, m->cell[swc_verify_cell_at(m, 0, SWC_BUF_RECV, b)].value)->order !=
		    x->order)
		swc_verify_fault(m, r, "block %u was reduced in another order than on rank 0", b);
	if (own_send)
		swc_verify_drop(m, v);
}

/* Does every rank know, at its end, that each other rank has begun? */
static void check_barrier(struct swc_verify_machine *m)
{
	for (uint32_t r = 0; r < m->nranks; r++)
		for (uint32_t q = 0; q < m->nranks; q++)
			if (!(m->met[(size_t)r * m->words + q / 64] >> q % 64 & 1))
				swc_verify_fault(m, r,
						 "leaves the barrier before rank %u enters it", q);
}

int swc_plan_verify(const void *const *plans, const size_t *bytes, const bool *in_place,
		    uint32_t nranks, const struct swc_topo *nodes, struct swc_verdict *verdict)
{
	bool *nowhere = in_place ? NULL : calloc(nranks + 1, sizeof(*nowhere));
	struct swc_verify_machine m = { .nranks = nranks, .nodes = nodes, .verdict = verdict };

	memset(verdict, 0, sizeof(*verdict));
	m.in_place = in_place ? in_place : nowhere;
	if (!m.in_place)
		m.error = -ENOMEM;
	if (!nranks)
		swc_verify_fault(&m, 0, "there are no plans");
	m.view = swc_verify_alloc(&m, nranks, sizeof(*m.view));
	if (!m.error)
		check_plans(&m, plans, bytes);
	if (!m.error)
		setup(&m);
	for (uint32_t c = 0; !m.error && c < m.view[0].hdr->nchannels; c++)
		run_channel(&m, c);
	for (uint32_t r = 0; !m.error && r < nranks; r++) {
		struct swc_plan_window w = swc_plan_window_of(
			m.coll, SWC_BUF_RECV, r, m.view[r].hdr->root, m.shard_blocks, m.nblocks);

		for (uint32_t i = 0; !m.error && i < w.nblocks; i++) {
			if (swc_verify_in_window(&m.view[r], SWC_BUF_RECV, w.first_block + i))
				check_result(&m, r, w.first_block + i);
			else
				swc_verify_fault(&m, r, "block %u of the result is missing",
						 w.first_block + i);
		}
	}
	if (!m.error && m.met)
		check_barrier(&m);
	free_machine(&m);
	free(nowhere);
	return m.error;
}
