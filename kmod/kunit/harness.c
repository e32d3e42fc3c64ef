// SPDX-License-Identifier: GPL-2.0-only
/*
 * Communicators of kernel threads for the suites: contexts without a file, buffers of kernel pages, and
 * operations that complete a struct completion. At the end of each test everything must have been freed:
 * requests, regions, charged pages, and the communicator itself.
 */
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "comm/create.h"
#include "plan/plan_conn.h"
#include "plan/send_index.h"
#include "net.h"
#include "mem/completion_ring.h"
#include "kunit/harness.h"

/* Farther apart than a region is long, so that regions of one context do not seem to overlap. */
#define FAKE_ADDR(i)	((u64)(i) << 40)

/* swc_t_comm_end() does what is to be done. */
static void ctx_clean(struct work_struct *work)
{
}

static void ctx_init(struct swc_t_comm *c, struct swc_ctx *ctx)
{
	ctx->mm = c->mm;
	swc_ctx_init(ctx, ctx_clean);
	ctx->account = swc_account_get(current_euid());
	KUNIT_ASSERT_NOT_NULL(c->test, ctx->account);
	ctx->ring = swc_ring_create(128, ctx->account);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(c->test, ctx->ring);
}

/* ------------------------------------------------------------------ time slices */

static atomic64_t slice_passed;

u64 swc_t_slice_clock_ns(void)
{
	return ktime_get_ns() + atomic64_read(&slice_passed);
}

void swc_t_slice_pass(u64 ns)
{
	atomic64_add(ns, &slice_passed);
}

/* ------------------------------------------------------------------ nodes */

enum swc_transport_kind swc_t_transport = SWC_TRANSPORT_RDMA;

/* The address that uml/init.c gives to the interface below the RDMA device. */
void swc_t_addr(struct sockaddr_storage *addr, bool ipv6)
{
	struct sockaddr_in6 *in6 = (void *)addr;
	struct sockaddr_in *in4 = (void *)addr;

	memset(addr, 0, sizeof(*addr));
	if (ipv6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(swc_transport_port(swc_t_transport));
		in6->sin6_addr.s6_addr[0] = 0xfd;
		in6->sin6_addr.s6_addr[15] = 1;
	} else {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(swc_transport_port(swc_t_transport));
		in4->sin_addr.s_addr = htonl(0x0a000001);
	}
}

/* The node of each rank, then a page for each node with its paths to the others. */
static void write_tables(struct swc_t_comm *c)
{
	const struct swc_t_layout *on = c->on;
	struct kunit *test = c->test;
	struct sockaddr_storage addr;
	struct swc_node_path path;
	u32 node, other, p;

	/* swc_comm_create() copies the tables from user memory. */
	c->tables = kunit_vm_mmap(test, NULL, 0, (on->nnodes + 1) * PAGE_SIZE, PROT_READ | PROT_WRITE,
				  MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, c->tables, 0ul);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(c->tables));
	c->user_mm = current->mm;
	KUNIT_ASSERT_EQ(test, copy_to_user((void __user *)c->tables, on->node, sizeof(on->node)), 0ul);
	swc_t_addr(&addr, on->ipv6);
	for (node = 0; node < on->nnodes; node++) {
		unsigned long to = c->tables + (node + 1) * PAGE_SIZE;

		for (other = 0; other < on->nnodes; other++) {
			for (p = 0; p < on->npaths && other != node; p++) {
				path = (struct swc_node_path){ .node = other, .path = p,
							       .transport = swc_t_transport };
				memcpy(path.local, &addr, sizeof(path.local));
				memcpy(path.remote, &addr, sizeof(path.remote));
				KUNIT_ASSERT_EQ(test, copy_to_user((void __user *)to, &path,
								   sizeof(path)), 0ul);
				to += sizeof(path);
			}
		}
	}
}

static void set_nodes(const struct swc_t_rank *r, struct swc_comm_create *join)
{
	const struct swc_t_comm *c = r->comm;

	join->nnodes = c->on->nnodes;
	join->rank_node = c->tables;
	join->paths = c->tables + (c->on->node[r->rank] + 1) * PAGE_SIZE;
	join->npaths = (c->on->nnodes - 1) * c->on->npaths;
}

/* ------------------------------------------------------------------ communicators */

static int join_thread(void *data)
{
	struct swc_t_rank *r = data;
	struct swc_comm_create join = {
		.nranks = r->comm->nranks,
		.rank = r->rank,
		.timeout_ms = r->comm->timeout_ms,
	};

	memcpy(join.id, r->comm->id, sizeof(join.id));
	if (r->comm->on) {
		set_nodes(r, &join);
		kthread_use_mm(r->comm->user_mm);
	}
	r->joined = swc_comm_create(&r->ctx, &join);
	r->handle = join.comm;
	if (r->comm->on)
		kthread_unuse_mm(r->comm->user_mm);
	complete(&r->join_done);
	return 0;
}

struct swc_t_comm *swc_t_comm(struct kunit *test, u32 nranks, u32 timeout_ms)
{
	return swc_t_comm_on(test, nranks, timeout_ms, NULL);
}

struct swc_t_comm *swc_t_comm_on(struct kunit *test, u32 nranks, u32 timeout_ms,
				 const struct swc_t_layout *on)
{
	struct swc_t_comm *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->test = test;
	c->nranks = nranks;
	c->timeout_ms = timeout_ms;
	get_random_bytes(c->id, sizeof(c->id));
	c->mm = current->active_mm;
	mmgrab(c->mm);
	c->pinned = atomic64_read(&c->mm->pinned_vm);
	c->on = on;
	if (on)
		write_tables(c);
	for (i = 0; i < nranks; i++) {
		struct swc_t_rank *r = &c->rank[i];
		struct task_struct *task;

		r->comm = c;
		r->rank = i;
		init_completion(&r->join_done);
		ctx_init(c, &r->ctx);
		task = kthread_run(join_thread, r, "swc-join-%u", i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	}
	for (i = 0; i < nranks; i++)
		wait_for_completion(&c->rank[i].join_done);
	for (i = 0; i < nranks; i++) {
		struct swc_t_rank *r = &c->rank[i];

		KUNIT_ASSERT_EQ(test, r->joined, 0);
		r->member = swc_member_get(&r->ctx, r->handle);
		KUNIT_ASSERT_NOT_NULL(test, r->member);
		/* The handle holds a reference. */
		swc_member_put(r->member);
	}
	return c;
}

struct swc_comm *swc_t_rank_comm(struct swc_t_comm *c, u32 rank)
{
	return c->rank[rank].member->comm;
}

struct swc_comm *swc_t_first_comm(struct swc_t_comm *c)
{
	return swc_t_rank_comm(c, 0);
}

static bool comm_exists(void)
{
	u64 cursor = 0;
	struct swc_comm *left = swc_comm_after(&cursor);

	if (left)
		swc_comm_put(left);
	return left;
}

void swc_t_comm_end(struct swc_t_comm *c)
{
	struct kunit *test = c->test;
	u32 i;

	for (i = 0; i < c->nranks; i++) {
		struct swc_ctx *ctx = &c->rank[i].ctx;

		/* As swc_release() does. */
		swc_comm_ctx_died(ctx, "test ends");
		swc_ctx_put(ctx);
		wait_for_completion(&ctx->idle);
		cancel_work_sync(&ctx->clean_work);
		swc_comm_ctx_drop(ctx);
		swc_region_drain(ctx);
		swc_ring_destroy(ctx->ring);
		swc_account_put(ctx->account);
		xa_destroy(&ctx->members);
		xa_destroy(&ctx->regions);
		KUNIT_EXPECT_EQ(test, atomic_read(&ctx->users), 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&ctx->live_regions), 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&ctx->nregions), 0);
		KUNIT_EXPECT_EQ(test, ctx->cache.n, 0);
	}
	/*
	 * The work item of the last operation may be returning now. Connections linger until their peers have
	 * confirmed the end.
	 */
	for (i = 0; i < SWC_T_HANG / 20 && comm_exists(); i++)
		msleep(20);
	flush_workqueue(swc_free_wq);
	KUNIT_EXPECT_FALSE(test, comm_exists());
	KUNIT_EXPECT_EQ(test, atomic64_read(&c->mm->pinned_vm), c->pinned);
	mmdrop(c->mm);
	if (c->on) {
		/* kunit_vm_mmap() made it for this thread, and would leak a reference. */
		kthread_unuse_mm(c->user_mm);
		mmput(c->user_mm);
	}
}

u32 swc_t_load(struct swc_t_comm *c, u32 rank, struct swc_plan_writer *p)
{
	struct kunit *test = c->test;
	struct swc_plan *plan = kzalloc(sizeof(*plan), GFP_KERNEL);
	char why[SWC_TEXT_BYTES] = "";
	u32 bytes;
	void *data = swc_t_pack(test, p, &bytes);
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, plan);
	kref_init(&plan->ref);
	plan->data = kmemdup(data, bytes, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, plan->data);
	ret = swc_plan_check(plan->data, bytes, &plan->view, why, sizeof(why));
	KUNIT_ASSERT_EQ_MSG(test, ret, 0, "%s", why);
	plan->send_index = swc_send_index_create(&plan->view);
	KUNIT_ASSERT_NOT_NULL(test, plan->send_index);
	if (c->on) {
		plan->net = swc_plan_net_create(c->rank[rank].member->comm, &plan->view);
		KUNIT_ASSERT_FALSE(test, IS_ERR(plan->net));
	}
	ret = xa_alloc(&c->rank[rank].member->plans, &plan->handle, plan, XA_LIMIT(1, 0xffff), GFP_KERNEL);
	KUNIT_ASSERT_EQ(test, ret, 0);
	atomic_inc(&c->rank[rank].member->nplans);
	return plan->handle;
}

u32 swc_t_buffer(struct swc_t_comm *c, u32 rank, u64 bytes)
{
	struct swc_ctx *ctx = &c->rank[rank].ctx;
	struct swc_region *region = swc_region_scratch(ctx, bytes);
	u32 handle;

	KUNIT_ASSERT_FALSE(c->test, IS_ERR(region));
	KUNIT_ASSERT_EQ(c->test, xa_alloc(&ctx->regions, &handle, region, xa_limit_31b, GFP_KERNEL), 0);
	atomic_inc(&ctx->nregions);
	region->addr = FAKE_ADDR(handle);
	return handle;
}

struct swc_region *swc_t_region(struct swc_t_comm *c, u32 rank, u32 handle)
{
	return xa_load(&c->rank[rank].ctx.regions, handle);
}

/* Not by the code under test: a linear search of the extents. */
void *swc_t_extents_at(const struct swc_extents *extents, u64 offset)
{
	const struct swc_extent *e = extents->extent, *end = e + extents->nextents;

	for (; e < end; e++)
		if (offset >= e->offset && offset < e[1].offset)
			return e->kaddr + (offset - e->offset);
	return NULL;
}

u64 swc_t_extents_bytes(const struct swc_extents *extents)
{
	return extents->extent[extents->nextents].offset;
}

void *swc_t_at(struct swc_region *region, u64 offset)
{
	return swc_t_extents_at(&region->extents, offset);
}

/* ------------------------------------------------------------------ operations */

static void done_complete(struct swc_req *req)
{
	struct swc_t_done *done = (void *)(uintptr_t)req->desc.user_data;

	done->result = req->result;
	done->culprit = req->culprit;
	atomic_inc(&done->calls);
	complete(&done->done);
	swc_req_put(req);
}

int swc_t_submit(struct swc_t_comm *c, u32 rank, const struct swc_desc *desc, struct swc_t_done *done,
		 bool inline_ok)
{
	struct swc_ctx *ctx = &c->rank[rank].ctx;
	struct swc_member *member = swc_member_get(ctx, c->rank[rank].handle);
	struct swc_desc d = *desc;
	struct swc_req *req;
	int ret;

	if (!member)
		return -ENOENT;
	init_completion(&done->done);
	atomic_set(&done->calls, 0);
	d.user_data = (uintptr_t)done;
	req = swc_req_create(ctx, member, &d, NULL);
	if (IS_ERR(req))
		return PTR_ERR(req);
	req->complete = done_complete;
	ret = swc_match(req, inline_ok);
	if (ret)
		swc_req_drop(req);
	return ret;
}

int swc_t_result(struct swc_t_done *done)
{
	if (!wait_for_completion_timeout(&done->done, msecs_to_jiffies(SWC_T_HANG)))
		return -ETIME;
	return done->result;
}

/* ------------------------------------------------------------------ whole jobs */

u64 swc_t_job_value(u32 rank, u64 i)
{
	return rank * 1000003ull + i * (rank + 1);
}

struct swc_t_job *swc_t_job_new(struct kunit *test)
{
	struct swc_t_job *job = kunit_kzalloc(test, sizeof(*job), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, job);
	return job;
}

static void clear(struct swc_t_job *job, struct swc_t_comm *c, u64 count)
{
	memset(job, 0, sizeof(*job));
	job->c = c;
	job->count = count;
}

static void init_rank(struct swc_t_job *job, u32 rank, swc_t_planner planner, bool in_place)
{
	struct swc_t_comm *c = job->c;
	struct swc_desc *d = &job->desc[rank];

	d->coll = SWC_ALLREDUCE;
	d->dtype = SWC_U64;
	d->redop = SWC_SUM;
	d->count = job->count;
	d->plan = swc_t_load(c, rank, planner(c->test, c->nranks, rank));
	/* One element more than needed: an empty vector has buffers, too. */
	d->send_region = swc_t_buffer(c, rank, job->count * sizeof(u64) + 8);
	d->recv_region = in_place ? d->send_region : swc_t_buffer(c, rank, job->count * sizeof(u64) + 8);
}

void swc_t_job_init(struct swc_t_job *job, struct swc_t_comm *c, swc_t_planner planner, u64 count,
		    bool in_place)
{
	u32 r;

	clear(job, c, count);
	for (r = 0; r < c->nranks; r++)
		init_rank(job, r, planner, in_place);
	swc_t_job_fill(job);
}

void swc_t_job_init_for(struct swc_t_job *job, struct swc_t_comm *c, u32 rank, swc_t_planner planner,
			u64 count)
{
	clear(job, c, count);
	init_rank(job, rank, planner, false);
}

void swc_t_job_fill(struct swc_t_job *job)
{
	u64 i;
	u32 r;

	for (r = 0; r < job->c->nranks; r++) {
		struct swc_region *send = swc_t_region(job->c, r, job->desc[r].send_region);
		struct swc_region *recv = swc_t_region(job->c, r, job->desc[r].recv_region);

		/* The last element lies behind the vector. */
		for (i = 0; i <= job->count; i++) {
			*(u64 *)swc_t_at(recv, i * 8) = ~0ull;
			*(u64 *)swc_t_at(send, i * 8) = i < job->count ? swc_t_job_value(r, i) : ~0ull;
		}
	}
}

int swc_t_job_submit(struct swc_t_job *job, u32 rank, bool inline_ok)
{
	return swc_t_submit(job->c, rank, &job->desc[rank], &job->done[rank], inline_ok);
}

/* The operation hangs. Abort it: it must not outlive the test. */
static void abort_hung(struct swc_t_job *job, struct swc_t_done *done)
{
	u32 r;

	for (r = 0; r < job->c->nranks; r++)
		swc_comm_abort(swc_t_rank_comm(job->c, r), -ESHUTDOWN, -1, 0, "the operation hangs");
	wait_for_completion(&done->done);
}

/* All ranks have submitted: each request completes once, with @result. */
void swc_t_job_expect(struct swc_t_job *job, int result)
{
	struct kunit *test = job->c->test;
	u32 r;

	for (r = 0; r < job->c->nranks; r++) {
		int got = swc_t_result(&job->done[r]);

		KUNIT_EXPECT_EQ_MSG(test, got, result, "rank %u: %s", r, swc_t_rank_comm(job->c, r)->text);
		if (got == -ETIME)
			abort_hung(job, &job->done[r]);
		KUNIT_EXPECT_EQ(test, atomic_read(&job->done[r].calls), 1);
	}
}

void swc_t_job_check_sum(struct swc_t_job *job)
{
	struct kunit *test = job->c->test;
	u32 r, k, n = job->c->nranks;
	u64 i;

	for (r = 0; r < n; r++) {
		struct swc_region *recv = swc_t_region(job->c, r, job->desc[r].recv_region);

		for (i = 0; i < job->count; i++) {
			u64 want = 0, got = *(u64 *)swc_t_at(recv, i * 8);

			for (k = 0; k < n; k++)
				want += swc_t_job_value(k, i);
			if (got == want)
				continue;
			KUNIT_FAIL(test, "rank %u, element %llu of %llu: %llx, not %llx", r, i,
				   job->count, got, want);
			return;
		}
		KUNIT_EXPECT_EQ(test, *(u64 *)swc_t_at(recv, job->count * 8), ~0ull);
	}
}

void swc_t_job_run(struct swc_t_job *job, u32 first, bool inline_ok)
{
	u32 r, n = job->c->nranks;

	for (r = 0; r < n; r++)
		KUNIT_EXPECT_EQ(job->c->test, swc_t_job_submit(job, (first + r) % n, inline_ok), 0);
	swc_t_job_expect(job, 0);
	swc_t_job_check_sum(job);
}

/* ------------------------------------------------------------------ mappings */

atomic_t swc_t_refuse_map;
static atomic_t refuse_ms, asked, refused;
static unsigned long refuse_until; /* 0: nothing has been refused yet */

void swc_t_refuse_maps(int ms)
{
	atomic_set(&refused, 0);
	WRITE_ONCE(refuse_until, 0);
	atomic_set(&refuse_ms, ms);
}

int swc_t_maps_refused(void)
{
	return atomic_read(&refused);
}

bool swc_t_map_refused(void)
{
	int ms = atomic_read(&refuse_ms);
	bool yes = ms < 0;

	if (ms > 0) {
		cmpxchg(&refuse_until, 0, (jiffies + msecs_to_jiffies(ms)) | 1);
		yes = time_before(jiffies, READ_ONCE(refuse_until)) && atomic_inc_return(&asked) % 4;
	}
	yes |= atomic_dec_if_positive(&swc_t_refuse_map) == 0;
	if (yes)
		atomic_inc(&refused);
	return yes;
}
