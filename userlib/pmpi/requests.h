/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Nonblocking and persistent calls of swingcoll as requests of MPI. */
#ifndef PMPI_REQUESTS_H
#define PMPI_REQUESTS_H

#include "pmpi/vector.h"

/*
 * Start a nonblocking call if swingcoll is to carry it out: then true, and *ret is what the MPI
 * function returns. Else the caller calls MPI.
 */
bool pmpi_begin(struct pmpi_call *c, MPI_Request *request, int *ret);
bool pmpi_begin_vector(struct pmpi_vector *v, MPI_Request *request, int *ret);

/* Likewise make a persistent request, which is inactive; its type arguments are copied, arrays are not. */
bool pmpi_begin_persistent(struct pmpi_call *c, MPI_Request *request, int *ret);

/* Errors of persistent requests that have ended, and that nobody has asked for. */
extern int pmpi_nerrors; /* atomic */
static inline bool pmpi_errors_left(void)
{
	return __atomic_load_n(&pmpi_nerrors, __ATOMIC_ACQUIRE);
}
/* The error of a completed request, once; MPI_SUCCESS, too, if it is not a persistent one of swingcoll. */
int pmpi_take_error(MPI_Request mpi);

/* MPI's functions for requests, as far as these differ for persistent ones of swingcoll. */
int pmpi_Start(MPI_Request *request);
int pmpi_Startall(int n, MPI_Request *requests);
int pmpi_Request_free(MPI_Request *request);

#endif /* PMPI_REQUESTS_H */
