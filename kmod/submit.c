// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submission: a part takes its number and its place among those of the other ranks.
 *
 * Both happen under comm->lock, with op->lock inside. The rank that completes the set starts the execution. A
 * rank that arrives at an operation that has failed before is given the same error.
 */
#include <linux/ktime.h>

#include "comm.h"
#include "deadline.h"
#include "exec.h"
#include "news.h"
#include "op.h"
#include "part.h"
#include "submit.h"
#include "trace.h"

/* Why nothing can be submitted now, or 0. comm->lock is held. */
static int may_submit(const struct swc_comm *comm, const struct swc_member *member)
{
	const struct swc_op *there;

	if (comm->status != SWC_COMM_LIVE)
		return -ECONNABORTED;
	if (member->state != SWC_MEMBER_JOINED)
		return -ENOENT;
	if (member->inflight >= SWC_MAX_INFLIGHT)
		return -EAGAIN;
	there = comm->window[member->submitted % SWC_MAX_INFLIGHT];
	/*
	 * Somebody has left: only an operation that has failed before can be joined, for its error; and those
	 * that members of other nodes took part in before they left.
	 */
	if ((comm->nleft || member->submitted >= comm->gone_at) &&
	    !(there && there->seq == member->submitted && READ_ONCE(there->status)))
		return -ECONNRESET;
	return there && there->seq != member->submitted ? -EAGAIN : 0;
}

/**
 * swc_submit() - give a part its number and let it meet the others
 * @part: from swc_part_create(), with @complete set
 * @inline_ok: the caller is going to wait and may be used to run steps now
 *
 * Return: 0: the part will be, or already is, completed through part->complete. A negative errno: it was
 * not submitted and is still the caller's.
 */
int swc_submit(struct swc_part *part, bool inline_ok)
{
	struct swc_member *member = part->member;
	struct swc_comm *comm = member->comm;
	struct swc_op *op, *fresh = NULL;
	bool complete_set;
	u32 timeout_ms = part->desc.timeout_ms ?: comm->timeout_ms;
	u64 now = ktime_get_ns(), deadline = now + (u64)timeout_ms * NSEC_PER_MSEC;
	u64 look = swc_deadline_look(comm, now, deadline);
	enum swc_arrival how;
	int ret, status, culprit;
	u32 rank = member->rank;
	u64 seq;

	INIT_WORK(&part->work, swc_exec_work);
again:
	spin_lock(&comm->lock);
	ret = may_submit(comm, member);
	if (ret) {
		seq = member->submitted;
		spin_unlock(&comm->lock);
		if (ret == -ECONNRESET)
			swc_comm_note_gone(comm, seq);
		if (fresh)
			swc_op_put(fresh);
		return ret;
	}
	op = comm->window[member->submitted % SWC_MAX_INFLIGHT];
	if (!op && !fresh) {
		/* First to arrive: allocate with the lock dropped, and look again. */
		spin_unlock(&comm->lock);
		fresh = swc_op_alloc(comm);
		if (!fresh)
			return -ENOMEM;
		goto again;
	}
	if (!op) {
		op = fresh;
		fresh = NULL;
		op->seq = member->submitted;
		op->opened_at = now;
		op->deadline = deadline;
		op->look = look;
		comm->window[op->seq % SWC_MAX_INFLIGHT] = op;	/* takes the first reference */
		kref_get(&op->ref);
		if (list_empty(&comm->ops))
			WRITE_ONCE(comm->oldest, op->seq);
		list_add_tail(&op->node, &comm->ops);
	}
	/* Ours until the end of this function: the part may be completed and gone before. */
	kref_get(&op->ref);
	kref_get(&comm->ref);
	op->deadline = min(op->deadline, deadline);
	op->look = min(op->look, look);
	member->submitted++;
	member->last_submit = now;

	spin_lock(&op->lock);
	how = swc_op_arrive(op, part);
	if (how != SWC_ARRIVED_LATE)
		member->inflight++;
	status = op->status;
	culprit = op->culprit;
	complete_set = op->narrived == comm->nlocal;
	if (complete_set)	/* everybody has found it */
		comm->window[op->seq % SWC_MAX_INFLIGHT] = NULL;
	spin_unlock(&op->lock);
	spin_unlock(&comm->lock);

	swc_stat_inc(SWC_STAT_OPS_SUBMITTED);
	trace_swc_submit(op, rank);
	switch (how) {
	case SWC_ARRIVED:
		swc_deadline_watch(comm, look);
		break;
	case SWC_ARRIVED_LAST:
		swc_deadline_watch(comm, look);
		if (comm->net) {
			swc_net_watch(comm->net);
			swc_news_early(op);
		}
		swc_exec_start(op, part, inline_ok);
		break;
	case SWC_ARRIVED_LATE:
		swc_part_finish(part, part->refused ?: status, culprit);
		break;
	case SWC_ARRIVED_DIFFERENT:
		swc_op_note_mismatch(op, part);
		swc_exec_leave(op);
		break;
	case SWC_ARRIVED_REFUSED:
		swc_op_note_refusal(op, part);
		swc_exec_leave(op);
		break;
	}
	if (complete_set)
		swc_op_put(op);
	if (fresh)
		swc_op_put(fresh);
	swc_op_put(op);
	swc_comm_put(comm);
	return 0;
}
