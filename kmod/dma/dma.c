// SPDX-License-Identifier: GPL-2.0-only
/*
 * The face of the DMA engines, dma.h: decides which copies they get and prepares jobs.
 *
 * In mode "auto" engines get what they are predicted to finish sooner, with the work they have already,
 * than the CPUs that would do it otherwise. In mode "share", which prefers an early end to an idle CPU, CPU
 * and engine each do a part of a copy from the size on from which that is faster.
 */
#include <linux/mm.h>

#include "dma/engine.h"

/* Shorter pieces cost more than they save, except in mode "always". */
#define MIN_PIECE	(16u << 10)

static swc_dma_done done_fn;

/* ------------------------------------------------------------------ deciding */

/* Is a copy of a kind that engines can do? */
static bool is_for_engines(const struct swc_reduce_copy *m)
{
	return !m->div && (m->nsrc == 1 || (m->redop == SWC_BXOR && m->nsrc <= SWC_DMA_MAX_SRC));
}

/* Would idle channels finish @bytes before @workers CPUs? */
static bool pays_idle(const struct swc_dma_speeds *s, u64 bytes, u32 workers)
{
	u32 n = swc_dma_cost_nchans(s->nchans, bytes);

	return n && swc_dma_cost_is_faster(s, bytes, div_u64(bytes, n), n, workers);
}

/**
 * swc_dma_demand() - this copy is about to be done: acquire channels in the background if it is for engines
 */
void swc_dma_demand(const struct swc_reduce_copy *m)
{
	if (is_for_engines(m))
		swc_dma_pool_demand();
}

/**
 * swc_dma_wants() - is a copy of a kind and size for engines, if they are idle?
 * @m: the copy; its ranges need no place in memory yet
 * @copies: how many like it would make one job
 * @workers: CPUs that would share them otherwise
 */
bool swc_dma_wants(const struct swc_reduce_copy *m, u32 copies, u32 workers)
{
	u64 bytes = min_t(u64, m->bytes - m->done, SWC_DMA_MAX_JUDGED) * m->ndst;
	u64 all = min_t(u64, bytes * copies, SWC_DMA_MAX_JUDGED);
	u64 least = swc_dma_pool_least();
	struct swc_dma_speeds s;

	if (!is_for_engines(m))
		return false;
	if (swc_dma_pool_mode() != SWC_DMA_AUTO)
		return m->bytes - m->done >= least;
	if (max(bytes, all) < least)
		return false;
	s = swc_dma_pool_speeds();
	/* The other copies may be smaller, or not be there. */
	return s.cpu_mib && (pays_idle(&s, min(bytes, SWC_DMA_MAX_JUDGED), 1) || pays_idle(&s, all, workers));
}

/**
 * swc_dma_share() - how many of @bytes engines should copy: all, unless the CPU is to help
 */
u64 swc_dma_share(u64 bytes)
{
	struct swc_dma_speeds s;

	if (swc_dma_pool_mode() != SWC_DMA_SHARE)
		return bytes;
	s = swc_dma_pool_speeds();
	return s.cpu_mib ? swc_dma_cost_share(&s, bytes) : 0;
}

/* Are the channels chosen for a job worth it, with the work they have already? */
static bool pays(const struct swc_dma_queue *q, u32 nchans, u64 bytes, u32 workers)
{
	struct swc_dma_speeds s;

	switch (swc_dma_pool_mode()) {
	case SWC_DMA_NEVER:
		return false;
	case SWC_DMA_ALWAYS:
		return true;
	case SWC_DMA_SHARE:
		return bytes >= SWC_DMA_MIN_SHARE;
	default:
		s = swc_dma_pool_speeds();
		return s.cpu_mib && swc_dma_cost_is_faster(&s, bytes, q->front + div_u64(bytes, nchans),
							   q->busy, workers);
	}
}

/* ------------------------------------------------------------------ jobs */

/* Callback of a job, whose memory is the CPU's again. */
static void job_ended(struct swc_dma_job *job, bool good)
{
	u32 i;

	swc_stat_inc(good ? SWC_STAT_DMA_JOBS : SWC_STAT_DMA_FALLBACKS);
	if (good)
		swc_stat_add(SWC_STAT_DMA_BYTES, job->bytes - job->cpu_only);
	for (i = 0; i < job->nitems && !good; i++)
		job->item[i].bytes = 0;
	done_fn(job->item, job->nitems);
}

/**
 * swc_dma_node() - NUMA node of the memory that a copy writes to next
 */
int swc_dma_node(const struct swc_reduce_copy *m)
{
	const struct swc_span *span = &m->span[m->nsrc];
	const struct swc_extent *e = swc_extents_find(span->extents, span->offset + m->done);

	return page_to_nid(virt_to_page(e->kaddr + (span->offset + m->done - e->offset)));
}

static struct swc_dma_job *make_job(struct swc_dma_chan **chan, u32 nchans, u64 share,
				    const struct swc_dma_queue *q, struct workqueue_struct *wq,
				    struct swc_dma_item *items, u32 n, u32 workers)
{
	u32 min_piece = swc_dma_pool_mode() == SWC_DMA_ALWAYS ? 0 : MIN_PIECE;
	struct swc_dma_split split;
	u64 bytes = swc_dma_split_count(&split, chan, nchans, share, items, n, min_piece);

	return bytes && pays(q, nchans, bytes, workers) ? swc_dma_split_make(&split, wq, items, n) : NULL;
}

/**
 * swc_dma_prepare() - prepare copies, from where they stand, for engines
 * @wq: where the job ends
 * @items: the copies, with equally many sources and destinations on the same NUMA node; @items->bytes is
 *	filled in. Their memory must stay until the job has ended.
 * @n: how many, at most SWC_DMA_MAX_ITEMS
 * @workers: CPUs that would share the copies otherwise
 *
 * Return: a job for swc_dma_launch() or swc_dma_cancel(); NULL if engines take nothing.
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
		share += (items[i].copy->bytes - items[i].copy->done) * items[i].copy->ndst;
	nchans = swc_dma_cost_nchans(SWC_DMA_MAX_CHANS, share);
	nchans = swc_dma_pool_choose(chan, nchans, swc_dma_node(items->copy), &share, &q);
	job = make_job(chan, nchans, share, &q, wq, items, n, workers);
	if (!job) {
		for (i = 0; i < nchans; i++) {
			swc_dma_chan_unreserve(chan[i], share);
			swc_dma_chan_put(chan[i]);
		}
		return NULL;
	}
	swc_dma_pool_touch();
	job->ended = job_ended;
	swc_dma_job_assign(job, chan, nchans, share);
	return job;
}

/* ------------------------------------------------------------------ module */

/**
 * swc_dma_init() - engines may be used
 * @done: called when a job has ended
 */
void swc_dma_init(swc_dma_done done)
{
	done_fn = done;
}

/**
 * swc_dma_exit() - release all channels; no operation is left, nor will there be one
 */
void swc_dma_exit(void)
{
	swc_dma_pool_exit();
}
