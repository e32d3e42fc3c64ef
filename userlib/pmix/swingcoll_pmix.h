/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libswingcoll_pmix: communicators of libswingcoll for the processes of a PMIx job, as Open MPI's
 * mpirun, prterun and srun --mpi=pmix start them. swingcoll_comm_create_auto() loads this library
 * itself.
 *
 * All processes of the job call these alike. They return 0 or a negative errno;
 * swingcoll_bootstrap_error() says what was wrong. -EIO: PMIx reported an error.
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

/*
 * The bootstrap alone; free it with swingcoll_bootstrap_free(). It initializes PMIx, which counts
 * its users, so the program may use PMIx too.
 */
int swingcoll_bootstrap_pmix(struct swingcoll_bootstrap **boot);

/*
 * Have the exchanges of such a bootstrap wait at least so long, whatever SWINGCOLL_BOOT_TIMEOUT says: in the
 * last one all ranks wait for the slowest creation. swingcoll_comm_create_pmix() and
 * swingcoll_comm_create_auto() do it.
 */
void swingcoll_bootstrap_pmix_min_timeout(struct swingcoll_bootstrap *boot, uint32_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif /* SWINGCOLL_PMIX_H */
