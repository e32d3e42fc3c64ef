/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moves by DMA engines, as the executor sees them.
 *
 * A move that an engine takes is prepared, and launched or cancelled. When launched it comes back exactly
 * once, by the function that swc_dma_init() was given: with the bytes that are in place, from the first on.
 * The rest, or after an error all, is the CPU's.
 */
#ifndef SWC_DMA_H
#define SWC_DMA_H

#include "move.h"

struct swc_dma_job;
struct swc_run;

/* Process context, no locks held. @bytes more of the run's move are done. */
typedef void (*swc_dma_done)(struct swc_run *run, u64 bytes);

#ifdef SWC_DMA

void swc_dma_init(swc_dma_done done);
void swc_dma_exit(void);
bool swc_dma_wants(const struct swc_move *m);
u64 swc_dma_share(u64 bytes);
struct swc_dma_job *swc_dma_prepare(struct workqueue_struct *wq, const struct swc_move *m);
void swc_dma_launch(struct swc_dma_job *job, struct swc_run *run);
void swc_dma_cancel(struct swc_dma_job *job);

#else /* a kernel without dmaengine */

static inline void swc_dma_init(swc_dma_done done) { }
static inline void swc_dma_exit(void) { }
static inline bool swc_dma_wants(const struct swc_move *m) { return false; }
static inline u64 swc_dma_share(u64 bytes) { return 0; }
static inline struct swc_dma_job *swc_dma_prepare(struct workqueue_struct *wq, const struct swc_move *m)
{
	return NULL;
}

static inline void swc_dma_launch(struct swc_dma_job *job, struct swc_run *run) { }
static inline void swc_dma_cancel(struct swc_dma_job *job) { }

#endif

#endif /* SWC_DMA_H */
