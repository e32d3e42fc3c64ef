// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations: how the requests of all ranks are matched. The k-th of each rank belong to one operation;
 * if one rank's call differs, all ranks get an error, also those that arrive later; no rank gets further
 * ahead than the window; and a request that is refused at submission takes no sequence number.
 */
#include "mem/completion_ring.h"
#include "trace.h"
#include "kunit/harness.h"

/* One rank is ahead of the other by as many operations as the window allows. */
static void operation_window(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 2, SWC_T_NO_DEADLINE);
	struct swc_t_done *done = kunit_kcalloc(test, 3 * SWC_MAX_INFLIGHT, sizeof(*done), GFP_KERNEL);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 i, round;

	KUNIT_ASSERT_NOT_NULL(test, done);
	swc_t_job_init(job, c, swc_t_direct, 100, false);
	for (round = 0; round < 3; round++) {
		u32 ahead = round & 1;
		struct swc_member *m = c->rank[ahead].member;

		for (i = 0; i < SWC_MAX_INFLIGHT; i++)
			KUNIT_EXPECT_EQ(test, swc_t_submit(c, ahead, &job->desc[ahead], &done[i], true), 0);
		KUNIT_EXPECT_EQ(test, m->inflight, SWC_MAX_INFLIGHT);
		KUNIT_EXPECT_EQ(test, swc_t_submit(c, ahead, &job->desc[ahead], &done[i], true), -EAGAIN);
		KUNIT_EXPECT_EQ(test, m->next_seq, (u64)(round + 1) * SWC_MAX_INFLIGHT);
		for (i = 0; i < SWC_MAX_INFLIGHT; i++) {
			struct swc_t_done *other = &done[SWC_MAX_INFLIGHT + 1 + i];

			KUNIT_EXPECT_FALSE(test, completion_done(&done[i].done));
			KUNIT_EXPECT_EQ(test, swc_t_submit(c, !ahead, &job->desc[!ahead], other, true), 0);
			KUNIT_EXPECT_EQ(test, swc_t_result(&done[i]), 0);
			KUNIT_EXPECT_EQ(test, swc_t_result(other), 0);
		}
		KUNIT_EXPECT_EQ(test, m->inflight, 0);
	}
	swc_t_job_check_sum(job);
	KUNIT_EXPECT_EQ(test, swc_t_first_comm(c)->completed, 3ull * SWC_MAX_INFLIGHT);
	swc_t_comm_end(c);
}

struct change {
	const char *name;
	void (*desc)(struct swc_desc *d);
	void (*plan)(struct swc_plan_writer *p);
};

static void change_count(struct swc_desc *d)
{
	d->count--;
}

static void change_dtype(struct swc_desc *d)
{
	d->dtype = SWC_I64;
}

static void change_redop(struct swc_desc *d)
{
	d->redop = SWC_MAX;
}

static void change_family(struct swc_plan_writer *p)
{
	p->hdr.family++;
}

static void change_blocks(struct swc_plan_writer *p)
{
	p->hdr.shard_blocks++;
	p->hdr.window[SWC_BUF_SEND].nblocks++;
	p->hdr.window[SWC_BUF_RECV].nblocks++;
}

static const struct change changes[] = {
	{ "count", change_count },
	{ "type", change_dtype },
	{ "operation", change_redop },
	{ "family", NULL, change_family },
	{ "blocks", NULL, change_blocks },
};

static void change_desc(const struct change *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(change, changes, change_desc);

/* Rank @odd differs: in any order of arrival all three get -EPROTO, and the next operation succeeds. */
static void operation_mismatch(struct kunit *test)
{
	const struct change *change = test->param_value;
	struct swc_t_comm *c = swc_t_comm(test, 3, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 odd, i, r;

	for (odd = 0; odd < 3; odd++) {
		struct swc_plan_writer *p = swc_t_ring(test, 3, odd);

		swc_t_job_init(job, c, swc_t_ring, 1000, false);
		if (change->desc)
			change->desc(&job->desc[odd]);
		if (change->plan) {
			change->plan(p);
			job->desc[odd].plan = swc_t_load(c, odd, p);
		}
		for (i = 0; i < 3; i++)
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, i, i & 1), 0);
		swc_t_job_expect(job, -EPROTO);
		KUNIT_EXPECT_TRUE_MSG(test, strstr(swc_t_first_comm(c)->text, "called"), "%s",
				      swc_t_first_comm(c)->text);
		for (r = 0; r < 3; r++) {
			KUNIT_EXPECT_EQ(test, c->rank[r].member->inflight, 0);
			KUNIT_EXPECT_EQ(test, job->done[r].culprit, job->done[0].culprit);
		}

		swc_t_job_init(job, c, swc_t_ring, 1000, false);
		for (i = 0; i < 3; i++)
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, i, true), 0);
		swc_t_job_expect(job, 0);
		swc_t_job_check_sum(job);
	}
	KUNIT_EXPECT_EQ(test, swc_t_first_comm(c)->failed, 3);
	KUNIT_EXPECT_EQ(test, swc_t_first_comm(c)->completed, 3);
	swc_t_comm_end(c);
}

/* The last rank arrives just after the one that differs, before the mismatch is reported. */
struct last {
	struct swc_req *req;
	u32 after;
};

static void last_probe(void *data, const struct swc_op *op, u32 rank)
{
	struct last *last = data;
	struct swc_req *req = last->req;

	if (rank != last->after || !req)
		return;
	last->req = NULL;
	if (swc_match(req, false))
		swc_req_drop(req);
}

static void last_complete(struct swc_req *req)
{
	struct swc_t_done *done = (void *)(uintptr_t)req->desc.user_data;

	done->result = req->result;
	atomic_inc(&done->calls);
	complete(&done->done);
	swc_req_put(req);
}

static void operation_mismatch_and_last(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 3, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);
	struct last last = { .after = 1 };
	u32 r;

	swc_t_job_init(job, c, swc_t_direct, 10000, false);
	job->desc[1].count = 10;
	job->desc[2].user_data = (uintptr_t)&job->done[2];
	init_completion(&job->done[2].done);
	last.req = swc_req_create(&c->rank[2].ctx, swc_member_get(&c->rank[2].ctx, c->rank[2].handle),
				    &job->desc[2], NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(last.req));
	last.req->complete = last_complete;
	KUNIT_ASSERT_EQ(test, register_trace_swc_match(last_probe, &last), 0);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, false), 0);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, false), 0);
	unregister_trace_swc_match(last_probe, &last);
	tracepoint_synchronize_unregister();
	KUNIT_EXPECT_NULL(test, last.req);
	swc_t_job_expect(job, -EPROTO);
	/* No data may have been copied. */
	for (r = 0; r < 3; r++) {
		struct swc_region *recv = swc_t_region(c, r, job->desc[r].recv_region);

		KUNIT_EXPECT_EQ(test, *(u64 *)swc_t_at(recv, 0), ~0ull);
	}
	swc_t_comm_end(c);
}

/* A failed operation keeps its place in the window until the last rank has arrived. */
static void operation_failed_in_window(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 3, SWC_T_NO_DEADLINE);
	struct swc_t_done *done = kunit_kcalloc(test, 3 * (SWC_MAX_INFLIGHT + 1), sizeof(*done), GFP_KERNEL);
	struct swc_t_job *job = swc_t_job_new(test), *bad = swc_t_job_new(test);
	u32 i, r;

	KUNIT_ASSERT_NOT_NULL(test, done);
	swc_t_job_init(job, c, swc_t_direct, 64, false);
	swc_t_job_init(bad, c, swc_t_direct, 64, false);
	bad->desc[1].count = 63;
	for (r = 0; r < 2; r++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(bad, r, true), 0);
	for (r = 0; r < 2; r++)
		KUNIT_EXPECT_EQ(test, swc_t_result(&bad->done[r]), -EPROTO);
	for (i = 1; i < SWC_MAX_INFLIGHT; i++)
		for (r = 0; r < 2; r++)
			KUNIT_EXPECT_EQ(test, swc_t_submit(c, r, &job->desc[r], &done[3 * i + r], true), 0);
	/* Fewer in flight than allowed, but the failed one counts. */
	KUNIT_EXPECT_EQ(test, swc_t_submit(c, 0, &job->desc[0], &done[3 * i], true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(bad, 2, true), 0);
	KUNIT_EXPECT_EQ(test, swc_t_result(&bad->done[2]), -EPROTO);
	KUNIT_EXPECT_EQ(test, swc_t_submit(c, 0, &job->desc[0], &done[3 * i], true), 0);
	KUNIT_EXPECT_EQ(test, swc_t_submit(c, 1, &job->desc[1], &done[3 * i + 1], true), 0);
	for (i = 1; i <= SWC_MAX_INFLIGHT; i++) {
		KUNIT_EXPECT_EQ(test, swc_t_submit(c, 2, &job->desc[2], &done[3 * i + 2], true), 0);
		for (r = 0; r < 3; r++)
			KUNIT_EXPECT_EQ(test, swc_t_result(&done[3 * i + r]), 0);
	}
	swc_t_job_check_sum(job);
	swc_t_comm_end(c);
}

static struct swc_req *make_request(struct kunit *test, struct swc_t_comm *c, const struct swc_desc *desc)
{
	struct swc_ctx *ctx = &c->rank[0].ctx;
	struct swc_req *req = swc_req_create(ctx, swc_member_get(ctx, c->rank[0].handle), desc, NULL);

	KUNIT_ASSERT_FALSE(test, IS_ERR(req));
	return req;
}

/* The memory of a request serves the next one of its rank, and nothing of the first is left in it. */
static void operation_spare(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 2, SWC_T_NO_DEADLINE);
	struct swc_member *member = c->rank[0].member;
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_req *first, *second;
	u32 r;

	swc_t_job_init(job, c, swc_t_direct, 64, false);
	first = make_request(test, c, &job->desc[0]);
	second = make_request(test, c, &job->desc[0]);
	KUNIT_EXPECT_PTR_NE(test, first, second);
	first->complete = last_complete;
	first->uring_state = 1;
	first->tasks->step = first->tasks->end;
	first->tasks->copying = true;
	swc_req_drop(first);
	KUNIT_EXPECT_PTR_EQ(test, member->spare, first);
	/* One is enough. */
	swc_req_drop(second);
	KUNIT_EXPECT_PTR_EQ(test, member->spare, first);
	KUNIT_EXPECT_EQ(test, refcount_read(&first->ref), 0);

	second = make_request(test, c, &job->desc[0]);
	KUNIT_EXPECT_PTR_EQ(test, second, first);
	KUNIT_EXPECT_NULL(test, member->spare);
	KUNIT_EXPECT_EQ(test, refcount_read(&second->ref), 1);
	KUNIT_EXPECT_NULL(test, second->complete);
	KUNIT_EXPECT_EQ(test, second->uring_state, 0);
	KUNIT_EXPECT_NE(test, second->tasks->step, second->tasks->end);
	KUNIT_EXPECT_FALSE(test, second->tasks->copying);
	swc_req_drop(second);

	for (r = 0; r < 2; r++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, r, true), 0);
	swc_t_job_expect(job, 0);
	swc_t_job_check_sum(job);
	swc_t_comm_end(c);
}

#define EXPECT_REFUSED(error, ...) do {							\
	struct swc_desc d = job->desc[0];						\
											\
	__VA_ARGS__;									\
	KUNIT_EXPECT_EQ_MSG(test, swc_t_submit(c, 0, &d, &done, true), error, #__VA_ARGS__);	\
	KUNIT_EXPECT_EQ(test, c->rank[0].member->next_seq, 0);				\
	KUNIT_EXPECT_EQ(test, atomic_read(&c->rank[0].ctx.users), 1);			\
} while (0)

/* Refused because of its buffers: rank 0 takes its sequence number, and rank 1 gets an error. */
#define EXPECT_COUNTED(error, ...) do {							\
	struct swc_desc d = job->desc[0];						\
	u64 before = c->rank[0].member->next_seq;					\
											\
	__VA_ARGS__;									\
	KUNIT_EXPECT_EQ_MSG(test, swc_t_submit(c, 0, &d, &done, true), 0, #__VA_ARGS__);	\
	KUNIT_EXPECT_EQ_MSG(test, swc_t_result(&done), error, #__VA_ARGS__);		\
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);			\
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[1]), -ECANCELED);			\
	KUNIT_EXPECT_EQ(test, job->done[1].culprit, 0);					\
	KUNIT_EXPECT_EQ(test, c->rank[0].member->next_seq, before + 1);			\
	KUNIT_EXPECT_EQ(test, atomic_read(&c->rank[0].ctx.users), 1);			\
} while (0)

static void operation_refused(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 2, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_done done;
	struct swc_plan_writer *p;
	u32 not_in_place, varies, huge;
	int i;

	swc_t_job_init(job, c, swc_t_direct, 512, false);
	p = swc_t_direct(test, 2, 0);
	p->hdr.flags = SWC_PLAN_NOT_IN_PLACE;
	not_in_place = swc_t_load(c, 0, p);
	p->hdr.flags = SWC_PLAN_ORDER_VARIES;
	varies = swc_t_load(c, 0, p);
	p = swc_t_plan(test, SWC_ALLREDUCE, 2, 0, 1);
	p->hdr.window[SWC_BUF_SEND].nblocks = 0;
	p->hdr.window[SWC_BUF_RECV].nblocks = 0;
	p->hdr.window[SWC_BUF_SCRATCH].nblocks = 1;
	swc_plan_write_channel(p);
	huge = swc_t_load(c, 0, p);

	EXPECT_REFUSED(-EINVAL, d.resv0 = 1);
	EXPECT_REFUSED(-ENOENT, d.plan = 0);
	EXPECT_REFUSED(-ENOENT, d.plan = 0xffffffff);
	EXPECT_REFUSED(-EINVAL, d.coll = SWC_REDUCE);
	EXPECT_REFUSED(-EOVERFLOW, d.count = U64_MAX);
	EXPECT_REFUSED(-EOVERFLOW, d.count = 1ull << 44);
	EXPECT_REFUSED(-EINVAL, d.send = 4);
	EXPECT_REFUSED(-EINVAL, d.dtype = SWC_F64; d.plan = varies);

	EXPECT_COUNTED(-ENOENT, d.send_region = 999);
	EXPECT_COUNTED(-ENOENT, d.recv_region = 0x80000000);
	EXPECT_COUNTED(-EFAULT, d.send = 16);
	EXPECT_COUNTED(-EFAULT, d.recv = 0xfffffffffffffff8);
	EXPECT_COUNTED(-EFAULT, d.count = 514);
	EXPECT_COUNTED(-EINVAL, d.recv_region = d.send_region; d.recv = 8);
	EXPECT_COUNTED(-EINVAL, d.recv_region = d.send_region; d.plan = not_in_place);
	EXPECT_COUNTED(-EFBIG, d.plan = huge; d.count = 1ull << 43);
	KUNIT_EXPECT_EQ(test, atomic_read(&c->rank[0].ctx.live_regions), 2);

	/* The completion ring of the context has 128 entries, and no consumer. */
	job->desc[0].flags = SWC_OP_RING;
	for (i = 0; i < 128; i++) {
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), 0);
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);
		swc_t_job_expect(job, 0);
	}
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), -EBUSY);
	swc_t_comm_end(c);
}

/* A request that is not matched releases its entry of the completion ring. */
static void operation_reservation(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 2, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);
	int i;

	swc_t_job_init(job, c, swc_t_direct, 512, false);
	job->desc[0].flags = SWC_OP_RING;
	swc_comm_abort(swc_t_first_comm(c), -ECONNABORTED, -1, 0, "test");
	for (i = 0; i < 300; i++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), -ECONNABORTED);
	KUNIT_EXPECT_EQ(test, swc_ring_reserve(c->rank[0].ctx.ring), 0);
	swc_ring_unreserve(c->rank[0].ctx.ring);
	swc_t_comm_end(c);
}

static void operation_deadline(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 3, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_done *early = kunit_kcalloc(test, 2, sizeof(*early), GFP_KERNEL);
	u64 start = ktime_get_ns();
	u32 r;

	KUNIT_ASSERT_NOT_NULL(test, early);
	swc_t_job_init(job, c, swc_t_direct, 64, false);
	/* A short deadline counts between two long ones. */
	KUNIT_EXPECT_EQ(test, swc_t_submit(c, 0, &job->desc[0], &early[0], true), 0);
	job->desc[2].timeout_ms = 1000;
	KUNIT_EXPECT_EQ(test, swc_t_submit(c, 2, &job->desc[2], &early[1], true), 0);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), 0);
	for (r = 0; r < 2; r++) {
		KUNIT_EXPECT_EQ(test, swc_t_result(&early[r]), -ETIMEDOUT);
		KUNIT_EXPECT_EQ(test, early[r].culprit, 1);
	}
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[0]), -ETIMEDOUT);
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 1000 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, swc_t_first_comm(c)->status, SWC_COMM_ABORTED);
	KUNIT_EXPECT_TRUE_MSG(test, strstr(swc_t_first_comm(c)->text, "missing: rank 1"), "%s",
			      swc_t_first_comm(c)->text);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), -ECONNABORTED);
	swc_t_comm_end(c);
}

struct leaving {
	struct swc_t_comm *c;
	int result;
	int left;
	bool done;
};

static void leave_complete(struct swc_req *req)
{
	struct leaving *l = (void *)(uintptr_t)req->desc.user_data;

	l->result = req->result;
	swc_req_put(req);
	l->left = swc_comm_leave(&l->c->rank[0].ctx, l->c->rank[0].handle);
	l->done = true;
}

/*
 * A process reads a completion in the ring and leaves while the submitter is still in the kernel: the
 * operation must not outlive the communicator, where its memory is kept. If it does, swc_op_release() warns.
 */
static void operation_last_put(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 1, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);
	struct leaving l = { .c = c };
	struct swc_desc d;
	struct swc_req *req;

	swc_t_job_init(job, c, swc_t_direct, 64, false);
	d = job->desc[0];
	d.user_data = (uintptr_t)&l;
	req = make_request(test, c, &d);
	req->complete = leave_complete;
	KUNIT_EXPECT_EQ(test, swc_match(req, true), 0);
	KUNIT_EXPECT_TRUE(test, l.done);
	KUNIT_EXPECT_EQ(test, l.result, 0);
	KUNIT_EXPECT_EQ(test, l.left, 0);
	swc_t_comm_end(c);
}

/* A member has left behind an operation that has failed: others get its error, but no numbers after it. */
static void operation_reserve_left(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 2, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);
	u64 base;

	swc_t_job_init(job, c, swc_t_direct, 64, false);
	job->desc[1].send_region = 999;
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[1]), -ENOENT);
	KUNIT_EXPECT_EQ(test, swc_comm_leave(&c->rank[1].ctx, c->rank[1].handle), 0);
	KUNIT_EXPECT_EQ(test, swc_match_reserve(&c->rank[0].ctx, c->rank[0].member, 2, &base), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), 0);
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[0]), -ECANCELED);
	swc_t_comm_end(c);
}

/* Who waits for members too long must not end a communicator that all have joined meanwhile. */
static void operation_joined_late(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm(test, 2, SWC_T_NO_DEADLINE);
	struct swc_t_job *job = swc_t_job_new(test);

	swc_t_job_init(job, c, swc_t_direct, 64, false);
	KUNIT_EXPECT_FALSE(test, swc_comm_abort_forming(swc_t_first_comm(c), -ETIMEDOUT, "test"));
	KUNIT_EXPECT_EQ(test, swc_t_first_comm(c)->status, SWC_COMM_LIVE);
	swc_t_job_run(job, 0, true);
	swc_t_comm_end(c);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(operation_window),
	KUNIT_CASE_PARAM(operation_mismatch, change_gen_params),
	KUNIT_CASE(operation_mismatch_and_last),
	KUNIT_CASE(operation_failed_in_window),
	KUNIT_CASE(operation_spare),
	KUNIT_CASE(operation_refused),
	KUNIT_CASE(operation_reservation),
	KUNIT_CASE(operation_deadline),
	KUNIT_CASE(operation_last_put),
	KUNIT_CASE(operation_reserve_left),
	KUNIT_CASE(operation_joined_late),
	{}
};

struct kunit_suite swc_operation_suite = { .name = "swc_operation", .test_cases = cases };
