// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies and reductions by the CPU: over memory cut into extents in different ways, from any start and of
 * any length; and continued after an interruption.
 */
#include <linux/prandom.h>
#include <linux/slab.h>

#include "kunit/harness.h"

#define BYTES	(40 * 1024)
#define RANGES	4

/* Memory in extents of @step bytes (0: one extent), each allocated separately. */
static struct swc_extents *make_extents(struct kunit *test, u32 bytes, u32 step)
{
	struct swc_extents *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	u32 n = step ? DIV_ROUND_UP(bytes, step) : 1, i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->extent = kunit_kcalloc(test, n + 1, sizeof(*r->extent), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->extent);
	for (i = 0; i < n; i++) {
		u32 len = step ? min(step, bytes - i * step) : bytes;

		/* Of exactly this size, so that KASAN sees any access beyond. */
		r->extent[i].kaddr = kunit_kmalloc(test, len, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, r->extent[i].kaddr);
		r->extent[i].offset = i * step;
	}
	r->nextents = n;
	swc_extents_close(r, bytes);
	return r;
}

static u8 *byte_at(const struct swc_extents *r, u32 offset)
{
	return swc_t_extents_at(r, offset);
}

struct table {
	struct swc_reduce_copy copy;
	struct swc_span span[RANGES];
	struct swc_cursor cursor[RANGES];
	void *ptr[RANGES];
};

static void table_init(struct table *t, u32 nsrc, u32 ndst, u64 bytes)
{
	memset(t, 0, sizeof(*t));
	t->copy = (struct swc_reduce_copy) {
		.nsrc = nsrc, .ndst = ndst, .span = t->span, .cursor = t->cursor, .ptr = t->ptr,
		.bytes = bytes, .dtype = SWC_U16, .redop = SWC_SUM,
	};
}

static u16 pattern(u32 range, u32 i)
{
	return range * 7919 + i * 31;
}

/* Fill with 16-bit elements; all offsets are even. */
static void fill(const struct swc_extents *r, u32 which)
{
	u32 i;

	for (i = 0; i < swc_t_extents_bytes(r); i += 2)
		*(u16 *)byte_at(r, i) = pattern(which, i / 2);
}

static void copy_extents(struct kunit *test)
{
	static const u32 steps[] = { 0, 4096, 64, 1022, 5000, 16386 };
	struct swc_extents *extents[ARRAY_SIZE(steps)];
	struct table *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct rnd_state rnd;
	int stop = 0;
	u32 i, k, round;

	KUNIT_ASSERT_NOT_NULL(test, t);
	for (i = 0; i < ARRAY_SIZE(steps); i++)
		extents[i] = make_extents(test, BYTES, steps[i]);
	prandom_seed_state(&rnd, 5);
	for (round = 0; round < 300; round++) {
		u32 nsrc = 1 + round % 3, ndst = RANGES - nsrc, bytes, bad = 0;

		bytes = round < 20 ? round * 2 : (prandom_u32_state(&rnd) % (BYTES / 2)) & ~1u;
		table_init(t, nsrc, ndst, bytes);
		for (i = 0; i < RANGES; i++) {
			/* Different memory for each range. */
			t->span[i].extents = extents[(round / 3 + i) % ARRAY_SIZE(steps)];
			t->span[i].offset = (prandom_u32_state(&rnd) % (BYTES - bytes + 1)) & ~1u;
			fill(t->span[i].extents, i);
		}
		KUNIT_EXPECT_EQ(test, swc_reduce_copy(&t->copy, &stop), 0);
		KUNIT_EXPECT_EQ(test, t->copy.done, (u64)bytes);
		for (i = nsrc; i < RANGES; i++) {
			struct swc_span *d = &t->span[i];

			for (k = 0; k < BYTES; k += 2) {
				u16 want = pattern(i, k / 2), s;

				if (k >= d->offset && k < d->offset + bytes) {
					want = 0;
					for (s = 0; s < nsrc; s++)
						want += pattern(s, (t->span[s].offset + k - d->offset) / 2);
				}
				bad += *(u16 *)byte_at(d->extents, k) != want;
			}
		}
		KUNIT_EXPECT_EQ_MSG(test, bad, 0, "round %u, %u sources, %u bytes", round, nsrc, bytes);
		if (bad)
			return;
	}
}

/*
 * Stopped between two pieces: @done counts what is done, nothing beyond is touched, and it can be
 * continued.
 */
static void stop_and_go(struct kunit *test, int stop, u64 slice_end, int error)
{
	struct table *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	u32 bytes = 300 * 1024, i, stops = 0;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, t);
	table_init(t, 1, 1, bytes);
	t->copy.slice_end = slice_end;
	t->span[0].extents = make_extents(test, bytes, 12290);
	t->span[1].extents = make_extents(test, bytes, 7002);
	fill(t->span[0].extents, 1);
	fill(t->span[1].extents, 2);
	for (;;) {
		ret = swc_reduce_copy(&t->copy, &stop);
		for (i = 0; i < bytes; i += 2)
			if (*(u16 *)byte_at(t->span[1].extents, i) !=
			    pattern(i < t->copy.done ? 1 : 2, i / 2))
				break;
		KUNIT_EXPECT_EQ(test, i, bytes);
		if (!ret)
			break;
		KUNIT_EXPECT_EQ(test, ret, error);
		if (++stops > 100)
			break;
	}
	KUNIT_EXPECT_EQ(test, t->copy.done, (u64)bytes);
	KUNIT_EXPECT_GE(test, stops, 3);
	KUNIT_EXPECT_LE(test, stops, 6);
	/* There is nothing left to do. */
	KUNIT_EXPECT_EQ(test, swc_reduce_copy(&t->copy, &stop), 0);
}

static void copy_stop(struct kunit *test)
{
	stop_and_go(test, 1, 0, -ECANCELED);
}

/* The worker's time slice is over all the time. */
static void copy_slice(struct kunit *test)
{
	stop_and_go(test, 0, 1, -EINTR);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(copy_extents),
	KUNIT_CASE(copy_stop),
	KUNIT_CASE(copy_slice),
	{}
};

struct kunit_suite swc_reduce_copy_suite = { .name = "swc_reduce_copy", .test_cases = cases };
