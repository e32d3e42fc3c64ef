// SPDX-License-Identifier: GPL-2.0-only
/*
 * Predictions from measured speeds: whether channels finish a job before CPUs do, from how many bytes on,
 * and how CPU and channel divide a copy. Pure arithmetic.
 *
 * A channel takes start + mib * MiB nanoseconds. Channels do not slow each other down until they reach what
 * all of them can do together. A CPU starts at once.
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sizes.h>

#include "dma/engine.h"

/* One channel for so many bytes. */
#define SHARE_BYTES	SZ_1M
/* Measurements are not exact: the predicted time of an engine is increased by one part in so many. */
#define MARGIN		8

/**
 * swc_dma_cost_nchans() - how many of @most channels to use for a job of @bytes
 */
u32 swc_dma_cost_nchans(u32 most, u64 bytes)
{
	return clamp_t(u64, div_u64(bytes, SHARE_BYTES), min(most, 1u), most);
}

/* Cost of each of @busy channels. */
static struct swc_dma_cost cost_each(const struct swc_dma_speeds *s, u32 busy)
{
	return (struct swc_dma_cost){
		.start = busy == 1 ? s->one.start : s->all.start,
		.mib = max(s->one.mib, s->all.mib * busy),
	};
}

/**
 * swc_dma_cost_is_faster() - would channels be faster than CPUs?
 * @s: measured speeds
 * @bytes: of the job, at most 2^46
 * @load: bytes that the busiest of its channels has to move until the job is done
 * @busy: channels with work, those of the job included
 * @workers: CPUs that would share the job otherwise
 */
bool swc_dma_cost_is_faster(const struct swc_dma_speeds *s, u64 bytes, u64 load, u32 busy, u32 workers)
{
	struct swc_dma_cost cost = cost_each(s, busy);
	u64 cpu = div_u64(mul_u64_u64_div_u64(s->cpu_mib, bytes, SZ_1M), workers);
	u64 dma = cost.start + mul_u64_u64_div_u64(cost.mib, load, SZ_1M);

	return dma + div_u64(dma, MARGIN) < cpu;
}

/**
 * swc_dma_cost_least() - bytes from which on idle channels are faster than one CPU; U64_MAX: never
 */
u64 swc_dma_cost_least(const struct swc_dma_speeds *s)
{
	u64 least = U64_MAX;
	u32 k;

	for (k = 1; k <= s->nchans; k++) {
		struct swc_dma_cost cost = cost_each(s, k);
		u64 mib = div_u64(cost.mib, k) + 1, start = cost.start;

		mib += div_u64(mib, MARGIN);
		start += div_u64(start, MARGIN);
		if (mib < s->cpu_mib)
			least = min(least, max(k == 1 ? 0 : (u64)k * SHARE_BYTES,
					       div64_u64(start * SZ_1M, s->cpu_mib - mib)));
	}
	return least;
}

/**
 * swc_dma_cost_share() - bytes of a copy of @bytes that a channel moves in the time in which a CPU copies the
 * rest
 */
u64 swc_dma_cost_share(const struct swc_dma_speeds *s, u64 bytes)
{
	/* start + mib * x = cpu_mib * (bytes - x), in ns and MiB. */
	u64 cpu = mul_u64_u64_div_u64(bytes, s->cpu_mib, SZ_1M);

	if (cpu <= s->one.start)
		return 0;
	return mul_u64_u64_div_u64(cpu - s->one.start, SZ_1M, s->cpu_mib + s->one.mib);
}

/**
 * swc_dma_cost_least_shared() - bytes from which on the channel's share of a copy is at least @least
 */
u64 swc_dma_cost_least_shared(const struct swc_dma_speeds *s, u64 least)
{
	return div64_u64(s->one.start * SZ_1M + (s->cpu_mib + s->one.mib) * least, s->cpu_mib);
}
