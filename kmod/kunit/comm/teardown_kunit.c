// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ends of all kinds, at every moment: aborts and deaths at each tracepoint of an operation's way, leaving,
 * and joins that fail. Every part is told exactly once, all ranks hear the same, and nothing is left behind
 * (swc_t_comm_end() checks that).
 */
#include "comm/create.h"
#include "trace.h"
#include "kunit/harness.h"

/* What happens, and at which event from now on. */
struct strike {
	struct swc_t_comm *c;
	bool die;
	int left;
};

static void strike(struct strike *s)
{
	if (--s->left)
		return;
	if (s->die)
		swc_comms_of_ctx_died(&s->c->rank[1].ctx, "was killed");
	else
		swc_comm_abort(swc_t_the(s->c), -ECONNABORTED, 0, 0, "struck");
}

static void on_step(void *data, const struct swc_part *part, u32 channel, u32 step, u32 kind)
{
	strike(data);
}

static void on_submit(void *data, const struct swc_op *op, u32 rank)
{
	strike(data);
}

static void on_start(void *data, const struct swc_op *op)
{
	strike(data);
}

static void on_complete(void *data, const struct swc_part *part)
{
	strike(data);
}

static int watch(struct strike *s)
{
	return register_trace_swc_step(on_step, s) ?: register_trace_swc_submit(on_submit, s) ?:
	       register_trace_swc_start(on_start, s) ?: register_trace_swc_complete(on_complete, s);
}

static void unwatch(struct strike *s)
{
	unregister_trace_swc_step(on_step, s);
	unregister_trace_swc_submit(on_submit, s);
	unregister_trace_swc_start(on_start, s);
	unregister_trace_swc_complete(on_complete, s);
	tracepoint_synchronize_unregister();
}

/* Strike at the first event, then at the second, ... until the operation is through without. */
static void strike_everywhere(struct kunit *test, swc_t_planner planner, u32 nranks, bool die, bool inline_ok)
{
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	struct strike s = { .die = die };
	int error = die ? -ECONNRESET : -ECONNABORTED, moment, failed = 0, fine = 0;
	u32 r;

	KUNIT_ASSERT_NOT_NULL(test, job);
	for (moment = 1; moment < 500; moment++) {
		struct swc_t_comm *c = swc_t_comm(test, nranks, 20000);
		bool submitted[SWC_T_RANKS];
		int first = 1;

		swc_t_job_init(job, c, planner, 300, false);
		s.c = c;
		s.left = moment;
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
			KUNIT_EXPECT_EQ_MSG(test, ret, first, "moment %d, rank %u", moment, r);
			KUNIT_EXPECT_EQ(test, atomic_read(&job->done[r].calls), 1);
		}
		unwatch(&s);
		if (first) {
			KUNIT_EXPECT_EQ_MSG(test, first, error, "moment %d", moment);
			failed++;
		} else {
			swc_t_job_check_sum(job);
			fine++;
		}
		swc_t_comm_end(c);
		if (s.left > 0)
			break;
	}
	KUNIT_EXPECT_LT(test, moment, 500);
	KUNIT_EXPECT_GT(test, failed, (int)nranks);
	KUNIT_EXPECT_GT(test, fine, 1);
}

static void life_abort_direct(struct kunit *test)
{
	strike_everywhere(test, swc_t_direct, 3, false, true);
}

static void life_abort_ring(struct kunit *test)
{
	strike_everywhere(test, swc_t_ring, 3, false, true);
}

static void life_abort_ring_worker(struct kunit *test)
{
	strike_everywhere(test, swc_t_ring, 3, false, false);
}

static void life_abort_staged(struct kunit *test)
{
	strike_everywhere(test, swc_t_staged, 3, false, true);
}

static void life_die_ring(struct kunit *test)
{
	strike_everywhere(test, swc_t_ring, 3, true, true);
}

static void life_die_staged_worker(struct kunit *test)
{
	strike_everywhere(test, swc_t_staged, 3, true, false);
}

/* Many operations wait for a rank that never comes: each holds the communicator, and must let go. */
static void life_abort_many(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 2, 20000);
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	struct swc_t_done *done = kunit_kcalloc(test, SWC_MAX_INFLIGHT, sizeof(*done), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, job);
	KUNIT_ASSERT_NOT_NULL(test, done);
	swc_t_job_init(job, c, swc_t_ring, 100, false);
	for (i = 0; i < SWC_MAX_INFLIGHT; i++)
		KUNIT_EXPECT_EQ(test, swc_t_submit(c, 0, &job->desc[0], &done[i], true), 0);
	swc_comm_abort(swc_t_the(c), -ECANCELED, 1, 5, "first");
	swc_comm_abort(swc_t_the(c), -EIO, 0, 6, "second");
	for (i = 0; i < SWC_MAX_INFLIGHT; i++) {
		KUNIT_EXPECT_EQ(test, swc_t_result(&done[i]), -ECANCELED);
		KUNIT_EXPECT_EQ(test, done[i].culprit, 1);
	}
	KUNIT_EXPECT_STREQ(test, swc_t_the(c)->text, "first");
	KUNIT_EXPECT_EQ(test, swc_t_the(c)->state_page->aborted, 1);
	KUNIT_EXPECT_EQ(test, swc_t_the(c)->state_page->error, -ECANCELED);
	KUNIT_EXPECT_EQ(test, swc_t_submit(c, 0, &job->desc[0], &done[0], true), -ECONNABORTED);
	KUNIT_EXPECT_EQ(test, swc_t_submit(c, 1, &job->desc[1], &done[0], true), -ECONNABORTED);
	swc_t_comm_end(c);
}

static void life_leave(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 3, 20000);
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	struct swc_comm *comm = swc_t_the(c);
	u32 r;

	KUNIT_ASSERT_NOT_NULL(test, job);
	swc_t_job_init(job, c, swc_t_ring, 100, false);
	KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[0].ctx, 77), -ENOENT);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), 0);
	KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[0].ctx, c->rank[0].handle), -EBUSY);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 2, true), 0);
	swc_t_job_expect(job, 0);

	KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[0].ctx, c->rank[0].handle), 0);
	KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[0].ctx, c->rank[0].handle), -ENOENT);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), -ENOENT);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, comm->status, SWC_COMM_LIVE);
	for (r = 1; r < 3; r++)
		KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[r].ctx, c->rank[r].handle), 0);
	swc_t_comm_end(c);
}

/* Leaving while the others wait for one more operation ends it, and names who left. */
static void life_leave_early(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 2, 20000);
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

/* Plans and regions that an operation uses may be unloaded and unregistered meanwhile. */
static void life_unload(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 2, 20000);
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

static void life_join(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 1, 1000);
	struct swc_ctx *ctx = &c->rank[0].ctx;
	struct swc_comm_join join = { .nranks = 2, .timeout_ms = 50, .id = { 1, 2, 3 } }, j;
	u64 cursor = 0;

#define EXPECT_JOIN(error, ...) do {						\
	j = join;								\
	__VA_ARGS__;								\
	KUNIT_EXPECT_EQ_MSG(test, swc_comm_join(ctx, &j), error, #__VA_ARGS__);	\
} while (0)
	EXPECT_JOIN(-EINVAL, j.nranks = 0);
	EXPECT_JOIN(-EINVAL, j.nranks = SWC_MAX_LOCAL_RANKS + 1);
	EXPECT_JOIN(-EINVAL, j.rank = 2);
	EXPECT_JOIN(-EINVAL, j.flags = SWC_JOIN_FLAGS_ALL + 1);
	EXPECT_JOIN(-EINVAL, j.slot_bytes = SWC_MAX_SLOT_BYTES + 1);
	EXPECT_JOIN(-EINVAL, j.nnodes = 2);
	EXPECT_JOIN(-EINVAL, j.rank_node = 1);
	EXPECT_JOIN(-EINVAL, j.resv[1] = 1);
	/* The other never comes; each try makes a communicator of its own, and leaves nothing. */
	EXPECT_JOIN(-ETIMEDOUT, (void)j);
	EXPECT_JOIN(-ETIMEDOUT, j.slot_bytes = 5000);
	/* The id of a live one. */
	memcpy(join.id, c->id, sizeof(join.id));
	EXPECT_JOIN(-EPROTO, (void)j);
	EXPECT_JOIN(-EEXIST, j.nranks = 1);
	EXPECT_JOIN(-EPROTO, j.nranks = 1; j.slot_bytes = 64);
	EXPECT_JOIN(-EPROTO, j.nranks = 1; j.flags = SWC_JOIN_ANY_USER);
	flush_workqueue(swc_wq);
	/* One is left, the fixture's. */
	swc_comm_put(swc_comm_after(&cursor));
	KUNIT_EXPECT_NULL(test, swc_comm_after(&cursor));
	swc_t_comm_end(c);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_SLOW(life_abort_direct),
	KUNIT_CASE_SLOW(life_abort_ring),
	KUNIT_CASE_SLOW(life_abort_ring_worker),
	KUNIT_CASE_SLOW(life_abort_staged),
	KUNIT_CASE_SLOW(life_die_ring),
	KUNIT_CASE_SLOW(life_die_staged_worker),
	KUNIT_CASE(life_abort_many),
	KUNIT_CASE(life_leave),
	KUNIT_CASE(life_leave_early),
	KUNIT_CASE(life_unload),
	KUNIT_CASE(life_join),
	{}
};

struct kunit_suite swc_life_suite = { .name = "swc_life", .test_cases = cases };
