// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The cost of trees without their plans: the messages along all edges, each at the time at which both ends have
 * reached it, as the step model finds them; those of Bine trees also by rounds. A sample of plans shows neither
 * which edges share links nor when.
 */
#include "plan/model/tree_cost.h"

#include <errno.h>
#include <stdlib.h>

#include "kmod/core/plan_check.h"
#include "plan/algo/bine.h"
#include "plan/algo/tree.h"
#include "plan/model/loads.h"

/* Times beyond the rounds, in which all members with a message take it together. */
#define MORE_TIMES 4

/**
 * struct route - from a member to its parent, or back
 * @n: legs; 0: not known
 * @base: by leg: the first node of its line
 */
struct route {
	uint32_t n, hops, path, base[SWC_TOPO_DIMS];
	struct swc_span span[SWC_TOPO_DIMS];
};

/**
 * struct sums - a computation
 * @loads: by time; @by_round: by round, of Bine trees
 * @up, @down: does the collective go there? @shards: with the shards of all below
 * @times: how many there are
 * @ready: by member, when it begins its next step of the channel
 * @parent, @depth: by member; @children: how many it has; @below: members below it, with itself
 * @time: by member, of its message with its parent now
 * @conns: by member
 * @reduced: blocks of a channel, at most
 * @route: by member, up, and behind them down
 */
struct sums {
	const struct swc_plan_args *args;
	const struct swc_topo *topo;
	struct swc_loads loads, by_round;
	struct swc_bine bine;
	bool up, down, shards, overdue;
	uint32_t chan, times, reduced;
	uint32_t *ready, *parent, *depth, *children, *below, *time, *conns;
	struct route *route;
};

static void find_route(struct sums *u, struct route *r, uint32_t from, uint32_t to, bool up)
{
	bool back = !up && !u->shards && u->args->algo == SWC_ALGO_TREE;
	const struct swc_topo *t = u->topo;
	struct swc_topo_leg leg[SWC_TOPO_DIMS];

	r->n = r->hops = 1;
	if (t->kind == SWC_TOPO_SWITCH)
		return;
	r->path = (back ? swc_topo_path_back : swc_topo_path)(t, u->chan, from, to);
	r->n = swc_topo_route(t, r->path, from, to, leg);
	r->hops = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t stride = u->loads.stride[leg[i].dim], d = t->dim[leg[i].dim];
		uint32_t x = from / stride % d;
		uint32_t y = x + (leg[i].down ? d - leg[i].hops : leg[i].hops);

		r->base[i] = from - x * stride;
		r->span[i] = swc_span_of(t, &leg[i], x);
		r->hops += leg[i].hops;
		from = r->base[i] + (y < d ? y : y - d) * stride;
	}
}

static void add_message(struct swc_loads *l, uint32_t time, const struct route *r, uint32_t from,
			uint32_t to, uint32_t blocks)
{
	if (r->hops > l->hops[time])
		l->hops[time] = r->hops;
	if (l->topo->kind == SWC_TOPO_SWITCH) {
		swc_loads_add_switched(l, time, from, to, (int32_t)blocks);
		return;
	}
	for (uint32_t i = 0; i < r->n; i++)
		swc_loads_add(l, time, &r->span[i], r->base[i], (int32_t)blocks);
}

/* A message of a block, or of shards, between a member and its parent. */
static void send(struct sums *u, uint32_t member, bool up, uint32_t time)
{
	uint32_t from = up ? member : u->parent[member], to = up ? u->parent[member] : member;
	uint32_t blocks = u->shards ? u->below[member] : 1;
	struct route *r = &u->route[member + (up ? 0 : u->topo->nnodes)];

	if (time >= u->loads.times) {
		u->overdue = true;
		return;
	}
	if (!r->n)
		find_route(u, r, from, to, up);
	u->times = time >= u->times ? time + 1 : u->times;
	add_message(&u->loads, time, r, from, to, blocks);
	if (u->by_round.load)
		add_message(&u->by_round,
			    up ? u->depth[member] : u->bine.steps - 1 - u->depth[member], r, from,
			    to, blocks);
}

/* The connections of a channel: two between members whose messages take different paths there and back. */
static void count_connections(struct sums *u)
{
	for (uint32_t m = 0; m < u->topo->nnodes; m++) {
		const struct route *up = &u->route[m], *down = up + u->topo->nnodes;
		uint32_t n = (up->n > 0) + (down->n > 0 && !(up->n && up->path == down->path));

		u->conns[m] += n;
		u->conns[u->parent[m]] += n;
	}
}

static uint32_t later(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* ---- tree ---- */

static uint32_t member_of(const struct sums *u, uint32_t v)
{
	return (u->args->root + v) % u->topo->nnodes;
}

/* Sums: one step receives from all children, the next one sends. Children have higher numbers. */
static void go_up(struct sums *u)
{
	for (uint32_t v = u->topo->nnodes - 1; v > 0; v--) {
		uint32_t m = member_of(u, v), p = u->parent[m], time = u->ready[m];

		send(u, m, true, time);
		u->ready[m] = time + 1;
		u->ready[p] = later(u->ready[p], time + 1);
		u->reduced = later(u->reduced, ++u->children[p]);
	}
}

/* Those of a step down. The shards of each child go in a step of their own, most of them first. */
static uint32_t children_of(const struct sums *u, uint32_t v, uint32_t k, uint32_t child[2])
{
	uint32_t n = u->topo->nnodes, end = 1;

	if (!u->shards)
		return swc_tree_children(n, v, k, child);
	while (end < n - v && !(v & end))
		end *= 2;
	child[0] = v + (end >> (k + 1));
	return k < 31 && end >> (k + 1) ? 1 : UINT32_MAX;
}

static void go_down(struct sums *u)
{
	uint32_t n = u->topo->nnodes, child[2], nchildren;

	for (uint32_t v = 0; v < n; v++) {
		uint32_t m = member_of(u, v);

		for (uint32_t k = 0; (nchildren = children_of(u, v, k, child)) != UINT32_MAX; k++) {
			uint32_t begin = u->ready[m];

			for (uint32_t i = 0; i < nchildren; i++) {
				uint32_t c = member_of(u, child[i]),
					 time = later(begin, u->ready[c]);

				send(u, c, false, time);
				u->ready[c] = time + 1;
				u->ready[m] = later(u->ready[m], time + 1);
			}
		}
	}
}

static void run_tree(struct sums *u)
{
	for (uint32_t v = u->topo->nnodes; v-- > 0;) {
		uint32_t m = member_of(u, v), p = member_of(u, v & (v - !!v));

		u->parent[m] = p;
		u->below[m]++;
		u->below[p] += v ? u->below[m] : 0;
	}
	if (u->up)
		go_up(u);
	if (u->down)
		go_down(u);
	count_connections(u);
}

/* ---- dtree ---- */

/*
 * Step s of a member at depth d is of the same stage, s - d, at both ends of its messages: see pipeline() in
 * tree.c. In a stage piece stage + d of a parent at depth d comes up, and piece stage - 1 - d goes down.
 */
static void run_stage(struct sums *u, int64_t stage, uint32_t pieces)
{
	uint32_t n = u->topo->nnodes;

	for (uint32_t m = 0; m < n; m++) {
		uint32_t p = u->parent[m], d = u->depth[p];

		u->time[m] = UINT32_MAX;
		if (p == m)
			continue;
		if ((u->up && stage + d >= 0 && stage + d < pieces) ||
		    (u->down && stage - 1 - d >= 0 && stage - 1 - d < pieces))
			u->time[m] = later(u->ready[m], u->ready[p]);
	}
	for (uint32_t m = 0; m < n; m++) {
		uint32_t p = u->parent[m], d = u->depth[p], time = u->time[m];

		if (time == UINT32_MAX)
			continue;
		if (u->up && stage + d >= 0 && stage + d < pieces)
			send(u, m, true, time);
		if (u->down && stage - 1 - d >= 0 && stage - 1 - d < pieces)
			send(u, m, false, time);
		u->ready[m] = later(u->ready[m], time + 1);
		u->ready[p] = later(u->ready[p], time + 1);
	}
}

static void run_dtree(struct sums *u)
{
	uint32_t pieces = swc_dtree_pieces(u->args), n = u->topo->nnodes;

	for (u->chan = 0; u->chan < 2; u->chan++) {
		int64_t deepest = 0;

		for (uint32_t m = 0; m < n; m++) {
			u->ready[m] = u->children[m] = 0;
			u->route[m].n = u->route[n + m].n = 0;
		}
		for (uint32_t m = 0; m < n; m++) {
			u->parent[m] = swc_dtree_parent(u->args, u->chan, m, &u->depth[m]);
			deepest = u->depth[m] > deepest ? u->depth[m] : deepest;
			if (u->up && u->parent[m] != m)
				u->reduced = later(u->reduced,
						   ++u->children[u->parent[m]] * pieces);
		}
		for (int64_t stage = -deepest; stage <= pieces + deepest; stage++)
			run_stage(u, stage, pieces);
		count_connections(u);
	}
}

/* ---- Bine trees ---- */

/*
 * All who have the same step take it together: @depth is the step in which a member's sum goes up, from 0. A
 * reduction receives from all children in one step, a broadcast sends to one child in a step.
 */
static void run_bine_step(struct sums *u, uint32_t step)
{
	for (uint32_t m = 0; m < u->topo->nnodes; m++) {
		uint32_t p = u->parent[m], time;

		if (u->depth[m] != step || p == m)
			continue;
		time = u->up ? u->ready[m] : later(u->ready[m], u->ready[p]);
		send(u, m, u->up, time);
		u->ready[m] = later(u->ready[m], time + 1);
		u->ready[p] = later(u->ready[p], time + 1);
		if (u->up)
			u->reduced = later(u->reduced, ++u->children[p]);
	}
}

static void run_bine(struct sums *u, uint32_t ports)
{
	uint32_t n = u->topo->nnodes, steps = u->bine.steps;

	for (u->chan = 0; u->chan < ports; u->chan++) {
		for (uint32_t m = 0; m < n; m++) {
			struct swc_bine_member place;

			swc_bine_place(&u->bine, u->chan, m, &place);
			u->parent[m] = swc_bine_parent(&u->bine, m, &place);
			u->depth[m] = place.up;
			u->ready[m] = u->children[m] = 0;
			u->below[m] = 1;
			u->route[m].n = u->route[n + m].n = 0;
		}
		for (uint32_t s = 0; s < steps && u->shards; s++)
			for (uint32_t m = 0; m < n; m++)
				u->below[u->parent[m]] += u->depth[m] == s ? u->below[m] : 0;
		for (uint32_t s = 0; s < steps; s++)
			run_bine_step(u, u->up ? s : steps - 1 - s);
		count_connections(u);
	}
}

/* ---- all ---- */

static struct swc_timing timing_of(struct swc_loads *l, uint32_t times, double all)
{
	struct swc_timing t = { .steps = times };

	for (uint32_t k = 0; k < times; k++) {
		t.hops += l->hops[k];
		t.load += swc_loads_peak(l, k) / all;
	}
	return t;
}

static void add_up(struct sums *u, double blocks, struct swc_cost *cost)
{
	uint32_t rails = swc_topo_rails_per_rank(u->topo);
	double all = blocks * rails * (u->shards ? u->topo->nnodes : 1);

	*cost = (struct swc_cost){ .eager = timing_of(&u->loads, u->times, all),
				   .reduced = u->shards ? 0 : u->reduced / all };
	for (uint32_t m = 0; m < u->topo->nnodes; m++)
		cost->connections = later(cost->connections, u->conns[m] * rails);
	cost->phased = u->by_round.load ? timing_of(&u->by_round, u->bine.steps, all) : cost->eager;
	cost->psi_xi = cost->phased.load * u->topo->ndims;
}

static int open_sums(struct sums *u, const struct swc_plan_args *args, uint32_t times)
{
	size_t n = args->topo->nnodes;
	int ret = swc_loads_open(&u->loads, args->topo, times);

	if (ret)
		return ret;
	u->ready = calloc(n, sizeof(*u->ready));
	u->parent = calloc(n, sizeof(*u->parent));
	u->depth = calloc(n, sizeof(*u->depth));
	u->children = calloc(n, sizeof(*u->children));
	u->below = calloc(n, sizeof(*u->below));
	u->time = calloc(n, sizeof(*u->time));
	u->conns = calloc(n, sizeof(*u->conns));
	u->route = calloc(n, 2 * sizeof(*u->route));
	return u->ready && u->parent && u->depth && u->children && u->below && u->time &&
			       u->conns && u->route
		       ? 0
		       : -ENOMEM;
}

static void close_sums(struct sums *u)
{
	swc_loads_free(&u->loads);
	swc_loads_free(&u->by_round);
	free(u->ready);
	free(u->parent);
	free(u->depth);
	free(u->children);
	free(u->below);
	free(u->time);
	free(u->conns);
	free(u->route);
}

/* The rounds of a tree; 0 if it is none, or there is none. */
static uint32_t rounds_of(struct sums *u)
{
	const struct swc_plan_args *a = u->args;
	uint32_t dim;

	switch (a->algo) {
	case SWC_ALGO_TREE:
		return swc_tree_rounds(a);
	case SWC_ALGO_DTREE:
		return swc_dtree_pieces(a) ? swc_dtree_rounds(a) : 0;
	case SWC_ALGO_BINE:
		return swc_bine_find(&u->bine, u->topo, a->root, &dim) ? 0 : u->bine.steps;
	default:
		return 0;
	}
}

static int run(struct sums *u, uint32_t rounds, struct swc_cost *cost)
{
	const struct swc_topo *t = u->topo;
	uint32_t ports = t->kind == SWC_TOPO_SWITCH ? 1 : 2 * t->ndims;
	int ret = open_sums(u, u->args, MORE_TIMES + rounds);

	if (!ret && u->args->algo == SWC_ALGO_BINE)
		ret = swc_loads_open(&u->by_round, t, rounds);
	if (ret)
		return ret;
	switch (u->args->algo) {
	case SWC_ALGO_TREE:
		run_tree(u);
		add_up(u, 1, cost);
		break;
	case SWC_ALGO_DTREE:
		run_dtree(u);
		add_up(u, 2.0 * swc_dtree_pieces(u->args), cost);
		break;
	default:
		run_bine(u, ports);
		add_up(u, ports, cost);
	}
	return u->overdue ? -EOPNOTSUPP : 0;
}

int swc_tree_cost(const struct swc_plan_args *args, struct swc_cost *cost)
{
	const struct swc_topo *t = args->topo;
	struct sums *u;
	uint32_t rounds;
	int ret = -EOPNOTSUPP;

	if (!t || args->given || args->ports || args->channels || t->nslow ||
	    t->nnodes != t->nranks || t->nnodes < 2 || args->coll == SWC_ALLTOALL ||
	    !(args->algo < SWC_ALGO_NR && swc_algo_info(args->algo)->colls & 1u << args->coll))
		return ret;
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->args = args;
	u->topo = t;
	u->shards = args->coll == SWC_GATHER || args->coll == SWC_SCATTER;
	u->up = args->coll != SWC_BROADCAST && args->coll != SWC_SCATTER;
	u->down = args->coll != SWC_REDUCE && args->coll != SWC_GATHER;
	rounds = rounds_of(u);
	if (rounds)
		ret = run(u, rounds, cost);
	close_sums(u);
	free(u);
	return ret;
}
