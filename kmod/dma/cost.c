// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is an engine worth it? What one channel needs, and all of them together, is measured once beside a CPU.
 */
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/string.h>

#include "dma/engine.h"

#define PROBE_BYTES	(256u << 10)
/* All channels together copy at least so much each; and a part of that, to tell the start from the pace. */
#define PROBE_EACH	(64u << 10)
#define PROBE_PART	16
#define PROBE_TIMES	3
/* An engine must promise to be faster by one in so many: what was measured is not exact. */
#define MARGIN		8

/* ------------------------------------------------------------------ measuring */

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
static u64 time_dma(struct swc_dma_chan **chan, u32 nchans, void *dst, void *src, u32 bytes)
{
	u64 best = U64_MAX, start;
	int i;

	for (i = 0; i < PROBE_TIMES; i++) {
		start = ktime_get_ns();
		if (!swc_dma_try(chan, nchans, dst, src, bytes))
			return 0;
		best = min(best, ktime_get_ns() - start);
	}
	return best;
}

/* 0; -EIO if they do not work; -ERANGE if nothing can be told, on a coarse clock or a busy machine. */
static int pace_of(struct swc_dma_pace *pace, struct swc_dma_chan **chan, u32 nchans, void *dst, void *src,
		   u32 bytes)
{
	u32 part = bytes / PROBE_PART;
	u64 small, large;

	memset(dst, 0, bytes);
	small = time_dma(chan, nchans, dst, src, part);
	large = small ? time_dma(chan, nchans, dst, src, bytes) : 0;
	if (!large || memcmp(src, dst, bytes))
		return -EIO;
	if (large <= small)
		return -ERANGE;
	pace->mib = div_u64((large - small) * SZ_1M, bytes - part);
	pace->start = small - min(small, mul_u64_u64_div_u64(pace->mib, part, SZ_1M));
	return 0;
}

/**
 * swc_dma_measure() - does the first channel work, and how fast are it and all of them?
 *
 * Where all together cannot be measured, they count as no faster than one. Takes as long as some hundred KiB
 * do.
 */
bool swc_dma_measure(struct swc_dma_chan **chan, u32 nchans, struct swc_dma_speeds *s)
{
	u32 bytes = max(PROBE_BYTES, nchans * PROBE_EACH), order = get_order(bytes);
	unsigned long a = __get_free_pages(GFP_KERNEL | __GFP_NOWARN, order);
	unsigned long b = __get_free_pages(GFP_KERNEL | __GFP_NOWARN, order);
	void *src = (void *)a, *dst = (void *)b;
	bool good = false;

	if (!a || !b)
		goto out;
	memset(src, 0x5a, bytes);
	s->cpu_mib = time_cpu(dst, src) * (SZ_1M / PROBE_BYTES);
	good = s->cpu_mib && !pace_of(&s->one, chan, 1, dst, src, PROBE_BYTES);
	s->nchans = nchans;
	if (!good || nchans == 1 || pace_of(&s->all, chan, nchans, dst, src, bytes))
		s->all = s->one;
out:
	free_pages(a, order);
	free_pages(b, order);
	return good;
}

/* ------------------------------------------------------------------ predicting */

/**
 * swc_dma_nchans() - of so many channels, how many to use for a job
 */
u32 swc_dma_nchans(u32 most, u64 bytes)
{
	return clamp_t(u64, div_u64(bytes, SWC_DMA_SHARE_BYTES), min(most, 1u), most);
}

/* What each of @busy channels takes: they do not disturb each other up to what all can do together. */
static struct swc_dma_pace pace_each(const struct swc_dma_speeds *s, u32 busy)
{
	return (struct swc_dma_pace){
		.start = busy == 1 ? s->one.start : s->all.start,
		.mib = max(s->one.mib, s->all.mib * busy),
	};
}

/**
 * swc_dma_is_faster() - would channels be faster than CPUs?
 * @s: what was measured
 * @bytes: of the job, at most 2^46
 * @load: what the busiest of its channels has to move, before the job is done
 * @busy: channels that are
 * @workers: CPUs that would share the job otherwise
 */
bool swc_dma_is_faster(const struct swc_dma_speeds *s, u64 bytes, u64 load, u32 busy, u32 workers)
{
	struct swc_dma_pace pace = pace_each(s, busy);
	u64 cpu = div_u64(mul_u64_u64_div_u64(s->cpu_mib, bytes, SZ_1M), workers);
	u64 dma = pace.start + mul_u64_u64_div_u64(pace.mib, load, SZ_1M);

	return dma + div_u64(dma, MARGIN) < cpu;
}

/**
 * swc_dma_least_of() - bytes from which on channels that are free are faster than one CPU; U64_MAX: never
 */
u64 swc_dma_least_of(const struct swc_dma_speeds *s)
{
	u64 least = U64_MAX;
	u32 k;

	for (k = 1; k <= s->nchans; k++) {
		struct swc_dma_pace pace = pace_each(s, k);
		u64 mib = div_u64(pace.mib, k) + 1, start = pace.start;

		mib += div_u64(mib, MARGIN);
		start += div_u64(start, MARGIN);
		if (mib < s->cpu_mib)
			least = min(least, max(k == 1 ? 0 : (u64)k * SWC_DMA_SHARE_BYTES,
					       div64_u64(start * SZ_1M, s->cpu_mib - mib)));
	}
	return least;
}

/**
 * swc_dma_part() - of so many bytes, what a channel should move so that it ends when a CPU does with the rest
 */
u64 swc_dma_part(const struct swc_dma_speeds *s, u64 bytes)
{
	/* start + mib * x = cpu_mib * (bytes - x), in ns and MiB. */
	u64 cpu = mul_u64_u64_div_u64(bytes, s->cpu_mib, SZ_1M);

	if (cpu <= s->one.start)
		return 0;
	return mul_u64_u64_div_u64(cpu - s->one.start, SZ_1M, s->cpu_mib + s->one.mib);
}

/**
 * swc_dma_least_shared() - bytes from which on a channel's part of them is no less than @least
 */
u64 swc_dma_least_shared(const struct swc_dma_speeds *s, u64 least)
{
	return div64_u64(s->one.start * SZ_1M + (s->cpu_mib + s->one.mib) * least, s->cpu_mib);
}
