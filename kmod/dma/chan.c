// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels of DMA engines.
 *
 * They are taken by a work item after the first wish, since that may sleep for long, and given back when
 * nothing has been moved for some seconds: who holds one keeps its driver loaded. Unless the user forbids or
 * forces it, they are measured against the CPU first (worth.c), and used only for jobs that they end sooner,
 * with what they have to do already, than the CPUs that would work on it; or, if the user would rather have
 * moves done soon than the CPU free, from where they make them faster together.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>

#include "dma/engine.h"

#define IDLE_MS		3000
/* Ask again whether there are channels now; or whether they are faster now. */
#define ASK_MS		5000
#define MEASURE_MS	600000
/* An engine's share is no less than this. */
#define SHARE_LEAST	(64u << 10)
#define NEVER		U64_MAX
/* A channel must be no slower than this, in bytes a millisecond; nor so many times slower than it was. */
#define SLOWEST		1000
#define PATIENCE	16
/* What is larger is judged as if it were this: there is no overflow. */
#define MOST_JUDGED	(1ull << 36)

enum { FORBIDDEN, AUTOMATIC, FORCED, SHARED };

static struct {
	spinlock_t lock;
	u32 n;
	struct swc_dma_chan *chan[SWC_DMA_MAX_CHANS];
	u64 least;		/* bytes from which it is worth it */
	struct swc_dma_speeds speeds;	/* unless they are forced */
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
static bool closed;	/* nothing can be set any more; the parameters' lock guards it */
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

static int least_set(const char *text, const struct kernel_param *kp)
{
	pr_err("dma_least=%s: it is measured, not given\n", text);
	return -EPERM;
}

static const struct kernel_param_ops least_ops = { .set = least_set, .get = least_get };
module_param_cb(dma_least, &least_ops, NULL, 0444);
MODULE_PARM_DESC(dma_least, "bytes to be copied together (by share: of one move) from which on the channels that are held may be used; none: they are not");

bool swc_dma_forced(void)
{
	return READ_ONCE(mode) == FORCED;
}

static struct swc_dma_speeds speeds_now(void)
{
	struct swc_dma_speeds s;

	spin_lock(&pool.lock);
	s = pool.speeds;
	spin_unlock(&pool.lock);
	return s;
}

/**
 * swc_dma_ms() - how long a channel may take for what it has been given, before it is believed to hang
 *
 * So many times what has been measured; where nothing has been, as long as a very slow one would.
 */
u64 swc_dma_ms(u64 bytes)
{
	struct swc_dma_speeds s = speeds_now();
	u64 slow = div_u64(bytes, SLOWEST), mib = max(s.one.mib, s.all.mib * s.nchans);

	if (!s.cpu_mib || bytes > MOST_JUDGED)
		return slow;
	return min(slow, div_u64(mul_u64_u64_div_u64(bytes, mib, SZ_1M), NSEC_PER_MSEC) * PATIENCE);
}

/**
 * swc_dma_share() - of so many bytes, how many engines should move: all, unless the CPU is to help
 */
u64 swc_dma_share(u64 bytes)
{
	struct swc_dma_speeds s;

	if (READ_ONCE(mode) != SHARED)
		return bytes;
	s = speeds_now();
	return s.cpu_mib ? swc_dma_part(&s, bytes) : 0;
}

/* ------------------------------------------------------------------ one channel */

static void chan_release(struct kref *ref)
{
	struct swc_dma_chan *ch = container_of(ref, struct swc_dma_chan, ref);
	bool sure = ch->chan->device->device_synchronize;

	dma_release_channel(ch->chan);
	/* A callback that is running is in atomic context. */
	if (!sure)
		synchronize_rcu();
	swc_dma_no_more_late(ch);
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

/* ------------------------------------------------------------------ the pool */

/* One more channel, of a NUMA node or any, unless there are enough; how many there are then. */
static u32 take_one(struct swc_dma_chan **chan, u32 n, u32 most, int node)
{
	if (n == most)
		return n;
	chan[n] = chan_take(node);
	return chan[n] ? n + 1 : n;
}

/* Is there memory that it cannot address? What is needed comes as a mask, and so must the limit. */
static bool is_narrow(struct device *dev)
{
	u64 most = min_not_zero(dma_get_mask(dev), dev->bus_dma_limit);

	return DMA_BIT_MASK(fls64(most)) < dma_get_required_mask(dev);
}

static void take_work(struct work_struct *work)
{
	struct swc_dma_chan *chan[SWC_DMA_MAX_CHANS];
	u32 i, n = 0, had, most = min_t(u32, READ_ONCE(channels), SWC_DMA_MAX_CHANS);
	struct swc_dma_speeds speeds = {};
	int rule = READ_ONCE(mode), node;
	bool narrow = false;
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
	for (i = 0; i < n; i++)
		narrow |= is_narrow(chan[i]->dev);
	/* What it cannot address, the CPU would have to copy to where it can. */
	if (rule != FORCED && (narrow || !swc_dma_measure(chan, rule == SHARED ? 1 : n, &speeds)))
		least = NEVER;
	else if (rule != FORCED)
		least = rule == SHARED ? swc_dma_least_shared(&speeds, SHARE_LEAST) :
					 swc_dma_least_of(&speeds);
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
	pr_debug("DMA: a channel %llu ns and %llu ns a MiB, all %llu and %llu; the CPU: %llu ns a MiB\n",
		 speeds.one.start, speeds.one.mib, speeds.all.start, speeds.all.mib, speeds.cpu_mib);
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
 * swc_dma_least() - bytes from which on free channels are worth it, beside one CPU; for ever too many if
 * there are none
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

/* Would so many bytes be worth it, on channels with nothing else to do? */
static bool pays_idle(const struct swc_dma_speeds *s, u64 bytes, u32 workers)
{
	u32 n = swc_dma_nchans(s->nchans, bytes);

	return n && swc_dma_is_faster(s, bytes, div_u64(bytes, n), n, workers);
}

/**
 * swc_dma_pays() - are channels worth it that have been chosen for a job?
 * @q: what they have to do
 * @nchans: how many
 * @bytes: what they would move
 * @workers: CPUs that would share the job otherwise
 */
bool swc_dma_pays(const struct swc_dma_queue *q, u32 nchans, u64 bytes, u32 workers)
{
	struct swc_dma_speeds s;

	switch (READ_ONCE(mode)) {
	case FORBIDDEN:
		return false;
	case FORCED:
		return true;
	case SHARED:
		return bytes >= SHARE_LEAST;
	}
	s = speeds_now();
	return s.cpu_mib && swc_dma_is_faster(&s, bytes, q->front + div_u64(bytes, nchans), q->busy, workers);
}

/**
 * swc_dma_wants() - is a move of the kind and size that an engine may do? When it is asked, it may be busy.
 * @m: the move, or one that has no place in memory yet
 * @moves: so many, if they are like it, make one job
 * @workers: CPUs that would share them otherwise
 */
bool swc_dma_wants(const struct swc_move *m, u32 moves, u32 workers)
{
	u64 least, bytes = min_t(u64, m->bytes - m->done, MOST_JUDGED) * m->ndst;
	u64 all = min_t(u64, bytes * moves, MOST_JUDGED);
	struct swc_dma_speeds s;

	if (m->div || (m->nsrc > 1 && (m->redop != SWC_BXOR || m->nsrc > SWC_DMA_MAX_SRC)))
		return false;
	least = swc_dma_least();
	if (READ_ONCE(mode) != AUTOMATIC)
		return m->bytes - m->done >= least;
	if (max(bytes, all) < least)
		return false;
	s = speeds_now();
	/* The others may be smaller, or none. */
	return s.cpu_mib && (pays_idle(&s, min(bytes, MOST_JUDGED), 1) || pays_idle(&s, all, workers));
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
 * @q: gets what they have to do; may be NULL
 */
u32 swc_dma_take(struct swc_dma_chan **chan, u32 most, int node, u64 *share, struct swc_dma_queue *q)
{
	struct swc_dma_queue queue = {};
	u32 i, n = 0, k;

	spin_lock(&pool.lock);
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
		queue.front = max_t(u64, queue.front, atomic64_fetch_add(*share, &chan[i]->load));
	}
	for (i = 0; i < pool.n; i++)
		queue.busy += atomic64_read(&pool.chan[i]->load) > 0;
	spin_unlock(&pool.lock);
	if (q)
		*q = queue;
	return n;
}

/**
 * swc_dma_used() - something is going to be moved: the channels stay
 */
void swc_dma_used(void)
{
	WRITE_ONCE(pool.used, jiffies);
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
	/* Parameters can be written for as long as the module is there. */
	kernel_param_lock(THIS_MODULE);
	closed = true;
	WRITE_ONCE(mode, FORBIDDEN);
	kernel_param_unlock(THIS_MODULE);
	cancel_work_sync(&taking);
	cancel_delayed_work_sync(&idling);
	give_back();
	wait_event(all_gone, !atomic_read(&alive));
}
