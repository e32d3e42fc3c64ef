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
 * anew later. A link that gets none will not get any while the batch grows.
 *
 * A batch grows from nodes next to the root first, and by the link with most capacity left: so trees
 * are shallow, and links wear out evenly. The root with most trees left is next.
 */
#include "plan/forest/packing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forest/maxflow.h"
#include "plan/table.h"

/**
 * struct work - a packing
 * @f: capacities are what all trees before leave, and the batch so far; supplies are the trees that
 *	have not been packed, without the batch
 * @first: by rank: its first link
 * @into: by rank: capacity of the links to it
 * @left: trees that have not been packed, with the batch
 * @tried: by link: the batch has no use for it
 * @depth: by rank, UINT32_MAX if it is not in the batch
 * @size: ranks in the batch
 */
struct work {
	const struct swc_graph *g;
	struct swc_maxflow f;
	uint32_t *first;
	int64_t *into;
	int64_t left;
	bool *tried;
	uint32_t *depth, size;
	struct swc_tree *t;
};

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

	memset(w->tried, 0, w->g->nlinks);
	for (uint32_t v = 0; v < n; v++)
		w->depth[v] = UINT32_MAX;
	w->depth[w->t->root] = 0;
	w->t->parent[w->t->root] = w->t->order[0] = w->t->root;
	w->size = 1;
	while (w->size < n) {
		uint32_t link = best_link(w, depth);
		int64_t amount;

		if (link == w->g->nlinks) {
			if (depth++ == w->t->depth)
				return -EINVAL;
			continue;
		}
		w->tried[link] = true;
		amount = usable(w, link);
		if (amount <= 0)
			continue;
		if (amount < w->t->weight)
			shrink(w, amount);
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

static int pack(struct work *w, struct swc_forest *forest, swc_forest_progress *progress, void *arg)
{
	int64_t all = w->left;
	uint32_t room = 0;

	while (w->left) {
		uint32_t root = next_root(w);
		int ret = new_tree(forest, &room);

		if (ret)
			return ret;
		w->t = &forest->tree[forest->ntrees - 1];
		w->t->root = root;
		w->t->weight = w->f.supply[root];
		w->f.supply[root] = 0;
		ret = grow(w);
		if (ret)
			return ret;
		w->left -= w->t->weight;
		if (progress)
			progress(arg, 1 - (double)w->left / (double)all);
	}
	return 0;
}

static int by_root(const void *a, const void *b)
{
	const struct swc_tree *s = a, *t = b;

	if (s->root != t->root)
		return s->root < t->root ? -1 : 1;
	return s->depth < t->depth ? -1 : s->depth > t->depth;
}

int swc_forest_pack(struct swc_forest *forest, const struct swc_graph *g, const int64_t *weight,
		    swc_forest_progress *progress, void *arg)
{
	struct work w = { .g = g };
	int ret;

	*forest = (struct swc_forest){ .nranks = g->nranks };
	w.first = calloc(g->nranks + 1u, sizeof(*w.first));
	w.into = calloc(g->nranks, sizeof(*w.into));
	w.tried = calloc(g->nlinks + 1u, sizeof(*w.tried));
	w.depth = calloc(g->nranks, sizeof(*w.depth));
	ret = w.first && w.into && w.tried && w.depth ? swc_maxflow_init(&w.f, g) : -ENOMEM;
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
		ret = pack(&w, forest, progress, arg);
	if (!ret && forest->ntrees)
		qsort(forest->tree, forest->ntrees, sizeof(*forest->tree), by_root);
	swc_maxflow_free(&w.f);
	free(w.first);
	free(w.into);
	free(w.tried);
	free(w.depth);
	if (ret)
		swc_forest_free(forest);
	return ret;
}

void swc_forest_free(struct swc_forest *forest)
{
	for (uint32_t i = 0; i < forest->ntrees; i++)
		free(forest->tree[i].parent);
	free(forest->tree);
	*forest = (struct swc_forest){ 0 };
}
