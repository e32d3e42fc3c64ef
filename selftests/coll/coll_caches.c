// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranks bound to CPUs that do not all share a last-level cache, or a NUMA node: large allreduces add up within
 * the groups that do first. Needs 10 CPUs in two such groups: tools/vm/run --cpus 16 --sockets 2.
 */
#include <sched.h>
#include <stdio.h>

#include "coll.h"

#define COUNT (1 << 19) /* of 4 bytes */

static struct swingcoll_id id;
static int cpu[CPU_SETSIZE], ncpus;

/* The NUMA node of a CPU, -1 if it is not told. */
static int node_of(int c)
{
	char path[100];

	for (int node = 0; node < 64; node++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/node%d", c, node);
		if (!access(path, F_OK))
			return node;
	}
	return -1;
}

/* How many nodes the CPUs are on, one after the other; 0 if they are not as many on each. */
static int count_nodes(void)
{
	int size = 1;

	while (size < ncpus && node_of(cpu[size]) == node_of(cpu[0]))
		size++;
	for (int i = 0; i < ncpus; i++)
		if (ncpus % size || node_of(cpu[i]) != node_of(cpu[i - i % size]) ||
		    (i && i % size == 0 && node_of(cpu[i]) == node_of(cpu[i - 1])))
			return 0;
	return ncpus / size;
}

struct placing {
	bool bound, in_turn;
	const char *algo; /* by which large vectors should be added up; NULL: not by groups */
};

static int reduce(uint32_t rank, void *arg)
{
	const struct placing *p = arg;
	struct swingcoll_comm_opts opts = { .timeout_ms = TESTLIB_EVENT_MS };
	uint32_t at = p->in_turn ? rank % 2 * (ncpus / 2) + rank / 2 : rank;
	struct swingcoll_comm *comm;
	const char *algo;
	cpu_set_t mine;

	CPU_ZERO(&mine);
	CPU_SET(cpu[at], &mine);
	if (p->bound)
		CHECK_EQ(sched_setaffinity(0, sizeof(mine), &mine), 0);
	CHECK_EQ(swingcoll_comm_create(&comm, &id, ncpus, rank, &opts), 0);
	for (unsigned int i = 0; i < 6; i++) {
		struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE,
				       .dtype = i % 3 ? SWINGCOLL_I32 : SWINGCOLL_F32,
				       .op = i % 3 == 2 ? SWINGCOLL_MAX : SWINGCOLL_SUM,
				       .count = COUNT - 77 * i,
				       .in_place = i % 2 };
		void *mem = malloc(coll_bytes(&c, ncpus));

		CHECK(mem);
		CHECK_EQ(coll_run(&c, mem, comm, i), 0);
		free(mem);
	}
	algo = swingcoll_comm_algo(comm);
	if (p->algo ? strcmp(algo, p->algo) : !strncmp(algo, "grouped", 7)) {
		ksft_print_msg("rank %u: %s\n", rank, algo);
		return -1;
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

int main(void)
{
	char groups[20];
	const struct placing placings[] = { { .bound = true, .algo = groups },
					    { .bound = true, .in_turn = true },
					    { .bound = false } };
	static const char *const names[] = { "bound: by groups", "bound in turn: not by groups",
					     "not bound: not by groups" };
	cpu_set_t all;
	int n;

	ksft_print_header();
	testlib_require_device();
	if (sched_getaffinity(0, sizeof(all), &all))
		ksft_exit_skip("CPUs are not told\n");
	for (int c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, &all))
			cpu[ncpus++] = c;
	n = count_nodes();
	if (n != 2 || ncpus < 10 || ncpus > 64)
		ksft_exit_skip("needs 10 to 64 CPUs, half of them on each of two NUMA nodes\n");
	snprintf(groups, sizeof(groups), "grouped:%d", n);
	ksft_set_plan(ARRAY_SIZE(placings));
	for (unsigned int i = 0; i < ARRAY_SIZE(placings); i++) {
		swingcoll_unique_id(&id);
		ksft_test_result(!testlib_run_ranks(ncpus, reduce, (void *)&placings[i]), "%s",
				 names[i]);
	}
	ksft_finished();
}
