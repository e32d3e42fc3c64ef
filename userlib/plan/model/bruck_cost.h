/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What Bruck's all-to-all costs, exactly, without its plans; see bruck_cost.c. */
#ifndef SWC_PLAN_MODEL_BRUCK_COST_H
#define SWC_PLAN_MODEL_BRUCK_COST_H

#include "plan/model/model.h"

/**
 * swc_bruck_cost() - the cost that swc_cost_compute() finds in the plans
 *
 * But for last_hops, last_share, messages, sent and max_runs, which are 0.
 *
 * Return: 0, -EOPNOTSUPP if it is another algorithm, or too large, or nodes with several ranks have several
 * rails; or -ENOMEM.
 */
int swc_bruck_cost(const struct swc_plan_args *args, struct swc_cost *cost);

/*
 * The part of it that takes less time to find: steps, extra, copies and copied; and sent. The rest is 0.
 * Returns the same.
 */
int swc_bruck_pieces(const struct swc_plan_args *args, struct swc_cost *cost);

#endif /* SWC_PLAN_MODEL_BRUCK_COST_H */
