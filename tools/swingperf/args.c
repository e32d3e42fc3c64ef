// SPDX-License-Identifier: GPL-2.0-only
/* swingperf's command line: from the arguments to checked options and a list of sizes. */
#include "swingperf.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/names.h"

#define MAX_SIZES 4096
#define MAX_BYTES (1ull << 40)

static const char usage_text[] =
	"swingperf [options]\n"
	"       swingperf --compare OLD NEW    compare two files of --json\n"
	"       swingperf overlap [options]    an allgather and the product that consumes it (--help)\n"
	"\n"
	"Times a collective over a range of sizes and checks every element of the result.\n"
	"\n"
	"The ranks are processes forked here (-n), or started by mpirun, srun or torchrun, or by any program\n"
	"that sets SWINGCOLL_ROOT=HOST:PORT, SWINGCOLL_RANK and SWINGCOLL_NRANKS. With SWINGCOLL_NODE and\n"
	"SWINGCOLL_NNODES instead of the last two, swingperf forks -n ranks on each node.\n";

static const char notes_text[] =
	"all_reduce_perf, all_gather_perf, reduce_scatter_perf, broadcast_perf, reduce_perf, alltoall_perf,\n"
	"gather_perf and scatter_perf are swingperf with the options of nccl-tests.\n"
	"\n"
	"Exit status: 0; 1 if an element was wrong, or, with --compare, a time is longer than the tolerance\n"
	"allows; 2 if anything else failed.";

enum {
	OPT_RANKS,
	OPT_OP,
	OPT_DTYPE,
	OPT_REDOP,
	OPT_ROOT,
	OPT_MIN,
	OPT_MAX,
	OPT_FACTOR,
	OPT_SIZES,
	OPT_ITERS,
	OPT_WARMUP,
	OPT_REPEATS,
	OPT_TIME_MS,
	OPT_BUFFERS,
	OPT_ALGO,
	OPT_TOPO,
	OPT_REORDER,
	OPT_URGENT,
	OPT_TUNING,
	OPT_TUNE,
	OPT_TUNE_LINKS,
	OPT_INPLACE,
	OPT_OUTOFPLACE,
	OPT_NONBLOCKING,
	OPT_IO_URING,
	OPT_SLOT_MAX,
	OPT_TIMEOUT,
	OPT_CPUS,
	OPT_CHECK,
	OPT_SPARSE,
	OPT_SEED,
	OPT_MODE,
	OPT_JSON,
	OPT_CSV,
	OPT_COMPARE,
	OPT_TOLERANCE,
};

static const struct cli_option options[] = {
	{ OPT_RANKS, 'n', "ranks", "N", "fork N ranks here (default 2 without a launcher)" },
	{ OPT_OP, 'o', "op", "NAME", COLL_NAMES " (default allreduce)" },
	{ OPT_DTYPE, 'd', "dtype", "NAME", DTYPE_NAMES " (default f32)" },
	{ OPT_REDOP, 'r', "redop", "NAME", REDOP_NAMES " (default sum)" },
	{ OPT_ROOT, 'R', "root", "R",
	  "root rank of broadcast, reduce, gather and scatter (default 0)" },
	{ OPT_MIN, 'b', "min", "BYTES", "first size, suffixes K M G (default 8)" },
	{ OPT_MAX, 'e', "max", "BYTES", "last size (default 64M)" },
	{ OPT_FACTOR, 'f', "factor", "F", "factor from one size to the next (default 2)" },
	{ OPT_SIZES, 0, "sizes", "LIST", "sizes with commas between them, instead of a range" },
	{ OPT_ITERS, 'i', "iters", "N",
	  "operations per repeat; 0: as many as fit into --time-ms (default)" },
	{ OPT_WARMUP, 'w', "warmup", "N", "operations before the measurement (default 3)" },
	{ OPT_REPEATS, 0, "repeats", "N",
	  "measurements per size, of which the median counts (default 5)" },
	{ OPT_TIME_MS, 0, "time-ms", "N", "time for the measurements of a size (default 200)" },
	{ OPT_BUFFERS, 0, "buffers", "K", "use K pairs of buffers in rotation (default 1)" },
	{ OPT_ALGO, 'a', "algo", "NAME",
	  "algorithm, with its parameter if it has one, as in swing-h:2; file:PATH for a plan file; "
	  "forest for trees on --topo; \"list\" prints the others (default auto)" },
	{ OPT_TOPO, 't', "topo", "TOPO",
	  "topology of the network, such as ring:8, torus:4x4 or torus:2x2*4 (default: all ranks on "
	  "one node)" },
	{ OPT_REORDER, 0, "reorder", NULL,
	  "allow algorithms that may give ranks float results which differ in their last bits" },
	{ OPT_URGENT, 0, "urgent", NULL,
	  "measure a communicator whose operations go before those of others" },
	{ OPT_TUNING, 0, "tuning", "FILE",
	  "correct the automatic choice by the times in this file" },
	{ OPT_TUNE, 0, "tune", "FILE", "measure all algorithms and write the times to this file" },
	{ OPT_TUNE_LINKS, 0, "tune-links", "FILE",
	  "measure the links between nodes only and write their rates to this file" },
	{ OPT_INPLACE, 0, "inplace", NULL, "measure in place only (default: both)" },
	{ OPT_OUTOFPLACE, 0, "outofplace", NULL, "measure out of place only" },
	{ OPT_NONBLOCKING, 0, "nonblocking", NULL,
	  "start and wait, with up to --buffers operations in flight" },
	{ OPT_IO_URING, 0, "io-uring", "MODE", "auto, must or never (default auto)" },
	{ OPT_SLOT_MAX, 0, "slot-max", "BYTES",
	  "largest size that uses the shared-memory slots; -1: none (default: the library's)" },
	{ OPT_TIMEOUT, 0, "timeout-ms", "N", "deadline of each operation (default 30000)" },
	{ OPT_CPUS, 0, "cpus", "MODE",
	  "bind ranks to CPUs: none, rr (in turn), or CPU numbers such as 0,2,4 (default none)" },
	{ OPT_CHECK, 'c', "check", "0|1", "check every element (default 1)" },
	{ OPT_SPARSE, 0, "sparse", "D[,KIND]",
	  "sparse allreduces of vectors with a share D of elements that are not zero; KIND: how the "
	  "ranks' places overlap: " SPARSE_OVERLAPS " (default independent)" },
	{ OPT_SEED, 0, "seed", "S", "with --sparse: seed of places and values (default 1)" },
	{ OPT_MODE, 0, "mode", "MODE",
	  "with --sparse: dense, pack, sketch, rows:W, coded or auto (default all that are possible, but "
	  "auto)" },
	{ OPT_JSON, 'j', "json", NULL, "print one JSON object per measurement" },
	{ OPT_CSV, 0, "csv", NULL, "print one line of CSV per measurement, with the same members" },
	{ OPT_COMPARE, 0, "compare", "OLD",
	  "compare with the times in this file, which --json has written: those of the file NEW if it "
	  "is given, else of this run" },
	{ OPT_TOLERANCE, 0, "tolerance", "PERCENT",
	  "with --compare: how much longer a time may be (default 10)" },
	{ 0 },
};

static struct cli cli = {
	.prog = "swingperf",
	.usage = usage_text,
	.notes = notes_text,
	.options = options,
};

static size_t size_list[MAX_SIZES];

static void add_size(struct perf_options *opt, size_t bytes)
{
	if (opt->nsizes == MAX_SIZES)
		cli_fail(opt->cli, "more than %d sizes: take a larger %s", MAX_SIZES,
			 opt->step ? "step" : "factor");
	size_list[opt->nsizes++] = bytes;
}

static void cpus_arg(struct perf_options *opt)
{
	char *list = cli.value, known[256];
	long long cpu;

	opt->ncpus = 0;
	if (!strcmp(list, "rr")) {
		opt->ncpus = team_cpus(opt->cpus, PERF_MAX_CPUS);
	} else if (strcmp(list, "none")) {
		/* An empty one is wrong, too. */
		while ((cli.value = strsep(&list, ","))) {
			if (number_parse(cli.value, 0, CPU_SETSIZE - 1, &cpu) ||
			    opt->ncpus == PERF_MAX_CPUS)
				cli_expected(&cli,
					     "none, rr, or CPU numbers with commas between them");
			if (!team_has_cpu((int)cpu, known, sizeof(known)))
				cli_expected(&cli, "CPUs that this process may use: %s", known);
			opt->cpus[opt->ncpus++] = (int)cpu;
		}
	}
}

/* As in struct swingcoll_comm_opts. */
static int io_uring_arg(void)
{
	static const char *const names[] = { "auto", "must", "never", NULL };
	static const int values[] = { 0, 1, -1 };

	return values[cli_choice(&cli, names)];
}

static void algo_arg(struct perf_options *opt)
{
	const char *name;

	opt->algo = cli.value;
	if (strcmp(opt->algo, "list"))
		return;
	for (int i = 0; (name = swingcoll_algo_name(i)); i++)
		puts(name);
	exit(cli_finish(cli.prog, 0));
}

static void option_arg(struct perf_options *opt, struct team *team, int id)
{
	switch (id) {
	case OPT_RANKS:
		team->nranks = (int)cli_number(&cli, 1, TEAM_MAX_RANKS);
		break;
	case OPT_OP:
		opt->coll = (enum swingcoll_coll)cli_name(&cli, swingcoll_coll_parse, COLL_NAMES);
		break;
	case OPT_DTYPE:
		opt->dtype = (enum swingcoll_dtype)cli_name(&cli, swingcoll_dtype_parse,
							    DTYPE_NAMES);
		break;
	case OPT_REDOP:
		opt->op = (enum swingcoll_redop)cli_name(&cli, swingcoll_redop_parse, REDOP_NAMES);
		break;
	case OPT_ROOT:
		opt->root = (int)cli_number(&cli, 0, TEAM_MAX_RANKS - 1);
		break;
	case OPT_MIN:
		opt->min_bytes = cli_size(&cli, 1, MAX_BYTES);
		break;
	case OPT_MAX:
		opt->max_bytes = cli_size(&cli, 1, MAX_BYTES);
		break;
	case OPT_FACTOR:
		opt->factor = cli_real(&cli, 1.001, 1e6);
		break;
	case OPT_SIZES:
		opt->nsizes = cli_sizes(&cli, size_list, MAX_SIZES);
		break;
	case OPT_ITERS:
		opt->rule.iters = (unsigned int)cli_number(&cli, 0, 100000000);
		break;
	case OPT_WARMUP:
		opt->rule.warmup = (unsigned int)cli_number(&cli, 0, 1000000);
		break;
	case OPT_REPEATS:
		opt->rule.repeats = (unsigned int)cli_number(&cli, 1, 64);
		break;
	case OPT_TIME_MS:
		opt->rule.budget_s = (double)cli_number(&cli, 1, 3600000) * 1e-3;
		break;
	case OPT_BUFFERS:
		opt->rule.buffers = (unsigned int)cli_number(&cli, 1, PERF_MAX_BUFFERS);
		break;
	case OPT_ALGO:
		algo_arg(opt);
		break;
	case OPT_TOPO:
		opt->topo = cli.value;
		break;
	case OPT_REORDER:
		opt->reorder = true;
		break;
	case OPT_URGENT:
		opt->urgent = true;
		break;
	case OPT_TUNING:
		opt->tuning = cli.value;
		break;
	case OPT_TUNE:
	case OPT_TUNE_LINKS:
		opt->tune = cli.value;
		opt->links_only = id == OPT_TUNE_LINKS;
		break;
	case OPT_INPLACE:
	case OPT_OUTOFPLACE:
		opt->in_place_only = id == OPT_INPLACE;
		opt->out_of_place_only = id == OPT_OUTOFPLACE;
		break;
	case OPT_NONBLOCKING:
		opt->nonblocking = true;
		break;
	case OPT_IO_URING:
		opt->use_io_uring = io_uring_arg();
		break;
	case OPT_SLOT_MAX:
		opt->slot_max = !strcmp(cli.value, "-1") ? -1
							 : (long long)cli_size(&cli, 1, MAX_BYTES);
		break;
	case OPT_TIMEOUT:
		opt->timeout_ms = (unsigned int)cli_number(&cli, 1, INT_MAX);
		break;
	case OPT_CPUS:
		cpus_arg(opt);
		break;
	case OPT_CHECK:
		opt->check = cli_number(&cli, 0, 1);
		break;
	case OPT_SPARSE:
		opt->sparse = true;
		if (sparse_parse(cli.value, &opt->input))
			cli_expected(&cli,
				     "a density from 0 to 1, and after a comma " SPARSE_OVERLAPS);
		break;
	case OPT_SEED:
		opt->input.seed = (uint64_t)cli_number(&cli, 0, LLONG_MAX);
		break;
	case OPT_MODE:
		opt->mode = cli.value;
		break;
	case OPT_JSON:
		opt->format = PERF_JSON;
		break;
	case OPT_CSV:
		opt->format = PERF_CSV;
		break;
	case OPT_COMPARE:
		opt->compare = cli.value;
		break;
	case OPT_TOLERANCE:
		opt->tolerance = cli_real(&cli, 0, 1000) / 100;
		break;
	}
}

void perf_parse(struct perf_options *opt, struct team *team, int argc, char **argv)
{
	const char *newer = NULL;
	int id;

	cli.argc = argc;
	cli.argv = argv;
	cli.version = swingcoll_version();
	opt->cli = &cli;
	opt->tolerance = 0.1;
	while ((id = cli_next(&cli)) != CLI_END)
		option_arg(opt, team, id);
	if (opt->compare && cli_has_operand(&cli))
		newer = cli_operand(&cli, "NEW");
	cli_end(&cli);
	if (!opt->compare && cli.given & 1ull << OPT_TOLERANCE)
		cli_fail(&cli, "--tolerance is for --compare");
	if (newer)
		exit(cli_finish(cli.prog, perf_compare_files(opt, newer)));
}

/* The smallest vector: one element, or one per rank. */
static size_t unit_bytes(const struct perf_options *opt, int nranks)
{
	return swingcoll_dtype_size(opt->dtype) * (perf_has_shards(opt) ? (size_t)nranks : 1);
}

/* The sizes to measure: whole elements, at least one, no size twice in a row. */
static void choose_sizes(struct perf_options *opt, int nranks)
{
	size_t unit = unit_bytes(opt, nranks), bytes, i, n = 0;
	double size;

	if (opt->coll == SWINGCOLL_BARRIER) {
		opt->nsizes = 0;
		add_size(opt, unit);
	}
	if (!opt->nsizes)
		for (size = (double)opt->min_bytes; size <= (double)opt->max_bytes;
		     size = opt->step ? size + (double)opt->step : size * opt->factor)
			add_size(opt, (size_t)size);
	opt->sizes = size_list;
	opt->max_bytes = unit;
	for (i = 0; i < opt->nsizes; i++) {
		bytes = size_list[i] < unit ? unit : size_list[i] - size_list[i] % unit;
		if (n && size_list[n - 1] == bytes)
			continue;
		size_list[n++] = bytes;
		if (bytes > opt->max_bytes)
			opt->max_bytes = bytes;
	}
	opt->nsizes = n;
}

/* Let the library check the options before any rank is started. */
static void check_with_library(const struct perf_options *opt, int nranks)
{
	/* Whether the topology fits several nodes is known only when they are. */
	const struct swingcoll_comm_opts o = {
		.algo = opt->algo,
		.topo = opt->anywhere ? NULL : opt->topo,
		.tuning = opt->tuning,
	};
	char why[256] = "";

	if (opt->tune && opt->topo && *opt->topo == '@')
		cli_fail(opt->cli, "--tune and --tune-links need --topo as text, not as a file");
	if (swingcoll_opts_check(&o, nranks, why, sizeof(why)))
		cli_fail(opt->cli, "%s", why);
}

void perf_check_options(struct perf_options *opt, int nranks)
{
	check_with_library(opt, nranks);
	if (opt->root >= nranks)
		cli_fail(opt->cli, "--root %d: the ranks are 0 to %d", opt->root, nranks - 1);
	if (!swingcoll_supported(opt->dtype, opt->op))
		cli_fail(opt->cli,
			 "%s is not defined for %s: take an integer type or another reduction",
			 swingcoll_redop_name(opt->op), swingcoll_dtype_name(opt->dtype));
	if (opt->sparse && (opt->coll != SWINGCOLL_ALLREDUCE || opt->tune || opt->nonblocking))
		cli_fail(opt->cli, "--sparse is for blocking allreduces, without --tune");
	if (opt->sparse &&
	    (opt->dtype == SWINGCOLL_F16 || (opt->dtype == SWINGCOLL_BF16 && nranks > 32)))
		cli_fail(
			opt->cli,
			"--sparse: sums of %d ranks' values are not exact in %s: take another --dtype",
			nranks, swingcoll_dtype_name(opt->dtype));
	if (opt->sparse && opt->op != SWINGCOLL_SUM)
		cli_fail(opt->cli, "--sparse sums up: --redop must be sum");
	if (opt->mode && !opt->sparse)
		cli_fail(opt->cli, "--mode is for --sparse");
	if (opt->mode && !perf_sparse_mode_fits(opt))
		cli_fail(
			opt->cli,
			"--mode %s: expected dense, pack, rows:W or auto, sketch for integers, or coded for bf16",
			opt->mode);
	if (opt->max_bytes < opt->min_bytes)
		cli_fail(opt->cli, "the last size %zu is less than the first %zu", opt->max_bytes,
			 opt->min_bytes);
	if (opt->compare && (opt->sparse || opt->tune))
		cli_fail(opt->cli, "--compare is neither for --sparse nor for --tune");
	choose_sizes(opt, nranks);
}
