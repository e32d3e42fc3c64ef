// SPDX-License-Identifier: GPL-2.0-only
/*
 * The paths from this node to others, as the creator of a communicator gives them.
 */
#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/addrconf.h>
#include <net/ipv6.h>

#include "net/conn.h"

static unsigned int avoid_ms = 500;
module_param_named(path_avoid_ms, avoid_ms, uint, 0444);
MODULE_PARM_DESC(path_avoid_ms, "milliseconds before a failed path is asked for again, 10 to 60000 (default 500)");

int swc_paths_check_parameters(void)
{
	return swc_param_check("path_avoid_ms", avoid_ms, 10, 60000);
}

static bool is_valid_addr(const u8 *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in4 = (const void *)addr;

	if (in4->sin_family == AF_INET)
		return in4->sin_addr.s_addr;
	return in6->sin6_family == AF_INET6 && !ipv6_addr_any(&in6->sin6_addr);
}

static bool is_valid_path(const struct swc_node_path *p)
{
	const struct sockaddr *local = (const void *)p->local, *remote = (const void *)p->remote;

	return p->transport < SWC_TRANSPORT_NR && is_valid_addr(p->local) && is_valid_addr(p->remote) &&
	       local->sa_family == remote->sa_family;
}

/* Check the table, and note where each node's paths begin. */
static int index_paths(struct swc_path_table *t, u32 npaths, u32 nranks, u32 here)
{
	u32 i, node = 0;

	for (i = 0; i < npaths; i++) {
		struct swc_node_path *p = &t->path[i];

		if (p->node >= nranks || p->node == here || p->node + 1 < node || p->path >= SWC_MAX_PATHS)
			return -EINVAL;
		while (node <= p->node)
			t->first[node++] = i;
		if (p->path != i - t->first[p->node] || !is_valid_path(p))
			return -EINVAL;
		/* At the same place in both families. A connection leaves from a port of its own. */
		((struct sockaddr_in *)p->local)->sin_port = 0;
		t->health[i] = (struct swc_path_health){ .until = jiffies, .tried = jiffies - 1 };
		if (!(i % 1024))
			cond_resched();
	}
	while (node <= nranks)
		t->first[node++] = npaths;
	return 0;
}

/* Memory of a table. */
u64 swc_path_table_bytes(u32 npaths, u32 nranks)
{
	return (u64)npaths * (sizeof(struct swc_node_path) + sizeof(struct swc_path_health)) +
	       (nranks + 1ull) * sizeof(u32);
}

/**
 * swc_path_table_read() - read the paths to the other nodes from user memory, and check them
 * @t: zeroed; to be freed by swc_path_table_free() in any case, unless it becomes a net's
 * @paths: by node, and by number for each node
 * @npaths: entries
 * @nranks: of the communicator
 * @here: this node
 *
 * Takes long for large tables: no lock may be held. Return: 0; -EINVAL, -EFAULT, -ENOMEM.
 */
int swc_path_table_read(struct swc_path_table *t, const void __user *paths, u32 npaths, u32 nranks, u32 here)
{
	size_t bytes = array_size(npaths, sizeof(*t->path));

	t->first = kvmalloc_array(nranks + 1, sizeof(*t->first), GFP_KERNEL_ACCOUNT);
	t->path = kvmalloc(bytes, GFP_KERNEL_ACCOUNT);
	t->health = kvmalloc_array(npaths, sizeof(*t->health), GFP_KERNEL_ACCOUNT);
	if (!t->first || !t->path || !t->health)
		return -ENOMEM;
	if (copy_from_user(t->path, paths, bytes))
		return -EFAULT;
	return index_paths(t, npaths, nranks, here);
}

void swc_path_table_free(struct swc_path_table *t)
{
	kvfree(t->first);
	kvfree(t->path);
	kvfree(t->health);
	*t = (struct swc_path_table){};
}

/* Number of paths to a node. */
u32 swc_net_npaths(const struct swc_net *net, u32 node)
{
	return net->paths.first[node + 1] - net->paths.first[node];
}

/* Memory of a connection by this path, about. */
u32 swc_net_conn_bytes(const struct swc_net *net, u32 node, u16 path)
{
	return swc_transport_get(swc_net_path(net, node, path)->transport)->conn_bytes();
}

/* ------------------------------------------------------------------ health */

/*
 * A path that has failed comes after the others until the peer has answered by it. That is asked after
 * avoid_ms, doubled after each further failure, but only so many times; unless it has been well for a minute
 * meanwhile. Any connection with the peer's node asks: one that took the path in place of its own has left
 * it, and perhaps it is no other's own. It would come last for ever, and connections that lose another path
 * would try all that have been lost meanwhile before it.
 */
#define AVOID_MOST	6u
#define WELL_MS		60000

static struct swc_path_health *health_of(const struct swc_conn *conn, u16 path)
{
	const struct swc_path_table *t = &conn->net->paths;

	return &t->health[t->first[conn->net->params.rank_node[conn->peer]] + path];
}

static bool is_due(const struct swc_path_health *h)
{
	return time_after_eq(jiffies, READ_ONCE(h->until));
}

static void avoid_for(struct swc_path_health *h, u32 ms)
{
	WRITE_ONCE(h->until, jiffies + msecs_to_jiffies(ms));
}

/* Could the path carry the connection? */
static bool is_usable(const struct swc_conn *conn, u16 path)
{
	u32 node = conn->net->params.rank_node[conn->peer];

	return swc_transport_get(swc_net_path(conn->net, node, path)->transport) == conn->transport;
}

/* Is there another path to a node by the same transport? */
bool swc_path_has_other(const struct swc_net *net, u32 node, u16 path)
{
	u32 i, n = swc_net_npaths(net, node);

	for (i = 0; i < n; i++)
		if (i != path && swc_net_path(net, node, i)->transport ==
				 swc_net_path(net, node, path)->transport)
			return true;
	return false;
}

/* Should @a be tried before @b, which comes before it in the order from the connection's own path on? */
static bool is_better(const struct swc_path_health *a, const struct swc_path_health *b)
{
	enum swc_path_state as = READ_ONCE(a->state), bs = READ_ONCE(b->state);

	if (as != bs || as == SWC_PATH_WELL)
		return as < bs;
	return time_before(READ_ONCE(a->tried), READ_ONCE(b->tried));
}

/* Does this node have no card for the path, or one that is down? Then nobody can answer by it. */
static bool is_cut(const struct swc_conn *conn, u16 path)
{
	u32 node = conn->net->params.rank_node[conn->peer];
	const struct swc_net *net = conn->net;
	struct net_device *dev;
	bool cut;

	rcu_read_lock();
	dev = dev_get_by_index_rcu(net->ns, swc_path_card(net, swc_net_path(net, node, path)));
	cut = !dev || !netif_running(dev) || !netif_carrier_ok(dev);
	rcu_read_unlock();
	return cut;
}

/*
 * The path for the next attempt: the connection's own, or the next that is well. If none is, that which was
 * tried longest ago, of those by which others have begun to try, and only then of those that have failed: so
 * all have their turn, however long they are to be avoided. Those that are cut off come last: where all have
 * failed, the one that was lost just now would have its turn before another that others are trying.
 */
u16 swc_path_choose(const struct swc_conn *conn)
{
	u32 n = swc_net_npaths(conn->net, conn->net->params.rank_node[conn->peer]), i;
	u16 path, found = conn->path;
	bool cut, found_cut;

	if (!conn->resumable)
		return found;
	found_cut = is_cut(conn, found);
	for (i = 1; i < n; i++) {
		path = (conn->path + i) % n;
		if (!is_usable(conn, path))
			continue;
		cut = is_cut(conn, path);
		if (cut != found_cut ? cut : !is_better(health_of(conn, path), health_of(conn, found)))
			continue;
		found = path;
		found_cut = cut;
	}
	return found;
}

static bool is_address(const u8 *addr, const struct sockaddr *other)
{
	const struct sockaddr_in6 *in6 = (const void *)addr, *other6 = (const void *)other;
	const struct sockaddr_in *in4 = (const void *)addr, *other4 = (const void *)other;

	if (in4->sin_family != other->sa_family)
		return false;
	return other->sa_family == AF_INET ? in4->sin_addr.s_addr == other4->sin_addr.s_addr :
					     ipv6_addr_equal(&in6->sin6_addr, &other6->sin6_addr);
}

/**
 * swc_path_by_address() - the path by which a peer has come
 * @local: the address here that it has connected to
 * @remote: its own
 *
 * Several may have the address here: then the one that has the peer's as well, and of these the connection's
 * own, or the next. If none has the peer's, the nodes' tables differ in that.
 */
u16 swc_path_by_address(const struct swc_conn *conn, const struct sockaddr *local,
			const struct sockaddr *remote)
{
	u32 node = conn->net->params.rank_node[conn->peer], n = swc_net_npaths(conn->net, node), i;
	u32 fits, best = 0;
	u16 path, found = conn->path;

	for (i = 0; i < n; i++) {
		const struct swc_node_path *p;

		path = (conn->path + i) % n;
		p = swc_net_path(conn->net, node, path);
		if (!is_usable(conn, path) || !is_address(p->local, local))
			continue;
		fits = 1 + is_address(p->remote, remote);
		if (fits > best) {
			best = fits;
			found = path;
		}
	}
	return found;
}

/* Index of the network card that has the path's address here, by which the peer could be reached; 0: none. */
int swc_path_card(const struct swc_net *net, const struct swc_node_path *path)
{
	const struct sockaddr_in6 *in6 = (const void *)path->local;
	const struct sockaddr_in *in4 = (const void *)path->local;
	struct net_device *dev;
	int index;

	rcu_read_lock();
	if (in4->sin_family == AF_INET)
		dev = __ip_dev_find(net->ns, in4->sin_addr.s_addr, false);
	else
		dev = IS_ENABLED(CONFIG_IPV6) ? ipv6_dev_find(net->ns, &in6->sin6_addr, NULL) : NULL;
	index = dev ? dev->ifindex : 0;
	rcu_read_unlock();
	return index;
}

/* Is the connection carried by another path than its own, which it may return to if that answers? */
static bool may_return(const struct swc_conn *conn)
{
	return conn->me < conn->peer && READ_ONCE(conn->via) != conn->path;
}

/**
 * swc_path_to_ask() - is there a path that the connection should ask for?
 * @claimed: NULL, or set to whether no other connection asks for it before swc_path_asked(); all connections
 *	whose own path it is ask by themselves, before they return to it
 *
 * Return: its number; -1: there is none.
 */
int swc_path_to_ask(const struct swc_conn *conn, bool *claimed)
{
	u32 n = swc_net_npaths(conn->net, conn->net->params.rank_node[conn->peer]), i;

	if (claimed)
		*claimed = false;
	if (may_return(conn) && is_due(health_of(conn, conn->path)))
		return conn->path;
	for (i = 0; i < n; i++) {
		struct swc_path_health *h = health_of(conn, i);

		if (READ_ONCE(h->state) == SWC_PATH_WELL || !is_due(h) || !is_usable(conn, i) ||
		    (i == conn->path && may_return(conn)))
			continue;
		if (!claimed && !test_bit(SWC_PATH_F_ASKED, &h->flags))
			return i;
		if (claimed && !test_and_set_bit(SWC_PATH_F_ASKED, &h->flags)) {
			*claimed = true;
			return i;
		}
	}
	return -1;
}

/* What swc_path_to_ask() has found was asked for. */
void swc_path_asked(const struct swc_conn *conn, u16 path, bool claimed, bool answers)
{
	if (answers)
		swc_path_well(conn, path);
	else
		swc_path_failed(conn, path);
	if (claimed)
		clear_bit(SWC_PATH_F_ASKED, &health_of(conn, path)->flags);
}

/* An attempt by this path begins. Until there is an answer, those that are known to be well come first. */
void swc_path_tried(const struct swc_conn *conn, u16 path)
{
	struct swc_path_health *h = health_of(conn, path);

	WRITE_ONCE(h->tried, jiffies);
	if (READ_ONCE(h->state) == SWC_PATH_WELL)
		WRITE_ONCE(h->state, SWC_PATH_TRIED);
}

/*
 * What the path carried was lost, or nobody has answered by it. Many connections may lose it together: while
 * it is avoided already, that is no further failure.
 */
void swc_path_failed(const struct swc_conn *conn, u16 path)
{
	struct swc_path_health *h = health_of(conn, path);
	u32 failed = READ_ONCE(h->failed);

	if (time_after(jiffies, READ_ONCE(h->until) + msecs_to_jiffies(WELL_MS)))
		failed = 0;
	if (is_due(h)) {
		avoid_for(h, avoid_ms << min(failed, AVOID_MOST));
		WRITE_ONCE(h->failed, failed + 1);
	}
	WRITE_ONCE(h->tried, jiffies);
	WRITE_ONCE(h->state, SWC_PATH_LOST);
}

/* An attempt by this path was given up. Without any answer meanwhile, it has failed. */
void swc_path_given_up(const struct swc_conn *conn, u16 path)
{
	if (READ_ONCE(health_of(conn, path)->state) == SWC_PATH_TRIED)
		swc_path_failed(conn, path);
}

/* The peer has answered by it. */
void swc_path_well(const struct swc_conn *conn, u16 path)
{
	struct swc_path_health *h = health_of(conn, path);

	WRITE_ONCE(h->state, SWC_PATH_WELL);
	avoid_for(h, 0);
}
