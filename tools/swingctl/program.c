// SPDX-License-Identifier: GPL-2.0-only
/* Which file a command runs, which MPI that is linked with, and where the preload library for an MPI is. */
#include "swingctl/program.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cli.h"
#include "swingctl/libraries.h"

const char *const mpi_names[] = { "openmpi", "mpich", NULL };
const char *const mpi_libraries[] = { "libmpi.so.40", "libmpich.so.12" };

/* ------------------------------------------------------------------ which MPI */

static bool note_mpi(void *arg, const char *name)
{
	struct program *p = arg;

	for (int i = 0; i < NO_MPI; i++) {
		if (strcmp(name, mpi_libraries[i]))
			continue;
		if (p->mpi == NO_MPI)
			p->mpi = (enum mpi)i;
		else if (p->mpi != (enum mpi)i)
			p->both = true;
	}
	return p->both;
}

/* A folder may be entered, which is not to be run. */
static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* The file that execvp(3) would run. */
bool program_find(const char *name, char *path, size_t bytes)
{
	const char *list = getenv("PATH");

	if (strchr(name, '/'))
		return (size_t)snprintf(path, bytes, "%s", name) < bytes && is_program(path);
	while (list && *list) {
		size_t length = strcspn(list, ":");

		if ((size_t)snprintf(path, bytes, "%.*s/%s", (int)length, list, name) < bytes &&
		    is_program(path))
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
		return program_find(word, path, bytes);
	return program_find(name, path, bytes);
}

enum mpi program_launcher(void)
{
	if (cli_is_set("OMPI_COMM_WORLD_SIZE"))
		return OPENMPI;
	return cli_is_set("PMI_RANK") && !cli_is_set("PMIX_NAMESPACE") ? MPICH : NO_MPI;
}

void program_look(struct program *p, const char *name)
{
	*p = (struct program){ .mpi = NO_MPI };
	if (!program_find(name, p->path, sizeof(p->path))) {
		*p->path = 0;
		return;
	}
	p->error = libraries_walk(p->path, note_mpi, p);
	if (p->error == -ENOEXEC && find_interpreter(p->path, sizeof(p->path)))
		p->error = libraries_walk(p->path, note_mpi, p);
}

/* ------------------------------------------------------------------ the preload library */

/* Beside the folder of this program: in the build tree, where it is installed, or where Debian puts libraries. */
bool program_find_preload(enum mpi mpi, char *path, size_t bytes)
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
			 mpi_names[mpi]);
		if (glob(pattern, 0, NULL, &g))
			continue;
		found = (size_t)snprintf(path, bytes, "%s", g.gl_pathv[0]) < bytes;
		globfree(&g);
	}
	return found;
}

void program_preload_advice(enum mpi mpi, char *text, size_t bytes)
{
	snprintf(
		text, bytes,
		"install swingcoll-mpi, or, from source: apt-get install lib%s-dev, and build again",
		mpi_names[mpi]);
}
