/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_DEADLINE_H
#define SWC_DEADLINE_H

#include "exec/task.h"

void swc_deadline_work(struct work_struct *work);
u64 swc_deadline_look(const struct swc_comm *comm, u64 now, u64 deadline);
void swc_deadline_watch(struct swc_comm *comm, u64 at);

#endif /* SWC_DEADLINE_H */
