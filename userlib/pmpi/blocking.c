// SPDX-License-Identifier: LGPL-2.1-or-later
/* Blocking collectives: each describes itself, and goes to swingcoll or to MPI. */
#include "pmpi/entry.h"
#include "pmpi/quick.h"

#include "pmpi/collective_template.h"
#if MPI_VERSION >= 4
#define PMPI_LARGE
#include "pmpi/collective_template.h"
#endif
