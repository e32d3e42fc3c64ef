// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every algorithm on topologies of up to 16 ranks, all of them processes of this node: right sums, in place and out of
 * place, for vectors that the blocks do not divide and for fewer elements than blocks. Sums of random floats have the
 * same bits on all ranks, or the algorithm refuses, unless the caller allows reordering. SWC_TEST_SHORT=1: all pairs of
 * algorithm, topology, collective and size instead of all combinations, and of topologies that are alike
 * each algorithm on one.
 */
#include <errno.h>
#include <stdlib.h>

#include "coll.h"
#include "pairs.h"

#define MAX_RANKS 16
#define MAX_ALGOS 32
#define NCOLLS (SWINGCOLL_SCATTER + 1)
#define FLOATS 5003
#define SHAPE_MS 600000 /* all algorithms on one topology */

struct shape {
	const char *topo;
	uint32_t nranks;
	unsigned int number, of; /* of those that are alike */
};

static const struct shape shapes[] = {
	{ "ring:6", 6, 0, 3 },	    { "ring:7", 7, 1, 3 },
	{ "ring:16", 16, 0, 1 },    { "torus:4x4", 16, 0, 2 },
	{ "torus:8x2", 16, 1, 2 },  { "torus:3x5", 15, 0, 3 },
	{ "torus:2x2x2", 8, 0, 1 }, { "torus:6x2@8Gbps/2Gbps", 12, 0, 1 },
	{ "torus:5x3", 15, 1, 3 },  { "switch:11", 11, 0, 1 },
	{ "mesh:3x4", 12, 0, 1 },   { "torus:2x2*3", 12, 0, 2 },
	{ "ring:3*4", 12, 1, 2 },   { "switch:3*2,1,4", 7, 0, 1 },
	{ "ring:10", 10, 2, 3 },    { "torus:3x3", 9, 2, 3 },
};

/* Sizes, each of them in place and out of place. */
static const size_t counts[] = { 1, 17, 1021 };
#define NSIZES (2 * ARRAY_SIZE(counts))

/* Of one algorithm: by rank 0 over all shapes, and the bits of every rank on one shape. */
struct result {
	unsigned int done, refused; /* collectives */
	unsigned int exact;	    /* shapes on which it promises the same bits */
	unsigned int same_bits;	    /* ranks with a result on this shape */
	unsigned char bits[MAX_RANKS][FLOATS * 4];
};

struct outcome {
	struct pairs pairs;
	struct result result[MAX_ALGOS];
};

static struct swingcoll_id id;
static const struct shape *shape;
static struct pairs pairs;

static int create(struct swingcoll_comm **comm, unsigned int a, uint32_t rank, uint32_t flags)
{
	struct swingcoll_comm_opts opts = { .algo = swingcoll_algo_name(a),
					    .topo = shape->topo,
					    .timeout_ms = TESTLIB_EVENT_MS,
					    .flags = flags };
	struct swingcoll_id own = id;

	own.bytes[0] += a;
	own.bytes[1] += flags;
	return swingcoll_comm_create(comm, &own, shape->nranks, rank, &opts);
}

static int sums(struct swingcoll_comm *comm, unsigned int a, struct result *r)
{
	static uint64_t mem[2 * MAX_RANKS * 1021 + 64];
	bool skip[NCOLLS] = { false };

	/* Both change with every step. */
	for (unsigned int i = 0; i < NCOLLS * NSIZES; i++) {
		unsigned int coll = i % NCOLLS, size = (coll + i / NCOLLS) % NSIZES;
		const unsigned int level[] = { a, shape - shapes, coll, size };
		struct coll_case c = { .coll = coll,
				       .dtype = SWINGCOLL_I64,
				       .count = counts[size / 2],
				       .in_place = size & 1 };
		int ret;

		if (skip[coll] || !pairs_due(&pairs, level))
			continue;
		if (coll == SWINGCOLL_BARRIER)
			c.count = 0;
		if (coll_has_root(coll))
			c.root = shape->nranks - 1;
		ret = coll_run(&c, mem, comm, i);
		CHECK(!ret || ret == -EOPNOTSUPP);
		r->done += !ret;
		r->refused += !!ret;
		/* Not possible; or a substitute, which is tested under its own name. */
		skip[coll] = ret || strcmp(swingcoll_comm_algo(comm), swingcoll_algo_name(a));
		if (!skip[coll])
			pairs_cover(&pairs, level);
	}
	return 0;
}

/*
 * A sum of random floats without leave to reorder; the parent compares the results of the ranks. *exact: the algorithm
 * promises the same bits.
 */
static int bits(struct swingcoll_comm *comm, uint32_t rank, struct result *shared, bool *exact)
{
	static float in[FLOATS], out[FLOATS];
	unsigned int seed = rank + 1;
	static bool filled;
	int ret;

	for (int i = 0; i < FLOATS && !filled; i++)
		in[i] = (float)rand_r(&seed) / (1 + rand_r(&seed) % 1000);
	filled = true;
	ret = swingcoll_allreduce(in, out, FLOATS, SWINGCOLL_F32, SWINGCOLL_SUM, comm);
	CHECK(!ret || ret == -EOPNOTSUPP);
	memcpy(shared->bits[rank], out, sizeof(out));
	*exact = !ret;
	if (!ret)
		testlib_count(&shared->same_bits);
	return 0;
}

static int one_algo(unsigned int a, uint32_t rank, struct result *shared)
{
	struct swingcoll_comm *comm;
	struct result mine = { 0 };
	bool exact;

	CHECK_EQ(create(&comm, a, rank, 0), 0);
	CHECK_EQ(bits(comm, rank, shared, &exact), 0);
	/* The short form has one communicator for both, if leave to reorder changes nothing. */
	if (!exact || !pairs_short()) {
		CHECK_EQ(swingcoll_comm_destroy(comm), 0);
		CHECK_EQ(create(&comm, a, rank, SWINGCOLL_ALLOW_REORDER), 0);
	}
	CHECK_EQ(sums(comm, a, &mine), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	if (!rank) {
		shared->done += mine.done;
		shared->refused += mine.refused;
	}
	return 0;
}

/* Is an algorithm to be run on this shape? */
static bool runs_here(unsigned int a)
{
	return !pairs_short() || a % shape->of == shape->number;
}

static int all_algos(uint32_t rank, void *arg)
{
	struct outcome *out = arg;

	for (unsigned int a = 0; swingcoll_algo_name(a); a++) {
		if (!runs_here(a) || !one_algo(a, rank, &out->result[a]))
			continue;
		ksft_print_msg("rank %u: %s on %s\n", rank, swingcoll_algo_name(a), shape->topo);
		return 1;
	}
	if (!rank)
		out->pairs = pairs;
	return 0;
}

/* All ranks have a result, with the same bits, or none has. */
static bool same_bits(const struct result *r)
{
	if (r->same_bits && r->same_bits != shape->nranks)
		return false;
	for (uint32_t k = 1; k < shape->nranks; k++)
		if (memcmp(r->bits[k], r->bits[0], sizeof(r->bits[0])))
			return false;
	return true;
}

static void one_shape(struct outcome *out, unsigned int nalgos)
{
	unsigned int exact = 0, here = 0;
	pid_t pid[MAX_RANKS];
	bool same = true;
	int bad;

	for (unsigned int a = 0; a < nalgos; a++) {
		out->result[a].same_bits = 0;
		memset(out->result[a].bits, 0, sizeof(out->result[a].bits));
	}
	swingcoll_unique_id(&id);
	testlib_fork_ranks(pid, shape->nranks, all_algos, out);
	bad = testlib_wait_ranks_ms(pid, shape->nranks, SHAPE_MS);
	if (!bad)
		pairs = out->pairs;
	for (unsigned int a = 0; a < nalgos; a++)
		here += runs_here(a);
	ksft_test_result(!bad, "%s: %u algorithms", shape->topo, here);
	for (unsigned int a = 0; a < nalgos; a++) {
		struct result *r = &out->result[a];

		if (!same_bits(r)) {
			ksft_print_msg("%s on %s: bits differ\n", swingcoll_algo_name(a),
				       shape->topo);
			same = false;
		}
		exact += !!r->same_bits;
		r->exact += !!r->same_bits;
	}
	ksft_test_result(!bad && same,
			 "%s: same bits on all ranks by %u algorithms, %u refuse to promise it",
			 shape->topo, exact, here - exact);
}

int main(void)
{
	unsigned int nalgos = 0;
	struct outcome *out;

	ksft_print_header();
	testlib_require_device();
	out = testlib_shared_alloc(sizeof(*out));
	while (swingcoll_algo_name(nalgos))
		nalgos++;
	ksft_set_plan(2 * ARRAY_SIZE(shapes) + nalgos);
	pairs_init(&pairs, 4);
	for (shape = shapes; shape < shapes + ARRAY_SIZE(shapes); shape++)
		one_shape(out, nalgos);
	for (unsigned int a = 0; a < nalgos; a++) {
		const struct result *r = &out->result[a];

		ksft_test_result(
			r->done,
			"%s: %u collectives right, %u not possible; same bits on %u shapes",
			swingcoll_algo_name(a), r->done, r->refused, r->exact);
	}
	ksft_print_msg("%u combinations run, %u left out\n", pairs.run, pairs.skipped);
	ksft_finished();
}
