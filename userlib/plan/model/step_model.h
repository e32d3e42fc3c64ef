/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SWC_PLAN_MODEL_STEP_MODEL_H
#define SWC_PLAN_MODEL_STEP_MODEL_H

#include "plan/model/model.h"
#include "plan/model/symmetry.h"

/**
 * swc_step_model() - compute the cost of a collective from those plans that stand for all
 * @sym: which these are, and how the others are like them
 * @ahead: some ranks are ahead of others, so walk through all plans; only where @sym has all of them
 *
 * The rest: as of swc_cost_compute(). Return: also -EAGAIN if plans are alike, but some ranks are ahead.
 */
int swc_step_model(const struct swc_plan_args *args, const struct swc_symmetric *sym, bool ahead,
		   struct swc_cost *cost, swc_progress_fn *progress, void *arg, char *why,
		   size_t why_bytes);

#endif /* SWC_PLAN_MODEL_STEP_MODEL_H */
