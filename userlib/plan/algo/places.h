/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two places for sums of a range of blocks. A step may not write what it sends, so sums alternate
 * between the two, and the last one must be in RECV. The first place has the own contribution at
 * first.
 */
#ifndef SWC_PLAN_ALGO_PLACES_H
#define SWC_PLAN_ALGO_PLACES_H

#include "plan/algo/builder.h"

/**
 * struct swc_places - where sums are
 * @hold: buffer that has what is in a place; SEND while nothing has been written to the first one
 * @write: buffer that a place is written to
 * @now: place of the latest sum
 */
struct swc_places {
	enum swc_buf hold[2], write[2];
	uint32_t now;
};

/*
 * Begin with the own contribution in @from, where the last sum will be in place @last: the number
 * of sums that follow, modulo 2. If @from is SEND and the first sum would go to RECV, then in place
 * the contribution is copied to SCRATCH.
 */
void swc_places_begin(struct swc_places *p, struct swc_builder *b, enum swc_buf from, uint32_t last,
		      uint32_t first, uint32_t nblocks);

/* The buffer that the next sum goes to; it gets scratch memory if that is needed. */
enum swc_buf swc_places_next(const struct swc_places *p, struct swc_builder *b, uint32_t first,
			     uint32_t nblocks);

/* The next sum has been written. */
void swc_places_turn(struct swc_places *p);

#endif /* SWC_PLAN_ALGO_PLACES_H */
