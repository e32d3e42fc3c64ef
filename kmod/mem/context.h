/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_CTX_H
#define SWC_CTX_H

#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "swingcoll.h"

struct file;
struct io_uring_cmd;

/**
 * struct swc_ctx - one open of /dev/swingcoll, bound to the address space that opened it
 *
 * Lives from open to the last release of the file. Release waits until no operation and no region of the
 * context is left, so neither needs a reference to it.
 *
 * @mm: the address space; every call from another one is refused (-EPERM)
 * @notifier: tells when @mm goes away: exec or exit of its last thread
 * @members: communicator handle -> struct swc_member
 * @regions: region handle -> struct swc_region (explicit registrations)
 * @nregions: handles given out
 * @parteds: handle -> struct swc_parted
 * @lock: guards @cache, @cache_lru, @ncached and the same fields of the regions in it
 * @cache: implicit registrations by user address
 * @cache_lru: the same, least recently used first
 * @ncached: entries in it
 * @live_regions: regions not freed yet, of any kind
 * @live_parts: parts of operations not freed yet
 * @drain_wq: woken when one of the two drops to zero
 * @ring: completion ring
 */
struct swc_ctx {
	struct mm_struct *mm;
	struct mmu_notifier notifier;
	struct xarray members;
	struct xarray regions;
	atomic_t nregions;
	struct xarray parteds;

	spinlock_t lock;
	struct rb_root_cached cache;
	struct list_head cache_lru;
	unsigned int ncached;

	atomic_t live_regions;
	atomic_t live_parts;
	wait_queue_head_t drain_wq;

	struct swc_ring *ring;
};

/*
 * The waiter may free the context as soon as it sees zero, so the count drops under the queue's lock and
 * the waiter passes through that lock once more before it goes on.
 */
static inline void swc_ctx_dec_live(struct swc_ctx *ctx, atomic_t *count)
{
	unsigned long flags;

	spin_lock_irqsave(&ctx->drain_wq.lock, flags);
	if (atomic_dec_and_test(count))
		wake_up_locked(&ctx->drain_wq);
	spin_unlock_irqrestore(&ctx->drain_wq.lock, flags);
}

static inline void swc_ctx_wait_idle(struct swc_ctx *ctx, atomic_t *count)
{
	wait_event(ctx->drain_wq, !atomic_read(count));
	spin_lock_irq(&ctx->drain_wq.lock);
	spin_unlock_irq(&ctx->drain_wq.lock);
}

/* ioctl.c, uring.c: entry points; chrdev.c puts them into the file operations. */
long swc_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
int swc_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);

#endif /* SWC_CTX_H */
