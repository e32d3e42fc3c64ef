/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How Fortran calls: handles are integers, and some constants are addresses of variables. */
#ifndef PMPI_FORTRAN_H
#define PMPI_FORTRAN_H

#include <stdlib.h>

#include "pmpi/entry.h"

static inline void give(MPI_Fint *ierror, int ret)
{
	if (ierror)
		*ierror = ret;
}

/* MPI's own function, which is in another library, and the one that is called instead of it. */
#ifdef OPEN_MPI
#define THEIRS(lower) pmpi_##lower##_
#define OURS(lower) static void fortran_##lower
#else
#define THEIRS(lower) pmpir_##lower##_f08_
#define OURS(lower) PMPI_PUBLIC void mpi_##lower##_f08_
#endif

/* The latter: MPI's own does the work, and @more, which sees and sets ret. */
#define FORTRAN_AROUND(lower, params, args, more)                                                  \
	extern void THEIRS(lower) params __attribute__((weak));                                    \
	OURS(lower) params                                                                         \
	{                                                                                          \
		MPI_Fint ret = MPI_ERR_OTHER, *own = ierror;                                       \
                                                                                                   \
		ierror = &ret;                                                                     \
		THEIRS(lower) args;                                                                \
		more;                                                                              \
		give(own, ret);                                                                    \
	}

#ifdef OPEN_MPI

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "arrays of counts are passed on");

extern int mpi_fortran_in_place_, mpi_fortran_bottom_;

static inline void *buffer(void *p)
{
	if (p == &mpi_fortran_in_place_)
		return MPI_IN_PLACE;
	return p == &mpi_fortran_bottom_ ? MPI_BOTTOM : p;
}

static inline void give_request(MPI_Fint *request, MPI_Request r, int ret)
{
	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(r);
}

#define TYPE(f) PMPI_Type_f2c(*(f))
#define OP(f) PMPI_Op_f2c(*(f))
#define COMM(f) PMPI_Comm_f2c(*(f))

/* With an intercommunicator there are as many types as ranks on the other side. */
static inline int count_types(MPI_Comm comm)
{
	int inter = 0, n = 0;

	if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
		return 0;
	if (inter)
		PMPI_Comm_remote_size(comm, &n);
	else
		PMPI_Comm_size(comm, &n);
	return n;
}

/* Those that a call sends, and *recv, those that it receives; all are one array, or NULL. */
static inline MPI_Datatype *make_types(bool in_place, MPI_Comm comm, const MPI_Fint *send_types,
				       const MPI_Fint *recv_types, MPI_Datatype **recv)
{
	int n = count_types(comm);
	MPI_Datatype *types = malloc(2 * (size_t)n * sizeof(*types) + 1);

	for (int r = 0; types && r < n; r++) {
		types[r] = in_place ? MPI_DATATYPE_NULL : TYPE(&send_types[r]);
		types[n + r] = TYPE(&recv_types[r]);
	}
	*recv = types + n;
	return types;
}

/*
 * The spellings of one function, but for mpi_allreduce, which gfortran uses with -fno-underscoring only:
 * C libraries have functions of such names (R's package Rmpi has), which would be replaced, too.
 */
#define SPELL(function, name)                                                                      \
	extern __typeof__(function) name                                                           \
		__attribute__((alias(PMPI_TEXT(function)), visibility("default")))
#define FORTRAN(lower, upper, mixed)                                                               \
	SPELL(fortran_##lower, ompi_##lower##_f);                                                  \
	SPELL(fortran_##lower, mpi_##lower##_);                                                    \
	SPELL(fortran_##lower, mpi_##lower##__);                                                   \
	SPELL(fortran_##lower, MPI_##upper);                                                       \
	SPELL(fortran_##lower, MPI_##mixed##_f)
/* Of Open MPI's extension. */
#define FORTRAN_X(lower, upper, mixed)                                                             \
	SPELL(fortran_##lower, ompix_##lower##_f);                                                 \
	SPELL(fortran_##lower, mpix_##lower##_);                                                   \
	SPELL(fortran_##lower, mpix_##lower##__);                                                  \
	SPELL(fortran_##lower, MPIX_##upper);                                                      \
	SPELL(fortran_##lower, MPIX_##mixed##_f)

#endif /* OPEN_MPI */

#endif /* PMPI_FORTRAN_H */
