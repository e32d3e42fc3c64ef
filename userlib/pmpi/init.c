// SPDX-License-Identifier: LGPL-2.1-or-later
/* Begin and end of MPI, in C. Open MPI's Fortran has names of its own: fortran.c. */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/entry.h"
#include "pmpi/requests.h"

#ifdef OPEN_MPI
#define MPI_NAME "Open MPI"
#define OTHER_NAME "MPICH"
#define OTHER_SYMBOL "MPIX_Grequest_start"
#else
#define MPI_NAME "MPICH"
#define OTHER_NAME "Open MPI"
#define OTHER_SYMBOL "ompi_mpi_comm_world"
#endif

/*
 * Both MPIs in one process: calls go to one and handles are the other's. The program would crash, or
 * wait for ever.
 */
static void refuse_mixture(void)
{
	if (!dlsym(RTLD_DEFAULT, OTHER_SYMBOL))
		return;
	fprintf(stderr,
		"swingcoll-pmpi: %s: this is the library for " MPI_NAME ", and " OTHER_NAME
		" is loaded, too: start the program with swingctl mpi, which sets the right one\n",
		program_invocation_short_name);
	exit(2);
}

/*
 * All ranks are done with their collectives. Requests that the program has freed may still run: other ranks
 * need them to end, and their communicators are freed here.
 */
static void end(void)
{
	bool active = pmpi_world.active, idle = pmpi_progress_drain();

	pmpi_stats_print();
	pmpi_world_end();
	if (!active)
		return;
	if (idle)
		pmpi_comm_exit();
	pmpi_messages_exit();
	pmpi_progress_exit();
}

/*
 * MPI ends with the attributes of MPI_COMM_SELF, the last one first. Programs may call collectives and start
 * persistent ones from the functions that delete theirs; the one set here is deleted after them.
 */
static bool ends_last;

static int deleted(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)key;
	(void)value;
	(void)extra;
	end();
	return MPI_SUCCESS;
}

static bool set_last(void)
{
	int key, ret;

	if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &key, NULL) != MPI_SUCCESS)
		return false;
	ret = PMPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
	PMPI_Comm_free_keyval(&key);
	return ret == MPI_SUCCESS;
}

static bool is_ours(const char *name)
{
	const void *function = dlsym(RTLD_DEFAULT, name);
	Dl_info its, own;

	return !function || (dladdr(function, &its) && dladdr(&ends_last, &own) &&
			     its.dli_fbase == own.dli_fbase);
}

/*
 * Functions that a tool has taken from this library, as bits: a program linked with one calls MPI's, while
 * another program of the job calls the library's.
 */
static uint64_t taken_by_tools(void)
{
	uint64_t taken = 0;
	char name[64];

	for (int i = 0; i < PMPI_NR_NAMES; i++) {
		bool ours = is_ours(pmpi_names[i]);

#ifdef OPEN_MPI
		/* Its Fortran calls these. */
		for (int k = 0; (name[k] = (char)tolower(pmpi_names[i][k])); k++)
			;
		ours &= is_ours(strcat(name, "_"));
#else
		(void)name;
#endif
		taken |= (uint64_t)!ours << i;
	}
	return taken;
}

static void begin(void)
{
	int level = MPI_THREAD_SINGLE;

	PMPI_Query_thread(&level);
	pmpi_threads = level == MPI_THREAD_MULTIPLE;
	ends_last = set_last();
	pmpi_world_agree((pmpi_gets_starts() ? UINT64_MAX : ~PMPI_PERSISTENT_NAMES) &
			 ~taken_by_tools());
	if (!pmpi_world.active)
		return;
	pmpi_types_init();
	pmpi_comm_init();
	pmpi_progress_init();
	pmpi_messages_init();
}

int pmpi_Init(int *argc, char ***argv)
{
	int ret;

	refuse_mixture();
	ret = PMPI_Init(argc, argv);
	if (ret == MPI_SUCCESS)
		begin();
	return ret;
}

int pmpi_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int ret;

	refuse_mixture();
	ret = PMPI_Init_thread(argc, argv, required, provided);
	if (ret == MPI_SUCCESS)
		begin();
	return ret;
}

int pmpi_Finalize(void)
{
	if (!ends_last)
		end();
	return PMPI_Finalize();
}

PMPI_PUBLIC int MPI_Init(int *argc, char ***argv)
{
	return pmpi_Init(argc, argv);
}

PMPI_PUBLIC int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	return pmpi_Init_thread(argc, argv, required, provided);
}

PMPI_PUBLIC int MPI_Finalize(void)
{
	return pmpi_Finalize();
}
