// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan allocate: divides a total of bandwidth among the dimensions of a network, such that the phases of a
 * workload take the least time, or the least time times cost (LIBRA, arXiv 2109.11762).
 *
 * A phase takes as long as its slowest dimension, t = max v_i / B_i, so the least time is that of a convex program
 * (plan/allocation.h). Time times cost has one optimum if only the total is given, but may have several with other
 * constraints, so it is searched for along the cost, and the best of a grid of costs is refined.
 *
 * Links may be slower than they should be. With rates that were measured on the running system, a dimension gives
 * a part of the bandwidth that is allocated to it, its efficiency, so v_i / (e_i B_i) takes the place of v_i / B_i.
 */
#include "swingplan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/allocation.h"
#include "plan/select/tuning.h"
#include "spec.h"
#include "src/files.h"

#define GRID 24	   /* costs that are tried */
#define GOLDEN 40  /* and refined */
#define LEAST 1e-7 /* share of a dimension */
#define NOTHING "--spec: no bandwidths respect all constraints"
#define BUMP 1e-4	/* for sensitivities */
#define SPENT 0.9999999 /* of the most that constraints allow, where that is less than the total */

/*
 * In shares of what is spent: @total, that of the specification or less. @kind: by its largest dimension: 1; owned.
 * @weights: sum of the kinds' counts
 */
struct problem {
	const struct swc_spec *spec;
	double total;
	uint32_t ndims;
	struct swc_spec_phase *kind;
	unsigned int nkinds;
	double weights;
};

/* Phases with the same proportions are one kind, as often as they take time. */
static void add_kind(struct problem *p, const struct swc_spec_phase *phase)
{
	double most = 0;
	unsigned int k;

	for (uint32_t i = 0; i < p->ndims; i++)
		most = fmax(most, phase->v[i]);
	if (!(most > 0 && phase->count > 0))
		return;
	for (k = 0; k < p->nkinds; k++) {
		double differ = 0;

		for (uint32_t i = 0; i < p->ndims; i++)
			differ = fmax(differ, fabs(p->kind[k].v[i] - phase->v[i] / most));
		if (differ < 1e-12)
			break;
	}
	for (uint32_t i = 0; i < p->ndims; i++)
		p->kind[k].v[i] = phase->v[i] / most;
	p->kind[k].count += phase->count * most;
	p->nkinds += k == p->nkinds;
}

/* ns, without computation, at shares of the total. */
static double time_at(const struct problem *p, const double *b)
{
	double ns = 0;

	for (unsigned int k = 0; k < p->nkinds; k++) {
		double t = 0;

		for (uint32_t i = 0; i < p->ndims; i++)
			t = fmax(t, p->kind[k].v[i] / (b[i] * p->total));
		ns += p->kind[k].count * t;
	}
	return ns;
}

static double cost_at(const struct problem *p, const double *b)
{
	double sum = 0;

	for (uint32_t i = 0; i < p->ndims; i++)
		sum += b[i] * p->total * p->spec->price[i];
	return sum;
}

/* coefficients . b <= bound */
static struct swc_allocation_row *add_row(struct swc_allocation *a, double bound)
{
	struct swc_allocation_row *r = &a->row[a->nrows++];

	r->bound = bound;
	return r;
}

static struct swc_allocation_row *add_equation(struct swc_allocation *a, double bound)
{
	struct swc_allocation_row *r = add_row(a, bound);

	r->equal = true;
	return r;
}

/* The constraints, and nothing to make least yet. @equal: all is spent */
static void constrain(const struct problem *p, bool equal, struct swc_allocation *a)
{
	const struct swc_spec *s = p->spec;
	struct swc_allocation_row *r = add_row(a, 1);

	r->equal = equal;
	a->ndims = p->ndims;
	for (uint32_t i = 0; i < p->ndims; i++)
		r->coefficient[i] = 1;
	for (unsigned int k = 0; k < s->nlinear; k++) {
		double sign = s->linear[k].sense > 0 ? -1 : 1;

		r = add_row(a, sign * s->linear[k].bound / p->total);
		r->equal = !s->linear[k].sense;
		for (uint32_t i = 0; i < p->ndims; i++)
			r->coefficient[i] = sign * s->linear[k].coefficient[i];
	}
	for (uint32_t i = 0; i < p->ndims; i++) {
		add_row(a, s->cap[i] / p->total)->coefficient[i] = 1;
		add_row(a, -fmax(s->floor[i] / p->total, LEAST))->coefficient[i] = -1;
	}
}

/* Returns what swc_allocation_find() does, but for errors of memory. */
static bool find(const struct swc_allocation *a, double *b)
{
	int ret = swc_allocation_find(a, b);

	if (ret == -ENOMEM)
		plan_no_memory();
	return !ret;
}

/* The least time, at this cost if it is positive. False if constraints are in the way. */
static bool find_least_time(const struct problem *p, double cost, double *b)
{
	struct swc_allocation_kind *kind = calloc(p->nkinds, sizeof(*kind));
	struct swc_allocation a = { .kind = kind, .nkinds = p->nkinds };
	bool found;

	if (!kind)
		plan_no_memory();
	constrain(p, true, &a);
	if (cost > 0)
		memcpy(add_equation(&a, cost / p->total)->coefficient, p->spec->price,
		       sizeof(p->spec->price));
	for (unsigned int k = 0; k < p->nkinds; k++) {
		kind[k].weight = p->kind[k].count / p->weights;
		for (uint32_t i = 0; i < p->ndims; i++)
			kind[k].v[i] = p->kind[k].v[i];
	}
	found = find(&a, b);
	free(kind);
	return found;
}

/* Constraints may leave some of the total: spend the most that they allow. */
static void spend_less(struct problem *p)
{
	struct swc_allocation a = { 0 };
	double b[SWC_TOPO_DIMS], sum = 0;

	constrain(p, false, &a);
	for (uint32_t i = 0; i < p->ndims; i++)
		a.linear[i] = -1;
	if (!find(&a, b))
		plan_bad(NOTHING);
	for (uint32_t i = 0; i < p->ndims; i++)
		sum += b[i];
	p->total *= SPENT * fmin(sum, 1);
}

static double find_least_cost(const struct problem *p)
{
	struct swc_allocation a = { 0 };
	double b[SWC_TOPO_DIMS], most = 0;

	constrain(p, true, &a);
	for (uint32_t i = 0; i < p->ndims; i++)
		most = fmax(most, p->spec->price[i]);
	for (uint32_t i = 0; i < p->ndims; i++)
		a.linear[i] = p->spec->price[i] / most;
	if (!find(&a, b))
		plan_bad(NOTHING);
	return cost_at(p, b);
}

/* A search for the best cost. @at, @b: where it is @best, and its shares */
struct costs {
	double best, at, *b;
	unsigned int tried;
};

/* Time times cost at a cost; infinite if that cannot be. */
static double product(const struct problem *p, double cost, double *b)
{
	return find_least_time(p, cost, b) ? (p->spec->compute_ns + time_at(p, b)) * cost
					   : INFINITY;
}

/* The product at a cost; kept with its shares if it is the best so far. Each takes a while if phases are many. */
static double try_cost(const struct problem *p, double cost, struct costs *c)
{
	struct progress bar = { "costs", 0, 1 };
	double x[SWC_TOPO_DIMS], v = product(p, cost, x);

	plan_progress(&bar, ++c->tried / (double)(GRID + GOLDEN + 1));
	if (v < c->best) {
		c->best = v;
		c->at = cost;
		memcpy(c->b, x, p->ndims * sizeof(*x));
	}
	return v;
}

/* Golden section: one of the two costs within is one of the next two. */
static void refine(const struct problem *p, double low, double high, struct costs *c)
{
	const double part = (sqrt(5) - 1) / 2;
	double at[2] = { high - part * (high - low), low + part * (high - low) }, v[2];

	if (!(high > low))
		return;
	v[0] = try_cost(p, at[0], c);
	v[1] = try_cost(p, at[1], c);
	for (int i = 1; i < GOLDEN; i++) {
		bool lower = v[0] < v[1];

		if (lower)
			high = at[1];
		else
			low = at[0];
		at[lower] = at[!lower];
		v[lower] = v[!lower];
		at[!lower] = lower ? high - part * (high - low) : low + part * (high - low);
		v[!lower] = try_cost(p, at[!lower], c);
	}
}

/* @b: of the least time */
static void search_costs(const struct problem *p, double *b)
{
	double low = find_least_cost(p), high = cost_at(p, b), ratio;
	struct costs c = { .best = (p->spec->compute_ns + time_at(p, b)) * high,
			   .at = high,
			   .b = b };

	/* What costs more than the least time does not help. */
	low = fmin(low, high);
	ratio = pow(high / low, 1.0 / GRID);
	for (int i = 0; i < GRID; i++)
		try_cost(p, low * pow(ratio, i), &c);
	refine(p, fmax(low, c.at / ratio), fmin(high, c.at * ratio), &c);
	plan_progress_end();
}

/* ------------------------------------------------------------------ output */

/*
 * @tuned: links were measured; then @efficiency by dimension, @nominal, what would be allocated if
 * all were 1, and the time that this takes
 */
struct answer {
	double time, equal, cost, equal_cost;
	double bandwidth[SWC_TOPO_DIMS], sensitivity[SWC_TOPO_DIMS];
	bool tuned;
	double efficiency[SWC_TOPO_DIMS], nominal[SWC_TOPO_DIMS], nominal_time;
};

static void evaluate(const struct problem *p, const double *b, struct answer *a)
{
	double equal[SWC_TOPO_DIMS] = { 0 };

	for (uint32_t i = 0; i < p->ndims; i++) {
		double x[SWC_TOPO_DIMS] = { 0 }, up, down;

		equal[i] = p->spec->total / p->total / p->ndims;
		a->bandwidth[i] = b[i] * p->total;
		/* At a tie of dimensions the two sides differ: their mean. */
		memcpy(x, b, sizeof(x));
		x[i] = b[i] * (1 + BUMP);
		up = time_at(p, x);
		x[i] = b[i] * (1 - BUMP);
		down = time_at(p, x);
		a->sensitivity[i] = (up - down) / (2 * BUMP * a->bandwidth[i]);
	}
	a->time = p->spec->compute_ns + time_at(p, b);
	a->equal = p->spec->compute_ns + time_at(p, equal);
	a->cost = cost_at(p, b);
	a->equal_cost = cost_at(p, equal);
}

static void print_json(const struct swc_spec *s, const struct answer *a)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "objective", s->time_cost ? "time_cost" : "time");
	cJSON_AddItemToObject(o, "bandwidth", cJSON_CreateDoubleArray(a->bandwidth, (int)s->ndims));
	cJSON_AddNumberToObject(o, "time_ns", a->time);
	cJSON_AddNumberToObject(o, "time_equal_ns", a->equal);
	cJSON_AddNumberToObject(o, "speedup_over_equal", a->equal / a->time);
	if (s->priced) {
		cJSON_AddNumberToObject(o, "cost", a->cost);
		cJSON_AddNumberToObject(o, "time_cost", a->time * a->cost);
		cJSON_AddNumberToObject(o, "per_cost_over_equal",
					a->equal * a->equal_cost / (a->time * a->cost));
	}
	cJSON_AddItemToObject(o, "sensitivity",
			      cJSON_CreateDoubleArray(a->sensitivity, (int)s->ndims));
	if (a->tuned) {
		cJSON_AddItemToObject(o, "efficiency",
				      cJSON_CreateDoubleArray(a->efficiency, (int)s->ndims));
		cJSON_AddItemToObject(o, "nominal_bandwidth",
				      cJSON_CreateDoubleArray(a->nominal, (int)s->ndims));
		cJSON_AddNumberToObject(o, "time_nominal_ns", a->nominal_time);
		cJSON_AddNumberToObject(o, "speedup_over_nominal", a->nominal_time / a->time);
	}
	json_document(stdout, o);
}

/* What the measured rates have changed. */
static void print_changes(const struct swc_spec *s, const struct answer *a)
{
	char text[NUMBER_TEXT];

	for (uint32_t i = 0; i < s->ndims; i++)
		printf("dimension %-12u gives %.4g of its rate: %.6g GB/s, %.6g without measurement\n",
		       i, a->efficiency[i], a->bandwidth[i], a->nominal[i]);
	printf("%-22s %s, %.4g times as long\n", "time without it",
	       number_ns(a->nominal_time, text), a->nominal_time / a->time);
}

static void print(const struct swc_spec *s, const struct answer *a)
{
	char text[NUMBER_TEXT];

	printf("# the least %s; %g GB/s in all\n", s->time_cost ? "time times cost" : "time",
	       s->total);
	printf("%-10s %6s %12s %24s\n", "dimension", "size", "GB/s", "ns per GB/s more");
	for (uint32_t i = 0; i < s->ndims; i++)
		printf("%-10u %6u %12.6g %24.6g\n", i, s->size[i], a->bandwidth[i],
		       a->sensitivity[i]);
	if (a->tuned)
		print_changes(s, a);
	printf("%-22s %s, %.4g times as fast as", "time", number_ns(a->time, text),
	       a->equal / a->time);
	printf(" equal shares' %s\n", number_ns(a->equal, text));
	if (s->priced)
		printf("%-22s %.7g; time per cost %.4g times that of equal shares\n", "cost",
		       a->cost, a->equal * a->equal_cost / (a->time * a->cost));
}

/* ------------------------------------------------------------------ the run */

/* What dimensions give of their rates, from the rates in the topology and in the tuning file. */
static void read_efficiency(const struct plan_options *opt, const struct swc_spec *s,
			    double *efficiency)
{
	char why[SWC_TEXT_BYTES] = "";
	struct swc_topo topo;
	struct swc_tuning t;
	int ret;

	if (swc_topo_copy(&topo, &opt->topo))
		plan_no_memory();
	if (!opt->topo_text || !(topo.gbps > 0))
		plan_bad("--tuning: needs --topo with the rates that links should have, such as "
			 "torus:4x4@60Gbps/30Gbps");
	if (topo.ndims != s->ndims || memcmp(topo.dim, s->size, s->ndims * sizeof(*s->size)))
		plan_bad("--topo %s: has other sizes than the specification", opt->topo_text);
	ret = swc_file_tuning(&t, opt->tuning, &topo, why, sizeof(why));
	if (ret)
		plan_bad("--tuning %s: %s", opt->tuning, *why ? why : strerror(-ret));
	if (!(t.gbps > 0))
		plan_bad("--tuning %s: has no rates of the links of %s", opt->tuning,
			 opt->topo_text);
	if (swc_tuning_links(&t, &topo))
		plan_no_memory();
	for (uint32_t i = 0; i < s->ndims; i++)
		efficiency[i] = topo.gbps / swc_topo_slowness(&topo, i) /
				(opt->topo.gbps / swc_topo_slowness(&opt->topo, i));
	swc_tuning_free(&t);
	swc_topo_free(&topo);
}

/* The best shares if dimensions give a part of their bandwidth. */
static void allocate(struct problem *p, const struct swc_spec *s, const double *efficiency,
		     double *b)
{
	double caps = 0;

	free(p->kind);
	for (uint32_t i = 0; i < s->ndims; i++)
		caps += s->cap[i];
	*p = (struct problem){ .spec = s,
			       .total = fmin(s->total, caps),
			       .ndims = s->ndims,
			       .kind = calloc(s->nphases, sizeof(*p->kind)) };
	if (!p->kind)
		plan_no_memory();
	for (unsigned int i = 0; i < s->nphases; i++) {
		struct swc_spec_phase phase = s->phase[i];

		for (uint32_t k = 0; k < s->ndims; k++)
			phase.v[k] /= efficiency[k];
		add_kind(p, &phase);
	}
	for (unsigned int i = 0; i < p->nkinds; i++)
		p->weights += p->kind[i].count;
	if (!p->nkinds)
		plan_bad("--spec: no phase moves anything");
	if (!find_least_time(p, 0, b)) {
		spend_less(p);
		if (!find_least_time(p, 0, b))
			plan_bad(NOTHING);
	}
	if (s->time_cost)
		search_costs(p, b);
}

int allocate_run(const struct plan_options *opt)
{
	struct problem *p = calloc(1, sizeof(*p));
	double b[SWC_TOPO_DIMS] = { 0 }, nominal[SWC_TOPO_DIMS] = { 0 };
	struct answer a = { .tuned = opt->tuning };
	struct swc_spec s;

	if (!p)
		plan_no_memory();
	if (opt->topo_text && !opt->tuning)
		plan_bad("--topo: is for --tuning only");
	spec_read_allocate(&s, opt->spec);
	for (uint32_t i = 0; i < s.ndims; i++)
		a.efficiency[i] = 1;
	if (a.tuned) {
		allocate(p, &s, a.efficiency, nominal);
		read_efficiency(opt, &s, a.efficiency);
	}
	allocate(p, &s, a.efficiency, b);
	evaluate(p, b, &a);
	for (uint32_t i = 0; i < s.ndims; i++)
		a.nominal[i] = nominal[i] * p->total;
	if (a.tuned)
		a.nominal_time = s.compute_ns + time_at(p, nominal);
	if (opt->json)
		print_json(&s, &a);
	else
		print(&s, &a);
	swc_spec_free(&s);
	free(p->kind);
	free(p);
	return 0;
}
