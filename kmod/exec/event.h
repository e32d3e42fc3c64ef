/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of operations: each goes to its tracepoint, if it has one, and to the communicator's recorder.
 */
#ifndef SWC_EVENT_H
#define SWC_EVENT_H

#include <linux/ktime.h>

#include "comm/recorder.h"
#include "exec/operation.h"
#include "trace.h"

/* A worker begins or resumes the task's step. */
static inline void swc_event_step(const struct swc_task *task, u32 kind)
{
	const struct swc_req *req = task->req;
	const struct swc_comm *comm = req->member->comm;

	trace_swc_step(req, task->channel, task->step, kind);
	/* The last task to come to a barrier does not wait: small operations would record much more. */
	if (comm->recorder && (kind != SWC_STEP_SYNC ||
			       READ_ONCE(req->op->sync_arrived[task->channel]) + 1 < comm->nlocal))
		swc_record_at(comm->recorder, ktime_get_ns(), SWC_TRACE_STEP, req->member->rank,
			      task->channel, req->op->seq, task->step | (u64)kind << 32);
}

static inline void swc_event_complete(const struct swc_req *req)
{
	trace_swc_complete(req);
	swc_record_at(req->member->comm->recorder, req->finished_at, SWC_TRACE_COMPLETE, req->member->rank,
		      0, req->op->seq, (u32)req->result | (u64)(u32)req->culprit << 32);
}

/* A segment has arrived from another node. */
static inline void swc_event_segment(struct swc_comm *comm, const struct swc_net_seg *seg)
{
	if (comm->recorder)
		swc_record_at(comm->recorder, ktime_get_ns(), SWC_TRACE_SEGMENT, seg->dst, seg->channel,
			      seg->msg.seq, seg->src | (u64)seg->msg.bytes << 32);
}

/* A message of the task's step has been sent, or written into place. */
static inline void swc_event_message(const struct swc_task *task, enum swc_trace_type type, u32 peer,
				     u32 step)
{
	const struct swc_req *req = task->req;
	struct swc_recorder *recorder = req->member->comm->recorder;

	if (recorder)
		swc_record_at(recorder, ktime_get_ns(), type, req->member->rank, task->channel,
			      req->op->seq, peer | (u64)step << 32);
}

#endif /* SWC_EVENT_H */
