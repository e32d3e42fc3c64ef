// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of operations. The last put keeps it for the next operation of the communicator.
 */
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "exec/operation.h"
#include "mem/region.h"

static void free_op(struct swc_op *op)
{
	swc_account_uncharge(op->account, SWC_QUOTA_MEMORY, op->charged);
	swc_account_put(op->account);
	kfree(op);
}

void swc_op_release(struct kref *ref)
{
	struct swc_op *op = container_of(ref, struct swc_op, ref);

	/* The last put of the communicator may have freed it already. */
	WARN_ON_ONCE(!kref_read(&op->comm->ref) && current_work() != &op->comm->free_work);
	if (cmpxchg(&op->comm->spare_op, NULL, op))
		free_op(op);
}

static struct swc_op *new_op(struct swc_comm *comm, struct swc_ctx *ctx, size_t bytes)
{
	int ret = swc_region_charge_memory(ctx, comm->account, bytes);
	struct swc_op *op;

	if (ret)
		return ERR_PTR(ret);
	op = kmalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!op) {
		swc_account_uncharge(comm->account, SWC_QUOTA_MEMORY, bytes);
		return ERR_PTR(-ENOMEM);
	}
	op->account = swc_account_hold(comm->account);
	op->charged = bytes;
	return op;
}

/* An operation of nobody yet, for a call of @ctx; the communicator is charged. -ENOMEM, -EDQUOT, -EINTR. */
struct swc_op *swc_op_alloc(struct swc_comm *comm, struct swc_ctx *ctx)
{
	size_t bytes = struct_size((struct swc_op *)NULL, req, comm->nlocal);
	struct swc_op *op = xchg(&comm->spare_op, NULL) ?: new_op(comm, ctx, bytes);
	size_t kept = offsetof(struct swc_op, ref);

	if (IS_ERR(op))
		return op;
	memset((void *)op + kept, 0, bytes - kept);
	kref_init(&op->ref);
	spin_lock_init(&op->lock);
	INIT_LIST_HEAD(&op->runq);
	INIT_LIST_HEAD(&op->offload_batch);
	INIT_LIST_HEAD(&op->node);
	INIT_LIST_HEAD(&op->call);
	op->culprit = -1;
	op->heartbeat_rank = -1;
	op->deadline = U64_MAX;
	op->next_check = U64_MAX;
	op->comm = comm;
	return op;
}

/* The communicator is being freed: no operation is left. */
void swc_op_free_spare(struct swc_comm *comm)
{
	if (comm->spare_op)
		free_op(comm->spare_op);
	comm->spare_op = NULL;
}
