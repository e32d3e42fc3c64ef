// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ALLTOALL over Swing's butterfly, on every port of a torus with even sides.
 *
 * Shard y of member x, piece (x, y), takes the path of the reduce-scatter from x to y (see
 * butterfly_sets.c), where members exchange with one other in a step: log2 p steps, with p / 2 pieces
 * each if p is a power of two. All members look alike, so each has p pieces at any time and receives
 * as many as it sends.
 *
 * A piece that has come in for another member waits in SCRATCH, or better in a part of RECV whose own
 * piece comes only after this one has gone on; a step may not overwrite what it sends. If a piece for
 * this member finds its part of RECV taken, it waits in SCRATCH to the end.
 *
 * De Sensi et al., "Bine trees: enhancing collective operations by optimizing communication locality",
 * SC 2025.
 */
#include <errno.h>
#include <stdlib.h>

#include "kmod/core/plan_check.h"
#include "plan/algo/bine.h"
#include "plan/algo/butterfly_lines.h"

#define NOWHERE UINT32_MAX

/* Where a piece is. */
struct place {
	uint32_t shard;
	enum swc_buf buf;
};

struct coords {
	uint32_t x[SWC_TOPO_DIMS];
};

/**
 * struct exchange - one port's plan
 * @ports, @c: the port's block of a shard
 * @at: coordinates of all members
 * @hop: by step, how far the partner is, see offset()
 * @step: by dimension, and how far a block is from a member: the step in which that one sends it
 * @stride: by dimension: from a member to the next one
 * @leaves: by member, the step in which a piece for it leaves this member; this member: the number of
 *	steps
 * @comes: by member, the step in which its piece for this member comes
 * @first, @pieces: by step and member: of what has come, the first piece for it in that step, and how
 *	many
 * @came: places of what has come
 * @head: lists of free parts of RECV by the step up to which they are free, and last of SCRATCH
 * @next: of the lists; by place, SCRATCH behind RECV
 * @taken: by part of RECV
 * @late: by member, the part of SCRATCH where its piece for this member waits to the end, or NOWHERE
 */
struct exchange {
	struct swc_builder *b;
	struct swc_lines lines;
	uint32_t ports, c;
	struct coords *at;
	uint32_t hop[SWC_BUTTERFLY_STEPS];
	uint8_t *step[SWC_TOPO_DIMS];
	uint32_t stride[SWC_TOPO_DIMS];
	uint8_t *leaves, *comes;
	uint32_t *first, *pieces;
	struct place *came;
	uint32_t ncame;
	uint32_t head[SWC_BUTTERFLY_STEPS + 2], *next;
	bool *taken;
	uint32_t *late;
};

/* ---- paths ---- */

/*
 * How far y is from x, up from an even coordinate and down from an odd one: in these terms, all members
 * do the same.
 */
static uint32_t offset(uint32_t x, uint32_t y, uint32_t d)
{
	uint32_t up = x % 2 ? x - y : y - x;

	return (int32_t)up < 0 ? up + d : up;
}

static uint32_t partner(const struct exchange *e, uint32_t s, uint32_t member)
{
	uint32_t dim = e->lines.turn[s].dim, d = e->lines.line[dim].d;
	uint32_t x = e->at[member].x[dim], hop = e->hop[s], y = x + (x % 2 ? d - hop : hop);

	return member + ((y < d ? y : y - d) - x) * e->stride[dim];
}

static void find_steps(struct exchange *e)
{
	for (uint32_t i = 0; i < e->lines.ndims; i++) {
		const struct swc_line *l = &e->lines.line[i];

		e->step[i][0] = (uint8_t)e->lines.steps;
		for (uint32_t y = 1; y < l->d; y++)
			e->step[i][y] = (uint8_t)e->lines.turn_at[i][swc_line_when(l, 0, y)];
	}
	for (uint32_t s = 0; s < e->lines.steps; s++) {
		struct swc_turn t = e->lines.turn[s];

		e->hop[s] = swc_line_peer(&e->lines.line[t.dim], 0, t.step, 0);
	}
}

/* The step in which a member sends the pieces for another one; for itself: the number of steps. */
static uint32_t when(const struct exchange *e, uint32_t from, uint32_t to)
{
	uint32_t first = e->lines.steps;

	for (uint32_t i = 0; i < e->lines.ndims; i++) {
		uint32_t x = e->at[from].x[i], y = e->at[to].x[i];
		uint32_t s = e->step[i][offset(x, y, e->lines.line[i].d)];

		first = s < first ? s : first;
	}
	return first;
}

static void find_paths(struct exchange *e)
{
	for (uint32_t y = 0; y < e->b->n; y++) {
		uint32_t at = y, s = e->lines.steps;

		e->leaves[y] = (uint8_t)when(e, e->b->me, y);
		while (at != e->b->me) {
			s = when(e, at, e->b->me);
			at = partner(e, s, at);
		}
		e->comes[y] = (uint8_t)s;
	}
}

/*
 * The members whose pieces for y have been at x before step s: x itself, and those from which x has
 * received, in the order of steps. Returns how many.
 */
static uint32_t sources(const struct exchange *e, uint32_t x, uint32_t y, uint32_t s, uint32_t *out)
{
	uint32_t n = 1;

	*out = x;
	for (uint32_t k = 0; k < s; k++) {
		uint32_t q = partner(e, k, x);

		if (when(e, q, y) == k)
			n += sources(e, q, y, k, out + n);
	}
	return n;
}

/* ---- places ---- */

static uint32_t scratch_list(const struct exchange *e)
{
	return e->lines.steps + 1;
}

static void put(struct exchange *e, uint32_t list, uint32_t place)
{
	e->next[place] = e->head[list];
	e->head[list] = place;
}

static uint32_t get(struct exchange *e, uint32_t list)
{
	uint32_t place = e->head[list];

	if (place != NOWHERE)
		e->head[list] = e->next[place];
	return place;
}

/* After step s a place is free again. */
static void release(struct exchange *e, uint32_t s, struct place p)
{
	uint32_t n = e->b->n;

	if (p.buf == SWC_BUF_SCRATCH) {
		put(e, scratch_list(e), n + p.shard);
		return;
	}
	if (p.buf == SWC_BUF_SEND && !e->b->in_place)
		return;
	e->taken[p.shard] = false;
	/* The piece whose part this is comes later, never, or waits elsewhere already. */
	put(e, e->comes[p.shard] > s ? e->comes[p.shard] : e->lines.steps, p.shard);
}

static struct place take(struct exchange *e, uint32_t place)
{
	uint32_t n = e->b->n;

	if (place == NOWHERE) {
		if (!e->b->error)
			e->b->error = swc_build_refuse(e->b, "no room for all-to-all of %u members",
						       n);
		place = 0;
	}
	if (place >= n) {
		swc_build_scratch(e->b, (place - n) * e->ports + e->c, 1);
		return (struct place){ place - n, SWC_BUF_SCRATCH };
	}
	e->taken[place] = true;
	return (struct place){ place, SWC_BUF_RECV };
}

/* A place for a piece that comes in step s and leaves in step @until. */
static struct place find_place(struct exchange *e, uint32_t s, uint32_t until)
{
	uint32_t place = NOWHERE;

	for (uint32_t list = until + 1; list <= e->lines.steps && place == NOWHERE; list++)
		place = get(e, list);
	if (place == NOWHERE)
		place = get(e, scratch_list(e));
	for (uint32_t list = until; list > s && place == NOWHERE; list--)
		place = get(e, list);
	return take(e, place);
}

/* A place for the piece of member x for this one. */
static struct place find_own_place(struct exchange *e, uint32_t x)
{
	struct place p;

	if (!e->taken[x]) {
		e->taken[x] = true;
		return (struct place){ x, SWC_BUF_RECV };
	}
	p = take(e, get(e, scratch_list(e)));
	e->late[x] = p.shard;
	return p;
}

/* ---- the plan ---- */

static uint32_t block_of(const struct exchange *e, uint32_t shard)
{
	return shard * e->ports + e->c;
}

static size_t index_of(const struct exchange *e, uint32_t s, uint32_t y)
{
	return (size_t)s * e->b->n + y;
}

/* All pieces for y that this member has before step s: its own, and those that came, in their order. */
static void send(struct exchange *e, uint32_t s, uint32_t peer, uint32_t y, bool release_only)
{
	struct place own = { y, SWC_BUF_SEND };

	for (uint32_t k = 0; k <= s; k++) {
		uint32_t q = k ? partner(e, k - 1, e->b->me) : 0, n = 1;
		const struct place *p = &own;

		if (k && when(e, q, y) != k - 1)
			continue;
		if (k) {
			p = &e->came[e->first[index_of(e, k - 1, y)]];
			n = e->pieces[index_of(e, k - 1, y)];
		}
		for (uint32_t i = 0; i < n; i++)
			if (release_only)
				release(e, s, p[i]);
			else
				swc_build_send_stored(e->b, peer, p[i].buf, block_of(e, p[i].shard),
						      1);
	}
}

/* All pieces for y that the peer has before step s. @from: room for the members that they are of */
static void receive(struct exchange *e, uint32_t s, uint32_t peer, uint32_t y, uint32_t *from)
{
	uint32_t n = sources(e, peer, y, s, from);
	bool mine = y == e->b->me;

	e->first[index_of(e, s, y)] = e->ncame;
	e->pieces[index_of(e, s, y)] = n;
	for (uint32_t i = 0; i < n; i++) {
		struct place p = mine ? find_own_place(e, from[i]) : find_place(e, s, e->leaves[y]);
		bool final = mine && p.buf == SWC_BUF_RECV;

		e->came[e->ncame++] = p;
		swc_build_recv(e->b, peer, p.buf, block_of(e, p.shard), 1,
			       final ? SWC_XFER_FINAL : 0);
	}
}

static void copy(struct exchange *e, enum swc_buf buf, uint32_t from, uint32_t to)
{
	swc_build_step(e->b, SWC_STEP_LOCAL);
	swc_build_send(e->b, e->b->me, buf, block_of(e, from), 1);
	swc_build_recv(e->b, e->b->me, SWC_BUF_RECV, block_of(e, to), 1, SWC_XFER_FINAL);
}

static void build_port(struct exchange *e, uint32_t *from)
{
	uint32_t n = e->b->n, me = e->b->me;

	find_steps(e);
	find_paths(e);
	e->ncame = 0;
	for (uint32_t list = 0; list <= scratch_list(e); list++)
		e->head[list] = NOWHERE;
	for (uint32_t x = n; x-- > 0;) {
		e->late[x] = NOWHERE;
		e->taken[x] = e->b->in_place;
		put(e, scratch_list(e), n + x);
		if (!e->b->in_place)
			put(e, e->comes[x], x);
	}
	for (uint32_t s = 0; s < e->lines.steps && !e->b->error; s++) {
		uint32_t peer = partner(e, s, me);

		swc_build_step(e->b, SWC_STEP_NET);
		for (uint32_t y = 0; y < n; y++)
			if (e->leaves[y] == s)
				send(e, s, peer, y, false);
		for (uint32_t y = 0; y < n; y++)
			if (when(e, peer, y) == s)
				receive(e, s, peer, y, from);
		for (uint32_t y = 0; y < n; y++)
			if (e->leaves[y] == s)
				send(e, s, peer, y, true);
	}
	copy(e, SWC_BUF_SEND, me, me);
	for (uint32_t x = 0; x < n; x++)
		if (e->late[x] != NOWHERE)
			copy(e, SWC_BUF_SCRATCH, e->late[x], x);
}

static bool open_exchange(struct exchange *e, uint32_t steps)
{
	uint32_t n = e->b->n, stride = 1;

	for (uint32_t i = e->b->topo->ndims; i-- > 0; stride *= e->b->topo->dim[i]) {
		e->stride[i] = stride;
		e->step[i] = malloc(e->b->topo->dim[i]);
		if (!e->step[i])
			return false;
	}
	e->at = calloc(n, sizeof(*e->at));
	e->leaves = calloc(n, 1);
	e->comes = calloc(n, 1);
	e->first = calloc((size_t)n * steps, sizeof(*e->first));
	e->pieces = calloc((size_t)n * steps, sizeof(*e->pieces));
	e->came = calloc((size_t)n * steps, sizeof(*e->came));
	e->next = calloc(n, 2 * sizeof(*e->next));
	e->taken = calloc(n, sizeof(*e->taken));
	e->late = calloc(n, sizeof(*e->late));
	if (!e->at || !e->leaves || !e->comes || !e->first || !e->pieces || !e->came || !e->next ||
	    !e->taken || !e->late)
		return false;
	for (uint32_t x = 0; x < n; x++)
		swc_topo_coords(e->b->topo, x, e->at[x].x);
	return true;
}

static void close_exchange(struct exchange *e)
{
	for (uint32_t i = 0; i < e->b->topo->ndims; i++)
		free(e->step[i]);
	swc_lines_free(&e->lines);
	free(e->at);
	free(e->leaves);
	free(e->comes);
	free(e->first);
	free(e->pieces);
	free(e->came);
	free(e->next);
	free(e->taken);
	free(e->late);
}

int swc_bine_alltoall(struct swc_builder *b)
{
	struct exchange e = { .b = b, .ports = swc_build_ports(b) };
	uint32_t steps = 0, *from;

	for (uint32_t i = 0; i < b->topo->ndims; i++) {
		uint32_t d = b->topo->dim[i];

		if (d % 2 && d > 1)
			return swc_build_refuse(
				b, "all-to-all by bine needs even sizes, not %u: use rotate", d);
		for (uint32_t k = 1; k < d; k *= 2)
			steps++;
	}
	if ((uint64_t)b->n * steps * e.ports > SWC_MAX_PLAN_BYTES / sizeof(struct swc_plan_xfer))
		return swc_build_refuse(b, "the plan would have more than %u bytes",
					SWC_MAX_PLAN_BYTES);
	from = calloc(b->n, sizeof(*from));
	if (swc_lines_open(&e.lines, b->topo, true) || !open_exchange(&e, steps) || !from)
		b->error = -ENOMEM;
	swc_build_blocks(b, e.ports);
	if (!b->in_place)
		b->w.hdr.flags |= SWC_PLAN_NOT_IN_PLACE;
	for (e.c = 0; e.c < e.ports && !b->error; e.c++) {
		swc_lines_set_port(&e.lines, e.c);
		swc_build_channel(b, e.c, (b->n - 1) * e.ports + 1);
		build_port(&e, from);
	}
	free(from);
	close_exchange(&e);
	return 0;
}
