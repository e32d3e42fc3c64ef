// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the suites of DMA engines share: an engine (dma_fake.h), its channels, and operations that use it.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "dma/engine.h"
#include "exec/net_event.h"
#include "dma_harness.h"

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

/* U64_MAX: channels are not used, or not held. */
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

/* ------------------------------------------------------------------ the engine and its channels */

/* With what a test has put into @fake. */
struct swc_t_fake *swc_t_dma_start(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	if (!t->fake.nchans)
		t->fake.nchans = SWC_T_DMA_CHANS;
	KUNIT_ASSERT_EQ(test, swc_t_fake_add(&t->fake), 0);
	t->added = true;
	return &t->fake;
}

/* Wish for channels; how many are held then. */
u32 swc_t_dma_hold(struct kunit *test, const char *mode)
{
	struct swc_t_dma *t = test->priv;

	swc_t_dma_set(test, "dma", mode);
	swc_dma_least();
	flush_workqueue(swc_wq);
	return atomic_read(&t->fake.held);
}

void swc_t_dma_give_back(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;
	u32 i;

	swc_t_dma_set(test, "dma", "never");
	for (i = 0; i < 1000 && atomic_read(&t->fake.held); i++)
		msleep(20);
	flush_workqueue(swc_wq);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->fake.held), 0);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_DMA_CHANS_TAKEN),
			swc_stat_read(SWC_STAT_DMA_CHANS_GIVEN));
	KUNIT_EXPECT_EQ(test, atomic_read(&t->fake.wrong), 0);
}

/* Forced, with a fresh engine. */
struct swc_t_fake *swc_t_dma_start_forced(struct kunit *test)
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
	swc_t_dma_give_back(test);
	swc_t_dma_mark(test);
	return 0;
}

void swc_t_dma_exit(struct kunit *test)
{
	struct swc_t_dma *t = test->priv;

	if (!t)
		return;
	WRITE_ONCE(t->fake.stubborn, false);
	if (t->added)
		swc_t_fake_unhang(&t->fake);
	swc_t_dma_give_back(test);
	if (t->added && !atomic_read(&t->fake.held))
		swc_t_fake_remove(&t->fake);
	swc_dma_patience_ms = 2000;
	swc_dma_init(swc_news_moved);
	swc_t_dma_set(test, "dma_channels", "4");
	swc_t_dma_set(test, "dma", "auto");
	free_page((unsigned long)t->text);
}

/* ------------------------------------------------------------------ operations */

/* Another operation than the harness's sum. */
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
	struct swc_t_comm *c = swc_t_comm(test, ranks, 20000);
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

	*c = swc_t_comm(test, 2, 60000);
	*job = swc_t_job_new(test);
	swc_t_job_init(*job, *c, swc_t_staged, count, false);
	for (r = 0; r < 2; r++) {
		(*job)->desc[r].redop = redop;
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(*job, r, true), 0);
	}
}
