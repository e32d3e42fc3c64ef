/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the butterflies share: which members exchange in which step. butterfly.c has the plans in
 * which every message is one range of blocks, butterfly_sets.c those whose messages are sets of
 * blocks.
 */
#ifndef SWC_PLAN_ALGO_BUTTERFLY_PEERS_H
#define SWC_PLAN_ALGO_BUTTERFLY_PEERS_H

#include "plan/algo/builder.h"

/*
 * Most steps of one port: log2 of the nodes, and what rounding up and folding adds in each
 * dimension.
 */
#define SWC_BUTTERFLY_STEPS (20 + 2 * SWC_TOPO_DIMS)

/* A step of a port is step @step of dimension @dim. */
struct swc_turn {
	uint32_t dim, step;
};

/* The turns of port @port, with @nsteps in each of @ndims dimensions. Returns their number. */
uint32_t swc_butterfly_turns(const uint32_t *nsteps, uint32_t ndims, uint32_t port,
			     struct swc_turn *turn);

/*
 * The partner in a step on a ring of @m: Swing's for even @m, at distance 1, 1, 3, 5, 11...;
 * recursive doubling's for a power of two, at distance 1, 2, 4... Mirrored ones go the other way
 * round, so that both together load all links alike.
 */
uint32_t swc_swing_peer(uint32_t m, uint32_t x, uint32_t step, bool mirror);
uint32_t swc_doubling_peer(uint32_t m, uint32_t x, uint32_t step, bool mirror);

/* Where messages are ranges: the partner of a step that halves the range, or @swaps all of it. */
uint32_t swc_range_peer(bool swing, bool mirror, bool swaps, uint32_t m, uint32_t x, uint32_t step);

/**
 * struct swc_butterfly - what an algorithm does
 * @swing: Swing; else recursive doubling
 * @one_port: it uses one only
 * @in_ranges: messages are ranges of blocks; else sets
 * @steps, @scatter: ranges: steps of a port, but for folds; and how many of them halve the range
 */
struct swc_butterfly {
	bool swing, one_port, in_ranges;
	uint32_t steps, scatter;
};

/* False if it is no butterfly. @topo: of the members */
bool swc_butterfly_find(struct swc_butterfly *k, const struct swc_plan_args *args,
			const struct swc_topo *topo);

/* Do swaps of ranges leave other bits on some members? */
bool swc_range_order_varies(const struct swc_butterfly *k, const struct swc_turn *turn);

/* The member that differs from @b->me in one coordinate: @from of @b->me becomes @to. */
uint32_t swc_butterfly_member(const struct swc_builder *b, uint32_t dim, uint32_t from,
			      uint32_t to);

#endif /* SWC_PLAN_ALGO_BUTTERFLY_PEERS_H */
