// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events from the transport: segments that arrive, and what connections return. A task that waited for an
 * event continues in its context, for a short time slice (exec/worker.c): completion handlers share kernel
 * threads with those of other users.
 */
#include "comm/comm.h"
#include "exec/event.h"
#include "exec/mismatch.h"
#include "exec/net_event.h"
#include "exec/runq.h"
#include "exec/step.h"
#include "exec/worker.h"
#include "plan/plan.h"

/* ------------------------------------------------------------------ segments */

/* Does the task wait for this segment? */
static bool is_awaited(const struct swc_task *task, const struct swc_net_seg *seg)
{
	return task->state == SWC_TASK_WAIT_RECV && task->wait_rank == seg->src &&
	       task->wait_ordinal == seg->msg.ordinal;
}

/* The task that receives the segment, or NULL; op->lock is held. */
static struct swc_task *receiver_of(struct swc_op *op, const struct swc_net_seg *seg)
{
	return op->finished ? NULL : swc_op_task(op, seg->dst, seg->channel);
}

static bool has_waiting_receiver(struct swc_comm *comm, const struct swc_net_seg *seg)
{
	struct swc_op *op = swc_op_get_started(comm, seg->msg.seq);
	const struct swc_task *task;
	bool awaited;

	if (!op)
		return false;
	spin_lock(&op->lock);
	task = receiver_of(op, seg);
	awaited = task && is_awaited(task, seg);
	spin_unlock(&op->lock);
	swc_op_put(op);
	return awaited;
}

/*
 * Copy a segment of a partition out of its receive buffer, unless a task waits for it or memory is short:
 * ranks mark partitions ready in any order, and those that all ranks have marked must find receive buffers.
 */
static struct swc_net_seg *free_rx_buf(struct swc_comm *comm, struct swc_net_seg *seg)
{
	struct swc_net_seg *copy;

	if (!seg->msg.sig.partitioned || seg->unexpected || has_waiting_receiver(comm, seg))
		return seg;
	copy = swc_conn_copy_unexpected(seg);
	if (!copy)
		return seg;
	swc_conn_release(seg);
	return copy;
}

/*
 * The operation of a segment, with a reference, if it has started. Otherwise NULL, and the segment is
 * queued as unexpected, or is a stray: no operation will take it.
 */
static struct swc_op *find_or_queue(struct swc_comm *comm, struct swc_net_seg *seg, bool *stray)
{
	struct swc_op *op;

	lockdep_assert_held(&comm->lock);
	op = swc_op_find(comm, seg->msg.seq);
	if (op && op->started_at && !op->finished) {
		kref_get(&op->ref);
		return op;
	}
	*stray = comm->status == SWC_COMM_ABORTED ||
		 ((!op || op->finished) && seg->msg.seq < comm->member[seg->dst].next_seq);
	if (!*stray)
		list_add_tail(&seg->node, &comm->unexpected[seg->msg.seq % SWC_UNEXPECTED_LISTS]);
	return NULL;
}

/* End the communicator if another node has called something else. Return: true if it has. */
static bool abort_if_mismatch(struct swc_comm *comm, struct swc_op *op, u32 src,
			      const struct swc_wire_msg *msg)
{
	if (swc_signature_equal(&op->sig, &msg->sig))
		return false;
	swc_mismatch_abort(op, src, msg);
	return true;
}

/* Put a segment into the inbox of its task, and run the task if it waits for the segment. */
static void deliver(struct swc_op *op, struct swc_net_seg *seg)
{
	struct swc_task *task;
	bool run = false;

	spin_lock(&op->lock);
	task = op->status ? NULL : receiver_of(op, seg);
	if (task) {
		list_add_tail(&seg->node, &task->inbox);
		run = is_awaited(task, seg) && swc_runq_resume(op, task);
	}
	spin_unlock(&op->lock);
	if (!task)
		swc_conn_release(seg);
	if (run)
		swc_worker_run(op, SWC_STAT_WORKER_EVENT);
}

/**
 * swc_net_event_segment() - a segment has arrived from another node
 *
 * The segments of a connection are delivered one after the other and keep that order in the task's inbox.
 */
void swc_net_event_segment(struct swc_comm *comm, struct swc_net_seg *seg)
{
	u64 seq = seg->msg.seq;
	bool stray = false;
	u32 src = seg->src;
	struct swc_op *op;

	swc_event_segment(comm, seg);
	seg = free_rx_buf(comm, seg);
	spin_lock(&comm->lock);
	op = find_or_queue(comm, seg, &stray);
	spin_unlock(&comm->lock);
	if (stray) {
		swc_comm_abort(comm, -EPROTO, src, seq,
			       "operation %llu: rank %u sends more than its receivers' plans take", seq, src);
		swc_conn_release(seg);
	}
	if (!op)
		return;
	abort_if_mismatch(comm, op, src, &seg->msg);
	deliver(op, seg);
	swc_op_put(op);
}

/**
 * swc_net_event_take_unexpected() - give an operation that starts the segments that arrived before
 * @op: the operation; its lock and the communicator's have been held since it started, so what arrives from
 *	now on is delivered behind these segments
 * @unmatched: gets the segments that no task of the operation receives, for swc_net_event_refuse()
 */
void swc_net_event_take_unexpected(struct swc_op *op, struct list_head *unmatched)
{
	struct list_head *list = &op->comm->unexpected[op->seq % SWC_UNEXPECTED_LISTS];
	struct swc_net_seg *seg, *next;

	lockdep_assert_held(&op->comm->lock);
	lockdep_assert_held(&op->lock);
	list_for_each_entry_safe(seg, next, list, node) {
		struct swc_task *task = NULL;

		if (seg->msg.seq != op->seq)
			continue;
		if (swc_signature_equal(&op->sig, &seg->msg.sig))
			task = swc_op_task(op, seg->dst, seg->channel);
		list_move_tail(&seg->node, task ? &task->inbox : unmatched);
	}
}

/**
 * swc_net_event_refuse() - report unexpected segments that match no task, and release them
 */
void swc_net_event_refuse(struct swc_comm *comm, struct list_head *unmatched)
{
	struct swc_net_seg *seg, *next;

	list_for_each_entry_safe(seg, next, unmatched, node) {
		list_del(&seg->node);
		swc_net_event_segment(comm, seg);
	}
}

/**
 * swc_net_event_drop_unexpected() - release the segments of operations that no rank of this node will submit
 */
void swc_net_event_drop_unexpected(struct swc_comm *comm)
{
	struct swc_net_seg *seg, *next;
	LIST_HEAD(unexpected);
	u32 i;

	spin_lock(&comm->lock);
	for (i = 0; i < SWC_UNEXPECTED_LISTS; i++)
		list_splice_init(&comm->unexpected[i], &unexpected);
	spin_unlock(&comm->lock);
	list_for_each_entry_safe(seg, next, &unexpected, node) {
		swc_conn_release(seg);
		cond_resched();
	}
}

/* ------------------------------------------------------------------ messages and offers */

/* Is the task at its fence, and may it pass? op->lock is held. */
static bool passes_fence(const struct swc_task *task)
{
	return task->state == SWC_TASK_WAIT_FENCE && swc_remote_fence_passed(task);
}

/**
 * swc_net_event_sent() - a connection has returned a message: its memory is free
 */
void swc_net_event_sent(struct swc_send *send, int error, bool nested)
{
	struct swc_task *task = send->task;
	struct swc_op *op = task->req->op;
	enum swc_worker_action action;

	swc_event_message(task, SWC_TRACE_SENT, send->peer, send->step);
	spin_lock(&op->lock);
	send->done = true;
	swc_send_window_del(&task->window, send->step);
	action = swc_worker_returned(op, !error && passes_fence(task) ? task : NULL, error, nested);
	spin_unlock(&op->lock);
	swc_worker_do(op, action);
}

/**
 * swc_net_event_rndv_done() - a message has been written into place
 */
void swc_net_event_rndv_done(struct swc_rndv *rndv)
{
	struct swc_task *task = rndv->task;
	struct swc_op *op = task->req->op;
	bool run = false;

	swc_event_message(task, SWC_TRACE_PLACED, rndv->src, rndv->step);
	spin_lock(&op->lock);
	rndv->done = true;
	if (!op->status && task->state == SWC_TASK_WAIT_RECV && task->wait_rank == rndv->src)
		run = swc_runq_resume(op, task);
	/* The operation may be over when its last task is done. */
	kref_get(&op->ref);
	spin_unlock(&op->lock);
	if (run)
		swc_worker_run(op, SWC_STAT_WORKER_EVENT);
	swc_op_put(op);
}

/**
 * swc_net_event_rndv_closed() - a connection has returned an offer: the peer cannot write there any more
 *
 * An error does not matter if the whole message had been written before.
 */
void swc_net_event_rndv_closed(struct swc_rndv *rndv, int error)
{
	struct swc_task *task = rndv->task;
	struct swc_op *op = task->req->op;
	enum swc_worker_action action;

	spin_lock(&op->lock);
	task->rndvs_pending[rndv->step % task->req->plan->net->rndv_window]--;
	if (rndv->done)
		error = 0;
	action = swc_worker_returned(op, !error && passes_fence(task) ? task : NULL, error, false);
	spin_unlock(&op->lock);
	swc_worker_do(op, action);
}

/* ------------------------------------------------------------------ mismatches */

/**
 * swc_net_event_mismatch() - a peer offers memory for another message than is sent to it
 */
void swc_net_event_mismatch(struct swc_comm *comm, u32 src, const struct swc_wire_msg *msg)
{
	struct swc_op *op;

	spin_lock(&comm->lock);
	op = swc_op_find(comm, msg->seq);
	if (op)
		kref_get(&op->ref);
	spin_unlock(&comm->lock);
	if (!op)
		return;
	if (!abort_if_mismatch(comm, op, src, msg))
		swc_comm_abort(comm, -EPROTO, src, op->seq,
			       "operation %llu: rank %u takes a message of %llu bytes, but another is sent to it",
			       op->seq, src, msg->total);
	swc_op_put(op);
}

/**
 * swc_net_event_rts() - a peer has waited for a while for an offer to write a message to
 *
 * It may have to wait for long. But if all ranks of this node have called something else, it would wait for
 * ever.
 */
void swc_net_event_rts(struct swc_comm *comm, u32 src, const struct swc_wire_msg *msg)
{
	struct swc_op *op = swc_op_get_started(comm, msg->seq);

	if (!op)
		return;
	abort_if_mismatch(comm, op, src, msg);
	swc_op_put(op);
}
