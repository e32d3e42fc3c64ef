// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions: scratch memory and its accounting; and the cache, with regions that have no pages: what is found,
 * what is dropped first, and that nothing is cached that was invalidated meanwhile.
 */
#include <linux/slab.h>

#include "kunit/harness.h"

/* Bytes of memory charged to the user of a context. */
static s64 charged_to(const struct swc_ctx *ctx)
{
	return atomic64_read(&ctx->account->used[SWC_QUOTA_MEMORY]);
}

static void region_scratch(struct kunit *test)
{
	static const u64 sizes[] = { 1, 4095, 4096, 4097, 3 * 4096, 123456, 1 << 20, (2 << 20) + 4096 };
	struct swc_t_comm *c = swc_t_comm(test, 1, 1000);
	struct swc_ctx *ctx = &c->rank[0].ctx;
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		s64 before = atomic64_read(&c->mm->pinned_vm), charged = charged_to(ctx);
		struct swc_region *r = swc_region_scratch(ctx, sizes[i]);
		u64 pages = DIV_ROUND_UP(sizes[i], PAGE_SIZE), at = 0;

		KUNIT_ASSERT_FALSE(test, IS_ERR(r));
		KUNIT_EXPECT_EQ(test, atomic64_read(&c->mm->pinned_vm), (s64)(before + pages));
		KUNIT_EXPECT_GE(test, charged_to(ctx), charged + (s64)(pages << PAGE_SHIFT));
		KUNIT_EXPECT_EQ(test, charged_to(ctx), charged + (s64)r->charged);
		KUNIT_EXPECT_EQ(test, atomic_read(&ctx->live_regions), 1);
		for (k = 0; k < r->extents.nextents; k++) {
			const struct swc_extent *e = &r->extents.extent[k];
			u64 len = e[1].offset - e->offset;

			KUNIT_EXPECT_EQ(test, e->offset, at);
			/* It may be copied to user buffers: it must not contain other data. */
			KUNIT_EXPECT_NULL(test, memchr_inv(e->kaddr, 0, len));
			memset(e->kaddr, 0x5a, len);
			at += len;
		}
		KUNIT_EXPECT_EQ(test, at, pages * PAGE_SIZE);
		swc_region_put(r);
		flush_workqueue(swc_free_wq);
		KUNIT_EXPECT_EQ(test, atomic64_read(&c->mm->pinned_vm), before);
		KUNIT_EXPECT_EQ(test, charged_to(ctx), charged);
		KUNIT_EXPECT_EQ(test, atomic_read(&ctx->live_regions), 0);
	}
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(swc_region_scratch(ctx, 1ull << 46)), -EFBIG);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(swc_region_scratch(ctx, 1ull << 40)), -EFBIG);
	swc_t_comm_end(c);
}

/* Work items: one that is blocked, and the drain of a context. */
struct blocked {
	struct work_struct work;
	struct completion begun, release;
};

static void block(struct work_struct *work)
{
	struct blocked *b = container_of(work, struct blocked, work);

	complete(&b->begun);
	wait_for_completion(&b->release);
}

struct drain {
	struct work_struct work;
	struct swc_ctx *ctx;
	struct completion done;
};

static void drain(struct work_struct *work)
{
	struct drain *d = container_of(work, struct drain, work);

	swc_region_drain(d->ctx);
	complete(&d->done);
}

/* The release of a context does not wait for work of others, however long the queue. */
static void region_drain_behind(struct kunit *test)
{
	struct workqueue_struct *usual = swc_free_wq, *narrow = alloc_workqueue("swc-narrow", WQ_UNBOUND, 1);
	struct blocked *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);
	struct drain *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	struct swc_t_comm *c = swc_t_comm(test, 1, 1000);
	struct swc_region *r;

	KUNIT_ASSERT_NOT_NULL(test, narrow);
	KUNIT_ASSERT_NOT_NULL(test, b);
	KUNIT_ASSERT_NOT_NULL(test, d);
	INIT_WORK(&b->work, block);
	init_completion(&b->begun);
	init_completion(&b->release);
	INIT_WORK(&d->work, drain);
	d->ctx = &c->rank[0].ctx;
	init_completion(&d->done);
	r = swc_region_scratch(d->ctx, 4096);
	KUNIT_ASSERT_FALSE(test, IS_ERR(r));
	queue_work(narrow, &b->work);
	wait_for_completion(&b->begun);
	swc_free_wq = narrow;
	swc_region_put(r);
	swc_free_wq = usual;
	queue_work(system_unbound_wq, &d->work);
	KUNIT_EXPECT_GT(test, wait_for_completion_timeout(&d->done, msecs_to_jiffies(SWC_T_HANG)), 0ul);
	complete(&b->release);
	flush_work(&d->work);
	destroy_workqueue(narrow);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->rank[0].ctx.live_regions), 0);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ the cache */

#define NREGIONS	4
#define FIRST		10000u
#define APART		1000u
#define REGION_BYTES	1500u
#define SEQ		7

struct cache_test {
	struct swc_region_cache cache;
	struct swc_region region[NREGIONS];
	struct swc_region *dropped[NREGIONS];
	u32 ndropped;
};

/* The test itself holds a reference to each region. */
static void not_released(struct kref *ref)
{
}

static void drop(struct swc_region *region)
{
	u32 i = (region->addr - FIRST) / APART;
	struct cache_test *c = container_of(region - i, struct cache_test, region[0]);

	c->dropped[c->ndropped++] = region;
	kref_put(&region->ref, not_released);
}

/* Neighbours overlap. */
static struct cache_test *cache_test(struct kunit *test)
{
	struct cache_test *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	swc_region_cache_init(&c->cache, drop);
	for (i = 0; i < NREGIONS; i++) {
		struct swc_region *r = &c->region[i];

		kref_init(&r->ref);
		r->addr = FIRST + i * APART;
		r->bytes = REGION_BYTES;
		r->notifier.invalidate_seq = SEQ;
		KUNIT_EXPECT_TRUE(test, swc_region_cache_insert(&c->cache, r, SEQ));
		KUNIT_EXPECT_EQ(test, kref_read(&r->ref), 2u);
	}
	KUNIT_EXPECT_EQ(test, c->cache.n, (unsigned int)NREGIONS);
	return c;
}

/* A region is found if it covers all of the range. */
static void cache_find(struct kunit *test)
{
	/* -1: none; -2: any of two. */
	static const struct { u64 addr, bytes; int region; } ranges[] = {
		{ 10000, 1500, 0 }, { 10000, 1, 0 }, { 9999, 2, -1 }, { 10000, 1501, -1 }, { 10900, 601, -1 },
		{ 11499, 1, -2 }, { 11500, 1, 1 }, { 13000, 1500, 3 }, { 14499, 1, 3 }, { 14500, 1, -1 },
		{ 14499, 2, -1 }, { 0, U64_MAX, -1 },
	};
	struct cache_test *c = cache_test(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		struct swc_region *r = swc_region_cache_find(&c->cache, ranges[i].addr, ranges[i].bytes);

		KUNIT_EXPECT_EQ_MSG(test, !r, ranges[i].region == -1, "range %u", i);
		if (ranges[i].region >= 0)
			KUNIT_EXPECT_PTR_EQ_MSG(test, r, &c->region[ranges[i].region], "range %u", i);
		if (r)
			kref_put(&r->ref, not_released);
	}
	swc_region_cache_shrink(&c->cache, 0);
	KUNIT_EXPECT_EQ(test, c->ndropped, (u32)NREGIONS);
	KUNIT_EXPECT_NULL(test, swc_region_cache_find(&c->cache, FIRST, 1));
}

/* The least recently used region is dropped first. */
static void cache_lru(struct kunit *test)
{
	static const u32 order[NREGIONS] = { 1, 3, 0, 2 };
	struct cache_test *c = cache_test(test);
	u32 i;

	/* After all have been inserted, 0 and 2 are used again. */
	for (i = 0; i < 3; i += 2) {
		struct swc_region *r = swc_region_cache_find(&c->cache, c->region[i].addr, REGION_BYTES);

		KUNIT_ASSERT_PTR_EQ(test, r, &c->region[i]);
		kref_put(&r->ref, not_released);
	}
	swc_region_cache_shrink(&c->cache, NREGIONS);
	KUNIT_EXPECT_EQ(test, c->ndropped, 0u);
	for (i = 0; i < NREGIONS; i++) {
		swc_region_cache_shrink(&c->cache, NREGIONS - 1 - i);
		KUNIT_ASSERT_EQ(test, c->ndropped, i + 1);
		KUNIT_EXPECT_PTR_EQ(test, c->dropped[i], &c->region[order[i]]);
		KUNIT_EXPECT_EQ(test, kref_read(&c->dropped[i]->ref), 1u);
		KUNIT_EXPECT_FALSE(test, c->dropped[i]->cached);
	}
}

/* A region that has been invalidated since its pages were pinned is not cached. */
static void cache_invalidated(struct kunit *test)
{
	struct cache_test *c = cache_test(test);
	struct swc_region *r = &c->region[0];

	swc_region_cache_shrink(&c->cache, 0);
	r->notifier.invalidate_seq = SEQ + 2;
	KUNIT_EXPECT_FALSE(test, swc_region_cache_insert(&c->cache, r, SEQ));
	KUNIT_EXPECT_FALSE(test, r->cached);
	KUNIT_EXPECT_EQ(test, kref_read(&r->ref), 1u);
	KUNIT_EXPECT_EQ(test, c->cache.n, 0u);
	KUNIT_EXPECT_NULL(test, swc_region_cache_find(&c->cache, r->addr, r->bytes));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(region_scratch),
	KUNIT_CASE(region_drain_behind),
	KUNIT_CASE(cache_find),
	KUNIT_CASE(cache_lru),
	KUNIT_CASE(cache_invalidated),
	{}
};

struct kunit_suite swc_region_suite = { .name = "swc_region", .test_cases = cases };
