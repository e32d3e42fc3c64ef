// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan: shows algorithms without running them: their plans, proofs that the plans are right, and their
 * cost on a network by the library's models. It needs neither the module nor a second machine.
 */
#include "swingplan.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "swingcoll.h"

/* Memory of this size or more belongs to one algorithm on a large network. */
#define SCRATCH_BYTES (1 << 20)

#define BIT(name) (1ull << OPTION_##name)
#define NETWORK (BIT(LINK_GBPS) | BIT(HOP_NS) | BIT(STEP_NS) | BIT(ACK_BYTES))

static const char wrong_notes[] = "Exit status: 0; 1 if a plan is wrong; 2 on other errors.";

static const struct verb verbs[] = {
	{ .name = "list", .text = "the algorithms", .run = list_run },
	{ .name = "show",
	  .text = "steps, hops and traffic of an algorithm on a topology, and the plan of a rank",
	  .takes = BIT(ALGO) | BIT(TOPO) | BIT(OP) | BIT(ROOT) | BIT(RANK) | BIT(PORTS),
	  .needs = BIT(ALGO) | BIT(TOPO),
	  .run = show_run },
	{ .name = "verify",
	  .text = "prove that plans are right, or find what is wrong with them",
	  .takes = BIT(ALGO) | BIT(TOPO) | BIT(ANY_OP) | BIT(ROOT) | BIT(CHECK) | BIT(PORTS),
	  .needs = BIT(ALGO) | BIT(TOPO),
	  .notes = wrong_notes,
	  .run = verify_run },
	{ .name = "simulate",
	  .text = "time over size by a model",
	  .takes = BIT(ALGO) | BIT(TOPO) | BIT(OP) | BIT(ROOT) | BIT(PORTS) | BIT(SIZE) | NETWORK |
		   BIT(KERNEL) | BIT(MODEL) | BIT(NO_HEADERS) | BIT(STORE_FORWARD),
	  .needs = BIT(ALGO) | BIT(TOPO),
	  .notes = "tools/bench/plot of the source tree draws pictures from the JSON output.",
	  .run = simulate_run },
	{ .name = "choose",
	  .text = "the library's automatic choice, and the reason",
	  .takes = BIT(TOPO) | BIT(OP) | BIT(SIZE) | NETWORK | BIT(DTYPE) | BIT(REDOP) |
		   BIT(REORDER) | BIT(TUNING) | BIT(CPUS) | BIT(CACHES),
	  .needs = BIT(TOPO),
	  .in_kernel = true,
	  .run = choose_run },
	{ .name = "export",
	  .text = "write the plans of all ranks as text, see swingcoll-plan(5)",
	  .takes = BIT(ONE_ALGO) | BIT(TOPO) | BIT(OP) | BIT(ROOT) | BIT(NRANKS) | BIT(CHANNELS) |
		   BIT(PORTS) | BIT(IN_PLACE) | BIT(OUT_FILE) | BIT(FORMAT),
	  .notes =
		  "With --json the plans are verified, and a summary goes to standard output in place of\n"
		  "the plans. Exit status: 0; 1 if the plans are wrong; 2 on other errors.",
	  .run = export_run },
	{ .name = "import",
	  .text = "verify plans from a plan file, MSCCL's XML or MSCCL++'s JSON, and write them",
	  .takes = BIT(TOPO) | BIT(NO_VERIFY) | BIT(OUT_FILE) | BIT(FORMAT),
	  .operand = "FILE",
	  .notes =
		  "FILE \"-\" is standard input. Without --topo all ranks are on one node. With --json a\n"
		  "summary goes to standard output in place of the plans.\n"
		  "Exit status: 0; 1 if the plans are wrong; 2 on other errors.",
	  .run = import_run },
	{ .name = "allocate",
	  .text = "divide bandwidth among dimensions for the least time, or time times cost",
	  .takes = BIT(SPEC) | BIT(TOPO) | BIT(TUNING),
	  .needs = BIT(SPEC),
	  .notes =
		  "The specification is described in swingplan(1). With --tuning, --topo has the rates that\n"
		  "links should have.",
	  .run = allocate_run },
	{ .name = "orders",
	  .text = "split a vector among orders of dimensions for the least time",
	  .takes = BIT(SPEC),
	  .needs = BIT(SPEC),
	  .notes = "The specification is described in swingplan(1).",
	  .run = orders_run },
	{ .name = "sparse",
	  .text = "bytes and time of a sparse allreduce by each mode, see swingcoll_sparse_allreduce(3)",
	  .takes = BIT(SPARSE_RANKS) | BIT(COUNT) | BIT(DENSITY) | BIT(OVERLAP) | BIT(DTYPE) |
		   BIT(LINK_GBPS) | BIT(STEP_NS),
	  .needs = BIT(SPARSE_RANKS) | BIT(COUNT) | BIT(DENSITY),
	  .notes = "The ranks form a ring.",
	  .run = sparse_run },
	{ .name = "forest",
	  .text = "the fastest trees on any network, and plans of them",
	  .takes = BIT(GRAPH) | BIT(TOPO) | BIT(OP) | BIT(ROOTS) | BIT(ROOT_NAME) | BIT(MEMBERS) |
		   BIT(TREES) | BIT(OUT_PLANS) | BIT(FOR_SIZE) | BIT(PIECES) | BIT(CHANNELS) |
		   BIT(LINK_GBPS) | BIT(HOP_NS) | BIT(STEP_NS) | BIT(TUNING) | BIT(FORMAT),
	  .notes = "The graph file is described in swingplan(1).",
	  .run = forest_run },
	{ .name = "figures",
	  .text = "tables that compare the algorithms on a set of tori, as text and JSON",
	  .takes = BIT(TOPO) | BIT(OUT_DIR),
	  .needs = BIT(OUT_DIR),
	  .notes = "tools/bench/plot of the source tree draws pictures from figures.json.",
	  .run = figures_run },
};

#define NVERBS (sizeof(verbs) / sizeof(verbs[0]))

static void usage(FILE *f)
{
	fprintf(f, "Usage: swingplan VERB [options]\n\n");
	for (size_t i = 0; i < NVERBS; i++)
		fprintf(f, "  %-10s %s\n", verbs[i].name, verbs[i].text);
	fprintf(f, "\n'swingplan VERB --help' lists the options of a verb.\n"
		   "\nExit status: 0; 1 if a plan is wrong; 2 on other errors.\n");
}

static const struct verb *find(const char *name)
{
	char names[256] = "";

	for (size_t i = 0; i < NVERBS; i++) {
		if (!strcmp(name, verbs[i].name))
			return &verbs[i];
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 i ? ", " : "", verbs[i].name);
	}
	plan_bad("no verb '%s': expected %s", name, names);
}

int main(int argc, char **argv)
{
	struct plan_options opt;
	const struct verb *verb;
	int status;

	/*
	 * By default glibc takes less and less from mmap as large blocks are freed: scratch memory of one algorithm then
	 * stays in the heap, in gaps that the next one does not fit in. With a fixed threshold it goes back.
	 */
	mallopt(M_MMAP_THRESHOLD, SCRATCH_BYTES);
	if (argc < 2) {
		usage(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		usage(stdout);
		return cli_finish(plan_prog, 0);
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("swingplan %s\n", swingcoll_version());
		return cli_finish(plan_prog, 0);
	}
	verb = find(argv[1]);
	plan_parse(&opt, verb, argc - 1, argv + 1);
	status = verb->run(&opt);
	plan_options_free(&opt);
	plan_progress_end();
	return cli_finish(plan_prog, status);
}
