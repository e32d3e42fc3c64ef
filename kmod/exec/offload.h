/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_OFFLOAD_H
#define SWC_OFFLOAD_H

#include "exec/operation.h"

enum swc_step_status swc_offload_copy(struct swc_task *task);
bool swc_offload_wanted(const struct swc_reduce_copy *m, u32 copies, u32 workers);
bool swc_offload_flush(struct swc_op *op);

#endif /* SWC_OFFLOAD_H */
