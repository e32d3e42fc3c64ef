// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plans with as many steps as fit, and nothing to move: nobody else on the CPU may starve meanwhile.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "testlib.h"

#define STEPS ((SWC_MAX_PLAN_BYTES - 256) / sizeof(struct swc_plan_step))
#define STARVED_MS 1000
#define N 12
#define TRIES 3

static struct swct_rank r;
static uint8_t id[SWC_ID_BYTES];
static volatile bool stop;
static volatile uint64_t gap_ms;

/* What parent and children share. */
struct tries {
	int wanted; /* operations until now; more than TRIES: no more */
	int came;   /* of all the others, to all of them */
};

static struct tries *tries;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *watch(void *arg)
{
	uint64_t last = swct_ms(), now;

	pin((intptr_t)arg);
	while (!stop) {
		sched_yield();
		now = swct_ms();
		if (now - last > gap_ms)
			gap_ms = now - last;
		last = now;
	}
	return NULL;
}

static int long_plan(void)
{
	struct swct_plan p;
	int ret;

	swct_plan_init(&p, SWC_BARRIER, N, r.rank, 0, 1);
	swct_plan_channel(&p);
	p.step = calloc(STEPS, sizeof(*p.step));
	for (size_t i = 0; i < STEPS; i++)
		p.step[i].kind = SWC_STEP_SYNC;
	p.h.nsteps = p.chan[0].nsteps = STEPS;
	swct_plan_pack(&p);
	ret = swct_plan_load(r.c.fd, r.comm, p.data, p.bytes, &r.plan, NULL);
	swct_plan_free(&p);
	return ret;
}

/* By one's own hand: the submitter walks the plan. */
static int starving(bool *starved)
{
	struct swc_desc d = {
		.comm = r.comm, .plan = r.plan, .coll = SWC_BARRIER, .flags = SWC_OP_WAITING
	};
	uint64_t start, took;
	pthread_t t[2];

	gap_ms = 0;
	stop = false;
	for (intptr_t cpu = 0; cpu < 2; cpu++)
		CHECK_EQ(pthread_create(&t[cpu], NULL, watch, (void *)cpu), 0);
	swct_sleep_ms(50);
	start = swct_ms();
	CHECK_EQ(swct_run(&r.c, &d, NULL), 0);
	took = swct_ms() - start;
	stop = true;
	for (int cpu = 0; cpu < 2; cpu++)
		pthread_join(t[cpu], NULL);
	ksft_print_msg("%zu steps took %llu ms; longest time without the CPU: %llu ms\n", STEPS,
		       (unsigned long long)took, (unsigned long long)gap_ms);
	/* On a busy host everything takes longer; whoever keeps the CPU keeps it for all of the time. */
	*starved = gap_ms >= STARVED_MS && gap_ms >= took / 4;
	/* Otherwise the test has shown nothing. */
	CHECK(took > 20);
	return 0;
}

/* A host that is busy just then is not the plan's fault: once without is enough. */
static int not_always(void)
{
	bool starved = true;

	for (int k = 1; k <= TRIES && starved; k++) {
		__atomic_store_n(&tries->wanted, k, __ATOMIC_RELEASE);
		/* The last to come does the work. */
		for (int i = 0;
		     i < 10000 && __atomic_load_n(&tries->came, __ATOMIC_ACQUIRE) < k * (N - 1);
		     i++)
			swct_sleep_ms(2);
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
	int wanted;

	(void)arg;
	CHECK_EQ(swct_rank_up(&r, id, N, rank, 60000), 0);
	CHECK_EQ(long_plan(), 0);
	d.comm = r.comm;
	d.plan = r.plan;
	for (int k = 1;; k++) {
		while ((wanted = __atomic_load_n(&tries->wanted, __ATOMIC_ACQUIRE)) < k)
			swct_sleep_ms(2);
		if (wanted > TRIES)
			return 0;
		CHECK_EQ(swct_submit(r.c.fd, &d), 0);
		__atomic_add_fetch(&tries->came, 1, __ATOMIC_ACQ_REL);
		CHECK_EQ(swct_next(&r.c, &c, 60000), 0);
		CHECK_EQ(c.res, 0);
	}
}

int main(void)
{
	pid_t pid[N];

	ksft_print_header();
	swct_need_device();
	ksft_set_plan(3);
	tries = swct_shared(sizeof(*tries));
	swct_id(id);
	swct_fork(pid, N - 1, other, NULL);
	if (swct_rank_up(&r, id, N, N - 1, 60000))
		ksft_exit_fail_msg("cannot set up\n");
	ksft_test_result(!long_plan(), "the longest plan is taken");
	ksft_test_result(!not_always(), "others get the CPU while it runs");
	ksft_test_result(!swct_reap(pid, N - 1, 20000), "it ends well for all");
	ksft_finished();
}
