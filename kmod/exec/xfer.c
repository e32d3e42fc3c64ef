// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory that the transfers of a plan name, and reports of plans that do not fit together.
 */
#include "comm/error.h"
#include "core/plan_check.h"
#include "exec/xfer.h"
#include "plan/plan.h"

/* As swc_xfer_find(), where the size is known. */
bool swc_xfer_span(const struct swc_req *req, const struct swc_plan_xfer *x, u8 buf, struct swc_span *span)
{
	u64 bytes;

	return swc_xfer_find(req, x, buf, span, &bytes);
}

u64 swc_xfer_bytes(const struct swc_req *req, const struct swc_plan_xfer *x)
{
	return swc_blocks_bytes(&req->blocks, x->first_block, x->nblocks);
}

/* What the result of a transfer is divided by, for SWC_AVG; 0: not divided. */
u32 swc_xfer_divisor(const struct swc_task *task, const struct swc_plan_xfer *x)
{
	return (x->flags & SWC_XFER_FINAL) && task->copy.redop == SWC_AVG &&
	       swc_coll_reduces(task->req->desc.coll) ? task->req->op->comm->nranks : 0;
}

/**
 * swc_xfer_mismatch() - report that the plans of two ranks do not fit together
 * @task: task that found it
 * @peer: the other rank
 * @what: the reason
 */
enum swc_step_status swc_xfer_mismatch(struct swc_task *task, u32 peer, const char *what)
{
	struct swc_req *req = task->req;

	swc_comm_error_note(req->op->comm, -EPROTO, req->member->rank, req->op->seq,
			    "operation %llu: plan %s of " SWC_RANK_FMT ", channel %u, step %u: %s (rank %u)",
			    req->op->seq, req->plan->view.hdr->name, SWC_RANK_ARGS(req->member),
			    task->channel,
			    task->step - req->plan->view.channels[task->channel].first_step, what, peer);
	return SWC_STATUS_ERROR;
}
