// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Forests as an algorithm of the library: the trees of a topology, and a rank's plan. Each rank finds all
 * trees by itself.
 */
#include "plan/forest/algorithm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/number.h"

#define NAME "forest"
/* What the number of segments is chosen for if nothing is said, as in the models. */
#define BYTES (64.0 * (1 << 20))

bool swc_forest_parse(const char *name, uint32_t *pieces)
{
	size_t len = strlen(NAME);
	uint64_t n = 0;

	if (strncmp(name, NAME, len) || (name[len] && name[len] != ':'))
		return false;
	if (name[len] && !swc_number_parse(name + len + 1, 1, SWC_FOREST_MOST_PIECES, &n))
		return false;
	*pieces = (uint32_t)n;
	return true;
}

uint32_t swc_forest_colls(const struct swc_topo *topo)
{
	if (topo->nnodes < 2)
		return 0;
	return topo->nnodes == topo->nranks ? SWC_FOREST_COLLS : 1u << SWC_ALLREDUCE;
}

/* The plans of @n ranks from @first on. */
static int make_plans(const struct swc_trees *t, const struct swc_topo *topo, uint32_t pieces,
		      uint32_t first, uint32_t n, void **plan, size_t *bytes, char *why,
		      size_t why_bytes)
{
	struct swc_schedule s;
	int ret = swc_trees_schedule(t, topo, pieces, &s, why, why_bytes);

	if (ret)
		return ret == -EINVAL ? -EOPNOTSUPP : ret;
	for (uint32_t i = 0; i < n && !ret; i++) {
		ret = swc_schedule_plan(&s, first + i, &plan[i], &bytes[i], why, why_bytes);
		for (uint32_t k = 0; ret && k < i; k++)
			free(plan[k]);
	}
	swc_schedule_free(&s);
	return ret == -EINVAL ? -EOPNOTSUPP : ret;
}

static int check(const struct swc_topo *topo, enum swc_coll coll, char *why, size_t why_bytes)
{
	bool large = topo->nnodes > SWC_FOREST_MAX_NODES;

	if (!large && swc_forest_colls(topo) & 1u << coll)
		return 0;
	if (why_bytes && !large && SWC_FOREST_COLLS & 1u << coll)
		snprintf(
			why, why_bytes,
			"forest is for allreduce where nodes have several ranks, and for two nodes "
			"or more: choose another algorithm");
	else if (why_bytes)
		snprintf(why, why_bytes,
			 "forest is for up to %u nodes, and for allreduce, reduce_scatter, "
			 "allgather, broadcast and reduce: choose another algorithm",
			 SWC_FOREST_MAX_NODES);
	return -EOPNOTSUPP;
}

int swc_forest_find(struct swc_trees *t, const struct swc_topo *topo, enum swc_coll coll,
		    uint32_t root, char *why, size_t why_bytes)
{
	int ret = check(topo, coll, why, why_bytes);

	if (!ret)
		ret = swc_trees_find(t, topo, coll, root, why, why_bytes);
	return ret == -EINVAL ? -EOPNOTSUPP : ret;
}

int swc_forest_plan_of(const struct swc_trees *t, const struct swc_topo *topo, uint32_t pieces,
		       uint32_t rank, void **plan, size_t *bytes, char *why, size_t why_bytes)
{
	return make_plans(t, topo, pieces, rank, 1, plan, bytes, why, why_bytes);
}

static int build(const struct swc_plan_args *a, uint32_t pieces, uint32_t n, void **plan,
		 size_t *bytes, char *why, size_t why_bytes)
{
	struct swc_topo flat = swc_topo_flat(a->nranks);
	const struct swc_topo *topo = a->topo ? a->topo : &flat;
	struct swc_network net = swc_network_in_kernel(topo);
	struct swc_trees t;
	int ret = swc_forest_find(&t, topo, a->coll, a->root, why, why_bytes);

	if (ret)
		return ret;
	if (!pieces)
		pieces = swc_trees_pieces(&t, topo, BYTES, &net);
	ret = make_plans(&t, topo, pieces, a->rank, n, plan, bytes, why, why_bytes);
	swc_trees_free(&t);
	return ret;
}

int swc_forest_plan(const struct swc_plan_args *a, uint32_t pieces, void **plan, size_t *bytes,
		    char *why, size_t why_bytes)
{
	return build(a, pieces, 1, plan, bytes, why, why_bytes);
}

int swc_forest_plans(const struct swc_plan_args *args, uint32_t pieces, void **plan, size_t *bytes,
		     char *why, size_t why_bytes)
{
	struct swc_plan_args a = *args;

	a.rank = 0;
	return build(&a, pieces, a.nranks, plan, bytes, why, why_bytes);
}
