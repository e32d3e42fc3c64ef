// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Forests as an algorithm of the library: the graph of a topology, its trees, and a rank's plan. Each
 * rank finds all trees by itself; there is no chance in it.
 *
 * With equal roots, trees of a torus or a switch are shallower, and an allreduce takes no longer. So
 * other roots are tried on meshes, and on tori with several rates.
 */
#include "plan/forest/algorithm.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forest/schedule.h"
#include "plan/forest/simplex.h"
#include "plan/number.h"

#define NAME "forest"
#define CHANNELS 2
/* What the number of segments is chosen for, as in the models. */
#define BYTES (64.0 * (1 << 20))
#define DEFAULT_GBPS 400
#define STEP_NS 5400
#define MOST_PIECES 4096
/* Of a rank's plan, about. */
#define PLAN_BYTES (2.0 * (1 << 20))

bool swc_forest_parse(const char *name, uint32_t *pieces)
{
	size_t len = strlen(NAME);
	uint64_t n = 0;

	if (strncmp(name, NAME, len) || (name[len] && name[len] != ':'))
		return false;
	if (name[len] && !swc_number_parse(name + len + 1, 1, MOST_PIECES, &n))
		return false;
	*pieces = (uint32_t)n;
	return true;
}

/**
 * struct trees - what a plan is made of
 * @phase: down, up
 * @has: which there are
 * @time: of the vector over a unit of capacity
 */
struct trees {
	struct swc_phase phase[2];
	bool has[2];
	double time;
};

/* Up to the roots or down from them, with the same trees: graphs of topologies are symmetric. */
static int add_phase(struct trees *t, bool up, const struct swc_graph *g, struct swc_fraction slots,
		     const int64_t *weight)
{
	int ret = t->has[0] ? swc_phase_mirror(&t->phase[1], &t->phase[0])
			    : swc_phase_make(&t->phase[up], g, up, slots, weight, NULL, NULL);

	t->has[up] = !ret;
	return ret;
}

static int find_equal(struct trees *t, const struct swc_graph *g, enum swc_coll coll,
		      int64_t *weight)
{
	struct swc_bound bound;
	int ret = swc_bound_find(&bound, g);

	if (ret)
		return ret;
	for (uint32_t r = 0; r < g->nranks; r++)
		weight[r] = bound.k;
	t->time = (double)bound.inv_x.p / (double)bound.inv_x.q / g->nranks;
	if (coll != SWC_REDUCE_SCATTER)
		ret = add_phase(t, false, g, bound.slots, weight);
	if (!ret && coll != SWC_ALLGATHER)
		ret = add_phase(t, true, g, bound.slots, weight);
	if (coll == SWC_ALLREDUCE)
		t->time *= 2;
	swc_bound_free(&bound);
	return ret;
}

static int find_any(struct trees *t, const struct swc_graph *g)
{
	struct swc_lp *lp = swc_simplex_new();
	struct swc_roots r = { 0 };
	int ret = lp ? swc_roots_find(&r, g, lp, NULL, NULL) : -ENOMEM;

	swc_simplex_free(lp);
	if (ret)
		return ret;
	t->time = 1 / r.rate;
	ret = swc_phase_make_slots(&t->phase[0], &r.down, false, r.weight, NULL, NULL);
	t->has[0] = !ret;
	if (!ret)
		ret = add_phase(t, true, g, (struct swc_fraction){ 1, 1 }, r.weight);
	swc_roots_free(&r);
	return ret;
}

static int find_rooted(struct trees *t, const struct swc_graph *g, bool up, uint32_t root,
		       int64_t *weight)
{
	int64_t rate, d;
	int ret = swc_bound_broadcast(g, root, &rate);

	if (ret)
		return ret;
	d = rate;
	for (uint32_t i = 0; i < g->nlinks; i++)
		d = swc_gcd(d, g->link[i].capacity);
	weight[root] = rate / d;
	t->time = 1 / (double)rate;
	return add_phase(t, up, g, swc_fraction_of(1, d), weight);
}

static int find_trees(struct trees *t, const struct swc_plan_args *a, const struct swc_topo *topo,
		      const struct swc_graph *g)
{
	int64_t *weight = calloc(g->nranks, sizeof(*weight));
	bool rates = false;
	int ret = -ENOMEM;

	for (uint32_t i = 0; i < topo->ndims; i++)
		rates |= topo->dim_gbps[i] > 0;
	if (!weight)
		return ret;
	if (swc_coll_has_root(a->coll))
		ret = find_rooted(t, g, a->coll == SWC_REDUCE, a->root, weight);
	else if (a->coll == SWC_ALLREDUCE && (topo->kind == SWC_TOPO_MESH || rates))
		ret = find_any(t, g);
	else
		ret = find_equal(t, g, a->coll, weight);
	free(weight);
	return ret;
}

/* As many as take least time: N + D - 1 steps of a channel, each of which costs a + T / N. */
static uint32_t best_pieces(const struct trees *t, const struct swc_topo *topo, double unit)
{
	const struct swc_phase *down = t->has[0] ? &t->phase[0] : NULL;
	const struct swc_phase *up = t->has[1] ? &t->phase[1] : NULL;
	double ns = t->time * BYTES * 8 / (unit > 0 ? unit : DEFAULT_GBPS);
	double depth = swc_schedule_depth(up, down);
	double n = sqrt((depth - 1) * ns / (STEP_NS + topo->hop_ns)) * CHANNELS, trees = 0, most;

	/* In each tree a rank receives once and sends about once; pairs of trees are a few more. */
	for (int i = 0; i < 2; i++)
		trees += t->has[i] ? t->phase[i].forest.ntrees : 0;
	most = fmin(MOST_PIECES, PLAN_BYTES / sizeof(struct swc_plan_xfer) / 4 / trees);
	return (uint32_t)fmax(CHANNELS, fmin(round(n), most));
}

/* The plans of @n ranks from args->rank on. */
static int make_plans(const struct trees *t, const struct swc_plan_args *a,
		      const struct swc_topo *topo, uint32_t pieces, uint32_t n, void **plan,
		      size_t *bytes, char *why, size_t why_bytes)
{
	struct swc_schedule_args args = { .coll = a->coll,
					  .root = a->root,
					  .down = t->has[0] ? &t->phase[0] : NULL,
					  .up = t->has[1] ? &t->phase[1] : NULL,
					  .topo = topo,
					  .pieces = pieces,
					  .channels = pieces < CHANNELS ? pieces : CHANNELS };
	struct swc_schedule s;
	int ret = swc_schedule_make(&s, &args, why, why_bytes);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < n && !ret; i++) {
		ret = swc_schedule_plan(&s, a->rank + i, &plan[i], &bytes[i], why, why_bytes);
		for (uint32_t k = 0; ret && k < i; k++)
			free(plan[k]);
	}
	swc_schedule_free(&s);
	return ret;
}

static int build(const struct swc_plan_args *a, uint32_t pieces, uint32_t n, void **plan,
		 size_t *bytes, char *why, size_t why_bytes)
{
	struct swc_topo flat = swc_topo_flat(a->nranks);
	const struct swc_topo *topo = a->topo ? a->topo : &flat;
	struct trees t = { 0 };
	struct swc_graph g;
	double unit;
	int ret;

	if (!(SWC_FOREST_COLLS & 1u << a->coll) || topo->nnodes > SWC_FOREST_MAX_NODES) {
		if (why_bytes)
			snprintf(why, why_bytes,
				 "forest is for up to %u nodes, and for no alltoall or barrier: "
				 "choose another algorithm",
				 SWC_FOREST_MAX_NODES);
		return -EOPNOTSUPP;
	}
	ret = swc_graph_of_topo(&g, topo, &unit, why, why_bytes);
	if (ret)
		return ret == -EINVAL ? -EOPNOTSUPP : ret;
	ret = find_trees(&t, a, topo, &g);
	if (!ret)
		ret = make_plans(&t, a, topo, pieces ? pieces : best_pieces(&t, topo, unit), n,
				 plan, bytes, why, why_bytes);
	for (int i = 0; i < 2; i++)
		swc_phase_free(&t.phase[i]);
	swc_graph_free(&g);
	return ret == -EINVAL || ret == -EIO ? -EOPNOTSUPP : ret;
}

int swc_forest_plan(const struct swc_plan_args *a, uint32_t pieces, void **plan, size_t *bytes,
		    char *why, size_t why_bytes)
{
	return build(a, pieces, 1, plan, bytes, why, why_bytes);
}

int swc_forest_plans(const struct swc_plan_args *args, uint32_t pieces, void **plan, size_t *bytes,
		     char *why, size_t why_bytes)
{
	struct swc_plan_args a = *args;

	a.rank = 0;
	return build(&a, pieces, a.nranks, plan, bytes, why, why_bytes);
}
