// SPDX-License-Identifier: GPL-2.0-only
/*
 * What went wrong last on a communicator, in words, for swingcoll_comm_error().
 */
#include "comm/error.h"

/* comm->lock is held. Without @fmt the line that was noted last stays. */
void swc_fault_record(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt, va_list args)
{
	lockdep_assert_held(&comm->lock);
	comm->error = error;
	comm->culprit = culprit;
	comm->error_seq = seq;
	if (fmt)
		vscnprintf(comm->text, sizeof(comm->text), fmt, args);
}

/* Record a failure that has no more consequences. */
void swc_fault_note(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	spin_lock(&comm->lock);
	/* The reason of an abort stays. */
	if (comm->status != SWC_COMM_ABORTED)
		swc_fault_record(comm, error, culprit, seq, fmt, args);
	spin_unlock(&comm->lock);
	va_end(args);
}
