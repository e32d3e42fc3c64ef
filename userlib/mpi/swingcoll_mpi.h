/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libswingcoll_mpi: communicators of libswingcoll for the ranks of an MPI communicator. MPI is used
 * only while they are created. The library is built for one MPI, the one whose mpicc compiled it;
 * for Debian's Open MPI and MPICH it is named libswingcoll_mpi_openmpi and libswingcoll_mpi_mpich
 * (pkg-config swingcoll-mpi-openmpi, swingcoll-mpi-mpich).
 *
 * Both calls are collective over mpi, which must be an intracommunicator, come after MPI_Init(),
 * and return 0 or a negative errno; swingcoll_bootstrap_error() says what was wrong. -EIO: MPI
 * reported an error.
 */
#ifndef SWINGCOLL_MPI_H
#define SWINGCOLL_MPI_H

#include <mpi.h>
#include <swingcoll.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As swingcoll_comm_create_from(), with the ranks of mpi. */
int swingcoll_comm_create_mpi(struct swingcoll_comm **comm, MPI_Comm mpi,
			      const struct swingcoll_comm_opts *opts);

/*
 * The bootstrap alone, on a duplicate of mpi. Free it with swingcoll_bootstrap_free() before
 * MPI_Finalize().
 */
int swingcoll_bootstrap_mpi(struct swingcoll_bootstrap **boot, MPI_Comm mpi);

#ifdef __cplusplus
}
#endif

#endif /* SWINGCOLL_MPI_H */
