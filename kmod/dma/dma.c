// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moves by DMA engines: copies to one or several places, and the xor of a few sources.
 *
 * A job is what engines take of one move, or of several that end together. Its pieces, one descriptor each,
 * are spread over the channels in runs of neighbours (batches); what is too short for engines, the CPU copies
 * meanwhile. Whatever goes wrong with any of them, the CPU does the whole job again: its sources are
 * untouched, because no destination overlaps any of them.
 *
 * A job can be prepared long before it is launched: cut, dealt out and mapped, but without descriptors. Some
 * drivers hold a lock from the moment when they prepare one until it is submitted, and some begin when it is
 * submitted, not when they are told to issue it.
 *
 * Only the last descriptor of a batch interrupts, unless the channel does them in any order or its driver
 * needs the interrupts. Of what goes wrong with the others, some drivers tell by callback all the same, and
 * some by their status: both are looked at.
 *
 * Interrupts come in atomic context, in any order, and count down; the last one queues the job's work item,
 * which unmaps the memory and tells the executor. A channel that does not answer in time is stopped and
 * retired.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "mem/region.h"
#include "../trace.h"
#include "dma/engine.h"

/* So often a channel that has run out of descriptors is looked at, for a moment each. */
#define LOOKS		200
#define LOOK_US		50

/* A channel must answer by then; only tests change it. */
u32 swc_dma_patience_ms = 2000;

static swc_dma_done tell;

/* ------------------------------------------------------------------ completions */

static void job_put(struct swc_dma_job *job)
{
	if (atomic_dec_and_test(&job->left))
		queue_work(job->wq, &job->work);
}

/* The first reason counts. */
static void fail(struct swc_dma_job *job, enum swc_dma_failure why)
{
	cmpxchg(&job->failed, SWC_DMA_GOOD, why);
}

/* Atomic context. */
static void batch_over(struct swc_dma_batch *b)
{
	struct swc_dma_chan *ch = b->ch;
	unsigned long flags;

	/* A completion may be on its way still when its channel has been stopped. */
	if (atomic_xchg(&b->over, 1))
		return;
	spin_lock_irqsave(&ch->lock, flags);
	list_del_init(&b->node);
	spin_unlock_irqrestore(&ch->lock, flags);
	/* It may have been another's, that was under way at the same time. */
	if (atomic_read(&ch->errors) != b->errors)
		fail(b->job, SWC_DMA_CHANNEL_ERROR);
	atomic64_sub(b->job->share, &ch->queued);
	atomic64_sub(b->job->share, &ch->load);
	job_put(b->job);
}

static void batch_put(struct swc_dma_batch *b)
{
	if (atomic_dec_and_test(&b->left))
		batch_over(b);
}

/* Drivers that say nothing have nothing to complain about. */
static bool has_failed(const struct dmaengine_result *result)
{
	return result && result->result != DMA_TRANS_NOERROR;
}

/* A descriptor with an interrupt. */
static void descriptor_done(void *param, const struct dmaengine_result *result)
{
	struct swc_dma_piece *p = param;
	struct swc_dma_batch *b = p->batch;

	p->over = true;
	if (has_failed(result))
		fail(b->job, SWC_DMA_CHANNEL_ERROR);
	batch_put(b);
}

/* One without, of a driver that calls back all the same; maybe when its job is over. */
static void descriptor_passed(void *param, const struct dmaengine_result *result)
{
	struct swc_dma_chan *ch = param;

	if (has_failed(result))
		atomic_inc(&ch->errors);
}

static void unmap_piece(const struct swc_dma_job *job, const struct swc_dma_batch *b, struct swc_dma_piece *p)
{
	/* What was never a device's, the CPU may have written meanwhile. */
	unsigned long attrs = job->launched ? 0 : DMA_ATTR_SKIP_CPU_SYNC;
	u32 i;

	for (i = 0; i < job->nsrc; i++)
		if (p->src[i] != DMA_MAPPING_ERROR)
			dma_unmap_single_attrs(b->ch->dev, p->src[i], p->bytes, DMA_TO_DEVICE, attrs);
	if (p->dst != DMA_MAPPING_ERROR)
		dma_unmap_single_attrs(b->ch->dev, p->dst, p->bytes, DMA_BIDIRECTIONAL, attrs);
}

static void job_release(struct swc_dma_job *job)
{
	if (atomic_dec_and_test(&job->held))
		kvfree(job);
}

/**
 * swc_dma_no_more_late() - a channel has been given back to its driver: no completion comes any more
 */
void swc_dma_no_more_late(struct swc_dma_chan *ch)
{
	struct swc_dma_batch *b, *next;

	llist_for_each_entry_safe(b, next, llist_del_all(&ch->late), late)
		job_release(b->job);
}

static void job_free(struct swc_dma_job *job)
{
	u32 i, k;

	for (i = 0; i < job->nbatches; i++) {
		struct swc_dma_batch *b = &job->batch[i];

		for (k = 0; k < b->n; k++)
			unmap_piece(job, b, &job->piece[b->first + k]);
		swc_dma_put(b->ch);
	}
	job_release(job);
}

/* Does the driver know of a descriptor that has not gone well? */
static bool any_failed(const struct swc_dma_job *job)
{
	u32 i;

	for (i = 0; i < job->npieces; i++) {
		const struct swc_dma_piece *p = &job->piece[job->most_short + i];

		if (p->cookie && dma_async_is_tx_complete(p->batch->ch->chan, p->cookie, NULL, NULL) !=
		    DMA_COMPLETE)
			return true;
	}
	return false;
}

/* Work item: all is over. */
static void job_end(struct work_struct *work)
{
	struct swc_dma_job *job = container_of(work, struct swc_dma_job, work);
	struct swc_dma_waiter *waiter = job->waiter;
	struct swc_dma_item item[SWC_DMA_MAX_ITEMS];
	u32 i, n = job->nitems;
	bool good;

	if (!READ_ONCE(job->failed) && any_failed(job))
		fail(job, SWC_DMA_CHANNEL_ERROR);
	good = !READ_ONCE(job->failed);
	if (!good)
		trace_swc_dma_fallback(job->bytes, job->nbatches, job->failed);
	if (!waiter) {
		swc_stat_inc(good ? SWC_STAT_DMA_JOBS : SWC_STAT_DMA_FALLBACKS);
		swc_stat_add(SWC_STAT_DMA_BYTES, good ? job->bytes - job->by_cpu : 0);
	}
	for (i = 0; i < n; i++) {
		item[i] = job->item[i];
		if (!good)
			item[i].bytes = 0;
	}
	job_free(job);
	if (waiter) {
		waiter->good = good;
		complete(&waiter->done);
	} else {
		tell(item, n);
	}
}

/* ------------------------------------------------------------------ a channel that hangs */

/* Look soon. */
static void watch_soon(struct swc_dma_chan *ch)
{
	kref_get(&ch->ref);
	if (mod_delayed_work(swc_wq, &ch->watch, 1))
		swc_dma_put(ch);
}

/* Has the channel got past a descriptor? Some drivers' status is that of another one. */
static bool is_past(const struct swc_dma_chan *ch, dma_cookie_t cookie)
{
	struct dma_tx_state state = {};

	dmaengine_tx_status(ch->chan, cookie, &state);
	return state.used && dma_async_is_complete(cookie, state.last, state.used) == DMA_COMPLETE;
}

/* What has been submitted without an interrupt at its end is over when its status says so. */
static void end_stranded(struct swc_dma_chan *ch)
{
	struct swc_dma_batch *b;
	bool found;

	do {
		found = false;
		spin_lock_irq(&ch->lock);
		list_for_each_entry(b, &ch->batches, node) {
			found = b->stranded;
			if (found)
				break;
		}
		spin_unlock_irq(&ch->lock);
		/* It waits for nobody else. */
		if (found && !is_past(ch, b->last)) {
			if (!READ_ONCE(ch->broken))
				watch_soon(ch);
			return;
		}
		if (found) {
			b->stranded = false;
			batch_put(b);
		}
	} while (found);
}

/* Look after @delay jiffies, unless that is going to be sooner; holds a reference until then. */
static void watch_later(struct swc_dma_chan *ch, unsigned long delay)
{
	kref_get(&ch->ref);
	if (!queue_delayed_work(swc_wq, &ch->watch, delay))
		swc_dma_put(ch);
}

/* True if the channel has not answered in time. Looks again later if it still may. */
static bool is_late(struct swc_dma_chan *ch)
{
	struct swc_dma_batch *b;
	unsigned long left = 0;

	spin_lock_irq(&ch->lock);
	b = list_first_entry_or_null(&ch->batches, struct swc_dma_batch, node);
	if (b && !time_after(jiffies, b->deadline))
		left = b->deadline - jiffies + 1;
	spin_unlock_irq(&ch->lock);
	/* What is submitted meanwhile may be due sooner. */
	if (left)
		watch_later(ch, min(left, msecs_to_jiffies(swc_dma_patience_ms)));
	return b && !left;
}

/* Nothing that is in flight can be trusted any more: what is terminated may look as if it were done. */
static void give_up(struct swc_dma_chan *ch)
{
	struct swc_dma_batch *b;

	if (!ch->broken)
		pr_warn("DMA channel %s does not answer; it is not used any more\n", dma_chan_name(ch->chan));
	spin_lock_irq(&ch->lock);
	WRITE_ONCE(ch->broken, true);
	/* Who hangs soon has no descriptors either: this is the reason for that. */
	list_for_each_entry(b, &ch->batches, node)
		WRITE_ONCE(b->job->failed, SWC_DMA_NO_ANSWER);
	spin_unlock_irq(&ch->lock);
}

/* It has been stopped, and its mutex is held: no completion begins any more. */
static void end_all(struct swc_dma_chan *ch)
{
	bool sure = ch->chan->device->device_synchronize;
	struct swc_dma_batch *b;

	do {
		spin_lock_irq(&ch->lock);
		b = list_first_entry_or_null(&ch->batches, struct swc_dma_batch, node);
		if (b)
			list_del_init(&b->node);
		/* The driver cannot tell whether one is running, which may end the batch then. */
		if (b && !sure) {
			atomic_inc(&b->job->held);
			llist_add(&b->late, &ch->late);
		}
		spin_unlock_irq(&ch->lock);
		if (b)
			batch_over(b);
	} while (b);
}

/* Work item, while anything is in flight. */
void swc_dma_watch(struct work_struct *work)
{
	struct swc_dma_chan *ch = container_of(work, struct swc_dma_chan, watch.work);

	end_stranded(ch);
	if (!is_late(ch))
		goto out;
	give_up(ch);
	swc_dma_retire(ch);
	/* Who holds it may wait for a descriptor, in some drivers for ever. */
	if (!mutex_trylock(&ch->submit)) {
		dmaengine_terminate_async(ch->chan);
		mutex_lock(&ch->submit);
	}
	/* As long as it may still write, nothing can be given back. */
	if (dmaengine_terminate_sync(ch->chan))
		watch_later(ch, msecs_to_jiffies(swc_dma_patience_ms));
	else
		end_all(ch);
	mutex_unlock(&ch->submit);
out:
	swc_dma_put(ch);
}

/* ------------------------------------------------------------------ submitting */

/* The memory stays the CPU's until the job is launched. */
static dma_addr_t map(struct swc_dma_chan *ch, void *at, u32 bytes, enum dma_data_direction direction)
{
	dma_addr_t addr;

	if (swc_t_map_refused())
		return DMA_MAPPING_ERROR;
	addr = dma_map_single_attrs(ch->dev, at, bytes, direction, DMA_ATTR_SKIP_CPU_SYNC);
	return dma_mapping_error(ch->dev, addr) ? DMA_MAPPING_ERROR : addr;
}

static bool map_piece(struct swc_dma_job *job, struct swc_dma_chan *ch, struct swc_dma_piece *p)
{
	bool good = true;
	u32 i;

	for (i = 0; i < job->nsrc; i++) {
		p->src[i] = map(ch, p->from[i], p->bytes, DMA_TO_DEVICE);
		good &= p->src[i] != DMA_MAPPING_ERROR;
	}
	p->dst = map(ch, p->to, p->bytes, DMA_BIDIRECTIONAL);
	return good && p->dst != DMA_MAPPING_ERROR;
}

static void sync_piece(const struct swc_dma_job *job, const struct swc_dma_chan *ch,
		       const struct swc_dma_piece *p)
{
	u32 i;

	for (i = 0; i < job->nsrc; i++)
		dma_sync_single_for_device(ch->dev, p->src[i], p->bytes, DMA_TO_DEVICE);
	dma_sync_single_for_device(ch->dev, p->dst, p->bytes, DMA_BIDIRECTIONAL);
}

static struct dma_async_tx_descriptor *prepare(struct swc_dma_job *job, struct dma_chan *chan,
					       struct swc_dma_piece *p, bool silent)
{
	unsigned long flags = DMA_CTRL_ACK | (silent ? 0 : DMA_PREP_INTERRUPT);

	if (job->nsrc == 1)
		return dmaengine_prep_dma_memcpy(chan, p->dst, p->src[0], p->bytes, flags);
	return chan->device->device_prep_dma_xor(chan, p->dst, p->src, job->nsrc, p->bytes, flags);
}

/*
 * Prepare a descriptor. If the channel has none left, wait a moment for one to come back; some drivers take
 * back those without an interrupt when they are asked for the status.
 */
static struct dma_async_tx_descriptor *get_descriptor(struct swc_dma_batch *b, struct swc_dma_piece *p,
						      bool silent)
{
	struct swc_dma_chan *ch = b->ch;
	struct dma_async_tx_descriptor *tx = prepare(b->job, ch->chan, p, silent);
	u32 i;

	for (i = 0; !tx && i < LOOKS; i++) {
		dma_async_issue_pending(ch->chan);
		if (b->last && ch->ordered)
			is_past(ch, b->last);
		usleep_range(LOOK_US, 2 * LOOK_US);
		tx = prepare(b->job, ch->chan, p, silent);
	}
	return tx;
}

/* All descriptors of a batch; false: not all, but those before are on their way. */
static bool submit_pieces(struct swc_dma_batch *b)
{
	struct dma_async_tx_descriptor *tx;
	struct swc_dma_chan *ch = b->ch;
	u32 i;

	for (i = 0; i < b->n; i++) {
		struct swc_dma_piece *p = &b->job->piece[b->first + i];
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
		cookie = dmaengine_submit(tx);
		if (dma_submit_error(cookie)) {
			/* Some drivers call back all the same, from in there. */
			if (!silent && !p->over)
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
		watch_soon(ch);
	}
	return i == b->n;
}

/* All pieces of a batch; if some cannot be submitted, the job fails when the others are done. */
static void submit_batch(struct swc_dma_job *job, struct swc_dma_batch *b)
{
	struct swc_dma_chan *ch = b->ch;
	u64 queued = atomic64_add_return(job->share, &ch->queued);
	u32 i;

	/* Bytes of others that are in front of these count, too. */
	b->deadline = jiffies + msecs_to_jiffies(swc_dma_patience_ms + swc_dma_ms(queued));
	for (i = 0; i < b->n && job->launched; i++)
		sync_piece(job, ch, &job->piece[b->first + i]);
	kref_get(&ch->ref);
	mutex_lock(&ch->submit);
	b->errors = atomic_read(&ch->errors);
	spin_lock_irq(&ch->lock);
	list_add_tail(&b->node, &ch->batches);
	spin_unlock_irq(&ch->lock);
	if (READ_ONCE(ch->broken))
		fail(job, SWC_DMA_NO_ANSWER);
	else if (!READ_ONCE(job->failed) && !submit_pieces(b))
		fail(job, SWC_DMA_NO_DESCRIPTOR);
	dma_async_issue_pending(ch->chan);
	/* Who has found it broken ends what there is. */
	if (!READ_ONCE(ch->broken))
		watch_later(ch, msecs_to_jiffies(swc_dma_patience_ms));
	/* Who stops the channel holds the mutex, and must not end what is going to end here. */
	batch_put(b);
	mutex_unlock(&ch->submit);
	swc_dma_put(ch);
}

/* The CPU's pieces. */
static void copy_short(struct swc_dma_job *job)
{
	u32 i;

	for (i = 0; i < job->nshort; i++) {
		const struct swc_dma_piece *p = &job->piece[i];

		memcpy(p->to, p->from[0], p->bytes);
		cond_resched();
	}
	swc_stat_add(SWC_STAT_BYTES_COPIED, job->by_cpu);
}

/* A channel is not used for what it was chosen for. */
static void drop_share(struct swc_dma_chan *ch, u64 share)
{
	atomic64_sub(share, &ch->load);
	swc_dma_put(ch);
}

/* Neighbours go to the same channel, about as many bytes to each. Takes the references to the channels. */
static void deal_out(struct swc_dma_job *job, struct swc_dma_chan **chan, u32 nchans, u64 share)
{
	u64 done = 0, total = 0;
	u32 i, k = job->most_short, end = k + job->npieces;

	job->share = share;
	for (i = k; i < end; i++)
		total += job->piece[i].bytes;
	for (i = 0; i < nchans; i++) {
		struct swc_dma_batch *b = &job->batch[job->nbatches];

		b->first = k;
		for (; k < end && done < div_u64(total * (i + 1), nchans); k++) {
			done += job->piece[k].bytes;
			if (!map_piece(job, chan[i], &job->piece[k]))
				fail(job, SWC_DMA_NO_MAPPING);
		}
		b->n = k - b->first;
		if (!b->n) {
			drop_share(chan[i], share);
			continue;
		}
		b->job = job;
		b->ch = chan[i];
		INIT_LIST_HEAD(&b->node);
		atomic_set(&b->left, 1);
		job->nbatches++;
	}
}

/**
 * swc_dma_launch() - carry out what has been prepared; its end is told by the function of swc_dma_init()
 */
void swc_dma_launch(struct swc_dma_job *job)
{
	u32 i;

	job->launched = !job->failed;
	atomic_set(&job->left, job->nbatches + 1);
	for (i = 0; i < job->nbatches; i++)
		submit_batch(job, &job->batch[i]);
	/* What has failed already is done again as a whole. */
	if (!READ_ONCE(job->failed))
		copy_short(job);
	job_put(job);
}

/**
 * swc_dma_cancel() - drop what has been prepared and is not going to be launched
 */
void swc_dma_cancel(struct swc_dma_job *job)
{
	u32 i;

	for (i = 0; i < job->nbatches; i++)
		atomic64_sub(job->share, &job->batch[i].ch->load);
	job_free(job);
}

/**
 * swc_dma_node() - the NUMA node of the memory where a move goes on writing
 */
int swc_dma_node(const struct swc_move *m)
{
	const struct swc_span *span = &m->span[m->nsrc];
	const struct swc_extent *e = swc_region_find(span->region, span->offset + m->done);

	return page_to_nid(virt_to_page(e->kaddr + (span->offset + m->done - e->offset)));
}

/**
 * swc_dma_prepare() - prepare to have moves done, from where they stand, by engines
 * @wq: where their end is told
 * @items: the moves, with equally many sources and on the same NUMA node; what engines take of each is filled
 *	in. Its memory must stay until the job ends.
 * @n: how many, at most SWC_DMA_MAX_ITEMS
 * @workers: CPUs that would share the moves otherwise
 *
 * Return: what must be given to swc_dma_launch() or swc_dma_cancel(); NULL if engines take nothing.
 */
struct swc_dma_job *swc_dma_prepare(struct workqueue_struct *wq, struct swc_dma_item *items, u32 n,
				    u32 workers)
{
	struct swc_dma_chan *chan[SWC_DMA_MAX_CHANS];
	struct swc_dma_queue q;
	struct swc_dma_job *job;
	u32 i, nchans;
	u64 share = 0;

	for (i = 0; i < n; i++)
		share += (items[i].move->bytes - items[i].move->done) * items[i].move->ndst;
	nchans = swc_dma_nchans(SWC_DMA_MAX_CHANS, share);
	nchans = swc_dma_take(chan, nchans, swc_dma_node(items->move), &share, &q);
	job = swc_dma_cut(chan, nchans, share, &q, items, n, workers);
	if (!job) {
		for (i = 0; i < nchans; i++)
			drop_share(chan[i], share);
		return NULL;
	}
	swc_dma_used();
	INIT_WORK(&job->work, job_end);
	job->wq = wq;
	deal_out(job, chan, nchans, share);
	return job;
}

/**
 * swc_dma_try() - copy by certain channels, equally much by each, and wait for it; did it work?
 */
bool swc_dma_try(struct swc_dma_chan **chan, u32 nchans, void *dst, void *src, u32 bytes)
{
	u32 unit = 1, step = U32_MAX, share, at, end, i;
	struct swc_dma_waiter waiter = {};
	struct swc_dma_job *job;

	for (i = 0; i < nchans; i++) {
		unit = max(unit, 1u << chan[i]->chan->device->copy_align);
		step = min(step, chan[i]->max_seg);
	}
	share = round_up(DIV_ROUND_UP(bytes, nchans), unit);
	step = min(round_down(step, unit), share);
	job = step ? swc_dma_job_alloc(nchans * DIV_ROUND_UP(share, step), 0) : NULL;
	if (!job)
		return false;
	INIT_WORK(&job->work, job_end);
	init_completion(&waiter.done);
	job->waiter = &waiter;
	job->wq = swc_wq;
	job->bytes = bytes;
	job->nsrc = 1;
	for (at = 0, end = 0; at < bytes; at += job->piece[job->npieces++].bytes) {
		struct swc_dma_piece *p = &job->piece[job->npieces];

		/* Where one channel's part ends, the next one's begins. */
		if (at == end)
			end = min(end + share, bytes);
		p->from[0] = src + at;
		p->to = dst + at;
		p->bytes = min(step, end - at);
	}
	for (i = 0; i < nchans; i++) {
		kref_get(&chan[i]->ref);
		atomic64_add(share, &chan[i]->load);
	}
	deal_out(job, chan, nchans, share);
	swc_dma_launch(job);
	wait_for_completion(&waiter.done);
	return waiter.good;
}

/**
 * swc_dma_init() - engines may be used
 * @done: who is told
 */
void swc_dma_init(swc_dma_done done)
{
	tell = done;
}
