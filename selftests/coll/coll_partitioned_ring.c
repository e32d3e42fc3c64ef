// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waits for partitions in the application's own io_uring: a CQE for each wait, for every kind of ring and every order;
 * and how waits end when a rank fails, a ring or the device is closed, or the process exits.
 *
 * COLL_PARTITIONED_SEED: repeat the orders of another run. SWC_TEST_SHORT=1: fewer killed ranks.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "partitioned.h"

#define NRANKS 3
#define MAX_PARTITIONS 256
#define ALL MAX_PARTITIONS /* in user_data: the wait for all of them */

static struct swingcoll_id id;
static unsigned int seed;
static bool can_cancel;
static unsigned int *arrived; /* counts ranks */

static const struct coll_case plain = { .coll = SWINGCOLL_ALLREDUCE,
					.dtype = SWINGCOLL_I64,
					.count = 300 };

struct kind {
	const char *name;
	unsigned int setup, sqe_flags;
};

static const struct kind kinds[] = {
	{ .name = "small entries" },
	{ .name = "large entries", .setup = TESTLIB_URING_BIG },
	{ .name = "DEFER_TASKRUN, SINGLE_ISSUER",
	  .setup = IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER },
	{ .name = "SQPOLL", .setup = IORING_SETUP_SQPOLL },
	{ .name = "IOSQE_ASYNC", .sqe_flags = IOSQE_ASYNC },
};

/* Submit the wait for a partition, or for ALL. */
static int submit_wait(struct io_uring *ring, struct partitioned *p, int i, unsigned int sqe_flags)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	int ret = sqe ? swingcoll_prep_pwait(sqe, p->part, i == ALL ? SWINGCOLL_ALL_PARTITIONS : i)
		      : -ENOSPC;

	if (ret)
		return ret;
	sqe->flags = sqe_flags;
	io_uring_sqe_set_data64(sqe, i);
	ret = io_uring_submit(ring);
	return ret < 0 ? ret : 0;
}

/* The next CQE has this result. */
static int next_is(struct io_uring *ring, int error)
{
	CHECK_EQ(testlib_uring_wait(ring, NULL, NULL, TESTLIB_EVENT_MS), error);
	return 0;
}

/* No CQE comes. To miss one that comes too late is possible, a false alarm is not. */
static int no_cqe(struct io_uring *ring)
{
	CHECK_EQ(testlib_uring_wait(ring, NULL, NULL, 20), -ETIME);
	return 0;
}

static int ready(struct partitioned *p, int i, int rank, uint64_t salt)
{
	partitioned_fill(p, i, rank, salt);
	return swingcoll_pready(p->part, i);
}

/* ------------------------------------------------------------------ right */

/*
 * Waits are submitted before, while and after partitions become ready, to two rings, by each rank in its own order: each
 * has one CQE, and then its partition is complete.
 */
static int round_of(struct partitioned *p, struct io_uring *ring, const struct kind *k,
		    uint32_t rank, uint64_t salt, unsigned int *rnd)
{
	int order[MAX_PARTITIONS], marks[MAX_PARTITIONS], seen[MAX_PARTITIONS + 1] = { 0 };

	CHECK_EQ(swingcoll_pstart(p->part), 0);
	partitioned_shuffle(order, p->n, rnd);
	partitioned_shuffle(marks, p->n, rnd);
	for (int i = 0; i < p->n; i++)
		partitioned_fill(p, i, rank, salt);
	CHECK_EQ(submit_wait(&ring[1], p, ALL, k->sqe_flags), 0);
	for (int i = 0, m = 0; i < p->n; i++) {
		CHECK_EQ(submit_wait(&ring[order[i] & 1], p, order[i], k->sqe_flags), 0);
		while (m < p->n && m < 2 * i - p->n / 2)
			CHECK_EQ(swingcoll_pready(p->part, marks[m++]), 0);
		for (; i == p->n - 1 && m < p->n; m++)
			CHECK_EQ(swingcoll_pready(p->part, marks[m]), 0);
	}
	for (int i = 0; i < p->n + 1; i++) {
		/* Ring 0 has the even partitions, ring 1 the odd ones and the wait for all. */
		bool first = i < (p->n + 1) / 2;
		uint64_t which;

		CHECK_EQ(testlib_uring_wait(&ring[!first], &which, NULL, TESTLIB_EVENT_MS), 0);
		CHECK(which <= MAX_PARTITIONS && !seen[which]++);
		if (which == ALL)
			continue;
		CHECK_EQ(swingcoll_parrived(p->part, which), 1);
		CHECK_EQ(partitioned_check(p, which, rank, salt), 0);
	}
	CHECK_EQ(seen[ALL], 1);
	/* Waits for what is complete already. */
	for (int i = 0; i < 3; i++)
		CHECK_EQ(submit_wait(&ring[i & 1], p, i < 2 ? order[i % p->n] : ALL, k->sqe_flags),
			 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(next_is(&ring[i & 1], 0), 0);
	return 0;
}

static int orders(uint32_t rank, void *arg)
{
	static const int parts[] = { 1, 2, 7, 64, 256 };
	unsigned int rnd = seed + rank;
	struct swingcoll_comm *comm;
	const struct kind *k = arg;
	struct io_uring ring[2];

	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(testlib_uring_init(&ring[i], MAX_PARTITIONS, k->setup), 0);
	for (unsigned int m = 0; m < ARRAY_SIZE(parts); m++) {
		struct partitioned p;

		CHECK_EQ(partitioned_open(&p, &plain, parts[m], comm), 0);
		for (int round = 0; round < 5; round++)
			CHECK_EQ(round_of(&p, ring, k, rank, round, &rnd), 0);
		CHECK_EQ(partitioned_close(&p), 0);
	}
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(no_cqe(&ring[i]), 0);
		io_uring_queue_exit(&ring[i]);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Three waits for one partition and two for all of them, when the other partitions are complete. */
static int together(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm;
	struct io_uring ring;
	struct partitioned p;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	CHECK_EQ(testlib_uring_init(&ring, 16, 0), 0);
	CHECK_EQ(partitioned_open(&p, &plain, 3, comm), 0);
	for (int round = 0; round < 20; round++) {
		CHECK_EQ(swingcoll_pstart(p.part), 0);
		for (int i = 0; i < 5; i++)
			CHECK_EQ(submit_wait(&ring, &p, i < 3 ? 1 : ALL, 0), 0);
		CHECK_EQ(ready(&p, 0, rank, round), 0);
		CHECK_EQ(ready(&p, 2, rank, round), 0);
		CHECK_EQ(submit_wait(&ring, &p, 2, 0), 0);
		CHECK_EQ(next_is(&ring, 0), 0);
		CHECK_EQ(no_cqe(&ring), 0);
		CHECK_EQ(ready(&p, 1, rank, round), 0);
		for (int i = 0; i < 5; i++)
			CHECK_EQ(next_is(&ring, 0), 0);
		CHECK_EQ(swingcoll_parrived(p.part, 1), 1);
	}
	CHECK_EQ(no_cqe(&ring), 0);
	io_uring_queue_exit(&ring);
	CHECK_EQ(partitioned_close(&p), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* ------------------------------------------------------------------ refused */

static int in_child(void *arg)
{
	struct partitioned *p = arg;
	unsigned char sqe[64];

	CHECK_EQ(swingcoll_prep_pwait((void *)sqe, p->part, 0), -EBADF);
	return 0;
}

/* Arguments; with waits in flight a request cannot be freed, and io_uring cannot cancel the waits. */
static int misuse(uint32_t rank, void *arg)
{
	unsigned char sqe[64], before[64];
	struct io_uring_sqe *cancel;
	struct swingcoll_comm *comm;
	struct io_uring ring;
	uint64_t user_data;
	struct partitioned p;

	(void)arg;
	memset(sqe, 0xa5, sizeof(sqe));
	memcpy(before, sqe, sizeof(sqe));
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	CHECK_EQ(testlib_uring_init(&ring, 16, 0), 0);
	CHECK_EQ(partitioned_open(&p, &plain, 5, comm), 0);
	CHECK_EQ(swingcoll_prep_pwait((void *)sqe, p.part, 0), -EINVAL); /* not started */
	CHECK_EQ(swingcoll_pstart(p.part), 0);
	CHECK_EQ(swingcoll_prep_pwait(NULL, p.part, 0), -EINVAL);
	CHECK_EQ(swingcoll_prep_pwait((void *)sqe, NULL, 0), -EINVAL);
	CHECK_EQ(swingcoll_prep_pwait((void *)sqe, p.part, 5), -EINVAL);
	CHECK_EQ(swingcoll_prep_pwait((void *)sqe, p.part, -2), -EINVAL);
	CHECK(!memcmp(sqe, before, sizeof(sqe)));
	CHECK_EQ(testlib_run_child(in_child, &p), 0);
	CHECK_EQ(submit_wait(&ring, &p, 3, 0), 0);
	CHECK_EQ(swingcoll_pfree(p.part), -EBUSY);
	cancel = io_uring_get_sqe(&ring);
	io_uring_prep_cancel64(cancel, 3, 0);
	io_uring_sqe_set_data64(cancel, 77);
	CHECK_EQ(io_uring_submit(&ring), 1);
	CHECK(testlib_uring_wait(&ring, &user_data, NULL, TESTLIB_EVENT_MS) < 0);
	CHECK_EQ(user_data, 77);
	CHECK_EQ(no_cqe(&ring), 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(ready(&p, i, rank, 1), 0);
	CHECK_EQ(next_is(&ring, 0), 0);
	CHECK_EQ(partitioned_check(&p, 3, rank, 1), 0);
	CHECK_EQ(swingcoll_pwait(p.part, SWINGCOLL_ALL_PARTITIONS), 0);
	CHECK_EQ(no_cqe(&ring), 0);
	io_uring_queue_exit(&ring);
	CHECK_EQ(partitioned_close(&p), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* By the uapi. */
static struct testlib_rank alone;

static int raw_wait(int fd, uint32_t handle, uint32_t partition, uint32_t timeout_ms, uint32_t resv)
{
	struct swc_partitioned_ref ref = { handle, partition, timeout_ms, resv };
	struct io_uring ring;
	int ret = testlib_uring_init(&ring, 2, 0);

	if (ret)
		return ret;
	testlib_uring_prep_wait(&ring, fd, &ref, 0);
	ret = io_uring_submit(&ring) == 1 ? testlib_uring_wait(&ring, NULL, NULL, TESTLIB_EVENT_MS)
					  : -EIO;
	io_uring_queue_exit(&ring);
	return ret;
}

static int in_other_mm(void *arg)
{
	CHECK_EQ(raw_wait(alone.c.fd, *(uint32_t *)arg, 0, 0, 0), -EPERM);
	return 0;
}

static int raw_init(struct testlib_rank *r, float *mem, uint32_t n, struct swc_partitioned_ref *ref)
{
	struct swc_partitioned_init init = { .partitions = n,
					     .send_stride = 16,
					     .recv_stride = 16 };
	int ret;

	init.desc = testlib_allreduce_desc(r, mem, mem, 4, SWC_F32);
	ret = testlib_ioctl(r->c.fd, SWC_IOC_PARTITIONED_INIT, &init);
	*ref = (struct swc_partitioned_ref){ .handle = init.handle };
	return ret;
}

static int raw_misuse(void)
{
	static float mem[8 * 4];
	struct swc_partitioned_ref ref;
	struct swc_comm_ref abort = { 0 };
	uint8_t raw[SWC_ID_BYTES];

	testlib_single_rank(&alone, raw);
	CHECK_EQ(raw_init(&alone, mem, 8, &ref), 0);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, 0, 0, 0), -EINVAL); /* not started */
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, SWC_ALL_PARTITIONS, 0, 0), -EINVAL);
	CHECK_EQ(testlib_ioctl(alone.c.fd, SWC_IOC_PARTITIONED_START, &ref), 0);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle + 1, 0, 0, 0), -ENOENT);
	CHECK_EQ(raw_wait(alone.c.fd, 0, 0, 0, 0), -ENOENT);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, 8, 0, 0), -EINVAL);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, SWC_ALL_PARTITIONS - 1, 0, 0), -EINVAL);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, 0, 1, 0), -EINVAL);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, 0, 0, 1), -EINVAL);
	CHECK_EQ(testlib_run_child(in_other_mm, &ref.handle), 0);
	abort.comm = alone.comm;
	CHECK_EQ(testlib_ioctl(alone.c.fd, SWC_IOC_COMM_ABORT, &abort), 0);
	/* After the abort. */
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, 0, 0, 0), -ECONNABORTED);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, SWC_ALL_PARTITIONS, 0, 0), -ECONNABORTED);
	CHECK_EQ(testlib_ioctl(alone.c.fd, SWC_IOC_PARTITIONED_FREE, &ref), 0);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, 0, 0, 0), -ENOENT);
	testlib_rank_close(&alone);
	return 0;
}

/* ------------------------------------------------------------------ ends */

static const struct partitioned_failure failures[] = {
	{ "a rank never marks partitions ready", NEVER_READY, -ETIMEDOUT },
	{ "a rank dies with waits in flight", DIES, -ECONNRESET },
	{ "a rank aborts", ABORTS, -ECONNABORTED },
};

/* Every rank waits for 64 partitions. The last rank marks half of them ready, the others all but two. */
static int failure(uint32_t rank, void *arg)
{
	const struct partitioned_failure *e = arg;
	struct swingcoll_comm_opts opts = { .timeout_ms = partitioned_failure_ms(e) };
	bool last = rank == NRANKS - 1;
	struct swingcoll_comm *comm;
	struct io_uring ring;
	struct partitioned p;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, &opts), 0);
	CHECK_EQ(testlib_uring_init(&ring, 128, 0), 0);
	CHECK_EQ(partitioned_open(&p, &plain, 64, comm), 0);
	CHECK_EQ(swingcoll_pstart(p.part), 0);
	for (int i = 0; i < 64; i++)
		CHECK_EQ(submit_wait(&ring, &p, i, 0), 0);
	CHECK_EQ(submit_wait(&ring, &p, ALL, 0), 0);
	for (int i = 0; i < (last ? 32 : 62); i++)
		CHECK_EQ(ready(&p, i, rank, 0), 0);
	for (int i = 0; i < 32; i++)
		CHECK_EQ(next_is(&ring, 0), 0);
	/* Only when all have these CQEs: a wait may get the request's error though its partition is complete. */
	testlib_count(arrived);
	if (last && e->offence != NEVER_READY)
		CHECK(testlib_wait_count(arrived, NRANKS));
	if (last && e->offence == DIES)
		raise(SIGKILL);
	if (last && e->offence == ABORTS)
		CHECK_EQ(swingcoll_comm_abort(comm), 0);
	for (int i = 32; i < 65; i++)
		CHECK_EQ(next_is(&ring, e->error), 0);
	/* A wait that is submitted after the error. */
	CHECK_EQ(submit_wait(&ring, &p, 63, 0), 0);
	CHECK_EQ(next_is(&ring, e->error), 0);
	CHECK_EQ(partitioned_close(&p), 0);
	swingcoll_comm_destroy(comm);
	io_uring_queue_exit(&ring);
	return 0;
}

/* A ring is closed with waits in flight; the request goes on. */
static int ring_closed(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm;
	struct io_uring ring;
	struct partitioned p;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	CHECK_EQ(partitioned_open(&p, &plain, 50, comm), 0);
	for (int round = 0; round < 10; round++) {
		CHECK_EQ(testlib_uring_init(&ring, 64, 0), 0);
		CHECK_EQ(swingcoll_pstart(p.part), 0);
		for (int i = 0; i < 50; i++) {
			CHECK_EQ(submit_wait(&ring, &p, i, 0), 0);
			if (i < 5 * round)
				CHECK_EQ(ready(&p, i, rank, round), 0);
		}
		io_uring_queue_exit(&ring);
		/* In every other round, give the kernel time to cancel the waits before. */
		if (round & 1)
			testlib_sleep_ms(20);
		for (int i = 5 * round; i < 50; i++)
			CHECK_EQ(ready(&p, i, rank, round), 0);
		CHECK_EQ(swingcoll_pwait(p.part, SWINGCOLL_ALL_PARTITIONS), 0);
		for (int i = 0; i < 50; i++)
			CHECK_EQ(partitioned_check(&p, i, rank, round), 0);
	}
	CHECK_EQ(partitioned_close(&p), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/*
 * The process exits with waits in flight; before that it closes nothing, the device (bit 0), the ring (bit 1), or both.
 * If it closes the device, the waits end, and everything is released before the exit. Bit 2: exit by SIGKILL.
 */
static int leaves(void *arg)
{
	int how = *(int *)arg;
	static float mem[8 * 4];
	struct swc_partitioned_ref ref;
	uint8_t raw[SWC_ID_BYTES];
	struct io_uring ring;
	struct testlib_rank r;

	testlib_single_rank(&r, raw);
	CHECK_EQ(testlib_uring_init(&ring, 16, 0), 0);
	CHECK_EQ(raw_init(&r, mem, 8, &ref), 0);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_START, &ref), 0);
	for (ref.partition = 0; ref.partition < 8; ref.partition++)
		testlib_uring_prep_wait(&ring, r.c.fd, &ref, 0);
	CHECK_EQ(io_uring_submit(&ring), 8);
	CHECK_EQ(no_cqe(&ring), 0);
	if (how & 1) {
		/* The process has no other descriptor: all that it waits for ends. */
		testlib_close(&r.c);
		for (int i = 0; i < 8; i++)
			CHECK_EQ(next_is(&ring, -ECONNRESET), 0);
	}
	if (how & 2)
		io_uring_queue_exit(&ring);
	if (how & 1)
		CHECK_EQ(testlib_wait_released(0), 0);
	if (how & 4)
		raise(SIGKILL);
	return 0;
}

/* Rounds without end, for ranks that are killed at random moments. */
static int restless(uint32_t rank, void *arg)
{
	struct partitioned_kill_state *s = arg;
	struct swingcoll_comm_opts opts = { .timeout_ms = s->timeout_ms };
	struct swingcoll_comm *comm;
	struct io_uring ring;
	struct partitioned p;
	int ret;

	ret = swingcoll_comm_create(&comm, &id, NRANKS, rank, &opts);
	testlib_count(&s->created);
	if (!ret)
		ret = partitioned_open(&p, &plain, 100, comm);
	if (!ret)
		ret = testlib_uring_init(&ring, 128, 0);
	while (!ret) {
		ret = swingcoll_pstart(p.part);
		for (int i = 0; i < 100 && !ret; i++) {
			ret = submit_wait(&ring, &p, (i * 53 + rank) % 100, 0);
			if (!ret)
				ret = swingcoll_pready(p.part, (i * 37 + rank * 11) % 100);
		}
		for (int i = 0; i < 100 && !ret; i++)
			ret = testlib_uring_wait(&ring, NULL, NULL, TESTLIB_EVENT_MS);
	}
	return partitioned_check_killed(s, ret);
}

static int exits(void)
{
	for (int how = 0; how < 8; how++) {
		CHECK_EQ(testlib_run_child(leaves, &how), how & 4 ? 256 + SIGKILL : 0);
		/* The ring of a process may be released after its exit, and the device after that. */
		CHECK_EQ(testlib_wait_released(0), 0);
	}
	return 0;
}

static int kills(void)
{
	return partitioned_kill_ranks(restless, NRANKS, &id, &seed) || testlib_wait_released(0);
}

int main(void)
{
	struct io_uring probe;

	ksft_print_header();
	testlib_require_device();
	if (testlib_uring_init(&probe, 4, 0))
		ksft_exit_skip("no io_uring here\n");
	io_uring_queue_exit(&probe);
	can_cancel = testlib_info().features & SWC_FEATURE_CANCEL;
	arrived = testlib_shared_alloc(sizeof(*arrived));
	seed = testlib_env_seed("COLL_PARTITIONED_SEED");
	ksft_print_msg("COLL_PARTITIONED_SEED=%u\n", seed);
	ksft_set_plan(ARRAY_SIZE(kinds) + ARRAY_SIZE(failures) + 6);

#define RANKS(fn, arg, ...)                                                                        \
	do {                                                                                       \
		swingcoll_unique_id(&id);                                                          \
		ksft_test_result(!testlib_run_ranks(NRANKS, fn, (void *)(arg)), __VA_ARGS__);      \
	} while (0)

	for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++)
		RANKS(orders, &kinds[k], "a CQE for each wait, 1 to 256 partitions: %s",
		      kinds[k].name);
	RANKS(together, NULL, "several waits for the same partitions");
	RANKS(misuse, NULL, "bad arguments and bad order of calls");
	ksft_test_result(!raw_misuse(), "bad waits by the uapi");
	for (unsigned int k = 0; k < ARRAY_SIZE(failures); k++) {
		*arrived = 0;
		ksft_test_result(!partitioned_run_failure(&failures[k], failure, NRANKS, &id), "%s",
				 failures[k].name);
	}
	RANKS(ring_closed, NULL, "a ring is closed with waits in flight");
	ksft_test_result(!exits(), "the process exits with waits in flight%s",
			 can_cancel ? ", which are cancelled" : "");
	ksft_test_result(!kills(), "a rank is killed at random moments");
	ksft_finished();
}
