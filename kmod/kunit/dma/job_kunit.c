// SPDX-License-Identifier: GPL-2.0-only
/*
 * Single DMA jobs, without operations: copies of any shape are split within the limits of an engine; a job is
 * prepared, launched or cancelled.
 */
#include "dma/engine.h"
#include "kunit/dma/dma_harness.h"

#define BYTES	(48u << 10)
#define RANGES	4

struct copy_test {
	struct swc_reduce_copy copy;
	struct swc_span span[RANGES];
	struct swc_cursor cursor[RANGES];
	void *ptr[RANGES];
	struct completion done;
	u64 bytes;
};

static void job_done(const struct swc_dma_item *items, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		struct copy_test *m = items[i].owner;

		m->bytes = items[i].bytes;
		complete(&m->done);
	}
}

static struct swc_dma_job *prepare(struct copy_test *m)
{
	struct swc_dma_item item = { .owner = m, .copy = &m->copy };

	return swc_dma_prepare(swc_wq, &item, 1, 1);
}

static bool start(struct copy_test *m)
{
	struct swc_dma_job *job = prepare(m);

	if (job)
		swc_dma_launch(job);
	return job;
}

/* Bytes that engines have copied; 0: they have not taken the copy, or failed. */
static u64 by_engine(struct kunit *test, struct copy_test *m)
{
	init_completion(&m->done);
	if (!swc_dma_wants(&m->copy, 1, 1) || !start(m))
		return 0;
	wait_for_completion(&m->done);
	m->copy.done += m->bytes;
	return m->bytes;
}

/* Extents of @a and of @b bytes in turn, each allocated separately. */
static struct swc_extents *make_mixed(struct kunit *test, u32 bytes, u32 a, u32 b)
{
	struct swc_extents *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	u32 most = 2 * DIV_ROUND_UP(bytes, a + b), n = 0, at, step;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->extent = kunit_kcalloc(test, most + 1, sizeof(*r->extent), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->extent);
	for (at = 0; at < bytes; at += step, n++) {
		step = min(n & 1 ? b : a, bytes - at);
		r->extent[n].kaddr = kunit_kmalloc(test, step, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, r->extent[n].kaddr);
		r->extent[n].offset = at;
	}
	r->nextents = n;
	swc_extents_close(r, bytes);
	return r;
}

static struct swc_extents *make_extents(struct kunit *test, u32 step)
{
	return make_mixed(test, BYTES, step, step);
}

static u8 pattern(u32 range, u32 i)
{
	return range * 101 + i * 7 + (i >> 8);
}

static void fill(struct copy_test *m)
{
	u32 i, k;

	for (i = 0; i < RANGES; i++) {
		const struct swc_extents *r = m->span[i].extents;

		for (k = 0; r && k < swc_t_extents_bytes(r); k++)
			*(u8 *)swc_t_extents_at(r, k) = pattern(i, k);
	}
}

/* Number of wrong bytes after the whole copy. */
static u32 bad_bytes(struct copy_test *m)
{
	u32 i, k, s, bad = 0;

	for (i = 0; i < m->copy.nsrc + m->copy.ndst; i++) {
		const struct swc_span *d = &m->span[i];

		for (k = 0; k < swc_t_extents_bytes(d->extents); k++) {
			u8 want = pattern(i, k);

			if (i >= m->copy.nsrc && k >= d->offset && k < d->offset + m->copy.bytes)
				for (want = 0, s = 0; s < m->copy.nsrc; s++)
					want ^= pattern(s, m->span[s].offset + k - d->offset);
			bad += *(u8 *)swc_t_extents_at(d->extents, k) != want;
		}
	}
	return bad;
}

static void copy_init(struct copy_test *m, u32 nsrc, u32 ndst, u64 bytes)
{
	m->copy = (struct swc_reduce_copy) {
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

/* Memory cut in different ways. All aligned bytes are one job, however many pieces that takes. */
static void job_limits(struct kunit *test)
{
	static const u32 steps[] = { BYTES, 4096, 5120, 16384 };
	static const u32 sizes[] = { 40 << 10, 4096, 20011, 300, 70, 3 };
	const struct limits *l = test->param_value;
	struct copy_test *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct swc_extents *extents[ARRAY_SIZE(steps)];
	struct swc_t_dma *t = test->priv;
	u32 i, k, unit = 1 << l->align;
	int stop = 0;

	KUNIT_ASSERT_NOT_NULL(test, m);
	t->fake.align = l->align;
	t->fake.max_seg = l->max_seg;
	t->fake.max_xor = 4;
	swc_t_dma_start_always(test);
	swc_dma_init(job_done);
	for (i = 0; i < ARRAY_SIZE(steps); i++)
		extents[i] = make_extents(test, steps[i]);
	for (i = 0; i < ARRAY_SIZE(sizes) * RANGES * 3; i++) {
		u32 bytes = sizes[i % ARRAY_SIZE(sizes)], nsrc = 1 + i / (ARRAY_SIZE(sizes) * RANGES);
		u64 got;

		copy_init(m, nsrc, i & 1 ? RANGES - nsrc : 1, bytes);
		for (k = 0; k < RANGES; k++) {
			m->span[k].extents = extents[(i / ARRAY_SIZE(sizes) + k) % RANGES];
			m->span[k].offset = (k * 1280 + i * 256) % (BYTES - (40 << 10) + 1) & ~255u;
		}
		fill(m);
		got = by_engine(test, m);
		KUNIT_EXPECT_EQ_MSG(test, got, (u64)round_down(bytes, unit), "round %u, %u bytes", i, bytes);
		KUNIT_EXPECT_EQ(test, swc_reduce_copy(&m->copy, &stop), 0);
		KUNIT_EXPECT_EQ_MSG(test, bad_bytes(m), 0u, "round %u, %u sources, %u bytes", i, nsrc, bytes);
	}
	/* One of the ranges is not aligned. */
	for (i = 0; i < 3; i++) {
		copy_init(m, 2, 1, 10000);
		for (k = 0; k < RANGES; k++) {
			m->span[k].extents = extents[(k + 1) % RANGES];
			m->span[k].offset = k == i && unit > 1 ? unit / 2 : 0;
		}
		fill(m);
		KUNIT_EXPECT_EQ(test, by_engine(test, m), unit > 1 ? 0 : 10000ull);
		KUNIT_EXPECT_EQ(test, swc_reduce_copy(&m->copy, &stop), 0);
		KUNIT_EXPECT_EQ(test, bad_bytes(m), 0u);
	}
}

/* A destination that overlaps a source. */
static void job_overlap(struct kunit *test)
{
	static const int apart[] = { 0, 64, -64, 4096, -4096, 9984, -9984, 10000, -10000 };
	struct copy_test *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct swc_extents *whole, *other;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	swc_t_dma_start_always(test);
	swc_dma_init(job_done);
	whole = make_extents(test, BYTES);
	other = make_extents(test, 4096);
	for (i = 0; i < ARRAY_SIZE(apart); i++) {
		copy_init(m, 1, 2, 10000);
		m->span[0] = (struct swc_span) { whole, 16384 };
		m->span[1] = (struct swc_span) { other, 0 };
		m->span[2] = (struct swc_span) { whole, 16384 + apart[i] };
		KUNIT_EXPECT_EQ_MSG(test, by_engine(test, m), abs(apart[i]) < 10000 ? 0 : 10000ull,
				    "%d apart", apart[i]);
	}
}

/*
 * Except in mode "always", the CPU copies pieces that are too short, and all of a copy if that is most of
 * it.
 */
static void job_short_pieces(struct kunit *test)
{
	const u32 bytes = 8 * (40 << 10) + 8 * (4 << 10);
	struct swc_t_dma *t = test->priv;
	struct copy_test *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	u32 always;

	KUNIT_ASSERT_NOT_NULL(test, m);
	swc_t_dma_start(test);
	swc_dma_init(job_done);
	copy_init(m, 1, 2, bytes);
	m->span[0].extents = make_mixed(test, bytes, 40 << 10, 4 << 10);
	m->span[1].extents = make_mixed(test, bytes, bytes, bytes);
	m->span[2].extents = make_mixed(test, bytes, bytes, bytes);
	for (always = 0; always < 2; always++) {
		u32 cpu_only = always ? 0 : 8 * (4 << 10);

		/* In mode "share" an engine is used whatever its speed. */
		KUNIT_ASSERT_GT(test, swc_t_dma_hold(test, always ? "always" : "share"), 0u);
		atomic64_set(&t->fake.bytes, 0);
		swc_t_dma_mark(test);
		fill(m);
		init_completion(&m->done);
		m->copy.done = 0;
		KUNIT_ASSERT_TRUE(test, start(m));
		wait_for_completion(&m->done);
		KUNIT_EXPECT_EQ(test, m->bytes, (u64)bytes);
		KUNIT_EXPECT_EQ(test, bad_bytes(m), 0u);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->fake.bytes), 2ll * (bytes - cpu_only));
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_DMA_BYTES), (u64)bytes - cpu_only);
		KUNIT_EXPECT_EQ(test, swc_t_dma_grown(test, SWC_STAT_BYTES_COPIED), (u64)cpu_only);
		swc_t_dma_release(test);
	}
	KUNIT_ASSERT_GT(test, swc_t_dma_hold(test, "share"), 0u);
	m->span[0].extents = make_mixed(test, bytes, 20 << 10, 12 << 10);
	KUNIT_EXPECT_TRUE(test, start(m));
	wait_for_completion(&m->done);
	m->span[0].extents = make_mixed(test, bytes, 16 << 10, 15 << 10);
	m->span[1].extents = make_mixed(test, bytes, 12 << 10, 64 << 10);
	KUNIT_EXPECT_FALSE(test, start(m));
}

/* A job copies what is in memory when it is launched; a cancelled one copies nothing. */
static void job_prepared(struct kunit *test)
{
	struct copy_test *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct swc_t_fake *fake;
	struct swc_dma_job *job;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	fake = swc_t_dma_start_always(test);
	swc_dma_init(job_done);
	copy_init(m, 1, 2, BYTES);
	for (i = 0; i < 3; i++)
		m->span[i].extents = make_mixed(test, BYTES, 12 << 10, 12 << 10);
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

/* Work item: the channel that hangs is late when a job has to wait for descriptors. */
struct late {
	struct work_struct work;
	struct kunit *test;
	int exhausted;
};

static void make_late(struct work_struct *work)
{
	struct late *late = container_of(work, struct late, work);
	struct swc_t_dma *t = late->test->priv;

	if (wait_for_completion_timeout(&t->hung, msecs_to_jiffies(SWC_T_HANG)) &&
	    swc_t_dma_wait(atomic_read(&t->fake.exhausted) != late->exhausted))
		swc_t_dma_expire(late->test);
}

/* A job waits for descriptors while the channel hangs. It loses those it has when the channel is stopped. */
static void job_shortage_hang(struct kunit *test)
{
	struct copy_test *a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);
	struct copy_test *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);
	struct swc_t_dma *t = test->priv;
	struct late *late = kunit_kzalloc(test, sizeof(*late), GFP_KERNEL);
	struct swc_dma_job *first, *second;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_ASSERT_NOT_NULL(test, b);
	KUNIT_ASSERT_NOT_NULL(test, late);
	INIT_WORK(&late->work, make_late);
	late->test = test;
	t->expire = false;
	t->fake.nchans = 1;
	t->fake.max_descs = 4;
	t->fake.max_seg = 4096;
	swc_t_dma_start_always(test);
	swc_dma_init(job_done);
	copy_init(a, 1, 1, 8192);
	copy_init(b, 1, 1, 40960);
	for (i = 0; i < 2; i++) {
		a->span[i].extents = make_extents(test, BYTES);
		b->span[i].extents = make_extents(test, BYTES);
	}
	for (i = 0; i < 5; i++) {
		fill(a);
		fill(b);
		init_completion(&a->done);
		init_completion(&b->done);
		late->exhausted = atomic_read(&t->fake.exhausted);
		schedule_work(&late->work);
		atomic_set(&t->fake.fault[SWC_T_FAULT_HANG], 1);
		/* Both before the channel hangs: when it is lost, there is no other. */
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
		flush_work(&late->work);
		swc_t_dma_release(test);
		KUNIT_ASSERT_EQ(test, swc_t_dma_hold(test, "always"), 1u);
	}
}

/* Work item: launches a job. */
struct launch {
	struct work_struct work;
	struct swc_dma_job *job;
};

static void launch(struct work_struct *work)
{
	swc_dma_launch(container_of(work, struct launch, work)->job);
}

/* Engines that are always used, and a copy for them. */
static void start_copy(struct kunit *test, struct copy_test *m)
{
	u32 i;

	swc_t_dma_start_always(test);
	swc_dma_init(job_done);
	copy_init(m, 1, 1, BYTES);
	for (i = 0; i < 2; i++)
		m->span[i].extents = make_extents(test, BYTES);
	fill(m);
}

/* Another submitter keeps the channel for as long as it likes: the CPU gets the job. */
static void job_busy(struct kunit *test)
{
	struct copy_test *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct launch *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	struct swc_t_dma *t = test->priv;
	struct swc_dma_chan *ch;

	KUNIT_ASSERT_NOT_NULL(test, m);
	KUNIT_ASSERT_NOT_NULL(test, l);
	t->fake.nchans = 1;
	start_copy(test, m);
	KUNIT_ASSERT_EQ(test, swc_t_dma_choose(&ch, 1, NUMA_NO_NODE), 1u);
	init_completion(&m->done);
	INIT_WORK(&l->work, launch);
	l->job = prepare(m);
	KUNIT_ASSERT_NOT_NULL(test, l->job);
	mutex_lock(&ch->submit);
	schedule_work(&l->work);
	KUNIT_EXPECT_GT(test, wait_for_completion_timeout(&m->done, msecs_to_jiffies(SWC_T_HANG)), 0ul);
	mutex_unlock(&ch->submit);
	flush_work(&l->work);
	KUNIT_EXPECT_EQ(test, m->bytes, 0ull);
	KUNIT_EXPECT_EQ(test, atomic64_read(&ch->load), 0ll);
	KUNIT_EXPECT_EQ(test, atomic64_read(&ch->queued), 0ll);
	KUNIT_EXPECT_EQ(test, by_engine(test, m), (u64)BYTES);
	KUNIT_EXPECT_EQ(test, bad_bytes(m), 0u);
	swc_dma_chan_put(ch);
}

/* Work item: the only channel becomes late while its submitter runs. */
static struct starved {
	struct work_struct work;
	struct swc_dma_chan *ch;
	struct completion looked;
} starved;

static void look_at_starved(struct work_struct *work)
{
	swc_t_dma_make_late(starved.ch);
	complete(&starved.looked);
}

static void wait_for_cpu(struct swc_t_fake *fake)
{
	unsigned long end = jiffies + msecs_to_jiffies(SWC_T_HANG);

	reinit_completion(&starved.looked);
	queue_work(system_unbound_wq, &starved.work);
	/* Without sleeping. */
	while (!completion_done(&starved.looked) && time_before(jiffies, end))
		cond_resched();
}

/* The submitter gets no CPU: that is not the channel's fault, which stays. */
static void job_starved(struct kunit *test)
{
	struct copy_test *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct swc_t_dma *t = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, m);
	t->fake.nchans = 1;
	t->fake.max_seg = 16 << 10;
	start_copy(test, m);
	INIT_WORK(&starved.work, look_at_starved);
	init_completion(&starved.looked);
	KUNIT_ASSERT_EQ(test, swc_t_dma_choose(&starved.ch, 1, NUMA_NO_NODE), 1u);
	WRITE_ONCE(t->fake.preparing, wait_for_cpu);
	KUNIT_EXPECT_EQ(test, by_engine(test, m), (u64)BYTES);
	WRITE_ONCE(t->fake.preparing, NULL);
	flush_work(&starved.work);
	KUNIT_EXPECT_EQ(test, bad_bytes(m), 0u);
	KUNIT_EXPECT_FALSE(test, starved.ch->broken);
	swc_dma_chan_put(starved.ch);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(job_limits, limits_gen_params),
	KUNIT_CASE(job_overlap),
	KUNIT_CASE(job_shortage_hang),
	KUNIT_CASE(job_short_pieces),
	KUNIT_CASE(job_prepared),
	KUNIT_CASE(job_busy),
	KUNIT_CASE(job_starved),
	{}
};

struct kunit_suite swc_dma_job_suite = {
	.name = "swc_dma_job", .init = swc_t_dma_init, .exit = swc_t_dma_exit, .test_cases = cases,
};
