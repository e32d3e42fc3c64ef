// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * SWINGCOLL_DEBUG=trace: when a communicator fails, the last events that the kernel has recorded of
 * it are printed on standard error, once per rank.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/priv.h"
#include "src/trace_text.h"

#define EVENTS 32

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool wanted;

/* A list of words with commas between them, of which there is only one so far. */
static void read_variable(void)
{
	const char *word = getenv("SWINGCOLL_DEBUG");

	while (word && *word) {
		size_t length = strcspn(word, ",");

		if (length == strlen("trace") && !strncmp(word, "trace", length))
			wanted = true;
		else if (length)
			fprintf(stderr,
				"swingcoll: SWINGCOLL_DEBUG: '%.*s' has no effect: the only word "
				"is trace\n",
				(int)(length < 40 ? length : 40), word);
		word += length + (word[length] == ',');
	}
}

void swc_debug_init(void)
{
	pthread_once(&once, read_variable);
}

/* The last events. Negative errno: there are none to read. */
static int read_events(struct swingcoll_comm *comm, struct swc_trace_query *q,
		       struct swc_trace_record r[EVENTS])
{
	int ret;

	*q = (struct swc_trace_query){ .comm = comm->handle };
	ret = swc_context_ioctl(comm->ctx, SWC_IOC_TRACE, q);
	if (ret)
		return ret;
	*q = (struct swc_trace_query){
		.comm = comm->handle,
		.first = q->written > EVENTS ? q->written - EVENTS : 0,
		.max_records = EVENTS,
		.records = (uintptr_t)r,
	};
	return swc_context_ioctl(comm->ctx, SWC_IOC_TRACE, q);
}

static void print_events(struct swingcoll_comm *comm, int error)
{
	struct swc_trace_record r[EVENTS];
	char line[SWC_TRACE_LINE], *text = NULL;
	struct swc_trace_query q;
	int ret = read_events(comm, &q, r);
	size_t bytes;
	FILE *f;

	if (ret) {
		fprintf(stderr, "swingcoll: rank %u: %s; no events are recorded (%s)\n", comm->rank,
			swingcoll_strerror(error), strerror(-ret));
		return;
	}
	/* In one piece: all ranks print at about the same time. */
	f = open_memstream(&text, &bytes);
	if (!f)
		return;
	fprintf(f, "swingcoll: rank %u: %s\n", comm->rank,
		*q.text ? q.text : swingcoll_strerror(error));
	fprintf(f, "swingcoll: the last %u of %llu events of communicator %llu:\n%s\n", q.count,
		(unsigned long long)q.written, (unsigned long long)q.number, swc_trace_heading());
	for (uint32_t i = 0; i < q.count; i++)
		fprintf(f, "%s\n", swc_trace_line(&r[i], r[0].ns, line));
	if (!fclose(f))
		fputs(text, stderr);
	free(text);
}

int swc_debug_failed(struct swingcoll_comm *comm, int error)
{
	if (error < 0 && wanted && swingcoll_comm_failed(error) &&
	    !__atomic_exchange_n(&comm->debug_printed, true, __ATOMIC_RELAXED))
		print_events(comm, error);
	return error;
}
