// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The load of links by rings: the routes of all ranks in one step, as every step of a channel has the same peers.
 */
#include "plan/model/symmetry.h"

#include <stdlib.h>

#include "plan/algo/ring.h"

/* @load: by link, as in routes.h: messages */
struct ring_loads {
	struct swc_symmetric *s;
	uint32_t *load;
};

static void add_ring_link(struct ring_loads *l, uint32_t node, uint32_t dim, bool down)
{
	const struct swc_topo *t = l->s->topo;
	double load = ++l->load[(node * t->ndims + dim) * 2 + down] * swc_topo_slowness(t, dim);

	l->s->ring_load = load > l->s->ring_load ? load : l->s->ring_load;
}

/*
 * Most messages of a ring go to the next node on a line, and finding a route takes many divisions. Add a
 * message if it is one of those, else return false. Across a dimension of two there is a choice of ways.
 */
static bool add_ring_hop(struct ring_loads *l, uint32_t from, uint32_t to)
{
	const struct swc_topo *t = l->s->topo;
	bool down = to < from;
	uint32_t lower = down ? to : from, apart = down ? from - to : to - from;

	for (uint32_t i = 0; t->kind != SWC_TOPO_SWITCH && i < t->ndims; i++) {
		uint32_t d = t->dim[i], stride = l->s->stride[i];

		if (apart != stride || d < 3)
			continue;
		/* At the end of a line, a node so far off is on another one. */
		if (lower / stride % d == d - 1)
			return false;
		add_ring_link(l, from, i, down);
		l->s->ring_hops = l->s->ring_hops ? l->s->ring_hops : 1;
		return true;
	}
	return false;
}

static void add_ring_route(void *arg, uint32_t chan, uint32_t from, uint32_t to)
{
	struct ring_loads *l = arg;
	struct swc_symmetric *s = l->s;
	const struct swc_topo *t = s->topo;
	struct swc_topo_leg leg[SWC_TOPO_DIMS];
	uint32_t n, hops = 0;

	if (add_ring_hop(l, from, to))
		return;
	n = swc_topo_route(t, swc_topo_path(t, chan, from, to), from, to, leg);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t dim = leg[i].dim, d = t->dim[dim], stride = s->stride[dim];
		uint32_t x = from / stride % d, base = from - x * stride;

		for (uint32_t k = 0; k < leg[i].hops; k++) {
			add_ring_link(l, base + x * stride, dim, leg[i].down);
			x = x + 1 + (leg[i].down ? d - 2 : 0);
			x -= x >= d ? d : 0;
		}
		from = base + x * stride;
		hops += leg[i].hops;
	}
	s->ring_hops = hops > s->ring_hops ? hops : s->ring_hops;
}

bool swc_symmetric_count_ring(struct swc_symmetric *s, const struct swc_plan_args *args)
{
	const struct swc_topo *t = s->topo;
	struct ring_loads l = { s, calloc((size_t)t->nnodes * t->ndims * 2, sizeof(*l.load)) };

	if (!l.load)
		return false;
	swc_ring_each(args, t, add_ring_route, &l);
	free(l.load);
	return true;
}
