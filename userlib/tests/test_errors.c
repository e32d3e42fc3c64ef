// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Errors: which of them end a communicator, that each one which the manual pages name has a text of
 * its own, and what is said of wrong arguments. Runs in the folder of the library, where the pages
 * are. TAP on stdout.
 */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/priv.h"
#include "tap.h"

/* All errors that the manual documents. */
static const struct {
	const char *name;
	int error;
	bool fails_comm;
} errors[] = {
	{ "EACCES", -EACCES, false },
	{ "EADDRINUSE", -EADDRINUSE, false },
	{ "EADDRNOTAVAIL", -EADDRNOTAVAIL, false },
	{ "EAGAIN", -EAGAIN, false },
	{ "EBADF", -EBADF, false },
	{ "EBUSY", -EBUSY, false },
	{ "ECANCELED", -ECANCELED, false },
	{ "ECONNABORTED", -ECONNABORTED, true },
	{ "ECONNRESET", -ECONNRESET, true },
	{ "EEXIST", -EEXIST, false },
	{ "EFAULT", -EFAULT, false },
	{ "EINPROGRESS", -EINPROGRESS, false },
	{ "EINVAL", -EINVAL, false },
	{ "EIO", -EIO, true },
	{ "ENODATA", -ENODATA, false },
	{ "ENODEV", -ENODEV, true },
	{ "ENOENT", -ENOENT, false },
	{ "ENOMEM", -ENOMEM, false },
	{ "ENOSPC", -ENOSPC, false },
	{ "EOPNOTSUPP", -EOPNOTSUPP, false },
	{ "EOVERFLOW", -EOVERFLOW, false },
	{ "EPROTO", -EPROTO, false },
	{ "EPROTONOSUPPORT", -EPROTONOSUPPORT, true },
	{ "ETIMEDOUT", -ETIMEDOUT, true },
};

#define N (sizeof(errors) / sizeof(errors[0]))

static void test_failed(void)
{
	bool good = !swingcoll_comm_failed(0);

	for (size_t i = 0; i < N; i++) {
		bool failed = swingcoll_comm_failed(errors[i].error);

		if (failed != errors[i].fails_comm)
			printf("# %s: %d\n", errors[i].name, failed);
		good &= failed == errors[i].fails_comm && !swingcoll_comm_failed(-errors[i].error);
	}
	ok(good, "which errors end a communicator");
}

/* ---- texts ---- */

/* The text of an error is not the one for unknown errors, and not that of another error. */
static bool has_text(size_t k)
{
	const char *text = swingcoll_strerror(errors[k].error);
	bool good = strcmp(text, swingcoll_strerror(-4095)) != 0 &&
		    strcmp(text, swingcoll_strerror(0)) != 0;

	for (size_t i = 0; i < N; i++)
		good &= i == k || strcmp(text, swingcoll_strerror(errors[i].error)) != 0;
	if (!good)
		printf("# %s: \"%s\"\n", errors[k].name, text);
	return good;
}

static void test_texts(void)
{
	bool good = true;

	for (size_t i = 0; i < N; i++)
		good &= has_text(i);
	ok(good, "each error has a text of its own");
}

/* ---- the manual ---- */

static size_t find(const char *name, size_t length)
{
	size_t i = 0;

	while (i < N && (strlen(errors[i].name) != length || strncmp(name, errors[i].name, length)))
		i++;
	return i;
}

/* Look up the errors, written \\-ENAME, of a line; mark those that are known. */
static bool look_up(const char *page, const char *line, bool *seen)
{
	bool good = true;

	for (const char *s = line; (s = strstr(s, "\\-E"));) {
		size_t length = 0, k;

		s += strlen("\\-");
		while (isupper((unsigned char)s[length]))
			length++;
		k = find(s, length);
		if (k < N)
			seen[k] = true;
		else
			printf("# %s names %.*s\n", page, (int)length, s);
		good &= k < N;
	}
	return good;
}

static bool read_page(const char *page, bool *seen)
{
	FILE *f = fopen(page, "r");
	char *line = NULL;
	size_t size = 0;
	bool good = f;

	while (f && getline(&line, &size, f) > 0)
		good &= look_up(page, line, seen);
	free(line);
	if (f)
		fclose(f);
	return good;
}

static void test_manual(void)
{
	bool good = true, all = true, seen[N] = { false };
	glob_t pages = { 0 };

	glob("man/*.[3457]", 0, NULL, &pages);
	for (size_t i = 0; i < pages.gl_pathc; i++)
		good &= read_page(pages.gl_pathv[i], seen);
	ok(good && pages.gl_pathc > 10, "every error that a manual page names is in the list");
	for (size_t i = 0; i < N; i++) {
		if (!seen[i])
			printf("# no page names %s\n", errors[i].name);
		all &= seen[i];
	}
	ok(all, "every error in the list is in the manual");
	globfree(&pages);
}

int main(void)
{
	printf("TAP version 13\n");
	test_failed();
	test_texts();
	test_manual();
	return done();
}
