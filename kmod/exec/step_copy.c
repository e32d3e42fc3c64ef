// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copy steps: many copies between the rank's own buffers, one after the other.
 *
 * A step of its own for each copy would cost more than a short copy does. So short ones are done at once, and
 * only their places are looked up. Long ones, and those that divide, are set up as those of local steps are,
 * so that engines can do them.
 */
#include "core/plan_check.h"
#include "exec/offload.h"
#include "exec/step.h"
#include "exec/xfer.h"
#include "plan/plan.h"

/* Bytes of a short copy: engines do not pay for so few. */
#define SHORT_BYTES	(16u << 10)
/* What is done between two looks at the clock, each of them some microseconds of work. */
#define YIELD_BYTES	(128u << 10)
#define YIELD_COPIES	256u

/* A piece of a span, cut at the end of its extent. @extent: of the buffer's last piece, mostly the same. */
static void *piece_of(const struct swc_span *span, u64 done, const struct swc_extent **extent, u64 *len)
{
	const struct swc_extent *e = *extent;
	u64 offset = span->offset + done;

	if (!e || offset < e->offset || offset >= e[1].offset) {
		e = swc_extents_find(span->extents, offset);
		*extent = e;
	}
	*len = min(*len, e[1].offset - offset);
	return e->kaddr + (offset - e->offset);
}

/* Do a copy at once. Return: false if it must be set up, or be refused there. */
static bool copy_at_once(const struct swc_req *req, const struct swc_plan_xfer *src,
			 const struct swc_plan_xfer *dst, const struct swc_extent **extent, u64 *bytes)
{
	struct swc_span from, to;
	u64 done, len, size;

	if (!swc_xfer_find(req, src, src->buf, &from, bytes) ||
	    !swc_xfer_find(req, dst, dst->buf, &to, &size) || size != *bytes || size > SHORT_BYTES)
		return false;
	for (done = 0; done < size; done += len) {
		void *s, *d;

		len = size - done;
		s = piece_of(&from, done, &extent[src->buf], &len);
		d = piece_of(&to, done, &extent[dst->buf], &len);
		/* The same in place. */
		if (s != d)
			memcpy(d, s, len);
	}
	return true;
}

/* Do some short copies, up to one that must be set up. Return: how many. */
static u32 copy_some(struct swc_task *task, const struct swc_plan_xfer *x, u32 ncopies)
{
	const struct swc_extent *extent[SWC_BUF_NR] = { NULL };
	u32 i = task->copies, end = min(ncopies, i + YIELD_COPIES);
	u64 sum = 0, bytes;

	for (; i < end && sum < YIELD_BYTES; i++) {
		const struct swc_plan_xfer *dst = &x[ncopies + i];

		if (swc_xfer_divisor(task, dst) || !copy_at_once(task->req, &x[i], dst, extent, &bytes))
			break;
		sum += bytes;
	}
	swc_stat_add(SWC_STAT_BYTES_COPIED, sum);
	return i - task->copies;
}

/* Set up the next copy, and carry it out; or continue it. */
static enum swc_step_status copy_one(struct swc_task *task, const struct swc_plan_xfer *x, u32 ncopies)
{
	const struct swc_plan_xfer pair[2] = { x[task->copies], x[ncopies + task->copies] };
	enum swc_step_status status = SWC_STATUS_OK;

	if (!task->copying)
		status = swc_step_set_up_copy(task, pair, 1, 1);
	if (status == SWC_STATUS_OK)
		status = swc_offload_copy(task);
	/* If it waits, another worker may run the task already. */
	if (status == SWC_STATUS_OK)
		task->copies++;
	return status;
}

enum swc_step_status swc_step_copy(struct swc_task *task, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *x = &task->req->plan->view.xfers[s->first_xfer];
	u32 n;

	while (task->copies < s->nsend) {
		enum swc_step_status status = SWC_STATUS_OK;

		n = task->copying ? 0 : copy_some(task, x, s->nsend);
		task->copies += n;
		if (!n)
			status = copy_one(task, x, s->nsend);
		if (status == SWC_STATUS_OK && task->copies < s->nsend)
			status = swc_task_look_up(task);
		if (status != SWC_STATUS_OK)
			return status;
	}
	task->copies = 0;
	swc_stat_inc(SWC_STAT_STEPS_LOCAL);
	return SWC_STATUS_OK;
}
