// SPDX-License-Identifier: GPL-2.0-only
/* swingctl mpi: runs an MPI program with the preload library for the MPI that it is linked with. */
#include "swingctl.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "swingctl/program.h"

static const char usage_text[] =
	"swingctl mpi [--mpi NAME] PROGRAM [ARGUMENT...]\n"
	"\n"
	"Runs an MPI program whose collectives are carried out by swingcoll, as far as that is faster. Under\n"
	"a launcher: mpirun -n 4 swingctl mpi PROGRAM\n";

static const char notes_text[] =
	"Exit status: that of PROGRAM; 2 if it could not be started so.\n"
	"SWINGCOLL_PMPI, SWINGCOLL_PMPI_MIN and SWINGCOLL_PMPI_STATS: see swingcoll-pmpi(7).";

enum {
	OPT_MPI,
};

static const struct cli_option options[] = {
	{ OPT_MPI, 0, "mpi", "NAME",
	  "openmpi or mpich (default: the one that the program is linked with)" },
	{ 0 },
};

/* ------------------------------------------------------------------ which MPI */

/* Interpreters load MPI when they run: then the launcher tells which one. */
static enum mpi find_mpi(const char *program)
{
	struct program p;

	program_look(&p, program);
	if (!*p.path) {
		fprintf(stderr, "swingctl mpi: %s: there is no such program\n", program);
		return NO_MPI;
	}
	if (p.mpi == NO_MPI)
		p.mpi = program_launcher();
	if (p.mpi == NO_MPI && p.error)
		fprintf(stderr, "swingctl mpi: %s: %s: name its MPI with --mpi\n", p.path,
			strerror(-p.error));
	else if (p.mpi == NO_MPI)
		fprintf(stderr,
			"swingctl mpi: %s is linked with neither %s (Open MPI) nor %s (MPICH): if it loads one of them "
			"when it runs, name that with --mpi\n",
			p.path, mpi_libraries[OPENMPI], mpi_libraries[MPICH]);
	return p.mpi;
}

/* ------------------------------------------------------------------ the library */

static bool set_preload(enum mpi mpi)
{
	const char *others = getenv("LD_PRELOAD");
	char path[PATH_MAX], next[128], *value;
	bool good;

	if (!program_find_preload(mpi, path, sizeof(path))) {
		program_preload_advice(mpi, next, sizeof(next));
		fprintf(stderr, "swingctl mpi: there is no libswingcoll_pmpi_%s.so: %s\n",
			mpi_names[mpi], next);
		return false;
	}
	if (strpbrk(path, " :")) {
		fprintf(stderr,
			"swingctl mpi: %s: LD_PRELOAD takes no path with a blank or a colon: install swingcoll elsewhere\n",
			path);
		return false;
	}
	if (asprintf(&value, "%s%s%s", path, others && *others ? ":" : "", others ? others : "") <
	    0)
		return false;
	good = !setenv("LD_PRELOAD", value, 1);
	free(value);
	return good;
}

int ctl_mpi(int argc, char **argv)
{
	int nopts = 1, id;
	enum mpi mpi = NO_MPI;
	struct cli cli = {
		.prog = "swingctl mpi",
		.usage = usage_text,
		.notes = notes_text,
		.options = options,
		.argv = argv,
	};

	/* What comes behind the program's name belongs to the program. */
	while (nopts < argc && argv[nopts][0] == '-')
		nopts += !strcmp(argv[nopts], "--mpi") ? 2 : 1;
	cli.argc = nopts < argc ? nopts : argc;
	while ((id = cli_next(&cli)) != CLI_END)
		if (id == OPT_MPI)
			mpi = (enum mpi)cli_choice(&cli, mpi_names);
	if (nopts >= argc)
		cli_fail(&cli, "PROGRAM is missing (see swingctl mpi --help)");
	argv += nopts;
	if (mpi == NO_MPI)
		mpi = find_mpi(argv[0]);
	if (mpi == NO_MPI || !set_preload(mpi))
		return 2;
	execvp(argv[0], argv);
	fprintf(stderr,
		"swingctl mpi: cannot start %s: %s: give its path, or a name that is on PATH\n",
		argv[0], strerror(errno));
	return 2;
}
