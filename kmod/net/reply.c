// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connecting, as far as it does not matter by what: attempts of the lower rank, and the replies to its
 * requests. An attempt that fails is repeated until the communicator's deadline, because nodes start at
 * different times.
 */
#include <linux/random.h>

#include "net/auth.h"
#include "net/conn.h"

/* The peer's receive buffers, by its part of the handshake. */
void swc_reply_set_peer_rx_bufs(struct swc_conn *conn, __le16 rx_bufs, __le16 rx_buf_kib)
{
	conn->peer_rx_bufs = le16_to_cpu(rx_bufs);
	conn->peer_rx_buf_bytes = le16_to_cpu(rx_buf_kib) << 10;
	conn->credits = conn->peer_rx_bufs;
}

/* ------------------------------------------------------------------ attempts */

/* End what the connection has. False: it has failed, and is not used any more. */
static bool end_attempt(struct swc_conn *conn)
{
	if (conn->resumable)
		return swc_resume_suspend(conn);
	swc_conn_quiesce(conn);
	swc_conn_teardown(conn);
	return true;
}

/*
 * Work item: a live connection has been dropped, or nothing has come by it in time, or an attempt has failed
 * or takes too long, or an accepted peer has not sent AUTH in time, or has not connected. The lower rank
 * starts a new attempt; the other gets ready for the peer's next one, and asks for it.
 */
void swc_reply_connect_work(struct work_struct *work)
{
	struct swc_conn *conn = container_of(work, struct swc_conn, connect_work.work);
	bool lower = conn->me < conn->peer, again = false, dropped = false, resumes = false;
	const char *reason;

	spin_lock(&conn->lock);
	/* If it is queued, that time is not over: an attempt's was, when the reply came. */
	if (test_bit(SWC_CONN_F_UNHEARD, &conn->flags) && !test_bit(SWC_CONN_F_DROPPED, &conn->flags) &&
	    !delayed_work_pending(&conn->connect_work))
		swc_resume_drop(conn, "nothing has come since it accepted");
	reason = conn->drop_reason;
	if (conn->state == SWC_CONN_LIVE && test_bit(SWC_CONN_F_DROPPED, &conn->flags)) {
		resumes = swc_resume_begin(conn);
		again = resumes;
		dropped = !again;
	} else if (conn->state != SWC_CONN_LIVE) {
		again = swc_conn_set_state(conn, SWC_CONN_CONNECTING, SWC_CONN_RESETTING);
	}
	spin_unlock(&conn->lock);
	if (dropped) {
		/* The peer's FIN or ABORT may have arrived, and nobody may have come to it yet. */
		if (conn->transport->settle)
			conn->transport->settle(conn);
		swc_conn_fail(conn, -ECONNRESET, "it has disconnected (%s)", reason);
	}
	if (resumes)
		swc_net_ops->path_changed(conn->comm, conn->me, conn->channel, conn->peer,
					  READ_ONCE(conn->via), false);
	if (!again) {
		swc_resume_ask(conn);
		return;
	}
	if (!end_attempt(conn))
		return;
	spin_lock(&conn->lock);
	again = swc_conn_set_state(conn, SWC_CONN_RESETTING, lower ? SWC_CONN_CONNECTING : SWC_CONN_IDLE);
	if (again && !lower)
		swc_resume_await(conn);
	spin_unlock(&conn->lock);
	if (again && lower)
		swc_resume_connect(conn);
	else
		wake_up_all(&conn->net->abort_wq);	/* no peer to notify of an abort */
}

/*
 * Make the request of the next attempt, conn->hello; of the higher rank, one that asks for the lower rank's
 * next attempt.
 */
void swc_reply_hello(struct swc_conn *conn)
{
	struct swc_wire_hello *h = &conn->hello;

	if (conn->me < conn->peer)
		conn->attempt++;
	*h = (struct swc_wire_hello){
		.magic = cpu_to_le32(SWC_WIRE_MAGIC),
		.version = cpu_to_le16(SWC_WIRE_VERSION),
		.channel = conn->channel,
		.path = conn->path,
		.places = conn->net->places,
		.src = cpu_to_le16(conn->me),
		.dst = cpu_to_le16(conn->peer),
		.attempt = cpu_to_le32(conn->attempt),
		.rx_bufs = cpu_to_le16(*conn->transport->rx_bufs),
		.rx_buf_kib = cpu_to_le16(*conn->transport->rx_buf_kib),
	};
	memcpy(h->name, conn->net->name, SWC_WIRE_NAME);
	get_random_bytes(h->nonce, sizeof(h->nonce));
	swc_auth_hello(conn->net, h, h->mac);
}

/* ------------------------------------------------------------------ replies */

/**
 * swc_reply_accepted() - the peer has accepted
 * @data, @bytes: struct swc_wire_accept, perhaps padded
 *
 * Return: false if that cannot be authenticated, and the attempt has failed.
 */
bool swc_reply_accepted(struct swc_conn *conn, const void *data, u32 bytes)
{
	const struct swc_wire_accept *a = data;
	u8 mac[SWC_WIRE_MAC];
	int reason;

	/* The lower rank does not accept, it only connects. */
	reason = conn->me < conn->peer ? swc_wire_accept_check(a, bytes) : SWC_WIRE_BAD;
	if (!reason) {
		swc_auth_accept(conn->net, &conn->hello, a, mac);
		reason = swc_auth_equal(mac, a->mac) ? 0 : SWC_WIRE_DENIED;
	}
	/* Anybody can forge an answer, the peer's may follow. */
	if (reason) {
		swc_conn_retry(conn, "its answer cannot be authenticated", reason);
		return false;
	}
	conn->accept = *a;
	if (!test_bit(SWC_CONN_F_STARTED, &conn->flags))
		swc_reply_set_peer_rx_bufs(conn, a->rx_bufs, a->rx_buf_kib);
	if (swc_resume_from(conn, le64_to_cpu(a->received)))
		return false;
	/* What the peer's device or TCP acknowledges must not be lost with an attempt that it gives up. */
	assign_bit(SWC_CONN_F_UNHEARD, &conn->flags,
		   conn->resumable && le32_to_cpu(a->flags) & SWC_WIRE_RESUMABLE);
	spin_lock(&conn->lock);
	swc_conn_pend(conn, SWC_PEND_AUTH);
	spin_unlock(&conn->lock);
	swc_conn_go_live(conn);
	return true;
}

static const char * const reasons[SWC_WIRE_REASON_NR] = {
	[SWC_WIRE_UNKNOWN] = "there is no such communicator there, or not any more",
	[SWC_WIRE_BUSY] = "it is busy",
	[SWC_WIRE_VERSION_DIFFERS] =
		"it uses another protocol version: load the same module on all nodes",
	[SWC_WIRE_BAD] = "it found the request invalid: do all ranks have the same table of nodes?",
	[SWC_WIRE_DENIED] = "it refuses our proof of the communicator's id",
	[SWC_WIRE_ENDED] = "the communicator has ended there",
	[SWC_WIRE_QUOTA] = "its user may have no more connections or memory: see swingctl status there",
};

/* The communicator has ended there: the culprit there is the culprit here. */
static void peer_ended(struct swc_conn *conn, const struct swc_wire_reject *r)
{
	u32 error = le32_to_cpu(r->error), culprit = le32_to_cpu(r->culprit);
	char text[SWC_TEXT_BYTES];

	if (swc_may_abort_with(error) && culprit && culprit <= conn->net->params.nranks) {
		scnprintf(text, sizeof(text), "rank %u: connection with rank %u: %s; rank %u was at fault",
			  conn->me, conn->peer, reasons[SWC_WIRE_ENDED], culprit - 1);
		swc_net_ops->peer_lost(conn->comm, -(int)error, culprit - 1, swc_net_oldest(conn->net), text);
	}
	swc_conn_fail(conn, -ECONNRESET, "%s", reasons[SWC_WIRE_ENDED]);
}

/* Only a member can refuse for good: what anybody can forge must only delay. */
static bool is_authentic(const struct swc_conn *conn, const struct swc_wire_reject *r)
{
	u8 mac[SWC_WIRE_MAC];

	swc_auth_refusal(conn->net->refusal_key, &conn->hello, r, mac);
	return swc_auth_equal(mac, r->mac);
}

/* Do messages wait for the connection, which has never been live? The peer cannot have received them. */
static bool has_waiting(struct swc_conn *conn)
{
	bool waiting;

	spin_lock(&conn->lock);
	waiting = !test_bit(SWC_CONN_F_STARTED, &conn->flags) && swc_conn_is_used(conn);
	spin_unlock(&conn->lock);
	return waiting;
}

/**
 * swc_reply_refused() - the peer has refused
 * @r, @bytes: its refusal, perhaps padded; NULL: it has not said why
 * @status: the transport's, for the text
 *
 * Return: false if @r is none, and the transport has to say what happened.
 */
bool swc_reply_refused(struct swc_conn *conn, const struct swc_wire_reject *r, u32 bytes, int status)
{
	u32 reason;

	if (!r || bytes < sizeof(*r) || le32_to_cpu(r->magic) != SWC_WIRE_MAGIC)
		return false;
	reason = le16_to_cpu(r->reason);
	if (!reason || reason >= SWC_WIRE_REASON_NR)
		return false;
	swc_path_well(conn, READ_ONCE(conn->via));
	/*
	 * The higher rank has only asked. One that has left in order may not need this connection; messages
	 * that wait for it do.
	 */
	if (conn->me > conn->peer &&
	    (reason == SWC_WIRE_BUSY || (reason == SWC_WIRE_ENDED && !r->error && !has_waiting(conn))))
		swc_conn_retry(conn, NULL, status);
	else if (reason == SWC_WIRE_ENDED && is_authentic(conn, r))
		peer_ended(conn, r);
	else if (reason == SWC_WIRE_BAD && is_authentic(conn, r))
		swc_conn_fail(conn, -EPROTO, "%s", reasons[reason]);
	else if (reason == SWC_WIRE_VERSION_DIFFERS)
		swc_conn_retry(conn, reasons[reason], le16_to_cpu(r->version));
	else
		swc_conn_retry(conn, reasons[reason], status);
	return true;
}
