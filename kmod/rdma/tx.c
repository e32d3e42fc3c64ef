// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages out. A small message is copied into a send queue entry's page, so its memory is free at once, and
 * those of its step that follow it go with it while there is room; the device reads a larger one where it
 * lies. A message for which the peer offers memory is written there.
 *
 * All posting happens in swc_rdma_pump(), under conn->lock; everything that makes posting possible calls it.
 */
#include "rdma/rdma.h"

/* The communicator is aborted when no memory could be mapped for the device for so many seconds. */
#define MAP_FAILING_MAX_S	5

/* ------------------------------------------------------------------ posting; conn->lock is held */

/* Post the first of the short messages that are due; false: none is left, or none may be sent any more. */
static bool post_short(struct swc_rdma_conn *conn)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .num_sge = 1 };
	struct swc_sq_entry *entry = swc_sq_next(conn);
	struct swc_wire_header *h;
	struct swc_tx_short made;

	BUILD_BUG_ON(SWC_SHORT_BYTES > SWC_ENTRY_BYTES);
	swc_iwarp_take_probe(conn);
	if (!swc_tx_short(&conn->base, entry->page.data, &made))
		return false;
	if (!made.bytes)
		return true;
	h = swc_sq_message(conn, entry, made.bytes);
	entry->kind = h->kind == SWC_WIRE_AUTH ? SWC_SQ_AUTH : SWC_SQ_COPIED;
	entry->bytes = made.bytes;
	entry->is_abort = made.is_abort;
	wr.sg_list = entry->sge;
	if (made.is_probe)
		swc_sq_post_probe(conn, entry, &wr);
	else
		swc_sq_post(conn, entry, &wr, made.is_abort || made.is_fin);
	return true;
}

/* Small messages in one segment. */
static void post_several(struct swc_rdma_conn *conn, struct swc_send *send, u32 n, struct list_head *done)
{
	struct swc_sq_entry *entry = swc_sq_next(conn);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .num_sge = 1, .sg_list = entry->sge };

	entry->kind = SWC_SQ_COPIED;
	entry->bytes = swc_tx_several(&conn->base, entry->page.data, send, n, done);
	swc_sq_message(conn, entry, entry->bytes);
	conn->base.credits--;
	swc_sq_post(conn, entry, &wr, false);
}

static bool post_segment(struct swc_rdma_conn *conn, struct swc_send *send, struct list_head *done)
{
	u32 bytes = swc_tx_segment_bytes(&conn->base, send), nsge = 1, n;
	bool last, copied = send->bytes <= SWC_INLINE_BYTES;
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct swc_span span = send->span;
	struct swc_sq_entry *entry;
	struct swc_wire_header *h;

	if (!swc_tx_has_credit(&conn->base, send))
		return false;
	n = copied ? swc_tx_count_several(&conn->base, send, SWC_INLINE_BYTES) : 1;
	if (n > 1) {
		post_several(conn, send, n, done);
		return true;
	}
	entry = swc_sq_next(conn);
	span.offset += send->posted;
	if (!copied) {
		bytes = swc_sq_map(conn, entry, 1, &span, bytes, &nsge);
		if (!bytes)
			return false;
	}
	entry->kind = copied ? SWC_SQ_COPIED : SWC_SQ_DATA;
	entry->owner = send;
	entry->bytes = copied ? SWC_HEADER + bytes : bytes;
	h = swc_sq_message(conn, entry, SWC_HEADER + (copied ? bytes : 0));
	swc_tx_data(&conn->base, h, send, bytes);
	if (copied && bytes)
		swc_tx_copy_span(h + 1, &span, bytes);
	send->posted += bytes;
	last = send->posted == send->bytes;
	if (last) {
		swc_tx_sent(&conn->base, send, copied ? done : NULL);
		entry->send = copied ? NULL : send;
	}
	conn->base.credits--;
	wr.sg_list = entry->sge;
	wr.num_sge = nsge;
	swc_sq_post(conn, entry, &wr, last && !copied);
	return true;
}

/* A chunk of a message is written: tell the peer, and invalidate the key. @last: it is the last chunk. */
static void post_written(struct swc_rdma_conn *conn, const struct swc_offer *o, struct swc_send *send,
			 bool last)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV, .num_sge = 1, .ex.invalidate_rkey = o->rkey };
	struct swc_sq_entry *entry = swc_sq_next(conn);
	struct swc_wire_header *h = swc_sq_message(conn, entry, SWC_HEADER);

	swc_tx_header(&conn->base, h, SWC_WIRE_WRITTEN);
	h->ordinal = cpu_to_le32(o - conn->base.offer);
	entry->kind = SWC_SQ_WRITTEN;
	entry->owner = send;
	entry->bytes = o->msg.bytes;
	entry->send = last ? send : NULL;
	wr.sg_list = entry->sge;
	swc_sq_post(conn, entry, &wr, last);
}

/* Write the next piece of a chunk that the peer has offered. */
static bool post_write(struct swc_rdma_conn *conn, struct swc_send *send)
{
	struct swc_offer *o = swc_tx_find_offer(&conn->base, send);
	struct swc_span span = send->span;
	struct ib_rdma_wr wr = {};
	struct swc_sq_entry *entry;
	u32 bytes, nsge;
	bool last;

	/* The last piece is posted together with WRITTEN. */
	if (!o || !swc_tx_offer_fits(&conn->base, send, o) || !swc_sq_has_room(conn, 2))
		return false;
	entry = swc_sq_next(conn);
	span.offset += send->posted;
	bytes = swc_sq_map(conn, entry, 0, &span, o->msg.bytes - o->posted, &nsge);
	if (!bytes)
		return false;
	wr.remote_addr = o->addr + o->posted;
	wr.rkey = o->rkey;
	wr.wr.sg_list = entry->sge;
	wr.wr.num_sge = nsge;
	wr.wr.opcode = IB_WR_RDMA_WRITE;
	o->posted += bytes;
	send->posted += bytes;
	if (o->posted < o->msg.bytes) {
		swc_sq_post(conn, entry, &wr.wr, false);
		return true;
	}
	swc_sq_chain(conn, entry, &wr.wr);
	last = send->posted == send->bytes;
	if (last)
		swc_tx_sent(&conn->base, send, NULL);
	post_written(conn, o, send, last);
	o->valid = false;
	return true;
}

/* Post a piece of the first message that can be sent; messages that are complete by that go to @done. */
static bool post_message(struct swc_rdma_conn *conn, struct list_head *done)
{
	struct swc_send *send;

	if (conn->base.corked || swc_tx_is_blocked(&conn->base))
		return false;
	list_for_each_entry(send, &conn->base.outq, node)
		if (swc_tx_is_direct(send) ? post_write(conn, send) : post_segment(conn, send, done))
			return true;
	return false;
}

static bool post_next(struct swc_rdma_conn *conn, struct list_head *done)
{
	if (conn->base.state != SWC_CONN_LIVE || conn->sq.error || swc_sq_is_full(conn))
		return false;
	/* AUTH has a page; all else comes after what is sent again, as it did before. */
	if (conn->base.pending & SWC_PEND_AUTH)
		return post_short(conn);
	if (test_bit(SWC_CONN_F_UNHEARD, &conn->base.flags)) {
		/* A read is no message, and tells whether the peer is alive. */
		swc_iwarp_take_probe(conn);
		return false;
	}
	if (conn->sq.nreplay) {
		swc_replay_post(conn);
		return true;
	}
	if (!swc_sq_has_room(conn, 1))
		return false;
	if (post_short(conn))
		return true;
	return !test_bit(SWC_CONN_F_ABORT_SENT, &conn->base.flags) &&
	       (swc_rndv_post(conn) || post_message(conn, done));
}

/* ------------------------------------------------------------------ retiring; conn->lock is held */

/*
 * All requests before this head of the send queue are complete; messages that are free by that go to @sends.
 * Return: whether the ABORT is among them.
 */
static bool retire(struct swc_rdma_conn *conn, u32 head, struct list_head *sends)
{
	struct swc_sq *sq = &conn->sq;
	bool abort_sent = false;

	while ((s32)(head - sq->tail) > 0) {
		struct swc_sq_entry *entry = &sq->entry[sq->tail++ % SWC_SQ_DEPTH];

		swc_sq_complete(conn, entry);
		if (entry->kind >= SWC_SQ_COPIED)
			conn->acked = entry->number + 1;
		if (entry->send)
			list_move_tail(&entry->send->node, sends);
		abort_sent |= entry->is_abort;
	}
	/* What is not reported by itself leaves it behind; both run free. */
	if ((s32)(sq->reported - sq->tail) < 0)
		sq->reported = sq->tail;
	return abort_sent;
}

/* What was kept for a peer that has left meanwhile. */
static void retire_reported(struct swc_rdma_conn *conn, struct list_head *sends)
{
	if (conn->iwarp && !swc_iwarp_keeps(conn))
		retire(conn, conn->sq.reported, sends);
}

/* ------------------------------------------------------------------ pumping */

static noinline_for_stack void report_map_failing(const struct swc_rdma_conn *conn, struct swc_comm *comm)
{
	char text[SWC_TEXT_BYTES];

	scnprintf(text, sizeof(text),
		  "rank %u: for rank %u no memory could be mapped for the device: swiotlb= too small?",
		  conn->base.me, conn->base.peer);
	swc_net_ops->peer_lost(comm, -EIO, conn->base.me, swc_net_oldest(conn->base.net), text);
}

/* Posting has failed. @first: for the first time. */
static void report_error(struct swc_conn *base, int error, bool first)
{
	if (error == -ETIMEDOUT && !base->resumable)
		swc_conn_fail(base, -ECONNRESET, "it does not answer");
	else if (error != -ENOTCONN && error != -ETIMEDOUT)
		swc_conn_fail(base, -EIO, "the device takes no more work (%pe)", ERR_PTR(error));
	else if (first && error == -ETIMEDOUT)
		swc_conn_retry(base, "it does not answer", error);
	else if (first)
		swc_conn_retry(base, "the queue pair is disconnected", 0);	/* by the peer, on iWARP */
}

/* Transport operation: post all that can be posted. */
void swc_rdma_pump(struct swc_conn *base, bool nested)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(base);
	struct swc_comm *map_failing = NULL;
	struct swc_tx_pump p;
	int error, before;

	spin_lock(&base->lock);
	before = conn->sq.error;
	swc_tx_begin(base, &p);
	conn->sq.map_failed = false;
	retire_reported(conn, &p.done);
	while (post_next(conn, &p.done))
		swc_iwarp_ask_early(conn);
	swc_iwarp_ask(conn);
	error = conn->sq.error;
	if (conn->sq.map_failed && conn->sq.map_failing_s > MAP_FAILING_MAX_S &&
	    !test_bit(SWC_CONN_F_ABORT_SENT, &base->flags)) {
		map_failing = base->comm;
		swc_net_ops->get(map_failing);
	}
	swc_tx_review(base, &p);
	spin_unlock(&base->lock);
	p.idle &= !error;
	swc_tx_conclude(base, &p, nested);
	/* Aborts the communicator; the connection is good, and is to carry the ABORT. */
	if (map_failing) {
		report_map_failing(conn, map_failing);
		swc_net_ops->put(map_failing);
	}
	if (error)
		report_error(base, error, !before);
}

/* ------------------------------------------------------------------ completions */

/* All requests before this head of the send queue are complete. */
static void complete_to(struct swc_rdma_conn *conn, u32 head)
{
	struct swc_send *send, *next;
	bool abort_sent;
	LIST_HEAD(sends);

	spin_lock(&conn->base.lock);
	abort_sent = retire(conn, head, &sends);
	spin_unlock(&conn->base.lock);
	if (abort_sent)
		wake_up_all(&conn->base.net->abort_wq);
	list_for_each_entry_safe(send, next, &sends, node)
		swc_net_ops->send_done(send, 0, false);
	swc_rdma_pump(&conn->base, false);
}

/* The head of the send queue when the request was posted, which is complete. */
static u32 head_behind(const struct swc_sq *sq, const struct swc_sq_entry *entry)
{
	return sq->tail + ((u32)(entry - sq->entry) - sq->tail) % SWC_SQ_DEPTH + 1;
}

/* On iWARP, the request may have to be kept until the peer has answered a read. */
static void reported(struct swc_rdma_conn *conn, const struct swc_sq_entry *entry)
{
	bool keeps;
	u32 head;

	spin_lock(&conn->base.lock);
	head = head_behind(&conn->sq, entry);
	conn->sq.reported = head;
	keeps = swc_iwarp_keeps(conn);
	spin_unlock(&conn->base.lock);
	if (!keeps)
		complete_to(conn, head);
}

/* Completion of a signaled request, and of all before it. */
void swc_rdma_tx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct swc_sq_entry *last = container_of(wc->wr_cqe, struct swc_sq_entry, cqe);
	struct swc_rdma_conn *conn = last->conn;

	/* The entries are unmapped when the connection is taken apart. */
	if (wc->status != IB_WC_SUCCESS)
		swc_wc_failed(conn, wc);
	else if (conn->iwarp)
		reported(conn, last);
	else
		complete_to(conn, head_behind(&conn->sq, last));
}

/* Completion of the read by which the peer on iWARP tells that it has received all before it. */
void swc_rdma_tx_read_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct swc_rdma_conn *conn = container_of(wc->wr_cqe, struct swc_rdma_conn, ack.cqe);
	u32 head;

	if (wc->status != IB_WC_SUCCESS) {
		swc_wc_failed(conn, wc);
		return;
	}
	spin_lock(&conn->base.lock);
	head = swc_iwarp_answered(conn);
	spin_unlock(&conn->base.lock);
	/* Whoever waits for an ABORT to be received. */
	wake_up_all(&conn->base.net->abort_wq);
	complete_to(conn, head);
}
