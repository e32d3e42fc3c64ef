// SPDX-License-Identifier: LGPL-2.1-or-later
/* Nonblocking collectives: each describes itself, and goes to swingcoll or to MPI. */
#include "pmpi/entry.h"
#include "pmpi/requests.h"

#define PMPI_NONBLOCKING
#include "pmpi/collective_template.h"
#include "pmpi/vector_template.h"
#if MPI_VERSION >= 4
#define PMPI_LARGE
#include "pmpi/collective_template.h"
#include "pmpi/vector_template.h"
#endif

/* The one call for requests in which MPICH does not poll them. */
PMPI_PUBLIC int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	pmpi_progress_poll();
	return PMPI_Request_get_status(request, flag, status);
}
