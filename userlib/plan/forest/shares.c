// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Whole numbers of trees. Optima have mostly fractions with a common small denominator: that is tried
 * first, and the cuts decide whether it was right. Else numbers are rounded at a large denominator:
 * links of a switch lose a tree here and there until it passes on what it gets, and roots lose those
 * trees that some rank cannot get.
 */
#include "plan/forest/shares.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forest/bound.h"
#include "plan/forest/maxflow.h"

#define MOST_TREES 5040 /* for a unit of capacity: the largest denominator */
#define ALMOST 1e-5	/* of a tree */
#define RATE_EXACT 1e-7
#define MANY_TREES 1e9	/* in all, where there is no denominator */
#define MOST_SLOTS 1e17 /* of all links */

static bool is_whole(double x)
{
	return fabs(x - round(x)) < ALMOST;
}

/* The least denominator of all, 0 if there is no small one. */
static uint32_t denominator(const struct swc_roots *r, const struct swc_graph *g, const double *f)
{
	for (uint32_t d = 1; d <= MOST_TREES; d++) {
		bool whole = true;

		for (uint32_t v = 0; v < g->nranks && whole; v++)
			whole = is_whole(r->x[v] * d);
		for (uint32_t i = 0; i < g->nlinks && whole; i++)
			whole = is_whole(f[i] * d);
		if (whole)
			return d;
	}
	return 0;
}

static int copy_links(struct swc_graph *to, const struct swc_graph *g)
{
	*to = (struct swc_graph){ .nranks = g->nranks, .nnodes = g->nnodes, .nlinks = g->nlinks };
	to->link = calloc(g->nlinks + 1u, sizeof(*to->link));
	if (!to->link)
		return -ENOMEM;
	memcpy(to->link, g->link, g->nlinks * sizeof(*to->link));
	return 0;
}

/* Take from a node's links in (or out) what it has more there than on the other side. */
static void trim(struct swc_graph *g, uint32_t node, bool in, int64_t excess)
{
	for (uint32_t i = 0; i < g->nlinks && excess > 0; i++) {
		struct swc_link *l = &g->link[i];
		int64_t d = l->capacity < excess ? l->capacity : excess;

		if ((in ? l->to : l->from) != node)
			continue;
		l->capacity -= d;
		excess -= d;
	}
}

/* Make switches pass on what they get. */
static void balance(struct swc_graph *g)
{
	bool again = true;

	while (again) {
		again = false;
		for (uint32_t w = g->nranks; w < g->nnodes; w++) {
			int64_t excess = 0;

			for (uint32_t i = 0; i < g->nlinks; i++)
				excess += (g->link[i].to == w) * g->link[i].capacity -
					  (g->link[i].from == w) * g->link[i].capacity;
			if (!excess)
				continue;
			trim(g, w, excess > 0, excess > 0 ? excess : -excess);
			again = true;
		}
	}
}

/*
 * Take trees from roots until all can get all. @links: of the direction in which trees grow. 0 or
 * -ENOMEM.
 */
static int repair(struct swc_roots *r, const struct swc_graph *links)
{
	bool *side = calloc(links->nnodes, sizeof(*side));
	struct swc_maxflow f = { 0 };
	int ret = side ? swc_maxflow_init(&f, links) : -ENOMEM;
	uint32_t good = 0, n = links->nranks;

	for (uint32_t sink = 0; !ret && good < n; sink = (sink + 1) % n) {
		int64_t lack = 0;

		for (uint32_t v = 0; v < n; v++)
			lack += f.supply[v] = r->weight[v];
		lack -= swc_maxflow_run(&f, sink);
		good = lack ? 0 : good + 1;
		if (!lack)
			continue;
		swc_maxflow_cut(&f, side);
		while (lack) {
			uint32_t most = n;

			for (uint32_t v = 0; v < n; v++)
				if (side[v] && (most == n || r->weight[v] > r->weight[most]))
					most = v;
			if (most == n || !r->weight[most])
				break;
			r->weight[most]--;
			lack--;
		}
	}
	swc_maxflow_free(&f);
	free(side);
	return ret;
}

static void set_trees(struct swc_roots *r, const struct swc_graph *g, const double *f, double trees,
		      bool exact)
{
	for (uint32_t v = 0; v < g->nranks; v++)
		r->weight[v] = (int64_t)(exact ? round(r->x[v] * trees) : floor(r->x[v] * trees));
	for (uint32_t i = 0; i < g->nlinks; i++) {
		int64_t all = (int64_t)((double)g->link[i].capacity * trees);
		int64_t down = (int64_t)fmin(fmax(round(f[i] * trees), 0), (double)all);

		/* A pair of links has its capacity once in each phase. */
		if (r->mirrored && g->link[i].from > g->link[i].to)
			down = all - r->down.link[swc_graph_find(g, g->link[i].to, g->link[i].from)]
					     .capacity;
		r->down.link[i].capacity = down;
		r->up.link[i].capacity = all - down;
	}
	balance(&r->down);
	balance(&r->up);
	r->trees = trees;
}

/* Make the numbers possible, by both phases. */
static int repair_both(struct swc_roots *r)
{
	struct swc_graph reverse;
	int ret = repair(r, &r->down);

	if (ret || r->mirrored)
		return ret;
	ret = swc_graph_reverse(&reverse, &r->up);
	if (ret)
		return ret;
	ret = repair(r, &reverse);
	/* Where trees were possible, fewer are. */
	swc_graph_free(&reverse);
	return ret;
}

/* Divide all by what they have in common. */
static void reduce(struct swc_roots *r)
{
	struct swc_graph *phase[] = { &r->down, &r->up };
	int64_t d = 0;

	for (uint32_t v = 0; v < r->down.nranks; v++)
		d = swc_gcd(d, r->weight[v]);
	for (int k = 0; k < 2; k++)
		for (uint32_t i = 0; i < phase[k]->nlinks; i++)
			d = swc_gcd(d, phase[k]->link[i].capacity);
	if (d <= 1)
		return;
	for (uint32_t v = 0; v < r->down.nranks; v++)
		r->weight[v] /= d;
	for (int k = 0; k < 2; k++)
		for (uint32_t i = 0; i < phase[k]->nlinks; i++)
			phase[k]->link[i].capacity /= d;
	r->trees /= (double)d;
}

static double sum_of(const struct swc_roots *r)
{
	double all = 0;

	for (uint32_t v = 0; v < r->down.nranks; v++)
		all += (double)r->weight[v];
	return all;
}

/* Links without trees are none. */
static void drop_empty(struct swc_graph *g)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->nlinks; i++)
		if (g->link[i].capacity)
			g->link[n++] = g->link[i];
	g->nlinks = n;
}

int swc_shares_round(struct swc_roots *r, const struct swc_graph *g, const double *f)
{
	uint32_t d = denominator(r, g, f);
	double all = 0;
	int ret;

	r->weight = calloc(g->nranks, sizeof(*r->weight));
	if (!r->weight || copy_links(&r->down, g) || copy_links(&r->up, g))
		return -ENOMEM;
	if (d) {
		set_trees(r, g, f, d, true);
		ret = repair_both(r);
		if (ret)
			return ret;
	}
	for (uint32_t i = 0; i < g->nlinks; i++)
		all += (double)g->link[i].capacity;
	if (!d || sum_of(r) < r->rate * d * (1 - RATE_EXACT)) {
		set_trees(r, g, f, ceil(fmin(MANY_TREES / r->rate, MOST_SLOTS / all)), false);
		ret = repair_both(r);
		if (ret)
			return ret;
	}
	reduce(r);
	drop_empty(&r->down);
	drop_empty(&r->up);
	return 0;
}
