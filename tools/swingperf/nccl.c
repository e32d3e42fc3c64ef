// SPDX-License-Identifier: GPL-2.0-only
/*
 * The command line of nccl-tests, for those who call swingperf by a name from there: its programs, options,
 * defaults and type names become swingperf's. A rank takes the place of a GPU.
 */
#include "swingperf.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	enum swingcoll_coll coll;
} programs[] = {
	{ "all_reduce_perf", SWINGCOLL_ALLREDUCE },
	{ "all_gather_perf", SWINGCOLL_ALLGATHER },
	{ "reduce_scatter_perf", SWINGCOLL_REDUCE_SCATTER },
	{ "broadcast_perf", SWINGCOLL_BROADCAST },
	{ "reduce_perf", SWINGCOLL_REDUCE },
	{ "alltoall_perf", SWINGCOLL_ALLTOALL },
	{ "gather_perf", SWINGCOLL_GATHER },
	{ "scatter_perf", SWINGCOLL_SCATTER },
};

/* By enum swingcoll_dtype; nccl-tests have no types of 16-bit integers. */
static const char *const dtypes[] = { "int8",  "uint8",	 "int16", "uint16",   "int32", "uint32",
				      "int64", "uint64", "half",  "bfloat16", "float", "double" };

#define NDTYPES (int)(sizeof(dtypes) / sizeof(dtypes[0]))
#define DTYPES                                                                                     \
	"int8, uint8, int16, uint16, int32, uint32, int64, uint64, half, bfloat16, float or double"
#define REDOPS "sum, prod, min, max or avg"
#define MAX_BYTES (1ull << 40)

static const char notes_text[] =
	"This is swingperf with the options of nccl-tests: a rank is a process, not a GPU. -t and -g\n"
	"multiply to the number of ranks that are forked here; without both, 2 ranks, or, behind mpirun, srun\n"
	"or torchrun, its processes. swingperf --help has more options, swingperf(1) has all details.\n"
	"\n"
	"Exit status: 0; 1 if an element was wrong; 2 if anything else failed.";

enum {
	OPT_MIN,
	OPT_MAX,
	OPT_STEP,
	OPT_FACTOR,
	OPT_ITERS,
	OPT_WARMUP,
	OPT_REDOP,
	OPT_DTYPE,
	OPT_ROOT,
	OPT_CHECK,
	OPT_THREADS,
	OPT_GPUS,
	OPT_TIMEOUT,
	OPT_ALGO,
	OPT_TOPO,
	OPT_JSON,
	OPT_CSV,
};

static const struct cli_option options[] = {
	{ OPT_MIN, 'b', "minbytes", "BYTES", "first size, suffixes K M G (default 32M)" },
	{ OPT_MAX, 'e', "maxbytes", "BYTES", "last size (default 32M)" },
	{ OPT_STEP, 'i', "stepbytes", "BYTES", "step from one size to the next (default 1M)" },
	{ OPT_FACTOR, 'f', "stepfactor", "F",
	  "factor from one size to the next, instead of a step" },
	{ OPT_ITERS, 'n', "iters", "N", "operations that are measured (default 20)" },
	{ OPT_WARMUP, 'w', "warmup_iters", "N", "operations before the measurement (default 5)" },
	{ OPT_REDOP, 'o', "op", "NAME", REDOPS " (default sum)" },
	{ OPT_DTYPE, 'd', "datatype", "NAME", DTYPES " (default float)" },
	{ OPT_ROOT, 'r', "root", "R",
	  "root rank of broadcast, reduce, gather and scatter (default 0)" },
	{ OPT_CHECK, 'c', "check", "N", "0: do not check; else check every element (default 1)" },
	{ OPT_THREADS, 't', "nthreads", "N", "fork -t times -g ranks here" },
	{ OPT_GPUS, 'g', "ngpus", "N", "likewise" },
	{ OPT_TIMEOUT, 'T', "timeout", "SECONDS", "deadline of each operation (default 30)" },
	{ OPT_ALGO, 0, "algo", "NAME", "algorithm (default auto), see swingperf --help" },
	{ OPT_TOPO, 0, "topo", "TOPO", "topology of the network, see swingperf --help" },
	{ OPT_JSON, 0, "json", NULL, "print one JSON object per measurement" },
	{ OPT_CSV, 0, "csv", NULL, "print one line of CSV per measurement" },
	{ 0 },
};

static struct cli cli = {
	.notes = notes_text,
	.options = options,
};

const char *perf_nccl_dtype(enum swingcoll_dtype dtype)
{
	return dtypes[dtype];
}

static enum swingcoll_dtype dtype_arg(void)
{
	for (int i = 0; i < NDTYPES; i++)
		if (!strcmp(cli.value, dtypes[i]))
			return (enum swingcoll_dtype)i;
	cli_expected(&cli, "one of the types that swingcoll has: " DTYPES);
}

static enum swingcoll_redop redop_arg(void)
{
	int op = swingcoll_redop_parse(cli.value);

	if (op < 0 || op > SWINGCOLL_AVG)
		cli_expected(&cli, "one of the reductions that swingcoll has: " REDOPS);
	return (enum swingcoll_redop)op;
}

static int root_arg(void)
{
	long long root;

	if (number_parse(cli.value, 0, TEAM_MAX_RANKS - 1, &root))
		cli_expected(&cli, "one rank from 0 to %d", TEAM_MAX_RANKS - 1);
	return (int)root;
}

static void option_arg(struct perf_options *opt, long long *threads, long long *gpus, int id)
{
	switch (id) {
	case OPT_MIN:
		opt->min_bytes = cli_size(&cli, 1, MAX_BYTES);
		break;
	case OPT_MAX:
		opt->max_bytes = cli_size(&cli, 1, MAX_BYTES);
		break;
	case OPT_STEP:
		opt->step = cli_size(&cli, 1, MAX_BYTES);
		break;
	case OPT_FACTOR:
		opt->factor = cli_real(&cli, 1.001, 1e6);
		break;
	case OPT_ITERS:
		opt->rule.iters = (unsigned int)cli_number(&cli, 1, 100000000);
		break;
	case OPT_WARMUP:
		opt->rule.warmup = (unsigned int)cli_number(&cli, 0, 1000000);
		break;
	case OPT_REDOP:
		opt->op = redop_arg();
		break;
	case OPT_DTYPE:
		opt->dtype = dtype_arg();
		break;
	case OPT_ROOT:
		opt->root = root_arg();
		break;
	case OPT_CHECK:
		opt->check = cli_number(&cli, 0, INT_MAX) > 0;
		break;
	case OPT_THREADS:
		*threads = cli_number(&cli, 1, TEAM_MAX_RANKS);
		break;
	case OPT_GPUS:
		*gpus = cli_number(&cli, 1, TEAM_MAX_RANKS);
		break;
	case OPT_TIMEOUT:
		opt->timeout_ms = (unsigned int)cli_number(&cli, 1, 1000000) * 1000;
		break;
	case OPT_ALGO:
		opt->algo = cli.value;
		break;
	case OPT_TOPO:
		opt->topo = cli.value;
		break;
	case OPT_JSON:
		opt->format = PERF_JSON;
		break;
	case OPT_CSV:
		opt->format = PERF_CSV;
		break;
	}
}

/*
 * Ranks of each process. The processes of a launcher are ranks, and -g 1, which most command lines have, says
 * so, too. With nodes instead of ranks (SWINGCOLL_NODE), and in a batch script, the product is forked.
 */
static void choose_ranks(struct team *team, long long threads, long long gpus)
{
	bool given = cli.given & (1ull << OPT_THREADS | 1ull << OPT_GPUS), ranks;
	const char *from;
	int rank, nranks;

	if (!given)
		return;
	if (threads * gpus > TEAM_MAX_RANKS)
		cli_fail(&cli, "-t %lld -g %lld: at most %d ranks", threads, gpus, TEAM_MAX_RANKS);
	ranks = swingcoll_bootstrap_launcher(&from, &rank, &nranks) == 1 && nranks != 1 &&
		strcmp(from, "SWINGCOLL_NODE");
	if (ranks && threads * gpus > 1)
		cli_fail(
			&cli,
			"-t %lld -g %lld: the processes of the launcher are the ranks (%s is set): take -t 1 "
			"-g 1 and start %lld times as many",
			threads, gpus, from, threads * gpus);
	team->nranks = ranks ? 0 : (int)(threads * gpus);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool perf_nccl_parse(struct perf_options *opt, struct team *team, int argc, char **argv)
{
	static char usage[128];
	long long threads = 1, gpus = 1;
	size_t i, n = sizeof(programs) / sizeof(programs[0]);
	int id;

	for (i = 0; i < n && strcmp(base_name(argc ? argv[0] : ""), programs[i].name); i++)
		;
	if (i == n)
		return false;
	snprintf(usage, sizeof(usage),
		 "%s [options]\n\nTimes %s and checks every element of the result.\n",
		 programs[i].name, swingcoll_coll_name(programs[i].coll));
	cli.prog = programs[i].name;
	cli.usage = usage;
	cli.version = swingcoll_version();
	cli.argc = argc;
	cli.argv = argv;
	team->prog = programs[i].name;
	opt->cli = &cli;
	opt->nccl = true;
	opt->coll = programs[i].coll;
	opt->min_bytes = opt->max_bytes = 32 << 20;
	opt->step = 1 << 20;
	opt->rule.iters = 20;
	opt->rule.warmup = 5;
	opt->rule.repeats = 1;
	while ((id = cli_next(&cli)) != CLI_END)
		option_arg(opt, &threads, &gpus, id);
	cli_end(&cli);
	if (cli.given & 1ull << OPT_FACTOR)
		opt->step = 0;
	choose_ranks(team, threads, gpus);
	return true;
}
