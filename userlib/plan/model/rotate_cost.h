/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the all-to-all by rotate costs, exactly, without its plans; see rotate_cost.c. */
#ifndef SWC_PLAN_MODEL_ROTATE_COST_H
#define SWC_PLAN_MODEL_ROTATE_COST_H

#include "plan/model/model.h"

/**
 * swc_rotate_cost() - the cost that swc_cost_compute() finds in the plans
 *
 * But for last_hops, last_share, messages, sent and max_runs, which are 0. In time proportional to the nodes.
 *
 * Return: 0, or -EOPNOTSUPP if it is another algorithm, or not on a mesh or on a torus with odd sides, whose
 * nodes have one rank each.
 */
int swc_rotate_cost(const struct swc_plan_args *args, struct swc_cost *cost);

#endif /* SWC_PLAN_MODEL_ROTATE_COST_H */
