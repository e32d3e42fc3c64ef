// SPDX-License-Identifier: GPL-2.0-only
/*
 * Partitioned operations: a collective in pieces, each of which begins when all members have marked it ready.
 *
 * Every partition is an operation like any other. SWC_IOC_PART_START makes all parts of a round, which is all
 * that can fail, and takes their numbers; that a partition is ready only lets its part meet the others.
 *
 * Producers put ready partitions into a queue in shared memory. It is looked at when they ask for that, and
 * whenever a partition is done: so while partitions of this node run, a store is all that a producer has to
 * do. Between nodes a partition may wait for other ranks, which may wait for the next partition of this one:
 * there the producer always asks. Nothing in the shared memory is believed: what is ready, and what it
 * belongs to, is known by @part alone.
 */
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>

#include "comm/comm.h"
#include "core/desc_check.h"
#include "mem/context.h"
#include "exec/request.h"
#include "exec/partitioned.h"
#include "plan/plan.h"
#include "mem/shared.h"
#include "exec/match.h"

/* Of one context; their shared memory counts against RLIMIT_MEMLOCK besides. */
#define PARTEDS_MAX	1024

/**
 * struct swc_parted - a partitioned operation of one rank
 *
 * References: the handle, each part of the current round that is not done, each waiter, calls in progress.
 * Freed after an RCU grace period: io_uring's cancel path may look at one whose waiter is just being told.
 *
 * @ref: references
 * @node: in comm->parteds; comm->lock
 * @ctx: whose; outlives all parts
 * @member: of the communicator; holds it
 * @desc, @n, @send_stride, @recv_stride: see struct swc_part_init
 * @plan: reference
 * @memory: holds @shared, charged to the address space of @ctx
 * @shared: see struct swc_progress
 * @queue, @done, @entries: in it
 * @mutex: one call to start, wait for all or free at a time
 * @round: number of the current round
 * @base: sequence number of its partition 0
 * @part: partitions that are not ready; NULL: ready or done. Taken by xchg().
 * @left: partitions of this round that are not done
 * @running: of them, those that have begun on this node
 * @looks: calls for a look at the queue; who makes it 1 looks, until it is 0
 * @head: entries of the queue taken; belongs to who looks
 * @error: first of this round
 * @lock: guards the next two, and the step of @left to 0
 * @waiters: those who do not sleep, by partition; the last are those that wait for all
 * @nwaiters: so many
 * @look_work: looks at the queue, and gives up what has not begun if the communicator has ended
 */
struct swc_parted {
	struct kref ref;
	struct rcu_head rcu;
	struct list_head node;
	struct swc_ctx *ctx;
	struct swc_member *member;
	struct swc_desc desc;
	u32 n;
	u64 send_stride;
	u64 recv_stride;
	struct swc_plan *plan;
	struct swc_shared *memory;
	struct swc_progress *shared;
	u32 *queue;
	u32 *done;
	u32 entries;
	struct mutex mutex;
	u32 round;
	u64 base;
	struct swc_part **part;
	atomic_t left;
	atomic_t running;
	atomic_t looks;
	u32 head;
	int error;
	spinlock_t lock;
	struct hlist_head *waiters;
	u32 nwaiters;
	struct work_struct look_work;
};

/* ------------------------------------------------------------------ life */

static void parted_free(struct kref *ref)
{
	struct swc_parted *p = container_of(ref, struct swc_parted, ref);
	struct swc_comm *comm = p->member->comm;

	spin_lock(&comm->lock);
	list_del(&p->node);
	spin_unlock(&comm->lock);
	swc_shared_put(p->memory);
	kvfree(p->part);
	kvfree(p->waiters);
	swc_plan_put(p->plan);
	swc_member_put(p->member);
	kfree_rcu(p, rcu);
}

void swc_parted_put(struct swc_parted *p)
{
	kref_put(&p->ref, parted_free);
}

struct swc_parted *swc_parted_get(struct swc_ctx *ctx, u32 handle)
{
	struct swc_parted *p;

	xa_lock(&ctx->parteds);
	p = xa_load(&ctx->parteds, handle);
	if (p)
		kref_get(&p->ref);
	xa_unlock(&ctx->parteds);
	return p;
}

static int check_init(const struct swc_part_init *init, u32 nranks)
{
	u64 last = init->partitions - 1, bytes;

	if (init->resv[0] || init->resv[1] || init->desc.flags || init->handle || init->map_bytes ||
	    !init->partitions || init->partitions > SWC_MAX_PARTITIONS ||
	    check_mul_overflow(last, init->send_stride, &bytes) ||
	    check_add_overflow(bytes, init->desc.send, &bytes) ||
	    check_mul_overflow(last, init->recv_stride, &bytes) ||
	    check_add_overflow(bytes, init->desc.recv, &bytes))
		return -EINVAL;
	return swc_desc_check(&init->desc, nranks);
}

static void look_work(struct work_struct *work);

static int make_shared(struct swc_parted *p)
{
	u32 queue = sizeof(struct swc_progress), done;
	struct swc_shared *s;

	p->entries = roundup_pow_of_two(p->n);
	done = queue + p->entries * sizeof(u32);
	s = swc_shared_alloc(done + p->n * sizeof(u32), p->ctx->mm);
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
 * swc_parted_create() - make a partitioned operation; @init gets its handle
 */
int swc_parted_create(struct swc_ctx *ctx, struct swc_part_init *init)
{
	struct swc_member *member = swc_member_get(ctx, init->desc.comm);
	struct swc_parted *p;
	int ret;

	if (!member)
		return -ENOENT;
	ret = check_init(init, member->comm->nranks);
	p = ret ? NULL : kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p) {
		swc_member_put(member);
		return ret ?: -ENOMEM;
	}
	kref_init(&p->ref);
	p->ctx = ctx;
	p->member = member;
	p->desc = init->desc;
	p->n = init->partitions;
	p->send_stride = init->send_stride;
	p->recv_stride = init->recv_stride;
	mutex_init(&p->mutex);
	spin_lock_init(&p->lock);
	INIT_WORK(&p->look_work, look_work);
	INIT_LIST_HEAD(&p->node);
	p->part = kvcalloc(p->n, sizeof(*p->part), GFP_KERNEL_ACCOUNT);
	p->waiters = kvcalloc(p->n + 1, sizeof(*p->waiters), GFP_KERNEL_ACCOUNT);
	p->plan = swc_plan_get(member, p->desc.plan);
	if (!p->plan)
		ret = -ENOENT;
	else
		ret = p->part && p->waiters ? make_shared(p) : -ENOMEM;
	if (!ret) {
		init->map_bytes = p->memory->npages << PAGE_SHIFT;
		/* From now on it hears of the communicator's end. */
		spin_lock(&member->comm->lock);
		list_add_tail(&p->node, &member->comm->parteds);
		spin_unlock(&member->comm->lock);
		/* Once there is a handle, anybody may free it. */
		kref_get(&p->ref);
		ret = xa_alloc(&ctx->parteds, &init->handle, p, XA_LIMIT(1, PARTEDS_MAX),
			       GFP_KERNEL_ACCOUNT);
		if (ret)
			swc_parted_put(p);
	}
	swc_parted_put(p);
	return ret == -EBUSY ? -ENOSPC : ret;
}

int swc_parted_mmap(struct swc_parted *p, struct vm_area_struct *vma)
{
	return swc_shared_mmap(p->memory, vma);
}

/* ------------------------------------------------------------------ ready, done */

static bool ended(const struct swc_parted *p)
{
	return READ_ONCE(p->member->comm->status) == SWC_COMM_ABORTED;
}

static void note_error(struct swc_parted *p, int error)
{
	if (error && !cmpxchg(&p->error, 0, error))
		WRITE_ONCE(p->shared->error, error);
}

/* Tell those of @p->waiters[@i]; under @p->lock. */
static void tell(struct swc_parted *p, u32 i, int result)
{
	struct swc_waiter *waiter;
	struct hlist_node *next;

	hlist_for_each_entry_safe(waiter, next, &p->waiters[i], node) {
		hlist_del_init(&waiter->node);
		p->nwaiters--;
		waiter->result = result;
		swc_uring_waited(waiter);
	}
}

/*
 * A partition has run, or will not. Whoever sees any sign of that and then begins another round, or frees
 * all, waits behind the lock.
 */
static void count_out(struct swc_parted *p, u32 index, bool has_run)
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
		tell(p, index, error);
	}
	last = atomic_dec_and_test(&p->left);
	for (i = 0; last && p->nwaiters && i <= p->n; i++)
		tell(p, i, error);
	spin_unlock(&p->lock);
	if (last || wq_has_sleeper(&comm->part_wq))
		wake_up_all(&comm->part_wq);
}

static bool round_is_over(struct swc_parted *p)
{
	bool over;

	spin_lock(&p->lock);
	over = !atomic_read(&p->left);
	spin_unlock(&p->lock);
	return over;
}

/* The communicator has ended before this partition could begin. */
static void give_up(struct swc_parted *p, struct swc_part *part)
{
	note_error(p, READ_ONCE(p->member->comm->error) ?: -ECONNABORTED);
	swc_submit_forgo(p->member, 1);
	swc_part_drop(part);
	count_out(p, 0, false);
	swc_parted_put(p);
}

/* The next partition that has been marked ready, or NULL. */
static struct swc_part *next_ready(struct swc_parted *p)
{
	u32 *slot = &p->queue[p->head & (p->entries - 1)], index;
	struct swc_part *part = NULL;

	/* Pairs with the producer's release store: what it wrote before is there. */
	index = smp_load_acquire(slot);
	if (!index)
		return NULL;
	WRITE_ONCE(*slot, 0);
	p->head++;
	if (--index < p->n)
		part = xchg(&p->part[array_index_nospec(index, p->n)], NULL);
	if (!part && !ended(p))
		swc_comm_abort(p->member->comm, -EINVAL, p->member->rank, p->base,
			       "rank %u marked partition %u of %u ready, which is not waited for",
			       p->member->rank, index, p->n);
	return part;
}

/*
 * Let all partitions that are marked ready meet the other ranks'. One at a time does this; who comes
 * meanwhile, also from inside of it, makes that one look again.
 */
static void look(struct swc_parted *p)
{
	int seen = 1;

	if (atomic_inc_return(&p->looks) > 1)
		return;
	do {
		struct swc_part *part;

		seen = atomic_read(&p->looks);
		while ((part = next_ready(p)))
			if (swc_submit_reserved(part, p->base + part->index))
				give_up(p, part);
		cond_resched();
	} while (atomic_sub_return(seen, &p->looks));
}

/* By a work item; a reference of the caller's goes there. */
static void look_later(struct swc_parted *p)
{
	if (!queue_work(swc_wq, &p->look_work))
		swc_parted_put(p);
}

/* A partition begins to run on this node; under op->lock. */
static void partition_started(struct swc_part *part)
{
	struct swc_parted *p = part->parted;

	if (atomic_inc_return(&p->running) == 1)
		WRITE_ONCE(p->shared->flags, 0);
}

/* A partition is over; its reference to what it belongs to goes. */
static void partition_done(struct swc_part *part)
{
	struct swc_parted *p = part->parted;
	u32 index = part->index;
	bool ran = part->started && part->op->started_at;
	int error = part->result;

	note_error(p, error);
	swc_part_put(part);
	count_out(p, index, true);
	if (ran && atomic_dec_and_test(&p->running)) {
		WRITE_ONCE(p->shared->flags, SWC_PROGRESS_KICK);
		smp_mb();	/* pairs with the producer's: it sees the flag, or its entry is seen below */
	}
	/*
	 * What fails is over as soon as the last rank comes to it, from inside of that one's look, and the
	 * next one may fail likewise: no look inside of a look inside of a look.
	 */
	if (error) {
		look_later(p);
		return;
	}
	look(p);
	swc_parted_put(p);
}

/* ------------------------------------------------------------------ rounds */

/* Drop what has not begun, if it never will. */
static void clean_up(struct swc_parted *p)
{
	u32 i;

	for (i = 0; i < p->n && ended(p); i++) {
		struct swc_part *part = xchg(&p->part[i], NULL);

		if (part)
			give_up(p, part);
	}
}

static void look_work(struct work_struct *work)
{
	struct swc_parted *p = container_of(work, struct swc_parted, look_work);

	look(p);
	clean_up(p);
	swc_parted_put(p);
}

static struct swc_part *make_part(struct swc_parted *p, u32 index)
{
	struct swc_desc desc = p->desc;
	struct swc_part *part;

	desc.send += index * p->send_stride;
	desc.recv += index * p->recv_stride;
	kref_get(&p->member->comm->ref);
	part = swc_part_create(p->ctx, p->member, &desc, p->plan);
	if (IS_ERR(part))
		return part;
	part->parted = p;
	part->index = index;
	part->complete = partition_done;
	part->started = p->member->comm->net ? NULL : partition_started;
	return part;
}

static int begin_round(struct swc_parted *p)
{
	struct swc_part **part = kvcalloc(p->n, sizeof(*part), GFP_KERNEL_ACCOUNT);
	int ret = part ? 0 : -ENOMEM;
	u32 i, n;

	for (n = 0; n < p->n && !ret; n++) {
		part[n] = make_part(p, n);
		ret = PTR_ERR_OR_ZERO(part[n]);
		if (ret)
			break;
		cond_resched();
	}
	if (!ret)
		ret = swc_submit_reserve(p->member, p->n, &p->base);
	if (ret) {
		while (n--)
			swc_part_drop(part[n]);
		kvfree(part);
		return ret;
	}
	WRITE_ONCE(p->round, p->round + 1 ?: 1);
	p->error = 0;
	WRITE_ONCE(p->shared->error, 0);
	atomic_set(&p->left, p->n);
	for (i = 0; i < p->n; i++) {
		kref_get(&p->ref);
		/* Who takes it sees the round. */
		smp_store_release(&p->part[i], part[i]);
	}
	/* Who sees the new round may mark them. */
	smp_store_release(&p->shared->round, p->round);
	kvfree(part);
	return 0;
}

/**
 * swc_parted_start() - begin a round
 *
 * Return: 0; -EBUSY while the last one is not done; what swc_part_create() and swc_submit() return.
 */
int swc_parted_start(struct swc_parted *p)
{
	int ret;

	if (mutex_lock_interruptible(&p->mutex))
		return -ERESTARTSYS;
	clean_up(p);
	ret = round_is_over(p) ? begin_round(p) : -EBUSY;
	mutex_unlock(&p->mutex);
	/* If the communicator has ended meanwhile, those that wait may have cleaned up before. */
	if (!ret && swc_parted_kick(p))
		clean_up(p);
	return ret;
}

/**
 * swc_parted_kick() - look at what has been marked ready
 *
 * Return: 0; -ECONNABORTED if the communicator has ended.
 */
int swc_parted_kick(struct swc_parted *p)
{
	look(p);
	return ended(p) ? -ECONNABORTED : 0;
}

/* Of round @round; somebody else may have begun another one since. */
static bool is_done(const struct swc_parted *p, u32 partition, u32 round)
{
	u32 i = array_index_nospec(partition, p->n);

	/* Pairs with the decrement in count_out(). */
	if (!atomic_read_acquire(&p->left) || READ_ONCE(p->round) != round)
		return true;
	/* And this with its release. */
	return partition != SWC_ALL_PARTITIONS && smp_load_acquire(&p->done[i]) == round;
}

/**
 * swc_parted_wait() - sleep until a partition, or all, are done
 *
 * Return: 0 or the round's first error; -ETIME; -EINVAL if there was no round; -ERESTARTSYS.
 */
int swc_parted_wait(struct swc_parted *p, u32 partition, u32 timeout_ms)
{
	struct swc_comm *comm = p->member->comm;
	long left = timeout_ms ? msecs_to_jiffies(timeout_ms) : MAX_SCHEDULE_TIMEOUT;
	u32 round = READ_ONCE(p->round);

	if (!round || (partition != SWC_ALL_PARTITIONS && partition >= p->n))
		return -EINVAL;
	left = wait_event_interruptible_timeout(comm->part_wq, is_done(p, partition, round) || ended(p),
						left);
	if (left <= 0)
		return left ?: -ETIME;
	if (ended(p)) {
		clean_up(p);
		/* What has begun ends by itself, and uses the caller's memory until then. */
		wait_event(comm->part_wq, is_done(p, partition, round));
	}
	return READ_ONCE(p->error);
}

/**
 * swc_parted_watch() - the same for somebody who does not sleep
 * @waiter: unhashed, with its reference
 *
 * When the communicator ends, look_work() gives up what has not begun, so that all waiters are told.
 *
 * Return: -EIOCBQUEUED: swc_uring_waited() will be called, unless swc_parted_unwatch() comes before;
 * otherwise as swc_parted_wait().
 */
int swc_parted_watch(struct swc_waiter *waiter, u32 partition)
{
	struct swc_parted *p = waiter->parted;
	bool all = partition == SWC_ALL_PARTITIONS;
	int ret = -EIOCBQUEUED;

	if (!p->round || (!all && partition >= p->n))
		return -EINVAL;
	spin_lock(&p->lock);
	if (is_done(p, partition, p->round)) {
		ret = READ_ONCE(p->error);
	} else {
		partition = all ? p->n : array_index_nospec(partition, p->n);
		hlist_add_head(&waiter->node, &p->waiters[partition]);
		p->nwaiters++;
	}
	spin_unlock(&p->lock);
	return ret;
}

/**
 * swc_parted_unwatch() - wait no longer
 *
 * Return: false if it was not waiting, or not any more: it is told by somebody else.
 */
bool swc_parted_unwatch(struct swc_waiter *waiter)
{
	bool waited = false;
	struct swc_parted *p;

	/* It may be told at this moment; its reference is put when @parted has been taken away. */
	rcu_read_lock();
	p = READ_ONCE(waiter->parted);
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
 * swc_parted_free() - give the handle back; -EBUSY while a round is not done
 */
int swc_parted_free(struct swc_ctx *ctx, u32 handle)
{
	struct swc_parted *p = swc_parted_get(ctx, handle);
	int ret = 0;

	if (!p)
		return -ENOENT;
	mutex_lock(&p->mutex);
	clean_up(p);
	/* What has begun when the communicator ended is over soon. */
	if (ended(p))
		wait_event(p->member->comm->part_wq, !atomic_read(&p->left));
	else if (!round_is_over(p))
		ret = -EBUSY;
	if (!ret && xa_cmpxchg(&ctx->parteds, handle, p, NULL, 0) == p)
		swc_parted_put(p);
	mutex_unlock(&p->mutex);
	swc_parted_put(p);
	return ret;
}

/* The context is going, and its communicators have ended. Nobody calls in any more. */
void swc_parteds_drop(struct swc_ctx *ctx)
{
	struct swc_parted *p;
	unsigned long handle;

	xa_for_each(&ctx->parteds, handle, p) {
		xa_erase(&ctx->parteds, handle);
		clean_up(p);
		swc_parted_put(p);
	}
}

/* The communicator has ended: those that wait and do not sleep need somebody to clean up. */
void swc_parteds_ended(struct swc_comm *comm)
{
	struct swc_parted *p, *held = NULL;

	spin_lock(&comm->lock);
	list_for_each_entry(p, &comm->parteds, node) {
		if (!kref_get_unless_zero(&p->ref))
			continue;
		/* It stays in the list while it is held; the last put takes the lock. */
		spin_unlock(&comm->lock);
		if (held)
			swc_parted_put(held);
		held = p;
		kref_get(&p->ref);
		look_later(p);
		spin_lock(&comm->lock);
	}
	spin_unlock(&comm->lock);
	if (held)
		swc_parted_put(held);
}
