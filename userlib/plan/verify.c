// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Is a set of plans right? Runs the plans of all ranks on symbols instead of numbers.
 *
 * Each block of each buffer is a cell. A cell's value says whose contributions it holds and how
 * often, how many FINAL marks it has passed, and in which order it was reduced. In place, the cells
 * of SEND and RECV are the same. Channels of all ranks are threads that run one after the other as
 * far as they can, with the meeting of sends and receives and the barriers as in
 * uapi/linux/swingcoll.h.
 *
 * One run cannot show what another order of events would do. That is the job of vector clocks: each
 * step knows which steps of other threads are certain to be over when it starts. A step that
 * touches a cell which another step, not certain to be over, has written (or which it writes and
 * the other has read) is a fault. Without faults every order gives the result that this run gives.
 * A send reads its cells from the start of its step to its end, whoever copies.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "plan_check.h"

/* What a cell holds. Its contributions, one counter per rank, are stored apart. */
struct value {
	uint32_t block;	 /* block of the vector this is part of */
	uint32_t finals; /* FINAL marks passed */
	uint64_t order;	 /* hash of the tree of operations; 0: nothing was ever stored */
};

/* A step that touched a cell: thread and number of the step in it. */
struct touch {
	uint32_t thread;
	uint32_t step;
};

struct cell {
	struct value value;
	uint8_t *count; /* contributions by rank, saturating */
	bool written;
	struct touch writer;
	struct touch *reader; /* since the last write */
	uint32_t nreaders;
};

/* What was sent, as it was when the step began. */
struct message {
	struct value *value;
	uint8_t *count;
	bool taken;
};

/* One channel of one rank. */
struct thread {
	uint32_t rank, chan;
	uint32_t at; /* steps done */
	uint32_t nsteps;
	bool posted;	      /* the step at `at` has begun */
	bool *done;	      /* of its receives */
	struct message *sent; /* by it */
	uint32_t *clock; /* by thread: 1 for having begun, and 1 for each step that is over, as far
				   as this one can know */
	uint32_t *next;	 /* the same at the end of the step */
};

struct machine {
	uint32_t nranks, nchan, nthreads, nblocks, part_blocks;
	const bool *in_place;
	struct swc_plan_view *view;	/* by rank */
	struct cell **cell[SWC_BUF_NR]; /* by rank, then block; RECV is SEND where in place */
	struct thread *thread;		/* rank * nchan + chan */
	struct swc_verdict *verdict;
	int error;
};

static void __attribute__((format(printf, 3, 4)))
fault(struct machine *m, uint32_t rank, const char *fmt, ...)
{
	va_list ap;

	if (m->error)
		return;
	m->error = -EINVAL;
	m->verdict->rank = rank;
	va_start(ap, fmt);
	vsnprintf(m->verdict->text, sizeof(m->verdict->text), fmt, ap);
	va_end(ap);
}

static void *alloc(struct machine *m, size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		m->error = -ENOMEM;
	return p;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = a * 0x9e3779b97f4a7c15 + b;

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9;
	h ^= h >> 32;
	return h ? h : 1;
}

/* a op b: equal to b op a, as it is on numbers; but (a op b) op c differs from a op (b op c). */
static uint64_t order_of(uint64_t a, uint64_t b)
{
	return a < b ? mix(a, b) : mix(b, a);
}

static const struct swc_plan_step *step_of(const struct machine *m, const struct thread *t)
{
	const struct swc_plan_view *v = &m->view[t->rank];

	return &v->steps[v->channels[t->chan].first_step + t->at];
}

static const struct swc_plan_xfer *xfers_of(const struct machine *m, const struct thread *t)
{
	return &m->view[t->rank].xfers[step_of(m, t)->first_xfer];
}

/* The cell, or NULL and a fault if the rank's buffer does not hold the block. */
static struct cell *cell_at(struct machine *m, const struct thread *t, uint32_t rank, uint8_t buf,
			    uint32_t block)
{
	const struct swc_plan_window *w = &m->view[rank].hdr->window[buf];
	struct cell *c;

	if (block < w->first_block || block - w->first_block >= w->nblocks) {
		fault(m, t->rank, "channel %u step %u: block %u is outside of rank %u's buffer %u",
		      t->chan, t->at, block, rank, buf);
		return NULL;
	}
	c = m->cell[buf][rank] + block;
	if (buf == SWC_BUF_RECV && m->in_place[rank]) {
		w = &m->view[rank].hdr->window[SWC_BUF_SEND];
		if (block >= w->first_block && block - w->first_block < w->nblocks)
			c = m->cell[SWC_BUF_SEND][rank] + block;
	}
	return c;
}

/* ---- who touches what, when ---- */

static bool over(const struct thread *t, const struct touch *other, uint32_t self)
{
	return other->thread == self || t->clock[other->thread] > other->step + 1;
}

static void race(struct machine *m, const struct thread *t, const struct touch *o, const char *did)
{
	const struct thread *u = &m->thread[o->thread];

	fault(m, t->rank,
	      "channel %u step %u touches what rank %u channel %u step %u may still be %s", t->chan,
	      t->at, u->rank, u->chan, o->step, did);
}

static void touch_read(struct machine *m, struct thread *t, struct cell *c)
{
	uint32_t self = (uint32_t)(t - m->thread);
	struct touch *p;

	if (c->written && !over(t, &c->writer, self))
		race(m, t, &c->writer, "writing");
	p = realloc(c->reader, (c->nreaders + 1) * sizeof(*p));
	if (!p) {
		m->error = -ENOMEM;
		return;
	}
	c->reader = p;
	p[c->nreaders++] = (struct touch){ self, t->at };
}

static void touch_write(struct machine *m, struct thread *t, struct cell *c)
{
	uint32_t self = (uint32_t)(t - m->thread);

	if (c->written && !over(t, &c->writer, self))
		race(m, t, &c->writer, "writing");
	for (uint32_t i = 0; i < c->nreaders; i++)
		if (!over(t, &c->reader[i], self))
			race(m, t, &c->reader[i], "reading");
	c->nreaders = 0;
	c->written = true;
	c->writer = (struct touch){ self, t->at };
}

static void join(struct machine *m, uint32_t *into, const uint32_t *from)
{
	for (uint32_t i = 0; i < m->nthreads; i++)
		if (into[i] < from[i])
			into[i] = from[i];
}

static void end_step(struct machine *m, struct thread *t)
{
	t->at++;
	t->next[t - m->thread] = t->at + 1;
	memcpy(t->clock, t->next, m->nthreads * sizeof(*t->clock));
	t->posted = false;
}

/* ---- values ---- */

static void add_counts(struct machine *m, uint8_t *to, const uint8_t *from)
{
	for (uint32_t r = 0; r < m->nranks; r++)
		to[r] = to[r] + from[r] > 255 ? 255 : (uint8_t)(to[r] + from[r]);
}

/* a op= b */
static void reduce(struct machine *m, const struct thread *t, struct value *a, uint8_t *acount,
		   const struct value *b, const uint8_t *bcount)
{
	if (a->block != b->block)
		fault(m, t->rank, "channel %u step %u adds block %u to block %u", t->chan, t->at,
		      b->block, a->block);
	if (a->finals || b->finals)
		fault(m, t->rank, "channel %u step %u adds to a block that is marked final",
		      t->chan, t->at);
	a->order = order_of(a->order, b->order);
	add_counts(m, acount, bcount);
}

static void check_stored(struct machine *m, const struct thread *t, const struct value *v)
{
	if (!v->order)
		fault(m, t->rank, "channel %u step %u reads what nobody has written", t->chan,
		      t->at);
}

/* Same size whatever the vector's: the same place within a part, and as many blocks. */
static bool same_size(const struct machine *m, const struct swc_plan_xfer *a,
		      const struct swc_plan_xfer *b)
{
	return a->nblocks == b->nblocks &&
	       a->first_block % m->part_blocks == b->first_block % m->part_blocks;
}

/* ---- local steps ---- */

static void local_block(struct machine *m, struct thread *t, uint32_t i)
{
	const struct swc_plan_step *s = step_of(m, t);
	const struct swc_plan_xfer *x = xfers_of(m, t), *dst = x + s->nsend;
	uint8_t *count = alloc(m, m->nranks, 1);
	struct value v = { 0 };

	for (uint32_t k = 0; !m->error && k < s->nsend; k++) {
		struct cell *c = cell_at(m, t, x[k].rank, x[k].buf, x[k].first_block + i);

		if (!c)
			break;
		check_stored(m, t, &c->value);
		if (k) {
			reduce(m, t, &v, count, &c->value, c->count);
		} else {
			v = c->value;
			memcpy(count, c->count, m->nranks);
		}
		touch_read(m, t, c);
	}
	if (dst->flags & SWC_XFER_FINAL)
		v.finals++;
	for (uint32_t k = 0; !m->error && k < s->nrecv; k++) {
		struct cell *c = cell_at(m, t, dst[k].rank, dst[k].buf, dst[k].first_block + i);

		if (!c)
			break;
		/* A copy onto itself stores nothing. */
		if (s->nsend > 1 || c != cell_at(m, t, x->rank, x->buf, x->first_block + i))
			touch_write(m, t, c);
		c->value = v;
		memcpy(c->count, count, m->nranks);
	}
	free(count);
}

/* Within a step, element i of a destination may be element i of a source, but no other. */
static void check_local_overlap(struct machine *m, struct thread *t)
{
	const struct swc_plan_step *s = step_of(m, t);
	const struct swc_plan_xfer *x = xfers_of(m, t);

	for (uint32_t d = s->nsend; d < (uint32_t)s->nsend + s->nrecv; d++) {
		for (uint32_t k = 0; k < (uint32_t)s->nsend + s->nrecv; k++) {
			int64_t apart = (int64_t)x[d].first_block - x[k].first_block;

			if (k == d || x[k].rank != x[d].rank || llabs(apart) >= x[d].nblocks ||
			    (apart == 0 && k < s->nsend))
				continue;
			if (x[k].buf == x[d].buf ||
			    (m->in_place[x[d].rank] && x[k].buf != SWC_BUF_SCRATCH &&
			     x[d].buf != SWC_BUF_SCRATCH))
				fault(m, t->rank, "channel %u step %u: ranges overlap", t->chan,
				      t->at);
		}
	}
}

static bool run_local(struct machine *m, struct thread *t)
{
	const struct swc_plan_step *s = step_of(m, t);
	const struct swc_plan_xfer *x = xfers_of(m, t);

	for (uint32_t k = 1; k < (uint32_t)s->nsend + s->nrecv; k++)
		if (!same_size(m, &x[0], &x[k]))
			fault(m, t->rank, "channel %u step %u: ranges of different size", t->chan,
			      t->at);
	check_local_overlap(m, t);
	for (uint32_t i = 0; !m->error && i < x->nblocks; i++)
		local_block(m, t, i);
	memcpy(t->next, t->clock, m->nthreads * sizeof(*t->next));
	end_step(m, t);
	return true;
}

/* ---- barriers ---- */

static bool run_sync(struct machine *m, struct thread *t)
{
	t->posted = true;
	for (uint32_t r = 0; r < m->nranks; r++) {
		struct thread *u = &m->thread[r * m->nchan + t->chan];

		if (u->at >= u->nsteps || !u->posted || step_of(m, u)->kind != SWC_STEP_SYNC)
			return false;
	}
	memcpy(t->next, t->clock, m->nthreads * sizeof(*t->next));
	for (uint32_t r = 0; r < m->nranks; r++)
		join(m, t->next, m->thread[r * m->nchan + t->chan].clock);
	for (uint32_t r = 0; r < m->nranks; r++) {
		struct thread *u = &m->thread[r * m->nchan + t->chan];

		if (u != t)
			memcpy(u->next, t->next, m->nthreads * sizeof(*t->next));
	}
	for (uint32_t r = 0; r < m->nranks; r++)
		end_step(m, &m->thread[r * m->nchan + t->chan]);
	return true;
}

/* ---- network steps ---- */

static bool overlap(const struct machine *m, uint32_t rank, const struct swc_plan_xfer *a,
		    uint8_t abuf, const struct swc_plan_xfer *b, uint8_t bbuf)
{
	bool same = abuf == bbuf ||
		    (m->in_place[rank] && abuf != SWC_BUF_SCRATCH && bbuf != SWC_BUF_SCRATCH);

	return same && a->first_block < b->first_block + b->nblocks &&
	       b->first_block < a->first_block + a->nblocks;
}

/*
 * Transfers of one step are concurrent: no receive may write what a send reads, nor what another
 * receive touches, unless both reduce and so are done one after the other.
 */
static void check_net_overlap(struct machine *m, struct thread *t)
{
	const struct swc_plan_step *s = step_of(m, t);
	const struct swc_plan_xfer *x = xfers_of(m, t);

	for (uint32_t w = s->nsend; w < (uint32_t)s->nsend + s->nrecv; w++) {
		for (uint32_t k = 0; k < (uint32_t)s->nsend + s->nrecv; k++) {
			bool ordered = k >= s->nsend && x[k].flags & x[w].flags & SWC_XFER_REDUCE;
			bool hit = overlap(m, t->rank, &x[w], x[w].buf, &x[k], x[k].buf);

			if (k >= s->nsend && x[k].flags & SWC_XFER_REDUCE)
				hit |= overlap(m, t->rank, &x[w], x[w].buf, &x[k], x[k].operand);
			if (k != w && hit && !ordered)
				fault(m, t->rank,
				      "channel %u step %u: receive %u writes what transfer %u uses",
				      t->chan, t->at, w - s->nsend, k);
		}
	}
}

static void post_net(struct machine *m, struct thread *t)
{
	const struct swc_plan_step *s = step_of(m, t);
	const struct swc_plan_xfer *x = xfers_of(m, t);

	check_net_overlap(m, t);
	t->posted = true;
	memcpy(t->next, t->clock, m->nthreads * sizeof(*t->next));
	t->done = alloc(m, s->nrecv, sizeof(*t->done));
	t->sent = alloc(m, s->nsend, sizeof(*t->sent));
	for (uint32_t k = 0; !m->error && k < s->nsend; k++) {
		struct message *msg = &t->sent[k];

		msg->value = alloc(m, x[k].nblocks, sizeof(*msg->value));
		msg->count = alloc(m, x[k].nblocks, m->nranks);
		for (uint32_t i = 0; !m->error && i < x[k].nblocks; i++) {
			struct cell *c = cell_at(m, t, t->rank, x[k].buf, x[k].first_block + i);

			if (!c)
				return;
			check_stored(m, t, &c->value);
			touch_read(m, t, c);
			msg->value[i] = c->value;
			memcpy(msg->count + (size_t)i * m->nranks, c->count, m->nranks);
		}
	}
}

/* Store one receive. The message was taken when its sender's step began. */
static void receive(struct machine *m, struct thread *t, const struct swc_plan_xfer *x,
		    const struct message *msg)
{
	uint8_t *count = alloc(m, m->nranks, 1);

	for (uint32_t i = 0; !m->error && i < x->nblocks; i++) {
		struct cell *c = cell_at(m, t, t->rank, x->buf, x->first_block + i);
		struct value v = msg->value[i];

		memcpy(count, msg->count + (size_t)i * m->nranks, m->nranks);
		if (x->flags & SWC_XFER_REDUCE) {
			struct cell *o = cell_at(m, t, t->rank, x->operand, x->first_block + i);

			if (!o)
				break;
			check_stored(m, t, &o->value);
			touch_read(m, t, o);
			reduce(m, t, &v, count, &o->value, o->count);
		}
		if (!c)
			break;
		touch_write(m, t, c);
		if (x->flags & SWC_XFER_FINAL)
			v.finals++;
		c->value = v;
		memcpy(c->count, count, m->nranks);
	}
	free(count);
}

/* The first send of `from`'s open step to `to` that was not taken, or NULL. */
static struct message *next_message(struct machine *m, struct thread *from, uint32_t to,
				    const struct swc_plan_xfer **x)
{
	const struct swc_plan_step *s;

	if (!from->posted || step_of(m, from)->kind != SWC_STEP_NET)
		return NULL;
	s = step_of(m, from);
	*x = xfers_of(m, from);
	for (uint32_t k = 0; k < s->nsend; k++, (*x)++)
		if ((*x)->rank == to && !from->sent[k].taken)
			return &from->sent[k];
	return NULL;
}

/* Whether receive k must wait for an earlier one: from the same peer, or because both reduce. */
static bool must_wait(const struct thread *t, const struct swc_plan_xfer *recv, uint32_t k)
{
	for (uint32_t j = 0; j < k; j++)
		if (!t->done[j] && (recv[j].rank == recv[k].rank ||
				    recv[j].flags & recv[k].flags & SWC_XFER_REDUCE))
			return true;
	return false;
}

static void finish_net(struct machine *m, struct thread *t)
{
	const struct swc_plan_step *s = step_of(m, t);

	for (uint32_t k = 0; t->sent && k < s->nsend; k++) {
		free(t->sent[k].value);
		free(t->sent[k].count);
	}
	free(t->sent);
	free(t->done);
	t->sent = NULL;
	t->done = NULL;
}

static bool run_net(struct machine *m, struct thread *t)
{
	const struct swc_plan_step *s = step_of(m, t);
	const struct swc_plan_xfer *recv = xfers_of(m, t) + s->nsend;
	bool moved = !t->posted, open = false;

	if (!t->posted)
		post_net(m, t);
	for (uint32_t k = 0; !m->error && k < s->nrecv; k++) {
		struct thread *from = &m->thread[recv[k].rank * m->nchan + t->chan];
		const struct swc_plan_xfer *x;
		struct message *msg;

		if (t->done[k])
			continue;
		msg = must_wait(t, recv, k) ? NULL : next_message(m, from, t->rank, &x);
		if (!msg) {
			open = true;
			continue;
		}
		if (!same_size(m, x, &recv[k]))
			fault(m, t->rank, "channel %u step %u: rank %u sends another size", t->chan,
			      t->at, from->rank);
		else
			receive(m, t, &recv[k], msg);
		/* Both sides had begun the step when this happened, and end it after. */
		join(m, t->next, from->clock);
		join(m, from->next, t->clock);
		msg->taken = true;
		t->done[k] = true;
		moved = true;
	}
	for (uint32_t k = 0; !m->error && k < s->nsend; k++)
		open |= !t->sent[k].taken;
	if (m->error || open)
		return moved;
	finish_net(m, t);
	end_step(m, t);
	return true;
}

/* ---- the whole ---- */

static void check_plans(struct machine *m, const void *const *plans, const size_t *bytes)
{
	for (uint32_t r = 0; !m->error && r < m->nranks; r++) {
		const struct swc_plan_header *h, *h0;
		char why[120];

		if (swc_plan_check(plans[r], bytes[r], &m->view[r], why, sizeof(why))) {
			fault(m, r, "%s", why);
			return;
		}
		h = m->view[r].hdr;
		h0 = m->view[0].hdr;
		if (h->nranks != m->nranks || h->rank != r)
			fault(m, r, "plan is for rank %u of %u", h->rank, h->nranks);
		else if (h->coll != h0->coll || h->root != h0->root || h->family != h0->family ||
			 h->part_blocks != h0->part_blocks || h->nchannels != h0->nchannels)
			fault(m, r, "plan is of another family than rank 0's");
		else if (m->in_place[r] && (h->flags & SWC_PLAN_NOT_IN_PLACE))
			fault(m, r, "plan is not for in-place operations");
	}
}

static void setup(struct machine *m)
{
	const struct swc_plan_header *h = m->view[0].hdr;

	m->nchan = h->nchannels;
	m->nblocks = m->view[0].nblocks;
	m->part_blocks = h->part_blocks;
	m->nthreads = m->nranks * m->nchan;
	m->thread = alloc(m, m->nthreads, sizeof(*m->thread));
	for (uint32_t i = 0; !m->error && i < m->nthreads; i++) {
		struct thread *t = &m->thread[i];

		t->rank = i / m->nchan;
		t->chan = i % m->nchan;
		t->nsteps = m->view[t->rank].channels[t->chan].nsteps;
		t->clock = alloc(m, m->nthreads, sizeof(*t->clock));
		t->next = alloc(m, m->nthreads, sizeof(*t->next));
		if (!m->error)
			t->clock[i] = 1;
	}
	for (int buf = 0; buf < SWC_BUF_NR; buf++) {
		m->cell[buf] = alloc(m, m->nranks, sizeof(*m->cell[buf]));
		for (uint32_t r = 0; !m->error && r < m->nranks; r++) {
			const struct swc_plan_window *w = &m->view[r].hdr->window[buf];
			struct cell *c = m->cell[buf][r] = alloc(m, m->nblocks, sizeof(*c));

			for (uint32_t i = 0; !m->error && i < w->nblocks; i++) {
				uint32_t b = w->first_block + i;

				c[b].count = alloc(m, m->nranks, 1);
				if (buf != SWC_BUF_SEND || m->error)
					continue;
				c[b].count[r] = 1;
				c[b].value = (struct value){ b, 0, mix(r + 1, b) };
			}
		}
	}
}

static void free_machine(struct machine *m)
{
	for (uint32_t i = 0; m->thread && i < m->nthreads; i++) {
		struct thread *t = &m->thread[i];

		if (t->sent)
			finish_net(m, t);
		free(t->clock);
		free(t->next);
	}
	for (int buf = 0; buf < SWC_BUF_NR; buf++) {
		for (uint32_t r = 0; m->cell[buf] && r < m->nranks; r++) {
			struct cell *c = m->cell[buf][r];

			for (uint32_t b = 0; c && b < m->nblocks; b++) {
				free(c[b].count);
				free(c[b].reader);
			}
			free(c);
		}
		free(m->cell[buf]);
	}
	free(m->thread);
	free(m->view);
}

static void run(struct machine *m)
{
	bool moved = true;

	while (moved && !m->error) {
		moved = false;
		for (uint32_t i = 0; i < m->nthreads; i++) {
			struct thread *t = &m->thread[i];

			while (!m->error && t->at < t->nsteps) {
				uint8_t kind = step_of(m, t)->kind;

				if (!(kind == SWC_STEP_LOCAL  ? run_local(m, t)
				      : kind == SWC_STEP_SYNC ? run_sync(m, t)
							      : run_net(m, t)))
					break;
				moved = true;
			}
		}
	}
	for (uint32_t i = 0; !m->error && i < m->nthreads; i++) {
		struct thread *t = &m->thread[i];

		if (t->at < t->nsteps)
			fault(m, t->rank, "channel %u waits for ever in step %u", t->chan, t->at);
	}
}

/* How often rank `from` must have contributed to block b of a result. */
static uint8_t wanted(const struct swc_plan_header *h, uint32_t b, uint32_t from)
{
	switch (h->coll) {
	case SWC_ALLGATHER:
		return b / h->part_blocks == from;
	case SWC_BROADCAST:
		return from == h->root;
	default:
		return 1;
	}
}

static void check_result(struct machine *m, uint32_t r, uint32_t b)
{
	const struct swc_plan_header *h = m->view[r].hdr;
	struct thread fake = { .rank = r };
	struct cell *c = cell_at(m, &fake, r, SWC_BUF_RECV, b), *first;

	if (!c)
		return;
	if (!c->value.order || c->value.block != b) {
		fault(m, r, "block %u of the result is missing", b);
		return;
	}
	for (uint32_t from = 0; from < m->nranks; from++)
		if (c->count[from] != wanted(h, b, from))
			fault(m, r, "block %u of the result holds rank %u's contribution %u times",
			      b, from, c->count[from]);
	/*
	 * Nothing is left to do at the end of a copy; and in place, a block is complete from the
	 * start.
	 */
	if (swc_coll_reduces(h->coll) && c->value.finals != 1)
		fault(m, r, "block %u of the result passed %u final marks", b, c->value.finals);
	if (h->coll != SWC_ALLREDUCE || !r || (h->flags & SWC_PLAN_ORDER_VARIES))
		return;
	first = cell_at(m, &fake, 0, SWC_BUF_RECV, b);
	if (first && first->value.order != c->value.order)
		fault(m, r, "block %u was reduced in another order than on rank 0", b);
}

/* Does any thread of rank r know that one of rank q has begun? */
static bool has_met(const struct machine *m, uint32_t r, uint32_t q)
{
	for (uint32_t i = r * m->nchan; i < (r + 1) * m->nchan; i++)
		for (uint32_t j = q * m->nchan; j < (q + 1) * m->nchan; j++)
			if (m->thread[i].clock[j])
				return true;
	return false;
}

static void check_barrier(struct machine *m)
{
	for (uint32_t r = 0; r < m->nranks; r++)
		for (uint32_t q = 0; q < m->nranks; q++)
			if (!has_met(m, r, q))
				fault(m, r, "leaves the barrier before rank %u enters it", q);
}

int swc_plan_verify(const void *const *plans, const size_t *bytes, const bool *in_place,
		    uint32_t nranks, struct swc_verdict *verdict)
{
	bool *nowhere = in_place ? NULL : calloc(nranks, sizeof(*nowhere));
	struct machine m = { .nranks = nranks, .verdict = verdict };
	int error;

	memset(verdict, 0, sizeof(*verdict));
	m.in_place = in_place ? in_place : nowhere;
	m.view = alloc(&m, nranks, sizeof(*m.view));
	if (!m.in_place)
		m.error = -ENOMEM;
	if (!m.error)
		check_plans(&m, plans, bytes);
	if (!m.error)
		setup(&m);
	if (!m.error)
		run(&m);
	for (uint32_t r = 0; !m.error && r < nranks; r++) {
		struct swc_plan_window w = swc_plan_window_of(m.view[r].hdr->coll, SWC_BUF_RECV, r,
							      m.view[r].hdr->root, m.part_blocks,
							      m.nblocks);

		for (uint32_t i = 0; !m.error && i < w.nblocks; i++)
			check_result(&m, r, w.first_block + i);
	}
	if (!m.error && m.view[0].hdr->coll == SWC_BARRIER)
		check_barrier(&m);
	error = m.error;
	free_machine(&m);
	free(nowhere);
	return error;
}
