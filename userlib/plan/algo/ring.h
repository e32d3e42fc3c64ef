/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who sends to whom in rings. */
#ifndef SWC_PLAN_ALGO_RING_H
#define SWC_PLAN_ALGO_RING_H

#include "plan/plan.h"

typedef void swc_ring_fn(void *arg, uint32_t chan, uint32_t from, uint32_t to);

/*
 * Call a function for each member of a ring, of ring2 or of hamiltonian, on each of its channels, with
 * the one that it sends to in all steps. The plan must be possible, with one rank per node.
 */
void swc_ring_each(const struct swc_plan_args *args, const struct swc_topo *topo, swc_ring_fn *each,
		   void *arg);

#endif /* SWC_PLAN_ALGO_RING_H */
