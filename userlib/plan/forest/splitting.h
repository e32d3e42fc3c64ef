/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Edge splitting: a graph without switches that is as good, and how its links run through them. */
#ifndef SWC_PLAN_FOREST_SPLITTING_H
#define SWC_PLAN_FOREST_SPLITTING_H

#include "plan/forest/graph.h"

/* A link of the first graph from @a to @b; or, if @joined, the way @a, then the way @b. */
struct swc_way {
	uint32_t a, b;
	bool joined;
};

/* A part of a link that takes a way; @next: the link's next part, UINT32_MAX behind the last. */
struct swc_part {
	uint32_t way, next;
	int64_t amount;
};

/**
 * struct swc_splitting - a graph of ranks only
 * @direct: its links; it has no names
 * @way, @part: ways through the first graph. Owned.
 * @parts: by link of @direct: the first part. Owned.
 */
struct swc_splitting {
	struct swc_graph direct;
	struct swc_way *way;
	struct swc_part *part;
	uint32_t *parts;
	uint32_t nways, nparts, way_room, part_room;
};

/* Called with how much is done, 0 to 1; may be NULL. */
typedef void swc_forest_progress(void *arg, double done);

/**
 * swc_splitting_make() - remove the switches
 * @g: a graph that has passed swc_graph_check(); capacities count trees
 * @weight: by rank: the trees that begin there. They must be possible: at each rank, as much as all
 *	of them must be able to arrive
 *
 * The same trees are possible in the new graph.
 *
 * Return: 0, -ENOMEM, or -EINVAL if the trees are not possible.
 */
int swc_splitting_make(struct swc_splitting *s, const struct swc_graph *g, const int64_t *weight,
		       swc_forest_progress *progress, void *arg);
void swc_splitting_free(struct swc_splitting *s);

/*
 * Take up to @amount of a link's capacity. Returns how much of it goes the one way *way; call again
 * for the rest.
 */
int64_t swc_splitting_take(struct swc_splitting *s, uint32_t link, int64_t amount, uint32_t *way);

/* The nodes of a way from its first to its last. Returns their number, at most @max are stored. */
uint32_t swc_splitting_nodes(const struct swc_splitting *s, uint32_t way, uint32_t *node,
			     uint32_t max);

#endif /* SWC_PLAN_FOREST_SPLITTING_H */
