// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who starts swingperf's ranks: itself, a launcher, or on each node of several itself. What the variables
 * of launchers say is the library's business; here it counts only whether there is one.
 */
#include "swingperf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_set(const char *name)
{
	const char *s = getenv(name);

	return s && *s;
}

static bool have_launcher(void)
{
	static const char *const names[] = { "SWINGCOLL_ROOT",	     "SWINGCOLL_RANK",
					     "OMPI_COMM_WORLD_RANK", "PMI_RANK",
					     "SLURM_PROCID",	     "PMIX_NAMESPACE" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_set(names[i]))
			return true;
	return is_set("RANK") && is_set("WORLD_SIZE");
}

/* The node's number, and how many there are. */
static int find_node(int *node, int *nnodes)
{
	const char *a = getenv("SWINGCOLL_NODE"), *b = getenv("SWINGCOLL_NNODES");
	char tail;

	if (sscanf(a, "%d%c", node, &tail) == 1 && sscanf(b, "%d%c", nnodes, &tail) == 1 &&
	    *node >= 0 && *node < *nnodes && *nnodes <= 4096)
		return 0;
	fprintf(stderr, "swingperf: SWINGCOLL_NODE=%s, SWINGCOLL_NNODES=%s: 0 <= node < nodes\n", a,
		b);
	return -EINVAL;
}

static int say(int err)
{
	fprintf(stderr, "swingperf: %s\n", swingcoll_bootstrap_error());
	return err;
}

enum perf_launch perf_find_launch(struct team *team, int *total)
{
	int node, nnodes, ret;

	if (!is_set("SWINGCOLL_RANK") && is_set("SWINGCOLL_NODE") && is_set("SWINGCOLL_NNODES")) {
		if (find_node(&node, &nnodes))
			return PERF_BAD;
		if (!team->nranks)
			team->nranks = 1;
		*total = team->nranks * nnodes;
		return PERF_NODE;
	}
	if (team->nranks || !have_launcher()) {
		if (!team->nranks)
			team->nranks = 2;
		*total = team->nranks;
		return PERF_FORK;
	}
	if (is_set("SWINGCOLL_ID") && !is_set("SWINGCOLL_ROOT")) {
		ret = team_from_env(team);
		*total = team->nranks;
		return ret > 0 ? PERF_ATTACH : PERF_BAD;
	}
	if (swingcoll_bootstrap_auto(&team->boot)) {
		say(0);
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

	ret = find_node(&node, &nnodes);
	if (ret)
		return ret;
	snprintf(text, sizeof(text), "%d", node * team->nranks + team->rank);
	setenv("SWINGCOLL_RANK", text, 1);
	snprintf(text, sizeof(text), "%d", total);
	setenv("SWINGCOLL_NRANKS", text, 1);
	ret = swingcoll_bootstrap_env(&team->boot);
	if (ret)
		return say(ret);
	team->rank = team->boot->rank;
	team->nranks = team->boot->nranks;
	/* What the ranks forked here share is not for all. */
	team->sh = NULL;
	return 0;
}
