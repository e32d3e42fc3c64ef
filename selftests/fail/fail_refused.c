// SPDX-License-Identifier: GPL-2.0-only
/*
 * A rank whose buffer is refused gets the reason, and the other ranks get ECANCELED for the same operation. The order of
 * operations stays the same on all ranks, so that the next ones, large and small, are right.
 */
#include <errno.h>
#include <sys/mman.h>
#include <swingcoll.h>

#include "testlib.h"

#define N 3
#define LARGE (1 << 18)
#define ROUNDS 20

static struct swingcoll_id lib_id;

static int sum_is_right(struct swingcoll_comm *comm, uint32_t *buf, size_t count, uint32_t salt)
{
	uint32_t rank = swingcoll_comm_rank(comm), want = 0;

	for (uint32_t r = 0; r < N; r++)
		want += salt * 16 + r;
	for (size_t i = 0; i < count; i++)
		buf[i] = salt * 16 + rank;
	CHECK_EQ(swingcoll_allreduce(buf, buf, count, SWINGCOLL_U32, SWINGCOLL_SUM, comm), 0);
	for (size_t i = 0; i < count; i++)
		CHECK_EQ(buf[i], want);
	return 0;
}

static int refused(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .use_io_uring = *(int *)arg };
	uint32_t *buf = malloc(LARGE * sizeof(*buf));
	/* Not writable, so it cannot be pinned. */
	void *bad = mmap(NULL, LARGE * sizeof(*buf), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct swingcoll_comm *comm;
	struct swingcoll_req *req[3];
	char text[256];
	int ret, culprit;

	CHECK_EQ(swingcoll_comm_create(&comm, &lib_id, N, rank, &opts), 0);
	for (uint32_t k = 0; k < ROUNDS; k++) {
		/* Most of the time the ranks come in this order. */
		testlib_sleep_ms((rank + k) % N * 3);
		ret = swingcoll_allreduce(rank == 1 ? bad : buf, buf, LARGE, SWINGCOLL_U32,
					  SWINGCOLL_SUM, comm);
		CHECK_EQ(ret, rank == 1 ? -EFAULT : -ECANCELED);
		swingcoll_comm_error(comm, text, sizeof(text), &culprit);
		CHECK_EQ(culprit, 1);
		CHECK(strstr(text, "rank 1") && strstr(text, "EFAULT"));
		CHECK_EQ(sum_is_right(comm, buf, 4, k), 0);
		CHECK_EQ(sum_is_right(comm, buf, LARGE, k), 0);
	}
	/* Among others in flight, which complete. */
	for (int i = 0; i < 3; i++)
		CHECK_EQ(swingcoll_iallreduce(rank == 1 && i == 1 ? bad : buf, buf + i * 4096, 4096,
					      SWINGCOLL_U32, SWINGCOLL_MAX, comm, &req[i]),
			 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(swingcoll_wait(req[i], NULL), i != 1	   ? 0
						       : rank == 1 ? -EFAULT
								   : -ECANCELED);
	CHECK_EQ(sum_is_right(comm, buf, 4, 1), 0);
	return swingcoll_comm_destroy(comm) != 0;
}

int main(void)
{
	int with = 0, without = -1;

	ksft_print_header();
	testlib_require_device();
	ksft_set_plan(2);
	swingcoll_unique_id(&lib_id);
	ksft_test_result(!testlib_run_ranks(N, refused, &with),
			 "a rank's buffer is refused, io_uring");
	swingcoll_unique_id(&lib_id);
	ksft_test_result(!testlib_run_ranks(N, refused, &without),
			 "a rank's buffer is refused, ioctl");
	ksft_finished();
}
