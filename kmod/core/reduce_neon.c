// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Reductions by NEON (Advanced SIMD of AArch64): 16-byte vectors. A leaf file: see reduce_family.h.
 */
#ifdef __aarch64__

#include "reduce.h"

#define SWC_TABLE swc_reduce_neon_table
#define SWC_INTS
#define SWC_FLOATS
#define SWC_VBYTES 16
#define SWC_UNROLL 8

typedef u16 swc_4u16 __attribute__((vector_size(8)));
typedef float swc_4f32 __attribute__((vector_size(16)));

/*
 * Converting f16 is in the base architecture; only arithmetic on it is an extension. In assembly, because GCC
 * takes __builtin_convertvector() apart into single elements, and arm_neon.h is not for the kernel.
 */
static inline __attribute__((always_inline)) swc_4f32 swc_f16_widen(swc_4u16 x)
{
	swc_4f32 r;

	asm("fcvtl %0.4s, %1.4h" : "=w"(r) : "w"(x));
	return r;
}

static inline __attribute__((always_inline)) swc_4u16 swc_f16_narrow(swc_4f32 x)
{
	swc_4u16 r;

	asm("fcvtn %0.4h, %1.4s" : "=w"(r) : "w"(x));
	return r;
}

#include "reduce_family.h"

#endif /* __aarch64__ */
