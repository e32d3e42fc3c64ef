// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recordings as trace events. A communicator is a process and a rank is a thread: operations are slices of it,
 * steps are slices inside these, all else are instants.
 *
 * Slices of a track must not overlap. But a rank may have several operations in flight, and an operation's
 * channels run at the same time: all but the first have tracks of their own beside that of the rank.
 */
#include "perfetto.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/trace_text.h"

/* The number of a track is rank + RANKS * (channel + CHANNELS * lane). */
#define RANKS SWC_MAX_RANKS
#define CHANNELS SWC_MAX_CHANNELS

/* An operation of a rank that has been submitted and not completed. */
struct call {
	struct call *next;
	struct swc_trace_record submit;
	unsigned int lane; /* the least one that no other call of the rank has */
	struct {
		bool open;
		struct swc_trace_record r;
	} step[CHANNELS]; /* the current one of each channel */
};

struct view {
	cJSON *events;
	uint64_t comm;
	struct call *calls;
	unsigned int *tracks; /* those that have a name */
	size_t ntracks;
};

/* ------------------------------------------------------------------ events */

static cJSON *add_event(struct view *v, const char *phase, const char *name, unsigned int track)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "ph", phase);
	cJSON_AddStringToObject(o, "name", name);
	cJSON_AddNumberToObject(o, "pid", (double)v->comm);
	cJSON_AddNumberToObject(o, "tid", track);
	cJSON_AddItemToArray(v->events, o);
	return o;
}

static cJSON *args_of(cJSON *event)
{
	return cJSON_AddObjectToObject(event, "args");
}

static void add_time(cJSON *event, const char *name, uint64_t ns)
{
	cJSON_AddNumberToObject(event, name, (double)ns * 1e-3);
}

/* Give a track a name, when it is used for the first time. */
static void name_track(struct view *v, unsigned int track)
{
	unsigned int rank = track % RANKS, channel = track / RANKS % CHANNELS;
	unsigned int lane = track / RANKS / CHANNELS, *more;
	char name[96];
	int length;

	for (size_t i = 0; i < v->ntracks; i++)
		if (v->tracks[i] == track)
			return;
	more = realloc(v->tracks, (v->ntracks + 1) * sizeof(*more));
	if (!more)
		return;
	v->tracks = more;
	v->tracks[v->ntracks++] = track;
	length = snprintf(name, sizeof(name), "rank %u", rank);
	if (lane)
		length += snprintf(name + length, sizeof(name) - length, ", operation %u in flight",
				   lane + 1);
	if (channel)
		snprintf(name + length, sizeof(name) - length, ", channel %u", channel);
	cJSON_AddStringToObject(args_of(add_event(v, "M", "thread_name", track)), "name", name);
	cJSON_AddNumberToObject(args_of(add_event(v, "M", "thread_sort_index", track)),
				"sort_index",
				(double)(rank * CHANNELS + lane) * CHANNELS + channel);
}

static cJSON *add_slice(struct view *v, const char *name, unsigned int track, uint64_t from,
			uint64_t to)
{
	cJSON *o = add_event(v, "X", name, track);

	name_track(v, track);
	add_time(o, "ts", from);
	add_time(o, "dur", to > from ? to - from : 0);
	return o;
}

static void add_instant(struct view *v, const struct swc_trace_record *r)
{
	bool of_all = r->rank == SWC_TRACE_NO_RANK;
	char words[SWC_TRACE_LINE];
	cJSON *o = add_event(v, "i", swc_trace_type_name(r->type), of_all ? 0 : r->rank), *args;

	if (!of_all)
		name_track(v, r->rank);
	add_time(o, "ts", r->ns);
	cJSON_AddStringToObject(o, "s", of_all || r->type == SWC_TRACE_ABORT ? "p" : "t");
	args = args_of(o);
	cJSON_AddNumberToObject(args, "operation", (double)r->seq);
	cJSON_AddStringToObject(args, "what", swc_trace_words(r, words));
}

/* ------------------------------------------------------------------ operations and steps */

static struct call *find_call(struct view *v, const struct swc_trace_record *r)
{
	for (struct call *c = v->calls; c; c = c->next)
		if (c->submit.rank == r->rank && c->submit.seq == r->seq)
			return c;
	return NULL;
}

static bool lane_is_taken(const struct view *v, unsigned int rank, unsigned int lane)
{
	for (const struct call *c = v->calls; c; c = c->next)
		if (c->submit.rank == rank && c->lane == lane)
			return true;
	return false;
}

static void begin_call(struct view *v, const struct swc_trace_record *r)
{
	struct call *c = calloc(1, sizeof(*c));

	if (!c)
		return;
	c->submit = *r;
	while (lane_is_taken(v, r->rank, c->lane))
		c->lane++;
	c->next = v->calls;
	v->calls = c;
}

static unsigned int track_of(const struct call *c, unsigned int channel)
{
	return c->submit.rank + RANKS * (channel + CHANNELS * c->lane);
}

static void end_step(struct view *v, struct call *c, unsigned int channel, uint64_t ns)
{
	const struct swc_trace_record *r = &c->step[channel].r;
	char name[64], words[SWC_TRACE_LINE];

	if (!c->step[channel].open)
		return;
	c->step[channel].open = false;
	snprintf(name, sizeof(name), "step %ld: %.40s", swc_trace_step(r),
		 swc_trace_words(r, words));
	add_slice(v, name, track_of(c, channel), r->ns, ns);
}

static void begin_step(struct view *v, struct call *c, const struct swc_trace_record *r)
{
	unsigned int channel = r->channel % CHANNELS;

	/* The task continues with the same step after a wait. */
	if (c->step[channel].open && c->step[channel].r.arg == r->arg)
		return;
	end_step(v, c, channel, r->ns);
	c->step[channel].open = true;
	c->step[channel].r = *r;
}

/* @r: its completion; NULL: it has not completed by @ns. */
static void end_call(struct view *v, struct call *c, const struct swc_trace_record *r, uint64_t ns)
{
	struct call **p = &v->calls;
	char words[SWC_TRACE_LINE];
	cJSON *args;

	for (unsigned int channel = 0; channel < CHANNELS; channel++)
		end_step(v, c, channel, ns);
	args = args_of(
		add_slice(v, swc_trace_words(&c->submit, words), track_of(c, 0), c->submit.ns, ns));
	cJSON_AddNumberToObject(args, "operation", (double)c->submit.seq);
	cJSON_AddStringToObject(args, "result", r ? swc_trace_words(r, words) : "not complete");
	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	free(c);
}

static void add_record(struct view *v, const struct swc_trace_record *r)
{
	struct call *c = find_call(v, r);

	if ((r->type == SWC_TRACE_SUBMIT || r->type == SWC_TRACE_START) && !c)
		begin_call(v, r);
	else if (r->type == SWC_TRACE_STEP && c)
		begin_step(v, c, r);
	else if (r->type == SWC_TRACE_COMPLETE && c)
		end_call(v, c, r, r->ns);
	else
		add_instant(v, r);
}

void perfetto_add(cJSON *events, uint64_t number, const struct swc_trace_record *r, size_t n)
{
	struct view v = { .events = events, .comm = number };
	char name[48];

	snprintf(name, sizeof(name), "communicator %llu", (unsigned long long)number);
	cJSON_AddStringToObject(args_of(add_event(&v, "M", "process_name", 0)), "name", name);
	for (size_t i = 0; i < n; i++)
		add_record(&v, &r[i]);
	while (v.calls)
		end_call(&v, v.calls, NULL, r[n - 1].ns);
	free(v.tracks);
}
