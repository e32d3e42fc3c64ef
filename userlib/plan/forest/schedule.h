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
 * @topo: whose nodes the trees are between, or NULL. If those have several ranks, it is an ALLREDUCE
 * @pieces: segments that follow one another through each tree, at least 1
 * @channels: at most so many, and at most @pieces. If they are enough for a channel for each flow, it has
 *	one or more; else each channel has all flows, and a part of their segments
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
 * @group: of channels
 */
struct swc_flow_tree {
	const struct swc_tree *up, *down;
	double share;
	uint32_t blocks, first, group;
};

/**
 * struct swc_schedule - the same for all ranks
 * @nranks: of the trees
 * @shard_blocks: blocks of a shard
 * @owners: parts of the vector, with a rank on each node that takes part for it: 1 if nodes have one
 *	rank. Each part has the blocks of a shard
 * @flow: by root. Owned.
 * @groups: channel C carries the flows of group C % groups, and part C / groups of their segments
 * @parts: of the segments: groups * parts is the number of channels
 * @steps: network steps of each channel
 */
struct swc_schedule {
	struct swc_schedule_args args;
	uint32_t nranks, shard_blocks, owners, nflows, groups, parts, steps;
	struct swc_flow_tree *flow;
};

/* Only the trees, their shares and channels: what @pieces are does not matter. 0 or -ENOMEM. */
int swc_schedule_flows(struct swc_schedule *s, const struct swc_schedule_args *args);

/* How many channels are best, where @usual are for many trees. */
uint32_t swc_schedule_channels(const struct swc_schedule_args *args, uint32_t usual);

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
