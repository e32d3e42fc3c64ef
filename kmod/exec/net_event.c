// SPDX-License-Identifier: GPL-2.0-only
/*
 * News from other nodes and from DMA engines: segments that have come, and what connections and engines give
 * back. Runs that have waited for it go on here, in the context that brings it.
 */
#include "comm/comm.h"
#include "dma.h"
#include "exec/worker.h"
#include "exec/net_event.h"
#include "exec/operation.h"
#include "plan/plan.h"
#include "exec/runq.h"
#include "exec/step.h"

/*
 * The operation that a segment is for, with a reference, if all ranks of this node have come to it. Otherwise
 * the segment waits for that.
 */
static struct swc_op *find_started(struct swc_comm *comm, struct swc_seg *seg, bool *stray)
{
	struct swc_op *op;

	lockdep_assert_held(&comm->lock);
	op = swc_op_find(comm, seg->msg.seq);
	if (op && op->started_at && !op->finished) {
		kref_get(&op->ref);
		return op;
	}
	*stray = comm->status == SWC_COMM_ABORTED ||
		 ((!op || op->finished) && seg->msg.seq < comm->member[seg->dst].submitted);
	if (!*stray)
		list_add_tail(&seg->node, &comm->early[seg->msg.seq % SWC_EARLY]);
	return NULL;
}

/* Another node has come to the operation by another call: the communicator ends. */
static bool end_if_differs(struct swc_comm *comm, struct swc_op *op, u32 src, const struct swc_wire_msg *msg)
{
	if (swc_op_is_call(op, msg))
		return false;
	swc_op_note_remote_mismatch(op, src, msg);
	swc_comm_abort(comm, -EPROTO, src, op->seq, NULL);
	return true;
}

/* Is this what the run waits for? */
static bool awaits(const struct swc_run *run, const struct swc_seg *seg)
{
	return run->state == SWC_RUN_WAIT_RECV && run->wait_rank == seg->src &&
	       run->wait_ordinal == seg->msg.ordinal;
}

static bool is_awaited(struct swc_comm *comm, const struct swc_seg *seg)
{
	const struct swc_run *run = NULL;
	bool awaited = false;
	struct swc_op *op;

	spin_lock(&comm->lock);
	op = swc_op_find(comm, seg->msg.seq);
	if (op) {
		spin_lock(&op->lock);
		if (op->started_at && !op->finished)
			run = swc_run_of(op, seg->dst, seg->channel);
		awaited = run && awaits(run, seg);
		spin_unlock(&op->lock);
	}
	spin_unlock(&comm->lock);
	return awaited;
}

/*
 * A segment of a partition that is not awaited gives its slot free, if there is memory to copy it to: ranks
 * mark partitions ready in any order, and those that all have marked must find slots.
 */
static struct swc_seg *out_of_slot(struct swc_comm *comm, struct swc_seg *seg)
{
	struct swc_seg *copy;

	if (!seg->msg.partition || seg->spilled || is_awaited(comm, seg))
		return seg;
	copy = swc_conn_spill(seg);
	if (!copy)
		return seg;
	swc_conn_release(seg);
	return copy;
}

/**
 * swc_news_deliver() - a segment has come from another node
 *
 * Those of one connection come one after the other, and are to be in this order in the run's inbox.
 */
void swc_news_deliver(struct swc_comm *comm, struct swc_seg *seg)
{
	bool stray = false, work = false, taken = false;
	u32 src = seg->src;
	struct swc_run *run;
	struct swc_op *op;

	seg = out_of_slot(comm, seg);
	spin_lock(&comm->lock);
	op = find_started(comm, seg, &stray);
	spin_unlock(&comm->lock);
	if (stray) {
		swc_comm_abort(comm, -EPROTO, src, seg->msg.seq,
			       "operation %llu: rank %u sends more than its receivers' plans take",
			       seg->msg.seq, src);
		swc_conn_release(seg);
	}
	if (!op)
		return;
	end_if_differs(comm, op, src, &seg->msg);
	spin_lock(&op->lock);
	if (!op->finished && !op->status) {
		run = swc_run_of(op, seg->dst, seg->channel);
		if (run) {
			list_add_tail(&seg->node, &run->inbox);
			taken = true;
			work = awaits(run, seg) && swc_run_resume(op, run);
		}
	}
	spin_unlock(&op->lock);
	if (!taken)
		swc_conn_release(seg);
	if (work)
		swc_exec_help(op, SWC_STAT_RUN_WORKER);
	swc_op_put(op);
}

/**
 * swc_news_early() - segments that came before all ranks of this node had come to the operation
 * @op: it starts; its lock and the communicator's are held since then: what comes from now on comes behind
 * @odd: those that fit nothing, for swc_news_odd()
 */
void swc_news_early(struct swc_op *op, struct list_head *odd)
{
	struct swc_seg *seg, *next;

	lockdep_assert_held(&op->comm->lock);
	lockdep_assert_held(&op->lock);
	list_for_each_entry_safe(seg, next, &op->comm->early[op->seq % SWC_EARLY], node) {
		struct swc_run *run = NULL;

		if (seg->msg.seq != op->seq)
			continue;
		if (swc_op_is_call(op, &seg->msg))
			run = swc_run_of(op, seg->dst, seg->channel);
		list_move_tail(&seg->node, run ? &run->inbox : odd);
	}
}

/**
 * swc_news_odd() - say what is wrong with segments that fit nothing
 */
void swc_news_odd(struct swc_comm *comm, struct list_head *odd)
{
	struct swc_seg *seg, *next;

	list_for_each_entry_safe(seg, next, odd, node) {
		list_del(&seg->node);
		swc_news_deliver(comm, seg);
	}
}

/*
 * A connection or an engine has given something back, and @waiting, if not NULL, can go on; op->lock is held
 * on entry, not on exit.
 */
static void given_back(struct swc_op *op, struct swc_run *waiting, int error, bool nested)
	__releases(&op->lock)
{
	bool work = false, over;

	op->nposted--;
	if (error && !op->status)
		WRITE_ONCE(op->status, error);
	if (waiting && !nested)
		work = swc_run_resume(op, waiting);
	else if (waiting)
		swc_run_call(op, waiting);
	over = swc_op_over(op);
	/* Nothing else may keep the operation now. */
	kref_get(&op->ref);
	spin_unlock(&op->lock);
	if (work)
		swc_exec_help(op, SWC_STAT_RUN_WORKER);
	if (over)
		swc_op_finish(op);
	swc_op_put(op);
}

/**
 * swc_news_sent() - the memory of a message is free
 */
void swc_news_sent(struct swc_out *out, int error, bool nested)
{
	struct swc_run *run = out->run;
	struct swc_op *op = run->part->op;
	bool goes_on;

	spin_lock(&op->lock);
	out->done = true;
	run->unsent[out->step % run->part->plan->links->ahead]--;
	goes_on = run->state == SWC_RUN_WAIT_FENCE && !error && swc_step_fence_passed(run);
	given_back(op, goes_on ? run : NULL, error, nested);
}

/* An engine is done with what a run's step moves; can the run go on? op->lock is held. */
static bool take_moved(struct swc_run *run, u64 bytes)
{
	if (run->whole) {
		run->engine_over = true;
		run->engine_moved = bytes;
	} else {
		run->move.done += bytes;
		run->by_cpu = !bytes;
	}
	/* Else the CPU is still at its own part. */
	return run->state == SWC_RUN_WAIT_DMA;
}

/**
 * swc_news_moved() - engines are done with moves of an operation
 * @items: with bytes more that are in place; 0: the engines have failed
 * @n: how many, at least one
 */
void swc_news_moved(const struct swc_dma_item *items, u32 n)
{
	struct swc_run *run = items->run;
	struct swc_op *op = run->part->op;
	bool goes_on;
	u32 i;

	spin_lock(&op->lock);
	for (i = 1; i < n; i++) {
		op->nposted--;
		if (take_moved(items[i].run, items[i].bytes) && !op->status)
			swc_run_return(op, items[i].run);
	}
	goes_on = take_moved(run, items->bytes);
	given_back(op, goes_on ? run : NULL, 0, false);
}

/**
 * swc_news_written() - a message has been written into place
 */
void swc_news_written(struct swc_landing *landing)
{
	struct swc_run *run = landing->run;
	struct swc_op *op = run->part->op;
	bool work = false;

	spin_lock(&op->lock);
	landing->done = true;
	if (!op->status && run->state == SWC_RUN_WAIT_RECV && run->wait_rank == landing->src)
		work = swc_run_resume(op, run);
	/* It may be all over when the last run is done. */
	kref_get(&op->ref);
	spin_unlock(&op->lock);
	if (work)
		swc_exec_help(op, SWC_STAT_RUN_WORKER);
	swc_op_put(op);
}

/**
 * swc_news_landed() - the memory of a message is out of its sender's reach
 *
 * If all of it had been written, it is of no importance that the connection has ended since.
 */
void swc_news_landed(struct swc_landing *landing, int error)
{
	struct swc_run *run = landing->run;
	struct swc_op *op = run->part->op;
	bool goes_on;

	spin_lock(&op->lock);
	run->exposed[landing->step % run->part->plan->links->kept]--;
	if (landing->done)
		error = 0;
	goes_on = run->state == SWC_RUN_WAIT_FENCE && !error && swc_step_fence_passed(run);
	given_back(op, goes_on ? run : NULL, error, false);
}

/**
 * swc_news_differs() - a message was to be written into memory that its receiver offers for another one
 */
void swc_news_differs(struct swc_comm *comm, u32 src, const struct swc_wire_msg *msg)
{
	struct swc_op *op;

	spin_lock(&comm->lock);
	op = swc_op_find(comm, msg->seq);
	if (op)
		kref_get(&op->ref);
	spin_unlock(&comm->lock);
	if (!op)
		return;
	if (!end_if_differs(comm, op, src, msg))
		swc_comm_abort(comm, -EPROTO, src, op->seq,
			       "operation %llu: rank %u takes a message of %llu bytes, but another is sent to it",
			       op->seq, src, msg->total);
	swc_op_put(op);
}

/**
 * swc_news_wants() - a rank waits for memory to write a message to
 *
 * It may have to wait for long. But if what all ranks of this node have come to is another call than its own,
 * it would do so for ever.
 */
void swc_news_wants(struct swc_comm *comm, u32 src, const struct swc_wire_msg *msg)
{
	struct swc_op *op;

	spin_lock(&comm->lock);
	op = swc_op_find(comm, msg->seq);
	if (op && (!op->started_at || op->finished))
		op = NULL;
	if (op)
		kref_get(&op->ref);
	spin_unlock(&comm->lock);
	if (!op)
		return;
	end_if_differs(comm, op, src, msg);
	swc_op_put(op);
}
