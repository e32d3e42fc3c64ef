// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/swingcoll: contexts from open to release, their mappings, and the end of their process.
 *
 * A context belongs to the address space that opened it. When that goes away (exec, exit, kill), commands in
 * flight may keep the file open for longer. So the mmu notifier, which is called promptly on every kernel,
 * aborts the communicators, and release only cleans up.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "dev/chrdev.h"
#include "comm/comm.h"
#include "comm/slot_wait.h"
#include "compat.h"
#include "exec/partitioned.h"
#include "mem/account.h"
#include "mem/completion_ring.h"
#include "mem/context.h"
#include "mem/region.h"
#include "trace.h"

static void mm_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct swc_ctx *ctx = container_of(notifier, struct swc_ctx, notifier);

	swc_comm_ctx_died(ctx, "has exited");
}

static const struct mmu_notifier_ops mm_ops = {
	.release = mm_release,
};

static bool probe_invalidate(struct mmu_interval_notifier *probe, const struct mmu_notifier_range *range,
			     unsigned long seq)
{
	mmu_interval_set_seq(probe, seq);
	return true;
}

static const struct mmu_interval_notifier_ops probe_ops = {
	.invalidate = probe_invalidate,
};

/*
 * Inserting the first interval notifier of an address space takes all its locks, which any signal, or
 * io_uring's task work, interrupts. Insert one now, so that registering a buffer is not interrupted.
 */
static int prepare_notifiers(struct mm_struct *mm)
{
	struct mmu_interval_notifier probe;
	int ret = mmu_interval_notifier_insert(&probe, mm, 0, PAGE_SIZE, &probe_ops);

	if (!ret)
		mmu_interval_notifier_remove(&probe);
	return ret;
}

static int swc_open(struct inode *inode, struct file *file)
{
	struct swc_ctx *ctx;
	int ret;

	if (!current->mm)
		return -EINVAL;
	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return -ENOMEM;
	xa_init_flags(&ctx->members, XA_FLAGS_ALLOC1);
	xa_init_flags(&ctx->partitioned_ops, XA_FLAGS_ALLOC1);
	swc_region_ctx_init(ctx);
	ctx->account = swc_account_get(current_euid());
	ret = -ENOMEM;
	if (!ctx->account)
		goto err_free;
	ret = swc_account_charge(ctx->account, SWC_QUOTA_CONTEXTS, 1);
	if (ret)
		goto err_account;
	ctx->ring = swc_ring_create(swc_ring_entries, ctx->account);
	ret = PTR_ERR_OR_ZERO(ctx->ring);
	if (ret)
		goto err_charge;
	ctx->mm = current->mm;
	ctx->notifier.ops = &mm_ops;
	ret = prepare_notifiers(ctx->mm);
	if (!ret)
		ret = mmu_notifier_register(&ctx->notifier, ctx->mm);
	/* Any signal can interrupt both: restart the call unseen. */
	if (ret == -EINTR)
		ret = -ERESTARTNOINTR;
	if (ret)
		goto err_ring;
	/* The pointer is compared with current->mm for as long as the file lives. */
	mmgrab(ctx->mm);
	file->private_data = ctx;
	swc_stat_inc(SWC_STAT_CONTEXTS_OPENED);
	return nonseekable_open(inode, file);

err_ring:
	swc_ring_destroy(ctx->ring);
err_charge:
	swc_account_uncharge(ctx->account, SWC_QUOTA_CONTEXTS, 1);
err_account:
	swc_account_put(ctx->account);
err_free:
	kfree(ctx);
	return ret;
}

static int swc_release(struct inode *inode, struct file *file)
{
	struct swc_ctx *ctx = file->private_data;
	struct mm_struct *mm = ctx->mm;

	/*
	 * No call and no command is in flight, but operations submitted by ioctl may be. In this order: abort
	 * them, wait until they have completed, then free what they used.
	 */
	swc_comm_ctx_died(ctx, "has closed the device");
	swc_partitioned_drop_all(ctx);
	swc_drain_wait(&ctx->live_reqs);
	swc_comm_ctx_drop(ctx);
	swc_region_drain(ctx);
	mmu_notifier_unregister(&ctx->notifier, mm);
	swc_ring_destroy(ctx->ring);
	xa_destroy(&ctx->members);
	xa_destroy(&ctx->regions);
	xa_destroy(&ctx->partitioned_ops);
	swc_account_uncharge(ctx->account, SWC_QUOTA_CONTEXTS, 1);
	swc_account_put(ctx->account);
	kfree(ctx);
	mmdrop(mm);
	swc_stat_inc(SWC_STAT_CONTEXTS_CLOSED);
	return 0;
}

static int mmap_comm(struct swc_ctx *ctx, u64 offset, struct vm_area_struct *vma)
{
	struct swc_member *member = swc_member_get(ctx, (u32)(offset >> 16));
	int ret;

	if (!member)
		return -ENOENT;
	if (offset & (1ull << 48))	/* SWC_MMAP_STATE, else SWC_MMAP_SLOTS */
		ret = swc_state_mmap(member->comm, vma);
	else
		ret = swc_slots_mmap(member->comm, vma);
	swc_member_put(member);
	return ret;
}

static int mmap_progress(struct swc_ctx *ctx, u32 handle, struct vm_area_struct *vma)
{
	struct swc_partitioned *partitioned = swc_partitioned_get(ctx, handle);
	int ret;

	if (!partitioned)
		return -ENOENT;
	ret = swc_partitioned_mmap(partitioned, vma);
	swc_partitioned_put(partitioned);
	return ret;
}

static int swc_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct swc_ctx *ctx = file->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;

	if (current->mm != ctx->mm)
		return -EPERM;
	if (offset == SWC_MMAP_RING || offset == SWC_MMAP_RING_USER)
		return swc_ring_mmap(ctx->ring, vma, offset == SWC_MMAP_RING_USER);
	if (offset == SWC_MMAP_STATE((u32)(offset >> 16)) ||
	    offset == SWC_MMAP_SLOTS((u32)(offset >> 16)))
		return mmap_comm(ctx, offset, vma);
	if (offset == SWC_MMAP_PROGRESS((u32)(offset >> 16)))
		return mmap_progress(ctx, (u32)(offset >> 16), vma);
	return -EINVAL;
}

static __poll_t swc_poll(struct file *file, poll_table *wait)
{
	struct swc_ctx *ctx = file->private_data;

	return swc_ring_poll(ctx->ring, file, wait);
}

static const struct file_operations swc_fops = {
	.owner = THIS_MODULE,
	.open = swc_open,
	.release = swc_release,
	.unlocked_ioctl = swc_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.uring_cmd = swc_uring_cmd,
	.mmap = swc_mmap,
	.poll = swc_poll,
};

static struct miscdevice swc_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "swingcoll",
	.fops = &swc_fops,
	.mode = 0660,
};

int swc_chrdev_init(void)
{
	return misc_register(&swc_device);
}

void swc_chrdev_exit(void)
{
	misc_deregister(&swc_device);
}
