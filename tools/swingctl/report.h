/* SPDX-License-Identifier: GPL-2.0-only */
/* The findings of swingctl doctor, as lines for people or as JSON. */
#ifndef SWINGCTL_REPORT_H
#define SWINGCTL_REPORT_H

#include <cjson/cJSON.h>
#include <stdbool.h>

/* WARN: it works, but not as well as it could. FAIL: it does not work. */
enum level {
	OK,
	WARN,
	FAIL
};

struct report {
	bool json;
	cJSON *checks;
	enum level worst;
};

/* Add, and print, a finding. what: a word for the subject; next: what to do, or NULL. */
__attribute__((format(printf, 5, 6))) void result(struct report *r, enum level level,
						  const char *what, const char *next,
						  const char *fmt, ...);

#endif /* SWINGCTL_REPORT_H */
