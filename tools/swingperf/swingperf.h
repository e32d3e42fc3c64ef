/* SPDX-License-Identifier: GPL-2.0-only */
/* swingperf's own parts: what was asked for, one rank's state, the printer. */
#ifndef SWINGPERF_H
#define SWINGPERF_H

#include <stdbool.h>
#include <stddef.h>

#include "pattern.h"
#include "common/team.h"
#include "common/perfloop.h"
#include "swingcoll.h"

#define PERF_MAX_BUFFERS 64

struct perf_options {
	enum swingcoll_coll coll;
	enum swingcoll_dtype dtype;
	enum swingcoll_redop op;
	size_t min_bytes;
	size_t max_bytes;
	double factor;
	const size_t *sizes; /* made from the three above, or given */
	size_t nsizes;
	struct perf_rule rule;
	const char *algo;
	const char *topo;
	const char *tuning;
	const char *tune; /* file to write */
	bool anywhere;	  /* on nodes that the library finds out about */
	int total;	  /* ranks on all nodes */
	bool reorder;
	bool urgent;
	int root;
	bool in_place_only;
	bool out_of_place_only;
	bool nonblocking;
	bool check;
	bool json;
	unsigned int timeout_ms;
	int use_io_uring; /* as in struct swingcoll_comm_opts */
	long long slot_max;
	bool bind;
	const int *cpus; /* ranks take them in turn */
	int ncpus;
};

/* One rank, for the whole run. */
struct perf_rank {
	const struct perf_options *opt;
	struct team *team;
	struct swingcoll_comm *comm;
	char *send[PERF_MAX_BUFFERS];
	char *recv[PERF_MAX_BUFFERS];
	struct swingcoll_req *req[PERF_MAX_BUFFERS];
	/* the row being measured */
	size_t count; /* as in the library's calls */
	size_t total; /* elements of the longest buffer */
	bool in_place;
};

struct perf_row {
	struct perf_time t;
	size_t bytes;
	size_t count;
	bool in_place;
	uint64_t wrong; /* over all ranks */
	const char *algo;
};

/* The vector has a part for each rank. */
static inline bool perf_has_parts(const struct perf_options *opt)
{
	return opt->coll == SWINGCOLL_REDUCE_SCATTER || opt->coll == SWINGCOLL_ALLGATHER ||
	       opt->coll == SWINGCOLL_ALLTOALL;
}

/* args.c; both end the program with a message if something is wrong. */
void perf_parse(struct perf_options *opt, struct team *team, int argc, char **argv);
void perf_check_options(struct perf_options *opt, int nranks);

/* launch.c */

/* How the ranks come to be. */
enum perf_launch {
	PERF_FORK, /* all of them forked here */
	PERF_ATTACH, /* this is one of a launcher's on this node, and SWINGCOLL_ID tells which job's */
	PERF_LAUNCHED, /* this is one of a launcher's */
	PERF_NODE,     /* some forked here, others on other nodes */
	PERF_BAD,      /* it has been said why */
};

/*
 * Look around; team->nranks is what -n says, or 0. Sets the team's rank and size, as far as they are known,
 * and *total, the number of all ranks.
 */
enum perf_launch perf_find_launch(struct team *team, int *total);
/* In a rank forked on one of several nodes: turn its number on this node into its rank, and meet the others. */
int perf_join_nodes(struct team *team, int total);

/* run.c; 0 or a negative errno, and what happened has been said. */
int perf_rank_open(struct perf_rank *r);
void perf_rank_close(struct perf_rank *r);
int perf_rank_row(struct perf_rank *r, size_t bytes, bool in_place, struct perf_row *row);

/* tune.c; the exit status */
int perf_tune(const struct perf_options *opt, struct team *team);

/* print.c */
void perf_print_header(const struct perf_options *opt, const struct team *team,
		       const struct swingcoll_comm *comm);
/* out or in may be NULL */
void perf_print_row(const struct perf_options *opt, int nranks, const struct perf_row *out,
		    const struct perf_row *in);
void perf_print_footer(const struct perf_options *opt, uint64_t wrong, double busbw_mean);
double perf_busbw(const struct perf_options *opt, int nranks, const struct perf_row *row);

#endif /* SWINGPERF_H */
