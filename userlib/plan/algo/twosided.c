// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Two-sided allreduce: the whole vector in each step, but received from both sides at once, so that
 * a member's sum grows up to threefold: ceil(log3 d) steps for each dimension of d members, for any
 * d. For small vectors. (Powers of three and the steps +-3^k: "Trivance", 2026. The rest of this
 * comment extends it to any number of members.)
 *
 * One dimension. d is a product of factors n1 * n2 * ..., with one stage for each. A stage works on
 * rings of n members that are `stride` apart, the product of the factors before it. Each member
 * begins it with a sum over a set A that, shifted by multiples of the stride, covers the dimension
 * without overlap, and ends it with such a sum for n * stride. So any stages may follow one
 * another. These exist:
 *
 * groups, any n: the ring is cut into three arcs, these into three again, and so on. From the
 *	innermost cut to the outermost, each member receives the sums of the two neighbour arcs from
 *	their members with its own index, or from the last one if they are shorter by one. For n = 3
 *	this is the neighbours' vectors, for n = 2 the partner's.
 * four: pairs 0-1 and 2-3, then 1-2 and 3-0: neighbours only, as in Swing.
 * five: sums s(r) of r and r + 1; then r's own vector + s(r - 2) + s(r + 1).
 * seven: sums s(r) of r - 1, r and r + 1; then r's own vector + s(r - 2) + s(r + 2).
 * eight: the ring can be cut into arcs of 3, 3 and 2 members such that each arc has its members at
 *	the centre: {7,0,1} {2,3} {4,5,6} with members 0, 2 and 3, 5; and, shifted by four, {3,4,5}
 *	{6,7} {0,1,2} with members 4, 6 and 7, 1. First each member sums up its arc (distance 1),
 *	then it receives the two others of its cut (distance 2 and 3). With 8 members on a side,
 *	that is 2 steps and 4 hops.
 *
 * Of the products with the fewest steps, a search over the divisors finds the one with the fewest
 * hops.
 *
 * Memory: a step may not write what it sends, so there are two places for sums, and the only
 * earlier sum that a stage can still use is the one in the place that it writes next. One vector of
 * scratch is enough.
 *
 * Several dimensions: one after the other. With the ports of a torus, as many collectives as
 * dimensions, each on its share of the vector and starting in another dimension; each uses both
 * directions of a dimension.
 *
 * Members add the same sums in different order, so floats may differ in their last bits, unless
 * all factors are 2 and 4, where sums are added in pairs.
 */
#include "plan/algo/builder.h"

#define MAX_STAGES 20 /* 2^20 members */
#define MAX_PEERS 6

/*
 * Stages that are not groups: offsets of the members that sums come from, by step and index of the
 * member % classes.
 */
static const struct special {
	uint32_t n, hops, classes;
	bool own; /* the second step adds to what the member had before the first */
	int8_t from[2][4][2];
} specials[] = {
	{ 4, 2, 2, false, { { { 1, 0 }, { -1, 0 } }, { { -1, 0 }, { 1, 0 } } } },
	{ 5, 3, 1, true, { { { 1, 0 } }, { { -2, 1 } } } },
	{ 7, 3, 1, true, { { { -1, 1 } }, { { -2, 2 } } } },
	{ 8,
	  4,
	  4,
	  false,
	  { { { -1, 1 }, { -1, 1 }, { 1, 0 }, { -1, 0 } },
	    { { -3, 2 }, { -2, 3 }, { -2, 3 }, { -3, 2 } } } },
};

/* One dimension, and how its size is factored. */
struct line {
	uint32_t size, unit, at; /* unit: between member numbers; at: coordinate */
	uint32_t factor[MAX_STAGES];
	uint32_t nstages;
};

static uint32_t steps_of(uint32_t n)
{
	uint32_t steps = 0;

	for (uint64_t reach = 1; reach < n; reach *= 3)
		steps++;
	return steps;
}

static const struct special *special(uint32_t n)
{
	for (uint32_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++)
		if (specials[i].n == n)
			return &specials[i];
	return NULL;
}

/* Hops of a stage in units of its stride: the largest distance of each step. */
static uint32_t hops_of(uint32_t n)
{
	uint32_t hops = (n + 2) / 3;

	if (special(n))
		return special(n)->hops;
	/* The outermost cut has wrap-around links, cuts within an arc do not. */
	for (uint32_t arc = hops; arc > 1; arc = (arc + 2) / 3)
		hops += arc - (arc < 3 ? 1 : arc / 3);
	return hops;
}

/* ---- factors ---- */

struct search {
	struct line now, best;
	uint32_t steps, hops; /* of the best */
};

static void factor(struct search *s, uint32_t rest, uint32_t steps, uint32_t hops)
{
	struct line *l = &s->now;
	uint32_t stride = l->size / rest;

	if (rest == 1) {
		s->best = *l;
		s->steps = steps;
		s->hops = hops;
		return;
	}
	for (uint32_t n = 2; n <= rest; n++) {
		uint32_t more_steps, more_hops;

		if (rest % n)
			continue;
		more_steps = steps + steps_of(n);
		more_hops = hops + stride * hops_of(n);
		if (more_steps + steps_of(rest / n) > s->steps || more_hops >= s->hops)
			continue;
		l->factor[l->nstages++] = n;
		factor(s, rest / n, more_steps, more_hops);
		l->nstages--;
	}
}

static void find_factors(struct line *l)
{
	struct search s = { .now = *l, .steps = steps_of(l->size), .hops = UINT32_MAX };

	factor(&s, l->size, 0, 0);
	*l = s.best;
}

/* ---- peers: offsets of the members that index j receives from, or sends to ---- */

static uint32_t special_peers(const struct special *t, uint32_t step, uint32_t j, bool send,
			      int32_t *offset)
{
	uint32_t n = 0;

	for (int32_t o = -3; o <= 3; o++) {
		uint32_t receiver = send ? j + t->n - (uint32_t)o : j;
		const int8_t *from = t->from[step][receiver % t->n % t->classes];

		if (o && (from[0] == o || from[1] == o))
			offset[n++] = send ? -o : o;
	}
	return n;
}

struct arc {
	uint32_t first, n;
};

/* Arc i of three, or of as many as there are members. */
static struct arc arc_of(struct arc whole, uint32_t i)
{
	uint32_t arcs = whole.n < 3 ? whole.n : 3, n = whole.n / arcs, longer = whole.n % arcs;

	return (struct arc){ whole.first + i * n + (i < longer ? i : longer), n + (i < longer) };
}

static uint32_t arc_with(struct arc whole, uint32_t j)
{
	uint32_t i = 0;

	while (j - arc_of(whole, i).first >= arc_of(whole, i).n)
		i++;
	return i;
}

static uint32_t group_peers(uint32_t n, uint32_t step, uint32_t j, bool send, int32_t *offset)
{
	struct arc whole = { 0, n }, mine;
	uint32_t own, arcs, npeers = 0;

	for (uint32_t cut = steps_of(n) - 1; cut > step; cut--)
		whole = arc_of(whole, arc_with(whole, j));
	own = arc_with(whole, j);
	mine = arc_of(whole, own);
	arcs = whole.n < 3 ? whole.n : 3;
	for (uint32_t i = 0; i < arcs; i++) {
		struct arc a = arc_of(whole, i);
		uint32_t at = j - mine.first, end = at + 1;

		if (i == own)
			continue;
		if (!send && at == a.n) /* the other arc is shorter by one */
			end = at--;
		if (send && at >= a.n) /* it is shorter: no member has this index */
			continue;
		if (send &&
		    end == mine.n) /* the own arc may be shorter: its last member sends to two */
			end = a.n;
		for (; at < end; at++)
			offset[npeers++] = (int32_t)(a.first + at - j);
	}
	for (uint32_t i = 0; i < npeers; i++) {
		if (2 * offset[i] > (int32_t)n)
			offset[i] -= (int32_t)n;
		else if (2 * offset[i] < -(int32_t)n)
			offset[i] += (int32_t)n;
	}
	return npeers;
}

/* The peers as members. */
static uint32_t peers(const struct swc_builder *b, const struct line *l, uint32_t n,
		      uint32_t stride, uint32_t step, bool send, uint32_t *member)
{
	uint32_t j = l->at / stride % n, npeers;
	int32_t offset[MAX_PEERS];

	if (special(n))
		npeers = special_peers(special(n), step, j, send, offset);
	else
		npeers = group_peers(n, step, j, send, offset);
	for (uint32_t i = 0; i < npeers; i++) {
		int64_t to = (l->at + (int64_t)offset[i] * stride + l->size) % l->size;

		member[i] = (uint32_t)(b->me + (to - l->at) * l->unit);
	}
	return npeers;
}

/* ---- steps ---- */

/**
 * struct sums - the two places for sums, and the share of the vector they are for
 * @block: the share
 * @hold: buffer that has what is in a place; SEND while nothing has been written to the first one
 * @write: buffer that a place is written to
 * @now: place of the latest sum
 */
struct sums {
	uint32_t block;
	enum swc_buf hold[2], write[2];
	uint32_t now;
};

static void net_step(struct swc_builder *b, struct sums *s, const struct line *l, uint32_t n,
		     uint32_t stride, uint32_t step, bool last)
{
	bool own = step && special(n) && special(n)->own;
	uint32_t member[MAX_PEERS], npeers, to = !s->now;
	enum swc_buf operand = s->hold[own ? to : s->now];

	swc_build_step(b, SWC_STEP_NET);
	npeers = peers(b, l, n, stride, step, true, member);
	for (uint32_t i = 0; i < npeers; i++)
		swc_build_send(b, member[i], s->hold[s->now], s->block, 1);
	npeers = peers(b, l, n, stride, step, false, member);
	if (npeers && s->write[to] == SWC_BUF_SCRATCH)
		swc_build_scratch(b, s->block, 1);
	for (uint32_t i = 0; i < npeers; i++) {
		swc_build_recv_reduce(b, member[i], s->write[to], operand, s->block, 1,
				      last && i + 1 == npeers ? SWC_XFER_FINAL : 0);
		operand = s->write[to];
		s->hold[to] = operand;
		s->now = to;
	}
}

/* The place of the last sum: the number of steps in which this member receives, modulo 2. */
static uint32_t last_place(const struct swc_builder *b, const struct line *line, uint32_t ndims)
{
	uint32_t place = 0, member[MAX_PEERS];

	for (const struct line *l = line; l < line + ndims; l++)
		for (uint32_t k = 0, stride = 1; k < l->nstages; stride *= l->factor[k++])
			for (uint32_t step = 0; step < steps_of(l->factor[k]); step++)
				place ^= !!peers(b, l, l->factor[k], stride, step, false, member);
	return place;
}

/*
 * The last sum must be in RECV. If RECV is the place that had the own vector, the first write to it
 * is right in place, too. If it is the other one, the first step would write RECV while SEND is
 * being read: in place, the own vector is copied to SCRATCH before.
 */
static void start(struct swc_builder *b, struct sums *s, uint32_t place)
{
	s->now = 0;
	s->write[place] = SWC_BUF_RECV;
	s->write[!place] = SWC_BUF_SCRATCH;
	s->hold[0] = SWC_BUF_SEND;
	s->hold[1] = s->write[1];
	if (!place)
		return;
	if (!b->in_place) {
		b->w.hdr.flags |= SWC_PLAN_NOT_IN_PLACE;
		return;
	}
	swc_build_scratch(b, s->block, 1);
	swc_build_step(b, SWC_STEP_LOCAL);
	swc_build_send(b, b->me, SWC_BUF_SEND, s->block, 1);
	swc_build_recv(b, b->me, SWC_BUF_SCRATCH, s->block, 1, 0);
	s->hold[0] = SWC_BUF_SCRATCH;
}

static void run(struct swc_builder *b, const struct line *line, uint32_t ndims, uint32_t c,
		uint32_t place)
{
	struct sums s = { .block = c };

	swc_build_channel(b, c, 1);
	start(b, &s, place);
	for (uint32_t i = 0; i < ndims; i++) {
		const struct line *l = &line[(c + i) % ndims];

		for (uint32_t k = 0, stride = 1; k < l->nstages; stride *= l->factor[k++]) {
			uint32_t steps = steps_of(l->factor[k]);

			for (uint32_t step = 0; step < steps; step++)
				net_step(b, &s, l, l->factor[k], stride, step,
					 i + 1 == ndims && k + 1 == l->nstages &&
						 step + 1 == steps);
		}
	}
}

/* The dimensions with more than one member. */
static uint32_t find_lines(struct swc_builder *b, struct line *line)
{
	uint32_t coord[SWC_TOPO_DIMS], unit = b->n, ndims = 0;

	swc_topo_coords(b->topo, b->me, coord);
	for (uint32_t i = 0; i < b->topo->ndims; i++) {
		struct line *l = &line[ndims];

		unit /= b->topo->dim[i];
		if (b->topo->dim[i] == 1)
			continue;
		*l = (struct line){ .size = b->topo->dim[i], .unit = unit, .at = coord[i] };
		find_factors(l);
		for (uint32_t k = 0; k < l->nstages; k++)
			if (l->factor[k] != 2 && l->factor[k] != 4)
				b->w.hdr.flags |= SWC_PLAN_ORDER_VARIES;
		ndims++;
	}
	return ndims;
}

int swc_twosided_build(struct swc_builder *b)
{
	struct line line[SWC_TOPO_DIMS];
	uint32_t ndims = find_lines(b, line), nch = (swc_build_ports(b) + 1) / 2, place;

	nch = b->args->channels ? b->args->channels : nch < ndims ? nch : ndims;
	place = last_place(b, line, ndims);
	swc_build_blocks(b, nch);
	for (uint32_t c = 0; c < nch; c++)
		run(b, line, ndims, c, place);
	return 0;
}
