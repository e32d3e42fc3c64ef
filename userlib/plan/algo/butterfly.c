// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Butterflies whose messages are ranges of blocks: recursive doubling and halving, and Swing. In
 * step k of a dimension, two members exchange that share k bits of a number and differ in the next.
 * For recursive doubling these are the bits of the coordinate, for Swing those of swing_bits().
 * Every port of a torus works on its own share of the vector; port c begins in dimension c mod D
 * and takes the dimensions in turn; ports D and up are the mirror images.
 *
 * J reduce-scatter steps: of the range that two members have, each keeps the half that its bit
 * selects and sends the other. Then the members that have the same range swap and add it, as a
 * whole, in each of the remaining steps. Last, the first J steps backwards as allgather. No step is
 * needed to renumber the blocks: which member reduces which block does not matter to an allreduce.
 *
 * J = 0 takes the fewest steps, J = all of them moves the fewest bytes.
 *
 * Dimensions that are no power of two are folded first: with m the largest power of two in d,
 * coordinate c >= m sends its vector to coordinate c - (d - m), takes no part, and receives the
 * result.
 *
 * Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
 * 2005, section 4; De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher
 * bandwidth allreduce", NSDI 2024.
 *
 * Bits: two members that swap compute a + b and b + a, which are equal to the bit (the reductions
 * are exactly commutative, NaN and signed zero included). So if all members that have one value
 * swap with members that have one other value, all end with the same. That is so in recursive
 * doubling, and in the last two steps of Swing in a dimension; in longer Swing exchanges the order
 * of additions varies.
 */
#include "plan/algo/butterfly_peers.h"
#include "plan/algo/butterfly_sets.h"

/*
 * One port's plan. The sums are in @at: the contribution in SEND at first, then RECV, except that a
 * swap may not write the buffer it sends from, because the partner reads that range to add it.
 * Swaps alternate between SCRATCH and RECV, such that the last one ends in RECV.
 */
struct port {
	struct swc_builder *b;
	bool swing, mirror;
	uint32_t m[SWC_TOPO_DIMS]; /* sizes, rounded down to powers of two */
	uint32_t coord[SWC_TOPO_DIMS];
	struct swc_turn turn[SWC_BUTTERFLY_STEPS];
	uint32_t steps, scatter; /* all, and J */
	uint32_t first, nblocks; /* range that this member has */
	enum swc_buf at;
};

/*
 * The number whose bit k differs between the partners of step k. Distances are sums of powers of
 * -2, so the base is -2. Odd coordinates go the other way, hence the sign; a distance is a sum of
 * powers from 1 on, hence the exclusive or.
 */
static uint32_t swing_bits(uint32_t m, uint32_t x, bool mirror)
{
	const uint32_t odd_bits = 0xaaaaaaaa;
	uint32_t v = (x % 2 != mirror ? x : m - x) % m;

	v = ((v + odd_bits) ^ odd_bits) & (m - 1);
	return v ^ v >> 1;
}

static uint32_t partner(const struct port *p, uint32_t s)
{
	uint32_t dim = p->turn[s].dim, x = p->coord[dim];

	return swc_butterfly_member(p->b, dim, x,
				    swc_range_peer(p->swing, p->mirror, s >= p->scatter, p->m[dim],
						   x, p->turn[s].step));
}

/* Does this member keep the upper half in step s? */
static bool upper(const struct port *p, uint32_t s)
{
	uint32_t dim = p->turn[s].dim, x = p->coord[dim];

	return (p->swing ? swing_bits(p->m[dim], x, p->mirror) : x) >> p->turn[s].step & 1;
}

/* Append a step: send one range, add another. The sums are in `to` then. */
static void swap(struct port *p, uint32_t peer, uint32_t give, uint32_t keep, enum swc_buf to,
		 bool final)
{
	swc_build_step(p->b, SWC_STEP_NET);
	swc_build_send(p->b, peer, p->at, give, p->nblocks);
	swc_build_recv_reduce(p->b, peer, to, p->at, keep, p->nblocks, final ? SWC_XFER_FINAL : 0);
	if (to == SWC_BUF_SCRATCH)
		swc_build_scratch(p->b, keep, p->nblocks);
	p->first = keep;
	p->at = to;
}

static enum swc_buf other(enum swc_buf buf)
{
	return buf == SWC_BUF_RECV ? SWC_BUF_SCRATCH : SWC_BUF_RECV;
}

/*
 * All steps of a member that takes part. In place SEND is RECV, so a first swap from SEND can write
 * RECV only if the two are disjoint. Otherwise the swaps alternate the other way, and the result is
 * copied.
 */
static void run(struct port *p, enum swc_buf before)
{
	uint32_t swaps = p->steps - p->scatter;
	bool clash = swaps % 2 && !p->scatter && p->at == SWC_BUF_SEND;
	bool turned = clash && p->b->in_place;
	enum swc_buf to = turned ? before : other(before);

	if (clash && !turned)
		p->b->w.hdr.flags |= SWC_PLAN_NOT_IN_PLACE;
	for (uint32_t s = 0; s < p->scatter; s++) {
		uint32_t half = p->nblocks /= 2, low = p->first, high = p->first + half;
		bool up = upper(p, s);

		swap(p, partner(p, s), up ? low : high, up ? high : low,
		     s + 1 < p->scatter ? SWC_BUF_RECV : before, s + 1 == p->steps);
	}
	for (uint32_t s = p->scatter; s < p->steps; s++, to = other(to))
		swap(p, partner(p, s), p->first, p->first, to, s + 1 == p->steps);
	if (turned) {
		swc_build_step(p->b, SWC_STEP_LOCAL);
		swc_build_send(p->b, p->b->me, SWC_BUF_SCRATCH, p->first, p->nblocks);
		swc_build_recv(p->b, p->b->me, SWC_BUF_RECV, p->first, p->nblocks, 0);
	}
	for (uint32_t s = p->scatter; s-- > 0; p->nblocks *= 2) {
		bool up = upper(p, s);
		uint32_t mine = p->first;

		p->first -= up ? p->nblocks : 0;
		swc_build_step(p->b, SWC_STEP_NET);
		swc_build_send_stored(p->b, partner(p, s), SWC_BUF_RECV, mine, p->nblocks);
		swc_build_recv(p->b, partner(p, s), SWC_BUF_RECV, up ? p->first : mine + p->nblocks,
			       p->nblocks, 0);
	}
}

/* The member that coordinate @dim folds onto, or that folds onto it; false if there is none. */
static bool folds_with(const struct port *p, uint32_t dim, uint32_t *member)
{
	uint32_t x = p->coord[dim], m = p->m[dim], by = p->b->topo->dim[dim] - m;

	if (x + by < m || !by)
		return false;
	*member = swc_butterfly_member(p->b, dim, x, x < m ? x + by : x - by);
	return true;
}

/*
 * Fold, run, unfold. A member that is folded in one dimension has taken part in the folds of those
 * before.
 */
static void fold_and_run(struct port *p, uint32_t c)
{
	struct swc_builder *b = p->b;
	uint32_t ndims = b->topo->ndims, i, peer, first = p->first, n = p->nblocks;
	enum swc_buf before = (p->steps - p->scatter) % 2 ? SWC_BUF_SCRATCH : SWC_BUF_RECV;
	enum swc_buf to = p->scatter ? SWC_BUF_RECV : before;
	bool out = false;

	for (i = 0; i < ndims; i++) {
		uint32_t dim = (c + i) % ndims;

		if (!folds_with(p, dim, &peer))
			continue;
		swc_build_step(b, SWC_STEP_NET);
		out = p->coord[dim] >= p->m[dim];
		if (out)
			break;
		swc_build_recv_reduce(b, peer, to, p->at, first, n, 0);
		if (to == SWC_BUF_SCRATCH)
			swc_build_scratch(b, first, n);
		p->at = to;
	}
	if (out) {
		swc_build_send(b, peer, p->at, first, n);
		swc_build_step(b, SWC_STEP_NET);
		swc_build_recv(b, peer, SWC_BUF_RECV, first, n, 0);
	} else {
		run(p, before);
	}
	while (i-- > 0) {
		if (!folds_with(p, (c + i) % ndims, &peer))
			continue;
		swc_build_step(b, SWC_STEP_NET);
		swc_build_send_stored(b, peer, SWC_BUF_RECV, first, n);
	}
}

static int allreduce(struct swc_builder *b, const struct swc_butterfly *k, uint32_t ports)
{
	uint32_t nsteps[SWC_TOPO_DIMS] = { 0 }, ndims = b->topo->ndims;
	struct port p = { .b = b, .swing = k->swing };

	if (k->scatter > k->steps)
		return swc_build_refuse(
			b, "there are %u steps on this topology: give a number from 0 to %u",
			k->steps, k->steps);
	for (uint32_t i = 0; i < ndims; i++) {
		while (b->topo->dim[i] >> nsteps[i] > 1)
			nsteps[i]++;
		p.m[i] = 1u << nsteps[i];
	}
	p.scatter = k->scatter;
	swc_topo_coords(b->topo, b->me, p.coord);
	swc_build_blocks(b, ports << p.scatter);
	for (uint32_t c = 0; c < ports; c++) {
		p.mirror = c >= ndims;
		p.steps = swc_butterfly_turns(nsteps, ndims, c, p.turn);
		p.nblocks = 1u << p.scatter;
		p.first = c * p.nblocks;
		p.at = SWC_BUF_SEND;
		if (swc_range_order_varies(k, p.turn))
			b->w.hdr.flags |= SWC_PLAN_ORDER_VARIES;
		swc_build_channel(b, p.first, p.nblocks);
		fold_and_run(&p, c);
	}
	return 0;
}

int swc_butterfly_build(struct swc_builder *b)
{
	struct swc_butterfly k;
	uint32_t ports;

	swc_butterfly_find(&k, b->args, b->topo);
	ports = k.one_port ? 1 : swc_build_ports(b);
	return k.in_ranges ? allreduce(b, &k, ports) : swc_butterfly_sets_build(b, k.swing, ports);
}
