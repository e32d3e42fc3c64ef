// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The search for shifts, see sides.c. All members have the sum of the same interval around them. A
 * step adds copies of the latest interval, one next to the other, to a base: the latest interval,
 * the one before, or none. The last step closes the ring. Steps are tried in depth first order; a
 * hop reaches one member further at best, which bounds what is worth trying.
 */
#include "plan/algo/sides.h"

#include <stddef.h>
#include <stdlib.h>

/* Offsets of an interval's ends; both are counted. */
struct interval {
	int32_t low, high;
};

struct search {
	uint32_t n, steps;
	int32_t copies; /* on each side of a base, at most, in steps before the last */
	struct swc_sides_shift shift[SWC_SIDES_STEPS];
	struct swc_sides_stage *best; /* steps is 0 until one has been found */
};

static int32_t count(struct interval i)
{
	return i.high - i.low + 1;
}

static uint32_t far(int32_t offset)
{
	return (uint32_t)abs(offset);
}

static void keep_best(struct search *s, uint32_t hops, uint32_t load)
{
	struct swc_sides_stage *b = s->best;

	if (b->steps &&
	    (b->hops < hops || (b->hops == hops && (b->load <= load || s->steps < b->steps))))
		return;
	b->steps = s->steps;
	b->hops = hops;
	b->load = load;
	for (uint32_t k = 0; k < s->steps; k++)
		b->shift[k] = s->shift[k];
}

/* Complete a step: its hops. Returns the sum of its distances, or 0 if a member would hear itself. */
static uint32_t measure(struct swc_sides_shift *x)
{
	uint32_t load = 0;

	x->hops = 0;
	for (uint32_t i = 0; i < x->n; i++) {
		if (!x->from[i])
			return 0;
		load += far(x->from[i]);
		x->hops = far(x->from[i]) > x->hops ? far(x->from[i]) : x->hops;
	}
	return load;
}

/* The last step: intervals of @now, from @first on, cover what @base does not. */
static void close_ring(struct search *s, struct interval now, enum swc_sides_base base,
		       int32_t first, int32_t left, uint32_t hops, uint32_t load)
{
	struct swc_sides_shift *x = &s->shift[s->steps - 1];
	int32_t size = count(now), n = (int32_t)s->n;
	uint32_t more;

	if (left <= 0 || left % size || left / size > SWC_SIDES_SHIFTS_MOST)
		return;
	*x = (struct swc_sides_shift){ .base = base, .n = (uint32_t)(left / size) };
	for (uint32_t i = 0; i < x->n; i++) {
		int32_t from = first - now.low + (int32_t)i * size;

		x->from[i] = 2 * from > n ? from - n : from;
	}
	more = measure(x);
	if (more)
		keep_best(s, hops + x->hops, load + more);
}

static void try_last(struct search *s, struct interval now, const struct interval *before,
		     uint32_t hops, uint32_t load)
{
	int32_t n = (int32_t)s->n, half = count(now) / 2;

	close_ring(s, now, SWC_SIDES_NOW, now.high + 1, n - count(now), hops, load);
	if (before)
		close_ring(s, now, SWC_SIDES_BEFORE, before->high + 1, n - count(*before), hops,
			   load);
	/* The intervals begin half their size ahead, so that those nearest are as near as can be. */
	close_ring(s, now, SWC_SIDES_NONE, half + now.low, n, hops, load);
	close_ring(s, now, SWC_SIDES_NONE, half + 1 + now.low, n, hops, load);
}

static void grow(struct search *s, uint32_t k, struct interval now, const struct interval *before,
		 uint32_t hops, uint32_t load);

/* Go on with step k at these offsets, if it can still become the best. */
static void try_step(struct search *s, uint32_t k, struct swc_sides_shift x, struct interval now,
		     struct interval sum, uint32_t hops, uint32_t load)
{
	uint32_t more = measure(&x), reach, need = s->n / 2;
	uint64_t most = (uint64_t)count(sum) * (SWC_SIDES_SHIFTS_MOST + 1);

	hops += x.hops;
	load += more;
	reach = (uint32_t)(sum.high > -sum.low ? sum.high : -sum.low);
	for (uint32_t i = k + 2; i < s->steps; i++)
		most *= 2 * (uint64_t)s->copies + 1;
	if (!more || count(sum) >= (int32_t)s->n || most < s->n)
		return;
	/* Each further hop reaches one member further at best. */
	if (s->best->steps && hops + (need > reach ? need - reach : 0) > s->best->hops)
		return;
	s->shift[k] = x;
	grow(s, k + 1, sum, &now, hops, load);
}

/* Step k: intervals of @now on one side or both of the base. */
static void around(struct search *s, uint32_t k, struct interval now, enum swc_sides_base base,
		   struct interval mid, uint32_t hops, uint32_t load)
{
	int32_t size = count(now);

	for (int32_t low = 0; low <= s->copies; low++)
		for (int32_t high = s->copies; high >= 0; high--) {
			struct interval sum = { mid.low - low * size, mid.high + high * size };
			struct swc_sides_shift x = { .base = base };

			for (int32_t i = 0; i < high; i++)
				x.from[x.n++] = mid.high + 1 - now.low + i * size;
			for (int32_t i = 0; i < low; i++)
				x.from[x.n++] = mid.low - 1 - now.high - i * size;
			if (x.n)
				try_step(s, k, x, now, sum, hops, load);
		}
}

static void grow(struct search *s, uint32_t k, struct interval now, const struct interval *before,
		 uint32_t hops, uint32_t load)
{
	int32_t size = count(now);

	if (k + 1 == s->steps) {
		try_last(s, now, before, hops, load);
		return;
	}
	around(s, k, now, SWC_SIDES_NOW, now, hops, load);
	if (before)
		around(s, k, now, SWC_SIDES_BEFORE, *before, hops, load);
	for (int32_t up = size / 2; size > 1 && up <= size - size / 2; up++) {
		struct interval sum = { now.low + up - size, now.high + up };

		try_step(s, k, (struct swc_sides_shift){ SWC_SIDES_NONE, 2, 0, { up - size, up } },
			 now, sum, hops, load);
	}
}

void swc_sides_few_shifts(struct swc_sides_stage *best, uint32_t steps)
{
	struct search s = { .n = best->n, .steps = steps, .copies = 2, .best = best };

	best->kind = SWC_SIDES_SHIFTS;
	grow(&s, 0, (struct interval){ 0, 0 }, NULL, 0, 0);
}

void swc_sides_shifts(struct swc_sides_stage *best, uint32_t steps)
{
	best->kind = SWC_SIDES_SHIFTS;
	for (uint32_t i = 0; i < 4; i++) {
		struct search s = { .n = best->n,
				    .steps = steps - i / 2,
				    .copies = 1 + (int32_t)i % 2,
				    .best = best };

		if (s.steps && (!best->steps || best->hops > best->n / 2))
			grow(&s, 0, (struct interval){ 0, 0 }, NULL, 0, 0);
	}
}
