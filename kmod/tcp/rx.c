// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages in. What has come is received: headers and short messages into conn->rx.buf, segments into
 * receive buffers, pieces of chunks straight into their place. Who receives is a process that sleeps until
 * something arrives (net/waiter.c), or else rx_work, which gives way after some messages.
 */
#include <linux/delay.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include <net/tcp_states.h>

#include "tcp/tcp.h"

/* So many messages, or pieces of them, until rx_work goes on, after other work. */
#define BATCH	64

/* ------------------------------------------------------------------ receive buffers */

/* For all buffers; their memory comes later. */
int swc_tcp_rx_alloc(struct swc_tcp_conn *conn)
{
	u32 n = swc_tcp_rx_bufs, bytes = swc_tcp_rx_buf_kib << 10, i;
	struct swc_extents *extents = &conn->rx_extents;

	conn->rx_buf = kvcalloc(n, sizeof(*conn->rx_buf), GFP_KERNEL_ACCOUNT);
	extents->extent = kvcalloc(n + 1, sizeof(*extents->extent), GFP_KERNEL_ACCOUNT);
	if (!conn->rx_buf || !extents->extent) {
		swc_tcp_rx_free(conn);
		return -ENOMEM;
	}
	extents->nextents = n;
	for (i = 0; i < n; i++) {
		conn->rx_buf[i].seg.conn = &conn->base;
		extents->extent[i].offset = (u64)i * bytes;
		list_add_tail(&conn->rx_buf[i].free, &conn->free_bufs);
	}
	swc_extents_close(extents, (u64)n * bytes);
	return 0;
}

void swc_tcp_rx_free(struct swc_tcp_conn *conn)
{
	u32 i;

	for (i = 0; conn->rx_buf && i < swc_tcp_rx_bufs; i++)
		free_pages((unsigned long)conn->rx_buf[i].data, get_order(swc_tcp_rx_buf_kib << 10));
	kvfree(conn->rx_buf);
	kvfree(conn->rx_extents.extent);
}

static bool give_memory(struct swc_tcp_conn *conn, struct swc_tcp_rx_buf *b)
{
	struct mem_cgroup *before = set_active_memcg(conn->base.net->memcg);

	b->data = (void *)__get_free_pages(GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_RETRY_MAYFAIL,
					   get_order(swc_tcp_rx_buf_kib << 10));
	set_active_memcg(before);
	conn->rx_extents.extent[b - conn->rx_buf].kaddr = b->data;
	return b->data;
}

/*
 * A free buffer. The one that was used last comes first: others may never need memory. -EPROTO: there is
 * none, so the peer had no credit; -ENOMEM.
 */
static int take_buf(struct swc_tcp_conn *conn, struct swc_tcp_rx_buf **buf)
{
	struct swc_tcp_rx_buf *b;

	spin_lock(&conn->base.lock);
	b = list_first_entry_or_null(&conn->free_bufs, struct swc_tcp_rx_buf, free);
	if (b)
		list_del(&b->free);
	spin_unlock(&conn->base.lock);
	if (!b)
		return -EPROTO;
	if (!b->data && !give_memory(conn, b)) {
		spin_lock(&conn->base.lock);
		list_add_tail(&b->free, &conn->free_bufs);
		spin_unlock(&conn->base.lock);
		return -ENOMEM;
	}
	*buf = b;
	return 0;
}

/* Transport operation. */
void swc_tcp_rx_release(struct swc_conn *base, struct swc_net_seg *seg)
{
	struct swc_tcp_rx_buf *b = container_of(seg, struct swc_tcp_rx_buf, seg);

	lockdep_assert_held(&base->lock);
	list_add(&b->free, &swc_tcp_conn(base)->free_bufs);
}

/* ------------------------------------------------------------------ receiving */

/* From conn->rx.ahead. Return: the number of bytes. */
static u64 take_ahead(struct swc_tcp_conn *conn, const struct kvec *vec, u32 n)
{
	struct swc_tcp_rx *rx = &conn->rx;
	u32 i, begin = rx->ahead_at;

	for (i = 0; i < n && rx->ahead_at < rx->ahead_end; i++) {
		size_t bytes = min_t(size_t, vec[i].iov_len, rx->ahead_end - rx->ahead_at);

		memcpy(vec[i].iov_base, rx->ahead + rx->ahead_at, bytes);
		rx->ahead_at += bytes;
	}
	return rx->ahead_at - begin;
}

/*
 * Is a call of the socket in vain, which costs as much as one that receives a small message? What comes
 * after this look is given to somebody again.
 */
static bool is_empty(const struct swc_tcp_conn *conn)
{
	const struct sock *sk = conn->sock->sk;

	return !conn->encrypted && skb_queue_empty_lockless(&sk->sk_receive_queue) &&
	       !READ_ONCE(sk->sk_err) && !(READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN);
}

/*
 * Up to @bytes of the stream, or of the handshake, which nothing is received ahead of. 0: the peer has closed
 * it; -EAGAIN: nothing has come. @vec has room for one more element.
 */
static int receive(struct swc_tcp_conn *conn, struct kvec *vec, u32 n, u64 bytes)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct swc_tcp_rx *rx = &conn->rx;
	u64 more = 0;
	int ret;

	if (rx->ahead_at < rx->ahead_end)
		return take_ahead(conn, vec, n);
	if (conn->handshake.phase == SWC_TCP_STREAM) {
		if (is_empty(conn))
			return -EAGAIN;
		more = SWC_TCP_AHEAD;
		vec[n++] = (struct kvec){ .iov_base = rx->ahead, .iov_len = more };
	}
	ret = kernel_recvmsg(conn->sock, &msg, vec, n, bytes + more, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (ret <= 0 || ret <= bytes)
		return ret;
	rx->ahead_at = 0;
	rx->ahead_end = ret - bytes;
	return bytes;
}

static int receive_into(struct swc_tcp_conn *conn, void *to, u64 bytes)
{
	struct kvec vec[2] = { { .iov_base = to, .iov_len = bytes } };

	return receive(conn, vec, 1, bytes);
}

static int receive_span(struct swc_tcp_conn *conn, const struct swc_extents *extents, u64 at, u64 bytes)
{
	const struct swc_extent *e = swc_extents_find(extents, at);
	u64 begin = at, end = at + bytes;
	struct kvec vec[SWC_TCP_VECS + 1];
	u32 i;

	for (i = 0; i < SWC_TCP_VECS && at < end; i++, e++) {
		vec[i].iov_base = e->kaddr + (at - e->offset);
		vec[i].iov_len = min(end, e[1].offset) - at;
		at += vec[i].iov_len;
	}
	return receive(conn, vec, i, at - begin);
}

/* Receive what is missing of the present part of a message. */
static int receive_more(struct swc_tcp_conn *conn)
{
	struct swc_tcp_rx *rx = &conn->rx;
	u64 left = rx->bytes - rx->got, at;
	const struct swc_span *span;

	switch (rx->state) {
	case SWC_TCP_RX_DATA:
		return receive_into(conn, rx->rx_buf->data + (rx->got - SWC_HEADER), left);
	case SWC_TCP_RX_WRITE:
		span = &rx->chunk->rndv->span;
		at = span->offset + rx->chunk->at + rx->chunk->got + (rx->got - SWC_HEADER);
		return receive_span(conn, span->extents, at, left);
	default:
		return receive_into(conn, rx->buf + rx->got, left);
	}
}

/* ------------------------------------------------------------------ parts of messages */

/* The next part is the beginning of a message. */
void swc_tcp_rx_reset(struct swc_tcp_conn *conn)
{
	struct swc_tcp_rx *rx = &conn->rx;

	if (rx->rx_buf) {
		spin_lock(&conn->base.lock);
		list_add(&rx->rx_buf->free, &conn->free_bufs);
		spin_unlock(&conn->base.lock);
	}
	rx->rx_buf = NULL;
	rx->chunk = NULL;
	rx->state = SWC_TCP_RX_HEADER;
	rx->got = 0;
	rx->bytes = SWC_HEADER;
}

/* A socket is going to be received from. */
void swc_tcp_rx_begin(struct swc_tcp_conn *conn, enum swc_tcp_phase phase)
{
	/* Of the socket before, all has been handled, see swc_tcp_rx_drain(). */
	conn->rx.ahead_end = conn->rx.ahead_at;
	conn->handshake.phase = phase;
	conn->handshake.got = 0;
	conn->handshake.bytes = phase == SWC_TCP_REPLY ? sizeof(struct swc_wire_reject) : SWC_HEADER;
}

/* Encrypt what follows the accept, which may be forged: then nothing can be decrypted. */
static int encrypt(struct swc_tcp_conn *conn, const struct swc_wire_accept *accept)
{
	int ret = -ECONNABORTED;

	mutex_lock(&conn->tx_mutex);
	if (!conn->detaching)
		ret = swc_tls_start(conn, accept);
	mutex_unlock(&conn->tx_mutex);
	return ret;
}

/* A reject, or the beginning of an accept, which is longer. */
static int reply(struct swc_tcp_conn *conn)
{
	struct swc_tcp_handshake *hs = &conn->handshake;
	const struct swc_wire_accept *a = (void *)hs->buf;
	int ret;

	BUILD_BUG_ON(sizeof(*a) <= sizeof(struct swc_wire_reject) || sizeof(*a) > sizeof(hs->buf));
	BUILD_BUG_ON(offsetof(struct swc_wire_accept, resv) != offsetof(struct swc_wire_reject, reason));
	if (!a->resv && hs->bytes < sizeof(*a)) {
		hs->bytes = sizeof(*a);
		return 0;
	}
	if (a->resv) {
		conn->broken = -EPROTO;
		if (!swc_reply_refused(&conn->base, (void *)hs->buf, hs->bytes, 0))
			swc_conn_retry(&conn->base, "its answer is invalid", 0);
		return -EAGAIN;
	}
	ret = swc_tcp_is_tls(conn) ? encrypt(conn, a) : 0;
	if (ret)
		return ret;
	/* It waits for this (await_reply()): who wants it sooner must not find it queued. */
	cancel_delayed_work(&conn->rx_work);
	/* Before the connection is live: then it may be suspended. */
	hs->phase = SWC_TCP_STREAM;
	if (!swc_reply_accepted(&conn->base, a, hs->bytes))
		conn->broken = -EPROTO;
	return conn->broken ? -EAGAIN : 0;
}

/* The header of AUTH, or all of it. */
static int auth(struct swc_tcp_conn *conn)
{
	struct swc_tcp_handshake *hs = &conn->handshake;
	const struct swc_wire_header *h = (void *)hs->buf;
	struct swc_wire_msg msg;
	int ret;

	if (h->kind != SWC_WIRE_AUTH)
		return -EPROTO;
	if (hs->bytes == SWC_HEADER) {
		hs->bytes = swc_wire_bytes(h);
		return 0;
	}
	ret = swc_rx_parse(&conn->base, h, h + 1, hs->bytes, &msg);
	if (ret)
		return ret;
	hs->phase = SWC_TCP_STREAM;
	return swc_rx_short(&conn->base, &msg);
}

/* As of step(). */
static int handshake(struct swc_tcp_conn *conn)
{
	struct swc_tcp_handshake *hs = &conn->handshake;
	int n = receive_into(conn, hs->buf + hs->got, hs->bytes - hs->got);

	if (n <= 0)
		return n ?: -ECONNRESET;
	hs->got += n;
	if (hs->got < hs->bytes)
		return 0;
	return hs->phase == SWC_TCP_REPLY ? reply(conn) : auth(conn);
}

/* The header of a message is complete: where does the rest go? */
static int header(struct swc_tcp_conn *conn)
{
	const struct swc_wire_header *h = (void *)conn->rx.buf;
	struct swc_tcp_rx *rx = &conn->rx;
	s64 bytes = swc_wire_bytes(h);
	enum swc_tcp_rx_state next;
	int ret;

	if (bytes < 0 || (h->kind != SWC_WIRE_AUTH && !test_bit(SWC_CONN_F_PROVEN, &conn->base.flags)))
		return -EPROTO;
	switch (h->kind) {
	case SWC_WIRE_DATA:
		/* The stream packs small messages: no segment has several of them. */
		ret = bytes - SWC_HEADER > swc_tcp_rx_buf_kib << 10 || h->flags & SWC_WIRE_BATCH ?
		      -EPROTO : take_buf(conn, &rx->rx_buf);
		if (!ret)
			ret = swc_rx_parse(&conn->base, h, rx->rx_buf->data, bytes, &rx->msg);
		next = SWC_TCP_RX_DATA;
		break;
	case SWC_WIRE_WRITE:
		ret = swc_rx_parse(&conn->base, h, NULL, bytes, &rx->msg);
		if (!ret)
			ret = swc_tcp_rndv_begin(conn, &rx->msg, &rx->chunk);
		next = SWC_TCP_RX_WRITE;
		break;
	default:
		ret = 0;
		next = SWC_TCP_RX_SHORT;
		break;
	}
	if (ret)
		return ret;
	rx->bytes = bytes;
	rx->state = next;
	return 0;
}

static int short_message(struct swc_tcp_conn *conn)
{
	struct swc_tcp_rx *rx = &conn->rx;
	const struct swc_wire_header *h = (void *)rx->buf;
	int ret;

	ret = swc_rx_parse(&conn->base, h, h + 1, rx->bytes, &rx->msg);
	if (!ret)
		ret = swc_rx_short(&conn->base, &rx->msg);
	swc_tcp_rx_reset(conn);
	swc_tcp_pump(&conn->base, false);
	return ret;
}

static void data(struct swc_tcp_conn *conn)
{
	struct swc_tcp_rx_buf *b = conn->rx.rx_buf;

	conn->rx.rx_buf = NULL;
	conn->rx.ack |= conn->rx.msg.total >= swc_tcp_kept_min(conn);
	b->seg.span.extents = &conn->rx_extents;
	b->seg.span.offset = conn->rx_extents.extent[b - conn->rx_buf].offset;
	swc_tcp_rx_reset(conn);
	swc_rx_data(&conn->base, &b->seg, &conn->rx.msg);
}

/* A part is complete. 0, or as of step(). */
static int part(struct swc_tcp_conn *conn)
{
	struct swc_tcp_chunk *chunk = conn->rx.chunk;
	u32 bytes;

	switch (conn->rx.state) {
	case SWC_TCP_RX_HEADER:
		return header(conn);
	case SWC_TCP_RX_SHORT:
		return short_message(conn);
	case SWC_TCP_RX_DATA:
		data(conn);
		return 0;
	case SWC_TCP_RX_WRITE:
		bytes = conn->rx.bytes - SWC_HEADER;
		conn->rx.ack = true;
		swc_tcp_rx_reset(conn);
		swc_tcp_rndv_written(conn, chunk, bytes);
		return 0;
	}
	return -EPROTO;
}

/*
 * Receive some. 0: go on; -EAGAIN: nothing has come; -ENOMEM: go on later; -EPROTO; any other error: the
 * stream is broken.
 */
static int step(struct swc_tcp_conn *conn)
{
	struct swc_tcp_rx *rx = &conn->rx;
	int n;

	if (conn->handshake.phase != SWC_TCP_STREAM)
		return handshake(conn);
	if (rx->got < rx->bytes) {
		n = receive_more(conn);
		if (n <= 0)
			return n ?: -ECONNRESET;
		rx->got += n;
		conn->received += n;
	}
	return rx->got == rx->bytes ? part(conn) : 0;
}

/* ------------------------------------------------------------------ who receives */

static const char *reason(int error)
{
	switch (error) {
	case -ECONNREFUSED:
		return "nothing listens there: is the module loaded, with the same tcp_port and tls_port?";
	case -ETIMEDOUT:
		return "no answer";
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return "no route to it";
	case -ECONNRESET:
	case -EPIPE:
		return "it has closed the connection";
	case -EBADMSG:
		return "what it has sent cannot be decrypted";
	default:
		return "the stream is broken";
	}
}

/*
 * Who has connected sends its request when the socket is established. As of step(). The other one sends its
 * reply (conn.c), and nothing is received before.
 */
static int ask(struct swc_tcp_conn *conn)
{
	struct sock *sk = conn->sock->sk;
	int ret;

	if (conn->handshake.phase != SWC_TCP_REPLY)
		return -EAGAIN;
	switch (READ_ONCE(sk->sk_state)) {
	case TCP_SYN_SENT:
	case TCP_SYN_RECV:
		return -EAGAIN;
	case TCP_ESTABLISHED:
	case TCP_CLOSE_WAIT:
		swc_reply_hello(&conn->base);
		ret = swc_tcp_send_handshake(conn->sock, &conn->base.hello, sizeof(conn->base.hello));
		conn->handshake_sent = !ret;
		conn->reply_by = jiffies + msecs_to_jiffies(swc_tcp_timeout_ms);
		/* A new socket has room, unless TCP is short of memory. */
		return ret == -EAGAIN ? -ENOMEM : ret;
	default:
		return sock_error(sk) ?: -ECONNREFUSED;
	}
}

/* The reply to the request has not come: look again when it is late. */
static int await_reply(struct swc_tcp_conn *conn)
{
	unsigned long now = jiffies;

	if (!conn->handshake_sent)
		return -EAGAIN;
	if (time_after(now, conn->reply_by))
		return -ETIMEDOUT;
	/* Unless something has come meanwhile: then it is queued already. */
	queue_delayed_work(swc_conn_wq(&conn->base), &conn->rx_work, conn->reply_by + 1 - now);
	return -EAGAIN;
}

static void receive_all(struct swc_tcp_conn *conn)
{
	bool proven = false;
	int ret, i;

	lockdep_assert_held(&conn->rx_mutex);
	if (conn->broken)
		return;
	ret = READ_ONCE(conn->handshake_sent) ? 0 : ask(conn);
	for (i = 0; i < BATCH && !ret; i++) {
		proven = test_bit(SWC_CONN_F_PROVEN, &conn->base.flags);
		ret = step(conn);
	}
	/* Only now: what the peer has sent before it closed the stream may say why. */
	if (ret == -EAGAIN && READ_ONCE(conn->error))
		ret = READ_ONCE(conn->error);
	else if (ret == -EAGAIN && conn->handshake.phase == SWC_TCP_REPLY)
		ret = await_reply(conn);
	/* Now: the sender's memory is in use until then. For small messages the next one says it as well. */
	if (conn->rx.ack)
		tcp_sock_set_quickack(conn->sock->sk, 1);
	conn->rx.ack = false;
	swc_tcp_pump(&conn->base, false);
	switch (ret) {
	case 0:
		queue_delayed_work(swc_conn_wq(&conn->base), &conn->rx_work, 0);
		break;
	case -EAGAIN:
		break;
	case -ENOMEM:
		queue_delayed_work(swc_conn_wq(&conn->base), &conn->rx_work,
				   msecs_to_jiffies(SWC_TCP_NOMEM_MS));
		break;
	case -EPROTO:
		conn->broken = ret;
		swc_rx_failed(&conn->base, proven, ret);
		break;
	default:
		conn->broken = ret;
		swc_conn_retry(&conn->base, reason(ret), ret);
		break;
	}
}

static void rx_work(struct work_struct *work)
{
	struct swc_tcp_conn *conn = container_of(work, struct swc_tcp_conn, rx_work.work);

	mutex_lock(&conn->rx_mutex);
	receive_all(conn);
	mutex_unlock(&conn->rx_mutex);
}

/* Before anything is received: what arrives from now on is given to somebody again. */
static bool take_given(struct swc_tcp_conn *conn)
{
	return xchg(&conn->rx_given, 0);
}

/* Is there a stream, which is not being closed? */
static bool may_receive(struct swc_tcp_conn *conn)
{
	bool may;

	spin_lock(&conn->base.lock);
	may = conn->sock && !conn->detaching;
	spin_unlock(&conn->base.lock);
	return may;
}

/* A process has been woken, and runs. */
static void poll_given(struct swc_net_poll *poll)
{
	struct swc_tcp_conn *conn = container_of(poll, struct swc_tcp_conn, rx_poll);

	mutex_lock(&conn->rx_mutex);
	if (take_given(conn) && may_receive(conn))
		receive_all(conn);
	mutex_unlock(&conn->rx_mutex);
	swc_conn_put(&conn->base);
}

void swc_tcp_rx_init(struct swc_tcp_conn *conn)
{
	mutex_init(&conn->rx_mutex);
	INIT_DELAYED_WORK(&conn->rx_work, rx_work);
	swc_net_poll_init(&conn->rx_poll, poll_given);
}

/*
 * Something has arrived. Under sk_callback_lock, so that the socket is still the connection's. Who has it
 * finds @rx_given when it begins, and what arrives later comes here again.
 */
void swc_tcp_rx_ready(struct swc_tcp_conn *conn)
{
	/* A full barrier even if it is set already: who clears it now sees what has arrived. */
	if (xchg(&conn->rx_given, 1))
		return;
	kref_get(&conn->base.ref);
	if (swc_conn_give(&conn->base, &conn->rx_poll))
		return;
	take_given(conn);
	mod_delayed_work(swc_conn_wq(&conn->base), &conn->rx_work, 0);
	/* Not the last one: the socket has its own. */
	swc_conn_put(&conn->base);
}

/* The process that it was given to may be stopped: have rx_work receive. conn->lock is held. */
void swc_tcp_rx_take_back(struct swc_tcp_conn *conn)
{
	lockdep_assert_held(&conn->base.lock);
	if (conn->sock && !conn->detaching && take_given(conn))
		mod_delayed_work(swc_conn_wq(&conn->base), &conn->rx_work, 0);
}

/* conn->detaching is set, and the socket has no callbacks of ours: nobody receives when this returns. */
void swc_tcp_rx_stop(struct swc_tcp_conn *conn)
{
	/* A process that receives may queue rx_work; afterwards none begins. */
	mutex_lock(&conn->rx_mutex);
	take_given(conn);
	mutex_unlock(&conn->rx_mutex);
	cancel_delayed_work_sync(&conn->rx_work);
}

/*
 * The socket is aborted: handle all of the stream that had arrived. It must not be lost, as the peer knows
 * that it has arrived; unless the communicator ends. TLS tells an error of the socket, once, before what has
 * arrived: only the second in a row says that nothing is left.
 */
void swc_tcp_rx_drain(struct swc_tcp_conn *conn)
{
	struct swc_conn *base = &conn->base;
	bool told = !conn->encrypted;
	int ret = 0;

	/* After another error than an invalid message, more may have come. */
	if (conn->handshake.phase != SWC_TCP_STREAM || conn->broken == -EPROTO)
		return;
	while (!ret && !READ_ONCE(base->net->aborted) && READ_ONCE(base->state) == SWC_CONN_RESETTING) {
		ret = step(conn);
		if (ret == -ENOMEM)
			msleep(SWC_TCP_NOMEM_MS);
		if (!ret || ret == -ENOMEM) {
			told = !conn->encrypted;
			ret = 0;
		} else if (!told && ret != -EPROTO) {
			told = true;
			ret = 0;
		}
		cond_resched();
	}
	if (ret == -EPROTO)
		swc_rx_failed(base, test_bit(SWC_CONN_F_PROVEN, &base->flags), ret);
}
