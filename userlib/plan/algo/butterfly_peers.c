// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The partners in butterflies; see butterfly.c.
 */
#include "plan/algo/butterfly_peers.h"

uint32_t swc_butterfly_turns(const uint32_t *nsteps, uint32_t ndims, uint32_t port,
			     struct swc_turn *turn)
{
	uint32_t done[SWC_TOPO_DIMS] = { 0 }, total = 0;

	for (uint32_t i = 0; i < ndims; i++)
		total += nsteps[i];
	for (uint32_t s = 0, i = port % ndims; s < total; i = (i + 1) % ndims)
		if (done[i] < nsteps[i])
			turn[s++] = (struct swc_turn){ i, done[i]++ };
	return total;
}

uint32_t swc_swing_peer(uint32_t m, uint32_t x, uint32_t step, bool mirror)
{
	/* 1 - 2 + 4 - 8 ..., which is less than m but for steps that m has not; a division takes long. */
	uint64_t hop = (((uint64_t)2 << step) + 1 - 2 * (step % 2)) / 3;
	bool down = step % 2 != (x % 2 != mirror);

	hop = hop < m ? hop : hop % m;
	hop = down ? x + m - hop : x + hop;
	return (uint32_t)(hop < m ? hop : hop % m);
}

uint32_t swc_doubling_peer(uint32_t m, uint32_t x, uint32_t step, bool mirror)
{
	bool back = (x >> step & 1) != mirror;

	return (x + (back ? m - (1u << step) : 1u << step)) % m;
}

/*
 * In steps that swap whole ranges, mirrored partners as above would not keep one value per group,
 * and the order of additions would vary. Shifting everything by a third of the ring keeps it, and
 * is next best: at most 4/3 times the least load of a link.
 */
static uint32_t shifted_doubling_peer(uint32_t m, uint32_t x, uint32_t step)
{
	uint32_t by = m / 3;

	return (swc_doubling_peer(m, (x + m - by) % m, step, false) + by) % m;
}

uint32_t swc_range_peer(bool swing, bool mirror, bool swaps, uint32_t m, uint32_t x, uint32_t step)
{
	if (swing)
		return swc_swing_peer(m, x, step, mirror);
	return mirror && swaps ? shifted_doubling_peer(m, x, step)
			       : swc_doubling_peer(m, x, step, mirror);
}

/* Ranges, with so many steps that halve them. */
static void take_ranges(struct swc_butterfly *k, uint32_t scatter)
{
	k->in_ranges = true;
	k->scatter = scatter;
}

bool swc_butterfly_find(struct swc_butterfly *k, const struct swc_plan_args *a,
			const struct swc_topo *topo)
{
	bool powers = true, given = a->param != SWC_PARAM_DEFAULT;

	*k = (struct swc_butterfly){ .swing = true };
	for (uint32_t i = 0; i < topo->ndims; i++) {
		powers &= !(topo->dim[i] & (topo->dim[i] - 1));
		for (uint32_t d = topo->dim[i]; d > 1; d /= 2)
			k->steps++;
	}
	switch (a->algo) {
	case SWC_ALGO_RECDOUB:
	case SWC_ALGO_RABENSEIFNER:
		k->swing = false;
		k->one_port = true;
		if (a->coll == SWC_ALLREDUCE)
			take_ranges(k, a->algo == SWC_ALGO_RECDOUB ? 0 : k->steps);
		return true;
	case SWC_ALGO_MIRRORED:
		k->swing = false;
		if (a->coll == SWC_ALLREDUCE)
			take_ranges(k, given ? (uint32_t)a->param : k->steps);
		return true;
	case SWC_ALGO_SWING_L:
		take_ranges(k, 0);
		return true;
	case SWC_ALGO_SWING_H:
		take_ranges(k, given ? (uint32_t)a->param : k->steps / 2);
		return true;
	case SWC_ALGO_SWING_B:
		if (a->coll == SWC_ALLREDUCE && powers)
			take_ranges(k, k->steps);
		return true;
	default:
		return a->algo == SWC_ALGO_BINE_SAG;
	}
}

bool swc_range_order_varies(const struct swc_butterfly *k, const struct swc_turn *turn)
{
	uint32_t swaps[SWC_TOPO_DIMS] = { 0 };

	for (uint32_t s = k->scatter; k->swing && s < k->steps; s++)
		if (++swaps[turn[s].dim] > 2)
			return true;
	return false;
}

uint32_t swc_butterfly_member(const struct swc_builder *b, uint32_t dim, uint32_t from, uint32_t to)
{
	uint32_t stride = 1;

	for (uint32_t i = dim + 1; i < b->topo->ndims; i++)
		stride *= b->topo->dim[i];
	return b->me + (to - from) * stride;
}
