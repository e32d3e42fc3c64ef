/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_OP_H
#define SWC_OP_H

#include "exec/task.h"

enum swc_arrival {
	SWC_ARRIVED, SWC_ARRIVED_LAST, SWC_ARRIVED_LATE, SWC_ARRIVED_DIFFERENT, SWC_ARRIVED_REFUSED,
};

struct swc_op *swc_op_alloc(struct swc_comm *comm);
enum swc_arrival swc_op_arrive(struct swc_op *op, struct swc_part *part);
struct swc_op *swc_op_find(struct swc_comm *comm, u64 seq);
void swc_op_enter(struct swc_op *op, u64 seq);
void swc_op_settle(struct swc_op *op);
void swc_op_note_mismatch(struct swc_op *op, struct swc_part *part);
void swc_op_note_remote_mismatch(struct swc_op *op, u32 rank, const struct swc_wire_msg *msg);
void swc_op_note_refusal(struct swc_op *op, const struct swc_part *part);
bool swc_op_over(struct swc_op *op);
bool swc_op_fail(struct swc_op *op, int error, int culprit);
void swc_op_finish(struct swc_op *op);
int swc_op_waits_for(struct swc_op *op);
int swc_op_missing(struct swc_op *op, char *text, size_t bytes);

#endif /* SWC_OP_H */
