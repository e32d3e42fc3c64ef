/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * swingplan: options, the algorithms in question, and messages. main.c has the verbs, args.c the options,
 * entries.c the algorithms and their costs, report.c messages and the progress bar; each other file is a verb.
 */
#ifndef SWINGPLAN_H
#define SWINGPLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json.h"
#include "common/number.h"
#include "common/sparse_input.h"
#include "plan/format/plan_text.h"
#include "plan/model/model.h"
#include "plan/plan.h"

/* Segments of a forest's plan, at most. */
#define FOREST_PIECES 4096

struct plan_options {
	const char *algos;    /* as given: "all", or names with commas between them */
	struct swc_topo topo; /* nranks is 0 if none is given */
	char *topo_text;
	enum swc_coll coll;
	bool all_colls;
	uint32_t root;
	int64_t rank;	   /* -1: not given */
	int64_t check;	   /* verify: plans to check; -1: not given, 0: all */
	uint32_t ncpus;	   /* choose: of the one node; 0: not given */
	uint32_t ngroups;  /* choose: of ranks that share a cache, likewise */
	uint32_t nranks;   /* export: ranks, if there is no topology */
	uint32_t channels; /* export; 0: the algorithm's choice */
	uint32_t ports;
	bool in_place;	/* export */
	bool no_verify; /* import */
	double *sizes;
	unsigned int nsizes;
	struct swc_network net;
	bool kernel; /* simulate */
	bool flow;
	bool no_headers, store_forward;
	enum swc_dtype dtype;
	enum swc_redop redop;
	bool reorder;
	bool json;
	const char *tuning;
	bool msccl; /* write MSCCL's XML */
	const char *out;
	const char *file;  /* import */
	const char *spec;  /* allocate, orders */
	const char *graph; /* forest */
	const char *members, *root_name;
	bool any_roots, trees;
	double for_size;
	uint32_t pieces;
	uint64_t count; /* sparse */
	struct sparse_input input;
};

/* ------------------------------------------------------------------ args.c */

/* Options. A verb names those that it takes as bits 1 << enum plan_option. */
enum plan_option {
	OPTION_ALGO,
	OPTION_ONE_ALGO,
	OPTION_TOPO,
	OPTION_OP,
	OPTION_ANY_OP, /* or all */
	OPTION_ROOT,
	OPTION_RANK,
	OPTION_CHECK,  /* --ranks of verify */
	OPTION_NRANKS, /* --ranks of export */
	OPTION_CHANNELS,
	OPTION_PORTS,
	OPTION_IN_PLACE,
	OPTION_NO_VERIFY,
	OPTION_SIZE,
	OPTION_LINK_GBPS,
	OPTION_HOP_NS,
	OPTION_STEP_NS,
	OPTION_ACK_BYTES,
	OPTION_KERNEL,
	OPTION_MODEL,
	OPTION_NO_HEADERS,
	OPTION_STORE_FORWARD,
	OPTION_DTYPE,
	OPTION_REDOP,
	OPTION_REORDER,
	OPTION_TUNING,
	OPTION_CPUS,
	OPTION_CACHES,
	OPTION_OUT_DIR,
	OPTION_OUT_FILE,
	OPTION_SPEC,
	OPTION_SPARSE_RANKS, /* --ranks of sparse */
	OPTION_COUNT,
	OPTION_DENSITY,
	OPTION_OVERLAP,
	OPTION_GRAPH,
	OPTION_ROOTS,
	OPTION_ROOT_NAME,
	OPTION_OUT_PLANS,
	OPTION_FOR_SIZE,
	OPTION_PIECES,
	OPTION_MEMBERS,
	OPTION_TREES,
	OPTION_FORMAT,
	OPTION_JSON,
	OPTION_NR
};

/**
 * struct verb - what swingplan can do
 * @name, @text: for the help text
 * @takes, @needs: its options; --json comes on top
 * @operand: what it takes besides, for the help text, or NULL
 * @in_kernel: the network's defaults are those of the kernel on this topology
 * @notes: end of its help text, or NULL
 * @run: returns the exit status
 */
struct verb {
	const char *name;
	const char *text;
	uint64_t takes;
	uint64_t needs;
	const char *operand;
	bool in_kernel;
	const char *notes;
	int (*run)(const struct plan_options *opt);
};

void plan_parse(struct plan_options *opt, const struct verb *verb, int argc, char **argv);
void plan_options_free(struct plan_options *opt);

/* ------------------------------------------------------------------ report.c */

/* The program and its verb, in front of messages. */
extern const char *plan_prog;
/* One line on standard error, and exit status 2. */
_Noreturn void plan_bad(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void plan_no_memory(void);

const char *plan_coll_name(enum swc_coll coll);

/* Progress, on standard error if that is a terminal. plan_progress_end() erases it. */
struct progress {
	const char *label;
	double base; /* done before this part, of 1 */
	double span; /* share of this part, of 1 */
};
void plan_progress(void *progress, double done);
void plan_progress_end(void);

/* ------------------------------------------------------------------ entries.c */

/* Room for the name of an algorithm with its parameter. */
#define PLAN_ALGO_TEXT 24
const char *plan_algo_text(enum swc_algo algo, int32_t param, char text[PLAN_ALGO_TEXT]);
/* The algorithm of a name; ends the program if there is none. */
enum swc_algo plan_algo_parse(const char *name, int32_t *param);

/*
 * An algorithm in question, or the plans of a file. Where it is not possible ret is not 0, and why says why. The
 * plans are kept until the program ends.
 */
struct entry {
	enum swc_algo algo;
	int32_t param;
	const struct swc_plan_set *file;
	char name[PLAN_ALGO_TEXT];
	int ret;
	char why[SWC_TEXT_BYTES];
	struct swc_cost cost;
};

struct swc_plan_args plan_args(const struct plan_options *opt, const struct entry *e,
			       enum swc_coll coll);

/*
 * The algorithms that --algo names. "all" are those that offer the collective, tried on rank 0: hybrids with
 * each number of steps that is possible. Others are not tried, as plans of a million ranks take long to
 * build: plan_try() or plan_costs() tell. Free with free().
 */
struct entry *plan_entries(const struct plan_options *opt, enum swc_coll coll, unsigned int *n);
/* Build the plan of rank 0, to know whether it is possible. */
void plan_try(const struct plan_options *opt, struct entry *e, enum swc_coll coll);
/* Compute the costs of those that are possible; ends the program if one that --algo names is not. */
void plan_costs(const struct plan_options *opt, struct entry *e, unsigned int n);

/* The algorithms that others are compared with: doubling by one port, bucket, rings. */
bool plan_is_classic(const struct swc_topo *topo, enum swc_algo algo);

/* ------------------------------------------------------------------ choose.c */

struct swc_choices;

/* The library's chooser with these algorithms as its candidates for a collective. Free with swc_choices_free(). */
void plan_chooser(struct swc_choices *c, const struct plan_options *opt, enum swc_coll coll,
		  const struct entry *e, unsigned int n);
/* The index of the entry that the library chooses, for each of opt->sizes; @n: one that is not among them. */
void plan_choices(const struct plan_options *opt, const struct entry *e, unsigned int n,
		  unsigned int *chosen);

/* ------------------------------------------------------------------ show_plan.c */

struct swc_plan_view;

/* Characters on their way to standard output. */
struct show_out {
	char text[4096];
	size_t n;
};

/* A JSON document on its way. @many: an array; @first: nothing is in the innermost array or object yet */
struct show_json {
	struct show_out out;
	bool many, first;
	uint32_t depth;
};

/* Print a plan as text. */
void show_text(const struct swc_plan_view *v);
/* Objects with the costs of an algorithm, which are freed, and one of its plans or NULL: one, or an array. */
void show_json_begin(struct show_json *j, bool many);
void show_json_entry(struct show_json *j, cJSON *cost, const struct swc_plan_view *v);
void show_json_end(struct show_json *j);

/* ------------------------------------------------------------------ the verbs */

int list_run(const struct plan_options *opt);
int show_run(const struct plan_options *opt);
int verify_run(const struct plan_options *opt);
int simulate_run(const struct plan_options *opt);
int choose_run(const struct plan_options *opt);
int export_run(const struct plan_options *opt);
/* file.c: write plans where and how the options say. */
void plan_write_set(const struct plan_options *opt, const struct swc_plan_set *set);
int import_run(const struct plan_options *opt);
int figures_run(const struct plan_options *opt);
int allocate_run(const struct plan_options *opt);
int orders_run(const struct plan_options *opt);
int sparse_run(const struct plan_options *opt);
int forest_run(const struct plan_options *opt);

#endif /* SWINGPLAN_H */
