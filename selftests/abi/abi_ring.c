// SPDX-License-Identifier: GPL-2.0-only
/* The completion ring: order, contents, overflow, poll, waiting, and a consumer that lies. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "testlib.h"

static struct swct_rank r;
static uint32_t buf[4096];

static struct swc_desc desc(uint64_t user_data)
{
	struct swc_desc d = swct_allreduce(&r, buf, buf, 4096, SWC_U32);

	d.user_data = user_data;
	return d;
}

static int contents(void)
{
	struct swc_completion c;
	struct swc_desc d;
	uint64_t seq;

	d = desc(7);
	CHECK_EQ(swct_run(&r.c, &d, &c), 0);
	seq = c.seq;
	for (uint64_t k = 1; k < 50; k++) {
		d = desc(0xabcd000000000000ull + k);
		CHECK_EQ(swct_run(&r.c, &d, &c), 0);
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
			ret = swct_submit(r.c.fd, &d);
			CHECK(!ret || ret == -EAGAIN);
			done += !ret;
		}
		d = desc(99);
		do
			ret = swct_submit(r.c.fd, &d);
		while (ret == -EAGAIN);
		CHECK_EQ(ret, -EBUSY);
		CHECK_EQ(swct_next(&r.c, &c, 1000), 0);
		do
			ret = swct_submit(r.c.fd, &d);
		while (ret == -EAGAIN);
		CHECK_EQ(ret, 0);
		CHECK_EQ(swct_submit(r.c.fd, &d), -EBUSY);
		for (done = 0; done < n; done++)
			CHECK_EQ(swct_next(&r.c, &c, 10000), 0);
		CHECK_EQ(swct_next(&r.c, &c, 10), -ETIME);
	}
	return 0;
}

/* Commands that do not ask for the ring need no room in it. */
static int uring_beside(void)
{
	struct swc_completion c;
	struct io_uring ring;
	struct swc_desc d = desc(5);
	uint32_t tail = r.c.ring->tail;

	CHECK_EQ(swct_uring_init(&ring, 4, IORING_SETUP_SQE128 | IORING_SETUP_CQE32), 0);
	swct_uring_prep(&ring, r.c.fd, &d, 1);
	CHECK_EQ(io_uring_submit(&ring), 1);
	CHECK_EQ(swct_uring_wait(&ring, NULL, NULL, 10000), 0);
	CHECK_EQ(r.c.ring->tail, tail);
	d.flags = SWC_OP_RING;
	swct_uring_prep(&ring, r.c.fd, &d, 1);
	CHECK_EQ(io_uring_submit(&ring), 1);
	CHECK_EQ(swct_uring_wait(&ring, NULL, NULL, 10000), 0);
	CHECK_EQ(swct_next(&r.c, &c, 1000), 0);
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
	CHECK_EQ(swct_submit(r.c.fd, &d), 0);
	CHECK_EQ(poll(&p, 1, 10000), 1);
	CHECK(p.revents & POLLIN);
	CHECK_EQ(swct_next(&r.c, &c, 0), 0);
	CHECK_EQ(poll(&p, 1, 0), 0);
	return 0;
}

/* No system call between submission and the entry's arrival. */
static int watched(void)
{
	struct swc_completion c;
	struct swc_desc d = desc(1);
	uint32_t tail = r.c.ring->tail;
	uint64_t until = swct_ms() + 10000;

	CHECK_EQ(swct_submit(r.c.fd, &d), 0);
	while (__atomic_load_n(&r.c.ring->tail, __ATOMIC_ACQUIRE) == tail)
		CHECK(swct_ms() < until);
	CHECK_EQ(swct_next(&r.c, &c, 0), 0);
	return 0;
}

static void *submit_later(void *arg)
{
	struct swc_desc d = desc(1);

	(void)arg;
	swct_sleep_ms(50);
	swct_submit(r.c.fd, &d);
	return NULL;
}

static int waiting(void)
{
	struct swc_ring_wait w = { .tail = r.c.ring->tail, .timeout_ms = 20 };
	struct swc_completion c;
	pthread_t t;

	CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_RING_WAIT, &w), -ETIME);
	w.tail--;
	CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_RING_WAIT, &w), 0);
	w.tail++;
	w.timeout_ms = 0;
	CHECK_EQ(pthread_create(&t, NULL, submit_later, NULL), 0);
	CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_RING_WAIT, &w), 0);
	pthread_join(t, NULL);
	CHECK_EQ(swct_next(&r.c, &c, 0), 0);
	return 0;
}

/* A head from nowhere only hurts its owner, who can repair it. */
static int lies(void)
{
	static const int32_t lie[] = { 1, 5, 1 << 30, -(1 << 30), INT32_MIN, -5000 };
	uint32_t head = r.c.user->head;
	struct swc_completion c;
	struct swc_desc d = desc(3);

	for (unsigned int i = 0; i < ARRAY_SIZE(lie); i++) {
		r.c.user->head = head + lie[i];
		CHECK_EQ(swct_submit(r.c.fd, &d), -EBUSY);
		r.c.user->head = head;
		CHECK_EQ(swct_submit(r.c.fd, &d), 0);
		r.c.user->head = head + lie[i];
		swct_sleep_ms(5);
		r.c.user->head = head;
		CHECK_EQ(swct_next(&r.c, &c, 10000), 0);
		CHECK_EQ(c.user_data, 3);
		head = r.c.user->head;
	}
	return 0;
}

int main(void)
{
	static const struct swct_test test[] = {
		{ "entries say what they should", contents },
		{ "full ring gives EBUSY and recovers", overflow },
		{ "io_uring completions go to the ring only when asked", uring_beside },
		{ "poll", polling },
		{ "entries are seen without system calls", watched },
		{ "ring wait: time-out, moved tail, wake-up", waiting },
		{ "a lying consumer", lies },
	};
	uint8_t id[SWC_ID_BYTES];

	ksft_print_header();
	swct_need_device();
	swct_alone(&r, id);
	swct_tests(test, ARRAY_SIZE(test));
	ksft_finished();
}
