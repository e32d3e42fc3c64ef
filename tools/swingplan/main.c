// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan: look at algorithms without running them: their plans, proofs that they are right, and what they
 * cost on a network by the library's model. Needs neither the module nor more than one machine.
 */
#include "swingplan.h"

#include <stdlib.h>
#include <string.h>

#include "swingcoll.h"

#define BIT(name) (1u << OPTION_##name)
#define NETWORK (BIT(LINK_GBPS) | BIT(HOP_NS) | BIT(STEP_NS) | BIT(ACK_BYTES))

static const struct verb verbs[] = {
	{ "list", "the algorithms", 0, 0, list_run, NULL },
	{ "show", "what an algorithm does on a topology, and a rank's plan",
	  BIT(ALGO) | BIT(TOPO) | BIT(OP) | BIT(ROOT) | BIT(RANK) | BIT(PORTS),
	  BIT(ALGO) | BIT(TOPO), show_run, NULL },
	{ "verify", "prove plans right, or find what is wrong with them",
	  BIT(ALGO) | BIT(TOPO) | BIT(OP) | BIT(ROOT) | BIT(RANKS) | BIT(PORTS),
	  BIT(ALGO) | BIT(TOPO), verify_run, NULL },
	{ "simulate", "time over size by the model, as a table and as a picture",
	  BIT(ALGO) | BIT(TOPO) | BIT(OP) | BIT(ROOT) | BIT(PORTS) | BIT(SIZE) | NETWORK |
		  BIT(MODEL) | BIT(PLOT) | BIT(PLOT_GAIN),
	  BIT(ALGO) | BIT(TOPO), simulate_run, NULL },
	{ "choose", "what the library would take by itself, and why",
	  BIT(TOPO) | BIT(OP) | BIT(SIZE) | NETWORK | BIT(DTYPE) | BIT(REDOP) | BIT(REORDER) |
		  BIT(TUNING),
	  BIT(TOPO), choose_run, NULL },
	{ "export", "write the plans of all ranks as text", 0, 0, NULL, swingplan_export },
	{ "import", "check plans from a file, or from MSCCL's XML, and write them as text", 0, 0,
	  NULL, swingplan_import },
	{ "figures", "tables and pictures that compare the algorithms on a set of tori",
	  BIT(TOPO) | BIT(OUT), BIT(OUT), figures_run, NULL },
};

#define NVERBS (sizeof(verbs) / sizeof(verbs[0]))

static void usage(FILE *f)
{
	fprintf(f, "Usage: swingplan VERB [options]\n\n");
	for (size_t i = 0; i < NVERBS; i++)
		fprintf(f, "  %-10s %s\n", verbs[i].name, verbs[i].text);
	fprintf(f,
		"\n'swingplan VERB --help' lists the options of a verb. All but export take --json.\n"
		"\nExit status: 0, 1 if a plan is wrong, 2 if what was asked for cannot be done.\n");
}

static const struct verb *find(const char *name)
{
	for (size_t i = 0; i < NVERBS; i++)
		if (!strcmp(name, verbs[i].name))
			return &verbs[i];
	fprintf(stderr, "swingplan: there is no verb '%s'; there are:", name);
	for (size_t i = 0; i < NVERBS; i++)
		fprintf(stderr, "%s %s", i ? "," : "", verbs[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

int main(int argc, char **argv)
{
	struct plan_options opt = { 0 };
	const struct verb *verb;
	int status;

	if (argc < 2) {
		usage(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		usage(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("swingplan %s\n", swingcoll_version());
		return 0;
	}
	verb = find(argv[1]);
	if (verb->run_alone)
		return verb->run_alone(argc - 1, argv + 1);
	plan_parse(&opt, verb, argc - 1, argv + 1);
	status = verb->run(&opt);
	plan_options_free(&opt);
	if (fflush(stdout) || ferror(stdout))
		plan_bad("cannot write to standard output");
	return status;
}
