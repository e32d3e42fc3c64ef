// SPDX-License-Identifier: GPL-2.0-only
/* JSON output: documents for one result, records (a line each) for a series of results. */
#include "common/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put(FILE *f, cJSON *o, char *text)
{
	if (text) {
		fprintf(f, "%s\n", text);
	} else {
		fputs("out of memory for JSON output\n", stderr);
		exit(2);
	}
	fflush(f);
	free(text);
	cJSON_Delete(o);
}

void json_document(FILE *f, cJSON *o)
{
	put(f, o, o ? cJSON_Print(o) : NULL);
}

void json_record(FILE *f, cJSON *o)
{
	put(f, o, o ? cJSON_PrintUnformatted(o) : NULL);
}

cJSON *json_new_record(void)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "schema", JSON_SCHEMA);
	return o;
}

/* Quoted if it has to be (RFC 4180). */
static void put_field(FILE *f, const char *text)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		fputs(text, f);
		return;
	}
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', f);
		fputc(*text, f);
	}
	fputc('"', f);
}

static void put_value(FILE *f, const cJSON *v)
{
	char *text;

	if (cJSON_IsNull(v))
		return;
	if (cJSON_IsString(v)) {
		put_field(f, v->valuestring);
		return;
	}
	text = cJSON_PrintUnformatted(v);
	put_field(f, text ? text : "");
	free(text);
}

void json_csv(FILE *f, cJSON *o, bool first)
{
	const cJSON *v;

	for (v = first && o ? o->child : NULL; v; v = v->next) {
		put_field(f, v->string);
		fputc(v->next ? ',' : '\n', f);
	}
	for (v = o ? o->child : NULL; v; v = v->next) {
		put_value(f, v);
		fputc(v->next ? ',' : '\n', f);
	}
	fflush(f);
	cJSON_Delete(o);
}

void json_add_real(cJSON *o, const char *name, double v)
{
	if (isnan(v))
		cJSON_AddNullToObject(o, name);
	else
		cJSON_AddNumberToObject(o, name, v);
}

void json_add_time(cJSON *o, const struct perf_time *t)
{
	cJSON_AddNumberToObject(o, "time_us", t->time_us);
	cJSON_AddNumberToObject(o, "iqr_us", t->iqr_us);
	cJSON_AddNumberToObject(o, "min_us", t->min_us);
	cJSON_AddNumberToObject(o, "median_us", t->median_us);
	cJSON_AddNumberToObject(o, "p99_us", t->p99_us);
	cJSON_AddNumberToObject(o, "cpu_us", t->cpu_us);
	cJSON_AddNumberToObject(o, "busy_us", t->busy_us);
	cJSON_AddNumberToObject(o, "iters", (double)t->iters);
	cJSON_AddNumberToObject(o, "repeats", t->repeats);
}
