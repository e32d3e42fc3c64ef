/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_EXIT_TEXT_H
#define SWC_EXIT_TEXT_H

#include <linux/types.h>

struct pid;
struct task_struct;

/* Bytes that swc_exit_text() needs, and more than its callers put there instead. */
#define SWC_EXIT_TEXT	64

bool swc_exit_text(const struct task_struct *task, char *text);
bool swc_exit_begun(struct pid *pid, char *text);

#endif /* SWC_EXIT_TEXT_H */
