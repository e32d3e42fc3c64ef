// SPDX-License-Identifier: LGPL-2.1-or-later
/* Persistent collectives of Open MPI's Fortran, as fortran.c has the others. */
#include "pmpi/fortran.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ

#define PARAMS(...) __VA_ARGS__
/* One function: its parameters before the communicator, with a comma behind each, and the arguments that they become. */
#define PERSISTENT(lower, upper, mixed, params, args)                                              \
	extern __typeof__(MPIX_##mixed##_init) pmpi_##mixed##_init;                                \
	static void fortran_##lower##_init(params MPI_Fint *comm, MPI_Fint *info,                  \
					   MPI_Fint *request, MPI_Fint *ierror)                    \
	{                                                                                          \
		MPI_Request r;                                                                     \
		int ret = pmpi_##mixed##_init(args COMM(comm), PMPI_Info_f2c(*info), &r);          \
                                                                                                   \
		give_request(request, r, ret);                                                     \
		give(ierror, ret);                                                                 \
	}                                                                                          \
	FORTRAN_X(lower##_init, upper##_INIT, mixed##_init)

#define SEND void *send, MPI_Fint *send_count, MPI_Fint *send_type
#define RECV void *recv, MPI_Fint *recv_count, MPI_Fint *recv_type
#define SEND_ARGS buffer(send), *send_count, TYPE(send_type)
#define RECV_ARGS buffer(recv), *recv_count, TYPE(recv_type)
#define REDUCTION void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op
#define REDUCTION_ARGS buffer(send), buffer(recv), *count, TYPE(type), OP(op)

PERSISTENT(allreduce, ALLREDUCE, Allreduce, PARAMS(REDUCTION, ), PARAMS(REDUCTION_ARGS, ));
PERSISTENT(reduce, REDUCE, Reduce, PARAMS(REDUCTION, MPI_Fint *root, ),
	   PARAMS(REDUCTION_ARGS, *root, ));
PERSISTENT(bcast, BCAST, Bcast,
	   PARAMS(void *buf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *root, ),
	   PARAMS(buffer(buf), *count, TYPE(type), *root, ));
PERSISTENT(barrier, BARRIER, Barrier, , );
PERSISTENT(allgather, ALLGATHER, Allgather, PARAMS(SEND, RECV, ), PARAMS(SEND_ARGS, RECV_ARGS, ));
PERSISTENT(allgatherv, ALLGATHERV, Allgatherv,
	   PARAMS(SEND, void *recv, MPI_Fint *counts, MPI_Fint *displs, MPI_Fint *recv_type, ),
	   PARAMS(SEND_ARGS, buffer(recv), counts, displs, TYPE(recv_type), ));
PERSISTENT(alltoall, ALLTOALL, Alltoall, PARAMS(SEND, RECV, ), PARAMS(SEND_ARGS, RECV_ARGS, ));
PERSISTENT(gather, GATHER, Gather, PARAMS(SEND, RECV, MPI_Fint *root, ),
	   PARAMS(SEND_ARGS, RECV_ARGS, *root, ));
PERSISTENT(scatter, SCATTER, Scatter, PARAMS(SEND, RECV, MPI_Fint *root, ),
	   PARAMS(SEND_ARGS, RECV_ARGS, *root, ));
PERSISTENT(reduce_scatter, REDUCE_SCATTER, Reduce_scatter,
	   PARAMS(void *send, void *recv, MPI_Fint *counts, MPI_Fint *type, MPI_Fint *op, ),
	   PARAMS(buffer(send), buffer(recv), counts, TYPE(type), OP(op), ));
PERSISTENT(reduce_scatter_block, REDUCE_SCATTER_BLOCK, Reduce_scatter_block, PARAMS(REDUCTION, ),
	   PARAMS(REDUCTION_ARGS, ));
PERSISTENT(gatherv, GATHERV, Gatherv,
	   PARAMS(SEND, void *recv, MPI_Fint *counts, MPI_Fint *displs, MPI_Fint *recv_type,
		  MPI_Fint *root, ),
	   PARAMS(SEND_ARGS, buffer(recv), counts, displs, TYPE(recv_type), *root, ));
PERSISTENT(scatterv, SCATTERV, Scatterv,
	   PARAMS(void *send, MPI_Fint *counts, MPI_Fint *displs, MPI_Fint *send_type, RECV,
		  MPI_Fint *root, ),
	   PARAMS(buffer(send), counts, displs, TYPE(send_type), RECV_ARGS, *root, ));
PERSISTENT(alltoallv, ALLTOALLV, Alltoallv,
	   PARAMS(void *send, MPI_Fint *send_counts, MPI_Fint *send_displs, MPI_Fint *send_type,
		  void *recv, MPI_Fint *recv_counts, MPI_Fint *recv_displs, MPI_Fint *recv_type, ),
	   PARAMS(buffer(send), send_counts, send_displs, TYPE(send_type), buffer(recv),
		  recv_counts, recv_displs, TYPE(recv_type), ));
PERSISTENT(scan, SCAN, Scan, PARAMS(REDUCTION, ), PARAMS(REDUCTION_ARGS, ));
PERSISTENT(exscan, EXSCAN, Exscan, PARAMS(REDUCTION, ), PARAMS(REDUCTION_ARGS, ));

extern __typeof__(MPIX_Alltoallw_init) pmpi_Alltoallw_init;
static void fortran_alltoallw_init(void *send, MPI_Fint *send_counts, MPI_Fint *send_displs,
				   MPI_Fint *send_types, void *recv, MPI_Fint *recv_counts,
				   MPI_Fint *recv_displs, MPI_Fint *recv_types, MPI_Fint *comm,
				   MPI_Fint *info, MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r = MPI_REQUEST_NULL;
	int ret = MPI_ERR_NO_MEM;
	MPI_Datatype *to, *from = make_types(buffer(send) == MPI_IN_PLACE, COMM(comm), send_types,
					     recv_types, &to);

	if (from)
		ret = pmpi_Alltoallw_init(buffer(send), send_counts, send_displs, from,
					  buffer(recv), recv_counts, recv_displs, to, COMM(comm),
					  PMPI_Info_f2c(*info), &r);
	free(from);
	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN_X(alltoallw_init, ALLTOALLW_INIT, Alltoallw_init);

#endif
