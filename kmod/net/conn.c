// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a connection: its state, its references, and how it fails. What happens at the end is in
 * close_work (net.c), what happens after a failed attempt in connect_work (reply.c): this file only queues
 * them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/netdevice.h>
#include <linux/slab.h>

#include "mem/account.h"
#include "net/conn.h"
#define CREATE_TRACE_POINTS
#include "net/trace.h"

/* A node where nothing listens any more has no communicator: it may take so long to be sure of that. */
#define GONE_MS		1000
/* After a failed attempt to connect, in milliseconds: doubled after each further one, up to the second. */
#define RETRY_MS	50
#define RETRY_MOST_MS	1600
/* Attempts to connect at a time, of a communicator: more would only wait for each other in the devices. */
#define ATTEMPTS_MOST	32
/* The reason why a live connection ends may still be in its completion queue. */
#define DROPPED_MS	100

/* ------------------------------------------------------------------ state */

/* From which states a state can be reached. */
static const u8 reached_from[] = {
	[SWC_CONN_IDLE] = BIT(SWC_CONN_RESETTING),	/* the higher rank waits for the next attempt */
	[SWC_CONN_CONNECTING] = BIT(SWC_CONN_IDLE) | BIT(SWC_CONN_RESETTING),
	[SWC_CONN_RESETTING] = BIT(SWC_CONN_CONNECTING) | BIT(SWC_CONN_LIVE),
	[SWC_CONN_LIVE] = BIT(SWC_CONN_CONNECTING),
	[SWC_CONN_CLOSING] = BIT(SWC_CONN_IDLE) | BIT(SWC_CONN_CONNECTING) | BIT(SWC_CONN_RESETTING) |
			     BIT(SWC_CONN_LIVE),
	[SWC_CONN_CLOSED] = BIT(SWC_CONN_CLOSING),
};

/**
 * swc_conn_set_state() - the one place where the state of a connection changes
 * @from: the state that it must have; to close from any state, pass the present one
 * @to: new state
 *
 * Return: false if the state is another, or @to cannot be reached from it; then it stays.
 */
bool swc_conn_set_state(struct swc_conn *conn, enum swc_conn_state from, enum swc_conn_state to)
{
	lockdep_assert_held(&conn->lock);
	if (conn->state != from || !(reached_from[to] & BIT(from)))
		return false;
	conn->state = to;
	trace_swc_conn_state(conn, from, to);
	if (to == SWC_CONN_CONNECTING)
		clear_bit(SWC_CONN_F_MISSED, &conn->flags);
	if (to == SWC_CONN_LIVE) {
		set_bit(SWC_CONN_F_PROVEN, &conn->flags);
		set_bit(SWC_CONN_F_STARTED, &conn->flags);
	}
	return true;
}

/* Has the peer not received yet what this rank sent before it left? */
bool swc_conn_has_unsent(const struct swc_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	return test_bit(SWC_CONN_F_LEAVING, &conn->flags) && test_bit(SWC_CONN_F_STARTED, &conn->flags) &&
	       conn->state <= SWC_CONN_LIVE &&
	       ((conn->pending & SWC_PEND_FIN) || !conn->transport->all_received(conn)) &&
	       !READ_ONCE(conn->net->aborted) && time_before(jiffies, conn->give_up);
}

/* Short messages to send as soon as there is room: the caller has the connection pumped. */
void swc_conn_pend(struct swc_conn *conn, u32 pending)
{
	lockdep_assert_held(&conn->lock);
	conn->pending |= pending;
}

/* ------------------------------------------------------------------ references, work */

/* Charge a new connection, with its memory, to the user; until its last reference is put. */
int swc_conn_charge(struct swc_conn *conn, const struct swc_net *net)
{
	struct swc_account *account = net->params.account;
	u32 bytes = conn->transport->conn_bytes();
	int ret = swc_account_charge(account, SWC_QUOTA_CONNS, 1);

	if (ret)
		return ret;
	ret = swc_account_charge(account, SWC_QUOTA_MEMORY, bytes);
	if (ret) {
		swc_account_uncharge(account, SWC_QUOTA_CONNS, 1);
		return ret;
	}
	/* It may outlive the net. */
	conn->account = swc_account_hold(account);
	conn->charged = bytes;
	return 0;
}

/* It takes more memory, until swc_conn_uncharge() or its last reference is put. conn->lock is held. */
int swc_conn_charge_more(struct swc_conn *conn, u32 bytes)
{
	int ret = swc_account_charge(conn->account, SWC_QUOTA_MEMORY, bytes);

	lockdep_assert_held(&conn->lock);
	if (!ret)
		conn->charged += bytes;
	return ret;
}

/* conn->lock is held. */
void swc_conn_uncharge(struct swc_conn *conn, u32 bytes)
{
	lockdep_assert_held(&conn->lock);
	swc_account_uncharge(conn->account, SWC_QUOTA_MEMORY, bytes);
	conn->charged -= bytes;
}

static void conn_free(struct kref *ref)
{
	struct swc_conn *conn = container_of(ref, struct swc_conn, ref);

	struct swc_account *account = conn->account;
	u32 charged = conn->charged;

	conn->transport->conn_free(conn);
	swc_account_uncharge(account, SWC_QUOTA_MEMORY, charged);
	swc_account_uncharge(account, SWC_QUOTA_CONNS, 1);
	swc_account_put(account);
}

void swc_conn_put(struct swc_conn *conn)
{
	kref_put(&conn->ref, conn_free);
}

/* Work item. */
void swc_conn_pump_work(struct work_struct *work)
{
	struct swc_conn *conn = container_of(work, struct swc_conn, pump_work);

	conn->transport->pump(conn, false);
	swc_conn_put(conn);
}

/* transport->pump() by a work item, for callers that hold locks or are in the middle of something. */
void swc_conn_pump_later(struct swc_conn *conn)
{
	kref_get(&conn->ref);
	if (!queue_work(swc_conn_wq(conn), &conn->pump_work))
		swc_conn_put(conn);
}

/* Close the connection after @delay_ms, or sooner if another call asks for that. */
void swc_conn_close(struct swc_conn *conn, unsigned int delay_ms)
{
	unsigned long delay = msecs_to_jiffies(delay_ms);
	bool was_queued;

	kref_get(&conn->ref);
	if (delay)
		was_queued = !queue_delayed_work(swc_conn_wq(conn), &conn->close_work, delay);
	else
		was_queued = mod_delayed_work(swc_conn_wq(conn), &conn->close_work, 0);
	if (was_queued)
		swc_conn_put(conn);	/* the queued work has a reference */
}

/* End an attempt to connect, or the connection. Process context; may sleep. swc_conn_teardown() follows. */
void swc_conn_quiesce(struct swc_conn *conn)
{
	conn->transport->quiesce(conn);
	if (test_and_clear_bit(SWC_CONN_F_PROVEN, &conn->flags))
		swc_stat_inc(SWC_STAT_CONNS_CLOSED);
	spin_lock(&conn->lock);
	conn->to_return = 0;
	conn->probe_open = false;
	memset(conn->offer, 0, sizeof(conn->offer));
	spin_unlock(&conn->lock);
}

/* Free what it used. Process context; may sleep for long. */
void swc_conn_teardown(struct swc_conn *conn)
{
	if (conn->transport->teardown)
		conn->transport->teardown(conn);
}

/* Both sides are authenticated. */
void swc_conn_go_live(struct swc_conn *conn)
{
	bool live, resumed;

	spin_lock(&conn->lock);
	resumed = test_bit(SWC_CONN_F_STARTED, &conn->flags);
	live = swc_conn_set_state(conn, SWC_CONN_CONNECTING, SWC_CONN_LIVE);
	/* Under the lock: when the connection is lost, it is queued again. */
	if (live) {
		cancel_delayed_work(&conn->connect_work);
		conn->nfailed = 0;
		conn->connect_error = NULL;
		/* Nothing that may be sent before the peer's first message would tell that it has died. */
		if (test_bit(SWC_CONN_F_UNHEARD, &conn->flags))
			queue_delayed_work(swc_conn_wq(conn), &conn->connect_work,
					   msecs_to_jiffies(conn->transport->auth_ms()));
	}
	spin_unlock(&conn->lock);
	if (!live)
		return;
	swc_conn_attempt_over(conn);
	swc_path_well(conn, READ_ONCE(conn->via));
	swc_stat_inc(SWC_STAT_CONNS_OPENED);
	if (resumed) {
		swc_stat_inc(SWC_STAT_CONNS_RESUMED);
		swc_net_ops->path_changed(conn->comm, conn->me, conn->channel, conn->peer,
					  READ_ONCE(conn->via), true);
		pr_info_ratelimited("rank %u: connection with rank %u goes on by path %u after %u ms (%s)\n",
				    conn->me, conn->peer, READ_ONCE(conn->via),
				    jiffies_to_msecs(jiffies - conn->lost_at), conn->drop_reason);
	}
	/* Not here: the caller may be a handler that the connection manager waits for. */
	swc_conn_pump_later(conn);
}

/* ------------------------------------------------------------------ failure */

/**
 * swc_conn_card_down() - is a network card of this node the cause?
 * @conn: connection; the caller has a reference on its communicator
 * @text: gets what is wrong with the card, or nothing
 * @bytes: size of @text
 *
 * Return: true if the card is down or gone. A card without carrier is reported in @text only: the peer at
 * the other end of the cable may have lost its power.
 */
bool swc_conn_card_down(const struct swc_conn *conn, char *text, size_t bytes)
{
	int card = READ_ONCE(conn->card);
	struct net_device *dev;
	bool down;

	*text = '\0';
	if (!card)
		return false;
	rcu_read_lock();
	dev = dev_get_by_index_rcu(conn->net->ns, card);
	down = !dev || !netif_running(dev);
	if (!dev)
		scnprintf(text, bytes, "; rank %u's network card is gone", conn->me);
	else if (down)
		scnprintf(text, bytes, "; rank %u's card %s is down: ip link set %s up", conn->me, dev->name,
			  dev->name);
	else if (!netif_carrier_ok(dev))
		scnprintf(text, bytes, "; rank %u's card %s has no carrier: look at both ends of its cable",
			  conn->me, dev->name);
	rcu_read_unlock();
	return down;
}

/**
 * swc_conn_fail() - the connection is unusable: abort the communicator
 * @error: negative errno
 * @fmt: reason
 *
 * Only the first call has an effect. Process context, no locks held.
 */
void swc_conn_fail(struct swc_conn *conn, int error, const char *fmt, ...)
{
	char reason[SWC_TEXT_BYTES / 2], card[SWC_TEXT_BYTES / 2] = "", text[SWC_TEXT_BYTES];
	struct swc_comm *comm = conn->comm;
	bool first, quiet, own = true;
	va_list args;

	spin_lock(&conn->lock);
	first = !test_and_set_bit(SWC_CONN_F_FAILED, &conn->flags);
	/* A rank that has left in order, and its peers, need nothing of each other: it has received all. */
	quiet = !first || conn->state >= SWC_CONN_CLOSING || test_bit(SWC_CONN_F_LEAVING, &conn->flags) ||
		(test_bit(SWC_CONN_F_PEER_LEFT, &conn->flags) && !swc_conn_is_wanted(conn));
	/* The connection may be closed when the lock is dropped. */
	if (!quiet)
		swc_net_ops->get(comm);
	spin_unlock(&conn->lock);
	if (!first)
		return;
	if (!quiet) {
		va_start(args, fmt);
		vscnprintf(reason, sizeof(reason), fmt, args);
		va_end(args);
		/* A device of this node is the fault of no other node. */
		if (error != -ENODEV && error != -EIO)
			own = swc_conn_card_down(conn, card, sizeof(card));
		scnprintf(text, sizeof(text), "rank %u: connection with rank %u: %s%s", conn->me, conn->peer,
			  reason, card);
		swc_net_ops->peer_lost(comm, error, own ? conn->me : conn->peer, swc_net_oldest(conn->net),
				       text);
		swc_net_ops->put(comm);
	}
	/* Only now may it refuse messages: the executor could not say whose fault that is. */
	spin_lock(&conn->lock);
	swc_conn_set_state(conn, conn->state, SWC_CONN_CLOSING);
	spin_unlock(&conn->lock);
	swc_conn_close(conn, 0);
}

/* ------------------------------------------------------------------ attempts to connect */

/* Begin an attempt of the lower rank, or wait until there are fewer of them. Process context. */
void swc_conn_attempt(struct swc_conn *conn)
{
	struct swc_net *net = conn->net;
	bool begin;

	spin_lock(&net->list_lock);
	begin = net->nattempts < ATTEMPTS_MOST;
	net->nattempts += begin;
	conn->attempting = begin;
	if (!begin && list_empty(&conn->turn))
		list_add_tail(&conn->turn, &net->turns);
	spin_unlock(&net->list_lock);
	if (begin)
		conn->transport->connect(conn);
}

/* The first connection that waits for its turn, with a reference, if there is room for an attempt. */
static struct swc_conn *take_turn(struct swc_net *net)
{
	struct swc_conn *conn;

	spin_lock(&net->list_lock);
	conn = net->nattempts < ATTEMPTS_MOST ?
	       list_first_entry_or_null(&net->turns, struct swc_conn, turn) : NULL;
	if (conn) {
		list_del_init(&conn->turn);
		kref_get(&conn->ref);
	}
	spin_unlock(&net->list_lock);
	return conn;
}

/* The attempt, if there is one, has ended, or the connection is being closed. No locks held. */
void swc_conn_attempt_over(struct swc_conn *conn)
{
	struct swc_net *net = conn->net;
	struct swc_conn *next;
	bool queued = false;

	spin_lock(&net->list_lock);
	net->nattempts -= conn->attempting;
	conn->attempting = false;
	list_del_init(&conn->turn);
	spin_unlock(&net->list_lock);
	while (!queued && (next = take_turn(net))) {
		/* Under the lock: closing cancels this work, and it must not be queued after that. */
		spin_lock(&next->lock);
		queued = next->state == SWC_CONN_CONNECTING;
		if (queued)
			mod_delayed_work(swc_conn_wq(next), &next->connect_work, 0);
		spin_unlock(&next->lock);
		swc_conn_put(next);
	}
}

/* How long to wait after the @failed-th failed attempt in a row: longer and longer, but not past @left. */
unsigned long swc_conn_backoff(u32 failed, unsigned long left)
{
	u32 ms = failed < 6 ? RETRY_MS << failed : RETRY_MOST_MS;

	/* The last attempt comes at the deadline. */
	return min(msecs_to_jiffies(ms), left);
}

/*
 * A live connection has been dropped; conn->lock is held. It is resumed by another path if there is one.
 * Otherwise it fails, but not at once: the peer's ABORT may have arrived.
 */
static void drop_live(struct swc_conn *conn, const char *reason)
{
	bool resumes = conn->resumable && !test_bit(SWC_CONN_F_PEER_LEFT, &conn->flags);

	if (reason || !test_bit(SWC_CONN_F_DROPPED, &conn->flags))
		conn->drop_reason = reason ?: "it was cut off";
	set_bit(SWC_CONN_F_DROPPED, &conn->flags);
	mod_delayed_work(swc_conn_wq(conn), &conn->connect_work, resumes ? 0 : msecs_to_jiffies(DROPPED_MS));
}

/*
 * An attempt has failed; conn->lock is held. The lower rank connects again until its deadline, less and less
 * often: a peer may be away for long, and thousands of connections may wait for it. The higher rank only gets
 * ready for the next attempt, at once if it has asked for that. False: the deadline has passed.
 */
static bool try_again(struct swc_conn *conn)
{
	unsigned long now = jiffies, delay = 0;
	bool lower = conn->me < conn->peer;

	if (lower && time_after(now, conn->give_up))
		return false;
	if (lower)
		delay = swc_conn_backoff(conn->nfailed, conn->give_up + 1 - now);
	else if (!test_bit(SWC_CONN_F_STARTED, &conn->flags))
		delay = msecs_to_jiffies(RETRY_MS);
	if (!test_and_set_bit(SWC_CONN_F_MISSED, &conn->flags)) {
		conn->nfailed += lower;
		mod_delayed_work(swc_conn_wq(conn), &conn->connect_work, delay);
	}
	return true;
}

/**
 * swc_conn_retry() - an attempt to connect has failed, or a live connection has been dropped
 * @reason: a constant string; NULL: what has failed is a consequence of what another call tells
 * @detail: error or status, for the text
 *
 * An attempt that fails may be reported several times: a queue pair whose request is refused reports each of
 * its receives. It is one failure.
 */
void swc_conn_retry(struct swc_conn *conn, const char *reason, int detail)
{
	bool lost = detail == -ETIMEDOUT || detail == -EHOSTUNREACH || detail == -ENETUNREACH, late;
	unsigned long gone = jiffies + msecs_to_jiffies(GONE_MS);

	/* Work is queued under the lock: closing cancels it, and it must not be queued after that. */
	spin_lock(&conn->lock);
	/* Before the work item that is queued here chooses another. */
	if (lost || conn->state == SWC_CONN_LIVE)
		swc_path_failed(conn, conn->via);
	if (conn->state == SWC_CONN_LIVE)
		drop_live(conn, reason);
	else if (!reason)
		reason = conn->connect_error ?: "the attempt was cut off";
	else if (conn->state == SWC_CONN_CONNECTING || !test_bit(SWC_CONN_F_STARTED, &conn->flags))
		/* While a path is given up, what comes by it is no failure of an attempt. */
		conn->connect_error = reason;
	/* A connection that was live is not to be resumed any more if the peer's communicator is gone. */
	if (detail == -ECONNREFUSED && test_bit(SWC_CONN_F_STARTED, &conn->flags) &&
	    time_after(conn->give_up, gone))
		conn->give_up = gone;
	late = conn->state == SWC_CONN_CONNECTING && !try_again(conn);
	spin_unlock(&conn->lock);
	swc_conn_attempt_over(conn);
	if (late)
		swc_conn_fail(conn, -ETIMEDOUT, "%s (%d)", reason, detail);
}
