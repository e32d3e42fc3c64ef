// SPDX-License-Identifier: GPL-2.0-only
/* The findings of swingctl doctor: a line each, and one below it that says what to do. */
#include "swingctl/report.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const level_names[] = { "OK", "WARN", "FAIL" };

void result(struct report *r, enum level level, const char *what, const char *next, const char *fmt,
	    ...)
{
	char text[512];
	va_list ap;
	cJSON *o;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (level > r->worst)
		r->worst = level;
	if (!r->json) {
		printf("%-4s  %-10s  %s\n", level_names[level], what, text);
		if (next)
			printf("%18snext: %s\n", "", next);
		return;
	}
	o = cJSON_CreateObject();
	cJSON_AddStringToObject(o, "check", what);
	cJSON_AddStringToObject(o, "level", level_names[level]);
	cJSON_AddStringToObject(o, "text", text);
	if (next)
		cJSON_AddStringToObject(o, "next", next);
	cJSON_AddItemToArray(r->checks, o);
}
