/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The builder that algorithms use: append channels, steps and transfers in the order of the format.
 */
#ifndef SWC_PLAN_BUILD_H
#define SWC_PLAN_BUILD_H

#include "plan.h"

/**
 * struct swc_builder - a plan in the making
 * @args: what is being built
 * @hdr: header so far; algorithms may set flags and the scratch window
 * @chan, @step, @xfer: growable tables
 * @error: first failure; sticky, so that algorithms need not look after each call
 */
struct swc_builder {
	const struct swc_plan_args *args;
	struct swc_plan_header hdr;
	struct swc_plan_channel *chan;
	struct swc_plan_step *step;
	struct swc_plan_xfer *xfer;
	uint32_t chan_room, step_room, xfer_room;
	int error;
};

/* Cut each part into @part_blocks blocks; sets the SEND and RECV windows. Before any transfer. */
void swc_build_blocks(struct swc_builder *b, uint32_t part_blocks);

/* Give the plan @nblocks blocks of scratch from @first on. */
void swc_build_scratch(struct swc_builder *b, uint32_t first, uint32_t nblocks);

/* Open the next channel, the next step of the channel. */
void swc_build_channel(struct swc_builder *b);
void swc_build_step(struct swc_builder *b, enum swc_step_kind kind);

/* Add to the open step; all sends (sources) come before all receives (destinations). */
void swc_build_send(struct swc_builder *b, uint32_t rank, enum swc_buf buf, uint32_t first,
		    uint32_t nblocks);
void swc_build_recv(struct swc_builder *b, uint32_t rank, enum swc_buf buf, uint32_t first,
		    uint32_t nblocks, uint32_t flags);
/* A receive that stores operand redop arrived. */
void swc_build_recv_reduce(struct swc_builder *b, uint32_t rank, enum swc_buf buf,
			   enum swc_buf operand, uint32_t first, uint32_t nblocks, uint32_t flags);

/* The whole plan of a communicator with one rank: the result is a copy of the contribution. */
void swc_build_alone(struct swc_builder *b);

/*
 * Algorithms: append to an empty builder. Return 0 or -EOPNOTSUPP; other errors stick in the
 * builder.
 */
int swc_direct1_build(struct swc_builder *b);
int swc_direct2_build(struct swc_builder *b);
int swc_ring_build(struct swc_builder *b);
int swc_recdoub_build(struct swc_builder *b);

#endif /* SWC_PLAN_BUILD_H */
