/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_RUNQ_H
#define SWC_RUNQ_H

#include "exec/operation.h"

bool swc_runq_queue_work(struct swc_req *req);
void swc_runq_wake_worker(struct swc_op *op);
void swc_runq_wake_workers(struct swc_op *op);
void swc_runq_add(struct swc_op *op, struct swc_task *task);
void swc_runq_add_all(struct swc_op *op);
void swc_runq_add_offloaded(struct swc_op *op, struct swc_task *task);
void swc_runq_put_back(struct swc_op *op, struct swc_task *task);
void swc_runq_hand_over(struct swc_op *op);
bool swc_runq_resume(struct swc_op *op, struct swc_task *task);
void swc_runq_defer(struct swc_op *op, struct swc_task *task);
struct swc_task *swc_runq_take(struct swc_op *op);

#endif /* SWC_RUNQ_H */
