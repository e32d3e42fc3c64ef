// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connecting: what the lower rank does, and events of the connection manager on both sides.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/sock.h>

#include "compat.h"
#include "rdma/rdma.h"

#define RESOLVE_MS	2000
/* A path whose peer takes longer to answer is not well. */
#define ANSWER_MS	500
/* An attempt to resume a connection may wait so long for TCP, at least; less than for the attempt. */
#define OPEN_MS		900
/* siw closes a connection by TCP on which it finds no request after ten seconds. */
#define REFUSAL_MS	15000
/* A request of iWARP, without data. */
#define MPA_REQUEST_BYTES	20
/* 0 to 7; but rxe takes 7 as for ever. */
#define RETRIES		6

/* With six retries: some eight seconds until a silent peer is given up. */
static unsigned int ack_timeout = 18;
module_param_named(rdma_ack_timeout, ack_timeout, uint, 0444);
MODULE_PARM_DESC(rdma_ack_timeout, "N: a device waits 4.096 us * 2^N for an ACK, seven times; 8 to 31 (default 18)");

unsigned int swc_rdma_resume_ms = 5000;
module_param_named(rdma_resume_ms, swc_rdma_resume_ms, uint, 0444);
MODULE_PARM_DESC(rdma_resume_ms, "milliseconds in which a connection must continue on another path, 100 to 600000 (default 5000)");

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

/* ------------------------------------------------------------------ siw */

/* Is the path's device here one of iWARP in software? */
static bool is_siw(const struct swc_conn *base, const struct swc_node_path *path)
{
	struct ib_device *ib = NULL;
	struct net_device *card;

	rcu_read_lock();
	card = dev_get_by_index_rcu(base->net->ns, swc_path_card(base->net, path));
	if (card)
		ib = ib_device_get_by_netdev(card, RDMA_DRIVER_SIW);
	rcu_read_unlock();
	if (ib)
		ib_device_put(ib);
	return ib;
}

/* A connection by TCP that a listener of siw is to close. */
struct refused {
	struct work_struct work;
	struct socket *sock;
};

/*
 * The listener must be the first to close: it takes the loss of a connection that it has not accepted yet for
 * one of its own socket. It closes what does not begin as iWARP does.
 */
static void await_refusal(struct work_struct *work)
{
	struct refused *refused = container_of(work, struct refused, work);
	u8 nothing[MPA_REQUEST_BYTES] = {};
	struct kvec vec = { .iov_base = nothing, .iov_len = sizeof(nothing) };
	struct msghdr send = {}, receive = {};

	if (kernel_sendmsg(refused->sock, &send, &vec, 1, sizeof(nothing)) == sizeof(nothing))
		kernel_recvmsg(refused->sock, &receive, &vec, 1, sizeof(nothing), 0);
	sock_release(refused->sock);
	kfree(refused);
}

static int connect_by_tcp(struct socket *sock, const struct swc_node_path *path, u32 ms)
{
	struct sockaddr *local = (struct sockaddr *)path->local, *remote = (struct sockaddr *)path->remote;
	int bytes = local->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

	/* With a reference on its namespace, which it may outlive the communicator by. */
	lock_sock(sock->sk);
	if (!sock->sk->sk_net_refcnt)
		swc_compat_hold_net(sock->sk);
	release_sock(sock->sk);
	sock->sk->sk_sndtimeo = msecs_to_jiffies(ms);
	sock->sk->sk_rcvtimeo = msecs_to_jiffies(REFUSAL_MS);
	return kernel_bind(sock, SWC_SOCKADDR(local), bytes) ?:
	       kernel_connect(sock, SWC_SOCKADDR(remote), bytes, 0);
}

static int ask_by_tcp(const struct swc_conn *base, const struct swc_node_path *path, u32 ms)
{
	const struct sockaddr *local = (const void *)path->local;
	struct refused *refused = kmalloc(sizeof(*refused), GFP_NOIO);
	int ret = -ENOMEM;

	if (!refused)
		return ret;
	ret = sock_create_kern(base->net->ns, local->sa_family, SOCK_STREAM, IPPROTO_TCP, &refused->sock);
	if (ret) {
		kfree(refused);
		return ret;
	}
	ret = connect_by_tcp(refused->sock, path, ms);
	if (ret) {
		sock_release(refused->sock);
		kfree(refused);
		return ret;
	}
	INIT_WORK(&refused->work, await_refusal);
	queue_work(swc_free_wq, &refused->work);
	return 0;
}

/*
 * Could the path carry an attempt? siw waits for TCP when it connects, for minutes if nobody answers, and the
 * connection manager does nothing else meanwhile, for any connection of this node. So where a path may be
 * lost, TCP is asked before.
 */
static bool is_open(const struct swc_conn *base, const struct swc_node_path *path, u32 ms)
{
	int ret;

	if (!is_siw(base, path))
		return true;
	ret = ask_by_tcp(base, path, ms);
	return !ret || ret == -ECONNREFUSED;
}

/* ------------------------------------------------------------------ attempts */

/* Longer and longer, as attempts are (net/resume.c). */
static u32 open_ms(const struct swc_conn *base)
{
	return max_t(u32, OPEN_MS, jiffies_to_msecs(jiffies - base->lost_at) / 3);
}

/* Transport operation. */
void swc_cm_connect(struct swc_conn *base)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(base);
	const struct swc_node_path *path = swc_conn_path(base);
	struct rdma_cm_id *id;
	int ret;

	if (test_bit(SWC_CONN_F_STARTED, &base->flags) && !is_open(base, path, open_ms(base))) {
		swc_conn_retry(base, "it does not answer by TCP", -ETIMEDOUT);
		return;
	}
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

/**
 * struct answer - whether a peer answers
 * @arrived: it does, or it is known not to
 * @good: it does
 * @over: nobody waits any more; under the lock of the handler
 * @pd, @cq: of the queue pair; on iWARP
 */
struct answer {
	struct completion arrived;
	bool good;
	bool over;
	struct ib_pd *pd;
	struct ib_cq *cq;
};

/* Devices of iWARP connect a queue pair, or nothing. */
static int create_unused_qp(struct answer *answer, struct rdma_cm_id *id)
{
	struct ib_qp_init_attr init = {
		.sq_sig_type = IB_SIGNAL_REQ_WR, .qp_type = IB_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ib_cq_init_attr attr = { .cqe = 2 };

	answer->pd = ib_alloc_pd(id->device, 0);
	if (IS_ERR(answer->pd))
		return PTR_ERR(answer->pd);
	answer->cq = ib_create_cq(id->device, NULL, NULL, NULL, &attr);
	if (IS_ERR(answer->cq))
		return PTR_ERR(answer->cq);
	init.send_cq = answer->cq;
	init.recv_cq = answer->cq;
	return rdma_create_qp(id, answer->pd, &init);
}

static int ask_peer(struct answer *answer, struct rdma_cm_id *id)
{
	/* Where there is no queue pair, its number is not used. */
	struct rdma_conn_param param = { .qp_num = 1 };
	int ret = 0;

	if (answer->over)
		return -ETIMEDOUT;
	if (rdma_protocol_iwarp(id->device, id->port_num))
		ret = create_unused_qp(answer, id);
	return ret ?: rdma_connect_locked(id, &param);
}

/* Events of a request that the peer's listener refuses, because there is nothing in it. */
static int answer_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct answer *answer = id->context;
	int ret = -EIO;

	if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED)
		ret = rdma_resolve_route(id, ANSWER_MS);
	else if (event->event == RDMA_CM_EVENT_ROUTE_RESOLVED)
		ret = ask_peer(answer, id);
	if (!ret)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		answer->good = true;
	complete(&answer->arrived);
	return 0;
}

/* No handler runs any more when this returns. */
static void end_asking(struct answer *answer, struct rdma_cm_id *id)
{
	rdma_lock_handler(id);
	answer->over = true;
	rdma_unlock_handler(id);
	if (id->qp)
		rdma_destroy_qp(id);
	if (!IS_ERR_OR_NULL(answer->cq))
		ib_destroy_cq(answer->cq);
	if (!IS_ERR_OR_NULL(answer->pd))
		ib_dealloc_pd(answer->pd);
	/* Only then may the device go. */
	rdma_destroy_id(id);
}

/* Transport operation. */
bool swc_cm_answers(const struct swc_conn *base, const struct swc_node_path *path)
{
	struct answer answer = {};
	struct rdma_cm_id *id;

	if (!is_open(base, path, ANSWER_MS))
		return false;
	init_completion(&answer.arrived);
	id = rdma_create_id(base->net->ns, answer_handler, &answer, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return false;
	if (!rdma_resolve_addr(id, (struct sockaddr *)path->local, (const struct sockaddr *)path->remote,
			       ANSWER_MS))
		wait_for_completion_timeout(&answer.arrived, msecs_to_jiffies(ANSWER_MS));
	end_asking(&answer, id);
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
