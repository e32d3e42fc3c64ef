// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Collectives that MPI carries out, and that are counted. Only the root knows the counts of a gatherv
 * or scatterv, and each rank only its own of an alltoallv: swingcoll needs them on all ranks, and
 * not even the decision to tell them, by a collective more, could depend on what a rank knows.
 */
#include "pmpi/entry.h"

#define OTHER_(id, name, parameters, arguments)                                                    \
	PMPI_PUBLIC int MPI_##name parameters                                                      \
	{                                                                                          \
		pmpi_count_fallback(PMPI_##id,                                                     \
				    pmpi_world.active ? PMPI_WHY_FUNCTION : pmpi_world.why);       \
		return PMPI_##name arguments;                                                      \
	}

/* Each function, and the nonblocking one. */
#define OTHER(id, name, iname, parameters, arguments)                                              \
	OTHER_(id, name, (UNPACK parameters), (UNPACK arguments))                                  \
	OTHER_(I##id, iname, (UNPACK parameters, MPI_Request * request),                           \
	       (UNPACK arguments, request))
#define UNPACK(...) __VA_ARGS__

OTHER(GATHERV, Gatherv, Igatherv,
      (const void *send, int send_count, MPI_Datatype send_type, void *recv, const int *counts,
       const int *displs, MPI_Datatype recv_type, int root, MPI_Comm comm),
      (send, send_count, send_type, recv, counts, displs, recv_type, root, comm))
OTHER(SCATTERV, Scatterv, Iscatterv,
      (const void *send, const int *counts, const int *displs, MPI_Datatype send_type, void *recv,
       int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm),
      (send, counts, displs, send_type, recv, recv_count, recv_type, root, comm))
OTHER(ALLTOALLV, Alltoallv, Ialltoallv,
      (const void *send, const int *send_counts, const int *send_displs, MPI_Datatype send_type,
       void *recv, const int *recv_counts, const int *recv_displs, MPI_Datatype recv_type,
       MPI_Comm comm),
      (send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs, recv_type, comm))
OTHER(ALLTOALLW, Alltoallw, Ialltoallw,
      (const void *send, const int *send_counts, const int *send_displs,
       const MPI_Datatype *send_types, void *recv, const int *recv_counts, const int *recv_displs,
       const MPI_Datatype *recv_types, MPI_Comm comm),
      (send, send_counts, send_displs, send_types, recv, recv_counts, recv_displs, recv_types,
       comm))
OTHER_(ISCAN, Iscan,
       (const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
	MPI_Request *request),
       (send, recv, count, type, op, comm, request))
OTHER_(IEXSCAN, Iexscan,
       (const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
	MPI_Request *request),
       (send, recv, count, type, op, comm, request))
