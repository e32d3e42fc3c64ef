// SPDX-License-Identifier: GPL-2.0-only
/* swingplan's command line: one table of options, of which each verb takes some. */
#include "swingplan.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "swingcoll.h"

#define MAX_SIZES 4096
#define MAX_BYTES ((double)(1ull << 40))
/* Sizes if none are given. */
#define FIRST_SIZE 32.0
#define LAST_SIZE (512.0 * (1 << 20))
#define SIZE_FACTOR 4

static const struct {
	const char *name;
	const char *arg;
	const char *text;
} options[OPTION_NR] = {
	[OPTION_ALGO] = { "algo", "A[,A]...",
			  "algorithm, with a number as in swing-h:2 if it takes "
			  "one; all: every one that is possible" },
	[OPTION_TOPO] = { "topo", "T",
			  "network, such as torus:4x4, ring:8@100Gbps,1us, "
			  "torus:4x4*8; @FILE reads it from a file" },
	[OPTION_OP] = { "op", "OP",
			"allreduce (default), reduce_scatter, allgather, broadcast, "
			"reduce, barrier, alltoall; verify: also all" },
	[OPTION_ROOT] = { "root", "R", "root rank of broadcast and reduce (default 0)" },
	[OPTION_RANK] = { "rank", "R", "print this rank's steps" },
	[OPTION_RANKS] = { "ranks", "N",
			   "all, or check the plans of so many ranks only, each by "
			   "itself (default all)" },
	[OPTION_PORTS] = { "ports", "N",
			   "links of a node to use at once (default all that the "
			   "algorithm can use)" },
	[OPTION_SIZE] = { "size", "S[,S]...",
			  "bytes of the vector, suffixes K M G (default 32 B to "
			  "512 MiB by factors of 4)" },
	[OPTION_LINK_GBPS] = { "link-gbps", "G",
			       "rate of a link in each direction, Gbit/s "
			       "(default the topology's, or 400)" },
	[OPTION_HOP_NS] = { "hop-ns", "NS", "delay of a hop (default the topology's, or 400)" },
	[OPTION_STEP_NS] = { "step-ns", "NS", "fixed cost of a step (default 600)" },
	[OPTION_ACK_BYTES] = { "ack-bytes", "N",
			       "transfers of so many bytes and more must be acknowledged before the end, which takes "
			       "the way back; the kernel's from 4033 on (default: none)" },
	[OPTION_MODEL] = { "model", "M", "step: all ranks step together (default), or flow" },
	[OPTION_PLOT] = { "plot", "FILE", "draw time over size to this SVG file" },
	[OPTION_PLOT_GAIN] = { "plot-gain", NULL, "draw the gain over the best classic instead" },
	[OPTION_DTYPE] = { "dtype", "TYPE", "element type (default f32)" },
	[OPTION_REDOP] = { "redop", "OP", "reduction (default sum)" },
	[OPTION_REORDER] = { "reorder", NULL,
			     "allow algorithms that may give ranks float results "
			     "which differ in their last bits" },
	[OPTION_TUNING] = { "tuning", "FILE", "correct the choice by the times in this file" },
	[OPTION_OUT] = { "out", "DIR", "folder to write to" },
	[OPTION_JSON] = { "json", NULL, "for machines" },
	[OPTION_HELP] = { "help", NULL, "this text" },
};

const char *plan_coll_name(enum swc_coll coll)
{
	return swingcoll_coll_name((enum swingcoll_coll)coll);
}

static void usage(const struct verb *verb, uint32_t takes)
{
	printf("Usage: swingplan %s [options]\n\n%c%s.\n\n", verb->name, verb->text[0] - 'a' + 'A',
	       verb->text + 1);
	for (int i = 0; i < OPTION_NR; i++) {
		char left[40];

		if (!(takes & 1u << i))
			continue;
		snprintf(left, sizeof(left), "--%s%s%s", options[i].name, options[i].arg ? " " : "",
			 options[i].arg ? options[i].arg : "");
		printf("  %-18s %s%s\n", left, options[i].text,
		       verb->needs & 1u << i ? " (needed)" : "");
	}
}

static void bad_option(enum plan_option o, const char *value, const char *expected)
{
	plan_bad("--%s %s: expected %s", options[o].name, value, expected);
}

static double number_arg(enum plan_option o, const char *value, double min, double max, bool whole)
{
	char *end, expected[96];
	double v;

	errno = 0;
	v = strtod(value, &end);
	if (errno || end == value || *end || !(v >= min && v <= max) ||
	    (whole && fabs(v - trunc(v)) > 0)) {
		snprintf(expected, sizeof(expected), "a %snumber from %.10g to %.10g",
			 whole ? "whole " : "", min, max);
		bad_option(o, value, expected);
	}
	return v;
}

static double size_arg(const char *value)
{
	static const char suffixes[] = "KMG";
	const char *s;
	char *end;
	double v;

	errno = 0;
	v = strtod(value, &end);
	if (*end && (s = strchr(suffixes, *end >= 'a' ? *end - 'a' + 'A' : *end))) {
		v *= (double)(1ull << 10 * (s - suffixes + 1));
		end++;
		if (!strcmp(end, "iB") || !strcmp(end, "B"))
			end += strlen(end);
	}
	if (errno || end == value || *end || !(v >= 1 && v <= MAX_BYTES) || fabs(v - trunc(v)) > 0)
		bad_option(OPTION_SIZE, value,
			   "a size in bytes such as 8, 64K or 16M, up to 1024G");
	return v;
}

static void sizes_arg(struct plan_options *opt, char *value)
{
	char *save = NULL;

	opt->nsizes = 0;
	for (char *s = strtok_r(value, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
		if (opt->nsizes == MAX_SIZES)
			plan_bad("--size: more than %d sizes", MAX_SIZES);
		opt->sizes[opt->nsizes++] = size_arg(s);
	}
	if (!opt->nsizes)
		bad_option(OPTION_SIZE, "''", "sizes in bytes with commas between them");
}

static int name_arg(enum plan_option o, const char *value, int (*parse)(const char *),
		    const char *expected)
{
	int v = parse(value);

	if (v < 0)
		bad_option(o, value, expected);
	return v;
}

static void topo_arg(struct plan_options *opt, const char *value)
{
	char why[SWC_TEXT_BYTES] = "";
	int ret, n;

	free(opt->topo_text);
	swc_topo_free(&opt->topo);
	ret = *value == '@' ? swc_topo_read(&opt->topo, value + 1, why, sizeof(why))
			    : swc_topo_parse(&opt->topo, value, why, sizeof(why));
	if (ret)
		plan_bad("--topo %s: %s", value, *why ? why : strerror(-ret));
	n = swc_topo_format(&opt->topo, NULL, 0);
	opt->topo_text = n < 0 ? NULL : malloc((size_t)n + 1);
	if (!opt->topo_text)
		plan_no_memory();
	swc_topo_format(&opt->topo, opt->topo_text, (size_t)n + 1);
}

static void option_arg(struct plan_options *opt, const struct verb *verb, enum plan_option o,
		       char *value)
{
	switch (o) {
	case OPTION_ALGO:
		opt->algos = value;
		break;
	case OPTION_TOPO:
		topo_arg(opt, value);
		break;
	case OPTION_OP:
		opt->all_colls = verb->run == verify_run && !strcmp(value, "all");
		if (!opt->all_colls)
			opt->coll = (enum swc_coll)name_arg(
				o, value, swingcoll_coll_parse,
				"allreduce, reduce_scatter, allgather, "
				"broadcast, reduce, barrier or alltoall");
		break;
	case OPTION_ROOT:
		opt->root = (uint32_t)number_arg(o, value, 0, SWC_PLAN_MAX_RANKS - 1, true);
		break;
	case OPTION_RANK:
		opt->rank = (int64_t)number_arg(o, value, 0, SWC_PLAN_MAX_RANKS - 1, true);
		break;
	case OPTION_RANKS:
		opt->nranks = 0;
		if (strcmp(value, "all"))
			opt->nranks = (int64_t)number_arg(o, value, 1, SWC_PLAN_MAX_RANKS, true);
		break;
	case OPTION_PORTS:
		opt->ports = (uint32_t)number_arg(o, value, 1, 2 * SWC_TOPO_DIMS, true);
		break;
	case OPTION_SIZE:
		sizes_arg(opt, value);
		break;
	case OPTION_LINK_GBPS:
		opt->net.gbps = number_arg(o, value, 1e-6, 1e9, false);
		break;
	case OPTION_HOP_NS:
		opt->net.hop_ns = number_arg(o, value, 0, 1e12, false);
		break;
	case OPTION_STEP_NS:
		opt->net.step_ns = number_arg(o, value, 0, 1e12, false);
		break;
	case OPTION_ACK_BYTES:
		opt->net.ack_bytes = number_arg(o, value, 0, MAX_BYTES, false);
		break;
	case OPTION_MODEL:
		opt->flow = !strcmp(value, "flow");
		if (!opt->flow && strcmp(value, "step"))
			bad_option(o, value, "step or flow");
		break;
	case OPTION_PLOT:
		opt->plot = value;
		break;
	case OPTION_PLOT_GAIN:
		opt->plot_gain = true;
		break;
	case OPTION_DTYPE:
		opt->dtype = (enum swc_dtype)name_arg(o, value, swingcoll_dtype_parse,
						      "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 "
						      "or f64");
		break;
	case OPTION_REDOP:
		opt->redop = (enum swc_redop)name_arg(o, value, swingcoll_redop_parse,
						      "sum prod min max avg band bor or bxor");
		break;
	case OPTION_REORDER:
		opt->reorder = true;
		break;
	case OPTION_TUNING:
		opt->tuning = value;
		break;
	case OPTION_OUT:
		opt->out = value;
		break;
	case OPTION_JSON:
		opt->json = true;
		break;
	default:
		break;
	}
}

static void complain(const struct verb *verb, uint32_t takes, const char *word, const char *fault)
{
	char text[512];
	size_t used = 0;

	*text = 0;
	for (int i = 0; i < OPTION_NR; i++)
		if (takes & 1u << i && used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s--%s",
						 used ? " " : "", options[i].name);
	plan_bad("%s %s; %s takes %s", word, fault, verb->name, text);
}

/* What getopt is to know: the options of this verb. */
static void known_options(uint32_t takes, struct option known[OPTION_NR + 1])
{
	memset(known, 0, (OPTION_NR + 1) * sizeof(*known));
	for (int i = 0; i < OPTION_NR; i++)
		if (takes & 1u << i)
			*known++ = (struct option){ options[i].name,
						    options[i].arg ? required_argument
								   : no_argument,
						    NULL, 256 + i };
}

/* Defaults that depend on other options, and what does not fit together. */
static void complete(struct plan_options *opt, const struct verb *verb, uint32_t given)
{
	struct swc_network net = verb->run == choose_run ? swc_network_in_kernel(&opt->topo)
							 : swc_network_of(&opt->topo);
	uint32_t n = opt->topo.nranks;

	for (int i = 0; i < OPTION_NR; i++)
		if (verb->needs & ~given & 1u << i)
			plan_bad("--%s %s is missing: %s", options[i].name, options[i].arg,
				 options[i].text);
	if (opt->net.gbps < 0)
		opt->net.gbps = net.gbps;
	if (opt->net.hop_ns < 0)
		opt->net.hop_ns = net.hop_ns;
	if (opt->net.step_ns < 0)
		opt->net.step_ns = net.step_ns;
	opt->net.reduce_gbps = net.reduce_gbps;
	if (!opt->nsizes)
		for (double s = FIRST_SIZE; s <= LAST_SIZE; s *= SIZE_FACTOR)
			opt->sizes[opt->nsizes++] = s;
	if (opt->rank >= 0 && opt->rank >= n)
		plan_bad("--rank %lld: %s has ranks 0 to %u", (long long)opt->rank, opt->topo_text,
			 n - 1);
	if (opt->root && opt->root >= n)
		plan_bad("--root %u: %s has ranks 0 to %u", opt->root, opt->topo_text, n - 1);
	if (opt->root && !opt->all_colls && opt->coll != SWC_BROADCAST && opt->coll != SWC_REDUCE)
		plan_bad("--root %u: only --op broadcast and reduce have a root", opt->root);
	if (opt->plot_gain && !opt->plot)
		plan_bad("--plot-gain needs --plot FILE, to which it draws");
}

void plan_parse(struct plan_options *opt, const struct verb *verb, int argc, char **argv)
{
	uint32_t takes = verb->takes | 1u << OPTION_JSON | 1u << OPTION_HELP, given = 0;
	struct option known[OPTION_NR + 1];
	int c;

	plan_verb = verb->name;
	*opt = (struct plan_options){ .rank = -1,
				      .nranks = -1,
				      .net = { -1, -1, -1 },
				      .dtype = SWC_F32,
				      .sizes = calloc(MAX_SIZES, sizeof(double)) };
	if (!opt->sizes)
		plan_no_memory();
	known_options(takes, known);
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":hj", known, NULL)) != -1) {
		enum plan_option o = c == 'h' ? OPTION_HELP : c == 'j' ? OPTION_JSON : c - 256;

		if (c == ':')
			complain(verb, takes, argv[optind - 1], "needs a value");
		if (c == '?')
			complain(verb, takes, argv[optind - 1], "is not an option here");
		if (o == OPTION_HELP) {
			usage(verb, takes);
			exit(0);
		}
		option_arg(opt, verb, o, optarg);
		given |= 1u << o;
	}
	if (optind < argc)
		complain(verb, takes, argv[optind], "is not an option");
	complete(opt, verb, given);
}

void plan_options_free(struct plan_options *opt)
{
	swc_topo_free(&opt->topo);
	free(opt->topo_text);
	free(opt->sizes);
}
