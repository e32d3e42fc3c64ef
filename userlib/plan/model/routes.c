// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Links of a network, and the route of a message over them. No locks; everything belongs to the
 * caller.
 */
#include <errno.h>

#include "plan/model/routes.h"
#include "plan/table.h"

struct swc_links swc_links_of(const struct swc_topo *t)
{
	struct swc_links l = { .topo = t };
	uint32_t stride = 1;

	l.n = 2 * t->nnodes * (t->kind == SWC_TOPO_SWITCH ? 1 : t->ndims);
	for (uint32_t i = t->ndims; i-- > 0; stride *= t->dim[i])
		l.stride[i] = stride;
	return l;
}

double swc_link_slowness(const struct swc_links *l, uint32_t link)
{
	return swc_topo_slowness(l->topo, link / 2 % l->topo->ndims);
}

static int add(struct swc_route *r, uint32_t link)
{
	if (!swc_table_reserve(&r->link, r->n, &r->room, sizeof(*r->link)))
		return -ENOMEM;
	r->link[r->n++] = link;
	return 0;
}

/* Add @hops links along a dimension. */
static int go(struct swc_route *r, const struct swc_links *l, uint32_t node, uint32_t dim,
	      bool down, uint32_t hops)
{
	uint32_t d = l->topo->dim[dim], x = node / l->stride[dim] % d;
	int ret = 0;

	node -= x * l->stride[dim];
	for (; hops && !ret; hops--) {
		uint32_t at = node + x * l->stride[dim];

		ret = add(r, (at * l->topo->ndims + dim) * 2 + down);
		x = (x + (down ? d - 1 : 1)) % d;
	}
	return ret;
}

int swc_route_set(struct swc_route *r, const struct swc_links *l, uint32_t chan, uint32_t from,
		  uint32_t to)
{
	const struct swc_topo *t = l->topo;
	bool mirrored = swc_topo_mirrored(t, chan), tie_down;
	uint32_t node = from;
	int ret = 0;

	if (r->from == from && r->to == to && r->mirrored == mirrored)
		return 0;
	tie_down = (from > to) != swc_topo_path(t, chan, from, to);
	r->n = r->hops = 0;
	if (from != to && t->kind == SWC_TOPO_SWITCH) {
		r->hops = 1;
		ret = add(r, from * 2);
		if (!ret)
			ret = add(r, to * 2 + 1);
	}
	for (uint32_t i = 0; i < t->ndims && t->kind != SWC_TOPO_SWITCH && !ret; i++) {
		uint32_t d = t->dim[i], a = from / l->stride[i] % d, b = to / l->stride[i] % d;
		uint32_t up = (b + d - a) % d, hops = up <= d - up ? up : d - up;
		bool down = up > d - up || (up && up == d - up && tie_down);

		if (t->kind == SWC_TOPO_MESH) {
			down = b < a;
			hops = down ? a - b : b - a;
		}
		ret = go(r, l, node, i, down, hops);
		r->hops += hops;
		node += (b - a) * l->stride[i];
	}
	/* An incomplete route must not be used for the same nodes again. */
	r->mirrored = mirrored;
	r->from = from;
	r->to = ret ? from : to;
	return ret;
}
