// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingperf --compare: times beside earlier ones. Measurements are the same if collective, type, reduction,
 * root, ranks, place and size are. The times of several in one file are repeated runs, of which the median
 * counts; so they must have been made with the same settings, whereas the two files may differ in these.
 */
#include "swingperf.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"

/* A measurement, from one or several records of a file. */
struct entry {
	cJSON *o; /* the first of these; its texts and numbers are those of all */
	char key[160];
	char settings[512];
	double *times;
	size_t n;
	double time_us; /* their median */
	bool wrong;
};

struct perf_compare {
	const struct cli *cli;
	const char *name; /* of the file, for messages */
	struct entry *entries;
	size_t n;
};

/* ------------------------------------------------------------------ reading */

static void no_memory(const struct cli *cli)
{
	cli_fail(cli, "out of memory");
}

static const char *text_of(const cJSON *o, const char *name)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);

	return cJSON_IsString(v) ? v->valuestring : NULL;
}

static double number_of(const cJSON *o, const char *name)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);

	return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static bool is_true(const cJSON *o, const char *name)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, name));
}

static const char *or_none(const char *text)
{
	return text ? text : "";
}

/* Records from before there was a schema are like those of the first. */
static void check_record(const struct perf_compare *c, const cJSON *o, size_t line)
{
	double schema = number_of(o, "schema");

	if (schema > JSON_SCHEMA)
		cli_fail(c->cli,
			 "%s:%zu: has schema %g, known are those up to %d: use a newer swingperf",
			 c->name, line, schema, JSON_SCHEMA);
	if (!text_of(o, "op") || !text_of(o, "dtype") || !(number_of(o, "bytes") >= 0) ||
	    !(number_of(o, "ranks") > 0) || !(number_of(o, "time_us") > 0))
		cli_fail(
			c->cli,
			"%s:%zu: expected a measurement of swingperf --json, with op, dtype, bytes, ranks "
			"and time_us",
			c->name, line);
}

static void describe(struct entry *e, const cJSON *o)
{
	snprintf(e->key, sizeof(e->key), "%.32s %.16s %.16s %g %g %d %.0f", text_of(o, "op"),
		 text_of(o, "dtype"), or_none(text_of(o, "redop")), number_of(o, "root"),
		 number_of(o, "ranks"), is_true(o, "inplace"), number_of(o, "bytes"));
	snprintf(e->settings, sizeof(e->settings), "%.128s %d %g %.300s",
		 or_none(text_of(o, "asked")), is_true(o, "nonblocking"), number_of(o, "buffers"),
		 or_none(text_of(o, "topo")));
}

static struct entry *find(const struct perf_compare *c, const char *key)
{
	for (size_t i = 0; i < c->n; i++)
		if (!strcmp(c->entries[i].key, key))
			return &c->entries[i];
	return NULL;
}

/* Takes the record. */
static void add(struct perf_compare *c, cJSON *o, size_t line)
{
	struct entry new = { .o = o }, *e;
	double *times;

	check_record(c, o, line);
	describe(&new, o);
	e = find(c, new.key);
	if (!e) {
		c->entries = reallocarray(c->entries, c->n + 1, sizeof(new));
		if (!c->entries)
			no_memory(c->cli);
		e = &c->entries[c->n++];
		*e = new;
	} else if (strcmp(e->settings, new.settings)) {
		cli_fail(
			c->cli,
			"%s:%zu: %s of %.0f B is there with another algorithm, topology, number of "
			"buffers or kind of calls: expected one file for each of these",
			c->name, line, text_of(o, "op"), number_of(o, "bytes"));
	}
	times = reallocarray(e->times, e->n + 1, sizeof(*times));
	if (!times)
		no_memory(c->cli);
	e->times = times;
	times[e->n++] = number_of(o, "time_us");
	e->wrong |= number_of(o, "errors") > 0;
	if (e->o != o)
		cJSON_Delete(o);
}

static void finish(struct perf_compare *c)
{
	for (size_t i = 0; i < c->n; i++)
		c->entries[i].time_us = perf_quantile(c->entries[i].times, c->entries[i].n, 0.5);
}

static struct perf_compare *new_compare(const struct cli *cli, const char *name)
{
	struct perf_compare *c = calloc(1, sizeof(*c));

	if (!c)
		no_memory(cli);
	c->cli = cli;
	c->name = name;
	return c;
}

static struct perf_compare *load(const struct cli *cli, const char *path)
{
	struct perf_compare *c = new_compare(cli, path);
	FILE *f = fopen(path, "re");
	size_t room = 0, line = 0;
	char *text = NULL;
	cJSON *o;

	if (!f)
		cli_fail(cli, "%s: %s: expected a file that swingperf --json has written", path,
			 strerror(errno));
	while (getline(&text, &room, f) >= 0) {
		line++;
		if (!text[strspn(text, " \t\r\n")])
			continue;
		o = cJSON_Parse(text);
		if (!o)
			cli_fail(cli, "%s:%zu: no JSON: expected what swingperf --json prints",
				 path, line);
		add(c, o, line);
	}
	if (ferror(f))
		cli_fail(cli, "%s: %s", path, strerror(errno));
	if (!c->n)
		cli_fail(cli, "%s: no measurements: expected what swingperf --json prints", path);
	free(text);
	fclose(f);
	finish(c);
	return c;
}

/* ------------------------------------------------------------------ ratios */

struct tally {
	unsigned int compared, slower, faster, wrong;
	double log_sum; /* of the ratios */
};

static const char *judge(const struct perf_options *opt, struct tally *t, const struct entry *old,
			 const struct entry *new)
{
	double limit = 1 + opt->tolerance;

	t->compared++;
	t->log_sum += log(old->time_us / new->time_us);
	if (new->wrong) {
		t->wrong++;
		return "wrong";
	}
	if (new->time_us > old->time_us * limit) {
		t->slower++;
		return "slower";
	}
	if (new->time_us * limit < old->time_us) {
		t->faster++;
		return "faster";
	}
	return "same";
}

static void print_ratio(const struct perf_options *opt, const struct entry *old,
			const struct entry *new, const char *verdict)
{
	static const char *const copied[] = { "op",    "bytes", "count", "dtype",
					      "redop", "root",	"ranks", "inplace" };
	cJSON *o;

	if (opt->format == PERF_TABLE) {
		printf("%12.0f  %-14s  %5s  %6s  %6.0f  %-12s %10.2f %10.2f %7.3f  %s\n",
		       number_of(new->o, "bytes"), text_of(new->o, "op"), text_of(new->o, "dtype"),
		       or_none(text_of(new->o, "redop")), number_of(new->o, "ranks"),
		       is_true(new->o, "inplace") ? "in-place" : "out-of-place", old->time_us,
		       new->time_us, old->time_us / new->time_us, verdict);
		return;
	}
	o = json_new_record();
	for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++)
		cJSON_AddItemToObject(
			o, copied[i],
			cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(new->o, copied[i]), true));
	cJSON_AddNumberToObject(o, "old_us", old->time_us);
	cJSON_AddNumberToObject(o, "new_us", new->time_us);
	cJSON_AddNumberToObject(o, "ratio", old->time_us / new->time_us);
	cJSON_AddStringToObject(o, "verdict", verdict);
	perf_print_record(opt, o);
}

static unsigned int missing(const struct perf_compare *from, const struct perf_compare *in)
{
	unsigned int n = 0;

	for (size_t i = 0; i < from->n; i++)
		n += !find(in, from->entries[i].key);
	return n;
}

static int compare(const struct perf_options *opt, const struct perf_compare *new)
{
	const struct perf_compare *old = opt->earlier;
	bool table = opt->format == PERF_TABLE;
	struct tally t = { 0 };

	if (table)
		printf("# ratio: time in %s by time in %s; above 1: faster now. Tolerance: %g %%\n"
		       "#       size  collective       type   redop   ranks  place          old (us)   new (us)"
		       "   ratio\n",
		       old->name, new->name, opt->tolerance * 100);
	for (size_t i = 0; i < new->n; i++) {
		const struct entry *e = &new->entries[i], *was = find(old, e->key);

		if (was)
			print_ratio(opt, was, e, judge(opt, &t, was, e));
	}
	if (!t.compared) {
		fprintf(stderr,
			"%s: %s and %s have no measurement in common: collective, type, reduction, root, "
			"ranks, place and size must be the same\n",
			opt->cli->prog, old->name, new->name);
		return 2;
	}
	if (table)
		printf("# %u compared: %u slower, %u faster, %u wrong; geometric mean of the ratios: %.3f\n"
		       "# only in %s: %u; only in %s: %u\n",
		       t.compared, t.slower, t.faster, t.wrong, exp(t.log_sum / t.compared),
		       old->name, missing(old, new), new->name, missing(new, old));
	return t.slower || t.wrong ? 1 : 0;
}

void perf_compare_open(struct perf_options *opt)
{
	opt->earlier = load(opt->cli, opt->compare);
}

int perf_compare_files(struct perf_options *opt, const char *path)
{
	perf_compare_open(opt);
	return compare(opt, load(opt->cli, path));
}

int perf_compare_run(const struct perf_options *opt, cJSON *records)
{
	struct perf_compare *c = new_compare(opt->cli, "this run");
	cJSON *o;

	while ((o = cJSON_DetachItemFromArray(records, 0)))
		add(c, o, 0);
	finish(c);
	return compare(opt, c);
}
