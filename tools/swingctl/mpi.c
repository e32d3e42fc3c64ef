// SPDX-License-Identifier: GPL-2.0-only
/* swingctl mpi: runs an MPI program with the preload library for the MPI that it is linked with. */
#include "swingctl.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "swingctl/libraries.h"

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

enum mpi {
	OPENMPI,
	MPICH,
	NO_MPI,
};

static const char *const names[] = { "openmpi", "mpich", NULL };
/* Their libraries, with the numbers of the interfaces that the preload libraries are built for. */
static const char *const libraries[] = { "libmpi.so.40", "libmpich.so.12" };

/* ------------------------------------------------------------------ which MPI */

static bool is_mpi(void *arg, const char *name)
{
	enum mpi *mpi = arg;

	for (int i = 0; i < NO_MPI && *mpi == NO_MPI; i++)
		if (!strcmp(name, libraries[i]))
			*mpi = (enum mpi)i;
	return *mpi != NO_MPI;
}

/* The file that execvp(3) would run. */
static bool find_program(const char *name, char *path, size_t bytes)
{
	const char *list = getenv("PATH");

	if (strchr(name, '/'))
		return (size_t)snprintf(path, bytes, "%s", name) < bytes && !access(path, X_OK);
	while (list && *list) {
		size_t length = strcspn(list, ":");

		if ((size_t)snprintf(path, bytes, "%.*s/%s", (int)length, list, name) < bytes &&
		    !access(path, X_OK))
			return true;
		list += length + (list[length] == ':');
	}
	return false;
}

/* The interpreter of a script, in place of its path. */
static bool find_interpreter(char *path, size_t bytes)
{
	char line[256] = "", name[256] = "", word[256] = "";
	FILE *f = fopen(path, "re");
	bool script = f && fgets(line, sizeof(line), f) && !strncmp(line, "#!", 2) &&
		      sscanf(line + 2, "%255s %255s", name, word) >= 1;

	if (f)
		fclose(f);
	if (!script)
		return false;
	if (strlen(name) > 4 && !strcmp(name + strlen(name) - 4, "/env") && *word)
		return find_program(word, path, bytes);
	return find_program(name, path, bytes);
}

/* Interpreters load MPI when they run: then the launcher tells which one. */
static enum mpi launcher(void)
{
	if (getenv("OMPI_COMM_WORLD_SIZE"))
		return OPENMPI;
	return getenv("PMI_RANK") && !getenv("PMIX_NAMESPACE") ? MPICH : NO_MPI;
}

static enum mpi find_mpi(const char *program)
{
	enum mpi mpi = NO_MPI;
	char path[PATH_MAX];
	int ret;

	if (!find_program(program, path, sizeof(path))) {
		fprintf(stderr, "swingctl mpi: %s: there is no such program\n", program);
		return NO_MPI;
	}
	ret = libraries_walk(path, is_mpi, &mpi);
	if (ret == -ENOEXEC && find_interpreter(path, sizeof(path)))
		ret = libraries_walk(path, is_mpi, &mpi);
	if (mpi == NO_MPI)
		mpi = launcher();
	if (mpi == NO_MPI && ret)
		fprintf(stderr, "swingctl mpi: %s: %s: name its MPI with --mpi\n", path,
			strerror(-ret));
	else if (mpi == NO_MPI)
		fprintf(stderr,
			"swingctl mpi: %s is linked with neither %s (Open MPI) nor %s (MPICH): if it loads one of them "
			"when it runs, name that with --mpi\n",
			path, libraries[OPENMPI], libraries[MPICH]);
	return mpi;
}

/* ------------------------------------------------------------------ the library */

/* Beside the folder of this program: in the build tree, where it is installed, or where Debian puts libraries. */
static bool find_preload(enum mpi mpi, char *path, size_t bytes)
{
	static const char *const places[] = { "lib", "lib/swingcoll", "lib/*/swingcoll" };
	char self[PATH_MAX], pattern[PATH_MAX + 64], *end;
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	bool found = false;
	glob_t g;

	if (length < 0)
		return false;
	self[length] = 0;
	for (int up = 0; up < 2; up++) {
		end = strrchr(self, '/');
		if (!end)
			return false;
		*end = 0;
	}
	for (size_t i = 0; !found && i < sizeof(places) / sizeof(*places); i++) {
		snprintf(pattern, sizeof(pattern), "%s/%s/libswingcoll_pmpi_%s.so", self, places[i],
			 names[mpi]);
		if (glob(pattern, 0, NULL, &g))
			continue;
		found = (size_t)snprintf(path, bytes, "%s", g.gl_pathv[0]) < bytes;
		globfree(&g);
	}
	return found;
}

static bool set_preload(enum mpi mpi)
{
	const char *others = getenv("LD_PRELOAD");
	char path[PATH_MAX], *value;
	bool good;

	if (!find_preload(mpi, path, sizeof(path))) {
		fprintf(stderr,
			"swingctl mpi: there is no libswingcoll_pmpi_%s.so: install lib%s-dev and build again\n",
			names[mpi], names[mpi]);
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
			mpi = (enum mpi)cli_choice(&cli, names);
	if (nopts >= argc)
		cli_fail(&cli, "PROGRAM is missing (see swingctl mpi --help)");
	argv += nopts;
	if (mpi == NO_MPI)
		mpi = find_mpi(argv[0]);
	if (mpi == NO_MPI || !set_preload(mpi))
		return 2;
	execvp(argv[0], argv);
	fprintf(stderr, "swingctl mpi: %s: %s\n", argv[0], strerror(errno));
	return 2;
}
