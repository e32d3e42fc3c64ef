// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parts: turning one rank's descriptor into something that can run, and telling the rank how it ended.
 *
 * swc_part_create() does all that can fail or sleep (looking up, pinning, allocating) before the operation
 * takes its place in the sequence; after that nothing of a part can fail. It runs in the submitter's context.
 */
#include <linux/bitmap.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "core/desc_check.h"
#include "core/reduce.h"
#include "mem/context.h"
#include "dma.h"
#include "comm/error.h"
#include "exec/request.h"
#include "plan/plan.h"
#include "mem/region.h"
#include "mem/completion_ring.h"
#include "trace.h"

/* ------------------------------------------------------------------ buffers */

static int explain_memlock(struct swc_member *member, int ret, u64 bytes)
{
	if (ret == -ENOMEM)
		swc_fault_note(member->comm, ret, member->rank, member->submitted,
			      "rank %u: cannot pin %llu KiB with RLIMIT_MEMLOCK at %lu KiB: raise it (ulimit -l, LimitMEMLOCK=) or run with CAP_IPC_LOCK",
			      member->rank, bytes >> 10, rlimit(RLIMIT_MEMLOCK) >> 10);
	return ret;
}

/* Find or register the memory behind one of the user's two buffers. */
static int take_user_buffer(struct swc_part *part, enum swc_buf which, u64 addr, u32 handle)
{
	struct swc_part_buf *b = &part->buf[which];
	struct swc_region *region;
	u64 end;

	if (!b->bytes)
		return 0;
	if (handle) {
		region = swc_region_by_handle(part->ctx, handle);
		if (!region)
			return -ENOENT;
		b->region = region;
		b->offset = addr;
		if (check_add_overflow(addr, b->bytes, &end) || end > region->bytes)
			return -EFAULT;
		/* The address that counts for alignment is the memory's. */
		if ((region->addr + addr) & (swc_dtype_size(part->desc.dtype) - 1))
			return -EINVAL;
		return 0;
	}
	region = swc_region_get(part->ctx, addr, b->bytes);
	if (IS_ERR(region))
		return explain_memlock(part->member, PTR_ERR(region), b->bytes);
	b->region = region;
	b->offset = addr - region->addr;
	return 0;
}

/* Same memory block by block, or disjoint; anything between gives garbage and is refused. */
static int check_aliasing(const struct swc_part *part)
{
	const struct swc_part_buf *s = &part->buf[SWC_BUF_SEND], *r = &part->buf[SWC_BUF_RECV];
	u64 sa, ra;

	if (!s->bytes || !r->bytes)
		return 0;
	sa = s->region->addr + s->offset;
	ra = r->region->addr + r->offset;
	if (sa >= ra + r->bytes || ra >= sa + s->bytes)
		return 0;
	if (sa - s->start != ra - r->start)
		return -EINVAL;
	return part->plan->view.hdr->flags & SWC_PLAN_NOT_IN_PLACE ? -EINVAL : 0;
}

static int take_buffers(struct swc_part *part)
{
	const struct swc_plan_header *h = part->plan->view.hdr;
	const struct swc_desc *d = &part->desc;
	struct swc_region *scratch;
	int i, ret;

	for (i = 0; i < SWC_BUF_NR; i++) {
		part->buf[i].start = swc_blocks_offset(&part->blocks, h->window[i].first_block);
		part->buf[i].bytes = swc_blocks_bytes(&part->blocks, h->window[i].first_block,
						      h->window[i].nblocks);
	}
	ret = take_user_buffer(part, SWC_BUF_SEND, d->send, d->send_region);
	if (!ret)
		ret = take_user_buffer(part, SWC_BUF_RECV, d->recv, d->recv_region);
	if (!ret)
		ret = check_aliasing(part);
	if (ret || !part->buf[SWC_BUF_SCRATCH].bytes)
		return ret;

	scratch = swc_region_scratch(part->ctx, part->buf[SWC_BUF_SCRATCH].bytes);
	if (IS_ERR(scratch))
		return explain_memlock(part->member, PTR_ERR(scratch), part->buf[SWC_BUF_SCRATCH].bytes);
	part->buf[SWC_BUF_SCRATCH].region = scratch;
	return 0;
}

/* ------------------------------------------------------------------ runs */

/* One allocation for the runs and all the tables that their moves and sends need. */
static int make_runs(struct swc_part *part)
{
	const struct swc_plan_view *v = &part->plan->view;
	u32 n = v->hdr->nchannels, fan = v->max_fan, longs = BITS_TO_LONGS(v->max_sends), i;
	const struct swc_links *links = part->plan->links;
	u32 nout = links ? links->ahead * v->max_sends : 0, nland = links ? links->kept * v->max_recvs : 0;
	size_t per_run = sizeof(struct swc_run) + longs * sizeof(long) +
			 fan * (sizeof(struct swc_span) + sizeof(struct swc_cursor) + sizeof(void *)) +
			 nout * sizeof(struct swc_out) + nland * sizeof(struct swc_landing);
	void *mem = kvzalloc(n * per_run, GFP_KERNEL_ACCOUNT);

	if (!mem)
		return -ENOMEM;
	part->runs = mem;
	part->nruns = n;
	mem = part->runs + n;
	for (i = 0; i < n; i++) {
		struct swc_run *run = &part->runs[i];

		run->part = part;
		run->channel = i;
		run->step = v->channels[i].first_step;
		run->end = run->step + v->channels[i].nsteps;
		run->move.dtype = part->desc.dtype;
		run->move.redop = part->desc.redop;
		INIT_LIST_HEAD(&run->node);
		INIT_LIST_HEAD(&run->inbox);
		run->move.span = mem;
		mem += fan * sizeof(struct swc_span);
		run->move.cursor = mem;
		mem += fan * sizeof(struct swc_cursor);
		run->move.ptr = mem;
		mem += fan * sizeof(void *);
		run->taken = mem;
		mem += longs * sizeof(long);
		run->out = mem;
		mem += nout * sizeof(struct swc_out);
		run->land = mem;
		mem += nland * sizeof(struct swc_landing);
	}
	return 0;
}

/* ------------------------------------------------------------------ life */

static int part_fill(struct swc_part *part, struct swc_plan *plan)
{
	struct swc_member *member = part->member;
	const struct swc_desc *d = &part->desc;
	const struct swc_plan_header *h;
	int ret;

	ret = swc_desc_check(d, member->comm->nranks);
	if (ret)
		return ret;
	if (plan)
		kref_get(&plan->ref);
	part->plan = plan ?: swc_plan_get(member, d->plan);
	if (!part->plan)
		return -ENOENT;
	h = part->plan->view.hdr;
	if (h->coll != d->coll || h->root != d->root)
		return -EINVAL;
	if ((h->flags & SWC_PLAN_ORDER_VARIES) && swc_reduce_order_matters(d->dtype, d->redop) &&
	    !(member->comm->flags & SWC_JOIN_ALLOW_REORDER))
		return -EINVAL;
	ret = swc_blocks_init(&part->blocks, d->count, swc_dtype_size(d->dtype), h->nparts,
			      h->part_blocks);
	if (ret)
		return ret;
	ret = make_runs(part);
	if (ret)
		return ret;
	if (part->plan->links) {
		ret = swc_links_open(part->plan->links, member->comm->net, member->rank);
		if (ret)
			return ret;
	}
	if (d->flags & SWC_OP_RING) {
		ret = swc_ring_reserve(part->ctx->ring);
		if (ret)
			return ret;
		part->ring_reserved = true;
	}
	return 0;
}

/**
 * swc_part_create() - prepare one rank's share of an operation
 * @ctx: the caller's context
 * @member: who submits; the caller's reference moves to the part
 * @desc: the kernel's own copy of the descriptor
 * @plan: NULL: the one that the descriptor names
 *
 * May sleep (pins memory). On error the member's reference is gone too. A part whose buffers cannot be had
 * is made all the same (part->refused): other ranks may have submitted theirs already, and must be told.
 */
struct swc_part *swc_part_create(struct swc_ctx *ctx, struct swc_member *member,
				 const struct swc_desc *desc, struct swc_plan *plan)
{
	struct swc_part *part = kzalloc(sizeof(*part), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!part) {
		swc_member_put(member);
		return ERR_PTR(-ENOMEM);
	}
	refcount_set(&part->ref, 1);
	part->member = member;
	part->ctx = ctx;
	part->desc = *desc;
	part->culprit = -1;
	part->submitted_at = ktime_get_ns();
	atomic_inc(&ctx->live_parts);
	ret = part_fill(part, plan);
	if (!ret)
		part->refused = take_buffers(part);
	/* A task that is being killed is reported as such, when its address space goes. */
	if (part->refused == -EINTR)
		ret = -EINTR;
	if (ret) {
		swc_part_drop(part);
		return ERR_PTR(ret);
	}
	return part;
}

/* Free a part that was never submitted. */
void swc_part_drop(struct swc_part *part)
{
	if (part->ring_reserved)
		swc_ring_unreserve(part->ctx->ring);
	swc_part_put(part);
}

/* What came from other nodes and nobody has taken, because the operation failed. */
static void empty_inboxes(struct swc_part *part)
{
	struct swc_seg *seg, *next;
	u32 i;

	for (i = 0; part->runs && i < part->nruns; i++) {
		struct swc_run *run = &part->runs[i];

		if (run->seg)
			swc_conn_release(run->seg);
		list_for_each_entry_safe(seg, next, &run->inbox, node)
			swc_conn_release(seg);
	}
}

/* Give back what only a running operation needs. */
static void drop_resources(struct swc_part *part)
{
	int i;

	empty_inboxes(part);
	for (i = 0; i < SWC_BUF_NR; i++) {
		swc_region_put(part->buf[i].region);
		part->buf[i].region = NULL;
	}
	swc_plan_put(part->plan);
	part->plan = NULL;
	kvfree(part->runs);
	part->runs = NULL;
}

static void post_to_ring(struct swc_part *part)
{
	const struct swc_op *op = part->op;
	struct swc_completion entry = {
		.user_data = part->desc.user_data,
		.seq = op->seq,
		.bytes = swc_blocks_total_bytes(&part->blocks),
		.res = part->result,
		.comm = part->desc.comm,
		.plan = part->desc.plan,
		.culprit = part->culprit,
	};

	if (op->started_at) {
		/* The last to arrive may read its clock after another rank's. */
		entry.wait_ns = max_t(s64, op->started_at - part->submitted_at, 0);
		entry.run_ns = part->finished_at - op->started_at;
	}
	swc_ring_post(part->ctx->ring, &entry);
}

/**
 * swc_part_cancel() - the operation has failed: what has been prepared will not be done
 */
void swc_part_cancel(struct swc_part *part)
{
	u32 i;

	for (i = 0; i < part->nruns; i++) {
		if (part->runs[i].prepared)
			swc_dma_cancel(part->runs[i].prepared);
		part->runs[i].prepared = NULL;
	}
}

/**
 * swc_part_finish() - the operation is over for this rank
 *
 * Called once per submitted part, with no locks held. The part may be gone when it returns.
 */
void swc_part_finish(struct swc_part *part, int result, int culprit)
{
	part->result = result;
	part->culprit = result ? culprit : -1;
	part->finished_at = ktime_get_ns();
	trace_swc_complete(part);
	swc_stat_inc(result ? SWC_STAT_OPS_FAILED : SWC_STAT_OPS_COMPLETED);
	if (!result)
		swc_stat_add(SWC_STAT_BYTES, swc_blocks_total_bytes(&part->blocks));
	drop_resources(part);
	if (part->ring_reserved)
		post_to_ring(part);
	part->complete(part);
}

/* The second result word of a CQE, see SWC_CQE_* in the uapi. */
u64 swc_part_cqe_word(const struct swc_part *part)
{
	u64 ns = part->finished_at - part->submitted_at;

	if (part->result)
		return (u32)(part->culprit + 1);
	return min_t(u64, ns, (1ull << 40) - 1) | ((u64)part->desc.plan << 40);
}

void swc_part_put(struct swc_part *part)
{
	struct swc_ctx *ctx = part->ctx;
	struct swc_member *member = part->member;
	struct swc_op *op = part->op;

	if (!refcount_dec_and_test(&part->ref))
		return;
	drop_resources(part);
	kfree_rcu(part, rcu);
	if (op)
		swc_op_put(op);
	/* The context may go as soon as its last part is gone; the communicator has its own count. */
	swc_member_put(member);
	swc_ctx_dec_live(ctx, &ctx->live_parts);
}
