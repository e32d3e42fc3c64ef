/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The collectives that swingcoll has, blocking or not: see template.h. */
#include "pmpi/template.h"

/* What a memo says, as arguments of swingcoll. */
#undef KIND
#undef REDOP
#undef SWC
#undef OWN
#undef LIST
#define KIND(m) (m)->n, (enum swingcoll_dtype)(m)->dtype
#define REDOP(m) (enum swingcoll_redop)(m)->redop
#define SWC(m) (m)->offloaded->swc
#define OWN(m, recv) ((char *)(recv) + pmpi_quick_bytes(m, (m)->offloaded->rank))
#define LIST(...) __VA_ARGS__

/*
 * One function: its parameters and arguments but for the communicator, with a comma behind each; what tells a
 * repeated call (the count and type of the receiving side, and what pmpi_recall() calls op), how it goes to
 * swingcoll if its memo m says so, and the other fields of struct pmpi_call.
 */
#define ENTRY(name_, iname_, id, collective, params, args, count_, type_, op_, quick, ...)         \
	static PMPI_APART int DECIDE(name_, iname_)(int tried,                                     \
						    LIST params MPI_Comm comm REQUEST_PARAM)       \
	{                                                                                          \
		struct pmpi_call c = { .name = ID(id),                                             \
				       .coll = SWINGCOLL_##collective,                             \
				       .recv_count = count_,                                       \
				       .recv_type = type_,                                         \
				       .mpi = comm,                                                \
				       .memo = op_,                                                \
				       .tried = tried,                                             \
				       __VA_ARGS__ };                                              \
		int ret;                                                                           \
                                                                                                   \
		if (OFFLOAD(&c, &ret))                                                             \
			return ret;                                                                \
		ret = THEIRS(name_, iname_)(LIST args comm REQUEST_ARG);                           \
		pmpi_passed(&c);                                                                   \
		return ret;                                                                        \
	}                                                                                          \
	static PMPI_APART int TRY(name_, iname_)(LIST params struct pmpi_memo * m REQUEST_PARAM)   \
	{                                                                                          \
		int tried = quick;                                                                 \
                                                                                                   \
		if (tried == PMPI_DONE)                                                            \
			return MPI_SUCCESS;                                                        \
		return DECIDE(name_, iname_)(tried, LIST args m->comm REQUEST_ARG);                \
	}                                                                                          \
	int OURS(name_, iname_)(LIST params MPI_Comm comm REQUEST_PARAM)                           \
	{                                                                                          \
		struct pmpi_memo *m = pmpi_recall(ID(id), comm, type_, count_, op_);               \
                                                                                                   \
		if (!m)                                                                            \
			return DECIDE(name_, iname_)(PMPI_NEW, LIST args comm REQUEST_ARG);        \
		if (pmpi_is_passed(m))                                                             \
			return THEIRS(name_, iname_)(LIST args comm REQUEST_ARG);                  \
		return TRY(name_, iname_)(LIST args m REQUEST_ARG);                                \
	}                                                                                          \
	EXPORT(name_, iname_)

ENTRY(Allreduce, Iallreduce, ALLREDUCE, ALLREDUCE,
      (const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op, ),
      (send, recv, count, type, op, ), count, type, PMPI_HANDLE(op),
      QUICK(pmpi_reducible(m, send == MPI_IN_PLACE ? recv : send, recv, 1),
	    swingcoll_allreduce(send == MPI_IN_PLACE ? recv : send, recv, KIND(m), REDOP(m),
				SWC(m))),
      .send = send, .recv = recv, .op = op);

ENTRY(Reduce, Ireduce, REDUCE, REDUCE,
      (const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op, int root, ),
      (send, recv, count, type, op, root, ), count, type, PMPI_HANDLE(op),
      QUICK(pmpi_reducible(m, send == MPI_IN_PLACE ? recv : send, recv, 1),
	    swingcoll_reduce(send == MPI_IN_PLACE ? recv : send, recv, KIND(m), REDOP(m), root,
			     SWC(m))),
      .send = send, .recv = recv, .op = op, .root = root);

ENTRY(Bcast, Ibcast, BCAST, BROADCAST, (void *buf, COUNT count, MPI_Datatype type, int root, ),
      (buf, count, type, root, ), count, type, 0,
      QUICK(true, swingcoll_broadcast(buf, buf, KIND(m), root, SWC(m))), .recv = buf, .root = root);

ENTRY(Allgather, Iallgather, ALLGATHER, ALLGATHER,
      (const void *send, COUNT send_count, MPI_Datatype send_type, void *recv, COUNT recv_count,
       MPI_Datatype recv_type, ),
      (send, send_count, send_type, recv, recv_count, recv_type, ), recv_count, recv_type, 0,
      QUICK(send == MPI_IN_PLACE || (send_count == recv_count && send_type == recv_type &&
				     pmpi_apart(send, pmpi_quick_bytes(m, 1), recv,
						pmpi_quick_bytes(m, m->offloaded->size))),
	    swingcoll_allgather(send == MPI_IN_PLACE ? OWN(m, recv) : send, recv, KIND(m), SWC(m))),
      .send = send, .recv = recv, .send_count = send_count, .send_type = send_type);

ENTRY(Alltoall, Ialltoall, ALLTOALL, ALLTOALL,
      (const void *send, COUNT send_count, MPI_Datatype send_type, void *recv, COUNT recv_count,
       MPI_Datatype recv_type, ),
      (send, send_count, send_type, recv, recv_count, recv_type, ), recv_count, recv_type, 0,
      QUICK(send != MPI_IN_PLACE && send_count == recv_count && send_type == recv_type &&
		    pmpi_apart(send, pmpi_quick_bytes(m, m->offloaded->size), recv,
			       pmpi_quick_bytes(m, m->offloaded->size)),
	    swingcoll_alltoall(send, recv, KIND(m), SWC(m))),
      .send = send, .recv = recv, .send_count = send_count, .send_type = send_type);

ENTRY(Reduce_scatter_block, Ireduce_scatter_block, REDUCE_SCATTER_BLOCK, REDUCE_SCATTER,
      (const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op, ),
      (send, recv, count, type, op, ), count, type, PMPI_HANDLE(op),
      QUICK(send != MPI_IN_PLACE && pmpi_reducible(m, send, recv, m->offloaded->size),
	    swingcoll_reduce_scatter(send, recv, KIND(m), REDOP(m), SWC(m))),
      .send = send, .recv = recv, .op = op);

ENTRY(Scan, Iscan, SCAN, ALLGATHER,
      (const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op, ),
      (send, recv, count, type, op, ), count, type, PMPI_HANDLE(op), PMPI_UNTRIED, .send = send,
      .recv = recv, .op = op);

ENTRY(Exscan, Iexscan, EXSCAN, ALLGATHER,
      (const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op, ),
      (send, recv, count, type, op, ), count, type, PMPI_HANDLE(op), PMPI_UNTRIED, .send = send,
      .recv = recv, .op = op);

#ifndef PMPI_LARGE
ENTRY(Barrier, Ibarrier, BARRIER, BARRIER, (), (), 0, MPI_BYTE, 0,
      QUICK(true, swingcoll_barrier(SWC(m))), .tells = false);
#endif

/* Equal shares make it a reduce-scatter of swingcoll; others are made equal. */
static PMPI_APART int DECIDE(Reduce_scatter,
			     Ireduce_scatter)(struct pmpi_memo *m, const void *send, void *recv,
					      const COUNT *counts, MPI_Datatype type, MPI_Op op,
					      uint64_t memo, struct pmpi_shares shares,
					      MPI_Comm comm REQUEST_PARAM)
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
		.tried = PMPI_NEW,
	};
	int ret;

	if (m)
		c.tried = QUICK(send != MPI_IN_PLACE &&
					pmpi_reducible(m, send, recv, m->offloaded->size),
				swingcoll_reduce_scatter(send, recv, KIND(m), REDOP(m), SWC(m)));
	if (c.tried == PMPI_DONE)
		return MPI_SUCCESS;
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
	struct pmpi_memo *m = pmpi_recall(ID(REDUCE_SCATTER), comm, type, shares.largest, memo);

	if (m && pmpi_is_passed(m))
		return THEIRS(Reduce_scatter, Ireduce_scatter)(send, recv, counts, type, op,
							       comm REQUEST_ARG);
	return DECIDE(Reduce_scatter, Ireduce_scatter)(m, send, recv, counts, type, op, memo,
						       shares, comm REQUEST_ARG);
}
EXPORT(Reduce_scatter, Ireduce_scatter);

/*
 * Likewise an allgather, wherever a rank wants the shares. If they are equal on one rank, they are
 * on all, since the signatures are.
 */
static PMPI_APART int DECIDE(Allgatherv,
			     Iallgatherv)(struct pmpi_memo *m, const void *send, COUNT send_count,
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
		.tried = PMPI_NEW,
	};
	int ret;

	if (m)
		c.tried = QUICK(send == MPI_IN_PLACE || (send_type == recv_type &&
							 send_count == counts[m->offloaded->rank]),
				pmpi_allgather_shares(m, &c));
	if (c.tried == PMPI_DONE)
		return MPI_SUCCESS;
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
	struct pmpi_memo *m = pmpi_recall(ID(ALLGATHERV), comm, recv_type, shares.largest,
					  shares.kind);

	if (m && pmpi_is_passed(m))
		return THEIRS(Allgatherv, Iallgatherv)(send, send_count, send_type, recv, counts,
						       displs, recv_type, comm REQUEST_ARG);
	return DECIDE(Allgatherv, Iallgatherv)(m, send, send_count, send_type, recv, counts, displs,
					       recv_type, shares, comm REQUEST_ARG);
}
EXPORT(Allgatherv, Iallgatherv);

/*
 * The side that is read here is the one that every rank has, and root unless it is in place: what is
 * root's alone may be anything elsewhere.
 */
static PMPI_APART int DECIDE(Gather, Igather)(int tried, const void *send, COUNT send_count,
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
		.tried = tried,
	};
	int ret;

	if (in_place) {
		struct pmpi_memo *m = pmpi_recall(ID(GATHER), comm, type, count, 0);

		if (m && pmpi_is_passed(m))
			return THEIRS(Gather, Igather)(send, send_count, send_type, recv,
						       recv_count, recv_type, root,
						       comm REQUEST_ARG);
		c.tried = m ? PMPI_UNTRIED : PMPI_NEW;
	}
	if (OFFLOAD(&c, &ret))
		return ret;
	ret = THEIRS(Gather, Igather)(send, send_count, send_type, recv, recv_count, recv_type,
				      root, comm REQUEST_ARG);
	pmpi_passed(&c);
	return ret;
}

static PMPI_APART int TRY(Gather, Igather)(const void *send, COUNT send_count,
					   MPI_Datatype send_type, void *recv, COUNT recv_count,
					   MPI_Datatype recv_type, int root,
					   struct pmpi_memo *m REQUEST_PARAM)
{
	int tried = QUICK(m->offloaded->rank != root ||
				  (recv_count == send_count && recv_type == send_type &&
				   pmpi_apart(send, pmpi_quick_bytes(m, 1), recv,
					      pmpi_quick_bytes(m, m->offloaded->size))),
			  swingcoll_gather(send, recv, KIND(m), root, SWC(m)));

	if (tried == PMPI_DONE)
		return MPI_SUCCESS;
	return DECIDE(Gather, Igather)(tried, send, send_count, send_type, recv, recv_count,
				       recv_type, root, m->comm REQUEST_ARG);
}

int OURS(Gather, Igather)(const void *send, COUNT send_count, MPI_Datatype send_type, void *recv,
			  COUNT recv_count, MPI_Datatype recv_type, int root,
			  MPI_Comm comm REQUEST_PARAM)
{
	struct pmpi_memo *m = send == MPI_IN_PLACE
				      ? NULL
				      : pmpi_recall(ID(GATHER), comm, send_type, send_count, 0);

	if (!m)
		return DECIDE(Gather, Igather)(PMPI_NEW, send, send_count, send_type, recv,
					       recv_count, recv_type, root, comm REQUEST_ARG);
	if (pmpi_is_passed(m))
		return THEIRS(Gather, Igather)(send, send_count, send_type, recv, recv_count,
					       recv_type, root, comm REQUEST_ARG);
	return TRY(Gather, Igather)(send, send_count, send_type, recv, recv_count, recv_type, root,
				    m REQUEST_ARG);
}
EXPORT(Gather, Igather);

static PMPI_APART int DECIDE(Scatter, Iscatter)(int tried, const void *send, COUNT send_count,
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
		.tried = tried,
	};
	int ret;

	if (in_place) {
		struct pmpi_memo *m = pmpi_recall(ID(SCATTER), comm, type, count, 0);

		if (m && pmpi_is_passed(m))
			return THEIRS(Scatter, Iscatter)(send, send_count, send_type, recv,
							 recv_count, recv_type, root,
							 comm REQUEST_ARG);
		c.tried = m ? PMPI_UNTRIED : PMPI_NEW;
	}
	if (OFFLOAD(&c, &ret))
		return ret;
	ret = THEIRS(Scatter, Iscatter)(send, send_count, send_type, recv, recv_count, recv_type,
					root, comm REQUEST_ARG);
	pmpi_passed(&c);
	return ret;
}

static PMPI_APART int TRY(Scatter, Iscatter)(const void *send, COUNT send_count,
					     MPI_Datatype send_type, void *recv, COUNT recv_count,
					     MPI_Datatype recv_type, int root,
					     struct pmpi_memo *m REQUEST_PARAM)
{
	int tried = QUICK(m->offloaded->rank != root ||
				  (send_count == recv_count && send_type == recv_type &&
				   pmpi_apart(send, pmpi_quick_bytes(m, m->offloaded->size), recv,
					      pmpi_quick_bytes(m, 1))),
			  swingcoll_scatter(send, recv, KIND(m), root, SWC(m)));

	if (tried == PMPI_DONE)
		return MPI_SUCCESS;
	return DECIDE(Scatter, Iscatter)(tried, send, send_count, send_type, recv, recv_count,
					 recv_type, root, m->comm REQUEST_ARG);
}

int OURS(Scatter, Iscatter)(const void *send, COUNT send_count, MPI_Datatype send_type, void *recv,
			    COUNT recv_count, MPI_Datatype recv_type, int root,
			    MPI_Comm comm REQUEST_PARAM)
{
	struct pmpi_memo *m = recv == MPI_IN_PLACE
				      ? NULL
				      : pmpi_recall(ID(SCATTER), comm, recv_type, recv_count, 0);

	if (!m)
		return DECIDE(Scatter, Iscatter)(PMPI_NEW, send, send_count, send_type, recv,
						 recv_count, recv_type, root, comm REQUEST_ARG);
	if (pmpi_is_passed(m))
		return THEIRS(Scatter, Iscatter)(send, send_count, send_type, recv, recv_count,
						 recv_type, root, comm REQUEST_ARG);
	return TRY(Scatter, Iscatter)(send, send_count, send_type, recv, recv_count, recv_type,
				      root, m REQUEST_ARG);
}
EXPORT(Scatter, Iscatter);
#undef ENTRY
