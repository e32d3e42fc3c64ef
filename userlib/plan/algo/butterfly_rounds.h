/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The messages of butterflies without plans: in a round, all lines of a dimension exchange between the same
 * coordinates, and the size of a message is a product over the dimensions.
 */
#ifndef SWC_PLAN_ALGO_BUTTERFLY_ROUNDS_H
#define SWC_PLAN_ALGO_BUTTERFLY_ROUNDS_H

#include "plan/algo/butterfly_lines.h"

/* Rounds of a port: folds before and after, and all steps there and back. */
#define SWC_BUTTERFLY_ROUNDS (2 * SWC_BUTTERFLY_STEPS + 2 * SWC_TOPO_DIMS)

/**
 * struct swc_exchange - a message of each line of a dimension
 * @from, @to: coordinates in it
 * @units: the dimension's factor of its size
 * @less: likewise of what is left out
 */
struct swc_exchange {
	uint32_t from, to, units, less;
};

/**
 * struct swc_butterfly_round - a round
 * @first, @n: its exchanges
 * @back: the other way: from @to to @from
 * @reduces: what is received is added
 * @blocks: the common factor of all sizes, in blocks of the port
 * @weight: by other dimension, then coordinate: its factor; the one of this dimension does not count
 * @less: likewise of what is left out, NULL if there is nothing
 */
struct swc_butterfly_round {
	uint32_t dim, first, n;
	bool back, reduces;
	uint32_t blocks;
	const uint32_t *weight[SWC_TOPO_DIMS], *less[SWC_TOPO_DIMS];
};

/**
 * struct swc_butterfly_rounds - the rounds of a port
 * @ports: of all nodes; each has @nblocks blocks
 * @order_varies: SWC_PLAN_ORDER_VARIES, by the ports so far
 *
 * The rest belongs to butterfly_rounds.c.
 */
struct swc_butterfly_rounds {
	uint32_t ports, n;
	uint64_t nblocks;
	bool order_varies;
	struct swc_butterfly_round round[SWC_BUTTERFLY_ROUNDS];
	struct swc_exchange *exchange;
	uint32_t nexchanges, room;

	const struct swc_topo *topo;
	enum swc_coll coll;
	uint32_t root[SWC_TOPO_DIMS];
	struct swc_butterfly kind;
	struct swc_lines lines;
	uint32_t *factor; /* room for factors */
	size_t used, factors;
};

/*
 * Open the rounds of an algorithm among nodes of one rank each. 0, -EOPNOTSUPP if it is no butterfly or has
 * no such plan, or -ENOMEM. Plans may still be too large. Free with swc_butterfly_rounds_close() in any case.
 */
int swc_butterfly_rounds_open(struct swc_butterfly_rounds *r, const struct swc_plan_args *args);
void swc_butterfly_rounds_close(struct swc_butterfly_rounds *r);

/* The rounds of a port from now on. 0 or -ENOMEM. */
int swc_butterfly_rounds_set_port(struct swc_butterfly_rounds *r, uint32_t port);

#endif /* SWC_PLAN_ALGO_BUTTERFLY_ROUNDS_H */
