// SPDX-License-Identifier: GPL-2.0-only
/*
 * Partitions that are waited for in the application's own io_uring: a CQE each, whatever the ring and the order;
 * and what becomes of the waits when something or somebody ends.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "partitioned.h"

#define NRANKS 3
#define MOST 256
#define ALL MOST /* in user_data: the wait for all */
#define WAIT_MS 30000

static struct swingcoll_id id;
static unsigned int seed;
static bool can_cancel;
static int64_t at_start;
static unsigned int *arrived;

static const struct coll_case plain = { .coll = SWINGCOLL_ALLREDUCE,
					.dtype = SWINGCOLL_I64,
					.count = 300 };

struct kind {
	const char *name;
	unsigned int setup, sqe_flags;
};

static const struct kind kinds[] = {
	{ .name = "small entries" },
	{ .name = "large entries", .setup = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 },
	{ .name = "DEFER_TASKRUN, SINGLE_ISSUER",
	  .setup = IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER },
	{ .name = "SQPOLL", .setup = IORING_SETUP_SQPOLL },
	{ .name = "IOSQE_ASYNC", .sqe_flags = IOSQE_ASYNC },
};

/* Submit the wait for a partition, or for ALL. */
static int wait_for(struct io_uring *ring, struct parted *p, int i, unsigned int sqe_flags)
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

static int next_is(struct io_uring *ring, int error)
{
	CHECK_EQ(swct_uring_wait(ring, NULL, NULL, WAIT_MS), error);
	return 0;
}

static int nothing_comes(struct io_uring *ring)
{
	CHECK_EQ(swct_uring_wait(ring, NULL, NULL, 20), -ETIME);
	return 0;
}

static int ready(struct parted *p, int i, int rank, uint64_t salt)
{
	parted_fill(p, i, rank, salt);
	return swingcoll_pready(p->part, i);
}

/* ------------------------------------------------------------------ right */

/*
 * Waits come before, among and behind what is waited for, each rank in an order of its own, and some are of the
 * second ring: every one has its CQE, when its partition is there.
 */
static int round_of(struct parted *p, struct io_uring *ring, const struct kind *k, uint32_t rank,
		    uint64_t salt, unsigned int *rnd)
{
	int order[MOST], marks[MOST], seen[MOST + 1] = { 0 };

	CHECK_EQ(swingcoll_pstart(p->part), 0);
	parted_shuffle(order, p->n, rnd);
	parted_shuffle(marks, p->n, rnd);
	for (int i = 0; i < p->n; i++)
		parted_fill(p, i, rank, salt);
	CHECK_EQ(wait_for(&ring[1], p, ALL, k->sqe_flags), 0);
	for (int i = 0, m = 0; i < p->n; i++) {
		CHECK_EQ(wait_for(&ring[order[i] & 1], p, order[i], k->sqe_flags), 0);
		while (m < p->n && m < 2 * i - p->n / 2)
			CHECK_EQ(swingcoll_pready(p->part, marks[m++]), 0);
		for (; i == p->n - 1 && m < p->n; m++)
			CHECK_EQ(swingcoll_pready(p->part, marks[m]), 0);
	}
	for (int i = 0; i < p->n + 1; i++) {
		/* Ring 0 has the even ones, ring 1 the odd ones and that for all. */
		bool first = i < (p->n + 1) / 2;
		uint64_t which;

		CHECK_EQ(swct_uring_wait(&ring[!first], &which, NULL, WAIT_MS), 0);
		CHECK(which <= MOST && !seen[which]++);
		if (which == ALL)
			continue;
		CHECK_EQ(swingcoll_parrived(p->part, which), 1);
		CHECK_EQ(parted_check(p, which, rank, salt), 0);
	}
	CHECK_EQ(seen[ALL], 1);
	/* What is done already. */
	for (int i = 0; i < 3; i++)
		CHECK_EQ(wait_for(&ring[i & 1], p, i < 2 ? order[i % p->n] : ALL, k->sqe_flags), 0);
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
		CHECK_EQ(swct_uring_init(&ring[i], MOST, k->setup), 0);
	for (unsigned int m = 0; m < ARRAY_SIZE(parts); m++) {
		struct parted p;

		CHECK_EQ(parted_up(&p, &plain, parts[m], comm), 0);
		for (int round = 0; round < 5; round++)
			CHECK_EQ(round_of(&p, ring, k, rank, round, &rnd), 0);
		CHECK_EQ(parted_down(&p), 0);
	}
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(nothing_comes(&ring[i]), 0);
		io_uring_queue_exit(&ring[i]);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Three waits for one partition and two for all, the others being done. */
static int together(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm;
	struct io_uring ring;
	struct parted p;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	CHECK_EQ(swct_uring_init(&ring, 16, 0), 0);
	CHECK_EQ(parted_up(&p, &plain, 3, comm), 0);
	for (int round = 0; round < 20; round++) {
		CHECK_EQ(swingcoll_pstart(p.part), 0);
		for (int i = 0; i < 5; i++)
			CHECK_EQ(wait_for(&ring, &p, i < 3 ? 1 : ALL, 0), 0);
		CHECK_EQ(ready(&p, 0, rank, round), 0);
		CHECK_EQ(ready(&p, 2, rank, round), 0);
		CHECK_EQ(wait_for(&ring, &p, 2, 0), 0);
		CHECK_EQ(next_is(&ring, 0), 0);
		CHECK_EQ(nothing_comes(&ring), 0);
		CHECK_EQ(ready(&p, 1, rank, round), 0);
		for (int i = 0; i < 5; i++)
			CHECK_EQ(next_is(&ring, 0), 0);
		CHECK_EQ(swingcoll_parrived(p.part, 1), 1);
	}
	CHECK_EQ(nothing_comes(&ring), 0);
	io_uring_queue_exit(&ring);
	CHECK_EQ(parted_down(&p), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* ------------------------------------------------------------------ refused */

static int in_child(void *arg)
{
	struct parted *p = arg;
	unsigned char sqe[64];

	CHECK_EQ(swingcoll_prep_pwait((void *)sqe, p->part, 0), -EBADF);
	return 0;
}

/* Arguments; a handle is not freed under waits, nor does io_uring find them to cancel. */
static int misuse(uint32_t rank, void *arg)
{
	unsigned char sqe[64], before[64];
	struct io_uring_sqe *cancel;
	struct swingcoll_comm *comm;
	struct io_uring ring;
	uint64_t user_data;
	struct parted p;

	(void)arg;
	memset(sqe, 0xa5, sizeof(sqe));
	memcpy(before, sqe, sizeof(sqe));
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	CHECK_EQ(swct_uring_init(&ring, 16, 0), 0);
	CHECK_EQ(parted_up(&p, &plain, 5, comm), 0);
	CHECK_EQ(swingcoll_prep_pwait((void *)sqe, p.part, 0), -EINVAL); /* no round */
	CHECK_EQ(swingcoll_pstart(p.part), 0);
	CHECK_EQ(swingcoll_prep_pwait(NULL, p.part, 0), -EINVAL);
	CHECK_EQ(swingcoll_prep_pwait((void *)sqe, NULL, 0), -EINVAL);
	CHECK_EQ(swingcoll_prep_pwait((void *)sqe, p.part, 5), -EINVAL);
	CHECK_EQ(swingcoll_prep_pwait((void *)sqe, p.part, -2), -EINVAL);
	CHECK(!memcmp(sqe, before, sizeof(sqe)));
	CHECK_EQ(swct_child(in_child, &p, 10000), 0);
	CHECK_EQ(wait_for(&ring, &p, 3, 0), 0);
	CHECK_EQ(swingcoll_pfree(p.part), -EBUSY);
	cancel = io_uring_get_sqe(&ring);
	io_uring_prep_cancel64(cancel, 3, 0);
	io_uring_sqe_set_data64(cancel, 77);
	CHECK_EQ(io_uring_submit(&ring), 1);
	CHECK(swct_uring_wait(&ring, &user_data, NULL, WAIT_MS) < 0);
	CHECK_EQ(user_data, 77);
	CHECK_EQ(nothing_comes(&ring), 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(ready(&p, i, rank, 1), 0);
	CHECK_EQ(next_is(&ring, 0), 0);
	CHECK_EQ(parted_check(&p, 3, rank, 1), 0);
	CHECK_EQ(swingcoll_pwait(p.part, SWINGCOLL_ALL_PARTITIONS), 0);
	CHECK_EQ(nothing_comes(&ring), 0);
	io_uring_queue_exit(&ring);
	CHECK_EQ(parted_down(&p), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* By the words of the uapi. */
static struct swct_rank alone;

static int raw_wait(int fd, uint32_t handle, uint32_t partition, uint32_t timeout_ms, uint32_t resv)
{
	struct swc_part_ref ref = { handle, partition, timeout_ms, resv };
	struct io_uring ring;
	int ret = swct_uring_init(&ring, 2, 0);

	if (ret)
		return ret;
	swct_uring_prep_wait(&ring, fd, &ref, 0);
	ret = io_uring_submit(&ring) == 1 ? swct_uring_wait(&ring, NULL, NULL, 1000) : -EIO;
	io_uring_queue_exit(&ring);
	return ret;
}

static int in_other_mm(void *arg)
{
	CHECK_EQ(raw_wait(alone.c.fd, *(uint32_t *)arg, 0, 0, 0), -EPERM);
	return 0;
}

static int raw_init(struct swct_rank *r, float *mem, uint32_t n, struct swc_part_ref *ref)
{
	struct swc_part_init init = { .partitions = n, .send_stride = 16, .recv_stride = 16 };
	int ret;

	init.desc = swct_allreduce(r, mem, mem, 4, SWC_F32);
	ret = swct_ioctl(r->c.fd, SWC_IOC_PART_INIT, &init);
	*ref = (struct swc_part_ref){ .handle = init.handle };
	return ret;
}

static int raw_misuse(void)
{
	static float mem[8 * 4];
	struct swc_part_ref ref;
	struct swc_comm_ref abort = { 0 };
	uint8_t raw[SWC_ID_BYTES];

	swct_alone(&alone, raw);
	CHECK_EQ(raw_init(&alone, mem, 8, &ref), 0);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, 0, 0, 0), -EINVAL); /* no round */
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, SWC_ALL_PARTITIONS, 0, 0), -EINVAL);
	CHECK_EQ(swct_ioctl(alone.c.fd, SWC_IOC_PART_START, &ref), 0);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle + 1, 0, 0, 0), -ENOENT);
	CHECK_EQ(raw_wait(alone.c.fd, 0, 0, 0, 0), -ENOENT);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, 8, 0, 0), -EINVAL);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, SWC_ALL_PARTITIONS - 1, 0, 0), -EINVAL);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, 0, 1, 0), -EINVAL);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, 0, 0, 1), -EINVAL);
	CHECK_EQ(swct_child(in_other_mm, &ref.handle, 10000), 0);
	abort.comm = alone.comm;
	CHECK_EQ(swct_ioctl(alone.c.fd, SWC_IOC_COMM_ABORT, &abort), 0);
	/* After the end: what has not begun will not. */
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, 0, 0, 0), -ECONNABORTED);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, SWC_ALL_PARTITIONS, 0, 0), -ECONNABORTED);
	CHECK_EQ(swct_ioctl(alone.c.fd, SWC_IOC_PART_FREE, &ref), 0);
	CHECK_EQ(raw_wait(alone.c.fd, ref.handle, 0, 0, 0), -ENOENT);
	swct_rank_down(&alone);
	return 0;
}

/* ------------------------------------------------------------------ ends */

enum sin {
	NEVER_READY,
	DIES,
	ABORTS
};

struct end {
	const char *name;
	enum sin sin;
	int error;
};

static const struct end ends[] = {
	{ "a rank never marks partitions ready", NEVER_READY, -ETIMEDOUT },
	{ "a rank dies with waits in flight", DIES, -ECONNRESET },
	{ "a rank aborts", ABORTS, -ECONNABORTED },
};

/* Every rank waits for 64 partitions; the last one marks half of them, the others all but two. */
static int end(uint32_t rank, void *arg)
{
	const struct end *e = arg;
	struct swingcoll_comm_opts opts = { .timeout_ms = e->sin == NEVER_READY ? 5000 : 20000 };
	bool last = rank == NRANKS - 1;
	struct swingcoll_comm *comm;
	struct io_uring ring;
	struct parted p;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, &opts), 0);
	CHECK_EQ(swct_uring_init(&ring, 128, 0), 0);
	CHECK_EQ(parted_up(&p, &plain, 64, comm), 0);
	CHECK_EQ(swingcoll_pstart(p.part), 0);
	for (int i = 0; i < 64; i++)
		CHECK_EQ(wait_for(&ring, &p, i, 0), 0);
	CHECK_EQ(wait_for(&ring, &p, ALL, 0), 0);
	for (int i = 0; i < (last ? 32 : 62); i++)
		CHECK_EQ(ready(&p, i, rank, 0), 0);
	for (int i = 0; i < 32; i++)
		CHECK_EQ(next_is(&ring, 0), 0);
	/* Once all have theirs: a wait may get an error of the round though its own partition is done. */
	__atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL);
	while (last && e->sin != NEVER_READY && __atomic_load_n(arrived, __ATOMIC_ACQUIRE) < NRANKS)
		swct_sleep_ms(1);
	if (last && e->sin == DIES)
		raise(SIGKILL);
	if (last && e->sin == ABORTS)
		CHECK_EQ(swingcoll_comm_abort(comm), 0);
	for (int i = 32; i < 65; i++)
		CHECK_EQ(next_is(&ring, e->error), 0);
	/* And one that comes too late. */
	CHECK_EQ(wait_for(&ring, &p, 63, 0), 0);
	CHECK_EQ(next_is(&ring, e->error), 0);
	CHECK_EQ(parted_down(&p), 0);
	swingcoll_comm_destroy(comm);
	io_uring_queue_exit(&ring);
	return 0;
}

static int run_end(const struct end *e)
{
	pid_t pid[NRANKS];
	int bad;

	swingcoll_unique_id(&id);
	*arrived = 0;
	swct_fork(pid, NRANKS, end, (void *)e);
	/* The one that kills itself is no failure of the test. */
	bad = swct_reap(pid, NRANKS - 1, 20000);
	return bad | (swct_reap(pid + NRANKS - 1, 1, 20000) != (e->sin == DIES));
}

/* A ring goes with waits in flight, the round goes on. */
static int ring_closed(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm;
	struct io_uring ring;
	struct parted p;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	CHECK_EQ(parted_up(&p, &plain, 50, comm), 0);
	for (int round = 0; round < 10; round++) {
		CHECK_EQ(swct_uring_init(&ring, 64, 0), 0);
		CHECK_EQ(swingcoll_pstart(p.part), 0);
		for (int i = 0; i < 50; i++) {
			CHECK_EQ(wait_for(&ring, &p, i, 0), 0);
			if (i < 5 * round)
				CHECK_EQ(ready(&p, i, rank, round), 0);
		}
		io_uring_queue_exit(&ring);
		/* Cancelled meanwhile, or at that moment. */
		if (round & 1)
			swct_sleep_ms(20);
		for (int i = 5 * round; i < 50; i++)
			CHECK_EQ(ready(&p, i, rank, round), 0);
		CHECK_EQ(swingcoll_pwait(p.part, SWINGCOLL_ALL_PARTITIONS), 0);
		for (int i = 0; i < 50; i++)
			CHECK_EQ(parted_check(&p, i, rank, round), 0);
	}
	CHECK_EQ(parted_down(&p), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Pages, and contexts but those that are still open. */
static int64_t held(void)
{
	return swct_stat(SWC_STAT_PAGES_PINNED) - swct_stat(SWC_STAT_PAGES_UNPINNED) +
	       swct_stat(SWC_STAT_CONTEXTS_OPENED) - swct_stat(SWC_STAT_CONTEXTS_CLOSED);
}

/* What others that have just ended are still giving back is not to be taken for held. */
static int64_t held_by_others(void)
{
	int64_t now = held(), was;

	do {
		was = now;
		swct_sleep_ms(200);
		now = held();
	} while (now < was);
	return now;
}

static int given_back(int64_t before)
{
	for (int i = 0; i < 500; i++) {
		/* Or fewer: those before may have been giving back still. */
		if (held() <= before)
			return 0;
		swct_sleep_ms(10);
	}
	ksft_print_msg("pages stay pinned, or contexts open: %lld\n", (long long)(held() - before));
	return 1;
}

/*
 * The process ends with waits in flight: before that it closes nothing, the device, the ring, or both. Where
 * they can be cancelled, the device is then closed at once.
 */
static int leaves(void *arg)
{
	int64_t before = held();
	int how = *(int *)arg;
	static float mem[8 * 4];
	struct swc_part_ref ref;
	uint8_t raw[SWC_ID_BYTES];
	struct io_uring ring;
	struct swct_rank r;

	swct_alone(&r, raw);
	CHECK_EQ(swct_uring_init(&ring, 16, 0), 0);
	CHECK_EQ(raw_init(&r, mem, 8, &ref), 0);
	CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_PART_START, &ref), 0);
	for (ref.partition = 0; ref.partition < 8; ref.partition++)
		swct_uring_prep_wait(&ring, r.c.fd, &ref, 0);
	CHECK_EQ(io_uring_submit(&ring), 8);
	CHECK_EQ(nothing_comes(&ring), 0);
	if (how & 1)
		swct_close(&r.c);
	if (how & 1)
		CHECK_EQ(nothing_comes(&ring), 0);
	if (how & 2)
		io_uring_queue_exit(&ring);
	if ((how & 3) == 3 && can_cancel)
		CHECK_EQ(given_back(before), 0);
	if (how & 4)
		raise(SIGKILL);
	return 0;
}

/* Killed at any moment, with waits and CQEs in any state. */
static int restless(uint32_t rank, void *arg)
{
	struct parted_restless *s = arg;
	struct swingcoll_comm_opts opts = { .timeout_ms = s->timeout_ms };
	struct swingcoll_comm *comm;
	struct io_uring ring;
	struct parted p;
	int ret;

	ret = swingcoll_comm_create(&comm, &id, NRANKS, rank, &opts);
	__atomic_add_fetch(&s->joined, 1, __ATOMIC_ACQ_REL);
	if (!ret)
		ret = parted_up(&p, &plain, 100, comm);
	if (!ret)
		ret = swct_uring_init(&ring, 128, 0);
	while (!ret) {
		ret = swingcoll_pstart(p.part);
		for (int i = 0; i < 100 && !ret; i++) {
			ret = wait_for(&ring, &p, (i * 53 + rank) % 100, 0);
			if (!ret)
				ret = swingcoll_pready(p.part, (i * 37 + rank * 11) % 100);
		}
		for (int i = 0; i < 100 && !ret; i++)
			ret = swct_uring_wait(&ring, NULL, NULL, WAIT_MS);
	}
	/* Others hear of whoever is killed; rank 0, which is, of nothing. */
	if (ret == -ETIME || !rank)
		ksft_print_msg("rank %u ends by %d: %s\n", rank, ret, swingcoll_strerror(ret));
	return ret == -ETIME;
}

static int exits(void)
{
	for (int how = 0; how < 8; how++) {
		CHECK_EQ(swct_child(leaves, &how, 20000), how & 4 ? 256 + SIGKILL : 0);
		/* The ring of one that has ended may go later, and the device with it. */
		CHECK_EQ(given_back(at_start), 0);
	}
	return 0;
}

static int kills(void)
{
	return parted_kills(restless, NRANKS, &id, &seed) || given_back(at_start);
}

int main(void)
{
	struct swc_info info;
	struct io_uring probe;
	struct swct_ctx c;

	ksft_print_header();
	swct_need_device();
	if (swct_uring_init(&probe, 4, 0))
		ksft_exit_skip("no io_uring here\n");
	io_uring_queue_exit(&probe);
	if (swct_open(&c) || swct_ioctl(c.fd, SWC_IOC_INFO, &info))
		ksft_exit_fail_msg("no device\n");
	can_cancel = info.features & SWC_FEATURE_CANCEL;
	swct_close(&c);
	at_start = held_by_others();
	arrived = swct_shared(sizeof(*arrived));
	seed = (unsigned int)getpid();
	ksft_print_msg("seed %u\n", seed);
	ksft_set_plan(ARRAY_SIZE(kinds) + ARRAY_SIZE(ends) + 6);

#define RANKS(fn, arg, ...)                                                                        \
	do {                                                                                       \
		swingcoll_unique_id(&id);                                                          \
		ksft_test_result(!swct_ranks(NRANKS, 120000, fn, (void *)(arg)), __VA_ARGS__);     \
	} while (0)

	for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++)
		RANKS(orders, &kinds[k], "a CQE for each of 1 to 256 partitions: %s",
		      kinds[k].name);
	RANKS(together, NULL, "several waits for the same");
	RANKS(misuse, NULL, "misuse");
	ksft_test_result(!raw_misuse(), "refused by the kernel");
	for (unsigned int k = 0; k < ARRAY_SIZE(ends); k++)
		ksft_test_result(!run_end(&ends[k]), "%s\n", ends[k].name);
	RANKS(ring_closed, NULL, "the ring is closed with waits in flight");
	ksft_test_result(!exits(), "the process ends with waits in flight%s\n",
			 can_cancel ? ", which are cancelled" : "");
	ksft_test_result(!kills(), "killed at any moment\n");
	ksft_finished();
}
