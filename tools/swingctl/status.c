// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingctl status: every communicator that this user may see, its members, and which of them keep it waiting;
 * then what each user has of limited resources. A member is late if it has not submitted the oldest operation
 * in flight. What one node knows; job.c puts together what all know.
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
#include "recording.h"
#include "src/trace_text.h"
#include "status.h"

static const char *const status_names[] = { "forming", "live", "aborted" };
static const char *const state_names[] = { "empty", "joined", "left", "dead" };

static const char *name_of(const char *const *names, size_t n, uint32_t i)
{
	return i < n ? names[i] : "unknown";
}

#define NAME(names, i) name_of(names, sizeof(names) / sizeof((names)[0]), i)

/* Where a member is in the oldest operation: the last event of the channel that is least far; ns 0: not known. */
struct place {
	struct swc_trace_record r;
	uint64_t ns; /* since then */
};

struct view {
	struct swc_comm_query q;
	struct swc_member_info m[SWC_MAX_LOCAL_RANKS];
	struct place place[SWC_MAX_LOCAL_RANKS];
	uint32_t nm;
	char id[16];
};

static const char *age_text(uint64_t ns, char text[NUMBER_TEXT])
{
	double s = (double)ns * 1e-9;

	if (s < 1e-3)
		snprintf(text, NUMBER_TEXT, "%.0f us", s * 1e6);
	else if (s < 1)
		snprintf(text, NUMBER_TEXT, "%.0f ms", s * 1e3);
	else if (s < 120)
		snprintf(text, NUMBER_TEXT, "%.1f s", s);
	else
		snprintf(text, NUMBER_TEXT, "%.0f min", s / 60);
	return text;
}

static bool late(const struct view *v, const struct swc_member_info *m)
{
	if (v->q.status == SWC_COMM_FORMING)
		return m->state == SWC_MEMBER_EMPTY;
	if (v->q.status == SWC_COMM_ABORTED || !v->q.inflight)
		return false;
	return m->submitted < v->q.oldest_seq + 1;
}

static cJSON *place_json(const struct place *p)
{
	cJSON *o = cJSON_CreateObject();
	char words[SWC_TRACE_LINE];

	cJSON_AddNumberToObject(o, "step", (double)swc_trace_step(&p->r));
	cJSON_AddNumberToObject(o, "channel", p->r.channel);
	cJSON_AddStringToObject(o, "event", swc_trace_type_name(p->r.type));
	cJSON_AddStringToObject(o, "what", swc_trace_words(&p->r, words));
	cJSON_AddNumberToObject(o, "since_s", (double)p->ns * 1e-9);
	return o;
}

static cJSON *member_json(const struct view *v, const struct swc_member_info *m)
{
	const struct place *p = &v->place[m - v->m];
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "rank", m->rank);
	cJSON_AddNumberToObject(o, "pid", m->pid);
	cJSON_AddStringToObject(o, "command", m->comm);
	cJSON_AddStringToObject(o, "state", NAME(state_names, m->state));
	cJSON_AddNumberToObject(o, "submitted", (double)m->submitted);
	cJSON_AddNumberToObject(o, "inflight", m->inflight);
	cJSON_AddNumberToObject(o, "idle_s", (double)m->idle_ns * 1e-9);
	cJSON_AddBoolToObject(o, "late", late(v, m));
	if (p->ns)
		cJSON_AddItemToObject(o, "place", place_json(p));
	return o;
}

static cJSON *comm_json(const struct view *v)
{
	cJSON *o = cJSON_CreateObject(), *members = cJSON_CreateArray();
	uint32_t i;

	cJSON_AddNumberToObject(o, "number", (double)v->q.cursor);
	cJSON_AddStringToObject(o, "id", v->id);
	cJSON_AddStringToObject(o, "status", NAME(status_names, v->q.status));
	cJSON_AddNumberToObject(o, "uid", v->q.uid);
	cJSON_AddNumberToObject(o, "nranks", v->q.nranks);
	cJSON_AddNumberToObject(o, "nlocal", v->q.nlocal);
	cJSON_AddNumberToObject(o, "completed", (double)v->q.completed);
	cJSON_AddNumberToObject(o, "failed", (double)v->q.failed);
	cJSON_AddNumberToObject(o, "bytes", (double)v->q.bytes);
	cJSON_AddNumberToObject(o, "inflight", v->q.inflight);
	if (v->q.inflight) {
		cJSON_AddNumberToObject(o, "oldest_seq", (double)v->q.oldest_seq);
		cJSON_AddNumberToObject(o, "oldest_s", (double)v->q.oldest_ns * 1e-9);
	}
	cJSON_AddStringToObject(o, "algo", v->q.algo);
	cJSON_AddNumberToObject(o, "error", v->q.error);
	cJSON_AddNumberToObject(o, "culprit", v->q.culprit);
	cJSON_AddStringToObject(o, "text", v->q.text);
	for (i = 0; i < v->nm; i++)
		cJSON_AddItemToArray(members, member_json(v, &v->m[i]));
	cJSON_AddItemToObject(o, "members", members);
	return o;
}

static void print_late(const struct view *v)
{
	uint32_t i;

	for (i = 0; i < v->nm; i++) {
		const struct swc_member_info *m = &v->m[i];

		if (!late(v, m))
			continue;
		if (v->q.status == SWC_COMM_FORMING)
			printf("  late: rank %u has not joined yet\n", m->rank);
		else
			printf("  late: rank %u (pid %u, %s) has not submitted operation %llu\n",
			       m->rank, m->pid, m->comm, (unsigned long long)v->q.oldest_seq);
	}
}

static void print_comm(const struct view *v)
{
	char bytes[NUMBER_TEXT], age[NUMBER_TEXT];
	uint32_t i;

	printf("communicator %llu (%s)  %s  %u ranks, %u here  uid %u\n",
	       (unsigned long long)v->q.cursor, v->id, NAME(status_names, v->q.status), v->q.nranks,
	       v->q.nlocal, v->q.uid);
	printf("  %llu operations done, %llu failed, %s", (unsigned long long)v->q.completed,
	       (unsigned long long)v->q.failed, number_bytes((double)v->q.bytes, bytes));
	if (v->q.inflight)
		printf("; %u in flight, the oldest is number %llu, for %s", v->q.inflight,
		       (unsigned long long)v->q.oldest_seq, age_text(v->q.oldest_ns, age));
	if (*v->q.algo)
		printf("; algorithm %s", v->q.algo);
	printf("\n  %5s %8s %-7s %10s %9s %8s  %s\n", "rank", "pid", "state", "submitted",
	       "in flight", "idle", "command");
	for (i = 0; i < v->nm; i++) {
		const struct swc_member_info *m = &v->m[i];

		if (m->state == SWC_MEMBER_EMPTY)
			continue;
		printf("  %5u %8u %-7s %10llu %9u %8s  %s%s\n", m->rank, m->pid,
		       NAME(state_names, m->state), (unsigned long long)m->submitted, m->inflight,
		       age_text(m->idle_ns, age), m->comm, late(v, m) ? "  LATE" : "");
	}
	print_late(v);
	if (v->q.error)
		printf("  last error: %s (%s)\n", *v->q.text ? v->q.text : "no text",
		       strerror(-v->q.error));
}

/*
 * Find where the members are in the oldest operation in flight, by the recording. A channel that has passed its
 * last step records no more; the others are what the operation waits for.
 */
static void find_places(int fd, struct view *v)
{
	struct recording rec;
	uint32_t i;

	if (!v->q.inflight || recording_read(fd, v->q.cursor, UINT64_MAX, &rec))
		return;
	for (i = 0; i < v->nm && rec.q.number == v->q.cursor; i++) {
		const struct swc_trace_record *last[SWC_MAX_CHANNELS] = { NULL }, *r;
		struct place *p = &v->place[i];

		for (r = rec.r; r < rec.r + rec.n; r++)
			if (r->type == SWC_TRACE_STEP && r->rank == v->m[i].rank &&
			    r->seq == v->q.oldest_seq && r->channel < SWC_MAX_CHANNELS)
				last[r->channel] = r;
		for (uint32_t c = 0; c < SWC_MAX_CHANNELS; c++) {
			if (!last[c] || (p->ns && swc_trace_step(last[c]) >= swc_trace_step(&p->r)))
				continue;
			p->r = *last[c];
			p->ns = rec.q.now_ns > p->r.ns ? rec.q.now_ns - p->r.ns : 1;
		}
	}
	free(rec.r);
}

static int next_comm(int fd, uint64_t *cursor, struct view *v)
{
	int ret;

	memset(v, 0, sizeof(*v));
	v->q.cursor = *cursor;
	v->q.max_members = SWC_MAX_LOCAL_RANKS;
	v->q.members = (uintptr_t)v->m;
	ret = device_ioctl(fd, SWC_IOC_COMM_QUERY, &v->q);
	if (ret)
		return ret;
	*cursor = v->q.cursor;
	v->nm = v->q.nlocal < SWC_MAX_LOCAL_RANKS ? v->q.nlocal : SWC_MAX_LOCAL_RANKS;
	v->q.text[SWC_TEXT_BYTES - 1] = 0;
	v->q.algo[SWC_NAME_BYTES - 1] = 0;
	for (uint32_t i = 0; i < v->nm; i++)
		v->m[i].comm[sizeof(v->m[i].comm) - 1] = 0;
	snprintf(v->id, sizeof(v->id), "%02x%02x%02x%02x", v->q.id_prefix[0], v->q.id_prefix[1],
		 v->q.id_prefix[2], v->q.id_prefix[3]);
	find_places(fd, v);
	return 0;
}

/* ------------------------------------------------------------------ users */

static const struct {
	const char *name, *parameter;
} quotas[SWC_QUOTA_NR] = {
	[SWC_QUOTA_CONTEXTS] = { "contexts", "user_contexts" },
	[SWC_QUOTA_COMMS] = { "communicators", "user_comms" },
	[SWC_QUOTA_CONNS] = { "connections", "user_conns" },
	[SWC_QUOTA_MEMORY] = { "memory", "user_memory_mib" },
};

static cJSON *user_json(const struct swc_user_query *u)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "uid", u->uid);
	for (int i = 0; i < SWC_QUOTA_NR; i++) {
		cJSON *q = cJSON_AddObjectToObject(o, quotas[i].name);

		cJSON_AddNumberToObject(q, "used", (double)u->quota[i].used);
		cJSON_AddNumberToObject(q, "most", (double)u->quota[i].most);
		cJSON_AddNumberToObject(q, "limit", (double)u->quota[i].limit);
		cJSON_AddNumberToObject(q, "refused", (double)u->quota[i].refused);
	}
	return o;
}

static const char *amount(int which, uint64_t n, char text[NUMBER_TEXT])
{
	if (which == SWC_QUOTA_MEMORY)
		return number_bytes((double)n, text);
	snprintf(text, NUMBER_TEXT, "%llu", (unsigned long long)n);
	return text;
}

static void print_user(const struct swc_user_query *u)
{
	char used[NUMBER_TEXT], most[NUMBER_TEXT], limit[NUMBER_TEXT];

	printf("uid %u\n  %-13s %12s %12s %12s %8s\n", u->uid, "", "used", "most", "limit",
	       "refused");
	for (int i = 0; i < SWC_QUOTA_NR; i++) {
		const struct swc_quota_use *q = &u->quota[i];

		printf("  %-13s %12s %12s %12s %8llu", quotas[i].name, amount(i, q->used, used),
		       amount(i, q->most, most), amount(i, q->limit, limit),
		       (unsigned long long)q->refused);
		if (q->refused)
			printf("  raise " DEVICE_MODULE_DIR "/parameters/%s", quotas[i].parameter);
		putchar('\n');
	}
}

/* 0 or a negative errno, with a message. */
static int show_users(int fd, cJSON *list)
{
	struct swc_user_query u = { 0 };
	int ret;

	while (!(ret = device_ioctl(fd, SWC_IOC_USER_QUERY, &u))) {
		if (list)
			cJSON_AddItemToArray(list, user_json(&u));
		else
			print_user(&u);
	}
	if (ret == -ENOENT)
		return 0;
	device_ioctl_failed("swingctl", "SWC_IOC_USER_QUERY", ret);
	return ret;
}

/* ------------------------------------------------------------------ communicators */

int status_comms(int fd, cJSON *list)
{
	struct view *v = malloc(sizeof(*v));
	uint64_t cursor = 0;
	int ret = -ENOMEM, n = 0;

	while (v && !(ret = next_comm(fd, &cursor, v))) {
		if (list)
			cJSON_AddItemToArray(list, comm_json(v));
		else
			print_comm(v);
		n++;
	}
	free(v);
	if (ret != -ENOENT) {
		device_ioctl_failed("swingctl", "SWC_IOC_COMM_QUERY", ret);
		return ret;
	}
	if (!list && !n)
		puts(geteuid() ? "no communicators of this user (root sees all)"
			       : "no communicators");
	return 0;
}

int ctl_status(const struct ctl *ctl)
{
	int fd = device_open_or_explain("swingctl"), ret;
	cJSON *o = NULL, *comms = NULL, *users = NULL;

	if (fd < 0)
		return 2;
	if (ctl->json) {
		o = cJSON_CreateObject();
		comms = cJSON_AddArrayToObject(o, "communicators");
		users = cJSON_AddArrayToObject(o, "users");
	}
	ret = status_comms(fd, comms);
	if (!ret)
		ret = show_users(fd, users);
	close(fd);
	if (!ret && o)
		json_document(stdout, o);
	else
		cJSON_Delete(o);
	return ret ? 2 : 0;
}
