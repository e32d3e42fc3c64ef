// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Persistent collectives: MPI carries them out, and their initialisation is counted. A request of
 * theirs lives through many completions, between which it is inactive, while a generalized request,
 * by which the nonblocking calls are offloaded, ends with the first. So offloading these would mean
 * to stand in for all of MPI's calls for requests, in every program, whether it has such requests
 * or not.
 *
 * Since MPI 4 they are part of MPI; Open MPI 4 has them as an extension, MPIX_Allreduce_init().
 */
#include "pmpi/entry.h"

#if MPI_VERSION >= 4
#define OURS(name) MPI_##name##_init
#define THEIRS(name) PMPI_##name##_init
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
#define OURS(name) MPIX_##name##_init
#define THEIRS(name) PMPIX_##name##_init
#endif
#endif

#ifdef OURS
static void count_init(enum pmpi_name name)
{
	pmpi_count_fallback(name, pmpi_world.active ? PMPI_WHY_FUNCTION : pmpi_world.why);
}

#define COUNT int
#define DISPL int
#include "pmpi/persistent_template.h"
#endif

#if MPI_VERSION >= 4
#undef OURS
#undef THEIRS
#undef COUNT
#undef DISPL
#undef INIT
#undef REQUEST
#define OURS(name) MPI_##name##_init_c
#define THEIRS(name) PMPI_##name##_init_c
#define COUNT MPI_Count
#define DISPL MPI_Aint
#define PMPI_LARGE
#include "pmpi/persistent_template.h"
#endif
