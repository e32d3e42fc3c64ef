// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions: pinned user memory, by handle or cached by address, and scratch memory; as extents of contiguous
 * pages.
 *
 * User pages are pinned for writing and for long (FOLL_LONGTERM), so that the pages of an operation stay
 * the ones that the process sees. Everything runs in process context, but for the last put.
 *
 * All pages count against RLIMIT_MEMLOCK. What is the kernel's own memory, tables of extents and scratch
 * memory, also counts in the account of the context's user.
 */
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "mem/context.h"
#include "mem/handle.h"
#include "mem/memlock.h"
#include "mem/region.h"

#define CREATE_TRACE_POINTS
#include "mem/trace.h"

#define PIN_BATCH	512
#define PIN_RETRIES	3
#define CACHE_MAX	256
#define SCRATCH_ORDER	9	/* of an allocation, at most */

/* Pages of one region: kvmalloc() warns about tables of 2 GiB and more. */
#define PAGES_MAX	(INT_MAX / sizeof(struct swc_extent))
#define EXTENTS_MIN	16

/* ------------------------------------------------------------------ extents */

static u64 table_bytes(u32 capacity)
{
	return array_size(capacity, sizeof(struct swc_extent));
}

/* Pages that an extent touches. */
static u64 extent_pages(const struct swc_extent *e)
{
	u64 bytes = e[1].offset - e->offset;

	return (offset_in_page(e->kaddr) + bytes + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

/* ------------------------------------------------------------------ freeing */

static void release_pages_of(struct swc_region *region)
{
	u32 i;

	for (i = 0; i < region->extents.nextents; i++) {
		const struct swc_extent *e = &region->extents.extent[i];
		struct page *page = virt_to_page(e->kaddr);
		u64 n = extent_pages(e);

		if (region->scratch)
			__free_pages(page, get_order(n << PAGE_SHIFT));
		else
			unpin_user_page_range_dirty_lock(page, n, true);
		cond_resched();
	}
}

/* @region has been taken out of ctx->to_free. */
static void region_free(struct swc_region *region)
{
	struct swc_ctx *ctx = region->ctx;

	swc_region_cache_unwatch(region);
	release_pages_of(region);
	swc_memlock_uncharge(region->mm, region->npages);
	mmdrop(region->mm);
	if (!region->scratch) {
		swc_stat_inc(SWC_STAT_REGIONS_UNPINNED);
		swc_stat_add(SWC_STAT_PAGES_UNPINNED, region->npages);
	}
	kvfree(region->extents.extent);
	swc_account_uncharge(ctx->account, SWC_QUOTA_MEMORY, region->charged);
	kfree(region);
	swc_drain_put(&ctx->freeing);
	swc_drain_put(&ctx->live_regions);
}

static void free_fn(struct work_struct *work)
{
	struct swc_region *region = container_of(work, struct swc_region, free_work);
	struct swc_ctx *ctx = region->ctx;

	spin_lock(&ctx->freeing_lock);
	list_del(&region->to_free);
	spin_unlock(&ctx->freeing_lock);
	region_free(region);
}

static void region_release(struct kref *ref)
{
	struct swc_region *region = container_of(ref, struct swc_region, ref);
	struct swc_ctx *ctx = region->ctx;

	INIT_WORK(&region->free_work, free_fn);
	atomic_inc(&ctx->freeing);
	spin_lock(&ctx->freeing_lock);
	list_add_tail(&region->to_free, &ctx->to_free);
	/* A notifier cannot be removed from its own callback, and unpinning takes time. */
	queue_work(swc_free_wq, &region->free_work);
	spin_unlock(&ctx->freeing_lock);
}

/* May be NULL. Does not sleep. */
void swc_region_put(struct swc_region *region)
{
	if (region)
		kref_put(&region->ref, region_release);
}

/* ------------------------------------------------------------------ charging */

/* Take a region that waits for its work item, which will not run then; NULL if there is none. */
static struct swc_region *take_to_free(struct swc_ctx *ctx)
{
	struct swc_region *region, *found = NULL;

	spin_lock(&ctx->freeing_lock);
	list_for_each_entry(region, &ctx->to_free, to_free) {
		/* Otherwise the work item has begun, and is going to take the lock. */
		if (cancel_work(&region->free_work)) {
			list_del(&region->to_free);
			found = region;
			break;
		}
	}
	spin_unlock(&ctx->freeing_lock);
	return found;
}

/*
 * Free the released regions of a context here: their work items may be queued behind those of other users.
 * The caller then waits only for what is being freed already.
 */
static void free_released(struct swc_ctx *ctx)
{
	struct swc_region *region;

	while ((region = take_to_free(ctx)))
		region_free(region);
}

/*
 * Release what a context holds without need, because it is at a limit: released regions are uncharged when
 * they are freed.
 *
 * Return: 0; -EINTR if the caller is being killed.
 */
static int release_unused(struct swc_ctx *ctx)
{
	swc_region_cache_shrink(&ctx->cache, 0);
	free_released(ctx);
	return swc_drain_wait_killable(&ctx->freeing) ? -EINTR : 0;
}

/* Charge pages to the owner of a context: 0; -ENOMEM; -EINTR if the caller is being killed. */
static int charge_pages(struct swc_ctx *ctx, u64 npages)
{
	int ret = swc_memlock_charge(ctx->mm, npages);

	if (!ret)
		return 0;
	return release_unused(ctx) ?: swc_memlock_charge(ctx->mm, npages);
}

/**
 * swc_region_charge_memory() - charge kernel memory for a call of a context
 * @ctx: the caller's; at the limit, its regions that no operation uses are released
 * @account: who is charged; swc_account_uncharge() undoes it
 *
 * May sleep. Return: 0; -EDQUOT; -EINTR if the caller is being killed.
 */
int swc_region_charge_memory(struct swc_ctx *ctx, struct swc_account *account, u64 bytes)
{
	if (swc_account_try_charge(account, SWC_QUOTA_MEMORY, bytes))
		return 0;
	return release_unused(ctx) ?: swc_account_charge(account, SWC_QUOTA_MEMORY, bytes);
}

/* ------------------------------------------------------------------ making */

/* A region without pages, all of it charged: @npages, and @own_bytes of kernel memory beside the table. */
static struct swc_region *region_alloc(struct swc_ctx *ctx, u64 addr, u64 bytes, u64 npages, u64 own_bytes)
{
	u64 charged = own_bytes + sizeof(struct swc_region) + table_bytes(EXTENTS_MIN);
	struct swc_region *region;
	int ret;

	ret = charge_pages(ctx, npages);
	if (ret)
		return ERR_PTR(ret);
	ret = swc_region_charge_memory(ctx, ctx->account, charged);
	if (ret)
		goto err_pages;
	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (region)
		region->extents.extent = kvmalloc_array(EXTENTS_MIN, sizeof(struct swc_extent),
							GFP_KERNEL_ACCOUNT);
	if (!region || !region->extents.extent) {
		kfree(region);
		ret = -ENOMEM;
		goto err_memory;
	}
	kref_init(&region->ref);
	region->charged = charged;
	region->capacity = EXTENTS_MIN;
	region->ctx = ctx;
	region->mm = ctx->mm;
	mmgrab(region->mm);
	region->addr = addr;
	region->bytes = bytes;
	region->npages = npages;
	swc_extents_close(&region->extents, 0);
	atomic_inc(&ctx->live_regions);
	return region;

err_memory:
	swc_account_uncharge(ctx->account, SWC_QUOTA_MEMORY, charged);
err_pages:
	swc_memlock_uncharge(ctx->mm, npages);
	return ERR_PTR(ret);
}

/* The table grows with the pages there are: the length of a buffer is only what user space says. */
static int append_extent(struct swc_region *region, void *kaddr, u64 offset)
{
	struct swc_extents *extents = &region->extents;

	/* One entry is kept for the end. */
	if (extents->nextents + 1 >= region->capacity) {
		u32 capacity = clamp_t(u64, 2ull * region->capacity, EXTENTS_MIN, PAGES_MAX);
		u64 bytes = table_bytes(capacity) - table_bytes(region->capacity);
		int ret = swc_region_charge_memory(region->ctx, region->ctx->account, bytes);
		struct swc_extent *more;

		if (ret)
			return ret;
		/* Uncharged with the region if this fails. */
		region->charged += bytes;
		more = swc_kvgrow(extents->extent, extents->nextents, capacity, sizeof(*more));
		if (!more)
			return -ENOMEM;
		extents->extent = more;
		region->capacity = capacity;
	}
	extents->extent[extents->nextents].kaddr = kaddr;
	extents->extent[extents->nextents].offset = offset;
	extents->nextents++;
	return 0;
}

/* Append a page, merging it with the last extent if it follows that in memory. */
static int add_page(struct swc_region *region, void *kaddr, u64 offset)
{
	const struct swc_extents *extents = &region->extents;
	const struct swc_extent *last = extents->nextents ? &extents->extent[extents->nextents - 1] : NULL;

	if (last && last->kaddr + (offset - last->offset) == kaddr)
		return 0;
	return append_extent(region, kaddr, offset);
}

/* ------------------------------------------------------------------ user memory */

/* Pin the user pages of a region into its table. */
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
			/* From Linux 6.3 on, that of a process that is being killed. */
			if (got == -EAGAIN && fatal_signal_pending(current))
				ret = -EINTR;
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

	/* After what has been pinned, so that release is right in any case. */
	swc_extents_close(&region->extents, done == region->npages ? region->bytes :
			  done ? (done << PAGE_SHIFT) - offset_in_page(region->addr) : 0);
	return ret;
}

static void unpin_all(struct swc_region *region)
{
	release_pages_of(region);
	region->extents.nextents = 0;
	swc_extents_close(&region->extents, 0);
}

/* A region for user memory that has not been pinned. */
static struct swc_region *region_make(struct swc_ctx *ctx, u64 addr, u64 bytes)
{
	struct swc_region *region;
	u64 end, npages;

	if (!bytes || check_add_overflow(addr, bytes, &end) || end > TASK_SIZE_MAX)
		return ERR_PTR(-EFAULT);
	npages = (PAGE_ALIGN(end) - (addr & PAGE_MASK)) >> PAGE_SHIFT;
	if (npages >= PAGES_MAX)
		return ERR_PTR(-EFBIG);

	region = region_alloc(ctx, addr, bytes, npages, 0);
	if (IS_ERR(region))
		return region;
	swc_stat_inc(SWC_STAT_REGIONS_PINNED);
	swc_stat_add(SWC_STAT_PAGES_PINNED, npages);
	return region;
}

static struct swc_region *region_pin(struct swc_ctx *ctx, u64 addr, u64 bytes)
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
	trace_swc_region_pin(region->addr, region->bytes, region->npages, region->extents.nextents);
	return region;
}

/*
 * Pin a watched region and put it into the cache. If it is invalidated meanwhile, pin it again; if that
 * goes on, it is pinned for this use only and not cached.
 */
static int pin_cached(struct swc_ctx *ctx, struct swc_region *region)
{
	unsigned long seq;
	int ret, tries;

	for (tries = 0; tries < PIN_RETRIES; tries++) {
		seq = mmu_interval_read_begin(&region->notifier);
		ret = pin_pages(region);
		if (ret)
			return ret;
		if (swc_region_cache_insert(&ctx->cache, region, seq)) {
			trace_swc_region_pin(region->addr, region->bytes, region->npages,
					     region->extents.nextents);
			swc_region_cache_shrink(&ctx->cache, CACHE_MAX);
			return 0;
		}
		unpin_all(region);
	}
	return pin_pages(region);
}

/**
 * swc_region_get() - the region of a buffer named by address, from the cache if it is there
 *
 * Call from the process that owns @ctx, with no lock held. The caller gets a reference. @addr may have a tag,
 * which region->addr has not.
 */
struct swc_region *swc_region_get(struct swc_ctx *ctx, u64 addr, u64 bytes)
{
	struct swc_region *region;
	int ret;

	addr = untagged_addr(addr);
	if (bytes && addr + bytes > addr) {
		region = swc_region_cache_find(&ctx->cache, addr, bytes);
		if (region) {
			swc_stat_inc(SWC_STAT_CACHE_HITS);
			return region;
		}
	}
	swc_stat_inc(SWC_STAT_CACHE_MISSES);

	region = region_make(ctx, addr, bytes);
	if (IS_ERR(region))
		return region;
	ret = swc_region_cache_watch(region);
	if (!ret)
		ret = pin_cached(ctx, region);
	if (ret) {
		swc_region_put(region);
		return ERR_PTR(ret);
	}
	return region;
}

/* ------------------------------------------------------------------ scratch memory */

/* The largest block of at most @most pages that is to be had; NULL if there is none. Sets @order. */
static struct page *alloc_block(u64 most, unsigned int *order)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	struct page *page;

	for (*order = min_t(u64, ilog2(most), SCRATCH_ORDER); *order; (*order)--) {
		page = alloc_pages(gfp | __GFP_COMP | __GFP_NORETRY, *order);
		if (page)
			return page;
	}
	/* Fails rather than invokes the OOM killer. */
	return alloc_pages(gfp | __GFP_RETRY_MAYFAIL, 0);
}

static int alloc_scratch(struct swc_region *region)
{
	u64 done = 0;
	int ret = 0;

	while (done < region->npages && !ret) {
		unsigned int order;
		struct page *page = alloc_block(region->npages - done, &order);

		ret = !page ? -ENOMEM : fatal_signal_pending(current) ? -EINTR : 0;
		/* Not merged: each extent is freed as it was allocated. */
		if (!ret)
			ret = append_extent(region, page_address(page), done << PAGE_SHIFT);
		if (!ret)
			done += 1ull << order;
		else if (page)
			__free_pages(page, order);
		cond_resched();
	}
	/* To the page, so that release sees whole allocations. */
	swc_extents_close(&region->extents, done << PAGE_SHIFT);
	return ret;
}

/**
 * swc_region_scratch() - kernel memory for a plan's SCRATCH buffer
 *
 * Zeroed, because a plan can copy scratch bytes into user buffers. In pages with linear addresses, like
 * user memory: RDMA and DMA need that.
 */
struct swc_region *swc_region_scratch(struct swc_ctx *ctx, u64 bytes)
{
	u64 npages = (bytes + PAGE_SIZE - 1) >> PAGE_SHIFT;
	struct swc_region *region;
	int ret;

	if (npages >= PAGES_MAX)
		return ERR_PTR(-EFBIG);
	if (npages > totalram_pages() / 2)
		return ERR_PTR(-ENOMEM);
	region = region_alloc(ctx, 0, bytes, npages, npages << PAGE_SHIFT);
	if (IS_ERR(region))
		return region;
	region->scratch = true;
	ret = alloc_scratch(region);
	if (ret) {
		swc_region_put(region);
		return ERR_PTR(ret);
	}
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
	region = region_pin(ctx, untagged_addr(addr), bytes);
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

static void get_ref(void *object)
{
	kref_get(&((struct swc_region *)object)->ref);
}

struct swc_region *swc_region_by_handle(struct swc_ctx *ctx, u32 handle)
{
	return swc_handle_get(&ctx->regions, handle, get_ref);
}

/* ------------------------------------------------------------------ contexts */

void swc_region_ctx_init(struct swc_ctx *ctx)
{
	xa_init_flags(&ctx->regions, XA_FLAGS_ALLOC1);
	spin_lock_init(&ctx->freeing_lock);
	INIT_LIST_HEAD(&ctx->to_free);
	swc_region_cache_init(&ctx->cache, swc_region_put);
}

/**
 * swc_region_drop_all() - drop all registrations of a context, which has no users
 *
 * Does not wait: work items free the regions.
 */
void swc_region_drop_all(struct swc_ctx *ctx)
{
	struct swc_region *region;
	unsigned long handle;

	xa_for_each(&ctx->regions, handle, region)
		swc_region_drop_handle(ctx, handle);
	swc_region_cache_shrink(&ctx->cache, 0);
}

/**
 * swc_region_drain() - likewise, and wait until the regions are gone
 */
void swc_region_drain(struct swc_ctx *ctx)
{
	swc_region_drop_all(ctx);
	free_released(ctx);
	swc_drain_wait(&ctx->live_regions);
}
