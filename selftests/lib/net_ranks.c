// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <sys/wait.h>

#include "net_ranks.h"

#define CLEAN_MS 10000 /* until all is given back */

struct net_layout net_cluster;
unsigned int net_step;
int net_victim;
struct net_shared *net_shared;

static const char *wanted = "";
static unsigned int planned;
static bool counting;
static uint64_t began;

void net_ranks_start(void)
{
	net_start();
	net_layout(&net_cluster, NET_LOCAL, NET_LOCAL);
	net_victim = net_cluster.nranks - 1;
	net_shared = swct_shared(sizeof(*net_shared));
}

/* ------------------------------------------------------------------ ranks */

int net_comm_create(struct swingcoll_comm **comm, int rank, uint32_t timeout_ms)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = timeout_ms };
	int ret;

	net_be_rank(&net_cluster, rank, net_step);
	ret = swingcoll_comm_create_auto(comm, &opts);
	if (ret)
		ksft_print_msg("rank %d: %s\n", rank, swingcoll_bootstrap_error());
	return ret;
}

int net_rank_up(struct net_work *w, int i, uint32_t timeout_ms, const struct net_load *load)
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

int net_rank_down(struct net_work *w)
{
	for (int k = 0; k < NET_MAX_INFLIGHT; k++)
		free(w->mem[k]);
	return swingcoll_comm_destroy(w->comm);
}

int net_once(struct net_work *w, unsigned int round)
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

int net_well(struct net_work *w, unsigned int round)
{
	int ret = net_once(w, round), culprit;
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
	struct net_work w;

	CHECK_EQ(net_rank_up(&w, i, NET_TIMEOUT_MS, &s->load), 0);
	CHECK_EQ(net_well(&w, 0), 0);
	net_shared->started[i] = 1;
	/* As many on all ranks, and until it is over where it happens. */
	until = swct_ms() + s->ms;
	for (int round = 0;; round++) {
		int32_t go = net_node == net_victims_node() && swct_ms() < until;
		int ret = net_once(&w, round), sum = 0;

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
	CHECK_EQ(net_rank_down(&w), 0);
	return 0;
}

/* ------------------------------------------------------------------ the node's process */

bool net_all_started(const pid_t *pid)
{
	uint64_t until = swct_ms() + 60000;

	for (int i = 0; i < NET_LOCAL; i++)
		while (!__atomic_load_n(&net_shared->started[i], __ATOMIC_ACQUIRE)) {
			siginfo_t info = { 0 };

			if (swct_ms() > until ||
			    waitid(P_PID, pid[i], &info, WEXITED | WNOHANG | WNOWAIT) ||
			    info.si_pid)
				return false;
			swct_sleep_ms(2);
		}
	return true;
}

int net_victims_node(void)
{
	return net_layout_node(&net_cluster, net_victim);
}

pid_t net_take_victim(pid_t *pid)
{
	pid_t victim = 0;

	for (int i = 0; i < NET_LOCAL; i++)
		if (net_layout_rank(&net_cluster, i) == net_victim) {
			victim = pid[i];
			pid[i] = 0;
		}
	return victim;
}

/* ------------------------------------------------------------------ what is expected */

int net_check_error(struct swingcoll_comm *comm, const struct net_expected *x, int ret)
{
	char text[256];
	int error, culprit;
	bool good;

	error = swingcoll_comm_error(comm, text, sizeof(text), &culprit);
	good = error == x->error || (x->or_error && error == x->or_error);
	/* Calls that came after it are only told that it is over. */
	good &= ret == error || ret == -ECONNABORTED;
	switch (x->whose) {
	case NET_THE_VICTIM:
		good &= culprit == net_victim;
		break;
	case NET_VICTIMS_NODE:
		good &= culprit >= 0 &&
			net_layout_node(&net_cluster, culprit) == net_victims_node();
		break;
	case NET_ANOTHER_NODE:
		good &= culprit >= 0 && net_layout_node(&net_cluster, culprit) != net_node;
		break;
	case NET_CALLERS:
		good &= culprit >= 0 && strstr(text, " called ") && strstr(text, ", but rank");
	}
	good &= !!*text;
	if (!good)
		ksft_print_msg("rank %d: call %d, error %d, rank at fault %d: %s\n",
			       swingcoll_comm_rank(comm), ret, error, culprit, text);
	return !good;
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

int net_all_clean(void)
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
	static const struct net_load small = { 2003, 2 };
	struct net_work w;

	(void)arg;
	CHECK_EQ(net_rank_up(&w, i, NET_TIMEOUT_MS, &small), 0);
	CHECK_EQ(net_well(&w, 0), 0);
	CHECK_EQ(net_rank_down(&w), 0);
	return 0;
}

/* A new communicator works. */
static int sound(void)
{
	return swct_ranks(NET_LOCAL, 60000, sound_rank, NULL);
}

/* ------------------------------------------------------------------ cases */

bool net_case_begin(const char *name)
{
	began = swct_ms();
	if (!strstr(name, wanted))
		return false;
	planned += counting;
	return !counting;
}

void net_case_end(const char *name, int bad)
{
	net_step++;
	/* All have ended before the first looks for what is left. */
	bad |= net_together(false);
	bad |= net_all_clean();
	bad |= net_together(false);
	bad |= sound();
	net_step++;
	bad = net_together(bad);
	if (!net_node)
		ksft_test_result(!bad, "%s, %d ms", name, (int)(swct_ms() - began));
}

void net_cases(const struct swct_test *test, unsigned int n)
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
	net_ranks_start();
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
