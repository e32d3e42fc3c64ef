// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a DMA job: its pieces, one descriptor each, are assigned to channels in runs of neighbours
 * (batches) and mapped; launched, the channels carry out the batches while the CPU copies the pieces that
 * are too short; its end, a work item, unmaps the memory and calls back.
 *
 * A job can be assigned long before it is launched, but without descriptors: some drivers hold a lock from
 * preparing a descriptor until it is submitted, and some start with its submission. If anything goes wrong,
 * the CPU does the whole job again: no destination overlaps a source, so the sources are untouched.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "dma/engine.h"

#define CREATE_TRACE_POINTS
#include "dma/trace.h"

/* ------------------------------------------------------------------ memory */

/**
 * swc_dma_job_alloc() - a job with room for @npieces pieces for engines and @nshort for the CPU, but none yet
 * @wq: where it ends
 */
struct swc_dma_job *swc_dma_job_alloc(struct workqueue_struct *wq, u32 npieces, u32 nshort)
{
	struct swc_dma_job *job;

	job = kvzalloc(struct_size(job, piece, size_add(npieces, nshort)), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!job)
		return NULL;
	atomic_set(&job->held, 1);
	job->wq = wq;
	job->max_short = nshort;
	return job;
}

static void job_release(struct swc_dma_job *job)
{
	if (atomic_dec_and_test(&job->held))
		kvfree(job);
}

/* Until the launch the memory stays the CPU's: it is synchronized then. */
static dma_addr_t map(struct swc_dma_chan *ch, void *at, u32 bytes, enum dma_data_direction direction)
{
	dma_addr_t addr;

	if (swc_t_map_refused())
		return DMA_MAPPING_ERROR;
	addr = dma_map_single_attrs(ch->dev, at, bytes, direction, DMA_ATTR_SKIP_CPU_SYNC);
	return dma_mapping_error(ch->dev, addr) ? DMA_MAPPING_ERROR : addr;
}

static bool map_piece(const struct swc_dma_batch *b, struct swc_dma_piece *p)
{
	bool good = true;
	u32 i;

	for (i = 0; i < b->nsrc; i++) {
		p->src[i] = map(b->ch, p->from[i], p->bytes, DMA_TO_DEVICE);
		good &= p->src[i] != DMA_MAPPING_ERROR;
	}
	p->dst = map(b->ch, p->to, p->bytes, DMA_BIDIRECTIONAL);
	return good && p->dst != DMA_MAPPING_ERROR;
}

static void sync_piece(const struct swc_dma_batch *b, const struct swc_dma_piece *p)
{
	u32 i;

	for (i = 0; i < b->nsrc; i++)
		dma_sync_single_for_device(b->ch->dev, p->src[i], p->bytes, DMA_TO_DEVICE);
	dma_sync_single_for_device(b->ch->dev, p->dst, p->bytes, DMA_BIDIRECTIONAL);
}

static void unmap_piece(const struct swc_dma_batch *b, struct swc_dma_piece *p)
{
	/* The CPU may have written to memory that never was the device's. */
	unsigned long attrs = b->job->launched ? 0 : DMA_ATTR_SKIP_CPU_SYNC;
	u32 i;

	for (i = 0; i < b->nsrc; i++)
		if (p->src[i] != DMA_MAPPING_ERROR)
			dma_unmap_single_attrs(b->ch->dev, p->src[i], p->bytes, DMA_TO_DEVICE, attrs);
	if (p->dst != DMA_MAPPING_ERROR)
		dma_unmap_single_attrs(b->ch->dev, p->dst, p->bytes, DMA_BIDIRECTIONAL, attrs);
}

/* Undo swc_dma_job_assign(). */
static void unassign(struct swc_dma_job *job)
{
	u32 i, k;

	for (i = 0; i < job->nbatches; i++) {
		struct swc_dma_batch *b = &job->batch[i];

		for (k = 0; k < b->n; k++)
			unmap_piece(b, &b->piece[k]);
		swc_dma_chan_put(b->ch);
	}
}

/* ------------------------------------------------------------------ the end */

/* Work item: all batches have ended. */
static void job_end(struct work_struct *work)
{
	struct swc_dma_job *job = container_of(work, struct swc_dma_job, work);
	u32 i;

	for (i = 0; i < job->nbatches; i++)
		if (swc_dma_chan_judge(&job->batch[i]))
			swc_dma_fail(&job->failure, SWC_DMA_CHANNEL_ERROR);
	if (job->failure)
		trace_swc_dma_fallback(job->bytes, job->nbatches, job->failure);
	unassign(job);
	job->ended(job, !job->failure);
	job_release(job);
}

/* Atomic context. */
static void job_put(struct swc_dma_job *job)
{
	if (atomic_dec_and_test(&job->left))
		queue_work(job->wq, &job->work);
}

static void batch_ended(struct swc_dma_batch *b)
{
	if (READ_ONCE(b->failure))
		swc_dma_fail(&b->job->failure, b->failure);
	job_put(b->job);
}

static void batch_hold(struct swc_dma_batch *b)
{
	atomic_inc(&b->job->held);
}

static void batch_release(struct swc_dma_batch *b)
{
	job_release(b->job);
}

static const struct swc_dma_batch_ops batch_ops = {
	.ended = batch_ended,
	.hold = batch_hold,
	.release = batch_release,
};

/* ------------------------------------------------------------------ the way there */

/**
 * swc_dma_job_assign() - assign pieces to channels and map them
 * @chan: a reference and a reservation of @share bytes each, which pass to the job
 *
 * Neighbours go to the same channel, about as many bytes to each.
 */
void swc_dma_job_assign(struct swc_dma_job *job, struct swc_dma_chan **chan, u32 nchans, u64 share)
{
	struct swc_dma_piece *p = &job->piece[job->max_short], *end = p + job->npieces;
	u64 done = 0, total = 0;
	u32 i;

	INIT_WORK(&job->work, job_end);
	for (i = 0; i < job->npieces; i++)
		total += p[i].bytes;
	for (i = 0; i < nchans; i++) {
		struct swc_dma_batch *b = &job->batch[job->nbatches];

		b->ops = &batch_ops;
		b->job = job;
		b->ch = chan[i];
		b->share = share;
		b->nsrc = job->nsrc;
		b->piece = p;
		for (; p < end && done < div_u64(total * (i + 1), nchans); p++) {
			done += p->bytes;
			if (!map_piece(b, p))
				swc_dma_fail(&job->failure, SWC_DMA_NO_MAPPING);
		}
		b->n = p - b->piece;
		if (b->n) {
			job->nbatches++;
			continue;
		}
		swc_dma_chan_unreserve(chan[i], share);
		swc_dma_chan_put(chan[i]);
	}
}

static void launch_batch(struct swc_dma_job *job, struct swc_dma_batch *b)
{
	enum swc_dma_failure why;
	u32 i;

	for (i = 0; i < b->n && job->launched; i++)
		sync_piece(b, &b->piece[i]);
	/* What has failed is done again as a whole. */
	if (READ_ONCE(job->failure)) {
		swc_dma_chan_unreserve(b->ch, b->share);
		job_put(job);
		return;
	}
	why = swc_dma_chan_submit(b);
	if (why)
		swc_dma_fail(&job->failure, why);
}

static void copy_short(struct swc_dma_job *job)
{
	u32 i;

	for (i = 0; i < job->nshort; i++) {
		const struct swc_dma_piece *p = &job->piece[i];

		memcpy(p->to, p->from[0], p->bytes);
		cond_resched();
	}
	swc_stat_add(SWC_STAT_BYTES_COPIED, job->cpu_only);
}

/**
 * swc_dma_launch() - carry out a job that has been prepared
 *
 * It ends by the callback of swc_dma_init(), maybe before this returns. May sleep.
 */
void swc_dma_launch(struct swc_dma_job *job)
{
	u32 i;

	job->launched = !job->failure;
	atomic_set(&job->left, job->nbatches + 1);
	for (i = 0; i < job->nbatches; i++)
		launch_batch(job, &job->batch[i]);
	if (!READ_ONCE(job->failure))
		copy_short(job);
	job_put(job);
}

/**
 * swc_dma_cancel() - drop a job that has been prepared and is not going to be launched
 */
void swc_dma_cancel(struct swc_dma_job *job)
{
	u32 i;

	for (i = 0; i < job->nbatches; i++)
		swc_dma_chan_unreserve(job->batch[i].ch, job->batch[i].share);
	unassign(job);
	job_release(job);
}
