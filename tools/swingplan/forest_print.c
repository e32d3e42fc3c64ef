// SPDX-License-Identifier: GPL-2.0-only
/* swingplan forest: what was found, in words and as JSON. */
#include "forest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cJSON *node_json(const struct forest *f, uint32_t v)
{
	char number[16];

	return f->named ? cJSON_CreateString(swc_graph_name(&f->g, v, number))
			: cJSON_CreateNumber(v);
}

static void add_text(cJSON *o, const char *name, struct swc_fraction value)
{
	char text[SWC_FRACTION_TEXT];

	cJSON_AddStringToObject(o, name, swc_fraction_text(value, text));
}

/* The ways of an edge from @a to @b of a tree with this weight. */
static cJSON *paths_json(const struct forest *f, struct swc_phase *p, uint32_t a, uint32_t b,
			 int64_t weight)
{
	uint32_t link = swc_graph_find(&p->splitting.direct, a, b), *node, n, way;
	cJSON *all = cJSON_CreateArray();

	node = calloc(f->g.nnodes + 1u, sizeof(*node));
	if (!node)
		plan_no_memory();
	while (weight) {
		int64_t part = swc_splitting_take(&p->splitting, link, weight, &way);
		cJSON *o = cJSON_CreateObject(), *path = cJSON_AddArrayToObject(o, "path");

		n = swc_splitting_nodes(&p->splitting, way, node, f->g.nnodes + 1);
		for (uint32_t i = 0; i < n; i++)
			cJSON_AddItemToArray(path, node_json(f, node[p->up ? n - 1 - i : i]));
		cJSON_AddNumberToObject(o, "weight", (double)part);
		cJSON_AddItemToArray(all, o);
		weight -= part;
	}
	free(node);
	return all;
}

static cJSON *tree_json(const struct forest *f, struct swc_phase *p, const struct swc_tree *t)
{
	cJSON *o = cJSON_CreateObject(), *edges, *paths = NULL;
	uint32_t n = p->forest.nranks;

	cJSON_AddItemToObject(o, "root", node_json(f, t->root));
	cJSON_AddNumberToObject(o, "weight", (double)t->weight);
	cJSON_AddNumberToObject(o, "depth", t->depth);
	edges = cJSON_AddArrayToObject(o, "edges");
	if (f->g.nnodes > f->g.nranks)
		paths = cJSON_AddArrayToObject(o, "paths");
	for (uint32_t i = 1; i < n; i++) {
		uint32_t v = t->order[p->up ? n - i : i], parent = t->parent[v];
		cJSON *edge = cJSON_CreateArray();

		cJSON_AddItemToArray(edge, node_json(f, p->up ? v : parent));
		cJSON_AddItemToArray(edge, node_json(f, p->up ? parent : v));
		cJSON_AddItemToArray(edges, edge);
		if (paths)
			cJSON_AddItemToArray(paths, paths_json(f, p, parent, v, t->weight));
	}
	return o;
}

static void add_trees(struct forest *f, int direction, cJSON *o, const char *name)
{
	struct swc_phase *p = &f->phase[direction];
	cJSON *all = cJSON_AddArrayToObject(o, name);

	for (uint32_t i = 0; i < p->forest.ntrees; i++)
		cJSON_AddItemToArray(all, tree_json(f, p, &p->forest.tree[i]));
}

static uint32_t deepest(const struct swc_forest *forest)
{
	uint32_t depth = 0;

	for (uint32_t i = 0; i < forest->ntrees; i++)
		depth = forest->tree[i].depth > depth ? forest->tree[i].depth : depth;
	return depth;
}

/* The direction that a collective of one phase has; of two, the first that is printed. */
static int direction_of(const struct forest *f)
{
	return f->opt->coll == SWC_REDUCE_SCATTER || f->opt->coll == SWC_REDUCE ? UP : DOWN;
}

static struct swc_fraction allreduce_time(const struct forest *f)
{
	struct swc_fraction a = f->bound[DOWN].inv_x, b = f->bound[UP].inv_x;

	if (a.p == b.p && a.q == b.q)
		return swc_fraction_of(2 * a.p, a.q * f->g.nranks);
	/* Lengths are of one graph, and their product need not fit. */
	return swc_fraction_of(a.p * (b.q / swc_gcd(a.q, b.q)) + b.p * (a.q / swc_gcd(a.q, b.q)),
			       a.q / swc_gcd(a.q, b.q) * b.q * f->g.nranks);
}

static void equal_json(struct forest *f, cJSON *o)
{
	const struct swc_bound *b = &f->bound[direction_of(f)];
	cJSON *set;

	add_text(o, "inv_x", b->inv_x);
	add_text(o, "allgather_time_fraction",
		 swc_fraction_of(f->bound[DOWN].inv_x.p, f->bound[DOWN].inv_x.q * f->g.nranks));
	add_text(o, "reduce_scatter_time_fraction",
		 swc_fraction_of(f->bound[UP].inv_x.p, f->bound[UP].inv_x.q * f->g.nranks));
	add_text(o, "allreduce_time_fraction", allreduce_time(f));
	cJSON_AddNumberToObject(o, "k", (double)b->k);
	add_text(o, "U", b->slots);
	cJSON_AddNumberToObject(o, "tree_count", (double)b->k * f->g.nranks);
	set = cJSON_AddArrayToObject(o, "bottleneck_ranks");
	for (uint32_t r = 0; r < f->g.nranks; r++)
		if (b->side[r])
			cJSON_AddItemToArray(set, node_json(f, r));
	if (!f->opt->trees) {
		cJSON_AddNumberToObject(o, "trees", (double)b->k * f->g.nranks);
		return;
	}
	add_trees(f, direction_of(f), o, "trees");
	if (f->opt->coll == SWC_ALLREDUCE)
		add_trees(f, UP, o, "reduce_trees");
}

static void any_json(struct forest *f, cJSON *o)
{
	cJSON *roots;
	char number[16];

	cJSON_AddNumberToObject(o, "rate", f->rate);
	cJSON_AddNumberToObject(o, "time", 1 / f->rate);
	if (f->opt->coll != SWC_ALLREDUCE) {
		cJSON_AddItemToObject(o, "root", node_json(f, f->root));
		if (f->opt->trees)
			add_trees(f, direction_of(f), o, "trees");
		return;
	}
	cJSON_AddNumberToObject(o, "equal_roots_time", f->equal_time);
	roots = cJSON_AddObjectToObject(o, "roots");
	for (uint32_t r = 0; r < f->g.nranks; r++)
		if (f->x[r] > 0)
			cJSON_AddNumberToObject(roots, swc_graph_name(&f->g, r, number), f->x[r]);
	if (f->opt->trees) {
		add_trees(f, DOWN, o, "broadcast");
		add_trees(f, UP, o, "reduce");
	}
}

static bool rooted(const struct forest *f)
{
	return f->opt->any_roots || f->opt->coll == SWC_BROADCAST || f->opt->coll == SWC_REDUCE;
}

void forest_print_json(struct forest *f)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "op", plan_coll_name(f->opt->coll));
	cJSON_AddNumberToObject(o, "ranks", f->g.nranks);
	cJSON_AddNumberToObject(o, "switches", f->g.nnodes - f->g.nranks);
	if (f->unit > 0)
		cJSON_AddNumberToObject(o, "unit_gbps", f->unit);
	if (rooted(f))
		any_json(f, o);
	else
		equal_json(f, o);
	for (int i = 0; i < 2; i++)
		if (f->has[i])
			cJSON_AddNumberToObject(o, i == DOWN ? "depth" : "reduce_depth",
						deepest(&f->phase[i].forest));
	if (f->opt->out) {
		cJSON_AddStringToObject(o, "plan", f->opt->out);
		cJSON_AddNumberToObject(o, "pieces", f->pieces);
		cJSON_AddNumberToObject(o, "channels", f->channels);
		cJSON_AddNumberToObject(o, "steps", f->steps);
	}
	json_document(stdout, o);
}

/* ------------------------------------------------------------------ words */

static void print_equal(const struct forest *f)
{
	const struct swc_bound *b = &f->bound[direction_of(f)];
	const char *name[] = { "allgather", "reduce-scatter" };
	char text[SWC_FRACTION_TEXT], number[16];
	uint32_t n = f->g.nranks, shown = 0;

	for (int i = 0; i < 2; i++)
		printf("%-18s %s of the vector over a unit of capacity\n", name[i],
		       swc_fraction_text(swc_fraction_of(f->bound[i].inv_x.p,
							 f->bound[i].inv_x.q * n),
					 text));
	printf("%-18s %s\n", "allreduce", swc_fraction_text(allreduce_time(f), text));
	printf("%-18s %lld from each rank, %s for a unit of capacity\n", "trees", (long long)b->k,
	       swc_fraction_text(b->slots, text));
	printf("%-18s %s ranks over capacity:", "bottleneck", swc_fraction_text(b->inv_x, text));
	for (uint32_t r = 0; r < n; r++)
		if (b->side[r] && shown++ < 16)
			printf(" %s", swc_graph_name(&f->g, r, number));
	printf(shown > 16 ? " and %u more\n" : "\n", shown - 16);
}

static void print_any(const struct forest *f)
{
	char number[16];

	printf("%-18s %g units of capacity\n", "rate", f->rate);
	printf("%-18s %g of the vector over a unit of capacity\n", plan_coll_name(f->opt->coll),
	       1 / f->rate);
	if (f->opt->coll != SWC_ALLREDUCE)
		return;
	printf("%-18s %g, %.3f times that\n", "with equal roots", f->equal_time,
	       f->equal_time * f->rate);
	for (uint32_t r = 0; r < f->g.nranks; r++)
		if (f->x[r] > 0)
			printf("%17.2f%%  from %s\n", 100 * f->x[r] / f->rate,
			       swc_graph_name(&f->g, r, number));
}

static void print_trees(const struct forest *f, int direction)
{
	const struct swc_forest *forest = &f->phase[direction].forest;
	char a[16], b[16];

	for (uint32_t i = 0; i < forest->ntrees; i++) {
		const struct swc_tree *t = &forest->tree[i];

		printf("%s %s, weight %lld, depth %u:", direction == UP ? "to" : "from",
		       swc_graph_name(&f->g, t->root, a), (long long)t->weight, t->depth);
		for (uint32_t k = 1; k < forest->nranks; k++) {
			uint32_t v = t->order[direction == UP ? forest->nranks - k : k];
			uint32_t from = direction == UP ? v : t->parent[v];
			uint32_t to = direction == UP ? t->parent[v] : v;

			printf(" %s>%s", swc_graph_name(&f->g, from, a),
			       swc_graph_name(&f->g, to, b));
		}
		printf("\n");
	}
}

void forest_print(const struct forest *f)
{
	printf("%-18s %u ranks, %u switches, %u links\n", "network", f->g.nranks,
	       f->g.nnodes - f->g.nranks, f->g.nlinks);
	if (f->unit > 0)
		printf("%-18s %g Gbit/s\n", "unit of capacity", f->unit);
	if (rooted(f))
		print_any(f);
	else
		print_equal(f);
	for (int i = 0; i < 2; i++)
		if (f->has[i]) {
			printf("%-18s %u %s, depth up to %u\n", "forest", f->phase[i].forest.ntrees,
			       i == DOWN ? "down" : "up", deepest(&f->phase[i].forest));
			if (f->opt->trees)
				print_trees(f, i);
		}
	if (f->opt->out)
		printf("%-18s %s: %u segments on %u channels, %u steps\n", "plan", f->opt->out,
		       f->pieces, f->channels, f->steps);
}
