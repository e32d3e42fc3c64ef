// SPDX-License-Identifier: GPL-2.0-only
/*
 * A node dies among collectives, as by a power failure: it says nothing any more. The ranks of the others are told
 * in time that it was one of its ranks, make a communicator without them, and go on. Runs on every node of a cluster
 * at once. Either the node is switched off:
 *
 *	tools/vm/run --nodes 3 --kill 1@15 --env NET_KILL_NODE=1 -- net_kill
 *
 * or nodes reset themselves, so many times, any but node 0, at random moments, and are back for the next time:
 *
 *	tools/vm/run --nodes 3 --reboot --timeout 900 --env NET_KILL_RESETS=20 -- net_kill
 *
 * NET_KILL_SEED: repeat those of another run. Nodes that are left must reach each other without the dead one.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>

#include "net_ranks.h"

#define PATIENCE_MS 60000 /* until the node dies */
#define DEADLINE_MS 60000 /* devices are to give it up before, however busy the machine is */
#define TOLD_MS 30000	  /* they do so in some ten seconds */
#define ROUNDS 10

static int dead;
static int *told_ms;
static struct net_load load = { 9001, 0 };

/* The others' ranks, in their order. */
static int go_on(struct net_work *w)
{
	struct coll_case c = { .coll = SWINGCOLL_ALLGATHER, .dtype = SWINGCOLL_I32, .count = 9001 };
	void *mem = malloc(coll_bytes(&c, net_cluster.nranks)); /* the largest */
	struct swingcoll_comm *rest;
	int gone[NET_LOCAL];

	for (int i = 0; i < NET_LOCAL; i++)
		gone[i] = net_cluster.first[dead] + i;
	CHECK_EQ(swingcoll_comm_shrink(w->comm, gone, NET_LOCAL, &rest), 0);
	CHECK_EQ(net_rank_down(w), 0);
	CHECK_EQ(swingcoll_comm_size(rest), net_cluster.nranks - NET_LOCAL);
	CHECK_EQ(swingcoll_comm_rank(rest), w->rank < gone[0] ? w->rank : w->rank - NET_LOCAL);
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
	static const struct net_expected expected = { -ECONNRESET, 0, NET_VICTIMS_NODE };
	uint64_t start = swct_ms(), good, bad;
	struct net_work w;
	int ret, round = 0;
	char text[256];

	(void)arg;
	CHECK_EQ(net_rank_up(&w, i, DEADLINE_MS, &load), 0);
	CHECK_EQ(net_well(&w, 0), 0);
	net_shared->started[i] = 1;
	do {
		CHECK(swct_ms() < start + PATIENCE_MS);
		good = swct_ms();
		ret = net_once(&w, round++);
	} while (!ret);
	bad = swct_ms();
	swingcoll_comm_error(w.comm, text, sizeof(text), NULL);
	ksft_print_msg("rank %d, after %d ms: %s\n", w.rank, (int)(bad - good), text);
	CHECK_EQ(net_check_error(w.comm, &expected, ret), 0);
	CHECK(bad - good < TOLD_MS);
	*told_ms = (int)(bad - good);
	return go_on(&w);
}

/* ------------------------------------------------------------------ nodes that reset themselves */

/* Node 0's counts: a node that has just booted learns from it how far all are. */
static struct {
	unsigned int seed;
	unsigned int step;
	int round;
} now;

static void do_as_node_0(void)
{
	typeof(now) all[NET_MAX_NODES];

	now.step = net_step;
	net_exchange(&now, all, sizeof(now));
	now = all[0];
	net_step = now.step;
}

/* Like a power failure: nothing is ended, nobody is told. Returns only if that is not possible. */
static int reset(const pid_t *pid, unsigned int ms)
{
	int fd;

	CHECK(net_all_started(pid));
	swct_sleep_ms(ms);
	fd = open("/proc/sysrq-trigger", O_WRONLY);
	CHECK(fd >= 0 && write(fd, "b", 1) == 1);
	return 1;
}

/* Any node but 0, any load, any moment; all nodes draw the same. */
static int random_reset(unsigned int seed, char *name, size_t bytes)
{
	pid_t pid[NET_LOCAL];
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
	swct_fork(pid, NET_LOCAL, rank_fn, NULL);
	if (net_node == dead)
		bad = reset(pid, ms);
	return bad | swct_reap(pid, NET_LOCAL, PATIENCE_MS + 60000);
}

static unsigned int first_seed(void)
{
	const char *text = getenv("NET_KILL_SEED");
	unsigned int seed;

	if (text)
		return strtoul(text, NULL, 0);
	getrandom(&seed, sizeof(seed), 0);
	return seed;
}

static int resets(int n)
{
	char name[128] = "";
	int bad = 0;

	now.seed = first_seed();
	do_as_node_0();
	if (!net_node) {
		ksft_print_msg("%d resets: NET_KILL_SEED=%u\n", n, now.seed);
		ksft_set_plan(n);
	}
	for (;;) {
		/* Who was reset is there again. */
		if (now.round)
			net_case_end(name, bad);
		if (now.round == n)
			break;
		bad = random_reset(now.seed + now.round, name, sizeof(name));
		now.round++;
		net_meet();
		do_as_node_0();
	}
	if (net_node)
		return 0;
	ksft_finished();
}

/* ------------------------------------------------------------------ one that is switched off */

static int switched_off(void)
{
	int bad;

	net_victim = net_cluster.first[dead];
	bad = swct_ranks(NET_LOCAL, PATIENCE_MS + 60000, rank_fn, NULL);
	if (net_node)
		return bad;
	ksft_set_plan(1);
	ksft_test_result(!bad, "node %d dies: told within %d ms, going on with %d ranks", dead,
			 *told_ms, net_cluster.nranks - NET_LOCAL);
	ksft_finished();
}

int main(void)
{
	const char *node = getenv("NET_KILL_NODE"), *n = getenv("NET_KILL_RESETS");

	net_ranks_start();
	told_ms = swct_shared(sizeof(*told_ms));
	if (n && atoi(n) > 0)
		return resets(atoi(n));
	dead = node ? atoi(node) : 0;
	if (dead < 1 || dead >= net_nodes) {
		if (!net_node)
			ksft_exit_skip(
				"needs NET_KILL_NODE, a node (not 0) that dies meanwhile, or "
				"NET_KILL_RESETS, how many times one resets itself\n");
		return 0;
	}
	return switched_off();
}
