// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan verify: passes every rank's plan through the kernel's own check, then runs all of them together
 * on symbols: out of place, in place, and with some ranks in place and others not. Plans of a file that say
 * that they are for disjoint buffers are only run out of place.
 */
#include "swingplan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"

/* With more ranks, all plans together take much memory and time. */
#define ALL_RANKS_MAX 1024

enum placing {
	OUT_OF_PLACE,
	IN_PLACE,
	MIXED,
	PLACINGS
};

static const char *const placing_names[PLACINGS] = { "out of place", "in place", "mixed" };

/* Plans of the ranks to check, each for out of place [0] and in place [1], if @in_place. */
struct plans {
	uint32_t n;
	bool in_place;
	uint32_t *rank;
	void **plan[2];
	size_t *bytes[2];
};

static void *alloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		plan_no_memory();
	return p;
}

static void free_plans(struct plans *p)
{
	for (int k = 0; k < 2; k++) {
		for (uint32_t i = 0; p->plan[k] && i < p->n; i++)
			free(p->plan[k][i]);
		free(p->plan[k]);
		free(p->bytes[k]);
	}
	free(p->rank);
}

/* Build and check each plan. On failure e->why says what is wrong with which. */
static int build_plans(const struct plan_options *opt, struct entry *e, enum swc_coll coll,
		       struct plans *p, struct progress *bar)
{
	struct swc_plan_args args = plan_args(opt, e, coll);
	uint32_t total = opt->topo.nranks;
	struct swc_plan_view view;
	char why[SWC_TEXT_BYTES];

	p->n = opt->check > 0 && opt->check < total ? (uint32_t)opt->check : total;
	p->rank = alloc(p->n, sizeof(*p->rank));
	for (int k = 0; k < 2; k++) {
		p->plan[k] = alloc(p->n, sizeof(void *));
		p->bytes[k] = alloc(p->n, sizeof(size_t));
	}
	p->in_place = true;
	for (uint32_t r = 0; args.given && r < total; r++)
		p->in_place &= !(((const struct swc_plan_header *)args.given[r])->flags &
				 SWC_PLAN_NOT_IN_PLACE);
	for (uint32_t i = 0; i < p->n; i++) {
		/* Evenly from the first to the last. */
		args.rank = p->n == 1 ? 0 : (uint32_t)((uint64_t)i * (total - 1) / (p->n - 1));
		p->rank[i] = args.rank;
		for (int k = 0; k < 1 + p->in_place; k++) {
			int ret;

			*why = 0;
			args.in_place = k;
			ret = swc_plan_build(&args, &p->plan[k][i], &p->bytes[k][i], why,
					     sizeof(why));
			if (ret == -ENOMEM)
				plan_no_memory();
			if (!ret)
				ret = swc_plan_check(p->plan[k][i], p->bytes[k][i], &view, why,
						     sizeof(why));
			if (ret) {
				snprintf(e->why, sizeof(e->why), "rank %u: %.200s", args.rank, why);
				return ret;
			}
		}
		plan_progress(bar, (double)i / p->n / 4);
	}
	return 0;
}

/* Run all plans on symbols. */
static int run_plans(const struct plan_options *opt, struct entry *e, const struct plans *p,
		     enum placing placing)
{
	const void **plan = alloc(p->n, sizeof(*plan));
	size_t *bytes = alloc(p->n, sizeof(*bytes));
	bool *in_place = alloc(p->n, sizeof(*in_place));
	struct swc_verdict verdict;
	int ret;

	for (uint32_t r = 0; r < p->n; r++) {
		in_place[r] = placing == IN_PLACE || (placing == MIXED && r % 3 != 1);
		plan[r] = p->plan[in_place[r]][r];
		bytes[r] = p->bytes[in_place[r]][r];
	}
	ret = swc_plan_verify(plan, bytes, in_place, p->n, &opt->topo, &verdict);
	if (ret == -ENOMEM)
		plan_no_memory();
	if (ret)
		snprintf(e->why, sizeof(e->why), "%s%s: rank %u: %s",
			 placing == OUT_OF_PLACE ? "" : "right out of place, but ",
			 placing_names[placing], verdict.rank, verdict.text);
	free(plan);
	free(bytes);
	free(in_place);
	return ret;
}

/* 0, or -EINVAL with e->why. *in_place: are the plans for operations in place, too? */
static int verify(const struct plan_options *opt, struct entry *e, enum swc_coll coll,
		  struct progress *bar, bool *in_place)
{
	struct plans p = { 0 };
	int ret = build_plans(opt, e, coll, &p, bar);

	*in_place = p.in_place;
	for (int k = 0; !ret && p.n == opt->topo.nranks && k < (p.in_place ? PLACINGS : IN_PLACE);
	     k++) {
		plan_progress(bar, 0.25 * (k + 1));
		ret = run_plans(opt, e, &p, (enum placing)k);
	}
	free_plans(&p);
	return ret;
}

static const char *verdict_text(int build, int verdict)
{
	return build ? "not possible" : verdict ? "failed" : "ok";
}

static void report(const struct plan_options *opt, const struct entry *e, enum swc_coll coll,
		   int verdict, bool partial, bool in_place, cJSON *all)
{
	uint32_t ranks = partial ? (uint32_t)opt->check : opt->topo.nranks;
	cJSON *o;

	plan_progress_end();
	if (opt->json) {
		o = cJSON_CreateObject();
		cJSON_AddStringToObject(o, "algo", e->name);
		cJSON_AddStringToObject(o, "op", plan_coll_name(coll));
		cJSON_AddStringToObject(o, "topo", opt->topo_text);
		cJSON_AddStringToObject(o, "verdict", verdict_text(e->ret, verdict));
		cJSON_AddStringToObject(o, "why", e->why);
		cJSON_AddNumberToObject(o, "ranks", opt->topo.nranks);
		cJSON_AddNumberToObject(o, "ranks_checked", e->ret ? 0 : ranks);
		cJSON_AddBoolToObject(o, "together", !e->ret && !partial);
		cJSON_AddBoolToObject(o, "in_place", !e->ret && in_place);
		cJSON_AddItemToArray(all, o);
		return;
	}
	printf("%-14s %-14s ", e->name, plan_coll_name(coll));
	if (e->ret)
		printf("not possible here: %s\n", e->why);
	else if (verdict)
		printf("FAILED: %s\n", e->why);
	else if (partial)
		printf("ok so far: %u of %u plans checked, each by itself; not run together\n",
		       ranks, opt->topo.nranks);
	else
		printf("ok: %u ranks, out of place%s\n", ranks,
		       in_place ? ", in place, mixed" : "; not for operations in place");
	fflush(stdout);
}

int verify_run(const struct plan_options *opt)
{
	bool partial = opt->check > 0 && opt->check < opt->topo.nranks;
	enum swc_coll first = opt->all_colls ? 0 : opt->coll,
		      last = opt->all_colls ? SWC_COLL_NR - 1 : opt->coll;
	bool named = strcmp(opt->algos, "all");
	cJSON *all = opt->json ? cJSON_CreateArray() : NULL;
	unsigned int possible = 0, n;
	int status = 0;

	if (opt->topo.nranks > ALL_RANKS_MAX && opt->check < 0)
		plan_bad(
			"%s has %u ranks: all together may take very long and much memory; take --ranks 64 "
			"to check the plans of 64 ranks, each by itself, or --ranks all",
			opt->topo_text, opt->topo.nranks);
	for (enum swc_coll coll = first; coll <= last; coll++) {
		struct entry *e = plan_entries(opt, coll, &n);

		for (unsigned int i = 0; i < n; i++) {
			double part = 1.0 / (last - first + 1) / n;
			struct progress bar = { e[i].name,
						(double)(coll - first) / (last - first + 1) +
							part * i,
						part };
			bool in_place = false;
			int verdict;

			plan_try(opt, &e[i], coll);
			verdict = e[i].ret ? 0 : verify(opt, &e[i], coll, &bar, &in_place);
			if (e[i].ret && named && first == last)
				plan_bad("%s is not possible on %s: %s", e[i].name, opt->topo_text,
					 e[i].why);
			report(opt, &e[i], coll, verdict, partial, in_place, all);
			possible += !e[i].ret;
			if (verdict)
				status = 1;
		}
		free(e);
	}
	if (opt->json)
		json_document(stdout, all);
	if (!possible)
		plan_bad("none of these algorithms is possible on %s", opt->topo_text);
	return status;
}
