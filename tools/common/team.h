/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ranks of a test or example program: how they are started, and how they meet without the collectives
 * under test.
 */
#ifndef PERF_TEAM_H
#define PERF_TEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "swingcoll.h"

struct team_shared;

/* The ranks as one of them sees them. They meet by sh if they share memory, by boot otherwise. */
struct team {
	const char *prog; /* in front of messages */
	int rank;
	int nranks;
	bool forked; /* here; otherwise started by a launcher */
	struct swingcoll_id id;
	struct team_shared *sh;
	struct swingcoll_bootstrap *boot;
};

#define TEAM_MAX_RANKS 256 /* that share memory */

/*
 * Join the other ranks that a launcher started on this node; rank and nranks are set. They have the same
 * SWINGCOLL_ID in the environment, which becomes id. 0, or a negative errno after a message.
 */
int team_attach(struct team *team);

/*
 * For ranks of a bootstrap that are all on one node: meet through shared memory from now on, if they share
 * any. Collective; 0 or a negative errno.
 */
int team_share(struct team *team);

/*
 * Fork nranks ranks. Each runs @body and exits with the value that it returns. Waits for all of them, ends
 * the rest when one exits with 2 or more, and returns the highest exit status (2 for a rank that was
 * killed by a signal).
 */
int team_run(struct team *team, int (*body)(struct team *team, void *arg), void *arg);

/*
 * Collective; the maximum and the sum over all ranks replace *v on each of them. 0, -ECANCELED after another
 * rank has failed, or -ETIMEDOUT if a rank does not come within five minutes.
 */
int team_barrier(struct team *team);
int team_max(struct team *team, double *v);
int team_sum(struct team *team, uint64_t *v);

/* Tell the other ranks that this one gives up. */
void team_fail(struct team *team);

/*
 * Report a failed call of this rank with what the library knows about it and what to do next, and give up.
 * comm: NULL if there is none yet. Prints nothing for -ECANCELED, since another rank has reported the cause,
 * and a failure of the communicator once for all ranks that share memory.
 * Returns err.
 */
int team_error(struct team *team, struct swingcoll_comm *comm, const char *what, int err);

/* The CPUs that this process may use, @max at most; returns how many. */
int team_cpus(int *cpus, int max);
/*
 * Can this process be bound to the CPU? If not, *text is the list of those to which it can, such as "0-3,8".
 */
bool team_has_cpu(int cpu, char *text, size_t bytes);
/* Bind this rank to one of @n CPUs; ranks take them in turn. Nothing happens if @n is 0. */
void team_bind(const struct team *team, const int *cpus, int n);

#endif /* PERF_TEAM_H */
