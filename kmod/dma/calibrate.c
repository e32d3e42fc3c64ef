// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measures channels beside a CPU: copies some hundred KiB with one channel, with all of them and with
 * memcpy(), a few times each; the fastest counts. cost.c predicts from the result.
 */
#include <linux/completion.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/math64.h>
#include <linux/string.h>

#include "dma/engine.h"

#define PROBE_BYTES	(256u << 10)
/* All channels together copy at least so much each; and one part of it, to tell the start from the pace. */
#define PROBE_EACH	(64u << 10)
#define PROBE_PART	16
#define PROBE_TIMES	3

struct probe {
	struct completion ended;
	bool good;
};

/* Callback of a job. */
static void probe_ended(struct swc_dma_job *job, bool good)
{
	struct probe *probe = job->owner;

	probe->good = good;
	complete(&probe->ended);
}

/**
 * swc_dma_copy_sync() - copy with given channels, an equal part each, and wait
 *
 * Return: false if it failed.
 */
bool swc_dma_copy_sync(struct swc_dma_chan **chan, u32 nchans, void *dst, void *src, u32 bytes)
{
	u32 unit = 1, step = U32_MAX, share, at, end, i;
	struct swc_dma_job *job;
	struct probe probe = {};

	for (i = 0; i < nchans; i++) {
		unit = max(unit, 1u << chan[i]->chan->device->copy_align);
		step = min(step, chan[i]->max_seg);
	}
	share = round_up(DIV_ROUND_UP(bytes, nchans), unit);
	step = min(round_down(step, unit), share);
	job = step ? swc_dma_job_alloc(swc_wq, nchans * DIV_ROUND_UP(share, step), 0) : NULL;
	if (!job)
		return false;
	init_completion(&probe.ended);
	job->ended = probe_ended;
	job->owner = &probe;
	job->bytes = bytes;
	job->nsrc = 1;
	for (at = 0, end = 0; at < bytes; at += job->piece[job->npieces++].bytes) {
		struct swc_dma_piece *p = &job->piece[job->npieces];

		/* One channel's part ends here, the next one's begins. */
		if (at == end)
			end = min(end + share, bytes);
		p->from[0] = src + at;
		p->to = dst + at;
		p->bytes = min(step, end - at);
	}
	for (i = 0; i < nchans; i++) {
		swc_dma_chan_get(chan[i]);
		swc_dma_chan_reserve(chan[i], share);
	}
	swc_dma_job_assign(job, chan, nchans, share);
	swc_dma_launch(job);
	wait_for_completion(&probe.ended);
	return probe.good;
}

static u64 time_cpu(void *dst, void *src)
{
	u64 best = U64_MAX, start;
	int i;

	for (i = 0; i < PROBE_TIMES; i++) {
		start = swc_dma_clock_ns();
		memcpy(dst, src, PROBE_BYTES);
		best = min(best, swc_dma_clock_ns() - start);
	}
	return best;
}

/* From preparing a job to its end, as an operation would see it; 0: it failed. */
static u64 time_dma(struct swc_dma_chan **chan, u32 nchans, void *dst, void *src, u32 bytes)
{
	u64 best = U64_MAX, start;
	int i;

	for (i = 0; i < PROBE_TIMES; i++) {
		start = swc_dma_clock_ns();
		if (!swc_dma_copy_sync(chan, nchans, dst, src, bytes))
			return 0;
		best = min(best, swc_dma_clock_ns() - start);
	}
	return best;
}

/*
 * Return: 0; -EIO if the channels do not work; -ERANGE if the times make no sense (coarse clock, busy
 * machine).
 */
static int measure_cost(struct swc_dma_cost *cost, struct swc_dma_chan **chan, u32 nchans, void *dst,
			void *src, u32 bytes)
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
	cost->mib = div_u64((large - small) * SZ_1M, bytes - part);
	cost->start = small - min(small, mul_u64_u64_div_u64(cost->mib, part, SZ_1M));
	return 0;
}

/**
 * swc_dma_calibrate() - measure a CPU, the first channel, and all channels together
 *
 * If all together work, but cannot be measured, they count as no faster than one.
 *
 * Return: how many of the channels, from the first on, can be used: 0 if the first one does not work or
 * cannot be measured, 1 if not all of the others work.
 */
u32 swc_dma_calibrate(struct swc_dma_chan **chan, u32 nchans, struct swc_dma_speeds *s)
{
	u32 bytes = max(PROBE_BYTES, nchans * PROBE_EACH), order = get_order(bytes);
	unsigned long a = __get_free_pages(GFP_KERNEL | __GFP_NOWARN, order);
	unsigned long b = __get_free_pages(GFP_KERNEL | __GFP_NOWARN, order);
	void *src = (void *)a, *dst = (void *)b;
	u32 usable = 0;
	int ret = 0;

	if (!a || !b)
		goto out;
	memset(src, 0x5a, bytes);
	s->cpu_mib = time_cpu(dst, src) * (SZ_1M / PROBE_BYTES);
	if (!s->cpu_mib || measure_cost(&s->one, chan, 1, dst, src, PROBE_BYTES))
		goto out;
	if (nchans > 1)
		ret = measure_cost(&s->all, chan, nchans, dst, src, bytes);
	if (nchans == 1 || ret)
		s->all = s->one;
	usable = ret == -EIO ? 1 : nchans;
	s->nchans = usable;
out:
	free_pages(a, order);
	free_pages(b, order);
	return usable;
}
