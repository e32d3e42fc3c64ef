// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests: one rank's call of an operation, from its descriptor to its completion.
 *
 * swc_req_create() does everything that can fail or sleep (lookups, pinning, allocation) before the request
 * is matched; afterwards nothing of a request can fail. It runs in the submitter's context.
 */
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "core/desc_check.h"
#include "core/reduce.h"
#include "mem/account.h"
#include "mem/context.h"
#include "mem/memlock.h"
#include "dma.h"
#include "comm/error.h"
#include "exec/event.h"
#include "exec/request.h"
#include "plan/plan.h"
#include "mem/region.h"
#include "mem/completion_ring.h"
#include "trace.h"

/* Memory of tasks that a spare may have. */
#define SPARE_ROOM	(16u << 10)

/* ------------------------------------------------------------------ memory */

static void free_tasks(struct swc_req *req)
{
	kvfree(req->tasks);
	req->tasks = NULL;
	swc_account_uncharge(req->account, SWC_QUOTA_MEMORY, req->room);
	req->room = 0;
}

/* No references are left, and no task or buffer. */
static void req_free(struct swc_req *req)
{
	free_tasks(req);
	swc_account_uncharge(req->account, SWC_QUOTA_MEMORY, sizeof(*req));
	swc_account_put(req->account);
	kfree_rcu(req, rcu);
}

/* A request with one reference: the member's spare, or a new one; -ENOMEM, -EDQUOT, -EINTR. */
static struct swc_req *req_alloc(struct swc_ctx *ctx, struct swc_member *member)
{
	struct swc_req *req = xchg(&member->spare, NULL);
	int ret;

	if (req) {
		memset_after(req, 0, room);
	} else {
		ret = swc_region_charge_memory(ctx, ctx->account, sizeof(*req));
		if (ret)
			return ERR_PTR(ret);
		req = kzalloc(sizeof(*req), GFP_KERNEL_ACCOUNT);
		if (!req) {
			swc_account_uncharge(ctx->account, SWC_QUOTA_MEMORY, sizeof(*req));
			return ERR_PTR(-ENOMEM);
		}
		req->account = swc_account_hold(ctx->account);
	}
	refcount_set(&req->ref, 1);
	return req;
}

/*
 * The last reference is gone; the caller holds the member. The cmpxchg() and the xchg() of req_alloc() are
 * full barriers: a context that sees the first reference of the next request sees what was done for this one.
 */
static void req_keep_or_free(struct swc_req *req, struct swc_member *member)
{
	if (cmpxchg(&member->spare, NULL, req))
		req_free(req);
}

/* The communicator is being freed: no request of the member is left. */
void swc_req_free_spare(struct swc_member *member)
{
	if (member->spare)
		req_free(member->spare);
	member->spare = NULL;
}

/* ------------------------------------------------------------------ buffers */

/* Record which limit keeps a rank from having a buffer. Return: @ret. */
static int explain_refusal(const struct swc_req *req, int ret, u64 bytes)
{
	struct swc_member *member = req->member;

	if (ret == -ENOMEM && swc_memlock_is_short(req->ctx->mm, DIV_ROUND_UP(bytes, PAGE_SIZE)))
		swc_comm_error_note(member->comm, ret, member->rank, member->next_seq,
			      SWC_MEMBER_FMT
			      ": cannot pin %llu KiB with RLIMIT_MEMLOCK at %lu KiB: raise it (ulimit -l, LimitMEMLOCK=) or run with CAP_IPC_LOCK",
			      SWC_MEMBER_ARGS(member), bytes >> 10, rlimit(RLIMIT_MEMLOCK) >> 10);
	return swc_comm_note_quota(member->comm, req->account, member->rank, member->next_seq, ret);
}

/* Find or register the memory of one of the user's two buffers. */
static int take_user_buffer(struct swc_req *req, enum swc_buf which, u64 addr, u32 handle)
{
	struct swc_req_buf *b = &req->buf[which];
	struct swc_region *region;
	u64 end;

	if (!b->bytes)
		return 0;
	if (handle) {
		region = swc_region_by_handle(req->ctx, handle);
		if (!region)
			return -ENOENT;
		b->region = region;
		b->offset = addr;
		if (check_add_overflow(addr, b->bytes, &end) || end > region->bytes)
			return -EFAULT;
		/* Alignment is that of the memory, not of the offset. */
		if ((region->addr + addr) & (swc_dtype_size(req->desc.dtype) - 1))
			return -EINVAL;
		return 0;
	}
	region = swc_region_get(req->ctx, addr, b->bytes);
	if (IS_ERR(region))
		return explain_refusal(req, PTR_ERR(region), b->bytes);
	b->region = region;
	b->offset = untagged_addr(addr) - region->addr;
	return 0;
}

/* Accept the same memory block by block, or disjoint memory; refuse partial overlap. */
static int check_aliasing(const struct swc_req *req)
{
	const struct swc_req_buf *s = &req->buf[SWC_BUF_SEND], *r = &req->buf[SWC_BUF_RECV];
	u64 sa, ra;

	if (!s->bytes || !r->bytes)
		return 0;
	sa = s->region->addr + s->offset;
	ra = r->region->addr + r->offset;
	if (sa >= ra + r->bytes || ra >= sa + s->bytes)
		return 0;
	if (sa - s->start != ra - r->start)
		return -EINVAL;
	return req->plan->view.hdr->flags & SWC_PLAN_NOT_IN_PLACE ? -EINVAL : 0;
}

static int take_buffers(struct swc_req *req)
{
	const struct swc_plan_header *h = req->plan->view.hdr;
	const struct swc_desc *d = &req->desc;
	struct swc_region *scratch;
	int i, ret;

	for (i = 0; i < SWC_BUF_NR; i++) {
		req->buf[i].start = swc_blocks_offset(&req->blocks, h->window[i].first_block);
		req->buf[i].bytes = swc_blocks_bytes(&req->blocks, h->window[i].first_block,
						      h->window[i].nblocks);
	}
	ret = take_user_buffer(req, SWC_BUF_SEND, d->send, d->send_region);
	if (!ret)
		ret = take_user_buffer(req, SWC_BUF_RECV, d->recv, d->recv_region);
	if (!ret)
		ret = check_aliasing(req);
	if (ret || !req->buf[SWC_BUF_SCRATCH].bytes)
		return ret;

	scratch = swc_region_scratch(req->ctx, req->buf[SWC_BUF_SCRATCH].bytes);
	if (IS_ERR(scratch))
		return explain_refusal(req, PTR_ERR(scratch), req->buf[SWC_BUF_SCRATCH].bytes);
	req->buf[SWC_BUF_SCRATCH].region = scratch;
	return 0;
}

/* ------------------------------------------------------------------ creation */

/* Find out where blocks lie; read the sizes of shards where they differ. */
static int find_blocks(struct swc_req *req)
{
	const struct swc_plan_header *h = req->plan->view.hdr;
	const struct swc_desc *d = &req->desc;
	u32 elem_bytes = swc_dtype_size(d->dtype);
	size_t bytes = array_size(h->nshards, sizeof(u64));
	int ret;

	if (!d->counts)
		return swc_blocks_init(&req->blocks, d->count, elem_bytes, h->nshards, h->shard_blocks);
	ret = swc_region_charge_memory(req->ctx, req->account, bytes + sizeof(u64));
	if (ret)
		return ret;
	req->charged = bytes + sizeof(u64);
	req->starts = kvmalloc(bytes + sizeof(u64), GFP_KERNEL_ACCOUNT);
	if (!req->starts)
		return -ENOMEM;
	if (copy_from_user(req->starts, u64_to_user_ptr(d->counts), bytes))
		return -EFAULT;
	return swc_blocks_init_uneven(&req->blocks, req->starts, elem_bytes, h->nshards, h->shard_blocks);
}

static int req_fill(struct swc_req *req, struct swc_plan *plan)
{
	struct swc_member *member = req->member;
	const struct swc_desc *d = &req->desc;
	const struct swc_plan_header *h;
	int ret;

	ret = swc_desc_check(d, member->comm->nranks);
	if (ret)
		return ret;
	if (plan)
		kref_get(&plan->ref);
	req->plan = plan ?: swc_plan_get(member, d->plan);
	if (!req->plan)
		return -ENOENT;
	h = req->plan->view.hdr;
	if (h->coll != d->coll || h->root != d->root)
		return -EINVAL;
	if ((h->flags & SWC_PLAN_ORDER_VARIES) && swc_reduce_order_matters(d->dtype, d->redop) &&
	    !(member->comm->flags & SWC_COMM_F_ALLOW_REORDER))
		return -EINVAL;
	ret = find_blocks(req);
	if (ret)
		return swc_comm_note_quota(member->comm, req->ctx->account, member->rank, member->next_seq,
					   ret);
	/* Sizes that differ from rank to rank make it another family. */
	req->sig = (struct swc_signature){
		.count = d->counts ? swc_blocks_total_bytes(&req->blocks) / swc_dtype_size(d->dtype) :
				     d->count,
		.family = h->family ^ swc_blocks_hash(&req->blocks), .root = d->root,
		.shard_blocks = h->shard_blocks, .coll = d->coll, .dtype = d->dtype, .redop = d->redop,
	};
	ret = swc_tasks_create(req);
	if (ret)
		return swc_comm_note_quota(member->comm, req->ctx->account, member->rank, member->next_seq,
					   ret);
	if (req->plan->net) {
		ret = swc_plan_net_open(req->plan->net, member->comm->net, member->rank);
		/* After an abort there are none. swc_match() knows whether this operation is why. */
		if (ret == -ECONNABORTED && READ_ONCE(member->comm->status) == SWC_COMM_ABORTED)
			ret = 0;
		if (ret)
			return swc_comm_note_quota(member->comm, member->comm->account, member->rank,
						   member->next_seq, ret);
	}
	if (d->flags & SWC_OP_RING) {
		ret = swc_ring_reserve(req->ctx->ring);
		if (ret)
			return ret;
		req->ring_reserved = true;
	}
	return 0;
}

/**
 * swc_req_create() - prepare one rank's call of an operation
 * @ctx: the caller's context
 * @member: the calling rank; the caller's reference moves to the request
 * @desc: the kernel's own copy of the descriptor
 * @plan: the plan, or NULL: the one that the descriptor names
 *
 * May sleep (pins memory). If buffers cannot be pinned, the request is made all the same (req->refused):
 * other ranks may have submitted theirs already and must get an error.
 *
 * Return: the request, or an error pointer; then the member's reference is dropped.
 */
struct swc_req *swc_req_create(struct swc_ctx *ctx, struct swc_member *member,
			       const struct swc_desc *desc, struct swc_plan *plan)
{
	struct swc_req *req = req_alloc(ctx, member);
	int ret;

	if (IS_ERR(req)) {
		swc_comm_note_quota(member->comm, ctx->account, member->rank, member->next_seq, PTR_ERR(req));
		swc_member_put(member);
		return req;
	}
	req->member = member;
	req->ctx = ctx;
	req->desc = *desc;
	req->culprit = -1;
	req->submitted_at = ktime_get_ns();
	swc_ctx_get(ctx);
	ret = req_fill(req, plan);
	if (!ret)
		req->refused = take_buffers(req);
	/* The exit of a killed process is reported when its address space goes. */
	if (req->refused == -EINTR)
		ret = -EINTR;
	if (ret) {
		swc_req_drop(req);
		return ERR_PTR(ret);
	}
	return req;
}

/* Free a request that was never matched. */
void swc_req_drop(struct swc_req *req)
{
	if (req->ring_reserved)
		swc_ring_unreserve(req->ctx->ring);
	swc_req_put(req);
}

/* Release segments of other nodes that no task has consumed, because the operation failed. */
static void drain_inboxes(struct swc_req *req)
{
	struct swc_net_seg *seg, *next;
	u32 i;

	for (i = 0; i < req->ntasks; i++) {
		struct swc_task *task = &req->tasks[i];

		if (task->seg)
			swc_conn_release(task->seg);
		list_for_each_entry_safe(seg, next, &task->inbox, node)
			swc_conn_release(seg);
	}
}

/* ------------------------------------------------------------------ completion */

/* Release what only a running operation needs. */
static void release_resources(struct swc_req *req)
{
	int i;

	drain_inboxes(req);
	req->ntasks = 0;
	if (req->room > SPARE_ROOM)
		free_tasks(req);
	for (i = 0; i < SWC_BUF_NR; i++) {
		swc_region_put(req->buf[i].region);
		req->buf[i].region = NULL;
	}
	swc_plan_put(req->plan);
	req->plan = NULL;
	if (!req->charged)
		return;
	kvfree(req->starts);
	req->starts = NULL;
	req->blocks.starts = NULL;
	swc_account_uncharge(req->account, SWC_QUOTA_MEMORY, req->charged);
	req->charged = 0;
}

static void post_to_ring(struct swc_req *req)
{
	const struct swc_op *op = req->op;
	struct swc_completion entry = {
		.user_data = req->desc.user_data,
		.seq = op->seq,
		.bytes = swc_blocks_total_bytes(&req->blocks),
		.res = req->result,
		.comm = req->desc.comm,
		.plan = req->desc.plan,
		.culprit = req->culprit,
	};

	if (op->started_at) {
		/* The last rank to arrive may read its clock after another one. */
		entry.wait_ns = max_t(s64, op->started_at - req->submitted_at, 0);
		entry.run_ns = req->finished_at - op->started_at;
	}
	swc_ring_post(req->ctx->ring, &entry);
}

/**
 * swc_req_drop_prepared() - drop what has been prepared for engines, because the operation has failed
 */
void swc_req_drop_prepared(struct swc_req *req)
{
	u32 i;

	for (i = 0; i < req->ntasks; i++) {
		if (req->tasks[i].prepared)
			swc_dma_cancel(req->tasks[i].prepared);
		req->tasks[i].prepared = NULL;
	}
}

/**
 * swc_req_complete() - complete the call of this rank
 * @now: ktime
 *
 * Called once per matched request, with no locks held. The request may be freed when this returns.
 */
void swc_req_complete(struct swc_req *req, int result, int culprit, u64 now)
{
	req->result = result;
	req->culprit = result ? culprit : -1;
	req->finished_at = now;
	swc_event_complete(req);
	swc_stat_inc(result ? SWC_STAT_OPS_FAILED : SWC_STAT_OPS_COMPLETED);
	if (!result)
		swc_stat_add(SWC_STAT_BYTES, swc_blocks_total_bytes(&req->blocks));
	release_resources(req);
	if (req->ring_reserved)
		post_to_ring(req);
	req->complete(req);
}

/* The second result word of a CQE, see SWC_CQE_* in the uapi. */
u64 swc_req_cqe_word(const struct swc_req *req)
{
	u64 ns = req->finished_at - req->submitted_at;

	if (req->result)
		return (u32)(req->culprit + 1);
	return min_t(u64, ns, (1ull << 40) - 1) | ((u64)req->desc.plan << 40);
}

void swc_req_put(struct swc_req *req)
{
	struct swc_member *member;
	struct swc_ctx *ctx;
	struct swc_op *op;

	if (!refcount_dec_and_test(&req->ref))
		return;
	/* Not read before: io_uring's cancel path may have a reference to a request that is being made. */
	member = req->member;
	ctx = req->ctx;
	op = req->op;
	release_resources(req);
	req_keep_or_free(req, member);
	if (op)
		swc_op_put(op);
	/* The context may go as soon as its last request is freed; the communicator has its own count. */
	swc_member_put(member);
	swc_ctx_put(ctx);
}
