// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calibration of DMA channels, by the tests' clock: in mode "auto" engines are used where they are faster,
 * and never where measuring fails.
 */
#include <linux/sizes.h>
#include <linux/slab.h>

#include "dma/engine.h"
#include "kunit/dma/dma_harness.h"

#define BYTES		(48u << 10)	/* of a single copy */

/* ------------------------------------------------------------------ one measurement */

/* swc_dma_copy_sync() copies, and tells whether it has. */
static void copy_sync(struct kunit *test)
{
	u8 *from = kunit_kmalloc(test, BYTES, GFP_KERNEL), *to = kunit_kmalloc(test, BYTES, GFP_KERNEL);
	struct swc_dma_chan *ch, *all[SWC_DMA_MAX_CHANS];
	struct swc_t_dma *t = test->priv;
	u32 i, which;

	KUNIT_ASSERT_NOT_NULL(test, from);
	KUNIT_ASSERT_NOT_NULL(test, to);
	t->fake.align = 6;
	t->fake.max_seg = 5000;
	swc_t_dma_start_always(test);
	KUNIT_ASSERT_EQ(test, swc_t_dma_choose(&ch, 1, NUMA_NO_NODE), 1u);
	for (i = 0; i < BYTES; i++)
		from[i] = i * 7;
	for (which = SWC_T_FAIL_PREP; which < SWC_T_FAULT_HANG; which++) {
		memset(to, 0, BYTES);
		KUNIT_EXPECT_TRUE(test, swc_dma_copy_sync(&ch, 1, to, from, BYTES / 2));
		KUNIT_EXPECT_EQ(test, memcmp(to, from, BYTES / 2), 0);
		KUNIT_EXPECT_NULL(test, memchr_inv(to + BYTES / 2, 0, BYTES / 2));
		atomic_set(&t->fake.fault[which], 3);
		KUNIT_EXPECT_FALSE(test, swc_dma_copy_sync(&ch, 1, to, from, BYTES));
		atomic_set(&t->fake.fault[which], 0);
	}
	swc_dma_chan_put(ch);
	/* By several channels, the last with less than the others. */
	KUNIT_ASSERT_EQ(test, swc_t_dma_choose(all, 3, NUMA_NO_NODE), 3u);
	memset(to, 0, BYTES);
	KUNIT_EXPECT_TRUE(test, swc_dma_copy_sync(all, 3, to, from, BYTES - 128));
	KUNIT_EXPECT_EQ(test, memcmp(to, from, BYTES - 128), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(to + BYTES - 128, 0, 128));
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, (u64)atomic64_read(&all[i]->load), 0ull);
		swc_dma_chan_put(all[i]);
	}
	/* No operation's job is counted. */
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
}

/*
 * Fault @which at the first, second, ... transfer of a measurement: each time the channels are useless.
 * Returns how many transfers there are.
 */
static u32 sweep(struct kunit *test, struct swc_t_fake *fake, u32 which)
{
	u32 n;

	for (n = 1; n < 100; n++) {
		bool fired;

		u32 held;

		atomic_set(&fake->fault[which], n);
		held = swc_t_dma_hold(test, "auto");
		fired = atomic_read(&fake->fault[which]) <= 0;
		if (!fired)
			KUNIT_EXPECT_EQ(test, held, 2u);
		else if (which == SWC_T_FAULT_HANG)
			KUNIT_EXPECT_TRUE(test, swc_t_dma_wait(atomic_read(&fake->held) < 2));
		KUNIT_EXPECT_EQ_MSG(test, swc_t_dma_least(test), U64_MAX, "fault %u, %u", which, n);
		atomic_set(&fake->fault[which], 0);
		swc_t_dma_release(test);
		if (!fired)
			break;
	}
	return n - 1;
}

static void calibrate_faults(struct kunit *test)
{
	/* Three small and three large copies by one channel, and by both. */
	const u32 all = 6 + 2 * 6;
	struct swc_t_dma *t = test->priv;
	struct swc_t_fake *fake;
	u32 which;

	t->fake.nchans = 2;
	fake = swc_t_dma_start(test);
	for (which = SWC_T_FAIL_PREP; which <= SWC_T_FAULT_HANG; which++)
		KUNIT_EXPECT_EQ_MSG(test, sweep(test, fake, which), all, "fault %u", which);
}

/* ------------------------------------------------------------------ the modes that measure */

/* A CPU needs 4 ms for a MiB; channels start in 1 ms, and need 102 us for a MiB. */
static void set_fast(struct swc_t_dma *t)
{
	t->cpu_ns = NSEC_PER_MSEC;
	t->engine_ns = 100;
}

/*
 * A channel hangs or fails while all are measured together: what is held works and is used, and no operation
 * fails because of it.
 */
static void auto_faults(struct kunit *test)
{
	static const u32 faults[] = { SWC_T_FAIL_TRANSFER, SWC_T_FAULT_HANG };
	struct swc_t_dma *t = test->priv;
	struct swc_t_fake *fake;
	u32 i, n, used = 0;

	set_fast(t);
	t->fake.nchans = 2;
	fake = swc_t_dma_start(test);
	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		for (n = 7; n <= 6 + 2 * 6; n++) {
			atomic_set(&fake->fault[faults[i]], n);
			swc_t_dma_hold(test, "auto");
			KUNIT_EXPECT_TRUE_MSG(test, swc_t_dma_wait(atomic_read(&fake->held) < 2),
					      "fault %u, %u", faults[i], n);
			KUNIT_EXPECT_LE(test, atomic_read(&fake->fault[faults[i]]), 0);
			atomic_set(&fake->fault[faults[i]], 0);
			swc_t_dma_run(test, swc_t_staged, 2, 300000, false, SWC_SUM);
			KUNIT_EXPECT_EQ_MSG(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull,
					    "fault %u, %u", faults[i], n);
			used += swc_t_dma_grown(test, SWC_STAT_DMA_JOBS) > 0;
			swc_t_dma_release(test);
		}
	}
	KUNIT_EXPECT_GT(test, used, 12u);
}

/* An engine gets copies from the size on from which it is faster. */
static void auto_fast(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;
	u64 engine;

	set_fast(t);
	swc_t_dma_start(test);
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "auto"), (u32)SWC_T_DMA_CHANS);
	/* 1 ms / (4 - 0.1 ms) MiB, and a margin */
	KUNIT_EXPECT_GT(test, swc_t_dma_least(test), 290000ull);
	KUNIT_EXPECT_LT(test, swc_t_dma_least(test), 320000ull);
	swc_t_dma_run(test, swc_t_staged, 2, 300000, false, SWC_SUM);
	/* The CPU copies the stretches that are too short for a descriptor: how many depends on the pages. */
	engine = swc_t_dma_grown(test, SWC_STAT_DMA_BYTES);
	KUNIT_EXPECT_LE(test, engine, 2 * 300000 * 8ull);
	KUNIT_EXPECT_GT(test, engine, 2 * 300000 * 8ull * 9 / 10);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
}

/* CPU and engine each do a part of a copy, so that both end at the same time. */
static void share_fast(struct kunit *test)
{
	const u64 bytes = 300000 * 8;
	struct swc_t_dma *t = test->priv;
	u64 engine;

	set_fast(t);
	swc_t_dma_start(test);
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "share"), (u32)SWC_T_DMA_CHANS);
	swc_t_dma_run(test, swc_t_staged, 2, 300000, false, SWC_SUM);
	/* 1 ms + 0.1 ms * x = 4 ms * (2.29 - x): x = 2 MiB, for each of two ranks */
	engine = swc_t_dma_grown(test, SWC_STAT_DMA_BYTES);
	KUNIT_EXPECT_GT(test, engine, 2 * 19 * SZ_1M / 10ull);
	KUNIT_EXPECT_LT(test, engine, 2 * 21 * SZ_1M / 10ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_BYTES_COPIED) + engine, 2 * bytes);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
}

/* Useless channels are not used. */
static void auto_slow(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start(test);

	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "auto"), (u32)SWC_T_DMA_CHANS);
	KUNIT_EXPECT_GT(test, swc_t_fake_transfers(fake), 0u);
	KUNIT_EXPECT_EQ(test, swc_t_dma_least(test), U64_MAX);
	swc_t_dma_run(test, swc_t_staged, 2, 300000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
}

/* Engines that cannot address all memory are not even measured: the CPU would have to copy for them. */
static void auto_narrow(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	set_fast(t);
	t->fake.addr_bits = 20;
	swc_t_dma_start(test);
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "auto"), (u32)SWC_T_DMA_CHANS);
	KUNIT_EXPECT_EQ(test, swc_t_dma_least(test), U64_MAX);
	swc_t_dma_run(test, swc_t_staged, 2, 300000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_fake_transfers(&t->fake), 0u);
	swc_t_dma_release(test);
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "share"), (u32)SWC_T_DMA_CHANS);
	KUNIT_EXPECT_EQ(test, swc_t_dma_least(test), U64_MAX);
	KUNIT_EXPECT_EQ(test, swc_t_fake_transfers(&t->fake), 0u);
}

/* Channels acquired in mode "always" are measured when the mode changes, even if they have just been used. */
static void auto_after_always(struct kunit *test)
{
	swc_t_dma_start_always(test);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 2ull);
	swc_t_dma_set(test, "dma", "auto");
	flush_workqueue(swc_wq);
	swc_t_dma_run(test, swc_t_staged, 2, 40000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	flush_workqueue(swc_wq);
	KUNIT_EXPECT_EQ(test, swc_t_dma_least(test), U64_MAX);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(copy_sync),
	KUNIT_CASE_SLOW(calibrate_faults),
	KUNIT_CASE_SLOW(auto_faults),
	KUNIT_CASE(auto_fast),
	KUNIT_CASE(share_fast),
	KUNIT_CASE(auto_slow),
	KUNIT_CASE(auto_narrow),
	KUNIT_CASE(auto_after_always),
	{}
};

struct kunit_suite swc_dma_calibrate_suite = {
	.name = "swc_dma_calibrate", .init = swc_t_dma_init, .exit = swc_t_dma_exit, .test_cases = cases,
};
