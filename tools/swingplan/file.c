// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan export and import: plans to a file and from one. What is imported, be it a plan file or an algorithm
 * in MSCCL's XML, is run on symbols first.
 */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/plan_text.h"
#include "swingplan.h"

static const char export_usage[] =
	"Usage: swingplan export [options]\n"
	"\n"
	"Builds the plans of all ranks and writes them as text, see swingcoll-plan(5).\n"
	"\n"
	"  -a, --algo NAME[:N]  algorithm (default ring)\n"
	"  -o, --op NAME        allreduce, reduce_scatter, allgather, broadcast, reduce, barrier or\n"
	"                       alltoall (default allreduce)\n"
	"  -n, --ranks N        that many ranks on a switch, or all on one node if the algorithm is\n"
	"                       made for that (default 2)\n"
	"  -t, --topo TEXT      ranks on this network instead, such as torus:4x4*2; @FILE reads it\n"
	"  -R, --root R         root rank of broadcast and reduce (default 0)\n"
	"      --channels N     channels to spread over (default: the algorithm's choice)\n"
	"      --ports N        links of a node to use (default: all)\n"
	"      --in-place       plans that are right in place, too (default: where that costs nothing)\n"
	"      --out FILE       write here (default: standard output, but nothing with --json)\n"
	"  -j, --json           say what was made, and whether it is right when run on symbols, as\n"
	"                       one JSON object on standard output\n"
	"  -h, --help           this text\n"
	"\n"
	"Exit status: 0, 1 if the plans are wrong, or 2 on errors.\n";

static const char import_usage[] =
	"Usage: swingplan import [options] FILE\n"
	"\n"
	"Reads plans of all ranks from a plan file or from an algorithm in MSCCL's XML (\"-\": standard\n"
	"input), runs them on symbols to see whether they are right, and writes a plan file.\n"
	"\n"
	"  -t, --topo TEXT      which ranks share a node, such as switch:4*2 (default: one node);\n"
	"                       @FILE reads it\n"
	"      --no-verify      take the plans as they are\n"
	"      --out FILE       write here (default: standard output, but nothing with --json)\n"
	"  -j, --json           say what was found as one JSON object on standard output\n"
	"  -h, --help           this text\n"
	"\n"
	"Exit status: 0, 1 if the plans are wrong, or 2 on other errors.\n";

enum {
	OPT_CHANNELS = 256,
	OPT_PORTS,
	OPT_IN_PLACE,
	OPT_OUT,
	OPT_NO_VERIFY,
};

static int bad(const char *option, const char *value, const char *expected)
{
	fprintf(stderr, "swingplan: --%s %s: expected %s (see --help)\n", option, value, expected);
	return -EINVAL;
}

static int number(const char *option, const char *value, uint32_t min, uint32_t max, uint32_t *n)
{
	char *end, expected[64];
	unsigned long v;

	errno = 0;
	v = strtoul(value, &end, 10);
	if (errno || !isdigit((unsigned char)*value) || *end || v < min || v > max) {
		snprintf(expected, sizeof(expected), "a number from %u to %u", min, max);
		return bad(option, value, expected);
	}
	*n = (uint32_t)v;
	return 0;
}

static int topo_arg(const char *value, struct swc_topo *topo)
{
	char why[200] = "out of memory";

	swc_topo_free(topo);
	if (!(*value == '@' ? swc_topo_read(topo, value + 1, why, sizeof(why))
			    : swc_topo_parse(topo, value, why, sizeof(why))))
		return 0;
	memset(topo, 0, sizeof(*topo));
	fprintf(stderr, "swingplan: --topo %s: %s\n", value, why);
	return -EINVAL;
}

/* Write to the file that is named, or to standard output. */
static int write_out(const struct swc_planset *set, const char *out)
{
	FILE *f = out ? fopen(out, "we") : stdout;
	char why[250] = "out of memory";
	int ret;

	if (!f) {
		fprintf(stderr, "swingplan: %s: %s\n", out, strerror(errno));
		return 2;
	}
	ret = swc_planfile_write(f, (const void *const *)set->plan, set->bytes, set->nranks, why,
				 sizeof(why));
	if (out && fclose(f) && !ret) {
		ret = -errno;
		snprintf(why, sizeof(why), "%s", strerror(-ret));
	}
	if (ret)
		fprintf(stderr, "swingplan: %s: %s\n", out ? out : "standard output", why);
	return ret ? 2 : 0;
}

/* ------------------------------------------------------------------ judging */

/* Out of place, and in place where the plans do not say otherwise. */
static int verify(const struct swc_planset *set, const struct swc_topo *topo, struct swc_verdict *v)
{
	bool *in_place = calloc(set->nranks, sizeof(*in_place));
	int ret;

	if (!in_place)
		return -ENOMEM;
	ret = swc_plan_verify((const void *const *)set->plan, set->bytes, in_place, set->nranks,
			      topo, v);
	for (uint32_t r = 0; r < set->nranks; r++)
		in_place[r] = !(((struct swc_plan_header *)set->plan[r])->flags &
				SWC_PLAN_NOT_IN_PLACE);
	if (!ret)
		ret = swc_plan_verify((const void *const *)set->plan, set->bytes, in_place,
				      set->nranks, topo, v);
	free(in_place);
	return ret;
}

/* What all ranks have together. */
struct summary {
	const struct swc_plan_header *hdr;
	uint32_t steps; /* of the rank with most */
	uint32_t flags;
};

static struct summary summarize(const struct swc_planset *set)
{
	struct summary s = { .hdr = set->plan[0] };

	for (uint32_t r = 0; r < set->nranks; r++) {
		const struct swc_plan_header *h = set->plan[r];

		s.steps = s.steps < h->nsteps ? h->nsteps : s.steps;
		s.flags |= h->flags;
	}
	return s;
}

static void print_json(const struct summary *s, const char *path, const char *format, bool verified,
		       const struct swc_verdict *wrong)
{
	cJSON *o = cJSON_CreateObject();
	char *text;

	cJSON_AddStringToObject(o, "file", path);
	cJSON_AddStringToObject(o, "format", format);
	cJSON_AddStringToObject(o, "name", s->hdr->name);
	cJSON_AddStringToObject(o, "op", swc_planfile_coll_name(s->hdr->coll));
	cJSON_AddNumberToObject(o, "ranks", s->hdr->nranks);
	cJSON_AddNumberToObject(o, "root", s->hdr->root);
	cJSON_AddNumberToObject(o, "blocks", (double)s->hdr->nparts * s->hdr->part_blocks);
	cJSON_AddNumberToObject(o, "channels", s->hdr->nchannels);
	cJSON_AddNumberToObject(o, "steps", s->steps);
	cJSON_AddBoolToObject(o, "in_place", !(s->flags & SWC_PLAN_NOT_IN_PLACE));
	cJSON_AddBoolToObject(o, "order_varies", s->flags & SWC_PLAN_ORDER_VARIES);
	cJSON_AddBoolToObject(o, "verified", verified && !wrong);
	if (wrong) {
		cJSON_AddNumberToObject(o, "wrong_rank", wrong->rank);
		cJSON_AddStringToObject(o, "wrong", wrong->text);
	}
	text = cJSON_PrintUnformatted(o);
	if (text)
		puts(text);
	free(text);
	cJSON_Delete(o);
}

/* ------------------------------------------------------------------ export */

static int build(const struct swc_plan_args *args, struct swc_planset *set)
{
	struct swc_plan_args a = *args;
	char why[250] = "out of memory";
	int ret = 0;

	set->plan = calloc(a.nranks, sizeof(*set->plan));
	set->bytes = calloc(a.nranks, sizeof(*set->bytes));
	if (!set->plan || !set->bytes)
		ret = -ENOMEM;
	for (a.rank = 0; !ret && a.rank < a.nranks; a.rank++) {
		set->nranks = a.rank + 1;
		ret = swc_plan_build(&a, &set->plan[a.rank], &set->bytes[a.rank], why, sizeof(why));
	}
	if (ret)
		fprintf(stderr, "swingplan: %s for %u ranks: %s\n", swc_algo_name(a.algo), a.nranks,
			why);
	return ret;
}

int swingplan_export(int argc, char **argv)
{
	static const struct option options[] = {
		{ "algo", required_argument, NULL, 'a' },
		{ "op", required_argument, NULL, 'o' },
		{ "ranks", required_argument, NULL, 'n' },
		{ "topo", required_argument, NULL, 't' },
		{ "root", required_argument, NULL, 'R' },
		{ "channels", required_argument, NULL, OPT_CHANNELS },
		{ "ports", required_argument, NULL, OPT_PORTS },
		{ "in-place", no_argument, NULL, OPT_IN_PLACE },
		{ "out", required_argument, NULL, OPT_OUT },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct swc_plan_args a = { .algo = SWC_ALGO_RING, .param = SWC_PARAM_DEFAULT, .nranks = 2 };
	struct swc_topo topo = { 0 };
	struct swc_planset set = { 0 };
	struct swc_verdict verdict = { 0 };
	const char *out = NULL;
	int c, v, ret = 0, wrong = 0;
	bool json = false;

	optind = 1;
	while (!ret && (c = getopt_long(argc, argv, "a:o:n:t:R:jh", options, NULL)) != -1) {
		switch (c) {
		case 'a':
			v = swc_algo_parse(optarg, &a.param);
			if (v < 0)
				ret = bad("algo", optarg,
					  "an algorithm's name, with its number if it takes one");
			else
				a.algo = (enum swc_algo)v;
			break;
		case 'o':
			v = swc_planfile_coll(optarg);
			if (v < 0)
				ret = bad("op", optarg, "one of the names that --help lists");
			else
				a.coll = (enum swc_coll)v;
			break;
		case 'n':
			ret = number("ranks", optarg, 1, SWC_PLAN_MAX_RANKS, &a.nranks);
			break;
		case 't':
			ret = topo_arg(optarg, &topo);
			break;
		case 'R':
			ret = number("root", optarg, 0, SWC_PLAN_MAX_RANKS - 1, &a.root);
			break;
		case OPT_CHANNELS:
			ret = number("channels", optarg, 1, SWC_MAX_CHANNELS, &a.channels);
			break;
		case OPT_PORTS:
			ret = number("ports", optarg, 1, 2 * SWC_TOPO_DIMS, &a.ports);
			break;
		case OPT_IN_PLACE:
			a.in_place = true;
			break;
		case OPT_OUT:
			out = optarg;
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(export_usage, stdout);
			swc_topo_free(&topo);
			return 0;
		default:
			fputs("swingplan: see swingplan export --help\n", stderr);
			ret = -EINVAL;
		}
	}
	if (!ret && optind < argc) {
		fprintf(stderr, "swingplan: unexpected argument \"%s\" (see --help)\n",
			argv[optind]);
		ret = -EINVAL;
	}
	if (topo.nnodes) {
		a.topo = &topo;
		a.nranks = topo.nranks;
	} else if (swc_algo_info(a.algo)->one_node) {
		a.nlocal = a.nranks;
	}
	if (!ret)
		ret = build(&a, &set);
	if (!ret && json) {
		struct summary s = summarize(&set);

		wrong = verify(&set, a.topo, &verdict);
		print_json(&s, out ? out : "-", "plan", true, wrong ? &verdict : NULL);
	}
	ret = ret ? 2 : json && !out ? 0 : write_out(&set, out);
	swc_planset_free(&set);
	swc_topo_free(&topo);
	return ret ? ret : wrong ? 1 : 0;
}

/* ------------------------------------------------------------------ import */

/* XML begins with a bracket; a plan file never does. */
static int read_any(const char *path, struct swc_planset *set, const char **format)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
	char why[250] = "out of memory";
	int c, ret;

	if (!f) {
		fprintf(stderr, "swingplan: %s: %s\n", path, strerror(errno));
		return -errno;
	}
	c = getc(f);
	if (c != EOF)
		ungetc(c, f);
	*format = c == '<' ? "msccl" : "plan";
	ret = (c == '<' ? swc_msccl_read : swc_planfile_read)(f, set, why, sizeof(why));
	if (f != stdin)
		fclose(f);
	if (ret)
		fprintf(stderr, "swingplan: %s: %s\n", path, why);
	return ret;
}

static int import(const char *path, const char *out, const struct swc_topo *topo, bool check,
		  bool json)
{
	struct swc_planset set = { 0 };
	struct swc_verdict v = { 0 };
	struct summary s;
	const char *format = "plan";
	int ret = read_any(path, &set, &format);

	if (ret)
		return 2;
	s = summarize(&set);
	if (check)
		ret = verify(&set, topo, &v);
	if (ret == -ENOMEM)
		fprintf(stderr, "swingplan: %s: out of memory\n", path);
	else if (json)
		print_json(&s, path, format, check, ret ? &v : NULL);
	if (ret == -EINVAL)
		fprintf(stderr, "swingplan: %s: the plans are wrong: rank %u: %s\n", path, v.rank,
			v.text);
	else if (!ret)
		fprintf(stderr,
			"swingplan: %s: %s %s for %u ranks, %u channels, up to %u steps; %s\n",
			path, s.hdr->name, swc_planfile_coll_name(s.hdr->coll), s.hdr->nranks,
			s.hdr->nchannels, s.steps,
			check ? "verified" : "NOT VERIFIED, results may be wrong");
	if (ret)
		ret = ret == -EINVAL ? 1 : 2;
	else if (out || !json)
		ret = write_out(&set, out);
	swc_planset_free(&set);
	return ret;
}

int swingplan_import(int argc, char **argv)
{
	static const struct option options[] = {
		{ "topo", required_argument, NULL, 't' },
		{ "no-verify", no_argument, NULL, OPT_NO_VERIFY },
		{ "out", required_argument, NULL, OPT_OUT },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct swc_topo topo = { 0 };
	const char *out = NULL;
	bool check = true, json = false;
	int c, ret = 0;

	optind = 1;
	while (!ret && (c = getopt_long(argc, argv, "t:jh", options, NULL)) != -1) {
		switch (c) {
		case 't':
			ret = topo_arg(optarg, &topo);
			break;
		case OPT_NO_VERIFY:
			check = false;
			break;
		case OPT_OUT:
			out = optarg;
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(import_usage, stdout);
			swc_topo_free(&topo);
			return 0;
		default:
			fputs("swingplan: see swingplan import --help\n", stderr);
			ret = -EINVAL;
		}
	}
	if (!ret && optind + 1 != argc) {
		fputs("swingplan: import takes one file (see swingplan import --help)\n", stderr);
		ret = -EINVAL;
	}
	ret = ret ? 2 : import(argv[optind], out, topo.nnodes ? &topo : NULL, check, json);
	swc_topo_free(&topo);
	return ret;
}
