/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Allreduce by trees of any roots: each part of the vector is reduced to one rank, and broadcast from
 * there. How much each rank is root of, and how much of each link is for broadcasts, is a linear
 * program.
 */
#ifndef SWC_PLAN_FOREST_ROOTS_H
#define SWC_PLAN_FOREST_ROOTS_H

#include "plan/forest/splitting.h"

/**
 * struct swc_lp - a solver of linear programs, which grow
 * @begin: @n variables from 0 to @upper; the sum of them times @gain is to be maximised. 0 or -ENOMEM
 * @add_row: the sum of @n variables, each times its coefficient, is at most @bound, or equal to it.
 *	0 or -ENOMEM
 * @solve: find the optimum of what there is now; 0, or -EIO if that fails
 */
struct swc_lp {
	int (*begin)(struct swc_lp *lp, uint32_t n, const double *upper, const double *gain);
	int (*add_row)(struct swc_lp *lp, uint32_t n, const uint32_t *variable,
		       const double *coefficient, double bound, bool equal);
	int (*solve)(struct swc_lp *lp, double *value);
};

/**
 * struct swc_roots - the best sharing of the links
 * @rate: the vector per unit of time, in units of capacity
 * @x: by rank: how much of the rate it is root of. Owned.
 * @rounds, @cuts: of the program
 * @trees: trees for a unit of capacity
 * @weight: by rank: trees whose root it is: nearly, or exactly, @trees times @x. Owned.
 * @down, @up: links with as many trees as they carry in each phase
 * @mirrored: @up is @down turned round
 */
struct swc_roots {
	double rate;
	double *x;
	uint32_t rounds, cuts;
	double trees;
	int64_t *weight;
	struct swc_graph down, up;
	bool mirrored;
};

/* Find it for a graph that has passed swc_graph_check(). 0, -ENOMEM or -EIO. */
int swc_roots_find(struct swc_roots *r, const struct swc_graph *g, struct swc_lp *lp,
		   swc_forest_progress *progress, void *arg);
void swc_roots_free(struct swc_roots *r);

#endif /* SWC_PLAN_FOREST_ROOTS_H */
