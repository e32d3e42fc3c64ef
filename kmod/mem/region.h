/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_REGION_H
#define SWC_REGION_H

#include <linux/interval_tree.h>
#include <linux/kref.h>
#include <linux/mmu_notifier.h>
#include <linux/workqueue.h>

#include "swingcoll.h"

/* A stretch of physically contiguous memory, reached through the linear map. */
struct swc_extent {
	void *kaddr;
	u64 offset;		/* in the region */
};

/**
 * struct swc_region - memory that steps may touch
 *
 * Made by swc_region_pin(), swc_region_get() or swc_region_scratch(). Each operation that uses it holds
 * a reference; so does the handle table (explicit registration) or the cache. The last put may come from
 * any process context; unpinning then happens on swc_wq.
 *
 * @ref: references
 * @ctx: owner; outlives the region (swc_region_drain())
 * @mm: address space charged for the pages, pinned by mmgrab()
 * @addr: user address of the first byte; 0 for scratch memory
 * @bytes: length
 * @npages: pages pinned and charged, or allocated
 * @nextents: entries of @extents; one more closes the table (offset == bytes)
 * @capacity: entries that @extents has room for
 * @extents: ordered by offset
 * @notifier: keeps a cached region true; inserted before the pages are pinned
 * @node: in ctx->cache; guarded by ctx->lock
 * @lru: in ctx->cache_lru; guarded by ctx->lock
 * @scratch: the pages are the kernel's own; set for the region's life
 * @cached: in the cache; guarded by ctx->lock
 * @watched: @notifier is in place
 * @free_work: unpins
 */
struct swc_region {
	struct kref ref;
	struct swc_ctx *ctx;
	struct mm_struct *mm;
	u64 addr;
	u64 bytes;
	u64 npages;
	u32 nextents;
	u32 capacity;
	struct swc_extent *extents;
	struct mmu_interval_notifier notifier;
	struct interval_tree_node node;
	struct list_head lru;
	bool scratch;
	bool cached;
	bool watched;
	struct work_struct free_work;
};

/* The last extent that starts at or before @offset. */
static inline const struct swc_extent *swc_region_find(const struct swc_region *region, u64 offset)
{
	u32 lo = 0, hi = region->nextents - 1;

	while (lo < hi) {
		u32 mid = lo + (hi - lo + 1) / 2;

		if (region->extents[mid].offset <= offset)
			lo = mid;
		else
			hi = mid - 1;
	}
	return &region->extents[lo];
}

int swc_charge_pages(struct mm_struct *mm, u64 npages);
void swc_uncharge_pages(struct mm_struct *mm, u64 npages);
struct swc_region *swc_region_pin(struct swc_ctx *ctx, u64 addr, u64 bytes);
struct swc_region *swc_region_get(struct swc_ctx *ctx, u64 addr, u64 bytes);
struct swc_region *swc_region_scratch(struct swc_ctx *ctx, u64 bytes);
void swc_region_put(struct swc_region *region);
int swc_region_add_handle(struct swc_ctx *ctx, u64 addr, u64 bytes, u32 *handle);
int swc_region_drop_handle(struct swc_ctx *ctx, u32 handle);
struct swc_region *swc_region_by_handle(struct swc_ctx *ctx, u32 handle);
void swc_region_drain(struct swc_ctx *ctx);

#endif /* SWC_REGION_H */
