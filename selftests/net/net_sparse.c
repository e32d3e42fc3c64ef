// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sparse allreduces between nodes: every mode gives the bytes of the dense one, by the automatic choice of algorithms
 * and, with one rank on each node, by a ring, where the bytes that each node sends are counted, too: they are at most
 * 1.05 of the model (index and values of the union, as a ring moves them) and 4 KiB more. Then every mode and lists, by
 * every algorithm, for every kind of overlap, against sums that each rank computes itself. Runs on every node of a
 * cluster at once.
 *
 * SWC_TEST_SHORT=1: shorter vectors, but for one case; all pairs of algorithm, mode and overlap instead of all
 * combinations.
 */
#include <errno.h>
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

/* ------------------------------------------------------------------ by every algorithm */

#define ROW 16

static const char *const kinds[] = { "pack", "sketch", "pack-rows", "list" };
enum kind {
	PACK,
	SKETCH,
	ROWS,
	LIST,
	NKINDS
};

static const uint32_t mode_of[NKINDS] = {
	[PACK] = SWINGCOLL_SPARSE_MODE_PACK,
	[SKETCH] = SWINGCOLL_SPARSE_MODE_SKETCH,
	[ROWS] = SWINGCOLL_SPARSE_MODE_ROWS(ROW),
};

/* The last two are unions of nothing and of everything. */
static const struct sparse_input overlaps[] = {
	{ 11, 0.05, SPARSE_INDEPENDENT },
	{ 12, 0.1, SPARSE_IDENTICAL },
	{ 13, 0.1, SPARSE_DISJOINT },
	{ 14, 0.1, SPARSE_ROWS, .width = ROW },
	{ 15, 0.1, SPARSE_MIXED, .share = 0.5 },
	{ 16, 0, SPARSE_INDEPENDENT },
	{ 17, 1, SPARSE_INDEPENDENT },
};
#define NOVERLAPS ARRAY_SIZE(overlaps)

/* By rank 0, for its node process. */
static struct families {
	unsigned int algos, calls;
} * families;

static void sum_of(const struct sparse_input *in, int32_t *sum)
{
	memset(sum, 0, count * 4);
	for (int r = 0; r < layout.nranks; r++)
		for (size_t i = 0; i < count; i++)
			if (sparse_is_set(in, r, i))
				sum[i] = (int32_t)((uint32_t)sum[i] + sparse_int(in, r, i));
}

/* Of this rank's elements that are not zero, to all of recv. */
static int call_list(const int32_t *send, int32_t *recv, struct swingcoll_comm *comm)
{
	struct swingcoll_sparse_list list = { 0 }, result;
	int32_t *values = malloc(count * 4);
	int ret;

	list.row = malloc(count * 8);
	list.values = values;
	for (size_t i = 0; i < count; i++)
		if (send[i]) {
			list.row[list.n] = i;
			values[list.n++] = send[i];
		}
	ret = swingcoll_sparse_allreduce_list(&list, count, 1, SWINGCOLL_I32, SWINGCOLL_SUM, comm,
					      &result);
	memset(recv, 0, count * 4);
	for (size_t k = 0; !ret && k < result.n; k++)
		recv[result.row[k]] = ((int32_t *)result.values)[k];
	swingcoll_sparse_list_free(&list);
	swingcoll_sparse_list_free(&result);
	return ret;
}

/* One kind of call with one kind of overlap. A sketch has a table from the second call on. */
static int one_family(enum kind kind, unsigned int overlap, struct swingcoll_comm *comm)
{
	/* This rank's vectors and the sums, each computed once. */
	static struct {
		int32_t *send, *want;
	} known[NOVERLAPS];
	const struct sparse_input *in = &overlaps[overlap];
	int32_t *send, *recv, *want;
	int ret = 0;

	count = 3000 + 1000 * in->seed;
	if (!known[overlap].send) {
		known[overlap].send = malloc(count * 4);
		known[overlap].want = malloc(count * 4);
		fill(in, known[overlap].send);
		sum_of(in, known[overlap].want);
	}
	send = known[overlap].send;
	want = known[overlap].want;
	recv = malloc(count * 4);
	for (int i = 0; !ret && i < (kind == SKETCH ? 2 : 1); i++) {
		memset(recv, 0xa5, count * 4);
		ret = kind == LIST ? call_list(send, recv, comm)
				   : swingcoll_sparse_allreduce(send, recv, count, SWINGCOLL_I32,
								SWINGCOLL_SUM, mode_of[kind], comm);
		if (!ret && memcmp(recv, want, count * 4))
			ret = -EBADMSG;
	}
	free(recv);
	return ret;
}

static int one_algo(unsigned int a, struct pairs *pairs, struct swingcoll_comm *comm)
{
	for (unsigned int i = 0; i < NKINDS * NOVERLAPS; i++) {
		const unsigned int level[] = { a, i % NKINDS, i % NOVERLAPS };
		int ret;

		if (!pairs_due(pairs, level))
			continue;
		ret = one_family(i % NKINDS, i % NOVERLAPS, comm);
		if (ret) {
			ksft_print_msg("rank %d: %s, %s, overlap %zu: %s\n", boot->rank,
				       swingcoll_algo_name(a), kinds[i % NKINDS], i % NOVERLAPS,
				       swingcoll_strerror(ret));
			return 1;
		}
		pairs_cover(pairs, level);
	}
	return 0;
}

/*
 * In the short form, a ring and what has two channels and as many as a 2D torus has ports: coll_sparse has every algorithm
 * on one node, and net_coll has them over the network.
 */
static bool is_left(const char *algo)
{
	static const char *const some[] = { "ring", "ring2", "bucket" };

	for (unsigned int i = 0; i < ARRAY_SIZE(some); i++)
		if (!strcmp(algo, some[i]))
			return false;
	return pairs_short();
}

static int every_algo(uint32_t i, void *arg)
{
	int rank = net_layout_rank(&layout, i);
	struct swingcoll_comm_opts opts = { .flags = SWINGCOLL_ALLOW_REORDER,
					    .timeout_ms = TESTLIB_EVENT_MS };
	struct pairs pairs;

	pairs_init(&pairs, 3);
	net_set_rank_env(&layout, rank, *(unsigned int *)arg);
	CHECK_EQ(swingcoll_bootstrap_auto(&boot), 0);
	for (unsigned int a = 0; (opts.algo = swingcoll_algo_name(a)); a++) {
		struct swingcoll_comm *comm;
		uint64_t probe = 0;
		int ret;

		if (is_left(opts.algo))
			continue;
		CHECK_EQ(swingcoll_comm_create_from(&comm, boot, &opts), 0);
		/* Some have no allreduce, or not for these ranks. */
		ret = swingcoll_allreduce(&probe, &probe, 1, SWINGCOLL_U64, SWINGCOLL_BOR, comm);
		CHECK(!ret || ret == -EOPNOTSUPP);
		CHECK_EQ(ret ? 0 : one_algo(a, &pairs, comm), 0);
		CHECK_EQ(swingcoll_comm_destroy(comm), 0);
		if (!rank)
			families->algos += !ret;
	}
	swingcoll_bootstrap_free(boot);
	if (!rank)
		families->calls = pairs.run;
	return 0;
}

/* ------------------------------------------------------------------ in the code of exponents */

/* Small whole numbers as bf16, whose sums are exact. */
static uint16_t bf16(int small)
{
	float f = small;
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return bits >> 16;
}

static int small_number(int rank, size_t i)
{
	return (int)(sparse_hash(&overlaps[0], 3, rank, i) % 15) - 7;
}

/* The first three calls that are not skipped are dense, the next three coded. All give the same sums. */
static int coded(uint32_t i, void *arg)
{
	int rank = net_layout_rank(&layout, i), seen[2] = { 0, 0 };
	struct swingcoll_comm_opts opts = { .timeout_ms = TESTLIB_EVENT_MS };
	struct swingcoll_sparse_result result;
	struct swingcoll_comm *comm;
	uint16_t *send, *recv, *want;
	uint64_t sent;

	count = (1 << 17) + 77;
	send = malloc(count * 2);
	recv = malloc(count * 2);
	want = malloc(count * 2);
	for (size_t k = 0; k < count; k++) {
		int sum = 0;

		for (int r = 0; r < layout.nranks; r++)
			sum += small_number(r, k);
		want[k] = bf16(sum);
		send[k] = bf16(small_number(rank, k));
	}
	net_set_rank_env(&layout, rank, *(unsigned int *)arg);
	CHECK_EQ(swingcoll_bootstrap_auto(&boot), 0);
	CHECK_EQ(swingcoll_comm_create_from(&comm, boot, &opts), 0);
	for (int call = 0; call < 6; call++) {
		memset(recv, 0xa5, count * 2);
		CHECK_EQ(meet(), 0);
		sent = testlib_stat(SWC_STAT_BYTES_SENT);
		CHECK_EQ(meet(), 0);
		CHECK_EQ(swingcoll_sparse_allreduce(send, recv, count, SWINGCOLL_BF16,
						    SWINGCOLL_SUM, SWINGCOLL_SPARSE_MODE_CODED,
						    comm),
			 0);
		CHECK_EQ(meet(), 0);
		sent = testlib_stat(SWC_STAT_BYTES_SENT) - sent;
		CHECK_EQ(swingcoll_sparse_last(comm, &result), 0);
		CHECK(!memcmp(recv, want, count * 2));
		seen[result.mode == SWINGCOLL_SPARSE_MODE_CODED]++;
		if (!rank)
			ksft_print_msg("%s: %llu bytes of %zu\n",
				       swingcoll_sparse_name(result.mode), (unsigned long long)sent,
				       count * 2);
	}
	CHECK_EQ(seen[0], 3);
	CHECK_EQ(seen[1], 3);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	swingcoll_bootstrap_free(boot);
	free(send);
	free(recv);
	free(want);
	return 0;
}

/* One rank on each node. Returns whether any of them failed. */
static bool run_one(testlib_rank_fn fn, unsigned int step)
{
	pid_t pid;

	net_layout(&layout, 1, 1);
	testlib_fork_ranks(&pid, 1, fn, &step);
	return net_any(testlib_wait_ranks_ms(&pid, 1, ALL_MS));
}

int main(void)
{
	bool bad = false;

	net_init();
	if (!net_node)
		ksft_set_plan(NWAYS * NCASES + 3);
	families = testlib_shared_alloc(sizeof(*families));
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
	bad = bad || run_one(every_algo, NWAYS);
	if (!net_node)
		ksft_test_result(!bad && families->algos > 2,
				 "%d ranks: %u sparse allreduces by %u algorithms", layout.nranks,
				 families->calls, families->algos);
	bad = bad || run_one(coded, NWAYS + 1);
	if (!net_node)
		ksft_test_result(!bad, "%d ranks: dense vectors of bf16 in code", layout.nranks);
	bad = net_any(testlib_wait_released(0)) || bad;
	if (net_node)
		return bad;
	ksft_test_result(!bad, "everything is released");
	ksft_finished();
}
