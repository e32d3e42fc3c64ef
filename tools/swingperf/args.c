// SPDX-License-Identifier: GPL-2.0-only
/* swingperf's command line: from the words to checked options and a list of sizes. */
#include "swingperf.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
	"Usage: swingperf [options]\n"
	"       swingperf overlap [options]    an allgather and the product that consumes it (--help)\n"
	"\n"
	"Times a collective over a range of sizes and checks every element of the result.\n"
	"Ranks are forked here (-n), or are those of mpirun, srun or torchrun, or of a loop that sets\n"
	"SWINGCOLL_ROOT=HOST:PORT, SWINGCOLL_RANK and SWINGCOLL_NRANKS. With SWINGCOLL_NODE and\n"
	"SWINGCOLL_NNODES in place of the last two, -n ranks are forked on each node.\n"
	"\n"
	"  -n, --ranks N        fork N ranks here (default 2, without a launcher)\n"
	"  -o, --op NAME        allreduce, reduce_scatter, allgather, broadcast, reduce, barrier,\n"
	"                       alltoall (default allreduce)\n"
	"  -d, --dtype NAME     i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64 (default f32)\n"
	"  -r, --redop NAME     sum prod min max avg band bor bxor (default sum)\n"
	"  -R, --root R         root rank of broadcast and reduce (default 0)\n"
	"  -b, --min BYTES      first size, suffixes K M G (default 8)\n"
	"  -e, --max BYTES      last size (default 64M)\n"
	"  -f, --factor F       from one size to the next (default 2)\n"
	"      --sizes LIST     these sizes instead, with commas between them\n"
	"  -i, --iters N        operations per repeat; 0: as many as fit into --time-ms (default)\n"
	"  -w, --warmup N       operations before the clock runs (default 3)\n"
	"      --repeats N      measurements per size, of which the median counts (default 5)\n"
	"      --time-ms N      time to spend on one measurement (default 200)\n"
	"      --buffers K      use K pairs of buffers in rotation (default 1)\n"
	"  -a, --algo NAME      algorithm, with a number as in swing-h:2 if it takes one; file:PATH for\n"
	"                       a plan file; \"list\" prints the names (default auto)\n"
	"  -t, --topo TOPO      shape of the network, such as ring:8, torus:4x4 or torus:2x2*4\n"
	"                       (default: all ranks on one node)\n"
	"      --reorder        allow algorithms that may give ranks float results which differ in\n"
	"                       their last bits\n"
	"      --urgent         measure a communicator that comes before others\n"
	"      --tuning FILE    correct the automatic choice by the times in this file\n"
	"      --tune FILE      measure every algorithm there is and write the times to this file\n"
	"      --inplace        measure in place only (default: both)\n"
	"      --outofplace     measure out of place only\n"
	"      --nonblocking    start and wait, up to --buffers operations in flight\n"
	"      --io-uring MODE  auto, must or never (default auto)\n"
	"      --slot-max BYTES largest size that uses the shared slots, -1: none (default: the\n"
	"                       library's)\n"
	"      --timeout-ms N   deadline of each operation (default 30000)\n"
	"      --cpus MODE      none, rr (ranks to CPUs in turn) or a list as 0,2,4 (default none)\n"
	"  -c, --check 0|1      check every element (default 1)\n"
	"  -j, --json           one JSON object per measurement\n"
	"  -V, --version        print the version\n"
	"  -h, --help           this text\n"
	"\n"
	"Exit status: 0, 1 if an element was wrong, 2 if anything else failed.\n";

enum {
	OPT_INPLACE = 256,
	OPT_OUTOFPLACE,
	OPT_SIZES,
	OPT_NONBLOCKING,
	OPT_IO_URING,
	OPT_SLOT_MAX,
	OPT_TIMEOUT,
	OPT_CPUS,
	OPT_BUFFERS,
	OPT_REPEATS,
	OPT_TIME_MS,
	OPT_REORDER,
	OPT_URGENT,
	OPT_TUNING,
	OPT_TUNE,
};

static const struct option long_options[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "op", required_argument, NULL, 'o' },
	{ "dtype", required_argument, NULL, 'd' },
	{ "redop", required_argument, NULL, 'r' },
	{ "root", required_argument, NULL, 'R' },
	{ "min", required_argument, NULL, 'b' },
	{ "max", required_argument, NULL, 'e' },
	{ "factor", required_argument, NULL, 'f' },
	{ "iters", required_argument, NULL, 'i' },
	{ "warmup", required_argument, NULL, 'w' },
	{ "repeats", required_argument, NULL, OPT_REPEATS },
	{ "time-ms", required_argument, NULL, OPT_TIME_MS },
	{ "buffers", required_argument, NULL, OPT_BUFFERS },
	{ "algo", required_argument, NULL, 'a' },
	{ "topo", required_argument, NULL, 't' },
	{ "reorder", no_argument, NULL, OPT_REORDER },
	{ "urgent", no_argument, NULL, OPT_URGENT },
	{ "tuning", required_argument, NULL, OPT_TUNING },
	{ "tune", required_argument, NULL, OPT_TUNE },
	{ "inplace", no_argument, NULL, OPT_INPLACE },
	{ "outofplace", no_argument, NULL, OPT_OUTOFPLACE },
	{ "sizes", required_argument, NULL, OPT_SIZES },
	{ "nonblocking", no_argument, NULL, OPT_NONBLOCKING },
	{ "io-uring", required_argument, NULL, OPT_IO_URING },
	{ "slot-max", required_argument, NULL, OPT_SLOT_MAX },
	{ "timeout-ms", required_argument, NULL, OPT_TIMEOUT },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "check", required_argument, NULL, 'c' },
	{ "json", no_argument, NULL, 'j' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

#define MAX_SIZES 4096

static int cpu_list[CPU_SETSIZE];
static size_t size_list[MAX_SIZES];

static void bad(const char *option, const char *value, const char *expected)
{
	fprintf(stderr, "swingperf: --%s %s: expected %s (see --help)\n", option, value, expected);
	exit(2);
}

static long long number(const char *option, const char *value, long long min, long long max)
{
	char *end, expected[96];
	long long v;

	errno = 0;
	v = strtoll(value, &end, 10);
	if (errno || end == value || *end || v < min || v > max) {
		snprintf(expected, sizeof(expected), "a number from %lld to %lld", min, max);
		bad(option, value, expected);
	}
	return v;
}

static size_t size_arg(const char *option, const char *value)
{
	unsigned int shift = 0;
	char *end;
	double v;

	errno = 0;
	v = strtod(value, &end);
	if (end != value && *end) {
		switch (*end) {
		case 'k':
		case 'K':
			shift = 10;
			break;
		case 'm':
		case 'M':
			shift = 20;
			break;
		case 'g':
		case 'G':
			shift = 30;
			break;
		}
		if (shift)
			end++;
		if (shift && (!strcmp(end, "iB") || !strcmp(end, "B")))
			end += strlen(end);
	}
	v *= (double)(1ull << shift);
	if (errno || end == value || *end || !(v >= 1) || v > (double)(1ull << 40))
		bad(option, value, "a size in bytes such as 8, 64K or 16M");
	return (size_t)v;
}

static void add_size(struct perf_options *opt, size_t bytes)
{
	if (opt->nsizes == MAX_SIZES) {
		fprintf(stderr, "swingperf: more than %d sizes: take a larger --factor\n",
			MAX_SIZES);
		exit(2);
	}
	size_list[opt->nsizes++] = bytes;
	opt->sizes = size_list;
}

static void sizes_arg(struct perf_options *opt, char *value)
{
	char *s, *save = NULL;

	opt->nsizes = 0;
	for (s = strtok_r(value, ",", &save); s; s = strtok_r(NULL, ",", &save))
		add_size(opt, size_arg("sizes", s));
	if (!opt->nsizes)
		bad("sizes", value, "sizes in bytes with commas between them");
}

static int name_arg(const char *option, const char *value, int (*parse)(const char *))
{
	int v = parse(value);

	if (v < 0)
		bad(option, value, "one of the names that --help lists");
	return v;
}

static void cpus_arg(struct perf_options *opt, const char *value)
{
	const char *s = value;
	cpu_set_t allowed;
	char *end;
	int cpu;

	opt->bind = strcmp(value, "none");
	opt->cpus = cpu_list;
	opt->ncpus = 0;
	if (!opt->bind)
		return;
	if (!strcmp(value, "rr")) {
		if (sched_getaffinity(0, sizeof(allowed), &allowed)) {
			opt->bind = false;
			return;
		}
		for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &allowed))
				cpu_list[opt->ncpus++] = cpu;
		return;
	}
	do {
		long v = strtol(s, &end, 10);

		if (end == s || v < 0 || v >= CPU_SETSIZE || (*end && *end != ',') ||
		    opt->ncpus == CPU_SETSIZE)
			bad("cpus", value, "none, rr, or CPU numbers with commas between them");
		cpu_list[opt->ncpus++] = (int)v;
		s = end + 1;
	} while (*end);
}

static int io_uring_arg(const char *value)
{
	if (!strcmp(value, "auto"))
		return 0;
	if (!strcmp(value, "must"))
		return 1;
	if (strcmp(value, "never"))
		bad("io-uring", value, "auto, must or never");
	return -1;
}

static void list_algos(void)
{
	const char *name;
	int i;

	for (i = 0; (name = swingcoll_algo_name(i)); i++)
		puts(name);
	exit(0);
}

void perf_parse(struct perf_options *opt, struct team *team, int argc, char **argv)
{
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "n:o:d:r:R:b:e:f:i:w:a:t:c:jVh", long_options, NULL)) !=
	       -1) {
		switch (c) {
		case 'n':
			team->nranks = (int)number("ranks", optarg, 1, TEAM_MAX_RANKS);
			break;
		case 'o':
			opt->coll = (enum swingcoll_coll)name_arg("op", optarg,
								  swingcoll_coll_parse);
			break;
		case 'd':
			opt->dtype = (enum swingcoll_dtype)name_arg("dtype", optarg,
								    swingcoll_dtype_parse);
			break;
		case 'r':
			opt->op = (enum swingcoll_redop)name_arg("redop", optarg,
								 swingcoll_redop_parse);
			break;
		case 'R':
			opt->root = (int)number("root", optarg, 0, TEAM_MAX_RANKS - 1);
			break;
		case 'b':
			opt->min_bytes = size_arg("min", optarg);
			break;
		case 'e':
			opt->max_bytes = size_arg("max", optarg);
			break;
		case 'f':
			opt->factor = strtod(optarg, &end);
			if (end == optarg || *end || !(opt->factor > 1) || opt->factor > 1e6)
				bad("factor", optarg, "a number greater than 1");
			break;
		case 'i':
			opt->rule.iters = (unsigned int)number("iters", optarg, 0, 100000000);
			break;
		case 'w':
			opt->rule.warmup = (unsigned int)number("warmup", optarg, 0, 1000000);
			break;
		case OPT_REPEATS:
			opt->rule.repeats = (unsigned int)number("repeats", optarg, 1, 64);
			break;
		case OPT_TIME_MS:
			opt->rule.budget_s = (double)number("time-ms", optarg, 1, 3600000) * 1e-3;
			break;
		case OPT_BUFFERS:
			opt->rule.buffers = (unsigned int)number("buffers", optarg, 1,
								 PERF_MAX_BUFFERS);
			break;
		case 'a':
			if (!strcmp(optarg, "list"))
				list_algos();
			opt->algo = optarg;
			break;
		case 't':
			opt->topo = optarg;
			break;
		case OPT_REORDER:
			opt->reorder = true;
			break;
		case OPT_URGENT:
			opt->urgent = true;
			break;
		case OPT_TUNING:
			opt->tuning = optarg;
			break;
		case OPT_TUNE:
			opt->tune = optarg;
			break;
		case OPT_INPLACE:
			opt->in_place_only = true;
			opt->out_of_place_only = false;
			break;
		case OPT_OUTOFPLACE:
			opt->out_of_place_only = true;
			opt->in_place_only = false;
			break;
		case OPT_SIZES:
			sizes_arg(opt, optarg);
			break;
		case OPT_NONBLOCKING:
			opt->nonblocking = true;
			break;
		case OPT_IO_URING:
			opt->use_io_uring = io_uring_arg(optarg);
			break;
		case OPT_SLOT_MAX:
			opt->slot_max = !strcmp(optarg, "-1")
						? -1
						: (long long)size_arg("slot-max", optarg);
			break;
		case OPT_TIMEOUT:
			opt->timeout_ms = (unsigned int)number("timeout-ms", optarg, 1, INT_MAX);
			break;
		case OPT_CPUS:
			cpus_arg(opt, optarg);
			break;
		case 'c':
			opt->check = number("check", optarg, 0, 1);
			break;
		case 'j':
			opt->json = true;
			break;
		case 'V':
			printf("swingperf %s\n", swingcoll_version());
			exit(0);
		case 'h':
			fputs(usage_text, stdout);
			exit(0);
		default:
			fputs("swingperf: see --help\n", stderr);
			exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "swingperf: unexpected argument \"%s\" (see --help)\n",
			argv[optind]);
		exit(2);
	}
}

/* The smallest vector there can be: one element, or one per rank. */
static size_t unit_bytes(const struct perf_options *opt, int nranks)
{
	return swingcoll_dtype_size(opt->dtype) * (perf_has_parts(opt) ? (size_t)nranks : 1);
}

/* The sizes to measure: whole elements, at least one, none twice in a row. */
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
		     size *= opt->factor)
			add_size(opt, (size_t)size);
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

/* What the library says to the options, before any rank is started. */
static void check_with_library(const struct perf_options *opt, int nranks)
{
	/* What the topology must fit is found out later. */
	const struct swingcoll_comm_opts o = {
		.algo = opt->algo,
		.topo = opt->anywhere ? NULL : opt->topo,
		.tuning = opt->tuning,
	};
	char why[256] = "";

	if (opt->tune && opt->topo && *opt->topo == '@') {
		fprintf(stderr, "swingperf: --tune needs --topo as text, not as a file\n");
		exit(2);
	}
	if (!swingcoll_opts_check(&o, nranks, why, sizeof(why)))
		return;
	fprintf(stderr, "swingperf: %s\n", why);
	exit(2);
}

void perf_check_options(struct perf_options *opt, int nranks)
{
	check_with_library(opt, nranks);
	if (opt->root >= nranks) {
		fprintf(stderr, "swingperf: --root %d: there are ranks 0 to %d\n", opt->root,
			nranks - 1);
		exit(2);
	}
	if (!swingcoll_supported(opt->dtype, opt->op)) {
		fprintf(stderr,
			"swingperf: %s is not defined for %s: take an integer type or another "
			"--redop\n",
			swingcoll_redop_name(opt->op), swingcoll_dtype_name(opt->dtype));
		exit(2);
	}
	if (opt->max_bytes < opt->min_bytes) {
		fprintf(stderr, "swingperf: --max %zu is less than --min %zu\n", opt->max_bytes,
			opt->min_bytes);
		exit(2);
	}
	choose_sizes(opt, nranks);
}
