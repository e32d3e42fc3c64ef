/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The RDMA transport: reliable connections by verbs. Each file calls only those below it:
 *
 *	transport.c	the table of operations, loading and unloading
 *	listen.c	listeners
 *	watch.c		silent peers
 *	cm.c		connecting, events of the connection manager
 *	qp.c		queue pairs: setup, teardown
 *	device.c	RDMA devices
 *	rx.c		messages in
 *	tx.c		messages out
 *	replay.c	what was sent and may not have arrived, for another queue pair
 *	rndv.c		memory that a peer writes into
 *	iwarp.c		what differs on iWARP
 *	sq.c		the send queue
 *	cq.c		the completion queue, and who polls it
 *	wc.c		requests that have failed
 *	buffers.c	memory of a connection
 *
 * What all connections have in common is in net/ (net/conn.h); posting happens under its conn->lock.
 */
#ifndef SWC_RDMA_RDMA_H
#define SWC_RDMA_RDMA_H

#include <linux/list.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "net/conn.h"

struct swc_cq;

#define SWC_SQ_DEPTH	32	/* send queue entries per connection, a power of two */
#define SWC_SIGNAL	8	/* one request in so many is signaled at least */
#define SWC_MAX_SGE	16
#define SWC_RX_SGE	2	/* of a receive: header, payload */
/* Mapped for a device as one piece, at most: what every device and every bounce buffer takes. */
#define SWC_MAP_BYTES	max(64ul << 10, PAGE_SIZE)
/* The page of a send queue entry: a header and the payload of a small message. */
#define SWC_ENTRY_BYTES	4096
#define SWC_SQ_PAGES	8	/* of a new connection */
/* A receive buffer of a new connection. */
#define SWC_RX_BUF_SMALL	SWC_WIRE_MIN_RX_BUF
#define SWC_INLINE_BYTES	(SWC_ENTRY_BYTES - SWC_HEADER)

/**
 * struct swc_rdma_dev - an RDMA device
 * @ib: the device
 * @lock: guards the next two
 * @conns: connections that use it
 * @nconns: their number
 * @idle: woken when @nconns is 0
 * @events: handler of its events
 */
struct swc_rdma_dev {
	struct ib_device *ib;
	struct ib_event_handler events;
	spinlock_t lock;
	struct list_head conns;
	u32 nconns;
	wait_queue_head_t idle;
};

/* A listener; by IPv6 only if the kernel has it. */
struct swc_rdma_listener {
	struct swc_listener base;
	struct rdma_cm_id *id4;
	struct rdma_cm_id *id6;
};

/* A page for a message, mapped at @dma. */
struct swc_sq_page {
	void *data;
	u64 dma;
};

/* What a work request is for, which decides what happens if it has not arrived (replay.c). */
enum swc_sq_kind {
	SWC_SQ_NONE,	/* a registration, or a write that WRITTEN follows */
	SWC_SQ_AUTH,
	SWC_SQ_COPIED,	/* a message that lies in the page as a whole; it and those below have numbers */
	SWC_SQ_DATA,	/* a segment, whose payload the device reads where it lies */
	SWC_SQ_RTR,
	SWC_SQ_WRITTEN,
};

/**
 * struct swc_sq_entry - one work request in the send queue
 * @cqe: its completion
 * @conn: connection
 * @page: header and small payload; taken by swc_sq_next(), given back when the request completes
 * @sge: scatter list
 * @first_mapped, @nmapped: entries of @sge that were mapped for this request
 * @send: message that is free when this completes, or NULL
 * @kind: see there
 * @number: of the message, if it is one
 * @owner, @bytes: of DATA and WRITTEN: whose payload it is about, and how many bytes; of COPIED, bytes of the
 *	message
 * @is_abort: this is the ABORT
 */
struct swc_sq_entry {
	struct ib_cqe cqe;
	struct swc_rdma_conn *conn;
	struct swc_sq_page page;
	struct ib_sge sge[SWC_MAX_SGE];
	u32 first_mapped;
	u32 nmapped;
	struct swc_send *send;
	enum swc_sq_kind kind;
	u64 number;
	struct swc_send *owner;
	u32 bytes;
	bool is_abort;
};

/* A message to be sent again. */
struct swc_sq_replay {
	struct swc_sq_page page;
	u32 bytes;
};

/**
 * struct swc_sq - the send queue of a connection; sq.c changes it, but for @tail, which tx.c advances
 * @entry: SWC_SQ_DEPTH entries
 * @page, @npages: pages that no entry has; see swc_sq_has_room()
 * @nsge: usable scatter list entries of each
 * @head, @tail: entries posted and completed, free-running
 * @reported: on iWARP: the device has reported all before to be done; not below @tail
 * @unsignaled: entries posted since the last signaled one
 * @error: posting failed: the connection is unusable
 * @probe_head: @head behind the last probe, until that completes; then not above @tail
 * @chain: request that is posted together with the next one, or NULL
 * @map_failing_s: 1 + seconds since memory could first not be mapped for the device; 0: it can be
 * @map_failed: it could not when posting was tried last
 * @seen: @tail a second ago
 * @stalled_s: seconds in which it has been the same, though the device must report a request
 * @replay, @first_replay, @nreplay: messages to be sent again, before all others: a ring
 */
struct swc_sq {
	struct swc_sq_entry *entry;
	struct swc_sq_page page[SWC_SQ_DEPTH + 2];
	u32 npages;
	u32 nsge;
	u32 head;
	u32 tail;
	u32 reported;
	u32 unsignaled;
	int error;
	u32 probe_head;
	struct ib_send_wr *chain;
	u32 map_failing_s;
	bool map_failed;
	u32 seen;
	u32 stalled_s;
	struct swc_sq_replay replay[SWC_SQ_DEPTH];
	u32 first_replay;
	u32 nreplay;
};

/**
 * struct swc_rdma_rx_buf - a receive buffer: memory that one receive puts a message into
 * @cqe: its completion
 * @header, @header_dma: for the header of the message
 * @data, @dma, @bytes: for its payload
 * @larger, @larger_dma: what takes its place when the buffer is posted next, or NULL
 * @held: it is not posted: a message in it is being handled, or is a segment that is not released
 * @seg: the segment in it
 */
struct swc_rdma_rx_buf {
	struct ib_cqe cqe;
	struct swc_wire_header *header;
	u64 header_dma;
	void *data;
	u64 dma;
	u32 bytes;
	void *larger;
	u64 larger_dma;
	bool held;
	struct swc_net_seg seg;
};

/**
 * struct swc_chunk - a piece of a rendezvous, behind one memory region; rndv.c
 * @rndv: rendezvous; NULL: the chunk is free
 * @mr: fast registration, unless free
 * @sg, @nents: its pages, mapped for the device
 * @bytes: length
 */
struct swc_chunk {
	struct swc_rndv *rndv;
	struct ib_mr *mr;
	struct scatterlist *sg;
	int nents;
	u32 bytes;
};

/**
 * struct swc_ack - on iWARP: what the peer has received; iwarp.c
 * @cqe: completion of a read of no bytes, which tells that
 * @wanted: one is to be posted
 * @is_posted: it is
 * @is_lost: the peer does not answer
 * @head: head of the send queue when it was posted
 * @received: the peer has received all that was posted before this head
 * @nreceived: messages received a second ago
 * @silent_s: seconds in which the peer has not been heard of since the read was posted
 */
struct swc_ack {
	struct ib_cqe cqe;
	bool wanted;
	bool is_posted;
	bool is_lost;
	u32 head;
	u32 received;
	u32 nreceived;
	u32 silent_s;
};

/**
 * struct swc_rdma_conn - a connection by RDMA
 * @base: the common part
 * @dev, @dev_node: device
 * @iwarp: it is of this kind; constant while there is a queue pair
 * @nreceived: receives completed; completion handlers change it
 * @id, @pd: the queue pair and what it needs
 * @cq: its completion queue; @base.lock
 * @port: of the device
 * @sq: send queue; this and what follows is guarded by @base.lock
 * @ack: on iWARP
 * @sent: messages that were posted, without AUTH
 * @acked: those of them that are known to be received
 * @received: messages of the peer that have arrived, likewise; completion handlers' alone
 * @can_post: receives can be posted
 * @nrx_bufs, @rx_buf: receive buffers, SWC_WIRE_SPARE of them beyond the peer's credits
 * @rx_buf_bytes: the most payload that one has room for
 * @nfull: segments that filled a small one
 * @nsmall: receive buffers to be replaced by larger ones; 0: that has not begun, or is done
 * @rx_header, @rx_header_dma: the headers of all, mapped as one; each in a cache line of its own
 * @rx_extents: the same as one memory, for swc_reduce_copy(); each has room for @rx_buf_bytes there
 * @chunk: of rendezvous, by number
 * @chunk_pages: pages of a chunk, at most
 */
struct swc_rdma_conn {
	struct swc_conn base;
	struct swc_rdma_dev *dev;
	struct list_head dev_node;
	bool iwarp;
	u32 nreceived;
	struct rdma_cm_id *id;
	struct swc_cq *cq;
	struct ib_pd *pd;
	u32 port;

	struct swc_sq sq;
	struct swc_ack ack;
	u64 sent;
	u64 acked;
	u64 received;
	bool can_post;
	u32 nrx_bufs;
	u32 rx_buf_bytes;
	u32 nfull;
	u32 nsmall;
	struct swc_rdma_rx_buf *rx_buf;
	void *rx_header;
	u64 rx_header_dma;
	struct swc_extents rx_extents;
	struct swc_chunk chunk[SWC_WIRE_CHUNKS];
	u32 chunk_pages;
};

static inline struct swc_rdma_conn *swc_rdma_conn(struct swc_conn *conn)
{
	return container_of(conn, struct swc_rdma_conn, base);
}

/* buffers.c */
extern unsigned int swc_rdma_rx_bufs;
extern unsigned int swc_rdma_rx_buf_kib;
extern const unsigned int swc_rdma_rx_buf_kib_small;
int swc_buffers_check_parameters(void);
u32 swc_buffers_bytes(void);
void swc_buffers_enlarge(struct swc_rdma_conn *conn);
void swc_buffers_replace(struct swc_rdma_conn *conn, struct swc_rdma_rx_buf *rx_buf);
int swc_buffers_add_page(struct swc_rdma_conn *conn);
int swc_buffers_alloc(struct swc_rdma_conn *conn);
void swc_buffers_free(struct swc_rdma_conn *conn);
int swc_buffers_map(struct swc_rdma_conn *conn);
void swc_buffers_unmap(struct swc_rdma_conn *conn);

/* replay.c */
u64 swc_rdma_received(const struct swc_conn *base);
int swc_rdma_resume(struct swc_conn *base, u64 received);
void swc_replay_suspend(struct swc_rdma_conn *conn);
void swc_replay_post(struct swc_rdma_conn *conn);

/* cq.c */
int swc_cq_init(void);
void swc_cq_exit(void);
struct swc_cq *swc_cq_create(struct swc_conn *conn, struct ib_device *ib, u32 n);
struct ib_cq *swc_cq_ib(const struct swc_cq *cq);
void swc_cq_take_back(struct swc_cq *cq);
void swc_cq_settle(struct swc_cq *cq);
void swc_cq_stop(struct swc_cq *cq);
void swc_cq_free(struct swc_cq *cq);

/* wc.c */
void swc_wc_failed(struct swc_rdma_conn *conn, const struct ib_wc *wc);

/* sq.c */
static inline bool swc_sq_is_idle(const struct swc_sq *sq)
{
	return sq->head == sq->tail && !sq->nreplay;
}

bool swc_sq_has_room(struct swc_rdma_conn *conn, u32 n);
bool swc_sq_is_full(const struct swc_rdma_conn *conn);
struct swc_sq_entry *swc_sq_next(struct swc_rdma_conn *conn);
struct swc_sq_entry *swc_sq_next_with(struct swc_rdma_conn *conn, struct swc_sq_page page);
void swc_sq_complete(struct swc_rdma_conn *conn, struct swc_sq_entry *entry);
struct swc_wire_header *swc_sq_message(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, u32 bytes);
void swc_sq_chain(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, struct ib_send_wr *wr);
void swc_sq_post(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, struct ib_send_wr *wr, bool signal);
void swc_sq_post_probe(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, struct ib_send_wr *wr);
void swc_sq_map_failed(struct swc_rdma_conn *conn);
u32 swc_sq_map(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, u32 first, const struct swc_span *span,
	       u32 max_bytes, u32 *nsge);
void swc_sq_unmap(struct swc_rdma_conn *conn, struct swc_sq_entry *entry);
void swc_sq_restart(struct swc_rdma_conn *conn);
void swc_sq_reset(struct swc_rdma_conn *conn);

/* iwarp.c */
bool swc_iwarp_keeps(const struct swc_rdma_conn *conn);
bool swc_iwarp_must_signal(const struct ib_send_wr *wr);
void swc_iwarp_take_probe(struct swc_rdma_conn *conn);
bool swc_iwarp_all_received(const struct swc_rdma_conn *conn);
void swc_iwarp_ask(struct swc_rdma_conn *conn);
void swc_iwarp_ask_early(struct swc_rdma_conn *conn);
u32 swc_iwarp_answered(struct swc_rdma_conn *conn);
bool swc_iwarp_watch(struct swc_rdma_conn *conn, u32 limit_s);
void swc_iwarp_reset(struct swc_rdma_conn *conn);

/* rndv.c */
int swc_rndv_setup(struct swc_rdma_conn *conn);
void swc_rndv_teardown(struct swc_rdma_conn *conn);
bool swc_rndv_post(struct swc_rdma_conn *conn);
int swc_rndv_written(struct swc_rdma_conn *conn, u32 chunk, u32 rkey, struct swc_rndv **done);

/* tx.c */
void swc_rdma_pump(struct swc_conn *base, bool nested);
void swc_rdma_tx_done(struct ib_cq *cq, struct ib_wc *wc);
void swc_rdma_tx_read_done(struct ib_cq *cq, struct ib_wc *wc);

/* rx.c */
int swc_rdma_rx_post_all(struct swc_rdma_conn *conn);
void swc_rdma_rx_release(struct swc_conn *base, struct swc_net_seg *seg);
void swc_rdma_rx_done(struct ib_cq *cq, struct ib_wc *wc);

/* device.c */
int swc_dev_init(void);
void swc_dev_exit(void);
struct swc_rdma_dev *swc_dev_get(struct ib_device *ib, struct swc_rdma_conn *conn);
struct swc_rdma_dev *swc_dev_detach(struct swc_rdma_conn *conn);
void swc_dev_unuse(struct swc_rdma_dev *dev);

/* qp.c */
int swc_qp_setup(struct swc_rdma_conn *conn, struct rdma_cm_id *id);
void swc_qp_suspend(struct swc_conn *base);
void swc_qp_quiesce(struct swc_conn *base);
void swc_qp_teardown(struct swc_conn *base);

/* cm.c */
extern unsigned int swc_rdma_resume_ms;
int swc_cm_check_parameters(void);
u32 swc_cm_answer_ms(u32 attempts);
int swc_cm_set_ack_timeout(struct rdma_cm_id *id);
void swc_cm_connect(struct swc_conn *base);
bool swc_cm_answers(const struct swc_conn *base, const struct swc_node_path *path);
int swc_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);

/* watch.c */
u32 swc_rdma_probe_s(void);
bool swc_rdma_watch(struct swc_conn *base);
bool swc_rdma_all_received(const struct swc_conn *base);

/* listen.c */
extern unsigned int swc_rdma_port;
int swc_rdma_listen_check_parameters(void);
struct swc_listener *swc_rdma_listen_start(const struct swc_transport *transport, struct net *ns);
void swc_rdma_listen_adopt(struct swc_conn *base, void *request);
void swc_rdma_listen_stop(struct swc_listener *listener);

#endif /* SWC_RDMA_RDMA_H */
