/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_NET_AUTH_H
#define SWC_NET_AUTH_H

#include "net.h"

/* The most bytes of a key. */
#define SWC_AUTH_KEY	32

void swc_auth_name(struct swc_net *net);
void swc_auth_hello(const struct swc_net *net, const struct swc_wire_hello *hello, u8 *mac);
void swc_auth_accept(const struct swc_net *net, const struct swc_wire_hello *hello,
		     const struct swc_wire_accept *accept, u8 *mac);
void swc_auth_proof(const struct swc_net *net, const struct swc_wire_hello *hello,
		    const struct swc_wire_accept *accept, u64 received, u8 *mac);
void swc_auth_refusal(const u8 *key, const struct swc_wire_hello *hello, const struct swc_wire_reject *reject,
		      u8 *mac);
void swc_auth_key(const struct swc_net *net, const struct swc_wire_hello *hello,
		  const struct swc_wire_accept *accept, const char *label, u8 *key, u32 bytes);
bool swc_auth_equal(const u8 *a, const u8 *b);

#endif /* SWC_NET_AUTH_H */
