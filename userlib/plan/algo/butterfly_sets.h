/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SWC_PLAN_PRODUCT_H
#define SWC_PLAN_PRODUCT_H

#include "algo/builder.h"

/* Any torus, by tables of O(members). Swing as it is, recursive doubling with folds. */
int swc_product_build(struct swc_builder *b, bool swing, uint32_t ports);

#endif /* SWC_PLAN_PRODUCT_H */
