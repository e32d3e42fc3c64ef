/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moves by DMA engines, as the executor sees them.
 *
 * Moves that engines take are prepared, one or several of the same operation together, and launched or
 * cancelled. When launched they come back exactly once, together, by the function that swc_dma_init() was
 * given: with the bytes that are in place, from the first on. The rest, or after an error all, is the CPU's.
 */
#ifndef SWC_DMA_H
#define SWC_DMA_H

#include "mem/reduce_copy.h"

#define SWC_DMA_MAX_ITEMS	32	/* moves of a job */

struct swc_dma_job;
struct swc_run;

/**
 * struct swc_dma_item - a move for engines
 * @run: whose
 * @move: what to move, from where it stands; not looked at after swc_dma_prepare()
 * @bytes: that engines take of it, from the first on; at the end: that are done, which is all or nothing
 */
struct swc_dma_item {
	struct swc_run *run;
	const struct swc_move *move;
	u64 bytes;
};

/* Why the CPU has to do a job after all. */
enum swc_dma_failure {
	SWC_DMA_GOOD,
	SWC_DMA_NO_MAPPING,
	SWC_DMA_NO_DESCRIPTOR,
	SWC_DMA_CHANNEL_ERROR,
	SWC_DMA_NO_ANSWER,
};

/* Process context, no locks held. */
typedef void (*swc_dma_done)(const struct swc_dma_item *items, u32 n);

#ifdef SWC_DMA

void swc_dma_init(swc_dma_done done);
void swc_dma_exit(void);
bool swc_dma_wants(const struct swc_move *m, u32 moves, u32 workers);
u64 swc_dma_share(u64 bytes);
int swc_dma_node(const struct swc_move *m);
struct swc_dma_job *swc_dma_prepare(struct workqueue_struct *wq, struct swc_dma_item *items, u32 n,
				    u32 workers);
void swc_dma_launch(struct swc_dma_job *job);
void swc_dma_cancel(struct swc_dma_job *job);

#else /* a kernel without dmaengine */

static inline void swc_dma_init(swc_dma_done done) { }
static inline void swc_dma_exit(void) { }
static inline bool swc_dma_wants(const struct swc_move *m, u32 moves, u32 workers) { return false; }
static inline u64 swc_dma_share(u64 bytes) { return 0; }
static inline int swc_dma_node(const struct swc_move *m) { return 0; }
static inline struct swc_dma_job *swc_dma_prepare(struct workqueue_struct *wq, struct swc_dma_item *items,
						  u32 n, u32 workers)
{
	return NULL;
}

static inline void swc_dma_launch(struct swc_dma_job *job) { }
static inline void swc_dma_cancel(struct swc_dma_job *job) { }

#endif

#endif /* SWC_DMA_H */
