// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Persistent collectives, which Open MPI 4 has as an extension, MPIX_Allreduce_init() and so on, and the
 * functions that start and free their requests (requests.c).
 */
#include <dlfcn.h>

#include "pmpi/entry.h"
#include "pmpi/requests.h"

#define PMPI_PERSISTENT
#if MPI_VERSION >= 4
#include "pmpi/collective_template.h"
#include "pmpi/vector_template.h"
#define PMPI_LARGE
#include "pmpi/collective_template.h"
#include "pmpi/vector_template.h"
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
#include "pmpi/collective_template.h"
#include "pmpi/vector_template.h"
#endif
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

PMPI_PUBLIC int MPI_Cancel(MPI_Request *request)
{
	return pmpi_Cancel(request);
}

/*
 * A tool that the program is linked with, or that comes first in LD_PRELOAD, may define these as well, and
 * call those of MPI by the names of the profiling interface: a persistent request of swingcoll would never
 * start then.
 */
#define DEFINED_HERE(name)                                                                         \
	extern __typeof__(MPI_##name) own_##name                                                   \
		__attribute__((alias("MPI_" #name), visibility("hidden")))
DEFINED_HERE(Start);
DEFINED_HERE(Startall);
DEFINED_HERE(Request_free);
DEFINED_HERE(Cancel);

bool pmpi_gets_starts(void)
{
	return dlsym(RTLD_DEFAULT, "MPI_Start") == (void *)own_Start &&
	       dlsym(RTLD_DEFAULT, "MPI_Startall") == (void *)own_Startall &&
	       dlsym(RTLD_DEFAULT, "MPI_Request_free") == (void *)own_Request_free &&
	       dlsym(RTLD_DEFAULT, "MPI_Cancel") == (void *)own_Cancel;
}
