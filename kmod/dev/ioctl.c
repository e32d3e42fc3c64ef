// SPDX-License-Identifier: GPL-2.0-only
/*
 * ioctls: control calls, and submission for processes that may not use io_uring.
 *
 * A table names each command and its handler. The dispatcher refuses calls from a process other than the
 * opener, copies the argument in and the result out by the command's direction and size, and undoes a
 * call whose result cannot be copied. Handlers see kernel memory only; they refuse reserved fields that are
 * not zero and call the layer below.
 */
#include <linux/fs.h>
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "comm/comm.h"
#include "comm/create.h"
#include "comm/slot_wait.h"
#include "compat.h"
#include "core/blocks.h"
#include "core/text.h"
#include "dev/chrdev.h"
#include "dev/query.h"
#include "exec/match.h"
#include "exec/partitioned.h"
#include "exec/request.h"
#include "mem/account.h"
#include "mem/completion_ring.h"
#include "mem/context.h"
#include "mem/region.h"
#include "net.h"
#include "plan/plan.h"

/* ------------------------------------------------------------------ information */

static int ioc_info(struct swc_ctx *ctx, void *arg)
{
	struct swc_info *info = arg;

	*info = (struct swc_info){
		.abi_version = SWC_ABI_VERSION,
		.desc_bytes = sizeof(struct swc_desc),
		.features = SWC_FEATURE_LOCAL | SWC_FEATURE_SLOTS | SWC_FEATURE_COPY |
			    (SWC_HAVE_CMD_CANCEL ? SWC_FEATURE_CANCEL : 0) |
			    (swc_transport_port(SWC_TRANSPORT_RDMA) ? SWC_FEATURE_RDMA : 0) |
			    (swc_transport_port(SWC_TRANSPORT_TCP) ? SWC_FEATURE_TCP : 0) |
			    (swc_transport_port(SWC_TRANSPORT_TLS) ? SWC_FEATURE_TLS : 0),
		.max_ranks = SWC_MAX_RANKS,
		.max_local_ranks = SWC_MAX_LOCAL_RANKS,
		.max_inflight = SWC_MAX_INFLIGHT,
		.max_plan_bytes = SWC_MAX_PLAN_BYTES,
		.max_regions = swc_max_regions,
		.max_plans = swc_max_plans,
		.ring_entries = swc_ring_entries,
		.rdma_port = swc_transport_port(SWC_TRANSPORT_RDMA),
		.tcp_port = swc_transport_port(SWC_TRANSPORT_TCP),
		.tls_port = swc_transport_port(SWC_TRANSPORT_TLS),
	};
	strscpy(info->reduce, swc_reduce_chosen()->name, sizeof(info->reduce));
	return 0;
}

static int ioc_comm_query(struct swc_ctx *ctx, void *arg)
{
	return swc_query_comm(arg);
}

static int ioc_user_query(struct swc_ctx *ctx, void *arg)
{
	return swc_account_query(arg);
}

static int ioc_trace(struct swc_ctx *ctx, void *arg)
{
	return swc_query_trace(ctx, arg);
}

static int ioc_stats(struct swc_ctx *ctx, void *arg)
{
	return swc_query_stats(arg);
}

static int ioc_sparse_note(struct swc_ctx *ctx, void *arg)
{
	const struct swc_sparse_note *note = arg;
	struct swc_member *member;

	if (note->resv || note->bytes > SWC_MAX_VECTOR_BYTES || note->reduced_bytes > SWC_MAX_VECTOR_BYTES)
		return -EINVAL;
	member = swc_member_get(ctx, note->comm);
	if (!member)
		return -ENOENT;
	swc_stat_add(SWC_STAT_SPARSE_BYTES, note->bytes);
	swc_stat_add(SWC_STAT_SPARSE_BYTES_REDUCED, note->reduced_bytes);
	swc_member_put(member);
	return 0;
}

/* ------------------------------------------------------------------ communicators */

static int ioc_comm_create(struct swc_ctx *ctx, void *arg)
{
	struct swc_comm_create *create = arg;

	create->comm = 0;
	return swc_comm_create(ctx, create);
}

static void undo_comm_create(struct swc_ctx *ctx, void *arg)
{
	const struct swc_comm_create *create = arg;

	swc_comm_leave(ctx, create->comm);
}

static int ioc_comm_leave(struct swc_ctx *ctx, void *arg)
{
	const struct swc_comm_ref *ref = arg;

	if (ref->error || ref->other || ref->resv)
		return -EINVAL;
	return swc_comm_leave(ctx, ref->comm);
}

/* The caller aborts its communicator, because of rank @other, or -1. */
static void abort_for(struct swc_member *member, int error, int other)
{
	bool has_left = other >= 0 && error == -ECONNRESET;
	int culprit = has_left ? other : (int)member->rank;

	if (has_left)
		swc_comm_abort(member->comm, error, culprit, member->next_seq,
			       "rank %d has left the communicator before collectives that " SWC_MEMBER_FMT
			       " has called", other, SWC_MEMBER_ARGS(member));
	else if (other >= 0 && error == -EPROTO)
		swc_comm_abort(member->comm, error, culprit, member->next_seq,
			       SWC_MEMBER_FMT
			       " has called another collective than rank %d, or with other arguments: all ranks must call the same, in the same order",
			       SWC_MEMBER_ARGS(member), other);
	else
		swc_comm_abort(member->comm, error, culprit, member->next_seq,
			       SWC_MEMBER_FMT " aborted the communicator", SWC_MEMBER_ARGS(member));
}

static int ioc_comm_abort(struct swc_ctx *ctx, void *arg)
{
	const struct swc_comm_ref *ref = arg;
	struct swc_member *member;
	int ret = 0;

	if ((ref->error && !swc_may_abort_with(ref->error)) || ref->resv)
		return -EINVAL;
	member = swc_member_get(ctx, ref->comm);
	if (!member)
		return -ENOENT;
	if (ref->other > member->comm->nranks)
		ret = -EINVAL;
	else
		abort_for(member, -(int)(ref->error ?: ECONNABORTED), (int)ref->other - 1);
	swc_member_put(member);
	return ret;
}

static int ioc_comm_error(struct swc_ctx *ctx, void *arg)
{
	struct swc_comm_error *e = arg;
	struct swc_member *member = swc_member_get(ctx, e->comm);
	struct swc_comm *comm;

	if (!member)
		return -ENOENT;
	comm = member->comm;
	spin_lock(&comm->lock);
	e->error = comm->error;
	e->culprit = comm->culprit;
	e->aborted = comm->status == SWC_COMM_ABORTED;
	e->seq = comm->error_seq;
	swc_text_read(e->text, comm->text, swc_reader_pid_ns());
	spin_unlock(&comm->lock);
	swc_member_put(member);
	return 0;
}

/* ------------------------------------------------------------------ plans and memory */

static int ioc_plan_load(struct swc_ctx *ctx, void *arg)
{
	struct swc_plan_load *load = arg;
	struct swc_member *member;
	int ret;

	memset(load->text, 0, sizeof(load->text));
	if (load->resv)
		return -EINVAL;
	member = swc_member_get(ctx, load->comm);
	if (!member)
		return -ENOENT;
	ret = swc_plan_load(member, load);
	swc_member_put(member);
	return ret;
}

static int ioc_plan_unload(struct swc_ctx *ctx, void *arg)
{
	const struct swc_plan_unload *unload = arg;
	struct swc_member *member = swc_member_get(ctx, unload->comm);
	int ret;

	if (!member)
		return -ENOENT;
	ret = swc_plan_unload(member, unload->plan);
	swc_member_put(member);
	return ret;
}

static void undo_plan_load(struct swc_ctx *ctx, void *arg)
{
	const struct swc_plan_load *load = arg;
	struct swc_plan_unload unload = { .comm = load->comm, .plan = load->plan };

	ioc_plan_unload(ctx, &unload);
}

static int ioc_mem_reg(struct swc_ctx *ctx, void *arg)
{
	struct swc_mem_reg *reg = arg;

	if (reg->flags)
		return -EINVAL;
	return swc_region_add_handle(ctx, reg->addr, reg->bytes, &reg->region);
}

static void undo_mem_reg(struct swc_ctx *ctx, void *arg)
{
	const struct swc_mem_reg *reg = arg;

	swc_region_drop_handle(ctx, reg->region);
}

static int ioc_mem_unreg(struct swc_ctx *ctx, void *arg)
{
	const struct swc_mem_unreg *unreg = arg;

	if (unreg->resv)
		return -EINVAL;
	return swc_region_drop_handle(ctx, unreg->region);
}

/* ------------------------------------------------------------------ operations */

/* The completion ring has the entry: nothing else needs notifying. */
static void complete_to_ring(struct swc_req *req)
{
	swc_req_put(req);
}

static int ioc_submit(struct swc_ctx *ctx, void *arg)
{
	struct swc_desc *desc = arg;
	struct swc_member *member;
	struct swc_req *req;
	int ret;

	desc->flags |= SWC_OP_RING;
	member = swc_member_get(ctx, desc->comm);
	if (!member)
		return -ENOENT;
	req = swc_req_create(ctx, member, desc, NULL);
	if (IS_ERR(req))
		return PTR_ERR(req);
	req->complete = complete_to_ring;
	ret = swc_match(req, desc->flags & SWC_OP_WAITING);
	if (ret)
		swc_req_drop(req);
	return ret;
}

static int ioc_ring_wait(struct swc_ctx *ctx, void *arg)
{
	const struct swc_ring_wait *wait = arg;

	return swc_ring_wait(ctx->ring, wait->tail, wait->timeout_ms);
}

static int ioc_slot_wait(struct swc_ctx *ctx, void *arg)
{
	const struct swc_slot_wait *wait = arg;
	struct swc_member *member = swc_member_get(ctx, wait->comm);
	int ret;

	if (!member)
		return -ENOENT;
	ret = swc_slot_wait(member, wait);
	swc_member_put(member);
	return ret;
}

static int ioc_slot_wake(struct swc_ctx *ctx, void *arg)
{
	const struct swc_slot_wake *wake = arg;
	struct swc_member *member;

	if (wake->resv)
		return -EINVAL;
	member = swc_member_get(ctx, wake->comm);
	if (!member)
		return -ENOENT;
	swc_slot_wake(member->comm);
	swc_member_put(member);
	return 0;
}

/* ------------------------------------------------------------------ partitioned operations */

static int ioc_partitioned_init(struct swc_ctx *ctx, void *arg)
{
	return swc_partitioned_create(ctx, arg);
}

static void undo_partitioned_init(struct swc_ctx *ctx, void *arg)
{
	const struct swc_partitioned_init *init = arg;

	swc_partitioned_free(ctx, init->handle);
}

/* The calls that name nothing but the operation. */
static int call_partitioned(struct swc_ctx *ctx, const struct swc_partitioned_ref *ref,
			    int (*fn)(struct swc_partitioned *p))
{
	struct swc_partitioned *p;
	int ret;

	if (ref->resv || ref->partition || ref->timeout_ms)
		return -EINVAL;
	p = swc_partitioned_get(ctx, ref->handle);
	if (!p)
		return -ENOENT;
	ret = fn(p);
	swc_partitioned_put(p);
	return ret;
}

static int ioc_partitioned_start(struct swc_ctx *ctx, void *arg)
{
	return call_partitioned(ctx, arg, swc_partitioned_start);
}

static int ioc_partitioned_kick(struct swc_ctx *ctx, void *arg)
{
	return call_partitioned(ctx, arg, swc_partitioned_kick);
}

static int ioc_partitioned_wait(struct swc_ctx *ctx, void *arg)
{
	const struct swc_partitioned_ref *ref = arg;
	struct swc_partitioned *p;
	int ret;

	if (ref->resv)
		return -EINVAL;
	p = swc_partitioned_get(ctx, ref->handle);
	if (!p)
		return -ENOENT;
	ret = swc_partitioned_wait(p, ref->partition, ref->timeout_ms);
	swc_partitioned_put(p);
	return ret;
}

static int ioc_partitioned_free(struct swc_ctx *ctx, void *arg)
{
	const struct swc_partitioned_ref *ref = arg;

	if (ref->resv || ref->partition || ref->timeout_ms)
		return -EINVAL;
	return swc_partitioned_free(ctx, ref->handle);
}

/* ------------------------------------------------------------------ dispatch */

/* The argument is copied out after a failure too. */
#define COPY_ON_ERROR	(1u << 0)

/**
 * struct ioctl_def - one command
 * @cmd: with direction and size; the place in the table is _IOC_NR(@cmd)
 * @flags: COPY_*
 * @fn: the handler; @arg is the argument in kernel memory, zeroed if the command does not read one
 * @undo: takes back what @fn did, when its result cannot be copied to the caller; NULL: nothing to take back
 */
struct ioctl_def {
	unsigned int cmd;
	unsigned int flags;
	int (*fn)(struct swc_ctx *ctx, void *arg);
	void (*undo)(struct swc_ctx *ctx, void *arg);
};

#define IOCTL_DEF(_cmd, _fn, ...)							\
	[_IOC_NR(_cmd)] = { .cmd = (_cmd), .fn = (_fn), ##__VA_ARGS__ }

static const struct ioctl_def ioctl_defs[] = {
	IOCTL_DEF(SWC_IOC_INFO, ioc_info),
	IOCTL_DEF(SWC_IOC_COMM_CREATE, ioc_comm_create, .undo = undo_comm_create, .flags = COPY_ON_ERROR),
	IOCTL_DEF(SWC_IOC_COMM_LEAVE, ioc_comm_leave),
	IOCTL_DEF(SWC_IOC_COMM_ABORT, ioc_comm_abort),
	IOCTL_DEF(SWC_IOC_COMM_ERROR, ioc_comm_error),
	IOCTL_DEF(SWC_IOC_PLAN_LOAD, ioc_plan_load, .undo = undo_plan_load, .flags = COPY_ON_ERROR),
	IOCTL_DEF(SWC_IOC_PLAN_UNLOAD, ioc_plan_unload),
	IOCTL_DEF(SWC_IOC_MEM_REG, ioc_mem_reg, .undo = undo_mem_reg),
	IOCTL_DEF(SWC_IOC_MEM_UNREG, ioc_mem_unreg),
	IOCTL_DEF(SWC_IOC_SUBMIT, ioc_submit),
	IOCTL_DEF(SWC_IOC_RING_WAIT, ioc_ring_wait),
	IOCTL_DEF(SWC_IOC_SLOT_WAIT, ioc_slot_wait),
	IOCTL_DEF(SWC_IOC_SLOT_WAKE, ioc_slot_wake),
	IOCTL_DEF(SWC_IOC_COMM_QUERY, ioc_comm_query),
	IOCTL_DEF(SWC_IOC_STATS, ioc_stats),
	IOCTL_DEF(SWC_IOC_PARTITIONED_INIT, ioc_partitioned_init, .undo = undo_partitioned_init),
	IOCTL_DEF(SWC_IOC_PARTITIONED_START, ioc_partitioned_start),
	IOCTL_DEF(SWC_IOC_PARTITIONED_KICK, ioc_partitioned_kick),
	IOCTL_DEF(SWC_IOC_PARTITIONED_WAIT, ioc_partitioned_wait),
	IOCTL_DEF(SWC_IOC_PARTITIONED_FREE, ioc_partitioned_free),
	IOCTL_DEF(SWC_IOC_USER_QUERY, ioc_user_query),
	IOCTL_DEF(SWC_IOC_TRACE, ioc_trace),
	IOCTL_DEF(SWC_IOC_SPARSE_NOTE, ioc_sparse_note),
};

/* @arg has room for the command's argument. */
static long call(struct swc_ctx *ctx, const struct ioctl_def *def, void __user *uarg, void *arg)
{
	unsigned int dir = _IOC_DIR(def->cmd), bytes = _IOC_SIZE(def->cmd);
	int ret;

	if (!(dir & _IOC_WRITE))
		memset(arg, 0, bytes);
	else if (copy_from_user(arg, uarg, bytes))
		return -EFAULT;
	ret = def->fn(ctx, arg);
	if (!(dir & _IOC_READ) || (ret && !(def->flags & COPY_ON_ERROR)))
		return ret;
	if (!copy_to_user(uarg, arg, bytes))
		return ret;
	if (!ret && def->undo)
		def->undo(ctx, arg);
	return -EFAULT;
}

/* Look the command up and carry it out. */
static long dispatch(struct swc_ctx *ctx, unsigned int cmd, void __user *uarg)
{
	unsigned int nr = _IOC_NR(cmd);
	const struct ioctl_def *def;
	/* The frequent commands have small arguments; these need no allocation. */
	u64 small[16];
	void *arg = small;
	long ret;

	if (nr >= ARRAY_SIZE(ioctl_defs))
		return -ENOTTY;
	def = &ioctl_defs[array_index_nospec(nr, ARRAY_SIZE(ioctl_defs))];
	if (cmd != def->cmd)
		return -ENOTTY;
	if (_IOC_SIZE(cmd) > sizeof(small)) {
		arg = kmalloc(_IOC_SIZE(cmd), GFP_KERNEL);
		if (!arg)
			return -ENOMEM;
	}
	ret = call(ctx, def, uarg, arg);
	if (arg != small)
		kfree(arg);
	return ret;
}

long swc_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	struct swc_ctx *ctx = file->private_data;
	long ret = swc_ctx_enter(ctx);

	if (ret)
		return ret;
	ret = dispatch(ctx, cmd, (void __user *)uarg);
	swc_ctx_put(ctx);
	return ret;
}
