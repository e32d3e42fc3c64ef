// SPDX-License-Identifier: GPL-2.0-only
/*
 * Block geometry: blocks cover the vector in order and without gaps, start on 64-byte units of their part,
 * differ by at most a unit, and nothing overflows up to the largest vector. And the descriptor check.
 */
#include <linux/prandom.h>

#include "core/desc_check.h"
#include "kunit/harness.h"

static void geometry(struct kunit *test, u64 elems, u32 size, u32 nparts, u32 part_blocks)
{
	struct swc_blocks g;
	u64 at = 0, part_bytes = elems * size;
	u32 b, n = nparts * part_blocks;

	KUNIT_ASSERT_EQ(test, swc_blocks_init(&g, elems, size, nparts, part_blocks), 0);
	KUNIT_EXPECT_EQ(test, swc_blocks_total_bytes(&g), part_bytes * nparts);
	KUNIT_EXPECT_EQ(test, swc_blocks_bytes(&g, 0, n), part_bytes * nparts);
	for (b = 0; b < n; b++) {
		u64 part = (u64)(b / part_blocks) * part_bytes, bytes = swc_blocks_bytes(&g, b, 1);
		u64 most = ((part_bytes + 63) / 64 + part_blocks - 1) / part_blocks * 64;

		if (swc_blocks_offset(&g, b) != at || at < part || at > part + part_bytes ||
		    (at - part) % size || bytes > most ||
		    ((at - part) % 64 && at != part + part_bytes)) {
			KUNIT_FAIL(test, "%llu elements of %u in %u * %u: block %u at %llu, %llu bytes",
				   elems, size, nparts, part_blocks, b, at, bytes);
			return;
		}
		at += bytes;
	}
	KUNIT_EXPECT_EQ(test, at, part_bytes * nparts);
	KUNIT_EXPECT_EQ(test, swc_blocks_offset(&g, n), part_bytes * nparts);
}

static void blocks_small(struct kunit *test)
{
	u64 elems;
	u32 size, parts, blocks;

	for (size = 1; size <= 8; size *= 2)
		for (parts = 1; parts <= 3; parts += 2)
			for (blocks = 1; blocks <= 9; blocks++)
				for (elems = 0; elems < 200; elems += 1 + elems / 20)
					geometry(test, elems, size, parts, blocks);
}

static void blocks_random(struct kunit *test)
{
	struct rnd_state rnd;
	u32 i;

	prandom_seed_state(&rnd, 7);
	for (i = 0; i < 400; i++) {
		u32 size = 1 << prandom_u32_state(&rnd) % 4, parts = 1 + prandom_u32_state(&rnd) % 9;
		u64 elems = ((u64)prandom_u32_state(&rnd) << 7) >> prandom_u32_state(&rnd) % 40;

		geometry(test, elems, size, parts, 1 + prandom_u32_state(&rnd) % 100);
	}
}

static void blocks_limits(struct kunit *test)
{
	const u64 most = 1ull << 46;
	struct swc_blocks g;

	geometry(test, most / 8, 8, 1, 3);
	geometry(test, most / 1024, 1, 1024, 2);
	geometry(test, most / 4096 / 8, 8, 4096, 1);
	KUNIT_EXPECT_EQ(test, swc_blocks_init(&g, most + 1, 1, 1, 1), -EOVERFLOW);
	KUNIT_EXPECT_EQ(test, swc_blocks_init(&g, most / 8 + 1, 8, 1, 1), -EOVERFLOW);
	KUNIT_EXPECT_EQ(test, swc_blocks_init(&g, most / 4096 + 1, 1, 4096, 1), -EOVERFLOW);
	KUNIT_EXPECT_EQ(test, swc_blocks_init(&g, U64_MAX, 8, 1, 1), -EOVERFLOW);
	KUNIT_EXPECT_EQ(test, swc_blocks_init(&g, U64_MAX / 8 + 2, 8, 1, 1), -EOVERFLOW);
	KUNIT_EXPECT_EQ(test, swc_blocks_init(&g, 1ull << 60, 8, 4096, 1 << 12), -EOVERFLOW);
	/* The most blocks there may be, of the largest vector: the last ones, and the end. */
	KUNIT_ASSERT_EQ(test, swc_blocks_init(&g, most, 1, 1, 1 << 24), 0);
	KUNIT_EXPECT_EQ(test, swc_blocks_offset(&g, 1 << 24), most);
	KUNIT_EXPECT_EQ(test, swc_blocks_bytes(&g, (1 << 24) - 1, 1), most >> 24);
}

/* The formula of the ABI, in numbers worked out by hand. */
static void blocks_known(struct kunit *test)
{
	static const u64 offsets[] = { 0, 128, 192, 256, 260 };
	struct swc_blocks g;
	u32 b;

	/* 65 elements of 4 bytes are 260 bytes, 5 units; 4 blocks of 2, 1, 1, 1 units. */
	KUNIT_ASSERT_EQ(test, swc_blocks_init(&g, 65, 4, 2, 4), 0);
	for (b = 0; b <= 4; b++) {
		KUNIT_EXPECT_EQ(test, swc_blocks_offset(&g, b), offsets[b]);
		KUNIT_EXPECT_EQ(test, swc_blocks_offset(&g, b + 4), 260 + offsets[b]);
	}
}

static struct kunit_case blocks_cases[] = {
	KUNIT_CASE(blocks_small),
	KUNIT_CASE(blocks_random),
	KUNIT_CASE(blocks_limits),
	KUNIT_CASE(blocks_known),
	{}
};

struct kunit_suite swc_blocks_suite = { .name = "swc_blocks", .test_cases = blocks_cases };

/* ------------------------------------------------------------------ descriptors */

static const struct swc_desc good = {
	.comm = 1, .plan = 1, .send = 0x10000, .recv = 0x20000, .count = 5, .coll = SWC_ALLREDUCE,
	.dtype = SWC_F32, .redop = SWC_SUM, .flags = SWC_OP_FLAGS_ALL,
};

#define EXPECT_DESC(result, ...) do {							\
	struct swc_desc d = good;							\
											\
	__VA_ARGS__;									\
	KUNIT_EXPECT_EQ_MSG(test, swc_desc_check(&d, 4), result, #__VA_ARGS__);		\
} while (0)

static void desc_fields(struct kunit *test)
{
	EXPECT_DESC(0, (void)d);
	EXPECT_DESC(-EINVAL, d.resv0 = 1);
	EXPECT_DESC(-EINVAL, d.resv1[0] = 1);
	EXPECT_DESC(-EINVAL, d.resv1[1] = 1ull << 63);
	EXPECT_DESC(-EINVAL, d.flags = 4);
	EXPECT_DESC(-EINVAL, d.flags = 1u << 31);
	EXPECT_DESC(-EINVAL, d.coll = SWC_COLL_NR);
	EXPECT_DESC(-EINVAL, d.coll = 255);
	EXPECT_DESC(-EINVAL, d.dtype = SWC_DTYPE_NR);
	EXPECT_DESC(-EINVAL, d.dtype = 255);
	EXPECT_DESC(-EINVAL, d.redop = SWC_REDOP_NR);
	EXPECT_DESC(-EINVAL, d.redop = 255);
	EXPECT_DESC(-EOPNOTSUPP, d.redop = SWC_BXOR);
	EXPECT_DESC(-EINVAL, d.root = 1);
	EXPECT_DESC(0, d.coll = SWC_REDUCE; d.root = 3);
	EXPECT_DESC(-EINVAL, d.coll = SWC_REDUCE; d.root = 4);
	EXPECT_DESC(-EINVAL, d.coll = SWC_REDUCE; d.root = 0xffffffff);
	EXPECT_DESC(0, d.coll = SWC_ALLGATHER);
	EXPECT_DESC(-EINVAL, d.coll = SWC_ALLGATHER; d.redop = SWC_MAX);
	EXPECT_DESC(-EINVAL, d.coll = SWC_BARRIER);
	EXPECT_DESC(0, memset(&d, 0, sizeof(d)); d.coll = SWC_BARRIER);
	EXPECT_DESC(-EINVAL, memset(&d, 0, sizeof(d)); d.coll = SWC_BARRIER; d.recv_region = 1);
	EXPECT_DESC(-EINVAL, d.send += 2);
	EXPECT_DESC(-EINVAL, d.recv += 1);
	EXPECT_DESC(0, d.dtype = SWC_U8; d.recv += 1);
}

/* Nothing but what the enums name is ever accepted. */
static void desc_exhaustive(struct kunit *test)
{
	struct swc_desc d = good;
	u32 coll, dtype, redop;

	for (coll = 0; coll < 256; coll++) {
		for (dtype = 0; dtype < 256; dtype++) {
			for (redop = 0; redop < 256; redop++) {
				d.coll = coll;
				d.dtype = dtype;
				d.redop = redop;
				if (swc_desc_check(&d, 4))
					continue;
				KUNIT_EXPECT_LT(test, coll, (u32)SWC_COLL_NR);
				KUNIT_EXPECT_LT(test, dtype, (u32)SWC_DTYPE_NR);
				if (swc_coll_reduces(coll))
					KUNIT_EXPECT_NOT_NULL(test, swc_reduce_get(dtype, redop));
				else
					KUNIT_EXPECT_EQ(test, redop, 0);
			}
		}
		cond_resched();
	}
}

static struct kunit_case desc_cases[] = {
	KUNIT_CASE(desc_fields),
	KUNIT_CASE_SLOW(desc_exhaustive),
	{}
};

struct kunit_suite swc_desc_suite = { .name = "swc_desc", .test_cases = desc_cases };
