// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP as a transport, and encrypted TCP as another: memory of connections, and the table of operations.
 */
#include <linux/slab.h>

#include "tcp/tcp.h"

/* With all receive buffers, which it may never need. */
static u32 conn_bytes(void)
{
	return sizeof(struct swc_tcp_conn) + SWC_TCP_PAGE +
	       swc_tcp_rx_bufs * (sizeof(struct swc_tcp_rx_buf) + sizeof(struct swc_extent) +
				  (PAGE_SIZE << get_order(swc_tcp_rx_buf_kib << 10)));
}

static struct swc_conn *conn_alloc(void)
{
	struct swc_tcp_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL_ACCOUNT);

	if (!conn)
		return NULL;
	swc_tcp_rx_init(conn);
	mutex_init(&conn->tx_mutex);
	INIT_LIST_HEAD(&conn->zerocopies);
	INIT_LIST_HEAD(&conn->zerocopies_held);
	init_llist_head(&conn->zerocopies_done);
	INIT_LIST_HEAD(&conn->free_bufs);
	conn->rx.state = SWC_TCP_RX_HEADER;
	conn->rx.bytes = SWC_HEADER;
	INIT_LIST_HEAD(&conn->records);
	conn->page = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!conn->page || swc_tcp_rx_alloc(conn)) {
		free_page((unsigned long)conn->page);
		kfree(conn);
		return NULL;
	}
	return &conn->base;
}

static void conn_free(struct swc_conn *base)
{
	struct swc_tcp_conn *conn = swc_tcp_conn(base);

	swc_tcp_rx_free(conn);
	free_page((unsigned long)conn->page);
	kfree(conn);
}

static u32 auth_ms(void)
{
	return swc_tcp_timeout_ms;
}

/* TCP itself repeats what is not acknowledged. */
static bool watch(struct swc_conn *base)
{
	struct swc_tcp_conn *conn = swc_tcp_conn(base);
	bool received;

	swc_tcp_rx_take_back(conn);
	received = swc_tcp_all_received(base);
	/* What is behind a mark counts only when a pump has set the next one. */
	if (!received && swc_tcp_is_tls(conn))
		swc_conn_pump_later(base);
	return received;
}

/* They differ in the port, by which swc_tcp_is_tls() tells them apart. */
#define TRANSPORT(port_param) {					\
	.port = &(port_param),					\
	.rx_bufs = &swc_tcp_rx_bufs,				\
	.rx_buf_kib = &swc_tcp_rx_buf_kib,			\
	.init = swc_tcp_check_parameters,			\
	.listen = swc_tcp_listen,				\
	.unlisten = swc_tcp_unlisten,				\
	.conn_bytes = conn_bytes,				\
	.conn_alloc = conn_alloc,				\
	.conn_free = conn_free,					\
	.auth_ms = auth_ms,					\
	.connect = swc_tcp_connect,				\
	.adopt = swc_tcp_adopt,					\
	.suspend = swc_tcp_suspend,				\
	.received = swc_tcp_stream_received,			\
	.resume = swc_tcp_stream_resume,			\
	.answers = swc_tcp_answers,				\
	.resume_ms = &swc_tcp_resume_ms,			\
	.quiesce = swc_tcp_quiesce,				\
	.pump = swc_tcp_pump,					\
	.all_received = swc_tcp_all_received,			\
	.probe_s = swc_tcp_probe_s,				\
	.watch = watch,						\
	.release = swc_tcp_rx_release,				\
}

const struct swc_transport swc_tcp_transport = TRANSPORT(swc_tcp_port);
#if IS_ENABLED(CONFIG_TLS)
const struct swc_transport swc_tls_transport = TRANSPORT(swc_tls_port);
#endif
