// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sums over one dimension that are received from both sides at once: ceil(log3 d) steps for any
 * number d of members.
 *
 * d is a product of factors n1 * n2 * ..., with one stage for each. A stage works on rings of n
 * members that are `stride` apart, the product of the factors before it. Each member begins it with
 * a sum over a set A that, shifted by multiples of the stride, covers the dimension without
 * overlap, and ends it with such a sum for n * stride. So any stages may follow one another. These
 * exist:
 *
 * shifts: each member has the sum of an interval around it, the same for all, and grows it by the
 *	intervals of members next to it: to both sides or one, around its latest sum, around the sum
 *	before that, or around nothing (then two intervals of s members at distance s / 2 make one
 *	of 2 s: fewer hops). 3, 9, 27: the latest sum and both neighbours. 7: 1, 3, then one's own
 *	vector and both neighbours. 10: 1, 2, 4 around nothing, then 2 + 2 * 4. A search finds the
 *	fewest hops; a step receives two messages, or up to four where that saves hops.
 * table of four: pairs 0-1 and 2-3, then 1-2 and 3-0: one neighbour at a time, as in Swing.
 * table of eight: the ring can be cut into arcs of 3, 3 and 2 members such that each arc has its
 *	members at the centre: {7,0,1} {2,3} {4,5,6} with members 0, 2 and 3, 5; and, shifted by
 *	four, {3,4,5} {6,7} {0,1,2} with members 4, 6 and 7, 1. First each member sums up its arc
 *	(distance 1), then it receives the two others of its cut (distance 2 and 3). With 8 members
 *	that is 2 steps and 4 hops.
 * arcs, any n: the ring is cut into three arcs, these into three again, and so on. From the
 *	innermost cut to the outermost, each member receives the sums of the two neighbour arcs from
 *	their members with its own index, or from the last one if they are shorter by one.
 *
 * (Powers of three and the steps +-3^k: "Trivance", arXiv 2602.17254. The rest extends it to any
 * number of members.)
 */
#include "plan/algo/sides.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/*
 * Stages with so many members or fewer are searched, 3 to the steps. That takes milliseconds, so larger ones
 * are only if there are no others.
 */
#define SEARCHED 243
#define SEARCHED_PRIME 729

static uint32_t steps_of(uint32_t n)
{
	uint32_t steps = 0;

	for (uint64_t reach = 1; reach < n; reach *= 3)
		steps++;
	return steps;
}

/* ---- tables ---- */

/* Offsets of the members that sums come from, by step and index of the member % classes. */
static const struct table {
	uint32_t n, classes, hops[2], load;
	int8_t from[2][4][2];
} tables[] = {
	{ 4, 2, { 1, 1 }, 2, { { { 1, 0 }, { -1, 0 } }, { { -1, 0 }, { 1, 0 } } } },
	{ 8,
	  4,
	  { 1, 3 },
	  7,
	  { { { -1, 1 }, { -1, 1 }, { 1, 0 }, { -1, 0 } },
	    { { -3, 2 }, { -2, 3 }, { -2, 3 }, { -3, 2 } } } },
};

static const struct table *table_of(uint32_t n)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (tables[i].n == n)
			return &tables[i];
	return NULL;
}

static uint32_t table_peers(const struct table *t, uint32_t step, uint32_t j, bool send,
			    int32_t *offset)
{
	uint32_t n = 0;

	for (int32_t o = -3; o <= 3; o++) {
		uint32_t receiver = send ? j + t->n - (uint32_t)o : j;
		const int8_t *from = t->from[step][receiver % t->n % t->classes];

		if (o && (from[0] == o || from[1] == o))
			offset[n++] = send ? -o : o;
	}
	return n;
}

/* ---- arcs ---- */

struct arc {
	uint32_t first, n;
};

/* Arc i of three, or of as many as there are members. */
static struct arc arc_of(struct arc whole, uint32_t i)
{
	uint32_t arcs = whole.n < 3 ? whole.n : 3, n = whole.n / arcs, longer = whole.n % arcs;

	return (struct arc){ whole.first + i * n + (i < longer ? i : longer), n + (i < longer) };
}

static uint32_t arc_with(struct arc whole, uint32_t j)
{
	uint32_t i = 0;

	while (j - arc_of(whole, i).first >= arc_of(whole, i).n)
		i++;
	return i;
}

static uint32_t arc_peers(uint32_t n, uint32_t step, uint32_t j, bool send, int32_t *offset)
{
	struct arc whole = { 0, n }, mine;
	uint32_t own, arcs, npeers = 0;

	for (uint32_t cut = steps_of(n) - 1; cut > step; cut--)
		whole = arc_of(whole, arc_with(whole, j));
	own = arc_with(whole, j);
	mine = arc_of(whole, own);
	arcs = whole.n < 3 ? whole.n : 3;
	for (uint32_t i = 0; i < arcs; i++) {
		struct arc a = arc_of(whole, i);
		uint32_t at = j - mine.first, end = at + 1;

		if (i == own)
			continue;
		if (!send && at == a.n) /* the other arc is shorter by one */
			end = at--;
		if (send && at >= a.n) /* it is shorter: no member has this index */
			continue;
		if (send &&
		    end == mine.n) /* the own arc may be shorter: its last member sends to two */
			end = a.n;
		for (; at < end; at++)
			offset[npeers++] = (int32_t)(a.first + at - j);
	}
	for (uint32_t i = 0; i < npeers; i++) {
		if (2 * offset[i] > (int32_t)n)
			offset[i] -= (int32_t)n;
		else if (2 * offset[i] < -(int32_t)n)
			offset[i] += (int32_t)n;
	}
	return npeers;
}

/* The largest distance in a step. The outermost cut is closed to a ring, those within an arc not. */
static uint32_t arc_hops(uint32_t n, uint32_t step)
{
	uint32_t arc = (n + 2) / 3;

	if (step + 1 == steps_of(n))
		return arc;
	for (uint32_t cut = steps_of(n) - 2; cut > step; cut--)
		arc = (arc + 2) / 3;
	return arc - (arc < 3 ? 1 : arc / 3);
}

/* ---- stages ---- */

static struct swc_sides_stage table_stage(const struct table *t)
{
	return (struct swc_sides_stage){ .kind = SWC_SIDES_TABLE,
					 .n = t->n,
					 .steps = 2,
					 .hops = t->hops[0] + t->hops[1],
					 .load = t->load };
}

static struct swc_sides_stage arcs_stage(uint32_t n)
{
	struct swc_sides_stage s = { .kind = SWC_SIDES_ARCS, .n = n, .steps = steps_of(n) };

	for (uint32_t k = 0; k < s.steps; k++)
		s.hops += arc_hops(n, k);
	s.load = 2 * s.hops;
	return s;
}

static bool is_searched(uint32_t n)
{
	uint32_t factor = 2;

	while (factor * factor <= n && n % factor)
		factor++;
	return n <= (factor * factor > n ? SEARCHED_PRIME : SEARCHED);
}

static struct swc_sides_stage stage_of(uint32_t n)
{
	struct swc_sides_stage shifts = { .n = n }, arcs;

	if (table_of(n))
		return table_stage(table_of(n));
	arcs = arcs_stage(n);
	if (is_searched(n))
		swc_sides_shifts(&shifts, steps_of(n));
	return shifts.steps && shifts.hops <= arcs.hops ? shifts : arcs;
}

/* A stage with fewer steps, of up to four messages; steps is 0 if there is none. */
static struct swc_sides_stage few_stage_of(uint32_t n, uint32_t steps)
{
	struct swc_sides_stage few = { .n = n };

	for (uint32_t k = 1; k < steps && !few.steps && is_searched(n); k++)
		swc_sides_few_shifts(&few, k);
	return few;
}

#define MAX_DIVISORS 240 /* of numbers up to 2^20 */
#define MAX_STEPS 13	 /* ceil(log3) of these */

/* The best way to join @divisor members in so many steps or fewer: its first stage, and what it costs. */
struct way {
	uint64_t hops, load; /* hops is UINT64_MAX if there is none */
	const struct swc_sides_stage *first;
	uint32_t steps;
};

/**
 * struct factors - ways to make a product of stages
 * @divisor: of the size, ascending
 * @stage: with so many members; of 1, none
 * @few: likewise, with fewer steps; steps is 0 if there is none
 * @way: by divisor and steps
 */
struct factors {
	uint32_t n;
	uint32_t divisor[MAX_DIVISORS];
	struct swc_sides_stage stage[MAX_DIVISORS], few[MAX_DIVISORS];
	struct way way[MAX_DIVISORS][MAX_STEPS + 1];
};

static uint32_t index_of(const struct factors *f, uint32_t divisor)
{
	uint32_t low = 0, high = f->n;

	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (f->divisor[mid] <= divisor)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* Begin with this stage, and join its rings, which are its size apart, in the best way. */
static void try_first(struct factors *f, uint32_t i, const struct swc_sides_stage *s,
		      uint32_t steps)
{
	uint32_t rest = index_of(f, f->divisor[i] / s->n);

	for (uint32_t k = s->steps; k <= steps; k++) {
		const struct way *w = &f->way[rest][k - s->steps];
		struct way *best = &f->way[i][k], now;

		if (w->hops == UINT64_MAX)
			continue;
		now = (struct way){ s->hops + s->n * w->hops, s->load + s->n * w->load, s,
				    s->steps + w->steps };
		if (now.hops < best->hops || (now.hops == best->hops && now.load < best->load))
			*best = now;
	}
}

static void find_ways(struct factors *f, uint32_t steps, bool few)
{
	for (uint32_t i = 1; i < f->n; i++) {
		f->stage[i] = stage_of(f->divisor[i]);
		if (few)
			f->few[i] = few_stage_of(f->divisor[i], f->stage[i].steps);
		for (uint32_t k = 0; k <= steps; k++)
			f->way[i][k].hops = UINT64_MAX;
		for (uint32_t first = 1; first <= i; first++) {
			if (f->divisor[i] % f->divisor[first])
				continue;
			try_first(f, i, &f->stage[first], steps);
			if (f->few[first].steps)
				try_first(f, i, &f->few[first], steps);
		}
	}
}

/* The way for all members, where a step takes as long as @halves half hops. */
static const struct way *best_way(const struct factors *f, uint32_t steps, uint32_t halves)
{
	const struct way *way = f->way[f->n - 1], *best = &way[steps];

	for (uint32_t k = steps; k-- > 0;)
		if (way[k].hops != UINT64_MAX && 2 * way[k].hops + halves * way[k].steps <=
							 2 * best->hops + halves * best->steps)
			best = &way[k];
	return best;
}

static int search(struct swc_sides *l, uint32_t size, bool few)
{
	struct factors *f = calloc(1, sizeof(*f));
	uint32_t steps = steps_of(size), i, left, stride = 1;

	if (!f)
		return -ENOMEM;
	*l = (struct swc_sides){ .size = size, .few = few };
	for (uint32_t n = 1; n <= size && f->n < MAX_DIVISORS; n++)
		if (size % n == 0)
			f->divisor[f->n++] = n;
	find_ways(f, steps, few);
	left = best_way(f, steps, few ? 24 : 3)->steps;
	for (i = f->n - 1; i; i = index_of(f, size / stride)) {
		const struct way *w = &f->way[i][left];
		struct swc_sides_stage *s = &l->stage[l->nstages++];

		*s = *w->first;
		s->stride = stride;
		stride *= s->n;
		left -= s->steps;
		l->nsteps += s->steps;
	}
	free(f);
	return 0;
}

/*
 * The model builds the plans of all ranks on the axes of a torus, one after the other, all with the
 * same few sizes, and the search is most of that. So a thread keeps the last ones that it found. They
 * depend on the arguments alone.
 */
#define KEPT 4

int swc_sides_find(struct swc_sides *l, uint32_t size, bool few)
{
	static __thread struct {
		struct swc_sides sides[KEPT];
		uint32_t next;
	} kept;
	int ret;

	for (uint32_t i = 0; i < KEPT; i++)
		if (kept.sides[i].size == size && kept.sides[i].few == few) {
			*l = kept.sides[i];
			return 0;
		}
	ret = search(l, size, few);
	if (!ret)
		kept.sides[kept.next++ % KEPT] = *l;
	return ret;
}

/* ---- steps ---- */

static const struct swc_sides_stage *stage_at(const struct swc_sides *l, uint32_t *step)
{
	const struct swc_sides_stage *s = l->stage;

	for (; *step >= s->steps; s++)
		*step -= s->steps;
	return s;
}

uint32_t swc_sides_hops(const struct swc_sides *l, uint32_t step)
{
	const struct swc_sides_stage *s = stage_at(l, &step);

	switch (s->kind) {
	case SWC_SIDES_SHIFTS:
		return s->stride * s->shift[step].hops;
	case SWC_SIDES_TABLE:
		return s->stride * table_of(s->n)->hops[step];
	default:
		return s->stride * arc_hops(s->n, step);
	}
}

enum swc_sides_base swc_sides_base(const struct swc_sides *l, uint32_t step)
{
	const struct swc_sides_stage *s = stage_at(l, &step);

	return s->kind == SWC_SIDES_SHIFTS ? s->shift[step].base : SWC_SIDES_NOW;
}

static uint32_t shift_peers(const struct swc_sides_shift *x, bool send, int32_t *offset)
{
	for (uint32_t i = 0; i < x->n; i++)
		offset[i] = send ? -x->from[i] : x->from[i];
	return x->n;
}

uint32_t swc_sides_peers(const struct swc_sides *l, uint32_t step, uint32_t at, bool send,
			 int64_t offset[SWC_SIDES_PEERS])
{
	const struct swc_sides_stage *s = stage_at(l, &step);
	uint32_t j = at / s->stride % s->n, n;
	int32_t by[SWC_SIDES_PEERS];

	switch (s->kind) {
	case SWC_SIDES_SHIFTS:
		n = shift_peers(&s->shift[step], send, by);
		break;
	case SWC_SIDES_TABLE:
		n = table_peers(table_of(s->n), step, j, send, by);
		break;
	default:
		n = arc_peers(s->n, step, j, send, by);
	}
	for (uint32_t i = 0; i < n; i++)
		offset[i] = (int64_t)by[i] * s->stride;
	return n;
}
