// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stream of a connection: making and closing it, and the callbacks of its socket. These queue work items,
 * or wake a process that sleeps until something arrives, which then receives itself (rx.c). They also wake
 * the work item that waits until peers have been notified of an abort.
 */
#include <linux/tcp.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "compat.h"
#include "tcp/tcp.h"

/* Attempts of a SYN: seven seconds. The communicator's deadline limits how often that is repeated. */
#define SYNS	2
/* A path whose peer takes longer to answer is not well. */
#define ANSWER_MS	200

/* ------------------------------------------------------------------ callbacks of the socket */

static void queue_rx(struct sock *sk)
{
	struct swc_tcp_conn *conn;

	read_lock_bh(&sk->sk_callback_lock);
	conn = sk->sk_user_data;
	if (conn)
		mod_delayed_work(swc_conn_wq(&conn->base), &conn->rx_work, 0);
	read_unlock_bh(&sk->sk_callback_lock);
}

/* TLS has to look at what has come, before it can be received. */
static void data_ready(struct sock *sk)
{
	struct swc_tcp_conn *conn;

	read_lock_bh(&sk->sk_callback_lock);
	conn = sk->sk_user_data;
	if (conn && conn->encrypted)
		conn->callbacks.data_ready(sk);
	if (conn)
		swc_tcp_rx_ready(conn);
	read_unlock_bh(&sk->sk_callback_lock);
}

/* There is room again; for a stream whose acknowledgements are wanted, called for each of them. */
static void write_space(struct sock *sk)
{
	struct swc_tcp_conn *conn;

	read_lock_bh(&sk->sk_callback_lock);
	conn = sk->sk_user_data;
	if (conn && conn->encrypted)
		conn->callbacks.write_space(sk);
	if (conn && (READ_ONCE(conn->acks_wanted) || READ_ONCE(conn->nkept))) {
		/* That of TLS clears it. */
		set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		if (swc_tcp_all_received(&conn->base))
			wake_up_all(&conn->base.net->abort_wq);
		swc_conn_pump_later(&conn->base);
	} else if (conn && sk_stream_is_writeable(sk)) {
		clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		swc_conn_pump_later(&conn->base);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

static const struct swc_tcp_callbacks ours = {
	.data_ready = data_ready, .state_change = queue_rx,
	.write_space = write_space, .error_report = queue_rx,
};

/* ------------------------------------------------------------------ making */

void swc_tcp_set_options(struct socket *sock)
{
	tcp_sock_set_nodelay(sock->sk);
	tcp_sock_set_syncnt(sock->sk, SYNS);
	tcp_sock_set_user_timeout(sock->sk, swc_tcp_timeout_ms);
	sock->sk->sk_allocation = GFP_NOIO;
	sock->sk->sk_use_task_frag = false;
	/* With a reference, so that a socket that is closed goes on sending what it has, and its FIN. */
	lock_sock(sock->sk);
	if (!sock->sk->sk_net_refcnt)
		swc_compat_hold_net(sock->sk);
	release_sock(sock->sk);
}

/**
 * swc_tcp_take() - the socket belongs to the connection; conn->lock is held
 * @callbacks: its own
 */
void swc_tcp_take(struct swc_tcp_conn *conn, struct socket *sock, const struct swc_tcp_callbacks *callbacks)
{
	lockdep_assert_held(&conn->base.lock);
	conn->sock = sock;
	conn->callbacks = *callbacks;
	conn->encrypted = false;
	conn->broken = 0;
	conn->error = 0;
	conn->handshake_sent = false;
	swc_tcp_set_callbacks(sock, &ours, conn);
}

/* A socket that begins to connect by a path; as of kernel_connect(). */
static int connect_by_path(struct socket *sock, const struct swc_node_path *path, int flags)
{
	struct sockaddr *local = (struct sockaddr *)path->local, *remote = (struct sockaddr *)path->remote;
	int bytes = local->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

	return kernel_bind(sock, SWC_SOCKADDR(local), bytes) ?:
	       kernel_connect(sock, SWC_SOCKADDR(remote), bytes, flags);
}

static int open_socket(const struct swc_conn *base, const struct swc_node_path *path, struct socket **sock)
{
	const struct sockaddr *local = (const void *)path->local;
	int ret = sock_create_kern(base->net->ns, local->sa_family, SOCK_STREAM, IPPROTO_TCP, sock);

	if (!ret)
		swc_tcp_set_options(*sock);
	return ret;
}

static int connect(struct swc_tcp_conn *conn, const struct swc_node_path *path)
{
	struct swc_tcp_callbacks callbacks;
	struct socket *sock;
	int ret;

	ret = open_socket(&conn->base, path, &sock);
	if (ret)
		return ret;
	WRITE_ONCE(conn->base.card, swc_path_card(conn->base.net, path));
	swc_tcp_save_callbacks(sock, &callbacks);
	swc_tcp_rx_begin(conn, SWC_TCP_REPLY);
	spin_lock(&conn->base.lock);
	swc_tcp_take(conn, sock, &callbacks);
	spin_unlock(&conn->base.lock);
	ret = connect_by_path(sock, path, O_NONBLOCK);
	return ret == -EINPROGRESS ? 0 : ret;
}

/* Transport operation. A socket without a request is closed by the peer's listener. */
bool swc_tcp_answers(const struct swc_conn *base, const struct swc_node_path *path)
{
	struct socket *sock;
	int ret;

	if (open_socket(base, path, &sock))
		return false;
	sock->sk->sk_sndtimeo = msecs_to_jiffies(ANSWER_MS);
	ret = connect_by_path(sock, path, 0);
	sock_release(sock);
	return !ret;
}

/* Transport operation. */
void swc_tcp_connect(struct swc_conn *base)
{
	struct swc_tcp_conn *conn = swc_tcp_conn(base);
	const struct swc_node_path *path = swc_conn_path(base);
	int ret;

	ret = connect(conn, path);
	if (ret)
		swc_conn_retry(base, ret == -EADDRNOTAVAIL ? "this node does not have the path's address" :
				     "cannot connect to it", ret);
}

/* The path by which a peer has come. */
static u16 path_of(struct swc_tcp_conn *conn)
{
	struct sockaddr_storage local, remote;

	if (kernel_getsockname(conn->sock, (struct sockaddr *)&local) < 0 ||
	    kernel_getpeername(conn->sock, (struct sockaddr *)&remote) < 0)
		return conn->base.path;
	return swc_path_by_address(&conn->base, (struct sockaddr *)&local, (struct sockaddr *)&remote);
}

/* Send the reply that accepts the peer's request. */
int swc_tcp_accept(struct swc_tcp_conn *conn)
{
	struct swc_conn *base = &conn->base;
	int ret = -ECONNABORTED;

	mutex_lock(&conn->tx_mutex);
	if (conn->sock && !conn->detaching) {
		WRITE_ONCE(base->via, path_of(conn));
		WRITE_ONCE(base->card, swc_path_card(base->net, swc_conn_path(base)));
		ret = swc_tcp_send_handshake(conn->sock, &base->accept, sizeof(base->accept));
		if (!ret && swc_tcp_is_tls(conn))
			ret = swc_tls_start(conn, &base->accept);
		/* From now on what comes is received, and what has come before. */
		WRITE_ONCE(conn->handshake_sent, !ret);
		mod_delayed_work(swc_conn_wq(base), &conn->rx_work, 0);
	}
	mutex_unlock(&conn->tx_mutex);
	/* Who wanted to send meanwhile has left it to this. */
	swc_conn_pump_later(base);
	return ret;
}

/* ------------------------------------------------------------------ closing */

/* From here on the socket has no callbacks of ours, and nobody receives. */
static void detach(struct swc_tcp_conn *conn)
{
	mutex_lock(&conn->tx_mutex);
	spin_lock(&conn->base.lock);
	conn->detaching = true;
	spin_unlock(&conn->base.lock);
	swc_tcp_restore_callbacks(conn->sock, &conn->callbacks);
	mutex_unlock(&conn->tx_mutex);
	swc_tcp_rx_stop(conn);
}

/* Nobody uses the socket any more; conn->tx_mutex is held. */
static void release(struct swc_tcp_conn *conn)
{
	struct socket *sock = conn->sock;

	spin_lock(&conn->base.lock);
	swc_tcp_stream_end(conn);
	conn->sock = NULL;
	/* Together: who receives reads both. */
	conn->detaching = false;
	spin_unlock(&conn->base.lock);
	sock_release(sock);
}

/*
 * Transport operation. The order matters: what arrived after the last look would be acknowledged, but not
 * counted (stream.c, 2).
 */
void swc_tcp_suspend(struct swc_conn *base)
{
	struct swc_tcp_conn *conn = swc_tcp_conn(base);

	if (!conn->sock)
		return;
	detach(conn);
	tcp_abort(conn->sock->sk, ECONNABORTED);
	swc_tcp_rx_drain(conn);
	mutex_lock(&conn->tx_mutex);
	release(conn);
	mutex_unlock(&conn->tx_mutex);
}

/*
 * Transport operation. What the peer has not acknowledged is dropped, and the peer gets a reset: the memory
 * is going to be used for something else.
 */
void swc_tcp_quiesce(struct swc_conn *base)
{
	struct swc_tcp_conn *conn = swc_tcp_conn(base);

	if (conn->sock)
		detach(conn);
	mutex_lock(&conn->tx_mutex);
	if (conn->sock) {
		if (!swc_tcp_all_received(base))
			sock_no_linger(conn->sock->sk);
		release(conn);
	}
	swc_tcp_tx_reset(conn);
	mutex_unlock(&conn->tx_mutex);
	swc_tcp_rx_reset(conn);
	swc_tcp_rndv_reset(conn);
}
