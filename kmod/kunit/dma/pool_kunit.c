// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pool of DMA channels: which are acquired and chosen, how long they are held, and how the parameters
 * rule them.
 */
#include "dma/engine.h"
#include "kunit/dma/dma_harness.h"

static void expect_order(struct kunit *test, struct swc_dma_chan **all, const u32 *order, int node)
{
	struct swc_dma_chan *some[SWC_DMA_MAX_CHANS];
	u32 i, most;

	for (most = 1; most <= SWC_T_DMA_CHANS; most++) {
		KUNIT_ASSERT_EQ(test, swc_t_dma_choose(some, most, node), most);
		for (i = 0; i < most; i++) {
			KUNIT_EXPECT_PTR_EQ(test, some[i], all[order[i]]);
			swc_dma_chan_put(some[i]);
		}
	}
}

/* Channels of the memory's NUMA node come first; among them, those with the least load. */
static void pool_order(struct kunit *test)
{
	static const u64 loads[SWC_T_DMA_CHANS] = { 300, 100, 400, 200 };
	static const int nodes[SWC_T_DMA_CHANS] = { 1, 0, 1, 0 };
	static const u32 any[SWC_T_DMA_CHANS] = { 1, 3, 0, 2 }, near_1[SWC_T_DMA_CHANS] = { 0, 2, 1, 3 };
	struct swc_dma_chan *all[SWC_DMA_MAX_CHANS];
	u32 i;

	swc_t_dma_start_always(test);
	KUNIT_ASSERT_EQ(test, swc_t_dma_choose(all, SWC_DMA_MAX_CHANS, NUMA_NO_NODE), (u32)SWC_T_DMA_CHANS);
	for (i = 0; i < SWC_T_DMA_CHANS; i++) {
		KUNIT_EXPECT_EQ(test, all[i]->node, NUMA_NO_NODE);
		KUNIT_EXPECT_EQ(test, atomic64_read(&all[i]->load), 0ll);
		swc_dma_chan_reserve(all[i], loads[i]);
	}
	expect_order(test, all, any, 0);
	for (i = 0; i < SWC_T_DMA_CHANS; i++)
		all[i]->node = nodes[i];
	expect_order(test, all, any, 0);
	expect_order(test, all, any, 2);
	expect_order(test, all, near_1, 1);
	for (i = 0; i < SWC_T_DMA_CHANS; i++) {
		swc_dma_chan_unreserve(all[i], loads[i]);
		swc_dma_chan_put(all[i]);
	}
}

/* No busy channel is chosen while others are idle. */
static void pool_busy(struct kunit *test)
{
	struct swc_dma_chan *all[SWC_DMA_MAX_CHANS];
	struct swc_t_fake *fake = swc_t_dma_start_always(test);
	u32 i;

	KUNIT_ASSERT_EQ(test, swc_t_dma_choose(all, SWC_DMA_MAX_CHANS, NUMA_NO_NODE), (u32)SWC_T_DMA_CHANS);
	for (i = 0; i < SWC_T_DMA_CHANS - 1; i++)
		swc_dma_chan_reserve(all[i], SZ_1G);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 2ull);
	KUNIT_EXPECT_EQ(test, swc_t_fake_nused(fake), 1u);
	for (i = 0; i < SWC_T_DMA_CHANS - 1; i++)
		swc_dma_chan_unreserve(all[i], SZ_1G);
	for (i = 0; i < SWC_T_DMA_CHANS; i++)
		swc_dma_chan_put(all[i]);
}

/* A channel counts as busy from the moment it is chosen. */
static void pool_shares(struct kunit *test)
{
	struct swc_dma_chan *all[SWC_DMA_MAX_CHANS];
	struct swc_dma_queue q;
	u32 i, k;

	swc_t_dma_start_always(test);
	for (i = 0; i < SWC_T_DMA_CHANS; i++) {
		u64 share = 1000;

		KUNIT_ASSERT_EQ(test, swc_dma_pool_choose(&all[i], 1, NUMA_NO_NODE, &share, &q), 1u);
		KUNIT_EXPECT_EQ(test, share, 1000ull);
		KUNIT_EXPECT_EQ(test, q.front, 0ull);
		KUNIT_EXPECT_EQ(test, q.busy, i + 1);
		for (k = 0; k < i; k++)
			KUNIT_EXPECT_PTR_NE(test, all[k], all[i]);
	}
	for (i = 0; i < SWC_T_DMA_CHANS; i++) {
		struct swc_dma_chan *one[2];
		u64 share = 1000;

		swc_dma_chan_unreserve(all[i], 1000);
		KUNIT_ASSERT_EQ(test, swc_dma_pool_choose(one, 2, NUMA_NO_NODE, &share, &q), 2u);
		KUNIT_EXPECT_EQ(test, share, 500ull);
		KUNIT_EXPECT_EQ(test, q.front, 1000ull);
		KUNIT_EXPECT_EQ(test, q.busy, (u32)SWC_T_DMA_CHANS);
		KUNIT_EXPECT_PTR_EQ(test, one[0], all[i]);
		for (k = 0; k < 2; k++) {
			swc_dma_chan_unreserve(one[k], share);
			swc_dma_chan_put(one[k]);
		}
		swc_dma_chan_reserve(all[i], 1000);
	}
	for (i = 0; i < SWC_T_DMA_CHANS; i++) {
		swc_dma_chan_unreserve(all[i], 1000);
		KUNIT_EXPECT_EQ(test, (u64)atomic64_read(&all[i]->load), 0ull);
		swc_dma_chan_put(all[i]);
	}
}

/* A lost channel is not chosen any more, and released with its last reference. */
static void pool_lost(struct kunit *test)
{
	struct swc_dma_chan *all[SWC_DMA_MAX_CHANS], *left[SWC_DMA_MAX_CHANS];
	struct swc_t_fake *fake = swc_t_dma_start_always(test);
	u32 i, k, n;

	KUNIT_ASSERT_EQ(test, swc_t_dma_choose(all, SWC_DMA_MAX_CHANS, NUMA_NO_NODE), (u32)SWC_T_DMA_CHANS);
	for (i = 0; i < SWC_T_DMA_CHANS; i++) {
		struct swc_dma_chan *ch = all[(i + 1) % SWC_T_DMA_CHANS];

		ch->lost(ch);
		/* Again: no effect. */
		ch->lost(ch);
		KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), (int)(SWC_T_DMA_CHANS - i));
		swc_dma_chan_put(ch);
		KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), (int)(SWC_T_DMA_CHANS - i - 1));
		n = swc_t_dma_choose(left, SWC_DMA_MAX_CHANS, NUMA_NO_NODE);
		KUNIT_EXPECT_EQ(test, n, SWC_T_DMA_CHANS - i - 1);
		for (k = 0; k < n; k++) {
			KUNIT_EXPECT_PTR_NE(test, left[k], ch);
			swc_dma_chan_put(left[k]);
		}
	}
	/* With none left, the CPU copies. */
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
		swc_t_dma_release(test);
	}
}

/* Channels are held while they are used, released when idle, and acquired again on demand. */
static void pool_idle(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start_always(test);
	u32 i;

	/* Setting the mode checks whether they are idle. */
	swc_t_dma_run(test, swc_t_staged, 2, 1000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 2ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "always"), (u32)SWC_T_DMA_CHANS);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_CHANS_RELEASED), 0ull);
	swc_dma_idle_ms = 0;
	swc_t_dma_set(test, "dma", "always");
	flush_workqueue(swc_wq);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), 0);
	KUNIT_EXPECT_EQ(test, swc_t_dma_least(test), U64_MAX);
	/* Now by time, after an operation has demanded them. */
	for (i = 0; i < 3; i++) {
		swc_dma_idle_ms = 100;
		swc_t_dma_run(test, swc_t_staged, 2, 1000, false, SWC_SUM);
		flush_workqueue(swc_wq);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_CHANS_ACQUIRED),
				(u64)SWC_T_DMA_CHANS);
		KUNIT_EXPECT_TRUE(test, swc_t_dma_wait(!atomic_read(&fake->held)));
		/* The next demand need not wait. */
		swc_t_dma_set(test, "dma", "always");
	}
}

static void pool_never(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start(test);

	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "never"), 0u);
	KUNIT_EXPECT_EQ(test, swc_dma_pool_least(), U64_MAX);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	flush_workqueue(swc_wq);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_CHANS_ACQUIRED), 0ull);
	/* Channels that are held are released. */
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "always"), (u32)SWC_T_DMA_CHANS);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 2ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "never"), 0u);
	KUNIT_EXPECT_EQ(test, swc_t_fake_transfers(fake), 2u);
}

/* A job in flight is ended by its engine, and only then its channels are released. */
static void pool_never_in_flight(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start_always(test);
	struct swc_t_dma *t = test->priv;
	struct swc_t_comm *c;
	struct swc_t_job *job;

	t->expire = false;
	atomic_set(&fake->fault[SWC_T_FAULT_HANG], 1);
	swc_t_dma_submit(test, &c, &job, 4000, SWC_SUM);
	swc_t_dma_wait_hung(test);
	swc_t_dma_set(test, "dma", "never");
	flush_workqueue(swc_wq);
	KUNIT_EXPECT_EQ(test, swc_t_dma_least(test), U64_MAX);
	KUNIT_EXPECT_GE(test, atomic_read(&fake->held), 1);
	swc_t_dma_unhang(test);
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

static struct kunit_case cases[] = {
	KUNIT_CASE(pool_order),
	KUNIT_CASE(pool_busy),
	KUNIT_CASE(pool_shares),
	KUNIT_CASE(pool_lost),
	KUNIT_CASE(pool_channels),
	KUNIT_CASE(pool_idle),
	KUNIT_CASE(pool_never),
	KUNIT_CASE(pool_never_in_flight),
	KUNIT_CASE(pool_bad_mode),
	{}
};

struct kunit_suite swc_dma_pool_suite = {
	.name = "swc_dma_pool", .init = swc_t_dma_init, .exit = swc_t_dma_exit, .test_cases = cases,
};
