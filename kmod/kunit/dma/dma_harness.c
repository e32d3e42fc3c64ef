// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the suites of DMA engines share: time, an engine (fake_engine.h), its channels, and operations that
 * use it.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "dma/engine.h"
#include "exec/dma_event.h"
#include "kunit/dma/dma_harness.h"

/* ------------------------------------------------------------------ parameters, counters */

const struct kernel_param *swc_t_dma_param(struct kunit *test, const char *name)
{
	const struct kernel_param *found = NULL;
	u32 i;

	for (i = 0; i < THIS_MODULE->num_kp && !found; i++)
		if (!strcmp(THIS_MODULE->kp[i].name, name))
			found = &THIS_MODULE->kp[i];
	KUNIT_ASSERT_NOT_NULL(test, found);
	return found;
}

void swc_t_dma_set(struct kunit *test, const char *name, const char *value)
{
	const struct kernel_param *kp = swc_t_dma_param(test, name);

	KUNIT_EXPECT_EQ(test, kp->ops->set(value, kp), 0);
}

u64 swc_t_dma_least(struct kunit *test)
{
	const struct kernel_param *kp = swc_t_dma_param(test, "dma_least");
	struct swc_t_dma *t = test->priv;
	u64 bytes = U64_MAX;

	t->text[kp->ops->get(t->text, kp)] = '\0';
	if (strcmp(t->text, "none\n"))
		KUNIT_EXPECT_EQ(test, kstrtou64(t->text, 10, &bytes), 0);
	return bytes;
}

void swc_t_dma_mark(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;
	u32 i;

	for (i = 0; i < SWC_STAT_NR; i++)
		t->base[i] = swc_stat_read(i);
}

u64 swc_t_dma_grown(struct kunit *test, enum swc_stat which)
{
	struct swc_t_dma *t = test->priv;

	return swc_stat_read(which) - t->base[which];
}

/* ------------------------------------------------------------------ time */

/* The test that runs; for the clock and for channels that hang. */
static struct swc_t_dma *current_test;

u64 swc_t_dma_clock_ns(void)
{
	struct swc_t_dma *t = READ_ONCE(current_test);

	return t ? atomic64_add_return(t->cpu_ns, &t->clock) : ktime_get_ns();
}

static void advance(struct swc_t_fake *fake, size_t bytes)
{
	struct swc_t_dma *t = container_of(fake, struct swc_t_dma, fake);

	atomic64_add(t->engine_ns * DIV_ROUND_UP(bytes, 1024), &t->clock);
}

static void run_watch(struct swc_dma_chan *ch)
{
	swc_dma_chan_get(ch);
	if (mod_delayed_work(swc_wq, &ch->watch, 0))
		swc_dma_chan_put(ch);
}

/* The deadlines of all that is in flight pass. */
static void expire(struct swc_dma_chan *ch)
{
	struct swc_dma_batch *b;
	unsigned long flags;

	spin_lock_irqsave(&ch->lock, flags);
	list_for_each_entry(b, &ch->batches, node)
		b->deadline = jiffies - 1;
	spin_unlock_irqrestore(&ch->lock, flags);
	run_watch(ch);
}

void swc_t_dma_make_late(struct swc_dma_chan *ch)
{
	expire(ch);
	flush_work(&ch->watch.work);
}

/* Called by the engine: a channel hangs, before descriptor @tx. */
static void hung(struct swc_t_fake *fake, struct dma_async_tx_descriptor *tx)
{
	struct swc_t_dma *t = container_of(fake, struct swc_t_dma, fake);
	struct swc_dma_piece *piece = tx->callback_param;
	struct swc_dma_chan *ch = tx->flags & DMA_PREP_INTERRUPT ? piece->batch->ch : tx->callback_param;

	if (READ_ONCE(t->expire)) {
		expire(ch);
	} else {
		swc_dma_chan_get(ch);
		t->chan = ch;
	}
	complete(&t->hung);
}

void swc_t_dma_wait_hung(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	KUNIT_ASSERT_GT(test, wait_for_completion_timeout(&t->hung, msecs_to_jiffies(SWC_T_HANG)), 0ul);
}

void swc_t_dma_expire(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, t->chan);
	expire(t->chan);
	swc_dma_chan_put(t->chan);
	t->chan = NULL;
}

void swc_t_dma_unhang(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	swc_t_fake_unhang(&t->fake);
	if (!t->chan)
		return;
	/* The channel may have been released but for its watch, which has nothing to wait for any more. */
	swc_t_dma_wait(!atomic64_read(&t->chan->load));
	run_watch(t->chan);
	swc_dma_chan_put(t->chan);
	t->chan = NULL;
}

/* ------------------------------------------------------------------ the engine and its channels */

struct swc_t_fake *swc_t_dma_start(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	if (!t->fake.nchans)
		t->fake.nchans = SWC_T_DMA_CHANS;
	KUNIT_ASSERT_EQ(test, swc_t_fake_add(&t->fake), 0);
	t->added = true;
	return &t->fake;
}

u32 swc_t_dma_hold(struct kunit *test, const char *mode)
{
	struct swc_t_dma *t = test->priv;

	swc_t_dma_set(test, "dma", mode);
	swc_dma_pool_demand();
	flush_workqueue(swc_wq);
	return atomic_read(&t->fake.held);
}

u32 swc_t_dma_choose(struct swc_dma_chan **chan, u32 most, int node)
{
	struct swc_dma_queue q;
	u64 share = 0;

	return swc_dma_pool_choose(chan, most, node, &share, &q);
}

void swc_t_dma_release(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	swc_t_dma_set(test, "dma", "never");
	KUNIT_EXPECT_TRUE(test, swc_t_dma_wait(!atomic_read(&t->fake.held)));
	flush_workqueue(swc_wq);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->fake.held), 0);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_DMA_CHANS_ACQUIRED),
			swc_stat_read(SWC_STAT_DMA_CHANS_RELEASED));
	KUNIT_EXPECT_EQ(test, atomic_read(&t->fake.wrong), 0);
}

struct swc_t_fake *swc_t_dma_start_always(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	swc_t_dma_start(test);
	KUNIT_ASSERT_EQ(test, swc_t_dma_hold(test, "always"), min_t(u32, t->fake.nchans, SWC_T_DMA_CHANS));
	KUNIT_EXPECT_EQ(test, swc_t_dma_least(test), 0ull);
	swc_t_dma_mark(test);
	return &t->fake;
}

int swc_t_dma_init(struct kunit *test)
{
	struct swc_t_dma *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	t->text = (char *)__get_free_page(GFP_KERNEL);
	if (!t->text)
		return -ENOMEM;
	test->priv = t;
	init_completion(&t->hung);
	t->expire = true;
	t->fake.moved = advance;
	t->fake.hung = hung;
	/* 4 us for a MiB by the CPU, 1 ms by the engine. */
	t->cpu_ns = 1000;
	t->engine_ns = 1000;
	WRITE_ONCE(current_test, t);
	swc_dma_patience_ms = 2 * SWC_T_HANG;
	swc_dma_idle_ms = 2 * SWC_T_HANG;
	swc_t_dma_release(test);
	swc_t_dma_mark(test);
	return 0;
}

void swc_t_dma_exit(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	if (!t)
		return;
	WRITE_ONCE(t->fake.refuse_stop, false);
	if (t->added)
		swc_t_dma_unhang(test);
	swc_t_dma_release(test);
	if (t->added && !atomic_read(&t->fake.held))
		swc_t_fake_remove(&t->fake);
	WRITE_ONCE(current_test, NULL);
	swc_dma_patience_ms = 2000;
	swc_dma_idle_ms = 3000;
	swc_dma_init(swc_dma_event_done);
	swc_t_dma_set(test, "dma_channels", "4");
	swc_t_dma_set(test, "dma", "auto");
	free_page((unsigned long)t->text);
}

/* ------------------------------------------------------------------ operations */

void swc_t_dma_run_with(struct swc_t_job *job, u8 redop)
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

void swc_t_dma_run(struct kunit *test, swc_t_planner planner, u32 ranks, u64 count, bool in_place,
		   u8 redop)
{
	struct swc_t_comm *c = swc_t_comm(test, ranks, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);

	swc_t_job_init(job, c, planner, count, in_place);
	swc_t_dma_mark(test);
	swc_t_dma_run_with(job, redop);
	swc_t_comm_end(c);
}

void swc_t_dma_submit(struct kunit *test, struct swc_t_comm **c, struct swc_t_job **job, u64 count,
		      u8 redop)
{
	u32 r;

	*c = swc_t_comm(test, 2, SWC_T_NO_DEADLINE);
	*job = swc_t_job_new(test);
	swc_t_job_init(*job, *c, swc_t_staged, count, false);
	for (r = 0; r < 2; r++) {
		(*job)->desc[r].redop = redop;
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(*job, r, true), 0);
	}
}
