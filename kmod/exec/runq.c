// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs that can go on, and the calling of workers for them. All of it under op->lock.
 */
#include "comm/comm.h"
#include "exec/request.h"
#include "exec/runq.h"

/* Queue the part's work item; op->lock is held. False if it is queued already. */
bool swc_run_queue(struct swc_part *part)
{
	refcount_inc(&part->ref);
	if (queue_work(swc_comm_wq(part->op->comm), &part->work))
		return true;
	/* Never the last reference: the operation has not told its owner yet. */
	refcount_dec(&part->ref);
	return false;
}

/* Call one more worker, if there is work for it. */
void swc_run_summon(struct swc_op *op)
{
	bool came = false;
	u32 i;

	lockdep_assert_held(&op->lock);
	if (list_empty(&op->ready) || op->nactive + op->nsummoned >= op->max_workers)
		return;
	for (i = 0; i < op->comm->nlocal && !came; i++) {
		struct swc_part *part = op->part[op->comm->local[i]];

		came = part->summon ? part->summon(part) : swc_run_queue(part);
	}
	if (came)
		op->nsummoned++;
}

/* Call all that are of use. */
void swc_run_summon_all(struct swc_op *op)
{
	u32 i;

	for (i = 1; i < op->max_workers; i++)
		swc_run_summon(op);
}

static void add_ready(struct swc_op *op, struct swc_run *run)
{
	lockdep_assert_held(&op->lock);
	run->state = SWC_RUN_READY;
	list_add_tail(&run->node, &op->ready);
}

/*
 * An engine has done what the run waited for, or has not. If there is nothing more to move, whoever brings
 * the news can walk it.
 */
void swc_run_return(struct swc_op *op, struct swc_run *run)
{
	add_ready(op, run);
	if (run->move.done < run->move.bytes)
		swc_run_summon(op);
}

void swc_run_make_ready(struct swc_op *op, struct swc_run *run)
{
	add_ready(op, run);
	swc_run_summon(op);
}

/*
 * Go on with a run that waited for what has come now: in the context of the connection, because a wake-up
 * would cost more than most steps. op->lock is held; the caller then calls swc_exec_help().
 */
bool swc_run_resume(struct swc_op *op, struct swc_run *run)
{
	lockdep_assert_held(&op->lock);
	if (op->finished || op->status)
		return false;
	add_ready(op, run);
	op->nactive++;
	return true;
}

/* The same by a work item, for who is inside of a worker already: they would nest without bound. */
void swc_run_call(struct swc_op *op, struct swc_run *run)
{
	lockdep_assert_held(&op->lock);
	if (op->finished || op->status)
		return;
	add_ready(op, run);
	if (swc_run_queue(run->part))
		op->nsummoned++;
}
