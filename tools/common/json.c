// SPDX-License-Identifier: GPL-2.0-only
/* JSON output: documents for one result, records (a line each) for a series of results. */
#include "common/json.h"

#include <math.h>
#include <stdlib.h>

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
