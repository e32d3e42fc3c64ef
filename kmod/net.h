/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages between nodes: the interface between the communicator and a transport.
 *
 * The executor gives messages (struct swc_send) and receive memory (struct swc_rndv) to a connection;
 * segments (struct swc_net_seg) and other events come back through struct swc_net_ops. The transport
 * returns everything that it was given exactly once, at the latest when the connection is closed.
 *
 * A transport is a struct swc_transport. It is found by name when a communicator is created; its listeners,
 * nets and connections begin with a pointer to it, and the functions at the end of this file call through
 * that pointer.
 */
#ifndef SWC_NET_H
#define SWC_NET_H

#include <linux/list.h>

#include "core/wire.h"
#include "mem/reduce_copy.h"
#include "swingcoll.h"

struct swc_account;
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
 * struct swc_net_params - a communicator, as its transport sees it
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
 * struct swc_net - the network side of a communicator; a transport embeds it in its own struct
 *
 * Made by transport->net_create(), freed by transport->net_free() when the communicator's last reference is
 * gone. Constant but for the last two.
 *
 * @transport: whose
 * @params: the communicator
 * @name, @places: what identifies the communicator to other nodes, see core/wire.h; set by the transport
 * @conn_bytes: memory of a connection, about; set by the transport
 * @refusal_key: authenticates refusals to connect, see there; likewise
 * @path: sorted by node and number
 * @first_path: by node: index of its first path in @path; one entry more at the end
 * @abort: valid if @aborted
 * @aborted: written once, by swc_net_abort()
 */
struct swc_net {
	const struct swc_transport *transport;
	struct swc_net_params params;
	u8 name[SWC_WIRE_NAME];
	__le32 places;
	u32 conn_bytes;
	u8 refusal_key[SWC_WIRE_MAC];
	struct swc_node_path *path;
	u32 *first_path;
	struct swc_net_abort abort;
	bool aborted;
};

/* A connection, and a listener that accepts connections; a transport embeds them in its own structs. */
struct swc_conn {
	const struct swc_transport *transport;
};

struct swc_listener {
	const struct swc_transport *transport;
};

/**
 * struct swc_send - a message to another node
 * @node: for the connection
 * @task, @step: the sender; not used by transports, but for swc_net_ops.send_done
 * @peer: destination rank
 * @seq, @ordinal, @bytes: which message
 * @sig: signature of its operation
 * @stored: the receiver stores it
 * @span: where it lies
 * @posted: bytes handed to the device so far
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
 * struct swc_net_seg - a segment that has arrived; its user returns it with swc_conn_release()
 * @node: for its user
 * @conn: connection it came by
 * @src, @dst, @channel: between which ranks
 * @msg: its header; @msg.payload is aligned to 64 bytes
 * @span: the payload
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

/**
 * struct swc_net_ops - events from a transport
 *
 * Called in process context with no locks held, but for @progress.
 *
 * @segment: a segment has arrived
 * @send_done: the memory of a message is free (@error 0), or it has not arrived; @nested: the executor is in
 *	a call that sends or releases something, and must not be made to do more work inside it
 * @rndv_done: all bytes are written and can be used
 * @rndv_closed: the sender cannot write there any more
 * @mismatch: @src offers memory for another message than the one to be sent
 * @rts: @src has waited for a while for memory to write a message of this operation to
 * @drop_unexpected: release all segments that wait for operations of this communicator
 * @get, @put: reference on a communicator; @put may be called under the transport's locks
 * @find: the net of @transport that has this name and @rank on its node, with a reference on its
 *	communicator; NULL: none
 * @progress: operations that a rank of this node has submitted; takes no locks
 * @peer_lost: the peer or the way to it has failed; aborts the communicator
 * @peer_left: the peer has left in order, after @seq operations
 * @peer_progress: operations that the peer has submitted
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
	struct swc_net *(*find)(const struct swc_transport *transport, const u8 *name, u32 rank);
	u64 (*progress)(const struct swc_comm *comm, u32 rank);
	void (*peer_lost)(struct swc_comm *comm, int error, int culprit, u64 seq, const char *text);
	void (*peer_left)(struct swc_comm *comm, u32 rank, u64 seq);
	void (*peer_progress)(struct swc_comm *comm, u32 rank, u64 n);
};

/**
 * struct swc_transport - a way to reach other nodes
 *
 * Functions on nets and connections may sleep unless said otherwise.
 *
 * @name: as swc_transport_find() takes it
 * @init: check parameters, allocate; 0 or a negative errno
 * @stop: all connections end now; called before the last communicators are freed
 * @port: port that other nodes connect to
 *
 * @listen: accept connections in the caller's network namespace; -EADDRINUSE, -ENOMEM
 * @unlisten: undo that
 * @net_create: the net of a communicator that is being created; owns @listener on success. -EINVAL if paths
 *	or addresses are invalid, -ENOMEM
 * @net_free: all connections are closed: they hold references on the communicator
 * @net_pump: an operation has ended: messages that waited for that may be sent. Does not sleep
 * @net_watch: an operation is in flight: probe silent peers until there is none. Does not sleep
 * @net_heartbeat: have a peer report its progress, if there is a live connection. Does not sleep
 * @net_trouble: why there is no live connection with a peer; NULL: there is one. Does not sleep
 * @net_card_down: if the network card here by which @peer is reached is down: says so in @text and returns
 *	the rank of this node that is cut off; -1 otherwise. Does not sleep
 * @net_abort: swc_net.aborted has been set: tell the peers, return everything, close. Does not sleep
 * @net_leave: a rank of this node has left in order, after @seq operations; @last: all have
 *
 * @conn_get: the connection to a peer, with a reference. Starts to connect, does not wait for it. -EDQUOT:
 *	a limit of the user does not allow one more; -ENOMEM, -ECONNABORTED
 * @conn_put: drop that reference
 * @send: send a message. Does not sleep
 * @post_rndv: receive a message by rendezvous. Does not sleep
 * @release: a segment has been consumed
 * @copy_unexpected: copy a segment out of its receive buffer; the caller then releases the original. NULL:
 *	no memory
 */
struct swc_transport {
	const char *name;
	int (*init)(void);
	void (*stop)(void);
	u32 (*port)(void);

	struct swc_listener *(*listen)(void);
	void (*unlisten)(struct swc_listener *listener);
	struct swc_net *(*net_create)(const struct swc_net_params *params, const struct swc_node_path *paths,
				      u32 npaths, struct swc_listener *listener);
	void (*net_free)(struct swc_net *net);
	void (*net_pump)(struct swc_net *net);
	void (*net_watch)(struct swc_net *net);
	void (*net_heartbeat)(struct swc_net *net, u32 peer);
	const char *(*net_trouble)(struct swc_net *net, u32 peer);
	int (*net_card_down)(struct swc_net *net, u32 peer, char *text, size_t bytes);
	void (*net_abort)(struct swc_net *net);
	void (*net_leave)(struct swc_net *net, u32 rank, u64 seq, bool last);

	struct swc_conn *(*conn_get)(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path);
	void (*conn_put)(struct swc_conn *conn);
	void (*send)(struct swc_conn *conn, struct swc_send *send);
	void (*post_rndv)(struct swc_conn *conn, struct swc_rndv *rndv);
	void (*release)(struct swc_net_seg *seg);
	struct swc_net_seg *(*copy_unexpected)(struct swc_net_seg *seg);
};

/* The transports of this module; which of them are built in depends on the kernel's configuration. */
extern const struct swc_transport swc_rdma_transport;

/* Set by swc_transports_init(). */
extern const struct swc_net_ops *swc_net_ops;

int swc_transports_init(const struct swc_transport *const *list, u32 n, const struct swc_net_ops *ops);
void swc_transports_stop(void);
const struct swc_transport *swc_transport_find(const char *name);

/* For transports: the common part of their nets. */
int swc_net_init(struct swc_net *net, const struct swc_transport *transport,
		 const struct swc_net_params *params, const struct swc_node_path *paths, u32 npaths);
void swc_net_fini(struct swc_net *net);

static inline const struct swc_node_path *swc_net_path(const struct swc_net *net, u32 node, u32 path)
{
	return &net->path[net->first_path[node] + path];
}

static inline bool swc_net_is_local(const struct swc_net *net, u32 rank)
{
	return net->params.rank_node[rank] == net->params.here;
}

/* ------------------------------------------------------------------ for users of a transport */

/* Port that RDMA connections come in at; 0: no RDMA in this kernel. */
static inline u32 swc_rdma_port(void)
{
	const struct swc_transport *transport = swc_transport_find("rdma");

	return transport ? transport->port() : 0;
}

static inline void swc_listener_stop(struct swc_listener *listener)
{
	listener->transport->unlisten(listener);
}

static inline struct swc_net *swc_net_create(const struct swc_net_params *params,
					     const struct swc_node_path *paths, u32 npaths,
					     struct swc_listener *listener)
{
	return listener->transport->net_create(params, paths, npaths, listener);
}

static inline void swc_net_free(struct swc_net *net)
{
	net->transport->net_free(net);
}

/* Number of paths to a node. */
static inline u32 swc_net_npaths(const struct swc_net *net, u32 node)
{
	return net->first_path[node + 1] - net->first_path[node];
}

static inline void swc_net_pump(struct swc_net *net)
{
	net->transport->net_pump(net);
}

static inline void swc_net_watch(struct swc_net *net)
{
	net->transport->net_watch(net);
}

static inline void swc_net_heartbeat(struct swc_net *net, u32 peer)
{
	net->transport->net_heartbeat(net, peer);
}

static inline const char *swc_net_trouble(struct swc_net *net, u32 peer)
{
	return net->transport->net_trouble(net, peer);
}

static inline int swc_net_card_down(struct swc_net *net, u32 peer, char *text, size_t bytes)
{
	return net->transport->net_card_down(net, peer, text, bytes);
}

void swc_net_abort(struct swc_net *net, const struct swc_net_abort *abort);

static inline void swc_net_leave(struct swc_net *net, u32 rank, u64 seq, bool last)
{
	net->transport->net_leave(net, rank, seq, last);
}

static inline struct swc_conn *swc_conn_get(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path)
{
	return net->transport->conn_get(net, me, peer, channel, path);
}

static inline void swc_conn_put(struct swc_conn *conn)
{
	conn->transport->conn_put(conn);
}

static inline void swc_conn_send(struct swc_conn *conn, struct swc_send *send)
{
	conn->transport->send(conn, send);
}

static inline void swc_conn_post_rndv(struct swc_conn *conn, struct swc_rndv *rndv)
{
	conn->transport->post_rndv(conn, rndv);
}

static inline void swc_conn_release(struct swc_net_seg *seg)
{
	seg->conn->transport->release(seg);
}

static inline struct swc_net_seg *swc_conn_copy_unexpected(struct swc_net_seg *seg)
{
	return seg->conn->transport->copy_unexpected(seg);
}

#endif /* SWC_NET_H */
