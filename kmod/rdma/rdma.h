/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The RDMA transport: reliable connections by verbs. Each file calls only those below it:
 *
 *	transport.c	the table of operations, loading and unloading
 *	listen.c	listeners, connection requests of peers
 *	net.c		the connections of a communicator: making, closing, abort, leaving
 *	watch.c		silent peers, network cards that are down
 *	cm.c		connecting, events of the connection manager
 *	qp.c		queue pairs: setup, teardown
 *	device.c	RDMA devices
 *	rx.c		messages in
 *	tx.c		messages out
 *	rndv.c		memory that a peer writes into
 *	sq.c		the send queue
 *	conn.c		state, references and failure of a connection
 *	buffers.c	memory of a connection
 *	auth.c, policy.h, tombstone.c, seg_copy.c	independent of RDMA
 *
 * Locks: net->lock (mutex) > the xarray's lock > conn->lock (leaf; posting happens under it). Under the
 * mutex messages may be returned to the executor; nothing else calls out of the transport under a lock,
 * but for swc_net_ops.get, .put and .progress.
 */
#ifndef SWC_RDMA_RDMA_H
#define SWC_RDMA_RDMA_H

#include <linux/bitops.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "mem/region.h"
#include "net.h"
#include "net/seg_copy.h"

#define SWC_SQ_DEPTH	32	/* send queue entries per connection, a power of two */
#define SWC_SIGNAL	8	/* one request in so many is signaled at least */
#define SWC_MAX_SGE	16
/* Mapped for a device as one piece, at most: what every device and every bounce buffer takes. */
#define SWC_MAP_BYTES	max(64ul << 10, PAGE_SIZE)
/* The page of a send queue entry: a header and the payload of a small message. */
#define SWC_ENTRY_BYTES	4096
#define SWC_HEADER	sizeof(struct swc_wire_header)
#define SWC_INLINE_BYTES	(SWC_ENTRY_BYTES - SWC_HEADER)

/*
 * A connection of a rank that has left waits so long for the peer's FIN, and longer only until the peer has
 * received what was sent.
 */
#define SWC_LINGER_MS	2000

/**
 * struct swc_rdma_dev - an RDMA device
 * @ib: the device
 * @lock: guards the next two
 * @conns: connections that use it
 * @nconns: their number
 * @idle: woken when @nconns is 0
 */
struct swc_rdma_dev {
	struct ib_device *ib;
	spinlock_t lock;
	struct list_head conns;
	u32 nconns;
	wait_queue_head_t idle;
};

/* A listener: one per network namespace that has communicators of several nodes. */
struct swc_rdma_listener {
	struct swc_listener base;
	struct list_head node;
	struct net *ns;
	u32 users;
	struct rdma_cm_id *id4;
	struct rdma_cm_id *id6;
};

/**
 * struct swc_rdma_net - the connections of a communicator
 * @base: the common part
 * @memcg: charged for the memory of connections
 * @listener: where peers connect to; has the network namespace
 * @left: bitmap of ranks that have left in order: of this node, and those of other nodes that sent FIN
 * @lock: guards @dead and changes of @conns and @all
 * @dead: no more connections are made
 * @conns: by conn_key(); its own lock guards it for users that cannot take the mutex
 * @all: the same, for iterating: keys are far apart, which makes the xarray slow for that
 * @unexpected: memory that copies of segments take
 * @abort_wq: woken when a peer has been notified of the abort, or cannot be
 * @abort_work: notifies all peers and closes all connections
 * @watch_work: once a second while operations are in flight
 */
struct swc_rdma_net {
	struct swc_net base;
	struct mem_cgroup *memcg;
	struct swc_rdma_listener *listener;
	unsigned long *left;
	struct mutex lock;
	bool dead;
	struct xarray conns;
	struct list_head all;
	struct swc_seg_copy_usage unexpected;
	wait_queue_head_t abort_wq;
	struct work_struct abort_work;
	struct delayed_work watch_work;
};

/* Changes in swc_conn_set_state() only. */
enum swc_conn_state {
	SWC_CONN_IDLE,		/* not connected; the lower rank changes that */
	SWC_CONN_CONNECTING,
	SWC_CONN_RESETTING,	/* an attempt is being taken apart */
	SWC_CONN_LIVE,		/* both sides are authenticated */
	SWC_CONN_CLOSING,	/* nothing is posted or taken from the executor any more */
	SWC_CONN_CLOSED,	/* taken apart; no longer in the net's tables */
};

/* conn->flags, bits: each is set in one place. */
enum swc_conn_flag {
	SWC_CONN_F_PROVEN,	/* the peer is authenticated; until the queue pair is gone (conn.c, qp.c) */
	SWC_CONN_F_DROPPED,	/* the live connection was lost, it fails soon (conn.c) */
	SWC_CONN_F_FAILED,	/* swc_conn_fail() was called (conn.c) */
	SWC_CONN_F_LEAVING,	/* this rank has left (net.c) */
	SWC_CONN_F_PEER_LEFT,	/* FIN has arrived (rx.c) */
	SWC_CONN_F_ABORT_SENT,	/* ABORT is posted, and nothing is posted behind it (tx.c) */
};

/* conn->pending: short messages to send; set by swc_conn_pend(), cleared by tx.c. */
#define SWC_PEND_AUTH	BIT(0)
#define SWC_PEND_CREDIT	BIT(1)
#define SWC_PEND_ABORT	BIT(2)
#define SWC_PEND_FIN	BIT(3)
#define SWC_PEND_KEEPALIVE	BIT(4)	/* CREDIT, even of none: has the peer acknowledge it */
#define SWC_PEND_HEARTBEAT	BIT(5)
#define SWC_PEND_RTS	BIT(6)	/* for a message that waits for its RTR when this is sent */

/**
 * struct swc_sq_entry - one work request in the send queue
 * @cqe: its completion
 * @conn: connection
 * @page: header and small payload, mapped at @page_dma
 * @sge: scatter list
 * @first_mapped, @nmapped: entries of @sge that were mapped for this request
 * @send: message that is free when this completes, or NULL
 * @chunk: chunk that the peer cannot reach any more when this completes, or NULL
 * @is_abort: this is the ABORT
 */
struct swc_sq_entry {
	struct ib_cqe cqe;
	struct swc_rdma_conn *conn;
	void *page;
	u64 page_dma;
	struct ib_sge sge[SWC_MAX_SGE];
	u32 first_mapped;
	u32 nmapped;
	struct swc_send *send;
	struct swc_chunk *chunk;
	bool is_abort;
};

/**
 * struct swc_sq - the send queue of a connection; sq.c changes it, but for @tail, which tx.c advances
 * @entry: SWC_SQ_DEPTH entries
 * @nsge: usable scatter list entries of each
 * @head, @tail: entries posted and completed, free-running
 * @unsignaled: entries posted since the last signaled one
 * @error: posting failed: the connection is unusable
 * @seen_head: @head at the last swc_sq_watch(), and after probes since
 * @idle_s: so many seconds it has been the same
 * @probe_head: @head behind the last probe, until that completes; then not above @tail
 * @map_failing_s: 1 + seconds since memory could first not be mapped for the device; 0: it can be
 * @map_failed: it could not when posting was tried last
 */
struct swc_sq {
	struct swc_sq_entry *entry;
	u32 nsge;
	u32 head;
	u32 tail;
	u32 unsignaled;
	int error;
	u32 seen_head;
	u32 idle_s;
	u32 probe_head;
	u32 map_failing_s;
	bool map_failed;
};

/* A receive buffer: memory that one receive puts a message into. */
struct swc_rx_buf {
	struct ib_cqe cqe;
	void *data;
	u64 dma;
	struct swc_net_seg seg;
};

enum swc_chunk_state { SWC_CHUNK_FREE, SWC_CHUNK_OFFERED, SWC_CHUNK_WRITTEN, SWC_CHUNK_INVALIDATING };

/**
 * struct swc_chunk - a piece of a rendezvous, behind one memory region; rndv.c
 * @state: enum swc_chunk_state
 * @mr: fast registration, unless free
 * @sg, @nents: its pages, mapped for the device
 * @rndv: rendezvous
 * @bytes: length
 */
struct swc_chunk {
	int state;
	struct ib_mr *mr;
	struct scatterlist *sg;
	int nents;
	struct swc_rndv *rndv;
	u32 bytes;
};

/* A chunk that the peer has offered, by its RTR; tx.c. */
struct swc_offer {
	bool valid;
	struct swc_wire_msg msg;
	u64 addr;
	u32 rkey;
	u32 posted;
};

/**
 * struct swc_rdma_conn - the messages between a rank here and one elsewhere, on one channel and path
 *
 * References: the net's tables, each plan that uses it, each segment, each queued work item; a kref,
 * because each is taken and dropped on a path that takes conn->lock anyway, so that percpu_ref would save
 * nothing.
 *
 * @base: the common part
 * @ref: references
 * @net: valid while @comm is
 * @comm: reference, until closed
 * @account, @charged: who is charged for it, and for how many bytes
 * @node: in net->all
 * @me, @peer, @channel, @path: which one
 * @lock: guards what follows, but for the handshake
 * @state: see there
 * @flags: enum swc_conn_flag; atomic
 * @why: reason of the last failed attempt to connect, or of the drop
 * @nfailed: attempts of the lower rank that have failed
 * @pending: SWC_PEND_*
 * @fin_seq: operations that this rank took part in, if it has left
 * @give_up: jiffies until which to connect; after this rank has left, until which to wait for the peer to
 *	receive what was sent
 * @connect_work: swc_cm_connect_work()
 * @close_work: closes the connection
 * @pump_work: swc_tx_pump() for callers that must not call it
 * @dev, @dev_node: device
 * @card: index of the network card here that it uses; 0: not known yet
 * @id, @cq, @pd: the queue pair and what it needs
 * @hello, @accept: the handshake
 * @attempt: number of the last request: made by the lower rank, seen by the higher one
 * @outq: messages not posted to their end
 * @inflight: messages posted, not complete
 * @credits: free receive buffers of the peer
 * @peer_rx_bufs, @peer_rx_buf_bytes: all of them
 * @sq: send queue
 * @offer: of the peer, by chunk number
 * @mismatch: the first that does not fit the message to be written there, or NULL
 * @to_return: credits to return
 * @nrx_bufs, @rx_buf_bytes, @rx_buf: receive buffers, SWC_WIRE_SPARE of them beyond the peer's credits
 * @rx_region: the same as a region, for swc_reduce_copy()
 * @rndvs: rendezvous that are not closed
 * @chunk: by number
 * @chunk_pages: pages of a chunk, at most
 */
struct swc_rdma_conn {
	struct swc_conn base;
	struct kref ref;
	struct swc_rdma_net *net;
	struct swc_comm *comm;
	struct swc_account *account;
	u32 charged;
	struct list_head node;
	u32 me;
	u32 peer;
	u16 channel;
	u16 path;

	spinlock_t lock;
	enum swc_conn_state state;
	unsigned long flags;
	const char *why;
	u32 nfailed;
	u32 pending;
	u64 fin_seq;
	unsigned long give_up;
	struct delayed_work connect_work;
	struct delayed_work close_work;
	struct work_struct pump_work;

	struct swc_rdma_dev *dev;
	struct list_head dev_node;
	int card;
	struct rdma_cm_id *id;
	struct ib_cq *cq;
	struct ib_pd *pd;
	struct swc_wire_hello hello;
	struct swc_wire_accept accept;
	u32 attempt;

	struct list_head outq;
	struct list_head inflight;
	u32 credits;
	u32 peer_rx_bufs;
	u32 peer_rx_buf_bytes;
	struct swc_sq sq;
	struct swc_offer offer[SWC_WIRE_CHUNKS];
	const struct swc_offer *mismatch;

	u32 to_return;
	u32 nrx_bufs;
	u32 rx_buf_bytes;
	struct swc_rx_buf *rx_buf;
	struct swc_region *rx_region;

	struct list_head rndvs;
	struct swc_chunk chunk[SWC_WIRE_CHUNKS];
	u32 chunk_pages;
};

static inline struct swc_rdma_net *swc_rdma_net(struct swc_net *net)
{
	return container_of(net, struct swc_rdma_net, base);
}

static inline struct workqueue_struct *swc_conn_wq(const struct swc_rdma_conn *conn)
{
	return conn->net->base.params.wq;
}

static inline struct swc_rdma_conn *swc_rdma_conn(struct swc_conn *conn)
{
	return container_of(conn, struct swc_rdma_conn, base);
}

/* The oldest operation in flight, see struct swc_net_window. */
static inline u64 swc_net_oldest(const struct swc_rdma_net *net)
{
	return READ_ONCE(net->base.params.window->oldest);
}

/* buffers.c */
extern unsigned int rx_bufs_param;
extern unsigned int rx_buf_kib_param;
int swc_buffers_check_parameters(void);
u32 swc_buffers_bytes(void);
int swc_buffers_alloc(struct swc_rdma_conn *conn);
void swc_buffers_free(struct swc_rdma_conn *conn);
int swc_buffers_map(struct swc_rdma_conn *conn);
void swc_buffers_unmap(struct swc_rdma_conn *conn);

/* conn.c */
bool swc_conn_set_state(struct swc_rdma_conn *conn, enum swc_conn_state from, enum swc_conn_state to);
int swc_conn_charge(struct swc_rdma_conn *conn, const struct swc_net *net);
void swc_conn_pend(struct swc_rdma_conn *conn, u32 pending);
void swc_rdma_conn_put(struct swc_rdma_conn *conn);
void swc_conn_pump_later(struct swc_rdma_conn *conn);
void swc_conn_close(struct swc_rdma_conn *conn, unsigned int delay_ms);
void swc_conn_go_live(struct swc_rdma_conn *conn);
bool swc_conn_card_down(const struct swc_rdma_conn *conn, char *text, size_t bytes);
void swc_conn_fail(struct swc_rdma_conn *conn, int error, const char *fmt, ...) __printf(3, 4);
unsigned long swc_conn_backoff(u32 failed, unsigned long left);
void swc_conn_retry(struct swc_rdma_conn *conn, const char *why, int detail);
void swc_conn_wc_failed(struct swc_rdma_conn *conn, const struct ib_wc *wc);

/* sq.c */
static inline u32 swc_sq_room(const struct swc_sq *sq)
{
	return SWC_SQ_DEPTH - (sq->head - sq->tail);
}

static inline bool swc_sq_is_idle(const struct swc_sq *sq)
{
	return sq->head == sq->tail;
}

struct swc_sq_entry *swc_sq_next(struct swc_rdma_conn *conn);
struct swc_wire_header *swc_sq_header(struct swc_rdma_conn *conn, struct swc_sq_entry *entry,
				      enum swc_wire_kind kind);
void swc_sq_post(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, struct ib_send_wr *wr, bool signal);
void swc_sq_post_probe(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, struct ib_send_wr *wr);
u32 swc_sq_watch(struct swc_rdma_conn *conn, u32 probe_s, bool active);
void swc_sq_map_failed(struct swc_rdma_conn *conn);
u32 swc_sq_map(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, u32 first, const struct swc_span *span,
	       u32 max_bytes, u32 *nsge);
void swc_sq_unmap(struct swc_rdma_conn *conn, struct swc_sq_entry *entry);
void swc_sq_reset(struct swc_rdma_conn *conn);

/* rndv.c */
int swc_rndv_setup(struct swc_rdma_conn *conn);
void swc_rndv_teardown(struct swc_rdma_conn *conn);
bool swc_rndv_post(struct swc_rdma_conn *conn);
int swc_rndv_written(struct swc_rdma_conn *conn, u32 chunk, struct swc_rndv **done);
void swc_rndv_invalidated(struct swc_rdma_conn *conn, struct swc_chunk *c, struct list_head *closed);

/* tx.c */
void swc_tx_pump(struct swc_rdma_conn *conn, bool nested);
void swc_tx_pump_work(struct work_struct *work);
void swc_tx_send(struct swc_conn *base, struct swc_send *send);
void swc_tx_post_rndv(struct swc_conn *base, struct swc_rndv *rndv);
int swc_tx_add_credits(struct swc_rdma_conn *conn, u32 credits);
int swc_tx_add_offer(struct swc_rdma_conn *conn, const struct swc_wire_msg *msg);
void swc_tx_done(struct ib_cq *cq, struct ib_wc *wc);

/* rx.c */
int swc_rx_post(struct swc_rdma_conn *conn, struct swc_rx_buf *rx_buf);
void swc_rx_release(struct swc_net_seg *seg);
struct swc_net_seg *swc_rx_copy_unexpected(struct swc_net_seg *seg);
void swc_rx_done(struct ib_cq *cq, struct ib_wc *wc);

/* device.c */
int swc_dev_init(void);
void swc_dev_exit(void);
struct swc_rdma_dev *swc_dev_get(struct ib_device *ib, struct swc_rdma_conn *conn);
void swc_dev_put(struct swc_rdma_conn *conn);

/* qp.c */
int swc_qp_setup(struct swc_rdma_conn *conn, struct rdma_cm_id *id);
void swc_qp_teardown(struct swc_rdma_conn *conn);

/* cm.c */
int swc_cm_check_parameters(void);
u32 swc_cm_answer_ms(u32 attempts);
int swc_cm_set_ack_timeout(struct rdma_cm_id *id);
void swc_cm_set_peer_rx_bufs(struct swc_rdma_conn *conn, __le16 rx_bufs, __le16 rx_buf_kib);
void swc_cm_connect_work(struct work_struct *work);
int swc_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);

/* watch.c */
void swc_watch_work(struct work_struct *work);
void swc_watch_start(struct swc_net *base);
void swc_watch_pump(struct swc_net *base);
void swc_watch_heartbeat(struct swc_net *base, u32 peer);
const char *swc_watch_trouble(struct swc_net *base, u32 peer);
int swc_watch_card_down(struct swc_net *base, u32 peer, char *text, size_t bytes);

/* net.c */
extern u32 swc_abort_ms;
struct swc_rdma_conn *swc_net_find_conn(struct swc_rdma_net *net, u32 me, u32 peer, u16 channel, u16 path);
struct swc_conn *swc_net_get_conn(struct swc_net *base, u32 me, u32 peer, u16 channel, u16 path);
void swc_net_start_abort(struct swc_net *net);
void swc_net_start_leave(struct swc_net *base, u32 rank, u64 seq, bool last);
struct swc_net *swc_net_alloc(const struct swc_net_params *params, const struct swc_node_path *paths,
			      u32 npaths, struct swc_listener *listener);
void swc_net_destroy(struct swc_net *base);

/* listen.c */
extern u32 swc_auth_ms;
int swc_listen_check_parameters(void);
u32 swc_listen_port(void);
struct swc_listener *swc_listen_start(const struct swc_transport *transport);
void swc_listen_stop(struct swc_listener *listener);

#endif /* SWC_RDMA_RDMA_H */
