/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DMA engines.
 *
 *	channel.c	channels: taken when first wished for, given back when idle; and which moves they get
 *	worth.c		what they need for a move, beside a CPU
 *	cut.c		what engines can take of moves, in pieces for one descriptor each
 *	copy.c		moves carried out by them
 *
 * Locks: channel mutex (submitting, stopping) > its spinlock (what is in flight; taken by completions).
 */
#ifndef SWC_DMA_DMA_H
#define SWC_DMA_DMA_H

#include <linux/completion.h>
#include <linux/dmaengine.h>
#include <linux/dma-mapping.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "../dma.h"

#define SWC_DMA_MAX_CHANS	16
#define SWC_DMA_MAX_SRC		4	/* of one xor */
#define SWC_DMA_SHARE_BYTES	(1u << 20)	/* one channel for so many */

/* ns: what channels take for a job is a start and a time for each MiB. */
struct swc_dma_pace {
	u64 start;
	u64 mib;
};

/**
 * struct swc_dma_speeds - measured
 * @cpu_mib: ns that one CPU takes to copy a MiB; it starts at once
 * @nchans: channels
 * @one: one of them alone
 * @all: all together, equally many bytes each
 */
struct swc_dma_speeds {
	u64 cpu_mib;
	u32 nchans;
	struct swc_dma_pace one;
	struct swc_dma_pace all;
};

/**
 * struct swc_dma_queue - what stands in the way of a job
 * @front: bytes that one of its channels has to move before it, at most
 * @busy: channels with something to do, those of the job included
 */
struct swc_dma_queue {
	u64 front;
	u32 busy;
};

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
 * @broken: nothing is given to it any more; changes under @lock
 * @lock: guards @batches
 * @batches: in flight, in the order of submission
 * @load: bytes that it has been chosen for
 * @queued: of them, those that have been submitted and are not over
 * @ordered: descriptors are done in the order of their submission, also without an interrupt each
 * @errors: descriptors without one that have failed, modulo 2^32
 * @watch: looks whether they come back in time
 * @late: batches that a completion may still look at until the channel is given back
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
	bool ordered;
	atomic_t errors;
	struct delayed_work watch;
	struct llist_head late;
};

/**
 * struct swc_dma_piece - one descriptor, or what the CPU copies
 * @src, @dst: the same as @from, @to, for the device
 * @batch: whose
 * @cookie: after it has been submitted to a channel whose status is of use; else 0
 * @over: its callback has come
 */
struct swc_dma_piece {
	dma_addr_t src[SWC_DMA_MAX_SRC];
	dma_addr_t dst;
	void *from[SWC_DMA_MAX_SRC];
	void *to;
	u32 bytes;
	struct swc_dma_batch *batch;
	dma_cookie_t cookie;
	bool over;
};

/**
 * struct swc_dma_batch - what one channel does of a job
 * @node: in the channel's list, until it is over; the channel's lock
 * @job: whose
 * @ch: reference
 * @over: somebody has seen its end, a completion or who stopped the channel
 * @left: interrupts that are to come, and one more until all is submitted, and as long as it is @stranded
 * @stranded: the last of what was submitted has no interrupt, for there was no descriptor for the rest
 * @last: and this is it
 * @errors: of the channel, before
 * @deadline: jiffies
 * @late: in the channel's list, if its completion may come when all is over
 * @first, @n: pieces
 */
struct swc_dma_batch {
	struct list_head node;
	struct swc_dma_job *job;
	struct swc_dma_chan *ch;
	atomic_t over;
	atomic_t left;
	bool stranded;
	dma_cookie_t last;
	int errors;
	unsigned long deadline;
	struct llist_node late;
	u32 first;
	u32 n;
};

struct swc_dma_waiter {
	struct completion done;
	bool good;
};

/**
 * struct swc_dma_job - what engines do of one move, or of several
 * @waiter: who waits for it, if it is nobody's move
 * @work: the end, on @wq
 * @left: batches that are not over, and one more until all are there
 * @launched: the memory is the devices'
 * @failed: enum swc_dma_failure, the first; but if a channel does not answer, that
 * @held: 1 until the end, and 1 for each batch that is @late
 * @share: what each of its channels was chosen for
 * @bytes: of the moves
 * @by_cpu: of them, those that the CPU copies
 * @nsrc: sources of each piece
 * @nitems, @item: the moves
 * @nshort: pieces that are the CPU's, the first in @piece
 * @most_short: room for so many; behind it are the engines'
 * @npieces: those
 */
struct swc_dma_job {
	struct swc_dma_waiter *waiter;
	struct workqueue_struct *wq;
	struct work_struct work;
	atomic_t left;
	bool launched;
	int failed;
	atomic_t held;
	u64 share;
	u64 bytes;
	u64 by_cpu;
	u32 nsrc;
	u32 nitems;
	struct swc_dma_item item[SWC_DMA_MAX_ITEMS];
	u32 nbatches;
	struct swc_dma_batch batch[SWC_DMA_MAX_CHANS];
	u32 nshort;
	u32 most_short;
	u32 npieces;
	struct swc_dma_piece piece[];
};

/* channel.c */
u64 swc_dma_least(void);
bool swc_dma_forced(void);
bool swc_dma_pays(const struct swc_dma_queue *q, u32 nchans, u64 bytes, u32 workers);
u32 swc_dma_take(struct swc_dma_chan **chan, u32 most, int node, u64 *share, struct swc_dma_queue *q);
void swc_dma_used(void);
void swc_dma_put(struct swc_dma_chan *ch);
void swc_dma_retire(struct swc_dma_chan *ch);
u64 swc_dma_ms(u64 bytes);

/* worth.c */
bool swc_dma_measure(struct swc_dma_chan **chan, u32 nchans, struct swc_dma_speeds *s);
u32 swc_dma_nchans(u32 most, u64 bytes);
bool swc_dma_is_faster(const struct swc_dma_speeds *s, u64 bytes, u64 load, u32 busy, u32 workers);
u64 swc_dma_least_of(const struct swc_dma_speeds *s);
u64 swc_dma_part(const struct swc_dma_speeds *s, u64 bytes);
u64 swc_dma_least_shared(const struct swc_dma_speeds *s, u64 least);

/* cut.c */
struct swc_dma_job *swc_dma_job_alloc(u32 npieces, u32 nshort);
struct swc_dma_job *swc_dma_cut(struct swc_dma_chan **chan, u32 nchans, u64 share,
				const struct swc_dma_queue *q, struct swc_dma_item *items, u32 n,
				u32 workers);

/* copy.c */
extern u32 swc_dma_patience_ms;
void swc_dma_watch(struct work_struct *work);
void swc_dma_no_more_late(struct swc_dma_chan *ch);
bool swc_dma_try(struct swc_dma_chan **chan, u32 nchans, void *dst, void *src, u32 bytes);

#endif /* SWC_DMA_DMA_H */
