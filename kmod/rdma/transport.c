// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA as a transport: the table of operations, and the order of loading and unloading.
 */
#include "rdma/rdma.h"

static int init(void)
{
	int ret;

	ret = swc_buffers_check_parameters();
	if (!ret)
		ret = swc_cm_check_parameters();
	if (!ret)
		ret = swc_listen_check_parameters();
	return ret ?: swc_dev_init();
}

static struct swc_listener *listen(void)
{
	return swc_listen_start(&swc_rdma_transport);
}

static void net_free(struct swc_net *net)
{
	struct swc_rdma_listener *listener = swc_rdma_net(net)->listener;

	swc_net_destroy(net);
	swc_listen_stop(&listener->base);
}

static void conn_put(struct swc_conn *conn)
{
	swc_rdma_conn_put(swc_rdma_conn(conn));
}

const struct swc_transport swc_rdma_transport = {
	.name = "rdma",
	.init = init,
	.stop = swc_dev_exit,
	.port = swc_listen_port,
	.listen = listen,
	.unlisten = swc_listen_stop,
	.net_create = swc_net_alloc,
	.net_free = net_free,
	.net_pump = swc_watch_pump,
	.net_watch = swc_watch_start,
	.net_heartbeat = swc_watch_heartbeat,
	.net_trouble = swc_watch_trouble,
	.net_card_down = swc_watch_card_down,
	.net_abort = swc_net_start_abort,
	.net_leave = swc_net_start_leave,
	.conn_get = swc_net_get_conn,
	.conn_put = conn_put,
	.send = swc_tx_send,
	.post_rndv = swc_tx_post_rndv,
	.release = swc_rx_release,
	.copy_unexpected = swc_rx_copy_unexpected,
};
