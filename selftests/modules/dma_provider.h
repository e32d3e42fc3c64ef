/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The DMA engine for tests.
 *
 *	dma_provider.c	the device: parameters, counters, operations for dmaengine, probe
 *	dma_engine.c	the channels: transfers, their timing and their failures
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

/* How many failed cookies tx_status remembers. */
#define FAILURES	32

/* Module parameters that channels read while they work. */
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
 * @lock: protects the members up to @to_touch; taken in any context
 * @prepared: descriptors that are not submitted yet
 * @submitted: descriptors that wait for issue_pending
 * @issued: descriptors that wait for the thread, oldest first
 * @active: the descriptor of the thread, until its callback has returned
 * @terminating: @active has to be dropped; cleared by the thread when it has done so
 * @failed: cookies of the last failed transfers; 0 is none
 * @nfailed: number of failed transfers
 * @fails: @active is going to fail; with a timer
 * @due: when @active completes; with a timer
 * @to_touch: so many further transfers move data; with a timer
 * @descs: number of descriptors
 * @free_at: when the last transfer was due to complete, the earliest begin of the next one; owned by the
 *	thread, or under @lock with a timer
 * @thread: exists while the channel is in use, unless there is a timer
 * @timer: in place of the thread if no data moves
 * @wake: the thread waits here for work and for time, and synchronize for the thread
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

void engine_release_desc(struct engine_chan *chan, struct engine_desc *desc);
int engine_serve(void *data);
void engine_start_next(struct engine_chan *chan);
void engine_init_timer(struct hrtimer *timer);

#endif /* SWC_DMA_PROVIDER_H */
