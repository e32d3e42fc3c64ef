/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The least time of an allgather on a graph, exactly. */
#ifndef SWC_PLAN_FOREST_BOUND_H
#define SWC_PLAN_FOREST_BOUND_H

#include "plan/forest/graph.h"

/* A fraction in lowest terms. */
struct swc_fraction {
	int64_t p, q;
};

struct swc_fraction swc_fraction_of(int64_t p, int64_t q);
int64_t swc_gcd(int64_t a, int64_t b);

/* "7/2", or "7" */
#define SWC_FRACTION_TEXT 44
const char *swc_fraction_text(struct swc_fraction f, char text[SWC_FRACTION_TEXT]);

/**
 * struct swc_bound - how fast all ranks can send to all
 * @inv_x: 1/x: each rank sends x to all others at once. It is the largest number of ranks of a set
 *	over the capacity that leaves the set, of all sets of nodes without some rank. N shards of one
 *	unit take 1/x
 * @k: trees that each rank is root of
 * @slots: how many trees a unit of capacity carries
 * @side: by node: such a set. Owned.
 */
struct swc_bound {
	struct swc_fraction inv_x;
	int64_t k;
	struct swc_fraction slots;
	bool *side;
};

/* Find the bound of a graph that has passed swc_graph_check(). 0 or -ENOMEM. */
int swc_bound_find(struct swc_bound *bound, const struct swc_graph *g);
void swc_bound_free(struct swc_bound *bound);

/*
 * The most that @root can send to each of the other ranks at once (Edmonds: so many trees fit). 0 or
 * -ENOMEM.
 */
int swc_bound_broadcast(const struct swc_graph *g, uint32_t root, int64_t *rate);

#endif /* SWC_PLAN_FOREST_BOUND_H */
