// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingperf: times swingcoll's collectives over a range of sizes and checks every element. This file starts
 * the ranks and goes through the sizes; args.c reads the command line, launch.c finds out how ranks are
 * started, run.c does the work of a rank, pattern.c has data and expected results, print.c prints the table,
 * compare.c ratios to earlier times, tune.c measures all algorithms and links.c links, sparse.c sparse
 * allreduces. nccl.c is the command line of nccl-tests. overlap*.c are the verb "overlap".
 */
#include "swingperf.h"
#include "overlap.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

/* All sizes, in one rank. */
static int body(struct team *team, void *arg)
{
	const struct perf_options *opt = arg;
	struct perf_rank r = { .opt = opt, .team = team };
	/* A barrier moves nothing, in place or not. */
	bool do_in = !opt->out_of_place_only && opt->coll != SWINGCOLL_BARRIER;
	bool do_out = !opt->in_place_only || !do_in;
	struct perf_row out = { 0 }, in = { 0 };
	uint64_t wrong = 0;
	double busbw = 0;
	int status = 0, ret;
	size_t i;

	if (opt->anywhere && !team->boot && perf_join_nodes(team, opt->total))
		return 2;
	if (opt->tune)
		return perf_tune(opt, team);
	ret = perf_rank_open(&r);
	if (opt->sparse) {
		ret = ret ? ret : perf_sparse(&r, &wrong);
		perf_rank_close(&r);
		return ret ? 2 : wrong ? 1 : 0;
	}
	if (!ret && !team->rank) {
		r.records = opt->earlier ? cJSON_CreateArray() : NULL;
		perf_print_header(&r);
	}
	for (i = 0; !ret && i < opt->nsizes; i++) {
		if (do_out)
			ret = perf_rank_row(&r, opt->sizes[i], false, &out);
		if (!ret && do_in)
			ret = perf_rank_row(&r, opt->sizes[i], true, &in);
		if (ret)
			break;
		wrong += out.wrong + in.wrong;
		busbw += perf_busbw(opt, team->nranks, do_out ? &out : &in);
		if (!team->rank)
			perf_print_row(&r, do_out ? &out : NULL, do_in ? &in : NULL);
	}
	if (!ret && !team->rank)
		perf_print_footer(opt, wrong, busbw / (double)opt->nsizes);
	if (!ret && r.records)
		status = perf_compare_run(opt, r.records);
	perf_rank_close(&r);
	return ret ? 2 : wrong ? 1 : status;
}

int main(int argc, char **argv)
{
	struct perf_options opt = {
		.coll = SWINGCOLL_ALLREDUCE,
		.dtype = SWINGCOLL_F32,
		.op = SWINGCOLL_SUM,
		.min_bytes = 8,
		.max_bytes = 64 << 20,
		.factor = 2,
		.rule = { .warmup = 3, .repeats = 5, .buffers = 1, .budget_s = 0.2 },
		.check = true,
		.input = { .seed = 1 },
	};
	struct team team = { .prog = "swingperf" };
	enum perf_launch launch;
	int ret;

	if (argc > 1 && !strcmp(argv[1], "overlap"))
		return perf_overlap(argc - 1, argv + 1);
	if (!perf_nccl_parse(&opt, &team, argc, argv))
		perf_parse(&opt, &team, argc, argv);
	launch = perf_find_launch(&team, &opt.total);
	if (launch == PERF_BAD)
		return 2;
	opt.anywhere = launch == PERF_LAUNCHED || launch == PERF_NODE;
	perf_check_options(&opt, opt.total);
	/* Only rank 0 needs it; with nodes, it is among those that are forked here. */
	if (opt.compare && !team.rank)
		perf_compare_open(&opt);
	if (launch == PERF_ATTACH)
		return team_attach(&team) ? 2 : cli_finish(team.prog, body(&team, &opt));
	if (launch == PERF_LAUNCHED) {
		ret = cli_finish(team.prog, body(&team, &opt));
		swingcoll_bootstrap_free(team.boot);
		return ret;
	}

	ret = swingcoll_unique_id(&team.id);
	if (ret) {
		fprintf(stderr, "swingperf: no random id: %s\n", swingcoll_strerror(ret));
		return 2;
	}
	return team_run(&team, body, &opt);
}
