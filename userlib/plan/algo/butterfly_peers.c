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
	/* 1 - 2 + 4 - 8 ... */
	int64_t hop = (1 + (step % 2 ? -1 : 1) * ((int64_t)2 << step)) / 3;

	if (x % 2 != mirror)
		hop = -hop;
	return (uint32_t)((x + hop % m + m) % m);
}

uint32_t swc_doubling_peer(uint32_t m, uint32_t x, uint32_t step, bool mirror)
{
	bool back = (x >> step & 1) != mirror;

	return (x + (back ? m - (1u << step) : 1u << step)) % m;
}

uint32_t swc_butterfly_member(const struct swc_builder *b, uint32_t dim, uint32_t from, uint32_t to)
{
	uint32_t stride = 1;

	for (uint32_t i = dim + 1; i < b->topo->ndims; i++)
		stride *= b->topo->dim[i];
	return b->me + (to - from) * stride;
}
