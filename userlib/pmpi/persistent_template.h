/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For persistent.c: each function that is MPI's, once for counts COUNT and displacements DISPL;
 * COUNTED() and MPIS() make its names. Swingcoll has the others.
 */
#define INIT(id, name, parameters, arguments)                                                      \
	PMPI_PUBLIC int COUNTED(name) parameters                                                   \
	{                                                                                          \
		count_init(PMPI_##id##_INIT);                                                      \
		return MPIS(name) arguments;                                                       \
	}
#define REQUEST MPI_Comm comm, MPI_Info info, MPI_Request *request
#define REQUEST_ARGS comm, info, request

#define SEND const void *send, COUNT send_count, MPI_Datatype send_type
#define SEND_V                                                                                     \
	const void *send, const COUNT *send_counts, const DISPL *send_displs, MPI_Datatype send_type
#define SEND_W                                                                                     \
	const void *send, const COUNT *send_counts, const DISPL *send_displs,                      \
		const MPI_Datatype *send_types
#define RECV void *recv, COUNT recv_count, MPI_Datatype recv_type
#define RECV_V                                                                                     \
	void *recv, const COUNT *recv_counts, const DISPL *recv_displs, MPI_Datatype recv_type
#define RECV_W                                                                                     \
	void *recv, const COUNT *recv_counts, const DISPL *recv_displs,                            \
		const MPI_Datatype *recv_types
#define SEND_ARGS send, send_count, send_type
#define SEND_V_ARGS send, send_counts, send_displs, send_type
#define SEND_W_ARGS send, send_counts, send_displs, send_types
#define RECV_ARGS recv, recv_count, recv_type
#define RECV_V_ARGS recv, recv_counts, recv_displs, recv_type
#define RECV_W_ARGS recv, recv_counts, recv_displs, recv_types

INIT(ALLTOALLV, Alltoallv, (SEND_V, RECV_V, REQUEST), (SEND_V_ARGS, RECV_V_ARGS, REQUEST_ARGS))
INIT(ALLTOALLW, Alltoallw, (SEND_W, RECV_W, REQUEST), (SEND_W_ARGS, RECV_W_ARGS, REQUEST_ARGS))
INIT(GATHERV, Gatherv, (SEND, RECV_V, int root, REQUEST),
     (SEND_ARGS, RECV_V_ARGS, root, REQUEST_ARGS))
INIT(SCATTERV, Scatterv, (SEND_V, RECV, int root, REQUEST),
     (SEND_V_ARGS, RECV_ARGS, root, REQUEST_ARGS))
