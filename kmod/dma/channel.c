// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels of DMA engines.
 *
 * They are taken by a work item after the first wish, since that may sleep for long, and given back when
 * nothing has been moved for some seconds: who holds one keeps its driver loaded. Unless the user forbids or
 * forces it, one is measured against the CPU first, and used only from the size on where it is faster; or, if
 * the user would rather have moves done soon than the CPU free, from where it makes them faster together.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "dma.h"

#define IDLE_MS		3000
/* Ask again whether there are channels now; or whether they are faster now. */
#define ASK_MS		5000
#define MEASURE_MS	600000
#define PROBE_BYTES	(256u << 10)
#define PROBE_SMALL	(4u << 10)
#define PROBE_TIMES	3
/* An engine's share is no less than this. */
#define SHARE_LEAST	(64u << 10)
#define NEVER		U64_MAX

enum { FORBIDDEN, AUTOMATIC, FORCED, SHARED };

/* ns: what a move takes is a start and a time for each MiB. The CPU starts at once. */
struct speeds {
	u64 start;
	u64 mib;
	u64 cpu_mib;
};

static struct {
	spinlock_t lock;
	u32 n;
	struct swc_dma_chan *chan[SWC_DMA_MAX_CHANS];
	u64 least;		/* bytes from which it is worth it */
	struct speeds speeds;	/* of the first channel, unless they are forced */
	unsigned long used;	/* jiffies of the last use */
	unsigned long next;	/* and of the next look for channels */
	bool ready;
	int rule;		/* mode by which they were taken */
} pool = { .lock = __SPIN_LOCK_UNLOCKED(pool.lock), .least = NEVER };

static void take_work(struct work_struct *work);
static void idle_work(struct work_struct *work);
static atomic_t alive = ATOMIC_INIT(0);	/* channels, also those that are not in the pool any more */
static DECLARE_WAIT_QUEUE_HEAD(all_gone);
static DECLARE_WORK(taking, take_work);
static DECLARE_DELAYED_WORK(idling, idle_work);

/* ------------------------------------------------------------------ parameters */

static int mode = AUTOMATIC;
static const char * const mode_names[] = { "never", "auto", "always", "share" };

static int mode_set(const char *text, const struct kernel_param *kp)
{
	int new = sysfs_match_string(mode_names, text);

	if (new < 0) {
		pr_err("dma=%s: give never, auto, always or share\n", text);
		return new;
	}
	WRITE_ONCE(mode, new);
	/* Those that are held were measured, or not, by the other rule. */
	if (READ_ONCE(pool.ready))
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
MODULE_PARM_DESC(dma, "copies by DMA engines: never, auto (where one is faster), always, or share (CPU and engine each take a part of what is large enough) (default auto)");

static unsigned int channels = 4;
module_param_named(dma_channels, channels, uint, 0644);
MODULE_PARM_DESC(dma_channels, "DMA channels to take at most, up to 16 (default 4)");

static int least_get(char *text, const struct kernel_param *kp)
{
	u64 least = READ_ONCE(pool.least);

	return least == NEVER ? sysfs_emit(text, "none\n") : sysfs_emit(text, "%llu\n", least);
}

static const struct kernel_param_ops least_ops = { .get = least_get };
module_param_cb(dma_least, &least_ops, NULL, 0444);
MODULE_PARM_DESC(dma_least, "bytes from which on the channels that are held are used; none: they are not");

bool swc_dma_forced(void)
{
	return READ_ONCE(mode) == FORCED;
}

/**
 * swc_dma_share() - of so many bytes, how many engines should move: all, unless the CPU is to help
 */
u64 swc_dma_share(u64 bytes)
{
	struct speeds s;
	u64 cpu;

	if (READ_ONCE(mode) != SHARED)
		return bytes;
	spin_lock(&pool.lock);
	s = pool.speeds;
	spin_unlock(&pool.lock);
	/* So that both end together: start + mib * x = cpu_mib * (bytes - x), in ns and MiB. */
	cpu = mul_u64_u64_div_u64(bytes, s.cpu_mib, SZ_1M);
	if (cpu <= s.start)
		return 0;
	return mul_u64_u64_div_u64(cpu - s.start, SZ_1M, s.cpu_mib + s.mib);
}

/* ------------------------------------------------------------------ one channel */

static void chan_release(struct kref *ref)
{
	struct swc_dma_chan *ch = container_of(ref, struct swc_dma_chan, ref);

	dma_release_channel(ch->chan);
	swc_stat_inc(SWC_STAT_DMA_CHANS_GIVEN);
	kfree(ch);
	if (atomic_dec_and_test(&alive))
		wake_up_all(&all_gone);
}

void swc_dma_put(struct swc_dma_chan *ch)
{
	kref_put(&ch->ref, chan_release);
}

static bool is_on(struct dma_chan *chan, void *node)
{
	return dev_to_node(chan->device->dev) == *(int *)node;
}

/*
 * Drivers that go on to the next descriptor only when one has interrupted (dw_dmac, tegra-gpcdma), whose
 * descriptors disturb each other when their status is asked for (ptdma, ae4dma), or that have no order
 * without saying so (dpaa2-qdma).
 */
static const char * const need_interrupts[] = {
	"ae4dma", "dpaa2-qdma", "dw_dmac", "dw_dmac_pci", "fsl-dpaa2-qdma", "ptdma", "tegra-gpcdma",
};

/* Is it enough that the last descriptor interrupts? */
static bool is_ordered(struct dma_device *device)
{
	const char *driver = dev_driver_string(device->dev);

	return !dma_has_cap(DMA_COMPLETION_NO_ORDER, device->cap_mask) &&
	       match_string(need_interrupts, ARRAY_SIZE(need_interrupts), driver) < 0;
}

/* One on a NUMA node, or any. */
static struct swc_dma_chan *chan_take(int node)
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
	ch->dev = dmaengine_get_dma_device(chan);
	ch->node = dev_to_node(chan->device->dev);
	ch->ordered = is_ordered(chan->device);
	ch->max_seg = min_t(size_t, dma_get_max_seg_size(ch->dev), dma_max_mapping_size(ch->dev));
	if (dma_has_cap(DMA_XOR, chan->device->cap_mask))
		ch->max_xor = min_t(u32, chan->device->max_xor, SWC_DMA_MAX_SRC);
	mutex_init(&ch->submit);
	spin_lock_init(&ch->lock);
	INIT_LIST_HEAD(&ch->batches);
	INIT_DELAYED_WORK(&ch->watch, swc_dma_watch);
	swc_stat_inc(SWC_STAT_DMA_CHANS_TAKEN);
	atomic_inc(&alive);
	return ch;
}

/* ------------------------------------------------------------------ is it worth it? */

static u64 time_cpu(void *dst, void *src)
{
	u64 best = U64_MAX, start;
	int i;

	for (i = 0; i < PROBE_TIMES; i++) {
		start = ktime_get_ns();
		memcpy(dst, src, PROBE_BYTES);
		best = min(best, ktime_get_ns() - start);
	}
	return best;
}

/* Including all that lies between a worker and its next one. */
static u64 time_dma(struct swc_dma_chan *ch, void *dst, void *src, u32 bytes)
{
	u64 best = U64_MAX, start;
	int i;

	for (i = 0; i < PROBE_TIMES; i++) {
		start = ktime_get_ns();
		if (!swc_dma_try(ch, dst, src, bytes))
			return 0;
		best = min(best, ktime_get_ns() - start);
	}
	return best;
}

/* Does the channel work, and how fast? */
static bool measure(struct swc_dma_chan *ch, struct speeds *s)
{
	u32 order = get_order(PROBE_BYTES);
	unsigned long a = __get_free_pages(GFP_KERNEL | __GFP_NOWARN, order);
	unsigned long b = __get_free_pages(GFP_KERNEL | __GFP_NOWARN, order);
	u64 small, large = 0;
	bool good = false;

	if (!a || !b)
		goto out;
	memset((void *)a, 0x5a, PROBE_BYTES);
	memset((void *)b, 0, PROBE_BYTES);
	s->cpu_mib = time_cpu((void *)b, (void *)a) * (SZ_1M / PROBE_BYTES);
	memset((void *)b, 0, PROBE_BYTES);
	small = time_dma(ch, (void *)b, (void *)a, PROBE_SMALL);
	if (small)
		large = time_dma(ch, (void *)b, (void *)a, PROBE_BYTES);
	/* On a coarse clock nothing can be told. */
	good = s->cpu_mib && large > small && !memcmp((void *)a, (void *)b, PROBE_BYTES);
	if (good) {
		s->mib = div_u64((large - small) * SZ_1M, PROBE_BYTES - PROBE_SMALL);
		s->start = small - min(small, mul_u64_u64_div_u64(s->mib, PROBE_SMALL, SZ_1M));
	}
out:
	free_pages(a, order);
	free_pages(b, order);
	return good;
}

/* From where on is the channel's time less than the CPU's, or worth while together with it? */
static u64 find_least(const struct speeds *s, int rule)
{
	if (rule == SHARED)
		return div64_u64((s->start * SZ_1M + (s->cpu_mib + s->mib) * SHARE_LEAST), s->cpu_mib);
	return s->cpu_mib > s->mib ? div64_u64(s->start * SZ_1M, s->cpu_mib - s->mib) : NEVER;
}

/* ------------------------------------------------------------------ the pool */

/* One more channel, of a NUMA node or any, unless there are enough; how many there are then. */
static u32 take_one(struct swc_dma_chan **chan, u32 n, u32 most, int node)
{
	if (n == most)
		return n;
	chan[n] = chan_take(node);
	return chan[n] ? n + 1 : n;
}

static void take_work(struct work_struct *work)
{
	struct swc_dma_chan *chan[SWC_DMA_MAX_CHANS];
	u32 i, n = 0, had, most = min_t(u32, READ_ONCE(channels), SWC_DMA_MAX_CHANS);
	struct speeds speeds = {};
	int rule = READ_ONCE(mode), node;
	u64 least = 0;

	if (rule == FORBIDDEN || READ_ONCE(pool.ready))
		return;
	/* Of each NUMA node as many as of the others, then of those that belong to none. */
	do {
		had = n;
		for_each_online_node(node)
			n = take_one(chan, n, most, node);
	} while (n > had);
	do {
		had = n;
		n = take_one(chan, n, most, NUMA_NO_NODE);
	} while (n > had);
	if (!n)
		return;
	if (rule != FORCED)
		least = measure(chan[0], &speeds) ? find_least(&speeds, rule) : NEVER;
	spin_lock(&pool.lock);
	pool.speeds = speeds;
	memcpy(pool.chan, chan, n * sizeof(*chan));
	pool.n = n;
	pool.least = least;
	pool.rule = rule;
	pool.used = jiffies;
	pool.ready = true;
	if (least == NEVER && READ_ONCE(mode) == rule)
		pool.next = jiffies + msecs_to_jiffies(MEASURE_MS);
	spin_unlock(&pool.lock);
	for (i = 0; i < n; i++)
		pr_debug("DMA channel %s\n", dma_chan_name(chan[i]->chan));
	pr_debug("DMA: %llu ns and %llu ns a MiB; the CPU: %llu ns a MiB\n", speeds.start, speeds.mib,
		 speeds.cpu_mib);
	mod_delayed_work(swc_wq, &idling, msecs_to_jiffies(IDLE_MS));
}

static void give_back(void)
{
	struct swc_dma_chan *chan[SWC_DMA_MAX_CHANS];
	u32 i, n;

	spin_lock(&pool.lock);
	n = pool.n;
	memcpy(chan, pool.chan, n * sizeof(*chan));
	pool.n = 0;
	pool.least = NEVER;
	pool.ready = false;
	spin_unlock(&pool.lock);
	for (i = 0; i < n; i++) {
		/* It would only find that there is nothing. */
		if (!atomic64_read(&chan[i]->load) && cancel_delayed_work(&chan[i]->watch))
			swc_dma_put(chan[i]);
		swc_dma_put(chan[i]);
	}
}

/* Work item. */
static void idle_work(struct work_struct *work)
{
	unsigned long until = READ_ONCE(pool.used) + msecs_to_jiffies(IDLE_MS);

	if (READ_ONCE(mode) == READ_ONCE(pool.rule) && READ_ONCE(pool.least) != NEVER &&
	    time_before(jiffies, until)) {
		mod_delayed_work(swc_wq, &idling, until - jiffies + 1);
		return;
	}
	give_back();
}

/**
 * swc_dma_least() - bytes from which on channels are worth it; for ever too many if there are none
 *
 * Looks for channels in the background, if that has not been done for a while.
 */
u64 swc_dma_least(void)
{
	if (READ_ONCE(mode) == FORBIDDEN)
		return NEVER;
	if (!READ_ONCE(pool.ready) && time_after_eq(jiffies, READ_ONCE(pool.next))) {
		WRITE_ONCE(pool.next, jiffies + msecs_to_jiffies(ASK_MS));
		queue_work(swc_wq, &taking);
	}
	return READ_ONCE(pool.least);
}

/**
 * swc_dma_least_job() - bytes from which on engines are worth it, of what swc_dma_share() leaves to them
 */
u64 swc_dma_least_job(void)
{
	return READ_ONCE(mode) == SHARED ? SHARE_LEAST : READ_ONCE(pool.least);
}

/* Is a channel a better choice for memory of a NUMA node than another one? */
static bool is_better(const struct swc_dma_chan *a, const struct swc_dma_chan *b, int node)
{
	bool a_near = a->node == node, b_near = b->node == node;

	if (a_near != b_near)
		return a_near;
	return atomic64_read(&a->load) < atomic64_read(&b->load);
}

/**
 * swc_dma_take() - references to up to @most channels: those of a NUMA node first, and of them those with the
 * least to do
 * @share: what they are to do together; then each one's part of it, which counts as its load from now on
 */
u32 swc_dma_take(struct swc_dma_chan **chan, u32 most, int node, u64 *share)
{
	u32 i, n = 0, k;

	spin_lock(&pool.lock);
	/* If all have been retired, it is time to look for others. */
	if (pool.n)
		pool.used = jiffies;
	for (i = 0; i < pool.n; i++) {
		struct swc_dma_chan *ch = pool.chan[i];

		/* Few enough to sort by insertion. */
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
		kref_get(&chan[i]->ref);
		atomic64_add(*share, &chan[i]->load);
	}
	spin_unlock(&pool.lock);
	return n;
}

/**
 * swc_dma_retire() - a channel is of no use any more
 */
void swc_dma_retire(struct swc_dma_chan *ch)
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
		swc_dma_put(ch);
}

/* No operation is left, nor will there be one. */
void swc_dma_exit(void)
{
	WRITE_ONCE(mode, FORBIDDEN);
	cancel_work_sync(&taking);
	cancel_delayed_work_sync(&idling);
	give_back();
	wait_event(all_gone, !atomic_read(&alive));
}
