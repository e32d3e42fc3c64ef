// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages in: receive buffers, and where each message goes. Runs in completion handlers, one at a time per
 * connection.
 */
#include "rdma/rdma.h"

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

/* The buffer can be used again; conn->lock is held. */
static void repost(struct swc_rdma_conn *conn, struct swc_rx_buf *rx_buf)
{
	lockdep_assert_held(&conn->base.lock);
	/* Once the connection is being closed, the queue pair may be gone. */
	if (conn->base.state == SWC_CONN_LIVE || conn->base.state == SWC_CONN_CONNECTING)
		swc_rx_post(conn, rx_buf);
}

/* Transport operation. */
void swc_rx_release(struct swc_conn *base, struct swc_net_seg *seg)
{
	repost(swc_rdma_conn(base), container_of(seg, struct swc_rx_buf, seg));
}

/* ------------------------------------------------------------------ messages */

/* A message; its buffer is posted again, or is part of a segment. */
static int handle_message(struct swc_rdma_conn *conn, struct swc_rx_buf *rx_buf, u32 bytes)
{
	struct swc_wire_msg msg;
	int ret = swc_rx_parse(&conn->base, rx_buf->data, bytes, &msg);

	if (ret)
		return ret;
	if (msg.kind == SWC_WIRE_DATA) {
		rx_buf->seg.span.region = conn->rx_region;
		rx_buf->seg.span.offset = (rx_buf - conn->rx_buf) * (u64)conn->rx_buf_bytes + SWC_HEADER;
		swc_rx_data(&conn->base, &rx_buf->seg, &msg);
		return 0;
	}
	ret = swc_rx_short(&conn->base, &msg);
	spin_lock(&conn->base.lock);
	repost(conn, rx_buf);
	spin_unlock(&conn->base.lock);
	return ret;
}

/* The last write of a chunk. */
static int handle_write(struct swc_rdma_conn *conn, struct swc_rx_buf *rx_buf, u32 chunk)
{
	struct swc_rndv *rndv;
	int ret;

	if (!test_bit(SWC_CONN_F_PROVEN, &conn->base.flags))
		return -EPROTO;
	spin_lock(&conn->base.lock);
	ret = swc_rndv_written(conn, chunk, &rndv);
	repost(conn, rx_buf);
	spin_unlock(&conn->base.lock);
	if (ret || !rndv)
		return ret;
	/* Post the chunk's invalidation before the task continues. */
	swc_rdma_pump(&conn->base, false);
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
		swc_wc_failed(conn, wc);
		return;
	}
	proven = test_bit(SWC_CONN_F_PROVEN, &conn->base.flags);
	if (wc->wc_flags & IB_WC_WITH_IMM) {
		ret = handle_write(conn, rx_buf, be32_to_cpu(wc->ex.imm_data));
	} else {
		ib_dma_sync_single_for_cpu(conn->dev->ib, rx_buf->dma, wc->byte_len, DMA_FROM_DEVICE);
		ret = handle_message(conn, rx_buf, wc->byte_len);
	}
	if (ret)
		swc_rx_failed(&conn->base, proven, ret);
	else
		swc_rdma_pump(&conn->base, false);
}
