/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ranks of a test program: who they are, how they are started, and how they meet without the thing
 * under test.
 */
#ifndef PERF_TEAM_H
#define PERF_TEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "swingcoll.h"

struct team_shared;

/* One rank's view. */
struct team {
	const char *prog;
	int rank;
	int nranks;
	bool forked; /* else started by a launcher */
	struct swingcoll_id id;
	struct team_shared *sh;		  /* how ranks on one node meet */
	struct swingcoll_bootstrap *boot; /* else by this; any number of them */
};

#define TEAM_MAX_RANKS 256

/*
 * Rank and size from a launcher's environment (SWINGCOLL_, OMPI_COMM_WORLD_, PMI_, SLURM_, RANK).
 * 1: found, 0: none, negative: they make no sense, and that has been said on stderr.
 */
int team_from_env(struct team *team);

/* Join the other ranks of this node that the launcher started; they share SWINGCOLL_ID. */
int team_attach(struct team *team);

/*
 * Once all ranks of a bootstrap turn out to be on one node: meet through shared memory from now on, if they
 * share any. Collective.
 */
int team_share(struct team *team);

/*
 * Fork team->nranks ranks; each runs body and exits with what it returns. Waits for them, ends the rest
 * as soon as one fails, and returns the highest exit status (2 for a rank ended by a signal).
 */
int team_run(struct team *team, int (*body)(struct team *team, void *arg), void *arg);

/* These return -ECANCELED once another rank has failed, -ETIMEDOUT if one does not come for minutes. */
int team_barrier(struct team *team);
int team_max(struct team *team, double *v);
int team_sum(struct team *team, uint64_t *v);

/* Tell the others that this rank gives up. */
void team_fail(struct team *team);

#endif /* PERF_TEAM_H */
