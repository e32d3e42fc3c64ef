// SPDX-License-Identifier: GPL-2.0-only
/*
 * The completion ring of a context: written by the kernel only, read by the process from its own mapping.
 *
 * The tail that counts lives in kernel memory and is only published in the shared header; the consumer's
 * head is read once, and believed only within bounds. An operation reserves its entry when it is submitted,
 * so posting never fails and never waits. ring->lock orders producers; it is a leaf.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "ring.h"

struct swc_ring {
	spinlock_t lock;
	u32 tail;		/* entries posted; under @lock */
	u32 reserved;		/* entries promised and not posted; under @lock */
	u32 entries;
	wait_queue_head_t wq;
	struct swc_ring_header *shared;	/* followed by the entries */
	struct swc_ring_user *user;
};

struct swc_ring *swc_ring_create(unsigned int entries)
{
	struct swc_ring *ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);

	if (!ring)
		return NULL;
	spin_lock_init(&ring->lock);
	init_waitqueue_head(&ring->wq);
	ring->entries = entries;
	ring->shared = vmalloc_user(PAGE_ALIGN(SWC_RING_ENTRIES_OFFSET +
					       entries * sizeof(struct swc_completion)));
	ring->user = vmalloc_user(PAGE_SIZE);
	if (!ring->shared || !ring->user) {
		swc_ring_destroy(ring);
		return NULL;
	}
	ring->shared->entries = entries;
	return ring;
}

void swc_ring_destroy(struct swc_ring *ring)
{
	vfree(ring->shared);
	vfree(ring->user);
	kfree(ring);
}

/* Entries the consumer has not taken. A head out of bounds counts as a full ring: it only hurts its owner. */
static u32 ring_used(struct swc_ring *ring)
{
	/* Pairs with the consumer's release store: its reads of the entries are done. */
	u32 used = ring->tail - smp_load_acquire(&ring->user->head);

	return min(used, ring->entries);
}

/* Promise one entry to an operation; -EBUSY if the ring has no room for it. */
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

void swc_ring_post(struct swc_ring *ring, const struct swc_completion *entry)
{
	struct swc_completion *slot;

	spin_lock(&ring->lock);
	slot = (void *)ring->shared + SWC_RING_ENTRIES_OFFSET +
	       (ring->tail & (ring->entries - 1)) * sizeof(*slot);
	*slot = *entry;
	ring->reserved--;
	/* Pairs with the consumer's acquire load of the tail. */
	smp_store_release(&ring->shared->tail, ++ring->tail);
	spin_unlock(&ring->lock);
	wake_up_all(&ring->wq);
}

/* Sleep until the tail moves away from @tail; -ETIME, or -ERESTARTSYS on a signal. */
int swc_ring_wait(struct swc_ring *ring, u32 tail, u32 timeout_ms)
{
	long left;

	if (!timeout_ms)
		return wait_event_interruptible(ring->wq, READ_ONCE(ring->tail) != tail);
	left = wait_event_interruptible_timeout(ring->wq, READ_ONCE(ring->tail) != tail,
						msecs_to_jiffies(timeout_ms));
	return left > 0 ? 0 : left ? left : -ETIME;
}

__poll_t swc_ring_poll(struct swc_ring *ring, struct file *file, poll_table *wait)
{
	__poll_t mask;

	poll_wait(file, &ring->wq, wait);
	spin_lock(&ring->lock);
	mask = ring_used(ring) ? EPOLLIN | EPOLLRDNORM : 0;
	spin_unlock(&ring->lock);
	return mask;
}

int swc_ring_mmap(struct swc_ring *ring, struct vm_area_struct *vma, bool user_side)
{
	if (user_side)
		return remap_vmalloc_range(vma, ring->user, 0);
	if (vma->vm_flags & VM_WRITE)
		return -EPERM;
	vm_flags_mod(vma, 0, VM_MAYWRITE);
	return remap_vmalloc_range(vma, ring->shared, 0);
}
