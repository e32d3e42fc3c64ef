/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory for plans that are being written with kmod/core/plan_write.h: tables that grow, and the
 * packed plan. What builds plans from algorithms and what reads them from files both use it.
 */
#ifndef SWC_PLAN_PLAN_TABLES_H
#define SWC_PLAN_PLAN_TABLES_H

#include "kmod/core/plan_write.h"

/*
 * Make room in each table for one more channel, step and transfer, as the next call of
 * swc_plan_write_*() may need it. false: no memory.
 */
bool swc_plan_tables_reserve(struct swc_plan_writer *w);

/*
 * Pack the plan into memory of its own: *plan is the caller's, to be freed with free(). 0, -ENOMEM,
 * or -EFBIG if it is larger than SWC_MAX_PLAN_BYTES.
 */
int swc_plan_tables_pack(struct swc_plan_writer *w, void **plan, size_t *bytes);

/* Free the tables. */
void swc_plan_tables_free(struct swc_plan_writer *w);

#endif /* SWC_PLAN_PLAN_TABLES_H */
