// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Schedules of butterflies whose blocks belong to members by number; see butterfly_sets.c.
 *
 * Swing, even d: a block that could be sent in several steps is sent in the last of them, so that
 * its receivers can still send it on. All coordinates look alike except for the sign, and one table
 * serves all: even x sends block b when 0 sends b - x, odd x when 0 sends x - b. Odd d: d - 1
 * coordinates do the same. The last one exchanges with each of them once, half of them in the first
 * step, half of the rest in the second and so on, and they swap their sums of their own two blocks.
 *
 * Recursive doubling: x sends block b in the step of the lowest bit in which they differ. Other
 * sizes are folded as in butterfly.c, but a folded coordinate keeps its own block, and gets the
 * rest of it in one more step.
 *
 * De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth allreduce",
 * NSDI 2024.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/algo/butterfly_lines.h"

/*
 * Odd d: the last coordinate exchanges with *n others in step k; the first of them, reflected, is
 * returned.
 */
static uint32_t met_from(const struct swc_line *l, uint32_t k, uint32_t *n)
{
	uint32_t first = 0, left = l->m;

	for (uint32_t i = 0; i < k; i++) {
		first += (left + 1) / 2;
		left /= 2;
	}
	*n = k + 1 == l->log ? left : (left + 1) / 2;
	return first;
}

uint32_t swc_line_met_in(const struct swc_line *l, uint32_t x)
{
	uint32_t k = 0, n;

	while (swc_line_reflect(l, x) >= met_from(l, k, &n) + n)
		k++;
	return k;
}

bool swc_line_odd_one(const struct swc_line *l, uint32_t x)
{
	return l->swing && x == l->m;
}

uint32_t swc_line_when_computed(const struct swc_line *l, uint32_t x, uint32_t y)
{
	uint32_t k = 0;

	if (l->swing)
		return swc_line_met_in(l, x == l->m ? y : x);
	if (x >= l->m)
		return 0;
	y -= y >= l->m ? l->d - l->m : 0;
	if (x == y)
		return l->log + 1;
	while (!((x ^ y) >> k & 1))
		k++;
	return k + (l->d > l->m);
}

uint32_t swc_line_way(const struct swc_line *l, uint32_t y)
{
	uint32_t way = 0;

	for (uint32_t x = 0, k; x != y; x = swc_line_receiver(l, x, y, k)) {
		k = swc_line_when(l, x, y);
		way |= 1u << (31 - k);
	}
	return way;
}

uint32_t swc_line_first(const struct swc_line *l, uint32_t way)
{
	uint32_t low = 0, high = l->d;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (l->way[mid] < way)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

uint32_t swc_line_place(const struct swc_line *l, uint32_t y)
{
	uint32_t place = swc_line_first(l, swc_line_way(l, y));

	/* The last coordinate of odd d shares its way with another one. */
	return swc_line_ordered(l, place) == y ? place : place + 1;
}

uint32_t swc_ways_without(const uint32_t *way, uint32_t n, uint32_t step)
{
	uint32_t bit = 1u << (31 - step), low = 0, high = n;

	if (way[0] & bit)
		return 0;
	if (!(way[n - 1] & bit))
		return n;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (way[mid] & bit)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/*
 * Of places in the order of ways. Those whose ways first differ from the way to x in the same step, among
 * the steps that all ways to a coordinate share, stand together. So only the rest needs the table, which is
 * large and read in no order. On a mirrored line coordinates do as their images on one that is not, and the
 * order of places is that of images.
 */
static void steps_by_ways(const struct swc_line *l, uint32_t x, uint32_t mine, uint32_t first,
			  uint32_t n, uint8_t *step)
{
	uint32_t m = l->m, image = swc_line_reflect(l, x), agreed = swc_line_agreed(l);
	const uint32_t *order = l->order + first, *way = l->way + first;
	uint32_t low = 0, high = n;

	for (uint32_t k = 0; agreed << k && low < high; k++) {
		uint32_t middle = low + swc_ways_without(way + low, high - low, k);

		if (mine << k >> 31) {
			memset(step + low, (int)k, middle - low);
			low = middle;
		} else {
			memset(step + middle, (int)k, high - middle);
			high = middle;
		}
	}
	for (; low < high; low++) {
		uint32_t y = order[low], i = x % 2 ? image + m - y : y + m - image;

		step[low] = l->when[i < m ? i : i - m];
	}
	if (l->d > m && l->odd >= first && l->odd - first < n)
		step[l->odd - first] = (uint8_t)swc_line_met_in(l, x);
}

void swc_line_steps(const struct swc_line *l, uint32_t x, bool by_ways, uint32_t way,
		    uint32_t first, uint32_t n, uint8_t *step)
{
	if (by_ways && x < l->m) {
		steps_by_ways(l, x, way, first, n, step);
		return;
	}
	for (uint32_t j = 0; j < n; j++) {
		uint32_t y = by_ways ? swc_line_ordered(l, first + j) : first + j;

		step[j] = (uint8_t)(y == x ? SWC_LINE_NEVER : swc_line_when(l, x, y));
	}
}

uint32_t swc_line_receiver(const struct swc_line *l, uint32_t x, uint32_t y, uint32_t k)
{
	uint32_t fold = l->d > l->m;

	if (l->swing)
		return swc_line_odd_one(l, x) || swc_line_odd_one(l, y)
			       ? y
			       : swc_swing_peer(l->m, x, k, l->mirror);
	if (x >= l->m)
		return x - (l->d - l->m);
	return k > l->log ? y : swc_doubling_peer(l->m, x, k - fold, l->mirror);
}

uint32_t swc_line_peer(const struct swc_line *l, uint32_t x, uint32_t k, uint32_t i)
{
	uint32_t fold = l->d - l->m, first, n;

	if (swc_line_odd_one(l, x)) {
		first = met_from(l, k, &n);
		return i < n ? swc_line_reflect(l, first + i) : l->d;
	}
	if (l->swing && i == 1 && fold && swc_line_met_in(l, x) == k)
		return l->m;
	if (i)
		return l->d;
	if (l->swing)
		return swc_swing_peer(l->m, x, k, l->mirror);
	if (fold && (k == 0 || k > l->log))
		return x >= l->m ? x - fold : x + fold >= l->m ? x + fold : l->d;
	return x < l->m ? swc_doubling_peer(l->m, x, k - !!fold, l->mirror) : l->d;
}

static void add_to_order(struct swc_line *l, uint32_t *n, uint32_t y, uint32_t way)
{
	l->order[*n] = y;
	l->way[(*n)++] = way;
}

/*
 * Swing's tables, backwards from what 0 has after the last step: its own block. Before a step, it
 * also has what its partner has after it, which is the mirror image of what 0 has. The ways to these
 * are those to the images, after this step: so they are in the same order, behind those without it.
 */
static void fill_tables(struct swc_line *l)
{
	uint32_t n = 0;

	memset(l->when, SWC_LINE_NEVER, l->d);
	l->when[0] = 0;
	add_to_order(l, &n, 0, 0);
	for (uint32_t k = l->log; k-- > 0;) {
		uint32_t q = swc_swing_peer(l->m, 0, k, false), had = n, step = 1u << (31 - k);

		for (uint32_t i = 0; i < had; i++) {
			uint32_t y = q + l->m - l->order[i];

			y -= y < l->m ? 0 : l->m;
			if (l->when[y] == SWC_LINE_NEVER) {
				l->when[y] = (uint8_t)k;
				add_to_order(l, &n, y, step | l->way[i]);
			}
			/* 0 exchanges with the last coordinate in the first step. */
			if (!k && !i && l->d > l->m) {
				l->odd = n;
				add_to_order(l, &n, l->m, step);
			}
		}
	}
	l->when[0] = SWC_LINE_NEVER;
}

static int open_line(struct swc_line *l, uint32_t d)
{
	l->d = d;
	l->m = d - d % 2;
	if (l->swing) {
		while (1u << l->log < l->m)
			l->log++;
		l->nsteps = l->log;
	} else {
		while (d >> l->log > 1)
			l->log++;
		l->m = 1u << l->log;
		l->nsteps = l->log + (d > l->m ? 2 : 0);
	}
	if (!l->swing)
		return 0;
	l->when = malloc(d);
	l->order = malloc(d * sizeof(*l->order));
	l->way = malloc(d * sizeof(*l->way));
	if (!l->when || !l->order || !l->way)
		return -ENOMEM;
	fill_tables(l);
	return 0;
}

/* ---- all dimensions ---- */

int swc_lines_open(struct swc_lines *l, const struct swc_topo *topo, bool swing)
{
	int ret = 0;

	*l = (struct swc_lines){ .ndims = topo->ndims };
	for (uint32_t i = 0; i < l->ndims && !ret; i++) {
		l->line[i].swing = swing;
		ret = open_line(&l->line[i], topo->dim[i]);
	}
	return ret;
}

void swc_lines_free(struct swc_lines *l)
{
	for (uint32_t i = 0; i < l->ndims; i++) {
		free(l->line[i].when);
		free(l->line[i].order);
		free(l->line[i].way);
	}
}

void swc_lines_set_port(struct swc_lines *l, uint32_t port)
{
	uint32_t nsteps[SWC_TOPO_DIMS];

	for (uint32_t i = 0; i < l->ndims; i++) {
		nsteps[i] = l->line[i].nsteps;
		l->line[i].mirror = port >= l->ndims;
	}
	l->steps = swc_butterfly_turns(nsteps, l->ndims, port, l->turn);
	for (uint32_t s = 0; s < l->steps; s++)
		l->turn_at[l->turn[s].dim][l->turn[s].step] = s;
}
