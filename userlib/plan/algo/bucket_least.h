/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What bucket, bucket2 and split cost at least on all ports, without their plans, which are long; see
 * bucket_least.c.
 */
#ifndef SWC_PLAN_ALGO_BUCKET_LEAST_H
#define SWC_PLAN_ALGO_BUCKET_LEAST_H

#include "plan/plan.h"

/**
 * struct swc_bucket_shares - channels, but for their mirror images
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

/**
 * struct swc_bucket_least - the cost
 * @steps: network steps, each of one hop
 * @load: sum over the steps of the share of the vector on the busiest link, in units of the fastest
 *	links, by the step model's faster way to count steps
 * @reduced: share of the vector that a channel reduces
 * @connections: that a rank needs
 */
struct swc_bucket_least {
	uint32_t steps;
	double load;
	double reduced;
	uint32_t connections;
};

/* How split shares the vector (split.c); false if there is no such plan. */
bool swc_split_shares(struct swc_bucket_shares *shares, const struct swc_topo *t, uint32_t pieces);

/*
 * The cost of SWC_ALGO_BUCKET, BUCKET2 or SPLIT on a torus. 0, -EOPNOTSUPP if it is none of these, or
 * there is no such plan, or -ENOMEM. Plans may still be too large.
 */
int swc_bucket_least(struct swc_bucket_least *least, const struct swc_topo *t, enum swc_coll coll,
		     enum swc_algo algo, int32_t param);

#endif /* SWC_PLAN_ALGO_BUCKET_LEAST_H */
