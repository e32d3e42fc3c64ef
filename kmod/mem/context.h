/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_CONTEXT_H
#define SWC_CONTEXT_H

#include <linux/completion.h>
#include <linux/mmu_notifier.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "mem/account.h"
#include "mem/drain.h"
#include "mem/region_cache.h"
#include "swingcoll.h"

/**
 * struct swc_ctx - one open of /dev/swingcoll, bound to the process that opened it
 *
 * The file can outlive the process: children, and whoever gets a descriptor, hold it too. So the context ends
 * with its process, or when that has closed it (swc_ctx_set_ended()), and no call begins any more. When the
 * last user has gone, @clean_work frees all that the context owns. What is left until the last release of the
 * file are this struct and an empty ring, which count as an open file of the user.
 *
 * Users are calls in progress, requests, and the context itself until it ends. Release waits for them and for
 * all regions, so that neither needs a reference to the file.
 *
 * @mm: the address space; calls from any other one are refused (-EPERM). Only to be compared after the end.
 * @account: of the user that opened it
 * @owner: the process (thread group) that opened it, likewise
 * @owner_wait: in the queue of @owner that is woken when the process exits
 * @owner_work: ends the context if the process has exited
 * @notifier: called when @mm goes away, by exec or exit of its last thread
 * @members: communicator handle -> struct swc_member
 * @regions: region handle -> struct swc_region (explicit registrations)
 * @nregions: entries in @regions
 * @partitioned_ops: handle -> struct swc_partitioned
 * @cache: regions registered by address
 * @live_regions: regions that have not been freed, of any kind; see mem/drain.h
 * @freeing: of them, those without references
 * @freeing_lock: guards the next one
 * @to_free: of @freeing, those that no context has begun to free
 * @ended: no call may begin; never cleared
 * @users: see above
 * @idle: there are no users, and @clean_work has been queued
 * @clean_work: runs once
 * @ring: completion ring
 */
struct swc_ctx {
	struct mm_struct *mm;
	struct swc_account *account;
	struct pid *owner;
	struct wait_queue_entry owner_wait;
	struct work_struct owner_work;
	struct mmu_notifier notifier;
	struct xarray members;
	struct xarray regions;
	atomic_t nregions;
	struct xarray partitioned_ops;
	struct swc_region_cache cache;
	atomic_t live_regions;
	atomic_t freeing;
	spinlock_t freeing_lock;
	struct list_head to_free;
	int ended;
	atomic_t users;
	struct completion idle;
	struct work_struct clean_work;
	struct swc_ring *ring;
};

void swc_ctx_init(struct swc_ctx *ctx, work_func_t clean);
int swc_ctx_enter(struct swc_ctx *ctx);
void swc_ctx_put(struct swc_ctx *ctx);
bool swc_ctx_set_ended(struct swc_ctx *ctx);

/* A user keeps the context, so the caller must be one. */
static inline void swc_ctx_get(struct swc_ctx *ctx)
{
	atomic_inc(&ctx->users);
}

/*
 * Has the context ended? A call in progress that has published an object with a full barrier either sees
 * this, or the one that ends the context sees the object.
 */
static inline bool swc_ctx_has_ended(const struct swc_ctx *ctx)
{
	return READ_ONCE(ctx->ended);
}

#endif /* SWC_CONTEXT_H */
