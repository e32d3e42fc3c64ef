// SPDX-License-Identifier: GPL-2.0-only
/*
 * The send queue of a connection: free entries, posting, which requests are signaled, and mapping of memory
 * for the device. Everything runs under the connection's lock, but for the end of a connection, when nothing
 * is posted any more.
 *
 * One request in SWC_SIGNAL is signaled at least; its completion is that of all before it. Or a read follows,
 * whose answer is that (iwarp.c). Each takes a page until then. A connection that sends little has few pages;
 * more are added when none is left, if there is memory. The last ones are always given to such requests, so
 * that pages come back.
 */
#include "rdma/rdma.h"

bool swc_sq_is_full(const struct swc_rdma_conn *conn)
{
	return conn->sq.head - conn->sq.tail == SWC_SQ_DEPTH;
}

/*
 * Can so many requests be posted? A connection that can be resumed keeps one page for AUTH: all others may be
 * those of messages that have to be sent again after it.
 */
bool swc_sq_has_room(struct swc_rdma_conn *conn, u32 n)
{
	struct swc_sq *sq = &conn->sq;

	lockdep_assert_held(&conn->base.lock);
	if (SWC_SQ_DEPTH - (sq->head - sq->tail) < n)
		return false;
	n += conn->base.resumable;
	/* A request that was not posted in the end has left its page to the next one. */
	if (sq->entry[sq->head % SWC_SQ_DEPTH].page.data)
		n--;
	while (sq->npages < n)
		if (swc_buffers_add_page(conn))
			return false;
	return true;
}

/* The next free entry; the caller has checked that there is one. */
struct swc_sq_entry *swc_sq_next(struct swc_rdma_conn *conn)
{
	struct swc_sq *sq = &conn->sq;
	struct swc_sq_entry *entry = &sq->entry[sq->head % SWC_SQ_DEPTH];

	if (!entry->page.data)
		entry->page = sq->page[--sq->npages];
	entry->send = NULL;
	entry->kind = SWC_SQ_NONE;
	entry->is_abort = false;
	return entry;
}

static void give_back_page(struct swc_sq *sq, struct swc_sq_entry *entry)
{
	if (entry->page.data)
		sq->page[sq->npages++] = entry->page;
	entry->page = (struct swc_sq_page){};
}

/* The next free entry, with a message that lies in this page. */
struct swc_sq_entry *swc_sq_next_with(struct swc_rdma_conn *conn, struct swc_sq_page page)
{
	struct swc_sq *sq = &conn->sq;
	struct swc_sq_entry *entry = &sq->entry[sq->head % SWC_SQ_DEPTH];

	give_back_page(sq, entry);
	entry->page = page;
	return swc_sq_next(conn);
}

/* A message of @bytes, or of so many that are followed by mapped memory, in the entry's page. */
struct swc_wire_header *swc_sq_message(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, u32 bytes)
{
	entry->sge[0] = (struct ib_sge){ .addr = entry->page.dma, .length = bytes,
					 .lkey = conn->pd->local_dma_lkey };
	return entry->page.data;
}

static void prepare(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, struct ib_send_wr *wr,
		    bool signal)
{
	bool large = conn->iwarp && swc_iwarp_must_signal(wr), keeps = swc_iwarp_keeps(conn), few, due;
	struct swc_sq *sq = &conn->sq;

	lockdep_assert_held(&conn->base.lock);
	/* The two requests of a chunk may come next: then swc_sq_has_room() asks for so many. */
	few = sq->npages < 2u + conn->base.resumable;
	due = signal || ++sq->unsignaled >= SWC_SIGNAL || few || (large && !keeps);
	if (due)
		sq->unsignaled = 0;
	if (keeps)
		conn->ack.wanted |= due;
	/* What something waits for is reported as well, for the case that the peer leaves. */
	if (keeps ? signal || large : due)
		wr->send_flags |= IB_SEND_SIGNALED;
	wr->wr_cqe = &entry->cqe;
	if (wr->opcode == IB_WR_SEND || wr->opcode == IB_WR_SEND_WITH_INV)
		ib_dma_sync_single_for_device(conn->dev->ib, entry->page.dma, entry->sge[0].length,
					      DMA_TO_DEVICE);
	if (entry->kind >= SWC_SQ_COPIED)
		entry->number = conn->sent++;
	sq->head++;
	conn->base.nsent++;
}

/**
 * swc_sq_chain() - prepare a work request that is posted together with the next one
 * @entry: of swc_sq_next()
 * @wr: must stay until swc_sq_post()
 *
 * The device is told of both at once.
 */
void swc_sq_chain(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, struct ib_send_wr *wr)
{
	prepare(conn, entry, wr, false);
	conn->sq.chain = wr;
}

/**
 * swc_sq_post() - post a work request
 * @entry: of swc_sq_next()
 * @signal: something waits for it to complete
 *
 * An error makes the connection unusable; swc_rdma_pump() acts on it.
 */
void swc_sq_post(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, struct ib_send_wr *wr, bool signal)
{
	struct swc_sq *sq = &conn->sq;
	struct ib_send_wr *first = wr;
	int ret;

	prepare(conn, entry, wr, signal);
	if (sq->chain) {
		first = sq->chain;
		first->next = wr;
		sq->chain = NULL;
	}
	ret = ib_post_send(conn->id->qp, first, NULL);
	if (ret)
		sq->error = ret;
}

/* The same for a message that is only sent because the queue is idle: it does not count as activity. */
void swc_sq_post_probe(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, struct ib_send_wr *wr)
{
	swc_sq_post(conn, entry, wr, true);
	conn->base.nsent--;
	conn->sq.probe_head = conn->sq.head;
}

/* ------------------------------------------------------------------ mapping */

/*
 * Memory cannot be mapped for the device. Requests that complete make room: posting is tried again
 * whenever one of this connection does, and by swc_rdma_watch() every second.
 */
void swc_sq_map_failed(struct swc_rdma_conn *conn)
{
	struct swc_sq *sq = &conn->sq;

	lockdep_assert_held(&conn->base.lock);
	sq->map_failed = true;
	if (sq->map_failing_s)
		return;
	sq->map_failing_s = 1;
	/* Requests that are not signaled complete with a later one. */
	if (sq->unsignaled) {
		swc_conn_pend(&conn->base, SWC_PEND_KEEPALIVE);
		swc_conn_pump_later(&conn->base);
	}
}

/**
 * swc_sq_map() - map memory for a send or a write
 * @entry: gets scatter list entries, from @first on
 * @span: where the memory begins
 * @max_bytes: map no more than this
 * @nsge: gets the number of entries used, with the first ones
 *
 * Return: bytes mapped; 0: none could be.
 */
u32 swc_sq_map(struct swc_rdma_conn *conn, struct swc_sq_entry *entry, u32 first, const struct swc_span *span,
	       u32 max_bytes, u32 *nsge)
{
	const struct swc_extent *e = swc_extents_find(span->extents, span->offset);
	u64 at = span->offset, end = span->offset + max_bytes;
	struct ib_device *ib = conn->dev->ib;
	u32 n = first;

	lockdep_assert_held(&conn->base.lock);
	entry->first_mapped = first;
	while (at < end && n < conn->sq.nsge) {
		void *from = e->kaddr + (at - e->offset);
		u32 len = min_t(u64, min(end, e[1].offset) - at, SWC_MAP_BYTES);
		u64 dma = ib_dma_map_page(ib, virt_to_page(from), offset_in_page(from), len, DMA_TO_DEVICE);

		if (ib_dma_mapping_error(ib, dma))
			break;
		if (swc_t_map_refused()) {
			ib_dma_unmap_page(ib, dma, len, DMA_TO_DEVICE);
			break;
		}
		entry->sge[n] = (struct ib_sge){ .addr = dma, .length = len,
						 .lkey = conn->pd->local_dma_lkey };
		n++;
		at += len;
		e += at == e[1].offset;
	}
	entry->nmapped = n - first;
	*nsge = n;
	if (at == span->offset)
		swc_sq_map_failed(conn);
	else
		conn->sq.map_failing_s = 0;
	return at - span->offset;
}

void swc_sq_unmap(struct swc_rdma_conn *conn, struct swc_sq_entry *entry)
{
	u32 i;

	for (i = entry->first_mapped; i < entry->first_mapped + entry->nmapped; i++)
		ib_dma_unmap_page(conn->dev->ib, entry->sge[i].addr, entry->sge[i].length, DMA_TO_DEVICE);
	entry->nmapped = 0;
}

/* ------------------------------------------------------------------ completing */

/* The request is done. */
void swc_sq_complete(struct swc_rdma_conn *conn, struct swc_sq_entry *entry)
{
	lockdep_assert_held(&conn->base.lock);
	swc_sq_unmap(conn, entry);
	give_back_page(&conn->sq, entry);
}

/* ------------------------------------------------------------------ the end */

/* The queue is empty, and its next request is the first of a new queue pair. */
void swc_sq_restart(struct swc_rdma_conn *conn)
{
	struct swc_sq *sq = &conn->sq;

	lockdep_assert_held(&conn->base.lock);
	sq->head = 0;
	sq->tail = 0;
	sq->reported = 0;
	sq->probe_head = 0;
	sq->stalled_s = 0;
	sq->unsignaled = 0;
	swc_iwarp_reset(conn);
}

/* The queue pair is gone: nothing is posted, and nothing is kept. */
void swc_sq_reset(struct swc_rdma_conn *conn)
{
	struct swc_sq *sq = &conn->sq;
	u32 i;

	lockdep_assert_held(&conn->base.lock);
	for (i = 0; sq->entry && i < SWC_SQ_DEPTH; i++)
		give_back_page(sq, &sq->entry[i]);
	for (; sq->nreplay; sq->nreplay--)
		sq->page[sq->npages++] = sq->replay[sq->first_replay++ % SWC_SQ_DEPTH].page;
	swc_sq_restart(conn);
}
