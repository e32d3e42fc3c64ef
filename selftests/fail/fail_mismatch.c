// SPDX-License-Identifier: GPL-2.0-only
/* Ranks that call different things: all get EPROTO, are told who and what, and can go on. */
#include <errno.h>

#include "testlib.h"

#define N 3

static uint8_t id[SWC_ID_BYTES];

struct job {
	const char *what;
	void (*change)(struct swc_desc *d, const struct swct_rank *r);
	const char *text;
};

static uint32_t ring_plan, barrier_plan;

static void count(struct swc_desc *d, const struct swct_rank *r)
{
	(void)r;
	d->count = 99;
}

static void dtype(struct swc_desc *d, const struct swct_rank *r)
{
	(void)r;
	d->dtype = SWC_F32;
}

static void redop(struct swc_desc *d, const struct swct_rank *r)
{
	(void)r;
	d->redop = SWC_MAX;
}

static void family(struct swc_desc *d, const struct swct_rank *r)
{
	(void)r;
	d->plan = ring_plan;
}

static void coll(struct swc_desc *d, const struct swct_rank *r)
{
	(void)r;
	*d = (struct swc_desc){ .comm = d->comm, .plan = barrier_plan, .coll = SWC_BARRIER };
}

static const struct job jobs[] = {
	{ "count", count, "count 99" },	   { "type", dtype, "f32" },
	{ "operation", redop, "max" },	   { "plan", family, "rank 1" },
	{ "collective", coll, "barrier" },
};

static void plans(struct swct_rank *r)
{
	struct swct_plan p;

	swct_plan_ring(&p, N, r->rank);
	swct_plan_load(r->c.fd, r->comm, p.data, p.bytes, &ring_plan, NULL);
	swct_plan_free(&p);
	swct_plan_barrier(&p, N, r->rank);
	swct_plan_load(r->c.fd, r->comm, p.data, p.bytes, &barrier_plan, NULL);
	swct_plan_free(&p);
}

/* Rank 1 differs; the order of arrival varies from round to round. */
static int differ(uint32_t rank, void *arg)
{
	static uint32_t buf[200];
	const struct job *j = arg;
	struct swc_comm_error e;
	struct swct_rank r;
	struct swc_desc d;

	CHECK_EQ(swct_rank_up(&r, id, N, rank, 20000), 0);
	plans(&r);
	for (uint32_t round = 0; round < 6; round++) {
		swct_sleep_ms((rank + round) % N * 20);
		d = swct_allreduce(&r, buf, buf, 100, SWC_U32);
		if (rank == 1)
			j->change(&d, &r);
		CHECK_EQ(swct_run(&r.c, &d, NULL), -EPROTO);
		CHECK_EQ(swct_error(r.c.fd, r.comm, &e), 0);
		CHECK_EQ(e.error, -EPROTO);
		CHECK_EQ(e.aborted, 0);
		if (!strstr(e.text, "rank 1") || !strstr(e.text, j->text)) {
			ksft_print_msg("text: %s\n", e.text);
			return 1;
		}
		CHECK_EQ(swct_sound(&r, 1000), 0);
	}
	swct_rank_down(&r);
	return 0;
}

/* Many at once, without a pause: arrivals meet in every order. */
static int storm(uint32_t rank, void *arg)
{
	static uint32_t buf[8192];
	uint32_t seed = 1;
	struct swct_rank r;
	struct swc_desc d;

	(void)arg;
	CHECK_EQ(swct_rank_up(&r, id, N, rank, 20000), 0);
	plans(&r);
	for (uint32_t k = 0; k < 400; k++) {
		uint32_t odd;
		int ret;

		seed = seed * 1103515245 + 12345;
		odd = (seed >> 16) % (N + 2); /* who differs; N and above: nobody */
		d = swct_allreduce(&r, buf, buf, 8192, SWC_U32);
		if (rank == odd) {
			d.count = 1 + (seed >> 20) % 8192;
			if (seed & 0x800000)
				d.plan = ring_plan;
		}
		ret = swct_run(&r.c, &d, NULL);
		if (odd >= N || (d.plan == r.plan && d.count == 8192 && rank == odd))
			CHECK(!ret || ret == -EPROTO);
		else
			CHECK(ret == -EPROTO || !ret);
		if (odd >= N)
			CHECK_EQ(ret, 0);
	}
	CHECK_EQ(swct_sound(&r, 1000), 0);
	swct_rank_down(&r);
	return 0;
}

/* Plans that each pass the loader and together wait for each other for ever. */
static int deadlock(uint32_t rank, void *arg)
{
	static uint32_t buf[100];
	struct swc_comm_error e;
	struct swct_plan p;
	struct swct_rank r;
	struct swc_desc d;
	int kind = *(int *)arg;

	CHECK_EQ(swct_rank_up(&r, id, N, rank, 20000), 0);
	swct_plan_init(&p, SWC_ALLREDUCE, N, rank, 0, 2);
	swct_plan_channel(&p);
	if (kind == 0) { /* all receive, nobody sends */
		swct_plan_step(&p, SWC_STEP_NET);
		swct_plan_recv(&p, (rank + 1) % N, SWC_BUF_RECV, 0, 1, 0, 0);
	} else if (kind == 1) { /* all send, nobody receives */
		swct_plan_step(&p, SWC_STEP_NET);
		swct_plan_send(&p, (rank + 1) % N, SWC_BUF_SEND, 0, 1);
	} else if (kind == 2) { /* a barrier that one rank does not come to */
		if (rank)
			swct_plan_step(&p, SWC_STEP_SYNC);
	} else if (kind == 3) { /* a channel that the peer does not have */
		swct_plan_channel(&p);
		if (!rank) {
			swct_plan_channel(&p);
			swct_plan_step(&p, SWC_STEP_NET);
			swct_plan_recv(&p, 1, SWC_BUF_RECV, 0, 1, 0, 0);
		}
	} else if (kind == 4) { /* sizes that do not fit */
		swct_plan_step(&p, SWC_STEP_NET);
		swct_plan_send(&p, (rank + 1) % N, SWC_BUF_SEND, 0, rank ? 1 : 2);
		swct_plan_recv(&p, (rank + N - 1) % N, SWC_BUF_RECV, 0, 1, 0, 0);
	} else { /* a local step between ranges of different size */
		swct_plan_step(&p, SWC_STEP_LOCAL);
		swct_plan_send(&p, 0, SWC_BUF_SEND, 0, 2);
		swct_plan_recv(&p, rank, SWC_BUF_RECV, 0, 1, 0, 0);
	}
	swct_plan_pack(&p);
	r.plan = 0;
	uint32_t good = 0, bad;
	struct swct_plan g;

	swct_plan_direct(&g, N, rank);
	CHECK_EQ(swct_plan_load(r.c.fd, r.comm, g.data, g.bytes, &good, NULL), 0);
	CHECK_EQ(swct_plan_load(r.c.fd, r.comm, p.data, p.bytes, &bad, NULL), 0);
	for (int k = 0; k < 5; k++) {
		r.plan = bad;
		d = swct_allreduce(&r, buf, buf, 100, SWC_U32);
		CHECK_EQ(swct_run(&r.c, &d, NULL), -EPROTO);
		CHECK_EQ(swct_error(r.c.fd, r.comm, &e), 0);
		CHECK_EQ(e.error, -EPROTO);
		CHECK(strstr(e.text, "selftest"));
		r.plan = good;
		CHECK_EQ(swct_sound(&r, 1000), 0);
	}
	swct_rank_down(&r);
	return 0;
}

int main(void)
{
	static const char *const kinds[] = {
		"receives without sends", "sends without receives", "a barrier not all come to",
		"a missing channel",	  "sizes that do not fit",  "a local step of two sizes"
	};

	ksft_print_header();
	swct_need_device();
	ksft_set_plan(ARRAY_SIZE(jobs) + ARRAY_SIZE(kinds) + 1);
	for (unsigned int j = 0; j < ARRAY_SIZE(jobs); j++) {
		swct_id(id);
		ksft_test_result(!swct_ranks(N, 30000, differ, (void *)&jobs[j]), "another %s",
				 jobs[j].what);
	}
	for (int k = 0; k < (int)ARRAY_SIZE(kinds); k++) {
		swct_id(id);
		ksft_test_result(!swct_ranks(N, 30000, deadlock, &k), "plans: %s", kinds[k]);
	}
	swct_id(id);
	ksft_test_result(!swct_ranks(N, 60000, storm, NULL), "400 operations, most of them wrong");
	ksft_finished();
}
