/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cluster tests in which things go wrong: ranks that work until something happens, what they are told then, and
 * cases after each of which nothing may be left behind and a new communicator must work. Each node has NET_LOCAL
 * ranks; its process makes the trouble.
 */
#ifndef NET_RANKS_H
#define NET_RANKS_H

#include "coll.h"
#include "net.h"

#define NET_LOCAL 2
#define NET_MAX_INFLIGHT 8
#define NET_TIMEOUT_MS 20000 /* where the end is not to come by the deadline */
#define NET_GRACE_MS 10000   /* for a message about it on a busy machine */

extern struct net_layout net_cluster;
extern unsigned int net_step; /* of all sets of ranks there were, the same on all nodes */
extern int net_victim; /* the rank that things happen to; the last one, if the test does not say */

/* What a node's process and its ranks know of each other. */
struct net_shared {
	int started[NET_LOCAL];
	int go;
};

extern struct net_shared *net_shared;

/* Instead of net_start(). */
void net_ranks_start(void);

/* ------------------------------------------------------------------ ranks */

/* What ranks do until something happens: allreduces. */
struct net_load {
	size_t count;
	int inflight; /* 0: blocking calls, one at a time */
};

struct net_work {
	struct swingcoll_comm *comm;
	const struct net_load *load;
	struct coll_case c;
	int rank;
	void *mem[NET_MAX_INFLIGHT];
};

/* In a rank: meet the others. Says why if it does not work, as all of these do. */
int net_comm_create(struct swingcoll_comm **comm, int rank, uint32_t timeout_ms);
/* The @i-th rank of this node: likewise, with memory for @load. */
int net_rank_up(struct net_work *w, int i, uint32_t timeout_ms, const struct net_load *load);
int net_rank_down(struct net_work *w);
/* One round of the load, checked; the first error. */
int net_once(struct net_work *w, unsigned int round);
/* Likewise where nothing may go wrong. */
int net_well(struct net_work *w, unsigned int round);

/* Ranks with nothing to fear: so many rounds, and until @ms are over on the victim's node. */
struct net_steady {
	struct net_load load;
	int rounds;
	unsigned int ms;
};

/* For swct_fork(); @arg: struct net_steady. */
int net_steady_rank(uint32_t i, void *arg);

/* ------------------------------------------------------------------ the node's process */

/* Wait until all ranks of this node have set net_shared->started. */
bool net_all_started(const pid_t *pid);
int net_victims_node(void);
/* The victim, if it is one of this node's ranks: not in @pid any more, for it ends in its own way. Or 0. */
pid_t net_take_victim(pid_t *pid);

/* ------------------------------------------------------------------ what is expected */

enum net_whose {
	NET_THE_VICTIM,
	NET_VICTIMS_NODE, /* any rank of it */
	NET_ANOTHER_NODE, /* any rank of a node that is not the caller's */
	NET_CALLERS	  /* who called what cannot be told from here: any rank, and both calls */
};

struct net_expected {
	int error, or_error;
	enum net_whose whose;
};

/* The communicator's error and rank at fault are as expected, however the call that returned @ret has heard of it. */
int net_check_error(struct swingcoll_comm *comm, const struct net_expected *x, int ret);

/* ------------------------------------------------------------------ cases */

/* Until nothing is left on this node of what has ended; not 0 if something stays. */
int net_all_clean(void);
/* Is it to be run? */
bool net_case_begin(const char *name);
/* Its result, when nothing is left of it on any node and new communicators work. */
void net_case_end(const char *name, int bad);
/* What returns KSFT_SKIP does so on all nodes. */
void net_cases(const struct swct_test *test, unsigned int n);
/*
 * The rest of main(): @cases goes through all of them, by the above; it is called twice, to count those with argv[1]
 * in their names, and to run them.
 */
int net_main(int argc, char **argv, void (*cases)(void));

#endif /* NET_RANKS_H */
