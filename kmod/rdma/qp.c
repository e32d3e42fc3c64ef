// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queue pair of a connection, with its completion queue, protection domain and mapped memory: made for
 * each attempt to connect, taken apart in the reverse order. A connection that goes on by another path leaves
 * its old one behind, drained, for a work item to free. Process context; may sleep.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "rdma/rdma.h"

static void qp_event(struct ib_event *event, void *context)
{
	/* The connection manager and the completions report all that matters. */
}

/* Set the completion queue, for swc_rdma_watch(). Return: the one before. */
static struct swc_cq *set_cq(struct swc_rdma_conn *conn, struct swc_cq *cq)
{
	spin_lock(&conn->base.lock);
	swap(conn->cq, cq);
	spin_unlock(&conn->base.lock);
	return cq;
}

static int create_qp(struct swc_rdma_conn *conn, struct ib_device *ib)
{
	struct ib_qp_init_attr init = {
		.event_handler = qp_event,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct swc_cq *cq;

	/* One more of each for draining, and one for the read of iwarp.c. */
	init.cap.max_send_wr = SWC_SQ_DEPTH + 2;
	init.cap.max_recv_wr = conn->nrx_bufs + 1;
	init.cap.max_send_sge = min_t(u32, SWC_MAX_SGE, ib->attrs.max_send_sge);
	init.cap.max_recv_sge = SWC_RX_SGE;
	conn->sq.nsge = init.cap.max_send_sge;
	if (conn->sq.nsge < 2 || ib->attrs.max_recv_sge < SWC_RX_SGE)
		return -EOPNOTSUPP;
	/*
	 * Its own, not one of ib_cq_pool_get(): completions run steps of operations, and connections that
	 * share a queue would wait for each other's reductions.
	 */
	cq = swc_cq_create(&conn->base, ib, SWC_SQ_DEPTH + conn->nrx_bufs + 3);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	set_cq(conn, cq);
	init.send_cq = swc_cq_ib(cq);
	init.recv_cq = swc_cq_ib(cq);
	/* Its own: a peer can only write to memory that was offered to it. */
	conn->pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(conn->pd)) {
		int ret = PTR_ERR(conn->pd);

		conn->pd = NULL;
		return ret;
	}
	return rdma_create_qp(conn->id, conn->pd, &init);
}

static int setup(struct swc_rdma_conn *conn, struct rdma_cm_id *id)
{
	struct ib_device *ib = id->device;
	int ret;
	u32 i;

	conn->id = id;
	conn->iwarp = rdma_protocol_iwarp(ib, id->port_num);
	conn->base.card = id->route.addr.dev_addr.bound_dev_if;
	conn->port = id->port_num;
	conn->dev = swc_dev_get(ib, conn);
	if (!conn->dev)
		return -ENODEV;
	ret = swc_buffers_alloc(conn);
	if (!ret)
		ret = swc_buffers_map(conn);
	if (!ret)
		ret = create_qp(conn, ib);
	if (!ret)
		ret = swc_rndv_setup(conn);
	conn->ack.cqe.done = swc_rdma_tx_read_done;
	for (i = 0; i < SWC_SQ_DEPTH && !ret; i++)
		conn->sq.entry[i].cqe.done = swc_rdma_tx_done;
	return ret ?: swc_rdma_rx_post_all(conn);
}

/**
 * swc_qp_setup() - queue pair, memory and receives for a connection that is being made
 * @id: of the connection manager, bound to a device; belongs to the connection from now on
 *
 * The memory is charged to the creator of the communicator, whatever the context. Return: 0 or a negative
 * errno; in any case swc_qp_teardown() cleans up.
 */
int swc_qp_setup(struct swc_rdma_conn *conn, struct rdma_cm_id *id)
{
	struct mem_cgroup *before = set_active_memcg(conn->base.net->memcg);
	int ret = setup(conn, id);

	set_active_memcg(before);
	return ret;
}

static void unmap(struct swc_rdma_conn *conn)
{
	u32 i;

	for (i = 0; conn->sq.entry && i < SWC_SQ_DEPTH; i++)
		swc_sq_unmap(conn, &conn->sq.entry[i]);
	swc_buffers_unmap(conn);
}

/*
 * End a queue pair whose attempt to connect has failed. Nothing that others wait for was given to it, and it
 * may be one that completes nothing, so that draining would wait for ever: rxe stops receiving where it has
 * no memory for the answer.
 */
static void drop_qp(struct swc_rdma_conn *conn)
{
	swc_rndv_teardown(conn);
	rdma_destroy_qp(conn->id);
	/* Waits for the handler of completions, which may still look at receive buffers. */
	swc_cq_free(set_cq(conn, NULL));
}

/*
 * Nothing is sent or received any more, and the device touches no memory of the connection. Was it live? Then
 * all that had arrived has been handled.
 */
static bool stop(struct swc_rdma_conn *conn)
{
	struct rdma_cm_id *id = conn->id;
	bool drain = id->qp && test_bit(SWC_CONN_F_PROVEN, &conn->base.flags);

	/* From now on the handler ignores events. */
	rdma_lock_handler(id);
	id->context = NULL;
	rdma_unlock_handler(id);
	spin_lock(&conn->base.lock);
	conn->can_post = false;
	spin_unlock(&conn->base.lock);
	if (conn->cq)
		swc_cq_stop(conn->cq);
	if (id->qp)
		rdma_disconnect(id);
	if (drain)
		ib_drain_qp(id->qp);
	else if (id->qp)
		drop_qp(conn);
	if (conn->dev)
		unmap(conn);
	if (drain)
		swc_rndv_teardown(conn);
	return drain;
}

/* Transport operation. */
void swc_qp_quiesce(struct swc_conn *base)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(base);

	if (conn->id)
		stop(conn);
}

/* ------------------------------------------------------------------ freeing */

/* A queue pair that is not used any more, with all that goes with it. */
struct old_qp {
	struct rdma_cm_id *id;
	struct swc_cq *cq;
	struct ib_pd *pd;
	struct swc_rdma_dev *dev;
};

/* The same to be freed by a work item, which has references on the connection and its communicator. */
struct retired_qp {
	struct work_struct work;
	struct old_qp old;
	struct swc_conn *conn;
};

static struct old_qp detach(struct swc_rdma_conn *conn)
{
	struct old_qp old = { conn->id, set_cq(conn, NULL), conn->pd, swc_dev_detach(conn) };

	conn->id = NULL;
	conn->pd = NULL;
	return old;
}

static void free_old(const struct old_qp *old)
{
	/* rxe waits here for packets that a network card holds, up to 50 s if it is down. */
	if (old->id->qp)
		rdma_destroy_qp(old->id);
	if (old->cq)
		swc_cq_free(old->cq);
	if (old->pd)
		ib_dealloc_pd(old->pd);
	rdma_destroy_id(old->id);
	if (old->dev)
		swc_dev_unuse(old->dev);
}

static void free_retired(struct work_struct *work)
{
	struct retired_qp *retired = container_of(work, struct retired_qp, work);
	struct swc_conn *conn = retired->conn;

	free_old(&retired->old);
	kfree(retired);
	swc_net_ops->put(conn->comm);
	swc_conn_put(conn);
}

/* Free it, without waiting if there is memory for that: the connection is to go on. */
static void retire(struct swc_rdma_conn *conn)
{
	struct retired_qp *retired = kmalloc(sizeof(*retired), GFP_NOIO);
	struct old_qp old = detach(conn);

	if (!retired) {
		free_old(&old);
		return;
	}
	INIT_WORK(&retired->work, free_retired);
	retired->old = old;
	retired->conn = &conn->base;
	kref_get(&conn->base.ref);
	swc_net_ops->get(conn->base.comm);
	queue_work(swc_free_wq, &retired->work);
}

/* Transport operation: what was sent and may not have arrived is kept. */
void swc_qp_suspend(struct swc_conn *base)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(base);
	struct old_qp old;

	if (!conn->id)
		return;
	if (stop(conn)) {
		retire(conn);
	} else {
		old = detach(conn);
		free_old(&old);
	}
	swc_replay_suspend(conn);
}

/* Transport operation: the memory of the connection stays allocated. */
void swc_qp_teardown(struct swc_conn *base)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(base);
	struct old_qp old;

	if (conn->id) {
		old = detach(conn);
		free_old(&old);
	}
	spin_lock(&conn->base.lock);
	swc_sq_reset(conn);
	spin_unlock(&conn->base.lock);
}
