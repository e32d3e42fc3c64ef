// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every algorithm on topologies of up to 16 ranks, which all are processes of this machine: right sums, in
 * place and not, of vectors that the blocks do not divide, and of fewer elements than blocks; and for random
 * floats the same bits on all ranks, or a clear refusal if the algorithm cannot promise them.
 */
#include <errno.h>
#include <stdlib.h>

#include "coll.h"

#define MAX_RANKS 16
#define FLOATS 5003

struct shape {
	const char *topo;
	uint32_t nranks;
};

static const struct shape shapes[] = {
	{ "ring:6", 6 },     { "ring:7", 7 },	      { "ring:16", 16 },    { "torus:4x4", 16 },
	{ "torus:8x2", 16 }, { "torus:3x5", 15 },     { "torus:2x2x2", 8 }, { "torus:6x2", 12 },
	{ "torus:5x3", 15 }, { "switch:11", 11 },     { "mesh:3x4", 12 },   { "torus:2x2*3", 12 },
	{ "ring:3*4", 12 },  { "switch:3*2,1,4", 7 },
};

struct result {
	unsigned int done;
	unsigned int refused;
	unsigned char bits[MAX_RANKS][FLOATS * 4];
};

static struct swingcoll_id id;
static const struct shape *shape;
static const char *algo;
static struct result *result;

/* 0: right; 1: the algorithm does not do this; negative: failed. */
static int one(struct swingcoll_comm *comm, int coll, size_t count, bool in_place, int dtype)
{
	static uint64_t mem[2 * MAX_RANKS * 1021 + 64];
	struct coll_case c = { .coll = coll, .dtype = dtype, .count = count, .in_place = in_place };
	int ret;

	if (coll == SWINGCOLL_BROADCAST || coll == SWINGCOLL_REDUCE)
		c.root = shape->nranks - 1;
	ret = coll_run(&c, mem, comm, count);
	return ret == -EOPNOTSUPP ? 1 : ret;
}

static int sums(uint32_t rank, void *arg)
{
	static const size_t counts[] = { 1, 17, 1021 };
	struct swingcoll_comm_opts opts = { .algo = algo,
					    .topo = shape->topo,
					    .timeout_ms = 30000,
					    .flags = SWINGCOLL_ALLOW_REORDER };
	struct swingcoll_comm *comm;
	unsigned int done = 0, refused = 0;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, shape->nranks, rank, &opts), 0);
	for (int coll = 0; coll <= SWINGCOLL_ALLTOALL; coll++)
		for (unsigned int k = 0; k < 2 * ARRAY_SIZE(counts); k++) {
			size_t n = coll == SWINGCOLL_BARRIER ? 0 : counts[k / 2];
			int ret = one(comm, coll, n, k & 1, SWINGCOLL_I64);

			CHECK(ret >= 0);
			done += !ret;
			refused += ret;
			/* Not possible, or a substitute, which has its own turn. */
			if (ret || strcmp(swingcoll_comm_algo(comm), algo))
				break;
		}
	if (!rank) {
		result->done = done;
		result->refused = refused;
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Random floats; what each rank got goes to the parent. Without leave to reorder. */
static int bits(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .algo = algo,
					    .topo = shape->topo,
					    .timeout_ms = 30000 };
	unsigned int seed = rank + 1;
	struct swingcoll_comm *comm;
	static float in[FLOATS], out[FLOATS];
	int ret;

	(void)arg;
	for (int i = 0; i < FLOATS; i++)
		in[i] = (float)rand_r(&seed) / (1 + rand_r(&seed) % 1000);
	CHECK_EQ(swingcoll_comm_create(&comm, &id, shape->nranks, rank, &opts), 0);
	ret = swingcoll_allreduce(in, out, FLOATS, SWINGCOLL_F32, SWINGCOLL_SUM, comm);
	CHECK(!ret || ret == -EOPNOTSUPP);
	memcpy(result->bits[rank], out, sizeof(out));
	if (!ret)
		__atomic_fetch_add(&result->done, 1, __ATOMIC_RELAXED);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static bool same_bits(void)
{
	for (uint32_t r = 1; r < shape->nranks; r++)
		if (memcmp(result->bits[r], result->bits[0], sizeof(result->bits[0])))
			return false;
	return true;
}

int main(void)
{
	unsigned int nalgos = 0;

	ksft_print_header();
	swct_need_device();
	result = swct_shared(sizeof(*result));
	while (swingcoll_algo_name(nalgos))
		nalgos++;
	ksft_set_plan(2 * nalgos);
	for (unsigned int a = 0; a < nalgos; a++) {
		unsigned int done = 0, refused = 0, exact = 0, inexact = 0;
		bool good = true, same = true;

		algo = swingcoll_algo_name(a);
		for (unsigned int s = 0; s < ARRAY_SIZE(shapes); s++) {
			shape = &shapes[s];
			swingcoll_unique_id(&id);
			memset(result, 0, sizeof(*result));
			if (swct_ranks(shape->nranks, 120000, sums, NULL)) {
				ksft_print_msg("%s on %s\n", algo, shape->topo);
				good = false;
			}
			done += result->done;
			refused += result->refused;

			swingcoll_unique_id(&id);
			memset(result, 0, sizeof(*result));
			if (swct_ranks(shape->nranks, 120000, bits, NULL) ||
			    (result->done && result->done != shape->nranks) ||
			    (result->done && !same_bits())) {
				ksft_print_msg("%s on %s: bits differ\n", algo, shape->topo);
				same = false;
			}
			exact += !!result->done;
			inexact += !result->done;
		}
		ksft_test_result(good && done, "%s: %u collectives right, %u not for it", algo,
				 done, refused);
		ksft_test_result(same, "%s: same bits on all ranks of %u shapes, refused on %u",
				 algo, exact, inexact);
	}
	ksft_finished();
}
