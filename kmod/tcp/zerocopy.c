// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payload that the socket reads where it lies. One object per message counts the buffers of the network
 * stack that refer to its memory; when the last of them is freed, which is after the peer has acknowledged
 * all of it, the message is returned to the executor.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "compat.h"
#include "tcp/tcp.h"

struct swc_tcp_zerocopy {
	struct ubuf_info ubuf;
	struct swc_tcp_conn *conn;
	struct swc_send *send;
	struct list_head node;		/* in conn->zerocopies, while the message is being sent */
	struct llist_node done;
};

/* A reference is gone; in any context. */
static void put(struct sk_buff *skb, struct ubuf_info *ubuf, bool success)
{
	struct swc_tcp_zerocopy *z = container_of(ubuf, struct swc_tcp_zerocopy, ubuf);
	struct swc_tcp_conn *conn = z->conn;

	if (!refcount_dec_and_test(&ubuf->refcnt))
		return;
	llist_add(&z->done, &conn->zerocopy_done);
	swc_conn_pump_later(&conn->base);
	/* From here on the connection may be gone: only its address is used. */
	if (atomic_dec_and_test(&conn->nzerocopy))
		wake_up_var(&conn->nzerocopy);
}

SWC_UBUF_OPS(put_ops, put);

/**
 * swc_tcp_zerocopy_get() - the object of a message, new if it has none; conn->tx_mutex and conn->lock
 * are held
 *
 * Return: NULL if there is no memory: the payload has to be copied.
 */
struct swc_tcp_zerocopy *swc_tcp_zerocopy_get(struct swc_tcp_conn *conn, struct swc_send *send)
{
	struct swc_tcp_zerocopy *z;

	list_for_each_entry(z, &conn->zerocopies, node)
		if (z->send == send)
			return z;
	/* Part of it was copied: the rest is, too, so that it is returned in one way. */
	if (send->posted)
		return NULL;
	z = kzalloc(sizeof(*z), GFP_NOWAIT | __GFP_NOWARN);
	if (!z)
		return NULL;
	swc_compat_ubuf_init(&z->ubuf, put_ops);
	z->conn = conn;
	z->send = send;
	list_add(&z->node, &conn->zerocopies);
	atomic_inc(&conn->nzerocopy);
	return z;
}

struct ubuf_info *swc_tcp_zerocopy_ubuf(struct swc_tcp_zerocopy *z)
{
	return &z->ubuf;
}

/* All of the message has been given to the socket; conn->tx_mutex is held. */
void swc_tcp_zerocopy_sent(struct swc_tcp_zerocopy *z)
{
	list_del(&z->node);
	put(NULL, &z->ubuf, true);
}

/**
 * swc_tcp_zerocopy_collect() - the messages that the socket does not need any more
 * @done: they are moved there
 *
 * conn->tx_mutex and conn->lock are held.
 */
void swc_tcp_zerocopy_collect(struct swc_tcp_conn *conn, struct list_head *done)
{
	struct llist_node *all = llist_del_all(&conn->zerocopy_done);
	struct swc_tcp_zerocopy *z, *next;

	lockdep_assert_held(&conn->base.lock);
	llist_for_each_entry_safe(z, next, llist_reverse_order(all), done) {
		list_move_tail(&z->send->node, done);
		kfree(z);
	}
}

/**
 * swc_tcp_zerocopy_wait() - the socket is gone: wait until nothing reads messages any more
 *
 * conn->tx_mutex is held. They stay where they are: the connection is being closed, and returns them all.
 */
void swc_tcp_zerocopy_wait(struct swc_tcp_conn *conn)
{
	struct swc_tcp_zerocopy *z, *next;

	list_for_each_entry_safe(z, next, &conn->zerocopies, node)
		swc_tcp_zerocopy_sent(z);
	/* Soon, unless a queue or a card keeps packets: that is worth a line. */
	while (!wait_var_event_timeout(&conn->nzerocopy, !atomic_read(&conn->nzerocopy), 10 * HZ))
		pr_warn_ratelimited("rank %u: the network still holds memory that was sent to rank %u\n",
				    conn->base.me, conn->base.peer);
	llist_for_each_entry_safe(z, next, llist_del_all(&conn->zerocopy_done), done)
		kfree(z);
}
