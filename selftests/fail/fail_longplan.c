// SPDX-License-Identifier: GPL-2.0-only
/*
 * The longest plan that the kernel accepts, with nothing to copy: it must not keep other threads from the CPU.
 * SWC_TEST_SHORT=1: 4 ranks instead of 12.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "pairs.h"
#include "testlib.h"

#define STARVED_MS 1000
#define MAX_RANKS 12
#define TRIES 3
#define LIMIT_MS 600000 /* of the operation: minutes on emulated CPUs of a busy host */

static unsigned int n = MAX_RANKS;
static struct testlib_rank r;
static uint8_t id[SWC_ID_BYTES];
static volatile bool stop;
static volatile uint64_t gap_ms;

/* Shared by parent and children. */
struct tries {
	unsigned int wanted;	/* operations so far; more than TRIES: there are no more */
	unsigned int submitted; /* by the children */
};

static struct tries *tries;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* The longest time that this thread does not run though it could. */
static void *watch(void *arg)
{
	uint64_t last = testlib_now_ms(), now;

	pin((intptr_t)arg);
	while (!stop) {
		sched_yield();
		now = testlib_now_ms();
		if (now - last > gap_ms)
			gap_ms = now - last;
		last = now;
	}
	return NULL;
}

static int long_plan(void)
{
	struct testlib_plan p;

	testlib_plan_longest(&p, n, r.rank);
	return testlib_plan_install(r.c.fd, r.comm, &p, &r.plan);
}

/* SWC_OP_WAITING: the submitter executes the plan itself. */
static int starving(bool *starved)
{
	struct swc_desc d = {
		.comm = r.comm, .plan = r.plan, .coll = SWC_BARRIER, .flags = SWC_OP_WAITING
	};
	struct swc_completion c;
	uint64_t start, took;
	pthread_t t[2];

	gap_ms = 0;
	stop = false;
	for (intptr_t cpu = 0; cpu < 2; cpu++)
		CHECK_EQ(pthread_create(&t[cpu], NULL, watch, (void *)cpu), 0);
	testlib_sleep_ms(50);
	start = testlib_now_ms();
	CHECK_EQ(testlib_submit(r.c.fd, &d), 0);
	CHECK_EQ(testlib_ring_next(&r.c, &c, LIMIT_MS), 0);
	CHECK_EQ(c.res, 0);
	took = testlib_now_ms() - start;
	stop = true;
	for (int cpu = 0; cpu < 2; cpu++)
		pthread_join(t[cpu], NULL);
	ksft_print_msg("%zu steps took %llu ms; longest time without the CPU: %llu ms\n",
		       TESTLIB_LONGEST_STEPS, (unsigned long long)took, (unsigned long long)gap_ms);
	/* On a busy host everything takes longer, but a plan that keeps the CPU keeps it until its end. */
	*starved = gap_ms >= STARVED_MS && gap_ms >= took / 4;
	/* A shorter operation could not show it. */
	CHECK(took > 20);
	return 0;
}

/* One try without starvation is enough: a busy host may have caused the others. */
static int others_run(void)
{
	bool starved = true;

	for (unsigned int k = 1; k <= TRIES && starved; k++) {
		testlib_count(&tries->wanted);
		/* The rank that comes last does the work. */
		CHECK(testlib_wait_count(&tries->submitted, k * (n - 1)));
		CHECK_EQ(starving(&starved), 0);
	}
	__atomic_store_n(&tries->wanted, TRIES + 1, __ATOMIC_RELEASE);
	CHECK(!starved);
	return 0;
}

static int other(uint32_t rank, void *arg)
{
	struct swc_desc d = { .coll = SWC_BARRIER };
	struct swc_completion c;

	(void)arg;
	CHECK_EQ(testlib_rank_open(&r, id, n, rank, LIMIT_MS), 0);
	CHECK_EQ(long_plan(), 0);
	d.comm = r.comm;
	d.plan = r.plan;
	for (unsigned int k = 1;; k++) {
		unsigned int wanted;

		while ((wanted = __atomic_load_n(&tries->wanted, __ATOMIC_ACQUIRE)) < k)
			testlib_sleep_ms(2);
		if (wanted > TRIES)
			return 0;
		CHECK_EQ(testlib_submit(r.c.fd, &d), 0);
		testlib_count(&tries->submitted);
		CHECK_EQ(testlib_ring_next(&r.c, &c, LIMIT_MS), 0);
		CHECK_EQ(c.res, 0);
	}
}

int main(void)
{
	pid_t pid[MAX_RANKS];

	ksft_print_header();
	testlib_require_device();
	ksft_set_plan(3);
	if (pairs_short())
		n = 4;
	tries = testlib_shared_alloc(sizeof(*tries));
	testlib_new_id(id);
	testlib_fork_ranks(pid, n - 1, other, NULL);
	if (testlib_rank_open(&r, id, n, n - 1, LIMIT_MS))
		ksft_exit_fail_msg("cannot set up\n");
	ksft_test_result(!long_plan(), "the longest plan is accepted");
	ksft_test_result(!others_run(), "other threads get the CPU while it runs");
	ksft_test_result(!testlib_wait_ranks_ms(pid, n - 1, LIMIT_MS), "it completes on all ranks");
	ksft_finished();
}
