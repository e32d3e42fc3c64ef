// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages in: receive buffers, and what to do with each kind of message. Runs in completion handlers,
 * one at a time per connection; the executor releases segments from anywhere.
 */
#include <linux/sched/mm.h>

#include "net/auth.h"
#include "net/policy.h"
#include "rdma/rdma.h"
#include "net/seg_copy.h"

/* ------------------------------------------------------------------ receive buffers */

/* Post a receive into the buffer. */
int swc_rx_post(struct swc_rdma_conn *conn, struct swc_rx_buf *rx_buf)
{
	struct ib_sge sge = { .addr = rx_buf->dma, .length = conn->rx_buf_bytes,
			      .lkey = conn->pd->local_dma_lkey };
	struct ib_recv_wr wr = { .wr_cqe = &rx_buf->cqe, .sg_list = &sge, .num_sge = 1 };

	rx_buf->cqe.done = swc_rx_done;
	ib_dma_sync_single_for_device(conn->dev->ib, rx_buf->dma, conn->rx_buf_bytes, DMA_FROM_DEVICE);
	return ib_post_recv(conn->id->qp, &wr, NULL);
}

/* The buffer can be used again; @credited: the peer spent a credit on it. */
static void repost(struct swc_rdma_conn *conn, struct swc_rx_buf *rx_buf, bool credited)
{
	bool pump = false;

	spin_lock(&conn->lock);
	/* Once the connection is being closed, the queue pair may be gone. */
	if (conn->state == SWC_CONN_LIVE || conn->state == SWC_CONN_CONNECTING) {
		swc_rx_post(conn, rx_buf);
		if (credited && ++conn->to_return >= swc_policy_return(conn->nrx_bufs - SWC_WIRE_SPARE)) {
			swc_conn_pend(conn, SWC_PEND_CREDIT);
			pump = true;
		}
	}
	spin_unlock(&conn->lock);
	if (pump)
		swc_tx_pump(conn, true);
}

/* Transport operation. */
void swc_rx_release(struct swc_net_seg *seg)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(seg->conn);

	if (seg->unexpected)
		swc_seg_copy_free(seg, &conn->net->unexpected);
	else
		repost(conn, container_of(seg, struct swc_rx_buf, seg), true);
	swc_rdma_conn_put(conn);
}

/* Transport operation. */
struct swc_net_seg *swc_rx_copy_unexpected(struct swc_net_seg *seg)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(seg->conn);
	struct mem_cgroup *before = set_active_memcg(conn->net->memcg);
	struct swc_net_seg *copy = swc_seg_copy(seg, &conn->net->unexpected);

	set_active_memcg(before);
	if (copy)
		kref_get(&conn->ref);
	return copy;
}

/* ------------------------------------------------------------------ kinds of messages */

static void handle_data(struct swc_rdma_conn *conn, struct swc_rx_buf *rx_buf, const struct swc_wire_msg *msg)
{
	struct swc_net_seg *seg = &rx_buf->seg;

	seg->src = conn->peer;
	seg->dst = conn->me;
	seg->channel = conn->channel;
	seg->msg = *msg;
	seg->span.region = conn->rx_region;
	seg->span.offset = (rx_buf - conn->rx_buf) * (u64)conn->rx_buf_bytes + SWC_HEADER;
	swc_stat_add(SWC_STAT_BYTES_RECEIVED, msg->bytes);
	if (msg->offset + msg->bytes == msg->total)
		swc_stat_inc(SWC_STAT_MSGS_RECEIVED);
	kref_get(&conn->ref);
	swc_net_ops->segment(conn->comm, seg);
}

/* The communicator was aborted on the peer's node: abort it here for the same reason. */
static void handle_abort(struct swc_rdma_conn *conn, const struct swc_wire_msg *msg)
{
	const struct swc_wire_abort *a = msg->payload;
	u32 error = le32_to_cpu(a->error), culprit = le32_to_cpu(a->culprit);
	char text[SWC_TEXT_BYTES];
	u32 i;

	if (!error || error >= 512)
		error = ECONNABORTED;
	if (culprit > conn->net->base.params.nranks)
		culprit = 0;
	for (i = 0; i < sizeof(text) - 1 && a->text[i]; i++)
		text[i] = a->text[i] >= ' ' && a->text[i] <= '~' ? a->text[i] : '?';
	text[i] = '\0';
	swc_net_ops->peer_lost(conn->comm, -(int)error, (int)culprit - 1, msg->seq, text);
}

static int handle_auth(struct swc_rdma_conn *conn, const struct swc_wire_msg *msg)
{
	u8 mac[SWC_WIRE_MAC];

	if (test_bit(SWC_CONN_F_PROVEN, &conn->flags))
		return -EPROTO;
	swc_auth_proof(&conn->net->base, &conn->hello, &conn->accept, mac);
	if (!swc_auth_equal(mac, msg->payload))
		return -EPROTO;
	swc_conn_go_live(conn);
	return 0;
}

static void handle_heartbeat(struct swc_rdma_conn *conn)
{
	spin_lock(&conn->lock);
	swc_conn_pend(conn, SWC_PEND_KEEPALIVE);
	spin_unlock(&conn->lock);
}

static void handle_fin(struct swc_rdma_conn *conn, const struct swc_wire_msg *msg)
{
	/* In this order: a rank that finds the connection closed must know that the peer has left. */
	swc_net_ops->peer_left(conn->comm, conn->peer, msg->seq);
	set_bit(conn->peer, conn->net->left);
	spin_lock(&conn->lock);
	set_bit(SWC_CONN_F_PEER_LEFT, &conn->flags);
	spin_unlock(&conn->lock);
}

/* A message; its buffer is posted again, or is part of a segment. */
static int handle_message(struct swc_rdma_conn *conn, struct swc_rx_buf *rx_buf, u32 bytes)
{
	struct swc_wire_msg msg;
	int ret;

	ret = swc_wire_parse(rx_buf->data, bytes, &msg);
	if (!ret && !test_bit(SWC_CONN_F_PROVEN, &conn->flags) && msg.kind != SWC_WIRE_AUTH)
		ret = -EPROTO;
	if (!ret)
		ret = swc_tx_add_credits(conn, msg.credits);
	if (ret)
		return ret;
	switch (msg.kind) {
	case SWC_WIRE_DATA:
		handle_data(conn, rx_buf, &msg);
		return 0;
	case SWC_WIRE_RTR:
		ret = swc_tx_add_offer(conn, &msg);
		break;
	case SWC_WIRE_RTS:
		swc_net_ops->rts(conn->comm, conn->peer, &msg);
		break;
	case SWC_WIRE_CREDIT:
		swc_net_ops->peer_progress(conn->comm, conn->peer, msg.seq);
		break;
	case SWC_WIRE_HEARTBEAT:
		handle_heartbeat(conn);
		break;
	case SWC_WIRE_AUTH:
		ret = handle_auth(conn, &msg);
		break;
	case SWC_WIRE_ABORT:
		handle_abort(conn, &msg);
		break;
	case SWC_WIRE_FIN:
		handle_fin(conn, &msg);
		break;
	default:
		break;
	}
	repost(conn, rx_buf, false);
	return ret;
}

/* The last write of a chunk. */
static int handle_write(struct swc_rdma_conn *conn, struct swc_rx_buf *rx_buf, u32 chunk)
{
	struct swc_rndv *rndv;
	int ret;

	if (!test_bit(SWC_CONN_F_PROVEN, &conn->flags))
		return -EPROTO;
	spin_lock(&conn->lock);
	ret = swc_rndv_written(conn, chunk, &rndv);
	spin_unlock(&conn->lock);
	repost(conn, rx_buf, false);
	if (ret || !rndv)
		return ret;
	/* Post the chunk's invalidation before the task continues. */
	swc_tx_pump(conn, false);
	swc_net_ops->rndv_done(rndv);
	return 0;
}

/* Completion of a receive. */
void swc_rx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct swc_rx_buf *rx_buf = container_of(wc->wr_cqe, struct swc_rx_buf, cqe);
	struct swc_rdma_conn *conn = swc_rdma_conn(rx_buf->seg.conn);
	bool proven;
	int ret;

	if (wc->status != IB_WC_SUCCESS) {
		swc_conn_wc_failed(conn, wc);
		return;
	}
	proven = test_bit(SWC_CONN_F_PROVEN, &conn->flags);
	if (wc->wc_flags & IB_WC_WITH_IMM) {
		ret = handle_write(conn, rx_buf, be32_to_cpu(wc->ex.imm_data));
	} else {
		ib_dma_sync_single_for_cpu(conn->dev->ib, rx_buf->dma, wc->byte_len, DMA_FROM_DEVICE);
		ret = handle_message(conn, rx_buf, wc->byte_len);
	}
	/* An unauthenticated peer ends its own attempt to connect, not the communicator. */
	if (ret && !proven)
		swc_conn_retry(conn, "it has not proven that it knows the communicator's id", ret);
	else if (ret)
		swc_conn_fail(conn, -EPROTO, "an invalid message arrived");
	else
		swc_tx_pump(conn, false);
}
