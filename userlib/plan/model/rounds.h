/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rounds of trees: steps in which all members have a message or wait for those that have one. In its
 * plan a member has only the steps in which it has a message, so the plan does not show them.
 */
#ifndef SWC_PLAN_MODEL_ROUNDS_H
#define SWC_PLAN_MODEL_ROUNDS_H

#include "kmod/core/plan_check.h"
#include "plan/algo/bine.h"
#include "plan/plan.h"

/**
 * struct swc_rounds - the rounds of a tree
 * @topo, @flat: of the members, which are nodes, or ranks as on a switch
 * @n: how many, 0 if the plans have none
 * @bine: of bine
 */
struct swc_rounds {
	const struct swc_plan_args *args;
	const struct swc_topo *topo;
	struct swc_topo flat;
	uint32_t n;
	struct swc_bine bine;
};

/*
 * Find the rounds: none for other algorithms than trees, and among nodes of several ranks. Do not copy.
 */
void swc_rounds_find(struct swc_rounds *r, const struct swc_plan_args *args,
		     const struct swc_topo *topo);

/* The round of a message of a channel. @x: one of its transfers */
uint32_t swc_rounds_of(const struct swc_rounds *r, uint32_t chan, const struct swc_plan_xfer *x,
		       uint32_t from, uint32_t to);

#endif /* SWC_PLAN_MODEL_ROUNDS_H */
