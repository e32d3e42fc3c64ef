// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The buffers of the machine that runs plans on symbols: values, which say whose contributions they
 * sum, and cells, which have values and know which steps accessed them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/table.h"
#include "plan/verify/cells.h"

#define NONE SWC_VERIFY_NONE
#define MANY SWC_VERIFY_MANY

void __attribute__((format(printf, 3, 4)))
swc_verify_fault(struct swc_verify_machine *m, uint32_t rank, const char *fmt, ...)
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

void *swc_verify_alloc(struct swc_verify_machine *m, uint64_t n, size_t size)
{
	void *p = m->error || n > SIZE_MAX / size ? NULL : calloc(n ? (size_t)n : 1, size);

	if (!p && !m->error)
		m->error = -ENOMEM;
	return p;
}

bool swc_verify_grow(struct swc_verify_machine *m, void *table, uint64_t used, uint32_t *room,
		     size_t size)
{
	if (!m->error && (used >= NONE || !swc_table_reserve(table, (uint32_t)used, room, size)))
		m->error = -ENOMEM;
	return !m->error;
}

/* One reader of a cell. */
struct touch {
	uint32_t next; /* reader of the same cell, or free one; 0 at the end */
	uint32_t rank;
	uint32_t step;
};

/* ---- pools ---- */

static uint32_t *next_free(struct swc_verify_pool *p, uint32_t i)
{
	return (uint32_t *)(p->at + i * p->bytes);
}

/* The number of a free element. 0, which is none but has memory, if there is no memory for more. */
static uint32_t take(struct swc_verify_machine *m, struct swc_verify_pool *p)
{
	uint32_t i = p->free;

	if (i)
		p->free = *next_free(p, i);
	else if (swc_verify_grow(m, &p->at, p->used, &p->room, p->bytes))
		i = p->used++;
	return i;
}

static void give_back(struct swc_verify_pool *p, uint32_t i)
{
	*next_free(p, i) = p->free;
	p->free = i;
}

/* ---- values ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = a * 0x9e3779b97f4a7c15 + b;

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9;
	h ^= h >> 32;
	return h ? h : 1;
}

/*
 * The order of a op b: equal to that of b op a, as it is with numbers; but (a op b) op c differs
 * from a op (b op c).
 */
static uint64_t order_of(uint64_t a, uint64_t b)
{
	return a < b ? mix(a, b) : mix(b, a);
}

uint32_t swc_verify_hold(struct swc_verify_machine *m, uint32_t v)
{
	swc_verify_value(m, v)->refs++;
	return v;
}

void swc_verify_drop(struct swc_verify_machine *m, uint32_t v)
{
	struct swc_verify_value *x = swc_verify_value(m, v);

	if (v && !--x->refs)
		give_back(&m->values, v);
}

/* A copy of a value that the caller may change; the value itself if nothing else has it. */
static uint32_t own(struct swc_verify_machine *m, uint32_t v)
{
	uint32_t n, refs = swc_verify_value(m, v)->refs;

	if (refs == 1)
		return v;
	n = take(m, &m->values);
	if (!n)
		return v;
	memcpy(swc_verify_value(m, n), swc_verify_value(m, v), m->values.bytes);
	swc_verify_value(m, n)->refs = 1;
	swc_verify_drop(m, v);
	return n;
}

uint32_t swc_verify_contribution(struct swc_verify_machine *m, uint32_t rank, uint32_t block)
{
	uint32_t v = take(m, &m->values);
	struct swc_verify_value *x = swc_verify_value(m, v);

	if (v)
		*x = (struct swc_verify_value){ .refs = 1,
						.block = block,
						.ncontrib = 1,
						.one = rank,
						.order = mix(rank + 1, block) };
	return v;
}

/* Write the contributions as bits. */
static void spread(const struct swc_verify_machine *m, struct swc_verify_value *x)
{
	if (x->ncontrib != 1)
		return;
	memset(x->contrib, 0, m->words * sizeof(x->contrib[0]));
	x->contrib[x->one / 64] = 1ull << x->one % 64;
}

static uint32_t common_rank(const struct swc_verify_machine *m, const struct swc_verify_value *a,
			    const struct swc_verify_value *b)
{
	for (uint32_t r = 0; r < m->nranks; r++)
		if (swc_verify_has_rank(a, r) && swc_verify_has_rank(b, r))
			return r;
	return 0;
}

uint32_t swc_verify_reduce(struct swc_verify_machine *m, const struct swc_verify_thread *t,
			   uint32_t va, uint32_t vb)
{
	struct swc_verify_value *a = swc_verify_value(m, va), *b = swc_verify_value(m, vb);
	uint64_t twice = 0;

	if (a->block != b->block)
		STEP_FAULT(m, t, "adds block %u to block %u", b->block, a->block);
	if (a->finals || b->finals)
		STEP_FAULT(m, t, "adds to a block that is marked final");
	if (m->error)
		return va;
	va = own(m, va);
	a = swc_verify_value(m, va);
	b = swc_verify_value(m, vb);
	a->order = order_of(a->order, b->order);
	if (b->ncontrib == 1)
		twice = swc_verify_has_rank(a, b->one);
	else if (a->ncontrib == 1)
		twice = swc_verify_has_rank(b, a->one);
	else
		for (uint32_t i = 0; i < m->words; i++)
			twice |= a->contrib[i] & b->contrib[i];
	if (twice) {
		STEP_FAULT(m, t, "block %u gets rank %u's contribution twice", a->block,
			   common_rank(m, a, b));
		return va;
	}
	spread(m, a);
	if (b->ncontrib == 1)
		a->contrib[b->one / 64] |= 1ull << b->one % 64;
	for (uint32_t i = 0; b->ncontrib > 1 && i < m->words; i++)
		a->contrib[i] |= b->contrib[i];
	a->ncontrib += b->ncontrib;
	return va;
}

/* ---- cells: their values, and the steps that access them ---- */

uint64_t swc_verify_cell_at(const struct swc_verify_machine *m, uint32_t rank, uint8_t buf,
			    uint32_t block)
{
	if (buf == SWC_BUF_RECV && m->in_place[rank] &&
	    swc_verify_in_window(&m->view[rank], SWC_BUF_SEND, block))
		buf = SWC_BUF_SEND;
	return m->first_cell[buf][rank] + block;
}

bool swc_verify_check_range(struct swc_verify_machine *m, const struct swc_verify_thread *t,
			    const struct swc_plan_xfer *x, uint8_t buf, uint32_t rank)
{
	uint32_t last = x->first_block + x->nblocks - 1;

	if (!x->nblocks || (swc_verify_in_window(&m->view[rank], buf, x->first_block) &&
			    swc_verify_in_window(&m->view[rank], buf, last)))
		return true;
	STEP_FAULT(m, t, "blocks %u to %u are outside of rank %u's buffer %u", x->first_block, last,
		   rank, buf);
	return false;
}

/* Is a step of another rank certain to be over? */
static bool over(const struct swc_verify_thread *t, uint32_t rank, uint32_t step)
{
	return rank == t->rank || t->clock[rank] > step + 1;
}

static void race(struct swc_verify_machine *m, const struct swc_verify_thread *t, uint32_t rank,
		 uint32_t step, const char *did)
{
	STEP_FAULT(m, t, "accesses a block that rank %u channel %u step %u may still be %s", rank,
		   m->chan, step, did);
}

static struct touch *reader(struct swc_verify_machine *m, uint32_t i)
{
	return (struct touch *)m->readers.at + i;
}

static void touch_read(struct swc_verify_machine *m, const struct swc_verify_thread *t, uint64_t at)
{
	struct swc_verify_cell *c = &m->cell[at];
	uint8_t self = (uint8_t)(m->chan + 1);
	struct swc_verify_touches *s = &m->touches[at];
	struct touch *r;
	uint32_t i;

	if (c->written && c->written != self)
		STEP_FAULT(m, t, "accesses a block that channel %u may still be writing",
			   c->written - 1);
	if (c->read && c->read != self)
		c->read = MANY;
	else
		c->read = self;
	if (!m->clocks)
		return;
	if (c->written && !over(t, s->writer, s->write_step))
		race(m, t, s->writer, s->write_step, "writing");
	for (i = s->readers; i; i = r->next) {
		r = reader(m, i);
		if (r->rank == t->rank) {
			r->step = t->at;
			return;
		}
	}
	i = take(m, &m->readers);
	if (!i)
		return;
	*reader(m, i) = (struct touch){ s->readers, t->rank, t->at };
	s->readers = i;
}

void swc_verify_touch_write(struct swc_verify_machine *m, const struct swc_verify_thread *t,
			    uint64_t at)
{
	struct swc_verify_cell *c = &m->cell[at];
	uint8_t self = (uint8_t)(m->chan + 1);
	struct swc_verify_touches *s = &m->touches[at];
	struct touch *r;
	uint32_t next;

	if (c->written && c->written != self)
		STEP_FAULT(m, t, "accesses a block that channel %u may still be writing",
			   c->written - 1);
	if (c->read == MANY)
		STEP_FAULT(m, t, "accesses a block that another channel may still be reading");
	else if (c->read && c->read != self)
		STEP_FAULT(m, t, "accesses a block that channel %u may still be reading",
			   c->read - 1);
	if (m->error)
		return;
	if (m->clocks) {
		if (c->written && !over(t, s->writer, s->write_step))
			race(m, t, s->writer, s->write_step, "writing");
		for (uint32_t i = s->readers; i; i = next) {
			r = reader(m, i);
			if (!over(t, r->rank, r->step))
				race(m, t, r->rank, r->step, "reading");
			next = r->next;
			give_back(&m->readers, i);
		}
		s->readers = 0;
		s->writer = t->rank;
		s->write_step = t->at;
	}
	c->written = self;
}

uint32_t swc_verify_load(struct swc_verify_machine *m, const struct swc_verify_thread *t,
			 uint32_t rank, uint8_t buf, uint32_t block)
{
	uint64_t at = swc_verify_cell_at(m, rank, buf, block);

	touch_read(m, t, at);
	if (m->cell[at].value)
		return swc_verify_hold(m, m->cell[at].value);
	if (at < m->first_cell[SWC_BUF_SEND][m->nranks])
		return swc_verify_contribution(m, rank, block);
	STEP_FAULT(m, t, "reads a block that was never written");
	return 0;
}

void swc_verify_store(struct swc_verify_machine *m, uint64_t at, uint32_t v)
{
	swc_verify_drop(m, m->cell[at].value);
	m->cell[at].value = v;
}

/* Only results of reductions need the mark: it divides in an average. */
uint32_t swc_verify_mark_final(struct swc_verify_machine *m, const struct swc_plan_xfer *x,
			       uint32_t v)
{
	if (!v || !(x->flags & SWC_XFER_FINAL) || !swc_coll_reduces(m->coll))
		return v;
	v = own(m, v);
	swc_verify_value(m, v)->finals++;
	return v;
}

void swc_verify_setup_cells(struct swc_verify_machine *m)
{
	uint64_t n = 0;

	for (int buf = 0; buf < SWC_BUF_NR; buf++) {
		m->first_cell[buf] = swc_verify_alloc(m, (uint64_t)m->nranks + 1,
						      sizeof(*m->first_cell[buf]));
		for (uint32_t r = 0; !m->error && r < m->nranks; r++) {
			const struct swc_plan_window *w = &m->view[r].hdr->window[buf];

			/* May wrap around; adding a block number of the window wraps it back. */
			m->first_cell[buf][r] = n - w->first_block;
			n += w->nblocks;
		}
		if (!m->error)
			m->first_cell[buf][m->nranks] = n;
	}
	m->cell = swc_verify_alloc(m, n, sizeof(*m->cell));
	m->touches = swc_verify_alloc(m, n, sizeof(*m->touches));
	m->values = (struct swc_verify_pool){
		.bytes = sizeof(struct swc_verify_value) + m->words * sizeof(uint64_t), .used = 1
	};
	m->readers = (struct swc_verify_pool){ .bytes = sizeof(struct touch), .used = 1 };
	swc_verify_grow(m, &m->values.at, 0, &m->values.room, m->values.bytes);
}
