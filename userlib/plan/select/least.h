/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The least that a candidate can cost; see least.c. */
#ifndef SWC_PLAN_SELECT_LEAST_H
#define SWC_PLAN_SELECT_LEAST_H

#include "plan/select/choose.h"

/* Measure the plans of some ranks; false if there are none. @args->rank changes. */
bool swc_least_measure(const struct swc_choices *c, struct swc_plan_args *args,
		       struct swc_candidate *cand);

#endif /* SWC_PLAN_SELECT_LEAST_H */
