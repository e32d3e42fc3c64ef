// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Routes on topologies: which links a message crosses on each path, which path a channel's messages take, and how
 * far nodes are apart. Pure; called for each message of a model.
 */
#include "plan/topo.h"

uint32_t swc_topo_diameter(const struct swc_topo *t)
{
	uint32_t hops = 0;

	if (t->kind == SWC_TOPO_SWITCH)
		return t->nnodes > 1;
	for (uint32_t i = 0; i < t->ndims; i++)
		hops += t->kind == SWC_TOPO_MESH ? t->dim[i] - 1 : t->dim[i] / 2;
	return hops;
}

/* From one coordinate to another one, up where both ways round are equally long. *tie: they are. */
static struct swc_topo_leg leg_of(const struct swc_topo *t, uint32_t dim, uint32_t x, uint32_t y,
				  bool *tie)
{
	uint32_t d = t->dim[dim], up = y < x ? y + d - x : y - x;
	struct swc_topo_leg leg = { .dim = (uint8_t)dim };

	leg.down = t->kind == SWC_TOPO_MESH ? y < x : up > d - up;
	leg.hops = leg.down ? d - up : up;
	*tie = t->kind == SWC_TOPO_TORUS && 2 * up == d;
	return leg;
}

/* v / d, and what is left. Most sizes are powers of two or more than v, and a division takes long. */
static uint32_t divide(uint32_t v, uint32_t d, uint32_t *left)
{
	if (v < d) {
		*left = v;
		return 0;
	}
	if (d & (d - 1)) {
		*left = v % d;
		return v / d;
	}
	*left = v & (d - 1);
	return v >> __builtin_ctz(d);
}

/*
 * The legs from one node to another, the last dimension first, up where both ways round are equally long.
 * *ties: bits of the legs for which that is so.
 */
static uint32_t find_legs(const struct swc_topo *t, uint32_t from, uint32_t to,
			  struct swc_topo_leg *leg, uint32_t *ties)
{
	uint32_t n = 0;

	*ties = 0;
	/* What is left of them is equal before the first dimension in which they differ. */
	for (uint32_t i = t->ndims; from != to && t->kind != SWC_TOPO_SWITCH && i-- > 0;) {
		uint32_t x, y;
		bool tie;

		from = divide(from, t->dim[i], &x);
		to = divide(to, t->dim[i], &y);
		if (x == y)
			continue;
		leg[n] = leg_of(t, i, x, y, &tie);
		*ties |= (uint32_t)tie << n++;
	}
	return n;
}

/* Of n legs, those ties for which paths choose the way. */
static uint32_t ties_at_ends(uint32_t ties, uint32_t n)
{
	return n ? ties & (1u << (n - 1) | 1) : 0;
}

uint32_t swc_topo_route(const struct swc_topo *t, uint32_t path, uint32_t from, uint32_t to,
			struct swc_topo_leg leg[SWC_TOPO_DIMS])
{
	uint32_t ties, n = find_legs(t, from, to, leg, &ties);
	uint32_t other = n > 1 && path / 2 % 2 ? ties_at_ends(ties, n) : 0;
	bool of_higher = path % 2, back;

	/* Along one dimension, down from the lower one is up from the higher one. */
	if (n < 2)
		of_higher = of_higher && ties;
	back = n && of_higher == (from < to);
	/* The way back is the same, but for those legs that the other end would begin up. */
	for (uint32_t i = 0; i < n; i++)
		if (ties >> i & 1)
			leg[i].down = back != (other >> i & 1);
	/* So far they are in the order of the way back. */
	for (uint32_t i = 0; !back && i < n / 2; i++) {
		struct swc_topo_leg x = leg[i];

		leg[i] = leg[n - 1 - i];
		leg[n - 1 - i] = x;
	}
	return n;
}

uint32_t swc_topo_npaths(const struct swc_topo *t, uint32_t from, uint32_t to)
{
	struct swc_topo_leg leg[SWC_TOPO_DIMS];
	uint32_t ties, n = find_legs(t, from, to, leg, &ties);

	return (n > 1 ? 2u : 1u) << (ties_at_ends(ties, n) ? 1 : 0);
}

uint32_t swc_topo_path_on_line(const struct swc_topo *t, uint32_t chan, uint32_t dim, uint32_t from,
			       uint32_t to, struct swc_topo_leg *leg)
{
	bool tie;

	*leg = leg_of(t, dim, from, to, &tie);
	leg->down |= tie && swc_topo_mirrored(t, chan);
	return tie && leg->down == (from < to);
}

uint32_t swc_topo_path(const struct swc_topo *t, uint32_t chan, uint32_t from, uint32_t to)
{
	struct swc_topo_leg leg[SWC_TOPO_DIMS];
	uint32_t ties, n;
	bool down = swc_topo_mirrored(t, chan);

	if (from == to)
		return 0;
	n = find_legs(t, from, to, leg, &ties);
	ties = ties_at_ends(ties, n);
	if (n < 2)
		return ties && down == (from < to);
	if (ties & (ties - 1))
		down ^= from > to;
	return (from > to) + 2u * (ties && down);
}

uint32_t swc_topo_path_back(const struct swc_topo *t, uint32_t chan, uint32_t from, uint32_t to)
{
	uint32_t ndims = 0;

	for (uint32_t i = 0; i < t->ndims; i++)
		ndims += t->dim[i] > 1;
	return ndims > 2 ? swc_topo_path(t, chan, from, to) : swc_topo_path(t, chan, to, from);
}

uint32_t swc_topo_rails_per_rank(const struct swc_topo *t)
{
	uint32_t least = t->first ? UINT32_MAX : t->nlocal;

	for (uint32_t i = 0; t->first && i < t->nnodes; i++)
		least = swc_topo_local(t, i) < least ? swc_topo_local(t, i) : least;
	return (swc_topo_rails(t) + least - 1) / least;
}

uint32_t swc_topo_rail(const struct swc_topo *t, uint32_t part, uint32_t from, uint32_t to)
{
	uint32_t low = from < to ? from : to, node, local;

	if (t->rails < 2)
		return 0;
	node = swc_topo_node_of(t, low);
	local = low - swc_topo_first(t, node);
	return (uint32_t)((part + (uint64_t)local * swc_topo_rails_per_rank(t)) % t->rails);
}
