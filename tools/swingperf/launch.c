// SPDX-License-Identifier: GPL-2.0-only
/*
 * How swingperf's ranks come to be: forked here, started by a launcher, or forked on each of several nodes.
 * The library knows the variables of launchers; this file only acts on what it finds.
 */
#include "swingperf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"

static int bootstrap_failed(int err)
{
	fprintf(stderr, "swingperf: %s\n", swingcoll_bootstrap_error());
	return err;
}

/* This node's number and the number of nodes, by SWINGCOLL_NODE and SWINGCOLL_NNODES. */
static bool find_node(int *node, int *nnodes)
{
	const char *from;

	return swingcoll_bootstrap_launcher(&from, node, nnodes) == 1 &&
	       !strcmp(from, "SWINGCOLL_NODE");
}

/*
 * Ranks are forked although a launcher has started this process. That is right in a batch script, and a mistake
 * behind mpirun, where each process runs a job of its own. Said once, by the launcher's first process, or by each
 * if only the bootstrap can tell which that is.
 */
static void note_fork(int nranks, const char *from, int rank)
{
	if (rank > 0)
		return;
	fprintf(stderr,
		"swingperf: -n %d: each process that the launcher has started (%s is set) forks %d ranks "
		"of its own\n"
		"  next: leave out -n to make the launcher's processes the ranks\n",
		nranks, from, nranks);
}

enum perf_launch perf_find_launch(struct team *team, int *total)
{
	int rank, nranks, found;
	const char *from = NULL;

	found = swingcoll_bootstrap_launcher(&from, &rank, &nranks);
	if (found == 1 && !strcmp(from, "SWINGCOLL_NODE")) {
		if (!team->nranks)
			team->nranks = 1;
		*total = team->nranks * nranks;
		return PERF_NODE;
	}
	if (team->nranks || !found) {
		if (found == 1 && nranks != 1)
			note_fork(team->nranks, from, rank);
		if (!team->nranks)
			team->nranks = 2;
		*total = team->nranks;
		return PERF_FORK;
	}
	if (found < 0) {
		bootstrap_failed(found);
		return PERF_BAD;
	}
	if (cli_is_set("SWINGCOLL_ID") && nranks > 0 && !cli_is_set("SWINGCOLL_ROOT")) {
		team->rank = rank;
		*total = team->nranks = nranks;
		return PERF_ATTACH;
	}
	if (swingcoll_bootstrap_auto(&team->boot)) {
		bootstrap_failed(0);
		return PERF_BAD;
	}
	team->rank = team->boot->rank;
	*total = team->nranks = team->boot->nranks;
	return PERF_LAUNCHED;
}

int perf_join_nodes(struct team *team, int total)
{
	char text[16];
	int node, nnodes, ret;

	if (!find_node(&node, &nnodes))
		return -EINVAL;
	snprintf(text, sizeof(text), "%d", node * team->nranks + team->rank);
	setenv("SWINGCOLL_RANK", text, 1);
	snprintf(text, sizeof(text), "%d", total);
	setenv("SWINGCOLL_NRANKS", text, 1);
	ret = swingcoll_bootstrap_env(&team->boot);
	if (ret)
		return bootstrap_failed(ret);
	team->rank = team->boot->rank;
	team->nranks = team->boot->nranks;
	/* The memory that the ranks of this node share does not reach the others. */
	team->sh = NULL;
	return 0;
}
