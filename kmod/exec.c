// SPDX-License-Identifier: GPL-2.0-only
/*
 * The executor: walks the plans of all ranks of an operation, step by step.
 *
 * Each channel of each rank is a run. Runs that can go on stand in op->ready; a worker takes one, walks it
 * until it has to wait for a peer, and takes the next. Workers are whoever is at hand: the submitter that
 * completed the set, tasks that wait for their completion anyway, and work items. A worker never leaves while
 * a run is ready, so helpers make an operation faster but are never needed to make it end. A run that waits
 * is made ready by the peer that it waits for, under op->lock; that is also where a step's data is handed
 * over: what a sender wrote before it posted (lock released) is read after the claim (lock taken).
 */
#include <linux/bitmap.h>
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>

#include "comm.h"
#include "exec.h"
#include "fault.h"
#include "op.h"
#include "part.h"
#include "plan.h"
#include "trace.h"

/* A worker without work looks again for this long before it leaves: a sleep and a wake cost more. */
#define LINGER_NS	(10 * NSEC_PER_USEC)
/* So does a submitter that would sleep next. */
#define ATTEND_NS	(50 * NSEC_PER_USEC)

enum walk { WALK_ON, WALK_WAIT, WALK_DONE, WALK_STOP, WALK_BROKEN };

/* ------------------------------------------------------------------ helpers */

/* Queue the part's work item; op->lock is held. False if it is queued already. */
static bool queue_part(struct swc_part *part)
{
	refcount_inc(&part->ref);
	if (queue_work(swc_wq, &part->work))
		return true;
	/* Never the last reference: the operation has not told its owner yet. */
	refcount_dec(&part->ref);
	return false;
}

/* Call one more worker, if there is work for it. */
static void summon(struct swc_op *op)
{
	bool came = false;
	u32 i;

	lockdep_assert_held(&op->lock);
	if (list_empty(&op->ready) || op->nactive + op->nsummoned >= op->max_workers)
		return;
	for (i = 0; i < op->comm->nlocal && !came; i++) {
		struct swc_part *part = op->part[op->comm->local[i]];

		came = part->summon ? part->summon(part) : queue_part(part);
	}
	if (came)
		op->nsummoned++;
}

static void make_ready(struct swc_op *op, struct swc_run *run)
{
	lockdep_assert_held(&op->lock);
	run->state = SWC_RUN_READY;
	list_add_tail(&run->node, &op->ready);
	summon(op);
}

/* NULL: the rank is on another node, or its plan has fewer channels. */
static struct swc_run *run_of(struct swc_op *op, u32 rank, u16 channel)
{
	struct swc_part *part = op->part[rank];

	return part && channel < part->nruns ? &part->runs[channel] : NULL;
}

/* The operation cannot go on because the plans of two ranks do not fit together. */
static enum walk broken(struct swc_run *run, u32 peer, const char *what)
{
	struct swc_part *part = run->part;

	swc_fault_note(part->op->comm, -EPROTO, part->member->rank, part->op->seq,
		      "operation %llu: plan %s of rank %u, channel %u, step %u: %s (rank %u)",
		      part->op->seq, part->plan->view.hdr->name, part->member->rank, run->channel,
		      run->step - part->plan->view.channels[run->channel].first_step, what, peer);
	return WALK_BROKEN;
}

/* ------------------------------------------------------------------ moving */

/* Where blocks of a rank's buffer lie; false if its window does not hold them. */
static bool span_of(const struct swc_part *part, const struct swc_plan_xfer *x, u8 buf,
		    struct swc_span *span)
{
	const struct swc_part_buf *b = &part->buf[buf];
	u64 at = swc_blocks_offset(&part->blocks, x->first_block);
	u64 bytes = swc_blocks_bytes(&part->blocks, x->first_block, x->nblocks);

	if (at < b->start || at - b->start > b->bytes || bytes > b->bytes - (at - b->start))
		return false;
	span->region = b->region;
	span->offset = b->offset + at - b->start;
	return true;
}

static u32 final_div(const struct swc_run *run, u8 xfer_flags)
{
	return (xfer_flags & SWC_XFER_FINAL) && run->move.redop == SWC_AVG &&
	       swc_coll_reduces(run->part->desc.coll) ? run->part->op->comm->nranks : 0;
}

static enum walk move_on(struct swc_run *run)
{
	struct swc_move *m = &run->move;
	int ret = m->bytes ? swc_move(m, &run->part->op->status) : 0;

	if (ret == -EINTR)
		return WALK_STOP;	/* this worker is being killed; the next one goes on */
	if (ret)
		return WALK_BROKEN;	/* given up meanwhile */
	run->moving = false;
	return WALK_ON;
}

static u64 xfer_bytes(const struct swc_part *part, const struct swc_plan_xfer *x)
{
	return swc_blocks_bytes(&part->blocks, x->first_block, x->nblocks);
}

/* ------------------------------------------------------------------ local steps */

static enum walk setup_local(struct swc_run *run, const struct swc_plan_step *s)
{
	struct swc_part *part = run->part;
	const struct swc_plan_xfer *x = &part->plan->view.xfers[s->first_xfer];
	struct swc_move *m = &run->move;
	u32 i, n = (u32)s->nsend + s->nrecv;

	m->nsrc = s->nsend;
	m->ndst = s->nrecv;
	m->bytes = xfer_bytes(part, x);
	m->done = 0;
	m->div = final_div(run, x[s->nsend].flags);
	for (i = 0; i < n; i++) {
		const struct swc_part *owner = part->op->part[x[i].rank];

		if (xfer_bytes(part, &x[i]) != m->bytes)
			return broken(run, x[i].rank, "ranges of a local step differ in size");
		if (m->bytes && !span_of(owner, &x[i], x[i].buf, &m->span[i]))
			return broken(run, x[i].rank, "blocks outside the buffer of the owner");
	}
	run->moving = true;
	return WALK_ON;
}

static enum walk walk_local(struct swc_run *run, const struct swc_plan_step *s)
{
	enum walk w = run->moving ? WALK_ON : setup_local(run, s);

	if (w == WALK_ON)
		w = move_on(run);
	if (w == WALK_ON)
		swc_stat_inc(SWC_STAT_STEPS_LOCAL);
	return w;
}

/* ------------------------------------------------------------------ barriers */

static enum walk walk_sync(struct swc_run *run)
{
	struct swc_op *op = run->part->op;
	enum walk w = WALK_ON;
	u32 i;

	spin_lock(&op->lock);
	if (++op->sync_arrived[run->channel] < op->comm->nlocal) {
		run->state = SWC_RUN_WAIT_SYNC;
		w = WALK_WAIT;
		goto out;
	}
	op->sync_arrived[run->channel] = 0;
	for (i = 0; i < op->comm->nlocal; i++) {
		struct swc_run *peer = run_of(op, op->comm->local[i], run->channel);

		if (!peer || peer->state != SWC_RUN_WAIT_SYNC)
			continue;
		if (++peer->step < peer->end) {
			make_ready(op, peer);
		} else {
			/* Most plans end so: nobody need be called for that. */
			peer->state = SWC_RUN_DONE;
			op->runs_left--;
		}
	}
out:
	spin_unlock(&op->lock);
	return w;
}

/* ------------------------------------------------------------------ network steps, between local ranks */

/* Announce the step's sends, and wake the peers that wait for them. */
static void post_sends(struct swc_run *run, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *x = &run->part->plan->view.xfers[s->first_xfer];
	struct swc_op *op = run->part->op;
	u32 i, me = run->part->member->rank;

	spin_lock(&op->lock);
	bitmap_zero(run->taken, s->nsend);
	run->sends_left = 0;
	run->posted = true;
	for (i = 0; i < s->nsend; i++) {
		struct swc_run *peer = run_of(op, x[i].rank, run->channel);

		run->sends_left += swc_comm_is_local(op->comm, x[i].rank);
		if (peer && peer->state == SWC_RUN_WAIT_RECV && peer->wait_rank == me)
			make_ready(op, peer);
	}
	spin_unlock(&op->lock);
}

/* The peer's first send to this rank that nobody has taken; op->lock is held. */
static const struct swc_plan_xfer *claim_send(struct swc_run *from, u32 to)
{
	const struct swc_plan_view *v = &from->part->plan->view;
	const struct swc_plan_step *s = &v->steps[from->step];
	u32 i;

	if (!from->posted)
		return NULL;
	for_each_clear_bit(i, from->taken, s->nsend) {
		if (v->xfers[s->first_xfer + i].rank == to) {
			__set_bit(i, from->taken);
			return &v->xfers[s->first_xfer + i];
		}
	}
	return NULL;
}

/* Claim what the peer sends and prepare to take it, straight from the peer's buffer. */
static enum walk setup_recv(struct swc_run *run, const struct swc_plan_xfer *x)
{
	struct swc_part *part = run->part;
	struct swc_op *op = part->op;
	struct swc_move *m = &run->move;
	const struct swc_plan_xfer *sent = NULL;
	struct swc_run *from;
	u32 src = 0;

	spin_lock(&op->lock);
	from = run_of(op, x->rank, run->channel);
	if (from)
		sent = claim_send(from, part->member->rank);
	if (!sent) {
		run->wait_rank = x->rank;
		run->state = SWC_RUN_WAIT_RECV;
		spin_unlock(&op->lock);
		return WALK_WAIT;
	}
	spin_unlock(&op->lock);

	run->sender = from;
	m->bytes = xfer_bytes(part, x);
	m->done = 0;
	m->ndst = 1;
	m->div = final_div(run, x->flags);
	if (xfer_bytes(from->part, sent) != m->bytes)
		return broken(run, x->rank, "receives another size than the peer sends");
	if (m->bytes) {
		/* Both plans were verified: each rank's own blocks lie in its own windows. */
		if (x->flags & SWC_XFER_REDUCE)
			span_of(part, x, x->operand, &m->span[src++]);
		span_of(from->part, sent, sent->buf, &m->span[src++]);
		span_of(part, x, x->buf, &m->span[src]);
		m->nsrc = src;
	}
	run->moving = true;
	return WALK_ON;
}

static void release_send(struct swc_run *run)
{
	struct swc_op *op = run->part->op;
	struct swc_run *from = run->sender;

	spin_lock(&op->lock);
	run->sender = NULL;
	if (!--from->sends_left && from->state == SWC_RUN_WAIT_SENDS) {
		from->posted = false;
		from->step++;
		make_ready(op, from);
	}
	spin_unlock(&op->lock);
}

static enum walk recv_local(struct swc_run *run, const struct swc_plan_xfer *x)
{
	enum walk w = run->moving ? WALK_ON : setup_recv(run, x);

	if (w == WALK_ON)
		w = move_on(run);
	if (w == WALK_ON)
		release_send(run);
	return w;
}

/* ------------------------------------------------------------------ network steps, between nodes */

/* Is what this receive gets written into place by the sender? Both ends decide alike. */
static bool is_direct(const struct swc_plan_xfer *x, u64 bytes)
{
	return !(x->flags & (SWC_XFER_REDUCE)) && bytes >= SWC_WIRE_DIRECT;
}

static u32 link_of(const struct swc_run *run, const struct swc_plan_xfer *x)
{
	const struct swc_plan *plan = run->part->plan;

	return plan->links ? plan->links->link[x - plan->view.xfers] : SWC_NO_LINK;
}

/* Has all that the step must not overwrite left its memory? op->lock is held. */
static bool fence_passed(const struct swc_run *run)
{
	const struct swc_links *links = run->part->plan->links;
	u32 first = run->part->plan->view.channels[run->channel].first_step, i;

	for (i = links->fence[run->step]; i > first && i + links->ahead > run->step; i--)
		if (run->unsent[(i - 1) % links->ahead])
			return false;
	return true;
}

static enum walk walk_fence(struct swc_run *run)
{
	struct swc_op *op = run->part->op;
	enum walk w = WALK_ON;

	spin_lock(&op->lock);
	if (!fence_passed(run)) {
		run->state = SWC_RUN_WAIT_FENCE;
		w = WALK_WAIT;
	}
	spin_unlock(&op->lock);
	return w;
}

/* Give the step's messages, and memory for those that come straight into place, to their connections. */
static void post_remote(struct swc_run *run, const struct swc_plan_step *s)
{
	struct swc_part *part = run->part;
	const struct swc_plan *plan = part->plan;
	const struct swc_plan_xfer *x = &plan->view.xfers[s->first_xfer];
	u32 i, slot = run->step % plan->links->ahead;
	struct swc_op *op = part->op;

	for (i = 0; i < (u32)s->nsend + s->nrecv; i++, x++) {
		u32 link = link_of(run, x), ordinal;
		u64 bytes = xfer_bytes(part, x);
		bool recv = i >= s->nsend;
		struct swc_span span = {};

		if (link == SWC_NO_LINK || (recv && !is_direct(x, bytes)))
			continue;
		ordinal = plan->links->ordinal[x - plan->view.xfers];
		/* Verified: its own blocks lie in its windows. */
		if (bytes)
			span_of(part, x, x->buf, &span);
		spin_lock(&op->lock);
		op->nposted++;
		run->unsent[slot] += !recv;
		spin_unlock(&op->lock);
		if (recv) {
			struct swc_landing *land = &run->land[i - s->nsend];

			*land = (struct swc_landing){ .run = run, .seq = op->seq, .ordinal = ordinal,
						      .src = x->rank, .span = span, .bytes = bytes };
			swc_conn_land(plan->links->links[link].conn, land);
		} else {
			struct swc_out *out = &run->out[slot * plan->view.max_sends + i];

			*out = (struct swc_out){ .run = run, .step = run->step, .peer = x->rank,
						 .seq = op->seq, .ordinal = ordinal,
						 .stored = x->flags & SWC_XFER_STORED,
						 .span = span, .bytes = bytes };
			swc_conn_send(plan->links->links[link].conn, out);
		}
	}
}

/* The next segment of the message that @x receives, out of the inbox; op->lock is held. */
static struct swc_seg *take_seg(struct swc_run *run, const struct swc_plan_xfer *x)
{
	const struct swc_plan *plan = run->part->plan;
	u32 ordinal = plan->links->ordinal[x - plan->view.xfers];
	struct swc_seg *seg;

	list_for_each_entry(seg, &run->inbox, node) {
		if (seg->src == x->rank && seg->msg.ordinal == ordinal) {
			list_del_init(&seg->node);
			return seg;
		}
	}
	return NULL;
}

static void shift(struct swc_span *span, u64 by)
{
	span->offset += by;
}

/* What was written into place needs nothing more, but for the division of an average. */
static enum walk setup_landed(struct swc_run *run, const struct swc_plan_xfer *x,
			      const struct swc_landing *land)
{
	struct swc_move *m = &run->move;

	run->got = land->bytes;
	m->div = final_div(run, x->flags);
	m->bytes = m->div ? land->bytes : 0;
	m->done = 0;
	m->nsrc = 1;
	m->ndst = 1;
	m->span[0] = land->span;
	m->span[1] = land->span;
	run->moving = true;
	return WALK_ON;
}

static enum walk setup_seg(struct swc_run *run, const struct swc_plan_xfer *x, struct swc_seg *seg)
{
	struct swc_part *part = run->part;
	struct swc_move *m = &run->move;
	u32 src = 0;

	run->seg = seg;
	if (seg->msg.total != xfer_bytes(part, x) || seg->msg.offset != run->got)
		return broken(run, x->rank, "receives another size than the peer sends");
	m->bytes = seg->msg.bytes;
	m->done = 0;
	m->ndst = 1;
	m->div = final_div(run, x->flags);
	if (m->bytes) {
		if (x->flags & SWC_XFER_REDUCE) {
			span_of(part, x, x->operand, &m->span[src]);
			shift(&m->span[src++], run->got);
		}
		m->span[src++] = seg->span;
		span_of(part, x, x->buf, &m->span[src]);
		shift(&m->span[src], run->got);
		m->nsrc = src;
	}
	run->moving = true;
	return WALK_ON;
}

/* Find what has come for this receive, or wait. */
static enum walk setup_remote(struct swc_run *run, const struct swc_plan_xfer *x)
{
	struct swc_landing *land = is_direct(x, xfer_bytes(run->part, x)) ? &run->land[run->recv] : NULL;
	struct swc_op *op = run->part->op;
	struct swc_seg *seg = NULL;
	bool there;

	spin_lock(&op->lock);
	if (!land)
		seg = take_seg(run, x);
	there = land ? land->done : !!seg;
	if (!there) {
		run->wait_rank = x->rank;
		run->state = SWC_RUN_WAIT_RECV;
	}
	spin_unlock(&op->lock);
	if (!there)
		return WALK_WAIT;
	return land ? setup_landed(run, x, land) : setup_seg(run, x, seg);
}

/* A message may come in several segments; each is used as it comes. */
static enum walk recv_remote(struct swc_run *run, const struct swc_plan_xfer *x)
{
	u64 bytes = xfer_bytes(run->part, x);
	enum walk w = WALK_ON;

	do {
		if (!run->moving)
			w = setup_remote(run, x);
		if (w == WALK_ON)
			w = move_on(run);
		if (w != WALK_ON)
			return w;
		if (run->seg) {
			run->got += run->seg->msg.bytes;
			swc_conn_release(run->seg);
			run->seg = NULL;
		}
	} while (run->got < bytes);
	run->got = 0;
	return WALK_ON;
}

/* ------------------------------------------------------------------ network steps */

static enum walk walk_net(struct swc_run *run, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *recvs = &run->part->plan->view.xfers[s->first_xfer + s->nsend];
	struct swc_op *op = run->part->op;
	enum walk w = WALK_ON;

	if (!run->posted) {
		run->recv = 0;
		post_sends(run, s);
		if (run->part->plan->links)
			post_remote(run, s);
	}
	for (; run->recv < s->nrecv; run->recv++) {
		const struct swc_plan_xfer *x = &recvs[run->recv];

		w = link_of(run, x) == SWC_NO_LINK ? recv_local(run, x) : recv_remote(run, x);
		if (w != WALK_ON)
			return w;
	}
	swc_stat_inc(SWC_STAT_STEPS_NET);

	spin_lock(&op->lock);
	if (run->sends_left) {
		run->state = SWC_RUN_WAIT_SENDS;
		w = WALK_WAIT;
	} else {
		run->posted = false;
	}
	spin_unlock(&op->lock);
	return w;
}

/* ------------------------------------------------------------------ walking */

/* Go on with a run until it waits, ends, or the operation does. */
static enum walk walk(struct swc_run *run)
{
	const struct swc_plan_view *v = &run->part->plan->view;
	struct swc_op *op = run->part->op;

	while (run->step < run->end) {
		const struct swc_plan_step *s = &v->steps[run->step];
		enum walk w;

		if (READ_ONCE(op->status))
			return WALK_BROKEN;
		/* Steps may be many and move nothing. */
		cond_resched();
		if (run->part->plan->links && !run->posted && !run->moving && walk_fence(run) != WALK_ON)
			return WALK_WAIT;
		trace_swc_step(run->part, run->channel, run->step, s->kind);
		switch (s->kind) {
		case SWC_STEP_LOCAL:
			w = walk_local(run, s);
			break;
		case SWC_STEP_SYNC:
			w = walk_sync(run);
			break;
		default:
			w = walk_net(run, s);
			break;
		}
		if (w != WALK_ON)
			return w;
		spin_lock(&op->lock);
		run->step++;
		spin_unlock(&op->lock);
	}
	return WALK_DONE;
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
			broken(run, run->state == SWC_RUN_WAIT_RECV ? run->wait_rank : part->member->rank,
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
	enum walk w;

	while (!op->status && !list_empty(&op->ready)) {
		run = list_first_entry(&op->ready, struct swc_run, node);
		list_del_init(&run->node);
		run->state = SWC_RUN_ACTIVE;
		spin_unlock(&op->lock);
		w = walk(run);
		spin_lock(&op->lock);
		switch (w) {
		case WALK_DONE:
			run->state = SWC_RUN_DONE;
			op->runs_left--;
			break;
		case WALK_STOP:
			/* This task is dying: leave the run to a work item, which always comes. */
			run->state = SWC_RUN_READY;
			list_add(&run->node, &op->ready);
			queue_part(run->part);
			return;
		case WALK_BROKEN:
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
	       !op->comm->net;
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

	while (!test_bit(done, flags) && single_task_running() && !need_resched() &&
	       ktime_get_ns() < until) {
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

/* ------------------------------------------------------------------ news from other nodes */

/*
 * Go on with a run that waited for what has come now: in the context of the connection, because a wake-up
 * would cost more than most steps. op->lock is held; the caller then calls swc_exec_help().
 */
static bool resume(struct swc_op *op, struct swc_run *run)
{
	lockdep_assert_held(&op->lock);
	if (op->finished || op->status)
		return false;
	run->state = SWC_RUN_READY;
	list_add_tail(&run->node, &op->ready);
	op->nactive++;
	return true;
}

/* The same by a work item, for who is inside of a worker already: they would nest without bound. */
static void call_work(struct swc_op *op, struct swc_run *run)
{
	lockdep_assert_held(&op->lock);
	if (op->finished || op->status)
		return;
	run->state = SWC_RUN_READY;
	list_add_tail(&run->node, &op->ready);
	if (queue_part(run->part))
		op->nsummoned++;
}

static bool same_call(const struct swc_op *op, const struct swc_wire_msg *msg)
{
	const struct swc_desc *a = &op->desc, *b = &msg->sig;

	return a->coll == b->coll && a->dtype == b->dtype && a->redop == b->redop &&
	       a->count == b->count && a->root == b->root && op->family == msg->family;
}

/* The operation that a segment is for, with a reference, if all ranks of this node have come to it. */
static struct swc_op *find_started(struct swc_comm *comm, struct swc_seg *seg, bool *stray)
{
	struct swc_op *op;

	lockdep_assert_held(&comm->lock);
	list_for_each_entry(op, &comm->ops, node) {
		if (op->seq != seg->msg.seq)
			continue;
		if (!op->started_at)
			break;
		kref_get(&op->ref);
		return op;
	}
	*stray = comm->status == SWC_COMM_ABORTED ||
		 (list_entry_is_head(op, &comm->ops, node) &&
		  seg->msg.seq < comm->member[seg->dst].submitted);
	if (!*stray)
		list_add_tail(&seg->node, &comm->early);
	return NULL;
}

/**
 * swc_exec_deliver() - a segment has come from another node
 */
void swc_exec_deliver(struct swc_comm *comm, struct swc_seg *seg)
{
	struct swc_run *run;
	struct swc_op *op;
	bool stray = false, work = false, taken = false;
	u32 src = seg->src;

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
	if (!same_call(op, &seg->msg)) {
		swc_op_note_remote_mismatch(op, src, &seg->msg);
		swc_comm_abort(comm, -EPROTO, src, op->seq, NULL);
	}
	spin_lock(&op->lock);
	if (!op->finished && !op->status) {
		run = run_of(op, seg->dst, seg->channel);
		if (run) {
			list_add_tail(&seg->node, &run->inbox);
			taken = true;
			work = run->state == SWC_RUN_WAIT_RECV && run->wait_rank == src && resume(op, run);
		}
	}
	spin_unlock(&op->lock);
	if (!taken)
		swc_conn_release(seg);
	if (work)
		swc_exec_help(op, SWC_STAT_RUN_WORKER);
	swc_op_put(op);
}

/* Segments that came before all ranks of this node did. */
static void take_early(struct swc_op *op)
{
	struct swc_comm *comm = op->comm;
	struct swc_seg *seg, *next;
	LIST_HEAD(mine);

	spin_lock(&comm->lock);
	list_for_each_entry_safe(seg, next, &comm->early, node)
		if (seg->msg.seq == op->seq)
			list_move_tail(&seg->node, &mine);
	spin_unlock(&comm->lock);
	list_for_each_entry_safe(seg, next, &mine, node)
		swc_exec_deliver(comm, seg);
}

/*
 * A connection has given something back, and @waiting, if not NULL, can go on; op->lock is held on entry, not
 * on exit.
 */
static void given_back(struct swc_op *op, struct swc_run *waiting, int error, bool nested)
	__releases(&op->lock)
{
	bool work = false, over;

	op->nposted--;
	if (error && !op->status)
		WRITE_ONCE(op->status, error);
	if (waiting && !nested)
		work = resume(op, waiting);
	else if (waiting)
		call_work(op, waiting);
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
 * swc_exec_sent() - the memory of a message is free
 */
void swc_exec_sent(struct swc_out *out, int error, bool nested)
{
	struct swc_run *run = out->run;
	struct swc_op *op = run->part->op;
	bool goes_on;

	spin_lock(&op->lock);
	out->done = true;
	run->unsent[out->step % run->part->plan->links->ahead]--;
	goes_on = run->state == SWC_RUN_WAIT_FENCE && !error && fence_passed(run);
	given_back(op, goes_on ? run : NULL, error, nested);
}

/**
 * swc_exec_landed() - a message has been written into place
 */
void swc_exec_landed(struct swc_landing *landing, int error)
{
	struct swc_run *run = landing->run;
	struct swc_op *op = run->part->op;
	bool waits;

	spin_lock(&op->lock);
	landing->done = !error;
	waits = !error && run->state == SWC_RUN_WAIT_RECV && run->wait_rank == landing->src;
	given_back(op, waits ? run : NULL, error, false);
}

/**
 * swc_exec_start() - all ranks have arrived
 * @op: the operation; the caller is its first worker and is counted in op->nactive
 * @self: the part that arrived last
 * @inline_ok: the caller may be used to run the steps
 */
void swc_exec_start(struct swc_op *op, struct swc_part *self, bool inline_ok)
{
	u32 i, c;

	trace_swc_start(op);
	if (op->comm->net) {
		swc_net_watch(op->comm->net);
		take_early(op);
	}
	spin_lock(&op->lock);
	for (i = 0; i < op->comm->nlocal; i++) {
		struct swc_part *part = op->part[op->comm->local[i]];

		for (c = 0; c < part->nruns; c++) {
			struct swc_run *run = &part->runs[c];

			run->state = SWC_RUN_READY;
			list_add_tail(&run->node, &op->ready);
		}
	}
	/* Tasks that wait may be slow to come or be stopped; a work item always comes. */
	if (!inline_ok && queue_part(self))
		op->nsummoned++;
	for (i = 1; i < op->max_workers; i++)
		summon(op);
	spin_unlock(&op->lock);
	if (inline_ok)
		swc_exec_help(op, SWC_STAT_RUN_INLINE);
	else
		swc_exec_leave(op);
}
