// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Persistent collectives, which Open MPI 4 has as an extension, MPIX_Allreduce_init() and so on, and the
 * functions that start and free their requests (requests.c).
 */

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
