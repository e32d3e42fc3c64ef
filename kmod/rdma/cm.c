// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connecting: what the lower rank does, and events of the connection manager on both sides.
 */
#include <linux/module.h>

#include "rdma/rdma.h"

#define RESOLVE_MS	2000
/* A path whose peer takes longer to answer is not well. */
#define ANSWER_MS	500
/* 0 to 7; but rxe takes 7 as for ever. */
#define RETRIES		6

/* With six retries: some eight seconds until a silent peer is given up. */
static unsigned int ack_timeout = 18;
module_param_named(rdma_ack_timeout, ack_timeout, uint, 0444);
MODULE_PARM_DESC(rdma_ack_timeout, "let 4.096 us << this pass without an answer, seven times; 8 to 31 (default 18)");

unsigned int swc_rdma_resume_ms = 5000;
module_param_named(rdma_resume_ms, swc_rdma_resume_ms, uint, 0444);
MODULE_PARM_DESC(rdma_resume_ms, "time to go on by another path, 100 to 600000 (default 5000)");

int swc_cm_check_parameters(void)
{
	return swc_param_check("rdma_ack_timeout", ack_timeout, 8, 31) ?:
	       swc_param_check("rdma_resume_ms", swc_rdma_resume_ms, 100, 600000);
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

/* ------------------------------------------------------------------ attempts */

/* Transport operation. */
void swc_cm_connect(struct swc_conn *base)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(base);
	const struct swc_node_path *path = swc_conn_path(base);
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(base->net->ns, swc_cm_handler, conn, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		swc_conn_retry(base, "no connection identifier", PTR_ERR(id));
		return;
	}
	conn->id = id;
	ret = rdma_resolve_addr(id, (struct sockaddr *)path->local, (const struct sockaddr *)path->remote,
				RESOLVE_MS);
	WRITE_ONCE(base->card, id->route.addr.dev_addr.bound_dev_if ?: swc_path_card(base->net, path));
	if (ret)
		swc_conn_retry(base, ret == -ENODEV ? "no RDMA device has the address to it: rdma link" :
				     "its address cannot be resolved from here", ret);
}

static int connect(struct swc_rdma_conn *conn, struct rdma_cm_id *id)
{
	struct swc_wire_hello *h = &conn->base.hello;
	struct rdma_conn_param param = {
		.private_data = h, .private_data_len = sizeof(*h),
		.responder_resources = 1, .initiator_depth = 1,
		.retry_count = RETRIES, .rnr_retry_count = 7,
	};
	int ret = swc_qp_setup(conn, id);

	if (ret)
		return ret;
	swc_reply_hello(&conn->base);
	return rdma_connect_locked(id, &param);
}

/* ------------------------------------------------------------------ does a path work? */

struct answer {
	struct completion arrived;
	bool good;
};

/* Events of a request that the peer's listener refuses, because there is nothing in it. */
static int answer_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	/* There is no queue pair; its number is not used. */
	struct rdma_conn_param param = { .qp_num = 1 };
	struct answer *answer = id->context;
	int ret = -EIO;

	if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED)
		ret = rdma_resolve_route(id, ANSWER_MS);
	else if (event->event == RDMA_CM_EVENT_ROUTE_RESOLVED)
		ret = rdma_connect_locked(id, &param);
	if (!ret)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		answer->good = true;
	complete(&answer->arrived);
	return 0;
}

/* Transport operation. */
bool swc_cm_answers(const struct swc_conn *base, const struct swc_node_path *path)
{
	struct answer answer = {};
	struct rdma_cm_id *id;

	init_completion(&answer.arrived);
	id = rdma_create_id(base->net->ns, answer_handler, &answer, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return false;
	if (!rdma_resolve_addr(id, (struct sockaddr *)path->local, (const struct sockaddr *)path->remote,
			       ANSWER_MS))
		wait_for_completion_timeout(&answer.arrived, msecs_to_jiffies(ANSWER_MS));
	/* No handler runs any more when this returns. */
	rdma_destroy_id(id);
	return answer.good;
}

/* ------------------------------------------------------------------ replies */

/* On iWARP, drivers report a refusal by a peer as a reset, with its data. */
static const struct swc_wire_reject *reject_data(struct rdma_cm_id *id, struct rdma_cm_event *event, u8 *len)
{
	if (!rdma_protocol_iwarp(id->device, id->port_num))
		return rdma_consumer_reject_data(id, event, len);
	*len = event->param.conn.private_data_len;
	return event->param.conn.private_data;
}

static void rejected(struct swc_conn *conn, struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	u8 len = 0;
	const struct swc_wire_reject *r = reject_data(id, event, &len);

	if (!swc_reply_refused(conn, r, len, event->status))
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
			swc_conn_retry(&conn->base, "no route to it", ret);
		return 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = connect(conn, id);
		if (ret)
			swc_conn_retry(&conn->base,
				       ret == -ENODEV ? "the RDMA device cannot be used: see dmesg" :
				       "cannot connect to it", ret);
		return 0;
	case RDMA_CM_EVENT_ESTABLISHED:
		/* At the higher rank AUTH makes it live. */
		if (conn->base.me < conn->base.peer)
			swc_reply_accepted(&conn->base, event->param.conn.private_data,
					   event->param.conn.private_data_len);
		return 0;
	case RDMA_CM_EVENT_REJECTED:
		rejected(&conn->base, id, event);
		return 0;
	case RDMA_CM_EVENT_UNREACHABLE:
		/*
		 * On a live connection this only means that the neighbour is asked for its address again.
		 * If the address has changed or there is no answer, the device runs out of attempts. The
		 * higher rank waits for AUTH.
		 */
		if (conn->base.me > conn->base.peer || READ_ONCE(conn->base.state) == SWC_CONN_LIVE)
			return 0;
		fallthrough;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		swc_conn_retry(&conn->base, rdma_event_msg(event->event), event->status);
		return 0;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (conn->base.resumable)
			swc_conn_retry(&conn->base, rdma_event_msg(event->event), -ENODEV);
		else
			swc_conn_fail(&conn->base, -ENODEV, "%s", rdma_event_msg(event->event));
		return 0;
	default:
		return 0;
	}
}
