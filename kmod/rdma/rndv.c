// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rendezvous: memory that a peer writes a message into.
 *
 * The memory is offered to the sender in chunks, each behind a memory region of its own. A chunk is
 * registered, then offered by an RTR that follows the registration on the same queue pair, so that no key
 * is known before it is valid. The message by which the peer reports that the chunk is written invalidates
 * the region: from then on the peer cannot reach the memory any more, whatever it does. The rendezvous is
 * closed when that is so of all its chunks.
 *
 * The address in an RTR is random: the device's own would tell the network where the memory is, which with
 * RDMA in software is an address of the kernel.
 */
#include <linux/random.h>
#include <rdma/mr_pool.h>

#include "rdma/rdma.h"

/* Of memory that begins at any place in a page. */
#define CHUNK_BYTES	(1u << 20)
#define CHUNK_PAGES	(CHUNK_BYTES / PAGE_SIZE + 1)

int swc_rndv_setup(struct swc_rdma_conn *conn)
{
	struct ib_device *ib = conn->dev->ib;
	struct ib_qp *qp = conn->id->qp;
	u32 i;
	int ret;

	conn->chunk_pages = min_t(u32, CHUNK_PAGES, ib->attrs.max_fast_reg_page_list_len);
	if (!conn->chunk_pages)
		return -EOPNOTSUPP;
	ret = ib_mr_pool_init(qp, &qp->rdma_mrs, SWC_WIRE_CHUNKS, IB_MR_TYPE_MEM_REG, conn->chunk_pages, 0);
	if (ret)
		return ret;
	for (i = 0; i < SWC_WIRE_CHUNKS; i++) {
		struct swc_chunk *c = &conn->chunk[i];

		c->sg = kvmalloc_array(conn->chunk_pages, sizeof(*c->sg), GFP_KERNEL_ACCOUNT);
		if (!c->sg)
			return -ENOMEM;
	}
	return 0;
}

static void unmap(struct swc_rdma_conn *conn, struct swc_chunk *c)
{
	if (c->nents)
		ib_dma_unmap_sg(conn->dev->ib, c->sg, c->nents, DMA_FROM_DEVICE);
	c->nents = 0;
}

static void put_mr(struct swc_rdma_conn *conn, struct swc_chunk *c)
{
	struct ib_qp *qp = conn->id->qp;

	if (c->mr)
		ib_mr_pool_put(qp, &qp->rdma_mrs, c->mr);
	c->mr = NULL;
}

/*
 * The queue pair is in error. Regions are freed before the memory is unmapped: as long as a key is valid,
 * a peer on another queue pair could guess it.
 */
void swc_rndv_teardown(struct swc_rdma_conn *conn)
{
	struct swc_chunk *c, *end = conn->chunk + SWC_WIRE_CHUNKS;
	struct ib_qp *qp = conn->id->qp;

	for (c = conn->chunk; c < end; c++)
		put_mr(conn, c);
	ib_mr_pool_destroy(qp, &qp->rdma_mrs);
	for (c = conn->chunk; c < end; c++) {
		unmap(conn, c);
		kvfree(c->sg);
		c->sg = NULL;
		c->rndv = NULL;
	}
}

/* ------------------------------------------------------------------ offering; conn->base.lock is held */

/* Make the scatter list of a chunk; returns the bytes in it. */
static u32 fill_sg(struct swc_rdma_conn *conn, struct swc_chunk *c, const struct swc_span *span, u64 bytes)
{
	const struct swc_extent *e = swc_extents_find(span->extents, span->offset);
	u64 at = span->offset, end = span->offset + min_t(u64, bytes, CHUNK_BYTES);
	u32 pages = conn->chunk_pages, n = 0;

	sg_init_table(c->sg, conn->chunk_pages);
	while (at < end && pages && n < conn->chunk_pages) {
		void *from = e->kaddr + (at - e->offset);
		u64 len = min(end, e[1].offset) - at;
		u32 off = offset_in_page(from), need;

		/* All but the last end with a page. */
		len = min3(len, (u64)pages * PAGE_SIZE - off, (u64)SWC_MAP_BYTES - off);
		need = DIV_ROUND_UP(off + len, PAGE_SIZE);
		sg_set_page(&c->sg[n++], virt_to_page(from), len, off);
		pages -= need;
		at += len;
		e += at == e[1].offset;
	}
	sg_mark_end(&c->sg[n - 1]);
	c->nents = n;
	return at - span->offset;
}

static struct swc_chunk *find_free(struct swc_rdma_conn *conn, u32 *nfree)
{
	struct swc_chunk *c = NULL;
	u32 i;

	*nfree = 0;
	for (i = 0; i < SWC_WIRE_CHUNKS; i++) {
		if (conn->chunk[i].rndv)
			continue;
		c = c ?: &conn->chunk[i];
		(*nfree)++;
	}
	return c;
}

/*
 * The address by which the peer writes to a region. Only the part below a page must be that of the memory.
 * The upper half of the addresses is left out: it has those of the kernel, and regions that would wrap.
 */
static u64 random_address(const struct ib_mr *mr)
{
	return (get_random_u64() & GENMASK_ULL(62, PAGE_SHIFT)) | offset_in_page(mr->iova);
}

/* Map the next bytes of a rendezvous for the device, behind a region; false: that failed. */
static bool map_chunk(struct swc_rdma_conn *conn, struct swc_chunk *c, const struct swc_rndv *rndv)
{
	struct ib_qp *qp = conn->id->qp;
	struct swc_span span = rndv->span;
	int n;

	span.offset += rndv->offered;
	c->bytes = fill_sg(conn, c, &span, rndv->bytes - rndv->offered);
	n = swc_t_map_refused() ? 0 : ib_dma_map_sg(conn->dev->ib, c->sg, c->nents, DMA_FROM_DEVICE);
	if (n <= 0) {
		c->nents = 0;
		swc_sq_map_failed(conn);
		return false;
	}
	conn->sq.map_failing_s = 0;
	/* There is one for each chunk. */
	c->mr = ib_mr_pool_get(qp, &qp->rdma_mrs);
	n = ib_map_mr_sg(c->mr, c->sg, n, NULL, PAGE_SIZE);
	if (n <= 0 || c->mr->length != c->bytes) {
		put_mr(conn, c);
		unmap(conn, c);
		conn->sq.error = n < 0 ? n : -EIO;
		return false;
	}
	/* Before the registration is posted: drivers take the address from the region then. */
	c->mr->iova = random_address(c->mr);
	ib_update_fast_reg_key(c->mr, ib_inc_rkey(c->mr->rkey));
	return true;
}

/* Register the chunk, then offer it. */
static void post_offer(struct swc_rdma_conn *conn, struct swc_chunk *c, struct swc_rndv *rndv)
{
	struct swc_sq_entry *entry = swc_sq_next(conn);
	struct ib_reg_wr reg = { .wr.opcode = IB_WR_REG_MR, .mr = c->mr, .key = c->mr->rkey,
				 .access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE };
	struct ib_send_wr send = { .opcode = IB_WR_SEND };
	struct swc_wire_header *h;
	struct swc_wire_rtr *rtr;

	swc_sq_chain(conn, entry, &reg.wr);
	entry = swc_sq_next(conn);
	entry->kind = SWC_SQ_RTR;
	h = swc_sq_message(conn, entry, SWC_HEADER + sizeof(*rtr));
	swc_tx_rtr(&conn->base, h, rndv, c->bytes);
	rtr = (void *)(h + 1);
	rtr->addr = cpu_to_le64(c->mr->iova);
	rtr->rkey = cpu_to_le32(c->mr->rkey);
	rtr->chunk = cpu_to_le32(c - conn->chunk);
	send.sg_list = entry->sge;
	send.num_sge = 1;
	swc_sq_post(conn, entry, &send, false);
}

/* Post the next request of a rendezvous; false: there is none. A send queue entry is free. */
bool swc_rndv_post(struct swc_rdma_conn *conn)
{
	struct swc_rndv *rndv;
	struct swc_chunk *c;
	u32 nfree;

	c = find_free(conn, &nfree);
	if (!c || !swc_sq_has_room(conn, 2))
		return false;
	rndv = swc_tx_next_rndv(&conn->base, nfree);
	if (!rndv || !map_chunk(conn, c, rndv))
		return false;
	c->rndv = rndv;
	post_offer(conn, c, rndv);
	rndv->offered += c->bytes;
	return true;
}

/* ------------------------------------------------------------------ completing; conn->base.lock is held */

/**
 * swc_rndv_written() - the peer reports that a chunk is written, and out of its reach
 * @chunk: its number, below SWC_WIRE_CHUNKS
 * @rkey: the key that the peer has invalidated
 * @done: gets the rendezvous that is complete and closed by that, for the caller to return; or NULL
 *
 * Return: 0, or -EPROTO if the chunk was not offered, or by another key.
 */
int swc_rndv_written(struct swc_rdma_conn *conn, u32 chunk, u32 rkey, struct swc_rndv **done)
{
	struct swc_chunk *c = &conn->chunk[chunk];
	struct swc_rndv *rndv = c->rndv;

	lockdep_assert_held(&conn->base.lock);
	if (!rndv || c->mr->rkey != rkey)
		return -EPROTO;
	put_mr(conn, c);
	unmap(conn, c);
	c->rndv = NULL;
	rndv->closed += c->bytes;
	*done = swc_rx_written(rndv, c->bytes) ? rndv : NULL;
	if (*done)
		list_del(&rndv->node);
	return 0;
}
