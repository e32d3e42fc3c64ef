/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rounds of trees, see tree.c: for the models. All members that have a message in a round take it
 * together; REDUCE and GATHER are BROADCAST and SCATTER backwards, ALLREDUCE is both.
 */
#ifndef SWC_PLAN_ALGO_TREE_H
#define SWC_PLAN_ALGO_TREE_H

#include "plan/plan.h"

/* Rounds of tree, and the round of a message. */
uint32_t swc_tree_rounds(const struct swc_plan_args *a);
uint32_t swc_tree_round(const struct swc_plan_args *a, uint32_t from, uint32_t to);

/*
 * With members numbered from the root: the children that v sends to in its k-th step down, 0 to 2 of them;
 * past the last step UINT32_MAX.
 */
uint32_t swc_tree_children(uint32_t n, uint32_t v, uint32_t k, uint32_t child[2]);

/* Of dtree: pieces of a half; and the parent of a member, or itself if it has none, and its depth. */
uint32_t swc_dtree_pieces(const struct swc_plan_args *a);
uint32_t swc_dtree_parent(const struct swc_plan_args *a, bool second, uint32_t member,
			  uint32_t *depth);

/* Rounds of dtree, and the round of a message. @second: which tree; @block: the first one of the message */
uint32_t swc_dtree_rounds(const struct swc_plan_args *a);
uint32_t swc_dtree_round(const struct swc_plan_args *a, bool second, uint32_t block, uint32_t from,
			 uint32_t to);

/*
 * Members of dtree that show what all do: some of each height in either tree, as the longest messages are those of
 * the few members at the top. How many there are; and one of them, by its number below that, with the number of
 * members like it, itself included.
 */
uint32_t swc_dtree_sample_size(const struct swc_plan_args *a);
uint32_t swc_dtree_sample(const struct swc_plan_args *a, uint32_t i, double *alike);

#endif /* SWC_PLAN_ALGO_TREE_H */
