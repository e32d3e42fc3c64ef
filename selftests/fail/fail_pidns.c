// SPDX-License-Identifier: GPL-2.0-only
/*
 * A communicator of processes in two pid namespaces: a pid in an error's text, or in a recording, is one of the
 * reader's namespace, or marked as another one's.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "testlib.h"

#define N 3
#define RECORDS 64

/* Rank 0 is in the test's namespace. Rank 1 is the first process of the other one, and the parent of rank 2. */
static uint8_t id[SWC_ID_BYTES];
static unsigned int *stage;
static uint32_t small[1000];
static struct swc_trace_record record[RECORDS];

static int read_joined(struct testlib_rank *r, uint32_t rank)
{
	struct swc_trace_query q = { .comm = r->comm, .max_records = RECORDS };
	bool mine;

	q.records = (uintptr_t)record;
	CHECK_EQ(testlib_ioctl(r->c.fd, SWC_IOC_TRACE, &q), 0);
	for (uint32_t i = 0; i < q.count; i++) {
		if (record[i].type != SWC_TRACE_JOIN)
			continue;
		mine = !record[i].rank == !rank;
		CHECK_EQ(record[i].arg >> 32, !mine);
		if (record[i].rank == rank)
			CHECK_EQ((uint32_t)record[i].arg, getpid());
		if (record[i].rank == 2)
			CHECK_EQ((uint32_t)record[i].arg, 2);
	}
	return 0;
}

/* Rank 2 dies; the others read of it. */
static int survive(struct testlib_rank *r, uint32_t rank)
{
	struct swc_desc d = testlib_allreduce_desc(r, small, small, 1000, SWC_U32);
	const char *want = rank ? "rank 2 (pid 2, " : "rank 2 (pid 2 in another pid namespace, ";
	struct swc_completion c;
	struct swc_comm_error e;

	CHECK_EQ(testlib_submit(r->c.fd, &d), 0);
	testlib_count(stage);
	CHECK_EQ(testlib_ring_next(&r->c, &c, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(c.res, -ECONNRESET);
	CHECK_EQ(c.culprit, 2);
	CHECK_EQ(testlib_comm_error(r->c.fd, r->comm, &e), 0);
	if (!strstr(e.text, want)) {
		ksft_print_msg("rank %u reads \"%s\"\n", rank, e.text);
		return 1;
	}
	return read_joined(r, rank);
}

static int member(uint32_t rank, void *arg)
{
	struct testlib_rank r;

	(void)arg;
	CHECK_EQ(testlib_rank_open(&r, id, N, rank, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 1000), 0);
	if (rank < 2)
		return survive(&r, rank);
	CHECK_EQ(getpid(), 2);
	CHECK(testlib_wait_count(stage, 2));
	kill(getpid(), SIGKILL);
	return 1;
}

/* Ranks 1 and 2. */
static int pair(void *arg)
{
	int bad, status;
	pid_t child;

	(void)arg;
	child = fork();
	CHECK(child >= 0);
	if (!child)
		exit(member(2, NULL));
	bad = member(1, NULL);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status));
	return bad;
}

static int enter(uint32_t rank, void *arg)
{
	if (!rank)
		return member(0, arg);
	CHECK_EQ(unshare(CLONE_NEWPID), 0);
	return testlib_run_child(pair, NULL);
}

static int two_namespaces(void)
{
	*stage = 0;
	testlib_new_id(id);
	CHECK_EQ(testlib_run_ranks(2, enter, NULL), 0);
	return testlib_wait_released(0);
}

static const struct testlib_test tests[] = {
	{ "pids of the reader's namespace, and of another one", two_namespaces },
};

int main(void)
{
	ksft_print_header();
	testlib_require_device();
	testlib_require_root();
	stage = testlib_shared_alloc(sizeof(*stage));
	testlib_run_tests(tests, ARRAY_SIZE(tests));
	ksft_finished();
}
