// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The bound in rationals. Begin with the sets of one node and of all but one rank. If 1/x = P/Q is
 * too small, then with all capacities times P, and a supply of Q at each rank, some rank gets less
 * than N Q: the minimum cut is a set with a larger ratio. Ratios only grow, and there are finitely
 * many, so this ends, after a few sets in practice. (The bound itself: Zhao and Krishnamurthy,
 * "Bandwidth optimal pipeline schedule for collective communication", 2023.)
 */
#include "plan/forest/bound.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forest/maxflow.h"

int64_t swc_gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

struct swc_fraction swc_fraction_of(int64_t p, int64_t q)
{
	int64_t d = swc_gcd(p, q);

	return (struct swc_fraction){ p / d, q / d };
}

const char *swc_fraction_text(struct swc_fraction f, char text[SWC_FRACTION_TEXT])
{
	snprintf(text, SWC_FRACTION_TEXT, f.q == 1 ? "%lld" : "%lld/%lld", (long long)f.p,
		 (long long)f.q);
	return text;
}

static bool larger(int64_t p, int64_t q, struct swc_fraction f)
{
	return (__int128)p * f.q > (__int128)f.p * q;
}

/* Take the ratio of a set if it is larger. */
static bool try_set(struct swc_bound *b, const struct swc_graph *g, const bool *side)
{
	int64_t ranks = 0, out = 0;

	for (uint32_t r = 0; r < g->nranks; r++)
		ranks += side[r];
	for (uint32_t i = 0; i < g->nlinks; i++)
		if (side[g->link[i].from] && !side[g->link[i].to])
			out += g->link[i].capacity;
	if (!out || !larger(ranks, out, b->inv_x))
		return false;
	b->inv_x = swc_fraction_of(ranks, out);
	memcpy(b->side, side, g->nnodes);
	return true;
}

static void try_small_sets(struct swc_bound *b, const struct swc_graph *g, bool *side)
{
	for (int all_but = 0; all_but < 2; all_but++) {
		memset(side, all_but, g->nnodes);
		for (uint32_t r = 0; r < g->nranks; r++) {
			side[r] = !all_but;
			try_set(b, g, side);
			side[r] = all_but;
		}
	}
}

static void scale(struct swc_maxflow *f, const struct swc_graph *g, struct swc_fraction inv_x)
{
	for (uint32_t i = 0; i < g->nlinks; i++)
		f->capacity[i] = g->link[i].capacity * inv_x.p;
	for (uint32_t r = 0; r < g->nranks; r++)
		f->supply[r] = inv_x.q;
}

/* How many trees, and how many slots for them. */
static void count_trees(struct swc_bound *b, const struct swc_graph *g)
{
	int64_t d = b->inv_x.q;

	for (uint32_t i = 0; i < g->nlinks; i++)
		d = swc_gcd(d, g->link[i].capacity);
	b->slots = swc_fraction_of(b->inv_x.p, d);
	b->k = b->inv_x.q / d;
}

int swc_bound_find(struct swc_bound *b, const struct swc_graph *g)
{
	bool *side = calloc(g->nnodes, sizeof(*side));
	struct swc_maxflow f = { 0 };
	uint32_t good = 0;
	int ret;

	*b = (struct swc_bound){ .inv_x = { 0, 1 } };
	b->side = calloc(g->nnodes, sizeof(*b->side));
	ret = side && b->side ? swc_maxflow_init(&f, g) : -ENOMEM;
	if (ret)
		goto out;
	try_small_sets(b, g, side);
	scale(&f, g, b->inv_x);
	for (uint32_t sink = 0; good < g->nranks; sink = (sink + 1) % g->nranks) {
		if (swc_maxflow_run(&f, sink) == g->nranks * b->inv_x.q) {
			good++;
			continue;
		}
		swc_maxflow_cut(&f, side);
		try_set(b, g, side);
		scale(&f, g, b->inv_x);
		good = 0;
	}
	count_trees(b, g);
out:
	swc_maxflow_free(&f);
	free(side);
	if (ret)
		swc_bound_free(b);
	return ret;
}

void swc_bound_free(struct swc_bound *b)
{
	free(b->side);
	b->side = NULL;
}

int swc_bound_broadcast(const struct swc_graph *g, uint32_t root, int64_t *rate)
{
	struct swc_maxflow f;
	int ret = swc_maxflow_init(&f, g);

	if (ret)
		return ret;
	*rate = INT64_MAX;
	f.supply[root] = 0;
	for (uint32_t i = 0; i < g->nlinks; i++)
		if (g->link[i].from == root)
			f.supply[root] += g->link[i].capacity;
	for (uint32_t sink = 0; sink < g->nranks; sink++) {
		int64_t got = sink == root ? *rate : swc_maxflow_run(&f, sink);

		*rate = got < *rate ? got : *rate;
	}
	swc_maxflow_free(&f);
	return 0;
}
