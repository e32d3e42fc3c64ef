/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What measures the rates of links, one by one; see exchange.c. */
#ifndef SWC_PLAN_ALGO_EXCHANGE_H
#define SWC_PLAN_ALGO_EXCHANGE_H

#include "plan/plan.h"

/* Rounds after which all links have been measured, 0 if there are none. */
uint32_t swc_exchange_rounds(const struct swc_topo *t);

/*
 * The link that a node is at one end of in a round: false if there is none. On a switch, *from and *to are
 * two nodes, and the message takes the link of one to the switch, and that from it to the other.
 */
bool swc_exchange_link(const struct swc_topo *t, uint32_t round, uint32_t node, uint32_t *from,
		       uint32_t *to);

/*
 * Make the plan of a rank for a round, in which the first rank of a node sends its shard over the node's
 * link. *plan is the caller's, to be freed with free(). 0 or -ENOMEM.
 */
int swc_exchange_build(const struct swc_topo *t, uint32_t round, uint32_t rank, void **plan,
		       size_t *bytes);

/* What part of a shard a link carries there. */
double swc_exchange_share(const struct swc_topo *t, uint32_t round);

#endif /* SWC_PLAN_ALGO_EXCHANGE_H */
