// SPDX-License-Identifier: GPL-2.0-only
/*
 * Communicators with SWINGCOLL_EAGER: how far a rank may be ahead of others, mixed sequences of collectives whose
 * ranks are far apart, calls that do not match, a rank that dies or leaves, and ranks of which only one has the flag.
 * SWC_TEST_SHORT=1: fewer collectives.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "swingcoll.h"
#include "testlib.h"

#define MAX_RANKS 4
#define MAX_COUNT 3000

static struct swingcoll_id id;
static uint32_t nranks;
static unsigned int nops = 1500;
static unsigned int *done; /* shared */

static int create(struct swingcoll_comm **comm, uint32_t rank, uint32_t flags)
{
	struct swingcoll_comm_opts opts = { .flags = flags, .timeout_ms = TESTLIB_EVENT_MS };

	return swingcoll_comm_create(comm, &id, nranks, rank, &opts);
}

/* The root of broadcasts ends before the others begin; then they end the gathers before the root begins. */
static int ahead(uint32_t rank, void *arg)
{
	static const struct {
		size_t count;
		unsigned int n;
	} cases[] = { { 1, 64 }, { 28, 64 }, { 256, 16 } };
	uint32_t v[256], all[MAX_RANKS * 256];
	struct swingcoll_comm *comm;
	unsigned int meetings = 0;

	(void)arg;
	CHECK_EQ(create(&comm, rank, SWINGCOLL_EAGER), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		CHECK_EQ(swingcoll_barrier(comm), 0);
		meetings++;
		if (rank)
			CHECK(testlib_wait_count(done, meetings));
		for (uint32_t k = 0; k < cases[i].n; k++) {
			v[0] = v[cases[i].count - 1] = rank ? 0 : k + 1;
			CHECK_EQ(swingcoll_broadcast(v, v, cases[i].count, SWINGCOLL_U32, 0, comm),
				 0);
			CHECK_EQ(v[0], k + 1);
			CHECK_EQ(v[cases[i].count - 1], k + 1);
		}
		if (!rank)
			testlib_count(done);
		CHECK_EQ(swingcoll_barrier(comm), 0);
		meetings += nranks - 1;
		if (!rank)
			CHECK(testlib_wait_count(done, meetings));
		for (uint32_t k = 0; k < cases[i].n; k++) {
			v[0] = 1000 * rank + k;
			CHECK_EQ(swingcoll_gather(v, all, cases[i].count, SWINGCOLL_U32, 0, comm),
				 0);
			for (uint32_t r = 0; !rank && r < nranks; r++)
				CHECK_EQ(all[r * cases[i].count], 1000 * r + k);
		}
		if (rank)
			testlib_count(done);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static uint32_t mix(uint32_t z)
{
	z = (z ^ z >> 16) * 0x7feb352d;
	z = (z ^ z >> 15) * 0x846ca68b;
	return z ^ z >> 16;
}

static uint32_t element(unsigned int k, uint32_t rank, size_t i)
{
	return mix(mix(k) + (rank << 20) + (uint32_t)i);
}

/* What collective @k should have put into recv[i]; @root: where ranks differ. */
static uint32_t expected(enum swingcoll_coll coll, unsigned int k, uint32_t rank, uint32_t root,
			 size_t count, size_t i)
{
	uint32_t sum = 0;

	switch (coll) {
	case SWINGCOLL_BROADCAST:
		return element(k, root, i);
	case SWINGCOLL_SCATTER:
		return element(k, root, rank * count + i);
	case SWINGCOLL_GATHER:
		return element(k, (uint32_t)(i / count), i % count);
	case SWINGCOLL_ALLTOALL:
		return element(k, (uint32_t)(i / count), rank * count + i % count);
	default:
		for (uint32_t r = 0; r < nranks; r++)
			sum += element(k, r, i);
		return sum;
	}
}

static int run(struct swingcoll_comm *comm, enum swingcoll_coll coll, const uint32_t *send,
	       uint32_t *recv, size_t count, int root, bool blocking)
{
	struct swingcoll_req *req;
	int ret;

	if (!blocking) {
		do {
			ret = swingcoll_iallreduce(send, recv, count, SWINGCOLL_U32, SWINGCOLL_SUM,
						   comm, &req);
		} while (ret == -EAGAIN);
		return ret ? ret : swingcoll_wait(req, NULL);
	}
	switch (coll) {
	case SWINGCOLL_BROADCAST:
		return swingcoll_broadcast(send, recv, count, SWINGCOLL_U32, root, comm);
	case SWINGCOLL_SCATTER:
		return swingcoll_scatter(send, recv, count, SWINGCOLL_U32, root, comm);
	case SWINGCOLL_GATHER:
		return swingcoll_gather(send, recv, count, SWINGCOLL_U32, root, comm);
	case SWINGCOLL_REDUCE:
		return swingcoll_reduce(send, recv, count, SWINGCOLL_U32, SWINGCOLL_SUM, root,
					comm);
	case SWINGCOLL_ALLTOALL:
		return swingcoll_alltoall(send, recv, count, SWINGCOLL_U32, comm);
	default:
		return swingcoll_allreduce(send, recv, count, SWINGCOLL_U32, SWINGCOLL_SUM, comm);
	}
}

static int mixed(uint32_t rank, void *arg)
{
	static const enum swingcoll_coll colls[] = { SWINGCOLL_BROADCAST, SWINGCOLL_SCATTER,
						     SWINGCOLL_GATHER,	  SWINGCOLL_REDUCE,
						     SWINGCOLL_ALLTOALL,  SWINGCOLL_ALLREDUCE };
	static const size_t counts[] = { 1, 2, 7, 28, 29, 100, 512, MAX_COUNT };
	static uint32_t send[MAX_RANKS * MAX_COUNT], recv[MAX_RANKS * MAX_COUNT];
	struct swingcoll_comm *comm;

	(void)arg;
	CHECK_EQ(create(&comm, rank, SWINGCOLL_EAGER), 0);
	for (unsigned int k = 0; k < nops; k++) {
		uint32_t h = mix(k);
		/* In long runs only those whose ranks may part. */
		unsigned int ncolls = mix(k / 200) & 1 ? 4 : ARRAY_SIZE(colls);
		enum swingcoll_coll coll = colls[h % ncolls];
		bool rooted = coll <= SWINGCOLL_SCATTER && coll != SWINGCOLL_ALLTOALL &&
			      coll != SWINGCOLL_ALLREDUCE;
		bool blocking = coll != SWINGCOLL_ALLREDUCE || h >> 8 & 1;
		bool shares = coll == SWINGCOLL_SCATTER || coll == SWINGCOLL_ALLTOALL;
		size_t count = counts[(h >> 12) % ARRAY_SIZE(counts)];
		uint32_t root = rooted ? (h >> 16) % nranks : 0;
		size_t n = coll == SWINGCOLL_GATHER || coll == SWINGCOLL_ALLTOALL ? nranks * count
										  : count;

		for (size_t i = 0; i < (shares ? nranks * count : count); i++)
			send[i] = element(k, rank, i);
		memset(recv, 0, n * sizeof(*recv));
		CHECK_EQ(run(comm, coll, send, recv, count, (int)root, blocking), 0);
		/* What was sent may be overwritten now. */
		memset(send, 0xff, sizeof(*send) * (shares ? nranks * count : count));
		if ((coll == SWINGCOLL_GATHER || coll == SWINGCOLL_REDUCE) && rank != root)
			continue;
		for (size_t i = 0; i < n; i++)
			CHECK_EQ(recv[i], expected(coll, k, rank, root, count, i));
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* The last rank calls a gather, the others a broadcast: all are told, sooner or later. */
static int mismatch(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm;
	uint32_t v[2 * MAX_RANKS] = { 0 };
	char text[256];
	int ret;

	(void)arg;
	CHECK_EQ(create(&comm, rank, SWINGCOLL_EAGER), 0);
	if (rank == nranks - 1)
		ret = swingcoll_gather(v, v + 1, 1, SWINGCOLL_U32, (int)rank, comm);
	else
		ret = swingcoll_broadcast(v, v, 1, SWINGCOLL_U32, 0, comm);
	if (rank == nranks - 1)
		CHECK_EQ(ret, -EPROTO);
	while (!ret)
		ret = swingcoll_barrier(comm);
	CHECK_EQ(ret, -EPROTO);
	CHECK_EQ(swingcoll_comm_error(comm, text, sizeof(text), NULL), -EPROTO);
	CHECK(strstr(text, "has called another collective"));
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* The last rank dies; the root, which needs nothing of it, learns that from a later broadcast. */
static int killed(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm;
	uint32_t v = rank;
	char text[256];
	int ret = 0;

	(void)arg;
	CHECK_EQ(create(&comm, rank, SWINGCOLL_EAGER), 0);
	CHECK_EQ(swingcoll_barrier(comm), 0);
	if (rank == nranks - 1)
		raise(SIGKILL);
	while (!ret)
		ret = swingcoll_broadcast(&v, &v, 1, SWINGCOLL_U32, 0, comm);
	CHECK_EQ(ret, -ECONNRESET);
	CHECK_EQ(swingcoll_comm_error(comm, text, sizeof(text), NULL), -ECONNRESET);
	swingcoll_comm_destroy(comm);
	return 0;
}

/* The last rank leaves in order: another one, which is far ahead, ends the communicator. */
static int left(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm;
	char text[256], reason[64];
	uint32_t v = rank;
	int ret = 0, culprit;

	(void)arg;
	CHECK_EQ(create(&comm, rank, SWINGCOLL_EAGER), 0);
	CHECK_EQ(swingcoll_barrier(comm), 0);
	while (!ret && rank != nranks - 1)
		ret = swingcoll_broadcast(&v, &v, 1, SWINGCOLL_U32, 0, comm);
	if (rank != nranks - 1) {
		CHECK_EQ(ret, -ECONNRESET);
		CHECK_EQ(swingcoll_comm_error(comm, text, sizeof(text), &culprit), -ECONNRESET);
		/* Also on the ranks that have not ended it. */
		snprintf(reason, sizeof(reason), "rank %u has left", nranks - 1);
		CHECK(strstr(text, reason));
		CHECK_EQ(culprit, (int)nranks - 1);
	}
	swingcoll_comm_destroy(comm);
	return 0;
}

static int one_has_it(uint32_t rank, void *arg)
{
	struct swingcoll_comm *comm;
	int ret;

	(void)arg;
	ret = create(&comm, rank, rank ? SWINGCOLL_EAGER : 0);
	if (!ret) {
		/* The other rank was refused, and leaves. */
		ret = swingcoll_barrier(comm);
		CHECK_EQ(ret, -ECONNRESET);
		swingcoll_comm_destroy(comm);
		return 0;
	}
	CHECK_EQ(ret, -EPROTO);
	testlib_count(done);
	return 0;
}

static void test(testlib_rank_fn fn, int failures, const char *name)
{
	static const uint32_t teams[] = { 2, MAX_RANKS };

	for (unsigned int i = 0; i < ARRAY_SIZE(teams); i++) {
		nranks = teams[i];
		*done = 0;
		swingcoll_unique_id(&id);
		ksft_test_result(testlib_run_ranks(nranks, fn, NULL) == failures, "%s, %u ranks\n",
				 name, nranks);
	}
}

int main(void)
{
	ksft_print_header();
	testlib_require_device();
	if (getenv("SWC_TEST_SHORT"))
		nops = 400;
	done = testlib_shared_alloc(sizeof(*done));
	ksft_set_plan(12);
	test(ahead, 0, "ranks that others wait for are far ahead");
	test(mixed, 0, "mixed collectives");
	test(mismatch, 0, "another collective ends the communicator");
	test(killed, 1, "a rank that dies is noticed");
	test(left, 0, "a rank that leaves is noticed");
	test(one_has_it, 0, "the flag on some ranks only is refused");
	ksft_finished();
}
