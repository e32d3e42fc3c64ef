// SPDX-License-Identifier: GPL-2.0-only
/*
 * Listeners, and connection requests from peers. There is one listener per network namespace that has
 * communicators of several nodes. A request is checked against the communicator it names, and accepted or
 * refused with a reason; the connection is live when the peer's AUTH has arrived.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>

#include "net/auth.h"
#include "rdma/rdma.h"
#include "net/tombstone.h"

#define BACKLOG		128

/* So long an accepted peer may take to send AUTH, at least; only tests change it. */
u32 swc_auth_ms = 5000;

/* Outside of all locks that the handler takes: ending a listener waits for its handler. */
static DEFINE_MUTEX(listeners_mutex);
static LIST_HEAD(listeners);

static unsigned int port = 18574;
module_param_named(rdma_port, port, uint, 0444);
MODULE_PARM_DESC(rdma_port, "port that other nodes connect to (default 18574)");

int swc_listen_check_parameters(void)
{
	if (!port || port > U16_MAX) {
		pr_err("rdma_port=%u: give 1 to %u\n", port, U16_MAX);
		return -EINVAL;
	}
	return 0;
}

u32 swc_listen_port(void)
{
	return port;
}

/* ------------------------------------------------------------------ requests */

/**
 * struct refusal - why a request is refused
 * @reason: enum swc_wire_reason
 * @known: the refusal is authenticated, with @end.refusal_key
 * @end: how the communicator has ended, if @reason is SWC_WIRE_ENDED
 */
struct refusal {
	int reason;
	bool known;
	struct swc_tombstone end;
};

/* The connection that is asked for; NULL: refused. */
static struct swc_rdma_conn *find_conn(const struct swc_wire_hello *h, struct swc_rdma_net *net,
				       struct refusal *no)
{
	u32 src = le16_to_cpu(h->src), dst = le16_to_cpu(h->dst);
	const struct swc_net_params *params = &net->base.params;
	struct swc_rdma_conn *conn;
	u8 mac[SWC_WIRE_MAC];
	bool ended;

	swc_auth_hello(&net->base, h, mac);
	no->reason = SWC_WIRE_DENIED;
	if (!swc_auth_equal(mac, h->mac))
		return NULL;
	ended = swc_tombstone_of(&net->base, &no->end);
	no->known = true;
	/* Even if the communicator has ended: this may be why. */
	no->reason = SWC_WIRE_BAD;
	if (h->places != net->base.places || dst >= params->nranks)
		return NULL;
	no->reason = SWC_WIRE_ENDED;
	if (ended)
		return NULL;
	/* One kernel may have several nodes of a communicator: the right one may come yet, or be gone. */
	if (!swc_net_is_local(&net->base, dst)) {
		if (!swc_tombstone_find(h->name, &net->base, dst, &no->end))
			no->reason = SWC_WIRE_UNKNOWN;
		return NULL;
	}
	if (test_bit(dst, net->left))
		return NULL;
	no->reason = SWC_WIRE_BAD;
	if (swc_net_is_local(&net->base, src) ||
	    h->path >= swc_net_npaths(&net->base, params->rank_node[src]))
		return NULL;
	no->reason = SWC_WIRE_BUSY;
	conn = swc_net_find_conn(net, dst, src, h->channel, h->path);
	if (PTR_ERR(conn) == -EDQUOT)
		no->reason = SWC_WIRE_QUOTA;
	return IS_ERR(conn) ? NULL : conn;
}

static int refuse(struct rdma_cm_id *id, const struct swc_wire_hello *h, const struct refusal *no)
{
	struct swc_wire_reject r = {
		.magic = cpu_to_le32(SWC_WIRE_MAGIC),
		.version = cpu_to_le16(SWC_WIRE_VERSION),
		.reason = cpu_to_le16(no->reason),
	};

	if (no->reason == SWC_WIRE_ENDED) {
		r.error = cpu_to_le32(-no->end.error);
		r.culprit = cpu_to_le32(no->end.culprit + 1);
	}
	if (no->known)
		swc_auth_refusal(no->end.refusal_key, h, &r, r.mac);
	swc_stat_inc(SWC_STAT_CONNS_REFUSED);
	rdma_reject(id, &r, sizeof(r), IB_CM_REJ_CONSUMER_DEFINED);
	return -ECONNREFUSED;	/* makes the connection manager destroy the id */
}

static int accept(struct swc_rdma_conn *conn, struct rdma_cm_id *id, const struct swc_wire_hello *h)
{
	struct swc_wire_accept *a = &conn->accept;
	struct rdma_conn_param param = {
		.private_data = a, .private_data_len = sizeof(*a),
		.responder_resources = 1, .initiator_depth = 1,
		.rnr_retry_count = 7,
	};
	int ret;

	conn->hello = *h;
	*a = (struct swc_wire_accept){
		.magic = cpu_to_le32(SWC_WIRE_MAGIC),
		.version = cpu_to_le16(SWC_WIRE_VERSION),
		.rx_bufs = cpu_to_le16(rx_bufs_param),
		.rx_buf_kib = cpu_to_le16(rx_buf_kib_param),
	};
	get_random_bytes(a->nonce, sizeof(a->nonce));
	swc_auth_accept(&conn->net->base, h, a, a->mac);
	swc_cm_set_peer_rx_bufs(conn, h->rx_bufs, h->rx_buf_kib);
	ret = swc_cm_set_ack_timeout(id);
	if (!ret)
		ret = swc_qp_setup(conn, id);
	return ret ?: rdma_accept(id, &param);
}

/* A peer that has died does not send AUTH: be ready for its next attempt, or find that there is none. */
static void expect_auth(struct swc_rdma_conn *conn)
{
	u32 ms = max_t(u32, swc_cm_answer_ms(5), swc_auth_ms);

	spin_lock(&conn->lock);
	if (conn->state == SWC_CONN_CONNECTING)
		queue_delayed_work(swc_conn_wq(conn), &conn->connect_work, msecs_to_jiffies(ms));
	spin_unlock(&conn->lock);
}

/*
 * Give the connection to the request if it waits for one. A request that is not newer than those before
 * may be a replay. A newer one can only come from the peer: it has given up the attempt that still waits
 * for its AUTH, or never began that, which then is a replay. In both cases that attempt ends, and the
 * peer's next request finds the connection idle.
 */
static bool take_request(struct swc_rdma_conn *conn, struct rdma_cm_id *id, const struct swc_wire_hello *h)
{
	u32 attempt = le32_to_cpu(h->attempt);
	bool newer, taken = false;

	spin_lock(&conn->lock);
	newer = attempt > conn->attempt;
	if (newer) {
		conn->attempt = attempt;
		taken = swc_conn_set_state(conn, SWC_CONN_IDLE, SWC_CONN_CONNECTING);
	}
	if (taken) {
		/* The connection owns the id: whoever closes the connection must find it. */
		id->context = conn;
		id->event_handler = swc_cm_handler;
		conn->id = id;
	} else if (newer && conn->state == SWC_CONN_CONNECTING) {
		mod_delayed_work(swc_conn_wq(conn), &conn->connect_work, 0);
	}
	spin_unlock(&conn->lock);
	return taken;
}

static int handle_request(struct swc_rdma_listener *l, struct rdma_cm_id *id,
			  const struct rdma_conn_param *param)
{
	const struct swc_wire_hello *h = param->private_data;
	struct swc_rdma_conn *conn;
	struct refusal no = {};
	struct swc_net *net;
	int ret;

	no.reason = h ? swc_wire_hello_check(h, param->private_data_len) : SWC_WIRE_BAD;
	if (no.reason)
		return refuse(id, h, &no);
	net = swc_net_ops->find(l->base.transport, h->name, le16_to_cpu(h->dst));
	/* A communicator of another network namespace is not visible here. */
	if (net && swc_rdma_net(net)->listener->ns != id->route.addr.dev_addr.net) {
		swc_net_ops->put(net->params.comm);
		net = NULL;
	}
	if (!net) {
		no.known = swc_tombstone_find(h->name, NULL, 0, &no.end);
		no.reason = no.known ? SWC_WIRE_ENDED : SWC_WIRE_UNKNOWN;
		return refuse(id, h, &no);
	}
	conn = find_conn(h, swc_rdma_net(net), &no);
	swc_net_ops->put(net->params.comm);
	if (!conn)
		return refuse(id, h, &no);
	if (!take_request(conn, id, h)) {
		swc_rdma_conn_put(conn);
		no.reason = SWC_WIRE_BUSY;
		return refuse(id, h, &no);
	}
	ret = accept(conn, id, h);
	if (ret) {
		pr_debug("rank %u cannot accept rank %u: %d\n", conn->me, conn->peer, ret);
		rdma_reject(id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
		swc_conn_retry(conn, "cannot accept", ret);
	} else {
		expect_auth(conn);
	}
	swc_rdma_conn_put(conn);
	return 0;
}

/* ------------------------------------------------------------------ listeners */

static int handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return handle_request(id->context, id, &event->param.conn);
	return 0;
}

static struct rdma_cm_id *listen_on(struct swc_rdma_listener *l, struct sockaddr *addr)
{
	struct rdma_cm_id *id = rdma_create_id(l->ns, handler, l, RDMA_PS_TCP, IB_QPT_RC);
	int ret;

	if (IS_ERR(id))
		return id;
	ret = addr->sa_family == AF_INET6 ? rdma_set_afonly(id, 1) : 0;
	if (!ret)
		ret = rdma_bind_addr(id, addr);
	if (!ret)
		ret = rdma_listen(id, BACKLOG);
	if (!ret)
		return id;
	rdma_destroy_id(id);
	return ERR_PTR(ret);
}

static struct swc_rdma_listener *listener_new(const struct swc_transport *transport, struct net *ns)
{
	struct sockaddr_in in4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct swc_rdma_listener *l = kzalloc(sizeof(*l), GFP_KERNEL);
	int ret;

	if (!l)
		return ERR_PTR(-ENOMEM);
	l->base.transport = transport;
	l->ns = ns;
	l->users = 1;
	l->id4 = listen_on(l, (struct sockaddr *)&in4);
	if (IS_ERR(l->id4)) {
		ret = PTR_ERR(l->id4);
		pr_err("cannot listen on port %u (%d): is it in use? Load the module with rdma_port=\n",
		       port, ret);
		kfree(l);
		return ERR_PTR(ret);
	}
	/* A kernel without IPv6 has only the other. */
	l->id6 = listen_on(l, (struct sockaddr *)&in6);
	if (IS_ERR(l->id6))
		l->id6 = NULL;
	get_net(ns);
	list_add(&l->node, &listeners);
	return l;
}

/**
 * swc_listen_start() - accept connections in the caller's network namespace
 * @transport: for the nets that use the listener
 *
 * Return: to be passed to swc_listen_stop(); -EADDRINUSE if the port is taken; -ENOMEM.
 */
struct swc_listener *swc_listen_start(const struct swc_transport *transport)
{
	struct net *ns = current->nsproxy->net_ns;
	struct swc_rdma_listener *l;

	mutex_lock(&listeners_mutex);
	list_for_each_entry(l, &listeners, node) {
		if (net_eq(l->ns, ns)) {
			l->users++;
			goto out;
		}
	}
	l = listener_new(transport, ns);
out:
	mutex_unlock(&listeners_mutex);
	return IS_ERR(l) ? ERR_CAST(l) : &l->base;
}

void swc_listen_stop(struct swc_listener *listener)
{
	struct swc_rdma_listener *l = container_of(listener, struct swc_rdma_listener, base);

	mutex_lock(&listeners_mutex);
	if (!--l->users) {
		list_del(&l->node);
		if (l->id6)
			rdma_destroy_id(l->id6);
		rdma_destroy_id(l->id4);
		put_net(l->ns);
		kfree(l);
	}
	mutex_unlock(&listeners_mutex);
}
