// SPDX-License-Identifier: GPL-2.0-only
/*
 * A node dies among collectives, as by a power failure: it falls silent. The ranks of the other nodes get an error that
 * names one of its ranks, shrink the communicator, and continue. Runs on every node of a cluster at once. Either the
 * node is switched off:
 *
 *	tools/vm/run --nodes 3 --kill 1@15 --env NET_KILL_NODE=1 -- net_kill
 *
 * or nodes other than node 0 reset themselves at random moments, so many times, and take part again after the boot:
 *
 *	tools/vm/run --nodes 3 --reboot --timeout 900 --env NET_KILL_RESETS=20 -- net_kill
 *
 * NET_KILL_SEED: repeat another run. The other nodes must reach each other without the dead one.
 */
#include <errno.h>
#include <fcntl.h>

#include "net_ranks.h"

#define PATIENCE_MS 60000  /* until the node dies */
#define DEADLINE_MS 120000 /* not to be reached: devices give up a silent peer before */
#define NOTIFIED_MS 30000  /* which takes them some ten seconds */
#define ROUNDS 10

static int dead;
static int *notified_ms; /* how long it took */
static struct net_load load = { 9001, 0 };

/* Continue with the ranks of the other nodes, in their order. */
static int continue_without(struct net_rank *w)
{
	struct coll_case c = { .coll = SWINGCOLL_ALLGATHER, .dtype = SWINGCOLL_I32, .count = 9001 };
	void *mem = malloc(coll_bytes(&c, net_cluster.nranks)); /* the largest */
	struct swingcoll_comm *rest;
	int gone[NET_LOCAL_RANKS];

	for (int i = 0; i < NET_LOCAL_RANKS; i++)
		gone[i] = net_cluster.first[dead] + i;
	CHECK_EQ(swingcoll_comm_shrink(w->comm, gone, NET_LOCAL_RANKS, &rest), 0);
	CHECK_EQ(net_rank_close(w), 0);
	CHECK_EQ(swingcoll_comm_size(rest), net_cluster.nranks - NET_LOCAL_RANKS);
	CHECK_EQ(swingcoll_comm_rank(rest),
		 w->rank < gone[0] ? w->rank : w->rank - NET_LOCAL_RANKS);
	for (int i = 0; i < ROUNDS; i++) {
		c.coll = i % 2 ? SWINGCOLL_ALLREDUCE : SWINGCOLL_ALLGATHER;
		CHECK_EQ(coll_run(&c, mem, rest, i), 0);
	}
	CHECK_EQ(swingcoll_barrier(rest), 0);
	CHECK_EQ(swingcoll_comm_destroy(rest), 0);
	free(mem);
	return 0;
}

static int rank_fn(uint32_t i, void *arg)
{
	static const struct net_expected expected = { -ECONNRESET, 0, NET_CULPRIT_VICTIM_NODE };
	uint64_t start = testlib_now_ms(), good, bad;
	struct net_rank w;
	int ret, round = 0;
	char text[256];

	(void)arg;
	CHECK_EQ(net_rank_open(&w, i, DEADLINE_MS, &load), 0);
	CHECK_EQ(net_run_good_round(&w, 0), 0);
	net_shared->started[i] = 1;
	do {
		CHECK(testlib_now_ms() < start + PATIENCE_MS);
		good = testlib_now_ms();
		ret = net_run_round(&w, round++);
	} while (!ret);
	bad = testlib_now_ms();
	swingcoll_comm_error(w.comm, text, sizeof(text), NULL);
	ksft_print_msg("rank %d, after %d ms: %s\n", w.rank, (int)(bad - good), text);
	CHECK_EQ(net_check_error(w.comm, &expected, ret), 0);
	CHECK(swingcoll_comm_failed(ret));
	CHECK(bad - good < NOTIFIED_MS);
	*notified_ms = (int)(bad - good);
	return continue_without(&w);
}

/* ------------------------------------------------------------------ nodes that reset themselves */

/* The state of node 0, from which a node that has just booted learns how far the others are. */
static struct {
	unsigned int seed;
	unsigned int step;
	int round;
} now;

static void follow_node_0(void)
{
	typeof(now) all[NET_MAX_NODES];

	now.step = net_step;
	net_allgather(&now, all, sizeof(now));
	now = all[0];
	net_step = now.step;
}

/* Reset this node without any shutdown. Returns only if that is not possible. */
static int reset(const pid_t *pid, unsigned int ms)
{
	int fd;

	CHECK(net_all_started(pid));
	testlib_sleep_ms(ms);
	fd = open("/proc/sysrq-trigger", O_WRONLY);
	CHECK(fd >= 0 && write(fd, "b", 1) == 1);
	return 1;
}

/* A random node, load and moment, the same on all nodes. */
static int random_reset(unsigned int seed, char *name, size_t bytes)
{
	pid_t pid[NET_LOCAL_RANKS];
	unsigned int ms;
	int bad = 0;

	dead = 1 + rand_r(&seed) % (net_nodes - 1);
	net_victim = net_cluster.first[dead];
	load.inflight = rand_r(&seed) % 3 ? rand_r(&seed) % (NET_MAX_INFLIGHT + 1) : 0;
	load.count = 1 + rand_r(&seed) % (rand_r(&seed) % 3 ? 3000 : 60000);
	ms = 1 + rand_r(&seed) % 500;
	snprintf(name, bytes, "node %d is reset after %u ms, %zu elements, %d in flight", dead, ms,
		 load.count, load.inflight);
	net_case_begin(name);
	memset(net_shared, 0, sizeof(*net_shared));
	testlib_fork_ranks(pid, NET_LOCAL_RANKS, rank_fn, NULL);
	if (net_node == dead)
		bad = reset(pid, ms);
	return bad | testlib_wait_ranks(pid, NET_LOCAL_RANKS);
}

static int resets(int n)
{
	char name[128] = "";
	int bad = 0;

	now.seed = testlib_env_seed("NET_KILL_SEED");
	follow_node_0();
	if (!net_node) {
		ksft_print_msg("%d resets: NET_KILL_SEED=%u\n", n, now.seed);
		ksft_set_plan(n);
	}
	for (;;) {
		/* All nodes are up again. */
		if (now.round)
			net_case_end(name, bad);
		if (now.round == n)
			break;
		bad = random_reset(now.seed + now.round, name, sizeof(name));
		now.round++;
		net_rejoin();
		follow_node_0();
	}
	if (net_node)
		return 0;
	ksft_finished();
}

/* ------------------------------------------------------------------ a node that is switched off */

static int switched_off(void)
{
	int bad;

	net_victim = net_cluster.first[dead];
	bad = testlib_run_ranks(NET_LOCAL_RANKS, rank_fn, NULL);
	if (net_node)
		return bad;
	ksft_set_plan(1);
	ksft_test_result(!bad, "node %d dies: notified within %d ms, continued with %d ranks", dead,
			 *notified_ms, net_cluster.nranks - NET_LOCAL_RANKS);
	ksft_finished();
}

int main(void)
{
	const char *node = getenv("NET_KILL_NODE"), *n = getenv("NET_KILL_RESETS");

	net_ranks_init();
	notified_ms = testlib_shared_alloc(sizeof(*notified_ms));
	if (n && atoi(n) > 0)
		return resets(atoi(n));
	dead = node ? atoi(node) : 0;
	if (dead < 1 || dead >= net_nodes) {
		if (!net_node)
			ksft_exit_skip(
				"needs NET_KILL_NODE, the node (not 0) that is switched off, or "
				"NET_KILL_RESETS, how many times a node resets itself\n");
		return 0;
	}
	return switched_off();
}
