// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Reductions of integers in plain C: no FPU section needed, runs anywhere. Compiled with ordinary flags.
 */
#include "reduce.h"

#define SWC_TABLE swc_reduce_scalar_table
#define SWC_INTS
#include "reduce_family.h"
