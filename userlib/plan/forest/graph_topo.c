// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Graphs of topologies: a node of the topology is a rank with its links, as the models count them. A
 * dimension of two nodes of a torus has two links between them.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "plan/forest/links.h"
#include "plan/text.h"

/* Rates become whole numbers up to this: a rate that needs more is rounded. */
#define MAX_UNITS 1000

/**
 * struct rates - the rates of links as small whole numbers
 * @n: different ones
 * @slowness: how much slower than the fastest links
 * @whole: in the unit
 */
struct rates {
	uint32_t n;
	double *slowness;
	int64_t *whole;
};

static int by_slowness(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool alike(double a, double b)
{
	return fabs(a - b) < 1e-9 * a;
}

static uint32_t find_rate(const struct rates *r, double slowness)
{
	uint32_t i = 0;

	while (i + 1 < r->n && !alike(r->slowness[i], slowness))
		i++;
	return i;
}

static int list_rates(struct rates *r, const struct swc_topo *t)
{
	uint32_t all = t->ndims + t->nslow, n = 0;

	*r = (struct rates){ .slowness = calloc(all, sizeof(*r->slowness)),
			     .whole = calloc(all, sizeof(*r->whole)) };
	if (!r->slowness || !r->whole)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->ndims; i++)
		r->slowness[n++] = swc_topo_slowness(t, i);
	for (uint32_t i = 0; i < t->nslow; i++)
		r->slowness[n++] = t->gbps / t->slow[i].gbps;
	qsort(r->slowness, n, sizeof(*r->slowness), by_slowness);
	for (uint32_t i = 0; i < n; i++)
		if (!i || !alike(r->slowness[r->n - 1], r->slowness[i]))
			r->slowness[r->n++] = r->slowness[i];
	return 0;
}

/* Count in parts of the slowest link's rate. Returns the unit. */
static double make_whole(struct rates *r, double gbps)
{
	double least = 1, error, most = r->slowness[r->n - 1];
	uint32_t best = 1;

	for (uint32_t n = 1; n <= MAX_UNITS; n++) {
		error = 0;
		for (uint32_t i = 0; i < r->n; i++) {
			double x = n * most / r->slowness[i];

			error = fmax(error, fabs(x - round(x)) / x);
		}
		if (error < least - 1e-9) {
			least = error;
			best = n;
		}
		if (least < 1e-9)
			break;
	}
	for (uint32_t i = 0; i < r->n; i++)
		r->whole[i] = (int64_t)fmin(round(best * most / r->slowness[i]),
					    SWC_GRAPH_MAX_CAPACITY / SWC_GRAPH_MAX_NODES);
	return gbps / most / best;
}

static void add(struct swc_graph *g, const struct swc_topo *t, const struct rates *r, uint32_t from,
		uint32_t to, uint32_t dim)
{
	double slowness = swc_topo_link_slowness(t, from, to, dim);
	int64_t links = 1;

	if (t->kind == SWC_TOPO_SWITCH)
		links = swc_topo_rails(t);
	g->link[g->nlinks++] = (struct swc_link){ from, to,
						  links * r->whole[find_rate(r, slowness)] };
}

/* The links of a node towards higher coordinates, and those back. */
static void add_links(struct swc_graph *g, const struct swc_topo *t, const struct rates *r,
		      uint32_t node)
{
	uint32_t coord[SWC_TOPO_DIMS];

	swc_topo_coords(t, node, coord);
	for (uint32_t i = 0; i < t->ndims; i++) {
		uint32_t at = coord[i], next;

		if (t->dim[i] < 2 || (t->kind == SWC_TOPO_MESH && at + 1 == t->dim[i]))
			continue;
		coord[i] = (at + 1) % t->dim[i];
		next = swc_topo_node_at(t, coord);
		coord[i] = at;
		add(g, t, r, node, next, i);
		add(g, t, r, next, node, i);
	}
}

int swc_graph_of_topo(struct swc_graph *g, const struct swc_topo *t,
		      const struct swc_graph_use *use, double *unit, char *why, size_t why_bytes)
{
	bool star = t->kind == SWC_TOPO_SWITCH;
	struct rates rates;
	int ret;

	*g = (struct swc_graph){ .nranks = t->nnodes, .nnodes = t->nnodes + star };
	if (g->nnodes > SWC_GRAPH_MAX_NODES)
		return swc_text_refuse(why, why_bytes, "%u nodes: forests have at most %u",
				       g->nnodes, SWC_GRAPH_MAX_NODES);
	ret = list_rates(&rates, t);
	g->link = calloc((size_t)t->nnodes * t->ndims * 2 + 1, sizeof(*g->link));
	if (!ret && !g->link)
		ret = -ENOMEM;
	if (!ret)
		*unit = make_whole(&rates, t->gbps);
	for (uint32_t v = 0; !ret && v < t->nnodes; v++) {
		if (star) {
			add(g, t, &rates, v, t->nnodes, 0);
			add(g, t, &rates, t->nnodes, v, 0);
		} else {
			add_links(g, t, &rates, v);
		}
	}
	free(rates.slowness);
	free(rates.whole);
	if (!ret && star)
		ret = swc_ports_balance(g, use, unit);
	if (!ret) {
		swc_links_sort(g);
		ret = swc_graph_check(g, why, why_bytes);
	}
	if (ret)
		swc_graph_free(g);
	return ret;
}
