// SPDX-License-Identifier: GPL-2.0-only
/*
 * What goes wrong between nodes: ranks that die, hang, leave or call the wrong thing, links that lose packets or
 * all of them, devices that go. Every rank is told in time who it was, nothing is left behind, and the next
 * communicator works. Runs on every node of a cluster at once.
 *
 *	net_fail [WORD]		only cases with WORD in their names
 *
 * NET_FAIL_KILLS: so many random kills, 50 if not set; NET_FAIL_SEED: repeat those of another run.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "net_ranks.h"

#define SHORT_MS 3000 /* where the end is to come by the deadline */
#define LONG_MS 60000 /* where a device is to give up before, however busy the machine is */

/* ------------------------------------------------------------------ commands */

/* Of all RDMA devices of the node and the cards that they are on. */
static const char script[] =
	"set -e\n"
	"export PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"
	"each() {\n"
	"	for dir in /sys/class/infiniband/*; do\n"
	"		$1 ${dir##*/} $(cat $dir/ports/1/gid_attrs/ndevs/0)\n"
	"	done\n"
	"}\n"
	"save=/run/net_fail\n"
	/* All that the kernel forgets of a card that is down. */
	"down() {\n"
	"	for scope in link global; do\n" /* Neighbours first: the rest goes by them. */
	"		ip -4 route show dev $2 scope $scope\n"
	"	done | sed \"s/^/route replace /; s/$/ dev $2/; s/linkdown//\" >$save.$2\n"
	"	ip -4 neigh show dev $2 nud permanent |\n"
	"		sed \"s/^/neigh replace /; s/PERMANENT/nud permanent dev $2/\" >>$save.$2\n"
	"	ip link set $2 down\n"
	"}\n"
	/* A soft device cannot connect any more once its connection manager has had no route: take a new one. */
	"up() {\n"
	"	ip link set $2 up\n"
	"	ip -batch $save.$2\n"
	"	rdma link delete $1\n"
	"	rdma link add $1 type rxe netdev $2\n"
	"}\n"
	/*
	 * A card that gets another kind of queue refuses packets meanwhile, and to a soft device that is an
	 * error: a connection breaks, or the connection manager, for ever. So netem stays, and only changes.
	 */
	"cut() { echo qdisc replace dev $2 root netem limit 10000 loss 100%; }\n"
	"lossy() { echo qdisc replace dev $2 root netem limit 10000 delay 1ms loss 1% reorder 10% 50%; }\n"
	"mend() { echo qdisc replace dev $2 root netem limit 10000; }\n"
	"plain() { echo qdisc del dev $2 root; }\n"
	"remove() { echo $1 $2 >>$save.devices; rdma link delete $1; }\n"
	"case $1 in\n"
	"has) command -v $2 ;;\n"
	"remove) : >$save.devices; each remove ;;\n"
	"add) while read -r dev card; do rdma link add $dev type rxe netdev $card; done <$save.devices ;;\n"
	"cut | lossy | mend | plain) each $1 | tc -batch - ;;\n"
	/* On all cards at once, however long a busy machine takes to work out which. */
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

		/* Ranks that are busy must not draw it out. */
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

/* ------------------------------------------------------------------ ranks in trouble */

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
	DOWN,
	REMOVE
};

struct trouble {
	const char *name;
	enum how how;
	struct net_load load;
	uint32_t timeout_ms;
	struct net_expected expected;
	unsigned int delay_ms; /* from the start of the load to the event; 0: 500 */
	const char *needs;
};

static const struct trouble troubles[] = {
	{ "a rank is killed among small operations",
	  KILL,
	  { 1000, 0 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, 0, NET_THE_VICTIM } },
	{ "a rank is killed in the middle of a large one",
	  KILL,
	  { 700001, 0 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, 0, NET_THE_VICTIM } },
	{ "a rank is killed with 8 in flight",
	  KILL,
	  { 30001, 8 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, 0, NET_THE_VICTIM } },
	{ "a rank exits", EXIT, { 1000, 0 }, NET_TIMEOUT_MS, { -ECONNRESET, 0, NET_THE_VICTIM } },
	{ "a rank leaves early",
	  LEAVE,
	  { 1000, 0 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, 0, NET_THE_VICTIM } },
	{ "a rank leaves early, 8 in flight elsewhere",
	  LEAVE,
	  { 1000, 8 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, 0, NET_THE_VICTIM } },
	{ "a rank aborts",
	  ABORT,
	  { 1000, 0 },
	  NET_TIMEOUT_MS,
	  { -ECONNABORTED, 0, NET_THE_VICTIM } },
	{ "a rank aborts, 8 in flight elsewhere",
	  ABORT,
	  { 30001, 8 },
	  NET_TIMEOUT_MS,
	  { -ECONNABORTED, 0, NET_THE_VICTIM } },
	{ "a rank is stopped past the deadline",
	  STOP,
	  { 1000, 0 },
	  SHORT_MS,
	  { -ETIMEDOUT, 0, NET_THE_VICTIM } },
	{ "a node calls with another count",
	  MISMATCH_COUNT,
	  { 1000, 0 },
	  NET_TIMEOUT_MS,
	  { -EPROTO, 0, NET_CALLERS } },
	{ "a node calls another collective",
	  MISMATCH_COLL,
	  { 1000, 0 },
	  NET_TIMEOUT_MS,
	  { -EPROTO, 0, NET_CALLERS } },
	{ "a node calls with another type, large",
	  MISMATCH_TYPE,
	  { 300000, 0 },
	  NET_TIMEOUT_MS,
	  { -EPROTO, 0, NET_CALLERS } },
	{ "a node takes less than is broadcast, and by another way",
	  MISMATCH_DIRECT,
	  { 1000, 0 },
	  NET_TIMEOUT_MS,
	  { -EPROTO, 0, NET_CALLERS } },
	{ "a node calls a partition",
	  MISMATCH_PARTITION,
	  { 30001, 0 },
	  NET_TIMEOUT_MS,
	  { -EPROTO, 0, NET_CALLERS } },
	{ "all packets are lost past the deadline",
	  CUT,
	  { 30001, 0 },
	  SHORT_MS,
	  { -ETIMEDOUT, -ECONNRESET, NET_ANOTHER_NODE },
	  .needs = "tc" },
	{ "all packets are lost for long",
	  CUT,
	  { 30001, 4 },
	  LONG_MS,
	  { -ECONNRESET, 0, NET_ANOTHER_NODE },
	  .needs = "tc" },
	/* One after the other: by the last ones that node still tells that its first is down. */
	{ "links of a node are down past the deadline",
	  DOWN,
	  { 30001, 0 },
	  SHORT_MS,
	  { -ETIMEDOUT, -ECONNRESET, NET_VICTIMS_NODE },
	  .needs = "ip" },
	{ "RDMA devices are removed under load",
	  REMOVE,
	  { 200001, 0 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, -ENODEV, NET_VICTIMS_NODE },
	  .needs = "rdma" },
	{ "RDMA devices are removed with 8 in flight",
	  REMOVE,
	  { 30001, 8 },
	  NET_TIMEOUT_MS,
	  { -ECONNRESET, -ENODEV, NET_VICTIMS_NODE },
	  .needs = "rdma" },
};

static bool is_self(enum how how)
{
	return how == EXIT || how == LEAVE || how == ABORT;
}

/* Do others hear of it from whoever is in trouble? Else nothing tells of it before the deadline. */
static bool is_heard_of(enum how how)
{
	return how != STOP && how != CUT && how != DOWN;
}

/* When devices give up who is silent: after seven times what the module has them wait, a probe and a little. */
static unsigned int give_up_ms(void)
{
	FILE *f = fopen("/sys/module/swingcoll/parameters/rdma_ack_timeout", "re");
	unsigned int exponent = 0;

	if (f && fscanf(f, "%u", &exponent) != 1)
		exponent = 0;
	if (f)
		fclose(f);
	return (unsigned int)(10 * 4096e-6 * (double)(1ull << (exponent & 31)));
}

/* After so many ms all are to know. Devices give up in some ten seconds who is silent. */
static unsigned int within(const struct trouble *t)
{
	unsigned int ms = give_up_ms();

	if (is_heard_of(t->how))
		return 1000;
	if (ms < NET_TIMEOUT_MS)
		ms = NET_TIMEOUT_MS;
	return t->timeout_ms < ms ? t->timeout_ms : ms;
}

static bool is_mismatch(enum how how)
{
	return how == MISMATCH_COUNT || how == MISMATCH_COLL || how == MISMATCH_TYPE ||
	       how == MISMATCH_DIRECT || how == MISMATCH_PARTITION;
}

/* What is an ordinary operation elsewhere is the only partition here. */
static int as_partition(struct net_work *w)
{
	struct swingcoll_part *part;
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

static int mismatch(struct net_work *w, enum how how)
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

/* A large broadcast, whose root waits for memory that those with a small one do not offer. */
static int too_large(struct net_work *w)
{
	struct coll_case c = { .coll = SWINGCOLL_BROADCAST, .dtype = SWINGCOLL_I64 };
	void *mem;
	int ret;

	c.count = net_node == net_victims_node() ? 100 : 200000;
	mem = malloc(coll_bytes(&c, net_cluster.nranks));
	ret = mem ? coll_run(&c, mem, w->comm, 0) : -ENOMEM;
	free(mem);
	return ret;
}

/* The rank that makes the trouble itself, after some rounds. */
static int misbehave(struct net_work *w, enum how how)
{
	for (int i = 0; i < 5; i++)
		CHECK_EQ(net_well(w, i), 0);
	if (how == EXIT)
		_exit(0);
	if (how == ABORT)
		CHECK_EQ(swingcoll_comm_abort(w->comm), 0);
	CHECK_EQ(net_rank_down(w), 0);
	return 0;
}

/* Without the victim. */
static int go_on(struct net_work *w)
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

static int trouble_rank(uint32_t i, void *arg)
{
	const struct trouble *t = arg;
	uint64_t good, bad;
	struct net_work w;
	int ret, round = 0;

	CHECK_EQ(net_rank_up(&w, i, t->timeout_ms, &t->load), 0);
	CHECK_EQ(net_well(&w, 0), 0);
	net_shared->started[i] = 1;
	if (is_self(t->how) && w.rank == net_victim)
		return misbehave(&w, t->how);
	do {
		good = swct_ms();
		if (t->how == MISMATCH_DIRECT && round == 5)
			ret = too_large(&w);
		else if (is_mismatch(t->how) && round == 5 && net_node == net_victims_node())
			ret = mismatch(&w, t->how);
		else
			ret = net_once(&w, round);
		round++;
	} while (!ret);
	bad = swct_ms();
	/* Who was stopped itself cannot hear of it in time. */
	if (bad > good + within(t) + NET_GRACE_MS && !(t->how == STOP && w.rank == net_victim)) {
		ksft_print_msg("rank %d: heard of it after %d ms\n", w.rank, (int)(bad - good));
		return 1;
	}
	if (is_heard_of(t->how) && bad - good > 1000)
		ksft_print_msg("rank %d: heard of it after %d ms\n", w.rank, (int)(bad - good));
	if (net_check_error(w.comm, &t->expected, ret))
		return 1;
	if (t->how == KILL && go_on(&w))
		return 1;
	CHECK_EQ(net_rank_down(&w), 0);
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
	case DOWN:
		return command("up", NULL);
	case REMOVE:
		return command("add", NULL);
	default:
		return 0;
	}
}

/* On which nodes. */
static bool affects(enum how how)
{
	return how == CUT || net_node == net_victims_node();
}

static int trouble(const struct trouble *t)
{
	bool here = affects(t->how), up;
	pid_t pid[NET_LOCAL], victim_pid = 0;
	int bad = 0;

	memset(net_shared, 0, sizeof(*net_shared));
	swct_fork(pid, NET_LOCAL, trouble_rank, (void *)t);
	up = net_all_started(pid);
	bad |= net_together(!up);
	/* The victim comes last, and how it ends depends. */
	if (t->how == KILL || t->how == STOP)
		victim_pid = net_take_victim(pid);
	if (here && up) {
		swct_sleep_ms(t->delay_ms ? t->delay_ms : 500);
		bad |= break_it(t->how, victim_pid);
	}
	bad |= swct_reap(pid, NET_LOCAL, t->timeout_ms + 60000);
	if (here && up)
		bad |= mend_it(t->how, victim_pid);
	else if (victim_pid)
		kill(victim_pid, SIGKILL);
	if (victim_pid && t->how == KILL)
		waitpid(victim_pid, NULL, 0);
	else if (victim_pid)
		bad |= swct_reap(&victim_pid, 1, 20000);
	return bad;
}

/* ------------------------------------------------------------------ what must not hurt */

enum nuisance {
	LOSSY,
	SHORT_CUT
};

struct steady {
	const char *name;
	enum nuisance nuisance;
	struct net_steady ranks;
	const char *needs;
};

/* Not a link that is taken down by hand: a soft device finds no route then, and fails at once. */
static const struct steady steadies[] = {
	{ "1 % of packets lost, 10 % out of order", LOSSY, { { 20001, 0 }, 15, 0 }, "tc" },
	{ "1 % of packets lost, 10 % out of order, 4 in flight",
	  LOSSY,
	  { { 30001, 4 }, 5, 0 },
	  "tc" },
	{ "all packets of a node lost for a second", SHORT_CUT, { { 30001, 2 }, 20, 2500 }, "tc" },
};

static int steady(const struct steady *s)
{
	bool here = net_node == net_victims_node();
	uint64_t start;
	pid_t pid[NET_LOCAL];
	int bad = 0;

	memset(net_shared, 0, sizeof(*net_shared));
	if (s->nuisance == LOSSY)
		bad |= command("lossy", NULL);
	swct_fork(pid, NET_LOCAL, net_steady_rank, (void *)&s->ranks);
	bad |= net_together(!net_all_started(pid));
	if (here && s->nuisance == SHORT_CUT && !bad) {
		swct_sleep_ms(300);
		start = swct_ms();
		bad |= command("blink", NULL);
		ksft_print_msg("no packet left node %d for up to %d ms\n", net_node,
			       (int)(swct_ms() - start));
	}
	bad |= swct_reap(pid, NET_LOCAL, 120000);
	if (s->nuisance == LOSSY)
		bad |= command("mend", NULL);
	return bad;
}

/* ------------------------------------------------------------------ random kills */

static int kills_left(void)
{
	const char *kills = getenv("NET_FAIL_KILLS");

	return kills ? atoi(kills) : 50;
}

static unsigned int first_seed(void)
{
	const char *text = getenv("NET_FAIL_SEED");
	unsigned int seed, all[NET_MAX_NODES];

	if (text)
		seed = strtoul(text, NULL, 0);
	else
		getrandom(&seed, sizeof(seed), 0);
	net_exchange(&seed, all, sizeof(seed));
	return all[0];
}

/* Any rank, any load, any moment; all nodes draw the same. */
static int random_kill(unsigned int seed)
{
	static struct trouble t = { .how = KILL,
				    .timeout_ms = NET_TIMEOUT_MS,
				    .expected = { -ECONNRESET, 0, NET_THE_VICTIM } };
	int bad;

	net_victim = rand_r(&seed) % net_cluster.nranks;
	t.load.inflight = rand_r(&seed) % 3 ? rand_r(&seed) % (NET_MAX_INFLIGHT + 1) : 0;
	t.load.count = 1 + rand_r(&seed) % (rand_r(&seed) % 3 ? 3000 : 60000);
	t.delay_ms = 1 + rand_r(&seed) % 150;
	bad = trouble(&t);
	if (bad)
		ksft_print_msg("node %d: rank %d killed after %u ms, %zu elements, %d in flight\n",
			       net_node, net_victim, t.delay_ms, t.load.count, t.load.inflight);
	net_victim = net_cluster.nranks - 1;
	net_step++;
	return net_together(bad);
}

static int random_kills(void)
{
	unsigned int seed = first_seed();
	int n = kills_left(), bad = 0;

	if (!net_node)
		ksft_print_msg("%d random kills: NET_FAIL_SEED=%u\n", n, seed);
	for (int i = 0; i < n && !bad; i++)
		bad = random_kill(seed + i);
	return bad;
}

/* ------------------------------------------------------------------ all cases */

static bool fitted; /* netem is there */

/* All nodes are between two cases, and nothing is sent. */
static void fit(bool now)
{
	if (fitted == now)
		return;
	fitted = now;
	/* Until all connections have said goodbye. */
	net_all_clean();
	net_together(false);
	command(now ? "mend" : "plain", NULL);
	net_together(false);
}

static bool begin(const char *name, const char *needs)
{
	if (!net_case_begin(name))
		return false;
	if (needs && net_together(command("has", needs))) {
		if (!net_node)
			ksft_test_result_skip("%s: %s is not installed on every node", name, needs);
		return false;
	}
	if (needs && !strcmp(needs, "tc"))
		fit(true);
	return true;
}

static const struct swct_test kills = { "random ranks are killed at random moments", random_kills };

static void cases(void)
{
	for (unsigned int k = 0; k < ARRAY_SIZE(troubles); k++)
		if (begin(troubles[k].name, troubles[k].needs))
			net_case_end(troubles[k].name, trouble(&troubles[k]));
	for (unsigned int k = 0; k < ARRAY_SIZE(steadies); k++)
		if (begin(steadies[k].name, steadies[k].needs))
			net_case_end(steadies[k].name, steady(&steadies[k]));
	fit(false);
	net_cases(&kills, 1);
}

int main(int argc, char **argv)
{
	return net_main(argc, argv, cases);
}
