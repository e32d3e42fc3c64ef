// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sparse allreduces between nodes: every mode gives the bytes of the dense one, by the automatic choice of algorithms
 * and, with one rank on each node, by a ring, where the bytes that each node sends are counted, too: they are at most
 * 1.05 of the model (index and values of the union, as a ring moves them) and 4 KiB more. Runs on every node of a
 * cluster at once.
 *
 * SWC_TEST_SHORT=1: shorter vectors, but for one case.
 */
#include <stdlib.h>
#include <string.h>

#include <swingcoll_sparse.h>

#include "../../tools/common/sparse_input.h"
#include "net.h"
#include "pairs.h"

#define ALL_MS 600000
#define WIDTH 32
/* Elements: two parts, and what the automatic choice does not leave to the dense allreduce. */
#define LONG (1 << 20)
#define SHORT (1 << 16)
/* Cells for each element in the table of a sketch. */
#define SKETCH_CELLS (1 / 0.75)
#define MOST(model) (1.05 * (model) + 4096)

static const struct {
	const char *name;
	uint32_t mode;
	struct sparse_input in;
	bool in_parts; /* so long that its index and values go in parts, on the ring */
} cases[] = {
	{ "pack, 0.1 %", SWINGCOLL_SPARSE_MODE_PACK, { 1, 0.001, SPARSE_INDEPENDENT } },
	{ "pack, 5 %", SWINGCOLL_SPARSE_MODE_PACK, { 2, 0.05, SPARSE_INDEPENDENT }, true },
	{ "pack, 20 %, disjoint", SWINGCOLL_SPARSE_MODE_PACK, { 3, 0.2, SPARSE_DISJOINT } },
	{ "pack-rows, 10 %",
	  SWINGCOLL_SPARSE_MODE_ROWS(WIDTH),
	  { 4, 0.1, SPARSE_ROWS, .width = WIDTH } },
	{ "sketch, 1 %", SWINGCOLL_SPARSE_MODE_SKETCH, { 5, 0.01, SPARSE_INDEPENDENT } },
	{ "sketch, 10 %, identical", SWINGCOLL_SPARSE_MODE_SKETCH, { 6, 0.1, SPARSE_IDENTICAL } },
	{ "auto, 1 %", SWINGCOLL_SPARSE_MODE_AUTO, { 7, 0.01, SPARSE_INDEPENDENT } },
};
#define NCASES ARRAY_SIZE(cases)

static const struct way {
	const char *algo;
	int even, odd; /* ranks of each node */
	bool counted;
} ways[] = { { "ring", 1, 1, true }, { NULL, 2, 1, false } };
#define NWAYS ARRAY_SIZE(ways)

static struct net_layout layout;
static const struct way *way;
static struct swingcoll_bootstrap *boot;
static size_t count;
/* By rank 0, for its node process: whether a case was right on all ranks. */
static bool (*good)[NCASES];

/* This rank's vector. Returns how many elements the union of all ranks has. */
static uint64_t fill(const struct sparse_input *in, int32_t *v)
{
	uint64_t set = 0;

	memset(v, 0, count * 4);
	for (size_t i = 0; i < count; i++) {
		bool any = false;

		for (int r = 0; r < layout.nranks; r++)
			any |= sparse_is_set(in, r, i);
		set += any;
		if (any && sparse_is_set(in, boot->rank, i))
			v[i] = sparse_int(in, boot->rank, i);
	}
	return set;
}

/* Wait for all ranks without the module. */
static int meet(void)
{
	char mine = 0, all[NET_MAX_NODES * 2];

	return boot->allgather(boot->arg, &mine, all, 1);
}

/* One call: what this node sends for it. */
static int measure(unsigned int c, const int32_t *send, int32_t *recv, struct swingcoll_comm *comm,
		   uint64_t *sent)
{
	uint64_t before;

	CHECK_EQ(meet(), 0);
	before = testlib_stat(SWC_STAT_BYTES_SENT);
	CHECK_EQ(meet(), 0);
	CHECK_EQ(swingcoll_sparse_allreduce(send, recv, count, SWINGCOLL_I32, SWINGCOLL_SUM,
					    cases[c].mode, comm),
		 0);
	CHECK_EQ(meet(), 0);
	*sent = testlib_stat(SWC_STAT_BYTES_SENT) - before;
	return 0;
}

/* What a rank sends on a ring. */
static double model(unsigned int c, uint64_t set)
{
	uint32_t mode = cases[c].mode;
	double p = layout.nranks, bits = (double)count;
	double values = (double)set * 4;

	if (mode == SWINGCOLL_SPARSE_MODE_ROWS(WIDTH))
		bits /= WIDTH;
	if (mode == SWINGCOLL_SPARSE_MODE_SKETCH)
		values *= SKETCH_CELLS;
	return (bits / 8 + values) * 2 * (p - 1) / p;
}

/* The automatic choice may send the whole vector. */
static bool is_counted(unsigned int c)
{
	return way->counted && cases[c].mode != SWINGCOLL_SPARSE_MODE_AUTO;
}

static int run_case(unsigned int c, struct swingcoll_comm *comm, const char **why)
{
	int32_t *send = malloc(count * 4), *recv = malloc(count * 4), *want = malloc(count * 4);
	uint64_t set = fill(&cases[c].in, send), sent = 0;
	struct swingcoll_sparse_result result;
	/* The first sketch is as pack; the automatic choice tries both. */
	int calls = cases[c].mode == SWINGCOLL_SPARSE_MODE_SKETCH ? 2
		    : cases[c].mode == SWINGCOLL_SPARSE_MODE_AUTO ? 7
								  : 1;

	CHECK_EQ(swingcoll_allreduce(send, want, count, SWINGCOLL_I32, SWINGCOLL_SUM, comm), 0);
	for (int i = 0; i < calls && !*why; i++) {
		memset(recv, 0xa5, count * 4);
		CHECK_EQ(measure(c, send, recv, comm, &sent), 0);
		if (memcmp(recv, want, count * 4))
			*why = "not as dense";
	}
	CHECK_EQ(swingcoll_sparse_last(comm, &result), 0);
	if (!*why && result.mode != SWINGCOLL_SPARSE_MODE_DENSE && result.elements != set)
		*why = "another union";
	if (!*why && cases[c].mode != SWINGCOLL_SPARSE_MODE_AUTO &&
	    result.mode != (cases[c].mode & 15))
		*why = "another mode";
	if (is_counted(c)) {
		double ring = model(c, set);

		if (!boot->rank)
			ksft_print_msg("%s: %llu bytes, %.0f by the model\n", cases[c].name,
				       (unsigned long long)sent, ring);
		if (!*why && (double)sent > MOST(ring))
			*why = "more bytes than by the model";
		/* A counter that does not count proves nothing. */
		if (!*why && (double)sent < 0.9 * ring)
			*why = "fewer bytes than the model needs";
	}
	free(send);
	free(recv);
	free(want);
	return 0;
}

static int one_case(unsigned int c, struct swingcoll_comm *comm, const char **why)
{
	bool in_parts = cases[c].in_parts && way->counted;

	count = in_parts || !pairs_short() ? LONG : SHORT;
	return run_case(c, comm, why);
}

static int rank_fn(uint32_t i, void *arg)
{
	int rank = net_layout_rank(&layout, i);
	struct swingcoll_comm_opts opts = { .algo = way->algo, .timeout_ms = TESTLIB_EVENT_MS };
	struct swingcoll_comm *comm;

	net_set_rank_env(&layout, rank, *(unsigned int *)arg);
	CHECK_EQ(swingcoll_bootstrap_auto(&boot), 0);
	CHECK_EQ(swingcoll_comm_create_from(&comm, boot, &opts), 0);
	for (unsigned int c = 0; c < NCASES; c++) {
		char mine, all[NET_MAX_NODES * 2];
		const char *why = NULL;

		CHECK_EQ(one_case(c, comm, &why), 0);
		if (why)
			ksft_print_msg("rank %d: %s: %s\n", rank, cases[c].name, why);
		mine = !why;
		CHECK_EQ(boot->allgather(boot->arg, &mine, all, 1), 0);
		if (!rank)
			good[way - ways][c] = !memchr(all, 0, layout.nranks);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	swingcoll_bootstrap_free(boot);
	return 0;
}

int main(void)
{
	bool bad = false;

	net_init();
	if (!net_node)
		ksft_set_plan(NWAYS * NCASES + 1);
	good = testlib_shared_alloc(NWAYS * sizeof(*good));
	for (unsigned int w = 0; w < NWAYS; w++) {
		pid_t pid[2];

		way = &ways[w];
		net_layout(&layout, way->even, way->odd);
		if (!bad) {
			testlib_fork_ranks(pid, net_layout_local(&layout), rank_fn, &w);
			bad = net_any(
				testlib_wait_ranks_ms(pid, net_layout_local(&layout), ALL_MS));
		}
		for (unsigned int c = 0; !net_node && c < NCASES; c++)
			ksft_test_result(!bad && good[w][c], "%s, %d ranks, %s%s",
					 way->algo ? way->algo : "auto", layout.nranks,
					 cases[c].name, is_counted(c) ? ", bytes counted" : "");
	}
	bad = net_any(testlib_wait_released(0)) || bad;
	if (net_node)
		return bad;
	ksft_test_result(!bad, "everything is released");
	ksft_finished();
}
