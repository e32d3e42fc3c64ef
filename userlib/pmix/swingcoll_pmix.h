/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libswingcoll_pmix: communicators of libswingcoll for the processes of a PMIx job, as Open MPI's mpirun,
 * prterun and srun --mpi=pmix start them. swingcoll_comm_create_auto() finds this library by itself.
 */
#ifndef SWINGCOLL_PMIX_H
#define SWINGCOLL_PMIX_H

#include <swingcoll.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As swingcoll_comm_create_from(), for all processes of the job. */
int swingcoll_comm_create_pmix(struct swingcoll_comm **comm,
			       const struct swingcoll_comm_opts *opts);

/* The bootstrap alone. Initialises PMIx, which counts, so the program may use it too. */
int swingcoll_bootstrap_pmix(struct swingcoll_bootstrap **boot);

#ifdef __cplusplus
}
#endif

#endif /* SWINGCOLL_PMIX_H */
