// SPDX-License-Identifier: GPL-2.0-only
/*
 * A connection that has lost its path goes on by another. Its transport keeps what was sent and may not have
 * arrived, and makes that exact (tcp/stream.c); here is who does what, and for how long.
 *
 * A connection is LIVE until it is dropped: its transport reports an error, its card goes down, or the peer
 * has lost it. It is RESETTING while the transport gives the path up, then CONNECTING at the lower rank,
 * whose attempts take one path after the other, and IDLE at the higher one, which waits for them. The higher
 * one may be the first to know; so from IDLE it, too, is CONNECTING now and then, to ask the lower one for an
 * attempt. If that does not bring the connection to life in time, the communicator is aborted, as it is at
 * once where there is no other path.
 */
#include "net/conn.h"

/* An attempt without an answer by one path gives way to one by another, at first after so long. */
#define ATTEMPT_MS	1000
/* The higher rank asks for an attempt after so long, as the lower one mostly knows; then less often. */
#define ASK_MS		50
#define ASK_AGAIN_MS	1000

/* Does either side need the connection any more? conn->lock is held. */
static bool is_needed(const struct swc_conn *conn)
{
	return !READ_ONCE(conn->net->aborted) && !test_bit(SWC_CONN_F_FAILED, &conn->flags) &&
	       !test_bit(SWC_CONN_F_PEER_LEFT, &conn->flags) &&
	       (!test_bit(SWC_CONN_F_LEAVING, &conn->flags) || swc_conn_has_unsent(conn));
}

/*
 * The lower rank knows when it has lost the path, and then has its time. The higher one waits for that, and
 * for the other to notice: it probes the peer, and waits for what that has to acknowledge.
 */
static unsigned long time_to_resume(const struct swc_conn *conn)
{
	const struct swc_transport *t = conn->transport;
	u32 ms = *t->resume_ms;

	if (conn->me > conn->peer)
		ms += t->auth_ms() + 2 * MSEC_PER_SEC * t->probe_s();
	return msecs_to_jiffies(ms);
}

static void drop(struct swc_conn *conn, const char *reason)
{
	if (conn->state != SWC_CONN_LIVE)
		return;
	conn->drop_reason = reason;
	set_bit(SWC_CONN_F_DROPPED, &conn->flags);
	mod_delayed_work(swc_conn_wq(conn), &conn->connect_work, 0);
}

/**
 * swc_resume_drop() - a live connection is lost; conn->lock is held
 * @reason: a constant string
 *
 * Nothing happens to a connection that cannot be resumed: who says so does not decide that it fails.
 */
void swc_resume_drop(struct swc_conn *conn, const char *reason)
{
	lockdep_assert_held(&conn->lock);
	if (!conn->resumable || conn->state != SWC_CONN_LIVE)
		return;
	swc_path_failed(conn, READ_ONCE(conn->via));
	drop(conn, reason);
}

/**
 * swc_resume_replaced() - the peer has begun another attempt by itself; conn->lock is held
 *
 * It may have lost the path, or only returns to its own: this one is as well as before.
 */
void swc_resume_replaced(struct swc_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (conn->resumable)
		drop(conn, "it has connected again");
}

/**
 * swc_resume_begin() - resume a connection that was dropped; conn->lock is held
 *
 * Return: false if that is not possible, or nobody needs it, and it fails.
 */
bool swc_resume_begin(struct swc_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (!conn->resumable || !is_needed(conn) ||
	    !swc_conn_set_state(conn, SWC_CONN_LIVE, SWC_CONN_RESETTING))
		return false;
	clear_bit(SWC_CONN_F_DROPPED, &conn->flags);
	conn->lost_at = jiffies;
	if (!test_bit(SWC_CONN_F_LEAVING, &conn->flags))
		conn->give_up = jiffies + time_to_resume(conn);
	return true;
}

/**
 * swc_resume_suspend() - give up the path, or the attempt
 *
 * May sleep. Return: false if what had arrived by it makes the connection useless, and it has failed.
 */
bool swc_resume_suspend(struct swc_conn *conn)
{
	bool needed;

	conn->transport->suspend(conn);
	if (test_and_clear_bit(SWC_CONN_F_PROVEN, &conn->flags))
		swc_stat_inc(SWC_STAT_CONNS_CLOSED);
	spin_lock(&conn->lock);
	needed = !test_bit(SWC_CONN_F_STARTED, &conn->flags) || is_needed(conn);
	spin_unlock(&conn->lock);
	if (!needed)
		swc_conn_fail(conn, -ECONNRESET, "it has disconnected (%s)", conn->drop_reason);
	return needed;
}

/* Has the lower rank lost the connection so long ago that it gives up? Others wait, and then do so. */
static bool is_late(const struct swc_conn *conn)
{
	return conn->me < conn->peer && test_bit(SWC_CONN_F_STARTED, &conn->flags) &&
	       time_after(jiffies, conn->give_up);
}

/*
 * How long may an attempt take? Longer and longer: a peer that is slow must not be taken for one that does
 * not answer, again and again.
 */
static unsigned long attempt_time(const struct swc_conn *conn)
{
	unsigned long least = msecs_to_jiffies(ATTEMPT_MS);

	return test_bit(SWC_CONN_F_STARTED, &conn->flags) ? max(least, (jiffies - conn->lost_at) / 2) : least;
}

/*
 * Begin an attempt by the best path, or the higher rank's, which asks for one. If it takes long, the next one
 * follows.
 */
void swc_resume_connect(struct swc_conn *conn)
{
	if (is_late(conn)) {
		swc_conn_fail(conn, -ECONNRESET,
			      "it left its path (%s), and the peer does not answer by any path",
			      conn->drop_reason);
		return;
	}
	if (test_bit(SWC_CONN_F_STARTED, &conn->flags))
		swc_path_given_up(conn, conn->via);
	WRITE_ONCE(conn->via, swc_path_choose(conn));
	if (test_bit(SWC_CONN_F_STARTED, &conn->flags) || conn->me > conn->peer) {
		swc_path_tried(conn, conn->via);
		spin_lock(&conn->lock);
		if (conn->state == SWC_CONN_CONNECTING)
			mod_delayed_work(swc_conn_wq(conn), &conn->connect_work, attempt_time(conn));
		spin_unlock(&conn->lock);
		conn->transport->connect(conn);
	} else {
		swc_conn_attempt(conn);
	}
}

/* The higher rank waits for the next attempt, and asks for it after a while; conn->lock is held. */
void swc_resume_await(struct swc_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (test_bit(SWC_CONN_F_STARTED, &conn->flags))
		mod_delayed_work(swc_conn_wq(conn), &conn->connect_work,
				 msecs_to_jiffies(conn->nfailed++ ? ASK_AGAIN_MS : ASK_MS));
}

/* Does the higher rank wait for a connection that has never been live? conn->lock is held. */
bool swc_resume_may_ask(const struct swc_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	return conn->state == SWC_CONN_IDLE && conn->me > conn->peer &&
	       !test_bit(SWC_CONN_F_STARTED, &conn->flags) && is_needed(conn);
}

/* The higher rank has waited: is it time to ask for an attempt, or to give up? */
void swc_resume_ask(struct swc_conn *conn)
{
	bool late, ask;

	spin_lock(&conn->lock);
	late = conn->state == SWC_CONN_IDLE && test_bit(SWC_CONN_F_STARTED, &conn->flags);
	ask = late && time_before(jiffies, conn->give_up);
	late &= !ask;
	if (ask || swc_resume_may_ask(conn))
		ask = swc_conn_set_state(conn, SWC_CONN_IDLE, SWC_CONN_CONNECTING);
	spin_unlock(&conn->lock);
	if (late)
		swc_conn_fail(conn, -ECONNRESET,
			      "it left its path (%s), and the peer has not connected again",
			      conn->drop_reason);
	else if (ask)
		swc_resume_connect(conn);
}

/*
 * Work item: does a path answer that has failed? If it is the connection's own, carried by another, it
 * returns to it. The connection may be lost meanwhile, and goes on: so this is no part of connect_work.
 */
void swc_resume_path_work(struct work_struct *work)
{
	struct swc_conn *conn = container_of(work, struct swc_conn, path_work);
	u32 node = conn->net->params.rank_node[conn->peer];
	bool claimed, answers;
	int path;

	path = swc_path_to_ask(conn, &claimed);
	if (path < 0)
		return;
	answers = conn->transport->answers(conn, swc_net_path(conn->net, node, path));
	swc_path_asked(conn, path, claimed, answers);
	if (!answers || path != conn->path || conn->me > conn->peer)
		return;
	spin_lock(&conn->lock);
	/* One whose peer has left would not go on. */
	if (!test_bit(SWC_CONN_F_DROPPED, &conn->flags) && !test_bit(SWC_CONN_F_PEER_LEFT, &conn->flags) &&
	    conn->via != path)
		drop(conn, "its own path is well again");
	spin_unlock(&conn->lock);
}

/**
 * swc_resume_from() - the peer has received so much, in state CONNECTING
 *
 * Return: 0; -EPROTO if that cannot be, and the connection has failed.
 */
int swc_resume_from(struct swc_conn *conn, u64 received)
{
	int ret = received ? -EPROTO : 0;

	if (conn->transport->resume)
		ret = conn->transport->resume(conn, received);
	if (ret)
		swc_conn_fail(conn, ret,
			      "its count of received data does not match what was sent: load the same module on both nodes");
	return ret;
}

/* How much of what the peer has sent has arrived. */
u64 swc_resume_received(const struct swc_conn *conn)
{
	return conn->transport->received ? conn->transport->received(conn) : 0;
}
