// SPDX-License-Identifier: GPL-2.0-only
/*
 * Partitioned operations: a collective in pieces, each of which begins when all members have marked it ready.
 *
 * Every partition is an operation like any other. SWC_IOC_PARTITIONED_START makes all requests of a round,
 * which is all that can fail, and reserves their numbers; marking a partition ready only lets its request
 * be matched.
 *
 * Producers put ready partitions into a queue in shared memory. The kernel drains it when they ask for that
 * (KICK), and whenever a partition is done: so while partitions of this node run, a store is all that a
 * producer has to do. Between nodes a partition may wait for other ranks, which may wait for the next
 * partition of this one: there the producer always asks. Nothing in the shared memory is trusted: @req
 * alone says which partition is outstanding.
 */
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>

#include "comm/comm.h"
#include "core/desc_check.h"
#include "mem/account.h"
#include "mem/context.h"
#include "mem/handle.h"
#include "mem/region.h"
#include "exec/request.h"
#include "exec/partitioned.h"
#include "plan/plan.h"
#include "mem/shared.h"
#include "exec/match.h"

/* Per context; their shared memory also counts against RLIMIT_MEMLOCK. */
#define PARTITIONED_MAX	1024
/* Waits by io_uring of one of them: all may be completed at once, under its lock. */
#define MAX_WAITERS	(4 * SWC_MAX_PARTITIONS)
/* Partitions that begin in the context of an event of a connection, some microseconds each. */
#define EVENT_DRAIN	8

/**
 * struct swc_partitioned - a partitioned operation of one rank
 *
 * References: the handle, each request of the current round that is not done, each waiter, queued work items,
 * calls in progress. Freed after an RCU grace period: io_uring's cancel path may look at one whose waiter
 * is just being completed.
 *
 * @ref: references
 * @notifier: hears that the communicator is aborted
 * @ctx: its context; outlives all requests
 * @member: of the communicator; holds it
 * @desc, @n, @send_stride, @recv_stride: see struct swc_partitioned_init
 * @plan: reference
 * @account, @charged: who is charged for @req and @waiters, and for how many bytes
 * @memory: holds @shared, charged to the address space of @ctx
 * @shared: see struct swc_progress
 * @queue, @done, @entries: in it
 * @mutex: one call to start, wait for all or free at a time
 * @round: number of the current round
 * @base: sequence number of its partition 0
 * @req: partitions that are not ready; NULL: ready or done. Taken by xchg().
 * @left: partitions of this round that are not done
 * @running: of them, those that have begun on this node
 * @drains: calls for a drain of the queue; the caller that makes it 1 drains until it is 0
 * @head: entries of the queue taken; belongs to the drainer
 * @error: first of this round
 * @lock: guards the next two, and the step of @left to 0
 * @waiters: waiters that do not sleep, by partition; the last list waits for all partitions
 * @nwaiters: how many
 * @drain_work: drains the queue after a failure
 * @abort_work: drops what has not begun when the communicator has been aborted; queued once
 */
struct swc_partitioned {
	struct kref ref;
	struct rcu_head rcu;
	struct swc_comm_notifier notifier;
	struct swc_ctx *ctx;
	struct swc_member *member;
	struct swc_desc desc;
	u32 n;
	u64 send_stride;
	u64 recv_stride;
	struct swc_plan *plan;
	struct swc_account *account;
	u64 charged;
	struct swc_shared *memory;
	struct swc_progress *shared;
	u32 *queue;
	u32 *done;
	u32 entries;
	struct mutex mutex;
	u32 round;
	u64 base;
	struct swc_req **req;
	atomic_t left;
	atomic_t running;
	atomic_t drains;
	u32 head;
	int error;
	spinlock_t lock;
	struct hlist_head *waiters;
	u32 nwaiters;
	struct work_struct drain_work;
	struct work_struct abort_work;
};

/* ------------------------------------------------------------------ life */

static void partitioned_free(struct kref *ref)
{
	struct swc_partitioned *p = container_of(ref, struct swc_partitioned, ref);
	struct swc_comm *comm = p->member->comm;

	spin_lock(&comm->lock);
	list_del(&p->notifier.node);
	spin_unlock(&comm->lock);
	swc_shared_put(p->memory);
	kvfree(p->req);
	kvfree(p->waiters);
	swc_plan_put(p->plan);
	swc_member_put(p->member);
	swc_account_uncharge(p->account, SWC_QUOTA_MEMORY, p->charged);
	swc_account_put(p->account);
	kfree_rcu(p, rcu);
}

void swc_partitioned_put(struct swc_partitioned *p)
{
	kref_put(&p->ref, partitioned_free);
}

static void get_ref(void *object)
{
	kref_get(&((struct swc_partitioned *)object)->ref);
}

struct swc_partitioned *swc_partitioned_get(struct swc_ctx *ctx, u32 handle)
{
	return swc_handle_get(&ctx->partitioned_ops, handle, get_ref);
}

static void drain_fn(struct work_struct *work);
static void abort_fn(struct work_struct *work);
static void comm_aborted(struct swc_comm_notifier *notifier);

static int make_tables(struct swc_partitioned *p)
{
	u64 bytes = sizeof(*p) + p->n * sizeof(*p->req) + (p->n + 1) * sizeof(*p->waiters);
	int ret = swc_region_charge_memory(p->ctx, p->account, bytes);

	if (ret)
		return ret;
	p->charged = bytes;
	p->req = kvcalloc(p->n, sizeof(*p->req), GFP_KERNEL_ACCOUNT);
	p->waiters = kvcalloc(p->n + 1, sizeof(*p->waiters), GFP_KERNEL_ACCOUNT);
	return p->req && p->waiters ? 0 : -ENOMEM;
}

static int make_shared(struct swc_partitioned *p)
{
	u32 queue = sizeof(struct swc_progress), done;
	struct swc_shared *s;

	p->entries = roundup_pow_of_two(p->n);
	done = queue + p->entries * sizeof(u32);
	s = swc_shared_alloc(done + p->n * sizeof(u32), p->ctx->account, p->ctx->mm);
	if (IS_ERR(s))
		return PTR_ERR(s);
	p->memory = s;
	p->shared = s->mem;
	p->queue = (void *)p->shared + queue;
	p->done = (void *)p->shared + done;
	p->shared->entries = p->entries;
	p->shared->queue = queue;
	p->shared->done = done;
	p->shared->flags = SWC_PROGRESS_KICK;
	return 0;
}

/**
 * swc_partitioned_create() - make a partitioned operation; @init gets its handle
 */
int swc_partitioned_create(struct swc_ctx *ctx, struct swc_partitioned_init *init)
{
	struct swc_member *member = swc_member_get(ctx, init->desc.comm);
	struct swc_partitioned *p;
	int ret;

	if (!member)
		return -ENOENT;
	ret = swc_partitioned_check(init, member->comm->nranks);
	p = ret ? NULL : kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p) {
		swc_member_put(member);
		return ret ?: -ENOMEM;
	}
	kref_init(&p->ref);
	p->ctx = ctx;
	p->account = swc_account_hold(ctx->account);
	p->member = member;
	p->desc = init->desc;
	p->n = init->partitions;
	p->send_stride = init->send_stride;
	p->recv_stride = init->recv_stride;
	mutex_init(&p->mutex);
	spin_lock_init(&p->lock);
	INIT_WORK(&p->drain_work, drain_fn);
	INIT_WORK(&p->abort_work, abort_fn);
	INIT_LIST_HEAD(&p->notifier.node);
	p->notifier.aborted = comm_aborted;
	p->plan = swc_plan_get(member, p->desc.plan);
	if (!p->plan)
		ret = -ENOENT;
	else
		ret = make_tables(p) ?: make_shared(p);
	if (!ret) {
		init->map_bytes = p->memory->npages << PAGE_SHIFT;
		/* From now on it hears of the communicator's end. */
		spin_lock(&member->comm->lock);
		list_add_tail(&p->notifier.node, &member->comm->notifiers);
		spin_unlock(&member->comm->lock);
		/* Once there is a handle, anybody may free it. */
		kref_get(&p->ref);
		ret = xa_alloc(&ctx->partitioned_ops, &init->handle, p, XA_LIMIT(1, PARTITIONED_MAX),
			       GFP_KERNEL_ACCOUNT);
		if (ret)
			swc_partitioned_put(p);
	}
	swc_partitioned_put(p);
	return ret == -EBUSY ? -ENOSPC : ret;
}

int swc_partitioned_mmap(struct swc_partitioned *p, struct vm_area_struct *vma)
{
	return swc_shared_mmap(p->memory, vma);
}

/* ------------------------------------------------------------------ ready and done */

static bool is_aborted(const struct swc_partitioned *p)
{
	return READ_ONCE(p->member->comm->status) == SWC_COMM_ABORTED;
}

static void note_error(struct swc_partitioned *p, int error)
{
	if (error && !cmpxchg(&p->error, 0, error))
		WRITE_ONCE(p->shared->error, error);
}

/* Complete the waiters in @p->waiters[@i]; under @p->lock. */
static void complete_waiters(struct swc_partitioned *p, u32 i, int result)
{
	struct swc_waiter *waiter;
	struct hlist_node *next;

	hlist_for_each_entry_safe(waiter, next, &p->waiters[i], node) {
		hlist_del_init(&waiter->node);
		p->nwaiters--;
		waiter->result = result;
		waiter->complete(waiter);
	}
}

/*
 * A partition has run, or will not. A caller that sees any sign of that and then begins another round, or
 * frees the operation, waits for the lock.
 */
static void partition_over(struct swc_partitioned *p, u32 index, bool has_run)
{
	struct swc_comm *comm = p->member->comm;
	bool last;
	int error;
	u32 i;

	spin_lock(&p->lock);
	error = READ_ONCE(p->error);
	if (has_run) {
		/* The data, and the error, were there before. */
		smp_store_release(&p->done[index], p->round);
		complete_waiters(p, index, error);
	}
	last = atomic_dec_and_test(&p->left);
	for (i = 0; last && p->nwaiters && i <= p->n; i++)
		complete_waiters(p, i, error);
	spin_unlock(&p->lock);
	if (last || wq_has_sleeper(&comm->part_wq))
		wake_up_all(&comm->part_wq);
}

static bool round_is_over(struct swc_partitioned *p)
{
	bool over;

	spin_lock(&p->lock);
	over = !atomic_read(&p->left);
	spin_unlock(&p->lock);
	return over;
}

/* Drop a partition that cannot begin, because the communicator has been aborted. */
static void drop_partition(struct swc_partitioned *p, struct swc_req *req)
{
	note_error(p, swc_match_unreserve(p->member) ?: -ECONNABORTED);
	swc_req_drop(req);
	partition_over(p, 0, false);
	swc_partitioned_put(p);
}

/* The next partition that has been marked ready, or NULL. */
static struct swc_req *next_ready(struct swc_partitioned *p)
{
	u32 *slot = &p->queue[p->head & (p->entries - 1)], index;
	struct swc_req *req = NULL;

	/* Pairs with the producer's release store: what it wrote before is visible. */
	index = smp_load_acquire(slot);
	if (!index)
		return NULL;
	WRITE_ONCE(*slot, 0);
	p->head++;
	if (--index < p->n)
		req = xchg(&p->req[array_index_nospec(index, p->n)], NULL);
	if (!req && !is_aborted(p))
		swc_comm_abort(p->member->comm, -EINVAL, p->member->rank, p->base,
			       SWC_MEMBER_FMT " marked partition %u of %u ready, which is not waited for",
			       SWC_MEMBER_ARGS(p->member), index, p->n);
	return req;
}

/*
 * Let partitions that are marked ready meet the other ranks', at most @most. One caller at a time does this;
 * calls that come meanwhile, also from inside of it, make that one look again.
 *
 * Return: false if it stopped at @most: there may be more, and nobody looks.
 */
static bool drain_queue(struct swc_partitioned *p, u32 most)
{
	int seen;

	if (atomic_inc_return(&p->drains) > 1)
		return true;
	do {
		struct swc_req *req;

		seen = atomic_read(&p->drains);
		while ((req = next_ready(p))) {
			if (swc_match_reserved(req, p->base + req->index))
				drop_partition(p, req);
			cond_resched();
			if (!--most) {
				atomic_set(&p->drains, 0);
				return false;
			}
		}
	} while (atomic_sub_return(seen, &p->drains));
	return true;
}

/* A partition begins to run on this node; under op->lock. */
static void partition_started(struct swc_req *req)
{
	struct swc_partitioned *p = req->partitioned;

	if (atomic_inc_return(&p->running) == 1)
		WRITE_ONCE(p->shared->flags, 0);
}

/* A partition has completed; its reference to the partitioned operation is put. */
static void partition_done(struct swc_req *req)
{
	struct swc_partitioned *p = req->partitioned;
	u32 index = req->index;
	bool ran = req->started && req->op->started_at;
	u32 most = p->member->comm->net ? EVENT_DRAIN : U32_MAX;
	int error = req->result;

	note_error(p, error);
	swc_req_put(req);
	partition_over(p, index, true);
	if (ran && atomic_dec_and_test(&p->running)) {
		WRITE_ONCE(p->shared->flags, SWC_PROGRESS_KICK);
		smp_mb();	/* pairs with the producer's: it sees the flag, or its entry is seen below */
	}
	/*
	 * A partition that fails completes as soon as the last rank arrives, inside that one's drain, and
	 * the next one may fail likewise: a work item drains instead, so that drains do not nest. It also
	 * takes what is too much for the context of an event. It gets the reference.
	 */
	if (!error && drain_queue(p, most))
		swc_partitioned_put(p);
	else if (!queue_work(swc_comm_wq(p->member->comm), &p->drain_work))
		swc_partitioned_put(p);
}

/* ------------------------------------------------------------------ rounds */

/* Drop all partitions that have not begun, if the communicator has been aborted. */
static void drop_unready(struct swc_partitioned *p)
{
	u32 i;

	for (i = 0; i < p->n && is_aborted(p); i++) {
		struct swc_req *req = xchg(&p->req[i], NULL);

		if (req)
			drop_partition(p, req);
		cond_resched();
	}
}

static void drain_fn(struct work_struct *work)
{
	struct swc_partitioned *p = container_of(work, struct swc_partitioned, drain_work);

	drain_queue(p, U32_MAX);
	swc_partitioned_put(p);
}

/* Waiters that do not sleep need a work item to complete them. */
static void abort_fn(struct work_struct *work)
{
	struct swc_partitioned *p = container_of(work, struct swc_partitioned, abort_work);

	drop_unready(p);
	swc_partitioned_put(p);
}

/* Called once, under comm->lock, so the work item is not queued yet. */
static void comm_aborted(struct swc_comm_notifier *notifier)
{
	struct swc_partitioned *p = container_of(notifier, struct swc_partitioned, notifier);

	if (kref_get_unless_zero(&p->ref))
		queue_work(swc_wq, &p->abort_work);
}

static struct swc_req *make_request(struct swc_partitioned *p, u32 index)
{
	struct swc_desc desc = p->desc;
	struct swc_req *req;

	desc.send += index * p->send_stride;
	desc.recv += index * p->recv_stride;
	kref_get(&p->member->comm->ref);
	req = swc_req_create(p->ctx, p->member, &desc, p->plan);
	if (IS_ERR(req))
		return req;
	req->partitioned = p;
	req->sig.partitioned = true;
	req->index = index;
	req->complete = partition_done;
	req->started = p->member->comm->net ? NULL : partition_started;
	return req;
}

static int begin_round(struct swc_partitioned *p)
{
	struct swc_req **req = kvcalloc(p->n, sizeof(*req), GFP_KERNEL_ACCOUNT);
	int ret = req ? 0 : -ENOMEM;
	u32 i, n;

	for (n = 0; n < p->n && !ret; n++) {
		req[n] = make_request(p, n);
		ret = PTR_ERR_OR_ZERO(req[n]);
		if (ret)
			break;
		cond_resched();
	}
	if (!ret)
		ret = swc_match_reserve(p->ctx, p->member, p->n, &p->base);
	if (ret) {
		while (n--)
			swc_req_drop(req[n]);
		kvfree(req);
		return ret;
	}
	WRITE_ONCE(p->round, p->round + 1 ?: 1);
	p->error = 0;
	WRITE_ONCE(p->shared->error, 0);
	atomic_set(&p->left, p->n);
	for (i = 0; i < p->n; i++) {
		kref_get(&p->ref);
		/* The caller that takes it sees the round. */
		smp_store_release(&p->req[i], req[i]);
	}
	/* Producers that see the new round may mark partitions. */
	smp_store_release(&p->shared->round, p->round);
	kvfree(req);
	return 0;
}

/**
 * swc_partitioned_start() - begin a round
 *
 * Return: 0; -EBUSY while the last one is not done; what swc_req_create() and swc_match() return.
 */
int swc_partitioned_start(struct swc_partitioned *p)
{
	int ret;

	if (mutex_lock_interruptible(&p->mutex))
		return -ERESTARTSYS;
	drop_unready(p);
	ret = round_is_over(p) ? begin_round(p) : -EBUSY;
	mutex_unlock(&p->mutex);
	/* If the communicator was aborted meanwhile, abort_fn() may have run before the round began. */
	if (!ret && swc_partitioned_kick(p))
		drop_unready(p);
	return ret;
}

/**
 * swc_partitioned_kick() - let partitions that have been marked ready begin
 *
 * Return: 0; -ECONNABORTED if the communicator has been aborted.
 */
int swc_partitioned_kick(struct swc_partitioned *p)
{
	drain_queue(p, U32_MAX);
	return is_aborted(p) ? -ECONNABORTED : 0;
}

/* Is a partition of round @round done? Another round may have begun since. */
static bool is_done(const struct swc_partitioned *p, u32 partition, u32 round)
{
	u32 i = array_index_nospec(partition, p->n);

	/* Pairs with the decrement in partition_over(). */
	if (!atomic_read_acquire(&p->left) || READ_ONCE(p->round) != round)
		return true;
	/* And this with its release. */
	return partition != SWC_ALL_PARTITIONS && smp_load_acquire(&p->done[i]) == round;
}

/**
 * swc_partitioned_wait() - sleep until a partition, or all, are done
 *
 * Return: 0 or the round's first error; -ETIME; -EINVAL if there was no round; on a signal -ERESTARTSYS, or
 * -EINTR if there is a time-out, which would begin anew.
 */
int swc_partitioned_wait(struct swc_partitioned *p, u32 partition, u32 timeout_ms)
{
	struct swc_comm *comm = p->member->comm;
	long left = timeout_ms ? msecs_to_jiffies(timeout_ms) : MAX_SCHEDULE_TIMEOUT;
	u32 round = READ_ONCE(p->round);

	if (!round || (partition != SWC_ALL_PARTITIONS && partition >= p->n))
		return -EINVAL;
	left = wait_event_interruptible_timeout(comm->part_wq, is_done(p, partition, round) || is_aborted(p),
						left);
	if (left <= 0)
		return !left ? -ETIME : timeout_ms ? -EINTR : left;
	if (is_aborted(p)) {
		drop_unready(p);
		/* Partitions that have begun end by themselves, and use the caller's memory until then. */
		wait_event(comm->part_wq, is_done(p, partition, round));
	}
	return READ_ONCE(p->error);
}

/**
 * swc_partitioned_add_waiter() - wait for partitions without sleeping
 * @waiter: unhashed, with @complete and its reference set
 * @partition: which, or SWC_ALL_PARTITIONS
 *
 * When the communicator is aborted, abort_fn() drops what has not begun, so that all waiters complete.
 *
 * Return: -EIOCBQUEUED: waiter->complete() will be called, unless swc_partitioned_del_waiter() comes before;
 * otherwise as swc_partitioned_wait(), or -EAGAIN: too many wait already.
 */
int swc_partitioned_add_waiter(struct swc_waiter *waiter, u32 partition)
{
	struct swc_partitioned *p = waiter->partitioned;
	bool all = partition == SWC_ALL_PARTITIONS;
	int ret = -EIOCBQUEUED;

	if (!p->round || (!all && partition >= p->n))
		return -EINVAL;
	spin_lock(&p->lock);
	if (is_done(p, partition, p->round)) {
		ret = READ_ONCE(p->error);
	} else if (p->nwaiters == MAX_WAITERS) {
		ret = -EAGAIN;
	} else {
		partition = all ? p->n : array_index_nospec(partition, p->n);
		hlist_add_head(&waiter->node, &p->waiters[partition]);
		p->nwaiters++;
	}
	spin_unlock(&p->lock);
	return ret;
}

/**
 * swc_partitioned_del_waiter() - wait no longer
 *
 * Return: false if it does not wait any more: it is being completed.
 */
bool swc_partitioned_del_waiter(struct swc_waiter *waiter)
{
	bool waited = false;
	struct swc_partitioned *p;

	/* It may be completing now; its reference is put after @partitioned has been cleared. */
	rcu_read_lock();
	p = READ_ONCE(waiter->partitioned);
	if (p) {
		spin_lock(&p->lock);
		waited = !hlist_unhashed(&waiter->node);
		if (waited) {
			hlist_del_init(&waiter->node);
			p->nwaiters--;
		}
		spin_unlock(&p->lock);
	}
	rcu_read_unlock();
	return waited;
}

/**
 * swc_partitioned_free() - free the handle; -EBUSY while a round is not done
 */
int swc_partitioned_free(struct swc_ctx *ctx, u32 handle)
{
	struct swc_partitioned *p = swc_partitioned_get(ctx, handle);
	int ret = 0;

	if (!p)
		return -ENOENT;
	mutex_lock(&p->mutex);
	drop_unready(p);
	/* Partitions that had begun when the communicator was aborted end soon. */
	if (is_aborted(p))
		wait_event(p->member->comm->part_wq, !atomic_read(&p->left));
	else if (!round_is_over(p))
		ret = -EBUSY;
	if (!ret && xa_cmpxchg(&ctx->partitioned_ops, handle, p, NULL, 0) == p)
		swc_partitioned_put(p);
	mutex_unlock(&p->mutex);
	swc_partitioned_put(p);
	return ret;
}

/* The context is going, and its communicators have been aborted. No call uses it any more. */
void swc_partitioned_drop_all(struct swc_ctx *ctx)
{
	struct swc_partitioned *p;
	unsigned long handle;

	xa_for_each(&ctx->partitioned_ops, handle, p) {
		xa_erase(&ctx->partitioned_ops, handle);
		drop_unready(p);
		swc_partitioned_put(p);
	}
}
