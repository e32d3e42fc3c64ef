// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <sys/wait.h>

#include "net_ranks.h"

struct net_layout net_cluster;
unsigned int net_step;
int net_victim;
struct net_shared *net_shared;

static const char *wanted = "";
static unsigned int planned;
static bool counting;
static uint64_t began;

void net_ranks_init(void)
{
	net_init();
	net_layout(&net_cluster, NET_LOCAL_RANKS, NET_LOCAL_RANKS);
	net_victim = net_cluster.nranks - 1;
	net_shared = testlib_shared_alloc(sizeof(*net_shared));
}

/* ------------------------------------------------------------------ ranks */

int net_comm_create(struct swingcoll_comm **comm, int rank, uint32_t timeout_ms)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = timeout_ms };
	int ret;

	net_set_rank_env(&net_cluster, rank, net_step);
	ret = swingcoll_comm_create_auto(comm, &opts);
	if (ret)
		ksft_print_msg("rank %d: %s\n", rank, swingcoll_bootstrap_error());
	return ret;
}

int net_rank_open(struct net_rank *w, int i, uint32_t timeout_ms, const struct net_load *load)
{
	memset(w, 0, sizeof(*w));
	w->rank = net_layout_rank(&net_cluster, i);
	w->load = load;
	w->c = (struct coll_case){ .coll = SWINGCOLL_ALLREDUCE,
				   .dtype = SWINGCOLL_I32,
				   .count = load->count,
				   .in_place = true };
	for (int k = 0; k < (load->inflight ? load->inflight : 1); k++)
		w->mem[k] = malloc(coll_bytes(&w->c, net_cluster.nranks));
	coll_quiet = true;
	return net_comm_create(&w->comm, w->rank, timeout_ms);
}

int net_rank_close(struct net_rank *w)
{
	for (int k = 0; k < NET_MAX_INFLIGHT; k++)
		free(w->mem[k]);
	return swingcoll_comm_destroy(w->comm);
}

int net_run_round(struct net_rank *w, unsigned int round)
{
	struct swingcoll_req *req[NET_MAX_INFLIGHT] = { NULL };
	int error = 0, n = net_cluster.nranks;

	if (!w->load->inflight)
		return coll_run(&w->c, w->mem[0], w->comm, round);
	for (int k = 0; k < w->load->inflight && !error; k++) {
		coll_fill(&w->c, n, w->rank, w->mem[k], round + k);
		error = coll_icall(&w->c, w->mem[k], w->mem[k], w->comm, &req[k]);
	}
	for (int k = 0; k < w->load->inflight; k++) {
		int ret = req[k] ? swingcoll_wait(req[k], NULL) : 0;

		if (req[k] && !ret)
			ret = coll_check(&w->c, n, w->rank, w->mem[k], round + k);
		error = error ? error : ret;
	}
	return error;
}

int net_run_good_round(struct net_rank *w, unsigned int round)
{
	int ret = net_run_round(w, round), culprit;
	char text[256];

	if (!ret)
		return 0;
	swingcoll_comm_error(w->comm, text, sizeof(text), &culprit);
	ksft_print_msg("rank %d, round %u: %s; rank at fault %d: %s\n", w->rank, round,
		       swingcoll_strerror(ret), culprit, text);
	return ret;
}

int net_steady_rank(uint32_t i, void *arg)
{
	const struct net_steady *s = arg;
	uint64_t until;
	struct net_rank w;

	CHECK_EQ(net_rank_open(&w, i, NET_TIMEOUT_MS, &s->load), 0);
	CHECK_EQ(net_run_good_round(&w, 0), 0);
	net_shared->started[i] = 1;
	/* The same number of rounds on all ranks, as long as one of them wants to go on. */
	until = testlib_now_ms() + s->ms;
	for (int round = 0;; round++) {
		int32_t go = net_node == net_victim_node() && testlib_now_ms() < until;
		int ret = net_run_round(&w, round), any = 0;

		if (s->until_stop)
			go |= !__atomic_load_n(&net_shared->stop, __ATOMIC_ACQUIRE);
		if (!ret)
			ret = swingcoll_allreduce(&go, &any, 1, SWINGCOLL_I32, SWINGCOLL_MAX,
						  w.comm);
		if (ret) {
			char text[256];

			swingcoll_comm_error(w.comm, text, sizeof(text), NULL);
			ksft_print_msg("rank %d, round %d: %s\n", w.rank, round, text);
			return 1;
		}
		if (round >= s->rounds && !any)
			break;
	}
	CHECK_EQ(net_rank_close(&w), 0);
	return 0;
}

/* ------------------------------------------------------------------ the node process */

bool net_all_started(const pid_t *pid)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;

	for (int i = 0; i < NET_LOCAL_RANKS; i++)
		while (!__atomic_load_n(&net_shared->started[i], __ATOMIC_ACQUIRE)) {
			siginfo_t info = { 0 };

			if (testlib_now_ms() > limit ||
			    waitid(P_PID, pid[i], &info, WEXITED | WNOHANG | WNOWAIT) ||
			    info.si_pid)
				return false;
			testlib_sleep_ms(2);
		}
	return true;
}

int net_victim_node(void)
{
	return net_layout_node(&net_cluster, net_victim);
}

pid_t net_detach_victim(pid_t *pid)
{
	pid_t victim = 0;

	for (int i = 0; i < NET_LOCAL_RANKS; i++)
		if (net_layout_rank(&net_cluster, i) == net_victim) {
			victim = pid[i];
			pid[i] = 0;
		}
	return victim;
}

/* ------------------------------------------------------------------ expected errors */

/* Does the text say on which host the rank is? */
static bool tells_host(const char *text, int rank)
{
	char home[64];

	snprintf(home, sizeof(home), "rank %d: node%d (pid ", rank,
		 net_layout_node(&net_cluster, rank));
	return strstr(text, home);
}

int net_check_error(struct swingcoll_comm *comm, const struct net_expected *x, int ret)
{
	char text[1024];
	int error, culprit;
	bool good;

	error = swingcoll_comm_error(comm, text, sizeof(text), &culprit);
	good = error == x->error || (x->or_error && error == x->or_error);
	/* Calls after the error only get ECONNABORTED. */
	good &= ret == error || ret == -ECONNABORTED;
	switch (x->culprit) {
	case NET_CULPRIT_VICTIM:
		good &= culprit == net_victim;
		break;
	case NET_CULPRIT_VICTIM_NODE:
		good &= culprit >= 0 && net_layout_node(&net_cluster, culprit) == net_victim_node();
		break;
	case NET_CULPRIT_OTHER_NODE:
		good &= culprit >= 0 && net_layout_node(&net_cluster, culprit) != net_node;
		break;
	case NET_CULPRIT_CALLER:
		good &= culprit >= 0 && strstr(text, " called ") && strstr(text, ", but rank");
	}
	good &= culprit < 0 ? !!*text : tells_host(text, culprit);
	if (!good)
		ksft_print_msg("rank %d: the call returned %d; error %d, rank at fault %d: %s\n",
			       swingcoll_comm_rank(comm), ret, error, culprit, text);
	return !good;
}

/* ------------------------------------------------------------------ after each case */

static int works_rank(uint32_t i, void *arg)
{
	static const struct net_load small = { 2003, 2 };
	struct net_rank w;

	(void)arg;
	CHECK_EQ(net_rank_open(&w, i, NET_TIMEOUT_MS, &small), 0);
	CHECK_EQ(net_run_good_round(&w, 0), 0);
	CHECK_EQ(net_rank_close(&w), 0);
	return 0;
}

/* A new communicator works. */
static int works(void)
{
	return testlib_run_ranks(NET_LOCAL_RANKS, works_rank, NULL);
}

/* ------------------------------------------------------------------ cases */

bool net_case_begin(const char *name)
{
	began = testlib_now_ms();
	if (!strstr(name, wanted))
		return false;
	planned += counting;
	return !counting;
}

void net_case_end(const char *name, int bad)
{
	net_step++;
	/* Ranks of all nodes have ended before a node looks at its counters. */
	bad |= net_any(false);
	bad |= testlib_wait_released(0);
	bad |= net_any(false);
	bad |= works();
	net_step++;
	bad = net_any(bad);
	if (!net_node)
		ksft_test_result(!bad, "%s, %d ms", name, (int)(testlib_now_ms() - began));
}

void net_cases(const struct testlib_test *test, unsigned int n)
{
	for (unsigned int k = 0; k < n; k++) {
		int bad;

		if (!net_case_begin(test[k].name))
			continue;
		bad = test[k].fn();
		if (bad != KSFT_SKIP)
			net_case_end(test[k].name, bad);
		else if (!net_node)
			ksft_test_result_skip("%s", test[k].name);
	}
}

int net_main(int argc, char **argv, void (*cases)(void))
{
	if (argc > 1)
		wanted = argv[1];
	net_ranks_init();
	counting = true;
	cases();
	counting = false;
	if (!net_node)
		ksft_set_plan(planned);
	cases();
	if (net_node)
		return 0;
	ksft_finished();
}
