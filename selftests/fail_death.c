// SPDX-License-Identifier: GPL-2.0-only
/* Members that go: killed, exec, closing the device, leaving, aborting; the others hear of it within a second. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "swct.h"

#define N 3
#define SOON_MS 1000

static uint8_t id[SWC_ID_BYTES];
static uint64_t *when; /* of the event, in ms; 0: not yet */
static uint32_t small[1000];

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
	__atomic_store_n(when, swct_ms(), __ATOMIC_RELEASE);
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
	swct_sleep_ms(150);
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
		execl("/bin/sleep", "sleep", "2", NULL);
		return 1;
	case CLOSE:
		mark();
		swct_close(&r->c);
		swct_sleep_ms(1500);
		return 0;
	case LEAVE:
		mark();
		CHECK_EQ(swct_leave(r->c.fd, r->comm), 0);
		swct_sleep_ms(1500);
		return 0;
	case ABORT:
		mark();
		CHECK_EQ(swct_ioctl(r->c.fd, SWC_IOC_COMM_ABORT, &ref), 0);
		swct_sleep_ms(300);
		return 0;
	}
	return 1;
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
	uint64_t heard;
	int ret;

	memset(buf, 0, count * 4);
	CHECK_EQ(swct_rank_up(&r, id, N, rank, 30000), 0);
	CHECK_EQ(swct_uring_init(&ring, 16, IORING_SETUP_SQE128 | IORING_SETUP_CQE32), 0);
	CHECK_EQ(swct_sound(&r, 100), 0);
	if (rank == 1 && !j->count)
		return victim(&r, j, &ring);
	d = swct_allreduce(&r, buf, buf, count, SWC_U32);
	/* The survivors' first, or one of many, never completes. */
	if (j->busy && rank == 2)
		swct_sleep_ms(500); /* not even submitted when it happens */
	do {
		ret = submit(&r, &ring, j->uring, &d);
		if (!ret)
			ret = collect(&r, &ring, j->uring, 20000);
	} while (!ret);
	heard = swct_ms();
	if (ret == -ECONNABORTED && j->error == -ECONNRESET)
		ret = -ECONNRESET; /* submitted after the event */
	CHECK_EQ(ret, j->error);
	CHECK(*when);
	if (heard > *when + SOON_MS && !(j->busy && rank == 2)) {
		ksft_print_msg("heard of it after %llu ms\n", (unsigned long long)(heard - *when));
		return 1;
	}
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

	swct_id(id);
	*when = 0;
	swct_fork(pid, N, rank_fn, (void *)j);
	victim_pid = pid[1];
	if (j->count) {
		/* Into the middle of one of many. */
		swct_sleep_ms(700);
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
	bool uring = *(int *)arg;
	struct io_uring ring;
	struct swct_rank r;
	struct swc_desc d;

	CHECK_EQ(swct_rank_up(&r, id, 2, rank, 30000), 0);
	CHECK_EQ(swct_uring_init(&ring, 64, IORING_SETUP_SQE128 | IORING_SETUP_CQE32), 0);
	CHECK_EQ(swct_sound(&r, 100), 0);
	if (rank) {
		swct_sleep_ms(200);
		kill(getpid(), SIGKILL);
	}
	d = swct_allreduce(&r, small, small, 1000, SWC_U32);
	for (int i = 0; i < 64; i++)
		CHECK_EQ(submit(&r, &ring, uring, &d), 0);
	CHECK_EQ(swct_submit(r.c.fd, &d), -EAGAIN);
	CHECK_EQ(swct_leave(r.c.fd, r.comm), -EBUSY);
	for (int i = 0; i < 64; i++)
		CHECK_EQ(collect(&r, &ring, uring, 10000), -ECONNRESET);
	CHECK_EQ(collect(&r, &ring, uring, 20), -ETIME);
	CHECK_EQ(swct_leave(r.c.fd, r.comm), 0);
	return 0;
}

static int run_every(int uring)
{
	pid_t pid[2];

	swct_id(id);
	swct_fork(pid, 2, every_one, &uring);
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
	CHECK(swct_ms() < *when + SOON_MS);
	return 0;
}

static int run_join(void)
{
	pid_t pid[N];

	swct_id(id);
	*when = 0;
	swct_fork(pid, N, joiner, NULL);
	swct_sleep_ms(300);
	mark();
	kill(pid[0], SIGKILL);
	return swct_reap(pid + 1, N - 1, 5000) + (swct_reap(pid, 1, 1000) != 1);
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
		swct_sleep_ms(200);
		mark();
		kill(getpid(), SIGKILL);
	}
	CHECK_EQ(swct_ioctl(c.fd, SWC_IOC_SLOT_WAIT, &w), -ECONNRESET);
	CHECK(swct_ms() < *when + SOON_MS);
	return 0;
}

static int run_slot(void)
{
	pid_t pid[2];

	swct_id(id);
	*when = 0;
	swct_fork(pid, 2, slot_waiter, NULL);
	return swct_reap(pid, 1, 5000) + (swct_reap(pid + 1, 1, 1000) != 1);
}

int main(void)
{
	ksft_print_header();
	swct_need_device();
	ksft_set_plan(ARRAY_SIZE(jobs) + 4);
	when = swct_shared(4096);
	for (unsigned int j = 0; j < ARRAY_SIZE(jobs); j++)
		ksft_test_result(!run(&jobs[j]), "%s", jobs[j].name);
	ksft_test_result(!run_every(0), "64 in flight end once each, ioctl");
	ksft_test_result(!run_every(1), "64 in flight end once each, io_uring");
	ksft_test_result(!run_join(), "killed while joining");
	ksft_test_result(!run_slot(), "killed while others sleep on a slot");
	ksft_finished();
}
