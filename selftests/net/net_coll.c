// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collectives between nodes: each collective, type, operation, and algorithm for the topology, every result checked on
 * every rank. Runs on every node of a cluster at once.
 *
 *	net_coll [WORD [TIMES]]		only groups with WORD in their names; so many times
 *
 * SWC_TEST_SHORT=1: all pairs of algorithm, collective, size and layout instead of all combinations, fewer partitions.
 */
#include <errno.h>
#include <sys/resource.h>

#include "net.h"
#include "pairs.h"
#include "uneven.h"
#include "partitioned.h"

#define PARALLEL 24 /* operations in flight */
#define COMMS 4	    /* communicators at once */
#define FLOATS 20011
#define TIMEOUT_MS TESTLIB_EVENT_MS
#define LAYOUT_MS 600000 /* all groups of one layout */

/* One rank of one layout, and what it has counted. */
static const struct net_layout *layout;
static struct swingcoll_bootstrap *boot;
static int rank;
static unsigned int checked, refused, substituted; /* substituted: right, by another algorithm */
static const char *algo;
static int algo_number;
static unsigned int which; /* layout */
static struct pairs pairs;

/* ------------------------------------------------------------------ one collective */

static int comm_new(struct swingcoll_comm **comm, const struct swingcoll_comm_opts *opts)
{
	struct swingcoll_comm_opts o = opts ? *opts : (struct swingcoll_comm_opts){ 0 };
	int ret;

	if (!o.timeout_ms)
		o.timeout_ms = TIMEOUT_MS;
	ret = swingcoll_comm_create_from(comm, boot, &o);
	if (ret)
		ksft_print_msg("rank %d: %s\n", rank, swingcoll_bootstrap_error());
	return ret;
}

/* Run and check one collective: 0, -EOPNOTSUPP, or another error after a diagnostic. */
static int one(struct swingcoll_comm *comm, const struct coll_case *c, bool registered)
{
	size_t bytes = coll_bytes(c, layout->nranks);
	void *mem = malloc(bytes);
	int ret = 0;

	if (!mem)
		return -ENOMEM;
	if (registered)
		ret = swingcoll_mem_register(mem, bytes);
	if (ret)
		ksft_print_msg("rank %d: cannot register %zu bytes: %s\n", rank, bytes,
			       swingcoll_strerror(ret));
	else
		ret = coll_run(c, mem, comm, c->count + c->coll);
	if (ret && ret != -EOPNOTSUPP && ret != -EBADMSG && ret != -ENOMEM) {
		char text[256];

		swingcoll_comm_error(comm, text, sizeof(text), NULL);
		ksft_print_msg("rank %d: %s\n", rank, text);
	}
	if (registered)
		swingcoll_mem_unregister(mem);
	free(mem);
	checked += !ret;
	return ret;
}

/* ------------------------------------------------------------------ groups */

static int collectives(void)
{
	static const size_t counts[] = { 0, 1, 61, 4099, 50021 };
	struct swingcoll_comm *comm;

	CHECK_EQ(comm_new(&comm, NULL), 0);
	for (int coll = 0; coll <= SWINGCOLL_SCATTER; coll++)
		for (unsigned int k = 0; k < 2 * ARRAY_SIZE(counts); k++) {
			struct coll_case c = coll_case_nth(coll, counts, k, layout->nranks, 5);

			CHECK_EQ(one(comm, &c, k & 4), 0);
		}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int types(void)
{
	static const int colls[] = { SWINGCOLL_ALLREDUCE, SWINGCOLL_ALLREDUCE, SWINGCOLL_REDUCE,
				     SWINGCOLL_REDUCE_SCATTER };
	struct swingcoll_comm *comm;
	unsigned int k = 0;

	CHECK_EQ(comm_new(&comm, NULL), 0);
	for (int dtype = 0; dtype <= SWINGCOLL_F64; dtype++)
		for (int op = 0; op <= SWINGCOLL_BXOR; op++, k++) {
			struct coll_case c = { .coll = colls[k % ARRAY_SIZE(colls)],
					       .dtype = dtype,
					       .op = op,
					       .count = 1003 + k,
					       .in_place = k & 8 };

			if (!swingcoll_supported(dtype, op))
				continue;
			if (coll_has_root(c.coll))
				c.root = k % layout->nranks;
			CHECK_EQ(one(comm, &c, false), 0);
		}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Every type by collectives that only move data. */
static int types_moved(void)
{
	static const int colls[] = { SWINGCOLL_ALLGATHER, SWINGCOLL_BROADCAST, SWINGCOLL_ALLTOALL,
				     SWINGCOLL_GATHER, SWINGCOLL_SCATTER };
	struct swingcoll_comm *comm;

	CHECK_EQ(comm_new(&comm, NULL), 0);
	for (int dtype = 0; dtype <= SWINGCOLL_F64; dtype++)
		for (unsigned int k = 0; k < ARRAY_SIZE(colls); k++) {
			struct coll_case c = { .coll = colls[k], .dtype = dtype, .count = 517 };

			if (coll_has_root(c.coll))
				c.root = dtype % layout->nranks;
			CHECK_EQ(one(comm, &c, false), 0);
		}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Gather and scatter with a count for each rank: small ones, and some that are written in place. */
static int uneven(void)
{
	static const char *const algos[] = { NULL, "bine", "tree", "linear" };
	static const size_t counts[] = { 61, 30011 };

	for (unsigned int a = 0, k = 0; a < ARRAY_SIZE(algos); a++) {
		struct swingcoll_comm_opts opts = { .algo = algos[a] };
		struct swingcoll_comm *comm;

		CHECK_EQ(comm_new(&comm, &opts), 0);
		for (int kind = 0; kind < UNEVEN_KINDS; kind++)
			for (unsigned int i = 0; i < 2 * ARRAY_SIZE(counts); i++, k++) {
				struct uneven_case c = { .scatter = i & 1,
							 .kind = kind,
							 .root = k % layout->nranks,
							 .count = counts[i / 2],
							 .in_place = k & 2,
							 .start = k & 4 };

				CHECK_EQ(uneven_run(&c, comm, k), 0);
				checked++;
			}
		CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	}
	return 0;
}

/* One algorithm. What it cannot do, here or at all, is counted. */
static int algorithm(void)
{
	static const size_t counts[] = { 1, 17, 1021, 40009 };
	struct swingcoll_comm_opts opts = { .algo = algo, .flags = SWINGCOLL_ALLOW_REORDER };
	bool skip[SWINGCOLL_SCATTER + 1] = { false };
	struct swingcoll_comm *comm;

	CHECK_EQ(comm_new(&comm, &opts), 0);
	/* Both change with every step: 9 collectives and 4 counts have no common divisor. */
	for (unsigned int i = 0; i < ARRAY_SIZE(skip) * ARRAY_SIZE(counts); i++) {
		unsigned int coll = i % ARRAY_SIZE(skip), k = i % ARRAY_SIZE(counts);
		const unsigned int level[] = { algo_number, which, coll, k };
		struct coll_case c = { .coll = coll,
				       .count = counts[k],
				       .in_place = (k + coll) & 1,
				       .dtype = k & 1 ? SWINGCOLL_F32 : SWINGCOLL_I32 };
		int ret;

		if (skip[coll] || !pairs_due(&pairs, level))
			continue;
		if (coll == SWINGCOLL_BARRIER)
			c.count = 0;
		if (coll_has_root(coll))
			c.root = k % layout->nranks;
		ret = one(comm, &c, false);
		CHECK(!ret || ret == -EOPNOTSUPP);
		refused += !!ret;
		/* A substitute is tested under its own name. */
		skip[coll] = ret || strcmp(swingcoll_comm_algo(comm), algo);
		substituted += !ret && skip[coll];
		if (!skip[coll])
			pairs_cover(&pairs, level);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* More than 8 MiB with one rank per node, less with more ranks, for time. Counts do not divide evenly. */
static int large(void)
{
	struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE,
			       .count = layout->nranks == net_nodes ? 2100001 : 300001,
			       .dtype = SWINGCOLL_I32 };
	struct swingcoll_comm *comm;

	CHECK_EQ(comm_new(&comm, NULL), 0);
	CHECK_EQ(one(comm, &c, false), 0);
	c.in_place = true;
	c.dtype = SWINGCOLL_F32;
	CHECK_EQ(one(comm, &c, true), 0);
	for (int coll = SWINGCOLL_REDUCE_SCATTER; coll <= SWINGCOLL_SCATTER; coll++) {
		c = (struct coll_case){ .coll = coll,
					.count = coll_is_sharded(coll) ? 70001 : 200003,
					.in_place = coll & 1,
					.root = coll_has_root(coll) ? layout->nranks - 1 : 0,
					.dtype = coll_reduces(coll) ? SWINGCOLL_F32
								    : SWINGCOLL_U32 };
		if (coll != SWINGCOLL_BARRIER)
			CHECK_EQ(one(comm, &c, coll & 2), 0);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* Many operations of all kinds in flight, waited for in another order than they were started. */
static int parallel(int use_io_uring)
{
	struct swingcoll_comm_opts opts = { .use_io_uring = use_io_uring };
	struct swingcoll_req *req[PARALLEL];
	struct swingcoll_comm *comm;
	struct coll_case c[PARALLEL];
	void *mem[PARALLEL], *send, *recv;
	int n = layout->nranks;

	CHECK_EQ(comm_new(&comm, &opts), 0);
	for (int i = 0; i < PARALLEL; i++) {
		c[i] = (struct coll_case){ .coll = i % (SWINGCOLL_SCATTER + 1),
					   .dtype = SWINGCOLL_I32,
					   .count = i % 5 ? 100 + i * 131 : 30011,
					   .in_place = i & 1 };
		if (c[i].coll == SWINGCOLL_BARRIER)
			c[i].count = 0;
		if (coll_has_root(c[i].coll))
			c[i].root = i % n;
		mem[i] = malloc(coll_bytes(&c[i], n));
		coll_buffers(&c[i], n, rank, mem[i], &send, &recv);
		coll_fill(&c[i], n, rank, send, i);
	}
	for (int i = 0; i < PARALLEL; i++) {
		coll_buffers(&c[i], n, rank, mem[i], &send, &recv);
		CHECK_EQ(coll_icall(&c[i], send, recv, comm, &req[i]), 0);
	}
	for (int k = 0; k < PARALLEL; k++) {
		int i = (k * 7) % PARALLEL;

		CHECK_EQ(swingcoll_wait(req[i], NULL), 0);
		coll_buffers(&c[i], n, rank, mem[i], &send, &recv);
		if (c[i].coll != SWINGCOLL_BARRIER)
			CHECK_EQ(coll_check(&c[i], n, rank, recv, i), 0);
		free(mem[i]);
		checked++;
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int parallel_uring(void)
{
	return parallel(1);
}

static int parallel_ioctl(void)
{
	return parallel(-1);
}

/* Operations of several communicators, started in a different order by each rank. */
static int communicators(void)
{
	struct coll_case c = {
		.coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = 9001, .in_place = true
	};
	int n = layout->nranks;
	struct swingcoll_comm *comm[COMMS];
	struct swingcoll_req *req[COMMS];
	void *mem[COMMS];

	for (int k = 0; k < COMMS; k++) {
		CHECK_EQ(comm_new(&comm[k], NULL), 0);
		mem[k] = malloc(coll_bytes(&c, n));
	}
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < COMMS; i++) {
			int k = (i * (rank & 1 ? COMMS - 1 : 1) + rank) % COMMS;

			coll_fill(&c, n, rank, mem[k], round * COMMS + k);
			CHECK_EQ(coll_icall(&c, mem[k], mem[k], comm[k], &req[k]), 0);
		}
		for (int k = 0; k < COMMS; k++) {
			CHECK_EQ(swingcoll_wait(req[k], NULL), 0);
			CHECK_EQ(coll_check(&c, n, rank, mem[k], round * COMMS + k), 0);
			checked++;
		}
	}
	for (int k = 0; k < COMMS; k++) {
		CHECK_EQ(swingcoll_comm_destroy(comm[k]), 0);
		free(mem[k]);
	}
	return 0;
}

/*
 * Partitions that every rank marks ready in its own order. The last rank marks the last partition first and waits for
 * it; the others mark it last, after all others.
 */
static int partitioned_one(const struct coll_case *c, int parts, struct swingcoll_comm *comm)
{
	struct partitioned j;

	CHECK_EQ(partitioned_open(&j, c, parts, comm), 0);
	for (int round = 0; round < 2; round++) {
		CHECK_EQ(swingcoll_pstart(j.part), 0);
		for (int i = 0; i < parts; i++)
			partitioned_fill(&j, i, rank, round);
		for (int i = 0; i < parts; i++) {
			int at = rank == layout->nranks - 1 ? parts - 1 - i : (i + 1) % parts;

			CHECK_EQ(swingcoll_pready(j.part, at), 0);
			if (at == parts - 1)
				CHECK_EQ(swingcoll_pwait(j.part, at), 0);
		}
		CHECK_EQ(swingcoll_pwait(j.part, SWINGCOLL_ALL_PARTITIONS), 0);
		for (int i = 0; i < parts; i++)
			CHECK_EQ(partitioned_check(&j, i, rank, round), 0);
		checked += parts;
	}
	CHECK_EQ(partitioned_close(&j), 0);
	return 0;
}

static int partitioned(void)
{
	static const int colls[] = { SWINGCOLL_ALLREDUCE, SWINGCOLL_REDUCE_SCATTER,
				     SWINGCOLL_ALLGATHER };
	static const size_t counts[] = { 50, 3000, 70001 };
	uint64_t buffered = testlib_stat(SWC_STAT_UNEXPECTED_BUFFERED);
	uint64_t refused = testlib_stat(SWC_STAT_UNEXPECTED_REFUSED);
	/* Together, what the others send for the last rank's must stay below the limit of a node with 384 MiB. */
	int parts = pairs_short() ? 10 : 80 / layout->nranks;
	struct swingcoll_comm *comm;

	CHECK_EQ(comm_new(&comm, NULL), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(colls); i++)
		for (unsigned int k = 0; k < ARRAY_SIZE(counts); k++) {
			bool whole = !coll_is_sharded(colls[i]);
			struct coll_case c = { .coll = colls[i],
					       .dtype = SWINGCOLL_I32,
					       .count = whole ? counts[k]
							      : counts[k] / layout->nranks,
					       .in_place = whole };

			if (partitioned_one(&c, parts, comm)) {
				ksft_print_msg("rank %d: partitioned %s\n", rank,
					       coll_describe(&c));
				return 1;
			}
		}
	/* Data for partitions that the last rank had not marked yet has been buffered, and left its receive buffers. */
	if (rank == layout->nranks - 1)
		CHECK(testlib_stat(SWC_STAT_UNEXPECTED_BUFFERED) > buffered);
	CHECK_EQ(testlib_stat(SWC_STAT_UNEXPECTED_REFUSED), refused);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* A request of two partitions, and a large ordinary operation that follows it. */
struct pair {
	struct swingcoll_comm *comm;
	struct partitioned p;
	struct coll_case large;
	void *mem;
	struct swingcoll_req *req;
};

static const struct coll_case some = {
	.coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_I32, .count = 70001, .in_place = true
};

static int pair_up(struct pair *a)
{
	a->large = some;
	a->large.count = 1 << 20;
	a->mem = malloc(coll_bytes(&a->large, layout->nranks));
	coll_fill(&a->large, layout->nranks, rank, a->mem, 1);
	CHECK_EQ(comm_new(&a->comm, NULL), 0);
	CHECK_EQ(partitioned_open(&a->p, &some, 2, a->comm), 0);
	for (int i = 0; i < a->p.n; i++)
		partitioned_fill(&a->p, i, rank, 2);
	return 0;
}

static int pair_down(struct pair *a)
{
	CHECK_EQ(swingcoll_pwait(a->p.part, SWINGCOLL_ALL_PARTITIONS), 0);
	CHECK_EQ(swingcoll_wait(a->req, NULL), 0);
	for (int i = 0; i < a->p.n; i++)
		CHECK_EQ(partitioned_check(&a->p, i, rank, 2), 0);
	CHECK_EQ(coll_check(&a->large, layout->nranks, rank, a->mem, 1), 0);
	checked += a->p.n + 1;
	CHECK_EQ(partitioned_close(&a->p), 0);
	CHECK_EQ(swingcoll_comm_destroy(a->comm), 0);
	free(a->mem);
	return 0;
}

/* Wait until this node does not send any more: everything that can be sent has been. */
static void wait_sent(void)
{
	uint64_t sent = ~0ull, now;

	while ((now = testlib_stat(SWC_STAT_MSGS_SENT)) != sent) {
		sent = now;
		testlib_sleep_ms(100);
	}
}

/*
 * Rank 0 starts an ordinary operation and a second partitioned request before it marks a partition of the first one; the
 * others wait for that partition before they start those.
 */
static int partitioned_overtaken(void)
{
	struct partitioned q;
	struct pair a;

	CHECK_EQ(pair_up(&a), 0);
	CHECK_EQ(partitioned_open(&q, &some, 20, a.comm), 0);
	for (int i = 0; i < q.n; i++)
		partitioned_fill(&q, i, rank, 3);
	CHECK_EQ(swingcoll_pstart(a.p.part), 0);
	if (rank == 0) {
		CHECK_EQ(swingcoll_pready(a.p.part, 0), 0);
		CHECK_EQ(swingcoll_pstart(q.part), 0);
		for (int i = 0; i < q.n; i++)
			CHECK_EQ(swingcoll_pready(q.part, i), 0);
		CHECK_EQ(coll_icall(&a.large, a.mem, a.mem, a.comm, &a.req), 0);
		wait_sent();
		CHECK_EQ(swingcoll_pready(a.p.part, 1), 0);
	} else {
		CHECK_EQ(swingcoll_pready(a.p.part, 1), 0);
		CHECK_EQ(swingcoll_pwait(a.p.part, 1), 0);
		CHECK_EQ(swingcoll_pready(a.p.part, 0), 0);
		CHECK_EQ(swingcoll_pstart(q.part), 0);
		for (int i = q.n - 1; i >= 0; i--)
			CHECK_EQ(swingcoll_pready(q.part, i), 0);
		CHECK_EQ(swingcoll_pwait(q.part, 0), 0);
		CHECK_EQ(coll_icall(&a.large, a.mem, a.mem, a.comm, &a.req), 0);
	}
	CHECK_EQ(swingcoll_pwait(q.part, SWINGCOLL_ALL_PARTITIONS), 0);
	for (int i = 0; i < q.n; i++)
		CHECK_EQ(partitioned_check(&q, i, rank, 3), 0);
	checked += q.n;
	CHECK_EQ(partitioned_close(&q), 0);
	return pair_down(&a);
}

/* The others start an ordinary operation before a partition, and after it one that rank 0 has started already. */
static int partitioned_waits(void)
{
	struct coll_case small = some;
	struct swingcoll_req *req;
	struct pair a;
	void *mem;

	small.count = 25001;
	mem = malloc(coll_bytes(&small, layout->nranks));
	coll_fill(&small, layout->nranks, rank, mem, 3);
	CHECK_EQ(pair_up(&a), 0);
	CHECK_EQ(swingcoll_pstart(a.p.part), 0);
	if (rank == 0) {
		CHECK_EQ(swingcoll_pready(a.p.part, 0), 0);
		CHECK_EQ(swingcoll_pready(a.p.part, 1), 0);
	}
	CHECK_EQ(coll_icall(&small, mem, mem, a.comm, &req), 0);
	if (rank == 0)
		CHECK_EQ(coll_icall(&a.large, a.mem, a.mem, a.comm, &a.req), 0);
	CHECK_EQ(swingcoll_wait(req, NULL), 0);
	CHECK_EQ(coll_check(&small, layout->nranks, rank, mem, 3), 0);
	if (rank) {
		CHECK_EQ(swingcoll_pready(a.p.part, 1), 0);
		CHECK_EQ(swingcoll_pready(a.p.part, 0), 0);
		CHECK_EQ(coll_icall(&a.large, a.mem, a.mem, a.comm, &a.req), 0);
	}
	checked++;
	free(mem);
	return pair_down(&a);
}

/* Sums of random floats have the same bits on all ranks. */
static int bits(void)
{
	static float in[FLOATS], out[FLOATS];
	struct swingcoll_comm *comm;
	unsigned int seed = rank + 1;
	uint64_t hash = 0, *all = calloc(layout->nranks, sizeof(*all));

	CHECK_EQ(comm_new(&comm, NULL), 0);
	for (size_t count = FLOATS; count; count /= 12) {
		for (size_t i = 0; i < count; i++)
			in[i] = (float)rand_r(&seed) / (1 + rand_r(&seed) % 1000);
		CHECK_EQ(swingcoll_allreduce(in, out, count, SWINGCOLL_F32, SWINGCOLL_SUM, comm),
			 0);
		for (size_t i = 0; i < count; i++) {
			uint32_t word;

			memcpy(&word, &out[i], 4);
			hash = (hash ^ word) * 0x100000001b3;
		}
		checked++;
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	CHECK_EQ(boot->allgather(boot->arg, &hash, all, sizeof(hash)), 0);
	for (int r = 1; r < layout->nranks; r++)
		CHECK(all[r] == all[0]);
	free(all);
	return 0;
}

/* No rank leaves a barrier before the last one enters it. */
static int barriers(void)
{
	struct swingcoll_comm *comm;

	CHECK_EQ(comm_new(&comm, NULL), 0);
	for (int last = 0; last < layout->nranks; last++) {
		uint64_t start, end;

		/* The others note the time before they let the last rank begin to sleep. */
		CHECK_EQ(swingcoll_barrier(comm), 0);
		start = testlib_now_ms();
		CHECK_EQ(swingcoll_barrier(comm), 0);
		if (rank == last)
			testlib_sleep_ms(200);
		CHECK_EQ(swingcoll_barrier(comm), 0);
		end = testlib_now_ms();
		if (end - start < 200) {
			ksft_print_msg("rank %d: waited only %d ms for rank %d\n", rank,
				       (int)(end - start), last);
			return 1;
		}
		checked += 3;
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* ------------------------------------------------------------------ all of them, by every rank */

struct group {
	const char *name;
	int (*fn)(void);
	int share; /* runs in layouts with at least this share */
};

static const struct group groups[] = {
	{ "every collective", collectives, 0 },
	{ "every type and operation", types, 2 },
	{ "every type, moved only", types_moved, 2 },
	{ "shards of different sizes", uneven, 2 },
	{ "large vectors, registered and not", large, 1 },
	{ "24 in flight, by io_uring", parallel_uring, 0 },
	{ "24 in flight, by ioctl", parallel_ioctl, 2 },
	{ "4 communicators at once", communicators, 1 },
	{ "partitions, each rank in its own order", partitioned, 1 },
	{ "partitions, overtaken by later operations", partitioned_overtaken, 1 },
	{ "partitions, needed by later operations", partitioned_waits, 1 },
	{ "the same bits of float sums on all ranks", bits, 0 },
	{ "barriers", barriers, 2 },
};

#define ALGORITHMS 1

/* Clusters of more than two nodes run less: their virtual machines share few CPUs. */
static const struct layout_kind {
	const char *name;
	int even, odd;
	bool in_turn;
	bool odd_tcp; /* odd nodes have TCP only, the others what they find */
	int share, large_share;
} layouts[] = {
	{ "1 rank per node", 1, 1, false, false, 2, 1 },
	{ "2 ranks per node", 2, 2, false, false, 2, -1 },
	{ "1 and 2 ranks per node, odd nodes by TCP", 1, 2, false, true, 1, 0 },
	{ "2 ranks per node in turn", 2, 2, true, false, 0, -1 },
};

/* What the ranks of a layout tell their node process. */
struct found {
	struct pairs pairs;
	struct ksft_count count;
	unsigned long checked;
	unsigned long refused;
};

static struct found *found;
static const char *wanted = "";

struct verdict {
	int bad;
	unsigned int checked, refused;
};

/* All algorithms but those for one node, for as many ranks on each, and for tori of two dimensions. */
static bool for_all_shapes(const char *name)
{
	return strncmp(name, "direct", 6) && strcmp(name, "grouped") && strcmp(name, "by-nodes") &&
	       strcmp(name, "hamiltonian") && strcmp(name, "split");
}

/* Run a group on all ranks. True if the ranks can go on. */
static bool group(int (*fn)(void), const char *name)
{
	struct verdict mine, *all = calloc(layout->nranks, sizeof(*all));
	uint64_t start = testlib_now_ms();
	bool good = true;
	int ret;

	checked = 0;
	refused = 0;
	substituted = 0;
	mine.bad = fn();
	mine.checked = checked;
	mine.refused = refused;
	ret = boot->allgather(boot->arg, &mine, all, sizeof(mine));
	if (ret) {
		ksft_print_msg("rank %d: after %s: %s\n", rank, name, swingcoll_bootstrap_error());
		free(all);
		return false;
	}
	if (fn == algorithm && for_all_shapes(algo))
		good = checked > substituted;
	for (int r = 0; r < layout->nranks; r++)
		good &= !all[r].bad && all[r].checked == checked && all[r].refused == refused;
	if (!rank) {
		ksft_test_result(
			good && (checked || refused),
			"%s: %s: %u collectives right, %u by substitutes, %u refused, %d ms",
			layouts[which].name, name, checked, substituted, refused,
			(int)(testlib_now_ms() - start));
		found->count = ksft_cnt;
		found->checked += checked;
		found->refused += refused;
	}
	free(all);
	return true;
}

/* Is a group to be run in this layout? */
static bool chosen(const struct layout_kind *l, const char *name, int share)
{
	const char *topo = getenv("SWINGCOLL_TOPO");

	/* On a torus the library needs SWINGCOLL_TOPO, and then ranks are numbered node by node. */
	if (l->in_turn && topo && strncmp(topo, "switch:", 7))
		return false;
	return share <= (net_nodes > 2 ? l->large_share : l->share) && strstr(name, wanted);
}

/* The name of the group of an algorithm, or NULL. */
static const char *algo_group(int a)
{
	static char name[64];

	algo_number = a;
	algo = swingcoll_algo_name(a);
	if (!algo)
		return NULL;
	snprintf(name, sizeof(name), "algorithm %s", algo);
	return name;
}

static int rank_fn(int me, unsigned int step)
{
	const struct layout_kind *l = &layouts[which];
	const char *name;
	bool ok = true;

	rank = me;
	net_set_rank_env(layout, rank, step);
	/* With encryption, there is no other transport beside it. */
	if (l->odd_tcp && net_node % 2 && net_transport() != SWC_TRANSPORT_TLS)
		setenv("SWINGCOLL_TRANSPORT", "tcp", 1);
	ksft_cnt = found->count;
	if (swingcoll_bootstrap_auto(&boot)) {
		ksft_print_msg("rank %d: %s\n", rank, swingcoll_bootstrap_error());
		return 1;
	}
	for (unsigned int g = 0; ok && g < ARRAY_SIZE(groups); g++)
		if (chosen(l, groups[g].name, groups[g].share))
			ok = group(groups[g].fn, groups[g].name);
	for (int a = 0; ok && (name = algo_group(a)); a++)
		if (chosen(l, name, ALGORITHMS))
			ok = group(algorithm, name);
	/* The same on all ranks. */
	if (me == net_layout_rank(layout, 0))
		found->pairs = pairs;
	swingcoll_bootstrap_free(boot);
	return !ok;
}

static unsigned int planned(void)
{
	unsigned int n = 0;
	const char *name;

	for (unsigned int l = 0; l < ARRAY_SIZE(layouts); l++) {
		for (unsigned int g = 0; g < ARRAY_SIZE(groups); g++)
			n += chosen(&layouts[l], groups[g].name, groups[g].share);
		for (int a = 0; (name = algo_group(a)); a++)
			n += chosen(&layouts[l], name, ALGORITHMS);
	}
	return n;
}

static int start_rank(uint32_t i, void *arg)
{
	return rank_fn(net_layout_rank(layout, i), *(unsigned int *)arg);
}

int main(int argc, char **argv)
{
	int times = argc > 2 ? atoi(argv[2]) : 1;
	struct net_layout l;
	pid_t pid[SWC_MAX_LOCAL_RANKS];
	bool bad = false;

	if (argc > 1)
		wanted = argv[1];
	net_init();
	if (!net_node)
		ksft_set_plan(planned() * times);
	found = testlib_shared_alloc(sizeof(*found));
	layout = &l;
	for (unsigned int step = 0; step < times * ARRAY_SIZE(layouts) && !bad; step++) {
		which = step % ARRAY_SIZE(layouts);
		if (!which)
			pairs_init(&pairs, 4);
		net_layout(&l, layouts[which].even, layouts[which].odd);
		l.in_turn = layouts[which].in_turn;
		found->count = ksft_cnt;
		testlib_fork_ranks(pid, net_layout_local(&l), start_rank, &step);
		bad = testlib_wait_ranks_ms(pid, net_layout_local(&l), LAYOUT_MS);
		ksft_cnt = found->count;
		pairs = found->pairs;
		bad = net_any(bad);
	}
	if (net_node)
		return bad;
	ksft_print_msg("%lu collectives checked on every rank, %lu not possible on the topology\n",
		       found->checked, found->refused);
	ksft_finished();
}
