/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tests' DMA engine.
 *
 *	dma_provider.c	the device: knobs and counters, what dmaengine calls, coming and going
 *	dma_engine.c	what its channels do: data, time, and all that goes wrong
 */
#ifndef SWC_DMA_PROVIDER_H
#define SWC_DMA_PROVIDER_H

#include <linux/atomic.h>
#include <linux/dmaengine.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

/* Failures that tx_status remembers. */
#define FAILURES	32

/* Module parameters that channels look at while they work. */
struct engine_knobs {
	bool out_of_order;
	unsigned int rate_mbps;
	unsigned int delay_us;
	unsigned int fail_nth;
	unsigned int fail_every;
	unsigned int hang_nth;
};

struct engine_counts {
	atomic64_t transfers;
	atomic64_t bytes;
	atomic64_t failed;
	atomic64_t hung;
	atomic64_t terminated;
	atomic64_t in_flight;
	atomic64_t far;
	atomic64_t refused;
	atomic64_t exhausted;
};

extern struct engine_knobs engine_knobs;
extern struct engine_counts engine_counts;

struct engine_desc {
	struct dma_async_tx_descriptor tx;
	struct list_head node;
	ktime_t issued;
	size_t len;
	dma_addr_t dst;
	unsigned int nsrc;
	dma_addr_t src[];
};

/**
 * struct engine_chan - a channel
 * @base: dmaengine's part; its cookies change under @lock
 * @lock: guards all up to @to_touch; taken in any context
 * @prepared: descriptors that may still be submitted or never be
 * @submitted: those that wait for issue_pending
 * @issued: those that wait for the thread, oldest first
 * @active: the one the thread has, until its callback has returned
 * @terminating: @active has to be dropped; the thread clears it when it has let go
 * @failed: cookies of the last transfers that failed; 0 is none
 * @nfailed: how many have
 * @fails: @active is going to
 * @due: and when it ends, where there is a timer
 * @to_touch: so many transfers more move data, where there is a timer
 * @descs: descriptors that exist
 * @free_at: when the last transfer was due to end, the earliest time for the next to begin; the thread's, or
 *	under @lock
 * @thread: exists while somebody holds the channel, unless there is a timer
 * @timer: in place of the thread, where no data moves
 * @wake: where the thread waits for work and for time, and synchronize for the thread
 */
struct engine_chan {
	struct dma_chan base;
	spinlock_t lock;
	struct list_head prepared;
	struct list_head submitted;
	struct list_head issued;
	struct engine_desc *active;
	bool terminating;
	dma_cookie_t failed[FAILURES];
	unsigned int nfailed;
	bool fails;
	ktime_t due;
	unsigned int to_touch;
	atomic_t descs;
	ktime_t free_at;
	struct task_struct *thread;
	struct hrtimer timer;
	wait_queue_head_t wake;
};

void engine_give_back(struct engine_chan *chan, struct engine_desc *desc);
int engine_serve(void *data);
void engine_begin_next(struct engine_chan *chan);
void engine_init_timer(struct hrtimer *timer);

#endif /* SWC_DMA_PROVIDER_H */
