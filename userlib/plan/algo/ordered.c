// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ordered: an allreduce of small vectors, the whole vector in each step, that adds in the same
 * order on all members, so that all get the same bits of floats. ceil(log3 d) steps for each
 * dimension of d members or fewer, as twosided, and about as many hops.
 *
 * A stage makes three groups of members, whose members have the same sum each, into one: each
 * member receives the two sums that it lacks from the nearest members that have them. Because all
 * members of a group have the same bits, any of them will do; because all add the three sums in
 * the order of the groups' numbers, all get the same again: (a + b) + c. Swapping two operands
 * changes no bit (NaN and signed zero included). The price: a member of group c cannot add while it
 * receives; it stores a, adds b, and then adds its own in one more pass over the vector.
 *
 * One dimension. m is a product of factors 2 and 3, and at most d, at least d / 3. Members are
 * numbered by m colours round the ring, so that up to three neighbours have the same one. First,
 * neighbours of one colour make their sum (unless m = d). Then, far members first: with m = n * k,
 * those whose colours are equal modulo k make their sum, and k takes the place of m. n is 3, or 4
 * in two steps as in Swing (0-1 and 2-3, then 1-2 and 3-0), or 2 once at the end. Far members
 * first, because after that any colour is near: the steps go d / 3, d / 9... far, half the ring in
 * all; near ones first would have to reach over what they have joined. Of the possible m, the one
 * with the fewest steps and then the fewest hops is taken: 27 for d = 64, 9 for d = 9.
 *
 * Several dimensions: in turn, see turns.h; as many channels as dimensions.
 */
#include "plan/algo/places.h"
#include "plan/algo/turns.h"

#define MAX_PEERS 12

/* How groups are joined in a step. */
enum join {
	NEIGHBOURS, /* of one colour */
	TWO,
	THREE,
	FOUR_FIRST, /* 0-1, 2-3 */
	FOUR_LAST,  /* 1-2, 3-0 */
};

/* A step: members whose colours are equal modulo @to; their colours modulo @from are different. */
struct step {
	enum join join;
	uint32_t from, to, hops;
};

/* One dimension. */
struct line {
	uint32_t size, unit, at, colours; /* unit: between member numbers; at: coordinate */
	uint32_t nsteps, hops;
	struct step step[SWC_BUTTERFLY_STEPS];
};

/* ---- the choice of colours ---- */

/* A division of 64 bits takes long, and most products are less. */
static uint32_t quotient(uint64_t product, uint32_t divisor)
{
	return product <= UINT32_MAX ? (uint32_t)product / divisor : (uint32_t)(product / divisor);
}

static void add_step(struct line *l, enum join join, uint32_t from, uint32_t to, uint64_t colours)
{
	uint32_t hops = quotient(colours * l->size + l->colours - 1, l->colours);

	if (l->nsteps == SWC_BUTTERFLY_STEPS)
		return;
	l->step[l->nsteps++] = (struct step){ join, from, to, hops };
	l->hops += hops;
}

/*
 * If only few members have a neighbour of their colour, the others are a step ahead of them, and
 * long ways of both follow one another.
 */
static bool is_uneven(const struct line *l)
{
	uint32_t more = l->size - l->colours;

	return more && 3 * more < l->colours;
}

static void divide(struct line *l, uint32_t colours)
{
	uint32_t m = colours, near = (l->size + m - 1) / m;

	l->colours = m;
	l->nsteps = l->hops = 0;
	if (near > 1) {
		add_step(l, NEIGHBOURS, m, m, 0);
		l->step[0].hops = l->hops = near - 1;
	}
	for (; m % 3 == 0; m /= 3)
		add_step(l, THREE, m, m / 3, m / 3);
	for (; m % 4 == 0; m /= 4) {
		add_step(l, FOUR_FIRST, m, m / 4, m / 4);
		add_step(l, FOUR_LAST, m, m / 4, m / 4);
	}
	if (m > 1)
		add_step(l, TWO, m, m / 2, m / 2);
	if (is_uneven(l))
		l->hops += l->step[1].hops;
}

static void find_colours(struct line *l)
{
	struct line best = { .nsteps = UINT32_MAX };

	for (uint32_t threes = 1; threes <= l->size; threes *= 3)
		for (uint32_t m = threes; m <= l->size; m *= 2) {
			if (3ull * m < l->size)
				continue;
			divide(l, m);
			if (l->nsteps < best.nsteps ||
			    (l->nsteps == best.nsteps && l->hops < best.hops))
				best = *l;
		}
	*l = best;
}

/* ---- members ---- */

static uint32_t colour_of(const struct line *l, uint32_t x)
{
	return quotient((uint64_t)x * l->colours, l->size);
}

/* The first coordinate with a colour. */
static uint32_t first_of(const struct line *l, uint32_t colour)
{
	return quotient((uint64_t)colour * l->size + l->colours - 1, l->colours);
}

static uint32_t far(const struct line *l, uint32_t x, uint32_t y)
{
	uint32_t up = y < x ? y + l->size - x : y - x;

	return up < l->size - up ? up : l->size - up;
}

/* The coordinate with @colour that has this place among its neighbours, or the last. */
static uint32_t coord_at(const struct line *l, uint32_t colour, uint32_t place)
{
	uint32_t first = first_of(l, colour), n = first_of(l, colour + 1) - first;

	return first + (place < n ? place : n - 1);
}

/* The number of the group of a coordinate, among those that a step joins. */
static uint32_t group_of(const struct line *l, const struct step *s, uint32_t x)
{
	if (s->join == NEIGHBOURS)
		return x - first_of(l, colour_of(l, x));
	return colour_of(l, x) % s->from / s->to;
}

/* Groups that a member of group i receives from, in the order in which it adds. Returns how many. */
static uint32_t lacks(const struct line *l, const struct step *s, uint32_t x, uint32_t *group)
{
	uint32_t i = group_of(l, s, x), n = 3, k = 0, colour = colour_of(l, x);

	switch (s->join) {
	case FOUR_FIRST:
		group[0] = i ^ 1;
		return 1;
	case FOUR_LAST:
		group[0] = 3 - i;
		return 1;
	case NEIGHBOURS:
		n = first_of(l, colour + 1) - first_of(l, colour);
		break;
	case TWO:
		n = 2;
		break;
	default:
		break;
	}
	for (uint32_t j = 0; j < n; j++)
		if (j != i)
			group[k++] = j;
	return k;
}

/* The coordinate that x receives the sum of a group from: the nearest one up or down. */
static uint32_t provider(const struct line *l, const struct step *s, uint32_t x, uint32_t group)
{
	uint32_t colour = colour_of(l, x), first = first_of(l, colour), by, up, down;

	if (s->join == NEIGHBOURS)
		return first + group;
	by = (group * s->to + colour % s->to + s->from - colour % s->from) % s->from;
	up = coord_at(l, (colour + by) % l->colours, x - first);
	down = coord_at(l, (colour + by + l->colours - s->from) % l->colours, x - first);
	return far(l, x, up) <= far(l, x, down) ? up : down;
}

/* Add y to the receivers if x sends to it. */
static void add_receiver(const struct line *l, const struct step *s, uint32_t x, uint32_t y,
			 uint32_t *peer, uint32_t *n)
{
	uint32_t group[3], k = lacks(l, s, y, group);

	for (uint32_t i = 0; i < *n; i++)
		if (peer[i] == y)
			return;
	for (uint32_t i = 0; i < k; i++)
		if (*n < MAX_PEERS && provider(l, s, y, group[i]) == x)
			peer[(*n)++] = y;
}

/* The coordinates that x sends to: it is the provider of members up or down with other groups. */
static uint32_t receivers(const struct line *l, const struct step *s, uint32_t x, uint32_t *peer)
{
	uint32_t group = group_of(l, s, x), colour = colour_of(l, x), n = 0;
	uint32_t groups = s->join == NEIGHBOURS ? 1 : s->from / s->to;

	for (uint32_t j = 0; j < groups; j++) {
		uint32_t by = (j + groups - group) % groups * s->to;
		uint32_t side[2] = { (colour + by) % l->colours,
				     (colour + by + l->colours - s->from) % l->colours };

		if (s->join == NEIGHBOURS)
			side[0] = side[1] = colour;
		for (int i = 0; i < 2; i++)
			for (uint32_t y = first_of(l, side[i]); y < first_of(l, side[i] + 1); y++)
				if (y != x)
					add_receiver(l, s, x, y, peer, &n);
	}
	return n;
}

static uint32_t member(const struct swc_builder *b, const struct line *l, uint32_t x)
{
	return b->me + (x - l->at) * l->unit;
}

/* ---- steps ---- */

/* Does a member add its own sum last, after storing the first one that it receives? */
static bool adds_last(uint32_t own, uint32_t nlacks)
{
	return nlacks == 2 && own == 2;
}

static void net_step(struct swc_builder *b, struct swc_places *p, const struct line *l,
		     const struct step *s, uint32_t block, bool last)
{
	uint32_t peer[MAX_PEERS], group[3], own = group_of(l, s, l->at);
	uint32_t n = receivers(l, s, l->at, peer), lack = lacks(l, s, l->at, group);
	enum swc_buf mine = p->hold[p->now], operand = mine, to;
	bool wait = adds_last(own, lack);

	swc_build_step(b, SWC_STEP_NET);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t its[3], nits = lacks(l, s, peer[i], its);

		if (own == 0 && adds_last(group_of(l, s, peer[i]), nits))
			swc_build_send_stored(b, member(b, l, peer[i]), mine, block, 1);
		else
			swc_build_send(b, member(b, l, peer[i]), mine, block, 1);
	}
	if (!lack)
		return;
	to = swc_places_next(p, b, block, 1);
	for (uint32_t i = 0; i < lack; i++, operand = to) {
		uint32_t from = member(b, l, provider(l, s, l->at, group[i]));
		uint32_t final = last && !wait && i + 1 == lack ? SWC_XFER_FINAL : 0;

		if (wait && !i)
			swc_build_recv(b, from, to, block, 1, 0);
		else
			swc_build_recv_reduce(b, from, to, operand, block, 1, final);
	}
	if (wait) {
		swc_build_step(b, SWC_STEP_LOCAL);
		swc_build_send(b, b->me, to, block, 1);
		swc_build_send(b, b->me, mine, block, 1);
		swc_build_recv(b, b->me, to, block, 1, last ? SWC_XFER_FINAL : 0);
	}
	swc_places_turn(p);
}

static void run(struct swc_builder *b, const struct line *line, const struct swc_turn *turn,
		uint32_t nturns, uint32_t block)
{
	uint32_t group[3], place = 0, last = nturns;
	struct swc_places p;

	/* The last step in which this member receives completes the result. */
	for (uint32_t i = 0; i < nturns; i++) {
		const struct line *l = &line[turn[i].dim];

		if (!lacks(l, &l->step[turn[i].step], l->at, group))
			continue;
		place ^= 1;
		last = i;
	}
	swc_build_channel(b, block, 1);
	swc_places_begin(&p, b, SWC_BUF_SEND, place, block, 1);
	for (uint32_t i = 0; i < nturns; i++) {
		const struct line *l = &line[turn[i].dim];

		net_step(b, &p, l, &l->step[turn[i].step], block, i == last);
	}
}

/* The dimensions with more than one member. */
static uint32_t find_lines(const struct swc_builder *b, struct line *line,
			   struct swc_turn_hops *hops)
{
	uint32_t coord[SWC_TOPO_DIMS], unit = b->n, ndims = 0;

	swc_topo_coords(b->topo, b->me, coord);
	for (uint32_t i = 0; i < b->topo->ndims; i++) {
		struct line *l = &line[ndims];

		unit /= b->topo->dim[i];
		if (b->topo->dim[i] == 1)
			continue;
		*l = (struct line){ .size = b->topo->dim[i], .unit = unit, .at = coord[i] };
		find_colours(l);
		hops[ndims].nsteps = l->nsteps;
		for (uint32_t k = 0; k < l->nsteps; k++)
			hops[ndims].hops[k] = l->step[k].hops;
		ndims++;
	}
	return ndims;
}

int swc_ordered_build(struct swc_builder *b)
{
	struct line line[SWC_TOPO_DIMS];
	struct swc_turn_hops hops[SWC_TOPO_DIMS] = { 0 };
	uint32_t ndims = find_lines(b, line, hops), nch = (swc_build_ports(b) + 1) / 2;

	nch = b->args->channels ? b->args->channels : nch < ndims ? nch : ndims;
	swc_build_blocks(b, nch);
	for (uint32_t c = 0; c < nch; c++) {
		struct swc_turn turn[SWC_BUTTERFLY_STEPS];

		run(b, line, turn, swc_turns_align(hops, ndims, c, turn), c);
	}
	return 0;
}
