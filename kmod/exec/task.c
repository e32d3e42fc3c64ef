// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks: allocation with the request, and the one function that changes their state.
 */
#include <linux/bitmap.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "exec/operation.h"
#include "exec/request.h"
#include "exec/task.h"
#include "mem/account.h"
#include "mem/context.h"
#include "mem/region.h"
#include "plan/plan.h"

#define WAITS	(BIT(SWC_TASK_WAIT_RECV) | BIT(SWC_TASK_WAIT_SENDS) | BIT(SWC_TASK_WAIT_FENCE) | \
		 BIT(SWC_TASK_WAIT_SYNC) | BIT(SWC_TASK_WAIT_DMA))

/* The states that may follow each state. */
static const u16 next_states[] = {
	[SWC_TASK_NEW] = BIT(SWC_TASK_READY),
	[SWC_TASK_READY] = BIT(SWC_TASK_ACTIVE),
	/* READY: the worker gives way and leaves the task to another one. */
	[SWC_TASK_ACTIVE] = WAITS | BIT(SWC_TASK_READY) | BIT(SWC_TASK_DONE),
	[SWC_TASK_WAIT_RECV] = BIT(SWC_TASK_READY),
	[SWC_TASK_WAIT_SENDS] = BIT(SWC_TASK_READY),
	[SWC_TASK_WAIT_FENCE] = BIT(SWC_TASK_READY),
	/* DONE: the barrier was the last step. */
	[SWC_TASK_WAIT_SYNC] = BIT(SWC_TASK_READY) | BIT(SWC_TASK_DONE),
	[SWC_TASK_WAIT_DMA] = BIT(SWC_TASK_READY),
	[SWC_TASK_DONE] = 0,
};

/**
 * swc_task_set_state() - the one place where the state of a task changes; op->lock is held
 *
 * A task that becomes DONE counts down op->tasks_left. Membership of op->runq goes with READY, see runq.c.
 */
void swc_task_set_state(struct swc_task *task, enum swc_task_state state)
{
	struct swc_op *op = task->req->op;

	lockdep_assert_held(&op->lock);
	WARN_ON_ONCE(!(next_states[task->state] & BIT(state)));
	task->state = state;
	if (state == SWC_TASK_DONE)
		op->tasks_left--;
}

/**
 * swc_task_is_last_step() - do only barriers follow the task's step?
 *
 * Then no rank waits for the step's data before the end of the operation.
 */
bool swc_task_is_last_step(const struct swc_task *task)
{
	const struct swc_plan_step *steps = task->req->plan->view.steps;
	u32 step = task->step + 1;

	while (step < task->end && steps[step].kind == SWC_STEP_SYNC)
		step++;
	return step == task->end;
}

/* Take @n elements of @size bytes from the allocation at @mem. */
static void *carve(void **mem, size_t n, size_t size)
{
	void *p = *mem;

	*mem += n * size;
	return p;
}

/* Zeroed memory for the tasks, charged: what the request has kept, or more. -ENOMEM, -EDQUOT, -EINTR. */
static int make_room(struct swc_req *req, size_t bytes)
{
	void *mem;
	int ret;

	if (bytes > req->room) {
		ret = swc_region_charge_memory(req->ctx, req->account, bytes - req->room);
		if (ret)
			return ret;
		/* Page by page if it is large: reschedules, and fails if the caller is being killed. */
		mem = kvzalloc(bytes, GFP_KERNEL_ACCOUNT);
		if (!mem) {
			swc_account_uncharge(req->account, SWC_QUOTA_MEMORY, bytes - req->room);
			return -ENOMEM;
		}
		kvfree(req->tasks);
		req->tasks = mem;
		req->room = bytes;
	} else {
		memset(req->tasks, 0, bytes);
	}
	return 0;
}

/* Records that the task of a channel needs for messages to other nodes, and for its offers to them. */
static u32 nsends_of(const struct swc_plan_net *pnet, u32 channel)
{
	return pnet ? pnet->send_window * pnet->max_sends[channel] : 0;
}

static u32 nrndvs_of(const struct swc_plan_net *pnet, u32 channel)
{
	return pnet ? pnet->rndv_window * pnet->max_recvs[channel] : 0;
}

/**
 * swc_tasks_create() - make the tasks of a request, one for each channel of its plan
 *
 * One allocation holds the tasks and all tables that their copies and messages need; the request keeps it.
 * Each channel has records for its own messages only: where a step sends many, the sum is in proportion to
 * the plan, not to 64 channels with as many.
 *
 * Return: 0; -ENOMEM; -EDQUOT; -EINTR if the caller is being killed.
 */
int swc_tasks_create(struct swc_req *req)
{
	const struct swc_plan_view *v = &req->plan->view;
	const struct swc_plan_net *pnet = req->plan->net;
	u32 i, n = v->hdr->nchannels, fan = v->max_fan, longs = BITS_TO_LONGS(v->max_sends);
	size_t each = sizeof(struct swc_task), bytes;
	void *mem;
	int ret;

	/* The verifier bounds each of these; a sum that overflows makes the allocation fail. */
	each = size_add(each, array_size(longs, sizeof(long)));
	each = size_add(each, array_size(fan, sizeof(struct swc_span) + sizeof(struct swc_cursor) +
					 sizeof(void *)));
	bytes = array_size(n, each);
	for (i = 0; i < n; i++) {
		bytes = size_add(bytes, array_size(nsends_of(pnet, i), sizeof(struct swc_send)));
		bytes = size_add(bytes, array_size(nrndvs_of(pnet, i), sizeof(struct swc_rndv)));
	}
	ret = make_room(req, bytes);
	if (ret)
		return ret;
	req->ntasks = n;
	mem = req->tasks + n;
	for (i = 0; i < n; i++) {
		struct swc_task *task = &req->tasks[i];

		task->req = req;
		task->channel = i;
		task->step = v->channels[i].first_step;
		task->end = task->step + v->channels[i].nsteps;
		task->copy.dtype = req->desc.dtype;
		task->copy.redop = req->desc.redop;
		task->window.size = pnet ? pnet->send_window : 1;
		INIT_LIST_HEAD(&task->node);
		INIT_LIST_HEAD(&task->inbox);
		task->copy.span = carve(&mem, fan, sizeof(struct swc_span));
		task->copy.cursor = carve(&mem, fan, sizeof(struct swc_cursor));
		task->copy.ptr = carve(&mem, fan, sizeof(void *));
		task->taken = carve(&mem, longs, sizeof(long));
		task->sends = carve(&mem, nsends_of(pnet, i), sizeof(struct swc_send));
		task->rndv = carve(&mem, nrndvs_of(pnet, i), sizeof(struct swc_rndv));
	}
	return 0;
}

/* Between parts of a step, each of some microseconds of work: must the worker stop, or give way? */
enum swc_step_status swc_task_look_up(const struct swc_task *task)
{
	cond_resched();
	if (READ_ONCE(task->req->op->status))
		return SWC_STATUS_ERROR;
	if (fatal_signal_pending(current) || swc_slice_over(task->copy.slice_end))
		return SWC_STATUS_YIELD;
	return SWC_STATUS_OK;
}
