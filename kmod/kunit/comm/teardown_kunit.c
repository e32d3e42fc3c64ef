// SPDX-License-Identifier: GPL-2.0-only
/*
 * Teardown of communicators: aborts and deaths at each tracepoint that an operation passes, leaving, and
 * creation that fails. Each request completes exactly once, all ranks get the same error, and everything is
 * freed (swc_t_comm_end() checks that).
 */
#include "comm/create.h"
#include "comm/error.h"
#include "trace.h"
#include "kunit/harness.h"

/* Abort, or let rank 1 die, at the @left-th event from now on. */
struct fault {
	struct swc_t_comm *c;
	bool die;
	int left;
};

static void fault(struct fault *s)
{
	if (--s->left)
		return;
	if (s->die)
		swc_comm_ctx_died(&s->c->rank[1].ctx, "was killed");
	else
		swc_comm_abort(swc_t_first_comm(s->c), -ECONNABORTED, 0, 0, "fault");
}

static void on_step(void *data, const struct swc_req *req, u32 channel, u32 step, u32 kind)
{
	fault(data);
}

static void on_match(void *data, const struct swc_op *op, u32 rank)
{
	fault(data);
}

static void on_start(void *data, const struct swc_op *op)
{
	fault(data);
}

static void on_complete(void *data, const struct swc_req *req)
{
	fault(data);
}

static int watch(struct fault *s)
{
	return register_trace_swc_step(on_step, s) ?: register_trace_swc_match(on_match, s) ?:
	       register_trace_swc_start(on_start, s) ?: register_trace_swc_complete(on_complete, s);
}

static void unwatch(struct fault *s)
{
	unregister_trace_swc_step(on_step, s);
	unregister_trace_swc_match(on_match, s);
	unregister_trace_swc_start(on_start, s);
	unregister_trace_swc_complete(on_complete, s);
	tracepoint_synchronize_unregister();
}

/* A fault at the first event, then at the second, ... until the operation ends before the fault. */
static void fail_everywhere(struct kunit *test, swc_t_planner planner, u32 nranks, bool die, bool inline_ok)
{
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	struct fault s = { .die = die };
	int error = die ? -ECONNRESET : -ECONNABORTED, event, failed = 0, passed = 0;
	u32 r;

	KUNIT_ASSERT_NOT_NULL(test, job);
	for (event = 1; event < 500; event++) {
		struct swc_t_comm *c = swc_t_comm(test, nranks, SWC_T_NO_DEADLINE);
		bool submitted[SWC_T_RANKS];
		int first = 1;

		swc_t_job_init(job, c, planner, 300, false);
		s.c = c;
		s.left = event;
		KUNIT_ASSERT_EQ(test, watch(&s), 0);
		for (r = 0; r < nranks; r++) {
			int ret = swc_t_job_submit(job, r, inline_ok);

			submitted[r] = !ret;
			if (ret)
				KUNIT_EXPECT_EQ(test, ret, -ECONNABORTED);
		}
		for (r = 0; r < nranks; r++) {
			int ret;

			if (!submitted[r])
				continue;
			ret = swc_t_result(&job->done[r]);
			if (first == 1)
				first = ret;
			KUNIT_EXPECT_EQ_MSG(test, ret, first, "event %d, rank %u", event, r);
			KUNIT_EXPECT_EQ(test, atomic_read(&job->done[r].calls), 1);
		}
		unwatch(&s);
		if (first) {
			KUNIT_EXPECT_EQ_MSG(test, first, error, "event %d", event);
			failed++;
		} else {
			swc_t_job_check_sum(job);
			passed++;
		}
		swc_t_comm_end(c);
		if (s.left > 0)
			break;
	}
	KUNIT_EXPECT_LT(test, event, 500);
	KUNIT_EXPECT_GT(test, failed, (int)nranks);
	KUNIT_EXPECT_GT(test, passed, 1);
}

static void teardown_abort_direct(struct kunit *test)
{
	fail_everywhere(test, swc_t_direct, 3, false, true);
}

static void teardown_abort_ring(struct kunit *test)
{
	fail_everywhere(test, swc_t_ring, 3, false, true);
}

static void teardown_abort_ring_worker(struct kunit *test)
{
	fail_everywhere(test, swc_t_ring, 3, false, false);
}

static void teardown_abort_staged(struct kunit *test)
{
	fail_everywhere(test, swc_t_staged, 3, false, true);
}

static void teardown_die_ring(struct kunit *test)
{
	fail_everywhere(test, swc_t_ring, 3, true, true);
}

static void teardown_die_staged_worker(struct kunit *test)
{
	fail_everywhere(test, swc_t_staged, 3, true, false);
}

/* Many operations wait for a rank that never calls: each holds a reference, and must put it. */
static void teardown_abort_many(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 2, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	struct swc_t_done *done = kunit_kcalloc(test, SWC_MAX_INFLIGHT, sizeof(*done), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, job);
	KUNIT_ASSERT_NOT_NULL(test, done);
	swc_t_job_init(job, c, swc_t_ring, 100, false);
	for (i = 0; i < SWC_MAX_INFLIGHT; i++)
		KUNIT_EXPECT_EQ(test, swc_t_submit(c, 0, &job->desc[0], &done[i], true), 0);
	swc_comm_abort(swc_t_first_comm(c), -ECANCELED, 1, 5, "first");
	swc_comm_abort(swc_t_first_comm(c), -EIO, 0, 6, "second");
	for (i = 0; i < SWC_MAX_INFLIGHT; i++) {
		KUNIT_EXPECT_EQ(test, swc_t_result(&done[i]), -ECANCELED);
		KUNIT_EXPECT_EQ(test, done[i].culprit, 1);
	}
	KUNIT_EXPECT_STREQ(test, swc_t_first_comm(c)->text, "first");
	KUNIT_EXPECT_EQ(test, swc_t_first_comm(c)->state_page->aborted, 1);
	KUNIT_EXPECT_EQ(test, swc_t_first_comm(c)->state_page->error, -ECANCELED);
	KUNIT_EXPECT_EQ(test, swc_t_submit(c, 0, &job->desc[0], &done[0], true), -ECONNABORTED);
	KUNIT_EXPECT_EQ(test, swc_t_submit(c, 1, &job->desc[1], &done[0], true), -ECONNABORTED);
	swc_t_comm_end(c);
}

/* Two ranks fail in the same operation: the culprit is the one that the text names. */
static void teardown_abort_noted(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 3, SWC_T_NO_DEADLINE);
	struct swc_comm *comm = swc_t_first_comm(c);

	swc_comm_error_note(comm, -EPROTO, 1, 4, "rank 1");
	swc_comm_error_note(comm, -EPROTO, 2, 4, "rank 2");
	swc_comm_abort(comm, -EPROTO, 1, 4, NULL);
	KUNIT_EXPECT_STREQ(test, comm->text, "rank 2");
	KUNIT_EXPECT_EQ(test, comm->culprit, 2);
	KUNIT_EXPECT_EQ(test, comm->state_page->culprit, 2);
	swc_t_comm_end(c);
}

static void teardown_leave(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 3, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	struct swc_comm *comm = swc_t_first_comm(c);
	u32 r;

	KUNIT_ASSERT_NOT_NULL(test, job);
	swc_t_job_init(job, c, swc_t_ring, 100, false);
	KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[0].ctx, 77), -ENOENT);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), 0);
	KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[0].ctx, c->rank[0].handle), -EBUSY);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 2, true), 0);
	swc_t_job_expect(job, 0);

	/* While another call that leaves has changed the state, but has not dropped the handle. */
	c->rank[0].member->state = SWC_MEMBER_LEFT;
	KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[0].ctx, c->rank[0].handle), -ENOENT);
	c->rank[0].member->state = SWC_MEMBER_JOINED;
	KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[0].ctx, c->rank[0].handle), 0);
	KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[0].ctx, c->rank[0].handle), -ENOENT);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), -ENOENT);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, comm->status, SWC_COMM_LIVE);
	for (r = 1; r < 3; r++)
		KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[r].ctx, c->rank[r].handle), 0);
	swc_t_comm_end(c);
}

/* A rank leaves while others wait for it in an operation: that fails and names the rank. */
static void teardown_leave_early(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 2, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, job);
	swc_t_job_init(job, c, swc_t_ring, 100, false);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), 0);
	KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[1].ctx, c->rank[1].handle), 0);
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[0]), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, job->done[0].culprit, 1);
	KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[0].ctx, c->rank[0].handle), 0);
	swc_t_comm_end(c);
}

/* Plans and regions may be unloaded and unregistered while an operation uses them. */
static void teardown_unload(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 2, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	u32 r;

	KUNIT_ASSERT_NOT_NULL(test, job);
	swc_t_job_init(job, c, swc_t_staged, 5000, true);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, false), 0);
	KUNIT_EXPECT_EQ(test, swc_plan_unload(c->rank[0].member, job->desc[0].plan), 0);
	KUNIT_EXPECT_EQ(test, swc_plan_unload(c->rank[0].member, job->desc[0].plan), -ENOENT);
	KUNIT_EXPECT_EQ(test, swc_region_drop_handle(&c->rank[0].ctx, job->desc[0].send_region), 0);
	KUNIT_EXPECT_EQ(test, swc_region_drop_handle(&c->rank[0].ctx, job->desc[0].send_region), -ENOENT);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, false), 0);
	swc_t_job_expect(job, 0);
	for (r = 0; r < 2; r++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), r ? 0 : -ENOENT);
	swc_t_comm_end(c);
}

static void teardown_create(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 1, SWC_T_NO_DEADLINE);
	struct swc_ctx *ctx = &c->rank[0].ctx;
	struct swc_comm_create create = { .nranks = 2, .timeout_ms = 50, .id = { 1, 2, 3 } }, arg;
	u64 cursor = 0;

#define EXPECT_CREATE(error, ...) do {						\
	arg = create;								\
	__VA_ARGS__;								\
	KUNIT_EXPECT_EQ_MSG(test, swc_comm_create(ctx, &arg), error, #__VA_ARGS__);	\
} while (0)
	EXPECT_CREATE(-EINVAL, arg.nranks = 0);
	EXPECT_CREATE(-EINVAL, arg.nranks = SWC_MAX_LOCAL_RANKS + 1);
	EXPECT_CREATE(-EINVAL, arg.rank = 2);
	EXPECT_CREATE(-EINVAL, arg.flags = SWC_COMM_F_ALL + 1);
	EXPECT_CREATE(-EINVAL, arg.slot_bytes = SWC_MAX_SLOT_BYTES + 1);
	EXPECT_CREATE(-EINVAL, arg.nnodes = 2);
	EXPECT_CREATE(-EINVAL, arg.rank_node = 1);
	EXPECT_CREATE(-EINVAL, arg.missing = 1);
	/* Rank 1 never joins: each try makes a new communicator and frees it. */
	EXPECT_CREATE(-ETIMEDOUT, (void)arg);
	EXPECT_CREATE(-ETIMEDOUT, arg.slot_bytes = 5000);
	/* The id of a live communicator. */
	memcpy(create.id, c->id, sizeof(create.id));
	EXPECT_CREATE(-EPROTO, (void)arg);
	EXPECT_CREATE(-EEXIST, arg.nranks = 1);
	EXPECT_CREATE(-EPROTO, arg.nranks = 1; arg.slot_bytes = 64);
	EXPECT_CREATE(-EPROTO, arg.nranks = 1; arg.flags = SWC_COMM_F_ANY_USER);
	flush_workqueue(swc_free_wq);
	/* Only the one of this test is left. */
	swc_comm_put(swc_comm_after(&cursor));
	KUNIT_EXPECT_NULL(test, swc_comm_after(&cursor));
	swc_t_comm_end(c);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_SLOW(teardown_abort_direct),
	KUNIT_CASE_SLOW(teardown_abort_ring),
	KUNIT_CASE_SLOW(teardown_abort_ring_worker),
	KUNIT_CASE_SLOW(teardown_abort_staged),
	KUNIT_CASE_SLOW(teardown_die_ring),
	KUNIT_CASE_SLOW(teardown_die_staged_worker),
	KUNIT_CASE(teardown_abort_many),
	KUNIT_CASE(teardown_abort_noted),
	KUNIT_CASE(teardown_leave),
	KUNIT_CASE(teardown_leave_early),
	KUNIT_CASE(teardown_unload),
	KUNIT_CASE(teardown_create),
	{}
};

struct kunit_suite swc_comm_teardown_suite = { .name = "swc_comm_teardown", .test_cases = cases };
