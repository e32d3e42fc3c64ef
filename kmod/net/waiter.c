// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that handle what arrives for them. A process that sleeps until a message arrives on a connection
 * says so here. The transport's event then wakes it, and it polls for completions itself: that saves waking a
 * kernel thread which would wake the process next. A process that does not sleep yet looks for the message
 * itself, if the transport can: it begins, looks again and again for a short time, and ends.
 *
 * What nobody needs yet is deferred: left where it is, for the next process that comes, at most for a jiffy.
 * A kernel thread would take the CPU from that process, and copy messages of operations that this node has
 * not begun. Nobody needs it while no operation is in flight, or while a process polls the net that is
 * about to wait.
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

/* ------------------------------------------------------------------ deferring */

/* What is deferred and this has not found, who makes it false finds. */
static bool may_defer(struct swc_net *net)
{
	return atomic_read(&net->npollers) || swc_net_oldest(net) == U64_MAX;
}

static bool add_deferred(struct swc_net *net, struct swc_net_poll *poll)
{
	unsigned long flags;
	bool is_new;

	spin_lock_irqsave(&net->deferred_lock, flags);
	/* It is there still if it has been taken back from whoever it was given to. */
	is_new = list_empty(&poll->node);
	if (is_new) {
		list_add_tail(&poll->node, &net->deferred);
		WRITE_ONCE(net->ndeferred, net->ndeferred + 1);
	}
	spin_unlock_irqrestore(&net->deferred_lock, flags);
	return is_new;
}

static void remove(struct swc_net *net, struct swc_net_poll *poll)
{
	lockdep_assert_held(&net->deferred_lock);
	list_del_init(&poll->node);
	WRITE_ONCE(net->ndeferred, net->ndeferred - 1);
}

/* False: it has been taken. */
static bool del_deferred(struct swc_net *net, struct swc_net_poll *poll)
{
	unsigned long flags;
	bool was_there;

	spin_lock_irqsave(&net->deferred_lock, flags);
	was_there = !list_empty(&poll->node);
	if (was_there)
		remove(net, poll);
	spin_unlock_irqrestore(&net->deferred_lock, flags);
	return was_there;
}

static struct swc_net_poll *first_deferred(struct swc_net *net)
{
	struct swc_net_poll *poll;
	unsigned long flags;

	spin_lock_irqsave(&net->deferred_lock, flags);
	poll = list_first_entry_or_null(&net->deferred, struct swc_net_poll, node);
	if (poll)
		remove(net, poll);
	spin_unlock_irqrestore(&net->deferred_lock, flags);
	return poll;
}

static bool defer(struct swc_net *net, struct swc_net_poll *poll)
{
	if (!may_defer(net) || !add_deferred(net, poll))
		return false;
	/* Pairs with those of swc_net_poller_end(), swc_net_expedite() and deferred_timer(). */
	smp_mb();
	if (!may_defer(net))
		return !del_deferred(net, poll);
	if (!timer_pending(&net->deferred_timer))
		mod_timer(&net->deferred_timer, jiffies + 1);
	return true;
}

/**
 * swc_net_handle_deferred() - handle what has arrived and is left for a process
 *
 * Not what arrives meanwhile: that may never cease. Process context, no locks held. Return: true if there was
 * something.
 */
bool swc_net_handle_deferred(struct swc_net *net)
{
	u32 i, n = READ_ONCE(net->ndeferred);
	struct swc_net_poll *poll;

	for (i = 0; i < n; i++) {
		poll = first_deferred(net);
		if (!poll)
			break;
		poll->poll(poll);
	}
	return i;
}

/**
 * swc_net_poller_begin() - from now on leave what arrives for this process
 *
 * Until swc_net_poller_end(), very soon. It calls swc_net_handle_deferred() before it sleeps.
 */
void swc_net_poller_begin(struct swc_net *net)
{
	atomic_inc(&net->npollers);
}

/* The process handles what is left for it. */
void swc_net_poller_end(struct swc_net *net)
{
	atomic_dec(&net->npollers);
	/* Pairs with that of defer(). */
	smp_mb__after_atomic();
	swc_net_handle_deferred(net);
	/* What has arrived meanwhile is another process's, or nobody's. */
	if (READ_ONCE(net->ndeferred))
		swc_net_expedite(net);
}

/**
 * swc_net_expedite() - have a kernel thread handle soon what is deferred
 *
 * For an operation that has begun, and whose process does not look for messages. Any context.
 */
void swc_net_expedite(struct swc_net *net)
{
	/* After the operation has begun; pairs with that of defer(). */
	smp_mb();
	if (READ_ONCE(net->ndeferred))
		queue_work(net->params.wq, &net->deferred_work);
}

static void deferred_work(struct work_struct *work)
{
	struct swc_net *net = container_of(work, struct swc_net, deferred_work);

	swc_net_handle_deferred(net);
	/* What has arrived meanwhile, after other work. */
	if (READ_ONCE(net->ndeferred))
		queue_work(net->params.wq, work);
}

/* Nobody has come. In a timer, so that no kernel thread runs in vain if a process has come. */
static void deferred_timer(struct timer_list *timer)
{
	struct swc_net *net = container_of(timer, struct swc_net, deferred_timer);

	/* The timer is not pending any more; pairs with that of defer(). */
	smp_mb();
	if (READ_ONCE(net->ndeferred))
		queue_work(net->params.wq, &net->deferred_work);
}

void swc_net_init_deferred(struct swc_net *net)
{
	spin_lock_init(&net->deferred_lock);
	INIT_LIST_HEAD(&net->deferred);
	timer_setup(&net->deferred_timer, deferred_timer, 0);
	INIT_WORK(&net->deferred_work, deferred_work);
}

/* All connections are closed: what is left only has references. */
void swc_net_stop_deferred(struct swc_net *net)
{
	timer_delete_sync(&net->deferred_timer);
	cancel_work_sync(&net->deferred_work);
	while (swc_net_handle_deferred(net))
		;
}

/* ------------------------------------------------------------------ events */

/**
 * swc_conn_give() - something has arrived: let the connection's waiter poll for it
 * @poll: passes to the waiter
 *
 * If no process sleeps, it may be deferred. Any context. Return: false if neither: it stays the caller's.
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
	return woken || defer(conn->net, poll);
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
