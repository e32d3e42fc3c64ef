// SPDX-License-Identifier: GPL-2.0-only
/*
 * Creating communicators: a rank joins one, and the first rank to join makes it.
 *
 * A communicator is found by its 128-bit id, which is the right to join it; by default the user must be the
 * same, too.
 */
#include <crypto/algapi.h>
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/sched/prio.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>

#include "comm/comm.h"
#include "mem/account.h"
#include "mem/context.h"
#include "comm/create.h"
#include "comm/exit_text.h"
#include "comm/recorder.h"
#include "mem/region.h"
#include "mem/shared.h"
#include "trace.h"

#define DEFAULT_TIMEOUT_MS	30000

/*
 * What the caller says of other nodes, read and checked before any lock is taken; what the communicator takes
 * over is its own from then on. @charged: memory of all that, of the caller's account.
 */
struct create_nodes {
	struct swc_account *account;
	u64 charged;
	u32 *rank_node;
	struct swc_path_table paths;
	struct swc_listeners listeners;
};

/*
 * A communicator that a rank of this node is making. That may take long, as where its user's memory is
 * short: no lock is held, and only ranks with the same id wait.
 */
struct creation {
	struct list_head entry;
	const u8 *id; /* SWC_ID_BYTES */
};

static LIST_HEAD(creations);
static DEFINE_SPINLOCK(creations_lock);
static DECLARE_WAIT_QUEUE_HEAD(creations_wq);

/* ------------------------------------------------------------------ making */

/* The communicator counts for its owner. */
static int charge(struct swc_comm *comm, struct create_nodes *nodes)
{
	u64 bytes = struct_size(comm, member, comm->nranks) + sizeof(u32) * comm->nranks +
		    swc_trace_records * sizeof(struct swc_trace_record);
	int ret;

	comm->account = swc_account_get(swc_account_uid());
	if (!comm->account)
		return -ENOMEM;
	ret = swc_account_charge(comm->account, SWC_QUOTA_COMMS, 1);
	if (ret)
		return ret;
	ret = swc_account_charge(comm->account, SWC_QUOTA_MEMORY, bytes);
	if (ret)
		swc_account_uncharge(comm->account, SWC_QUOTA_COMMS, 1);
	else
		comm->charged = bytes + nodes->charged;
	if (!ret)
		nodes->charged = 0;
	return ret;
}

/* Slots are charged to the rank that makes the communicator. */
static int make_shared(struct swc_comm *comm, struct mm_struct *mm)
{
	struct swc_shared *s = swc_shared_alloc(sizeof(*comm->state_page), comm->account, NULL);

	if (IS_ERR(s))
		return PTR_ERR(s);
	comm->state_mem = s;
	comm->state_page = s->mem;
	comm->state_page->culprit = -1;
	if (!comm->slot_bytes)
		return 0;
	s = swc_shared_alloc(comm->slot_bytes, comm->account, mm);
	if (IS_ERR(s))
		return PTR_ERR(s);
	comm->slot_mem = s;
	comm->slots = s->mem;
	return 0;
}

/* Find the members on this node; takes over @nodes->rank_node. */
static int place_members(struct swc_comm *comm, u32 rank, struct create_nodes *nodes)
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

static struct swc_comm *make_comm(struct swc_ctx *ctx, const struct swc_comm_create *args,
				    struct create_nodes *nodes)
{
	struct swc_comm *comm;
	int ret;
	u32 i;

	comm = kvzalloc(struct_size(comm, member, args->nranks), GFP_KERNEL_ACCOUNT);
	if (!comm)
		return ERR_PTR(-ENOMEM);
	kref_init(&comm->ref);
	memcpy(comm->id, args->id, SWC_ID_BYTES);
	comm->nranks = args->nranks;
	comm->flags = args->flags;
	comm->timeout_ms = args->timeout_ms ?: DEFAULT_TIMEOUT_MS;
	comm->slot_bytes = args->slot_bytes;
	comm->owner = current_euid();
	spin_lock_init(&comm->lock);
	hash_init(comm->by_seq);
	INIT_LIST_HEAD(&comm->ops);
	INIT_LIST_HEAD(&comm->calls);
	for (i = 0; i < SWC_UNEXPECTED_LISTS; i++)
		INIT_LIST_HEAD(&comm->unexpected[i]);
	INIT_LIST_HEAD(&comm->notifiers);
	comm->window.oldest = U64_MAX;
	comm->window.oldest_call = U64_MAX;
	comm->gone_at = U64_MAX;
	INIT_DELAYED_WORK(&comm->watchdog, swc_comm_ops->watchdog);
	INIT_WORK(&comm->free_work, swc_comm_free);
	init_waitqueue_head(&comm->create_wq);
	init_waitqueue_head(&comm->slot_wq);
	init_waitqueue_head(&comm->part_wq);
	comm->culprit = -1;
	for (i = 0; i < comm->nranks; i++) {
		comm->member[i].comm = comm;
		comm->member[i].rank = i;
		xa_init_flags(&comm->member[i].plans, XA_FLAGS_ALLOC1);
	}
	ret = zalloc_cpumask_var(&comm->cpus, GFP_KERNEL_ACCOUNT) ? charge(comm, nodes) : -ENOMEM;
	if (!ret)
		ret = swc_comm_reserve(comm);
	if (ret)
		goto err;
	comm->user = swc_user_get(comm->account->uid);
	ret = comm->user ? make_shared(comm, ctx->mm) : -ENOMEM;
	if (ret)
		goto err;
	ret = place_members(comm, args->rank, nodes);
	if (ret)
		goto err;
	comm->recorder = swc_recorder_create(comm->owner, comm->nranks);
	if (IS_ERR(comm->recorder)) {
		ret = PTR_ERR(comm->recorder);
		comm->recorder = NULL;
		goto err;
	}
	if (comm->rank_node) {
		const struct swc_net_params params = {
			.comm = comm, .window = &comm->window, .id = comm->id, .nranks = comm->nranks,
			.rank_node = comm->rank_node, .here = comm->here, .timeout_ms = comm->timeout_ms,
			.account = comm->account, .wq = comm->user->wq[SWC_QUEUE_NET],
			.abort_wq = comm->user->wq[SWC_QUEUE_ABORT],
		};

		comm->net = swc_net_create(&params, &nodes->paths, &nodes->listeners);
		if (IS_ERR(comm->net)) {
			ret = PTR_ERR(comm->net);
			goto err;
		}
	}
	comm->user_ns = get_user_ns(current_user_ns());
	return comm;

err:
	swc_recorder_put(comm->recorder);
	swc_comm_unreserve(comm);
	if (comm->user)
		swc_user_put(comm->user);
	swc_shared_put(comm->slot_mem);
	swc_shared_put(comm->state_mem);
	kvfree(comm->rank_node);
	kvfree(comm->local);
	swc_comm_uncharge(comm);
	free_cpumask_var(comm->cpus);
	kvfree(comm);
	return ERR_PTR(ret);
}

/* ------------------------------------------------------------------ joining */

/*
 * May the caller have work done at nice -20? The rule of setpriority(2); modules cannot call its can_nice().
 * The limit comes first: capable() marks the task as one that has used the capability.
 */
static bool may_be_urgent(void)
{
	return rlimit(RLIMIT_NICE) >= nice_to_rlimit(MIN_NICE) || capable(CAP_SYS_NICE);
}

static int check_args(const struct swc_comm_create *args)
{
	if (!args->nranks || args->nranks > SWC_MAX_RANKS || args->rank >= args->nranks)
		return -EINVAL;
	if ((args->flags & ~SWC_COMM_F_ALL) || args->slot_bytes > SWC_MAX_SLOT_BYTES)
		return -EINVAL;
	if (args->nnodes > 1 ? args->nnodes > args->nranks || !args->rank_node || !args->paths ||
			       !args->npaths || args->npaths > args->nnodes * SWC_MAX_PATHS :
	    args->rank_node || args->paths || args->npaths || args->nranks > SWC_MAX_LOCAL_RANKS)
		return -EINVAL;
	if (args->missing)
		return -EINVAL;
	if ((args->flags & SWC_COMM_F_URGENT) && !may_be_urgent())
		return -EPERM;
	return 0;
}

static bool may_join(const struct swc_comm *comm, const struct swc_comm_create *args)
{
	if (comm->flags & args->flags & SWC_COMM_F_ANY_USER)
		return true;
	return uid_eq(comm->owner, current_euid()) && comm->user_ns == current_user_ns();
}

/* All members of a node must give the same placement. */
static bool same_nodes(const struct swc_comm *comm, const struct create_nodes *nodes)
{
	if (!comm->rank_node || !nodes->rank_node)
		return !comm->rank_node && !nodes->rank_node;
	return !memcmp(comm->rank_node, nodes->rank_node, comm->nranks * sizeof(*comm->rank_node));
}

/*
 * Is this the same communicator, but another node of it? Nodes meet by network only, even in one kernel. The
 * first rank to join an object says which node it is.
 */
static bool other_node(const struct swc_comm *comm, const struct swc_comm_create *args,
		       const struct create_nodes *nodes)
{
	return comm->rank_node && nodes->rank_node && nodes->rank_node[args->rank] != comm->here;
}

/* The communicator of this id, with a reference; NULL: none. */
static struct swc_comm *find(const struct swc_comm_create *args, const struct create_nodes *nodes)
{
	struct swc_comm *comm;

	lockdep_assert_held(&swc_comms_mutex);
	hlist_for_each_entry(comm, swc_comms_with_id(args->id), by_id) {
		/* An id is free again when its communicator has been aborted, or all members have left. */
		if (READ_ONCE(comm->status) == SWC_COMM_ABORTED ||
		    READ_ONCE(comm->nleft) == comm->nlocal ||
		    crypto_memneq(comm->id, args->id, SWC_ID_BYTES) || other_node(comm, args, nodes))
			continue;
		if (kref_get_unless_zero(&comm->ref))
			return comm;
	}
	return NULL;
}

static bool is_being_made(const u8 *id)
{
	const struct creation *c;
	bool found = false;

	spin_lock(&creations_lock);
	list_for_each_entry(c, &creations, entry)
		found |= !crypto_memneq(c->id, id, SWC_ID_BYTES);
	spin_unlock(&creations_lock);
	return found;
}

/*
 * Find the communicator, or let @c say that the caller is to make it. Waits, killably, while another rank
 * does. Return: it, with a reference; NULL: it is to be made; -EINTR.
 */
static struct swc_comm *find_or_begin(const struct swc_comm_create *args, const struct create_nodes *nodes,
				      struct creation *c)
{
	struct swc_comm *comm;
	bool others;
	int ret;

	do {
		ret = mutex_lock_killable(&swc_comms_mutex);
		if (ret)
			return ERR_PTR(ret);
		comm = find(args, nodes);
		/* Whoever makes it has published it, or failed, before that is over. */
		others = !comm && is_being_made(args->id);
		if (!comm && !others) {
			spin_lock(&creations_lock);
			list_add(&c->entry, &creations);
			spin_unlock(&creations_lock);
		}
		mutex_unlock(&swc_comms_mutex);
		if (others && wait_event_killable(creations_wq, !is_being_made(args->id)))
			return ERR_PTR(-EINTR);
	} while (others);
	return comm;
}

/* Make the communicator, and let others find it. */
static struct swc_comm *make_and_publish(struct swc_ctx *ctx, const struct swc_comm_create *args,
					 struct create_nodes *nodes, struct creation *c)
{
	struct swc_comm *comm = make_comm(ctx, args, nodes);

	if (!IS_ERR(comm)) {
		mutex_lock(&swc_comms_mutex);
		swc_comm_publish(comm);
		mutex_unlock(&swc_comms_mutex);
		swc_recorder_add(comm->recorder, comm->number);
		swc_stat_inc(SWC_STAT_COMMS_CREATED);
	}
	spin_lock(&creations_lock);
	list_del(&c->entry);
	spin_unlock(&creations_lock);
	wake_up_all(&creations_wq);
	return comm;
}

/* The communicator of this id, new if there is none; with a reference. *refused: why the rank cannot join. */
static struct swc_comm *find_or_create(struct swc_ctx *ctx, const struct swc_comm_create *args,
				       struct create_nodes *nodes, int *refused)
{
	struct creation c = { .id = args->id };
	struct swc_comm *comm = find_or_begin(args, nodes, &c);

	if (!comm)
		return make_and_publish(ctx, args, nodes, &c);
	if (IS_ERR(comm))
		return comm;
	if (!may_join(comm, args))
		*refused = -EACCES;
	else if (comm->nranks != args->nranks || comm->flags != args->flags ||
		 comm->slot_bytes != args->slot_bytes || !same_nodes(comm, nodes))
		*refused = -EPROTO;
	return comm;
}

/*
 * A process chooses its name freely, and others read it in error texts and listings, on terminals: keep
 * printable ASCII only, as in names of plans and texts of other nodes.
 */
static void record_name(struct swc_member *member)
{
	char *c;

	get_task_comm(member->name, current->group_leader);
	for (c = member->name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/* All have joined. Plans and slots depend on the number of CPUs, so members must see the same. */
static void publish_cpus(struct swc_comm *comm)
{
	lockdep_assert_held(&comm->lock);
	cpumask_and(comm->cpus, comm->cpus, cpu_online_mask);
	comm->state_page->ncpus = cpumask_weight(comm->cpus);
}

/* Plans group members whose CPUs share a cache, which user space knows. */
static void publish_member_cpus(struct swc_comm *comm, u32 rank)
{
	struct swc_member_cpus *cpus = comm->state_page->cpus;

	lockdep_assert_held(&comm->lock);
	if (rank >= ARRAY_SIZE(comm->state_page->cpus))
		return;
	rank = array_index_nospec(rank, ARRAY_SIZE(comm->state_page->cpus));
	cpus[rank].first = cpumask_first(&current->cpus_mask);
	cpus[rank].last = cpumask_last(&current->cpus_mask);
}

static int take_rank(struct swc_comm *comm, struct swc_ctx *ctx, u32 rank)
{
	struct swc_member *member = &comm->member[array_index_nospec(rank, comm->nranks)];
	int ret = 0;

	spin_lock(&comm->lock);
	/* It can be found since it was made: another node's abort may have come already. */
	if (comm->status == SWC_COMM_ABORTED) {
		ret = comm->error;
	} else if (comm->status != SWC_COMM_FORMING || member->state != SWC_MEMBER_EMPTY) {
		ret = -EEXIST;
	} else {
		member->state = SWC_MEMBER_JOINED;
		member->ctx = ctx;
		member->pid = get_pid(task_tgid(current));
		member->last_submit = ktime_get_ns();
		record_name(member);
		swc_record(comm->recorder, SWC_TRACE_JOIN, rank, 0,
			   (u64)swc_pid_ns(member->pid) << 32 | swc_own_pid(member->pid));
		cpumask_or(comm->cpus, comm->cpus, &current->cpus_mask);
		publish_member_cpus(comm, rank);
		if (++comm->njoined == comm->nlocal) {
			publish_cpus(comm);
			swc_comm_set_status(comm, SWC_COMM_FORMING, SWC_COMM_LIVE);
		}
	}
	spin_unlock(&comm->lock);
	return ret;
}

/* The lowest rank of this node that has not joined; nranks: all have. */
static u32 first_missing(const struct swc_comm *comm)
{
	u32 i;

	lockdep_assert_held(&comm->lock);
	for (i = 0; i < comm->nlocal; i++)
		if (comm->member[comm->local[i]].state == SWC_MEMBER_EMPTY)
			return comm->local[i];
	return comm->nranks;
}

/* wait_event_killable_timeout(), for long waits: a machine that goes to sleep does not wait for them. */
#define wait_freezekillable_timeout(wq, condition, timeout) ({					\
	long __ret = timeout;									\
												\
	might_sleep();										\
	if (!___wait_cond_timeout(condition))							\
		__ret = ___wait_event(wq, ___wait_cond_timeout(condition),			\
				      (TASK_KILLABLE | TASK_FREEZABLE), 0, timeout,		\
				      __ret = schedule_timeout(__ret));				\
	__ret;											\
})

static int wait_for_all(struct swc_comm *comm, u32 timeout_ms, struct swc_comm_create *args)
{
	long left;
	int ret;

	left = wait_freezekillable_timeout(comm->create_wq,
					   READ_ONCE(comm->status) != SWC_COMM_FORMING,
					   msecs_to_jiffies(timeout_ms));
	if (!left)
		swc_comm_abort_forming(comm, -ETIMEDOUT, "%u of %u ranks had joined after %u ms",
				       READ_ONCE(comm->njoined), comm->nlocal, timeout_ms);
	else if (left < 0)
		return left;
	spin_lock(&comm->lock);
	ret = comm->status == SWC_COMM_ABORTED ? comm->error : 0;
	/* An aborted communicator accepts no rank, so this is final. */
	if (ret == -ETIMEDOUT && comm->njoined < comm->nlocal) {
		args->njoined = comm->njoined;
		args->missing = first_missing(comm);
	}
	spin_unlock(&comm->lock);
	return ret;
}

/* The account is the one that the communicator will have. */
static int charge_nodes(struct create_nodes *nodes, u64 bytes)
{
	int ret;

	nodes->account = swc_account_get(swc_account_uid());
	if (!nodes->account)
		return -ENOMEM;
	ret = swc_account_charge(nodes->account, SWC_QUOTA_MEMORY, bytes);
	if (!ret)
		nodes->charged = bytes;
	return ret;
}

/* Read placement and paths; free_nodes() frees them in any case. */
static int read_nodes(const struct swc_comm_create *args, struct create_nodes *nodes)
{
	size_t bytes = args->nranks * sizeof(*nodes->rank_node);
	int ret;
	u32 i;

	if (args->nnodes <= 1)
		return 0;
	ret = charge_nodes(nodes, bytes + swc_path_table_bytes(args->npaths, args->nranks));
	if (ret)
		return ret;
	nodes->rank_node = kvmalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!nodes->rank_node)
		return -ENOMEM;
	if (copy_from_user(nodes->rank_node, u64_to_user_ptr(args->rank_node), bytes))
		return -EFAULT;
	for (i = 0; i < args->nranks; i++)
		if (nodes->rank_node[i] >= args->nnodes)
			return -EINVAL;
	ret = swc_path_table_read(&nodes->paths, u64_to_user_ptr(args->paths), args->npaths, args->nranks,
				  nodes->rank_node[args->rank]);
	/* Before the list of communicators is locked: connection requests lock it. */
	return ret ?: swc_listeners_start(&nodes->listeners, nodes->paths.path, args->npaths);
}

static void free_nodes(struct create_nodes *nodes)
{
	kvfree(nodes->rank_node);
	swc_path_table_free(&nodes->paths);
	if (nodes->account) {
		swc_account_uncharge(nodes->account, SWC_QUOTA_MEMORY, nodes->charged);
		swc_account_put(nodes->account);
	}
	swc_listeners_stop(&nodes->listeners);
}

/**
 * swc_comm_create() - become one rank of a communicator, and wait for the others of this node
 * @ctx: the caller's context
 * @args: arguments; the handle is filled in
 *
 * Sleeps, killably, for args->join_ms or args->timeout_ms at most. Return: 0 or the errors of struct
 * swc_comm_create.
 */
int swc_comm_create(struct swc_ctx *ctx, struct swc_comm_create *args)
{
	struct create_nodes nodes = {};
	struct swc_comm *comm;
	struct swc_member *member;
	u32 handle, timeout_ms;
	int ret;

	ret = check_args(args);
	if (ret)
		return ret;
	ret = read_nodes(args, &nodes);
	comm = ret ? ERR_PTR(ret) : find_or_create(ctx, args, &nodes, &ret);
	free_nodes(&nodes);
	if (IS_ERR(comm))
		return PTR_ERR(comm);
	if (!ret)
		ret = take_rank(comm, ctx, args->rank);
	if (ret)
		goto out;

	member = &comm->member[args->rank];
	/* The handle holds a reference. */
	kref_get(&comm->ref);
	ret = xa_alloc(&ctx->members, &handle, member, XA_LIMIT(1, swc_max_comms),
		       GFP_KERNEL_ACCOUNT);
	if (ret) {
		swc_member_died(member, "could not join");
		swc_comm_put(comm);
		ret = ret == -EBUSY ? -ENOSPC : ret;
		goto out;
	}
	/* Pairs with swc_ctx_set_ended(), and so does the look at the context. */
	smp_mb();
	if (swc_ctx_has_ended(ctx))
		swc_member_died(member, "has closed the device");
	trace_swc_comm_create(member);
	wake_up_all(&comm->create_wq);
	timeout_ms = args->join_ms ?: args->timeout_ms ?: DEFAULT_TIMEOUT_MS;
	args->njoined = 0;
	ret = wait_for_all(comm, timeout_ms, args);
	if (ret) {
		char how[SWC_EXIT_TEXT] = "gave up joining";

		swc_exit_text(current, how);
		swc_member_died(member, how);
		if (xa_cmpxchg(&ctx->members, handle, member, NULL, 0) == member)
			swc_comm_put(comm);
	} else {
		args->comm = handle;
	}
out:
	swc_comm_put(comm);
	return ret;
}
