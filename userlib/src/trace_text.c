// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events of a communicator's recording as text. Pure: the records come from the caller.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "plan/names.h"
#include "src/trace_text.h"

static const char *const type_names[SWC_TRACE_NR] = {
	[SWC_TRACE_JOIN] = "join",	  [SWC_TRACE_LEAVE] = "leave",
	[SWC_TRACE_DIED] = "died",	  [SWC_TRACE_SUBMIT] = "submit",
	[SWC_TRACE_START] = "start",	  [SWC_TRACE_STEP] = "step",
	[SWC_TRACE_SEGMENT] = "segment",  [SWC_TRACE_PLACED] = "placed",
	[SWC_TRACE_SENT] = "sent",	  [SWC_TRACE_COMPLETE] = "complete",
	[SWC_TRACE_ERROR] = "error",	  [SWC_TRACE_ABORT] = "abort",
	[SWC_TRACE_PATH_LEFT] = "leaves", [SWC_TRACE_PATH_TAKEN] = "takes",
};

static const char *const kind_names[] = {
	[SWC_STEP_NET] = "messages",
	[SWC_STEP_LOCAL] = "local copy or reduction",
	[SWC_STEP_SYNC] = "barrier",
	[SWC_STEP_COPY] = "local copies",
};

const char *swc_trace_type_name(unsigned int type)
{
	return type < SWC_TRACE_NR && type_names[type] ? type_names[type] : "?";
}

static const char *kind_name(uint32_t kind)
{
	return kind >= SWC_STEP_NET && kind <= SWC_STEP_COPY ? kind_names[kind] : "?";
}

static void outcome_words(int32_t error, int32_t culprit, char *text, size_t bytes)
{
	if (!error)
		snprintf(text, bytes, "success");
	else if (culprit < 0)
		snprintf(text, bytes, "%s", strerror(-error));
	else
		snprintf(text, bytes, "%s; rank %d is at fault", strerror(-error), culprit);
}

const char *swc_trace_words(const struct swc_trace_record *r, char text[SWC_TRACE_LINE])
{
	uint32_t low = (uint32_t)r->arg, high = (uint32_t)(r->arg >> 32);
	const char *coll = swc_coll_name(r->channel);
	size_t bytes = SWC_TRACE_LINE / 2;

	*text = '\0';
	switch (r->type) {
	case SWC_TRACE_JOIN:
		snprintf(text, bytes, "pid %u%s", low, high ? " in another pid namespace" : "");
		break;
	case SWC_TRACE_LEAVE:
	case SWC_TRACE_DIED:
		snprintf(text, bytes, "after %llu operations", (unsigned long long)r->seq);
		break;
	case SWC_TRACE_SUBMIT:
	case SWC_TRACE_START:
		snprintf(text, bytes, "%s, %llu bytes", coll ? coll : "?",
			 (unsigned long long)r->arg);
		break;
	case SWC_TRACE_STEP:
		snprintf(text, bytes, "%s", kind_name(high));
		break;
	case SWC_TRACE_SEGMENT:
		snprintf(text, bytes, "%u bytes from rank %u", high, low);
		break;
	case SWC_TRACE_PLACED:
		snprintf(text, bytes, "message from rank %u", low);
		break;
	case SWC_TRACE_SENT:
		snprintf(text, bytes, "message to rank %u", low);
		break;
	case SWC_TRACE_COMPLETE:
		outcome_words((int32_t)low, (int32_t)high, text, bytes);
		break;
	case SWC_TRACE_ERROR:
	case SWC_TRACE_ABORT:
		outcome_words((int32_t)low, -1, text, bytes);
		break;
	case SWC_TRACE_PATH_LEFT:
	case SWC_TRACE_PATH_TAKEN:
		snprintf(text, bytes, "path %u to rank %u", high, low);
		break;
	}
	return text;
}

long swc_trace_step(const struct swc_trace_record *r)
{
	switch (r->type) {
	case SWC_TRACE_STEP:
		return (uint32_t)r->arg;
	case SWC_TRACE_PLACED:
	case SWC_TRACE_SENT:
		return (long)(r->arg >> 32);
	}
	return -1;
}

/* Is it about an operation? */
static bool has_operation(const struct swc_trace_record *r)
{
	switch (r->type) {
	case SWC_TRACE_JOIN:
	case SWC_TRACE_LEAVE:
	case SWC_TRACE_DIED:
	case SWC_TRACE_PATH_LEFT:
	case SWC_TRACE_PATH_TAKEN:
		return false;
	}
	return true;
}

const char *swc_trace_heading(void)
{
	return "     seconds   rank  event      operation   ch/step  what";
}

const char *swc_trace_line(const struct swc_trace_record *r, uint64_t start,
			   char text[SWC_TRACE_LINE])
{
	double s = (double)(int64_t)(r->ns - start) * 1e-9;
	char words[SWC_TRACE_LINE], rank[12] = "-", seq[24] = "-", step[32] = "-";

	if (r->rank != SWC_TRACE_NO_RANK)
		snprintf(rank, sizeof(rank), "%u", r->rank);
	if (has_operation(r))
		snprintf(seq, sizeof(seq), "%llu", (unsigned long long)r->seq);
	if (swc_trace_step(r) >= 0)
		snprintf(step, sizeof(step), "%u/%ld", r->channel, swc_trace_step(r));
	snprintf(text, SWC_TRACE_LINE, "%12.6f  %5s  %-9s %10s  %8s  %.96s", s, rank,
		 swc_trace_type_name(r->type), seq, step, swc_trace_words(r, words));
	return text;
}
