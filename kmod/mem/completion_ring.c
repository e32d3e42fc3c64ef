// SPDX-License-Identifier: GPL-2.0-only
/*
 * The completion ring of a context (struct swc_ring and swc_ring_*(), as in the uapi): written by the
 * kernel only, read by the process from its own mapping.
 *
 * The kernel's tail is in kernel memory and only published in the shared header; the consumer's head is
 * read once, and used only within bounds. A request reserves its entry when it is submitted, so posting
 * never fails and never waits. ring->lock orders producers; it is a leaf.
 */
#include <linux/err.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "mem/completion_ring.h"
#include "mem/shared.h"

struct swc_ring {
	spinlock_t lock;
	u32 tail;		/* entries posted; under @lock */
	u32 reserved;		/* entries reserved and not posted; under @lock */
	u32 entries;
	bool closed;		/* nobody needs entries any more */
	wait_queue_head_t wq;	/* pollers of the file stay in it until the file goes */
	/* NULL once the memory has been dropped; under @lock from @closed on. */
	struct swc_shared *kernel_side, *user_side;
	struct swc_ring_header *shared;	/* followed by the entries */
	struct swc_ring_user *user;
};

/* Its memory is charged to @account, if that is not NULL. Return: the ring, or an error pointer. */
struct swc_ring *swc_ring_create(unsigned int entries, struct swc_account *account)
{
	struct swc_ring *ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!ring)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&ring->lock);
	init_waitqueue_head(&ring->wq);
	ring->entries = entries;
	ring->kernel_side = swc_shared_alloc(SWC_RING_ENTRIES_OFFSET +
					     entries * sizeof(struct swc_completion), account, NULL);
	ret = PTR_ERR_OR_ZERO(ring->kernel_side);
	if (ret)
		goto err;
	ring->user_side = swc_shared_alloc(sizeof(*ring->user), account, NULL);
	ret = PTR_ERR_OR_ZERO(ring->user_side);
	if (ret)
		goto err_kernel_side;
	ring->shared = ring->kernel_side->mem;
	ring->shared->entries = entries;
	ring->user = ring->user_side->mem;
	return ring;

err_kernel_side:
	swc_shared_put(ring->kernel_side);
err:
	kfree(ring);
	return ERR_PTR(ret);
}

/* The context has ended: end all waits. Entries can still be posted. */
void swc_ring_close(struct swc_ring *ring)
{
	WRITE_ONCE(ring->closed, true);
	wake_up_all(&ring->wq);
}

/* Drop the memory of a closed ring; only polling may follow. */
void swc_ring_drop_memory(struct swc_ring *ring)
{
	struct swc_shared *kernel_side = ring->kernel_side, *user_side = ring->user_side;

	spin_lock(&ring->lock);
	ring->kernel_side = NULL;
	ring->user_side = NULL;
	ring->shared = NULL;
	ring->user = NULL;
	spin_unlock(&ring->lock);
	swc_shared_put(kernel_side);
	swc_shared_put(user_side);
}

void swc_ring_destroy(struct swc_ring *ring)
{
	swc_shared_put(ring->kernel_side);
	swc_shared_put(ring->user_side);
	kfree(ring);
}

/*
 * Entries that the consumer has not taken. A head out of bounds counts as a full ring: it only hurts its
 * owner.
 */
static u32 ring_used(struct swc_ring *ring)
{
	/* Pairs with the consumer's release store: it has read the entries. */
	u32 used = ring->tail - smp_load_acquire(&ring->user->head);

	return min(used, ring->entries);
}

/* Reserve an entry for a request. Return: 0, or -EBUSY if the ring is full. */
int swc_ring_reserve(struct swc_ring *ring)
{
	int ret = 0;

	spin_lock(&ring->lock);
	if (ring_used(ring) + ring->reserved >= ring->entries)
		ret = -EBUSY;
	else
		ring->reserved++;
	spin_unlock(&ring->lock);
	return ret;
}

void swc_ring_unreserve(struct swc_ring *ring)
{
	spin_lock(&ring->lock);
	ring->reserved--;
	spin_unlock(&ring->lock);
}

/* Post the entry of a request that has reserved one. */
void swc_ring_post(struct swc_ring *ring, const struct swc_completion *entry)
{
	struct swc_completion *to;

	spin_lock(&ring->lock);
	to = (void *)ring->shared + SWC_RING_ENTRIES_OFFSET +
	     (ring->tail & (ring->entries - 1)) * sizeof(*to);
	*to = *entry;
	ring->reserved--;
	/* Pairs with the consumer's acquire load of the tail. */
	smp_store_release(&ring->shared->tail, ++ring->tail);
	spin_unlock(&ring->lock);
	wake_up_all(&ring->wq);
}

/*
 * Sleep until the tail differs from @tail. Return: 0, -ETIME, -EBADF: closed; on a signal -ERESTARTSYS, or
 * -EINTR if there is a time-out, which would begin anew.
 */
int swc_ring_wait(struct swc_ring *ring, u32 tail, u32 timeout_ms)
{
	long left = timeout_ms ? msecs_to_jiffies(timeout_ms) : MAX_SCHEDULE_TIMEOUT;

	left = wait_event_interruptible_timeout(ring->wq, READ_ONCE(ring->tail) != tail ||
						READ_ONCE(ring->closed), left);
	if (left <= 0)
		return !left ? -ETIME : timeout_ms ? -EINTR : left;
	return READ_ONCE(ring->tail) != tail ? 0 : -EBADF;
}

__poll_t swc_ring_poll(struct swc_ring *ring, struct file *file, poll_table *wait)
{
	__poll_t mask;

	poll_wait(file, &ring->wq, wait);
	spin_lock(&ring->lock);
	if (READ_ONCE(ring->closed))
		mask = EPOLLERR | EPOLLHUP;
	else
		mask = ring_used(ring) ? EPOLLIN | EPOLLRDNORM : 0;
	spin_unlock(&ring->lock);
	return mask;
}

int swc_ring_mmap(struct swc_ring *ring, struct vm_area_struct *vma, bool user_side)
{
	if (user_side)
		return swc_shared_mmap(ring->user_side, vma);
	return swc_shared_mmap_ro(ring->kernel_side, vma);
}
