/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages between nodes, as the executor and the transport see them.
 *
 * The executor gives messages (struct swc_out) and memory for them (struct swc_landing) to a connection, and
 * gets segments (struct swc_seg) and news through struct swc_net_ops. Everything that it has given comes back
 * exactly once, at the latest when the connection is closed.
 */
#ifndef SWC_NET_H
#define SWC_NET_H

#include <linux/err.h>
#include <linux/list.h>

#include "core/wire.h"
#include "mem/reduce_copy.h"
#include "swingcoll.h"

struct swc_conn;
struct swc_listener;
struct swc_net;
struct swc_run;

/**
 * struct swc_out - a message to another node
 * @node: for the connection
 * @run, @step: who sends, in which step; told by swc_net_ops.sent
 * @peer: to whom
 * @seq, @ordinal, @bytes: which message
 * @stored: the receiver stores it
 * @span: where it lies
 * @posted: bytes handed to the device so far
 * @done: its memory is free
 */
struct swc_out {
	struct list_head node;
	struct swc_run *run;
	u32 step;
	u32 peer;
	u32 ordinal;
	u64 seq;
	bool stored;
	bool done;
	struct swc_span span;
	u64 bytes;
	u64 posted;
};

/**
 * struct swc_landing - memory that a message is written into by its sender
 * @node: for the connection
 * @run: who receives; told by swc_net_ops.written and swc_net_ops.landed
 * @seq, @ordinal, @bytes: which message
 * @src: from whom
 * @span: where it is to lie
 * @offered: bytes offered to the sender so far
 * @landed: bytes that are there
 * @withdrawn: bytes that the sender cannot reach any more
 * @step: of the run
 * @done: all bytes are there
 */
struct swc_landing {
	struct list_head node;
	struct swc_run *run;
	u64 seq;
	u32 ordinal;
	u32 src;
	struct swc_span span;
	u64 bytes;
	u64 offered;
	u64 landed;
	u64 withdrawn;
	u32 step;
	bool done;
};

/**
 * struct swc_seg - a segment that has arrived; to be given back by swc_conn_release()
 * @node: free for whoever has it
 * @conn: where it came from
 * @src, @dst, @channel: between whom
 * @msg: what its header says; @msg.payload is aligned to 64 bytes
 * @span: the payload
 * @spilled: it is not in a landing slot, but in memory of its own
 */
struct swc_seg {
	struct list_head node;
	struct swc_conn *conn;
	u32 src;
	u32 dst;
	u16 channel;
	struct swc_wire_msg msg;
	struct swc_span span;
	bool spilled;
};

/**
 * struct swc_net_ops - what a transport tells; all in process context, with no locks held
 * @deliver: a segment has come
 * @sent: a message's memory is not needed any more (@error 0), or it never arrived; @nested: it happened
 *	while the executor sent or released something, who must not be made to do more inside of that
 * @written: all of a landing has been written; the bytes can be used
 * @landed: its sender cannot write there any more, or never will
 * @differs: @src offers memory for something else than is sent to it
 * @wants: @src has waited for a while for memory to write a message of this operation to
 * @comm_by_name: the communicator that a peer asks for, and that @rank is here, with a reference, or NULL
 * @lost: the peer or the way to it has failed; ends the communicator
 * @left: the peer has left in order, after @seq operations
 * @came: the peer has come to @n operations so far
 */
struct swc_net_ops {
	void (*deliver)(struct swc_comm *comm, struct swc_seg *seg);
	void (*sent)(struct swc_out *out, int error, bool nested);
	void (*written)(struct swc_landing *landing);
	void (*landed)(struct swc_landing *landing, int error);
	void (*differs)(struct swc_comm *comm, u32 src, const struct swc_wire_msg *msg);
	void (*wants)(struct swc_comm *comm, u32 src, const struct swc_wire_msg *msg);
	struct swc_comm *(*comm_by_name)(const u8 *name, u32 rank);
	void (*lost)(struct swc_comm *comm, int error, int culprit, u64 seq, const char *text);
	void (*left)(struct swc_comm *comm, u32 rank, u64 seq);
	void (*came)(struct swc_comm *comm, u32 rank, u64 n);
};

#ifdef SWC_RDMA

int swc_rdma_init(const struct swc_net_ops *ops);
void swc_rdma_stop(void);
void swc_rdma_exit(void);
u32 swc_rdma_port(void);

struct swc_listener *swc_net_listen(void);
void swc_net_deafen(struct swc_listener *listener);
struct swc_net *swc_net_create(struct swc_comm *comm, const struct swc_node_path *paths, u32 npaths,
			       struct swc_listener *listener);
void swc_net_free(struct swc_net *net);
u32 swc_net_npaths(const struct swc_net *net, u32 node);
void swc_net_pump(struct swc_net *net);
void swc_net_watch(struct swc_net *net);
void swc_net_ask(struct swc_net *net, u32 peer);
const char *swc_net_trouble(struct swc_net *net, u32 peer);
int swc_net_card_down(struct swc_net *net, u32 peer, char *text, size_t bytes);
void swc_net_abort(struct swc_net *net);
void swc_net_leave(struct swc_net *net, u32 rank, u64 seq);

struct swc_conn *swc_conn_get(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path);
void swc_conn_put(struct swc_conn *conn);
void swc_conn_send(struct swc_conn *conn, struct swc_out *out);
void swc_conn_land(struct swc_conn *conn, struct swc_landing *landing);
void swc_conn_release(struct swc_seg *seg);
struct swc_seg *swc_conn_spill(struct swc_seg *seg);

#else /* a kernel without RDMA: no communicator has a network, so nothing below is ever called */

static inline int swc_rdma_init(const struct swc_net_ops *ops) { return 0; }
static inline void swc_rdma_stop(void) { }
static inline void swc_rdma_exit(void) { }
static inline u32 swc_rdma_port(void) { return 0; }

static inline struct swc_listener *swc_net_listen(void) { return ERR_PTR(-EOPNOTSUPP); }
static inline void swc_net_deafen(struct swc_listener *listener) { }

static inline struct swc_net *swc_net_create(struct swc_comm *comm, const struct swc_node_path *paths,
					     u32 npaths, struct swc_listener *listener)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void swc_net_free(struct swc_net *net) { }
static inline u32 swc_net_npaths(const struct swc_net *net, u32 node) { return 0; }
static inline void swc_net_pump(struct swc_net *net) { }
static inline void swc_net_watch(struct swc_net *net) { }
static inline void swc_net_ask(struct swc_net *net, u32 peer) { }
static inline const char *swc_net_trouble(struct swc_net *net, u32 peer) { return NULL; }
static inline int swc_net_card_down(struct swc_net *net, u32 peer, char *text, size_t bytes)
{
	return -1;
}

static inline void swc_net_abort(struct swc_net *net) { }
static inline void swc_net_leave(struct swc_net *net, u32 rank, u64 seq) { }

static inline struct swc_conn *swc_conn_get(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void swc_conn_put(struct swc_conn *conn) { }
static inline void swc_conn_send(struct swc_conn *conn, struct swc_out *out) { }
static inline void swc_conn_land(struct swc_conn *conn, struct swc_landing *landing) { }
static inline void swc_conn_release(struct swc_seg *seg) { }

static inline struct swc_seg *swc_conn_spill(struct swc_seg *seg)
{
	return NULL;
}

#endif

#endif /* SWC_NET_H */
