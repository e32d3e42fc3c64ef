/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A phase of a collective by trees: down from the roots, or up to them. */
#ifndef SWC_PLAN_FOREST_PHASE_H
#define SWC_PLAN_FOREST_PHASE_H

#include "plan/forest/bound.h"
#include "plan/forest/packing.h"

/**
 * struct swc_phase - trees, and how they run through the network
 * @up: data moves from the leaves to the root: from each rank to its parent in the tree
 * @splitting: of the network, turned round if @up
 * @forest: the trees
 */
struct swc_phase {
	bool up;
	struct swc_splitting splitting;
	struct swc_forest forest;
};

/**
 * swc_phase_make() - find trees
 * @g: a graph that has passed swc_graph_check()
 * @slots: trees that a unit of capacity carries
 * @weight: by rank: trees whose root it is
 *
 * Return: 0, -ENOMEM, or -EINVAL if there are no such trees.
 */
int swc_phase_make(struct swc_phase *phase, const struct swc_graph *g, bool up,
		   struct swc_fraction slots, const int64_t *weight, swc_forest_progress *progress,
		   void *arg);
/* The same, with the trees that each link carries as its capacity in @slots. */
int swc_phase_make_slots(struct swc_phase *phase, const struct swc_graph *slots, bool up,
			 const int64_t *weight, swc_forest_progress *progress, void *arg);
/* The phase the other way by the same trees, for graphs that are symmetric. 0 or -ENOMEM. */
int swc_phase_mirror(struct swc_phase *phase, const struct swc_phase *other);
void swc_phase_free(struct swc_phase *phase);

#endif /* SWC_PLAN_FOREST_PHASE_H */
