// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that handle what arrives for them. A process that sleeps until a message arrives on a connection
 * says so here. The transport's event then wakes it, and it polls for completions itself: that saves waking a
 * kernel thread which would wake the process next. A process that does not sleep yet looks for the message
 * itself, if the transport can: it begins, looks again and again for a short time, and ends.
 *
 * A connection has one waiter at most. conn->waiter_lock guards it, and the fields of the waiter; it is the
 * innermost lock, and events take it in interrupts.
 */
#include "net/conn.h"

/**
 * swc_net_wait() - let the next event of a connection wake this process
 * @waiter: of the process, not waiting
 * @conn: connection; a reference is taken
 *
 * If the connection has a waiter already, nothing happens: kernel threads are always there to do the work.
 * From now on the waiter is to be given to swc_net_wait_end() before it goes. Any context.
 */
void swc_net_wait(struct swc_net_waiter *waiter, struct swc_conn *conn)
{
	unsigned long flags;

	spin_lock_irqsave(&conn->waiter_lock, flags);
	if (!conn->waiter) {
		kref_get(&conn->ref);
		waiter->conn = conn;
		waiter->given = NULL;
		conn->waiter = waiter;
	}
	spin_unlock_irqrestore(&conn->waiter_lock, flags);
}

/**
 * swc_net_wait_end() - the process does not wait any more
 *
 * It calls given->poll() of the result, if there is one, without locks. Process context.
 */
struct swc_net_poll *swc_net_wait_end(struct swc_net_waiter *waiter)
{
	struct swc_conn *conn = waiter->conn;
	struct swc_net_poll *given;
	unsigned long flags;

	if (!conn)
		return NULL;
	spin_lock_irqsave(&conn->waiter_lock, flags);
	if (conn->waiter == waiter)
		conn->waiter = NULL;
	given = waiter->given;
	spin_unlock_irqrestore(&conn->waiter_lock, flags);
	waiter->conn = NULL;
	waiter->given = NULL;
	swc_conn_put(conn);
	return given;
}

/**
 * swc_conn_give() - something has arrived: let the connection's waiter poll for it
 * @poll: passes to the waiter
 *
 * Any context. Return: false if no process sleeps; then it stays the caller's.
 */
bool swc_conn_give(struct swc_conn *conn, struct swc_net_poll *poll)
{
	struct swc_net_waiter *waiter;
	unsigned long flags;
	bool woken = false;

	spin_lock_irqsave(&conn->waiter_lock, flags);
	waiter = conn->waiter;
	if (waiter) {
		waiter->given = poll;
		woken = waiter->wake(waiter);
		if (woken)
			conn->waiter = NULL;
		else
			waiter->given = NULL;
	}
	spin_unlock_irqrestore(&conn->waiter_lock, flags);
	return woken;
}

/* ------------------------------------------------------------------ polling */

/**
 * swc_conn_offer_poll() - from now on processes may look for messages of a connection
 * @poll: valid until swc_conn_withdraw_poll(); its begin() takes a reference, which its end() puts
 */
void swc_conn_offer_poll(struct swc_conn *conn, struct swc_net_poll *poll)
{
	unsigned long flags;

	spin_lock_irqsave(&conn->waiter_lock, flags);
	WRITE_ONCE(conn->poll, poll);
	spin_unlock_irqrestore(&conn->waiter_lock, flags);
}

/**
 * swc_conn_withdraw_poll() - nobody begins to look there any more, unless it has been replaced already
 */
void swc_conn_withdraw_poll(struct swc_conn *conn, const struct swc_net_poll *poll)
{
	unsigned long flags;

	spin_lock_irqsave(&conn->waiter_lock, flags);
	if (conn->poll == poll)
		WRITE_ONCE(conn->poll, NULL);
	spin_unlock_irqrestore(&conn->waiter_lock, flags);
}

/**
 * swc_net_poll_begin() - begin to look for messages of a connection
 *
 * The process that looks must do so often, or end: until then nobody else handles what comes. What it looks
 * at outlives the connection. Any context.
 *
 * Return: what to look at; NULL if the transport cannot, or another process does.
 */
struct swc_net_poll *swc_net_poll_begin(struct swc_conn *conn)
{
	struct swc_net_poll *poll;
	unsigned long flags;

	if (!READ_ONCE(conn->poll))
		return NULL;
	spin_lock_irqsave(&conn->waiter_lock, flags);
	poll = conn->poll;
	if (poll && !poll->begin(poll))
		poll = NULL;
	spin_unlock_irqrestore(&conn->waiter_lock, flags);
	return poll;
}
