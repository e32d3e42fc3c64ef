/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Forests: spanning trees that share the links of a graph. */
#ifndef SWC_PLAN_FOREST_PACKING_H
#define SWC_PLAN_FOREST_PACKING_H

#include "plan/forest/splitting.h"

/**
 * struct swc_tree - equal spanning trees, with edges from the root to the leaves
 * @root: a rank
 * @depth: edges from the root to the farthest leaf
 * @weight: how many trees
 * @number: in the order in which they were found, so that sorting is the same everywhere
 * @parent: by rank: where its edge comes from; the root is its own parent
 * @order: ranks in the order in which they were added, the root first
 */
struct swc_tree {
	uint32_t root, depth, number;
	int64_t weight;
	uint32_t *parent, *order;
};

/**
 * struct swc_forest - trees
 * @nranks: of each tree
 * @tree: by root; the shallow ones of a root first. Owned.
 */
struct swc_forest {
	uint32_t nranks, ntrees;
	struct swc_tree *tree;
};

/**
 * swc_forest_pack() - pack trees into a graph
 * @g: a graph without switches; each link carries so many trees as it has capacity
 * @weight: by rank: how many trees begin there. They must be possible, see swc_splitting_make()
 *
 * Return: 0, -ENOMEM, or -EINVAL if the trees are not possible.
 */
int swc_forest_pack(struct swc_forest *forest, const struct swc_graph *g, const int64_t *weight,
		    swc_forest_progress *progress, void *arg);
void swc_forest_free(struct swc_forest *forest);

#endif /* SWC_PLAN_FOREST_PACKING_H */
