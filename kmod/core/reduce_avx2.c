// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Reductions by AVX2 and F16C: 32-byte vectors. A leaf file: see reduce_family.h.
 */
#if defined(__x86_64__) && !defined(__CHECKER__)	/* sparse knows no vectors */

#ifndef __KERNEL__
#pragma GCC target("avx2,f16c")
#endif

#include "reduce.h"

#define SWC_TABLE swc_reduce_avx2_table
#define SWC_INTS
#define SWC_FLOATS
#define SWC_VBYTES 32
#define SWC_UNROLL 8

typedef u16 swc_8u16 __attribute__((vector_size(16)));
typedef short swc_8i16 __attribute__((vector_size(16)));
typedef float swc_8f32 __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) swc_8f32 swc_f16_widen(swc_8u16 x)
{
	return __builtin_ia32_vcvtph2ps256((swc_8i16)x);
}

static inline __attribute__((always_inline)) swc_8u16 swc_f16_narrow(swc_8f32 x)
{
	return (swc_8u16)__builtin_ia32_vcvtps2ph256(x, 0);	/* 0: to nearest even */
}

#include "reduce_family.h"

#endif
