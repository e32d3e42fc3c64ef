// SPDX-License-Identifier: GPL-2.0-only
/* Ranks that call different things: all get EPROTO with the rank and the difference, and the communicator goes on. */
#include <errno.h>

#include "testlib.h"

#define N 3

static uint8_t id[SWC_ID_BYTES];
static unsigned int *submitted; /* counts operations of all ranks */

struct job {
	const char *what;
	void (*change)(struct swc_desc *d, const struct testlib_rank *r);
	const char *text;
};

static uint32_t ring_plan, barrier_plan;

static void count(struct swc_desc *d, const struct testlib_rank *r)
{
	(void)r;
	d->count = 99;
}

static void dtype(struct swc_desc *d, const struct testlib_rank *r)
{
	(void)r;
	d->dtype = SWC_F32;
}

static void redop(struct swc_desc *d, const struct testlib_rank *r)
{
	(void)r;
	d->redop = SWC_MAX;
}

static void family(struct swc_desc *d, const struct testlib_rank *r)
{
	(void)r;
	d->plan = ring_plan;
}

static void coll(struct swc_desc *d, const struct testlib_rank *r)
{
	(void)r;
	*d = (struct swc_desc){ .comm = d->comm, .plan = barrier_plan, .coll = SWC_BARRIER };
}

static const struct job jobs[] = {
	{ "count", count, "count 99" },	   { "type", dtype, "f32" },
	{ "operation", redop, "max" },	   { "plan", family, "rank 1" },
	{ "collective", coll, "barrier" },
};

static void plans(struct testlib_rank *r)
{
	struct testlib_plan p;

	testlib_plan_ring(&p, N, r->rank);
	testlib_plan_install(r->c.fd, r->comm, &p, &ring_plan);
	testlib_plan_barrier(&p, N, r->rank);
	testlib_plan_install(r->c.fd, r->comm, &p, &barrier_plan);
}

/* Submit and wait as the place-th of N ranks in this round. */
static int submit_in_turn(struct testlib_rank *r, const struct swc_desc *d, uint32_t round,
			  uint32_t place)
{
	struct swc_completion c;

	CHECK(testlib_wait_count(submitted, round * N + place));
	CHECK_EQ(testlib_submit(r->c.fd, d), 0);
	testlib_count(submitted);
	CHECK_EQ(testlib_ring_next(&r->c, &c, TESTLIB_EVENT_MS), 0);
	return c.res;
}

/* Rank 1 differs. The order of arrival changes from round to round. */
static int differ(uint32_t rank, void *arg)
{
	static uint32_t buf[200];
	const struct job *j = arg;
	struct swc_comm_error e;
	struct testlib_rank r;
	struct swc_desc d;

	CHECK_EQ(testlib_rank_open(&r, id, N, rank, TESTLIB_EVENT_MS), 0);
	plans(&r);
	for (uint32_t round = 0; round < 6; round++) {
		d = testlib_allreduce_desc(&r, buf, buf, 100, SWC_U32);
		if (rank == 1)
			j->change(&d, &r);
		CHECK_EQ(submit_in_turn(&r, &d, round, (rank + round) % N), -EPROTO);
		CHECK_EQ(testlib_comm_error(r.c.fd, r.comm, &e), 0);
		CHECK_EQ(e.error, -EPROTO);
		CHECK_EQ(e.aborted, 0);
		if (!strstr(e.text, "rank 1 (pid ") || !strstr(e.text, j->text)) {
			ksft_print_msg("text: %s\n", e.text);
			return 1;
		}
		CHECK_EQ(testlib_check_allreduce(&r, 1000), 0);
	}
	testlib_rank_close(&r);
	return 0;
}

/*
 * Many operations without a pause, in which at most one rank differs: arrivals in every order. All ranks draw the same
 * numbers, so each knows how every operation has to end.
 */
static int storm(uint32_t rank, void *arg)
{
	static uint32_t buf[8192];
	uint32_t seed = 1;
	struct testlib_rank r;
	struct swc_desc d;

	(void)arg;
	CHECK_EQ(testlib_rank_open(&r, id, N, rank, TESTLIB_EVENT_MS), 0);
	plans(&r);
	for (uint32_t k = 0; k < 400; k++) {
		uint32_t odd, count, plan;
		bool wrong;

		seed = seed * 1103515245 + 12345;
		odd = (seed >> 16) % (N + 2); /* the rank that differs; N and above: none */
		count = 1 + (seed >> 20) % 8192;
		plan = seed & 0x800000 ? ring_plan : r.plan;
		wrong = odd < N && (count != 8192 || plan != r.plan);
		d = testlib_allreduce_desc(&r, buf, buf, 8192, SWC_U32);
		if (rank == odd) {
			d.count = count;
			d.plan = plan;
		}
		CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), wrong ? -EPROTO : 0);
	}
	CHECK_EQ(testlib_check_allreduce(&r, 1000), 0);
	testlib_rank_close(&r);
	return 0;
}

/* Plans that the loader accepts one by one, and that together would wait for each other without end. */
static int deadlock(uint32_t rank, void *arg)
{
	static uint32_t buf[100];
	struct swc_comm_error e;
	struct testlib_plan p;
	struct testlib_rank r;
	struct swc_desc d;
	int kind = *(int *)arg;
	uint32_t good, bad;

	CHECK_EQ(testlib_rank_open(&r, id, N, rank, TESTLIB_EVENT_MS), 0);
	testlib_plan_init(&p, SWC_ALLREDUCE, N, rank, 0, 2);
	testlib_plan_channel(&p);
	if (kind == 0) { /* all receive, none sends */
		testlib_plan_step(&p, SWC_STEP_NET);
		testlib_plan_recv(&p, (rank + 1) % N, SWC_BUF_RECV, 0, 1, 0, 0);
	} else if (kind == 1) { /* all send, none receives */
		testlib_plan_step(&p, SWC_STEP_NET);
		testlib_plan_send(&p, (rank + 1) % N, SWC_BUF_SEND, 0, 1);
	} else if (kind == 2) { /* a barrier without one rank */
		if (rank)
			testlib_plan_step(&p, SWC_STEP_SYNC);
	} else if (kind == 3) { /* a channel that its peer lacks */
		testlib_plan_channel(&p);
		if (!rank) {
			testlib_plan_channel(&p);
			testlib_plan_step(&p, SWC_STEP_NET);
			testlib_plan_recv(&p, 1, SWC_BUF_RECV, 0, 1, 0, 0);
		}
	} else if (kind == 4) { /* different sizes of send and receive */
		testlib_plan_step(&p, SWC_STEP_NET);
		testlib_plan_send(&p, (rank + 1) % N, SWC_BUF_SEND, 0, rank ? 1 : 2);
		testlib_plan_recv(&p, (rank + N - 1) % N, SWC_BUF_RECV, 0, 1, 0, 0);
	} else { /* a local step between ranges of different size */
		testlib_plan_step(&p, SWC_STEP_LOCAL);
		testlib_plan_send(&p, 0, SWC_BUF_SEND, 0, 2);
		testlib_plan_recv(&p, rank, SWC_BUF_RECV, 0, 1, 0, 0);
	}
	testlib_plan_pack(&p);
	good = r.plan;
	CHECK_EQ(testlib_plan_install(r.c.fd, r.comm, &p, &bad), 0);
	for (int k = 0; k < 5; k++) {
		r.plan = bad;
		d = testlib_allreduce_desc(&r, buf, buf, 100, SWC_U32);
		CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), -EPROTO);
		CHECK_EQ(testlib_comm_error(r.c.fd, r.comm, &e), 0);
		CHECK_EQ(e.error, -EPROTO);
		CHECK(strstr(e.text, "selftest"));
		r.plan = good;
		CHECK_EQ(testlib_check_allreduce(&r, 1000), 0);
	}
	testlib_rank_close(&r);
	return 0;
}

int main(void)
{
	static const char *const kinds[] = { "receives without sends",
					     "sends without receives",
					     "a barrier without one rank",
					     "a missing channel",
					     "sends and receives of different sizes",
					     "a local step with two sizes" };

	ksft_print_header();
	testlib_require_device();
	submitted = testlib_shared_alloc(sizeof(*submitted));
	ksft_set_plan(ARRAY_SIZE(jobs) + ARRAY_SIZE(kinds) + 1);
	for (unsigned int j = 0; j < ARRAY_SIZE(jobs); j++) {
		testlib_new_id(id);
		*submitted = 0;
		ksft_test_result(!testlib_run_ranks(N, differ, (void *)&jobs[j]),
				 "a rank calls with another %s", jobs[j].what);
	}
	for (int k = 0; k < (int)ARRAY_SIZE(kinds); k++) {
		testlib_new_id(id);
		ksft_test_result(!testlib_run_ranks(N, deadlock, &k), "plans: %s", kinds[k]);
	}
	testlib_new_id(id);
	ksft_test_result(!testlib_run_ranks(N, storm, NULL), "400 operations, most of them wrong");
	ksft_finished();
}
