// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submission: a part takes its number and its place among those of the other ranks.
 *
 * Both happen under comm->lock, with op->lock inside. The rank that completes the set starts the execution. A
 * rank that arrives at an operation that has failed before is given the same error.
 */
#include <linux/ktime.h>

#include "comm/comm.h"
#include "exec/watchdog.h"
#include "exec/worker.h"
#include "exec/net_event.h"
#include "exec/operation.h"
#include "exec/request.h"
#include "exec/match.h"
#include "trace.h"

/*
 * Why nothing can be submitted now, or 0; @there is the operation whose turn it is, if another rank has come
 * to it. comm->lock is held.
 */
static int may_submit(const struct swc_comm *comm, const struct swc_member *member,
		      const struct swc_op *there)
{
	if (comm->status != SWC_COMM_LIVE)
		return -ECONNABORTED;
	if (member->state != SWC_MEMBER_JOINED)
		return -ENOENT;
	if (member->inflight >= SWC_MAX_INFLIGHT)
		return -EAGAIN;
	/*
	 * Somebody has left: only an operation that has failed before can be joined, for its error; and those
	 * that members of other nodes took part in before they left.
	 */
	if ((comm->nleft || member->submitted >= comm->gone_at) && !(there && READ_ONCE(there->status)))
		return -ECONNRESET;
	return !there && comm->nwaiting >= SWC_MAX_INFLIGHT ? -EAGAIN : 0;
}

/* What a part brings with it when it arrives. */
struct arrival {
	u64 now;
	u64 deadline;
	u64 look;
};

static struct arrival arrival_of(const struct swc_part *part)
{
	const struct swc_comm *comm = part->member->comm;
	u64 timeout_ms = part->desc.timeout_ms ?: comm->timeout_ms;
	struct arrival a = { .now = ktime_get_ns() };

	a.deadline = a.now + timeout_ms * NSEC_PER_MSEC;
	a.look = swc_deadline_look(comm, a.now, a.deadline);
	return a;
}

/*
 * Put a part into its operation, and go on with that as far as it goes. comm->lock is held on entry, not on
 * exit; the part may be completed and gone before.
 */
static void arrive(struct swc_op *op, struct swc_part *part, const struct arrival *a, bool inline_ok)
	__releases(&op->comm->lock)
{
	struct swc_member *member = part->member;
	struct swc_comm *comm = op->comm;
	u32 rank = member->rank;
	enum swc_arrival how;
	int status, culprit;
	LIST_HEAD(odd);

	kref_get(&op->ref);
	kref_get(&comm->ref);
	if (!op->narrived)
		op->opened_at = a->now;
	op->deadline = min(op->deadline, a->deadline);
	op->look = min(op->look, a->look);
	member->last_submit = a->now;

	spin_lock(&op->lock);
	how = swc_op_arrive(op, part);
	if (how != SWC_ARRIVED_LATE)
		member->inflight++;
	if (how == SWC_ARRIVED_LAST && comm->net)
		swc_news_early(op, &odd);
	status = op->status;
	culprit = op->culprit;
	if (op->narrived == comm->nlocal && !op->reserved)
		comm->nwaiting--;
	spin_unlock(&op->lock);
	swc_op_settle(op);
	spin_unlock(&comm->lock);

	swc_stat_inc(SWC_STAT_OPS_SUBMITTED);
	trace_swc_submit(op, rank);
	switch (how) {
	case SWC_ARRIVED:
		swc_deadline_watch(comm, a->look);
		break;
	case SWC_ARRIVED_LAST:
		swc_deadline_watch(comm, a->look);
		if (comm->net) {
			swc_net_watch(comm->net);
			swc_news_odd(comm, &odd);
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
	swc_op_put(op);
	swc_comm_put(comm);
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
	struct arrival a = arrival_of(part);
	int ret;
	u64 seq;

	INIT_WORK(&part->work, swc_exec_work);
again:
	spin_lock(&comm->lock);
	seq = member->submitted;
	op = swc_op_find(comm, seq);
	ret = may_submit(comm, member, op);
	if (ret) {
		spin_unlock(&comm->lock);
		if (ret == -ECONNRESET)
			swc_comm_note_gone(comm, seq);
		if (fresh)
			swc_op_put(fresh);
		return ret;
	}
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
		swc_op_enter(op, seq);
		comm->nwaiting++;
	}
	member->submitted++;
	arrive(op, part, &a, inline_ok);
	if (fresh)
		swc_op_put(fresh);
	return 0;
}

/* ------------------------------------------------------------------ partitions */

/* Numbers that a rank may have taken and not used: looking for one takes the longer, the more there are. */
#define RESERVED_MAX	(4 * SWC_MAX_PARTITIONS)

/* Operations for numbers that this rank takes and others may not have taken yet. */
static int make_ops(struct swc_comm *comm, struct list_head *ops, u32 n)
{
	while (n--) {
		struct swc_op *op = swc_op_alloc(comm);

		if (!op)
			return -ENOMEM;
		op->reserved = true;
		list_add_tail(&op->node, ops);
	}
	return 0;
}

/* Give number @seq an operation out of @ops, if it has none. comm->lock is held. */
static void reserve_one(struct swc_comm *comm, struct list_head *ops, u64 seq)
{
	struct swc_op *op = swc_op_find(comm, seq);

	if (op) {
		/* Somebody else calls an ordinary one: that will be told as a mismatch. */
		if (!op->reserved)
			comm->nwaiting--;
		op->reserved = true;
		return;
	}
	op = list_first_entry(ops, struct swc_op, node);
	list_del_init(&op->node);
	swc_op_enter(op, seq);
	swc_op_put(op);
}

/**
 * swc_submit_reserve() - take numbers for @n parts, to be submitted later in any order
 * @base: out: the first
 *
 * The other ranks must take as many at the same place in their order. Each number must be used by
 * swc_submit_reserved(), or given up by swc_submit_forgo() when the communicator has ended.
 */
int swc_submit_reserve(struct swc_member *member, u32 n, u64 *base)
{
	struct swc_comm *comm = member->comm;
	struct swc_op *op, *next;
	LIST_HEAD(ops);
	int ret = make_ops(comm, &ops, n);
	u32 i;

	if (!ret) {
		spin_lock(&comm->lock);
		*base = member->submitted;
		ret = may_submit(comm, member, swc_op_find(comm, *base));
		if (!ret && member->reserved + n > RESERVED_MAX)
			ret = -EAGAIN;
		for (i = 0; i < n && !ret; i++)
			reserve_one(comm, &ops, *base + i);
		if (!ret) {
			member->submitted += n;
			member->reserved += n;
		}
		spin_unlock(&comm->lock);
		if (ret == -ECONNRESET)
			swc_comm_note_gone(comm, *base);
	}
	list_for_each_entry_safe(op, next, &ops, node)
		swc_op_put(op);
	return ret;
}

/**
 * swc_submit_reserved() - let a part with a reserved number meet the others
 *
 * As swc_submit(); it fails only if the communicator has ended.
 */
int swc_submit_reserved(struct swc_part *part, u64 seq)
{
	struct swc_member *member = part->member;
	struct swc_comm *comm = member->comm;
	struct arrival a = arrival_of(part);
	struct swc_op *op;

	INIT_WORK(&part->work, swc_exec_work);
	spin_lock(&comm->lock);
	op = swc_op_find(comm, seq);
	if (comm->status != SWC_COMM_LIVE || !op) {
		spin_unlock(&comm->lock);
		return -ECONNABORTED;
	}
	member->reserved--;
	part->submitted_at = a.now;
	arrive(op, part, &a, false);
	return 0;
}

/* The communicator has ended: @n reserved numbers will not be used. */
void swc_submit_forgo(struct swc_member *member, u32 n)
{
	spin_lock(&member->comm->lock);
	member->reserved -= n;
	spin_unlock(&member->comm->lock);
}
