// SPDX-License-Identifier: GPL-2.0-only
/*
 * Partitioned collectives: right results for any order in which ranks mark partitions ready, any number of partitions,
 * and repeated starts; and calls that are refused.
 *
 * COLL_PARTITIONED_SEED: repeat the orders and shapes of another run. SWC_TEST_SHORT=1: fewer rounds of random shapes.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pairs.h"
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
			struct partitioned j;

			CHECK_EQ(partitioned_open(&j, &cases[k], parts[m], comm), 0);
			for (int round = 0; round < 3; round++)
				CHECK_EQ(partitioned_round(&j, rank, round, &rnd), 0);
			CHECK_EQ(partitioned_close(&j), 0);
		}
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Random shapes, the same on all ranks, and for each rank its own order. */
static int fuzz(uint32_t rank, void *arg)
{
	unsigned int shape = seed, rnd = seed + 7 * rank;
	struct swingcoll_comm *comm;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	for (int k = 0; k < 25; k++) {
		struct coll_case c = cases[rand_r(&shape) % ARRAY_SIZE(cases)];
		int n = 1 + rand_r(&shape) % (k % 5 ? 6 : 60);
		struct partitioned j;

		c.count = 1 + rand_r(&shape) % 600;
		CHECK_EQ(partitioned_open(&j, &c, n, comm), 0);
		for (int round = 0; round < (pairs_short() ? 10 : 40); round++)
			CHECK_EQ(partitioned_round(&j, rank, round, &rnd), 0);
		CHECK_EQ(partitioned_close(&j), 0);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int max_partitions(uint32_t rank, void *arg)
{
	struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_I32, .count = 16 };
	unsigned int rnd = seed + rank;
	struct swingcoll_comm *comm;
	struct partitioned j;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	CHECK_EQ(partitioned_open(&j, &c, 4096, comm), 0);
	for (int round = 0; round < 3; round++)
		CHECK_EQ(partitioned_round(&j, rank, round, &rnd), 0);
	CHECK_EQ(partitioned_close(&j), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Partitions large enough to be copied directly between the ranks' buffers, and by DMA engines under dma.sh. */
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
		struct partitioned j;

		CHECK_EQ(partitioned_open(&j, &c[k], 2, comm), 0);
		for (int round = 0; round < 2; round++)
			CHECK_EQ(partitioned_round(&j, rank, round, &rnd), 0);
		CHECK_EQ(partitioned_close(&j), 0);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Partitioned and ordinary collectives of one communicator in flight together. */
static int among_others(uint32_t rank, void *arg)
{
	struct coll_case c = {
		.coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = 3000, .in_place = true
	};
	struct swingcoll_comm *comm;
	struct swingcoll_req *req;
	struct partitioned j[2];
	void *mem;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	mem = malloc(coll_bytes(&c, NRANKS));
	for (int k = 0; k < 2; k++)
		CHECK_EQ(partitioned_open(&j[k], &cases[k], 9 + 60 * k, comm), 0);
	for (int round = 0; round < 20; round++) {
		for (int k = 0; k < 2; k++)
			CHECK_EQ(swingcoll_pstart(j[k].part), 0);
		coll_fill(&c, NRANKS, rank, mem, round);
		CHECK_EQ(coll_icall(&c, mem, mem, comm, &req), 0);
		/* The second request first, in reverse on odd ranks; each rank keeps one partition back. */
		for (int k = 1; k >= 0; k--) {
			for (int i = 0; i < j[k].n; i++) {
				int at = rank & 1 ? j[k].n - 1 - i : i;

				if (at == (int)rank)
					continue;
				partitioned_fill(&j[k], at, rank, round);
				CHECK_EQ(swingcoll_pready(j[k].part, at), 0);
			}
		}
		CHECK_EQ(swingcoll_wait(req, NULL), 0);
		CHECK_EQ(coll_check(&c, NRANKS, rank, mem, round), 0);
		CHECK_EQ(coll_run(&c, mem, comm, round + 1), 0);
		CHECK_EQ(swingcoll_parrived(j[0].part, rank), 0);
		for (int k = 0; k < 2; k++) {
			partitioned_fill(&j[k], rank, rank, round);
			CHECK_EQ(swingcoll_pready(j[k].part, rank), 0);
		}
		for (int k = 0; k < 2; k++) {
			CHECK_EQ(swingcoll_pwait(j[k].part, SWINGCOLL_ALL_PARTITIONS), 0);
			for (int i = 0; i < j[k].n; i++)
				CHECK_EQ(partitioned_check(&j[k], i, rank, round), 0);
		}
	}
	for (int k = 0; k < 2; k++)
		CHECK_EQ(partitioned_close(&j[k]), 0);
	free(mem);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* More partitions of rank 0 are in flight than it may have other operations, and others follow. */
static int ahead(uint32_t rank, void *arg)
{
	struct coll_case c = {
		.coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = 3000, .in_place = true
	};
	const int *gate = arg; /* a pipe: once it has data, the other ranks go on */
	struct pollfd open = { .fd = gate[0], .events = POLLIN };
	struct swingcoll_comm *comm;
	struct swingcoll_req *req;
	struct partitioned j[2];
	void *mem;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	mem = malloc(coll_bytes(&c, NRANKS));
	coll_fill(&c, NRANKS, rank, mem, 0);
	for (int k = 0; k < 2; k++)
		CHECK_EQ(partitioned_open(&j[k], &cases[k], 2 * SWC_MAX_INFLIGHT, comm), 0);
	if (rank)
		CHECK_EQ(poll(&open, 1, TESTLIB_EVENT_MS), 1);
	for (int k = 0; k < 2; k++) {
		CHECK_EQ(swingcoll_pstart(j[k].part), 0);
		for (int i = 0; i < j[k].n; i++) {
			partitioned_fill(&j[k], i, rank, 0);
			CHECK_EQ(swingcoll_pready(j[k].part, i), 0);
		}
	}
	CHECK_EQ(coll_icall(&c, mem, mem, comm, &req), 0);
	if (!rank)
		CHECK_EQ(write(gate[1], "", 1), 1);
	CHECK_EQ(swingcoll_wait(req, NULL), 0);
	CHECK_EQ(coll_check(&c, NRANKS, rank, mem, 0), 0);
	for (int k = 0; k < 2; k++) {
		CHECK_EQ(swingcoll_pwait(j[k].part, SWINGCOLL_ALL_PARTITIONS), 0);
		for (int i = 0; i < j[k].n; i++)
			CHECK_EQ(partitioned_check(&j[k], i, rank, 0), 0);
		CHECK_EQ(partitioned_close(&j[k]), 0);
	}
	free(mem);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Four threads of each rank share the partitions. */
struct producer {
	struct partitioned *j;
	int first;
	int rank;
	int salt;
	int bad;
};

static void *produce(void *arg)
{
	struct producer *p = arg;

	for (int i = p->first; i < p->j->n; i += 4) {
		partitioned_fill(p->j, i, p->rank, p->salt);
		p->bad |= swingcoll_pready(p->j->part, i);
	}
	return NULL;
}

static int threads(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm;
	struct partitioned j;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, NULL), 0);
	CHECK_EQ(partitioned_open(&j, &cases[0], 500, comm), 0);
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
			CHECK_EQ(partitioned_check(&j, i, rank, round), 0);
	}
	CHECK_EQ(partitioned_close(&j), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* ------------------------------------------------------------------ refused */

/* This process's mappings of the device, or the same places in a child. */
struct places {
	const struct partitioned *j;
	struct swingcoll_comm *comm;
	struct {
		char *start;
		size_t bytes;
	} at[16];
	unsigned int n;
};

static int find_mappings(struct places *p)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	CHECK(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long start, end;

		if (!strstr(line, "/dev/swingcoll") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		CHECK(p->n < ARRAY_SIZE(p->at));
		p->at[p->n].start = (char *)start;
		p->at[p->n++].bytes = end - start;
	}
	fclose(maps);
	CHECK(p->n);
	return 0;
}

static int in_child(void *arg)
{
	const struct places *p = arg;
	const struct partitioned *j = p->j;

	/* Where the parent has the kernel's memory, this child has its own. */
	for (unsigned int i = 0; i < p->n; i++)
		CHECK(mmap(p->at[i].start, p->at[i].bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			   0) == p->at[i].start);
	CHECK_EQ(swingcoll_pstart(j->part), -EBADF);
	CHECK_EQ(swingcoll_pready(j->part, 0), -EBADF);
	CHECK_EQ(swingcoll_parrived(j->part, 0), -EBADF);
	CHECK_EQ(swingcoll_pwait(j->part, SWINGCOLL_ALL_PARTITIONS), -EBADF);
	CHECK_EQ(swingcoll_pfree(j->part), 0);
	CHECK_EQ(swingcoll_comm_destroy(p->comm), 0);
	for (unsigned int i = 0; i < p->n; i++)
		CHECK_EQ(msync(p->at[i].start, p->at[i].bytes, MS_ASYNC), 0);
	return 0;
}

static int misuse(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm;
	struct swingcoll_partitioned *part = NULL;
	float send[64] = { 0 }, recv[64];
	struct places places = { 0 };
	struct partitioned j;

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
	CHECK_EQ(partitioned_open(&j, &cases[0], 5, comm), 0);
	/* Before the start. */
	CHECK_EQ(swingcoll_pready(j.part, 0), -EINVAL);
	CHECK_EQ(swingcoll_parrived(j.part, 0), -EINVAL);
	CHECK_EQ(swingcoll_pwait(j.part, SWINGCOLL_ALL_PARTITIONS), -EINVAL);
	CHECK_EQ(swingcoll_pstart(j.part), 0);
	/* A refused call of one rank does not change its place in the order of collectives. */
	if (!rank) {
		CHECK_EQ(swingcoll_pstart(j.part), -EBUSY);
		CHECK_EQ(swingcoll_pfree(j.part), -EBUSY);
	}
	CHECK_EQ(swingcoll_allreduce(send, recv, 4, SWINGCOLL_F32, SWINGCOLL_SUM, comm), 0);
	/* A child process cannot use it. */
	places.j = &j;
	places.comm = comm;
	CHECK_EQ(find_mappings(&places), 0);
	CHECK_EQ(testlib_run_child(in_child, &places), 0);
	CHECK_EQ(swingcoll_pready(j.part, 5), -EINVAL);
	CHECK_EQ(swingcoll_pready(j.part, -1), -EINVAL);
	for (int i = 0; i < 5; i++) {
		partitioned_fill(&j, i, rank, 1);
		CHECK_EQ(swingcoll_pready(j.part, i), 0);
	}
	CHECK_EQ(swingcoll_pwait(j.part, SWINGCOLL_ALL_PARTITIONS), 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(partitioned_check(&j, i, rank, 1), 0);
	CHECK_EQ(partitioned_close(&j), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* As many partitions as may wait to be ready, and one request more; then an abort ends all of them. */
static int too_many(uint32_t rank, void *arg)
{
	struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_I8, .count = 1 };
	struct swingcoll_comm *comm;
	struct swingcoll_id own;
	struct partitioned j[5];

	(void)arg;
	if (rank)
		return 0;
	swingcoll_unique_id(&own);
	CHECK_EQ(swingcoll_comm_create(&comm, &own, 1, 0, NULL), 0);
	for (int k = 0; k < 5; k++) {
		CHECK_EQ(partitioned_open(&j[k], &c, 4096, comm), 0);
		CHECK_EQ(swingcoll_pstart(j[k].part), k < 4 ? 0 : -EAGAIN);
	}
	CHECK_EQ(swingcoll_pready(j[0].part, 4095), 0);
	CHECK_EQ(swingcoll_pwait(j[0].part, 4095), 0);
	CHECK_EQ(swingcoll_comm_abort(comm), 0);
	CHECK_EQ(swingcoll_pwait(j[1].part, 7), -ECONNABORTED);
	for (int k = 0; k < 5; k++)
		CHECK_EQ(partitioned_close(&j[k]), 0);
	swingcoll_comm_destroy(comm);
	return 0;
}

/* ------------------------------------------------------------------ without system calls */

#define STORE_PARTS 32
#define STORE_COUNT (64 << 10)

struct stores {
	uint8_t id[SWC_ID_BYTES];
	uint32_t bare; /* partitions that a store alone has marked, of both ranks */
};

/* By the uapi: a partition marked while the kernel does not ask for a kick is carried out without one. */
static int store(uint32_t rank, void *arg)
{
	struct swc_partitioned_init init = { .partitions = STORE_PARTS };
	struct swc_partitioned_ref ref = { 0 };
	struct swc_partitioned_ref wait = { .partition = SWC_ALL_PARTITIONS,
					    .timeout_ms = TESTLIB_EVENT_MS };
	struct stores *s = arg;
	uint32_t *queue, tail = 0;
	struct swc_progress *p;
	struct testlib_rank r;
	float *mem;

	CHECK_EQ(testlib_rank_open(&r, s->id, 2, rank, TESTLIB_EVENT_MS), 0);
	mem = calloc(STORE_PARTS, STORE_COUNT * sizeof(*mem));
	init.desc = testlib_allreduce_desc(&r, mem, mem, STORE_COUNT, SWC_F32);
	init.send_stride = init.recv_stride = STORE_COUNT * sizeof(*mem);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_INIT, &init), 0);
	ref.handle = wait.handle = init.handle;
	p = mmap(NULL, init.map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.c.fd,
		 SWC_MMAP_PROGRESS(init.handle));
	CHECK(p != MAP_FAILED);
	queue = (uint32_t *)((char *)p + p->queue);
	for (int round = 0; round < 10; round++) {
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_START, &ref), 0);
		for (uint32_t i = 0; i < STORE_PARTS; i++) {
			__atomic_store_n(&queue[tail++ % p->entries], i + 1, __ATOMIC_RELEASE);
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			if (__atomic_load_n(&p->flags, __ATOMIC_RELAXED) & SWC_PROGRESS_KICK)
				CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_KICK, &ref), 0);
			else
				__atomic_fetch_add(&s->bare, 1, __ATOMIC_RELAXED);
		}
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_PARTITIONED_WAIT, &wait), 0);
	}
	munmap(p, init.map_bytes);
	testlib_rank_close(&r);
	free(mem);
	return 0;
}

static int stores(void)
{
	struct stores *s = testlib_shared_alloc(sizeof(*s));
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;
	int bad = 0, tries;

	/* Unless both ranks run at the same time, the kernel asks for kicks. */
	for (tries = 0; !bad && !s->bare && testlib_now_ms() < limit; tries++) {
		testlib_new_id(s->id);
		bad = testlib_run_ranks(2, store, s);
	}
	ksft_print_msg("%u of %d partitions marked without a system call\n", s->bare,
		       tries * 2 * 10 * STORE_PARTS);
	return bad | !s->bare;
}

/* ------------------------------------------------------------------ all tests */

static const struct {
	const char *name;
	testlib_rank_fn fn; /* NULL: stores() */
} tests[] = {
	{ "every collective, 1 to 200 partitions", each },
	{ "4096 partitions", max_partitions },
	{ "large partitions", large },
	{ "random shapes, each rank in its own order", fuzz },
	{ "among other collectives", among_others },
	{ "128 in flight before another collective", ahead },
	{ "marked ready by four threads", threads },
	{ "bad arguments and bad order of calls", misuse },
	{ "too many partitions that are not ready", too_many },
	{ "a store marks a partition while others run", NULL },
};

int main(int argc, char **argv)
{
	unsigned int planned = 0;
	int gate[2];

	seed = testlib_env_seed("COLL_PARTITIONED_SEED");
	ksft_print_header();
	testlib_require_device();
	if (pipe(gate))
		ksft_exit_fail_msg("cannot make a pipe\n");
	for (unsigned int k = 0; k < ARRAY_SIZE(tests); k++)
		planned += testlib_is_asked(argc, argv, tests[k].name);
	if (!planned)
		ksft_exit_fail_msg("no test is called so\n");
	ksft_set_plan(planned);
	ksft_print_msg("COLL_PARTITIONED_SEED=%u\n", seed);
	for (unsigned int k = 0; k < ARRAY_SIZE(tests); k++) {
		uint64_t start = testlib_now_ms();
		int bad;

		if (!testlib_is_asked(argc, argv, tests[k].name))
			continue;
		swingcoll_unique_id(&id);
		bad = tests[k].fn ? testlib_run_ranks(NRANKS, tests[k].fn, gate) : stores();
		ksft_test_result(!bad, "%s, %d ms", tests[k].name, (int)(testlib_now_ms() - start));
	}
	ksft_finished();
}
