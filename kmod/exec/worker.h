/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_WORKER_H
#define SWC_WORKER_H

#include "exec/operation.h"

/* What a caller of swc_worker_returned() has to do when it has dropped op->lock. */
enum swc_worker_action {
	SWC_ACTION_NONE,
	SWC_ACTION_RUN,		/* it is a worker now */
	SWC_ACTION_FINISH,	/* the operation is over */
};

void swc_worker_start(struct swc_op *op, struct swc_req *self, bool inline_ok);
bool swc_worker_enter(struct swc_op *op);
void swc_worker_run(struct swc_op *op, enum swc_stat where);
void swc_worker_leave(struct swc_op *op);
void swc_worker_busy_poll(struct swc_req *req, int done, const unsigned long *flags);
void swc_worker_woken(struct swc_req *req);
void swc_worker_fn(struct work_struct *work);
enum swc_worker_action swc_worker_returned(struct swc_op *op, struct swc_task *task, int error, bool nested);
void swc_worker_do(struct swc_op *op, enum swc_worker_action action);

#endif /* SWC_WORKER_H */
