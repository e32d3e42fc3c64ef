// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan simulate: times of algorithms over sizes by the library's models. With --algo all, "auto" is the
 * time of the algorithm that the library would choose by the step model. Where plans are too large for the flow
 * model, the step model takes its place.
 */
#include "swingplan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Times of one algorithm by size; NAN if it is not possible. A group of 0: by the step model. */
struct times {
	struct entry *e;
	struct swc_flow *by_size;
};

static struct swc_flow step_time(const struct plan_options *opt, const struct entry *e,
				 double bytes)
{
	return (struct swc_flow){ e->ret ? NAN : swc_cost_time(&e->cost, bytes, &opt->net, NULL),
				  0 };
}

static struct swc_flow flow_time(const struct plan_options *opt, struct entry *e, double bytes,
				 struct progress *bar)
{
	struct swc_plan_args args = plan_args(opt, e, opt->coll);
	struct swc_flow flow;
	int ret = swc_flow_time(&args, bytes, &opt->net, &flow, plan_progress, bar, e->why,
				sizeof(e->why));

	if (ret == -EFBIG)
		return step_time(opt, e, bytes);
	if (ret)
		plan_bad("%s on %s by the flow model: %s", e->name, opt->topo_text,
			 *e->why ? e->why : strerror(-ret));
	return flow;
}

static struct times *compute(const struct plan_options *opt, struct entry *e, unsigned int n)
{
	struct times *t = calloc(n, sizeof(*t));

	if (!t)
		plan_no_memory();
	for (unsigned int i = 0; i < n; i++) {
		t[i].e = &e[i];
		t[i].by_size = calloc(opt->nsizes, sizeof(*t[i].by_size));
		if (!t[i].by_size)
			plan_no_memory();
		for (unsigned int s = 0; s < opt->nsizes; s++) {
			double part = 1.0 / n / opt->nsizes;
			struct progress bar = { e[i].name, part * (i * opt->nsizes + s), part };

			if (opt->flow && !e[i].ret)
				t[i].by_size[s] = flow_time(opt, &e[i], opt->sizes[s], &bar);
			else
				t[i].by_size[s] = step_time(opt, &e[i], opt->sizes[s]);
		}
	}
	plan_progress_end();
	return t;
}

/* Share of the bound, which is the time that all links of a node take for the vector. */
static double of_bound(const struct plan_options *opt, double bytes, double ns)
{
	return bytes * 8 / opt->net.gbps / opt->topo.ndims / ns;
}

/* One line, or one object, of the output. @name: the algorithm's, or auto. */
static void print_row(const struct plan_options *opt, const char *name, const struct times *t,
		      unsigned int s)
{
	char bytes[NUMBER_TEXT], time[NUMBER_TEXT];
	uint32_t group = t->by_size[s].group;
	double ns = t->by_size[s].ns;

	printf("%-14s %10s %12s %12.4g %9.2f", name, number_bytes(opt->sizes[s], bytes),
	       number_ns(ns, time), 8 * opt->sizes[s] / ns, 100 * of_bound(opt, opt->sizes[s], ns));
	if (strcmp(name, t->e->name))
		printf("  %s", t->e->name);
	if (opt->flow && !group)
		printf("  by the step model: %s", t->e->why);
	if (t->e->cost.sampled && !group)
		printf("  estimated from %u ranks", t->e->cost.sampled);
	if (group > 1)
		printf("  packets in groups of %u", group);
	printf("\n");
}

static cJSON *row_json(const struct plan_options *opt, const char *name, const struct times *t,
		       unsigned int s)
{
	cJSON *o = cJSON_CreateObject();
	double ns = t->by_size[s].ns;
	uint32_t group = t->by_size[s].group;
	const struct swc_timing *c;

	swc_cost_time(&t->e->cost, opt->sizes[s], &opt->net, &c);
	cJSON_AddStringToObject(o, "algo", name);
	if (strcmp(name, t->e->name))
		cJSON_AddStringToObject(o, "chosen", t->e->name);
	cJSON_AddStringToObject(o, "op", plan_coll_name(opt->coll));
	cJSON_AddStringToObject(o, "topo", opt->topo_text);
	cJSON_AddStringToObject(o, "model", group ? "flow" : "step");
	cJSON_AddNumberToObject(o, "link_gbps", opt->net.gbps);
	cJSON_AddNumberToObject(o, "hop_ns", opt->net.hop_ns);
	cJSON_AddNumberToObject(o, "step_ns", opt->net.step_ns);
	cJSON_AddNumberToObject(o, "reduce_gbps", opt->net.reduce_gbps);
	cJSON_AddNumberToObject(o, "bytes", opt->sizes[s]);
	cJSON_AddNumberToObject(o, "time_ns", ns);
	cJSON_AddNumberToObject(o, "goodput_gbps", 8 * opt->sizes[s] / ns);
	cJSON_AddNumberToObject(o, "of_bound", of_bound(opt, opt->sizes[s], ns));
	cJSON_AddNumberToObject(o, "steps", c->steps);
	cJSON_AddNumberToObject(o, "hops", (double)c->hops);
	cJSON_AddNumberToObject(o, "psi_xi", c->load * opt->topo.ndims);
	cJSON_AddNumberToObject(o, "sampled", group ? 0 : t->e->cost.sampled);
	cJSON_AddNumberToObject(o, "packet_group", group);
	return o;
}

/* @chosen: the index of the library's choice by size, or NULL. */
static void print_table(const struct plan_options *opt, const struct times *t, unsigned int n,
			const unsigned int *chosen)
{
	printf("# %s on %s: %g Gbit/s a link, %g ns a hop, %g ns a step, ",
	       plan_coll_name(opt->coll), opt->topo_text, opt->net.gbps, opt->net.hop_ns,
	       opt->net.step_ns);
	if (opt->kernel)
		printf("reductions at %g Gbit/s, ", opt->net.reduce_gbps);
	printf("%s model\n", opt->flow ? "flow" : "step");
	printf("%-14s %10s %12s %12s %9s\n", "# algorithm", "size", "time", "goodput", "of bound");
	printf("%-14s %10s %12s %12s %9s\n", "#", "", "", "(Gbit/s)", "(%)");
	for (unsigned int s = 0; s < opt->nsizes; s++) {
		for (unsigned int i = 0; i < n; i++)
			if (!t[i].e->ret)
				print_row(opt, t[i].e->name, &t[i], s);
		if (chosen && chosen[s] < n)
			print_row(opt, "auto", &t[chosen[s]], s);
	}
}

static void print_json(const struct plan_options *opt, const struct times *t, unsigned int n,
		       const unsigned int *chosen)
{
	cJSON *all = cJSON_CreateArray();

	for (unsigned int i = 0; i < n; i++)
		for (unsigned int s = 0; s < opt->nsizes && !t[i].e->ret; s++)
			cJSON_AddItemToArray(all, row_json(opt, t[i].e->name, &t[i], s));
	for (unsigned int s = 0; chosen && s < opt->nsizes; s++)
		if (chosen[s] < n)
			cJSON_AddItemToArray(all, row_json(opt, "auto", &t[chosen[s]], s));
	json_document(stdout, all);
}

/* Of several algorithms, none of which is possible: one that is for networks, if there is one. */
static const struct entry *first_for_networks(const struct entry *e, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (!e[i].file && !swc_algo_info(e[i].algo)->one_node)
			return &e[i];
	return e;
}

int simulate_run(const struct plan_options *opt)
{
	unsigned int n, possible = 0;
	struct entry *e = plan_entries(opt, opt->coll, &n);
	unsigned int *chosen = NULL;
	struct times *t;

	if (opt->topo.nnodes == 1)
		plan_bad("--topo %s: all ranks are on one node: the models are about networks",
			 opt->topo_text);
	plan_costs(opt, e, n);
	for (unsigned int i = 0; i < n; i++)
		possible += !e[i].ret;
	if (!possible) {
		const struct entry *one = first_for_networks(e, n);

		plan_bad("no algorithm is possible for %s on %s: %s: %s", plan_coll_name(opt->coll),
			 opt->topo_text, one->name, one->why);
	}
	t = compute(opt, e, n);
	if (!strcmp(opt->algos, "all")) {
		chosen = calloc(opt->nsizes, sizeof(*chosen));
		if (!chosen)
			plan_no_memory();
		plan_choices(opt, e, n, chosen);
	}
	if (opt->json)
		print_json(opt, t, n, chosen);
	else
		print_table(opt, t, n, chosen);
	free(chosen);
	for (unsigned int i = 0; i < n; i++)
		free(t[i].by_size);
	free(t);
	free(e);
	return 0;
}
