// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Edge splitting. Capacity of links u -> w and w -> t of a switch w becomes capacity of a link u -> t,
 * as long as all trees still fit, that is, all can arrive at each rank. If a switch's links in and out
 * are equal together, this can go on until it has none (Bang-Jensen, Frank and Jackson, "Preserving
 * and increasing local edge-connectivity in mixed graphs", 1995).
 *
 * Trees are shallow if each node keeps links to many others. So a switch's capacity is first split
 * evenly among all pairs of neighbours, or so many that finding trees takes no minutes. If that is too much
 * for some cut, it is done in halves, down to single pairs, of which so much is taken as is possible: if a
 * cut lacks d trees, then d less, as a pair takes the same from each cut that it concerns. What remains is
 * split pair by pair.
 */
#include "plan/forest/splitting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forest/maxflow.h"
#include "plan/table.h"

#define NONE UINT32_MAX
#define MOST_PAIRS 4096 /* of a switch's neighbours, at first */
#define LEAST_PARTNERS 8

/* Split @amount of u -> w -> t. */
struct pair {
	uint32_t u, t;
	int64_t amount;
};

/**
 * struct work - what is being split
 * @n: nodes
 * @number: by from * n + to: the link, plus one
 * @link: links, also those without capacity
 * @parts: by link: what ways it takes
 * @pair: what is to be split next
 * @first: all ranks, in the order in which they are asked for trees that do not arrive
 */
struct work {
	struct swc_splitting *s;
	const struct swc_graph *g;
	const int64_t *weight;
	int64_t all;
	uint32_t n, nlinks, link_room, parts_room;
	uint32_t *number;
	struct swc_link *link;
	uint32_t *parts;
	struct pair *pair;
	uint32_t npairs, pair_room;
	uint32_t *first;
	bool failed; /* no memory */
};

/* The capacity of a pair of nodes, made if there is none. */
static struct swc_link *link_of(struct work *k, uint32_t from, uint32_t to)
{
	uint32_t *at = &k->number[(size_t)from * k->n + to];

	if (!*at) {
		if (!swc_table_reserve(&k->link, k->nlinks, &k->link_room, sizeof(*k->link)) ||
		    !swc_table_reserve(&k->parts, k->nlinks, &k->parts_room, sizeof(*k->parts))) {
			k->failed = true;
			return NULL;
		}
		k->link[k->nlinks] = (struct swc_link){ from, to, 0 };
		k->parts[k->nlinks] = NONE;
		*at = ++k->nlinks;
	}
	return &k->link[*at - 1];
}

static int64_t capacity(const struct work *k, uint32_t from, uint32_t to)
{
	uint32_t at = k->number[(size_t)from * k->n + to];

	return at ? k->link[at - 1].capacity : 0;
}

/*
 * How many trees cannot arrive at the rank where most cannot; so many as are @enough to know, or more, are
 * not counted any further. Ranks where some could not arrive lately come first. Negative: no memory.
 */
static int64_t lacking(struct work *k, int64_t enough)
{
	struct swc_graph now = { .nranks = k->g->nranks, .nnodes = k->n, .link = NULL };
	struct swc_maxflow f;
	int64_t most = 0;

	now.link = calloc(k->nlinks + 1u, sizeof(*now.link));
	if (!now.link)
		goto no_memory;
	for (uint32_t i = 0; i < k->nlinks; i++)
		if (k->link[i].capacity)
			now.link[now.nlinks++] = k->link[i];
	if (swc_maxflow_init(&f, &now))
		goto no_memory;
	for (uint32_t r = 0; r < now.nranks; r++)
		f.supply[r] = k->weight[r];
	for (uint32_t i = 0; i < now.nranks && most < enough; i++) {
		uint32_t r = k->first[i];
		int64_t d = k->all - swc_maxflow_run(&f, r);

		if (d > 0) {
			memmove(k->first + 1, k->first, i * sizeof(*k->first));
			k->first[0] = r;
		}
		most = d > most ? d : most;
	}
	swc_maxflow_free(&f);
	free(now.link);
	return most;

no_memory:
	free(now.link);
	k->failed = true;
	return -1;
}

/* ---- the ways of what is split ---- */

static uint32_t add_way(struct swc_splitting *s, struct swc_way way)
{
	if (!swc_table_reserve(&s->way, s->nways, &s->way_room, sizeof(*s->way)))
		return NONE;
	s->way[s->nways] = way;
	return s->nways++;
}

static bool add_part(struct swc_splitting *s, uint32_t *parts, uint32_t way, int64_t amount)
{
	if (way == NONE || !swc_table_reserve(&s->part, s->nparts, &s->part_room, sizeof(*s->part)))
		return false;
	s->part[s->nparts] = (struct swc_part){ way, *parts, amount };
	*parts = s->nparts++;
	return true;
}

static int64_t take(struct swc_splitting *s, uint32_t *parts, int64_t amount, uint32_t *way)
{
	struct swc_part *p = &s->part[*parts];

	*way = p->way;
	if (amount >= p->amount) {
		amount = p->amount;
		*parts = p->next;
	} else {
		p->amount -= amount;
	}
	return amount;
}

int64_t swc_splitting_take(struct swc_splitting *s, uint32_t link, int64_t amount, uint32_t *way)
{
	return take(s, &s->parts[link], amount, way);
}

/* Join what the two links' parts are. */
static void join(struct work *k, uint32_t u, uint32_t w, uint32_t t, int64_t amount)
{
	uint32_t in = k->number[(size_t)u * k->n + w] - 1,
		 out = k->number[(size_t)w * k->n + t] - 1;
	uint32_t direct = k->number[(size_t)u * k->n + t] - 1, a = 0, b = 0;
	int64_t left_a = 0, left_b = 0;

	while (amount) {
		int64_t d;

		if (!left_a)
			left_a = take(k->s, &k->parts[in], amount, &a);
		if (!left_b)
			left_b = take(k->s, &k->parts[out], amount, &b);
		d = left_a < left_b ? left_a : left_b;
		left_a -= d;
		left_b -= d;
		amount -= d;
		if (u != t && !add_part(k->s, &k->parts[direct],
					add_way(k->s, (struct swc_way){ a, b, true }), d)) {
			k->failed = true;
			return;
		}
	}
}

/* ---- splitting ---- */

/* Capacity from u over w to itself is of no use to anyone: it is dropped. */
static void apply(struct work *k, uint32_t w, const struct pair *p, int64_t amount)
{
	struct swc_link *l;

	if (p->u != p->t) {
		l = link_of(k, p->u, p->t);
		if (!l)
			return;
		l->capacity += amount;
	}
	link_of(k, p->u, w)->capacity -= amount;
	link_of(k, w, p->t)->capacity -= amount;
}

static void keep(struct work *k, uint32_t w, const struct pair *p, int64_t amount)
{
	if (amount && !k->failed)
		join(k, p->u, w, p->t, amount);
}

static void apply_all(struct work *k, uint32_t w, uint32_t from, uint32_t to, int sign)
{
	for (uint32_t i = from; i < to && !k->failed; i++)
		apply(k, w, &k->pair[i], sign * k->pair[i].amount);
}

/* Do all of these pairs if that is possible, else each half; of one pair, as much as is possible. */
static void split(struct work *k, uint32_t w, uint32_t from, uint32_t to)
{
	int64_t d;

	if (from == to || k->failed)
		return;
	apply_all(k, w, from, to, 1);
	d = k->failed ? -1 : lacking(k, to - from > 1 ? 1 : k->pair[from].amount);
	if (d < 0)
		return;
	if (!d) {
		for (uint32_t i = from; i < to; i++)
			keep(k, w, &k->pair[i], k->pair[i].amount);
	} else if (to - from == 1) {
		struct pair *p = &k->pair[from];

		d = d < p->amount ? d : p->amount;
		apply(k, w, p, -d);
		keep(k, w, p, p->amount - d);
	} else {
		apply_all(k, w, from, to, -1);
		split(k, w, from, from + (to - from) / 2);
		split(k, w, from + (to - from) / 2, to);
	}
}

static void add_pair(struct work *k, uint32_t u, uint32_t t, int64_t amount)
{
	if (!swc_table_reserve(&k->pair, k->npairs, &k->pair_room, sizeof(*k->pair)))
		k->failed = true;
	else
		k->pair[k->npairs++] = (struct pair){ u, t, amount };
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/*
 * Divide a switch's capacity among all pairs of its neighbours, in proportion; in and out say by node
 * what is left. Neighbours @shift places apart come one after the other, so that remainders are spread.
 */
static bool divide(struct work *k, const uint32_t *node, uint32_t n, int64_t *in, int64_t *out)
{
	uint32_t before = k->npairs, stride, left;
	int64_t all = 0;

	if (n < 2)
		return false;
	stride = larger((n - 1) / larger(MOST_PAIRS / n, LEAST_PARTNERS), 1);
	left = (n - 2 + stride) / stride;
	for (uint32_t i = 0; i < n; i++)
		all += out[node[i]];
	for (uint32_t shift = 1; shift < n; shift += stride, left--)
		for (uint32_t i = 0; i < n; i++) {
			uint32_t u = node[i], t = node[(i + shift) % n];
			__int128 product = (__int128)in[u] * out[t];
			int64_t most = in[u] < out[t] ? in[u] : out[t], rest = all - out[u], d;

			if (!most || rest <= 0)
				continue;
			/* The shares of later shifts are still in what is left. */
			d = (int64_t)(product * (n - 1) / ((__int128)rest * left));
			d = d < 1 ? 1 : d < most ? d : most;
			add_pair(k, u, t, d);
			in[u] -= d;
			out[t] -= d;
			all -= d;
		}
	return k->npairs > before;
}

static void propose(struct work *k, uint32_t w, const uint32_t *node, uint32_t n, int64_t *in,
		    int64_t *out)
{
	for (uint32_t i = 0; i < n; i++) {
		in[node[i]] = capacity(k, node[i], w);
		out[node[i]] = capacity(k, w, node[i]);
	}
	k->npairs = 0;
	while (!k->failed && divide(k, node, n, in, out))
		;
}

/* Whatever is left, pair by pair; those that lead back last. */
static void split_rest(struct work *k, uint32_t w, const uint32_t *node, uint32_t n)
{
	for (int back = 0; back < 2; back++)
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t j = 0; j < n; j++) {
				int64_t in = capacity(k, node[i], w), out = capacity(k, w, node[j]);

				if (!in || !out || (i == j) != back || k->failed)
					continue;
				k->npairs = 0;
				add_pair(k, node[i], node[j], in < out ? in : out);
				split(k, w, 0, k->npairs);
			}
}

static void remove_switch(struct work *k, uint32_t w, uint32_t *node, int64_t *in, int64_t *out)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < k->n; v++)
		if (capacity(k, v, w) || capacity(k, w, v))
			node[n++] = v;
	propose(k, w, node, n, in, out);
	split(k, w, 0, k->npairs);
	split_rest(k, w, node, n);
}

/* ---- beginning and end ---- */

static int begin(struct work *k)
{
	k->number = calloc((size_t)k->n * k->n, sizeof(*k->number));
	k->first = calloc(k->g->nranks, sizeof(*k->first));
	if (!k->number || !k->first)
		return -ENOMEM;
	for (uint32_t r = 0; r < k->g->nranks; r++) {
		k->all += k->weight[r];
		k->first[r] = r;
	}
	for (uint32_t i = 0; i < k->g->nlinks; i++) {
		const struct swc_link *from = &k->g->link[i];
		struct swc_link *l = link_of(k, from->from, from->to);

		if (!l)
			return -ENOMEM;
		l->capacity = from->capacity;
		if (!add_part(k->s, &k->parts[k->nlinks - 1],
			      add_way(k->s, (struct swc_way){ from->from, from->to, false }),
			      from->capacity))
			return -ENOMEM;
	}
	return 0;
}

static int by_ends(const void *a, const void *b)
{
	const struct swc_link *l = a, *m = b;

	if (l->from != m->from)
		return l->from < m->from ? -1 : 1;
	return l->to < m->to ? -1 : l->to > m->to;
}

/* The links among ranks, in their order. */
static int end(struct work *k)
{
	struct swc_graph *d = &k->s->direct;

	*d = (struct swc_graph){ .nranks = k->g->nranks, .nnodes = k->g->nranks };
	d->link = calloc(k->nlinks + 1u, sizeof(*d->link));
	k->s->parts = calloc(k->nlinks + 1u, sizeof(*k->s->parts));
	if (!d->link || !k->s->parts)
		return -ENOMEM;
	for (uint32_t i = 0; i < k->nlinks; i++) {
		if (!k->link[i].capacity)
			continue;
		if (k->link[i].from >= d->nranks || k->link[i].to >= d->nranks)
			return -EINVAL; /* not all could be split: the trees are too many */
		d->link[d->nlinks++] = k->link[i];
	}
	qsort(d->link, d->nlinks, sizeof(*d->link), by_ends);
	for (uint32_t i = 0; i < d->nlinks; i++)
		k->s->parts[i] =
			k->parts[k->number[(size_t)d->link[i].from * k->n + d->link[i].to] - 1];
	return 0;
}

int swc_splitting_make(struct swc_splitting *s, const struct swc_graph *g, const int64_t *weight,
		       swc_forest_progress *progress, void *arg)
{
	struct work k = { .s = s, .g = g, .weight = weight, .n = g->nnodes };
	uint32_t *node = calloc(g->nnodes, sizeof(*node));
	int64_t *in = calloc(g->nnodes, sizeof(*in)), *out = calloc(g->nnodes, sizeof(*out));
	int ret = node && in && out ? 0 : -ENOMEM;

	*s = (struct swc_splitting){ 0 };
	if (!ret)
		ret = begin(&k);
	if (!ret && lacking(&k, 1))
		ret = k.failed ? -ENOMEM : -EINVAL;
	for (uint32_t w = g->nranks; !ret && w < g->nnodes; w++) {
		remove_switch(&k, w, node, in, out);
		if (progress)
			progress(arg, (w + 1.0 - g->nranks) / (g->nnodes - g->nranks));
		if (k.failed)
			ret = -ENOMEM;
	}
	if (!ret)
		ret = end(&k);
	free(node);
	free(in);
	free(out);
	free(k.number);
	free(k.first);
	free(k.link);
	free(k.parts);
	free(k.pair);
	if (ret)
		swc_splitting_free(s);
	return ret;
}

void swc_splitting_free(struct swc_splitting *s)
{
	swc_graph_free(&s->direct);
	free(s->way);
	free(s->part);
	free(s->parts);
	*s = (struct swc_splitting){ 0 };
}

uint32_t swc_splitting_nodes(const struct swc_splitting *s, uint32_t way, uint32_t *node,
			     uint32_t max)
{
	const struct swc_way *w = &s->way[way];
	uint32_t n;

	if (w->joined) {
		n = swc_splitting_nodes(s, w->a, node, max);
		n -= n != 0; /* the second begins where the first ends */
		return n + swc_splitting_nodes(s, w->b, node + n, n < max ? max - n : 0);
	}
	if (max > 0)
		node[0] = w->a;
	if (max > 1)
		node[1] = w->b;
	return 2;
}
