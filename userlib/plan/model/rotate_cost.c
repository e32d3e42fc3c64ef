// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The cost of an all-to-all by rotate without its plans.
 *
 * All members send to those at a distance. Written in the sides as digits, adding a distance to a member's
 * number adds each digit to a coordinate, and a carry from the dimensions behind it. A message goes along
 * the dimensions in their order, so on a line of one dimension those before it have the coordinates of the
 * receiver, and those behind it the coordinates of the sender, on which the carry depends. Hence on each
 * line every coordinate sends over the same offset, digit and carry. On a mesh, h of d then puts up to
 * min(h, d - h) messages on a link either way, all offsets most in the middle; on a torus h or d - h on all,
 * one way, which is up if both are equally long. But messages for which that is so in their first dimension and in
 * their last one go down from a higher number to a lower one. The steps that have some are few: one on a torus of two
 * dimensions. Of these all messages are counted one by one.
 */
#include "plan/model/rotate_cost.h"

#include <errno.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/algo/rotate.h"
#include "plan/model/loads.h"

/* Messages that are counted one by one, which takes some 0.1 us each: more are left to a sample of plans. */
#define MOST_COUNTED (1u << 18)

/**
 * struct shape - the network
 * @behind: by dimension: the nodes of the dimensions behind it, which its stride is
 * @loads: for steps whose messages are counted one by one; open if there have been some
 */
struct shape {
	const struct swc_topo *topo;
	uint32_t behind[SWC_TOPO_DIMS];
	struct swc_loads loads;
};

/* The offset on a line of the dimension, where the dimensions behind it have this number at the sender. */
static uint32_t offset(const struct shape *s, uint32_t dim, uint32_t distance, uint32_t at)
{
	uint32_t behind = s->behind[dim];

	return (distance / behind + (at + distance % behind >= behind)) % s->topo->dim[dim];
}

/* The messages on the busiest link of such a line. */
static uint32_t busiest(const struct shape *s, uint32_t dim, const uint32_t *distance, uint32_t n,
			uint32_t at)
{
	uint32_t d = s->topo->dim[dim], up = 0, down = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t h = offset(s, dim, distance[i], at);
		bool mesh = s->topo->kind == SWC_TOPO_MESH;

		up += 2 * h <= d ? h : mesh ? d - h : 0;
		down += 2 * h > d ? d - h : mesh ? h : 0;
	}
	return up > down ? up : down;
}

/* The load of the step's busiest link. Lines differ where one of the distances begins to carry. */
static double find_load(const struct shape *s, const uint32_t *distance, uint32_t n)
{
	double most = 0;

	for (uint32_t dim = 0; dim < s->topo->ndims; dim++) {
		uint32_t behind = s->behind[dim], load = busiest(s, dim, distance, n, 0);

		for (uint32_t i = 0; i < n; i++) {
			uint32_t at = behind - 1 - (distance[i] + behind - 1) % behind;
			uint32_t other = busiest(s, dim, distance, n, at);

			load = other > load ? other : load;
		}
		if (load * swc_topo_slowness(s->topo, dim) > most)
			most = load * swc_topo_slowness(s->topo, dim);
	}
	return most;
}

/* May this be half of the dimension, or nothing, for members that add a carry and for those that do not? */
static bool may_be(const struct shape *s, uint32_t dim, uint32_t distance, uint32_t h)
{
	uint32_t d = s->topo->dim[dim], digit = distance / s->behind[dim] % d;

	return digit == h || (digit + 1) % d == h;
}

/* Are both ways equally long, for some members, in the first and in the last dimension of the distance? */
static bool may_turn(const struct shape *s, uint32_t distance)
{
	const struct swc_topo *t = s->topo;
	uint32_t last = t->ndims - 1;

	while (distance / s->behind[last] % t->dim[last] == 0)
		last--;
	if (t->kind == SWC_TOPO_MESH ||
	    distance / s->behind[last] % t->dim[last] * 2 != t->dim[last])
		return false;
	for (uint32_t i = 0; i < last; i++) {
		if (t->dim[i] % 2 == 0 && may_be(s, i, distance, t->dim[i] / 2))
			return true;
		if (!may_be(s, i, distance, 0))
			return false;
	}
	return false;
}

static void count_message(struct swc_loads *l, uint32_t from, uint32_t to)
{
	const struct swc_topo *t = l->topo;
	struct swc_topo_leg leg[SWC_TOPO_DIMS];
	uint32_t n = swc_topo_route(t, swc_topo_path(t, 0, from, to), from, to, leg);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t d = t->dim[leg[i].dim], stride = l->stride[leg[i].dim];
		uint32_t x = from / stride % d;
		uint32_t y = (x + (leg[i].down ? d - leg[i].hops : leg[i].hops)) % d;
		struct swc_span span = swc_span_of(t, &leg[i], x);

		from -= x * stride;
		swc_loads_add(l, 0, &span, from, 1);
		from += y * stride;
	}
}

/* Are there too many messages to count? */
static bool too_many(const struct shape *s)
{
	uint32_t n = s->topo->nnodes, distance[SWC_ROTATE_PEERS], counted = 0;

	for (uint32_t near = 1; near <= n / 2; near += SWC_ROTATE_PEERS / 2) {
		uint32_t peers = swc_rotate_distances(n, near, distance);
		bool turn = false;

		for (uint32_t i = 0; i < peers; i++)
			turn |= may_turn(s, distance[i]);
		counted += turn ? n * peers : 0;
		if (counted > MOST_COUNTED)
			return true;
	}
	return false;
}

/* The load of the step's busiest link, by all its messages. */
static int count_load(struct shape *s, const uint32_t *distance, uint32_t n, double *load)
{
	uint32_t nodes = s->topo->nnodes;
	int ret = 0;

	if (s->loads.load)
		memset(s->loads.load, 0, 2ull * s->topo->ndims * nodes * sizeof(*s->loads.load));
	else
		ret = swc_loads_open(&s->loads, s->topo, 1);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t m = 0; m < nodes; m++)
			count_message(&s->loads, m, (m + distance[i]) % nodes);
	*load = swc_loads_peak(&s->loads, 0);
	return 0;
}

/*
 * The longest route of a distance, from the last dimension on: with a carry into the next one, and without.
 * On a mesh, a coordinate that carries goes back.
 */
static uint32_t find_hops(const struct shape *s, uint32_t distance)
{
	/* Routes so far, and one more: 0 is none. */
	uint32_t most[2] = { 1, 0 };

	for (uint32_t dim = s->topo->ndims; dim-- > 0;) {
		uint32_t d = s->topo->dim[dim], next[2] = { 0, 0 };
		uint32_t digit = distance / s->behind[dim] % d;

		for (uint32_t in = 0; in < 2; in++)
			for (uint32_t out = 0; out < 2 && most[in]; out++) {
				uint32_t h = digit + in, hops = out ? d - h : h;

				if (out ? h < 1 : h > d - 1)
					continue;
				if (s->topo->kind != SWC_TOPO_MESH && 2 * hops > d)
					hops = d - hops;
				hops += most[in];
				next[out] = hops > next[out] ? hops : next[out];
			}
		most[0] = next[0];
		most[1] = next[1];
	}
	return (most[0] > most[1] ? most[0] : most[1]) - 1;
}

static bool has_cost(const struct swc_plan_args *a)
{
	const struct swc_topo *t = a->topo;

	if (!t || a->given || a->algo != SWC_ALGO_ROTATE || a->coll != SWC_ALLTOALL ||
	    a->in_place || a->channels > 1 || t->kind == SWC_TOPO_SWITCH || t->nslow ||
	    t->nnodes < 2 || t->nnodes != t->nranks)
		return false;
	/* A step, and a range that is sent and received, for each: surely not too long. */
	return t->nnodes * (sizeof(struct swc_plan_step) + 2 * sizeof(struct swc_plan_xfer)) +
		       1024 <=
	       SWC_MAX_PLAN_BYTES;
}

/*
 * Messages to and from a member take different paths if it differs in several dimensions, and if both ways are
 * equally long.
 */
static uint32_t count_connections(const struct swc_topo *t)
{
	uint32_t n = 2 * (t->nnodes - 1);

	for (uint32_t i = 0; i < t->ndims; i++)
		n -= t->kind == SWC_TOPO_MESH ? t->dim[i] - 1 : (t->dim[i] - 1) / 2 * 2;
	return n;
}

static int add_step(struct shape *s, const uint32_t *distance, uint32_t peers,
		    struct swc_cost *cost)
{
	uint32_t hops = 0;
	bool turn = false;
	double load;
	int ret = 0;

	for (uint32_t i = 0; i < peers; i++) {
		uint32_t h = find_hops(s, distance[i]);

		hops = h > hops ? h : hops;
		turn |= may_turn(s, distance[i]);
	}
	if (turn)
		ret = count_load(s, distance, peers, &load);
	else
		load = find_load(s, distance, peers);
	if (ret)
		return ret;
	cost->eager.steps++;
	cost->eager.hops += hops;
	cost->eager.load += load / s->topo->nnodes;
	cost->extra += peers - 1;
	return 0;
}

int swc_rotate_cost(const struct swc_plan_args *args, struct swc_cost *cost)
{
	const struct swc_topo *t = args->topo;
	struct shape s = { .topo = t };
	uint32_t n, stride = 1, distance[SWC_ROTATE_PEERS];
	int ret = 0;

	if (!has_cost(args))
		return -EOPNOTSUPP;
	n = t->nnodes;
	for (uint32_t i = t->ndims; i-- > 0; stride *= t->dim[i])
		s.behind[i] = stride;
	if (too_many(&s))
		return -EOPNOTSUPP;
	*cost = (struct swc_cost){
		.copy_steps = 1, .copies = 1, .copied = 1.0 / n, .connections = count_connections(t)
	};
	for (uint32_t near = 1; !ret && near <= n / 2; near += SWC_ROTATE_PEERS / 2) {
		uint32_t peers = swc_rotate_distances(n, near, distance);

		ret = add_step(&s, distance, peers, cost);
	}
	swc_loads_free(&s.loads);
	cost->phased = cost->eager;
	cost->psi_xi = cost->phased.load * t->ndims;
	return ret;
}
