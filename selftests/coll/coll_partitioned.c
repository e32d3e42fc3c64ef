// SPDX-License-Identifier: GPL-2.0-only
/*
 * Partitioned collectives: right whatever the order in which ranks mark partitions ready, how many there are
 * and how often they start again; and what happens when a rank does not do its part.
 *
 * COLL_PARTED_SEED: repeat the orders and shapes of another run.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "partitioned.h"

#define NRANKS 4

static struct swingcoll_id id;
static unsigned int seed;

/* ------------------------------------------------------------------ right */

static const struct coll_case cases[] = {
	{ .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = 1000 },
	{ .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_I8, .count = 33, .in_place = true },
	{ .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F64, .op = SWINGCOLL_MAX, .count = 1 },
	{ .coll = SWINGCOLL_REDUCE_SCATTER, .dtype = SWINGCOLL_I32, .count = 257 },
	{ .coll = SWINGCOLL_ALLGATHER, .dtype = SWINGCOLL_U16, .count = 511 },
};

static int each(uint32_t rank, void *arg)
{
	static const int parts[] = { 1, 2, 7, 64, 200 };
	unsigned int rnd = seed + rank;
	struct swingcoll_comm *comm;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	for (unsigned int k = 0; k < ARRAY_SIZE(cases); k++) {
		for (unsigned int m = 0; m < ARRAY_SIZE(parts); m++) {
			struct parted j;

			CHECK_EQ(parted_up(&j, &cases[k], parts[m], comm), 0);
			for (int round = 0; round < 3; round++)
				CHECK_EQ(parted_round(&j, rank, round, &rnd), 0);
			CHECK_EQ(parted_down(&j), 0);
		}
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* The ranks draw the shape from one seed, and the order each from its own. */
static int fuzz(uint32_t rank, void *arg)
{
	unsigned int shape = seed, rnd = seed + 7 * rank;
	struct swingcoll_comm *comm;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	for (int k = 0; k < 25; k++) {
		struct coll_case c = cases[rand_r(&shape) % ARRAY_SIZE(cases)];
		int n = 1 + rand_r(&shape) % (k % 5 ? 6 : 60);
		struct parted j;

		c.count = 1 + rand_r(&shape) % 600;
		CHECK_EQ(parted_up(&j, &c, n, comm), 0);
		for (int round = 0; round < 40; round++)
			CHECK_EQ(parted_round(&j, rank, round, &rnd), 0);
		CHECK_EQ(parted_down(&j), 0);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int most(uint32_t rank, void *arg)
{
	struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_I32, .count = 16 };
	unsigned int rnd = seed + rank;
	struct swingcoll_comm *comm;
	struct parted j;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	CHECK_EQ(parted_up(&j, &c, 4096, comm), 0);
	for (int round = 0; round < 3; round++)
		CHECK_EQ(parted_round(&j, rank, round, &rnd), 0);
	CHECK_EQ(parted_down(&j), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Partitions that are moved straight between the ranks' memory; and by DMA engines, if dma.sh has some used. */
static int large(uint32_t rank, void *arg)
{
	static const struct coll_case c[] = {
		{ .coll = SWINGCOLL_ALLGATHER, .dtype = SWINGCOLL_I64, .count = 75000 },
		{ .coll = SWINGCOLL_ALLREDUCE,
		  .dtype = SWINGCOLL_I64,
		  .op = SWINGCOLL_BXOR,
		  .count = 300000 },
		{ .coll = SWINGCOLL_REDUCE_SCATTER, .dtype = SWINGCOLL_I64, .count = 75000 },
	};
	unsigned int rnd = seed + rank;
	struct swingcoll_comm *comm;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	for (unsigned int k = 0; k < ARRAY_SIZE(c); k++) {
		struct parted j;

		CHECK_EQ(parted_up(&j, &c[k], 2, comm), 0);
		for (int round = 0; round < 2; round++)
			CHECK_EQ(parted_round(&j, rank, round, &rnd), 0);
		CHECK_EQ(parted_down(&j), 0);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Partitioned and other collectives of one communicator in flight together. */
static int among_others(uint32_t rank, void *arg)
{
	struct coll_case c = {
		.coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = 3000, .in_place = true
	};
	struct swingcoll_comm *comm;
	struct swingcoll_req *req;
	struct parted j[2];
	void *mem;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	mem = malloc(coll_bytes(&c, NRANKS));
	for (int k = 0; k < 2; k++)
		CHECK_EQ(parted_up(&j[k], &cases[k], 9 + 60 * k, comm), 0);
	for (int round = 0; round < 20; round++) {
		for (int k = 0; k < 2; k++)
			CHECK_EQ(swingcoll_pstart(j[k].part), 0);
		coll_fill(&c, NRANKS, rank, mem, round);
		CHECK_EQ(coll_icall(&c, mem, mem, comm, &req), 0);
		/* The second first, backwards on one rank; and one of each rank comes last of all. */
		for (int k = 1; k >= 0; k--) {
			for (int i = 0; i < j[k].n; i++) {
				int at = rank & 1 ? j[k].n - 1 - i : i;

				if (at == (int)rank)
					continue;
				parted_fill(&j[k], at, rank, round);
				CHECK_EQ(swingcoll_pready(j[k].part, at), 0);
			}
		}
		CHECK_EQ(swingcoll_wait(req, NULL), 0);
		CHECK_EQ(coll_check(&c, NRANKS, rank, mem, round), 0);
		CHECK_EQ(coll_run(&c, mem, comm, round + 1), 0);
		CHECK_EQ(swingcoll_parrived(j[0].part, rank), 0);
		for (int k = 0; k < 2; k++) {
			parted_fill(&j[k], rank, rank, round);
			CHECK_EQ(swingcoll_pready(j[k].part, rank), 0);
		}
		for (int k = 0; k < 2; k++) {
			CHECK_EQ(swingcoll_pwait(j[k].part, SWINGCOLL_ALL_PARTITIONS), 0);
			for (int i = 0; i < j[k].n; i++)
				CHECK_EQ(parted_check(&j[k], i, rank, round), 0);
		}
	}
	for (int k = 0; k < 2; k++)
		CHECK_EQ(parted_down(&j[k]), 0);
	free(mem);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Four threads of each rank share the partitions. */
struct producer {
	struct parted *j;
	int first;
	int rank;
	int salt;
	int bad;
};

static void *produce(void *arg)
{
	struct producer *p = arg;

	for (int i = p->first; i < p->j->n; i += 4) {
		parted_fill(p->j, i, p->rank, p->salt);
		p->bad |= swingcoll_pready(p->j->part, i);
	}
	return NULL;
}

static int threads(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm;
	struct parted j;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	CHECK_EQ(parted_up(&j, &cases[0], 500, comm), 0);
	for (int round = 0; round < 5; round++) {
		struct producer p[4];
		pthread_t t[4];

		CHECK_EQ(swingcoll_pstart(j.part), 0);
		for (int k = 0; k < 4; k++) {
			p[k] = (struct producer){ &j, k, rank, round, 0 };
			CHECK_EQ(pthread_create(&t[k], NULL, produce, &p[k]), 0);
		}
		for (int k = 0; k < 4; k++) {
			CHECK_EQ(pthread_join(t[k], NULL), 0);
			CHECK_EQ(p[k].bad, 0);
		}
		CHECK_EQ(swingcoll_pwait(j.part, SWINGCOLL_ALL_PARTITIONS), 0);
		for (int i = 0; i < j.n; i++)
			CHECK_EQ(parted_check(&j, i, rank, round), 0);
	}
	CHECK_EQ(parted_down(&j), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* ------------------------------------------------------------------ refused */

static int in_child(void *arg)
{
	const struct parted *j = arg;

	CHECK_EQ(swingcoll_pstart(j->part), -EBADF);
	CHECK_EQ(swingcoll_pready(j->part, 0), -EBADF);
	CHECK_EQ(swingcoll_parrived(j->part, 0), -EBADF);
	CHECK_EQ(swingcoll_pwait(j->part, SWINGCOLL_ALL_PARTITIONS), -EBADF);
	CHECK_EQ(swingcoll_pfree(j->part), 0);
	return 0;
}

static int misuse(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm;
	struct swingcoll_part *part = NULL;
	float send[64] = { 0 }, recv[64];
	struct parted j;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	CHECK_EQ(swingcoll_pallreduce_init(send, recv, 0, 1, SWINGCOLL_F32, 0, comm, &part),
		 -EINVAL);
	CHECK_EQ(swingcoll_pallreduce_init(send, recv, 4097, 1, SWINGCOLL_F32, 0, comm, &part),
		 -EINVAL);
	CHECK_EQ(swingcoll_pallreduce_init(send, send + 1, 8, 4, SWINGCOLL_F32, 0, comm, &part),
		 -EINVAL);
	CHECK_EQ(swingcoll_pallgather_init(recv, recv, 2, 4, SWINGCOLL_F32, comm, &part), -EINVAL);
	CHECK(!part);
	CHECK_EQ(swingcoll_pfree(NULL), 0);
	CHECK_EQ(parted_up(&j, &cases[0], 5, comm), 0);
	/* Not started. */
	CHECK_EQ(swingcoll_pready(j.part, 0), -EINVAL);
	CHECK_EQ(swingcoll_parrived(j.part, 0), -EINVAL);
	CHECK_EQ(swingcoll_pwait(j.part, SWINGCOLL_ALL_PARTITIONS), -EINVAL);
	CHECK_EQ(swingcoll_pstart(j.part), 0);
	/* A call that is refused, on one rank, leaves the order of the others as it is. */
	if (!rank) {
		CHECK_EQ(swingcoll_pstart(j.part), -EBUSY);
		CHECK_EQ(swingcoll_pfree(j.part), -EBUSY);
	}
	CHECK_EQ(swingcoll_allreduce(send, recv, 4, SWINGCOLL_F32, SWINGCOLL_SUM, comm), 0);
	/* A child has nothing of it. */
	CHECK_EQ(swct_child(in_child, &j, 10000), 0);
	CHECK_EQ(swingcoll_pready(j.part, 5), -EINVAL);
	CHECK_EQ(swingcoll_pready(j.part, -1), -EINVAL);
	for (int i = 0; i < 5; i++) {
		parted_fill(&j, i, rank, 1);
		CHECK_EQ(swingcoll_pready(j.part, i), 0);
	}
	CHECK_EQ(swingcoll_pwait(j.part, SWINGCOLL_ALL_PARTITIONS), 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(parted_check(&j, i, rank, 1), 0);
	CHECK_EQ(parted_down(&j), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* As many as may be not ready, and one round more; then the communicator ends with all of them. */
static int too_many(uint32_t rank, void *arg)
{
	struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_I8, .count = 1 };
	struct swingcoll_comm *comm;
	struct swingcoll_id own;
	struct parted j[5];

	(void)arg;
	if (rank)
		return 0;
	swingcoll_unique_id(&own);
	CHECK_EQ(swingcoll_comm_create(&comm, &own, 1, 0, NULL), 0);
	for (int k = 0; k < 5; k++) {
		CHECK_EQ(parted_up(&j[k], &c, 4096, comm), 0);
		CHECK_EQ(swingcoll_pstart(j[k].part), k < 4 ? 0 : -EAGAIN);
	}
	CHECK_EQ(swingcoll_pready(j[0].part, 4095), 0);
	CHECK_EQ(swingcoll_pwait(j[0].part, 4095), 0);
	CHECK_EQ(swingcoll_comm_abort(comm), 0);
	CHECK_EQ(swingcoll_pwait(j[1].part, 7), -ECONNABORTED);
	for (int k = 0; k < 5; k++)
		CHECK_EQ(parted_down(&j[k]), 0);
	swingcoll_comm_destroy(comm);
	return 0;
}

/* ------------------------------------------------------------------ ends */

enum sin {
	NEVER_READY,
	TWICE_READY,
	DIES,
	ABORTS,
	ANOTHER_NUMBER
};

struct end {
	const char *name;
	enum sin sin;
	int error;
};

static const struct end ends[] = {
	{ "a rank never marks a partition ready", NEVER_READY, -ETIMEDOUT },
	{ "a rank marks a partition ready twice", TWICE_READY, -EINVAL },
	{ "a rank dies with partitions not ready", DIES, -ECONNRESET },
	{ "a rank aborts", ABORTS, -ECONNABORTED },
	{ "a rank has more partitions than the others", ANOTHER_NUMBER, -EPROTO },
};

static int sinner(const struct end *e, struct parted *j, struct swingcoll_comm *comm)
{
	switch (e->sin) {
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

static int end(uint32_t rank, void *arg)
{
	const struct end *e = arg;
	struct swingcoll_comm_opts opts = { .timeout_ms = e->sin == NEVER_READY ? 5000 : 20000 };
	struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = 100 };
	bool last = rank == NRANKS - 1;
	int n = 50 + (last && e->sin == ANOTHER_NUMBER), culprit = -1, ret;
	struct swingcoll_comm *comm;
	char text[256];
	struct parted j;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, &opts), 0);
	CHECK_EQ(parted_up(&j, &c, n, comm), 0);
	CHECK_EQ(swingcoll_pstart(j.part), 0);
	/* So that nobody sins before all have started. */
	CHECK_EQ(e->sin == ANOTHER_NUMBER ? 0 : through_kernel(comm), 0);
	/* The last one keeps half of them back, and then sins. */
	for (int i = 0; i < n && !(last && i >= 25 && e->sin != ANOTHER_NUMBER); i++)
		if (swingcoll_pready(j.part, i))
			break;
	if (last)
		CHECK_EQ(sinner(e, &j, comm), 0);
	if (e->sin == ANOTHER_NUMBER) {
		/* The one too many is the others' next collective. */
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
	if (e->sin != ANOTHER_NUMBER) {
		CHECK_EQ(culprit, NRANKS - 1);
		CHECK_EQ(swingcoll_parrived(j.part, n - 1), e->error);
		CHECK(swingcoll_pstart(j.part) < 0);
	}
	CHECK_EQ(parted_down(&j), 0);
	swingcoll_comm_destroy(comm);
	return 0;
}

static int run_end(const struct end *e)
{
	pid_t pid[NRANKS];
	int bad;

	swingcoll_unique_id(&id);
	swct_fork(pid, NRANKS, end, (void *)e);
	/* The one that kills itself is no failure of the test. */
	if (e->sin == DIES) {
		bad = swct_reap(pid, NRANKS - 1, 20000);
		return bad | !swct_reap(pid + NRANKS - 1, 1, 20000);
	}
	return swct_reap(pid, NRANKS, 20000);
}

/* The others have called an ordinary collective when a rank starts partitions in its place. */
static int another_call(uint32_t rank, void *arg)
{
	struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = 100 };
	bool last = rank == NRANKS - 1;
	struct swingcoll_comm *comm;
	struct swingcoll_req *req;
	uint32_t *called = arg;
	struct parted j;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	if (last) {
		CHECK_EQ(parted_up(&j, &c, 3, comm), 0);
		while (__atomic_load_n(called, __ATOMIC_ACQUIRE) < NRANKS - 1)
			swct_sleep_ms(1);
		CHECK_EQ(swingcoll_pstart(j.part), 0);
		CHECK_EQ(swingcoll_pready(j.part, 0), 0);
		CHECK_EQ(swingcoll_pwait(j.part, 0), -EPROTO);
		__atomic_fetch_add(called, 1, __ATOMIC_RELEASE);
		CHECK_EQ(swingcoll_comm_abort(comm), 0);
		CHECK_EQ(parted_down(&j), 0);
	} else {
		CHECK_EQ(swingcoll_ibarrier(comm, &req), 0);
		__atomic_fetch_add(called, 1, __ATOMIC_RELEASE);
		CHECK_EQ(swingcoll_wait(req, NULL), -EPROTO);
		/* Who leaves sooner ends what the last one has started besides. */
		while (__atomic_load_n(called, __ATOMIC_ACQUIRE) < NRANKS)
			swct_sleep_ms(1);
	}
	swingcoll_comm_destroy(comm);
	return 0;
}

static int another_calls(void)
{
	uint32_t *called = swct_shared(sizeof(*called));

	swingcoll_unique_id(&id);
	return swct_ranks(NRANKS, 30000, another_call, called);
}

/* Killed in the middle of rounds, at any moment: everything must come back. */
static int restless(uint32_t rank, void *arg)
{
	struct parted_restless *s = arg;
	struct swingcoll_comm_opts opts = { .timeout_ms = s->timeout_ms };
	struct swingcoll_comm *comm;
	struct parted j;
	int ret;

	ret = swingcoll_comm_create(&comm, &id, NRANKS, rank, &opts);
	__atomic_add_fetch(&s->joined, 1, __ATOMIC_ACQ_REL);
	if (!ret)
		ret = parted_up(&j, &cases[0], 100, comm);
	while (!ret) {
		ret = swingcoll_pstart(j.part);
		for (int i = 0; i < 100 && !ret; i++)
			ret = swingcoll_pready(j.part, (i * 37 + rank * 11) % 100);
		if (!ret)
			ret = swingcoll_pwait(j.part, SWINGCOLL_ALL_PARTITIONS);
	}
	return 0;
}

static int64_t pinned(void)
{
	return swct_stat(SWC_STAT_PAGES_PINNED) - swct_stat(SWC_STAT_PAGES_UNPINNED);
}

static int kills(void)
{
	int64_t before = pinned();

	coll_quiet = true;
	if (parted_kills(restless, NRANKS, &id, &seed))
		return 1;
	coll_quiet = false;
	for (int i = 0; i < 200; i++) {
		/* Or fewer: those before may have been giving back still. */
		if (pinned() <= before)
			return 0;
		swct_sleep_ms(10);
	}
	ksft_print_msg("pages stay pinned\n");
	return 1;
}

struct deserted {
	uint8_t id[SWC_ID_BYTES];
	uint32_t started, left;
};

/*
 * Rank 0 starts a partition; rank 1 cannot take part in it, leaves in order, and nobody is left who could end the
 * communicator when rank 0 is killed. It must die all the same.
 */
static int desert(uint32_t rank, void *arg)
{
	struct swc_part_init init = { .partitions = 1 };
	struct swc_part_ref ref = { 0 };
	struct deserted *s = arg;
	struct swc_desc desc;
	struct swct_rank r;
	char mem[4096] = { 0 };

	CHECK_EQ(swct_rank_up(&r, s->id, 2, rank, 20000), 0);
	if (rank == 0) {
		init.desc = swct_allreduce(&r, mem, mem, 1000, SWC_F32);
		CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_PART_INIT, &init), 0);
		ref.handle = init.handle;
		CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_PART_START, &ref), 0);
		__atomic_store_n(&s->started, 1, __ATOMIC_RELEASE);
		while (!__atomic_load_n(&s->left, __ATOMIC_ACQUIRE))
			swct_sleep_ms(1);
		raise(SIGKILL);
	}
	while (!__atomic_load_n(&s->started, __ATOMIC_ACQUIRE))
		swct_sleep_ms(1);
	desc = swct_allreduce(&r, (void *)16, (void *)16, 1000, SWC_F32);
	swct_submit(r.c.fd, &desc);
	swct_rank_down(&r);
	__atomic_store_n(&s->left, 1, __ATOMIC_RELEASE);
	return 0;
}

static int deserts(void)
{
	struct deserted *s = swct_shared(sizeof(*s));
	uint64_t start = swct_ms();
	pid_t pid[2];

	swct_id(s->id);
	swct_fork(pid, 2, desert, s);
	if (swct_reap(pid + 1, 1, 20000))
		return 1;
	return !swct_reap(pid, 1, 20000) || swct_ms() - start > 15000;
}

/* ------------------------------------------------------------------ without system calls */

#define STORE_PARTS 32
#define STORE_COUNT (64 << 10)

struct stores {
	uint8_t id[SWC_ID_BYTES];
	uint32_t bare; /* partitions that were marked by a store alone, by both ranks */
};

/* By the words of the uapi: what is marked while the kernel does not ask for a kick is done without one. */
static int store(uint32_t rank, void *arg)
{
	struct swc_part_init init = { .partitions = STORE_PARTS };
	struct swc_part_ref ref = { 0 };
	struct swc_part_ref wait = { .partition = SWC_ALL_PARTITIONS, .timeout_ms = 20000 };
	struct stores *s = arg;
	uint32_t *queue, tail = 0;
	struct swc_progress *p;
	struct swct_rank r;
	float *mem;

	CHECK_EQ(swct_rank_up(&r, s->id, 2, rank, 20000), 0);
	mem = calloc(STORE_PARTS, STORE_COUNT * sizeof(*mem));
	init.desc = swct_allreduce(&r, mem, mem, STORE_COUNT, SWC_F32);
	init.send_stride = init.recv_stride = STORE_COUNT * sizeof(*mem);
	CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_PART_INIT, &init), 0);
	ref.handle = wait.handle = init.handle;
	p = mmap(NULL, init.map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.c.fd,
		 SWC_MMAP_PROGRESS(init.handle));
	CHECK(p != MAP_FAILED);
	queue = (uint32_t *)((char *)p + p->queue);
	for (int round = 0; round < 10; round++) {
		CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_PART_START, &ref), 0);
		for (uint32_t i = 0; i < STORE_PARTS; i++) {
			__atomic_store_n(&queue[tail++ % p->entries], i + 1, __ATOMIC_RELEASE);
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			if (__atomic_load_n(&p->flags, __ATOMIC_RELAXED) & SWC_PROGRESS_KICK)
				CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_PART_KICK, &ref), 0);
			else
				__atomic_fetch_add(&s->bare, 1, __ATOMIC_RELAXED);
		}
		CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_PART_WAIT, &wait), 0);
	}
	munmap(p, init.map_bytes);
	swct_rank_down(&r);
	free(mem);
	return 0;
}

static int stores(void)
{
	struct stores *s = swct_shared(sizeof(*s));
	int bad = 0, tries;

	/* On a busy machine the other may not run at the same time, and then the kernel asks for kicks. */
	for (tries = 0; tries < 10 && !bad && !s->bare; tries++) {
		swct_id(s->id);
		bad = swct_ranks(2, 60000, store, s);
	}
	ksft_print_msg("%u of %d without a system call\n", s->bare, tries * 2 * 10 * STORE_PARTS);
	return bad | !s->bare;
}

/* ------------------------------------------------------------------ the shared memory is not believed */

static int scribble(uint32_t rank, void *arg)
{
	struct swct_rank r;
	struct swc_part_init init = { .partitions = 64 };
	struct swc_part_ref ref = { 0 };
	float mem[256] = { 0 };
	struct swc_progress *p;
	uint32_t *word;
	unsigned int rnd = seed + rank;

	/* The other rank may have ended the communicator already, here and below. */
	if (swct_rank_up(&r, arg, 2, rank, 2000))
		return 0;
	init.desc = swct_allreduce(&r, mem, mem, 4, SWC_F32);
	init.send_stride = init.recv_stride = 16;
	CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_PART_INIT, &init), 0);
	ref.handle = init.handle;
	p = mmap(NULL, init.map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.c.fd,
		 SWC_MMAP_PROGRESS(init.handle));
	CHECK(p != MAP_FAILED);
	word = (uint32_t *)p;
	if (swct_ioctl(r.c.fd, SWC_IOC_PART_START, &ref))
		return 0;
	for (int i = 0; i < 2000; i++) {
		word[rand_r(&rnd) % (init.map_bytes / 4)] = rand_r(&rnd) % (i & 1 ? 80 : ~0u);
		if (i % 7 == 0)
			swct_ioctl(r.c.fd, SWC_IOC_PART_KICK, &ref);
	}
	ref.partition = SWC_ALL_PARTITIONS;
	ref.timeout_ms = 5000;
	CHECK(swct_ioctl(r.c.fd, SWC_IOC_PART_WAIT, &ref) < 0);
	munmap(p, init.map_bytes);
	swct_rank_down(&r);
	return 0;
}

static int scribbles(void)
{
	uint8_t raw[SWC_ID_BYTES];

	for (int k = 0; k < 20; k++, seed++) {
		swct_id(raw);
		if (swct_ranks(2, 20000, scribble, raw))
			return 1;
	}
	return 0;
}

/* ------------------------------------------------------------------ one after the other */

#define FALLS 100

struct fall {
	uint8_t id[SWC_ID_BYTES];
	uint32_t started, marked, over;
};

static void meet(uint32_t *here, uint32_t n)
{
	__atomic_fetch_add(here, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(here, __ATOMIC_ACQUIRE) < n)
		swct_sleep_ms(1);
}

/*
 * Two partitions each, of operations whose ranks do not agree, and staggered: the second of one rank's meets the
 * first of the other's next. Only the first are told of, so each failure lets the next one be found; the first
 * of rank 1 is what they all wait for.
 */
static int fall(uint32_t rank, void *arg)
{
	struct swc_progress *p[FALLS];
	struct swc_part_ref ref[FALLS];
	struct fall *f = arg;
	struct swct_rank r;
	float mem[64] = { 0 };

	CHECK_EQ(swct_rank_up(&r, f->id, 2, rank, 20000), 0);
	for (int k = 0; k < FALLS; k++) {
		struct swc_part_init init = { .partitions = rank && !k ? 1 : 2 };

		init.desc = swct_allreduce(&r, mem, mem, 4 + rank, SWC_F32);
		init.send_stride = init.recv_stride = 32;
		CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_PART_INIT, &init), 0);
		p[k] = mmap(NULL, init.map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.c.fd,
			    SWC_MMAP_PROGRESS(init.handle));
		CHECK(p[k] != MAP_FAILED);
		ref[k] = (struct swc_part_ref){ .handle = init.handle };
		CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_PART_START, &ref[k]), 0);
	}
	meet(&f->started, 2);
	for (int k = 0; k < FALLS; k++) {
		uint32_t *queue = (void *)((char *)p[k] + p[k]->queue);

		__atomic_store_n(&queue[0], 1, __ATOMIC_RELEASE);
		if (rank && !k)
			continue;
		CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_PART_KICK, &ref[k]), 0);
		__atomic_store_n(&queue[1], 2, __ATOMIC_RELEASE);
	}
	meet(&f->marked, 2);
	if (rank)
		CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_PART_KICK, &ref[0]), 0);
	for (int k = 0; k < FALLS; k++) {
		/* The last one of rank 0 has nobody to meet. */
		ref[k].partition = rank || k < FALLS - 1 ? SWC_ALL_PARTITIONS : 0;
		ref[k].timeout_ms = 20000;
		CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_PART_WAIT, &ref[k]), -EPROTO);
	}
	/* Or the one that is slower hears that the other has left. */
	meet(&f->over, 2);
	swct_rank_down(&r);
	return 0;
}

static int falls(void)
{
	struct fall *f = swct_shared(sizeof(*f));

	swct_id(f->id);
	return swct_ranks(2, 60000, fall, f);
}

/* ------------------------------------------------------------------ all */

static const struct {
	const char *name;
	swct_fn fn;
} tests[] = {
	{ "every collective, 1 to 200 partitions", each },
	{ "4096 partitions", most },
	{ "large partitions", large },
	{ "1000 rounds of random shape, each rank in an order of its own", fuzz },
	{ "among other collectives", among_others },
	{ "marked ready by four threads", threads },
	{ "misuse", misuse },
	{ "too many that are not ready", too_many },
};

int main(void)
{
	const char *given = getenv("COLL_PARTED_SEED");

	seed = given ? strtoul(given, NULL, 0) : swct_ms();
	swct_need_device();
	ksft_print_header();
	ksft_set_plan(ARRAY_SIZE(tests) + ARRAY_SIZE(ends) + 6);
	ksft_print_msg("COLL_PARTED_SEED=%u\n", seed);
	for (unsigned int k = 0; k < ARRAY_SIZE(tests); k++) {
		uint64_t start = swct_ms();
		int bad;

		swingcoll_unique_id(&id);
		bad = swct_ranks(NRANKS, 120000, tests[k].fn, NULL);
		ksft_test_result(!bad, "%s, %d ms\n", tests[k].name, (int)(swct_ms() - start));
	}
	for (unsigned int k = 0; k < ARRAY_SIZE(ends); k++)
		ksft_test_result(!run_end(&ends[k]), "%s\n", ends[k].name);
	ksft_test_result(!another_calls(),
			 "a rank starts partitions where the others call a barrier\n");
	ksft_test_result(!stores(), "a store is enough while partitions run\n");
	ksft_test_result(!kills(), "killed at any moment\n");
	ksft_test_result(!deserts(),
			 "killed with a partition that another rank gave up and left\n");
	ksft_test_result(!falls(), "mismatches in a row, each found when the last one fails\n");
	ksft_test_result(!scribbles(), "garbage in the shared memory\n");
	ksft_finished();
}
