// SPDX-License-Identifier: GPL-2.0-only
/*
 * What engines can take of moves: the bytes from where a move stands up to the first that no engine can do,
 * cut into pieces for one descriptor each. What is so short that a descriptor costs more than it brings, the
 * CPU copies.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "mem/region.h"
#include "dma/engine.h"

/* Pieces of a job, and at least so many of a move; what is left of its moves is another one. */
#define MAX_PIECES	1024
#define MAX_OF_MANY	128u
/* Shorter stretches cost more than they bring, unless engines are forced. */
#define MIN_STRETCH	(16u << 10)
/* A share is not cut into smaller pieces. */
#define PIECE_LEAST	(256u << 10)
/* A piece ends at a multiple of this, if it can. */
#define PIECE_UNIT	64u

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

static bool find_limits(struct limits *lim, struct swc_dma_chan **chan, u32 nchans, u64 share,
			u32 nsrc)
{
	u32 i, unit, align = 0;

	lim->line = dma_get_cache_alignment();
	lim->max_seg = clamp_t(u64, share, PIECE_LEAST, U32_MAX);
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

/* Do ranges of so many bytes overlap? */
static bool meet(const void *a, const void *b, u32 bytes)
{
	return a < b + bytes && b < a + bytes;
}

/* Is this the continuation of a piece, as one descriptor can do it? */
static bool continues(const struct limits *lim, const struct swc_dma_piece *p, void **ptr, u32 nsrc,
		      u32 bytes)
{
	u32 i;

	if (p->to + p->bytes != ptr[nsrc] || bytes > lim->max_seg - p->bytes)
		return false;
	for (i = 0; i < nsrc; i++)
		if (p->from[i] + p->bytes != ptr[i] || meet(p->from[i], p->to, p->bytes + bytes))
			return false;
	return true;
}

static void add_piece(const struct limits *lim, struct swc_dma_job *job, void **ptr, u32 bytes, bool is_short)
{
	u32 n = is_short ? job->nshort++ : job->most_short + job->npieces;
	struct swc_dma_piece *p = &job->piece[n];

	if (!is_short && job->npieces && continues(lim, p - 1, ptr, job->nsrc, bytes)) {
		p[-1].bytes += bytes;
		return;
	}
	job->npieces += !is_short;
	memcpy(p->from, ptr, job->nsrc * sizeof(*ptr));
	p->to = ptr[job->nsrc];
	p->bytes = bytes;
}

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
		if (job)
			add_piece(lim, job, ptr, bytes, is_short);
		tally->n[is_short]++;
		tally->bytes[is_short] += bytes;
		at += bytes;
		/* A piece that is too short for the device ends it. */
		if (bytes == able && able < whole)
			break;
	}
	return at;
}

/**
 * swc_dma_job_alloc() - a job with room for so many pieces, and has none yet
 */
struct swc_dma_job *swc_dma_job_alloc(u32 npieces, u32 nshort)
{
	struct swc_dma_job *job;

	job = kvzalloc(struct_size(job, piece, npieces + nshort), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!job)
		return NULL;
	atomic_set(&job->held, 1);
	job->most_short = nshort;
	return job;
}

/*
 * What engines take of a move; counts its pieces, and what the CPU copies of it. None, if that would be the
 * half of it.
 */
static u64 cut_one(const struct limits *lim, const struct swc_move *m, u32 most, struct tally *all,
		   u64 *by_cpu)
{
	struct tally first = {}, cut = {};
	u64 end = m->bytes;
	u32 d;

	for (d = 0; d < m->ndst; d++)
		end = cut_move(lim, m, d, end, max(most / m->ndst, 1u), &first, NULL);
	for (d = 0; d < m->ndst; d++)
		cut_move(lim, m, d, end, MAX_PIECES, &cut, NULL);
	if (!cut.bytes[0] || cut.bytes[0] < cut.bytes[1])
		return 0;
	for (d = 0; d < 2; d++) {
		all->n[d] += cut.n[d];
		all->bytes[d] += cut.bytes[d];
	}
	/* As it is counted elsewhere: what goes to several places counts once. */
	*by_cpu += div_u64(cut.bytes[1], m->ndst);
	return end - m->done;
}

/**
 * swc_dma_cut() - a job of what channels can take of moves, or NULL
 * @share: bytes for each of them; no piece is larger
 * @q: what they have to do
 * @items: moves with equally many sources; what is taken of each is filled in
 * @n: how many
 * @workers: CPUs that would share them otherwise
 */
struct swc_dma_job *swc_dma_cut(struct swc_dma_chan **chan, u32 nchans, u64 share,
				const struct swc_dma_queue *q, struct swc_dma_item *items, u32 n,
				u32 workers)
{
	struct tally all = {}, done = {};
	u32 i, d, most_dst = 0;
	struct swc_dma_job *job;
	struct limits lim;
	u64 by_cpu = 0;

	if (!find_limits(&lim, chan, nchans, share, items->move->nsrc))
		return NULL;
	for (i = 0; i < n; i++)
		items[i].bytes = cut_one(&lim, items[i].move, max(MAX_PIECES / n, MAX_OF_MANY), &all,
					 &by_cpu);
	if (!all.bytes[0] || !swc_dma_pays(q, nchans, all.bytes[0], workers))
		return NULL;
	job = swc_dma_job_alloc(all.n[0], all.n[1]);
	if (!job)
		return NULL;
	job->nsrc = items->move->nsrc;
	job->by_cpu = by_cpu;
	for (i = 0; i < n; i++) {
		if (!items[i].bytes)
			continue;
		job->bytes += items[i].bytes;
		job->item[job->nitems++] = items[i];
		most_dst = max(most_dst, items[i].move->ndst);
	}
	/* Moves of neighbours in memory become one piece where they go to the same place. */
	for (d = 0; d < most_dst; d++) {
		for (i = 0; i < job->nitems; i++) {
			const struct swc_move *m = job->item[i].move;

			if (d < m->ndst)
				cut_move(&lim, m, d, m->done + job->item[i].bytes, MAX_PIECES, &done, job);
		}
	}
	return job;
}
