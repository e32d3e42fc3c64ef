/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the ranks of a node share an all-to-all by nodes; see by_nodes.c. */
#ifndef SWC_PLAN_ALGO_BY_NODES_H
#define SWC_PLAN_ALGO_BY_NODES_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/topo.h"

#define SWC_BY_NODES_MAX_SEGMENTS 256

/**
 * struct swc_by_nodes - the segments of an all-to-all by nodes
 * @nodes, @local: nodes, and ranks of each
 * @sums: of a segment: so many sums of two nodes, but for the last segment
 * @segments: how many
 */
struct swc_by_nodes {
	uint32_t nodes, local, sums, segments;
};

/**
 * struct swc_by_nodes_part - what a local rank carries between two nodes in a segment
 * @sum: of the two nodes, modulo the number of nodes
 * @rank, @n: it carries the shards of so many local ranks from this one on
 * @at: place of their shards in its buffers, in units of the shards of a rank for a node
 */
struct swc_by_nodes_part {
	uint32_t sum, rank, n, at;
};

/* False if the network does not suit, or a segment would have fewer than two sums. */
bool swc_by_nodes_find(struct swc_by_nodes *k, const struct swc_topo *topo, int32_t param);

/* Sums of a segment. */
static inline uint32_t swc_by_nodes_sums(const struct swc_by_nodes *k, uint32_t segment)
{
	uint32_t left = k->nodes - segment * k->sums;

	return left < k->sums ? left : k->sums;
}

/* The next part of a local rank; the first one after a part of zeros. False past the last. */
bool swc_by_nodes_next(const struct swc_by_nodes *k, uint32_t segment, uint32_t local,
		       struct swc_by_nodes_part *part);

/* The node that adds up to a sum with another one, which may be itself. */
static inline uint32_t swc_by_nodes_peer(const struct swc_by_nodes *k, uint32_t sum, uint32_t node)
{
	return sum < node ? sum + k->nodes - node : sum - node;
}

/* The share of a rank's vector that its scratch memory takes. */
static inline double swc_by_nodes_scratch(const struct swc_by_nodes *k)
{
	return k->segments == 1 ? 1 : 2.0 * k->sums / k->nodes;
}

#endif /* SWC_PLAN_ALGO_BY_NODES_H */
