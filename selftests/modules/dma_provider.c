// SPDX-License-Identifier: GPL-2.0-only
/*
 * A DMA engine for tests, made of CPU time: it copies and xors at a given pace, and reorders, fails and hangs
 * on request. To dmaengine it is a device like any other.
 *
 * Each channel that somebody holds has a thread, which carries out one descriptor at a time and sleeps until
 * each piece of its data is due. Where no data moves (touch=N), a timer is enough, which goes off when an
 * interrupt is due: so it costs the CPUs what a real engine does. It is as strict as real devices are: data
 * moves no sooner than it is due, callbacks run with soft interrupts off and only if DMA_PREP_INTERRUPT asks
 * for them, and a descriptor is given back after its callback. What a channel's lock guards is told at the
 * struct.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/bottom_half.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/version.h>
#include <linux/wait.h>

#define MAX_CHANNELS	64
#define MAX_XOR		16
/* What moves at once: small enough for a steady pace, large enough for few wake-ups. */
#define PIECE		(256u << 10)
#define GARBAGE		0xdb
/* Failures that tx_status remembers. */
#define FAILURES	32

static unsigned int channels = 4;
module_param(channels, uint, 0444);
MODULE_PARM_DESC(channels, "number of channels (default 4)");

static unsigned int devices = 1;
module_param(devices, uint, 0444);
MODULE_PARM_DESC(devices, "devices with so many channels each; if several, one for each NUMA node in turn (default 1)");

static unsigned int align;
module_param(align, uint, 0444);
MODULE_PARM_DESC(align, "addresses and lengths must be multiples of 1 << align (default 0)");

static unsigned int max_seg;
module_param(max_seg, uint, 0444);
MODULE_PARM_DESC(max_seg, "most bytes of a transfer (default 0: no limit)");

static bool out_of_order;
module_param(out_of_order, bool, 0444);
MODULE_PARM_DESC(out_of_order, "carry out a channel's transfers in random order, and say so (default N)");

static bool no_terminate;
module_param(no_terminate, bool, 0444);
MODULE_PARM_DESC(no_terminate, "have no way to terminate transfers (default N)");

static unsigned int rate_mbps;
module_param(rate_mbps, uint, 0644);
MODULE_PARM_DESC(rate_mbps, "10^6 bytes per second and channel (default 0: as fast as possible)");

static unsigned int delay_us;
module_param(delay_us, uint, 0644);
MODULE_PARM_DESC(delay_us, "microseconds before each transfer (default 0)");

static unsigned int max_descs = 256;
module_param(max_descs, uint, 0644);
MODULE_PARM_DESC(max_descs, "descriptors per channel; to prepare more fails (default 256)");

static unsigned int fail_nth;
module_param(fail_nth, uint, 0644);
MODULE_PARM_DESC(fail_nth, "the n-th transfer from now on fails; counts down to 0 (default 0: none)");

static unsigned int fail_every;
module_param(fail_every, uint, 0644);
MODULE_PARM_DESC(fail_every, "each n-th transfer fails (default 0: none)");

static unsigned int hang_nth;
module_param(hang_nth, uint, 0644);
MODULE_PARM_DESC(hang_nth, "the n-th transfer from now on hangs; counts down to 0 (default 0: none)");

static bool touch = true;
module_param(touch, bool, 0644);
MODULE_PARM_DESC(touch, "move data, from when a channel is taken on; N: only take the time (default Y)");

static unsigned int touch_first;
module_param(touch_first, uint, 0644);
MODULE_PARM_DESC(touch_first, "with touch=N: so many transfers move data all the same when a channel is taken, for who tries it out (default 0)");

static int counter_set(const char *val, const struct kernel_param *kp)
{
	return -EPERM;
}

static int counter_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%lld\n", atomic64_read((atomic64_t *)kp->arg));
}

static const struct kernel_param_ops counter_ops = {
	.set = counter_set,
	.get = counter_get,
};

#define COUNTER(name, text)					\
	static atomic64_t name;					\
	module_param_cb(name, &counter_ops, &name, 0444);	\
	MODULE_PARM_DESC(name, "counts " text)

COUNTER(transfers, "transfers that succeeded");
COUNTER(bytes, "their bytes");
COUNTER(failed, "transfers that failed");
COUNTER(hung, "transfers that hung");
COUNTER(terminated, "transfers terminated, without a callback");
COUNTER(in_flight, "descriptors that exist, from being prepared to being given back");
COUNTER(far, "transfers to memory of another NUMA node than the device's");
COUNTER(refused, "requests against align, max_seg or the limit of sources");
COUNTER(exhausted, "requests beyond max_descs");

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

struct engine {
	struct dma_device dma;
	struct engine_chan chan[];
};

static struct engine_chan *to_chan(struct dma_chan *base)
{
	return container_of(base, struct engine_chan, base);
}

static struct engine_desc *to_desc(struct dma_async_tx_descriptor *tx)
{
	return container_of(tx, struct engine_desc, tx);
}

static void give_back(struct engine_chan *chan, struct engine_desc *desc)
{
	dma_descriptor_unmap(&desc->tx);
	kfree(desc);
	atomic_dec(&chan->descs);
	atomic64_dec(&in_flight);
}

static void drop_all(struct engine_chan *chan, struct list_head *list)
{
	struct engine_desc *desc, *next;

	list_for_each_entry_safe(desc, next, list, node) {
		give_back(chan, desc);
		atomic64_inc(&terminated);
	}
}

/* The thread */

/* Do not go on with @active. */
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

/* Counts a knob down that may be set meanwhile. True: it was its turn. */
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
	unsigned int every = READ_ONCE(fail_every), n = atomic_inc_return(&started);

	return turn_of(&fail_nth) || (every && n % every == 0);
}

/* By way of the stack, since the destination may be one of the sources. */
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

/* When the first byte of a transfer is due. */
static ktime_t begin_of(const struct engine_chan *chan, const struct engine_desc *desc)
{
	ktime_t begin = desc->issued > chan->free_at ? desc->issued : chan->free_at;

	return ktime_add_us(begin, READ_ONCE(delay_us));
}

/* When so many of its bytes are. */
static ktime_t due_of(ktime_t begin, size_t bytes)
{
	unsigned int rate = READ_ONCE(rate_mbps);

	return rate ? ktime_add_ns(begin, div_u64(bytes * 1000ull, rate)) : begin;
}

/*
 * Each piece moves when its last byte is due. Time is reckoned from when the transfer could begin, so that
 * waking up late makes up for itself. Ends early if cancelled.
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

/* Its status is known from now on; under the channel's lock. */
static void note_end(struct engine_chan *chan, const struct engine_desc *desc, bool fail)
{
	chan->base.completed_cookie = desc->tx.cookie;
	if (fail)
		chan->failed[chan->nfailed++ % FAILURES] = desc->tx.cookie;
}

/* Count it, and call back who wants that. */
static void tell_end(struct engine_desc *desc, bool fail)
{
	struct dmaengine_result result = { .result = DMA_TRANS_NOERROR };
	struct dma_async_tx_descriptor *tx = &desc->tx;

	if (fail) {
		result.residue = desc->len;
		result.result = atomic64_inc_return(&failed) & 1 ? DMA_TRANS_ABORTED : DMA_TRANS_WRITE_FAILED;
	} else {
		atomic64_add(desc->len, &bytes);
		atomic64_inc(&transfers);
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
		atomic64_inc(&far);
}

static void carry_out(struct engine_chan *chan, struct engine_desc *desc)
{
	bool fail = will_fail(), drop;

	count_far(chan, desc);
	if (turn_of(&hang_nth)) {
		atomic64_inc(&hung);
		wait_event_interruptible(chan->wake, cancelled(chan));
	} else {
		transfer(chan, desc, fail);
	}

	if (kthread_should_stop())
		return; /* engine_free() drops it */

	/* Whoever terminates from here on may still see the callback run, until synchronize. */
	spin_lock_irq(&chan->lock);
	drop = chan->terminating;
	if (!drop)
		note_end(chan, desc, fail);
	spin_unlock_irq(&chan->lock);

	if (drop)
		atomic64_inc(&terminated);
	else
		tell_end(desc, fail);
	give_back(chan, desc);

	spin_lock_irq(&chan->lock);
	chan->active = NULL;
	chan->terminating = false;
	spin_unlock_irq(&chan->lock);
	wake_up(&chan->wake);
}

/* Makes the next descriptor active, if there is one; under the channel's lock. */
static struct engine_desc *next_active(struct engine_chan *chan)
{
	struct engine_desc *desc, *other;
	unsigned int n = 0;

	desc = list_first_entry_or_null(&chan->issued, struct engine_desc, node);
	if (out_of_order) {
		/* Any with equal chance, but none behind a fence. */
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

static int serve(void *data)
{
	struct engine_chan *chan = data;

	/* Data moves when it is due, not up to 50 us later. */
	current->timer_slack_ns = 1;
	for (;;) {
		wait_event_interruptible(chan->wake, kthread_should_stop() || take(chan));
		if (kthread_should_stop())
			return 0;
		carry_out(chan, chan->active);
	}
}

/* The timer */

/* With as few instructions as there can be. */
static void copy_cheaply(void *dst, const void *src, size_t len)
{
#ifdef CONFIG_X86_64
	size_t words = len / 8;

	asm volatile("rep movsq" : "+D"(dst), "+S"(src), "+c"(words) : : "memory");
	len %= 8;
#endif
	memcpy(dst, src, len);
}

/* The first transfers move data, though there is only a timer: at once, so that they are not late by that. */
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
 * Begin with what comes next, unless something is active; under the channel's lock. What nobody is called for
 * need not be waited for: the next transfer begins later.
 */
static void begin_next(struct engine_chan *chan)
{
	struct engine_desc *desc;

	while (!chan->active && (desc = next_active(chan))) {
		count_far(chan, desc);
		chan->fails = will_fail();
		if (turn_of(&hang_nth)) {
			atomic64_inc(&hung);
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
		note_end(chan, desc, chan->fails);
		tell_end(desc, chan->fails);
		give_back(chan, desc);
	}
}

static enum hrtimer_restart timer_fires(struct hrtimer *timer)
{
	struct engine_chan *chan = container_of(timer, struct engine_chan, timer);
	struct engine_desc *desc;
	unsigned long flags;
	bool fail;

	spin_lock_irqsave(&chan->lock, flags);
	/* It may have been terminated, and another one have begun. */
	desc = chan->active && chan->due <= ktime_get() ? chan->active : NULL;
	fail = chan->fails;
	if (desc) {
		chan->active = NULL;
		note_end(chan, desc, fail);
	}
	spin_unlock_irqrestore(&chan->lock, flags);
	if (!desc)
		return HRTIMER_NORESTART;
	tell_end(desc, fail);
	give_back(chan, desc);
	spin_lock_irqsave(&chan->lock, flags);
	begin_next(chan);
	spin_unlock_irqrestore(&chan->lock, flags);
	return HRTIMER_NORESTART;
}

static void init_timer(struct hrtimer *timer)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	timer->function = timer_fires;
#else
	hrtimer_setup(timer, timer_fires, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
#endif
}

/* What dmaengine calls */

static int engine_alloc(struct dma_chan *base)
{
	struct engine_chan *chan = to_chan(base);
	struct task_struct *thread;

	base->cookie = 0;
	base->completed_cookie = 0;
	memset(chan->failed, 0, sizeof(chan->failed));
	chan->free_at = 0;
	chan->thread = NULL;
	chan->to_touch = READ_ONCE(touch_first);
	if (!READ_ONCE(touch))
		return 0;
	thread = kthread_run(serve, chan, "swc_dma/%d", base->chan_id);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	chan->thread = thread;
	return 0;
}

/* Nobody else has the channel any more. */
static void engine_free(struct dma_chan *base)
{
	struct engine_chan *chan = to_chan(base);
	int left;

	if (chan->thread)
		kthread_stop(chan->thread);
	hrtimer_cancel(&chan->timer);
	if (chan->active)
		list_add(&chan->active->node, &chan->issued);
	chan->active = NULL;
	left = atomic_read(&chan->descs);
	if (left)
		dev_warn(base->device->dev, "%s given back with %d descriptors in flight\n",
			 dma_chan_name(base), left);
	list_splice_init(&chan->prepared, &chan->issued);
	list_splice_init(&chan->submitted, &chan->issued);
	drop_all(chan, &chan->issued);
	INIT_LIST_HEAD(&chan->issued);
}

static dma_cookie_t engine_submit(struct dma_async_tx_descriptor *tx)
{
	struct engine_chan *chan = to_chan(tx->chan);
	dma_cookie_t cookie;
	unsigned long flags;

	spin_lock_irqsave(&chan->lock, flags);
	cookie = chan->base.cookie == INT_MAX ? DMA_MIN_COOKIE : chan->base.cookie + 1;
	chan->base.cookie = cookie;
	tx->cookie = cookie;
	list_move_tail(&to_desc(tx)->node, &chan->submitted);
	spin_unlock_irqrestore(&chan->lock, flags);
	return cookie;
}

static struct dma_async_tx_descriptor *
engine_prep_xor(struct dma_chan *base, dma_addr_t dst, dma_addr_t *src, unsigned int nsrc,
		size_t len, unsigned long prep_flags)
{
	struct engine_chan *chan = to_chan(base);
	struct engine_desc *desc;
	dma_addr_t bits = dst | len;
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < nsrc; i++)
		bits |= src[i];
	if (!len || !nsrc || nsrc > MAX_XOR || (max_seg && len > max_seg) || bits & ((1u << align) - 1)) {
		atomic64_inc(&refused);
		return NULL;
	}
	if (!atomic_add_unless(&chan->descs, 1, READ_ONCE(max_descs))) {
		atomic64_inc(&exhausted);
		return NULL;
	}
	desc = kzalloc(struct_size(desc, src, nsrc), GFP_NOWAIT | __GFP_NOWARN);
	if (!desc) {
		atomic_dec(&chan->descs);
		return NULL;
	}
	atomic64_inc(&in_flight);
	dma_async_tx_descriptor_init(&desc->tx, base);
	desc->tx.tx_submit = engine_submit;
	desc->tx.flags = prep_flags;
	desc->dst = dst;
	desc->len = len;
	desc->nsrc = nsrc;
	memcpy(desc->src, src, nsrc * sizeof(*src));

	spin_lock_irqsave(&chan->lock, flags);
	list_add_tail(&desc->node, &chan->prepared);
	spin_unlock_irqrestore(&chan->lock, flags);
	return &desc->tx;
}

static struct dma_async_tx_descriptor *
engine_prep_memcpy(struct dma_chan *base, dma_addr_t dst, dma_addr_t src, size_t len, unsigned long flags)
{
	return engine_prep_xor(base, dst, &src, 1, len, flags);
}

static void engine_issue_pending(struct dma_chan *base)
{
	struct engine_chan *chan = to_chan(base);
	ktime_t now = ktime_get();
	struct engine_desc *desc;
	unsigned long flags;

	spin_lock_irqsave(&chan->lock, flags);
	list_for_each_entry(desc, &chan->submitted, node)
		desc->issued = now;
	list_splice_tail_init(&chan->submitted, &chan->issued);
	if (!chan->thread)
		begin_next(chan);
	spin_unlock_irqrestore(&chan->lock, flags);
	if (chan->thread)
		wake_up(&chan->wake);
}

/* All of a transfer is left until it is over. */
static size_t residue_of(struct engine_chan *chan, dma_cookie_t cookie)
{
	struct engine_desc *desc;

	if (chan->active && chan->active->tx.cookie == cookie)
		return chan->active->len;
	list_for_each_entry(desc, &chan->issued, node)
		if (desc->tx.cookie == cookie)
			return desc->len;
	list_for_each_entry(desc, &chan->submitted, node)
		if (desc->tx.cookie == cookie)
			return desc->len;
	return 0;
}

static enum dma_status
engine_tx_status(struct dma_chan *base, dma_cookie_t cookie, struct dma_tx_state *state)
{
	struct engine_chan *chan = to_chan(base);
	enum dma_status status;
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&chan->lock, flags);
	status = dma_async_is_complete(cookie, base->completed_cookie, base->cookie);
	dma_set_tx_state(state, base->completed_cookie, base->cookie,
			 status == DMA_COMPLETE ? 0 : residue_of(chan, cookie));
	for (i = 0; i < FAILURES; i++)
		if (cookie == chan->failed[i])
			status = DMA_ERROR;
	spin_unlock_irqrestore(&chan->lock, flags);
	return out_of_order ? DMA_OUT_OF_ORDER : status;
}

static int engine_terminate_all(struct dma_chan *base)
{
	struct engine_chan *chan = to_chan(base);
	unsigned long flags;
	LIST_HEAD(dropped);

	spin_lock_irqsave(&chan->lock, flags);
	list_splice_init(&chan->issued, &dropped);
	list_splice_tail_init(&chan->submitted, &dropped);
	if (chan->thread) {
		chan->terminating = chan->active;
	} else if (chan->active) {
		hrtimer_try_to_cancel(&chan->timer);
		list_add(&chan->active->node, &dropped);
		chan->active = NULL;
	}
	spin_unlock_irqrestore(&chan->lock, flags);
	wake_up(&chan->wake);
	drop_all(chan, &dropped);
	return 0;
}

static void engine_synchronize(struct dma_chan *base)
{
	struct engine_chan *chan = to_chan(base);

	wait_event(chan->wake, !READ_ONCE(chan->terminating));
	if (!chan->thread)
		hrtimer_cancel(&chan->timer);
}

/* Coming and going */

/* Addresses from the client are taken to the CPU's by phys_to_virt(). */
static int check_addresses(struct device *dev)
{
	void *page = (void *)__get_free_page(GFP_KERNEL);
	dma_addr_t addr;
	int ret = 0;

	if (!page)
		return -ENOMEM;
	addr = dma_map_single(dev, page, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (dma_mapping_error(dev, addr)) {
		ret = -EIO;
	} else {
		if (addr != virt_to_phys(page))
			ret = -EOPNOTSUPP;
		dma_unmap_single(dev, addr, PAGE_SIZE, DMA_BIDIRECTIONAL);
	}
	free_page((unsigned long)page);
	if (ret)
		dev_err(dev, "DMA addresses are not physical ones here: %s\n",
			"needs a machine without IOMMU, swiotlb=force or memory encryption");
	return ret;
}

static int engine_probe(struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;
	struct engine_chan *chan;
	struct dma_device *dma;
	struct engine *engine;
	unsigned int i;
	int ret;

	ret = dma_set_mask_and_coherent(dev, DMA_BIT_MASK(64));
	if (ret)
		return ret;
	dma_set_max_seg_size(dev, max_seg ?: UINT_MAX);
	ret = check_addresses(dev);
	if (ret)
		return ret;
	engine = devm_kzalloc(dev, struct_size(engine, chan, channels), GFP_KERNEL);
	if (!engine)
		return -ENOMEM;

	dma = &engine->dma;
	dma->dev = dev;
	/* Private: only for those who ask for a channel. */
	dma_cap_set(DMA_PRIVATE, dma->cap_mask);
	dma_cap_set(DMA_MEMCPY, dma->cap_mask);
	dma_cap_set(DMA_XOR, dma->cap_mask);
	if (out_of_order)
		dma_cap_set(DMA_COMPLETION_NO_ORDER, dma->cap_mask);
	dma->copy_align = align;
	dma->xor_align = align;
	dma->max_xor = MAX_XOR;
	dma->directions = BIT(DMA_MEM_TO_MEM);
	dma->residue_granularity = DMA_RESIDUE_GRANULARITY_DESCRIPTOR;
	dma->device_alloc_chan_resources = engine_alloc;
	dma->device_free_chan_resources = engine_free;
	dma->device_prep_dma_memcpy = engine_prep_memcpy;
	dma->device_prep_dma_xor = engine_prep_xor;
	dma->device_issue_pending = engine_issue_pending;
	dma->device_tx_status = engine_tx_status;
	dma->device_synchronize = engine_synchronize;
	if (!no_terminate)
		dma->device_terminate_all = engine_terminate_all;

	INIT_LIST_HEAD(&dma->channels);
	for (i = 0; i < channels; i++) {
		chan = &engine->chan[i];
		spin_lock_init(&chan->lock);
		INIT_LIST_HEAD(&chan->prepared);
		INIT_LIST_HEAD(&chan->submitted);
		INIT_LIST_HEAD(&chan->issued);
		init_waitqueue_head(&chan->wake);
		init_timer(&chan->timer);
		chan->base.device = dma;
		list_add_tail(&chan->base.device_node, &dma->channels);
	}
	return dmaenginem_async_device_register(dma);
}

/* dmaengine takes the module's reference for each channel held from the driver. */
static struct platform_driver engine_driver = {
	.driver.name = KBUILD_MODNAME,
	.probe = engine_probe,
};

static struct platform_device *engine_device[MAX_NUMNODES];

static void remove_devices(void)
{
	unsigned int i;

	for (i = 0; i < devices; i++)
		platform_device_unregister(engine_device[i]);
	platform_driver_unregister(&engine_driver);
}

static int __init add_device(unsigned int i)
{
	struct platform_device *pdev = platform_device_alloc(KBUILD_MODNAME, i);
	unsigned int node, left = i % num_online_nodes();
	int ret = -ENOMEM;

	if (!pdev)
		return ret;
	for_each_online_node(node)
		if (devices > 1 && !left--)
			set_dev_node(&pdev->dev, node);
	ret = platform_device_add(pdev);
	if (ret) {
		platform_device_put(pdev);
		return ret;
	}
	engine_device[i] = pdev;
	/* If it is not bound, probing has failed. */
	return pdev->dev.driver ? 0 : -ENODEV;
}

static int __init engine_init(void)
{
	unsigned int i;
	int ret;

	if (!channels || channels > MAX_CHANNELS) {
		pr_err("channels=%u: give 1 to %u\n", channels, MAX_CHANNELS);
		return -EINVAL;
	}
	if (!devices || devices > ARRAY_SIZE(engine_device)) {
		pr_err("devices=%u: give 1 to %zu\n", devices, ARRAY_SIZE(engine_device));
		return -EINVAL;
	}
	if (align > DMAENGINE_ALIGN_256_BYTES) {
		pr_err("align=%u: give 0 to %u, for 1 to 256 bytes\n", align, DMAENGINE_ALIGN_256_BYTES);
		return -EINVAL;
	}
	if (max_seg && max_seg < 1u << align) {
		pr_err("max_seg=%u: less than one unit of align\n", max_seg);
		return -EINVAL;
	}
	ret = platform_driver_register(&engine_driver);
	if (ret)
		return ret;
	for (i = 0; i < devices && !ret; i++)
		ret = add_device(i);
	if (ret)
		remove_devices();
	return ret;
}
module_init(engine_init);

static void __exit engine_exit(void)
{
	remove_devices();
}
module_exit(engine_exit);

MODULE_DESCRIPTION("swingcoll: a DMA engine for tests");
MODULE_LICENSE("GPL");
