/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Nonblocking calls of swingcoll as requests of MPI. */
#ifndef PMPI_REQUESTS_H
#define PMPI_REQUESTS_H

#include "pmpi/pmpi.h"

/*
 * Start a nonblocking call if swingcoll is to carry it out: then true, and *ret is what the MPI
 * function returns. Else the caller calls MPI.
 */
bool pmpi_begin(struct pmpi_call *c, MPI_Request *request, int *ret);

#endif /* PMPI_REQUESTS_H */
