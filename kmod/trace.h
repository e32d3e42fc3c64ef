/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints (perf trace -e 'swingcoll:*'): every change of state, and every step. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM swingcoll

#if !defined(SWC_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SWC_TRACE_H

#include <linux/tracepoint.h>

#include "exec/task.h"
#include "dma.h"
#include "plan/plan.h"

TRACE_EVENT(swc_join,
	TP_PROTO(const struct swc_member *member),
	TP_ARGS(member),
	TP_STRUCT__entry(
		__field(u64, comm)
		__field(u32, rank)
		__field(u32, nranks)
	),
	TP_fast_assign(
		__entry->comm = member->comm->number;
		__entry->rank = member->rank;
		__entry->nranks = member->comm->nranks;
	),
	TP_printk("comm=%llu rank=%u nranks=%u", __entry->comm, __entry->rank, __entry->nranks)
);

TRACE_EVENT(swc_abort,
	TP_PROTO(const struct swc_comm *comm),
	TP_ARGS(comm),
	TP_STRUCT__entry(
		__field(u64, comm)
		__field(u64, seq)
		__field(int, error)
		__field(int, culprit)
	),
	TP_fast_assign(
		__entry->comm = comm->number;
		__entry->seq = comm->error_seq;
		__entry->error = comm->error;
		__entry->culprit = comm->culprit;
	),
	TP_printk("comm=%llu seq=%llu error=%d culprit=%d", __entry->comm, __entry->seq,
		  __entry->error, __entry->culprit)
);

TRACE_EVENT(swc_plan_load,
	TP_PROTO(const struct swc_member *member, const struct swc_plan *plan),
	TP_ARGS(member, plan),
	TP_STRUCT__entry(
		__field(u64, comm)
		__field(u32, rank)
		__field(u32, plan)
		__field(u32, steps)
		__array(char, algo, SWC_NAME_BYTES)
	),
	TP_fast_assign(
		__entry->comm = member->comm->number;
		__entry->rank = member->rank;
		__entry->plan = plan->handle;
		__entry->steps = plan->view.hdr->nsteps;
		memcpy(__entry->algo, plan->view.hdr->name, SWC_NAME_BYTES);
	),
	TP_printk("comm=%llu rank=%u plan=%u algo=%s steps=%u", __entry->comm, __entry->rank,
		  __entry->plan, __entry->algo, __entry->steps)
);

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

TRACE_EVENT(swc_submit,
	TP_PROTO(const struct swc_op *op, u32 rank),
	TP_ARGS(op, rank),
	TP_STRUCT__entry(
		__field(u64, comm)
		__field(u64, seq)
		__field(u32, rank)
		__field(u32, arrived)
	),
	TP_fast_assign(
		__entry->comm = op->comm->number;
		__entry->seq = op->seq;
		__entry->rank = rank;
		__entry->arrived = op->narrived;
	),
	TP_printk("comm=%llu seq=%llu rank=%u arrived=%u", __entry->comm, __entry->seq,
		  __entry->rank, __entry->arrived)
);

TRACE_EVENT(swc_start,
	TP_PROTO(const struct swc_op *op),
	TP_ARGS(op),
	TP_STRUCT__entry(
		__field(u64, comm)
		__field(u64, seq)
		__field(u64, bytes)
		__field(u8, coll)
	),
	TP_fast_assign(
		__entry->comm = op->comm->number;
		__entry->seq = op->seq;
		__entry->bytes = op->bytes;
		__entry->coll = op->desc.coll;
	),
	TP_printk("comm=%llu seq=%llu coll=%u bytes=%llu", __entry->comm, __entry->seq,
		  __entry->coll, __entry->bytes)
);

TRACE_EVENT(swc_step,
	TP_PROTO(const struct swc_part *part, u32 channel, u32 step, u32 kind),
	TP_ARGS(part, channel, step, kind),
	TP_STRUCT__entry(
		__field(u64, comm)
		__field(u64, seq)
		__field(u32, rank)
		__field(u32, channel)
		__field(u32, step)
		__field(u32, kind)
	),
	TP_fast_assign(
		__entry->comm = part->op->comm->number;
		__entry->seq = part->op->seq;
		__entry->rank = part->member->rank;
		__entry->channel = channel;
		__entry->step = step;
		__entry->kind = kind;
	),
	TP_printk("comm=%llu seq=%llu rank=%u channel=%u step=%u kind=%u", __entry->comm,
		  __entry->seq, __entry->rank, __entry->channel, __entry->step, __entry->kind)
);

TRACE_EVENT(swc_complete,
	TP_PROTO(const struct swc_part *part),
	TP_ARGS(part),
	TP_STRUCT__entry(
		__field(u64, comm)
		__field(u64, seq)
		__field(u32, rank)
		__field(int, result)
		__field(int, culprit)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->comm = part->op->comm->number;
		__entry->seq = part->op->seq;
		__entry->rank = part->member->rank;
		__entry->result = part->result;
		__entry->culprit = part->culprit;
		__entry->ns = part->finished_at - part->submitted_at;
	),
	TP_printk("comm=%llu seq=%llu rank=%u result=%d culprit=%d ns=%llu", __entry->comm,
		  __entry->seq, __entry->rank, __entry->result, __entry->culprit, __entry->ns)
);

TRACE_DEFINE_ENUM(SWC_DMA_NO_MAPPING);
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
				   { SWC_DMA_NO_DESCRIPTOR, "no descriptor" },
				   { SWC_DMA_CHANNEL_ERROR, "channel error" },
				   { SWC_DMA_NO_ANSWER, "no answer" }))
);

#endif /* SWC_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
