// SPDX-License-Identifier: GPL-2.0-only
/* swingctl: shows the state of the module and of what runs on it. This file has the command line. */
#include "swingctl.h"

#include <stddef.h>
#include <string.h>
#include <swingcoll.h>

#include "common/cli.h"

static const char usage_text[] =
	"swingctl [options] COMMAND\n"
	"\n"
	"  doctor [PROGRAM]      check whether this user can use swingcoll here; say what to do if not; PROGRAM:\n"
	"                        also whether this MPI program can\n"
	"  status                communicators, their members, operations in flight, members that are late\n"
	"  stats                 counters since the module was loaded\n"
	"  metrics               the same as OpenMetrics text, for the textfile collector of node_exporter\n"
	"  info                  interface version, limits, features, reduction kernels\n"
	"  trace [COMM]          the last events of communicators, also of those that have ended; COMM: the\n"
	"                        number of one, as status and this command print it\n"
	"  mpi PROGRAM ...       run an MPI program with its collectives carried out by swingcoll, see\n"
	"                        swingctl mpi --help\n";

static const char notes_text[] =
	"Exit status: 0; 1 if doctor found a fault that keeps swingcoll from working; 2 on errors.";

enum {
	OPT_JSON,
	OPT_NEED,
	OPT_LAST,
	OPT_PERFETTO,
	OPT_JOB,
	OPT_WATCH,
};

static const struct cli_option options[] = {
	{ OPT_JSON, 'j', "json", NULL, "print JSON" },
	{ OPT_NEED, 0, "need", "BYTES",
	  "doctor: memory that a program will pin, suffixes K M G (default 64M)" },
	{ OPT_LAST, 'n', "last", "N",
	  "trace: the last N events of each communicator (default: all that are kept)" },
	{ OPT_PERFETTO, 0, "perfetto", "FILE",
	  "trace: write trace events for Perfetto and chrome://tracing to FILE, or - for standard output" },
	{ OPT_JOB, 0, "job", NULL,
	  "status: of all nodes on which a launcher has started this command: who is late, where, since when" },
	{ OPT_WATCH, 0, "watch", "SECONDS", "status --job: again and again" },
	{ 0 },
};

static const char *const commands[] = { "doctor", "status", "stats", "metrics",
					"info",	  "trace",  "mpi",   NULL };
static int (*const run[])(const struct ctl *ctl) = { ctl_doctor,  ctl_status, ctl_stats,
						     ctl_metrics, ctl_info,   ctl_trace };

int main(int argc, char **argv)
{
	struct cli cli = {
		.prog = "swingctl",
		.usage = usage_text,
		.notes = notes_text,
		.version = swingcoll_version(),
		.options = options,
		.argc = argc,
		.argv = argv,
	};
	struct ctl ctl = { .need_memlock = 64 << 20, .last = UINT64_MAX };
	int id, command;

	/* Its options are its own, and most arguments are those of the program. */
	if (argc > 1 && !strcmp(argv[1], "mpi"))
		return ctl_mpi(argc - 1, argv + 1);
	while ((id = cli_next(&cli)) != CLI_END)
		switch (id) {
		case OPT_JSON:
			ctl.json = true;
			break;
		case OPT_NEED:
			ctl.need_memlock = cli_size(&cli, 0, 1ull << 50);
			break;
		case OPT_LAST:
			ctl.last = (uint64_t)cli_number(&cli, 0, UINT32_MAX);
			break;
		case OPT_PERFETTO:
			ctl.perfetto = cli.value;
			break;
		case OPT_JOB:
			ctl.job = true;
			break;
		case OPT_WATCH:
			ctl.watch_s = (uint64_t)cli_number(&cli, 1, 86400);
			break;
		}
	cli_operand(&cli, "COMMAND");
	command = cli_choice(&cli, commands);
	if (command == (int)(sizeof(run) / sizeof(*run)))
		cli_fail(&cli, "mpi takes no options in front of it (see swingctl mpi --help)");
	if (run[command] == ctl_trace && cli_has_operand(&cli)) {
		cli_operand(&cli, "COMM");
		ctl.comm = (uint64_t)cli_number(&cli, 1, INT64_MAX);
	}
	if (run[command] == ctl_doctor && cli_has_operand(&cli))
		ctl.program = cli_operand(&cli, "PROGRAM");
	cli_end(&cli);
	if (ctl.json && run[command] == ctl_metrics)
		cli_fail(&cli, "metrics takes no --json: stats prints the same counters as JSON");
	if (cli.given & 1ull << OPT_NEED && run[command] != ctl_doctor)
		cli_fail(&cli, "--need is an option of doctor");
	if ((ctl.perfetto || ctl.last != UINT64_MAX) && run[command] != ctl_trace)
		cli_fail(&cli, "--last and --perfetto are options of trace");
	if (ctl.job && run[command] != ctl_status)
		cli_fail(&cli, "--job is an option of status");
	if (ctl.watch_s && !ctl.job)
		cli_fail(&cli, "--watch is an option of status --job");
	if (ctl.perfetto && ctl.json)
		cli_fail(&cli, "give one of --json and --perfetto");
	return cli_finish(cli.prog, ctl.job ? ctl_job(&ctl) : run[command](&ctl));
}
