// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounts: one for each user while anybody has it, limits to the unit, and no charge lost or granted twice
 * when several CPUs charge at once.
 */
#include <linux/kthread.h>
#include <linux/uidgid.h>

#include "kunit/harness.h"
#include "mem/account.h"

#define UID		4711
#define THREADS		4
#define ROUNDS		20000

static void account_life(struct kunit *test)
{
	struct swc_account *a = swc_account_get(KUIDT_INIT(UID)), *b = swc_account_get(KUIDT_INIT(UID + 1));

	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_ASSERT_NOT_NULL(test, b);
	KUNIT_EXPECT_PTR_NE(test, a, b);
	KUNIT_EXPECT_PTR_EQ(test, a, swc_account_get(KUIDT_INIT(UID)));
	KUNIT_EXPECT_PTR_EQ(test, a, swc_account_hold(a));
	KUNIT_EXPECT_EQ(test, swc_account_charge(a, SWC_QUOTA_COMMS, 1), 0);
	swc_account_put(a);
	swc_account_put(a);
	KUNIT_EXPECT_EQ(test, atomic64_read(&a->used[SWC_QUOTA_COMMS]), 1);
	KUNIT_EXPECT_EQ(test, atomic64_read(&b->used[SWC_QUOTA_COMMS]), 0);
	swc_account_uncharge(a, SWC_QUOTA_COMMS, 1);
	swc_account_put(a);
	swc_account_put(b);
	/* A new one knows nothing of the old one. */
	a = swc_account_get(KUIDT_INIT(UID));
	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_EXPECT_EQ(test, atomic64_read(&a->most[SWC_QUOTA_COMMS]), 0);
	swc_account_put(a);
	swc_account_put(NULL);
	KUNIT_EXPECT_EQ(test, swc_account_charge(NULL, SWC_QUOTA_COMMS, U64_MAX), 0);
	swc_account_uncharge(NULL, SWC_QUOTA_COMMS, U64_MAX);
}

static void account_limits(struct kunit *test)
{
	u64 limit = swc_user_limit[SWC_QUOTA_CONNS];
	struct swc_account *a = swc_account_get(KUIDT_INIT(UID));
	char text[SWC_TEXT_BYTES];

	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_EXPECT_EQ(test, swc_account_charge(a, SWC_QUOTA_CONNS, limit + 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, swc_account_charge(a, SWC_QUOTA_CONNS, U64_MAX), -EDQUOT);
	KUNIT_EXPECT_EQ(test, swc_account_charge(a, SWC_QUOTA_CONNS, limit - 1), 0);
	KUNIT_EXPECT_EQ(test, swc_account_charge(a, SWC_QUOTA_CONNS, 2), -EDQUOT);
	KUNIT_EXPECT_EQ(test, swc_account_charge(a, SWC_QUOTA_CONNS, 1), 0);
	KUNIT_EXPECT_EQ(test, swc_account_charge(a, SWC_QUOTA_CONNS, 1), -EDQUOT);
	/* This is no refusal: the caller tries again. */
	KUNIT_EXPECT_FALSE(test, swc_account_try_charge(a, SWC_QUOTA_CONNS, 1));
	KUNIT_EXPECT_FALSE(test, swc_account_try_charge(a, SWC_QUOTA_CONNS, U64_MAX));
	KUNIT_EXPECT_EQ(test, swc_account_check(a, SWC_QUOTA_CONNS, limit), 0);
	KUNIT_EXPECT_EQ(test, swc_account_check(a, SWC_QUOTA_CONNS, limit + 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, atomic64_read(&a->used[SWC_QUOTA_CONNS]), limit);
	KUNIT_EXPECT_EQ(test, atomic64_read(&a->most[SWC_QUOTA_CONNS]), limit);
	KUNIT_EXPECT_EQ(test, atomic64_read(&a->refused[SWC_QUOTA_CONNS]), 5);
	swc_account_explain(a, text, sizeof(text));
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "uid 4711"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "user_conns"));
	swc_account_uncharge(a, SWC_QUOTA_CONNS, limit);
	swc_account_put(a);
}

struct racer {
	struct task_struct *task;
	struct swc_account *account;
	struct completion done;
	u32 granted;
};

/* At most THREADS / 2 of the threads can have one at a time. */
static int race(void *arg)
{
	struct racer *r = arg;
	u64 most = swc_user_limit[SWC_QUOTA_COMMS] / (THREADS / 2);
	u32 i;

	for (i = 0; i < ROUNDS; i++) {
		if (swc_account_charge(r->account, SWC_QUOTA_COMMS, most))
			continue;
		r->granted++;
		if (i % 16 == 0)
			cond_resched();
		swc_account_uncharge(r->account, SWC_QUOTA_COMMS, most);
	}
	complete(&r->done);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static void account_race(struct kunit *test)
{
	struct swc_account *a = swc_account_get(KUIDT_INIT(UID));
	struct racer r[THREADS] = {};
	u64 granted = 0;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, a);
	for (i = 0; i < THREADS; i++) {
		r[i].account = a;
		init_completion(&r[i].done);
		r[i].task = kthread_run(race, &r[i], "swc_account_race");
		KUNIT_ASSERT_FALSE(test, IS_ERR(r[i].task));
	}
	for (i = 0; i < THREADS; i++) {
		/* A thread that is stopped before it has begun never runs. */
		wait_for_completion(&r[i].done);
		kthread_stop(r[i].task);
		granted += r[i].granted;
	}
	KUNIT_EXPECT_EQ(test, granted + atomic64_read(&a->refused[SWC_QUOTA_COMMS]), THREADS * ROUNDS);
	KUNIT_EXPECT_EQ(test, atomic64_read(&a->used[SWC_QUOTA_COMMS]), 0);
	KUNIT_EXPECT_LE(test, atomic64_read(&a->most[SWC_QUOTA_COMMS]), swc_user_limit[SWC_QUOTA_COMMS]);
	swc_account_put(a);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(account_life),
	KUNIT_CASE(account_limits),
	KUNIT_CASE(account_race),
	{}
};

struct kunit_suite swc_account_suite = { .name = "swc_account", .test_cases = cases };
