// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moves by DMA engines, with an engine of the suite's own (dma_fake.h): single moves and whole operations are
 * right to the byte whatever it cannot do and wherever it fails, it is asked for nothing that it cannot do,
 * and every channel is given back.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "../dma/dma.h"
#include "../news.h"
#include "dma_fake.h"
#include "harness.h"

#define CHANS		4
#define SHORT_MS	50

struct dma_test {
	struct swc_t_fake fake;
	bool added;
	char *text;		/* a page */
	u64 base[SWC_STAT_NR];
};

/* ------------------------------------------------------------------ parameters, counters */

static const struct kernel_param *param(struct kunit *test, const char *name)
{
	const struct kernel_param *found = NULL;
	u32 i;

	for (i = 0; i < THIS_MODULE->num_kp && !found; i++)
		if (!strcmp(THIS_MODULE->kp[i].name, name))
			found = &THIS_MODULE->kp[i];
	KUNIT_ASSERT_NOT_NULL(test, found);
	return found;
}

static void set(struct kunit *test, const char *name, const char *value)
{
	const struct kernel_param *kp = param(test, name);

	KUNIT_EXPECT_EQ(test, kp->ops->set(value, kp), 0);
}

/* U64_MAX: channels are not used, or not held. */
static u64 least(struct kunit *test)
{
	const struct kernel_param *kp = param(test, "dma_least");
	struct dma_test *t = test->priv;
	u64 bytes = U64_MAX;

	t->text[kp->ops->get(t->text, kp)] = '\0';
	if (strcmp(t->text, "none\n"))
		KUNIT_EXPECT_EQ(test, kstrtou64(t->text, 10, &bytes), 0);
	return bytes;
}

static void mark(struct kunit *test)
{
	struct dma_test *t = test->priv;
	u32 i;

	for (i = 0; i < SWC_STAT_NR; i++)
		t->base[i] = swc_stat_read(i);
}

static u64 grown(struct kunit *test, enum swc_stat which)
{
	struct dma_test *t = test->priv;

	return swc_stat_read(which) - t->base[which];
}

/* ------------------------------------------------------------------ the engine and its channels */

/* With what a test has put into @fake. */
static struct swc_t_fake *start(struct kunit *test)
{
	struct dma_test *t = test->priv;

	if (!t->fake.nchans)
		t->fake.nchans = CHANS;
	KUNIT_ASSERT_EQ(test, swc_t_fake_add(&t->fake), 0);
	t->added = true;
	return &t->fake;
}

/* Wish for channels; how many are held then. */
static u32 hold(struct kunit *test, const char *mode)
{
	struct dma_test *t = test->priv;

	set(test, "dma", mode);
	swc_dma_least();
	flush_workqueue(swc_wq);
	return atomic_read(&t->fake.held);
}

static void give_back(struct kunit *test)
{
	struct dma_test *t = test->priv;
	u32 i;

	set(test, "dma", "never");
	for (i = 0; i < 1000 && atomic_read(&t->fake.held); i++)
		msleep(20);
	flush_workqueue(swc_wq);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->fake.held), 0);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_DMA_CHANS_TAKEN),
			swc_stat_read(SWC_STAT_DMA_CHANS_GIVEN));
	KUNIT_EXPECT_EQ(test, atomic_read(&t->fake.wrong), 0);
}

/* Forced, with a fresh engine. */
static struct swc_t_fake *start_forced(struct kunit *test)
{
	struct dma_test *t = test->priv;

	start(test);
	KUNIT_ASSERT_EQ(test, hold(test, "always"), min_t(u32, t->fake.nchans, CHANS));
	KUNIT_EXPECT_EQ(test, least(test), 0ull);
	mark(test);
	return &t->fake;
}

static int dma_init(struct kunit *test)
{
	struct dma_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	t->text = (char *)__get_free_page(GFP_KERNEL);
	if (!t->text)
		return -ENOMEM;
	test->priv = t;
	give_back(test);
	mark(test);
	return 0;
}

static void dma_exit(struct kunit *test)
{
	struct dma_test *t = test->priv;

	if (!t)
		return;
	WRITE_ONCE(t->fake.stubborn, false);
	if (t->added)
		swc_t_fake_unhang(&t->fake);
	give_back(test);
	if (t->added && !atomic_read(&t->fake.held))
		swc_t_fake_remove(&t->fake);
	swc_dma_patience_ms = 2000;
	swc_dma_init(swc_news_moved);
	set(test, "dma_channels", "4");
	set(test, "dma", "auto");
	free_page((unsigned long)t->text);
}

/* ------------------------------------------------------------------ operations */

/* Another operation than the harness's sum. */
static void run_with(struct swc_t_job *job, u8 redop)
{
	struct kunit *test = job->c->test;
	u32 r, k, n = job->c->nranks;
	u64 i;

	swc_t_job_fill(job);
	for (r = 0; r < n; r++)
		job->desc[r].redop = redop;
	if (redop == SWC_SUM) {
		swc_t_job_run(job, 0, true);
		return;
	}
	for (r = 0; r < n; r++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
	swc_t_job_expect(job, 0);
	for (r = 0; r < n; r++) {
		struct swc_region *recv = swc_t_region(job->c, r, job->desc[r].recv_region);

		for (i = 0; i < job->count; i++) {
			u64 got = *(u64 *)swc_t_at(recv, i * 8), want = 0;

			for (k = 0; k < n; k++)
				want = redop == SWC_BXOR ? want ^ swc_t_job_value(k, i) :
							   want + swc_t_job_value(k, i);
			if (redop == SWC_AVG)
				want = div_u64(want, n);
			if (got == want)
				continue;
			KUNIT_FAIL(test, "rank %u, element %llu of %llu: %llx, not %llx", r, i, job->count,
				   got, want);
			return;
		}
		KUNIT_EXPECT_EQ(test, *(u64 *)swc_t_at(recv, job->count * 8), ~0ull);
	}
}

/* Copies, and reductions by xor, that a plan makes, in vectors; sums are none of the engine's business. */
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
	struct swc_t_fake *fake = start_forced(test);
	struct swc_t_comm *c = swc_t_comm(test, s->ranks, 20000);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		u64 bytes = counts[i] * sizeof(u64) * vectors;

		swc_t_job_init(job, c, s->planner, counts[i], false);
		mark(test);
		atomic64_set(&fake->bytes, 0);
		run_with(job, redop);
		KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_BYTES), bytes);
		KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS) > 0, vectors > 0);
		KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
		/* One pass for several destinations is as many for the engine. */
		KUNIT_EXPECT_GE(test, (u64)atomic64_read(&fake->bytes), bytes);
	}
	/* The last vectors are of more than two megabytes, and go to a channel for each. */
	if (s->planner == swc_t_staged)
		KUNIT_EXPECT_GE(test, swc_t_fake_busy(fake), 2u);
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

	/* Even of one: it is marked as the last. */
	all_counts(test, SWC_AVG, s->ranks > 1 ? s->copies : 0);
}

static void dma_xor(struct kunit *test)
{
	const struct shape *s = test->param_value;
	struct dma_test *t = test->priv;

	t->fake.max_xor = 16;
	all_counts(test, SWC_BXOR, s->copies + s->xors);
}

static void run_once(struct kunit *test, swc_t_planner planner, u32 ranks, u64 count, bool in_place, u8 redop)
{
	struct swc_t_comm *c = swc_t_comm(test, ranks, 20000);
	struct swc_t_job *job = swc_t_job_new(test);

	swc_t_job_init(job, c, planner, count, in_place);
	mark(test);
	run_with(job, redop);
	swc_t_comm_end(c);
}

/* What an engine would overwrite before it, or another after an error, has read it, is not for engines. */
static void dma_in_place(struct kunit *test)
{
	struct dma_test *t = test->priv;

	t->fake.max_xor = 16;
	start_forced(test);
	run_once(test, swc_t_direct, 3, 30000, true, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS), 0ull);
	/* Only what is passed on without a reduction. */
	run_once(test, swc_t_ring, 3, 30000, true, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_BYTES), 2 * 30000 * 8ull);
	run_once(test, swc_t_staged, 3, 30000, true, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_BYTES), 6 * 30000 * 8ull);
}

/* An engine that xors two sources at most, or none. */
static void dma_few_sources(struct kunit *test)
{
	struct dma_test *t = test->priv;

	t->fake.max_xor = 2;
	start_forced(test);
	run_once(test, swc_t_direct, 3, 5000, false, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS), 0ull);
	run_once(test, swc_t_direct, 2, 5000, false, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_BYTES), 5000 * 8ull);
}

static void dma_no_xor(struct kunit *test)
{
	start_forced(test);
	run_once(test, swc_t_direct, 2, 5000, false, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS), 0ull);
}

/* ------------------------------------------------------------------ single moves */

#define BYTES	(48u << 10)
#define RANGES	4

struct mover {
	struct swc_move move;
	struct swc_span span[RANGES];
	struct swc_cursor cursor[RANGES];
	void *ptr[RANGES];
	struct completion done;
	u64 bytes;
};

static void moved(struct swc_run *run, u64 bytes)
{
	struct mover *m = (void *)run;

	m->bytes = bytes;
	complete(&m->done);
}

/* What engines have done of it; 0: they have not taken it, or failed. */
static u64 by_engine(struct kunit *test, struct mover *m)
{
	init_completion(&m->done);
	if (!swc_dma_wants(&m->move) || !swc_dma_start((void *)m, &m->move))
		return 0;
	wait_for_completion(&m->done);
	m->move.done += m->bytes;
	return m->bytes;
}

/* Extents of @step bytes, each allocated for itself. */
static struct swc_region *make_region(struct kunit *test, u32 step)
{
	struct swc_region *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	u32 n = DIV_ROUND_UP(BYTES, step), i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->extents = kunit_kcalloc(test, n + 1, sizeof(*r->extents), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->extents);
	for (i = 0; i < n; i++) {
		r->extents[i].kaddr = kunit_kmalloc(test, min(step, BYTES - i * step), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, r->extents[i].kaddr);
		r->extents[i].offset = i * step;
	}
	r->extents[n].offset = BYTES;
	r->bytes = BYTES;
	r->nextents = n;
	return r;
}

static u8 pattern(u32 range, u32 i)
{
	return range * 101 + i * 7 + (i >> 8);
}

static void fill(struct mover *m)
{
	u32 i, k;

	for (i = 0; i < RANGES; i++)
		for (k = 0; k < BYTES; k++)
			*(u8 *)swc_t_at(m->span[i].region, k) = pattern(i, k);
}

/* How many bytes are not as they should be after all of the move. */
static u32 bad_bytes(struct mover *m)
{
	u32 i, k, s, bad = 0;

	for (i = 0; i < m->move.nsrc + m->move.ndst; i++) {
		const struct swc_span *d = &m->span[i];

		for (k = 0; k < BYTES; k++) {
			u8 want = pattern(i, k);

			if (i >= m->move.nsrc && k >= d->offset && k < d->offset + m->move.bytes)
				for (want = 0, s = 0; s < m->move.nsrc; s++)
					want ^= pattern(s, m->span[s].offset + k - d->offset);
			bad += *(u8 *)swc_t_at(d->region, k) != want;
		}
	}
	return bad;
}

static void mover_init(struct mover *m, u32 nsrc, u32 ndst, u64 bytes)
{
	m->move = (struct swc_move) {
		.nsrc = nsrc, .ndst = ndst, .span = m->span, .cursor = m->cursor, .ptr = m->ptr,
		.bytes = bytes, .dtype = SWC_U8, .redop = SWC_BXOR,
	};
}

struct limits {
	u32 align;
	u32 max_seg;
};

static const struct limits limits[] = {
	{ 0, 0 }, { 0, 1000 }, { 0, 4096 }, { 3, 1024 }, { 4, 65535 }, { 6, 0 }, { 6, 5000 }, { 8, 256 },
	{ 8, 4095 },
};

static void limits_name(const struct limits *l, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "aligned to %u, at most %u", 1 << l->align, l->max_seg);
}

KUNIT_ARRAY_PARAM(limits, limits, limits_name);

/* Regions cut in different ways. All that is aligned is one job, however many pieces it takes. */
static void dma_limits(struct kunit *test)
{
	static const u32 steps[] = { BYTES, 4096, 5120, 16384 };
	static const u32 sizes[] = { 40 << 10, 4096, 20011, 300, 70, 3 };
	const struct limits *l = test->param_value;
	struct mover *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct swc_region *regions[ARRAY_SIZE(steps)];
	struct dma_test *t = test->priv;
	u32 i, k, unit = 1 << l->align;
	int stop = 0;

	KUNIT_ASSERT_NOT_NULL(test, m);
	t->fake.align = l->align;
	t->fake.max_seg = l->max_seg;
	t->fake.max_xor = 4;
	start_forced(test);
	swc_dma_init(moved);
	for (i = 0; i < ARRAY_SIZE(steps); i++)
		regions[i] = make_region(test, steps[i]);
	for (i = 0; i < ARRAY_SIZE(sizes) * RANGES * 3; i++) {
		u32 bytes = sizes[i % ARRAY_SIZE(sizes)], nsrc = 1 + i / (ARRAY_SIZE(sizes) * RANGES);
		u64 got;

		mover_init(m, nsrc, i & 1 ? RANGES - nsrc : 1, bytes);
		for (k = 0; k < RANGES; k++) {
			m->span[k].region = regions[(i / ARRAY_SIZE(sizes) + k) % RANGES];
			m->span[k].offset = (k * 1280 + i * 256) % (BYTES - (40 << 10) + 1) & ~255u;
		}
		fill(m);
		got = by_engine(test, m);
		KUNIT_EXPECT_EQ_MSG(test, got, (u64)round_down(bytes, unit), "round %u, %u bytes", i, bytes);
		KUNIT_EXPECT_EQ(test, swc_move(&m->move, &stop), 0);
		KUNIT_EXPECT_EQ_MSG(test, bad_bytes(m), 0u, "round %u, %u sources, %u bytes", i, nsrc, bytes);
	}
	/* Any of the ranges is not aligned. */
	for (i = 0; i < 3; i++) {
		mover_init(m, 2, 1, 10000);
		for (k = 0; k < RANGES; k++) {
			m->span[k].region = regions[(k + 1) % RANGES];
			m->span[k].offset = k == i && unit > 1 ? unit / 2 : 0;
		}
		fill(m);
		KUNIT_EXPECT_EQ(test, by_engine(test, m), unit > 1 ? 0 : 10000ull);
		KUNIT_EXPECT_EQ(test, swc_move(&m->move, &stop), 0);
		KUNIT_EXPECT_EQ(test, bad_bytes(m), 0u);
	}
}

/* A destination that overlaps what is read. */
static void dma_overlap(struct kunit *test)
{
	static const int apart[] = { 0, 64, -64, 4096, -4096, 9984, -9984, 10000, -10000 };
	struct mover *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct swc_region *region, *other;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	start_forced(test);
	swc_dma_init(moved);
	region = make_region(test, BYTES);
	other = make_region(test, 4096);
	for (i = 0; i < ARRAY_SIZE(apart); i++) {
		mover_init(m, 1, 2, 10000);
		m->span[0] = (struct swc_span) { region, 16384 };
		m->span[1] = (struct swc_span) { other, 0 };
		m->span[2] = (struct swc_span) { region, 16384 + apart[i] };
		KUNIT_EXPECT_EQ_MSG(test, by_engine(test, m), abs(apart[i]) < 10000 ? 0 : 10000ull,
				    "%d apart", apart[i]);
	}
}

/* ------------------------------------------------------------------ faults */

/*
 * The n-th chance of a fault, until one operation is through without. Both copies or reductions of an
 * operation take four descriptors each.
 */
static void sweep(struct kunit *test, enum swc_t_fault which, u8 redop)
{
	swc_t_planner planner = redop == SWC_BXOR ? swc_t_direct : swc_t_staged;
	struct swc_t_job *job = swc_t_job_new(test);
	struct dma_test *t = test->priv;
	struct swc_t_fake *fake = &t->fake;
	struct swc_t_comm *c;
	u32 n;

	fake->max_xor = 4;
	fake->max_seg = 16000;
	start_forced(test);
	c = swc_t_comm(test, 2, 20000);
	swc_t_job_init(job, c, planner, 8000, false);
	for (n = 1; n < 100; n++) {
		bool fired;

		mark(test);
		atomic_set(&fake->fault[which], n);
		run_with(job, redop);
		fired = atomic_read(&fake->fault[which]) <= 0;
		atomic_set(&fake->fault[which], 0);
		if (!fired)
			break;
		KUNIT_EXPECT_GE_MSG(test, grown(test, SWC_STAT_DMA_FALLBACKS), 1ull, "the %u-th fails", n);
		if (which == SWC_T_FAIL_SUBMIT || which == SWC_T_FAIL_TRANSFER) {
			KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_FALLBACKS), 1ull);
			KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS), 1ull);
			KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), CHANS);
		}
		if (which == SWC_T_HANG) {
			flush_workqueue(swc_wq);
			KUNIT_EXPECT_LT(test, atomic_read(&fake->held), CHANS);
			give_back(test);
			KUNIT_EXPECT_EQ(test, hold(test, "always"), (u32)CHANS);
		}
	}
	KUNIT_EXPECT_GE(test, n, 9u);
	KUNIT_EXPECT_LT(test, n, 100u);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS), 2ull);
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

static void fault_hang(struct kunit *test)
{
	swc_dma_patience_ms = SHORT_MS;
	sweep(test, SWC_T_HANG, SWC_SUM);
}

static void fault_hang_xor(struct kunit *test)
{
	swc_dma_patience_ms = SHORT_MS;
	sweep(test, SWC_T_HANG, SWC_BXOR);
}

/* Fewer channels than there are; or none, and the CPU does it. */
static void fault_alloc(struct kunit *test)
{
	struct swc_t_fake *fake = start(test);
	u32 n;

	for (n = 1; n <= CHANS + 1; n++) {
		atomic_set(&fake->fault[SWC_T_FAIL_ALLOC], n);
		KUNIT_EXPECT_EQ(test, hold(test, "always"), n - 1);
		atomic_set(&fake->fault[SWC_T_FAIL_ALLOC], 0);
		run_once(test, swc_t_staged, 2, 300000, false, SWC_SUM);
		KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_BYTES), n > 1 ? 2 * 300000 * 8ull : 0);
		KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
		give_back(test);
	}
}

/* Any of them, at random, all the time. */
static void fault_storm(struct kunit *test)
{
	static const swc_t_planner planners[] = { swc_t_ring3, swc_t_direct, swc_t_staged };
	struct swc_t_job *job = swc_t_job_new(test);
	struct dma_test *t = test->priv;
	struct swc_t_comm *c;
	u32 i;

	t->fake.max_xor = 4;
	t->fake.max_seg = 8192;
	t->fake.max_descs = 3;
	t->fake.often = 12;
	t->fake.reorder = true;
	start_forced(test);
	c = swc_t_comm(test, 4, 20000);
	for (i = 0; i < 12; i++) {
		swc_t_job_init(job, c, planners[i % 3], 20000 + i, false);
		run_with(job, i & 1 ? SWC_BXOR : SWC_SUM);
	}
	KUNIT_EXPECT_GT(test, grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_GT(test, grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	swc_t_comm_end(c);
}

/* Two descriptors at a time: what does not fit waits. */
static void dma_shortage(struct kunit *test)
{
	struct dma_test *t = test->priv;

	t->fake.max_descs = 2;
	t->fake.max_seg = 4096;
	start_forced(test);
	run_once(test, swc_t_staged, 4, 40000, false, SWC_SUM);
	KUNIT_EXPECT_GT(test, grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_GT(test, atomic_read(&t->fake.exhausted), 0);
}

static void dma_reorder(struct kunit *test)
{
	struct dma_test *t = test->priv;

	t->fake.reorder = true;
	t->fake.max_seg = 4096;
	t->fake.max_xor = 4;
	start_forced(test);
	run_once(test, swc_t_staged, 4, 40000, false, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_BYTES), 8 * 40000 * 8ull);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	KUNIT_EXPECT_GT(test, atomic_read(&t->fake.overtakes), 0);
}

/* ------------------------------------------------------------------ channels that hang */

static void submit_job(struct kunit *test, struct swc_t_comm **c, struct swc_t_job **job, u64 count)
{
	u32 r;

	*c = swc_t_comm(test, 2, 60000);
	*job = swc_t_job_new(test);
	swc_t_job_init(*job, *c, swc_t_staged, count, false);
	for (r = 0; r < 2; r++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(*job, r, true), 0);
}

/* Each time one channel is lost; when all are, others are found. */
static void hang_until_none(struct kunit *test)
{
	struct dma_test *t = test->priv;
	struct swc_t_fake *fake = &t->fake;
	u32 i, n;

	fake->nchans = 2;
	start_forced(test);
	swc_dma_patience_ms = SHORT_MS;
	for (n = 0; n < 10 && atomic_read(&fake->held); n++) {
		int before = atomic_read(&fake->held);

		atomic_set(&fake->fault[SWC_T_HANG], 1);
		run_once(test, swc_t_staged, 2, 4000, false, SWC_SUM);
		KUNIT_EXPECT_GE(test, grown(test, SWC_STAT_DMA_FALLBACKS), 1ull);
		/* The reference of the watch is the last. */
		flush_workqueue(swc_wq);
		KUNIT_EXPECT_LT(test, atomic_read(&fake->held), before);
	}
	KUNIT_EXPECT_LE(test, n, 2u);
	KUNIT_EXPECT_GE(test, atomic_read(&fake->terminated), (int)n);
	swc_dma_patience_ms = 2000;
	for (i = 0; i < 100; i++) {
		run_once(test, swc_t_staged, 2, 4000, false, SWC_SUM);
		if (grown(test, SWC_STAT_DMA_JOBS))
			break;
		msleep(100);
	}
	KUNIT_EXPECT_LT(test, i, 100u);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), 2);
}

/* It neither answers nor stops: the operation waits, since its memory may still be written. */
static void hang_stubborn(struct kunit *test)
{
	struct swc_t_fake *fake = start_forced(test);
	struct swc_t_comm *c;
	struct swc_t_job *job;
	u32 r, stops;

	for (stops = 0; stops < 2; stops++) {
		swc_dma_patience_ms = SHORT_MS;
		WRITE_ONCE(fake->stubborn, true);
		atomic_set(&fake->fault[SWC_T_HANG], 1);
		submit_job(test, &c, &job, 4000);
		msleep(10 * SHORT_MS);
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
		give_back(test);
		KUNIT_EXPECT_EQ(test, hold(test, "always"), (u32)CHANS);
	}
}

/* An operation that is given up ends when the engine has let go of its memory. */
static void hang_abort(struct kunit *test)
{
	struct swc_t_fake *fake = start_forced(test);
	struct swc_t_comm *c;
	struct swc_t_job *job;
	u32 r;

	swc_dma_patience_ms = 10 * SHORT_MS;
	atomic_set(&fake->fault[SWC_T_HANG], 1);
	submit_job(test, &c, &job, 4000);
	swc_comm_abort(swc_t_the(c), -ECANCELED, 0, 0, "tested");
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->terminated), 0);
	swc_t_job_expect(job, -ECANCELED);
	KUNIT_EXPECT_GE(test, atomic_read(&fake->terminated), 1);
	for (r = 0; r < 2; r++)
		KUNIT_EXPECT_EQ(test, atomic_read(&job->done[r].calls), 1);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ the pool */

static void pool_order(struct kunit *test)
{
	static const u64 loads[CHANS] = { 300, 100, 400, 200 };
	static const u32 order[CHANS] = { 1, 3, 0, 2 };
	struct swc_dma_chan *all[SWC_DMA_MAX_CHANS], *some[SWC_DMA_MAX_CHANS];
	u32 i, most;

	start_forced(test);
	KUNIT_ASSERT_EQ(test, swc_dma_take(all, SWC_DMA_MAX_CHANS, NUMA_NO_NODE), (u32)CHANS);
	for (i = 0; i < CHANS; i++) {
		KUNIT_EXPECT_EQ(test, atomic64_read(&all[i]->load), 0ll);
		atomic64_add(loads[i], &all[i]->load);
	}
	for (most = 1; most <= CHANS; most++) {
		KUNIT_ASSERT_EQ(test, swc_dma_take(some, most, NUMA_NO_NODE), most);
		for (i = 0; i < most; i++) {
			KUNIT_EXPECT_PTR_EQ(test, some[i], all[order[i]]);
			swc_dma_put(some[i]);
		}
	}
	for (i = 0; i < CHANS; i++) {
		atomic64_sub(loads[i], &all[i]->load);
		swc_dma_put(all[i]);
	}
}

/* A busy channel is left alone while others are free. */
static void pool_busy(struct kunit *test)
{
	struct swc_dma_chan *all[SWC_DMA_MAX_CHANS];
	struct swc_t_fake *fake = start_forced(test);
	u32 i;

	KUNIT_ASSERT_EQ(test, swc_dma_take(all, SWC_DMA_MAX_CHANS, NUMA_NO_NODE), (u32)CHANS);
	for (i = 0; i < CHANS - 1; i++)
		atomic64_add(1 << 30, &all[i]->load);
	run_once(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS), 2ull);
	KUNIT_EXPECT_EQ(test, swc_t_fake_busy(fake), 1u);
	for (i = 0; i < CHANS - 1; i++)
		atomic64_sub(1 << 30, &all[i]->load);
	for (i = 0; i < CHANS; i++)
		swc_dma_put(all[i]);
}

static void pool_retire(struct kunit *test)
{
	struct swc_dma_chan *all[SWC_DMA_MAX_CHANS], *left[SWC_DMA_MAX_CHANS];
	struct swc_t_fake *fake = start_forced(test);
	u32 i, k, n;

	KUNIT_ASSERT_EQ(test, swc_dma_take(all, SWC_DMA_MAX_CHANS, NUMA_NO_NODE), (u32)CHANS);
	for (i = 0; i < CHANS; i++) {
		struct swc_dma_chan *ch = all[(i + 1) % CHANS];

		swc_dma_retire(ch);
		/* It is gone already. */
		swc_dma_retire(ch);
		KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), (int)(CHANS - i));
		swc_dma_put(ch);
		KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), (int)(CHANS - i - 1));
		n = swc_dma_take(left, SWC_DMA_MAX_CHANS, NUMA_NO_NODE);
		KUNIT_EXPECT_EQ(test, n, CHANS - i - 1);
		for (k = 0; k < n; k++) {
			KUNIT_EXPECT_PTR_NE(test, left[k], ch);
			swc_dma_put(left[k]);
		}
	}
	/* With none left, the CPU does it. */
	run_once(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS), 0ull);
}

static void pool_channels(struct kunit *test)
{
	static const struct { const char *text; u32 n; } most[] = {
		{ "2", 2 }, { "0", 0 }, { "1", 1 }, { "99", SWC_T_FAKE_CHANS },
	};
	struct dma_test *t = test->priv;
	u32 i;

	t->fake.nchans = SWC_T_FAKE_CHANS;
	start(test);
	for (i = 0; i < ARRAY_SIZE(most); i++) {
		set(test, "dma_channels", most[i].text);
		KUNIT_EXPECT_EQ(test, hold(test, "always"), most[i].n);
		run_once(test, swc_t_staged, 2, 4000, false, SWC_SUM);
		KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_BYTES), most[i].n ? 2 * 4000 * 8ull : 0);
		give_back(test);
	}
}

/* Nothing to do for three seconds; and back when there is. */
static void pool_idle(struct kunit *test)
{
	struct swc_t_fake *fake = start_forced(test);
	u32 i;

	for (i = 0; i < 25; i++) {
		run_once(test, swc_t_staged, 2, 1000, false, SWC_SUM);
		KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS), 2ull);
		KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_CHANS_GIVEN), 0ull);
		msleep(200);
	}
	for (i = 0; i < 100 && atomic_read(&fake->held); i++)
		msleep(100);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), 0);
	KUNIT_EXPECT_EQ(test, least(test), U64_MAX);
	for (i = 0; i < 100 && !atomic_read(&fake->held); i++) {
		run_once(test, swc_t_staged, 2, 1000, false, SWC_SUM);
		msleep(100);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), CHANS);
}

static void pool_never(struct kunit *test)
{
	struct swc_t_fake *fake = start(test);

	KUNIT_EXPECT_EQ(test, hold(test, "never"), 0u);
	KUNIT_EXPECT_EQ(test, swc_dma_least(), U64_MAX);
	run_once(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	flush_workqueue(swc_wq);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_CHANS_TAKEN), 0ull);
	/* Also while they are in use. */
	KUNIT_EXPECT_EQ(test, hold(test, "always"), (u32)CHANS);
	run_once(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS), 2ull);
	KUNIT_EXPECT_EQ(test, hold(test, "never"), 0u);
	KUNIT_EXPECT_EQ(test, swc_t_fake_transfers(fake), 2u);
}

/* What is under way ends by the engine, and only then the channels go. */
static void pool_never_in_flight(struct kunit *test)
{
	struct dma_test *t = test->priv;
	struct swc_t_comm *c;
	struct swc_t_job *job;

	t->fake.us_per_kib = 5000;
	start_forced(test);
	submit_job(test, &c, &job, 4000);
	set(test, "dma", "never");
	flush_workqueue(swc_wq);
	KUNIT_EXPECT_EQ(test, least(test), U64_MAX);
	KUNIT_EXPECT_GE(test, atomic_read(&t->fake.held), 1);
	swc_t_job_expect(job, 0);
	swc_t_job_check_sum(job);
	KUNIT_EXPECT_GE(test, grown(test, SWC_STAT_DMA_JOBS), 1ull);
	swc_t_comm_end(c);
}

static void pool_bad_mode(struct kunit *test)
{
	const struct kernel_param *kp = param(test, "dma");
	struct dma_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, kp->ops->set("sometimes", kp), -EINVAL);
	set(test, "dma", "auto\n");
	t->text[kp->ops->get(t->text, kp)] = '\0';
	KUNIT_EXPECT_STREQ(test, t->text, "auto\n");
}

/* ------------------------------------------------------------------ measured */

/* Measured, it is not used, nor held for long. */
static void expect_useless(struct kunit *test)
{
	struct dma_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, hold(test, "auto"), (u32)CHANS);
	KUNIT_EXPECT_GT(test, swc_t_fake_transfers(&t->fake), 0u);
	KUNIT_EXPECT_EQ(test, least(test), U64_MAX);
	run_once(test, swc_t_staged, 2, 300000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
}

static void auto_slow(struct kunit *test)
{
	struct dma_test *t = test->priv;

	t->fake.us_per_kib = 50;
	start(test);
	expect_useless(test);
}

/* The first, second, ... of the transfers of a measurement fails, or hangs. */
static void auto_fails(struct kunit *test)
{
	struct swc_t_fake *fake = start(test);
	u32 n, which;

	swc_dma_patience_ms = SHORT_MS;
	for (which = SWC_T_FAIL_PREP; which < SWC_T_FAULTS; which++) {
		for (n = 1; n < 20; n++) {
			atomic_set(&fake->fault[which], n);
			KUNIT_EXPECT_EQ(test, hold(test, "auto"), (u32)CHANS);
			if (atomic_read(&fake->fault[which]) > 0)
				break;
			KUNIT_EXPECT_EQ_MSG(test, least(test), U64_MAX, "fault %u, %u", which, n);
			atomic_set(&fake->fault[which], 0);
			give_back(test);
		}
		atomic_set(&fake->fault[which], 0);
		/* Three small ones and three large ones. */
		KUNIT_EXPECT_EQ(test, n, 7u);
		give_back(test);
	}
}

/* What is measured: a copy that somebody waits for. It tells whether it worked. */
static void auto_try(struct kunit *test)
{
	u8 *from = kunit_kmalloc(test, BYTES, GFP_KERNEL), *to = kunit_kmalloc(test, BYTES, GFP_KERNEL);
	struct dma_test *t = test->priv;
	struct swc_dma_chan *ch;
	u32 i, which;

	KUNIT_ASSERT_NOT_NULL(test, from);
	KUNIT_ASSERT_NOT_NULL(test, to);
	t->fake.align = 6;
	t->fake.max_seg = 5000;
	start_forced(test);
	KUNIT_ASSERT_EQ(test, swc_dma_take(&ch, 1, NUMA_NO_NODE), 1u);
	for (i = 0; i < BYTES; i++)
		from[i] = pattern(1, i);
	for (which = SWC_T_FAIL_PREP; which < SWC_T_HANG; which++) {
		memset(to, 0, BYTES);
		KUNIT_EXPECT_TRUE(test, swc_dma_try(ch, to, from, BYTES / 2));
		KUNIT_EXPECT_EQ(test, memcmp(to, from, BYTES / 2), 0);
		KUNIT_EXPECT_NULL(test, memchr_inv(to + BYTES / 2, 0, BYTES / 2));
		atomic_set(&t->fake.fault[which], 3);
		KUNIT_EXPECT_FALSE(test, swc_dma_try(ch, to, from, BYTES));
		atomic_set(&t->fake.fault[which], 0);
	}
	/* It is nobody's operation. */
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	swc_dma_put(ch);
}

/* What was taken by force is measured when force ends, though it is in use. */
static void auto_after_force(struct kunit *test)
{
	struct dma_test *t = test->priv;

	t->fake.us_per_kib = 20;
	start_forced(test);
	run_once(test, swc_t_staged, 2, 4000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS), 2ull);
	set(test, "dma", "auto");
	flush_workqueue(swc_wq);
	run_once(test, swc_t_staged, 2, 40000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, grown(test, SWC_STAT_DMA_JOBS), 0ull);
	flush_workqueue(swc_wq);
	KUNIT_EXPECT_EQ(test, least(test), U64_MAX);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(dma_sum, shape_gen_params),
	KUNIT_CASE_PARAM(dma_average, shape_gen_params),
	KUNIT_CASE_PARAM(dma_xor, shape_gen_params),
	KUNIT_CASE(dma_in_place),
	KUNIT_CASE(dma_few_sources),
	KUNIT_CASE(dma_no_xor),
	KUNIT_CASE_PARAM(dma_limits, limits_gen_params),
	KUNIT_CASE(dma_overlap),
	KUNIT_CASE(dma_shortage),
	KUNIT_CASE(dma_reorder),
	KUNIT_CASE(fault_prepare),
	KUNIT_CASE(fault_prepare_xor),
	KUNIT_CASE(fault_submit),
	KUNIT_CASE(fault_submit_xor),
	KUNIT_CASE(fault_transfer),
	KUNIT_CASE(fault_transfer_xor),
	KUNIT_CASE_SLOW(fault_hang),
	KUNIT_CASE_SLOW(fault_hang_xor),
	KUNIT_CASE(fault_alloc),
	KUNIT_CASE(fault_storm),
	KUNIT_CASE_SLOW(hang_until_none),
	KUNIT_CASE_SLOW(hang_stubborn),
	KUNIT_CASE(hang_abort),
	KUNIT_CASE(pool_order),
	KUNIT_CASE(pool_busy),
	KUNIT_CASE(pool_retire),
	KUNIT_CASE(pool_channels),
	KUNIT_CASE_SLOW(pool_idle),
	KUNIT_CASE(pool_never),
	KUNIT_CASE_SLOW(pool_never_in_flight),
	KUNIT_CASE(pool_bad_mode),
	KUNIT_CASE(auto_slow),
	KUNIT_CASE_SLOW(auto_fails),
	KUNIT_CASE(auto_after_force),
	KUNIT_CASE(auto_try),
	{}
};

struct kunit_suite swc_dma_suite = {
	.name = "swc_dma", .init = dma_init, .exit = dma_exit, .test_cases = cases,
};
