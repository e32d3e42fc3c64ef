// SPDX-License-Identifier: GPL-2.0-only
/*
 * Listeners, and connection requests from peers, which net/request.c checks.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "rdma/rdma.h"

#define BACKLOG		128

unsigned int swc_rdma_port = 18574;
module_param_named(rdma_port, swc_rdma_port, uint, 0444);
MODULE_PARM_DESC(rdma_port, "port that other nodes connect to (default 18574)");

int swc_rdma_listen_check_parameters(void)
{
	return swc_param_check("rdma_port", swc_rdma_port, 1, U16_MAX);
}

/* ------------------------------------------------------------------ requests */

static int accept(struct swc_rdma_conn *conn, struct rdma_cm_id *id, const struct swc_wire_hello *h)
{
	struct rdma_conn_param param = {
		.private_data = &conn->base.accept, .private_data_len = sizeof(conn->base.accept),
		.responder_resources = 1, .initiator_depth = 1,
		.rnr_retry_count = 7,
	};
	const struct rdma_addr *addr = &id->route.addr;
	int ret;

	WRITE_ONCE(conn->base.via,
		   swc_path_by_address(&conn->base, (const struct sockaddr *)&addr->src_addr,
				       (const struct sockaddr *)&addr->dst_addr));
	swc_request_accept(&conn->base, h);
	ret = swc_cm_set_ack_timeout(id);
	if (!ret)
		ret = swc_qp_setup(conn, id);
	return ret ?: rdma_accept(id, &param);
}

/* Transport operation. */
void swc_rdma_listen_adopt(struct swc_conn *base, void *request)
{
	struct rdma_cm_id *id = request;

	id->context = swc_rdma_conn(base);
	id->event_handler = swc_cm_handler;
	swc_rdma_conn(base)->id = id;
}

static int handle_request(struct swc_rdma_listener *l, struct rdma_cm_id *id,
			  const struct rdma_conn_param *param)
{
	const struct swc_wire_hello *h = param->private_data;
	struct swc_wire_reject reject;
	struct swc_conn *conn;
	int ret;

	conn = swc_request(&l->base, h, param->private_data_len, id, &reject);
	if (!conn) {
		rdma_reject(id, &reject, sizeof(reject), IB_CM_REJ_CONSUMER_DEFINED);
		return -ECONNREFUSED;	/* makes the connection manager destroy the id */
	}
	ret = accept(swc_rdma_conn(conn), id, h);
	if (ret) {
		pr_debug("rank %u cannot accept rank %u: %d\n", conn->me, conn->peer, ret);
		rdma_reject(id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
		swc_conn_retry(conn, "cannot accept", ret);
	} else {
		swc_request_expect_auth(conn);
	}
	swc_request_put(conn);
	return 0;
}

/* ------------------------------------------------------------------ listeners */

static int handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return handle_request(id->context, id, &event->param.conn);
	return 0;
}

static struct rdma_cm_id *listen_on(struct swc_rdma_listener *l, struct net *ns, struct sockaddr *addr)
{
	struct rdma_cm_id *id = rdma_create_id(ns, handler, l, RDMA_PS_TCP, IB_QPT_RC);
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

/* Transport operation. */
struct swc_listener *swc_rdma_listen_start(const struct swc_transport *transport, struct net *ns)
{
	struct sockaddr_in in4 = { .sin_family = AF_INET, .sin_port = htons(swc_rdma_port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(swc_rdma_port) };
	struct swc_rdma_listener *l = kzalloc(sizeof(*l), GFP_KERNEL);
	int ret;

	if (!l)
		return ERR_PTR(-ENOMEM);
	l->base.transport = transport;
	l->base.ns = ns;
	l->id4 = listen_on(l, ns, (struct sockaddr *)&in4);
	if (IS_ERR(l->id4)) {
		ret = PTR_ERR(l->id4);
		pr_err("cannot listen on port %u (%d): is it in use? Load the module with rdma_port=\n",
		       swc_rdma_port, ret);
		kfree(l);
		return ERR_PTR(ret);
	}
	/* A kernel without IPv6 has only the other. */
	l->id6 = listen_on(l, ns, (struct sockaddr *)&in6);
	if (IS_ERR(l->id6))
		l->id6 = NULL;
	return &l->base;
}

/* Transport operation. */
void swc_rdma_listen_stop(struct swc_listener *listener)
{
	struct swc_rdma_listener *l = container_of(listener, struct swc_rdma_listener, base);

	if (l->id6)
		rdma_destroy_id(l->id6);
	rdma_destroy_id(l->id4);
	kfree(l);
}
