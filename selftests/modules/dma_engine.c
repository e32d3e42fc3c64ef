// SPDX-License-Identifier: GPL-2.0-only
/*
 * The channels of the DMA engine for tests: transfers, their timing and their failures. See dma_provider.c.
 */
#include <linux/bottom_half.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/version.h>

#include "dma_provider.h"

/* Bytes that move at once: few enough for a steady rate, enough for few wake-ups. */
#define PIECE		(256u << 10)
#define GARBAGE		0xdb

void engine_release_desc(struct engine_chan *chan, struct engine_desc *desc)
{
	dma_descriptor_unmap(&desc->tx);
	kfree(desc);
	atomic_dec(&chan->descs);
	atomic64_dec(&engine_counts.in_flight);
}

/* The thread */

/* Stop working on @active. */
static bool cancelled(struct engine_chan *chan)
{
	return READ_ONCE(chan->terminating) || kthread_should_stop();
}

/* False: cancelled. */
static bool wait_until(struct engine_chan *chan, ktime_t due)
{
	ktime_t left = ktime_sub(due, ktime_get());

	if (left > 0)
		wait_event_interruptible_hrtimeout(chan->wake, cancelled(chan), left);
	return !cancelled(chan);
}

/* Count a knob down, which may be set at the same time. True if it reaches zero. */
static bool turn_of(unsigned int *knob)
{
	unsigned int n = READ_ONCE(*knob);

	while (n && !try_cmpxchg(knob, &n, n - 1))
		;
	return n == 1;
}

static bool will_fail(void)
{
	static atomic_t started;
	unsigned int every = READ_ONCE(engine_knobs.fail_every), n = atomic_inc_return(&started);

	return turn_of(&engine_knobs.fail_nth) || (every && n % every == 0);
}

/* Through the stack, because the destination may be one of the sources. */
static void xor_piece(const struct engine_desc *desc, size_t at, size_t len)
{
	u64 sum[32] = {}, more[32] = {};
	size_t end = at + len, n;
	unsigned int i, k;

	for (; at < end; at += n) {
		n = min(end - at, sizeof(sum));
		memcpy(sum, phys_to_virt(desc->src[0] + at), n);
		for (i = 1; i < desc->nsrc; i++) {
			memcpy(more, phys_to_virt(desc->src[i] + at), n);
			for (k = 0; k < ARRAY_SIZE(sum); k++)
				sum[k] ^= more[k];
		}
		memcpy(phys_to_virt(desc->dst + at), sum, n);
	}
}

static void move_piece(const struct engine_desc *desc, size_t at, size_t len, bool fail)
{
	void *dst = phys_to_virt(desc->dst + at);

	if (fail)
		memset(dst, GARBAGE, len);
	else if (desc->nsrc > 1)
		xor_piece(desc, at, len);
	else
		memcpy(dst, phys_to_virt(desc->src[0] + at), len);
}

/* When a transfer begins. */
static ktime_t begin_of(const struct engine_chan *chan, const struct engine_desc *desc)
{
	ktime_t begin = desc->issued > chan->free_at ? desc->issued : chan->free_at;

	return ktime_add_us(begin, READ_ONCE(engine_knobs.delay_us));
}

/* When so many of its bytes are due. */
static ktime_t due_of(ktime_t begin, size_t bytes)
{
	unsigned int rate = READ_ONCE(engine_knobs.rate_mbps);

	return rate ? ktime_add_ns(begin, div_u64(bytes * 1000ull, rate)) : begin;
}

/*
 * Each piece moves when its last byte is due. Due times count from the earliest begin of the transfer, so
 * that a late wake-up delays nothing else. Ends early if cancelled.
 */
static void transfer(struct engine_chan *chan, const struct engine_desc *desc, bool fail)
{
	ktime_t begin = begin_of(chan, desc), due = begin;
	size_t at, n;

	for (at = 0; at < desc->len; at += n) {
		n = min_t(size_t, desc->len - at, PIECE);
		due = due_of(begin, at + n);
		if (!wait_until(chan, due))
			return;
		move_piece(desc, at, n, fail);
		cond_resched();
	}
	chan->free_at = due;
}

/* The status is known from here on. Under the channel's lock. */
static void record_end(struct engine_chan *chan, const struct engine_desc *desc, bool fail)
{
	chan->base.completed_cookie = desc->tx.cookie;
	if (fail)
		chan->failed[chan->nfailed++ % FAILURES] = desc->tx.cookie;
}

/* Count the transfer, and call back if the client has asked for it. */
static void complete_desc(struct engine_desc *desc, bool fail)
{
	struct dmaengine_result result = { .result = DMA_TRANS_NOERROR };
	struct dma_async_tx_descriptor *tx = &desc->tx;

	if (fail) {
		result.residue = desc->len;
		result.result = atomic64_inc_return(&engine_counts.failed) & 1 ? DMA_TRANS_ABORTED :
										 DMA_TRANS_WRITE_FAILED;
	} else {
		atomic64_add(desc->len, &engine_counts.bytes);
		atomic64_inc(&engine_counts.transfers);
	}
	dma_descriptor_unmap(tx);
	if (!(tx->flags & DMA_PREP_INTERRUPT))
		return;
	local_bh_disable();
	if (tx->callback_result)
		tx->callback_result(tx->callback_param, &result);
	else if (tx->callback)
		tx->callback(tx->callback_param);
	local_bh_enable();
}

static void count_far(const struct engine_chan *chan, const struct engine_desc *desc)
{
	int node = dev_to_node(chan->base.device->dev);

	if (node != NUMA_NO_NODE && pfn_to_nid(PHYS_PFN(desc->dst)) != node)
		atomic64_inc(&engine_counts.far);
}

static void execute(struct engine_chan *chan, struct engine_desc *desc)
{
	bool fail = will_fail(), drop;

	count_far(chan, desc);
	if (turn_of(&engine_knobs.hang_nth)) {
		atomic64_inc(&engine_counts.hung);
		wait_event_interruptible(chan->wake, cancelled(chan));
	} else {
		transfer(chan, desc, fail);
	}

	if (kthread_should_stop())
		return; /* engine_free() releases it */

	/* After a later termination the callback may still run, until synchronize. */
	spin_lock_irq(&chan->lock);
	drop = chan->terminating;
	if (!drop)
		record_end(chan, desc, fail);
	spin_unlock_irq(&chan->lock);

	if (drop)
		atomic64_inc(&engine_counts.terminated);
	else
		complete_desc(desc, fail);
	engine_release_desc(chan, desc);

	spin_lock_irq(&chan->lock);
	chan->active = NULL;
	chan->terminating = false;
	spin_unlock_irq(&chan->lock);
	wake_up(&chan->wake);
}

/* Make the next descriptor active, if there is one. Under the channel's lock. */
static struct engine_desc *next_active(struct engine_chan *chan)
{
	struct engine_desc *desc, *other;
	unsigned int n = 0;

	desc = list_first_entry_or_null(&chan->issued, struct engine_desc, node);
	if (engine_knobs.out_of_order) {
		/* Any of them with equal probability, but none after a fence. */
		list_for_each_entry(other, &chan->issued, node) {
			if (get_random_u32() % ++n == 0)
				desc = other;
			if (other->tx.flags & DMA_PREP_FENCE)
				break;
		}
	}
	if (desc)
		list_del(&desc->node);
	chan->active = desc;
	return desc;
}

static bool take(struct engine_chan *chan)
{
	bool found;

	spin_lock_irq(&chan->lock);
	found = next_active(chan);
	spin_unlock_irq(&chan->lock);
	return found;
}

int engine_serve(void *data)
{
	struct engine_chan *chan = data;

	/* The default slack would delay data by up to 50 us. */
	current->timer_slack_ns = 1;
	for (;;) {
		wait_event_interruptible(chan->wake, kthread_should_stop() || take(chan));
		if (kthread_should_stop())
			return 0;
		execute(chan, chan->active);
	}
}

/* The timer */

/* With few instructions. */
static void copy_cheaply(void *dst, const void *src, size_t len)
{
#ifdef CONFIG_X86_64
	size_t words = len / 8;

	asm volatile("rep movsq" : "+D"(dst), "+S"(src), "+c"(words) : : "memory");
	len %= 8;
#endif
	memcpy(dst, src, len);
}

/* The first transfers move data even with a timer: at once, so that the copy does not delay them. */
static void touch_some(struct engine_chan *chan, const struct engine_desc *desc)
{
	if (!chan->to_touch)
		return;
	chan->to_touch--;
	if (chan->fails || desc->nsrc > 1)
		move_piece(desc, 0, desc->len, chan->fails);
	else
		copy_cheaply(phys_to_virt(desc->dst), phys_to_virt(desc->src[0]), desc->len);
}

/*
 * Start the next transfer, unless one is active. Under the channel's lock. Transfers without a callback
 * need no timer: they complete here, and the next transfer begins later.
 */
void engine_start_next(struct engine_chan *chan)
{
	struct engine_desc *desc;

	while (!chan->active && (desc = next_active(chan))) {
		count_far(chan, desc);
		chan->fails = will_fail();
		if (turn_of(&engine_knobs.hang_nth)) {
			atomic64_inc(&engine_counts.hung);
			chan->due = KTIME_MAX;
			return;
		}
		touch_some(chan, desc);
		chan->due = due_of(begin_of(chan, desc), desc->len);
		chan->free_at = chan->due;
		if (desc->tx.flags & DMA_PREP_INTERRUPT) {
			hrtimer_start(&chan->timer, chan->due, HRTIMER_MODE_ABS_SOFT);
			return;
		}
		chan->active = NULL;
		record_end(chan, desc, chan->fails);
		complete_desc(desc, chan->fails);
		engine_release_desc(chan, desc);
	}
}

static enum hrtimer_restart timer_fires(struct hrtimer *timer)
{
	struct engine_chan *chan = container_of(timer, struct engine_chan, timer);
	struct engine_desc *desc;
	unsigned long flags;
	bool fail;

	spin_lock_irqsave(&chan->lock, flags);
	/* The transfer may have been terminated, and another one started. */
	desc = chan->active && chan->due <= ktime_get() ? chan->active : NULL;
	fail = chan->fails;
	if (desc) {
		chan->active = NULL;
		record_end(chan, desc, fail);
	}
	spin_unlock_irqrestore(&chan->lock, flags);
	if (!desc)
		return HRTIMER_NORESTART;
	complete_desc(desc, fail);
	engine_release_desc(chan, desc);
	spin_lock_irqsave(&chan->lock, flags);
	engine_start_next(chan);
	spin_unlock_irqrestore(&chan->lock, flags);
	return HRTIMER_NORESTART;
}

void engine_init_timer(struct hrtimer *timer)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	timer->function = timer_fires;
#else
	hrtimer_setup(timer, timer_fires, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
#endif
}
