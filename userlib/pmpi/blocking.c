// SPDX-License-Identifier: LGPL-2.1-or-later
/* Blocking collectives: each describes itself, and goes to swingcoll or to MPI. */
#include "pmpi/entry.h"

#include "pmpi/collective_template.h"
#if MPI_VERSION >= 4
#define PMPI_LARGE
#include "pmpi/collective_template.h"
#endif

/*
 * Equal shares make it an allgather of swingcoll, wherever a rank wants them. If they are equal on
 * one rank, they are on all, since the signatures are.
 */
int pmpi_Allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *recv,
		    const int *counts, const int *displs, MPI_Datatype recv_type, MPI_Comm comm)
{
	struct pmpi_call c = {
		.name = PMPI_ALLGATHERV,
		.coll = SWINGCOLL_ALLGATHER,
		.send = send,
		.recv = recv,
		.send_count = send_count,
		.send_type = send_type,
		.recv_type = recv_type,
		.mpi = comm,
		.displs = displs,
		.memo = PMPI_NO_MEMO,
	};
	int ret;

	for (int r = pmpi_comm_size(comm); r-- > 0;) {
		c.recv_count = counts[0];
		c.uneven |= counts[r] != counts[0];
	}
	if (pmpi_offload(&c, &ret))
		return ret;
	ret = PMPI_Allgatherv(send, send_count, send_type, recv, counts, displs, recv_type, comm);
	pmpi_passed(&c);
	return ret;
}
PMPI_EXPORT(Allgatherv);
