/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_CTX_H
#define SWC_CTX_H

#include <linux/mmu_notifier.h>
#include <linux/xarray.h>

#include "mem/account.h"
#include "mem/drain.h"
#include "mem/region_cache.h"
#include "swingcoll.h"

/**
 * struct swc_ctx - one open of /dev/swingcoll, bound to the address space that opened it
 *
 * Lives from open to the last release of the file. Release waits until no request and no region of the
 * context is left, so neither needs a reference to it.
 *
 * @mm: the address space; calls from any other one are refused (-EPERM)
 * @account: of the user that opened it
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
 * @live_reqs: requests that have not been freed
 * @ring: completion ring
 */
struct swc_ctx {
	struct mm_struct *mm;
	struct swc_account *account;
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
	atomic_t live_reqs;
	struct swc_ring *ring;
};

#endif /* SWC_CTX_H */
