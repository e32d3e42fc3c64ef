// SPDX-License-Identifier: GPL-2.0-only
/*
 * Authentication between nodes: the keyed hashes of core/wire.h, by which both ends of a connection prove
 * that they know the communicator's id.
 */
#include <crypto/algapi.h>
#include <crypto/blake2s.h>

#include "compat.h"
#include "net/auth.h"
#include "net/conn.h"

struct mac_part {
	const void *data;
	size_t bytes;
};

static void mac_by(const u8 *key, u32 key_bytes, const struct mac_part *part, u32 n, u8 *mac)
{
	struct swc_compat_blake2s state;
	u32 i;

	blake2s_init_key(&state, SWC_WIRE_MAC, key, key_bytes);
	for (i = 0; i < n; i++)
		blake2s_update(&state, part[i].data, part[i].bytes);
	blake2s_final(&state, mac);
}

static void mac_of(const struct swc_net *net, const struct mac_part *part, u32 n, u8 *mac)
{
	mac_by(net->params.id, SWC_ID_BYTES, part, n, mac);
}

/**
 * swc_auth_name() - set what identifies a communicator to other nodes
 * @net: gets its name, places and key of refusals
 */
void swc_auth_name(struct swc_net *net)
{
	const struct mac_part part = { "swingcoll name", 14 }, refusal = { "swingcoll refusal", 17 };
	struct swc_compat_blake2s state;
	u8 mac[SWC_WIRE_MAC];
	u32 i;

	mac_of(net, &refusal, 1, net->refusal_key);
	mac_of(net, &part, 1, mac);
	memcpy(net->name, mac, sizeof(net->name));
	blake2s_init_key(&state, sizeof(mac), net->params.id, SWC_ID_BYTES);
	for (i = 0; i < net->params.nranks; i++) {
		__le32 node = cpu_to_le32(net->params.rank_node[i]);

		blake2s_update(&state, (const u8 *)&node, sizeof(node));
	}
	blake2s_final(&state, mac);
	memcpy(&net->places, mac, sizeof(net->places));
	memzero_explicit(mac, sizeof(mac));
}

/* hello.mac; @mac has room for SWC_WIRE_MAC bytes, here and below. */
void swc_auth_hello(const struct swc_net *net, const struct swc_wire_hello *hello, u8 *mac)
{
	const struct mac_part part = { hello, offsetof(struct swc_wire_hello, mac) };

	mac_of(net, &part, 1, mac);
}

/* accept.mac */
void swc_auth_accept(const struct swc_net *net, const struct swc_wire_hello *hello,
		     const struct swc_wire_accept *accept, u8 *mac)
{
	const struct mac_part part[] = {
		{ hello, sizeof(*hello) },
		{ accept, offsetof(struct swc_wire_accept, mac) },
	};

	mac_of(net, part, ARRAY_SIZE(part), mac);
}

/* auth.mac; @received: auth.seq */
void swc_auth_proof(const struct swc_net *net, const struct swc_wire_hello *hello,
		    const struct swc_wire_accept *accept, u64 received, u8 *mac)
{
	const __le64 seq = cpu_to_le64(received);
	const struct mac_part part[] = {
		{ hello, sizeof(*hello) },
		{ accept, sizeof(*accept) },
		{ "swingcoll proof", 15 },
		{ &seq, sizeof(seq) },
	};

	mac_of(net, part, ARRAY_SIZE(part), mac);
}

/* reject.mac; @key: swc_net.refusal_key */
void swc_auth_refusal(const u8 *key, const struct swc_wire_hello *hello, const struct swc_wire_reject *reject,
		      u8 *mac)
{
	const struct mac_part part[] = {
		{ hello, sizeof(*hello) },
		{ reject, offsetof(struct swc_wire_reject, mac) },
	};

	mac_by(key, SWC_WIRE_MAC, part, ARRAY_SIZE(part), mac);
}

/**
 * swc_auth_key() - derive a key of a connection
 * @label: what for
 * @key: gets it
 * @bytes: of @key, at most SWC_AUTH_KEY
 */
void swc_auth_key(const struct swc_net *net, const struct swc_wire_hello *hello,
		  const struct swc_wire_accept *accept, const char *label, u8 *key, u32 bytes)
{
	struct swc_compat_blake2s state;

	blake2s_init_key(&state, bytes, net->params.id, SWC_ID_BYTES);
	blake2s_update(&state, (const u8 *)hello, sizeof(*hello));
	blake2s_update(&state, (const u8 *)accept, sizeof(*accept));
	blake2s_update(&state, label, strlen(label));
	blake2s_final(&state, key);
}

/* In constant time. */
bool swc_auth_equal(const u8 *a, const u8 *b)
{
	return !crypto_memneq(a, b, SWC_WIRE_MAC);
}
