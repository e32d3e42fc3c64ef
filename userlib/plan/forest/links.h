/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables of links, for those that make graphs. */
#ifndef SWC_PLAN_FOREST_LINKS_H
#define SWC_PLAN_FOREST_LINKS_H

#include "plan/forest/graph.h"

/* Bring the links into their order, and add up those with the same ends. */
void swc_links_sort(struct swc_graph *g);

#endif /* SWC_PLAN_FOREST_LINKS_H */
