/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The order in which the channels of a torus take the steps of its dimensions. */
#ifndef SWC_PLAN_ALGO_TURNS_H
#define SWC_PLAN_ALGO_TURNS_H

#include "plan/algo/butterfly_peers.h"

/**
 * struct swc_turn_hops - the steps of a dimension
 * @hops: the largest distance of a message in each
 * @glued: the step must come directly after the one before it
 */
struct swc_turn_hops {
	uint32_t nsteps;
	uint32_t hops[SWC_BUTTERFLY_STEPS];
	bool glued[SWC_BUTTERFLY_STEPS];
};

/*
 * The turns of channel @chan. The steps of a dimension keep their order. All channels take steps of
 * equal distance at the same time, so that the sum over the turns of the largest distance is that
 * of one channel alone; within that, they use different dimensions where they can. Returns the
 * number of turns.
 */
uint32_t swc_turns_align(const struct swc_turn_hops *dims, uint32_t ndims, uint32_t chan,
			 struct swc_turn *turn);

#endif /* SWC_PLAN_ALGO_TURNS_H */
