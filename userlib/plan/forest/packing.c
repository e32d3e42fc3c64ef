// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Packing of spanning trees, one batch of equal trees after the other. (Edmonds, "Edge-disjoint
 * branchings", 1973, for one root; Frank for many; Berczi and Frank for batches.)
 *
 * A batch grows from its root link by link. A link x -> y may be given to as many of its m trees as
 * leave enough for all others: for each set of nodes with x and without y, the capacity that leaves
 * it must be that of the other trees that begin in it, and those of the batch that get the link. So
 * the number is what can flow to y if each root of other trees supplies their number, and x supplies
 * m, less all those of the others. If it is less than m the batch shrinks to it, and the rest begins
 * anew later. A link that gets none will not get any while the batch grows, and neither will the others
 * that leave the set which has no capacity to spare.
 *
 * A batch grows from nodes next to the root first, and by the link with most capacity left: so trees
 * are shallow, and links wear out evenly. The root with most trees left is next. The last trees get
 * what is left, and become deep; so then a deep tree and a few others are removed and packed again,
 * many times, and what is shallower is kept.
 */
#include "plan/forest/packing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forest/maxflow.h"
#include "plan/table.h"

#define MOST_ROUNDS 2000 /* of making trees shallower */
#define IN_VAIN 30	 /* rounds for each tree, without success */
#define EFFORT 2e8	 /* rounds times ranks times links */

/**
 * struct work - a packing
 * @f: capacities are what all trees before leave, and the batch so far; supplies are the trees that
 *	have not been packed, without the batch
 * @first: by rank: its first link
 * @into: by rank: capacity of the links to it
 * @left: trees that have not been packed, with the batch
 * @tried: by link: the batch has no use for it
 * @side: by rank: is it in such a set?
 * @depth: by rank, UINT32_MAX if it is not in the batch
 * @size: ranks in the batch
 */
struct work {
	const struct swc_graph *g;
	struct swc_maxflow f;
	uint32_t *first;
	int64_t *into;
	int64_t left;
	bool *tried, *side;
	uint32_t *depth, *order, size;
	struct swc_tree *t;
	uint64_t random;
};

static void free_trees(struct swc_tree *t, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		free(t[i].parent);
}

/* Append a tree, which is to grow. */
static int new_tree(struct swc_forest *forest, uint32_t *room)
{
	struct swc_tree *t;

	if (!swc_table_reserve(&forest->tree, forest->ntrees, room, sizeof(*forest->tree)))
		return -ENOMEM;
	t = &forest->tree[forest->ntrees];
	*t = (struct swc_tree){ .parent = calloc(2 * (size_t)forest->nranks, sizeof(uint32_t)) };
	if (!t->parent)
		return -ENOMEM;
	t->order = t->parent + forest->nranks;
	forest->ntrees++;
	return 0;
}

/* The flow has found a set that all its capacity is needed to leave: none of it is for the batch. */
static void rule_out(struct work *w)
{
	swc_maxflow_cut(&w->f, w->side);
	for (uint32_t l = 0; l < w->g->nlinks; l++)
		if (w->side[w->g->link[l].from] && !w->side[w->g->link[l].to])
			w->tried[l] = true;
}

/* How many of the batch's trees the link may have. */
static int64_t usable(struct work *w, uint32_t link)
{
	uint32_t x = w->g->link[link].from, y = w->g->link[link].to;
	int64_t others = w->left - w->t->weight, flow;

	/* The set of all nodes but y. */
	if (w->into[y] - (others - w->f.supply[y]) <= 0)
		return 0;
	w->f.supply[x] += w->t->weight;
	flow = swc_maxflow_run(&w->f, y);
	w->f.supply[x] -= w->t->weight;
	flow -= others;
	if (flow <= 0)
		rule_out(w);
	return flow < w->f.capacity[link] ? flow : w->f.capacity[link];
}

static void use(struct work *w, uint32_t link, int64_t amount)
{
	w->f.capacity[link] -= amount;
	w->into[w->g->link[link].to] -= amount;
}

/* Give back what the links of the batch carry of trees that it does not have any more. */
static void shrink(struct work *w, int64_t weight)
{
	struct swc_tree *t = w->t;

	for (uint32_t i = 1; i < w->size; i++)
		use(w, swc_graph_find(w->g, t->parent[t->order[i]], t->order[i]),
		    weight - t->weight);
	w->f.supply[t->root] += t->weight - weight;
	t->weight = weight;
}

static void add(struct work *w, uint32_t link)
{
	uint32_t x = w->g->link[link].from, y = w->g->link[link].to;

	use(w, link, w->t->weight);
	w->t->parent[y] = x;
	w->t->order[w->size++] = y;
	w->depth[y] = w->depth[x] + 1;
	if (w->depth[y] > w->t->depth)
		w->t->depth = w->depth[y];
}

/* The link out of ranks at this depth that has most capacity left; nlinks if there is none. */
static uint32_t best_link(const struct work *w, uint32_t depth)
{
	uint32_t best = w->g->nlinks;
	int64_t most = 0;

	for (uint32_t i = 0; i < w->size; i++) {
		uint32_t x = w->t->order[i];

		if (w->depth[x] > depth)
			break;
		if (w->depth[x] < depth)
			continue;
		for (uint32_t l = w->first[x]; l < w->first[x + 1]; l++)
			if (!w->tried[l] && w->f.capacity[l] > most &&
			    w->depth[w->g->link[l].to] == UINT32_MAX) {
				most = w->f.capacity[l];
				best = l;
			}
	}
	return best;
}

static int grow(struct work *w)
{
	uint32_t n = w->g->nranks, depth = 0;
	bool shrunk = false;

	memset(w->tried, 0, w->g->nlinks);
	for (uint32_t v = 0; v < n; v++)
		w->depth[v] = UINT32_MAX;
	w->depth[w->t->root] = 0;
	w->t->parent[w->t->root] = w->t->order[0] = w->t->root;
	w->size = 1;
	while (w->size < n) {
		uint32_t link = best_link(w, depth);
		int64_t amount;

		if (link == w->g->nlinks && depth++ < w->t->depth)
			continue;
		if (link == w->g->nlinks) {
			/* A smaller batch may have links that a larger one could not. */
			if (!shrunk)
				return -EINVAL;
			shrunk = false;
			depth = 0;
			memset(w->tried, 0, w->g->nlinks);
			continue;
		}
		w->tried[link] = true;
		amount = usable(w, link);
		if (amount <= 0)
			continue;
		if (amount < w->t->weight) {
			shrink(w, amount);
			shrunk = true;
		}
		add(w, link);
	}
	return 0;
}

static uint32_t next_root(const struct work *w)
{
	uint32_t best = 0;

	for (uint32_t r = 1; r < w->g->nranks; r++)
		if (w->f.supply[r] > w->f.supply[best])
			best = r;
	return best;
}

/* Append a batch with all trees that @root has left, or as many as are possible. */
static int pack_root(struct work *w, struct swc_forest *forest, uint32_t *room, uint32_t root)
{
	int ret = new_tree(forest, room);

	if (ret)
		return ret;
	w->t = &forest->tree[forest->ntrees - 1];
	w->t->root = root;
	w->t->weight = w->f.supply[root];
	w->f.supply[root] = 0;
	ret = grow(w);
	w->left -= w->t->weight;
	return ret;
}

static int pack(struct work *w, struct swc_forest *forest, uint32_t *room,
		swc_forest_progress *progress, void *arg)
{
	int64_t all = w->left;
	int ret = 0;

	while (w->left && !ret) {
		ret = pack_root(w, forest, room, next_root(w));
		if (progress)
			progress(arg, 0.5 - 0.5 * (double)w->left / (double)all);
	}
	return ret;
}

/* ---- shallower trees ---- */

static uint32_t rnd(struct work *w, uint32_t n)
{
	w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(w->random >> 33) % n;
}

/* Deep trees count most. */
static double cost_of(const struct swc_tree *t, uint32_t n)
{
	double cost = 0;

	for (uint32_t i = 0; i < n; i++)
		cost += (double)t[i].weight * pow(t[i].depth, 4);
	return cost;
}

/* Take a tree's links, or give them back (@sign -1). */
static void use_tree(struct work *w, const struct swc_tree *t, int sign)
{
	for (uint32_t i = 1; i < w->g->nranks; i++)
		use(w, swc_graph_find(w->g, t->parent[t->order[i]], t->order[i]), sign * t->weight);
}

/* Move @n trees to the end: a deepest one, and others at random. */
static void choose(struct work *w, struct swc_forest *forest, uint32_t n)
{
	uint32_t last = forest->ntrees - 1, skip = rnd(w, 3);

	for (uint32_t k = 0; k < n; k++, last--) {
		uint32_t best = rnd(w, last + 1);
		struct swc_tree t;

		for (uint32_t i = 0; i <= last && !k; i++)
			if (forest->tree[i].depth > forest->tree[best].depth ||
			    (skip && forest->tree[i].depth == forest->tree[best].depth && skip--))
				best = i;
		t = forest->tree[best];
		forest->tree[best] = forest->tree[last];
		forest->tree[last] = t;
	}
}

/* Links from a root to the farthest rank: no tree of it is shallower. */
static uint32_t least_depth(struct work *w, uint32_t root)
{
	uint32_t *order = w->order, n = 1;

	for (uint32_t v = 0; v < w->g->nranks; v++)
		w->depth[v] = UINT32_MAX;
	w->depth[root] = 0;
	order[0] = root;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t l = w->first[order[i]]; l < w->first[order[i] + 1]; l++) {
			uint32_t y = w->g->link[l].to;

			if (w->depth[y] != UINT32_MAX)
				continue;
			w->depth[y] = w->depth[order[i]] + 1;
			order[n++] = y;
		}
	return w->depth[order[n - 1]];
}

/* Is there a tree that may become shallower? */
static bool may_improve(struct work *w, const struct swc_forest *forest)
{
	for (uint32_t i = 0; i < forest->ntrees; i++)
		if (forest->tree[i].depth > least_depth(w, forest->tree[i].root))
			return true;
	return false;
}

/* Remove some trees and pack them again, the deepest first; keep what is better, and say so. */
static int try_again(struct work *w, struct swc_forest *forest, uint32_t *room, bool *better)
{
	uint32_t n = 2 + rnd(w, 3), kept;
	struct swc_tree old[5];
	int ret = 0;

	n = n < forest->ntrees ? n : forest->ntrees;
	choose(w, forest, n);
	kept = forest->ntrees -= n;
	memcpy(old, &forest->tree[kept], n * sizeof(*old));
	for (uint32_t i = 0; i < n; i++) {
		use_tree(w, &old[i], -1);
		w->f.supply[old[i].root] += old[i].weight;
		w->left += old[i].weight;
	}
	for (uint32_t i = n; i-- && !ret;)
		if (w->f.supply[old[i].root])
			ret = pack_root(w, forest, room, old[i].root);
	if (!ret)
		ret = pack(w, forest, room, NULL, NULL);
	if (ret) {
		free_trees(old, n);
		return ret;
	}
	*better = forest->ntrees - kept <= n + 1 &&
		  cost_of(&forest->tree[kept], forest->ntrees - kept) < cost_of(old, n);
	if (*better) {
		free_trees(old, n);
		return 0;
	}
	for (uint32_t i = kept; i < forest->ntrees; i++)
		use_tree(w, &forest->tree[i], -1);
	free_trees(&forest->tree[kept], forest->ntrees - kept);
	forest->ntrees = kept;
	/* There was room for as many. */
	for (uint32_t i = 0; i < n; i++) {
		use_tree(w, &old[i], 1);
		forest->tree[forest->ntrees++] = old[i];
	}
	return 0;
}

static int improve(struct work *w, struct swc_forest *forest, uint32_t *room,
		   swc_forest_progress *progress, void *arg)
{
	double size = (double)w->g->nranks * (double)(w->g->nlinks + w->g->nranks);
	uint32_t rounds = (uint32_t)fmin(EFFORT / size, MOST_ROUNDS);
	uint32_t in_vain = 0;
	int ret = 0;

	if (!may_improve(w, forest))
		return 0;
	for (uint32_t i = 0; i < rounds && in_vain < IN_VAIN * forest->ntrees && !ret; i++) {
		bool better = false;

		ret = try_again(w, forest, room, &better);
		in_vain = better ? 0 : in_vain + 1;
		if (progress)
			progress(arg, 0.5 + 0.5 * i / rounds);
	}
	return ret;
}

static int by_root(const void *a, const void *b)
{
	const struct swc_tree *s = a, *t = b;

	if (s->root != t->root)
		return s->root < t->root ? -1 : 1;
	if (s->depth != t->depth)
		return s->depth < t->depth ? -1 : 1;
	return s->number < t->number ? -1 : s->number > t->number;
}

int swc_forest_pack(struct swc_forest *forest, const struct swc_graph *g, const int64_t *weight,
		    swc_forest_progress *progress, void *arg)
{
	struct work w = { .g = g, .random = 1 };
	uint32_t room = 0;
	int ret;

	*forest = (struct swc_forest){ .nranks = g->nranks };
	w.first = calloc(g->nranks + 1u, sizeof(*w.first));
	w.into = calloc(g->nranks, sizeof(*w.into));
	w.tried = calloc(g->nlinks + 1u, sizeof(*w.tried));
	w.side = calloc(g->nranks, sizeof(*w.side));
	w.depth = calloc(g->nranks, sizeof(*w.depth));
	w.order = calloc(g->nranks, sizeof(*w.order));
	ret = w.first && w.into && w.tried && w.side && w.depth && w.order
		      ? swc_maxflow_init(&w.f, g)
		      : -ENOMEM;
	for (uint32_t i = 0; !ret && i < g->nlinks; i++) {
		w.first[g->link[i].from + 1]++;
		w.into[g->link[i].to] += g->link[i].capacity;
	}
	for (uint32_t r = 0; !ret && r < g->nranks; r++) {
		w.first[r + 1] += w.first[r];
		w.f.supply[r] = weight[r];
		w.left += weight[r];
	}
	if (!ret)
		ret = pack(&w, forest, &room, progress, arg);
	if (!ret)
		ret = improve(&w, forest, &room, progress, arg);
	for (uint32_t i = 0; !ret && i < forest->ntrees; i++)
		forest->tree[i].number = i;
	if (!ret && forest->ntrees)
		qsort(forest->tree, forest->ntrees, sizeof(*forest->tree), by_root);
	swc_maxflow_free(&w.f);
	free(w.first);
	free(w.into);
	free(w.tried);
	free(w.side);
	free(w.depth);
	free(w.order);
	if (ret)
		swc_forest_free(forest);
	return ret;
}

void swc_forest_free(struct swc_forest *forest)
{
	free_trees(forest->tree, forest->ntrees);
	free(forest->tree);
	*forest = (struct swc_forest){ 0 };
}
