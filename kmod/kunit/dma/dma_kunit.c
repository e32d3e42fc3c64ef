// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies by DMA engines: whole operations and single copies are right to the byte, whatever limits an
 * engine has, and within these limits. Engines that fail: faults_kunit.c.
 */
#include "dma/engine.h"
#include "kunit/dma/dma_harness.h"

/* Copies, and reductions by xor, that a plan makes, in vectors. Engines do no sums. */
struct shape {
	const char *name;
	swc_t_planner planner;
	u32 ranks;
	u32 copies;
	u32 xors;
};

static const struct shape shapes[] = {
	{ "staged, 2 ranks", swc_t_staged, 2, 2, 2 },
	{ "staged, 4 ranks", swc_t_staged, 4, 4, 4 },
	{ "staged, 5 ranks", swc_t_staged, 5, 5, 0 },
	{ "direct, 1 rank", swc_t_direct, 1, 1, 0 },
	{ "direct, 3 ranks", swc_t_direct, 3, 0, 1 },
	{ "direct, 4 ranks", swc_t_direct, 4, 0, 1 },
	{ "direct, 5 ranks", swc_t_direct, 5, 0, 0 },
	{ "ring, 2 ranks", swc_t_ring, 2, 1, 1 },
	{ "ring, 5 ranks", swc_t_ring, 5, 4, 4 },
	{ "three rings, 4 ranks", swc_t_ring3, 4, 3, 3 },
};

static void shape_name(const struct shape *s, char *desc)
{
	strscpy(desc, s->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(shape, shapes, shape_name);

static void all_counts(struct kunit *test, u8 redop, u32 vectors)
{
	static const u32 counts[] = { 1, 9, 1000, 40000, 300000 };
	const struct shape *s = test->param_value;
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_fake *fake = swc_t_dma_start_always(test);
	struct swc_t_comm *c = swc_t_comm(test, s->ranks, SWC_T_NO_DEADLINE);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		u64 bytes = counts[i] * sizeof(u64) * vectors;

		swc_t_job_init(job, c, s->planner, counts[i], false);
		swc_t_dma_mark(test);
		atomic64_set(&fake->bytes, 0);
		swc_t_dma_run_with(job, redop);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), bytes);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS) > 0, vectors > 0);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
		/* Steps behind a barrier are prepared while their ranks wait there; the last does not. */
		if (s->planner == swc_t_staged && redop == SWC_BXOR && s->xors) {
			KUNIT_EXPECT_GE(test, swc_t_dma_grown(test, SWC_STAT_DMA_PREPARED), 1ull);
			KUNIT_EXPECT_LE(test, swc_t_dma_grown(test, SWC_STAT_DMA_PREPARED), (u64)s->ranks);
		}
		/* The engine needs one pass for each destination. */
		KUNIT_EXPECT_GE(test, (u64)atomic64_read(&fake->bytes), bytes);
	}
	/* The last vectors have more than two megabytes: one channel for each. */
	if (s->planner == swc_t_staged)
		KUNIT_EXPECT_GE(test, swc_t_fake_nused(fake), 2u);
	swc_t_comm_end(c);
}

static void dma_sum(struct kunit *test)
{
	const struct shape *s = test->param_value;

	all_counts(test, SWC_SUM, s->copies);
}

static void dma_average(struct kunit *test)
{
	const struct shape *s = test->param_value;

	/* One rank's copy is also the step that divides. */
	all_counts(test, SWC_AVG, s->ranks > 1 ? s->copies : 0);
}

static void dma_xor(struct kunit *test)
{
	const struct shape *s = test->param_value;
	struct swc_t_dma *t = test->priv;

	t->fake.max_xor = 16;
	all_counts(test, SWC_BXOR, s->copies + s->xors);
}

/* Copies whose destination overlaps a source are not for engines: after an error the source would be lost. */
static void dma_in_place(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.max_xor = 16;
	swc_t_dma_start_always(test);
	swc_t_dma_run(test, swc_t_direct, 3, 30000, true, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	/* Source and destination are the same: nothing to copy. */
	swc_t_dma_run(test, swc_t_direct, 1, 30000, true, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_BYTES_COPIED), 0ull);
	/* Only the steps without a reduction. */
	swc_t_dma_run(test, swc_t_ring, 3, 30000, true, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), 2 * 30000 * 8ull);
	swc_t_dma_run(test, swc_t_staged, 3, 30000, true, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), 6 * 30000 * 8ull);
}

/* An engine that xors at most two sources; and one that has no xor. */
static void dma_few_sources(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.max_xor = 2;
	swc_t_dma_start_always(test);
	swc_t_dma_run(test, swc_t_direct, 3, 5000, false, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	swc_t_dma_run(test, swc_t_direct, 2, 5000, false, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), 5000 * 8ull);
}

static void dma_no_xor(struct kunit *test)
{
	swc_t_dma_start_always(test);
	swc_t_dma_run(test, swc_t_direct, 2, 5000, false, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
}

/* Two ranks exchange their vectors; then each adds the other's to its own. */
static struct swc_plan_writer *exchange(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, 2);

	p->hdr.window[SWC_BUF_SCRATCH].nblocks = 2;
	swc_plan_write_channel(p);
	swc_plan_write_step(p, SWC_STEP_NET);
	swc_t_send_stored(p, !rank, 0, 2, SWC_BUF_SEND);
	swc_t_recv(p, !rank, 0, 2, SWC_BUF_SCRATCH, 0, 0);
	swc_plan_write_step(p, SWC_STEP_SYNC);
	swc_plan_write_step(p, SWC_STEP_LOCAL);
	swc_t_send(p, rank, 0, 2, SWC_BUF_SEND);
	swc_t_send(p, rank, 0, 2, SWC_BUF_SCRATCH);
	swc_t_recv(p, rank, 0, 2, SWC_BUF_RECV, 0, SWC_XFER_FINAL);
	return p;
}

/*
 * A job that a rank has prepared while it waits for another node is not launched for the segments that
 * arrive from there, which an engine copies as well.
 */
static void dma_prepared_net(struct kunit *test)
{
	static const struct swc_t_layout two_nodes = { 2, 1, false, { 0, 1 } };
	static const u32 counts[] = { 7, 1000, 5000, 20000 };
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_dma *t = test->priv;
	struct swc_t_comm *c;
	u32 i;

	t->fake.max_xor = 4;
	swc_t_dma_start_always(test);
	c = swc_t_comm_on(test, 2, 20000, &two_nodes);
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		u64 bytes = counts[i] * sizeof(u64);

		swc_t_job_init(job, c, exchange, counts[i], false);
		swc_t_dma_mark(test);
		swc_t_dma_run_with(job, SWC_BXOR);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_PREPARED), 2ull);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES),
				(bytes < SWC_WIRE_DIRECT ? 4 : 2) * bytes);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	}
	swc_t_comm_end(c);
}

/* Engines do the long copies of copy steps, one after the other; the CPU does the short ones. */
static void dma_copies(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.max_seg = 4096;
	swc_t_dma_start_always(test);
	swc_t_dma_run(test, swc_t_copied, 3, 40000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), SWC_T_COPIED * 3 * 40000 * 8ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	swc_t_dma_run(test, swc_t_copied, 3, 4000, true, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), 0ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_BYTES_COPIED), SWC_T_COPIED * 3 * 4000 * 8ull);
	/* The first copies fail: the CPU does them. */
	atomic_set(&t->fake.fault[SWC_T_FAIL_PREP], 1);
	swc_t_dma_run(test, swc_t_copied, 3, 40000, false, SWC_SUM);
	KUNIT_EXPECT_GE(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 1ull);
	atomic_set(&t->fake.fault[SWC_T_FAIL_PREP], 0);
}

/* A channel with two descriptors: the job waits for them. */
static void dma_shortage(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.max_descs = 2;
	t->fake.max_seg = 4096;
	swc_t_dma_start_always(test);
	swc_t_dma_run(test, swc_t_staged, 4, 40000, false, SWC_SUM);
	KUNIT_EXPECT_GT(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_GT(test, atomic_read(&t->fake.exhausted), 0);
}

/* Descriptors without an interrupt are freed only when their status is asked for. */
static void dma_lazy_free(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.max_descs = 5;
	t->fake.max_seg = 4096;
	t->fake.lazy_free = true;
	swc_t_dma_start_always(test);
	swc_t_dma_run(test, swc_t_staged, 2, 40000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), 2 * 40000 * 8ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	KUNIT_EXPECT_GT(test, atomic_read(&t->fake.exhausted), 0);
}

/* One interrupt for each of two copies, though they take many descriptors. */
static void dma_interrupts(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.max_seg = 4096;
	swc_t_dma_start_always(test);
	swc_t_dma_run(test, swc_t_staged, 2, 40000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 2ull);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->fake.interrupts), 2);
	KUNIT_EXPECT_GE(test, swc_t_fake_transfers(&t->fake), 2 * 40000 * 8 / 4096u);
}

#define COPIES	SWC_T_CHANNELS

/* A copy in pieces, each on a channel of its own. */
static struct swc_plan_writer *copies(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, COPIES);
	u32 i;

	for (i = 0; i < COPIES; i++) {
		swc_plan_write_channel(p);
		swc_plan_write_step(p, SWC_STEP_LOCAL);
		swc_t_send(p, rank, i, 1, SWC_BUF_SEND);
		swc_t_recv(p, rank, i, 1, SWC_BUF_RECV, 0, SWC_XFER_FINAL);
		swc_plan_write_step(p, SWC_STEP_SYNC);
	}
	return p;
}

/* Copies with nothing but barriers behind them make one job; the CPU does those that engines do not take. */
static void dma_batched(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;
	u64 jobs;

	t->fake.align = 3;
	swc_t_dma_start_always(test);
	swc_t_dma_run(test, copies, 1, 100 * COPIES, false, SWC_SUM);
	jobs = swc_t_dma_grown(test, SWC_STAT_DMA_JOBS);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), 800ull * COPIES);
	/* Several workers may each make a batch. */
	if (num_online_cpus() == 1) {
		KUNIT_EXPECT_EQ(test, jobs, 1ull);
		/* One descriptor copies neighbours in memory. */
		KUNIT_EXPECT_LT(test, swc_t_fake_transfers(&t->fake), (u32)COPIES);
	} else {
		KUNIT_EXPECT_LE(test, jobs, (u64)COPIES);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&t->fake.interrupts), (int)jobs);
	/* The job fails: the CPU does all copies. */
	atomic_set(&t->fake.fault[SWC_T_FAIL_PREP], 1);
	swc_t_dma_run(test, copies, 1, 100 * COPIES, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_GE(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 1ull);
	atomic_set(&t->fake.fault[SWC_T_FAIL_PREP], 0);
}

static void dma_reorder(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.reorder = true;
	t->fake.max_seg = 4096;
	t->fake.max_xor = 4;
	swc_t_dma_start_always(test);
	swc_t_dma_run(test, swc_t_staged, 4, 40000, false, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), 8 * 40000 * 8ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	KUNIT_EXPECT_GT(test, atomic_read(&t->fake.overtakes), 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(dma_sum, shape_gen_params),
	KUNIT_CASE_PARAM(dma_average, shape_gen_params),
	KUNIT_CASE_PARAM(dma_xor, shape_gen_params),
	KUNIT_CASE(dma_in_place),
	KUNIT_CASE(dma_few_sources),
	KUNIT_CASE(dma_no_xor),
	KUNIT_CASE(dma_copies),
	KUNIT_CASE(dma_shortage),
	KUNIT_CASE(dma_lazy_free),
	KUNIT_CASE(dma_interrupts),
	KUNIT_CASE(dma_batched),
	KUNIT_CASE(dma_reorder),
	KUNIT_CASE(dma_prepared_net),
	{}
};

struct kunit_suite swc_dma_suite = {
	.name = "swc_dma", .init = swc_t_dma_init, .exit = swc_t_dma_exit, .test_cases = cases,
};
