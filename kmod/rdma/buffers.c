// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of a connection: pages of its send queue entries, and receive buffers. Allocated with the
 * first queue pair and freed with the connection, because segments may be in use after the queue pair is
 * gone. A new connection has few pages and small buffers. Pages are added one by one. Receive buffers are
 * replaced all by larger ones, each when it is posted next; receives are consumed in the order in which they
 * were posted, so when the last small one has been consumed, the peer may send larger segments (GROWN).
 */
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "rdma/rdma.h"

unsigned int swc_rdma_rx_bufs = 16;
module_param_named(rdma_rx_bufs, swc_rdma_rx_bufs, uint, 0444);
MODULE_PARM_DESC(rdma_rx_bufs, "receive buffers per connection, 4 to 1024 (default 16)");

unsigned int swc_rdma_rx_buf_kib = 32;
module_param_named(rdma_rx_buf_kib, swc_rdma_rx_buf_kib, uint, 0444);
MODULE_PARM_DESC(rdma_rx_buf_kib, "the most payload of a receive buffer in KiB, 4 to 1024 (default 32)");

const unsigned int swc_rdma_rx_buf_kib_small = SWC_RX_BUF_SMALL >> 10;

#define HEADER_BYTES	ALIGN(SWC_HEADER, SMP_CACHE_BYTES)

int swc_buffers_check_parameters(void)
{
	return swc_param_check("rdma_rx_bufs", swc_rdma_rx_bufs, SWC_WIRE_MIN_RX_BUFS,
			       SWC_WIRE_MAX_RX_BUFS) ?:
	       swc_param_check("rdma_rx_buf_kib", swc_rdma_rx_buf_kib, SWC_WIRE_MIN_RX_BUF >> 10,
			       SWC_WIRE_MAX_RX_BUF >> 10);
}

/* ------------------------------------------------------------------ allocation */

/* Memory that a receive buffer of so many bytes takes. */
static u32 rx_buf_memory(u32 bytes)
{
	return PAGE_SIZE << get_order(bytes);
}

/* Memory of a new connection, but for what the device's driver allocates for its queue pair. */
u32 swc_buffers_bytes(void)
{
	u32 nrx_bufs = swc_rdma_rx_bufs + SWC_WIRE_SPARE;

	return sizeof(struct swc_rdma_conn) + SWC_SQ_DEPTH * sizeof(struct swc_sq_entry) +
	       SWC_SQ_PAGES * PAGE_SIZE +
	       nrx_bufs * (sizeof(struct swc_rdma_rx_buf) + sizeof(struct swc_extent) + HEADER_BYTES +
			   rx_buf_memory(SWC_RX_BUF_SMALL));
}

static void *alloc_rx_buf(u32 bytes, gfp_t flags)
{
	return (void *)__get_free_pages(GFP_KERNEL_ACCOUNT | __GFP_NOWARN | flags, get_order(bytes));
}

static void free_rx_buf(void *data, u32 bytes)
{
	free_pages((unsigned long)data, get_order(bytes));
}

static int alloc_rx_bufs(struct swc_rdma_conn *conn)
{
	struct swc_extents *extents = &conn->rx_extents;
	u32 i;

	conn->rx_buf_bytes = swc_rdma_rx_buf_kib << 10;
	conn->nrx_bufs = swc_rdma_rx_bufs + SWC_WIRE_SPARE;
	conn->rx_buf = kvcalloc(conn->nrx_bufs, sizeof(*conn->rx_buf), GFP_KERNEL_ACCOUNT);
	conn->rx_header = kcalloc(conn->nrx_bufs, HEADER_BYTES, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	extents->nextents = conn->nrx_bufs;
	extents->extent = kvcalloc(conn->nrx_bufs + 1, sizeof(*extents->extent), GFP_KERNEL_ACCOUNT);
	if (!conn->rx_buf || !conn->rx_header || !extents->extent)
		return -ENOMEM;
	for (i = 0; i < conn->nrx_bufs; i++) {
		void *data = alloc_rx_buf(SWC_RX_BUF_SMALL, 0);

		if (!data)
			return -ENOMEM;
		conn->rx_buf[i].data = data;
		conn->rx_buf[i].header = conn->rx_header + i * HEADER_BYTES;
		conn->rx_buf[i].bytes = SWC_RX_BUF_SMALL;
		conn->rx_buf[i].seg.conn = &conn->base;
		extents->extent[i].kaddr = data;
		extents->extent[i].offset = (u64)i * conn->rx_buf_bytes;
	}
	swc_extents_close(extents, (u64)i * conn->rx_buf_bytes);
	return 0;
}

static int alloc_entries(struct swc_rdma_conn *conn)
{
	struct swc_sq *sq = &conn->sq;
	u32 i;

	sq->entry = kvcalloc(SWC_SQ_DEPTH, sizeof(*sq->entry), GFP_KERNEL_ACCOUNT);
	if (!sq->entry)
		return -ENOMEM;
	for (i = 0; i < SWC_SQ_DEPTH; i++)
		sq->entry[i].conn = conn;
	for (sq->npages = 0; sq->npages < SWC_SQ_PAGES; sq->npages++) {
		void *data = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);

		if (!data)
			return -ENOMEM;
		sq->page[sq->npages] = (struct swc_sq_page){ .data = data };
	}
	return 0;
}

/* All, or nothing. */
int swc_buffers_alloc(struct swc_rdma_conn *conn)
{
	int ret = conn->sq.entry ? 0 : alloc_entries(conn);

	if (!ret && !conn->rx_buf)
		ret = alloc_rx_bufs(conn);
	if (ret)
		swc_buffers_free(conn);
	return ret;
}

void swc_buffers_free(struct swc_rdma_conn *conn)
{
	u32 i;

	for (i = 0; conn->rx_buf && i < conn->nrx_bufs; i++) {
		free_rx_buf(conn->rx_buf[i].data, conn->rx_buf[i].bytes);
		free_rx_buf(conn->rx_buf[i].larger, conn->rx_buf_bytes);
	}
	kvfree(conn->rx_buf);
	conn->rx_buf = NULL;
	kfree(conn->rx_header);
	conn->rx_header = NULL;
	kvfree(conn->rx_extents.extent);
	conn->rx_extents.extent = NULL;
	/* All are there: the queue is empty. */
	while (conn->sq.npages)
		free_page((unsigned long)conn->sq.page[--conn->sq.npages].data);
	kvfree(conn->sq.entry);
	conn->sq.entry = NULL;
}

/* ------------------------------------------------------------------ mapping */

/* DMA address 0 means not mapped: it is no address of a buffer, with rxe neither. */
static int map(struct swc_rdma_conn *conn, void *data, u32 bytes, enum dma_data_direction dir, u64 *dma)
{
	*dma = ib_dma_map_single(conn->dev->ib, data, bytes, dir);
	if (!ib_dma_mapping_error(conn->dev->ib, *dma))
		return 0;
	*dma = 0;
	return -ENOMEM;
}

static void unmap(struct swc_rdma_conn *conn, u64 *dma, u32 bytes, enum dma_data_direction dir)
{
	if (*dma)
		ib_dma_unmap_single(conn->dev->ib, *dma, bytes, dir);
	*dma = 0;
}

static int map_page(struct swc_rdma_conn *conn, struct swc_sq_page *page)
{
	return page->data ? map(conn, page->data, SWC_ENTRY_BYTES, DMA_TO_DEVICE, &page->dma) : 0;
}

/* Map all for the device; on error swc_buffers_unmap() unmaps what was mapped. */
int swc_buffers_map(struct swc_rdma_conn *conn)
{
	struct swc_sq *sq = &conn->sq;
	int ret;
	u32 i;

	ret = map(conn, conn->rx_header, conn->nrx_bufs * HEADER_BYTES, DMA_FROM_DEVICE,
		  &conn->rx_header_dma);
	for (i = 0; i < sq->npages && !ret; i++)
		ret = map_page(conn, &sq->page[i]);
	/* Of messages that may be sent again. */
	for (i = 0; i < SWC_SQ_DEPTH && !ret; i++)
		ret = map_page(conn, &sq->entry[i].page) ?: map_page(conn, &sq->replay[i].page);
	for (i = 0; i < conn->nrx_bufs && !ret; i++) {
		struct swc_rdma_rx_buf *rx_buf = &conn->rx_buf[i];

		rx_buf->header_dma = conn->rx_header_dma + i * HEADER_BYTES;
		ret = map(conn, rx_buf->data, rx_buf->bytes, DMA_FROM_DEVICE, &rx_buf->dma);
		if (rx_buf->larger && !ret)
			ret = map(conn, rx_buf->larger, conn->rx_buf_bytes, DMA_FROM_DEVICE,
				  &rx_buf->larger_dma);
	}
	return ret;
}

/* The queue pair is drained. */
void swc_buffers_unmap(struct swc_rdma_conn *conn)
{
	struct swc_sq *sq = &conn->sq;
	u32 i;

	if (!sq->entry)
		return;
	for (i = 0; i < SWC_SQ_DEPTH; i++) {
		unmap(conn, &sq->entry[i].page.dma, SWC_ENTRY_BYTES, DMA_TO_DEVICE);
		unmap(conn, &sq->replay[i].page.dma, SWC_ENTRY_BYTES, DMA_TO_DEVICE);
	}
	for (i = 0; i < sq->npages; i++)
		unmap(conn, &sq->page[i].dma, SWC_ENTRY_BYTES, DMA_TO_DEVICE);
	unmap(conn, &conn->rx_header_dma, conn->nrx_bufs * HEADER_BYTES, DMA_FROM_DEVICE);
	for (i = 0; i < conn->nrx_bufs; i++) {
		struct swc_rdma_rx_buf *rx_buf = &conn->rx_buf[i];

		unmap(conn, &rx_buf->dma, rx_buf->bytes, DMA_FROM_DEVICE);
		unmap(conn, &rx_buf->larger_dma, conn->rx_buf_bytes, DMA_FROM_DEVICE);
	}
}

/* ------------------------------------------------------------------ growing */

/* One more page for the send queue: -ENOMEM, -EDQUOT. conn->base.lock is held. */
int swc_buffers_add_page(struct swc_rdma_conn *conn)
{
	struct mem_cgroup *before = set_active_memcg(conn->base.net->memcg);
	struct swc_sq_page page = {};
	int ret = swc_conn_charge_more(&conn->base, PAGE_SIZE);

	if (!ret) {
		page.data = (void *)get_zeroed_page(GFP_NOWAIT | __GFP_NOWARN | __GFP_ACCOUNT);
		ret = page.data ? map(conn, page.data, SWC_ENTRY_BYTES, DMA_TO_DEVICE, &page.dma) : -ENOMEM;
		if (ret) {
			free_page((unsigned long)page.data);
			swc_conn_uncharge(&conn->base, PAGE_SIZE);
		}
	}
	set_active_memcg(before);
	if (!ret)
		conn->sq.page[conn->sq.npages++] = page;
	return ret;
}

/* The larger buffers, mapped; or none of them, and false. */
static bool alloc_larger(struct swc_rdma_conn *conn)
{
	struct mem_cgroup *before = set_active_memcg(conn->base.net->memcg);
	struct swc_rdma_rx_buf *rx_buf = conn->rx_buf, *end = rx_buf + conn->nrx_bufs;
	int ret = 0;

	/* Smaller ones do: nobody is killed for these. */
	for (; rx_buf < end && !ret; rx_buf++) {
		rx_buf->larger = alloc_rx_buf(conn->rx_buf_bytes, __GFP_NORETRY);
		ret = rx_buf->larger ? map(conn, rx_buf->larger, conn->rx_buf_bytes, DMA_FROM_DEVICE,
					   &rx_buf->larger_dma) : -ENOMEM;
	}
	for (rx_buf = conn->rx_buf; rx_buf < end && ret; rx_buf++) {
		unmap(conn, &rx_buf->larger_dma, conn->rx_buf_bytes, DMA_FROM_DEVICE);
		free_rx_buf(rx_buf->larger, conn->rx_buf_bytes);
		rx_buf->larger = NULL;
	}
	set_active_memcg(before);
	return !ret;
}

/**
 * swc_buffers_enlarge() - begin to replace the receive buffers by larger ones
 *
 * In completion handlers, one at a time; may sleep. Without memory all stays as it is.
 */
void swc_buffers_enlarge(struct swc_rdma_conn *conn)
{
	u32 more = conn->nrx_bufs * (rx_buf_memory(conn->rx_buf_bytes) - rx_buf_memory(SWC_RX_BUF_SMALL));
	bool charged;

	if (conn->base.grown_bytes)
		return;
	spin_lock(&conn->base.lock);
	charged = !swc_conn_charge_more(&conn->base, more);
	spin_unlock(&conn->base.lock);
	if (!charged)
		return;
	if (!alloc_larger(conn)) {
		spin_lock(&conn->base.lock);
		swc_conn_uncharge(&conn->base, more);
		spin_unlock(&conn->base.lock);
		return;
	}
	spin_lock(&conn->base.lock);
	conn->base.grown_bytes = conn->rx_buf_bytes;
	conn->nsmall = conn->nrx_bufs;
	spin_unlock(&conn->base.lock);
}

/* The buffer, which is not posted, becomes a larger one if that is due. conn->base.lock is held. */
void swc_buffers_replace(struct swc_rdma_conn *conn, struct swc_rdma_rx_buf *rx_buf)
{
	u32 i = rx_buf - conn->rx_buf;

	lockdep_assert_held(&conn->base.lock);
	if (!conn->nsmall || !rx_buf->larger)
		return;
	unmap(conn, &rx_buf->dma, rx_buf->bytes, DMA_FROM_DEVICE);
	free_rx_buf(rx_buf->data, rx_buf->bytes);
	rx_buf->data = rx_buf->larger;
	rx_buf->dma = rx_buf->larger_dma;
	rx_buf->bytes = conn->rx_buf_bytes;
	rx_buf->larger = NULL;
	rx_buf->larger_dma = 0;
	conn->rx_extents.extent[i].kaddr = rx_buf->data;
	if (--conn->nsmall)
		return;
	swc_conn_pend(&conn->base, SWC_PEND_GROWN);
	swc_conn_pump_later(&conn->base);
}
