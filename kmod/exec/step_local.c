// SPDX-License-Identifier: GPL-2.0-only
/*
 * Steps among the ranks of a node: copies and reductions between their buffers in one pass.
 */
#include "comm/comm.h"
#include "dma.h"
#include "exec/offload.h"
#include "exec/runq.h"
#include "exec/step.h"
#include "exec/xfer.h"
#include "mem/region.h"
#include "plan/plan.h"

/* ------------------------------------------------------------------ copies */

static const void *address_of(const struct swc_span *span)
{
	const struct swc_extent *e = swc_extents_find(span->extents, span->offset);

	return e->kaddr + (span->offset - e->offset);
}

/* Address at which a rank has the memory of a transfer. */
static u64 user_address(const struct swc_req *owner, const struct swc_plan_xfer *x,
			const struct swc_span *span)
{
	return owner->buf[x->buf].region->addr + span->offset;
}

/* Is the @i-th destination the source? What holds for the first byte holds for all, see request.c. */
static bool is_in_place(const struct swc_task *task, const struct swc_plan_xfer *x, u32 i)
{
	const struct swc_req *owner = swc_op_req(task->req->op, x[0].rank);
	const struct swc_span *span = task->copy.span;

	return x[i].rank == x[0].rank &&
	       user_address(owner, &x[i], &span[i]) == user_address(owner, &x[0], &span[0]) &&
	       address_of(&span[i]) == address_of(&span[0]);
}

/* Drop the destinations of a copy that are its source, as in-place operations have them. */
static void drop_in_place(struct swc_task *task, const struct swc_plan_xfer *x)
{
	struct swc_reduce_copy *m = &task->copy;
	u32 i, ndst = 0;

	for (i = 1; i <= m->ndst; i++)
		if (!is_in_place(task, x, i))
			m->span[1 + ndst++] = m->span[i];
	m->ndst = ndst;
	if (!ndst)
		m->bytes = 0;
}

/* The transfers of a step: its sources, then its destinations. */
static const struct swc_plan_xfer *xfers_of(const struct swc_task *task, const struct swc_plan_step *s)
{
	return &task->req->plan->view.xfers[s->first_xfer];
}

/* The extent of a copy from @nsrc sources to @ndst destinations; set_spans() adds the memory. */
static void set_shape(struct swc_task *task, const struct swc_plan_xfer *x, u32 nsrc, u32 ndst)
{
	struct swc_reduce_copy *m = &task->copy;

	m->nsrc = nsrc;
	m->ndst = ndst;
	m->bytes = swc_xfer_bytes(task->req, x);
	m->done = 0;
	m->div = swc_xfer_divisor(task, &x[nsrc]);
}

/* The memory of the copy. Return: NULL, or what is wrong, with @rank. */
static const char *set_spans(struct swc_task *task, const struct swc_plan_xfer *x, u32 *rank)
{
	struct swc_req *req = task->req;
	struct swc_reduce_copy *m = &task->copy;
	u32 i, n = m->nsrc + m->ndst;

	for (i = 0; i < n; i++) {
		const struct swc_req *owner = swc_op_req(req->op, x[i].rank);
		bool inside;
		u64 bytes;

		*rank = x[i].rank;
		/* As the owner sees it, because that bounds its buffer. */
		inside = swc_xfer_find(owner, &x[i], x[i].buf, &m->span[i], &bytes);
		if (bytes != m->bytes)
			return "ranges of a local step differ in size";
		if (bytes && !inside)
			return "blocks outside the buffer of the owner";
	}
	if (m->nsrc == 1 && !m->div && m->bytes)
		drop_in_place(task, x);
	return NULL;
}

/**
 * swc_step_set_up_copy() - set up task->copy, for swc_offload_copy()
 * @x: @nsrc sources, then @ndst destinations
 *
 * Return: SWC_STATUS_OK, or SWC_STATUS_ERROR if the plans do not fit together.
 */
enum swc_step_status swc_step_set_up_copy(struct swc_task *task, const struct swc_plan_xfer *x, u32 nsrc,
					  u32 ndst)
{
	const char *wrong;
	u32 rank;

	set_shape(task, x, nsrc, ndst);
	wrong = set_spans(task, x, &rank);
	if (wrong)
		return swc_xfer_mismatch(task, rank, wrong);
	task->copying = true;
	return SWC_STATUS_OK;
}

enum swc_step_status swc_step_local(struct swc_task *task, const struct swc_plan_step *s)
{
	enum swc_step_status status = SWC_STATUS_OK;

	if (!task->copying)
		status = swc_step_set_up_copy(task, xfers_of(task, s), s->nsend, s->nrecv);
	if (status == SWC_STATUS_OK)
		status = swc_offload_copy(task);
	if (status == SWC_STATUS_OK)
		swc_stat_inc(SWC_STAT_STEPS_LOCAL);
	return status;
}

/* ------------------------------------------------------------------ engines */

/**
 * swc_step_prepare_local() - prepare a later local step for an engine, because the task is likely to wait now
 * @step: the step, or a barrier before it
 *
 * A copy that the CPU would share is not prepared: the shares are decided when it begins.
 */
void swc_step_prepare_local(struct swc_task *task, u32 step)
{
	const struct swc_plan_step *steps = task->req->plan->view.steps;
	struct swc_reduce_copy *m = &task->copy;
	struct swc_dma_item item = { .owner = task, .copy = m };
	const struct swc_plan_xfer *x;
	u32 rank;

	if (step < task->end && steps[step].kind == SWC_STEP_SYNC)
		step++;
	if (task->prepared || step >= task->end || steps[step].kind != SWC_STEP_LOCAL)
		return;
	/* Check the shape first: most machines have no engines. */
	x = xfers_of(task, &steps[step]);
	set_shape(task, x, steps[step].nsend, steps[step].nrecv);
	if (!swc_offload_wanted(m, 1, 1) || set_spans(task, x, &rank) || !m->bytes)
		return;
	task->prepared = swc_dma_prepare(swc_comm_wq(task->req->op->comm), &item, 1, 1);
	if (task->prepared)
		swc_stat_inc(SWC_STAT_DMA_PREPARED);
}

/**
 * swc_step_is_offloadable() - would this task, which has not begun, only give its data to engines?
 *
 * Uses task->copy as scratch memory.
 */
bool swc_step_is_offloadable(struct swc_task *task)
{
	const struct swc_plan_step *s = &task->req->plan->view.steps[task->step];
	u32 ntasks = task->req->op->ntasks, workers = task->req->op->max_workers, rank;

	if (task->step == task->end || s->kind != SWC_STEP_LOCAL || !swc_task_is_last_step(task))
		return false;
	set_shape(task, xfers_of(task, s), s->nsend, s->nrecv);
	/* A copy onto itself, which nobody carries out, is known by its spans only. */
	return swc_offload_wanted(&task->copy, ntasks, workers) &&
	       !set_spans(task, xfers_of(task, s), &rank) &&
	       swc_offload_wanted(&task->copy, ntasks, workers);
}
