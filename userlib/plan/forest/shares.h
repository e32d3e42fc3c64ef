/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From shares of links that are real numbers to whole numbers of trees. */
#ifndef SWC_PLAN_FOREST_SHARES_H
#define SWC_PLAN_FOREST_SHARES_H

#include "plan/forest/roots.h"

/* A link's part for broadcasts: constant + factor * variable. */
struct swc_share {
	uint32_t variable;
	double constant, factor;
};

/*
 * Fill in the trees of @r, whose rate and x are known. @f: by link of @g, the capacity for broadcasts.
 * If all are fractions with a small denominator, the trees have exactly these shares, else nearly.
 * 0 or -ENOMEM.
 */
int swc_shares_round(struct swc_roots *r, const struct swc_graph *g, const double *f);

#endif /* SWC_PLAN_FOREST_SHARES_H */
