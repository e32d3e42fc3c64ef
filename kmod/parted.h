/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_PARTED_H
#define SWC_PARTED_H

#include "swingcoll.h"

struct swc_part_init;
struct vm_area_struct;

int swc_parted_create(struct swc_ctx *ctx, struct swc_part_init *init);
struct swc_parted *swc_parted_get(struct swc_ctx *ctx, u32 handle);
void swc_parted_put(struct swc_parted *parted);
int swc_parted_start(struct swc_parted *parted);
int swc_parted_kick(struct swc_parted *parted);
int swc_parted_wait(struct swc_parted *parted, u32 partition, u32 timeout_ms);
int swc_parted_free(struct swc_ctx *ctx, u32 handle);
int swc_parted_mmap(struct swc_parted *parted, struct vm_area_struct *vma);
void swc_parteds_drop(struct swc_ctx *ctx);

#endif /* SWC_PARTED_H */
