// SPDX-License-Identifier: GPL-2.0-only
/*
 * The channels held, and the module parameters that rule them.
 *
 * A work item acquires channels after the first demand, which may sleep for long, and another one releases
 * them when nothing has been copied for some seconds: a held channel keeps its driver loaded. Unless the
 * mode is "never" or "always", the channels are measured first (calibrate.c); those that are useless are
 * released at once and tried again much later.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>

#include "dma/engine.h"

/* Time until channels are looked for again, and until useless ones are measured again. */
#define RETRY_MS	5000
#define MEASURE_MS	600000
#define NEVER		U64_MAX

/* Channels not used for this long are released. Constant but for tests. */
u32 swc_dma_idle_ms = 3000;

/* @lock guards the fields up to @speeds; the others are read and written one by one. */
static struct {
	spinlock_t lock;
	u32 n;
	struct swc_dma_chan *chan[SWC_DMA_MAX_CHANS];
	struct swc_dma_speeds speeds;	/* zero if @mode is SWC_DMA_ALWAYS */
	bool held;			/* channels are, if only useless ones */
	u64 least;			/* bytes from which on they may be used */
	enum swc_dma_mode mode;		/* in which they were acquired */
	unsigned long used;		/* jiffies of the last use */
	unsigned long next;		/* jiffies from which on a demand looks for channels */
} pool = { .lock = __SPIN_LOCK_UNLOCKED(pool.lock), .least = NEVER };

static void acquire_work(struct work_struct *work);
static void idle_work(struct work_struct *work);
static DECLARE_WORK(acquiring, acquire_work);
static DECLARE_DELAYED_WORK(idling, idle_work);

/* ------------------------------------------------------------------ parameters */

static enum swc_dma_mode mode = SWC_DMA_AUTO;
static bool closed;	/* the mode cannot be set any more; guarded by the parameters' lock */
static const char * const mode_names[] = { "never", "auto", "always", "share" };

static int mode_set(const char *text, const struct kernel_param *kp)
{
	int new = sysfs_match_string(mode_names, text);

	if (new < 0) {
		pr_err("dma=%s: give never, auto, always or share\n", text);
		return new;
	}
	if (closed)
		return -ESHUTDOWN;
	WRITE_ONCE(mode, new);
	/* Channels acquired in another mode have been measured by other rules, or not at all. */
	if (READ_ONCE(pool.held))
		mod_delayed_work(swc_wq, &idling, 0);
	WRITE_ONCE(pool.next, jiffies);
	return 0;
}

static int mode_get(char *text, const struct kernel_param *kp)
{
	return sysfs_emit(text, "%s\n", mode_names[READ_ONCE(mode)]);
}

static const struct kernel_param_ops mode_ops = { .set = mode_set, .get = mode_get };
module_param_cb(dma, &mode_ops, NULL, 0644);
MODULE_PARM_DESC(dma, "copies by DMA engines: never, auto (where one is faster), always, or share (CPU and engine each do a part of a large copy) (default auto)");

static unsigned int channels = 4;
module_param_named(dma_channels, channels, uint, 0644);
MODULE_PARM_DESC(dma_channels, "DMA channels to acquire at most, up to 16 (default 4)");

static int least_get(char *text, const struct kernel_param *kp)
{
	u64 least = READ_ONCE(pool.least);

	return least == NEVER ? sysfs_emit(text, "none\n") : sysfs_emit(text, "%llu\n", least);
}

static int least_set(const char *text, const struct kernel_param *kp)
{
	pr_err("dma_least=%s: it is measured and cannot be set\n", text);
	return -EPERM;
}

static const struct kernel_param_ops least_ops = { .set = least_set, .get = least_get };
module_param_cb(dma_least, &least_ops, NULL, 0444);
MODULE_PARM_DESC(dma_least, "bytes of copies together (with share: of one copy) from which on the channels held may be used; none: they may not");

enum swc_dma_mode swc_dma_pool_mode(void)
{
	return READ_ONCE(mode);
}

/**
 * swc_dma_pool_least() - bytes from which on idle channels are worth it, beside one CPU; U64_MAX: never, or
 * none are held
 */
u64 swc_dma_pool_least(void)
{
	return READ_ONCE(mode) == SWC_DMA_NEVER ? NEVER : READ_ONCE(pool.least);
}

struct swc_dma_speeds swc_dma_pool_speeds(void)
{
	struct swc_dma_speeds s;

	spin_lock(&pool.lock);
	s = pool.speeds;
	spin_unlock(&pool.lock);
	return s;
}

/* ------------------------------------------------------------------ acquiring, releasing */

/* Callback of a channel that does not answer, or fails again and again. */
static void drop_lost(struct swc_dma_chan *ch)
{
	bool found = false;
	u32 i;

	spin_lock(&pool.lock);
	for (i = 0; i < pool.n && !found; i++)
		found = pool.chan[i] == ch;
	if (found)
		pool.chan[i - 1] = pool.chan[--pool.n];
	spin_unlock(&pool.lock);
	if (found)
		swc_dma_chan_put(ch);
}

/* Acquire one more channel, of a NUMA node or any, unless there are enough. Returns how many there are. */
static u32 acquire_one(struct swc_dma_chan **chan, u32 n, u32 most, int node)
{
	if (n == most)
		return n;
	chan[n] = swc_dma_chan_acquire(node, drop_lost);
	return chan[n] ? n + 1 : n;
}

/* Equally many of each NUMA node first, then of those that belong to none. */
static u32 acquire_all(struct swc_dma_chan **chan, u32 most)
{
	u32 n = 0, had;
	int node;

	do {
		had = n;
		for_each_online_node(node)
			n = acquire_one(chan, n, most, node);
	} while (n > had);
	do {
		had = n;
		n = acquire_one(chan, n, most, NUMA_NO_NODE);
	} while (n > had);
	return n;
}

/* Is there memory that the device cannot address? The required range comes as a mask, so compare masks. */
static bool is_narrow(struct device *dev)
{
	u64 most = min_not_zero(dma_get_mask(dev), dev->bus_dma_limit);

	return DMA_BIT_MASK(fls64(most)) < dma_get_required_mask(dev);
}

/*
 * Measure channels. Returns bytes from which on they may be used, or NEVER. @n: how many; gets how many of
 * them, from the first on, work.
 */
static u64 measure(struct swc_dma_chan **chan, u32 *n, bool share, struct swc_dma_speeds *s)
{
	u32 i, works;

	/* The CPU would have to copy what the device cannot address to where it can. */
	for (i = 0; i < *n; i++)
		if (is_narrow(chan[i]->dev))
			return NEVER;
	works = swc_dma_calibrate(chan, share ? 1 : *n, s);
	if (!works)
		return NEVER;
	if (!share)
		*n = works;
	for (i = 0; i < *n; i++)
		chan[i]->mib_ns = max(s->one.mib, s->all.mib * s->nchans);
	return share ? swc_dma_cost_least_shared(s, SWC_DMA_MIN_SHARE) : swc_dma_cost_least(s);
}

static void release(struct swc_dma_chan **chan, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		swc_dma_chan_unwatch(chan[i]);
		swc_dma_chan_put(chan[i]);
	}
}

/*
 * Fill the pool; its lock is held. One that is broken was not found there when it was lost; one that breaks
 * from now on is. Returns how many were left out, to @rest.
 */
static u32 fill(struct swc_dma_chan **chan, u32 n, u32 works, struct swc_dma_chan **rest)
{
	u32 i, nrest = 0;

	lockdep_assert_held(&pool.lock);
	pool.n = 0;
	for (i = 0; i < n; i++)
		if (i < works && !READ_ONCE(chan[i]->broken))
			pool.chan[pool.n++] = chan[i];
		else
			rest[nrest++] = chan[i];
	return nrest;
}

/* Work item. */
static void acquire_work(struct work_struct *work)
{
	struct swc_dma_chan *chan[SWC_DMA_MAX_CHANS], *rest[SWC_DMA_MAX_CHANS];
	u32 i, n, works, nrest, most = min_t(u32, READ_ONCE(channels), SWC_DMA_MAX_CHANS);
	struct swc_dma_speeds speeds = {};
	enum swc_dma_mode now = READ_ONCE(mode);
	u64 least = 0;

	if (now == SWC_DMA_NEVER || READ_ONCE(pool.held))
		return;
	n = acquire_all(chan, most);
	if (!n)
		return;
	works = n;
	if (now != SWC_DMA_ALWAYS)
		least = measure(chan, &works, now == SWC_DMA_SHARE, &speeds);
	for (i = 0; i < n; i++)
		pr_debug("DMA channel %s\n", dma_chan_name(chan[i]->chan));
	pr_debug("DMA: one channel starts in %llu ns and takes %llu ns per MiB, all together %llu and %llu; the CPU takes %llu ns per MiB\n",
		 speeds.one.start, speeds.one.mib, speeds.all.start, speeds.all.mib, speeds.cpu_mib);
	spin_lock(&pool.lock);
	pool.speeds = speeds;
	nrest = fill(chan, n, works, rest);
	if (!pool.n)
		least = NEVER;
	WRITE_ONCE(pool.least, least);
	WRITE_ONCE(pool.mode, now);
	WRITE_ONCE(pool.used, jiffies);
	WRITE_ONCE(pool.held, true);
	if (least == NEVER && READ_ONCE(mode) == now)
		WRITE_ONCE(pool.next, jiffies + msecs_to_jiffies(MEASURE_MS));
	spin_unlock(&pool.lock);
	release(rest, nrest);
	mod_delayed_work(swc_wq, &idling, msecs_to_jiffies(swc_dma_idle_ms));
}

static void release_all(void)
{
	struct swc_dma_chan *chan[SWC_DMA_MAX_CHANS];
	u32 n;

	spin_lock(&pool.lock);
	n = pool.n;
	memcpy(chan, pool.chan, n * sizeof(*chan));
	pool.n = 0;
	WRITE_ONCE(pool.least, NEVER);
	WRITE_ONCE(pool.held, false);
	spin_unlock(&pool.lock);
	release(chan, n);
}

/* Work item. */
static void idle_work(struct work_struct *work)
{
	unsigned long until = READ_ONCE(pool.used) + msecs_to_jiffies(swc_dma_idle_ms);

	if (READ_ONCE(mode) == READ_ONCE(pool.mode) && READ_ONCE(pool.least) != NEVER &&
	    time_before(jiffies, until)) {
		mod_delayed_work(swc_wq, &idling, until - jiffies + 1);
		return;
	}
	release_all();
}

/* ------------------------------------------------------------------ using */

/**
 * swc_dma_pool_demand() - there is work for engines: acquire channels in the background
 *
 * Does nothing if channels are held, are not wanted, or have been looked for a short while ago.
 */
void swc_dma_pool_demand(void)
{
	if (READ_ONCE(mode) == SWC_DMA_NEVER || READ_ONCE(pool.held) ||
	    time_before(jiffies, READ_ONCE(pool.next)))
		return;
	WRITE_ONCE(pool.next, jiffies + msecs_to_jiffies(RETRY_MS));
	queue_work(swc_wq, &acquiring);
}

/**
 * swc_dma_pool_touch() - channels are being used: keep them
 */
void swc_dma_pool_touch(void)
{
	WRITE_ONCE(pool.used, jiffies);
}

/* Is channel @a a better choice than @b for memory of a NUMA node? */
static bool is_better(const struct swc_dma_chan *a, const struct swc_dma_chan *b, int node)
{
	bool a_near = a->node == node, b_near = b->node == node;

	if (a_near != b_near)
		return a_near;
	return atomic64_read(&a->load) < atomic64_read(&b->load);
}

/**
 * swc_dma_pool_choose() - choose up to @most channels, those of a NUMA node first, the least loaded first
 * @chan: gets a reference to each
 * @share: bytes for all of them together; on return for each, already reserved as its load
 * @q: gets the work ahead of the job
 *
 * Return: how many.
 */
u32 swc_dma_pool_choose(struct swc_dma_chan **chan, u32 most, int node, u64 *share, struct swc_dma_queue *q)
{
	u32 i, n = 0, k;

	*q = (struct swc_dma_queue){};
	spin_lock(&pool.lock);
	for (i = 0; i < pool.n; i++) {
		struct swc_dma_chan *ch = pool.chan[i];

		/* Few enough for insertion sort. */
		for (k = n; k > 0 && is_better(ch, chan[k - 1], node); k--)
			if (k < most)
				chan[k] = chan[k - 1];
		if (k < most) {
			chan[k] = ch;
			n = min(n + 1, most);
		}
	}
	*share = n ? div_u64(*share, n) : 0;
	for (i = 0; i < n; i++) {
		swc_dma_chan_get(chan[i]);
		q->front = max(q->front, swc_dma_chan_reserve(chan[i], *share));
	}
	for (i = 0; i < pool.n; i++)
		q->busy += atomic64_read(&pool.chan[i]->load) > 0;
	spin_unlock(&pool.lock);
	return n;
}

/**
 * swc_dma_pool_exit() - release all channels for good; none is in use
 */
void swc_dma_pool_exit(void)
{
	/* Parameters can be written as long as the module is there. */
	kernel_param_lock(THIS_MODULE);
	closed = true;
	WRITE_ONCE(mode, SWC_DMA_NEVER);
	kernel_param_unlock(THIS_MODULE);
	cancel_work_sync(&acquiring);
	cancel_delayed_work_sync(&idling);
	release_all();
	swc_dma_chans_drain();
}
