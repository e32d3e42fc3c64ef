// SPDX-License-Identifier: GPL-2.0-only
/* Descriptors: every field out of range, by ioctl and by io_uring, and no resource is lost by a refusal. */
#include <errno.h>
#include <sys/mman.h>

#include "testlib.h"

static struct testlib_rank r;
static uint32_t buf[2][4096];
static struct io_uring ring;
static uint32_t region, barrier_plan, bcast_plan, gather_plan;

static struct swc_desc good(void)
{
	return testlib_allreduce_desc(&r, buf[0], buf[1], 1000, SWC_U32);
}

/* By ioctl and by io_uring. */
static int try(const struct swc_desc *d, int want)
{
	CHECK_EQ(testlib_submit_wait(&r.c, d, NULL), want);
	CHECK(testlib_uring_prep(&ring, r.c.fd, d, 1));
	CHECK_EQ(io_uring_submit(&ring), 1);
	CHECK_EQ(testlib_uring_wait(&ring, NULL, NULL, TESTLIB_EVENT_MS), want);
	return 0;
}

#define TRY(want, ...)                                                                             \
	do {                                                                                       \
		struct swc_desc d = good();                                                        \
		__VA_ARGS__;                                                                       \
		if (try(&d, want)) {                                                               \
			ksft_print_msg("with %s\n", #__VA_ARGS__);                                 \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static int reserved(void)
{
	TRY(0, (void)0);
	TRY(-EINVAL, d.resv0 = 1);
	TRY(-EINVAL, d.resv1 = 1);
	TRY(-EINVAL, d.resv1 = 1ull << 63);
	TRY(-EINVAL, d.counts = (uintptr_t)buf);
	for (int b = 2; b < 32; b++)
		TRY(-EINVAL, d.flags = 1u << b);
	TRY(0, d.flags = SWC_OP_WAITING);
	return 0;
}

static void gather(struct swc_desc *d, const uint64_t *counts, uint64_t count)
{
	*d = (struct swc_desc){ .comm = d->comm,
				.plan = gather_plan,
				.send = d->send,
				.recv = d->recv,
				.coll = SWC_GATHER,
				.dtype = SWC_U32,
				.counts = (uintptr_t)counts,
				.count = count };
}

/* The sizes of shards. */
static int counts(void)
{
	static const uint64_t few[] = { 10 }, many[] = { 1ull << 60 };

	memset(buf, 0, sizeof(buf));
	for (int i = 0; i < 20; i++)
		buf[0][i] = i + 1;
	TRY(0, gather(&d, few, 0));
	CHECK(buf[1][9] == 10 && !buf[1][10]);
	TRY(0, gather(&d, NULL, 20));
	CHECK(buf[1][19] == 20 && !buf[1][20]);
	TRY(-EINVAL, gather(&d, few, 10));
	TRY(-EINVAL, gather(&d, few, 0); d.coll = SWC_SCATTER);
	TRY(-EOVERFLOW, gather(&d, many, 0));
	TRY(-EFAULT, gather(&d, (void *)8, 0));
	TRY(-EFAULT, gather(&d, (void *)~7ull, 0));
	TRY(0, (void)0);
	return 0;
}

static int ranges(void)
{
	TRY(-ENOENT, d.comm = 0);
	TRY(-ENOENT, d.comm = ~0u);
	TRY(-ENOENT, d.plan = 0);
	TRY(-ENOENT, d.plan = 65536);
	TRY(-ENOENT, d.plan = ~0u);
	TRY(-EINVAL, d.coll = SWC_COLL_NR);
	TRY(-EINVAL, d.coll = 255);
	TRY(-EINVAL, d.coll = SWC_ALLTOALL);
	TRY(-EINVAL, d.coll = SWC_GATHER);
	TRY(-EINVAL, d.coll = SWC_SCATTER);
	TRY(-EINVAL, d.coll = SWC_REDUCE); /* the plan's is another */
	TRY(-EINVAL, d.dtype = SWC_DTYPE_NR);
	TRY(-EINVAL, d.dtype = 255);
	TRY(-EINVAL, d.redop = SWC_REDOP_NR);
	TRY(-EINVAL, d.redop = 255);
	TRY(-EINVAL, d.root = 1);
	TRY(-EINVAL, d.root = ~0u);
	TRY(-EINVAL, d.plan = bcast_plan; d.coll = SWC_BROADCAST; d.redop = 1);
	TRY(0, d.plan = bcast_plan; d.coll = SWC_BROADCAST; d.redop = 0);
	for (int t = SWC_F16; t <= SWC_F64; t++)
		for (int op = SWC_BAND; op <= SWC_BXOR; op++)
			TRY(-EOPNOTSUPP, d.dtype = t; d.redop = op; d.count = 10);
	return 0;
}

static int buffers(void)
{
	uint64_t bytes = 4000;
	char *p = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	munmap(p + 8192, 4096);
	TRY(-EFAULT, d.send = 0);
	TRY(-EFAULT, d.recv = 0);
	TRY(-EFAULT, d.send = 4096);
	TRY(-EFAULT, d.recv = 0xffff888000000000ull);
	TRY(-EFAULT, d.recv = 1ull << 47);
	TRY(-EFAULT, d.recv = ~7ull);
	TRY(-EINVAL, d.send += 1);
	TRY(-EINVAL, d.recv += 2);
	TRY(-EINVAL, d.send += 4; d.dtype = SWC_U64; d.count = 1);
	TRY(0, d.recv = (uintptr_t)p + 8192 - bytes);
	TRY(-EFAULT, d.recv = (uintptr_t)p + 8192 - bytes + 4);
	mprotect(p + 4096, 4096, PROT_READ);
	TRY(-EFAULT, d.recv = (uintptr_t)p + 8192 - bytes);
	munmap(p, 8192);
	/* Overlap: the same buffer, or none. */
	TRY(0, d.recv = d.send);
	TRY(-EINVAL, d.recv = d.send + 4);
	TRY(-EINVAL, d.recv = d.send + bytes - 4);
	TRY(0, d.recv = d.send + bytes);
	TRY(-EINVAL, d.recv = (uintptr_t)buf[1]; d.send = d.recv + bytes - 4);
	/* Sizes. */
	TRY(0, d.count = 0);
	TRY(0, d.count = 0; d.send = 0; d.recv = 0);
	TRY(-EFAULT, d.count = 1ull << 30);
	TRY(-EOVERFLOW, d.count = 1ull << 45);
	TRY(-EOVERFLOW, d.count = ~0ull);
	TRY(-EOVERFLOW, d.count = 1ull << 62);
	return 0;
}

static int regions(void)
{
	TRY(0, d.send_region = region; d.send = 0);
	TRY(0, d.send_region = region; d.send = sizeof(buf[0]) - 4000);
	TRY(-EFAULT, d.send_region = region; d.send = sizeof(buf[0]) - 3996);
	TRY(-EFAULT, d.send_region = region; d.send = sizeof(buf[0]));
	TRY(-EFAULT, d.send_region = region; d.send = ~0ull - 3999);
	TRY(-EFAULT, d.send_region = region; d.send = ~0ull & ~3ull);
	TRY(-EFAULT, d.send_region = region; d.send = 1ull << 63);
	TRY(-EINVAL, d.send_region = region; d.send = 2);
	TRY(-ENOENT, d.send_region = region + 1);
	TRY(-ENOENT, d.recv_region = ~0u);
	/* Overlap is found, too, if one buffer is given by region and the other by address. */
	TRY(0, d.send_region = region; d.send = 0; d.recv = (uintptr_t)buf[0]);
	TRY(-EINVAL, d.send_region = region; d.send = 4; d.recv = (uintptr_t)buf[0]);
	return 0;
}

static struct swc_desc barrier(void)
{
	return (struct swc_desc){ .comm = r.comm, .plan = barrier_plan, .coll = SWC_BARRIER };
}

#define BARRIER(want, ...)                                                                         \
	do {                                                                                       \
		struct swc_desc d = barrier();                                                     \
		__VA_ARGS__;                                                                       \
		if (try(&d, want)) {                                                               \
			ksft_print_msg("barrier with %s\n", #__VA_ARGS__);                         \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static int barriers(void)
{
	BARRIER(0, (void)0);
	BARRIER(-EINVAL, d.count = 1);
	BARRIER(-EINVAL, d.send = (uintptr_t)buf);
	BARRIER(-EINVAL, d.recv = (uintptr_t)buf);
	BARRIER(-EINVAL, d.send_region = region);
	BARRIER(-EINVAL, d.recv_region = region);
	BARRIER(-EINVAL, d.dtype = SWC_F32);
	BARRIER(-EINVAL, d.redop = SWC_MAX);
	BARRIER(-EINVAL, d.root = 1);
	return 0;
}

/* A plan may ask for any amount of scratch memory: it is limited as pinned memory is. */
static int big_scratch(void)
{
	struct testlib_plan p;
	struct swc_desc d = good();
	uint32_t plan;
	int ret;

	testlib_plan_scratch(&p);
	CHECK_EQ(testlib_plan_install(r.c.fd, r.comm, &p, &plan), 0);
	d.plan = plan;
	d.send = 0;
	d.recv = 0;
	d.count = 1ull << 43; /* 32 TiB */
	ret = testlib_submit_wait(&r.c, &d, NULL);
	CHECK(ret == -ENOMEM || ret == -EFBIG);
	d.count = 1ull << 38;
	ret = testlib_submit_wait(&r.c, &d, NULL);
	CHECK(ret == -ENOMEM || ret == -EFBIG);
	return 0;
}

/* After all refusals the completion ring still has all its entries, and operations work. */
static int nothing_lost(void)
{
	struct swc_desc d = barrier();
	uint32_t n = 0;
	int ret;

	/* -EAGAIN: too many in flight; they complete by themselves. */
	while (!(ret = testlib_submit(r.c.fd, &d)) || ret == -EAGAIN)
		n += !ret;
	CHECK_EQ(ret, -EBUSY);
	CHECK_EQ(n, r.c.ring->entries);
	while (n--)
		CHECK_EQ(testlib_ring_next(&r.c, &(struct swc_completion){ 0 }, TESTLIB_EVENT_MS),
			 0);
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 1000), 0);
	return 0;
}

int main(void)
{
	static const struct testlib_test test[] = {
		{ "reserved fields and unknown flags", reserved },
		{ "enumerations and handles out of range", ranges },
		{ "counts of shards", counts },
		{ "buffers: unmapped, misaligned, overlapping, too large", buffers },
		{ "buffers by region and offset", regions },
		{ "barriers take no buffers, counts or types", barriers },
		{ "scratch memory is limited", big_scratch },
		{ "refused operations cost no resources", nothing_lost },
	};
	struct swc_mem_reg reg = { .addr = (uintptr_t)buf[0], .bytes = sizeof(buf[0]) };
	uint8_t id[SWC_ID_BYTES];
	struct testlib_plan p;

	ksft_print_header();
	testlib_require_root();
	testlib_single_rank(&r, id);
	if (testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg) ||
	    testlib_uring_init(&ring, 8, TESTLIB_URING_BIG))
		ksft_exit_fail_msg("cannot set up\n");
	region = reg.region;
	testlib_plan_barrier(&p, 1, 0);
	if (testlib_plan_install(r.c.fd, r.comm, &p, &barrier_plan))
		ksft_exit_fail_msg("cannot load the barrier\n");
	testlib_plan_init(&p, SWC_BROADCAST, 1, 0, 0, 1);
	testlib_plan_channel(&p);
	testlib_plan_step(&p, SWC_STEP_LOCAL);
	testlib_plan_send(&p, 0, SWC_BUF_SEND, 0, 1);
	testlib_plan_recv(&p, 0, SWC_BUF_RECV, 0, 1, 0, SWC_XFER_FINAL);
	testlib_plan_pack(&p);
	if (testlib_plan_install(r.c.fd, r.comm, &p, &bcast_plan))
		ksft_exit_fail_msg("cannot load the broadcast\n");
	testlib_plan_init(&p, SWC_GATHER, 1, 0, 0, 1);
	testlib_plan_channel(&p);
	testlib_plan_step(&p, SWC_STEP_LOCAL);
	testlib_plan_send(&p, 0, SWC_BUF_SEND, 0, 1);
	testlib_plan_recv(&p, 0, SWC_BUF_RECV, 0, 1, 0, SWC_XFER_FINAL);
	testlib_plan_pack(&p);
	if (testlib_plan_install(r.c.fd, r.comm, &p, &gather_plan))
		ksft_exit_fail_msg("cannot load the gather\n");
	testlib_run_tests(test, ARRAY_SIZE(test));
	ksft_finished();
}
