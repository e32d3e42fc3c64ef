// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rails that fail: two nodes with several of them, RDMA or TCP between them, collectives all the time. Rails are cut
 * and returned, one after the other, by a card that goes down, the loss of all packets or the removal of an RDMA
 * device: no call fails, every element is right, and connections go on by other rails. When all rails are cut, ranks
 * get an error that blames the right node.
 * Runs on every node of a cluster at once: tools/vm/run --topology switch:2@2rails [--env SWINGCOLL_TRANSPORT=tcp].
 *
 *	net_failover [WORD]	only cases with WORD in their names
 *
 * NET_FAILOVER_CUTS: so many cuts of a card, 20 if not set; NET_FAILOVER_SEED: repeat another run.
 */
#include <errno.h>
#include <sys/wait.h>

#include "net_ranks.h"

#define MAX_RAILS 8
#define PATIENCE_MS 60000 /* a cut is noticed in some ten seconds, on a busy machine later */
#define ROUNDS 3	  /* after so many, what was in flight has arrived */

/* Shared by the node process and its ranks. */
struct progress {
	uint64_t rounds[NET_LOCAL_RANKS];
	uint64_t longest_ms[NET_LOCAL_RANKS];
};

static struct progress *progress;
static unsigned int nrails, seed;

/* ------------------------------------------------------------------ rails */

/*
 * Rail 0 also carries what the node processes say to each other. What the kernel forgets of a card that is down is
 * saved: routes and neighbours. An rxe device whose card was down sends no requests to connect any more: it is made
 * again.
 */
static const char script[] =
	"set -e\n"
	"export PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"
	"nic=nic$2 rxe=rxe$2 save=/run/net_failover.$2\n"
	"has_rxe() { command -v rdma >/dev/null && [ -e /sys/class/infiniband/$rxe ]; }\n"
	"add_rxe() { rdma link add $rxe type rxe netdev $nic; }\n"
	"case $1 in\n"
	"has) command -v ip && command -v tc ;;\n"
	"down)\n"
	"	{\n"
	"		for scope in link global; do\n" /* Link scope first: the others need it. */
	"			ip -4 route show dev $nic scope $scope\n"
	"		done | sed \"s/^/route replace /; s/$/ dev $nic/; s/linkdown//\"\n"
	"		ip -4 neigh show dev $nic nud permanent |\n"
	"			sed \"s/^/neigh replace /; s/PERMANENT/nud permanent dev $nic/\"\n"
	"	} >$save\n"
	"	ip link set $nic down\n"
	"	;;\n"
	"up)\n"
	"	ip link set $nic up\n"
	"	ip -batch $save\n"
	"	if has_rxe; then rdma link delete $rxe; add_rxe; fi\n"
	"	;;\n"
	"remove) rdma link delete $rxe ;;\n"
	"return) add_rxe ;;\n"
	"cut) tc qdisc replace dev $nic root netem limit 10000 loss 100% ;;\n"
	"mend) tc qdisc replace dev $nic root netem limit 10000 ;;\n"
	"plain) tc qdisc del dev $nic root ;;\n"
	"esac\n";

static int command(const char *what, unsigned int rail)
{
	char number[16];
	int status;
	pid_t pid;

	snprintf(number, sizeof(number), "%u", rail);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (!strcmp(what, "has") && !freopen("/dev/null", "w", stdout))
			_exit(127);
		execl("/bin/sh", "sh", "-c", script, "net_failover", what, number, NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	if (status && strcmp(what, "has"))
		ksft_print_msg("node %d: '%s %u' failed (%d)\n", net_node, what, rail, status);
	return status;
}

/* ------------------------------------------------------------------ ranks */

static int load_rank(uint32_t i, void *arg)
{
	const struct net_load *load = arg;
	uint64_t last;
	struct net_rank w;

	CHECK_EQ(net_rank_open(&w, i, NET_TIMEOUT_MS, load), 0);
	CHECK_EQ(net_run_good_round(&w, 0), 0);
	net_shared->started[i] = 1;
	last = testlib_now_ms();
	/* The same number of rounds on all ranks, as long as one of them wants to go on. */
	for (unsigned int round = 0;; round++) {
		int32_t go = !__atomic_load_n(&net_shared->stop, __ATOMIC_ACQUIRE), any = 0;
		uint64_t now;

		CHECK_EQ(net_run_good_round(&w, round), 0);
		CHECK_EQ(swingcoll_allreduce(&go, &any, 1, SWINGCOLL_I32, SWINGCOLL_MAX, w.comm),
			 0);
		now = testlib_now_ms();
		if (now - last > progress->longest_ms[i])
			progress->longest_ms[i] = now - last;
		last = now;
		__atomic_add_fetch(&progress->rounds[i], 1, __ATOMIC_RELEASE);
		if (!any)
			break;
	}
	CHECK_EQ(net_rank_close(&w), 0);
	return 0;
}

/* Wait until each rank of this node has finished so many rounds more. False if one ends before, or none comes on. */
static bool wait_rounds(const pid_t *pid, unsigned int n)
{
	uint64_t limit = testlib_now_ms() + PATIENCE_MS, from[NET_LOCAL_RANKS];

	for (int i = 0; i < NET_LOCAL_RANKS; i++)
		from[i] = __atomic_load_n(&progress->rounds[i], __ATOMIC_ACQUIRE);
	for (int i = 0; i < NET_LOCAL_RANKS; i++)
		while (__atomic_load_n(&progress->rounds[i], __ATOMIC_ACQUIRE) < from[i] + n) {
			siginfo_t info = { 0 };

			if (testlib_now_ms() > limit ||
			    waitid(P_PID, pid[i], &info, WEXITED | WNOHANG | WNOWAIT) ||
			    info.si_pid) {
				ksft_print_msg("node %d: rank process %d does not come on\n",
					       net_node, i);
				return false;
			}
			testlib_sleep_ms(2);
		}
	return true;
}

/* ------------------------------------------------------------------ cases */

struct failover {
	const char *name;
	struct net_load load;
	const char *cut, *mend;
	bool netem;	   /* cards have a queueing discipline that can lose packets */
	bool rdma;	   /* only by RDMA */
	unsigned int cuts; /* 0: NET_FAILOVER_CUTS */
};

static const struct failover failovers[] = {
	{ "a card goes down, large vectors", { 600001, 0 }, "down", "up", .cuts = 0 },
	{ "a card goes down, several small ones in flight", { 2003, 4 }, "down", "up", .cuts = 0 },
	{ "all packets of a rail are lost",
	  { 200001, 2 },
	  "cut",
	  "mend",
	  .netem = true,
	  .cuts = 2 },
	{ "an RDMA device is removed", { 200001, 2 }, "remove", "return", .rdma = true, .cuts = 3 },
};

/* Cut one rail after the other, while ranks work, and return it. */
static int cut_rails(const struct failover *f, const pid_t *pid, unsigned int cuts)
{
	unsigned int rail = 0;

	for (unsigned int k = 0; k < cuts; k++) {
		bool good;

		/* Another than before: the last one may have no connections any more. */
		rail = (rail + 1 + rand_r(&seed) % (nrails - 1)) % nrails;
		if (command(f->cut, rail))
			return 1;
		good = wait_rounds(pid, ROUNDS);
		if (command(f->mend, rail) || !good ||
		    !wait_rounds(pid, 1 + rand_r(&seed) % ROUNDS))
			return 1;
	}
	return 0;
}

static int failover(const struct failover *f)
{
	unsigned int cuts = f->cuts ? f->cuts : testlib_env("NET_FAILOVER_CUTS", 20);
	uint64_t resumed = testlib_stat(SWC_STAT_CONNS_RESUMED);
	uint64_t resent = testlib_stat(SWC_STAT_BYTES_RESENT);
	struct net_load load = f->load;
	bool here = net_node == net_victim_node();
	pid_t pid[NET_LOCAL_RANKS];
	int bad;

	memset(net_shared, 0, sizeof(*net_shared));
	memset(progress, 0, sizeof(*progress));
	testlib_fork_ranks(pid, NET_LOCAL_RANKS, load_rank, &load);
	bad = net_any(!net_all_started(pid));
	if (here && !bad)
		bad = cut_rails(f, pid, cuts);
	__atomic_store_n(&net_shared->stop, 1, __ATOMIC_RELEASE);
	bad |= testlib_wait_ranks_ms(pid, NET_LOCAL_RANKS, (2 * cuts + 1) * (uint64_t)PATIENCE_MS);
	resumed = testlib_stat(SWC_STAT_CONNS_RESUMED) - resumed;
	resent = testlib_stat(SWC_STAT_BYTES_RESENT) - resent;
	ksft_print_msg(
		"node %d: %u cuts, %llu connections resumed, %llu bytes sent again, longest round %llu ms\n",
		net_node, here ? cuts : 0, (unsigned long long)resumed, (unsigned long long)resent,
		(unsigned long long)progress->longest_ms[0]);
	/* Each cut takes the path of some connection. */
	if (resumed < cuts / 2) {
		ksft_print_msg("node %d: few connections were resumed\n", net_node);
		bad = 1;
	}
	return net_any(bad);
}

/* ------------------------------------------------------------------ all rails */

static int doomed_rank(uint32_t i, void *arg)
{
	static const struct net_load load = { 30001, 0 };
	static const struct net_expected expected = { -ECONNRESET, -ETIMEDOUT,
						      NET_CULPRIT_VICTIM_NODE };
	struct net_rank w;
	int ret = 0;

	(void)arg;
	CHECK_EQ(net_rank_open(&w, i, NET_TIMEOUT_MS, &load), 0);
	CHECK_EQ(net_run_good_round(&w, 0), 0);
	net_shared->started[i] = 1;
	for (unsigned int round = 1; !ret; round++)
		ret = net_run_round(&w, round);
	CHECK_EQ(net_check_error(w.comm, &expected, ret), 0);
	net_rank_close(&w);
	return 0;
}

static int all_rails(void)
{
	bool here = net_node == net_victim_node();
	pid_t pid[NET_LOCAL_RANKS];
	int bad;

	memset(net_shared, 0, sizeof(*net_shared));
	testlib_fork_ranks(pid, NET_LOCAL_RANKS, doomed_rank, NULL);
	bad = net_any(!net_all_started(pid));
	for (unsigned int r = nrails; here && !bad && r--;)
		bad |= command("down", r);
	bad |= testlib_wait_ranks(pid, NET_LOCAL_RANKS);
	for (unsigned int r = 0; here && r < nrails; r++)
		bad |= command("up", r);
	return net_any(bad);
}

/* ------------------------------------------------------------------ main */

static unsigned int count_rails(void)
{
	const char *addrs = getenv("SWINGCOLL_ADDRS");
	unsigned int n = addrs && *addrs ? 1 : 0;

	for (; addrs && *addrs; addrs++)
		n += *addrs == ',';
	return n;
}

static void netem(const char *what)
{
	for (unsigned int r = 0; r < nrails; r++)
		command(what, r);
}

static void cases(void)
{
	bool lacks = nrails < 2 || command("has", 0);

	for (unsigned int k = 0; k < ARRAY_SIZE(failovers); k++) {
		const struct failover *f = &failovers[k];

		if (f->rdma && net_transport() != SWC_TRANSPORT_RDMA)
			continue;
		if (!net_case_begin(f->name))
			continue;
		if (net_any(lacks)) {
			if (!net_node)
				ksft_test_result_skip("%s: needs several rails, ip and tc",
						      f->name);
			continue;
		}
		if (f->netem)
			netem("mend");
		net_case_end(f->name, failover(f));
		if (f->netem)
			netem("plain");
	}
	if (!net_case_begin("all cards go down"))
		return;
	if (net_any(lacks)) {
		if (!net_node)
			ksft_test_result_skip("all cards go down: needs several rails, ip and tc");
		return;
	}
	net_case_end("all cards go down", all_rails());
}

int main(int argc, char **argv)
{
	nrails = count_rails();
	seed = testlib_env_seed("NET_FAILOVER_SEED");
	progress = testlib_shared_alloc(sizeof(*progress));
	printf("# NET_FAILOVER_SEED=%u\n", seed);
	return net_main(argc, argv, cases);
}
