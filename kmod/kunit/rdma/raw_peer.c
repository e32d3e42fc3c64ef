// SPDX-License-Identifier: GPL-2.0-only
/*
 * An RDMA connection by hand: the handshake and messages of a member, without following its rules.
 */
#include <crypto/blake2s.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>

#include "compat.h"
#include "kunit/harness.h"
#include "kunit/rdma/raw_peer.h"
#include "net/conn.h"

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
		.places = comm->net->places,
		.src = cpu_to_le16(src),
		.dst = cpu_to_le16(dst),
		.attempt = cpu_to_le32(1),
		.rx_bufs = cpu_to_le16(16),
		.rx_buf_kib = cpu_to_le16(32),
	};
	memcpy(h->name, comm->net->name, SWC_WIRE_NAME);
	get_random_bytes(h->nonce, sizeof(h->nonce));
	swc_t_sign(comm, h);
}

void swc_t_auth(struct swc_t_raw_peer *peer, void *mac)
{
	struct swc_compat_blake2s state;
	const __le64 received = 0;

	blake2s_init_key(&state, SWC_WIRE_MAC, peer->comm->id, SWC_ID_BYTES);
	blake2s_update(&state, (const u8 *)&peer->hello, sizeof(peer->hello));
	blake2s_update(&state, (const u8 *)&peer->accept, sizeof(peer->accept));
	blake2s_update(&state, "swingcoll proof", 15);
	blake2s_update(&state, (const u8 *)&received, sizeof(received));
	blake2s_final(&state, mac);
}

/* ------------------------------------------------------------------ the connection */

static int handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct swc_t_raw_peer *peer = id->context;
	const struct swc_wire_reject *r;
	u8 len = 0;

	/* No test waits for these. */
	if (event->event == RDMA_CM_EVENT_DISCONNECTED || event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT)
		return 0;
	peer->event = event->event;
	if (event->event == RDMA_CM_EVENT_REJECTED) {
		r = rdma_consumer_reject_data(id, event, &len);
		if (r && len >= sizeof(*r) && le32_to_cpu(r->magic) == SWC_WIRE_MAGIC)
			peer->reject = *r;
	} else if (event->event == RDMA_CM_EVENT_ESTABLISHED &&
		   event->param.conn.private_data_len >= sizeof(peer->accept)) {
		memcpy(&peer->accept, event->param.conn.private_data, sizeof(peer->accept));
	}
	complete(&peer->event_done);
	return 0;
}

/* Messages arrive in the order in which receives were posted. */
struct swc_t_recv {
	struct ib_cqe cqe;
	struct completion done;
	void *page;
	u64 dma;
	u32 bytes;
};

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct swc_t_recv *recv = container_of(wc->wr_cqe, struct swc_t_recv, cqe);

	if (wc->status)
		return;
	recv->bytes = wc->byte_len;
	complete_all(&recv->done);
}

const void *swc_t_received(struct swc_t_raw_peer *peer, u32 i, u32 *bytes)
{
	struct swc_t_recv *recv = &peer->recv[i];

	KUNIT_ASSERT_GT(peer->test, wait_for_completion_timeout(&recv->done, WAIT), 0ul);
	ib_dma_sync_single_for_cpu(peer->id->device, recv->dma, PAGE_SIZE, DMA_FROM_DEVICE);
	*bytes = recv->bytes;
	return recv->page;
}

struct sent {
	struct ib_cqe cqe;
	struct completion done;
};

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct sent, cqe)->done);
}

static void wait_for(struct swc_t_raw_peer *peer, int event)
{
	KUNIT_ASSERT_GT(peer->test, wait_for_completion_timeout(&peer->event_done, WAIT), 0ul);
	KUNIT_ASSERT_EQ(peer->test, peer->event, event);
}

static void set_up_queues(struct swc_t_raw_peer *peer)
{
	struct ib_device *ib = peer->id->device;
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = 8, .max_recv_wr = RECVS + 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};
	struct kunit *test = peer->test;
	u32 i;

	peer->pd = ib_alloc_pd(ib, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(peer->pd));
	peer->cq = ib_alloc_cq_any(ib, peer, RECVS + 16, IB_POLL_UNBOUND_WORKQUEUE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(peer->cq));
	init.send_cq = peer->cq;
	init.recv_cq = peer->cq;
	KUNIT_ASSERT_EQ(test, rdma_create_qp(peer->id, peer->pd, &init), 0);
	peer->out_dma = ib_dma_map_single(ib, peer->out, PAGE_SIZE, DMA_TO_DEVICE);
	for (i = 0; i < RECVS; i++) {
		struct swc_t_recv *recv = &peer->recv[i];
		struct ib_sge sge = { .length = PAGE_SIZE, .lkey = peer->pd->local_dma_lkey };
		struct ib_recv_wr wr = { .wr_cqe = &recv->cqe, .sg_list = &sge, .num_sge = 1 };

		recv->cqe.done = recv_done;
		init_completion(&recv->done);
		recv->dma = ib_dma_map_single(ib, recv->page, PAGE_SIZE, DMA_FROM_DEVICE);
		sge.addr = recv->dma;
		KUNIT_ASSERT_EQ(test, ib_post_recv(peer->id->qp, &wr, NULL), 0);
	}
}

struct swc_t_raw_peer *swc_t_raw_peer(struct kunit *test)
{
	struct swc_t_raw_peer *peer = kunit_kzalloc(test, sizeof(*peer), GFP_KERNEL);
	struct sockaddr_storage addr, local;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, peer);
	peer->test = test;
	init_completion(&peer->event_done);
	peer->out = (void *)get_zeroed_page(GFP_KERNEL);
	peer->recv = kunit_kcalloc(test, RECVS, sizeof(*peer->recv), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, peer->out && peer->recv);
	for (i = 0; i < RECVS; i++) {
		peer->recv[i].page = (void *)get_zeroed_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, peer->recv[i].page);
	}
	swc_t_addr(&addr, false);
	swc_t_addr(&local, false);
	((struct sockaddr_in *)&local)->sin_port = 0;
	peer->id = rdma_create_id(&init_net, handler, peer, RDMA_PS_TCP, IB_QPT_RC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(peer->id));
	KUNIT_ASSERT_EQ(test, rdma_resolve_addr(peer->id, (struct sockaddr *)&local,
						(struct sockaddr *)&addr, 2000), 0);
	wait_for(peer, RDMA_CM_EVENT_ADDR_RESOLVED);
	/*
	 * Half a second with all retries, on both sides: the peer often disconnects.
	 */
	KUNIT_ASSERT_EQ(test, rdma_set_ack_timeout(peer->id, 14), 0);
	KUNIT_ASSERT_EQ(test, rdma_resolve_route(peer->id, 2000), 0);
	wait_for(peer, RDMA_CM_EVENT_ROUTE_RESOLVED);
	set_up_queues(peer);
	return peer;
}

void swc_t_raw_peer_end(struct swc_t_raw_peer *peer)
{
	struct ib_device *ib = peer->id->device;
	u32 i;

	rdma_disconnect(peer->id);
	ib_drain_qp(peer->id->qp);
	rdma_destroy_qp(peer->id);
	ib_free_cq(peer->cq);
	ib_dma_unmap_single(ib, peer->out_dma, PAGE_SIZE, DMA_TO_DEVICE);
	for (i = 0; i < RECVS; i++)
		ib_dma_unmap_single(ib, peer->recv[i].dma, PAGE_SIZE, DMA_FROM_DEVICE);
	ib_dealloc_pd(peer->pd);
	rdma_destroy_id(peer->id);
	free_page((unsigned long)peer->out);
	for (i = 0; i < RECVS; i++)
		free_page((unsigned long)peer->recv[i].page);
}

int swc_t_connect(struct swc_t_raw_peer *peer, const void *hello, u32 bytes)
{
	struct rdma_conn_param param = {
		.private_data = hello, .private_data_len = bytes, .responder_resources = 1,
		.initiator_depth = 1, .retry_count = 6, .rnr_retry_count = 7,
	};

	memcpy(&peer->hello, hello, min_t(u32, bytes, sizeof(peer->hello)));
	KUNIT_ASSERT_EQ(peer->test, rdma_connect(peer->id, &param), 0);
	KUNIT_ASSERT_GT(peer->test, wait_for_completion_timeout(&peer->event_done, WAIT), 0ul);
	return peer->event;
}

int swc_t_refused(struct kunit *test, const struct swc_wire_hello *h, u32 bytes)
{
	struct swc_t_raw_peer *peer = swc_t_raw_peer(test);
	int event = swc_t_connect(peer, h, bytes);
	int reason = event == RDMA_CM_EVENT_REJECTED ? le16_to_cpu(peer->reject.reason) : 0;

	swc_t_raw_peer_end(peer);
	return reason;
}

/* ------------------------------------------------------------------ forged answers */

/* A connection that nothing is sent on. */
static int forge_accept(struct swc_t_forger *forger, struct rdma_cm_id *id, u32 i)
{
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
		.send_cq = forger->cq,
		.recv_cq = forger->cq,
	};
	struct rdma_conn_param param = {
		.private_data = &forger->accept[i], .private_data_len = sizeof(forger->accept[i]),
		.responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7,
	};
	int ret = rdma_create_qp(id, forger->pd, &init);

	if (ret)
		return ret;
	ret = rdma_accept(id, &param);
	if (ret)
		rdma_destroy_qp(id);
	else
		forger->accepted[i] = id;
	return ret;
}

static int forge_answer(struct swc_t_forger *forger, struct rdma_cm_id *id)
{
	u32 i = forger->sent;

	if (i >= forger->n + forger->accepts) {
		complete_all(&forger->done);
		return -ECONNREFUSED;
	}
	forger->sent++;
	if (i >= forger->n)
		return forge_accept(forger, id, i - forger->n);
	rdma_reject(id, &forger->refusal[i], sizeof(*forger->refusal), IB_CM_REJ_CONSUMER_DEFINED);
	return -ECONNREFUSED;
}

static int forge(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct swc_t_forger *forger = id->context;
	int ret;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	ret = forge_answer(forger, id);
	if (ret && ret != -ECONNREFUSED && !forger->error)
		forger->error = ret;
	return ret;	/* an error makes the connection manager destroy the id */
}

/* Where the connections of @comm to @node go. */
static void redirect(const struct swc_comm *comm, u32 node, __be16 port)
{
	struct swc_node_path *path = &comm->net->paths.path[comm->net->paths.first[node]];

	((struct sockaddr_in *)path->remote)->sin_port = port;
}

void swc_t_forge(struct swc_t_forger *forger, struct kunit *test, const struct swc_comm *comm, u32 node)
{
	struct sockaddr_storage addr;

	init_completion(&forger->done);
	forger->id = rdma_create_id(&init_net, forge, forger, RDMA_PS_TCP, IB_QPT_RC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(forger->id));
	swc_t_addr(&addr, false);
	((struct sockaddr_in *)&addr)->sin_port = 0;
	KUNIT_ASSERT_EQ(test, rdma_bind_addr(forger->id, (struct sockaddr *)&addr), 0);
	forger->pd = ib_alloc_pd(forger->id->device, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(forger->pd));
	forger->cq = ib_alloc_cq_any(forger->id->device, forger, 16, IB_POLL_UNBOUND_WORKQUEUE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(forger->cq));
	KUNIT_ASSERT_EQ(test, rdma_listen(forger->id, 8), 0);
	redirect(comm, node, ((struct sockaddr_in *)&forger->id->route.addr.src_addr)->sin_port);
}

void swc_t_forge_end(struct swc_t_forger *forger, const struct swc_comm *comm, u32 node)
{
	u32 i;

	redirect(comm, node, htons(swc_transport_port(SWC_TRANSPORT_RDMA)));
	rdma_destroy_id(forger->id);
	for (i = 0; i < SWC_T_ACCEPTS; i++) {
		if (!forger->accepted[i])
			continue;
		rdma_disconnect(forger->accepted[i]);
		rdma_destroy_qp(forger->accepted[i]);
		rdma_destroy_id(forger->accepted[i]);
	}
	ib_free_cq(forger->cq);
	ib_dealloc_pd(forger->pd);
}

/* ------------------------------------------------------------------ sending */

static void post(struct swc_t_raw_peer *peer, struct ib_send_wr *wr, u32 bytes)
{
	struct ib_sge sge = { .addr = peer->out_dma, .length = bytes, .lkey = peer->pd->local_dma_lkey };
	struct sent sent = { .cqe.done = send_done };

	init_completion(&sent.done);
	wr->wr_cqe = &sent.cqe;
	wr->sg_list = &sge;
	wr->num_sge = bytes ? 1 : 0;
	ib_dma_sync_single_for_device(peer->id->device, peer->out_dma, PAGE_SIZE, DMA_TO_DEVICE);
	KUNIT_ASSERT_EQ(peer->test, ib_post_send(peer->id->qp, wr, NULL), 0);
	/* It completes even if the peer disconnects. */
	wait_for_completion(&sent.done);
}

void swc_t_send_raw(struct swc_t_raw_peer *peer, u32 bytes)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };

	post(peer, &wr, bytes);
}

void swc_t_send_invalidating(struct swc_t_raw_peer *peer, u32 bytes, u32 rkey)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV, .ex.invalidate_rkey = rkey };

	post(peer, &wr, bytes);
}

/* With a key that was never valid. */
static void write_to(struct swc_t_raw_peer *peer, int opcode, u64 addr, u32 bytes, u32 imm)
{
	struct ib_rdma_wr wr = {
		.wr.opcode = opcode,
		.wr.ex.imm_data = cpu_to_be32(imm),
		.remote_addr = addr,
		.rkey = bytes ? 0x1234 : 0,
	};

	post(peer, &wr.wr, bytes);
}

void swc_t_write_raw(struct swc_t_raw_peer *peer, u64 addr, u32 bytes, u32 imm)
{
	write_to(peer, IB_WR_RDMA_WRITE_WITH_IMM, addr, bytes, imm);
}

void swc_t_write_quietly(struct swc_t_raw_peer *peer, u64 addr, u32 bytes)
{
	write_to(peer, IB_WR_RDMA_WRITE, addr, bytes, 0);
}

void swc_t_fall_silent(struct swc_t_raw_peer *peer)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	KUNIT_ASSERT_EQ(peer->test, ib_modify_qp(peer->id->qp, &attr, IB_QP_STATE), 0);
}
