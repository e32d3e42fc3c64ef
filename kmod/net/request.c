// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connection requests of peers, as far as it does not matter by what they have come. A request is checked
 * against the communicator it names, and accepted or refused with a reason; the connection is live when the
 * peer's AUTH has arrived.
 */
#include <linux/random.h>
#include <net/net_namespace.h>

#include "net/auth.h"
#include "net/conn.h"
#include "net/tombstone.h"

/* So long an accepted peer may take to send AUTH, at least; only tests change it. */
u32 swc_auth_ms = 5000;

/* ------------------------------------------------------------------ checks */

/**
 * struct refusal - why a request is refused
 * @reason: enum swc_wire_reason
 * @known: the refusal is authenticated, with @end.refusal_key
 * @end: how the communicator has ended, if @reason is SWC_WIRE_ENDED
 */
struct refusal {
	int reason;
	bool known;
	struct swc_tombstone end;
};

/* The connection, if it exists: with a reference, or NULL. */
static struct swc_conn *known_conn(struct swc_net *net, const struct swc_wire_hello *h)
{
	return swc_net_known_conn(net, le16_to_cpu(h->dst), le16_to_cpu(h->src), h->channel, h->path);
}

/* The rank that is asked for has left: has the peer received all that it sent before? */
static bool is_done_with(struct swc_net *net, const struct swc_wire_hello *h)
{
	struct swc_conn *conn = known_conn(net, h);
	bool unsent;

	if (!conn)
		return true;
	spin_lock(&conn->lock);
	unsent = swc_conn_has_unsent(conn);
	spin_unlock(&conn->lock);
	swc_conn_put(conn);
	return !unsent;
}

/*
 * The higher rank has lost a connection, and asks for the lower rank's next attempt. An old request does not
 * count: it names an attempt before the one that is alive.
 */
static void lost_by_peer(struct swc_net *net, const struct swc_wire_hello *h)
{
	struct swc_conn *conn = known_conn(net, h);

	if (!conn)
		return;
	spin_lock(&conn->lock);
	if (conn->attempt == le32_to_cpu(h->attempt))
		swc_resume_drop(conn, "it has lost the connection");
	spin_unlock(&conn->lock);
	swc_conn_put(conn);
}

/* The connection that is asked for; NULL: refused. */
static struct swc_conn *find_conn(const struct swc_listener *l, const struct swc_wire_hello *h,
				  struct swc_net *net, struct refusal *no)
{
	u32 src = le16_to_cpu(h->src), dst = le16_to_cpu(h->dst);
	const struct swc_net_params *params = &net->params;
	struct swc_conn *conn;
	u8 mac[SWC_WIRE_MAC];
	bool ended;

	swc_auth_hello(net, h, mac);
	no->reason = SWC_WIRE_DENIED;
	if (!swc_auth_equal(mac, h->mac))
		return NULL;
	ended = swc_tombstone_of(net, &no->end);
	no->known = true;
	/* Even if the communicator has ended: this may be why. */
	no->reason = SWC_WIRE_BAD;
	if (h->places != net->places || src >= params->nranks || dst >= params->nranks)
		return NULL;
	no->reason = SWC_WIRE_ENDED;
	if (ended)
		return NULL;
	/* One kernel may have several nodes of a communicator: the right one may come yet, or be gone. */
	if (!swc_net_is_local(net, dst)) {
		if (!swc_tombstone_find(l->ns, h->name, net, dst, &no->end))
			no->reason = SWC_WIRE_UNKNOWN;
		return NULL;
	}
	if (test_bit(dst, net->left) && is_done_with(net, h))
		return NULL;
	no->reason = SWC_WIRE_BAD;
	if (swc_net_is_local(net, src) || h->path >= swc_net_npaths(net, params->rank_node[src]))
		return NULL;
	if (swc_transport_get(swc_net_path(net, params->rank_node[src], h->path)->transport) != l->transport)
		return NULL;
	no->reason = SWC_WIRE_BUSY;
	if (src > dst) {
		lost_by_peer(net, h);
		return NULL;
	}
	conn = swc_net_find_conn(net, dst, src, h->channel, h->path);
	if (PTR_ERR(conn) == -EDQUOT)
		no->reason = SWC_WIRE_QUOTA;
	return IS_ERR(conn) ? NULL : conn;
}

/*
 * Give the connection to the request if it waits for one. A request that is not newer than those before
 * may be a replay. A newer one can only come from the peer: it has given up the attempt that still waits
 * for its AUTH, or never began that, which then is a replay. In both cases that attempt ends, and the
 * peer's next request finds the connection idle. So it is with a live connection that can be resumed: the
 * peer has lost it.
 */
static bool take(struct swc_conn *conn, const struct swc_wire_hello *h, void *request)
{
	u32 attempt = le32_to_cpu(h->attempt);
	bool newer, taken = false;

	spin_lock(&conn->lock);
	newer = attempt > conn->attempt;
	if (newer) {
		conn->attempt = attempt;
		taken = swc_conn_set_state(conn, SWC_CONN_IDLE, SWC_CONN_CONNECTING);
	}
	/* The connection owns the request: whoever closes the connection must find it. */
	if (taken) {
		cancel_delayed_work(&conn->connect_work);
		conn->transport->adopt(conn, request);
	} else if (newer && conn->state == SWC_CONN_LIVE) {
		/* Not to be asked for what it is about to do. */
		conn->nfailed = 1;
		swc_resume_replaced(conn);
	} else if (newer && conn->state == SWC_CONN_CONNECTING) {
		mod_delayed_work(swc_conn_wq(conn), &conn->connect_work, 0);
	}
	spin_unlock(&conn->lock);
	return taken;
}

static struct swc_conn *find_and_take(const struct swc_listener *l, const struct swc_wire_hello *h, u32 bytes,
				      void *request, struct refusal *no)
{
	struct swc_conn *conn;
	struct swc_net *net;

	no->reason = h ? swc_wire_hello_check(h, bytes) : SWC_WIRE_BAD;
	if (no->reason)
		return NULL;
	net = swc_net_ops->find(h->name, le16_to_cpu(h->dst));
	/* A communicator of another network namespace is not visible here. */
	if (net && !net_eq(net->ns, l->ns)) {
		swc_net_ops->put(net->params.comm);
		net = NULL;
	}
	if (!net) {
		no->known = swc_tombstone_find(l->ns, h->name, NULL, 0, &no->end);
		no->reason = no->known ? SWC_WIRE_ENDED : SWC_WIRE_UNKNOWN;
		return NULL;
	}
	conn = find_conn(l, h, net, no);
	if (conn && !take(conn, h, request)) {
		swc_conn_put(conn);
		conn = NULL;
		no->reason = SWC_WIRE_BUSY;
	}
	if (!conn)
		swc_net_ops->put(net->params.comm);
	return conn;
}

/* ------------------------------------------------------------------ for transports */

/**
 * swc_request() - a peer asks for a connection
 * @listener: by which it has come
 * @hello, @bytes: its request, perhaps padded; NULL: it has sent none
 * @request: for transport->adopt()
 * @reject: filled in if it is refused: to be sent to the peer
 *
 * Return: the connection, in state CONNECTING; the caller goes on with swc_request_accept(), and ends with
 * swc_request_put(). NULL: refused.
 */
struct swc_conn *swc_request(const struct swc_listener *listener, const struct swc_wire_hello *hello,
			     u32 bytes, void *request, struct swc_wire_reject *reject)
{
	struct refusal no = {};
	struct swc_conn *conn = find_and_take(listener, hello, bytes, request, &no);

	if (conn)
		return conn;
	*reject = (struct swc_wire_reject){
		.magic = cpu_to_le32(SWC_WIRE_MAGIC),
		.version = cpu_to_le16(SWC_WIRE_VERSION),
		.reason = cpu_to_le16(no.reason),
	};
	if (no.reason == SWC_WIRE_ENDED) {
		reject->error = cpu_to_le32(-no.end.error);
		reject->culprit = cpu_to_le32(no.end.culprit + 1);
	}
	if (no.known)
		swc_auth_refusal(no.end.refusal_key, hello, reject, reject->mac);
	swc_stat_inc(SWC_STAT_CONNS_REFUSED);
	return NULL;
}

/*
 * Put the references to the connection and to its communicator, which a connection that is being closed does
 * not hold any more.
 */
void swc_request_put(struct swc_conn *conn)
{
	struct swc_comm *comm = conn->comm;

	swc_conn_put(conn);
	swc_net_ops->put(comm);
}

/* Make the reply that accepts the request, conn->accept. */
void swc_request_accept(struct swc_conn *conn, const struct swc_wire_hello *hello)
{
	struct swc_wire_accept *a = &conn->accept;

	conn->hello = *hello;
	*a = (struct swc_wire_accept){
		.magic = cpu_to_le32(SWC_WIRE_MAGIC),
		.version = cpu_to_le16(SWC_WIRE_VERSION),
		.rx_bufs = cpu_to_le16(*conn->transport->rx_bufs),
		.rx_buf_kib = cpu_to_le16(*conn->transport->rx_buf_kib),
		.flags = cpu_to_le32(conn->resumable ? SWC_WIRE_RESUMABLE : 0),
		.received = cpu_to_le64(swc_resume_received(conn)),
	};
	get_random_bytes(a->nonce, sizeof(a->nonce));
	swc_auth_accept(conn->net, hello, a, a->mac);
	if (!test_bit(SWC_CONN_F_STARTED, &conn->flags))
		swc_reply_set_peer_rx_bufs(conn, hello->rx_bufs, hello->rx_buf_kib);
}

/*
 * The reply is sent. A peer that has died does not send AUTH: be ready for its next attempt, or find that
 * there is none.
 */
void swc_request_expect_auth(struct swc_conn *conn)
{
	u32 ms = max(conn->transport->auth_ms(), swc_auth_ms);

	spin_lock(&conn->lock);
	if (conn->state == SWC_CONN_CONNECTING)
		queue_delayed_work(swc_conn_wq(conn), &conn->connect_work, msecs_to_jiffies(ms));
	spin_unlock(&conn->lock);
}
