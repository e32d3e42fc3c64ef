// SPDX-License-Identifier: GPL-2.0-only
/*
 * Having the moves of runs carried out: by the CPU that walks the run, by engines, or by both.
 *
 * Moves that their runs have nothing behind but barriers are gathered, and given to engines together when no
 * run is ready any more: one job is set up, and interrupts, once for all of them.
 */
#include "exec/offload.h"
#include "comm/comm.h"
#include "dma.h"
#include "plan/plan.h"
#include "exec/runq.h"

/* Where the CPU and an engine share a move, they meet at a multiple of this. */
#define SHARE_UNIT	4096u

/**
 * swc_carry_is_last() - does nothing follow the run's step but barriers?
 *
 * Then nobody waits for its move rather than for all of the operation.
 */
bool swc_carry_is_last(const struct swc_run *run)
{
	const struct swc_plan_step *steps = run->part->plan->view.steps;
	u32 step = run->step + 1;

	while (step < run->end && steps[step].kind == SWC_STEP_SYNC)
		step++;
	return step == run->end;
}

/*
 * The end of a move, from @at on, is an engine's, and the rest the CPU's meanwhile. The engine may be done,
 * and the run go on elsewhere, before this returns.
 */
static void launch(struct swc_run *run, struct swc_dma_job *job, u64 at)
{
	struct swc_op *op = run->part->op;
	struct swc_move *m = &run->move;

	spin_lock(&op->lock);
	op->nposted++;
	if (at == m->done) {
		run->state = SWC_RUN_WAIT_DMA;
	} else {
		run->whole = m->bytes;
		run->engine_over = false;
		m->bytes = at;
	}
	spin_unlock(&op->lock);
	swc_dma_launch(job);
}

/* Engines were to do it all, and the others have not been called; now they are gone, say. */
static void call_others(struct swc_op *op)
{
	if (!READ_ONCE(op->alone))
		return;
	spin_lock(&op->lock);
	if (op->alone)
		swc_run_summon_all(op);
	op->alone = false;
	spin_unlock(&op->lock);
}

/*
 * Give the move to an engine, if there is one for it; or only its end, if the CPU is to do the rest
 * meanwhile. True if nothing is left for the CPU.
 */
static bool move_by_dma(struct swc_run *run)
{
	bool whole, local = run->part->plan->view.steps[run->step].kind == SWC_STEP_LOCAL;
	bool last = local && swc_carry_is_last(run);
	/* Not for what a network step before it receives. */
	struct swc_dma_job *job = local ? run->prepared : NULL;
	struct swc_op *op = run->part->op;
	struct swc_move *m = &run->move, end = *m;
	struct swc_dma_item item = { .run = run, .move = &end };

	if (run->by_cpu || run->whole || m->done == m->bytes)
		return false;
	if (job) {
		run->prepared = NULL;
		launch(run, job, m->done);
		return true;
	}
	/* What is gathered is one job, on which all workers would be at work. */
	if (!(last ? swc_dma_wants(m, op->nruns, op->max_workers) : swc_dma_wants(m, 1, 1))) {
		call_others(op);
		return false;
	}
	end.done = max(round_up(m->bytes - swc_dma_share(m->bytes - m->done), SHARE_UNIT), m->done);
	whole = end.done == m->done;
	if (whole && last) {
		spin_lock(&op->lock);
		run->state = SWC_RUN_WAIT_DMA;
		list_add_tail(&run->node, &op->gathered);
		spin_unlock(&op->lock);
		return true;
	}
	if (end.done >= m->bytes)
		return false;
	job = swc_dma_prepare(swc_comm_wq(op->comm), &item, 1, 1);
	run->by_cpu = !job;
	if (job)
		launch(run, job, end.done);
	return job && whole;
}

/**
 * swc_carry_gathered() - give engines what has been gathered for them, or the first part of it
 *
 * op->lock is held, but not throughout; the caller is a worker. What engines do not take is ready then, for
 * the CPU.
 */
void swc_carry_gathered(struct swc_op *op)
	__must_hold(&op->lock)
{
	struct swc_dma_item item[SWC_DMA_MAX_ITEMS];
	struct swc_run *run, *next;
	struct swc_dma_job *job;
	int node = NUMA_NO_NODE;
	u32 i, n = 0;

	lockdep_assert_held(&op->lock);
	list_for_each_entry_safe(run, next, &op->gathered, node) {
		if (!n)
			node = swc_dma_node(&run->move);
		else if (run->move.nsrc != item->move->nsrc || swc_dma_node(&run->move) != node)
			continue;
		list_del_init(&run->node);
		item[n++] = (struct swc_dma_item){ .run = run, .move = &run->move };
		if (n == SWC_DMA_MAX_ITEMS)
			break;
	}
	op->nposted += n;
	spin_unlock(&op->lock);
	job = swc_dma_prepare(swc_comm_wq(op->comm), item, n, min(n, op->max_workers));
	spin_lock(&op->lock);
	for (i = 0; i < n; i++) {
		if (job && item[i].bytes)
			continue;
		op->nposted--;
		item[i].run->by_cpu = true;
		swc_run_make_ready(op, item[i].run);
	}
	spin_unlock(&op->lock);
	if (job)
		swc_dma_launch(job);
	spin_lock(&op->lock);
}

/* The CPU has done its part of a move: wait for the engine's, and see what it has done. */
static enum swc_walk join_dma(struct swc_run *run)
{
	struct swc_op *op = run->part->op;
	enum swc_walk w = SWC_WALK_ON;

	spin_lock(&op->lock);
	if (run->engine_over) {
		run->move.bytes = run->whole;
		run->move.done += run->engine_moved;
		run->by_cpu = !run->engine_moved;
		run->whole = 0;
	} else {
		run->state = SWC_RUN_WAIT_DMA;
		w = SWC_WALK_WAIT;
	}
	spin_unlock(&op->lock);
	return w;
}

/**
 * swc_carry_on() - carry out, or carry on, the move that the run has set up
 *
 * Return: SWC_WALK_ON when all is in place; SWC_WALK_WAIT if an engine is at work; STOP or BROKEN.
 */
enum swc_walk swc_carry_on(struct swc_run *run)
{
	struct swc_move *m = &run->move;
	int ret;

	do {
		if (move_by_dma(run))
			return SWC_WALK_WAIT;
		ret = swc_move(m, &run->part->op->status);
		if (ret == -EINTR)
			return SWC_WALK_STOP;	/* this worker is being killed; the next one goes on */
		if (ret)
			return SWC_WALK_BROKEN;	/* given up meanwhile */
		if (run->whole && join_dma(run) == SWC_WALK_WAIT)
			return SWC_WALK_WAIT;
	} while (m->done < m->bytes);
	run->moving = false;
	run->by_cpu = false;
	return SWC_WALK_ON;
}
