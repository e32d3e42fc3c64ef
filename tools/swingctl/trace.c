// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingctl trace: the last events of communicators, also of those that have ended, as text, as JSON, and as a
 * file of trace events for Perfetto and chrome://tracing.
 */
#include "swingctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/device.h"
#include "common/json.h"
#include "common/number.h"
#include "perfetto.h"
#include "recording.h"
#include "src/trace_text.h"

/* ------------------------------------------------------------------ text */

static void print_state(const struct swc_trace_query *q)
{
	char age[NUMBER_TEXT];

	if (q->flags & SWC_TRACE_ENDED)
		printf("ended %s ago", number_ns((double)q->ended_ns, age));
	else
		printf("%s", q->flags & SWC_TRACE_ABORTED ? "aborted" : "alive");
	if (q->flags & SWC_TRACE_FAILED)
		printf(": %s", *q->text ? q->text : strerror(-q->error));
	putchar('\n');
}

static void print_recording(const struct recording *rec)
{
	const struct swc_trace_query *q = &rec->q;
	char line[SWC_TRACE_LINE];

	printf("communicator %llu  %u ranks  uid %u  %llu events  ", (unsigned long long)q->number,
	       q->nranks, q->uid, (unsigned long long)q->written);
	print_state(q);
	if (!rec->n)
		return;
	puts(swc_trace_heading());
	for (size_t i = 0; i < rec->n; i++)
		puts(swc_trace_line(&rec->r[i], rec->r[0].ns, line));
}

/* ------------------------------------------------------------------ JSON */

static cJSON *event_json(const struct swc_trace_record *r)
{
	cJSON *o = cJSON_CreateObject();
	char words[SWC_TRACE_LINE];
	long step = swc_trace_step(r);

	cJSON_AddNumberToObject(o, "ns", (double)r->ns);
	cJSON_AddStringToObject(o, "event", swc_trace_type_name(r->type));
	cJSON_AddNumberToObject(o, "rank", r->rank == SWC_TRACE_NO_RANK ? -1 : r->rank);
	cJSON_AddNumberToObject(o, "seq", (double)r->seq);
	if (step >= 0) {
		cJSON_AddNumberToObject(o, "channel", r->channel);
		cJSON_AddNumberToObject(o, "step", (double)step);
	}
	cJSON_AddStringToObject(o, "what", swc_trace_words(r, words));
	return o;
}

static cJSON *recording_json(const struct recording *rec)
{
	const struct swc_trace_query *q = &rec->q;
	cJSON *o = cJSON_CreateObject(), *events = cJSON_CreateArray();

	cJSON_AddNumberToObject(o, "comm", (double)q->number);
	cJSON_AddNumberToObject(o, "nranks", q->nranks);
	cJSON_AddNumberToObject(o, "uid", q->uid);
	cJSON_AddNumberToObject(o, "events", (double)q->written);
	cJSON_AddNumberToObject(o, "now_ns", (double)q->now_ns);
	cJSON_AddBoolToObject(o, "ended", q->flags & SWC_TRACE_ENDED);
	if (q->flags & SWC_TRACE_ENDED)
		cJSON_AddNumberToObject(o, "ended_s", (double)q->ended_ns * 1e-9);
	cJSON_AddBoolToObject(o, "aborted", q->flags & SWC_TRACE_ABORTED);
	cJSON_AddNumberToObject(o, "error", q->error);
	cJSON_AddNumberToObject(o, "culprit", q->culprit);
	cJSON_AddStringToObject(o, "text", q->text);
	for (size_t i = 0; i < rec->n; i++)
		cJSON_AddItemToArray(events, event_json(&rec->r[i]));
	cJSON_AddItemToObject(o, "trace", events);
	return o;
}

/* ------------------------------------------------------------------ all of them */

static void show(const struct ctl *ctl, const struct recording *rec, cJSON *list)
{
	if (ctl->perfetto)
		perfetto_add(list, rec->q.number, rec->r, rec->n);
	else if (list)
		cJSON_AddItemToArray(list, recording_json(rec));
	else
		print_recording(rec);
}

/* Show one communicator, or all if none is asked for; how many there were, or a negative errno. */
static int show_all(const struct ctl *ctl, int fd, cJSON *list)
{
	uint64_t number = ctl->comm;
	struct recording rec;
	int ret, n = 0;

	while (!(ret = recording_read(fd, number, ctl->last, &rec)) || ret == -EAGAIN) {
		if (ret)
			continue;
		number = rec.q.number + 1;
		if (!ctl->comm || rec.q.number == ctl->comm) {
			show(ctl, &rec, list);
			n++;
		}
		free(rec.r);
		if (ctl->comm)
			return n;
	}
	return ret == -ENOENT ? n : ret;
}

static int write_perfetto(const struct ctl *ctl, cJSON *events)
{
	cJSON *o = cJSON_CreateObject();
	FILE *f = strcmp(ctl->perfetto, "-") ? fopen(ctl->perfetto, "w") : stdout;
	char *text;
	int bad;

	cJSON_AddItemToObject(o, "traceEvents", events);
	cJSON_AddStringToObject(o, "displayTimeUnit", "ns");
	text = cJSON_PrintUnformatted(o);
	cJSON_Delete(o);
	bad = !f || !text || fputs(text, f) < 0;
	free(text);
	if (f && f != stdout)
		bad |= fclose(f);
	if (bad)
		fprintf(stderr, "swingctl: cannot write %s: %s\n", ctl->perfetto, strerror(errno));
	return bad ? 2 : 0;
}

int ctl_trace(const struct ctl *ctl)
{
	int fd = device_open_or_explain("swingctl"), n;
	cJSON *list;

	if (fd < 0)
		return 2;
	list = ctl->json || ctl->perfetto ? cJSON_CreateArray() : NULL;
	n = show_all(ctl, fd, list);
	close(fd);
	if (n < 0 || (!n && ctl->comm)) {
		if (n < 0)
			device_ioctl_failed("swingctl", "SWC_IOC_TRACE", n);
		else
			fprintf(stderr,
				"swingctl: no recording of communicator %llu: swingctl trace without a number "
				"lists those that this user may read\n",
				(unsigned long long)ctl->comm);
		cJSON_Delete(list);
		return 2;
	}
	if (ctl->perfetto)
		return write_perfetto(ctl, list);
	if (list)
		json_document(stdout, list);
	else if (!n)
		puts(geteuid() ? "no recordings of communicators of this user (root sees all)"
			       : "no recordings (module parameters trace_records and trace_keep)");
	return 0;
}
