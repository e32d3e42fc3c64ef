/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the suites of DMA engines share. Each test has an engine of its own, which it describes before it
 * adds it.
 *
 * Nothing depends on the speed of the machine. A channel is late only when a test says so: by default at
 * once when it hangs. The clock of the calibration advances with what is read and copied.
 */
#ifndef SWC_KUNIT_DMA_HARNESS_H
#define SWC_KUNIT_DMA_HARNESS_H

#include <linux/delay.h>
#include <linux/moduleparam.h>
#include <linux/sizes.h>

#include "kunit/dma/fake_engine.h"
#include "kunit/harness.h"

#define SWC_T_DMA_CHANS	4

/**
 * struct swc_t_dma - test->priv
 * @fake: the engine; at first with no limits
 * @added: it has been added
 * @text: a page
 * @base: counters at the last mark
 * @cpu_ns: time that the clock advances whenever it is read, and thus of one copy by the CPU
 * @engine_ns: time that it advances for each KiB that the engine copies
 * @clock: ns
 * @expire: a channel that hangs is late at once
 * @hung: a channel has hung; without @expire it stays for swc_t_dma_expire() or swc_t_dma_unhang()
 * @chan: that channel, with a reference
 */
struct swc_t_dma {
	struct swc_t_fake fake;
	bool added;
	char *text;
	u64 base[SWC_STAT_NR];
	u64 cpu_ns;
	u64 engine_ns;
	atomic64_t clock;
	bool expire;
	struct completion hung;
	struct swc_dma_chan *chan;
};

/* For struct kunit_suite. Exit checks that all channels are released and no rule was broken. */
int swc_t_dma_init(struct kunit *test);
void swc_t_dma_exit(struct kunit *test);

/* Parameters of the module. */
const struct kernel_param *swc_t_dma_param(struct kunit *test, const char *name);
void swc_t_dma_set(struct kunit *test, const char *name, const char *value);
/* U64_MAX: channels are not used, or not held. */
u64 swc_t_dma_least(struct kunit *test);

/* How much a counter has grown since the last mark. */
void swc_t_dma_mark(struct kunit *test);
u64 swc_t_dma_grown(struct kunit *test, enum swc_stat which);

/* Wait until a condition is true; false after SWC_T_HANG. */
#define swc_t_dma_wait(condition) ({						\
	u32 left_ = SWC_T_HANG / 20;						\
										\
	while (!(condition) && left_--)						\
		msleep(20);							\
	left_ + 1 > 0;								\
})

/* Add the engine; and have its channels held, in mode "always". */
struct swc_t_fake *swc_t_dma_start(struct kunit *test);
struct swc_t_fake *swc_t_dma_start_always(struct kunit *test);
/* Set the mode and demand channels. Returns how many are held then. */
u32 swc_t_dma_hold(struct kunit *test, const char *mode);
void swc_t_dma_release(struct kunit *test);
/* References to held channels, with nothing to do for them. */
u32 swc_t_dma_choose(struct swc_dma_chan **chan, u32 most, int node);
/* Wait until a channel hangs. Then it is late, or goes on. */
void swc_t_dma_wait_hung(struct kunit *test);
void swc_t_dma_expire(struct kunit *test);
void swc_t_dma_unhang(struct kunit *test);
/* What is in flight on a channel is late, and the watch has seen it. */
void swc_t_dma_make_late(struct swc_dma_chan *ch);

/* Run a job with another operation than the harness's sum; run a whole operation; start one of two ranks. */
void swc_t_dma_run_with(struct swc_t_job *job, u8 redop);
void swc_t_dma_run(struct kunit *test, swc_t_planner planner, u32 ranks, u64 count, bool in_place,
		   u8 redop);
void swc_t_dma_submit(struct kunit *test, struct swc_t_comm **c, struct swc_t_job **job, u64 count,
		      u8 redop);

#endif /* SWC_KUNIT_DMA_HARNESS_H */
