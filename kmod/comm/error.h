/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_FAULT_H
#define SWC_FAULT_H

#include "exec/task.h"

void swc_fault_record(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt, va_list args)
	__printf(5, 0);
void swc_fault_note(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt, ...)
	__printf(5, 6);

#endif /* SWC_FAULT_H */
