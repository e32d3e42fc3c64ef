/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cluster tests with failures: ranks that run collectives until something fails, the error that they must get then, and
 * cases after each of which all resources must be released and a new communicator must work. Each node has
 * NET_LOCAL_RANKS ranks; the node process causes the failure.
 */
#ifndef NET_RANKS_H
#define NET_RANKS_H

#include "coll.h"
#include "net.h"

#define NET_LOCAL_RANKS 2
#define NET_MAX_INFLIGHT 8
#define NET_TIMEOUT_MS TESTLIB_EVENT_MS /* deadlines that are not to be reached */
#define NET_GRACE_MS 10000		/* for a busy machine */

extern struct net_layout net_cluster;
extern unsigned int net_step; /* counts sets of ranks, the same on all nodes */
extern int net_victim;	      /* the rank that fails; the last one unless the test sets it */

/* Shared by a node process and its ranks. */
struct net_shared {
	int started[NET_LOCAL_RANKS]; /* set by each rank */
	int go;			      /* set by the node process */
	int stop;		      /* likewise */
};

extern struct net_shared *net_shared;

/* Instead of net_init(). */
void net_ranks_init(void);

/* ------------------------------------------------------------------ ranks */

/* The load of ranks: allreduces of so many elements. */
struct net_load {
	size_t count;
	int inflight; /* 0: blocking calls, one at a time */
};

struct net_rank {
	struct swingcoll_comm *comm;
	const struct net_load *load;
	struct coll_case c;
	int rank;
	void *mem[NET_MAX_INFLIGHT];
};

/* In a rank: create the communicator. Prints a diagnostic if it fails, as all of these do. */
int net_comm_create(struct swingcoll_comm **comm, int rank, uint32_t timeout_ms);
/* The i-th rank of this node: likewise, with memory for a load. */
int net_rank_open(struct net_rank *w, int i, uint32_t timeout_ms, const struct net_load *load);
int net_rank_close(struct net_rank *w);
/* Run one round of the load and check it; returns the first error. */
int net_run_round(struct net_rank *w, unsigned int round);
/* Likewise, where an error is a failure of the test. */
int net_run_good_round(struct net_rank *w, unsigned int round);

/*
 * Ranks that must not fail: so many rounds at least, and until ms are over on the victim's node. With until_stop, also
 * until net_shared->stop is set on all nodes.
 */
struct net_steady {
	struct net_load load;
	int rounds;
	unsigned int ms;
	bool until_stop;
};

/* For testlib_fork_ranks(), with a struct net_steady. */
int net_steady_rank(uint32_t i, void *arg);

/* ------------------------------------------------------------------ the node process */

/* Wait until all ranks of this node have set net_shared->started. False if one ends before. */
bool net_all_started(const pid_t *pid);
int net_victim_node(void);
/* Take the victim out of this node's processes and return it; 0 if it is on another node. */
pid_t net_detach_victim(pid_t *pid);

/* ------------------------------------------------------------------ expected errors */

enum net_culprit {
	NET_CULPRIT_VICTIM,
	NET_CULPRIT_VICTIM_NODE, /* any rank of the victim's node */
	NET_CULPRIT_OTHER_NODE,	 /* any rank of another node than the caller's */
	NET_CULPRIT_CALLER	 /* any rank; the text must tell both calls */
};

struct net_expected {
	int error, or_error;
	enum net_culprit culprit;
};

/* Check the communicator's error and rank at fault after a call that has returned ret. */
int net_check_error(struct swingcoll_comm *comm, const struct net_expected *x, int ret);

/* ------------------------------------------------------------------ cases */

/* Is this case to be run? */
bool net_case_begin(const char *name);
/* Print its result, when all nodes have released all resources and a new communicator works. */
void net_case_end(const char *name, int bad);
/* Run cases; one that returns KSFT_SKIP must do so on all nodes. */
void net_cases(const struct testlib_test *test, unsigned int n);
/*
 * The rest of main(). The callback goes through all cases by the functions above. It is called twice: to count the cases
 * with argv[1] in their names, and to run them.
 */
int net_main(int argc, char **argv, void (*cases)(void));

#endif /* NET_RANKS_H */
