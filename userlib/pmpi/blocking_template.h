/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The blocking collectives that swingcoll has. */
#include "pmpi/template.h"

int OURS(Allreduce)(const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op,
		    MPI_Comm comm)
{
	struct pmpi_call c;
	int ret;

	if (pmpi_passes(PMPI_ALLREDUCE, comm, type, count, PMPI_HANDLE(op)))
		return THEIRS(Allreduce)(send, recv, count, type, op, comm);
	c = (struct pmpi_call){
		.name = PMPI_ALLREDUCE,
		.coll = SWINGCOLL_ALLREDUCE,
		.send = send,
		.recv = recv,
		.recv_count = count,
		.recv_type = type,
		.op = op,
		.mpi = comm,
		.memo = PMPI_HANDLE(op),
	};
	if (pmpi_offload(&c, &ret))
		return ret;
	ret = THEIRS(Allreduce)(send, recv, count, type, op, comm);
	pmpi_passed(&c);
	return ret;
}
EXPORT(Allreduce);

int OURS(Reduce)(const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op, int root,
		 MPI_Comm comm)
{
	struct pmpi_call c;
	int ret;

	if (pmpi_passes(PMPI_REDUCE, comm, type, count, PMPI_HANDLE(op)))
		return THEIRS(Reduce)(send, recv, count, type, op, root, comm);
	c = (struct pmpi_call){
		.name = PMPI_REDUCE,
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
	if (pmpi_offload(&c, &ret))
		return ret;
	ret = THEIRS(Reduce)(send, recv, count, type, op, root, comm);
	pmpi_passed(&c);
	return ret;
}
EXPORT(Reduce);

int OURS(Bcast)(void *buf, COUNT count, MPI_Datatype type, int root, MPI_Comm comm)
{
	struct pmpi_call c;
	int ret;

	if (pmpi_passes(PMPI_BCAST, comm, type, count, (uint64_t)root))
		return THEIRS(Bcast)(buf, count, type, root, comm);
	c = (struct pmpi_call){
		.name = PMPI_BCAST,
		.coll = SWINGCOLL_BROADCAST,
		.recv = buf,
		.recv_count = count,
		.recv_type = type,
		.root = root,
		.mpi = comm,
		.memo = (uint64_t)root,
	};
	if (pmpi_offload(&c, &ret))
		return ret;
	ret = THEIRS(Bcast)(buf, count, type, root, comm);
	pmpi_passed(&c);
	return ret;
}
EXPORT(Bcast);

int OURS(Allgather)(const void *send, COUNT send_count, MPI_Datatype send_type, void *recv,
		    COUNT recv_count, MPI_Datatype recv_type, MPI_Comm comm)
{
	struct pmpi_call c;
	int ret;

	if (pmpi_passes(PMPI_ALLGATHER, comm, recv_type, recv_count, 0))
		return THEIRS(Allgather)(send, send_count, send_type, recv, recv_count, recv_type,
					 comm);
	c = (struct pmpi_call){
		.name = PMPI_ALLGATHER,
		.coll = SWINGCOLL_ALLGATHER,
		.send = send,
		.recv = recv,
		.send_count = send_count,
		.recv_count = recv_count,
		.send_type = send_type,
		.recv_type = recv_type,
		.mpi = comm,
	};
	if (pmpi_offload(&c, &ret))
		return ret;
	ret = THEIRS(Allgather)(send, send_count, send_type, recv, recv_count, recv_type, comm);
	pmpi_passed(&c);
	return ret;
}
EXPORT(Allgather);

int OURS(Alltoall)(const void *send, COUNT send_count, MPI_Datatype send_type, void *recv,
		   COUNT recv_count, MPI_Datatype recv_type, MPI_Comm comm)
{
	struct pmpi_call c;
	int ret;

	if (pmpi_passes(PMPI_ALLTOALL, comm, recv_type, recv_count, 0))
		return THEIRS(Alltoall)(send, send_count, send_type, recv, recv_count, recv_type,
					comm);
	c = (struct pmpi_call){
		.name = PMPI_ALLTOALL,
		.coll = SWINGCOLL_ALLTOALL,
		.send = send,
		.recv = recv,
		.send_count = send_count,
		.recv_count = recv_count,
		.send_type = send_type,
		.recv_type = recv_type,
		.mpi = comm,
	};
	if (pmpi_offload(&c, &ret))
		return ret;
	ret = THEIRS(Alltoall)(send, send_count, send_type, recv, recv_count, recv_type, comm);
	pmpi_passed(&c);
	return ret;
}
EXPORT(Alltoall);

int OURS(Reduce_scatter_block)(const void *send, void *recv, COUNT count, MPI_Datatype type,
			       MPI_Op op, MPI_Comm comm)
{
	struct pmpi_call c;
	int ret;

	if (pmpi_passes(PMPI_REDUCE_SCATTER_BLOCK, comm, type, count, PMPI_HANDLE(op)))
		return THEIRS(Reduce_scatter_block)(send, recv, count, type, op, comm);
	c = (struct pmpi_call){
		.name = PMPI_REDUCE_SCATTER_BLOCK,
		.coll = SWINGCOLL_REDUCE_SCATTER,
		.send = send,
		.recv = recv,
		.recv_count = count,
		.recv_type = type,
		.op = op,
		.mpi = comm,
		.memo = PMPI_HANDLE(op),
	};
	if (pmpi_offload(&c, &ret))
		return ret;
	ret = THEIRS(Reduce_scatter_block)(send, recv, count, type, op, comm);
	pmpi_passed(&c);
	return ret;
}
EXPORT(Reduce_scatter_block);

/* Equal counts, which all ranks pass alike, make it a reduce-scatter of swingcoll. */
int OURS(Reduce_scatter)(const void *send, void *recv, const COUNT *counts, MPI_Datatype type,
			 MPI_Op op, MPI_Comm comm)
{
	struct pmpi_call c = {
		.name = PMPI_REDUCE_SCATTER,
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
	if (pmpi_offload(&c, &ret))
		return ret;
	ret = THEIRS(Reduce_scatter)(send, recv, counts, type, op, comm);
	pmpi_passed(&c);
	return ret;
}
EXPORT(Reduce_scatter);
