// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies of segments: their contents, and the limits of communicators and users.
 */
#include <linux/sizes.h>

#include "kunit/harness.h"
#include "mem/account.h"
#include "net/seg_copy.h"

#define PAYLOAD_MAX	SZ_64K

static u8 *new_payload(struct kunit *test)
{
	u8 *payload = kunit_kzalloc(test, PAYLOAD_MAX, GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, payload);
	for (i = 0; i < PAYLOAD_MAX; i++)
		payload[i] = i * 7 + (i >> 8);
	return payload;
}

/* Do the extents of the segment hold the payload, and no more? */
static bool is_copy(const struct swc_net_seg *seg, const u8 *payload, u32 bytes)
{
	const struct swc_extents *extents = seg->span.extents;
	const struct swc_extent *e = extents->extent, *end = e + extents->nextents;
	u32 at = 0;

	for (; e < end; e++) {
		u32 len = e[1].offset - e->offset;

		if (e->offset != at || memcmp(e->kaddr, payload + at, len))
			return false;
		at += len;
	}
	return at == bytes && !seg->span.offset;
}

static void seg_copy_contents(struct kunit *test)
{
	static const u32 sizes[] = {
		0, 1, PAGE_SIZE / 4, PAGE_SIZE / 4 + 1, PAGE_SIZE, PAGE_SIZE + 1,
		3 * PAGE_SIZE + 5, PAYLOAD_MAX,
	};
	struct swc_net_seg *copy[ARRAY_SIZE(sizes)];
	u8 *payload = new_payload(test), *arrived = new_payload(test);
	struct swc_account user = {};
	struct swc_seg_copy_usage usage = { .account = &user };
	u32 i, total = 0;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct swc_net_seg seg = { .src = i, .dst = i + 1, .channel = 3 };

		seg.msg.bytes = sizes[i];
		seg.msg.seq = 1000 + i;
		seg.msg.payload = arrived;
		copy[i] = swc_seg_copy(&seg, &usage);
		KUNIT_ASSERT_NOT_NULL(test, copy[i]);
		KUNIT_EXPECT_TRUE(test, copy[i]->unexpected);
		KUNIT_EXPECT_NULL(test, copy[i]->msg.payload);
		KUNIT_EXPECT_EQ(test, copy[i]->src, i);
		KUNIT_EXPECT_EQ(test, copy[i]->dst, i + 1);
		KUNIT_EXPECT_EQ(test, copy[i]->channel, 3);
		KUNIT_EXPECT_EQ(test, copy[i]->msg.seq, 1000ull + i);
		total += sizes[i];
		KUNIT_EXPECT_GE(test, atomic_long_read(&usage.bytes), (long)total);
	}
	/* The receive buffer is used again. */
	memset(arrived, 0xff, PAYLOAD_MAX);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		KUNIT_EXPECT_TRUE(test, is_copy(copy[i], payload, sizes[i]));
		swc_seg_copy_free(copy[i], &usage);
	}
	KUNIT_EXPECT_EQ(test, atomic_long_read(&usage.bytes), 0);
}

/* Copies as many as there may be. */
static u32 copy_all(struct swc_net_seg *seg, struct swc_seg_copy_usage *usage, struct list_head *copies)
{
	struct swc_net_seg *copy;
	u32 n = 0;

	while ((copy = swc_seg_copy(seg, usage))) {
		list_add(&copy->node, copies);
		n++;
	}
	return n;
}

static void free_all(struct kunit *test, struct swc_seg_copy_usage *usage, struct list_head *copies,
		     const u8 *payload)
{
	struct swc_net_seg *copy;

	while ((copy = list_first_entry_or_null(copies, struct swc_net_seg, node))) {
		list_del(&copy->node);
		KUNIT_EXPECT_TRUE(test, is_copy(copy, payload, PAYLOAD_MAX));
		swc_seg_copy_free(copy, usage);
	}
	KUNIT_EXPECT_EQ(test, atomic_long_read(&usage->bytes), 0);
}

/*
 * A communicator at its limit gets no copy more, until one is freed; another one does, and a third one of the
 * user's does not, but another user's does.
 */
static void seg_copy_limit(struct kunit *test)
{
	struct swc_account user = {}, another = {};
	struct swc_seg_copy_usage full = { .account = &user }, second = full, third = full;
	struct swc_seg_copy_usage other = { .account = &another };
	struct swc_net_seg seg = {}, *copy;
	u8 *payload = new_payload(test);
	LIST_HEAD(seconds);
	LIST_HEAD(thirds);
	LIST_HEAD(copies);
	u32 n;
	long used;

	seg.msg.bytes = PAYLOAD_MAX;
	seg.msg.payload = payload;
	n = copy_all(&seg, &full, &copies);
	KUNIT_ASSERT_GT(test, n, 100);
	used = atomic_long_read(&full.bytes);
	KUNIT_EXPECT_LT(test, used, (long)(totalram_pages() / 4 << PAGE_SHIFT));
	KUNIT_EXPECT_NULL(test, swc_seg_copy(&seg, &full));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&full.bytes), used);

	KUNIT_EXPECT_EQ(test, copy_all(&seg, &second, &seconds), n);
	/* What two communicators leave of their halves may be enough for one. */
	KUNIT_EXPECT_LE(test, copy_all(&seg, &third, &thirds), 1);
	copy = swc_seg_copy(&seg, &other);
	KUNIT_EXPECT_NOT_NULL(test, copy);
	if (copy)
		swc_seg_copy_free(copy, &other);

	copy = list_first_entry(&copies, struct swc_net_seg, node);
	list_del(&copy->node);
	swc_seg_copy_free(copy, &full);
	copy = swc_seg_copy(&seg, &full);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	list_add(&copy->node, &copies);

	free_all(test, &full, &copies, payload);
	free_all(test, &second, &seconds, payload);
	free_all(test, &third, &thirds, payload);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&user.copied), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&other.bytes), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&another.copied), 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(seg_copy_contents),
	KUNIT_CASE(seg_copy_limit),
	{}
};

struct kunit_suite swc_seg_copy_suite = { .name = "swc_seg_copy", .test_cases = cases };
