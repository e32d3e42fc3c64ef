// SPDX-License-Identifier: GPL-2.0-only
/* What swingplan's verbs share: the algorithms in question and their costs, the bar, numbers in words. */
#include "swingplan.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Hybrids have at most log2 of the largest network as steps. */
#define MAX_HYBRID 20

const char *plan_verb = "";

struct swc_plan_args plan_args(const struct plan_options *opt, const struct entry *e,
			       enum swc_coll coll)
{
	bool rooted = coll == SWC_BROADCAST || coll == SWC_REDUCE;

	return (struct swc_plan_args){ .coll = coll,
				       .algo = e->algo,
				       .param = e->param,
				       .topo = &opt->topo,
				       .nranks = opt->topo.nranks,
				       .root = rooted ? opt->root : 0,
				       .ports = opt->ports };
}

/* Try an algorithm on rank 0. */
static void try_entry(const struct plan_options *opt, struct entry *e, enum swc_coll coll,
		      enum swc_algo algo, int32_t param)
{
	struct swc_plan_args args;
	size_t bytes;
	void *plan;

	*e = (struct entry){ .algo = algo, .param = param };
	snprintf(e->name, sizeof(e->name), param >= 0 ? "%s:%d" : "%s", swc_algo_name(algo), param);
	args = plan_args(opt, e, coll);
	e->ret = swc_plan_build(&args, &plan, &bytes, e->why, sizeof(e->why));
	if (e->ret == -ENOMEM)
		plan_no_memory();
	if (!e->ret)
		free(plan);
}

static unsigned int all_entries(const struct plan_options *opt, enum swc_coll coll, struct entry *e)
{
	unsigned int n = 0, before;

	for (enum swc_algo algo = 0; algo < SWC_ALGO_NR; algo++) {
		if (!(swc_algo_info(algo)->colls & 1u << coll))
			continue;
		before = n;
		/* The other collectives have nothing between their first and last step. */
		if (coll == SWC_ALLREDUCE &&
		    (algo == SWC_ALGO_SWING_H || algo == SWC_ALGO_MIRRORED))
			for (int32_t j = 0; j <= MAX_HYBRID; j++) {
				try_entry(opt, &e[n], coll, algo, j);
				n += !e[n].ret;
			}
		if (n == before)
			try_entry(opt, &e[n++], coll, algo, SWC_PARAM_DEFAULT);
	}
	return n;
}

static void unknown_algo(const char *name)
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
	plan_bad("--algo %s: no such algorithm; there are%s", name, text);
}

struct entry *plan_entries(const struct plan_options *opt, enum swc_coll coll, unsigned int *n)
{
	char *list = strdup(opt->algos), *save = NULL;
	struct entry *e = calloc(strlen(opt->algos) / 2 + SWC_ALGO_NR + 2 * (MAX_HYBRID + 1) + 1,
				 sizeof(*e));

	if (!list || !e)
		plan_no_memory();
	*n = 0;
	if (!strcmp(list, "all"))
		*n = all_entries(opt, coll, e);
	else
		for (char *s = strtok_r(list, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
			int32_t param;
			int algo = swc_algo_parse(s, &param);

			if (algo < 0)
				unknown_algo(s);
			try_entry(opt, &e[(*n)++], coll, (enum swc_algo)algo, param);
		}
	if (!*n)
		plan_bad("--algo %s: names no algorithm", opt->algos);
	free(list);
	return e;
}

void plan_costs(const struct plan_options *opt, struct entry *e, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct swc_plan_args args = plan_args(opt, &e[i], opt->coll);
		struct progress p = { e[i].name, (double)i / n, 1.0 / n };

		if (!e[i].ret)
			e[i].ret = swc_cost_compute(&args, &e[i].cost, plan_progress, &p, e[i].why,
						    sizeof(e[i].why));
		if (e[i].ret == -ENOMEM)
			plan_no_memory();
		if (e[i].ret && strcmp(opt->algos, "all"))
			plan_bad("%s is not possible on %s: %s", e[i].name, opt->topo_text,
				 *e[i].why ? e[i].why : strerror(-e[i].ret));
	}
	plan_progress_end();
}

/* ------------------------------------------------------------------ the bar */

#define BAR 30

static bool bar_shown;

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void plan_progress(void *progress, double done)
{
	const struct progress *p = progress;
	static int64_t last;
	int filled;

	/* Ten times a second is enough. */
	if (!isatty(STDERR_FILENO) || now_ms() - last < 100)
		return;
	last = now_ms();
	done = p->base + p->span * done;
	filled = (int)(done * BAR);
	fprintf(stderr, "\r[%.*s%*s] %3.0f%% %-24.24s", filled, "##############################",
		BAR - filled, "", done * 100, p->label);
	bar_shown = true;
}

void plan_progress_end(void)
{
	if (bar_shown)
		fprintf(stderr, "\r%*s\r", BAR + 34, "");
	bar_shown = false;
}

/* ------------------------------------------------------------------ words */

void plan_print_json(cJSON *o)
{
	char *text = o ? cJSON_Print(o) : NULL;

	if (!text)
		plan_no_memory();
	puts(text);
	free(text);
	cJSON_Delete(o);
}

static const char *scaled(double v, double factor, const char *const *units, int n,
			  char text[PLAN_TEXT])
{
	int i = 0;

	for (; i + 1 < n && v >= factor; i++)
		v /= factor;
	snprintf(text, PLAN_TEXT, "%.4g %s", v, units[i]);
	return text;
}

const char *plan_bytes_text(double bytes, char text[PLAN_TEXT])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };

	return scaled(bytes, 1024, units, 5, text);
}

const char *plan_time_text(double ns, char text[PLAN_TEXT])
{
	static const char *const units[] = { "ns", "us", "ms", "s" };

	return scaled(ns, 1000, units, 4, text);
}

bool plan_is_classic(const struct swc_topo *topo, enum swc_algo algo)
{
	return algo == SWC_ALGO_RECDOUB || algo == SWC_ALGO_RABENSEIFNER ||
	       algo == SWC_ALGO_BUCKET || algo == SWC_ALGO_HAMILTONIAN ||
	       (algo == SWC_ALGO_RING2 && topo->kind == SWC_TOPO_TORUS && topo->ndims == 1);
}

void plan_bad(const char *fmt, ...)
{
	va_list args;

	plan_progress_end();
	fprintf(stderr, "swingplan%s%s: ", *plan_verb ? " " : "", plan_verb);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(2);
}

void plan_no_memory(void)
{
	plan_bad("out of memory");
}
