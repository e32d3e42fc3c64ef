// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages out.
 *
 * Messages wait in @outq until there are credits and records; a small one is copied into its record, so that
 * its sender goes on at once, a large one is read by the device where it lies. A stored one of
 * SWC_WIRE_DIRECT bytes or more waits for the receiver's offers (land.c) and is written into place.
 *
 * Credits count landing slots of the peer that segments take. Ranks come to operations one after the other,
 * so those of one that a receiver has not come to yet must not keep those of earlier ones from being
 * received: half of the credits are kept for the oldest operation. Partitions become ready in any order, and
 * those who receive them see to it that none stays in its slot for long (news.c). So they may use all
 * credits, and what follows unfinished ones must leave them half; of the other half, the oldest of these
 * calls has a part before all others.
 *
 * All posting happens in swc_conn_pump(), under the lock; everything that makes posting possible calls it.
 */
#include "rdma.h"

/* ------------------------------------------------------------------ posting; conn->lock is held */

static bool sq_room(const struct swc_conn *conn)
{
	return conn->sq_head - conn->sq_tail < SWC_SQ_DEPTH;
}

/* The next free record; the caller has seen that there is one. */
struct swc_send_rec *swc_conn_rec(struct swc_conn *conn)
{
	struct swc_send_rec *rec = &conn->rec[conn->sq_head % SWC_SQ_DEPTH];

	rec->out = NULL;
	rec->chunk = NULL;
	rec->told = false;
	return rec;
}

/**
 * swc_conn_post() - post what a record describes
 * @signal: somebody waits for it to complete
 */
void swc_conn_post(struct swc_conn *conn, struct swc_send_rec *rec, struct ib_send_wr *wr, bool signal)
{
	int ret;

	if (signal || ++conn->quiet >= SWC_SIGNAL) {
		wr->send_flags |= IB_SEND_SIGNALED;
		conn->quiet = 0;
	}
	wr->wr_cqe = &rec->cqe;
	if (wr->opcode == IB_WR_SEND)
		ib_dma_sync_single_for_device(conn->dev->ib, rec->page_dma, rec->sge[0].length,
					      DMA_TO_DEVICE);
	conn->sq_head++;
	ret = ib_post_send(conn->id->qp, wr, NULL);
	if (ret)
		conn->post_error = ret;
}

struct swc_wire_header *swc_conn_header(struct swc_conn *conn, struct swc_send_rec *rec,
					enum swc_wire_kind kind)
{
	struct swc_wire_header *h = rec->page;

	memset(h, 0, sizeof(*h));
	h->kind = kind;
	h->credits = cpu_to_le16(conn->to_return);
	conn->to_return = 0;
	conn->pending &= ~SWC_PEND_CREDIT;
	rec->sge[0] = (struct ib_sge){ .addr = rec->page_dma, .length = SWC_HEADER,
				       .lkey = conn->pd->local_dma_lkey };
	return h;
}

/* Credits that there must be for a segment of a message. */
static u32 need(const struct swc_conn *conn, const struct swc_out *out)
{
	const struct swc_comm *comm = conn->comm;
	u32 all = conn->peer_slots;

	if (out->run->part->parted || out->seq == READ_ONCE(comm->oldest))
		return 1;
	if (!READ_ONCE(comm->nparted) || out->seq == READ_ONCE(comm->favoured))
		return all / 2 + 1;
	return 3 * all / 4 + 1;
}

static void fill_abort(struct swc_conn *conn, struct swc_wire_abort *a)
{
	const struct swc_comm *comm = conn->comm;

	/* Constant once the communicator has ended. */
	a->error = cpu_to_le32(comm->error ? -comm->error : ECONNABORTED);
	a->culprit = cpu_to_le32(comm->culprit + 1);
	memcpy(a->text, comm->text, sizeof(a->text));
}

/* What operation a message is of. */
void swc_conn_sign(struct swc_wire_header *h, const struct swc_run *run)
{
	const struct swc_op *op = run->part->op;
	const struct swc_desc *d = &op->desc;

	h->seq = cpu_to_le64(op->seq);
	h->root = cpu_to_le32(d->root);
	h->count = cpu_to_le64(d->count);
	h->family = cpu_to_le64(op->family);
	h->flags = run->part->parted ? SWC_WIRE_PARTITION : 0;
	h->coll = d->coll;
	h->dtype = d->dtype;
	h->redop = d->redop;
}

static struct swc_offer *offer_for(struct swc_conn *conn, const struct swc_out *out)
{
	u32 i;

	for (i = 0; i < SWC_WIRE_CHUNKS; i++) {
		struct swc_offer *o = &conn->offer[i];

		if (o->valid && o->msg.seq == out->seq && o->msg.ordinal == out->ordinal &&
		    o->msg.offset + o->posted == out->posted)
			return o;
	}
	return NULL;
}

/* The first message whose receiver has offered no memory for it; NULL: none waits for that. */
static struct swc_out *first_wanting(struct swc_conn *conn)
{
	struct swc_out *out;

	list_for_each_entry(out, &conn->outq, node)
		if (out->stored && out->bytes >= SWC_WIRE_DIRECT && !offer_for(conn, out))
			return out;
	return NULL;
}

static bool post_short(struct swc_conn *conn)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .num_sge = 1 };
	struct swc_send_rec *rec;
	struct swc_wire_header *h;
	struct swc_out *out;
	/* What is sent only because of a silence does not end it. */
	bool quiet = false, last = false;

	if (!conn->pending || conn->ended)
		return false;
	rec = swc_conn_rec(conn);
	if (conn->pending & SWC_PEND_PROOF) {
		conn->pending &= ~SWC_PEND_PROOF;
		h = swc_conn_header(conn, rec, SWC_WIRE_PROOF);
		swc_conn_proof(conn, h + 1);
		rec->sge[0].length += SWC_WIRE_MAC;
	} else if (conn->pending & SWC_PEND_ABORT) {
		conn->pending &= ~SWC_PEND_ABORT;
		h = swc_conn_header(conn, rec, SWC_WIRE_ABORT);
		h->seq = cpu_to_le64(conn->comm->error_seq);
		fill_abort(conn, (void *)(h + 1));
		rec->sge[0].length += sizeof(struct swc_wire_abort);
		rec->told = true;
		conn->ended = true;
		last = true;
	} else if (conn->pending & SWC_PEND_BYE) {
		conn->pending &= ~SWC_PEND_BYE;
		h = swc_conn_header(conn, rec, SWC_WIRE_BYE);
		h->seq = cpu_to_le64(conn->comm->member[conn->me].submitted);
		last = true;
	} else if (conn->pending & SWC_PEND_ASK) {
		conn->pending &= ~SWC_PEND_ASK;
		swc_conn_header(conn, rec, SWC_WIRE_ASK);
	} else if (conn->pending & SWC_PEND_WANT) {
		conn->pending &= ~SWC_PEND_WANT;
		out = first_wanting(conn);
		if (!out)
			return true;
		h = swc_conn_header(conn, rec, SWC_WIRE_WANT);
		swc_conn_sign(h, out->run);
		h->ordinal = cpu_to_le32(out->ordinal);
		h->total = cpu_to_le64(out->bytes);
		quiet = true;
	} else {
		quiet = conn->pending & SWC_PEND_PROBE;
		conn->pending &= ~(SWC_PEND_CREDIT | SWC_PEND_PROBE);
		if (!conn->to_return && !quiet)
			return true;
		h = swc_conn_header(conn, rec, SWC_WIRE_CREDIT);
		h->seq = cpu_to_le64(READ_ONCE(conn->comm->member[conn->me].submitted));
	}
	wr.sg_list = rec->sge;
	swc_conn_post(conn, rec, &wr, last || quiet);
	if (quiet) {
		conn->seen++;
		conn->asked = conn->sq_head;
	}
	return true;
}

/*
 * Memory cannot be mapped for the device: what is mapped for earlier requests, of this connection or others,
 * makes room when it is done. Tried again whenever one of this connection is, and by look_at_all().
 */
void swc_conn_starve(struct swc_conn *conn)
{
	conn->refused = true;
	if (conn->starved)
		return;
	conn->starved = 1;
	/* Requests that are not signalled are done when a later one is. */
	if (conn->quiet) {
		conn->pending |= SWC_PEND_PROBE;
		swc_conn_pump_later(conn);
	}
}

/* Map up to @most bytes from @span on into @rec's scatter list, from entry @first on; bytes taken, or 0. */
static u32 map_span(struct swc_conn *conn, struct swc_send_rec *rec, u32 first, const struct swc_span *span,
		    u32 most, u32 *nsge)
{
	const struct swc_extent *e = swc_region_find(span->region, span->offset);
	u64 at = span->offset, end = span->offset + most;
	u32 n = first;

	rec->first_mapped = first;
	while (at < end && n < conn->nsge) {
		void *from = e->kaddr + (at - e->offset);
		u32 len = min_t(u64, min(end, e[1].offset) - at, SWC_MAP_BYTES);
		u64 dma = ib_dma_map_page(conn->dev->ib, virt_to_page(from), offset_in_page(from), len,
					  DMA_TO_DEVICE);

		if (ib_dma_mapping_error(conn->dev->ib, dma))
			break;
		if (swc_t_map_refused()) {
			ib_dma_unmap_page(conn->dev->ib, dma, len, DMA_TO_DEVICE);
			break;
		}
		rec->sge[n] = (struct ib_sge){ .addr = dma, .length = len,
					       .lkey = conn->pd->local_dma_lkey };
		n++;
		at += len;
		e += at == e[1].offset;
	}
	rec->nmapped = n - first;
	*nsge = n;
	if (at == span->offset)
		swc_conn_starve(conn);
	else
		conn->starved = 0;
	return at - span->offset;
}

static void copy_span(void *to, const struct swc_span *span, u32 bytes)
{
	const struct swc_extent *e = swc_region_find(span->region, span->offset);
	u64 at = span->offset, end = span->offset + bytes;

	while (at < end) {
		u32 len = min(end, e[1].offset) - at;

		memcpy(to, e->kaddr + (at - e->offset), len);
		to += len;
		at += len;
		e++;
	}
}

/*
 * All of a message has been posted: it is done at once if it was copied, else when the last request
 * completes.
 */
static void all_posted(struct swc_conn *conn, struct swc_send_rec *rec, struct swc_out *out,
		       struct list_head *sent)
{
	swc_stat_inc(SWC_STAT_MSGS_SENT);
	swc_stat_add(SWC_STAT_BYTES_SENT, out->bytes);
	if (rec) {
		rec->out = out;
		list_move_tail(&out->node, &conn->inflight);
	} else {
		list_move_tail(&out->node, sent);
	}
}

static bool post_segment(struct swc_conn *conn, struct swc_out *out, struct list_head *sent)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct swc_span span = out->span;
	struct swc_send_rec *rec;
	struct swc_wire_header *h;
	u32 bytes, nsge = 1;
	bool last, copied = out->bytes <= SWC_BOUNCE;

	if (conn->credits < need(conn, out)) {
		swc_stat_inc(SWC_STAT_CREDIT_STALLS);
		return false;
	}
	rec = swc_conn_rec(conn);
	bytes = min_t(u64, out->bytes - out->posted, round_down(conn->peer_slot_bytes - SWC_HEADER, 64));
	span.offset += out->posted;
	if (!copied) {
		bytes = map_span(conn, rec, 1, &span, bytes, &nsge);
		if (!bytes)
			return false;
	}
	h = swc_conn_header(conn, rec, SWC_WIRE_DATA);
	swc_conn_sign(h, out->run);
	h->ordinal = cpu_to_le32(out->ordinal);
	h->offset = cpu_to_le64(out->posted);
	h->total = cpu_to_le64(out->bytes);
	h->bytes = cpu_to_le32(bytes);
	if (copied && bytes) {
		copy_span(h + 1, &span, bytes);
		rec->sge[0].length += bytes;
	}
	out->posted += bytes;
	last = out->posted == out->bytes;
	if (last)
		all_posted(conn, copied ? NULL : rec, out, sent);
	conn->credits--;
	wr.sg_list = rec->sge;
	wr.num_sge = nsge;
	swc_conn_post(conn, rec, &wr, last && !copied);
	return true;
}

/* Write the next piece of a chunk that the peer has offered; the last one tells it so. */
static bool post_write(struct swc_conn *conn, struct swc_out *out, struct list_head *sent)
{
	struct swc_offer *o = offer_for(conn, out);
	struct swc_span span = out->span;
	struct ib_rdma_wr wr = {};
	struct swc_send_rec *rec;
	u32 bytes, nsge;
	bool last = false;

	if (!o)
		return false;
	if (o->msg.total != out->bytes || !swc_op_is_call(out->run->part->op, &o->msg)) {
		conn->misfit = conn->misfit ?: o;
		return false;
	}
	rec = swc_conn_rec(conn);
	span.offset += out->posted;
	bytes = map_span(conn, rec, 0, &span, o->msg.bytes - o->posted, &nsge);
	if (!bytes)
		return false;
	wr.remote_addr = o->addr + o->posted;
	wr.rkey = o->rkey;
	wr.wr.sg_list = rec->sge;
	wr.wr.num_sge = nsge;
	wr.wr.opcode = IB_WR_RDMA_WRITE;
	o->posted += bytes;
	out->posted += bytes;
	if (o->posted == o->msg.bytes) {
		wr.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
		wr.wr.ex.imm_data = cpu_to_be32(o - conn->offer);
		o->valid = false;
		last = out->posted == out->bytes;
	}
	if (last)
		all_posted(conn, rec, out, sent);
	swc_conn_post(conn, rec, &wr.wr, last);
	return true;
}

static bool post_out(struct swc_conn *conn, struct list_head *sent)
{
	struct swc_out *out;

	list_for_each_entry(out, &conn->outq, node) {
		bool direct = out->stored && out->bytes >= SWC_WIRE_DIRECT;

		if (direct ? post_write(conn, out, sent) : post_segment(conn, out, sent))
			return true;
	}
	return false;
}

static noinline_for_stack void starve_to_death(const struct swc_conn *conn, struct swc_comm *comm)
{
	char text[SWC_TEXT_BYTES];

	scnprintf(text, sizeof(text),
		  "rank %u: for rank %u no memory could be mapped for the device: swiotlb= too small?",
		  conn->me, conn->peer);
	swc_net_ops->lost(comm, -EIO, conn->me, READ_ONCE(comm->oldest), text);
}

/**
 * swc_conn_pump() - post all that can be posted
 * @nested: the executor is our caller
 */
void swc_conn_pump(struct swc_conn *conn, bool nested)
{
	struct swc_comm *differs = NULL, *starved = NULL;
	struct swc_wire_msg misfit;
	struct swc_out *out, *next;
	bool idle, known;
	int error;
	LIST_HEAD(sent);

	spin_lock(&conn->lock);
	known = conn->misfit;
	conn->refused = false;
	while (conn->state == SWC_CONN_LIVE && sq_room(conn) && !conn->post_error &&
	       (post_short(conn) || (!conn->ended && (swc_land_post(conn) || post_out(conn, &sent)))))
		;
	idle = conn->peer_left && conn->state == SWC_CONN_LIVE && list_empty(&conn->outq) &&
	       list_empty(&conn->inflight);
	error = conn->post_error;
	if (conn->refused && conn->starved > SWC_MAP_TRIES && !conn->ended) {
		starved = conn->comm;
		kref_get(&starved->ref);
	}
	/* The connection may be closed meanwhile, by another one. */
	if (!known && conn->misfit) {
		misfit = conn->misfit->msg;
		differs = conn->comm;
		kref_get(&differs->ref);
	}
	spin_unlock(&conn->lock);
	list_for_each_entry_safe(out, next, &sent, node)
		swc_net_ops->sent(out, 0, nested);
	/* Not the connection's fault: it is to tell the peer. */
	if (differs) {
		swc_net_ops->differs(differs, conn->peer, &misfit);
		swc_comm_put(differs);
	}
	/* Nor this: what tells the peer needs no mapping. */
	if (starved) {
		starve_to_death(conn, starved);
		swc_comm_put(starved);
	}
	if (error)
		swc_conn_fail(conn, -EIO, "the device takes no more work (%pe)", ERR_PTR(error));
	else if (idle)
		swc_conn_close(conn, 0);
}

void swc_conn_pump_work(struct work_struct *work)
{
	struct swc_conn *conn = container_of(work, struct swc_conn, pump_work);

	swc_conn_pump(conn, false);
	swc_conn_put(conn);
}

/* The same, for those who hold locks or are in the middle of something. */
void swc_conn_pump_later(struct swc_conn *conn)
{
	kref_get(&conn->ref);
	if (!queue_work(swc_net_wq, &conn->pump_work))
		swc_conn_put(conn);
}

/* Both sides have proven themselves. */
void swc_conn_go_live(struct swc_conn *conn)
{
	bool live;

	spin_lock(&conn->lock);
	live = conn->state == SWC_CONN_CONNECTING;
	if (live) {
		conn->state = SWC_CONN_LIVE;
		conn->proven = true;
		/* Not later: it may be queued anew, because the connection is lost. */
		cancel_delayed_work(&conn->connect_work);
	}
	spin_unlock(&conn->lock);
	if (!live)
		return;
	swc_stat_inc(SWC_STAT_CONNS_OPENED);
	/* Connection managers wait for their handlers. */
	swc_conn_pump_later(conn);
}

/* ------------------------------------------------------------------ what the executor gives */

/**
 * swc_conn_send() - send a message; @out comes back by swc_net_ops.sent
 */
void swc_conn_send(struct swc_conn *conn, struct swc_out *out)
{
	bool closing;

	spin_lock(&conn->lock);
	closing = conn->state == SWC_CONN_CLOSING;
	/* It may have to wait for memory to be written to: since now. */
	if (list_empty(&conn->outq))
		conn->silent = 0;
	if (!closing)
		list_add_tail(&out->node, &conn->outq);
	spin_unlock(&conn->lock);
	if (closing)
		swc_net_ops->sent(out, -ECONNABORTED, true);
	else
		swc_conn_pump(conn, true);
}

/**
 * swc_conn_land() - have a message written into place; @land comes back by swc_net_ops.landed
 */
void swc_conn_land(struct swc_conn *conn, struct swc_landing *land)
{
	bool closing;

	spin_lock(&conn->lock);
	closing = conn->state == SWC_CONN_CLOSING;
	if (!closing)
		list_add_tail(&land->node, &conn->lands);
	spin_unlock(&conn->lock);
	if (closing)
		swc_net_ops->landed(land, -ECONNABORTED);
	else
		swc_conn_pump(conn, true);
}

/* ------------------------------------------------------------------ completions */

void swc_send_unmap(struct swc_conn *conn, struct swc_send_rec *rec)
{
	u32 i;

	for (i = rec->first_mapped; i < rec->first_mapped + rec->nmapped; i++)
		ib_dma_unmap_page(conn->dev->ib, rec->sge[i].addr, rec->sge[i].length, DMA_TO_DEVICE);
	rec->nmapped = 0;
}

/* Completion of a send. */
void swc_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct swc_send_rec *last = container_of(wc->wr_cqe, struct swc_send_rec, cqe), *rec;
	struct swc_conn *conn = last->conn;
	struct swc_landing *land = NULL, *next_land;
	struct swc_out *out, *next;
	LIST_HEAD(sent);
	LIST_HEAD(landed);
	bool told = false;

	if (wc->status != IB_WC_SUCCESS) {
		/* The records are cleared away when the connection is taken apart. */
		swc_conn_wc_failed(conn, wc);
		return;
	}
	spin_lock(&conn->lock);
	do {
		rec = &conn->rec[conn->sq_tail++ % SWC_SQ_DEPTH];
		swc_send_unmap(conn, rec);
		if (rec->out)
			list_move_tail(&rec->out->node, &sent);
		if (rec->chunk)
			land = swc_land_invalidated(conn, rec->chunk);
		if (land)
			list_add_tail(&land->node, &landed);
		land = NULL;
		told |= rec->told;
	} while (rec != last);
	spin_unlock(&conn->lock);
	if (told)
		wake_up_all(&conn->net->told);
	list_for_each_entry_safe(out, next, &sent, node)
		swc_net_ops->sent(out, 0, false);
	list_for_each_entry_safe(land, next_land, &landed, node)
		swc_net_ops->landed(land, 0);
	swc_conn_pump(conn, false);
}
