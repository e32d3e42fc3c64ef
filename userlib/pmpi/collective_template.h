/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The collectives that swingcoll has, blocking or not: see template.h. */
#include "pmpi/template.h"

/*
 * One function: its parameters and arguments, what tells a repeated call (the count and type of the
 * receiving side, and what pmpi_passes() calls op), and the other fields of struct pmpi_call.
 */
#define ENTRY(name_, iname_, id, collective, params, args, count_, type_, op_, ...)                \
	int OURS(name_, iname_) params                                                             \
	{                                                                                          \
		struct pmpi_call c;                                                                \
		int ret;                                                                           \
                                                                                                   \
		if (pmpi_passes(ID(id), comm, type_, count_, op_))                                 \
			return THEIRS(name_, iname_) args;                                         \
		c = (struct pmpi_call){ .name = ID(id),                                            \
					.coll = SWINGCOLL_##collective,                            \
					.recv_count = count_,                                      \
					.recv_type = type_,                                        \
					.mpi = comm,                                               \
					.memo = op_,                                               \
					__VA_ARGS__ };                                             \
		if (OFFLOAD(&c, &ret))                                                             \
			return ret;                                                                \
		ret = THEIRS(name_, iname_) args;                                                  \
		pmpi_passed(&c);                                                                   \
		return ret;                                                                        \
	}                                                                                          \
	EXPORT(name_, iname_)

ENTRY(Allreduce, Iallreduce, ALLREDUCE, ALLREDUCE,
      (const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op,
       MPI_Comm comm REQUEST_PARAM),
      (send, recv, count, type, op, comm REQUEST_ARG), count, type, PMPI_HANDLE(op), .send = send,
      .recv = recv, .op = op);

ENTRY(Reduce, Ireduce, REDUCE, REDUCE,
      (const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op, int root,
       MPI_Comm comm REQUEST_PARAM),
      (send, recv, count, type, op, root, comm REQUEST_ARG), count, type, PMPI_HANDLE(op),
      .send = send, .recv = recv, .op = op, .root = root);

ENTRY(Bcast, Ibcast, BCAST, BROADCAST,
      (void *buf, COUNT count, MPI_Datatype type, int root, MPI_Comm comm REQUEST_PARAM),
      (buf, count, type, root, comm REQUEST_ARG), count, type, (uint64_t)root, .recv = buf,
      .root = root);

ENTRY(Allgather, Iallgather, ALLGATHER, ALLGATHER,
      (const void *send, COUNT send_count, MPI_Datatype send_type, void *recv, COUNT recv_count,
       MPI_Datatype recv_type, MPI_Comm comm REQUEST_PARAM),
      (send, send_count, send_type, recv, recv_count, recv_type, comm REQUEST_ARG), recv_count,
      recv_type, 0, .send = send, .recv = recv, .send_count = send_count, .send_type = send_type);

ENTRY(Alltoall, Ialltoall, ALLTOALL, ALLTOALL,
      (const void *send, COUNT send_count, MPI_Datatype send_type, void *recv, COUNT recv_count,
       MPI_Datatype recv_type, MPI_Comm comm REQUEST_PARAM),
      (send, send_count, send_type, recv, recv_count, recv_type, comm REQUEST_ARG), recv_count,
      recv_type, 0, .send = send, .recv = recv, .send_count = send_count, .send_type = send_type);

ENTRY(Reduce_scatter_block, Ireduce_scatter_block, REDUCE_SCATTER_BLOCK, REDUCE_SCATTER,
      (const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op,
       MPI_Comm comm REQUEST_PARAM),
      (send, recv, count, type, op, comm REQUEST_ARG), count, type, PMPI_HANDLE(op), .send = send,
      .recv = recv, .op = op);

#ifndef PMPI_LARGE
ENTRY(Barrier, Ibarrier, BARRIER, BARRIER, (MPI_Comm comm REQUEST_PARAM), (comm REQUEST_ARG), 0,
      MPI_BYTE, 0);
#endif

/* Equal counts, which all ranks pass alike, make it a reduce-scatter of swingcoll. */
int OURS(Reduce_scatter, Ireduce_scatter)(const void *send, void *recv, const COUNT *counts,
					  MPI_Datatype type, MPI_Op op, MPI_Comm comm REQUEST_PARAM)
{
	struct pmpi_call c = {
		.name = ID(REDUCE_SCATTER),
		.coll = SWINGCOLL_REDUCE_SCATTER,
		.send = send,
		.recv = recv,
		.recv_type = type,
		.op = op,
		.mpi = comm,
		.memo = PMPI_NO_MEMO,
	};
	int ret;

	for (int r = pmpi_comm_size(comm); r-- > 0;) {
		c.recv_count = counts[0];
		c.uneven |= counts[r] != counts[0];
	}
	if (OFFLOAD(&c, &ret))
		return ret;
	ret = THEIRS(Reduce_scatter, Ireduce_scatter)(send, recv, counts, type, op,
						      comm REQUEST_ARG);
	pmpi_passed(&c);
	return ret;
}
EXPORT(Reduce_scatter, Ireduce_scatter);
#undef ENTRY
