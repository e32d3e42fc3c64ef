/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What bucket, bucket2 and split cost on all ports of a torus, without their plans, which are long; see
 * bucket_cost.c.
 */
#ifndef SWC_PLAN_MODEL_BUCKET_COST_H
#define SWC_PLAN_MODEL_BUCKET_COST_H

#include "plan/algo/bucket.h"
#include "plan/model/model.h"

/**
 * struct swc_bucket_cost - the cost
 * @eager, @phased: as in struct swc_cost, but for last_hops and last_share
 * @reduced, @connections: likewise
 * @plan_bytes: of a plan; 0 if not known
 *
 * Where nodes have several ranks, it is no more than the cost.
 */
struct swc_bucket_cost {
	struct swc_timing eager, phased;
	double reduced;
	uint32_t connections;
	uint64_t plan_bytes;
};

/*
 * 0, -EOPNOTSUPP if it is none of these algorithms, or there is no such plan, or -ENOMEM. Plans may
 * still be too large.
 */
int swc_bucket_cost(struct swc_bucket_cost *cost, const struct swc_topo *t, enum swc_coll coll,
		    enum swc_algo algo, int32_t param);

#endif /* SWC_PLAN_MODEL_BUCKET_COST_H */
