// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA as a transport: the table of operations, and the order of loading and unloading.
 */
#include <linux/slab.h>

#include "rdma/rdma.h"

static int init(void)
{
	int ret;

	ret = swc_buffers_check_parameters();
	if (!ret)
		ret = swc_cm_check_parameters();
	if (!ret)
		ret = swc_rdma_listen_check_parameters();
	if (!ret)
		ret = swc_cq_init();
	if (ret)
		return ret;
	ret = swc_dev_init();
	if (ret)
		swc_cq_exit();
	return ret;
}

static void stop(void)
{
	swc_dev_exit();
	swc_cq_exit();
}

static struct swc_conn *conn_alloc(void)
{
	struct swc_rdma_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL_ACCOUNT);

	if (!conn)
		return NULL;
	INIT_LIST_HEAD(&conn->dev_node);
	return &conn->base;
}

static void conn_free(struct swc_conn *base)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(base);

	swc_buffers_free(conn);
	kfree(conn);
}

/* The connection manager sends an acceptance so often. */
static u32 auth_ms(void)
{
	return swc_cm_answer_ms(5);
}

/* The connection manager tells that the peer has disconnected, whatever is still in the completion queue. */
static void settle(struct swc_conn *base)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(base);

	/* Only who ends the connection changes it, and waits for the caller. */
	if (conn->cq)
		swc_cq_settle(conn->cq);
}

const struct swc_transport swc_rdma_transport = {
	.port = &swc_rdma_port,
	.rx_bufs = &swc_rdma_rx_bufs,
	.rx_buf_kib = &swc_rdma_rx_buf_kib_small,
	.init = init,
	.stop = stop,
	.listen = swc_rdma_listen_start,
	.unlisten = swc_rdma_listen_stop,
	.conn_bytes = swc_buffers_bytes,
	.conn_alloc = conn_alloc,
	.conn_free = conn_free,
	.auth_ms = auth_ms,
	.connect = swc_cm_connect,
	.adopt = swc_rdma_listen_adopt,
	.suspend = swc_qp_suspend,
	.received = swc_rdma_received,
	.resume = swc_rdma_resume,
	.answers = swc_cm_answers,
	.resume_ms = &swc_rdma_resume_ms,
	.settle = settle,
	.quiesce = swc_qp_quiesce,
	.teardown = swc_qp_teardown,
	.pump = swc_rdma_pump,
	.all_received = swc_rdma_all_received,
	.probe_s = swc_rdma_probe_s,
	.watch = swc_rdma_watch,
	.release = swc_rdma_rx_release,
};
