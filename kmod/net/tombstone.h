/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_NET_TOMBSTONE_H
#define SWC_NET_TOMBSTONE_H

#include "net.h"

/*
 * How a communicator has ended; error 0, culprit -1: all ranks have left in order. @refusal_key: of the
 * communicator, with which a refusal says so.
 */
struct swc_tombstone {
	int error;
	int culprit;
	u8 refusal_key[SWC_WIRE_MAC];
};

bool swc_tombstone_of(const struct swc_net *net, struct swc_tombstone *end);
void swc_tombstone_add(const struct swc_net *net);
bool swc_tombstone_find(const struct net *ns, const u8 *name, const struct swc_net *net, u32 rank,
			struct swc_tombstone *end);

#endif /* SWC_NET_TOMBSTONE_H */
