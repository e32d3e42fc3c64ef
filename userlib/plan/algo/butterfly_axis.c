// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Dimensions as a member sees them; see butterfly_sets.c.
 *
 * In the order of ways, what a member sends in a step is few stretches of consecutive places. They are found
 * in one pass over the line; then everything else works on pieces, which have one step each.
 */
#include "plan/algo/butterfly_axis.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/table.h"

#define NOBODY UINT32_MAX

bool swc_stretches_add(struct swc_stretches *list, uint32_t first, uint32_t n)
{
	struct swc_stretch *last = list->n ? &list->stretch[list->n - 1] : NULL;

	if (last && last->first + last->n == first) {
		last->n += n;
		return true;
	}
	if (!swc_table_reserve(&list->stretch, list->n, &list->room, sizeof(*list->stretch)))
		return false;
	list->stretch[list->n++] = (struct swc_stretch){ first, n };
	return true;
}

static uint32_t coord_at(const struct swc_axis *a, uint32_t place)
{
	return a->by_ways ? swc_line_ordered(a->line, place) : place;
}

static uint32_t way_of(const struct swc_axis *a, uint32_t coord)
{
	return a->by_ways ? swc_line_way(a->line, coord) : 0;
}

static uint32_t place_of(const struct swc_axis *a, uint32_t coord)
{
	return a->by_ways ? swc_line_place(a->line, coord) : coord;
}

/* The place of the last coordinate of odd d in Swing; d if there is no such one. */
static uint32_t place_of_odd(const struct swc_axis *a)
{
	const struct swc_line *l = a->line;

	if (!swc_line_odd_one(l, l->d - 1))
		return l->d;
	return a->by_ways ? l->odd : l->m;
}

/* The step of the plan that is this step of the line. */
static uint8_t step_at(const struct swc_axis *a, uint32_t k)
{
	return (uint8_t)(k == SWC_LINE_NEVER ? a->lines->steps : a->lines->turn_at[a->dim][k]);
}

/* ---- paths from the root ---- */

/*
 * The way along a line of @log steps to an offset from 0, as bits. Distances are sums of powers of -2, so
 * it is found in base -2, see swing_bits() in butterfly.c. False if the steps do not lead there.
 */
static bool way_to(uint32_t log, int32_t offset, uint32_t *way)
{
	const uint32_t odd_digits = 0xaaaaaaaa;
	uint32_t v = (uint32_t)(offset % 2 ? offset : -offset);

	v = (v + odd_digits) ^ odd_digits;
	*way = 0;
	for (uint32_t k = 0; k < log; k++)
		*way |= ((v ^ v >> 1) >> k & 1) << (31 - k);
	return !(v >> log);
}

/* The path to y is here from after step s of the plan on, in which it came from the coordinate @before. */
static void arrive(struct swc_axis *a, uint32_t y, uint32_t before, uint32_t s)
{
	a->from[y] = (uint8_t)(s + 1);
	a->before[s] = before;
}

/* Count a coordinate from the root's, upwards or downwards: Swing's ways from there are those from 0. */
static uint32_t counted(const struct swc_axis *a, uint32_t x)
{
	uint32_t m = a->line->m, v = a->root % 2 ? a->root + m - x : x + m - a->root;

	return v < m ? v : v - m;
}

static uint32_t counted_back(const struct swc_axis *a, uint32_t v)
{
	uint32_t m = a->line->m, x = a->root % 2 ? a->root + m - v : a->root + v;

	return x < m ? x : x - m;
}

/* All ways that begin with this one, which leads to the member, come here in its last step. */
static void come_by(struct swc_axis *a, uint32_t way)
{
	const struct swc_line *l = a->line;
	uint32_t last = way & -way, k = (uint32_t)__builtin_clz(last), s = step_at(a, k);
	uint32_t before = counted_back(a, swc_swing_peer(l->m, counted(a, a->me), k, l->mirror));

	/* Up to that step they are the member's own, as far as all of its ways are the same. */
	a->common &= ~(last - 1);
	for (uint32_t i = swc_line_first(l, way); i < l->d && l->way[i] - way < last; i++)
		if (!swc_line_odd_one(l, swc_line_ordered(l, i)))
			arrive(a, counted_back(a, swc_line_ordered(l, i)), before, s);
}

/*
 * From when on the path of the line to each coordinate is at the member's; the lines of a path do not depend
 * on each other. The last coordinate of odd d exchanges blocks directly. To others there is a way for each
 * offset within reach, as far round the line as they may be.
 */
static void find_paths(struct swc_axis *a)
{
	const struct swc_line *l = a->line;
	int32_t m = (int32_t)l->m, offset;
	uint32_t way;

	a->path_first = 0;
	a->npaths = l->d;
	memset(a->from, a->root == a->me ? 0 : SWC_AXIS_ANY, l->d);
	for (uint32_t s = 0; s < a->lines->steps; s++)
		a->before[s] = NOBODY;
	if (a->root == a->me)
		return;
	if (swc_line_odd_one(l, a->root) || swc_line_odd_one(l, a->me)) {
		arrive(a, a->me, a->root, step_at(a, swc_line_when(l, a->root, a->me)));
		return;
	}
	a->common = swc_line_agreed(l);
	offset = (int32_t)swc_line_reflect(l, counted(a, a->me));
	for (int32_t round = -2; round <= 1; round++)
		if (way_to(l->log, offset + round * m, &way))
			come_by(a, way);
	/* The range of places with the same first steps as the own one. */
	way = l->way[a->own] & a->common;
	a->path_first = swc_line_first(l, way);
	way -= a->common;
	a->npaths = (way ? swc_line_first(l, way) : l->d) - a->path_first;
}

/* ---- pieces ---- */

/* From when on the path to the coordinate at a place is here. The table is large, and is read in no order. */
static uint8_t path_from(const struct swc_axis *a, uint32_t place)
{
	if (!a->rooted)
		return 0;
	if (place - a->path_first >= a->npaths)
		return SWC_AXIS_ANY;
	return a->from[coord_at(a, place)];
}

/* The end of the places from @first on that have its step, but for those from @end on. */
static uint32_t same_step(const struct swc_axis *a, uint32_t first, uint32_t end)
{
	uint32_t i = first + 1;

	while (i < end && a->step[i] == a->step[first])
		i++;
	return i;
}

/* How many places from @first on are one piece, at least 1. */
static uint32_t piece_length(const struct swc_axis *a, uint32_t first)
{
	uint32_t odd = place_of_odd(a), end = first < odd ? odd : a->line->d, i = first + 1;
	uint8_t from = path_from(a, first);

	if (first == odd)
		return 1;
	if (first < a->path_first && a->path_first < end)
		end = a->path_first;
	end = same_step(a, first, end);
	/* All paths begin here, or none of these comes here? */
	if (a->root == a->me || first - a->path_first >= a->npaths)
		return end - first;
	while (i < end && path_from(a, i) == from)
		i++;
	return i - first;
}

bool swc_axis_find(struct swc_axis *a, uint32_t me, uint32_t root)
{
	uint32_t n;

	a->me = me;
	a->root = root;
	a->npieces = 0;
	a->own = place_of(a, me);
	if (a->rooted)
		find_paths(a);
	swc_line_steps(a->line, me, a->by_ways, way_of(a, me), 0, a->line->d, a->step);
	for (uint32_t i = 0; i < a->line->d; i += n) {
		if (!swc_table_reserve(&a->piece, a->npieces, &a->room, sizeof(*a->piece)))
			return false;
		n = piece_length(a, i);
		a->piece[a->npieces++] = (struct swc_piece){ .first = i,
							     .n = n,
							     .step = step_at(a, a->step[i]),
							     .from = path_from(a, i),
							     .odd = swc_line_odd_one(
								     a->line, coord_at(a, i)) };
	}
	return true;
}

/* ---- places of blocks ---- */

/* Those that are sent in these steps, but for the last coordinate of odd d if that is left out. */
static bool list(const struct swc_axis *a, uint32_t first, uint32_t last, bool with_odd,
		 uint32_t by, struct swc_stretches *out)
{
	out->n = 0;
	for (const struct swc_piece *p = a->piece; p < a->piece + a->npieces; p++)
		if (p->step >= first && p->step <= last && p->from <= by && (with_odd || !p->odd) &&
		    !swc_stretches_add(out, p->first, p->n))
			return false;
	return true;
}

bool swc_axis_hold(const struct swc_axis *a, uint32_t by, struct swc_stretches *out)
{
	return list(a, 0, a->lines->steps, true, by, out);
}

bool swc_axis_own(const struct swc_axis *a, struct swc_stretches *out)
{
	out->n = 0;
	return swc_stretches_add(out, a->own, 1);
}

/* Does the last coordinate of odd d exchange with another one? Then only their own blocks. */
static bool is_direct(const struct swc_axis *a, uint32_t peer)
{
	return swc_line_odd_one(a->line, a->me) || swc_line_odd_one(a->line, peer);
}

bool swc_axis_send(const struct swc_axis *a, uint32_t s, uint32_t peer, uint32_t by,
		   struct swc_stretches *out)
{
	/* Otherwise all that a member sends in a step goes to one other. */
	if (!is_direct(a, peer))
		return list(a, s, s, false, by, out);
	out->n = 0;
	return (a->rooted && a->from[peer] > by) || swc_stretches_add(out, place_of(a, peer), 1);
}

bool swc_axis_receive(const struct swc_axis *a, uint32_t s, uint32_t peer, bool paths,
		      struct swc_stretches *out)
{
	uint32_t k = a->lines->turn[s].step, way;

	out->n = 0;
	if (paths && a->before[s] != peer)
		return true;
	if (is_direct(a, peer))
		return (paths && a->from[a->me] != s + 1) || swc_axis_own(a, out);
	way = way_of(a, peer);
	for (const struct swc_piece *p = a->piece; p < a->piece + a->npieces; p++) {
		if (p->odd || (paths && p->from != s + 1))
			continue;
		swc_line_steps(a->line, peer, a->by_ways, way, p->first, p->n, a->step);
		for (uint32_t i = 0, n; i < p->n; i += n) {
			for (n = 1; i + n < p->n && (a->step[i] == k) == (a->step[i + n] == k);)
				n++;
			if (a->step[i] == k && !swc_stretches_add(out, p->first + i, n))
				return false;
		}
	}
	return true;
}

void swc_axis_sent(struct swc_axis *a, uint32_t s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->npieces; i++)
		if (a->piece[i].step != s)
			a->piece[n++] = a->piece[i];
	a->npieces = n;
}

/* ---- all ---- */

int swc_axis_open(struct swc_axis *a, const struct swc_lines *lines, uint32_t dim, bool by_ways,
		  bool rooted)
{
	*a = (struct swc_axis){ .lines = lines,
				.line = &lines->line[dim],
				.dim = dim,
				.by_ways = by_ways,
				.rooted = rooted };
	a->step = malloc(a->line->d);
	a->from = rooted ? malloc(a->line->d) : NULL;
	return a->step && (a->from || !rooted) ? 0 : -ENOMEM;
}

void swc_axis_free(struct swc_axis *a)
{
	free(a->piece);
	free(a->step);
	free(a->from);
}
