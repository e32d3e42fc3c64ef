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

/* The rates of the dimensions as small whole numbers; returns the unit. */
static double whole_rates(const struct swc_topo *t, int64_t *rate)
{
	double least = 1, error, most = 0;
	uint32_t best = 1;

	for (uint32_t i = 0; i < t->ndims; i++)
		most = fmax(most, swc_topo_slowness(t, i));
	/* Count in parts of the slowest dimension's rate. */
	for (uint32_t n = 1; n <= MAX_UNITS; n++) {
		error = 0;
		for (uint32_t i = 0; i < t->ndims; i++) {
			double x = n * most / swc_topo_slowness(t, i);

			error = fmax(error, fabs(x - round(x)) / x);
		}
		if (error < least - 1e-9) {
			least = error;
			best = n;
		}
		if (least < 1e-9)
			break;
	}
	for (uint32_t i = 0; i < t->ndims; i++)
		rate[i] = (int64_t)fmin(round(best * most / swc_topo_slowness(t, i)),
					SWC_GRAPH_MAX_CAPACITY / SWC_GRAPH_MAX_NODES);
	return t->gbps / most / best;
}

static void add(struct swc_graph *g, uint32_t from, uint32_t to, int64_t capacity)
{
	g->link[g->nlinks++] = (struct swc_link){ from, to, capacity };
}

/* The links of a node towards higher coordinates, and those back. */
static void add_links(struct swc_graph *g, const struct swc_topo *t, uint32_t node,
		      const int64_t *rate)
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
		add(g, node, next, rate[i]);
		add(g, next, node, rate[i]);
	}
}

int swc_graph_of_topo(struct swc_graph *g, const struct swc_topo *t, double *unit, char *why,
		      size_t why_bytes)
{
	bool star = t->kind == SWC_TOPO_SWITCH;
	int64_t rate[SWC_TOPO_DIMS] = { 1 };
	int ret;

	*g = (struct swc_graph){ .nranks = t->nnodes, .nnodes = t->nnodes + star };
	if (t->nnodes != t->nranks)
		return swc_text_refuse(
			why, why_bytes,
			"nodes have several ranks: forests are for one rank on each node");
	if (g->nnodes > SWC_GRAPH_MAX_NODES)
		return swc_text_refuse(why, why_bytes, "%u nodes: forests have at most %u",
				       g->nnodes, SWC_GRAPH_MAX_NODES);
	*unit = star ? t->gbps : whole_rates(t, rate);
	g->link = calloc((size_t)t->nnodes * t->ndims * 2 + 1, sizeof(*g->link));
	if (!g->link)
		return -ENOMEM;
	for (uint32_t v = 0; v < t->nnodes; v++) {
		if (star) {
			add(g, v, t->nnodes, swc_topo_rails(t));
			add(g, t->nnodes, v, swc_topo_rails(t));
		} else {
			add_links(g, t, v, rate);
		}
	}
	swc_links_sort(g);
	ret = swc_graph_check(g, why, why_bytes);
	if (ret)
		swc_graph_free(g);
	return ret;
}
