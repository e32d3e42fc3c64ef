// SPDX-License-Identifier: GPL-2.0-only
/* The completion ring: order, contents, overflow, poll, waiting, and a consumer that writes wrong heads. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "testlib.h"

static struct testlib_rank r;
static uint32_t buf[4096];

static struct swc_desc desc(uint64_t user_data)
{
	struct swc_desc d = testlib_allreduce_desc(&r, buf, buf, 4096, SWC_U32);

	d.user_data = user_data;
	return d;
}

static int contents(void)
{
	struct swc_completion c;
	struct swc_desc d;
	uint64_t seq;

	d = desc(7);
	CHECK_EQ(testlib_submit_wait(&r.c, &d, &c), 0);
	seq = c.seq;
	for (uint64_t k = 1; k < 50; k++) {
		d = desc(0xabcd000000000000ull + k);
		CHECK_EQ(testlib_submit_wait(&r.c, &d, &c), 0);
		CHECK_EQ(c.user_data, 0xabcd000000000000ull + k);
		CHECK_EQ(c.seq, seq + k);
		CHECK_EQ(c.bytes, sizeof(buf));
		CHECK_EQ(c.comm, r.comm);
		CHECK_EQ(c.plan, r.plan);
		CHECK_EQ(c.culprit, -1);
		CHECK_EQ(c.resv, 0);
		CHECK(c.run_ns > 0 && c.run_ns < 60000000000ull);
	}
	return 0;
}

static int overflow(void)
{
	uint32_t n = r.c.ring->entries, done;
	struct swc_completion c;
	struct swc_desc d;
	int ret;

	for (int round = 0; round < 2; round++) {
		for (done = 0; done < n;) {
			d = desc(done);
			ret = testlib_submit(r.c.fd, &d);
			CHECK(!ret || ret == -EAGAIN);
			done += !ret;
		}
		d = desc(99);
		do
			ret = testlib_submit(r.c.fd, &d);
		while (ret == -EAGAIN);
		CHECK_EQ(ret, -EBUSY);
		CHECK_EQ(testlib_ring_next(&r.c, &c, TESTLIB_EVENT_MS), 0);
		do
			ret = testlib_submit(r.c.fd, &d);
		while (ret == -EAGAIN);
		CHECK_EQ(ret, 0);
		CHECK_EQ(testlib_submit(r.c.fd, &d), -EBUSY);
		for (done = 0; done < n; done++)
			CHECK_EQ(testlib_ring_next(&r.c, &c, TESTLIB_EVENT_MS), 0);
		CHECK_EQ(testlib_ring_next(&r.c, &c, 10), -ETIME);
	}
	return 0;
}

/* io_uring commands use the ring only if they ask for it. */
static int uring_beside(void)
{
	struct swc_completion c;
	struct io_uring ring;
	struct swc_desc d = desc(5);
	uint32_t tail = r.c.ring->tail;

	CHECK_EQ(testlib_uring_init(&ring, 4, TESTLIB_URING_BIG), 0);
	testlib_uring_prep(&ring, r.c.fd, &d, 1);
	CHECK_EQ(io_uring_submit(&ring), 1);
	CHECK_EQ(testlib_uring_wait(&ring, NULL, NULL, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(r.c.ring->tail, tail);
	d.flags = SWC_OP_RING;
	testlib_uring_prep(&ring, r.c.fd, &d, 1);
	CHECK_EQ(io_uring_submit(&ring), 1);
	CHECK_EQ(testlib_uring_wait(&ring, NULL, NULL, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(testlib_ring_next(&r.c, &c, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(c.user_data, 5);
	io_uring_queue_exit(&ring);
	return 0;
}

static int polling(void)
{
	struct pollfd p = { .fd = r.c.fd, .events = POLLIN };
	struct swc_completion c;
	struct swc_desc d = desc(1);

	CHECK_EQ(poll(&p, 1, 0), 0);
	CHECK_EQ(testlib_submit(r.c.fd, &d), 0);
	CHECK_EQ(poll(&p, 1, TESTLIB_EVENT_MS), 1);
	CHECK(p.revents & POLLIN);
	CHECK_EQ(testlib_ring_next(&r.c, &c, 0), 0);
	CHECK_EQ(poll(&p, 1, 0), 0);
	return 0;
}

/* Wait until the kernel has added an entry, without a system call for it. */
static int wait_entry(uint32_t tail)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;

	while (__atomic_load_n(&r.c.ring->tail, __ATOMIC_ACQUIRE) == tail)
		CHECK(testlib_now_ms() < limit);
	return 0;
}

static int watched(void)
{
	uint32_t tail = r.c.ring->tail;
	struct swc_desc d = desc(1);
	struct swc_completion c;

	CHECK_EQ(testlib_submit(r.c.fd, &d), 0);
	CHECK_EQ(wait_entry(tail), 0);
	CHECK_EQ(testlib_ring_next(&r.c, &c, 0), 0);
	return 0;
}

static void *submit_when_asleep(void *arg)
{
	struct swc_desc d = desc(1);

	testlib_wait_asleep(*(pid_t *)arg);
	testlib_submit(r.c.fd, &d);
	return NULL;
}

static int waiting(void)
{
	struct swc_ring_wait w = { .tail = r.c.ring->tail, .timeout_ms = 20 };
	pid_t waiter = gettid();
	struct swc_completion c;
	pthread_t t;
	int ret;

	do
		ret = testlib_ioctl(r.c.fd, SWC_IOC_RING_WAIT, &w);
	while (ret == -EINTR);
	CHECK_EQ(ret, -ETIME);
	w.tail--;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_RING_WAIT, &w), 0);
	w.tail++;
	w.timeout_ms = 0;
	CHECK_EQ(pthread_create(&t, NULL, submit_when_asleep, &waiter), 0);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_RING_WAIT, &w), 0);
	pthread_join(t, NULL);
	CHECK_EQ(testlib_ring_next(&r.c, &c, 0), 0);
	return 0;
}

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	static const struct itimerval never;

	(void)sig;
	if (++alarms == 50)
		setitimer(ITIMER_REAL, &never, NULL);
}

/* A timer whose handler has SA_RESTART does not begin the wait anew. */
static int interrupted(void)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval often = { .it_value.tv_usec = 20000, .it_interval.tv_usec = 20000 };
	struct itimerval never = { 0 };
	struct swc_ring_wait w = { .tail = r.c.ring->tail, .timeout_ms = 5000 };
	int ret;

	CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	ret = testlib_ioctl(r.c.fd, SWC_IOC_RING_WAIT, &w);
	CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
	CHECK_EQ(ret, -EINTR);
	return 0;
}

/* A wrong head only hurts the consumer itself, who can correct it. */
static int wrong_heads(void)
{
	static const int32_t wrong[] = { 1, 5, 1 << 30, -(1 << 30), INT32_MIN, -5000 };
	uint32_t head = r.c.user->head;
	struct swc_completion c;
	struct swc_desc d = desc(3);

	for (unsigned int i = 0; i < ARRAY_SIZE(wrong); i++) {
		r.c.user->head = head + wrong[i];
		CHECK_EQ(testlib_submit(r.c.fd, &d), -EBUSY);
		r.c.user->head = head;
		CHECK_EQ(testlib_submit(r.c.fd, &d), 0);
		r.c.user->head = head + wrong[i];
		CHECK_EQ(wait_entry(head), 0);
		r.c.user->head = head;
		CHECK_EQ(testlib_ring_next(&r.c, &c, TESTLIB_EVENT_MS), 0);
		CHECK_EQ(c.user_data, 3);
		head = r.c.user->head;
	}
	return 0;
}

int main(void)
{
	static const struct testlib_test test[] = {
		{ "contents of the entries", contents },
		{ "a full ring: EBUSY, until there is room again", overflow },
		{ "io_uring commands use the ring only if they ask for it", uring_beside },
		{ "poll", polling },
		{ "entries appear without a system call", watched },
		{ "RING_WAIT: time-out, tail already moved, wake-up", waiting },
		{ "RING_WAIT: a timer", interrupted },
		{ "a consumer that writes wrong heads", wrong_heads },
	};
	uint8_t id[SWC_ID_BYTES];

	ksft_print_header();
	testlib_require_device();
	testlib_single_rank(&r, id);
	testlib_run_tests(test, ARRAY_SIZE(test));
	ksft_finished();
}
