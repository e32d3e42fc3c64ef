// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages out.
 *
 * Messages wait in conn->outq until there are credits and send queue entries. A small message is copied
 * into the entry's page, so its memory is free at once; the device reads a larger one where it lies. A
 * stored message of SWC_WIRE_DIRECT bytes or more waits for the receiver's RTR and is written to the
 * memory offered there.
 *
 * All posting happens in swc_tx_pump(), under conn->lock; everything that makes posting possible calls it.
 */
#include "core/text.h"
#include "net/auth.h"
#include "net/policy.h"
#include "rdma/rdma.h"

/* The communicator is aborted when no memory could be mapped for the device for so many seconds. */
#define MAP_FAILING_MAX_S	5

/* ------------------------------------------------------------------ short messages; conn->lock is held */

static struct swc_offer *find_offer(struct swc_rdma_conn *conn, const struct swc_send *send)
{
	u32 i;

	for (i = 0; i < SWC_WIRE_CHUNKS; i++) {
		struct swc_offer *o = &conn->offer[i];

		if (o->valid && o->msg.seq == send->seq && o->msg.ordinal == send->ordinal &&
		    o->msg.offset + o->posted == send->posted)
			return o;
	}
	return NULL;
}

static bool is_direct(const struct swc_send *send)
{
	return send->stored && send->bytes >= SWC_WIRE_DIRECT;
}

/* The first message that waits for its RTR; NULL: none. */
static struct swc_send *first_without_offer(struct swc_rdma_conn *conn)
{
	struct swc_send *send;

	list_for_each_entry(send, &conn->outq, node)
		if (is_direct(send) && !find_offer(conn, send))
			return send;
	return NULL;
}

static void fill_abort(struct swc_rdma_conn *conn, struct swc_sq_entry *entry)
{
	const struct swc_net_abort *abort = &conn->net->base.abort;
	struct swc_wire_header *h = swc_sq_header(conn, entry, SWC_WIRE_ABORT);
	struct swc_wire_abort *a = (void *)(h + 1);

	h->seq = cpu_to_le64(abort->seq);
	a->error = cpu_to_le32(abort->error ? -abort->error : ECONNABORTED);
	a->culprit = cpu_to_le32(abort->culprit + 1);
	swc_text_read(a->text, abort->text, 0);
	entry->sge[0].length += sizeof(*a);
	entry->is_abort = true;
}

static void fill_rts(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, const struct swc_send *send)
{
	struct swc_wire_header *h = swc_sq_header(conn, entry, SWC_WIRE_RTS);

	swc_wire_sign(h, send->seq, send->sig);
	h->ordinal = cpu_to_le32(send->ordinal);
	h->total = cpu_to_le64(send->bytes);
}

/* Post the first of conn->pending; false: none is left, or none may be sent any more. */
static bool post_short(struct swc_rdma_conn *conn)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .num_sge = 1 };
	bool probe = false, signal = false;
	struct swc_sq_entry *entry;
	struct swc_wire_header *h;
	struct swc_send *send;

	if (!conn->pending || test_bit(SWC_CONN_F_ABORT_SENT, &conn->flags))
		return false;
	entry = swc_sq_next(conn);
	if (conn->pending & SWC_PEND_AUTH) {
		conn->pending &= ~SWC_PEND_AUTH;
		h = swc_sq_header(conn, entry, SWC_WIRE_AUTH);
		swc_auth_proof(&conn->net->base, &conn->hello, &conn->accept, (u8 *)(h + 1));
		entry->sge[0].length += SWC_WIRE_MAC;
	} else if (conn->pending & SWC_PEND_ABORT) {
		conn->pending &= ~SWC_PEND_ABORT;
		fill_abort(conn, entry);
		set_bit(SWC_CONN_F_ABORT_SENT, &conn->flags);
		signal = true;
	} else if (conn->pending & SWC_PEND_FIN) {
		conn->pending &= ~SWC_PEND_FIN;
		h = swc_sq_header(conn, entry, SWC_WIRE_FIN);
		h->seq = cpu_to_le64(conn->fin_seq);
		signal = true;
	} else if (conn->pending & SWC_PEND_HEARTBEAT) {
		conn->pending &= ~SWC_PEND_HEARTBEAT;
		swc_sq_header(conn, entry, SWC_WIRE_HEARTBEAT);
	} else if (conn->pending & SWC_PEND_RTS) {
		conn->pending &= ~SWC_PEND_RTS;
		send = first_without_offer(conn);
		if (!send)
			return true;
		fill_rts(conn, entry, send);
		probe = true;
	} else {
		probe = conn->pending & SWC_PEND_KEEPALIVE;
		conn->pending &= ~(SWC_PEND_CREDIT | SWC_PEND_KEEPALIVE);
		if (!conn->to_return && !probe)
			return true;
		h = swc_sq_header(conn, entry, SWC_WIRE_CREDIT);
		h->seq = cpu_to_le64(swc_net_ops->progress(conn->comm, conn->me));
	}
	wr.sg_list = entry->sge;
	if (probe)
		swc_sq_post_probe(conn, entry, &wr);
	else
		swc_sq_post(conn, entry, &wr, signal);
	return true;
}

/* ------------------------------------------------------------------ messages; conn->lock is held */

static void copy_span(void *to, const struct swc_span *span, u32 bytes)
{
	const struct swc_extent *e = swc_region_find(span->region, span->offset);
	u64 at = span->offset, end = span->offset + bytes;

	while (at < end) {
		u32 len = min(end, e[1].offset) - at;

		memcpy(to, e->kaddr + (at - e->offset), len);
		to += len;
		at += len;
		e++;
	}
}

/*
 * A message is posted to its last byte. Its memory is free at once if it was copied (@entry is NULL),
 * else when the last request completes.
 */
static void finish_posting(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, struct swc_send *send,
			   struct list_head *done)
{
	swc_stat_inc(SWC_STAT_MSGS_SENT);
	swc_stat_add(SWC_STAT_BYTES_SENT, send->bytes);
	if (entry) {
		entry->send = send;
		list_move_tail(&send->node, &conn->inflight);
	} else {
		list_move_tail(&send->node, done);
	}
}

static bool post_segment(struct swc_rdma_conn *conn, struct swc_send *send, struct list_head *done)
{
	u32 bytes = round_down(conn->peer_rx_buf_bytes - SWC_HEADER, 64), nsge = 1;
	bool last, copied = send->bytes <= SWC_INLINE_BYTES;
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct swc_span span = send->span;
	struct swc_sq_entry *entry;
	struct swc_wire_header *h;

	if (conn->credits < swc_policy_credits(conn->net->base.params.window, send, conn->peer_rx_bufs)) {
		swc_stat_inc(SWC_STAT_CREDIT_STALLS);
		return false;
	}
	entry = swc_sq_next(conn);
	bytes = min_t(u64, send->bytes - send->posted, bytes);
	span.offset += send->posted;
	if (!copied) {
		bytes = swc_sq_map(conn, entry, 1, &span, bytes, &nsge);
		if (!bytes)
			return false;
	}
	h = swc_sq_header(conn, entry, SWC_WIRE_DATA);
	swc_wire_sign(h, send->seq, send->sig);
	h->ordinal = cpu_to_le32(send->ordinal);
	h->offset = cpu_to_le64(send->posted);
	h->total = cpu_to_le64(send->bytes);
	h->bytes = cpu_to_le32(bytes);
	if (copied && bytes) {
		copy_span(h + 1, &span, bytes);
		entry->sge[0].length += bytes;
	}
	send->posted += bytes;
	last = send->posted == send->bytes;
	if (last)
		finish_posting(conn, copied ? NULL : entry, send, done);
	conn->credits--;
	wr.sg_list = entry->sge;
	wr.num_sge = nsge;
	swc_sq_post(conn, entry, &wr, last && !copied);
	return true;
}

/* Write the next piece of a chunk that the peer has offered; the last one notifies the peer. */
static bool post_write(struct swc_rdma_conn *conn, struct swc_send *send, struct list_head *done)
{
	struct swc_offer *o = find_offer(conn, send);
	struct swc_span span = send->span;
	struct ib_rdma_wr wr = {};
	struct swc_sq_entry *entry;
	u32 bytes, nsge;
	bool last = false;

	if (!o)
		return false;
	if (o->msg.total != send->bytes || !swc_signature_equal(send->sig, &o->msg.sig)) {
		conn->mismatch = conn->mismatch ?: o;
		return false;
	}
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
	if (o->posted == o->msg.bytes) {
		wr.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
		wr.wr.ex.imm_data = cpu_to_be32(o - conn->offer);
		o->valid = false;
		last = send->posted == send->bytes;
	}
	if (last)
		finish_posting(conn, entry, send, done);
	swc_sq_post(conn, entry, &wr.wr, last);
	return true;
}

/* Post a piece of the first message that can be sent; messages that are complete by that go to @done. */
static bool post_message(struct swc_rdma_conn *conn, struct list_head *done)
{
	struct swc_send *send;

	list_for_each_entry(send, &conn->outq, node)
		if (is_direct(send) ? post_write(conn, send, done) : post_segment(conn, send, done))
			return true;
	return false;
}

static bool post_next(struct swc_rdma_conn *conn, struct list_head *done)
{
	if (conn->state != SWC_CONN_LIVE || !swc_sq_room(&conn->sq) || conn->sq.error)
		return false;
	if (post_short(conn))
		return true;
	return !test_bit(SWC_CONN_F_ABORT_SENT, &conn->flags) &&
	       (swc_rndv_post(conn) || post_message(conn, done));
}

/* ------------------------------------------------------------------ pumping */

static noinline_for_stack void report_map_failing(const struct swc_rdma_conn *conn, struct swc_comm *comm)
{
	char text[SWC_TEXT_BYTES];

	scnprintf(text, sizeof(text),
		  "rank %u: for rank %u no memory could be mapped for the device: swiotlb= too small?",
		  conn->me, conn->peer);
	swc_net_ops->peer_lost(comm, -EIO, conn->me, swc_net_oldest(conn->net), text);
}

/**
 * swc_tx_pump() - post all that can be posted
 * @nested: the executor is the caller
 *
 * Process context, no locks held.
 */
void swc_tx_pump(struct swc_rdma_conn *conn, bool nested)
{
	struct swc_comm *mismatched = NULL, *map_failing = NULL;
	const struct swc_offer *known;
	struct swc_send *send, *next;
	struct swc_wire_msg msg;
	LIST_HEAD(done);
	bool idle;
	int error;

	spin_lock(&conn->lock);
	known = conn->mismatch;
	conn->sq.map_failed = false;
	while (post_next(conn, &done))
		;
	idle = test_bit(SWC_CONN_F_PEER_LEFT, &conn->flags) && conn->state == SWC_CONN_LIVE &&
	       list_empty(&conn->outq) && list_empty(&conn->inflight);
	error = conn->sq.error;
	if (conn->sq.map_failed && conn->sq.map_failing_s > MAP_FAILING_MAX_S &&
	    !test_bit(SWC_CONN_F_ABORT_SENT, &conn->flags)) {
		map_failing = conn->comm;
		swc_net_ops->get(map_failing);
	}
	/* A reference of its own: the connection may be closed when the lock is dropped. */
	if (!known && conn->mismatch) {
		msg = conn->mismatch->msg;
		mismatched = conn->comm;
		swc_net_ops->get(mismatched);
	}
	spin_unlock(&conn->lock);
	list_for_each_entry_safe(send, next, &done, node)
		swc_net_ops->send_done(send, 0, nested);
	/* These two abort the communicator; the connection is good, and is to carry the ABORT. */
	if (mismatched) {
		swc_net_ops->mismatch(mismatched, conn->peer, &msg);
		swc_net_ops->put(mismatched);
	}
	if (map_failing) {
		report_map_failing(conn, map_failing);
		swc_net_ops->put(map_failing);
	}
	if (error)
		swc_conn_fail(conn, -EIO, "the device takes no more work (%pe)", ERR_PTR(error));
	else if (idle)
		swc_conn_close(conn, 0);
}

/* Work item. */
void swc_tx_pump_work(struct work_struct *work)
{
	struct swc_rdma_conn *conn = container_of(work, struct swc_rdma_conn, pump_work);

	swc_tx_pump(conn, false);
	swc_rdma_conn_put(conn);
}

/* ------------------------------------------------------------------ from the executor */

/* Transport operation: @send is returned by swc_net_ops.send_done. */
void swc_tx_send(struct swc_conn *base, struct swc_send *send)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(base);
	bool closing;

	spin_lock(&conn->lock);
	closing = conn->state >= SWC_CONN_CLOSING;
	/* RTS is due only when this message has waited. */
	if (list_empty(&conn->outq))
		conn->sq.idle_s = 0;
	if (!closing)
		list_add_tail(&send->node, &conn->outq);
	spin_unlock(&conn->lock);
	if (closing)
		swc_net_ops->send_done(send, -ECONNABORTED, true);
	else
		swc_tx_pump(conn, true);
}

/* Transport operation: @rndv is returned by swc_net_ops.rndv_closed. */
void swc_tx_post_rndv(struct swc_conn *base, struct swc_rndv *rndv)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(base);
	bool closing;

	spin_lock(&conn->lock);
	closing = conn->state >= SWC_CONN_CLOSING;
	if (!closing)
		list_add_tail(&rndv->node, &conn->rndvs);
	spin_unlock(&conn->lock);
	if (closing)
		swc_net_ops->rndv_closed(rndv, -ECONNABORTED);
	else
		swc_tx_pump(conn, true);
}

/* ------------------------------------------------------------------ from the peer */

/* The peer has returned credits. */
int swc_tx_add_credits(struct swc_rdma_conn *conn, u32 credits)
{
	int ret = 0;

	spin_lock(&conn->lock);
	if (credits > conn->peer_rx_bufs - conn->credits)
		ret = -EPROTO;
	else
		conn->credits += credits;
	spin_unlock(&conn->lock);
	return ret;
}

/* RTR: the peer offers a chunk of memory. */
int swc_tx_add_offer(struct swc_rdma_conn *conn, const struct swc_wire_msg *msg)
{
	const struct swc_wire_rtr *rtr = msg->payload;
	struct swc_offer *o = &conn->offer[le32_to_cpu(rtr->chunk)];
	int ret = -EPROTO;

	spin_lock(&conn->lock);
	if (!o->valid) {
		*o = (struct swc_offer){ .valid = true, .msg = *msg, .addr = le64_to_cpu(rtr->addr),
					 .rkey = le32_to_cpu(rtr->rkey) };
		o->msg.payload = NULL;
		ret = 0;
	}
	spin_unlock(&conn->lock);
	return ret;
}

/* Completion of a signaled request, and of all before it. */
void swc_tx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct swc_sq_entry *last = container_of(wc->wr_cqe, struct swc_sq_entry, cqe), *entry;
	struct swc_rdma_conn *conn = last->conn;
	struct swc_rndv *rndv, *next_rndv;
	struct swc_send *send, *next_send;
	bool abort_sent = false;
	LIST_HEAD(sends);
	LIST_HEAD(rndvs);

	if (wc->status != IB_WC_SUCCESS) {
		/* The entries are unmapped when the connection is taken apart. */
		swc_conn_wc_failed(conn, wc);
		return;
	}
	spin_lock(&conn->lock);
	do {
		entry = &conn->sq.entry[conn->sq.tail++ % SWC_SQ_DEPTH];
		swc_sq_unmap(conn, entry);
		if (entry->send)
			list_move_tail(&entry->send->node, &sends);
		if (entry->chunk)
			swc_rndv_invalidated(conn, entry->chunk, &rndvs);
		abort_sent |= entry->is_abort;
	} while (entry != last);
	spin_unlock(&conn->lock);
	if (abort_sent)
		wake_up_all(&conn->net->abort_wq);
	list_for_each_entry_safe(send, next_send, &sends, node)
		swc_net_ops->send_done(send, 0, false);
	list_for_each_entry_safe(rndv, next_rndv, &rndvs, node)
		swc_net_ops->rndv_closed(rndv, 0);
	swc_tx_pump(conn, false);
}
