/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all connections between nodes have in common, and the transport as what differs. Each file calls only
 * those below it:
 *
 *	listen.c	listeners, by network namespace
 *	request.c	connection requests of peers: accept or refuse
 *	net.c		the connections of a communicator: making, closing, abort, leaving
 *	watch.c		silent peers, network cards that are down
 *	cards.c		network cards that go down
 *	reply.c		connecting: requests to peers, and their replies
 *	rx.c		messages in
 *	tx.c		messages out
 *	resume.c	a connection that has lost its path goes on by another
 *	waiter.c	processes that handle what arrives for them
 *	conn.c		state, references and failure of a connection
 *	path.c		paths to other nodes, and which of them are well
 *	transport.c	the transports that are built in
 *	auth.c, tombstone.c, seg_copy.c, policy.h	for all of these
 *
 * Transports call these; they call a transport through struct swc_transport only.
 *
 * Locks: net->lock (mutex) > the xarray's lock > conn->lock (RDMA posts under it) > net->list_lock;
 * conn->waiter_lock is the innermost. nets_mutex (cards.c) is outside the xarray's lock. Under net->lock
 * messages may be returned to the executor; nothing else calls out of net/ and the transports under a lock,
 * but for swc_net_ops.get, .put and .progress, the waiter's wake(), and handlers of RDMA completions, which
 * run under the mutex of their queue (rdma/cq.c).
 */
#ifndef SWC_NET_CONN_H
#define SWC_NET_CONN_H

#include <linux/bitops.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "net.h"
#include "net/seg_copy.h"

struct mem_cgroup;
struct net;

#define SWC_HEADER	sizeof(struct swc_wire_header)

/*
 * A connection of a rank that has left waits so long for the peer's FIN, and longer only until the peer has
 * received what was sent.
 */
#define SWC_LINGER_MS	2000
/* But no longer than this: nothing of the communicator must stay for ever. */
#define SWC_LEAVE_MS	30000u

/**
 * struct swc_listener - accepts connections; one per transport and network namespace; a transport embeds it
 * @transport: whose
 * @node: in the list of all (net/listen.c)
 * @ns: network namespace
 * @users: nets
 */
struct swc_listener {
	const struct swc_transport *transport;
	struct list_head node;
	struct net *ns;
	u32 users;
};

/* In the order in which paths are tried. */
enum swc_path_state {
	SWC_PATH_WELL,		/* the peer has answered by it, or nobody has tried it yet */
	SWC_PATH_TRIED,		/* an attempt has begun, and nobody has answered since */
	SWC_PATH_LOST,		/* it has failed, and nobody has answered since */
};

/* A connection asks whether it is well again (path.c). */
#define SWC_PATH_F_ASKED	0

/*
 * Is a path well? @failed: how often something was lost by it, or not answered, since it was well for long.
 * @until: jiffies; until then no connection asks whether it is well again. @tried: when the last attempt by
 * it began, or it failed. @flags: SWC_PATH_F_*. Written without a lock: hints for new attempts.
 */
struct swc_path_health {
	u32 failed;
	unsigned long until;
	unsigned long tried;
	unsigned long flags;
	enum swc_path_state state;
};

/**
 * struct swc_net - the connections of a communicator
 * @params: the communicator
 * @name, @places: what identifies the communicator to other nodes, see core/wire.h
 * @refusal_key: authenticates refusals to connect, see there
 * @paths: to other nodes
 * @abort: valid if @aborted
 * @aborted: written once, by swc_net_abort()
 * @ns: network namespace; valid while there are @listeners
 * @listeners: where peers connect to
 * @memcg: charged for the memory of connections
 * @left: bitmap of ranks that have left in order: of this node, and those of other nodes that sent FIN
 * @lock: guards @dead and changes of @conns and @all
 * @dead: no more connections are made
 * @conns: by conn_key(); its own lock guards it for users that cannot take the mutex
 * @all: the same, for iterating: keys are far apart, which makes the xarray slow for that
 * @list_lock: guards the next three
 * @stalled: connections with messages that an operation which ends may let go
 * @nattempts: attempts to connect that have begun and not ended
 * @turns: connections that wait for one of them to end
 * @deferred_lock: guards @deferred; interrupts take it
 * @deferred: what has arrived and is left for a process (waiter.c)
 * @ndeferred: entries of it
 * @deferred_timer, @deferred_work: have it handled if none comes
 * @npollers: processes that are about to look for it
 * @unexpected: memory that copies of segments take
 * @abort_wq: woken when a peer has been notified of the abort, or cannot be
 * @abort_work: notifies all peers and closes all connections
 * @watch_work: once a second while operations are in flight
 * @cards_node: in the list of all (net/cards.c)
 */
struct swc_net {
	struct swc_net_params params;
	u8 name[SWC_WIRE_NAME];
	__le32 places;
	u8 refusal_key[SWC_WIRE_MAC];
	struct swc_path_table paths;
	struct swc_net_abort abort;
	bool aborted;
	struct net *ns;
	struct swc_listeners listeners;
	struct mem_cgroup *memcg;
	unsigned long *left;
	struct mutex lock;
	bool dead;
	struct xarray conns;
	struct list_head all;
	spinlock_t list_lock;
	struct list_head stalled;
	u32 nattempts;
	struct list_head turns;
	spinlock_t deferred_lock;
	struct list_head deferred;
	u32 ndeferred;
	struct timer_list deferred_timer;
	struct work_struct deferred_work;
	atomic_t npollers;
	struct swc_seg_copy_usage unexpected;
	wait_queue_head_t abort_wq;
	struct work_struct abort_work;
	struct delayed_work watch_work;
	struct list_head cards_node;
};

/* Changes in swc_conn_set_state() only. */
enum swc_conn_state {
	SWC_CONN_IDLE,		/* not connected; the lower rank changes that, the higher one may ask it */
	SWC_CONN_CONNECTING,
	SWC_CONN_RESETTING,	/* an attempt, or a path that was lost, is being taken apart */
	SWC_CONN_LIVE,		/* both sides are authenticated */
	SWC_CONN_CLOSING,	/* nothing is sent or taken from the executor any more */
	SWC_CONN_CLOSED,	/* taken apart; no longer in the net's tables */
};

/* For tracepoints. */
#define SWC_CONN_STATE_NAMES						\
	{ SWC_CONN_IDLE, "idle" }, { SWC_CONN_CONNECTING, "connecting" },	\
	{ SWC_CONN_RESETTING, "resetting" }, { SWC_CONN_LIVE, "live" },	\
	{ SWC_CONN_CLOSING, "closing" }, { SWC_CONN_CLOSED, "closed" }

/* conn->flags, bits: each is set in one place. */
enum swc_conn_flag {
	SWC_CONN_F_PROVEN,	/* the peer is authenticated; until the attempt is taken apart (conn.c) */
	SWC_CONN_F_STARTED,	/* it has been live (conn.c) */
	SWC_CONN_F_DROPPED,	/* the live connection was lost: it fails soon, or is resumed (conn.c) */
	SWC_CONN_F_MISSED,	/* the attempt has failed, and what follows is queued (conn.c) */
	SWC_CONN_F_FAILED,	/* swc_conn_fail() was called (conn.c) */
	SWC_CONN_F_LEAVING,	/* this rank has left (net.c) */
	SWC_CONN_F_PEER_LEFT,	/* FIN has arrived (rx.c) */
	SWC_CONN_F_UNHEARD,	/* only AUTH may be sent before the peer's first message (reply.c) */
	SWC_CONN_F_ABORT_SENT,	/* ABORT is sent, and nothing is sent behind it (tx.c) */
};

/* conn->pending: short messages to send; set by swc_conn_pend(), cleared by tx.c. */
#define SWC_PEND_AUTH	BIT(0)
#define SWC_PEND_CREDIT	BIT(1)
#define SWC_PEND_ABORT	BIT(2)
#define SWC_PEND_FIN	BIT(3)
#define SWC_PEND_KEEPALIVE	BIT(4)	/* CREDIT, even of none: has the peer acknowledge it */
#define SWC_PEND_HEARTBEAT	BIT(5)
#define SWC_PEND_RTS	BIT(6)	/* for a message that waits for its RTR when this is sent */
#define SWC_PEND_GROWN	BIT(7)
#define SWC_PEND_REPLY	BIT(8)	/* CREDIT, even of none: the reply to HEARTBEAT or RTS */

/* A chunk of a rendezvous that the peer has offered, by its RTR. @posted: bytes of it that were sent. */
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
 * A transport embeds it at the beginning of its own struct.
 *
 * References: the net's tables, each plan that uses it, each segment, each queued work item; a kref,
 * because each is taken and dropped on a path that takes conn->lock anyway, so that percpu_ref would save
 * nothing.
 *
 * @transport: whose
 * @ref: references
 * @net: valid while @comm is
 * @comm: reference, until closed
 * @account, @charged: who is charged for it, and for how many bytes
 * @node: in net->all
 * @stalled: in net->stalled, or empty; net->list_lock, likewise the next two
 * @turn: in net->turns, or empty
 * @attempting: it is one of net->nattempts
 * @me, @peer, @channel, @path: which one
 * @via: the path that carries it, or the last attempt; @path, unless that has failed
 * @resumable: it may go on by another path; constant once it is live
 * @lock: guards what follows, but for the handshake
 * @state: see there
 * @flags: enum swc_conn_flag; atomic
 * @connect_error: why the last attempt to connect failed; NULL: none has, or it is live
 * @drop_reason: why it last left its path: that was lost, or given up for another; NULL: it never has
 * @nfailed: attempts that have failed since it was live
 * @pending: SWC_PEND_*
 * @probe_open: HEARTBEAT or RTS was sent, and the reply has not come
 * @fin_seq: operations that this rank took part in, if it has left
 * @give_up: jiffies until which to connect, or to resume; after this rank has left, until which to wait for
 *	the peer to receive what was sent
 * @lost_at: jiffies at which it was last lost
 * @connect_work: next attempt to connect, or failure of a connection that was dropped, or its resumption; of
 *	one that is live, it drops it if the peer has not been heard of
 * @path_work: asks whether a path is well again
 * @close_work: closes the connection
 * @pump_work: transport->pump() for callers that must not call it
 * @card: index of the network card here that it uses; 0: not known yet
 * @hello, @accept: the handshake
 * @attempt: number of the last request: made by the lower rank, seen by the higher one
 * @outq: messages not sent to their end
 * @corked: more messages follow at once, see swc_conn_send()
 * @inflight: messages sent, not complete
 * @nsent: what was sent, but for probes, in a measure of the transport
 * @seen: @nsent a second ago
 * @idle_s: seconds in which it has been the same
 * @silent_s: seconds in which the lower rank has not connected, since it was asked
 * @credits: free receive buffers of the peer
 * @peer_rx_bufs, @peer_rx_buf_bytes: all of them
 * @offer: of the peer, by chunk number
 * @mismatch: the first that does not fit the message to be written there, or NULL
 * @rx_bufs: receive buffers here, those that credits count
 * @grown_bytes: their size, for GROWN
 * @to_return: credits to return
 * @rndvs: rendezvous that are not closed
 * @waiter_lock: guards the next two; see waiter.c
 * @waiter: process that sleeps until a message arrives, or NULL
 * @poll: where processes look for messages that they poll for; NULL: they cannot
 */
struct swc_conn {
	const struct swc_transport *transport;
	struct kref ref;
	struct swc_net *net;
	struct swc_comm *comm;
	struct swc_account *account;
	u32 charged;
	struct list_head node;
	struct list_head stalled;
	struct list_head turn;
	bool attempting;
	u32 me;
	u32 peer;
	u16 channel;
	u16 path;
	u16 via;
	bool resumable;

	spinlock_t lock;
	enum swc_conn_state state;
	unsigned long flags;
	const char *connect_error;
	const char *drop_reason;
	u32 nfailed;
	u32 pending;
	bool probe_open;
	u64 fin_seq;
	unsigned long give_up;
	unsigned long lost_at;
	struct delayed_work connect_work;
	struct work_struct path_work;
	struct delayed_work close_work;
	struct work_struct pump_work;

	int card;
	struct swc_wire_hello hello;
	struct swc_wire_accept accept;
	u32 attempt;

	struct list_head outq;
	bool corked;
	struct list_head inflight;
	u32 nsent;
	u32 seen;
	u32 idle_s;
	u32 silent_s;
	u32 credits;
	u32 peer_rx_bufs;
	u32 peer_rx_buf_bytes;
	struct swc_offer offer[SWC_WIRE_CHUNKS];
	const struct swc_offer *mismatch;

	u32 rx_bufs;
	u32 grown_bytes;
	u32 to_return;
	struct list_head rndvs;

	spinlock_t waiter_lock;
	struct swc_net_waiter *waiter;
	struct swc_net_poll *poll;
};

/**
 * struct swc_transport - a way to reach other nodes
 *
 * Functions may sleep unless said otherwise.
 *
 * @port: module parameter: port that other nodes connect to
 * @rx_bufs, @rx_buf_kib: receive buffers of a new connection that credits count, and the payload that each
 *	has room for
 * @init: check parameters, allocate; 0 or a negative errno
 * @stop: NULL, or all connections end now; called before the last communicators are freed
 *
 * @listen: accept connections in a network namespace, pass their requests to swc_request(); sets the
 *	listener's transport and namespace first. -EADDRINUSE, -ENOMEM
 * @unlisten: undo that; no request is being handled when it returns
 *
 * @conn_bytes: memory of a new connection, about
 * @conn_alloc: zeroed struct that begins with struct swc_conn; NULL: no memory
 * @conn_free: its last reference is gone
 * @auth_ms: time that a peer has for AUTH, at least
 *
 * @connect: of the lower rank: begin an attempt. Its end is reported by swc_reply_accepted(),
 *	swc_reply_refused() or swc_conn_retry()
 * @adopt: of the higher rank: @request of swc_request() belongs to the connection. Under conn->lock; does not
 *	sleep
 * @suspend: NULL: connections of this transport fail with their path. Ends an attempt to connect, or the use
 *	of the path: what has arrived is handled, what was sent and may not have arrived is kept, and so is
 *	everything else. Nothing arrives any more when this returns
 * @received: NULL, or how much of what the peer has sent has arrived, since the connection began: in bytes or
 *	messages
 * @resume: NULL, or the peer has received so much: send again from there, in state LIVE. 0 or -EPROTO
 * @answers: NULL, or does the peer's node answer by a path? Takes a fraction of a second at most
 * @resume_ms: NULL, or module parameter: time to resume a connection
 * @settle: NULL, or a live connection was dropped: handle what has arrived by it. Returns when that is done,
 *	whoever does it
 * @quiesce: end an attempt to connect, or a connection; nothing is sent any more, and the transport does not
 *	touch any memory that it was given when this returns
 * @teardown: NULL, or free what is left, which may take long
 * @pump: send all that can be sent. @nested: the executor is the caller; no locks held
 * @all_received: has the peer received all that was sent? Under conn->lock; does not sleep
 * @probe_s: idle seconds until a peer is probed
 * @watch: called once a second while operations wait. Returns whether a probe may be sent: what was sent
 *	before is acknowledged. Under conn->lock; does not sleep
 * @release: the receive buffer of a segment is free. Under conn->lock; does not sleep
 */
struct swc_transport {
	const unsigned int *port;
	const unsigned int *rx_bufs;
	const unsigned int *rx_buf_kib;
	int (*init)(void);
	void (*stop)(void);

	struct swc_listener *(*listen)(const struct swc_transport *transport, struct net *ns);
	void (*unlisten)(struct swc_listener *listener);

	u32 (*conn_bytes)(void);
	struct swc_conn *(*conn_alloc)(void);
	void (*conn_free)(struct swc_conn *conn);
	u32 (*auth_ms)(void);

	void (*connect)(struct swc_conn *conn);
	void (*adopt)(struct swc_conn *conn, void *request);
	void (*suspend)(struct swc_conn *conn);
	u64 (*received)(const struct swc_conn *conn);
	int (*resume)(struct swc_conn *conn, u64 received);
	bool (*answers)(const struct swc_conn *conn, const struct swc_node_path *path);
	const unsigned int *resume_ms;
	void (*settle)(struct swc_conn *conn);
	void (*quiesce)(struct swc_conn *conn);
	void (*teardown)(struct swc_conn *conn);
	void (*pump)(struct swc_conn *conn, bool nested);
	bool (*all_received)(const struct swc_conn *conn);
	u32 (*probe_s)(void);
	bool (*watch)(struct swc_conn *conn);
	void (*release)(struct swc_conn *conn, struct swc_net_seg *seg);
};

static inline struct workqueue_struct *swc_conn_wq(const struct swc_conn *conn)
{
	return conn->net->params.wq;
}

/* A net without connections. */
static inline void swc_net_init_conns(struct swc_net *net)
{
	mutex_init(&net->lock);
	xa_init(&net->conns);
	INIT_LIST_HEAD(&net->all);
	spin_lock_init(&net->list_lock);
	INIT_LIST_HEAD(&net->stalled);
	INIT_LIST_HEAD(&net->turns);
}

/* The oldest operation in flight, see struct swc_net_window. */
static inline u64 swc_net_oldest(const struct swc_net *net)
{
	return READ_ONCE(net->params.window->oldest);
}

static inline bool swc_net_is_local(const struct swc_net *net, u32 rank)
{
	return net->params.rank_node[rank] == net->params.here;
}

static inline const struct swc_node_path *swc_net_path(const struct swc_net *net, u32 node, u32 path)
{
	return &net->paths.path[net->paths.first[node] + path];
}

/* The path that carries the connection, or the attempt. */
static inline const struct swc_node_path *swc_conn_path(const struct swc_conn *conn)
{
	return swc_net_path(conn->net, conn->net->params.rank_node[conn->peer], READ_ONCE(conn->via));
}

/* path.c */
bool swc_path_has_other(const struct swc_net *net, u32 node, u16 path);
u16 swc_path_choose(const struct swc_conn *conn);
u16 swc_path_by_address(const struct swc_conn *conn, const struct sockaddr *local,
			const struct sockaddr *remote);
int swc_path_card(const struct swc_net *net, const struct swc_node_path *path);
int swc_path_to_ask(const struct swc_conn *conn, bool *claimed);
void swc_path_asked(const struct swc_conn *conn, u16 path, bool claimed, bool answers);
void swc_path_failed(const struct swc_conn *conn, u16 path);
void swc_path_given_up(const struct swc_conn *conn, u16 path);
void swc_path_tried(const struct swc_conn *conn, u16 path);
void swc_path_well(const struct swc_conn *conn, u16 path);

/* transport.c */
const struct swc_transport *swc_transport_get(u32 kind);

/* Has an operation something to send by it, or offered memory for something to come? conn->lock is held. */
static inline bool swc_conn_is_wanted(const struct swc_conn *conn)
{
	return !list_empty(&conn->outq) || !list_empty(&conn->rndvs);
}

/* The same, or has what is sent not been returned? */
static inline bool swc_conn_is_used(const struct swc_conn *conn)
{
	return swc_conn_is_wanted(conn) || !list_empty(&conn->inflight);
}

/* conn.c */
bool swc_conn_has_unsent(const struct swc_conn *conn);
bool swc_conn_set_state(struct swc_conn *conn, enum swc_conn_state from, enum swc_conn_state to);
int swc_conn_charge(struct swc_conn *conn, const struct swc_net *net);
int swc_conn_charge_more(struct swc_conn *conn, u32 bytes);
void swc_conn_uncharge(struct swc_conn *conn, u32 bytes);
void swc_conn_pend(struct swc_conn *conn, u32 pending);
void swc_conn_pump_later(struct swc_conn *conn);
void swc_conn_pump_work(struct work_struct *work);
void swc_conn_close(struct swc_conn *conn, unsigned int delay_ms);
void swc_conn_quiesce(struct swc_conn *conn);
void swc_conn_teardown(struct swc_conn *conn);
void swc_conn_go_live(struct swc_conn *conn);
bool swc_conn_card_down(const struct swc_conn *conn, char *text, size_t bytes);
void swc_conn_fail(struct swc_conn *conn, int error, const char *fmt, ...) __printf(3, 4);
unsigned long swc_conn_backoff(u32 failed, unsigned long left);
void swc_conn_retry(struct swc_conn *conn, const char *reason, int detail);
void swc_conn_attempt(struct swc_conn *conn);
void swc_conn_attempt_over(struct swc_conn *conn);

/* cards.c */
void swc_cards_watch(struct swc_net *net);
void swc_cards_forget(struct swc_net *net);

/* resume.c */
bool swc_resume_begin(struct swc_conn *conn);
bool swc_resume_suspend(struct swc_conn *conn);
void swc_resume_connect(struct swc_conn *conn);
void swc_resume_await(struct swc_conn *conn);
bool swc_resume_may_ask(const struct swc_conn *conn);
void swc_resume_ask(struct swc_conn *conn);
void swc_resume_path_work(struct work_struct *work);
void swc_resume_drop(struct swc_conn *conn, const char *reason);
void swc_resume_replaced(struct swc_conn *conn);
int swc_resume_from(struct swc_conn *conn, u64 received);
u64 swc_resume_received(const struct swc_conn *conn);

/* tx.c */
#define SWC_SHORT_BYTES	(sizeof(struct swc_wire_header) + sizeof(struct swc_wire_abort))

/* What swc_tx_short() has made. A probe is sent only because the connection is idle. */
struct swc_tx_short {
	u32 bytes;
	bool is_probe;
	bool is_abort;
	bool is_fin;
};

/**
 * struct swc_tx_pump - one go at sending
 * @done: messages whose memory is free
 * @known: an offer that did not fit before
 * @mismatched: one does not fit now: its communicator, with a reference; @msg: its RTR
 * @idle: the peer has left, and nothing is to be sent any more
 */
struct swc_tx_pump {
	struct list_head done;
	const struct swc_offer *known;
	struct swc_comm *mismatched;
	struct swc_wire_msg msg;
	bool idle;
};

void swc_tx_header(struct swc_conn *conn, struct swc_wire_header *h, enum swc_wire_kind kind);
void swc_tx_data(struct swc_conn *conn, struct swc_wire_header *h, const struct swc_send *send, u32 bytes);
void swc_tx_rtr(struct swc_conn *conn, struct swc_wire_header *h, const struct swc_rndv *rndv, u32 bytes);
bool swc_tx_short(struct swc_conn *conn, struct swc_wire_header *h, struct swc_tx_short *made);
bool swc_tx_is_direct(const struct swc_send *send);
struct swc_offer *swc_tx_find_offer(struct swc_conn *conn, const struct swc_send *send);
bool swc_tx_offer_fits(struct swc_conn *conn, const struct swc_send *send, const struct swc_offer *o);
bool swc_tx_is_blocked(struct swc_conn *conn);
bool swc_tx_has_credit(struct swc_conn *conn, const struct swc_send *send);
struct swc_rndv *swc_tx_next_rndv(struct swc_conn *conn, u32 nfree);
u32 swc_tx_segment_bytes(const struct swc_conn *conn, const struct swc_send *send);
void swc_tx_sent(struct swc_conn *conn, struct swc_send *send, struct list_head *done);
u32 swc_tx_count_several(const struct swc_conn *conn, const struct swc_send *send, u32 room);
u32 swc_tx_several(struct swc_conn *conn, struct swc_wire_header *h, struct swc_send *send, u32 n,
		   struct list_head *done);
void swc_tx_take_back(struct swc_conn *conn, struct swc_send *send, u64 bytes);
void swc_tx_forget_offers(struct swc_conn *conn);
void swc_tx_copy_span(void *to, const struct swc_span *span, u32 bytes);
void swc_tx_begin(struct swc_conn *conn, struct swc_tx_pump *p);
void swc_tx_review(struct swc_conn *conn, struct swc_tx_pump *p);
void swc_tx_conclude(struct swc_conn *conn, struct swc_tx_pump *p, bool nested);
int swc_tx_add_credits(struct swc_conn *conn, u32 credits);
int swc_tx_add_offer(struct swc_conn *conn, const struct swc_wire_msg *msg);

/* rx.c */
int swc_rx_parse(struct swc_conn *conn, const struct swc_wire_header *h, const void *payload, u32 bytes,
		 struct swc_wire_msg *msg);
void swc_rx_data(struct swc_conn *conn, struct swc_net_seg *seg, const struct swc_wire_msg *msg);
bool swc_rx_written(struct swc_rndv *rndv, u32 bytes);
int swc_rx_short(struct swc_conn *conn, const struct swc_wire_msg *msg);
void swc_rx_failed(struct swc_conn *conn, bool proven, int error);

/* reply.c */
void swc_reply_connect_work(struct work_struct *work);
void swc_reply_hello(struct swc_conn *conn);
void swc_reply_set_peer_rx_bufs(struct swc_conn *conn, __le16 rx_bufs, __le16 rx_buf_kib);
bool swc_reply_accepted(struct swc_conn *conn, const void *data, u32 bytes);
bool swc_reply_refused(struct swc_conn *conn, const struct swc_wire_reject *r, u32 bytes, int status);

/* watch.c */
void swc_watch_work(struct work_struct *work);

/* net.c */
extern u32 swc_abort_ms;
struct swc_conn *swc_net_find_conn(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path);
struct swc_conn *swc_net_known_conn(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path);

/* request.c */
extern u32 swc_auth_ms;
struct swc_conn *swc_request(const struct swc_listener *listener, const struct swc_wire_hello *hello,
			     u32 bytes, void *request, struct swc_wire_reject *reject);
void swc_request_put(struct swc_conn *conn);
void swc_request_accept(struct swc_conn *conn, const struct swc_wire_hello *hello);
void swc_request_expect_auth(struct swc_conn *conn);

/* waiter.c */
bool swc_conn_give(struct swc_conn *conn, struct swc_net_poll *poll);
void swc_net_init_deferred(struct swc_net *net);
void swc_net_stop_deferred(struct swc_net *net);
void swc_conn_offer_poll(struct swc_conn *conn, struct swc_net_poll *poll);
void swc_conn_withdraw_poll(struct swc_conn *conn, const struct swc_net_poll *poll);

#endif /* SWC_NET_CONN_H */
