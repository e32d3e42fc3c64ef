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
#include "plan/algo/line_messages.h"
#include "plan/algo/places.h"
#include "plan/algo/turns.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_PEERS SWC_LINE_PEERS

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

/* A coordinate, its colour, and where the @n of that colour begin. It takes divisions to find these. */
struct spot {
	uint32_t x, colour, first, n;
};

/* One dimension. */
struct line {
	uint32_t size, unit, colours; /* unit: between member numbers */
	struct spot spot;	      /* of the member */
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

/* The first spot of a colour. */
static struct spot spot_of(const struct line *l, uint32_t colour)
{
	uint32_t first = first_of(l, colour);

	return (struct spot){ first, colour, first, first_of(l, colour + 1) - first };
}

static uint32_t far(const struct line *l, uint32_t x, uint32_t y)
{
	uint32_t up = y < x ? y + l->size - x : y - x;

	return up < l->size - up ? up : l->size - up;
}

/* The coordinate with @colour that has this place among its neighbours, or the last. */
static uint32_t coord_at(const struct line *l, uint32_t colour, uint32_t place)
{
	uint32_t first = first_of(l, colour), n;

	if (!place)
		return first;
	n = first_of(l, colour + 1) - first;
	return first + (place < n ? place : n - 1);
}

/* The number of the group of a coordinate, among those that a step joins. */
static uint32_t group_of(const struct step *s, const struct spot *x)
{
	if (s->join == NEIGHBOURS)
		return x->x - x->first;
	return x->colour % s->from / s->to;
}

/* Does a member of group i receive the sum of group j? */
static bool is_lacking(const struct step *s, uint32_t i, uint32_t j)
{
	if (s->join == FOUR_FIRST)
		return j == (i ^ 1);
	if (s->join == FOUR_LAST)
		return j == 3 - i;
	return j != i;
}

/* Groups that a member receives from, in the order in which it adds. Returns how many. */
static uint32_t lacks(const struct step *s, const struct spot *x, uint32_t *group)
{
	uint32_t i = group_of(s, x), n = s->join == NEIGHBOURS ? x->n : s->from / s->to, k = 0;

	for (uint32_t j = 0; j < n; j++)
		if (is_lacking(s, i, j))
			group[k++] = j;
	return k;
}

/* The colour that is @by above another one, less than the number of colours. */
static uint32_t colour_up(const struct line *l, uint32_t colour, uint32_t by)
{
	return colour + by < l->colours ? colour + by : colour + by - l->colours;
}

/* The coordinate that x receives the sum of a group from: the nearest one up or down. */
static uint32_t provider(const struct line *l, const struct step *s, const struct spot *x,
			 uint32_t group)
{
	uint32_t by, up, down;

	if (s->join == NEIGHBOURS)
		return x->first + group;
	by = group * s->to + x->colour % s->to + s->from - x->colour % s->from;
	by -= by < s->from ? 0 : s->from;
	up = coord_at(l, colour_up(l, x->colour, by), x->x - x->first);
	down = coord_at(l, colour_up(l, x->colour, by + l->colours - s->from), x->x - x->first);
	return far(l, x->x, up) <= far(l, x->x, down) ? up : down;
}

/* Add those of a colour that x, of group @own, provides with the sum of its group. */
static void add_receivers(const struct line *l, const struct step *s, const struct spot *x,
			  uint32_t own, uint32_t colour, struct spot *peer, uint32_t *n)
{
	struct spot y = spot_of(l, colour);

	for (; y.x < y.first + y.n; y.x++)
		if (y.x != x->x && *n < MAX_PEERS && provider(l, s, &y, own) == x->x)
			peer[(*n)++] = y;
}

/* The members that x sends to: neighbours, or members up or down with other groups. Returns how many. */
static uint32_t receivers(const struct line *l, const struct step *s, const struct spot *x,
			  struct spot *peer)
{
	uint32_t own = group_of(s, x), n = 0, groups = s->from / s->to;

	if (s->join == NEIGHBOURS)
		add_receivers(l, s, x, own, x->colour, peer, &n);
	for (uint32_t j = 0; s->join != NEIGHBOURS && j < groups; j++) {
		uint32_t by = (j + groups - own) % groups * s->to;
		uint32_t up = colour_up(l, x->colour, by);
		uint32_t down = colour_up(l, x->colour, by + l->colours - s->from);

		if (!is_lacking(s, j, own))
			continue;
		add_receivers(l, s, x, own, up, peer, &n);
		if (down != up)
			add_receivers(l, s, x, own, down, peer, &n);
	}
	return n;
}

static uint32_t member(const struct swc_builder *b, const struct line *l, uint32_t x)
{
	return b->me + (x - l->spot.x) * l->unit;
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
	struct spot peer[MAX_PEERS];
	uint32_t group[3], own = group_of(s, &l->spot), n = receivers(l, s, &l->spot, peer);
	uint32_t lack = lacks(s, &l->spot, group);
	enum swc_buf mine = p->hold[p->now], operand = mine, to;
	bool wait = adds_last(own, lack);

	swc_build_step(b, SWC_STEP_NET);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t its[3], nits = lacks(s, &peer[i], its), y = member(b, l, peer[i].x);

		if (own == 0 && adds_last(group_of(s, &peer[i]), nits))
			swc_build_send_stored(b, y, mine, block, 1);
		else
			swc_build_send(b, y, mine, block, 1);
	}
	if (!lack)
		return;
	to = swc_places_next(p, b, block, 1);
	for (uint32_t i = 0; i < lack; i++, operand = to) {
		uint32_t from = member(b, l, provider(l, s, &l->spot, group[i]));
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

		if (!lacks(&l->step[turn[i].step], &l->spot, group))
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

static void set_spot(struct line *l, uint32_t x)
{
	l->spot = spot_of(l, colour_of(l, x));
	l->spot.x = x;
}

/* The dimensions with more than one member. */
static uint32_t find_lines(const struct swc_topo *topo, uint32_t me, struct line *line)
{
	struct swc_topo_line in[SWC_TOPO_DIMS];
	uint32_t ndims = swc_topo_lines(topo, me, in);

	for (uint32_t i = 0; i < ndims; i++) {
		line[i] = (struct line){ .size = in[i].size, .unit = in[i].unit };
		find_colours(&line[i]);
		set_spot(&line[i], in[i].at);
	}
	return ndims;
}

int swc_ordered_build(struct swc_builder *b)
{
	struct line line[SWC_TOPO_DIMS];
	struct swc_turn_hops hops[SWC_TOPO_DIMS] = { 0 };
	uint32_t ndims = find_lines(b->topo, b->me, line), nch = (swc_build_ports(b) + 1) / 2;

	for (uint32_t i = 0; i < ndims; i++) {
		hops[i].nsteps = line[i].nsteps;
		for (uint32_t k = 0; k < line[i].nsteps; k++)
			hops[i].hops[k] = line[i].step[k].hops;
	}
	nch = b->args->channels ? b->args->channels : nch < ndims ? nch : ndims;
	swc_build_blocks(b, nch);
	for (uint32_t c = 0; c < nch; c++) {
		struct swc_turn turn[SWC_BUTTERFLY_STEPS];

		run(b, line, turn, swc_turns_align(hops, ndims, c, turn), c);
	}
	return 0;
}

/* ---- the steps of lines ---- */

static uint32_t count_steps(const void *lines, uint32_t i)
{
	return ((const struct line *)lines)[i].nsteps;
}

static void find_peers(void *lines, uint32_t i, uint32_t s, bool mirrored, uint32_t x,
		       struct swc_line_peers *peers)
{
	struct line *l = (struct line *)lines + i;
	const struct step *step = &l->step[s];
	struct spot peer[MAX_PEERS];
	uint32_t group[3];

	(void)mirrored;
	set_spot(l, x);
	peers->nsend = receivers(l, step, &l->spot, peer);
	peers->nrecv = lacks(step, &l->spot, group);
	peers->nreduced = peers->nrecv - adds_last(group_of(step, &l->spot), peers->nrecv);
	for (uint32_t k = 0; k < peers->nsend; k++)
		peers->to[k] = peer[k].x;
	for (uint32_t k = 0; k < peers->nrecv; k++)
		peers->from[k] = provider(l, step, &l->spot, group[k]);
}

int swc_ordered_lines(const struct swc_plan_args *args, const struct swc_topo *topo,
		      struct swc_line_messages *steps)
{
	struct line *line = calloc(topo->ndims, sizeof(*line));

	(void)args;
	if (!line)
		return -ENOMEM;
	*steps = (struct swc_line_messages){ .nlines = find_lines(topo, 0, line),
					     .lines = line,
					     .count = count_steps,
					     .peers = find_peers };
	return 0;
}
