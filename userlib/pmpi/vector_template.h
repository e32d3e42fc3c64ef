/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The collectives of vector.c, blocking or not: see template.h. */
#include "pmpi/template.h"

/* One function: its parameters and arguments, its root or 0, and its sides. */
#undef VECTOR
#define VECTOR(name_, iname_, id, collective, params, args, root_, send_, recv_)                   \
	static PMPI_APART int DECIDE(name_, iname_) params                                         \
	{                                                                                          \
		struct pmpi_vector v = {                                                           \
			.call = { .name = ID(id),                                                  \
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
		if (OFFLOAD_VECTOR(&v, &ret))                                                      \
			return ret;                                                                \
		ret = THEIRS(name_, iname_) args;                                                  \
		pmpi_passed(&v.call);                                                              \
		return ret;                                                                        \
	}                                                                                          \
	int OURS(name_, iname_) params                                                             \
	{                                                                                          \
		if (pmpi_passes(ID(id), comm, MPI_BYTE, 0, 0))                                     \
			return THEIRS(name_, iname_) args;                                         \
		return DECIDE(name_, iname_) args;                                                 \
	}                                                                                          \
	EXPORT(name_, iname_)
#undef OFFLOAD_VECTOR
#ifdef PMPI_NONBLOCKING
#define OFFLOAD_VECTOR(v, ret) pmpi_begin_vector(v, request, ret)
#elif defined(PMPI_PERSISTENT)
#define OFFLOAD_VECTOR(v, ret) pmpi_begin_persistent_vector(v, request, ret)
#else
#define OFFLOAD_VECTOR(v, ret) pmpi_offload_vector(v, ret)
#endif
#undef SIDE
#define SIDE(...)                                                                                  \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

VECTOR(Gatherv, Igatherv, GATHERV, GATHER,
       (const void *send, COUNT send_count, MPI_Datatype send_type, void *recv, const COUNT *counts,
	const DISPL *displs, MPI_Datatype recv_type, int root, MPI_Comm comm REQUEST_PARAM),
       (send, send_count, send_type, recv, counts, displs, recv_type, root, comm REQUEST_ARG), root,
       (.buf = (void *)send, .count = send_count, .type = send_type),
       (.buf = recv, ARRAYS(counts, displs), .type = recv_type));

VECTOR(Scatterv, Iscatterv, SCATTERV, SCATTER,
       (const void *send, const COUNT *counts, const DISPL *displs, MPI_Datatype send_type,
	void *recv, COUNT recv_count, MPI_Datatype recv_type, int root,
	MPI_Comm comm REQUEST_PARAM),
       (send, counts, displs, send_type, recv, recv_count, recv_type, root, comm REQUEST_ARG), root,
       (.buf = (void *)send, ARRAYS(counts, displs), .type = send_type),
       (.buf = recv, .count = recv_count, .type = recv_type));

VECTOR(Alltoallv, Ialltoallv, ALLTOALLV, ALLTOALL,
       (const void *send, const COUNT *send_counts, const DISPL *send_displs,
	MPI_Datatype send_type, void *recv, const COUNT *recv_counts, const DISPL *recv_displs,
	MPI_Datatype recv_type, MPI_Comm comm REQUEST_PARAM),
       (send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs, recv_type,
	comm REQUEST_ARG),
       0, (.buf = (void *)send, ARRAYS(send_counts, send_displs), .type = send_type),
       (.buf = recv, ARRAYS(recv_counts, recv_displs), .type = recv_type));

VECTOR(Alltoallw, Ialltoallw, ALLTOALLW, ALLTOALL,
       (const void *send, const COUNT *send_counts, const DISPL *send_displs,
	const MPI_Datatype *send_types, void *recv, const COUNT *recv_counts,
	const DISPL *recv_displs, const MPI_Datatype *recv_types, MPI_Comm comm REQUEST_PARAM),
       (send, send_counts, send_displs, send_types, recv, recv_counts, recv_displs, recv_types,
	comm REQUEST_ARG),
       0, (.buf = (void *)send, ARRAYS(send_counts, send_displs), .types = send_types),
       (.buf = recv, ARRAYS(recv_counts, recv_displs), .types = recv_types));
