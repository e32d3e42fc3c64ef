/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Entry points. Each function is defined once, as pmpi_Allreduce() and so on, and exported under
 * MPI's name; Fortran's entry points call it by the first name. The templates are compiled for
 * counts of int and, since MPI 4, once more for counts of MPI_Count, with names that end in _c.
 */
#ifndef PMPI_ENTRY_H
#define PMPI_ENTRY_H

#include "pmpi/pmpi.h"

/* MPI's prototypes have attributes for checking types, which an alias cannot repeat. */
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int pmpi_Init(int *argc, char ***argv);
int pmpi_Init_thread(int *argc, char ***argv, int required, int *provided);
int pmpi_Finalize(void);
int pmpi_Comm_free(MPI_Comm *mpi);
int pmpi_Comm_disconnect(MPI_Comm *mpi);

/* The others have the types of MPI's. */
#define PMPI_DECLARE(name) extern __typeof__(MPI_##name) pmpi_##name
PMPI_DECLARE(Allreduce);
PMPI_DECLARE(Reduce);
PMPI_DECLARE(Bcast);
PMPI_DECLARE(Barrier);
PMPI_DECLARE(Allgather);
PMPI_DECLARE(Allgatherv);
PMPI_DECLARE(Alltoall);
PMPI_DECLARE(Gather);
PMPI_DECLARE(Scatter);
PMPI_DECLARE(Reduce_scatter);
PMPI_DECLARE(Reduce_scatter_block);
PMPI_DECLARE(Scan);
PMPI_DECLARE(Exscan);
PMPI_DECLARE(Gatherv);
PMPI_DECLARE(Scatterv);
PMPI_DECLARE(Alltoallv);
PMPI_DECLARE(Alltoallw);
PMPI_DECLARE(Iallreduce);
PMPI_DECLARE(Ireduce);
PMPI_DECLARE(Ibcast);
PMPI_DECLARE(Ibarrier);
PMPI_DECLARE(Iallgather);
PMPI_DECLARE(Ialltoall);
PMPI_DECLARE(Ireduce_scatter);
PMPI_DECLARE(Ireduce_scatter_block);
PMPI_DECLARE(Iallgatherv);
PMPI_DECLARE(Igather);
PMPI_DECLARE(Iscatter);
PMPI_DECLARE(Igatherv);
PMPI_DECLARE(Iscatterv);
PMPI_DECLARE(Ialltoallv);
PMPI_DECLARE(Ialltoallw);
PMPI_DECLARE(Iscan);
PMPI_DECLARE(Iexscan);
#ifndef OPEN_MPI
PMPI_DECLARE(Barrier_init);
#endif

#define PMPI_EXPORT(name) PMPI_EXPORT_(MPI_##name, pmpi_##name)
#define PMPI_EXPORT_(public, private)                                                              \
	extern __typeof__(public) public                                                           \
		__attribute__((alias(PMPI_TEXT(private)), visibility("default")))
#define PMPI_APART __attribute__((noinline))
#define PMPI_PASTE(a, b) PMPI_PASTE_(a, b)
#define PMPI_PASTE_(a, b) a##b
#define PMPI_TEXT(name) PMPI_TEXT_(name)
#define PMPI_TEXT_(name) #name

#endif /* PMPI_ENTRY_H */
