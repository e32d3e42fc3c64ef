// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sends by rank, compared with a search of the plan.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/prandom.h>

#include "core/plan_write.h"
#include "plan/send_index.h"
#include "kunit/harness.h"

#define RANKS	40
#define STEPS	8

/* A plan that only has transfers. */
struct plan {
	struct swc_plan_header hdr;
	struct swc_plan_step step[STEPS];
	struct swc_plan_xfer *xfers;
	struct swc_plan_view view;
	u32 *index;
	unsigned long *taken, *claimed;
};

static struct plan *plan_of(struct kunit *test, u32 nxfers)
{
	struct plan *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	p->xfers = kvcalloc(nxfers, sizeof(*p->xfers), GFP_KERNEL);
	p->taken = bitmap_zalloc(SWC_MAX_MESSAGES, GFP_KERNEL);
	p->claimed = bitmap_zalloc(SWC_MAX_MESSAGES, GFP_KERNEL);
	p->view = (struct swc_plan_view){ .hdr = &p->hdr, .steps = p->step, .xfers = p->xfers };
	KUNIT_ASSERT_TRUE(test, p->xfers && p->taken && p->claimed);
	return p;
}

static void add_step(struct plan *p, u8 kind, u32 nsend, u32 nrecv)
{
	p->step[p->hdr.nsteps++] = (struct swc_plan_step){ .kind = kind, .nsend = nsend, .nrecv = nrecv,
							   .first_xfer = p->hdr.nxfers };
	p->hdr.nxfers += nsend + nrecv;
}

static void make_index(struct kunit *test, struct plan *p)
{
	p->index = swc_send_index_create(&p->view);
	KUNIT_ASSERT_NOT_NULL(test, p->index);
}

static void free_plan(struct plan *p)
{
	kvfree(p->index);
	kvfree(p->xfers);
	bitmap_free(p->taken);
	bitmap_free(p->claimed);
}

/* The first send to @rank that is not claimed. */
static u32 search(const struct plan *p, const struct swc_plan_step *s, u32 rank)
{
	u32 i;

	for (i = 0; i < s->nsend; i++)
		if (p->xfers[s->first_xfer + i].rank == rank && !test_bit(i, p->claimed))
			return i;
	return SWC_NO_SEND;
}

/* Ranks come in any order, also more often than there is something for them. */
static void send_index_random(struct kunit *test)
{
	static const u32 most[] = { 1, 2, 7, 300 };
	struct rnd_state rnd;
	u32 i, k, round;

	prandom_seed_state(&rnd, 11);
	for (round = 0; round < 200; round++) {
		u32 max = most[round % ARRAY_SIZE(most)], first = round & 1 ? SWC_MAX_RANKS - RANKS : 0;
		struct plan *p = plan_of(test, STEPS * 2 * max);

		for (i = 0; i < STEPS; i++)
			add_step(p, i % 3 == 1 ? SWC_STEP_LOCAL : SWC_STEP_NET,
				 prandom_u32_state(&rnd) % (max + 1), prandom_u32_state(&rnd) % (max + 1));
		for (i = 0; i < p->hdr.nxfers; i++)
			p->xfers[i].rank = first + prandom_u32_state(&rnd) % RANKS;
		make_index(test, p);
		for (i = 0; i < STEPS; i++) {
			const struct swc_plan_step *s = &p->step[i];

			if (s->kind != SWC_STEP_NET)
				continue;
			bitmap_zero(p->taken, SWC_MAX_MESSAGES);
			bitmap_zero(p->claimed, SWC_MAX_MESSAGES);
			for (k = 0; k < 2 * max + 2 * RANKS; k++) {
				u32 rank = first + prandom_u32_state(&rnd) % RANKS;
				u32 expected = search(p, s, rank);

				KUNIT_ASSERT_EQ(test, swc_send_index_claim(p->index, s, rank, p->taken),
						expected);
				if (expected != SWC_NO_SEND)
					__set_bit(expected, p->claimed);
			}
		}
		free_plan(p);
	}
}

/* The largest step: all to one rank, or all but the last, which is to another. */
static void send_index_largest(struct kunit *test)
{
	struct plan *p = plan_of(test, SWC_MAX_MESSAGES);
	u32 i, last = SWC_MAX_MESSAGES - 1, most = SWC_MAX_RANKS - 1;

	add_step(p, SWC_STEP_NET, SWC_MAX_MESSAGES, 0);
	for (i = 0; i < last; i++)
		p->xfers[i].rank = most;
	p->xfers[last].rank = 3;
	make_index(test, p);
	KUNIT_EXPECT_EQ(test, swc_send_index_claim(p->index, p->step, 3, p->taken), last);
	KUNIT_EXPECT_EQ(test, swc_send_index_claim(p->index, p->step, 3, p->taken), SWC_NO_SEND);
	for (i = 0; i < last; i++)
		KUNIT_ASSERT_EQ(test, swc_send_index_claim(p->index, p->step, most, p->taken), i);
	KUNIT_EXPECT_EQ(test, swc_send_index_claim(p->index, p->step, most, p->taken), SWC_NO_SEND);
	free_plan(p);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(send_index_random),
	KUNIT_CASE(send_index_largest),
	{}
};

struct kunit_suite swc_send_index_suite = { .name = "swc_send_index", .test_cases = cases };
