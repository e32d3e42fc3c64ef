// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages in: what comes into landing slots, and what becomes of it.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "rdma.h"

/* A segment that is not in a slot. */
struct spilled {
	struct swc_seg seg;
	struct swc_region region;
	struct swc_extent extents[2];
	u8 data[];
};

/* Give a slot to the device. */
int swc_recv_post(struct swc_conn *conn, struct swc_slot *slot)
{
	struct ib_sge sge = { .addr = slot->dma, .length = conn->slot_bytes,
			      .lkey = conn->dev->pd->local_dma_lkey };
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

	if (seg->spilled) {
		atomic_long_sub(seg->spilled, &conn->comm->net->spilled);
		kfree(container_of(seg, struct spilled, seg));
		swc_conn_put(conn);
		return;
	}
	slot_free(conn, container_of(seg, struct swc_slot, seg), true);
	swc_conn_put(conn);
}

/* So many bytes of messages does a communicator take out of slots; its memory group may say less. */
static long spill_max(void)
{
	return max_t(long, 64 << 20, totalram_pages() / 16 << PAGE_SHIFT);
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
	u32 bytes = sizeof(struct spilled) + SMP_CACHE_BYTES + seg->msg.bytes;
	struct spilled *s = NULL;

	if (atomic_long_add_return(bytes, &net->spilled) <= spill_max()) {
		struct mem_cgroup *before = set_active_memcg(net->memcg);

		s = kmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN);
		set_active_memcg(before);
	}
	if (!s) {
		atomic_long_sub(bytes, &net->spilled);
		return NULL;
	}
	memset(s, 0, sizeof(*s));
	s->seg = *seg;
	s->seg.msg.payload = NULL;
	s->seg.spilled = bytes;
	s->extents[0].kaddr = PTR_ALIGN(&s->data[0], SMP_CACHE_BYTES);
	s->extents[1].offset = seg->msg.bytes;
	s->region.extents = s->extents;
	s->region.nextents = 1;
	s->region.bytes = seg->msg.bytes;
	s->seg.span.region = &s->region;
	s->seg.span.offset = 0;
	memcpy(s->extents[0].kaddr, container_of(seg, struct swc_slot, seg)->data + SWC_HEADER,
	       seg->msg.bytes);
	kref_get(&conn->ref);
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
		spin_lock(&conn->lock);
		conn->peer_left = true;
		spin_unlock(&conn->lock);
		swc_net_ops->left(conn->comm, conn->peer, msg.seq);
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
