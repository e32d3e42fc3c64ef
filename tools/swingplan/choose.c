// SPDX-License-Identifier: GPL-2.0-only
/* swingplan choose: the library's automatic choice, its reason, and the candidates that follow by the model. */
#include "swingplan.h"

#include "plan/select/choose.h"
#include "src/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "kmod/core/reduce.h"
#include "swingcoll.h"

#define BEST 5

static const char *const reasons[] = {
	[SWC_REASON_MEASURED] = "fastest in the tuning file at the nearest size",
	[SWC_REASON_MODEL] = "by the model",
	[SWC_REASON_ONE_NODE] = "all ranks on one node: by size and CPUs",
	[SWC_REASON_ONLY] = "no candidate of the model: the fallback",
};

static const char *const reason_names[] = {
	[SWC_REASON_MEASURED] = "measured",
	[SWC_REASON_MODEL] = "model",
	[SWC_REASON_ONE_NODE] = "one_node",
	[SWC_REASON_ONLY] = "only",
};

struct ranked {
	char name[PLAN_ALGO_TEXT];
	double ns;
	uint32_t connections;
	uint32_t sampled; /* ranks that the time was estimated from, or 0 */
};

void plan_chooser(struct swc_choices *c, const struct plan_options *opt, enum swc_coll coll,
		  const struct entry *e, unsigned int n)
{
	struct swc_candidate *cand = calloc(n, sizeof(*cand));
	unsigned int known = 0;

	if (!cand)
		plan_no_memory();
	for (unsigned int i = 0; i < n; i++)
		if (!e[i].ret)
			cand[known++] = (struct swc_candidate){
				.algo = e[i].algo,
				.param = e[i].param,
				.steps = e[i].cost.eager.steps,
				.order_varies = e[i].cost.order_varies,
				.known = true,
				.cost = e[i].cost
			};
	swc_choices_init(c, &opt->topo, opt->reorder);
	c->coll[coll].cand = cand;
	c->coll[coll].n = known;
	c->net = opt->net;
	c->forest = false;
}

void plan_choices(const struct plan_options *opt, const struct entry *e, unsigned int n,
		  unsigned int *chosen)
{
	struct swc_choices c;

	plan_chooser(&c, opt, opt->coll, e, n);
	for (unsigned int s = 0; s < opt->nsizes; s++) {
		struct swc_choice ch = swc_choices_take(&c, opt->coll, opt->dtype, opt->redop,
							(uint64_t)opt->sizes[s], 1);

		for (chosen[s] = 0; chosen[s] < n; chosen[s]++)
			if (!e[chosen[s]].ret && e[chosen[s]].algo == ch.algo &&
			    e[chosen[s]].param == ch.param)
				break;
	}
	swc_choices_free(&c);
}

static int by_time(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

/* The forest, if its trees were looked for. Returns how many there are. */
static unsigned int add_forest(const struct plan_options *opt, const struct swc_choices *c,
			       double bytes, struct ranked *r)
{
	const struct swc_kept_trees *k = &c->trees[opt->coll];
	uint32_t pieces;

	if (!k->there)
		return 0;
	pieces = swc_choices_pieces(c, &k->trees, (uint64_t)bytes);
	plan_algo_text(SWC_ALGO_FOREST, (int32_t)pieces, r->name);
	r->ns = swc_trees_time(&k->trees, bytes, pieces, &c->net);
	r->connections = swc_trees_connections(&k->trees, pieces);
	return 1;
}

/* The best candidates that may be used, fastest first; returns how many. */
static unsigned int rank_candidates(const struct plan_options *opt, const struct swc_choices *c,
				    double bytes, struct ranked best[BEST])
{
	bool in_order = !opt->reorder && swc_coll_reduces((uint8_t)opt->coll) &&
			swc_reduce_order_matters((uint8_t)opt->dtype, (uint8_t)opt->redop);
	unsigned int all = c->coll[opt->coll].n, n = 0;
	struct ranked *r = calloc(all + 2, sizeof(*r));

	if (!r)
		plan_no_memory();
	for (unsigned int i = 0; i < all; i++) {
		const struct swc_candidate *cand = &c->coll[opt->coll].cand[i];

		if (!cand->known || (in_order && cand->order_varies))
			continue;
		plan_algo_text(cand->algo, cand->param, r[n].name);
		r[n].sampled = cand->cost.sampled;
		r[n].connections = cand->cost.connections;
		r[n++].ns = swc_cost_time(&cand->cost, bytes, &c->net, NULL);
	}
	n += add_forest(opt, c, bytes, &r[n]);
	qsort(r, n, sizeof(*r), by_time);
	n = n < BEST ? n : BEST;
	memcpy(best, r, n * sizeof(*r));
	free(r);
	return n;
}

static cJSON *choice_json(const struct plan_options *opt, double bytes, const struct swc_choice *ch,
			  const struct ranked *best, unsigned int n)
{
	cJSON *o = cJSON_CreateObject(), *list, *item;
	char name[PLAN_ALGO_TEXT];

	plan_algo_text(ch->algo, ch->param, name);
	cJSON_AddStringToObject(o, "op", plan_coll_name(opt->coll));
	cJSON_AddStringToObject(o, "topo", opt->topo_text);
	cJSON_AddNumberToObject(o, "bytes", bytes);
	cJSON_AddStringToObject(o, "algo", name);
	cJSON_AddStringToObject(o, "reason", reason_names[ch->reason]);
	if (ch->ns > 0)
		cJSON_AddNumberToObject(o, "time_ns", ch->ns);
	else
		cJSON_AddNullToObject(o, "time_ns");
	list = cJSON_AddArrayToObject(o, "best");
	for (unsigned int i = 0; i < n; i++) {
		item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "algo", best[i].name);
		cJSON_AddNumberToObject(item, "time_ns", best[i].ns);
		cJSON_AddNumberToObject(item, "connections", best[i].connections);
		cJSON_AddNumberToObject(item, "sampled", best[i].sampled);
		cJSON_AddItemToArray(list, item);
	}
	return o;
}

static void print_head(const struct plan_options *opt, const struct swc_network *net)
{
	printf("# %s of %s %s on %s: %g Gbit/s a link, %g ns a hop, %g ns a step,"
	       " reductions at %g Gbit/s\n"
	       "#%9s  %-13s %11s  %s\n",
	       plan_coll_name(opt->coll), swingcoll_dtype_name((enum swingcoll_dtype)opt->dtype),
	       swingcoll_redop_name((enum swingcoll_redop)opt->redop), opt->topo_text, net->gbps,
	       net->hop_ns, net->step_ns, net->reduce_gbps, "size", "algorithm", "time", "why");
}

static void print_choice(double bytes, const struct swc_choice *ch, const struct ranked *best,
			 unsigned int n)
{
	char size[NUMBER_TEXT], time[NUMBER_TEXT], name[PLAN_ALGO_TEXT];

	plan_algo_text(ch->algo, ch->param, name);
	printf("%10s  %-13s %11s  %s\n", number_bytes(bytes, size), name,
	       ch->ns > 0 ? number_ns(ch->ns, time) : "-", reasons[ch->reason]);
	for (unsigned int i = 0; i < n; i++)
		printf("%10s  %-13s %11s  number %u by the model, %u connection%s a rank%s\n", "",
		       best[i].name, number_ns(best[i].ns, time), i + 1, best[i].connections,
		       best[i].connections == 1 ? "" : "s",
		       best[i].sampled ? ", estimated from some ranks" : "");
}

static bool same(double a, double b)
{
	return !(a < b || b < a);
}

/* Measured figures of links replace those of the topology, but not those of options. */
static void read_tuning(const struct plan_options *opt, struct swc_choices *c,
			struct swc_topo *topo)
{
	struct swc_network before = swc_network_in_kernel(topo), now;
	char why[SWC_TEXT_BYTES] = "";
	int ret = swc_file_tuning(&c->tuning, opt->tuning, topo, why, sizeof(why));

	if (!ret)
		ret = swc_tuning_links(&c->tuning, topo);
	if (ret)
		plan_bad("--tuning %s: %s", opt->tuning, *why ? why : strerror(-ret));
	now = swc_network_in_kernel(topo);
	if (same(c->net.gbps, before.gbps))
		c->net.gbps = now.gbps;
	if (same(c->net.hop_ns, before.hop_ns))
		c->net.hop_ns = now.hop_ns;
}

/* The fallback may have plans that are too long. */
static void check_fallback(const struct plan_options *opt, const struct swc_choice *ch)
{
	struct entry e = { .algo = ch->algo, .param = ch->param };

	plan_try(opt, &e, opt->coll);
	if (e.ret)
		plan_bad("no algorithm is possible for %s on %s: %s: %s", plan_coll_name(opt->coll),
			 opt->topo_text, swc_algo_name(ch->algo),
			 *e.why ? e.why : strerror(-e.ret));
}

int choose_run(const struct plan_options *opt)
{
	cJSON *all = opt->json ? cJSON_CreateArray() : NULL;
	struct ranked best[BEST];
	struct swc_topo topo;
	struct swc_choices c;

	if (!swingcoll_supported((enum swingcoll_dtype)opt->dtype,
				 (enum swingcoll_redop)opt->redop))
		plan_bad("%s is not defined for %s: take an integer type or another --redop",
			 swingcoll_redop_name((enum swingcoll_redop)opt->redop),
			 swingcoll_dtype_name((enum swingcoll_dtype)opt->dtype));
	for (unsigned int s = 0; s < opt->nsizes; s++)
		if ((uint64_t)opt->sizes[s] %
		    swingcoll_dtype_size((enum swingcoll_dtype)opt->dtype))
			plan_bad(
				"--size %.0f: no whole number of elements of %s: give a multiple of %zu",
				opt->sizes[s],
				swingcoll_dtype_name((enum swingcoll_dtype)opt->dtype),
				swingcoll_dtype_size((enum swingcoll_dtype)opt->dtype));
	if (swc_topo_copy(&topo, &opt->topo))
		plan_no_memory();
	swc_choices_init(&c, &topo, opt->reorder);
	c.net = opt->net;
	c.ncpus = opt->ncpus;
	c.ngroups = opt->ngroups;
	if (opt->tuning)
		read_tuning(opt, &c, &topo);
	for (unsigned int s = 0; s < opt->nsizes; s++) {
		struct swc_choice ch = swc_choices_take(&c, opt->coll, opt->dtype, opt->redop,
							(uint64_t)opt->sizes[s], SWC_CHOICES_BEST);
		unsigned int n = rank_candidates(opt, &c, opt->sizes[s], best);

		if (ch.reason == SWC_REASON_ONLY)
			check_fallback(opt, &ch);
		if (!s && !opt->json)
			print_head(opt, &c.net);
		if (opt->json)
			cJSON_AddItemToArray(all, choice_json(opt, opt->sizes[s], &ch, best, n));
		else
			print_choice(opt->sizes[s], &ch, best, n);
	}
	if (opt->json)
		json_document(stdout, all);
	swc_choices_free(&c);
	swc_topo_free(&topo);
	return 0;
}
