// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payload that the socket reads where it lies. One object per message counts the buffers of the network
 * stack that refer to its memory; when the last of them is freed, which is after the peer has acknowledged
 * all of it, the message is returned to the executor. A connection that is closed waits a second at most:
 * packets can stay in a queue or a card for hours, and nobody is going to receive them. They hold their pages
 * by references of their own.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "compat.h"
#include "tcp/tcp.h"

#define WAIT_S 1

/**
 * struct swc_tcp_zerocopy - a message
 * @conn: NULL: that is closed; guarded by held_lock
 * @node: in conn->zerocopies while the message is being sent, then in conn->zerocopies_held
 * @done: in conn->zerocopies_done
 */
struct swc_tcp_zerocopy {
	struct ubuf_info ubuf;
	struct swc_tcp_conn *conn;
	struct swc_send *send;
	struct list_head node;
	struct llist_node done;
};

/* Guards the lists zerocopies_held of all connections. */
static DEFINE_SPINLOCK(held_lock);

/* A reference is gone; in any context. */
static void put(struct sk_buff *skb, struct ubuf_info *ubuf, bool success)
{
	struct swc_tcp_zerocopy *z = container_of(ubuf, struct swc_tcp_zerocopy, ubuf);
	struct swc_tcp_conn *conn;
	unsigned long flags;
	bool last;

	if (!refcount_dec_and_test(&ubuf->refcnt))
		return;
	spin_lock_irqsave(&held_lock, flags);
	conn = z->conn;
	if (conn) {
		list_del(&z->node);
		last = list_empty(&conn->zerocopies_held);
		/* From here on @z may be gone. It is a full barrier, which wake_up_var() needs, too. */
		llist_add(&z->done, &conn->zerocopies_done);
		swc_conn_pump_later(&conn->base);
		if (last)
			wake_up_var(&conn->zerocopies_held);
	}
	spin_unlock_irqrestore(&held_lock, flags);
	if (!conn) {
		kfree(z);
		module_put(THIS_MODULE);
	}
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
	return z;
}

struct ubuf_info *swc_tcp_zerocopy_ubuf(struct swc_tcp_zerocopy *z)
{
	return &z->ubuf;
}

/* All of the message has been given to the socket; conn->tx_mutex is held. */
void swc_tcp_zerocopy_sent(struct swc_tcp_zerocopy *z)
{
	spin_lock_irq(&held_lock);
	list_move_tail(&z->node, &z->conn->zerocopies_held);
	spin_unlock_irq(&held_lock);
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
	struct llist_node *all = llist_del_all(&conn->zerocopies_done);
	struct swc_tcp_zerocopy *z, *next;

	lockdep_assert_held(&conn->base.lock);
	llist_for_each_entry_safe(z, next, llist_reverse_order(all), done) {
		list_move_tail(&z->send->node, done);
		kfree(z);
	}
}

/* The connection is going to be closed. Packets that are still held do without it, but need put(). */
static void abandon(struct swc_tcp_conn *conn)
{
	struct swc_tcp_zerocopy *z, *next;
	bool held;

	spin_lock_irq(&held_lock);
	held = !list_empty(&conn->zerocopies_held);
	list_for_each_entry_safe(z, next, &conn->zerocopies_held, node) {
		list_del(&z->node);
		z->conn = NULL;
		__module_get(THIS_MODULE);
	}
	spin_unlock_irq(&held_lock);
	if (held)
		pr_warn_ratelimited("rank %u: packets for rank %u are still queued, and may send what is written to their memory from now on\n",
				    conn->base.me, conn->base.peer);
}

/**
 * swc_tcp_zerocopy_close() - the socket is gone: wait a little until nothing reads messages any more
 *
 * conn->tx_mutex is held. They stay where they are: the connection is being closed, and returns them all.
 */
void swc_tcp_zerocopy_close(struct swc_tcp_conn *conn)
{
	struct swc_tcp_zerocopy *z, *next;

	list_for_each_entry_safe(z, next, &conn->zerocopies, node)
		swc_tcp_zerocopy_sent(z);
	wait_var_event_timeout(&conn->zerocopies_held, list_empty_careful(&conn->zerocopies_held),
			       WAIT_S * HZ);
	abandon(conn);
	llist_for_each_entry_safe(z, next, llist_del_all(&conn->zerocopies_done), done)
		kfree(z);
}
