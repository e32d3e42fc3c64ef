/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The transport between nodes: reliable connections by RDMA verbs.
 *
 *	net.c		a communicator's connections: finding, making, ending them
 *	  cm.c		connecting and being connected to, the handshake, taking a connection apart
 *	    send.c	messages out
 *	    receive.c	messages in
 *	      land.c	memory that a peer writes into
 *	      conn.c	a connection's memory and its end
 *	    ended.c	communicators that are no more
 *	    device.c	devices that come and go
 *
 * Locks: net->lock (mutex) > the table's own lock > conn->lock (leaf; posting happens under it). Under the
 * mutex, what connections were given may be given back; nothing calls out under the others.
 */
#ifndef SWC_RDMA_RDMA_H
#define SWC_RDMA_RDMA_H

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

#include "exec/task.h"
#include "../net.h"
#include "mem/region.h"

#define SWC_SQ_DEPTH	32	/* send work requests per connection, a power of two */
#define SWC_SIGNAL	8	/* one in so many is signalled at least */
#define SWC_MAX_SGE	16
/* Mapped for a device as one piece, at most: what every device and every way of bouncing takes. */
#define SWC_MAP_BYTES	max(64ul << 10, PAGE_SIZE)
/* A send record's page: the header, and small messages whole, so that their memory is free at once. */
#define SWC_REC_BYTES	4096
#define SWC_HEADER	sizeof(struct swc_wire_header)
#define SWC_BOUNCE	(SWC_REC_BYTES - SWC_HEADER)

/*
 * Memory that cannot be mapped for the device: so many looks, which are a second apart, must find it so
 * before the communicator ends.
 */
#define SWC_MAP_TRIES	5

/* A peer may take so long to say BYE after we did; longer only until it has taken what we sent. */
#define SWC_LINGER_MS	2000

extern const struct swc_net_ops *swc_net_ops;
extern struct workqueue_struct *swc_net_wq;
extern unsigned int swc_slots;
extern unsigned int swc_slot_kib;

/**
 * struct swc_rdma_dev - an RDMA device
 * @ib: the device
 * @lock: guards the next three
 * @conns: connections that use it
 * @nconns: of them
 * @idle: woken when @nconns is 0
 */
struct swc_rdma_dev {
	struct ib_device *ib;
	spinlock_t lock;
	struct list_head conns;
	u32 nconns;
	wait_queue_head_t idle;
};

/**
 * struct swc_net - the connections of a communicator
 * @comm: the communicator; holds this
 * @memcg: the memory that connections take is on its account
 * @listener: where peers come in; knows the network namespace
 * @first_path: by node: index of its first path in @path; one entry more at the end
 * @path: sorted by node and number
 * @lock: guards @dead and changes of @conns and @all
 * @dead: no more connections
 * @conns: by conn_key(); its own lock guards it for those who may not take the mutex
 * @all: the same, to go through: keys are far apart, and a table of such is slow to walk
 * @spilled: bytes that swc_conn_spill() has taken
 * @told: woken when a peer has been told of the abort
 * @abort_work: tells all and closes
 * @watch_work: once a second, while operations are in flight: finds out whether silent peers live
 */
struct swc_net {
	struct swc_comm *comm;
	struct mem_cgroup *memcg;
	struct swc_listener *listener;
	u32 *first_path;
	struct swc_node_path *path;
	struct mutex lock;
	bool dead;
	struct xarray conns;
	struct list_head all;
	atomic_long_t spilled;
	wait_queue_head_t told;
	struct work_struct abort_work;
	struct delayed_work watch_work;
};

enum swc_conn_state {
	SWC_CONN_IDLE,		/* not connected; the lower rank's job to change that */
	SWC_CONN_CONNECTING,
	SWC_CONN_RESETTING,	/* an attempt is being taken apart */
	SWC_CONN_LIVE,		/* both sides proven */
	SWC_CONN_CLOSING,	/* nothing is posted any more */
};

/* conn->pending: short messages to send as soon as there is room */
#define SWC_PEND_PROOF	BIT(0)
#define SWC_PEND_CREDIT	BIT(1)
#define SWC_PEND_ABORT	BIT(2)
#define SWC_PEND_BYE	BIT(3)
#define SWC_PEND_PROBE	BIT(4)	/* a CREDIT, even of none: only a peer that lives acknowledges it */
#define SWC_PEND_ASK	BIT(5)
#define SWC_PEND_WANT	BIT(6)	/* for a message that still waits for its READY then */

/**
 * struct swc_send_rec - one work request in the send queue
 * @cqe: its completion
 * @conn: whose
 * @page: header and small payload, mapped at @page_dma
 * @sge: scatter list
 * @first_mapped, @nmapped: entries of it that were mapped for this request
 * @out: message of which this is the last
 * @chunk: chunk that this makes unreachable for the peer
 * @told: this is the ABORT
 */
struct swc_send_rec {
	struct ib_cqe cqe;
	struct swc_conn *conn;
	void *page;
	u64 page_dma;
	struct ib_sge sge[SWC_MAX_SGE];
	u32 first_mapped;
	u32 nmapped;
	struct swc_out *out;
	struct swc_chunk *chunk;
	bool told;
};

/* A landing slot: memory that one receive puts a message into. */
struct swc_slot {
	struct ib_cqe cqe;
	void *data;
	u64 dma;
	struct swc_seg seg;
};

enum swc_chunk_state { SWC_CHUNK_FREE, SWC_CHUNK_OFFERED, SWC_CHUNK_WRITTEN, SWC_CHUNK_INVALIDATING };

/**
 * struct swc_chunk - a piece of a landing, behind one memory region
 * @state: enum swc_chunk_state
 * @mr: fast registration
 * @sg, @nents: its pages, mapped for the device
 * @land: whose
 * @bytes: length
 */
struct swc_chunk {
	int state;
	struct ib_mr *mr;
	struct scatterlist *sg;
	int nents;
	struct swc_landing *land;
	u32 bytes;
};

/* A chunk that the peer has offered, by its READY. */
struct swc_offer {
	bool valid;
	struct swc_wire_msg msg;
	u64 addr;
	u32 rkey;
	u32 posted;
};

/**
 * struct swc_conn - the messages between a rank here and one elsewhere, on one channel and path
 *
 * References: the table of the communicator, each link of a plan, each segment out of a slot, work items.
 *
 * @ref: references
 * @net: valid until closed
 * @comm: reference, until closed
 * @node: in the net's list
 * @me, @peer, @channel, @path: which one
 * @lock: guards what follows, but for the handshake
 * @state: enum swc_conn_state
 * @proven: the peer has shown that it knows the id
 * @peer_left: it has said BYE
 * @leaving: so have we
 * @dropped: the connection manager says that it is over
 * @failed: told upward
 * @ended: the ABORT has been posted, and nothing is posted behind it
 * @why: connecting has failed, or the connection was dropped, because of this the last time
 * @pending: SWC_PEND_*
 * @post_error: posting has failed: the connection is of no use
 * @give_up: jiffies when connecting ends, and when the peer must have taken what was sent before leaving
 * @connect_work: (re)connects, or makes ready for the peer to do so; ends it if it was dropped
 * @close_work: ends it
 * @pump_work: swc_conn_pump() for those who must not call it
 * @dev, @dev_node: device
 * @card: index of the network card here that it goes by; 0: not known yet
 * @id, @cq, @pd: connection
 * @hello, @accept: the handshake
 * @outq: messages not all posted
 * @inflight: messages posted, not complete
 * @credits: segments that the peer has slots for
 * @peer_slots, @peer_slot_bytes: its slots
 * @starved: looks, and one, since memory could not be mapped for the device; 0: it could
 * @refused: it could not when posting was tried the last time
 * @sq_head, @sq_tail: send records posted and completed, free-running
 * @quiet: of them since the last signalled one
 * @seen: @sq_head when last looked at, but for probes since
 * @silent: for so many looks it has been the same
 * @asked: @sq_head behind the last probe, until that is complete; then no more than @sq_tail
 * @rec: records
 * @nsge: useful entries of a scatter list
 * @offer: by chunk number
 * @misfit: the first that does not fit what is to be written there, or NULL
 * @to_return: credits to give back
 * @nslots, @slot_bytes, @slot: landing slots, SWC_WIRE_SPARE of which no credit counts
 * @slots: the same as a region, for swc_move()
 * @lands: landings that are not complete
 * @chunk: by number
 */
struct swc_conn {
	struct kref ref;
	struct swc_net *net;
	struct swc_comm *comm;
	struct list_head node;
	u32 me;
	u32 peer;
	u16 channel;
	u16 path;

	spinlock_t lock;
	int state;
	bool proven;
	bool peer_left;
	bool leaving;
	bool dropped;
	bool failed;
	bool ended;
	const char *why;
	u32 pending;
	int post_error;
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

	struct list_head outq;
	struct list_head inflight;
	u32 credits;
	u32 peer_slots;
	u32 peer_slot_bytes;
	u32 starved;
	bool refused;
	u32 sq_head;
	u32 sq_tail;
	u32 quiet;
	u32 seen;
	u32 silent;
	u32 asked;
	struct swc_send_rec *rec;
	u32 nsge;
	struct swc_offer offer[SWC_WIRE_CHUNKS];
	const struct swc_offer *misfit;

	u32 to_return;
	u32 nslots;
	u32 slot_bytes;
	struct swc_slot *slot;
	struct swc_region *slots;

	struct list_head lands;
	struct swc_chunk chunk[SWC_WIRE_CHUNKS];
	u32 chunk_pages;
};

/* How a communicator has ended: error 0, culprit -1: all have left in order. */
struct swc_ending {
	int error;
	int culprit;
};

/* ended.c */
void swc_ended_note(const struct swc_comm *comm);
bool swc_ended_find(const u8 *name, const struct swc_comm *comm, u32 rank, struct swc_ending *ending);

/* device.c */
int swc_dev_init(void);
void swc_dev_exit(void);
struct swc_rdma_dev *swc_dev_take(struct ib_device *ib, struct swc_conn *conn);
void swc_dev_drop(struct swc_conn *conn);

/* net.c */
extern u32 swc_tell_ms;
struct swc_conn *swc_conn_find(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path);
void swc_net_forget(struct swc_conn *conn);
const struct swc_node_path *swc_net_path(const struct swc_net *net, u32 node, u32 path);

/* cm.c */
int swc_conn_check_parameters(void);
u32 swc_conn_probe_s(void);
void swc_conn_retry(struct swc_conn *conn, const char *why, int detail);
void swc_conn_connect(struct work_struct *work);
void swc_conn_take_apart(struct swc_conn *conn);
struct net *swc_listener_ns(const struct swc_listener *listener);
void swc_conn_name(struct swc_comm *comm);
bool swc_conn_proof_ok(struct swc_conn *conn, const void *mac);
void swc_conn_proof(struct swc_conn *conn, void *mac);

/* conn.c */
struct swc_conn *swc_conn_alloc(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path);
int swc_conn_set_up(struct swc_conn *conn, struct rdma_cm_id *id);
void swc_conn_unmap(struct swc_conn *conn);
bool swc_conn_card_down(const struct swc_conn *conn, char *text, size_t bytes);
void swc_conn_fail(struct swc_conn *conn, int error, const char *fmt, ...) __printf(3, 4);
void swc_conn_wc_failed(struct swc_conn *conn, const struct ib_wc *wc);
void swc_conn_close(struct swc_conn *conn, unsigned int delay_ms);
void swc_conn_closed(struct work_struct *work);
void swc_conn_give_back(struct swc_conn *conn, bool closed);

/* send.c */
void swc_conn_go_live(struct swc_conn *conn);
void swc_conn_pump(struct swc_conn *conn, bool nested);
void swc_conn_pump_later(struct swc_conn *conn);
void swc_conn_pump_work(struct work_struct *work);
struct swc_send_rec *swc_conn_rec(struct swc_conn *conn);
void swc_conn_post(struct swc_conn *conn, struct swc_send_rec *rec, struct ib_send_wr *wr, bool signal);
struct swc_wire_header *swc_conn_header(struct swc_conn *conn, struct swc_send_rec *rec,
					enum swc_wire_kind kind);
void swc_conn_starve(struct swc_conn *conn);
void swc_conn_sign(struct swc_wire_header *h, const struct swc_run *run);
void swc_send_unmap(struct swc_conn *conn, struct swc_send_rec *rec);
void swc_send_done(struct ib_cq *cq, struct ib_wc *wc);

/* receive.c */
int swc_recv_post(struct swc_conn *conn, struct swc_slot *slot);
void swc_recv_done(struct ib_cq *cq, struct ib_wc *wc);

/* land.c */
int swc_land_set_up(struct swc_conn *conn);
void swc_land_take_apart(struct swc_conn *conn);
bool swc_land_post(struct swc_conn *conn);
int swc_land_written(struct swc_conn *conn, u32 chunk, struct swc_landing **landing);
struct swc_landing *swc_land_invalidated(struct swc_conn *conn, struct swc_chunk *chunk);

#endif /* SWC_RDMA_RDMA_H */
