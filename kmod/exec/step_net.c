// SPDX-License-Identifier: GPL-2.0-only
/*
 * Network steps: concurrent sends and receives. This file has the phases of a step, and transfers between
 * ranks of this node, which the receiver reads straight from the sender's buffer; step_remote.c has
 * messages to and from other nodes.
 */
#include <linux/bitmap.h>

#include "comm/comm.h"
#include "exec/offload.h"
#include "exec/runq.h"
#include "exec/step.h"
#include "exec/xfer.h"
#include "plan/plan.h"
#include "plan/send_index.h"

/* ------------------------------------------------------------------ transfers on this node */

/* Announce the step's sends, and make the peers ready that wait for them. */
static void announce_sends(struct swc_task *task, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *x = &task->req->plan->view.xfers[s->first_xfer];
	struct swc_op *op = task->req->op;
	u32 i, me = task->req->member->rank;

	spin_lock(&op->lock);
	bitmap_zero(task->taken, s->nsend);
	task->sends_left = 0;
	/* Without other nodes there is nothing to wait for before receiving. */
	task->phase = task->req->plan->net ? SWC_NET_POST : SWC_NET_RECV;
	for (i = 0; i < s->nsend; i++) {
		struct swc_task *peer = swc_op_task(op, x[i].rank, task->channel);

		task->sends_left += swc_comm_is_local(op->comm, x[i].rank);
		if (peer && peer->state == SWC_TASK_WAIT_RECV && peer->wait_rank == me)
			swc_runq_add(op, peer);
	}
	spin_unlock(&op->lock);
}

/* Claim the peer's first send to this rank that no task has claimed; op->lock is held. */
static const struct swc_plan_xfer *claim_send(struct swc_task *from, u32 to)
{
	const struct swc_plan *plan = from->req->plan;
	const struct swc_plan_step *s = &plan->view.steps[from->step];
	u32 i;

	if (from->phase == SWC_NET_SEND)
		return NULL;
	i = swc_send_index_claim(plan->send_index, s, to, from->taken);
	return i == SWC_NO_SEND ? NULL : &plan->view.xfers[s->first_xfer + i];
}

/* Claim what the peer sends, or wait for it. */
static const struct swc_plan_xfer *claim_or_wait(struct swc_task *task, u32 rank)
{
	const struct swc_plan_xfer *sent = NULL;
	struct swc_op *op = task->req->op;
	struct swc_task *from;

	spin_lock(&op->lock);
	from = swc_op_task(op, rank, task->channel);
	if (from)
		sent = claim_send(from, task->req->member->rank);
	task->sender = from;
	if (!sent) {
		task->wait_rank = rank;
		swc_task_set_state(task, SWC_TASK_WAIT_RECV);
	}
	spin_unlock(&op->lock);
	return sent;
}

/* Set up the copy of a receive, straight from the peer's buffer. */
static enum swc_step_status set_up_recv(struct swc_task *task, const struct swc_plan_xfer *x)
{
	const struct swc_plan_xfer *sent = claim_or_wait(task, x->rank);
	struct swc_reduce_copy *m = &task->copy;
	struct swc_req *req = task->req, *from;
	u32 src = 0;

	if (!sent)
		return SWC_STATUS_WAIT;
	from = task->sender->req;
	m->bytes = swc_xfer_bytes(req, x);
	m->done = 0;
	m->ndst = 1;
	m->div = swc_xfer_divisor(task, x);
	if (swc_xfer_bytes(from, sent) != m->bytes)
		return swc_xfer_mismatch(task, x->rank, "receives another size than the peer sends");
	if (m->bytes) {
		/* Both plans were verified: each rank's own blocks lie in its own windows. */
		if (x->flags & SWC_XFER_REDUCE)
			swc_xfer_span(req, x, x->operand, &m->span[src++]);
		swc_xfer_span(from, sent, sent->buf, &m->span[src++]);
		swc_xfer_span(req, x, x->buf, &m->span[src]);
		m->nsrc = src;
	}
	task->copying = true;
	return SWC_STATUS_OK;
}

/* The send has been read; if it was the sender's last, the sender's step is done. */
static void release_send(struct swc_task *task)
{
	struct swc_op *op = task->req->op;
	struct swc_task *from = task->sender;

	spin_lock(&op->lock);
	task->sender = NULL;
	if (!--from->sends_left && from->state == SWC_TASK_WAIT_SENDS) {
		from->phase = SWC_NET_SEND;
		from->step++;
		swc_runq_add(op, from);
	}
	spin_unlock(&op->lock);
}

static enum swc_step_status recv_local(struct swc_task *task, const struct swc_plan_xfer *x)
{
	enum swc_step_status status = task->copying ? SWC_STATUS_OK : set_up_recv(task, x);

	if (status == SWC_STATUS_OK)
		status = swc_offload_copy(task);
	if (status == SWC_STATUS_OK)
		release_send(task);
	return status;
}

/* ------------------------------------------------------------------ phases */

static void begin(struct swc_task *task, const struct swc_plan_step *s)
{
	task->posted = 0;
	task->recv = 0;
	announce_sends(task, s);
}

/* Peers only distinguish SEND from the other phases. */
static enum swc_step_status post(struct swc_task *task, const struct swc_plan_step *s)
{
	enum swc_step_status status = swc_remote_send(task, s);

	if (status == SWC_STATUS_OK)
		WRITE_ONCE(task->phase, SWC_NET_FENCE);
	return status;
}

/* Wait until the step may overwrite its memory; then offer that to other nodes. */
static enum swc_step_status pass_fence(struct swc_task *task)
{
	enum swc_step_status status = swc_remote_fence(task);

	if (status != SWC_STATUS_OK)
		return status;
	swc_remote_offer(task);
	swc_step_prepare_local(task, task->step + 1);
	WRITE_ONCE(task->phase, SWC_NET_RECV);
	return SWC_STATUS_OK;
}

static enum swc_step_status receive(struct swc_task *task, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *recvs = &task->req->plan->view.xfers[s->first_xfer + s->nsend];
	enum swc_step_status status = SWC_STATUS_OK;

	while (status == SWC_STATUS_OK && task->recv < s->nrecv) {
		const struct swc_plan_xfer *x = &recvs[task->recv];

		status = swc_remote_conn(task, x) == SWC_NO_CONN ? recv_local(task, x) :
								    swc_remote_recv(task, x);
		if (status != SWC_STATUS_OK)
			break;
		task->recv++;
		/* A step may have 65535 receives. */
		if (task->recv < s->nrecv)
			status = swc_task_look_up(task);
	}
	return status;
}

/* The step is done when the ranks of this node have read its sends; the last of them ends it otherwise. */
static enum swc_step_status end(struct swc_task *task)
{
	struct swc_op *op = task->req->op;
	enum swc_step_status status = SWC_STATUS_OK;

	swc_stat_inc(SWC_STAT_STEPS_NET);
	spin_lock(&op->lock);
	if (task->sends_left) {
		swc_task_set_state(task, SWC_TASK_WAIT_SENDS);
		status = SWC_STATUS_WAIT;
	} else {
		task->phase = SWC_NET_SEND;
	}
	spin_unlock(&op->lock);
	return status;
}

enum swc_step_status swc_step_net(struct swc_task *task, const struct swc_plan_step *s)
{
	enum swc_step_status status = SWC_STATUS_OK;

	if (task->phase == SWC_NET_SEND)
		begin(task, s);
	if (task->phase == SWC_NET_POST)
		status = post(task, s);
	if (status == SWC_STATUS_OK && task->phase == SWC_NET_FENCE)
		status = pass_fence(task);
	if (status == SWC_STATUS_OK)
		status = receive(task, s);
	if (status == SWC_STATUS_OK)
		status = end(task);
	return status;
}
