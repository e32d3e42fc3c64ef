// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/swingcoll: contexts from open to release, their mappings, and the end of their process.
 *
 * A context belongs to the process that opened it. The file can outlive that, by commands in flight and by
 * the descriptors of others, so its release tells nothing. The context ends when the first of these happens:
 *
 * - The address space goes, by exit or exec (mmu notifier): unless a child shares it.
 * - The process exits (notification as for a pidfd): even if a child shares everything.
 * - The process closes its last descriptor (flush).
 *
 * The end aborts the communicators at once. When no call and no request is left, a work item frees what the
 * context owns, whoever still has the file open.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "dev/chrdev.h"
#include "dev/owner.h"
#include "comm/comm.h"
#include "comm/exit_text.h"
#include "comm/slot_wait.h"
#include "compat.h"
#include "exec/partitioned.h"
#include "mem/account.h"
#include "mem/completion_ring.h"
#include "mem/context.h"
#include "mem/region.h"
#include "trace.h"

/* ------------------------------------------------------------------ end */

/* End a context: its process ends, or has done what @otherwise says. Only the first call has an effect. */
static void ctx_end(struct swc_ctx *ctx, const char *otherwise)
{
	char how[SWC_EXIT_TEXT];

	if (!swc_ctx_set_ended(ctx))
		return;
	/* The context's own use keeps its owner. */
	swc_owner_explain(ctx, otherwise, how);
	swc_comm_ctx_died(ctx, how);
	swc_ring_close(ctx->ring);
	swc_ctx_put(ctx);
}

/* Free all that the context owns; it has no users. */
static void ctx_clean(struct work_struct *work)
{
	struct swc_ctx *ctx = container_of(work, struct swc_ctx, clean_work);

	/* A call that was in progress at the end may have joined a communicator. */
	swc_comm_ctx_died(ctx, "has closed the device");
	swc_partitioned_drop_all(ctx);
	swc_comm_ctx_drop(ctx);
	swc_region_drop_all(ctx);
	swc_ring_drop_memory(ctx->ring);
	swc_owner_unwatch(ctx);
	mmu_notifier_unregister(&ctx->notifier, ctx->mm);
	mmdrop(ctx->mm);
}

static void owner_fn(struct work_struct *work)
{
	struct swc_ctx *ctx = container_of(work, struct swc_ctx, owner_work);

	if (swc_owner_has_exited(ctx))
		ctx_end(ctx, "has exited");
}

static void mm_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	/* The address space goes by exit or exec. */
	ctx_end(container_of(notifier, struct swc_ctx, notifier), "has executed another program");
}

/* Any process closes a descriptor. */
static int swc_flush(struct file *file, fl_owner_t files)
{
	struct swc_ctx *ctx = file->private_data;

	if (!swc_ctx_has_ended(ctx) && swc_owner_has_closed(ctx, file))
		ctx_end(ctx, "has closed the device");
	return 0;
}

/* ------------------------------------------------------------------ open and release */

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
	swc_ctx_init(ctx, ctx_clean);
	INIT_WORK(&ctx->owner_work, owner_fn);
	ctx->account = swc_account_get(swc_account_uid());
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
	mmgrab(ctx->mm);
	swc_owner_watch(ctx);
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

	/* No call and no command is in flight, but operations submitted by ioctl may be. */
	ctx_end(ctx, "has closed the device");
	wait_for_completion(&ctx->idle);
	/* The work item may be queued behind those of other users: do it here. Or wait until it is done. */
	if (cancel_work_sync(&ctx->clean_work))
		ctx_clean(&ctx->clean_work);
	swc_region_drain(ctx);
	swc_ring_destroy(ctx->ring);
	xa_destroy(&ctx->members);
	xa_destroy(&ctx->regions);
	xa_destroy(&ctx->partitioned_ops);
	swc_account_uncharge(ctx->account, SWC_QUOTA_CONTEXTS, 1);
	swc_account_put(ctx->account);
	kfree(ctx);
	swc_stat_inc(SWC_STAT_CONTEXTS_CLOSED);
	return 0;
}

/* ------------------------------------------------------------------ mappings */

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

static int mmap_any(struct swc_ctx *ctx, struct vm_area_struct *vma)
{
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;

	if (offset == SWC_MMAP_RING || offset == SWC_MMAP_RING_USER)
		return swc_ring_mmap(ctx->ring, vma, offset == SWC_MMAP_RING_USER);
	if (offset == SWC_MMAP_STATE((u32)(offset >> 16)) ||
	    offset == SWC_MMAP_SLOTS((u32)(offset >> 16)))
		return mmap_comm(ctx, offset, vma);
	if (offset == SWC_MMAP_PROGRESS((u32)(offset >> 16)))
		return mmap_progress(ctx, (u32)(offset >> 16), vma);
	return -EINVAL;
}

static int swc_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct swc_ctx *ctx = file->private_data;
	int ret = swc_ctx_enter(ctx);

	if (ret)
		return ret;
	ret = mmap_any(ctx, vma);
	swc_ctx_put(ctx);
	return ret;
}

static __poll_t swc_poll(struct file *file, poll_table *wait)
{
	struct swc_ctx *ctx = file->private_data;

	return swc_ring_poll(ctx->ring, file, wait);
}

static const struct file_operations swc_fops = {
	.owner = THIS_MODULE,
	.open = swc_open,
	.flush = swc_flush,
	.release = swc_release,
	.unlocked_ioctl = swc_ioctl,
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
