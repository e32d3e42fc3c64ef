// SPDX-License-Identifier: GPL-2.0-only
/* Concurrency: many operations of a communicator, many communicators of a process, threads. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "coll.h"

#define NCOLLS (SWINGCOLL_SCATTER + 1)

static struct swingcoll_id id, more_ids[8];
static int use_uring;

static int inflight(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .slot_max = -1, .use_io_uring = use_uring };
	struct swingcoll_req *req[64], *extra;
	struct swingcoll_comm *comm;
	struct coll_case c[64];
	void *mem[64];
	int ret;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, 3, rank, &opts), 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 64; i++) {
			void *send, *recv;

			c[i] = (struct coll_case){ .coll = i % NCOLLS,
						   .dtype = SWINGCOLL_I32,
						   .count = 100 + i * 13,
						   .in_place = i & 1 };
			if (coll_has_root(c[i].coll))
				c[i].root = i / NCOLLS % 3;
			if (c[i].coll == SWINGCOLL_BARRIER)
				c[i].count = 0;
			mem[i] = malloc(coll_bytes(&c[i], 3));
			coll_buffers(&c[i], 3, rank, mem[i], &send, &recv);
			coll_fill(&c[i], 3, rank, send, i + round);
			CHECK_EQ(coll_icall(&c[i], send, recv, comm, &req[i]), 0);
		}
		/* One more than may be in flight: refused, unless some are complete already. */
		ret = swingcoll_ibarrier(comm, &extra);
		CHECK(ret == 0 || ret == -EAGAIN);
		for (int k = 0; k < 64; k++) {
			int i = (k * 37) % 64; /* not in order */
			void *send, *recv;

			CHECK_EQ(swingcoll_wait(req[i], NULL), 0);
			coll_buffers(&c[i], 3, rank, mem[i], &send, &recv);
			if (c[i].coll != SWINGCOLL_BARRIER)
				CHECK_EQ(coll_check(&c[i], 3, rank, recv, i + round), 0);
			free(mem[i]);
		}
		if (ret == -EAGAIN)
			CHECK_EQ(swingcoll_ibarrier(comm, &extra), 0);
		CHECK_EQ(swingcoll_wait(extra, NULL), 0);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Operations of several communicators, submitted in different orders by the ranks. */
static int communicators(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm[8];
	struct swingcoll_req *req[8];
	struct coll_case c = {
		.coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = 9001, .in_place = true
	};
	void *mem[8];

	(void)arg;
	for (int k = 0; k < 8; k++) {
		struct swingcoll_comm_opts opts = { .flags = k & 1 ? SWINGCOLL_URGENT : 0 };

		CHECK_EQ(swingcoll_comm_create(&comm[k], &more_ids[k], 3, (rank + k) % 3, &opts),
			 0);
		mem[k] = malloc(coll_bytes(&c, 3));
	}
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 8; i++) {
			int k = rank & 1 ? 7 - i : i;

			coll_fill(&c, 3, (rank + k) % 3, mem[k], round);
			CHECK_EQ(coll_icall(&c, mem[k], mem[k], comm[k], &req[k]), 0);
		}
		for (int k = 0; k < 8; k++) {
			CHECK_EQ(swingcoll_wait(req[k], NULL), 0);
			CHECK_EQ(coll_check(&c, 3, (rank + k) % 3, mem[k], round), 0);
		}
	}
	for (int k = 0; k < 8; k++)
		CHECK_EQ(swingcoll_comm_destroy(comm[k]), 0);
	return 0;
}

struct thread_arg {
	struct swingcoll_id *id;
	int nranks, rank, ret;
	int64_t slot_max;
};

static int thread_body(const struct thread_arg *a)
{
	struct swingcoll_comm_opts opts = { .slot_max = a->slot_max };
	struct swingcoll_comm *comm;

	CHECK_EQ(swingcoll_comm_create(&comm, a->id, a->nranks, a->rank, &opts), 0);
	for (int i = 0; i < 30; i++) {
		struct coll_case c = { .coll = i % NCOLLS,
				       .dtype = SWINGCOLL_I64,
				       .count = i % NCOLLS == SWINGCOLL_BARRIER ? 0 : 333 + i,
				       .in_place = i & 1 };
		void *mem;
		int ret;

		if (coll_has_root(c.coll))
			c.root = i / NCOLLS % a->nranks;
		mem = malloc(coll_bytes(&c, a->nranks));
		ret = coll_run(&c, mem, comm, i);
		free(mem);
		CHECK_EQ(ret, 0);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static void *thread(void *arg)
{
	struct thread_arg *a = arg;

	a->ret = thread_body(a);
	return NULL;
}

/* Two threads in each process; the first threads share a communicator, and so do the second ones. */
static int two_threads(uint32_t rank, void *arg)
{
	struct thread_arg a[2];
	pthread_t t[2];

	(void)arg;
	for (int k = 0; k < 2; k++) {
		a[k] = (struct thread_arg){
			.id = &more_ids[k], .nranks = 3, .rank = rank, .slot_max = k ? -1 : 0
		};
		CHECK_EQ(pthread_create(&t[k], NULL, thread, &a[k]), 0);
	}
	for (int k = 0; k < 2; k++) {
		pthread_join(t[k], NULL);
		CHECK_EQ(a[k].ret, 0);
	}
	return 0;
}

/* All ranks in one process. */
static int thread_ranks(uint32_t rank, void *arg)
{
	struct thread_arg a[4];
	pthread_t t[4];

	(void)rank;
	for (int k = 0; k < 4; k++) {
		a[k] = (struct thread_arg){
			.id = &id, .nranks = 4, .rank = k, .slot_max = *(int64_t *)arg
		};
		CHECK_EQ(pthread_create(&t[k], NULL, thread, &a[k]), 0);
	}
	for (int k = 0; k < 4; k++) {
		pthread_join(t[k], NULL);
		CHECK_EQ(a[k].ret, 0);
	}
	return 0;
}

/* Many operations of more ranks than CPUs: a lost wake-up becomes an error by the deadline. */
static int long_run(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .slot_max = *(int64_t *)arg,
					    .use_io_uring = use_uring,
					    .timeout_ms = 10000 };
	struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = 901 };
	struct swingcoll_comm *comm;
	void *mem = malloc(coll_bytes(&c, 6));

	CHECK_EQ(swingcoll_comm_create(&comm, &id, 6, rank, &opts), 0);
	for (int i = 0; i < 300; i++) {
		c.count = 1 + i * 31 % 900;
		if (coll_run(&c, mem, comm, i))
			return 1;
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	free(mem);
	return 0;
}

struct waiter {
	struct swingcoll_req *req;
	pid_t tid;
	int ret;
};

static void *wait_for(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	w->ret = swingcoll_wait(w->req, NULL);
	return NULL;
}

static int destroy_in_child(void *comm)
{
	float x = 0;

	CHECK_EQ(swingcoll_allreduce(&x, &x, 1, SWINGCOLL_F32, SWINGCOLL_SUM, comm), -EBADF);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* A process forks while several of its threads wait: one collects completions, the others wait for it. */
static int fork_beside_waiters(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .slot_max = -1, .use_io_uring = use_uring };
	struct swingcoll_comm *comm;
	struct waiter w[3] = { 0 };
	unsigned int *done = arg;
	pthread_t t[3];

	CHECK_EQ(swingcoll_comm_create(&comm, &id, 2, rank, &opts), 0);
	if (rank)
		CHECK(testlib_wait_count(done, 1));
	for (int i = 0; i < 3; i++)
		CHECK_EQ(swingcoll_ibarrier(comm, &w[i].req), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, wait_for, &w[i]), 0);
	if (!rank) {
		for (int i = 0; i < 3; i++) {
			while (!__atomic_load_n(&w[i].tid, __ATOMIC_ACQUIRE))
				sched_yield();
			CHECK(testlib_wait_asleep(w[i].tid));
		}
		CHECK_EQ(testlib_run_child(destroy_in_child, comm), 0);
		testlib_count(done);
	}
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pthread_join(t[i], NULL), 0);
		CHECK_EQ(w[i].ret, 0);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

int main(void)
{
	int64_t no_slots = -1, slots = 0;

	ksft_print_header();
	testlib_require_device();
	ksft_set_plan(11);

#define RUN(n, fn, arg, ...)                                                                       \
	do {                                                                                       \
		swingcoll_unique_id(&id);                                                          \
		for (unsigned int i_ = 0; i_ < ARRAY_SIZE(more_ids); i_++)                         \
			swingcoll_unique_id(&more_ids[i_]);                                        \
		ksft_test_result(!testlib_run_ranks(n, fn, arg), __VA_ARGS__);                     \
	} while (0)

	use_uring = 1;
	RUN(3, inflight, NULL, "64 in flight, by io_uring");
	RUN(6, long_run, &no_slots, "300 operations of 6 ranks, by io_uring");
	RUN(2, fork_beside_waiters, testlib_shared_alloc(sizeof(int)),
	    "a fork while threads wait, by io_uring");
	use_uring = -1;
	RUN(2, fork_beside_waiters, testlib_shared_alloc(sizeof(int)),
	    "a fork while threads wait, by ioctl");
	RUN(3, inflight, NULL, "64 in flight, by ioctl");
	RUN(6, long_run, &no_slots, "300 operations of 6 ranks, by ioctl");
	use_uring = 0;
	RUN(6, long_run, &slots, "300 operations of 6 ranks, through the slots");
	RUN(3, communicators, NULL, "8 communicators in each process, every other one urgent");
	RUN(3, two_threads, NULL, "two threads, each with a communicator");
	RUN(1, thread_ranks, &no_slots, "threads as ranks");
	RUN(1, thread_ranks, &slots, "threads as ranks, through the slots");
	ksft_finished();
}
