// SPDX-License-Identifier: GPL-2.0-only
/*
 * The survivors of one death get different errors: the rank that waits in the operation learns that a rank has died, one
 * that calls later that the communicator is aborted. By swingcoll_comm_failed() both come to the same decision, shrink,
 * and go on. One node.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <swingcoll.h>

#include "testlib.h"

#define N 3
#define VICTIM 1
#define LATE 2
/* More than goes through the slots. */
#define COUNT (1 << 16)

static struct swingcoll_id id;
static unsigned int *waiting; /* ranks that have ended the first operation */

/* Every rank gives its number in the first communicator plus one. */
static int sum_is(struct swingcoll_comm *comm, uint32_t *buf, uint32_t mine, uint32_t want)
{
	for (int i = 0; i < COUNT; i++)
		buf[i] = mine + 1;
	CHECK_EQ(swingcoll_allreduce(buf, buf, COUNT, SWINGCOLL_U32, SWINGCOLL_SUM, comm), 0);
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ(buf[i], want);
	return 0;
}

/* The first survivor is in the operation when the victim dies. */
static int in_time(struct swingcoll_comm *comm, uint32_t *buf)
{
	struct swingcoll_req *req;
	int ret = swingcoll_iallreduce(buf, buf, COUNT, SWINGCOLL_U32, SWINGCOLL_SUM, comm, &req);

	testlib_count(waiting);
	return ret ? ret : swingcoll_wait(req, NULL);
}

/* The second one calls when the communicator is aborted. */
static int too_late(struct swingcoll_comm *comm, uint32_t *buf)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;

	while (!swingcoll_comm_error(comm, NULL, 0, NULL)) {
		CHECK(testlib_now_ms() < limit);
		testlib_sleep_ms(1);
	}
	return swingcoll_allreduce(buf, buf, COUNT, SWINGCOLL_U32, SWINGCOLL_SUM, comm);
}

static int rank_fn(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = TESTLIB_EVENT_MS,
					    .use_io_uring = *(int *)arg };
	uint32_t *buf = malloc(COUNT * sizeof(*buf));
	struct swingcoll_comm *comm, *smaller;
	int ret;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, N, rank, &opts), 0);
	CHECK_EQ(sum_is(comm, buf, rank, N * (N + 1) / 2), 0);
	if (rank == VICTIM) {
		CHECK(testlib_wait_count(waiting, N - 1));
		raise(SIGKILL);
	}
	if (rank == LATE)
		testlib_count(waiting);
	ret = rank == LATE ? too_late(comm, buf) : in_time(comm, buf);
	CHECK_EQ(ret, rank == LATE ? -ECONNABORTED : -ECONNRESET);
	CHECK(swingcoll_comm_failed(ret));
	CHECK_EQ(swingcoll_comm_shrink(comm, NULL, 0, &smaller), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	CHECK_EQ(swingcoll_comm_size(smaller), N - 1);
	CHECK_EQ(sum_is(smaller, buf, rank, N * (N + 1) / 2 - (VICTIM + 1)), 0);
	CHECK_EQ(swingcoll_barrier(smaller), 0);
	CHECK_EQ(swingcoll_comm_destroy(smaller), 0);
	free(buf);
	return 0;
}

static int run(int use_io_uring)
{
	pid_t pid[N], victim;
	int bad;

	*waiting = 0;
	CHECK_EQ(swingcoll_unique_id(&id), 0);
	testlib_fork_ranks(pid, N, rank_fn, &use_io_uring);
	victim = pid[VICTIM];
	pid[VICTIM] = 0;
	bad = testlib_wait_ranks(pid, N);
	return !testlib_was_killed(&victim) || bad;
}

int main(void)
{
	ksft_print_header();
	testlib_require_device();
	ksft_set_plan(2);
	waiting = testlib_shared_alloc(sizeof(*waiting));
	ksft_test_result(!run(-1), "survivors with different errors shrink, ioctl");
	ksft_test_result(!run(0), "survivors with different errors shrink, io_uring if allowed");
	ksft_finished();
}
