/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_REGION_CACHE_H
#define SWC_REGION_CACHE_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct swc_region;

/**
 * struct swc_region_cache - regions of one context that can be used again
 * @lock: guards the fields below, and @node, @lru and @cached of the regions; a leaf, taken by mmu notifiers
 * @tree: regions by user address
 * @lru: least recently used first
 * @n: entries
 * @drop: takes over the cache's reference to a region that has left; must not sleep
 */
struct swc_region_cache {
	spinlock_t lock;
	struct rb_root_cached tree;
	struct list_head lru;
	unsigned int n;
	void (*drop)(struct swc_region *region);
};

void swc_region_cache_init(struct swc_region_cache *cache, void (*drop)(struct swc_region *region));
struct swc_region *swc_region_cache_find(struct swc_region_cache *cache, u64 addr, u64 bytes);
int swc_region_cache_watch(struct swc_region *region);
void swc_region_cache_unwatch(struct swc_region *region);
bool swc_region_cache_insert(struct swc_region_cache *cache, struct swc_region *region, unsigned long seq);
void swc_region_cache_shrink(struct swc_region_cache *cache, unsigned int keep);

#endif /* SWC_REGION_CACHE_H */
