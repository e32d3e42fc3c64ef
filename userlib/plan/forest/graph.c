// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Graphs as tables of links: order, copies, and whether forests can be made. What a graph is made of
 * comes from graph_text.c or graph_topo.c. No locks; everything belongs to the caller.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forest/links.h"
#include "plan/text.h"

static int by_ends(const void *a, const void *b)
{
	const struct swc_link *l = a, *m = b;

	if (l->from != m->from)
		return l->from < m->from ? -1 : 1;
	return l->to < m->to ? -1 : l->to > m->to;
}

void swc_links_sort(struct swc_graph *g)
{
	uint32_t n = 0;

	if (g->nlinks)
		qsort(g->link, g->nlinks, sizeof(*g->link), by_ends);
	for (uint32_t i = 0; i < g->nlinks; i++) {
		if (n && !by_ends(&g->link[n - 1], &g->link[i]))
			g->link[n - 1].capacity += g->link[i].capacity;
		else
			g->link[n++] = g->link[i];
	}
	g->nlinks = n;
}

void swc_graph_free(struct swc_graph *g)
{
	for (uint32_t v = 0; g->name && v < g->nnodes; v++)
		free(g->name[v]);
	free(g->name);
	free(g->link);
	*g = (struct swc_graph){ 0 };
}

const char *swc_graph_name(const struct swc_graph *g, uint32_t node, char number[16])
{
	if (g->name)
		return g->name[node];
	snprintf(number, 16, "%u", node);
	return number;
}

uint32_t swc_graph_find(const struct swc_graph *g, uint32_t from, uint32_t to)
{
	struct swc_link key = { .from = from, .to = to };
	const struct swc_link *l = g->nlinks
					   ? bsearch(&key, g->link, g->nlinks, sizeof(*l), by_ends)
					   : NULL;

	return l ? (uint32_t)(l - g->link) : g->nlinks;
}

bool swc_graph_symmetric(const struct swc_graph *g)
{
	for (uint32_t i = 0; i < g->nlinks; i++) {
		uint32_t back = swc_graph_find(g, g->link[i].to, g->link[i].from);

		if (back == g->nlinks || g->link[back].capacity != g->link[i].capacity)
			return false;
	}
	return true;
}

/* A copy with the nodes numbered anew. */
static int copy(struct swc_graph *to, const struct swc_graph *g, const uint32_t *number)
{
	*to = (struct swc_graph){ .nranks = g->nranks, .nnodes = g->nnodes, .nlinks = g->nlinks };
	to->link = calloc(g->nlinks + 1u, sizeof(*to->link));
	if (!to->link)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->nlinks; i++) {
		to->link[i] = g->link[i];
		if (number) {
			to->link[i].from = number[g->link[i].from];
			to->link[i].to = number[g->link[i].to];
		}
	}
	to->name = g->name ? calloc(g->nnodes, sizeof(*to->name)) : NULL;
	for (uint32_t v = 0; to->name && v < g->nnodes; v++) {
		uint32_t w = number ? number[v] : v;

		to->name[w] = strdup(g->name[v]);
		if (!to->name[w])
			goto no_memory;
	}
	if (g->name && !to->name)
		goto no_memory;
	return 0;

no_memory:
	swc_graph_free(to);
	return -ENOMEM;
}

int swc_graph_reverse(struct swc_graph *reverse, const struct swc_graph *g)
{
	int ret = copy(reverse, g, NULL);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < g->nlinks; i++) {
		reverse->link[i].from = g->link[i].to;
		reverse->link[i].to = g->link[i].from;
	}
	swc_links_sort(reverse);
	return 0;
}

int swc_graph_among(struct swc_graph *sub, const struct swc_graph *g, const bool *member,
		    uint32_t **ranks, char *why, size_t why_bytes)
{
	uint32_t *number = calloc(g->nnodes, sizeof(*number)), n = 0, at;
	int ret = -ENOMEM;

	*ranks = calloc(g->nnodes, sizeof(**ranks));
	if (!number || !*ranks)
		goto out;
	for (uint32_t r = 0; r < g->nranks; r++)
		n += member[r];
	at = n;
	n = 0;
	for (uint32_t v = 0; v < g->nnodes; v++) {
		number[v] = v < g->nranks && member[v] ? n++ : at++;
		(*ranks)[number[v]] = v;
	}
	ret = copy(sub, g, number);
	if (ret)
		goto out;
	sub->nranks = n;
	/* Nodes without names would have other numbers now. */
	if (!sub->name) {
		sub->name = calloc(g->nnodes, sizeof(*sub->name));
		for (uint32_t v = 0; sub->name && v < g->nnodes && !ret; v++)
			if (asprintf(&sub->name[v], "%u", (*ranks)[v]) < 0) {
				sub->name[v] = NULL;
				ret = -ENOMEM;
			}
		if (!sub->name)
			ret = -ENOMEM;
	}
	swc_links_sort(sub);
	if (!ret)
		ret = swc_graph_check(sub, why, why_bytes);
	if (ret)
		swc_graph_free(sub);
out:
	free(number);
	if (ret) {
		free(*ranks);
		*ranks = NULL;
	}
	return ret;
}

/* The first rank that rank 0 does not reach, or (@back) that does not reach it; nranks if none. */
static uint32_t unreached(const struct swc_graph *g, bool back, bool *seen)
{
	bool more = true;

	memset(seen, 0, g->nnodes);
	seen[0] = true;
	while (more) {
		more = false;
		for (uint32_t i = 0; i < g->nlinks; i++) {
			uint32_t from = back ? g->link[i].to : g->link[i].from;
			uint32_t to = back ? g->link[i].from : g->link[i].to;

			if (seen[from] && !seen[to])
				more = seen[to] = true;
		}
	}
	for (uint32_t r = 0; r < g->nranks; r++)
		if (!seen[r])
			return r;
	return g->nranks;
}

static int check_switches(const struct swc_graph *g, char *why, size_t why_bytes)
{
	int64_t *in = calloc(g->nnodes, sizeof(*in)), *out = calloc(g->nnodes, sizeof(*out));
	char number[16];
	int ret = in && out ? 0 : -ENOMEM;

	for (uint32_t i = 0; !ret && i < g->nlinks; i++) {
		out[g->link[i].from] += g->link[i].capacity;
		in[g->link[i].to] += g->link[i].capacity;
	}
	for (uint32_t v = g->nranks; !ret && v < g->nnodes; v++)
		if (in[v] != out[v])
			ret = swc_text_refuse(why, why_bytes,
					      "switch %s gets up to %lld and passes on up to %lld: "
					      "its links in and out must be equal together",
					      swc_graph_name(g, v, number), (long long)in[v],
					      (long long)out[v]);
	free(in);
	free(out);
	return ret;
}

int swc_graph_check(const struct swc_graph *g, char *why, size_t why_bytes)
{
	char a[16], b[16];
	int ret = 0;
	bool *seen;

	if (g->nranks < 2)
		return swc_text_refuse(why, why_bytes, "%s: expected at least two",
				       g->nranks ? "there is one rank only" : "there are no ranks");
	seen = calloc(g->nnodes, sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	for (int back = 0; !ret && back < 2; back++) {
		uint32_t r = unreached(g, back, seen);

		if (r < g->nranks)
			ret = swc_text_refuse(
				why, why_bytes,
				"rank %s cannot reach rank %s: add links between them",
				swc_graph_name(g, back ? r : 0, a),
				swc_graph_name(g, back ? 0 : r, b));
	}
	free(seen);
	return ret ? ret : check_switches(g, why, why_bytes);
}
