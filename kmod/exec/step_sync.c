// SPDX-License-Identifier: GPL-2.0-only
/*
 * Barrier steps (SYNC) among the ranks of a node.
 */
#include "comm/comm.h"
#include "exec/runq.h"
#include "exec/step.h"

enum swc_step_status swc_step_sync(struct swc_task *task)
{
	struct swc_op *op = task->req->op;
	u32 i, *arrived = &op->sync_arrived[task->channel];
	bool last;

	if (READ_ONCE(*arrived) + 1 < op->comm->nlocal)
		swc_step_prepare_local(task, task->step + 1);
	spin_lock(&op->lock);
	last = ++*arrived == op->comm->nlocal;
	if (!last)
		swc_task_set_state(task, SWC_TASK_WAIT_SYNC);
	else
		*arrived = 0;
	/* The last task to arrive releases the others. */
	for (i = 0; last && i < op->comm->nlocal; i++) {
		struct swc_task *peer = swc_op_task(op, op->comm->local[i], task->channel);

		if (!peer || peer->state != SWC_TASK_WAIT_SYNC)
			continue;
		/* Most plans end with a barrier: no worker is woken for that. */
		if (++peer->step < peer->end)
			swc_runq_add(op, peer);
		else
			swc_task_set_state(peer, SWC_TASK_DONE);
	}
	spin_unlock(&op->lock);
	return last ? SWC_STATUS_OK : SWC_STATUS_WAIT;
}
