/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fastest trees of a collective on a topology, found once for all sizes, and what they cost.
 */
#ifndef SWC_PLAN_FOREST_TREES_H
#define SWC_PLAN_FOREST_TREES_H

#include "plan/forest/schedule.h"
#include "plan/model/model.h"

/* Collectives that trees are for, as bits 1 << enum swc_coll. */
#define SWC_FOREST_COLLS                                                                           \
	(1u << SWC_ALLREDUCE | 1u << SWC_REDUCE_SCATTER | 1u << SWC_ALLGATHER |                    \
	 1u << SWC_BROADCAST | 1u << SWC_REDUCE)

#define SWC_FOREST_MOST_PIECES 4096

/**
 * struct swc_trees - trees between the nodes of a topology
 * @g: the network between them
 * @phase: down, up
 * @has: which there are
 * @time: of the vector over a unit of capacity
 * @unit: Gbit/s of a unit of capacity, 0 if the topology has no rates
 */
struct swc_trees {
	enum swc_coll coll;
	uint32_t root;
	struct swc_graph g;
	struct swc_phase phase[2];
	bool has[2];
	double time, unit;
};

/**
 * swc_trees_find() - find the trees of a collective
 * @root: of BROADCAST and REDUCE: a node
 *
 * An allreduce is by any roots where that is clearly faster. There is no chance in it: all ranks find the
 * same trees.
 *
 * Return: 0, -ENOMEM, or -EINVAL with one line if it is not possible on this topology.
 */
int swc_trees_find(struct swc_trees *t, const struct swc_topo *topo, enum swc_coll coll,
		   uint32_t root, char *why, size_t why_bytes);
void swc_trees_free(struct swc_trees *t);

/*
 * No trees can be faster than this, in ns: by the links of each node, by those of all, and by the farthest
 * nodes. It is known without the trees, in microseconds. 0 if the topology has no graph.
 */
double swc_trees_least(const struct swc_topo *topo, enum swc_coll coll, double bytes,
		       const struct swc_network *net);

/* Segments that are the fastest for so many bytes by the model. */
uint32_t swc_trees_pieces(const struct swc_trees *t, const struct swc_topo *topo, double bytes,
			  const struct swc_network *net);

/*
 * The time in ns with so many segments by the step model: as many steps, and in each the largest load of a
 * link; and what the busiest node reduces on a channel. Infinite without memory.
 */
double swc_trees_time(const struct swc_trees *t, double bytes, uint32_t pieces,
		      const struct swc_network *net);

/* Connections of a node with so many segments, at most. */
uint32_t swc_trees_connections(const struct swc_trees *t, uint32_t pieces);

/* The schedule of so many segments; as swc_schedule_make(). */
int swc_trees_schedule(const struct swc_trees *t, const struct swc_topo *topo, uint32_t pieces,
		       struct swc_schedule *s, char *why, size_t why_bytes);

#endif /* SWC_PLAN_FOREST_TREES_H */
