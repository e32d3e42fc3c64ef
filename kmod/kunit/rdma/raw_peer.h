/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A peer that connects to a communicator without being a member: an RDMA connection by hand, which can send
 * anything.
 */
#ifndef SWC_KUNIT_RAW_PEER_H
#define SWC_KUNIT_RAW_PEER_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "core/wire.h"

#define SWC_T_ACCEPTS	8

struct swc_comm;
struct swc_t_recv;

/**
 * struct swc_t_raw_peer - one connection
 * @out: a page to send from
 * @hello, @accept: the handshake so far
 * @comm: communicator whose id it knows
 * @event: the last one of the connection manager; @event_done is completed with it
 * @reject: refusal that it got
 * @recv: its receives, see swc_t_received()
 */
struct swc_t_raw_peer {
	struct kunit *test;
	void *out;
	struct swc_wire_hello hello;
	struct swc_wire_accept accept;
	const struct swc_comm *comm;
	struct completion event_done;
	int event;
	struct swc_wire_reject reject;

	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct swc_t_recv *recv;
	u64 out_dma;
};

/* A request as a member makes it, from @src to @dst; and its MAC, after a change. */
void swc_t_hello(const struct swc_comm *comm, u32 src, u32 dst, struct swc_wire_hello *h);
void swc_t_sign(const struct swc_comm *comm, struct swc_wire_hello *h);

struct swc_t_raw_peer *swc_t_raw_peer(struct kunit *test);
void swc_t_raw_peer_end(struct swc_t_raw_peer *peer);
/* Connect; returns the event that this ends with. */
int swc_t_connect(struct swc_t_raw_peer *peer, const void *hello, u32 bytes);
/* The reason why a request is refused; 0: it is accepted. */
int swc_t_refused(struct kunit *test, const struct swc_wire_hello *h, u32 bytes);

/**
 * struct swc_t_forger - a host that answers requests in the name of a node, and does not know the id
 * @refusal: its first answers, one after the other
 * @n: how many
 * @accept: its next answers: it accepts the connection
 * @accepts: how many, at most SWC_T_ACCEPTS
 * @sent: how many answers it has sent
 * @error: the first one of a call that sends an answer
 * @done: a request has come after the last answer; it is refused, without private data
 */
struct swc_t_forger {
	const struct swc_wire_reject *refusal;
	u32 n;
	const struct swc_wire_accept *accept;
	u32 accepts;
	u32 sent;
	int error;
	struct completion done;
	struct rdma_cm_id *id;

	struct ib_pd *pd;
	struct ib_cq *cq;
	struct rdma_cm_id *accepted[SWC_T_ACCEPTS];
};

/* Requests of @comm to @node go to the forger until the end. */
void swc_t_forge(struct swc_t_forger *forger, struct kunit *test, const struct swc_comm *comm, u32 node);
void swc_t_forge_end(struct swc_t_forger *forger, const struct swc_comm *comm, u32 node);
/* The MAC of AUTH. */
void swc_t_auth(struct swc_t_raw_peer *peer, void *mac);
/*
 * Send the first bytes of @out, and invalidate a key; write them, with immediate data or without. All wait
 * for the completion, even of a failure.
 */
void swc_t_send_raw(struct swc_t_raw_peer *peer, u32 bytes);
void swc_t_send_invalidating(struct swc_t_raw_peer *peer, u32 bytes, u32 rkey);
void swc_t_write_raw(struct swc_t_raw_peer *peer, u64 addr, u32 bytes, u32 imm);
void swc_t_write_quietly(struct swc_t_raw_peer *peer, u64 addr, u32 bytes);
/* The i-th message that was received, and its size; waits for it. */
const void *swc_t_received(struct swc_t_raw_peer *peer, u32 i, u32 *bytes);
/* From now on nothing is answered, not even by the device. */
void swc_t_fall_silent(struct swc_t_raw_peer *peer);

#endif /* SWC_KUNIT_RAW_PEER_H */
