// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of descriptors and of partitioned operations: each field out of range is refused, and nothing but
 * what the enums name is accepted.
 */
#include <linux/sched.h>

#include "core/desc_check.h"
#include "core/plan_check.h"
#include "kunit/harness.h"

static const struct swc_desc good_desc = {
	.comm = 1, .plan = 1, .send = 0x10000, .recv = 0x20000, .count = 5, .coll = SWC_ALLREDUCE,
	.dtype = SWC_F32, .redop = SWC_SUM, .flags = SWC_OP_FLAGS_ALL,
};

#define EXPECT_DESC(result, ...) do {							\
	struct swc_desc d = good_desc;							\
											\
	__VA_ARGS__;									\
	KUNIT_EXPECT_EQ_MSG(test, swc_desc_check(&d, 4), result, #__VA_ARGS__);		\
} while (0)

static void desc_fields(struct kunit *test)
{
	EXPECT_DESC(0, (void)d);
	EXPECT_DESC(-EINVAL, d.resv0 = 1);
	EXPECT_DESC(-EINVAL, d.resv1 = 1);
	EXPECT_DESC(-EINVAL, d.resv1 = 1ull << 63);
	EXPECT_DESC(-EINVAL, d.counts = 8);
	EXPECT_DESC(-EINVAL, d.coll = SWC_GATHER; d.counts = 8);
	EXPECT_DESC(0, d.coll = SWC_GATHER; d.counts = 8; d.count = 0);
	EXPECT_DESC(0, d.coll = SWC_SCATTER; d.counts = 8; d.count = 0);
	EXPECT_DESC(-EINVAL, d.coll = SWC_ALLGATHER; d.counts = 8; d.count = 0);
	EXPECT_DESC(-EINVAL, d.flags = 4);
	EXPECT_DESC(-EINVAL, d.flags = 1u << 31);
	EXPECT_DESC(-EINVAL, d.coll = SWC_COLL_NR);
	EXPECT_DESC(-EINVAL, d.coll = 255);
	EXPECT_DESC(-EINVAL, d.dtype = SWC_DTYPE_NR);
	EXPECT_DESC(-EINVAL, d.dtype = 255);
	EXPECT_DESC(-EINVAL, d.redop = SWC_REDOP_NR);
	EXPECT_DESC(-EINVAL, d.redop = 255);
	EXPECT_DESC(-EOPNOTSUPP, d.redop = SWC_BXOR);
	EXPECT_DESC(-EINVAL, d.root = 1);
	EXPECT_DESC(0, d.coll = SWC_REDUCE; d.root = 3);
	EXPECT_DESC(-EINVAL, d.coll = SWC_REDUCE; d.root = 4);
	EXPECT_DESC(-EINVAL, d.coll = SWC_REDUCE; d.root = 0xffffffff);
	EXPECT_DESC(0, d.coll = SWC_GATHER; d.root = 3);
	EXPECT_DESC(-EINVAL, d.coll = SWC_GATHER; d.root = 4);
	EXPECT_DESC(0, d.coll = SWC_SCATTER; d.root = 3);
	EXPECT_DESC(-EINVAL, d.coll = SWC_SCATTER; d.redop = SWC_MAX);
	EXPECT_DESC(0, d.coll = SWC_ALLGATHER);
	EXPECT_DESC(-EINVAL, d.coll = SWC_ALLGATHER; d.redop = SWC_MAX);
	EXPECT_DESC(-EINVAL, d.coll = SWC_BARRIER);
	EXPECT_DESC(0, memset(&d, 0, sizeof(d)); d.coll = SWC_BARRIER);
	EXPECT_DESC(-EINVAL, memset(&d, 0, sizeof(d)); d.coll = SWC_BARRIER; d.recv_region = 1);
	EXPECT_DESC(-EINVAL, d.send += 2);
	EXPECT_DESC(-EINVAL, d.recv += 1);
	EXPECT_DESC(0, d.dtype = SWC_U8; d.recv += 1);
}

/* Nothing but what the enums name is ever accepted. */
static void desc_exhaustive(struct kunit *test)
{
	struct swc_desc d = good_desc;
	u32 coll, dtype, redop;

	for (coll = 0; coll < 256; coll++) {
		for (dtype = 0; dtype < 256; dtype++) {
			for (redop = 0; redop < 256; redop++) {
				d.coll = coll;
				d.dtype = dtype;
				d.redop = redop;
				if (swc_desc_check(&d, 4))
					continue;
				KUNIT_EXPECT_LT(test, coll, (u32)SWC_COLL_NR);
				KUNIT_EXPECT_LT(test, dtype, (u32)SWC_DTYPE_NR);
				if (swc_coll_reduces(coll))
					KUNIT_EXPECT_NOT_NULL(test, swc_reduce_get(dtype, redop));
				else
					KUNIT_EXPECT_EQ(test, redop, 0);
			}
		}
		cond_resched();
	}
}

static const struct swc_partitioned_init good_init = {
	.desc = {
		.comm = 1, .plan = 1, .send = 0x10000, .recv = 0x20000, .count = 5, .coll = SWC_ALLREDUCE,
		.dtype = SWC_F32, .redop = SWC_SUM,
	},
	.partitions = 9, .send_stride = 20, .recv_stride = 40,
};

#define EXPECT_INIT(result, ...) do {							\
	struct swc_partitioned_init p = good_init;					\
											\
	__VA_ARGS__;									\
	KUNIT_EXPECT_EQ_MSG(test, swc_partitioned_check(&p, 4), result, #__VA_ARGS__);	\
} while (0)

static void desc_partitioned(struct kunit *test)
{
	EXPECT_INIT(0, (void)p);
	EXPECT_INIT(-EINVAL, p.resv[0] = 1);
	EXPECT_INIT(-EINVAL, p.resv[1] = 1);
	EXPECT_INIT(-EINVAL, p.handle = 1);
	EXPECT_INIT(-EINVAL, p.map_bytes = 1);
	EXPECT_INIT(-EINVAL, p.desc.flags = SWC_OP_RING);
	EXPECT_INIT(-EINVAL, p.desc = (struct swc_desc){ .coll = SWC_GATHER, .counts = 8 });
	EXPECT_INIT(-EINVAL, p.desc.coll = SWC_COLL_NR);
	EXPECT_INIT(-EOPNOTSUPP, p.desc.redop = SWC_BXOR);
	EXPECT_INIT(-EINVAL, p.partitions = 0);
	EXPECT_INIT(0, p.partitions = 1);
	EXPECT_INIT(0, p.partitions = SWC_MAX_PARTITIONS);
	EXPECT_INIT(-EINVAL, p.partitions = SWC_MAX_PARTITIONS + 1);
	/* All in the same place; up to the end of the address space, and beyond. */
	EXPECT_INIT(0, p.send_stride = 0; p.recv_stride = 0);
	EXPECT_INIT(0, p.send_stride = (U64_MAX - 0x10000) / 8);
	EXPECT_INIT(-EINVAL, p.send_stride = (U64_MAX - 0x10000) / 8 + 1);
	EXPECT_INIT(-EINVAL, p.send_stride = U64_MAX / 4);
	EXPECT_INIT(0, p.recv_stride = (U64_MAX - 0x20000) / 8);
	EXPECT_INIT(-EINVAL, p.recv_stride = (U64_MAX - 0x20000) / 8 + 1);
	EXPECT_INIT(-EINVAL, p.recv_stride = U64_MAX / 4);
	EXPECT_INIT(0, p.partitions = 1; p.send_stride = U64_MAX);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(desc_fields),
	KUNIT_CASE(desc_partitioned),
	KUNIT_CASE_SLOW(desc_exhaustive),
	{}
};

struct kunit_suite swc_desc_check_suite = { .name = "swc_desc_check", .test_cases = cases };
