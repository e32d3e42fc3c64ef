// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Persistent collectives. Open MPI 4 has them as an extension, MPIX_Allreduce_init() and so on, and
 * those of which swingcoll has the collective are offloaded by persistent requests (requests.c).
 *
 * Others, and all of MPICH's, are MPI's own, and their initialization is counted. MPICH has no engine
 * that would notice that a call of swingcoll has ended, and its module mpi_f08 starts requests by
 * their PMPI_ names, which nobody can stand in for.
 */
#include "pmpi/entry.h"
#include "pmpi/requests.h"

#if MPI_VERSION >= 4
#define COUNTED(name) MPI_##name##_init
#define MPIS(name) PMPI_##name##_init
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
#define COUNTED(name) MPIX_##name##_init
#define MPIS(name) PMPIX_##name##_init
#define PMPI_PERSISTENT
#endif
#endif

#ifdef COUNTED
static void count_init(enum pmpi_name name)
{
	pmpi_count_fallback(name, pmpi_world.active ? PMPI_WHY_FUNCTION : pmpi_world.why);
}

#define COUNT int
#define DISPL int
#include "pmpi/persistent_template.h"
#endif

#if MPI_VERSION >= 4
#undef COUNTED
#undef MPIS
#undef COUNT
#undef DISPL
#undef INIT
#undef REQUEST
#define COUNTED(name) MPI_##name##_init_c
#define MPIS(name) PMPI_##name##_init_c
#define COUNT MPI_Count
#define DISPL MPI_Aint
#define PMPI_LARGE
#include "pmpi/persistent_template.h"
#endif

#ifdef PMPI_PERSISTENT
#include "pmpi/collective_template.h"
#endif

#ifdef OPEN_MPI
PMPI_PUBLIC int MPI_Start(MPI_Request *request)
{
	return pmpi_Start(request);
}

PMPI_PUBLIC int MPI_Startall(int n, MPI_Request *requests)
{
	return pmpi_Startall(n, requests);
}

PMPI_PUBLIC int MPI_Request_free(MPI_Request *request)
{
	return pmpi_Request_free(request);
}
#endif
