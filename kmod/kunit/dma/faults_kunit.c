// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA engines that fail: wherever they do, the CPU completes the operation correctly and nothing leaks.
 */
#include "dma/engine.h"
#include "kunit/dma/dma_harness.h"

/* ------------------------------------------------------------------ faults */

/* The mapping of memory, not the engine, fails. */
#define FAIL_MAP	SWC_T_FAULTS

/*
 * An operation with the fault at the n-th opportunity, for each n until there is none. Both copies of an
 * operation, and by xor both reductions, which may have been prepared, take four descriptors each.
 */
static void sweep(struct kunit *test, u32 which, u8 redop)
{
	u64 jobs = redop == SWC_BXOR ? 4 : 2;
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_dma *t = test->priv;
	struct swc_t_fake *fake = &t->fake;
	atomic_t *fault = which == FAIL_MAP ? &swc_t_refuse_map : &fake->fault[which];
	struct swc_t_comm *c;
	u32 n;

	fake->max_xor = 4;
	fake->max_seg = 16000;
	swc_t_dma_start_always(test);
	c = swc_t_comm(test, 2, SWC_T_NO_DEADLINE);
	swc_t_job_init(job, c, swc_t_staged, 8000, false);
	for (n = 1; n < 100; n++) {
		bool fired;

		swc_t_dma_mark(test);
		atomic_set(fault, n);
		swc_t_dma_run_with(job, redop);
		fired = atomic_read(fault) <= 0;
		atomic_set(fault, 0);
		if (!fired)
			break;
		KUNIT_EXPECT_GE_MSG(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 1ull,
				    "the %u-th fails", n);
		if (which == SWC_T_FAIL_SUBMIT || which == SWC_T_FAIL_TRANSFER || which == FAIL_MAP) {
			KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 1ull);
			KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), jobs - 1);
			KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), SWC_T_DMA_CHANS);
		}
		if (which == SWC_T_FAULT_HANG) {
			flush_workqueue(swc_wq);
			KUNIT_EXPECT_LT(test, atomic_read(&fake->held), SWC_T_DMA_CHANS);
			swc_t_dma_release(test);
			KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "always"), (u32)SWC_T_DMA_CHANS);
		}
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

/* A driver that reports an error only by status. */
static void fault_transfer_status(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.status_only = true;
	sweep(test, SWC_T_FAIL_TRANSFER, SWC_SUM);
}

/* A driver that completes descriptors in any order: each has an interrupt. */
static void fault_transfer_reorder(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.reorder = true;
	sweep(test, SWC_T_FAIL_TRANSFER, SWC_BXOR);
}

/* The mapping of each source and of the destination. */
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
	sweep(test, SWC_T_FAULT_HANG, SWC_SUM);
}

static void fault_hang_xor(struct kunit *test)
{
	sweep(test, SWC_T_FAULT_HANG, SWC_BXOR);
}

/* A driver that cannot tell whether a callback is running when it has been stopped. */
static void fault_hang_no_sync(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.no_sync = true;
	sweep(test, SWC_T_FAULT_HANG, SWC_SUM);
}

/* A channel hangs, and the first attempt to stop it fails. */
static void fault_terminate(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start_always(test);

	atomic_set(&fake->fault[SWC_T_FAULT_HANG], 1);
	atomic_set(&fake->fault[SWC_T_FAIL_TERMINATE], 1);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_GE(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 1ull);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->refused), 1);
	KUNIT_EXPECT_GE(test, atomic_read(&fake->terminated), 1);
}

/* Only some of the channels can be acquired; or none, and the CPU copies. */
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
		swc_t_dma_release(test);
	}
}

/* Faults at random, all the time. */
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
	t->fake.fault_rate = 12;
	t->fake.reorder = true;
	swc_t_dma_start_always(test);
	c = swc_t_comm(test, 4, SWC_T_NO_DEADLINE);
	for (i = 0; i < 12; i++) {
		swc_t_job_init(job, c, planners[i % 3], 20000 + i, false);
		swc_t_dma_run_with(job, i & 1 ? SWC_BXOR : SWC_SUM);
	}
	KUNIT_EXPECT_GT(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_GT(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	swc_t_comm_end(c);
}

/* Channels that report every transfer as failed are given up, and acquired again some time later. */
static void fail_until_none(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;
	struct swc_t_fake *fake = &t->fake;
	u32 n;

	fake->nchans = 2;
	swc_t_dma_start_always(test);
	WRITE_ONCE(fake->spoils, true);
	for (n = 0; n < 100 && atomic_read(&fake->held); n++) {
		swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
		flush_workqueue(swc_wq);
	}
	KUNIT_EXPECT_GE(test, n, 8u);
	KUNIT_EXPECT_LT(test, n, 100u);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	WRITE_ONCE(fake->spoils, false);
	swc_dma_idle_ms = 0;
	swc_t_dma_hold(test, "always");
	swc_dma_idle_ms = 2 * SWC_T_HANG;
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "always"), 2u);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 2ull);
}

/* ------------------------------------------------------------------ channels that hang */

/* Each hang loses one channel. When all are lost, channels are acquired again. */
static void hang_until_none(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;
	struct swc_t_fake *fake = &t->fake;
	u32 n;

	fake->nchans = 2;
	swc_t_dma_start_always(test);
	for (n = 0; n < 10 && atomic_read(&fake->held); n++) {
		int before = atomic_read(&fake->held);

		atomic_set(&fake->fault[SWC_T_FAULT_HANG], 1);
		swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
		KUNIT_EXPECT_GE(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 1ull);
		/* The watch has the last reference. */
		flush_workqueue(swc_wq);
		KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), before - 1);
	}
	KUNIT_EXPECT_EQ(test, n, 2u);
	KUNIT_EXPECT_GE(test, atomic_read(&fake->terminated), (int)n);
	/* The empty pool counts as idle some time later. */
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "always"), 0u);
	swc_dma_idle_ms = 0;
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "always"), 0u);
	swc_dma_idle_ms = 2 * SWC_T_HANG;
	KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "always"), 2u);
	swc_t_dma_run(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 2ull);
}

/* A channel neither answers nor stops: the operation waits, since the engine may still write. */
static void hang_refuse_stop(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start_always(test);
	struct swc_t_comm *c;
	struct swc_t_job *job;
	u32 r, stops;

	for (stops = 0; stops < 2; stops++) {
		int refused = atomic_read(&fake->refused);

		WRITE_ONCE(fake->refuse_stop, true);
		atomic_set(&fake->fault[SWC_T_FAULT_HANG], 1);
		swc_t_dma_submit(test, &c, &job, 4000, SWC_SUM);
		KUNIT_EXPECT_TRUE(test, swc_t_dma_wait(atomic_read(&fake->refused) > refused));
		flush_workqueue(swc_wq);
		for (r = 0; r < 2; r++)
			KUNIT_EXPECT_EQ(test, atomic_read(&job->done[r].calls), 0);
		/* Now it stops, or answers. */
		if (stops)
			WRITE_ONCE(fake->refuse_stop, false);
		else
			swc_t_dma_unhang(test);
		swc_t_job_expect(job, 0);
		swc_t_job_check_sum(job);
		WRITE_ONCE(fake->refuse_stop, false);
		swc_t_comm_end(c);
		swc_t_dma_release(test);
		KUNIT_EXPECT_EQ(test, swc_t_dma_hold(test, "always"), (u32)SWC_T_DMA_CHANS);
	}
}

/* An aborted operation completes when the engine cannot write to its memory any more. */
static void hang_abort(struct kunit *test)
{
	struct swc_t_fake *fake = swc_t_dma_start_always(test);
	struct swc_t_dma *t = test->priv;
	struct swc_t_comm *c;
	struct swc_t_job *job;
	u32 r;

	t->expire = false;
	atomic_set(&fake->fault[SWC_T_FAULT_HANG], 1);
	swc_t_dma_submit(test, &c, &job, 4000, SWC_SUM);
	swc_t_dma_wait_hung(test);
	swc_comm_abort(swc_t_first_comm(c), -ECANCELED, 0, 0, "tested");
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->terminated), 0);
	swc_t_dma_expire(test);
	swc_t_job_expect(job, -ECANCELED);
	KUNIT_EXPECT_GE(test, atomic_read(&fake->terminated), 1);
	for (r = 0; r < 2; r++)
		KUNIT_EXPECT_EQ(test, atomic_read(&job->done[r].calls), 1);
	swc_t_comm_end(c);
}

/* A job that has been prepared, while its rank waits for the other one's copy, is not launched. */
static void hang_abort_prepared(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;
	struct swc_t_comm *c;
	struct swc_t_job *job;

	t->fake.max_xor = 4;
	t->expire = false;
	swc_t_dma_start_always(test);
	atomic_set(&t->fake.fault[SWC_T_FAULT_HANG], 2);
	swc_t_dma_submit(test, &c, &job, 4000, SWC_BXOR);
	swc_t_dma_wait_hung(test);
	KUNIT_EXPECT_TRUE(test, swc_t_dma_wait(swc_t_dma_grown(test, SWC_STAT_DMA_PREPARED)));
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_PREPARED), 1ull);
	swc_comm_abort(swc_t_first_comm(c), -ECANCELED, 0, 0, "tested");
	swc_t_dma_expire(test);
	swc_t_job_expect(job, -ECANCELED);
	/* Of two copies and two reductions, one copy has been done and one has failed. */
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
	KUNIT_CASE(fault_transfer_status),
	KUNIT_CASE(fault_transfer_reorder),
	KUNIT_CASE(fault_map),
	KUNIT_CASE(fault_map_xor),
	KUNIT_CASE(fault_hang),
	KUNIT_CASE(fault_hang_xor),
	KUNIT_CASE(fault_hang_no_sync),
	KUNIT_CASE_SLOW(fault_terminate),
	KUNIT_CASE(fault_alloc),
	KUNIT_CASE(fault_storm),
	KUNIT_CASE(fail_until_none),
	KUNIT_CASE(hang_until_none),
	KUNIT_CASE_SLOW(hang_refuse_stop),
	KUNIT_CASE(hang_abort),
	KUNIT_CASE(hang_abort_prepared),
	{}
};

struct kunit_suite swc_dma_faults_suite = {
	.name = "swc_dma_faults", .init = swc_t_dma_init, .exit = swc_t_dma_exit, .test_cases = cases,
};
