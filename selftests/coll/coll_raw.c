// SPDX-License-Identifier: GPL-2.0-only
/* The basics: collectives by plans of the test, through the uapi alone. */
#include <errno.h>

#include "testlib.h"

static uint8_t id[SWC_ID_BYTES];
static unsigned int *unloaded_by;

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

#define NUNLOADED 8 /* operations */

/* A plan that is unloaded while operations use it: the last rank comes when all others have unloaded theirs. */
static int unloaded(uint32_t rank, void *arg)
{
	uint32_t n = *(uint32_t *)arg, value[NUNLOADED][5003], count = ARRAY_SIZE(value[0]);
	struct swc_plan_unload un;
	struct swc_completion done;
	struct io_uring ring;
	struct testlib_rank r;
	struct swc_desc d;

	CHECK_EQ(testlib_rank_open(&r, id, n, rank, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(testlib_uring_init(&ring, NUNLOADED, TESTLIB_URING_BIG), 0);
	if (rank == n - 1)
		CHECK(testlib_wait_count(unloaded_by, n - 1));
	for (uint32_t k = 0; k < NUNLOADED; k++) {
		for (uint32_t i = 0; i < count; i++)
			value[k][i] = i + rank + k;
		d = testlib_allreduce_desc(&r, value[k], value[k], count, SWC_U32);
		if (k % 2) {
			CHECK(testlib_uring_prep(&ring, r.c.fd, &d, k));
			CHECK_EQ(io_uring_submit(&ring), 1);
		} else {
			CHECK_EQ(testlib_submit(r.c.fd, &d), 0);
		}
	}
	un = (struct swc_plan_unload){ .comm = r.comm, .plan = r.plan };
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PLAN_UNLOAD, &un), 0);
	testlib_count(unloaded_by);
	CHECK_EQ(testlib_submit(r.c.fd, &d), -ENOENT);
	for (uint32_t k = 0; k < NUNLOADED; k++) {
		if (k % 2)
			CHECK_EQ(testlib_uring_wait(&ring, NULL, NULL, TESTLIB_EVENT_MS), 0);
		else
			CHECK_EQ(testlib_ring_next(&r.c, &done, TESTLIB_EVENT_MS) ?: done.res, 0);
	}
	for (uint32_t k = 0; k < NUNLOADED; k++)
		for (uint32_t i = 0; i < count; i++)
			CHECK_EQ(value[k][i], n * (i + k) + n * (n - 1) / 2);
	io_uring_queue_exit(&ring);
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
		     { "barriers", barriers },
		     { "unload of the plan in use", unloaded } };
	uint32_t n[] = { 1, 2, 5 };

	ksft_print_header();
	testlib_require_device();
	unloaded_by = testlib_shared_alloc(sizeof(*unloaded_by));
	ksft_set_plan(ARRAY_SIZE(test) * ARRAY_SIZE(n));
	for (unsigned int t = 0; t < ARRAY_SIZE(test); t++)
		for (unsigned int i = 0; i < ARRAY_SIZE(n); i++) {
			testlib_new_id(id);
			*unloaded_by = 0;
			ksft_test_result(!testlib_run_ranks(n[i], test[t].fn, &n[i]),
					 "%s, %u ranks", test[t].name, n[i]);
		}
	ksft_finished();
}
