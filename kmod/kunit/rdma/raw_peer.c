// SPDX-License-Identifier: GPL-2.0-only
/*
 * An RDMA connection by hand: what the module's own side of one does, without believing in its rules.
 */
#include <crypto/blake2s.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>

#include "compat.h"
#include "kunit/harness.h"
#include "kunit/rdma/raw_peer.h"

#define RECVS	64
#define WAIT	(10 * HZ)

/* ------------------------------------------------------------------ the handshake */

void swc_t_sign(const struct swc_comm *comm, struct swc_wire_hello *h)
{
	struct swc_compat_blake2s state;

	blake2s_init_key(&state, SWC_WIRE_MAC, comm->id, SWC_ID_BYTES);
	blake2s_update(&state, (const u8 *)h, offsetof(struct swc_wire_hello, mac));
	blake2s_final(&state, h->mac);
}

void swc_t_hello(const struct swc_comm *comm, u32 src, u32 dst, struct swc_wire_hello *h)
{
	*h = (struct swc_wire_hello){
		.magic = cpu_to_le32(SWC_WIRE_MAGIC),
		.version = cpu_to_le16(SWC_WIRE_VERSION),
		.places = comm->places,
		.src = cpu_to_le32(src),
		.dst = cpu_to_le32(dst),
		.slots = cpu_to_le16(16),
		.slot_kib = cpu_to_le16(32),
	};
	memcpy(h->name, comm->name, SWC_WIRE_NAME);
	get_random_bytes(h->nonce, sizeof(h->nonce));
	swc_t_sign(comm, h);
}

void swc_t_prove(struct swc_t_stranger *s, void *mac)
{
	struct swc_compat_blake2s state;

	blake2s_init_key(&state, SWC_WIRE_MAC, s->comm->id, SWC_ID_BYTES);
	blake2s_update(&state, (const u8 *)&s->hello, sizeof(s->hello));
	blake2s_update(&state, (const u8 *)&s->accept, sizeof(s->accept));
	blake2s_update(&state, "swingcoll proof", 15);
	blake2s_final(&state, mac);
}

/* ------------------------------------------------------------------ the connection */

static int handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct swc_t_stranger *s = id->context;
	const struct swc_wire_reject *r;
	u8 len = 0;

	/* Nobody waits for these. */
	if (event->event == RDMA_CM_EVENT_DISCONNECTED || event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT)
		return 0;
	s->event = event->event;
	if (event->event == RDMA_CM_EVENT_REJECTED) {
		r = rdma_consumer_reject_data(id, event, &len);
		if (r && len >= sizeof(*r) && le32_to_cpu(r->magic) == SWC_WIRE_MAGIC)
			s->reason = le16_to_cpu(r->reason);
	} else if (event->event == RDMA_CM_EVENT_ESTABLISHED &&
		   event->param.conn.private_data_len >= sizeof(s->accept)) {
		memcpy(&s->accept, event->param.conn.private_data, sizeof(s->accept));
	}
	complete(&s->news);
	return 0;
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
}

struct sent {
	struct ib_cqe cqe;
	struct completion done;
};

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct sent, cqe)->done);
}

static void wait_for(struct swc_t_stranger *s, int event)
{
	KUNIT_ASSERT_GT(s->test, wait_for_completion_timeout(&s->news, WAIT), 0ul);
	KUNIT_ASSERT_EQ(s->test, s->event, event);
}

static void set_up_queues(struct swc_t_stranger *s)
{
	struct ib_device *ib = s->id->device;
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = 8, .max_recv_wr = RECVS + 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};
	struct kunit *test = s->test;
	struct ib_recv_wr wr = { .wr_cqe = &s->cqe, .num_sge = 1 };
	struct ib_sge sge;
	u32 i;

	s->pd = ib_alloc_pd(ib, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(s->pd));
	s->cq = ib_alloc_cq_any(ib, s, RECVS + 16, IB_POLL_UNBOUND_WORKQUEUE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(s->cq));
	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	KUNIT_ASSERT_EQ(test, rdma_create_qp(s->id, s->pd, &init), 0);
	s->out_dma = ib_dma_map_single(ib, s->out, PAGE_SIZE, DMA_TO_DEVICE);
	s->in_dma = ib_dma_map_single(ib, s->in, PAGE_SIZE, DMA_FROM_DEVICE);
	s->cqe.done = recv_done;
	sge = (struct ib_sge){ .addr = s->in_dma, .length = PAGE_SIZE,
			       .lkey = s->pd->local_dma_lkey };
	wr.sg_list = &sge;
	for (i = 0; i < RECVS; i++)
		KUNIT_ASSERT_EQ(test, ib_post_recv(s->id->qp, &wr, NULL), 0);
}

struct swc_t_stranger *swc_t_stranger(struct kunit *test)
{
	struct swc_t_stranger *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct sockaddr_storage addr, local;

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->test = test;
	init_completion(&s->news);
	s->out = (void *)get_zeroed_page(GFP_KERNEL);
	s->in = (void *)get_zeroed_page(GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, s->out && s->in);
	swc_t_addr(&addr, false);
	swc_t_addr(&local, false);
	((struct sockaddr_in *)&local)->sin_port = 0;
	s->id = rdma_create_id(&init_net, handler, s, RDMA_PS_TCP, IB_QPT_RC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(s->id));
	KUNIT_ASSERT_EQ(test, rdma_resolve_addr(s->id, (struct sockaddr *)&local,
						(struct sockaddr *)&addr, 2000), 0);
	wait_for(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	/*
	 * Half a second, with all attempts: it often speaks to somebody who has hung up. Both sides take it.
	 */
	KUNIT_ASSERT_EQ(test, rdma_set_ack_timeout(s->id, 14), 0);
	KUNIT_ASSERT_EQ(test, rdma_resolve_route(s->id, 2000), 0);
	wait_for(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
	set_up_queues(s);
	return s;
}

void swc_t_stranger_end(struct swc_t_stranger *s)
{
	struct ib_device *ib = s->id->device;

	rdma_disconnect(s->id);
	ib_drain_qp(s->id->qp);
	rdma_destroy_qp(s->id);
	ib_free_cq(s->cq);
	ib_dma_unmap_single(ib, s->out_dma, PAGE_SIZE, DMA_TO_DEVICE);
	ib_dma_unmap_single(ib, s->in_dma, PAGE_SIZE, DMA_FROM_DEVICE);
	ib_dealloc_pd(s->pd);
	rdma_destroy_id(s->id);
	free_page((unsigned long)s->out);
	free_page((unsigned long)s->in);
}

int swc_t_connect(struct swc_t_stranger *s, const void *hello, u32 bytes)
{
	struct rdma_conn_param param = {
		.private_data = hello, .private_data_len = bytes, .responder_resources = 1,
		.initiator_depth = 1, .retry_count = 6, .rnr_retry_count = 7,
	};

	memcpy(&s->hello, hello, min_t(u32, bytes, sizeof(s->hello)));
	KUNIT_ASSERT_EQ(s->test, rdma_connect(s->id, &param), 0);
	KUNIT_ASSERT_GT(s->test, wait_for_completion_timeout(&s->news, WAIT), 0ul);
	return s->event;
}

int swc_t_refused(struct kunit *test, const struct swc_wire_hello *h, u32 bytes)
{
	struct swc_t_stranger *s = swc_t_stranger(test);
	int event = swc_t_connect(s, h, bytes);
	int reason = event == RDMA_CM_EVENT_REJECTED ? s->reason : 0;

	swc_t_stranger_end(s);
	return reason;
}

/* ------------------------------------------------------------------ saying things */

static void post(struct swc_t_stranger *s, struct ib_send_wr *wr, u32 bytes)
{
	struct ib_sge sge = { .addr = s->out_dma, .length = bytes, .lkey = s->pd->local_dma_lkey };
	struct sent sent = { .cqe.done = send_done };

	init_completion(&sent.done);
	wr->wr_cqe = &sent.cqe;
	wr->sg_list = &sge;
	wr->num_sge = bytes ? 1 : 0;
	ib_dma_sync_single_for_device(s->id->device, s->out_dma, PAGE_SIZE, DMA_TO_DEVICE);
	KUNIT_ASSERT_EQ(s->test, ib_post_send(s->id->qp, wr, NULL), 0);
	/* Even when the other side hangs up, the device gives it back in the end. */
	wait_for_completion(&sent.done);
}

void swc_t_send_raw(struct swc_t_stranger *s, u32 bytes)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };

	post(s, &wr, bytes);
}

/* With a key that nobody gave out. */
static void write_to(struct swc_t_stranger *s, int opcode, u64 addr, u32 bytes, u32 imm)
{
	struct ib_rdma_wr wr = {
		.wr.opcode = opcode,
		.wr.ex.imm_data = cpu_to_be32(imm),
		.remote_addr = addr,
		.rkey = bytes ? 0x1234 : 0,
	};

	post(s, &wr.wr, bytes);
}

void swc_t_write_raw(struct swc_t_stranger *s, u64 addr, u32 bytes, u32 imm)
{
	write_to(s, IB_WR_RDMA_WRITE_WITH_IMM, addr, bytes, imm);
}

void swc_t_write_quietly(struct swc_t_stranger *s, u64 addr, u32 bytes)
{
	write_to(s, IB_WR_RDMA_WRITE, addr, bytes, 0);
}

void swc_t_fall_silent(struct swc_t_stranger *s)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	KUNIT_ASSERT_EQ(s->test, ib_modify_qp(s->id->qp, &attr, IB_QP_STATE), 0);
}
