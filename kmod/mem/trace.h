/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints of regions. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM swingcoll

#if !defined(SWC_MEM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SWC_MEM_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(swc_region_pin,
	TP_PROTO(u64 addr, u64 bytes, u64 pages, u32 extents),
	TP_ARGS(addr, bytes, pages, extents),
	TP_STRUCT__entry(
		__field(u64, addr)
		__field(u64, bytes)
		__field(u64, pages)
		__field(u32, extents)
	),
	TP_fast_assign(
		__entry->addr = addr;
		__entry->bytes = bytes;
		__entry->pages = pages;
		__entry->extents = extents;
	),
	TP_printk("addr=%#llx bytes=%llu pages=%llu extents=%u", __entry->addr, __entry->bytes,
		  __entry->pages, __entry->extents)
);

#endif /* SWC_MEM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH mem
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
