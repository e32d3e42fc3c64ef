// SPDX-License-Identifier: GPL-2.0-only
/* swingplan's options: one table, of which each verb takes a part. */
#include "swingplan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/names.h"
#include "kmod/core/plan_check.h"
#include "src/files.h"
#include "swingcoll.h"

#define MAX_SIZES 4096
#define MAX_BYTES ((double)(1ull << 40))
/* Sizes if none are given. */
#define FIRST_SIZE 32.0
#define LAST_SIZE (512.0 * (1 << 20))
#define SIZE_FACTOR 4

static const struct cli_option options[OPTION_NR] = {
	[OPTION_ALGO] = { OPTION_ALGO, 'a', "algo", "A[,A]...",
			  "algorithms, with a parameter as in swing-h:2 if they have one; all: every "
			  "one that is possible; file:PATH: the plans in a file" },
	[OPTION_ONE_ALGO] = { OPTION_ONE_ALGO, 'a', "algo", "A",
			      "algorithm, with a parameter as in swing-h:2 if it has one (default "
			      "ring)" },
	[OPTION_TOPO] = { OPTION_TOPO, 't', "topo", "T",
			  "network, such as torus:4x4, ring:8@100Gbps,1us or torus:4x4*8; @FILE reads "
			  "it from a file" },
	[OPTION_OP] = { OPTION_OP, 'o', "op", "OP", COLL_NAMES " (default allreduce)" },
	[OPTION_ANY_OP] = { OPTION_ANY_OP, 'o', "op", "OP",
			    COLL_NAMES ", or all of them (default allreduce)" },
	[OPTION_ROOT] = { OPTION_ROOT, 'R', "root", "R",
			  "root rank of broadcast, reduce, gather and scatter (default 0)" },
	[OPTION_RANK] = { OPTION_RANK, 0, "rank", "R", "print the plan of this rank" },
	[OPTION_CHECK] = { OPTION_CHECK, 'n', "ranks", "N",
			   "check the plans of N ranks only, each by itself, or of all (default all)" },
	[OPTION_NRANKS] = { OPTION_NRANKS, 'n', "ranks", "N",
			    "without --topo: N ranks on a switch, or on one node if the algorithm "
			    "is made for that (default 2)" },
	[OPTION_CHANNELS] = { OPTION_CHANNELS, 0, "channels", "N",
			      "channels to spread over (default: the algorithm's choice)" },
	[OPTION_PORTS] = { OPTION_PORTS, 0, "ports", "N",
			   "links of a node to use at once (default: all that the algorithm can use)" },
	[OPTION_IN_PLACE] = { OPTION_IN_PLACE, 0, "in-place", NULL,
			      "plans that are right in place, too (default: where that costs nothing)" },
	[OPTION_NO_VERIFY] = { OPTION_NO_VERIFY, 0, "no-verify", NULL,
			       "take the plans as they are" },
	[OPTION_SIZE] = { OPTION_SIZE, 0, "size", "S[,S]...",
			  "bytes of the vector, suffixes K M G (default 32 B to 512 MiB by factors of "
			  "4)" },
	[OPTION_LINK_GBPS] = { OPTION_LINK_GBPS, 0, "link-gbps", "G",
			       "rate of a link in each direction, Gbit/s (default: the topology's, or "
			       "400)" },
	[OPTION_HOP_NS] = { OPTION_HOP_NS, 0, "hop-ns", "NS",
			    "delay of a hop (default: the topology's, or 400)" },
	[OPTION_STEP_NS] = { OPTION_STEP_NS, 0, "step-ns", "NS",
			     "fixed cost of a step (default 600; choose: the kernel's)" },
	[OPTION_ACK_BYTES] = { OPTION_ACK_BYTES, 0, "ack-bytes", "N",
			       "transfers from this size on end with an acknowledgement, which takes the "
			       "way back; the kernel's: 4033 (default: no transfer)" },
	[OPTION_KERNEL] = { OPTION_KERNEL, 0, "kernel", NULL,
			    "step model: the kernel's times of steps, reductions and copies, as for "
			    "choose" },
	[OPTION_MODEL] = { OPTION_MODEL, 0, "model", "M",
			   "step, or simple: all ranks step together (default); flow: each rank by "
			   "itself, packets in queues" },
	[OPTION_NO_HEADERS] = { OPTION_NO_HEADERS, 0, "no-headers", NULL,
				"flow model: bytes of vectors only (default: with the headers of RoCE "
				"v2 and of the kernel)" },
	[OPTION_STORE_FORWARD] = { OPTION_STORE_FORWARD, 0, "store-and-forward", NULL,
				   "flow model: nodes forward whole packets (default: from the first "
				   "byte on)" },
	[OPTION_DTYPE] = { OPTION_DTYPE, 'd', "dtype", "TYPE", DTYPE_NAMES " (default f32)" },
	[OPTION_REDOP] = { OPTION_REDOP, 'r', "redop", "OP", REDOP_NAMES " (default sum)" },
	[OPTION_REORDER] = { OPTION_REORDER, 0, "reorder", NULL,
			     "allow algorithms that may give ranks float results which differ in "
			     "their last bits" },
	[OPTION_TUNING] = { OPTION_TUNING, 0, "tuning", "FILE",
			    "correct the model by the times and rates in this file, which swingperf --tune writes" },
	[OPTION_CPUS] = { OPTION_CPUS, 0, "cpus", "N",
			  "CPUs that the ranks share, if all are on one node (default: as many as "
			  "ranks)" },
	[OPTION_CACHES] = { OPTION_CACHES, 0, "caches", "G",
			    "groups of ranks on one node that are bound to CPUs with a last-level "
			    "cache of their own (default: one)" },
	[OPTION_OUT_DIR] = { OPTION_OUT_DIR, 0, "out", "DIR", "write to this folder" },
	[OPTION_OUT_FILE] = { OPTION_OUT_FILE, 0, "out", "FILE",
			      "write the plans to this file (default: standard output)" },
	[OPTION_SPEC] = { OPTION_SPEC, 's', "spec", "FILE",
			  "the specification, JSON; - is standard input" },
	[OPTION_SPARSE_RANKS] = { OPTION_SPARSE_RANKS, 'n', "ranks", "N", "number of ranks" },
	[OPTION_COUNT] = { OPTION_COUNT, 'c', "count", "N", "elements of the vector" },
	[OPTION_DENSITY] = { OPTION_DENSITY, 0, "density", "D",
			     "share of a rank's elements that are not zero, 0 to 1" },
	[OPTION_OVERLAP] = { OPTION_OVERLAP, 0, "overlap", "KIND",
			     "how the ranks' places overlap: " SPARSE_OVERLAPS
			     " (default independent)" },
	[OPTION_GRAPH] = { OPTION_GRAPH, 'g', "graph", "FILE",
			   "network as a list of links, see swingplan(1); - is standard input" },
	[OPTION_ROOTS] = { OPTION_ROOTS, 0, "roots", "R",
			   "equal: as many trees from each rank (default); any: as is fastest, "
			   "for allreduce" },
	[OPTION_ROOT_NAME] = { OPTION_ROOT_NAME, 'R', "root", "R",
			       "root of broadcast and reduce: its name or number (default 0)" },
	[OPTION_OUT_PLANS] = { OPTION_OUT_PLANS, 0, "out", "FILE", "write the plans to this file" },
	[OPTION_FOR_SIZE] = { OPTION_FOR_SIZE, 0, "size", "S",
			      "--out: bytes of the vector that the number of segments is chosen "
			      "for, suffixes K M G (default 64M)" },
	[OPTION_PIECES] = { OPTION_PIECES, 0, "pieces", "N",
			    "--out: segments that follow one another through each tree (default: by "
			    "the model)" },
	[OPTION_MEMBERS] = { OPTION_MEMBERS, 0, "members", "A,B[,C]...",
			     "only these ranks take part; the others forward (default: all)" },
	[OPTION_TREES] = { OPTION_TREES, 0, "trees", NULL, "print the trees" },
	[OPTION_FORMAT] = { OPTION_FORMAT, 0, "format", "F",
			    "of the output: plan (default), or msccl for MSCCL's XML" },
	[OPTION_JSON] = { OPTION_JSON, 'j', "json", NULL, "print JSON" },
};

static void sizes_arg(struct plan_options *opt, struct cli *cli)
{
	size_t sizes[MAX_SIZES];

	opt->nsizes = (unsigned int)cli_sizes(cli, sizes, MAX_SIZES);
	for (unsigned int i = 0; i < opt->nsizes; i++)
		opt->sizes[i] = (double)sizes[i];
}

static void topo_arg(struct plan_options *opt, const char *value)
{
	char why[SWC_TEXT_BYTES] = "";
	int ret, n;

	free(opt->topo_text);
	swc_topo_free(&opt->topo);
	ret = swc_file_topo(&opt->topo, value, why, sizeof(why));
	if (ret)
		plan_bad("--topo %s: %s", value, *why ? why : strerror(-ret));
	n = swc_topo_format(&opt->topo, NULL, 0);
	opt->topo_text = n < 0 ? NULL : malloc((size_t)n + 1);
	if (!opt->topo_text)
		plan_no_memory();
	swc_topo_format(&opt->topo, opt->topo_text, (size_t)n + 1);
}

static void coll_arg(struct plan_options *opt, const struct cli *cli, bool all_possible)
{
	opt->all_colls = all_possible && !strcmp(cli->value, "all");
	if (!opt->all_colls)
		opt->coll = (enum swc_coll)cli_name(cli, swingcoll_coll_parse, COLL_NAMES);
}

static void option_arg(struct plan_options *opt, struct cli *cli, int id)
{
	static const char *const models[] = { "step", "flow", "simple", NULL };
	static const char *const roots[] = { "equal", "any", NULL };

	switch (id) {
	case OPTION_ALGO:
	case OPTION_ONE_ALGO:
		opt->algos = cli->value;
		break;
	case OPTION_TOPO:
		topo_arg(opt, cli->value);
		break;
	case OPTION_OP:
	case OPTION_ANY_OP:
		coll_arg(opt, cli, id == OPTION_ANY_OP);
		break;
	case OPTION_ROOT:
		opt->root = (uint32_t)cli_number(cli, 0, SWC_PLAN_MAX_RANKS - 1);
		break;
	case OPTION_RANK:
		opt->rank = cli_number(cli, 0, SWC_PLAN_MAX_RANKS - 1);
		break;
	case OPTION_CHECK:
		opt->check = strcmp(cli->value, "all") ? cli_number(cli, 1, SWC_PLAN_MAX_RANKS) : 0;
		break;
	case OPTION_NRANKS:
		opt->nranks = (uint32_t)cli_number(cli, 1, SWC_PLAN_MAX_RANKS);
		break;
	case OPTION_CHANNELS:
		opt->channels = (uint32_t)cli_number(cli, 1, SWC_MAX_CHANNELS);
		break;
	case OPTION_PORTS:
		opt->ports = (uint32_t)cli_number(cli, 1, 2 * SWC_TOPO_DIMS);
		break;
	case OPTION_IN_PLACE:
		opt->in_place = true;
		break;
	case OPTION_NO_VERIFY:
		opt->no_verify = true;
		break;
	case OPTION_SIZE:
		sizes_arg(opt, cli);
		break;
	case OPTION_LINK_GBPS:
		opt->net.gbps = cli_real(cli, 1e-6, 1e9);
		break;
	case OPTION_HOP_NS:
		opt->net.hop_ns = cli_real(cli, 0, 1e12);
		break;
	case OPTION_STEP_NS:
		opt->net.step_ns = cli_real(cli, 0, 1e12);
		break;
	case OPTION_ACK_BYTES:
		opt->net.ack_bytes = cli_real(cli, 0, MAX_BYTES);
		break;
	case OPTION_KERNEL:
		opt->kernel = true;
		break;
	case OPTION_MODEL:
		opt->flow = cli_choice(cli, models) == 1;
		break;
	case OPTION_NO_HEADERS:
		opt->no_headers = true;
		break;
	case OPTION_STORE_FORWARD:
		opt->store_forward = true;
		break;
	case OPTION_DTYPE:
		opt->dtype = (enum swc_dtype)cli_name(cli, swingcoll_dtype_parse, DTYPE_NAMES);
		break;
	case OPTION_REDOP:
		opt->redop = (enum swc_redop)cli_name(cli, swingcoll_redop_parse, REDOP_NAMES);
		break;
	case OPTION_REORDER:
		opt->reorder = true;
		break;
	case OPTION_FORMAT:
		opt->msccl = !strcmp(cli->value, "msccl");
		if (!opt->msccl && strcmp(cli->value, "plan"))
			plan_bad("--format %s: expected plan or msccl", cli->value);
		break;
	case OPTION_TUNING:
		opt->tuning = cli->value;
		break;
	case OPTION_CPUS:
		opt->ncpus = (uint32_t)cli_number(cli, 1, SWC_PLAN_MAX_RANKS);
		break;
	case OPTION_CACHES:
		opt->ngroups = (uint32_t)cli_number(cli, 1, SWC_PLAN_MAX_RANKS);
		break;
	case OPTION_OUT_DIR:
	case OPTION_OUT_FILE:
	case OPTION_OUT_PLANS:
		opt->out = cli->value;
		break;
	case OPTION_SPEC:
		opt->spec = cli->value;
		break;
	case OPTION_SPARSE_RANKS:
		opt->nranks = (uint32_t)cli_number(cli, 1, SWC_PLAN_MAX_RANKS);
		break;
	case OPTION_COUNT:
		opt->count = (uint64_t)cli_number(cli, 1, 1ll << 46);
		break;
	case OPTION_DENSITY:
		opt->input.density = cli_real(cli, 0, 1);
		break;
	case OPTION_OVERLAP:
		if (sparse_parse_overlap(cli->value, &opt->input))
			cli_expected(cli, SPARSE_OVERLAPS);
		break;
	case OPTION_GRAPH:
		opt->graph = cli->value;
		break;
	case OPTION_ROOTS:
		opt->any_roots = cli_choice(cli, roots) == 1;
		break;
	case OPTION_ROOT_NAME:
		opt->root_name = cli->value;
		break;
	case OPTION_FOR_SIZE:
		opt->for_size = (double)cli_size(cli, 1, 1ull << 40);
		break;
	case OPTION_PIECES:
		opt->pieces = (uint32_t)cli_number(cli, 1, FOREST_PIECES);
		break;
	case OPTION_MEMBERS:
		opt->members = cli->value;
		break;
	case OPTION_TREES:
		opt->trees = true;
		break;
	case OPTION_JSON:
		opt->json = true;
		break;
	}
}

/* Figures that were not given, by the topology. */
static void complete_network(struct plan_options *opt, const struct verb *verb)
{
	struct swc_network net = verb->in_kernel || opt->kernel ? swc_network_in_kernel(&opt->topo)
								: swc_network_of(&opt->topo);

	if (opt->net.gbps < 0)
		opt->net.gbps = net.gbps;
	if (opt->net.hop_ns < 0)
		opt->net.hop_ns = net.hop_ns;
	if (opt->net.step_ns < 0)
		opt->net.step_ns = net.step_ns;
	opt->net.reduce_gbps = net.reduce_gbps;
	opt->net.message_ns = net.message_ns;
	opt->net.copy_step_ns = net.copy_step_ns;
	opt->net.copy_ns = net.copy_ns;
	opt->net.early_bytes = SWC_FLOW_EARLY;
	if (!opt->no_headers)
		opt->net.packets = (struct swc_packets)SWC_PACKETS_ROCE;
	opt->net.packets.whole = opt->store_forward;
}

static void complete_sizes(struct plan_options *opt)
{
	if (!opt->nsizes)
		for (double s = FIRST_SIZE; s <= LAST_SIZE; s *= SIZE_FACTOR)
			opt->sizes[opt->nsizes++] = s;
}

/* Options that do not fit together. */
static void check(const struct plan_options *opt)
{
	uint32_t n = opt->topo_text ? opt->topo.nranks : opt->nranks;
	char ranks[32];

	snprintf(ranks, sizeof(ranks), "%u ranks", n);
	if (opt->rank >= n)
		plan_bad("--rank %lld: %s has ranks 0 to %u", (long long)opt->rank,
			 opt->topo_text ? opt->topo_text : ranks, n - 1);
	if (opt->kernel && opt->flow)
		plan_bad("--kernel: is for the step model: the flow model has no reductions");
	if (opt->ncpus && opt->topo.nnodes > 1)
		plan_bad(
			"--cpus %u: %s has several nodes, where the choice does not depend on CPUs",
			opt->ncpus, opt->topo_text);
	if (opt->ngroups > 1 && (opt->topo.nnodes > 1 || n % opt->ngroups))
		plan_bad("--caches %u: %s is not one node with as many ranks for each",
			 opt->ngroups, opt->topo_text);
	if (opt->check > n)
		plan_bad("--ranks %lld: %s has %u ranks", (long long)opt->check,
			 opt->topo_text ? opt->topo_text : ranks, n);
	if (opt->root && opt->root >= n)
		plan_bad("--root %u: %s has ranks 0 to %u", opt->root,
			 opt->topo_text ? opt->topo_text : ranks, n - 1);
	if (opt->root && !opt->all_colls && !swc_coll_has_root(opt->coll))
		plan_bad("--root %u: only --op broadcast, reduce, gather and scatter have a root",
			 opt->root);
}

void plan_parse(struct plan_options *opt, const struct verb *verb, int argc, char **argv)
{
	static char prog[32], usage[256];
	struct cli_option known[OPTION_NR + 1] = { 0 };
	struct cli cli = { .prog = prog,
			   .usage = usage,
			   .notes = verb->notes,
			   .options = known,
			   .needs = verb->needs,
			   .argc = argc,
			   .argv = argv };
	int id, n = 0;

	snprintf(prog, sizeof(prog), "swingplan %s", verb->name);
	snprintf(usage, sizeof(usage), "%s [options]%s%s\n\n%c%s.\n", prog,
		 verb->operand ? " " : "", verb->operand ? verb->operand : "",
		 verb->text[0] - 'a' + 'A', verb->text + 1);
	plan_prog = prog;
	for (int i = 0; i < OPTION_NR; i++)
		if ((verb->takes | 1ull << OPTION_JSON) & 1ull << i)
			known[n++] = options[i];
	*opt = (struct plan_options){ .rank = -1,
				      .check = -1,
				      .nranks = 2,
				      .net = { -1, -1, -1 },
				      .dtype = SWC_F32,
				      .sizes = calloc(MAX_SIZES, sizeof(double)) };
	if (!opt->sizes)
		plan_no_memory();
	while ((id = cli_next(&cli)) != CLI_END)
		option_arg(opt, &cli, id);
	if (verb->operand)
		opt->file = cli_operand(&cli, verb->operand);
	cli_end(&cli);
	if (opt->topo_text)
		complete_network(opt, verb);
	complete_sizes(opt);
	check(opt);
}

void plan_options_free(struct plan_options *opt)
{
	swc_topo_free(&opt->topo);
	free(opt->topo_text);
	free(opt->sizes);
}
