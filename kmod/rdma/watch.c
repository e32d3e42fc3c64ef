// SPDX-License-Identifier: GPL-2.0-only
/*
 * Silent peers: when to probe them, and whether they have received what was sent.
 */
#include "rdma/rdma.h"

/* Milliseconds after which a device gives up a peer. */
static u32 limit_ms(void)
{
	return swc_cm_answer_ms(7);
}

/* Transport operation: a quarter of that; less is of no use. */
u32 swc_rdma_probe_s(void)
{
	return DIV_ROUND_UP(limit_ms(), 4 * MSEC_PER_SEC);
}

/*
 * A device reports what the peer does not acknowledge. That of Linux 6.1's rxe may not: it tries to repeat a
 * registration, fails, and says nothing. So a request that must be reported and is not for longer than any
 * device takes is the loss of the path, too.
 */
static void watch_device(struct swc_rdma_conn *conn)
{
	struct swc_sq *sq = &conn->sq;
	bool awaited = (s32)(sq->tail - sq->probe_head) < 0 || swc_sq_is_full(conn);

	sq->stalled_s = awaited && sq->tail == sq->seen ? sq->stalled_s + 1 : 0;
	sq->seen = sq->tail;
	if (sq->stalled_s <= swc_cm_answer_ms(8) / MSEC_PER_SEC + 1)
		return;
	sq->stalled_s = 0;
	swc_resume_drop(&conn->base, "the RDMA device does not tell what has become of requests");
}

/*
 * Transport operation. One probe at a time: another message makes some devices restart the timer of those
 * before it.
 */
bool swc_rdma_watch(struct swc_conn *base)
{
	struct swc_rdma_conn *conn = swc_rdma_conn(base);
	struct swc_sq *sq = &conn->sq;

	lockdep_assert_held(&base->lock);
	/* Perhaps memory can be mapped now. */
	if (sq->map_failing_s) {
		sq->map_failing_s++;
		swc_conn_pump_later(base);
	}
	/* A process that has been stopped may have been given the completions. */
	if (conn->cq)
		swc_cq_take_back(conn->cq);
	watch_device(conn);
	if (conn->iwarp && !swc_iwarp_watch(conn, DIV_ROUND_UP(limit_ms(), MSEC_PER_SEC)))
		return false;
	if ((s32)(sq->tail - sq->probe_head) < 0)
		return false;
	sq->probe_head = sq->tail;
	return true;
}

/* Transport operation. */
bool swc_rdma_all_received(const struct swc_conn *base)
{
	const struct swc_rdma_conn *conn = container_of(base, struct swc_rdma_conn, base);

	return conn->iwarp ? swc_iwarp_all_received(conn) : swc_sq_is_idle(&conn->sq);
}
