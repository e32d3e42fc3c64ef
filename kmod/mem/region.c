// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions: pinned user memory, explicit or cached, and scratch memory, as extents of contiguous pages.
 *
 * Pages are always pinned for writing and for long, so that the pages an operation uses stay the ones the
 * process sees. A cached region watches its address range with an interval notifier: any unmap or remap
 * takes it out of the cache, so that the next operation on that address pins anew. Operations in flight keep
 * the old pages, which is safe and harmless. Everything here runs in process context; the notifier only
 * takes ctx->lock.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "mem/context.h"
#include "region.h"
#include "trace.h"

#define PIN_BATCH	512
#define PIN_RETRIES	3
#define CACHE_MAX	256

/* Of one region: kvmalloc() warns about tables of 2 GiB and more. */
#define PAGES_MAX	(INT_MAX / sizeof(struct swc_extent))
#define EXTENTS_MIN	16

/* ------------------------------------------------------------------ accounting */

/**
 * swc_charge_pages() - count pages that are held for a process against its RLIMIT_MEMLOCK
 *
 * Counts like the RDMA core does, against the limit of the caller. To be undone by swc_uncharge_pages() with
 * the same mm.
 */
int swc_charge_pages(struct mm_struct *mm, u64 npages)
{
	u64 limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	u64 now = atomic64_add_return(npages, &mm->pinned_vm);

	if (now > limit && !capable(CAP_IPC_LOCK)) {
		swc_uncharge_pages(mm, npages);
		return -ENOMEM;
	}
	return 0;
}

void swc_uncharge_pages(struct mm_struct *mm, u64 npages)
{
	atomic64_sub(npages, &mm->pinned_vm);
}

/* ------------------------------------------------------------------ making and freeing */

static struct swc_region *region_alloc(struct swc_ctx *ctx, u64 addr, u64 bytes)
{
	struct swc_region *region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);

	if (!region)
		return NULL;
	region->capacity = EXTENTS_MIN;
	region->extents = kvmalloc_array(EXTENTS_MIN, sizeof(*region->extents), GFP_KERNEL_ACCOUNT);
	if (!region->extents) {
		kfree(region);
		return NULL;
	}
	kref_init(&region->ref);
	INIT_LIST_HEAD(&region->lru);
	region->ctx = ctx;
	region->addr = addr;
	region->bytes = bytes;
	atomic_inc(&ctx->live_regions);
	return region;
}

/* Bytes of extent @i counted from the page boundary, and thus its pages. */
static u64 extent_pages(const struct swc_region *region, u32 i)
{
	u64 bytes = region->extents[i + 1].offset - region->extents[i].offset;

	return (offset_in_page(region->extents[i].kaddr) + bytes + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

static void release_pages_of(struct swc_region *region)
{
	u32 i;

	for (i = 0; i < region->nextents; i++) {
		struct page *page = virt_to_page(region->extents[i].kaddr);
		u64 n = extent_pages(region, i);

		if (region->scratch)
			__free_pages(page, get_order(n << PAGE_SHIFT));
		else
			unpin_user_page_range_dirty_lock(page, n, true);
		cond_resched();
	}
}

static void region_free(struct work_struct *work)
{
	struct swc_region *region = container_of(work, struct swc_region, free_work);
	struct swc_ctx *ctx = region->ctx;

	/* Waits for a notifier call in progress; after that nobody else knows the region. */
	if (region->watched)
		mmu_interval_notifier_remove(&region->notifier);
	release_pages_of(region);
	swc_uncharge_pages(region->mm, region->npages);
	mmdrop(region->mm);
	if (!region->scratch) {
		swc_stat_inc(SWC_STAT_REGIONS_UNPINNED);
		swc_stat_add(SWC_STAT_PAGES_UNPINNED, region->npages);
	}
	kvfree(region->extents);
	kfree(region);
	swc_ctx_dec_live(ctx, &ctx->live_regions);
}

static void region_release(struct kref *ref)
{
	struct swc_region *region = container_of(ref, struct swc_region, ref);

	/* The notifier may not be removed from its own callback, and unpinning takes time. */
	INIT_WORK(&region->free_work, region_free);
	queue_work(swc_wq, &region->free_work);
}

void swc_region_put(struct swc_region *region)
{
	if (region)
		kref_put(&region->ref, region_release);
}

/* The table grows with what is really there: the length of a buffer is only what a user says. */
static int append_extent(struct swc_region *region, void *kaddr, u64 offset)
{
	/* One entry is kept for the end. */
	if (region->nextents + 1 == region->capacity) {
		u32 capacity = min_t(u64, 2ull * region->capacity, PAGES_MAX);
		struct swc_extent *more = kvmalloc_array(capacity, sizeof(*more), GFP_KERNEL_ACCOUNT);

		if (!more)
			return -ENOMEM;
		memcpy(more, region->extents, region->nextents * sizeof(*more));
		kvfree(region->extents);
		region->extents = more;
		region->capacity = capacity;
	}
	region->extents[region->nextents].kaddr = kaddr;
	region->extents[region->nextents].offset = offset;
	region->nextents++;
	return 0;
}

/* Append one page, merging it with the last extent if it lies behind it. */
static int add_page(struct swc_region *region, void *kaddr, u64 offset)
{
	struct swc_extent *last = region->nextents ? &region->extents[region->nextents - 1] : NULL;

	if (last && last->kaddr + (offset - last->offset) == kaddr)
		return 0;
	return append_extent(region, kaddr, offset);
}

static void close_extents(struct swc_region *region, u64 bytes)
{
	region->extents[region->nextents].kaddr = NULL;
	region->extents[region->nextents].offset = bytes;
}

/* Pin the pages of [addr, addr + bytes) into the region's extent table. */
static int pin_pages(struct swc_region *region)
{
	u64 start = region->addr & PAGE_MASK, done = 0;
	struct page **pages = kmalloc_array(PIN_BATCH, sizeof(*pages), GFP_KERNEL);
	int ret = 0;

	if (!pages)
		return -ENOMEM;
	while (done < region->npages) {
		int want = min_t(u64, region->npages - done, PIN_BATCH), got, i;

		got = pin_user_pages_fast(start + (done << PAGE_SHIFT), want,
					  FOLL_WRITE | FOLL_LONGTERM, pages);
		if (got <= 0) {
			ret = got ? got : -EFAULT;
			break;
		}
		for (i = 0; i < got; i++, done++) {
			u64 head = done ? 0 : offset_in_page(region->addr);
			u64 at = done ? (done << PAGE_SHIFT) - offset_in_page(region->addr) : 0;

			ret = add_page(region, page_address(pages[i]) + head, at);
			if (ret)
				break;
		}
		if (ret) {
			unpin_user_pages(pages + i, got - i);
			break;
		}
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		cond_resched();
	}
	kfree(pages);

	/* Close the table after what was really pinned, so that release is right in any case. */
	close_extents(region, done == region->npages ? region->bytes :
		      done ? (done << PAGE_SHIFT) - offset_in_page(region->addr) : 0);
	return ret;
}

static void unpin_all(struct swc_region *region)
{
	release_pages_of(region);
	region->nextents = 0;
	close_extents(region, 0);
}

/* ------------------------------------------------------------------ cache */

static void cache_unlink(struct swc_ctx *ctx, struct swc_region *region)
{
	lockdep_assert_held(&ctx->lock);
	interval_tree_remove(&region->node, &ctx->cache);
	list_del_init(&region->lru);
	region->cached = false;
	ctx->ncached--;
}

static bool region_invalidate(struct mmu_interval_notifier *notifier,
			      const struct mmu_notifier_range *range, unsigned long seq)
{
	struct swc_region *region = container_of(notifier, struct swc_region, notifier);
	struct swc_ctx *ctx = region->ctx;
	bool drop;

	/*
	 * Fork's write protection and soft-dirty tracking leave pinned exclusive pages where they are;
	 * anything else may put other pages, or none, at these addresses.
	 */
	if (range->event == MMU_NOTIFY_PROTECTION_PAGE || range->event == MMU_NOTIFY_SOFT_DIRTY)
		return true;

	spin_lock(&ctx->lock);
	mmu_interval_set_seq(notifier, seq);
	drop = region->cached;
	if (drop)
		cache_unlink(ctx, region);
	spin_unlock(&ctx->lock);
	if (drop) {
		swc_stat_inc(SWC_STAT_CACHE_DROPS);
		swc_region_put(region);
	}
	return true;
}

static const struct mmu_interval_notifier_ops region_notifier_ops = {
	.invalidate = region_invalidate,
};

static struct swc_region *cache_find(struct swc_ctx *ctx, u64 addr, u64 bytes)
{
	struct interval_tree_node *node;
	struct swc_region *region, *found = NULL;

	spin_lock(&ctx->lock);
	for (node = interval_tree_iter_first(&ctx->cache, addr, addr + bytes - 1); node;
	     node = interval_tree_iter_next(node, addr, addr + bytes - 1)) {
		region = container_of(node, struct swc_region, node);
		/* One whose last reference is going is on its way out of the tree. */
		if (node->start <= addr && node->last >= addr + bytes - 1 &&
		    kref_get_unless_zero(&region->ref)) {
			list_move_tail(&region->lru, &ctx->cache_lru);
			found = region;
			break;
		}
	}
	spin_unlock(&ctx->lock);
	return found;
}

/* Drop the least recently used entries until at most @keep are left; true if any was idle. */
static bool cache_shrink(struct swc_ctx *ctx, unsigned int keep)
{
	struct swc_region *region;
	bool any = false;

	for (;;) {
		spin_lock(&ctx->lock);
		region = NULL;
		if (ctx->ncached > keep) {
			region = list_first_entry(&ctx->cache_lru, struct swc_region, lru);
			cache_unlink(ctx, region);
		}
		spin_unlock(&ctx->lock);
		if (!region)
			return any;
		any = true;
		swc_stat_inc(SWC_STAT_CACHE_DROPS);
		swc_region_put(region);
	}
}

/* ------------------------------------------------------------------ registering */

/* Charge pages to the owner; near the limit, first take back what is held without need. */
static int charge(struct swc_ctx *ctx, u64 npages)
{
	int ret = swc_charge_pages(ctx->mm, npages);

	if (!ret)
		return 0;
	cache_shrink(ctx, 0);
	/* What the cache held, and what operations have let go, comes back once the work items have run. */
	flush_workqueue(swc_wq);
	return swc_charge_pages(ctx->mm, npages);
}

static struct swc_region *region_make(struct swc_ctx *ctx, u64 addr, u64 bytes)
{
	u64 end, npages;
	struct swc_region *region;
	int ret;

	if (!bytes || check_add_overflow(addr, bytes, &end) || end > TASK_SIZE_MAX)
		return ERR_PTR(-EFAULT);
	npages = (PAGE_ALIGN(end) - (addr & PAGE_MASK)) >> PAGE_SHIFT;
	if (npages >= PAGES_MAX)
		return ERR_PTR(-EFBIG);

	ret = charge(ctx, npages);
	if (ret)
		return ERR_PTR(ret);

	region = region_alloc(ctx, addr, bytes);
	if (!region) {
		swc_uncharge_pages(ctx->mm, npages);
		return ERR_PTR(-ENOMEM);
	}
	region->mm = ctx->mm;
	mmgrab(region->mm);
	region->npages = npages;
	close_extents(region, 0);
	swc_stat_inc(SWC_STAT_REGIONS_PINNED);
	swc_stat_add(SWC_STAT_PAGES_PINNED, npages);
	return region;
}

/**
 * swc_region_pin() - pin user memory, to be used until the caller puts it
 *
 * Call from the process that owns @ctx, with no lock held.
 */
struct swc_region *swc_region_pin(struct swc_ctx *ctx, u64 addr, u64 bytes)
{
	struct swc_region *region = region_make(ctx, addr, bytes);
	int ret;

	if (IS_ERR(region))
		return region;
	ret = pin_pages(region);
	if (ret) {
		swc_region_put(region);
		return ERR_PTR(ret);
	}
	trace_swc_region_pin(region->addr, region->bytes, region->npages, region->nextents);
	return region;
}

/**
 * swc_region_get() - the region of a buffer named by address, from the cache if it is there
 *
 * The reference is the caller's. A region that is invalidated while it is being pinned is pinned again; if
 * that goes on, it is used for this once and not cached.
 */
struct swc_region *swc_region_get(struct swc_ctx *ctx, u64 addr, u64 bytes)
{
	struct swc_region *region;
	unsigned long seq;
	int ret, tries;

	if (bytes && addr + bytes > addr) {
		region = cache_find(ctx, addr, bytes);
		if (region) {
			swc_stat_inc(SWC_STAT_CACHE_HITS);
			return region;
		}
	}
	swc_stat_inc(SWC_STAT_CACHE_MISSES);

	region = region_make(ctx, addr, bytes);
	if (IS_ERR(region))
		return region;
	ret = mmu_interval_notifier_insert(&region->notifier, ctx->mm, addr & PAGE_MASK,
					   region->npages << PAGE_SHIFT, &region_notifier_ops);
	if (ret)
		goto err;
	region->watched = true;

	for (tries = 0; tries < PIN_RETRIES; tries++) {
		seq = mmu_interval_read_begin(&region->notifier);
		ret = pin_pages(region);
		if (ret)
			goto err;
		spin_lock(&ctx->lock);
		if (!mmu_interval_read_retry(&region->notifier, seq)) {
			region->node.start = addr;
			region->node.last = addr + bytes - 1;
			interval_tree_insert(&region->node, &ctx->cache);
			list_add_tail(&region->lru, &ctx->cache_lru);
			region->cached = true;
			ctx->ncached++;
			kref_get(&region->ref);
			spin_unlock(&ctx->lock);
			trace_swc_region_pin(region->addr, region->bytes, region->npages,
					     region->nextents);
			cache_shrink(ctx, CACHE_MAX);
			return region;
		}
		spin_unlock(&ctx->lock);
		unpin_all(region);
	}
	ret = pin_pages(region);
	if (!ret)
		return region;
err:
	swc_region_put(region);
	return ERR_PTR(ret);
}

/**
 * swc_region_scratch() - kernel memory for a plan's SCRATCH buffer
 *
 * In pages with linear addresses, like user memory, because some transports need that. Not zeroed beyond
 * what the page allocator does by itself: a plan can move scratch bytes into user buffers.
 */
struct swc_region *swc_region_scratch(struct swc_ctx *ctx, u64 bytes)
{
	u64 npages = (bytes + PAGE_SIZE - 1) >> PAGE_SHIFT, done = 0;
	struct swc_region *region;
	unsigned int order;
	int ret;

	if (npages >= PAGES_MAX)
		return ERR_PTR(-EFBIG);
	if (npages > totalram_pages() / 2)
		return ERR_PTR(-ENOMEM);
	ret = charge(ctx, npages);
	if (ret)
		return ERR_PTR(ret);
	region = region_alloc(ctx, 0, bytes);
	if (!region) {
		swc_uncharge_pages(ctx->mm, npages);
		return ERR_PTR(-ENOMEM);
	}
	region->mm = ctx->mm;
	mmgrab(region->mm);
	region->scratch = true;
	region->npages = npages;
	close_extents(region, 0);

	while (done < npages) {
		struct page *page = NULL;

		order = min_t(u64, ilog2(npages - done), 9);
		for (;; order--) {
			gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;

			/* Who asks for too much is refused; nobody is killed for it. */
			gfp |= order ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL;
			page = alloc_pages(gfp, order);
			if (page || !order)
				break;
		}
		ret = !page ? -ENOMEM : fatal_signal_pending(current) ? -EINTR : 0;
		/* Never merged: each extent is freed as it was allocated. */
		if (!ret)
			ret = append_extent(region, page_address(page), done << PAGE_SHIFT);
		if (ret) {
			if (page)
				__free_pages(page, order);
			close_extents(region, done << PAGE_SHIFT);
			swc_region_put(region);
			return ERR_PTR(ret);
		}
		done += 1ull << order;
		cond_resched();
	}
	/* To the page, so that release sees whole allocations. */
	close_extents(region, done << PAGE_SHIFT);
	return region;
}

/* ------------------------------------------------------------------ handles */

int swc_region_add_handle(struct swc_ctx *ctx, u64 addr, u64 bytes, u32 *handle)
{
	struct swc_region *region;
	int ret;

	if (atomic_inc_return(&ctx->nregions) > swc_max_regions) {
		ret = -ENOSPC;
		goto err_count;
	}
	region = swc_region_pin(ctx, addr, bytes);
	if (IS_ERR(region)) {
		ret = PTR_ERR(region);
		goto err_count;
	}
	ret = xa_alloc(&ctx->regions, handle, region, xa_limit_31b, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto err_put;
	return 0;

err_put:
	swc_region_put(region);
err_count:
	atomic_dec(&ctx->nregions);
	return ret;
}

int swc_region_drop_handle(struct swc_ctx *ctx, u32 handle)
{
	struct swc_region *region = xa_erase(&ctx->regions, handle);

	if (!region)
		return -ENOENT;
	atomic_dec(&ctx->nregions);
	swc_region_put(region);
	return 0;
}

struct swc_region *swc_region_by_handle(struct swc_ctx *ctx, u32 handle)
{
	struct swc_region *region;

	/* The table's reference keeps the region alive while the table is locked. */
	xa_lock(&ctx->regions);
	region = xa_load(&ctx->regions, handle);
	if (region)
		kref_get(&region->ref);
	xa_unlock(&ctx->regions);
	return region;
}

/* Let go of everything and wait until it is gone. The caller has seen to it that nothing new comes. */
void swc_region_drain(struct swc_ctx *ctx)
{
	struct swc_region *region;
	unsigned long handle;

	xa_for_each(&ctx->regions, handle, region)
		swc_region_drop_handle(ctx, handle);
	cache_shrink(ctx, 0);
	swc_ctx_wait_idle(ctx, &ctx->live_regions);
}
