// SPDX-License-Identifier: GPL-2.0-only
/*
 * What goes wrong between nodes: ranks that die, hang, leave or call the wrong thing, links that lose packets or
 * all of them, devices that go, strangers on the port. Every rank is told in time who it was, nothing is left
 * behind, and the next communicator works. Runs on every node of a cluster at once.
 *
 *	net_fail [WORD]		only cases with WORD in their names
 *
 * NET_FAIL_KILLS: so many random kills, 50 if not set; NET_FAIL_SEED: repeat those of another run.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <sched.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "coll.h"
#include "net.h"

#define LOCAL 2		 /* ranks on each node */
#define TIMEOUT_MS 20000 /* where the end is not to come by the deadline */
#define SHORT_MS 3000	 /* where it is */
#define GRACE_MS 3000	 /* for a message about it on a busy machine */
#define CLEAN_MS 10000	 /* until all is given back */
#define MAX_INFLIGHT 8

static struct net_layout layout;
static unsigned int step; /* of all sets of ranks there were, the same on all nodes */
static int last_node, victim;
static const char *wanted = "";

/* What a node's process and its ranks know of each other. */
struct shared {
	int started[LOCAL];
	int go;
};

static struct shared *shared;

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
	"	ip -4 route show dev $2 | sed \"s/^/route replace /; s/$/ dev $2/; s/linkdown//\" >$save.$2\n"
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
	"cut() { tc qdisc replace dev $2 root netem limit 10000 loss 100%; }\n"
	"lossy() { tc qdisc replace dev $2 root netem limit 10000 delay 1ms loss 1% reorder 10% 50%; }\n"
	"mend() { tc qdisc del dev $2 root; }\n"
	"remove() { echo $1 $2 >>$save.devices; rdma link delete $1; }\n"
	"case $1 in\n"
	"has) command -v $2 ;;\n"
	"remove) : >$save.devices; each remove ;;\n"
	"add) while read -r dev card; do rdma link add $dev type rxe netdev $card; done <$save.devices ;;\n"
	"blink) each cut && sleep 1 && each mend ;;\n"
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

/* ------------------------------------------------------------------ ranks */

/* What ranks do until something happens. */
struct load {
	size_t count;
	int inflight; /* 0: blocking calls, one at a time */
};

struct work {
	struct swingcoll_comm *comm;
	const struct load *load;
	struct coll_case c;
	int rank;
	void *mem[MAX_INFLIGHT];
};

static int rank_up(struct work *w, int i, uint32_t timeout_ms, const struct load *load)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = timeout_ms };
	int ret;

	memset(w, 0, sizeof(*w));
	w->rank = net_layout_rank(&layout, i);
	w->load = load;
	w->c = (struct coll_case){ .coll = SWINGCOLL_ALLREDUCE,
				   .dtype = SWINGCOLL_I32,
				   .count = load->count,
				   .in_place = true };
	for (int k = 0; k < (load->inflight ? load->inflight : 1); k++)
		w->mem[k] = malloc(coll_bytes(&w->c, layout.nranks));
	net_be_rank(&layout, w->rank, step);
	coll_quiet = true;
	ret = swingcoll_comm_create_auto(&w->comm, &opts);
	if (ret)
		ksft_print_msg("rank %d: %s\n", w->rank, swingcoll_bootstrap_error());
	return ret;
}

static int rank_down(struct work *w)
{
	for (int k = 0; k < MAX_INFLIGHT; k++)
		free(w->mem[k]);
	return swingcoll_comm_destroy(w->comm);
}

/* One round of the load, checked; the first error. */
static int once(struct work *w, unsigned int round)
{
	struct swingcoll_req *req[MAX_INFLIGHT] = { NULL };
	int error = 0;

	if (!w->load->inflight)
		return coll_run(&w->c, w->mem[0], w->comm, round);
	for (int k = 0; k < w->load->inflight && !error; k++) {
		coll_fill(&w->c, layout.nranks, w->rank, w->mem[k], round + k);
		error = coll_icall(&w->c, w->mem[k], w->mem[k], w->comm, &req[k]);
	}
	for (int k = 0; k < w->load->inflight; k++) {
		int ret = req[k] ? swingcoll_wait(req[k], NULL) : 0;

		if (req[k] && !ret)
			ret = coll_check(&w->c, layout.nranks, w->rank, w->mem[k], round + k);
		error = error ? error : ret;
	}
	return error;
}

/* Likewise where nothing may go wrong. */
static int well(struct work *w, unsigned int round)
{
	int ret = once(w, round), culprit;
	char text[256];

	if (!ret)
		return 0;
	swingcoll_comm_error(w->comm, text, sizeof(text), &culprit);
	ksft_print_msg("rank %d, round %u: %s; rank at fault %d: %s\n", w->rank, round,
		       swingcoll_strerror(ret), culprit, text);
	return ret;
}

/* ------------------------------------------------------------------ what is expected */

enum whose {
	THE_VICTIM,
	VICTIMS_NODE, /* any rank of it */
	ANOTHER_NODE, /* any rank of a node that is not the caller's */
	CALLERS	      /* who called what cannot be told from here: any rank, and both calls */
};

struct expected {
	int error, or_error;
	enum whose whose;
};

/* The communicator's error and rank at fault are as expected, however a call has heard of it. */
static int check_error(const struct work *w, const struct expected *x, int ret)
{
	char text[256];
	int error, culprit;
	bool good;

	error = swingcoll_comm_error(w->comm, text, sizeof(text), &culprit);
	good = error == x->error || (x->or_error && error == x->or_error);
	/* Calls that came after it are only told that it is over. */
	good &= ret == error || ret == -ECONNABORTED;
	switch (x->whose) {
	case THE_VICTIM:
		good &= culprit == victim;
		break;
	case VICTIMS_NODE:
		good &= culprit >= 0 && net_layout_node(&layout, culprit) == last_node;
		break;
	case ANOTHER_NODE:
		good &= culprit >= 0 && net_layout_node(&layout, culprit) != net_node;
		break;
	case CALLERS:
		good &= culprit >= 0 && strstr(text, " called ") && strstr(text, ", but rank");
	}
	good &= !!*text;
	if (!good)
		ksft_print_msg("rank %d: call %d, error %d, rank at fault %d: %s\n", w->rank, ret,
			       error, culprit, text);
	return !good;
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
	CUT,
	DOWN,
	REMOVE
};

struct trouble {
	const char *name;
	enum how how;
	struct load load;
	uint32_t timeout_ms;
	struct expected expected;
	unsigned int delay_ms; /* from the start of the load to the event; 0: 500 */
	const char *needs;
};

static const struct trouble troubles[] = {
	{ "a rank is killed among small operations",
	  KILL,
	  { 1000, 0 },
	  TIMEOUT_MS,
	  { -ECONNRESET, 0, THE_VICTIM } },
	{ "a rank is killed in the middle of a large one",
	  KILL,
	  { 700001, 0 },
	  TIMEOUT_MS,
	  { -ECONNRESET, 0, THE_VICTIM } },
	{ "a rank is killed with 8 in flight",
	  KILL,
	  { 30001, 8 },
	  TIMEOUT_MS,
	  { -ECONNRESET, 0, THE_VICTIM } },
	{ "a rank exits", EXIT, { 1000, 0 }, TIMEOUT_MS, { -ECONNRESET, 0, THE_VICTIM } },
	{ "a rank leaves early", LEAVE, { 1000, 0 }, TIMEOUT_MS, { -ECONNRESET, 0, THE_VICTIM } },
	{ "a rank leaves early, 8 in flight elsewhere",
	  LEAVE,
	  { 1000, 8 },
	  TIMEOUT_MS,
	  { -ECONNRESET, 0, THE_VICTIM } },
	{ "a rank aborts", ABORT, { 1000, 0 }, TIMEOUT_MS, { -ECONNABORTED, 0, THE_VICTIM } },
	{ "a rank aborts, 8 in flight elsewhere",
	  ABORT,
	  { 30001, 8 },
	  TIMEOUT_MS,
	  { -ECONNABORTED, 0, THE_VICTIM } },
	{ "a rank is stopped past the deadline",
	  STOP,
	  { 1000, 0 },
	  SHORT_MS,
	  { -ETIMEDOUT, 0, THE_VICTIM } },
	{ "a node calls with another count",
	  MISMATCH_COUNT,
	  { 1000, 0 },
	  TIMEOUT_MS,
	  { -EPROTO, 0, CALLERS } },
	{ "a node calls another collective",
	  MISMATCH_COLL,
	  { 1000, 0 },
	  TIMEOUT_MS,
	  { -EPROTO, 0, CALLERS } },
	{ "a node calls with another type, large",
	  MISMATCH_TYPE,
	  { 300000, 0 },
	  TIMEOUT_MS,
	  { -EPROTO, 0, CALLERS } },
	{ "all packets are lost past the deadline",
	  CUT,
	  { 30001, 0 },
	  SHORT_MS,
	  { -ETIMEDOUT, -ECONNRESET, ANOTHER_NODE },
	  .needs = "tc" },
	{ "all packets are lost for long",
	  CUT,
	  { 30001, 4 },
	  TIMEOUT_MS,
	  { -ECONNRESET, 0, ANOTHER_NODE },
	  .needs = "tc" },
	{ "links of a node are down past the deadline",
	  DOWN,
	  { 30001, 0 },
	  SHORT_MS,
	  { -ETIMEDOUT, -ECONNRESET, ANOTHER_NODE },
	  .needs = "ip" },
	{ "RDMA devices are removed under load",
	  REMOVE,
	  { 200001, 0 },
	  TIMEOUT_MS,
	  { -ECONNRESET, -ENODEV, VICTIMS_NODE },
	  .needs = "rdma" },
	{ "RDMA devices are removed with 8 in flight",
	  REMOVE,
	  { 30001, 8 },
	  TIMEOUT_MS,
	  { -ECONNRESET, -ENODEV, VICTIMS_NODE },
	  .needs = "rdma" },
};

static bool is_self(enum how how)
{
	return how == EXIT || how == LEAVE || how == ABORT;
}

static bool is_mismatch(enum how how)
{
	return how == MISMATCH_COUNT || how == MISMATCH_COLL || how == MISMATCH_TYPE;
}

static int mismatch(struct work *w, enum how how)
{
	struct coll_case c = w->c;

	if (how == MISMATCH_COUNT)
		c.count--;
	else if (how == MISMATCH_TYPE)
		c.dtype = SWINGCOLL_F32;
	else
		c.coll = SWINGCOLL_BROADCAST;
	return coll_run(&c, w->mem[0], w->comm, 0);
}

/* The rank that makes the trouble itself, after some rounds. */
static int misbehave(struct work *w, enum how how)
{
	for (int i = 0; i < 5; i++)
		CHECK_EQ(well(w, i), 0);
	if (how == EXIT)
		_exit(0);
	if (how == ABORT)
		CHECK_EQ(swingcoll_comm_abort(w->comm), 0);
	CHECK_EQ(rank_down(w), 0);
	return 0;
}

/* Without the victim. */
static int go_on(struct work *w)
{
	struct swingcoll_comm *rest;
	struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_I64, .count = 999 };
	void *mem = malloc(coll_bytes(&c, layout.nranks));

	CHECK_EQ(swingcoll_comm_shrink(w->comm, NULL, 0, &rest), 0);
	CHECK_EQ(swingcoll_comm_size(rest), layout.nranks - 1);
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
	struct work w;
	int ret, round = 0;

	CHECK_EQ(rank_up(&w, i, t->timeout_ms, &t->load), 0);
	CHECK_EQ(well(&w, 0), 0);
	shared->started[i] = 1;
	if (is_self(t->how) && w.rank == victim)
		return misbehave(&w, t->how);
	do {
		good = swct_ms();
		if (is_mismatch(t->how) && round == 5 && net_node == last_node)
			ret = mismatch(&w, t->how);
		else
			ret = once(&w, round);
		round++;
	} while (!ret);
	bad = swct_ms();
	/* Who was stopped itself cannot hear of it in time. */
	if (bad > good + t->timeout_ms + GRACE_MS && !(t->how == STOP && w.rank == victim)) {
		ksft_print_msg("rank %d: heard of it after %d ms\n", w.rank, (int)(bad - good));
		return 1;
	}
	if (check_error(&w, &t->expected, ret))
		return 1;
	if (t->how == KILL && go_on(&w))
		return 1;
	CHECK_EQ(rank_down(&w), 0);
	return 0;
}

/* Wait until all ranks of this node have begun. */
static bool all_started(const pid_t *pid)
{
	uint64_t until = swct_ms() + 60000;

	for (int i = 0; i < LOCAL; i++)
		while (!__atomic_load_n(&shared->started[i], __ATOMIC_ACQUIRE)) {
			siginfo_t info = { 0 };

			if (swct_ms() > until ||
			    waitid(P_PID, pid[i], &info, WEXITED | WNOHANG | WNOWAIT) ||
			    info.si_pid)
				return false;
			swct_sleep_ms(2);
		}
	return true;
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
	return how == CUT || net_node == last_node;
}

static int trouble(const struct trouble *t)
{
	bool here = affects(t->how), up;
	pid_t pid[LOCAL], victim_pid = 0;
	int bad = 0, v = 0;

	memset(shared, 0, sizeof(*shared));
	swct_fork(pid, LOCAL, trouble_rank, (void *)t);
	for (int i = 0; i < LOCAL; i++)
		if (net_layout_rank(&layout, i) == victim)
			v = i;
	up = all_started(pid);
	bad |= net_together(!up);
	if (here && up) {
		swct_sleep_ms(t->delay_ms ? t->delay_ms : 500);
		bad |= break_it(t->how, pid[v]);
	}
	/* The victim comes last, and how it ends depends. */
	if (here && (t->how == KILL || t->how == STOP)) {
		victim_pid = pid[v];
		pid[v] = 0;
	}
	bad |= swct_reap(pid, LOCAL, t->timeout_ms + 60000);
	if (here && up)
		bad |= mend_it(t->how, victim_pid);
	if (victim_pid && t->how == KILL)
		waitpid(victim_pid, NULL, 0);
	else if (victim_pid)
		bad |= swct_reap(&victim_pid, 1, 20000);
	return bad;
}

/* ------------------------------------------------------------------ what must not hurt */

enum nuisance {
	NOTHING,
	LOSSY,
	SHORT_CUT
};

struct steady {
	const char *name;
	enum nuisance nuisance;
	struct load load;
	int rounds;
	const char *needs;
};

/* Not a link that is taken down by hand: a soft device finds no route then, and fails at once. */
static const struct steady steadies[] = {
	{ "1 % of packets lost, 10 % out of order", LOSSY, { 20001, 0 }, 15, "tc" },
	{ "1 % of packets lost, 10 % out of order, 4 in flight", LOSSY, { 30001, 4 }, 5, "tc" },
	{ "all packets of a node lost for a second", SHORT_CUT, { 30001, 2 }, 20, "tc" },
};

static int steady_rank(uint32_t i, void *arg)
{
	const struct steady *s = arg;
	uint64_t until;
	struct work w;

	CHECK_EQ(rank_up(&w, i, TIMEOUT_MS, &s->load), 0);
	CHECK_EQ(well(&w, 0), 0);
	shared->started[i] = 1;
	/* As many on all ranks, and until it is over where it happens. */
	until = swct_ms() + 2500;
	for (int round = 0;; round++) {
		int32_t go = net_node == last_node && swct_ms() < until && s->nuisance != LOSSY;
		int ret = once(&w, round), sum = 0;

		if (!ret)
			ret = swingcoll_allreduce(&go, &sum, 1, SWINGCOLL_I32, SWINGCOLL_MAX,
						  w.comm);
		if (ret) {
			char text[256];

			swingcoll_comm_error(w.comm, text, sizeof(text), NULL);
			ksft_print_msg("rank %d, round %d: %s\n", w.rank, round, text);
			return 1;
		}
		if (round >= s->rounds && !sum)
			break;
	}
	CHECK_EQ(rank_down(&w), 0);
	return 0;
}

static int steady(const struct steady *s)
{
	bool here = net_node == last_node;
	uint64_t start;
	pid_t pid[LOCAL];
	int bad = 0;

	memset(shared, 0, sizeof(*shared));
	if (s->nuisance == LOSSY)
		bad |= command("lossy", NULL);
	swct_fork(pid, LOCAL, steady_rank, (void *)s);
	bad |= net_together(!all_started(pid));
	if (here && s->nuisance != LOSSY && !bad) {
		swct_sleep_ms(300);
		start = swct_ms();
		bad |= command("blink", NULL);
		ksft_print_msg("no packet left node %d for up to %d ms\n", net_node,
			       (int)(swct_ms() - start));
	}
	bad |= swct_reap(pid, LOCAL, 120000);
	if (s->nuisance == LOSSY)
		bad |= command("mend", NULL);
	return bad;
}

/* ------------------------------------------------------------------ strangers on the port */

/* What the wire protocol says first, as an independent reader of it would write it. */
struct hello {
	uint32_t magic;
	uint16_t version;
	uint8_t channel, path;
	uint8_t name[8];
	uint32_t places, src, dst;
	uint16_t slots, slot_kib;
	uint8_t nonce[8], mac[16];
};

struct reject {
	uint32_t magic;
	uint16_t version, reason;
};

#define HELLO_MAGIC 0x57435753u
#define HELLO_VERSION 1
enum {
	REASON_UNKNOWN = 1,
	REASON_VERSION = 3,
	REASON_BAD = 4
};

#define EVENT_ADDR_RESOLVED 0
#define EVENT_ROUTE_RESOLVED 2
#define EVENT_REJECTED 8
#define STATUS_CONSUMER 28

static int ucm(int fd, uint32_t cmd, const void *in, uint16_t in_bytes, uint16_t out_bytes)
{
	char buf[1024];
	struct rdma_ucm_cmd_hdr h = { .cmd = cmd, .in = in_bytes, .out = out_bytes };

	memcpy(buf, &h, sizeof(h));
	memcpy(buf + sizeof(h), in, in_bytes);
	return write(fd, buf, sizeof(h) + in_bytes) < 0 ? -errno : 0;
}

static int ucm_event(int fd, struct rdma_ucm_event_resp *e)
{
	struct rdma_ucm_get_event get = { .response = (uintptr_t)e };
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, 10000) != 1)
		return -ETIMEDOUT;
	memset(e, 0, sizeof(*e));
	return ucm(fd, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), sizeof(*e));
}

/* Ask for a connection with @hello; the reason why it is refused, or a negative errno. */
static int knock(const struct hello *hello, uint32_t port, struct reject *r)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	uint32_t id;
	struct rdma_ucm_create_id create = { .uid = 1, /* events are for those who have one */
					     .response = (uintptr_t)&id,
					     .ps = RDMA_PS_TCP,
					     .qp_type = IB_UVERBS_QPT_RC };
	struct rdma_ucm_resolve_ip addr = { .timeout_ms = 2000 };
	struct rdma_ucm_resolve_route route = { .timeout_ms = 2000 };
	struct rdma_ucm_connect conn = { .conn_param = { .qp_num = 0x123,
							 .private_data_len = sizeof(*hello),
							 .responder_resources = 1,
							 .initiator_depth = 1,
							 .retry_count = 3,
							 .valid = 1 } };
	struct rdma_ucm_event_resp e = { 0 };
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	inet_pton(AF_INET, net_root_address(), &to.sin_addr);
	ret = ucm(fd, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), sizeof(id));
	addr.id = route.id = conn.id = id;
	memcpy(&addr.dst_addr, &to, sizeof(to));
	memcpy(conn.conn_param.private_data, hello, sizeof(*hello));
	if (!ret)
		ret = ucm(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &addr, sizeof(addr), 0);
	if (!ret)
		ret = ucm_event(fd, &e);
	if (!ret && e.event == EVENT_ADDR_RESOLVED)
		ret = ucm(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0);
	if (!ret)
		ret = ucm_event(fd, &e);
	if (!ret && e.event == EVENT_ROUTE_RESOLVED)
		ret = ucm(fd, RDMA_USER_CM_CMD_CONNECT, &conn, sizeof(conn), 0);
	if (!ret)
		ret = ucm_event(fd, &e);
	close(fd);
	if (ret) {
		ksft_print_msg("a stranger has got as far as event %u, status %d\n", e.event,
			       (int)e.status);
		return ret;
	}
	if (e.event != EVENT_REJECTED || e.status != STATUS_CONSUMER) {
		ksft_print_msg("a stranger gets event %u, status %u\n", e.event, e.status);
		return -EPROTO;
	}
	memcpy(r, e.param.conn.private_data, sizeof(*r));
	return 0;
}

static int knock_often(uint32_t port)
{
	static const struct hello good = { .magic = HELLO_MAGIC,
					   .version = HELLO_VERSION,
					   .name = "nobody",
					   .src = 0,
					   .dst = 1,
					   .slots = 16,
					   .slot_kib = 32 };
	struct hello h;
	struct reject r;

	for (int i = 0; i < 24; i++) {
		int want = REASON_BAD;

		h = good;
		switch (i % 6) {
		case 0: /* a name that nobody has */
			getrandom(h.name, sizeof(h.name), 0);
			want = REASON_UNKNOWN;
			break;
		case 1: /* of the past, and of the future */
			h.version = i & 8 ? 0 : 0x7fff;
			want = REASON_VERSION;
			break;
		case 2: /* noise behind a good beginning */
			getrandom((char *)&h + 6, sizeof(h) - 6, 0);
			h.src = 5;
			h.dst = 4;
			break;
		case 3: /* noise */
			getrandom(&h, sizeof(h), 0);
			h.magic |= 1u << 31;
			break;
		case 4:
			memset(&h, 0, sizeof(h));
			break;
		case 5:
			h.slot_kib = 0xffff;
			break;
		}
		CHECK_EQ(knock(&h, port, &r), 0);
		CHECK_EQ(r.magic, HELLO_MAGIC);
		CHECK_EQ(r.version, HELLO_VERSION);
		CHECK_EQ(r.reason, want);
	}
	return 0;
}

static int knocking(void *arg)
{
	return knock_often(*(uint32_t *)arg);
}

static const struct steady undisturbed = { "", NOTHING, { 3001, 2 }, 10, NULL };

/* All nodes but node 0 knock at it while a communicator works. */
static int strangers(void)
{
	uint64_t refused = swct_stat(SWC_STAT_CONNS_REFUSED);
	struct swc_info info;
	uint32_t port;
	int fd = open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC), bad;
	pid_t pid[LOCAL];

	CHECK_EQ(swct_ioctl(fd, SWC_IOC_INFO, &info), 0);
	close(fd);
	port = info.rdma_port;
	memset(shared, 0, sizeof(*shared));
	swct_fork(pid, LOCAL, steady_rank, (void *)&undisturbed);
	bad = net_together(!all_started(pid));
	if (!bad && net_node)
		bad = swct_child(knocking, &port, 60000);
	bad |= swct_reap(pid, LOCAL, 60000);
	/* Not one was let in. */
	bad |= net_together(bad);
	if (!net_node) {
		refused = swct_stat(SWC_STAT_CONNS_REFUSED) - refused;
		if (refused < 24) {
			ksft_print_msg("%llu requests refused\n", (unsigned long long)refused);
			bad = 1;
		}
	}
	return bad;
}

/* ------------------------------------------------------------------ who is where? */

struct place {
	uint8_t id[SWC_ID_BYTES];
	char address[64];
	uint32_t port;
};

static struct place place[NET_MAX_NODES];

static void set_address(void *to, const char *text, uint32_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &in.sin_addr);
	memcpy(to, &in, sizeof(in));
}

/* Both node 0 and the last one have ranks 0 and 1, they say, and the other has 2 and 3. */
static int crossed_rank(uint32_t rank, void *arg)
{
	int here = net_node ? 1 : 0, other = net_node ? 0 : last_node;
	uint32_t where[4] = { here, here, !here, !here };
	struct swc_node_path path = { .node = !here };
	struct swc_comm_join join = { .nranks = 4,
				      .rank = rank,
				      .timeout_ms = TIMEOUT_MS,
				      .nnodes = 2,
				      .rank_node = (uintptr_t)where,
				      .paths = (uintptr_t)&path,
				      .npaths = 1 };
	struct swct_rank r = { .nranks = 4, .rank = rank };
	static uint32_t buf[1000];
	struct swc_comm_error e;
	struct swct_plan p;
	struct swc_desc d;
	int ret;

	(void)arg;
	memcpy(join.id, place[0].id, sizeof(join.id));
	set_address(path.local, place[net_node].address, 0);
	set_address(path.remote, place[other].address, place[other].port);
	CHECK_EQ(swct_open(&r.c), 0);
	CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_COMM_JOIN, &join), 0);
	r.comm = join.comm;
	swct_plan_ring(&p, 4, rank);
	CHECK_EQ(swct_plan_load(r.c.fd, r.comm, p.data, p.bytes, &r.plan, NULL), 0);
	swct_plan_free(&p);
	d = swct_allreduce(&r, buf, buf, 1000, SWC_U32);
	ret = swct_run(&r.c, &d, NULL);
	CHECK(ret == -EPROTO || ret == -ECONNABORTED);
	CHECK_EQ(swct_error(r.c.fd, r.comm, &e), 0);
	CHECK_EQ(e.error, -EPROTO);
	CHECK(e.culprit >= 0);
	if (!strstr(e.text, "who is where")) {
		ksft_print_msg("%s\n", e.text);
		return 1;
	}
	/* Who asks one that is gone learns nothing. */
	shared->started[rank] = 1;
	while (!__atomic_load_n(&shared->go, __ATOMIC_ACQUIRE))
		swct_sleep_ms(2);
	swct_rank_down(&r);
	return 0;
}

static int crossed(void)
{
	struct place mine = { 0 };
	struct swc_info info;
	int fd = open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	const char *addrs = getenv("SWINGCOLL_ADDRS");
	pid_t pid[2];
	int bad;

	CHECK(addrs);
	CHECK_EQ(swct_ioctl(fd, SWC_IOC_INFO, &info), 0);
	close(fd);
	mine.port = info.rdma_port;
	swct_id(mine.id);
	snprintf(mine.address, sizeof(mine.address), "%.*s", (int)strcspn(addrs, ","), addrs);
	net_exchange(&mine, place, sizeof(mine));
	if (net_node && net_node != last_node)
		return net_together(false);
	memset(shared, 0, sizeof(*shared));
	swct_fork(pid, 2, crossed_rank, NULL);
	bad = net_together(!all_started(pid));
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	return swct_reap(pid, 2, 60000) | bad;
}

/* ------------------------------------------------------------------ many at once */

#define JOBS 4
#define JOB_COMMS 4

/* Each rank is in one job, and makes all its connections at once. */
static int storm_rank(uint32_t k, void *arg)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = 30000 };
	int rank = net_layout_rank(&layout, k % LOCAL), n = layout.nranks;
	struct coll_case c = {
		.coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_I32, .count = 501, .in_place = true
	};
	struct swingcoll_comm *comm[JOB_COMMS];
	struct swingcoll_req *req[JOB_COMMS];
	struct swingcoll_bootstrap *boot;
	void *mem[JOB_COMMS];
	int ret;

	(void)arg;
	net_be_rank(&layout, rank, step);
	net_move_root(2 + k / LOCAL);
	ret = swingcoll_bootstrap_auto(&boot);
	if (ret)
		ksft_print_msg("rank %d: %s\n", rank, swingcoll_bootstrap_error());
	CHECK_EQ(ret, 0);
	for (int i = 0; i < JOB_COMMS; i++) {
		ret = swingcoll_comm_create_from(&comm[i], boot, &opts);
		if (ret)
			ksft_print_msg("rank %d: %s\n", rank, swingcoll_bootstrap_error());
		CHECK_EQ(ret, 0);
		mem[i] = malloc(coll_bytes(&c, n));
		coll_fill(&c, n, rank, mem[i], i);
	}
	swingcoll_bootstrap_free(boot);
	for (int i = 0; i < JOB_COMMS; i++)
		CHECK_EQ(coll_icall(&c, mem[i], mem[i], comm[i], &req[i]), 0);
	for (int i = 0; i < JOB_COMMS; i++) {
		ret = swingcoll_wait(req[i], NULL);
		if (ret) {
			char text[256];

			swingcoll_comm_error(comm[i], text, sizeof(text), NULL);
			ksft_print_msg("job %d, rank %d: %s\n", k / LOCAL, rank, text);
		}
		CHECK_EQ(ret, 0);
		CHECK_EQ(coll_check(&c, n, rank, mem[i], i), 0);
	}
	for (int i = 0; i < JOB_COMMS; i++)
		CHECK_EQ(swingcoll_comm_destroy(comm[i]), 0);
	return 0;
}

static int storm(void)
{
	return swct_ranks(JOBS * LOCAL, 90000, storm_rank, NULL);
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
				    .timeout_ms = TIMEOUT_MS,
				    .expected = { -ECONNRESET, 0, THE_VICTIM } };
	int was = last_node, bad;

	victim = rand_r(&seed) % layout.nranks;
	last_node = net_layout_node(&layout, victim);
	t.load.inflight = rand_r(&seed) % 3 ? rand_r(&seed) % (MAX_INFLIGHT + 1) : 0;
	t.load.count = 1 + rand_r(&seed) % (rand_r(&seed) % 3 ? 3000 : 60000);
	t.delay_ms = 1 + rand_r(&seed) % 150;
	bad = trouble(&t);
	if (bad)
		ksft_print_msg("node %d: rank %d killed after %u ms, %zu elements, %d in flight\n",
			       net_node, victim, t.delay_ms, t.load.count, t.load.inflight);
	last_node = was;
	victim = layout.nranks - 1;
	step++;
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

/* ------------------------------------------------------------------ after each case */

static bool balanced(const uint64_t *v, int plus, int minus, const char *what, bool say)
{
	if (say && v[plus] != v[minus])
		ksft_print_msg("node %d: %s: %llu, given back %llu\n", net_node, what,
			       (unsigned long long)v[plus], (unsigned long long)v[minus]);
	return v[plus] == v[minus];
}

static bool clean(bool say)
{
	uint64_t v[SWC_STAT_NR];

	if (swct_stats(v, SWC_STAT_NR))
		return false;
	return balanced(v, SWC_STAT_PAGES_PINNED, SWC_STAT_PAGES_UNPINNED, "pages pinned", say) &
	       balanced(v, SWC_STAT_REGIONS_PINNED, SWC_STAT_REGIONS_UNPINNED, "regions", say) &
	       balanced(v, SWC_STAT_CONNS_OPENED, SWC_STAT_CONNS_CLOSED, "connections", say);
}

/* Nothing is left of what ended badly. */
static int all_clean(void)
{
	uint64_t until = swct_ms() + CLEAN_MS;

	while (!clean(false)) {
		if (swct_ms() > until)
			return !clean(true);
		swct_sleep_ms(20);
	}
	return 0;
}

static int sound_rank(uint32_t i, void *arg)
{
	static const struct load small = { 2003, 2 };
	struct work w;

	(void)arg;
	CHECK_EQ(rank_up(&w, i, TIMEOUT_MS, &small), 0);
	CHECK_EQ(well(&w, 0), 0);
	CHECK_EQ(rank_down(&w), 0);
	return 0;
}

/* A new communicator works. */
static int sound(void)
{
	return swct_ranks(LOCAL, 60000, sound_rank, NULL);
}

/* ------------------------------------------------------------------ all cases */

static bool begin(const char *name, const char *needs, unsigned int *planned)
{
	if (!strstr(name, wanted))
		return false;
	if (planned) {
		++*planned;
		return false;
	}
	if (!needs || !net_together(command("has", needs)))
		return true;
	if (!net_node)
		ksft_test_result_skip("%s: %s is not installed on every node", name, needs);
	return false;
}

static void end(const char *name, int bad, uint64_t start)
{
	step++;
	/* All have ended before the first looks for what is left. */
	bad |= net_together(false);
	bad |= all_clean();
	bad |= net_together(false);
	bad |= sound();
	step++;
	bad = net_together(bad);
	if (!net_node)
		ksft_test_result(!bad, "%s, %d ms", name, (int)(swct_ms() - start));
}

static const struct {
	const char *name;
	int (*fn)(void);
} others[] = {
	{ "strangers ask for connections", strangers },
	{ "nodes disagree on who is where", crossed },
	{ "many communicators connect at once", storm },
	{ "random ranks are killed at random moments", random_kills },
};

static void cases(unsigned int *planned)
{
	uint64_t start;

	for (unsigned int k = 0; k < ARRAY_SIZE(troubles); k++) {
		start = swct_ms();
		if (begin(troubles[k].name, troubles[k].needs, planned))
			end(troubles[k].name, trouble(&troubles[k]), start);
	}
	for (unsigned int k = 0; k < ARRAY_SIZE(steadies); k++) {
		start = swct_ms();
		if (begin(steadies[k].name, steadies[k].needs, planned))
			end(steadies[k].name, steady(&steadies[k]), start);
	}
	for (unsigned int k = 0; k < ARRAY_SIZE(others); k++) {
		start = swct_ms();
		if (begin(others[k].name, NULL, planned))
			end(others[k].name, others[k].fn(), start);
	}
}

int main(int argc, char **argv)
{
	unsigned int planned = 0;

	if (argc > 1)
		wanted = argv[1];
	net_start();
	net_layout(&layout, LOCAL, LOCAL);
	last_node = net_nodes - 1;
	victim = layout.nranks - 1;
	shared = swct_shared(sizeof(*shared));
	cases(&planned);
	if (!net_node)
		ksft_set_plan(planned);
	cases(NULL);
	if (net_node)
		return 0;
	ksft_finished();
}
