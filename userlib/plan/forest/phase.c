// SPDX-License-Identifier: LGPL-2.1-or-later
/* Trees for a phase: a reduction is a broadcast backwards, so its trees are those of the graph turned round. */
#include "plan/forest/phase.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int swc_phase_make_slots(struct swc_phase *phase, const struct swc_graph *slots, bool up,
			 const int64_t *weight, swc_forest_progress *progress, void *arg)
{
	struct swc_graph reverse = { 0 };
	int ret = up ? swc_graph_reverse(&reverse, slots) : 0;

	*phase = (struct swc_phase){ .up = up };
	if (!ret)
		ret = swc_splitting_make(&phase->splitting, up ? &reverse : slots, weight, progress,
					 arg);
	swc_graph_free(&reverse);
	if (!ret)
		ret = swc_forest_pack(&phase->forest, &phase->splitting.direct, weight, progress,
				      arg);
	if (ret)
		swc_phase_free(phase);
	return ret;
}

int swc_phase_make(struct swc_phase *phase, const struct swc_graph *g, bool up,
		   struct swc_fraction slots, const int64_t *weight, swc_forest_progress *progress,
		   void *arg)
{
	struct swc_graph scaled = *g;
	int ret;

	scaled.link = calloc(g->nlinks + 1u, sizeof(*scaled.link));
	if (!scaled.link)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->nlinks; i++) {
		scaled.link[i] = g->link[i];
		scaled.link[i].capacity = g->link[i].capacity / slots.q * slots.p +
					  g->link[i].capacity % slots.q * slots.p / slots.q;
	}
	ret = swc_phase_make_slots(phase, &scaled, up, weight, progress, arg);
	free(scaled.link);
	return ret;
}

static void *copy(const void *from, size_t n, size_t size)
{
	void *p = calloc(n + 1, size);

	if (p && n)
		memcpy(p, from, n * size);
	return p;
}

static int copy_splitting(struct swc_splitting *to, const struct swc_splitting *from)
{
	*to = (struct swc_splitting){ .direct = from->direct,
				      .nways = from->nways,
				      .nparts = from->nparts };
	to->direct.link = copy(from->direct.link, from->direct.nlinks, sizeof(*to->direct.link));
	to->way = copy(from->way, from->nways, sizeof(*to->way));
	to->part = copy(from->part, from->nparts, sizeof(*to->part));
	to->parts = copy(from->parts, from->direct.nlinks, sizeof(*to->parts));
	return to->direct.link && to->way && to->part && to->parts ? 0 : -ENOMEM;
}

int swc_phase_mirror(struct swc_phase *phase, const struct swc_phase *other)
{
	struct swc_forest *f = &phase->forest;
	uint32_t n = other->forest.nranks;

	*phase = (struct swc_phase){ .up = !other->up, .forest = { .nranks = n } };
	f->tree = calloc(other->forest.ntrees + 1u, sizeof(*f->tree));
	if (!f->tree || copy_splitting(&phase->splitting, &other->splitting))
		goto no_memory;
	for (; f->ntrees < other->forest.ntrees; f->ntrees++) {
		struct swc_tree *t = &f->tree[f->ntrees];

		*t = other->forest.tree[f->ntrees];
		t->parent = copy(t->parent, 2 * (size_t)n, sizeof(*t->parent));
		if (!t->parent)
			goto no_memory;
		t->order = t->parent + n;
	}
	return 0;

no_memory:
	swc_phase_free(phase);
	return -ENOMEM;
}

void swc_phase_free(struct swc_phase *phase)
{
	swc_splitting_free(&phase->splitting);
	swc_forest_free(&phase->forest);
}
