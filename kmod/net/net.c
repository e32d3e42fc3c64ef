// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connections of a communicator. A connection is made when a plan first needs it or a peer asks for it.
 * They end together after an abort, when the peers have been notified, or rank by rank as ranks leave.
 */
#include <linux/bitmap.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "mem/account.h"
#include "net/auth.h"
#include "net/conn.h"
#include "net/tombstone.h"

/* Enough to notify live peers of an abort; only tests change it. */
u32 swc_abort_ms = 500;

/* ------------------------------------------------------------------ the table */

static unsigned long conn_key(u32 me, u32 peer, u16 channel, u16 path)
{
	BUILD_BUG_ON((u64)SWC_MAX_RANKS * SWC_MAX_RANKS * SWC_MAX_CHANNELS * SWC_MAX_PATHS > LONG_MAX);
	return (((unsigned long)me * SWC_MAX_RANKS + peer) * SWC_MAX_CHANNELS + channel) * SWC_MAX_PATHS +
	       path;
}

static void remove_conn(struct swc_conn *conn)
{
	struct swc_net *net = conn->net;

	mutex_lock(&net->lock);
	xa_lock(&net->conns);
	__xa_erase(&net->conns, conn_key(conn->me, conn->peer, conn->channel, conn->path));
	list_del_init(&conn->node);
	xa_unlock(&net->conns);
	mutex_unlock(&net->lock);
	/* It is not LIVE, so it is not added again. */
	spin_lock(&net->list_lock);
	list_del_init(&conn->stalled);
	spin_unlock(&net->list_lock);
	wake_up_all(&net->abort_wq);
	spin_lock(&conn->lock);
	swc_conn_set_state(conn, SWC_CONN_CLOSING, SWC_CONN_CLOSED);
	spin_unlock(&conn->lock);
	swc_conn_put(conn);
}

/* ------------------------------------------------------------------ closing */

static void return_sends(struct list_head *sends, int error)
{
	struct swc_send *send, *next;

	list_for_each_entry_safe(send, next, sends, node)
		swc_net_ops->send_done(send, error, false);
}

/*
 * Return what the executor has given to the connection. @quiesced: nothing touches that memory any more.
 * Otherwise only if it never was live: the device may be working on it. A peer that has left in order has
 * received all that was sent, whether or not its device or TCP could still say so.
 */
static void return_all(struct swc_conn *conn, bool quiesced)
{
	int error = test_bit(SWC_CONN_F_PEER_LEFT, &conn->flags) ? 0 : -ECONNABORTED;
	struct swc_rndv *rndv, *next_rndv;
	LIST_HEAD(waiting);
	LIST_HEAD(sent);
	LIST_HEAD(rndvs);

	spin_lock(&conn->lock);
	if (quiesced || !test_bit(SWC_CONN_F_STARTED, &conn->flags)) {
		list_splice_init(&conn->outq, &waiting);
		list_splice_init(&conn->inflight, &sent);
		list_splice_init(&conn->rndvs, &rndvs);
	}
	spin_unlock(&conn->lock);
	return_sends(&waiting, -ECONNABORTED);
	return_sends(&sent, error);
	list_for_each_entry_safe(rndv, next_rndv, &rndvs, node)
		swc_net_ops->rndv_closed(rndv, -ECONNABORTED);
}

/* Work item: take everything apart. */
static void close_work(struct work_struct *work)
{
	struct swc_conn *conn = container_of(work, struct swc_conn, close_work.work);
	bool wait, closed;

	spin_lock(&conn->lock);
	closed = conn->state == SWC_CONN_CLOSED;
	wait = swc_conn_has_unsent(conn);
	if (!wait)
		swc_conn_set_state(conn, conn->state, SWC_CONN_CLOSING);
	spin_unlock(&conn->lock);
	if (wait) {
		swc_conn_close(conn, SWC_LINGER_MS);
	} else if (!closed) {
		cancel_delayed_work_sync(&conn->connect_work);
		cancel_work_sync(&conn->path_work);
		swc_conn_attempt_over(conn);
		swc_conn_quiesce(conn);
		return_all(conn, true);
		swc_conn_teardown(conn);
		remove_conn(conn);
		/* From now on nothing finds the connection. What is queued must not run without the net. */
		if (cancel_work_sync(&conn->pump_work))
			swc_conn_put(conn);
		/* Leaving may have queued this again. */
		if (cancel_delayed_work(&conn->close_work))
			swc_conn_put(conn);
		/* The communicator's end is that of its work queues. */
		swc_net_ops->put(conn->comm);
	}
	swc_conn_put(conn);
}

/* ------------------------------------------------------------------ finding and making */

static struct swc_conn *conn_alloc(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path)
{
	const struct swc_node_path *p = swc_net_path(net, net->params.rank_node[peer], path);
	const struct swc_transport *transport = swc_transport_get(p->transport);
	struct swc_conn *conn = transport->conn_alloc();
	int ret;

	if (!conn)
		return ERR_PTR(-ENOMEM);
	conn->transport = transport;
	/* For all that it is going to allocate: most of it comes when it connects. */
	ret = swc_conn_charge(conn, net);
	if (ret) {
		transport->conn_free(conn);
		return ERR_PTR(ret);
	}
	kref_init(&conn->ref);
	conn->net = net;
	conn->comm = net->params.comm;
	swc_net_ops->get(conn->comm);
	conn->me = me;
	conn->peer = peer;
	conn->channel = channel;
	conn->path = path;
	conn->via = path;
	conn->resumable = transport->suspend && swc_path_has_other(net, net->params.rank_node[peer], path);
	conn->give_up = jiffies + msecs_to_jiffies(net->params.timeout_ms);
	spin_lock_init(&conn->lock);
	spin_lock_init(&conn->waiter_lock);
	conn->rx_bufs = *transport->rx_bufs;
	INIT_DELAYED_WORK(&conn->connect_work, swc_reply_connect_work);
	INIT_WORK(&conn->path_work, swc_resume_path_work);
	INIT_DELAYED_WORK(&conn->close_work, close_work);
	INIT_WORK(&conn->pump_work, swc_conn_pump_work);
	INIT_LIST_HEAD(&conn->node);
	INIT_LIST_HEAD(&conn->stalled);
	INIT_LIST_HEAD(&conn->turn);
	INIT_LIST_HEAD(&conn->outq);
	INIT_LIST_HEAD(&conn->inflight);
	INIT_LIST_HEAD(&conn->rndvs);
	return conn;
}

static struct swc_conn *add_conn(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path)
{
	struct swc_conn *conn;
	int ret;

	lockdep_assert_held(&net->lock);
	/* A rank that leaves closes its connections, and would not find a later one. */
	if (net->dead || test_bit(me, net->left))
		return ERR_PTR(-ECONNABORTED);
	conn = conn_alloc(net, me, peer, channel, path);
	if (IS_ERR(conn))
		return conn;
	ret = xa_err(xa_store(&net->conns, conn_key(me, peer, channel, path), conn, GFP_KERNEL_ACCOUNT));
	if (ret) {
		swc_net_ops->put(conn->comm);
		swc_conn_put(conn);
		return ERR_PTR(ret);
	}
	xa_lock(&net->conns);
	list_add_tail(&conn->node, &net->all);
	xa_unlock(&net->conns);
	return conn;
}

/**
 * swc_net_find_conn() - a connection of a net, made if it does not exist
 *
 * Return: the connection, with a reference; -ECONNABORTED if there are to be no more; -EDQUOT if the user may
 * not have more; -ENOMEM.
 */
struct swc_conn *swc_net_find_conn(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path)
{
	struct swc_conn *conn;
	struct mem_cgroup *before;

	mutex_lock(&net->lock);
	before = set_active_memcg(net->memcg);
	conn = xa_load(&net->conns, conn_key(me, peer, channel, path)) ?:
	       add_conn(net, me, peer, channel, path);
	if (!IS_ERR(conn))
		kref_get(&conn->ref);
	set_active_memcg(before);
	mutex_unlock(&net->lock);
	return conn;
}

/* The same if it exists already, NULL if not. */
struct swc_conn *swc_net_known_conn(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path)
{
	struct swc_conn *conn;

	mutex_lock(&net->lock);
	conn = xa_load(&net->conns, conn_key(me, peer, channel, path));
	if (conn)
		kref_get(&conn->ref);
	mutex_unlock(&net->lock);
	return conn;
}

/**
 * swc_conn_get() - the connection to a peer, with a reference
 *
 * Starts to connect, does not wait for it. Return: the connection; the errors of swc_net_find_conn().
 */
struct swc_conn *swc_conn_get(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path)
{
	struct swc_conn *conn = swc_net_find_conn(net, me, peer, channel, path);

	if (IS_ERR(conn))
		return conn;
	spin_lock(&conn->lock);
	/* A peer that has left in order has sent all it had to send, and receives nothing any more. */
	if (me < peer && !test_bit(peer, net->left) &&
	    swc_conn_set_state(conn, SWC_CONN_IDLE, SWC_CONN_CONNECTING))
		queue_delayed_work(swc_conn_wq(conn), &conn->connect_work, 0);
	spin_unlock(&conn->lock);
	return conn;
}

/* ------------------------------------------------------------------ abort */

/* Is there no connection that still has to notify its peer? */
static bool all_notified(struct swc_net *net)
{
	struct swc_conn *conn;
	bool all = true;

	xa_lock(&net->conns);
	list_for_each_entry(conn, &net->all, node) {
		spin_lock(&conn->lock);
		/*
		 * A connection that is being made will be live, and notify its peer then; a peer that
		 * connects again is refused, and told by that.
		 */
		if (conn->state == SWC_CONN_LIVE)
			all &= !(conn->pending & SWC_PEND_ABORT) && conn->transport->all_received(conn);
		else
			all &= conn->state != SWC_CONN_CONNECTING && conn->state != SWC_CONN_RESETTING;
		spin_unlock(&conn->lock);
	}
	xa_unlock(&net->conns);
	return all;
}

static void close_all(struct swc_net *net)
{
	struct swc_conn *conn;

	mutex_lock(&net->lock);
	list_for_each_entry(conn, &net->all, node)
		swc_conn_close(conn, 0);
	mutex_unlock(&net->lock);
}

/* Work item: notify all peers, wait for that for a moment, close. */
static void abort_work(struct work_struct *work)
{
	struct swc_net *net = container_of(work, struct swc_net, abort_work);
	struct swc_comm *comm = net->params.comm;
	struct swc_conn *conn;

	mutex_lock(&net->lock);
	net->dead = true;
	list_for_each_entry(conn, &net->all, node) {
		spin_lock(&conn->lock);
		swc_conn_pend(conn, SWC_PEND_ABORT);
		spin_unlock(&conn->lock);
		return_all(conn, false);
		swc_conn_pump_later(conn);
	}
	mutex_unlock(&net->lock);
	wait_event_timeout(net->abort_wq, all_notified(net), msecs_to_jiffies(swc_abort_ms));
	swc_net_ops->drop_unexpected(comm);
	close_all(net);
	swc_net_ops->put(comm);
}

/**
 * swc_net_abort() - the communicator was aborted: tell the peers, return everything, close
 *
 * Once per communicator. Does not sleep. Connections return all that they were given soon.
 */
void swc_net_abort(struct swc_net *net, const struct swc_net_abort *abort)
{
	net->abort = *abort;
	/* Pairs with the acquire of whoever reads net->abort without having been queued by the next lines. */
	smp_store_release(&net->aborted, true);
	swc_net_ops->get(net->params.comm);
	if (!queue_work(net->params.abort_wq, &net->abort_work))
		swc_net_ops->put(net->params.comm);
}

/* ------------------------------------------------------------------ leaving */

/* A rank of this node has left in order, after @seq operations; @last: all have. */
void swc_net_leave(struct swc_net *net, u32 rank, u64 seq, bool last)
{
	struct swc_conn *conn;

	mutex_lock(&net->lock);
	set_bit(rank, net->left);
	net->dead |= last;
	list_for_each_entry(conn, &net->all, node) {
		bool live;

		if (conn->me != rank)
			continue;
		spin_lock(&conn->lock);
		set_bit(SWC_CONN_F_LEAVING, &conn->flags);
		conn->fin_seq = seq;
		conn->give_up = jiffies + msecs_to_jiffies(min(net->params.timeout_ms, SWC_LEAVE_MS));
		swc_conn_pend(conn, SWC_PEND_FIN);
		live = conn->state == SWC_CONN_LIVE || swc_conn_has_unsent(conn);
		spin_unlock(&conn->lock);
		swc_conn_pump_later(conn);
		swc_conn_close(conn, live ? SWC_LINGER_MS : 0);
	}
	mutex_unlock(&net->lock);
}

/* ------------------------------------------------------------------ nets */

/**
 * swc_net_create() - the net of a communicator that is being created
 * @params: copied
 * @paths: of swc_path_table_read(); on success the net's
 * @listeners: of swc_listeners_start(), for these paths; on success the net's
 *
 * Return: to be freed by swc_net_free(); -ENOMEM.
 */
struct swc_net *swc_net_create(const struct swc_net_params *params, struct swc_path_table *paths,
			       struct swc_listeners *listeners)
{
	struct swc_net *net = kzalloc(sizeof(*net), GFP_KERNEL_ACCOUNT);
	u32 i;

	if (!net)
		return ERR_PTR(-ENOMEM);
	net->params = *params;
	net->unexpected.account = params->account;
	net->left = bitmap_zalloc(params->nranks, GFP_KERNEL_ACCOUNT);
	if (!net->left) {
		kfree(net);
		return ERR_PTR(-ENOMEM);
	}
	net->paths = *paths;
	*paths = (struct swc_path_table){};
	swc_auth_name(net);
	net->memcg = get_mem_cgroup_from_mm(current->mm);
	swc_net_init_conns(net);
	swc_net_init_deferred(net);
	init_waitqueue_head(&net->abort_wq);
	INIT_WORK(&net->abort_work, abort_work);
	INIT_DELAYED_WORK(&net->watch_work, swc_watch_work);
	for (i = 0; i < SWC_TRANSPORT_NR; i++)
		if (listeners->of[i])
			net->ns = listeners->of[i]->ns;
	net->listeners = *listeners;
	*listeners = (struct swc_listeners){};
	swc_cards_watch(net);
	return net;
}

/* The communicator's last reference is gone, so all connections are closed: they have references on it. */
void swc_net_free(struct swc_net *net)
{
	struct swc_listeners listeners = net->listeners;

	swc_cards_forget(net);
	cancel_delayed_work_sync(&net->watch_work);
	swc_net_stop_deferred(net);
	swc_net_ops->drop_unexpected(net->params.comm);
	swc_tombstone_add(net);
	xa_destroy(&net->conns);
	mem_cgroup_put(net->memcg);
	bitmap_free(net->left);
	swc_path_table_free(&net->paths);
	kfree(net);
	swc_listeners_stop(&listeners);
}

const u8 *swc_net_name(const struct swc_net *net)
{
	return net->name;
}
