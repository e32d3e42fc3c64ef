// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that have failed: what that says of the connection.
 */
#include "rdma/rdma.h"

/*
 * Only requests of this node to its own device lead to these. IB_WC_LOC_QP_OP_ERR is not among them: rxe
 * reports it when a link is down, and swc_conn_fail() finds that out.
 */
static bool is_own_fault(enum ib_wc_status status)
{
	return status == IB_WC_LOC_PROT_ERR || status == IB_WC_MW_BIND_ERR || status == IB_WC_FATAL_ERR;
}

/* What the loss of the path leads to, or the end of the peer's queue pair. */
static bool is_lost(enum ib_wc_status status)
{
	return status == IB_WC_RETRY_EXC_ERR || status == IB_WC_RNR_RETRY_EXC_ERR ||
	       status == IB_WC_RESP_TIMEOUT_ERR || status == IB_WC_LOC_QP_OP_ERR;
}

/*
 * A request has failed. Requests of a connection that is taken apart are flushed; those of a live one
 * only when the peer broke a rule, such as writing to memory that it was not offered, and nothing else
 * reports that.
 */
void swc_wc_failed(struct swc_rdma_conn *conn, const struct ib_wc *wc)
{
	/* A peer that is not authenticated can only spoil its own attempt. */
	if (!test_bit(SWC_CONN_F_PROVEN, &conn->base.flags))
		swc_conn_retry(&conn->base,
			       wc->status == IB_WC_WR_FLUSH_ERR ? NULL : ib_wc_status_msg(wc->status), 0);
	else if (conn->base.resumable && is_lost(wc->status))
		swc_conn_retry(&conn->base, ib_wc_status_msg(wc->status), -ETIMEDOUT);
	else if (wc->status != IB_WC_WR_FLUSH_ERR)
		swc_conn_fail(&conn->base, is_own_fault(wc->status) ? -EIO : -ECONNRESET, "%s",
			      ib_wc_status_msg(wc->status));
	else if (READ_ONCE(conn->base.state) == SWC_CONN_LIVE)
		swc_conn_retry(&conn->base, ib_wc_status_msg(wc->status), 0);
}
