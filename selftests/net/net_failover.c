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
 *
 * A campaign, if NET_FAILOVER_RANDOM says of how many cuts: of a random rail by a random means, and for how long is
 * random, too; NET_FAILOVER_SECONDS: begin none after so long. Each is over when the rail carries messages again, so it
 * is short with tools/vm/run --param path_avoid_ms=20. Ends with a table: how long a cut holds up the ranks, and how much
 * of that passes until the module notices that the last connection has lost the rail, by the recording of the
 * communicator. Each node notices by itself: the first to do so counts.
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
	struct stall {
		uint64_t ms; /* the longest round since the node process has set it to 0 */
		int rest_ms; /* from the loss of the rail to its end; negative: not lost in it */
	} stall[NET_LOCAL_RANKS];
	int rail;		    /* that is cut, or -1 */
	int error[NET_LOCAL_RANKS]; /* of the round that has failed */
};

static struct progress *progress;
static unsigned int nrails, seed;

/* ------------------------------------------------------------------ rails */

/*
 * Rail 0 also carries what the node processes say to each other. What the kernel forgets of a card that is down is
 * saved: routes and neighbours. An rxe device whose card was down sends no requests to connect any more: it is made
 * again. siw waits for TCP when it connects, and nothing else by RDMA connects meanwhile: for a rail that is cut in that
 * moment, that must not take minutes.
 */
static const char script[] =
	"set -e\n"
	"export PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"
	"kind=$3 nic=nic$2 device=$3$2 save=/run/net_failover.$2\n"
	"has_rxe() { command -v rdma >/dev/null && [ -e /sys/class/infiniband/rxe$2 ]; }\n"
	"add_device() { rdma link add $device type $kind netdev $nic; }\n"
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
	"	if has_rxe $*; then rdma link delete $device; add_device; fi\n"
	"	;;\n"
	"remove) rdma link delete $device ;;\n"
	"return) add_device ;;\n"
	"cut) tc qdisc replace dev $nic root netem limit 10000 loss 100% ;;\n"
	"mend) tc qdisc replace dev $nic root netem limit 10000 ;;\n"
	"plain) tc qdisc del dev $nic root ;;\n"
	"prepare) [ $kind != siw ] || echo 1 >/proc/sys/net/ipv4/tcp_syn_retries ;;\n"
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
		execl("/bin/sh", "sh", "-c", script, "net_failover", what, number,
		      net_is_iwarp() ? "siw" : "rxe", NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	if (status && strcmp(what, "has"))
		ksft_print_msg("node %d: '%s %u' failed (%d)\n", net_node, what, rail, status);
	return status;
}

/* Bytes that the card of a rail has sent. */
static uint64_t sent_by(unsigned int rail)
{
	unsigned long long bytes = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/nic%u/statistics/tx_bytes", rail);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%llu", &bytes) != 1)
		ksft_print_msg("node %d: %s cannot be read\n", net_node, path);
	if (f)
		fclose(f);
	return bytes;
}

/* ------------------------------------------------------------------ recordings */

#define RECORDS 4096

/* The recording of the communicator of this node's ranks, as far as it is read. */
struct recording {
	struct testlib_ctx c;
	uint64_t number; /* of the communicator */
	uint64_t next;	 /* record to be read */
	struct swc_trace_record *record;
};

/* Of the last communicator. */
static int open_recording(struct recording *r)
{
	struct swc_trace_query q = { 0 };

	CHECK_EQ(testlib_open(&r->c), 0);
	r->record = calloc(RECORDS, sizeof(*r->record));
	CHECK(r->record);
	while (!testlib_ioctl(r->c.fd, SWC_IOC_TRACE, &q)) {
		r->number = q.number;
		r->next = q.written;
		q = (struct swc_trace_query){ .number = r->number + 1 };
	}
	CHECK(r->number);
	return 0;
}

static void close_recording(struct recording *r)
{
	free(r->record);
	testlib_close(&r->c);
}

/* Read on: milliseconds since a connection has last left this path; -1: none has since the last call, -2: error. */
static int left_ms_ago(struct recording *r, int path)
{
	struct swc_trace_query q = { .number = r->number,
				     .first = r->next,
				     .max_records = RECORDS,
				     .records = (uintptr_t)r->record };
	uint64_t left = 0;

	if (testlib_ioctl(r->c.fd, SWC_IOC_TRACE, &q) || q.number != r->number)
		return -2;
	r->next = q.first;
	for (unsigned int i = 0; i < q.count; i++)
		if (r->record[i].type == SWC_TRACE_PATH_LEFT &&
		    (int)(r->record[i].arg >> 32) == path && r->record[i].ns > left)
			left = r->record[i].ns;
	return left ? (int)((q.now_ns - left) / 1000000) : -1;
}

/* ------------------------------------------------------------------ ranks */

static void note_round(int i, uint64_t ms, int rest_ms)
{
	if (ms > progress->longest_ms[i])
		progress->longest_ms[i] = ms;
	/* The node process may set it to 0 meanwhile: then this counts for the next cut, too. */
	if (ms > __atomic_load_n(&progress->stall[i].ms, __ATOMIC_RELAXED)) {
		progress->stall[i].rest_ms = rest_ms;
		__atomic_store_n(&progress->stall[i].ms, ms, __ATOMIC_RELEASE);
	}
}

static int load_rank(uint32_t i, void *arg)
{
	const struct net_load *load = arg;
	/* What ranks tell each other at the end of a round: the largest of all counts. */
	struct {
		int32_t go, rail, rest_ms;
	} mine = { 0, -1, -1 }, any = { 0 };
	uint64_t last, now, ms = 0;
	struct recording r = { 0 };
	struct net_rank w;

	CHECK_EQ(net_rank_open(&w, i, NET_TIMEOUT_MS, load), 0);
	CHECK_EQ(open_recording(&r), 0);
	CHECK_EQ(net_run_good_round(&w, 0), 0);
	net_shared->started[i] = 1;
	last = testlib_now_ms();
	/* The same number of rounds on all ranks, as long as one of them wants to go on. */
	for (unsigned int round = 0;; round++) {
		mine.go = !__atomic_load_n(&net_shared->stop, __ATOMIC_ACQUIRE);
		mine.rail = __atomic_load_n(&progress->rail, __ATOMIC_ACQUIRE);
		progress->error[i] = net_run_good_round(&w, round);
		CHECK_EQ(progress->error[i], 0);
		CHECK_EQ(swingcoll_allreduce(&mine, &any, sizeof(mine) / sizeof(int32_t),
					     SWINGCOLL_I32, SWINGCOLL_MAX, w.comm),
			 0);
		now = testlib_now_ms();
		/* All nodes have told by now when they noticed something in the round before. */
		note_round(i, ms, any.rest_ms);
		ms = now - last;
		last = now;
		mine.rest_ms = left_ms_ago(&r, any.rail);
		CHECK(mine.rest_ms >= -1);
		__atomic_add_fetch(&progress->rounds[i], 1, __ATOMIC_RELEASE);
		if (!any.go)
			break;
	}
	close_recording(&r);
	CHECK_EQ(net_rank_close(&w), 0);
	return 0;
}

static void begin_load(pid_t *pid, struct net_load *load)
{
	memset(net_shared, 0, sizeof(*net_shared));
	memset(progress, 0, sizeof(*progress));
	progress->rail = -1;
	testlib_fork_ranks(pid, NET_LOCAL_RANKS, load_rank, load);
}

/* Has a rank of this node ended, or is the time over? */
static bool is_lost(pid_t pid, uint64_t limit)
{
	siginfo_t info = { 0 };

	return testlib_now_ms() > limit || waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	       info.si_pid;
}

/* Wait until each rank of this node has finished so many rounds more. False if one ends before, or none comes on. */
static bool wait_rounds(const pid_t *pid, unsigned int n)
{
	uint64_t limit = testlib_now_ms() + PATIENCE_MS, from[NET_LOCAL_RANKS];

	for (int i = 0; i < NET_LOCAL_RANKS; i++)
		from[i] = __atomic_load_n(&progress->rounds[i], __ATOMIC_ACQUIRE);
	for (int i = 0; i < NET_LOCAL_RANKS; i++)
		while (__atomic_load_n(&progress->rounds[i], __ATOMIC_ACQUIRE) < from[i] + n) {
			if (is_lost(pid[i], limit)) {
				ksft_print_msg("node %d: rank process %d does not come on\n",
					       net_node, i);
				return false;
			}
			testlib_sleep_ms(2);
		}
	return true;
}

/* Messages on a rail, and not only what finds out whether it answers. */
#define MESSAGES (64u << 10)

/* Wait until the rail carries messages. False as above. */
static bool wait_used(const pid_t *pid, unsigned int rail)
{
	uint64_t limit = testlib_now_ms() + PATIENCE_MS, from = sent_by(rail);

	while (sent_by(rail) < from + MESSAGES) {
		for (int i = 0; i < NET_LOCAL_RANKS; i++)
			if (is_lost(pid[i], limit)) {
				ksft_print_msg("node %d: rail %u is not used again\n", net_node,
					       rail);
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

	begin_load(pid, &load);
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

/* ------------------------------------------------------------------ a campaign */

#define PROGRESS_CUTS 25

/* Means to cut a rail; @rdma: only by RDMA. */
static const struct means {
	const char *cut, *mend;
	bool rdma;
} means[] = {
	{ "down", "up", false },
	{ "cut", "mend", false },
	{ "remove", "return", true },
};

/* Milliseconds of cuts. */
struct times {
	unsigned int n;
	uint64_t *ms;
};

/*
 * The pause, and its parts before and after the loss is noticed: of cuts in whose pause it is; from the cut on, and from
 * the return on, until all goes on.
 */
enum times_kind {
	PAUSE,
	UNNOTICED,
	REST,
	CUT,
	BACK,
	NTIMES
};

static const char *const times_names[NTIMES] = { "pause", "until it is noticed", "from then on",
						 "cut, until rounds end",
						 "return, until it is used" };

struct campaign {
	unsigned int n;
	struct times times[NTIMES];
};

static const struct net_load campaign_load = { 100001, 2 };

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void add_time(struct times *t, uint64_t ms)
{
	t->ms[t->n++] = ms;
}

/* Sorts them. */
static void print_times(const char *what, struct times *t)
{
	unsigned int n = t->n;

	qsort(t->ms, n, sizeof(*t->ms), by_size);
	if (n)
		ksft_print_msg(
			"%-24s median %6llu ms, 95 of 100 within %6llu ms, longest %6llu ms; %u cuts\n",
			what, (unsigned long long)t->ms[n / 2],
			(unsigned long long)t->ms[(n - 1) * 95 / 100],
			(unsigned long long)t->ms[n - 1], n);
}

/* What has held up the ranks of this node most. */
static struct stall longest_stall(void)
{
	struct stall longest = { 0 };

	for (int i = 0; i < NET_LOCAL_RANKS; i++)
		if (__atomic_load_n(&progress->stall[i].ms, __ATOMIC_ACQUIRE) >= longest.ms)
			longest = progress->stall[i];
	return longest;
}

static void note_stall(struct campaign *c, const struct stall *s)
{
	add_time(&c->times[PAUSE], s->ms);
	if (s->rest_ms < 0 || s->ms < (uint64_t)s->rest_ms)
		return;
	add_time(&c->times[UNNOTICED], s->ms - s->rest_ms);
	add_time(&c->times[REST], s->rest_ms);
}

/* One cut, with the return. */
static bool cut_once(const pid_t *pid, const struct means *m, unsigned int rail, struct campaign *c)
{
	unsigned int rounds = 1 + rand_r(&seed) % ROUNDS;
	struct stall stall;
	uint64_t start;
	bool good;

	/* The round in which it is cut must be one in which all ranks know the rail. */
	__atomic_store_n(&progress->rail, (int)rail, __ATOMIC_RELEASE);
	if (!wait_rounds(pid, 2))
		return false;
	for (int i = 0; i < NET_LOCAL_RANKS; i++)
		__atomic_store_n(&progress->stall[i].ms, 0, __ATOMIC_RELAXED);
	start = testlib_now_ms();
	if (command(m->cut, rail))
		return false;
	/* Of the last one the times are known a round later. */
	good = wait_rounds(pid, rounds + 1);
	stall = longest_stall();
	add_time(&c->times[CUT], testlib_now_ms() - start);
	start = testlib_now_ms();
	if (command(m->mend, rail) || !good || !wait_used(pid, rail))
		return false;
	add_time(&c->times[BACK], testlib_now_ms() - start);
	note_stall(c, &stall);
	c->n++;
	return true;
}

/* On the node whose rails are cut. */
static int cut_at_random(const pid_t *pid, unsigned int cuts, struct campaign *c)
{
	unsigned int nmeans = ARRAY_SIZE(means) - (net_transport() != SWC_TRANSPORT_RDMA);
	uint64_t start = testlib_now_ms();
	uint64_t ms = testlib_env("NET_FAILOVER_SECONDS", 0) * 1000ull;

	while (c->n < cuts && (!ms || testlib_now_ms() - start < ms)) {
		const struct means *m = &means[rand_r(&seed) % nmeans];
		unsigned int rail = rand_r(&seed) % nrails;

		if (!cut_once(pid, m, rail, c)) {
			ksft_print_msg("cut %u: rail %u by '%s'\n", c->n, rail, m->cut);
			return 1;
		}
		if (c->n % PROGRESS_CUTS == 0)
			ksft_print_msg("%u of %u cuts, %llu s, longest pause %llu ms\n", c->n, cuts,
				       (unsigned long long)(testlib_now_ms() - start) / 1000,
				       (unsigned long long)progress->longest_ms[0]);
	}
	return 0;
}

static void print_campaign(struct campaign *c)
{
	int errors = 0, wrong = 0;

	for (int i = 0; i < NET_LOCAL_RANKS; i++) {
		wrong += progress->error[i] == -EBADMSG;
		errors += progress->error[i] && progress->error[i] != -EBADMSG;
	}
	ksft_print_msg("%u cuts, %llu rounds, %d errors, %d wrong vectors\n", c->n,
		       (unsigned long long)progress->rounds[0], errors, wrong);
	for (unsigned int t = 0; t < NTIMES; t++)
		print_times(times_names[t], &c->times[t]);
}

static bool alloc_times(struct campaign *c, unsigned int cuts)
{
	bool good = true;

	for (unsigned int t = 0; t < NTIMES; t++) {
		c->times[t].ms = calloc(cuts, sizeof(uint64_t));
		good &= c->times[t].ms != NULL;
	}
	return good;
}

static int campaign(unsigned int cuts)
{
	bool here = net_node == net_victim_node();
	struct net_load load = campaign_load;
	struct campaign c = { 0 };
	pid_t pid[NET_LOCAL_RANKS];
	int bad;

	begin_load(pid, &load);
	bad = net_any(!net_all_started(pid) || !alloc_times(&c, cuts));
	if (here && !bad)
		bad = cut_at_random(pid, cuts, &c);
	__atomic_store_n(&net_shared->stop, 1, __ATOMIC_RELEASE);
	bad |= testlib_wait_ranks_ms(pid, NET_LOCAL_RANKS, (2 * cuts + 1) * (uint64_t)PATIENCE_MS);
	if (here)
		print_campaign(&c);
	if (c.n && !c.times[REST].n) {
		ksft_print_msg("no recording tells of a lost path\n");
		bad = 1;
	}
	for (unsigned int t = 0; t < NTIMES; t++)
		free(c.times[t].ms);
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

static void skip(const char *name)
{
	if (!net_node)
		ksft_test_result_skip("%s: needs several rails, ip and tc", name);
}

static void random_cuts(unsigned int cuts, bool lacks)
{
	static const char name[] = "random cuts and returns";

	if (!net_case_begin(name))
		return;
	if (net_any(lacks)) {
		skip(name);
		return;
	}
	netem("mend");
	net_case_end(name, campaign(cuts));
	netem("plain");
}

static void cases(void)
{
	bool lacks = nrails < 2 || command("has", 0);
	unsigned int cuts = testlib_env("NET_FAILOVER_RANDOM", 0);

	lacks = lacks || command("prepare", 0);
	if (cuts) {
		random_cuts(cuts, lacks);
		return;
	}

	for (unsigned int k = 0; k < ARRAY_SIZE(failovers); k++) {
		const struct failover *f = &failovers[k];

		if (f->rdma && net_transport() != SWC_TRANSPORT_RDMA)
			continue;
		if (!net_case_begin(f->name))
			continue;
		if (net_any(lacks)) {
			skip(f->name);
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
		skip("all cards go down");
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
