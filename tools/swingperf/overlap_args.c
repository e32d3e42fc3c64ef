// SPDX-License-Identifier: GPL-2.0-only
/* The command line of swingperf overlap, and the shapes it measures. */
#include "overlap.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
	"Usage: swingperf overlap [options]\n"
	"\n"
	"Times an allgather overlapped with the matrix product that consumes it, by every schedule of\n"
	"swingcoll_overlap(3), and tells how well the library chooses among them. Ranks are forked here.\n"
	"\n"
	"  -n, --ranks N        ranks (default 2)\n"
	"      --shapes LIST    paper (16 shapes), random (16 more), all (both, default), or shapes as\n"
	"                       512x256x1024, which are M x N x K and taken as they are\n"
	"      --seed N         of the random shapes (default 1)\n"
	"      --product-ms T   scale shapes so that one product takes about so long (default 10)\n"
	"      --repeats N      measurements of each schedule (default 20)\n"
	"      --pieces N       that a shard is cut into (default 8)\n"
	"      --trials N       times that the library tries each schedule at least (default 3)\n"
	"      --dma MODE       never, always, both, or as-is: how data is moved; all but as-is set a\n"
	"                       parameter of the module for a while (default both, if that can be set)\n"
	"      --rate MBPS      pace of the engine for tests, if that is the engine\n"
	"      --table FILE     the times of products on this machine, measured only if they are not in\n"
	"                       there; none: always (default swingcoll/overlap-HOST-BLAS in the folder\n"
	"                       for caches, $XDG_CACHE_HOME or ~/.cache)\n"
	"      --blas FILE      shared library with cblas_sgemm (default libopenblas.so.0)\n"
	"      --bind           ranks to CPUs in turn\n"
	"      --urgent         transfers before the ranks' own work (SWINGCOLL_URGENT)\n"
	"  -j, --json           one JSON object per shape\n"
	"      --json-file FILE the same into a file, beside the table\n"
	"  -h, --help           this text\n"
	"\n"
	"Exit status: 0, 1 if an element was wrong, 2 if anything else failed.\n";

/* Scenarios of FiCCO (arXiv 2512.10236), as ROCm/iris lists them. */
static const struct ov_shape paper[] = {
	{ "g1", 16384, 16384, 131072, false },	{ "g2", 131072, 16384, 16384, false },
	{ "g3", 53248, 16384, 131072, false },	{ "g4", 16384, 53248, 16384, false },
	{ "g5", 8192, 8192, 262144, false },	{ "g6", 262144, 8192, 8192, false },
	{ "g7", 28672, 8192, 262144, false },	{ "g8", 262144, 28672, 8192, false },
	{ "g9", 196608, 18432, 16384, false },	{ "g10", 196608, 106496, 16384, false },
	{ "g11", 1048576, 10240, 8192, false }, { "g12", 1048576, 57344, 8192, false },
	{ "g13", 1607680, 57344, 8192, false }, { "g14", 147456, 28672, 4096, false },
	{ "g15", 327680, 28672, 4096, false },	{ "g16", 229376, 28672, 4096, false },
};

enum {
	OPT_SHAPES = 256,
	OPT_SEED,
	OPT_MS,
	OPT_REPEATS,
	OPT_PIECES,
	OPT_TRIALS,
	OPT_DMA,
	OPT_RATE,
	OPT_TABLE,
	OPT_BLAS,
	OPT_BIND,
	OPT_URGENT,
	OPT_JSON_FILE,
};

static const struct option long_options[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "shapes", required_argument, NULL, OPT_SHAPES },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "product-ms", required_argument, NULL, OPT_MS },
	{ "repeats", required_argument, NULL, OPT_REPEATS },
	{ "pieces", required_argument, NULL, OPT_PIECES },
	{ "trials", required_argument, NULL, OPT_TRIALS },
	{ "dma", required_argument, NULL, OPT_DMA },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "table", required_argument, NULL, OPT_TABLE },
	{ "blas", required_argument, NULL, OPT_BLAS },
	{ "bind", no_argument, NULL, OPT_BIND },
	{ "urgent", no_argument, NULL, OPT_URGENT },
	{ "json", no_argument, NULL, 'j' },
	{ "json-file", required_argument, NULL, OPT_JSON_FILE },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void bad(const char *option, const char *value, const char *expected)
{
	fprintf(stderr, "swingperf overlap: --%s %s: expected %s (see --help)\n", option, value,
		expected);
	exit(2);
}

static double number(const char *option, const char *value, double min, double max)
{
	char *end, expected[64];
	double v = strtod(value, &end);

	if (end != value && !*end && v >= min && v <= max)
		return v;
	snprintf(expected, sizeof(expected), "a number from %g to %g", min, max);
	bad(option, value, expected);
	return 0;
}

static FILE *open_json(const char *path)
{
	FILE *f = fopen(path, "ae");

	if (f)
		return f;
	fprintf(stderr, "swingperf overlap: --json-file %s: %s\n", path, strerror(errno));
	exit(2);
}

static void add(struct ov_options *opt, const struct ov_shape *shape)
{
	if (opt->nshapes == OV_MAX_SHAPES) {
		fprintf(stderr, "swingperf overlap: more than %d shapes\n", OV_MAX_SHAPES);
		exit(2);
	}
	opt->shape[opt->nshapes++] = *shape;
}

/* The same on every machine, unlike rand(): a step of xorshift. */
static double uniform(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (double)(*state >> 11) / (double)(1ull << 53);
}

/* Sides within a factor of 256 of each other, evenly in their logarithms. */
static void add_random(struct ov_options *opt)
{
	uint64_t state = 0x9e3779b97f4a7c15u * (opt->seed + 1ull);

	for (int i = 0; i < 16; i++) {
		struct ov_shape s = { .m = exp2(8 * uniform(&state)),
				      .n = exp2(8 * uniform(&state)),
				      .k = exp2(8 * uniform(&state)) };

		snprintf(s.name, sizeof(s.name), "r%d", i + 1);
		add(opt, &s);
	}
}

static void shapes_arg(struct ov_options *opt, const char *value)
{
	char *copy = strdup(value), *save = NULL, tail;
	bool all = !strcmp(value, "all");

	if (all || !strcmp(value, "paper"))
		for (size_t i = 0; i < sizeof(paper) / sizeof(paper[0]); i++)
			add(opt, &paper[i]);
	if (all || !strcmp(value, "random"))
		add_random(opt);
	if (opt->nshapes) {
		free(copy);
		return;
	}
	for (char *s = strtok_r(copy, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
		struct ov_shape shape = { .fixed = true };

		if (sscanf(s, "%lfx%lfx%lf%c", &shape.m, &shape.n, &shape.k, &tail) != 3 ||
		    !(shape.m >= 1 && shape.n >= 1 && shape.k >= 1 && shape.m <= 1e7 &&
		      shape.n <= 1e7 && shape.k <= 1e7))
			bad("shapes", value, "paper, random, all, or shapes such as 512x256x1024");
		snprintf(shape.name, sizeof(shape.name), "s%u", opt->nshapes + 1);
		add(opt, &shape);
	}
	free(copy);
}

static void dma_arg(struct ov_options *opt, const char *value)
{
	bool both = !strcmp(value, "both");

	opt->use[OV_DMA_NEVER] = both || !strcmp(value, "never");
	opt->use[OV_DMA_ALWAYS] = both || !strcmp(value, "always");
	opt->use[OV_DMA_AS_IS] = !strcmp(value, "as-is");
	if (!opt->use[0] && !opt->use[1] && !opt->use[2])
		bad("dma", value, "never, always, both or as-is");
	if (opt->use[OV_DMA_AS_IS] || ov_dma_can_set())
		return;
	fprintf(stderr,
		"swingperf overlap: --dma %s: /sys/module/swingcoll/parameters/dma cannot "
		"be written: as root?\n",
		value);
	exit(2);
}

void ov_parse(struct ov_options *opt, struct team *team, int argc, char **argv)
{
	const char *shapes = "all", *dma = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "n:jh", long_options, NULL)) != -1) {
		switch (c) {
		case 'n':
			team->nranks = (int)number("ranks", optarg, 1, TEAM_MAX_RANKS);
			break;
		case OPT_SHAPES:
			shapes = optarg;
			break;
		case OPT_SEED:
			opt->seed = (unsigned int)number("seed", optarg, 0, 1e9);
			break;
		case OPT_MS:
			opt->target_ms = number("product-ms", optarg, 0.01, 1e5);
			break;
		case OPT_REPEATS:
			opt->repeats = (unsigned int)number("repeats", optarg, 1, 1000);
			break;
		case OPT_PIECES:
			opt->pieces = (unsigned int)number("pieces", optarg, 1, 64);
			break;
		case OPT_TRIALS:
			opt->trials = (unsigned int)number("trials", optarg, 1, 15);
			break;
		case OPT_DMA:
			dma = optarg;
			break;
		case OPT_RATE:
			opt->rate_mbps = (int)number("rate", optarg, 0, 1e6);
			break;
		case OPT_TABLE:
			opt->table = optarg;
			break;
		case OPT_BLAS:
			opt->blas = optarg;
			break;
		case OPT_BIND:
			opt->bind = true;
			break;
		case OPT_URGENT:
			opt->urgent = true;
			break;
		case 'j':
			opt->json = stdout;
			break;
		case OPT_JSON_FILE:
			opt->json = open_json(optarg);
			break;
		case 'h':
			fputs(usage_text, stdout);
			exit(0);
		default:
			fputs("swingperf overlap: see --help\n", stderr);
			exit(2);
		}
	}
	if (optind < argc)
		bad(argv[optind], "", "no further arguments");
	shapes_arg(opt, shapes);
	opt->must = dma && strcmp(dma, "both");
	dma_arg(opt, dma ? dma : ov_dma_can_set() ? "both" : "as-is");
}
