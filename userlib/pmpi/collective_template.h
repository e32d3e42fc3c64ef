/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The collectives that swingcoll has, blocking or not: see template.h. */
#include "pmpi/template.h"

/*
 * One function: its parameters and arguments, what tells a repeated call (the count and type of the
 * receiving side, and what pmpi_passes() calls op), and the other fields of struct pmpi_call.
 */
#define ENTRY(name_, iname_, id, collective, params, args, count_, type_, op_, ...)                \
	static PMPI_APART int DECIDE(name_, iname_) params                                         \
	{                                                                                          \
		struct pmpi_call c = { .name = ID(id),                                             \
				       .coll = SWINGCOLL_##collective,                             \
				       .recv_count = count_,                                       \
				       .recv_type = type_,                                         \
				       .mpi = comm,                                                \
				       .memo = op_,                                                \
				       __VA_ARGS__ };                                              \
		int ret;                                                                           \
                                                                                                   \
		if (OFFLOAD(&c, &ret))                                                             \
			return ret;                                                                \
		ret = THEIRS(name_, iname_) args;                                                  \
		pmpi_passed(&c);                                                                   \
		return ret;                                                                        \
	}                                                                                          \
	int OURS(name_, iname_) params                                                             \
	{                                                                                          \
		if (pmpi_passes(ID(id), comm, type_, count_, op_))                                 \
			return THEIRS(name_, iname_) args;                                         \
		return DECIDE(name_, iname_) args;                                                 \
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
      (buf, count, type, root, comm REQUEST_ARG), count, type, 0, .recv = buf, .root = root);

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

ENTRY(Scan, Iscan, SCAN, ALLGATHER,
      (const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op,
       MPI_Comm comm REQUEST_PARAM),
      (send, recv, count, type, op, comm REQUEST_ARG), count, type, PMPI_HANDLE(op), .send = send,
      .recv = recv, .op = op);

ENTRY(Exscan, Iexscan, EXSCAN, ALLGATHER,
      (const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op,
       MPI_Comm comm REQUEST_PARAM),
      (send, recv, count, type, op, comm REQUEST_ARG), count, type, PMPI_HANDLE(op), .send = send,
      .recv = recv, .op = op);

#ifndef PMPI_LARGE
ENTRY(Barrier, Ibarrier, BARRIER, BARRIER, (MPI_Comm comm REQUEST_PARAM), (comm REQUEST_ARG), 0,
      MPI_BYTE, 0);
#endif

/* Equal shares make it a reduce-scatter of swingcoll; others are made equal. */
static PMPI_APART int
DECIDE(Reduce_scatter, Ireduce_scatter)(const void *send, void *recv, const COUNT *counts,
					MPI_Datatype type, MPI_Op op, uint64_t memo,
					struct pmpi_shares shares, MPI_Comm comm REQUEST_PARAM)
{
	struct pmpi_call c = {
		.name = ID(REDUCE_SCATTER),
		.coll = SWINGCOLL_REDUCE_SCATTER,
		.send = send,
		.recv = recv,
		ARRAYS(counts, NULL),
		.shares = shares.kind,
		.recv_count = shares.largest,
		.recv_type = type,
		.op = op,
		.mpi = comm,
		.memo = memo,
	};
	int ret;

	if (OFFLOAD(&c, &ret))
		return ret;
	ret = THEIRS(Reduce_scatter, Ireduce_scatter)(send, recv, counts, type, op,
						      comm REQUEST_ARG);
	pmpi_passed(&c);
	return ret;
}

int OURS(Reduce_scatter, Ireduce_scatter)(const void *send, void *recv, const COUNT *counts,
					  MPI_Datatype type, MPI_Op op, MPI_Comm comm REQUEST_PARAM)
{
	struct pmpi_shares shares = pmpi_shares(comm, COUNTS(counts));
	uint64_t memo = PMPI_HANDLE(op) * PMPI_SHARES_KINDS + shares.kind;

	if (pmpi_passes(ID(REDUCE_SCATTER), comm, type, shares.largest, memo))
		return THEIRS(Reduce_scatter, Ireduce_scatter)(send, recv, counts, type, op,
							       comm REQUEST_ARG);
	return DECIDE(Reduce_scatter, Ireduce_scatter)(send, recv, counts, type, op, memo, shares,
						       comm REQUEST_ARG);
}
EXPORT(Reduce_scatter, Ireduce_scatter);

/*
 * Likewise an allgather, wherever a rank wants the shares. If they are equal on one rank, they are
 * on all, since the signatures are.
 */
static PMPI_APART int DECIDE(Allgatherv,
			     Iallgatherv)(const void *send, COUNT send_count,
					  MPI_Datatype send_type, void *recv, const COUNT *counts,
					  const DISPL *displs, MPI_Datatype recv_type,
					  struct pmpi_shares shares, MPI_Comm comm REQUEST_PARAM)
{
	struct pmpi_call c = {
		.name = ID(ALLGATHERV),
		.coll = SWINGCOLL_ALLGATHER,
		.send = send,
		.recv = recv,
		.send_count = send_count,
		.send_type = send_type,
		ARRAYS(counts, displs),
		.shares = shares.kind,
		.recv_count = shares.largest,
		.recv_type = recv_type,
		.mpi = comm,
		.memo = shares.kind,
	};
	int ret;

	if (OFFLOAD(&c, &ret))
		return ret;
	ret = THEIRS(Allgatherv, Iallgatherv)(send, send_count, send_type, recv, counts, displs,
					      recv_type, comm REQUEST_ARG);
	pmpi_passed(&c);
	return ret;
}

int OURS(Allgatherv, Iallgatherv)(const void *send, COUNT send_count, MPI_Datatype send_type,
				  void *recv, const COUNT *counts, const DISPL *displs,
				  MPI_Datatype recv_type, MPI_Comm comm REQUEST_PARAM)
{
	struct pmpi_shares shares = pmpi_shares(comm, COUNTS(counts));

	if (pmpi_passes(ID(ALLGATHERV), comm, recv_type, shares.largest, shares.kind))
		return THEIRS(Allgatherv, Iallgatherv)(send, send_count, send_type, recv, counts,
						       displs, recv_type, comm REQUEST_ARG);
	return DECIDE(Allgatherv, Iallgatherv)(send, send_count, send_type, recv, counts, displs,
					       recv_type, shares, comm REQUEST_ARG);
}
EXPORT(Allgatherv, Iallgatherv);

/*
 * The side that is read here is the one that every rank has, and root unless it is in place: what is
 * root's alone may be anything elsewhere.
 */
static PMPI_APART int DECIDE(Gather, Igather)(const void *send, COUNT send_count,
					      MPI_Datatype send_type, void *recv, COUNT recv_count,
					      MPI_Datatype recv_type, int root,
					      MPI_Comm comm REQUEST_PARAM)
{
	bool in_place = send == MPI_IN_PLACE;
	COUNT count = in_place ? recv_count : send_count;
	MPI_Datatype type = in_place ? recv_type : send_type;
	struct pmpi_call c = {
		.name = ID(GATHER),
		.coll = SWINGCOLL_GATHER,
		.send = send,
		.recv = recv,
		.recv_count = count,
		.recv_type = type,
		.root_count = recv_count,
		.root_type = recv_type,
		.root = root,
		.mpi = comm,
	};
	int ret;

	if (in_place && pmpi_passes(ID(GATHER), comm, type, count, 0))
		return THEIRS(Gather, Igather)(send, send_count, send_type, recv, recv_count,
					       recv_type, root, comm REQUEST_ARG);
	if (OFFLOAD(&c, &ret))
		return ret;
	ret = THEIRS(Gather, Igather)(send, send_count, send_type, recv, recv_count, recv_type,
				      root, comm REQUEST_ARG);
	pmpi_passed(&c);
	return ret;
}

int OURS(Gather, Igather)(const void *send, COUNT send_count, MPI_Datatype send_type, void *recv,
			  COUNT recv_count, MPI_Datatype recv_type, int root,
			  MPI_Comm comm REQUEST_PARAM)
{
	if (send != MPI_IN_PLACE && pmpi_passes(ID(GATHER), comm, send_type, send_count, 0))
		return THEIRS(Gather, Igather)(send, send_count, send_type, recv, recv_count,
					       recv_type, root, comm REQUEST_ARG);
	return DECIDE(Gather, Igather)(send, send_count, send_type, recv, recv_count, recv_type,
				       root, comm REQUEST_ARG);
}
EXPORT(Gather, Igather);

static PMPI_APART int DECIDE(Scatter, Iscatter)(const void *send, COUNT send_count,
						MPI_Datatype send_type, void *recv,
						COUNT recv_count, MPI_Datatype recv_type, int root,
						MPI_Comm comm REQUEST_PARAM)
{
	bool in_place = recv == MPI_IN_PLACE;
	COUNT count = in_place ? send_count : recv_count;
	MPI_Datatype type = in_place ? send_type : recv_type;
	struct pmpi_call c = {
		.name = ID(SCATTER),
		.coll = SWINGCOLL_SCATTER,
		.send = send,
		.recv = recv,
		.recv_count = count,
		.recv_type = type,
		.root_count = send_count,
		.root_type = send_type,
		.root = root,
		.mpi = comm,
	};
	int ret;

	if (in_place && pmpi_passes(ID(SCATTER), comm, type, count, 0))
		return THEIRS(Scatter, Iscatter)(send, send_count, send_type, recv, recv_count,
						 recv_type, root, comm REQUEST_ARG);
	if (OFFLOAD(&c, &ret))
		return ret;
	ret = THEIRS(Scatter, Iscatter)(send, send_count, send_type, recv, recv_count, recv_type,
					root, comm REQUEST_ARG);
	pmpi_passed(&c);
	return ret;
}

int OURS(Scatter, Iscatter)(const void *send, COUNT send_count, MPI_Datatype send_type, void *recv,
			    COUNT recv_count, MPI_Datatype recv_type, int root,
			    MPI_Comm comm REQUEST_PARAM)
{
	if (recv != MPI_IN_PLACE && pmpi_passes(ID(SCATTER), comm, recv_type, recv_count, 0))
		return THEIRS(Scatter, Iscatter)(send, send_count, send_type, recv, recv_count,
						 recv_type, root, comm REQUEST_ARG);
	return DECIDE(Scatter, Iscatter)(send, send_count, send_type, recv, recv_count, recv_type,
					 root, comm REQUEST_ARG);
}
EXPORT(Scatter, Iscatter);
#undef ENTRY
