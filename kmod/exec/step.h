/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Steps, by kind. Each function carries out, or continues, the current step of a task; the worker that
 * calls it owns the task.
 *
 * A step's data is handed over under op->lock: what a sender wrote before it announced the send (lock
 * released) is read after the receiver claimed it (lock taken).
 */
#ifndef SWC_STEP_H
#define SWC_STEP_H

#include "exec/operation.h"

/* step_local.c */
enum swc_step_status swc_step_local(struct swc_task *task, const struct swc_plan_step *s);
bool swc_step_is_offloadable(struct swc_task *task);
void swc_step_prepare_local(struct swc_task *task, u32 step);

enum swc_step_status swc_step_set_up_copy(struct swc_task *task, const struct swc_plan_xfer *x, u32 nsrc,
					  u32 ndst);

/* step_copy.c */
enum swc_step_status swc_step_copy(struct swc_task *task, const struct swc_plan_step *s);

/* step_sync.c */
enum swc_step_status swc_step_sync(struct swc_task *task);

/* step_net.c */
enum swc_step_status swc_step_net(struct swc_task *task, const struct swc_plan_step *s);

/* step_remote.c */
u32 swc_remote_conn(const struct swc_task *task, const struct swc_plan_xfer *x);
bool swc_remote_fence_passed(const struct swc_task *task);
enum swc_step_status swc_remote_fence(struct swc_task *task);
enum swc_step_status swc_remote_send(struct swc_task *task, const struct swc_plan_step *s);
void swc_remote_offer(struct swc_task *task);
enum swc_step_status swc_remote_recv(struct swc_task *task, const struct swc_plan_xfer *x);
void swc_remote_wait(struct swc_req *req);
struct swc_net_poll *swc_remote_poll(struct swc_req *req);

#endif /* SWC_STEP_H */
