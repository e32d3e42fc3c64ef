// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events from DMA engines: copies that have ended. The tasks that waited for them continue in the context
 * of the event.
 */
#include "exec/dma_event.h"
#include "exec/runq.h"
#include "exec/worker.h"

/*
 * Record what an engine has copied. Return: does the task wait for that? Else the CPU is still at its
 * share.
 */
static bool record(struct swc_task *task, u64 bytes)
{
	lockdep_assert_held(&task->req->op->lock);
	if (task->whole) {
		task->engine_over = true;
		task->engine_bytes = bytes;
	} else {
		task->copy.done += bytes;
		task->cpu_only = !bytes;
	}
	return task->state == SWC_TASK_WAIT_DMA;
}

/**
 * swc_dma_event_done() - engines have ended copies of an operation
 * @items: with the bytes that are in place; 0: the engines have failed
 * @n: how many, at least one
 *
 * Process context, no locks held.
 */
void swc_dma_event_done(const struct swc_dma_item *items, u32 n)
{
	struct swc_task *first = items->owner;
	struct swc_op *op = first->req->op;
	enum swc_worker_action action;
	u32 i;

	spin_lock(&op->lock);
	for (i = 1; i < n; i++) {
		struct swc_task *task = items[i].owner;

		op->nposted--;
		if (record(task, items[i].bytes) && !op->status)
			swc_runq_add_offloaded(op, task);
	}
	/* The caller becomes the worker of the first. */
	action = swc_worker_returned(op, record(first, items->bytes) ? first : NULL, 0, false);
	spin_unlock(&op->lock);
	swc_worker_do(op, action);
}
