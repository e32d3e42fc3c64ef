// SPDX-License-Identifier: GPL-2.0-only
/*
 * Block geometry: blocks cover the vector in order and without gaps, start on 64-byte units of their shard,
 * differ by at most one unit, and nothing overflows up to the largest vector.
 */
#include <linux/prandom.h>

#include "kunit/harness.h"

static void geometry(struct kunit *test, u64 elems, u32 size, u32 nshards, u32 shard_blocks)
{
	struct swc_blocks g;
	u64 at = 0, shard_bytes = elems * size;
	u32 b, n = nshards * shard_blocks;

	KUNIT_ASSERT_EQ(test, swc_blocks_init(&g, elems, size, nshards, shard_blocks), 0);
	KUNIT_EXPECT_EQ(test, swc_blocks_total_bytes(&g), shard_bytes * nshards);
	KUNIT_EXPECT_EQ(test, swc_blocks_bytes(&g, 0, n), shard_bytes * nshards);
	for (b = 0; b < n; b++) {
		u64 shard = (u64)(b / shard_blocks) * shard_bytes, bytes = swc_blocks_bytes(&g, b, 1);
		u64 most = ((shard_bytes + 63) / 64 + shard_blocks - 1) / shard_blocks * 64;

		if (swc_blocks_offset(&g, b) != at || at < shard || at > shard + shard_bytes ||
		    (at - shard) % size || bytes > most ||
		    ((at - shard) % 64 && at != shard + shard_bytes)) {
			KUNIT_FAIL(test, "%llu elements of %u in %u * %u: block %u at %llu, %llu bytes",
				   elems, size, nshards, shard_blocks, b, at, bytes);
			return;
		}
		at += bytes;
	}
	KUNIT_EXPECT_EQ(test, at, shard_bytes * nshards);
	KUNIT_EXPECT_EQ(test, swc_blocks_offset(&g, n), shard_bytes * nshards);
}

static void blocks_small(struct kunit *test)
{
	u64 elems;
	u32 size, shards, blocks;

	for (size = 1; size <= 8; size *= 2)
		for (shards = 1; shards <= 3; shards += 2)
			for (blocks = 1; blocks <= 9; blocks++)
				for (elems = 0; elems < 200; elems += 1 + elems / 20)
					geometry(test, elems, size, shards, blocks);
}

static void blocks_random(struct kunit *test)
{
	struct rnd_state rnd;
	u32 i;

	prandom_seed_state(&rnd, 7);
	for (i = 0; i < 400; i++) {
		u32 size = 1 << prandom_u32_state(&rnd) % 4, shards = 1 + prandom_u32_state(&rnd) % 9;
		u64 elems = ((u64)prandom_u32_state(&rnd) << 7) >> prandom_u32_state(&rnd) % 40;

		geometry(test, elems, size, shards, 1 + prandom_u32_state(&rnd) % 100);
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
	/* The largest vector in the largest number of blocks: the last block, and the end. */
	KUNIT_ASSERT_EQ(test, swc_blocks_init(&g, most, 1, 1, 1 << 24), 0);
	KUNIT_EXPECT_EQ(test, swc_blocks_offset(&g, 1 << 24), most);
	KUNIT_EXPECT_EQ(test, swc_blocks_bytes(&g, (1 << 24) - 1, 1), most >> 24);
}

/* The formula of the ABI, with numbers worked out by hand. */
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

/* Shards of different sizes: each is cut as if it were alone. */
static void blocks_uneven(struct kunit *test)
{
	static const u64 elems[] = { 65, 0, 1, 1000, 0 };
	u64 starts[ARRAY_SIZE(elems) + 1], at = 0, hash;
	u32 i, k, n = ARRAY_SIZE(elems);
	struct swc_blocks g, one;

	memcpy(starts, elems, sizeof(elems));
	KUNIT_ASSERT_EQ(test, swc_blocks_init_uneven(&g, starts, 4, n, 4), 0);
	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_EQ(test, swc_blocks_init(&one, elems[i], 4, 1, 4), 0);
		for (k = 0; k < 4; k++)
			KUNIT_EXPECT_EQ(test, swc_blocks_offset(&g, 4 * i + k),
					at + swc_blocks_offset(&one, k));
		KUNIT_EXPECT_EQ(test, swc_blocks_bytes(&g, 4 * i, 4), 4 * elems[i]);
		at += 4 * elems[i];
	}
	KUNIT_EXPECT_EQ(test, swc_blocks_offset(&g, 4 * n), at);
	KUNIT_EXPECT_EQ(test, swc_blocks_total_bytes(&g), at);
	hash = swc_blocks_hash(&g);
	memcpy(starts, elems, sizeof(elems));
	swap(starts[0], starts[3]);
	KUNIT_ASSERT_EQ(test, swc_blocks_init_uneven(&g, starts, 4, n, 4), 0);
	KUNIT_EXPECT_NE(test, swc_blocks_hash(&g), hash);

	starts[0] = 1ull << 45;
	starts[1] = 1ull << 45;
	starts[2] = 0;
	KUNIT_EXPECT_EQ(test, swc_blocks_init_uneven(&g, starts, 1, 3, 1), 0);
	starts[0] = 1ull << 45;
	starts[1] = 1ull << 45;
	starts[2] = 1;
	KUNIT_EXPECT_EQ(test, swc_blocks_init_uneven(&g, starts, 1, 3, 1), -EOVERFLOW);
	starts[0] = 1ull << 62;
	starts[1] = 0;
	KUNIT_EXPECT_EQ(test, swc_blocks_init_uneven(&g, starts, 8, 2, 1), -EOVERFLOW);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(blocks_small),
	KUNIT_CASE(blocks_random),
	KUNIT_CASE(blocks_limits),
	KUNIT_CASE(blocks_known),
	KUNIT_CASE(blocks_uneven),
	{}
};

struct kunit_suite swc_blocks_suite = { .name = "swc_blocks", .test_cases = cases };
