// SPDX-License-Identifier: GPL-2.0-only
/*
 * Offload: the copies of tasks are carried out by the CPU that runs the task, by DMA engines, or by both.
 *
 * Copies after which their tasks have only barriers left are batched: when no task is ready any more, engines
 * get them together, so that one job is set up, and interrupts, once for all of them.
 */
#include "comm/comm.h"
#include "dma.h"
#include "exec/offload.h"
#include "exec/runq.h"
#include "plan/plan.h"

/* Where the CPU and an engine share a copy, they meet at a multiple of this. */
#define SHARE_UNIT	4096u

/* Should engines carry out all of a copy that has not begun, or of so many copies like it? */
bool swc_offload_wanted(const struct swc_reduce_copy *m, u32 copies, u32 workers)
{
	return swc_dma_wants(m, copies, workers) && swc_dma_share(m->bytes) == m->bytes;
}

/*
 * An engine gets the end of a copy, from @at on; the CPU does the rest meanwhile. The engine may be done, and
 * another worker may run the task, before this returns.
 */
static void launch(struct swc_task *task, struct swc_dma_job *job, u64 at)
{
	struct swc_op *op = task->req->op;
	struct swc_reduce_copy *m = &task->copy;

	spin_lock(&op->lock);
	op->nposted++;
	if (at == m->done) {
		swc_task_set_state(task, SWC_TASK_WAIT_DMA);
	} else {
		task->whole = m->bytes;
		task->engine_over = false;
		m->bytes = at;
	}
	spin_unlock(&op->lock);
	swc_dma_launch(job);
}

/* Engines were expected to do it all, so only one worker was woken; now the CPU has work after all. */
static void wake_others(struct swc_op *op)
{
	if (!READ_ONCE(op->single_worker))
		return;
	spin_lock(&op->lock);
	if (op->single_worker)
		swc_runq_wake_workers(op);
	op->single_worker = false;
	spin_unlock(&op->lock);
}

static void add_to_batch(struct swc_task *task)
{
	struct swc_op *op = task->req->op;

	spin_lock(&op->lock);
	swc_task_set_state(task, SWC_TASK_WAIT_DMA);
	list_add_tail(&task->node, &op->offload_batch);
	spin_unlock(&op->lock);
}

/* Give the copy, or its end, to an engine if that pays. True if nothing is left for the CPU. */
static bool offload(struct swc_task *task)
{
	bool whole, local = task->req->plan->view.steps[task->step].kind == SWC_STEP_LOCAL;
	bool last = local && swc_task_is_last_step(task);
	struct swc_op *op = task->req->op;
	struct swc_reduce_copy *m = &task->copy, end = *m;
	struct swc_dma_item item = { .owner = task, .copy = &end };
	struct swc_dma_job *job;

	if (task->cpu_only || task->whole || m->done == m->bytes)
		return false;
	/* What is prepared is a local step; a network step before it may copy first. */
	if (local && task->prepared) {
		job = task->prepared;
		task->prepared = NULL;
		launch(task, job, m->done);
		return true;
	}
	swc_dma_demand(m);
	/* A batch is one job that would otherwise occupy all workers. */
	if (!(last ? swc_dma_wants(m, op->ntasks, op->max_workers) : swc_dma_wants(m, 1, 1))) {
		wake_others(op);
		return false;
	}
	end.done = max(round_up(m->bytes - swc_dma_share(m->bytes - m->done), SHARE_UNIT), m->done);
	whole = end.done == m->done;
	if (whole && last) {
		add_to_batch(task);
		return true;
	}
	if (end.done >= m->bytes)
		return false;
	job = swc_dma_prepare(swc_comm_wq(op->comm), &item, 1, 1);
	task->cpu_only = !job;
	if (job)
		launch(task, job, end.done);
	return job && whole;
}

/* The CPU has done its share of a copy: wait for the engine's, and add up. */
static enum swc_step_status join_engine(struct swc_task *task)
{
	struct swc_op *op = task->req->op;
	enum swc_step_status status = SWC_STATUS_OK;

	spin_lock(&op->lock);
	if (task->engine_over) {
		task->copy.bytes = task->whole;
		task->copy.done += task->engine_bytes;
		task->cpu_only = !task->engine_bytes;
		task->whole = 0;
	} else {
		swc_task_set_state(task, SWC_TASK_WAIT_DMA);
		status = SWC_STATUS_WAIT;
	}
	spin_unlock(&op->lock);
	return status;
}

/**
 * swc_offload_copy() - carry out, or continue, the copy that the task has set up
 *
 * Return: SWC_STATUS_OK when all is in place; SWC_STATUS_WAIT if an engine is at work; SWC_STATUS_YIELD or
 * SWC_STATUS_ERROR.
 */
enum swc_step_status swc_offload_copy(struct swc_task *task)
{
	struct swc_reduce_copy *m = &task->copy;
	int ret;

	do {
		if (offload(task))
			return SWC_STATUS_WAIT;
		ret = swc_reduce_copy(m, &task->req->op->status);
		if (ret)
			return ret == -EINTR ? SWC_STATUS_YIELD : SWC_STATUS_ERROR;
		if (task->whole && join_engine(task) == SWC_STATUS_WAIT)
			return SWC_STATUS_WAIT;
	} while (m->done < m->bytes);
	task->copying = false;
	task->cpu_only = false;
	return SWC_STATUS_OK;
}

/* ------------------------------------------------------------------ batches */

/* Take copies of one kind, on one NUMA node, for one job. They count in op->nposted from here on. */
static u32 take_batch(struct swc_op *op, struct swc_dma_item *item)
{
	struct swc_task *task, *next;
	int node = NUMA_NO_NODE;
	u32 n = 0;

	lockdep_assert_held(&op->lock);
	list_for_each_entry_safe(task, next, &op->offload_batch, node) {
		if (!n)
			node = swc_dma_node(&task->copy);
		else if (task->copy.nsrc != item->copy->nsrc || swc_dma_node(&task->copy) != node)
			continue;
		list_del_init(&task->node);
		item[n++] = (struct swc_dma_item){ .owner = task, .copy = &task->copy };
		if (n == SWC_DMA_MAX_ITEMS)
			break;
	}
	op->nposted += n;
	return n;
}

/**
 * swc_offload_flush_batch() - give engines a batch of copies; what they refuse becomes ready, for the CPU
 *
 * For swc_offload_flush() only. Return: false if another worker has taken the batch.
 */
bool swc_offload_flush_batch(struct swc_op *op)
{
	struct swc_dma_item item[SWC_DMA_MAX_ITEMS];
	struct swc_task *task;
	struct swc_dma_job *job;
	u32 i, n;

	spin_lock(&op->lock);
	n = op->status ? 0 : take_batch(op, item);
	spin_unlock(&op->lock);
	if (!n)
		return false;
	job = swc_dma_prepare(swc_comm_wq(op->comm), item, n, min(n, op->max_workers));
	spin_lock(&op->lock);
	for (i = 0; i < n; i++) {
		if (job && item[i].bytes)
			continue;
		op->nposted--;
		task = item[i].owner;
		task->cpu_only = true;
		swc_runq_add(op, task);
	}
	spin_unlock(&op->lock);
	if (job)
		swc_dma_launch(job);
	return true;
}
