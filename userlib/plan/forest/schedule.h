/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From trees to plans: which blocks go through which tree, and when. */
#ifndef SWC_PLAN_FOREST_SCHEDULE_H
#define SWC_PLAN_FOREST_SCHEDULE_H

#include "plan/forest/phase.h"
#include "plan/plan_tables.h"

/**
 * struct swc_schedule_args - what a schedule is made from
 * @coll: ALLREDUCE (both phases), ALLGATHER or BROADCAST (down), REDUCE_SCATTER or REDUCE (up)
 * @root: of BROADCAST and REDUCE, else 0
 * @down, @up: the phases; NULL if the collective does not have it
 * @topo: that the ranks are the nodes of, or NULL
 * @pieces: segments that follow one another through each tree, at least 1
 * @channels: each takes a part of the segments; at most @pieces
 */
struct swc_schedule_args {
	enum swc_coll coll;
	uint32_t root;
	const struct swc_phase *down, *up;
	const struct swc_topo *topo;
	uint32_t pieces, channels;
};

/**
 * struct swc_flow_tree - a part of the vector on its way up a tree, and down another
 * @up, @down: trees with the same root; NULL in the phase that there is not
 * @share: of the shard, or of the vector if there are no shards
 * @blocks: of each segment
 * @first: block of the first segment of all
 */
struct swc_flow_tree {
	const struct swc_tree *up, *down;
	double share;
	uint32_t blocks, first;
};

/**
 * struct swc_schedule - the same for all ranks
 * @shard_blocks: blocks of a shard
 * @flow: by root. Owned.
 * @steps: network steps of each channel
 */
struct swc_schedule {
	struct swc_schedule_args args;
	uint32_t nranks, shard_blocks, nflows, steps;
	struct swc_flow_tree *flow;
};

/* 0, -ENOMEM, or -EINVAL if the plan would be too large. */
int swc_schedule_make(struct swc_schedule *s, const struct swc_schedule_args *args, char *why,
		      size_t why_bytes);
void swc_schedule_free(struct swc_schedule *s);

/* How many edges from the farthest leaf up, and down again, all parts take at most. */
uint32_t swc_schedule_depth(const struct swc_phase *up, const struct swc_phase *down);

/*
 * Write the channels of a rank's plan. @w has been begun. 0, -ENOMEM or -EFBIG; the tables are the
 * caller's also after a failure.
 */
int swc_schedule_write(const struct swc_schedule *s, uint32_t rank, struct swc_plan_writer *w);

/*
 * A rank's whole plan. *plan is the caller's, to be freed with free(). 0, -ENOMEM, or -EINVAL and a
 * line if the plan would be too large.
 */
int swc_schedule_plan(const struct swc_schedule *s, uint32_t rank, void **plan, size_t *bytes,
		      char *why, size_t why_bytes);

#endif /* SWC_PLAN_FOREST_SCHEDULE_H */
