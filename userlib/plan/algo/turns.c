// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Turns that are aligned between channels. Steps that are glued together are one unit. One order of
 * units is the same for all channels: the dimensions in turn. Runs of units with the same distances
 * may be permuted, and each channel begins them with another dimension.
 */
#include "plan/algo/turns.h"

struct unit {
	uint32_t dim, first, n;
};

/* The units of all dimensions in turn. Returns their number. */
static uint32_t find_units(const struct swc_turn_hops *dims, uint32_t ndims, struct unit *unit)
{
	uint32_t done[SWC_TOPO_DIMS] = { 0 }, n = 0;
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t i = 0; i < ndims; i++) {
			const struct swc_turn_hops *d = &dims[i];
			uint32_t first = done[i];

			if (first == d->nsteps)
				continue;
			while (++done[i] < d->nsteps && d->glued[done[i]])
				;
			unit[n++] = (struct unit){ i, first, done[i] - first };
			more = true;
		}
	}
	return n;
}

static bool alike(const struct swc_turn_hops *dims, const struct unit *a, const struct unit *b)
{
	for (uint32_t i = 0; a->n == b->n && i < a->n; i++)
		if (dims[a->dim].hops[a->first + i] != dims[b->dim].hops[b->first + i])
			return false;
	return a->n == b->n;
}

/* Permute a run of units that are alike: round robin from dimension @dim on. */
static void permute(struct unit *unit, uint32_t n, uint32_t ndims, uint32_t dim)
{
	uint32_t left[SWC_TOPO_DIMS] = { 0 }, next[SWC_TOPO_DIMS] = { 0 }, size = unit->n;

	for (uint32_t i = n; i-- > 0;) {
		left[unit[i].dim]++;
		next[unit[i].dim] = unit[i].first;
	}
	for (uint32_t i = 0; i < n; dim++) {
		uint32_t d = dim % ndims;

		if (!left[d])
			continue;
		left[d]--;
		unit[i++] = (struct unit){ d, next[d], size };
		next[d] += size;
	}
}

uint32_t swc_turns_align(const struct swc_turn_hops *dims, uint32_t ndims, uint32_t chan,
			 struct swc_turn *turn)
{
	struct unit unit[SWC_TOPO_DIMS * SWC_BUTTERFLY_STEPS];
	uint32_t n = find_units(dims, ndims, unit), nturns = 0, end;

	for (uint32_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && alike(dims, &unit[i], &unit[end]);)
			end++;
		permute(unit + i, end - i, ndims, chan % ndims);
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < unit[i].n; k++)
			turn[nturns++] = (struct swc_turn){ unit[i].dim, unit[i].first + k };
	return nturns;
}
