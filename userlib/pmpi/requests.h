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

/*
 * Likewise make a persistent request, which is inactive; its arrays and type arguments are copied.
 */
bool pmpi_begin_persistent(struct pmpi_call *c, MPI_Request *request, int *ret);
bool pmpi_begin_persistent_vector(struct pmpi_vector *v, MPI_Request *request, int *ret);

#pragma GCC visibility push(hidden)
extern unsigned int pmpi_npersistent; /* such requests; atomic */
extern int pmpi_nerrors; /* of those that have ended, and that nobody has asked for; atomic */
#pragma GCC visibility pop

static inline bool pmpi_has_persistent(void)
{
	return __atomic_load_n(&pmpi_npersistent, __ATOMIC_RELAXED);
}

static inline bool pmpi_errors_left(void)
{
	return __atomic_load_n(&pmpi_nerrors, __ATOMIC_ACQUIRE);
}
/* The error of a completed request, once; MPI_SUCCESS, too, if it is not a persistent one of swingcoll. */
int pmpi_take_error(MPI_Request mpi);

/*
 * MPI has returned ret from a call that completes requests: what such a call returns if one of them is a
 * persistent one with an error, whose handler has been called then. Of n requests, that at this place has
 * completed, or none if there is no such place; or so many have, with these places, or all if that is NULL.
 */
int pmpi_settle_one(int ret, int n, const MPI_Request *requests, int place);
int pmpi_settle_some(int ret, int n, int ndone, const MPI_Request *requests, const int *places,
		     MPI_Status *statuses);

/* MPI's functions for requests, as far as these differ for persistent ones of swingcoll. */
int pmpi_Start(MPI_Request *request);
int pmpi_Startall(int n, MPI_Request *requests);
int pmpi_Request_free(MPI_Request *request);
int pmpi_Cancel(MPI_Request *request);

#endif /* PMPI_REQUESTS_H */
