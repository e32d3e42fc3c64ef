// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users: one for each user id while it has communicators, however many are made at the same time.
 */
#include <linux/completion.h>
#include <linux/uidgid.h>

#include "comm/user.h"
#include "kunit/harness.h"

#define UID		4711
#define RACERS		4
#define ROUNDS		8

struct racer {
	struct work_struct work;
	struct swc_user *user;
};

static void get(struct work_struct *work)
{
	struct racer *r = container_of(work, struct racer, work);

	r->user = swc_user_get(KUIDT_INIT(UID));
}

static void user_race(struct kunit *test)
{
	struct racer *r = kunit_kcalloc(test, RACERS, sizeof(*r), GFP_KERNEL);
	u32 round, i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	for (i = 0; i < RACERS; i++)
		INIT_WORK(&r[i].work, get);
	for (round = 0; round < ROUNDS; round++) {
		struct swc_user *other = swc_user_get(KUIDT_INIT(UID + 1));

		KUNIT_ASSERT_NOT_NULL(test, other);
		for (i = 0; i < RACERS; i++)
			queue_work(system_unbound_wq, &r[i].work);
		for (i = 0; i < RACERS; i++)
			flush_work(&r[i].work);
		KUNIT_ASSERT_NOT_NULL(test, r[0].user);
		KUNIT_EXPECT_PTR_NE(test, r[0].user, other);
		KUNIT_EXPECT_EQ(test, r[0].user->ncomms, (u32)RACERS);
		for (i = 0; i < RACERS; i++)
			KUNIT_EXPECT_PTR_EQ(test, r[i].user, r[0].user);
		for (i = 0; i < RACERS; i++)
			swc_user_put(r[i].user);
		swc_user_put(other);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(user_race),
	{}
};

struct kunit_suite swc_user_suite = { .name = "swc_user", .test_cases = cases };
