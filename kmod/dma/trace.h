/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints of DMA jobs. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM swingcoll

#if !defined(SWC_DMA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SWC_DMA_TRACE_H

#include <linux/tracepoint.h>

#include "dma/engine.h"

TRACE_DEFINE_ENUM(SWC_DMA_NO_MAPPING);
TRACE_DEFINE_ENUM(SWC_DMA_BUSY);
TRACE_DEFINE_ENUM(SWC_DMA_NO_DESCRIPTOR);
TRACE_DEFINE_ENUM(SWC_DMA_CHANNEL_ERROR);
TRACE_DEFINE_ENUM(SWC_DMA_NO_ANSWER);

TRACE_EVENT(swc_dma_fallback,
	TP_PROTO(u64 bytes, u32 channels, int reason),
	TP_ARGS(bytes, channels, reason),
	TP_STRUCT__entry(
		__field(u64, bytes)
		__field(u32, channels)
		__field(int, reason)
	),
	TP_fast_assign(
		__entry->bytes = bytes;
		__entry->channels = channels;
		__entry->reason = reason;
	),
	TP_printk("bytes=%llu channels=%u reason=%s", __entry->bytes, __entry->channels,
		  __print_symbolic(__entry->reason, { SWC_DMA_NO_MAPPING, "no mapping" },
				   { SWC_DMA_BUSY, "busy" },
				   { SWC_DMA_NO_DESCRIPTOR, "no descriptor" },
				   { SWC_DMA_CHANNEL_ERROR, "channel error" },
				   { SWC_DMA_NO_ANSWER, "no answer" }))
);

#endif /* SWC_DMA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH dma
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
