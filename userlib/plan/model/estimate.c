// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Costs by the step model, from few plans where all are alike, and from a sample of many.
 */
#include <errno.h>
#include <stdlib.h>

#include "plan/model/model.h"
#include "plan/model/step_model.h"
#include "plan/model/symmetry.h"

#define ODD_RANGES_RANKS 1024
#define LONG_PLANS_RANKS 65536 /* of so many and fewer, plans of sets of blocks are not too long */

/*
 * Are messages of other ranges of blocks on other ranks, though of as many? So it is where butterflies
 * send sets of blocks: where a side is no power of two, and in collectives whose blocks have owners. In
 * an all-to-all, each block is a range of its own.
 */
static bool has_odd_ranges(const struct swc_plan_args *a, const struct swc_topo *t,
			   enum swc_symmetry kind)
{
	if ((kind != SWC_SYMMETRY_SWING && kind != SWC_SYMMETRY_XOR) || a->coll == SWC_ALLTOALL)
		return false;
	for (uint32_t i = 0; i < t->ndims; i++)
		if (t->dim[i] & (t->dim[i] - 1))
			return true;
	return a->coll != SWC_ALLREDUCE;
}

/* How to estimate a cost. */
static struct swc_symmetric begin(const struct swc_plan_args *args, const struct swc_topo *topo,
				  uint32_t most_ranks)
{
	enum swc_symmetry kind = swc_algo_symmetry(args, topo);
	struct swc_symmetric sym;

	/* Better all, if they are few: but for the ranges, one plan is enough. */
	if (topo->nranks <= most_ranks && topo->nranks <= ODD_RANGES_RANKS &&
	    has_odd_ranges(args, topo, kind))
		kind = SWC_SYMMETRY_NONE;
	swc_symmetric_begin(&sym, args, topo, kind, most_ranks);
	return sym;
}

/*
 * One plan stands for all, but others may be too long where they send sets of blocks. Those of ranks a third of the
 * way along each side are among the longest.
 */
static int try_long_plans(const struct swc_plan_args *args, const struct swc_topo *t, char *why,
			  size_t why_bytes)
{
	int ret = 0;

	for (uint32_t k = 1; k <= 3 && !ret; k++) {
		struct swc_plan_args a = *args;
		uint32_t coord[SWC_TOPO_DIMS];
		size_t bytes;
		void *plan;

		for (uint32_t i = 0; i < t->ndims; i++)
			coord[i] = (uint32_t)((uint64_t)(t->dim[i] - 1) * k / 3);
		a.rank = swc_topo_first(t, swc_topo_node_at(t, coord));
		ret = swc_plan_build(&a, &plan, &bytes, why, why_bytes);
		if (!ret)
			free(plan);
	}
	return ret;
}

uint32_t swc_cost_plans(const struct swc_plan_args *args, uint32_t most_ranks)
{
	return begin(args, args->topo, most_ranks).nvisits;
}

int swc_cost_estimate(const struct swc_plan_args *args, uint32_t most_ranks, struct swc_cost *cost,
		      swc_progress_fn *progress, void *arg, char *why, size_t why_bytes)
{
	struct swc_topo flat = swc_topo_flat(args->nranks);
	const struct swc_topo *topo = args->topo ? args->topo : &flat;
	struct swc_symmetric sym;
	int ret;

	if (topo->nranks != args->nranks)
		return swc_cost_compute(args, cost, progress, arg, why, why_bytes);
	sym = begin(args, topo, most_ranks);
	ret = swc_step_model(args, &sym, false, cost, progress, arg, why, why_bytes);
	if (!ret && topo->nranks > LONG_PLANS_RANKS && has_odd_ranges(args, topo, sym.kind))
		ret = try_long_plans(args, topo, why, why_bytes);
	if (ret != -EAGAIN)
		return ret;
	/* Plans are alike, but some are ahead of others: as if they were not alike. */
	swc_symmetric_begin(&sym, args, topo, SWC_SYMMETRY_NONE, most_ranks);
	return swc_step_model(args, &sym, sym.kind == SWC_SYMMETRY_NONE, cost, progress, arg, why,
			      why_bytes);
}
