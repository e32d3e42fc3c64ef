// SPDX-License-Identifier: GPL-2.0-only
/*
 * The protocol of the slots with threads as ranks and a condition variable as the kernel: results,
 * agreement on which collectives go to the kernel, reuse of cells and data slots, sleeping and
 * waking, ranks that leave. TAP on stdout.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kmod/core/plan_check.h"
#include "kmod/core/reduce.h"
#include "src/shm/slots.h"
#include "tap.h"

#define MAX_RANKS 8
#define MAX_BYTES 4096
#define MAX_OPS 20000

/* ---- the kernel's part ---- */

struct node {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	char *memory;
	struct swc_comm_state state;
	unsigned int sleeps, wakes;
	uint32_t waited_ms;		 /* before the last sleep */
	unsigned int awaited[MAX_RANKS]; /* how many sleep until this rank comes */
	uint32_t blamed;		 /* by the last rank that ended the communicator */
	bool left[MAX_RANKS];
};

static int node_wait(void *arg, uint32_t offset, uint32_t value, uint32_t timeout_ms, int suspect,
		     uint32_t waited_ms)
{
	struct node *n = arg;
	struct timespec until;
	int ret = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += timeout_ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&n->lock);
	n->sleeps++;
	n->waited_ms = waited_ms;
	__atomic_fetch_add(&n->awaited[suspect], 1, __ATOMIC_RELAXED);
	while (!ret &&
	       __atomic_load_n((uint32_t *)(n->memory + offset), __ATOMIC_ACQUIRE) == value) {
		if (__atomic_load_n(&n->state.aborted, __ATOMIC_ACQUIRE))
			ret = n->state.error;
		else if (n->left[suspect])
			ret = -ECONNRESET;
		else if (pthread_cond_timedwait(&n->cond, &n->lock, &until))
			ret = -ETIMEDOUT;
	}
	__atomic_fetch_sub(&n->awaited[suspect], 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&n->lock);
	return ret;
}

static void node_wake(void *arg)
{
	struct node *n = arg;

	pthread_mutex_lock(&n->lock);
	n->wakes++;
	pthread_cond_broadcast(&n->cond);
	pthread_mutex_unlock(&n->lock);
}

/* A rank leaves the communicator. */
static void node_leave(struct node *n, unsigned int rank)
{
	pthread_mutex_lock(&n->lock);
	n->left[rank] = true;
	pthread_cond_broadcast(&n->cond);
	pthread_mutex_unlock(&n->lock);
}

static int node_fail(void *arg, int error, uint32_t other)
{
	struct node *n = arg;

	__atomic_store_n(&n->blamed, other, __ATOMIC_RELAXED);
	n->state.error = error;
	__atomic_store_n(&n->state.aborted, 1, __ATOMIC_RELEASE);
	node_wake(n);
	return error;
}

static const struct swc_slots_env node_env = { .wait = node_wait,
					       .wake = node_wake,
					       .fail = node_fail };

/* ---- ranks ---- */

enum way {
	SLOTS,
	KERNEL,
	SOME_KERNEL,
	DISAGREE,
	WAYS
};

/* Which ranks have a hook, and so poll instead of sleeping. */
enum hooked {
	NONE,
	ODD_RANKS,
	ALL_RANKS,
	HOOKED
};

static const char *const hooked_names[] = { "", ", odd ranks with a hook", ", with hooks" };

struct team {
	struct node node;
	unsigned int nranks, nops;
	uint64_t seed;
	bool spin;
	bool eager;
	enum hooked hooked;
	uint32_t timeout_ms;
	unsigned int bad;
	unsigned int ahead;	    /* how many broadcasts or sequences the root has done */
	int8_t *outcome[MAX_RANKS]; /* by operation */
};

struct member {
	struct team *team;
	unsigned int rank;
};

static const struct swc_slots_op barrier = { .coll = SWC_BARRIER };

static void complain(struct team *t, unsigned int rank, uint64_t k, const char *what)
{
	if (__atomic_fetch_add(&t->bad, 1, __ATOMIC_RELAXED) < 5)
		printf("# rank %u operation %llu: %s\n", rank, (unsigned long long)k, what);
}

static void count_call(void *arg)
{
	__atomic_fetch_add((unsigned int *)arg, 1, __ATOMIC_RELAXED);
}

static unsigned int hook_calls;
static const struct swc_wait_hook counting = { .call = count_call, .arg = &hook_calls };

static void setup(struct swc_slots *s, struct member *m)
{
	struct team *t = m->team;

	swc_slots_plan(s, t->nranks, m->rank, MAX_BYTES);
	s->timeout_ms = t->timeout_ms;
	s->state = &t->node.state;
	s->eager = t->eager;
	s->env = &node_env;
	s->arg = &t->node;
	if (t->hooked == ALL_RANKS || (t->hooked == ODD_RANKS && m->rank & 1))
		s->hook = &counting;
	if (swc_slots_attach(s, t->node.memory))
		complain(t, m->rank, 0, "attach");
}

static uint64_t mix(uint64_t z)
{
	z += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Contribution of a rank to element i of operation k. */
static uint32_t element(uint64_t k, unsigned int rank, size_t i)
{
	return (uint32_t)mix(k * 1000003 + rank * 7919 + i);
}

static uint32_t sum(const struct team *t, uint64_t k, size_t i)
{
	uint32_t s = 0;

	for (unsigned int r = 0; r < t->nranks; r++)
		s += element(k, r, i);
	return s;
}

static bool right(const struct team *t, const struct swc_slots_op *op, unsigned int rank,
		  uint64_t k, const uint32_t *recv)
{
	for (size_t i = 0; i < op->count; i++) {
		switch (op->coll) {
		case SWC_ALLREDUCE:
			if (recv[i] != sum(t, k, i))
				return false;
			break;
		case SWC_REDUCE_SCATTER:
			if (recv[i] != sum(t, k, rank * op->count + i))
				return false;
			break;
		case SWC_ALLGATHER:
			for (unsigned int r = 0; r < t->nranks; r++)
				if (recv[r * op->count + i] != element(k, r, i))
					return false;
			break;
		case SWC_BROADCAST:
			if (recv[i] != element(k, op->root, i))
				return false;
			break;
		case SWC_GATHER:
			for (unsigned int r = 0; rank == op->root && r < t->nranks; r++)
				if (recv[r * op->count + i] != element(k, r, i))
					return false;
			break;
		case SWC_SCATTER:
			if (recv[i] != element(k, op->root, rank * op->count + i))
				return false;
			break;
		case SWC_ALLTOALL:
			for (unsigned int r = 0; r < t->nranks; r++)
				if (recv[r * op->count + i] != element(k, r, rank * op->count + i))
					return false;
			break;
		case SWC_REDUCE:
			if (rank == op->root && recv[i] != sum(t, k, i))
				return false;
			break;
		default:
			break;
		}
	}
	return true;
}

static enum swc_coll coll_at(const struct team *t, uint64_t k)
{
	static const enum swc_coll colls[] = { SWC_ALLREDUCE, SWC_REDUCE_SCATTER, SWC_ALLGATHER,
					       SWC_BROADCAST, SWC_REDUCE,	  SWC_BARRIER,
					       SWC_GATHER,    SWC_SCATTER,	  SWC_ALLTOALL };
	static const enum swc_coll rooted[] = { SWC_BROADCAST, SWC_REDUCE, SWC_GATHER,
						SWC_SCATTER };
	uint64_t h = mix(t->seed ^ k << 8);

	/* Long sequences without a meeting of all. */
	if (t->eager && mix(t->seed ^ k / 400) % 2)
		return rooted[h % (sizeof(rooted) / sizeof(rooted[0]))];
	return colls[h % (sizeof(colls) / sizeof(colls[0]))];
}

static int slot_op(struct team *t, struct swc_slots *s, uint64_t k, bool disagree)
{
	static const size_t counts[] = { 0, 1, 7, 27, 28, 29, 100, 128, 129, MAX_BYTES / 4 };
	uint64_t h = mix(t->seed ^ k << 8);
	uint32_t send[MAX_BYTES / 4], recv[MAX_BYTES / 4 * MAX_RANKS];
	struct swc_slots_op op = {
		.coll = coll_at(t, k),
		.dtype = SWC_U32,
		.send = send,
		.recv = recv,
		.count = counts[(h >> 8) % (sizeof(counts) / sizeof(counts[0]))],
	};
	bool sharded;
	size_t n;
	int ret;

	if (swc_coll_has_root(op.coll))
		op.root = (h >> 16) % t->nranks;
	sharded = op.coll == SWC_REDUCE_SCATTER || op.coll == SWC_SCATTER ||
		  op.coll == SWC_ALLTOALL;
	if (sharded)
		op.count /= t->nranks;
	if (op.coll == SWC_BARRIER)
		op.count = op.dtype = 0;
	n = sharded ? op.count * t->nranks : op.count;
	op.bytes = n * 4;
	for (size_t i = 0; i < n; i++)
		send[i] = element(k, s->rank, i);
	if ((op.coll == SWC_ALLREDUCE || op.coll == SWC_ALLTOALL) && h >> 20 & 1) {
		memcpy(recv, send, op.bytes);
		op.send = recv;
	}
	if (disagree)
		op.redop ^= 1;
	do {
		ret = swc_slots_run(s, &op);
	} while (ret == -EAGAIN && !sched_yield());
	if (ret < 0)
		complain(t, s->rank, k, "error");
	else if (!ret && !right(t, &op, s->rank, k, recv))
		complain(t, s->rank, k, "wrong result");
	return ret;
}

static bool is_rooted(const struct team *t, uint64_t k)
{
	return swc_coll_has_root(coll_at(t, k));
}

static void *member_main(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;
	struct swc_slots s;

	setup(&s, m);
	for (uint64_t k = 0; k < t->nops; k++) {
		uint64_t h = mix(t->seed + k);
		enum way way = h % 16 < 10    ? SLOTS
			       : h % 16 < 14  ? KERNEL
			       : h % 16 == 14 ? SOME_KERNEL
					      : DISAGREE;
		bool odd = m->rank == (h >> 8) % t->nranks;
		int ret = 1;

		/* Of these some ranks would be done when others go to the kernel. */
		if (t->eager && way > KERNEL && is_rooted(t, k))
			way = SLOTS;
		/* Long sequences through the kernel, so that some ranks get far ahead of others. */
		if (mix(t->seed + k / 300) % 4 == 0)
			way = KERNEL;
		if (way == KERNEL || (way == SOME_KERNEL && odd)) {
			while (swc_slots_pass(&s) == -EAGAIN)
				sched_yield();
		} else {
			ret = slot_op(t, &s, k, way == DISAGREE && odd);
		}
		t->outcome[m->rank][k] = (int8_t)ret;
		if (way != SLOTS && ret != 1 && !(t->nranks == 1))
			complain(t, m->rank, k, "should have gone to the kernel");
		if (way == SLOTS && ret)
			complain(t, m->rank, k, "should not have gone to the kernel");
		if ((h >> 32) % 64 == m->rank)
			sched_yield();
		/* So late that the others sleep. */
		if (odd && (h >> 40) % 32 == 0)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	swc_slots_leave(&s);
	return NULL;
}

static void start(struct team *t, struct member *m, pthread_t *thread, void *(*fn)(void *))
{
	struct swc_slots s;
	size_t bytes = swc_slots_plan(&s, t->nranks, 0, MAX_BYTES);

	t->node.memory = aligned_alloc(4096, bytes);
	memset(t->node.memory, 0, bytes);
	t->node.state.ncpus = t->spin ? t->nranks : t->nranks - 1;
	pthread_mutex_init(&t->node.lock, NULL);
	pthread_cond_init(&t->node.cond, NULL);
	for (unsigned int r = 0; r < t->nranks; r++) {
		t->outcome[r] = calloc(t->nops ? t->nops : 1, 1);
		m[r] = (struct member){ t, r };
		pthread_create(&thread[r], NULL, fn, &m[r]);
	}
}

static void finish(struct team *t, pthread_t *thread)
{
	for (unsigned int r = 0; r < t->nranks; r++)
		pthread_join(thread[r], NULL);
	for (unsigned int r = 0; r < t->nranks; r++) {
		if (r && memcmp(t->outcome[0], t->outcome[r], t->nops))
			complain(t, r, 0, "took another way than rank 0");
	}
	for (unsigned int r = 0; r < t->nranks; r++)
		free(t->outcome[r]);
	free(t->node.memory);
}

static void test_mix(unsigned int nranks, unsigned int nops, bool spin, bool eager,
		     enum hooked hooked)
{
	struct team t = { .nranks = nranks,
			  .nops = nops,
			  .spin = spin,
			  .eager = eager,
			  .hooked = hooked,
			  .timeout_ms = 60000,
			  .seed = (uint64_t)time(NULL) };
	struct member m[MAX_RANKS];
	pthread_t thread[MAX_RANKS];
	char name[100];

	start(&t, m, thread, member_main);
	finish(&t, thread);
	snprintf(name, sizeof(name), "%u ranks, %u mixed operations, %s%s%s", nranks, nops,
		 spin ? "polling first" : "sleeping at once", eager ? ", eager" : "",
		 hooked_names[hooked]);
	if (!ok(!t.bad, name))
		printf("# seed %llu\n", (unsigned long long)t.seed);
	printf("# %u sleeps, %u wakes\n", t.node.sleeps, t.node.wakes);
}

/* ---- ranks that do not come ---- */

/* Rank 1 leaves after one barrier, while the others are in, or about to enter, the next. */
static void *leaver_main(void *arg)
{
	struct member *m = arg;
	struct swc_slots s;
	int ret;

	setup(&s, m);
	ret = swc_slots_run(&s, &barrier);
	if (ret)
		complain(m->team, m->rank, 0, "first barrier");
	if (m->rank == 1) {
		struct timespec ts = { .tv_nsec = 20000000 };

		nanosleep(&ts, NULL);
		swc_slots_leave(&s);
		return NULL;
	}
	for (int i = 0; i < 3; i++)
		if (swc_slots_run(&s, &barrier) != SWC_SLOTS_FALLBACK)
			complain(m->team, m->rank, 1, "did not notice that rank 1 left");
	return NULL;
}

/* Rank 1 leaves after an operation that rank 2 is late for: ranks 0 and 2 must still succeed. */
static void *early_main(void *arg)
{
	struct member *m = arg;
	struct timespec ts = { .tv_nsec = 20000000 };
	struct swc_slots s;

	setup(&s, m);
	if (m->rank == 1) {
		if (swc_slots_run(&s, &barrier))
			complain(m->team, m->rank, 0, "barrier");
		swc_slots_leave(&s);
		return NULL;
	}
	if (m->rank == 2)
		nanosleep(&ts, NULL);
	if (swc_slots_run(&s, &barrier))
		complain(m->team, m->rank, 0, "barrier failed, but all came");
	return NULL;
}

/* Only rank 0 comes. */
static void *alone_main(void *arg)
{
	struct member *m = arg;
	struct swc_slots s;

	setup(&s, m);
	if (!m->rank && swc_slots_run(&s, &barrier) != -ETIMEDOUT)
		complain(m->team, 0, 0, "no deadline");
	/* Who polls sleeps only for the error, which tells the time that it has polled. */
	if (s.hook && !m->rank && m->team->node.waited_ms != s.timeout_ms)
		complain(m->team, 0, 0, "another time than it has waited");
	return NULL;
}

static void *abort_main(void *arg)
{
	struct member *m = arg;
	struct timespec ts = { .tv_nsec = 20000000 };
	struct swc_slots s;

	setup(&s, m);
	if (m->rank) {
		nanosleep(&ts, NULL);
		m->team->node.state.error = -ECONNRESET;
		__atomic_store_n(&m->team->node.state.aborted, 1, __ATOMIC_RELEASE);
		node_wake(&m->team->node);
		return NULL;
	}
	if (swc_slots_run(&s, &barrier) != -ECONNRESET)
		complain(m->team, 0, 0, "no error");
	if (swc_slots_run(&s, &barrier) != -ECONNRESET)
		complain(m->team, 0, 1, "no error the second time");
	return NULL;
}

/* How far ahead a rank may be without waiting, by the size of what it gives. */
static void *ahead_main(void *arg)
{
	static const struct {
		size_t bytes;
		uint64_t ahead;
	} cases[] = { { 4, 64 }, { 400, 16 }, { 4096, 2 } };
	struct member *m = arg;
	char buf[MAX_BYTES] = "";
	struct swc_slots s;

	setup(&s, m);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct swc_slots_op op = { .coll = SWC_BROADCAST,
					   .send = buf,
					   .recv = buf,
					   .count = cases[i].bytes,
					   .bytes = cases[i].bytes };

		if (swc_slots_run(&s, &barrier))
			complain(m->team, m->rank, s.next, "barrier");
		if (!m->rank) {
			for (uint64_t k = 0; k < cases[i].ahead; k++)
				if (swc_slots_run(&s, &op))
					complain(m->team, 0, s.next, "broadcast of the root");
			__atomic_store_n(&m->team->ahead, (unsigned int)i + 1, __ATOMIC_RELEASE);
			continue;
		}
		/* The root is done before this rank begins. */
		while (__atomic_load_n(&m->team->ahead, __ATOMIC_ACQUIRE) <= i)
			sched_yield();
		for (uint64_t k = 0; k < cases[i].ahead; k++)
			if (swc_slots_run(&s, &op))
				complain(m->team, m->rank, s.next, "broadcast");
	}
	swc_slots_leave(&s);
	return NULL;
}

/*
 * Rank 1 leaves while the others are so far ahead by broadcasts that they wait for it. They have published
 * that those go through the slots: too late for the kernel.
 */
static void *left_behind_main(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;
	uint32_t v = 0;
	const struct swc_slots_op op = {
		.coll = SWC_BROADCAST, .send = &v, .recv = &v, .count = 4, .bytes = 4
	};
	struct swc_slots s;
	unsigned int n = 0;
	int ret;

	setup(&s, m);
	if (swc_slots_run(&s, &barrier))
		complain(t, m->rank, 0, "barrier");
	if (m->rank == 1) {
		while (__atomic_load_n(&t->ahead, __ATOMIC_ACQUIRE) < 64)
			sched_yield();
		/* One that only polls cannot be seen to wait, and one that fails does not. */
		while (t->hooked != ALL_RANKS &&
		       !__atomic_load_n(&t->node.awaited[1], __ATOMIC_RELAXED) &&
		       __atomic_load_n(&t->ahead, __ATOMIC_RELAXED) != UINT_MAX)
			sched_yield();
		swc_slots_leave(&s);
		node_leave(&t->node, 1);
		return NULL;
	}
	/* It never comes to twice as many as there are records. */
	while (!(ret = swc_slots_run(&s, &op)) && ++n < 256)
		if (!m->rank)
			__atomic_store_n(&t->ahead, n, __ATOMIC_RELEASE);
	/* The root is the first to be so far ahead. The others may be ended by it before. */
	if ((!m->rank && n < 64) || ret != -ECONNRESET)
		complain(t, m->rank, s.next, "did not notice that it waits in vain");
	__atomic_store_n(&t->ahead, UINT_MAX, __ATOMIC_RELEASE);
	if (swc_slots_run(&s, &op) != -ECONNRESET ||
	    (!m->rank && swc_slots_pass(&s) != -ECONNRESET))
		complain(t, m->rank, s.next, "no error the second time");
	if (__atomic_load_n(&t->node.blamed, __ATOMIC_RELAXED) != 1)
		complain(t, m->rank, s.next, "another rank is blamed than the one that has left");
	return NULL;
}

/* Rank 1 calls a scatter where the root calls a broadcast. */
static void *mismatch_main(void *arg)
{
	struct member *m = arg;
	uint32_t buf[2 * MAX_RANKS] = { 0 };
	struct swc_slots_op op = { .coll = m->rank == 1 ? SWC_SCATTER : SWC_BROADCAST,
				   .send = buf,
				   .recv = buf + MAX_RANKS,
				   .bytes = 4,
				   .count = 4 };
	struct swc_slots s;
	int ret;

	setup(&s, m);
	ret = swc_slots_run(&s, &op);
	/* The root need not notice, rank 2 may come first. */
	if (m->rank == 1 && ret != -EPROTO)
		complain(m->team, 1, 0, "did not notice the mismatch");
	do {
		ret = swc_slots_run(&s, &barrier);
	} while (!ret);
	if (ret != -EPROTO)
		complain(m->team, m->rank, 1, "was not told of the mismatch");
	return NULL;
}

static void test_absence(void *(*fn)(void *), unsigned int nranks, uint32_t timeout_ms,
			 const char *name)
{
	char text[100];

	for (int way = 0; way < 2 * HOOKED; way++) {
		struct team t = { .nranks = nranks,
				  .spin = way & 1,
				  .eager = fn == ahead_main || fn == left_behind_main ||
					   fn == mismatch_main,
				  .hooked = (enum hooked)(way / 2),
				  .timeout_ms = timeout_ms };
		struct member m[MAX_RANKS];
		pthread_t thread[MAX_RANKS];

		start(&t, m, thread, fn);
		finish(&t, thread);
		snprintf(text, sizeof(text), "%s (%s%s)", name, t.spin ? "polling" : "sleeping",
			 hooked_names[t.hooked]);
		ok(!t.bad, text);
	}
}

static void test_layout(void)
{
	static const struct swc_comm_state state = { .ncpus = 2 };
	struct swc_slots a, b;
	size_t bytes = swc_slots_plan(&a, 2, 0, 4096);
	char *memory = aligned_alloc(4096, bytes);

	memset(memory, 0, bytes);
	ok(bytes % 4096 == 0 && a.max_bytes == 4096, "the size is a number of pages");
	swc_slots_plan(&b, 2, 1, 8192);
	a.state = b.state = &state;
	ok(!swc_slots_attach(&a, memory) && swc_slots_attach(&b, memory) == -EPROTO,
	   "a rank with another layout is refused");
	ok(swc_slots_run(&a, &barrier) == SWC_SLOTS_FALLBACK,
	   "and the other one does not wait for it");
	swc_slots_plan(&b, 2, 1, 4096);
	b.state = &state;
	b.eager = true;
	ok(swc_slots_attach(&b, memory) == -EPROTO, "so is one that is eager alone");
	free(memory);
	ok(swc_slots_plan(&a, 256, 0, 1 << 20) <= SWC_MAX_SLOT_BYTES,
	   "the memory of 256 ranks is within the limit");
	printf("# 256 ranks: %zu bytes per contribution\n", a.max_bytes);
}

int main(int argc, char **argv)
{
	unsigned int nops = argc > 1 ? (unsigned int)atoi(argv[1]) : 6000;

	printf("TAP version 13\n");
	if (nops > MAX_OPS)
		nops = MAX_OPS;
	swc_reduce_init();
	test_layout();
	for (int way = 0; way < 4; way++) {
		bool spin = way & 1, eager = way & 2;

		test_mix(1, 1000, spin, eager, NONE);
		test_mix(2, nops, spin, eager, NONE);
		test_mix(2, nops, spin, eager, ODD_RANKS);
		test_mix(3, nops / 2, spin, eager, NONE);
		test_mix(3, nops / 2, spin, eager, ALL_RANKS);
		test_mix(8, nops / 4, spin, eager, NONE);
		test_mix(8, nops / 8, spin, eager, ODD_RANKS);
	}
	ok(hook_calls, "hooks have been called");
	test_absence(leaver_main, 3, 20000, "a rank leaves: the others fall back to the kernel");
	test_absence(early_main, 3, 20000,
		     "a rank leaves before another arrives: the barrier succeeds");
	test_absence(alone_main, 2, 100, "a rank does not come: the deadline passes");
	test_absence(abort_main, 2, 20000, "abort: a waiting rank gets the error");
	test_absence(ahead_main, 3, 20000, "the root of eager broadcasts need not wait");
	test_absence(left_behind_main, 3, 20000,
		     "a rank leaves that others are far ahead of: they get an error");
	test_absence(mismatch_main, 3, 20000, "a mismatch with an eager collective ends all");
	return done();
}
