// SPDX-License-Identifier: GPL-2.0-only
/*
 * Encrypted streams. After hello and accept, which go in clear, the kernel's TLS takes over both directions
 * of the socket: records of TLS 1.3 with keys that core/wire.h derives from the handshake and the
 * communicator's id. TLS has no handshake of its own: hello, accept and AUTH prove that both sides know the
 * id. Who learns the id later can read what was recorded: there is no forward secrecy.
 *
 * The cipher is ChaCha20-Poly1305: one key of it is good for all records that a connection can number. A key
 * of AES-GCM has to be replaced after some 2^24 records, which is minutes on a fast network.
 *
 * A stream that goes on by another socket has new keys there, from the nonces of a new handshake: what is
 * sent again is encrypted by another key, and no key sees a number of a record twice.
 */
#include <linux/kmod.h>
#include <linux/net.h>
#include <linux/tcp.h>
#include <linux/tls.h>
#include <net/sock.h>
#include <net/tls.h>

#include "net/auth.h"
#include "tcp/tcp.h"

/* The two directions of a connection: to the higher rank, and to the lower one. */
static const struct {
	const char *key;
	const char *iv;
} labels[] = {
	{ "swingcoll tls key up", "swingcoll tls iv up" },
	{ "swingcoll tls key down", "swingcoll tls iv down" },
};

static int set_option(struct socket *sock, int level, int option, void *value, u32 bytes)
{
	return READ_ONCE(sock->ops)->setsockopt(sock, level, option, KERNEL_SOCKPTR(value), bytes);
}

static int set_protocol(struct socket *sock)
{
	char name[] = "tls";

	return set_option(sock, SOL_TCP, TCP_ULP, name, sizeof(name) - 1);
}

/* Is the protocol there? A socket that is not connected refuses it only then with -ENOTCONN. */
bool swc_tls_is_there(struct net *ns)
{
	struct socket *sock;
	int ret;

	request_module("tcp-ulp-tls");
	ret = sock_create_kern(ns, AF_INET, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (ret)
		return false;
	ret = set_protocol(sock);
	sock_release(sock);
	return ret == -ENOTCONN;
}

/* The key of a direction, by index in labels[]. @option: TLS_TX or TLS_RX */
static int set_key(struct swc_tcp_conn *conn, const struct swc_wire_accept *accept, int option, u32 direction)
{
	const struct swc_conn *base = &conn->base;
	struct tls12_crypto_info_chacha20_poly1305 info = {
		.info.version = TLS_1_3_VERSION,
		.info.cipher_type = TLS_CIPHER_CHACHA20_POLY1305,
	};
	int ret;

	BUILD_BUG_ON(sizeof(info.key) > SWC_AUTH_KEY || sizeof(info.iv) > SWC_AUTH_KEY);
	swc_auth_key(base->net, &base->hello, accept, labels[direction].key, info.key, sizeof(info.key));
	swc_auth_key(base->net, &base->hello, accept, labels[direction].iv, info.iv, sizeof(info.iv));
	ret = set_option(conn->sock, SOL_TLS, option, &info, sizeof(info));
	memzero_explicit(&info, sizeof(info));
	return ret;
}

/**
 * swc_tls_start() - encrypt all that the socket carries from here on
 * @accept: hello and this have been exchanged, and nothing else
 *
 * conn->tx_mutex is held. May sleep.
 *
 * Return: 0, or a negative errno: the socket is of no use any more.
 */
int swc_tls_start(struct swc_tcp_conn *conn, const struct swc_wire_accept *accept)
{
	bool lower = conn->base.me < conn->base.peer;
	struct swc_tcp_callbacks ours;
	int ret;

	lockdep_assert_held(&conn->tx_mutex);
	/* TLS calls those that it finds, and ours call those of TLS. */
	swc_tcp_save_callbacks(conn->sock, &ours);
	swc_tcp_restore_callbacks(conn->sock, &conn->callbacks);
	ret = set_protocol(conn->sock) ?:
	      set_key(conn, accept, TLS_TX, lower ? 0 : 1) ?:
	      set_key(conn, accept, TLS_RX, lower ? 1 : 0);
	swc_tcp_save_callbacks(conn->sock, &conn->callbacks);
	conn->encrypted = !ret;
	swc_tcp_set_callbacks(conn->sock, &ours, conn);
	return ret;
}

/* Does TLS have something that TCP does not have yet? Without locks. */
bool swc_tls_has_pending(const struct sock *sk)
{
	const struct tls_context *tls = tls_get_ctx(sk);
	const struct tls_sw_context_tx *tx = tls->priv_ctx_tx;

	return READ_ONCE(tls->partially_sent_record) || READ_ONCE(tls->pending_open_record_frags) ||
	       READ_ONCE(tx->open_rec) || !list_empty(&tx->tx_list);
}

/* Does TCP have all that TLS was given? Then it ends before byte @seq of the socket. May sleep. */
bool swc_tls_is_sent(struct sock *sk, u32 *seq)
{
	bool sent;

	/* So that TLS is not in the middle of giving it more. */
	lock_sock(sk);
	sent = !swc_tls_has_pending(sk);
	*seq = tcp_sk(sk)->write_seq;
	release_sock(sk);
	return sent;
}
