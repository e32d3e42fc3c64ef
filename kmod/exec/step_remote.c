// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages to and from other nodes: giving a step's sends to their connections, offering memory that peers
 * write into (rendezvous), and consuming what has arrived.
 *
 * A task may be several steps ahead of its messages. The plan says (plan/hazard.c) which earlier messages
 * must have left their memory before a step overwrites it: the step's fence.
 */
#include "comm/comm.h"
#include "exec/offload.h"
#include "exec/step.h"
#include "exec/xfer.h"
#include "net.h"
#include "plan/plan.h"

/* The connection of a transfer: an index into plan->net->conns; SWC_NO_CONN: the peer is on this node. */
u32 swc_remote_conn(const struct swc_task *task, const struct swc_plan_xfer *x)
{
	const struct swc_plan *plan = task->req->plan;

	return plan->net ? plan->net->conn_of[x - plan->view.xfers] : SWC_NO_CONN;
}

static u32 ordinal_of(const struct swc_task *task, const struct swc_plan_xfer *x)
{
	const struct swc_plan *plan = task->req->plan;

	return plan->net->ordinal[x - plan->view.xfers];
}

/*
 * Does the sender write the message straight into place? Both ends decide alike. Not for partitions: memory
 * offered for one that its sender has not marked ready yet would be missing for others.
 */
static bool is_rndv(const struct swc_task *task, const struct swc_plan_xfer *x, u64 bytes)
{
	return !(x->flags & SWC_XFER_REDUCE) && bytes >= SWC_WIRE_DIRECT && !task->req->partitioned;
}

/* ------------------------------------------------------------------ fences */

/* Have the messages of the steps before @step left their memory? op->lock is held. */
static bool sends_have_left(const struct swc_task *task, u32 step)
{
	u32 first = task->req->plan->view.channels[task->channel].first_step;
	/* Once the current step has sent, its records are its own; those of older steps were free before. */
	u32 end = task->step + (task->phase != SWC_NET_SEND);

	if (end > first + task->window.size)
		first = end - task->window.size;
	return swc_send_window_empty(&task->window, first, step);
}

/* Have connections returned the records of the step's offers? op->lock is held. */
static bool offers_are_free(const struct swc_task *task, u32 step)
{
	return !task->rndvs_pending[step % task->req->plan->net->rndv_window];
}

/**
 * swc_remote_fence_passed() - may the task's step go on? op->lock is held
 *
 * A network step sends first, for which it needs the records of an earlier step. Only then it waits until
 * what it overwrites has left its memory, and until the records of its offers are free: mostly they are by
 * the time the peer answers.
 */
bool swc_remote_fence_passed(const struct swc_task *task)
{
	const struct swc_plan *plan = task->req->plan;
	bool is_net = plan->view.steps[task->step].kind == SWC_STEP_NET;

	if (is_net && task->phase == SWC_NET_SEND)
		return !task->window.pending[task->step % task->window.size];
	if (is_net && task->offered <= task->step && !offers_are_free(task, task->step))
		return false;
	return sends_have_left(task, plan->net->fence[task->step]);
}

/* Pass the fence of the task's step, or wait for it. */
enum swc_step_status swc_remote_fence(struct swc_task *task)
{
	struct swc_op *op = task->req->op;
	bool passed;

	spin_lock(&op->lock);
	passed = swc_remote_fence_passed(task);
	if (!passed)
		swc_task_set_state(task, SWC_TASK_WAIT_FENCE);
	spin_unlock(&op->lock);
	return passed ? SWC_STATUS_OK : SWC_STATUS_WAIT;
}

/* ------------------------------------------------------------------ sends */

/* So many sends until the worker looks at the clock. */
#define SENDS_AT_ONCE	16

/* Give a send of the step to its connection, if it is for another node. */
static void post_send(struct swc_task *task, const struct swc_plan_step *s, u32 i)
{
	const struct swc_plan *plan = task->req->plan;
	const struct swc_plan_xfer *x = &plan->view.xfers[s->first_xfer + i];
	u32 max_sends = plan->net->max_sends[task->channel], conn = swc_remote_conn(task, x);
	struct swc_send *send = &task->sends[task->step % task->window.size * max_sends + i];
	struct swc_req *req = task->req;
	struct swc_op *op = req->op;

	if (conn == SWC_NO_CONN)
		return;
	*send = (struct swc_send){ .task = task, .step = task->step, .peer = x->rank, .seq = op->seq,
				   .sig = &op->sig, .ordinal = ordinal_of(task, x),
				   .stored = (x->flags & SWC_XFER_STORED) && !req->partitioned,
				   .bytes = swc_xfer_bytes(req, x) };
	/* Verified: its own blocks lie in its windows. */
	if (send->bytes)
		swc_xfer_span(req, x, x->buf, &send->span);
	spin_lock(&op->lock);
	op->nposted++;
	swc_send_window_add(&task->window, task->step);
	spin_unlock(&op->lock);
	swc_conn_send(plan->net->conns[conn].conn, send, i + 1 < s->nsend);
}

/**
 * swc_remote_send() - give the step's messages to their connections, or continue that
 *
 * First all of them, then they go: small ones to the same peer together. A step may have 65535 sends.
 */
enum swc_step_status swc_remote_send(struct swc_task *task, const struct swc_plan_step *s)
{
	const struct swc_plan *plan = task->req->plan;
	const struct swc_plan_xfer *x = &plan->view.xfers[s->first_xfer];
	u32 i;

	while (task->posted < s->nsend) {
		enum swc_step_status status = SWC_STATUS_OK;

		post_send(task, s, task->posted++);
		if (!(task->posted % SENDS_AT_ONCE) && task->posted < s->nsend)
			status = swc_task_look_up(task);
		if (status != SWC_STATUS_OK)
			return status;
	}
	for (i = 1; i < s->nsend; i++, x++)
		if (swc_remote_conn(task, x) != SWC_NO_CONN)
			swc_conn_flush(plan->net->conns[swc_remote_conn(task, x)].conn);
	return SWC_STATUS_OK;
}

/* ------------------------------------------------------------------ offers */

/* The records of a step's rendezvous receives. */
static struct swc_rndv *rndvs_of(const struct swc_task *task, u32 step)
{
	const struct swc_plan *plan = task->req->plan;

	return &task->rndv[step % plan->net->rndv_window * plan->net->max_recvs[task->channel]];
}

/* Offer the memory that peers write a step's messages into. */
static void offer_step(struct swc_task *task, u32 step)
{
	struct swc_req *req = task->req;
	const struct swc_plan *plan = req->plan;
	const struct swc_plan_step *s = &plan->view.steps[step];
	const struct swc_plan_xfer *x = &plan->view.xfers[s->first_xfer + s->nsend];
	struct swc_op *op = req->op;
	u32 i, posted = 0;

	for (i = 0; i < s->nrecv; i++, x++) {
		struct swc_rndv *rndv = &rndvs_of(task, step)[i];
		u64 bytes = swc_xfer_bytes(req, x);
		u32 conn = swc_remote_conn(task, x);

		if (conn == SWC_NO_CONN || !is_rndv(task, x, bytes))
			continue;
		*rndv = (struct swc_rndv){ .task = task, .step = step, .seq = op->seq, .sig = &op->sig,
					   .src = x->rank, .ordinal = ordinal_of(task, x), .bytes = bytes };
		swc_xfer_span(req, x, x->buf, &rndv->span);
		spin_lock(&op->lock);
		op->nposted++;
		task->rndvs_pending[step % plan->net->rndv_window]++;
		spin_unlock(&op->lock);
		if (step > task->step)
			swc_stat_inc(SWC_STAT_RTR_EARLY);
		swc_conn_post_rndv(plan->net->conns[conn].conn, rndv, i + 1 < s->nrecv);
		posted++;
		/* A step may have 65535 receives. */
		cond_resched();
	}
	for (i = 1, x -= s->nrecv; posted && i < s->nrecv; i++, x++)
		if (swc_remote_conn(task, x) != SWC_NO_CONN)
			swc_conn_flush(plan->net->conns[swc_remote_conn(task, x)].conn);
}

/* May the memory of a later step be offered already? */
static bool can_offer_early(struct swc_task *task, u32 step)
{
	const struct swc_plan *plan = task->req->plan;
	struct swc_op *op = task->req->op;
	bool can;

	if (plan->view.steps[step].kind != SWC_STEP_NET || plan->net->free_from[step] > task->step)
		return false;
	spin_lock(&op->lock);
	can = sends_have_left(task, plan->net->fence[step]) && offers_are_free(task, step);
	spin_unlock(&op->lock);
	return can;
}

/**
 * swc_remote_offer() - offer memory to senders, which need not wait for the offers then
 *
 * Offers the memory of the current step, unless that has been done, and of later steps whose memory is free
 * already. In the order of the steps, because a connection has few offers at a time, and a later step must
 * not take what an earlier one needs.
 */
void swc_remote_offer(struct swc_task *task)
{
	u32 step = max(task->offered, task->step);
	u32 end = min(task->end, task->step + task->req->plan->net->rndv_window);

	while (step < end && (step == task->step || can_offer_early(task, step))) {
		offer_step(task, step++);
		task->offered = step;
	}
}

/* ------------------------------------------------------------------ receives */

/* Take the next segment of the message that @x receives out of the inbox; op->lock is held. */
static struct swc_net_seg *take_segment(struct swc_task *task, const struct swc_plan_xfer *x)
{
	u32 ordinal = ordinal_of(task, x);
	struct swc_net_seg *seg;

	list_for_each_entry(seg, &task->inbox, node) {
		if (seg->src == x->rank && seg->msg.ordinal == ordinal) {
			list_del_init(&seg->node);
			return seg;
		}
	}
	return NULL;
}

/* A message that was written into place needs only the division of an average. */
static void set_up_rndv(struct swc_task *task, const struct swc_plan_xfer *x, const struct swc_rndv *rndv)
{
	struct swc_reduce_copy *m = &task->copy;

	task->got = rndv->bytes;
	m->div = swc_xfer_divisor(task, x);
	m->bytes = m->div ? rndv->bytes : 0;
	m->done = 0;
	m->nsrc = 1;
	m->ndst = 1;
	m->span[0] = rndv->span;
	m->span[1] = rndv->span;
	task->copying = true;
}

/* The range of a transfer's buffer that the next segment belongs to. */
static struct swc_span segment_span(const struct swc_task *task, const struct swc_plan_xfer *x, u8 buf)
{
	struct swc_span span;

	/* Verified: its own blocks lie in its windows. */
	swc_xfer_span(task->req, x, buf, &span);
	span.offset += task->got;
	return span;
}

static enum swc_step_status set_up_segment(struct swc_task *task, const struct swc_plan_xfer *x,
					   struct swc_net_seg *seg)
{
	struct swc_reduce_copy *m = &task->copy;
	u32 src = 0;

	task->seg = seg;
	if (seg->msg.total != swc_xfer_bytes(task->req, x) || seg->msg.offset != task->got)
		return swc_xfer_mismatch(task, x->rank, "receives another size than the peer sends");
	m->bytes = seg->msg.bytes;
	m->done = 0;
	m->ndst = 1;
	m->div = swc_xfer_divisor(task, x);
	if (m->bytes) {
		if (x->flags & SWC_XFER_REDUCE)
			m->span[src++] = segment_span(task, x, x->operand);
		m->span[src++] = seg->span;
		m->span[src] = segment_span(task, x, x->buf);
		m->nsrc = src;
	}
	task->copying = true;
	return SWC_STATUS_OK;
}

/* Set up the copy of what has arrived for a receive, or wait for it. */
static enum swc_step_status set_up_recv(struct swc_task *task, const struct swc_plan_xfer *x)
{
	bool is_direct = is_rndv(task, x, swc_xfer_bytes(task->req, x));
	struct swc_rndv *rndv = is_direct ? &rndvs_of(task, task->step)[task->recv] : NULL;
	struct swc_op *op = task->req->op;
	struct swc_net_seg *seg = NULL;
	bool arrived;

	spin_lock(&op->lock);
	if (!rndv)
		seg = take_segment(task, x);
	arrived = rndv ? rndv->done : !!seg;
	if (!arrived) {
		task->wait_rank = x->rank;
		task->wait_ordinal = ordinal_of(task, x);
		swc_task_set_state(task, SWC_TASK_WAIT_RECV);
	}
	spin_unlock(&op->lock);
	if (!arrived)
		return SWC_STATUS_WAIT;
	if (seg)
		return set_up_segment(task, x, seg);
	set_up_rndv(task, x, rndv);
	return SWC_STATUS_OK;
}

/* The rest of a segment of several messages is for the next receives from the peer. */
static void consumed(struct swc_task *task)
{
	struct swc_net_seg *seg = task->seg;
	struct swc_op *op = task->req->op;

	task->got += seg->msg.bytes;
	task->seg = NULL;
	if (!swc_net_seg_next(seg)) {
		swc_conn_release(seg);
		return;
	}
	spin_lock(&op->lock);
	list_add(&seg->node, &task->inbox);
	spin_unlock(&op->lock);
}

/**
 * swc_remote_recv() - receive a message of another node; its segments are used as they arrive
 */
enum swc_step_status swc_remote_recv(struct swc_task *task, const struct swc_plan_xfer *x)
{
	u64 bytes = swc_xfer_bytes(task->req, x);
	enum swc_step_status status;

	do {
		status = task->copying ? SWC_STATUS_OK : set_up_recv(task, x);
		if (status == SWC_STATUS_OK)
			status = swc_offload_copy(task);
		if (status != SWC_STATUS_OK)
			return status;
		if (task->seg)
			consumed(task);
	} while (task->got < bytes);
	task->got = 0;
	return SWC_STATUS_OK;
}

/* ------------------------------------------------------------------ waiting processes */

/* The connection whose next message a task waits for; NULL: none. op->lock is held. */
static struct swc_conn *awaited(const struct swc_task *task)
{
	const struct swc_plan *plan = task->req->plan;
	const struct swc_plan_step *s;
	u32 conn;

	if (task->state != SWC_TASK_WAIT_RECV)
		return NULL;
	s = &plan->view.steps[task->step];
	conn = swc_remote_conn(task, &plan->view.xfers[s->first_xfer + s->nsend + task->recv]);
	return conn == SWC_NO_CONN ? NULL : plan->net->conns[conn].conn;
}

/**
 * swc_remote_wait() - a process is going to sleep: let the message that it waits for wake it
 * @req: its request, which waits for nothing yet; @req->waiter.wake is set
 *
 * With several channels it waits for one of those messages; kernel threads handle the others.
 */
void swc_remote_wait(struct swc_req *req)
{
	struct swc_conn *conn = NULL;
	struct swc_op *op = req->op;
	u32 c;

	spin_lock(&op->lock);
	/* Later the request has no plan any more. */
	for (c = 0; c < req->ntasks && !conn && !op->finished; c++)
		conn = awaited(&req->tasks[c]);
	if (conn)
		swc_net_wait(&req->waiter, conn);
	spin_unlock(&op->lock);
}

/**
 * swc_remote_poll() - let a process look for one of the messages that its request waits for
 *
 * Return: what to look at, begun; NULL if the request waits for none, or none can be looked for.
 */
struct swc_net_poll *swc_remote_poll(struct swc_req *req)
{
	struct swc_net_poll *poll = NULL;
	struct swc_op *op = req->op;
	u32 c;

	spin_lock(&op->lock);
	for (c = 0; c < req->ntasks && !poll && !op->finished; c++) {
		struct swc_conn *conn = awaited(&req->tasks[c]);

		if (conn)
			poll = swc_net_poll_begin(conn);
	}
	spin_unlock(&op->lock);
	return poll;
}
