// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages in, as far as it does not matter how they have come: what to do with each kind. One at a time per
 * connection, in process context; the executor releases segments from anywhere.
 */
#include <linux/sched/mm.h>

#include "net/auth.h"
#include "net/conn.h"
#include "net/policy.h"

/* ------------------------------------------------------------------ segments */

/* A receive buffer of a segment is free again; conn->lock is held. True: return credits now. */
static bool add_credit(struct swc_conn *conn)
{
	if (++conn->to_return < swc_policy_return(conn->rx_bufs))
		return false;
	swc_conn_pend(conn, SWC_PEND_CREDIT);
	return true;
}

/**
 * swc_conn_release() - a segment has been consumed
 */
void swc_conn_release(struct swc_net_seg *seg)
{
	struct swc_conn *conn = seg->conn;
	bool pump = false;

	if (seg->unexpected) {
		swc_seg_copy_free(seg, &conn->net->unexpected);
	} else {
		spin_lock(&conn->lock);
		conn->transport->release(conn, seg);
		/* Once the connection is being closed, nothing is sent any more. */
		if (conn->state < SWC_CONN_CLOSING)
			pump = add_credit(conn);
		spin_unlock(&conn->lock);
		if (pump)
			conn->transport->pump(conn, true);
	}
	swc_conn_put(conn);
}

/**
 * swc_conn_copy_unexpected() - copy a segment out of its receive buffer
 *
 * Return: the copy, and the caller then releases the original; NULL: no memory.
 */
struct swc_net_seg *swc_conn_copy_unexpected(struct swc_net_seg *seg)
{
	struct swc_conn *conn = seg->conn;
	struct mem_cgroup *before = set_active_memcg(conn->net->memcg);
	struct swc_net_seg *copy = swc_seg_copy(seg, &conn->net->unexpected);

	set_active_memcg(before);
	if (copy)
		kref_get(&conn->ref);
	return copy;
}

static void count_received(struct swc_wire_msg msg)
{
	do {
		swc_stat_add(SWC_STAT_BYTES_RECEIVED, msg.bytes);
		if (msg.offset + msg.bytes == msg.total)
			swc_stat_inc(SWC_STAT_MSGS_RECEIVED);
	} while (swc_wire_next(&msg));
}

/**
 * swc_rx_data() - a segment has arrived
 * @seg: with its conn and span; its user returns it with swc_conn_release()
 * @msg: its header
 */
void swc_rx_data(struct swc_conn *conn, struct swc_net_seg *seg, const struct swc_wire_msg *msg)
{
	seg->src = conn->peer;
	seg->dst = conn->me;
	seg->channel = conn->channel;
	seg->msg = *msg;
	count_received(*msg);
	kref_get(&conn->ref);
	swc_net_ops->segment(conn->comm, seg);
}

/**
 * swc_rx_written() - a chunk of a rendezvous has been written; conn->lock is held
 * @bytes: its size
 *
 * Return: the message is complete: the caller reports that by swc_net_ops.rndv_done, without the lock.
 */
bool swc_rx_written(struct swc_rndv *rndv, u32 bytes)
{
	rndv->received += bytes;
	swc_stat_add(SWC_STAT_BYTES_RECEIVED, bytes);
	swc_stat_add(SWC_STAT_BYTES_DIRECT, bytes);
	if (rndv->received < rndv->bytes)
		return false;
	swc_stat_inc(SWC_STAT_MSGS_RECEIVED);
	return true;
}

/* ------------------------------------------------------------------ short messages */

/* The communicator was aborted on the peer's node: abort it here for the same reason. */
static void handle_abort(struct swc_conn *conn, const struct swc_wire_msg *msg)
{
	const struct swc_wire_abort *a = msg->payload;
	u32 error = le32_to_cpu(a->error), culprit = le32_to_cpu(a->culprit);
	char text[SWC_TEXT_BYTES];
	u32 i;

	if (!swc_may_abort_with(error))
		error = ECONNABORTED;
	if (culprit > conn->net->params.nranks)
		culprit = 0;
	for (i = 0; i < sizeof(text) - 1 && a->text[i]; i++)
		text[i] = a->text[i] >= ' ' && a->text[i] <= '~' ? a->text[i] : '?';
	text[i] = '\0';
	swc_net_ops->peer_lost(conn->comm, -(int)error, (int)culprit - 1, msg->seq, text);
}

static int handle_auth(struct swc_conn *conn, const struct swc_wire_msg *msg)
{
	u8 mac[SWC_WIRE_MAC];

	if (test_bit(SWC_CONN_F_PROVEN, &conn->flags))
		return -EPROTO;
	swc_auth_proof(conn->net, &conn->hello, &conn->accept, msg->seq, mac);
	if (!swc_auth_equal(mac, msg->payload))
		return -EPROTO;
	if (swc_resume_from(conn, msg->seq))
		return -EPROTO;
	/* The peer waits for a message. */
	if (conn->resumable) {
		spin_lock(&conn->lock);
		swc_conn_pend(conn, SWC_PEND_KEEPALIVE);
		spin_unlock(&conn->lock);
	}
	swc_conn_go_live(conn);
	return 0;
}

/* Sent behind the last message that could take one of the smaller receive buffers. */
static int handle_grown(struct swc_conn *conn, const struct swc_wire_msg *msg)
{
	int ret = -EPROTO;

	spin_lock(&conn->lock);
	if (msg->bytes >= conn->peer_rx_buf_bytes) {
		conn->peer_rx_buf_bytes = msg->bytes;
		ret = 0;
	}
	spin_unlock(&conn->lock);
	return ret;
}

/* HEARTBEAT or RTS. */
static void reply(struct swc_conn *conn)
{
	spin_lock(&conn->lock);
	swc_conn_pend(conn, SWC_PEND_REPLY);
	spin_unlock(&conn->lock);
}

static void handle_credit(struct swc_conn *conn, const struct swc_wire_msg *msg)
{
	if (msg->is_reply) {
		spin_lock(&conn->lock);
		conn->probe_open = false;
		spin_unlock(&conn->lock);
	}
	swc_net_ops->peer_progress(conn->comm, conn->peer, msg->seq);
}

static void handle_fin(struct swc_conn *conn, const struct swc_wire_msg *msg)
{
	/* In this order: a rank that finds the connection closed must know that the peer has left. */
	swc_net_ops->peer_left(conn->comm, conn->peer, msg->seq);
	set_bit(conn->peer, conn->net->left);
	spin_lock(&conn->lock);
	set_bit(SWC_CONN_F_PEER_LEFT, &conn->flags);
	spin_unlock(&conn->lock);
}

/**
 * swc_rx_parse() - parse a message, and take the credits that it returns
 * @h, @payload, @bytes, @msg: as for swc_wire_parse()
 *
 * Return: 0; -EPROTO if it is invalid, or the peer has not sent AUTH before it.
 */
int swc_rx_parse(struct swc_conn *conn, const struct swc_wire_header *h, const void *payload, u32 bytes,
		 struct swc_wire_msg *msg)
{
	int ret = swc_wire_parse(h, payload, bytes, msg);

	if (!ret && !test_bit(SWC_CONN_F_PROVEN, &conn->flags) && msg->kind != SWC_WIRE_AUTH)
		ret = -EPROTO;
	if (!ret)
		clear_bit(SWC_CONN_F_UNHEARD, &conn->flags);
	return ret ?: swc_tx_add_credits(conn, msg->credits);
}

/**
 * swc_rx_short() - handle a message of any kind but DATA and WRITE
 *
 * Return: 0 or -EPROTO.
 */
int swc_rx_short(struct swc_conn *conn, const struct swc_wire_msg *msg)
{
	switch (msg->kind) {
	case SWC_WIRE_RTR:
		return swc_tx_add_offer(conn, msg);
	case SWC_WIRE_RTS:
		swc_net_ops->rts(conn->comm, conn->peer, msg);
		reply(conn);
		return 0;
	case SWC_WIRE_CREDIT:
		handle_credit(conn, msg);
		return 0;
	case SWC_WIRE_HEARTBEAT:
		reply(conn);
		return 0;
	case SWC_WIRE_GROWN:
		return handle_grown(conn, msg);
	case SWC_WIRE_AUTH:
		return handle_auth(conn, msg);
	case SWC_WIRE_ABORT:
		handle_abort(conn, msg);
		return 0;
	case SWC_WIRE_FIN:
		handle_fin(conn, msg);
		return 0;
	default:
		return -EPROTO;
	}
}

/**
 * swc_rx_failed() - a message was invalid
 * @proven: the peer was authenticated when it came
 */
void swc_rx_failed(struct swc_conn *conn, bool proven, int error)
{
	/* An unauthenticated peer ends its own attempt to connect, not the communicator. */
	if (proven)
		swc_conn_fail(conn, -EPROTO, "an invalid message arrived");
	else
		swc_conn_retry(conn, "it has not proven that it knows the communicator's id", error);
}
