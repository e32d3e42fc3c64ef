// SPDX-License-Identifier: GPL-2.0-only
/*
 * Splits copies for engines: the bytes from where a copy stands up to the first that no engine can do, cut
 * into pieces for one descriptor each. Pieces so short that a descriptor costs more than it saves are the
 * CPU's.
 *
 * Copies are counted first, so that the caller can decide before a job is made.
 */
#include <linux/mm.h>

#include "dma/engine.h"

/* Pieces of a job, and at least so many of each copy; the rest of the copy is for another job. */
#define MAX_PIECES	1024
#define MIN_OF_EACH	128u
/* A channel's share is not cut into smaller pieces. */
#define SHARE_PIECE	(256u << 10)
/* A piece ends at a multiple of this, if it can. */
#define PIECE_UNIT	64u

/*
 * What all the channels of a job can do. Where engines do not see the CPU's caches, the CPU must not write
 * to a cache line (@line bytes) that an engine writes to.
 */
static bool find_limits(struct swc_dma_limits *lim, struct swc_dma_chan **chan, u32 nchans, u64 share,
			u32 nsrc, u32 min_piece)
{
	u32 i, unit, align = 0;

	lim->line = dma_get_cache_alignment();
	lim->max_seg = clamp_t(u64, share, SHARE_PIECE, U32_MAX);
	for (i = 0; i < nchans; i++) {
		const struct dma_device *device = chan[i]->chan->device;

		if (nsrc > 1 && nsrc > chan[i]->max_xor)
			return false;
		lim->max_seg = min(lim->max_seg, chan[i]->max_seg);
		align = max_t(u32, align, nsrc == 1 ? device->copy_align : device->xor_align);
	}
	lim->align = BIT(align);
	/* The next piece must be able to start where one ends, and no element may lie in two. */
	unit = lim->max_seg > PIECE_UNIT ? max(lim->align, PIECE_UNIT) : lim->align;
	unit = max(unit, lim->line);
	lim->max_seg = round_down(lim->max_seg, unit);
	/* Only copies have pieces for the CPU. */
	lim->min_piece = nsrc > 1 ? 0 : min_piece;
	return nchans && lim->max_seg;
}

/* Positions in the ranges of a copy: its sources, then one destination. */
struct cursors {
	const struct swc_extent *extent[SWC_DMA_MAX_SRC + 1];
	const struct swc_span *span[SWC_DMA_MAX_SRC + 1];
	u32 n;
};

static void cursors_init(struct cursors *cur, const struct swc_reduce_copy *m, u32 dst)
{
	u32 i;

	cur->n = m->nsrc + 1;
	for (i = 0; i < cur->n; i++) {
		cur->span[i] = &m->span[i < m->nsrc ? i : m->nsrc + dst];
		cur->extent[i] = swc_extents_find(cur->span[i]->extents, cur->span[i]->offset + m->done);
	}
}

static bool overlap(const void *a, const void *b, u32 bytes)
{
	return a < b + bytes && b < a + bytes;
}

/*
 * The longest stretch at @at, up to @most bytes, that is contiguous in all ranges. 0: not for engines,
 * because the destination overlaps a source, which the CPU would need after an error.
 */
static u32 next_stretch(struct cursors *cur, const struct swc_dma_limits *lim, u64 at, u64 most, void **ptr)
{
	u64 bytes = min_t(u64, most, lim->max_seg);
	u32 i;

	for (i = 0; i < cur->n; i++) {
		u64 offset = cur->span[i]->offset + at;

		while (cur->extent[i][1].offset <= offset)
			cur->extent[i]++;
		bytes = min(bytes, cur->extent[i][1].offset - offset);
		ptr[i] = cur->extent[i]->kaddr + (offset - cur->extent[i]->offset);
	}
	for (i = 0; i < cur->n - 1; i++)
		if (overlap(ptr[i], ptr[cur->n - 1], bytes))
			return 0;
	return bytes;
}

/* Bytes of a stretch that the device can do with its alignment. */
static u32 aligned_bytes(const struct swc_dma_limits *lim, void **ptr, u32 n, u32 bytes)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (!IS_ALIGNED((unsigned long)ptr[i], lim->align))
			return 0;
	return round_down(bytes, lim->align);
}

/* The first bytes of a stretch at @to that are either whole cache lines or a part of one, for the CPU. */
static u32 first_lines(const struct swc_dma_limits *lim, const void *to, u32 bytes, bool *is_part)
{
	u32 into = (unsigned long)to & (lim->line - 1);

	*is_part = into || bytes < lim->line;
	return *is_part ? min(bytes, lim->line - into) : round_down(bytes, lim->line);
}

/* Does a stretch continue a piece, so that one descriptor can do both? */
static bool continues(const struct swc_dma_limits *lim, const struct swc_dma_piece *p, void **ptr, u32 nsrc,
		      u32 bytes)
{
	u32 i;

	if (p->to + p->bytes != ptr[nsrc] || bytes > lim->max_seg - p->bytes)
		return false;
	for (i = 0; i < nsrc; i++)
		if (p->from[i] + p->bytes != ptr[i] || overlap(p->from[i], p->to, p->bytes + bytes))
			return false;
	return true;
}

static void add_piece(const struct swc_dma_limits *lim, struct swc_dma_job *job, void **ptr, u32 bytes,
		      bool is_short)
{
	u32 n = is_short ? job->nshort++ : job->max_short + job->npieces;
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
 * Split a copy to its destination @dst, from where it stands up to @end: add to @tally, and pieces to @job
 * unless that is NULL. Stops after @most pieces, or where engines cannot go on. Returns where that is.
 */
static u64 split_copy(const struct swc_dma_limits *lim, const struct swc_reduce_copy *m, u32 dst, u64 end,
		      u32 most, struct swc_dma_tally *tally, struct swc_dma_job *job)
{
	void *ptr[SWC_DMA_MAX_SRC + 1];
	struct cursors cur;
	u64 at = m->done;
	u32 n;

	cursors_init(&cur, m, dst);
	for (n = 0; at < end && n < most; n++) {
		u32 whole = next_stretch(&cur, lim, at, end - at, ptr);
		u32 able = aligned_bytes(lim, ptr, cur.n, whole), bytes;
		bool is_short;

		if (!able)
			break;
		bytes = first_lines(lim, ptr[m->nsrc], able, &is_short);
		is_short |= bytes < lim->min_piece;
		if (is_short && m->nsrc > 1)
			break;
		if (job)
			add_piece(lim, job, ptr, bytes, is_short);
		tally->n[is_short]++;
		tally->bytes[is_short] += bytes;
		at += bytes;
		/* The rest of the stretch is too short for the device. */
		if (bytes == able && able < whole)
			break;
	}
	return at;
}

/*
 * Bytes of a copy that a job can take: to all destinations as far as to the first that ends. None, if half
 * of them or more would be the CPU's.
 */
static u64 count_copy(struct swc_dma_split *split, const struct swc_reduce_copy *m, u32 most)
{
	struct swc_dma_tally first = {}, both = {};
	u64 end = m->bytes;
	u32 d;

	for (d = 0; d < m->ndst; d++)
		end = split_copy(&split->lim, m, d, end, max(most / m->ndst, 1u), &first, NULL);
	for (d = 0; d < m->ndst; d++)
		split_copy(&split->lim, m, d, end, MAX_PIECES, &both, NULL);
	if (!both.bytes[0] || both.bytes[0] < both.bytes[1])
		return 0;
	for (d = 0; d < 2; d++) {
		split->all.n[d] += both.n[d];
		split->all.bytes[d] += both.bytes[d];
	}
	/* Bytes for several destinations count once, as in the other counters. */
	split->cpu_only += div_u64(both.bytes[1], m->ndst);
	return end - m->done;
}

/**
 * swc_dma_split_count() - how much of copies can these channels take?
 * @split: filled in, for swc_dma_split_make()
 * @share: bytes for each channel; no piece is larger
 * @items: copies with equally many sources; @items->bytes is filled in
 * @n: how many
 * @min_piece: bytes below which the CPU copies a piece
 *
 * Return: bytes that engines would write.
 */
u64 swc_dma_split_count(struct swc_dma_split *split, struct swc_dma_chan **chan, u32 nchans, u64 share,
			struct swc_dma_item *items, u32 n, u32 min_piece)
{
	u32 i;

	*split = (struct swc_dma_split){};
	if (!find_limits(&split->lim, chan, nchans, share, items->copy->nsrc, min_piece))
		return 0;
	for (i = 0; i < n; i++)
		items[i].bytes = count_copy(split, items[i].copy, max(MAX_PIECES / n, MIN_OF_EACH));
	return split->all.bytes[0];
}

/**
 * swc_dma_split_make() - make a job of copies that swc_dma_split_count() has counted
 *
 * Return: NULL if there is no memory.
 */
struct swc_dma_job *swc_dma_split_make(const struct swc_dma_split *split, struct workqueue_struct *wq,
				       const struct swc_dma_item *items, u32 n)
{
	struct swc_dma_job *job = swc_dma_job_alloc(wq, split->all.n[0], split->all.n[1]);
	struct swc_dma_tally done = {};
	u32 i, d, max_dst = 0;

	if (!job)
		return NULL;
	job->nsrc = items->copy->nsrc;
	job->cpu_only = split->cpu_only;
	for (i = 0; i < n; i++) {
		if (!items[i].bytes)
			continue;
		job->bytes += items[i].bytes;
		job->item[job->nitems++] = items[i];
		max_dst = max(max_dst, items[i].copy->ndst);
	}
	/* Destination by destination, so that copies of neighbours in memory become one piece. */
	for (d = 0; d < max_dst; d++) {
		for (i = 0; i < job->nitems; i++) {
			const struct swc_reduce_copy *m = job->item[i].copy;

			if (d < m->ndst)
				split_copy(&split->lim, m, d, m->done + job->item[i].bytes, MAX_PIECES, &done,
					   job);
		}
	}
	return job;
}
