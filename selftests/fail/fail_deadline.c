// SPDX-License-Identifier: GPL-2.0-only
/* Deadlines: the late rank is named, and no rank waits much longer than the deadline. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include <swingcoll.h>

#include "testlib.h"

#define N 3
#define LONG_MS TESTLIB_EVENT_MS /* deadlines that are not to be reached */
#define SLACK_MS (LONG_MS / 2)	 /* of a busy machine */

static uint8_t id[SWC_ID_BYTES];
static uint32_t buf[1000];
static unsigned int *done, *submitted; /* count ranks */
static uint64_t *began;

/* The operation of a rank has ended by the deadline, because of one rank that is named. */
static int check_late(struct testlib_rank *r, int ret, int culprit, uint64_t start,
		      uint32_t deadline_ms)
{
	uint64_t took = testlib_now_ms() - start;
	struct swc_comm_error e;
	char who[32];

	CHECK_EQ(ret, -ETIMEDOUT);
	/* Not at once; jiffies of a virtual machine that was stopped may run behind its clock. */
	CHECK(took >= deadline_ms / 2);
	if (took > deadline_ms + SLACK_MS) {
		ksft_print_msg("took %llu ms, deadline was %u\n", (unsigned long long)took,
			       deadline_ms);
		return 1;
	}
	CHECK_EQ(testlib_comm_error(r->c.fd, r->comm, &e), 0);
	CHECK_EQ(e.error, -ETIMEDOUT);
	CHECK_EQ(e.culprit, culprit);
	CHECK_EQ(e.aborted, 1);
	snprintf(who, sizeof(who), "rank %d", culprit);
	if (!strstr(e.text, who)) {
		ksft_print_msg("text: %s\n", e.text);
		return 1;
	}
	return 0;
}

/* The communicator has ended, and tells it without delay. */
static int check_ended(struct testlib_rank *r)
{
	struct swc_desc d = testlib_allreduce_desc(r, buf, buf, 1000, SWC_U32);

	CHECK_EQ(testlib_submit(r->c.fd, &d), -ECONNABORTED);
	CHECK_EQ(testlib_comm_leave(r->c.fd, r->comm), 0);
	return 0;
}

/*
 * An operation that rank 2 does not submit. The deadline is rank 0's, which submits after rank 1: so no other rank is
 * late, however slow it is.
 */
static int without_2(struct testlib_rank *r, uint32_t timeout_ms, uint64_t *start,
		     struct swc_completion *c)
{
	struct swc_desc d = testlib_allreduce_desc(r, buf, buf, 1000, SWC_U32);
	int ret;

	d.timeout_ms = r->rank ? LONG_MS : timeout_ms;
	if (!r->rank && !testlib_wait_count(submitted, 1))
		return -ESRCH;
	*start = testlib_now_ms();
	ret = testlib_submit(r->c.fd, &d);
	testlib_count(submitted);
	if (!ret)
		ret = testlib_ring_next(&r->c, c, 2 * LONG_MS);
	return ret ? ret : c->res;
}

/* Rank 2 never submits; the deadline is the communicator's, or the operation's. */
static int absent(uint32_t rank, void *arg)
{
	bool per_op = *(int *)arg;
	uint64_t start;
	struct testlib_rank r;
	struct swc_completion c = { 0 };
	int ret;

	/* The communicator's is also that for creating it. */
	CHECK_EQ(testlib_rank_open(&r, id, N, rank, per_op ? LONG_MS : 5000), 0);
	if (rank == 2) {
		CHECK(testlib_wait_count(done, N - 1));
		return 0;
	}
	ret = without_2(&r, per_op ? 400 : 0, &start, &c);
	testlib_count(done);
	CHECK_EQ(c.culprit, 2);
	if (check_late(&r, ret, 2, start, per_op ? 400 : 5000))
		return 1;
	return check_ended(&r);
}

/* By io_uring: the CQE has the rank at fault. */
static int absent_uring(uint32_t rank, void *arg)
{
	uint64_t start, word;
	struct io_uring ring;
	struct testlib_rank r;
	struct swc_desc d;
	int ret;

	CHECK_EQ(testlib_rank_open(&r, id, N, rank, LONG_MS), 0);
	if (rank == 2) {
		CHECK(testlib_wait_count(done, N - 1));
		return 0;
	}
	d = testlib_allreduce_desc(&r, buf, buf, 1000, SWC_U32);
	d.flags = *(int *)arg;
	d.timeout_ms = rank ? 0 : 400;
	CHECK_EQ(testlib_uring_init(&ring, 4, TESTLIB_URING_BIG), 0);
	testlib_uring_prep(&ring, r.c.fd, &d, 1);
	/* As in without_2(). */
	if (!rank)
		CHECK(testlib_wait_count(submitted, 1));
	start = testlib_now_ms();
	CHECK_EQ(io_uring_submit(&ring), 1);
	testlib_count(submitted);
	ret = testlib_uring_wait(&ring, NULL, &word, 2 * LONG_MS);
	testlib_count(done);
	CHECK_EQ(SWC_CQE_CULPRIT(word), 2);
	return check_late(&r, ret, 2, start, 400);
}

/* A rank is stopped between operations. */
static int stopped(uint32_t rank, void *arg)
{
	struct swc_completion c;
	struct testlib_rank r;
	uint64_t start;
	int ret;

	(void)arg;
	CHECK_EQ(testlib_rank_open(&r, id, N, rank, LONG_MS), 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(testlib_check_allreduce(&r, 1000), 0);
	if (rank == 2) {
		raise(SIGSTOP);
		/* The parent continues it; the communicator has ended. */
		CHECK_EQ(testlib_check_allreduce(&r, 100), -ECONNABORTED);
		return 0;
	}
	ret = without_2(&r, 700, &start, &c);
	return check_late(&r, ret, 2, start, 700);
}

/* Rank 1 never joins. */
static int missing_member(uint32_t rank, void *arg)
{
	struct swc_comm_create j = { .nranks = N + 1,
				     .rank = rank ? rank + 1 : 0,
				     .timeout_ms = 400 };
	struct testlib_ctx c;
	uint64_t start = testlib_now_ms(), none = 0, end;

	(void)arg;
	memcpy(j.id, id, sizeof(id));
	/* The deadline of the first rank ends the communicator for all of them. */
	__atomic_compare_exchange_n(began, &none, start, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_COMM_CREATE, &j), -ETIMEDOUT);
	end = testlib_now_ms();
	CHECK(end - *began >= 380 && end - start < 400 + SLACK_MS);
	/* This rank may have been the last to join before the deadline of the first. */
	CHECK(j.njoined >= 1 && j.njoined <= N);
	CHECK(j.njoined < N || j.missing == 1);
	return 0;
}

/* The library tells which rank did not join. */
static int missing_name(void)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = 100 };
	struct swingcoll_comm *comm;
	struct swingcoll_id lib_id;

	CHECK_EQ(swingcoll_unique_id(&lib_id), 0);
	CHECK_EQ(swingcoll_comm_create(&comm, &lib_id, 3, 1, &opts), -ETIMEDOUT);
	if (!strstr(swingcoll_bootstrap_error(), "rank 0 and others did not")) {
		ksft_print_msg("text: %s\n", swingcoll_bootstrap_error());
		return 1;
	}
	/* A creation that succeeds has nothing to tell. */
	CHECK_EQ(swingcoll_unique_id(&lib_id), 0);
	CHECK_EQ(swingcoll_comm_create(&comm, &lib_id, 1, 0, NULL), 0);
	CHECK(!*swingcoll_bootstrap_error());
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Ranks that are late, but not too late. */
static int in_time(uint32_t rank, void *arg)
{
	struct testlib_rank r;

	(void)arg;
	CHECK_EQ(testlib_rank_open(&r, id, N, rank, LONG_MS), 0);
	for (int i = 0; i < 10; i++) {
		if (rank == (uint32_t)i % N)
			testlib_sleep_ms(60);
		CHECK_EQ(testlib_check_allreduce(&r, 1000), 0);
	}
	testlib_rank_close(&r);
	return 0;
}

/* A rank waits on a slot that does not change. */
static int slots(uint32_t rank, void *arg)
{
	struct swc_comm_create j = {
		.nranks = 2, .rank = rank, .slot_bytes = 4096, .timeout_ms = LONG_MS
	};
	struct swc_slot_wait w = { .timeout_ms = 400, .suspect = !rank };
	struct testlib_rank r = { .rank = rank };
	uint64_t start;

	(void)arg;
	memcpy(j.id, id, sizeof(id));
	CHECK_EQ(testlib_open(&r.c), 0);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_CREATE, &j), 0);
	r.comm = w.comm = j.comm;
	start = testlib_now_ms();
	if (rank) {
		/* The communicator has ended, so this does not wait. */
		CHECK(testlib_wait_count(done, 1));
		w.timeout_ms = LONG_MS;
		start = testlib_now_ms();
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), -ETIMEDOUT);
		CHECK(testlib_now_ms() - start < SLACK_MS);
		testlib_count(done);
		return 0;
	}
	CHECK_EQ(check_late(&r, testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), 1, start, 400), 0);
	testlib_count(done);
	CHECK(testlib_wait_count(done, 2));
	return 0;
}

int main(void)
{
	int no = 0, yes = 1, waiting = SWC_OP_WAITING;
	siginfo_t info;
	pid_t pid[N];

	ksft_print_header();
	testlib_require_device();
	ksft_set_plan(9);
	done = testlib_shared_alloc(sizeof(*done));
	submitted = testlib_shared_alloc(sizeof(*submitted));
	began = testlib_shared_alloc(sizeof(*began));

#define RUN(n, fn, arg, ...)                                                                       \
	do {                                                                                       \
		testlib_new_id(id);                                                                \
		*done = *submitted = 0;                                                            \
		ksft_test_result(!testlib_run_ranks(n, fn, arg), __VA_ARGS__);                     \
	} while (0)

	RUN(N, absent, &no, "a rank is missing: the communicator's deadline");
	RUN(N, absent, &yes, "a rank is missing: the operation's own deadline");
	RUN(N, absent_uring, &no, "a rank is missing: io_uring");
	RUN(N, absent_uring, &waiting, "a rank is missing: io_uring, waiting");
	RUN(N, missing_member, NULL, "a rank never joins");
	ksft_test_result(!missing_name(), "the library names a rank that never joins");
	RUN(N, in_time, NULL, "ranks that are late, but in time");
	RUN(2, slots, NULL, "a slot that never changes");

	testlib_new_id(id);
	*done = *submitted = 0;
	testlib_fork_ranks(pid, N, stopped, NULL);
	int bad = testlib_wait_ranks(pid, 2);

	/* SIGCONT before the stop would be lost. */
	waitid(P_PID, pid[2], &info, WSTOPPED | WEXITED | WNOWAIT);
	kill(pid[2], SIGCONT);
	bad += testlib_wait_ranks(pid + 2, 1);
	ksft_test_result(!bad, "a rank is stopped");
	ksft_finished();
}
