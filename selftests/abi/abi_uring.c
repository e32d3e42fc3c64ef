// SPDX-License-Identifier: GPL-2.0-only
/* io_uring: what a ring must be, and every kind of ring and of submission that must work. */
#include <errno.h>
#include <sys/mman.h>

#include "testlib.h"

#define BIG (IORING_SETUP_SQE128 | IORING_SETUP_CQE32)
#define COUNT 30011

static struct swct_rank alone;
static uint8_t id[SWC_ID_BYTES];

/* One command on a ring of the given kind; its result. */
static int one(unsigned int ring_flags, uint32_t cmd_op, unsigned int cmd_flags)
{
	static uint32_t buf[16];
	struct swc_desc d = swct_allreduce(&alone, buf, buf, 16, SWC_U32);
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int ret = swct_uring_init(&ring, 4, ring_flags);

	if (ret)
		return ret;
	sqe = swct_uring_prep(&ring, alone.c.fd, &d, 1);
	if (cmd_op)
		sqe->cmd_op = cmd_op;
	sqe->rw_flags = cmd_flags; /* uring_cmd_flags */
	ret = io_uring_submit(&ring);
	ret = ret == 1 ? swct_uring_wait(&ring, NULL, NULL, 5000) : -ENOMSG;
	io_uring_queue_exit(&ring);
	return ret;
}

static int small_entries(void)
{
	CHECK_EQ(one(BIG, 0, 0), 0);
	CHECK_EQ(one(0, 0, 0), -EINVAL);
	CHECK_EQ(one(IORING_SETUP_SQE128, 0, 0), -EINVAL);
	CHECK_EQ(one(IORING_SETUP_CQE32, 0, 0), -EINVAL);
	return 0;
}

static int wrong_commands(void)
{
	CHECK_EQ(one(BIG, 1, 0), -ENOTTY);
	CHECK_EQ(one(BIG, SWC_IOC_SUBMIT, 0), -ENOTTY);
	CHECK_EQ(one(BIG, SWC_IOC_INFO, 0), -ENOTTY);
	CHECK_EQ(one(BIG, ~0u, 0), -ENOTTY);
	CHECK_EQ(one(BIG, 0, 1u << 30), -EINVAL);
	CHECK(one(BIG | IORING_SETUP_IOPOLL, 0, 0) < 0);
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
	struct swct_rank r;
	uint64_t seen, user_data, word;

	CHECK_EQ(swct_rank_up(&r, id, n, rank, 20000), 0);
	CHECK_EQ(swct_uring_init(&ring, 64, BIG | k->setup), 0);
	if (k->fixed)
		CHECK_EQ(io_uring_register_files(&ring, &r.c.fd, 1), 0);
	for (uint32_t round = 0; round < rounds; round++) {
		for (uint32_t b = 0; b < batch; b++) {
			uint32_t *at = buf + (size_t)b * count;
			struct swc_desc d = swct_allreduce(&r, at, at, count, SWC_U32);

			for (uint32_t i = 0; i < count; i++)
				at[i] = i + rank * 3 + b + round;
			d.flags = k->waiting ? SWC_OP_WAITING : 0;
			sqe = swct_uring_prep(&ring, k->fixed ? 0 : r.c.fd, &d, b);
			CHECK(sqe);
			sqe->flags = k->sqe_flags | (k->fixed ? IOSQE_FIXED_FILE : 0);
			if (b + 1 == batch)
				sqe->flags &= ~IOSQE_IO_LINK;
			/* Workers may take them in any order: the collectives are alike here. */
		}
		CHECK(io_uring_submit(&ring) > 0);
		seen = 0;
		for (uint32_t b = 0; b < batch; b++) {
			CHECK_EQ(swct_uring_wait(&ring, &user_data, &word, 30000), 0);
			CHECK(!(seen & (1ull << user_data)));
			seen |= 1ull << user_data;
			CHECK_EQ(SWC_CQE_PLAN(word), r.plan);
		}
		CHECK_EQ(swct_uring_wait(&ring, NULL, NULL, 1), -ETIME);
		if (k->sqe_flags & IOSQE_ASYNC)
			continue; /* ranks may have paired different buffers */
		for (uint32_t b = 0; b < batch; b++)
			for (uint32_t i = 0; i < count; i++)
				CHECK_EQ(buf[(size_t)b * count + i], n * (i + b + round) + 9);
	}
	io_uring_queue_exit(&ring);
	swct_rank_down(&r);
	return 0;
}

/* A ring goes away with commands in flight: where they can be cancelled, the others hear of it. */
static int ring_closed(uint32_t rank, void *arg)
{
	static uint32_t buf[64];
	struct io_uring ring;
	struct swct_rank r;
	struct swc_desc d;
	struct swc_comm_error e;
	int ret;

	(void)arg;
	CHECK_EQ(swct_rank_up(&r, id, 2, rank, 4000), 0);
	d = swct_allreduce(&r, buf, buf, 64, SWC_U32);
	if (rank) {
		CHECK_EQ(swct_uring_init(&ring, 4, BIG), 0);
		swct_sleep_ms(200); /* the other has come back from its join */
		swct_uring_prep(&ring, r.c.fd, &d, 1);
		CHECK_EQ(io_uring_submit(&ring), 1);
		io_uring_queue_exit(&ring);
		swct_sleep_ms(500);
	} else {
		swct_sleep_ms(450);
		ret = swct_run(&r.c, &d, NULL);
		/* 6.1 cannot cancel: there the command completes into the void. */
		CHECK(ret == 0 || ret == -ECONNRESET || ret == -ECONNABORTED);
		CHECK_EQ(swct_error(r.c.fd, r.comm, &e), 0);
		if (ret) {
			CHECK_EQ(e.error, -ECONNRESET);
			CHECK_EQ(e.culprit, 1);
		}
	}
	swct_close(&r.c);
	return 0;
}

int main(void)
{
	unsigned int nkinds = ARRAY_SIZE(kinds);

	ksft_print_header();
	swct_need_device();
	swct_alone(&alone, id);
	if (one(BIG, 0, 0) == -ENOSYS || one(BIG, 0, 0) == -EPERM)
		ksft_exit_skip("no io_uring here\n");
	ksft_set_plan(3 + nkinds);
	ksft_test_result(!small_entries(), "rings without SQE128 or CQE32 are refused");
	ksft_test_result(!wrong_commands(), "wrong commands and flags are refused");
	for (unsigned int k = 0; k < nkinds; k++) {
		swct_id(id);
		ksft_test_result(!swct_ranks(3, 60000, rank_fn, (void *)&kinds[k]), "%s",
				 kinds[k].name);
	}
	swct_id(id);
	ksft_test_result(!swct_ranks(2, 20000, ring_closed, NULL),
			 "ring closed with commands in flight");
	ksft_finished();
}
