// SPDX-License-Identifier: GPL-2.0-only
/*
 * All-to-all among nodes of several ranks: by nodes, in one segment and in two, and by all ranks with all
 * others. Every result is checked; and how many connections each node opens and how many messages it sends,
 * where each node is a machine of its own: by nodes, few for each pair of nodes, and not one for each pair of
 * their ranks. Runs on every node of a cluster at once:
 *
 *	tools/vm/run --nodes 3 -- net_alltoall [RANKS of each node]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "net.h"

#define MOST_LOCAL 8
#define ALL_MS 600000
#define BOOT_ID 36

static const struct way {
	const char *algo;
	int least_nodes;
} ways[] = { { "by-nodes:1", 2 }, { "by-nodes:2", 4 }, { "rotate", 2 } };
#define NWAYS ARRAY_SIZE(ways)

static struct net_layout layout;
static int local;
static bool counted; /* counters are those of one node */
static struct swingcoll_bootstrap *boot;

/* Of this node, by its first rank. */
static struct counts {
	uint64_t conns, messages;
} * counts;

/* Wait for all ranks without the module. */
static int meet(void)
{
	char mine = 0, all[NET_MAX_NODES * MOST_LOCAL];

	return boot->allgather(boot->arg, &mine, all, 1);
}

/*
 * By nodes in one segment, the rows of all sums are dealt out to the local ranks, so many to each as there
 * are nodes: how many of them have a part of the sums with other nodes.
 */
static uint64_t parts(void)
{
	uint64_t n = 0;

	for (int sum = 0; sum < net_nodes; sum++)
		if (sum != 2 * net_node % net_nodes)
			n += (sum * local + local - 1) / net_nodes - sum * local / net_nodes + 1;
	return n;
}

/* Of connections and of messages, in either case. */
static uint64_t expected(const struct way *w)
{
	return strcmp(w->algo, "rotate") ? parts() : (uint64_t)local * local * (net_nodes - 1);
}

static int one(struct swingcoll_comm *comm, size_t count, bool in_place, struct counts *c)
{
	struct coll_case k = { .coll = SWINGCOLL_ALLTOALL,
			       .dtype = SWINGCOLL_I32,
			       .count = count,
			       .in_place = in_place };
	void *mem = malloc(coll_bytes(&k, layout.nranks));
	int ret;

	CHECK(mem);
	CHECK_EQ(meet(), 0);
	c->conns = testlib_stat(SWC_STAT_CONNS_OPENED);
	c->messages = testlib_stat(SWC_STAT_MSGS_SENT);
	CHECK_EQ(meet(), 0);
	ret = coll_run(&k, mem, comm, count);
	free(mem);
	CHECK_EQ(ret, 0);
	CHECK_EQ(meet(), 0);
	c->conns = testlib_stat(SWC_STAT_CONNS_OPENED) - c->conns;
	c->messages = testlib_stat(SWC_STAT_MSGS_SENT) - c->messages;
	return 0;
}

static int rank_fn(uint32_t i, void *arg)
{
	static const size_t sizes[] = { 1, 61, 1021, 40009 };
	const struct way *w = arg;
	struct swingcoll_comm_opts opts = { .algo = w->algo, .timeout_ms = TESTLIB_EVENT_MS };
	struct swingcoll_comm *comm;
	struct counts first, other;

	net_set_rank_env(&layout, net_layout_rank(&layout, i), w - ways);
	CHECK_EQ(swingcoll_bootstrap_auto(&boot), 0);
	CHECK_EQ(swingcoll_comm_create_from(&comm, boot, &opts), 0);
	CHECK_EQ(one(comm, 17, false, &first), 0);
	/* Not another one in its place. */
	CHECK(!strncmp(swingcoll_comm_algo(comm), w->algo, strcspn(w->algo, ":")));
	for (unsigned int k = 0; k < 2 * ARRAY_SIZE(sizes); k++) {
		CHECK_EQ(one(comm, sizes[k / 2], k & 1, &other), 0);
		/* All connections are there, for all sizes. */
		if (counted && other.conns) {
			ksft_print_msg("rank %d: %s opens %llu connections later\n", boot->rank,
				       w->algo, (unsigned long long)other.conns);
			return 1;
		}
	}
	if (!i)
		*counts = first;
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	swingcoll_bootstrap_free(boot);
	return 0;
}

/* Is each node a machine of its own? */
static bool is_alone(void)
{
	char mine[BOOT_ID] = "", all[NET_MAX_NODES][BOOT_ID];
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC), same = 0;

	if (fd < 0 || read(fd, mine, sizeof(mine)) != sizeof(mine))
		ksft_exit_fail_msg("node %d has no boot id\n", net_node);
	close(fd);
	net_allgather(mine, all, sizeof(mine));
	for (int n = 0; n < net_nodes; n++)
		for (int k = 0; k < n; k++)
			same += !memcmp(all[n], all[k], sizeof(mine));
	return !same;
}

/* One way on all nodes. False if the ranks cannot go on. */
static bool run(const struct way *w)
{
	struct counts all[NET_MAX_NODES];
	uint64_t conns = 0, messages = 0, want, wanted[NET_MAX_NODES], sum = 0;
	bool bad, right = true;
	pid_t pid[MOST_LOCAL];

	testlib_fork_ranks(pid, local, rank_fn, (void *)w);
	bad = net_any(testlib_wait_ranks_ms(pid, local, ALL_MS));
	want = expected(w);
	net_allgather(counts, all, sizeof(*all));
	net_allgather(&want, wanted, sizeof(want));
	for (int n = 0; n < net_nodes; n++) {
		right &= all[n].conns == wanted[n] && all[n].messages == wanted[n];
		conns += all[n].conns;
		messages += all[n].messages;
		sum += wanted[n];
	}
	if (net_node)
		return !bad;
	ksft_test_result(!bad, "%s: %d nodes of %d ranks", w->algo, net_nodes, local);
	/* In two segments the parts are others. */
	if (!counted || strchr(w->algo, '2'))
		return !bad;
	ksft_test_result(
		!bad && right,
		"%s: all nodes have opened %llu connections, sent %llu messages; %llu expected",
		w->algo, (unsigned long long)conns, (unsigned long long)messages,
		(unsigned long long)sum);
	return !bad;
}

int main(int argc, char **argv)
{
	bool bad = false;

	local = argc > 1 ? atoi(argv[1]) : 4;
	net_init();
	if (local < 2 || local > MOST_LOCAL)
		ksft_exit_fail_msg("a node has 2 to %d ranks\n", MOST_LOCAL);
	net_layout(&layout, local, local);
	counts = testlib_shared_alloc(sizeof(*counts));
	counted = is_alone();
	if (!net_node)
		ksft_set_plan(2 + (net_nodes >= 4) + 2 * counted + 1);
	for (unsigned int w = 0; w < NWAYS && !bad; w++)
		if (net_nodes >= ways[w].least_nodes)
			bad = !run(&ways[w]);
	bad = net_any(testlib_wait_released(0)) || bad;
	if (net_node)
		return bad;
	ksft_test_result(!bad, "everything is released");
	ksft_finished();
}
