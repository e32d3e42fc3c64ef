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
	{ "EFBIG", -EFBIG, false },
	{ "EHOSTUNREACH", -EHOSTUNREACH, false },
	{ "EINPROGRESS", -EINPROGRESS, false },
	{ "EINVAL", -EINVAL, false },
	{ "EIO", -EIO, true },
	{ "EMFILE", -EMFILE, false },
	{ "ENFILE", -ENFILE, false },
	{ "ENODATA", -ENODATA, false },
	{ "ENODEV", -ENODEV, true },
	{ "ENOENT", -ENOENT, false },
	{ "ENOMEM", -ENOMEM, false },
	{ "ENOSPC", -ENOSPC, false },
	{ "ENOSYS", -ENOSYS, false },
	{ "EDQUOT", -EDQUOT, false },
	{ "EOPNOTSUPP", -EOPNOTSUPP, false },
	{ "EOVERFLOW", -EOVERFLOW, false },
	{ "EPERM", -EPERM, false },
	{ "EPROTO", -EPROTO, false },
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
	ok(strstr(swingcoll_strerror(-EBUSY), "partitioned") &&
		   strstr(swingcoll_strerror(-EBUSY), "sparse"),
	   "the text of EBUSY names both that give it");
}

/* A request that is not started is NULL, whatever it was before. */
static void test_no_counts(void)
{
	char nothing;
	struct swingcoll_req *gather = (void *)&nothing, *scatter = (void *)&nothing;

	ok(swingcoll_igatherv(&nothing, &nothing, NULL, SWINGCOLL_F32, 0, NULL, &gather) ==
			   -EINVAL &&
		   !gather &&
		   swingcoll_iscatterv(&nothing, &nothing, NULL, SWINGCOLL_F32, 0, NULL,
				       &scatter) == -EINVAL &&
		   !scatter,
	   "no counts: there is no request");
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

/* ---- where ranks are ---- */

static void test_hosts(void)
{
	static const uint32_t rank_node[] = { 0, 0, 1, 1 };
	static const int32_t pid[] = { 17, 18, 19, 20 };
	static const char host[][SWC_HOST_BYTES] = { "alpha", "beta" };
	static const struct swc_place place = {
		.nnodes = 2, .rank_node = rank_node, .host = host, .pid = pid
	};
	static const struct {
		const char *text, *all;
	} lines[] = {
		{ "rank 2 (pid 19, train) has exited",
		  "rank 2 (pid 19, train) has exited [rank 2: beta (pid 19)]" },
		{ "rank 0: connection with rank 3: lost; rank 0's card is gone",
		  "rank 0: connection with rank 3: lost; rank 0's card is gone "
		  "[rank 0: alpha (pid 17), rank 3: beta (pid 20)]" },
		{ "missing: rank 0 (pid 1, a), rank 1 (pid 1, a), rank 2 (pid 1, a), rank 3 (pid 1, a), rank 0",
		  "missing: rank 0 (pid 1, a), rank 1 (pid 1, a), rank 2 (pid 1, a), rank 3 (pid 1, a), rank 0 "
		  "[rank 0: alpha (pid 17), rank 1: alpha (pid 18), rank 2: beta (pid 19), rank 3: beta (pid 20)]" },
		{ "3 of 4 ranks, frank 1, rank -1, rank 4, rank ", NULL },
		{ "", NULL },
	};
	char text[512];
	bool good = true;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *want = lines[i].all ? lines[i].all : lines[i].text;

		snprintf(text, sizeof(text), "%s", lines[i].text);
		swc_hosts_append(&place, 4, text, sizeof(text));
		if (strcmp(text, want))
			printf("# \"%s\"\n", text);
		good &= !strcmp(text, want);
	}
	ok(good, "an error text is followed by host and pid of each rank that it names");

	/* The text is cut off where the caller's memory ends, and stays as it is on one node. */
	good = true;
	for (size_t size = 1; size < 64; size++) {
		memset(text, 'x', sizeof(text));
		snprintf(text, size, "%s", lines[0].text);
		swc_hosts_append(&place, 4, text, size);
		good &= strlen(text) < size && !strncmp(text, lines[0].all, size - 1) &&
			text[size] == 'x';
	}
	snprintf(text, sizeof(text), "%s", lines[0].text);
	swc_hosts_append(&(struct swc_place){ 0 }, 4, text, sizeof(text));
	ok(good && !strcmp(text, lines[0].text), "it is cut off, and nothing is added on one node");
}

/* ---- arguments of collectives ---- */

/* A communicator that only swc_coll_prepare() can use; NULL: out of memory. */
static struct swingcoll_comm *rank_1_of_4(void)
{
	struct swingcoll_comm *comm = calloc(1, sizeof(*comm));

	if (!comm)
		return NULL;
	comm->nranks = comm->nlocal = 4;
	comm->rank = 1;
	pthread_mutex_init(&comm->text_lock, NULL);
	return comm;
}

/* Wrong calls on rank 1 of 4, and what the line about each must say. */
static void test_arguments(void)
{
	static int64_t v[64];
	static const struct {
		struct swingcoll_call call;
		int error;
		const char *text[3];
	} calls[] = {
		{ { .dtype = SWINGCOLL_F32, .recv = v, .count = 4 },
		  -EINVAL,
		  { "allreduce: send is NULL", "count is 4", "16 bytes, or count 0" } },
		{ { .dtype = SWINGCOLL_F32, .send = v, .count = 4 }, -EINVAL, { "recv is NULL" } },
		{ { .coll = SWINGCOLL_ALLGATHER, .dtype = SWINGCOLL_I64, .send = v, .count = 2 },
		  -EINVAL,
		  { "allgather: recv is NULL", "count is 2", "64 bytes" } },
		{ { .dtype = SWINGCOLL_F32,
		    .op = SWINGCOLL_BAND,
		    .send = v,
		    .recv = v,
		    .count = 4 },
		  -EINVAL,
		  { "band is not defined for f32", "integer types only", "sum, prod" } },
		{ { .dtype = SWINGCOLL_F32, .op = 8, .send = v, .recv = v, .count = 4 },
		  -EINVAL,
		  { "reduction 8 does not exist", "0 to 7" } },
		{ { .dtype = 12, .send = v, .recv = v, .count = 4 },
		  -EINVAL,
		  { "element type 12 does not exist", "0 to 11" } },
		{ { .coll = 9, .dtype = SWINGCOLL_F32, .send = v, .recv = v, .count = 4 },
		  -EINVAL,
		  { "collective 9 does not exist", "0 to 8" } },
		{ { .coll = SWINGCOLL_BROADCAST, .root = 4, .recv = v, .count = 4 },
		  -EINVAL,
		  { "broadcast: root 4", "0 to 3" } },
		{ { .coll = SWINGCOLL_BROADCAST, .root = -1, .recv = v, .count = 4 },
		  -EINVAL,
		  { "broadcast: root -1", "0 to 3" } },
		{ { .root = 2, .send = v, .recv = v, .count = 4 },
		  -EINVAL,
		  { "allreduce has no root", "not 2" } },
		{ { .coll = SWINGCOLL_BARRIER, .count = 1 }, -EINVAL, { "count must be 0" } },
		{ { .dtype = SWINGCOLL_F32, .send = (char *)v + 2, .recv = v + 32, .count = 4 },
		  -EINVAL,
		  { "send is", "not aligned", "f32 needs a multiple of 4" } },
		{ { .dtype = SWINGCOLL_F64, .send = v, .recv = v + 1, .count = 4 },
		  -EINVAL,
		  { "send and recv overlap", "in place: send == recv" } },
		{ { .coll = SWINGCOLL_ALLGATHER,
		    .dtype = SWINGCOLL_I64,
		    .send = v,
		    .recv = v,
		    .count = 2 },
		  -EINVAL,
		  { "allgather", "in place: send == recv + rank * count" } },
		{ { .dtype = SWINGCOLL_I64, .send = v, .recv = v, .count = (size_t)1 << 44 },
		  -EOVERFLOW,
		  { "count 17592186044416 is too large", "of 8 bytes", "64 TiB" } },
	};
	struct swingcoll_comm *comm = rank_1_of_4();
	struct swc_coll_op op;
	bool good = comm;

	for (size_t i = 0; comm && i < sizeof(calls) / sizeof(calls[0]); i++) {
		int ret;
		bool said;

		*comm->local_text = 0;
		comm->local_error = 0;
		ret = swc_coll_prepare(comm, &calls[i].call, &op);
		said = ret == calls[i].error && comm->local_error == ret;
		for (int k = 0; k < 3 && calls[i].text[k]; k++)
			said &= strstr(comm->local_text, calls[i].text[k]) != NULL;
		if (!said)
			printf("# call %zu: %d, \"%s\"\n", i, ret, comm->local_text);
		good &= said;
	}
	free(comm);
	ok(good, "each wrong argument is described, with what is accepted");
}

/* Right calls on rank 1 of 4, next to the wrong ones above, are accepted and leave no line. */
static void test_right_arguments(void)
{
	static int64_t v[64];
	static const struct swingcoll_call calls[] = {
		{ .dtype = SWINGCOLL_F32, .send = v, .recv = v + 32, .count = 4 },
		{ .dtype = SWINGCOLL_F32, .send = v, .recv = v, .count = 4 },
		{ .dtype = SWINGCOLL_F32, .op = SWINGCOLL_AVG, .send = v, .recv = v, .count = 4 },
		{ .dtype = SWINGCOLL_U32, .op = SWINGCOLL_BXOR, .send = v, .recv = v, .count = 4 },
		{ .dtype = SWINGCOLL_F32 },
		{ .coll = SWINGCOLL_BROADCAST, .root = 3, .recv = v, .count = 4 },
		{ .coll = SWINGCOLL_REDUCE, .dtype = SWINGCOLL_F64, .send = v, .count = 4 },
		{ .coll = SWINGCOLL_ALLGATHER,
		  .dtype = SWINGCOLL_I64,
		  .op = 99,
		  .send = v + 2,
		  .recv = v,
		  .count = 2 },
		{ .coll = SWINGCOLL_BARRIER, .dtype = 99 },
	};
	struct swingcoll_comm *comm = rank_1_of_4();
	struct swc_coll_op op;
	bool good = comm;

	for (size_t i = 0; comm && i < sizeof(calls) / sizeof(calls[0]); i++) {
		int ret = swc_coll_prepare(comm, &calls[i], &op);

		if (ret || *comm->local_text)
			printf("# call %zu: %d, \"%s\"\n", i, ret, comm->local_text);
		good &= !ret && !*comm->local_text && op.desc.count == calls[i].count;
	}
	free(comm);
	ok(good, "right arguments are accepted");
}

/* Both fail, also where the module is loaded, after calls that set errno. */
static void test_errno(void)
{
	const struct swingcoll_comm_opts opts = { .algo = "file:/no such file",
						  .tuning = "/no such file" };
	const struct swingcoll_comm_opts tuning = { .tuning = "/no such file" };
	const struct swingcoll_id id = { { 1 } };
	struct swingcoll_comm *comm;
	char text[256];

	errno = 12345;
	ok(swingcoll_opts_check(&opts, 1, text, sizeof(text)) && errno == 12345,
	   "swingcoll_opts_check() leaves errno alone");
	errno = 12345;
	ok(swingcoll_comm_create(&comm, &id, 1, 0, &tuning) && errno == 12345,
	   "swingcoll_comm_create() leaves errno alone");
}

int main(void)
{
	printf("TAP version 13\n");
	test_failed();
	test_texts();
	test_no_counts();
	test_manual();
	test_hosts();
	test_arguments();
	test_right_arguments();
	test_errno();
	return done();
}
