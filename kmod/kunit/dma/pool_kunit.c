// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels of DMA engines: which are taken, for how long, and whether one is worth it.
 */
#include <linux/delay.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "dma/engine.h"
#include "dma_harness.h"

#define BYTES		(48u << 10)	/* of a single copy */

/* ------------------------------------------------------------------ the pool */

/* For nothing yet. */
static u32 take(struct swc_dma_chan **chan, u32 most, int node)
{
	u64 share = 0;

	return swc_dma_take(chan, most, node, &share, NULL);
}

static void expect_order(struct kunit *test, struct swc_dma_chan **all, const u32 *order, int node)
{
	struct swc_dma_chan *some[SWC_DMA_MAX_CHANS];
	u32 i, most;

	for (most = 1; most <= SWC_T_DMA_CHANS; most++) {
		KUNIT_ASSERT_EQ(test, take(some, most, node), most);
		for (i = 0; i < most; i++) {
			KUNIT_EXPECT_PTR_EQ(test, some[i], all[order[i]]);
			swc_dma_put(some[i]);
		}
	}
}

/* Those of the memory's NUMA node first, and of them those with the least to do. */
static void pool_order(struct kunit *test)
{
	static const u64 loads[SWC_T_DMA_CHANS] = { 300, 100, 400, 200 };
	static const int nodes[SWC_T_DMA_CHANS] = { 1, 0, 1, 0 };
	static const u32 any[SWC_T_DMA_CHANS] = { 1, 3, 0, 2 }, near_1[SWC_T_DMA_CHANS] = { 0, 2, 1, 3 };
	struct swc_dma_chan *all[SWC_DMA_MAX_CHANS];
	u32 i;

	swc_t_dma_start_forced(test);
	KUNIT_ASSERT_EQ(test, take(all, SWC_DMA_MAX_CHANS, NUMA_NO_NODE), (u32)SWC_T_DMA_CHANS);
	for (i = 0; i < SWC_T_DMA_CHANS; i++) {
		KUNIT_EXPECT_EQ(test, all[i]->node, NUMA_NO_NODE);
		KUNIT_EXPECT_EQ(test, atomic64_read(&all[i]->load), 0ll);
		atomic64_add(loads[i], &all[i]->load);
	}
	expect_order(test, all, any, 0);
	for (i = 0; i < SWC_T_DMA_CHANS; i++)
		all[i]->node = nodes[i];
	expect_order(test, all, any, 0);
	expect_order(test, all, any, 2);
	expect_order(test, all, near_1, 1);
	for (i = 0; i < SWC_T_DMA_CHANS; i++) {
		atomic64_sub(loads[i], &all[i]->load);
		swc_dma_put(all[i]);
	}
}

/* A busy channel is left alone while others are free. */
static void pool_busy(struct kunit *test)
{
	struct swc_dma_chan *all[SWC_DMA_MAX_CHANS];
	struct swc_t_fake *fake = swc_t_dma_start_forced(test);
	u32 i;

	KUNIT_ASSERT_EQ(test, take(all, SWC_DMA_MAX_CHANS, NUMA_NO_NODE), (u32)SWC_T_DMA_CHANS);
	for (i = 0; i < SWC_T_DMA_CHANS - 1; i++)
		atomic64_add(1 << 30, &all[i]->load);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 2ull);
	KUNIT_EXPECT_EQ(test, swc_t_fake_busy(fake), 1u);
	for (i = 0; i < SWC_T_DMA_CHANS - 1; i++)
		atomic64_sub(1 << 30, &all[i]->load);
	for (i = 0; i < SWC_T_DMA_CHANS; i++)
		swc_dma_put(all[i]);
}

/* Whoever has been chosen counts as busy at once, before it has anything to do. */
static void pool_shares(struct kunit *test)
{
	struct swc_dma_chan *all[SWC_DMA_MAX_CHANS];
	struct swc_dma_queue q;
	u32 i, k;

	swc_t_dma_start_forced(test);
	for (i = 0; i < SWC_T_DMA_CHANS; i++) {
		u64 share = 1000;

		KUNIT_ASSERT_EQ(test, swc_dma_take(&all[i], 1, NUMA_NO_NODE, &share, &q), 1u);
		KUNIT_EXPECT_EQ(test, share, 1000ull);
		KUNIT_EXPECT_EQ(test, q.front, 0ull);
		KUNIT_EXPECT_EQ(test, q.busy, i + 1);
		for (k = 0; k < i; k++)
			KUNIT_EXPECT_PTR_NE(test, all[k], all[i]);
	}
	for (i = 0; i < SWC_T_DMA_CHANS; i++) {
		struct swc_dma_chan *one[2];
		u64 share = 1000;

		atomic64_sub(1000, &all[i]->load);
		KUNIT_ASSERT_EQ(test, swc_dma_take(one, 2, NUMA_NO_NODE, &share, &q), 2u);
		KUNIT_EXPECT_EQ(test, share, 500ull);
		KUNIT_EXPECT_EQ(test, q.front, 1000ull);
		KUNIT_EXPECT_EQ(test, q.busy, (u32)SWC_T_DMA_CHANS);
		KUNIT_EXPECT_PTR_EQ(test, one[0], all[i]);
		for (k = 0; k < 2; k++) {
			atomic64_sub(share, &one[k]->load);
			swc_dma_put(one[k]);
		}
		atomic64_add(1000, &all[i]->load);
	}
	for (i = 0; i < SWC_T_DMA_CHANS; i++) {
		atomic64_sub(1000, &all[i]->load);
		KUNIT_EXPECT_EQ(test, (u64)atomic64_read(&all[i]->load), 0ull);
		swc_dma_put(all[i]);
	}
}

static void pool_retire(struct kunit *test)
{
	struct swc_dma_chan *all[SWC_DMA_MAX_CHANS], *left[SWC_DMA_MAX_CHANS];
	struct swc_t_fake *fake = swc_t_dma_start_forced(test);
	u32 i, k, n;

	KUNIT_ASSERT_EQ(test, take(all, SWC_DMA_MAX_CHANS, NUMA_NO_NODE), (u32)SWC_T_DMA_CHANS);
	for (i = 0; i < SWC_T_DMA_CHANS; i++) {
		struct swc_dma_chan *ch = all[(i + 1) % SWC_T_DMA_CHANS];

		swc_dma_retire(ch);
		/* It is gone already. */
		swc_dma_retire(ch);
		KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), (int)(SWC_T_DMA_CHANS - i));
		swc_dma_put(ch);
		KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), (int)(SWC_T_DMA_CHANS - i - 1));
		n = take(left, SWC_DMA_MAX_CHANS, NUMA_NO_NODE);
		KUNIT_EXPECT_EQ(test, n, SWC_T_DMA_CHANS - i - 1);
		for (k = 0; k < n; k++) {
			KUNIT_EXPECT_PTR_NE(test, left[k], ch);
			swc_dma_put(left[k]);
		}
	}
	/* With none left, the CPU does it. */
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
}

static void pool_channels(struct kunit *test)
{
	static const struct { const char *text; u32 n; } most[] = {
		{ "2", 2 }, { "0", 0 }, { "1", 1 }, { "99", SWC_T_FAKE_CHANS },
	};
	struct swc_t_dma *t = test->priv;
	u32 i;

	t->fake.nchans = SWC_T_FAKE_CHANS;
	swc_t_dma_start(test);
	for (i = 0; i < ARRAY_SIZE(most); i++) {
		swc_t_dma_set(test, "dma_channels", most[i].text);
		KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "always"), most[i].n);
		swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES),
				most[i].n ? 2 * 4000 * 8ull : 0);
		swc_t_dma_give_back(test);
	}
}

/* Nothing to do for three seconds; and back when there is. */
static void pool_idle(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start_forced(test);
	u32 i;

	for (i = 0; i < 25; i++) {
		swc_t_dma_run(test, swc_t_staged, 2, 1000, false, SWC_SUM);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 2ull);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_CHANS_GIVEN), 0ull);
		msleep(200);
	}
	for (i = 0; i < 100 && atomic_read(&fake->held); i++)
		msleep(100);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), 0);
	KUNIT_EXPECT_EQ(test, swc_t_dma_least(test), U64_MAX);
	for (i = 0; i < 100 && !atomic_read(&fake->held); i++) {
		swc_t_dma_run(test, swc_t_staged, 2, 1000, false, SWC_SUM);
		msleep(100);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), SWC_T_DMA_CHANS);
}

static void pool_never(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start(test);

	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "never"), 0u);
	KUNIT_EXPECT_EQ(test, swc_dma_least(), U64_MAX);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	flush_workqueue(swc_wq);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_CHANS_TAKEN), 0ull);
	/* Also while they are in use. */
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "always"), (u32)SWC_T_DMA_CHANS);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 2ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "never"), 0u);
	KUNIT_EXPECT_EQ(test, swc_t_fake_transfers(fake), 2u);
}

/* What is under way ends by the engine, and only then the channels go. */
static void pool_never_in_flight(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start_forced(test);
	struct swc_t_comm *c;
	struct swc_t_job *job;
	u32 i;

	swc_dma_patience_ms = SWC_T_LONG_MS;
	atomic_set(&fake->fault[SWC_T_HANG], 1);
	swc_t_dma_submit(test, &c, &job, 4000, SWC_SUM);
	for (i = 0; i < 1000 && atomic_read(&fake->fault[SWC_T_HANG]) > 0; i++)
		msleep(20);
	swc_t_dma_set(test, "dma", "never");
	flush_workqueue(swc_wq);
	KUNIT_EXPECT_EQ(test, swc_t_dma_least(test), U64_MAX);
	KUNIT_EXPECT_GE(test, atomic_read(&fake->held), 1);
	swc_t_fake_unhang(fake);
	swc_t_job_expect(job, 0);
	swc_t_job_check_sum(job);
	KUNIT_EXPECT_GE(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 1ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	swc_t_comm_end(c);
}

static void pool_bad_mode(struct kunit *test)
{
	const struct kernel_param *kp = swc_t_dma_param(test, "dma");
	struct swc_t_dma *t = test->priv;

	KUNIT_EXPECT_EQ(test, kp->ops->set("sometimes", kp), -EINVAL);
	swc_t_dma_set(test, "dma", "auto\n");
	t->text[kp->ops->get(t->text, kp)] = '\0';
	KUNIT_EXPECT_STREQ(test, t->text, "auto\n");
}

/* ------------------------------------------------------------------ measured */

/* Measured, it is not used, nor held for long. */
static void expect_useless(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "auto"), (u32)SWC_T_DMA_CHANS);
	KUNIT_EXPECT_GT(test, swc_t_fake_transfers(&t->fake), 0u);
	KUNIT_EXPECT_EQ(test, swc_t_dma_least(test), U64_MAX);
	swc_t_dma_run(test, swc_t_staged, 2, 300000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
}

static void auto_slow(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.us_per_kib = 50;
	swc_t_dma_start(test);
	expect_useless(test);
}

/* Engines that cannot address all memory are left alone: the CPU would have to copy for them. */
static void auto_narrow(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.narrow = 20;
	swc_t_dma_start(test);
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "auto"), (u32)SWC_T_DMA_CHANS);
	KUNIT_EXPECT_EQ(test, swc_t_dma_least(test), U64_MAX);
	swc_t_dma_run(test, swc_t_staged, 2, 300000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_fake_transfers(&t->fake), 0u);
	swc_t_dma_give_back(test);
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "share"), (u32)SWC_T_DMA_CHANS);
	KUNIT_EXPECT_EQ(test, swc_t_dma_least(test), U64_MAX);
	KUNIT_EXPECT_EQ(test, swc_t_fake_transfers(&t->fake), 0u);
}

/*
 * How many transfers are tried until none is left for fault @which, each of them failing by it in turn. On a
 * busy machine a measurement may make no sense, or patience end before a transfer that does not hang: then
 * some are not even tried, unless it is repeated.
 */
static u32 tried(struct kunit *test, struct swc_t_fake *fake, u32 which)
{
	u32 n = 1, misses = 0;

	while (n < 20 && misses < 5) {
		bool fired;

		if (which == SWC_T_HANG)
			swc_dma_patience_ms = SWC_T_SHORT_MS << misses;
		atomic_set(&fake->fault[which], n);
		KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "auto"), 2u);
		fired = atomic_read(&fake->fault[which]) <= 0;
		if (fired)
			KUNIT_EXPECT_EQ_MSG(test, swc_t_dma_least(test), U64_MAX, "fault %u, %u", which, n);
		atomic_set(&fake->fault[which], 0);
		swc_t_dma_give_back(test);
		misses = fired ? 0 : misses + 1;
		n += fired;
	}
	return n - 1;
}

/* The first, second, ... of the transfers of a measurement fails, or hangs. */
static void auto_fails(struct kunit *test)
{
	/* Three small ones and three large ones of one channel, and of both. */
	const u32 all = 6 + 2 * 6;
	struct swc_t_dma *t = test->priv;
	struct swc_t_fake *fake;
	u32 which;

	t->fake.nchans = 2;
	/* So slow that what is large takes longer on any clock. */
	t->fake.us_per_kib = 2;
	fake = swc_t_dma_start(test);
	for (which = SWC_T_FAIL_PREP; which <= SWC_T_HANG; which++)
		KUNIT_EXPECT_EQ_MSG(test, tried(test, fake, which), all, "fault %u", which);
}

/* What is measured: a copy that somebody waits for. It tells whether it worked. */
static void auto_try(struct kunit *test)
{
	u8 *from = kunit_kmalloc(test, BYTES, GFP_KERNEL), *to = kunit_kmalloc(test, BYTES, GFP_KERNEL);
	struct swc_dma_chan *ch, *all[SWC_DMA_MAX_CHANS];
	struct swc_t_dma *t = test->priv;
	u32 i, which;

	KUNIT_ASSERT_NOT_NULL(test, from);
	KUNIT_ASSERT_NOT_NULL(test, to);
	t->fake.align = 6;
	t->fake.max_seg = 5000;
	swc_t_dma_start_forced(test);
	KUNIT_ASSERT_EQ(test, take(&ch, 1, NUMA_NO_NODE), 1u);
	for (i = 0; i < BYTES; i++)
		from[i] = i * 7;
	for (which = SWC_T_FAIL_PREP; which < SWC_T_HANG; which++) {
		memset(to, 0, BYTES);
		KUNIT_EXPECT_TRUE(test, swc_dma_try(&ch, 1, to, from, BYTES / 2));
		KUNIT_EXPECT_EQ(test, memcmp(to, from, BYTES / 2), 0);
		KUNIT_EXPECT_NULL(test, memchr_inv(to + BYTES / 2, 0, BYTES / 2));
		atomic_set(&t->fake.fault[which], 3);
		KUNIT_EXPECT_FALSE(test, swc_dma_try(&ch, 1, to, from, BYTES));
		atomic_set(&t->fake.fault[which], 0);
	}
	swc_dma_put(ch);
	/* By several, whose parts do not come out even. */
	KUNIT_ASSERT_EQ(test, take(all, 3, NUMA_NO_NODE), 3u);
	memset(to, 0, BYTES);
	KUNIT_EXPECT_TRUE(test, swc_dma_try(all, 3, to, from, BYTES - 128));
	KUNIT_EXPECT_EQ(test, memcmp(to, from, BYTES - 128), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(to + BYTES - 128, 0, 128));
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, (u64)atomic64_read(&all[i]->load), 0ull);
		swc_dma_put(all[i]);
	}
	/* It is nobody's operation. */
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
}

/* What was taken by force is measured when force ends, though it is in use. */
static void auto_after_force(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.us_per_kib = 20;
	swc_t_dma_start_forced(test);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 2ull);
	swc_t_dma_set(test, "dma", "auto");
	flush_workqueue(swc_wq);
	swc_t_dma_run(test, swc_t_staged, 2, 40000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	flush_workqueue(swc_wq);
	KUNIT_EXPECT_EQ(test, swc_t_dma_least(test), U64_MAX);
}

#define SPEEDS(one_mib, all_mib)	{ .cpu_mib = 800000, .nchans = 4, .one = { 40000, one_mib }, \
					  .all = { 90000, all_mib } }
#define ONE_IS_FAST	SPEEDS(400000, 300000)
#define ALL_ARE_FAST	SPEEDS(1000000, 250000)
#define NONE_IS_FAST	SPEEDS(800000, 790000)

struct promise {
	struct swc_dma_speeds s;
	u64 bytes;
	u64 load;
	u32 busy;
	u32 workers;
	bool faster;
};

/* (start + mib * load) * 9 / 8 < cpu_mib * bytes / workers, in ns and MiB */
static void worth_promises(struct kunit *test)
{
	static const struct promise promises[] = {
		/* 270 us against 400, and against 200 */
		{ ONE_IS_FAST, SZ_512K, SZ_512K, 1, 1, true },
		{ ONE_IS_FAST, SZ_512K, SZ_512K, 1, 2, false },
		/* 101 us against 100; 80 us against 100 */
		{ ONE_IS_FAST, SZ_128K, SZ_128K, 1, 1, false },
		{ ONE_IS_FAST, SZ_128K, SZ_64K, 1, 1, true },
		/* Something else is in front: 2.3 ms against 800 us */
		{ ONE_IS_FAST, SZ_1M, 5 * SZ_1M, 1, 1, false },
		/* Two, 600 us for a MiB of each: 776 us against 800, and 400; for two MiB 800 */
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

	for (i = 0; i < ARRAY_SIZE(promises); i++) {
		const struct promise *p = &promises[i];

		KUNIT_EXPECT_EQ_MSG(test, swc_dma_is_faster(&p->s, p->bytes, p->load, p->busy, p->workers),
				    p->faster, "promise %u", i);
	}
}

/* The least that is shown is where the promises begin. */
static void worth_least(struct kunit *test)
{
	static const struct swc_dma_speeds one = ONE_IS_FAST, all = ALL_ARE_FAST, none = NONE_IS_FAST;
	u64 least = swc_dma_least_of(&one);

	KUNIT_EXPECT_GT(test, least, (u64)SZ_128K);
	KUNIT_EXPECT_LT(test, least, (u64)SZ_256K);
	KUNIT_EXPECT_FALSE(test, swc_dma_is_faster(&one, least - 64, least - 64, 1, 1));
	KUNIT_EXPECT_TRUE(test, swc_dma_is_faster(&one, least + 64, least + 64, 1, 1));
	/* From where on there are two. */
	KUNIT_EXPECT_EQ(test, swc_dma_least_of(&all), (u64)SZ_2M);
	KUNIT_EXPECT_EQ(test, swc_dma_least_of(&none), U64_MAX);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(pool_order),
	KUNIT_CASE(pool_busy),
	KUNIT_CASE(pool_shares),
	KUNIT_CASE(pool_retire),
	KUNIT_CASE(pool_channels),
	KUNIT_CASE_SLOW(pool_idle),
	KUNIT_CASE(pool_never),
	KUNIT_CASE_SLOW(pool_never_in_flight),
	KUNIT_CASE(pool_bad_mode),
	KUNIT_CASE(auto_slow),
	KUNIT_CASE(auto_narrow),
	KUNIT_CASE_SLOW(auto_fails),
	KUNIT_CASE(auto_after_force),
	KUNIT_CASE(auto_try),
	KUNIT_CASE(worth_promises),
	KUNIT_CASE(worth_least),
	{}
};

struct kunit_suite swc_dma_pool_suite = {
	.name = "swc_dma_pool", .init = swc_t_dma_init, .exit = swc_t_dma_exit, .test_cases = cases,
};
