// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages out, as far as it does not matter how they are sent: the queue of messages, credits, offers of the
 * peer, and the contents of headers and short messages.
 *
 * Messages wait in conn->outq until there are credits and the transport has room. A stored message of
 * SWC_WIRE_DIRECT bytes or more waits for the receiver's RTR, and goes to the memory that is offered there.
 */
#include "core/text.h"
#include "net/auth.h"
#include "net/conn.h"
#include "net/policy.h"

/* ------------------------------------------------------------------ from the executor */

/**
 * swc_conn_send() - send a message
 * @more: more follow, and swc_conn_flush() behind the last of them: small ones are to go together
 *
 * @send is returned by swc_net_ops.send_done. Process context, no locks held; does not wait for the peer.
 */
void swc_conn_send(struct swc_conn *conn, struct swc_send *send, bool more)
{
	bool closing;

	spin_lock(&conn->lock);
	closing = conn->state >= SWC_CONN_CLOSING;
	/* RTS is due only when this message has waited. */
	if (list_empty(&conn->outq))
		conn->idle_s = 0;
	if (!closing)
		list_add_tail(&send->node, &conn->outq);
	conn->corked = more;
	spin_unlock(&conn->lock);
	if (closing)
		swc_net_ops->send_done(send, -ECONNABORTED, true);
	else if (!more)
		conn->transport->pump(conn, true);
}

/**
 * swc_conn_flush() - send the messages that were given with @more, and make such offers
 */
void swc_conn_flush(struct swc_conn *conn)
{
	bool due;

	spin_lock(&conn->lock);
	due = conn->corked && conn->state < SWC_CONN_CLOSING;
	conn->corked = false;
	spin_unlock(&conn->lock);
	if (due)
		conn->transport->pump(conn, true);
}

/**
 * swc_conn_post_rndv() - receive a message by rendezvous
 * @more: more follow, and swc_conn_flush() behind the last of them: each look at what can be sent takes time
 *
 * @rndv is returned by swc_net_ops.rndv_closed. As swc_conn_send().
 */
void swc_conn_post_rndv(struct swc_conn *conn, struct swc_rndv *rndv, bool more)
{
	bool closing;

	spin_lock(&conn->lock);
	closing = conn->state >= SWC_CONN_CLOSING;
	if (!closing)
		list_add_tail(&rndv->node, &conn->rndvs);
	conn->corked = more;
	spin_unlock(&conn->lock);
	if (closing)
		swc_net_ops->rndv_closed(rndv, -ECONNABORTED);
	else if (!more)
		conn->transport->pump(conn, true);
}

/* ------------------------------------------------------------------ headers; conn->lock is held */

/* Begin a message; its header returns all credits that are due. */
void swc_tx_header(struct swc_conn *conn, struct swc_wire_header *h, enum swc_wire_kind kind)
{
	lockdep_assert_held(&conn->lock);
	memset(h, 0, sizeof(*h));
	h->kind = kind;
	h->credits = cpu_to_le16(conn->to_return);
	conn->to_return = 0;
	conn->pending &= ~SWC_PEND_CREDIT;
}

/* Begin one that belongs to a message of an operation. */
static void begin(struct swc_conn *conn, struct swc_wire_header *h, enum swc_wire_kind kind, u64 seq,
		  const struct swc_signature *sig, u32 ordinal, u64 total)
{
	swc_tx_header(conn, h, kind);
	swc_wire_sign(h, seq, sig);
	h->ordinal = cpu_to_le32(ordinal);
	h->total = cpu_to_le64(total);
}

/* The header of a segment: @bytes from @send->posted on. */
void swc_tx_data(struct swc_conn *conn, struct swc_wire_header *h, const struct swc_send *send, u32 bytes)
{
	begin(conn, h, SWC_WIRE_DATA, send->seq, send->sig, send->ordinal, send->bytes);
	h->offset = cpu_to_le64(send->posted);
	h->bytes = cpu_to_le32(bytes);
}

/* The header of an RTR for the chunk of @bytes from @rndv->offered on; a struct swc_wire_rtr follows it. */
void swc_tx_rtr(struct swc_conn *conn, struct swc_wire_header *h, const struct swc_rndv *rndv, u32 bytes)
{
	begin(conn, h, SWC_WIRE_RTR, rndv->seq, rndv->sig, rndv->ordinal, rndv->bytes);
	h->offset = cpu_to_le64(rndv->offered);
	h->bytes = cpu_to_le32(bytes);
}

/* ------------------------------------------------------------------ short messages; conn->lock is held */

/* Does the message wait for an RTR? */
bool swc_tx_is_direct(const struct swc_send *send)
{
	return send->stored && send->bytes >= SWC_WIRE_DIRECT;
}

/* The offer that the next byte of the message goes to; NULL: it has not come. */
struct swc_offer *swc_tx_find_offer(struct swc_conn *conn, const struct swc_send *send)
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

/* The first message that waits for its RTR; NULL: none. */
static struct swc_send *first_without_offer(struct swc_conn *conn)
{
	struct swc_send *send;

	list_for_each_entry(send, &conn->outq, node)
		if (swc_tx_is_direct(send) && !swc_tx_find_offer(conn, send))
			return send;
	return NULL;
}

static u32 fill_abort(struct swc_conn *conn, struct swc_wire_header *h)
{
	const struct swc_net_abort *abort = &conn->net->abort;
	struct swc_wire_abort *a = (void *)(h + 1);

	swc_tx_header(conn, h, SWC_WIRE_ABORT);
	h->seq = cpu_to_le64(abort->seq);
	memset(a, 0, sizeof(*a));
	a->error = cpu_to_le32(abort->error ? -abort->error : ECONNABORTED);
	a->culprit = cpu_to_le32(abort->culprit + 1);
	swc_text_read(a->text, abort->text, 0);
	return sizeof(*a);
}

/* What is pending and may be sent: one question at a time, as core/wire.h counts receives. */
static u32 find_due(const struct swc_conn *conn)
{
	u32 questions = conn->probe_open ? SWC_PEND_HEARTBEAT | SWC_PEND_RTS : 0;

	return test_bit(SWC_CONN_F_ABORT_SENT, &conn->flags) ? 0 : conn->pending & ~questions;
}

/**
 * swc_tx_short() - make the first short message of conn->pending
 * @h: room for SWC_SHORT_BYTES
 * @made: what it is; 0 bytes: nothing is to be sent for it
 *
 * Return: false if nothing is pending, or nothing may be sent any more.
 */
bool swc_tx_short(struct swc_conn *conn, struct swc_wire_header *h, struct swc_tx_short *made)
{
	u32 payload = 0, due = find_due(conn);
	struct swc_send *send;

	*made = (struct swc_tx_short){};
	if (!due)
		return false;
	if (due & SWC_PEND_AUTH) {
		conn->pending &= ~SWC_PEND_AUTH;
		/* It returns no credits: it may be lost for good, and is sent again by the next attempt. */
		*h = (struct swc_wire_header){ .kind = SWC_WIRE_AUTH,
					       .seq = cpu_to_le64(swc_resume_received(conn)) };
		swc_auth_proof(conn->net, &conn->hello, &conn->accept, le64_to_cpu(h->seq), (u8 *)(h + 1));
		payload = SWC_WIRE_MAC;
	} else if (due & SWC_PEND_ABORT) {
		conn->pending &= ~SWC_PEND_ABORT;
		payload = fill_abort(conn, h);
		set_bit(SWC_CONN_F_ABORT_SENT, &conn->flags);
		made->is_abort = true;
	} else if (due & SWC_PEND_FIN) {
		conn->pending &= ~SWC_PEND_FIN;
		swc_tx_header(conn, h, SWC_WIRE_FIN);
		h->seq = cpu_to_le64(conn->fin_seq);
		made->is_fin = true;
	} else if (due & SWC_PEND_GROWN) {
		conn->pending &= ~SWC_PEND_GROWN;
		swc_tx_header(conn, h, SWC_WIRE_GROWN);
		h->bytes = cpu_to_le32(conn->grown_bytes);
	} else if (due & SWC_PEND_HEARTBEAT) {
		conn->pending &= ~SWC_PEND_HEARTBEAT;
		swc_tx_header(conn, h, SWC_WIRE_HEARTBEAT);
		conn->probe_open = true;
	} else if (due & SWC_PEND_RTS) {
		conn->pending &= ~SWC_PEND_RTS;
		send = first_without_offer(conn);
		if (!send)
			return true;
		begin(conn, h, SWC_WIRE_RTS, send->seq, send->sig, send->ordinal, send->bytes);
		conn->probe_open = true;
		made->is_probe = true;
	} else {
		made->is_probe = due & (SWC_PEND_KEEPALIVE | SWC_PEND_REPLY);
		conn->pending &= ~(SWC_PEND_CREDIT | SWC_PEND_KEEPALIVE | SWC_PEND_REPLY);
		if (!conn->to_return && !made->is_probe)
			return true;
		swc_tx_header(conn, h, SWC_WIRE_CREDIT);
		h->flags = due & SWC_PEND_REPLY ? SWC_WIRE_REPLY : 0;
		h->seq = cpu_to_le64(swc_net_ops->progress(conn->comm, conn->me));
	}
	made->bytes = sizeof(*h) + payload;
	return true;
}

/* ------------------------------------------------------------------ messages; conn->lock is held */

/*
 * The policy holds a message back: swc_net_pump() is to have the connection look again. The caller asks the
 * policy once more: an operation that ends either does so before, and the policy knows it, or finds the
 * connection here.
 */
static void stall(struct swc_conn *conn)
{
	struct swc_net *net = conn->net;

	lockdep_assert_held(&conn->lock);
	/* What is closed is not added behind its removal. */
	if (conn->state != SWC_CONN_LIVE)
		return;
	spin_lock(&net->list_lock);
	if (list_empty(&conn->stalled))
		list_add_tail(&conn->stalled, &net->stalled);
	spin_unlock(&net->list_lock);
}

static bool has_credit(const struct swc_conn *conn, const struct swc_send *send)
{
	return conn->credits >= swc_policy_credits(conn->net->params.window, send, conn->peer_rx_bufs);
}

/*
 * Can none of the messages that wait go? Without credit and offers nobody has to look at each of them, which
 * may be many, whenever one joins them.
 */
bool swc_tx_is_blocked(struct swc_conn *conn)
{
	bool may = conn->credits;
	u32 i;

	for (i = 0; i < SWC_WIRE_CHUNKS; i++)
		may |= conn->offer[i].valid;
	if (!may && !list_empty(&conn->outq))
		swc_stat_inc(SWC_STAT_CREDIT_STALLS);
	return !may;
}

/* May a segment of the message take one of the peer's receive buffers? */
bool swc_tx_has_credit(struct swc_conn *conn, const struct swc_send *send)
{
	if (has_credit(conn, send))
		return true;
	stall(conn);
	if (has_credit(conn, send))
		return true;
	swc_stat_inc(SWC_STAT_CREDIT_STALLS);
	return false;
}

/* The next rendezvous to offer a chunk of, with so many that are free; NULL: none. */
struct swc_rndv *swc_tx_next_rndv(struct swc_conn *conn, u32 nfree)
{
	const struct swc_net_window *window = conn->net->params.window;
	struct swc_rndv *rndv = swc_policy_rndv(window, &conn->rndvs, nfree), *other;

	list_for_each_entry(other, &conn->rndvs, node) {
		if (rndv)
			break;
		if (other->offered == other->bytes)
			continue;
		stall(conn);
		return swc_policy_rndv(window, &conn->rndvs, nfree);
	}
	return rndv;
}

/* Bytes of the next segment, at most: as many as a receive buffer has room for. */
u32 swc_tx_segment_bytes(const struct swc_conn *conn, const struct swc_send *send)
{
	return min_t(u64, send->bytes - send->posted, conn->peer_rx_buf_bytes);
}

/*
 * Is the offer one for this message? If not, it is remembered, and swc_tx_conclude() reports it: the ranks
 * have called different operations.
 */
bool swc_tx_offer_fits(struct swc_conn *conn, const struct swc_send *send, const struct swc_offer *o)
{
	if (o->msg.total == send->bytes && swc_signature_equal(send->sig, &o->msg.sig))
		return true;
	conn->mismatch = conn->mismatch ?: o;
	return false;
}

/*
 * A message is sent to its last byte. Its memory is free at once if it was copied: then it goes to @done;
 * else the transport returns it when the peer has it.
 */
void swc_tx_sent(struct swc_conn *conn, struct swc_send *send, struct list_head *done)
{
	/* One that was taken back counts once. */
	if (!send->counted) {
		swc_stat_inc(SWC_STAT_MSGS_SENT);
		swc_stat_add(SWC_STAT_BYTES_SENT, send->bytes);
	}
	send->counted = true;
	list_move_tail(&send->node, done ?: &conn->inflight);
}

/* The last @bytes that were sent of a message have not arrived, and are to be sent again. */
void swc_tx_take_back(struct swc_conn *conn, struct swc_send *send, u64 bytes)
{
	lockdep_assert_held(&conn->lock);
	/* Before those that were not begun. */
	if (send->posted == send->bytes)
		list_move(&send->node, &conn->outq);
	send->posted -= bytes;
	swc_stat_add(SWC_STAT_BYTES_RESENT, bytes);
}

/*
 * The peer cannot be written to any more where it has offered that: of chunks that it does not know to be
 * written, all is to be written again, by its next offers.
 */
void swc_tx_forget_offers(struct swc_conn *conn)
{
	const struct swc_offer *o;
	struct swc_send *send;

	lockdep_assert_held(&conn->lock);
	for (o = conn->offer; o < conn->offer + SWC_WIRE_CHUNKS; o++) {
		if (!o->valid || !o->posted)
			continue;
		list_for_each_entry(send, &conn->outq, node) {
			if (send->seq == o->msg.seq && send->ordinal == o->msg.ordinal) {
				swc_tx_take_back(conn, send, o->posted);
				break;
			}
		}
	}
	memset(conn->offer, 0, sizeof(conn->offer));
}

/* Copy the beginning of a span. */
void swc_tx_copy_span(void *to, const struct swc_span *span, u32 bytes)
{
	const struct swc_extent *e = swc_extents_find(span->extents, span->offset);
	u64 at = span->offset, end = span->offset + bytes;

	while (at < end) {
		u32 len = min(end, e[1].offset) - at;

		memcpy(to, e->kaddr + (at - e->offset), len);
		to += len;
		at += len;
		e++;
	}
}

/* ------------------------------------------------------------------ several messages; conn->lock is held */

/* May @b follow @a in one segment? Of one step, so that it does not depend on what waits here. */
static bool follows(const struct swc_send *a, const struct swc_send *b)
{
	return b->task == a->task && b->step == a->step && b->ordinal == a->ordinal + 1;
}

/**
 * swc_tx_count_several() - how many messages can go in one segment?
 * @send: the first; nothing of it has been sent
 * @room: for their bytes, and for their sizes
 *
 * Return: at least 1.
 */
u32 swc_tx_count_several(const struct swc_conn *conn, const struct swc_send *send, u32 room)
{
	u64 bytes = send->bytes + sizeof(__le32);
	const struct swc_send *next = send;
	u32 n = 1;

	lockdep_assert_held(&conn->lock);
	room = min(room, conn->peer_rx_buf_bytes);
	if (send->sig->partitioned)
		return n;
	while (!list_is_last(&send->node, &conn->outq)) {
		next = list_next_entry(send, node);
		bytes += next->bytes + sizeof(__le32);
		if (!follows(send, next) || bytes > room)
			break;
		send = next;
		n++;
	}
	return n;
}

/**
 * swc_tx_several() - make a segment of the first @n messages from @send on
 * @h: where; there is room
 * @done: the messages: their memory is free
 *
 * Return: its bytes, header included.
 */
u32 swc_tx_several(struct swc_conn *conn, struct swc_wire_header *h, struct swc_send *send, u32 n,
		   struct list_head *done)
{
	struct swc_send *first = send, *next;
	void *at = h + 1, *sizes;
	u32 i, total = 0;
	__le32 size;

	for (i = 0; i < n; i++, first = list_next_entry(first, node))
		total += first->bytes;
	begin(conn, h, SWC_WIRE_DATA, send->seq, send->sig, send->ordinal, total);
	h->flags |= SWC_WIRE_BATCH;
	h->offset = cpu_to_le64(n);
	h->bytes = cpu_to_le32(total + n * sizeof(size));
	sizes = at + total;
	for (i = 0; i < n; i++, send = next) {
		next = list_next_entry(send, node);
		if (send->bytes)
			swc_tx_copy_span(at, &send->span, send->bytes);
		at += send->bytes;
		size = cpu_to_le32(send->bytes);
		memcpy(sizes + i * sizeof(size), &size, sizeof(size));
		send->posted = send->bytes;
		swc_tx_sent(conn, send, done);
	}
	return sizeof(*h) + total + n * sizeof(size);
}

/* ------------------------------------------------------------------ around a pump */

/**
 * swc_tx_begin() - the transport begins to send what it can; conn->lock is held
 * @p: for swc_tx_review() and swc_tx_conclude()
 */
void swc_tx_begin(struct swc_conn *conn, struct swc_tx_pump *p)
{
	lockdep_assert_held(&conn->lock);
	*p = (struct swc_tx_pump){ .known = conn->mismatch };
	INIT_LIST_HEAD(&p->done);
}

/**
 * swc_tx_review() - it has sent what it could: what has to be done about it? conn->lock is held
 */
void swc_tx_review(struct swc_conn *conn, struct swc_tx_pump *p)
{
	lockdep_assert_held(&conn->lock);
	p->idle = test_bit(SWC_CONN_F_PEER_LEFT, &conn->flags) && conn->state == SWC_CONN_LIVE &&
		  !swc_conn_is_used(conn);
	/* A reference of its own: the connection may be closed when the lock is dropped. */
	if (!p->known && conn->mismatch) {
		p->msg = conn->mismatch->msg;
		p->mismatched = conn->comm;
		swc_net_ops->get(p->mismatched);
	}
}

/**
 * swc_tx_conclude() - do it: return messages to the executor, report an offer that does not fit, close
 * @nested: the executor is the caller
 *
 * The connection closes if the peer has left and nothing is to be sent any more. No locks held.
 */
void swc_tx_conclude(struct swc_conn *conn, struct swc_tx_pump *p, bool nested)
{
	struct swc_send *send, *next;

	list_for_each_entry_safe(send, next, &p->done, node)
		swc_net_ops->send_done(send, 0, nested);
	/* Aborts the communicator; the connection is good, and is to carry the ABORT. */
	if (p->mismatched) {
		swc_net_ops->mismatch(p->mismatched, conn->peer, &p->msg);
		swc_net_ops->put(p->mismatched);
	}
	if (p->idle)
		swc_conn_close(conn, 0);
}

/* ------------------------------------------------------------------ from the peer */

/* The peer has returned credits. */
int swc_tx_add_credits(struct swc_conn *conn, u32 credits)
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
int swc_tx_add_offer(struct swc_conn *conn, const struct swc_wire_msg *msg)
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
