/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For others.c: each function, for counts COUNT and displacements DISPL; NAME() and MPIS() make its names. */
#undef OTHER
#define OTHER(id, name, reason, parameters, arguments)                                             \
	PMPI_PUBLIC int NAME(name) parameters                                                      \
	{                                                                                          \
		pmpi_count_fallback(PMPI_##id, pmpi_world.active ? reason : pmpi_world.why);       \
		return MPIS(name) arguments;                                                       \
	}

OTHER(IALLTOALLW, Ialltoallw, PMPI_WHY_COUNTS,
      (const void *send, const COUNT *send_counts, const DISPL *send_displs,
       const MPI_Datatype *send_types, void *recv, const COUNT *recv_counts,
       const DISPL *recv_displs, const MPI_Datatype *recv_types, MPI_Comm comm,
       MPI_Request *request),
      (send, send_counts, send_displs, send_types, recv, recv_counts, recv_displs, recv_types, comm,
       request))
