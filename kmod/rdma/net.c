// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connections of a communicator.
 *
 * They are made when a plan first needs them, or when a peer asks, and end together: by abort, after the
 * peers have been told, or one rank's at a time as the ranks leave.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/memcontrol.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <net/ipv6.h>

#include "rdma.h"

/* Peers that live have taken the news by then; only tests change it. */
u32 swc_tell_ms = 500;

const struct swc_net_ops *swc_net_ops;
struct workqueue_struct *swc_net_wq;
/* For what sleeps until peers have been told, by works of the other. */
static struct workqueue_struct *telling_wq;

unsigned int swc_slots = 16;
module_param_named(rdma_slots, swc_slots, uint, 0444);
MODULE_PARM_DESC(rdma_slots, "landing slots per connection, 4 to 1024 (default 16)");

unsigned int swc_slot_kib = 32;
module_param_named(rdma_slot_kib, swc_slot_kib, uint, 0444);
MODULE_PARM_DESC(rdma_slot_kib, "size of a landing slot in KiB, 4 to 1024 (default 32)");

static unsigned long conn_key(u32 me, u32 peer, u16 channel, u16 path)
{
	BUILD_BUG_ON((u64)SWC_MAX_RANKS * SWC_MAX_RANKS * SWC_MAX_CHANNELS * SWC_MAX_PATHS > LONG_MAX);
	return (((unsigned long)me * SWC_MAX_RANKS + peer) * SWC_MAX_CHANNELS + channel) * SWC_MAX_PATHS +
	       path;
}

/* ------------------------------------------------------------------ paths */

static int compare_paths(const void *a, const void *b)
{
	const struct swc_node_path *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->path < y->path ? -1 : x->path > y->path;
}

static bool addr_ok(const u8 *addr, sa_family_t *family)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in4 = (const void *)addr;

	*family = in4->sin_family;
	if (*family == AF_INET)
		return in4->sin_addr.s_addr;
	return *family == AF_INET6 && !ipv6_addr_any(&in6->sin6_addr);
}

/* Sort the table, check it, and note where each node's paths begin. */
static int index_paths(struct swc_net *net, u32 npaths)
{
	const struct swc_comm *comm = net->comm;
	u32 i, node = 0;

	sort(net->path, npaths, sizeof(*net->path), compare_paths, NULL);
	for (i = 0; i < npaths; i++) {
		struct swc_node_path *p = &net->path[i];
		sa_family_t local, remote;

		if (p->node >= comm->nranks || p->node == comm->here || p->path >= SWC_MAX_PATHS)
			return -EINVAL;
		while (node <= p->node)
			net->first_path[node++] = i;
		if (p->path != i - net->first_path[p->node])
			return -EINVAL;
		if (!addr_ok(p->local, &local) || !addr_ok(p->remote, &remote) || local != remote)
			return -EINVAL;
		/* At the same place in both families. Connections leave from a port of their own. */
		((struct sockaddr_in *)p->local)->sin_port = 0;
	}
	while (node <= comm->nranks)
		net->first_path[node++] = npaths;
	return 0;
}

u32 swc_net_npaths(const struct swc_net *net, u32 node)
{
	return net->first_path[node + 1] - net->first_path[node];
}

const struct swc_node_path *swc_net_path(const struct swc_net *net, u32 node, u32 path)
{
	return &net->path[net->first_path[node] + path];
}

/* ------------------------------------------------------------------ life */

static void abort_all(struct work_struct *work);
static void look_at_all(struct work_struct *work);

/**
 * swc_net_create() - the network side of a communicator that is being made
 * @comm: ranks and nodes are known, the id is set; gets its name
 * @paths: ways to the other nodes, copied
 * @npaths: entries
 * @listener: belongs to the net on success
 *
 * Return: the net, or -EINVAL if the paths make no sense, -ENOMEM.
 */
struct swc_net *swc_net_create(struct swc_comm *comm, const struct swc_node_path *paths, u32 npaths,
			       struct swc_listener *listener)
{
	struct swc_net *net = kzalloc(sizeof(*net), GFP_KERNEL_ACCOUNT);
	int ret = -ENOMEM;

	if (!net)
		return ERR_PTR(-ENOMEM);
	net->comm = comm;
	net->memcg = get_mem_cgroup_from_mm(current->mm);
	mutex_init(&net->lock);
	xa_init(&net->conns);
	INIT_LIST_HEAD(&net->all);
	init_waitqueue_head(&net->told);
	INIT_WORK(&net->abort_work, abort_all);
	INIT_DELAYED_WORK(&net->watch_work, look_at_all);
	net->first_path = kvmalloc_array(comm->nranks + 1, sizeof(u32), GFP_KERNEL_ACCOUNT);
	net->path = kvmalloc_array(npaths, sizeof(*paths), GFP_KERNEL_ACCOUNT);
	if (!net->first_path || !net->path)
		goto err;
	memcpy(net->path, paths, npaths * sizeof(*paths));
	ret = index_paths(net, npaths);
	if (ret)
		goto err;
	swc_conn_name(comm);
	net->listener = listener;
	return net;
err:
	mem_cgroup_put(net->memcg);
	kvfree(net->first_path);
	kvfree(net->path);
	kfree(net);
	return ERR_PTR(ret);
}

/* Give back segments that nobody will ever ask for. */
static void drop_early(struct swc_comm *comm)
{
	struct swc_seg *seg, *next;
	LIST_HEAD(early);
	u32 i;

	spin_lock(&comm->lock);
	for (i = 0; i < SWC_EARLY; i++)
		list_splice_init(&comm->early[i], &early);
	spin_unlock(&comm->lock);
	list_for_each_entry_safe(seg, next, &early, node) {
		swc_conn_release(seg);
		cond_resched();
	}
}

/* All connections are closed: they hold the communicator. */
void swc_net_free(struct swc_net *net)
{
	cancel_delayed_work_sync(&net->watch_work);
	drop_early(net->comm);
	swc_ended_note(net->comm);
	swc_net_deafen(net->listener);
	xa_destroy(&net->conns);
	mem_cgroup_put(net->memcg);
	kvfree(net->first_path);
	kvfree(net->path);
	kfree(net);
}

/* ------------------------------------------------------------------ connections */

/* The connection, new if there is none; with a reference. */
struct swc_conn *swc_conn_find(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path)
{
	unsigned long key = conn_key(me, peer, channel, path);
	struct mem_cgroup *before;
	struct swc_conn *conn;
	int ret = 0;

	mutex_lock(&net->lock);
	before = set_active_memcg(net->memcg);
	conn = xa_load(&net->conns, key);
	if (!conn) {
		/* Who leaves closes its own, and would not know of another one. */
		if (net->dead || READ_ONCE(net->comm->member[me].state) > SWC_MEMBER_JOINED)
			ret = -ECONNABORTED;
		else
			conn = swc_conn_alloc(net, me, peer, channel, path);
		if (!ret && !conn)
			ret = -ENOMEM;
		if (!ret)
			ret = xa_err(xa_store(&net->conns, key, conn, GFP_KERNEL_ACCOUNT));
		if (!ret) {
			xa_lock(&net->conns);
			list_add_tail(&conn->node, &net->all);
			xa_unlock(&net->conns);
		} else if (conn) {
			swc_comm_put(conn->comm);
			swc_conn_put(conn);
		}
	}
	if (!ret)
		kref_get(&conn->ref);
	set_active_memcg(before);
	mutex_unlock(&net->lock);
	return ret ? ERR_PTR(ret) : conn;
}

/**
 * swc_conn_get() - the connection to a peer, being made if it is not there yet
 */
struct swc_conn *swc_conn_get(struct swc_net *net, u32 me, u32 peer, u16 channel, u16 path)
{
	struct swc_conn *conn = swc_conn_find(net, me, peer, channel, path);

	if (IS_ERR(conn))
		return conn;
	spin_lock(&conn->lock);
	/* Who has left in order has sent all that it had to, and takes nothing any more. */
	if (me < peer && conn->state == SWC_CONN_IDLE &&
	    READ_ONCE(net->comm->member[peer].state) != SWC_MEMBER_LEFT) {
		conn->state = SWC_CONN_CONNECTING;
		queue_delayed_work(swc_net_wq, &conn->connect_work, 0);
	}
	spin_unlock(&conn->lock);
	return conn;
}

/* A connection has been closed. */
void swc_net_forget(struct swc_conn *conn)
{
	struct swc_net *net = conn->net;
	struct swc_comm *comm = conn->comm;

	mutex_lock(&net->lock);
	xa_lock(&net->conns);
	__xa_erase(&net->conns, conn_key(conn->me, conn->peer, conn->channel, conn->path));
	list_del_init(&conn->node);
	xa_unlock(&net->conns);
	mutex_unlock(&net->lock);
	wake_up_all(&net->told);
	spin_lock(&conn->lock);
	conn->net = NULL;
	spin_unlock(&conn->lock);
	swc_conn_put(conn);
	swc_comm_put(comm);
}

/**
 * swc_net_pump() - an operation is over: what has waited for that may be sent
 */
void swc_net_pump(struct swc_net *net)
{
	struct swc_conn *conn;

	/* The table's own lock: the caller may be anywhere. */
	xa_lock(&net->conns);
	list_for_each_entry(conn, &net->all, node)
		if (!list_empty_careful(&conn->outq) || !list_empty_careful(&conn->lands))
			swc_conn_pump_later(conn);
	xa_unlock(&net->conns);
}

/*
 * Work item: who only waits would never hear of a peer's silent death. A message that nobody acknowledges
 * ends the connection. Who waits for memory to write to says so now and then: it may be that what the peer
 * has called is another call.
 */
static void look_at_all(struct work_struct *work)
{
	struct swc_net *net = container_of(work, struct swc_net, watch_work.work);
	u32 probe = swc_conn_probe_s();
	struct swc_conn *conn;

	if (READ_ONCE(net->comm->oldest) == U64_MAX)
		return;
	xa_lock(&net->conns);
	list_for_each_entry(conn, &net->all, node) {
		u32 pending = 0, starved;

		spin_lock(&conn->lock);
		conn->silent = conn->sq_head == conn->seen ? conn->silent + 1 : 0;
		conn->seen = conn->sq_head;
		if (conn->silent && conn->silent % probe == 0)
			pending = SWC_PEND_PROBE;
		if (is_power_of_2(conn->silent) && !list_empty(&conn->outq))
			pending |= SWC_PEND_WANT;
		if (conn->state != SWC_CONN_LIVE || conn->leaving) {
			conn->silent = 0;
			pending = 0;
		}
		/* With another message, some devices begin anew to wait for what they have not heard of. */
		if ((s32)(conn->sq_tail - conn->asked) < 0)
			pending = 0;
		else
			conn->asked = conn->sq_tail;
		conn->pending |= pending;
		if (conn->starved)
			conn->starved++;
		starved = conn->starved;
		spin_unlock(&conn->lock);
		if (pending || starved)
			swc_conn_pump_later(conn);
	}
	xa_unlock(&net->conns);
	swc_net_watch(net);
}

/**
 * swc_net_watch() - an operation is in flight: see to it that peers live
 */
void swc_net_watch(struct swc_net *net)
{
	queue_delayed_work(swc_net_wq, &net->watch_work, HZ);
}

/**
 * swc_net_ask() - have a peer say how many operations it has come to, by swc_net_ops.came; if it still can
 */
void swc_net_ask(struct swc_net *net, u32 peer)
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
			conn->pending |= SWC_PEND_ASK;
		spin_unlock(&conn->lock);
		if (live) {
			swc_conn_pump_later(conn);
			break;
		}
	}
	xa_unlock(&net->conns);
}

/**
 * swc_net_trouble() - why there is no connection with a peer that is waited for, or NULL if there is one
 */
const char *swc_net_trouble(struct swc_net *net, u32 peer)
{
	const char *why = NULL;
	struct swc_conn *conn;

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

/**
 * swc_net_card_down() - is the card of this node down by which a peer is waited for?
 * @text: gets what to do about it
 *
 * Return: the rank here that waits, or -1.
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

/* ------------------------------------------------------------------ ending */

/* True when no connection has news to tell any more. */
static bool all_told(struct swc_net *net)
{
	struct swc_conn *conn;
	bool told = true;

	xa_lock(&net->conns);
	list_for_each_entry(conn, &net->all, node) {
		spin_lock(&conn->lock);
		/* Posted requests that are not complete, or not even posted, or connections being made. */
		if ((conn->state == SWC_CONN_LIVE &&
		     ((conn->pending & SWC_PEND_ABORT) || conn->sq_head != conn->sq_tail)) ||
		    conn->state == SWC_CONN_CONNECTING || conn->state == SWC_CONN_RESETTING)
			told = false;
		spin_unlock(&conn->lock);
	}
	xa_unlock(&net->conns);
	return told;
}

static void close_all(struct swc_net *net)
{
	struct swc_conn *conn;

	mutex_lock(&net->lock);
	net->dead = true;
	list_for_each_entry(conn, &net->all, node)
		swc_conn_close(conn, 0);
	mutex_unlock(&net->lock);
}

/* Work item: tell all peers, give them a moment, close. */
static void abort_all(struct work_struct *work)
{
	struct swc_net *net = container_of(work, struct swc_net, abort_work);
	struct swc_comm *comm = net->comm;
	struct swc_conn *conn;

	mutex_lock(&net->lock);
	net->dead = true;
	list_for_each_entry(conn, &net->all, node) {
		spin_lock(&conn->lock);
		conn->pending |= SWC_PEND_ABORT;
		spin_unlock(&conn->lock);
		/* What nobody will come for must not keep its operation. */
		swc_conn_give_back(conn, false);
		swc_conn_pump_later(conn);
	}
	mutex_unlock(&net->lock);
	wait_event_timeout(net->told, all_told(net), msecs_to_jiffies(swc_tell_ms));
	drop_early(comm);
	close_all(net);
	swc_comm_put(comm);
}

/**
 * swc_net_abort() - the communicator has ended
 *
 * Does not sleep. All that connections have been given comes back soon.
 */
void swc_net_abort(struct swc_net *net)
{
	kref_get(&net->comm->ref);
	if (!queue_work(telling_wq, &net->abort_work))
		swc_comm_put(net->comm);
}

/**
 * swc_net_leave() - a rank of this node leaves in order
 * @rank: who
 * @seq: operations that it has taken part in
 *
 * If the communicator has ended, peers hear of that instead, and by nothing else: a BYE that came first would
 * make this rank the one at fault.
 */
void swc_net_leave(struct swc_net *net, u32 rank, u64 seq)
{
	struct swc_comm *comm = net->comm;
	struct swc_conn *conn;
	bool last, ended;

	spin_lock(&comm->lock);
	last = comm->nleft == comm->nlocal;
	ended = comm->status == SWC_COMM_ABORTED;
	spin_unlock(&comm->lock);
	if (ended)
		return;
	mutex_lock(&net->lock);
	net->dead |= last;
	list_for_each_entry(conn, &net->all, node) {
		unsigned int wait;

		if (conn->me != rank)
			continue;
		spin_lock(&conn->lock);
		conn->leaving = true;
		conn->pending |= SWC_PEND_BYE;
		conn->give_up = jiffies + msecs_to_jiffies(comm->timeout_ms);
		wait = conn->state == SWC_CONN_LIVE ? SWC_LINGER_MS : 0;
		spin_unlock(&conn->lock);
		swc_conn_pump_later(conn);
		swc_conn_close(conn, wait);
	}
	mutex_unlock(&net->lock);
}

/* ------------------------------------------------------------------ loading */

int swc_rdma_init(const struct swc_net_ops *ops)
{
	int ret;

	if (swc_slots < SWC_WIRE_MIN_SLOTS || swc_slots > SWC_WIRE_MAX_SLOTS) {
		pr_err("rdma_slots=%u: give %u to %u\n", swc_slots, SWC_WIRE_MIN_SLOTS, SWC_WIRE_MAX_SLOTS);
		return -EINVAL;
	}
	if (swc_slot_kib < SWC_WIRE_MIN_SLOT >> 10 || swc_slot_kib > SWC_WIRE_MAX_SLOT >> 10) {
		pr_err("rdma_slot_kib=%u: give %u to %u\n", swc_slot_kib, SWC_WIRE_MIN_SLOT >> 10,
		       SWC_WIRE_MAX_SLOT >> 10);
		return -EINVAL;
	}
	ret = swc_conn_check_parameters();
	if (ret)
		return ret;
	swc_net_ops = ops;
	swc_net_wq = alloc_workqueue("swingcoll-net", WQ_UNBOUND, 0);
	if (!swc_net_wq)
		return -ENOMEM;
	ret = -ENOMEM;
	telling_wq = alloc_workqueue("swingcoll-tell", WQ_UNBOUND, 0);
	if (!telling_wq)
		goto err;
	ret = swc_dev_init();
	if (ret)
		goto err_telling;
	return 0;

err_telling:
	destroy_workqueue(telling_wq);
err:
	destroy_workqueue(swc_net_wq);
	return ret;
}

/* All connections end now. */
void swc_rdma_stop(void)
{
	swc_dev_exit();
}

/* All communicators are gone. */
void swc_rdma_exit(void)
{
	destroy_workqueue(telling_wq);
	destroy_workqueue(swc_net_wq);
}
