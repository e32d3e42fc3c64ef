// SPDX-License-Identifier: GPL-2.0-only
/*
 * Members that are killed, exec, close the device, leave or abort: the others get an error that names them, within a
 * second.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "testlib.h"

#define N 3
#define SOON_MS 1000
#define TRIES 10
#define DEADLINE_MS (2 * TESTLIB_EVENT_MS) /* not to be reached */

static uint8_t id[SWC_ID_BYTES];
static uint32_t small[1000];

/* The event, shared by parent and children. */
struct event {
	uint64_t when;	    /* in ms; 0: not yet */
	uint64_t took;	    /* until the last rank was notified */
	unsigned int ready; /* ranks that wait, or are about to */
	pid_t waiting[N];   /* their processes */
};

static struct event *event;

enum how {
	KILL,
	EXIT,
	EXEC,
	CLOSE,
	LEAVE,
	ABORT
};

/*
 * What survivors read of it, behind the rank and its pid. At an exec newer kernels close descriptors before they change
 * the address space, older ones afterwards.
 */
static const char *const told[] = {
	[KILL] = "was killed by signal 9",
	[EXIT] = "has exited with status 3",
	[EXEC] = "has ",
	[CLOSE] = "has closed the device",
	[LEAVE] = "left before operation",
	[ABORT] = "aborted the communicator",
};

struct job {
	const char *name;
	enum how how;
	bool uring;   /* survivors wait by io_uring */
	bool busy;    /* the victim has operations in flight, too */
	size_t count; /* not 0: the victim is killed among operations of this size */
	int error;
	bool copies; /* whose plans have many copies in a step */
};

static const struct job jobs[] = {
	{ "killed while others wait", KILL, false, false, 0, -ECONNRESET },
	{ "killed while others wait, io_uring", KILL, true, false, 0, -ECONNRESET },
	{ "killed with operations in flight", KILL, false, true, 0, -ECONNRESET },
	{ "killed with operations in flight, io_uring", KILL, true, true, 0, -ECONNRESET },
	{ "killed among large operations", KILL, false, false, 2 << 20, -ECONNRESET },
	{ "killed among large operations, io_uring", KILL, true, false, 2 << 20, -ECONNRESET },
	{ "killed among large copy steps", KILL, false, false, 2 << 20, -ECONNRESET, true },
	{ "killed among large copy steps, io_uring", KILL, true, false, 2 << 20, -ECONNRESET,
	  true },
	{ "exits", EXIT, false, false, 0, -ECONNRESET },
	{ "exec", EXEC, false, false, 0, -ECONNRESET },
	{ "exec with operations in flight", EXEC, false, true, 0, -ECONNRESET },
	{ "closes the device", CLOSE, false, false, 0, -ECONNRESET },
	{ "closes the device with operations in flight", CLOSE, false, true, 0, -ECONNRESET },
	{ "leaves while others wait", LEAVE, false, false, 0, -ECONNRESET },
	{ "aborts", ABORT, false, false, 0, -ECONNABORTED },
	{ "aborts, io_uring", ABORT, true, true, 0, -ECONNABORTED },
};

static int submit(struct testlib_rank *r, struct io_uring *ring, bool uring,
		  const struct swc_desc *d)
{
	if (!uring)
		return testlib_submit(r->c.fd, d);
	testlib_uring_prep(ring, r->c.fd, d, 1);
	return io_uring_submit(ring) == 1 ? 0 : -EIO;
}

static int collect(struct testlib_rank *r, struct io_uring *ring, bool uring, uint32_t ms)
{
	struct swc_completion c;
	int ret;

	if (uring)
		return testlib_uring_wait(ring, NULL, NULL, ms);
	ret = testlib_ring_next(&r->c, &c, ms);
	return ret ? ret : c.res;
}

static void mark(void)
{
	__atomic_store_n(&event->when, testlib_now_ms(), __ATOMIC_RELEASE);
}

static bool happened(void)
{
	return __atomic_load_n(&event->when, __ATOMIC_ACQUIRE);
}

/* This rank has been notified. */
static void notified(void)
{
	uint64_t took = testlib_now_ms() - event->when, before = 0;

	while (took > before && !__atomic_compare_exchange_n(&event->took, &before, took, false,
							     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
}

/* This rank waits now, or as soon as it sleeps. */
static void ready(uint32_t rank)
{
	event->waiting[rank] = getpid();
	testlib_count(&event->ready);
}

/* Wait until n ranks sleep, if they have nothing to do. */
static int wait_ready(unsigned int n)
{
	CHECK(testlib_wait_count(&event->ready, n));
	for (int r = 0; r < N; r++)
		CHECK(!event->waiting[r] || testlib_wait_asleep(event->waiting[r]));
	return 0;
}

static int victim(struct testlib_rank *r, const struct job *j, struct io_uring *ring)
{
	struct swc_comm_ref ref = { .comm = r->comm };
	struct swc_desc d = testlib_allreduce_desc(r, small, small, 1000, SWC_U32);

	if (j->busy) {
		/* More than the others submit: only the event can end them. */
		for (int i = 0; i < 3; i++)
			CHECK_EQ(submit(r, ring, j->uring, &d), 0);
	}
	/* If the victim has operations in flight, rank 2 submits its own after the event. */
	CHECK_EQ(wait_ready(j->busy ? 1 : N - 1), 0);
	switch (j->how) {
	case KILL:
		mark();
		kill(getpid(), SIGKILL);
		break;
	case EXIT:
		mark();
		_exit(3);
	case EXEC:
		mark();
		execl("/bin/sleep", "sleep", "60", NULL);
		return 1;
	case CLOSE:
		mark();
		testlib_close(&r->c);
		break;
	case LEAVE:
		mark();
		CHECK_EQ(testlib_comm_leave(r->c.fd, r->comm), 0);
		break;
	case ABORT:
		mark();
		CHECK_EQ(testlib_ioctl(r->c.fd, SWC_IOC_COMM_ABORT, &ref), 0);
		break;
	}
	/* Until the parent kills it: its exit must not be the event. */
	for (;;)
		pause();
}

/* The sum goes to scratch memory, and from there back and forth in many copies. */
#define COPIES 2000

static int load_copies(struct testlib_rank *r)
{
	struct testlib_plan p;

	testlib_plan_init(&p, SWC_ALLREDUCE, N, r->rank, 0, COPIES);
	p.h.window[SWC_BUF_SCRATCH].nblocks = COPIES;
	testlib_plan_channel(&p);
	testlib_plan_step(&p, SWC_STEP_LOCAL);
	for (uint32_t k = 0; k < N; k++)
		testlib_plan_send(&p, k, SWC_BUF_SEND, 0, COPIES);
	testlib_plan_recv(&p, r->rank, SWC_BUF_SCRATCH, 0, COPIES, 0, SWC_XFER_FINAL);
	testlib_plan_step(&p, SWC_STEP_SYNC);
	for (int k = 0; k < 8; k++) {
		testlib_plan_step(&p, SWC_STEP_COPY);
		for (uint32_t i = 0; i < COPIES; i++)
			testlib_plan_send(&p, r->rank, k & 1 ? SWC_BUF_RECV : SWC_BUF_SCRATCH, i,
					  1);
		for (uint32_t i = 0; i < COPIES; i++)
			testlib_plan_recv(&p, r->rank, k & 1 ? SWC_BUF_SCRATCH : SWC_BUF_RECV, i, 1,
					  0, 0);
	}
	testlib_plan_pack(&p);
	return testlib_plan_install(r->c.fd, r->comm, &p, &r->plan);
}

static int rank_fn(uint32_t rank, void *arg)
{
	const struct job *j = arg;
	size_t count = j->count ? j->count : 1000;
	uint32_t *buf = malloc(count * 4);
	struct io_uring ring;
	struct swc_comm_error e;
	struct testlib_rank r;
	struct swc_desc d;
	int ret = 0;

	memset(buf, 0, count * 4);
	CHECK_EQ(testlib_rank_open(&r, id, N, rank, DEADLINE_MS), 0);
	CHECK_EQ(testlib_uring_init(&ring, 16, TESTLIB_URING_BIG), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 100), 0);
	if (j->copies) {
		CHECK_EQ(load_copies(&r), 0);
		CHECK_EQ(testlib_check_allreduce(&r, 300000), 0);
	}
	if (rank == 1 && !j->count)
		return victim(&r, j, &ring);
	d = testlib_allreduce_desc(&r, buf, buf, count, SWC_U32);
	while (j->busy && rank == 2 && !happened())
		testlib_sleep_ms(1);
	/* The first operation of the survivors, or one of many, fails. */
	for (int i = 0; !ret; i++) {
		ret = submit(&r, &ring, j->uring, &d);
		if (!i)
			ready(rank);
		if (!ret)
			ret = collect(&r, &ring, j->uring, DEADLINE_MS);
	}
	if (ret == -ECONNABORTED && j->error == -ECONNRESET)
		ret = -ECONNRESET; /* submitted after the event */
	CHECK_EQ(ret, j->error);
	CHECK(happened());
	if (!(j->busy && rank == 2))
		notified();
	CHECK_EQ(testlib_comm_error(r.c.fd, r.comm, &e), 0);
	CHECK_EQ(e.error, j->error);
	CHECK_EQ(e.culprit, 1);
	CHECK_EQ(e.aborted, 1);
	if (strncmp(e.text, "rank 1 (pid ", 12) || !strstr(e.text, told[j->how])) {
		ksft_print_msg("%s\n", e.text);
		return 1;
	}
	CHECK_EQ(testlib_submit(r.c.fd, &d), -ECONNABORTED);
	CHECK_EQ(testlib_comm_leave(r.c.fd, r.comm), 0);
	/* The context can create a new communicator. */
	uint8_t own[SWC_ID_BYTES];

	testlib_new_id(own);
	CHECK_EQ(testlib_comm_create(r.c.fd, own, 1, 0, DEADLINE_MS, &r.comm), 0);
	CHECK_EQ(testlib_comm_leave(r.c.fd, r.comm), 0);
	return 0;
}

/* Wait until each rank has completed a few of many operations, and is among the next ones. */
static int wait_busy(void)
{
	uint64_t until = testlib_stat(SWC_STAT_OPS_COMPLETED) + 2 * N;
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;

	CHECK(testlib_wait_count(&event->ready, N));
	while (testlib_stat(SWC_STAT_OPS_COMPLETED) < until) {
		CHECK(testlib_now_ms() < limit);
		testlib_sleep_ms(1);
	}
	return 0;
}

static int run(const struct job *j)
{
	pid_t pid[N], victim_pid;
	int bad = 0;

	testlib_fork_ranks(pid, N, rank_fn, (void *)j);
	victim_pid = pid[1];
	if (j->count) {
		bad = wait_busy();
		mark();
		kill(victim_pid, SIGKILL);
	}
	pid[1] = 0;
	bad |= testlib_wait_ranks(pid, N);
	kill(victim_pid, SIGKILL);
	waitpid(victim_pid, NULL, 0);
	return bad;
}

/* A survivor with many operations in flight gets an error for each of them, once. */
static int every_one(uint32_t rank, void *arg)
{
	bool uring = ((const struct job *)arg)->uring;
	struct io_uring ring;
	struct testlib_rank r;
	struct swc_desc d;

	CHECK_EQ(testlib_rank_open(&r, id, 2, rank, DEADLINE_MS), 0);
	CHECK_EQ(testlib_uring_init(&ring, 64, TESTLIB_URING_BIG), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 100), 0);
	if (rank) {
		CHECK_EQ(wait_ready(1), 0);
		kill(getpid(), SIGKILL);
	}
	d = testlib_allreduce_desc(&r, small, small, 1000, SWC_U32);
	for (int i = 0; i < 64; i++)
		CHECK_EQ(submit(&r, &ring, uring, &d), 0);
	CHECK_EQ(testlib_submit(r.c.fd, &d), -EAGAIN);
	CHECK_EQ(testlib_comm_leave(r.c.fd, r.comm), -EBUSY);
	ready(rank);
	for (int i = 0; i < 64; i++)
		CHECK_EQ(collect(&r, &ring, uring, DEADLINE_MS), -ECONNRESET);
	CHECK_EQ(collect(&r, &ring, uring, 20), -ETIME);
	CHECK_EQ(testlib_comm_leave(r.c.fd, r.comm), 0);
	return 0;
}

static int run_every(const struct job *j)
{
	pid_t pid[2];

	testlib_fork_ranks(pid, 2, every_one, (void *)j);
	return testlib_wait_ranks(pid, 1) || !testlib_was_killed(&pid[1]);
}

/* A rank is killed while all wait for another one to join. */
static int joiner(uint32_t rank, void *arg)
{
	uint32_t comm;
	struct testlib_ctx c;
	int ret;

	(void)arg;
	CHECK_EQ(testlib_open(&c), 0);
	ret = testlib_comm_create(c.fd, id, N + 1, rank, DEADLINE_MS, &comm);
	CHECK_EQ(ret, -ECONNRESET);
	notified();
	return 0;
}

static int run_join(const struct job *j)
{
	pid_t pid[N];
	bool joined;

	(void)j;
	testlib_fork_ranks(pid, N, joiner, NULL);
	joined = testlib_wait_members(id, N);
	mark();
	kill(pid[0], SIGKILL);
	return !joined || testlib_wait_ranks(pid + 1, N - 1) || !testlib_was_killed(&pid[0]);
}

/* A rank waits on a slot when a member dies. */
static int slot_waiter(uint32_t rank, void *arg)
{
	struct swc_comm_create j = {
		.nranks = 2, .rank = rank, .slot_bytes = 4096, .timeout_ms = DEADLINE_MS
	};
	struct swc_slot_wait w = { .suspect = 1 };
	struct testlib_ctx c;

	(void)arg;
	memcpy(j.id, id, sizeof(id));
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_COMM_CREATE, &j), 0);
	w.comm = j.comm;
	if (rank) {
		CHECK_EQ(wait_ready(1), 0);
		mark();
		kill(getpid(), SIGKILL);
	}
	ready(rank);
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_SLOT_WAIT, &w), -ECONNRESET);
	notified();
	return 0;
}

static int run_slot(const struct job *j)
{
	pid_t pid[2];

	(void)j;
	testlib_fork_ranks(pid, 2, slot_waiter, NULL);
	return testlib_wait_ranks(pid, 1) || !testlib_was_killed(&pid[1]);
}

/* All ranks are notified soon. One of the tries is enough: a busy machine may delay the others. */
static int soon(int (*run)(const struct job *j), const struct job *j)
{
	for (int i = 0; i < TRIES; i++) {
		memset(event, 0, sizeof(*event));
		testlib_new_id(id);
		if (run(j))
			return 1;
		if (event->took <= SOON_MS)
			return 0;
		ksft_print_msg("notified after %llu ms\n", (unsigned long long)event->took);
	}
	return 1;
}

int main(void)
{
	static const struct job by_ioctl = { .uring = false }, by_uring = { .uring = true };

	ksft_print_header();
	testlib_require_device();
	ksft_set_plan(ARRAY_SIZE(jobs) + 4);
	event = testlib_shared_alloc(sizeof(*event));
	for (unsigned int j = 0; j < ARRAY_SIZE(jobs); j++)
		ksft_test_result(!soon(run, &jobs[j]), "%s", jobs[j].name);
	ksft_test_result(!soon(run_every, &by_ioctl), "64 in flight complete once each, ioctl");
	ksft_test_result(!soon(run_every, &by_uring), "64 in flight complete once each, io_uring");
	ksft_test_result(!soon(run_join, NULL), "killed while others join");
	ksft_test_result(!soon(run_slot, NULL), "killed while others sleep on a slot");
	ksft_finished();
}
