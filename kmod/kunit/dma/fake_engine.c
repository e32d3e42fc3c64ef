// SPDX-License-Identifier: GPL-2.0-only
/*
 * The suites' DMA engine: see fake_engine.h.
 *
 * A channel has one work item, which carries out one descriptor after the other. Callbacks run with
 * interrupts off, as from an interrupt. Terminating drops all descriptors that wait; a transfer in progress
 * ends without its callback, unless that is running: synchronize waits for it.
 */
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "kunit/dma/fake_engine.h"

#define MAX_SRC		16
#define GARBAGE		0xdb
/* Failed cookies that a channel remembers. */
#define FAILURES	32

struct desc {
	struct dma_async_tx_descriptor tx;
	struct list_head node;
	dma_addr_t dst;
	dma_addr_t src[MAX_SRC];
	u32 nsrc;
	size_t len;
};

/* All but @base and @work under @lock. */
struct chan {
	struct dma_chan base;
	struct engine *engine;
	spinlock_t lock;
	struct list_head submitted;
	struct list_head issued;
	bool hangs;
	bool held;
	u32 ndescs;
	u32 nlazy;
	dma_cookie_t failed[FAILURES];	/* 0: none */
	u32 nfailed;
	u32 ended;		/* by terminating */
	struct work_struct work;
};

struct engine {
	struct dma_device dma;
	struct swc_t_fake *fake;
	struct workqueue_struct *wq;
	struct chan chan[SWC_T_FAKE_CHANS];
};

static struct engine *the_engine;
static struct platform_device *device;

static struct chan *to_chan(struct dma_chan *base)
{
	return container_of(base, struct chan, base);
}

static struct desc *to_desc(struct dma_async_tx_descriptor *tx)
{
	return container_of(tx, struct desc, tx);
}

static void wrong(struct swc_t_fake *fake, const char *what)
{
	atomic_inc(&fake->wrong);
	pr_err("swc_dma: the engine %s\n", what);
}

/* Count down to a fault. True if it is due, or by chance. */
static bool take_fault(struct swc_t_fake *fake, enum swc_t_fault which)
{
	int n;

	if (fake->fault_rate && (which == SWC_T_FAIL_PREP || which == SWC_T_FAIL_SUBMIT ||
			    which == SWC_T_FAIL_TRANSFER) &&
	    get_random_u32() % fake->fault_rate == 0)
		return true;
	n = atomic_dec_if_positive(&fake->fault[which]);
	if (which != SWC_T_FAIL_PREP)
		return n == 0;
	if (n == 0)
		atomic_set(&fake->fault[which], -1);
	return n == 0 || atomic_read(&fake->fault[which]) < 0;
}

/* ------------------------------------------------------------------ transfers */

static void drop(struct chan *ch, struct desc *d)
{
	unsigned long flags;

	spin_lock_irqsave(&ch->lock, flags);
	ch->ndescs--;
	spin_unlock_irqrestore(&ch->lock, flags);
	kfree(d);
}

/* A descriptor is done and can be used again: now, or as @lazy_free says. */
static void recycle(struct chan *ch, struct desc *d)
{
	spin_lock_irq(&ch->lock);
	ch->nlazy++;
	if (d->tx.flags & DMA_PREP_INTERRUPT || !ch->engine->fake->lazy_free) {
		ch->ndescs -= ch->nlazy;
		ch->nlazy = 0;
	}
	spin_unlock_irq(&ch->lock);
	kfree(d);
}

static void call_back(struct chan *ch, const struct desc *d, bool good)
{
	struct dmaengine_result result = { good ? DMA_TRANS_NOERROR : DMA_TRANS_READ_FAILED };

	if (d->tx.flags & DMA_PREP_INTERRUPT)
		atomic_inc(&ch->engine->fake->interrupts);
	else if (ch->engine->fake->status_only)
		return;
	local_irq_disable();
	d->tx.callback_result(d->tx.callback_param, &result);
	local_irq_enable();
}

static void transfer(struct chan *ch, const struct desc *d, bool good)
{
	struct swc_t_fake *fake = ch->engine->fake;
	u8 *dst = phys_to_virt(d->dst);
	size_t at;
	u32 i;

	memcpy(dst, phys_to_virt(d->src[0]), d->len);
	for (i = 1; i < d->nsrc; i++) {
		const u8 *src = phys_to_virt(d->src[i]);

		for (at = 0; at < d->len; at++)
			dst[at] ^= src[at];
	}
	if (fake->moved)
		fake->moved(fake, d->len);
	if (!good)
		memset(dst + d->len / 2, GARBAGE, d->len - d->len / 2);
}

/* The next descriptor, unless the channel hangs. */
static struct desc *take(struct chan *ch, u32 *ended)
{
	struct swc_t_fake *fake = ch->engine->fake;
	struct desc *d = NULL;

	spin_lock_irq(&ch->lock);
	if (!ch->hangs && !list_empty(&ch->issued)) {
		d = list_first_entry(&ch->issued, struct desc, node);
		if (fake->reorder && !list_is_singular(&ch->issued)) {
			d = list_last_entry(&ch->issued, struct desc, node);
			atomic_inc(&fake->overtakes);
		}
		ch->hangs = take_fault(fake, SWC_T_FAULT_HANG);
		if (!ch->hangs) {
			list_del(&d->node);
		} else {
			if (fake->hung)
				fake->hung(fake, &d->tx);
			d = NULL;
		}
	}
	*ended = ch->ended;
	spin_unlock_irq(&ch->lock);
	return d;
}

static void work(struct work_struct *work)
{
	struct chan *ch = container_of(work, struct chan, work);
	struct swc_t_fake *fake = ch->engine->fake;
	u32 ended;

	for (;;) {
		struct desc *d = take(ch, &ended);
		bool good, stopped;

		if (!d)
			return;
		good = !READ_ONCE(fake->spoils) && !take_fault(fake, SWC_T_FAIL_TRANSFER);
		transfer(ch, d, good);
		spin_lock_irq(&ch->lock);
		stopped = ch->ended != ended;
		if (!stopped)
			ch->base.completed_cookie = d->tx.cookie;
		if (!stopped && !good)
			ch->failed[ch->nfailed++ % FAILURES] = d->tx.cookie;
		spin_unlock_irq(&ch->lock);
		if (!stopped) {
			if (good) {
				atomic_inc(&fake->transfers[ch - ch->engine->chan]);
				atomic64_add(d->len, &fake->bytes);
			}
			call_back(ch, d, good);
		} else {
			atomic_inc(&fake->terminated);
		}
		recycle(ch, d);
		cond_resched();
	}
}

/* ------------------------------------------------------------------ dmaengine's callbacks */

static int fake_alloc(struct dma_chan *base)
{
	struct chan *ch = to_chan(base);
	struct swc_t_fake *fake = ch->engine->fake;

	if (take_fault(fake, SWC_T_FAIL_ALLOC))
		return -ENOMEM;
	ch->held = true;
	ch->hangs = false;
	base->cookie = DMA_MIN_COOKIE;
	base->completed_cookie = DMA_MIN_COOKIE;
	memset(ch->failed, 0, sizeof(ch->failed));
	atomic_inc(&fake->held);
	return 0;
}

static void fake_free(struct dma_chan *base)
{
	struct chan *ch = to_chan(base);
	struct swc_t_fake *fake = ch->engine->fake;

	if (!ch->held)
		wrong(fake, "has been released twice");
	if (ch->ndescs != ch->nlazy)
		wrong(fake, "has been released with descriptors in use");
	ch->ndescs = 0;
	ch->nlazy = 0;
	ch->held = false;
	atomic_dec(&fake->held);
}

static dma_cookie_t fake_submit(struct dma_async_tx_descriptor *tx)
{
	struct chan *ch = to_chan(tx->chan);
	struct desc *d = to_desc(tx);
	unsigned long flags;

	if (!tx->callback_result)
		wrong(ch->engine->fake, "got a descriptor without a callback");
	if (take_fault(ch->engine->fake, SWC_T_FAIL_SUBMIT)) {
		drop(ch, d);
		return -ENOMEM;
	}
	spin_lock_irqsave(&ch->lock, flags);
	tx->cookie = ++ch->base.cookie;
	list_add_tail(&d->node, &ch->submitted);
	spin_unlock_irqrestore(&ch->lock, flags);
	return tx->cookie;
}

static void check(struct chan *ch, const struct desc *d, unsigned long flags)
{
	struct swc_t_fake *fake = ch->engine->fake;
	dma_addr_t bits = d->dst | d->len;
	u32 i;

	for (i = 0; i < d->nsrc; i++) {
		bits |= d->src[i];
		if (d->src[i] < d->dst + d->len && d->dst < d->src[i] + d->len)
			wrong(fake, "is asked to overwrite what it reads");
	}
	if (!ch->held)
		wrong(fake, "is used while it is not acquired");
	if (!d->len || (fake->max_seg && d->len > fake->max_seg))
		wrong(fake, "got a length out of range");
	if (bits & ((1ul << fake->align) - 1))
		wrong(fake, "got an unaligned address or length");
	if (!(flags & DMA_PREP_INTERRUPT) && fake->reorder)
		wrong(fake, "is asked for no interrupt, though it has no order");
}

static struct dma_async_tx_descriptor *
fake_prep_xor(struct dma_chan *base, dma_addr_t dst, dma_addr_t *src, unsigned int nsrc, size_t len,
	      unsigned long prep_flags)
{
	struct chan *ch = to_chan(base);
	struct swc_t_fake *fake = ch->engine->fake;
	unsigned long flags;
	struct desc *d;
	bool room;

	if (fake->preparing)
		fake->preparing(fake);
	if (nsrc > 1 && nsrc > fake->max_xor) {
		wrong(fake, "got too many sources");
		return NULL;
	}
	if (take_fault(fake, SWC_T_FAIL_PREP))
		return NULL;
	spin_lock_irqsave(&ch->lock, flags);
	room = !fake->max_descs || ch->ndescs < fake->max_descs;
	if (room)
		ch->ndescs++;
	spin_unlock_irqrestore(&ch->lock, flags);
	if (!room) {
		atomic_inc(&fake->exhausted);
		return NULL;
	}
	/* GFP_NOWAIT as in drivers: the caller may be in any context. */
	d = kzalloc(sizeof(*d), GFP_NOWAIT | __GFP_NOWARN);
	if (!d) {
		spin_lock_irqsave(&ch->lock, flags);
		ch->ndescs--;
		spin_unlock_irqrestore(&ch->lock, flags);
		return NULL;
	}
	dma_async_tx_descriptor_init(&d->tx, base);
	d->tx.tx_submit = fake_submit;
	d->tx.flags = prep_flags;
	d->dst = dst;
	d->nsrc = nsrc;
	d->len = len;
	memcpy(d->src, src, nsrc * sizeof(*src));
	check(ch, d, prep_flags);
	return &d->tx;
}

static struct dma_async_tx_descriptor *
fake_prep_memcpy(struct dma_chan *base, dma_addr_t dst, dma_addr_t src, size_t len, unsigned long flags)
{
	return fake_prep_xor(base, dst, &src, 1, len, flags);
}

static void fake_issue(struct dma_chan *base)
{
	struct chan *ch = to_chan(base);
	unsigned long flags;

	spin_lock_irqsave(&ch->lock, flags);
	list_splice_tail_init(&ch->submitted, &ch->issued);
	spin_unlock_irqrestore(&ch->lock, flags);
	queue_work(ch->engine->wq, &ch->work);
}

static enum dma_status fake_status(struct dma_chan *base, dma_cookie_t cookie, struct dma_tx_state *state)
{
	struct chan *ch = to_chan(base);
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&ch->lock, flags);
	ch->ndescs -= ch->nlazy;
	ch->nlazy = 0;
	if (state)
		*state = (struct dma_tx_state){ .last = base->completed_cookie, .used = base->cookie };
	spin_unlock_irqrestore(&ch->lock, flags);
	for (i = 0; i < FAILURES; i++)
		if (READ_ONCE(ch->failed[i]) == cookie)
			return DMA_ERROR;
	return dma_async_is_complete(cookie, READ_ONCE(base->completed_cookie), READ_ONCE(base->cookie));
}

static int fake_terminate(struct dma_chan *base)
{
	struct chan *ch = to_chan(base);
	struct swc_t_fake *fake = ch->engine->fake;
	struct desc *d, *next;
	unsigned long flags;
	LIST_HEAD(dropped);

	if (READ_ONCE(fake->refuse_stop) || take_fault(fake, SWC_T_FAIL_TERMINATE)) {
		atomic_inc(&fake->refused);
		return -EIO;
	}
	spin_lock_irqsave(&ch->lock, flags);
	list_splice_init(&ch->issued, &dropped);
	list_splice_tail_init(&ch->submitted, &dropped);
	ch->ended++;
	ch->hangs = false;
	spin_unlock_irqrestore(&ch->lock, flags);
	list_for_each_entry_safe(d, next, &dropped, node) {
		atomic_inc(&fake->terminated);
		drop(ch, d);
	}
	return 0;
}

static void fake_synchronize(struct dma_chan *base)
{
	flush_work(&to_chan(base)->work);
}

/* ------------------------------------------------------------------ adding and removing */

static struct platform_driver driver = {
	.driver.name = "swc-kunit-dma",
};

static void fake_release(struct dma_device *dma)
{
	kfree(container_of(dma, struct engine, dma));
}

static int add_engine(struct swc_t_fake *fake)
{
	struct engine *e = kzalloc(sizeof(*e), GFP_KERNEL);
	struct dma_device *dma;
	int ret = -ENOMEM;
	u32 i;

	if (!e)
		return -ENOMEM;
	e->fake = fake;
	e->wq = alloc_workqueue("swc_fake", WQ_UNBOUND, 0);
	if (!e->wq)
		goto err_free;
	dma = &e->dma;
	dma->dev = &device->dev;
	dma_cap_set(DMA_PRIVATE, dma->cap_mask);
	dma_cap_set(DMA_MEMCPY, dma->cap_mask);
	if (fake->max_xor)
		dma_cap_set(DMA_XOR, dma->cap_mask);
	if (fake->reorder)
		dma_cap_set(DMA_COMPLETION_NO_ORDER, dma->cap_mask);
	dma->max_xor = fake->max_xor;
	dma->copy_align = fake->align;
	dma->xor_align = fake->align;
	dma->directions = BIT(DMA_MEM_TO_MEM);
	dma->device_alloc_chan_resources = fake_alloc;
	dma->device_free_chan_resources = fake_free;
	dma->device_prep_dma_memcpy = fake_prep_memcpy;
	dma->device_prep_dma_xor = fake_prep_xor;
	dma->device_issue_pending = fake_issue;
	dma->device_tx_status = fake_status;
	dma->device_terminate_all = fake_terminate;
	if (!fake->no_sync)
		dma->device_synchronize = fake_synchronize;
	dma->device_release = fake_release;
	INIT_LIST_HEAD(&dma->channels);
	for (i = 0; i < fake->nchans; i++) {
		struct chan *ch = &e->chan[i];

		ch->engine = e;
		ch->base.device = dma;
		spin_lock_init(&ch->lock);
		INIT_LIST_HEAD(&ch->submitted);
		INIT_LIST_HEAD(&ch->issued);
		INIT_WORK(&ch->work, work);
		list_add_tail(&ch->base.device_node, &dma->channels);
	}
	ret = dma_async_device_register(dma);
	if (ret)
		goto err_wq;
	the_engine = e;
	return 0;

err_wq:
	destroy_workqueue(e->wq);
err_free:
	kfree(e);
	return ret;
}

int swc_t_fake_add(struct swc_t_fake *fake)
{
	int ret = platform_driver_register(&driver);

	if (ret)
		return ret;
	device = platform_device_register_simple("swc-kunit-dma", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(device)) {
		ret = PTR_ERR(device);
		goto err_driver;
	}
	ret = dma_set_mask_and_coherent(&device->dev, DMA_BIT_MASK(64));
	if (!ret) {
		dma_set_max_seg_size(&device->dev, fake->max_seg ?: UINT_MAX);
		if (fake->addr_bits)
			device->dev.bus_dma_limit = DMA_BIT_MASK(fake->addr_bits);
		ret = add_engine(fake);
	}
	if (!ret)
		return 0;
	platform_device_unregister(device);
err_driver:
	platform_driver_unregister(&driver);
	return ret;
}

void swc_t_fake_remove(struct swc_t_fake *fake)
{
	struct workqueue_struct *wq = the_engine->wq;

	dma_async_device_unregister(&the_engine->dma);
	the_engine = NULL;
	destroy_workqueue(wq);
	platform_device_unregister(device);
	platform_driver_unregister(&driver);
}

u32 swc_t_fake_transfers(struct swc_t_fake *fake)
{
	u32 i, n = 0;

	for (i = 0; i < SWC_T_FAKE_CHANS; i++)
		n += atomic_read(&fake->transfers[i]);
	return n;
}

u32 swc_t_fake_nused(struct swc_t_fake *fake)
{
	u32 i, n = 0;

	for (i = 0; i < SWC_T_FAKE_CHANS; i++)
		n += atomic_read(&fake->transfers[i]) > 0;
	return n;
}

void swc_t_fake_unhang(struct swc_t_fake *fake)
{
	u32 i;

	for (i = 0; i < fake->nchans; i++) {
		struct chan *ch = &the_engine->chan[i];

		spin_lock_irq(&ch->lock);
		ch->hangs = false;
		spin_unlock_irq(&ch->lock);
		queue_work(the_engine->wq, &ch->work);
	}
}
