// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Open MPI's Fortran does not call the C functions under MPI's names, so its own functions are
 * replaced as well: mpi_allreduce_ and the other spellings of compilers for mpif.h and `use mpi`,
 * and ompi_allreduce_f, which `use mpi_f08` calls. MPICH's Fortran calls the C functions, except,
 * by `use mpi_f08`, for those without buffers, which start and free requests, too.
 *
 * Handles are integers here, and some constants are addresses of variables.
 */
#include "pmpi/fortran.h"
#include "pmpi/requests.h"

#ifdef OPEN_MPI

/* ---- begin and end ---- */

static void fortran_init(MPI_Fint *ierror)
{
	give(ierror, pmpi_Init(NULL, NULL));
}
FORTRAN(init, INIT, Init);

static void fortran_init_thread(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror)
{
	int level = 0;

	give(ierror, pmpi_Init_thread(NULL, NULL, *required, &level));
	*provided = level;
}
FORTRAN(init_thread, INIT_THREAD, Init_thread);

static void fortran_finalize(MPI_Fint *ierror)
{
	give(ierror, pmpi_Finalize());
}
FORTRAN(finalize, FINALIZE, Finalize);

/* ---- the end of a communicator ---- */

static void fortran_comm_free(MPI_Fint *comm, MPI_Fint *ierror)
{
	MPI_Comm c = COMM(comm);
	int ret = pmpi_Comm_free(&c);

	*comm = PMPI_Comm_c2f(c);
	give(ierror, ret);
}
FORTRAN(comm_free, COMM_FREE, Comm_free);

static void fortran_comm_disconnect(MPI_Fint *comm, MPI_Fint *ierror)
{
	MPI_Comm c = COMM(comm);
	int ret = pmpi_Comm_disconnect(&c);

	*comm = PMPI_Comm_c2f(c);
	give(ierror, ret);
}
FORTRAN(comm_disconnect, COMM_DISCONNECT, Comm_disconnect);

/* ---- blocking ---- */

static void fortran_allreduce(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
			      MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror,
	     pmpi_Allreduce(buffer(send), buffer(recv), *count, TYPE(type), OP(op), COMM(comm)));
}
FORTRAN(allreduce, ALLREDUCE, Allreduce);

static void fortran_reduce(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
			   MPI_Fint *root, MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Reduce(buffer(send), buffer(recv), *count, TYPE(type), OP(op), *root,
				 COMM(comm)));
}
FORTRAN(reduce, REDUCE, Reduce);

static void fortran_bcast(void *buf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *root,
			  MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Bcast(buffer(buf), *count, TYPE(type), *root, COMM(comm)));
}
FORTRAN(bcast, BCAST, Bcast);

static void fortran_barrier(MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Barrier(COMM(comm)));
}
FORTRAN(barrier, BARRIER, Barrier);

static void fortran_allgather(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
			      MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *comm,
			      MPI_Fint *ierror)
{
	give(ierror, pmpi_Allgather(buffer(send), *send_count, TYPE(send_type), buffer(recv),
				    *recv_count, TYPE(recv_type), COMM(comm)));
}
FORTRAN(allgather, ALLGATHER, Allgather);

static void fortran_allgatherv(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
			       MPI_Fint *counts, MPI_Fint *displs, MPI_Fint *recv_type,
			       MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Allgatherv(buffer(send), *send_count, TYPE(send_type), buffer(recv),
				     counts, displs, TYPE(recv_type), COMM(comm)));
}
FORTRAN(allgatherv, ALLGATHERV, Allgatherv);

static void fortran_alltoall(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
			     MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *comm,
			     MPI_Fint *ierror)
{
	give(ierror, pmpi_Alltoall(buffer(send), *send_count, TYPE(send_type), buffer(recv),
				   *recv_count, TYPE(recv_type), COMM(comm)));
}
FORTRAN(alltoall, ALLTOALL, Alltoall);

static void fortran_gather(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
			   MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *root,
			   MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Gather(buffer(send), *send_count, TYPE(send_type), buffer(recv),
				 *recv_count, TYPE(recv_type), *root, COMM(comm)));
}
FORTRAN(gather, GATHER, Gather);

static void fortran_scatter(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
			    MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *root,
			    MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Scatter(buffer(send), *send_count, TYPE(send_type), buffer(recv),
				  *recv_count, TYPE(recv_type), *root, COMM(comm)));
}
FORTRAN(scatter, SCATTER, Scatter);

static void fortran_reduce_scatter(void *send, void *recv, MPI_Fint *counts, MPI_Fint *type,
				   MPI_Fint *op, MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Reduce_scatter(buffer(send), buffer(recv), counts, TYPE(type), OP(op),
					 COMM(comm)));
}
FORTRAN(reduce_scatter, REDUCE_SCATTER, Reduce_scatter);

static void fortran_reduce_scatter_block(void *send, void *recv, MPI_Fint *count, MPI_Fint *type,
					 MPI_Fint *op, MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Reduce_scatter_block(buffer(send), buffer(recv), *count, TYPE(type),
					       OP(op), COMM(comm)));
}
FORTRAN(reduce_scatter_block, REDUCE_SCATTER_BLOCK, Reduce_scatter_block);

static void fortran_scan(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
			 MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Scan(buffer(send), buffer(recv), *count, TYPE(type), OP(op), COMM(comm)));
}
FORTRAN(scan, SCAN, Scan);

static void fortran_exscan(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
			   MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror,
	     pmpi_Exscan(buffer(send), buffer(recv), *count, TYPE(type), OP(op), COMM(comm)));
}
FORTRAN(exscan, EXSCAN, Exscan);

static void fortran_gatherv(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
			    MPI_Fint *counts, MPI_Fint *displs, MPI_Fint *recv_type, MPI_Fint *root,
			    MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Gatherv(buffer(send), *send_count, TYPE(send_type), buffer(recv), counts,
				  displs, TYPE(recv_type), *root, COMM(comm)));
}
FORTRAN(gatherv, GATHERV, Gatherv);

static void fortran_scatterv(void *send, MPI_Fint *counts, MPI_Fint *displs, MPI_Fint *send_type,
			     void *recv, MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *root,
			     MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Scatterv(buffer(send), counts, displs, TYPE(send_type), buffer(recv),
				   *recv_count, TYPE(recv_type), *root, COMM(comm)));
}
FORTRAN(scatterv, SCATTERV, Scatterv);

static void fortran_alltoallv(void *send, MPI_Fint *send_counts, MPI_Fint *send_displs,
			      MPI_Fint *send_type, void *recv, MPI_Fint *recv_counts,
			      MPI_Fint *recv_displs, MPI_Fint *recv_type, MPI_Fint *comm,
			      MPI_Fint *ierror)
{
	give(ierror,
	     pmpi_Alltoallv(buffer(send), send_counts, send_displs, TYPE(send_type), buffer(recv),
			    recv_counts, recv_displs, TYPE(recv_type), COMM(comm)));
}
FORTRAN(alltoallv, ALLTOALLV, Alltoallv);

static void fortran_alltoallw(void *send, MPI_Fint *send_counts, MPI_Fint *send_displs,
			      MPI_Fint *send_types, void *recv, MPI_Fint *recv_counts,
			      MPI_Fint *recv_displs, MPI_Fint *recv_types, MPI_Fint *comm,
			      MPI_Fint *ierror)
{
	int ret = MPI_ERR_NO_MEM;
	MPI_Datatype *to, *from = make_types(buffer(send) == MPI_IN_PLACE, COMM(comm), send_types,
					     recv_types, &to);

	if (from)
		ret = pmpi_Alltoallw(buffer(send), send_counts, send_displs, from, buffer(recv),
				     recv_counts, recv_displs, to, COMM(comm));
	free(from);
	give(ierror, ret);
}
FORTRAN(alltoallw, ALLTOALLW, Alltoallw);

/* ---- nonblocking ---- */

static void fortran_iallreduce(void *send, void *recv, MPI_Fint *count, MPI_Fint *type,
			       MPI_Fint *op, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Iallreduce(buffer(send), buffer(recv), *count, TYPE(type), OP(op),
				  COMM(comm), &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(iallreduce, IALLREDUCE, Iallreduce);

static void fortran_ireduce(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
			    MPI_Fint *root, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Ireduce(buffer(send), buffer(recv), *count, TYPE(type), OP(op), *root,
			       COMM(comm), &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(ireduce, IREDUCE, Ireduce);

static void fortran_ibcast(void *buf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *root,
			   MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Ibcast(buffer(buf), *count, TYPE(type), *root, COMM(comm), &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(ibcast, IBCAST, Ibcast);

static void fortran_ibarrier(MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Ibarrier(COMM(comm), &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(ibarrier, IBARRIER, Ibarrier);

static void fortran_iallgather(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
			       MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *comm,
			       MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Iallgather(buffer(send), *send_count, TYPE(send_type), buffer(recv),
				  *recv_count, TYPE(recv_type), COMM(comm), &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(iallgather, IALLGATHER, Iallgather);

static void fortran_ialltoall(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
			      MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *comm,
			      MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Ialltoall(buffer(send), *send_count, TYPE(send_type), buffer(recv),
				 *recv_count, TYPE(recv_type), COMM(comm), &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(ialltoall, IALLTOALL, Ialltoall);

static void fortran_iallgatherv(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
				MPI_Fint *counts, MPI_Fint *displs, MPI_Fint *recv_type,
				MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Iallgatherv(buffer(send), *send_count, TYPE(send_type), buffer(recv), counts,
				   displs, TYPE(recv_type), COMM(comm), &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(iallgatherv, IALLGATHERV, Iallgatherv);

static void fortran_igather(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
			    MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *root,
			    MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Igather(buffer(send), *send_count, TYPE(send_type), buffer(recv),
			       *recv_count, TYPE(recv_type), *root, COMM(comm), &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(igather, IGATHER, Igather);

static void fortran_iscatter(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
			     MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *root,
			     MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Iscatter(buffer(send), *send_count, TYPE(send_type), buffer(recv),
				*recv_count, TYPE(recv_type), *root, COMM(comm), &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(iscatter, ISCATTER, Iscatter);

static void fortran_igatherv(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
			     MPI_Fint *counts, MPI_Fint *displs, MPI_Fint *recv_type,
			     MPI_Fint *root, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Igatherv(buffer(send), *send_count, TYPE(send_type), buffer(recv), counts,
				displs, TYPE(recv_type), *root, COMM(comm), &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(igatherv, IGATHERV, Igatherv);

static void fortran_iscatterv(void *send, MPI_Fint *counts, MPI_Fint *displs, MPI_Fint *send_type,
			      void *recv, MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *root,
			      MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Iscatterv(buffer(send), counts, displs, TYPE(send_type), buffer(recv),
				 *recv_count, TYPE(recv_type), *root, COMM(comm), &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(iscatterv, ISCATTERV, Iscatterv);

static void fortran_ialltoallv(void *send, MPI_Fint *send_counts, MPI_Fint *send_displs,
			       MPI_Fint *send_type, void *recv, MPI_Fint *recv_counts,
			       MPI_Fint *recv_displs, MPI_Fint *recv_type, MPI_Fint *comm,
			       MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Ialltoallv(buffer(send), send_counts, send_displs, TYPE(send_type),
				  buffer(recv), recv_counts, recv_displs, TYPE(recv_type),
				  COMM(comm), &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(ialltoallv, IALLTOALLV, Ialltoallv);

static void fortran_ialltoallw(void *send, MPI_Fint *send_counts, MPI_Fint *send_displs,
			       MPI_Fint *send_types, void *recv, MPI_Fint *recv_counts,
			       MPI_Fint *recv_displs, MPI_Fint *recv_types, MPI_Fint *comm,
			       MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r = MPI_REQUEST_NULL;
	int ret = MPI_ERR_NO_MEM;
	MPI_Datatype *to, *from = make_types(buffer(send) == MPI_IN_PLACE, COMM(comm), send_types,
					     recv_types, &to);

	if (from)
		ret = pmpi_Ialltoallw(buffer(send), send_counts, send_displs, from, buffer(recv),
				      recv_counts, recv_displs, to, COMM(comm), &r);
	free(from);
	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(ialltoallw, IALLTOALLW, Ialltoallw);

static void fortran_iscan(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
			  MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Iscan(buffer(send), buffer(recv), *count, TYPE(type), OP(op), COMM(comm),
			     &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(iscan, ISCAN, Iscan);

static void fortran_iexscan(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
			    MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = pmpi_Iexscan(buffer(send), buffer(recv), *count, TYPE(type), OP(op), COMM(comm),
			       &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(iexscan, IEXSCAN, Iexscan);

/* ---- requests, which C may have made ---- */

/*
 * MPI may replace a request when it is started: Open MPI does if the message before, which is complete for the
 * program, has not left. Programs without persistent requests of swingcoll call MPI's own functions.
 */
extern void pmpi_start_(MPI_Fint *request, MPI_Fint *ierror) __attribute__((weak));
extern void pmpi_startall_(MPI_Fint *count, MPI_Fint *requests, MPI_Fint *ierror)
	__attribute__((weak));

static int start_one(MPI_Fint *request)
{
	MPI_Request r = PMPI_Request_f2c(*request);
	int ret = pmpi_Start(&r);

	give_request(request, r, ret);
	return ret;
}

static void fortran_start(MPI_Fint *request, MPI_Fint *ierror)
{
	if (!pmpi_has_persistent())
		pmpi_start_(request, ierror);
	else
		give(ierror, start_one(request));
}
FORTRAN(start, START, Start);

static void fortran_startall(MPI_Fint *count, MPI_Fint *requests, MPI_Fint *ierror)
{
	int ret = MPI_SUCCESS;

	if (!pmpi_has_persistent()) {
		pmpi_startall_(count, requests, ierror);
		return;
	}
	for (int i = 0; i < *count && ret == MPI_SUCCESS; i++)
		ret = start_one(&requests[i]);
	give(ierror, ret);
}
FORTRAN(startall, STARTALL, Startall);

static void fortran_request_free(MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r = PMPI_Request_f2c(*request);
	int ret = pmpi_Request_free(&r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(request_free, REQUEST_FREE, Request_free);

static void fortran_cancel(MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r = PMPI_Request_f2c(*request);

	give(ierror, pmpi_Cancel(&r));
}
FORTRAN(cancel, CANCEL, Cancel);

#else /* MPICH */

PMPI_PUBLIC void mpi_init_f08_(MPI_Fint *ierror)
{
	give(ierror, pmpi_Init(NULL, NULL));
}

PMPI_PUBLIC void mpi_init_thread_f08_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror)
{
	int level = 0;

	give(ierror, pmpi_Init_thread(NULL, NULL, *required, &level));
	*provided = level;
}

PMPI_PUBLIC void mpi_finalize_f08_(MPI_Fint *ierror)
{
	give(ierror, pmpi_Finalize());
}

PMPI_PUBLIC void mpi_comm_free_f08_(MPI_Comm *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Comm_free(comm));
}

PMPI_PUBLIC void mpi_comm_disconnect_f08_(MPI_Comm *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Comm_disconnect(comm));
}

PMPI_PUBLIC void mpi_barrier_f08_(MPI_Comm *comm, MPI_Fint *ierror)
{
	give(ierror, pmpi_Barrier(*comm));
}

PMPI_PUBLIC void mpi_ibarrier_f08_(MPI_Comm *comm, MPI_Request *request, MPI_Fint *ierror)
{
	give(ierror, pmpi_Ibarrier(*comm, request));
}

PMPI_PUBLIC void mpi_barrier_init_f08_(MPI_Comm *comm, MPI_Info *info, MPI_Request *request,
				       MPI_Fint *ierror)
{
	give(ierror, pmpi_Barrier_init(*comm, *info, request));
}

PMPI_PUBLIC void mpi_start_f08_(MPI_Request *request, MPI_Fint *ierror)
{
	give(ierror, pmpi_Start(request));
}

PMPI_PUBLIC void mpi_startall_f08_(MPI_Fint *count, MPI_Request *requests, MPI_Fint *ierror)
{
	give(ierror, pmpi_Startall(*count, requests));
}

PMPI_PUBLIC void mpi_request_free_f08_(MPI_Request *request, MPI_Fint *ierror)
{
	give(ierror, pmpi_Request_free(request));
}

PMPI_PUBLIC void mpi_cancel_f08_(MPI_Request *request, MPI_Fint *ierror)
{
	give(ierror, pmpi_Cancel(request));
}

#endif
