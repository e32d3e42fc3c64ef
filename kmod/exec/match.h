/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_SUBMIT_H
#define SWC_SUBMIT_H

#include "exec/task.h"

int swc_submit(struct swc_part *part, bool inline_ok);
int swc_submit_reserve(struct swc_member *member, u32 n, u64 *base);
int swc_submit_reserved(struct swc_part *part, u64 seq);
void swc_submit_forgo(struct swc_member *member, u32 n);

#endif /* SWC_SUBMIT_H */
