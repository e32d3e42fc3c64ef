// SPDX-License-Identifier: GPL-2.0-only
/*
 * Listeners, and accepted sockets until their request has come, which net/request.c checks. All work of a
 * listener runs on an ordered work queue of its own, so none of it needs a lock. Anybody may connect: sockets
 * without a request are few, and closed soon.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/sock.h>

#include "compat.h"
#include "tcp/tcp.h"

#define BACKLOG		1024
/* Accepted sockets without a request: so many, and for so long. */
#define MOST_ACCEPTED	256
#define REQUEST_MS	5000
/* So many of each family are accepted before their requests get their turn. */
#define ACCEPT_BATCH	32
/* Until accepting is tried again when memory is short. */
#define ACCEPT_RETRY_MS	100

/**
 * struct swc_tcp_listener - a listener; by IPv6 only if the kernel has it
 * @sock: by family
 * @callbacks: their own
 * @wq: for all of its work
 * @accept_work: accepts
 * @expire_work: closes sockets whose request has not come in time
 * @accepted: without a request, the oldest first
 * @naccepted: how many
 */
struct swc_tcp_listener {
	struct swc_listener base;
	struct socket *sock[2];
	struct swc_tcp_callbacks callbacks[2];
	struct workqueue_struct *wq;
	struct delayed_work accept_work;
	struct delayed_work expire_work;
	struct work_struct forget_work;
	struct list_head accepted;
	u32 naccepted;
};

/* An accepted socket. @got: bytes of @hello that have come. @until: jiffies */
struct accepted {
	struct list_head node;
	struct swc_tcp_listener *listener;
	struct socket *sock;
	struct swc_tcp_callbacks callbacks;
	struct work_struct work;
	struct swc_wire_hello hello;
	u32 got;
	unsigned long until;
};

/* ------------------------------------------------------------------ requests */

/* The socket is another's, or closed. */
static void forget(struct accepted *a)
{
	if (a->sock) {
		swc_tcp_restore_callbacks(a->sock, &a->callbacks);
		sock_release(a->sock);
	}
	cancel_work(&a->work);
	list_del(&a->node);
	a->listener->naccepted--;
	kfree(a);
}

/* Transport operation. */
void swc_tcp_adopt(struct swc_conn *base, void *request)
{
	struct swc_tcp_conn *conn = swc_tcp_conn(base);
	struct accepted *a = request;

	swc_tcp_rx_begin(conn, SWC_TCP_AUTH);
	swc_tcp_take(conn, a->sock, &a->callbacks);
	a->sock = NULL;
}

static void handle_request(struct accepted *a)
{
	struct swc_wire_reject reject;
	struct swc_conn *conn;
	int ret;

	conn = swc_request(&a->listener->base, &a->hello, sizeof(a->hello), a, &reject);
	if (!conn) {
		swc_tcp_send_handshake(a->sock, &reject, sizeof(reject));
		return;
	}
	swc_request_accept(conn, &a->hello);
	ret = swc_tcp_accept(swc_tcp_conn(conn));
	if (ret)
		swc_conn_retry(conn, "cannot accept", ret);
	else
		swc_request_expect_auth(conn);
	swc_request_put(conn);
}

/* Work item: something has come by an accepted socket. */
static void request_work(struct work_struct *work)
{
	struct accepted *a = container_of(work, struct accepted, work);
	struct kvec vec = { .iov_base = (u8 *)&a->hello + a->got, .iov_len = sizeof(a->hello) - a->got };
	struct msghdr msg = {};
	int n = kernel_recvmsg(a->sock, &msg, &vec, 1, vec.iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n == -EAGAIN)
		return;
	if (n > 0) {
		a->got += n;
		if (a->got < sizeof(a->hello)) {
			queue_work(a->listener->wq, &a->work);
			return;
		}
		handle_request(a);
	}
	forget(a);
}

/* ------------------------------------------------------------------ accepting */

static void queue_request(struct sock *sk)
{
	struct accepted *a;

	read_lock_bh(&sk->sk_callback_lock);
	a = sk->sk_user_data;
	/* A connection may have taken the socket over since this was called. */
	if (a && sk->sk_data_ready == queue_request)
		queue_work(a->listener->wq, &a->work);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void add(struct swc_tcp_listener *l, struct socket *sock)
{
	struct accepted *a = kzalloc(sizeof(*a), GFP_KERNEL);
	struct sock *sk = sock->sk;

	if (!a) {
		sock_release(sock);
		return;
	}
	if (l->naccepted == MOST_ACCEPTED)
		forget(list_first_entry(&l->accepted, struct accepted, node));
	a->listener = l;
	a->sock = sock;
	a->until = jiffies + msecs_to_jiffies(REQUEST_MS);
	INIT_WORK(&a->work, request_work);
	list_add_tail(&a->node, &l->accepted);
	l->naccepted++;
	swc_tcp_set_options(sock);
	/* Those that it has from the listener are ours: only the listener's own are right. */
	a->callbacks = l->callbacks[sk->sk_family == AF_INET6];
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = a;
	sk->sk_data_ready = queue_request;
	sk->sk_state_change = queue_request;
	sk->sk_error_report = queue_request;
	sk->sk_write_space = a->callbacks.write_space;
	write_unlock_bh(&sk->sk_callback_lock);
	queue_work(l->wq, &a->work);
	queue_delayed_work(l->wq, &l->expire_work, HZ);
}

static void accept_work(struct work_struct *work)
{
	struct swc_tcp_listener *l = container_of(work, struct swc_tcp_listener, accept_work.work);
	struct socket *sock;
	bool more = false;
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(l->sock); i++) {
		struct socket *from = READ_ONCE(l->sock[i]);
		int ret = 0;

		for (n = 0; from && (!ret || ret == -ECONNABORTED) && n < ACCEPT_BATCH; n++) {
			ret = kernel_accept(from, &sock, O_NONBLOCK);
			if (!ret)
				add(l, sock);
		}
		more |= n == ACCEPT_BATCH;
		if (from && ret && ret != -EAGAIN && ret != -ECONNABORTED)
			queue_delayed_work(l->wq, &l->accept_work, msecs_to_jiffies(ACCEPT_RETRY_MS));
	}
	if (more)
		queue_delayed_work(l->wq, &l->accept_work, 0);
}

static void expire_work(struct work_struct *work)
{
	struct swc_tcp_listener *l = container_of(work, struct swc_tcp_listener, expire_work.work);
	struct accepted *a, *next;

	list_for_each_entry_safe(a, next, &l->accepted, node)
		if (time_after(jiffies, a->until))
			forget(a);
	if (l->naccepted)
		queue_delayed_work(l->wq, &l->expire_work, HZ);
}

/* Here, beside no other work item: something may come by any of the sockets until it is forgotten. */
static void forget_work(struct work_struct *work)
{
	struct swc_tcp_listener *l = container_of(work, struct swc_tcp_listener, forget_work);
	struct accepted *a, *next;

	list_for_each_entry_safe(a, next, &l->accepted, node)
		forget(a);
}

static void queue_accept(struct sock *sk)
{
	struct swc_tcp_listener *l;

	read_lock_bh(&sk->sk_callback_lock);
	l = sk->sk_user_data;
	/* A socket that is being accepted has this callback for a moment, too. */
	if (l && sk->sk_state == TCP_LISTEN)
		queue_delayed_work(l->wq, &l->accept_work, 0);
	read_unlock_bh(&sk->sk_callback_lock);
}

/* ------------------------------------------------------------------ listeners */

static int open_socket(struct swc_tcp_listener *l, u32 i, struct sockaddr *addr, int bytes)
{
	struct socket *sock;
	struct sock *sk;
	int ret = sock_create_kern(l->base.ns, addr->sa_family, SOCK_STREAM, IPPROTO_TCP, &sock);

	if (ret)
		return ret;
	sk = sock->sk;
	sock_set_reuseaddr(sk);
	if (addr->sa_family == AF_INET6)
		ip6_sock_set_v6only(sk);
	ret = kernel_bind(sock, SWC_SOCKADDR(addr), bytes);
	if (ret) {
		sock_release(sock);
		return ret;
	}
	swc_tcp_save_callbacks(sock, &l->callbacks[i]);
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = l;
	sk->sk_data_ready = queue_accept;
	write_unlock_bh(&sk->sk_callback_lock);
	ret = kernel_listen(sock, BACKLOG);
	if (ret) {
		swc_tcp_restore_callbacks(sock, &l->callbacks[i]);
		sock_release(sock);
		return ret;
	}
	WRITE_ONCE(l->sock[i], sock);
	/* For what has come since. */
	queue_delayed_work(l->wq, &l->accept_work, 0);
	return 0;
}

/* Transport operation. */
struct swc_listener *swc_tcp_listen(const struct swc_transport *transport, struct net *ns)
{
	struct sockaddr_in in4 = { .sin_family = AF_INET, .sin_port = htons(*transport->port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(*transport->port) };
	struct swc_tcp_listener *l;
	int ret;

	if (IS_ENABLED(CONFIG_TLS) && transport->port == &swc_tls_port && !swc_tls_is_there(ns)) {
		pr_err("cannot encrypt: this kernel cannot load its module tls\n");
		return ERR_PTR(-EOPNOTSUPP);
	}
	l = kzalloc(sizeof(*l), GFP_KERNEL);
	if (!l)
		return ERR_PTR(-ENOMEM);
	l->base.transport = transport;
	l->base.ns = ns;
	INIT_DELAYED_WORK(&l->accept_work, accept_work);
	INIT_DELAYED_WORK(&l->expire_work, expire_work);
	INIT_WORK(&l->forget_work, forget_work);
	INIT_LIST_HEAD(&l->accepted);
	l->wq = alloc_ordered_workqueue("swingcoll_listen", 0);
	ret = l->wq ? open_socket(l, 0, (struct sockaddr *)&in4, sizeof(in4)) : -ENOMEM;
	if (ret) {
		if (l->wq)
			pr_err("cannot listen on TCP port %u (%d): is it in use? Load with %s_port=\n",
			       *transport->port, ret, transport->port == &swc_tcp_port ? "tcp" : "tls");
		swc_tcp_unlisten(&l->base);
		return ERR_PTR(ret);
	}
	/* A kernel without IPv6 has only the other. */
	open_socket(l, 1, (struct sockaddr *)&in6, sizeof(in6));
	return &l->base;
}

/* Transport operation. */
void swc_tcp_unlisten(struct swc_listener *listener)
{
	struct swc_tcp_listener *l = container_of(listener, struct swc_tcp_listener, base);
	u32 i;

	if (l->wq) {
		/* Nothing is accepted any more, then no socket is left that queues anything. */
		for (i = 0; i < ARRAY_SIZE(l->sock); i++)
			if (l->sock[i])
				swc_tcp_restore_callbacks(l->sock[i], &l->callbacks[i]);
		cancel_delayed_work_sync(&l->accept_work);
		cancel_delayed_work_sync(&l->expire_work);
		queue_work(l->wq, &l->forget_work);
		flush_work(&l->forget_work);
		destroy_workqueue(l->wq);
	}
	for (i = 0; i < ARRAY_SIZE(l->sock); i++)
		if (l->sock[i])
			sock_release(l->sock[i]);
	kfree(l);
}
