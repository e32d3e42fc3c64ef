// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watching over the connections of a net: probing silent peers while operations wait, and telling why one
 * does not answer. All of it goes through the list of connections under the xarray's lock, and does not
 * sleep.
 */
#include "rdma/rdma.h"

/*
 * Idle seconds until a probe: a quarter of the time after which a device gives up a peer; less is of no
 * use.
 */
static u32 probe_s(void)
{
	return DIV_ROUND_UP(swc_cm_answer_ms(7), 4 * MSEC_PER_SEC);
}

/* Work item. */
void swc_watch_work(struct work_struct *work)
{
	struct swc_rdma_net *net = container_of(work, struct swc_rdma_net, watch_work.work);
	struct swc_rdma_conn *conn;

	if (swc_net_oldest(net) == U64_MAX)
		return;
	xa_lock(&net->conns);
	list_for_each_entry(conn, &net->all, node) {
		bool active, pump;
		u32 pending;

		spin_lock(&conn->lock);
		active = conn->state == SWC_CONN_LIVE && !test_bit(SWC_CONN_F_LEAVING, &conn->flags);
		pending = swc_sq_watch(conn, probe_s(), active);
		swc_conn_pend(conn, pending);
		pump = pending || conn->sq.map_failing_s;
		spin_unlock(&conn->lock);
		if (pump)
			swc_conn_pump_later(conn);
	}
	xa_unlock(&net->conns);
	swc_watch_start(&net->base);
}

/* Transport operation. */
void swc_watch_start(struct swc_net *base)
{
	queue_delayed_work(base->params.wq, &swc_rdma_net(base)->watch_work, HZ);
}

/* Transport operation. */
void swc_watch_pump(struct swc_net *base)
{
	struct swc_rdma_net *net = swc_rdma_net(base);
	struct swc_rdma_conn *conn;

	xa_lock(&net->conns);
	list_for_each_entry(conn, &net->all, node)
		if (!list_empty_careful(&conn->outq) || !list_empty_careful(&conn->rndvs))
			swc_conn_pump_later(conn);
	xa_unlock(&net->conns);
}

/* Transport operation. */
void swc_watch_heartbeat(struct swc_net *base, u32 peer)
{
	struct swc_rdma_net *net = swc_rdma_net(base);
	struct swc_rdma_conn *conn;
	bool live = false;

	xa_lock(&net->conns);
	list_for_each_entry(conn, &net->all, node) {
		if (conn->peer != peer)
			continue;
		spin_lock(&conn->lock);
		live = conn->state == SWC_CONN_LIVE;
		if (live)
			swc_conn_pend(conn, SWC_PEND_HEARTBEAT);
		spin_unlock(&conn->lock);
		if (live) {
			swc_conn_pump_later(conn);
			break;
		}
	}
	xa_unlock(&net->conns);
}

/* Transport operation. */
const char *swc_watch_trouble(struct swc_net *base, u32 peer)
{
	struct swc_rdma_net *net = swc_rdma_net(base);
	struct swc_rdma_conn *conn;
	const char *why = NULL;

	xa_lock(&net->conns);
	list_for_each_entry(conn, &net->all, node) {
		if (conn->peer != peer)
			continue;
		spin_lock(&conn->lock);
		if (conn->state != SWC_CONN_LIVE)
			why = conn->why ?: conn->me < peer ? "no answer" : "it has not connected";
		spin_unlock(&conn->lock);
	}
	xa_unlock(&net->conns);
	return why;
}

/* Transport operation. */
int swc_watch_card_down(struct swc_net *base, u32 peer, char *text, size_t bytes)
{
	struct swc_rdma_net *net = swc_rdma_net(base);
	struct swc_rdma_conn *conn;
	int me = -1;

	xa_lock(&net->conns);
	list_for_each_entry(conn, &net->all, node) {
		if (conn->peer == peer && swc_conn_card_down(conn, text, bytes)) {
			me = conn->me;
			break;
		}
	}
	xa_unlock(&net->conns);
	return me;
}
