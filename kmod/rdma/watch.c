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
