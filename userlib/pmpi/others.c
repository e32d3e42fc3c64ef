// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Collectives that MPI carries out, and that are counted: those that swingcoll does not have, and
 * gatherv and scatterv, whose counts only the root knows. To tell them to all ranks would be a
 * collective more.
 */
#include "pmpi/entry.h"

#define OTHER(id, name, parameters, arguments)                                                     \
	PMPI_PUBLIC int MPI_##name parameters                                                      \
	{                                                                                          \
		pmpi_count_fallback(PMPI_##id,                                                     \
				    pmpi_world.active ? PMPI_WHY_FUNCTION : pmpi_world.why);       \
		return PMPI_##name arguments;                                                      \
	}

OTHER(GATHERV, Gatherv,
      (const void *send, int send_count, MPI_Datatype send_type, void *recv, const int *counts,
       const int *displs, MPI_Datatype recv_type, int root, MPI_Comm comm),
      (send, send_count, send_type, recv, counts, displs, recv_type, root, comm))
OTHER(SCATTERV, Scatterv,
      (const void *send, const int *counts, const int *displs, MPI_Datatype send_type, void *recv,
       int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm),
      (send, counts, displs, send_type, recv, recv_count, recv_type, root, comm))
OTHER(ALLTOALLV, Alltoallv,
      (const void *send, const int *send_counts, const int *send_displs, MPI_Datatype send_type,
       void *recv, const int *recv_counts, const int *recv_displs, MPI_Datatype recv_type,
       MPI_Comm comm),
      (send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs, recv_type, comm))
OTHER(ALLTOALLW, Alltoallw,
      (const void *send, const int *send_counts, const int *send_displs,
       const MPI_Datatype *send_types, void *recv, const int *recv_counts, const int *recv_displs,
       const MPI_Datatype *recv_types, MPI_Comm comm),
      (send, send_counts, send_displs, send_types, recv, recv_counts, recv_displs, recv_types,
       comm))
OTHER(SCAN, Scan,
      (const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (send, recv, count, type, op, comm))
OTHER(EXSCAN, Exscan,
      (const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (send, recv, count, type, op, comm))
