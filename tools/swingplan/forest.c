// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan forest: the fastest trees on any network (ForestColl, arXiv 2402.06787, and beyond it): for
 * allgather, reduce-scatter and allreduce with as many trees from each rank, for allreduce with trees from any
 * ranks, for broadcast and reduce from one.
 */
#include "forest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/number.h"
#include "plan/select/tuning.h"
#include "src/files.h"

static void must(int ret, const char *what, const char *why)
{
	if (ret == -ENOMEM)
		plan_no_memory();
	if (ret)
		plan_bad("%s: %s", what, why);
}

/* ------------------------------------------------------------------ network */

/* The graph of the topology, with the rates that were measured. */
static void read_topo(struct forest *f)
{
	const struct plan_options *opt = f->opt;
	char why[SWC_TEXT_BYTES] = "out of memory";
	struct swc_graph_use use = { opt->coll, 0 };
	uint64_t root;
	struct swc_tuning t = { 0 };
	struct swc_topo topo;

	if (opt->topo.nnodes != opt->topo.nranks && (opt->coll != SWC_ALLREDUCE || opt->members))
		plan_bad(
			"%s: nodes have several ranks: there are trees for an allreduce of all of them",
			opt->topo_text);
	must(swc_topo_copy(&topo, &opt->topo), "", "");
	if (opt->tuning)
		must(swc_file_tuning(&t, opt->tuning, &topo, why, sizeof(why)), "--tuning", why);
	must(swc_tuning_links(&t, &topo), "", "");
	if (opt->root_name && swc_number_parse(opt->root_name, 0, topo.nnodes - 1, &root))
		use.root = (uint32_t)root;
	/* Ports of relays must be equal both ways, too. */
	must(swc_graph_of_topo(&f->g, &topo, opt->members ? NULL : &use, &f->unit, why,
			       sizeof(why)),
	     opt->topo_text, why);
	swc_tuning_free(&t);
	swc_topo_free(&topo);
}

static void read_graph(struct forest *f)
{
	const struct plan_options *opt = f->opt;
	char why[SWC_TEXT_BYTES] = "out of memory", *text = NULL;
	size_t bytes;

	if (!opt->graph == !opt->topo_text)
		plan_bad("expected a network: --graph FILE or --topo T");
	if (opt->topo_text) {
		read_topo(f);
		return;
	}
	if (opt->tuning)
		plan_bad("--tuning: needs --topo, whose links were measured");
	if (swc_file_read(opt->graph, SWC_TEXT_FILE_MAX_BYTES, &text, &bytes, why, sizeof(why)))
		plan_bad("%s", why);
	must(swc_graph_parse(&f->g, text, bytes, why, sizeof(why)), opt->graph, why);
	free(text);
	f->named = true;
}

/* The number of a rank by its name, or by its number where no rank has that name. */
static uint32_t rank_of(const struct swc_graph *g, const char *option, const char *name)
{
	char number[16];
	uint64_t r;

	for (uint32_t v = 0; v < g->nranks; v++)
		if (!strcmp(swc_graph_name(g, v, number), name))
			return v;
	if (g->nranks && swc_number_parse(name, 0, g->nranks - 1, &r))
		return (uint32_t)r;
	plan_bad("%s %s: the network has no such rank", option, name);
}

/* Keep the ranks that --members names. */
static void keep_members(struct forest *f)
{
	char why[SWC_TEXT_BYTES] = "out of memory", *list, *save = NULL;
	struct swc_graph sub;
	uint32_t *ranks;
	bool *member;

	if (!f->opt->members)
		return;
	list = strdup(f->opt->members);
	member = calloc(f->g.nranks, sizeof(*member));
	if (!list || !member)
		plan_no_memory();
	for (char *s = strtok_r(list, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
		uint32_t r = rank_of(&f->g, "--members", s);

		if (member[r])
			plan_bad("--members %s: %s is there twice", f->opt->members, s);
		member[r] = true;
	}
	must(swc_graph_among(&sub, &f->g, member, &ranks, why, sizeof(why)), "--members", why);
	swc_graph_free(&f->g);
	f->g = sub;
	f->named = true;
	free(ranks);
	free(member);
	free(list);
}

/* ------------------------------------------------------------------ trees */

static void make_phase(struct forest *f, int direction, struct swc_fraction slots,
		       const int64_t *weight)
{
	struct progress bar = { direction == UP ? "reduction" : "broadcast", 0, 1 };
	int ret = swc_phase_make(&f->phase[direction], &f->g, direction == UP, slots, weight,
				 plan_progress, &bar);

	plan_progress_end();
	must(ret, "no trees were found", "please report this network");
	f->has[direction] = true;
}

static void mirror(struct forest *f)
{
	must(swc_phase_mirror(&f->phase[UP], &f->phase[DOWN]), "", "");
	f->has[UP] = true;
}

static bool wanted(const struct forest *f)
{
	return (f->opt->trees || f->opt->out) && !f->opt->any_roots;
}

static void find_bounds(struct forest *f, bool symmetric)
{
	struct swc_graph reverse;
	double time[2];

	must(swc_bound_find(&f->bound[DOWN], &f->g), "", "");
	must(swc_graph_reverse(&reverse, &f->g), "", "");
	if (symmetric) {
		f->bound[UP] = f->bound[DOWN];
		f->bound[UP].side = calloc(f->g.nnodes, sizeof(bool));
		if (!f->bound[UP].side)
			plan_no_memory();
		memcpy(f->bound[UP].side, f->bound[DOWN].side, f->g.nnodes);
	} else {
		must(swc_bound_find(&f->bound[UP], &reverse), "", "");
	}
	swc_graph_free(&reverse);
	for (int i = 0; i < 2; i++)
		time[i] = (double)f->bound[i].inv_x.p / (double)f->bound[i].inv_x.q / f->g.nranks;
	f->equal_time = time[DOWN] + time[UP];
	f->time = f->opt->coll == SWC_ALLGATHER	       ? time[DOWN]
		  : f->opt->coll == SWC_REDUCE_SCATTER ? time[UP]
						       : f->equal_time;
}

/* As many trees from each rank. */
static void find_equal(struct forest *f)
{
	enum swc_coll coll = f->opt->coll;
	bool symmetric = swc_graph_symmetric(&f->g);
	int64_t *weight = calloc(f->g.nranks, sizeof(*weight));

	if (!weight)
		plan_no_memory();
	find_bounds(f, symmetric);
	for (int i = 0; i < 2 && wanted(f); i++) {
		if (coll == (i == DOWN ? SWC_REDUCE_SCATTER : SWC_ALLGATHER))
			continue;
		if (i == UP && symmetric && f->has[DOWN]) {
			mirror(f);
			continue;
		}
		for (uint32_t r = 0; r < f->g.nranks; r++)
			weight[r] = f->bound[i].k;
		make_phase(f, i, f->bound[i].slots, weight);
	}
	free(weight);
}

/* All trees from one rank. */
static void find_rooted(struct forest *f)
{
	bool up = f->opt->coll == SWC_REDUCE;
	struct swc_graph reverse;
	int64_t *weight = calloc(f->g.nranks, sizeof(*weight)), rate, d;

	if (!weight)
		plan_no_memory();
	f->root = f->opt->root_name ? rank_of(&f->g, "--root", f->opt->root_name) : 0;
	must(swc_graph_reverse(&reverse, &f->g), "", "");
	must(swc_bound_broadcast(up ? &reverse : &f->g, f->root, &rate), "", "");
	swc_graph_free(&reverse);
	f->rate = (double)rate;
	f->time = 1 / f->rate;
	d = rate;
	for (uint32_t i = 0; i < f->g.nlinks; i++)
		d = swc_gcd(d, f->g.link[i].capacity);
	weight[f->root] = rate / d;
	if (wanted(f))
		make_phase(f, up ? UP : DOWN, swc_fraction_of(1, d), weight);
	free(weight);
}

static void check(const struct plan_options *opt)
{
	enum swc_coll coll = opt->coll;
	bool rooted = coll == SWC_BROADCAST || coll == SWC_REDUCE;

	if (coll != SWC_ALLREDUCE && coll != SWC_ALLGATHER && coll != SWC_REDUCE_SCATTER && !rooted)
		plan_bad(
			"--op %s: forests are for allreduce, reduce_scatter, allgather, broadcast and reduce",
			plan_coll_name(coll));
	if (opt->any_roots && coll != SWC_ALLREDUCE)
		plan_bad("--roots any: is for --op allreduce; shards and vectors have their roots");
	if (opt->root_name && !rooted)
		plan_bad("--root %s: only --op broadcast and reduce have a root", opt->root_name);
}

int forest_run(const struct plan_options *opt)
{
	struct forest f = { .opt = opt };

	check(opt);
	read_graph(&f);
	keep_members(&f);
	if (opt->coll == SWC_BROADCAST || opt->coll == SWC_REDUCE)
		find_rooted(&f);
	else
		find_equal(&f);
	if (opt->any_roots)
		forest_find_any(&f);
	if (opt->out)
		forest_write(&f);
	if (opt->json)
		forest_print_json(&f);
	else
		forest_print(&f);
	for (int i = 0; i < 2; i++) {
		swc_bound_free(&f.bound[i]);
		swc_phase_free(&f.phase[i]);
	}
	free(f.x);
	swc_graph_free(&f.g);
	return 0;
}
