/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loads of all links by time, where messages are many: of each only where it begins and where it ends is
 * kept, and the sums along each line are the loads.
 */
#ifndef SWC_PLAN_MODEL_LOADS_H
#define SWC_PLAN_MODEL_LOADS_H

#include "plan/topo.h"

/**
 * struct swc_loads - the loads
 * @load: by time, dimension and way (up, down), and node: by how many blocks the link that leads away from
 *	the node has more than the one below it; on a switch, those into it and those out of it
 * @hops: by time: the longest route
 * @times: that there is room for
 */
struct swc_loads {
	const struct swc_topo *topo;
	uint32_t stride[SWC_TOPO_DIMS];
	uint32_t times;
	int32_t *load;
	uint32_t *hops;
};

/* The links of a leg of a route, of all lines alike. @wraps: they go on at the beginning of the line */
struct swc_span {
	uint32_t dim, way, begin, end;
	bool wraps;
};

/* 0, -EOPNOTSUPP if it is too much, or -ENOMEM. Free with swc_loads_free() in any case. */
int swc_loads_open(struct swc_loads *l, const struct swc_topo *topo, uint32_t times);
void swc_loads_free(struct swc_loads *l);

/* The links of a leg from a coordinate on. */
struct swc_span swc_span_of(const struct swc_topo *t, const struct swc_topo_leg *leg,
			    uint32_t from);

/* @base: the first node of the line */
static inline void swc_loads_add(struct swc_loads *l, uint32_t time, const struct swc_span *s,
				 uint32_t base, int32_t blocks)
{
	uint32_t stride = l->stride[s->dim];
	int32_t *load = l->load +
			(((size_t)time * l->topo->ndims + s->dim) * 2 + s->way) * l->topo->nnodes +
			base;

	load[s->begin * stride] += blocks;
	if (s->wraps)
		*load += blocks;
	if (s->end < l->topo->dim[s->dim])
		load[s->end * stride] -= blocks;
}

/* On a switch, a message loads a link into it and one out of it. */
static inline void swc_loads_add_switched(struct swc_loads *l, uint32_t time, uint32_t from,
					  uint32_t to, int32_t blocks)
{
	int32_t *load = l->load + (size_t)time * 2 * l->topo->nnodes;

	load[from] += blocks;
	load[l->topo->nnodes + to] += blocks;
}

/* A message from one node to another on a path, which may be its longest route at that time. */
void swc_loads_add_route(struct swc_loads *l, uint32_t time, uint32_t path, uint32_t from,
			 uint32_t to, int32_t blocks);

/* The blocks on the most loaded link at a time, in units of the fastest links. Once for each time. */
double swc_loads_peak(struct swc_loads *l, uint32_t time);

#endif /* SWC_PLAN_MODEL_LOADS_H */
