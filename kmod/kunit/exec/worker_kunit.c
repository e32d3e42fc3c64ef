// SPDX-License-Identifier: GPL-2.0-only
/*
 * Workers: correct plans give correct sums for any size, number of channels and number of workers; plans
 * that do not match each other end with -EPROTO and a reason, and never hang.
 */
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
	{ "copy steps, 1 rank", swc_t_copied, 1 },
	{ "copy steps, 4 ranks", swc_t_copied, 4 },
};

static void planner_desc(const struct planner_case *p, char *desc)
{
	strscpy(desc, p->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(planner, planners, planner_desc);

/* Empty vectors and blocks, uneven blocks, more than one piece, more than one extent. */
static const u64 counts[] = { 0, 1, 7, 8, 9, 63, 1000, 8191, 40000 };

static void sums(struct kunit *test, bool inline_ok, bool in_place)
{
	const struct planner_case *p = test->param_value;
	struct swc_t_comm *c = swc_t_comm(test, p->nranks, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	u32 i, r;

	KUNIT_ASSERT_NOT_NULL(test, job);
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		swc_t_job_init(job, c, p->planner, counts[i], in_place);
		/* A different rank arrives last each time. */
		for (r = 0; r < c->nranks; r++)
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, (r + i) % c->nranks, inline_ok), 0);
		swc_t_job_expect(job, 0);
		swc_t_job_check_sum(job);
	}
	swc_t_comm_end(c);
}

static void worker_inline(struct kunit *test)
{
	sums(test, true, false);
}

static void worker_work_item(struct kunit *test)
{
	sums(test, false, false);
}

static void worker_in_place(struct kunit *test)
{
	sums(test, true, true);
}

/* ------------------------------------------------------------------ several workers */

#define HELPERS 3

struct helpers {
	struct swc_op *op;
	u32 entered;
	struct completion started;
	struct completion left[HELPERS];
	struct work_struct turn[HELPERS];
};

static void pass(struct work_struct *turn)
{
}

/*
 * The operation starts: enter it for all helpers, so that it cannot end before each of them has been a
 * worker, however late they get a CPU.
 */
static void enter_helpers(void *data, const struct swc_op *op)
{
	struct helpers *h = data;
	u32 i;

	for (i = 0; i < HELPERS; i++)
		h->entered += swc_worker_enter(h->op);
	complete_all(&h->started);
}

struct helper {
	struct helpers *all;
	u32 index;
};

/* Be a worker again and again until the operation is over, and let all others run in between. */
static int helper_thread(void *data)
{
	struct helper *me = data;
	struct work_struct *turn = &me->all->turn[me->index];
	struct swc_op *op = me->all->op;

	wait_for_completion(&me->all->started);
	do {
		swc_worker_run(op, SWC_STAT_WORKER_KTHREAD);
		schedule_work(turn);
		flush_work(turn);
	} while (swc_worker_enter(op));
	swc_op_put(op);
	complete(&me->all->left[me->index]);
	return 0;
}

/* Helpers that come and go all the time, beside the operation's own worker. */
static void worker_helpers(struct kunit *test)
{
	const struct planner_case *p = test->param_value;
	struct swc_t_job *job = swc_t_job_new(test);
	struct helpers *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);
	struct helper helper[HELPERS];
	struct swc_t_comm *c;
	u32 i, r, round;

	if (p->nranks < 2)
		kunit_skip(test, "the only rank starts at once");
	KUNIT_ASSERT_NOT_NULL(test, h);
	c = swc_t_comm(test, p->nranks, SWC_T_NO_DEADLINE);
	swc_t_job_init(job, c, p->planner, 50000, false);
	KUNIT_ASSERT_EQ(test, register_trace_swc_start(enter_helpers, h), 0);
	for (round = 0; round < 4; round++) {
		struct swc_comm *comm = swc_t_first_comm(c);

		swc_t_job_fill(job);
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, false), 0);
		spin_lock(&comm->lock);
		h->op = list_first_entry(&comm->ops, struct swc_op, node);
		spin_unlock(&comm->lock);
		init_completion(&h->started);
		for (i = 0; i < HELPERS; i++) {
			helper[i] = (struct helper){ .all = h, .index = i };
			init_completion(&h->left[i]);
			INIT_WORK(&h->turn[i], pass);
			kref_get(&h->op->ref);
			kthread_run(helper_thread, &helper[i], "swc-helper-%u", i);
		}
		for (r = 1; r < c->nranks; r++)
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, round & 1), 0);
		swc_t_job_expect(job, 0);
		swc_t_job_check_sum(job);
		for (i = 0; i < HELPERS; i++)
			wait_for_completion(&h->left[i]);
	}
	unregister_trace_swc_start(enter_helpers, h);
	tracepoint_synchronize_unregister();
	KUNIT_EXPECT_EQ(test, h->entered, 4u * HELPERS);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ which processes are woken */

struct wakes {
	struct swc_op *op;
	u32 ranks[4];
	u32 n;
};

static struct wakes *wakes;

/* The process of a request is called once. */
static bool fake_wake(struct swc_req *req)
{
	u32 i;

	for (i = 0; i < wakes->n; i++)
		if (wakes->ranks[i] == req->member->rank)
			return false;
	wakes->ranks[wakes->n++] = req->member->rank;
	return true;
}

/* The operation starts: ranks 0 and 1 slept on this CPU, 2 and 3 on another one, and all can be workers. */
static void sleep_on_two_cpus(void *data, const struct swc_op *op)
{
	struct swc_op *starting = wakes->op;
	u32 i;

	starting->max_workers = 4;
	for (i = 0; i < 4; i++) {
		starting->req[i]->wake_worker = fake_wake;
		starting->req[i]->cpu = raw_smp_processor_id() + i / 2;
	}
}

/* A process that slept on another CPU than the submitter's is woken first, then the others are. */
static void worker_wakes_elsewhere(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 4, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_comm *comm = swc_t_first_comm(c);
	static const u32 order[] = { 2, 0, 1 };
	u32 i, r;

	wakes = kunit_kzalloc(test, sizeof(*wakes), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, wakes);
	swc_t_job_init(job, c, swc_t_ring, 1000, false);
	swc_t_job_fill(job);
	KUNIT_ASSERT_EQ(test, register_trace_swc_start(sleep_on_two_cpus, NULL), 0);
	migrate_disable();
	for (r = 0; r < 4; r++) {
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
		if (r)
			continue;
		spin_lock(&comm->lock);
		wakes->op = list_first_entry(&comm->ops, struct swc_op, node);
		spin_unlock(&comm->lock);
	}
	migrate_enable();
	swc_t_job_expect(job, 0);
	swc_t_job_check_sum(job);
	unregister_trace_swc_start(sleep_on_two_cpus, NULL);
	tracepoint_synchronize_unregister();
	KUNIT_ASSERT_EQ(test, wakes->n, 3u);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, wakes->ranks[i], order[i]);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ plans that do not match */

/* Each rank submits its plan: all must get -EPROTO and @reason; then the communicator must be usable. */
static void mismatch(struct kunit *test, struct swc_plan_writer **plans, u32 nranks, const char *reason)
{
	struct swc_t_comm *c = swc_t_comm(test, nranks, SWC_T_NO_DEADLINE);
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
		KUNIT_EXPECT_TRUE_MSG(test, strstr(swc_t_first_comm(c)->text, reason), "%s",
				      swc_t_first_comm(c)->text);
	}
	KUNIT_EXPECT_EQ(test, swc_t_first_comm(c)->status, SWC_COMM_LIVE);
	swc_t_job_init(job, c, swc_t_ring, 100, false);
	for (r = 0; r < nranks; r++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
	swc_t_job_expect(job, 0);
	swc_t_job_check_sum(job);
	swc_t_comm_end(c);
}

static struct swc_plan_writer *net_plan(struct kunit *test, u32 nranks, u32 rank, u32 nblocks)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, nblocks);

	swc_plan_write_channel(p);
	return p;
}

/* Rank 1 never sends what rank 0 receives. */
static void worker_no_send(struct kunit *test)
{
	struct swc_plan_writer *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_plan_write_step(p[0], SWC_STEP_NET);
	swc_t_recv(p[0], 1, 0, 1, SWC_BUF_RECV, 0, 0);
	mismatch(test, p, 2, "waits for ever for a send");
}

static void worker_no_receive(struct kunit *test)
{
	struct swc_plan_writer *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_plan_write_step(p[1], SWC_STEP_NET);
	swc_t_send(p[1], 0, 0, 1, SWC_BUF_SEND);
	mismatch(test, p, 2, "never received");
}

/* Each rank waits for a send that the next rank posts a step later. */
static void worker_cycle(struct kunit *test)
{
	struct swc_plan_writer *p[3];
	u32 r;

	for (r = 0; r < 3; r++) {
		p[r] = net_plan(test, 3, r, 4);
		swc_plan_write_step(p[r], SWC_STEP_NET);
		swc_t_recv(p[r], (r + 1) % 3, 0, 1, SWC_BUF_RECV, 0, 0);
		swc_plan_write_step(p[r], SWC_STEP_NET);
		swc_t_send(p[r], (r + 2) % 3, 0, 1, SWC_BUF_SEND);
	}
	mismatch(test, p, 3, "waits for ever for a send");
}

static void worker_unmatched_barrier(struct kunit *test)
{
	struct swc_plan_writer *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_plan_write_step(p[1], SWC_STEP_SYNC);
	mismatch(test, p, 2, "in a barrier");
}

/* Rank 1 has a channel that rank 0 does not have. */
static void worker_extra_channel(struct kunit *test)
{
	struct swc_plan_writer *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_plan_write_channel(p[1]);
	swc_plan_write_step(p[1], SWC_STEP_NET);
	swc_t_send(p[1], 0, 0, 1, SWC_BUF_SEND);
	swc_t_recv(p[1], 0, 0, 1, SWC_BUF_RECV, 0, 0);
	mismatch(test, p, 2, "waits for ever for a send");
}

static void worker_size_mismatch(struct kunit *test)
{
	struct swc_plan_writer *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_plan_write_step(p[0], SWC_STEP_NET);
	swc_t_send(p[0], 1, 0, 2, SWC_BUF_SEND);
	swc_plan_write_step(p[1], SWC_STEP_NET);
	swc_t_recv(p[1], 0, 0, 1, SWC_BUF_RECV, 0, 0);
	mismatch(test, p, 2, "another size");
}

static void worker_local_size_mismatch(struct kunit *test)
{
	struct swc_plan_writer *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_plan_write_step(p[0], SWC_STEP_LOCAL);
	swc_t_send(p[0], 1, 0, 2, SWC_BUF_SEND);
	swc_t_recv(p[0], 0, 0, 1, SWC_BUF_RECV, 0, 0);
	mismatch(test, p, 2, "differ in size");
}

/* Two blocks, of which the first has one unit more. */
static void worker_copy_size_mismatch(struct kunit *test)
{
	struct swc_plan_writer *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_plan_write_step(p[0], SWC_STEP_COPY);
	swc_t_copy(p[0], SWC_BUF_SEND, 1, SWC_BUF_RECV, 2, 1, 0);
	swc_t_copy(p[0], SWC_BUF_SEND, 0, SWC_BUF_RECV, 1, 1, 0);
	mismatch(test, p, 2, "differ in size");
}

/* A local step names a window that the other rank does not have: rank 1 has no scratch memory. */
static void worker_not_in_window(struct kunit *test)
{
	struct swc_plan_writer *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };

	swc_plan_write_step(p[0], SWC_STEP_LOCAL);
	swc_t_send(p[0], 1, 0, 4, SWC_BUF_SCRATCH);
	swc_t_recv(p[0], 0, 0, 4, SWC_BUF_RECV, 0, 0);
	mismatch(test, p, 2, "outside the buffer of the owner");

	p[1]->hdr.window[SWC_BUF_SCRATCH].first_block = 1;
	p[1]->hdr.window[SWC_BUF_SCRATCH].nblocks = 2;
	mismatch(test, p, 2, "outside the buffer of the owner");
}

/* ------------------------------------------------------------------ other shapes */

/* Sends to one peer in one step match its receives in order, which may be in two steps. */
static void worker_fifo(struct kunit *test)
{
	struct swc_plan_writer *p[2] = { net_plan(test, 2, 0, 4), net_plan(test, 2, 1, 4) };
	struct swc_t_comm *c = swc_t_comm(test, 2, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);
	u32 r, i;

	KUNIT_ASSERT_NOT_NULL(test, job);
	swc_plan_write_step(p[0], SWC_STEP_NET);
	for (i = 0; i < 4; i++)
		swc_t_send(p[0], 1, i, 1, SWC_BUF_SEND);
	swc_plan_write_step(p[1], SWC_STEP_NET);
	swc_t_recv(p[1], 0, 3, 1, SWC_BUF_RECV, 0, 0);
	swc_t_recv(p[1], 0, 2, 1, SWC_BUF_RECV, 0, 0);
	swc_plan_write_step(p[1], SWC_STEP_NET);
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

/* An average is divided once, wherever SWC_XFER_FINAL is. */
static void worker_average(struct kunit *test)
{
	static const swc_t_planner all[] = { swc_t_direct, swc_t_ring, swc_t_staged, swc_t_copied };
	struct swc_t_comm *c = swc_t_comm(test, 4, SWC_T_NO_DEADLINE);
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

static void on_step(void *data, const struct swc_req *req, u32 channel, u32 step, u32 kind)
{
	if (current->flags & PF_WQ_WORKER)
		*(int *)data = task_nice(current);
}

/* Work items of an urgent communicator run at a higher priority. */
static void worker_urgent(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 4, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);
	int nice, urgent;

	swc_t_job_init(job, c, swc_t_staged, 777, false);
	KUNIT_ASSERT_EQ(test, register_trace_swc_step(on_step, &nice), 0);
	for (urgent = 0; urgent < 2; urgent++) {
		if (urgent)
			swc_t_first_comm(c)->flags |= SWC_COMM_F_URGENT;
		nice = MAX_NICE + 1;
		swc_t_job_run(job, 0, false);
		KUNIT_EXPECT_EQ(test, nice, urgent ? MIN_NICE : 0);
	}
	unregister_trace_swc_step(on_step, &nice);
	tracepoint_synchronize_unregister();
	swc_t_comm_end(c);
}

/* Longer than a time slice. */
#define LONG_STEP	(40 * NSEC_PER_MSEC)

static void slow_step(void *data, const struct swc_req *req, u32 channel, u32 step, u32 kind)
{
	(*(u32 *)data)++;
	swc_t_slice_pass(LONG_STEP);
}

/* A work item gives way after each step that takes longer than its time slice; a submitter does not. */
static void worker_slice(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 1, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);
	u64 before, inlined;
	u32 steps;

	swc_t_job_init(job, c, swc_t_staged, 777, false);
	KUNIT_ASSERT_EQ(test, register_trace_swc_step(slow_step, &steps), 0);
	steps = 0;
	before = swc_stat_read(SWC_STAT_WORKER_KTHREAD);
	swc_t_job_run(job, 0, false);
	KUNIT_EXPECT_GE(test, steps, 3u);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_WORKER_KTHREAD) - before, (u64)steps);
	before = swc_stat_read(SWC_STAT_WORKER_KTHREAD);
	inlined = swc_stat_read(SWC_STAT_WORKER_INLINE);
	swc_t_job_run(job, 0, true);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_WORKER_KTHREAD), before);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_WORKER_INLINE), inlined + 1);
	unregister_trace_swc_step(slow_step, &steps);
	tracepoint_synchronize_unregister();
	swc_t_comm_end(c);
}

/* More than a worker does between two looks at the clock, twice. */
#define MANY_COPIES	600

/* One rank: its blocks in reverse. */
static struct swc_plan_writer *reversed(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, MANY_COPIES);
	u32 i;

	swc_plan_write_channel(p);
	swc_plan_write_step(p, SWC_STEP_COPY);
	for (i = 0; i < MANY_COPIES; i++)
		swc_t_copy(p, SWC_BUF_SEND, i, SWC_BUF_RECV, MANY_COPIES - 1 - i, 1, SWC_XFER_FINAL);
	return p;
}

static void run_reversed(struct swc_t_job *job, bool inline_ok)
{
	struct swc_region *recv = swc_t_region(job->c, 0, job->desc[0].recv_region);
	u64 each = div_u64(job->count, MANY_COPIES), i;

	swc_t_job_fill(job);
	KUNIT_EXPECT_EQ(job->c->test, swc_t_job_submit(job, 0, inline_ok), 0);
	swc_t_job_expect(job, 0);
	for (i = 0; i < job->count; i++) {
		u64 block = MANY_COPIES - 1 - div64_u64(i, each), at = block * each + i % each;

		if (*(u64 *)swc_t_at(recv, i * 8) == swc_t_job_value(0, at))
			continue;
		KUNIT_FAIL(job->c->test, "element %llu of %llu", i, job->count);
		return;
	}
}

/* A work item gives way within a copy step, which another one continues; a submitter does it at once. */
static void worker_copy_slice(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 1, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);
	/* Elements of a block: one unit; a short copy that crosses extents; a long one. */
	static const u32 each[] = { 8, 200, 2056 };
	u64 before, inlined;
	u32 i, steps;

	KUNIT_ASSERT_EQ(test, register_trace_swc_step(slow_step, &steps), 0);
	for (i = 0; i < ARRAY_SIZE(each); i++) {
		swc_t_job_init(job, c, reversed, (u64)each[i] * MANY_COPIES, false);
		steps = 0;
		before = swc_stat_read(SWC_STAT_WORKER_KTHREAD);
		run_reversed(job, false);
		KUNIT_EXPECT_GE(test, steps, 3u);
		KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_WORKER_KTHREAD) - before, (u64)steps);
		before = swc_stat_read(SWC_STAT_STEPS_LOCAL);
		inlined = swc_stat_read(SWC_STAT_WORKER_INLINE);
		run_reversed(job, true);
		KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_WORKER_INLINE), inlined + 1);
		KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_STEPS_LOCAL), before + 1);
	}
	unregister_trace_swc_step(slow_step, &steps);
	tracepoint_synchronize_unregister();
	swc_t_comm_end(c);
}

/* A work item gives way between the receives of a step. */
static void worker_receive_slice(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 2, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_region *recv;
	u64 before, i;
	u32 steps = 0;

	swc_t_job_init(job, c, swc_t_messages, 8 * SWC_T_MESSAGES, false);
	swc_t_job_fill(job);
	KUNIT_ASSERT_EQ(test, register_trace_swc_step(slow_step, &steps), 0);
	before = swc_stat_read(SWC_STAT_WORKER_KTHREAD);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, false), 0);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, false), 0);
	swc_t_job_expect(job, 0);
	KUNIT_EXPECT_GE(test, swc_stat_read(SWC_STAT_WORKER_KTHREAD) - before, (u64)SWC_T_MESSAGES);
	recv = swc_t_region(c, 1, job->desc[1].recv_region);
	for (i = 0; i < job->count; i++)
		KUNIT_EXPECT_EQ(test, *(u64 *)swc_t_at(recv, i * 8), swc_t_job_value(0, i));
	unregister_trace_swc_step(slow_step, &steps);
	tracepoint_synchronize_unregister();
	swc_t_comm_end(c);
}

static void fail_in_step(void *data, const struct swc_req *req, u32 channel, u32 step, u32 kind)
{
	struct swc_op *op = req->op;

	slow_step(data, req, channel, step, kind);
	if (*(u32 *)data != 2)
		return;
	spin_lock(&op->lock);
	swc_op_set_error(op, -ECANCELED, -1);
	spin_unlock(&op->lock);
}

/* An operation fails when some copies of a step are done: the others are not. The next one is right. */
static void worker_copy_fails(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 1, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);
	static const u32 each[] = { 8, 200, 2056 };
	struct swc_region *recv;
	u64 n;
	u32 i, steps;

	for (i = 0; i < ARRAY_SIZE(each); i++) {
		n = (u64)each[i] * MANY_COPIES;
		swc_t_job_init(job, c, reversed, n, false);
		recv = swc_t_region(c, 0, job->desc[0].recv_region);
		steps = 0;
		KUNIT_ASSERT_EQ(test, register_trace_swc_step(fail_in_step, &steps), 0);
		swc_t_job_fill(job);
		*(u64 *)swc_t_at(recv, 0) = 0;
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, false), 0);
		swc_t_job_expect(job, -ECANCELED);
		unregister_trace_swc_step(fail_in_step, &steps);
		tracepoint_synchronize_unregister();
		KUNIT_EXPECT_EQ(test, steps, 2u);
		/* The first copy fills the last block, the last one the first. */
		KUNIT_EXPECT_EQ(test, *(u64 *)swc_t_at(recv, (n - each[i]) * 8), swc_t_job_value(0, 0));
		KUNIT_EXPECT_EQ(test, *(u64 *)swc_t_at(recv, 0), 0ull);
		run_reversed(job, true);
	}
	swc_t_comm_end(c);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(worker_inline, planner_gen_params),
	KUNIT_CASE_PARAM(worker_work_item, planner_gen_params),
	KUNIT_CASE_PARAM(worker_in_place, planner_gen_params),
	KUNIT_CASE_PARAM(worker_helpers, planner_gen_params),
	KUNIT_CASE(worker_wakes_elsewhere),
	KUNIT_CASE(worker_no_send),
	KUNIT_CASE(worker_no_receive),
	KUNIT_CASE(worker_cycle),
	KUNIT_CASE(worker_unmatched_barrier),
	KUNIT_CASE(worker_extra_channel),
	KUNIT_CASE(worker_size_mismatch),
	KUNIT_CASE(worker_local_size_mismatch),
	KUNIT_CASE(worker_copy_size_mismatch),
	KUNIT_CASE(worker_not_in_window),
	KUNIT_CASE(worker_fifo),
	KUNIT_CASE(worker_average),
	KUNIT_CASE(worker_urgent),
	KUNIT_CASE(worker_slice),
	KUNIT_CASE(worker_copy_slice),
	KUNIT_CASE(worker_receive_slice),
	KUNIT_CASE(worker_copy_fails),
	{}
};

struct kunit_suite swc_worker_suite = { .name = "swc_worker", .test_cases = cases };
