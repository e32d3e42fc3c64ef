/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GATHER and SCATTER along a tree: which shards a message carries, and where they are meanwhile.
 */
#ifndef SWC_PLAN_ALGO_GATHER_H
#define SWC_PLAN_ALGO_GATHER_H

#include "plan/algo/butterfly_peers.h"

/**
 * struct swc_box - members whose coordinates are in a range each, which may wrap around
 * @ndims: dimensions; members are numbered row by row
 * @d: their sizes
 * @start, @len: the ranges: from start on, len coordinates
 */
struct swc_box {
	uint32_t ndims, d[SWC_TOPO_DIMS], start[SWC_TOPO_DIMS], len[SWC_TOPO_DIMS];
};

/**
 * struct swc_gather - one port's tree, as one member sees it
 * @port, @ports: the port moves block @port of each shard, of @ports
 * @root: the member is the root
 * @parent: of others
 * @mine: the member and all below it
 * @nchildren, @child: its children, those served first on the way down first
 * @below: by child, the child and all below it
 */
struct swc_gather {
	uint32_t port, ports;
	bool root;
	uint32_t parent;
	struct swc_box mine;
	uint32_t nchildren, child[SWC_BUTTERFLY_STEPS];
	struct swc_box below[SWC_BUTTERFLY_STEPS];
};

/* Append a channel that gathers or scatters along the tree. */
void swc_gather_channel(struct swc_builder *b, const struct swc_gather *g);

static inline bool swc_is_gather(enum swc_coll coll)
{
	return coll == SWC_GATHER || coll == SWC_SCATTER;
}

#endif /* SWC_PLAN_ALGO_GATHER_H */
