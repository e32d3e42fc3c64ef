/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_PART_H
#define SWC_PART_H

#include "exec/task.h"

struct swc_part *swc_part_create(struct swc_ctx *ctx, struct swc_member *member,
				 const struct swc_desc *desc, struct swc_plan *plan);
void swc_part_drop(struct swc_part *part);
void swc_part_cancel(struct swc_part *part);
void swc_part_finish(struct swc_part *part, int result, int culprit);
void swc_part_put(struct swc_part *part);
u64 swc_part_cqe_word(const struct swc_part *part);

#endif /* SWC_PART_H */
