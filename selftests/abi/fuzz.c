// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random input from three processes that share a communicator.
 *
 * Generations of two kinds alternate. In the first, all ranks run the same operations with plans that are each
 * changed at random: most are refused, the others run, and memory outside the buffers must not change. In the
 * second, each rank sends random calls, descriptors and commands to the device. Each generation has a new communicator,
 * for the last one may have ended.
 *
 * FUZZ_SECONDS: how long, 10 if not set, 5 with SWC_TEST_SHORT=1; FUZZ_SEED: repeat another run.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "pairs.h"
#include "testlib.h"

#define N 3
#define BUF (64ul << 10)
#define CANARY 0xc5

struct shared {
	unsigned int arrived;
	uint32_t loaded, refused, ran_good, ran_bad, calls, aborts;
};

static struct shared *sh;
static uint8_t base_id[SWC_ID_BYTES];
static uint64_t until;
static unsigned int seed;
static uint8_t *arena; /* canary, send, canary, recv, canary */

static uint32_t rnd(uint64_t *s)
{
	*s = *s * 6364136223846793005ull + 1442695040888963407ull;
	return *s >> 33;
}

static uint64_t rnd64(uint64_t *s)
{
	static const uint64_t edge[] = {
		0,	    1,		2,	    3,		7,	    64,		255,
		256,	    4095,	4096,	    65535,	65536,	    0x7fffffff, 0x80000000,
		0xffffffff, 1ull << 32, 1ull << 46, 1ull << 47, 1ull << 63, ~0ull,	~0ull - 4095
	};

	switch (rnd(s) % 4) {
	case 0:
		return rnd(s) % 16;
	case 1:
		return edge[rnd(s) % ARRAY_SIZE(edge)];
	case 2:
		return (uintptr_t)arena + rnd(s) % (5 * BUF);
	default:
		return ((uint64_t)rnd(s) << 32 | rnd(s)) >> rnd(s) % 64;
	}
}

/* All ranks come here once per generation. Without a limit: other limits end generations. */
static void meet(uint32_t gen)
{
	testlib_count(&sh->arrived);
	while (__atomic_load_n(&sh->arrived, __ATOMIC_ACQUIRE) < N * (gen + 1))
		testlib_sleep_ms(1);
}

/* ------------------------------------------------------------------ damaged plans */

static void make_plan(struct testlib_plan *p, uint32_t rank, uint64_t *common)
{
	switch (rnd(common) % 5) {
	case 0:
		testlib_plan_direct(p, N, rank);
		break;
	case 1:
		testlib_plan_ring(p, N, rank);
		break;
	case 2: /* two channels, each rank reduces two blocks for all */
		testlib_plan_init(p, SWC_ALLREDUCE, N, rank, 0, 2 * N);
		p->h.window[SWC_BUF_SCRATCH].nblocks = 2 * N;
		for (uint32_t c = 0; c < 2; c++) {
			testlib_plan_channel(p);
			testlib_plan_step(p, SWC_STEP_LOCAL);
			for (uint32_t r = 0; r < N; r++)
				testlib_plan_send(p, r, SWC_BUF_SEND, rank * 2 + c, 1);
			for (uint32_t r = 0; r < N; r++)
				testlib_plan_recv(p, r, SWC_BUF_RECV, rank * 2 + c, 1, 0,
						  r ? 0 : SWC_XFER_FINAL);
			testlib_plan_step(p, SWC_STEP_SYNC);
		}
		break;
	case 3: /* blocks on their own, there and back */
		testlib_plan_init(p, SWC_ALLREDUCE, N, rank, 0, 4);
		p->h.window[SWC_BUF_SCRATCH].nblocks = 4;
		testlib_plan_channel(p);
		for (int back = 0; back < 2; back++) {
			testlib_plan_step(p, SWC_STEP_COPY);
			for (uint32_t b = 0; b < 4; b++)
				testlib_plan_send(p, rank, back ? SWC_BUF_SCRATCH : SWC_BUF_SEND, b,
						  1);
			for (uint32_t b = 0; b < 4; b++)
				testlib_plan_recv(p, rank, back ? SWC_BUF_RECV : SWC_BUF_SCRATCH, b,
						  1, 0, back ? SWC_XFER_FINAL : 0);
			testlib_plan_step(p, SWC_STEP_SYNC);
		}
		break;
	default: /* every rank to every rank, with scratch */
		testlib_plan_init(p, SWC_ALLREDUCE, N, rank, 0, 4);
		p->h.window[SWC_BUF_SCRATCH].nblocks = 4;
		testlib_plan_channel(p);
		testlib_plan_step(p, SWC_STEP_NET);
		for (uint32_t r = 1; r < N; r++)
			testlib_plan_send(p, (rank + r) % N, SWC_BUF_SEND, 0, 4);
		for (uint32_t r = 1; r < N; r++)
			testlib_plan_recv(p, (rank + r) % N, SWC_BUF_RECV, 0, 4,
					  r == 1 ? SWC_BUF_SEND : SWC_BUF_RECV, SWC_XFER_REDUCE);
		testlib_plan_step(p, SWC_STEP_SYNC);
	}
	p->h.family = 5;
}

/* Of the header only windows change: the ranks compare the rest. */
static void damage(struct testlib_plan *p, uint64_t *own)
{
	struct swc_plan_xfer *x = p->h.nxfers ? &p->xfer[rnd(own) % p->h.nxfers] : NULL;
	struct swc_plan_step *st = &p->step[rnd(own) % p->h.nsteps];
	uint32_t all = p->h.shard_blocks;

	switch (rnd(own) % 12) {
	case 0:
		x->rank = rnd(own) % N;
		break;
	case 1:
		x->first_block = rnd(own) % (all + 1);
		break;
	case 2:
		x->nblocks = rnd(own) % (all + 2);
		break;
	case 3:
		x->first_block = rnd(own) % all;
		x->nblocks = 1 + rnd(own) % (all - x->first_block);
		break;
	case 4:
		x->buf = rnd(own) % 4;
		break;
	case 5:
		x->flags = rnd(own) % 4;
		x->operand = rnd(own) % 3;
		break;
	case 6:
		st->kind = 1 + rnd(own) % 4;
		break;
	case 7:
		if (st->nsend) {
			st->nsend--;
			st->nrecv++;
		}
		break;
	case 8:
		if (st->nrecv) {
			st->nrecv--;
			st->nsend++;
		}
		break;
	case 9: /* the last step of channel 0 becomes one of channel 1 */
		if (p->h.nchannels > 1 && p->chan[0].nsteps) {
			p->chan[0].nsteps--;
			p->chan[1].first_step--;
			p->chan[1].nsteps++;
		}
		break;
	case 10:
		p->h.window[SWC_BUF_SCRATCH].nblocks = rnd(own) % (all + 1);
		break;
	default:
		p->h.window[rnd(own) % SWC_BUF_NR].first_block = rnd(own) % 3;
	}
}

static int canaries(void)
{
	for (int part = 0; part < 5; part += 2)
		for (size_t i = 0; i < BUF; i++)
			if (arena[part * BUF + i] != CANARY) {
				ksft_print_msg("byte %zu of guard %d has been overwritten\n", i,
					       part / 2);
				return 1;
			}
	return 0;
}

static int damaged_plans(struct testlib_rank *r, struct io_uring *ring, uint64_t *common,
			 uint64_t *own)
{
	uint8_t *send = arena + BUF, *recv = arena + 3 * BUF;
	struct swc_plan_unload un = { .comm = r->comm };

	memset(arena, CANARY, BUF);
	memset(arena + 2 * BUF, CANARY, BUF);
	memset(arena + 4 * BUF, CANARY, BUF);
	for (int k = 0; k < 30 && testlib_now_ms() < until; k++) {
		static const uint8_t sizes[] = { 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8 };
		int dtype = rnd(common) % SWC_DTYPE_NR,
		    op = rnd(common) % (dtype < SWC_F16 ? 8 : 5), ret;
		uint64_t count = rnd(common) % (BUF / sizes[dtype] + 1);
		struct swc_desc d = { .comm = r->comm,
				      .coll = SWC_ALLREDUCE,
				      .dtype = dtype,
				      .redop = op,
				      .count = count,
				      .timeout_ms = 2000 };
		struct testlib_plan p;
		uint64_t bytes = count * sizes[dtype];

		make_plan(&p, r->rank, common);
		for (uint32_t n = rnd(own) % 4; n; n--)
			damage(&p, own);
		testlib_plan_pack(&p);
		ret = testlib_plan_load(r->c.fd, r->comm, p.data, p.bytes, &d.plan, NULL);
		__atomic_add_fetch(ret ? &sh->refused : &sh->loaded, 1, __ATOMIC_RELAXED);
		testlib_plan_free(&p);
		if (ret) /* stay in step with the other ranks, though this plan does not match theirs */
			d.plan = r->plan;
		un.plan = d.plan;
		/* At the end of the buffers, before a guard: the first byte too many is found. */
		d.send = (uintptr_t)send + BUF - bytes;
		d.recv = (uintptr_t)recv + BUF - bytes;
		if (rnd(common) & 1) {
			ret = testlib_submit_wait(&r->c, &d, NULL);
		} else {
			d.flags = rnd(own) & 1 ? SWC_OP_WAITING : 0;
			testlib_uring_prep(ring, r->c.fd, &d, k);
			io_uring_submit(ring);
			ret = testlib_uring_wait(ring, NULL, NULL, TESTLIB_EVENT_MS);
			CHECK(ret != -ETIME);
		}
		__atomic_add_fetch(ret ? &sh->ran_bad : &sh->ran_good, 1, __ATOMIC_RELAXED);
		if (un.plan != r->plan)
			CHECK_EQ(testlib_ioctl(r->c.fd, SWC_IOC_PLAN_UNLOAD, &un), 0);
		if (ret == -ETIMEDOUT || ret == -ECONNABORTED || ret == -ECONNRESET) {
			__atomic_add_fetch(&sh->aborts, 1, __ATOMIC_RELAXED);
			break;
		}
	}
	return canaries();
}

/* ------------------------------------------------------------------ random calls */

static void random_bytes(void *at, size_t n, uint64_t *s)
{
	uint8_t *p = at;

	for (size_t i = 0; i < n; i += 4) {
		uint32_t v = rnd(s) % 3 ? 0 : (uint32_t)rnd64(s);

		memcpy(p + i, &v, n - i < 4 ? n - i : 4);
	}
}

static void random_call(struct testlib_rank *r, uint64_t *s)
{
	unsigned long cmd = testlib_call[rnd(s) % TESTLIB_CALLS];
	union {
		uint8_t raw[1024];
		uint32_t first;
		struct swc_comm_create create;
		struct swc_comm_ref ref;
		struct swc_plan_load load;
		struct swc_mem_reg reg;
		struct swc_ring_wait ring;
		struct swc_slot_wait slot;
		struct swc_desc desc;
		struct swc_partitioned_init init;
		struct swc_partitioned_ref partition;
		struct swc_trace_query trace;
	} u;

	random_bytes(u.raw, sizeof(u.raw), s);
	if (rnd(s) & 1)
		u.first = r->comm;
	switch (cmd) {
	case SWC_IOC_COMM_CREATE:
		u.create.timeout_ms = 1 + rnd(s) % 5;
		u.create.join_ms = rnd(s) % 5;
		if (rnd(s) & 1)
			u.create = (struct swc_comm_create){ .nranks = 1,
							     .timeout_ms = 1,
							     .slot_bytes = rnd(s) % 70000 };
		break;
	case SWC_IOC_COMM_LEAVE:
	case SWC_IOC_COMM_ABORT:
		if (rnd(s) % 32)
			u.ref.comm += 1000;
		/* A rank still creating returns the error of the abort, and rank_fn() expects these two. */
		if (u.ref.error && u.ref.error < 512)
			u.ref.error = rnd(s) & 1 ? ECONNRESET : ETIMEDOUT;
		break;
	case SWC_IOC_RING_WAIT:
		u.ring.timeout_ms = 1 + rnd(s) % 5;
		break;
	case SWC_IOC_SLOT_WAIT:
		u.slot.timeout_ms = 1 + rnd(s) % 5;
		break;
	case SWC_IOC_MEM_REG:
		if (rnd(s) & 1)
			u.reg = (struct swc_mem_reg){ .addr = (uintptr_t)arena + rnd(s) % BUF,
						      .bytes = rnd(s) % (3 * BUF) };
		break;
	case SWC_IOC_PARTITIONED_INIT:
		if (rnd(s) & 1)
			u.init = (struct swc_partitioned_init){
				.desc = testlib_allreduce_desc(r, arena + BUF, arena + 3 * BUF,
							       1 + rnd(s) % 100, SWC_U32),
				.partitions = 1 + rnd(s) % 8,
				.send_stride = 400,
				.recv_stride = 400,
			};
		break;
	case SWC_IOC_PARTITIONED_START: /* a mismatch ends the communicator */
	case SWC_IOC_PARTITIONED_KICK:
	case SWC_IOC_PARTITIONED_FREE:
		if (rnd(s) % 8)
			u.partition = (struct swc_partitioned_ref){ .handle = 1 + rnd(s) % 8 };
		break;
	case SWC_IOC_PARTITIONED_WAIT:
		u.partition.timeout_ms = 1 + rnd(s) % 5;
		break;
	case SWC_IOC_TRACE:
		u.trace.max_records %= BUF / sizeof(struct swc_trace_record);
		u.trace.records = u.trace.records ? (uintptr_t)arena : 0;
		break;
	case SWC_IOC_PLAN_LOAD:
		u.load.data = (uintptr_t)arena + rnd(s) % BUF;
		u.load.bytes %= 5 * BUF;
		u.load.resv = 0;
		break;
	}
	testlib_ioctl(r->c.fd, cmd, u.raw);
}

static void random_desc(struct testlib_rank *r, struct swc_desc *d, uint64_t *s)
{
	*d = testlib_allreduce_desc(r, arena + BUF, arena + 3 * BUF, rnd(s) % 4000, SWC_U32);
	d->timeout_ms = 20;
	for (uint32_t n = rnd(s) % 3; n; n--) {
		uint32_t at = rnd(s) % sizeof(*d) & ~3u;
		uint32_t v = rnd64(s);

		memcpy((uint8_t *)d + at, &v, 4);
	}
	if (d->timeout_ms > 50)
		d->timeout_ms = 50;
}

static void random_wait(struct swc_partitioned_ref *ref, uint64_t *s)
{
	random_bytes(ref, sizeof(*ref), s);
	if (rnd(s) % 8)
		*ref = (struct swc_partitioned_ref){
			.handle = 1 + rnd(s) % 8,
			.partition = rnd(s) % 4 ? rnd(s) % 8 : SWC_ALL_PARTITIONS,
		};
}

static int random_calls(struct testlib_rank *r, struct io_uring *ring, uint64_t *s)
{
	uint32_t pending = 0;
	struct swc_partitioned_ref ref;
	struct swc_desc d;
	int ret;

	for (int k = 0; k < 200 && testlib_now_ms() < until; k++) {
		__atomic_add_fetch(&sh->calls, 1, __ATOMIC_RELAXED);
		switch (rnd(s) % 7) {
		case 0:
		case 1:
			random_call(r, s);
			break;
		case 2:
			random_desc(r, &d, s);
			testlib_submit(r->c.fd, &d);
			break;
		case 3:
			random_desc(r, &d, s);
			if (pending < 32 && testlib_uring_prep(ring, r->c.fd, &d, k))
				pending += io_uring_submit(ring) == 1;
			break;
		case 4: /* take completions */
			while (pending && testlib_uring_wait(ring, NULL, NULL, 1) != -ETIME)
				pending--;
			__atomic_store_n(&r->c.user->head, rnd(s) % 16 ? r->c.ring->tail : rnd(s),
					 __ATOMIC_RELEASE);
			break;
		case 5:
			random_wait(&ref, s);
			if (pending < 32 && testlib_uring_prep_wait(ring, r->c.fd, &ref, k))
				pending += io_uring_submit(ring) == 1;
			break;
		default:
			if (!(rnd(s) % 4)) { /* memory is replaced while operations use it */
				void *at = arena + rnd(s) % 72 * 4096;

				madvise(at, 4096 * (1 + rnd(s) % 8), MADV_DONTNEED);
			}
			testlib_check_allreduce(r, 1 + rnd(s) % 500);
		}
	}
	/* Every command completes: by its deadline of up to 50 ms, or by the abort if it has none. */
	while (pending) {
		struct swc_comm_ref ref = { .comm = r->comm };

		ret = testlib_uring_wait(ring, NULL, NULL, 200);
		if (ret == -ETIME) {
			testlib_ioctl(r->c.fd, SWC_IOC_COMM_ABORT, &ref);
			ret = testlib_uring_wait(ring, NULL, NULL, TESTLIB_EVENT_MS);
			CHECK(ret != -ETIME);
		}
		pending--;
	}
	return 0;
}

/* ------------------------------------------------------------------ */

static int rank_fn(uint32_t rank, void *arg)
{
	uint64_t own = seed * 2654435761ull + rank + 1, common;
	struct io_uring ring;
	uint32_t gen;

	(void)arg;
	arena = mmap(NULL, 5 * BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(arena != MAP_FAILED);
	for (gen = 0; testlib_now_ms() < until; gen++) {
		uint8_t id[SWC_ID_BYTES];
		struct testlib_rank r;
		int ret;

		memcpy(id, base_id, sizeof(id));
		id[0] ^= gen;
		id[1] ^= gen >> 8;
		common = seed + gen * 977;
		CHECK_EQ(testlib_uring_init(&ring, 64, TESTLIB_URING_BIG), 0);
		ret = testlib_rank_open(&r, id, N, rank, 3000);
		/*
		 * Other ranks may have aborted it, or let it time out, before this rank is back; and in the
		 * last generation they may have seen the end of the time before this rank.
		 */
		if (ret != -ECONNABORTED && ret != -ECONNRESET && ret != -ETIMEDOUT)
			CHECK_EQ(ret, 0);
		if (ret)
			ret = 0;
		else
			ret = gen & 1 ? random_calls(&r, &ring, &own)
				      : damaged_plans(&r, &ring, &common, &own);
		/* Close the ring first, or the device. */
		if (rnd(&own) & 1) {
			io_uring_queue_exit(&ring);
			testlib_close(&r.c);
		} else {
			testlib_close(&r.c);
			io_uring_queue_exit(&ring);
		}
		if (ret) {
			ksft_print_msg("rank %u, generation %u\n", rank, gen);
			return 1;
		}
		meet(gen);
		if (__atomic_load_n(&sh->arrived, __ATOMIC_ACQUIRE) >= N * 1000000u)
			break;
	}
	/* Release ranks that have begun one more generation. */
	__atomic_store_n(&sh->arrived, ~0u >> 1, __ATOMIC_RELEASE);
	return 0;
}

static int works(uint32_t rank, void *arg)
{
	struct testlib_rank r;

	(void)arg;
	CHECK_EQ(testlib_rank_open(&r, base_id, N, rank, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 20000), 0);
	testlib_rank_close(&r);
	return 0;
}

int main(void)
{
	uint32_t budget = testlib_env("FUZZ_SECONDS", pairs_short() ? 5 : 10);
	pid_t pid[N];
	int bad;

	ksft_print_header();
	testlib_require_root();
	ksft_set_plan(3);
	sh = testlib_shared_alloc(4096);
	seed = testlib_env_seed("FUZZ_SEED");
	ksft_print_msg("FUZZ_SEED=%u FUZZ_SECONDS=%u\n", seed, budget);
	until = testlib_now_ms() + budget * 1000;
	testlib_new_id(base_id);
	testlib_fork_ranks(pid, N, rank_fn, NULL);
	bad = testlib_wait_ranks_ms(pid, N, budget * 1000ull + TESTLIB_HANG_MS);
	ksft_print_msg(
		"%u plans accepted, %u refused; %u operations completed, %u failed; %u aborts; %u random calls\n",
		sh->loaded, sh->refused, sh->ran_good, sh->ran_bad, sh->aborts, sh->calls);
	/* If all plans were refused, or none had run, nothing would have been tested. */
	ksft_test_result(!bad && sh->loaded && sh->ran_good && sh->calls, "random input");
	testlib_new_id(base_id);
	ksft_test_result(!testlib_run_ranks(N, works, NULL), "the module works after it");
	ksft_test_result(!testlib_wait_released(0), "pages, regions and contexts are released");
	ksft_finished();
}
