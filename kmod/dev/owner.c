// SPDX-License-Identifier: GPL-2.0-only
/*
 * The process that a context belongs to: has it exited, has it closed the device?
 *
 * Neither its address space nor the file tells. A child made with vfork() or CLONE_VM keeps the address
 * space, a child made with CLONE_FILES the table of descriptors, and any child the file.
 */
#include <linux/fdtable.h>
#include <linux/fs.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/wait.h>

#include "comm/exit_text.h"
#include "dev/owner.h"
#include "mem/context.h"
#include "swingcoll.h"

/* As for a pidfd: woken under tasklist_lock when the process exits, or a traced thread of it. */
static int owner_event(struct wait_queue_entry *entry, unsigned int mode, int sync, void *key)
{
	queue_work(swc_wq, &container_of(entry, struct swc_ctx, owner_wait)->owner_work);
	return 0;
}

/**
 * swc_owner_watch() - make the caller the owner of the context, and queue ctx->owner_work when it may have
 * exited
 */
void swc_owner_watch(struct swc_ctx *ctx)
{
	ctx->owner = get_pid(task_tgid(current));
	init_waitqueue_func_entry(&ctx->owner_wait, owner_event);
	add_wait_queue(&ctx->owner->wait_pidfd, &ctx->owner_wait);
}

/**
 * swc_owner_unwatch() - undo swc_owner_watch(); waits for the work item, and ctx->owner is only good for
 * comparisons from then on
 */
void swc_owner_unwatch(struct swc_ctx *ctx)
{
	remove_wait_queue(&ctx->owner->wait_pidfd, &ctx->owner_wait);
	cancel_work_sync(&ctx->owner_work);
	put_pid(ctx->owner);
}

bool swc_owner_has_exited(const struct swc_ctx *ctx)
{
	struct task_struct *leader;
	bool exited;

	rcu_read_lock();
	leader = pid_task(ctx->owner, PIDTYPE_TGID);
	exited = !leader || (READ_ONCE(leader->exit_state) && thread_group_empty(leader));
	rcu_read_unlock();
	return exited;
}

/**
 * swc_owner_explain() - how the owner ends
 * @otherwise: what it has done if it does not end
 * @text: SWC_EXIT_TEXT bytes, for swc_comm_ctx_died()
 */
void swc_owner_explain(const struct swc_ctx *ctx, const char *otherwise, char *text)
{
	const struct task_struct *task = current;

	rcu_read_lock();
	if (task_tgid(current) != ctx->owner)
		task = pid_task(ctx->owner, PIDTYPE_TGID);
	if (!task)
		strscpy(text, "has exited", SWC_EXIT_TEXT);
	else if (!swc_exit_text(task, text))
		strscpy(text, otherwise, SWC_EXIT_TEXT);
	rcu_read_unlock();
}

static int is_file(const void *file, struct file *open, unsigned int fd)
{
	return open == file;
}

/**
 * swc_owner_has_closed() - is a descriptor of the owner that is being closed its last one?
 *
 * Called while any process closes one. Threads can have tables of their own (unshare(), CLONE_FILES).
 */
bool swc_owner_has_closed(const struct swc_ctx *ctx, const struct file *file)
{
	const struct files_struct *seen = NULL;
	struct task_struct *thread;
	bool open = false;

	if (task_tgid(current) != ctx->owner)
		return false;
	rcu_read_lock();
	for_each_thread(current, thread) {
		task_lock(thread);
		if (thread->files && thread->files != seen) {
			seen = thread->files;
			open = iterate_fd(thread->files, 0, is_file, file);
		}
		task_unlock(thread);
		if (open)
			break;
	}
	rcu_read_unlock();
	return !open;
}
