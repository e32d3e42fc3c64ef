// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingctl doctor: MPI. A program of one MPI that another's launcher starts runs as many programs of one rank;
 * a preload library for the wrong MPI makes a program crash or does nothing; without it MPI does all by itself.
 */
#include "swingctl/doctor_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "swingctl/libraries.h"
#include "swingctl/program.h"

/* By enum mpi, for people. */
static const char *const titles[] = { "Open MPI", "MPICH" };

/* ------------------------------------------------------------------ this machine */

/* Debian's links end at orterun or prterun, or at mpiexec.hydra. */
static enum mpi launcher_of(const char *name, char *path)
{
	char found[PATH_MAX];
	const char *base;

	if (!program_find(name, found, sizeof(found)) || !realpath(found, path))
		return NO_MPI;
	base = strrchr(path, '/') + 1;
	if (!strcmp(base, "orterun") || !strcmp(base, "prterun") || strstr(base, "openmpi"))
		return OPENMPI;
	return strstr(base, "hydra") || strstr(base, "mpich") ? MPICH : NO_MPI;
}

/* What mpirun and mpiexec are; NO_MPI if they are not the same. */
static enum mpi check_launchers(struct report *r)
{
	char run[PATH_MAX], exec[PATH_MAX];
	enum mpi a = launcher_of("mpirun", run), b = launcher_of("mpiexec", exec);

	if (a != NO_MPI && b != NO_MPI && a != b) {
		result(r, WARN, "mpi",
		       "take the launcher of the MPI that a program is linked with: swingctl doctor PROGRAM",
		       "two are mixed: mpirun is %s's (%s), mpiexec %s's (%s)", titles[a], run,
		       titles[b], exec);
		return NO_MPI;
	}
	return a != NO_MPI ? a : b;
}

static void check_preload(struct report *r, enum mpi mpi, enum level level)
{
	char path[PATH_MAX], next[128];

	if (program_find_preload(mpi, path, sizeof(path))) {
		result(r, OK, "mpi", NULL, "%s: preload library %s", titles[mpi], path);
		return;
	}
	program_preload_advice(mpi, next, sizeof(next));
	result(r, level, "mpi", next,
	       "%s: there is no libswingcoll_pmpi_%s.so: its programs do not use swingcoll",
	       titles[mpi], mpi_names[mpi]);
}

/* ------------------------------------------------------------------ the environment */

/* The MPIs whose preload libraries are in LD_PRELOAD, as bits. */
static unsigned int preloaded(struct report *r)
{
	const char *list = getenv("LD_PRELOAD");
	char copy[4096], name[64], *save = NULL;
	unsigned int set = 0;

	snprintf(copy, sizeof(copy), "%s", list ? list : "");
	for (char *path = strtok_r(copy, " :", &save); path; path = strtok_r(NULL, " :", &save))
		for (int i = 0; i < NO_MPI; i++) {
			snprintf(name, sizeof(name), "libswingcoll_pmpi_%s.so", mpi_names[i]);
			if (!strstr(path, name))
				continue;
			set |= 1u << i;
			if (strchr(path, '/') && access(path, R_OK))
				result(r, WARN, "preload",
				       "correct LD_PRELOAD, or use swingctl mpi PROGRAM, which sets it",
				       "LD_PRELOAD names %s, which cannot be read", path);
		}
	if (set == 3)
		result(r, WARN, "preload", "use swingctl mpi PROGRAM, which sets the right one",
		       "two are mixed: LD_PRELOAD has the libraries for Open MPI and for MPICH");
	return set;
}

static void check_switch(struct report *r)
{
	const char *value = getenv("SWINGCOLL_PMPI");

	if (value && !strcasecmp(value, "off"))
		result(r, WARN, "preload", "unset SWINGCOLL_PMPI",
		       "SWINGCOLL_PMPI=%s: the preload libraries leave everything to MPI", value);
}

/* ------------------------------------------------------------------ a program */

/* @usual: that of mpirun and mpiexec, which another may have been taken in place of. */
static void check_launcher(struct report *r, enum mpi mpi, enum mpi usual)
{
	enum mpi by = program_launcher();
	char next[64];

	snprintf(next, sizeof(next), "start it with %s.%s", mpi == MPICH ? "mpiexec" : "mpirun",
		 mpi_names[mpi]);
	if (by != NO_MPI && by != mpi)
		result(r, FAIL, "program", next,
		       "two MPIs are mixed: the launcher is %s's, so each process is a program of one rank",
		       titles[by]);
	else if (by == NO_MPI && usual != NO_MPI && usual != mpi)
		result(r, WARN, "program", next,
		       "mpirun is %s's: by that, each process would be a program of one rank",
		       titles[usual]);
}

static void check_program(struct report *r, const char *name, enum mpi launcher, unsigned int set)
{
	struct program p;

	program_look(&p, name);
	if (!*p.path) {
		result(r, FAIL, "program", "give its path, or a name that is on PATH",
		       "%s: there is no such program", name);
		return;
	}
	if (p.both) {
		result(r, FAIL, "program",
		       "link it, and all of its libraries, with one MPI: ldd shows which library brings which",
		       "%s is linked with two MPIs, %s and %s", p.path, mpi_libraries[OPENMPI],
		       mpi_libraries[MPICH]);
		return;
	}
	if (p.mpi == NO_MPI) {
		result(r, WARN, "program",
		       "if it loads one when it runs, as Python does: mpirun ... swingctl mpi --mpi NAME PROGRAM",
		       "%s is linked with neither %s (Open MPI) nor %s (MPICH)", p.path,
		       mpi_libraries[OPENMPI], mpi_libraries[MPICH]);
		return;
	}
	result(r, OK, "program", NULL, "%s is linked with %s", p.path, titles[p.mpi]);
	check_launcher(r, p.mpi, launcher);
	if (set && !(set & 1u << p.mpi))
		result(r, FAIL, "program", "use swingctl mpi PROGRAM, which sets the right one",
		       "two MPIs are mixed: LD_PRELOAD has the library for %s",
		       titles[p.mpi == MPICH ? OPENMPI : MPICH]);
	check_preload(r, p.mpi, FAIL);
	if (set & 1u << p.mpi)
		result(r, OK, "program", NULL, "LD_PRELOAD has the preload library");
	else
		result(r, WARN, "program", "mpirun ... swingctl mpi PROGRAM",
		       "LD_PRELOAD has no preload library: MPI does all by itself");
}

void doctor_check_mpi(struct report *r, const char *program)
{
	enum mpi launcher = check_launchers(r);
	unsigned int set = preloaded(r);
	bool any = false;

	check_switch(r);
	if (program) {
		check_program(r, program, launcher, set);
		return;
	}
	for (int i = 0; i < NO_MPI; i++) {
		if (!libraries_find(mpi_libraries[i]))
			continue;
		any = true;
		check_preload(r, (enum mpi)i, WARN);
	}
	if (!any)
		result(r, OK, "mpi", NULL, "neither Open MPI 4 nor MPICH 4 is installed");
}
