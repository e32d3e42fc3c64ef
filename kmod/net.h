/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages between nodes, as the executor and the communicator see them.
 *
 * The executor gives messages (struct swc_send) and receive memory (struct swc_rndv) to a connection;
 * segments (struct swc_net_seg) and other events come back through struct swc_net_ops. The connection
 * returns everything that it was given exactly once, at the latest when it is closed.
 *
 * What all connections have in common is in net/. What differs is a transport, struct swc_transport in
 * net/conn.h; the path between two nodes says which one their connections use.
 */
#ifndef SWC_NET_H
#define SWC_NET_H

#include <linux/list.h>

#include "core/wire.h"
#include "mem/reduce_copy.h"
#include "swingcoll.h"

struct swc_account;
struct swc_conn;
struct swc_listener;
struct swc_net;
struct swc_task;
struct swc_transport;

/**
 * struct swc_net_window - the operations in flight, for the queue policy of transports
 *
 * Embedded in the communicator. The executor writes it under comm->lock with WRITE_ONCE(); transports
 * read it with READ_ONCE() and no lock. When an operation ends, swc_net_pump() has them look again.
 *
 * @oldest: number of the oldest operation that has not finished, U64_MAX: none
 * @oldest_call: of those that are not partitions, U64_MAX: none
 * @npartitioned: partitions that have not finished
 */
struct swc_net_window {
	u64 oldest;
	u64 oldest_call;
	u32 npartitioned;
};

/**
 * struct swc_net_params - a communicator, as its net sees it
 *
 * Constant. The pointers stay valid as long as the communicator, which outlives its net.
 *
 * @comm: passed to struct swc_net_ops
 * @window: see there
 * @id: SWC_ID_BYTES, the shared secret
 * @nranks: ranks
 * @rank_node: node of each rank
 * @here: this node
 * @account: charged for connections
 * @wq: for work items of connections; its owner's alone
 * @abort_wq: for work items that wait for those
 * @timeout_ms: for connecting, and for peers to receive what a rank sent before it left
 */
struct swc_net_params {
	struct swc_comm *comm;
	const struct swc_net_window *window;
	const u8 *id;
	u32 nranks;
	const u32 *rank_node;
	u32 here;
	u32 timeout_ms;
	struct swc_account *account;
	struct workqueue_struct *wq;
	struct workqueue_struct *abort_wq;
};

/* Why a communicator was aborted; @text, for swc_text_read(), stays valid as long as the communicator. */
struct swc_net_abort {
	int error;
	int culprit;
	u64 seq;
	const char *text;
};

/**
 * struct swc_send - a message to another node
 * @node: for the connection
 * @task, @step: the sender; transports only compare them, and pass them to swc_net_ops.send_done
 * @peer: destination rank
 * @seq, @ordinal, @bytes: which message
 * @sig: signature of its operation
 * @stored: the receiver stores it
 * @span: where it lies
 * @posted: bytes handed to the device so far
 * @counted: it is in the statistics
 * @done: its memory is free
 */
struct swc_send {
	struct list_head node;
	struct swc_task *task;
	u32 step;
	u32 peer;
	u32 ordinal;
	u64 seq;
	const struct swc_signature *sig;
	bool stored;
	bool counted;
	bool done;
	struct swc_span span;
	u64 bytes;
	u64 posted;
};

/**
 * struct swc_rndv - memory that the sender writes a message into (rendezvous)
 * @node: for the connection
 * @task: the receiver; not used by transports, but for swc_net_ops.rndv_done and .rndv_closed
 * @seq, @ordinal, @bytes: which message
 * @sig: signature of its operation
 * @src: source rank
 * @span: its destination
 * @offered: bytes offered to the sender so far
 * @received: bytes written
 * @closed: bytes that the sender cannot reach any more
 * @step: of the task
 * @done: all bytes are written
 */
struct swc_rndv {
	struct list_head node;
	struct swc_task *task;
	u64 seq;
	const struct swc_signature *sig;
	u32 ordinal;
	u32 src;
	struct swc_span span;
	u64 bytes;
	u64 offered;
	u64 received;
	u64 closed;
	u32 step;
	bool done;
};

/**
 * struct swc_net_poll - the completions of a connection, for processes that handle them, see net/waiter.c
 *
 * Process context, without locks, but for @begin.
 *
 * @node: in net->deferred
 * @poll: a process was given this: handle what has come. Called once
 * @begin: a process is going to call @look again and again, until it calls @end; false: another one does.
 *	Any context
 * @look: handle what has come, unless somebody else is about to. True: something had
 * @end: the process stops; it may handle what has come since it looked last
 */
struct swc_net_poll {
	struct list_head node;
	void (*poll)(struct swc_net_poll *poll);
	bool (*begin)(struct swc_net_poll *poll);
	bool (*look)(struct swc_net_poll *poll);
	void (*end)(struct swc_net_poll *poll);
};

/* One that only @poll can be called of. */
static inline void swc_net_poll_init(struct swc_net_poll *poll, void (*handle)(struct swc_net_poll *poll))
{
	*poll = (struct swc_net_poll){ .poll = handle };
	INIT_LIST_HEAD(&poll->node);
}

/**
 * struct swc_net_waiter - a process that can handle what arrives for it, see net/waiter.c
 * @wake: wake it if it sleeps, so that it calls swc_net_wait_end() soon; false if it does not. Interrupts.
 * @conn: connection that it waits for, with a reference, or NULL
 * @given: what it is to poll, or NULL
 */
struct swc_net_waiter {
	bool (*wake)(struct swc_net_waiter *waiter);
	struct swc_conn *conn;
	struct swc_net_poll *given;
};

/**
 * struct swc_net_seg - a segment that has arrived; its user returns it with swc_conn_release()
 * @node: for its user
 * @conn: connection it came by
 * @src, @dst, @channel: between which ranks
 * @msg: its header; @msg.payload is aligned to 64 bytes. If the segment has several messages, that of the
 *	first one that is not consumed, by swc_net_seg_next()
 * @span: the payload of @msg
 * @unexpected: a copy in memory of its own, not in a receive buffer
 */
struct swc_net_seg {
	struct list_head node;
	struct swc_conn *conn;
	u32 src;
	u32 dst;
	u16 channel;
	struct swc_wire_msg msg;
	struct swc_span span;
	bool unexpected;
};

/* A message of a segment is consumed: go on to the next one. False: it was the last. */
static inline bool swc_net_seg_next(struct swc_net_seg *seg)
{
	u32 bytes = seg->msg.bytes;

	if (!swc_wire_next(&seg->msg))
		return false;
	seg->span.offset += bytes;
	return true;
}

/**
 * struct swc_net_ops - events from a transport
 *
 * Called in process context. @get, @put and @progress may be called under any lock of net/, @send_done and
 * @rndv_closed under net->lock.
 *
 * @segment: a segment has arrived
 * @send_done: the memory of a message is free (@error 0), or it has not arrived; @nested: the executor is in
 *	a call that sends or releases something, and must not be made to do more work inside it
 * @rndv_done: all bytes are written and can be used
 * @rndv_closed: the sender cannot write there any more
 * @mismatch: @src offers memory for another message than the one to be sent
 * @rts: @src has waited for a while for memory to write a message of this operation to
 * @drop_unexpected: release all segments that wait for operations of this communicator
 * @get, @put: reference on a communicator
 * @find: the net that has this name and @rank on its node, with a reference on its communicator; NULL: none
 * @progress: number of the operation that a rank of this node calls next; takes no locks
 * @peer_lost: the peer or the way to it has failed; aborts the communicator
 * @peer_left: the peer has left in order, after @seq operations
 * @peer_progress: the peer has reported the same of itself
 * @path_changed: a connection of @rank with @peer leaves the path, or takes it
 */
struct swc_net_ops {
	void (*segment)(struct swc_comm *comm, struct swc_net_seg *seg);
	void (*send_done)(struct swc_send *send, int error, bool nested);
	void (*rndv_done)(struct swc_rndv *rndv);
	void (*rndv_closed)(struct swc_rndv *rndv, int error);
	void (*mismatch)(struct swc_comm *comm, u32 src, const struct swc_wire_msg *msg);
	void (*rts)(struct swc_comm *comm, u32 src, const struct swc_wire_msg *msg);
	void (*drop_unexpected)(struct swc_comm *comm);
	void (*get)(struct swc_comm *comm);
	void (*put)(struct swc_comm *comm);
	struct swc_net *(*find)(const u8 *name, u32 rank);
	u64 (*progress)(const struct swc_comm *comm, u32 rank);
	void (*peer_lost)(struct swc_comm *comm, int error, int culprit, u64 seq, const char *text);
	void (*peer_left)(struct swc_comm *comm, u32 rank, u64 seq);
	void (*peer_progress)(struct swc_comm *comm, u32 rank, u64 next_seq);
	void (*path_changed)(struct swc_comm *comm, u32 rank, u32 channel, u32 peer, u32 path, bool taken);
};

/* Events of all nets; set by swc_transports_init(). */
extern const struct swc_net_ops *swc_net_ops;

/* ------------------------------------------------------------------ transports (net/transport.c) */

/* The transports of this module; which of them are built in depends on the kernel's configuration. */
extern const struct swc_transport swc_rdma_transport;
extern const struct swc_transport swc_tcp_transport;
extern const struct swc_transport swc_tls_transport;

int swc_transports_init(const struct swc_transport *const *list, const struct swc_net_ops *ops);
void swc_transports_stop(void);
u32 swc_transport_port(enum swc_transport_kind kind);

/* Parameters of paths (net/path.c). */
int swc_paths_check_parameters(void);

/*
 * The paths from this node to others, by node and number, and what is known of each; where those of a node
 * begin, with one entry more at the end (net/path.c).
 */
struct swc_path_table {
	struct swc_node_path *path;
	struct swc_path_health *health;
	u32 *first;
};

u64 swc_path_table_bytes(u32 npaths, u32 nranks);
int swc_path_table_read(struct swc_path_table *t, const void __user *paths, u32 npaths, u32 nranks, u32 here);
void swc_path_table_free(struct swc_path_table *t);

/* Look out for network cards that go down (net/cards.c). */
int swc_cards_init(void);
void swc_cards_exit(void);

/* ------------------------------------------------------------------ nets (net/net.c, net/listen.c) */

/* The listeners of a net: one for each kind of transport that its paths use. */
struct swc_listeners {
	struct swc_listener *of[SWC_TRANSPORT_NR];
};

int swc_listeners_start(struct swc_listeners *l, const struct swc_node_path *paths, u32 npaths);
void swc_listeners_stop(struct swc_listeners *l);

struct swc_net *swc_net_create(const struct swc_net_params *params, struct swc_path_table *paths,
			       struct swc_listeners *listeners);
void swc_net_free(struct swc_net *net);
const u8 *swc_net_name(const struct swc_net *net);
u32 swc_net_npaths(const struct swc_net *net, u32 node);
u32 swc_net_conn_bytes(const struct swc_net *net, u32 node, u16 path);
void swc_net_abort(struct swc_net *net, const struct swc_net_abort *abort);
void swc_net_leave(struct swc_net *net, u32 rank, u64 seq, bool last);

/* ------------------------------------------------------------------ silent peers (net/watch.c) */

void swc_net_pump(struct swc_net *net);
void swc_net_watch(struct swc_net *net);
void swc_net_heartbeat(struct swc_net *net, u32 peer);
bool swc_net_trouble(struct swc_net *net, u32 peer, char *text, size_t bytes);
int swc_net_card_down(struct swc_net *net, u32 peer, char *text, size_t bytes);

/* ------------------------------------------------------------------ connections (net/conn.c, net/tx.c) */

struct swc_conn *swc_conn_get(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path);
void swc_conn_put(struct swc_conn *conn);
void swc_conn_send(struct swc_conn *conn, struct swc_send *send, bool more);
void swc_conn_flush(struct swc_conn *conn);
void swc_conn_post_rndv(struct swc_conn *conn, struct swc_rndv *rndv, bool more);
void swc_conn_release(struct swc_net_seg *seg);
struct swc_net_seg *swc_conn_copy_unexpected(struct swc_net_seg *seg);

/* ------------------------------------------------------------------ waiting for messages (net/waiter.c) */

void swc_net_wait(struct swc_net_waiter *waiter, struct swc_conn *conn);
struct swc_net_poll *swc_net_wait_end(struct swc_net_waiter *waiter);
struct swc_net_poll *swc_net_poll_begin(struct swc_conn *conn);
void swc_net_poller_begin(struct swc_net *net);
void swc_net_poller_end(struct swc_net *net);
bool swc_net_handle_deferred(struct swc_net *net);
void swc_net_expedite(struct swc_net *net);

#endif /* SWC_NET_H */
