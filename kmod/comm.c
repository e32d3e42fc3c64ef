// SPDX-License-Identifier: GPL-2.0-only
/*
 * Communicators: joining, leaving, aborting, and the watch over deadlines.
 *
 * A communicator is found by its 128-bit id, which is the right to join it; by default the user must be
 * the same, too. Its status moves forming -> live -> aborted, or forming -> aborted, in set_status() only,
 * and aborted is for ever. All failures of members end in swc_comm_abort(), which does not sleep.
 */
#include <crypto/algapi.h>
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>
#include <linux/vmalloc.h>

#include "comm.h"
#include "ctx.h"
#include "fault.h"
#include "op.h"
#include "plan.h"
#include "region.h"
#include "trace.h"

#define DEFAULT_TIMEOUT_MS	30000

static DEFINE_MUTEX(swc_comms_mutex);
static LIST_HEAD(swc_comms);
static DECLARE_WAIT_QUEUE_HEAD(swc_comms_gone);
static u64 swc_comms_made;

/* ------------------------------------------------------------------ making and freeing */

static void watchdog(struct work_struct *work);

/* What a joiner says of other nodes, copied in. */
struct swc_join_nodes {
	u32 *rank_node;
	struct swc_node_path *paths;
	struct swc_listener *listener;
};

/* Slot memory is charged to whoever makes the communicator: vmalloc_user() is not accounted otherwise. */
static int make_slots(struct swc_comm *comm, struct mm_struct *mm)
{
	u64 bytes = PAGE_ALIGN(comm->slot_bytes);
	int ret = swc_charge_pages(mm, bytes >> PAGE_SHIFT);

	if (ret)
		return ret;
	comm->slots = vmalloc_user(bytes);
	if (!comm->slots) {
		swc_uncharge_pages(mm, bytes >> PAGE_SHIFT);
		return -ENOMEM;
	}
	comm->slots_mm = mm;
	mmgrab(mm);
	return 0;
}

/* Pages that are still mapped somewhere live on until they are unmapped. */
static void free_slots(struct swc_comm *comm)
{
	if (!comm->slots)
		return;
	vfree(comm->slots);
	swc_uncharge_pages(comm->slots_mm, PAGE_ALIGN(comm->slot_bytes) >> PAGE_SHIFT);
	mmdrop(comm->slots_mm);
}

static void comm_free(struct work_struct *work)
{
	struct swc_comm *comm = container_of(work, struct swc_comm, free_work);
	u32 i;

	mutex_lock(&swc_comms_mutex);
	list_del(&comm->node);
	if (list_empty(&swc_comms))
		wake_up_all(&swc_comms_gone);
	mutex_unlock(&swc_comms_mutex);
	cancel_delayed_work_sync(&comm->watchdog);
	for (i = 0; i < ARRAY_SIZE(comm->window); i++)
		if (comm->window[i])
			swc_op_put(comm->window[i]);
	for (i = 0; i < comm->nranks; i++) {
		swc_plan_unload_all(&comm->member[i]);
		xa_destroy(&comm->member[i].plans);
		put_pid(comm->member[i].pid);
	}
	free_slots(comm);
	if (comm->net)
		swc_net_free(comm->net);
	kvfree(comm->rank_node);
	kvfree(comm->local);
	vfree(comm->state_page);
	put_user_ns(comm->user_ns);
	kvfree(comm);
}

/* Who is on this node; takes over @nodes->rank_node. */
static int place_members(struct swc_comm *comm, u32 rank, struct swc_join_nodes *nodes)
{
	u32 i;

	comm->rank_node = nodes->rank_node;
	nodes->rank_node = NULL;
	comm->here = comm->rank_node ? comm->rank_node[rank] : 0;
	for (i = 0; i < comm->nranks; i++)
		comm->nlocal += swc_comm_is_local(comm, i);
	if (comm->nlocal > SWC_MAX_LOCAL_RANKS)
		return -EINVAL;
	comm->local = kvmalloc_array(comm->nlocal, sizeof(*comm->local), GFP_KERNEL_ACCOUNT);
	if (!comm->local)
		return -ENOMEM;
	comm->nlocal = 0;
	for (i = 0; i < comm->nranks; i++)
		if (swc_comm_is_local(comm, i))
			comm->local[comm->nlocal++] = i;
	return 0;
}

/**
 * swc_comms_drain() - wait until all communicators are being freed; nobody can make one any more
 */
void swc_comms_drain(void)
{
	wait_event(swc_comms_gone, list_empty_careful(&swc_comms));
}

static struct swc_comm *comm_create(struct swc_ctx *ctx, const struct swc_comm_join *join,
				    struct swc_join_nodes *nodes)
{
	struct swc_comm *comm;
	int ret = -ENOMEM;
	u32 i;

	comm = kvzalloc(struct_size(comm, member, join->nranks), GFP_KERNEL_ACCOUNT);
	if (!comm)
		return ERR_PTR(-ENOMEM);
	kref_init(&comm->ref);
	memcpy(comm->id, join->id, SWC_ID_BYTES);
	comm->nranks = join->nranks;
	comm->flags = join->flags;
	comm->timeout_ms = join->timeout_ms ?: DEFAULT_TIMEOUT_MS;
	comm->slot_bytes = join->slot_bytes;
	comm->owner = current_euid();
	spin_lock_init(&comm->lock);
	INIT_LIST_HEAD(&comm->ops);
	INIT_LIST_HEAD(&comm->early);
	comm->oldest = U64_MAX;
	comm->gone_at = U64_MAX;
	INIT_DELAYED_WORK(&comm->watchdog, watchdog);
	INIT_WORK(&comm->free_work, comm_free);
	init_waitqueue_head(&comm->join_wq);
	init_waitqueue_head(&comm->slot_wq);
	comm->culprit = -1;
	for (i = 0; i < comm->nranks; i++) {
		comm->member[i].comm = comm;
		comm->member[i].rank = i;
		xa_init_flags(&comm->member[i].plans, XA_FLAGS_ALLOC1);
	}
	comm->state_page = vmalloc_user(PAGE_SIZE);
	if (!comm->state_page)
		goto err;
	comm->state_page->culprit = -1;
	ret = place_members(comm, join->rank, nodes);
	if (ret)
		goto err;
	ret = comm->slot_bytes ? make_slots(comm, ctx->mm) : 0;
	if (ret)
		goto err;
	if (comm->rank_node) {
		comm->net = swc_net_create(comm, nodes->paths, join->npaths, nodes->listener);
		if (IS_ERR(comm->net)) {
			ret = PTR_ERR(comm->net);
			goto err_slots;
		}
		nodes->listener = NULL;
	}
	comm->user_ns = get_user_ns(current_user_ns());
	comm->number = ++swc_comms_made;
	list_add_tail(&comm->node, &swc_comms);
	swc_stat_inc(SWC_STAT_COMMS_CREATED);
	return comm;

err_slots:
	free_slots(comm);
err:
	kvfree(comm->rank_node);
	kvfree(comm->local);
	vfree(comm->state_page);
	kvfree(comm);
	return ERR_PTR(ret);
}

/* ------------------------------------------------------------------ failing */

/* The one place where the status changes; comm->lock is held. False if the change is not allowed. */
static bool set_status(struct swc_comm *comm, int from, int to)
{
	lockdep_assert_held(&comm->lock);
	if (comm->status != from || to <= from)
		return false;
	comm->status = to;
	if (to == SWC_COMM_ABORTED)
		swc_stat_inc(SWC_STAT_COMMS_ABORTED);
	return true;
}

/**
 * swc_comm_abort() - end a communicator
 * @comm: the communicator; the caller holds a reference
 * @error: negative errno that operations in flight get
 * @culprit: rank at fault, or -1
 * @seq: operation that it is about
 * @fmt: one line that says who and what; NULL: what was noted last says it
 *
 * Only the first call has an effect. Operations end as soon as no worker is inside; new ones get
 * -ECONNABORTED. Takes comm->lock and op->lock; does not sleep.
 */
void swc_comm_abort(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt, ...)
{
	struct swc_op *op;
	va_list args;
	bool first;

	spin_lock(&comm->lock);
	first = set_status(comm, comm->status, SWC_COMM_ABORTED);
	if (first) {
		va_start(args, fmt);
		swc_fault_record(comm, error, culprit, seq, fmt, args);
		va_end(args);
		comm->state_page->error = error;
		comm->state_page->culprit = culprit;
		/* Pollers read the reason after they have seen this. */
		smp_store_release(&comm->state_page->aborted, 1);
	}
	spin_unlock(&comm->lock);
	if (!first)
		return;
	trace_swc_abort(comm);

	/* No operation can be added any more; those that are there leave the list as they end. */
	for (;;) {
		bool found = false;

		spin_lock(&comm->lock);
		list_for_each_entry(op, &comm->ops, node) {
			/* One that has finished well is only on its way off the list. */
			if (READ_ONCE(op->status) || READ_ONCE(op->finished))
				continue;
			kref_get(&op->ref);
			found = true;
			break;
		}
		spin_unlock(&comm->lock);
		if (!found)
			break;
		swc_op_fail(op, error, culprit);
		swc_op_put(op);
	}
	if (comm->net)
		swc_net_abort(comm->net);
	wake_up_all(&comm->join_wq);
	wake_up_all(&comm->slot_wq);
}

/* ------------------------------------------------------------------ other nodes */

/* How well a communicator of the right name suits a peer that asks for @rank. */
static int suits(const struct swc_comm *comm, u32 rank)
{
	if (rank >= comm->nranks || !swc_comm_is_local(comm, rank))
		return 1;
	return READ_ONCE(comm->status) == SWC_COMM_ABORTED ? 2 : 3;
}

/**
 * swc_comm_by_name() - the communicator that another node asks for, with a reference, or NULL
 * @name: its name
 * @rank: whom the peer wants to talk to
 *
 * The one that has the rank on this node, if there is one, and rather one that lives.
 */
struct swc_comm *swc_comm_by_name(const u8 *name, u32 rank)
{
	struct swc_comm *comm, *best = NULL;

	mutex_lock(&swc_comms_mutex);
	list_for_each_entry(comm, &swc_comms, node) {
		if (!comm->net || memcmp(comm->name, name, SWC_WIRE_NAME) ||
		    (best && suits(comm, rank) <= suits(best, rank)) || !kref_get_unless_zero(&comm->ref))
			continue;
		if (best)
			swc_comm_put(best);
		best = comm;
	}
	mutex_unlock(&swc_comms_mutex);
	return best;
}

/* Another node, or the way to it, has failed. */
void swc_comm_lost(struct swc_comm *comm, int error, int culprit, u64 seq, const char *text)
{
	swc_comm_abort(comm, error, culprit, seq, "%s", text);
}

/**
 * swc_comm_note_gone() - operation @seq cannot be submitted because a member has left
 *
 * Between nodes that ends the communicator, as a failed operation would: when this rank leaves as well,
 * nobody shall take it for the first.
 */
void swc_comm_note_gone(struct swc_comm *comm, u64 seq)
{
	static const char fmt[] = "rank %u left before operation %llu";
	u32 i;

	for (i = 0; i < comm->nranks; i++) {
		int state = READ_ONCE(comm->member[i].state);

		if (state != SWC_MEMBER_LEFT && state != SWC_MEMBER_DEAD)
			continue;
		if (comm->net)
			swc_comm_abort(comm, -ECONNRESET, i, seq, fmt, i, seq);
		else
			swc_fault_note(comm, -ECONNRESET, i, seq, fmt, i, seq);
		return;
	}
}

/*
 * A member of another node has left after @seq operations: those that it has not come to can never complete.
 */
void swc_comm_peer_left(struct swc_comm *comm, u32 rank, u64 seq)
{
	struct swc_member *member = &comm->member[rank];
	const struct swc_op *op;
	u64 waiting_for = U64_MAX;

	spin_lock(&comm->lock);
	if (member->state != SWC_MEMBER_LEFT) {
		member->state = SWC_MEMBER_LEFT;
		comm->gone_at = min(comm->gone_at, seq);
		list_for_each_entry(op, &comm->ops, node)
			if (op->seq >= seq && op->seq < waiting_for)
				waiting_for = op->seq;
	}
	spin_unlock(&comm->lock);
	if (waiting_for != U64_MAX)
		swc_comm_abort(comm, -ECONNRESET, rank, waiting_for,
			       "rank %u left before operation %llu", rank, waiting_for);
}

/* How far a member of another node says that it is. */
void swc_comm_peer_came(struct swc_comm *comm, u32 rank, u64 n)
{
	spin_lock(&comm->lock);
	comm->member[rank].submitted = n;
	spin_unlock(&comm->lock);
}

/* ------------------------------------------------------------------ deadlines */

/*
 * A node sees only the ranks that it waits for itself, and those may wait for others. So it asks them,
 * shortly before the deadline, whether they have come. If not, it ends the communicator on time; if so, it
 * leaves that to those who know whom all wait for, for a while.
 */
#define ASK_NS		(200 * NSEC_PER_MSEC)
#define PATIENCE_NS	(800 * NSEC_PER_MSEC)

/* When the watchdog must look at an operation for the first time. */
u64 swc_comm_first_look(const struct swc_comm *comm, u64 now, u64 deadline)
{
	return comm->net ? deadline - min_t(u64, ASK_NS, (deadline - now) / 4) : deadline;
}

/* Make the watchdog look at the time @at, at the latest. */
void swc_comm_watch(struct swc_comm *comm, u64 at)
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
	u32 narrived = READ_ONCE(op->narrived);

	swc_stat_inc(SWC_STAT_TIMEOUTS);
	if (culprit >= 0)
		swc_comm_abort(comm, -ETIMEDOUT, culprit, op->seq,
			       "operation %llu: deadline passed, %u of %u ranks had come; missing: %s",
			       op->seq, narrived, comm->nlocal, who);
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
		swc_comm_watch(comm, look);
}

static void watchdog(struct work_struct *work)
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
		if (READ_ONCE(op->status) || READ_ONCE(op->finished))
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
		swc_comm_watch(comm, next);
	swc_comm_put(comm);
}

/* ------------------------------------------------------------------ joining */

static int check_join(const struct swc_comm_join *join)
{
	u32 i;

	if (!join->nranks || join->nranks > SWC_MAX_RANKS || join->rank >= join->nranks)
		return -EINVAL;
	if ((join->flags & ~SWC_JOIN_FLAGS_ALL) || join->slot_bytes > SWC_MAX_SLOT_BYTES)
		return -EINVAL;
	if (join->nnodes > 1 ? join->nnodes > join->nranks || !join->rank_node || !join->paths ||
			       !join->npaths || join->npaths > join->nnodes * SWC_MAX_PATHS :
	    join->rank_node || join->paths || join->npaths || join->nranks > SWC_MAX_LOCAL_RANKS)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(join->resv); i++)
		if (join->resv[i])
			return -EINVAL;
	return 0;
}

static bool may_join(const struct swc_comm *comm, const struct swc_comm_join *join)
{
	if (comm->flags & join->flags & SWC_JOIN_ANY_USER)
		return true;
	return uid_eq(comm->owner, current_euid()) && comm->user_ns == current_user_ns();
}

/* All members of a node must say the same of who is where. */
static bool same_nodes(const struct swc_comm *comm, const struct swc_join_nodes *nodes)
{
	if (!comm->rank_node || !nodes->rank_node)
		return !comm->rank_node && !nodes->rank_node;
	return !memcmp(comm->rank_node, nodes->rank_node, comm->nranks * sizeof(*comm->rank_node));
}

/*
 * Of the same communicator, but another node of it: they meet by network only, in whatever kernels they are.
 * This node is who joins here first.
 */
static bool other_node(const struct swc_comm *comm, const struct swc_comm_join *join,
		       const struct swc_join_nodes *nodes)
{
	return comm->rank_node && nodes->rank_node && nodes->rank_node[join->rank] != comm->here;
}

/* The communicator of this id, new if nobody has made it; with a reference. *refused: why not to join. */
static struct swc_comm *find_or_create(struct swc_ctx *ctx, const struct swc_comm_join *join,
				       struct swc_join_nodes *nodes, int *refused)
{
	struct swc_comm *comm, *found = NULL;

	lockdep_assert_held(&swc_comms_mutex);
	list_for_each_entry(comm, &swc_comms, node) {
		/* An id is free again when its communicator has been aborted or left by all. */
		if (READ_ONCE(comm->status) == SWC_COMM_ABORTED ||
		    READ_ONCE(comm->nleft) == comm->nlocal ||
		    crypto_memneq(comm->id, join->id, SWC_ID_BYTES) || other_node(comm, join, nodes))
			continue;
		if (kref_get_unless_zero(&comm->ref)) {
			found = comm;
			break;
		}
	}
	if (!found)
		return comm_create(ctx, join, nodes);
	if (!may_join(found, join))
		*refused = -EACCES;
	else if (found->nranks != join->nranks || found->flags != join->flags ||
		 found->slot_bytes != join->slot_bytes || !same_nodes(found, nodes))
		*refused = -EPROTO;
	return found;
}

static int take_rank(struct swc_comm *comm, struct swc_ctx *ctx, u32 rank)
{
	struct swc_member *member = &comm->member[array_index_nospec(rank, comm->nranks)];
	int ret = 0;

	spin_lock(&comm->lock);
	if (comm->status != SWC_COMM_FORMING || member->state != SWC_MEMBER_EMPTY) {
		ret = -EEXIST;
	} else {
		member->state = SWC_MEMBER_JOINED;
		member->ctx = ctx;
		member->pid = get_pid(task_tgid(current));
		member->last_submit = ktime_get_ns();
		get_task_comm(member->name, current->group_leader);
		if (++comm->njoined == comm->nlocal)
			set_status(comm, SWC_COMM_FORMING, SWC_COMM_LIVE);
	}
	spin_unlock(&comm->lock);
	return ret;
}

static int wait_for_all(struct swc_comm *comm, u32 timeout_ms)
{
	long left;
	int ret;

	left = wait_event_killable_timeout(comm->join_wq,
					   READ_ONCE(comm->status) != SWC_COMM_FORMING,
					   msecs_to_jiffies(timeout_ms));
	if (!left)
		swc_comm_abort(comm, -ETIMEDOUT, -1, 0, "%u of %u ranks had joined after %u ms",
			       READ_ONCE(comm->njoined), comm->nlocal, timeout_ms);
	else if (left < 0)
		return left;
	spin_lock(&comm->lock);
	ret = comm->status == SWC_COMM_ABORTED ? comm->error : 0;
	spin_unlock(&comm->lock);
	return ret;
}

/* A member is gone without having left in order. */
static void member_died(struct swc_member *member, const char *how)
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
	seq = member->submitted;
	others = comm->nleft < comm->njoined || comm->status == SWC_COMM_FORMING ||
		 !list_empty(&comm->ops) || comm->net;
	spin_unlock(&comm->lock);
	if (others)
		swc_comm_abort(comm, -ECONNRESET, member->rank, seq, "rank %u (pid %d, %s) %s",
			       member->rank, pid_nr(member->pid), member->name, how);
}

/* Copy in who is where, and the ways there; to be freed by free_nodes() in any case. */
static int copy_nodes(const struct swc_comm_join *join, struct swc_join_nodes *nodes)
{
	u32 i;

	if (join->nnodes <= 1)
		return 0;
	nodes->rank_node = vmemdup_user(u64_to_user_ptr(join->rank_node),
					join->nranks * sizeof(*nodes->rank_node));
	if (IS_ERR(nodes->rank_node)) {
		int ret = PTR_ERR(nodes->rank_node);

		nodes->rank_node = NULL;
		return ret;
	}
	nodes->paths = vmemdup_user(u64_to_user_ptr(join->paths),
				    join->npaths * sizeof(*nodes->paths));
	if (IS_ERR(nodes->paths)) {
		int ret = PTR_ERR(nodes->paths);

		nodes->paths = NULL;
		return ret;
	}
	for (i = 0; i < join->nranks; i++)
		if (nodes->rank_node[i] >= join->nnodes)
			return -EINVAL;
	/* Before the list of communicators is locked: the listener's handler looks into it. */
	nodes->listener = swc_net_listen();
	if (IS_ERR(nodes->listener)) {
		int ret = PTR_ERR(nodes->listener);

		nodes->listener = NULL;
		return ret;
	}
	return 0;
}

static void free_nodes(struct swc_join_nodes *nodes)
{
	kvfree(nodes->rank_node);
	kvfree(nodes->paths);
	if (nodes->listener)
		swc_net_deafen(nodes->listener);
}

/**
 * swc_comm_join() - become a rank, and wait for the others
 */
int swc_comm_join(struct swc_ctx *ctx, struct swc_comm_join *join)
{
	struct swc_join_nodes nodes = {};
	struct swc_comm *comm;
	struct swc_member *member;
	u32 handle;
	int ret;

	ret = check_join(join);
	if (ret)
		return ret;
	ret = copy_nodes(join, &nodes);
	if (ret) {
		free_nodes(&nodes);
		return ret;
	}
	mutex_lock(&swc_comms_mutex);
	comm = find_or_create(ctx, join, &nodes, &ret);
	mutex_unlock(&swc_comms_mutex);
	free_nodes(&nodes);
	if (IS_ERR(comm))
		return PTR_ERR(comm);
	if (!ret)
		ret = take_rank(comm, ctx, join->rank);
	if (ret)
		goto out;

	member = &comm->member[join->rank];
	/* The handle has a reference of its own. */
	kref_get(&comm->ref);
	ret = xa_alloc(&ctx->members, &handle, member, XA_LIMIT(1, swc_max_comms),
		       GFP_KERNEL_ACCOUNT);
	if (ret) {
		member_died(member, "could not join");
		swc_comm_put(comm);
		ret = ret == -EBUSY ? -ENOSPC : ret;
		goto out;
	}
	trace_swc_join(member);
	wake_up_all(&comm->join_wq);
	ret = wait_for_all(comm, join->timeout_ms ?: DEFAULT_TIMEOUT_MS);
	if (ret) {
		member_died(member, "gave up joining");
		if (xa_cmpxchg(&ctx->members, handle, member, NULL, 0) == member)
			swc_comm_put(comm);
	} else {
		join->comm = handle;
	}
out:
	swc_comm_put(comm);
	return ret;
}

/* ------------------------------------------------------------------ leaving */

struct swc_member *swc_member_get(struct swc_ctx *ctx, u32 handle)
{
	struct swc_member *member;

	xa_lock(&ctx->members);
	member = xa_load(&ctx->members, handle);
	if (member)
		kref_get(&member->comm->ref);
	xa_unlock(&ctx->members);
	return member;
}

/**
 * swc_comm_leave() - leave in order
 *
 * Operations that others have submitted and this rank has not can never complete: if there are any, the
 * communicator is aborted.
 */
int swc_comm_leave(struct swc_ctx *ctx, u32 handle)
{
	struct swc_member *member = swc_member_get(ctx, handle);
	struct swc_comm *comm;
	struct swc_op *op;
	u64 waiting_for = U64_MAX;
	int ret = 0;

	if (!member)
		return -ENOENT;
	comm = member->comm;
	spin_lock(&comm->lock);
	if (member->state == SWC_MEMBER_JOINED && member->inflight) {
		ret = -EBUSY;
	} else if (member->state == SWC_MEMBER_JOINED) {
		member->state = SWC_MEMBER_LEFT;
		comm->nleft++;
		list_for_each_entry(op, &comm->ops, node)
			if (op->seq >= member->submitted && op->seq < waiting_for)
				waiting_for = op->seq;
	}
	spin_unlock(&comm->lock);
	if (ret)
		goto out;
	if (waiting_for != U64_MAX)
		swc_comm_abort(comm, -ECONNRESET, member->rank, waiting_for,
			       "rank %u (pid %d, %s) left before operation %llu", member->rank,
			       pid_nr(member->pid), member->name, waiting_for);
	wake_up_all(&comm->slot_wq);
	if (comm->net)
		swc_net_leave(comm->net, member->rank, member->submitted);
	swc_plan_unload_all(member);
	if (xa_cmpxchg(&ctx->members, handle, member, NULL, 0) == member)
		swc_comm_put(comm);
out:
	swc_member_put(member);
	return ret;
}

/* The process behind @ctx is going: everybody else must know at once. */
void swc_comms_of_ctx_died(struct swc_ctx *ctx, const char *how)
{
	struct swc_member *member;
	unsigned long handle;

	xa_for_each(&ctx->members, handle, member) {
		member = swc_member_get(ctx, handle);
		if (!member)
			continue;
		member_died(member, how);
		swc_member_put(member);
	}
}

/* The context is going: give its handles back. Nobody else uses them any more. */
void swc_comms_of_ctx_drop(struct swc_ctx *ctx)
{
	struct swc_member *member;
	unsigned long handle;

	xa_for_each(&ctx->members, handle, member) {
		xa_erase(&ctx->members, handle);
		swc_plan_unload_all(member);
		swc_comm_put(member->comm);
	}
}

/* ------------------------------------------------------------------ looking in */

bool swc_comm_visible(const struct swc_comm *comm)
{
	return uid_eq(comm->owner, current_euid()) || capable(CAP_SYS_ADMIN);
}

/* The first visible communicator behind *cursor, with a reference; moves the cursor. NULL: none left. */
struct swc_comm *swc_comm_after(u64 *cursor)
{
	struct swc_comm *comm, *found = NULL;

	mutex_lock(&swc_comms_mutex);
	list_for_each_entry(comm, &swc_comms, node) {
		if (comm->number > *cursor && swc_comm_visible(comm) &&
		    kref_get_unless_zero(&comm->ref)) {
			found = comm;
			*cursor = comm->number;
			break;
		}
	}
	mutex_unlock(&swc_comms_mutex);
	return found;
}
