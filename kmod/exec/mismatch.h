/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_MISMATCH_H
#define SWC_MISMATCH_H

#include <linux/types.h>

struct swc_op;
struct swc_req;
struct swc_wire_msg;

void swc_mismatch_report(struct swc_op *op, struct swc_req *req);
void swc_mismatch_abort(struct swc_op *op, u32 rank, const struct swc_wire_msg *msg);
void swc_mismatch_report_refusal(struct swc_op *op, const struct swc_req *req);

#endif /* SWC_MISMATCH_H */
