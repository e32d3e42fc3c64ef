// SPDX-License-Identifier: LGPL-2.1-or-later
/* Nonblocking collectives: each describes itself, and goes to swingcoll or to MPI. */
#include "pmpi/entry.h"
#include "pmpi/requests.h"

#include "pmpi/nonblocking_template.h"
#if MPI_VERSION >= 4
#define PMPI_LARGE
#include "pmpi/nonblocking_template.h"
#endif

int pmpi_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	struct pmpi_call c = {
		.name = PMPI_IBARRIER,
		.coll = SWINGCOLL_BARRIER,
		.recv_type = MPI_BYTE,
		.mpi = comm,
		.memo = PMPI_NO_MEMO,
	};
	int ret;

	if (pmpi_begin(&c, request, &ret))
		return ret;
	return PMPI_Ibarrier(comm, request);
}
PMPI_EXPORT(Ibarrier);

/* The one call for requests in which MPICH does not poll them. */
PMPI_PUBLIC int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	pmpi_progress_poll();
	return PMPI_Request_get_status(request, flag, status);
}
