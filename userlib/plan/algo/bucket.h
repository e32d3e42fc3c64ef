/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One channel of the bucket algorithms: see bucket.c, and split.c, which uses it. */
#ifndef SWC_PLAN_ALGO_BUCKET_H
#define SWC_PLAN_ALGO_BUCKET_H

#include "plan/algo/builder.h"

/**
 * struct swc_bucket - one channel's view of the torus
 *
 * Members have places: their coordinates (mirrored ones in a mirror image) read as one number, in
 * which the dimension that is reduced first is the most significant. So what is left of a piece of
 * the vector is always a range of places.
 *
 * @two_sided: sums come to their owner from both sides
 * @mirrored: the channel is a mirror image
 * @ndims: dimensions with more than one member
 * @dim: their sizes, in the order in which they are reduced
 * @stride: between the numbers of neighbours along them
 * @pieces: of the channel's share, each of which begins one step after the one before
 * @weight: blocks of a piece for each place
 * @at: in ALLREDUCE the first block of the channel; the blocks of a piece are in the order of its
 *	places. In other collectives the first block in each member's shard
 * @shard_blocks: of a shard; 0 in ALLREDUCE
 */
struct swc_bucket {
	struct swc_builder *b;
	bool two_sided, mirrored;
	uint32_t ndims;
	uint32_t dim[SWC_TOPO_DIMS], stride[SWC_TOPO_DIMS];
	uint32_t pieces, weight;
	uint32_t at, shard_blocks;
};

/* The dimensions with more than one member. Returns their number. */
uint32_t swc_bucket_dims(const struct swc_topo *t, uint8_t *dim);

/* Reduce along these dimensions, one after the other. */
void swc_bucket_order(struct swc_bucket *g, const uint8_t *dim, uint32_t ndims);

/* Number of network steps of a channel. */
uint32_t swc_bucket_steps(const struct swc_bucket *g);

/* Append the steps of the open channel. */
void swc_bucket_channel(const struct swc_bucket *g);

/**
 * struct swc_bucket_shares - the channels of all ports, but for their mirror images
 * @two_sided, @pieces: as in struct swc_bucket
 * @ndims: dimensions with more than one member
 * @n: channels
 * @order: by channel: these dimensions, in the order in which they are reduced
 * @weight: by channel: blocks of a piece for each place
 */
struct swc_bucket_shares {
	bool two_sided;
	uint32_t pieces;
	uint32_t ndims, n;
	uint8_t order[SWC_TOPO_DIMS][SWC_TOPO_DIMS];
	uint32_t weight[SWC_TOPO_DIMS];
};

/* How split shares the vector (split.c); false if there is no such plan. */
bool swc_split_shares(struct swc_bucket_shares *shares, const struct swc_topo *t, uint32_t pieces);

#endif /* SWC_PLAN_ALGO_BUCKET_H */
