// SPDX-License-Identifier: GPL-2.0-only
/*
 * The region cache of a context: pinned buffers by user address, least recently used first to go.
 *
 * An interval notifier watches the addresses of a cached region: any unmap or remap takes the region out of
 * the cache, so that the next operation on these addresses pins anew. Operations in flight keep the old
 * pages, which is safe and harmless. The notifier only takes cache->lock.
 */
#include <linux/interval_tree.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>

#include "mem/context.h"
#include "mem/region.h"
#include "mem/region_cache.h"

void swc_region_cache_init(struct swc_region_cache *cache, void (*drop)(struct swc_region *region))
{
	spin_lock_init(&cache->lock);
	cache->tree = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&cache->lru);
	cache->drop = drop;
}

static void unlink(struct swc_region_cache *cache, struct swc_region *region)
{
	lockdep_assert_held(&cache->lock);
	interval_tree_remove(&region->node, &cache->tree);
	list_del(&region->lru);
	region->cached = false;
	cache->n--;
}

static void drop(struct swc_region_cache *cache, struct swc_region *region)
{
	swc_stat_inc(SWC_STAT_CACHE_DROPS);
	cache->drop(region);
}

static bool invalidate(struct mmu_interval_notifier *notifier, const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct swc_region *region = container_of(notifier, struct swc_region, notifier);
	struct swc_region_cache *cache = &region->ctx->cache;
	bool cached;

	/*
	 * Fork's write protection and soft-dirty tracking leave pinned exclusive pages in place; any other
	 * event may put other pages, or none, at these addresses.
	 */
	if (range->event == MMU_NOTIFY_PROTECTION_PAGE || range->event == MMU_NOTIFY_SOFT_DIRTY)
		return true;

	spin_lock(&cache->lock);
	mmu_interval_set_seq(notifier, seq);
	cached = region->cached;
	if (cached)
		unlink(cache, region);
	spin_unlock(&cache->lock);
	if (cached)
		drop(cache, region);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

/**
 * swc_region_cache_watch() - watch the addresses of a region whose pages are going to be pinned
 *
 * The caller reads region->notifier's sequence before it pins, for swc_region_cache_insert().
 *
 * Return: 0, -ENOMEM, or -EINTR.
 */
int swc_region_cache_watch(struct swc_region *region)
{
	int ret = mmu_interval_notifier_insert(&region->notifier, region->mm, region->addr & PAGE_MASK,
					       region->npages << PAGE_SHIFT, &notifier_ops);

	region->watched = !ret;
	return ret;
}

/**
 * swc_region_cache_unwatch() - stop watching; nothing else refers to the region any more
 *
 * Waits for a notifier that is running. Not to be called by one.
 */
void swc_region_cache_unwatch(struct swc_region *region)
{
	if (region->watched)
		mmu_interval_notifier_remove(&region->notifier);
}

/**
 * swc_region_cache_find() - a cached region that covers [@addr, @addr + @bytes), with a reference, or NULL
 */
struct swc_region *swc_region_cache_find(struct swc_region_cache *cache, u64 addr, u64 bytes)
{
	struct swc_region *region, *found = NULL;
	struct interval_tree_node *node;
	u64 last = addr + bytes - 1;

	spin_lock(&cache->lock);
	for (node = interval_tree_iter_first(&cache->tree, addr, last); node;
	     node = interval_tree_iter_next(node, addr, last)) {
		region = container_of(node, struct swc_region, node);
		if (node->start <= addr && node->last >= last) {
			kref_get(&region->ref);
			list_move_tail(&region->lru, &cache->lru);
			found = region;
			break;
		}
	}
	spin_unlock(&cache->lock);
	return found;
}

/**
 * swc_region_cache_insert() - put a region into the cache, which takes a reference
 * @seq: the notifier's sequence before the pages were pinned
 *
 * Return: false if the addresses have been invalidated since.
 */
bool swc_region_cache_insert(struct swc_region_cache *cache, struct swc_region *region, unsigned long seq)
{
	bool valid;

	spin_lock(&cache->lock);
	valid = !mmu_interval_read_retry(&region->notifier, seq);
	if (valid) {
		region->node.start = region->addr;
		region->node.last = region->addr + region->bytes - 1;
		interval_tree_insert(&region->node, &cache->tree);
		list_add_tail(&region->lru, &cache->lru);
		region->cached = true;
		cache->n++;
		kref_get(&region->ref);
	}
	spin_unlock(&cache->lock);
	return valid;
}

/**
 * swc_region_cache_shrink() - drop the least recently used regions until at most @keep are left
 */
void swc_region_cache_shrink(struct swc_region_cache *cache, unsigned int keep)
{
	struct swc_region *region;

	do {
		spin_lock(&cache->lock);
		region = NULL;
		if (cache->n > keep) {
			region = list_first_entry(&cache->lru, struct swc_region, lru);
			unlink(cache, region);
		}
		spin_unlock(&cache->lock);
		if (region)
			drop(cache, region);
	} while (region);
}
