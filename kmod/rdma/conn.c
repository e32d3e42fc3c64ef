// SPDX-License-Identifier: GPL-2.0-only
/*
 * A connection's memory, its queue pair, and its end.
 */
#include <linux/netdevice.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "rdma.h"

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
	INIT_WORK(&conn->pump_work, swc_conn_pump_work);
	INIT_LIST_HEAD(&conn->node);
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
		conn->rec[i].cqe.done = swc_send_done;
		conn->rec[i].page = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
		if (!conn->rec[i].page)
			return -ENOMEM;
	}
	return 0;
}

static int alloc_all(struct swc_conn *conn)
{
	int ret = conn->rec ? 0 : alloc_recs(conn);

	if (!ret && !conn->slot)
		ret = alloc_slots(conn);
	if (ret) {
		free_slots(conn);
		free_recs(conn);
	}
	return ret;
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

/* Take all memory back from the device; the queue pair is drained. */
void swc_conn_unmap(struct swc_conn *conn)
{
	struct ib_device *ib = conn->dev->ib;
	u32 i;

	if (!conn->rec)
		return;
	for (i = 0; i < SWC_SQ_DEPTH; i++) {
		swc_send_unmap(conn, &conn->rec[i]);
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

static void qp_event(struct ib_event *event, void *context)
{
	/* The CM and the completions tell all that matters. */
}

static int set_up(struct swc_conn *conn, struct rdma_cm_id *id)
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
	conn->card = id->route.addr.dev_addr.bound_dev_if;
	conn->dev = swc_dev_take(ib, conn);
	if (!conn->dev)
		return -ENODEV;
	ret = alloc_all(conn);
	if (!ret)
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
	/* Its own: what a peer may write to is none of the memory that others are offered. */
	conn->pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(conn->pd)) {
		ret = PTR_ERR(conn->pd);
		conn->pd = NULL;
		return ret;
	}
	ret = rdma_create_qp(id, conn->pd, &init);
	if (ret)
		return ret;
	ret = swc_land_set_up(conn);
	for (i = 0; i < conn->nslots && !ret; i++)
		ret = swc_recv_post(conn, &conn->slot[i]);
	return ret;
}

/**
 * swc_conn_set_up() - queue pair, memory and receives for a connection that is being made
 *
 * The memory is on account of who has made the communicator, whoever is running. On error,
 * swc_conn_take_apart() cleans up.
 */
int swc_conn_set_up(struct swc_conn *conn, struct rdma_cm_id *id)
{
	struct mem_cgroup *before = set_active_memcg(conn->net->memcg);
	int ret = set_up(conn, id);

	set_active_memcg(before);
	return ret;
}

/* ------------------------------------------------------------------ the end */

/**
 * swc_conn_card_down() - is it this node's own network card that is in the way?
 * @conn: connection; its communicator is there
 * @text: gets what is wrong with the card, if anything is
 * @bytes: size of @text
 *
 * Return: true if the card has been taken down or away, which is nobody else's fault. That it has no carrier
 * is only told: the peer at the other end of the cable may have lost its power.
 */
bool swc_conn_card_down(const struct swc_conn *conn, char *text, size_t bytes)
{
	int card = READ_ONCE(conn->card);
	struct net_device *dev;
	bool down;

	*text = '\0';
	if (!card)
		return false;
	rcu_read_lock();
	dev = dev_get_by_index_rcu(swc_listener_ns(conn->comm->net->listener), card);
	down = !dev || !netif_running(dev);
	if (!dev)
		scnprintf(text, bytes, "; rank %u's network card is gone", conn->me);
	else if (down)
		scnprintf(text, bytes, "; rank %u's card %s is down: ip link set %s up", conn->me, dev->name,
			  dev->name);
	else if (!netif_carrier_ok(dev))
		scnprintf(text, bytes, "; rank %u's card %s has no carrier: look at both ends of its cable",
			  conn->me, dev->name);
	rcu_read_unlock();
	return down;
}

/**
 * swc_conn_fail() - the connection cannot be used any more: the communicator ends
 *
 * The first reason counts. Process context, no locks.
 */
void swc_conn_fail(struct swc_conn *conn, int error, const char *fmt, ...)
{
	char why[SWC_TEXT_BYTES / 2], card[SWC_TEXT_BYTES / 2] = "", text[SWC_TEXT_BYTES];
	struct swc_comm *comm = conn->comm;
	bool first, quiet, own = true;
	va_list args;

	spin_lock(&conn->lock);
	first = !conn->failed;
	conn->failed = true;
	/* Who has left in order needs nothing from us, nor we from it. */
	quiet = !first || conn->state == SWC_CONN_CLOSING || conn->leaving ||
		(conn->peer_left && list_empty(&conn->outq) && list_empty(&conn->inflight));
	/* It may be closed meanwhile, by another one. */
	if (!quiet)
		kref_get(&comm->ref);
	spin_unlock(&conn->lock);
	if (!first)
		return;
	if (!quiet) {
		va_start(args, fmt);
		vscnprintf(why, sizeof(why), fmt, args);
		va_end(args);
		/* A device of this node is nobody else's fault. */
		if (error != -ENODEV && error != -EIO)
			own = swc_conn_card_down(conn, card, sizeof(card));
		scnprintf(text, sizeof(text), "rank %u: connection with rank %u: %s%s", conn->me, conn->peer,
			  why, card);
		swc_net_ops->lost(comm, error, own ? conn->me : conn->peer, READ_ONCE(comm->oldest), text);
		swc_comm_put(comm);
	}
	/* Only now may it refuse what others give it: they could not say whose fault that is. */
	spin_lock(&conn->lock);
	conn->state = SWC_CONN_CLOSING;
	spin_unlock(&conn->lock);
	swc_conn_close(conn, 0);
}

/*
 * Only what this node gave to its own device leads to these. IB_WC_LOC_QP_OP_ERR is not among them: rxe says
 * so when a link is down, of which swc_conn_fail() knows more.
 */
static bool is_own_fault(enum ib_wc_status status)
{
	return status == IB_WC_LOC_PROT_ERR || status == IB_WC_MW_BIND_ERR || status == IB_WC_FATAL_ERR;
}

/*
 * All is flushed when a connection is taken apart. One that lives is flushed only when the peer did what it
 * must not, such as writing where it may not; nothing else tells of that.
 */
void swc_conn_wc_failed(struct swc_conn *conn, const struct ib_wc *wc)
{
	/* Whoever has proven nothing can only spoil its own attempt. */
	if (!READ_ONCE(conn->proven))
		swc_conn_retry(conn, ib_wc_status_msg(wc->status), 0);
	else if (wc->status != IB_WC_WR_FLUSH_ERR)
		swc_conn_fail(conn, is_own_fault(wc->status) ? -EIO : -ECONNRESET, "%s",
			      ib_wc_status_msg(wc->status));
	else if (READ_ONCE(conn->state) == SWC_CONN_LIVE)
		swc_conn_retry(conn, ib_wc_status_msg(wc->status), 0);
}

/* End the connection after @delay_ms, or sooner if that has been asked for, or will be. */
void swc_conn_close(struct swc_conn *conn, unsigned int delay_ms)
{
	bool was_queued;

	kref_get(&conn->ref);
	if (delay_ms)
		was_queued = !queue_delayed_work(swc_net_wq, &conn->close_work, msecs_to_jiffies(delay_ms));
	else
		was_queued = mod_delayed_work(swc_net_wq, &conn->close_work, 0);
	if (was_queued)
		swc_conn_put(conn);	/* it has a reference */
}

/**
 * swc_conn_give_back() - tell those who gave something that it is over
 * @closed: the connection has been taken apart; else nothing happens if it ever was live, because then the
 *	device may be at work on what it has been given
 */
void swc_conn_give_back(struct swc_conn *conn, bool closed)
{
	struct swc_landing *land, *next_land;
	struct swc_out *out, *next_out;
	LIST_HEAD(outs);
	LIST_HEAD(lands);

	spin_lock(&conn->lock);
	if (closed || (conn->state != SWC_CONN_LIVE && conn->state != SWC_CONN_CLOSING)) {
		list_splice_init(&conn->outq, &outs);
		list_splice_tail_init(&conn->inflight, &outs);
		list_splice_init(&conn->lands, &lands);
	}
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
		swc_conn_give_back(conn, true);
		swc_net_forget(conn);
		/* Who left may have asked for a delay since; nobody else finds the connection now. */
		if (cancel_delayed_work(&conn->close_work))
			swc_conn_put(conn);
	}
	swc_conn_put(conn);
}

