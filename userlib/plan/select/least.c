// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The least that a candidate can cost, by the plans of a few ranks: their steps, routes, messages and
 * connections.
 */
#include "plan/select/least.h"

#include <math.h>
#include <stdlib.h>

#include "plan/algo/butterfly_peers.h"
#include "plan/model/walk.h"

#define MOST_MEASURED 4
/* Of so many, plans that send sets of blocks may take half a second each. */
#define MANY_RANKS (1u << 18)

static uint64_t reduced(const struct swc_plan_view *v, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *x = &v->xfers[s->first_xfer + s->nsend];
	uint64_t sum = 0;

	for (uint32_t i = 0; s->kind == SWC_STEP_NET && i < s->nrecv; i++)
		sum += x[i].flags & SWC_XFER_REDUCE ? x[i].nblocks : 0;
	return sum;
}

/* A route, kept for the next message. */
struct last_route {
	uint32_t path, from, to, hops;
	double slowness;
};

/* The links that a message to a node crosses, and how slow the slowest of them is. */
static void find_route(const struct swc_topo *t, struct last_route *r, uint32_t path, uint32_t from,
		       uint32_t to)
{
	struct swc_topo_leg leg[SWC_TOPO_DIMS];
	uint32_t n;

	if (r->hops && r->path == path && r->from == from && r->to == to)
		return;
	*r = (struct last_route){ path, from, to, from != to, 1 };
	if (t->kind == SWC_TOPO_SWITCH || from == to)
		return;
	n = swc_topo_route(t, path, from, to, leg);
	r->hops = 0;
	for (uint32_t i = 0; i < n; i++) {
		r->hops += leg[i].hops;
		r->slowness = fmax(r->slowness, swc_topo_slowness(t, leg[i].dim));
	}
}

/*
 * Of what a step sends: the longest route, and the most blocks to one peer, in units of the fastest
 * links. What goes to a peer stands together.
 */
static double largest(const struct swc_topo *t, const struct swc_plan_view *v,
		      const struct swc_plan_step *s, struct last_route *route, uint32_t *hops)
{
	const struct swc_plan_xfer *x = &v->xfers[s->first_xfer];
	uint32_t from = swc_topo_node_of(t, v->hdr->rank);
	uint64_t sum = 0;
	double most = 0;

	*hops = 0;
	for (uint32_t i = 0; s->kind == SWC_STEP_NET && i < s->nsend; i++) {
		uint32_t to = swc_topo_node_of(t, x[i].rank);
		struct last_route *r = &route[swc_topo_pair(from, to)];

		find_route(t, r, x[i].path, from, to);
		sum = (i && x[i].rank == x[i - 1].rank ? sum : 0) + x[i].nblocks;
		most = fmax(most, (double)sum * r->slowness);
		*hops = r->hops > *hops ? r->hops : *hops;
	}
	return most;
}

/* The latest channel, of all that were looked at, that used a path to a rank: 0 is none. */
struct latest {
	uint32_t *channel, n;
};

/* The connections of the latest channel that a step is the first one to use. */
static uint32_t connected(const struct swc_topo *t, const struct swc_plan_view *v,
			  const struct swc_plan_step *s, struct latest *latest)
{
	const struct swc_plan_xfer *x = &v->xfers[s->first_xfer];
	uint32_t node = swc_topo_node_of(t, v->hdr->rank), n = 0;

	for (uint32_t i = 0; s->kind == SWC_STEP_NET && i < (uint32_t)s->nsend + s->nrecv; i++) {
		uint32_t *last = &latest->channel[(size_t)SWC_TOPO_PATHS * x[i].rank +
						  x[i].path % SWC_TOPO_PATHS];

		n += *last != latest->n && swc_topo_node_of(t, x[i].rank) != node;
		*last = latest->n;
	}
	return n;
}

/*
 * The least cost by the plan of a rank: its steps, its connections, and its largest messages where all
 * cross links.
 */
static void measure(const struct swc_choices *c, const void *plan, struct swc_candidate *cand,
		    struct latest *latest)
{
	struct swc_plan_view v = swc_walk_view(plan);
	struct last_route route[SWC_TOPO_PAIRS] = { 0 };
	uint32_t connections = 0;

	for (uint32_t i = 0; i < v.hdr->nchannels; i++) {
		const struct swc_plan_channel *chan = &v.channels[i];
		uint32_t steps = 0, longest;
		uint64_t sums = 0, hops = 0;
		double blocks = 0;

		latest->n++;
		for (uint32_t k = 0; k < chan->nsteps; k++) {
			const struct swc_plan_step *s = &v.steps[chan->first_step + k];

			blocks += largest(c->topo, &v, s, route, &longest);
			hops += longest;
			sums += reduced(&v, s);
			steps += s->kind == SWC_STEP_NET;
			connections += connected(c->topo, &v, s, latest);
		}
		cand->steps = steps > cand->steps ? steps : cand->steps;
		cand->hops = hops > cand->hops ? hops : cand->hops;
		if ((double)sums / v.nblocks > cand->reduced)
			cand->reduced = (double)sums / v.nblocks;
		if (c->topo->nlocal == 1 && 0.999 * blocks / v.nblocks > cand->load)
			cand->load = 0.999 * blocks / v.nblocks;
	}
	if (connections > cand->connections)
		cand->connections = connections;
}

/* Of folded butterflies, a rank that takes part in all folds and steps: the last one that is not folded. */
static uint32_t busiest(const struct swc_topo *t)
{
	uint32_t coord[SWC_TOPO_DIMS];

	for (uint32_t i = 0; i < t->ndims; i++)
		for (coord[i] = 0; 2 * (coord[i] + 1) <= t->dim[i];)
			coord[i] = 2 * coord[i] + 1;
	return swc_topo_first(t, swc_topo_node_at(t, coord));
}

/*
 * Ranks to measure; returns how many. Those that do not take part in all steps are often the first or the
 * last ones.
 */
static unsigned int find_ranks(const struct swc_topo *t, const struct swc_plan_args *args,
			       uint32_t *rank)
{
	struct swc_butterfly k;
	bool butterfly = swc_butterfly_find(&k, args, t);

	if (butterfly && !k.in_ranges && t->nranks > MANY_RANKS) {
		rank[0] = busiest(t);
		return 1;
	}
	rank[0] = 0;
	rank[1] = t->nranks / 2;
	rank[2] = t->nranks - 1;
	rank[3] = busiest(t);
	return butterfly ? 4 : 3;
}

bool swc_least_measure(const struct swc_choices *c, struct swc_plan_args *args,
		       struct swc_candidate *cand)
{
	uint32_t rank[MOST_MEASURED];
	struct latest latest = { .channel = calloc(args->nranks,
						   SWC_TOPO_PATHS * sizeof(uint32_t)) };
	unsigned int n = find_ranks(c->topo, args, rank);
	bool good = latest.channel;

	for (unsigned int i = 0; good && i < n; i++) {
		size_t bytes;
		void *plan;

		args->rank = rank[i];
		good = !swc_plan_build(args, &plan, &bytes, NULL, 0);
		if (!good)
			break;
		measure(c, plan, cand, &latest);
		cand->bytes = !i || bytes < cand->bytes ? bytes : cand->bytes;
		cand->order_varies |= ((struct swc_plan_header *)plan)->flags &
				      SWC_PLAN_ORDER_VARIES;
		free(plan);
	}
	free(latest.channel);
	return good;
}
