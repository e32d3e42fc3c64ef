// SPDX-License-Identifier: GPL-2.0-only
/*
 * The completion ring: no more entries are reserved than there is room for, entries appear in the order in
 * which they were posted, and what the consumer writes to its page hurts only itself. Includes the file under
 * test under other names, to play the consumer on its private pages.
 */
#define swc_ring_create		t_ring_create
#define swc_ring_close		t_ring_close
#define swc_ring_drop_memory	t_ring_drop_memory
#define swc_ring_destroy	t_ring_destroy
#define swc_ring_reserve	t_ring_reserve
#define swc_ring_unreserve	t_ring_unreserve
#define swc_ring_post		t_ring_post
#define swc_ring_wait		t_ring_wait
#define swc_ring_poll		t_ring_poll
#define swc_ring_mmap		t_ring_mmap
#include "mem/completion_ring.c"

#include "kunit/harness.h"

static const struct swc_completion *entry_at(struct swc_ring *ring, u32 i)
{
	const struct swc_completion *entries = (void *)ring->shared + SWC_RING_ENTRIES_OFFSET;

	return &entries[i & (ring->entries - 1)];
}

static void post(struct swc_ring *ring, u64 number)
{
	struct swc_completion e = { .user_data = number, .seq = ~number };

	t_ring_post(ring, &e);
}

static void ring_order(struct kunit *test)
{
	struct swc_ring *ring = t_ring_create(8, NULL);
	u32 head = 0, i;
	u64 next = 0;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ring);
	KUNIT_EXPECT_EQ(test, ring->shared->entries, 8);
	for (i = 0; i < 100; i++) {
		u32 burst = 1 + i % 8, k;

		for (k = 0; k < burst; k++)
			KUNIT_EXPECT_EQ(test, t_ring_reserve(ring), 0);
		KUNIT_EXPECT_EQ(test, t_ring_reserve(ring), burst == 8 ? -EBUSY : 0);
		if (burst < 8)
			t_ring_unreserve(ring);
		for (k = 0; k < burst; k++)
			post(ring, next + k);
		KUNIT_EXPECT_EQ(test, ring->shared->tail, head + burst);
		for (k = 0; k < burst; k++, head++, next++) {
			KUNIT_EXPECT_EQ(test, entry_at(ring, head)->user_data, next);
			KUNIT_EXPECT_EQ(test, entry_at(ring, head)->seq, ~next);
		}
		ring->user->head = head;
	}
	KUNIT_EXPECT_EQ(test, ring->reserved, 0);
	t_ring_destroy(ring);
}

/* Unread and reserved entries count together. */
static void ring_full(struct kunit *test)
{
	struct swc_ring *ring = t_ring_create(8, NULL);
	u32 i;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ring);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, t_ring_reserve(ring), 0);
	for (i = 0; i < 5; i++)
		post(ring, i);
	KUNIT_EXPECT_EQ(test, t_ring_reserve(ring), -EBUSY);
	ring->user->head = 2;
	KUNIT_EXPECT_EQ(test, t_ring_reserve(ring), 0);
	KUNIT_EXPECT_EQ(test, t_ring_reserve(ring), 0);
	KUNIT_EXPECT_EQ(test, t_ring_reserve(ring), -EBUSY);
	t_ring_unreserve(ring);
	KUNIT_EXPECT_EQ(test, t_ring_reserve(ring), 0);
	t_ring_destroy(ring);
}

/* Indices wrap at 2^32. */
static void ring_wrap(struct kunit *test)
{
	struct swc_ring *ring = t_ring_create(8, NULL);
	u32 i;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ring);
	ring->tail = 0xfffffffa;
	ring->user->head = 0xfffffffa;
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, t_ring_reserve(ring), 0);
	KUNIT_EXPECT_EQ(test, t_ring_reserve(ring), -EBUSY);
	for (i = 0; i < 8; i++)
		post(ring, i);
	KUNIT_EXPECT_EQ(test, ring->shared->tail, 2);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, entry_at(ring, 0xfffffffa + i)->user_data, i);
	ring->user->head = 1;
	KUNIT_EXPECT_EQ(test, t_ring_reserve(ring), 0);
	t_ring_destroy(ring);
}

/* The consumer writes any head: the kernel's tail and bounds hold. */
static void ring_garbage(struct kunit *test)
{
	static const u32 heads[] = { 1, 7, 8, 9, 1000, 0x7fffffff, 0x80000000, 0xffffffff };
	struct swc_ring *ring = t_ring_create(8, NULL);
	u32 i, k, reserved = 0;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ring);
	for (i = 0; i < ARRAY_SIZE(heads); i++) {
		u32 tail = ring->tail;

		ring->user->head = heads[i];
		/* A consumer cannot write these; the kernel must not read them either. */
		ring->shared->tail = 12345;
		ring->shared->entries = 1 << 20;
		for (k = 0; k < 20; k++) {
			if (!t_ring_reserve(ring))
				reserved++;
			KUNIT_EXPECT_LE(test, ring->reserved, 8);
		}
		for (; reserved; reserved--)
			post(ring, 0);
		KUNIT_EXPECT_EQ(test, ring->reserved, 0);
		KUNIT_EXPECT_LE(test, ring->tail - tail, 8);
		/* A ring whose head is ahead of its tail is full. */
		if ((s32)(heads[i] - tail) > 0)
			KUNIT_EXPECT_EQ(test, ring->tail, tail);
	}
	ring->user->head = ring->tail;
	KUNIT_EXPECT_EQ(test, t_ring_reserve(ring), 0);
	t_ring_destroy(ring);
}

static void ring_wait(struct kunit *test)
{
	struct swc_ring *ring = t_ring_create(8, NULL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ring);
	KUNIT_EXPECT_EQ(test, t_ring_wait(ring, 0, 20), -ETIME);
	KUNIT_EXPECT_EQ(test, t_ring_wait(ring, 5, 20), 0);
	KUNIT_EXPECT_EQ(test, t_ring_reserve(ring), 0);
	post(ring, 1);
	KUNIT_EXPECT_EQ(test, t_ring_wait(ring, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, t_ring_wait(ring, 1, 20), -ETIME);
	t_ring_destroy(ring);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(ring_order),
	KUNIT_CASE(ring_full),
	KUNIT_CASE(ring_wrap),
	KUNIT_CASE(ring_garbage),
	KUNIT_CASE(ring_wait),
	{}
};

struct kunit_suite swc_completion_ring_suite = { .name = "swc_completion_ring", .test_cases = cases };
