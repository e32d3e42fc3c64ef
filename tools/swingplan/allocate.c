// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan allocate: divides a total of bandwidth among the dimensions of a network, such that the phases of a
 * workload take the least time, or the least time times cost (LIBRA, arXiv 2109.11762).
 *
 * A phase takes as long as its slowest dimension, t = max v_i / B_i. With t as a variable of its own the time is
 * linear, and v_i / B_i <= t is convex in B: any local optimum of the time is the optimum. Time times cost has one
 * optimum if only the total is given, but may have several with other constraints, so it is searched for along the
 * cost: the least time at each cost is convex, and the best of a grid of costs is refined.
 *
 * Links may be slower than they should be. With rates that were measured on the running system, a dimension gives
 * a part of the bandwidth that is allocated to it, its efficiency, so v_i / (e_i B_i) takes the place of v_i / B_i.
 */
#include "swingplan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/select/tuning.h"
#include "spec.h"
#include "src/files.h"

#ifndef HAVE_NLOPT
int allocate_run(const struct plan_options *opt)
{
	(void)opt;
	plan_bad("built without NLopt: install libnlopt-dev and build again");
}
#else
#include <nlopt.h>

#define KINDS 128   /* of phases with different proportions */
#define GRID 24	    /* costs that are tried */
#define GOLDEN 40   /* and refined */
#define ROUNDS 4    /* the solver starts again from its answer */
#define LOOSE 1e-9  /* of constraints, in units of the total */
#define ALMOST 1e-6 /* what a solution may miss a constraint by */
#define BUMP 1e-4   /* for sensitivities */

/* @b: shares of the total, then the time of each kind, in units of the time with equal shares. */
struct problem {
	const struct swc_spec *spec;
	uint32_t ndims;
	struct swc_spec_phase kind[KINDS]; /* by its largest dimension: 1 */
	unsigned int nkinds;
	double unit, weights; /* ns per unit of time; sum of the kinds' counts */
	double cost;	      /* to be kept; 0: any */
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
	if (k == KINDS)
		plan_bad("--spec: more than %d phases with different proportions", KINDS);
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
			t = fmax(t, p->kind[k].v[i] / (b[i] * p->spec->total));
		ns += p->kind[k].count * t;
	}
	return ns;
}

static double cost_at(const struct problem *p, const double *b)
{
	double sum = 0;

	for (uint32_t i = 0; i < p->ndims; i++)
		sum += b[i] * p->spec->total * p->spec->price[i];
	return sum;
}

static double objective(unsigned int n, const double *x, double *grad, void *arg)
{
	const struct problem *p = arg;
	double sum = 0;

	for (unsigned int i = 0; i < n; i++) {
		double weight = i < p->ndims ? 0 : p->kind[i - p->ndims].count / p->weights;

		sum += weight * x[i];
		if (grad)
			grad[i] = weight;
	}
	return sum;
}

/* v_i / b_i - t <= 0 for each kind and dimension. */
static void slowest(unsigned int m, double *result, unsigned int n, const double *x, double *grad,
		    void *arg)
{
	const struct problem *p = arg;

	if (grad)
		memset(grad, 0, (size_t)m * n * sizeof(*grad));
	for (unsigned int k = 0; k < p->nkinds; k++)
		for (uint32_t i = 0; i < p->ndims; i++) {
			unsigned int row = k * p->ndims + i;
			double v = p->kind[k].v[i] / p->ndims;

			result[row] = v / x[i] - x[p->ndims + k];
			if (!grad)
				continue;
			grad[row * n + i] = -v / (x[i] * x[i]);
			grad[row * n + p->ndims + k] = -1;
		}
}

/* A row: coefficients . b - bound <= 0, or == 0. */
struct row {
	uint32_t ndims;
	double coefficient[SWC_TOPO_DIMS], bound;
	bool equal;
};

static double row_value(unsigned int n, const double *x, double *grad, void *arg)
{
	const struct row *r = arg;
	double sum = -r->bound;

	for (unsigned int i = 0; i < n; i++) {
		double c = i < r->ndims ? r->coefficient[i] : 0;

		sum += c * x[i];
		if (grad)
			grad[i] = c;
	}
	return sum;
}

/* The rows of a problem, each scaled to a largest coefficient of 1. Returns their number. */
static unsigned int rows_of(const struct problem *p, struct row *r)
{
	const struct swc_spec *s = p->spec;
	unsigned int n = 0;

	r[n++] = (struct row){ .bound = s->total, .equal = true };
	for (uint32_t i = 0; i < p->ndims; i++)
		r[0].coefficient[i] = 1;
	for (unsigned int k = 0; k < s->nlinear; k++, n++) {
		double sign = s->linear[k].sense > 0 ? -1 : 1;

		r[n] = (struct row){ .bound = sign * s->linear[k].bound,
				     .equal = !s->linear[k].sense };
		for (uint32_t i = 0; i < p->ndims; i++)
			r[n].coefficient[i] = sign * s->linear[k].coefficient[i];
	}
	if (p->cost > 0) {
		r[n] = (struct row){ .bound = p->cost, .equal = true };
		memcpy(r[n++].coefficient, s->price, sizeof(s->price));
	}
	for (unsigned int k = 0; k < n; k++) {
		double most = 0;

		for (uint32_t i = 0; i < p->ndims; i++)
			most = fmax(most, fabs(r[k].coefficient[i]));
		for (uint32_t i = 0; most > 0 && i < p->ndims; i++)
			r[k].coefficient[i] /= most;
		r[k].bound /= s->total * (most > 0 ? most : 1);
		r[k].ndims = p->ndims;
	}
	return n;
}

/* By how much shares miss the rows, and bounds. */
static double missed(const struct problem *p, const struct row *r, unsigned int n, const double *b)
{
	double most = 0;

	for (unsigned int k = 0; k < n; k++) {
		double v = row_value(p->ndims, b, NULL, (void *)&r[k]);

		most = fmax(most, r[k].equal ? fabs(v) : v);
	}
	for (uint32_t i = 0; i < p->ndims; i++)
		most = fmax(most, fmax(p->spec->floor[i] / p->spec->total - b[i],
				       b[i] - p->spec->cap[i] / p->spec->total));
	return most;
}

/* Bounds of the variables, and the least times at @x. */
static void prepare(const struct problem *p, nlopt_opt opt, double *x)
{
	unsigned int n = p->ndims + p->nkinds;
	double low[SWC_TOPO_DIMS + KINDS], high[SWC_TOPO_DIMS + KINDS];

	for (unsigned int i = 0; i < n; i++) {
		low[i] = 0;
		high[i] = HUGE_VAL;
	}
	for (uint32_t i = 0; i < p->ndims; i++) {
		low[i] = fmax(p->spec->floor[i] / p->spec->total, 1e-7);
		high[i] = fmax(p->spec->cap[i] / p->spec->total, low[i]);
		x[i] = fmin(fmax(x[i], low[i]), high[i]);
	}
	for (unsigned int k = 0; k < p->nkinds; k++) {
		x[p->ndims + k] = 0;
		for (uint32_t i = 0; i < p->ndims; i++)
			x[p->ndims + k] = fmax(x[p->ndims + k], p->kind[k].v[i] / p->ndims / x[i]);
	}
	nlopt_set_lower_bounds(opt, low);
	nlopt_set_upper_bounds(opt, high);
}

/* The least time from shares @b on, which become the solution; false if none was found. */
static bool solve(struct problem *p, double *b)
{
	unsigned int n = p->ndims + p->nkinds, m = p->ndims * p->nkinds;
	double x[SWC_TOPO_DIMS + KINDS], tol[SWC_TOPO_DIMS * KINDS], value;
	struct row row[SWC_SPEC_LINEAR + 2];
	unsigned int nrows = rows_of(p, row);
	nlopt_opt opt = nlopt_create(NLOPT_LD_SLSQP, n);
	bool found = false;

	if (!opt)
		plan_no_memory();
	memcpy(x, b, p->ndims * sizeof(*x));
	for (unsigned int i = 0; i < m; i++)
		tol[i] = LOOSE;
	nlopt_set_min_objective(opt, objective, p);
	nlopt_add_inequality_mconstraint(opt, m, slowest, p, tol);
	for (unsigned int k = 0; k < nrows; k++)
		if (row[k].equal)
			nlopt_add_equality_constraint(opt, row_value, &row[k], LOOSE);
		else
			nlopt_add_inequality_constraint(opt, row_value, &row[k], LOOSE);
	nlopt_set_ftol_rel(opt, 1e-12);
	nlopt_set_xtol_rel(opt, 1e-12);
	nlopt_set_maxeval(opt, 2000);
	for (int i = 0; i < ROUNDS; i++) {
		prepare(p, opt, x);
		nlopt_optimize(opt, x, &value);
		if (missed(p, row, nrows, x) > ALMOST)
			continue;
		if (!found || time_at(p, x) < time_at(p, b))
			memcpy(b, x, p->ndims * sizeof(*b));
		found = true;
	}
	nlopt_destroy(opt);
	return found;
}

/* Some shares that respect all constraints. */
static void start(struct problem *p, double *b)
{
	for (uint32_t i = 0; i < p->ndims; i++)
		b[i] = 1.0 / p->ndims;
	if (!solve(p, b))
		plan_bad("--spec: no bandwidths were found that respect all constraints");
}

/* Time times cost at a cost; infinite if that cannot be. */
static double product(struct problem *p, double cost, double *b)
{
	p->cost = cost;
	return solve(p, b) ? (p->spec->compute_ns + time_at(p, b)) * cost : INFINITY;
}

static void refine(struct problem *p, double low, double high, double *best, double *b)
{
	const double part = (sqrt(5) - 1) / 2;

	for (int i = 0; i < GOLDEN; i++) {
		double at[2] = { high - part * (high - low), low + part * (high - low) }, v[2];

		for (int k = 0; k < 2; k++) {
			double x[SWC_TOPO_DIMS];

			memcpy(x, b, sizeof(x));
			v[k] = product(p, at[k], x);
			if (v[k] < *best) {
				*best = v[k];
				memcpy(b, x, sizeof(x));
			}
		}
		if (v[0] < v[1])
			high = at[1];
		else
			low = at[0];
	}
}

static void search_costs(struct problem *p, double *b)
{
	double cost[2] = { INFINITY, 0 }, fastest[SWC_TOPO_DIMS], best, at;

	for (uint32_t i = 0; i < p->ndims; i++) {
		cost[0] = fmin(cost[0], p->spec->price[i] * p->spec->total);
		cost[1] = fmax(cost[1], p->spec->price[i] * p->spec->total);
	}
	memcpy(fastest, b, sizeof(fastest));
	at = cost_at(p, b);
	best = (p->spec->compute_ns + time_at(p, b)) * at;
	for (int i = 1; i < GRID; i++) {
		double c = cost[0] * pow(cost[1] / cost[0], (double)i / GRID), x[SWC_TOPO_DIMS], v;

		memcpy(x, fastest, sizeof(x));
		v = product(p, c, x);
		if (v < best) {
			best = v;
			at = c;
			memcpy(b, x, sizeof(x));
		}
	}
	at = fmin(fmax(at, cost[0]), cost[1]);
	refine(p, fmax(cost[0], at / pow(cost[1] / cost[0], 1.0 / GRID)),
	       fmin(cost[1], at * pow(cost[1] / cost[0], 1.0 / GRID)), &best, b);
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

		equal[i] = 1.0 / p->ndims;
		a->bandwidth[i] = b[i] * p->spec->total;
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
	*p = (struct problem){ .spec = s, .ndims = s->ndims };
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
	start(p, b);
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
		a.nominal[i] = nominal[i] * s.total;
	if (a.tuned)
		a.nominal_time = s.compute_ns + time_at(p, nominal);
	if (opt->json)
		print_json(&s, &a);
	else
		print(&s, &a);
	swc_spec_free(&s);
	free(p);
	return 0;
}
#endif
