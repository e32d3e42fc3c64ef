/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * JSON output by cJSON: the printing of finished objects, and the members that several tools have in
 * common, so that a reader of one tool's output can read another's.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/perfloop.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The version of what swingperf prints: a record's member "schema". Readers may rely on all members of a version
 * to stay, and must ignore others. It grows when a member goes or changes its meaning.
 */
#define JSON_SCHEMA 1

/* A record with its schema. */
cJSON *json_new_record(void);

/* Print and free. A document has indented lines; a record is one line, flushed. */
void json_document(FILE *f, cJSON *o);
void json_record(FILE *f, cJSON *o);

/* Print a flat record as a line of CSV, after a line with the names if it is the first, and free it. */
void json_csv(FILE *f, cJSON *o, bool first);

/* A number, or null for NAN. */
void json_add_real(cJSON *o, const char *name, double v);

/* The members time_us, iqr_us, min_us, median_us, p99_us, cpu_us, busy_us, iters and repeats. */
void json_add_time(cJSON *o, const struct perf_time *t);

#ifdef __cplusplus
}
#endif

#endif /* TOOLS_JSON_H */
