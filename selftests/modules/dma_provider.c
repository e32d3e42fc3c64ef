// SPDX-License-Identifier: GPL-2.0-only
/*
 * A DMA engine for tests, emulated by the CPU: it copies and xors at a given rate, and reorders, fails and
 * hangs on request. To dmaengine it is a device like any other.
 *
 * Each channel in use has a thread, which executes one descriptor at a time and sleeps until each piece of
 * its data is due. If no data moves (touch=N), a timer takes its place and fires when an interrupt is due,
 * which costs the CPUs what a real engine costs. The engine is as strict as real devices: data moves no
 * earlier than it is due, callbacks run with soft interrupts disabled and only if DMA_PREP_INTERRUPT asks
 * for them, and a descriptor is released after its callback. The lock of a channel is documented at its
 * struct.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

#include "dma_provider.h"

#define MAX_CHANNELS	64
#define MAX_XOR		16

struct engine_knobs engine_knobs;
struct engine_counts engine_counts;

static unsigned int channels = 4;
module_param(channels, uint, 0444);
MODULE_PARM_DESC(channels, "number of channels (default 4)");

static unsigned int devices = 1;
module_param(devices, uint, 0444);
MODULE_PARM_DESC(devices, "devices with so many channels each; several are spread over the NUMA nodes (default 1)");

static unsigned int align;
module_param(align, uint, 0444);
MODULE_PARM_DESC(align, "addresses and lengths must be multiples of 1 << align (default 0)");

static unsigned int max_seg;
module_param(max_seg, uint, 0444);
MODULE_PARM_DESC(max_seg, "maximum bytes of a transfer (default 0: no limit)");

module_param_named(out_of_order, engine_knobs.out_of_order, bool, 0444);
MODULE_PARM_DESC(out_of_order, "complete transfers of a channel in random order, and announce it (default N)");

static bool no_terminate;
module_param(no_terminate, bool, 0444);
MODULE_PARM_DESC(no_terminate, "do not support termination of transfers (default N)");

module_param_named(rate_mbps, engine_knobs.rate_mbps, uint, 0644);
MODULE_PARM_DESC(rate_mbps, "10^6 bytes per second and channel (default 0: as fast as possible)");

module_param_named(delay_us, engine_knobs.delay_us, uint, 0644);
MODULE_PARM_DESC(delay_us, "microseconds before each transfer (default 0)");

static unsigned int max_descs = 256;
module_param(max_descs, uint, 0644);
MODULE_PARM_DESC(max_descs, "descriptors per channel; preparing more fails (default 256)");

module_param_named(fail_nth, engine_knobs.fail_nth, uint, 0644);
MODULE_PARM_DESC(fail_nth, "the n-th transfer from now on fails; counts down to 0 (default 0: none)");

module_param_named(fail_every, engine_knobs.fail_every, uint, 0644);
MODULE_PARM_DESC(fail_every, "each n-th transfer fails (default 0: none)");

module_param_named(hang_nth, engine_knobs.hang_nth, uint, 0644);
MODULE_PARM_DESC(hang_nth, "the n-th transfer from now on hangs; counts down to 0 (default 0: none)");

static bool touch = true;
module_param(touch, bool, 0644);
MODULE_PARM_DESC(touch, "move data, as set when a channel is acquired; N: only take the time (default Y)");

static unsigned int touch_first;
module_param(touch_first, uint, 0644);
MODULE_PARM_DESC(touch_first, "with touch=N: so many first transfers of an acquired channel move data, for clients that check it (default 0)");

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

#define COUNTER(name, text)						\
	module_param_cb(name, &counter_ops, &engine_counts.name, 0444);	\
	MODULE_PARM_DESC(name, "counts " text)

COUNTER(transfers, "transfers that succeeded");
COUNTER(bytes, "their bytes");
COUNTER(failed, "transfers that failed");
COUNTER(hung, "transfers that hung");
COUNTER(terminated, "transfers terminated, without a callback");
COUNTER(in_flight, "descriptors between preparation and release");
COUNTER(far, "transfers to memory of another NUMA node than the device's");
COUNTER(refused, "requests against align, max_seg or the limit of sources");
COUNTER(exhausted, "requests beyond max_descs");

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

static void drop_all(struct engine_chan *chan, struct list_head *list)
{
	struct engine_desc *desc, *next;

	list_for_each_entry_safe(desc, next, list, node) {
		engine_release_desc(chan, desc);
		atomic64_inc(&engine_counts.terminated);
	}
}

/* Operations for dmaengine */

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
	thread = kthread_run(engine_serve, chan, "swc_dma/%d", base->chan_id);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	chan->thread = thread;
	return 0;
}

/* dmaengine calls this for the last user. */
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
		dev_warn(base->device->dev, "%s released with %d descriptors in flight\n",
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
		atomic64_inc(&engine_counts.refused);
		return NULL;
	}
	if (!atomic_add_unless(&chan->descs, 1, READ_ONCE(max_descs))) {
		atomic64_inc(&engine_counts.exhausted);
		return NULL;
	}
	desc = kzalloc(struct_size(desc, src, nsrc), GFP_NOWAIT | __GFP_NOWARN);
	if (!desc) {
		atomic_dec(&chan->descs);
		return NULL;
	}
	atomic64_inc(&engine_counts.in_flight);
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
		engine_start_next(chan);
	spin_unlock_irqrestore(&chan->lock, flags);
	if (chan->thread)
		wake_up(&chan->wake);
}

/* The residue is the whole transfer until it completes. */
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
	return engine_knobs.out_of_order ? DMA_OUT_OF_ORDER : status;
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

/* Probe and module */

/* The engine converts DMA addresses by phys_to_virt(). */
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
		dev_err(dev, "DMA addresses are not physical addresses: %s\n",
			"use a machine without IOMMU, swiotlb=force or memory encryption");
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
	/* Private: only for explicit requests of a channel. */
	dma_cap_set(DMA_PRIVATE, dma->cap_mask);
	dma_cap_set(DMA_MEMCPY, dma->cap_mask);
	dma_cap_set(DMA_XOR, dma->cap_mask);
	if (engine_knobs.out_of_order)
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
		engine_init_timer(&chan->timer);
		chan->base.device = dma;
		list_add_tail(&chan->base.device_node, &dma->channels);
	}
	return dmaenginem_async_device_register(dma);
}

/* dmaengine holds a reference to the driver's module for each channel in use. */
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
	/* An unbound device means that probing has failed. */
	return pdev->dev.driver ? 0 : -ENODEV;
}

static int __init engine_init(void)
{
	unsigned int i;
	int ret;

	if (!channels || channels > MAX_CHANNELS) {
		pr_err("channels=%u: must be 1 to %u\n", channels, MAX_CHANNELS);
		return -EINVAL;
	}
	if (!devices || devices > ARRAY_SIZE(engine_device)) {
		pr_err("devices=%u: must be 1 to %zu\n", devices, ARRAY_SIZE(engine_device));
		return -EINVAL;
	}
	if (align > DMAENGINE_ALIGN_256_BYTES) {
		pr_err("align=%u: must be 0 to %u, for 1 to 256 bytes\n", align, DMAENGINE_ALIGN_256_BYTES);
		return -EINVAL;
	}
	if (max_seg && max_seg < 1u << align) {
		pr_err("max_seg=%u: must be at least 1 << align\n", max_seg);
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
