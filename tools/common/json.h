/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * JSON output by cJSON: the printing of finished objects, and the members that several tools have in
 * common, so that a reader of one tool's output can read another's.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "common/perfloop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Print and free. A document has indented lines; a record is one line, flushed. */
void json_document(FILE *f, cJSON *o);
void json_record(FILE *f, cJSON *o);

/* A number, or null for NAN. */
void json_add_real(cJSON *o, const char *name, double v);

/* The members time_us, iqr_us, min_us, median_us, p99_us, cpu_us, busy_us, iters and repeats. */
void json_add_time(cJSON *o, const struct perf_time *t);

#ifdef __cplusplus
}
#endif

#endif /* TOOLS_JSON_H */
