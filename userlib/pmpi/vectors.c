// SPDX-License-Identifier: LGPL-2.1-or-later
/* Entry points of the blocking collectives whose counts not all ranks know: vector.c carries them out. */
#include "pmpi/entry.h"
#include "pmpi/vector.h"

#include "pmpi/vector_template.h"
#if MPI_VERSION >= 4
#define PMPI_LARGE
#include "pmpi/vector_template.h"
#endif
