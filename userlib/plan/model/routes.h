/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Links of a network, and the route of a message over them. */
#ifndef SWC_PLAN_MODEL_ROUTES_H
#define SWC_PLAN_MODEL_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/topo.h"

/**
 * struct swc_links - the links of a network
 * @topo: the network
 * @n: links. On a torus or mesh, link (node * ndims + dimension) * 2 + way leads up (way 0) or
 *	down; on a switch, (node * rails + rail) * 2 into it and the next out of it
 * @stride: between the numbers of neighbours along a dimension
 */
struct swc_links {
	const struct swc_topo *topo;
	uint32_t n;
	uint32_t stride[SWC_TOPO_DIMS];
};

/**
 * struct swc_route - the route of a message; begin with zeros
 * @from, @to: nodes
 * @path: its path, as in struct swc_plan_xfer
 * @hops: of its delay: one on a switch, else @n; 0 within a node
 * @n: number of links that it crosses
 * @link: the links. Owned: free it
 */
struct swc_route {
	uint32_t from, to, path;
	uint32_t hops;
	uint32_t n, room;
	uint32_t *link;
};

struct swc_links swc_links_of(const struct swc_topo *topo);

/* How many times longer a link takes than the fastest ones of the network. */
double swc_link_slowness(const struct swc_links *l, uint32_t link);

/*
 * Set the route of a message on a path; fast if it is the same as before. See swc_topo_route(); on a
 * switch the path is a rail. 0 or -ENOMEM.
 */
int swc_route_set(struct swc_route *r, const struct swc_links *l, uint32_t path, uint32_t from,
		  uint32_t to);

#endif /* SWC_PLAN_MODEL_ROUTES_H */
