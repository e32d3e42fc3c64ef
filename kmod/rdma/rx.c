// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages in: what comes into landing slots, and what becomes of it.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "rdma.h"

/* Payload that is copied with the rest of the segment; more of it gets pages. */
#define SPILL_INLINE	(PAGE_SIZE / 4)

/* A segment that is not in a slot. */
struct spilled {
	struct swc_seg seg;
	struct swc_region region;
	u32 bytes;		/* of memory */
	struct swc_extent extents[];
};

/* Of all communicators. */
static atomic_long_t spilled_bytes;

/* Give a slot to the device. */
int swc_recv_post(struct swc_conn *conn, struct swc_slot *slot)
{
	struct ib_sge sge = { .addr = slot->dma, .length = conn->slot_bytes,
			      .lkey = conn->pd->local_dma_lkey };
	struct ib_recv_wr wr = { .wr_cqe = &slot->cqe, .sg_list = &sge, .num_sge = 1 };

	slot->cqe.done = swc_recv_done;
	ib_dma_sync_single_for_device(conn->dev->ib, slot->dma, conn->slot_bytes, DMA_FROM_DEVICE);
	return ib_post_recv(conn->id->qp, &wr, NULL);
}

/* Give the slot to the device again; @counted: the peer paid a credit for it. */
static void slot_free(struct swc_conn *conn, struct swc_slot *slot, bool counted)
{
	bool pump = false;

	spin_lock(&conn->lock);
	/* Nobody listens any more when it is being closed; and then the queue pair may be gone. */
	if (conn->state == SWC_CONN_LIVE || conn->state == SWC_CONN_CONNECTING) {
		swc_recv_post(conn, slot);
		/* More often than that no share of the credits needs it that senders keep, see send.c. */
		if (counted && ++conn->to_return >= max((conn->nslots - SWC_WIRE_SPARE) / 4, 1u)) {
			conn->pending |= SWC_PEND_CREDIT;
			pump = true;
		}
	}
	spin_unlock(&conn->lock);
	if (pump)
		swc_conn_pump(conn, true);
}

static void spill_free(struct swc_net *net, struct spilled *s)
{
	u32 i;

	for (i = 0; i < s->region.npages; i++)
		free_page((unsigned long)s->extents[i].kaddr);
	atomic_long_sub(s->bytes, &net->spilled);
	atomic_long_sub(s->bytes, &spilled_bytes);
	kfree(s);
}

/*
 * Whatever ranks of other nodes send: a sixteenth of the memory at most, or of little memory 256 MiB but no
 * more than a quarter; for each a quarter of that.
 */
static bool may_spill(struct swc_net *net, u32 bytes)
{
	long pages = totalram_pages(), few = min_t(long, 256 << (20 - PAGE_SHIFT), pages / 4);
	long most = max(pages / 16, few) << PAGE_SHIFT;
	bool here = atomic_long_add_return(bytes, &net->spilled) <= most / 4;

	return (atomic_long_add_return(bytes, &spilled_bytes) <= most) & here;
}

/* Room for so much payload. In single pages: there may be no larger ones, while much is free. */
static struct spilled *spill_alloc(struct swc_net *net, u32 bytes)
{
	u32 npages = bytes > SPILL_INLINE ? DIV_ROUND_UP(bytes, PAGE_SIZE) : 0, n = max(npages, 1u), i;
	gfp_t gfp = GFP_NOIO | __GFP_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN;
	struct spilled *s;
	u32 size = struct_size(s, extents, n + 1);

	if (!npages)
		size += SMP_CACHE_BYTES + bytes;
	s = kzalloc(size, gfp);
	if (!s)
		return NULL;
	s->bytes = size + npages * PAGE_SIZE;
	s->region.extents = s->extents;
	s->region.bytes = bytes;
	s->region.nextents = n;
	s->extents[0].kaddr = PTR_ALIGN((void *)&s->extents[n + 1], SMP_CACHE_BYTES);
	s->extents[n].offset = bytes;
	if (!may_spill(net, s->bytes))
		goto err;
	for (i = 0; i < npages; i++) {
		s->extents[i].kaddr = (void *)__get_free_page(gfp);
		s->extents[i].offset = i * PAGE_SIZE;
		if (!s->extents[i].kaddr)
			goto err;
		s->region.npages++;
	}
	return s;
err:
	spill_free(net, s);
	return NULL;
}

/**
 * swc_conn_release() - a segment has been used
 */
void swc_conn_release(struct swc_seg *seg)
{
	struct swc_conn *conn = seg->conn;

	if (seg->spilled) {
		spill_free(conn->comm->net, container_of(seg, struct spilled, seg));
		swc_conn_put(conn);
		return;
	}
	slot_free(conn, container_of(seg, struct swc_slot, seg), true);
	swc_conn_put(conn);
}

/**
 * swc_conn_spill() - copy a segment out of its slot, so that the peer can use that again
 *
 * Return: what takes its place, when the caller has released it; NULL if there is no memory.
 */
struct swc_seg *swc_conn_spill(struct swc_seg *seg)
{
	struct swc_conn *conn = seg->conn;
	struct swc_net *net = conn->comm->net;
	struct mem_cgroup *before = set_active_memcg(net->memcg);
	struct spilled *s = spill_alloc(net, seg->msg.bytes);
	const u8 *from = container_of(seg, struct swc_slot, seg)->data + SWC_HEADER;
	const struct swc_extent *e;

	set_active_memcg(before);
	if (!s) {
		swc_stat_inc(SWC_STAT_SPILLS_REFUSED);
		return NULL;
	}
	s->seg = *seg;
	s->seg.msg.payload = NULL;
	s->seg.spilled = true;
	s->seg.span.region = &s->region;
	s->seg.span.offset = 0;
	for (e = s->extents; e < s->extents + s->region.nextents; e++)
		memcpy(e->kaddr, from + e->offset, e[1].offset - e->offset);
	kref_get(&conn->ref);
	swc_stat_inc(SWC_STAT_SEGS_SPILLED);
	return &s->seg;
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
		*o = (struct swc_offer){ .valid = true, .msg = *msg, .addr = le64_to_cpu(ready->addr),
					 .rkey = le32_to_cpu(ready->rkey) };
		o->msg.payload = NULL;
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
	case SWC_WIRE_WANT:
		swc_net_ops->wants(conn->comm, conn->peer, &msg);
		break;
	case SWC_WIRE_BYE:
		/* Who finds the connection closed must know already that the peer has left. */
		swc_net_ops->left(conn->comm, conn->peer, msg.seq);
		spin_lock(&conn->lock);
		conn->peer_left = true;
		spin_unlock(&conn->lock);
		break;
	default:
		break;
	}
	slot_free(conn, slot, false);
	return ret;
}

static int got_write(struct swc_conn *conn, struct swc_slot *slot, u32 chunk)
{
	struct swc_landing *land;
	int ret;

	if (!conn->proven)
		return -EPROTO;
	spin_lock(&conn->lock);
	ret = swc_land_written(conn, chunk, &land);
	spin_unlock(&conn->lock);
	slot_free(conn, slot, false);
	if (ret || !land)
		return ret;
	/* The chunk's invalidation is on its way before anybody goes on. */
	swc_conn_pump(conn, false);
	swc_net_ops->written(land);
	return 0;
}

/* Completion of a receive. */
void swc_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct swc_slot *slot = container_of(wc->wr_cqe, struct swc_slot, cqe);
	struct swc_conn *conn = slot->seg.conn;
	bool proven;
	int ret;

	if (wc->status != IB_WC_SUCCESS) {
		swc_conn_wc_failed(conn, wc);
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
