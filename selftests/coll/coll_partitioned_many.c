// SPDX-License-Identifier: GPL-2.0-only
/*
 * Partitioned collectives by every algorithm, and one request that is started many times.
 *
 * COLL_PARTITIONED_SEED: repeat the orders of another run.
 */
#include "partitioned.h"

#define NRANKS 4

static struct swingcoll_id id;
static unsigned int seed;

/* ------------------------------------------------------------------ by every algorithm */

struct shape {
	const char *topo;
	unsigned int least; /* cases of all algorithms that must run by the algorithm asked for */
};

static const struct shape shapes[] = {
	{ "ring:4", 52 },
	{ "torus:2x2", 56 },
};

/* No count is divisible by the blocks of a plan for 4 ranks, and one is less than their number. */
static const struct coll_case shape_cases[] = {
	{ .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = 1021 },
	{ .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_I64, .count = 3, .in_place = true },
	{ .coll = SWINGCOLL_REDUCE_SCATTER, .dtype = SWINGCOLL_I32, .count = 257 },
	{ .coll = SWINGCOLL_ALLGATHER, .dtype = SWINGCOLL_U16, .count = 511 },
};

/* Cases of one shape, counted by rank 0: by the algorithm asked for, by a substitute, not possible. */
struct tally {
	unsigned int own, substitute, refused;
};

static int by_algo(const struct coll_case *c, const char *algo, struct swingcoll_comm *comm,
		   unsigned int *rnd, struct tally *t)
{
	int rank = swingcoll_comm_rank(comm), ret;
	struct partitioned j;
	void *mem;

	ret = partitioned_open(&j, c, 3, comm);
	CHECK(!ret || ret == -EOPNOTSUPP);
	for (int round = 0; !ret && round < 2; round++)
		CHECK_EQ(partitioned_round(&j, rank, round, rnd), 0);
	CHECK_EQ(partitioned_close(&j), 0);
	/* An ordinary collective uses the same algorithm, or is refused, too; and it tells the algorithm. */
	mem = malloc(coll_bytes(c, NRANKS));
	CHECK_EQ(coll_run(c, mem, comm, 2), ret);
	free(mem);
	if (ret)
		t->refused++;
	else if (strcmp(swingcoll_comm_algo(comm), algo))
		t->substitute++;
	else
		t->own++;
	return 0;
}

static const struct shape *shape;

static int algos(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .topo = shape->topo, .flags = SWINGCOLL_ALLOW_REORDER };
	struct tally t = { 0 }, *out = arg;
	unsigned int rnd = seed + rank;
	struct swingcoll_comm *comm;

	for (int a = 0; (opts.algo = swingcoll_algo_name(a)); a++) {
		struct swingcoll_id own = id;

		own.bytes[0] += a;
		CHECK_EQ(swingcoll_comm_create(&comm, &own, NRANKS, rank, &opts), 0);
		for (unsigned int k = 0; k < ARRAY_SIZE(shape_cases); k++) {
			if (!by_algo(&shape_cases[k], opts.algo, comm, &rnd, &t))
				continue;
			ksft_print_msg("rank %u: %s on %s: %s\n", rank, opts.algo, shape->topo,
				       coll_describe(&shape_cases[k]));
			return 1;
		}
		CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	}
	if (!rank)
		*out = t;
	return 0;
}

static void each_algo(const struct shape *s)
{
	struct tally *t = testlib_shared_alloc(sizeof(*t));
	uint64_t start = testlib_now_ms();
	int bad;

	shape = s;
	swingcoll_unique_id(&id);
	bad = testlib_run_ranks(NRANKS, algos, t);
	ksft_test_result(
		!bad && t->own >= s->least,
		"every algorithm, %s: %u right (at least %u), %u by substitutes, %u refused, %d ms",
		s->topo, t->own, s->least, t->substitute, t->refused,
		(int)(testlib_now_ms() - start));
}

/* ------------------------------------------------------------------ many rounds */

struct series {
	int parts, rounds;
	struct coll_case c;
};

static const struct series many[] = {
	{ 5, 1000, { .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = 37 } },
	{ 4096, 25, { .coll = SWINGCOLL_REDUCE_SCATTER, .dtype = SWINGCOLL_I32, .count = 3 } },
};

/* One request, started many times. */
static int series(uint32_t rank, void *arg)
{
	const struct series *s = arg;
	unsigned int rnd = seed + rank;
	struct swingcoll_comm *comm;
	struct partitioned j;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, 2, rank, NULL), 0);
	CHECK_EQ(partitioned_open(&j, &s->c, s->parts, comm), 0);
	for (int round = 0; round < s->rounds; round++) {
		if (!partitioned_round(&j, rank, round, &rnd))
			continue;
		ksft_print_msg("rank %u: round %d of %d\n", rank, round, s->rounds);
		return 1;
	}
	CHECK_EQ(partitioned_close(&j), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static void many_rounds(const struct series *s)
{
	uint64_t start = testlib_now_ms();
	int bad;

	swingcoll_unique_id(&id);
	bad = testlib_run_ranks(2, series, (void *)s);
	ksft_test_result(!bad, "%d rounds of one request, %d partitions, 2 ranks, %d ms", s->rounds,
			 s->parts, (int)(testlib_now_ms() - start));
}

int main(void)
{
	seed = testlib_env_seed("COLL_PARTITIONED_SEED");
	testlib_require_device();
	ksft_print_header();
	ksft_set_plan(ARRAY_SIZE(shapes) + ARRAY_SIZE(many));
	ksft_print_msg("COLL_PARTITIONED_SEED=%u\n", seed);
	for (unsigned int k = 0; k < ARRAY_SIZE(shapes); k++)
		each_algo(&shapes[k]);
	for (unsigned int k = 0; k < ARRAY_SIZE(many); k++)
		many_rounds(&many[k]);
	ksft_finished();
}
