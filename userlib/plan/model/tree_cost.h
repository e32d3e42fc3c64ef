/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What tree, dtree and Bine trees cost, exactly, without their plans; see tree_cost.c. */
#ifndef SWC_PLAN_MODEL_TREE_COST_H
#define SWC_PLAN_MODEL_TREE_COST_H

#include "plan/model/model.h"

/**
 * swc_tree_cost() - the cost that swc_cost_compute() finds in the plans
 *
 * But for last_hops, last_share, messages, sent and max_runs, which are 0.
 *
 * Return: 0, -EOPNOTSUPP if it is no such tree among nodes of one rank each, or too large; or -ENOMEM.
 */
int swc_tree_cost(const struct swc_plan_args *args, struct swc_cost *cost);

#endif /* SWC_PLAN_MODEL_TREE_COST_H */
