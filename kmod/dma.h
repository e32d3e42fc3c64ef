/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DMA engines, as the executor sees them.
 *
 * The executor asks which copies are for engines, prepares a job from one or several of the same operation,
 * and launches or cancels it. A launched job ends exactly once, by the callback given to swc_dma_init().
 * The CPU does the rest, or everything if the engines failed.
 *
 * "Copy" includes the xor of a few sources here: struct swc_reduce_copy.
 */
#ifndef SWC_DMA_H
#define SWC_DMA_H

#include "mem/reduce_copy.h"

#define SWC_DMA_MAX_ITEMS	32	/* copies of a job */

struct swc_dma_job;

/**
 * struct swc_dma_item - a copy for engines
 * @owner: the caller's; the callback gets it back
 * @copy: what to copy, from @copy->done on; not used after swc_dma_prepare()
 * @bytes: bytes from @copy->done on that engines take; in the callback: that are in place, either all of
 *	these or, after an error, none
 */
struct swc_dma_item {
	void *owner;
	const struct swc_reduce_copy *copy;
	u64 bytes;
};

/* A job has ended. Process context, no locks held; @items are valid until it returns. */
typedef void (*swc_dma_done)(const struct swc_dma_item *items, u32 n);

#ifdef SWC_DMA

void swc_dma_init(swc_dma_done done);
void swc_dma_exit(void);
void swc_dma_demand(const struct swc_reduce_copy *m);
bool swc_dma_wants(const struct swc_reduce_copy *m, u32 copies, u32 workers);
u64 swc_dma_share(u64 bytes);
int swc_dma_node(const struct swc_reduce_copy *m);
struct swc_dma_job *swc_dma_prepare(struct workqueue_struct *wq, struct swc_dma_item *items, u32 n,
				    u32 workers);
void swc_dma_launch(struct swc_dma_job *job);
void swc_dma_cancel(struct swc_dma_job *job);

#else /* a kernel without dmaengine */

static inline void swc_dma_init(swc_dma_done done) { }
static inline void swc_dma_exit(void) { }
static inline void swc_dma_demand(const struct swc_reduce_copy *m) { }
static inline bool swc_dma_wants(const struct swc_reduce_copy *m, u32 copies, u32 workers) { return false; }
static inline u64 swc_dma_share(u64 bytes) { return 0; }
static inline int swc_dma_node(const struct swc_reduce_copy *m) { return 0; }
static inline struct swc_dma_job *swc_dma_prepare(struct workqueue_struct *wq, struct swc_dma_item *items,
						  u32 n, u32 workers)
{
	return NULL;
}

static inline void swc_dma_launch(struct swc_dma_job *job) { }
static inline void swc_dma_cancel(struct swc_dma_job *job) { }

#endif

#endif /* SWC_DMA_H */
