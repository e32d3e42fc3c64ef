// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Butterflies whose messages are sets of blocks: Swing on any torus, and all butterflies in which
 * blocks belong to members by number (reduce-scatter, allgather).
 *
 * Block b ends at member b. A line is the schedule of one dimension alone: in which step coordinate
 * x sends its sum of block b, and to which coordinate. All coordinates but b send it once, to b or
 * to one that sends it later; so all that x receives of b has arrived by then, and nothing counts
 * twice. Such schedules multiply: on a torus, a member sends a block along the dimension where that
 * comes first among those in which it differs from the block's owner. So the set of a message is a
 * product: in the dimension of the step, what the line says; in each other one, the coordinates
 * whose blocks have not been sent.
 *
 * The way of the root's contribution to block b, from the root to member b, is a path of these
 * schedules. BROADCAST sends each block along its path, a scatter, and goes on with an allgather in
 * which nobody gets what came past on a path. REDUCE is a reduce-scatter, and then each block goes
 * back along its path. (De Sensi et al., "Bine trees", SC 2025.)
 *
 * De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth allreduce",
 * NSDI 2024.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/algo/butterfly_lines.h"
#include "plan/algo/butterfly_sets.h"
#include "plan/algo/tree_bufs.h"
#include "plan/table.h"

/*
 * Consecutive blocks of a message to or from @peer, by their numbers within the port.
 */
struct run {
	uint32_t peer, first, nblocks;
	uint8_t step;
	bool recv;
	uint8_t from; /* enum swc_buf: the sum so far of this member */
};

/**
 * struct stay - how long the path of a line is at this member's coordinate
 * @from, @to: from this step of the plan on; it leaves in that one
 * @before: the coordinate before
 * @never: it does not come here
 */
struct stay {
	uint8_t from, to;
	uint32_t before;
	bool never;
};

/**
 * struct sets - one port's plan
 * @held: by dimension, coordinates whose blocks this member has not sent along it, ascending; and
 *	paths along it
 * @at, @stride: number n of the port is block at + n * stride
 * @sums: buffer with the sums, once something was added
 * @result: buffer with the own block
 * @number: of the block of each member; NULL: as the member
 * @before: BROADCAST and REDUCE: by number, the member before this one on the block's path from the
 *	root; of the root itself, the root; NOBODY if it is not on the path
 * @fresh: by number: nothing was added yet, the contribution is in SEND; before that, room for marks
 * @set: room for the blocks of a message
 */
struct sets {
	struct swc_builder *b;
	struct swc_lines lines;
	struct held {
		uint32_t *coord, n;
		struct stay *stay;
	} held[SWC_TOPO_DIMS];
	uint32_t at, stride;
	enum swc_buf sums, result;
	uint32_t *number, *set, *before;
	bool *fresh;
	struct run *run;
	uint32_t nruns, room;
};

/* ---- the blocks of a message ---- */

/* The blocks that x sends to y in step k, ascending; x or y is this member. Returns how many. */
static uint32_t blocks_sent(const struct sets *p, uint32_t dim, uint32_t x, uint32_t y, uint32_t k,
			    uint32_t *out)
{
	const struct swc_line *l = &p->lines.line[dim];
	const struct held *h = &p->held[dim];
	uint32_t n = 0;
	bool only;

	if (swc_line_odd_one(l, x) || swc_line_odd_one(l, y)) {
		*out = y;
		return 1;
	}
	/* Swing: all that x sends in a step goes to one other, except to the last coordinate. */
	only = l->swing && swc_swing_peer(l->m, x, k, l->mirror) == y;
	for (uint32_t i = 0; i < h->n; i++) {
		uint32_t z = h->coord[i];

		if (z != x && swc_line_when(l, x, z) == k &&
		    ((only && z < l->m) || swc_line_receiver(l, x, z, k) == y))
			out[n++] = z;
	}
	return n;
}

static int ascending64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Sort different numbers of blocks. Most are all there are in between, others close together: then by marks. */
static void sort_set(struct sets *p, uint32_t n)
{
	uint32_t low = UINT32_MAX, high = 0;

	for (uint32_t i = 0; i < n; i++) {
		low = p->set[i] < low ? p->set[i] : low;
		high = p->set[i] > high ? p->set[i] : high;
	}
	if (n && high - low == n - 1) {
		for (uint32_t i = 0; i < n; i++)
			p->set[i] = low + i;
		return;
	}
	if (!n || n < (high - low) / 128) {
		qsort(p->set, n, sizeof(*p->set), ascending);
		return;
	}
	memset(p->fresh + low, false, (high - low + 1) * sizeof(*p->fresh));
	for (uint32_t i = 0; i < n; i++)
		p->fresh[p->set[i]] = true;
	n = 0;
	for (uint32_t i = low; i <= high; i++)
		if (p->fresh[i])
			p->set[n++] = i;
}

/*
 * All blocks that are in line_set along dimension dim and held along the others, ascending by
 * number.
 */
static uint32_t multiply(struct sets *p, uint32_t dim, const uint32_t *line_set, uint32_t nline)
{
	uint32_t n = 1;

	p->set[0] = 0;
	for (uint32_t j = 0; j < p->lines.ndims; j++) {
		const uint32_t *with = j == dim ? line_set : p->held[j].coord;
		uint32_t nwith = j == dim ? nline : p->held[j].n;

		for (uint32_t i = n; i-- > 0;) {
			uint32_t base = p->set[i] * p->lines.line[j].d;

			for (uint32_t k = nwith; k-- > 0;)
				p->set[i * nwith + k] = base + with[k];
		}
		n *= nwith;
	}
	if (p->number) {
		for (uint32_t i = 0; i < n; i++)
			p->set[i] = p->number[p->set[i]];
		sort_set(p, n);
	}
	return n;
}

static void add_run(struct sets *p, const struct run *r)
{
	struct run *last = p->nruns ? &p->run[p->nruns - 1] : NULL;

	if (last && p->stride == 1 && last->step == r->step && last->peer == r->peer &&
	    last->recv == r->recv && last->first + last->nblocks == r->first) {
		last->nblocks += r->nblocks;
		return;
	}
	/* Each becomes a transfer at least: refuse here what would need too much memory before. */
	if (p->nruns >= SWC_MAX_PLAN_BYTES / sizeof(struct swc_plan_xfer))
		p->b->error = swc_build_refuse(p->b, "the plan would have more than %u bytes",
					       SWC_MAX_PLAN_BYTES);
	else if (!swc_table_reserve(&p->run, p->nruns, &p->room, sizeof(*p->run)))
		p->b->error = -ENOMEM;
	if (p->b->error)
		return;
	p->run[p->nruns++] = *r;
}

/* The messages of turn s, sent or received. */
static void list_turn(struct sets *p, uint32_t s, bool recv, const uint32_t *coord)
{
	uint32_t dim = p->lines.turn[s].dim, k = p->lines.turn[s].step, x = coord[dim], q, n;
	const struct swc_line *l = &p->lines.line[dim];
	uint32_t *line_set = p->set + p->b->n;

	for (uint32_t i = 0; (q = swc_line_peer(l, x, k, i)) < l->d && !p->b->error; i++) {
		struct run r = { .step = (uint8_t)s,
				 .peer = swc_butterfly_member(p->b, dim, x, q),
				 .recv = recv };

		n = blocks_sent(p, dim, recv ? q : x, recv ? x : q, k, line_set);
		n = multiply(p, dim, line_set, n);
		for (uint32_t j = 0; !p->b->error && j < n; j += r.nblocks) {
			r.first = p->set[j];
			r.nblocks = 1;
			while (p->stride == 1 && j + r.nblocks < n &&
			       p->set[j + r.nblocks] == r.first + r.nblocks)
				r.nblocks++;
			add_run(p, &r);
		}
	}
}

static void list_runs(struct sets *p, const uint32_t *coord)
{
	p->nruns = 0;
	for (uint32_t j = 0; j < p->lines.ndims; j++) {
		struct held *h = &p->held[j];

		for (h->n = 0; h->n < p->lines.line[j].d; h->n++)
			h->coord[h->n] = h->n;
	}
	for (uint32_t s = 0; s < p->lines.steps; s++) {
		struct swc_turn t = p->lines.turn[s];
		struct held *h = &p->held[t.dim];
		uint32_t x = coord[t.dim], kept = 0;

		list_turn(p, s, false, coord);
		list_turn(p, s, true, coord);
		for (uint32_t i = 0; i < h->n; i++)
			if (h->coord[i] == x ||
			    swc_line_when(&p->lines.line[t.dim], x, h->coord[i]) != t.step)
				h->coord[kept++] = h->coord[i];
		h->n = kept;
	}
}

#define UNKNOWN UINT64_MAX

/*
 * The steps on the way from coordinate 0 of a line to each coordinate, as bits, the first step of the
 * plan highest. @turn_at: by step of the line, its step in the plan
 *
 * The way from an odd coordinate is the mirror image of one from 0, which is a later step's: so ways
 * with one step less are known.
 */
static void find_ways(const struct swc_line *l, const uint32_t *turn_at, uint64_t *way)
{
	uint32_t first[SWC_BUTTERFLY_STEPS], pending[SWC_BUTTERFLY_STEPS], n = 0;

	for (uint32_t k = 0; k < l->log; k++)
		first[k] = swc_swing_peer(l->m, 0, k, l->mirror);
	for (uint32_t y = 1; y < l->m; y++)
		way[y] = UNKNOWN;
	way[0] = 0;
	for (uint32_t y = 1; y < l->m; y++) {
		uint64_t rest = 0;

		for (uint32_t x = y; way[x] == UNKNOWN; n++) {
			pending[n] = x;
			x = first[swc_line_when(l, 0, x)] + l->m - x;
			x -= x < l->m ? 0 : l->m;
			rest = way[x];
		}
		while (n) {
			uint32_t x = pending[--n];

			rest |= 1ull << (63 - turn_at[swc_line_when(l, 0, x)]);
			way[x] = rest;
		}
	}
	if (l->d > l->m && l->m)
		way[l->m] = 1ull << (63 - turn_at[swc_line_met_in(l, 0)]);
}

/*
 * Sort the ways of a line, with their coordinates. Steps identify a coordinate, but the last one of odd d: so
 * if there are not many more ways than coordinates, each is put in its place.
 */
static void sort_ways(const struct sets *p, const struct swc_line *l, const uint64_t *way,
		      uint64_t *sorted)
{
	uint32_t steps = p->lines.steps, shift = 64 - steps, n = 0;
	uint32_t *at = steps && l->d >> (steps > 2 ? steps - 2 : 0)
			       ? calloc(1u << steps, sizeof(*at))
			       : NULL; /* coordinates, and one more */

	if (!at) {
		memcpy(sorted, way, l->d * sizeof(*way));
		qsort(sorted, l->d, sizeof(*sorted), ascending64);
		return;
	}
	for (uint32_t y = 0; y < l->m; y++)
		at[way[y] >> shift] = y + 1;
	for (uint32_t k = 0; k < 1u << steps; k++) {
		if (at[k])
			sorted[n++] = (uint64_t)k << shift | (at[k] - 1);
		if (l->d > l->m && k == way[l->m] >> shift)
			sorted[n++] = way[l->m];
	}
	free(at);
}

/**
 * struct order - blocks that are to be numbered next
 * @way: by dimension: the ways of its line, ascending, with their coordinates
 * @first, @n: by dimension: the blocks' coordinates are those of these ways
 * @stride: by dimension: between the members of neighbours
 * @next: number of the next block
 */
struct order {
	uint64_t *way[SWC_TOPO_DIMS];
	uint32_t first[SWC_TOPO_DIMS], n[SWC_TOPO_DIMS], stride[SWC_TOPO_DIMS];
	uint32_t next;
};

/* Number the blocks in the order of members: their ways are equal, or differ in one dimension only. */
static void number_product(struct sets *p, struct order *o)
{
	uint32_t i[SWC_TOPO_DIMS] = { 0 }, last = p->lines.ndims - 1, member = 0, j;

	/* The dimensions behind the last one with several coordinates have one, which is added here. */
	for (j = 0; j < p->lines.ndims; j++)
		member += (uint32_t)o->way[j][o->first[j]] * o->stride[j];
	while (last && o->n[last] == 1)
		last--;
	do {
		const uint64_t *way = o->way[last] + o->first[last];
		uint32_t at = member - (uint32_t)way[0] * o->stride[last];

		for (uint32_t k = 0; k < o->n[last]; k++)
			p->number[at + (uint32_t)way[k] * o->stride[last]] = o->next++;
		for (j = last; j-- > 0; i[j] = 0) {
			way = o->way[j] + o->first[j];
			member -= (uint32_t)way[i[j]] * o->stride[j];
			if (++i[j] < o->n[j]) {
				member += (uint32_t)way[i[j]] * o->stride[j];
				break;
			}
			member += (uint32_t)way[0] * o->stride[j];
		}
	} while (j < last);
}

/* How many of n ways, ascending and equal in all steps before this one, do not take it. */
static uint32_t count_without(const uint64_t *way, uint32_t n, uint32_t step)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (way[mid] >> (63 - step) & 1)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Number the blocks, whose ways are equal in all steps before s: first those that do not take step s. */
static void number_from(struct sets *p, struct order *o, uint32_t s)
{
	uint32_t wide = 0;

	for (uint32_t j = 0; j < p->lines.ndims; j++)
		wide += o->n[j] > 1;
	for (; wide > 1 && s < p->lines.steps; s++) {
		uint32_t dim = p->lines.turn[s].dim, n = o->n[dim], first = o->first[dim];
		uint32_t without = count_without(o->way[dim] + first, n, s);

		if (!without || without == n)
			continue;
		o->n[dim] = without;
		number_from(p, o, s + 1);
		o->first[dim] = first + without;
		o->n[dim] = n - without;
		number_from(p, o, s + 1);
		o->first[dim] = first;
		o->n[dim] = n;
		return;
	}
	number_product(p, o);
}

/* Number all blocks where each of the ways that there can be has one. */
static void number_ways(struct sets *p, const struct order *o)
{
	uint32_t shift = 64 - p->lines.steps, have = 1;

	p->number[0] = 0;
	for (uint32_t j = 0; j < p->lines.ndims; j++) {
		uint32_t d = p->lines.line[j].d;

		for (uint32_t i = have; i-- > 0;) {
			uint32_t before = p->number[i];

			for (uint32_t k = 0; k < d; k++)
				p->number[i * d + (uint32_t)o->way[j][k]] =
					before | (uint32_t)(o->way[j][k] >> shift);
		}
		have *= d;
	}
}

/*
 * Number the blocks in the order of the tree along which member 0 sends them, those that are sent
 * first last. A member exchanges with one other in a step (except the last coordinate of odd d), so
 * the steps on the way to a block identify it; those of each dimension do not depend on the others:
 * the way of a block is the union of those on its lines, and only the lines' have to be sorted. Blocks with
 * the same way are in the order of members.
 * On powers of two this makes every message one run, elsewhere nearly so.
 */
static void number_blocks(struct sets *p)
{
	struct order o = { .next = 0 };
	uint32_t longest = 0, stride = 1;
	uint64_t *way;

	for (uint32_t j = 0; j < p->lines.ndims; j++)
		longest = p->lines.line[j].d > longest ? p->lines.line[j].d : longest;
	way = calloc(longest + 1ull, sizeof(*way));
	if (!way)
		p->b->error = -ENOMEM;
	for (uint32_t j = p->lines.ndims; j-- > 0 && way;) {
		uint32_t d = p->lines.line[j].d;

		o.way[j] = malloc(d * sizeof(*o.way[j]));
		if (!o.way[j]) {
			p->b->error = -ENOMEM;
			break;
		}
		find_ways(&p->lines.line[j], p->lines.turn_at[j], way);
		for (uint32_t y = 0; y < d; y++)
			way[y] |= y;
		sort_ways(p, &p->lines.line[j], way, o.way[j]);
		o.n[j] = d;
		o.stride[j] = stride;
		stride *= d;
	}
	if (!p->b->error && p->lines.steps && p->b->n == 1ull << p->lines.steps)
		number_ways(p, &o);
	else if (!p->b->error)
		number_from(p, &o, 0);
	for (uint32_t j = 0; j < p->lines.ndims; j++)
		free(o.way[j]);
	free(way);
}

/* ---- paths from the root ---- */

#define NOBODY UINT32_MAX

/*
 * How long the path of a line to each coordinate stays at this member's coordinate, in steps of the
 * plan; the lines of a path do not depend on each other.
 */
static void find_stays(const struct sets *p, uint32_t dim, uint32_t root, uint32_t me,
		       struct stay *stay)
{
	const struct swc_line *l = &p->lines.line[dim];

	for (uint32_t y = 0; y < l->d; y++) {
		struct stay v = { .before = root };
		uint32_t x = root;

		while (x != me && x != y) {
			uint32_t k = swc_line_when(l, x, y);

			v.from = (uint8_t)(p->lines.turn_at[dim][k] + 1);
			v.before = x;
			x = swc_line_receiver(l, x, y, k);
		}
		v.never = x != me;
		v.to = (uint8_t)(x == y ? p->lines.steps
					: p->lines.turn_at[dim][swc_line_when(l, x, y)]);
		stay[y] = v;
	}
}

/* What the dimensions before one tell about the paths of blocks; @who: the member before this one */
struct passing {
	uint32_t from, to, who;
};

/* Blocks with the same coordinates up to a dimension: who is before this member on their paths? */
static void find_before(struct sets *p, const uint32_t *me, uint32_t dim, uint32_t block,
			struct passing so_far)
{
	const struct stay *v = p->held[dim].stay;

	block *= p->lines.line[dim].d;
	for (uint32_t y = 0; y < p->lines.line[dim].d; y++, v++) {
		struct passing now = so_far;

		if (v->never)
			continue;
		if (v->from > now.from || !dim) {
			now.from = v->from;
			now.who = swc_butterfly_member(p->b, dim, me[dim], v->before);
		}
		now.to = v->to < now.to ? v->to : now.to;
		if (now.from > now.to)
			continue;
		if (dim + 1 < p->lines.ndims)
			find_before(p, me, dim + 1, block + y, now);
		else
			p->before[p->number[block + y]] = now.who;
	}
}

static void find_paths(struct sets *p, const uint32_t *me)
{
	uint32_t root[SWC_TOPO_DIMS];

	swc_topo_coords(p->b->topo, p->b->root, root);
	for (uint32_t i = 0; i < p->lines.ndims; i++)
		find_stays(p, i, root[i], me[i], p->held[i].stay);
	memset(p->before, 0xff, p->b->n * sizeof(*p->before)); /* NOBODY */
	find_before(p, me, 0, 0, (struct passing){ .to = p->lines.steps });
}

/* ---- the plan ---- */

static void copy(struct sets *p, uint32_t number, uint32_t n, enum swc_buf from, enum swc_buf to,
		 uint32_t flags)
{
	/* Blocks of several shards may not stand together, and a local step has one range. */
	uint32_t each = p->b->rails.n ? 1 : n;

	for (uint32_t end = number + n; number < end; number += each) {
		swc_build_step(p->b, SWC_STEP_LOCAL);
		swc_build_send(p->b, p->b->me, from, p->at + number * p->stride, each);
		swc_build_recv(p->b, p->b->me, to, p->at + number * p->stride, each, flags);
	}
}

/* Sums of these blocks are stored: they need SCRATCH if that is the buffer for sums. */
static void need_sums(struct sets *p, const struct run *r)
{
	if (p->sums == SWC_BUF_SCRATCH)
		swc_build_scratch(p->b, p->at + r->first * p->stride,
				  (r->nblocks - 1) * p->stride + 1);
}

/*
 * The buffer with the blocks of a run: SEND, or the sums; contributions of a mixed run are copied
 * to the sums. So no member needs to know what is fresh at its partner.
 */
static enum swc_buf settle(struct sets *p, const struct run *r)
{
	uint32_t end = r->first + r->nblocks, nfresh = 0;

	for (uint32_t i = r->first; i < end; i++)
		nfresh += p->fresh[i];
	if (nfresh == r->nblocks)
		return SWC_BUF_SEND;
	need_sums(p, r);
	for (uint32_t i = r->first, n; i < end; i += n + 1) {
		for (n = 0; i + n < end && p->fresh[i + n]; n++)
			p->fresh[i + n] = false;
		if (n)
			copy(p, i, n, SWC_BUF_SEND, p->sums, 0);
	}
	return p->sums;
}

static void reduce_scatter(struct sets *p, uint32_t own)
{
	uint32_t last = p->nruns - 1;
	bool in_sums;

	memset(p->fresh, true, p->b->n * sizeof(*p->fresh));
	/* The last receive is the own block alone, except after folds. */
	while (!p->run[last].recv)
		last--;
	in_sums = p->run[last].first != own || p->run[last].nblocks > 1;
	for (uint32_t i = 0, end; i < p->nruns; i = end) {
		for (end = i; end < p->nruns && p->run[end].step == p->run[i].step; end++) {
			struct run *r = &p->run[end];

			r->from = (uint8_t)settle(p, r);
			if (!r->recv)
				continue;
			memset(p->fresh + r->first, false, r->nblocks);
			if (end != last || in_sums || p->result == p->sums)
				need_sums(p, r);
		}
		swc_build_step(p->b, SWC_STEP_NET);
		for (uint32_t j = i; j < end; j++) {
			const struct run *r = &p->run[j];
			uint32_t first = p->at + r->first * p->stride;
			bool final = j == last && !in_sums;

			if (r->recv)
				swc_build_recv_reduce(p->b, r->peer, final ? p->result : p->sums,
						      r->from, first, r->nblocks,
						      final ? SWC_XFER_FINAL : 0);
			else
				swc_build_send(p->b, r->peer, r->from, first, r->nblocks);
		}
	}
	if (in_sums)
		copy(p, own, 1, p->sums, p->result, SWC_XFER_FINAL);
}

/* Messages of a reduce-scatter that carry complete blocks: which of them, and in which direction? */
enum part {
	ALL_BACK,	/* an allgather: what was received is sent */
	OFF_PATHS_BACK, /* without what came past on the paths from the root */
	ON_PATHS,	/* on these paths only */
	ON_PATHS_BACK
};

static bool is_part(const struct sets *p, const struct run *r, uint32_t number, enum part part)
{
	bool on_path = part != ALL_BACK &&
		       (r->recv ? p->before[number] == r->peer : p->before[number] != NOBODY);

	return part == ALL_BACK || on_path == (part != OFF_PATHS_BACK);
}

static void pass(struct sets *p, const struct run *r, bool send, uint32_t number, uint32_t n)
{
	uint32_t first = p->at + number * p->stride;

	if (send) {
		swc_build_send_stored(p->b, r->peer,
				      p->b->args->coll == SWC_BROADCAST ? swc_tree_down(p->b)
									: p->result,
				      first, n);
		return;
	}
	if (p->result == SWC_BUF_SCRATCH)
		swc_build_scratch(p->b, first, (n - 1) * p->stride + 1);
	swc_build_recv(p->b, r->peer, p->result, first, n, swc_tree_down_flags(p->b, r->peer));
}

static void pass_part(struct sets *p, const struct run *r, enum part part)
{
	bool send = r->recv == (part != ON_PATHS);

	for (uint32_t i = 0, n; i < r->nblocks; i += n + 1) {
		for (n = 0; i + n < r->nblocks && is_part(p, r, r->first + i + n, part);)
			n++;
		if (n)
			pass(p, r, send, r->first + i, n);
	}
}

static void pass_on(struct sets *p, enum part part)
{
	bool back = part != ON_PATHS;

	for (uint32_t done = 0, n; done < p->nruns; done += n) {
		const struct run *r = &p->run[back ? p->nruns - 1 - done : done];

		for (n = 1; done + n < p->nruns && (back ? r[-(int32_t)n] : r[n]).step == r->step;)
			n++;
		r -= back ? n - 1 : 0;
		swc_build_step(p->b, SWC_STEP_NET);
		for (int recv = 0; recv <= 1; recv++)
			for (uint32_t i = 0; i < n; i++)
				if (r[i].recv == (recv != back))
					pass_part(p, &r[i], part);
	}
}

static void build_port(struct sets *p)
{
	uint32_t coord[SWC_TOPO_DIMS];
	struct swc_builder *b = p->b;
	enum swc_coll coll = b->args->coll;
	uint32_t own = b->me;

	swc_topo_coords(b->topo, b->me, coord);
	if (p->number) {
		number_blocks(p);
		own = p->number[own];
	}
	if (!b->error)
		list_runs(p, coord);
	if (b->error)
		return;
	if (p->before)
		find_paths(p, coord);
	if (coll == SWC_ALLGATHER)
		copy(p, own, 1, SWC_BUF_SEND, SWC_BUF_RECV, SWC_XFER_FINAL);
	else if (coll == SWC_BROADCAST)
		pass_on(p, ON_PATHS);
	else
		reduce_scatter(p, own);
	if (coll == SWC_BROADCAST)
		pass_on(p, OFF_PATHS_BACK);
	else if (coll == SWC_REDUCE)
		pass_on(p, ON_PATHS_BACK);
	else if (coll != SWC_REDUCE_SCATTER)
		pass_on(p, ALL_BACK);
	swc_tree_copy_at_root(b, p->at, b->n);
}

int swc_butterfly_sets_build(struct swc_builder *b, bool swing, uint32_t ports)
{
	enum swc_coll coll = b->args->coll;
	bool shares = coll != SWC_REDUCE_SCATTER && coll != SWC_ALLGATHER, ready = true;
	struct sets p;

	/* A member sends each block but its own, one by one if they do not stand together. */
	if (!shares && ports > 1 &&
	    (b->n - 1ull) * ports > SWC_MAX_PLAN_BYTES / sizeof(struct swc_plan_xfer))
		return swc_build_refuse(b, "the plan would have more than %u bytes",
					SWC_MAX_PLAN_BYTES);
	p = (struct sets){
		.b = b,
		.stride = shares ? 1 : ports,
		.sums = shares ? swc_tree_sums(b) : SWC_BUF_SCRATCH,
		.result = swc_tree_sums(b),
		.number = shares ? malloc(b->n * sizeof(*p.number)) : NULL,
		.set = calloc(b->n, 2 * sizeof(*p.set)),
		.before = swc_coll_has_root(coll) ? malloc(b->n * sizeof(*p.before)) : NULL,
		.fresh = malloc(b->n * sizeof(*p.fresh)),
	};

	for (uint32_t i = 0; i < b->topo->ndims; i++) {
		p.held[i].coord = malloc(b->topo->dim[i] * sizeof(*p.held[i].coord));
		p.held[i].stay = malloc(b->topo->dim[i] * sizeof(*p.held[i].stay));
		ready &= p.held[i].coord && p.held[i].stay;
	}
	if (swc_lines_open(&p.lines, b->topo, swing) || !ready || (shares && !p.number) || !p.set ||
	    (swc_coll_has_root(coll) && !p.before) || !p.fresh)
		b->error = -ENOMEM;
	swc_build_blocks(b, ports * (shares ? b->n : 1));
	for (uint32_t c = 0; c < ports && !b->error; c++) {
		swc_lines_set_port(&p.lines, c);
		p.at = shares ? c * b->n : c;
		swc_build_channel(b, c * b->n, b->n);
		build_port(&p);
	}
	swc_lines_free(&p.lines);
	for (uint32_t i = 0; i < b->topo->ndims; i++) {
		free(p.held[i].coord);
		free(p.held[i].stay);
	}
	free(p.number);
	free(p.set);
	free(p.before);
	free(p.fresh);
	free(p.run);
	return 0;
}
