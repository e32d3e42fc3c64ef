// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last failure of a communicator: errno, culprit, and one line for swingcoll_comm_error().
 */
#include "comm/error.h"
#include "comm/recorder.h"
#include "mem/account.h"

/*
 * Record a failure; comm->lock is held. Without @fmt the line that was recorded last stays, and the culprit
 * that it names: of several ranks that fail in one operation, the one noted last need not be the one whose
 * error is reported.
 */
void swc_comm_error_record(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt,
			   va_list args)
{
	bool noted = comm->error && comm->error_seq == seq;

	lockdep_assert_held(&comm->lock);
	comm->error = error;
	if (fmt || !noted)
		comm->culprit = culprit;
	comm->error_seq = seq;
	if (fmt)
		vscnprintf(comm->text, sizeof(comm->text), fmt, args);
}

/* Record a failure that does not abort the communicator. */
void swc_comm_error_note(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	spin_lock(&comm->lock);
	/* The reason of an abort is kept. */
	if (comm->status != SWC_COMM_ABORTED) {
		swc_comm_error_record(comm, error, culprit, seq, fmt, args);
		swc_record(comm->recorder, SWC_TRACE_ERROR, culprit, seq, (s64)error);
	}
	spin_unlock(&comm->lock);
	va_end(args);
}

/**
 * swc_comm_note_quota() - record which limit of a user has kept a rank from submitting
 * @account: of that user
 * @rank, @seq: the rank, and the operation that it was to be
 * @error: any error; only -EDQUOT is recorded
 *
 * Return: @error.
 */
int swc_comm_note_quota(struct swc_comm *comm, const struct swc_account *account, u32 rank, u64 seq,
			int error)
{
	char text[SWC_TEXT_BYTES - 64];

	if (error == -EDQUOT) {
		swc_account_explain(account, text, sizeof(text));
		swc_comm_error_note(comm, error, rank, seq, SWC_MEMBER_FMT ": %s",
				    SWC_MEMBER_ARGS(&comm->member[rank]), text);
	}
	return error;
}
