/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The nonblocking collectives that swingcoll has. */
#include "pmpi/template.h"

int OURS(Iallreduce)(const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op,
		     MPI_Comm comm, MPI_Request *request)
{
	struct pmpi_call c;
	int ret;

	if (pmpi_passes(PMPI_IALLREDUCE, comm, type, count, PMPI_HANDLE(op)))
		return THEIRS(Iallreduce)(send, recv, count, type, op, comm, request);
	c = (struct pmpi_call){
		.name = PMPI_IALLREDUCE,
		.coll = SWINGCOLL_ALLREDUCE,
		.send = send,
		.recv = recv,
		.recv_count = count,
		.recv_type = type,
		.op = op,
		.mpi = comm,
		.memo = PMPI_HANDLE(op),
	};
	if (pmpi_begin(&c, request, &ret))
		return ret;
	return THEIRS(Iallreduce)(send, recv, count, type, op, comm, request);
}
EXPORT(Iallreduce);

int OURS(Ireduce)(const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op, int root,
		  MPI_Comm comm, MPI_Request *request)
{
	struct pmpi_call c;
	int ret;

	if (pmpi_passes(PMPI_IREDUCE, comm, type, count, PMPI_HANDLE(op)))
		return THEIRS(Ireduce)(send, recv, count, type, op, root, comm, request);
	c = (struct pmpi_call){
		.name = PMPI_IREDUCE,
		.coll = SWINGCOLL_REDUCE,
		.send = send,
		.recv = recv,
		.recv_count = count,
		.recv_type = type,
		.op = op,
		.root = root,
		.mpi = comm,
		.memo = PMPI_HANDLE(op),
	};
	if (pmpi_begin(&c, request, &ret))
		return ret;
	return THEIRS(Ireduce)(send, recv, count, type, op, root, comm, request);
}
EXPORT(Ireduce);

int OURS(Ibcast)(void *buf, COUNT count, MPI_Datatype type, int root, MPI_Comm comm,
		 MPI_Request *request)
{
	struct pmpi_call c;
	int ret;

	if (pmpi_passes(PMPI_IBCAST, comm, type, count, (uint64_t)root))
		return THEIRS(Ibcast)(buf, count, type, root, comm, request);
	c = (struct pmpi_call){
		.name = PMPI_IBCAST,
		.coll = SWINGCOLL_BROADCAST,
		.recv = buf,
		.recv_count = count,
		.recv_type = type,
		.root = root,
		.mpi = comm,
		.memo = (uint64_t)root,
	};
	if (pmpi_begin(&c, request, &ret))
		return ret;
	return THEIRS(Ibcast)(buf, count, type, root, comm, request);
}
EXPORT(Ibcast);

int OURS(Iallgather)(const void *send, COUNT send_count, MPI_Datatype send_type, void *recv,
		     COUNT recv_count, MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request)
{
	struct pmpi_call c;
	int ret;

	if (pmpi_passes(PMPI_IALLGATHER, comm, recv_type, recv_count, 0))
		return THEIRS(Iallgather)(send, send_count, send_type, recv, recv_count, recv_type,
					  comm, request);
	c = (struct pmpi_call){
		.name = PMPI_IALLGATHER,
		.coll = SWINGCOLL_ALLGATHER,
		.send = send,
		.recv = recv,
		.send_count = send_count,
		.recv_count = recv_count,
		.send_type = send_type,
		.recv_type = recv_type,
		.mpi = comm,
	};
	if (pmpi_begin(&c, request, &ret))
		return ret;
	return THEIRS(Iallgather)(send, send_count, send_type, recv, recv_count, recv_type, comm,
				  request);
}
EXPORT(Iallgather);

int OURS(Ialltoall)(const void *send, COUNT send_count, MPI_Datatype send_type, void *recv,
		    COUNT recv_count, MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request)
{
	struct pmpi_call c;
	int ret;

	if (pmpi_passes(PMPI_IALLTOALL, comm, recv_type, recv_count, 0))
		return THEIRS(Ialltoall)(send, send_count, send_type, recv, recv_count, recv_type,
					 comm, request);
	c = (struct pmpi_call){
		.name = PMPI_IALLTOALL,
		.coll = SWINGCOLL_ALLTOALL,
		.send = send,
		.recv = recv,
		.send_count = send_count,
		.recv_count = recv_count,
		.send_type = send_type,
		.recv_type = recv_type,
		.mpi = comm,
	};
	if (pmpi_begin(&c, request, &ret))
		return ret;
	return THEIRS(Ialltoall)(send, send_count, send_type, recv, recv_count, recv_type, comm,
				 request);
}
EXPORT(Ialltoall);

int OURS(Ireduce_scatter_block)(const void *send, void *recv, COUNT count, MPI_Datatype type,
				MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
	struct pmpi_call c;
	int ret;

	if (pmpi_passes(PMPI_IREDUCE_SCATTER_BLOCK, comm, type, count, PMPI_HANDLE(op)))
		return THEIRS(Ireduce_scatter_block)(send, recv, count, type, op, comm, request);
	c = (struct pmpi_call){
		.name = PMPI_IREDUCE_SCATTER_BLOCK,
		.coll = SWINGCOLL_REDUCE_SCATTER,
		.send = send,
		.recv = recv,
		.recv_count = count,
		.recv_type = type,
		.op = op,
		.mpi = comm,
		.memo = PMPI_HANDLE(op),
	};
	if (pmpi_begin(&c, request, &ret))
		return ret;
	return THEIRS(Ireduce_scatter_block)(send, recv, count, type, op, comm, request);
}
EXPORT(Ireduce_scatter_block);

int OURS(Ireduce_scatter)(const void *send, void *recv, const COUNT *counts, MPI_Datatype type,
			  MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
	struct pmpi_call c = {
		.name = PMPI_IREDUCE_SCATTER,
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
	if (pmpi_begin(&c, request, &ret))
		return ret;
	return THEIRS(Ireduce_scatter)(send, recv, counts, type, op, comm, request);
}
EXPORT(Ireduce_scatter);
