/* SPDX-License-Identifier: GPL-2.0-only */
/* TAP output of the unit tests. */
#ifndef SWC_TESTS_TAP_H
#define SWC_TESTS_TAP_H

#include <stdio.h>

static int tap_tests, tap_failed;

/* Report a test. Returns whether it passed. */
static inline int ok(int good, const char *name)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++tap_tests, name);
	fflush(stdout);
	tap_failed += !good;
	return good;
}

/* Print the number of tests. For `return` in main(). */
static inline int done(void)
{
	printf("1..%d\n", tap_tests);
	return tap_failed != 0;
}

#endif /* SWC_TESTS_TAP_H */
