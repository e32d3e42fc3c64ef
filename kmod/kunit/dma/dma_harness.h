/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the suites of DMA engines share. Each test has an engine of its own, which it describes before it
 * starts it.
 */
#ifndef SWC_KUNIT_DMA_HARNESS_H
#define SWC_KUNIT_DMA_HARNESS_H

#include <linux/moduleparam.h>

#include "kunit/dma/fake_engine.h"
#include "kunit/harness.h"

#define SWC_T_DMA_CHANS	4
/* Patience with a channel that hangs, for tests that need not wait long. */
#define SWC_T_SHORT_MS	50
/* Likewise, for tests in which it must not end while the machine stands still for a moment. */
#define SWC_T_LONG_MS	5000

/* test->priv */
struct swc_t_dma {
	struct swc_t_fake fake;
	bool added;
	char *text;		/* a page */
	u64 base[SWC_STAT_NR];
};

/* For struct kunit_suite. At the end all channels must be free, and the engine used by its rules. */
int swc_t_dma_init(struct kunit *test);
void swc_t_dma_exit(struct kunit *test);

/* Parameters of the module. */
const struct kernel_param *swc_t_dma_param(struct kunit *test, const char *name);
void swc_t_dma_set(struct kunit *test, const char *name, const char *value);
/* U64_MAX: channels are not used, or not held. */
u64 swc_t_dma_least(struct kunit *test);

/* By how much a counter has grown since the last mark. */
void swc_t_dma_mark(struct kunit *test);
u64 swc_t_dma_grown(struct kunit *test, enum swc_stat which);

/* With what the test has put into the fake; forced: and its channels are held, and used for all. */
struct swc_t_fake *swc_t_dma_start(struct kunit *test);
struct swc_t_fake *swc_t_dma_start_forced(struct kunit *test);
/* Wish for channels; how many are held then. */
u32 swc_t_dma_hold(struct kunit *test, const char *mode);
void swc_t_dma_give_back(struct kunit *test);

/* A job with another operation than the harness's sum; a whole operation; and one of two ranks, begun. */
void swc_t_dma_run_with(struct swc_t_job *job, u8 redop);
void swc_t_dma_run(struct kunit *test, swc_t_planner planner, u32 ranks, u64 count, bool in_place,
		   u8 redop);
void swc_t_dma_submit(struct kunit *test, struct swc_t_comm **c, struct swc_t_job **job, u64 count,
		      u8 redop);

#endif /* SWC_KUNIT_DMA_HARNESS_H */
