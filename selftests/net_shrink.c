// SPDX-License-Identifier: GPL-2.0-only
/*
 * Going on without a rank that died: on every node of a cluster at once, with two ranks on each. The victim kills
 * itself among collectives; all others are told who it was, make a smaller communicator, and use it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <swingcoll.h>

#include "swct.h"

#define LOCAL 2
#define ROUNDS 5
#define COUNT 5000

static int nnodes, nranks, victim;

/* Sum of what all ranks of @comm give, each its number in the first communicator plus one. */
static int sum_is(struct swingcoll_comm *comm, int mine, long want)
{
	static long send[COUNT], recv[COUNT];
	int ret;

	for (int i = 0; i < COUNT; i++)
		send[i] = mine + 1;
	ret = swingcoll_allreduce(send, recv, COUNT, SWINGCOLL_I64, SWINGCOLL_SUM, comm);
	for (int i = 0; !ret && i < COUNT; i++)
		CHECK_EQ(recv[i], want);
	return ret;
}

static int rank_fn(int rank)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = 10000 };
	struct swingcoll_comm *comm, *rest;
	long all = (long)nranks * (nranks + 1) / 2;
	char text[256], number[16];
	int ret, culprit;

	snprintf(number, sizeof(number), "%d", rank);
	setenv("SWINGCOLL_RANK", number, 1);
	snprintf(number, sizeof(number), "%d", nranks);
	setenv("SWINGCOLL_NRANKS", number, 1);
	ret = swingcoll_comm_create_auto(&comm, &opts);
	if (ret)
		ksft_print_msg("rank %d: %s\n", rank, swingcoll_bootstrap_error());
	CHECK_EQ(ret, 0);
	for (int i = 0; i < ROUNDS; i++)
		CHECK_EQ(sum_is(comm, rank, all), 0);
	if (rank == victim)
		raise(SIGKILL);
	do {
		ret = sum_is(comm, rank, all);
	} while (!ret);
	/* A call that comes after it is told that it is over. */
	CHECK(ret == -ECONNRESET || ret == -ECONNABORTED);
	CHECK_EQ(swingcoll_comm_error(comm, text, sizeof(text), &culprit), -ECONNRESET);
	if (culprit != victim)
		ksft_print_msg("rank %d was told: %s\n", rank, text);
	CHECK_EQ(culprit, victim);

	CHECK_EQ(swingcoll_comm_shrink(comm, &rank, 1, &rest), -EINVAL);
	CHECK_EQ(swingcoll_comm_shrink(comm, NULL, 0, &rest), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	CHECK_EQ(swingcoll_comm_size(rest), nranks - 1);
	CHECK_EQ(swingcoll_comm_rank(rest), rank < victim ? rank : rank - 1);
	for (int i = 0; i < ROUNDS; i++)
		CHECK_EQ(sum_is(rest, rank, all - (victim + 1)), 0);
	CHECK_EQ(swingcoll_barrier(rest), 0);
	CHECK_EQ(swingcoll_comm_destroy(rest), 0);
	return 0;
}

int main(void)
{
	const char *node = getenv("SWINGCOLL_NODE"), *nodes = getenv("SWINGCOLL_NNODES");
	int me, bad = 0;

	if (!node || !nodes || !getenv("SWINGCOLL_ROOT")) {
		ksft_print_header();
		ksft_exit_skip("needs a cluster: tools/vm/run --nodes 2 -- ...\n");
	}
	swct_need_device();
	me = atoi(node);
	nnodes = atoi(nodes);
	nranks = nnodes * LOCAL;
	victim = nranks / 2;
	fflush(stdout);
	for (int i = 0; i < LOCAL; i++)
		if (!fork())
			_exit(rank_fn(me * LOCAL + i));
	for (int i = 0; i < LOCAL; i++) {
		int status;

		wait(&status);
		if (WIFSIGNALED(status) ? WTERMSIG(status) != SIGKILL || victim / LOCAL != me
					: WEXITSTATUS(status))
			bad = 1;
	}
	if (me)
		return bad;
	ksft_print_header();
	ksft_set_plan(1);
	ksft_test_result(!bad, "the ranks of node 0 go on without rank %d", victim);
	ksft_finished();
}
