/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What an all-to-all by nodes costs, exactly, without its plans; see by_nodes_cost.c. */
#ifndef SWC_PLAN_MODEL_BY_NODES_COST_H
#define SWC_PLAN_MODEL_BY_NODES_COST_H

#include "plan/model/model.h"

/**
 * swc_by_nodes_cost() - the cost that swc_cost_compute() finds in the plans
 *
 * But for last_hops, last_share, messages, sent and max_runs, which are 0.
 *
 * Return: 0, -EOPNOTSUPP if it is another algorithm, too large, or has no plan; or -ENOMEM.
 */
int swc_by_nodes_cost(const struct swc_plan_args *args, struct swc_cost *cost);

#endif /* SWC_PLAN_MODEL_BY_NODES_COST_H */
