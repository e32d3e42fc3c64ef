// SPDX-License-Identifier: LGPL-2.1-or-later
/* The loads of all links by time; see loads.h. No locks; everything belongs to the caller. */
#include "plan/model/loads.h"

#include <errno.h>
#include <stdlib.h>

#define MOST_LOADS (4u << 20)

int swc_loads_open(struct swc_loads *l, const struct swc_topo *topo, uint32_t times)
{
	uint64_t n = 2ull * topo->ndims * topo->nnodes * times;
	uint32_t stride = 1;

	*l = (struct swc_loads){ .topo = topo, .times = times };
	for (uint32_t j = topo->ndims; j-- > 0; stride *= topo->dim[j])
		l->stride[j] = stride;
	if (n > MOST_LOADS)
		return -EOPNOTSUPP;
	l->load = calloc(n + 1, sizeof(*l->load));
	l->hops = calloc(times + 1ull, sizeof(*l->hops));
	return l->load && l->hops ? 0 : -ENOMEM;
}

void swc_loads_free(struct swc_loads *l)
{
	free(l->load);
	free(l->hops);
}

struct swc_span swc_span_of(const struct swc_topo *t, const struct swc_topo_leg *leg, uint32_t from)
{
	uint32_t d = t->dim[leg->dim], hops = leg->hops;
	struct swc_span s = { .dim = leg->dim, .way = leg->down, .begin = from };

	/* Down: the links that lead down from the last of its nodes but one, and on to its first. */
	if (leg->down)
		s.begin = from + 1 + (from + 1 < hops ? d : 0) - hops;
	s.wraps = s.begin + hops > d;
	s.end = s.begin + hops - (s.wraps ? d : 0);
	return s;
}

void swc_loads_add_route(struct swc_loads *l, uint32_t time, uint32_t path, uint32_t from,
			 uint32_t to, int32_t blocks)
{
	const struct swc_topo *t = l->topo;
	struct swc_topo_leg leg[SWC_TOPO_DIMS];
	uint32_t n, hops = 0;

	if (t->kind == SWC_TOPO_SWITCH) {
		swc_loads_add_switched(l, time, from, to, blocks);
		l->hops[time] = 1;
		return;
	}
	n = swc_topo_route(t, path, from, to, leg);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t stride = l->stride[leg[i].dim], d = t->dim[leg[i].dim];
		uint32_t x = from / stride % d, base = from - x * stride;
		uint32_t y = x + (leg[i].down ? d - leg[i].hops : leg[i].hops);
		struct swc_span span = swc_span_of(t, &leg[i], x);

		swc_loads_add(l, time, &span, base, blocks);
		hops += leg[i].hops;
		from = base + (y < d ? y : y - d) * stride;
	}
	if (hops > l->hops[time])
		l->hops[time] = hops;
}

double swc_loads_peak(struct swc_loads *l, uint32_t time)
{
	const struct swc_topo *t = l->topo;
	uint32_t n = t->nnodes;
	double peak = 0;

	for (uint32_t k = 0; k < 2 * t->ndims; k++) {
		int32_t *load = l->load + ((size_t)time * t->ndims * 2 + k) * n, most = 0;
		uint32_t stride = l->stride[k / 2], d = t->dim[k / 2];

		for (uint32_t at = 0; t->kind != SWC_TOPO_SWITCH && at < n; at += d * stride)
			for (uint32_t i = at + stride; i < at + d * stride; i++)
				load[i] += load[i - stride];
		for (uint32_t i = 0; i < n; i++)
			most = load[i] > most ? load[i] : most;
		if (most * swc_topo_slowness(t, k / 2) > peak)
			peak = most * swc_topo_slowness(t, k / 2);
	}
	return peak;
}
