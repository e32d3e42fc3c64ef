/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DMA engines: what the files of dma/ share. Calls go down this list only; upward go the callbacks of jobs,
 * batches and lost channels.
 *
 *	dma.c		the face, dma.h: which copies are for engines; preparing jobs
 *	pool.c		the channels held; module parameters
 *	calibrate.c	measures channels beside a CPU
 *	split.c		cuts copies into pieces, one descriptor each
 *	job.c		a job: assigned to channels, launched, ended
 *	chan.c		one channel: acquired, given batches, watched, stopped
 *	cost.c		predictions from measured speeds
 *
 * Locks: ch->submit (submitting, stopping) > ch->lock (what is in flight; taken by completions). pool.lock
 * is a leaf.
 */
#ifndef SWC_DMA_ENGINE_H
#define SWC_DMA_ENGINE_H

#include <linux/dmaengine.h>
#include <linux/dma-mapping.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "dma.h"

#define SWC_DMA_MAX_CHANS	16
#define SWC_DMA_MAX_SRC		4	/* sources of one xor */
/* More bytes than this count as this many, so that no prediction overflows. */
#define SWC_DMA_MAX_JUDGED	(1ull << 36)
/* Minimum bytes of an engine's part in mode "share". */
#define SWC_DMA_MIN_SHARE	(64u << 10)

struct swc_dma_batch;
struct swc_dma_job;

/* The parameter "dma". */
enum swc_dma_mode {
	SWC_DMA_NEVER,
	SWC_DMA_AUTO,		/* where an engine is predicted to be faster */
	SWC_DMA_ALWAYS,
	SWC_DMA_SHARE,		/* CPU and engine each take a part of a copy */
};

/* Why the CPU has to do a job again. */
enum swc_dma_failure {
	SWC_DMA_GOOD,
	SWC_DMA_NO_MAPPING,
	SWC_DMA_BUSY,
	SWC_DMA_NO_DESCRIPTOR,
	SWC_DMA_CHANNEL_ERROR,
	SWC_DMA_NO_ANSWER,
};

/* Note a failure. The first one counts; but a channel that does not answer is the cause of all others. */
static inline void swc_dma_fail(int *failure, enum swc_dma_failure why)
{
	if (why == SWC_DMA_NO_ANSWER)
		WRITE_ONCE(*failure, why);
	else
		cmpxchg(failure, SWC_DMA_GOOD, why);
}

/* Time that channels take for a job, in ns: to start, and for each MiB. */
struct swc_dma_cost {
	u64 start;
	u64 mib;
};

/**
 * struct swc_dma_speeds - measured speeds
 * @cpu_mib: ns that one CPU takes to copy a MiB; 0: nothing has been measured
 * @nchans: channels
 * @one: cost of one of them alone
 * @all: cost of each when all work on equally many bytes
 */
struct swc_dma_speeds {
	u64 cpu_mib;
	u32 nchans;
	struct swc_dma_cost one;
	struct swc_dma_cost all;
};

/**
 * struct swc_dma_queue - work ahead of a job
 * @front: largest number of bytes that one of its channels has to move first
 * @busy: channels with work, those of the job included
 */
struct swc_dma_queue {
	u64 front;
	u32 busy;
};

/**
 * struct swc_dma_chan - a channel that this module holds
 *
 * References: the pool, each batch until its job has ended, the watch while it is pending.
 *
 * @ref: references
 * @chan: the channel
 * @dev: device that memory is mapped for
 * @node: NUMA node that it belongs to, or NUMA_NO_NODE
 * @max_seg: maximum bytes of a descriptor
 * @max_xor: maximum sources of a xor, 0: it has none
 * @mib_ns: ns for a MiB when all channels are busy; 0: not measured
 * @ordered: descriptors complete in the order of submission, also without an interrupt each
 * @lost: called when it is @broken, or fails again and again
 * @submit: held while descriptors are prepared and submitted, and while the channel is stopped
 * @lock: guards @batches, and @broken for writing
 * @broken: nothing is submitted any more; set once, by chan.c
 * @batches: in flight, in the order of submission
 * @load: bytes that it has been chosen for
 * @queued: bytes of these that have been submitted and have not ended
 * @errors: failed descriptors without an interrupt, modulo 2^32
 * @failures: batches in a row that it has reported as failed
 * @watch: checks that batches end in time
 * @late: batches that a completion may still touch until the channel is released
 */
struct swc_dma_chan {
	struct kref ref;
	struct dma_chan *chan;
	struct device *dev;
	int node;
	u32 max_seg;
	u32 max_xor;
	u64 mib_ns;
	bool ordered;
	void (*lost)(struct swc_dma_chan *ch);
	struct mutex submit;
	spinlock_t lock;
	bool broken;
	struct list_head batches;
	atomic64_t load;
	atomic64_t queued;
	atomic_t errors;
	atomic_t failures;
	struct delayed_work watch;
	struct llist_head late;
};

/**
 * struct swc_dma_piece - one descriptor, or a stretch that the CPU copies
 * @src, @dst: @from and @to as the device sees them
 * @from, @to: addresses
 * @bytes: length
 * @batch: that it belongs to
 * @cookie: of its descriptor, if the channel's status for it can be believed; else 0
 * @called_back: its callback has run
 */
struct swc_dma_piece {
	dma_addr_t src[SWC_DMA_MAX_SRC];
	dma_addr_t dst;
	void *from[SWC_DMA_MAX_SRC];
	void *to;
	u32 bytes;
	struct swc_dma_batch *batch;
	dma_cookie_t cookie;
	bool called_back;
};

/**
 * struct swc_dma_batch_ops - what a channel tells about a batch; atomic context
 * @ended: nothing of it is in flight any more, and its failure, if any, is known. Exactly once.
 * @hold: its memory must stay beyond its end
 * @release: and need not any more
 */
struct swc_dma_batch_ops {
	void (*ended)(struct swc_dma_batch *b);
	void (*hold)(struct swc_dma_batch *b);
	void (*release)(struct swc_dma_batch *b);
};

/**
 * struct swc_dma_batch - descriptors of one job for one channel
 *
 * The job fills in the fields up to @n; the rest is the channel's.
 *
 * @ops: callbacks
 * @job: that it belongs to
 * @ch: reference
 * @share: bytes that @ch was chosen for
 * @nsrc: sources of each piece
 * @piece, @n: pieces
 * @node: in ch->batches until it ends; ch->lock
 * @ended: it has ended, by a completion or because the channel has been stopped
 * @left: interrupts to come, and one until all is submitted, and one while it is @stranded
 * @stranded: the last descriptor submitted has no interrupt, because there was none left for the rest
 * @last: cookie of the last descriptor submitted
 * @errors: ch->errors before
 * @failure: enum swc_dma_failure, see swc_dma_fail()
 * @deadline: in jiffies; set again with each descriptor that is submitted
 * @submitter: task that submits it, until all is submitted; ch->lock
 * @late: in ch->late, if a completion may come after the end
 */
struct swc_dma_batch {
	const struct swc_dma_batch_ops *ops;
	struct swc_dma_job *job;
	struct swc_dma_chan *ch;
	u64 share;
	u32 nsrc;
	struct swc_dma_piece *piece;
	u32 n;
	struct list_head node;
	atomic_t ended;
	atomic_t left;
	bool stranded;
	dma_cookie_t last;
	int errors;
	int failure;
	unsigned long deadline;
	struct task_struct *submitter;
	struct llist_node late;
};

/**
 * struct swc_dma_job - what engines do of one copy, or of several
 *
 * Allocated, filled with pieces, assigned to channels; then cancelled, or launched and ended. Freed when it
 * has ended and no batch is @late.
 *
 * @ended: called at the end, in a work item on @wq; not if it is cancelled
 * @owner: for @ended
 * @wq: for @work
 * @work: the end
 * @held: references to the memory: one until the end, one for each late batch
 * @left: batches that have not ended, and one until all are submitted
 * @launched: the memory belongs to the devices
 * @failure: enum swc_dma_failure, see swc_dma_fail()
 * @bytes: of its copies
 * @cpu_only: bytes of these that the CPU copies
 * @nsrc: sources of each piece
 * @nitems, @item: its copies
 * @nbatches, @batch: one for each channel with pieces
 * @nshort: pieces for the CPU, the first in @piece
 * @max_short: room for these; the engines' pieces follow
 * @npieces: number of the engines' pieces
 */
struct swc_dma_job {
	void (*ended)(struct swc_dma_job *job, bool good);
	void *owner;
	struct workqueue_struct *wq;
	struct work_struct work;
	atomic_t held;
	atomic_t left;
	bool launched;
	int failure;
	u64 bytes;
	u64 cpu_only;
	u32 nsrc;
	u32 nitems;
	struct swc_dma_item item[SWC_DMA_MAX_ITEMS];
	u32 nbatches;
	struct swc_dma_batch batch[SWC_DMA_MAX_CHANS];
	u32 nshort;
	u32 max_short;
	u32 npieces;
	struct swc_dma_piece piece[];
};

/* Requirements common to the channels of a job; pieces shorter than @min_piece are the CPU's. */
struct swc_dma_limits {
	u32 max_seg;
	u32 align;
	u32 line;
	u32 min_piece;
};

/* Pieces and bytes of copies: [0] for engines, [1] for the CPU. */
struct swc_dma_tally {
	u32 n[2];
	u64 bytes[2];
};

/* How copies are to be split: limits, and what they add up to. */
struct swc_dma_split {
	struct swc_dma_limits lim;
	struct swc_dma_tally all;
	u64 cpu_only;
};

#ifdef SWC_KUNIT
/* The tests' clock. */
u64 swc_t_dma_clock_ns(void);
#define swc_dma_clock_ns()	swc_t_dma_clock_ns()
#else
#define swc_dma_clock_ns()	ktime_get_ns()
#endif

/* pool.c */
extern u32 swc_dma_idle_ms;
enum swc_dma_mode swc_dma_pool_mode(void);
struct swc_dma_speeds swc_dma_pool_speeds(void);
u64 swc_dma_pool_least(void);
void swc_dma_pool_demand(void);
u32 swc_dma_pool_choose(struct swc_dma_chan **chan, u32 most, int node, u64 *share, struct swc_dma_queue *q);
void swc_dma_pool_touch(void);
void swc_dma_pool_exit(void);

/* calibrate.c */
u32 swc_dma_calibrate(struct swc_dma_chan **chan, u32 nchans, struct swc_dma_speeds *s);
bool swc_dma_copy_sync(struct swc_dma_chan **chan, u32 nchans, void *dst, void *src, u32 bytes);

/* split.c */
u64 swc_dma_split_count(struct swc_dma_split *split, struct swc_dma_chan **chan, u32 nchans, u64 share,
			struct swc_dma_item *items, u32 n, u32 min_piece);
struct swc_dma_job *swc_dma_split_make(const struct swc_dma_split *split, struct workqueue_struct *wq,
				       const struct swc_dma_item *items, u32 n);

/* job.c */
struct swc_dma_job *swc_dma_job_alloc(struct workqueue_struct *wq, u32 npieces, u32 nshort);
void swc_dma_job_assign(struct swc_dma_job *job, struct swc_dma_chan **chan, u32 nchans, u64 share);

/* chan.c */
extern u32 swc_dma_patience_ms;
struct swc_dma_chan *swc_dma_chan_acquire(int node, void (*lost)(struct swc_dma_chan *ch));
void swc_dma_chan_get(struct swc_dma_chan *ch);
void swc_dma_chan_put(struct swc_dma_chan *ch);
void swc_dma_chans_drain(void);
u64 swc_dma_chan_reserve(struct swc_dma_chan *ch, u64 bytes);
void swc_dma_chan_unreserve(struct swc_dma_chan *ch, u64 bytes);
void swc_dma_chan_unwatch(struct swc_dma_chan *ch);
enum swc_dma_failure swc_dma_chan_submit(struct swc_dma_batch *b);
bool swc_dma_chan_judge(struct swc_dma_batch *b);

/* cost.c */
u32 swc_dma_cost_nchans(u32 most, u64 bytes);
bool swc_dma_cost_is_faster(const struct swc_dma_speeds *s, u64 bytes, u64 load, u32 busy, u32 workers);
u64 swc_dma_cost_least(const struct swc_dma_speeds *s);
u64 swc_dma_cost_share(const struct swc_dma_speeds *s, u64 bytes);
u64 swc_dma_cost_least_shared(const struct swc_dma_speeds *s, u64 least);

#endif /* SWC_DMA_ENGINE_H */
