// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stream of bytes between two ranks, which goes on when the socket that carries it is lost.
 *
 * All messages of a connection are one stream of bytes per direction, counted from its beginning. It is cut
 * into pieces carried by one socket after the other; each begins with a handshake, whose bytes are not
 * counted. The sender keeps a record of each message until it knows that the peer has all of it: header and
 * small payload as a copy, large payload as a reference, whose memory is not returned to the executor before.
 * When a socket is lost, each side gives it up (swc_tcp_suspend()), and tells the other in the next handshake
 * how many bytes of the stream it has received, R; the other goes on with byte R, in the middle of a message
 * if need be. The receiver keeps what it has of a message, and goes on there. So parsers, credits, offers and
 * the executor see the one unbroken stream; nothing above this file knows of sockets.
 *
 * Why that is exact, for one direction:
 *
 *  1. Received bytes are in order, and each counts once: TCP delivers a piece of the stream in order from its
 *     first byte, which is R of the handshake before it, the number that the receiver told. So after any
 *     number of sockets, it has received exactly the first R bytes of the stream, each handled once.
 *  2. R does not change between the handshake that tells it and the first byte that the sender sends again:
 *     swc_tcp_suspend() aborts the socket, so that nothing arrives any more, then handles what had arrived,
 *     then releases it. Only then can a handshake begin, and only the socket of that handshake adds to R.
 *  3. The sender has all bytes from R on. A record goes when the peer's TCP has acknowledged its last byte,
 *     or when a handshake has told an R behind that. What TCP has acknowledged is in the peer's receive
 *     queue, from which only reading takes it, or has been read ahead of what was asked for; an aborted
 *     socket acknowledges nothing, and still lets its queue be read; by 2 the peer reads all of it before it
 *     tells R; but not of an attempt that it gives up before it has handled AUTH. So nothing but AUTH is sent
 *     before the peer's first message (SWC_CONN_F_UNHEARD). So R is never less than what was acknowledged.
 *  4. A payload that is sent again is the same: its memory belongs to the connection while its record exists.
 *     The network stack may still read it for the socket before, into packets for a connection that is no
 *     more. A message goes back to the executor when both are over (zerocopy.c). Only a connection that is
 *     closed does not wait long: nothing is sent again there.
 *  5. Both sides agree which socket carries the stream: an attempt is numbered, its handshake authenticated
 *     (see core/wire.h), and a side uses no socket before it has given up the one before it.
 *
 * An encrypted stream is this stream inside the records of TLS, with new keys for each socket (tls.c). TCP
 * acknowledges bytes of those records, so the sender remembers pairs of places, one at a time: when TLS has
 * given TCP all that it was given, so many bytes of the stream end at this byte of the socket (a mark). When
 * TCP has acknowledged the socket's bytes up to there, the records are in the peer's receive queue as a
 * whole, and as in 3 the peer decrypts and handles all of them before it tells R. Of a record that had not
 * arrived as a whole nothing is counted, by either side.
 *
 * An R that is less than what was acknowledged, or more than what was ever sent, is a violation of the
 * protocol.
 *
 * conn->tx_mutex is held by all functions that are not marked; and conn->lock, where a comment says so.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/sock.h>

#include "tcp/tcp.h"

/**
 * struct swc_tcp_record - a message of the stream that the peer may not have
 * @node: in conn->records, in the order of the stream
 * @at: its place in the stream
 * @tx: the message before any of it was sent
 * @finished: all of it has been given to a socket once
 * @keeps: it is the last of a send, which goes back to the executor with this record
 * @page: header, and copied payload
 */
struct swc_tcp_record {
	struct list_head node;
	u64 at;
	struct swc_tcp_tx tx;
	bool finished;
	bool keeps;
	u8 page[] __aligned(8);
};

/* A record is a page with all that is copied. */
u32 swc_tcp_stream_room(void)
{
	return PAGE_SIZE - sizeof(struct swc_tcp_record);
}

static u64 end_of(const struct swc_tcp_record *r)
{
	return r->at + r->tx.head_end + r->tx.left;
}

/* ------------------------------------------------------------------ what has arrived; conn->lock is held */

static bool is_mark_reached(const struct swc_tcp_conn *conn)
{
	return conn->marked && (s32)(READ_ONCE(tcp_sk(conn->sock->sk)->snd_una) - conn->una) >= 0;
}

/**
 * swc_tcp_stream_acked() - how much of the stream has the peer's TCP, or the peer in a handshake,
 * acknowledged?
 *
 * Without conn->tx_mutex.
 */
u64 swc_tcp_stream_acked(const struct swc_tcp_conn *conn)
{
	s32 more;

	if (!conn->sock || !conn->began)
		return conn->acked;
	if (swc_tcp_is_tls(conn))
		return is_mark_reached(conn) ? conn->mark : conn->acked;
	/* Handshakes come before. */
	more = READ_ONCE(tcp_sk(conn->sock->sk)->snd_una) - conn->una;
	return conn->acked + max(more, 0);
}

/* Was a mark reached? Then another one may be reached already. */
static bool note_acked(struct swc_tcp_conn *conn)
{
	u64 acked = swc_tcp_stream_acked(conn);
	bool reached = conn->sock && is_mark_reached(conn);

	lockdep_assert_held(&conn->base.lock);
	if (!swc_tcp_is_tls(conn))
		conn->una += (u32)(acked - conn->acked);
	conn->marked &= !reached;
	conn->acked = acked;
	return reached;
}

/* So much of the stream has been given to the socket. */
static u64 given(const struct swc_tcp_conn *conn)
{
	const struct swc_tcp_tx *tx = &conn->tx;

	if (tx->record)
		return end_of(tx->record) - (tx->head_end - tx->head) - tx->left;
	return conn->replay ? conn->replay->at : conn->sent;
}

/**
 * swc_tcp_stream_mark() - if there is no mark in an encrypted stream that is not reached: set one
 *
 * May sleep; conn->lock is not held.
 */
void swc_tcp_stream_mark(struct swc_tcp_conn *conn)
{
	u64 at = given(conn);
	u32 seq;

	if (!swc_tcp_is_tls(conn) || !conn->base.resumable || !conn->sock || !conn->began)
		return;
	spin_lock(&conn->base.lock);
	note_acked(conn);
	spin_unlock(&conn->base.lock);
	if (conn->marked || conn->acked == at || !swc_tls_is_sent(conn->sock->sk, &seq))
		return;
	spin_lock(&conn->base.lock);
	conn->mark = at;
	conn->una = seq;
	conn->marked = true;
	spin_unlock(&conn->base.lock);
}

/**
 * swc_tcp_stream_trim() - drop the records of what has arrived; conn->lock is held
 * @done: sends whose memory is free are moved there
 *
 * Return: more may have arrived: this is to be called again, after swc_tcp_stream_mark().
 */
bool swc_tcp_stream_trim(struct swc_tcp_conn *conn, struct list_head *done)
{
	struct swc_tcp_record *r, *next;
	bool again = note_acked(conn);

	list_for_each_entry_safe(r, next, &conn->records, node) {
		/* The message that is being sent again has not arrived as a whole. */
		if (end_of(r) > conn->acked || !r->finished)
			break;
		if (r->keeps) {
			WRITE_ONCE(conn->nkept, conn->nkept - 1);
			if (r->tx.zerocopy)
				swc_tcp_zerocopy_sent(r->tx.zerocopy);
			else
				list_move_tail(&r->tx.send->node, done);
		}
		if (conn->replay == r)
			conn->replay = NULL;
		list_del(&r->node);
		conn->nrecords--;
		if (conn->spare)
			kfree(r);
		else
			conn->spare = r;
	}
	return again;
}

/* ------------------------------------------------------------------ sending */

/* Have a record for the next message. No locks held but conn->tx_mutex. */
bool swc_tcp_stream_prepare(struct swc_tcp_conn *conn)
{
	struct mem_cgroup *before;

	if (!conn->base.resumable || conn->spare)
		return true;
	before = set_active_memcg(conn->base.net->memcg);
	conn->spare = kmalloc(PAGE_SIZE, GFP_NOIO | __GFP_ACCOUNT | __GFP_NOWARN);
	set_active_memcg(before);
	return conn->spare;
}

/*
 * Has the peer more messages to acknowledge than credits and chunks can be on their way? One that asks, and
 * acknowledges no answer, must not take all memory for that. conn->lock is held, here and below.
 */
bool swc_tcp_stream_is_full(const struct swc_tcp_conn *conn)
{
	return conn->nrecords >= 4 * swc_tcp_rx_bufs + 64;
}

/* Where the next message is made; NULL: there is no memory, or not for this connection. */
void *swc_tcp_stream_page(struct swc_tcp_conn *conn)
{
	if (!conn->base.resumable)
		return conn->page;
	return conn->spare && !swc_tcp_stream_is_full(conn) ? conn->spare->page : NULL;
}

/* conn->tx is a new message, made in that page: it joins the stream. */
void swc_tcp_stream_add(struct swc_tcp_conn *conn)
{
	struct swc_tcp_record *r = conn->spare;

	if (!conn->base.resumable)
		return;
	conn->spare = NULL;
	conn->tx.record = r;
	*r = (struct swc_tcp_record){ .at = conn->sent, .tx = conn->tx };
	conn->sent = end_of(r);
	list_add_tail(&r->node, &conn->records);
	conn->nrecords++;
}

/*
 * conn->tx has been given to the socket, for the first time.
 * @last: it is the last of its send
 *
 * Return: the memory of the send is free, as all of it is in the record.
 */
bool swc_tcp_stream_finish(struct swc_tcp_conn *conn, bool last)
{
	struct swc_tcp_record *r = conn->tx.record;
	bool copied = !r->tx.left && !r->tx.zerocopy && r->tx.send &&
		      r->tx.send->bytes == r->tx.head_end - SWC_HEADER;

	r->finished = true;
	r->keeps = last && !copied;
	WRITE_ONCE(conn->nkept, conn->nkept + r->keeps);
	if (copied)
		r->tx.send = NULL;
	return copied;
}

/* Was conn->tx given to a socket before? Then nobody is to be told again. */
bool swc_tcp_stream_is_again(const struct swc_tcp_conn *conn)
{
	return conn->tx.record && conn->tx.record->finished;
}

/* The next message that has to be sent again, to conn->tx. */
bool swc_tcp_stream_again(struct swc_tcp_conn *conn)
{
	struct swc_tcp_record *r = conn->replay;

	if (!r)
		return false;
	conn->tx = r->tx;
	conn->replay = list_is_last(&r->node, &conn->records) ? NULL : list_next_entry(r, node);
	return true;
}

/* ------------------------------------------------------------------ sockets */

/* The next byte that is given to the socket is one of the stream; conn->lock is held. */
void swc_tcp_stream_begin(struct swc_tcp_conn *conn)
{
	if (conn->began)
		return;
	conn->una = READ_ONCE(tcp_sk(conn->sock->sk)->write_seq);
	conn->began = true;
	/* The callback for room is called for each ACK then. */
	if (conn->acks_wanted || conn->nkept)
		set_bit(SOCK_NOSPACE, &conn->sock->flags);
}

/* The socket carries nothing any more; conn->lock is held. */
void swc_tcp_stream_end(struct swc_tcp_conn *conn)
{
	note_acked(conn);
	conn->began = false;
	conn->marked = false;
	conn->tx = (struct swc_tcp_tx){};
	conn->replay = NULL;
}

/* Transport operation. */
u64 swc_tcp_stream_received(const struct swc_conn *base)
{
	return container_of(base, struct swc_tcp_conn, base)->received;
}

/* Can the peer have so much? What was acknowledged, and no message of which no socket was given all. */
static bool is_possible(const struct swc_tcp_conn *conn, u64 received)
{
	const struct swc_tcp_record *r;

	if (conn->began || received < conn->acked || received > conn->sent)
		return false;
	list_for_each_entry(r, &conn->records, node)
		if (!r->finished && received >= end_of(r))
			return false;
	return true;
}

/* conn->tx is the message that byte @at of the stream belongs to, from there on; the rest follows. */
static void rewind_to(struct swc_tcp_conn *conn, u64 at)
{
	struct swc_tcp_tx *tx = &conn->tx;
	struct swc_tcp_record *r;

	list_for_each_entry(r, &conn->records, node) {
		u32 skip = at - r->at, payload;

		if (at >= end_of(r))
			continue;
		swc_stat_add(SWC_STAT_BYTES_RESENT, conn->sent - at);
		conn->replay = r;
		swc_tcp_stream_again(conn);
		tx->head = min(skip, tx->head_end);
		payload = skip - tx->head;
		tx->span.offset += payload;
		tx->left -= payload;
		return;
	}
}

/* Transport operation. */
int swc_tcp_stream_resume(struct swc_conn *base, u64 received)
{
	struct swc_tcp_conn *conn = swc_tcp_conn(base);
	int ret = -EPROTO;

	if (!base->resumable)
		return received ? -EPROTO : 0;
	mutex_lock(&conn->tx_mutex);
	spin_lock(&base->lock);
	if (is_possible(conn, received)) {
		conn->acked = received;
		rewind_to(conn, received);
		ret = 0;
	}
	spin_unlock(&base->lock);
	mutex_unlock(&conn->tx_mutex);
	return ret;
}

/* Nothing is sent any more. Sends go back to the executor with the connection. conn->lock is not held. */
void swc_tcp_stream_reset(struct swc_tcp_conn *conn)
{
	struct swc_tcp_record *r, *next;

	list_for_each_entry_safe(r, next, &conn->records, node)
		kfree(r);
	INIT_LIST_HEAD(&conn->records);
	conn->nrecords = 0;
	kfree(conn->spare);
	conn->spare = NULL;
	conn->replay = NULL;
	conn->tx = (struct swc_tcp_tx){};
	conn->began = false;
	conn->marked = false;
	conn->nkept = 0;
	conn->acked = 0;
	conn->sent = 0;
	conn->received = 0;
}
