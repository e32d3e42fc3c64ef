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

/*
 * The side that is read here is the one that every rank has, and root unless it is in place: what is
 * root's alone may be anything elsewhere.
 */
int pmpi_Gather(const void *send, int send_count, MPI_Datatype send_type, void *recv,
		int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm)
{
	bool in_place = send == MPI_IN_PLACE;
	struct pmpi_call c = {
		.name = PMPI_GATHER,
		.coll = SWINGCOLL_GATHER,
		.send = send,
		.recv = recv,
		.recv_count = in_place ? recv_count : send_count,
		.recv_type = in_place ? recv_type : send_type,
		.root_count = recv_count,
		.root_type = recv_type,
		.root = root,
		.mpi = comm,
		.memo = (uint64_t)root,
	};
	int ret;

	if (pmpi_passes(PMPI_GATHER, comm, c.recv_type, c.recv_count, c.memo))
		return PMPI_Gather(send, send_count, send_type, recv, recv_count, recv_type, root,
				   comm);
	if (pmpi_offload(&c, &ret))
		return ret;
	ret = PMPI_Gather(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
	pmpi_passed(&c);
	return ret;
}
PMPI_EXPORT(Gather);

int pmpi_Scatter(const void *send, int send_count, MPI_Datatype send_type, void *recv,
		 int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm)
{
	bool in_place = recv == MPI_IN_PLACE;
	struct pmpi_call c = {
		.name = PMPI_SCATTER,
		.coll = SWINGCOLL_SCATTER,
		.send = send,
		.recv = recv,
		.recv_count = in_place ? send_count : recv_count,
		.recv_type = in_place ? send_type : recv_type,
		.root_count = send_count,
		.root_type = send_type,
		.root = root,
		.mpi = comm,
		.memo = (uint64_t)root,
	};
	int ret;

	if (pmpi_passes(PMPI_SCATTER, comm, c.recv_type, c.recv_count, c.memo))
		return PMPI_Scatter(send, send_count, send_type, recv, recv_count, recv_type, root,
				    comm);
	if (pmpi_offload(&c, &ret))
		return ret;
	ret = PMPI_Scatter(send, send_count, send_type, recv, recv_count, recv_type, root, comm);
	pmpi_passed(&c);
	return ret;
}
PMPI_EXPORT(Scatter);
