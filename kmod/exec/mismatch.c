// SPDX-License-Identifier: GPL-2.0-only
/*
 * Errors of operations whose ranks have called different things, in words: which rank, and what each has
 * called.
 */
#include <linux/slab.h>

#include "comm/error.h"
#include "exec/mismatch.h"
#include "exec/operation.h"
#include "plan/plan.h"

static const char * const coll_names[] = {
	[SWC_ALLREDUCE] = "allreduce", [SWC_REDUCE_SCATTER] = "reduce_scatter",
	[SWC_ALLGATHER] = "allgather", [SWC_BROADCAST] = "broadcast", [SWC_REDUCE] = "reduce",
	[SWC_BARRIER] = "barrier", [SWC_ALLTOALL] = "alltoall", [SWC_GATHER] = "gather",
	[SWC_SCATTER] = "scatter",
};

static void describe(char *text, size_t bytes, const struct swc_signature *d, const char *algo)
{
	snprintf(text, bytes, "%s%s(count %llu, %s, %s, root %u) by %s",
		 d->partitioned ? "a partition of " : "",
		 coll_names[d->coll], d->count, swc_dtype_name(d->dtype), swc_redop_name(d->redop), d->root,
		 algo);
}

/* How two calls differ that have the same words: counts of the ranks, or another plan. @first may be NULL. */
static const char *family_differs(const struct swc_op *op, const struct swc_req *req,
				  const struct swc_req *first)
{
	if (req->sig.family == op->sig.family || strcmp(req->plan->view.hdr->name, op->algo))
		return "";
	if (first && first->plan->view.hdr->family == req->plan->view.hdr->family)
		return " with other counts of the ranks";
	return " with another plan of that name";
}

/* Report which ranks differ in what; @req differs from the request that arrived first. */
void swc_mismatch_report(struct swc_op *op, struct swc_req *req)
{
	char *text = kmalloc(2 * SWC_TEXT_BYTES, GFP_KERNEL);
	const struct swc_req *first = NULL;
	const struct swc_member *other;
	u32 i;

	/* The lock: another one may be arriving. The caller is a worker, which keeps those that have. */
	spin_lock(&op->lock);
	for (i = 0; i < op->comm->nlocal && !first; i++)
		if (op->req[i] != req)
			first = op->req[i];
	spin_unlock(&op->lock);
	other = first ? first->member : req->member;
	swc_stat_inc(SWC_STAT_MISMATCHES);
	if (!text)
		return;
	describe(text, SWC_TEXT_BYTES, &req->sig, req->plan->view.hdr->name);
	describe(text + SWC_TEXT_BYTES, SWC_TEXT_BYTES, &op->sig, op->algo);
	swc_comm_error_note(op->comm, -EPROTO, req->member->rank, op->seq,
			    "operation %llu: " SWC_RANK_FMT " called %s%s, but " SWC_RANK_FMT " called %s",
			    op->seq, SWC_RANK_ARGS(req->member), text, family_differs(op, req, first),
			    SWC_RANK_ARGS(other), text + SWC_TEXT_BYTES);
	kfree(text);
}

/* End the communicator: a message of @rank, on another node, tells that it has called something else. */
void swc_mismatch_abort(struct swc_op *op, u32 rank, const struct swc_wire_msg *msg)
{
	const struct swc_member *here = &op->comm->member[op->comm->local[0]];
	char *text = kmalloc(2 * SWC_TEXT_BYTES, GFP_KERNEL);

	swc_stat_inc(SWC_STAT_MISMATCHES);
	if (!text) {
		swc_comm_abort(op->comm, -EPROTO, rank, op->seq,
			       "operation %llu: rank %u called something else", op->seq, rank);
		return;
	}
	describe(text, SWC_TEXT_BYTES, &msg->sig,
		 msg->sig.family == op->sig.family ? op->algo :
						     "another plan or with other counts of the ranks");
	describe(text + SWC_TEXT_BYTES, SWC_TEXT_BYTES, &op->sig, op->algo);
	swc_comm_abort(op->comm, -EPROTO, rank, op->seq,
		       "operation %llu: rank %u called %s, but " SWC_RANK_FMT " called %s", op->seq, rank,
		       text, SWC_RANK_ARGS(here), text + SWC_TEXT_BYTES);
	kfree(text);
}

void swc_mismatch_report_refusal(struct swc_op *op, const struct swc_req *req)
{
	/* request.c has explained a lack of memory, and a limit of the user, already. */
	if (req->refused != -ENOMEM && req->refused != -EDQUOT)
		swc_comm_error_note(op->comm, req->refused, req->member->rank, op->seq,
				    "operation %llu: " SWC_MEMBER_FMT
				    " cannot take part, its buffers are refused (%pe)", op->seq,
				    SWC_MEMBER_ARGS(req->member), ERR_PTR(req->refused));
}
