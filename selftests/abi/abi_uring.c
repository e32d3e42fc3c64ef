// SPDX-License-Identifier: GPL-2.0-only
/* io_uring: the features that a ring must have, and every kind of ring and submission that works. */
#include <errno.h>
#include <sys/mman.h>

#include "testlib.h"

#define COUNT 30011

static struct testlib_rank alone;
static uint8_t id[SWC_ID_BYTES];

/* One command on a ring of the given kind; its result. */
static int one(unsigned int ring_flags, uint32_t cmd_op, unsigned int cmd_flags)
{
	static uint32_t buf[16];
	struct swc_desc d = testlib_allreduce_desc(&alone, buf, buf, 16, SWC_U32);
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int ret = testlib_uring_init(&ring, 4, ring_flags);

	if (ret)
		return ret;
	sqe = testlib_uring_prep(&ring, alone.c.fd, &d, 1);
	if (cmd_op)
		sqe->cmd_op = cmd_op;
	sqe->rw_flags = cmd_flags; /* uring_cmd_flags */
	ret = io_uring_submit(&ring);
	ret = ret == 1 ? testlib_uring_wait(&ring, NULL, NULL, TESTLIB_EVENT_MS) : -ENOMSG;
	io_uring_queue_exit(&ring);
	return ret;
}

static int small_entries(void)
{
	CHECK_EQ(one(TESTLIB_URING_BIG, 0, 0), 0);
	CHECK_EQ(one(0, 0, 0), -EINVAL);
	CHECK_EQ(one(IORING_SETUP_SQE128, 0, 0), -EINVAL);
	CHECK_EQ(one(IORING_SETUP_CQE32, 0, 0), -EINVAL);
	return 0;
}

static int wrong_commands(void)
{
	CHECK_EQ(one(TESTLIB_URING_BIG, 1, 0), -ENOTTY);
	CHECK_EQ(one(TESTLIB_URING_BIG, SWC_IOC_SUBMIT, 0), -ENOTTY);
	CHECK_EQ(one(TESTLIB_URING_BIG, SWC_IOC_INFO, 0), -ENOTTY);
	CHECK_EQ(one(TESTLIB_URING_BIG, ~0u, 0), -ENOTTY);
	CHECK_EQ(one(TESTLIB_URING_BIG, 0, 1u << 30), -EINVAL);
	CHECK(one(TESTLIB_URING_BIG | IORING_SETUP_IOPOLL, 0, 0) < 0);
	return 0;
}

/* ------------------------------------------------------------------ kinds */

struct kind {
	const char *name;
	unsigned int setup, sqe_flags;
	bool fixed, waiting, many;
};

static const struct kind kinds[] = {
	{ .name = "plain ring" },
	{ .name = "plain ring, waiting", .waiting = true },
	{ .name = "DEFER_TASKRUN, SINGLE_ISSUER",
	  .setup = IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER },
	{ .name = "DEFER_TASKRUN, SINGLE_ISSUER, waiting",
	  .setup = IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER,
	  .waiting = true },
	{ .name = "COOP_TASKRUN, waiting", .setup = IORING_SETUP_COOP_TASKRUN, .waiting = true },
	{ .name = "SQPOLL", .setup = IORING_SETUP_SQPOLL },
	{ .name = "SQPOLL, waiting", .setup = IORING_SETUP_SQPOLL, .waiting = true },
	{ .name = "registered file", .fixed = true },
	{ .name = "IOSQE_ASYNC", .sqe_flags = IOSQE_ASYNC },
	{ .name = "IOSQE_ASYNC, waiting", .sqe_flags = IOSQE_ASYNC, .waiting = true },
	{ .name = "linked", .sqe_flags = IOSQE_IO_LINK },
	{ .name = "drained", .sqe_flags = IOSQE_IO_DRAIN },
	{ .name = "32 at once", .many = true },
	{ .name = "32 at once, waiting", .many = true, .waiting = true },
	{ .name = "32 at once, DEFER_TASKRUN",
	  .many = true,
	  .setup = IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER },
};

static int rank_fn(uint32_t rank, void *arg)
{
	const struct kind *k = arg;
	uint32_t n = 3, batch = k->many ? 32 : 4, rounds = k->many ? 2 : 4,
		 count = k->many ? 777 : COUNT;
	uint32_t *buf = malloc((size_t)batch * count * 4);
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	struct testlib_rank r;
	uint64_t seen, user_data, word;

	CHECK_EQ(testlib_rank_open(&r, id, n, rank, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(testlib_uring_init(&ring, 64, TESTLIB_URING_BIG | k->setup), 0);
	if (k->fixed)
		CHECK_EQ(io_uring_register_files(&ring, &r.c.fd, 1), 0);
	for (uint32_t round = 0; round < rounds; round++) {
		for (uint32_t b = 0; b < batch; b++) {
			uint32_t *at = buf + (size_t)b * count;
			struct swc_desc d = testlib_allreduce_desc(&r, at, at, count, SWC_U32);

			for (uint32_t i = 0; i < count; i++)
				at[i] = i + rank * 3 + b + round;
			d.flags = k->waiting ? SWC_OP_WAITING : 0;
			sqe = testlib_uring_prep(&ring, k->fixed ? 0 : r.c.fd, &d, b);
			CHECK(sqe);
			sqe->flags = k->sqe_flags | (k->fixed ? IOSQE_FIXED_FILE : 0);
			if (b + 1 == batch)
				sqe->flags &= ~IOSQE_IO_LINK;
			/* Workers of io_uring may take them in any order; the collectives are alike. */
		}
		CHECK(io_uring_submit(&ring) > 0);
		seen = 0;
		for (uint32_t b = 0; b < batch; b++) {
			CHECK_EQ(testlib_uring_wait(&ring, &user_data, &word, TESTLIB_EVENT_MS), 0);
			CHECK(!(seen & (1ull << user_data)));
			seen |= 1ull << user_data;
			CHECK_EQ(SWC_CQE_PLAN(word), r.plan);
		}
		CHECK_EQ(testlib_uring_wait(&ring, NULL, NULL, 1), -ETIME);
		if (k->sqe_flags & IOSQE_ASYNC)
			continue; /* ranks may have matched different buffers */
		for (uint32_t b = 0; b < batch; b++)
			for (uint32_t i = 0; i < count; i++)
				CHECK_EQ(buf[(size_t)b * count + i], n * (i + b + round) + 9);
	}
	io_uring_queue_exit(&ring);
	testlib_rank_close(&r);
	return 0;
}

/* Rank 1 closes its ring with a command in flight: rank 0 gets an error where commands can be cancelled. */
static int ring_closed(uint32_t rank, void *arg)
{
	bool can_cancel = testlib_info().features & SWC_FEATURE_CANCEL;
	static uint32_t buf[64];
	unsigned int *closed = arg;
	struct swc_comm_error e = { 0 };
	struct testlib_rank r;
	struct io_uring ring;
	struct swc_desc d;
	uint64_t limit;

	CHECK_EQ(testlib_rank_open(&r, id, 2, rank, TESTLIB_EVENT_MS), 0);
	d = testlib_allreduce_desc(&r, buf, buf, 64, SWC_U32);
	/* Both have returned from creating the communicator. */
	CHECK_EQ(testlib_check_allreduce(&r, 64), 0);
	if (rank) {
		CHECK_EQ(testlib_uring_init(&ring, 4, TESTLIB_URING_BIG), 0);
		testlib_uring_prep(&ring, r.c.fd, &d, 1);
		CHECK_EQ(io_uring_submit(&ring), 1);
		io_uring_queue_exit(&ring);
		CHECK(testlib_meet(&closed[0], 1));
		/* An exit would be an error of its own. */
		CHECK(testlib_wait_count(&closed[1], 1));
		return 0;
	}
	CHECK(testlib_wait_count(&closed[0], 1));
	/* The kernel cancels in the background. Without cancellation the command completes, unseen. */
	limit = testlib_now_ms() + TESTLIB_EVENT_MS;
	while (can_cancel && !e.error && testlib_now_ms() < limit) {
		testlib_sleep_ms(1);
		CHECK_EQ(testlib_comm_error(r.c.fd, r.comm, &e), 0);
	}
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), can_cancel ? -ECONNABORTED : 0);
	CHECK_EQ(testlib_comm_error(r.c.fd, r.comm, &e), 0);
	CHECK_EQ(e.error, can_cancel ? -ECONNRESET : 0);
	CHECK_EQ(e.culprit, can_cancel ? 1 : -1);
	testlib_count(&closed[1]);
	return 0;
}

int main(void)
{
	unsigned int nkinds = ARRAY_SIZE(kinds), *closed;

	ksft_print_header();
	testlib_require_device();
	testlib_single_rank(&alone, id);
	if (one(TESTLIB_URING_BIG, 0, 0) == -ENOSYS || one(TESTLIB_URING_BIG, 0, 0) == -EPERM)
		ksft_exit_skip("no io_uring here\n");
	ksft_set_plan(3 + nkinds);
	ksft_test_result(!small_entries(), "rings without SQE128 and CQE32 are refused");
	ksft_test_result(!wrong_commands(), "wrong commands and flags are refused");
	for (unsigned int k = 0; k < nkinds; k++) {
		testlib_new_id(id);
		ksft_test_result(!testlib_run_ranks(3, rank_fn, (void *)&kinds[k]), "%s",
				 kinds[k].name);
	}
	testlib_new_id(id);
	closed = testlib_shared_alloc(2 * sizeof(*closed));
	ksft_test_result(!testlib_run_ranks(2, ring_closed, closed),
			 "a ring is closed with a command in flight");
	ksft_finished();
}
