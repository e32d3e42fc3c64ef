// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the steps of a plan do: moves between buffers of this node, barriers, messages to and from others.
 *
 * A step's data is handed over under op->lock: what a sender wrote before it posted (lock released) is read
 * after the claim (lock taken).
 */
#include <linux/bitmap.h>

#include "exec/offload.h"
#include "comm/comm.h"
#include "dma.h"
#include "comm/error.h"
#include "plan/plan.h"
#include "exec/runq.h"
#include "mem/region.h"
#include "exec/step.h"

/* The operation cannot go on because the plans of two ranks do not fit together. */
enum swc_walk swc_step_broken(struct swc_run *run, u32 peer, const char *what)
{
	struct swc_part *part = run->part;

	swc_fault_note(part->op->comm, -EPROTO, part->member->rank, part->op->seq,
		      "operation %llu: plan %s of rank %u, channel %u, step %u: %s (rank %u)",
		      part->op->seq, part->plan->view.hdr->name, part->member->rank, run->channel,
		      run->step - part->plan->view.channels[run->channel].first_step, what, peer);
	return SWC_WALK_BROKEN;
}

/* ------------------------------------------------------------------ what a transfer moves */

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

static u64 xfer_bytes(const struct swc_part *part, const struct swc_plan_xfer *x)
{
	return swc_blocks_bytes(&part->blocks, x->first_block, x->nblocks);
}

/* ------------------------------------------------------------------ local steps */

static const void *place_of(const struct swc_span *span)
{
	const struct swc_extent *e = swc_region_find(span->region, span->offset);

	return e->kaddr + (span->offset - e->offset);
}

/* Do both lie in the same memory of a rank? It is the same for all their bytes then, see part.c. */
static bool is_same(const struct swc_span *a, const struct swc_span *b)
{
	return a->region->addr + a->offset == b->region->addr + b->offset && place_of(a) == place_of(b);
}

/* What is copied into place where it is already, as operations in place have it, is not copied. */
static void drop_in_place(struct swc_move *m, const struct swc_plan_xfer *x)
{
	u32 i, ndst = 0;

	for (i = 1; i <= m->ndst; i++)
		if (x[i].rank != x[0].rank || !is_same(&m->span[0], &m->span[i]))
			m->span[1 + ndst++] = m->span[i];
	m->ndst = ndst;
	if (!ndst)
		m->bytes = 0;
}

/* What a local step moves, from its beginning; not yet where. */
static void shape_local(struct swc_run *run, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *x = &run->part->plan->view.xfers[s->first_xfer];
	struct swc_move *m = &run->move;

	m->nsrc = s->nsend;
	m->ndst = s->nrecv;
	m->bytes = xfer_bytes(run->part, x);
	m->done = 0;
	m->div = final_div(run, x[s->nsend].flags);
}

/* Where it lies; NULL if it makes sense, else what is wrong, with @rank. */
static const char *place_local(struct swc_run *run, const struct swc_plan_step *s, u32 *rank)
{
	struct swc_part *part = run->part;
	const struct swc_plan_xfer *x = &part->plan->view.xfers[s->first_xfer];
	struct swc_move *m = &run->move;
	u32 i, n = (u32)s->nsend + s->nrecv;

	for (i = 0; i < n; i++) {
		const struct swc_part *owner = part->op->part[x[i].rank];

		*rank = x[i].rank;
		if (xfer_bytes(part, &x[i]) != m->bytes)
			return "ranges of a local step differ in size";
		if (m->bytes && !span_of(owner, &x[i], x[i].buf, &m->span[i]))
			return "blocks outside the buffer of the owner";
	}
	if (m->nsrc == 1 && !m->div && m->bytes)
		drop_in_place(m, x);
	return NULL;
}

static enum swc_walk setup_local(struct swc_run *run, const struct swc_plan_step *s)
{
	const char *wrong;
	u32 rank;

	shape_local(run, s);
	wrong = place_local(run, s, &rank);
	if (wrong)
		return swc_step_broken(run, rank, wrong);
	run->moving = true;
	return SWC_WALK_ON;
}

/* Should engines have all of a move that has not begun, or of so many like it? */
static bool wants_engines(const struct swc_move *m, u32 moves, u32 workers)
{
	return swc_dma_wants(m, moves, workers) && swc_dma_share(m->bytes) == m->bytes;
}

/*
 * The run is likely to wait now. If @step, or the one behind a barrier, is a local one for an engine, prepare
 * it meanwhile. Not what is shared with the CPU: how it is shared is found out when it begins.
 */
static void prepare_local(struct swc_run *run, u32 step)
{
	const struct swc_plan_step *steps = run->part->plan->view.steps;
	struct swc_move *m = &run->move;
	struct swc_dma_item item = { .run = run, .move = m };
	u32 rank;

	if (step < run->end && steps[step].kind == SWC_STEP_SYNC)
		step++;
	if (run->prepared || step >= run->end || steps[step].kind != SWC_STEP_LOCAL)
		return;
	shape_local(run, &steps[step]);
	/* Mostly there are no engines. */
	if (!wants_engines(m, 1, 1))
		return;
	if (place_local(run, &steps[step], &rank) || !m->bytes)
		return;
	run->prepared = swc_dma_prepare(swc_comm_wq(run->part->op->comm), &item, 1, 1);
	if (run->prepared)
		swc_stat_inc(SWC_STAT_DMA_PREPARED);
}

/**
 * swc_step_gathers() - would this run, which has not begun, only give its data to engines?
 */
bool swc_step_gathers(struct swc_run *run)
{
	const struct swc_plan_step *s = &run->part->plan->view.steps[run->step];
	u32 nruns = run->part->op->nruns, workers = run->part->op->max_workers, rank;

	if (run->step == run->end || s->kind != SWC_STEP_LOCAL || !swc_carry_is_last(run))
		return false;
	shape_local(run, s);
	/* Mostly there are no engines. What is copied onto itself is not known before it has a place. */
	return wants_engines(&run->move, nruns, workers) && !place_local(run, s, &rank) &&
	       wants_engines(&run->move, nruns, workers);
}

enum swc_walk swc_step_local(struct swc_run *run, const struct swc_plan_step *s)
{
	enum swc_walk w = run->moving ? SWC_WALK_ON : setup_local(run, s);

	if (w == SWC_WALK_ON)
		w = swc_carry_on(run);
	if (w == SWC_WALK_ON)
		swc_stat_inc(SWC_STAT_STEPS_LOCAL);
	return w;
}

/* ------------------------------------------------------------------ barriers */

enum swc_walk swc_step_sync(struct swc_run *run)
{
	struct swc_op *op = run->part->op;
	enum swc_walk w = SWC_WALK_ON;
	u32 i;

	/* The last one opens the barrier. */
	if (READ_ONCE(op->sync_arrived[run->channel]) + 1 < op->comm->nlocal)
		prepare_local(run, run->step + 1);
	spin_lock(&op->lock);
	if (++op->sync_arrived[run->channel] < op->comm->nlocal) {
		run->state = SWC_RUN_WAIT_SYNC;
		w = SWC_WALK_WAIT;
		goto out;
	}
	op->sync_arrived[run->channel] = 0;
	for (i = 0; i < op->comm->nlocal; i++) {
		struct swc_run *peer = swc_run_of(op, op->comm->local[i], run->channel);

		if (!peer || peer->state != SWC_RUN_WAIT_SYNC)
			continue;
		if (++peer->step < peer->end) {
			swc_run_make_ready(op, peer);
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
		struct swc_run *peer = swc_run_of(op, x[i].rank, run->channel);

		run->sends_left += swc_comm_is_local(op->comm, x[i].rank);
		if (peer && peer->state == SWC_RUN_WAIT_RECV && peer->wait_rank == me)
			swc_run_make_ready(op, peer);
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
static enum swc_walk setup_recv(struct swc_run *run, const struct swc_plan_xfer *x)
{
	struct swc_part *part = run->part;
	struct swc_op *op = part->op;
	struct swc_move *m = &run->move;
	const struct swc_plan_xfer *sent = NULL;
	struct swc_run *from;
	u32 src = 0;

	spin_lock(&op->lock);
	from = swc_run_of(op, x->rank, run->channel);
	if (from)
		sent = claim_send(from, part->member->rank);
	if (!sent) {
		run->wait_rank = x->rank;
		run->state = SWC_RUN_WAIT_RECV;
		spin_unlock(&op->lock);
		return SWC_WALK_WAIT;
	}
	spin_unlock(&op->lock);

	run->sender = from;
	m->bytes = xfer_bytes(part, x);
	m->done = 0;
	m->ndst = 1;
	m->div = final_div(run, x->flags);
	if (xfer_bytes(from->part, sent) != m->bytes)
		return swc_step_broken(run, x->rank, "receives another size than the peer sends");
	if (m->bytes) {
		/* Both plans were verified: each rank's own blocks lie in its own windows. */
		if (x->flags & SWC_XFER_REDUCE)
			span_of(part, x, x->operand, &m->span[src++]);
		span_of(from->part, sent, sent->buf, &m->span[src++]);
		span_of(part, x, x->buf, &m->span[src]);
		m->nsrc = src;
	}
	run->moving = true;
	return SWC_WALK_ON;
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
		swc_run_make_ready(op, from);
	}
	spin_unlock(&op->lock);
}

static enum swc_walk recv_local(struct swc_run *run, const struct swc_plan_xfer *x)
{
	enum swc_walk w = run->moving ? SWC_WALK_ON : setup_recv(run, x);

	if (w == SWC_WALK_ON)
		w = swc_carry_on(run);
	if (w == SWC_WALK_ON)
		release_send(run);
	return w;
}

/* ------------------------------------------------------------------ network steps, between nodes */

/*
 * Is what this receive gets written into place by the sender? Both ends decide alike. What partitions get is
 * not: memory that is offered for one that its sender has not marked ready yet would be missing for others.
 */
static bool is_direct(const struct swc_run *run, const struct swc_plan_xfer *x, u64 bytes)
{
	return !(x->flags & SWC_XFER_REDUCE) && bytes >= SWC_WIRE_DIRECT && !run->part->parted;
}

static u32 link_of(const struct swc_run *run, const struct swc_plan_xfer *x)
{
	const struct swc_plan *plan = run->part->plan;

	return plan->links ? plan->links->link[x - plan->view.xfers] : SWC_NO_LINK;
}

/* Have the messages of the steps before @step left their memory? op->lock is held. */
static bool have_left(const struct swc_run *run, u32 step)
{
	u32 first = run->part->plan->view.channels[run->channel].first_step;
	u32 i, ahead = run->part->plan->links->ahead;

	/* Those long before have already; and where the current step has sent, its records are its own. */
	for (i = step; i > first && i + ahead > run->step + run->posted; i--)
		if (run->unsent[(i - 1) % ahead])
			return false;
	return true;
}

/* Are the records of the step's landings free? op->lock is held. */
static bool can_offer(const struct swc_run *run, u32 step)
{
	return !run->exposed[step % run->part->plan->links->kept];
}

/*
 * May the step go on? A network step first sends, for which it needs the records of an earlier step, and only
 * then waits until what it is going to overwrite has left its memory, and the records of its landings have
 * come back: mostly that is so when the answer comes.
 * op->lock is held.
 */
bool swc_step_fence_passed(const struct swc_run *run)
{
	const struct swc_links *links = run->part->plan->links;
	bool net = run->part->plan->view.steps[run->step].kind == SWC_STEP_NET;

	if (net && !run->posted)
		return !run->unsent[run->step % links->ahead];
	if (net && run->offered <= run->step && !can_offer(run, run->step))
		return false;
	return have_left(run, links->fence[run->step]);
}

enum swc_walk swc_step_fence(struct swc_run *run)
{
	struct swc_op *op = run->part->op;
	enum swc_walk w = SWC_WALK_ON;

	spin_lock(&op->lock);
	if (!swc_step_fence_passed(run)) {
		run->state = SWC_RUN_WAIT_FENCE;
		w = SWC_WALK_WAIT;
	}
	spin_unlock(&op->lock);
	return w;
}

/* Give the step's messages to their connections. */
static void send_remote(struct swc_run *run, const struct swc_plan_step *s)
{
	struct swc_part *part = run->part;
	const struct swc_plan *plan = part->plan;
	const struct swc_plan_xfer *x = &plan->view.xfers[s->first_xfer];
	u32 i, slot = run->step % plan->links->ahead;
	struct swc_op *op = part->op;

	for (i = 0; i < s->nsend; i++, x++) {
		struct swc_out *out = &run->out[slot * plan->view.max_sends + i];
		u32 link = link_of(run, x);

		if (link == SWC_NO_LINK)
			continue;
		*out = (struct swc_out){ .run = run, .step = run->step, .peer = x->rank, .seq = op->seq,
					 .ordinal = plan->links->ordinal[x - plan->view.xfers],
					 .stored = (x->flags & SWC_XFER_STORED) && !part->parted,
					 .bytes = xfer_bytes(part, x) };
		/* Verified: its own blocks lie in its windows. */
		if (out->bytes)
			span_of(part, x, x->buf, &out->span);
		spin_lock(&op->lock);
		op->nposted++;
		run->unsent[slot]++;
		spin_unlock(&op->lock);
		swc_conn_send(plan->links->links[link].conn, out);
	}
}

/* The landings of a step. */
static struct swc_landing *lands_of(const struct swc_run *run, u32 step)
{
	const struct swc_plan *plan = run->part->plan;

	return &run->land[step % plan->links->kept * plan->view.max_recvs];
}

/* Offer the memory that others write a step's messages into. */
static void offer_remote(struct swc_run *run, u32 step)
{
	struct swc_part *part = run->part;
	const struct swc_plan *plan = part->plan;
	const struct swc_plan_step *s = &plan->view.steps[step];
	const struct swc_plan_xfer *x = &plan->view.xfers[s->first_xfer + s->nsend];
	struct swc_op *op = part->op;
	u32 i;

	for (i = 0; i < s->nrecv; i++, x++) {
		struct swc_landing *land = &lands_of(run, step)[i];
		u64 bytes = xfer_bytes(part, x);
		u32 link = link_of(run, x);

		if (link == SWC_NO_LINK || !is_direct(run, x, bytes))
			continue;
		*land = (struct swc_landing){ .run = run, .step = step, .seq = op->seq, .src = x->rank,
					      .ordinal = plan->links->ordinal[x - plan->view.xfers],
					      .bytes = bytes };
		span_of(part, x, x->buf, &land->span);
		spin_lock(&op->lock);
		op->nposted++;
		run->exposed[step % plan->links->kept]++;
		spin_unlock(&op->lock);
		if (step > run->step)
			swc_stat_inc(SWC_STAT_EARLY_OFFERS);
		swc_conn_land(plan->links->links[link].conn, land);
	}
}

/*
 * Offer the memory of the current step, unless that has been done, and of those behind it whose memory is
 * free already: their senders need not wait for the offers then. In the order of the steps, for a connection
 * can have but few offers at a time, and a later step must not take what an earlier one needs.
 */
static void offer_steps(struct swc_run *run)
{
	const struct swc_plan *plan = run->part->plan;
	struct swc_op *op = run->part->op;
	u32 step = max(run->offered, run->step), end = min(run->end, run->step + plan->links->kept);

	for (; step < end; step++) {
		bool is_free = step == run->step;

		if (!is_free && (plan->view.steps[step].kind != SWC_STEP_NET ||
				 plan->links->early[step] > run->step))
			break;
		spin_lock(&op->lock);
		is_free |= have_left(run, plan->links->fence[step]) && can_offer(run, step);
		spin_unlock(&op->lock);
		if (!is_free)
			break;
		offer_remote(run, step);
		run->offered = step + 1;
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
static enum swc_walk setup_landed(struct swc_run *run, const struct swc_plan_xfer *x,
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
	return SWC_WALK_ON;
}

static enum swc_walk setup_seg(struct swc_run *run, const struct swc_plan_xfer *x, struct swc_seg *seg)
{
	struct swc_part *part = run->part;
	struct swc_move *m = &run->move;
	u32 src = 0;

	run->seg = seg;
	if (seg->msg.total != xfer_bytes(part, x) || seg->msg.offset != run->got)
		return swc_step_broken(run, x->rank, "receives another size than the peer sends");
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
	return SWC_WALK_ON;
}

/* Find what has come for this receive, or wait. */
static enum swc_walk setup_remote(struct swc_run *run, const struct swc_plan_xfer *x)
{
	bool direct = is_direct(run, x, xfer_bytes(run->part, x));
	struct swc_landing *land = direct ? &lands_of(run, run->step)[run->recv] : NULL;
	struct swc_op *op = run->part->op;
	struct swc_seg *seg = NULL;
	bool there;

	spin_lock(&op->lock);
	if (!land)
		seg = take_seg(run, x);
	there = land ? land->done : !!seg;
	if (!there) {
		run->wait_rank = x->rank;
		run->wait_ordinal = run->part->plan->links->ordinal[x - run->part->plan->view.xfers];
		run->state = SWC_RUN_WAIT_RECV;
	}
	spin_unlock(&op->lock);
	if (!there)
		return SWC_WALK_WAIT;
	return land ? setup_landed(run, x, land) : setup_seg(run, x, seg);
}

/* A message may come in several segments; each is used as it comes. */
static enum swc_walk recv_remote(struct swc_run *run, const struct swc_plan_xfer *x)
{
	u64 bytes = xfer_bytes(run->part, x);
	enum swc_walk w = SWC_WALK_ON;

	do {
		if (!run->moving)
			w = setup_remote(run, x);
		if (w == SWC_WALK_ON)
			w = swc_carry_on(run);
		if (w != SWC_WALK_ON)
			return w;
		if (run->seg) {
			run->got += run->seg->msg.bytes;
			swc_conn_release(run->seg);
			run->seg = NULL;
		}
	} while (run->got < bytes);
	run->got = 0;
	return SWC_WALK_ON;
}

/* ------------------------------------------------------------------ network steps */

enum swc_walk swc_step_net(struct swc_run *run, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *recvs = &run->part->plan->view.xfers[s->first_xfer + s->nsend];
	struct swc_op *op = run->part->op;
	enum swc_walk w = SWC_WALK_ON;

	if (!run->posted) {
		run->recv = 0;
		run->cleared = !run->part->plan->links;
		post_sends(run, s);
		if (!run->cleared)
			send_remote(run, s);
	}
	if (!run->cleared) {
		w = swc_step_fence(run);
		if (w != SWC_WALK_ON)
			return w;
		run->cleared = true;
		offer_steps(run);
		prepare_local(run, run->step + 1);
	}
	for (; run->recv < s->nrecv; run->recv++) {
		const struct swc_plan_xfer *x = &recvs[run->recv];

		w = link_of(run, x) == SWC_NO_LINK ? recv_local(run, x) : recv_remote(run, x);
		if (w != SWC_WALK_ON)
			return w;
	}
	swc_stat_inc(SWC_STAT_STEPS_NET);

	spin_lock(&op->lock);
	if (run->sends_left) {
		run->state = SWC_RUN_WAIT_SENDS;
		w = SWC_WALK_WAIT;
	} else {
		run->posted = false;
	}
	spin_unlock(&op->lock);
	return w;
}
