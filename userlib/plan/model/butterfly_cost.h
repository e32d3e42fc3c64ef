/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What butterflies cost, exactly, without their plans; see butterfly_cost.c. */
#ifndef SWC_PLAN_MODEL_BUTTERFLY_COST_H
#define SWC_PLAN_MODEL_BUTTERFLY_COST_H

#include "plan/model/model.h"

/**
 * swc_butterfly_cost() - the cost that swc_cost_compute() finds in the plans
 *
 * But for last_hops, last_share, messages, sent and max_runs, which mean nothing; and where both ways round
 * are equally long, @connections of a broadcast may be too many. In time proportional to the messages: a few
 * milliseconds for 4096 nodes. On larger meshes whose sides are powers of two, bine-sag is estimated.
 *
 * Return: 0, and there are such plans; -EOPNOTSUPP if it is no butterfly among nodes of one rank each, or too
 * large; or -ENOMEM.
 */
int swc_butterfly_cost(const struct swc_plan_args *args, struct swc_cost *cost);

/* What folds alone put on a link, as a share of the vector: the load is at least that. */
double swc_butterfly_folds(const struct swc_plan_args *args);

#endif /* SWC_PLAN_MODEL_BUTTERFLY_COST_H */
