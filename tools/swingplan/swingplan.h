/* SPDX-License-Identifier: GPL-2.0-only */
/* swingplan's own parts: what was asked for, the algorithms in question, output for people and machines. */
#ifndef SWINGPLAN_H
#define SWINGPLAN_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/model.h"
#include "plan.h"

struct plan_options {
	const char *algos; /* as given: "all" or names with commas between them */
	struct swc_topo topo;
	char *topo_text;
	enum swc_coll coll;
	bool all_colls;
	uint32_t root;
	int64_t rank;	/* -1: not given */
	int64_t nranks; /* -1: not given, 0: all */
	uint32_t ports;
	double *sizes;
	unsigned int nsizes;
	struct swc_network net;
	bool flow;
	enum swc_dtype dtype;
	enum swc_redop redop;
	bool reorder;
	bool json;
	const char *tuning;
	const char *plot;
	bool plot_gain;
	const char *out;
};

/* args.c */

/* Options, as bits 1 << enum plan_option of what a verb takes. */
enum plan_option {
	OPTION_ALGO,
	OPTION_TOPO,
	OPTION_OP,
	OPTION_ROOT,
	OPTION_RANK,
	OPTION_RANKS,
	OPTION_PORTS,
	OPTION_SIZE,
	OPTION_LINK_GBPS,
	OPTION_HOP_NS,
	OPTION_STEP_NS,
	OPTION_ACK_BYTES,
	OPTION_MODEL,
	OPTION_PLOT,
	OPTION_PLOT_GAIN,
	OPTION_DTYPE,
	OPTION_REDOP,
	OPTION_REORDER,
	OPTION_TUNING,
	OPTION_OUT,
	OPTION_JSON,
	OPTION_HELP,
	OPTION_NR
};

struct verb {
	const char *name;
	const char *text;
	uint32_t takes;
	uint32_t needs;
	int (*run)(const struct plan_options *opt); /* the exit status */
	int (*run_alone)(int argc, char **argv);    /* for a verb that reads its own command line */
};

void plan_parse(struct plan_options *opt, const struct verb *verb, int argc, char **argv);
void plan_options_free(struct plan_options *opt);
/* Say what is wrong with what was asked for, and end with status 2. */
extern const char *plan_verb; /* being run, for messages */
_Noreturn void plan_bad(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void plan_no_memory(void);
const char *plan_coll_name(enum swc_coll coll);

/* common.c */

/* An algorithm that was asked for. Not possible here: ret is not 0, and why says why. */
struct entry {
	enum swc_algo algo;
	int32_t param;
	char name[24];
	int ret;
	char why[SWC_TEXT_BYTES];
	struct swc_cost cost;
};

struct swc_plan_args plan_args(const struct plan_options *opt, const struct entry *e,
			       enum swc_coll coll);

/*
 * The algorithms that --algo names, each tried on rank 0. "all" are those that offer the collective, hybrids
 * with each number of steps that is possible. Free with free().
 */
struct entry *plan_entries(const struct plan_options *opt, enum swc_coll coll, unsigned int *n);
/* The costs of those that are possible, with a bar; ends the program if one that was named is not. */
void plan_costs(const struct plan_options *opt, struct entry *e, unsigned int n);

/* Work done so far, on standard error if that is a terminal. plan_progress_end() wipes it out. */
struct progress {
	const char *label;
	double base; /* done before this part */
	double span; /* share of this part */
};
void plan_progress(void *progress, double done);
void plan_progress_end(void);

void plan_print_json(cJSON *o);
#define PLAN_TEXT 32
const char *plan_bytes_text(double bytes, char text[PLAN_TEXT]);
const char *plan_time_text(double ns, char text[PLAN_TEXT]);

/* The algorithms that others are compared with: one-port doubling, bucket, rings. */
bool plan_is_classic(const struct swc_topo *topo, enum swc_algo algo);

/* The verbs */
int list_run(const struct plan_options *opt);
int show_run(const struct plan_options *opt);
int verify_run(const struct plan_options *opt);
int simulate_run(const struct plan_options *opt);
int choose_run(const struct plan_options *opt);
int figures_run(const struct plan_options *opt);

/* file.c: these read their own command lines */
int swingplan_export(int argc, char **argv);
int swingplan_import(int argc, char **argv);

/* plot.c */

struct series {
	const char *name;
	double *y; /* NAN where there is none */
};

/**
 * struct plot - lines over sizes, as an SVG picture
 * @title: above the picture
 * @y_label: what the vertical axis shows, with its unit
 * @log_y: values are ns on a logarithmic axis; else percent on a linear one
 */
struct plot {
	const char *title;
	const char *y_label;
	bool log_y;
	const double *sizes;
	unsigned int nsizes;
	const struct series *series;
	unsigned int nseries;
};

/* 0 or -errno */
int plot_write(const struct plot *p, const char *path);

#endif /* SWINGPLAN_H */
