/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DMA engines.
 *
 *	channel.c	channels: taken when first wished for, measured, given back when idle
 *	copy.c		moves carried out by them
 *
 * Locks: channel mutex (submitting, stopping) > its spinlock (what is in flight; taken by completions).
 */
#ifndef SWC_DMA_DMA_H
#define SWC_DMA_DMA_H

#include <linux/dmaengine.h>
#include <linux/dma-mapping.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "../dma.h"

#define SWC_DMA_MAX_CHANS	16
#define SWC_DMA_MAX_SRC		4	/* of one xor */

/**
 * struct swc_dma_chan - a channel that is ours
 *
 * References: the pool, each batch in flight. The last put is in process context.
 *
 * @ref: references
 * @chan: the channel
 * @dev: device that memory is mapped for
 * @node: NUMA node that it belongs to, or NUMA_NO_NODE
 * @max_seg: bytes that one descriptor may move
 * @max_xor: sources of one xor, 0: it cannot
 * @submit: held while descriptors are prepared and submitted, and while the channel is stopped
 * @broken: nothing is given to it any more
 * @lock: guards @batches
 * @batches: in flight, in the order of submission
 * @load: bytes that it has been chosen for
 * @queued: of them, those that have been submitted and are not over
 * @ndone: descriptors that have come back, modulo 2^32
 * @watch: looks whether they come back in time
 */
struct swc_dma_chan {
	struct kref ref;
	struct dma_chan *chan;
	struct device *dev;
	int node;
	u32 max_seg;
	u32 max_xor;
	struct mutex submit;
	bool broken;
	spinlock_t lock;
	struct list_head batches;
	atomic64_t load;
	atomic64_t queued;
	atomic_t ndone;
	struct delayed_work watch;
};

/* channel.c */
u64 swc_dma_least(void);
bool swc_dma_forced(void);
u64 swc_dma_least_job(void);
u32 swc_dma_take(struct swc_dma_chan **chan, u32 most, int node, u64 *share);
void swc_dma_put(struct swc_dma_chan *ch);
void swc_dma_retire(struct swc_dma_chan *ch);

/* copy.c */
extern u32 swc_dma_patience_ms;
void swc_dma_watch(struct work_struct *work);
bool swc_dma_try(struct swc_dma_chan *ch, void *dst, void *src, u32 bytes);

#endif /* SWC_DMA_DMA_H */
