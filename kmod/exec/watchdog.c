// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watchdog: finds operations past their deadline and names the late rank; and members that end while
 * others wait for them.
 *
 * A node sees only the ranks that it waits for itself, and those may wait for others. So shortly before a
 * deadline it asks the rank that it waits for whether that has arrived. If not, it aborts the communicator
 * on time; if so, it leaves that for a while to nodes that know the late rank.
 */
#include <linux/ktime.h>

#include "comm/comm.h"
#include "comm/exit_text.h"
#include "exec/watchdog.h"
#include "exec/operation.h"

#define HEARTBEAT_NS	(200 * NSEC_PER_MSEC)
/* Deadlines of nodes differ by as much as their ranks arrive apart: a second where a packet was lost. */
#define GRACE_NS	(2 * NSEC_PER_SEC)
/* Between two looks at the members, while operations wait for any. */
#define LOOK_NS		NSEC_PER_SEC

/* When the watchdog must check an operation for the first time: ktime. */
u64 swc_watchdog_first_check(const struct swc_comm *comm, u64 now, u64 deadline)
{
	return comm->net ? deadline - min_t(u64, HEARTBEAT_NS, (deadline - now) / 4) : deadline;
}

/* Make the watchdog run at the time @at, or earlier; @now: the time. comm->lock is held. */
void swc_watchdog_arm(struct swc_comm *comm, u64 at, u64 now)
{
	lockdep_assert_held(&comm->lock);
	if (comm->next_check && comm->next_check <= at)
		return;
	comm->next_check = at;
	mod_delayed_work(swc_wq, &comm->watchdog, at > now ? nsecs_to_jiffies(at - now) + 1 : 0);
}

/* Likewise, for an operation that has to be checked at the time @at and waits for members of this node. */
void swc_watchdog_arm_waiting(struct swc_comm *comm, u64 at, u64 now)
{
	swc_watchdog_arm(comm, min_t(u64, at, now + LOOK_NS), now);
}

static void arm_again(struct swc_comm *comm, u64 at)
{
	spin_lock(&comm->lock);
	swc_watchdog_arm(comm, at, ktime_get_ns());
	spin_unlock(&comm->lock);
}

/* What to do about an operation whose time to be checked has come. */
enum verdict {
	VERDICT_WAIT,		/* until op->next_check */
	VERDICT_ASK,		/* the peer for its progress, and wait */
	VERDICT_EXPIRED,
	VERDICT_DONE,		/* the operation has finished meanwhile */
};

/* Decide, and set the time of the next check. @peer: the remote rank that the operation waits for, or -1. */
static enum verdict judge(struct swc_comm *comm, struct swc_op *op, int peer, u64 now)
{
	lockdep_assert_held(&comm->lock);
	if (READ_ONCE(op->finished))
		return VERDICT_DONE;
	op->next_check = op->deadline;
	if (peer < 0 || now >= op->deadline + GRACE_NS)
		return now >= op->deadline ? VERDICT_EXPIRED : VERDICT_WAIT;
	if (op->heartbeat_rank != peer) {
		op->heartbeat_rank = peer;
		op->next_check = max(now + HEARTBEAT_NS, op->deadline);
		return VERDICT_ASK;
	}
	if (comm->member[peer].next_seq > op->seq) {
		op->next_check = op->deadline + GRACE_NS;
		return VERDICT_WAIT;
	}
	return now >= op->deadline ? VERDICT_EXPIRED : VERDICT_WAIT;
}

/* The deadline of @op has passed: abort the communicator and name the late rank. */
static void expire(struct swc_comm *comm, struct swc_op *op, int peer)
{
	char who[SWC_TEXT_BYTES / 2], why[SWC_TEXT_BYTES / 2];
	int culprit = swc_op_list_missing(op, who, sizeof(who));
	bool trouble = peer >= 0 && swc_net_trouble(comm->net, peer, why, sizeof(why));
	u32 narrived = READ_ONCE(op->narrived);
	int own = -1;

	if (culprit < 0 && peer >= 0)
		own = swc_net_card_down(comm->net, peer, who, sizeof(who));
	swc_stat_inc(SWC_STAT_TIMEOUTS);
	if (culprit >= 0)
		swc_comm_abort(comm, -ETIMEDOUT, culprit, op->seq,
			       "operation %llu: deadline passed, %u of %u ranks had arrived; missing: %s",
			       op->seq, narrived, comm->nlocal, who);
	else if (own >= 0)
		swc_comm_abort(comm, -ETIMEDOUT, own, op->seq,
			       "operation %llu: deadline passed while rank %d waited for rank %d%s", op->seq,
			       own, peer, who);
	else if (trouble)
		swc_comm_abort(comm, -ETIMEDOUT, peer, op->seq,
			       "operation %llu: deadline passed without a connection with rank %d: %s",
			       op->seq, peer, why);
	else if (peer >= 0)
		swc_comm_abort(comm, -ETIMEDOUT, peer, op->seq,
			       "operation %llu: deadline passed while this node waited for rank %d, which had %s",
			       op->seq, peer, READ_ONCE(comm->member[peer].next_seq) > op->seq ?
			       "arrived, but was not done" : "not arrived");
	else
		swc_comm_abort(comm, -ETIMEDOUT, -1, op->seq,
			       "operation %llu: all %u ranks had arrived, but it was not done by its deadline",
			       op->seq, narrived);
}

static void check(struct swc_comm *comm, struct swc_op *op)
{
	int peer = comm->net ? swc_op_awaited_peer(op) : -1;
	enum verdict verdict;
	u64 next_check;

	spin_lock(&comm->lock);
	verdict = judge(comm, op, peer, ktime_get_ns());
	next_check = op->next_check;
	spin_unlock(&comm->lock);
	if (verdict == VERDICT_ASK)
		swc_net_heartbeat(comm->net, peer);
	if (verdict == VERDICT_EXPIRED)
		expire(comm, op, peer);
	else if (verdict != VERDICT_DONE)
		arm_again(comm, next_check);
}

/*
 * A process that dumps core ends its context when the dump has been written, which may take minutes: others
 * need not wait for that.
 */
static void look_at_members(struct swc_comm *comm)
{
	char how[SWC_EXIT_TEXT];
	u32 i;

	for (i = 0; i < comm->nlocal; i++) {
		struct swc_member *member = &comm->member[comm->local[i]];

		if (READ_ONCE(member->state) == SWC_MEMBER_JOINED && swc_exit_begun(member->pid, how))
			swc_member_died(member, how);
	}
}

/*
 * The first operation whose time to be checked has come, with a reference, or NULL; *@next is the earliest
 * time of the others, 0: none; *@waiting: any of them waits for members of this node. comm->lock is held.
 */
static struct swc_op *find_due(struct swc_comm *comm, u64 now, u64 *next, bool *waiting)
{
	struct swc_op *op, *due = NULL;

	*next = 0;
	*waiting = false;
	list_for_each_entry(op, &comm->ops, node) {
		/* Skip operations with no arrivals. */
		if (READ_ONCE(op->status) || READ_ONCE(op->finished) || op->next_check == U64_MAX)
			continue;
		*waiting |= READ_ONCE(op->narrived) < comm->nlocal;
		if (op->next_check <= now && !due) {
			due = op;
			kref_get(&op->ref);
		} else if (!*next || op->next_check < *next) {
			*next = op->next_check;
		}
	}
	return due;
}

/* Work item. */
void swc_watchdog_fn(struct work_struct *work)
{
	struct swc_comm *comm = container_of(work, struct swc_comm, watchdog.work);
	struct swc_op *due;
	bool waiting;
	u64 next;

	/* A communicator whose last reference is gone has no operations either. */
	if (!kref_get_unless_zero(&comm->ref))
		return;
	spin_lock(&comm->lock);
	comm->next_check = 0;
	due = find_due(comm, ktime_get_ns(), &next, &waiting);
	spin_unlock(&comm->lock);
	if (waiting) {
		look_at_members(comm);
		next = min_not_zero(next, ktime_get_ns() + LOOK_NS);
	}
	if (due) {
		check(comm, due);
		swc_op_put(due);
	}
	if (next)
		arm_again(comm, next);
	swc_comm_put(comm);
}
