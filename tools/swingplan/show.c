// SPDX-License-Identifier: GPL-2.0-only
/* swingplan list and swingplan show: the algorithms; steps, traffic and plans of one on a topology. */
#include "swingplan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"

/* ------------------------------------------------------------------ list */

static void list_json(void)
{
	cJSON *all = cJSON_CreateArray();

	for (unsigned int i = 0; i < SWC_ALGO_NR; i++) {
		const struct swc_algo_info *info = swc_algo_info(i);
		cJSON *o = cJSON_CreateObject(), *ops;

		cJSON_AddStringToObject(o, "algo", info->name);
		cJSON_AddStringToObject(o, "text", info->text);
		if (info->param)
			cJSON_AddStringToObject(o, "param", info->param);
		else
			cJSON_AddNullToObject(o, "param");
		ops = cJSON_AddArrayToObject(o, "ops");
		for (int c = 0; c < SWC_COLL_NR; c++)
			if (info->colls & 1u << c)
				cJSON_AddItemToArray(
					ops, cJSON_CreateString(plan_coll_name((enum swc_coll)c)));
		cJSON_AddBoolToObject(o, "one_node", info->one_node);
		cJSON_AddBoolToObject(o, "multiport", info->multiport);
		cJSON_AddItemToArray(all, o);
	}
	json_document(stdout, all);
}

int list_run(const struct plan_options *opt)
{
	if (opt->json) {
		list_json();
		return 0;
	}
	for (unsigned int i = 0; i < SWC_ALGO_NR; i++) {
		const struct swc_algo_info *info = swc_algo_info(i);

		printf("%-13s %s\n", info->name, info->text);
		if (info->param)
			printf("%-13s %s:N: %s\n", "", info->name, info->param);
		printf("%-13s", "");
		for (int c = 0; c < SWC_COLL_NR; c++)
			if (info->colls & 1u << c)
				printf(" %s", plan_coll_name((enum swc_coll)c));
		printf("\n");
	}
	return 0;
}

/* ------------------------------------------------------------------ show */

/* Number of links of a node that the algorithm uses at once. */
static uint32_t ports_of(const struct plan_options *opt, const struct entry *e)
{
	uint32_t all = opt->topo.kind == SWC_TOPO_SWITCH ? 1 : 2 * opt->topo.ndims;

	if (e->file || !swc_algo_info(e->algo)->multiport)
		return 1;
	return opt->ports && opt->ports < all ? opt->ports : all;
}

static void print_cost(const struct plan_options *opt, const struct entry *e)
{
	const struct swc_cost *c = &e->cost;

	printf("%-24s%s: %s\n", "algorithm", e->name,
	       e->file ? "plans from a file" : swc_algo_info(e->algo)->text);
	printf("%-24s%s\n", "collective", plan_coll_name(opt->coll));
	printf("%-24s%s\n", "topology", opt->topo_text);
	printf("%-24s%u\n", "ranks", opt->topo.nranks);
	printf("%-24s%u\n", "ports", ports_of(opt, e));
	printf("%-24s%u\n", "network steps", c->phased.steps);
	printf("%-24s%llu\n", "hops, longest path", (unsigned long long)c->phased.hops);
	printf("%-24s%.6g times the least possible (psi_xi)\n", "bytes on busiest link", c->psi_xi);
	printf("%-24s%llu\n", "messages per rank", (unsigned long long)c->messages);
	printf("%-24s%.6g of the vector\n", "bytes sent per rank", c->sent);
	printf("%-24s%u\n", "ranges per message", c->max_runs);
	printf("%-24s%u\n", "connections per rank", c->connections);
	if (c->sampled)
		printf("%-24s%u of %u ranks: steps, hops and bytes are estimates\n", "sampled",
		       c->sampled, opt->topo.nranks);
	printf("%-24s%s\n", "deterministic",
	       c->order_varies ? "no: ranks may differ in the last bits of float results"
			       : "yes: all ranks get the same bits");
}

static cJSON *cost_json(const struct plan_options *opt, const struct entry *e)
{
	const struct swc_cost *c = &e->cost;
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "algo", e->name);
	cJSON_AddStringToObject(o, "op", plan_coll_name(opt->coll));
	cJSON_AddStringToObject(o, "topo", opt->topo_text);
	cJSON_AddNumberToObject(o, "ranks", opt->topo.nranks);
	cJSON_AddNumberToObject(o, "ports", ports_of(opt, e));
	cJSON_AddNumberToObject(o, "steps", c->phased.steps);
	cJSON_AddNumberToObject(o, "hops", (double)c->phased.hops);
	cJSON_AddNumberToObject(o, "psi_xi", c->psi_xi);
	cJSON_AddNumberToObject(o, "messages_per_rank", (double)c->messages);
	cJSON_AddNumberToObject(o, "bytes_per_rank_over_n", c->sent);
	cJSON_AddNumberToObject(o, "max_runs_per_message", c->max_runs);
	cJSON_AddNumberToObject(o, "connections_per_rank", c->connections);
	cJSON_AddBoolToObject(o, "deterministic", !c->order_varies);
	cJSON_AddNumberToObject(o, "sampled", c->sampled);
	return o;
}

/* A rank's plan. */
struct rank_plan {
	void *plan;
	struct swc_plan_view view;
};

/* Build the plan of rank opt->rank; free(p->plan). */
static void build_plan(const struct plan_options *opt, const struct entry *e, struct rank_plan *p)
{
	struct swc_plan_args args = plan_args(opt, e, opt->coll);
	char why[SWC_TEXT_BYTES] = "";
	size_t bytes;

	args.rank = (uint32_t)opt->rank;
	if (swc_plan_build(&args, &p->plan, &bytes, why, sizeof(why)))
		plan_bad("%s, rank %u: %s", e->name, args.rank, why);
	if (swc_plan_check(p->plan, bytes, &p->view, why, sizeof(why)))
		plan_bad("%s, rank %u: the plan is malformed: %s", e->name, args.rank, why);
}

int show_run(const struct plan_options *opt)
{
	bool named = strcmp(opt->algos, "all") != 0;
	unsigned int n;
	struct entry *e = plan_entries(opt, opt->coll, &n);
	struct rank_plan p = { 0 };
	struct show_json json;

	/* What is refused should be told soon, and costs take long. They begin with the plan of rank 0. */
	if (opt->rank > 0 && named && n == 1 && !e->ret)
		build_plan(opt, e, &p);
	plan_costs(opt, e, n);
	/* One algorithm is one object, several are an array. */
	show_json_begin(&json, n > 1);
	for (unsigned int i = 0; i < n; i++) {
		if (e[i].ret)
			continue;
		if (opt->rank >= 0 && !p.plan)
			build_plan(opt, &e[i], &p);
		if (opt->json) {
			show_json_entry(&json, cost_json(opt, &e[i]),
					opt->rank >= 0 ? &p.view : NULL);
		} else {
			if (i)
				printf("\n");
			print_cost(opt, &e[i]);
			if (opt->rank >= 0)
				show_text(&p.view);
		}
		free(p.plan);
		p.plan = NULL;
	}
	if (opt->json)
		show_json_end(&json);
	free(e);
	return 0;
}
