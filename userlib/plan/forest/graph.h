/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Networks as graphs: ranks and switches, joined by links with capacities. They come from text or
 * from a topology.
 *
 *	A B 4		a link in each direction, of capacity 4
 *	A > B 2		a link from A to B only
 *	switch S T	S and T are switches; other names are ranks, numbered as they appear
 *
 * Blanks separate words, and # starts a comment. Capacities are whole numbers; links that are named
 * more than once add up.
 */
#ifndef SWC_PLAN_FOREST_GRAPH_H
#define SWC_PLAN_FOREST_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"

#define SWC_GRAPH_MAX_NODES 4096
#define SWC_GRAPH_MAX_NAME 64
/* Of a link, and of all links together: so that no product in this folder overflows. */
#define SWC_GRAPH_MAX_CAPACITY 1000000000
#define SWC_GRAPH_MAX_TOTAL 1000000000000

/* @from, @to: nodes */
struct swc_link {
	uint32_t from, to;
	int64_t capacity;
};

/**
 * struct swc_graph - a network
 * @nranks: ranks; they are the nodes from 0 on
 * @nnodes: ranks and switches
 * @nlinks: links
 * @link: in order of @from, then of @to; no two have both in common, and all have a capacity. Owned.
 * @name: by node, NULL if nodes are named by their numbers. Owned.
 */
struct swc_graph {
	uint32_t nranks, nnodes, nlinks;
	struct swc_link *link;
	char **name;
};

/*
 * The functions below return 0, -ENOMEM or -EINVAL. On -EINVAL @why gets one line that names the
 * fault. A graph that was filled is to be freed with swc_graph_free().
 */

/* Read a graph from its text of @bytes bytes. */
int swc_graph_parse(struct swc_graph *g, const char *text, size_t bytes, char *why,
		    size_t why_bytes);

/* What a graph is for; @root: of BROADCAST and REDUCE */
struct swc_graph_use {
	enum swc_coll coll;
	uint32_t root;
};

/*
 * The graph of a topology with one rank on each node. Capacities are the rates of the links as small
 * whole numbers, times *unit Gbit/s; *unit is 0 if the topology has no rates. Where ports of a switch are
 * slower one way than the other, the graph is for one collective; NULL: they count as slow both ways.
 */
int swc_graph_of_topo(struct swc_graph *g, const struct swc_topo *topo,
		      const struct swc_graph_use *use, double *unit, char *why, size_t why_bytes);

/*
 * The same network with some ranks as switches, which forward only: @member tells by rank which stay
 * ranks. *ranks, which the caller frees, gets the old numbers by new node.
 */
int swc_graph_among(struct swc_graph *sub, const struct swc_graph *g, const bool *member,
		    uint32_t **ranks, char *why, size_t why_bytes);

/*
 * Can forests be made: are there two ranks, does each reach each, and do switches pass on as much as
 * they get?
 */
int swc_graph_check(const struct swc_graph *g, char *why, size_t why_bytes);

/* All links turned round. */
int swc_graph_reverse(struct swc_graph *reverse, const struct swc_graph *g);

/* Has each link one of equal capacity the other way? Then g is its own reverse. */
bool swc_graph_symmetric(const struct swc_graph *g);

/* The number of a link, or nlinks. */
uint32_t swc_graph_find(const struct swc_graph *g, uint32_t from, uint32_t to);

/* The name of a node; @number is for those that have none. */
const char *swc_graph_name(const struct swc_graph *g, uint32_t node, char number[16]);

void swc_graph_free(struct swc_graph *g);

#endif /* SWC_PLAN_FOREST_GRAPH_H */
