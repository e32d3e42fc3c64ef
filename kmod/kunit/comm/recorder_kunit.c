// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring of the flight recorder: it keeps the last records, in order; a reader beside writers gets whole
 * records or none; and the recordings of ended communicators are bounded.
 */
#include <linux/completion.h>
#include <linux/cred.h>
#include <linux/kthread.h>

#include "comm/recorder.h"
#include "kunit/harness.h"

/* A small ring; the module's parameter is changed for it. */
static struct swc_recorder *make(struct kunit *test, u32 records)
{
	u32 before = swc_trace_records;
	struct swc_recorder *recorder;

	swc_trace_records = records;
	recorder = swc_recorder_create(current_euid(), 4);
	swc_trace_records = before;
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(recorder));
	return recorder;
}

/* A record from which each field can be told. */
static void write_nth(struct swc_recorder *recorder, u64 n)
{
	swc_record_at(recorder, n, SWC_TRACE_STEP, n & 0xfff, n & 0x3f, ~n, n * 3);
}

static bool is_whole(const struct swc_trace_record *r)
{
	u64 n = r->ns;

	return r->seq == ~n && r->arg == n * 3 && r->rank == (n & 0xfff) && r->channel == (n & 0x3f) &&
	       r->type == SWC_TRACE_STEP;
}

static void recorder_wrap(struct kunit *test)
{
	struct swc_recorder *recorder = make(test, 64);
	struct swc_trace_record r;
	u64 n, k;

	KUNIT_EXPECT_FALSE(test, swc_recorder_read(recorder, 0, &r));
	for (n = 0; n < 1000; n++) {
		write_nth(recorder, n);
		KUNIT_EXPECT_EQ(test, atomic64_read(&recorder->written), n + 1);
		KUNIT_EXPECT_FALSE(test, swc_recorder_read(recorder, n + 1, &r));
		for (k = n < 64 ? 0 : n - 64; k <= n; k++) {
			KUNIT_EXPECT_EQ(test, swc_recorder_read(recorder, k, &r), k + 64 > n);
			if (k + 64 > n)
				KUNIT_EXPECT_TRUE(test, r.ns == k && r.index == (u32)k && is_whole(&r));
		}
	}
	swc_recorder_put(recorder);
}

/* Indices in the ring have 32 bits. */
static void recorder_index_wrap(struct kunit *test)
{
	struct swc_recorder *recorder = make(test, 64);
	u64 n, first = (1ull << 32) - 40;
	struct swc_trace_record r;

	atomic64_set(&recorder->written, first);
	for (n = first; n < first + 80; n++)
		write_nth(recorder, n);
	for (n = first; n < first + 80; n++) {
		bool kept = n >= first + 16;

		KUNIT_EXPECT_EQ(test, swc_recorder_read(recorder, n, &r), kept);
		if (kept)
			KUNIT_EXPECT_TRUE(test, r.ns == n && is_whole(&r));
	}
	swc_recorder_put(recorder);
}

/* A place that is being written, and one whose old record a slow reader has seen. */
static void recorder_torn(struct kunit *test)
{
	struct swc_recorder *recorder = make(test, 64);
	struct swc_recorder_place *p = &recorder->place[5];
	struct swc_trace_record r;
	u64 n, word;

	for (n = 0; n < 64; n++)
		write_nth(recorder, n);
	word = p->word;
	/* As swc_record_at() marks it for record 69. */
	p->word = (u32)~70;
	KUNIT_EXPECT_FALSE(test, swc_recorder_read(recorder, 5, &r));
	KUNIT_EXPECT_FALSE(test, swc_recorder_read(recorder, 69, &r));
	p->word = word;
	KUNIT_EXPECT_TRUE(test, swc_recorder_read(recorder, 5, &r));
	swc_recorder_put(recorder);
}

/* A rank that does not exist; a recorder that does not either. */
static void recorder_no_rank(struct kunit *test)
{
	struct swc_recorder *recorder = make(test, 64);
	struct swc_trace_record r;

	swc_record(recorder, SWC_TRACE_ABORT, -1, 7, (s64)-ETIMEDOUT);
	KUNIT_EXPECT_TRUE(test, swc_recorder_read(recorder, 0, &r));
	KUNIT_EXPECT_EQ(test, r.rank, SWC_TRACE_NO_RANK);
	KUNIT_EXPECT_EQ(test, r.type, SWC_TRACE_ABORT);
	KUNIT_EXPECT_EQ(test, (s32)r.arg, -ETIMEDOUT);
	swc_record(NULL, SWC_TRACE_ABORT, -1, 7, 0);
	swc_recorder_put(recorder);
}

struct writer {
	struct swc_recorder *recorder;
	struct completion started;
	u64 n;
};

static int write_many(void *arg)
{
	struct writer *w = arg;

	complete(&w->started);
	while (!kthread_should_stop()) {
		write_nth(w->recorder, w->n++);
		if (!(w->n & 0xff))
			cond_resched();
	}
	return 0;
}

/* A reader beside two writers: under UML they take turns, elsewhere they race. */
static void recorder_beside_writers(struct kunit *test)
{
	struct swc_recorder *recorder = make(test, 64);
	struct task_struct *thread[2];
	struct writer writer[2];
	struct swc_trace_record r;
	u64 n, read = 0;
	u32 i, rounds;

	for (i = 0; i < 2; i++) {
		writer[i] = (struct writer){ .recorder = recorder, .n = i * 1000003ull };
		init_completion(&writer[i].started);
		thread[i] = kthread_run(write_many, &writer[i], "swc-writer");
		KUNIT_ASSERT_FALSE(test, IS_ERR(thread[i]));
		wait_for_completion(&writer[i].started);
	}
	for (rounds = 0; rounds < 2000 || !read; rounds++) {
		u64 written = atomic64_read(&recorder->written);

		for (n = written < 64 ? 0 : written - 64; n < written; n++) {
			if (!swc_recorder_read(recorder, n, &r))
				continue;
			read++;
			if (!is_whole(&r) || r.index != (u32)n)
				KUNIT_FAIL(test, "record %llu is not whole", n);
		}
		cond_resched();
	}
	for (i = 0; i < 2; i++)
		kthread_stop(thread[i]);
	swc_recorder_put(recorder);
}

/* Numbers that no communicator has. */
#define FAR	(1ull << 60)

static u32 count_far(void)
{
	struct swc_recorder *recorder;
	u64 number = FAR;
	u32 n = 0;

	while ((recorder = swc_recorder_from(number))) {
		number = recorder->number + 1;
		swc_recorder_put(recorder);
		n++;
	}
	return n;
}

/* Communicators that end; those that ended last are kept. */
static void recorder_kept(struct kunit *test)
{
	u32 keep = swc_trace_keep, keep_user = swc_trace_keep_user, keep_s = swc_trace_keep_s;
	struct swc_recorder *recorder[8], *found;
	u32 i;

	swc_trace_keep = 5;
	swc_trace_keep_user = 4;
	for (i = 0; i < 8; i++) {
		recorder[i] = make(test, 64);
		swc_recorder_add(recorder[i], FAR + i);
	}
	KUNIT_EXPECT_EQ(test, count_far(), 8);
	KUNIT_EXPECT_EQ(test, swc_recorder_ended_ns(recorder[0]), 0);
	/* A reader keeps what it reads. */
	found = swc_recorder_from(FAR);
	KUNIT_EXPECT_PTR_EQ(test, found, recorder[0]);
	for (i = 0; i < 8; i++) {
		swc_recorder_fail(recorder[i], true, -ETIMEDOUT, i, "late");
		swc_recorder_fail(recorder[i], true, -EIO, 0, "later");
		swc_recorder_end(recorder[i]);
	}
	KUNIT_EXPECT_EQ(test, count_far(), 4);
	KUNIT_EXPECT_NE(test, swc_recorder_ended_ns(found), 0);
	KUNIT_EXPECT_EQ(test, found->error, -ETIMEDOUT);
	KUNIT_EXPECT_STREQ(test, found->text, "late");
	swc_recorder_put(found);
	found = swc_recorder_from(FAR);
	KUNIT_EXPECT_EQ(test, found->number, FAR + 4);
	swc_recorder_put(found);
	swc_trace_keep = 1;
	KUNIT_EXPECT_EQ(test, count_far(), 1);
	swc_trace_keep_s = 0;
	KUNIT_EXPECT_EQ(test, count_far(), 0);
	swc_trace_keep = keep;
	swc_trace_keep_user = keep_user;
	swc_trace_keep_s = keep_s;
}

static struct kunit_case cases[] = {
	KUNIT_CASE(recorder_wrap),
	KUNIT_CASE(recorder_index_wrap),
	KUNIT_CASE(recorder_torn),
	KUNIT_CASE(recorder_no_rank),
	KUNIT_CASE(recorder_beside_writers),
	KUNIT_CASE(recorder_kept),
	{}
};

struct kunit_suite swc_recorder_suite = {
	.name = "swc_recorder",
	.test_cases = cases,
};
