// SPDX-License-Identifier: GPL-2.0-only
/* Collectives that the library prepares in the application's own io_uring, among its other requests. */
#include <errno.h>

#include "coll.h"

#define N 3
#define BATCH 32
#define NOP (1u << 16) /* in user_data: another request of the application */

static struct swingcoll_id id;
static unsigned int *arrived, *done;

struct kind {
	const char *name;
	unsigned int setup;
	int use_io_uring; /* by the library, for its own calls */
};

static const struct kind kinds[] = {
	{ .name = "plain ring" },
	{ .name = "DEFER_TASKRUN, SINGLE_ISSUER",
	  .setup = IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER },
	{ .name = "SQPOLL", .setup = IORING_SETUP_SQPOLL },
	{ .name = "the library itself uses ioctl", .use_io_uring = -1 },
};

static struct io_uring ring;
static struct swingcoll_comm *comm;

static int up(uint32_t rank, const struct kind *k)
{
	struct swingcoll_comm_opts opts = { .use_io_uring = k->use_io_uring,
					    .timeout_ms = TESTLIB_EVENT_MS };

	CHECK_EQ(testlib_uring_init(&ring, 128, TESTLIB_URING_BIG | k->setup), 0);
	CHECK_EQ(swingcoll_comm_create(&comm, &id, N, rank, &opts), 0);
	return 0;
}

static int down(void)
{
	struct io_uring_cqe *cqe;

	CHECK_EQ(testlib_uring_next(&ring, &cqe, 1), -ETIME);
	io_uring_queue_exit(&ring);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static struct swingcoll_call call_of(const struct coll_case *c, const void *send, void *recv)
{
	return (struct swingcoll_call){ .coll = c->coll,
					.dtype = c->dtype,
					.op = c->op,
					.root = c->root,
					.send = send,
					.recv = recv,
					.count = c->count };
}

static int prep(const struct swingcoll_call *call, uint64_t user_data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	int ret;

	if (!sqe)
		return -ENOSPC;
	ret = swingcoll_prep(sqe, comm, call);
	if (ret)
		return ret;
	io_uring_sqe_set_data64(sqe, user_data);
	return 0;
}

static int prep_nop(uint64_t user_data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (!sqe)
		return -ENOSPC;
	io_uring_prep_nop(sqe);
	io_uring_sqe_set_data64(sqe, user_data | NOP);
	return 0;
}

/* The result of the next completion, by the library if it is of a collective. */
static int next(uint64_t *user_data, struct swingcoll_result *result)
{
	struct io_uring_cqe *cqe;
	int ret = testlib_uring_next(&ring, &cqe, TESTLIB_EVENT_MS);

	if (ret)
		return ret;
	*user_data = cqe->user_data;
	ret = *user_data & NOP ? cqe->res : swingcoll_cqe_result(comm, cqe, result);
	io_uring_cqe_seen(&ring, cqe);
	return ret;
}

/* One collective and nothing else in the ring. */
static int one(const struct swingcoll_call *call, struct swingcoll_result *result)
{
	uint64_t user_data;

	CHECK_EQ(prep(call, 7), 0);
	CHECK_EQ(io_uring_submit(&ring), 1);
	return next(&user_data, result);
}

static bool good_result(const struct swingcoll_result *r)
{
	if (!r->error && r->culprit == -1 && r->time_ns && r->algo && strcmp(r->algo, "?"))
		return true;
	ksft_print_msg("result: error %d, rank at fault %d, %llu ns, %s\n", r->error, r->culprit,
		       (unsigned long long)r->time_ns, r->algo ? r->algo : "no algorithm");
	return false;
}

/* All collectives at once, each followed by a NOP; each completes once, in any order. */
static int in_flight(uint32_t rank, void *arg)
{
	struct coll_case c[BATCH];
	void *mem[BATCH], *send, *recv;
	struct swingcoll_result result;

	if (up(rank, arg))
		return 1;
	for (int round = 0; round < 4; round++) {
		uint64_t seen = 0, user_data;

		for (int i = 0; i < BATCH; i++) {
			struct swingcoll_call call;

			c[i] = (struct coll_case){ .coll = i % (SWINGCOLL_SCATTER + 1),
						   .dtype = i % 4 ? SWINGCOLL_F32 : SWINGCOLL_U64,
						   .count = i % 5 ? 50 + i * 31 : 20011,
						   .in_place = (i + round) & 1 };
			if (c[i].coll == SWINGCOLL_BARRIER)
				c[i].count = 0;
			if (coll_has_root(c[i].coll))
				c[i].root = (i + round) % N;
			mem[i] = malloc(coll_bytes(&c[i], N));
			coll_buffers(&c[i], N, rank, mem[i], &send, &recv);
			coll_fill(&c[i], N, rank, send, i + round);
			call = call_of(&c[i], send, recv);
			CHECK_EQ(prep(&call, i), 0);
			CHECK_EQ(prep_nop(i), 0);
			/* In batches, of a different size on each rank. */
			if (i % (rank + 3) == 0)
				CHECK(io_uring_submit(&ring) > 0);
		}
		CHECK(io_uring_submit(&ring) >= 0);
		for (int i = 0; i < 2 * BATCH; i++) {
			uint64_t bit;

			CHECK_EQ(next(&user_data, &result), 0);
			CHECK((user_data & ~NOP) < BATCH);
			bit = 1ull << (user_data & NOP ? 32 + (user_data & ~NOP) : user_data);
			CHECK(!(seen & bit));
			seen |= bit;
			if (!(user_data & NOP))
				CHECK(good_result(&result));
		}
		CHECK_EQ(seen, ~0ull);
		for (int i = 0; i < BATCH; i++) {
			coll_buffers(&c[i], N, rank, mem[i], &send, &recv);
			if (c[i].coll != SWINGCOLL_BARRIER)
				CHECK_EQ(coll_check(&c[i], N, rank, recv, i + round), 0);
			free(mem[i]);
		}
	}
	return down();
}

/* The library's own calls, through the slots and through the kernel, between those of the application's ring. */
static int among_calls(uint32_t rank, void *arg)
{
	static const size_t counts[] = { 10, 5000, 100003 };
	static uint64_t own[2 * 100003 + 16], other[2 * 100003 + 16], small[64];
	struct coll_case barrier = { .coll = SWINGCOLL_BARRIER };
	void *send, *recv, *other_send, *other_recv;

	if (up(rank, arg))
		return 1;
	for (int round = 0; round < 9; round++) {
		struct coll_case c = { .count = counts[round % 3],
				       .dtype = SWINGCOLL_I64,
				       .in_place = round & 1 };
		struct coll_case tiny = { .count = 9, .dtype = SWINGCOLL_F64 };
		struct swingcoll_call call;
		struct swingcoll_req *req;
		uint64_t user_data;

		coll_buffers(&c, N, rank, own, &send, &recv);
		coll_buffers(&c, N, rank, other, &other_send, &other_recv);
		coll_fill(&c, N, rank, send, round);
		coll_fill(&c, N, rank, other_send, round + 100);
		call = call_of(&c, send, recv);
		CHECK_EQ(prep(&call, round), 0);
		CHECK_EQ(io_uring_submit(&ring), 1);
		CHECK_EQ(coll_icall(&c, other_send, other_recv, comm, &req), 0);
		CHECK_EQ(coll_run(&tiny, small, comm, round), 0);
		call = call_of(&barrier, NULL, NULL);
		CHECK_EQ(prep(&call, round), 0);
		CHECK_EQ(io_uring_submit(&ring), 1);
		CHECK_EQ(swingcoll_wait(req, NULL), 0);
		for (int i = 0; i < 2; i++) {
			CHECK_EQ(next(&user_data, NULL), 0);
			CHECK_EQ(user_data, round);
		}
		CHECK_EQ(coll_check(&c, N, rank, recv, round), 0);
		CHECK_EQ(coll_check(&c, N, rank, other_recv, round + 100), 0);
	}
	return down();
}

/* The ranks call one collective in different ways; small enough for the slots, and larger. */
static int mixed(uint32_t rank, void *arg)
{
	static uint64_t mem[2 * 100003 + 16];
	void *send, *recv;

	if (up(rank, arg))
		return 1;
	for (uint32_t round = 0; round < 24; round++) {
		struct coll_case c = { .coll = round % 5,
				       .count = round % 4 ? 20 : 10007,
				       .dtype = SWINGCOLL_I64,
				       .in_place = round & 1 };
		struct swingcoll_call call;
		struct swingcoll_req *req;

		coll_buffers(&c, N, rank, mem, &send, &recv);
		coll_fill(&c, N, rank, send, round);
		call = call_of(&c, send, recv);
		switch ((rank + round / 2) % 3) {
		case 0:
			CHECK_EQ(one(&call, NULL), 0);
			break;
		case 1:
			CHECK_EQ(coll_call(&c, send, recv, comm), 0);
			break;
		default:
			CHECK_EQ(coll_icall(&c, send, recv, comm, &req), 0);
			CHECK_EQ(swingcoll_wait(req, NULL), 0);
		}
		CHECK_EQ(coll_check(&c, N, rank, recv, round), 0);
	}
	return down();
}

/* Rank 1 comes last, with another count: all ranks get EPROTO that names it, and the communicator goes on. */
static int mismatch(uint32_t rank, void *arg)
{
	static uint64_t mem[2 * 1000 + 16];
	struct coll_case c = { .count = 1000, .dtype = SWINGCOLL_I64, .in_place = true };
	struct swingcoll_result result;
	struct swingcoll_call call;
	uint64_t user_data;
	char text[256];
	int culprit;

	if (up(rank, arg))
		return 1;
	for (unsigned int round = 1; round <= 5; round++) {
		call = call_of(&c, mem, mem);
		if (rank == 1) {
			CHECK(testlib_wait_count(arrived, round * (N - 1)));
			call.count = 999;
		}
		CHECK_EQ(prep(&call, 1), 0);
		CHECK_EQ(prep_nop(2), 0);
		CHECK_EQ(io_uring_submit(&ring), 2);
		if (rank != 1)
			testlib_count(arrived);
		for (int i = 0; i < 2; i++) {
			int ret = next(&user_data, &result);

			CHECK_EQ(ret, user_data & NOP ? 0 : -EPROTO);
		}
		CHECK_EQ(result.error, -EPROTO);
		CHECK_EQ(result.culprit, 1);
		CHECK_EQ(swingcoll_comm_error(comm, text, sizeof(text), &culprit), -EPROTO);
		CHECK_EQ(culprit, 1);
		if (!strstr(text, "rank 1") || !strstr(text, "count 999")) {
			ksft_print_msg("text: %s\n", text);
			return 1;
		}
		coll_fill(&c, N, rank, mem, round);
		call.count = c.count;
		CHECK_EQ(one(&call, &result), 0);
		CHECK(good_result(&result));
		CHECK_EQ(coll_check(&c, N, rank, mem, round), 0);
	}
	return down();
}

/* Rank 2 does not come: the call's own deadline ends the communicator, long before the communicator's would. */
static int deadline(uint32_t rank, void *arg)
{
	static uint64_t mem[100];
	struct coll_case c = { .count = 100, .dtype = SWINGCOLL_I64, .in_place = true };
	struct swingcoll_call call = call_of(&c, mem, mem);
	struct swingcoll_result result;
	uint64_t start, user_data;

	if (up(rank, arg))
		return 1;
	if (rank == 2) {
		CHECK(testlib_wait_count(done, N - 1));
		return down();
	}
	/* It is the deadline of rank 0, which comes after rank 1: so no other rank is late, however slow they are. */
	call.timeout_ms = rank ? 0 : 400;
	if (!rank)
		CHECK(testlib_wait_count(arrived, 1));
	CHECK_EQ(prep(&call, 7), 0);
	start = testlib_now_ms();
	CHECK_EQ(io_uring_submit(&ring), 1);
	testlib_count(arrived);
	CHECK_EQ(next(&user_data, &result), -ETIMEDOUT);
	CHECK_EQ(result.error, -ETIMEDOUT);
	CHECK_EQ(result.culprit, 2);
	CHECK(rank || testlib_now_ms() - start < TESTLIB_EVENT_MS / 2);
	CHECK_EQ(one(&call, &result), -ECONNABORTED);
	testlib_count(done);
	return down();
}

/* A refused call does not change the submission entry. */
static int arguments(void)
{
	static uint64_t mem[64], one_count = 8;
	const struct swingcoll_call good = {
		.dtype = SWINGCOLL_U64, .send = mem, .recv = mem + 32, .count = 8
	};
	struct swingcoll_call bad[11];
	struct io_uring_cqe cqe = { 0 };
	unsigned char sqe[128], before[128];
	int n = 0;

	CHECK_EQ(testlib_uring_init(&ring, 8, TESTLIB_URING_BIG), 0);
	CHECK_EQ(swingcoll_comm_create(&comm, &id, 1, 0, NULL), 0);
	for (n = 0; n < (int)ARRAY_SIZE(bad); n++)
		bad[n] = good;
	n = 0;
	bad[n++].coll = SWINGCOLL_SCATTER + 1;
	bad[n++].dtype = SWINGCOLL_F64 + 1;
	bad[n++].op = SWINGCOLL_BXOR + 1;
	bad[n++].root = 1;
	bad[n++].root = -1;
	bad[n++].send = NULL;
	bad[n++].recv = NULL;
	bad[n++].recv = (char *)mem + 4;
	bad[n++].recv = mem + 1;
	bad[n++].reserved = 1;
	bad[n++].counts = &one_count; /* of an allreduce */
	CHECK_EQ(n, (int)ARRAY_SIZE(bad));
	memset(sqe, 0xa5, sizeof(sqe));
	memcpy(before, sqe, sizeof(sqe));
	for (int i = 0; i < n; i++) {
		int ret = swingcoll_prep((void *)sqe, comm, &bad[i]);

		if (ret != -EINVAL || memcmp(sqe, before, sizeof(sqe))) {
			ksft_print_msg("call %d: %d\n", i, ret);
			return 1;
		}
	}
	CHECK_EQ(swingcoll_prep(NULL, comm, &good), -EINVAL);
	CHECK_EQ(swingcoll_prep((void *)sqe, NULL, &good), -EINVAL);
	CHECK_EQ(swingcoll_prep((void *)sqe, comm, NULL), -EINVAL);
	CHECK(!memcmp(sqe, before, sizeof(sqe)));
	CHECK_EQ(swingcoll_cqe_result(NULL, &cqe, NULL), -EINVAL);
	CHECK_EQ(swingcoll_cqe_result(comm, NULL, NULL), -EINVAL);
	CHECK_EQ(one(&good, NULL), 0);
	return down();
}

int main(void)
{
	struct io_uring probe;

	ksft_print_header();
	testlib_require_device();
	if (testlib_uring_init(&probe, 4, TESTLIB_URING_BIG))
		ksft_exit_skip("no io_uring here\n");
	io_uring_queue_exit(&probe);
	arrived = testlib_shared_alloc(sizeof(*arrived));
	done = testlib_shared_alloc(sizeof(*done));
	ksft_set_plan(ARRAY_SIZE(kinds) + 5);

#define RANKS(fn, kind, ...)                                                                       \
	do {                                                                                       \
		swingcoll_unique_id(&id);                                                          \
		*arrived = *done = 0;                                                              \
		ksft_test_result(!testlib_run_ranks(N, fn, (void *)(kind)), __VA_ARGS__);          \
	} while (0)

	for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++)
		RANKS(in_flight, &kinds[k], "%d in flight among NOPs: %s", BATCH, kinds[k].name);
	RANKS(among_calls, &kinds[0], "among the library's own calls");
	RANKS(mixed, &kinds[0], "ranks call in different ways: ring, blocking, non-blocking");
	RANKS(mismatch, &kinds[0], "a rank with another count: EPROTO, and its number");
	RANKS(deadline, &kinds[0], "the deadline of a call, and the late rank");
	swingcoll_unique_id(&id);
	ksft_test_result(!arguments(), "wrong arguments are refused");
	ksft_finished();
}
