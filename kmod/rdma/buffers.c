// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of a connection: pages of its send queue entries, and receive buffers. Allocated with the
 * first queue pair and freed with the connection, because segments may be in use after the queue pair is
 * gone.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "rdma/rdma.h"

unsigned int rx_bufs_param = 16;
module_param_named(rdma_rx_bufs, rx_bufs_param, uint, 0444);
MODULE_PARM_DESC(rdma_rx_bufs, "receive buffers per connection, 4 to 1024 (default 16)");

unsigned int rx_buf_kib_param = 32;
module_param_named(rdma_rx_buf_kib, rx_buf_kib_param, uint, 0444);
MODULE_PARM_DESC(rdma_rx_buf_kib, "size of a receive buffer in KiB, 4 to 1024 (default 32)");

int swc_buffers_check_parameters(void)
{
	return swc_param_check("rdma_rx_bufs", rx_bufs_param, SWC_WIRE_MIN_RX_BUFS, SWC_WIRE_MAX_RX_BUFS) ?:
	       swc_param_check("rdma_rx_buf_kib", rx_buf_kib_param, SWC_WIRE_MIN_RX_BUF >> 10,
			       SWC_WIRE_MAX_RX_BUF >> 10);
}

/* ------------------------------------------------------------------ allocation */

/* Memory of a connection, but for what the device's driver allocates for its queue pair. */
u32 swc_buffers_bytes(void)
{
	u32 nrx_bufs = rx_bufs_param + SWC_WIRE_SPARE;

	return sizeof(struct swc_rdma_conn) + SWC_SQ_DEPTH * (sizeof(struct swc_sq_entry) + PAGE_SIZE) +
	       nrx_bufs * (sizeof(struct swc_rx_buf) + sizeof(struct swc_extent) +
			   (PAGE_SIZE << get_order(rx_buf_kib_param << 10)));
}

static int alloc_rx_bufs(struct swc_rdma_conn *conn)
{
	struct swc_region *r;
	u32 i;

	conn->rx_buf_bytes = rx_buf_kib_param << 10;
	conn->nrx_bufs = rx_bufs_param + SWC_WIRE_SPARE;
	conn->rx_buf = kvcalloc(conn->nrx_bufs, sizeof(*conn->rx_buf), GFP_KERNEL_ACCOUNT);
	r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);
	conn->rx_region = r;
	if (!conn->rx_buf || !r)
		return -ENOMEM;
	r->nextents = conn->nrx_bufs;
	r->extents = kvcalloc(conn->nrx_bufs + 1, sizeof(*r->extents), GFP_KERNEL_ACCOUNT);
	if (!r->extents)
		return -ENOMEM;
	for (i = 0; i < conn->nrx_bufs; i++) {
		void *data = (void *)__get_free_pages(GFP_KERNEL_ACCOUNT | __GFP_NOWARN,
						      get_order(conn->rx_buf_bytes));

		if (!data)
			return -ENOMEM;
		conn->rx_buf[i].data = data;
		conn->rx_buf[i].seg.conn = &conn->base;
		r->extents[i].kaddr = data;
		r->extents[i].offset = (u64)i * conn->rx_buf_bytes;
	}
	r->extents[i].offset = (u64)i * conn->rx_buf_bytes;
	r->bytes = r->extents[i].offset;
	return 0;
}

static int alloc_entries(struct swc_rdma_conn *conn)
{
	struct swc_sq *sq = &conn->sq;
	u32 i;

	sq->entry = kvcalloc(SWC_SQ_DEPTH, sizeof(*sq->entry), GFP_KERNEL_ACCOUNT);
	if (!sq->entry)
		return -ENOMEM;
	for (i = 0; i < SWC_SQ_DEPTH; i++) {
		sq->entry[i].conn = conn;
		sq->entry[i].page = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
		if (!sq->entry[i].page)
			return -ENOMEM;
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

	for (i = 0; conn->rx_buf && i < conn->nrx_bufs; i++)
		free_pages((unsigned long)conn->rx_buf[i].data, get_order(conn->rx_buf_bytes));
	kvfree(conn->rx_buf);
	conn->rx_buf = NULL;
	if (conn->rx_region)
		kvfree(conn->rx_region->extents);
	kfree(conn->rx_region);
	conn->rx_region = NULL;
	for (i = 0; conn->sq.entry && i < SWC_SQ_DEPTH; i++)
		free_page((unsigned long)conn->sq.entry[i].page);
	kvfree(conn->sq.entry);
	conn->sq.entry = NULL;
}

/* ------------------------------------------------------------------ mapping */

/*
 * Map all for the device; on error swc_buffers_unmap() unmaps what was mapped. DMA address 0 means not
 * mapped: it is no address of a buffer, with rxe neither.
 */
int swc_buffers_map(struct swc_rdma_conn *conn)
{
	struct ib_device *ib = conn->dev->ib;
	u32 i;

	for (i = 0; i < SWC_SQ_DEPTH; i++) {
		u64 dma = ib_dma_map_single(ib, conn->sq.entry[i].page, SWC_ENTRY_BYTES, DMA_TO_DEVICE);

		if (ib_dma_mapping_error(ib, dma))
			return -ENOMEM;
		conn->sq.entry[i].page_dma = dma;
	}
	for (i = 0; i < conn->nrx_bufs; i++) {
		u64 dma = ib_dma_map_single(ib, conn->rx_buf[i].data, conn->rx_buf_bytes, DMA_FROM_DEVICE);

		if (ib_dma_mapping_error(ib, dma))
			return -ENOMEM;
		conn->rx_buf[i].dma = dma;
	}
	return 0;
}

/* The queue pair is drained. */
void swc_buffers_unmap(struct swc_rdma_conn *conn)
{
	struct ib_device *ib = conn->dev->ib;
	u32 i;

	if (!conn->sq.entry)
		return;
	for (i = 0; i < SWC_SQ_DEPTH; i++) {
		struct swc_sq_entry *entry = &conn->sq.entry[i];

		if (entry->page_dma)
			ib_dma_unmap_single(ib, entry->page_dma, SWC_ENTRY_BYTES, DMA_TO_DEVICE);
		entry->page_dma = 0;
	}
	for (i = 0; i < conn->nrx_bufs; i++) {
		if (conn->rx_buf[i].dma)
			ib_dma_unmap_single(ib, conn->rx_buf[i].dma, conn->rx_buf_bytes, DMA_FROM_DEVICE);
		conn->rx_buf[i].dma = 0;
	}
}
