// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Plans from MSCCL's XML, in which msccl-tools, TACCL, ForestColl and others write their
 * algorithms.
 *
 * There, each GPU has thread blocks that run a list of steps each, with a connection to send to and
 * one to receive from; steps name chunks of the input, output or scratch buffer, and may wait for a
 * step of another thread block. Messages are buffered. Here, a message is received in the step in
 * which it is sent, buffers consist of blocks of the vector, and scratch has room for one copy of
 * each.
 *
 * So the program runs once, on symbols and with buffered messages, and what it does becomes plans:
 *
 * - A chunk is a block of the vector. Values are in cells, which are blocks of SEND, RECV and
 *   SCRATCH. The cell of a value is chosen when it is stored; a cell is free when no chunk and no
 *   message on its way needs its value any more. A thread block that finds no free cell waits, as
 *   for anything else.
 * - A message received into scratch stays on its way until it is read. If it is read to be added or
 *   copied to another chunk, it is received there and never needs scratch; so one copy of each
 *   block is enough.
 * - Each message and each local operation gets a level: the first behind the operations that wrote
 *   the cells it reads, and accessed those it writes. Both ends of a message have the same level.
 *   The operations of a rank on one level are local steps, followed by one network step; since a
 *   message is sent and received on the same level, no rank ever waits for one that waits for it.
 * - Channels are those of the XML, if what they access is disjoint; else there is one.
 *
 * (Cowan et al., "MSCCLang: Microsoft collective communication language", 2023, describes programs
 * and thread blocks.)
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "plan/format/msccl_program.h"
#include "kmod/core/plan_check.h"

#define NONE SWC_MSCCL_NONE
#define MAX_PLACES SWC_MSCCL_MAX_PLACES

/* A chunk of a message that was sent. */
struct swc_msccl_sent {
	uint32_t from; /* GPU */
	uint32_t chan;
	uint32_t cell; /* of the sender */
	uint32_t block;
	uint32_t ncontrib;
};

/* A chunk of a buffer of a GPU. */
struct swc_msccl_place {
	enum {
		EMPTY,
		HELD,	/* by a cell */
		COMING, /* a message on its way */
		GONE,	/* a message that was received to another place */
	} state;
	uint32_t at; /* cell, or message */
	uint32_t block, ncontrib;
};

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Does SEND or RECV of a GPU have a block? */
static bool holds(const struct swc_msccl *m, uint32_t gpu, enum swc_buf buf, uint32_t block)
{
	struct swc_plan_window w = swc_plan_window_of(m->coll, buf, gpu, m->root, m->shard_blocks,
						      m->nblocks);

	return block >= w.first_block && block - w.first_block < w.nblocks;
}

/* The state of a cell. In place, cells of SEND and RECV are the same memory. */
static struct swc_msccl_cell_state *state(const struct swc_msccl *m, uint32_t cell)
{
	uint32_t gpu = swc_msccl_gpu(m, cell), block = swc_msccl_block(m, cell);

	if (m->in_place && swc_msccl_buf(m, cell) == SWC_BUF_RECV &&
	    holds(m, gpu, SWC_BUF_SEND, block))
		cell = swc_msccl_cell(m, gpu, SWC_BUF_SEND, block);
	return &m->state[cell];
}

/*
 * The place of chunk k of a step's buffer. The places of a GPU are its input and output (one if
 * they are the same memory), by block, and its scratch.
 */
static struct swc_msccl_place *place_of(struct swc_msccl *m, uint32_t gpu,
					const struct swc_msccl_op *o, bool dst, uint32_t k)
{
	struct swc_msccl_gpu_info *g = &m->gpu[gpu];
	char buf = dst ? o->dstbuf : o->srcbuf;
	uint32_t off = dst ? o->dstoff : o->srcoff, chunks = g->chunks[buf == 'i'   ? 0
								       : buf == 'o' ? 1
										    : 2];
	uint64_t at = (uint64_t)off + k;
	bool part = (buf == 'i' && m->coll == SWC_ALLGATHER) ||
		    (buf == 'o' && m->coll == SWC_REDUCE_SCATTER);

	if (off == NONE || at >= chunks) {
		swc_msccl_refuse(m, o->line, "expected %s within the %u chunks of %c of gpu %u",
				 dst ? "dstoff" : "srcoff", chunks, buf, gpu);
		return NULL;
	}
	if (buf == 's')
		return &m->place[g->first_place + (m->in_place ? 1 : 2) * m->nblocks + at];
	if (at >= (part ? m->shard_blocks : m->nblocks)) {
		swc_msccl_refuse(m, o->line, "chunk %u of %c is beyond what nchunksperloop says",
				 (uint32_t)at, buf);
		return NULL;
	}
	if (part)
		at += (uint64_t)gpu * m->shard_blocks;
	return &m->place[g->first_place + (buf == 'o' && !m->in_place ? m->nblocks : 0) + at];
}

/* Empty a place: its value is not needed any more. */
static void clear(struct swc_msccl *m, struct swc_msccl_place *p)
{
	if (p->state == HELD)
		state(m, p->at)->users--;
	if (p->state == COMING)
		state(m, m->sent[p->at].cell)->users--;
	p->state = EMPTY;
}

/* Is a cell's value needed by no place but this one, and by no message? */
static bool is_free(const struct swc_msccl *m, uint32_t cell, const struct swc_msccl_place *p)
{
	const struct swc_msccl_cell_state *s = state(m, cell);

	return s->users == (p && p->state == HELD && state(m, p->at) == s);
}

/* The first level from @level on where a receive may write the cell. */
static uint32_t level_for(const struct swc_msccl *m, uint32_t cell, uint32_t level, bool reduce)
{
	const struct swc_msccl_cell_state *s = state(m, cell);

	return larger(level, reduce ? s->add_write : larger(s->read, s->write));
}

/*
 * Find a cell for a value of @block that exists from @level on. Output goes to RECV (in place,
 * unless SCRATCH is free earlier), anything else to SCRATCH if that is free. Sums need their own
 * block, as the operand must be beside them; a copy fits wherever blocks have the same size. @p is
 * the place that gets the value and drops its old one; NULL: it is only sent on.
 */
static uint32_t find_cell(const struct swc_msccl *m, uint32_t gpu, const struct swc_msccl_place *p,
			  uint32_t block, uint32_t level, bool reduce)
{
	uint32_t at = p ? (uint32_t)(p - m->place) - m->gpu[gpu].first_place : NONE, cell,
		 out = NONE;
	bool output = !m->in_place && at != NONE && at >= m->nblocks && at < 2 * m->nblocks;

	if (output || (m->in_place && at < m->nblocks)) {
		at %= m->nblocks;
		cell = swc_msccl_cell(m, gpu, SWC_BUF_RECV, at);
		if (holds(m, gpu, SWC_BUF_RECV, at) && is_free(m, cell, p))
			out = cell;
		if (output || (out != NONE && level_for(m, out, level, reduce) == level))
			return out;
	}
	for (uint32_t b = block % m->shard_blocks; b < m->nblocks; b += m->shard_blocks) {
		cell = swc_msccl_cell(m, gpu, SWC_BUF_SCRATCH, b);
		if ((b == block || !swc_coll_reduces((uint8_t)m->coll)) && is_free(m, cell, p) &&
		    (out == NONE ||
		     level_for(m, cell, level, reduce) < level_for(m, out, level, reduce)))
			return cell;
	}
	if (out != NONE)
		return out;
	cell = swc_msccl_cell(m, gpu, SWC_BUF_RECV, block);
	return holds(m, gpu, SWC_BUF_RECV, block) && is_free(m, cell, p) ? cell : NONE;
}

static void hold(struct swc_msccl *m, struct swc_msccl_place *p, uint32_t cell, uint32_t block,
		 uint32_t ncontrib)
{
	clear(m, p);
	*p = (struct swc_msccl_place){ HELD, cell, block, ncontrib };
	state(m, cell)->users++;
}

/* ------------------------------------------------------------------ levels */

static void touched_by(struct swc_msccl *m, uint32_t cell, uint32_t chan)
{
	struct swc_msccl_cell_state *s = &m->state[cell];

	/* The operation may be in place, whatever the program was written for. */
	if (swc_msccl_buf(m, cell) == SWC_BUF_RECV)
		s = &m->state[swc_msccl_cell(m, swc_msccl_gpu(m, cell), SWC_BUF_SEND,
					     swc_msccl_block(m, cell))];
	if (!s->touched)
		s->chan = chan;
	else if (s->chan != chan)
		s->chan = NONE;
	s->touched = true;
}

/* Is b, in the same buffer, n blocks behind a? */
static bool follows(const struct swc_msccl *m, uint32_t a, uint32_t b, uint32_t n)
{
	return a + n == b && a / m->nblocks == b / m->nblocks;
}

/* Append a record, or extend the last one if this one continues it. */
static void put(struct swc_msccl *m, const struct swc_msccl_record *r)
{
	struct swc_msccl_record *l = m->nrecords ? &m->record[m->nrecords - 1] : NULL;
	uint32_t i;

	touched_by(m, r->src, r->chan);
	touched_by(m, r->dst, r->chan);
	if (r->operand != NONE)
		touched_by(m, r->operand, r->chan);
	if (l && l->local == r->local && l->reduce == r->reduce && l->final == r->final &&
	    l->level == r->level && l->chan == r->chan && follows(m, l->src, r->src, l->n) &&
	    follows(m, l->dst, r->dst, l->n) &&
	    (!r->reduce || follows(m, l->operand, r->operand, l->n))) {
		l->n++;
		return;
	}
	i = swc_msccl_append(m, &m->record, &m->nrecords, &m->record_room, sizeof(*r));
	if (i != NONE)
		m->record[i] = *r;
}

/* Record the receive of a chunk; @operand NONE: it is stored. Returns the level. */
static uint32_t receive(struct swc_msccl *m, uint32_t message, uint32_t dst, uint32_t operand,
			uint32_t floor, bool final)
{
	const struct swc_msccl_sent *s = &m->sent[message];
	struct swc_msccl_cell_state *from = state(m, s->cell), *to = state(m, dst);
	struct swc_msccl_cell_state *with = operand == NONE ? NULL : state(m, operand);
	uint32_t level = larger(floor, from->read);

	if (with)
		level = larger(level, larger(to->add_write, with->add_read));
	else
		level = larger(level, larger(to->read, to->write));
	from->users--;
	from->write = larger(from->write, level + 1);
	from->add_write = larger(from->add_write, level + 1);
	to->read = level + 1;
	to->write = larger(to->write, level + 1);
	to->add_read = with ? level : level + 1;
	to->add_write = with ? larger(to->add_write, level) : level + 1;
	if (with) {
		with->write = larger(with->write, level + 1);
		with->add_write = larger(with->add_write, level);
	}
	put(m, &(struct swc_msccl_record){ .reduce = with,
					   .final = final,
					   .level = level,
					   .chan = s->chan,
					   .src = s->cell,
					   .dst = dst,
					   .operand = operand,
					   .n = 1 });
	return level;
}

/* Record dst = src, or src + operand, within a GPU. */
static void local(struct swc_msccl *m, uint32_t chan, uint32_t src, uint32_t operand, uint32_t dst,
		  bool final)
{
	struct swc_msccl_cell_state *to = state(m, dst), *from = state(m, src);
	struct swc_msccl_cell_state *with = operand == NONE ? from : state(m, operand);
	uint32_t level = larger(larger(from->read, with->read), larger(to->read, to->write));

	to->read = to->write = to->add_read = to->add_write = level;
	from->write = larger(from->write, level);
	from->add_write = larger(from->add_write, level);
	with->write = larger(with->write, level);
	with->add_write = larger(with->add_write, level);
	put(m, &(struct swc_msccl_record){ .local = true,
					   .reduce = operand != NONE,
					   .final = final,
					   .level = level,
					   .chan = chan,
					   .src = src,
					   .dst = dst,
					   .operand = operand,
					   .n = 1 });
}

/* ------------------------------------------------------------------ running the program */

/*
 * Get the value of a place into a cell, by receiving it if it is on its way. False: not possible
 * yet, or an error.
 */
static bool fetch(struct swc_msccl *m, uint32_t gpu, struct swc_msccl_place *p,
		  const struct swc_msccl_op *o)
{
	uint32_t cell;

	if (!p || p->state == HELD)
		return p;
	if (p->state != COMING) {
		swc_msccl_refuse(
			m, o->line,
			p->state == GONE
				? "reads a chunk of scratch a second time, which plans have no room for"
				: "reads a chunk that nothing was stored in");
		return false;
	}
	cell = find_cell(m, gpu, NULL, p->block, state(m, m->sent[p->at].cell)->read, false);
	if (cell == NONE)
		return false;
	receive(m, p->at, cell, NONE, 0, false);
	p->state = GONE;
	hold(m, p, cell, p->block, p->ncontrib);
	return true;
}

static bool complete(const struct swc_msccl *m, uint32_t ncontrib)
{
	return swc_coll_reduces((uint8_t)m->coll) && ncontrib == m->ngpus;
}

static bool same_block(struct swc_msccl *m, const struct swc_msccl_op *o, uint32_t a, uint32_t b)
{
	if (a != b)
		swc_msccl_refuse(m, o->line, "adds chunk %u of the vector to chunk %u", a, b);
	return a == b;
}

static void send(struct swc_msccl *m, struct swc_msccl_tb *t, uint32_t cell, uint32_t block,
		 uint32_t ncontrib)
{
	state(m, cell)->users++;
	m->sent[t->first_sent + t->nsent++] = (struct swc_msccl_sent){ t->gpu, t->chan, cell, block,
								       ncontrib };
}

/* The receiving half of chunk k of a step. False: not possible yet, or an error. */
static bool run_receive(struct swc_msccl *m, struct swc_msccl_tb *t, const struct swc_msccl_op *o,
			uint32_t k)
{
	struct swc_msccl_tb *from = t->from == NONE ? NULL : &m->tb[t->from];
	struct swc_msccl_place *dst = NULL, *src = NULL;
	uint32_t cell, ncontrib, operand = NONE, level, i;
	const struct swc_msccl_sent *s;

	if (!from || from->ntaken == from->nsent)
		return false;
	i = from->first_sent + from->ntaken;
	s = &m->sent[i];
	ncontrib = s->ncontrib;
	if (o->type & SWC_MSCCL_STORE) {
		dst = place_of(m, t->gpu, o, true, k);
		if (!dst)
			return false;
	}
	if (o->type & SWC_MSCCL_REDUCE) {
		src = place_of(m, t->gpu, o, false, k);
		if (!fetch(m, t->gpu, src, o) || !same_block(m, o, s->block, src->block))
			return false;
		ncontrib += src->ncontrib;
		operand = src->at;
	} else if (o->dstbuf == 's' && !(o->type & SWC_MSCCL_SEND)) {
		clear(m, dst);
		*dst = (struct swc_msccl_place){ COMING, i, s->block, s->ncontrib };
		from->ntaken++;
		return true;
	}
	level = larger(t->floor, state(m, s->cell)->read);
	if (operand != NONE)
		level = larger(level, state(m, operand)->add_read);
	cell = find_cell(m, t->gpu, dst, s->block, level, operand != NONE);
	if (cell == NONE)
		return false;
	if (swc_msccl_block(m, cell) % m->shard_blocks != s->block % m->shard_blocks ||
	    (operand != NONE && swc_msccl_block(m, cell) != swc_msccl_block(m, operand))) {
		swc_msccl_refuse(m, o->line, "moves chunk %u of the vector to the place of another",
				 s->block);
		return false;
	}
	level = receive(m, i, cell, operand, t->floor, operand != NONE && complete(m, ncontrib));
	t->top = larger(t->top, level + 1);
	from->ntaken++;
	if (dst)
		hold(m, dst, cell, s->block, ncontrib);
	else
		send(m, t, cell, s->block, ncontrib);
	return true;
}

/* The sending half. The receiving half of rrs has sent it already. */
static bool run_send(struct swc_msccl *m, struct swc_msccl_tb *t, const struct swc_msccl_op *o,
		     uint32_t k)
{
	struct swc_msccl_place *p;

	if (o->type & SWC_MSCCL_REDUCE && !(o->type & SWC_MSCCL_STORE))
		return true;
	p = place_of(m, t->gpu, o, o->type & SWC_MSCCL_RECV, k);
	if (!fetch(m, t->gpu, p, o))
		return false;
	send(m, t, p->at, p->block, p->ncontrib);
	return true;
}

/* cpy and re. A chunk on its way is received to its final place. */
static bool run_local(struct swc_msccl *m, struct swc_msccl_tb *t, const struct swc_msccl_op *o,
		      uint32_t k)
{
	struct swc_msccl_place *src = place_of(m, t->gpu, o, false, k),
			       *dst = place_of(m, t->gpu, o, true, k);
	bool add = o->type & SWC_MSCCL_ADD;
	uint32_t cell, ncontrib, level, from;

	if (!src || !dst || src == dst)
		return src && src == dst && !add;
	if (add && !fetch(m, t->gpu, dst, o))
		return false;
	if (src->state != COMING && !fetch(m, t->gpu, src, o))
		return false;
	if (add && !same_block(m, o, src->block, dst->block))
		return false;
	from = src->state == COMING ? m->sent[src->at].cell : src->at;
	level = state(m, from)->read;
	if (add)
		level = larger(level, src->state == COMING ? state(m, dst->at)->add_read
							   : state(m, dst->at)->read);
	cell = find_cell(m, t->gpu, dst, src->block, level, add && src->state == COMING);
	if (cell == NONE)
		return false;
	if (swc_msccl_block(m, cell) % m->shard_blocks != src->block % m->shard_blocks) {
		swc_msccl_refuse(m, o->line, "moves chunk %u of the vector to the place of another",
				 src->block);
		return false;
	}
	ncontrib = src->ncontrib + (add ? dst->ncontrib : 0);
	if (src->state == COMING) {
		receive(m, src->at, cell, add ? dst->at : NONE, 0, add && complete(m, ncontrib));
		src->state = GONE;
	} else {
		local(m, t->chan, add ? dst->at : src->at, add ? src->at : NONE, cell,
		      add && complete(m, ncontrib));
	}
	hold(m, dst, cell, src->block, ncontrib);
	return true;
}

/* Run a thread block as far as possible. Returns whether it did anything. */
static bool run_tb(struct swc_msccl *m, struct swc_msccl_tb *t)
{
	const struct swc_msccl_gpu_info *g = &m->gpu[t->gpu];
	bool moved = false;

	while (!m->error && t->at < t->nops) {
		const struct swc_msccl_op *o = &m->op[t->first_op + t->at];

		if (o->dep_tb != NONE && o->dep_step != NONE && t->chunk == 0) {
			if (o->dep_tb >= g->ntbs ||
			    o->dep_step >= m->tb[g->first_tb + o->dep_tb].nops) {
				swc_msccl_refuse(m, o->line,
						 "there is no step %u of tb %u to wait for",
						 o->dep_step, o->dep_tb);
				return moved;
			}
			if (m->tb[g->first_tb + o->dep_tb].at <= o->dep_step)
				return moved;
		}
		if (!t->chunk && !t->received)
			t->floor = t->top;
		for (; t->chunk < o->cnt; t->chunk++) {
			if (o->type & (SWC_MSCCL_COPY | SWC_MSCCL_ADD)) {
				if (!run_local(m, t, o, t->chunk))
					return moved;
				moved = true;
				continue;
			}
			if (o->type & SWC_MSCCL_RECV && !t->received) {
				if (!run_receive(m, t, o, t->chunk))
					return moved;
				moved = t->received = true;
			}
			if (o->type & SWC_MSCCL_SEND && !run_send(m, t, o, t->chunk))
				return moved;
			moved = true;
			t->received = false;
		}
		t->chunk = 0;
		t->at++;
		moved = true;
	}
	return moved;
}

/* Receive one message on its way, for a thread block that waits for the cell of its sender. */
static bool fetch_one(struct swc_msccl *m)
{
	for (uint32_t i = 0; i < m->ngpus; i++) {
		struct swc_msccl_gpu_info *g = &m->gpu[i];
		uint32_t first = g->first_place + (m->in_place ? 1 : 2) * m->nblocks;

		for (uint32_t k = 0; k < g->chunks[2]; k++)
			if (m->place[first + k].state == COMING &&
			    fetch(m, i, &m->place[first + k], NULL))
				return true;
	}
	return false;
}

static void run_program(struct swc_msccl *m)
{
	bool moved;

	do {
		moved = false;
		for (uint32_t i = 0; !m->error && i < m->ntbs; i++)
			moved |= run_tb(m, &m->tb[i]);
		if (!m->error && !moved)
			moved = fetch_one(m);
	} while (!m->error && moved);
	for (uint32_t i = 0; !m->error && i < m->ntbs; i++) {
		struct swc_msccl_tb *t = &m->tb[i];

		if (t->at < t->nops) {
			swc_msccl_refuse(
				m, m->op[t->first_op + t->at].line,
				"waits for ever (for a message, for another tb, or for more copies of a chunk in scratch than plans have room for)");
			m->error = -EOPNOTSUPP;
		}
	}
}

/* In place: copy output to RECV that had to be stored elsewhere, or that is the input. */
static void finish_output(struct swc_msccl *m)
{
	for (uint32_t i = 0; m->in_place && !m->error && i < m->ngpus; i++) {
		for (uint32_t b = 0; b < m->nblocks; b++) {
			struct swc_msccl_place *p = &m->place[m->gpu[i].first_place + b];
			uint32_t cell = swc_msccl_cell(m, i, SWC_BUF_RECV, b);
			const struct swc_msccl_cell_state *from = &m->state[p->at];

			if (!holds(m, i, SWC_BUF_RECV, b) || p->state != HELD || p->at == cell ||
			    !is_free(m, cell, p) ||
			    p->block % m->shard_blocks != b % m->shard_blocks)
				continue;
			local(m, from->touched && from->chan != NONE ? from->chan : 0, p->at, NONE,
			      cell, false);
			hold(m, p, cell, p->block, p->ncontrib);
		}
	}
}

static int compare_peers(const void *a, const void *b)
{
	const struct swc_msccl_tb *x = *(const struct swc_msccl_tb *const *)a,
				  *y = *(const struct swc_msccl_tb *const *)b;
	const uint32_t u[] = { x->gpu, x->send, x->chan }, v[] = { y->gpu, y->send, y->chan };

	return u[0] != v[0]   ? (u[0] > v[0]) - (u[0] < v[0])
	       : u[1] != v[1] ? (u[1] > v[1]) - (u[1] < v[1])
			      : (u[2] > v[2]) - (u[2] < v[2]);
}

/* Find the thread block that sends to each one. */
static void connect(struct swc_msccl *m)
{
	const struct swc_msccl_tb **sender = calloc(m->ntbs + 1, sizeof(*sender));
	bool *taken = calloc(m->ntbs + 1, sizeof(*taken));
	uint32_t n = 0;

	if (!sender || !taken)
		m->error = -ENOMEM;
	for (uint32_t i = 0; !m->error && i < m->ntbs; i++)
		if (m->tb[i].send != NONE)
			sender[n++] = &m->tb[i];
	if (!m->error)
		qsort(sender, n, sizeof(const struct swc_msccl_tb *), compare_peers);
	for (uint32_t i = 1; !m->error && i < n; i++)
		if (!compare_peers(&sender[i - 1], &sender[i]))
			swc_msccl_refuse(m, sender[i]->line,
					 "two tbs of gpu %u send to gpu %u on channel %u",
					 sender[i]->gpu, sender[i]->send, sender[i]->chan);
	for (uint32_t i = 0; !m->error && i < m->ntbs; i++) {
		struct swc_msccl_tb *t = &m->tb[i],
				    key = { .gpu = t->recv, .send = t->gpu, .chan = t->chan };
		const struct swc_msccl_tb *k = &key, **found;

		if (t->recv == NONE)
			continue;
		found = bsearch(&k, sender, n, sizeof(const struct swc_msccl_tb *), compare_peers);
		if (!found)
			continue;
		t->from = (uint32_t)(*found - m->tb);
		if (taken[t->from])
			swc_msccl_refuse(m, t->line,
					 "two tbs of gpu %u receive from gpu %u on channel %u",
					 t->gpu, t->recv, t->chan);
		taken[t->from] = true;
	}
	free(sender);
	free(taken);
}

static void setup(struct swc_msccl *m, uint64_t nsent)
{
	uint64_t nplaces = 0, ncells = 3ull * m->nblocks * m->ngpus;

	for (uint32_t i = 0; !m->error && i < m->ngpus; i++) {
		struct swc_msccl_gpu_info *g = &m->gpu[i];

		if (!g->given)
			swc_msccl_refuse(m, 0, "gpu %u of %u is missing", i, m->ngpus);
		g->first_place = (uint32_t)nplaces;
		nplaces += (m->in_place ? 1 : 2) * (uint64_t)m->nblocks + g->chunks[2];
		if (nplaces > MAX_PLACES || ncells > 2 * MAX_PLACES) {
			swc_msccl_refuse(m, 0, "more than %u chunks in all buffers", MAX_PLACES);
			m->error = -EOPNOTSUPP;
			return;
		}
	}
	for (uint32_t i = 0; !m->error && i < m->ntbs; i++) {
		struct swc_msccl_tb *t = &m->tb[i];

		t->first_sent = (uint32_t)nsent;
		for (uint32_t k = 0; k < t->nops; k++)
			if (m->op[t->first_op + k].type & SWC_MSCCL_SEND)
				nsent += m->op[t->first_op + k].cnt;
	}
	if (m->error)
		return;
	m->place = calloc(nplaces + 1, sizeof(*m->place));
	m->state = calloc(ncells + 1, sizeof(*m->state));
	m->sent = calloc(nsent + 1, sizeof(*m->sent));
	if (!m->place || !m->state || !m->sent) {
		m->error = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < m->ngpus; i++)
		for (uint32_t b = 0; b < m->nblocks; b++)
			if (holds(m, i, SWC_BUF_SEND, b))
				hold(m, &m->place[m->gpu[i].first_place + b],
				     swc_msccl_cell(m, i, SWC_BUF_SEND, b), b, 1);
	connect(m);
}

static void free_program(struct swc_msccl *m)
{
	free(m->gpu);
	free(m->tb);
	free(m->op);
	free(m->place);
	free(m->state);
	free(m->sent);
	free(m->record);
}

/* What is left at the end: results to where they belong, and plans. */
int swc_msccl_end(struct swc_msccl *m, struct swc_plan_set *set)
{
	if (!m->error)
		finish_output(m);
	if (!m->error)
		m->error = swc_msccl_make_plans(m, set);
	free_program(m);
	return m->error;
}

int swc_msccl_parse(const char *xml, size_t bytes, struct swc_plan_set *set, char *why,
		    size_t why_bytes)
{
	struct swc_msccl m = { .why = why, .why_bytes = why_bytes };

	*set = (struct swc_plan_set){ 0 };
	if (!swc_msccl_parse_xml(&m, xml, bytes))
		setup(&m, 0);
	if (!m.error)
		run_program(&m);
	return swc_msccl_end(&m, set);
}

/* ------------------------------------------------------------------ chunk by chunk */

/* Two thread blocks, of which each has one operation at a time. */
int swc_msccl_begin(struct swc_msccl *m, uint64_t moves)
{
	if (m->error)
		return m->error;
	if (moves > MAX_PLACES) {
		swc_msccl_refuse(m, 0, "moves more than %u chunks", MAX_PLACES);
		return m->error = -EOPNOTSUPP;
	}
	m->tb = calloc(2, sizeof(*m->tb));
	m->op = calloc(2, sizeof(*m->op));
	if (!m->tb || !m->op)
		return m->error = -ENOMEM;
	setup(m, moves);
	return m->error;
}

/* Run both as far as they get; -EOPNOTSUPP if that is not to the end. */
static int run_pair(struct swc_msccl *m, uint32_t ntbs)
{
	bool moved;

	do {
		moved = false;
		for (uint32_t i = 0; i < ntbs; i++)
			moved |= run_tb(m, &m->tb[i]);
		if (!m->error && !moved)
			moved = fetch_one(m);
	} while (!m->error && moved && m->tb[ntbs - 1].at < 1);
	if (!m->error && m->tb[ntbs - 1].at < 1) {
		swc_msccl_refuse(
			m, 0, "needs more copies of a chunk in scratch than plans have room for");
		m->error = -EOPNOTSUPP;
	}
	return m->error;
}

int swc_msccl_move(struct swc_msccl *m, const struct swc_msccl_chunks *from,
		   const struct swc_msccl_chunks *to, uint32_t n, bool add)
{
	struct swc_msccl_op op = { .srcbuf = from->buf,
				   .srcoff = from->first,
				   .dstbuf = to->buf,
				   .dstoff = to->first,
				   .cnt = n,
				   .dep_tb = NONE,
				   .dep_step = NONE };
	struct swc_msccl_tb tb = {
		.gpu = from->gpu, .send = NONE, .recv = NONE, .nops = 1, .from = NONE
	};

	if (from->gpu == to->gpu) {
		op.type = add ? SWC_MSCCL_ADD : SWC_MSCCL_COPY;
		m->op[0] = op;
		m->tb[0] = tb;
		return run_pair(m, 1);
	}
	op.type = SWC_MSCCL_SEND;
	m->op[0] = op;
	tb.first_sent = m->nmoved;
	m->nmoved += n;
	m->tb[0] = tb;
	op.type = SWC_MSCCL_RECV | SWC_MSCCL_STORE | (add ? SWC_MSCCL_REDUCE : 0);
	/* What is received is added to the same chunk. */
	op.srcbuf = op.dstbuf;
	op.srcoff = op.dstoff;
	m->op[1] = op;
	tb = (struct swc_msccl_tb){ .gpu = to->gpu, .nops = 1, .first_op = 1, .from = 0 };
	m->tb[1] = tb;
	return run_pair(m, 2);
}

bool swc_msccl_has(struct swc_msccl *m, const struct swc_msccl_chunks *c, uint32_t n)
{
	struct swc_msccl_op op = { .srcbuf = c->buf, .srcoff = c->first };

	for (uint32_t k = 0; k < n; k++) {
		const struct swc_msccl_place *p = place_of(m, c->gpu, &op, false, k);

		if (!p || p->state == EMPTY)
			return false;
	}
	return true;
}
