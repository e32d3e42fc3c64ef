// SPDX-License-Identifier: GPL-2.0-only
/*
 * Failures between nodes: ranks that die, hang, leave or call something else, links that lose some packets or all of
 * them, devices that are removed. Every rank gets an error in time that names the rank at fault, all resources are
 * released, and a new communicator works. Runs on every node of a cluster at once.
 *
 *	net_fail [WORD]		only cases with WORD in their names
 *
 * NET_FAIL_KILLS: so many random kills, 50 if not set; NET_FAIL_SECONDS: for so long instead; NET_FAIL_SEED: repeat
 * another run. SWC_TEST_SHORT=1: fewer rounds while packets are lost, and not with several in flight.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "net_ranks.h"
#include "pairs.h"

#define SHORT_MS 3000	 /* deadlines that end an operation */
#define SILENCE_MS 20000 /* devices give up a silent peer in some ten seconds */

/* ------------------------------------------------------------------ commands */

/* Commands for all RDMA devices of the node and their network interfaces. */
static const char script[] =
	"set -e\n"
	"export PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"
	/* As `rdma link` prints them: link rxe0/1 state ACTIVE physical_state LINK_UP netdev nic0 */
	"each() {\n"
	"	rdma link show | while read -r _ dev words; do\n"
	"		card=${words##*netdev }\n"
	"		$1 ${dev%/*} ${card%% *}\n"
	"	done\n"
	"}\n"
	/* Devices are named after their kind, rxe or siw, and the card. */
	"link() { rdma link add $1 type ${1%%[0-9]*} netdev $2; }\n"
	"save=/run/net_fail\n"
	/* Save what the kernel forgets of an interface that is down: IPv6 addresses, routes and neighbours. */
	"down() {\n"
	"	ip -6 -o addr show dev $2 scope global |\n"
	"		sed -E \"s/.* inet6 ([^ ]*).*/addr replace \\1 dev $2 nodad/\" >$save.$2\n"
	"	{\n"
	"		ip -4 route show dev $2 scope link\n" /* Those without a gateway first: the others need them. */
	"		ip -4 route show dev $2 scope global\n"
	"		ip -6 route show dev $2 | sed '/ via /d'\n"
	"		ip -6 route show dev $2 | sed '/ via /!d'\n"
	"	} | sed \"s/^/route replace /; s/$/ dev $2/; s/linkdown//\" >>$save.$2\n"
	"	for family in -4 -6; do\n"
	"		ip $family neigh show dev $2 nud permanent\n"
	"	done | sed \"s/^/neigh replace /; s/PERMANENT/nud permanent dev $2/\" >>$save.$2\n"
	"	ip link set $2 down\n"
	"}\n"
	/* A soft device cannot connect again after its connection manager had no route: add a new one. */
	"up() {\n"
	"	ip link set $2 up\n"
	"	ip -batch $save.$2\n"
	"	rdma link delete $1\n"
	"	link $1 $2\n"
	"}\n"
	/*
	 * An interface refuses packets while it gets another queueing discipline, which a soft device takes for an
	 * error: connections or the connection manager break for good. So netem stays, and only its options change.
	 */
	"cut() { echo qdisc replace dev $2 root netem limit 10000 loss 100%; }\n"
	"lossy() { echo qdisc replace dev $2 root netem limit 10000 delay 1ms loss 1% reorder 10% 50%; }\n"
	"mend() { echo qdisc replace dev $2 root netem limit 10000; }\n"
	"hold() { echo qdisc replace dev $2 root netem limit 10000 delay 200s; }\n"
	/* What it holds has its time already. */
	"drop() { plain $1 $2; mend $1 $2; }\n"
	"plain() { echo qdisc del dev $2 root; }\n"
	"remove() { echo $1 $2 >>$save.devices; rdma link delete $1; }\n"
	"case $1 in\n"
	"has) command -v $2 ;;\n"
	"remove) : >$save.devices; each remove ;;\n"
	"add) while read -r dev card; do link $dev $card; done <$save.devices ;;\n"
	"cut | hold | drop | lossy | mend | plain) each $1 | tc -batch - ;;\n"
	/* Prepare all commands first: packets must flow again after one second on a busy machine, too. */
	"blink)\n"
	"	after=$(each mend)\n"
	"	each cut | tc -batch -\n"
	"	sleep 1\n"
	"	echo \"$after\" | tc -batch -\n"
	"	;;\n"
	"*) each $1 ;;\n"
	"esac\n";

static int command(const char *what, const char *arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct sched_param urgent = { .sched_priority = 1 };

		/* Before busy ranks. */
		sched_setscheduler(0, SCHED_RR, &urgent);
		if (!strcmp(what, "has"))
			freopen("/dev/null", "w", stdout);
		execl("/bin/sh", "sh", "-c", script, "net_fail", what, arg, NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	if (status && strcmp(what, "has"))
		ksft_print_msg("node %d: '%s' failed (%d)\n", net_node, what, status);
	return status;
}

/* ------------------------------------------------------------------ failures */

enum how {
	KILL,
	EXIT,
	LEAVE,
	ABORT,
	STOP,
	MISMATCH_COUNT,
	MISMATCH_COLL,
	MISMATCH_TYPE,
	MISMATCH_DIRECT,
	MISMATCH_PARTITION,
	CUT,
	HOLD,
	DOWN,
	REMOVE
};

struct failure {
	const char *name;
	enum how how;
	struct net_load load;
	uint32_t timeout_ms;
	struct net_expected expected;
	unsigned int delay_ms; /* from the start of the load to the event; 0: 100 */
	const char *needs;
};

static const struct failure failures[] = {
	{ "a rank is killed among small operations",
	  KILL,
	  { 1000, 0 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, 0, NET_CULPRIT_VICTIM } },
	{ "a rank is killed among large operations",
	  KILL,
	  { 700001, 0 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, 0, NET_CULPRIT_VICTIM } },
	{ "a rank is killed with 8 in flight",
	  KILL,
	  { 30001, 8 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, 0, NET_CULPRIT_VICTIM } },
	{ "a rank exits",
	  EXIT,
	  { 1000, 0 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, 0, NET_CULPRIT_VICTIM } },
	{ "a rank leaves early",
	  LEAVE,
	  { 1000, 0 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, 0, NET_CULPRIT_VICTIM } },
	{ "a rank leaves early, 8 in flight elsewhere",
	  LEAVE,
	  { 1000, 8 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, 0, NET_CULPRIT_VICTIM } },
	{ "a rank aborts",
	  ABORT,
	  { 1000, 0 },
	  NET_TIMEOUT_MS,
	  { -ECONNABORTED, 0, NET_CULPRIT_VICTIM } },
	{ "a rank aborts, 8 in flight elsewhere",
	  ABORT,
	  { 30001, 8 },
	  NET_TIMEOUT_MS,
	  { -ECONNABORTED, 0, NET_CULPRIT_VICTIM } },
	{ "a rank is stopped past the deadline",
	  STOP,
	  { 1000, 0 },
	  SHORT_MS,
	  { -ETIMEDOUT, 0, NET_CULPRIT_VICTIM } },
	{ "ranks of a node call with another count",
	  MISMATCH_COUNT,
	  { 1000, 0 },
	  NET_TIMEOUT_MS,
	  { -EPROTO, 0, NET_CULPRIT_CALLER } },
	{ "ranks of a node call another collective",
	  MISMATCH_COLL,
	  { 1000, 0 },
	  NET_TIMEOUT_MS,
	  { -EPROTO, 0, NET_CULPRIT_CALLER } },
	{ "ranks of a node call with another type, large",
	  MISMATCH_TYPE,
	  { 300000, 0 },
	  NET_TIMEOUT_MS,
	  { -EPROTO, 0, NET_CULPRIT_CALLER } },
	{ "ranks of a node expect a smaller broadcast, which takes another way",
	  MISMATCH_DIRECT,
	  { 1000, 0 },
	  NET_TIMEOUT_MS,
	  { -EPROTO, 0, NET_CULPRIT_CALLER } },
	{ "ranks of a node call a partitioned collective",
	  MISMATCH_PARTITION,
	  { 30001, 0 },
	  NET_TIMEOUT_MS,
	  { -EPROTO, 0, NET_CULPRIT_CALLER } },
	{ "all packets are lost past the deadline",
	  CUT,
	  { 30001, 0 },
	  SHORT_MS,
	  { -ETIMEDOUT, -ECONNRESET, NET_CULPRIT_OTHER_NODE },
	  .needs = "tc" },
	{ "all packets are lost until devices give up",
	  CUT,
	  { 30001, 4 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, 0, NET_CULPRIT_OTHER_NODE },
	  .needs = "tc" },
	{ "packets stay in the queues of cards past the deadline",
	  HOLD,
	  { 700001, 0 },
	  SHORT_MS,
	  { -ETIMEDOUT, -ECONNRESET, NET_CULPRIT_OTHER_NODE },
	  .needs = "tcp" },
	/* Links go down one after the other: by the last ones the node can still tell that the first is down. */
	{ "links of a node are down past the deadline",
	  DOWN,
	  { 30001, 0 },
	  SHORT_MS,
	  { -ETIMEDOUT, -ECONNRESET, NET_CULPRIT_VICTIM_NODE },
	  .needs = "ip" },
	{ "RDMA devices are removed under load",
	  REMOVE,
	  { 200001, 0 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, -ENODEV, NET_CULPRIT_VICTIM_NODE },
	  .needs = "rdma" },
	{ "RDMA devices are removed with 8 in flight",
	  REMOVE,
	  { 30001, 8 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, -ENODEV, NET_CULPRIT_VICTIM_NODE },
	  .needs = "rdma" },
};

static bool is_self(enum how how)
{
	return how == EXIT || how == LEAVE || how == ABORT;
}

/* Does the failing rank or its kernel tell the others? If not, only silence does. */
static bool is_told(enum how how)
{
	return how != STOP && how != CUT && how != HOLD && how != DOWN;
}

static unsigned int parameter(const char *name)
{
	unsigned int value = 0;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/swingcoll/parameters/%s", name);
	f = fopen(path, "re");
	if (f && fscanf(f, "%u", &value) != 1)
		value = 0;
	if (f)
		fclose(f);
	return value;
}

/*
 * When a silent peer is given up: by devices after seven acknowledgement timeouts, by TCP after one of its own; and some
 * time for a heartbeat. Where there are other paths, the higher rank waits for the lower one to notice that, too, and to
 * try them.
 */
static unsigned int give_up_ms(void)
{
	bool tcp = net_transport() != SWC_TRANSPORT_RDMA,
	     paths = !!strchr(getenv("SWINGCOLL_ADDRS") ?: "", ',');
	unsigned int ack = parameter("rdma_ack_timeout") & 31;
	unsigned int ms = tcp ? 2 * parameter("tcp_timeout_ms")
			      : (unsigned int)(10 * 4096e-6 * (double)(1ull << ack));

	return paths ? 2 * ms + parameter(tcp ? "tcp_resume_ms" : "rdma_resume_ms") : ms;
}

/* After so many ms every rank must have its error. */
static unsigned int within(const struct failure *t)
{
	unsigned int ms = give_up_ms();

	if (is_told(t->how))
		return 1000;
	if (ms < SILENCE_MS)
		ms = SILENCE_MS;
	return t->timeout_ms < ms ? t->timeout_ms : ms;
}

static bool is_mismatch(enum how how)
{
	return how == MISMATCH_COUNT || how == MISMATCH_COLL || how == MISMATCH_TYPE ||
	       how == MISMATCH_DIRECT || how == MISMATCH_PARTITION;
}

/* A request with one partition, where other ranks call an ordinary collective. */
static int as_partition(struct net_rank *w)
{
	struct swingcoll_partitioned *part;
	int ret;

	ret = swingcoll_pallreduce_init(w->mem[0], w->mem[0], 1, w->c.count, w->c.dtype, w->c.op,
					w->comm, &part);
	if (ret)
		return ret;
	ret = swingcoll_pstart(part);
	if (!ret)
		ret = swingcoll_pready(part, 0);
	if (!ret)
		ret = swingcoll_pwait(part, SWINGCOLL_ALL_PARTITIONS);
	swingcoll_pfree(part);
	return ret;
}

static int mismatch(struct net_rank *w, enum how how)
{
	struct coll_case c = w->c;

	if (how == MISMATCH_PARTITION)
		return as_partition(w);
	if (how == MISMATCH_COUNT)
		c.count--;
	else if (how == MISMATCH_TYPE)
		c.dtype = SWINGCOLL_F32;
	else
		c.coll = SWINGCOLL_BROADCAST;
	return coll_run(&c, w->mem[0], w->comm, 0);
}

/* A large broadcast, whose root waits for a rendezvous that ranks with a small one do not offer. */
static int too_large(struct net_rank *w)
{
	struct coll_case c = { .coll = SWINGCOLL_BROADCAST, .dtype = SWINGCOLL_I64 };
	void *mem;
	int ret;

	c.count = net_node == net_victim_node() ? 100 : 200000;
	mem = malloc(coll_bytes(&c, net_cluster.nranks));
	ret = mem ? coll_run(&c, mem, w->comm, 0) : -ENOMEM;
	free(mem);
	return ret;
}

/* The rank that fails by itself, after some rounds. */
static int misbehave(struct net_rank *w, enum how how)
{
	for (int i = 0; i < 5; i++)
		CHECK_EQ(net_run_good_round(w, i), 0);
	if (how == EXIT)
		_exit(0);
	if (how == ABORT)
		CHECK_EQ(swingcoll_comm_abort(w->comm), 0);
	CHECK_EQ(net_rank_close(w), 0);
	return 0;
}

/* Continue without the victim. */
static int continue_without(struct net_rank *w)
{
	struct swingcoll_comm *rest;
	struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_I64, .count = 999 };
	void *mem = malloc(coll_bytes(&c, net_cluster.nranks));

	CHECK_EQ(swingcoll_comm_shrink(w->comm, NULL, 0, &rest), 0);
	CHECK_EQ(swingcoll_comm_size(rest), net_cluster.nranks - 1);
	CHECK_EQ(coll_run(&c, mem, rest, 1), 0);
	CHECK_EQ(swingcoll_barrier(rest), 0);
	CHECK_EQ(swingcoll_comm_destroy(rest), 0);
	free(mem);
	return 0;
}

static int failure_rank(uint32_t i, void *arg)
{
	const struct failure *t = arg;
	uint64_t good, bad;
	struct net_rank w;
	int ret, round = 0;

	CHECK_EQ(net_rank_open(&w, i, t->timeout_ms, &t->load), 0);
	CHECK_EQ(net_run_good_round(&w, 0), 0);
	net_shared->started[i] = 1;
	if (is_self(t->how) && w.rank == net_victim)
		return misbehave(&w, t->how);
	do {
		good = testlib_now_ms();
		if (t->how == MISMATCH_DIRECT && round == 5)
			ret = too_large(&w);
		else if (is_mismatch(t->how) && round == 5 && net_node == net_victim_node())
			ret = mismatch(&w, t->how);
		else
			ret = net_run_round(&w, round);
		round++;
	} while (!ret);
	bad = testlib_now_ms();
	/* A rank that was stopped cannot be notified in time. */
	if (bad > good + within(t) + NET_GRACE_MS && !(t->how == STOP && w.rank == net_victim)) {
		ksft_print_msg("rank %d: notified after %d ms\n", w.rank, (int)(bad - good));
		return 1;
	}
	if (is_told(t->how) && bad - good > 1000)
		ksft_print_msg("rank %d: notified after %d ms\n", w.rank, (int)(bad - good));
	if (net_check_error(w.comm, &t->expected, ret))
		return 1;
	if (t->how == KILL && (!swingcoll_comm_failed(ret) || continue_without(&w)))
		return 1;
	CHECK_EQ(net_rank_close(&w), 0);
	return 0;
}

static int break_it(enum how how, pid_t pid)
{
	switch (how) {
	case KILL:
		return kill(pid, SIGKILL);
	case STOP:
		return kill(pid, SIGSTOP);
	case CUT:
		return command("cut", NULL);
	case HOLD:
		return command("hold", NULL);
	case DOWN:
		return command("down", NULL);
	case REMOVE:
		return command("remove", NULL);
	default:
		return 0;
	}
}

static int mend_it(enum how how, pid_t pid)
{
	switch (how) {
	case STOP:
		return kill(pid, SIGCONT);
	case CUT:
		return command("mend", NULL);
	case HOLD:
		return command("drop", NULL);
	case DOWN:
		return command("up", NULL);
	case REMOVE:
		return command("add", NULL);
	default:
		return 0;
	}
}

/* Does the failure happen on this node? */
static bool affects(enum how how)
{
	return how == CUT || how == HOLD || net_node == net_victim_node();
}

static int run_failure(const struct failure *t)
{
	bool here = affects(t->how), up;
	pid_t pid[NET_LOCAL_RANKS], victim_pid = 0;
	int bad = 0;

	memset(net_shared, 0, sizeof(*net_shared));
	testlib_fork_ranks(pid, NET_LOCAL_RANKS, failure_rank, (void *)t);
	up = net_all_started(pid);
	bad |= net_any(!up);
	/* The victim is waited for last, and may end in another way. */
	if (t->how == KILL || t->how == STOP)
		victim_pid = net_detach_victim(pid);
	/* What a rank does by itself needs nothing here. */
	if (here && up && !is_self(t->how) && !is_mismatch(t->how)) {
		testlib_sleep_ms(t->delay_ms ? t->delay_ms : 100);
		bad |= break_it(t->how, victim_pid);
	}
	bad |= testlib_wait_ranks(pid, NET_LOCAL_RANKS);
	if (here && up)
		bad |= mend_it(t->how, victim_pid);
	else if (victim_pid)
		kill(victim_pid, SIGKILL);
	if (victim_pid && t->how == KILL)
		waitpid(victim_pid, NULL, 0);
	else if (victim_pid)
		bad |= testlib_wait_ranks(&victim_pid, 1);
	return bad;
}

/* ------------------------------------------------------------------ disturbances without failure */

enum disturbance {
	LOSSY,
	SHORT_CUT
};

struct steady {
	const char *name;
	enum disturbance disturbance;
	struct net_steady ranks;
	const char *needs;
	bool long_form; /* not in the short one */
};

/* No link that is set down: a soft device has no route then, and fails at once. */
static const struct steady steadies[] = {
	{ "1 % of packets lost, 10 % out of order", LOSSY, { { 20001, 0 }, 15, 0 }, "tc" },
	{ "1 % of packets lost, 10 % out of order, 4 in flight",
	  LOSSY,
	  { { 30001, 4 }, 5, 0 },
	  "tc",
	  .long_form = true },
	{ "all packets of a node lost for a second", SHORT_CUT, { { 30001, 2 }, 20, 2500 }, "tc" },
};

static int steady(const struct steady *s)
{
	bool here = net_node == net_victim_node();
	struct net_steady ranks = s->ranks;
	uint64_t start;
	pid_t pid[NET_LOCAL_RANKS];
	int bad = 0;

	memset(net_shared, 0, sizeof(*net_shared));
	if (pairs_short())
		ranks.rounds = (ranks.rounds + 4) / 5;
	if (s->disturbance == LOSSY)
		bad |= command("lossy", NULL);
	testlib_fork_ranks(pid, NET_LOCAL_RANKS, net_steady_rank, &ranks);
	bad |= net_any(!net_all_started(pid));
	if (here && s->disturbance == SHORT_CUT && !bad) {
		testlib_sleep_ms(300);
		start = testlib_now_ms();
		bad |= command("blink", NULL);
		ksft_print_msg("node %d could send no packet for up to %d ms\n", net_node,
			       (int)(testlib_now_ms() - start));
	}
	bad |= testlib_wait_ranks(pid, NET_LOCAL_RANKS);
	if (s->disturbance == LOSSY)
		bad |= command("mend", NULL);
	return bad;
}

/* ------------------------------------------------------------------ random kills */

/* All nodes use node 0's. */
static unsigned int first_seed(void)
{
	unsigned int seed = testlib_env_seed("NET_FAIL_SEED"), all[NET_MAX_NODES];

	net_allgather(&seed, all, sizeof(seed));
	return all[0];
}

/* A random rank, load and moment, the same on all nodes. */
static int random_kill(unsigned int seed)
{
	static struct failure t = { .how = KILL,
				    .timeout_ms = NET_TIMEOUT_MS,
				    .expected = { -ECONNRESET, 0, NET_CULPRIT_VICTIM } };
	int bad;

	net_victim = rand_r(&seed) % net_cluster.nranks;
	t.load.inflight = rand_r(&seed) % 3 ? rand_r(&seed) % (NET_MAX_INFLIGHT + 1) : 0;
	t.load.count = 1 + rand_r(&seed) % (rand_r(&seed) % 3 ? 3000 : 60000);
	t.delay_ms = 1 + rand_r(&seed) % 150;
	bad = run_failure(&t);
	if (bad)
		ksft_print_msg("node %d: rank %d killed after %u ms, %zu elements, %d in flight\n",
			       net_node, net_victim, t.delay_ms, t.load.count, t.load.inflight);
	net_victim = net_cluster.nranks - 1;
	net_step++;
	return net_any(bad);
}

static int random_kills(void)
{
	unsigned int seed = first_seed();
	int n = testlib_env("NET_FAIL_KILLS", 50), kills = 0, bad = 0;
	unsigned int seconds = testlib_env("NET_FAIL_SECONDS", 0);
	uint64_t start = testlib_now_ms();

	if (!net_node)
		ksft_print_msg("random kills: NET_FAIL_SEED=%u\n", seed);
	for (; !bad; kills++) {
		bool over = seconds ? testlib_now_ms() - start >= seconds * 1000ull : kills >= n;

		/* All nodes stop together. */
		if (net_any(over))
			break;
		bad = random_kill(seed + kills);
	}
	if (!net_node)
		ksft_print_msg("%d random kills\n", kills);
	return bad;
}

/* ------------------------------------------------------------------ all cases */

static bool has_netem;

/* Add netem or remove it, between two cases, when no node sends anything. */
static void set_netem(bool now)
{
	if (has_netem == now)
		return;
	has_netem = now;
	/* Until all connections are closed. */
	testlib_wait_released(0);
	net_any(false);
	command(now ? "mend" : "plain", NULL);
	net_any(false);
}

static bool begin(const char *name, const char *needs)
{
	if (!net_case_begin(name))
		return false;
	if (needs && !strcmp(needs, "rdma") && net_transport() != SWC_TRANSPORT_RDMA) {
		if (!net_node)
			ksft_test_result_skip("%s: there is no RDMA device in use", name);
		return false;
	}
	if (needs && !strcmp(needs, "tcp")) {
		if (net_transport() != SWC_TRANSPORT_TCP) {
			if (!net_node)
				ksft_test_result_skip("%s: TCP is not in use", name);
			return false;
		}
		needs = "tc";
	}
	if (needs && net_any(command("has", needs))) {
		if (!net_node)
			ksft_test_result_skip("%s: %s is not installed on every node", name, needs);
		return false;
	}
	if (needs && !strcmp(needs, "tc"))
		set_netem(true);
	return true;
}

static const struct testlib_test kills = { "random ranks are killed at random moments",
					   random_kills };

static void cases(void)
{
	for (unsigned int k = 0; k < ARRAY_SIZE(failures); k++)
		if (begin(failures[k].name, failures[k].needs))
			net_case_end(failures[k].name, run_failure(&failures[k]));
	for (unsigned int k = 0; k < ARRAY_SIZE(steadies); k++)
		if (!(steadies[k].long_form && pairs_short()) &&
		    begin(steadies[k].name, steadies[k].needs))
			net_case_end(steadies[k].name, steady(&steadies[k]));
	set_netem(false);
	net_cases(&kills, 1);
}

int main(int argc, char **argv)
{
	return net_main(argc, argv, cases);
}
