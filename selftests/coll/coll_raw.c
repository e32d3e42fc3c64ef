// SPDX-License-Identifier: GPL-2.0-only
/* The basics: collectives by plans of the test, through the uapi alone. */
#include <errno.h>

#include "testlib.h"

static uint8_t id[SWC_ID_BYTES];

static int by_ioctl(uint32_t rank, void *arg)
{
	uint32_t n = *(uint32_t *)arg;
	struct testlib_rank r;

	CHECK_EQ(testlib_rank_open(&r, id, n, rank, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 1), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 0), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 10007), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 300000), 0);
	CHECK_EQ(testlib_comm_leave(r.c.fd, r.comm), 0);
	testlib_close(&r.c);
	return 0;
}

static int by_uring(uint32_t rank, void *arg)
{
	uint32_t n = *(uint32_t *)arg, count = 20011;
	uint32_t *buf = malloc(count * 4);
	struct io_uring ring;
	struct testlib_rank r;
	struct swc_desc d;
	uint64_t user_data, word;

	CHECK_EQ(testlib_rank_open(&r, id, n, rank, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(testlib_uring_init(&ring, 8, TESTLIB_URING_BIG), 0);
	for (uint32_t k = 0; k < 10; k++) {
		for (uint32_t i = 0; i < count; i++)
			buf[i] = i + rank + k;
		d = testlib_allreduce_desc(&r, buf, buf, count, SWC_U32);
		d.flags = k & 1 ? SWC_OP_WAITING : 0;
		CHECK(testlib_uring_prep(&ring, r.c.fd, &d, 100 + k));
		CHECK_EQ(io_uring_submit(&ring), 1);
		CHECK_EQ(testlib_uring_wait(&ring, &user_data, &word, TESTLIB_EVENT_MS), 0);
		CHECK_EQ(user_data, 100 + k);
		CHECK_EQ(SWC_CQE_PLAN(word), r.plan);
		CHECK(SWC_CQE_TIME_NS(word) > 0);
		for (uint32_t i = 0; i < count; i++)
			CHECK_EQ(buf[i], n * (i + k) + n * (n - 1) / 2);
	}
	io_uring_queue_exit(&ring);
	testlib_rank_close(&r);
	return 0;
}

static int by_net(uint32_t rank, void *arg)
{
	uint32_t n = *(uint32_t *)arg;
	struct testlib_plan p;
	struct testlib_rank r;

	if (n == 1) /* a ring of one rank has no transfers */
		return 0;
	CHECK_EQ(testlib_rank_open(&r, id, n, rank, TESTLIB_EVENT_MS), 0);
	testlib_plan_ring(&p, n, rank);
	CHECK_EQ(testlib_plan_install(r.c.fd, r.comm, &p, &r.plan), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 5), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 10007), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 700001), 0);
	testlib_rank_close(&r);
	return 0;
}

static int barriers(uint32_t rank, void *arg)
{
	uint32_t n = *(uint32_t *)arg;
	struct testlib_plan p;
	struct testlib_rank r;

	CHECK_EQ(testlib_rank_open(&r, id, n, rank, TESTLIB_EVENT_MS), 0);
	testlib_plan_barrier(&p, n, rank);
	CHECK_EQ(testlib_plan_install(r.c.fd, r.comm, &p, &r.plan), 0);
	for (int i = 0; i < 50; i++) {
		struct swc_desc d = { .comm = r.comm, .plan = r.plan, .coll = SWC_BARRIER };

		CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
	}
	testlib_rank_close(&r);
	return 0;
}

int main(void)
{
	static const struct {
		const char *name;
		testlib_rank_fn fn;
	} test[] = { { "allreduce by ioctl", by_ioctl },
		     { "allreduce by io_uring", by_uring },
		     { "ring allreduce in network steps", by_net },
		     { "barriers", barriers } };
	uint32_t n[] = { 1, 2, 5 };

	ksft_print_header();
	testlib_require_device();
	ksft_set_plan(ARRAY_SIZE(test) * ARRAY_SIZE(n));
	for (unsigned int t = 0; t < ARRAY_SIZE(test); t++)
		for (unsigned int i = 0; i < ARRAY_SIZE(n); i++) {
			testlib_new_id(id);
			ksft_test_result(!testlib_run_ranks(n[i], test[t].fn, &n[i]),
					 "%s, %u ranks", test[t].name, n[i]);
		}
	ksft_finished();
}
