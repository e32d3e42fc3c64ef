/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The TCP transport: one stream per connection, by sockets of the kernel. Each file calls only those below
 * it:
 *
 *	transport.c	the table of operations
 *	listen.c	listeners, and accepted sockets until their request has come
 *	conn.c		making and closing the stream of a connection, its socket's callbacks
 *	rx.c		messages in
 *	tx.c		messages out
 *	stream.c	what was sent and may not have arrived; the stream goes on by another socket
 *	rndv.c		memory that a peer writes into
 *	zerocopy.c	payload that the socket reads where it lies
 *	tls.c		encryption of a stream
 *	callbacks.c	callbacks of a socket
 *	params.c	module parameters
 *
 * What all connections have in common is in net/ (net/conn.h).
 *
 * A socket's callbacks run in softirqs; they queue work items, or wake a process that sleeps until something
 * arrives (net/waiter.c). Both receive, one at a time: conn->rx_mutex. conn->sock is set and cleared under
 * conn->lock; it is not cleared while conn->tx_mutex is held or somebody receives.
 */
#ifndef SWC_TCP_TCP_H
#define SWC_TCP_TCP_H

#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>

#include "net/conn.h"

/* Headers and small payload are copied into one page, and sent by one call. */
#define SWC_TCP_PAGE	PAGE_SIZE
/* Until memory is asked for again; the peer waits meanwhile if it has to. */
#define SWC_TCP_NOMEM_MS	10
/* Payload goes to the socket in pieces of so many kernel buffers, at most. */
#define SWC_TCP_VECS	16
/* So much more than is asked for is received at once: a small message, or the beginning of the next one. */
#define SWC_TCP_AHEAD	512

struct swc_tcp_conn;
struct swc_tcp_record;

/* The default callbacks of a socket, to be restored. */
struct swc_tcp_callbacks {
	void (*data_ready)(struct sock *sk);
	void (*state_change)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*error_report)(struct sock *sk);
};

/* A receive buffer, allocated when a segment first needs it. @free: in conn->free_bufs */
struct swc_tcp_rx_buf {
	struct list_head free;
	void *data;
	struct swc_net_seg seg;
};

/* A chunk of a rendezvous that the peer may write; free if it has no @rndv. */
struct swc_tcp_chunk {
	struct swc_rndv *rndv;
	u64 at;
	u32 bytes;
	u32 got;
};

/* What arrives before the stream. */
enum swc_tcp_phase {
	SWC_TCP_REPLY,		/* the reply to hello, of the lower rank */
	SWC_TCP_AUTH,		/* the lower rank's proof, of the higher one */
	SWC_TCP_STREAM,		/* nothing: all that arrives is the stream */
};

/**
 * struct swc_tcp_handshake - what of it has arrived; guarded by rx_mutex
 * @phase: see there
 * @got, @bytes: of that
 * @buf: it
 */
struct swc_tcp_handshake {
	enum swc_tcp_phase phase;
	u32 got;
	u32 bytes;
	u8 buf[SWC_HEADER + SWC_WIRE_MAC] __aligned(8);
};

/* What arrives next of the stream; guarded by rx_mutex. */
enum swc_tcp_rx_state {
	SWC_TCP_RX_HEADER,
	SWC_TCP_RX_SHORT,	/* the rest of a short message */
	SWC_TCP_RX_DATA,	/* payload, into a receive buffer */
	SWC_TCP_RX_WRITE,	/* payload, into its place */
};

/**
 * struct swc_tcp_rx - what of a message has arrived
 * @state: see there
 * @got, @bytes: of the message
 * @buf: its beginning: as much as is no payload of DATA and WRITE
 * @msg: parsed, for those
 * @rx_buf: for DATA
 * @chunk: for WRITE
 * @ack: the sender may wait for an ACK
 * @ahead: what was received beyond what was asked for: bytes from @ahead_at to @ahead_end come next
 */
struct swc_tcp_rx {
	enum swc_tcp_rx_state state;
	u64 got;
	u64 bytes;
	u8 buf[SWC_SHORT_BYTES] __aligned(8);
	struct swc_wire_msg msg;
	struct swc_tcp_rx_buf *rx_buf;
	struct swc_tcp_chunk *chunk;
	bool ack;
	u32 ahead_at;
	u32 ahead_end;
	u8 ahead[SWC_TCP_AHEAD];
};

/**
 * struct swc_tcp_tx - the message that is being sent; nothing if @head == @head_end and !@left
 * @page: header, and what is copied
 * @head, @head_end: what of it has not been given to the socket
 * @span, @left: payload behind that
 * @send: whose payload that is, or NULL
 * @zerocopy: the socket reads the payload where it lies, or NULL: it copies it
 * @is_last: ABORT or FIN: its ACK matters
 * @record: kept for sending it again, or NULL
 */
struct swc_tcp_tx {
	void *page;
	u32 head;
	u32 head_end;
	struct swc_span span;
	u32 left;
	struct swc_send *send;
	struct swc_tcp_zerocopy *zerocopy;
	bool is_last;
	struct swc_tcp_record *record;
};

/**
 * struct swc_tcp_conn - a connection by TCP
 * @base: the common part
 * @sock: the stream, NULL: there is none
 * @detaching: @sock is being given up, until it is released: rx_work is not queued any more, and nobody
 *	begins to receive; changes under @tx_mutex and @base.lock
 * @callbacks: the socket's own, or those of TLS if @encrypted
 * @rx_mutex: held while receiving
 * @rx_work: receives; queued by the socket's callbacks
 * @rx_poll: what a process is given, that receives
 * @rx_given: something has arrived, and who it was given to has not begun
 * @broken: why nothing is received any more, or 0; guarded by @rx_mutex, and so are the next
 * @handshake_sent: the lower rank has sent its request, the higher one its reply
 * @reply_by: jiffies until which the reply to the request is waited for
 * @error: why sending failed
 * @handshake: before @rx
 * @rx: receiving
 * @received: bytes of the stream that have arrived; likewise
 * @tx_mutex: held while sending, which does not wait for it
 * @tx_wanted: there is more to send, perhaps
 * @tx: sending; guarded by @tx_mutex
 * @page: where messages are made, unless they are recorded
 * @acks_wanted: look at all ACKs
 * @records, @nrecords, @spare, @replay: messages that the peer may not have (stream.c), their number, a free
 *	one, and the next to be sent again; guarded by @tx_mutex, as what follows, which changes under
 *	@base.lock, too
 * @sent: bytes of the stream that messages have been made of
 * @acked: those that the peer has, as far as it was looked at; @una: the socket's number of the next one
 * @mark: encrypted: the peer has so many when its TCP has acknowledged all before @una; if @marked
 * @began: the socket carries the stream: @una is valid, unless it is encrypted
 * @nkept: sends that go back to the executor with their records
 * @zerocopies: of messages that are sent in part; guarded by @tx_mutex
 * @zerocopies_held, @zerocopies_done: of those that the socket has as a whole, and of those it has no more
 * @chunk: by number, guarded by @base.lock; and so is what follows
 * @rx_buf, @rx_extents: receive buffers, also as one memory, for swc_reduce_copy()
 * @free_bufs: those that are not in use
 * @nallocated: those that are allocated
 */
struct swc_tcp_conn {
	struct swc_conn base;
	struct socket *sock;
	bool detaching;
	struct swc_tcp_callbacks callbacks;
	bool encrypted;
	struct mutex rx_mutex;
	struct delayed_work rx_work;
	struct swc_net_poll rx_poll;
	int rx_given;
	int broken;
	bool handshake_sent;
	unsigned long reply_by;
	int error;
	struct swc_tcp_handshake handshake;
	struct swc_tcp_rx rx;
	u64 received;

	struct mutex tx_mutex;
	atomic_t tx_wanted;
	struct swc_tcp_tx tx;
	void *page;
	bool acks_wanted;
	struct list_head records;
	u32 nrecords;
	struct swc_tcp_record *spare;
	struct swc_tcp_record *replay;
	u64 sent;
	u64 acked;
	u32 una;
	u64 mark;
	bool marked;
	bool began;
	u32 nkept;
	struct list_head zerocopies;
	struct list_head zerocopies_held;
	struct llist_head zerocopies_done;

	struct swc_tcp_chunk chunk[SWC_WIRE_CHUNKS];
	struct swc_tcp_rx_buf *rx_buf;
	struct swc_extents rx_extents;
	struct list_head free_bufs;
	u32 nallocated;
};

static inline struct swc_tcp_conn *swc_tcp_conn(struct swc_conn *conn)
{
	return container_of(conn, struct swc_tcp_conn, base);
}

/* params.c */
int swc_tcp_check_parameters(void);
extern unsigned int swc_tcp_rx_bufs;
extern unsigned int swc_tcp_rx_buf_kib;
extern unsigned int swc_tcp_port;
extern unsigned int swc_tls_port;
extern unsigned int swc_tcp_timeout_ms;
extern unsigned int swc_tcp_zerocopy_min;
extern unsigned int swc_tcp_resume_ms;

/* Is the stream to be encrypted? */
static inline bool swc_tcp_is_tls(const struct swc_tcp_conn *conn)
{
	return IS_ENABLED(CONFIG_TLS) && conn->base.transport->port == &swc_tls_port;
}

/* callbacks.c */
void swc_tcp_save_callbacks(struct socket *sock, struct swc_tcp_callbacks *callbacks);
void swc_tcp_set_callbacks(struct socket *sock, const struct swc_tcp_callbacks *callbacks, void *user);
void swc_tcp_restore_callbacks(struct socket *sock, const struct swc_tcp_callbacks *callbacks);

/* zerocopy.c */
struct swc_tcp_zerocopy *swc_tcp_zerocopy_get(struct swc_tcp_conn *conn, struct swc_send *send);
struct ubuf_info *swc_tcp_zerocopy_ubuf(struct swc_tcp_zerocopy *z);
void swc_tcp_zerocopy_sent(struct swc_tcp_zerocopy *z);
void swc_tcp_zerocopy_collect(struct swc_tcp_conn *conn, struct list_head *done);
void swc_tcp_zerocopy_close(struct swc_tcp_conn *conn);

/* stream.c */
u32 swc_tcp_stream_room(void);
u64 swc_tcp_stream_acked(const struct swc_tcp_conn *conn);
void swc_tcp_stream_mark(struct swc_tcp_conn *conn);
bool swc_tcp_stream_trim(struct swc_tcp_conn *conn, struct list_head *done);
bool swc_tcp_stream_prepare(struct swc_tcp_conn *conn);
bool swc_tcp_stream_is_full(const struct swc_tcp_conn *conn);
void *swc_tcp_stream_page(struct swc_tcp_conn *conn);
void swc_tcp_stream_add(struct swc_tcp_conn *conn);
bool swc_tcp_stream_finish(struct swc_tcp_conn *conn, bool last);
bool swc_tcp_stream_is_again(const struct swc_tcp_conn *conn);
bool swc_tcp_stream_again(struct swc_tcp_conn *conn);
void swc_tcp_stream_begin(struct swc_tcp_conn *conn);
void swc_tcp_stream_end(struct swc_tcp_conn *conn);
u64 swc_tcp_stream_received(const struct swc_conn *base);
int swc_tcp_stream_resume(struct swc_conn *base, u64 received);
void swc_tcp_stream_reset(struct swc_tcp_conn *conn);

/* rndv.c */
bool swc_tcp_rndv_offer(struct swc_tcp_conn *conn);
int swc_tcp_rndv_begin(struct swc_tcp_conn *conn, const struct swc_wire_msg *msg,
		       struct swc_tcp_chunk **chunk);
void swc_tcp_rndv_written(struct swc_tcp_conn *conn, struct swc_tcp_chunk *chunk, u32 bytes);
void swc_tcp_rndv_reset(struct swc_tcp_conn *conn);

/* tx.c */
void swc_tcp_pump(struct swc_conn *base, bool nested);
bool swc_tcp_all_received(const struct swc_conn *base);
u32 swc_tcp_probe_s(void);
int swc_tcp_send_handshake(struct socket *sock, const void *data, u32 bytes);
void swc_tcp_tx_reset(struct swc_tcp_conn *conn);

/* rx.c */
void swc_tcp_rx_init(struct swc_tcp_conn *conn);
void swc_tcp_rx_ready(struct swc_tcp_conn *conn);
void swc_tcp_rx_take_back(struct swc_tcp_conn *conn);
void swc_tcp_rx_stop(struct swc_tcp_conn *conn);
void swc_tcp_rx_release(struct swc_conn *base, struct swc_net_seg *seg);
int swc_tcp_rx_alloc(struct swc_tcp_conn *conn);
void swc_tcp_rx_free(struct swc_tcp_conn *conn);
void swc_tcp_rx_begin(struct swc_tcp_conn *conn, enum swc_tcp_phase phase);
void swc_tcp_rx_drain(struct swc_tcp_conn *conn);
void swc_tcp_rx_reset(struct swc_tcp_conn *conn);
u32 swc_tcp_kept_min(const struct swc_tcp_conn *conn);

/* conn.c */
void swc_tcp_set_options(struct socket *sock);
void swc_tcp_take(struct swc_tcp_conn *conn, struct socket *sock, const struct swc_tcp_callbacks *callbacks);
void swc_tcp_connect(struct swc_conn *base);
bool swc_tcp_answers(const struct swc_conn *base, const struct swc_node_path *path);
int swc_tcp_accept(struct swc_tcp_conn *conn);
void swc_tcp_suspend(struct swc_conn *base);
void swc_tcp_quiesce(struct swc_conn *base);

/* tls.c */
bool swc_tls_is_there(struct net *ns);
int swc_tls_start(struct swc_tcp_conn *conn, const struct swc_wire_accept *accept);
bool swc_tls_has_pending(const struct sock *sk);
bool swc_tls_is_sent(struct sock *sk, u32 *seq);

/* listen.c */
struct swc_listener *swc_tcp_listen(const struct swc_transport *transport, struct net *ns);
void swc_tcp_unlisten(struct swc_listener *listener);
void swc_tcp_adopt(struct swc_conn *base, void *request);

#endif /* SWC_TCP_TCP_H */
