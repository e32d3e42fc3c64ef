// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingctl status --job: the communicators of all nodes on which a launcher has started this command. Each
 * process describes what its node knows, as JSON; they exchange that by the bootstrap of the launcher, and
 * rank 0 puts it together: who keeps each communicator waiting, on which host, in which step, since when.
 */
#include "swingctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <swingcoll.h>
#include <unistd.h>

#include "common/device.h"
#include "common/json.h"
#include "common/number.h"
#include "status.h"

static double number(const cJSON *o, const char *name)
{
	const cJSON *v = cJSON_GetObjectItem(o, name);

	return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

static const char *string(const cJSON *o, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(o, name));

	return text ? text : "";
}

static const char *seconds(double s, char text[NUMBER_TEXT])
{
	snprintf(text, NUMBER_TEXT, s < 120 ? "%.1f s" : "%.0f min", s < 120 ? s : s / 60);
	return text;
}

/* ------------------------------------------------------------------ the exchange */

/* What this node knows. NULL: a message was printed. */
static char *describe_node(void)
{
	int fd = device_open_or_explain("swingctl");
	cJSON *o = cJSON_CreateObject(), *comms = cJSON_AddArrayToObject(o, "communicators");
	char host[256] = "?", *text = NULL;

	gethostname(host, sizeof(host) - 1);
	cJSON_AddStringToObject(o, "host", host);
	if (fd < 0)
		cJSON_AddStringToObject(o, "error", strerror(-fd));
	else if (status_comms(fd, comms))
		cJSON_AddStringToObject(o, "error", "its communicators cannot be read");
	if (fd >= 0)
		close(fd);
	text = cJSON_PrintUnformatted(o);
	cJSON_Delete(o);
	return text;
}

/* All nodes' texts, one after the other, each in @size bytes; NULL: failed. */
static char *exchange(const struct swingcoll_bootstrap *boot, const char *text, uint32_t *size)
{
	uint32_t mine = (uint32_t)strlen(text) + 1,
		 *sizes = calloc((size_t)boot->nranks, sizeof(*sizes));
	char *padded = NULL, *all = NULL;
	int ret = sizes ? boot->allgather(boot->arg, &mine, sizes, sizeof(mine)) : -ENOMEM;

	*size = 0;
	for (int i = 0; i < boot->nranks && !ret; i++)
		*size = sizes[i] > *size ? sizes[i] : *size;
	if (!ret) {
		padded = calloc(1, *size);
		all = malloc((size_t)boot->nranks * *size);
		ret = padded && all ? 0 : -ENOMEM;
	}
	if (!ret) {
		memcpy(padded, text, mine);
		ret = boot->allgather(boot->arg, padded, all, *size);
	}
	free(sizes);
	free(padded);
	if (!ret)
		return all;
	fprintf(stderr, "swingctl: %s\n",
		*swingcoll_bootstrap_error() ? swingcoll_bootstrap_error() : strerror(-ret));
	free(all);
	return NULL;
}

/* ------------------------------------------------------------------ putting together */

/* The communicator with this id among those put together; made if it is not there. */
static cJSON *find_comm(cJSON *comms, const cJSON *one)
{
	static const char *const same[] = { "id", "uid", "nranks", "status", "algo" };
	cJSON *o;

	cJSON_ArrayForEach(o, comms) if (!strcmp(string(o, "id"), string(one, "id")) &&
					 number(o, "nranks") == number(one, "nranks")) return o;
	o = cJSON_CreateObject();
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		cJSON_AddItemToObject(o, same[i],
				      cJSON_Duplicate(cJSON_GetObjectItem(one, same[i]), true));
	cJSON_AddArrayToObject(o, "members");
	cJSON_AddItemToArray(comms, o);
	return o;
}

static const cJSON *find_member(const cJSON *comm, double rank)
{
	const cJSON *m;

	cJSON_ArrayForEach(m, cJSON_GetObjectItem(comm, "members")) if (number(m, "rank") ==
									rank) return m;
	return NULL;
}

static void add_members(cJSON *to, const cJSON *from, const char *host)
{
	const cJSON *m;

	cJSON_ArrayForEach(m, cJSON_GetObjectItem(from, "members"))
	{
		cJSON *copy;

		/* Several processes may have described the same node. */
		if (find_member(to, number(m, "rank")))
			continue;
		copy = cJSON_Duplicate(m, true);
		cJSON_DeleteItemFromObject(copy, "late"); /* as far as one node knows */
		cJSON_AddStringToObject(copy, "host", host);
		cJSON_AddItemToArray(cJSON_GetObjectItem(to, "members"), copy);
	}
}

static void set(cJSON *o, const char *name, cJSON *value)
{
	cJSON_DeleteItemFromObject(o, name);
	cJSON_AddItemToObject(o, name, value);
}

/* What one node knows of a communicator. */
static void add_comm(cJSON *comms, const cJSON *one, const char *host)
{
	bool inflight = number(one, "inflight") > 0, fresh;
	double seq = number(one, "oldest_seq"), age = number(one, "oldest_s");
	cJSON *o = find_comm(comms, one);

	add_members(o, one, host);
	/* An error on any node is that of the communicator, a node that still forms it keeps all waiting. */
	if (number(one, "error") && !cJSON_HasObjectItem(o, "error")) {
		cJSON_AddNumberToObject(o, "error", number(one, "error"));
		cJSON_AddNumberToObject(o, "culprit", number(one, "culprit"));
		cJSON_AddStringToObject(o, "text", string(one, "text"));
	}
	if (!strcmp(string(one, "status"), "aborted") ||
	    (!strcmp(string(one, "status"), "forming") &&
	     strcmp(string(o, "status"), "aborted") != 0))
		set(o, "status", cJSON_CreateString(string(one, "status")));
	fresh = !cJSON_HasObjectItem(o, "seq");
	if (!inflight || (!fresh && seq > number(o, "seq")))
		return;
	if (fresh || seq < number(o, "seq") || age > number(o, "since_s")) {
		set(o, "seq", cJSON_CreateNumber(seq));
		set(o, "since_s", cJSON_CreateNumber(age));
		set(o, "algo", cJSON_CreateString(string(one, "algo")));
	}
}

/* Does the member keep the communicator waiting by not coming? */
static bool is_late(const cJSON *comm, const cJSON *m)
{
	if (!strcmp(string(comm, "status"), "forming"))
		return !strcmp(string(m, "state"), "empty");
	return !strcmp(string(comm, "status"), "live") && cJSON_HasObjectItem(comm, "seq") &&
	       number(m, "submitted") <= number(comm, "seq");
}

/* The members that are late; if none is, those that are least far in the oldest operation. */
static void judge(cJSON *comm)
{
	cJSON *late = cJSON_AddArrayToObject(comm, "late"), *m;
	cJSON *behind = cJSON_AddArrayToObject(comm, "behind"), *absent;
	double least = -1;

	cJSON_ArrayForEach(m, cJSON_GetObjectItem(comm, "members"))
	{
		const cJSON *place = cJSON_GetObjectItem(m, "place");

		if (is_late(comm, m))
			cJSON_AddItemToArray(late, cJSON_Duplicate(m, true));
		else if (place && (least < 0 || number(place, "step") < least))
			least = number(place, "step");
	}
	cJSON_ArrayForEach(m, cJSON_GetObjectItem(comm, "members"))
	{
		const cJSON *place = cJSON_GetObjectItem(m, "place");

		if (place && !cJSON_GetArraySize(late) && number(place, "step") == least)
			cJSON_AddItemToArray(behind, cJSON_Duplicate(m, true));
	}
	absent = cJSON_AddArrayToObject(comm, "absent");
	for (int rank = 0; rank < (int)number(comm, "nranks"); rank++)
		if (!find_member(comm, rank))
			cJSON_AddItemToArray(absent, cJSON_CreateNumber(rank));
}

static cJSON *put_together(const char *all, uint32_t size, int n)
{
	cJSON *job = cJSON_CreateObject(), *hosts = cJSON_AddArrayToObject(job, "hosts");
	cJSON *comms = cJSON_AddArrayToObject(job, "communicators"), *o;

	for (int i = 0; i < n; i++) {
		cJSON *node = cJSON_Parse(all + (size_t)i * size), *host = cJSON_CreateObject();

		cJSON_AddStringToObject(host, "host", string(node, "host"));
		if (cJSON_HasObjectItem(node, "error"))
			cJSON_AddStringToObject(host, "error", string(node, "error"));
		cJSON_AddItemToArray(hosts, host);
		cJSON_ArrayForEach(o, cJSON_GetObjectItem(node, "communicators"))
			add_comm(comms, o, string(node, "host"));
		cJSON_Delete(node);
	}
	cJSON_ArrayForEach(o, comms) judge(o);
	return job;
}

/* ------------------------------------------------------------------ text */

static void print_member(const char *what, const cJSON *m)
{
	printf("  %-6s rank %d on %s (pid %d, %s)", what, (int)number(m, "rank"), string(m, "host"),
	       (int)number(m, "pid"), string(m, "command"));
}

static void print_comm(const cJSON *comm)
{
	const cJSON *m, *absent = cJSON_GetObjectItem(comm, "absent");
	char age[NUMBER_TEXT];

	printf("communicator %s  %s  %d ranks", string(comm, "id"), string(comm, "status"),
	       (int)number(comm, "nranks"));
	if (cJSON_HasObjectItem(comm, "seq"))
		printf("  operation %.0f for %s (%s)", number(comm, "seq"),
		       seconds(number(comm, "since_s"), age), string(comm, "algo"));
	putchar('\n');
	cJSON_ArrayForEach(m, cJSON_GetObjectItem(comm, "late"))
	{
		if (!strcmp(string(m, "state"), "empty")) {
			printf("  LATE   rank %d on %s has not joined\n", (int)number(m, "rank"),
			       string(m, "host"));
			continue;
		}
		print_member("LATE", m);
		printf(" has called %.0f operations, the last %s ago\n", number(m, "submitted"),
		       seconds(number(m, "idle_s"), age));
	}
	cJSON_ArrayForEach(m, cJSON_GetObjectItem(comm, "behind"))
	{
		const cJSON *place = cJSON_GetObjectItem(m, "place");

		print_member("BEHIND", m);
		printf(" step %.0f of channel %.0f for %s: %s\n", number(place, "step"),
		       number(place, "channel"), seconds(number(place, "since_s"), age),
		       string(place, "what"));
	}
	if (cJSON_GetArraySize(absent)) {
		printf("  no answer from the nodes of %d ranks:", cJSON_GetArraySize(absent));
		for (int i = 0; i < 16 && i < cJSON_GetArraySize(absent); i++)
			printf(" %d", cJSON_GetArrayItem(absent, i)->valueint);
		puts(cJSON_GetArraySize(absent) > 16 ? " ..." : "");
	}
	if (number(comm, "error"))
		printf("  error: %s\n", string(comm, "text"));
}

static void print_job(const cJSON *job)
{
	const cJSON *o, *comms = cJSON_GetObjectItem(job, "communicators");

	cJSON_ArrayForEach(o,
			   cJSON_GetObjectItem(job, "hosts")) if (cJSON_HasObjectItem(o, "error"))
		printf("%s: %s\n", string(o, "host"), string(o, "error"));
	cJSON_ArrayForEach(o, comms) print_comm(o);
	if (!cJSON_GetArraySize(comms))
		puts(geteuid() ? "no communicators of this user (root sees all)"
			       : "no communicators");
	fflush(stdout);
}

/* ------------------------------------------------------------------ */

/* 0, or -1 with a message. */
static int look_once(const struct ctl *ctl, const struct swingcoll_bootstrap *boot)
{
	char *text = describe_node(), *all;
	uint32_t size;
	cJSON *job;

	all = text ? exchange(boot, text, &size) : NULL;
	free(text);
	if (!all)
		return -1;
	if (!boot->rank) {
		job = put_together(all, size, boot->nranks);
		if (ctl->json && ctl->watch_s) {
			json_record(stdout, job);
		} else if (ctl->json) {
			json_document(stdout, job);
		} else {
			if (ctl->watch_s && isatty(STDOUT_FILENO))
				fputs("\033[H\033[J", stdout);
			print_job(job);
			cJSON_Delete(job);
		}
	}
	free(all);
	return 0;
}

int ctl_job(const struct ctl *ctl)
{
	struct swingcoll_bootstrap *boot;
	int ret = swingcoll_bootstrap_auto(&boot);

	if (ret) {
		fprintf(stderr, "swingctl: %s\n", swingcoll_bootstrap_error());
		return 2;
	}
	/* Until the launcher ends it, or one of them, or nobody reads it. */
	while (!(ret = look_once(ctl, boot)) && ctl->watch_s && !ferror(stdout))
		sleep((unsigned int)ctl->watch_s);
	swingcoll_bootstrap_free(boot);
	return ret ? 2 : 0;
}
