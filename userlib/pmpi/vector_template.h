/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For vectors.c: the blocking collectives of vector.c; see template.h. */
#include "pmpi/template.h"

/* One function: its parameters and arguments, its root or 0, and its sides. */
#undef VECTOR
#define VECTOR(name_, id, collective, params, args, root_, send_, recv_)                           \
	static PMPI_APART int DECIDE(name_, ) params                                               \
	{                                                                                          \
		struct pmpi_vector v = {                                                           \
			.call = { .name = PMPI_##id,                                               \
				  .coll = SWINGCOLL_##collective,                                  \
				  .recv_type = MPI_BYTE,                                           \
				  .root = root_,                                                   \
				  .mpi = comm,                                                     \
				  .tells = true },                                                 \
			.send = SIDE send_,                                                        \
			.recv = SIDE recv_,                                                        \
		};                                                                                 \
		int ret;                                                                           \
                                                                                                   \
		if (pmpi_offload_vector(&v, &ret))                                                 \
			return ret;                                                                \
		ret = THEIRS(name_, ) args;                                                        \
		pmpi_passed(&v.call);                                                              \
		return ret;                                                                        \
	}                                                                                          \
	int OURS(name_, ) params                                                                   \
	{                                                                                          \
		if (pmpi_passes(PMPI_##id, comm, MPI_BYTE, 0, 0))                                  \
			return THEIRS(name_, ) args;                                               \
		return DECIDE(name_, ) args;                                                       \
	}                                                                                          \
	EXPORT(name_, )
#undef SIDE
#define SIDE(...)                                                                                  \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

VECTOR(Gatherv, GATHERV, GATHER,
       (const void *send, COUNT send_count, MPI_Datatype send_type, void *recv, const COUNT *counts,
	const DISPL *displs, MPI_Datatype recv_type, int root, MPI_Comm comm),
       (send, send_count, send_type, recv, counts, displs, recv_type, root, comm), root,
       (.buf = (void *)send, .count = send_count, .type = send_type),
       (.buf = recv, ARRAYS(counts, displs), .type = recv_type));

VECTOR(Scatterv, SCATTERV, SCATTER,
       (const void *send, const COUNT *counts, const DISPL *displs, MPI_Datatype send_type,
	void *recv, COUNT recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm),
       (send, counts, displs, send_type, recv, recv_count, recv_type, root, comm), root,
       (.buf = (void *)send, ARRAYS(counts, displs), .type = send_type),
       (.buf = recv, .count = recv_count, .type = recv_type));

VECTOR(Alltoallv, ALLTOALLV, ALLTOALL,
       (const void *send, const COUNT *send_counts, const DISPL *send_displs,
	MPI_Datatype send_type, void *recv, const COUNT *recv_counts, const DISPL *recv_displs,
	MPI_Datatype recv_type, MPI_Comm comm),
       (send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs, recv_type, comm),
       0, (.buf = (void *)send, ARRAYS(send_counts, send_displs), .type = send_type),
       (.buf = recv, ARRAYS(recv_counts, recv_displs), .type = recv_type));

VECTOR(Alltoallw, ALLTOALLW, ALLTOALL,
       (const void *send, const COUNT *send_counts, const DISPL *send_displs,
	const MPI_Datatype *send_types, void *recv, const COUNT *recv_counts,
	const DISPL *recv_displs, const MPI_Datatype *recv_types, MPI_Comm comm),
       (send, send_counts, send_displs, send_types, recv, recv_counts, recv_displs, recv_types,
	comm),
       0, (.buf = (void *)send, ARRAYS(send_counts, send_displs), .types = send_types),
       (.buf = recv, ARRAYS(recv_counts, recv_displs), .types = recv_types));
