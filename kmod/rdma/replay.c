// SPDX-License-Identifier: GPL-2.0-only
/*
 * What was sent and may not have arrived, when a connection goes on by another queue pair, mostly by another
 * path.
 *
 * The messages of a connection are numbered per direction, from its beginning to its end, whatever queue pair
 * carries them; AUTH, a part of the handshake, has no number. When a queue pair is lost, each side gives it
 * up (swc_qp_suspend()), and tells the other in the next handshake how many messages it has received, R.
 * Requests of which it is not known that they have arrived are still in the send queue. swc_rdma_resume()
 * goes through them:
 *
 *	messages below R	have arrived, and are done
 *	COPIED			lie in a page, and are sent again, in their order and before all others
 *	DATA			are taken back: the message is again one that was sent up to there
 *	WRITTEN			are taken back likewise: the chunk is written again
 *	RTR, registrations	are dropped: their keys are worth nothing any more
 *
 * So the next message is again number R. What a header that is not sent again would have returned as
 * credits is returned by another.
 *
 * Why that is exact, for one direction:
 *
 *  1. A reliable connection delivers messages in order, each once, and R is the number of those that were
 *     handled, one at a time. After any number of queue pairs it is the first R messages that were handled.
 *  2. R does not change between the handshake that tells it and the next message: swc_qp_suspend() puts the
 *     queue pair into the error state, in which it takes nothing from the network, and drains it, so that
 *     all that had arrived has been handled. Only then can a handshake begin; and the MAC of a handshake,
 *     with the number of the attempt, ties it to one queue pair.
 *  3. The sender has all messages from R on: a request leaves the send queue when the device reports it to
 *     be done. The peer's device acknowledges a message when it has completed the receive, which the peer
 *     handles before it tells R. On iWARP a request is reported when the local TCP has taken it. There it
 *     leaves the send queue when a read is answered that was posted after it: the peer's device handles
 *     what arrives in its order, so it has completed the receives of all messages before the read when it
 *     answers. (When the peer has left in order, the device's report is enough: the connection does not go
 *     on.) Of an attempt that the peer gives up before it has handled AUTH, it handles nothing; so nothing
 *     but AUTH is sent before the peer's first message (SWC_CONN_F_UNHEARD). So R is never less than what
 *     was acknowledged, or answered for. Where it is (a device has lost what it had acknowledged), the
 *     connection fails.
 *  4. A write that is late does no harm. Before the receiver answers, its old queue pair is in the error
 *     state and drained, and the old keys are gone with their regions. So a write can only land before the
 *     memory is offered again, and is overwritten then with the same bytes: the memory of a message belongs
 *     to the connection until WRITTEN has left the send queue, or R has told it.
 *  5. Bytes of a chunk count at the receiver when its WRITTEN is handled, so by 1 once; and both sides agree
 *     from where on the message is to be written again: the receiver offers it from what it has counted
 *     (rndv->closed), the sender takes back what no WRITTEN below R has told of. The chunks of a message
 *     are written in their order.
 *  6. A receive buffer that is a segment in use is not posted to the new queue pair before it is released.
 *
 * The connection's lock is held by all functions that are not marked.
 */
#include "rdma/rdma.h"

/* ------------------------------------------------------------------ a queue pair is lost */

/*
 * The queue pair is drained. The peer may have received any number of the messages in the send queue; it
 * writes to no chunk any more. Without conn->base.lock.
 */
void swc_replay_suspend(struct swc_rdma_conn *conn)
{
	struct swc_rndv *rndv;

	spin_lock(&conn->base.lock);
	conn->sq.error = 0;
	swc_tx_forget_offers(&conn->base);
	list_for_each_entry(rndv, &conn->base.rndvs, node)
		rndv->offered = rndv->closed;
	spin_unlock(&conn->base.lock);
}

/* ------------------------------------------------------------------ the peer tells what it has */

/* Transport operation, without conn->base.lock. Only changes while a queue pair is alive. */
u64 swc_rdma_received(const struct swc_conn *base)
{
	return container_of(base, struct swc_rdma_conn, base)->received;
}

static bool has_number(const struct swc_sq_entry *entry)
{
	return entry->kind >= SWC_SQ_COPIED;
}

/* To be sent again, before those that are to be sent again already. */
static void keep(struct swc_sq *sq, struct swc_sq_entry *entry)
{
	struct swc_sq_replay *r = &sq->replay[--sq->first_replay % SWC_SQ_DEPTH];

	*r = (struct swc_sq_replay){ .page = entry->page, .bytes = entry->bytes };
	entry->page = (struct swc_sq_page){};
	sq->nreplay++;
	swc_stat_add(SWC_STAT_BYTES_RESENT, entry->bytes);
}

static void not_received(struct swc_rdma_conn *conn, struct swc_sq_entry *entry)
{
	const struct swc_wire_header *h = entry->page.data;

	if (entry->kind == SWC_SQ_COPIED) {
		keep(&conn->sq, entry);
		return;
	}
	if (entry->kind != SWC_SQ_RTR)
		swc_tx_take_back(&conn->base, entry->owner, entry->bytes);
	conn->base.credits += entry->kind == SWC_SQ_DATA;
	conn->base.to_return += le16_to_cpu(h->credits);
	if (conn->base.to_return)
		swc_conn_pend(&conn->base, SWC_PEND_CREDIT);
}

/* Go through the queue from its end, so that what is taken back keeps its order. */
static void requeue_unreceived(struct swc_rdma_conn *conn, u64 received, struct list_head *done)
{
	struct swc_sq *sq = &conn->sq;
	struct swc_sq_entry *entry;
	u32 at;

	for (at = sq->head; at != sq->tail;) {
		entry = &sq->entry[--at % SWC_SQ_DEPTH];
		if (has_number(entry) && entry->number >= received)
			not_received(conn, entry);
		else if (entry->send)
			list_move(&entry->send->node, done);
	}
	for (at = 0; at < SWC_SQ_DEPTH; at++)
		swc_sq_complete(conn, &sq->entry[at]);
	swc_sq_restart(conn);
	conn->sent = received;
	conn->acked = received;
}

/* Can the peer have so many? And not have returned the credits of segments that it does not have? */
static bool is_possible(const struct swc_rdma_conn *conn, u64 received)
{
	const struct swc_sq *sq = &conn->sq;
	u32 at, credits = conn->base.credits;

	if (received < conn->acked || received > conn->sent)
		return false;
	for (at = sq->tail; at != sq->head; at++) {
		const struct swc_sq_entry *entry = &sq->entry[at % SWC_SQ_DEPTH];

		credits += entry->kind == SWC_SQ_DATA && entry->number >= received;
	}
	return credits <= conn->base.peer_rx_bufs;
}

/* Transport operation, without conn->base.lock. */
int swc_rdma_resume(struct swc_conn *base, u64 received)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(base);
	struct swc_send *send, *next;
	int ret = -EPROTO;
	LIST_HEAD(done);

	spin_lock(&base->lock);
	if (is_possible(conn, received)) {
		requeue_unreceived(conn, received, &done);
		ret = 0;
	}
	spin_unlock(&base->lock);
	list_for_each_entry_safe(send, next, &done, node)
		swc_net_ops->send_done(send, 0, false);
	return ret;
}

/* ------------------------------------------------------------------ sending again */

/* Post the first of the messages that are to be sent again. There is one, and a free entry. */
void swc_replay_post(struct swc_rdma_conn *conn)
{
	struct swc_sq *sq = &conn->sq;
	struct swc_sq_replay *r = &sq->replay[sq->first_replay++ % SWC_SQ_DEPTH];
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .num_sge = 1 };
	struct swc_sq_entry *entry = swc_sq_next_with(conn, r->page);

	lockdep_assert_held(&conn->base.lock);
	entry->kind = SWC_SQ_COPIED;
	entry->bytes = r->bytes;
	*r = (struct swc_sq_replay){};
	sq->nreplay--;
	swc_sq_message(conn, entry, entry->bytes);
	wr.sg_list = entry->sge;
	swc_sq_post(conn, entry, &wr, true);
}
