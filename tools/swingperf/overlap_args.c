// SPDX-License-Identifier: GPL-2.0-only
/* The command line of swingperf overlap, and the shapes that it measures. */
#include "overlap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"

#define DEFAULT_SHAPES "square=512x512x512,deep=256x256x2048,wide=256x2048x256,tall=2048x256x256"
#define DEFAULT_MS 10
#define MAX_SIDE 1e7

static const char usage_text[] =
	"swingperf overlap [options]\n"
	"\n"
	"Times an allgather overlapped with the matrix product that consumes it, by every schedule of\n"
	"swingcoll_overlap(3) and by the library's choice. Ranks are forked here.\n";

static const char notes_text[] =
	"Exit status: 0; 1 if an element was wrong; 2 if anything else failed.";

enum {
	OPT_RANKS,
	OPT_SHAPES,
	OPT_PRODUCT_MS,
	OPT_REPEATS,
	OPT_PIECES,
	OPT_TRIALS,
	OPT_DMA,
	OPT_RATE,
	OPT_TABLE,
	OPT_BLAS,
	OPT_BIND,
	OPT_URGENT,
	OPT_JSON,
	OPT_JSON_FILE,
};

static const struct cli_option options[] = {
	{ OPT_RANKS, 'n', "ranks", "N", "fork N ranks (default 2)" },
	{ OPT_SHAPES, 0, "shapes", "LIST",
	  "shapes M x N x K with commas between them, such as 512x256x1024 or with a name as in "
	  "a=512x256x1024 (default " DEFAULT_SHAPES ")" },
	{ OPT_PRODUCT_MS, 0, "product-ms", "T",
	  "multiply the sides of each shape by one factor, so that a product takes about T ms "
	  "(default 10 for the default shapes, otherwise no scaling)" },
	{ OPT_REPEATS, 0, "repeats", "N", "measurements of each schedule (default 20)" },
	{ OPT_PIECES, 0, "pieces", "N", "pieces of a shard (default 8)" },
	{ OPT_TRIALS, 0, "trials", "N",
	  "times that the library tries each schedule at least (default 3)" },
	{ OPT_DMA, 0, "dma", "MODE",
	  "move data by CPUs (never), by DMA engines (always), by both in turn, or as-is; all but "
	  "as-is set a parameter of the module until the end (default both if that can be set)" },
	{ OPT_RATE, 0, "rate", "MBPS", "speed of the test engine, if that is the engine" },
	{ OPT_TABLE, 0, "table", "FILE",
	  "times of products on this machine, measured if FILE does not have them; none: measured "
	  "always (default swingcoll/overlap-HOST-BLAS in $XDG_CACHE_HOME or ~/.cache)" },
	{ OPT_BLAS, 0, "blas", "FILE",
	  "shared library with cblas_sgemm (default libopenblas.so.0)" },
	{ OPT_BIND, 0, "bind", NULL, "bind ranks to CPUs in turn" },
	{ OPT_URGENT, 0, "urgent", NULL,
	  "run transfers before the ranks' own work (SWINGCOLL_URGENT)" },
	{ OPT_JSON, 'j', "json", NULL, "print one JSON object per shape instead of the table" },
	{ OPT_JSON_FILE, 0, "json-file", "FILE",
	  "append these objects to FILE, besides the table" },
	{ 0 },
};

static struct cli cli = {
	.prog = "swingperf overlap",
	.usage = usage_text,
	.notes = notes_text,
	.options = options,
};

static void open_json(struct ov_options *opt)
{
	opt->json = fopen(cli.value, "ae");
	if (!opt->json)
		cli_fail(&cli, "--json-file %s: %s", cli.value, strerror(errno));
}

/* [NAME=]MxNxK */
static void shape_arg(struct ov_options *opt, const char *text)
{
	struct ov_shape *s = &opt->shape[opt->nshapes];
	const char *equals = strchr(text, '='), *sides = equals ? equals + 1 : text;
	size_t name = equals ? (size_t)(equals - text) : 0;
	char tail;

	if (opt->nshapes == OV_MAX_SHAPES)
		cli_fail(&cli, "--shapes: more than %d shapes", OV_MAX_SHAPES);
	if (name >= sizeof(s->name) ||
	    sscanf(sides, "%lfx%lfx%lf%c", &s->m, &s->n, &s->k, &tail) != 3 ||
	    !(s->m >= 1 && s->n >= 1 && s->k >= 1) ||
	    !(s->m <= MAX_SIDE && s->n <= MAX_SIDE && s->k <= MAX_SIDE)) {
		cli.what = "--shapes";
		cli.value = (char *)text;
		cli_expected(&cli, "M x N x K, each from 1 to %.0f, such as 512x256x1024",
			     MAX_SIDE);
	}
	opt->nshapes++;
	if (equals)
		snprintf(s->name, sizeof(s->name), "%.*s", (int)name, text);
	else
		snprintf(s->name, sizeof(s->name), "s%u", opt->nshapes);
}

static void shapes_arg(struct ov_options *opt, const char *value)
{
	char *list = strdup(value), *save = NULL;

	if (!list)
		cli_fail(&cli, "out of memory");
	for (char *s = strtok_r(list, ",", &save); s; s = strtok_r(NULL, ",", &save))
		shape_arg(opt, s);
	free(list);
	if (!opt->nshapes)
		cli_fail(&cli, "--shapes '%s' names no shape", value);
}

enum {
	DMA_NEVER,
	DMA_ALWAYS,
	DMA_BOTH,
	DMA_AS_IS,
};

static void use_dma(struct ov_options *opt, int mode)
{
	opt->use[OV_DMA_NEVER] = mode == DMA_NEVER || mode == DMA_BOTH;
	opt->use[OV_DMA_ALWAYS] = mode == DMA_ALWAYS || mode == DMA_BOTH;
	opt->use[OV_DMA_AS_IS] = mode == DMA_AS_IS;
}

static void dma_arg(struct ov_options *opt)
{
	static const char *const modes[] = { "never", "always", "both", "as-is", NULL };
	int mode = cli_choice(&cli, modes);

	use_dma(opt, mode);
	opt->must = mode != DMA_BOTH;
	if (mode != DMA_AS_IS && !ov_dma_can_set())
		cli_fail(&cli,
			 "--dma %s: /sys/module/swingcoll/parameters/dma is not writable: run as "
			 "root with the module loaded, or take --dma as-is",
			 cli.value);
}

static void option_arg(struct ov_options *opt, struct team *team, int id)
{
	switch (id) {
	case OPT_RANKS:
		team->nranks = (int)cli_number(&cli, 1, TEAM_MAX_RANKS);
		break;
	case OPT_SHAPES:
		opt->nshapes = 0;
		shapes_arg(opt, cli.value);
		break;
	case OPT_PRODUCT_MS:
		opt->target_ms = cli_real(&cli, 0.01, 1e5);
		break;
	case OPT_REPEATS:
		opt->repeats = (unsigned int)cli_number(&cli, 1, 1000);
		break;
	case OPT_PIECES:
		opt->pieces = (unsigned int)cli_number(&cli, 1, 64);
		break;
	case OPT_TRIALS:
		opt->trials = (unsigned int)cli_number(&cli, 1, 15);
		break;
	case OPT_DMA:
		dma_arg(opt);
		break;
	case OPT_RATE:
		opt->rate_mbps = (int)cli_number(&cli, 0, 1000000);
		break;
	case OPT_TABLE:
		opt->table = cli.value;
		break;
	case OPT_BLAS:
		opt->blas = cli.value;
		break;
	case OPT_BIND:
		opt->bind = true;
		break;
	case OPT_URGENT:
		opt->urgent = true;
		break;
	case OPT_JSON:
		opt->json = stdout;
		break;
	case OPT_JSON_FILE:
		open_json(opt);
		break;
	}
}

void ov_parse(struct ov_options *opt, struct team *team, int argc, char **argv)
{
	int id;

	cli.argc = argc;
	cli.argv = argv;
	use_dma(opt, ov_dma_can_set() ? DMA_BOTH : DMA_AS_IS);
	while ((id = cli_next(&cli)) != CLI_END)
		option_arg(opt, team, id);
	cli_end(&cli);
	if (opt->nshapes)
		return;
	shapes_arg(opt, DEFAULT_SHAPES);
	if (!(opt->target_ms > 0))
		opt->target_ms = DEFAULT_MS;
}
