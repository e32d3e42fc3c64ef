// SPDX-License-Identifier: GPL-2.0-only
/*
 * iWARP: where its devices differ from those of InfiniBand and RoCE. A connection is of one kind at both
 * ends.
 *
 * A request completes when TCP has taken its data; that does not say that the peer is alive, or has received
 * anything. A read completes by the peer's answer, which is sent when all before the read has arrived. So a
 * read of no bytes, which needs no memory at either end, does what acknowledgements do elsewhere: it is the
 * probe of a silent peer, and it tells a rank that leaves, or aborts, when it may close the connection. If
 * the connection may go on by another path, it also tells which requests need not be kept for that
 * (replay.c). Then a read follows where otherwise a request would be signaled (sq.c): behind each that
 * something waits for, and behind a few of the others.
 *
 * There is one at a time. It has no entry of the send queue, because requests that were posted later may
 * complete before it.
 */
#include "rdma/rdma.h"

/* What a peer must not check for a read of no bytes; some devices take 0 for a special key. */
#define ANY_KEY	1

/*
 * Must the request be signaled? Software that lets TCP send out of the memory of large requests copies it if
 * they are: only then may the memory change when they, or requests after them, are complete.
 */
bool swc_iwarp_must_signal(const struct ib_send_wr *wr)
{
	u32 bytes = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes >= PAGE_SIZE;
}

/*
 * Do requests stay in the send queue until a read tells that they have arrived? A peer that has left has
 * received all that it needs; it does not answer any more, and the connection does not go on.
 */
bool swc_iwarp_keeps(const struct swc_rdma_conn *conn)
{
	return conn->iwarp && conn->base.resumable && !test_bit(SWC_CONN_F_PEER_LEFT, &conn->base.flags);
}

/*
 * A probe need not be a message, which would take a receive, unless it is the first of this queue pair: the
 * peer waits for that if the connection can be resumed (SWC_CONN_F_UNHEARD). conn->base.lock is held.
 */
void swc_iwarp_take_probe(struct swc_rdma_conn *conn)
{
	bool is_first = conn->base.resumable && !conn->sq.head;

	lockdep_assert_held(&conn->base.lock);
	if (!conn->iwarp || is_first || !(conn->base.pending & SWC_PEND_KEEPALIVE))
		return;
	conn->base.pending &= ~SWC_PEND_KEEPALIVE;
	conn->ack.wanted = true;
}

bool swc_iwarp_all_received(const struct swc_rdma_conn *conn)
{
	return conn->ack.received == conn->sq.head && !conn->sq.nreplay;
}

/* Has this rank sent the last that the peer has to know? */
static bool is_ending(const struct swc_conn *conn)
{
	return test_bit(SWC_CONN_F_ABORT_SENT, &conn->flags) ||
	       (test_bit(SWC_CONN_F_LEAVING, &conn->flags) && !(conn->pending & SWC_PEND_FIN));
}

/* Post a read if one is wanted. conn->base.lock is held. */
void swc_iwarp_ask(struct swc_rdma_conn *conn)
{
	struct ib_sge sge = {};	/* no address: it would cross the network */
	struct ib_rdma_wr wr = {
		.wr = { .wr_cqe = &conn->ack.cqe, .sg_list = &sge, .num_sge = 1,
			.opcode = IB_WR_RDMA_READ, .send_flags = IB_SEND_SIGNALED },
		.rkey = ANY_KEY,
	};
	struct swc_ack *ack = &conn->ack;
	int ret;

	lockdep_assert_held(&conn->base.lock);
	if (!conn->iwarp || conn->base.state != SWC_CONN_LIVE || conn->sq.error)
		return;
	if (ack->is_lost) {
		conn->sq.error = -ETIMEDOUT;
		return;
	}
	if (ack->is_posted || !(ack->wanted || (is_ending(&conn->base) && !swc_iwarp_all_received(conn))))
		return;
	sge.lkey = conn->pd->local_dma_lkey;
	ret = ib_post_send(conn->id->qp, &wr.wr, NULL);
	if (ret) {
		conn->sq.error = ret;
		return;
	}
	ack->wanted = false;
	ack->is_posted = true;
	ack->head = conn->sq.head;
	ack->silent_s = 0;
}

/*
 * Half of the send queue has been posted, and not all that is to be: its room comes back while the other half
 * is sent. conn->base.lock is held.
 */
void swc_iwarp_ask_early(struct swc_rdma_conn *conn)
{
	if (conn->ack.wanted && conn->sq.head - conn->ack.received >= SWC_SQ_DEPTH / 2)
		swc_iwarp_ask(conn);
}

/* The read is complete. Returns the head of the send queue when it was posted. conn->base.lock is held. */
u32 swc_iwarp_answered(struct swc_rdma_conn *conn)
{
	lockdep_assert_held(&conn->base.lock);
	conn->ack.is_posted = false;
	conn->ack.received = conn->ack.head;
	return conn->ack.received;
}

/*
 * Once a second: TCP would wait for a silent peer for many minutes. It is lost when it has neither answered
 * the read nor sent anything for so long. conn->base.lock is held. Returns whether it may be probed.
 */
bool swc_iwarp_watch(struct swc_rdma_conn *conn, u32 limit_s)
{
	u32 nreceived = READ_ONCE(conn->nreceived);
	struct swc_ack *ack = &conn->ack;

	lockdep_assert_held(&conn->base.lock);
	if (!ack->is_posted)
		return true;
	ack->silent_s = nreceived == ack->nreceived ? ack->silent_s + 1 : 0;
	ack->nreceived = nreceived;
	if (ack->silent_s > limit_s && !ack->is_lost) {
		ack->is_lost = true;
		swc_conn_pump_later(&conn->base);
	}
	return false;
}

/* The queue pair is gone. conn->base.lock is held. */
void swc_iwarp_reset(struct swc_rdma_conn *conn)
{
	struct swc_ack *ack = &conn->ack;

	lockdep_assert_held(&conn->base.lock);
	ack->wanted = false;
	ack->is_posted = false;
	ack->is_lost = false;
	ack->head = 0;
	ack->received = 0;
}
