// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gather and scatter with a count for each rank: by every algorithm that has them, from every root, for shards that
 * grow from rank to rank, of which only one has elements, or some are empty; blocking and not, in place and not; counts
 * that differ between ranks; counts that cannot be; plans from a file. SWC_TEST_SHORT=1: fewer roots and
 * sizes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "uneven.h"

#define MAX_RANKS 9

static const struct {
	const char *algo, *topo;
	uint32_t nranks;
} teams[] = {
	{ NULL, NULL, 1 },	    { NULL, NULL, 4 },		{ "direct1", NULL, 5 },
	{ "direct2", NULL, 3 },	    { "tree", NULL, 9 },	{ "linear", NULL, 6 },
	{ "bine", NULL, 7 },	    { "bine", "ring:8", 8 },	{ "bine", "ring:9", 9 },
	{ "bine", "torus:3x3", 9 }, { "bine", "torus:4x2", 8 }, { "tree", "ring:7", 7 },
	{ "linear", "ring:3", 3 },
};
static unsigned int team;
static struct swingcoll_id id;
static bool is_short;

static int create(struct swingcoll_comm **comm, uint32_t rank)
{
	struct swingcoll_comm_opts opts = { .algo = teams[team].algo,
					    .topo = teams[team].topo,
					    .timeout_ms = TESTLIB_EVENT_MS };

	return swingcoll_comm_create(comm, &id, teams[team].nranks, rank, &opts);
}

static int all_roots(uint32_t rank, void *arg)
{
	static const size_t counts[] = { 3, 1021, 70001 };
	unsigned int k = 0, sizes = is_short ? 2 : ARRAY_SIZE(counts);
	struct swingcoll_comm *comm;

	(void)arg;
	CHECK_EQ(create(&comm, rank), 0);
	for (unsigned int i = 0; i < sizes; i++)
		for (int kind = 0; kind < UNEVEN_KINDS; kind++)
			for (int scatter = 0; scatter < 2; scatter++)
				for (uint32_t root = 0; root < teams[team].nranks; root++, k++) {
					struct uneven_case c = { .scatter = scatter,
								 .kind = kind,
								 .root = root,
								 .count = counts[i],
								 .in_place = k & 1,
								 .start = k & 2 };

					if (is_short && (root + kind + i) % 3)
						continue;
					CHECK_EQ(uneven_run(&c, comm, k), 0);
				}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* All ranks must pass the same counts. */
static int differ(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm;
	static uint32_t v[64];
	uint64_t counts[] = { 4, 5, rank == 1 ? 7 : 6 };
	char text[256];

	(void)arg;
	CHECK_EQ(create(&comm, rank), 0);
	CHECK_EQ(swingcoll_gatherv(v, v + 20, counts, SWINGCOLL_U32, 0, comm), -EPROTO);
	/* As many elements, otherwise distributed. */
	counts[0] = rank == 1 ? 5 : 4;
	counts[1] = rank == 1 ? 4 : 5;
	counts[2] = 6;
	CHECK_EQ(swingcoll_gatherv(v, v + 20, counts, SWINGCOLL_U32, 0, comm), -EPROTO);
	CHECK_EQ(swingcoll_comm_error(comm, text, sizeof(text), NULL), -EPROTO);
	if (!strstr(text, "with other counts of the ranks")) {
		ksft_print_msg("text: %s\n", text);
		return 1;
	}
	/* One rank passes the same numbers as one count. */
	counts[0] = counts[1] = counts[2] = 5;
	if (rank == 1)
		CHECK_EQ(swingcoll_gather(v, NULL, 5, SWINGCOLL_U32, 0, comm), -EPROTO);
	else
		CHECK_EQ(swingcoll_gatherv(v, v + 20, counts, SWINGCOLL_U32, 0, comm), -EPROTO);
	CHECK_EQ(swingcoll_gatherv(v, v + 20, counts, SWINGCOLL_U32, 0, comm), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Rank 1 passes on what rank 2 has, both from where the blocks of ranks 0 and 1 would be. */
static const char equal_shards[] = "swingcoll-plans 1\nname relay\ncollective gather\nranks 3\n"
				   "root 0\nshards 3\nblocks 1\n"
				   "rank 0\nwindow send 0+1\nwindow recv 0+3\nchannel\n"
				   "net\nrecv 1 recv 1+2 final\n"
				   "local\nfrom 0 send 0+1\nto 0 recv 0+1 final\n"
				   "rank 1\nwindow send 1+1\nwindow scratch 0+2\nchannel\n"
				   "local\nfrom 1 send 1+1\nto 1 scratch 0+1\n"
				   "net\nrecv 2 scratch 1+1\n"
				   "net\nsend 0 scratch 0+2 stored\n"
				   "rank 2\nwindow send 2+1\nchannel\n"
				   "net\nsend 1 send 2+1 stored\nend\n";
static char plan_file[] = "/tmp/coll_gatherv.XXXXXX";

/* A plan file for shards of one size is for no other shards: all ranks are told so, and may go on. */
static int from_file(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = TESTLIB_EVENT_MS };
	const uint64_t counts[] = { 5, 2, 7 };
	struct swingcoll_comm *comm;
	uint32_t v[21] = { 0 };
	char text[256], algo[64];

	(void)arg;
	snprintf(algo, sizeof(algo), "file:%s", plan_file);
	opts.algo = algo;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, 3, rank, &opts), 0);
	CHECK_EQ(swingcoll_gatherv(v, v + 7, counts, SWINGCOLL_U32, 0, comm), -EOPNOTSUPP);
	CHECK_EQ(swingcoll_comm_error(comm, text, sizeof(text), NULL), -EOPNOTSUPP);
	CHECK(strstr(
		text,
		"rank 1 has block 1 in the place of block 0, so all shards must have one size"));
	for (int i = 0; i < 7; i++)
		v[i] = 10 * rank + i;
	CHECK_EQ(swingcoll_gather(v, v + 7, 3, SWINGCOLL_U32, 0, comm), 0);
	for (uint32_t i = 0; !rank && i < 9; i++)
		CHECK_EQ(v[7 + i], 10 * (i / 3) + i % 3);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static bool write_plan_file(void)
{
	int fd = mkstemp(plan_file);
	bool good = fd >= 0 && write(fd, equal_shards, sizeof(equal_shards) - 1) ==
				       (ssize_t)sizeof(equal_shards) - 1;

	if (fd >= 0)
		close(fd);
	return good;
}

/* Calls that are refused, on one rank. */
static int arguments(uint32_t rank, void *arg)
{
	const uint64_t few[] = { 4 }, many[] = { 1ull << 60 };
	static uint32_t v[64];
	struct swingcoll_comm *comm;
	struct swingcoll_req *req;
	char text[256];

	(void)arg;
	CHECK_EQ(create(&comm, rank), 0);
	CHECK_EQ(swingcoll_gatherv(v, v + 20, NULL, SWINGCOLL_U32, 0, comm), -EINVAL);
	CHECK_EQ(swingcoll_comm_error(comm, text, sizeof(text), NULL), -EINVAL);
	CHECK(strstr(text, "counts is NULL"));
	CHECK_EQ(swingcoll_iscatterv(v, v + 20, NULL, SWINGCOLL_U32, 0, comm, &req), -EINVAL);
	CHECK_EQ(swingcoll_scatterv(v, v + 20, few, SWINGCOLL_U32, 1, comm), -EINVAL);
	CHECK_EQ(swingcoll_scatterv(v, v + 20, many, SWINGCOLL_U32, 0, comm), -EOVERFLOW);
	CHECK_EQ(swingcoll_comm_error(comm, text, sizeof(text), NULL), -EOVERFLOW);
	CHECK(strstr(text, "counts are too large"));
	CHECK_EQ(swingcoll_gatherv(v, v + 1, few, SWINGCOLL_U32, 0, comm), -EINVAL);
	CHECK_EQ(swingcoll_gatherv(NULL, v, few, SWINGCOLL_U32, 0, comm), -EINVAL);
	CHECK_EQ(swingcoll_gatherv(v, v, few, SWINGCOLL_U32, 0, comm), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static bool run(unsigned int t, uint32_t nranks, int (*fn)(uint32_t rank, void *arg))
{
	pid_t pid[MAX_RANKS];

	team = t;
	swingcoll_unique_id(&id);
	testlib_fork_ranks(pid, nranks, fn, NULL);
	return !testlib_wait_ranks_ms(pid, nranks, 10 * TESTLIB_EVENT_MS);
}

int main(void)
{
	ksft_print_header();
	testlib_require_device();
	is_short = getenv("SWC_TEST_SHORT");
	ksft_set_plan(ARRAY_SIZE(teams) + 3);
	for (unsigned int t = 0; t < ARRAY_SIZE(teams); t++)
		ksft_test_result(run(t, teams[t].nranks, all_roots), "%s, %u ranks%s%s",
				 teams[t].algo ? teams[t].algo : "auto", teams[t].nranks,
				 teams[t].topo ? ", " : "", teams[t].topo ? teams[t].topo : "");
	ksft_test_result(run(12, 3, differ), "counts that differ between ranks");
	ksft_test_result(run(0, 1, arguments), "counts that cannot be");
	ksft_test_result(write_plan_file() && run(12, 3, from_file),
			 "plans of a file that are for equal shards only");
	unlink(plan_file);
	ksft_finished();
}
