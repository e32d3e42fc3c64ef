// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that a peer writes into.
 *
 * A landing is offered to its sender in chunks, each behind a memory region of its own: registered, and
 * offered by a READY that follows the registration on the same queue pair, so that no key is known before it
 * is good. When the peer says that a chunk is written, its bytes are used, and the region is invalidated
 * meanwhile; the landing comes back when that is done: then the peer cannot reach the memory any more,
 * whatever it does.
 */
#include <rdma/mr_pool.h>

#include "rdma.h"

#define CHUNK_PAGES	256

int swc_land_set_up(struct swc_conn *conn)
{
	struct ib_device *ib = conn->dev->ib;
	u32 i;
	int ret;

	/* One page less than the region has: a range may begin and end inside a page. */
	conn->chunk_pages = min_t(u32, CHUNK_PAGES, ib->attrs.max_fast_reg_page_list_len);
	if (conn->chunk_pages < 2)
		return -EOPNOTSUPP;
	ret = ib_mr_pool_init(conn->id->qp, &conn->id->qp->rdma_mrs, SWC_WIRE_CHUNKS,
			      IB_MR_TYPE_MEM_REG, conn->chunk_pages, 0);
	if (ret)
		return ret;
	for (i = 0; i < SWC_WIRE_CHUNKS; i++) {
		struct swc_chunk *c = &conn->chunk[i];

		c->state = SWC_CHUNK_FREE;
		c->mr = ib_mr_pool_get(conn->id->qp, &conn->id->qp->rdma_mrs);
		c->sg = kvmalloc_array(conn->chunk_pages, sizeof(*c->sg), GFP_KERNEL_ACCOUNT);
		if (!c->sg)
			return -ENOMEM;
	}
	return 0;
}

/* Not for the CPU to see what was written, see swc_land_written(): it may have written there itself since. */
static void unmap(struct swc_conn *conn, struct swc_chunk *c)
{
	if (c->nents)
		ib_dma_unmap_sg_attrs(conn->dev->ib, c->sg, c->nents, DMA_FROM_DEVICE,
				      DMA_ATTR_SKIP_CPU_SYNC);
	c->nents = 0;
}

/* The queue pair is in error; but another peer, on another one, could guess a key as long as it is valid. */
void swc_land_take_apart(struct swc_conn *conn)
{
	struct ib_qp *qp = conn->id->qp;
	struct swc_chunk *c, *end = conn->chunk + SWC_WIRE_CHUNKS;

	for (c = conn->chunk; c < end; c++) {
		if (c->mr)
			ib_mr_pool_put(qp, &qp->rdma_mrs, c->mr);
		c->mr = NULL;
	}
	ib_mr_pool_destroy(qp, &qp->rdma_mrs);
	for (c = conn->chunk; c < end; c++) {
		unmap(conn, c);
		kvfree(c->sg);
		c->sg = NULL;
		c->state = SWC_CHUNK_FREE;
	}
}

/* The chunk's memory as a scatter list; bytes taken. */
static u32 gather(struct swc_conn *conn, struct swc_chunk *c, const struct swc_span *span, u64 bytes)
{
	const struct swc_extent *e = swc_region_find(span->region, span->offset);
	u64 at = span->offset, end = span->offset + bytes;
	u32 pages = conn->chunk_pages - 1, n = 0;

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

static struct swc_chunk *free_chunk(struct swc_conn *conn, u32 *nfree)
{
	struct swc_chunk *c = NULL;
	u32 i;

	*nfree = 0;
	for (i = 0; i < SWC_WIRE_CHUNKS; i++) {
		if (conn->chunk[i].state != SWC_CHUNK_FREE)
			continue;
		c = c ?: &conn->chunk[i];
		(*nfree)++;
	}
	return c;
}

/*
 * The next landing to offer a piece of, or NULL. As with credits, half of the chunks are kept for the oldest
 * operation, partitions apart, which have none: a sender that has not come to another one does not write
 * there.
 */
static struct swc_landing *next_landing(struct swc_conn *conn, u32 nfree)
{
	struct swc_landing *land, *other = NULL;

	list_for_each_entry(land, &conn->lands, node) {
		if (land->offered == land->bytes)
			continue;
		if (land->seq == READ_ONCE(conn->comm->favoured))
			return land;
		other = other ?: land;
	}
	return nfree > SWC_WIRE_CHUNKS / 2 ? other : NULL;
}

/* Register the chunk; then offer it. Two records are free. */
static void offer(struct swc_conn *conn, struct swc_chunk *c, struct swc_landing *land)
{
	struct swc_send_rec *rec = swc_conn_rec(conn);
	struct ib_reg_wr reg = { .wr.opcode = IB_WR_REG_MR, .mr = c->mr, .key = c->mr->rkey,
				 .access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE };
	struct ib_send_wr send = { .opcode = IB_WR_SEND };
	struct swc_wire_header *h;
	struct swc_wire_ready *ready;

	swc_conn_post(conn, rec, &reg.wr, false);
	rec = swc_conn_rec(conn);
	h = swc_conn_header(conn, rec, SWC_WIRE_READY);
	h->ordinal = cpu_to_le32(land->ordinal);
	swc_conn_sign(h, land->run);
	h->offset = cpu_to_le64(land->offered);
	h->total = cpu_to_le64(land->bytes);
	h->bytes = cpu_to_le32(c->bytes);
	ready = (void *)(h + 1);
	ready->addr = cpu_to_le64(c->mr->iova);
	ready->rkey = cpu_to_le32(c->mr->rkey);
	ready->chunk = cpu_to_le32(c - conn->chunk);
	rec->sge[0].length = SWC_HEADER + sizeof(*ready);
	send.sg_list = rec->sge;
	send.num_sge = 1;
	land->offered += c->bytes;
	swc_conn_post(conn, rec, &send, false);
}

static bool offer_next(struct swc_conn *conn)
{
	u32 nfree;
	struct swc_chunk *c = free_chunk(conn, &nfree);
	struct swc_landing *land;
	struct swc_span span;
	int n;

	if (!c || SWC_SQ_DEPTH - (conn->sq_head - conn->sq_tail) < 2)
		return false;
	land = next_landing(conn, nfree);
	if (!land)
		return false;
	span = land->span;
	span.offset += land->offered;
	c->bytes = gather(conn, c, &span, land->bytes - land->offered);
	n = swc_t_map_refused() ? 0 : ib_dma_map_sg(conn->dev->ib, c->sg, c->nents, DMA_FROM_DEVICE);
	if (n <= 0) {
		c->nents = 0;
		swc_conn_starve(conn);
		return false;
	}
	conn->starved = 0;
	n = ib_map_mr_sg(c->mr, c->sg, n, NULL, PAGE_SIZE);
	if (n <= 0 || c->mr->length != c->bytes) {
		unmap(conn, c);
		conn->post_error = n < 0 ? n : -EIO;
		return false;
	}
	ib_update_fast_reg_key(c->mr, ib_inc_rkey(c->mr->rkey));
	c->land = land;
	c->state = SWC_CHUNK_OFFERED;
	offer(conn, c, land);
	return true;
}

static bool invalidate_next(struct swc_conn *conn)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV };
	struct swc_send_rec *rec;
	u32 i;

	for (i = 0; i < SWC_WIRE_CHUNKS; i++) {
		struct swc_chunk *c = &conn->chunk[i];

		if (c->state != SWC_CHUNK_WRITTEN)
			continue;
		rec = swc_conn_rec(conn);
		rec->chunk = c;
		c->state = SWC_CHUNK_INVALIDATING;
		wr.ex.invalidate_rkey = c->mr->rkey;
		swc_conn_post(conn, rec, &wr, true);
		return true;
	}
	return false;
}

/* Post the next thing that landings need, if any; conn->lock is held and a record is free. */
bool swc_land_post(struct swc_conn *conn)
{
	return invalidate_next(conn) || offer_next(conn);
}

/*
 * The peer says that a chunk is written; @landing: the landing that is complete by that, or NULL. It does not
 * come back before this completion has been dealt with. conn->lock is held.
 */
int swc_land_written(struct swc_conn *conn, u32 chunk, struct swc_landing **landing)
{
	struct ib_device *ib = conn->dev->ib;
	struct swc_landing *land;
	struct swc_chunk *c;

	if (chunk >= SWC_WIRE_CHUNKS || conn->chunk[chunk].state != SWC_CHUNK_OFFERED)
		return -EPROTO;
	c = &conn->chunk[chunk];
	if (!ib_uses_virt_dma(ib))
		dma_sync_sg_for_cpu(ib->dma_device, c->sg, c->nents, DMA_FROM_DEVICE);
	c->state = SWC_CHUNK_WRITTEN;
	land = c->land;
	land->landed += c->bytes;
	swc_stat_add(SWC_STAT_BYTES_RECEIVED, c->bytes);
	swc_stat_add(SWC_STAT_BYTES_DIRECT, c->bytes);
	*landing = NULL;
	if (land->landed == land->bytes) {
		swc_stat_inc(SWC_STAT_MSGS_RECEIVED);
		*landing = land;
	}
	return 0;
}

/* A chunk is out of the peer's reach; the landing that is so by that, if any. conn->lock is held. */
struct swc_landing *swc_land_invalidated(struct swc_conn *conn, struct swc_chunk *c)
{
	struct swc_landing *land = c->land;

	unmap(conn, c);
	c->state = SWC_CHUNK_FREE;
	c->land = NULL;
	land->withdrawn += c->bytes;
	if (land->withdrawn < land->bytes)
		return NULL;
	list_del_init(&land->node);
	return land;
}
