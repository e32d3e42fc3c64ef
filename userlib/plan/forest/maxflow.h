/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Maximum flow from any supplies to one node, and the minimum cut. */
#ifndef SWC_PLAN_FOREST_MAXFLOW_H
#define SWC_PLAN_FOREST_MAXFLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/forest/graph.h"

/**
 * struct swc_maxflow - a network for many flows, of which the capacities may change in between
 * @n: nodes
 * @nlinks: links, in the order of the graph
 * @capacity: by link; the caller may change it
 * @supply: by node: what flows may take from there; the caller sets it. The sink's own supply counts
 *
 * The rest belongs to maxflow.c.
 */
struct swc_maxflow {
	uint32_t n, nlinks;
	int64_t *capacity, *supply;

	uint32_t *first;	  /* by node: its first arc */
	uint32_t *to, *back;	  /* by arc: where it leads, and the arc the other way */
	uint32_t *arc, *back_arc; /* by link: its arc, and the one against it */
	int64_t *left;		  /* by arc: residual capacity */
	int64_t *excess;	  /* by node */
	uint32_t *label, *current;
	uint32_t *queue, *bucket, *next, *count; /* active nodes by label */
	uint32_t highest, sink;
};

/* 0 or -ENOMEM. The capacities are those of the graph, supplies 0. */
int swc_maxflow_init(struct swc_maxflow *f, const struct swc_graph *g);
void swc_maxflow_free(struct swc_maxflow *f);

/* The most of all supplies that can flow to @sink. */
int64_t swc_maxflow_run(struct swc_maxflow *f, uint32_t sink);

/*
 * After a run: which nodes are on the side of the supplies. What of the supplies is on this side, and
 * has not come to the sink, is more than the links that leave the side can carry.
 */
void swc_maxflow_cut(struct swc_maxflow *f, bool *side);

#endif /* SWC_PLAN_FOREST_MAXFLOW_H */
