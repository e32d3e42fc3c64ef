// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moves by DMA engines: single moves and whole operations are right to the byte whatever an engine cannot
 * do, and it is asked for nothing that it cannot do. Where it fails: dma_faults_kunit.c; its channels:
 * dma_pool_kunit.c.
 */
#include "dma/engine.h"
#include "dma_harness.h"

/* ------------------------------------------------------------------ operations */

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
	struct swc_t_fake *fake = swc_t_dma_start_forced(test);
	struct swc_t_comm *c = swc_t_comm(test, s->ranks, 20000);
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
		/* Those behind a barrier, while ranks wait there; the last to come opens it. */
		if (s->planner == swc_t_staged && redop == SWC_BXOR && s->xors) {
			KUNIT_EXPECT_GE(test, swc_t_dma_grown(test, SWC_STAT_DMA_PREPARED), 1ull);
			KUNIT_EXPECT_LE(test, swc_t_dma_grown(test, SWC_STAT_DMA_PREPARED), (u64)s->ranks);
		}
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
	struct swc_t_dma *t = test->priv;

	t->fake.max_xor = 16;
	all_counts(test, SWC_BXOR, s->copies + s->xors);
}

/* What an engine would overwrite before it, or another after an error, has read it, is not for engines. */
static void dma_in_place(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.max_xor = 16;
	swc_t_dma_start_forced(test);
	swc_t_dma_run(test, swc_t_direct, 3, 30000, true, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	/* What is there already, is not copied. */
	swc_t_dma_run(test, swc_t_direct, 1, 30000, true, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_BYTES_COPIED), 0ull);
	/* Only what is passed on without a reduction. */
	swc_t_dma_run(test, swc_t_ring, 3, 30000, true, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), 2 * 30000 * 8ull);
	swc_t_dma_run(test, swc_t_staged, 3, 30000, true, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), 6 * 30000 * 8ull);
}

/* An engine that xors two sources at most, or none. */
static void dma_few_sources(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.max_xor = 2;
	swc_t_dma_start_forced(test);
	swc_t_dma_run(test, swc_t_direct, 3, 5000, false, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	swc_t_dma_run(test, swc_t_direct, 2, 5000, false, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), 5000 * 8ull);
}

static void dma_no_xor(struct kunit *test)
{
	swc_t_dma_start_forced(test);
	swc_t_dma_run(test, swc_t_direct, 2, 5000, false, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
}

/* Two ranks give each other all they have; then each adds it to its own. */
static struct swc_t_plan *exchange(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_t_plan *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, 2);

	p->hdr.window[SWC_BUF_SCRATCH].nblocks = 2;
	swc_t_channel(p);
	swc_t_step(p, SWC_STEP_NET);
	swc_t_send_stored(p, !rank, 0, 2, SWC_BUF_SEND);
	swc_t_recv(p, !rank, 0, 2, SWC_BUF_SCRATCH, 0, 0);
	swc_t_step(p, SWC_STEP_SYNC);
	swc_t_step(p, SWC_STEP_LOCAL);
	swc_t_send(p, rank, 0, 2, SWC_BUF_SEND);
	swc_t_send(p, rank, 0, 2, SWC_BUF_SCRATCH);
	swc_t_recv(p, rank, 0, 2, SWC_BUF_RECV, 0, SWC_XFER_FINAL);
	return p;
}

/*
 * What a rank prepares while it waits for another node is not launched for what comes from there, which by
 * segments an engine copies as well.
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
	swc_t_dma_start_forced(test);
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

static void moved(const struct swc_dma_item *items, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		struct mover *m = (void *)items[i].run;

		m->bytes = items[i].bytes;
		complete(&m->done);
	}
}

static struct swc_dma_job *prepare(struct mover *m)
{
	struct swc_dma_item item = { .run = (void *)m, .move = &m->move };

	return swc_dma_prepare(swc_wq, &item, 1, 1);
}

static bool start(struct mover *m)
{
	struct swc_dma_job *job = prepare(m);

	if (job)
		swc_dma_launch(job);
	return job;
}

/* What engines have done of it; 0: they have not taken it, or failed. */
static u64 by_engine(struct kunit *test, struct mover *m)
{
	init_completion(&m->done);
	if (!swc_dma_wants(&m->move, 1, 1) || !start(m))
		return 0;
	wait_for_completion(&m->done);
	m->move.done += m->bytes;
	return m->bytes;
}

/* Extents of @a bytes and of @b in turn, each allocated for itself. */
static struct swc_region *make_mixed(struct kunit *test, u32 bytes, u32 a, u32 b)
{
	struct swc_region *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	u32 most = 2 * DIV_ROUND_UP(bytes, a + b), n = 0, at, step;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->extents = kunit_kcalloc(test, most + 1, sizeof(*r->extents), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->extents);
	for (at = 0; at < bytes; at += step, n++) {
		step = min(n & 1 ? b : a, bytes - at);
		r->extents[n].kaddr = kunit_kmalloc(test, step, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, r->extents[n].kaddr);
		r->extents[n].offset = at;
	}
	r->extents[n].offset = bytes;
	r->bytes = bytes;
	r->nextents = n;
	return r;
}

static struct swc_region *make_region(struct kunit *test, u32 step)
{
	return make_mixed(test, BYTES, step, step);
}

static u8 pattern(u32 range, u32 i)
{
	return range * 101 + i * 7 + (i >> 8);
}

static void fill(struct mover *m)
{
	u32 i, k;

	for (i = 0; i < RANGES; i++)
		for (k = 0; m->span[i].region && k < m->span[i].region->bytes; k++)
			*(u8 *)swc_t_at(m->span[i].region, k) = pattern(i, k);
}

/* How many bytes are not as they should be after all of the move. */
static u32 bad_bytes(struct mover *m)
{
	u32 i, k, s, bad = 0;

	for (i = 0; i < m->move.nsrc + m->move.ndst; i++) {
		const struct swc_span *d = &m->span[i];

		for (k = 0; k < d->region->bytes; k++) {
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
	struct swc_t_dma *t = test->priv;
	u32 i, k, unit = 1 << l->align;
	int stop = 0;

	KUNIT_ASSERT_NOT_NULL(test, m);
	t->fake.align = l->align;
	t->fake.max_seg = l->max_seg;
	t->fake.max_xor = 4;
	swc_t_dma_start_forced(test);
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
	swc_t_dma_start_forced(test);
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

/* Two descriptors at a time: what does not fit waits. */
static void dma_shortage(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.max_descs = 2;
	t->fake.max_seg = 4096;
	swc_t_dma_start_forced(test);
	swc_t_dma_run(test, swc_t_staged, 4, 40000, false, SWC_SUM);
	KUNIT_EXPECT_GT(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 0ull);
	KUNIT_EXPECT_GT(test, atomic_read(&t->fake.exhausted), 0);
}

/* What goes without an interrupt does not come back before its status is asked for. */
static void dma_hoarded(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.max_descs = 5;
	t->fake.max_seg = 4096;
	t->fake.hoards = true;
	swc_t_dma_start_forced(test);
	swc_t_dma_run(test, swc_t_staged, 2, 40000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), 2 * 40000 * 8ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	KUNIT_EXPECT_GT(test, atomic_read(&t->fake.exhausted), 0);
}

/* Each of two copies is one batch of many descriptors. */
static void dma_interrupts(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	t->fake.max_seg = 4096;
	swc_t_dma_start_forced(test);
	swc_t_dma_run(test, swc_t_staged, 2, 40000, false, SWC_SUM);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_JOBS), 2ull);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->fake.interrupts), 2);
	KUNIT_EXPECT_GE(test, swc_t_fake_transfers(&t->fake), 2 * 40000 * 8 / 4096u);
}

#define COPIES	SWC_T_CHANNELS

/* A copy in pieces, each with a channel of its own. */
static struct swc_t_plan *copies(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_t_plan *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, COPIES);
	u32 i;

	for (i = 0; i < COPIES; i++) {
		swc_t_channel(p);
		swc_t_step(p, SWC_STEP_LOCAL);
		swc_t_send(p, rank, i, 1, SWC_BUF_SEND);
		swc_t_recv(p, rank, i, 1, SWC_BUF_RECV, 0, SWC_XFER_FINAL);
		swc_t_step(p, SWC_STEP_SYNC);
	}
	return p;
}

/* Moves that nobody waits for go to engines together; those that engines do not take, the CPU does. */
static void dma_gathered(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;
	u64 jobs;

	t->fake.align = 3;
	swc_t_dma_start_forced(test);
	swc_t_dma_run(test, copies, 1, 100 * COPIES, false, SWC_SUM);
	jobs = swc_t_dma_grown(test, SWC_STAT_DMA_JOBS);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), 800ull * COPIES);
	/* Others may help to gather. */
	if (num_online_cpus() == 1) {
		KUNIT_EXPECT_EQ(test, jobs, 1ull);
		/* Neighbours in memory are moved by one descriptor. */
		KUNIT_EXPECT_LT(test, swc_t_fake_transfers(&t->fake), (u32)COPIES);
	} else {
		KUNIT_EXPECT_LE(test, jobs, (u64)COPIES);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&t->fake.interrupts), (int)jobs);
	/* All of them fail: the CPU's. */
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
	swc_t_dma_start_forced(test);
	swc_t_dma_run(test, swc_t_staged, 4, 40000, false, SWC_BXOR);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), 8 * 40000 * 8ull);
	KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_FALLBACKS), 0ull);
	KUNIT_EXPECT_GT(test, atomic_read(&t->fake.overtakes), 0);
}

/* Unless engines are forced, the CPU copies what is short, and engines get nothing if that is most of it. */
static void dma_short_stretches(struct kunit *test)
{
	const u32 bytes = 8 * (40 << 10) + 8 * (4 << 10);
	struct swc_t_dma *t = test->priv;
	struct mover *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	u32 forced;

	KUNIT_ASSERT_NOT_NULL(test, m);
	swc_t_dma_start(test);
	swc_dma_init(moved);
	mover_init(m, 1, 2, bytes);
	m->span[0].region = make_mixed(test, bytes, 40 << 10, 4 << 10);
	m->span[1].region = make_mixed(test, bytes, bytes, bytes);
	m->span[2].region = make_mixed(test, bytes, bytes, bytes);
	for (forced = 0; forced < 2; forced++) {
		u32 by_cpu = forced ? 0 : 8 * (4 << 10);

		/* By share, one is used whatever its speed. */
		KUNIT_ASSERT_GT(test, swc_t_dma_hold(test, forced ? "always" : "share"), 0u);
		atomic64_set(&t->fake.bytes, 0);
		swc_t_dma_mark(test);
		fill(m);
		init_completion(&m->done);
		m->move.done = 0;
		KUNIT_ASSERT_TRUE(test, start(m));
		wait_for_completion(&m->done);
		KUNIT_EXPECT_EQ(test, m->bytes, (u64)bytes);
		KUNIT_EXPECT_EQ(test, bad_bytes(m), 0u);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->fake.bytes), 2ll * (bytes - by_cpu));
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), (u64)bytes - by_cpu);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_BYTES_COPIED), (u64)by_cpu);
		swc_t_dma_give_back(test);
	}
	KUNIT_ASSERT_GT(test, swc_t_dma_hold(test, "share"), 0u);
	m->span[0].region = make_mixed(test, bytes, 20 << 10, 12 << 10);
	KUNIT_EXPECT_TRUE(test, start(m));
	wait_for_completion(&m->done);
	m->span[0].region = make_mixed(test, bytes, 16 << 10, 15 << 10);
	m->span[1].region = make_mixed(test, bytes, 12 << 10, 64 << 10);
	KUNIT_EXPECT_FALSE(test, start(m));
}

/* What is moved is what is there at the launch; and if there is none, nothing is. */
static void dma_prepared(struct kunit *test)
{
	struct mover *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct swc_t_fake *fake;
	struct swc_dma_job *job;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	fake = swc_t_dma_start_forced(test);
	swc_dma_init(moved);
	mover_init(m, 1, 2, BYTES);
	for (i = 0; i < 3; i++)
		m->span[i].region = make_mixed(test, BYTES, 12 << 10, 12 << 10);
	job = prepare(m);
	KUNIT_ASSERT_NOT_NULL(test, job);
	fill(m);
	swc_dma_cancel(job);
	KUNIT_EXPECT_EQ(test, atomic64_read(&fake->bytes), 0ll);
	KUNIT_EXPECT_GT(test, bad_bytes(m), 0u);
	init_completion(&m->done);
	job = prepare(m);
	KUNIT_ASSERT_NOT_NULL(test, job);
	fill(m);
	swc_dma_launch(job);
	wait_for_completion(&m->done);
	KUNIT_EXPECT_EQ(test, m->bytes, (u64)BYTES);
	KUNIT_EXPECT_EQ(test, bad_bytes(m), 0u);
	KUNIT_EXPECT_EQ(test, atomic64_read(&fake->bytes), 2ll * BYTES);
}

/*
 * A job that waits for descriptors while the channel hangs is rid of some of its own when that is stopped:
 * what is done of it then is not all.
 */
static void dma_shortage_hang(struct kunit *test)
{
	struct mover *a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);
	struct mover *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);
	struct swc_t_dma *t = test->priv;
	struct swc_dma_job *first, *second;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_ASSERT_NOT_NULL(test, b);
	t->fake.nchans = 1;
	t->fake.max_descs = 4;
	t->fake.max_seg = 4096;
	swc_t_dma_start_forced(test);
	swc_dma_init(moved);
	mover_init(a, 1, 1, 8192);
	mover_init(b, 1, 1, 40960);
	for (i = 0; i < 2; i++) {
		a->span[i].region = make_region(test, BYTES);
		b->span[i].region = make_region(test, BYTES);
	}
	for (i = 0; i < 5; i++) {
		fill(a);
		fill(b);
		init_completion(&a->done);
		init_completion(&b->done);
		swc_dma_patience_ms = 1;
		atomic_set(&t->fake.fault[SWC_T_HANG], 1);
		/* Both before the channel hangs: then it is soon given up, and there is no other. */
		first = prepare(a);
		second = prepare(b);
		KUNIT_ASSERT_NOT_NULL(test, first);
		KUNIT_ASSERT_NOT_NULL(test, second);
		swc_dma_launch(first);
		swc_dma_launch(second);
		wait_for_completion(&a->done);
		wait_for_completion(&b->done);
		KUNIT_EXPECT_EQ(test, a->bytes, 0ull);
		KUNIT_EXPECT_TRUE(test, !b->bytes || !bad_bytes(b));
		swc_dma_patience_ms = 2000;
		swc_t_dma_give_back(test);
		KUNIT_ASSERT_EQ(test, swc_t_dma_hold(test, "always"), 1u);
	}
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
	KUNIT_CASE(dma_shortage_hang),
	KUNIT_CASE(dma_hoarded),
	KUNIT_CASE(dma_interrupts),
	KUNIT_CASE(dma_gathered),
	KUNIT_CASE(dma_reorder),
	KUNIT_CASE(dma_short_stretches),
	KUNIT_CASE(dma_prepared),
	KUNIT_CASE(dma_prepared_net),
	{}
};

struct kunit_suite swc_dma_suite = {
	.name = "swc_dma", .init = swc_t_dma_init, .exit = swc_t_dma_exit, .test_cases = cases,
};
