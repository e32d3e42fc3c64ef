// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moves by DMA engines: copies to one or several places, and the xor of a few sources.
 *
 * A job is the part of one move that engines take: the bytes from where it stands up to the first that no
 * engine can do. It is cut into pieces, one descriptor each, that are spread over the channels in runs of
 * neighbours (batches); what is so short that a descriptor costs more than it brings, the CPU copies
 * meanwhile. Whatever goes wrong with any of them, the CPU does the whole job again: its sources are
 * untouched, because no destination overlaps any of them.
 *
 * A job can be prepared long before it is launched: cut, dealt out and mapped, but without descriptors. Some
 * drivers hold a lock from the moment when they prepare one until it is submitted, and some begin when it is
 * submitted, not when they are told to issue it.
 *
 * Completions come in atomic context, in any order, and count down; the last one queues the job's work item,
 * which unmaps the memory and tells the executor. A channel that does not answer in time is stopped and
 * retired.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../region.h"
#include "dma.h"

/* Pieces of a job; what is left of the move is another one. */
#define MAX_PIECES	1024
/* Shorter stretches cost more than they bring, unless engines are forced. */
#define MIN_STRETCH	(16u << 10)
/* A piece ends at a multiple of this, if it can. */
#define PIECE_UNIT	64u
/* One channel for so many bytes. */
#define SHARE_BYTES	(1u << 20)
/* A channel must be no slower than this. */
#define BYTES_PER_MS	1000
/* So often a channel that has run out of descriptors is looked at, for a moment each. */
#define LOOKS		200
#define LOOK_US		50

/* A channel must answer by then; only tests change it. */
u32 swc_dma_patience_ms = 2000;

static swc_dma_done tell;

/**
 * struct piece - one descriptor, or what the CPU copies
 * @src, @dst: the same as @from, @to, for the device
 * @batch: whose
 * @over: its callback has come
 */
struct piece {
	dma_addr_t src[SWC_DMA_MAX_SRC];
	dma_addr_t dst;
	void *from[SWC_DMA_MAX_SRC];
	void *to;
	u32 bytes;
	struct batch *batch;
	bool over;
};

struct waiter {
	struct completion done;
	bool good;
};

/**
 * struct batch - what one channel does of a job
 * @node: in the channel's list, until it is over; the channel's lock
 * @job: whose
 * @ch: reference
 * @left: descriptors that are not complete, and one more until all are submitted
 * @deadline: jiffies
 * @first, @n: pieces
 */
struct batch {
	struct list_head node;
	struct swc_dma_job *job;
	struct swc_dma_chan *ch;
	atomic_t left;
	unsigned long deadline;
	u32 first;
	u32 n;
};

/**
 * struct swc_dma_job - what engines do of a move
 * @run: whose move, once it is launched; NULL: nobody's, but somebody waits
 * @waiter: that one
 * @work: the end, on @wq
 * @left: batches that are not over, and one more until all are there
 * @launched: the memory is the devices'
 * @failed: one of them has, or its memory could not be mapped
 * @share: what each of its channels was chosen for
 * @bytes: of the move
 * @by_cpu: of them, those that the CPU copies
 * @nsrc: sources of each piece
 * @npieces: pieces that are engines', the first in @piece
 * @nall: with those that are the CPU's
 */
struct swc_dma_job {
	struct swc_run *run;
	struct waiter *waiter;
	struct workqueue_struct *wq;
	struct work_struct work;
	atomic_t left;
	bool launched;
	bool failed;
	u64 share;
	u64 bytes;
	u64 by_cpu;
	u32 nsrc;
	u32 nbatches;
	struct batch batch[SWC_DMA_MAX_CHANS];
	u32 npieces;
	u32 nall;
	struct piece piece[];
};

/* ------------------------------------------------------------------ completions */

static void job_put(struct swc_dma_job *job)
{
	if (atomic_dec_and_test(&job->left))
		queue_work(job->wq, &job->work);
}

/* Atomic context. */
static void batch_over(struct batch *b)
{
	unsigned long flags;

	spin_lock_irqsave(&b->ch->lock, flags);
	list_del_init(&b->node);
	spin_unlock_irqrestore(&b->ch->lock, flags);
	atomic64_sub(b->job->share, &b->ch->queued);
	atomic64_sub(b->job->share, &b->ch->load);
	job_put(b->job);
}

static void batch_put(struct batch *b)
{
	if (atomic_dec_and_test(&b->left))
		batch_over(b);
}

static void descriptor_done(void *param, const struct dmaengine_result *result)
{
	struct piece *p = param;
	struct batch *b = p->batch;

	p->over = true;
	/* Drivers that say nothing have nothing to complain about. */
	if (result && result->result != DMA_TRANS_NOERROR)
		WRITE_ONCE(b->job->failed, true);
	atomic_inc(&b->ch->ndone);
	batch_put(b);
}

static void unmap_piece(const struct swc_dma_job *job, const struct batch *b, struct piece *p)
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

static void job_free(struct swc_dma_job *job)
{
	u32 i, k;

	for (i = 0; i < job->nbatches; i++) {
		struct batch *b = &job->batch[i];

		for (k = 0; k < b->n; k++)
			unmap_piece(job, b, &job->piece[b->first + k]);
		swc_dma_put(b->ch);
	}
	kvfree(job);
}

/* Work item: all is over. */
static void job_end(struct work_struct *work)
{
	struct swc_dma_job *job = container_of(work, struct swc_dma_job, work);
	struct waiter *waiter = job->waiter;
	struct swc_run *run = job->run;
	u64 bytes = READ_ONCE(job->failed) ? 0 : job->bytes, by_cpu = job->by_cpu;

	job_free(job);
	if (run) {
		swc_stat_inc(bytes ? SWC_STAT_DMA_JOBS : SWC_STAT_DMA_FALLBACKS);
		swc_stat_add(SWC_STAT_DMA_BYTES, bytes ? bytes - by_cpu : 0);
		tell(run, bytes);
	} else {
		waiter->good = bytes;
		complete(&waiter->done);
	}
}

/* ------------------------------------------------------------------ a channel that hangs */

/* Look after a while; holds a reference until then. */
static void watch_later(struct swc_dma_chan *ch)
{
	kref_get(&ch->ref);
	if (!queue_delayed_work(swc_wq, &ch->watch, msecs_to_jiffies(swc_dma_patience_ms)))
		swc_dma_put(ch);
}

/* True if the channel has not answered in time. Looks again later if it still may. */
static bool is_late(struct swc_dma_chan *ch)
{
	struct batch *b;
	bool late;

	spin_lock_irq(&ch->lock);
	b = list_first_entry_or_null(&ch->batches, struct batch, node);
	late = b && time_after(jiffies, b->deadline);
	spin_unlock_irq(&ch->lock);
	if (b && !late)
		watch_later(ch);
	return late;
}

/* Work item, while anything is in flight. */
void swc_dma_watch(struct work_struct *work)
{
	struct swc_dma_chan *ch = container_of(work, struct swc_dma_chan, watch.work);
	struct batch *b, *next;
	LIST_HEAD(lost);

	if (!is_late(ch))
		goto out;
	/* Who holds it may wait for a descriptor, in some drivers for ever. */
	if (!mutex_trylock(&ch->submit)) {
		dmaengine_terminate_async(ch->chan);
		mutex_lock(&ch->submit);
	}
	if (!ch->broken)
		pr_warn("DMA channel %s does not answer; it is not used any more\n", dma_chan_name(ch->chan));
	ch->broken = true;
	if (dmaengine_terminate_sync(ch->chan)) {
		/* It may still write: nothing can be given back before it answers. */
		watch_later(ch);
	} else {
		/* No completion comes any more, and none is running. */
		spin_lock_irq(&ch->lock);
		list_splice_init(&ch->batches, &lost);
		spin_unlock_irq(&ch->lock);
	}
	mutex_unlock(&ch->submit);
	swc_dma_retire(ch);
	list_for_each_entry_safe(b, next, &lost, node) {
		WRITE_ONCE(b->job->failed, true);
		batch_over(b);
	}
out:
	swc_dma_put(ch);
}

/* ------------------------------------------------------------------ submitting */

/* The memory stays the CPU's until the job is launched. */
static bool map_piece(struct swc_dma_job *job, struct swc_dma_chan *ch, struct piece *p)
{
	bool good = true;
	u32 i;

	for (i = 0; i < job->nsrc; i++) {
		p->src[i] = dma_map_single_attrs(ch->dev, p->from[i], p->bytes, DMA_TO_DEVICE,
						 DMA_ATTR_SKIP_CPU_SYNC);
		if (dma_mapping_error(ch->dev, p->src[i])) {
			p->src[i] = DMA_MAPPING_ERROR;
			good = false;
		}
	}
	p->dst = dma_map_single_attrs(ch->dev, p->to, p->bytes, DMA_BIDIRECTIONAL, DMA_ATTR_SKIP_CPU_SYNC);
	if (dma_mapping_error(ch->dev, p->dst)) {
		p->dst = DMA_MAPPING_ERROR;
		good = false;
	}
	return good;
}

static void sync_piece(const struct swc_dma_job *job, const struct swc_dma_chan *ch, const struct piece *p)
{
	u32 i;

	for (i = 0; i < job->nsrc; i++)
		dma_sync_single_for_device(ch->dev, p->src[i], p->bytes, DMA_TO_DEVICE);
	dma_sync_single_for_device(ch->dev, p->dst, p->bytes, DMA_BIDIRECTIONAL);
}

/* Each with its own interrupt: a callback is all that tells of an error. */
static struct dma_async_tx_descriptor *prepare(struct swc_dma_job *job, struct dma_chan *chan,
					       struct piece *p)
{
	unsigned long flags = DMA_CTRL_ACK | DMA_PREP_INTERRUPT;

	if (job->nsrc == 1)
		return dmaengine_prep_dma_memcpy(chan, p->dst, p->src[0], p->bytes, flags);
	return chan->device->device_prep_dma_xor(chan, p->dst, p->src, job->nsrc, p->bytes, flags);
}

/* The channel has no descriptor left: wait a moment for one to come back. */
static bool wait_for_one(struct swc_dma_chan *ch)
{
	int ndone = atomic_read(&ch->ndone);
	u32 i;

	dma_async_issue_pending(ch->chan);
	for (i = 0; i < LOOKS && atomic_read(&ch->ndone) == ndone; i++)
		usleep_range(LOOK_US, 2 * LOOK_US);
	return atomic_read(&ch->ndone) != ndone;
}

/* All descriptors of a batch; false: not all, but those before are on their way. */
static bool submit_pieces(struct swc_dma_job *job, struct batch *b)
{
	struct dma_async_tx_descriptor *tx;
	u32 i;

	for (i = 0; i < b->n; i++) {
		struct piece *p = &job->piece[b->first + i];

		p->batch = b;
		do {
			tx = prepare(job, b->ch->chan, p);
		} while (!tx && wait_for_one(b->ch));
		if (!tx)
			return false;
		tx->callback_result = descriptor_done;
		tx->callback_param = p;
		atomic_inc(&b->left);
		if (dma_submit_error(dmaengine_submit(tx))) {
			/* Some drivers call back all the same, from in there. */
			if (!p->over)
				atomic_dec(&b->left);
			return false;
		}
	}
	return true;
}

/* All pieces of a batch; if some cannot be submitted, the job fails when the others are done. */
static void submit_batch(struct swc_dma_job *job, struct batch *b)
{
	struct swc_dma_chan *ch = b->ch;
	u64 queued = atomic64_add_return(job->share, &ch->queued);
	u32 i;

	/* Bytes of others that are in front of these count, too. */
	b->deadline = jiffies + msecs_to_jiffies(swc_dma_patience_ms + div_u64(queued, BYTES_PER_MS));
	for (i = 0; i < b->n && job->launched; i++)
		sync_piece(job, ch, &job->piece[b->first + i]);
	kref_get(&ch->ref);
	mutex_lock(&ch->submit);
	spin_lock_irq(&ch->lock);
	list_add_tail(&b->node, &ch->batches);
	spin_unlock_irq(&ch->lock);
	if (READ_ONCE(job->failed) || ch->broken || !submit_pieces(job, b))
		WRITE_ONCE(job->failed, true);
	dma_async_issue_pending(ch->chan);
	watch_later(ch);
	/* Who stops the channel holds the mutex, and must not end what is going to end here. */
	batch_put(b);
	mutex_unlock(&ch->submit);
	swc_dma_put(ch);
}

/* The CPU's pieces. */
static void copy_short(struct swc_dma_job *job)
{
	u32 i;

	for (i = job->npieces; i < job->nall; i++) {
		const struct piece *p = &job->piece[i];

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
	u32 i, k = 0;

	job->share = share;
	for (i = 0; i < job->npieces; i++)
		total += job->piece[i].bytes;
	for (i = 0; i < nchans; i++) {
		struct batch *b = &job->batch[job->nbatches];

		b->first = k;
		for (; k < job->npieces && done < div_u64(total * (i + 1), nchans); k++) {
			done += job->piece[k].bytes;
			job->failed |= !map_piece(job, chan[i], &job->piece[k]);
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
 * swc_dma_launch() - carry out what has been prepared
 * @run: whose it is; told by the function of swc_dma_init()
 */
void swc_dma_launch(struct swc_dma_job *job, struct swc_run *run)
{
	u32 i;

	job->run = run;
	job->launched = !job->failed;
	atomic_set(&job->left, job->nbatches + 1);
	for (i = 0; i < job->nbatches; i++)
		submit_batch(job, &job->batch[i]);
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

/* ------------------------------------------------------------------ cutting */

/*
 * What all the channels of a job can do; shorter pieces than @least are the CPU's. Where engines do not see
 * its caches, a line (@line bytes) that they write must not be written by it.
 */
struct limits {
	u32 max_seg;
	u32 align;
	u32 line;
	u32 least;
};

static bool find_limits(struct limits *lim, struct swc_dma_chan **chan, u32 nchans, u32 nsrc)
{
	u32 i, unit, align = 0;

	lim->line = dma_get_cache_alignment();
	lim->max_seg = U32_MAX;
	for (i = 0; i < nchans; i++) {
		const struct dma_device *device = chan[i]->chan->device;

		if (nsrc > 1 && nsrc > chan[i]->max_xor)
			return false;
		lim->max_seg = min(lim->max_seg, chan[i]->max_seg);
		align = max_t(u32, align, nsrc == 1 ? device->copy_align : device->xor_align);
	}
	lim->align = BIT(align);
	/* Where one piece ends, the next must be able to begin; and no element lies in two. */
	unit = lim->max_seg > PIECE_UNIT ? max(lim->align, PIECE_UNIT) : lim->align;
	unit = max(unit, lim->line);
	lim->max_seg = round_down(lim->max_seg, unit);
	lim->least = nsrc > 1 || swc_dma_forced() ? 0 : MIN_STRETCH;
	return nchans && lim->max_seg;
}

/* Where the ranges of a move are; sources, then the destination in turn. */
struct cut {
	const struct swc_extent *extent[SWC_DMA_MAX_SRC + 1];
	const struct swc_span *span[SWC_DMA_MAX_SRC + 1];
	u32 n;
};

static void cut_start(struct cut *cut, const struct swc_move *m, u32 dst)
{
	u32 i;

	cut->n = m->nsrc + 1;
	for (i = 0; i < cut->n; i++) {
		cut->span[i] = &m->span[i < m->nsrc ? i : m->nsrc + dst];
		cut->extent[i] = swc_region_find(cut->span[i]->region, cut->span[i]->offset + m->done);
	}
}

/* The longest stretch at @at, up to @most bytes, that is contiguous in all ranges; 0: an engine cannot. */
static u32 cut_next(struct cut *cut, const struct limits *lim, u64 at, u64 most, void **ptr)
{
	u64 bytes = min_t(u64, most, lim->max_seg);
	u32 i;

	for (i = 0; i < cut->n; i++) {
		u64 offset = cut->span[i]->offset + at;

		while (cut->extent[i][1].offset <= offset)
			cut->extent[i]++;
		bytes = min(bytes, cut->extent[i][1].offset - offset);
		ptr[i] = cut->extent[i]->kaddr + (offset - cut->extent[i]->offset);
	}
	/* It may not write what it, or another after an error, is to read. */
	for (i = 0; i < cut->n - 1; i++)
		if (ptr[i] < ptr[cut->n - 1] + bytes && ptr[cut->n - 1] < ptr[i] + bytes)
			return 0;
	return bytes;
}

/* Trim a stretch to what the device can align; 0: nothing of it. */
static u32 align_down(const struct limits *lim, void **ptr, u32 n, u32 bytes)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (!IS_ALIGNED((unsigned long)ptr[i], lim->align))
			return 0;
	return round_down(bytes, lim->align);
}

/* Of a stretch that begins at @to, what comes first: whole lines, or a part of one, which is the CPU's. */
static u32 lines_of(const struct limits *lim, const void *to, u32 bytes, bool *is_part)
{
	u32 begun = (unsigned long)to & (lim->line - 1);

	*is_part = begun || bytes < lim->line;
	return *is_part ? min(bytes, lim->line - begun) : round_down(bytes, lim->line);
}

/* What a move is cut into: for engines, and for the CPU. */
struct tally {
	u32 n[2];
	u64 bytes[2];
};

/*
 * Cut what engines can take of a move, for one destination, into pieces of @job; NULL: only count. Several
 * destinations all end where the first of them does. Returns where that is.
 */
static u64 cut_move(const struct limits *lim, const struct swc_move *m, u32 dst, u64 end, u32 most,
		    struct tally *tally, struct swc_dma_job *job)
{
	void *ptr[SWC_DMA_MAX_SRC + 1];
	struct cut cut;
	u64 at = m->done;
	u32 n;

	cut_start(&cut, m, dst);
	for (n = 0; at < end && n < most; n++) {
		u32 whole = cut_next(&cut, lim, at, end - at, ptr);
		u32 able = align_down(lim, ptr, cut.n, whole), bytes;
		bool is_short;

		if (!able)
			break;
		bytes = lines_of(lim, ptr[m->nsrc], able, &is_short);
		is_short |= bytes < lim->least;
		/* The CPU copies here, no more. */
		if (is_short && m->nsrc > 1)
			break;
		if (job) {
			struct piece *piece = &job->piece[(is_short ? job->npieces : 0) + tally->n[is_short]];

			memcpy(piece->from, ptr, m->nsrc * sizeof(*ptr));
			piece->to = ptr[m->nsrc];
			piece->bytes = bytes;
		}
		tally->n[is_short]++;
		tally->bytes[is_short] += bytes;
		at += bytes;
		/* A piece that is too short for the device ends it. */
		if (bytes == able && able < whole)
			break;
	}
	return at;
}

static struct swc_dma_job *job_alloc(u32 npieces, u32 nshort)
{
	struct swc_dma_job *job;

	job = kvzalloc(struct_size(job, piece, npieces + nshort), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!job)
		return NULL;
	job->npieces = npieces;
	job->nall = npieces + nshort;
	INIT_WORK(&job->work, job_end);
	return job;
}

/* A job of what engines can take, or NULL. */
static struct swc_dma_job *make_job(const struct limits *lim, const struct swc_move *m)
{
	struct tally all = {}, cut = {}, done = {};
	u64 end = m->bytes;
	struct swc_dma_job *job;
	u32 d;

	for (d = 0; d < m->ndst; d++)
		end = cut_move(lim, m, d, end, MAX_PIECES / m->ndst, &all, NULL);
	for (d = 0; d < m->ndst; d++)
		cut_move(lim, m, d, end, MAX_PIECES, &cut, NULL);
	/* Not for less than half of it. */
	if (!cut.bytes[0] || cut.bytes[0] < cut.bytes[1] ||
	    (!swc_dma_forced() && cut.bytes[0] < swc_dma_least_job()))
		return NULL;
	job = job_alloc(cut.n[0], cut.n[1]);
	if (!job)
		return NULL;
	job->bytes = end - m->done;
	/* As it is counted elsewhere: what goes to several places counts once. */
	job->by_cpu = div_u64(cut.bytes[1], m->ndst);
	job->nsrc = m->nsrc;
	for (d = 0; d < m->ndst; d++)
		cut_move(lim, m, d, end, MAX_PIECES, &done, job);
	return job;
}

/**
 * swc_dma_wants() - is a move of the kind and size that an engine should do?
 */
bool swc_dma_wants(const struct swc_move *m)
{
	if (m->div || (m->nsrc > 1 && (m->redop != SWC_BXOR || m->nsrc > SWC_DMA_MAX_SRC)))
		return false;
	return m->bytes - m->done >= swc_dma_least();
}

/* The NUMA node of the memory at a place in a range. */
static int node_of(const struct swc_span *span, u64 at)
{
	const struct swc_extent *e = swc_region_find(span->region, span->offset + at);

	return page_to_nid(virt_to_page(e->kaddr + (span->offset + at - e->offset)));
}

/**
 * swc_dma_prepare() - prepare to have a move done, from where it stands, by engines
 * @wq: where the run is told of its end
 * @m: what to move; not looked at any more after this returns, but the memory must stay until the job ends
 *
 * Return: what must be given to swc_dma_launch() or swc_dma_cancel(); NULL if engines do not take the move.
 */
struct swc_dma_job *swc_dma_prepare(struct workqueue_struct *wq, const struct swc_move *m)
{
	struct swc_dma_chan *chan[SWC_DMA_MAX_CHANS];
	u64 share = (m->bytes - m->done) * m->ndst;
	u32 n, i, want = clamp_t(u64, div_u64(share, SHARE_BYTES), 1, SWC_DMA_MAX_CHANS);
	struct swc_dma_job *job = NULL;
	struct limits lim;

	n = swc_dma_take(chan, want, node_of(&m->span[m->nsrc], m->done), &share);
	if (find_limits(&lim, chan, n, m->nsrc))
		job = make_job(&lim, m);
	if (!job) {
		for (i = 0; i < n; i++)
			drop_share(chan[i], share);
		return NULL;
	}
	job->wq = wq;
	deal_out(job, chan, n, share);
	return job;
}

/**
 * swc_dma_try() - copy by a certain channel, and wait for it; did it work?
 */
bool swc_dma_try(struct swc_dma_chan *ch, void *dst, void *src, u32 bytes)
{
	u32 step = min(bytes, ch->max_seg) & ~(BIT(ch->chan->device->copy_align) - 1), i;
	struct swc_dma_job *job = step ? job_alloc(DIV_ROUND_UP(bytes, step), 0) : NULL;
	struct waiter waiter = {};

	if (!job)
		return false;
	init_completion(&waiter.done);
	job->waiter = &waiter;
	job->wq = swc_wq;
	job->bytes = bytes;
	job->nsrc = 1;
	for (i = 0; i < job->npieces; i++) {
		job->piece[i].from[0] = src + i * step;
		job->piece[i].to = dst + i * step;
		job->piece[i].bytes = min(step, bytes - i * step);
	}
	kref_get(&ch->ref);
	atomic64_add(bytes, &ch->load);
	deal_out(job, &ch, 1, bytes);
	swc_dma_launch(job, NULL);
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
