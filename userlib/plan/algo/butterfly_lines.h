/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines: the schedules of butterflies in one dimension alone, and their product on a torus.
 */
#ifndef SWC_PLAN_ALGO_BUTTERFLY_LINES_H
#define SWC_PLAN_ALGO_BUTTERFLY_LINES_H

#include "plan/algo/butterfly_peers.h"

/* The step in which a coordinate sends its own block. */
#define SWC_LINE_NEVER UINT8_MAX

/**
 * struct swc_line - schedule of a dimension
 * @swing: Swing; else recursive doubling
 * @mirror: the other way round
 * @d: its size
 * @m: coordinates that take part: an even number, or a power of two
 * @log: steps among these
 * @nsteps: steps with folds
 * @when: Swing: the step in which coordinate 0 sends block b
 * @order, @way: Swing, not mirrored: all coordinates in the order of the ways to them from 0, those that
 *	are sent first last, and these ways: the steps as bits, the first one highest
 * @odd: Swing: the place of the last coordinate of odd d
 */
struct swc_line {
	bool swing, mirror;
	uint32_t d, m, log, nsteps;
	uint8_t *when;
	uint32_t *order, *way;
	uint32_t odd;
};

/* swc_line_when() of lines that have no table, and of the last coordinate of odd d in Swing. */
uint32_t swc_line_when_computed(const struct swc_line *l, uint32_t x, uint32_t y);

/*
 * The step in which x sends block y, x != y. Plans ask for each block in each step. In the other coordinates of
 * a line that is mirrored, x is m - x, which changes the signs of differences.
 */
static inline uint32_t swc_line_when(const struct swc_line *l, uint32_t x, uint32_t y)
{
	uint32_t i;

	if (!l->swing || x >= l->m || y >= l->m)
		return swc_line_when_computed(l, x, y);
	i = (x % 2 != 0) != l->mirror ? x + l->m - y : y + l->m - x;
	return l->when[i < l->m ? i : i - l->m];
}

/* The coordinate that x has in the schedule that is not mirrored. */
static inline uint32_t swc_line_reflect(const struct swc_line *l, uint32_t x)
{
	return l->mirror && x && x < l->m ? l->m - x : x;
}

/* Swing: the coordinate at place i, in the order of ways from 0, whose way is @l->way[i]; and its place. */
static inline uint32_t swc_line_ordered(const struct swc_line *l, uint32_t i)
{
	return swc_line_reflect(l, l->order[i]);
}

/* Swing: the way from 0 to y. */
uint32_t swc_line_way(const struct swc_line *l, uint32_t y);
uint32_t swc_line_place(const struct swc_line *l, uint32_t y);
/* The first place with this way or a later one. */
uint32_t swc_line_first(const struct swc_line *l, uint32_t way);

/*
 * Swing: the steps that are the same in all ways between two coordinates, as bits of ways. Offsets that m is
 * added to have the same first digits in base -2, as many as m has factors of 2, and a step depends on two of
 * them. The steps from x to y are those that the ways from 0 to x and to y do not share.
 */
static inline uint32_t swc_line_agreed(const struct swc_line *l)
{
	return ~(UINT32_MAX >> (__builtin_ctz(l->m) - 1));
}

/*
 * How many of @n ways of a line do not take a step. They are one or more, ascending, and equal in all steps
 * before it.
 */
uint32_t swc_ways_without(const uint32_t *way, uint32_t n, uint32_t step);

/*
 * The steps in which x sends the blocks at @n places from @first on.
 * @by_ways: places are as of swc_line_ordered(), else coordinates.
 * @way: with @by_ways, swc_line_way() of x.
 */
void swc_line_steps(const struct swc_line *l, uint32_t x, bool by_ways, uint32_t way,
		    uint32_t first, uint32_t n, uint8_t *step);

/* The coordinate that x sends block y to in step k. */
uint32_t swc_line_receiver(const struct swc_line *l, uint32_t x, uint32_t y, uint32_t k);

/* The i-th coordinate that x exchanges with in step k; l->d if there are fewer. */
uint32_t swc_line_peer(const struct swc_line *l, uint32_t x, uint32_t k, uint32_t i);

/* Is x the last coordinate of odd d in Swing? And the step in which that one exchanges with x. */
bool swc_line_odd_one(const struct swc_line *l, uint32_t x);
uint32_t swc_line_met_in(const struct swc_line *l, uint32_t x);

/**
 * struct swc_lines - schedule of a port of a torus
 * @turn, @steps: its steps
 * @turn_at: by dimension and step of its line: the step
 */
struct swc_lines {
	uint32_t ndims, steps;
	struct swc_line line[SWC_TOPO_DIMS];
	struct swc_turn turn[SWC_BUTTERFLY_STEPS];
	uint32_t turn_at[SWC_TOPO_DIMS][SWC_BUTTERFLY_STEPS];
};

/* Open the lines of a torus. 0 or -ENOMEM; free with swc_lines_free() in either case. */
int swc_lines_open(struct swc_lines *l, const struct swc_topo *topo, bool swing);
void swc_lines_free(struct swc_lines *l);

/* The schedule of this port from now on. */
void swc_lines_set_port(struct swc_lines *l, uint32_t port);

#endif /* SWC_PLAN_ALGO_BUTTERFLY_LINES_H */
