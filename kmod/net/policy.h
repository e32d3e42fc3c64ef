/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queue policy: which message may take which of the peer's receive buffers.
 *
 * A credit is a free receive buffer of the peer; a segment takes one. Ranks submit operations one after
 * the other, so segments of an operation that a receiver has not submitted yet must not occupy the
 * buffers that earlier operations need: half of the credits are reserved for the oldest operation.
 * Partitions become ready in any order, and their receivers copy them out of their buffers (net_event.c).
 * So partitions may use all credits, and must find half of them free of operations behind them; of the
 * other half, the oldest of these operations has a share before all others.
 */
#ifndef SWC_NET_POLICY_H
#define SWC_NET_POLICY_H

#include "net.h"

/* Credits that there must be to send a segment of @send to a peer with @rx_bufs buffers. */
static inline u32 swc_policy_credits(const struct swc_net_window *window, const struct swc_send *send,
				     u32 rx_bufs)
{
	if (send->sig->partitioned || send->seq == READ_ONCE(window->oldest))
		return 1;
	if (!READ_ONCE(window->npartitioned) || send->seq == READ_ONCE(window->oldest_call))
		return rx_bufs / 2 + 1;
	return 3 * rx_bufs / 4 + 1;
}

/*
 * So many credits to return are worth a message: no share of the sender's needs them sooner, and at most four
 * such messages return all of them.
 */
static inline u32 swc_policy_return(u32 rx_bufs)
{
	return DIV_ROUND_UP(rx_bufs, 4);
}

/*
 * The next rendezvous of @rndvs to offer a chunk of; NULL: none. As with credits, half of the chunks are
 * reserved for the oldest operation that is not a partition, which never uses any: a sender that has not
 * submitted another operation does not write there.
 */
static inline struct swc_rndv *swc_policy_rndv(const struct swc_net_window *window,
					       const struct list_head *rndvs, u32 nfree)
{
	struct swc_rndv *rndv, *other = NULL;

	list_for_each_entry(rndv, rndvs, node) {
		if (rndv->offered == rndv->bytes)
			continue;
		if (rndv->seq == READ_ONCE(window->oldest_call))
			return rndv;
		other = other ?: rndv;
	}
	return nfree > SWC_WIRE_CHUNKS / 2 ? other : NULL;
}

#endif /* SWC_NET_POLICY_H */
