// SPDX-License-Identifier: GPL-2.0-only
/*
 * A live connection: messages out, segments in, credits.
 *
 * Messages wait in @outq until there are credits and records; a small one is copied into its record, so that
 * its sender goes on at once, a large one is read by the device where it lies. A stored one of
 * SWC_WIRE_DIRECT bytes or more waits for the receiver's offers (land.c) and is written into place.
 *
 * Credits count landing slots of the peer. Half of them are kept for messages of the oldest operation: an
 * operation that another rank has not come to yet must not keep those of earlier ones from being received.
 *
 * All posting happens in swc_conn_pump(), under the lock; everything that makes posting possible calls it.
 */
#include <linux/slab.h>

#include "rdma.h"

static void send_done(struct ib_cq *cq, struct ib_wc *wc);
static void recv_done(struct ib_cq *cq, struct ib_wc *wc);
static void pump_work(struct work_struct *work);

/* ------------------------------------------------------------------ life */

struct swc_conn *swc_conn_alloc(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path)
{
	struct swc_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL_ACCOUNT);

	if (!conn)
		return NULL;
	kref_init(&conn->ref);
	conn->net = net;
	conn->comm = net->comm;
	kref_get(&conn->comm->ref);
	conn->me = me;
	conn->peer = peer;
	conn->channel = channel;
	conn->path = path;
	conn->give_up = jiffies + msecs_to_jiffies(conn->comm->timeout_ms);
	spin_lock_init(&conn->lock);
	INIT_DELAYED_WORK(&conn->connect_work, swc_conn_connect);
	INIT_DELAYED_WORK(&conn->close_work, swc_conn_closed);
	INIT_WORK(&conn->pump_work, pump_work);
	INIT_LIST_HEAD(&conn->dev_node);
	INIT_LIST_HEAD(&conn->outq);
	INIT_LIST_HEAD(&conn->inflight);
	INIT_LIST_HEAD(&conn->lands);
	return conn;
}

static void free_slots(struct swc_conn *conn)
{
	u32 i;

	for (i = 0; conn->slot && i < conn->nslots; i++)
		free_pages((unsigned long)conn->slot[i].data, get_order(conn->slot_bytes));
	kvfree(conn->slot);
	conn->slot = NULL;
	if (conn->slots)
		kvfree(conn->slots->extents);
	kfree(conn->slots);
	conn->slots = NULL;
}

static void free_recs(struct swc_conn *conn)
{
	u32 i;

	for (i = 0; conn->rec && i < SWC_SQ_DEPTH; i++)
		free_page((unsigned long)conn->rec[i].page);
	kvfree(conn->rec);
	conn->rec = NULL;
}

static void conn_free(struct kref *ref)
{
	struct swc_conn *conn = container_of(ref, struct swc_conn, ref);

	free_slots(conn);
	free_recs(conn);
	kfree(conn);
}

void swc_conn_put(struct swc_conn *conn)
{
	kref_put(&conn->ref, conn_free);
}

static int alloc_slots(struct swc_conn *conn)
{
	struct swc_region *r;
	u32 i;

	conn->slot_bytes = swc_slot_kib << 10;
	conn->nslots = swc_slots + SWC_WIRE_SPARE;
	conn->slot = kvcalloc(conn->nslots, sizeof(*conn->slot), GFP_KERNEL_ACCOUNT);
	r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);
	conn->slots = r;
	if (!conn->slot || !r)
		return -ENOMEM;
	r->nextents = conn->nslots;
	r->extents = kvcalloc(conn->nslots + 1, sizeof(*r->extents), GFP_KERNEL_ACCOUNT);
	if (!r->extents)
		return -ENOMEM;
	for (i = 0; i < conn->nslots; i++) {
		void *data = (void *)__get_free_pages(GFP_KERNEL_ACCOUNT | __GFP_NOWARN,
						      get_order(conn->slot_bytes));

		if (!data)
			return -ENOMEM;
		conn->slot[i].data = data;
		conn->slot[i].seg.conn = conn;
		r->extents[i].kaddr = data;
		r->extents[i].offset = (u64)i * conn->slot_bytes;
	}
	r->extents[i].offset = (u64)i * conn->slot_bytes;
	r->bytes = r->extents[i].offset;
	return 0;
}

static int alloc_recs(struct swc_conn *conn)
{
	u32 i;

	conn->rec = kvcalloc(SWC_SQ_DEPTH, sizeof(*conn->rec), GFP_KERNEL_ACCOUNT);
	if (!conn->rec)
		return -ENOMEM;
	for (i = 0; i < SWC_SQ_DEPTH; i++) {
		conn->rec[i].conn = conn;
		conn->rec[i].cqe.done = send_done;
		conn->rec[i].page = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
		if (!conn->rec[i].page)
			return -ENOMEM;
	}
	return 0;
}

/* Mapped memory is remembered by its address: 0 is none, which with rxe is no address either. */
static int map_all(struct swc_conn *conn)
{
	struct ib_device *ib = conn->dev->ib;
	u32 i;

	for (i = 0; i < SWC_SQ_DEPTH; i++) {
		u64 dma = ib_dma_map_single(ib, conn->rec[i].page, SWC_REC_BYTES, DMA_TO_DEVICE);

		if (ib_dma_mapping_error(ib, dma))
			return -ENOMEM;
		conn->rec[i].page_dma = dma;
	}
	for (i = 0; i < conn->nslots; i++) {
		u64 dma = ib_dma_map_single(ib, conn->slot[i].data, conn->slot_bytes, DMA_FROM_DEVICE);

		if (ib_dma_mapping_error(ib, dma))
			return -ENOMEM;
		conn->slot[i].dma = dma;
	}
	return 0;
}

static void unmap_rec(struct swc_conn *conn, struct swc_send_rec *rec)
{
	u32 i;

	for (i = rec->first_mapped; i < rec->first_mapped + rec->nmapped; i++)
		ib_dma_unmap_page(conn->dev->ib, rec->sge[i].addr, rec->sge[i].length, DMA_TO_DEVICE);
	rec->nmapped = 0;
}

/* Take all memory back from the device; the queue pair is drained. */
void swc_conn_unmap(struct swc_conn *conn)
{
	struct ib_device *ib = conn->dev->ib;
	u32 i;

	if (!conn->rec)
		return;
	for (i = 0; i < SWC_SQ_DEPTH; i++) {
		unmap_rec(conn, &conn->rec[i]);
		if (conn->rec[i].page_dma)
			ib_dma_unmap_single(ib, conn->rec[i].page_dma, SWC_REC_BYTES, DMA_TO_DEVICE);
		conn->rec[i].page_dma = 0;
	}
	for (i = 0; i < conn->nslots; i++) {
		if (conn->slot[i].dma)
			ib_dma_unmap_single(ib, conn->slot[i].dma, conn->slot_bytes, DMA_FROM_DEVICE);
		conn->slot[i].dma = 0;
	}
}

static int post_slot(struct swc_conn *conn, struct swc_slot *slot)
{
	struct ib_sge sge = { .addr = slot->dma, .length = conn->slot_bytes,
			      .lkey = conn->dev->pd->local_dma_lkey };
	struct ib_recv_wr wr = { .wr_cqe = &slot->cqe, .sg_list = &sge, .num_sge = 1 };

	slot->cqe.done = recv_done;
	ib_dma_sync_single_for_device(conn->dev->ib, slot->dma, conn->slot_bytes, DMA_FROM_DEVICE);
	return ib_post_recv(conn->id->qp, &wr, NULL);
}

static void qp_event(struct ib_event *event, void *context)
{
	/* The CM and the completions tell all that matters. */
}

/**
 * swc_conn_set_up() - queue pair, memory and receives for a connection that is being made
 *
 * On error, swc_conn_take_apart() cleans up.
 */
int swc_conn_set_up(struct swc_conn *conn, struct rdma_cm_id *id)
{
	struct ib_qp_init_attr init = {
		.event_handler = qp_event,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_device *ib = id->device;
	int ret;
	u32 i;

	conn->id = id;
	conn->dev = swc_dev_take(ib, conn);
	if (!conn->dev)
		return -ENODEV;
	ret = conn->rec ? 0 : alloc_recs(conn);
	if (!ret && !conn->slot)
		ret = alloc_slots(conn);
	if (ret) {
		free_slots(conn);
		free_recs(conn);
		return ret;
	}
	ret = map_all(conn);
	if (ret)
		return ret;

	/* One more of each for draining. */
	init.cap.max_send_wr = SWC_SQ_DEPTH + 1;
	init.cap.max_recv_wr = conn->nslots + 1;
	init.cap.max_send_sge = min_t(u32, SWC_MAX_SGE, ib->attrs.max_send_sge);
	init.cap.max_recv_sge = 1;
	conn->nsge = init.cap.max_send_sge;
	if (conn->nsge < 2)
		return -EOPNOTSUPP;
	conn->cq = ib_alloc_cq_any(ib, conn, SWC_SQ_DEPTH + conn->nslots + 2, IB_POLL_UNBOUND_WORKQUEUE);
	if (IS_ERR(conn->cq)) {
		ret = PTR_ERR(conn->cq);
		conn->cq = NULL;
		return ret;
	}
	init.send_cq = conn->cq;
	init.recv_cq = conn->cq;
	ret = rdma_create_qp(id, conn->dev->pd, &init);
	if (ret)
		return ret;
	ret = swc_land_set_up(conn);
	for (i = 0; i < conn->nslots && !ret; i++)
		ret = post_slot(conn, &conn->slot[i]);
	return ret;
}

/* ------------------------------------------------------------------ the end */

/**
 * swc_conn_fail() - the connection cannot be used any more: the communicator ends
 *
 * The first reason counts. Process context, no locks.
 */
void swc_conn_fail(struct swc_conn *conn, int error, const char *fmt, ...)
{
	char why[SWC_TEXT_BYTES / 2], text[SWC_TEXT_BYTES];
	bool first, quiet;
	va_list args;
	u32 culprit;

	spin_lock(&conn->lock);
	first = !conn->failed;
	conn->failed = true;
	/* Who has left in order needs nothing from us, nor we from it. */
	quiet = conn->state == SWC_CONN_CLOSING || conn->leaving ||
		(conn->peer_left && list_empty(&conn->outq) && list_empty(&conn->inflight));
	conn->state = SWC_CONN_CLOSING;
	spin_unlock(&conn->lock);
	if (!first)
		return;
	if (!quiet) {
		va_start(args, fmt);
		vscnprintf(why, sizeof(why), fmt, args);
		va_end(args);
		scnprintf(text, sizeof(text), "rank %u: connection with rank %u: %s", conn->me, conn->peer,
			  why);
		/* A device of this node is nobody else's fault. */
		culprit = error == -ENODEV || error == -EIO ? conn->me : conn->peer;
		swc_net_ops->lost(conn->comm, error, culprit, READ_ONCE(conn->comm->oldest), text);
	}
	swc_conn_close(conn, 0);
}

/* End the connection after @delay_ms, or sooner if asked again. */
void swc_conn_close(struct swc_conn *conn, unsigned int delay_ms)
{
	kref_get(&conn->ref);
	if (mod_delayed_work(swc_net_wq, &conn->close_work, msecs_to_jiffies(delay_ms)))
		swc_conn_put(conn);	/* it was queued, with a reference */
}

/* Tell those who gave something that it is over. */
static void give_all_back(struct swc_conn *conn)
{
	struct swc_landing *land, *next_land;
	struct swc_out *out, *next_out;
	LIST_HEAD(outs);
	LIST_HEAD(lands);

	spin_lock(&conn->lock);
	list_splice_init(&conn->outq, &outs);
	list_splice_tail_init(&conn->inflight, &outs);
	list_splice_init(&conn->lands, &lands);
	spin_unlock(&conn->lock);
	list_for_each_entry_safe(out, next_out, &outs, node)
		swc_net_ops->sent(out, -ECONNABORTED, false);
	list_for_each_entry_safe(land, next_land, &lands, node)
		swc_net_ops->landed(land, -ECONNABORTED);
}

/* Has the peer not taken yet what this rank sent before it left? conn->lock is held. */
static bool has_unsent(const struct swc_conn *conn)
{
	return conn->leaving && conn->state == SWC_CONN_LIVE &&
	       ((conn->pending & SWC_PEND_BYE) || conn->sq_head != conn->sq_tail) &&
	       READ_ONCE(conn->comm->status) != SWC_COMM_ABORTED && time_before(jiffies, conn->give_up);
}

/* Work item: take everything apart. */
void swc_conn_closed(struct work_struct *work)
{
	struct swc_conn *conn = container_of(work, struct swc_conn, close_work.work);
	bool first, wait;

	spin_lock(&conn->lock);
	wait = has_unsent(conn);
	if (!wait)
		conn->state = SWC_CONN_CLOSING;
	first = conn->net;
	spin_unlock(&conn->lock);
	if (wait) {
		swc_conn_close(conn, SWC_LINGER_MS);
	} else if (first) {
		cancel_delayed_work_sync(&conn->connect_work);
		swc_conn_take_apart(conn);
		give_all_back(conn);
		swc_net_forget(conn);
	}
	swc_conn_put(conn);
}

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
				       .lkey = conn->dev->pd->local_dma_lkey };
	return h;
}

/* Credits that there must be for a message of operation @seq. */
u32 swc_conn_need(const struct swc_conn *conn, u64 seq)
{
	return seq == READ_ONCE(conn->comm->oldest) ? 1 : conn->peer_slots / 2 + 1;
}

static void fill_abort(struct swc_conn *conn, struct swc_wire_abort *a)
{
	const struct swc_comm *comm = conn->comm;

	/* Constant once the communicator has ended. */
	a->error = cpu_to_le32(comm->error ? -comm->error : ECONNABORTED);
	a->culprit = cpu_to_le32(comm->culprit + 1);
	memcpy(a->text, comm->text, sizeof(a->text));
}

static bool post_short(struct swc_conn *conn)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .num_sge = 1 };
	struct swc_send_rec *rec;
	struct swc_wire_header *h;
	bool last = false;

	if (!conn->pending)
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
		last = true;
	} else if (conn->pending & SWC_PEND_BYE) {
		conn->pending &= ~SWC_PEND_BYE;
		h = swc_conn_header(conn, rec, SWC_WIRE_BYE);
		h->seq = cpu_to_le64(conn->comm->member[conn->me].submitted);
		last = true;
	} else if (conn->pending & SWC_PEND_ASK) {
		conn->pending &= ~SWC_PEND_ASK;
		swc_conn_header(conn, rec, SWC_WIRE_ASK);
	} else {
		bool probe = conn->pending & SWC_PEND_PROBE;

		conn->pending &= ~(SWC_PEND_CREDIT | SWC_PEND_PROBE);
		if (!conn->to_return && !probe)
			return true;
		h = swc_conn_header(conn, rec, SWC_WIRE_CREDIT);
		h->seq = cpu_to_le64(READ_ONCE(conn->comm->member[conn->me].submitted));
	}
	wr.sg_list = rec->sge;
	swc_conn_post(conn, rec, &wr, last);
	return true;
}

/* Map up to @most bytes from @span on into @rec's scatter list, from entry @first on; bytes taken. */
static u32 map_span(struct swc_conn *conn, struct swc_send_rec *rec, u32 first, const struct swc_span *span,
		    u32 most, u32 *nsge)
{
	const struct swc_extent *e = swc_region_find(span->region, span->offset);
	u64 at = span->offset, end = span->offset + most;
	u32 n = first;

	rec->first_mapped = first;
	while (at < end && n < conn->nsge) {
		void *from = e->kaddr + (at - e->offset);
		u32 len = min(end, e[1].offset) - at;
		u64 dma = ib_dma_map_page(conn->dev->ib, virt_to_page(from), offset_in_page(from), len,
					  DMA_TO_DEVICE);

		if (ib_dma_mapping_error(conn->dev->ib, dma))
			break;
		rec->sge[n] = (struct ib_sge){ .addr = dma, .length = len,
					       .lkey = conn->dev->pd->local_dma_lkey };
		n++;
		at += len;
		e++;
	}
	rec->nmapped = n - first;
	*nsge = n;
	if (at == span->offset)
		conn->post_error = -ENOMEM;
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

static void sign(struct swc_wire_header *h, const struct swc_out *out)
{
	const struct swc_op *op = out->run->part->op;
	const struct swc_desc *d = &op->desc;

	h->ordinal = cpu_to_le32(out->ordinal);
	h->seq = cpu_to_le64(out->seq);
	h->offset = cpu_to_le64(out->posted);
	h->total = cpu_to_le64(out->bytes);
	h->root = cpu_to_le32(d->root);
	h->count = cpu_to_le64(d->count);
	h->family = cpu_to_le64(op->family);
	h->coll = d->coll;
	h->dtype = d->dtype;
	h->redop = d->redop;
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

	if (conn->credits < swc_conn_need(conn, out->seq)) {
		swc_stat_inc(SWC_STAT_CREDIT_STALLS);
		return false;
	}
	rec = swc_conn_rec(conn);
	h = swc_conn_header(conn, rec, SWC_WIRE_DATA);
	sign(h, out);
	bytes = min_t(u64, out->bytes - out->posted, round_down(conn->peer_slot_bytes - SWC_HEADER, 64));
	span.offset += out->posted;
	if (copied && bytes) {
		copy_span(h + 1, &span, bytes);
		rec->sge[0].length += bytes;
	} else if (bytes) {
		bytes = map_span(conn, rec, 1, &span, bytes, &nsge);
		if (!bytes)
			return false;
	}
	h->bytes = cpu_to_le32(bytes);
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

static struct swc_offer *offer_for(struct swc_conn *conn, const struct swc_out *out)
{
	u32 i;

	for (i = 0; i < SWC_WIRE_CHUNKS; i++) {
		struct swc_offer *o = &conn->offer[i];

		if (o->valid && o->seq == out->seq && o->ordinal == out->ordinal &&
		    o->offset + o->posted == out->posted)
			return o;
	}
	return NULL;
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
	if (conn->credits < swc_conn_need(conn, out->seq)) {
		swc_stat_inc(SWC_STAT_CREDIT_STALLS);
		return false;
	}
	rec = swc_conn_rec(conn);
	span.offset += out->posted;
	bytes = map_span(conn, rec, 0, &span, o->bytes - o->posted, &nsge);
	if (!bytes)
		return false;
	wr.remote_addr = o->addr + o->posted;
	wr.rkey = o->rkey;
	wr.wr.sg_list = rec->sge;
	wr.wr.num_sge = nsge;
	wr.wr.opcode = IB_WR_RDMA_WRITE;
	o->posted += bytes;
	out->posted += bytes;
	if (o->posted == o->bytes) {
		wr.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
		wr.wr.ex.imm_data = cpu_to_be32(o - conn->offer);
		o->valid = false;
		conn->credits--;
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

/**
 * swc_conn_pump() - post all that can be posted
 * @nested: the executor is our caller
 */
void swc_conn_pump(struct swc_conn *conn, bool nested)
{
	struct swc_out *out, *next;
	bool idle;
	int error;
	LIST_HEAD(sent);

	spin_lock(&conn->lock);
	while (conn->state == SWC_CONN_LIVE && sq_room(conn) && !conn->post_error &&
	       (post_short(conn) || swc_land_post(conn) || post_out(conn, &sent)))
		;
	idle = conn->peer_left && conn->state == SWC_CONN_LIVE && list_empty(&conn->outq) &&
	       list_empty(&conn->inflight);
	error = conn->post_error;
	spin_unlock(&conn->lock);
	list_for_each_entry_safe(out, next, &sent, node)
		swc_net_ops->sent(out, 0, nested);
	if (error)
		swc_conn_fail(conn, -EIO, "the device takes no more work (%pe)", ERR_PTR(error));
	else if (idle)
		swc_conn_close(conn, 0);
}

static void pump_work(struct work_struct *work)
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
	}
	spin_unlock(&conn->lock);
	if (!live)
		return;
	cancel_delayed_work(&conn->connect_work);
	swc_stat_inc(SWC_STAT_CONNS_OPENED);
	swc_conn_pump(conn, false);
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

/* ------------------------------------------------------------------ completions of sends */

/*
 * All is flushed when a connection is taken apart. One that lives is flushed only when the peer did what it
 * must not, such as writing where it may not; nothing else tells of that.
 */
static void wc_failed(struct swc_conn *conn, const struct ib_wc *wc)
{
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		swc_conn_fail(conn, -ECONNRESET, "%s", ib_wc_status_msg(wc->status));
	else if (READ_ONCE(conn->state) == SWC_CONN_LIVE)
		swc_conn_retry(conn, ib_wc_status_msg(wc->status), 0);
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
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
		wc_failed(conn, wc);
		return;
	}
	spin_lock(&conn->lock);
	do {
		rec = &conn->rec[conn->sq_tail++ % SWC_SQ_DEPTH];
		unmap_rec(conn, rec);
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

/* ------------------------------------------------------------------ receiving */

/* Give the slot to the device again; @counted: the peer paid a credit for it. */
static void slot_free(struct swc_conn *conn, struct swc_slot *slot, bool counted)
{
	bool pump = false;

	spin_lock(&conn->lock);
	/* Nobody listens any more when it is being closed; and then the queue pair may be gone. */
	if (conn->state == SWC_CONN_LIVE || conn->state == SWC_CONN_CONNECTING) {
		post_slot(conn, slot);
		if (counted && ++conn->to_return >= (conn->nslots - SWC_WIRE_SPARE) / 2) {
			conn->pending |= SWC_PEND_CREDIT;
			pump = true;
		}
	}
	spin_unlock(&conn->lock);
	if (pump)
		swc_conn_pump(conn, true);
}

/**
 * swc_conn_release() - a segment has been used
 */
void swc_conn_release(struct swc_seg *seg)
{
	struct swc_conn *conn = seg->conn;

	slot_free(conn, container_of(seg, struct swc_slot, seg), true);
	swc_conn_put(conn);
}

static void got_data(struct swc_conn *conn, struct swc_slot *slot, const struct swc_wire_msg *msg)
{
	struct swc_seg *seg = &slot->seg;

	seg->src = conn->peer;
	seg->dst = conn->me;
	seg->channel = conn->channel;
	seg->msg = *msg;
	seg->span.region = conn->slots;
	seg->span.offset = (slot - conn->slot) * (u64)conn->slot_bytes + SWC_HEADER;
	swc_stat_add(SWC_STAT_BYTES_RECEIVED, msg->bytes);
	if (msg->offset + msg->bytes == msg->total)
		swc_stat_inc(SWC_STAT_MSGS_RECEIVED);
	kref_get(&conn->ref);
	swc_net_ops->deliver(conn->comm, seg);
}

static int got_ready(struct swc_conn *conn, const struct swc_wire_msg *msg)
{
	const struct swc_wire_ready *ready = msg->payload;
	struct swc_offer *o = &conn->offer[le32_to_cpu(ready->chunk)];
	int ret = -EPROTO;

	spin_lock(&conn->lock);
	if (!o->valid) {
		*o = (struct swc_offer){ .valid = true, .seq = msg->seq, .ordinal = msg->ordinal,
					 .offset = msg->offset, .addr = le64_to_cpu(ready->addr),
					 .rkey = le32_to_cpu(ready->rkey), .bytes = msg->bytes };
		ret = 0;
	}
	spin_unlock(&conn->lock);
	return ret;
}

/* The other node's communicator has ended; say why in its own words. */
static void got_abort(struct swc_conn *conn, const struct swc_wire_msg *msg)
{
	const struct swc_wire_abort *a = msg->payload;
	u32 error = le32_to_cpu(a->error), culprit = le32_to_cpu(a->culprit);
	char text[SWC_TEXT_BYTES];
	u32 i;

	if (!error || error >= 512)
		error = ECONNABORTED;
	if (culprit > conn->comm->nranks)
		culprit = 0;
	for (i = 0; i < sizeof(text) - 1 && a->text[i]; i++)
		text[i] = a->text[i] >= ' ' && a->text[i] <= '~' ? a->text[i] : '?';
	text[i] = '\0';
	swc_net_ops->lost(conn->comm, -(int)error, (int)culprit - 1, msg->seq, text);
}

static int got_proof(struct swc_conn *conn, const struct swc_wire_msg *msg)
{
	if (conn->proven || !swc_conn_proof_ok(conn, msg->payload))
		return -EPROTO;
	swc_conn_go_live(conn);
	return 0;
}

static int got_credits(struct swc_conn *conn, u32 credits)
{
	int ret = 0;

	spin_lock(&conn->lock);
	if (credits > conn->peer_slots - conn->credits)
		ret = -EPROTO;
	else
		conn->credits += credits;
	spin_unlock(&conn->lock);
	return ret;
}

/* One message; the slot is given back, or is on its way through the executor. */
static int got_message(struct swc_conn *conn, struct swc_slot *slot, u32 bytes)
{
	struct swc_wire_msg msg;
	int ret;

	ret = swc_wire_parse(slot->data, bytes, &msg);
	if (!ret && !conn->proven && msg.kind != SWC_WIRE_PROOF)
		ret = -EPROTO;
	if (!ret)
		ret = got_credits(conn, msg.credits);
	if (ret)
		return ret;
	switch (msg.kind) {
	case SWC_WIRE_DATA:
		got_data(conn, slot, &msg);
		return 0;
	case SWC_WIRE_READY:
		ret = got_ready(conn, &msg);
		break;
	case SWC_WIRE_PROOF:
		ret = got_proof(conn, &msg);
		break;
	case SWC_WIRE_ABORT:
		got_abort(conn, &msg);
		break;
	case SWC_WIRE_CREDIT:
		swc_net_ops->came(conn->comm, conn->peer, msg.seq);
		break;
	case SWC_WIRE_ASK:
		spin_lock(&conn->lock);
		conn->pending |= SWC_PEND_PROBE;
		spin_unlock(&conn->lock);
		break;
	case SWC_WIRE_BYE:
		spin_lock(&conn->lock);
		conn->peer_left = true;
		spin_unlock(&conn->lock);
		swc_net_ops->left(conn->comm, conn->peer, msg.seq);
		break;
	default:
		break;
	}
	slot_free(conn, slot, msg.kind == SWC_WIRE_READY);
	return ret;
}

static int got_write(struct swc_conn *conn, struct swc_slot *slot, u32 chunk)
{
	int ret;

	if (!conn->proven)
		return -EPROTO;
	spin_lock(&conn->lock);
	ret = swc_land_written(conn, chunk);
	spin_unlock(&conn->lock);
	slot_free(conn, slot, true);
	return ret;
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct swc_slot *slot = container_of(wc->wr_cqe, struct swc_slot, cqe);
	struct swc_conn *conn = slot->seg.conn;
	bool proven;
	int ret;

	if (wc->status != IB_WC_SUCCESS) {
		wc_failed(conn, wc);
		return;
	}
	proven = conn->proven;
	if (wc->wc_flags & IB_WC_WITH_IMM) {
		ret = got_write(conn, slot, be32_to_cpu(wc->ex.imm_data));
	} else {
		ib_dma_sync_single_for_cpu(conn->dev->ib, slot->dma, wc->byte_len, DMA_FROM_DEVICE);
		ret = got_message(conn, slot, wc->byte_len);
	}
	/* Whoever has proven nothing can only spoil its own attempt. */
	if (ret && !proven)
		swc_conn_retry(conn, "it has not proven that it knows the communicator's id", ret);
	else if (ret)
		swc_conn_fail(conn, -EPROTO, "a message that makes no sense came");
	else
		swc_conn_pump(conn, false);
}
