/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables of links, for those that make graphs. */
#ifndef SWC_PLAN_FOREST_LINKS_H
#define SWC_PLAN_FOREST_LINKS_H

#include "plan/forest/graph.h"

/* Bring the links into their order, and add up those with the same ends. */
void swc_links_sort(struct swc_graph *g);

/*
 * Make the switch of a topology pass on what it gets: in place of the faster way of its ports, what @use
 * can use of it. *unit changes with the capacities. 0 or -ENOMEM.
 */
int swc_ports_balance(struct swc_graph *g, const struct swc_graph_use *use, double *unit);

#endif /* SWC_PLAN_FOREST_LINKS_H */
