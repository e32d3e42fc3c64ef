/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Somebody who connects to a communicator without being a member: an RDMA connection by hand, which can say
 * anything.
 */
#ifndef SWC_KUNIT_STRANGER_H
#define SWC_KUNIT_STRANGER_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "core/wire.h"

struct swc_comm;

/**
 * struct swc_t_stranger - one connection
 * @out: a page to send from
 * @hello, @accept: the handshake, as far as it came
 * @comm: whose id it knows
 * @event: of the connection manager, the last one; told by @news
 * @reason: enum swc_wire_reason of a refusal
 */
struct swc_t_stranger {
	struct kunit *test;
	void *out;
	struct swc_wire_hello hello;
	struct swc_wire_accept accept;
	const struct swc_comm *comm;
	struct completion news;
	int event;
	int reason;

	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_cqe cqe;
	void *in;
	u64 out_dma;
	u64 in_dma;
};

/* A request as a member would make it, from @src to @dst; and its authentication anew. */
void swc_t_hello(const struct swc_comm *comm, u32 src, u32 dst, struct swc_wire_hello *h);
void swc_t_sign(const struct swc_comm *comm, struct swc_wire_hello *h);

struct swc_t_stranger *swc_t_stranger(struct kunit *test);
void swc_t_stranger_end(struct swc_t_stranger *s);
/* The event that it ended with. */
int swc_t_connect(struct swc_t_stranger *s, const void *hello, u32 bytes);
/* Why a request is refused; 0: it is not. */
int swc_t_refused(struct kunit *test, const struct swc_wire_hello *h, u32 bytes);
/* The proof that @s knows @comm's id. */
void swc_t_prove(struct swc_t_stranger *s, void *mac);
/*
 * Send from the beginning of @out; write, with immediate or without. All wait until it is done or has failed.
 */
void swc_t_send_raw(struct swc_t_stranger *s, u32 bytes);
void swc_t_write_raw(struct swc_t_stranger *s, u64 addr, u32 bytes, u32 imm);
void swc_t_write_quietly(struct swc_t_stranger *s, u64 addr, u32 bytes);
/* From now on nothing is answered, not even by the device. */
void swc_t_fall_silent(struct swc_t_stranger *s);

#endif /* SWC_KUNIT_STRANGER_H */
