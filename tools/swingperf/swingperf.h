/* SPDX-License-Identifier: GPL-2.0-only */
/* swingperf: options, the state of one rank, and what its files offer each other. */
#ifndef SWINGPERF_H
#define SWINGPERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "pattern.h"
#include "common/cli.h"
#include "common/team.h"
#include "common/perfloop.h"
#include "common/sparse_input.h"
#include "swingcoll.h"

#define PERF_MAX_BUFFERS 64
#define PERF_MAX_CPUS 1024

struct perf_compare;
struct cJSON;

enum perf_format {
	PERF_TABLE,
	PERF_JSON,
	PERF_CSV
};

struct perf_options {
	const struct cli *cli; /* for messages */
	enum swingcoll_coll coll;
	enum swingcoll_dtype dtype;
	enum swingcoll_redop op;
	size_t min_bytes;
	size_t max_bytes;
	double factor;
	size_t step;	     /* if not 0: added from one size to the next, instead of the factor */
	const size_t *sizes; /* given, or made from the three above */
	size_t nsizes;
	struct perf_rule rule;
	const char *algo;
	const char *topo;
	const char *tuning;
	const char *tune; /* file to write */
	bool links_only;  /* to it */
	bool anywhere;	  /* the ranks may be on several nodes */
	int total;	  /* ranks on all nodes */
	bool reorder;
	bool urgent;
	int root;
	bool in_place_only;
	bool out_of_place_only;
	bool nonblocking;
	bool check;
	enum perf_format format;
	bool nccl;	     /* the columns of nccl-tests and no others, with its type names */
	const char *compare; /* file of earlier measurements */
	double tolerance;    /* a share by which times may be longer than those */
	struct perf_compare *earlier; /* what the file contains */
	unsigned int timeout_ms;
	int use_io_uring; /* as in struct swingcoll_comm_opts */
	long long slot_max;
	int cpus[PERF_MAX_CPUS]; /* to bind ranks to */
	int ncpus;
	bool sparse; /* by the modes of swingcoll_sparse.h */
	struct sparse_input input;
	const char *mode; /* NULL: all that are possible */
};

/* One rank, for the whole run; count, total and in_place are of the row being measured. */
struct perf_rank {
	const struct perf_options *opt;
	struct team *team;
	struct swingcoll_comm *comm;
	char *send[PERF_MAX_BUFFERS];
	char *recv[PERF_MAX_BUFFERS];
	struct swingcoll_req *req[PERF_MAX_BUFFERS];
	size_t count; /* as in the library's calls */
	size_t total; /* elements of the longest buffer */
	bool in_place;
	struct cJSON *records; /* rank 0, with --compare: an array of its rows */
};

struct perf_row {
	struct perf_time t;
	size_t bytes;
	size_t count;
	bool in_place;
	uint64_t wrong; /* over all ranks */
	const char *algo;
};

/* The vector has a shard for each rank. */
static inline bool perf_has_shards(const struct perf_options *opt)
{
	return opt->coll == SWINGCOLL_REDUCE_SCATTER || opt->coll == SWINGCOLL_ALLGATHER ||
	       opt->coll == SWINGCOLL_ALLTOALL || opt->coll == SWINGCOLL_GATHER ||
	       opt->coll == SWINGCOLL_SCATTER;
}

/* args.c; both end the program with a message if an option is wrong. */
void perf_parse(struct perf_options *opt, struct team *team, int argc, char **argv);
void perf_check_options(struct perf_options *opt, int nranks);

/*
 * nccl.c: the command line of nccl-tests. Return false, with nothing done, if the program is not called by
 * one of the names of nccl-tests.
 */
bool perf_nccl_parse(struct perf_options *opt, struct team *team, int argc, char **argv);
/* A type's name there. */
const char *perf_nccl_dtype(enum swingcoll_dtype dtype);

/* launch.c */

enum perf_launch {
	PERF_FORK,     /* all ranks are forked here */
	PERF_ATTACH,   /* a launcher started the ranks, on this node; they meet by SWINGCOLL_ID */
	PERF_LAUNCHED, /* a launcher started the ranks */
	PERF_NODE,     /* some ranks are forked here, others on other nodes */
	PERF_BAD,      /* the environment makes no sense; a message has said why */
};

/*
 * How the ranks come to be. team->nranks is -n, or 0 if that is not given. Sets the team's rank and size as
 * far as they are known, and *total, the number of all ranks.
 */
enum perf_launch perf_find_launch(struct team *team, int *total);
/* For PERF_NODE, in a forked rank: turn its number on this node into its rank, and connect to the others. */
int perf_join_nodes(struct team *team, int total);

/* run.c; 0, or a negative errno after a message. */
int perf_rank_open(struct perf_rank *r);
/* The same with an id of its own for communicator @number of a run, the same on all ranks. */
int perf_rank_open_number(struct perf_rank *r, unsigned int number);
void perf_rank_close(struct perf_rank *r);
int perf_rank_row(struct perf_rank *r, size_t bytes, bool in_place, struct perf_row *row);
/* The time that an operation takes on this rank, out of place; and the size that is measured. */
int perf_rank_own(struct perf_rank *r, size_t bytes, double *us, size_t *measured);

/* tune.c; the exit status */
int perf_tune(const struct perf_options *opt, struct team *team);

/*
 * links.c: measure the rate of each link, if there are any, and write them to @f, which rank 0 has. *number
 * is the next communicator's. *measured gets the topology with these rates, to be freed, or NULL. 0, or a
 * negative errno after a message.
 */
int perf_tune_links(const struct perf_options *opt, struct team *team, unsigned int *number,
		    FILE *f, char **measured);

/*
 * sparse.c: sparse allreduces by one mode or all, at all sizes, on an open rank. 0, or a negative errno
 * after a message; *wrong: elements over all ranks.
 */
int perf_sparse(struct perf_rank *r, uint64_t *wrong);
/* Can the mode be used with these options? */
bool perf_sparse_mode_fits(const struct perf_options *opt);

/* compare.c; both end the program with a message if a file cannot be read. */
void perf_compare_open(struct perf_options *opt);
/* Print the ratios of two files; the exit status. */
int perf_compare_files(struct perf_options *opt, const char *path);
/* The same for the open file and the rows of this run. */
int perf_compare_run(const struct perf_options *opt, struct cJSON *records);

/* print.c; rank 0 prints */
/* Print in the format that is asked for, JSON or CSV, and free. All records of a run have the same members. */
void perf_print_record(const struct perf_options *opt, struct cJSON *record);
void perf_print_header(const struct perf_rank *r);
/* out or in may be NULL */
void perf_print_row(const struct perf_rank *r, const struct perf_row *out,
		    const struct perf_row *in);
void perf_print_footer(const struct perf_options *opt, uint64_t wrong, double busbw_mean);
/* What the busiest link carries in GB/s, as nccl-tests define it per collective. */
double perf_busbw(const struct perf_options *opt, int nranks, const struct perf_row *row);
/* The topology that plans are made for, without the figures of its links. Freed by the caller. */
char *perf_topo_text(const struct swingcoll_comm *comm);

#endif /* SWINGPERF_H */
