// SPDX-License-Identifier: GPL-2.0-only
/* swingplan simulate: times of algorithms over sizes by the library's models. */
#include "swingplan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Times in ns of one algorithm, by size; NAN where there is none. */
struct times {
	const struct entry *e;
	double *ns;
};

static double flow_time(const struct plan_options *opt, struct entry *e, double bytes,
			struct progress *bar)
{
	struct swc_plan_args args = plan_args(opt, e, opt->coll);
	double ns = NAN;
	int ret = swc_flow_time(&args, bytes, &opt->net, &ns, plan_progress, bar, e->why,
				sizeof(e->why));

	if (ret)
		plan_bad("%s on %s by the flow model: %s", e->name, opt->topo_text,
			 *e->why ? e->why : strerror(-ret));
	return ns;
}

static struct times *compute(const struct plan_options *opt, struct entry *e, unsigned int n)
{
	struct times *t = calloc(n, sizeof(*t));

	if (!t)
		plan_no_memory();
	for (unsigned int i = 0; i < n; i++) {
		t[i].e = &e[i];
		t[i].ns = calloc(opt->nsizes, sizeof(double));
		if (!t[i].ns)
			plan_no_memory();
		for (unsigned int s = 0; s < opt->nsizes; s++) {
			double part = 1.0 / n / opt->nsizes;
			struct progress bar = { e[i].name, part * (i * opt->nsizes + s), part };

			if (e[i].ret)
				t[i].ns[s] = NAN;
			else if (opt->flow)
				t[i].ns[s] = flow_time(opt, &e[i], opt->sizes[s], &bar);
			else
				t[i].ns[s] = swc_cost_time(&e[i].cost, opt->sizes[s], &opt->net,
							   NULL);
		}
	}
	plan_progress_end();
	return t;
}

/* Share of the bound: the time that a node's links take for the vector, if all are busy, over the time. */
static double of_bound(const struct plan_options *opt, double bytes, double ns)
{
	return bytes * 8 / opt->net.gbps / opt->topo.ndims / ns;
}

static void print_table(const struct plan_options *opt, const struct times *t, unsigned int n)
{
	char bytes[PLAN_TEXT], time[PLAN_TEXT];

	printf("# %s on %s: %g Gbit/s a link, %g ns a hop, %g ns a step, %s model\n",
	       plan_coll_name(opt->coll), opt->topo_text, opt->net.gbps, opt->net.hop_ns,
	       opt->net.step_ns, opt->flow ? "flow" : "step");
	printf("%-14s %10s %12s %12s %9s\n", "# algorithm", "size", "time", "goodput", "of bound");
	printf("%-14s %10s %12s %12s %9s\n", "#", "", "", "(Gbit/s)", "(%)");
	for (unsigned int s = 0; s < opt->nsizes; s++)
		for (unsigned int i = 0; i < n; i++) {
			double ns = t[i].ns[s];

			if (t[i].e->ret)
				continue;
			printf("%-14s %10s %12s %12.4g %9.2f\n", t[i].e->name,
			       plan_bytes_text(opt->sizes[s], bytes), plan_time_text(ns, time),
			       8 * opt->sizes[s] / ns, 100 * of_bound(opt, opt->sizes[s], ns));
		}
}

static void print_json(const struct plan_options *opt, const struct times *t, unsigned int n)
{
	cJSON *all = cJSON_CreateArray();

	for (unsigned int i = 0; i < n; i++)
		for (unsigned int s = 0; s < opt->nsizes && !t[i].e->ret; s++) {
			const struct swc_timing *c;
			cJSON *o = cJSON_CreateObject();

			swc_cost_time(&t[i].e->cost, opt->sizes[s], &opt->net, &c);
			cJSON_AddStringToObject(o, "algo", t[i].e->name);
			cJSON_AddStringToObject(o, "op", plan_coll_name(opt->coll));
			cJSON_AddStringToObject(o, "topo", opt->topo_text);
			cJSON_AddNumberToObject(o, "bytes", opt->sizes[s]);
			cJSON_AddNumberToObject(o, "time_ns", t[i].ns[s]);
			cJSON_AddNumberToObject(o, "goodput_gbps", 8 * opt->sizes[s] / t[i].ns[s]);
			cJSON_AddNumberToObject(o, "of_bound",
						of_bound(opt, opt->sizes[s], t[i].ns[s]));
			cJSON_AddNumberToObject(o, "steps", c->steps);
			cJSON_AddNumberToObject(o, "hops", (double)c->hops);
			cJSON_AddNumberToObject(o, "psi_xi", c->load * opt->topo.ndims);
			cJSON_AddItemToArray(all, o);
		}
	plan_print_json(all);
}

/* ------------------------------------------------------------------ the picture */

/* A hybrid's curves are drawn as one, the best of them. */
static bool same_curve(const struct plan_options *opt, const struct entry *a, const struct entry *b)
{
	return a->algo == b->algo && a->param >= 0 && b->param >= 0 && !strcmp(opt->algos, "all");
}

static double *best_of(unsigned int nsizes)
{
	double *y = calloc(nsizes, sizeof(double));

	if (!y)
		plan_no_memory();
	for (unsigned int s = 0; s < nsizes; s++)
		y[s] = NAN;
	return y;
}

static void draw(const struct plan_options *opt, const struct times *t, unsigned int n)
{
	struct series *series = calloc(n, sizeof(*series));
	double *classic = best_of(opt->nsizes);
	char title[256];
	struct plot p = {
		.title = title,
		.y_label = opt->plot_gain ? "gain over the best classic (%)" : "time",
		.log_y = !opt->plot_gain,
		.sizes = opt->sizes,
		.nsizes = opt->nsizes,
		.series = series,
	};
	bool any = false;
	int ret;

	if (!series)
		plan_no_memory();
	for (unsigned int i = 0; i < n; i++) {
		bool begins = !i || !same_curve(opt, t[i].e, t[i - 1].e);
		struct series *c;

		if (t[i].e->ret)
			continue;
		if (begins) {
			series[p.nseries].name = i + 1 < n && same_curve(opt, t[i].e, t[i + 1].e)
							 ? swc_algo_name(t[i].e->algo)
							 : t[i].e->name;
			series[p.nseries++].y = best_of(opt->nsizes);
		}
		c = &series[p.nseries - 1];
		for (unsigned int s = 0; s < opt->nsizes; s++)
			c->y[s] = fmin(c->y[s], t[i].ns[s]);
		if (plan_is_classic(&opt->topo, t[i].e->algo)) {
			any = true;
			for (unsigned int s = 0; s < opt->nsizes; s++)
				classic[s] = fmin(classic[s], t[i].ns[s]);
		}
	}
	if (opt->plot_gain && !any)
		plan_bad(
			"--plot-gain: none of the classics recdoub, rabenseifner, bucket, hamiltonian "
			"is among the algorithms; take --algo all");
	for (unsigned int c = 0; opt->plot_gain && c < p.nseries; c++)
		for (unsigned int s = 0; s < opt->nsizes; s++)
			series[c].y[s] = (classic[s] / series[c].y[s] - 1) * 100;
	snprintf(title, sizeof(title), "%s on %.60s, %g Gbit/s, %g ns a hop, %g ns a step",
		 plan_coll_name(opt->coll), opt->topo_text, opt->net.gbps, opt->net.hop_ns,
		 opt->net.step_ns);
	ret = plot_write(&p, opt->plot);
	if (ret)
		plan_bad("--plot %s: %s", opt->plot, strerror(-ret));
	for (unsigned int c = 0; c < p.nseries; c++)
		free(series[c].y);
	free(series);
	free(classic);
}

int simulate_run(const struct plan_options *opt)
{
	unsigned int n, possible = 0;
	struct entry *e = plan_entries(opt, opt->coll, &n);
	struct times *t;

	if (opt->topo.nnodes == 1)
		plan_bad("--topo %s: all ranks are on one node, where nothing crosses the network",
			 opt->topo_text);
	plan_costs(opt, e, n);
	for (unsigned int i = 0; i < n; i++)
		possible += !e[i].ret;
	if (!possible)
		plan_bad("no algorithm is possible on %s: %s", opt->topo_text, e[0].why);
	t = compute(opt, e, n);
	if (opt->json)
		print_json(opt, t, n);
	else
		print_table(opt, t, n);
	if (opt->plot)
		draw(opt, t, n);
	for (unsigned int i = 0; i < n; i++)
		free(t[i].ns);
	free(t);
	free(e);
	return 0;
}
