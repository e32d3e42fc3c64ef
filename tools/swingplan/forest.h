/* SPDX-License-Identifier: GPL-2.0-only */
/* swingplan forest: forest.c finds trees, forest_plan.c makes plans of them, forest_print.c prints
 * them, forest_lp.c has the linear program. */
#ifndef SWINGPLAN_FOREST_H
#define SWINGPLAN_FOREST_H

#include "swingplan.h"

#include "plan/forest/phase.h"

/**
 * struct forest - what is asked for, and what was found
 * @g: the network
 * @named: nodes are called as in a file, else by their numbers
 * @unit: Gbit/s of a unit of capacity, 0 if not known
 * @root: of broadcast and reduce
 * @bound: by direction, down and up, of equal roots
 * @rate: units of capacity in which the whole vector moves: of one root, or of any roots
 * @x: by rank: its part of the rate, of any roots
 * @equal_time: time by equal roots
 * @time: of the vector over a unit of capacity
 * @phase: down and up; made if @has
 * @pieces, @channels, @steps, @blocks: of the plan, if there is one
 */
struct forest {
	const struct plan_options *opt;
	struct swc_graph g;
	bool named;
	double unit;
	uint32_t root;
	struct swc_bound bound[2];
	double rate, *x, equal_time, time;
	struct swc_phase phase[2];
	bool has[2];
	uint32_t pieces, channels, steps, blocks;
};

enum {
	DOWN,
	UP
};

/* forest_lp.c */
void forest_find_any(struct forest *f);

/* forest_plan.c */
void forest_write(struct forest *f);

/* forest_print.c */
void forest_print(const struct forest *f);
void forest_print_json(struct forest *f);

#endif /* SWINGPLAN_FOREST_H */
