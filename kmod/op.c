// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations: where the parts of all ranks meet, are compared, started, and brought to their one end.
 *
 * A part takes its number and its place under comm->lock, with op->lock inside. The rank that completes the
 * set starts the execution. An operation ends exactly once: when all runs are done, or, once it has been
 * failed, when the last worker has left it; whoever sets op->finished under op->lock calls swc_op_finish().
 * A rank that arrives at an operation that has failed before is given the same error.
 */
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/slab.h>

#include "op.h"
#include "trace.h"

static const char * const coll_names[] = {
	[SWC_ALLREDUCE] = "allreduce", [SWC_REDUCE_SCATTER] = "reduce_scatter",
	[SWC_ALLGATHER] = "allgather", [SWC_BROADCAST] = "broadcast", [SWC_REDUCE] = "reduce",
	[SWC_BARRIER] = "barrier", [SWC_ALLTOALL] = "alltoall",
};

static void op_release(struct kref *ref)
{
	struct swc_op *op = container_of(ref, struct swc_op, ref);

	swc_comm_put(op->comm);
	kfree(op);
}

void swc_op_put(struct swc_op *op)
{
	kref_put(&op->ref, op_release);
}

static struct swc_op *op_alloc(struct swc_comm *comm)
{
	struct swc_op *op = kzalloc(struct_size(op, part, comm->nranks), GFP_KERNEL_ACCOUNT);

	if (!op)
		return NULL;
	kref_init(&op->ref);
	spin_lock_init(&op->lock);
	INIT_LIST_HEAD(&op->ready);
	INIT_LIST_HEAD(&op->node);
	op->culprit = -1;
	kref_get(&comm->ref);
	op->comm = comm;
	return op;
}

/* ------------------------------------------------------------------ matching */

static void describe(char *text, size_t bytes, const struct swc_desc *d, const char *algo)
{
	snprintf(text, bytes, "%s(count %llu, %s, %s, root %u) by %s", coll_names[d->coll], d->count,
		 swc_dtype_name(d->dtype), swc_redop_name(d->redop), d->root, algo);
}

static bool matches(const struct swc_op *op, const struct swc_part *part)
{
	const struct swc_desc *a = &op->desc, *b = &part->desc;
	const struct swc_plan_header *h = part->plan->view.hdr;

	return a->coll == b->coll && a->dtype == b->dtype && a->redop == b->redop &&
	       a->count == b->count && a->root == b->root && op->family == h->family &&
	       op->nparts == h->nparts && op->part_blocks == h->part_blocks;
}

/* Say who differs in what; part @part differs from the one that arrived first. */
static void note_mismatch(struct swc_op *op, struct swc_part *part)
{
	char *text = kmalloc(2 * SWC_TEXT_BYTES, GFP_KERNEL);
	const struct swc_part *first = NULL;
	u32 i;

	for (i = 0; i < op->comm->nranks && !first; i++)
		if (op->part[i] && op->part[i] != part)
			first = op->part[i];
	swc_stat_inc(SWC_STAT_MISMATCHES);
	if (!text)
		return;
	describe(text, SWC_TEXT_BYTES, &part->desc, part->plan->view.hdr->name);
	describe(text + SWC_TEXT_BYTES, SWC_TEXT_BYTES, &op->desc, op->algo);
	swc_comm_note(op->comm, -EPROTO, part->member->rank, op->seq,
		      "operation %llu: rank %u called %s, but rank %d called %s", op->seq,
		      part->member->rank, text, first ? (int)first->member->rank : -1,
		      text + SWC_TEXT_BYTES);
	kfree(text);
}

static void note_refusal(struct swc_op *op, const struct swc_part *part)
{
	/* Where memory is short, part.c has explained it already. */
	if (part->refused != -ENOMEM)
		swc_comm_note(op->comm, part->refused, part->member->rank, op->seq,
			      "operation %llu: rank %u cannot take part, its buffers are refused (%pe)",
			      op->seq, part->member->rank, ERR_PTR(part->refused));
}

/* ------------------------------------------------------------------ arrival */

enum arrival { ARRIVED, ARRIVED_LAST, ARRIVED_LATE, ARRIVED_DIFFERENT, ARRIVED_REFUSED };

/*
 * The part makes the operation fail. At once: a rank that arrives before this is described must not start
 * the operation. The caller counts as active, which keeps the parts until it has described what is wrong.
 */
static enum arrival arrive_unfit(struct swc_op *op, struct swc_part *part, int error, enum arrival how)
{
	op->part[part->member->rank] = part;
	if (!op->status) {
		WRITE_ONCE(op->status, error);
		op->culprit = part->member->rank;
	}
	op->nactive++;
	return how;
}

/* Put the part in its place. op->lock is held; nothing here can fail. */
static enum arrival op_arrive(struct swc_op *op, struct swc_part *part)
{
	u32 all = op->comm->nranks;

	lockdep_assert_held(&op->lock);
	kref_get(&op->ref);
	part->op = op;
	op->narrived++;
	if (op->finished)
		return ARRIVED_LATE;
	if (part->refused)
		return arrive_unfit(op, part, -ECANCELED, ARRIVED_REFUSED);
	op->part[part->member->rank] = part;
	op->runs_left += part->nruns;
	if (op->narrived == 1) {
		const struct swc_plan_header *h = part->plan->view.hdr;

		op->desc = part->desc;
		memcpy(op->algo, h->name, sizeof(op->algo));
		op->family = h->family;
		op->nparts = h->nparts;
		op->part_blocks = h->part_blocks;
		op->bytes = swc_blocks_total_bytes(&part->blocks);
	} else if (!op->status && !matches(op, part)) {
		return arrive_unfit(op, part, -EPROTO, ARRIVED_DIFFERENT);
	}
	if (op->narrived < all || op->status)
		return ARRIVED;
	op->started_at = ktime_get_ns();
	op->max_workers = min(op->runs_left, num_online_cpus());
	/* The submitter is the first worker; that keeps the operation from ending meanwhile. */
	op->nactive = 1;
	return ARRIVED_LAST;
}

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
	/* Somebody has left: only an operation that has failed before can be joined, for its error. */
	if (comm->nleft && !(there && there->seq == member->submitted && READ_ONCE(there->status)))
		return -ECONNRESET;
	return there && there->seq != member->submitted ? -EAGAIN : 0;
}

/**
 * swc_op_submit() - give a part its number and let it meet the others
 * @part: from swc_part_create(), with @complete set
 * @inline_ok: the caller is going to wait and may be used to run steps now
 *
 * Return: 0: the part will be, or already is, completed through part->complete. A negative errno: it was
 * not submitted and is still the caller's.
 */
int swc_op_submit(struct swc_part *part, bool inline_ok)
{
	struct swc_member *member = part->member;
	struct swc_comm *comm = member->comm;
	struct swc_op *op, *fresh = NULL;
	bool complete_set;
	u32 timeout_ms = part->desc.timeout_ms ?: comm->timeout_ms;
	u64 now = ktime_get_ns(), deadline = now + (u64)timeout_ms * NSEC_PER_MSEC;
	enum arrival how;
	int ret, status, culprit;
	u32 rank = member->rank;

again:
	spin_lock(&comm->lock);
	ret = may_submit(comm, member);
	if (ret) {
		spin_unlock(&comm->lock);
		if (fresh)
			swc_op_put(fresh);
		return ret;
	}
	op = comm->window[member->submitted % SWC_MAX_INFLIGHT];
	if (!op && !fresh) {
		/* First to arrive: allocate with the lock dropped, and look again. */
		spin_unlock(&comm->lock);
		fresh = op_alloc(comm);
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
		comm->window[op->seq % SWC_MAX_INFLIGHT] = op;	/* takes the first reference */
		kref_get(&op->ref);
		list_add_tail(&op->node, &comm->ops);
	}
	/* Ours until the end of this function: the part may be completed and gone before. */
	kref_get(&op->ref);
	if (deadline < op->deadline)
		op->deadline = deadline;
	member->submitted++;
	member->last_submit = now;

	spin_lock(&op->lock);
	how = op_arrive(op, part);
	if (how != ARRIVED_LATE)
		member->inflight++;
	status = op->status;
	culprit = op->culprit;
	complete_set = op->narrived == comm->nranks;
	if (complete_set)	/* everybody has found it */
		comm->window[op->seq % SWC_MAX_INFLIGHT] = NULL;
	spin_unlock(&op->lock);
	spin_unlock(&comm->lock);

	swc_stat_inc(SWC_STAT_OPS_SUBMITTED);
	trace_swc_submit(op, rank);
	switch (how) {
	case ARRIVED:
		swc_comm_watch(comm, deadline);
		break;
	case ARRIVED_LAST:
		swc_comm_watch(comm, deadline);
		swc_exec_start(op, part, inline_ok);
		break;
	case ARRIVED_LATE:
		swc_part_finish(part, part->refused ?: status, culprit);
		break;
	case ARRIVED_DIFFERENT:
		note_mismatch(op, part);
		swc_exec_leave(op);
		break;
	case ARRIVED_REFUSED:
		note_refusal(op, part);
		swc_exec_leave(op);
		break;
	}
	if (complete_set)
		swc_op_put(op);
	if (fresh)
		swc_op_put(fresh);
	swc_op_put(op);
	return 0;
}

/* ------------------------------------------------------------------ the end */

/**
 * swc_op_fail() - give an operation up
 *
 * Workers that are inside see it between two pieces; the last one to leave ends the operation. May run
 * beside everything else; only the first error counts.
 */
void swc_op_fail(struct swc_op *op, int error, int culprit)
{
	bool finish = false;

	spin_lock(&op->lock);
	if (!op->finished && !op->status) {
		/* swc_move() looks at it without the lock. */
		WRITE_ONCE(op->status, error);
		op->culprit = culprit;
	}
	if (!op->finished && !op->nactive) {
		op->finished = true;
		finish = true;
	}
	spin_unlock(&op->lock);
	if (finish)
		swc_op_finish(op);
}

/* Complete all parts. Called once, by whoever set op->finished; with no locks held. */
void swc_op_finish(struct swc_op *op)
{
	struct swc_comm *comm = op->comm;
	u32 i;

	spin_lock(&comm->lock);
	list_del_init(&op->node);
	if (op->status) {
		comm->failed++;
	} else {
		comm->completed++;
		comm->bytes += op->bytes;
	}
	for (i = 0; i < comm->nranks; i++)
		if (op->part[i])
			comm->member[i].inflight--;
	spin_unlock(&comm->lock);

	for (i = 0; i < comm->nranks; i++) {
		struct swc_part *part = op->part[i];

		/* Nobody looks at op->part[] any more: late arrivals see op->finished first. */
		op->part[i] = NULL;
		if (part)
			swc_part_finish(part, part->refused ?: op->status, op->culprit);
	}
	swc_op_put(op);
}

/* The deadline of @op has passed: abort the communicator and name who was late. */
void swc_op_expire(struct swc_op *op, u64 now)
{
	struct swc_comm *comm = op->comm;
	char who[SWC_TEXT_BYTES / 2];
	int culprit = -1, len = 0;
	u32 i, narrived, more = 0;

	who[0] = '\0';
	spin_lock(&op->lock);
	narrived = op->narrived;
	for (i = 0; i < comm->nranks && !op->finished; i++) {
		if (op->part[i])
			continue;
		if (culprit < 0)
			culprit = i;
		if (len < (int)sizeof(who) - 48)
			len += scnprintf(who + len, sizeof(who) - len, "%srank %u (pid %d, %s)",
					 len ? ", " : "", i, pid_nr(comm->member[i].pid),
					 comm->member[i].name);
		else
			more++;
	}
	spin_unlock(&op->lock);

	swc_stat_inc(SWC_STAT_TIMEOUTS);
	if (culprit < 0)
		swc_comm_abort(comm, -ETIMEDOUT, -1, op->seq,
			       "operation %llu: all %u ranks had come, but it was not done by its deadline",
			       op->seq, narrived);
	else
		swc_comm_abort(comm, -ETIMEDOUT, culprit, op->seq,
			       "operation %llu: deadline passed, %u of %u ranks had come; missing: %s%s",
			       op->seq, narrived, comm->nranks, who, more ? " and more" : "");
}
