// SPDX-License-Identifier: GPL-2.0-only
/* Members that go: killed, exec, closing the device, leaving, aborting; the others hear of it within a second. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "testlib.h"

#define N 3
#define SOON_MS 1000
#define TRIES 3

static uint8_t id[SWC_ID_BYTES];
static uint32_t small[1000];

/* What parent and children know of it. */
struct event {
	uint64_t when;	  /* in ms; 0: not yet */
	uint64_t took;	  /* until the last one heard of it */
	unsigned int set; /* ranks that are where it is to find them */
};

static struct event *event;

enum how {
	KILL,
	EXIT,
	EXEC,
	CLOSE,
	LEAVE,
	ABORT,
	THREAD_KILL
};

struct job {
	const char *name;
	enum how how;
	bool uring;   /* the survivors wait by io_uring */
	bool busy;    /* the victim has operations in flight itself */
	size_t count; /* > 0: the event comes in the middle of operations of this size */
	int error;
};

static const struct job jobs[] = {
	{ "killed while others wait", KILL, false, false, 0, -ECONNRESET },
	{ "killed while others wait, io_uring", KILL, true, false, 0, -ECONNRESET },
	{ "killed with operations in flight", KILL, false, true, 0, -ECONNRESET },
	{ "killed with operations in flight, io_uring", KILL, true, true, 0, -ECONNRESET },
	{ "killed in the middle of large operations", KILL, false, false, 2 << 20, -ECONNRESET },
	{ "killed in the middle of large operations, io_uring", KILL, true, false, 2 << 20,
	  -ECONNRESET },
	{ "exits", EXIT, false, false, 0, -ECONNRESET },
	{ "exec", EXEC, false, false, 0, -ECONNRESET },
	{ "exec with operations in flight", EXEC, false, true, 0, -ECONNRESET },
	{ "closes the device", CLOSE, false, false, 0, -ECONNRESET },
	{ "closes the device with operations in flight", CLOSE, false, true, 0, -ECONNRESET },
	{ "leaves while others wait", LEAVE, false, false, 0, -ECONNRESET },
	{ "aborts", ABORT, false, false, 0, -ECONNABORTED },
	{ "aborts, io_uring", ABORT, true, true, 0, -ECONNABORTED },
};

static int submit(struct swct_rank *r, struct io_uring *ring, bool uring, const struct swc_desc *d)
{
	if (!uring)
		return swct_submit(r->c.fd, d);
	swct_uring_prep(ring, r->c.fd, d, 1);
	return io_uring_submit(ring) == 1 ? 0 : -EIO;
}

static int collect(struct swct_rank *r, struct io_uring *ring, bool uring, uint32_t ms)
{
	struct swc_completion c;
	int ret;

	if (uring)
		return swct_uring_wait(ring, NULL, NULL, ms);
	ret = swct_next(&r->c, &c, ms);
	return ret ? ret : c.res;
}

static void mark(void)
{
	__atomic_store_n(&event->when, swct_ms(), __ATOMIC_RELEASE);
}

static bool happened(void)
{
	return __atomic_load_n(&event->when, __ATOMIC_ACQUIRE);
}

/* This rank has heard of it. */
static void heard(void)
{
	uint64_t took = swct_ms() - event->when, before = 0;

	while (took > before && !__atomic_compare_exchange_n(&event->took, &before, took, false,
							     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
}

static void ready(void)
{
	__atomic_add_fetch(&event->set, 1, __ATOMIC_ACQ_REL);
}

/* So many are, and have had a moment to fall asleep. */
static void wait_ready(unsigned int n)
{
	for (int i = 0; i < 5000 && __atomic_load_n(&event->set, __ATOMIC_ACQUIRE) < n; i++)
		swct_sleep_ms(2);
	swct_sleep_ms(50);
}

static int victim(struct swct_rank *r, const struct job *j, struct io_uring *ring)
{
	struct swc_comm_ref ref = { .comm = r->comm };
	struct swc_desc d = swct_allreduce(r, small, small, 1000, SWC_U32);

	if (j->busy) {
		/* One more than the others will match: it can only end by the event. */
		for (int i = 0; i < 3; i++)
			CHECK_EQ(submit(r, ring, j->uring, &d), 0);
	}
	/* While it has operations in flight itself, rank 2 has none. */
	wait_ready(j->busy ? 1 : N - 1);
	switch (j->how) {
	case KILL:
	case THREAD_KILL:
		mark();
		kill(getpid(), SIGKILL);
		break;
	case EXIT:
		mark();
		_exit(0);
	case EXEC:
		mark();
		execl("/bin/sleep", "sleep", "60", NULL);
		return 1;
	case CLOSE:
		mark();
		swct_close(&r->c);
		break;
	case LEAVE:
		mark();
		CHECK_EQ(swct_leave(r->c.fd, r->comm), 0);
		break;
	case ABORT:
		mark();
		CHECK_EQ(swct_ioctl(r->c.fd, SWC_IOC_COMM_ABORT, &ref), 0);
		break;
	}
	/* Until it is killed: its end must not be what the others hear of. */
	for (;;)
		pause();
}

static int rank_fn(uint32_t rank, void *arg)
{
	const struct job *j = arg;
	size_t count = j->count ? j->count : 1000;
	uint32_t *buf = malloc(count * 4);
	struct io_uring ring;
	struct swc_comm_error e;
	struct swct_rank r;
	struct swc_desc d;
	int ret = 0;

	memset(buf, 0, count * 4);
	CHECK_EQ(swct_rank_up(&r, id, N, rank, 30000), 0);
	CHECK_EQ(swct_uring_init(&ring, 16, IORING_SETUP_SQE128 | IORING_SETUP_CQE32), 0);
	CHECK_EQ(swct_sound(&r, 100), 0);
	if (rank == 1 && !j->count)
		return victim(&r, j, &ring);
	d = swct_allreduce(&r, buf, buf, count, SWC_U32);
	/* Not even submitted when it happens. */
	while (j->busy && rank == 2 && !happened())
		swct_sleep_ms(50);
	/* The survivors' first, or one of many, never completes. */
	for (int i = 0; !ret; i++) {
		ret = submit(&r, &ring, j->uring, &d);
		if (!i)
			ready();
		if (!ret)
			ret = collect(&r, &ring, j->uring, 20000);
	}
	if (ret == -ECONNABORTED && j->error == -ECONNRESET)
		ret = -ECONNRESET; /* submitted after the event */
	CHECK_EQ(ret, j->error);
	CHECK(happened());
	if (!(j->busy && rank == 2))
		heard();
	CHECK_EQ(swct_error(r.c.fd, r.comm, &e), 0);
	CHECK_EQ(e.error, j->error);
	CHECK_EQ(e.culprit, 1);
	CHECK_EQ(e.aborted, 1);
	CHECK(strstr(e.text, "rank 1"));
	CHECK_EQ(swct_submit(r.c.fd, &d), -ECONNABORTED);
	CHECK_EQ(swct_leave(r.c.fd, r.comm), 0);
	/* The context is good for a new communicator. */
	uint8_t own[SWC_ID_BYTES];

	swct_id(own);
	CHECK_EQ(swct_join(r.c.fd, own, 1, 0, 1000, &r.comm), 0);
	CHECK_EQ(swct_leave(r.c.fd, r.comm), 0);
	return 0;
}

static int run(const struct job *j)
{
	pid_t pid[N], victim_pid;
	int bad;

	swct_fork(pid, N, rank_fn, (void *)j);
	victim_pid = pid[1];
	if (j->count) {
		/* Into the middle of one of many. */
		wait_ready(N);
		swct_sleep_ms(300);
		mark();
		kill(victim_pid, SIGKILL);
	}
	pid[1] = 0;
	bad = swct_reap(pid, N, 15000);
	kill(victim_pid, SIGKILL);
	waitpid(victim_pid, NULL, 0);
	return bad;
}

/* A survivor of many operations in flight gets an error for each, once. */
static int every_one(uint32_t rank, void *arg)
{
	bool uring = ((const struct job *)arg)->uring;
	struct io_uring ring;
	struct swct_rank r;
	struct swc_desc d;

	CHECK_EQ(swct_rank_up(&r, id, 2, rank, 30000), 0);
	CHECK_EQ(swct_uring_init(&ring, 64, IORING_SETUP_SQE128 | IORING_SETUP_CQE32), 0);
	CHECK_EQ(swct_sound(&r, 100), 0);
	if (rank) {
		wait_ready(1);
		kill(getpid(), SIGKILL);
	}
	d = swct_allreduce(&r, small, small, 1000, SWC_U32);
	for (int i = 0; i < 64; i++)
		CHECK_EQ(submit(&r, &ring, uring, &d), 0);
	CHECK_EQ(swct_submit(r.c.fd, &d), -EAGAIN);
	CHECK_EQ(swct_leave(r.c.fd, r.comm), -EBUSY);
	ready();
	for (int i = 0; i < 64; i++)
		CHECK_EQ(collect(&r, &ring, uring, 10000), -ECONNRESET);
	CHECK_EQ(collect(&r, &ring, uring, 20), -ETIME);
	CHECK_EQ(swct_leave(r.c.fd, r.comm), 0);
	return 0;
}

static int run_every(const struct job *j)
{
	pid_t pid[2];

	swct_fork(pid, 2, every_one, (void *)j);
	return swct_reap(pid, 1, 15000) + (swct_reap(pid + 1, 1, 5000) != 1);
}

/* Killed while it waits for the others to join. */
static int joiner(uint32_t rank, void *arg)
{
	uint32_t comm;
	struct swct_ctx c;
	int ret;

	(void)arg;
	CHECK_EQ(swct_open(&c), 0);
	ret = swct_join(c.fd, id, N + 1, rank, 20000, &comm);
	CHECK_EQ(ret, -ECONNRESET);
	heard();
	return 0;
}

static int run_join(const struct job *j)
{
	pid_t pid[N];
	bool joined;

	(void)j;
	swct_fork(pid, N, joiner, NULL);
	joined = swct_joined(id, N);
	mark();
	kill(pid[0], SIGKILL);
	return !joined + swct_reap(pid + 1, N - 1, 15000) + (swct_reap(pid, 1, 5000) != 1);
}

/* Waiting on a slot when a member dies. */
static int slot_waiter(uint32_t rank, void *arg)
{
	struct swc_comm_join j = {
		.nranks = 2, .rank = rank, .slot_bytes = 4096, .timeout_ms = 20000
	};
	struct swc_slot_wait w = { .suspect = 1 };
	struct swct_ctx c;

	(void)arg;
	memcpy(j.id, id, sizeof(id));
	CHECK_EQ(swct_open(&c), 0);
	CHECK_EQ(swct_ioctl(c.fd, SWC_IOC_COMM_JOIN, &j), 0);
	w.comm = j.comm;
	if (rank) {
		wait_ready(1);
		mark();
		kill(getpid(), SIGKILL);
	}
	ready();
	CHECK_EQ(swct_ioctl(c.fd, SWC_IOC_SLOT_WAIT, &w), -ECONNRESET);
	heard();
	return 0;
}

static int run_slot(const struct job *j)
{
	pid_t pid[2];

	(void)j;
	swct_fork(pid, 2, slot_waiter, NULL);
	return swct_reap(pid, 1, 15000) + (swct_reap(pid + 1, 1, 5000) != 1);
}

/* All hear of it soon; the machine may have been busy, so it is enough if they do once. */
static int soon(int (*run)(const struct job *j), const struct job *j)
{
	for (int i = 0; i < TRIES; i++) {
		memset(event, 0, sizeof(*event));
		swct_id(id);
		if (run(j))
			return 1;
		if (event->took <= SOON_MS)
			return 0;
		ksft_print_msg("heard of it after %llu ms\n", (unsigned long long)event->took);
	}
	return 1;
}

int main(void)
{
	static const struct job by_ioctl = { .uring = false }, by_uring = { .uring = true };

	ksft_print_header();
	swct_need_device();
	ksft_set_plan(ARRAY_SIZE(jobs) + 4);
	event = swct_shared(sizeof(*event));
	for (unsigned int j = 0; j < ARRAY_SIZE(jobs); j++)
		ksft_test_result(!soon(run, &jobs[j]), "%s", jobs[j].name);
	ksft_test_result(!soon(run_every, &by_ioctl), "64 in flight end once each, ioctl");
	ksft_test_result(!soon(run_every, &by_uring), "64 in flight end once each, io_uring");
	ksft_test_result(!soon(run_join, NULL), "killed while joining");
	ksft_test_result(!soon(run_slot, NULL), "killed while others sleep on a slot");
	ksft_finished();
}
