// SPDX-License-Identifier: LGPL-2.1-or-later
/* Collectives that MPI carries out, and that are counted. */
#include "pmpi/entry.h"

#define COUNT int
#define DISPL int
#define NAME(name) MPI_##name
#define MPIS(name) PMPI_##name
#include "pmpi/others_template.h"

#if MPI_VERSION >= 4
#undef COUNT
#undef DISPL
#undef NAME
#undef MPIS
#define COUNT MPI_Count
#define DISPL MPI_Aint
#define NAME(name) MPI_##name##_c
#define MPIS(name) PMPI_##name##_c
#include "pmpi/others_template.h"
#endif
