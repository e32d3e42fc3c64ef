// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA engines that fail: wherever they do, operations are right, by the CPU, and nothing is lost.
 */
#include <linux/delay.h>

#include "dma/engine.h"
#include "dma_harness.h"

/* ------------------------------------------------------------------ faults */

/* Not the engine's, but of the memory that it is to see. */
#define FAIL_MAP	SWC_T_FAULTS

/*
 * The n-th chance of a fault, until one operation is through without. Both copies of an operation, and by xor
 * both reductions, which may have been prepared, take four descriptors each.
 */
static void sweep(struct kunit *test, u32 which, u8 redop)
{
	u64 jobs = redop == SWC_BXOR ? 4 : 2;
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_dma *t = test->priv;
	struct swc_t_fake *fake = &t->fake;
	atomic_t *fault = which == FAIL_MAP ? &swc_t_refuse_map : &fake->fault[which];
	struct swc_t_comm *c;
	u32 n, tries = 0;

	fake->max_xor = 4;
	fake->max_seg = 16000;
	swc_t_dma_start_forced(test);
	c = swc_t_comm(test, 2, 20000);
	swc_t_job_init(job, c, swc_t_staged, 8000, false);
	for (n = 1; n < 100; n++) {
		bool fired, again;

		swc_t_dma_mark(test);
		atomic_set(fault, n);
		swc_t_dma_run_with(job, redop);
		fired = atomic_read(fault) <= 0;
		atomic_set(fault, 0);
		/* On a busy machine a channel may look as if it hung: again, with more patience. */
		again = !fired && which == SWC_T_HANG && tries < 5 &&
			swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS);
		if (!fired && !again)
			break;
		KUNIT_EXPECT_GE_MSG(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 1ull,
				    "the %u-th fails", n);
		if (which == SWC_T_FAIL_SUBMIT || which == SWC_T_FAIL_TRANSFER || which == FAIL_MAP) {
			KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 1ull);
			KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), jobs - 1);
			KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), SWC_T_DMA_CHANS);
		}
		if (which == SWC_T_HANG) {
			flush_workqueue(swc_wq);
			KUNIT_EXPECT_LT(test, atomic_read(&fake->held), SWC_T_DMA_CHANS);
			swc_t_dma_give_back(test);
			KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "always"), (u32)SWC_T_DMA_CHANS);
			swc_dma_patience_ms = again ? 2000 : SWC_T_SHORT_MS;
		}
		n -= again;
		tries += again;
	}
	KUNIT_EXPECT_GE(test, n, 4 * (u32)jobs + 1);
	KUNIT_EXPECT_LT(test, n, 100u);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), jobs);
	swc_t_comm_end(c);
}

static void fault_prepare(struct kunit *test)
{
	sweep(test, SWC_T_FAIL_PREP, SWC_SUM);
}

static void fault_prepare_xor(struct kunit *test)
{
	sweep(test, SWC_T_FAIL_PREP, SWC_BXOR);
}

static void fault_submit(struct kunit *test)
{
	sweep(test, SWC_T_FAIL_SUBMIT, SWC_SUM);
}

static void fault_submit_xor(struct kunit *test)
{
	sweep(test, SWC_T_FAIL_SUBMIT, SWC_BXOR);
}

static void fault_transfer(struct kunit *test)
{
	sweep(test, SWC_T_FAIL_TRANSFER, SWC_SUM);
}

static void fault_transfer_xor(struct kunit *test)
{
	sweep(test, SWC_T_FAIL_TRANSFER, SWC_BXOR);
}

/* A driver that tells of an error only who asks for the status. */
static void fault_transfer_quiet(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.quiet = true;
	sweep(test, SWC_T_FAIL_TRANSFER, SWC_SUM);
}

/* One that does its descriptors in any order: each has an interrupt. */
static void fault_transfer_reorder(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.reorder = true;
	sweep(test, SWC_T_FAIL_TRANSFER, SWC_BXOR);
}

/* Each source, and the destination. */
static void fault_map(struct kunit *test)
{
	sweep(test, FAIL_MAP, SWC_SUM);
}

static void fault_map_xor(struct kunit *test)
{
	sweep(test, FAIL_MAP, SWC_BXOR);
}

static void fault_hang(struct kunit *test)
{
	swc_dma_patience_ms = SWC_T_SHORT_MS;
	sweep(test, SWC_T_HANG, SWC_SUM);
}

static void fault_hang_xor(struct kunit *test)
{
	swc_dma_patience_ms = SWC_T_SHORT_MS;
	sweep(test, SWC_T_HANG, SWC_BXOR);
}

/* A driver that cannot say whether a callback is running when it has been stopped. */
static void fault_hang_deaf(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.deaf = true;
	swc_dma_patience_ms = SWC_T_SHORT_MS;
	sweep(test, SWC_T_HANG, SWC_SUM);
}

/* It hangs, and the first attempt to stop it fails, too. */
static void fault_terminate(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start_forced(test);

	swc_dma_patience_ms = SWC_T_SHORT_MS;
	atomic_set(&fake->fault[SWC_T_HANG], 1);
	atomic_set(&fake->fault[SWC_T_FAIL_TERMINATE], 1);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_GE(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 1ull);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->fault[SWC_T_FAIL_TERMINATE]), 0);
	KUNIT_EXPECT_GE(test, atomic_read(&fake->terminated), 1);
}

/* Fewer channels than there are; or none, and the CPU does it. */
static void fault_alloc(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start(test);
	u32 n;

	for (n = 1; n <= SWC_T_DMA_CHANS + 1; n++) {
		atomic_set(&fake->fault[SWC_T_FAIL_ALLOC], n);
		KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "always"), n - 1);
		atomic_set(&fake->fault[SWC_T_FAIL_ALLOC], 0);
		swc_t_dma_run(test, swc_t_staged, 2, 300000, false, SWC_SUM);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES),
				n > 1 ? 2 * 300000 * 8ull : 0);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
		swc_t_dma_give_back(test);
	}
}

/* Any of them, at random, all the time. */
static void fault_storm(struct kunit *test)
{
	static const swc_t_planner planners[] = { swc_t_ring3, swc_t_direct, swc_t_staged };
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_dma *t = test->priv;
	struct swc_t_comm *c;
	u32 i;

	t->fake.max_xor = 4;
	t->fake.max_seg = 8192;
	t->fake.max_descs = 3;
	t->fake.often = 12;
	t->fake.reorder = true;
	swc_t_dma_start_forced(test);
	c = swc_t_comm(test, 4, 20000);
	for (i = 0; i < 12; i++) {
		swc_t_job_init(job, c, planners[i % 3], 20000 + i, false);
		swc_t_dma_run_with(job, i & 1 ? SWC_BXOR : SWC_SUM);
	}
	KUNIT_EXPECT_GT(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_GT(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ channels that hang */

/* Each time one channel is lost; when all are, others are found. */
static void hang_until_none(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;
	struct swc_t_fake *fake = &t->fake;
	u32 i, n;

	fake->nchans = 2;
	swc_t_dma_start_forced(test);
	swc_dma_patience_ms = SWC_T_SHORT_MS;
	for (n = 0; n < 10 && atomic_read(&fake->held); n++) {
		int before = atomic_read(&fake->held);

		atomic_set(&fake->fault[SWC_T_HANG], 1);
		swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
		KUNIT_EXPECT_GE(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 1ull);
		/* The reference of the watch is the last. */
		flush_workqueue(swc_wq);
		KUNIT_EXPECT_LT(test, atomic_read(&fake->held), before);
	}
	KUNIT_EXPECT_LE(test, n, 2u);
	KUNIT_EXPECT_GE(test, atomic_read(&fake->terminated), (int)n);
	swc_dma_patience_ms = 2000;
	for (i = 0; i < 100; i++) {
		swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
		if (swc_t_dma_grown(test, SWC_STAT_DMA_JOBS))
			break;
		msleep(100);
	}
	KUNIT_EXPECT_LT(test, i, 100u);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), 2);
}

/* It neither answers nor stops: the operation waits, since its memory may still be written. */
static void hang_stubborn(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start_forced(test);
	struct swc_t_comm *c;
	struct swc_t_job *job;
	u32 r, stops;

	for (stops = 0; stops < 2; stops++) {
		swc_dma_patience_ms = SWC_T_SHORT_MS;
		WRITE_ONCE(fake->stubborn, true);
		atomic_set(&fake->fault[SWC_T_HANG], 1);
		swc_t_dma_submit(test, &c, &job, 4000, SWC_SUM);
		msleep(10 * SWC_T_SHORT_MS);
		for (r = 0; r < 2; r++)
			KUNIT_EXPECT_EQ(test, atomic_read(&job->done[r].calls), 0);
		/* At last it can be stopped, or it answers. */
		if (stops)
			WRITE_ONCE(fake->stubborn, false);
		else
			swc_t_fake_unhang(fake);
		swc_t_job_expect(job, 0);
		swc_t_job_check_sum(job);
		WRITE_ONCE(fake->stubborn, false);
		swc_t_comm_end(c);
		swc_t_dma_give_back(test);
		KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "always"), (u32)SWC_T_DMA_CHANS);
	}
}

/* An operation that is given up ends when the engine has let go of its memory. */
static void hang_abort(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start_forced(test);
	struct swc_t_comm *c;
	struct swc_t_job *job;
	u32 r;

	swc_dma_patience_ms = SWC_T_LONG_MS;
	atomic_set(&fake->fault[SWC_T_HANG], 1);
	swc_t_dma_submit(test, &c, &job, 4000, SWC_SUM);
	swc_comm_abort(swc_t_the(c), -ECANCELED, 0, 0, "tested");
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->terminated), 0);
	swc_t_job_expect(job, -ECANCELED);
	KUNIT_EXPECT_GE(test, atomic_read(&fake->terminated), 1);
	for (r = 0; r < 2; r++)
		KUNIT_EXPECT_EQ(test, atomic_read(&job->done[r].calls), 1);
	swc_t_comm_end(c);
}

/* So does what has been prepared and is not going to be launched: its rank waits for the other's copy. */
static void hang_abort_prepared(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;
	struct swc_t_comm *c;
	struct swc_t_job *job;
	u32 i;

	t->fake.max_xor = 4;
	swc_t_dma_start_forced(test);
	swc_dma_patience_ms = SWC_T_LONG_MS;
	atomic_set(&t->fake.fault[SWC_T_HANG], 2);
	swc_t_dma_submit(test, &c, &job, 4000, SWC_BXOR);
	for (i = 0; i < 1000 && !swc_t_dma_grown(test, SWC_STAT_DMA_PREPARED); i++)
		usleep_range(1000, 2000);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_PREPARED), 1ull);
	swc_comm_abort(swc_t_the(c), -ECANCELED, 0, 0, "tested");
	swc_t_job_expect(job, -ECANCELED);
	/* Of four moves one copy was done, and one has failed. */
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 1ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 1ull);
	swc_t_comm_end(c);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(fault_prepare),
	KUNIT_CASE(fault_prepare_xor),
	KUNIT_CASE(fault_submit),
	KUNIT_CASE(fault_submit_xor),
	KUNIT_CASE(fault_transfer),
	KUNIT_CASE(fault_transfer_xor),
	KUNIT_CASE(fault_transfer_quiet),
	KUNIT_CASE(fault_transfer_reorder),
	KUNIT_CASE(fault_map),
	KUNIT_CASE(fault_map_xor),
	KUNIT_CASE_SLOW(fault_hang),
	KUNIT_CASE_SLOW(fault_hang_xor),
	KUNIT_CASE_SLOW(fault_hang_deaf),
	KUNIT_CASE(fault_terminate),
	KUNIT_CASE(fault_alloc),
	KUNIT_CASE(fault_storm),
	KUNIT_CASE_SLOW(hang_until_none),
	KUNIT_CASE_SLOW(hang_stubborn),
	KUNIT_CASE_SLOW(hang_abort),
	KUNIT_CASE_SLOW(hang_abort_prepared),
	{}
};

struct kunit_suite swc_dma_faults_suite = {
	.name = "swc_dma_faults", .init = swc_t_dma_init, .exit = swc_t_dma_exit, .test_cases = cases,
};
