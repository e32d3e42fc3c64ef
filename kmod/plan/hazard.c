// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hazards: a task may be ahead of its messages, so a step must not overwrite memory that an earlier message
 * is still sent from (its fence), and memory can be offered to peers as soon as no earlier step uses it.
 *
 * Pure functions of the plan, in one pass over its steps. A budget bounds their time and memory whatever the
 * plan: at most BLOCK_BUDGET entries of tables are cleared, and as many read, for all channels together.
 */
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "comm/comm.h"
#include "plan/hazard.h"

/* After reading this many blocks, a plan is given no more freedom than one step at a time. */
#define BLOCK_BUDGET	(4u << 20)

/*
 * What the steps of a channel have done so far. Steps count from 1 here; 0: no step. Tables are by block:
 * [0] of the user's buffers, which may be the same memory, [1] of scratch memory.
 */
struct past {
	u32 *sent[2];		/* last step that sent the block to another node */
	u32 *used[2];		/* last step that used it at all */
	u32 nblocks;
	u32 budget;
	u32 any_sent;		/* last step that sent anything to another node */
	u32 others;		/* last step in which other ranks of this node may have used anything */
};

static u32 last_step_of(u32 *const *table, u8 buf, const struct swc_plan_xfer *x)
{
	const u32 *at = table[buf == SWC_BUF_SCRATCH] + x->first_block;
	u32 b, last = 0;

	for (b = 0; b < x->nblocks; b++)
		last = max(last, at[b]);
	return last;
}

static void set_step_of(u32 *const *table, u8 buf, const struct swc_plan_xfer *x, u32 step)
{
	u32 *at = table[buf == SWC_BUF_SCRATCH] + x->first_block;
	u32 b;

	for (b = 0; b < x->nblocks; b++)
		at[b] = step;
}

/* A channel begins: no step has used any block. May take long; yields. */
static void clear_tables(struct past *past)
{
	u32 i, n;

	for (i = 0; i < 4 * past->nblocks; i += n) {
		n = min(4 * past->nblocks - i, 1u << 18);
		memset(past->sent[0] + i, 0, n * sizeof(u32));
		cond_resched();
	}
}

/* The fence of step @i; records what the step sends. */
static u32 fence_of(const struct swc_comm *comm, const struct swc_plan_view *v, u32 i, struct past *past)
{
	const struct swc_plan_step *s = &v->steps[i];
	u32 k, fence = 0;

	/* In local steps other ranks of this node may overwrite anything; they do not know of messages. */
	if (s->kind != SWC_STEP_NET)
		return past->any_sent;
	for (k = s->first_xfer + s->nsend; k < s->first_xfer + s->nsend + s->nrecv; k++)
		fence = max(fence, last_step_of(past->sent, v->xfers[k].buf, &v->xfers[k]));
	for (k = s->first_xfer; k < s->first_xfer + s->nsend; k++) {
		if (swc_comm_is_local(comm, v->xfers[k].rank))
			continue;
		past->any_sent = i + 1;
		set_step_of(past->sent, v->xfers[k].buf, &v->xfers[k], i + 1);
	}
	return fence;
}

/* The step from which the memory that step @i stores into is free; records what the step uses. */
static u32 free_from(const struct swc_comm *comm, const struct swc_plan_view *v, u32 i, struct past *past)
{
	const struct swc_plan_step *s = &v->steps[i];
	const struct swc_plan_xfer *x = &v->xfers[s->first_xfer], *recv = x + s->nsend;
	u32 k, from;

	/* Nothing is offered for it, and what follows is not offered before it: that takes no tables. */
	if (s->kind != SWC_STEP_NET) {
		past->others = i + 1;
		return i;
	}
	/* Several ranks of a node wait for each other in ways that this plan does not show. */
	from = comm->nlocal > 1 ? i : past->others;
	for (k = 0; k < s->nsend; k++)
		set_step_of(past->used, x[k].buf, &x[k], i + 1);
	for (k = 0; k < s->nrecv; k++)
		if (recv[k].flags & SWC_XFER_REDUCE)
			set_step_of(past->used, recv[k].operand, &recv[k], i + 1);
	for (k = 0; k < s->nrecv; k++)
		if (!(recv[k].flags & SWC_XFER_REDUCE))
			from = max(from, last_step_of(past->used, recv[k].buf, &recv[k]));
	for (k = 0; k < s->nrecv; k++)
		set_step_of(past->used, recv[k].buf, &recv[k], i + 1);
	return min(from, i);
}

static void read_step(const struct swc_comm *comm, const struct swc_plan_view *v, u32 i,
			 struct past *past, struct swc_plan_net *pnet)
{
	const struct swc_plan_step *s = &v->steps[i];
	u32 k;

	for (k = s->first_xfer; s->kind == SWC_STEP_NET && k < s->first_xfer + s->nsend + s->nrecv; k++)
		past->budget -= min(past->budget, v->xfers[k].nblocks);
	pnet->fence[i] = past->budget ? fence_of(comm, v, i, past) : i;
	pnet->free_from[i] = past->budget ? free_from(comm, v, i, past) : i;
}

/**
 * swc_hazards_find() - find what must happen before steps may overwrite memory, and how early it can be
 * offered
 * @comm: the communicator
 * @v: the plan
 * @pnet: gets the sizes of the windows, and the contents of @fence and @free_from
 *
 * Takes time linear in the plan. Return: 0 or -ENOMEM.
 */
int swc_hazards_find(const struct swc_comm *comm, const struct swc_plan_view *v, struct swc_plan_net *pnet)
{
	struct past past = { .nblocks = v->nblocks, .budget = BLOCK_BUDGET };
	u32 c, i;

	/* A task has records for so many messages and offers. */
	pnet->send_window = clamp(256 / max(v->max_sends, 1u), 1u, (u32)SWC_MAX_SEND_WINDOW);
	pnet->rndv_window = clamp(64 / max(v->max_recvs, 1u), 1u, (u32)SWC_MAX_RNDV_WINDOW);
	/* The budget would not last for the first channel: no tables. */
	if (past.nblocks >= past.budget)
		past.budget = 0;
	if (past.budget) {
		past.sent[0] = kvmalloc_array(past.nblocks, 4 * sizeof(u32), GFP_KERNEL_ACCOUNT);
		if (!past.sent[0])
			return -ENOMEM;
		past.sent[1] = past.sent[0] + past.nblocks;
		past.used[0] = past.sent[1] + past.nblocks;
		past.used[1] = past.used[0] + past.nblocks;
	}
	for (c = 0; c < v->hdr->nchannels; c++) {
		u32 first = v->channels[c].first_step;

		if (!v->channels[c].nsteps)
			continue;
		past.budget -= min(past.budget, past.nblocks);
		if (past.budget)
			clear_tables(&past);
		past.any_sent = 0;
		past.others = first;
		for (i = first; i < first + v->channels[c].nsteps; i++) {
			read_step(comm, v, i, &past, pnet);
			cond_resched();
		}
	}
	kvfree(past.sent[0]);
	return 0;
}
