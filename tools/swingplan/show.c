// SPDX-License-Identifier: GPL-2.0-only
/* swingplan list and swingplan show: the algorithms; steps, traffic and plans of one on a topology. */
#include "swingplan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"

static const char *const buf_names[SWC_BUF_NR] = { "send", "recv", "scratch" };
static const char *const kind_names[] = {
	[SWC_STEP_NET] = "net",
	[SWC_STEP_LOCAL] = "local",
	[SWC_STEP_COPY] = "copy",
	[SWC_STEP_SYNC] = "sync",
};

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

/* ------------------------------------------------------------------ a rank's plan */

static cJSON *xfer_json(const struct swc_plan_xfer *x, bool net, bool recv)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "rank", x->rank);
	cJSON_AddNumberToObject(o, "first_block", x->first_block);
	cJSON_AddNumberToObject(o, "nblocks", x->nblocks);
	cJSON_AddStringToObject(o, "buf", buf_names[x->buf]);
	if (net)
		cJSON_AddNumberToObject(o, "path", x->path);
	if (net && !recv)
		cJSON_AddBoolToObject(o, "stored", x->flags & SWC_XFER_STORED);
	if (!recv)
		return o;
	if (x->flags & SWC_XFER_REDUCE)
		cJSON_AddStringToObject(o, "reduce_with", buf_names[x->operand]);
	cJSON_AddBoolToObject(o, "final", x->flags & SWC_XFER_FINAL);
	return o;
}

static cJSON *step_json(const struct swc_plan_view *v, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *x = v->xfers + s->first_xfer;
	cJSON *o = cJSON_CreateObject(), *list;
	bool net = s->kind == SWC_STEP_NET;

	cJSON_AddStringToObject(o, "kind", kind_names[s->kind]);
	list = cJSON_AddArrayToObject(o, "sends");
	for (int i = 0; i < s->nsend; i++)
		cJSON_AddItemToArray(list, xfer_json(x++, net, false));
	list = cJSON_AddArrayToObject(o, "recvs");
	for (int i = 0; i < s->nrecv; i++)
		cJSON_AddItemToArray(list, xfer_json(x++, net, true));
	return o;
}

static cJSON *plan_json(const struct swc_plan_view *v)
{
	cJSON *o = cJSON_CreateObject(), *channels, *list;

	cJSON_AddNumberToObject(o, "rank", v->hdr->rank);
	cJSON_AddNumberToObject(o, "bytes", v->hdr->total_bytes);
	cJSON_AddNumberToObject(o, "shards", v->hdr->nshards);
	cJSON_AddNumberToObject(o, "blocks_per_shard", v->hdr->shard_blocks);
	cJSON_AddBoolToObject(o, "in_place", !(v->hdr->flags & SWC_PLAN_NOT_IN_PLACE));
	channels = cJSON_AddArrayToObject(o, "channels");
	for (int c = 0; c < v->hdr->nchannels; c++) {
		const struct swc_plan_channel *ch = &v->channels[c];

		list = cJSON_CreateArray();
		for (uint32_t i = 0; i < ch->nsteps; i++)
			cJSON_AddItemToArray(list, step_json(v, &v->steps[ch->first_step + i]));
		cJSON_AddItemToArray(channels, list);
	}
	return o;
}

/* A line of text; plans have hundreds of thousands, for which printf() takes long. */
struct line {
	char text[160];
	size_t n;
};

static void add_text(struct line *l, const char *text)
{
	while (*text)
		l->text[l->n++] = *text++;
}

/* @width: at least so many characters, with blanks behind. */
static void add_number(struct line *l, uint32_t value, size_t width)
{
	char digits[10];
	size_t n = 0, end = l->n + width;

	do {
		digits[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (n)
		l->text[l->n++] = digits[--n];
	while (l->n < end)
		l->text[l->n++] = ' ';
}

/* @what: nine characters */
static void print_xfer(const struct swc_plan_xfer *x, const char *what)
{
	struct line l = { .n = 0 };

	add_text(&l, "    ");
	add_text(&l, what);
	add_text(&l, " rank ");
	add_number(&l, x->rank, 5);
	add_text(&l, x->nblocks > 1 ? " blocks " : x->nblocks ? " block " : " no data");
	if (x->nblocks)
		add_number(&l, x->first_block, 0);
	if (x->nblocks > 1) {
		add_text(&l, "-");
		add_number(&l, x->first_block + x->nblocks - 1, 0);
	}
	add_text(&l, " of ");
	add_text(&l, buf_names[x->buf]);
	if (x->flags & SWC_XFER_REDUCE) {
		add_text(&l, ", reduced with ");
		add_text(&l, buf_names[x->operand]);
	}
	add_text(&l, x->flags & SWC_XFER_FINAL ? ", final" : "");
	add_text(&l, x->flags & SWC_XFER_STORED ? ", stored" : "");
	if (x->path) {
		add_text(&l, ", path ");
		add_number(&l, x->path, 0);
	}
	add_text(&l, "\n");
	fwrite(l.text, 1, l.n, stdout);
}

static void print_step(const struct swc_plan_view *v, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *x = v->xfers + s->first_xfer;
	bool net = s->kind == SWC_STEP_NET;

	for (int i = 0; i < s->nsend; i++)
		print_xfer(x++, net ? "send to  " : "read     ");
	for (int i = 0; i < s->nrecv; i++)
		print_xfer(x++, net ? "recv from" : "write    ");
}

static void print_plan(const struct swc_plan_view *v)
{
	printf("\nplan of rank %u: %u shard%s of %u block%s, %u channel%s, %u bytes%s\n",
	       v->hdr->rank, v->hdr->nshards, v->hdr->nshards == 1 ? "" : "s", v->hdr->shard_blocks,
	       v->hdr->shard_blocks == 1 ? "" : "s", v->hdr->nchannels,
	       v->hdr->nchannels == 1 ? "" : "s", v->hdr->total_bytes,
	       v->hdr->flags & SWC_PLAN_NOT_IN_PLACE ? ", not in place" : "");
	for (int c = 0; c < v->hdr->nchannels; c++) {
		const struct swc_plan_channel *ch = &v->channels[c];

		for (uint32_t i = 0; i < ch->nsteps; i++) {
			const struct swc_plan_step *s = &v->steps[ch->first_step + i];

			printf("  channel %d step %u: %s\n", c, i, kind_names[s->kind]);
			print_step(v, s);
		}
	}
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

/* Build the plan of rank opt->rank. The caller frees *plan. */
static void view_plan(const struct plan_options *opt, const struct entry *e, void **plan,
		      struct swc_plan_view *v)
{
	struct swc_plan_args args = plan_args(opt, e, opt->coll);
	char why[SWC_TEXT_BYTES] = "";
	size_t bytes;

	args.rank = (uint32_t)opt->rank;
	if (swc_plan_build(&args, plan, &bytes, why, sizeof(why)))
		plan_bad("%s, rank %u: %s", e->name, args.rank, why);
	if (swc_plan_check(*plan, bytes, v, why, sizeof(why)))
		plan_bad("%s, rank %u: the plan is malformed: %s", e->name, args.rank, why);
}

int show_run(const struct plan_options *opt)
{
	cJSON *all = NULL, *o;
	struct swc_plan_view view;
	unsigned int n;
	struct entry *e = plan_entries(opt, opt->coll, &n);
	void *plan = NULL;

	plan_costs(opt, e, n);
	if (opt->json && n > 1)
		all = cJSON_CreateArray();
	for (unsigned int i = 0; i < n; i++) {
		if (e[i].ret)
			continue;
		if (opt->rank >= 0)
			view_plan(opt, &e[i], &plan, &view);
		if (opt->json) {
			o = cost_json(opt, &e[i]);
			if (opt->rank >= 0)
				cJSON_AddItemToObject(o, "plan", plan_json(&view));
			/* One algorithm is one object, several are an array. */
			if (n == 1)
				all = o;
			else
				cJSON_AddItemToArray(all, o);
		} else {
			if (i)
				printf("\n");
			print_cost(opt, &e[i]);
			if (opt->rank >= 0)
				print_plan(&view);
		}
		free(plan);
		plan = NULL;
	}
	if (opt->json)
		json_document(stdout, all);
	free(e);
	return 0;
}
