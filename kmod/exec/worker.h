/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_EXEC_H
#define SWC_EXEC_H

#include "exec/task.h"

void swc_exec_start(struct swc_op *op, struct swc_part *self, bool inline_ok);
bool swc_exec_enter(struct swc_op *op);
void swc_exec_help(struct swc_op *op, enum swc_stat where);
void swc_exec_leave(struct swc_op *op);
void swc_exec_attend(struct swc_op *op, int done, const unsigned long *flags);
void swc_exec_work(struct work_struct *work);

#endif /* SWC_EXEC_H */
