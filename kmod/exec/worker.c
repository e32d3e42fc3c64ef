// SPDX-License-Identifier: GPL-2.0-only
/*
 * The executor: walks the plans of all ranks of an operation, step by step.
 *
 * Each channel of each rank is a run. Runs that can go on stand in op->ready; a worker takes one, walks it
 * until it has to wait for a peer, and takes the next. Workers are whoever is at hand: the submitter that
 * completed the set, tasks that wait for their completion anyway, and work items. A worker never leaves while
 * a run is ready, so helpers make an operation faster but are never needed to make it end. A run that waits
 * is made ready by the peer that it waits for, or by news from another node.
 */
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>

#include "exec/offload.h"
#include "comm/comm.h"
#include "exec/worker.h"
#include "exec/operation.h"
#include "exec/request.h"
#include "plan/plan.h"
#include "exec/runq.h"
#include "exec/step.h"
#include "trace.h"

/* A worker without work looks again for this long before it leaves: a sleep and a wake cost more. */
#define LINGER_NS	(10 * NSEC_PER_USEC)
/* So does a submitter that would sleep next. */
#define ATTEND_NS	(50 * NSEC_PER_USEC)

/* ------------------------------------------------------------------ walking */

/* Go on with a run until it waits, ends, or the operation does. */
static enum swc_walk walk(struct swc_run *run)
{
	const struct swc_plan_view *v = &run->part->plan->view;
	struct swc_op *op = run->part->op;

	while (run->step < run->end) {
		const struct swc_plan_step *s = &v->steps[run->step];
		enum swc_walk w;

		if (READ_ONCE(op->status))
			return SWC_WALK_BROKEN;
		/* Steps may be many and move nothing. */
		cond_resched();
		if (run->part->plan->links && !run->posted && !run->moving &&
		    swc_step_fence(run) != SWC_WALK_ON)
			return SWC_WALK_WAIT;
		trace_swc_step(run->part, run->channel, run->step, s->kind);
		switch (s->kind) {
		case SWC_STEP_LOCAL:
			w = swc_step_local(run, s);
			break;
		case SWC_STEP_SYNC:
			w = swc_step_sync(run);
			break;
		default:
			w = swc_step_net(run, s);
			break;
		}
		if (w != SWC_WALK_ON)
			return w;
		spin_lock(&op->lock);
		run->step++;
		spin_unlock(&op->lock);
	}
	return SWC_WALK_DONE;
}

/* Nobody works, nothing is ready, and runs are left: the plans wait for each other. */
static void note_deadlock(struct swc_op *op)
{
	u32 i, c;

	for (i = 0; i < op->comm->nlocal; i++) {
		struct swc_part *part = op->part[op->comm->local[i]];

		for (c = 0; c < part->nruns; c++) {
			struct swc_run *run = &part->runs[c];

			if (run->state == SWC_RUN_DONE)
				continue;
			swc_step_broken(run, run->state == SWC_RUN_WAIT_RECV ? run->wait_rank :
					part->member->rank,
					run->state == SWC_RUN_WAIT_RECV ? "waits for ever for a send" :
					run->state == SWC_RUN_WAIT_SENDS ? "what it sends is never received" :
					"waits for ever in a barrier");
			return;
		}
	}
}

/* Take ready runs until there are none. op->lock is held on entry and exit; this worker is in nactive. */
static void work(struct swc_op *op)
{
	struct swc_run *run;
	enum swc_walk w;

	while (!op->status) {
		if (list_empty(&op->ready)) {
			if (list_empty(&op->gathered))
				return;
			swc_carry_gathered(op);
			continue;
		}
		run = list_first_entry(&op->ready, struct swc_run, node);
		list_del_init(&run->node);
		run->state = SWC_RUN_ACTIVE;
		spin_unlock(&op->lock);
		w = walk(run);
		spin_lock(&op->lock);
		switch (w) {
		case SWC_WALK_DONE:
			run->state = SWC_RUN_DONE;
			op->runs_left--;
			break;
		case SWC_WALK_STOP:
			/* This task is dying: leave the run to a work item, which always comes. */
			run->state = SWC_RUN_READY;
			list_add(&run->node, &op->ready);
			swc_run_queue(run->part);
			return;
		case SWC_WALK_BROKEN:
			if (!op->status) {
				WRITE_ONCE(op->status, -EPROTO);
				op->culprit = run->part->member->rank;
			}
			return;
		default:
			break;
		}
	}
}

/* Wait a moment for work; true if it is worth another look. op->lock is not held. */
static bool linger(struct swc_op *op)
{
	u64 until = ktime_get_ns() + LINGER_NS;

	while (ktime_get_ns() < until && !need_resched()) {
		if (READ_ONCE(op->status) || !READ_ONCE(op->runs_left))
			return false;
		if (!list_empty_careful(&op->ready))
			return true;
		cpu_relax();
	}
	return false;
}

/* Whether this worker, about to leave, is the last and finds the plans waiting for each other. */
static bool deadlocked(struct swc_op *op)
{
	lockdep_assert_held(&op->lock);
	/* What other nodes will send is not to be seen from here: then only the deadline tells. */
	return op->nactive == 1 && !op->status && op->runs_left && list_empty(&op->ready) &&
	       !op->comm->net && !op->nposted;
}

/**
 * swc_exec_leave() - a worker, counted in op->nactive, is done; the last one may end the operation
 *
 * Looking for a deadlock and leaving are one step under op->lock: of two workers that look first and leave
 * later, each could take the other for one that goes on.
 */
void swc_exec_leave(struct swc_op *op)
{
	bool over;

	spin_lock(&op->lock);
	if (deadlocked(op)) {
		WRITE_ONCE(op->status, -EPROTO);
		spin_unlock(&op->lock);
		note_deadlock(op);
		spin_lock(&op->lock);
	}
	if (op->status && op->comm->net) {
		/* Other nodes wait for this one; and connections must let go of the operation's memory. */
		spin_unlock(&op->lock);
		swc_comm_abort(op->comm, op->status, op->culprit, op->seq, NULL);
		spin_lock(&op->lock);
	}
	op->nactive--;
	over = swc_op_over(op);
	spin_unlock(&op->lock);
	if (over)
		swc_op_finish(op);
}

/**
 * swc_exec_help() - be a worker of an operation that has started; the caller is counted in op->nactive
 * @op: operation; the caller has a reference
 * @where: counter of this kind of worker
 *
 * Returns when there is nothing to do; then the caller has left the operation.
 */
void swc_exec_help(struct swc_op *op, enum swc_stat where)
{
	bool more = true;

	swc_stat_inc(where);
	spin_lock(&op->lock);
	for (;;) {
		work(op);
		if (!more || op->status || !op->runs_left || op->nactive == 1 ||
		    fatal_signal_pending(current))
			break;
		spin_unlock(&op->lock);
		more = linger(op);
		spin_lock(&op->lock);
	}
	spin_unlock(&op->lock);
	swc_exec_leave(op);
}

/**
 * swc_exec_enter() - become a worker that was summoned; false if the operation is over
 */
bool swc_exec_enter(struct swc_op *op)
{
	bool in;

	spin_lock(&op->lock);
	in = !op->finished;
	if (op->nsummoned)
		op->nsummoned--;
	if (in)
		op->nactive++;
	spin_unlock(&op->lock);
	return in;
}

/* Are engines all that is at work, for longer than it is worth to wait? */
static bool only_engines(const struct swc_op *op)
{
	return !op->comm->net && READ_ONCE(op->nposted) && !READ_ONCE(op->nactive) &&
	       list_empty_careful(&op->ready);
}

/**
 * swc_exec_attend() - stay with an operation instead of going to sleep
 * @op: operation; the caller has a reference
 * @done: bit set when the caller need not wait any more
 * @flags: where @done is
 *
 * For a submitter that is going to wait: ranks mostly arrive within microseconds of one another, and a sleep
 * and a wake take longer than that. Works as soon as the operation starts. Only while nobody else wants this
 * CPU, and for a bounded time without anything to do.
 */
void swc_exec_attend(struct swc_op *op, int done, const unsigned long *flags)
{
	u64 until = ktime_get_ns() + ATTEND_NS;

	while (!test_bit(done, flags) && !READ_ONCE(op->status) && single_task_running() &&
	       !need_resched() && !fatal_signal_pending(current) && ktime_get_ns() < until &&
	       !only_engines(op)) {
		if (READ_ONCE(op->started_at) && !list_empty_careful(&op->ready) &&
		    swc_exec_enter(op)) {
			swc_exec_help(op, SWC_STAT_RUN_INLINE);
			until = ktime_get_ns() + ATTEND_NS;
		}
		cpu_relax();
	}
}

/* A helper on swc_wq. */
void swc_exec_work(struct work_struct *work)
{
	struct swc_part *part = container_of(work, struct swc_part, work);

	if (swc_exec_enter(part->op))
		swc_exec_help(part->op, SWC_STAT_RUN_WORKER);
	swc_part_put(part);
}

/* Will all runs only give their data to engines? Nobody has begun. */
static bool only_gathers(struct swc_op *op)
{
	u32 i, c;

	for (i = 0; i < op->comm->nlocal; i++) {
		struct swc_part *part = op->part[op->comm->local[i]];

		for (c = 0; c < part->nruns; c++)
			if (!swc_step_gathers(&part->runs[c]))
				return false;
	}
	return true;
}

/**
 * swc_exec_start() - all ranks have arrived
 * @op: the operation; the caller is its first worker and is counted in op->nactive
 * @self: the part that arrived last
 * @inline_ok: the caller may be used to run the steps
 */
void swc_exec_start(struct swc_op *op, struct swc_part *self, bool inline_ok)
{
	bool alone = only_gathers(op), left = false;
	u32 i, c;

	trace_swc_start(op);
	spin_lock(&op->lock);
	for (i = 0; i < op->comm->nlocal; i++) {
		struct swc_part *part = op->part[op->comm->local[i]];

		for (c = 0; c < part->nruns; c++) {
			struct swc_run *run = &part->runs[c];

			run->state = SWC_RUN_READY;
			list_add_tail(&run->node, &op->ready);
		}
		if (part->started)
			part->started(part);
	}
	/* Tasks that wait may be slow to come or be stopped; a work item always comes. */
	if (!inline_ok && swc_run_queue(self)) {
		op->nsummoned++;
		/* It ends the operation, too: who submits, maybe from inside another one's end, does not. */
		left = !op->status && op->runs_left;
	}
	/* One is enough to give all to engines; what they do not take calls for others. */
	op->alone = alone;
	if (!alone)
		swc_run_summon_all(op);
	if (left)
		op->nactive--;
	spin_unlock(&op->lock);
	if (inline_ok)
		swc_exec_help(op, SWC_STAT_RUN_INLINE);
	else if (!left)
		swc_exec_leave(op);
}
