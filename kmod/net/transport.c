// SPDX-License-Identifier: GPL-2.0-only
/*
 * The transports that are built in, by kind. main.c gives the list; nothing here knows one of them.
 */
#include "net/conn.h"

const struct swc_net_ops *swc_net_ops;

/* By enum swc_transport_kind; NULL: not in this kernel. */
static const struct swc_transport *transports[SWC_TRANSPORT_NR];

/**
 * swc_transports_init() - start the transports
 * @list: SWC_TRANSPORT_NR pointers, NULL: not built in
 * @ops: receives their events; stays valid
 */
int swc_transports_init(const struct swc_transport *const *list, const struct swc_net_ops *ops)
{
	u32 i;
	int ret;

	swc_net_ops = ops;
	for (i = 0; i < SWC_TRANSPORT_NR; i++) {
		if (!list[i])
			continue;
		ret = list[i]->init();
		if (ret) {
			swc_transports_stop();
			return ret;
		}
		transports[i] = list[i];
	}
	return 0;
}

void swc_transports_stop(void)
{
	u32 i;

	for (i = SWC_TRANSPORT_NR; i--;)
		if (transports[i] && transports[i]->stop)
			transports[i]->stop();
}

/* NULL: not in this kernel. */
const struct swc_transport *swc_transport_get(u32 kind)
{
	return kind < SWC_TRANSPORT_NR ? transports[kind] : NULL;
}

/* Port that other nodes connect to; 0: there is no such transport in this kernel. */
u32 swc_transport_port(enum swc_transport_kind kind)
{
	const struct swc_transport *transport = swc_transport_get(kind);

	return transport ? *transport->port : 0;
}
