// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process is stopped, as by a debugger or a batch system, while it waits in the kernel for a message of
 * another node: what its communicator needs of its node goes on without it, and so does another communicator
 * between the same nodes. When it is continued, its call returns the result. If it is killed instead, the
 * others get an error that names it. Runs on every node of a cluster at once.
 *
 *	net_stop [WORD]		only cases with WORD in their names
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "net_ranks.h"

#define ROUNDS 3	/* in which all take part, before and after */
#define OTHER_ROUNDS 20 /* of the other communicator, while the process is stopped */

/* Each node has one rank in either communicator: process 0 in the victim's, process 1 in the other one. */
enum role {
	MEMBER,
	OTHER,
};

enum then {
	CONTINUE,
	KILL_AT_ONCE,	/* before others call */
	KILL_AFTERWARDS /* when it has messages that it has not seen */
};

struct stop {
	const char *name;
	struct net_load load; /* blocking calls */
	enum then then;
};

static const struct stop stops[] = {
	{ "a rank is stopped while it waits for a small message", { 1000, 0 }, CONTINUE },
	/* The others depend on answers of the victim's node. */
	{ "a rank is stopped while it waits for large messages", { 200001, 0 }, CONTINUE },
	{ "a stopped rank is killed", { 1000, 0 }, KILL_AT_ONCE },
	{ "a stopped rank is killed that has small messages", { 1000, 0 }, KILL_AFTERWARDS },
	{ "a stopped rank is killed that has large messages", { 200001, 0 }, KILL_AFTERWARDS },
};

static const struct net_load other_load = { 20001, 0 };

/* Of a node process and its ranks. */
static struct shared {
	unsigned int go;      /* the victim has been stopped */
	unsigned int end;     /* and continued, or killed */
	unsigned int done[2]; /* by role: what needs no victim that runs has been done */
} * shared;

/* ------------------------------------------------------------------ ranks */

static int good_rounds(struct net_rank *w, unsigned int first, unsigned int n)
{
	for (unsigned int round = first; round < first + n; round++)
		CHECK_EQ(net_run_good_round(w, round), 0);
	return 0;
}

/* In the victim's communicator, until it ends: the victim has been killed, or is going to be. */
static int survivor(struct net_rank *w, unsigned int round)
{
	static const struct net_expected expected = { -ECONNRESET, 0, NET_CULPRIT_VICTIM };
	char text[256];
	int ret;

	do {
		ret = net_run_round(w, round++);
	} while (!ret);
	if (net_check_error(w->comm, &expected, ret))
		return 1;
	swingcoll_comm_error(w->comm, text, sizeof(text), NULL);
	if (strstr(text, "was killed by signal 9"))
		return 0;
	ksft_print_msg("rank %d: %s\n", w->rank, text);
	return 1;
}

static int member(struct net_rank *w, const struct stop *t)
{
	if (w->rank != net_victim) {
		CHECK(testlib_wait_count(&shared->go, 1));
		/* The victim may have sent all that this round needs of it. */
		if (t->then == KILL_AT_ONCE)
			return survivor(w, ROUNDS);
	}
	/* The victim is stopped in its call, which it makes first. */
	CHECK_EQ(good_rounds(w, ROUNDS, 1), 0);
	testlib_count(&shared->done[MEMBER]);
	if (t->then == KILL_AFTERWARDS)
		return survivor(w, ROUNDS + 1);
	return good_rounds(w, ROUNDS + 1, ROUNDS);
}

static int other(struct net_rank *w)
{
	CHECK(testlib_wait_count(&shared->go, 1));
	CHECK_EQ(good_rounds(w, ROUNDS, OTHER_ROUNDS), 0);
	testlib_count(&shared->done[OTHER]);
	/* The node process always comes to it. */
	while (!__atomic_load_n(&shared->end, __ATOMIC_ACQUIRE))
		testlib_sleep_ms(1);
	return good_rounds(w, ROUNDS + OTHER_ROUNDS, ROUNDS);
}

static int rank_fn(uint32_t role, void *arg)
{
	const struct stop *t = arg;
	struct net_rank w;

	if (role == OTHER)
		net_set_root_offset(2);
	CHECK_EQ(net_rank_open(&w, 0, NET_TIMEOUT_MS, role == OTHER ? &other_load : &t->load), 0);
	CHECK_EQ(good_rounds(&w, 0, ROUNDS), 0);
	__atomic_store_n(&net_shared->started[role], 1, __ATOMIC_RELEASE);
	CHECK_EQ(role == OTHER ? other(&w) : member(&w, t), 0);
	CHECK_EQ(net_rank_close(&w), 0);
	return 0;
}

/* ------------------------------------------------------------------ the node process */

/* Stop a process that sleeps in its call. */
static int stop_it(pid_t pid)
{
	int status;

	CHECK(testlib_wait_asleep(pid));
	CHECK_EQ(kill(pid, SIGSTOP), 0);
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status));
	return 0;
}

static int kill_it(pid_t *pid)
{
	CHECK_EQ(kill(*pid, SIGKILL), 0);
	CHECK(testlib_was_killed(pid));
	return 0;
}

/* What must go on while the victim, if it is of this node, is stopped. */
static int goes_on(const struct stop *t, const pid_t *pid, bool here)
{
	int status;

	CHECK(testlib_wait_count(&shared->done[OTHER], 1));
	if (t->then == KILL_AT_ONCE)
		return 0;
	if (!here) {
		CHECK(testlib_wait_count(&shared->done[MEMBER], 1));
		return 0;
	}
	/* Neither continued nor ended. */
	CHECK_EQ(waitpid(pid[MEMBER], &status, WCONTINUED | WNOHANG), 0);
	return 0;
}

/* All nodes do this in step. */
static int stop_one(const struct stop *t)
{
	bool here = net_node == net_victim_node();
	pid_t pid[2];
	int bad;

	testlib_fork_ranks(pid, 2, rank_fn, (void *)t);
	bad = !net_all_started(pid);
	if (here && !bad)
		bad |= stop_it(pid[MEMBER]);
	if (here && t->then == KILL_AT_ONCE)
		bad |= kill_it(&pid[MEMBER]);
	bad = net_any(bad);
	testlib_count(&shared->go);
	if (!bad)
		bad |= goes_on(t, pid, here);
	bad = net_any(bad);
	if (here && t->then == CONTINUE)
		bad |= kill(pid[MEMBER], SIGCONT);
	if (here && t->then == KILL_AFTERWARDS)
		bad |= kill_it(&pid[MEMBER]);
	bad = net_any(bad);
	testlib_count(&shared->end);
	return bad | testlib_wait_ranks(pid, 2);
}

static int run(const struct stop *t)
{
	struct net_layout all = net_cluster;
	int bad;

	memset(net_shared, 0, sizeof(*net_shared));
	memset(shared, 0, sizeof(*shared));
	net_layout(&net_cluster, 1, 1);
	net_victim = net_cluster.nranks - 1;
	bad = stop_one(t);
	net_cluster = all;
	return bad;
}

static void cases(void)
{
	if (!shared)
		shared = testlib_shared_alloc(sizeof(*shared));
	for (unsigned int k = 0; k < ARRAY_SIZE(stops); k++)
		if (net_case_begin(stops[k].name))
			net_case_end(stops[k].name, run(&stops[k]));
}

int main(int argc, char **argv)
{
	return net_main(argc, argv, cases);
}
