// SPDX-License-Identifier: GPL-2.0-only
/*
 * One channel of a DMA engine: acquired, given batches of descriptors, watched while any is in flight, and
 * stopped for good when it does not answer in time.
 *
 * Only the last descriptor of a batch interrupts, unless the channel completes descriptors in any order or
 * its driver needs the interrupts. Some drivers report failures of the others by callback all the same,
 * some only by status: both are looked at. Completions run in atomic context, in any order.
 *
 * async_tx is no alternative: it picks channels regardless of load and node, never times out, and copies
 * synchronously where it finds no channel. Nor is struct dmaengine_unmap_data: it unmaps with the
 * descriptor, but memory is mapped before there is one and must stay mapped until the whole job has ended.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "dma/engine.h"
#include "mem/drain.h"

/*
 * How often, and how long each time, to wait for a descriptor when the channel has none left; and for a task
 * that may be waiting for one.
 */
#define DESC_RETRIES	200
#define DESC_WAIT_US	50
/* A channel must be no slower than this, in bytes per millisecond; nor so many times slower than measured. */
#define SLOWEST		1000
#define MAX_SLOWDOWN	16

/* A channel that reports so many batches in a row as failed is given up. */
#define MOST_FAILURES	16

/* Time until a channel that refused to stop is asked again. */
#define STOP_RETRY_MS	2000

/* A channel must answer within this time, and that of its bytes. Constant but for tests. */
u32 swc_dma_patience_ms = 2000;

static atomic_t nchans_alive = ATOMIC_INIT(0);

/* ------------------------------------------------------------------ batches */

/*
 * A batch ends once: by its last completion, or by stop(). A completion may still be running when the
 * channel has been stopped. Atomic context.
 */
static void batch_end(struct swc_dma_batch *b)
{
	struct swc_dma_chan *ch = b->ch;
	unsigned long flags;

	if (atomic_xchg(&b->ended, 1))
		return;
	spin_lock_irqsave(&ch->lock, flags);
	list_del_init(&b->node);
	spin_unlock_irqrestore(&ch->lock, flags);
	/* The failure may be that of another batch in flight at the same time. */
	if (atomic_read(&ch->errors) != b->errors)
		swc_dma_fail(&b->failure, SWC_DMA_CHANNEL_ERROR);
	atomic64_sub(b->share, &ch->queued);
	swc_dma_chan_unreserve(ch, b->share);
	b->ops->ended(b);
}

static void batch_put(struct swc_dma_batch *b)
{
	if (atomic_dec_and_test(&b->left))
		batch_end(b);
}

/* Drivers that report nothing report no failure. */
static bool has_failed(const struct dmaengine_result *result)
{
	return result && result->result != DMA_TRANS_NOERROR;
}

/* Callback of a descriptor with an interrupt. */
static void descriptor_done(void *param, const struct dmaengine_result *result)
{
	struct swc_dma_piece *p = param;
	struct swc_dma_batch *b = p->batch;

	p->called_back = true;
	if (has_failed(result))
		swc_dma_fail(&b->failure, SWC_DMA_CHANNEL_ERROR);
	batch_put(b);
}

/* Callback of one without, in drivers that call it; its job may be gone. */
static void descriptor_passed(void *param, const struct dmaengine_result *result)
{
	struct swc_dma_chan *ch = param;

	if (has_failed(result))
		atomic_inc(&ch->errors);
}

static bool has_failed_by_status(const struct swc_dma_batch *b)
{
	u32 i;

	for (i = 0; i < b->n; i++) {
		const struct swc_dma_piece *p = &b->piece[i];

		if (p->cookie && dma_async_is_tx_complete(b->ch->chan, p->cookie, NULL, NULL) != DMA_COMPLETE)
			return true;
	}
	return false;
}

/* ------------------------------------------------------------------ references, load */

static void chan_release(struct kref *ref)
{
	struct swc_dma_chan *ch = container_of(ref, struct swc_dma_chan, ref);
	bool can_sync = ch->chan->device->device_synchronize;
	struct swc_dma_batch *b, *next;

	dma_release_channel(ch->chan);
	/* A callback still running is in atomic context. */
	if (!can_sync)
		synchronize_rcu();
	llist_for_each_entry_safe(b, next, llist_del_all(&ch->late), late)
		b->ops->release(b);
	swc_stat_inc(SWC_STAT_DMA_CHANS_RELEASED);
	kfree(ch);
	swc_drain_put(&nchans_alive);
}

void swc_dma_chan_get(struct swc_dma_chan *ch)
{
	kref_get(&ch->ref);
}

/* Process context. */
void swc_dma_chan_put(struct swc_dma_chan *ch)
{
	kref_put(&ch->ref, chan_release);
}

/**
 * swc_dma_chans_drain() - wait until all channels have been released
 */
void swc_dma_chans_drain(void)
{
	swc_drain_wait(&nchans_alive);
}

/**
 * swc_dma_chan_reserve() - count bytes that a channel is chosen for as its load
 *
 * The load drops when the batch of these bytes ends, or by swc_dma_chan_unreserve() if there is none.
 *
 * Return: the load before.
 */
u64 swc_dma_chan_reserve(struct swc_dma_chan *ch, u64 bytes)
{
	return atomic64_fetch_add(bytes, &ch->load);
}

void swc_dma_chan_unreserve(struct swc_dma_chan *ch, u64 bytes)
{
	atomic64_sub(bytes, &ch->load);
}

/* ------------------------------------------------------------------ watching, stopping */

/* Run the watch after @delay jiffies, or earlier if it is due earlier. */
static void watch_within(struct swc_dma_chan *ch, unsigned long delay)
{
	swc_dma_chan_get(ch);
	if (!queue_delayed_work(swc_wq, &ch->watch, delay))
		swc_dma_chan_put(ch);
}

/* Run the watch after @delay jiffies, even if it is due earlier or later. */
static void watch_after(struct swc_dma_chan *ch, unsigned long delay)
{
	swc_dma_chan_get(ch);
	if (mod_delayed_work(swc_wq, &ch->watch, delay))
		swc_dma_chan_put(ch);
}

/*
 * Ask for the status: has the channel got past a descriptor? Some drivers answer for another descriptor
 * than the one asked for, and some free completed ones only when asked.
 */
static bool poll_passed(const struct swc_dma_chan *ch, dma_cookie_t cookie)
{
	struct dma_tx_state state = {};

	dmaengine_tx_status(ch->chan, cookie, &state);
	return state.used && dma_async_is_complete(cookie, state.last, state.used) == DMA_COMPLETE;
}

static struct swc_dma_batch *first_stranded(struct swc_dma_chan *ch)
{
	struct swc_dma_batch *b, *found = NULL;

	spin_lock_irq(&ch->lock);
	list_for_each_entry(b, &ch->batches, node) {
		if (b->stranded) {
			found = b;
			break;
		}
	}
	spin_unlock_irq(&ch->lock);
	return found;
}

/* No interrupt ends a stranded batch: it ends when the status says that its last descriptor has completed. */
static void end_stranded(struct swc_dma_chan *ch)
{
	struct swc_dma_batch *b;

	while ((b = first_stranded(ch))) {
		/* Its own count keeps it alive until here. */
		if (!poll_passed(ch, b->last)) {
			if (!READ_ONCE(ch->broken))
				watch_after(ch, 1);
			return;
		}
		b->stranded = false;
		batch_put(b);
	}
}

/* Jiffies until the oldest batch is late, 0: it is late; MAX_JIFFY_OFFSET: nothing is in flight. */
static unsigned long time_left(struct swc_dma_chan *ch)
{
	unsigned long left = MAX_JIFFY_OFFSET;
	struct swc_dma_batch *b;

	spin_lock_irq(&ch->lock);
	b = list_first_entry_or_null(&ch->batches, struct swc_dma_batch, node);
	if (b && b->submitter && task_is_running(b->submitter)) {
		/* The channel waits for a process that wants to run and may get no CPU: look again. */
		left = HZ;
	} else if (b) {
		unsigned long deadline = READ_ONCE(b->deadline);

		left = time_after(jiffies, deadline) ? 0 : deadline - jiffies + 1;
	}
	spin_unlock_irq(&ch->lock);
	return left;
}

/* The only place that changes @broken. Nothing in flight is valid any more: terminated can look like done. */
static void set_broken(struct swc_dma_chan *ch)
{
	struct swc_dma_batch *b;

	spin_lock_irq(&ch->lock);
	WRITE_ONCE(ch->broken, true);
	list_for_each_entry(b, &ch->batches, node)
		swc_dma_fail(&b->failure, SWC_DMA_NO_ANSWER);
	spin_unlock_irq(&ch->lock);
}

/* The channel has been stopped and its mutex is held: no completion starts any more. */
static void end_all(struct swc_dma_chan *ch)
{
	bool can_sync = ch->chan->device->device_synchronize;
	struct swc_dma_batch *b;

	lockdep_assert_held(&ch->submit);
	do {
		spin_lock_irq(&ch->lock);
		b = list_first_entry_or_null(&ch->batches, struct swc_dma_batch, node);
		if (b)
			list_del_init(&b->node);
		/* The driver cannot tell whether a completion is running, which may then end the batch. */
		if (b && !can_sync) {
			b->ops->hold(b);
			llist_add(&b->late, &ch->late);
		}
		spin_unlock_irq(&ch->lock);
		if (b)
			batch_end(b);
	} while (b);
}

static void stop(struct swc_dma_chan *ch)
{
	if (!ch->broken)
		pr_warn("DMA channel %s does not answer; it is not used any more\n", dma_chan_name(ch->chan));
	set_broken(ch);
	ch->lost(ch);
	/* The holder of the mutex may wait for a descriptor, in some drivers for ever. */
	if (!mutex_trylock(&ch->submit)) {
		dmaengine_terminate_async(ch->chan);
		mutex_lock(&ch->submit);
	}
	/* While the channel may still write, memory cannot be returned: try again. */
	if (dmaengine_terminate_sync(ch->chan)) {
		watch_after(ch, msecs_to_jiffies(STOP_RETRY_MS));
	} else {
		end_all(ch);
		/* Nothing will be in flight any more. */
		if (cancel_delayed_work(&ch->watch))
			swc_dma_chan_put(ch);
	}
	mutex_unlock(&ch->submit);
}

/* Work item while anything is in flight; has a reference. */
static void watch(struct work_struct *work)
{
	struct swc_dma_chan *ch = container_of(work, struct swc_dma_chan, watch.work);
	unsigned long left;

	end_stranded(ch);
	left = time_left(ch);
	if (!left)
		stop(ch);
	else if (left != MAX_JIFFY_OFFSET)
		/* What is submitted meanwhile may be due earlier. */
		watch_within(ch, min(left, msecs_to_jiffies(swc_dma_patience_ms)));
	swc_dma_chan_put(ch);
}

/**
 * swc_dma_chan_unwatch() - cancel the watch of a channel with nothing in flight
 *
 * It would find nothing, but hold a reference until then.
 */
void swc_dma_chan_unwatch(struct swc_dma_chan *ch)
{
	if (!atomic64_read(&ch->load) && cancel_delayed_work(&ch->watch))
		swc_dma_chan_put(ch);
}

/**
 * swc_dma_chan_judge() - has the driver reported a batch that has ended as failed?
 *
 * Gives up a channel that fails again and again: it would be the least loaded one each time. Process context.
 */
bool swc_dma_chan_judge(struct swc_dma_batch *b)
{
	bool failed = b->failure ? b->failure == SWC_DMA_CHANNEL_ERROR : has_failed_by_status(b);
	struct swc_dma_chan *ch = b->ch;

	if (failed && atomic_inc_return(&ch->failures) == MOST_FAILURES) {
		pr_warn("DMA channel %s reports errors only; it is not used any more\n",
			dma_chan_name(ch->chan));
		ch->lost(ch);
	} else if (!b->failure && !failed && b->last) {
		atomic_set(&ch->failures, 0);
	}
	/* It is chosen no more: when the last of what is in flight ends, there is nothing to watch. */
	if (atomic_read(&ch->failures) >= MOST_FAILURES)
		swc_dma_chan_unwatch(ch);
	return failed;
}

/* ------------------------------------------------------------------ submitting */

static struct dma_async_tx_descriptor *prepare(const struct swc_dma_batch *b, struct swc_dma_piece *p,
					       bool silent)
{
	unsigned long flags = DMA_CTRL_ACK | (silent ? 0 : DMA_PREP_INTERRUPT);
	struct dma_chan *chan = b->ch->chan;

	if (b->nsrc == 1)
		return dmaengine_prep_dma_memcpy(chan, p->dst, p->src[0], p->bytes, flags);
	return chan->device->device_prep_dma_xor(chan, p->dst, p->src, b->nsrc, p->bytes, flags);
}

/* Prepare a descriptor. If the channel has none left, wait a moment for some to complete. */
static struct dma_async_tx_descriptor *get_descriptor(struct swc_dma_batch *b, struct swc_dma_piece *p,
						      bool silent)
{
	struct dma_async_tx_descriptor *tx = prepare(b, p, silent);
	struct swc_dma_chan *ch = b->ch;
	u32 i;

	for (i = 0; !tx && i < DESC_RETRIES; i++) {
		dma_async_issue_pending(ch->chan);
		if (b->last && ch->ordered)
			poll_passed(ch, b->last);
		usleep_range(DESC_WAIT_US, 2 * DESC_WAIT_US);
		tx = prepare(b, p, silent);
	}
	return tx;
}

/* Milliseconds that a channel may take for @bytes: so many times what was measured, or as a very slow one. */
static u64 max_ms(const struct swc_dma_chan *ch, u64 bytes)
{
	u64 slow = div_u64(bytes, SLOWEST), ns;

	if (!ch->mib_ns || bytes > SWC_DMA_MAX_JUDGED)
		return slow;
	ns = mul_u64_u64_div_u64(bytes, ch->mib_ns, SZ_1M);
	return min(slow, div_u64(ns, NSEC_PER_MSEC) * MAX_SLOWDOWN);
}

/* The time of the channel begins now. Bytes of other batches ahead of this one count, too. */
static void set_deadline(struct swc_dma_batch *b)
{
	u64 ms = swc_dma_patience_ms + max_ms(b->ch, atomic64_read(&b->ch->queued));

	WRITE_ONCE(b->deadline, jiffies + msecs_to_jiffies(ms));
}

/* Submit all descriptors of a batch. False: not all, but those before are on their way. */
static bool submit_pieces(struct swc_dma_batch *b)
{
	struct dma_async_tx_descriptor *tx;
	struct swc_dma_chan *ch = b->ch;
	u32 i;

	for (i = 0; i < b->n; i++) {
		struct swc_dma_piece *p = &b->piece[i];
		bool silent = ch->ordered && i < b->n - 1;
		dma_cookie_t cookie;

		p->batch = b;
		tx = get_descriptor(b, p, silent);
		if (!tx)
			break;
		tx->callback_result = silent ? descriptor_passed : descriptor_done;
		tx->callback_param = silent ? (void *)ch : p;
		if (!silent)
			atomic_inc(&b->left);
		set_deadline(b);
		cookie = dmaengine_submit(tx);
		if (dma_submit_error(cookie)) {
			/* Some drivers call back all the same, from within dmaengine_submit(). */
			if (!silent && !p->called_back)
				atomic_dec(&b->left);
			break;
		}
		b->last = cookie;
		p->cookie = ch->ordered ? cookie : 0;
	}
	if (i && i < b->n && ch->ordered) {
		atomic_inc(&b->left);
		spin_lock_irq(&ch->lock);
		b->stranded = true;
		spin_unlock_irq(&ch->lock);
		watch_after(ch, 1);
	}
	return i == b->n;
}

/* The holder may be a process of another user that gets no CPU: wait no longer than for a descriptor. */
static bool lock_to_submit(struct swc_dma_chan *ch)
{
	u32 i;

	for (i = 0; i < DESC_RETRIES; i++) {
		if (mutex_trylock(&ch->submit))
			return true;
		usleep_range(DESC_WAIT_US, 2 * DESC_WAIT_US);
	}
	return false;
}

/**
 * swc_dma_chan_submit() - give a batch to its channel
 *
 * The batch ends by its callback, whatever this returns, maybe before it returns. Its memory must stay
 * until then, and be mapped. May sleep.
 *
 * Return: SWC_DMA_GOOD, or why not all of it has been submitted.
 */
enum swc_dma_failure swc_dma_chan_submit(struct swc_dma_batch *b)
{
	enum swc_dma_failure why = SWC_DMA_GOOD;
	struct swc_dma_chan *ch = b->ch;

	atomic_set(&b->left, 1);
	/* The batch's reference may go with its end. */
	swc_dma_chan_get(ch);
	if (!lock_to_submit(ch)) {
		swc_dma_fail(&b->failure, SWC_DMA_BUSY);
		swc_dma_chan_unreserve(ch, b->share);
		b->ops->ended(b);
		swc_dma_chan_put(ch);
		return SWC_DMA_BUSY;
	}
	atomic64_add(b->share, &ch->queued);
	set_deadline(b);
	b->errors = atomic_read(&ch->errors);
	spin_lock_irq(&ch->lock);
	b->submitter = current;
	list_add_tail(&b->node, &ch->batches);
	spin_unlock_irq(&ch->lock);
	if (READ_ONCE(ch->broken))
		why = SWC_DMA_NO_ANSWER;
	else if (!submit_pieces(b))
		why = SWC_DMA_NO_DESCRIPTOR;
	dma_async_issue_pending(ch->chan);
	set_deadline(b);
	spin_lock_irq(&ch->lock);
	b->submitter = NULL;
	spin_unlock_irq(&ch->lock);
	/* When it breaks, stop() ends what is in flight. */
	if (!READ_ONCE(ch->broken))
		watch_within(ch, msecs_to_jiffies(swc_dma_patience_ms));
	/* Under the mutex: stop() must not end what ends here. */
	batch_put(b);
	mutex_unlock(&ch->submit);
	swc_dma_chan_put(ch);
	return why;
}

/* ------------------------------------------------------------------ acquiring */

static bool is_on(struct dma_chan *chan, void *node)
{
	return dev_to_node(chan->device->dev) == *(int *)node;
}

/*
 * Drivers that start the next descriptor only after an interrupt of the one before (dw_dmac, tegra-gpcdma),
 * whose descriptors disturb each other when their status is asked for (ptdma, ae4dma), or that have no
 * order without declaring it (dpaa2-qdma).
 */
static const char * const need_interrupts[] = {
	"ae4dma", "dpaa2-qdma", "dw_dmac", "dw_dmac_pci", "fsl-dpaa2-qdma", "ptdma", "tegra-gpcdma",
};

/* Is it enough that the last descriptor of a batch interrupts? */
static bool is_ordered(struct dma_device *device)
{
	const char *driver = dev_driver_string(device->dev);

	return !dma_has_cap(DMA_COMPLETION_NO_ORDER, device->cap_mask) &&
	       match_string(need_interrupts, ARRAY_SIZE(need_interrupts), driver) < 0;
}

/**
 * swc_dma_chan_acquire() - get a channel from dmaengine
 * @node: NUMA node it must belong to, or NUMA_NO_NODE
 * @lost: called when the channel does not answer, or fails again and again, and is not to be chosen any more;
 *	process context
 *
 * Return: the channel with one reference, or NULL if there is none. May sleep for long.
 */
struct swc_dma_chan *swc_dma_chan_acquire(int node, void (*lost)(struct swc_dma_chan *ch))
{
	struct swc_dma_chan *ch;
	struct dma_chan *chan;
	dma_cap_mask_t mask;

	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	chan = dma_request_channel(mask, node == NUMA_NO_NODE ? NULL : is_on, &node);
	if (!chan)
		return NULL;
	ch = kzalloc(sizeof(*ch), GFP_KERNEL);
	if (!ch) {
		dma_release_channel(chan);
		return NULL;
	}
	kref_init(&ch->ref);
	ch->chan = chan;
	ch->lost = lost;
	ch->dev = dmaengine_get_dma_device(chan);
	ch->node = dev_to_node(chan->device->dev);
	ch->ordered = is_ordered(chan->device);
	ch->max_seg = min_t(size_t, dma_get_max_seg_size(ch->dev), dma_max_mapping_size(ch->dev));
	if (dma_has_cap(DMA_XOR, chan->device->cap_mask))
		ch->max_xor = min_t(u32, chan->device->max_xor, SWC_DMA_MAX_SRC);
	mutex_init(&ch->submit);
	spin_lock_init(&ch->lock);
	INIT_LIST_HEAD(&ch->batches);
	INIT_DELAYED_WORK(&ch->watch, watch);
	swc_stat_inc(SWC_STAT_DMA_CHANS_ACQUIRED);
	atomic_inc(&nchans_alive);
	return ch;
}
