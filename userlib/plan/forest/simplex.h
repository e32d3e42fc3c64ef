/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A solver for small linear programs that grow: see struct swc_lp. */
#ifndef SWC_PLAN_FOREST_SIMPLEX_H
#define SWC_PLAN_FOREST_SIMPLEX_H

#include "plan/forest/roots.h"

/* Begin with an empty one. NULL: no memory. */
struct swc_lp *swc_simplex_new(void);
void swc_simplex_free(struct swc_lp *lp);

#endif /* SWC_PLAN_FOREST_SIMPLEX_H */
