// SPDX-License-Identifier: GPL-2.0-only
/* Deadlines: who is late is named, and nobody waits much longer than was said. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "testlib.h"

#define N 3
#define SLACK_MS 10000 /* of a busy machine; any other deadline would come later still */

static uint8_t id[SWC_ID_BYTES];
static uint32_t buf[1000];
static int *flag;
static uint64_t *began;

static int late(struct swct_rank *r, int ret, int culprit, uint64_t start, uint32_t deadline_ms)
{
	uint64_t took = swct_ms() - start;
	struct swc_comm_error e;
	char who[32];

	CHECK_EQ(ret, -ETIMEDOUT);
	CHECK(took + 5 >= deadline_ms);
	if (took > deadline_ms + SLACK_MS) {
		ksft_print_msg("took %llu ms, deadline was %u\n", (unsigned long long)took,
			       deadline_ms);
		return 1;
	}
	CHECK_EQ(swct_error(r->c.fd, r->comm, &e), 0);
	CHECK_EQ(e.error, -ETIMEDOUT);
	CHECK_EQ(e.culprit, culprit);
	CHECK_EQ(e.aborted, 1);
	snprintf(who, sizeof(who), "rank %d", culprit);
	if (!strstr(e.text, who)) {
		ksft_print_msg("text: %s\n", e.text);
		return 1;
	}
	return 0;
}

/* The communicator is over, but says so at once. */
static int over(struct swct_rank *r)
{
	struct swc_desc d = swct_allreduce(r, buf, buf, 1000, SWC_U32);

	CHECK_EQ(swct_submit(r->c.fd, &d), -ECONNABORTED);
	CHECK_EQ(swct_leave(r->c.fd, r->comm), 0);
	return 0;
}

static void wait_for(int *what, int n)
{
	for (int i = 0; i < 1000 && __atomic_load_n(what, __ATOMIC_ACQUIRE) < n; i++)
		swct_sleep_ms(10);
}

static void add(int *what)
{
	__atomic_add_fetch(what, 1, __ATOMIC_ACQ_REL);
}

/*
 * An operation that rank 2 does not come to. The deadline is rank 0's, and it comes behind rank 1: so nobody else
 * is late, however slow they are.
 */
static int without_2(struct swct_rank *r, uint32_t timeout_ms, uint64_t *start,
		     struct swc_completion *c)
{
	struct swc_desc d = swct_allreduce(r, buf, buf, 1000, SWC_U32);
	int ret;

	d.timeout_ms = r->rank ? 20000 : timeout_ms;
	if (!r->rank)
		wait_for(&flag[1], 1);
	*start = swct_ms();
	ret = swct_submit(r->c.fd, &d);
	add(&flag[1]);
	if (!ret)
		ret = swct_next(&r->c, c, 60000);
	return ret ? ret : c->res;
}

/* Rank 2 never submits. */
static int absent(uint32_t rank, void *arg)
{
	bool per_op = *(int *)arg;
	uint64_t start;
	struct swct_rank r;
	struct swc_completion c = { 0 };
	int ret;

	/* Also for joining. */
	CHECK_EQ(swct_rank_up(&r, id, N, rank, per_op ? 20000 : 5000), 0);
	if (rank == 2) {
		wait_for(flag, N - 1);
		return 0;
	}
	ret = without_2(&r, per_op ? 400 : 0, &start, &c);
	add(flag);
	CHECK_EQ(c.culprit, 2);
	if (late(&r, ret, 2, start, per_op ? 400 : 5000))
		return 1;
	return over(&r);
}

/* By io_uring, the culprit comes in the CQE. */
static int absent_uring(uint32_t rank, void *arg)
{
	uint64_t start, word;
	struct io_uring ring;
	struct swct_rank r;
	struct swc_desc d;
	int ret;

	CHECK_EQ(swct_rank_up(&r, id, N, rank, 20000), 0);
	if (rank == 2) {
		wait_for(flag, N - 1);
		return 0;
	}
	d = swct_allreduce(&r, buf, buf, 1000, SWC_U32);
	d.flags = *(int *)arg;
	d.timeout_ms = rank ? 0 : 400;
	CHECK_EQ(swct_uring_init(&ring, 4, IORING_SETUP_SQE128 | IORING_SETUP_CQE32), 0);
	swct_uring_prep(&ring, r.c.fd, &d, 1);
	/* As in without_2(). */
	if (!rank)
		wait_for(&flag[1], 1);
	start = swct_ms();
	CHECK_EQ(io_uring_submit(&ring), 1);
	add(&flag[1]);
	ret = swct_uring_wait(&ring, NULL, &word, 20000);
	add(flag);
	CHECK_EQ(SWC_CQE_CULPRIT(word), 2);
	return late(&r, ret, 2, start, 400);
}

/* A rank that is stopped, in mid-series. */
static int stopped(uint32_t rank, void *arg)
{
	struct swc_completion c;
	struct swct_rank r;
	uint64_t start;
	int ret;

	(void)arg;
	CHECK_EQ(swct_rank_up(&r, id, N, rank, 20000), 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(swct_sound(&r, 1000), 0);
	if (rank == 2) {
		raise(SIGSTOP);
		/* Continued by the parent: finds everything over. */
		CHECK_EQ(swct_sound(&r, 100), -ECONNABORTED);
		return 0;
	}
	ret = without_2(&r, 700, &start, &c);
	return late(&r, ret, 2, start, 700);
}

/* A rank never joins. */
static int joins(uint32_t rank, void *arg)
{
	struct swct_ctx c;
	uint64_t start = swct_ms(), none = 0, end;
	uint32_t comm;

	(void)arg;
	/* By the first one's deadline the communicator ends for all of them. */
	__atomic_compare_exchange_n(began, &none, start, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	CHECK_EQ(swct_open(&c), 0);
	CHECK_EQ(swct_join(c.fd, id, N + 1, rank, 400, &comm), -ETIMEDOUT);
	end = swct_ms();
	CHECK(end - *began >= 380 && end - start < 400 + SLACK_MS);
	return 0;
}

/* Late, but not too late: many near misses must all be good. */
static int near(uint32_t rank, void *arg)
{
	struct swct_rank r;

	(void)arg;
	CHECK_EQ(swct_rank_up(&r, id, N, rank, 10000), 0);
	for (int i = 0; i < 10; i++) {
		if (rank == (uint32_t)i % N)
			swct_sleep_ms(60);
		CHECK_EQ(swct_sound(&r, 1000), 0);
	}
	swct_rank_down(&r);
	return 0;
}

/* A slot that never changes. */
static int slots(uint32_t rank, void *arg)
{
	struct swc_comm_join j = {
		.nranks = 2, .rank = rank, .slot_bytes = 4096, .timeout_ms = 20000
	};
	struct swc_slot_wait w = { .timeout_ms = 400, .suspect = !rank };
	struct swct_rank r = { .rank = rank };
	uint64_t start;

	(void)arg;
	memcpy(j.id, id, sizeof(id));
	CHECK_EQ(swct_open(&r.c), 0);
	CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_COMM_JOIN, &j), 0);
	r.comm = w.comm = j.comm;
	start = swct_ms();
	if (rank) {
		wait_for(flag, 1);
		w.timeout_ms = 3000;
		CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), -ETIMEDOUT);
		return 0;
	}
	CHECK_EQ(late(&r, swct_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), 1, start, 400), 0);
	add(flag);
	swct_sleep_ms(200);
	return 0;
}

int main(void)
{
	int no = 0, yes = 1, waiting = SWC_OP_WAITING;
	siginfo_t info;
	pid_t pid[N];

	ksft_print_header();
	swct_need_device();
	ksft_set_plan(8);
	flag = swct_shared(4096);
	began = swct_shared(sizeof(*began));

#define RUN(n, fn, arg, ...)                                                                       \
	do {                                                                                       \
		swct_id(id);                                                                       \
		flag[0] = flag[1] = 0;                                                             \
		ksft_test_result(!swct_ranks(n, 20000, fn, arg), __VA_ARGS__);                     \
	} while (0)

	RUN(N, absent, &no, "a rank does not come: the communicator's deadline");
	RUN(N, absent, &yes, "a rank does not come: the operation's own deadline");
	RUN(N, absent_uring, &no, "a rank does not come: io_uring");
	RUN(N, absent_uring, &waiting, "a rank does not come: io_uring, waiting");
	RUN(N, joins, NULL, "a rank never joins");
	RUN(N, near, NULL, "ranks that are late but in time");
	RUN(2, slots, NULL, "a slot that never changes");

	swct_id(id);
	flag[0] = flag[1] = 0;
	swct_fork(pid, N, stopped, NULL);
	int bad = swct_reap(pid, 2, 15000);

	/* Before it has stopped that would be lost on it. */
	waitid(P_PID, pid[2], &info, WSTOPPED | WEXITED | WNOWAIT);
	kill(pid[2], SIGCONT);
	bad += swct_reap(pid + 2, 1, 15000);
	ksft_test_result(!bad, "a rank that is stopped");
	ksft_finished();
}
