/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TAP 13 output under the names of the kernel's kselftest.h, so that these tests can move into a kernel
 * tree. Results are counted per process; children of a test print diagnostics only.
 */
#ifndef KSFT_H
#define KSFT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KSFT_PASS 0
#define KSFT_FAIL 1
#define KSFT_SKIP 4

struct ksft_count {
	unsigned int plan, pass, fail, skip;
};

extern struct ksft_count ksft_cnt;

static inline unsigned int ksft_test_num(void)
{
	return ksft_cnt.pass + ksft_cnt.fail + ksft_cnt.skip;
}

static inline void ksft_print_header(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n");
}

static inline void ksft_set_plan(unsigned int plan)
{
	ksft_cnt.plan = plan;
	printf("1..%u\n", plan);
}

__attribute__((format(printf, 1, 2))) static inline void ksft_print_msg(const char *fmt, ...)
{
	char line[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	printf("# %s", line);
	fflush(stdout);
}

static inline void ksft_line(const char *verdict, const char *tail, const char *fmt, va_list args)
{
	char line[512];

	vsnprintf(line, sizeof(line), fmt, args);
	line[strcspn(line, "\n")] = '\0';
	printf("%s %u %s%s\n", verdict, ksft_test_num(), line, tail);
	fflush(stdout);
}

__attribute__((format(printf, 1, 2))) static inline void ksft_test_result_pass(const char *fmt, ...)
{
	va_list args;

	ksft_cnt.pass++;
	va_start(args, fmt);
	ksft_line("ok", "", fmt, args);
	va_end(args);
}

__attribute__((format(printf, 1, 2))) static inline void ksft_test_result_fail(const char *fmt, ...)
{
	va_list args;

	ksft_cnt.fail++;
	va_start(args, fmt);
	ksft_line("not ok", "", fmt, args);
	va_end(args);
}

/* The reason comes last in @fmt: "name: why". */
__attribute__((format(printf, 1, 2))) static inline void ksft_test_result_skip(const char *fmt, ...)
{
	char line[512];
	va_list args;

	ksft_cnt.skip++;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	line[strcspn(line, "\n")] = '\0';
	printf("ok %u # SKIP %s\n", ksft_test_num(), line);
	fflush(stdout);
}

#define ksft_test_result(condition, fmt, ...)                                                      \
	do {                                                                                       \
		if (condition)                                                                     \
			ksft_test_result_pass(fmt, ##__VA_ARGS__);                                 \
		else                                                                               \
			ksft_test_result_fail(fmt, ##__VA_ARGS__);                                 \
	} while (0)

static inline void ksft_print_cnts(void)
{
	if (ksft_cnt.plan != ksft_test_num())
		printf("# Planned tests != run tests (%u != %u)\n", ksft_cnt.plan, ksft_test_num());
	printf("# Totals: pass:%u fail:%u xfail:0 xpass:0 skip:%u error:0\n", ksft_cnt.pass,
	       ksft_cnt.fail, ksft_cnt.skip);
	fflush(stdout);
}

/* Prints the totals and exits with the verdict. */
static inline __attribute__((noreturn)) void ksft_finished(void)
{
	ksft_print_cnts();
	if (ksft_cnt.fail || ksft_cnt.plan != ksft_test_num())
		exit(KSFT_FAIL);
	exit(ksft_cnt.pass || !ksft_cnt.skip ? KSFT_PASS : KSFT_SKIP);
}

/* No test of the program can run. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void ksft_exit_skip(const char *fmt,
										  ...)
{
	va_list args;

	va_start(args, fmt);
	printf("1..0 # SKIP ");
	vprintf(fmt, args);
	va_end(args);
	fflush(stdout);
	exit(KSFT_SKIP);
}

__attribute__((format(printf, 1, 2), noreturn)) static inline void
ksft_exit_fail_msg(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	printf("Bail out! ");
	vprintf(fmt, args);
	va_end(args);
	fflush(stdout);
	exit(KSFT_FAIL);
}

#endif /* KSFT_H */
