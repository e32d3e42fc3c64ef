/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_REGION_H
#define SWC_REGION_H

#include <linux/interval_tree.h>
#include <linux/kref.h>
#include <linux/mmu_notifier.h>
#include <linux/workqueue.h>

#include "mem/extents.h"
#include "swingcoll.h"

/**
 * struct swc_region - memory that operations read and write
 *
 * References: each operation that uses it, and the handle table or the cache. The last put may come from
 * any context that must not sleep; the pages are unpinned in a work item on swc_free_wq.
 *
 * @ref: references
 * @ctx: owner; outlives the region (swc_region_drain())
 * @mm: address space charged for the pages, pinned by mmgrab()
 * @addr: user address of the first byte; 0 for scratch memory
 * @bytes: length
 * @npages: pages charged
 * @charged: bytes of kernel memory charged to ctx->account: the table, and the pages of scratch memory
 * @extents: the memory; of scratch memory, whole pages
 * @capacity: entries that its table has room for
 * @scratch: the pages are the kernel's own
 * @free_work: unpins
 * @to_free: in ctx->to_free; ctx->freeing_lock
 * @notifier: watches the addresses of a cached region; region_cache.c
 * @node: in cache->tree; cache->lock
 * @lru: in cache->lru; cache->lock
 * @cached: in the cache; cache->lock
 * @watched: @notifier is in place
 */
struct swc_region {
	struct kref ref;
	struct swc_ctx *ctx;
	struct mm_struct *mm;
	u64 addr;
	u64 bytes;
	u64 npages;
	u64 charged;
	struct swc_extents extents;
	u32 capacity;
	bool scratch;
	struct work_struct free_work;
	struct list_head to_free;
	struct mmu_interval_notifier notifier;
	struct interval_tree_node node;
	struct list_head lru;
	bool cached;
	bool watched;
};

void swc_region_ctx_init(struct swc_ctx *ctx);
struct swc_region *swc_region_get(struct swc_ctx *ctx, u64 addr, u64 bytes);
struct swc_region *swc_region_scratch(struct swc_ctx *ctx, u64 bytes);
void swc_region_put(struct swc_region *region);
int swc_region_add_handle(struct swc_ctx *ctx, u64 addr, u64 bytes, u32 *handle);
int swc_region_drop_handle(struct swc_ctx *ctx, u32 handle);
struct swc_region *swc_region_by_handle(struct swc_ctx *ctx, u32 handle);
void swc_region_drop_all(struct swc_ctx *ctx);
void swc_region_drain(struct swc_ctx *ctx);
int swc_region_charge_memory(struct swc_ctx *ctx, struct swc_account *account, u64 bytes);

#endif /* SWC_REGION_H */
