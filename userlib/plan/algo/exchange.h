/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What measures the links of one dimension; see exchange.c. */
#ifndef SWC_PLAN_ALGO_EXCHANGE_H
#define SWC_PLAN_ALGO_EXCHANGE_H

#include "plan/plan.h"

/*
 * Make the plan of a rank in which nodes send their shards to their neighbours along a dimension.
 * *plan is the caller's, to be freed with free(). 0, -ENOMEM, or -EOPNOTSUPP if the dimension has
 * one node.
 */
int swc_exchange_build(const struct swc_topo *t, uint32_t dim, uint32_t rank, void **plan,
		       size_t *bytes);

/* What part of a shard a link carries there. */
double swc_exchange_share(const struct swc_topo *t, uint32_t dim);

#endif /* SWC_PLAN_ALGO_EXCHANGE_H */
