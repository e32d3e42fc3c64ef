// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctl door: control calls, and submission for processes that may not use io_uring.
 *
 * Every handler copies its argument once, refuses what is not zero where it must be, and calls the layer
 * below; results are copied back at the end. Calls from another address space than the opener's are refused
 * before anything else happens.
 */
#include <linux/fs.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "comm/comm.h"
#include "compat.h"
#include "mem/context.h"
#include "comm/create.h"
#include "exec/partitioned.h"
#include "exec/request.h"
#include "plan/plan.h"
#include "net.h"
#include "query.h"
#include "mem/region.h"
#include "mem/completion_ring.h"
#include "comm/slot_wait.h"
#include "exec/match.h"

static int ioc_info(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_info info = {
		.abi_version = SWC_ABI_VERSION,
		.desc_bytes = sizeof(struct swc_desc),
		.features = SWC_FEATURE_LOCAL | SWC_FEATURE_SLOTS |
			    (SWC_HAVE_CMD_CANCEL ? SWC_FEATURE_CANCEL : 0) |
			    (swc_rdma_port() ? SWC_FEATURE_RDMA : 0),
		.max_ranks = SWC_MAX_RANKS,
		.max_local_ranks = SWC_MAX_LOCAL_RANKS,
		.max_inflight = SWC_MAX_INFLIGHT,
		.max_plan_bytes = SWC_MAX_PLAN_BYTES,
		.max_regions = swc_max_regions,
		.max_plans = swc_max_plans,
		.ring_entries = swc_ring_entries,
		.rdma_port = swc_rdma_port(),
	};

	strscpy(info.reduce, swc_reduce_chosen()->name, sizeof(info.reduce));
	return copy_to_user(arg, &info, sizeof(info)) ? -EFAULT : 0;
}

static int ioc_join(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_comm_join join;
	int ret;

	if (copy_from_user(&join, arg, sizeof(join)))
		return -EFAULT;
	join.comm = 0;
	ret = swc_comm_join(ctx, &join);
	if (!ret && copy_to_user(arg, &join, sizeof(join))) {
		swc_comm_leave(ctx, join.comm);
		ret = -EFAULT;
	}
	return ret;
}

static int ioc_leave(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_comm_ref ref;

	if (copy_from_user(&ref, arg, sizeof(ref)))
		return -EFAULT;
	if (ref.error || ref.resv)
		return -EINVAL;
	return swc_comm_leave(ctx, ref.comm);
}

static int ioc_abort(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_comm_ref ref;
	struct swc_member *member;

	if (copy_from_user(&ref, arg, sizeof(ref)))
		return -EFAULT;
	/* From 512 on they are the kernel's own: ERESTARTSYS and its like would restart system calls. */
	if (ref.error >= 512 || ref.resv)
		return -EINVAL;
	member = swc_member_get(ctx, ref.comm);
	if (!member)
		return -ENOENT;
	swc_comm_abort(member->comm, -(int)(ref.error ?: ECONNABORTED), member->rank,
		       member->submitted, "rank %u (pid %d, %s) aborted the communicator",
		       member->rank, pid_nr(member->pid), member->name);
	swc_member_put(member);
	return 0;
}

static int ioc_error(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_comm_error e = {};
	struct swc_member *member;
	struct swc_comm *comm;
	u32 handle;

	if (get_user(handle, (u32 __user *)arg))
		return -EFAULT;
	member = swc_member_get(ctx, handle);
	if (!member)
		return -ENOENT;
	comm = member->comm;
	e.comm = handle;
	spin_lock(&comm->lock);
	e.error = comm->error;
	e.culprit = comm->culprit;
	e.aborted = comm->status == SWC_COMM_ABORTED;
	e.seq = comm->error_seq;
	memcpy(e.text, comm->text, sizeof(e.text));
	spin_unlock(&comm->lock);
	swc_member_put(member);
	return copy_to_user(arg, &e, sizeof(e)) ? -EFAULT : 0;
}

static int ioc_plan_load(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_plan_load *load;
	struct swc_member *member;
	int ret;

	load = memdup_user(arg, sizeof(*load));
	if (IS_ERR(load))
		return PTR_ERR(load);
	memset(load->text, 0, sizeof(load->text));
	ret = -EINVAL;
	if (load->resv)
		goto out;
	ret = -ENOENT;
	member = swc_member_get(ctx, load->comm);
	if (!member)
		goto out;
	ret = swc_plan_load(member, load);
	if (copy_to_user(arg, load, sizeof(*load))) {
		if (!ret)
			swc_plan_unload(member, load->plan);
		ret = -EFAULT;
	}
	swc_member_put(member);
out:
	kfree(load);
	return ret;
}

static int ioc_plan_unload(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_plan_unload unload;
	struct swc_member *member;
	int ret;

	if (copy_from_user(&unload, arg, sizeof(unload)))
		return -EFAULT;
	member = swc_member_get(ctx, unload.comm);
	if (!member)
		return -ENOENT;
	ret = swc_plan_unload(member, unload.plan);
	swc_member_put(member);
	return ret;
}

static int ioc_mem_reg(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_mem_reg reg;
	int ret;

	if (copy_from_user(&reg, arg, sizeof(reg)))
		return -EFAULT;
	if (reg.flags)
		return -EINVAL;
	ret = swc_region_add_handle(ctx, reg.addr, reg.bytes, &reg.region);
	if (!ret && copy_to_user(arg, &reg, sizeof(reg))) {
		swc_region_drop_handle(ctx, reg.region);
		ret = -EFAULT;
	}
	return ret;
}

static int ioc_mem_unreg(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_mem_unreg unreg;

	if (copy_from_user(&unreg, arg, sizeof(unreg)))
		return -EFAULT;
	if (unreg.resv)
		return -EINVAL;
	return swc_region_drop_handle(ctx, unreg.region);
}

/* The completion ring has the entry; there is nobody else to tell. */
static void ioctl_complete(struct swc_part *part)
{
	swc_part_put(part);
}

static int ioc_submit(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_desc desc;
	struct swc_member *member;
	struct swc_part *part;
	int ret;

	if (copy_from_user(&desc, arg, sizeof(desc)))
		return -EFAULT;
	desc.flags |= SWC_OP_RING;
	member = swc_member_get(ctx, desc.comm);
	if (!member)
		return -ENOENT;
	part = swc_part_create(ctx, member, &desc, NULL);
	if (IS_ERR(part))
		return PTR_ERR(part);
	part->complete = ioctl_complete;
	ret = swc_submit(part, desc.flags & SWC_OP_WAITING);
	if (ret)
		swc_part_drop(part);
	return ret;
}

static int ioc_ring_wait(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_ring_wait wait;

	if (copy_from_user(&wait, arg, sizeof(wait)))
		return -EFAULT;
	return swc_ring_wait(ctx->ring, wait.tail, wait.timeout_ms);
}

static int ioc_slot_wait(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_slot_wait wait;
	struct swc_member *member;
	int ret;

	if (copy_from_user(&wait, arg, sizeof(wait)))
		return -EFAULT;
	member = swc_member_get(ctx, wait.comm);
	if (!member)
		return -ENOENT;
	ret = swc_slot_wait(member, &wait);
	swc_member_put(member);
	return ret;
}

static int ioc_slot_wake(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_slot_wake wake;
	struct swc_member *member;

	if (copy_from_user(&wake, arg, sizeof(wake)))
		return -EFAULT;
	if (wake.resv)
		return -EINVAL;
	member = swc_member_get(ctx, wake.comm);
	if (!member)
		return -ENOENT;
	swc_slot_wake(member->comm);
	swc_member_put(member);
	return 0;
}

static int ioc_part_init(struct swc_ctx *ctx, void __user *arg)
{
	struct swc_part_init init;
	int ret;

	if (copy_from_user(&init, arg, sizeof(init)))
		return -EFAULT;
	ret = swc_parted_create(ctx, &init);
	if (!ret && copy_to_user(arg, &init, sizeof(init))) {
		swc_parted_free(ctx, init.handle);
		ret = -EFAULT;
	}
	return ret;
}

/* The calls that name a partitioned operation. */
static int ioc_part(struct swc_ctx *ctx, unsigned int cmd, void __user *arg)
{
	struct swc_part_ref ref;
	struct swc_parted *parted;
	int ret;

	if (copy_from_user(&ref, arg, sizeof(ref)))
		return -EFAULT;
	if (ref.resv || (cmd != SWC_IOC_PART_WAIT && (ref.partition || ref.timeout_ms)))
		return -EINVAL;
	parted = swc_parted_get(ctx, ref.handle);
	if (!parted)
		return -ENOENT;
	switch (cmd) {
	case SWC_IOC_PART_START:
		ret = swc_parted_start(parted);
		break;
	case SWC_IOC_PART_KICK:
		ret = swc_parted_kick(parted);
		break;
	case SWC_IOC_PART_WAIT:
		ret = swc_parted_wait(parted, ref.partition, ref.timeout_ms);
		break;
	default:
		ret = swc_parted_free(ctx, ref.handle);
		break;
	}
	swc_parted_put(parted);
	return ret;
}

long swc_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct swc_ctx *ctx = file->private_data;
	void __user *uarg = (void __user *)arg;

	if (current->mm != ctx->mm)
		return -EPERM;
	switch (cmd) {
	case SWC_IOC_INFO:
		return ioc_info(ctx, uarg);
	case SWC_IOC_COMM_JOIN:
		return ioc_join(ctx, uarg);
	case SWC_IOC_COMM_LEAVE:
		return ioc_leave(ctx, uarg);
	case SWC_IOC_COMM_ABORT:
		return ioc_abort(ctx, uarg);
	case SWC_IOC_COMM_ERROR:
		return ioc_error(ctx, uarg);
	case SWC_IOC_PLAN_LOAD:
		return ioc_plan_load(ctx, uarg);
	case SWC_IOC_PLAN_UNLOAD:
		return ioc_plan_unload(ctx, uarg);
	case SWC_IOC_MEM_REG:
		return ioc_mem_reg(ctx, uarg);
	case SWC_IOC_MEM_UNREG:
		return ioc_mem_unreg(ctx, uarg);
	case SWC_IOC_SUBMIT:
		return ioc_submit(ctx, uarg);
	case SWC_IOC_RING_WAIT:
		return ioc_ring_wait(ctx, uarg);
	case SWC_IOC_SLOT_WAIT:
		return ioc_slot_wait(ctx, uarg);
	case SWC_IOC_SLOT_WAKE:
		return ioc_slot_wake(ctx, uarg);
	case SWC_IOC_PART_INIT:
		return ioc_part_init(ctx, uarg);
	case SWC_IOC_PART_START:
	case SWC_IOC_PART_KICK:
	case SWC_IOC_PART_WAIT:
	case SWC_IOC_PART_FREE:
		return ioc_part(ctx, cmd, uarg);
	case SWC_IOC_COMM_QUERY:
		return swc_query_comm(uarg);
	case SWC_IOC_STATS:
		return swc_query_stats(uarg);
	default:
		return -ENOTTY;
	}
}
