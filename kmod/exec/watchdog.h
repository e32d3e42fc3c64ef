/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_WATCHDOG_H
#define SWC_WATCHDOG_H

#include "comm/comm.h"

void swc_watchdog_fn(struct work_struct *work);
u64 swc_watchdog_first_check(const struct swc_comm *comm, u64 now, u64 deadline);
void swc_watchdog_arm(struct swc_comm *comm, u64 at, u64 now);
void swc_watchdog_arm_waiting(struct swc_comm *comm, u64 at, u64 now);

#endif /* SWC_WATCHDOG_H */
