// SPDX-License-Identifier: GPL-2.0-only
/*
 * The library's all-to-alls with copy steps, as they are and in local steps instead, as for modules that
 * have no copy steps: both give the right result, in place and not. All ranks are on this node, whatever
 * the topology says: they exchange in its memory what would go between nodes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/plan.h"
#include "plan/without_copies.h"
#include "testlib.h"

#define MOST_RANKS 8

static const struct way {
	const char *topo;
	enum swc_algo algo;
	int32_t param;
} ways[] = {
	{ "switch:6", SWC_ALGO_BRUCK, 2 },	{ "switch:8", SWC_ALGO_BRUCK, 4 },
	{ "switch:3*2", SWC_ALGO_BY_NODES, 1 }, { "switch:2*3", SWC_ALGO_BY_NODES, 1 },
	{ "switch:4*2", SWC_ALGO_BY_NODES, 2 },
};

/* One unit of a block, less; copies that are done at once; and long ones. */
static const size_t counts[] = { 1, 100, 3001, 20011 };

static uint8_t id[SWC_ID_BYTES];
static struct swc_topo topo;

/* Shared by all ranks: copy steps of rank 0's plan, as the library has made it and as it was loaded. */
static struct steps {
	uint32_t made, loaded;
} * steps;

struct job {
	const struct way *way;
	bool without;
};

static uint32_t value(uint32_t from, uint32_t to, size_t i)
{
	return from * 1000003u + to * 10007u + (uint32_t)i;
}

static uint32_t copy_steps(const struct testlib_plan *p)
{
	struct swc_plan_view v;
	char why[200];
	uint32_t n = 0;

	if (swc_plan_check(p->data, p->bytes, &v, why, sizeof(why)))
		ksft_exit_fail_msg("%s\n", why);
	for (uint32_t i = 0; i < v.hdr->nsteps; i++)
		n += v.steps[i].kind == SWC_STEP_COPY;
	return n;
}

static int load(struct testlib_rank *r, const struct job *j)
{
	struct swc_plan_args a = { .coll = SWC_ALLTOALL,
				   .algo = j->way->algo,
				   .param = j->way->param,
				   .topo = &topo,
				   .nranks = topo.nranks,
				   .rank = r->rank };
	struct testlib_plan p = { 0 };
	char why[200] = "";
	int ret = swc_plan_build(&a, &p.data, &p.bytes, why, sizeof(why));
	uint32_t made;

	if (!ret) {
		made = copy_steps(&p);
		if (j->without)
			ret = swc_plan_without_copies(&p.data, &p.bytes, why, sizeof(why));
		if (!ret && !r->rank)
			*steps = (struct steps){ made, copy_steps(&p) };
	}
	if (ret)
		ksft_print_msg("rank %u: %s\n", r->rank, why);
	else
		ret = testlib_plan_install(r->c.fd, r->comm, &p, &r->plan);
	return ret;
}

static int exchange(struct testlib_rank *r, size_t count, bool in_place)
{
	uint32_t n = r->nranks, *recv = malloc(n * count * 4);
	uint32_t *send = in_place ? recv : malloc(n * count * 4);
	struct swc_desc d = testlib_allreduce_desc(r, send, recv, count, SWC_U32);

	d.coll = SWC_ALLTOALL;
	CHECK(send && recv);
	memset(recv, 0xa5, n * count * 4);
	for (uint32_t to = 0; to < n; to++)
		for (size_t i = 0; i < count; i++)
			send[to * count + i] = value(r->rank, to, i);
	CHECK_EQ(testlib_submit_wait(&r->c, &d, NULL), 0);
	for (uint32_t from = 0; from < n; from++)
		for (size_t i = 0; i < count; i++)
			CHECK_EQ(recv[from * count + i], value(from, r->rank, i));
	free(recv);
	if (!in_place)
		free(send);
	return 0;
}

static int rank_fn(uint32_t rank, void *arg)
{
	const struct job *j = arg;
	struct testlib_rank r;

	CHECK_EQ(testlib_rank_open(&r, id, topo.nranks, rank, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(load(&r, j), 0);
	for (unsigned int k = 0; k < 2 * ARRAY_SIZE(counts); k++)
		CHECK_EQ(exchange(&r, counts[k / 2], k & 1), 0);
	testlib_rank_close(&r);
	return 0;
}

static void run(const struct way *w, bool without)
{
	struct job j = { w, without };
	pid_t pid[MOST_RANKS];
	char why[200];
	bool bad;

	if (swc_topo_parse(&topo, w->topo, why, sizeof(why)))
		ksft_exit_fail_msg("%s: %s\n", w->topo, why);
	testlib_new_id(id);
	testlib_fork_ranks(pid, topo.nranks, rank_fn, &j);
	bad = testlib_wait_ranks(pid, topo.nranks);
	/* by-nodes may have none on rank 0, which changes nothing. */
	bad |= (w->algo == SWC_ALGO_BRUCK && !steps->made) ||
	       steps->loaded != (without ? 0 : steps->made);
	ksft_test_result(!bad, "%s:%d on %s, %s: %u of %u copy steps of rank 0",
			 swc_algo_name(w->algo), w->param, w->topo,
			 without ? "without copy steps" : "as it is", steps->loaded, steps->made);
	swc_topo_free(&topo);
}

int main(void)
{
	ksft_print_header();
	testlib_require_device();
	ksft_set_plan(2 * ARRAY_SIZE(ways));
	steps = testlib_shared_alloc(sizeof(*steps));
	for (unsigned int k = 0; k < 2 * ARRAY_SIZE(ways); k++)
		run(&ways[k / 2], k & 1);
	ksft_finished();
}
