// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connecting: what the lower rank does, and events of the connection manager on both sides. An attempt that
 * fails is repeated until the communicator's deadline, because nodes start at different times.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/random.h>

#include "net/auth.h"
#include "rdma/rdma.h"

#define RESOLVE_MS	2000
/* 0 to 7; but rxe takes 7 as for ever. */
#define RETRIES		6

/* With six retries: some eight seconds until a silent peer is given up. */
static unsigned int ack_timeout = 18;
module_param_named(rdma_ack_timeout, ack_timeout, uint, 0444);
MODULE_PARM_DESC(rdma_ack_timeout, "let 4.096 us << this pass without an answer, seven times; 8 to 31 (default 18)");

int swc_cm_check_parameters(void)
{
	if (ack_timeout < 8 || ack_timeout > 31) {
		pr_err("rdma_ack_timeout=%u: give 8 to 31\n", ack_timeout);
		return -EINVAL;
	}
	return 0;
}

/* How long a device waits for an answer to so many attempts. */
u32 swc_cm_answer_ms(u32 attempts)
{
	return DIV_ROUND_UP_ULL(attempts * (4096ull << ack_timeout), NSEC_PER_MSEC);
}

int swc_cm_set_ack_timeout(struct rdma_cm_id *id)
{
	return rdma_set_ack_timeout(id, ack_timeout);
}

/* The peer's receive buffers, by its part of the handshake. */
void swc_cm_set_peer_rx_bufs(struct swc_rdma_conn *conn, __le16 rx_bufs, __le16 rx_buf_kib)
{
	conn->peer_rx_bufs = le16_to_cpu(rx_bufs);
	conn->peer_rx_buf_bytes = le16_to_cpu(rx_buf_kib) << 10;
	conn->credits = conn->peer_rx_bufs;
}

/* ------------------------------------------------------------------ attempts */

static void resolve(struct swc_rdma_conn *conn)
{
	const struct swc_net *net = &conn->net->base;
	const struct swc_node_path *path;
	struct rdma_cm_id *id;
	int ret;

	path = swc_net_path(net, net->params.rank_node[conn->peer], conn->path);
	id = rdma_create_id(conn->net->listener->ns, swc_cm_handler, conn, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		swc_conn_retry(conn, "no connection identifier", PTR_ERR(id));
		return;
	}
	conn->id = id;
	ret = rdma_resolve_addr(id, (struct sockaddr *)path->local, (const struct sockaddr *)path->remote,
				RESOLVE_MS);
	WRITE_ONCE(conn->card, id->route.addr.dev_addr.bound_dev_if);
	if (ret)
		swc_conn_retry(conn, ret == -ENODEV ? "no RDMA device has the address to it: rdma link" :
				     "its address cannot be resolved from here", ret);
}

/*
 * Work item: a live connection has been dropped, or an attempt has failed, or an accepted peer has not
 * sent AUTH in time. The lower rank starts a new attempt; the other gets ready for the peer's next one.
 */
void swc_cm_connect_work(struct work_struct *work)
{
	struct swc_rdma_conn *conn = container_of(work, struct swc_rdma_conn, connect_work.work);
	bool lower = conn->me < conn->peer, again, dropped;
	const char *why;

	spin_lock(&conn->lock);
	why = conn->why;
	dropped = conn->state == SWC_CONN_LIVE && test_bit(SWC_CONN_F_DROPPED, &conn->flags);
	again = swc_conn_set_state(conn, SWC_CONN_CONNECTING, SWC_CONN_RESETTING);
	spin_unlock(&conn->lock);
	if (dropped)
		swc_conn_fail(conn, -ECONNRESET, "it has disconnected (%s)", why);
	if (!again)
		return;
	swc_qp_teardown(conn);
	spin_lock(&conn->lock);
	again = swc_conn_set_state(conn, SWC_CONN_RESETTING, lower ? SWC_CONN_CONNECTING : SWC_CONN_IDLE);
	spin_unlock(&conn->lock);
	if (again && lower)
		resolve(conn);
	else
		wake_up_all(&conn->net->abort_wq);	/* no peer to notify of an abort */
}

static int connect(struct swc_rdma_conn *conn, struct rdma_cm_id *id)
{
	struct swc_wire_hello *h = &conn->hello;
	struct rdma_conn_param param = {
		.private_data = h, .private_data_len = sizeof(*h),
		.responder_resources = 1, .initiator_depth = 1,
		.retry_count = RETRIES, .rnr_retry_count = 7,
	};
	int ret = swc_qp_setup(conn, id);

	if (ret)
		return ret;
	*h = (struct swc_wire_hello){
		.magic = cpu_to_le32(SWC_WIRE_MAGIC),
		.version = cpu_to_le16(SWC_WIRE_VERSION),
		.channel = conn->channel,
		.path = conn->path,
		.places = conn->net->base.places,
		.src = cpu_to_le16(conn->me),
		.dst = cpu_to_le16(conn->peer),
		.attempt = cpu_to_le32(++conn->attempt),
		.rx_bufs = cpu_to_le16(rx_bufs_param),
		.rx_buf_kib = cpu_to_le16(rx_buf_kib_param),
	};
	memcpy(h->name, conn->net->base.name, SWC_WIRE_NAME);
	get_random_bytes(h->nonce, sizeof(h->nonce));
	swc_auth_hello(&conn->net->base, h, h->mac);
	return rdma_connect_locked(id, &param);
}

/* ------------------------------------------------------------------ replies */

/* The peer has accepted. */
static void established(struct swc_rdma_conn *conn, const struct rdma_conn_param *param)
{
	const struct swc_wire_accept *a = param->private_data;
	u8 mac[SWC_WIRE_MAC];
	int reason;

	/* At the higher rank AUTH makes it live. */
	if (conn->me > conn->peer)
		return;
	reason = swc_wire_accept_check(a, param->private_data_len);
	if (!reason) {
		swc_auth_accept(&conn->net->base, &conn->hello, a, mac);
		reason = swc_auth_equal(mac, a->mac) ? 0 : SWC_WIRE_DENIED;
	}
	/* Anybody can forge an answer, the peer's may follow. */
	if (reason) {
		swc_conn_retry(conn, "its answer cannot be authenticated", reason);
		return;
	}
	conn->accept = *a;
	swc_cm_set_peer_rx_bufs(conn, a->rx_bufs, a->rx_buf_kib);
	spin_lock(&conn->lock);
	swc_conn_pend(conn, SWC_PEND_AUTH);
	spin_unlock(&conn->lock);
	swc_conn_go_live(conn);
}

static const char * const reasons[SWC_WIRE_REASON_NR] = {
	[SWC_WIRE_UNKNOWN] = "there is no such communicator there, or not any more",
	[SWC_WIRE_BUSY] = "it is busy",
	[SWC_WIRE_VERSION_DIFFERS] =
		"it speaks another version of the protocol: load the same module on all nodes",
	[SWC_WIRE_BAD] = "it found the request invalid: do all ranks have the same table of nodes?",
	[SWC_WIRE_DENIED] = "it does not believe that we know the communicator's id",
	[SWC_WIRE_ENDED] = "the communicator has ended there",
	[SWC_WIRE_QUOTA] = "its user may have no more connections or memory: see swingctl status there",
};

/* The communicator has ended there: the culprit there is the culprit here. */
static void peer_ended(struct swc_rdma_conn *conn, const struct swc_wire_reject *r)
{
	u32 error = le32_to_cpu(r->error), culprit = le32_to_cpu(r->culprit);
	char text[SWC_TEXT_BYTES];

	if (error && error < 512 && culprit && culprit <= conn->net->base.params.nranks) {
		scnprintf(text, sizeof(text), "rank %u: connection with rank %u: %s; rank %u was at fault",
			  conn->me, conn->peer, reasons[SWC_WIRE_ENDED], culprit - 1);
		swc_net_ops->peer_lost(conn->comm, -(int)error, culprit - 1, swc_net_oldest(conn->net), text);
	}
	swc_conn_fail(conn, -ECONNRESET, "%s", reasons[SWC_WIRE_ENDED]);
}

/* Only a member can refuse for good: what anybody can forge must only delay. */
static bool is_authentic(const struct swc_rdma_conn *conn, const struct swc_wire_reject *r)
{
	u8 mac[SWC_WIRE_MAC];

	swc_auth_refusal(conn->net->base.refusal_key, &conn->hello, r, mac);
	return swc_auth_equal(mac, r->mac);
}

static void rejected(struct swc_rdma_conn *conn, struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	u8 len = 0;
	const struct swc_wire_reject *r = rdma_consumer_reject_data(id, event, &len);
	u32 reason = 0;

	if (r && len >= sizeof(*r) && le32_to_cpu(r->magic) == SWC_WIRE_MAGIC)
		reason = le16_to_cpu(r->reason);
	if (reason == SWC_WIRE_ENDED && is_authentic(conn, r))
		peer_ended(conn, r);
	else if (reason == SWC_WIRE_BAD && is_authentic(conn, r))
		swc_conn_fail(conn, -EPROTO, "%s", reasons[reason]);
	else if (reason == SWC_WIRE_VERSION_DIFFERS)
		swc_conn_retry(conn, reasons[reason], le16_to_cpu(r->version));
	else if (reason && reason < SWC_WIRE_REASON_NR)
		swc_conn_retry(conn, reasons[reason], event->status);
	else
		swc_conn_retry(conn, rdma_reject_msg(id, event->status), event->status);
}

/* ------------------------------------------------------------------ events */

/* Events of a connection's id; also of one that was accepted (listen.c). */
int swc_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct swc_rdma_conn *conn = id->context;
	int ret;

	/* The connection is being taken apart. */
	if (!conn)
		return 0;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		swc_cm_set_ack_timeout(id);
		ret = rdma_resolve_route(id, RESOLVE_MS);
		if (ret)
			swc_conn_retry(conn, "no route to it", ret);
		return 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = connect(conn, id);
		if (ret)
			swc_conn_retry(conn, ret == -ENODEV ? "the RDMA device cannot be used: see dmesg" :
					     "cannot connect to it", ret);
		return 0;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(conn, &event->param.conn);
		return 0;
	case RDMA_CM_EVENT_REJECTED:
		rejected(conn, id, event);
		return 0;
	case RDMA_CM_EVENT_UNREACHABLE:
		/*
		 * On a live connection this only means that the neighbour is asked for its address again.
		 * If the address has changed or there is no answer, the device runs out of attempts. The
		 * higher rank waits for AUTH.
		 */
		if (conn->me > conn->peer || READ_ONCE(conn->state) == SWC_CONN_LIVE)
			return 0;
		fallthrough;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		swc_conn_retry(conn, rdma_event_msg(event->event), event->status);
		return 0;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		swc_conn_fail(conn, -ENODEV, "%s", rdma_event_msg(event->event));
		return 0;
	default:
		return 0;
	}
}
