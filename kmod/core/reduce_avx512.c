// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Reductions by AVX-512 (F, BW, DQ, VL): 64-byte vectors. A leaf file: see reduce_family.h.
 */
#if defined(__x86_64__) && !defined(__CHECKER__)	/* sparse knows no vectors */

#ifndef __KERNEL__
#pragma GCC target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")
#endif

#include "reduce.h"

#define SWC_TABLE swc_reduce_avx512_table
#define SWC_INTS
#define SWC_FLOATS
#define SWC_VBYTES 64
#define SWC_UNROLL 4

typedef u16 swc_16u16 __attribute__((vector_size(32)));
typedef short swc_16i16 __attribute__((vector_size(32)));
typedef float swc_16f32 __attribute__((vector_size(64)));

static inline __attribute__((always_inline)) swc_16f32 swc_f16_widen(swc_16u16 x)
{
	/* 4: round as MXCSR says, though nothing is to be rounded here */
	return __builtin_ia32_vcvtph2ps512_mask((swc_16i16)x, (swc_16f32){}, 0xffff, 4);
}

static inline __attribute__((always_inline)) swc_16u16 swc_f16_narrow(swc_16f32 x)
{
	/* 0: to nearest even */
	return (swc_16u16)__builtin_ia32_vcvtps2ph512_mask(x, 0, (swc_16i16){}, 0xffff);
}

#include "reduce_family.h"

#endif
