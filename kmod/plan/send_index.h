/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_SEND_INDEX_H
#define SWC_SEND_INDEX_H

#include "core/plan_check.h"

#define SWC_NO_SEND	U32_MAX

u64 swc_send_index_bytes(const struct swc_plan_view *view);
u32 *swc_send_index_create(const struct swc_plan_view *view);
u32 swc_send_index_claim(const u32 *index, const struct swc_plan_step *s, u32 rank, unsigned long *taken);

#endif /* SWC_SEND_INDEX_H */
