// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages in: receive buffers, and where each message goes. Runs in completion handlers, one at a time per
 * connection.
 */
#include "rdma/rdma.h"

/* So many segments that filled a small receive buffer are worth larger ones. */
#define FULL_SEGMENTS	8

/* ------------------------------------------------------------------ receive buffers */

/* Post a receive into the buffer. */
static int post(struct swc_rdma_conn *conn, struct swc_rdma_rx_buf *rx_buf)
{
	struct ib_sge sge[] = {
		{ .addr = rx_buf->header_dma, .length = SWC_HEADER, .lkey = conn->pd->local_dma_lkey },
		{ .addr = rx_buf->dma, .length = rx_buf->bytes, .lkey = conn->pd->local_dma_lkey },
	};
	struct ib_recv_wr wr = { .wr_cqe = &rx_buf->cqe, .sg_list = sge, .num_sge = ARRAY_SIZE(sge) };
	struct ib_device *ib = conn->dev->ib;

	BUILD_BUG_ON(ARRAY_SIZE(sge) != SWC_RX_SGE);
	rx_buf->cqe.done = swc_rdma_rx_done;
	ib_dma_sync_single_for_device(ib, rx_buf->header_dma, SWC_HEADER, DMA_FROM_DEVICE);
	ib_dma_sync_single_for_device(ib, rx_buf->dma, rx_buf->bytes, DMA_FROM_DEVICE);
	return ib_post_recv(conn->id->qp, &wr, NULL);
}

/* The buffer can be used again; conn->lock is held. */
static void repost(struct swc_rdma_conn *conn, struct swc_rdma_rx_buf *rx_buf)
{
	lockdep_assert_held(&conn->base.lock);
	rx_buf->held = false;
	/* Without a queue pair it is posted to the next one, if there is one. */
	if (!conn->can_post)
		return;
	swc_buffers_replace(conn, rx_buf);
	post(conn, rx_buf);
}

/* There is a new queue pair. */
int swc_rdma_rx_post_all(struct swc_rdma_conn *conn)
{
	struct swc_rdma_rx_buf *rx_buf, *end = conn->rx_buf + conn->nrx_bufs;
	int ret = 0;

	/* Under the lock: segments from before are released meanwhile. */
	spin_lock(&conn->base.lock);
	for (rx_buf = conn->rx_buf; rx_buf < end && !ret; rx_buf++)
		if (!rx_buf->held)
			ret = post(conn, rx_buf);
	conn->can_post = !ret;
	spin_unlock(&conn->base.lock);
	return ret;
}

/* Transport operation. */
void swc_rdma_rx_release(struct swc_conn *base, struct swc_net_seg *seg)
{
	repost(swc_rdma_conn(base), container_of(seg, struct swc_rdma_rx_buf, seg));
}

/* ------------------------------------------------------------------ messages */

/*
 * Most connections of a large communicator only ever carry small messages, or none. One with messages of
 * several segments that fill small receive buffers gets larger ones; if there is no memory, it is tried again
 * after as many segments.
 */
static void count_full(struct swc_rdma_conn *conn, const struct swc_rdma_rx_buf *rx_buf,
		       const struct swc_wire_msg *msg)
{
	if (rx_buf->bytes == conn->rx_buf_bytes || msg->bytes < rx_buf->bytes || msg->bytes == msg->total)
		return;
	if (++conn->nfull % FULL_SEGMENTS == 0)
		swc_buffers_enlarge(conn);
}

/* A chunk is written, and its key invalidated. */
static int handle_written(struct swc_rdma_conn *conn, struct swc_rdma_rx_buf *rx_buf, u32 chunk, u32 rkey)
{
	struct swc_rndv *rndv;
	int ret;

	spin_lock(&conn->base.lock);
	ret = swc_rndv_written(conn, chunk, rkey, &rndv);
	repost(conn, rx_buf);
	spin_unlock(&conn->base.lock);
	if (ret || !rndv)
		return ret;
	/* Offer what can be offered now before the task continues. */
	swc_rdma_pump(&conn->base, false);
	swc_net_ops->rndv_done(rndv);
	swc_net_ops->rndv_closed(rndv, 0);
	return 0;
}

/* A message; its buffer is posted again, or is part of a segment. */
static int handle_message(struct swc_rdma_conn *conn, struct swc_rdma_rx_buf *rx_buf, const struct ib_wc *wc)
{
	bool invalidates = wc->wc_flags & IB_WC_WITH_INVALIDATE, is_written;
	struct ib_device *ib = conn->dev->ib;
	struct swc_wire_msg msg;
	int ret;

	ib_dma_sync_single_for_cpu(ib, rx_buf->header_dma, SWC_HEADER, DMA_FROM_DEVICE);
	if (wc->byte_len > SWC_HEADER)
		ib_dma_sync_single_for_cpu(ib, rx_buf->dma, wc->byte_len - SWC_HEADER, DMA_FROM_DEVICE);
	ret = swc_rx_parse(&conn->base, rx_buf->header, rx_buf->data, wc->byte_len, &msg);
	if (ret)
		return ret;
	/* AUTH tells of a number itself. */
	conn->received += msg.kind != SWC_WIRE_AUTH;
	is_written = msg.kind == SWC_WIRE_WRITTEN;
	if (invalidates != is_written)
		return -EPROTO;
	if (msg.kind == SWC_WIRE_DATA) {
		count_full(conn, rx_buf, &msg);
		rx_buf->seg.span.extents = &conn->rx_extents;
		rx_buf->seg.span.offset = (rx_buf - conn->rx_buf) * (u64)conn->rx_buf_bytes;
		swc_rx_data(&conn->base, &rx_buf->seg, &msg);
		return 0;
	}
	if (is_written)
		return handle_written(conn, rx_buf, msg.ordinal, wc->ex.invalidate_rkey);
	ret = swc_rx_short(&conn->base, &msg);
	spin_lock(&conn->base.lock);
	repost(conn, rx_buf);
	spin_unlock(&conn->base.lock);
	return ret;
}

/* Completion of a receive. */
void swc_rdma_rx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct swc_rdma_rx_buf *rx_buf = container_of(wc->wr_cqe, struct swc_rdma_rx_buf, cqe);
	struct swc_rdma_conn *conn = swc_rdma_conn(rx_buf->seg.conn);
	bool proven;
	int ret;

	if (wc->status != IB_WC_SUCCESS) {
		swc_wc_failed(conn, wc);
		return;
	}
	WRITE_ONCE(conn->nreceived, conn->nreceived + 1);
	rx_buf->held = true;
	proven = test_bit(SWC_CONN_F_PROVEN, &conn->base.flags);
	/* No member sends immediate data. */
	ret = wc->wc_flags & IB_WC_WITH_IMM ? -EPROTO : handle_message(conn, rx_buf, wc);
	if (ret) {
		/* Another attempt may follow. */
		rx_buf->held = false;
		swc_rx_failed(&conn->base, proven, ret);
	} else {
		swc_rdma_pump(&conn->base, false);
	}
}
