// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a process ends, in words, for the ranks that survive it.
 */
#include <linux/oom.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "comm/exit_text.h"

/**
 * swc_exit_text() - how does a process end?
 * @task: one of its threads, which is current, or the caller is an RCU reader
 * @text: SWC_EXIT_TEXT bytes: "was killed by signal 9"
 *
 * Return: false, and nothing is written, if it does not end.
 */
bool swc_exit_text(const struct task_struct *task, char *text)
{
	const struct signal_struct *signal = task->signal;
	/* Set before the first of its threads exits; not if the only one calls exit(2). */
	bool group = READ_ONCE(signal->flags) & SIGNAL_GROUP_EXIT;
	int code = group ? READ_ONCE(signal->group_exit_code) : READ_ONCE(task->exit_code);

	if (!group && !(READ_ONCE(task->flags) & PF_EXITING))
		return false;
	if (READ_ONCE(signal->oom_mm))
		snprintf(text, SWC_EXIT_TEXT, "was killed by the OOM killer, memory was short");
	else if (code & 0x7f)
		snprintf(text, SWC_EXIT_TEXT, "was killed by signal %d", code & 0x7f);
	else if (code)
		snprintf(text, SWC_EXIT_TEXT, "has exited with status %d", code >> 8 & 0xff);
	else
		snprintf(text, SWC_EXIT_TEXT, "has exited");
	return true;
}

/**
 * swc_exit_begun() - has a process begun to end?
 *
 * True as soon as all its threads have to exit. If it dumps core, they do so when the dump has been written.
 *
 * @pid: the process
 * @text: as for swc_exit_text()
 */
bool swc_exit_begun(struct pid *pid, char *text)
{
	const struct task_struct *task;
	bool begun;

	rcu_read_lock();
	task = pid_task(pid, PIDTYPE_TGID);
	/* A first thread that has exited by itself says nothing about the others. */
	begun = task && READ_ONCE(task->signal->flags) & SIGNAL_GROUP_EXIT && swc_exit_text(task, text);
	rcu_read_unlock();
	return begun;
}
