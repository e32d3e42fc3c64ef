/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shape of Bine trees, see bine.c: for their plans, and for the models. */
#ifndef SWC_PLAN_ALGO_BINE_H
#define SWC_PLAN_ALGO_BINE_H

#include "plan/algo/butterfly_peers.h"

/**
 * struct swc_bine_line - the tree of one dimension
 * @d: its size
 * @log: steps
 * @first: the smallest of the d numbers, 0 or less
 */
struct swc_bine_line {
	uint32_t d, log;
	int32_t first;
};

/**
 * struct swc_bine - the trees of a topology
 * @topo: a node is a member
 * @root: coordinates of the root
 * @steps: of each tree
 */
struct swc_bine {
	const struct swc_topo *topo;
	struct swc_bine_line line[SWC_TOPO_DIMS];
	uint32_t root[SWC_TOPO_DIMS], steps;
};

/*
 * Find the trees. Return: 0, -ENOMEM, or -ERANGE if there is a dimension, *dim, for whose size no tree
 * is known.
 */
int swc_bine_find(struct swc_bine *t, const struct swc_topo *topo, uint32_t root, uint32_t *dim);

/**
 * struct swc_bine_member - a member in the tree of a port
 * @mirror: the tree is mirrored
 * @v: its numbers
 * @turn: the steps of a reduction
 * @up: the step in which its sum goes to its parent; for the root, the number of steps
 */
struct swc_bine_member {
	bool mirror;
	int32_t v[SWC_TOPO_DIMS];
	struct swc_turn turn[SWC_BUTTERFLY_STEPS];
	uint32_t up;
};

void swc_bine_place(const struct swc_bine *t, uint32_t port, uint32_t member,
		    struct swc_bine_member *m);

/* The member that another one, placed by swc_bine_place(), sends its sum to; of the root, itself. */
uint32_t swc_bine_parent(const struct swc_bine *t, uint32_t member,
			 const struct swc_bine_member *m);

/* bine_alltoall.c */
int swc_bine_alltoall(struct swc_builder *b);

#endif /* SWC_PLAN_ALGO_BINE_H */
