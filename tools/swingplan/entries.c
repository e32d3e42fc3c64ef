// SPDX-License-Identifier: GPL-2.0-only
/* The algorithms and plan files that --algo names: their names, which of them are possible, and their costs. */
#include "swingplan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/forest/algorithm.h"
#include "plan/model/butterfly_cost.h"
#include "plan/model/tree_cost.h"
#include "src/files.h"

/* Plans that are built for the cost of an algorithm whose ranks are not alike; one among all. */
#define MOST_RANKS 8192
#define MOST_RANKS_OF_ALL 1024

#define FILE_PREFIX "file:"

const char *plan_algo_text(enum swc_algo algo, int32_t param, char text[PLAN_ALGO_TEXT])
{
	const char *name = algo == SWC_ALGO_FOREST ? "forest" : swc_algo_name(algo);

	snprintf(text, PLAN_ALGO_TEXT, param >= 0 ? "%s:%d" : "%s", name, param);
	return text;
}

struct swc_plan_args plan_args(const struct plan_options *opt, const struct entry *e,
			       enum swc_coll coll)
{
	return (struct swc_plan_args){ .coll = coll,
				       .algo = e->algo,
				       .param = e->param,
				       .topo = &opt->topo,
				       .nranks = opt->topo.nranks,
				       .root = swc_coll_has_root(coll) ? opt->root : 0,
				       .ports = opt->ports,
				       .given = e->file ? (const void *const *)e->file->plan : NULL,
				       .given_bytes = e->file ? e->file->bytes : NULL };
}

void plan_try(const struct plan_options *opt, struct entry *e, enum swc_coll coll)
{
	struct swc_plan_args args = plan_args(opt, e, coll);
	size_t bytes;
	void *plan;

	if (e->ret)
		return;
	e->ret = swc_plan_build(&args, &plan, &bytes, e->why, sizeof(e->why));
	if (e->ret == -ENOMEM)
		plan_no_memory();
	if (!e->ret)
		free(plan);
}

static void set_entry(struct entry *e, enum swc_algo algo, int32_t param)
{
	*e = (struct entry){ .algo = algo, .param = param };
	plan_algo_text(algo, param, e->name);
}

static void try_entry(const struct plan_options *opt, struct entry *e, enum swc_coll coll,
		      enum swc_algo algo, int32_t param)
{
	set_entry(e, algo, param);
	plan_try(opt, e, coll);
}

/* The plans of a file, under the name that they have. */
static void read_entry(const struct plan_options *opt, struct entry *e, enum swc_coll coll,
		       const char *path)
{
	struct swc_plan_set *set = calloc(1, sizeof(*set));
	char why[SWC_TEXT_BYTES] = "out of memory", *text = NULL;
	size_t bytes;

	if (!set)
		plan_no_memory();
	if (swc_file_read(path, SWC_FILE_MAX_BYTES, &text, &bytes, why, sizeof(why)))
		plan_bad("%s", why);
	if (swc_plan_text_parse(text, bytes, set, why, sizeof(why)))
		plan_bad("%s: %s", path, why);
	free(text);
	if (set->nranks != opt->topo.nranks)
		plan_bad("%s has plans for %u ranks, %s has %u", path, set->nranks, opt->topo_text,
			 opt->topo.nranks);
	*e = (struct entry){ .param = SWC_PARAM_DEFAULT, .file = set };
	snprintf(e->name, sizeof(e->name), "%s",
		 ((const struct swc_plan_header *)set->plan[0])->name);
	plan_try(opt, e, coll);
}

/* The library's forest, whose plans are made once for all. */
static void make_entry(const struct plan_options *opt, struct entry *e, enum swc_coll coll,
		       const char *name, uint32_t pieces)
{
	struct swc_plan_set *set = calloc(1, sizeof(*set));
	struct swc_plan_args args;

	*e = (struct entry){ .param = SWC_PARAM_DEFAULT };
	snprintf(e->name, sizeof(e->name), "%s", name);
	args = plan_args(opt, e, coll);
	if (set) {
		set->plan = calloc(args.nranks, sizeof(*set->plan));
		set->bytes = calloc(args.nranks, sizeof(*set->bytes));
	}
	if (!set || !set->plan || !set->bytes)
		plan_no_memory();
	e->ret = swc_forest_plans(&args, pieces, set->plan, set->bytes, e->why, sizeof(e->why));
	if (e->ret == -ENOMEM)
		plan_no_memory();
	set->nranks = args.nranks;
	if (!e->ret)
		e->file = set;
}

static unsigned int all_entries(const struct plan_options *opt, enum swc_coll coll, struct entry *e)
{
	unsigned int n = 0, before;
	int32_t param;

	for (enum swc_algo algo = 0; algo < SWC_ALGO_NR; algo++) {
		if (!(swc_algo_info(algo)->colls & 1u << coll))
			continue;
		before = n;
		for (uint32_t i = 0; swc_algo_param(algo, coll, i, &param); i++) {
			try_entry(opt, &e[n], coll, algo, param);
			if (e[n].ret)
				break;
			n++;
		}
		if (n == before)
			try_entry(opt, &e[n++], coll, algo, SWC_PARAM_DEFAULT);
	}
	return n;
}

static _Noreturn void unknown_algo(const char *name)
{
	size_t len = strcspn(name, ":");
	char text[256];
	size_t used = 0;

	*text = 0;
	for (int i = 0; i < SWC_ALGO_NR; i++) {
		const struct swc_algo_info *info = swc_algo_info((unsigned int)i);

		if (strlen(info->name) == len && !strncmp(name, info->name, len)) {
			if (info->param)
				plan_bad("--algo %s: the number must be %s", name, info->param);
			plan_bad("--algo %s: %s takes no number", name, info->name);
		}
		if (used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, " %s",
						 info->name);
	}
	plan_bad("--algo %s: no such algorithm; there are%s", *name ? name : "''", text);
}

enum swc_algo plan_algo_parse(const char *name, int32_t *param)
{
	int algo = swc_algo_parse(name, param);

	if (algo < 0)
		unknown_algo(name);
	return (enum swc_algo)algo;
}

struct entry *plan_entries(const struct plan_options *opt, enum swc_coll coll, unsigned int *n)
{
	char *list = strdup(opt->algos), *rest = list, *s;
	struct entry *e = calloc(strlen(opt->algos) / 2 + SWC_ALGO_NR * (SWC_ALGO_PARAMS + 1) + 1,
				 sizeof(*e));

	if (!list || !e)
		plan_no_memory();
	*n = 0;
	if (!strcmp(list, "all"))
		*n = all_entries(opt, coll, e);
	else
		while ((s = strsep(&rest, ","))) {
			int32_t param;
			uint32_t pieces;
			enum swc_algo algo;

			if (!strncmp(s, FILE_PREFIX, strlen(FILE_PREFIX))) {
				read_entry(opt, &e[(*n)++], coll, s + strlen(FILE_PREFIX));
				continue;
			}
			if (swc_forest_parse(s, &pieces)) {
				make_entry(opt, &e[(*n)++], coll, s, pieces);
				continue;
			}
			algo = plan_algo_parse(s, &param);
			set_entry(&e[(*n)++], algo, param);
		}
	if (!*n)
		plan_bad("--algo '%s' names no algorithm", opt->algos);
	free(list);
	return e;
}

/* Where the messages of all ranks are known without their plans, the times are exact; the rest stays estimated. */
static void refine(const struct swc_plan_args *args, struct swc_cost *cost)
{
	struct swc_timing eager = cost->eager, phased = cost->phased;
	struct swc_cost exact;

	if (swc_butterfly_cost(args, &exact) && swc_tree_cost(args, &exact))
		return;
	cost->eager = exact.eager;
	cost->phased = exact.phased;
	/* Of the last step, plans tell more. */
	cost->eager.last_hops = eager.last_hops;
	cost->eager.last_share = eager.last_share;
	cost->phased.last_hops = phased.last_hops;
	cost->phased.last_share = phased.last_share;
	cost->psi_xi = exact.psi_xi;
	cost->reduced = exact.reduced;
	cost->connections = exact.connections;
}

void plan_costs(const struct plan_options *opt, struct entry *e, unsigned int n)
{
	uint32_t most = strcmp(opt->algos, "all") ? MOST_RANKS : MOST_RANKS_OF_ALL;

	for (unsigned int i = 0; i < n; i++) {
		struct swc_plan_args args = plan_args(opt, &e[i], opt->coll);
		struct progress p = { e[i].name, (double)i / n, 1.0 / n };

		if (!e[i].ret)
			e[i].ret = swc_cost_estimate(&args, most, &e[i].cost, plan_progress, &p,
						     e[i].why, sizeof(e[i].why));
		if (e[i].ret == -ENOMEM)
			plan_no_memory();
		if (!e[i].ret && e[i].cost.sampled)
			refine(&args, &e[i].cost);
		if (e[i].ret && strcmp(opt->algos, "all"))
			plan_bad("%s is not possible on %s: %s", e[i].name, opt->topo_text,
				 *e[i].why ? e[i].why : strerror(-e[i].ret));
	}
	plan_progress_end();
}

bool plan_is_classic(const struct swc_topo *topo, enum swc_algo algo)
{
	return algo == SWC_ALGO_RECDOUB || algo == SWC_ALGO_RABENSEIFNER ||
	       algo == SWC_ALGO_BUCKET || algo == SWC_ALGO_HAMILTONIAN ||
	       (algo == SWC_ALGO_RING2 && topo->kind == SWC_TOPO_TORUS && topo->ndims == 1);
}
