// SPDX-License-Identifier: GPL-2.0-only
/*
 * The executor: right plans give right sums whatever the size, the number of channels and the number of
 * workers; plans that do not fit together end with -EPROTO and a reason, never in a hang.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched/prio.h>

#include "trace.h"
#include "kunit/harness.h"

struct planner_case {
	const char *name;
	swc_t_planner planner;
	u32 nranks;
};

static const struct planner_case planners[] = {
	{ "direct, 1 rank", swc_t_direct, 1 },
	{ "direct, 2 ranks", swc_t_direct, 2 },
	{ "direct, 5 ranks", swc_t_direct, 5 },
	{ "ring, 2 ranks", swc_t_ring, 2 },
	{ "ring, 3 ranks", swc_t_ring, 3 },
	{ "ring, 8 ranks", swc_t_ring, 8 },
	{ "ring on three channels, 4 ranks", swc_t_ring3, 4 },
	{ "staged in scratch, 1 rank", swc_t_staged, 1 },
	{ "staged in scratch, 4 ranks", swc_t_staged, 4 },
};

static void planner_desc(const struct planner_case *p, char *desc)
{
	strscpy(desc, p->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(planner, planners, planner_desc);

/* Empty vectors and blocks, uneven ones, more than a piece, more than an extent. */
static const u64 counts[] = { 0, 1, 7, 8, 9, 63, 1000, 8191, 40000 };

static void sums(struct kunit *test, bool inline_ok, bool in_place)
{
	const struct planner_case *p = test->param_value;
	struct swc_t_comm *c = swc_t_comm(test, p->nranks, 20000);
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	u32 i, r;

	KUNIT_ASSERT_NOT_NULL(test, job);
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		swc_t_job_init(job, c, p->planner, counts[i], in_place);
		/* Another rank is the last one to come each time. */
		for (r = 0; r < c->nranks; r++)
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, (r + i) % c->nranks, inline_ok), 0);
		swc_t_job_expect(job, 0);
		swc_t_job_check_sum(job);
	}
	swc_t_comm_end(c);
}

static void exec_inline(struct kunit *test)
{
	sums(test, true, false);
}

static void exec_worker(struct kunit *test)
{
	sums(test, false, false);
}

static void exec_in_place(struct kunit *test)
{
	sums(test, true, true);
}

/* ------------------------------------------------------------------ several workers */

#define HELPERS 3

struct helpers {
	struct swc_op *op;
	atomic_t ready;
	atomic_t inside;
	struct completion left[HELPERS];
};

static int helper_thread(void *data)
{
	struct helpers *h = data;
	u32 me = atomic_inc_return(&h->ready) - 1;

	while (!READ_ONCE(h->op->started_at))
		usleep_range(50, 100);
	while (swc_exec_enter(h->op)) {
		atomic_inc(&h->inside);
		swc_exec_help(h->op, SWC_STAT_RUN_WORKER);
		cond_resched();
	}
	swc_op_put(h->op);
	complete(&h->left[me]);
	return 0;
}

/*
 * Helpers that come and go all the time, beside the operation's own worker. It may be done before they get
 * there: then they have another try.
 */
static void exec_helpers(struct kunit *test)
{
	const struct planner_case *p = test->param_value;
	struct swc_t_comm *c;
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	struct helpers *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);
	u32 i, r, round;

	if (p->nranks < 2)
		kunit_skip(test, "the only rank starts at once");
	KUNIT_ASSERT_NOT_NULL(test, job);
	KUNIT_ASSERT_NOT_NULL(test, h);
	c = swc_t_comm(test, p->nranks, 20000);
	swc_t_job_init(job, c, p->planner, 50000, false);
	for (round = 0; round < 4 || (!atomic_read(&h->inside) && round < 200); round++) {
		struct swc_comm *comm = swc_t_the(c);

		swc_t_job_fill(job);
		KUNIT_ASSERT_EQ(test, swc_t_job_submit(job, 0, false), 0);
		spin_lock(&comm->lock);
		h->op = list_first_entry(&comm->ops, struct swc_op, node);
		spin_unlock(&comm->lock);
		atomic_set(&h->ready, 0);
		for (i = 0; i < HELPERS; i++) {
			init_completion(&h->left[i]);
			kref_get(&h->op->ref);
			kthread_run(helper_thread, h, "swc-helper-%u", i);
		}
		while (atomic_read(&h->ready) < HELPERS)
			usleep_range(50, 100);
		for (r = 1; r < c->nranks; r++)
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, round & 1), 0);
		swc_t_job_expect(job, 0);
		swc_t_job_check_sum(job);
		for (i = 0; i < HELPERS; i++)
			wait_for_completion(&h->left[i]);
	}
	KUNIT_EXPECT_GT(test, atomic_read(&h->inside), 0);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ plans that do not fit together */

/* Submit one plan each; all ranks must get @result, and the communicator stays usable. */
static void misfits(struct kunit *test, struct swc_t_plan **plans, u32 nranks, const char *reason)
{
	struct swc_t_comm *c = swc_t_comm(test, nranks, 20000);
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	u32 r, how;

	KUNIT_ASSERT_NOT_NULL(test, job);
	for (how = 0; how < 2; how++) {
		swc_t_job_init(job, c, swc_t_direct, 1000, false);
		for (r = 0; r < nranks; r++) {
			job->desc[r].plan = swc_t_load(c, r, plans[r]);
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, how), 0);
		}
		swc_t_job_expect(job, -EPROTO);
		KUNIT_EXPECT_TRUE_MSG(test, strstr(swc_t_the(c)->text, reason), "%s",
				      swc_t_the(c)->text);
	}
	KUNIT_EXPECT_EQ(test, swc_t_the(c)->status, SWC_COMM_LIVE);
	swc_t_job_init(job, c, swc_t_ring, 100, false);
	for (r = 0; r < nranks; r++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
	swc_t_job_expect(job, 0);
	swc_t_job_check_sum(job);
	swc_t_comm_end(c);
}

static struct swc_t_plan *net_plan(struct kunit *test, u32 nranks, u32 rank, u32 nblocks)
{
	struct swc_t_plan *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, nblocks);

	swc_t_channel(p);
	return p;
}

/* Rank 0 receives what rank 1 never sends. */
static void exec_no_send(struct kunit *test)
{
	struct swc_t_plan *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_t_step(p[0], SWC_STEP_NET);
	swc_t_recv(p[0], 1, 0, 1, SWC_BUF_RECV, 0, 0);
	misfits(test, p, 2, "waits for ever for a send");
}

static void exec_no_receive(struct kunit *test)
{
	struct swc_t_plan *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_t_step(p[1], SWC_STEP_NET);
	swc_t_send(p[1], 0, 0, 1, SWC_BUF_SEND);
	misfits(test, p, 2, "never received");
}

/* Each waits for the other's send, which comes a step later. */
static void exec_circle(struct kunit *test)
{
	struct swc_t_plan *p[3];
	u32 r;

	for (r = 0; r < 3; r++) {
		p[r] = net_plan(test, 3, r, 4);
		swc_t_step(p[r], SWC_STEP_NET);
		swc_t_recv(p[r], (r + 1) % 3, 0, 1, SWC_BUF_RECV, 0, 0);
		swc_t_step(p[r], SWC_STEP_NET);
		swc_t_send(p[r], (r + 2) % 3, 0, 1, SWC_BUF_SEND);
	}
	misfits(test, p, 3, "waits for ever for a send");
}

static void exec_lonely_barrier(struct kunit *test)
{
	struct swc_t_plan *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_t_step(p[1], SWC_STEP_SYNC);
	misfits(test, p, 2, "in a barrier");
}

/* Rank 1 has a channel that rank 0 does not have. */
static void exec_more_channels(struct kunit *test)
{
	struct swc_t_plan *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_t_channel(p[1]);
	swc_t_step(p[1], SWC_STEP_NET);
	swc_t_send(p[1], 0, 0, 1, SWC_BUF_SEND);
	swc_t_recv(p[1], 0, 0, 1, SWC_BUF_RECV, 0, 0);
	misfits(test, p, 2, "waits for ever for a send");
}

static void exec_other_size(struct kunit *test)
{
	struct swc_t_plan *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_t_step(p[0], SWC_STEP_NET);
	swc_t_send(p[0], 1, 0, 2, SWC_BUF_SEND);
	swc_t_step(p[1], SWC_STEP_NET);
	swc_t_recv(p[1], 0, 0, 1, SWC_BUF_RECV, 0, 0);
	misfits(test, p, 2, "another size");
}

static void exec_local_other_size(struct kunit *test)
{
	struct swc_t_plan *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_t_step(p[0], SWC_STEP_LOCAL);
	swc_t_send(p[0], 1, 0, 2, SWC_BUF_SEND);
	swc_t_recv(p[0], 0, 0, 1, SWC_BUF_RECV, 0, 0);
	misfits(test, p, 2, "differ in size");
}

/* A local step names a window that the other member does not have: rank 1 brings no scratch memory. */
static void exec_not_in_window(struct kunit *test)
{
	struct swc_t_plan *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_t_step(p[0], SWC_STEP_LOCAL);
	swc_t_send(p[0], 1, 0, 4, SWC_BUF_SCRATCH);
	swc_t_recv(p[0], 0, 0, 4, SWC_BUF_RECV, 0, 0);
	misfits(test, p, 2, "outside the buffer of the owner");

	p[1]->hdr.window[SWC_BUF_SCRATCH].first_block = 1;
	p[1]->hdr.window[SWC_BUF_SCRATCH].nblocks = 2;
	misfits(test, p, 2, "outside the buffer of the owner");
}

/* ------------------------------------------------------------------ other shapes */

/* Two sends to the same peer in one step meet its receives in order; receives may take them in two steps. */
static void exec_fifo(struct kunit *test)
{
	struct swc_t_plan *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };
	struct swc_t_comm *c = swc_t_comm(test, 2, 20000);
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	u32 r, i;

	KUNIT_ASSERT_NOT_NULL(test, job);
	swc_t_step(p[0], SWC_STEP_NET);
	for (i = 0; i < 4; i++)
		swc_t_send(p[0], 1, i, 1, SWC_BUF_SEND);
	swc_t_step(p[1], SWC_STEP_NET);
	swc_t_recv(p[1], 0, 3, 1, SWC_BUF_RECV, 0, 0);
	swc_t_recv(p[1], 0, 2, 1, SWC_BUF_RECV, 0, 0);
	swc_t_step(p[1], SWC_STEP_NET);
	swc_t_recv(p[1], 0, 1, 1, SWC_BUF_RECV, 0, 0);
	swc_t_recv(p[1], 0, 0, 1, SWC_BUF_RECV, 0, 0);

	swc_t_job_init(job, c, swc_t_direct, 32, false);
	for (r = 0; r < 2; r++) {
		job->desc[r].plan = swc_t_load(c, r, p[r]);
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
	}
	swc_t_job_expect(job, 0);
	/* Blocks of 8 elements, in reverse. */
	for (i = 0; i < 32; i++) {
		u64 got = *(u64 *)swc_t_at(swc_t_region(c, 1, job->desc[1].recv_region), i * 8);

		KUNIT_EXPECT_EQ(test, got, (u64)((3 - i / 8) * 8 + i % 8));
	}
	swc_t_comm_end(c);
}

/* Averages are divided once, wherever the FINAL mark is. */
static void exec_average(struct kunit *test)
{
	static const swc_t_planner all[] = { swc_t_direct, swc_t_ring, swc_t_staged };
	struct swc_t_comm *c = swc_t_comm(test, 4, 20000);
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	u32 i, r, k;

	KUNIT_ASSERT_NOT_NULL(test, job);
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		swc_t_job_init(job, c, all[i], 777, false);
		for (r = 0; r < 4; r++) {
			job->desc[r].redop = SWC_AVG;
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
		}
		swc_t_job_expect(job, 0);
		for (r = 0; r < 4; r++) {
			for (k = 0; k < 777; k++) {
				struct swc_region *recv = swc_t_region(c, r, job->desc[r].recv_region);
				u64 want = ((1 + 2 + 3) * 1000003ull + k * 10ull) / 4;

				if (*(u64 *)swc_t_at(recv, k * 8) != want) {
					KUNIT_FAIL(test, "plan %u, rank %u, element %u", i, r, k);
					break;
				}
			}
		}
	}
	swc_t_comm_end(c);
}

static void on_step(void *data, const struct swc_part *part, u32 channel, u32 step, u32 kind)
{
	if (current->flags & PF_WQ_WORKER)
		*(int *)data = task_nice(current);
}

/* What work items do for an urgent communicator, they do before others. */
static void exec_urgent(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 4, 20000);
	struct swc_t_job *job = swc_t_job_new(test);
	int nice, urgent;

	swc_t_job_init(job, c, swc_t_staged, 777, false);
	KUNIT_ASSERT_EQ(test, register_trace_swc_step(on_step, &nice), 0);
	for (urgent = 0; urgent < 2; urgent++) {
		if (urgent)
			swc_t_the(c)->flags |= SWC_JOIN_URGENT;
		nice = MAX_NICE + 1;
		swc_t_job_run(job, 0, false);
		KUNIT_EXPECT_EQ(test, nice, urgent ? MIN_NICE : 0);
	}
	unregister_trace_swc_step(on_step, &nice);
	tracepoint_synchronize_unregister();
	swc_t_comm_end(c);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(exec_inline, planner_gen_params),
	KUNIT_CASE_PARAM(exec_worker, planner_gen_params),
	KUNIT_CASE_PARAM(exec_in_place, planner_gen_params),
	KUNIT_CASE_PARAM(exec_helpers, planner_gen_params),
	KUNIT_CASE(exec_no_send),
	KUNIT_CASE(exec_no_receive),
	KUNIT_CASE(exec_circle),
	KUNIT_CASE(exec_lonely_barrier),
	KUNIT_CASE(exec_more_channels),
	KUNIT_CASE(exec_other_size),
	KUNIT_CASE(exec_local_other_size),
	KUNIT_CASE(exec_not_in_window),
	KUNIT_CASE(exec_fifo),
	KUNIT_CASE(exec_average),
	KUNIT_CASE(exec_urgent),
	{}
};

struct kunit_suite swc_exec_suite = { .name = "swc_exec", .test_cases = cases };
