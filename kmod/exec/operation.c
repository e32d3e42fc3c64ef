// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations: where the parts of all ranks meet, are compared, and brought to their one end.
 *
 * An operation ends exactly once: when all runs are done, or, once it has been failed, when the last worker
 * has left it; whoever sets op->finished under op->lock calls swc_op_finish().
 */
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/slab.h>

#include "comm/error.h"
#include "exec/operation.h"
#include "exec/request.h"
#include "plan/plan.h"
#include "trace.h"

static const char * const coll_names[] = {
	[SWC_ALLREDUCE] = "allreduce", [SWC_REDUCE_SCATTER] = "reduce_scatter",
	[SWC_ALLGATHER] = "allgather", [SWC_BROADCAST] = "broadcast", [SWC_REDUCE] = "reduce",
	[SWC_BARRIER] = "barrier", [SWC_ALLTOALL] = "alltoall",
};

struct swc_op *swc_op_alloc(struct swc_comm *comm)
{
	struct swc_op *op = kzalloc(struct_size(op, part, comm->nranks), GFP_KERNEL_ACCOUNT);

	if (!op)
		return NULL;
	kref_init(&op->ref);
	spin_lock_init(&op->lock);
	INIT_LIST_HEAD(&op->ready);
	INIT_LIST_HEAD(&op->gathered);
	INIT_LIST_HEAD(&op->node);
	INIT_LIST_HEAD(&op->call);
	op->culprit = -1;
	op->asked = -1;
	op->deadline = U64_MAX;
	op->look = U64_MAX;
	op->comm = comm;
	return op;
}

/* ------------------------------------------------------------------ matching */

static void describe(char *text, size_t bytes, const struct swc_desc *d, const char *algo, bool partition)
{
	snprintf(text, bytes, "%s%s(count %llu, %s, %s, root %u) by %s", partition ? "a partition of " : "",
		 coll_names[d->coll], d->count, swc_dtype_name(d->dtype), swc_redop_name(d->redop), d->root,
		 algo);
}

static bool matches(const struct swc_op *op, const struct swc_part *part)
{
	const struct swc_desc *a = &op->desc, *b = &part->desc;
	const struct swc_plan_header *h = part->plan->view.hdr;

	return a->coll == b->coll && a->dtype == b->dtype && a->redop == b->redop &&
	       a->count == b->count && a->root == b->root && op->family == h->family &&
	       op->nparts == h->nparts && op->part_blocks == h->part_blocks && op->parted == !!part->parted;
}

/* Say who differs in what; part @part differs from the one that arrived first. */
void swc_op_note_mismatch(struct swc_op *op, struct swc_part *part)
{
	char *text = kmalloc(2 * SWC_TEXT_BYTES, GFP_KERNEL);
	const struct swc_part *first = NULL;
	u32 i;

	for (i = 0; i < op->comm->nlocal && !first; i++)
		if (op->part[op->comm->local[i]] != part)
			first = op->part[op->comm->local[i]];
	swc_stat_inc(SWC_STAT_MISMATCHES);
	if (!text)
		return;
	describe(text, SWC_TEXT_BYTES, &part->desc, part->plan->view.hdr->name, part->parted);
	describe(text + SWC_TEXT_BYTES, SWC_TEXT_BYTES, &op->desc, op->algo, op->parted);
	swc_fault_note(op->comm, -EPROTO, part->member->rank, op->seq,
		      "operation %llu: rank %u called %s, but rank %d called %s", op->seq,
		      part->member->rank, text, first ? (int)first->member->rank : -1,
		      text + SWC_TEXT_BYTES);
	kfree(text);
}

/* Likewise when a message of another node shows it. */
void swc_op_note_remote_mismatch(struct swc_op *op, u32 rank, const struct swc_wire_msg *msg)
{
	char *text = kmalloc(2 * SWC_TEXT_BYTES, GFP_KERNEL);

	swc_stat_inc(SWC_STAT_MISMATCHES);
	if (!text)
		return;
	describe(text, SWC_TEXT_BYTES, &msg->sig, msg->family == op->family ? op->algo : "another plan",
		 msg->partition);
	describe(text + SWC_TEXT_BYTES, SWC_TEXT_BYTES, &op->desc, op->algo, op->parted);
	swc_fault_note(op->comm, -EPROTO, rank, op->seq,
		      "operation %llu: rank %u called %s, but rank %u called %s", op->seq, rank, text,
		      op->comm->local[0], text + SWC_TEXT_BYTES);
	kfree(text);
}

void swc_op_note_refusal(struct swc_op *op, const struct swc_part *part)
{
	/* Where memory is short, part.c has explained it already. */
	if (part->refused != -ENOMEM)
		swc_fault_note(op->comm, part->refused, part->member->rank, op->seq,
			      "operation %llu: rank %u cannot take part, its buffers are refused (%pe)",
			      op->seq, part->member->rank, ERR_PTR(part->refused));
}

/* ------------------------------------------------------------------ arrival */

/*
 * The part makes the operation fail. At once: a rank that arrives before this is described must not start
 * the operation. The caller counts as active, which keeps the parts until it has described what is wrong.
 */
static enum swc_arrival arrive_unfit(struct swc_op *op, struct swc_part *part, int error,
				     enum swc_arrival how)
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
enum swc_arrival swc_op_arrive(struct swc_op *op, struct swc_part *part)
{
	u32 all = op->comm->nlocal;

	lockdep_assert_held(&op->lock);
	kref_get(&op->ref);
	part->op = op;
	op->narrived++;
	if (op->finished)
		return SWC_ARRIVED_LATE;
	if (part->refused)
		return arrive_unfit(op, part, -ECANCELED, SWC_ARRIVED_REFUSED);
	op->part[part->member->rank] = part;
	op->runs_left += part->nruns;
	if (op->narrived == 1) {
		const struct swc_plan_header *h = part->plan->view.hdr;

		op->desc = part->desc;
		memcpy(op->algo, h->name, sizeof(op->algo));
		op->family = h->family;
		op->nparts = h->nparts;
		op->part_blocks = h->part_blocks;
		op->parted = part->parted;
		op->bytes = swc_blocks_total_bytes(&part->blocks);
	} else if (!op->status && !matches(op, part)) {
		return arrive_unfit(op, part, -EPROTO, SWC_ARRIVED_DIFFERENT);
	}
	if (op->narrived < all || op->status)
		return SWC_ARRIVED;
	op->started_at = ktime_get_ns();
	op->nruns = op->runs_left;
	op->max_workers = min(op->nruns, num_online_cpus());
	/* The submitter is the first worker; that keeps the operation from ending meanwhile. */
	op->nactive = 1;
	return SWC_ARRIVED_LAST;
}

/* ------------------------------------------------------------------ the end */

/**
 * swc_op_over() - is this the moment that the operation ends? op->lock is held
 *
 * True once: then the caller drops the lock and calls swc_op_finish(). Not before connections have given back
 * all that they have of it: they read and write its memory.
 */
bool swc_op_over(struct swc_op *op)
{
	lockdep_assert_held(&op->lock);
	if (op->finished || op->nactive || op->nposted || (!op->status && op->runs_left))
		return false;
	op->finished = true;
	return true;
}

/**
 * swc_op_fail() - give an operation up; comm->lock is held
 *
 * Workers that are inside see it between two pieces; the last one to leave ends the operation. May run
 * beside everything else; only the first error counts.
 *
 * Return: true: this is the end, and the caller calls swc_op_finish() when it has dropped the lock.
 */
bool swc_op_fail(struct swc_op *op, int error, int culprit)
{
	bool over;

	lockdep_assert_held(&op->comm->lock);
	spin_lock(&op->lock);
	if (!op->finished && !op->status) {
		/* swc_move() looks at it without the lock. */
		WRITE_ONCE(op->status, error);
		op->culprit = culprit;
	}
	over = swc_op_over(op);
	spin_unlock(&op->lock);
	return over;
}

/* Others may be the first ones now: see rdma/send.c. comm->lock is held. */
static void note_first(struct swc_comm *comm)
{
	const struct swc_op *first = list_first_entry_or_null(&comm->ops, struct swc_op, node);
	const struct swc_op *call = list_first_entry_or_null(&comm->calls, struct swc_op, call);

	WRITE_ONCE(comm->oldest, first ? first->seq : U64_MAX);
	WRITE_ONCE(comm->favoured, call ? call->seq : U64_MAX);
}

/*
 * The operation with this number, if not all ranks have reached it or it has not ended. comm->lock is held.
 */
struct swc_op *swc_op_find(struct swc_comm *comm, u64 seq)
{
	struct swc_op *op;

	lockdep_assert_held(&comm->lock);
	hash_for_each_possible(comm->by_seq, op, slot, seq)
		if (op->seq == seq)
			return op;
	return NULL;
}

/* Take a new operation into the communicator's tables. comm->lock is held; the caller keeps its reference. */
void swc_op_enter(struct swc_op *op, u64 seq)
{
	struct swc_comm *comm = op->comm;

	lockdep_assert_held(&comm->lock);
	op->seq = seq;
	kref_get(&op->ref);
	hash_add(comm->by_seq, &op->slot, seq);
	kref_get(&op->ref);
	list_add_tail(&op->node, &comm->ops);
	if (op->reserved)
		WRITE_ONCE(comm->nparted, comm->nparted + 1);
	else
		list_add_tail(&op->call, &comm->calls);
	note_first(comm);
}

/*
 * All ranks have reached the operation, or it has ended: when both are true nobody will look for it again.
 * comm->lock is held, and the caller has a reference.
 */
void swc_op_settle(struct swc_op *op)
{
	lockdep_assert_held(&op->comm->lock);
	if (!READ_ONCE(op->finished) || READ_ONCE(op->narrived) < op->comm->nlocal ||
	    !list_empty(&op->node) || hlist_unhashed(&op->slot))
		return;
	hash_del(&op->slot);
	swc_op_put(op);
}

/* Complete all parts. Called once, by whoever set op->finished; with no locks held. */
void swc_op_finish(struct swc_op *op)
{
	struct swc_comm *comm = op->comm;
	u32 i;

	/* The last part may be what keeps it. */
	kref_get(&comm->ref);
	spin_lock(&comm->lock);
	list_del_init(&op->node);
	if (list_empty(&op->call))
		WRITE_ONCE(comm->nparted, comm->nparted - 1);
	list_del_init(&op->call);
	note_first(comm);
	swc_op_settle(op);
	/* One that was only reserved never was. */
	if (op->narrived)
		memcpy(comm->algo, op->algo, sizeof(comm->algo));
	if (op->status) {
		comm->failed += !!op->narrived;
	} else {
		comm->completed++;
		comm->bytes += op->bytes;
	}
	for (i = 0; i < comm->nlocal; i++)
		if (op->part[comm->local[i]])
			comm->member[comm->local[i]].inflight--;
	spin_unlock(&comm->lock);

	/* Of a part's memory, all of them may have some ready for engines. */
	for (i = 0; i < comm->nlocal && op->status; i++)
		if (op->part[comm->local[i]])
			swc_part_cancel(op->part[comm->local[i]]);
	for (i = 0; i < comm->nlocal; i++) {
		struct swc_part *part = op->part[comm->local[i]];

		/* Nobody looks at op->part[] any more: late arrivals see op->finished first. */
		op->part[comm->local[i]] = NULL;
		if (part)
			swc_part_finish(part, part->refused ?: op->status, op->culprit);
	}
	if (comm->net)
		swc_net_pump(comm->net);
	swc_op_put(op);
	swc_comm_put(comm);
}

/* The rank of another node that a run waits for, or -1; op->lock is held. */
static int run_waits_for(const struct swc_run *run)
{
	const struct swc_plan *plan = run->part->plan;
	u32 i;

	if (run->state == SWC_RUN_WAIT_RECV)
		return swc_comm_is_local(run->part->op->comm, run->wait_rank) ? -1 : run->wait_rank;
	/* Somebody must take what it has sent. */
	for (i = 0; plan->links && i < plan->links->ahead * plan->view.max_sends; i++)
		if (run->out[i].run && !run->out[i].done)
			return run->out[i].peer;
	return -1;
}

/**
 * swc_op_waits_for() - a rank of another node that an operation waits for, or -1
 */
int swc_op_waits_for(struct swc_op *op)
{
	struct swc_comm *comm = op->comm;
	int rank = -1;
	u32 i, c;

	spin_lock(&op->lock);
	for (i = 0; i < comm->nlocal && !op->finished && rank < 0; i++) {
		const struct swc_part *part = op->part[comm->local[i]];

		for (c = 0; part && c < part->nruns && rank < 0; c++)
			rank = run_waits_for(&part->runs[c]);
	}
	spin_unlock(&op->lock);
	return rank;
}

/**
 * swc_op_missing() - who has not come to an operation
 * @op: operation
 * @text: gets their names, as many as fit; empty if all have come
 * @bytes: room at @text
 *
 * Return: the first of them, or -1.
 */
int swc_op_missing(struct swc_op *op, char *text, size_t bytes)
{
	struct swc_comm *comm = op->comm;
	int first = -1, len = 0;
	u32 i, more = 0;

	text[0] = '\0';
	spin_lock(&op->lock);
	for (i = 0; i < comm->nlocal && !op->finished; i++) {
		u32 rank = comm->local[i];

		if (op->part[rank])
			continue;
		if (first < 0)
			first = rank;
		if (len < (int)bytes - 64)
			len += scnprintf(text + len, bytes - len, "%srank %u (pid %d, %s)",
					 len ? ", " : "", rank, pid_nr(comm->member[rank].pid),
					 comm->member[rank].name);
		else
			more++;
	}
	spin_unlock(&op->lock);
	if (more)
		scnprintf(text + len, bytes - len, " and %u more", more);
	return first;
}
