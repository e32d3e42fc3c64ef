// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages out. One context at a time sends, and whoever wants to meanwhile leaves that to it. A small
 * message is copied, and its memory is free at once; so it is with a message that the socket copies. Of a
 * large one the socket reads the memory until the peer has acknowledged it.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/tcp.h>
#include <linux/uio.h>
#include <net/sock.h>

#include "compat.h"
#include "tcp/tcp.h"

/* Pieces of a chunk: between two of them, short messages and those of other operations get their turn. */
#define PIECE_BYTES	(256u << 10)
/* Idle seconds until the peer is asked to acknowledge something. */
#define PROBE_S		2

/* ------------------------------------------------------------------ what has arrived; conn->lock is held */

/* Transport operation. */
bool swc_tcp_all_received(const struct swc_conn *base)
{
	const struct swc_tcp_conn *conn = container_of(base, struct swc_tcp_conn, base);
	const struct tcp_sock *tp;

	if (base->resumable)
		return swc_tcp_stream_acked(conn) == conn->sent;
	if (!conn->sock)
		return true;
	tp = tcp_sk(conn->sock->sk);
	if (conn->tx.head_end ||
	    (swc_tcp_is_tls(conn) && conn->encrypted && swc_tls_has_pending(conn->sock->sk)))
		return false;
	return READ_ONCE(tp->snd_una) == READ_ONCE(tp->write_seq);
}

/* ------------------------------------------------------------------ choosing; conn->lock is held */

/* So much is copied into the page behind a header: less than a second call for it costs. */
static u32 copy_bytes(const struct swc_tcp_conn *conn)
{
	return (conn->base.resumable ? swc_tcp_stream_room() : SWC_TCP_PAGE) - SWC_HEADER;
}

/* Size from which on the memory of messages is in use until the peer's ACK. */
u32 swc_tcp_kept_min(const struct swc_tcp_conn *conn)
{
	u32 kept = conn->base.resumable ? copy_bytes(conn) + 1 : U32_MAX;

	/* Encryption copies. */
	return swc_tcp_is_tls(conn) ? kept : min(kept, swc_tcp_zerocopy_min);
}

/* The payload from @send->posted on, behind a header in the page. */
static void set_payload(struct swc_tcp_conn *conn, struct swc_send *send, u32 bytes)
{
	struct swc_tcp_tx *tx = &conn->tx;

	tx->head_end = SWC_HEADER;
	tx->span = send->span;
	tx->span.offset += send->posted;
	tx->send = send;
	tx->left = bytes;
	/* Encryption copies. */
	tx->zerocopy = send->bytes >= swc_tcp_zerocopy_min && !swc_tcp_is_tls(conn) ?
		       swc_tcp_zerocopy_get(conn, send) : NULL;
	if (!tx->zerocopy && bytes && bytes <= copy_bytes(conn)) {
		swc_tx_copy_span(tx->page + SWC_HEADER, &tx->span, bytes);
		tx->head_end += bytes;
		tx->left = 0;
	}
	send->posted += bytes;
}

static bool choose_segment(struct swc_tcp_conn *conn, struct swc_send *send)
{
	u32 bytes = swc_tx_segment_bytes(&conn->base, send);

	if (!swc_tx_has_credit(&conn->base, send))
		return false;
	swc_tx_data(&conn->base, conn->tx.page, send, bytes);
	set_payload(conn, send, bytes);
	conn->base.credits--;
	return true;
}

static bool choose_piece(struct swc_tcp_conn *conn, struct swc_send *send)
{
	struct swc_offer *o = swc_tx_find_offer(&conn->base, send);
	struct swc_wire_header *h = conn->tx.page;
	u32 bytes;

	if (!o || !swc_tx_offer_fits(&conn->base, send, o))
		return false;
	bytes = min(o->msg.bytes - o->posted, PIECE_BYTES);
	swc_tx_header(&conn->base, h, SWC_WIRE_WRITE);
	h->ordinal = cpu_to_le32(o - conn->base.offer);
	h->offset = cpu_to_le64(o->posted);
	h->bytes = cpu_to_le32(bytes);
	set_payload(conn, send, bytes);
	o->posted += bytes;
	o->valid = o->posted < o->msg.bytes;
	return true;
}

/* Of the first message that can be sent. */
static bool choose_message(struct swc_tcp_conn *conn)
{
	struct swc_send *send;

	if (swc_tx_is_blocked(&conn->base))
		return false;
	list_for_each_entry(send, &conn->base.outq, node)
		if (swc_tx_is_direct(send) ? choose_piece(conn, send) : choose_segment(conn, send))
			return true;
	return false;
}

/* The next message to send; false: there is none, or none can be sent now. */
static bool choose(struct swc_tcp_conn *conn)
{
	struct swc_tcp_tx *tx = &conn->tx;
	struct swc_tx_short made;

	BUILD_BUG_ON(SWC_SHORT_BYTES > SWC_TCP_PAGE / 2);
	tx->page = swc_tcp_stream_page(conn);
	if (!tx->page)
		return false;
	tx->head = 0;
	while (swc_tx_short(&conn->base, tx->page, &made)) {
		if (!made.bytes)
			continue;
		tx->head_end = made.bytes;
		tx->is_last = made.is_abort || made.is_fin;
		conn->base.nsent += !made.is_probe;
		return true;
	}
	if (test_bit(SWC_CONN_F_ABORT_SENT, &conn->base.flags))
		return false;
	conn->base.nsent++;
	if (swc_tcp_rndv_offer(conn)) {
		tx->head_end = SWC_HEADER + sizeof(struct swc_wire_rtr);
		return true;
	}
	if (choose_message(conn))
		return true;
	conn->base.nsent--;
	return false;
}

/* A new message for conn->tx. */
static bool make(struct swc_tcp_conn *conn)
{
	if (!choose(conn))
		return false;
	swc_tcp_stream_add(conn);
	return true;
}

/*
 * The message has been given to a socket for the first time. If that was the last of a send whose memory is
 * free: to @done.
 */
static void account(struct swc_tcp_conn *conn, struct list_head *done)
{
	struct swc_tcp_tx *tx = &conn->tx;
	struct swc_send *send = tx->send;
	bool last = send && send->posted == send->bytes;

	if (conn->base.resumable) {
		bool copied = swc_tcp_stream_finish(conn, last);

		if (last)
			swc_tx_sent(&conn->base, send, copied ? done : NULL);
	} else if (last) {
		swc_tx_sent(&conn->base, send, tx->zerocopy ? NULL : done);
		if (tx->zerocopy)
			swc_tcp_zerocopy_sent(tx->zerocopy);
	}
}

/* The message has been given to the socket. */
static void finish(struct swc_tcp_conn *conn, struct list_head *done)
{
	struct swc_tcp_tx *tx = &conn->tx;

	if (!swc_tcp_stream_is_again(conn))
		account(conn, done);
	if (tx->is_last)
		WRITE_ONCE(conn->acks_wanted, true);
	/* The callback for room is called for each ACK then. */
	if (conn->acks_wanted || conn->nkept)
		set_bit(SOCK_NOSPACE, &conn->sock->flags);
	*tx = (struct swc_tcp_tx){};
	/* Pairs with the barrier of tcp_check_space(): its callback sees both of these, or this the ACK. */
	smp_mb();
	if (conn->acks_wanted && swc_tcp_all_received(&conn->base))
		wake_up_all(&conn->base.net->abort_wq);
}

/* ------------------------------------------------------------------ sending; conn->tx_mutex is held */

static int send_head(struct swc_tcp_conn *conn)
{
	struct swc_tcp_tx *tx = &conn->tx;
	struct kvec vec = { .iov_base = tx->page + tx->head, .iov_len = tx->head_end - tx->head };
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL | (tx->left ? MSG_MORE : 0) };
	int n = kernel_sendmsg(conn->sock, &msg, &vec, 1, vec.iov_len);

	if (n > 0)
		tx->head += n;
	return n;
}

static int send_payload(struct swc_tcp_conn *conn)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct swc_tcp_tx *tx = &conn->tx;
	const struct swc_extent *e = swc_extents_find(tx->span.extents, tx->span.offset);
	u64 at = tx->span.offset, end = at + tx->left;
	struct bio_vec vec[SWC_TCP_VECS];
	u32 i;
	int n;

	for (i = 0; i < SWC_TCP_VECS && at < end; i++, e++) {
		void *from = e->kaddr + (at - e->offset);
		u32 len = min(end, e[1].offset) - at;

		bvec_set_page(&vec[i], virt_to_page(from), len, offset_in_page(from));
		at += len;
	}
	if (at < end)
		msg.msg_flags |= MSG_MORE;
	if (tx->zerocopy) {
		msg.msg_flags |= MSG_ZEROCOPY;
		msg.msg_ubuf = swc_tcp_zerocopy_ubuf(tx->zerocopy);
	}
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, vec, i, at - tx->span.offset);
	n = sock_sendmsg(conn->sock, &msg);
	if (n > 0) {
		tx->span.offset += n;
		tx->left -= n;
	}
	return n;
}

/*
 * Give what is left of the present message to the socket. 0; -EAGAIN: it has no room, and its callback has us
 * try again; another error: the stream is broken.
 */
static int push(struct swc_tcp_conn *conn)
{
	struct swc_tcp_tx *tx = &conn->tx;
	int n;

	while (tx->head < tx->head_end || tx->left) {
		n = tx->head < tx->head_end ? send_head(conn) : send_payload(conn);
		if (n <= 0)
			return n ?: -EAGAIN;
	}
	return 0;
}

/* AUTH goes before the stream, and is no part of it; conn->lock is held, and dropped meanwhile. */
static int send_auth(struct swc_tcp_conn *conn)
{
	struct swc_conn *base = &conn->base;
	u64 buf[DIV_ROUND_UP(SWC_SHORT_BYTES, sizeof(u64))];
	struct swc_tx_short made;
	int ret;

	if (!(base->pending & SWC_PEND_AUTH))
		return 0;
	swc_tx_short(base, (void *)buf, &made);
	spin_unlock(&base->lock);
	ret = swc_tcp_send_handshake(conn->sock, buf, made.bytes);
	spin_lock(&base->lock);
	/* The callback for room has us try again. */
	if (ret == -EAGAIN)
		swc_conn_pend(base, SWC_PEND_AUTH);
	return ret;
}

/*
 * The stream: what has to be sent again, then what is new. As of push(); -ENOMEM: go on later. conn->lock is
 * held, and dropped meanwhile.
 */
static int send_all(struct swc_tcp_conn *conn, struct list_head *done)
{
	struct swc_conn *base = &conn->base;
	bool prepared = true;
	int ret = 0;

	while (conn->tx.head_end || swc_tcp_stream_again(conn) || make(conn)) {
		spin_unlock(&base->lock);
		ret = push(conn);
		swc_tcp_stream_mark(conn);
		prepared = swc_tcp_stream_prepare(conn);
		spin_lock(&base->lock);
		if (ret)
			return ret;
		finish(conn, done);
		if (base->state != SWC_CONN_LIVE)
			return 0;
	}
	return prepared && !swc_tcp_stream_is_full(conn) ? 0 : -ENOMEM;
}

/* One go at sending all that can be sent. */
static void go(struct swc_tcp_conn *conn, struct swc_tx_pump *p)
{
	struct swc_conn *base = &conn->base;
	bool prepared = !conn->sock || swc_tcp_stream_prepare(conn), again;
	int ret = 0;

	swc_tcp_stream_mark(conn);
	spin_lock(&base->lock);
	swc_tx_begin(base, p);
	/* In this order: the record's is often the last reference. */
	again = swc_tcp_stream_trim(conn, &p->done);
	swc_tcp_zerocopy_collect(conn, &p->done);
	if (conn->sock && base->state == SWC_CONN_LIVE) {
		ret = send_auth(conn);
		if (!ret && !test_bit(SWC_CONN_F_UNHEARD, &base->flags)) {
			swc_tcp_stream_begin(conn);
			ret = prepared ? send_all(conn, &p->done) : -ENOMEM;
		}
		again |= swc_tcp_stream_trim(conn, &p->done);
		/* The socket's callback may have seen an ABORT behind a mark. */
		if (conn->acks_wanted && swc_tcp_all_received(base))
			wake_up_all(&base->net->abort_wq);
	}
	swc_tx_review(base, p);
	spin_unlock(&base->lock);
	if (again)
		atomic_set(&conn->tx_wanted, 1);
	if (!ret || ret == -EAGAIN)
		return;
	if (ret == -ENOMEM) {
		if (!conn->detaching)
			queue_delayed_work(swc_conn_wq(base), &conn->rx_work,
					   msecs_to_jiffies(SWC_TCP_NOMEM_MS));
		return;
	}
	/* rx_work says why. */
	WRITE_ONCE(conn->error, ret);
	if (!conn->detaching)
		mod_delayed_work(swc_conn_wq(base), &conn->rx_work, 0);
}

/*
 * May a pump have something to do? Without locks: who has made work sees that it is there, and has the
 * connection pumped.
 */
static bool has_work(const struct swc_tcp_conn *conn)
{
	const struct swc_conn *base = &conn->base;

	return !list_empty_careful(&base->outq) || READ_ONCE(base->pending) ||
	       !list_empty_careful(&base->rndvs) || READ_ONCE(conn->tx.head_end) ||
	       !llist_empty(&conn->zerocopies_done) || base->resumable ||
	       test_bit(SWC_CONN_F_PEER_LEFT, &base->flags);
}

/* Transport operation. */
void swc_tcp_pump(struct swc_conn *base, bool nested)
{
	struct swc_tcp_conn *conn = swc_tcp_conn(base);
	struct swc_tx_pump p;

	if (!has_work(conn))
		return;
	/*
	 * Full barriers: who does not get the mutex has set the flag before the holder, who has dropped it,
	 * looks at that; and what is to be sent is visible to who clears the flag.
	 */
	atomic_xchg(&conn->tx_wanted, 1);
	while (atomic_read(&conn->tx_wanted) && mutex_trylock(&conn->tx_mutex)) {
		atomic_xchg(&conn->tx_wanted, 0);
		go(conn, &p);
		mutex_unlock(&conn->tx_mutex);
		/* Not before the mutex is free: who has just tried it relies on this look. */
		smp_mb();
		/* What follows may take a while. */
		if (atomic_read(&conn->tx_wanted))
			swc_conn_pump_later(base);
		swc_tx_conclude(base, &p, nested);
	}
}

/* ------------------------------------------------------------------ silent peers */

/* Transport operation. */
u32 swc_tcp_probe_s(void)
{
	return PROBE_S;
}

/* ------------------------------------------------------------------ the handshake */

/* A part of the handshake, which the socket has room for. */
int swc_tcp_send_handshake(struct socket *sock, const void *data, u32 bytes)
{
	struct kvec vec = { .iov_base = (void *)data, .iov_len = bytes };
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	int n = kernel_sendmsg(sock, &msg, &vec, 1, bytes);

	return n == bytes ? 0 : n < 0 ? n : -EIO;
}

/* The socket is gone; conn->tx_mutex is held. */
void swc_tcp_tx_reset(struct swc_tcp_conn *conn)
{
	swc_tcp_zerocopy_close(conn);
	swc_tcp_stream_reset(conn);
	conn->acks_wanted = false;
}
