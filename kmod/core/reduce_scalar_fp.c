// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Reductions of floats in plain C, for machines without better. A leaf file: see reduce_family.h. Needs the
 * compiler's hard float (SSE2 on x86-64), and an FPU section in the kernel.
 */
#include "reduce.h"

#define SWC_TABLE swc_reduce_scalar_fp_table
#define SWC_FLOATS
#include "reduce_family.h"
