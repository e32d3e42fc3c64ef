// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations: where the requests of all ranks meet and end together; match.c brings them there.
 *
 * An operation ends exactly once: when all tasks are done, or, once it has failed, when the last worker has
 * left and connections and engines have returned everything they hold. swc_op_claim_finish() tells the one
 * caller that then calls swc_op_finish(). The first error wins, in swc_op_set_error().
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "exec/operation.h"
#include "exec/request.h"
#include "plan/plan.h"
#include "trace.h"

/* ------------------------------------------------------------------ the end */

/**
 * swc_op_set_error() - fail an operation; op->lock is held
 * @error: negative errno
 * @culprit: rank at fault or -1
 *
 * Only the first error counts, and none after the operation has finished. Workers inside see it between two
 * pieces of work; the last one to leave ends the operation.
 */
void swc_op_set_error(struct swc_op *op, int error, int culprit)
{
	lockdep_assert_held(&op->lock);
	if (op->finished || op->status)
		return;
	/* swc_reduce_copy() reads it without the lock. */
	WRITE_ONCE(op->status, error);
	op->culprit = culprit;
}

/**
 * swc_op_claim_finish() - end the operation if nothing keeps it; op->lock is held
 *
 * Connections and engines keep it as long as they hold anything of it: they read and write its memory.
 *
 * Return: true, once: the caller drops the lock and calls swc_op_finish().
 */
bool swc_op_claim_finish(struct swc_op *op)
{
	lockdep_assert_held(&op->lock);
	if (op->finished || op->nactive || op->nposted || (!op->status && op->tasks_left))
		return false;
	op->finished = true;
	return true;
}

/* Publish the first operations in flight, to which transports give precedence. comm->lock is held. */
static void update_oldest(struct swc_comm *comm)
{
	const struct swc_op *first = list_first_entry_or_null(&comm->ops, struct swc_op, node);
	const struct swc_op *call = list_first_entry_or_null(&comm->calls, struct swc_op, call);

	WRITE_ONCE(comm->window.oldest, first ? first->seq : U64_MAX);
	WRITE_ONCE(comm->window.oldest_call, call ? call->seq : U64_MAX);
}

/* The operation with this number, unless all ranks have reached it and it has ended. comm->lock is held. */
struct swc_op *swc_op_find(struct swc_comm *comm, u64 seq)
{
	struct swc_op *op;

	lockdep_assert_held(&comm->lock);
	hash_for_each_possible(comm->by_seq, op, hash_node, seq)
		if (op->seq == seq)
			return op;
	return NULL;
}

/**
 * swc_op_get_started() - the operation with this number, if it runs
 *
 * Return: the operation, with a reference; NULL if not all ranks of this node have arrived, or it has ended.
 */
struct swc_op *swc_op_get_started(struct swc_comm *comm, u64 seq)
{
	struct swc_op *op;

	spin_lock(&comm->lock);
	op = swc_op_find(comm, seq);
	if (op && READ_ONCE(op->started_at) && !READ_ONCE(op->finished))
		kref_get(&op->ref);
	else
		op = NULL;
	spin_unlock(&comm->lock);
	return op;
}

/* Add a new operation to the communicator's tables. comm->lock is held; the caller keeps its reference. */
void swc_op_insert(struct swc_op *op, u64 seq)
{
	struct swc_comm *comm = op->comm;

	lockdep_assert_held(&comm->lock);
	op->seq = seq;
	kref_get(&op->ref);
	hash_add(comm->by_seq, &op->hash_node, seq);
	kref_get(&op->ref);
	list_add_tail(&op->node, &comm->ops);
	if (op->reserved)
		WRITE_ONCE(comm->window.npartitioned, comm->window.npartitioned + 1);
	else
		list_add_tail(&op->call, &comm->calls);
	update_oldest(comm);
}

/*
 * Remove the operation from the table if all ranks have reached it and it has ended: no rank looks for it any
 * more. comm->lock is held, and the caller has a reference.
 */
void swc_op_retire(struct swc_op *op)
{
	lockdep_assert_held(&op->comm->lock);
	if (!READ_ONCE(op->finished) || READ_ONCE(op->narrived) < op->comm->nlocal ||
	    !list_empty(&op->node) || hlist_unhashed(&op->hash_node))
		return;
	hash_del(&op->hash_node);
	swc_op_put(op);
}

/* Complete all requests. Called once, by the caller that swc_op_claim_finish() chose; no locks held. */
void swc_op_finish(struct swc_op *op)
{
	struct swc_comm *comm = op->comm;
	u64 now = ktime_get_ns();
	u32 i;

	/* The last request may hold the last reference. */
	kref_get(&comm->ref);
	spin_lock(&comm->lock);
	list_del_init(&op->node);
	if (list_empty(&op->call))
		WRITE_ONCE(comm->window.npartitioned, comm->window.npartitioned - 1);
	list_del_init(&op->call);
	update_oldest(comm);
	swc_op_retire(op);
	/* A number that was only reserved is not an operation. */
	if (op->narrived)
		memcpy(comm->algo, op->algo, sizeof(comm->algo));
	if (op->status) {
		comm->failed += !!op->narrived;
	} else {
		comm->completed++;
		comm->bytes += op->bytes;
	}
	for (i = 0; i < comm->nlocal; i++) {
		struct swc_member *member = &comm->member[comm->local[i]];

		if (!op->req[i])
			continue;
		member->inflight--;
		member->ready_partitions -= !!op->req[i]->partitioned;
	}
	spin_unlock(&comm->lock);

	/* Tasks of any request may have prepared engines for the memory of this one. */
	for (i = 0; i < comm->nlocal && op->status; i++)
		if (op->req[i])
			swc_req_drop_prepared(op->req[i]);
	for (i = 0; i < comm->nlocal; i++) {
		struct swc_req *req = op->req[i];

		/* op->req[] is not read any more: late arrivals see op->finished first. */
		op->req[i] = NULL;
		if (req)
			swc_req_complete(req, req->refused ?: op->status, op->culprit, now);
	}
	if (comm->net)
		swc_net_pump(comm->net);
	swc_op_put(op);
	swc_comm_put(comm);
}

/* ------------------------------------------------------------------ who is awaited */

/*
 * The first of the messages of a step, by its place in the task's window, that a peer has not received;
 * NULL: none. op->lock is held.
 */
static const struct swc_send *first_pending(const struct swc_task *task, u32 place)
{
	u32 i, n = task->req->plan->net->max_sends[task->channel];
	const struct swc_send *sends = &task->sends[place * n];

	for (i = 0; i < n; i++)
		if (sends[i].task && !sends[i].done)
			return &sends[i];
	return NULL;
}

/*
 * The rank of another node that a task waits for, or -1; op->lock is held. Only steps that have messages
 * pending are searched: the search ends in the first of them. All records of an operation may be millions.
 */
static int task_awaited_peer(const struct swc_task *task)
{
	const struct swc_send *send = NULL;
	u32 i;

	if (task->state == SWC_TASK_WAIT_RECV)
		return swc_comm_is_local(task->req->op->comm, task->wait_rank) ? -1 : task->wait_rank;
	if (!task->req->plan->net)
		return -1;
	/* A peer must receive what it has sent. */
	for (i = 0; i < task->window.size && !send; i++)
		if (task->window.pending[i])
			send = first_pending(task, i);
	return send ? send->peer : -1;
}

/**
 * swc_op_awaited_peer() - a rank of another node that an operation waits for, or -1
 */
int swc_op_awaited_peer(struct swc_op *op)
{
	struct swc_comm *comm = op->comm;
	int rank = -1;
	u32 i, c;

	spin_lock(&op->lock);
	for (i = 0; i < comm->nlocal && !op->finished && rank < 0; i++) {
		const struct swc_req *req = op->req[i];

		for (c = 0; req && c < req->ntasks && rank < 0; c++)
			rank = task_awaited_peer(&req->tasks[c]);
	}
	spin_unlock(&op->lock);
	return rank;
}

/**
 * swc_op_list_missing() - list the ranks of this node that have not arrived
 * @op: operation
 * @text: gets their names, as many as fit; empty if all have arrived
 * @bytes: room at @text
 *
 * Return: the first of them, or -1.
 */
int swc_op_list_missing(struct swc_op *op, char *text, size_t bytes)
{
	struct swc_comm *comm = op->comm;
	int first = -1, len = 0;
	u32 i, more = 0;

	text[0] = '\0';
	spin_lock(&op->lock);
	for (i = 0; i < comm->nlocal && !op->finished; i++) {
		u32 rank = comm->local[i];

		if (op->req[i])
			continue;
		if (first < 0)
			first = rank;
		if (len < (int)bytes - 64)
			len += scnprintf(text + len, bytes - len, "%s" SWC_MEMBER_FMT,
					 len ? ", " : "", SWC_MEMBER_ARGS(&comm->member[rank]));
		else
			more++;
	}
	spin_unlock(&op->lock);
	if (more)
		scnprintf(text + len, bytes - len, " and %u more", more);
	return first;
}

/* ------------------------------------------------------------------ all operations of a communicator */

/*
 * The error of an operation that the end of its communicator ends. -ECANCELED says that all ranks get it for
 * this operation. Others may have ended with success on other nodes.
 */
static int error_of(const struct swc_comm *comm, const struct swc_op *op)
{
	return comm->net && comm->error == -ECANCELED && op->seq != comm->error_seq ? -ECONNABORTED :
										     comm->error;
}

/**
 * swc_ops_fail() - fail the operations of a communicator that is being aborted; comm->lock is held
 */
void swc_ops_fail(struct swc_comm *comm)
{
	struct swc_op *op;

	lockdep_assert_held(&comm->lock);
	list_for_each_entry(op, &comm->ops, node) {
		spin_lock(&op->lock);
		swc_op_set_error(op, error_of(comm, op), comm->culprit);
		spin_unlock(&op->lock);
	}
}

/**
 * swc_ops_finish_failed() - end the failed operations that nothing keeps
 *
 * The others end when their last worker leaves or the last message comes back. No operation can be added any
 * more. Called with no locks held.
 */
void swc_ops_finish_failed(struct swc_comm *comm)
{
	struct swc_op *op, *next;
	LIST_HEAD(over);

	spin_lock(&comm->lock);
	list_for_each_entry_safe(op, next, &comm->ops, node) {
		spin_lock(&op->lock);
		if (swc_op_claim_finish(op)) {
			kref_get(&op->ref);
			list_move_tail(&op->node, &over);
		}
		spin_unlock(&op->lock);
	}
	spin_unlock(&comm->lock);
	list_for_each_entry_safe(op, next, &over, node) {
		swc_op_finish(op);
		swc_op_put(op);
	}
}

/**
 * swc_ops_first_from() - the first operation in flight with a number of at least @seq; comm->lock is held
 *
 * Return: its number; U64_MAX if there is none.
 */
u64 swc_ops_first_from(const struct swc_comm *comm, u64 seq)
{
	const struct swc_op *op;
	u64 first = U64_MAX;

	lockdep_assert_held(&comm->lock);
	list_for_each_entry(op, &comm->ops, node)
		if (op->seq >= seq)
			first = min(first, op->seq);
	return first;
}

/**
 * swc_ops_free() - drop the operations that not all ranks have reached, and spare memory; the communicator is
 * being freed
 */
void swc_ops_free(struct swc_comm *comm)
{
	struct hlist_node *next;
	struct swc_op *op;
	u32 i;

	hash_for_each_safe(comm->by_seq, i, next, op, hash_node)
		swc_op_put(op);
	for (i = 0; i < comm->nlocal; i++)
		swc_req_free_spare(&comm->member[comm->local[i]]);
	swc_op_free_spare(comm);
}
