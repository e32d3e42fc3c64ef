/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SWC_PLAN_ALGO_BUTTERFLY_SETS_H
#define SWC_PLAN_ALGO_BUTTERFLY_SETS_H

#include "plan/algo/builder.h"

/*
 * Swing or recursive doubling on any torus, for all collectives of butterflies; needs tables of
 * O(members).
 */
int swc_butterfly_sets_build(struct swc_builder *b, bool swing, uint32_t ports);

#endif /* SWC_PLAN_ALGO_BUTTERFLY_SETS_H */
