// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Persistent collectives, which Open MPI 4 has as an extension, MPIX_Allreduce_init() and so on. Those
 * of which swingcoll has the collective are offloaded by persistent requests (requests.c); the others
 * are MPI's, and their initialization is counted.
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

#undef COUNT
#undef DISPL
#define PMPI_PERSISTENT
#include "pmpi/collective_template.h"
#endif

#if MPI_VERSION >= 4
#define PMPI_LARGE
#include "pmpi/collective_template.h"

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
#include "pmpi/persistent_template.h"
#endif

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
