// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The messages of butterflies, as butterfly.c, butterfly_sets.c and bine_alltoall.c have them in the plans of
 * all members, told line by line.
 *
 * Sets of blocks are products: of a block's coordinates, that of the step's dimension is one of those that
 * the line sends, and each other one is held. How many a coordinate of a line sends in a step, and how many
 * it holds, has a closed form: in Swing it is the same for all but the odd one, in recursive doubling it is
 * the size of a residue class. The blocks on the paths from a root are products, too.
 *
 * Where messages are ranges, members that are folded away are left out by a factor of 0.
 *
 * In an all-to-all each member has as many pieces at any time, and sends those of its own coordinate of a
 * line, and of the others, that take a path over the step.
 */
#include "plan/algo/butterfly_rounds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/table.h"

static uint32_t *factors(struct swc_butterfly_rounds *r, uint32_t dim)
{
	uint32_t *f = r->factor + r->used;

	r->used += r->topo->dim[dim];
	return f;
}

static uint32_t *all_of(struct swc_butterfly_rounds *r, uint32_t dim, uint32_t value)
{
	uint32_t *f = factors(r, dim);

	for (uint32_t x = 0; x < r->topo->dim[dim]; x++)
		f[x] = value;
	return f;
}

static bool add_exchange(struct swc_butterfly_rounds *r, struct swc_exchange x)
{
	if (!x.units)
		return true;
	if (!swc_table_reserve(&r->exchange, r->nexchanges, &r->room, sizeof(*r->exchange)))
		return false;
	r->exchange[r->nexchanges++] = x;
	return true;
}

/* ---- sets of blocks ---- */

/* Numbers below @n that leave the remainder @rest. */
static uint32_t count_class(uint32_t n, uint32_t rest, uint32_t modulus)
{
	return n > rest ? (n - 1 - rest) / modulus + 1 : 0;
}

/* How many blocks x sends to y in step k of recursive doubling. */
static uint32_t doubled(const struct swc_line *l, uint32_t x, uint32_t y, uint32_t k)
{
	uint32_t fold = l->d - l->m, bit, modulus, rest;

	if (x >= l->m)
		return k ? 0 : l->d - 1;
	if (y >= l->m)
		return k > l->log;
	bit = 1u << (k - !!fold);
	modulus = 2 * bit;
	rest = (x ^ bit) % modulus;
	/* Each coordinate stands for the one that is folded onto it, too. */
	return l->m / modulus + count_class(l->m, rest, modulus) -
	       count_class(l->m - fold, rest, modulus);
}

/* Of the blocks that coordinate 0 sends, those of each step of Swing. */
static void count_steps(const struct swc_line *l, uint32_t *count)
{
	memset(count, 0, SWC_BUTTERFLY_STEPS * sizeof(*count));
	for (uint32_t y = 1; y < l->m; y++)
		count[l->when[y]]++;
}

/**
 * struct moves - the paths from a root along a line of Swing
 * @from: by step and coordinate: those that go on from there, but for the odd one's
 * @odd: likewise: the path between it and the odd one; either is the root
 */
struct moves {
	uint32_t root, *from;
	bool *odd;
};

static void find_moves(const struct swc_line *l, struct moves *m)
{
	for (uint32_t y = 0; y < l->d; y++) {
		uint32_t k, next;

		for (uint32_t x = m->root; x != y; x = next) {
			k = swc_line_when(l, x, y);
			next = swc_line_receiver(l, x, y, k);
			if (swc_line_odd_one(l, x) || swc_line_odd_one(l, next))
				m->odd[x == l->m ? next : x] = true;
			else
				m->from[(size_t)k * l->d + x]++;
		}
	}
}

static uint32_t moved(const struct swc_line *l, const struct moves *m, uint32_t x, uint32_t y,
		      uint32_t k)
{
	if (swc_line_odd_one(l, x) || swc_line_odd_one(l, y))
		return x == m->root && m->odd[x == l->m ? y : x];
	return m->from[(size_t)k * l->d + x];
}

/* The exchanges of a step of a line. */
static bool list_step(struct swc_butterfly_rounds *r, const struct swc_line *l, uint32_t k,
		      const uint32_t *count, const struct moves *m)
{
	bool good = true;
	uint32_t y;

	for (uint32_t x = 0; x < l->d; x++)
		for (uint32_t i = 0; good && (y = swc_line_peer(l, x, k, i)) < l->d; i++) {
			struct swc_exchange e = { .from = x, .to = y };

			if (!l->swing)
				e.units = doubled(l, x, y, k);
			else if (swc_line_odd_one(l, x) || swc_line_odd_one(l, y))
				e.units = 1;
			else
				e.units = count[k];
			e.less = m->from ? moved(l, m, x, y, k) : 0;
			good = add_exchange(r, e);
		}
	return good;
}

/**
 * struct line_state - a line between two of its steps
 * @held, @stay: factors: blocks that a coordinate has not sent, and paths that are at it
 */
struct line_state {
	uint32_t count[SWC_BUTTERFLY_STEPS];
	struct moves moves;
	const uint32_t *held, *stay;
};

/* Go on to the next step of a line: what its members hold then. */
static void advance(struct swc_butterfly_rounds *r, uint32_t dim, struct line_state *s,
		    const struct swc_butterfly_round *round)
{
	size_t bytes = r->topo->dim[dim] * sizeof(uint32_t);
	uint32_t *held = memcpy(factors(r, dim), s->held, bytes);
	uint32_t *stay = s->stay ? memcpy(factors(r, dim), s->stay, bytes) : NULL;

	for (uint32_t i = 0; i < round->n; i++) {
		const struct swc_exchange *e = &r->exchange[round->first + i];

		held[e->from] -= e->units;
		if (!stay)
			continue;
		stay[e->from] -= e->less;
		stay[e->to] += e->less;
	}
	s->held = held;
	s->stay = stay;
}

static int open_states(struct swc_butterfly_rounds *r, struct line_state *state, bool paths)
{
	for (uint32_t j = 0; j < r->lines.ndims; j++) {
		const struct swc_line *l = &r->lines.line[j];
		struct line_state *s = &state[j];

		if (l->swing && l->nsteps)
			count_steps(l, s->count);
		s->held = all_of(r, j, l->d);
		if (!paths)
			continue;
		((uint32_t *)(s->stay = all_of(r, j, 0)))[r->root[j]] = l->d;
		s->moves.root = r->root[j];
		s->moves.from = calloc((size_t)l->nsteps * l->d + 1, sizeof(uint32_t));
		s->moves.odd = calloc(l->d, sizeof(bool));
		if (!s->moves.from || !s->moves.odd)
			return -ENOMEM;
		find_moves(l, &s->moves);
	}
	return 0;
}

/* The round that has only what is on the paths. */
static bool add_path_round(struct swc_butterfly_rounds *r, const struct swc_butterfly_round *of,
			   bool back)
{
	struct swc_butterfly_round *to = &r->round[r->n];

	*to = *of;
	to->back = back;
	to->reduces = false;
	to->first = r->nexchanges;
	for (uint32_t i = 0; i < of->n; i++) {
		struct swc_exchange e = r->exchange[of->first + i];

		e.units = e.less;
		if (!add_exchange(r, e))
			return false;
	}
	to->n = r->nexchanges - to->first;
	memcpy(to->weight, of->less, sizeof(to->weight));
	memset(to->less, 0, sizeof(to->less));
	r->n++;
	return true;
}

/* Put the phases of a collective together, from the rounds of its reduce-scatter. */
static int add_phases(struct swc_butterfly_rounds *r, const struct swc_butterfly_round *rs,
		      uint32_t n)
{
	bool good = true;

	for (uint32_t s = 0; s < n && r->coll != SWC_ALLGATHER && good; s++) {
		if (r->coll == SWC_BROADCAST) {
			good = add_path_round(r, &rs[s], false);
			continue;
		}
		r->round[r->n] = rs[s];
		r->round[r->n].reduces = true;
		memset(r->round[r->n++].less, 0, sizeof(rs->less));
	}
	for (uint32_t s = n; s-- > 0 && r->coll != SWC_REDUCE_SCATTER && good;) {
		if (r->coll == SWC_REDUCE) {
			good = add_path_round(r, &rs[s], true);
			continue;
		}
		r->round[r->n] = rs[s];
		r->round[r->n++].back = true;
	}
	return good ? 0 : -ENOMEM;
}

static int set_sets(struct swc_butterfly_rounds *r)
{
	struct line_state state[SWC_TOPO_DIMS] = { 0 };
	struct swc_butterfly_round rs[SWC_BUTTERFLY_STEPS];
	int ret = open_states(r, state, swc_coll_has_root(r->coll));

	for (uint32_t s = 0; s < r->lines.steps && !ret; s++) {
		struct swc_turn t = r->lines.turn[s];

		rs[s] = (struct swc_butterfly_round){ .dim = t.dim,
						      .first = r->nexchanges,
						      .blocks = 1 };
		if (!list_step(r, &r->lines.line[t.dim], t.step, state[t.dim].count,
			       &state[t.dim].moves))
			ret = -ENOMEM;
		rs[s].n = r->nexchanges - rs[s].first;
		for (uint32_t j = 0; j < r->lines.ndims; j++) {
			rs[s].weight[j] = state[j].held;
			rs[s].less[j] = state[j].stay;
		}
		if (!ret)
			advance(r, t.dim, &state[t.dim], &rs[s]);
	}
	if (!ret)
		ret = add_phases(r, rs, r->lines.steps);
	for (uint32_t j = 0; j < r->lines.ndims; j++) {
		free(state[j].moves.from);
		free(state[j].moves.odd);
	}
	return ret;
}

/* ---- all-to-all ---- */

/* Of the pieces of a member, how many take a path over each step of a line of even size. */
static void count_paths(const struct swc_line *l, uint32_t *count)
{
	memset(count, 0, SWC_BUTTERFLY_STEPS * sizeof(*count));
	for (uint32_t y = 1; y < l->d; y++)
		for (uint32_t x = 0; x != y;) {
			uint32_t k = swc_line_when(l, x, y);

			count[k]++;
			x = swc_line_receiver(l, x, y, k);
		}
}

static int set_alltoall(struct swc_butterfly_rounds *r)
{
	uint32_t count[SWC_TOPO_DIMS][SWC_BUTTERFLY_STEPS];
	const uint32_t *one[SWC_TOPO_DIMS] = { NULL };

	for (uint32_t j = 0; j < r->lines.ndims; j++) {
		count_paths(&r->lines.line[j], count[j]);
		one[j] = all_of(r, j, 1);
	}
	for (uint32_t s = 0; s < r->lines.steps; s++) {
		struct swc_turn t = r->lines.turn[s];
		const struct swc_line *l = &r->lines.line[t.dim];
		struct swc_butterfly_round *to = &r->round[r->n++];

		*to = (struct swc_butterfly_round){ .dim = t.dim,
						    .first = r->nexchanges,
						    .blocks = r->topo->nnodes / l->d };
		memcpy(to->weight, one, sizeof(to->weight));
		for (uint32_t x = 0; x < l->d; x++)
			if (!add_exchange(
				    r, (struct swc_exchange){ .from = x,
							      .to = swc_line_peer(l, x, t.step, 0),
							      .units = count[t.dim][t.step] }))
				return -ENOMEM;
		to->n = r->nexchanges - to->first;
	}
	return 0;
}

/* ---- ranges of blocks ---- */

/**
 * struct ranges - of a port
 * @m: sizes, rounded down to powers of two
 * @one, @core: factors: all coordinates, and those below m
 */
struct ranges {
	uint32_t m[SWC_TOPO_DIMS];
	const uint32_t *one[SWC_TOPO_DIMS], *core[SWC_TOPO_DIMS];
	struct swc_turn turn[SWC_BUTTERFLY_STEPS];
	uint32_t steps;
};

/* Append a round that exchanges what another one did, in its reverse. */
static void repeat_back(struct swc_butterfly_rounds *r, uint32_t of)
{
	struct swc_butterfly_round *to = &r->round[r->n++];

	*to = r->round[of];
	to->back = true;
	to->reduces = false;
}

static bool add_folds(struct swc_butterfly_rounds *r, const struct ranges *g, uint32_t port)
{
	uint32_t ndims = r->topo->ndims;
	bool good = true;

	for (uint32_t i = 0; i < ndims && good; i++) {
		struct swc_butterfly_round *to = &r->round[r->n++];
		uint32_t dim = (port + i) % ndims, m = g->m[dim], d = r->topo->dim[dim];

		*to = (struct swc_butterfly_round){ .dim = dim,
						    .first = r->nexchanges,
						    .reduces = true,
						    .blocks = 1u << r->kind.scatter };
		memcpy(to->weight, g->one, sizeof(to->weight));
		for (uint32_t k = 0; k < i; k++)
			to->weight[(port + k) % ndims] = g->core[(port + k) % ndims];
		for (uint32_t x = m; x < d && good; x++)
			good = add_exchange(r, (struct swc_exchange){
						       .from = x, .to = x - (d - m), .units = 1 });
		to->n = r->nexchanges - to->first;
	}
	return good;
}

static bool add_turn(struct swc_butterfly_rounds *r, const struct ranges *g, uint32_t s,
		     bool mirror)
{
	struct swc_butterfly_round *to = &r->round[r->n++];
	uint32_t dim = g->turn[s].dim;
	bool swaps = s >= r->kind.scatter, good = true;

	*to = (struct swc_butterfly_round){ .dim = dim,
					    .first = r->nexchanges,
					    .reduces = true,
					    .blocks = swaps ? 1 : 1u << (r->kind.scatter - s - 1) };
	memcpy(to->weight, g->core, sizeof(to->weight));
	for (uint32_t x = 0; x < g->m[dim] && good; x++)
		good = add_exchange(r, (struct swc_exchange){
					       .from = x,
					       .to = swc_range_peer(r->kind.swing, mirror, swaps,
								    g->m[dim], x, g->turn[s].step),
					       .units = 1 });
	to->n = r->nexchanges - to->first;
	return good;
}

static int set_ranges(struct swc_butterfly_rounds *r, uint32_t port)
{
	uint32_t nsteps[SWC_TOPO_DIMS] = { 0 }, ndims = r->topo->ndims;
	struct ranges g = { 0 };

	for (uint32_t j = 0; j < ndims; j++) {
		uint32_t *core = all_of(r, j, 1);

		while (r->topo->dim[j] >> nsteps[j] > 1)
			nsteps[j]++;
		g.m[j] = 1u << nsteps[j];
		g.one[j] = all_of(r, j, 1);
		memset(core + g.m[j], 0, (r->topo->dim[j] - g.m[j]) * sizeof(*core));
		g.core[j] = core;
	}
	g.steps = swc_butterfly_turns(nsteps, ndims, port, g.turn);
	r->order_varies |= swc_range_order_varies(&r->kind, g.turn);
	if (!add_folds(r, &g, port))
		return -ENOMEM;
	for (uint32_t s = 0; s < g.steps; s++)
		if (!add_turn(r, &g, s, port >= ndims))
			return -ENOMEM;
	for (uint32_t s = r->kind.scatter; s-- > 0;)
		repeat_back(r, ndims + s);
	for (uint32_t i = ndims; i-- > 0;)
		repeat_back(r, i);
	return 0;
}

/* ---- all ---- */

int swc_butterfly_rounds_set_port(struct swc_butterfly_rounds *r, uint32_t port)
{
	r->n = r->nexchanges = 0;
	r->used = 0;
	if (r->kind.in_ranges)
		return set_ranges(r, port);
	swc_lines_set_port(&r->lines, port);
	return r->coll == SWC_ALLTOALL ? set_alltoall(r) : set_sets(r);
}

static bool is_alltoall(const struct swc_plan_args *a)
{
	bool even = a->algo == SWC_ALGO_BINE && a->coll == SWC_ALLTOALL;

	for (uint32_t i = 0; even && i < a->topo->ndims; i++)
		even = a->topo->dim[i] == 1 || !(a->topo->dim[i] % 2);
	return even;
}

int swc_butterfly_rounds_open(struct swc_butterfly_rounds *r, const struct swc_plan_args *a)
{
	const struct swc_topo *t = a->topo;
	struct swc_butterfly *k = &r->kind;
	int ret = 0;

	*r = (struct swc_butterfly_rounds){ .topo = t, .coll = a->coll };
	if (t->nnodes != t->nranks || t->nnodes < 2 ||
	    (!swc_butterfly_find(k, a, t) && !is_alltoall(a)) ||
	    !(swc_algo_info(a->algo)->colls & 1u << a->coll) ||
	    (k->in_ranges && k->scatter > k->steps))
		return -EOPNOTSUPP;
	r->ports = t->kind == SWC_TOPO_SWITCH || k->one_port ? 1 : 2 * t->ndims;
	r->nblocks = k->in_ranges ? 1u << k->scatter : t->nnodes;
	swc_topo_coords(t, a->root, r->root);
	if (!k->in_ranges)
		ret = swc_lines_open(&r->lines, t, k->swing);
	/* One of each line before its first step and after each one, of blocks and of paths. */
	for (uint32_t j = 0; j < t->ndims; j++)
		r->factors += 2 * (size_t)t->dim[j] *
			      (r->kind.in_ranges ? 1 : r->lines.line[j].nsteps + 1);
	r->factor = malloc(r->factors * sizeof(*r->factor));
	return ret || r->factor ? ret : -ENOMEM;
}

void swc_butterfly_rounds_close(struct swc_butterfly_rounds *r)
{
	swc_lines_free(&r->lines);
	free(r->exchange);
	free(r->factor);
}
