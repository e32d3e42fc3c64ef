// SPDX-License-Identifier: GPL-2.0-only
/*
 * Matching: a request gets its number in its rank's order of calls, meets the requests of the other ranks
 * with that number, and must have the same signature.
 *
 * Both happen under comm->lock, with op->lock inside. The rank that completes the set starts the execution. A
 * rank that arrives at an operation that has failed before gets the same error.
 */
#include <linux/cpumask.h>
#include <linux/ktime.h>

#include "comm/comm.h"
#include "comm/error.h"
#include "comm/recorder.h"
#include "exec/match.h"
#include "exec/mismatch.h"
#include "exec/net_event.h"
#include "exec/operation.h"
#include "exec/watchdog.h"
#include "exec/worker.h"
#include "plan/plan.h"
#include "trace.h"

/*
 * May the rank submit now? @op is the operation whose turn it is, if another rank has arrived there.
 * comm->lock is held. Return: 0 or a negative errno.
 */
static int may_submit(const struct swc_comm *comm, const struct swc_member *member, const struct swc_op *op)
{
	if (comm->status != SWC_COMM_LIVE)
		return -ECONNABORTED;
	if (member->state != SWC_MEMBER_JOINED)
		return -ENOENT;
	if (member->inflight - member->ready_partitions >= SWC_MAX_INFLIGHT)
		return -EAGAIN;
	/*
	 * A member has left: the rank can still join operations that have failed before, to get their
	 * error, and those that members of other nodes took part in before they left.
	 */
	if ((comm->nleft || member->next_seq >= comm->gone_at) && !(op && READ_ONCE(op->status)))
		return -ECONNRESET;
	return !op && comm->nwaiting >= SWC_MAX_INFLIGHT ? -EAGAIN : 0;
}

/*
 * On several nodes the refusal of a buffer ends the communicator. A rank that comes to that operation after
 * the end gets the error that the others get, and so tells it from an operation whose fate they do not
 * share. comm->lock is held.
 */
static bool was_refused(const struct swc_comm *comm, u64 seq)
{
	return comm->net && comm->status == SWC_COMM_ABORTED && comm->error == -ECANCELED &&
	       comm->error_seq == seq;
}

/* The clock of a request, read before the locks are taken. */
struct clock {
	u64 now;
	u64 deadline;
	u64 next_check;
};

static struct clock read_clock(const struct swc_req *req)
{
	const struct swc_comm *comm = req->member->comm;
	u64 timeout_ms = req->desc.timeout_ms ?: comm->timeout_ms;
	struct clock c = { .now = ktime_get_ns() };

	c.deadline = c.now + timeout_ms * NSEC_PER_MSEC;
	c.next_check = swc_watchdog_first_check(comm, c.now, c.deadline);
	return c;
}

/* How a request finds its operation. */
enum arrival {
	ARRIVED,		/* others are missing */
	ARRIVED_LAST,		/* the operation can start; the caller is its first worker */
	ARRIVED_LATE,		/* the operation has failed and finished */
	ARRIVED_MISMATCH,	/* another signature: the operation fails; the caller counts as a worker */
	ARRIVED_REFUSED,	/* the request cannot take part: likewise */
};

/*
 * The request makes the operation fail, at once: a rank that arrives before the error is reported must not
 * start the operation. The caller counts as a worker, which keeps the requests until it has reported.
 */
static enum arrival arrive_unfit(struct swc_op *op, struct swc_req *req, int error, enum arrival how)
{
	op->req[swc_comm_local_index(op->comm, req->member->rank)] = req;
	swc_op_set_error(op, error, req->member->rank);
	op->nactive++;
	return how;
}

/* Put the request in its place. op->lock is held; nothing here can fail. */
static enum arrival take_place(struct swc_op *op, struct swc_req *req)
{
	lockdep_assert_held(&op->lock);
	kref_get(&op->ref);
	req->op = op;
	op->narrived++;
	if (op->finished)
		return ARRIVED_LATE;
	if (req->refused)
		return arrive_unfit(op, req, -ECANCELED, ARRIVED_REFUSED);
	op->req[swc_comm_local_index(op->comm, req->member->rank)] = req;
	op->tasks_left += req->ntasks;
	if (op->narrived == 1) {
		op->sig = req->sig;
		memcpy(op->algo, req->plan->view.hdr->name, sizeof(op->algo));
		op->bytes = swc_blocks_total_bytes(&req->blocks);
	} else if (!op->status && !swc_signature_equal(&op->sig, &req->sig)) {
		return arrive_unfit(op, req, -EPROTO, ARRIVED_MISMATCH);
	}
	if (op->narrived < op->comm->nlocal || op->status)
		return ARRIVED;
	op->started_at = ktime_get_ns();
	op->ntasks = op->tasks_left;
	op->max_workers = min(op->ntasks, num_online_cpus());
	/* The submitter is the first worker; that keeps the operation from ending meanwhile. */
	op->nactive = 1;
	return ARRIVED_LAST;
}

/* What an arrival has led to. */
struct outcome {
	enum arrival how;
	int status;			/* of the operation, likewise @culprit */
	int culprit;
	struct list_head unmatched;	/* segments that match no task */
};

/*
 * Put a request into its operation. comm->lock is held. Takes references to the operation and the
 * communicator for follow_up(), because the request may be completed and freed as soon as the lock is
 * dropped.
 */
static void arrive(struct swc_op *op, struct swc_req *req, const struct clock *c, struct outcome *out)
{
	struct swc_member *member = req->member;
	struct swc_comm *comm = op->comm;

	lockdep_assert_held(&comm->lock);
	INIT_LIST_HEAD(&out->unmatched);
	kref_get(&op->ref);
	kref_get(&comm->ref);
	if (!op->narrived)
		op->opened_at = c->now;
	op->deadline = min(op->deadline, c->deadline);
	op->next_check = min(op->next_check, c->next_check);
	member->last_submit = c->now;

	spin_lock(&op->lock);
	out->how = take_place(op, req);
	/* The request may be gone in follow_up(). If it is mismatched, it is not like the operation. */
	swc_record_at(comm->recorder, c->now,
		      out->how == ARRIVED_LAST ? SWC_TRACE_START : SWC_TRACE_SUBMIT,
		      member->rank, req->sig.coll, op->seq, swc_blocks_total_bytes(&req->blocks));
	if (out->how != ARRIVED_LATE) {
		member->inflight++;
		member->ready_partitions += !!req->partitioned;
	}
	if (out->how == ARRIVED_LAST && comm->net)
		swc_net_event_take_unexpected(op, &out->unmatched);
	out->status = op->status;
	out->culprit = op->culprit;
	if (op->narrived == comm->nlocal && !op->reserved)
		comm->nwaiting--;
	spin_unlock(&op->lock);
	if (out->how == ARRIVED)
		swc_watchdog_arm_waiting(comm, c->next_check, c->now);
	else if (out->how == ARRIVED_LAST)
		swc_watchdog_arm(comm, c->next_check, c->now);
	swc_op_retire(op);
}

/*
 * Act on an arrival, with no locks held: start the operation, report why it fails, or complete a late
 * request.
 */
static void follow_up(struct swc_op *op, struct swc_req *req, u32 rank, struct outcome *out, bool inline_ok)
{
	struct swc_comm *comm = op->comm;
	bool looks;

	swc_stat_inc(SWC_STAT_OPS_SUBMITTED);
	trace_swc_match(op, rank);
	switch (out->how) {
	case ARRIVED:
		break;
	case ARRIVED_LAST:
		if (comm->net) {
			swc_net_watch(comm->net);
			swc_net_event_refuse(comm, &out->unmatched);
		}
		/* The request may be gone when it has started. */
		looks = req->waiter.wake;
		swc_worker_start(op, req, inline_ok);
		if (comm->net && !looks)
			swc_net_expedite(comm->net);
		break;
	case ARRIVED_LATE:
		swc_req_complete(req, req->refused ?: out->status, out->culprit, ktime_get_ns());
		break;
	case ARRIVED_MISMATCH:
		swc_mismatch_report(op, req);
		swc_worker_leave(op);
		break;
	case ARRIVED_REFUSED:
		swc_mismatch_report_refusal(op, req);
		swc_worker_leave(op);
		break;
	}
	swc_op_put(op);
	swc_comm_put(comm);
}

/*
 * The operation whose turn it is for the rank, made of *@fresh if no rank has arrived there; NULL if @fresh
 * is NULL too. comm->lock is held.
 */
static struct swc_op *next_op(struct swc_comm *comm, u64 seq, struct swc_op *fresh)
{
	struct swc_op *op = swc_op_find(comm, seq);

	if (op || !fresh)
		return op;
	swc_op_insert(fresh, seq);
	comm->nwaiting++;
	return fresh;
}

/**
 * swc_match() - give a request its number and let it meet the others
 * @req: from swc_req_create(), with @complete set
 * @inline_ok: the caller is going to wait and may be used to run tasks now
 *
 * Return: 0: the request will be, or already is, completed through req->complete. A negative errno: it was
 * not matched and is still the caller's.
 */
int swc_match(struct swc_req *req, bool inline_ok)
{
	struct swc_op *op, *fresh = NULL;
	struct swc_member *member = req->member;
	struct swc_comm *comm = member->comm;
	struct clock c = read_clock(req);
	u32 rank = member->rank;
	struct outcome out;
	int ret;
	u64 seq;

	INIT_WORK(&req->work, swc_worker_fn);
again:
	spin_lock(&comm->lock);
	seq = member->next_seq;
	ret = may_submit(comm, member, swc_op_find(comm, seq));
	op = ret ? NULL : next_op(comm, seq, fresh);
	if (ret == -ECONNABORTED && was_refused(comm, seq)) {
		member->next_seq++;
		ret = -ECANCELED;
	}
	if (op) {
		member->next_seq++;
		arrive(op, req, &c, &out);
	}
	spin_unlock(&comm->lock);
	if (op) {
		/* Before follow_up() puts the communicator, which an operation's last put needs. */
		if (fresh)
			swc_op_put(fresh);
		fresh = NULL;
		follow_up(op, req, rank, &out, inline_ok);
	} else if (!ret) {
		/* First to arrive: allocate without the lock, and look again. */
		fresh = swc_op_alloc(comm, req->ctx);
		if (!IS_ERR(fresh))
			goto again;
		ret = PTR_ERR(fresh);
		fresh = NULL;
		swc_comm_note_quota(comm, comm->account, rank, seq, ret);
	}
	if (ret == -ECONNRESET)
		swc_comm_report_left(comm, seq);
	if (fresh)
		swc_op_put(fresh);
	return ret;
}

/* ------------------------------------------------------------------ partitions */

/* Numbers that a rank may have reserved and not used: lookups take longer, the more there are. */
#define RESERVED_MAX	(4 * SWC_MAX_PARTITIONS)

/* Make operations for numbers that this rank reserves and others may not have reserved yet. */
static int make_ops(struct swc_comm *comm, struct swc_ctx *ctx, struct list_head *ops, u32 n)
{
	while (n--) {
		struct swc_op *op = swc_op_alloc(comm, ctx);

		if (IS_ERR(op))
			return PTR_ERR(op);
		op->reserved = true;
		list_add_tail(&op->node, ops);
		cond_resched();
	}
	return 0;
}

/* Reserve number @seq, with an operation out of @ops if no rank has one there. comm->lock is held. */
static void reserve_one(struct swc_comm *comm, struct list_head *ops, u64 seq)
{
	struct swc_op *op = swc_op_find(comm, seq);

	if (op) {
		/* If another rank has called an ordinary operation, that will be reported as a mismatch. */
		if (!op->reserved)
			comm->nwaiting--;
		op->reserved = true;
		return;
	}
	op = list_first_entry(ops, struct swc_op, node);
	list_del_init(&op->node);
	swc_op_insert(op, seq);
	swc_op_put(op);
}

/**
 * swc_match_reserve() - reserve numbers for @n requests, to be matched later in any order
 * @ctx: the caller's context
 * @member: the rank
 * @n: how many
 * @base: out: the first number
 *
 * The other ranks must reserve as many at the same place in their order. Each number must be used by
 * swc_match_reserved(), or given up by swc_match_unreserve() when the communicator has been aborted.
 *
 * Return: 0 or a negative errno.
 */
int swc_match_reserve(struct swc_ctx *ctx, struct swc_member *member, u32 n, u64 *base)
{
	struct swc_comm *comm = member->comm;
	struct swc_op *op, *next;
	LIST_HEAD(ops);
	int ret = make_ops(comm, ctx, &ops, n);
	u32 i;

	swc_comm_note_quota(comm, comm->account, member->rank, member->next_seq, ret);
	if (!ret) {
		spin_lock(&comm->lock);
		*base = member->next_seq;
		ret = may_submit(comm, member, swc_op_find(comm, *base));
		/* An operation that failed excuses a member that has left, but for its own number only. */
		if (!ret && n > 1 && (comm->nleft || *base + n > comm->gone_at))
			ret = -ECONNRESET;
		if (!ret && member->reserved + n > RESERVED_MAX)
			ret = -EAGAIN;
		for (i = 0; i < n && !ret; i++)
			reserve_one(comm, &ops, *base + i);
		if (!ret) {
			member->next_seq += n;
			member->reserved += n;
		}
		spin_unlock(&comm->lock);
		if (ret == -ECONNRESET)
			swc_comm_report_left(comm, *base);
	}
	list_for_each_entry_safe(op, next, &ops, node)
		swc_op_put(op);
	return ret;
}

/**
 * swc_match_reserved() - let a request with a reserved number meet the others
 *
 * Return: as swc_match(); fails only if the communicator has been aborted.
 */
int swc_match_reserved(struct swc_req *req, u64 seq)
{
	struct swc_member *member = req->member;
	struct swc_comm *comm = member->comm;
	struct clock c = read_clock(req);
	u32 rank = member->rank;
	struct outcome out;
	struct swc_op *op;

	INIT_WORK(&req->work, swc_worker_fn);
	spin_lock(&comm->lock);
	op = comm->status == SWC_COMM_LIVE ? swc_op_find(comm, seq) : NULL;
	if (op) {
		member->reserved--;
		req->submitted_at = c.now;
		arrive(op, req, &c, &out);
	}
	spin_unlock(&comm->lock);
	if (!op)
		return -ECONNABORTED;
	follow_up(op, req, rank, &out, false);
	return 0;
}

/* Give up a reserved number: the communicator has been aborted. Return: why, a negative errno. */
int swc_match_unreserve(struct swc_member *member)
{
	struct swc_comm *comm = member->comm;
	int error;

	spin_lock(&comm->lock);
	member->reserved--;
	error = comm->error;
	spin_unlock(&comm->lock);
	return error;
}
