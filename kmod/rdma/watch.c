// SPDX-License-Identifier: GPL-2.0-only
/*
 * Silent peers: when to probe them, and whether they have received what was sent.
 */
#include "rdma/rdma.h"

/*
 * Idle seconds until a probe: a quarter of the time after which a device gives up a peer; less is of no
 * use.
 */
static u32 probe_s(void)
{
	return DIV_ROUND_UP(swc_cm_answer_ms(7), 4 * MSEC_PER_SEC);
}

/* Transport operation. A probe that the peer's device does not acknowledge ends the connection. */
u32 swc_rdma_watch(struct swc_conn *base, bool active)
{
	struct swc_sq *sq = &swc_rdma_conn(base)->sq;
	u32 pending = 0;

	lockdep_assert_held(&base->lock);
	base->idle_s = active && sq->head == sq->seen_head ? base->idle_s + 1 : 0;
	sq->seen_head = sq->head;
	if (base->idle_s && base->idle_s % probe_s() == 0)
		pending |= SWC_PEND_KEEPALIVE;
	if (is_power_of_2(base->idle_s) && !list_empty(&base->outq))
		pending |= SWC_PEND_RTS;
	/* One probe at a time: another message makes some devices restart the timer of those before it. */
	if ((s32)(sq->tail - sq->probe_head) < 0)
		pending = 0;
	else
		sq->probe_head = sq->tail;
	if (sq->map_failing_s)
		sq->map_failing_s++;
	return pending;
}

/* Transport operation. */
bool swc_rdma_wants_pump(const struct swc_conn *base)
{
	return container_of(base, struct swc_rdma_conn, base)->sq.map_failing_s;
}

/* Transport operation. */
bool swc_rdma_all_received(const struct swc_conn *base)
{
	return swc_sq_is_idle(&container_of(base, struct swc_rdma_conn, base)->sq);
}
