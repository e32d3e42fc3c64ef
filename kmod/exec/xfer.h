/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_XFER_H
#define SWC_XFER_H

#include "exec/operation.h"

bool swc_xfer_span(const struct swc_req *req, const struct swc_plan_xfer *x, u8 buf, struct swc_span *span);
u64 swc_xfer_bytes(const struct swc_req *req, const struct swc_plan_xfer *x);
u32 swc_xfer_divisor(const struct swc_task *task, const struct swc_plan_xfer *x);
enum swc_step_status swc_xfer_mismatch(struct swc_task *task, u32 peer, const char *what);

#endif /* SWC_XFER_H */
