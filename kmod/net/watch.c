// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watching over the connections of a net: probing silent peers, and those that do not connect, while
 * operations wait, and telling why one does not answer. All of that goes through the list of connections
 * under the xarray's lock. Nothing here sleeps.
 */
#include "net/conn.h"

/* The higher rank asks a peer that has not connected after so long; then less and less often. */
#define ASK_S		2
#define ASK_MOST	5	/* doubled so often */
/* So many of them at a time. */
#define ASKS_MOST	32

/*
 * The lower rank connects, unless its communicator was aborted before: it knows nobody to tell that.
 * conn->lock is held.
 */
static void ask(struct swc_conn *conn, u32 *nasked)
{
	if (!swc_resume_may_ask(conn)) {
		conn->silent_s = 0;
		return;
	}
	if (++conn->silent_s < ASK_S << conn->nfailed || *nasked == ASKS_MOST)
		return;
	conn->silent_s = 0;
	conn->nfailed = min_t(u32, conn->nfailed + 1, ASK_MOST);
	++*nasked;
	queue_delayed_work(swc_conn_wq(conn), &conn->connect_work, 0);
}

/*
 * What to send to a peer that nothing has been sent to for a while: its kernel or device must acknowledge
 * it, or the connection ends. conn->lock is held.
 */
static u32 probe(struct swc_conn *conn)
{
	bool active = conn->state == SWC_CONN_LIVE && !test_bit(SWC_CONN_F_LEAVING, &conn->flags);
	bool may_probe = conn->transport->watch(conn);
	u32 pending = 0;

	/* Paths that have failed are asked for now and then. */
	if (active && conn->resumable && swc_path_to_ask(conn, NULL) >= 0)
		queue_work(swc_conn_wq(conn), &conn->path_work);
	conn->idle_s = active && conn->nsent == conn->seen ? conn->idle_s + 1 : 0;
	conn->seen = conn->nsent;
	if (!conn->idle_s || !may_probe)
		return 0;
	if (conn->idle_s % conn->transport->probe_s() == 0)
		pending |= SWC_PEND_KEEPALIVE;
	if (is_power_of_2(conn->idle_s) && !list_empty(&conn->outq))
		pending |= SWC_PEND_RTS;
	return pending;
}

/* Work item. */
void swc_watch_work(struct work_struct *work)
{
	struct swc_net *net = container_of(work, struct swc_net, watch_work.work);
	struct swc_conn *conn;
	u32 nasked = 0;

	if (swc_net_oldest(net) == U64_MAX)
		return;
	xa_lock(&net->conns);
	list_for_each_entry(conn, &net->all, node) {
		u32 pending;

		spin_lock(&conn->lock);
		pending = probe(conn);
		ask(conn, &nasked);
		swc_conn_pend(conn, pending);
		spin_unlock(&conn->lock);
		if (pending)
			swc_conn_pump_later(conn);
	}
	xa_unlock(&net->conns);
	swc_net_watch(net);
}

/* An operation is in flight: probe silent peers until there is none. Does not sleep. */
void swc_net_watch(struct swc_net *net)
{
	queue_delayed_work(net->params.wq, &net->watch_work, HZ);
}

/* An operation has ended: messages that waited for that may be sent. Does not sleep. */
void swc_net_pump(struct swc_net *net)
{
	struct swc_conn *conn, *next;

	spin_lock(&net->list_lock);
	list_for_each_entry_safe(conn, next, &net->stalled, stalled) {
		list_del_init(&conn->stalled);
		swc_conn_pump_later(conn);
	}
	spin_unlock(&net->list_lock);
}

/* Have a peer report its progress, if there is a live connection. Does not sleep. */
void swc_net_heartbeat(struct swc_net *net, u32 peer)
{
	struct swc_conn *conn;
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

/* Why a connection is not live. conn->lock is held. */
static void explain(const struct swc_conn *conn, char *text, size_t bytes)
{
	bool lower = conn->me < conn->peer;

	if (conn->connect_error)
		strscpy(text, conn->connect_error, bytes);
	else if (conn->drop_reason)
		scnprintf(text, bytes, "it left its path (%s), and the peer %s", conn->drop_reason,
			  lower ? "does not answer" : "has not connected again");
	else
		strscpy(text, lower ? "no answer" : "it has not connected", bytes);
}

/**
 * swc_net_trouble() - is a connection with a peer not live?
 *
 * Does not sleep. Return: true, and @text says why, if one is not.
 */
bool swc_net_trouble(struct swc_net *net, u32 peer, char *text, size_t bytes)
{
	struct swc_conn *conn;
	bool trouble = false;

	xa_lock(&net->conns);
	list_for_each_entry(conn, &net->all, node) {
		if (conn->peer != peer)
			continue;
		spin_lock(&conn->lock);
		if (conn->state != SWC_CONN_LIVE) {
			explain(conn, text, bytes);
			trouble = true;
		}
		spin_unlock(&conn->lock);
	}
	xa_unlock(&net->conns);
	return trouble;
}

/**
 * swc_net_card_down() - is the network card down by which a peer is reached?
 *
 * Does not sleep. Return: the rank of this node that is cut off, and @text says so; -1: it is not.
 */
int swc_net_card_down(struct swc_net *net, u32 peer, char *text, size_t bytes)
{
	struct swc_conn *conn;
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
