// SPDX-License-Identifier: GPL-2.0-only
/*
 * Predictions for DMA engines, with numbers worked out by hand.
 */
#include <linux/sizes.h>

#include "dma/engine.h"
#include "kunit/harness.h"

#define SPEEDS(one_mib, all_mib)	{ .cpu_mib = 800000, .nchans = 4, .one = { 40000, one_mib }, \
					  .all = { 90000, all_mib } }
#define ONE_IS_FAST	SPEEDS(400000, 300000)
#define ALL_ARE_FAST	SPEEDS(1000000, 250000)
#define NONE_IS_FAST	SPEEDS(800000, 790000)

struct prediction {
	struct swc_dma_speeds s;
	u64 bytes;
	u64 load;
	u32 busy;
	u32 workers;
	bool faster;
};

/* (start + mib * load) * 9 / 8 < cpu_mib * bytes / workers, in ns and MiB */
static void cost_predictions(struct kunit *test)
{
	static const struct prediction predictions[] = {
		/* 270 us against 400, and against 200 */
		{ ONE_IS_FAST, SZ_512K, SZ_512K, 1, 1, true },
		{ ONE_IS_FAST, SZ_512K, SZ_512K, 1, 2, false },
		/* 101 us against 100; 80 us against 100 */
		{ ONE_IS_FAST, SZ_128K, SZ_128K, 1, 1, false },
		{ ONE_IS_FAST, SZ_128K, SZ_64K, 1, 1, true },
		/* Other work is ahead: 2.3 ms against 800 us */
		{ ONE_IS_FAST, SZ_1M, 5 * SZ_1M, 1, 1, false },
		/* Two channels, 600 us for a MiB of each: 776 us against 800, and 400; for two MiB 800 */
		{ ONE_IS_FAST, SZ_1M, SZ_1M, 2, 1, true },
		{ ONE_IS_FAST, SZ_1M, SZ_1M, 2, 2, false },
		{ ONE_IS_FAST, 2 * SZ_1M, SZ_1M, 2, 2, true },
		/* One is slower than a CPU: 1170 us against 800; four are faster: 1226 against 3200, 1600 */
		{ ALL_ARE_FAST, SZ_1M, SZ_1M, 1, 1, false },
		{ ALL_ARE_FAST, 4 * SZ_1M, SZ_1M, 4, 1, true },
		{ ALL_ARE_FAST, 4 * SZ_1M, SZ_1M, 4, 2, true },
		{ ALL_ARE_FAST, 4 * SZ_1M, SZ_1M, 4, 3, false },
		{ NONE_IS_FAST, SZ_1G, SZ_1G, 1, 1, false },
		{ NONE_IS_FAST, SZ_1G, SZ_256M, 4, 1, false },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(predictions); i++) {
		const struct prediction *p = &predictions[i];

		bool faster = swc_dma_cost_is_faster(&p->s, p->bytes, p->load, p->busy, p->workers);

		KUNIT_EXPECT_EQ_MSG(test, faster, p->faster, "prediction %u", i);
	}
}

/* From the least number of bytes on the prediction is that an engine is faster. */
static void cost_least(struct kunit *test)
{
	static const struct swc_dma_speeds one = ONE_IS_FAST, all = ALL_ARE_FAST, none = NONE_IS_FAST;
	u64 least = swc_dma_cost_least(&one);

	KUNIT_EXPECT_GT(test, least, (u64)SZ_128K);
	KUNIT_EXPECT_LT(test, least, (u64)SZ_256K);
	KUNIT_EXPECT_FALSE(test, swc_dma_cost_is_faster(&one, least - 64, least - 64, 1, 1));
	KUNIT_EXPECT_TRUE(test, swc_dma_cost_is_faster(&one, least + 64, least + 64, 1, 1));
	/* The size from which on two channels are used. */
	KUNIT_EXPECT_EQ(test, swc_dma_cost_least(&all), (u64)SZ_2M);
	KUNIT_EXPECT_EQ(test, swc_dma_cost_least(&none), U64_MAX);
}

/* The channel's share takes it as long as the rest takes the CPU. */
static void cost_share(struct kunit *test)
{
	/* 40 us + 400 us * x = 800 us * (1 - x): x = 760 / 1200 MiB */
	static const struct swc_dma_speeds s = ONE_IS_FAST;
	u64 share = swc_dma_cost_share(&s, SZ_1M);

	KUNIT_EXPECT_GE(test, share, SZ_1M * 760ull / 1200 - 1);
	KUNIT_EXPECT_LE(test, share, SZ_1M * 760ull / 1200 + 1);
	/* 40 us is the time of a CPU for 51 KiB. */
	KUNIT_EXPECT_EQ(test, swc_dma_cost_share(&s, 51 * SZ_1K), 0ull);
	KUNIT_EXPECT_GT(test, swc_dma_cost_share(&s, 53 * SZ_1K), 0ull);
	/* The size whose share is 64 KiB. */
	share = swc_dma_cost_share(&s, swc_dma_cost_least_shared(&s, SZ_64K));
	KUNIT_EXPECT_GE(test, share, SZ_64K - 2ull);
	KUNIT_EXPECT_LE(test, share, SZ_64K + 0ull);
	KUNIT_EXPECT_EQ(test, swc_dma_cost_nchans(4, SZ_512K), 1u);
	KUNIT_EXPECT_EQ(test, swc_dma_cost_nchans(4, SZ_2M), 2u);
	KUNIT_EXPECT_EQ(test, swc_dma_cost_nchans(4, SZ_1G), 4u);
	KUNIT_EXPECT_EQ(test, swc_dma_cost_nchans(0, SZ_1G), 0u);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(cost_predictions),
	KUNIT_CASE(cost_least),
	KUNIT_CASE(cost_share),
	{}
};

struct kunit_suite swc_dma_cost_suite = { .name = "swc_dma_cost", .test_cases = cases };
