// SPDX-License-Identifier: GPL-2.0-only
/*
 * Partitioned collectives that fail: a rank does not do its part, calls something else, dies at any moment, or writes
 * random words to the shared memory. The other ranks get an error, and all resources are released.
 *
 * COLL_PARTITIONED_SEED: repeat the random numbers of another run. SWC_TEST_SHORT=1: fewer killed ranks.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "partitioned.h"

#define NRANKS 4

static struct swingcoll_id id;
static unsigned int seed;

static const struct coll_case plain = { .coll = SWINGCOLL_ALLREDUCE,
					.dtype = SWINGCOLL_F32,
					.count = 1000 };

/* ------------------------------------------------------------------ a rank that fails */

static const struct partitioned_failure failures[] = {
	{ "a rank never marks a partition ready", NEVER_READY, -ETIMEDOUT },
	{ "a rank marks a partition ready twice", TWICE_READY, -EINVAL },
	{ "a rank dies with partitions not ready", DIES, -ECONNRESET },
	{ "a rank aborts", ABORTS, -ECONNABORTED },
	{ "a rank has more partitions than the others", ANOTHER_NUMBER, -EPROTO },
};

static int offend(const struct partitioned_failure *e, struct partitioned *j,
		  struct swingcoll_comm *comm)
{
	switch (e->offence) {
	case TWICE_READY:
		swingcoll_pready(j->part, 0);
		break;
	case DIES:
		raise(SIGKILL);
		break;
	case ABORTS:
		CHECK_EQ(swingcoll_comm_abort(comm), 0);
		break;
	default:
		break;
	}
	return 0;
}

static int through_kernel(struct swingcoll_comm *comm)
{
	struct swingcoll_req *req;
	int ret = swingcoll_ibarrier(comm, &req);

	return ret ? ret : swingcoll_wait(req, NULL);
}

static int failure(uint32_t rank, void *arg)
{
	const struct partitioned_failure *e = arg;
	struct swingcoll_comm_opts opts = { .timeout_ms = partitioned_failure_ms(e) };
	struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = 100 };
	bool last = rank == NRANKS - 1;
	int n = 50 + (last && e->offence == ANOTHER_NUMBER), culprit = -1, ret;
	struct swingcoll_comm *comm;
	char text[256];
	struct partitioned j;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, &opts), 0);
	CHECK_EQ(partitioned_open(&j, &c, n, comm), 0);
	CHECK_EQ(swingcoll_pstart(j.part), 0);
	/* No rank offends before all have started. */
	CHECK_EQ(e->offence == ANOTHER_NUMBER ? 0 : through_kernel(comm), 0);
	/* The last rank keeps half of them back, and then offends. */
	for (int i = 0; i < n && !(last && i >= 25 && e->offence != ANOTHER_NUMBER); i++)
		if (swingcoll_pready(j.part, i))
			break;
	if (last)
		CHECK_EQ(offend(e, &j, comm), 0);
	if (e->offence == ANOTHER_NUMBER) {
		/* The additional partition meets the next collective of the others. */
		CHECK_EQ(last ? 0 : swingcoll_pwait(j.part, SWINGCOLL_ALL_PARTITIONS), 0);
		ret = last ? swingcoll_pwait(j.part, SWINGCOLL_ALL_PARTITIONS)
			   : through_kernel(comm);
	} else {
		ret = swingcoll_pwait(j.part, SWINGCOLL_ALL_PARTITIONS);
	}
	CHECK_EQ(ret, e->error);
	swingcoll_comm_error(comm, text, sizeof(text), &culprit);
	if (rank == 0)
		ksft_print_msg("%s\n", text);
	if (e->offence != ANOTHER_NUMBER) {
		CHECK_EQ(culprit, NRANKS - 1);
		CHECK_EQ(swingcoll_parrived(j.part, n - 1), e->error);
		CHECK(swingcoll_pstart(j.part) < 0);
	}
	CHECK_EQ(partitioned_close(&j), 0);
	swingcoll_comm_destroy(comm);
	return 0;
}

/* A rank starts a partitioned request after the others have called an ordinary collective. */
static int another_call(uint32_t rank, void *arg)
{
	struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = 100 };
	bool last = rank == NRANKS - 1;
	struct swingcoll_comm *comm;
	struct swingcoll_req *req;
	unsigned int *called = arg;
	struct partitioned j;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	if (last) {
		CHECK_EQ(partitioned_open(&j, &c, 3, comm), 0);
		CHECK(testlib_wait_count(called, NRANKS - 1));
		CHECK_EQ(swingcoll_pstart(j.part), 0);
		CHECK_EQ(swingcoll_pready(j.part, 0), 0);
		CHECK_EQ(swingcoll_pwait(j.part, 0), -EPROTO);
		testlib_count(called);
		CHECK_EQ(swingcoll_comm_abort(comm), 0);
		CHECK_EQ(partitioned_close(&j), 0);
	} else {
		CHECK_EQ(swingcoll_ibarrier(comm, &req), 0);
		testlib_count(called);
		CHECK_EQ(swingcoll_wait(req, NULL), -EPROTO);
		/* To leave earlier would end the request of the last rank with another error. */
		CHECK(testlib_wait_count(called, NRANKS));
	}
	swingcoll_comm_destroy(comm);
	return 0;
}

static int another_calls(void)
{
	unsigned int *called = testlib_shared_alloc(sizeof(*called));

	swingcoll_unique_id(&id);
	return testlib_run_ranks(NRANKS, another_call, called);
}

/* Rounds without end, for ranks that are killed at random moments. */
static int restless(uint32_t rank, void *arg)
{
	struct partitioned_kill_state *s = arg;
	struct swingcoll_comm_opts opts = { .timeout_ms = s->timeout_ms };
	struct swingcoll_comm *comm;
	struct partitioned j;
	int ret;

	ret = swingcoll_comm_create(&comm, &id, NRANKS, rank, &opts);
	testlib_count(&s->created);
	if (!ret)
		ret = partitioned_open(&j, &plain, 100, comm);
	while (!ret) {
		ret = swingcoll_pstart(j.part);
		for (int i = 0; i < 100 && !ret; i++)
			ret = swingcoll_pready(j.part, (i * 37 + rank * 11) % 100);
		if (!ret)
			ret = swingcoll_pwait(j.part, SWINGCOLL_ALL_PARTITIONS);
	}
	return partitioned_check_killed(s, ret);
}

static int kills(void)
{
	int bad;

	coll_quiet = true;
	bad = partitioned_kill_ranks(restless, NRANKS, &id, &seed);
	coll_quiet = false;
	return bad || testlib_wait_released(0);
}

struct deserted {
	uint8_t id[SWC_ID_BYTES];
	unsigned int started, left;
	uint64_t killed_ms;
};

/*
 * Rank 0 starts a partition. Rank 1 submits what is refused, and leaves; so no other member is left to end the
 * communicator when rank 0 is killed. Rank 0 must die nevertheless, and not at its deadline.
 */
static int desert(uint32_t rank, void *arg)
{
	struct swc_partitioned_init init = { .partitions = 1 };
	struct swc_partitioned_ref ref = { 0 };
	struct deserted *s = arg;
	struct swc_desc desc;
	struct testlib_rank r;
	char mem[4096] = { 0 };

	CHECK_EQ(testlib_rank_open(&r, s->id, 2, rank, 2 * TESTLIB_EVENT_MS), 0);
	if (rank == 0) {
		init.desc = testlib_allreduce_desc(&r, mem, mem, 1000, SWC_F32);
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_INIT, &init), 0);
		ref.handle = init.handle;
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_START, &ref), 0);
		testlib_count(&s->started);
		CHECK(testlib_wait_count(&s->left, 1));
		s->killed_ms = testlib_now_ms();
		raise(SIGKILL);
	}
	CHECK(testlib_wait_count(&s->started, 1));
	desc = testlib_allreduce_desc(&r, (void *)16, (void *)16, 1000, SWC_F32);
	testlib_submit(r.c.fd, &desc);
	testlib_rank_close(&r);
	testlib_count(&s->left);
	return 0;
}

static int deserts(void)
{
	struct deserted *s = testlib_shared_alloc(sizeof(*s));
	pid_t pid[2];

	testlib_new_id(s->id);
	testlib_fork_ranks(pid, 2, desert, s);
	CHECK_EQ(testlib_wait_ranks(pid + 1, 1), 0);
	CHECK(testlib_was_killed(&pid[0]));
	CHECK(testlib_now_ms() - s->killed_ms < TESTLIB_EVENT_MS / 2);
	return 0;
}

/* ------------------------------------------------------------------ shared memory with wrong contents */

/* Write random words to the shared memory. The kernel may fail the request, and must not do more. */
static int scribble(uint32_t rank, void *arg)
{
	struct testlib_rank r;
	struct swc_partitioned_init init = { .partitions = 64 };
	struct swc_partitioned_ref ref = { 0 };
	float mem[256] = { 0 };
	struct swc_progress *p;
	uint32_t *word;
	unsigned int rnd = seed + rank;

	/* Here and below the other rank may have ended the communicator already. */
	if (testlib_rank_open(&r, arg, 2, rank, 2000))
		return 0;
	init.desc = testlib_allreduce_desc(&r, mem, mem, 4, SWC_F32);
	init.send_stride = init.recv_stride = 16;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_INIT, &init), 0);
	ref.handle = init.handle;
	p = mmap(NULL, init.map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.c.fd,
		 SWC_MMAP_PROGRESS(init.handle));
	CHECK(p != MAP_FAILED);
	word = (uint32_t *)p;
	if (testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_START, &ref))
		return 0;
	for (int i = 0; i < 2000; i++) {
		word[rand_r(&rnd) % (init.map_bytes / 4)] = rand_r(&rnd) % (i & 1 ? 80 : ~0u);
		if (i % 7 == 0)
			testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_KICK, &ref);
	}
	ref.partition = SWC_ALL_PARTITIONS;
	ref.timeout_ms = 5000;
	CHECK(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_WAIT, &ref) < 0);
	munmap(p, init.map_bytes);
	testlib_rank_close(&r);
	return 0;
}

static int scribbles(void)
{
	uint8_t raw[SWC_ID_BYTES];

	for (int k = 0; k < 20; k++, seed++) {
		testlib_new_id(raw);
		if (testlib_run_ranks(2, scribble, raw))
			return 1;
	}
	return 0;
}

/* ------------------------------------------------------------------ failures that cause each other */

#define FALLS 100

struct fall {
	uint8_t id[SWC_ID_BYTES];
	unsigned int started, marked, over;
};

/*
 * Requests of two partitions on which the ranks do not agree, staggered: the second partition of one rank's request
 * matches the first of the other rank's next. Only first partitions are marked by a kick, so each failure makes the
 * kernel find the next mismatch; all of them wait for the first partition of rank 1.
 */
static int fall(uint32_t rank, void *arg)
{
	struct swc_progress *p[FALLS];
	struct swc_partitioned_ref ref[FALLS];
	struct fall *f = arg;
	struct testlib_rank r;
	float mem[64] = { 0 };

	CHECK_EQ(testlib_rank_open(&r, f->id, 2, rank, TESTLIB_EVENT_MS), 0);
	for (int k = 0; k < FALLS; k++) {
		struct swc_partitioned_init init = { .partitions = rank && !k ? 1 : 2 };

		init.desc = testlib_allreduce_desc(&r, mem, mem, 4 + rank, SWC_F32);
		init.send_stride = init.recv_stride = 32;
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_INIT, &init), 0);
		p[k] = mmap(NULL, init.map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.c.fd,
			    SWC_MMAP_PROGRESS(init.handle));
		CHECK(p[k] != MAP_FAILED);
		ref[k] = (struct swc_partitioned_ref){ .handle = init.handle };
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_START, &ref[k]), 0);
	}
	CHECK(testlib_meet(&f->started, 2));
	for (int k = 0; k < FALLS; k++) {
		uint32_t *queue = (void *)((char *)p[k] + p[k]->queue);

		__atomic_store_n(&queue[0], 1, __ATOMIC_RELEASE);
		if (rank && !k)
			continue;
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_KICK, &ref[k]), 0);
		__atomic_store_n(&queue[1], 2, __ATOMIC_RELEASE);
	}
	CHECK(testlib_meet(&f->marked, 2));
	if (rank)
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_KICK, &ref[0]), 0);
	for (int k = 0; k < FALLS; k++) {
		/* The last partition of rank 0 has no counterpart. */
		ref[k].partition = rank || k < FALLS - 1 ? SWC_ALL_PARTITIONS : 0;
		ref[k].timeout_ms = TESTLIB_EVENT_MS;
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_WAIT, &ref[k]), -EPROTO);
	}
	/* A rank that leaves earlier would end the requests of the other with another error. */
	CHECK(testlib_meet(&f->over, 2));
	testlib_rank_close(&r);
	return 0;
}

static int falls(void)
{
	struct fall *f = testlib_shared_alloc(sizeof(*f));

	testlib_new_id(f->id);
	return testlib_run_ranks(2, fall, f);
}

/* ------------------------------------------------------------------ all tests */

static const struct testlib_test others[] = {
	{ "a rank starts partitions, the others call a barrier", another_calls },
	{ "a rank is killed at random moments", kills },
	{ "a rank is killed with a partition that the other rank has left", deserts },
	{ "mismatches, each found when the one before fails", falls },
	{ "random words in the shared memory", scribbles },
};

int main(int argc, char **argv)
{
	unsigned int planned = 0;

	seed = testlib_env_seed("COLL_PARTITIONED_SEED");
	ksft_print_header();
	testlib_require_device();
	for (unsigned int k = 0; k < ARRAY_SIZE(failures); k++)
		planned += testlib_is_asked(argc, argv, failures[k].name);
	for (unsigned int k = 0; k < ARRAY_SIZE(others); k++)
		planned += testlib_is_asked(argc, argv, others[k].name);
	if (!planned)
		ksft_exit_fail_msg("no test is called so\n");
	ksft_set_plan(planned);
	ksft_print_msg("COLL_PARTITIONED_SEED=%u\n", seed);
	for (unsigned int k = 0; k < ARRAY_SIZE(failures); k++)
		if (testlib_is_asked(argc, argv, failures[k].name))
			ksft_test_result(!partitioned_run_failure(&failures[k], failure, NRANKS,
								  &id),
					 "%s", failures[k].name);
	for (unsigned int k = 0; k < ARRAY_SIZE(others); k++)
		if (testlib_is_asked(argc, argv, others[k].name))
			ksft_test_result(!others[k].fn(), "%s", others[k].name);
	ksft_finished();
}
