/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints (perf trace -e 'swingcoll:*').
 *
 * Names are swc_OBJECT_VERB, with the verb in its base form; events of an operation leave the object out:
 * match, start, step, complete. swc_step is recorded each time that a worker begins or resumes a step.
 * Fields: comm is the number of the communicator, seq that of the operation on it, culprit the rank at fault
 * or -1; error and result are 0 or a negative errno.
 *
 * Events of regions, of DMA jobs and of connections: mem/trace.h, dma/trace.h, net/trace.h.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM swingcoll

#if !defined(SWC_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SWC_TRACE_H

#include <linux/tracepoint.h>

#include "exec/operation.h"
#include "plan/plan.h"

TRACE_EVENT(swc_comm_create,
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

TRACE_EVENT(swc_comm_abort,
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

TRACE_EVENT(swc_match,
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
		__entry->coll = op->sig.coll;
	),
	TP_printk("comm=%llu seq=%llu coll=%u bytes=%llu", __entry->comm, __entry->seq,
		  __entry->coll, __entry->bytes)
);

TRACE_EVENT(swc_step,
	TP_PROTO(const struct swc_req *req, u32 channel, u32 step, u32 kind),
	TP_ARGS(req, channel, step, kind),
	TP_STRUCT__entry(
		__field(u64, comm)
		__field(u64, seq)
		__field(u32, rank)
		__field(u32, channel)
		__field(u32, step)
		__field(u32, kind)
	),
	TP_fast_assign(
		__entry->comm = req->op->comm->number;
		__entry->seq = req->op->seq;
		__entry->rank = req->member->rank;
		__entry->channel = channel;
		__entry->step = step;
		__entry->kind = kind;
	),
	TP_printk("comm=%llu seq=%llu rank=%u channel=%u step=%u kind=%u", __entry->comm,
		  __entry->seq, __entry->rank, __entry->channel, __entry->step, __entry->kind)
);

TRACE_EVENT(swc_complete,
	TP_PROTO(const struct swc_req *req),
	TP_ARGS(req),
	TP_STRUCT__entry(
		__field(u64, comm)
		__field(u64, seq)
		__field(u32, rank)
		__field(int, result)
		__field(int, culprit)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->comm = req->op->comm->number;
		__entry->seq = req->op->seq;
		__entry->rank = req->member->rank;
		__entry->result = req->result;
		__entry->culprit = req->culprit;
		__entry->ns = req->finished_at - req->submitted_at;
	),
	TP_printk("comm=%llu seq=%llu rank=%u result=%d culprit=%d ns=%llu", __entry->comm,
		  __entry->seq, __entry->rank, __entry->result, __entry->culprit, __entry->ns)
);

#endif /* SWC_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
