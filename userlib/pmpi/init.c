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

/*
 * A tool that the program is linked with, or that comes first in LD_PRELOAD, may define a function as well, and
 * call that of MPI by its name of the profiling interface.
 */
static bool is_ours(const char *name)
{
	const void *function = dlsym(RTLD_DEFAULT, name);
	Dl_info its, own;

	return !function || (dladdr(function, &its) && dladdr(&ends_last, &own) &&
			     its.dli_fbase == own.dli_fbase);
}

/* As Fortran calls it. MPICH's calls the C function. */
static bool is_ours_in_fortran(const char *name)
{
#ifdef OPEN_MPI
	char lower[64];
	int i;

	for (i = 0; name[i]; i++)
		lower[i] = (char)tolower(name[i]);
	strcpy(&lower[i], "_");
	return is_ours(lower);
#else
	(void)name;
	return true;
#endif
}

/*
 * Functions that this rank can offload, as bits. The others go to MPI on all ranks, of which some may run a
 * program without that tool. A persistent request of swingcoll would never start if the tool started it.
 */
static uint64_t find_ours(void)
{
	uint64_t ours = ~UINT64_C(0);

	for (int i = 0; i < PMPI_NR_NAMES; i++)
		if (!is_ours(pmpi_names[i]) || !is_ours_in_fortran(pmpi_names[i]))
			ours &= ~(UINT64_C(1) << i);
	if (!is_ours("MPI_Start") || !is_ours("MPI_Startall") || !is_ours("MPI_Request_free") ||
	    !is_ours("MPI_Cancel"))
		ours &= ~PMPI_PERSISTENT_NAMES;
	return ours;
}

static void begin(void)
{
	int level = MPI_THREAD_SINGLE;

	PMPI_Query_thread(&level);
	pmpi_threads = level == MPI_THREAD_MULTIPLE;
	ends_last = set_last();
	pmpi_world_agree(find_ours());
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
