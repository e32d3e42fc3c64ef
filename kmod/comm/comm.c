// SPDX-License-Identifier: GPL-2.0-only
/*
 * Communicators: finding, leaving, failing.
 *
 * The status of a communicator moves forming -> live -> aborted, or forming -> aborted, in
 * swc_comm_set_status() only, and aborted is for ever. All failures of members end in swc_comm_abort(), which
 * does not sleep.
 */
#include <linux/cred.h>
#include <linux/hash.h>
#include <linux/jhash.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "comm/comm.h"
#include "mem/account.h"
#include "mem/context.h"
#include "mem/handle.h"
#include "comm/error.h"
#include "comm/recorder.h"
#include "mem/region.h"
#include "mem/shared.h"
#include "trace.h"

/*
 * All communicators, by number, and by what ranks and peers look for. The mutex guards all three. Users
 * choose ids: a secret seed keeps them from choosing those that meet in one list.
 */
DEFINE_MUTEX(swc_comms_mutex);
static DEFINE_XARRAY(comms);
static DEFINE_HASHTABLE(comms_by_id, 10);
static DEFINE_HASHTABLE(comms_by_name, 10);
static u32 seed;
static atomic64_t comms_made;
static DECLARE_WAIT_QUEUE_HEAD(swc_comms_gone);

const struct swc_comm_ops *swc_comm_ops;

void swc_comm_init(const struct swc_comm_ops *ops)
{
	swc_comm_ops = ops;
	get_random_bytes(&seed, sizeof(seed));
}

/* ------------------------------------------------------------------ tables */

static struct hlist_head *comms_with_name(const u8 *name)
{
	return &comms_by_name[hash_32(jhash(name, SWC_WIRE_NAME, seed), HASH_BITS(comms_by_name))];
}

/* The communicators with this id are in this list, by @by_id, and perhaps others. */
struct hlist_head *swc_comms_with_id(const u8 *id)
{
	return &comms_by_id[hash_32(jhash(id, SWC_ID_BYTES, seed), HASH_BITS(comms_by_id))];
}

/* Give a new communicator its number, and make room for it in the tables; -ENOMEM. */
int swc_comm_reserve(struct swc_comm *comm)
{
	comm->number = atomic64_inc_return(&comms_made);
	return xa_reserve(&comms, comm->number, GFP_KERNEL_ACCOUNT);
}

/* It is not going to be published. */
void swc_comm_unreserve(struct swc_comm *comm)
{
	xa_release(&comms, comm->number);
}

/* Let the communicator be found. */
void swc_comm_publish(struct swc_comm *comm)
{
	lockdep_assert_held(&swc_comms_mutex);
	/* The room is reserved: no allocation. */
	xa_store(&comms, comm->number, comm, GFP_KERNEL_ACCOUNT);
	hlist_add_head(&comm->by_id, swc_comms_with_id(comm->id));
	if (comm->net)
		hlist_add_head(&comm->by_name, comms_with_name(swc_net_name(comm->net)));
}

static void unpublish(struct swc_comm *comm)
{
	mutex_lock(&swc_comms_mutex);
	xa_erase(&comms, comm->number);
	hlist_del(&comm->by_id);
	if (comm->net)
		hlist_del(&comm->by_name);
	if (xa_empty(&comms))
		wake_up_all(&swc_comms_gone);
	mutex_unlock(&swc_comms_mutex);
}

/* ------------------------------------------------------------------ freeing */

/* The last of what is charged for a communicator. */
void swc_comm_uncharge(struct swc_comm *comm)
{
	if (comm->charged) {
		swc_account_uncharge(comm->account, SWC_QUOTA_MEMORY, comm->charged);
		swc_account_uncharge(comm->account, SWC_QUOTA_COMMS, 1);
	}
	swc_account_put(comm->account);
}

/* Work item: the last reference is gone. */
void swc_comm_free(struct work_struct *work)
{
	struct swc_comm *comm = container_of(work, struct swc_comm, free_work);
	u32 i;

	unpublish(comm);
	cancel_delayed_work_sync(&comm->watchdog);
	swc_comm_ops->free(comm);
	for (i = 0; i < comm->nranks; i++) {
		swc_comm_ops->unload_plans(&comm->member[i]);
		xa_destroy(&comm->member[i].plans);
		put_pid(comm->member[i].pid);
	}
	if (comm->net)
		swc_net_free(comm->net);
	kvfree(comm->rank_node);
	kvfree(comm->local);
	swc_shared_put(comm->slot_mem);
	swc_shared_put(comm->state_mem);
	put_user_ns(comm->user_ns);
	swc_user_put(comm->user);
	if (comm->error)
		swc_recorder_fail(comm->recorder, false, comm->error, comm->culprit, comm->text);
	swc_recorder_end(comm->recorder);
	swc_comm_uncharge(comm);
	free_cpumask_var(comm->cpus);
	kvfree(comm);
}

/**
 * swc_comms_drain() - wait until all communicators are being freed; none can be made any more
 */
void swc_comms_drain(void)
{
	wait_event(swc_comms_gone, xa_empty(&comms));
}

/* ------------------------------------------------------------------ failing */

/* The one place where the status changes; comm->lock is held. False if the change is not allowed. */
bool swc_comm_set_status(struct swc_comm *comm, int from, int to)
{
	lockdep_assert_held(&comm->lock);
	if (comm->status != from || to <= from)
		return false;
	comm->status = to;
	if (to == SWC_COMM_ABORTED)
		swc_stat_inc(SWC_STAT_COMMS_ABORTED);
	return true;
}

/* Abort; @forming: only if members are missing. Return: false if it had been aborted, or none is missing. */
static bool abort_comm(struct swc_comm *comm, bool forming, int error, int culprit, u64 seq, const char *fmt,
		       va_list args)
{
	struct swc_comm_notifier *notifier;
	bool first;

	spin_lock(&comm->lock);
	first = swc_comm_set_status(comm, forming ? SWC_COMM_FORMING : comm->status, SWC_COMM_ABORTED);
	if (first) {
		swc_comm_error_record(comm, error, culprit, seq, fmt, args);
		culprit = comm->culprit;
		swc_record(comm->recorder, SWC_TRACE_ABORT, culprit, seq, (s64)error);
		swc_recorder_fail(comm->recorder, true, error, culprit, comm->text);
		comm->state_page->error = error;
		comm->state_page->culprit = culprit;
		/* Pollers read the reason after they have seen this. */
		smp_store_release(&comm->state_page->aborted, 1);
		/* No operation can be added any more. */
		swc_comm_ops->fail(comm);
		list_for_each_entry(notifier, &comm->notifiers, node)
			notifier->aborted(notifier);
	}
	spin_unlock(&comm->lock);
	if (!first)
		return false;
	trace_swc_comm_abort(comm);
	/* Constant from now on. */
	if (comm->net)
		swc_net_abort(comm->net, &(struct swc_net_abort){ .error = error, .culprit = culprit,
								  .seq = seq, .text = comm->text });
	swc_comm_ops->finish_failed(comm);
	wake_up_all(&comm->create_wq);
	wake_up_all(&comm->slot_wq);
	wake_up_all(&comm->part_wq);
	return true;
}

/**
 * swc_comm_abort() - abort a communicator
 * @comm: the communicator; the caller holds a reference
 * @error: negative errno that operations in flight get
 * @culprit: rank at fault, or -1
 * @seq: number of the operation concerned
 * @fmt: one line that names rank and reason; NULL: what was noted last of this operation stays, with its
 *	culprit
 *
 * Only the first call has an effect. Operations end as soon as no worker is inside; new ones get
 * -ECONNABORTED. Takes comm->lock and op->lock; does not sleep.
 */
void swc_comm_abort(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	abort_comm(comm, false, error, culprit, seq, fmt, args);
	va_end(args);
}

/**
 * swc_comm_abort_forming() - likewise, unless all members have joined
 *
 * Who waits for the members may find that the last of them has joined just after the time was over: then the
 * communicator lives.
 *
 * Return: whether this call has aborted it.
 */
bool swc_comm_abort_forming(struct swc_comm *comm, int error, const char *fmt, ...)
{
	va_list args;
	bool aborted;

	va_start(args, fmt);
	aborted = abort_comm(comm, true, error, -1, 0, fmt, args);
	va_end(args);
	return aborted;
}

/* ------------------------------------------------------------------ other nodes */

/* How well a communicator with the right id matches a peer that asks for @rank. */
static int match_quality(const struct swc_comm *comm, u32 rank)
{
	if (rank >= comm->nranks || !swc_comm_is_local(comm, rank))
		return 1;
	return READ_ONCE(comm->status) == SWC_COMM_ABORTED ? 2 : 3;
}

/**
 * swc_comm_find_net() - the net of the communicator that another node asks for
 * @name: the communicator's name
 * @rank: rank that the peer connects to
 *
 * Prefers a communicator that has the rank on this node, and one that is not aborted. Return: the net, with a
 * reference on its communicator; NULL: none.
 */
struct swc_net *swc_comm_find_net(const u8 *name, u32 rank)
{
	struct swc_comm *comm, *best = NULL;

	mutex_lock(&swc_comms_mutex);
	hlist_for_each_entry(comm, comms_with_name(name), by_name) {
		if (memcmp(swc_net_name(comm->net), name, SWC_WIRE_NAME) ||
		    (best && match_quality(comm, rank) <= match_quality(best, rank)) ||
		    !kref_get_unless_zero(&comm->ref))
			continue;
		if (best)
			swc_comm_put(best);
		best = comm;
	}
	mutex_unlock(&swc_comms_mutex);
	return best ? best->net : NULL;
}

void swc_comm_net_get(struct swc_comm *comm)
{
	kref_get(&comm->ref);
}

void swc_comm_net_put(struct swc_comm *comm)
{
	swc_comm_put(comm);
}

/* Number of the operation that a rank of this node calls next. */
u64 swc_comm_progress(const struct swc_comm *comm, u32 rank)
{
	return READ_ONCE(comm->member[rank].next_seq);
}

/* Another node, or the way to it, has failed. */
void swc_comm_peer_lost(struct swc_comm *comm, int error, int culprit, u64 seq, const char *text)
{
	swc_comm_abort(comm, error, culprit, seq, "%s", text);
}

/**
 * swc_comm_report_left() - report that operation @seq, or one after it, cannot be submitted because a member
 * has left
 *
 * Of several that is the one that called the fewest operations. On several nodes that aborts the
 * communicator, as a failed operation would: otherwise, when this rank leaves as well, peers would take it
 * for the first one.
 */
void swc_comm_report_left(struct swc_comm *comm, u64 seq)
{
	static const char fmt[] = "rank %u left before operation %llu";
	const struct swc_member *first = NULL, *m;

	spin_lock(&comm->lock);
	for (m = comm->member; m < comm->member + comm->nranks; m++)
		if ((m->state == SWC_MEMBER_LEFT || m->state == SWC_MEMBER_DEAD) &&
		    (!first || m->next_seq < first->next_seq))
			first = m;
	if (first)
		seq = max(seq, first->next_seq);
	spin_unlock(&comm->lock);
	if (!first)
		return;
	if (comm->net)
		swc_comm_abort(comm, -ECONNRESET, first->rank, seq, fmt, first->rank, seq);
	else
		swc_comm_error_note(comm, -ECONNRESET, first->rank, seq, fmt, first->rank, seq);
}

/* A member of another node has left after @seq operations: later ones can never complete. */
void swc_comm_peer_left(struct swc_comm *comm, u32 rank, u64 seq)
{
	struct swc_member *member = &comm->member[rank];
	u64 waiting_for = U64_MAX;

	spin_lock(&comm->lock);
	if (member->state != SWC_MEMBER_LEFT) {
		member->state = SWC_MEMBER_LEFT;
		member->next_seq = seq;
		comm->gone_at = min(comm->gone_at, seq);
		waiting_for = swc_comm_ops->first_from(comm, seq);
		swc_record(comm->recorder, SWC_TRACE_LEAVE, rank, seq, 0);
	}
	spin_unlock(&comm->lock);
	if (waiting_for != U64_MAX)
		swc_comm_abort(comm, -ECONNRESET, rank, waiting_for,
			       "rank %u left before operation %llu", rank, waiting_for);
}

/*
 * A member of another node reports the number of the operation that it calls next. By another connection that
 * can arrive after its last one.
 */
void swc_comm_peer_progress(struct swc_comm *comm, u32 rank, u64 next_seq)
{
	spin_lock(&comm->lock);
	if (comm->member[rank].state != SWC_MEMBER_LEFT)
		comm->member[rank].next_seq = next_seq;
	spin_unlock(&comm->lock);
}

/* A connection of a rank of this node with @peer leaves the path, or takes it. */
void swc_comm_path_changed(struct swc_comm *comm, u32 rank, u32 channel, u32 peer, u32 path, bool taken)
{
	swc_record_at(comm->recorder, ktime_get_ns(), taken ? SWC_TRACE_PATH_TAKEN : SWC_TRACE_PATH_LEFT,
		      rank, channel, 0, peer | (u64)path << 32);
}

/* ------------------------------------------------------------------ leaving */

static void get_ref(void *object)
{
	kref_get(&((struct swc_member *)object)->comm->ref);
}

struct swc_member *swc_member_get(struct swc_ctx *ctx, u32 handle)
{
	return swc_handle_get(&ctx->members, handle, get_ref);
}

/*
 * Tell the other nodes, unless the communicator is aborted: then they hear of that, and must not hear
 * before it that this rank has left, which would make it the culprit.
 */
static void leave_net(struct swc_member *member)
{
	struct swc_comm *comm = member->comm;
	bool last, aborted;

	spin_lock(&comm->lock);
	last = comm->nleft == comm->nlocal;
	aborted = comm->status == SWC_COMM_ABORTED;
	spin_unlock(&comm->lock);
	if (!aborted)
		swc_net_leave(comm->net, member->rank, member->next_seq, last);
}

/**
 * swc_comm_leave() - leave a communicator
 *
 * Operations that others have submitted and this rank has not can never complete: if there are any, the
 * communicator is aborted.
 *
 * Return: 0; -ENOENT: no such handle, or another call is leaving; -EBUSY: operations of this rank are in
 * flight.
 */
int swc_comm_leave(struct swc_ctx *ctx, u32 handle)
{
	struct swc_member *member = swc_member_get(ctx, handle);
	struct swc_comm *comm;
	u64 waiting_for = U64_MAX;
	int ret = 0;

	if (!member)
		return -ENOENT;
	comm = member->comm;
	spin_lock(&comm->lock);
	/* Only the call that changes the state goes on. */
	if (member->state != SWC_MEMBER_JOINED) {
		ret = -ENOENT;
	} else if (member->inflight || (member->reserved && comm->status == SWC_COMM_LIVE)) {
		ret = -EBUSY;
	} else {
		member->state = SWC_MEMBER_LEFT;
		comm->nleft++;
		waiting_for = swc_comm_ops->first_from(comm, member->next_seq);
		swc_record(comm->recorder, SWC_TRACE_LEAVE, member->rank, member->next_seq, 0);
	}
	spin_unlock(&comm->lock);
	if (ret)
		goto out;
	if (waiting_for != U64_MAX)
		swc_comm_abort(comm, -ECONNRESET, member->rank, waiting_for,
			       SWC_MEMBER_FMT " left before operation %llu", SWC_MEMBER_ARGS(member),
			       waiting_for);
	wake_up_all(&comm->slot_wq);
	if (comm->net)
		leave_net(member);
	swc_comm_ops->unload_plans(member);
	xa_erase(&ctx->members, handle);
	swc_comm_put(comm);
out:
	swc_member_put(member);
	return ret;
}

/* A member is gone without having left. @how: the reason, for the report. */
void swc_member_died(struct swc_member *member, const char *how)
{
	struct swc_comm *comm = member->comm;
	bool others;
	u64 seq;

	spin_lock(&comm->lock);
	if (member->state != SWC_MEMBER_JOINED) {
		spin_unlock(&comm->lock);
		return;
	}
	member->state = SWC_MEMBER_DEAD;
	comm->nleft++;
	seq = member->next_seq;
	swc_record(comm->recorder, SWC_TRACE_DIED, member->rank, seq, 0);
	others = comm->nleft < comm->njoined || comm->status == SWC_COMM_FORMING ||
		 !list_empty(&comm->ops) || member->reserved || comm->net;
	spin_unlock(&comm->lock);
	if (others)
		swc_comm_abort(comm, -ECONNRESET, member->rank, seq, SWC_MEMBER_FMT " %s",
			       SWC_MEMBER_ARGS(member), how);
}

/* The process of @ctx is going: abort its communicators at once. */
void swc_comm_ctx_died(struct swc_ctx *ctx, const char *how)
{
	struct swc_member *member;
	unsigned long handle;

	xa_for_each(&ctx->members, handle, member) {
		member = swc_member_get(ctx, handle);
		if (!member)
			continue;
		swc_member_died(member, how);
		swc_member_put(member);
	}
}

/* The context is going: drop its handles, which no call uses any more. */
void swc_comm_ctx_drop(struct swc_ctx *ctx)
{
	struct swc_member *member;
	unsigned long handle;

	xa_for_each(&ctx->members, handle, member) {
		xa_erase(&ctx->members, handle);
		swc_comm_ops->unload_plans(member);
		swc_comm_put(member->comm);
	}
}

/* ------------------------------------------------------------------ introspection */

bool swc_comm_visible(const struct swc_comm *comm)
{
	return swc_user_visible(comm->owner);
}

/* The next visible communicator after *cursor, with a reference; advances the cursor. NULL: none left. */
struct swc_comm *swc_comm_after(u64 *cursor)
{
	struct swc_comm *comm, *found = NULL;
	unsigned long number;

	if (*cursor == ULONG_MAX)
		return NULL;
	mutex_lock(&swc_comms_mutex);
	xa_for_each_start(&comms, number, comm, *cursor + 1) {
		if (swc_comm_visible(comm) && kref_get_unless_zero(&comm->ref)) {
			found = comm;
			*cursor = comm->number;
			break;
		}
	}
	mutex_unlock(&swc_comms_mutex);
	return found;
}
