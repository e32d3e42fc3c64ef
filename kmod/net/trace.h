/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints of connections. @from, @to: enum swc_conn_state (net/conn.h); @via: the path that carries the
 * connection, or the attempt; @path: the one that it is named after.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM swingcoll

#if !defined(SWC_NET_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SWC_NET_TRACE_H

#include <linux/tracepoint.h>

#include "net/conn.h"

TRACE_DEFINE_ENUM(SWC_CONN_IDLE);
TRACE_DEFINE_ENUM(SWC_CONN_CONNECTING);
TRACE_DEFINE_ENUM(SWC_CONN_RESETTING);
TRACE_DEFINE_ENUM(SWC_CONN_LIVE);
TRACE_DEFINE_ENUM(SWC_CONN_CLOSING);
TRACE_DEFINE_ENUM(SWC_CONN_CLOSED);

TRACE_EVENT(swc_conn_state,
	TP_PROTO(const struct swc_conn *conn, u32 from, u32 to),
	TP_ARGS(conn, from, to),
	TP_STRUCT__entry(
		__field(u32, rank)
		__field(u32, peer)
		__field(u16, channel)
		__field(u16, path)
		__field(u16, via)
		__field(u16, from)
		__field(u16, to)
	),
	TP_fast_assign(
		__entry->rank = conn->me;
		__entry->peer = conn->peer;
		__entry->channel = conn->channel;
		__entry->path = conn->path;
		__entry->via = conn->via;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("rank=%u peer=%u channel=%u path=%u via=%u %s -> %s", __entry->rank, __entry->peer,
		  __entry->channel, __entry->path, __entry->via,
		  __print_symbolic(__entry->from, SWC_CONN_STATE_NAMES),
		  __print_symbolic(__entry->to, SWC_CONN_STATE_NAMES))
);

#endif /* SWC_NET_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH net
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
