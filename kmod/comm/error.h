/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_COMM_ERROR_H
#define SWC_COMM_ERROR_H

#include "comm/comm.h"

void swc_comm_error_record(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt,
			   va_list args)
	__printf(5, 0);
void swc_comm_error_note(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt, ...)
	__printf(5, 6);

int swc_comm_note_quota(struct swc_comm *comm, const struct swc_account *account, u32 rank, u64 seq,
			int error);

#endif /* SWC_COMM_ERROR_H */
