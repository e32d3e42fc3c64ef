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

	l.n = 2 * t->nnodes * (t->kind == SWC_TOPO_SWITCH ? swc_topo_rails(t) : t->ndims);
	for (uint32_t i = t->ndims; i-- > 0; stride *= t->dim[i])
		l.stride[i] = stride;
	return l;
}

double swc_link_slowness(const struct swc_links *l, uint32_t link)
{
	const struct swc_topo *t = l->topo;
	bool back = link % 2;
	uint32_t rails = swc_topo_rails(t), dim = link / 2 % t->ndims, node, x, d, next;

	if (!t->nslow)
		return swc_topo_slowness(t, dim);
	if (t->kind == SWC_TOPO_SWITCH) {
		node = link / 2 / rails;
		return swc_topo_link_slowness(t, back ? t->nnodes : node, back ? node : t->nnodes,
					      0);
	}
	node = link / 2 / t->ndims;
	d = t->dim[dim];
	x = node / l->stride[dim] % d;
	next = node - x * l->stride[dim] + (x + (back ? d - 1 : 1)) % d * l->stride[dim];
	return swc_topo_link_slowness(t, node, next, dim);
}

static int add(struct swc_route *r, uint32_t link)
{
	if (!swc_table_reserve(&r->link, r->n, &r->room, sizeof(*r->link)))
		return -ENOMEM;
	r->link[r->n++] = link;
	return 0;
}

/* Add the links of a leg; *node moves to its end. */
static int go(struct swc_route *r, const struct swc_links *l, uint32_t *node,
	      const struct swc_topo_leg *leg)
{
	uint32_t d = l->topo->dim[leg->dim], stride = l->stride[leg->dim];
	uint32_t x = *node / stride % d;
	int ret = 0;

	*node -= x * stride;
	for (uint32_t k = 0; k < leg->hops && !ret; k++) {
		ret = add(r, ((*node + x * stride) * l->topo->ndims + leg->dim) * 2 + leg->down);
		x = (x + (leg->down ? d - 1 : 1)) % d;
	}
	*node += x * stride;
	r->hops += leg->hops;
	return ret;
}

int swc_route_set(struct swc_route *r, const struct swc_links *l, uint32_t path, uint32_t from,
		  uint32_t to)
{
	const struct swc_topo *t = l->topo;
	uint32_t rails = swc_topo_rails(t), rail = path % rails;
	struct swc_topo_leg leg[SWC_TOPO_DIMS];
	uint32_t node = from, n;
	int ret = 0;

	if (r->from == from && r->to == to && r->path == path)
		return 0;
	r->n = r->hops = 0;
	if (from != to && t->kind == SWC_TOPO_SWITCH) {
		r->hops = 1;
		ret = add(r, (from * rails + rail) * 2);
		if (!ret)
			ret = add(r, (to * rails + rail) * 2 + 1);
	}
	n = swc_topo_route(t, path, from, to, leg);
	for (uint32_t i = 0; i < n && !ret; i++)
		ret = go(r, l, &node, &leg[i]);
	/* An incomplete route must not be used for the same nodes again. */
	r->path = path;
	r->from = from;
	r->to = ret ? from : to;
	return ret;
}
