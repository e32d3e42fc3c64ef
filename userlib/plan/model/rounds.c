// SPDX-License-Identifier: LGPL-2.1-or-later
/* The rounds of trees, by algorithm. */
#include "plan/model/rounds.h"

#include "plan/algo/tree.h"

void swc_rounds_find(struct swc_rounds *r, const struct swc_plan_args *args,
		     const struct swc_topo *topo)
{
	uint32_t dim;

	*r = (struct swc_rounds){ .args = args, .topo = topo, .flat = swc_topo_flat(args->nranks) };
	/* A hierarchy: nodes are members. */
	if (args->given || (args->coll == SWC_ALLREDUCE && topo->nnodes != args->nranks))
		return;
	if (topo->nnodes != args->nranks)
		r->topo = &r->flat;
	if (args->algo == SWC_ALGO_TREE)
		r->n = swc_tree_rounds(args);
	else if (args->algo == SWC_ALGO_DTREE)
		r->n = swc_dtree_rounds(args);
	else if (args->algo == SWC_ALGO_BINE && swc_coll_has_root(args->coll) &&
		 !swc_bine_find(&r->bine, r->topo, args->root, &dim))
		r->n = r->bine.steps;
}

static uint32_t round_of_bine(const struct swc_rounds *r, uint32_t chan, uint32_t from, uint32_t to)
{
	bool down = r->args->coll == SWC_BROADCAST || r->args->coll == SWC_SCATTER;
	struct swc_bine_member child;

	/* On a switch, all channels are for the same port. */
	swc_bine_place(&r->bine, r->topo->kind == SWC_TOPO_SWITCH ? 0 : chan, down ? to : from,
		       &child);
	return down ? r->n - 1 - child.up : child.up;
}

uint32_t swc_rounds_of(const struct swc_rounds *r, uint32_t chan, const struct swc_plan_xfer *x,
		       uint32_t from, uint32_t to)
{
	switch (r->args->algo) {
	case SWC_ALGO_TREE:
		return swc_tree_round(r->args, from, to);
	case SWC_ALGO_DTREE:
		/* Both trees on each rail. */
		return swc_dtree_round(r->args, chan % 2, x->first_block, from, to);
	default:
		return round_of_bine(r, chan, from, to);
	}
}
