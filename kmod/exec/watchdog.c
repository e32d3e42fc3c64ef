// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watch over deadlines.
 *
 * A node sees only the ranks that it waits for itself, and those may wait for others. So it asks them,
 * shortly before the deadline, whether they have come. If not, it ends the communicator on time; if so, it
 * leaves that to those who know whom all wait for, for a while.
 */
#include <linux/ktime.h>

#include "comm/comm.h"
#include "exec/watchdog.h"
#include "exec/operation.h"

#define ASK_NS		(200 * NSEC_PER_MSEC)
#define PATIENCE_NS	(800 * NSEC_PER_MSEC)

/* When the watchdog must look at an operation for the first time. */
u64 swc_deadline_look(const struct swc_comm *comm, u64 now, u64 deadline)
{
	return comm->net ? deadline - min_t(u64, ASK_NS, (deadline - now) / 4) : deadline;
}

/* Make the watchdog look at the time @at, at the latest. */
void swc_deadline_watch(struct swc_comm *comm, u64 at)
{
	u64 now = ktime_get_ns();

	spin_lock(&comm->lock);
	if (!comm->next_check || at < comm->next_check) {
		comm->next_check = at;
		mod_delayed_work(swc_wq, &comm->watchdog, at > now ? nsecs_to_jiffies(at - now) + 1 : 0);
	}
	spin_unlock(&comm->lock);
}

/* Decide about an operation whose time to look has come: true: it is over; false: look again at op->look. */
static bool too_late(struct swc_comm *comm, struct swc_op *op, int peer, u64 now, bool *ask)
{
	lockdep_assert_held(&comm->lock);
	*ask = false;
	if (peer < 0 || now >= op->deadline + PATIENCE_NS) {
		op->look = op->deadline;
		return now >= op->deadline;
	}
	if (op->asked != peer) {
		op->asked = peer;
		*ask = true;
		op->look = max(now + ASK_NS, op->deadline);
		return false;
	}
	if (comm->member[peer].submitted > op->seq) {
		op->look = op->deadline + PATIENCE_NS;
		return false;
	}
	op->look = op->deadline;
	return now >= op->deadline;
}

/* The deadline of @op has passed: end the communicator and name who was late. */
static void expire(struct swc_comm *comm, struct swc_op *op, int peer)
{
	char who[SWC_TEXT_BYTES / 2];
	int culprit = swc_op_missing(op, who, sizeof(who));
	const char *trouble = peer >= 0 ? swc_net_trouble(comm->net, peer) : NULL;
	u32 narrived = READ_ONCE(op->narrived);
	int own = -1;

	if (culprit < 0 && peer >= 0)
		own = swc_net_card_down(comm->net, peer, who, sizeof(who));
	swc_stat_inc(SWC_STAT_TIMEOUTS);
	if (culprit >= 0)
		swc_comm_abort(comm, -ETIMEDOUT, culprit, op->seq,
			       "operation %llu: deadline passed, %u of %u ranks had come; missing: %s",
			       op->seq, narrived, comm->nlocal, who);
	else if (own >= 0)
		swc_comm_abort(comm, -ETIMEDOUT, own, op->seq,
			       "operation %llu: deadline passed while rank %d waited for rank %d%s", op->seq,
			       own, peer, who);
	else if (trouble)
		swc_comm_abort(comm, -ETIMEDOUT, peer, op->seq,
			       "operation %llu: deadline passed without a connection with rank %d: %s",
			       op->seq, peer, trouble);
	else if (peer >= 0)
		swc_comm_abort(comm, -ETIMEDOUT, peer, op->seq,
			       "operation %llu: deadline passed while this node waited for rank %d, which had %s",
			       op->seq, peer, READ_ONCE(comm->member[peer].submitted) > op->seq ?
			       "come, but was not done" : "not come");
	else
		swc_comm_abort(comm, -ETIMEDOUT, -1, op->seq,
			       "operation %llu: all %u ranks had come, but it was not done by its deadline",
			       op->seq, narrived);
}

/* Look at an operation whose time has come. */
static void look_at(struct swc_comm *comm, struct swc_op *op)
{
	int peer = comm->net ? swc_op_waits_for(op) : -1;
	u64 look;
	bool over, ask;

	spin_lock(&comm->lock);
	over = too_late(comm, op, peer, ktime_get_ns(), &ask);
	look = op->look;
	spin_unlock(&comm->lock);
	if (ask)
		swc_net_ask(comm->net, peer);
	if (over)
		expire(comm, op, peer);
	else
		swc_deadline_watch(comm, look);
}

/* Work item. */
void swc_deadline_work(struct work_struct *work)
{
	struct swc_comm *comm = container_of(work, struct swc_comm, watchdog.work);
	struct swc_op *op, *late = NULL;
	u64 now = ktime_get_ns(), next = 0;

	/* A communicator whose last reference is gone has no operations either. */
	if (!kref_get_unless_zero(&comm->ref))
		return;
	spin_lock(&comm->lock);
	comm->next_check = 0;
	list_for_each_entry(op, &comm->ops, node) {
		/* Nobody has come to those that are only reserved. */
		if (READ_ONCE(op->status) || READ_ONCE(op->finished) || op->look == U64_MAX)
			continue;
		if (op->look <= now && !late) {
			late = op;
			kref_get(&op->ref);
		} else if (!next || op->look < next) {
			next = op->look;
		}
	}
	spin_unlock(&comm->lock);
	if (late) {
		look_at(comm, late);
		swc_op_put(late);
	}
	if (next)
		swc_deadline_watch(comm, next);
	swc_comm_put(comm);
}
