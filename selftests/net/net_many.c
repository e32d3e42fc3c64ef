// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many nodes, with one rank each: collectives by few and by all connections, the memory that these take, and a rank that is
 * killed, which all others name. After each case all resources are released. Runs on every node of a cluster at once:
 *
 *	tools/vm/run --nodes 64 --per-vm 32 -- net_many
 *
 * SWC_TEST_SHORT=1: fewer sizes, and fewer connections. With more than 64 nodes, likewise.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include "net_ranks.h"

/*
 * Kernel memory for each end of a connection, at most, with this rank's share of the communicator, its plans and
 * operations: connections that carry only small messages have small receive buffers.
 */
#define CONN_KIB 400

/* Nodes that share a machine use this in turn, where each counts what the machine has. */
static FILE *turn;

static bool is_short(void)
{
	const char *text = getenv("SWC_TEST_SHORT");

	return text && *text;
}

/* Large vectors, on nodes that the testbed emulates fast enough: what each moves, all of them move. */
static bool has_large(void)
{
	return !is_short() && net_nodes <= 64;
}

/* More nodes share the CPUs of the testbed: deadlines and limits against hangs are so many times as long. */
static unsigned int times(void)
{
	return 1 + (unsigned int)net_nodes / 64;
}

/*
 * Does each rank connect with each other? Machines of the testbed need a minute to make the connections of 64 nodes, and have
 * no memory for those of more.
 */
static bool all_pairs(void)
{
	return net_nodes <= (is_short() ? 32 : 64);
}

/* What this machine's users have; the limit and refusals are not used. */
static struct swc_quota_use used(enum swc_quota which)
{
	struct swc_user_query q = { 0 };
	int fd = open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	struct swc_quota_use sum = { 0 };

	while (fd >= 0 && !testlib_ioctl(fd, SWC_IOC_USER_QUERY, &q)) {
		sum.used += q.quota[which].used;
		sum.most += q.quota[which].most;
	}
	if (fd >= 0)
		close(fd);
	return sum;
}

static int create(struct swingcoll_comm **comm, const char *algo)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = times() * NET_TIMEOUT_MS, .algo = algo };
	int ret;

	net_set_rank_env(&net_cluster, net_node, net_step);
	ret = swingcoll_comm_create_auto(comm, &opts);
	if (ret)
		ksft_print_msg("rank %d: %s\n", net_node, swingcoll_bootstrap_error());
	return ret;
}

/* One collective of a few sizes. */
static int sizes(struct swingcoll_comm *comm, int coll, const size_t *counts, unsigned int n)
{
	for (unsigned int k = 0; k < n; k++) {
		struct coll_case c = { .coll = coll, .dtype = SWINGCOLL_I32, .count = counts[k] };
		void *mem = malloc(coll_bytes(&c, net_nodes));
		int ret = mem ? coll_run(&c, mem, comm, k) : -ENOMEM;
		char text[256];

		free(mem);
		if (!ret)
			continue;
		swingcoll_comm_error(comm, text, sizeof(text), NULL);
		ksft_print_msg("rank %d: %s of %zu: %s: %s\n", net_node, coll_describe(&c),
			       counts[k], swingcoll_strerror(ret), text);
		return ret;
	}
	return 0;
}

/* ------------------------------------------------------------------ cases: one rank on each node */

static int allreduce_rank(uint32_t i, void *arg)
{
	static const size_t counts[] = { 2, 1000, 65536, 300000 };
	struct swingcoll_comm *comm;

	(void)i;
	(void)arg;
	CHECK_EQ(create(&comm, NULL), 0);
	CHECK_EQ(sizes(comm, SWINGCOLL_ALLREDUCE, counts, has_large() ? 4 : 2), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/*
 * Of 8 bytes: microseconds that one takes, the mean of NET_MANY_OPS, or -1. With tools/vm/run --icount, instructions.
 */
static double small_us(struct swingcoll_comm *comm)
{
	int ops = (int)testlib_env("NET_MANY_OPS", is_short() ? 3 : 20);
	uint64_t start = testlib_now_ns();

	for (int i = 0; i < ops; i++) {
		int32_t mine[2] = { net_node, 1 }, sum[2];

		if (swingcoll_allreduce(mine, sum, 2, SWINGCOLL_I32, SWINGCOLL_SUM, comm) ||
		    sum[0] != net_nodes * (net_nodes - 1) / 2 || sum[1] != net_nodes)
			return -1;
	}
	return (double)(testlib_now_ns() - start) / (ops * 1000);
}

/* The memory of connections that have carried small messages only. */
static int connections_are_small(struct swingcoll_comm *comm)
{
	struct swc_quota_use conns, memory;

	/* All have made their connections, and have them until all have read this. */
	CHECK_EQ(swingcoll_barrier(comm), 0);
	conns = used(SWC_QUOTA_CONNS);
	memory = used(SWC_QUOTA_MEMORY);
	CHECK_EQ(swingcoll_barrier(comm), 0);
	CHECK(conns.used > 0);
	if (!net_node)
		ksft_print_msg(
			"%llu ends of connections here, %llu KiB of kernel memory for each\n",
			(unsigned long long)conns.used,
			(unsigned long long)(memory.used / conns.used / 1024));
	CHECK(!all_pairs() || conns.used >= (uint64_t)net_nodes - 1);
	if (memory.used / conns.used > CONN_KIB * 1024) {
		ksft_print_msg("%llu bytes for %llu ends of connections\n",
			       (unsigned long long)memory.used, (unsigned long long)conns.used);
		return 1;
	}
	return 0;
}

/*
 * By rotation, each rank has a connection with each other. An allreduce takes few of them, and is not to care for the others.
 */
static int alltoall_rank(uint32_t i, void *arg)
{
	static const size_t counts[] = { 1, 500, 20000 };
	struct swingcoll_comm *comm;
	double before, beside;

	(void)i;
	(void)arg;
	CHECK_EQ(create(&comm, all_pairs() ? "rotate" : "bine"), 0);
	CHECK(small_us(comm) >= 0); /* connects */
	before = small_us(comm);
	CHECK_EQ(sizes(comm, SWINGCOLL_ALLTOALL, counts, 1), 0);
	beside = small_us(comm);
	CHECK(before >= 0 && beside >= 0);
	if (!net_node)
		ksft_print_msg("allreduce of 8 bytes: %.1f us, then %.1f us\n", before, beside);
	CHECK_EQ(connections_are_small(comm), 0);
	CHECK_EQ(sizes(comm, SWINGCOLL_ALLTOALL, counts, has_large() ? 3 : 2), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* All but the victim get an error that names it. */
static int victim_rank(uint32_t i, void *arg)
{
	static const struct net_expected expected = { -ECONNRESET, 0, NET_CULPRIT_VICTIM };
	static const struct net_load load = { 501, 0 };
	struct net_rank w;
	int ret, round = 0;

	(void)i;
	(void)arg;
	CHECK_EQ(net_rank_open(&w, 0, times() * NET_TIMEOUT_MS, &load), 0);
	/* What the victim has still to send in its last round dies with it: others know only the one before it as good. */
	CHECK_EQ(net_run_good_round(&w, 0), 0);
	if (net_node == net_victim) {
		CHECK_EQ(net_run_good_round(&w, 0), 0);
		raise(SIGKILL);
	}
	do {
		ret = net_run_round(&w, round++);
	} while (!ret);
	CHECK_EQ(net_check_error(w.comm, &expected, ret), 0);
	CHECK_EQ(net_rank_close(&w), 0);
	return 0;
}

/* ------------------------------------------------------------------ the node process */

static int released(void)
{
	int bad;

	flock(fileno(turn), LOCK_EX);
	bad = testlib_wait_released(0);
	flock(fileno(turn), LOCK_UN);
	return bad;
}

/* Run the rank of this node; @dies: that of the victim is killed. */
static void run(const char *name, testlib_rank_fn fn, bool dies)
{
	uint64_t began = testlib_now_ms();
	pid_t pid;
	int bad;

	testlib_fork_ranks(&pid, 1, fn, NULL);
	if (dies && net_node == net_victim)
		bad = !testlib_was_killed(&pid);
	else
		bad = testlib_wait_ranks_ms(&pid, 1, (uint64_t)times() * TESTLIB_HANG_MS);
	/* No node looks at the counters before all ranks have ended, and none goes on before all have looked. */
	bad |= net_any(false);
	bad |= released();
	bad = net_any(bad);
	net_step++;
	if (!net_node)
		ksft_test_result(!bad, "%s of %d nodes, %d ms", name, net_nodes,
				 (int)(testlib_now_ms() - began));
}

int main(void)
{
	net_init();
	net_layout(&net_cluster, 1, 1);
	net_victim = net_nodes / 2;
	turn = fopen("/run/net_many.turn", "a");
	if (!turn)
		ksft_exit_fail_msg("/run/net_many.turn: %s\n", strerror(errno));
	if (!net_node)
		ksft_set_plan(3);
	run("allreduce", allreduce_rank, false);
	run(all_pairs() ? "alltoall by connections of all pairs" : "alltoall", alltoall_rank,
	    false);
	run("a rank is killed, and all others name it: allreduce", victim_rank, true);
	if (net_node)
		return 0;
	ksft_finished();
}
