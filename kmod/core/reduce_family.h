/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Reductions: what every leaf file (reduce_scalar.c, reduce_avx2.c, ...) consists of. Scalar helpers, one
 * instance of reduce_template.h per element type, and the table.
 *
 * In:	SWC_TABLE	name of the table
 *	SWC_INTS	defined if integers are wanted
 *	SWC_FLOATS	defined if floats are wanted; with SWC_VBYTES, the includer gives
 *			swc_f16_widen() and swc_f16_narrow() on vectors
 *	SWC_VBYTES, SWC_UNROLL	see reduce_template.h
 *
 * Leaf files are compiled with flags of their own and run inside of an FPU section: no kernel headers other
 * than types, no calls but to swc_copy().
 */
#ifdef __FAST_MATH__
#error "results must be the same everywhere: no -ffast-math"
#endif

#ifndef __always_inline
#define __always_inline inline __attribute__((__always_inline__))
#endif

#define SWC_PASTE_(a, b) a##_##b
#define SWC_PASTE(a, b) SWC_PASTE_(a, b)

/* magic = ceil(2^64 / div), for div of 2 and more. */
struct swc_divisor {
	u32 div;
	u64 magic;
};

static __always_inline struct swc_divisor swc_divisor_of(unsigned int div)
{
	struct swc_divisor d = { div ? div : 1, 0 };

	if (d.div > 1)
		d.magic = ~(u64)0 / d.div + 1;
	return d;
}

#ifdef SWC_INTS

/*
 * n / div for n and div below 2^32, by multiplication: magic * n is off by less than n, which is too little
 * to reach the next multiple of 2^64 / div (Lemire, Kaser, Kurz: Faster remainder by direct computation,
 * 2019, theorem 1, with 64 fraction bits).
 */
static __always_inline u64 swc_udiv32(u64 n, const struct swc_divisor *d)
{
	return d->div > 1 ? (u64)((unsigned __int128)d->magic * n >> 64) : n;
}

static __always_inline s64 swc_sdiv32(s64 n, const struct swc_divisor *d)
{
	return n < 0 ? -(s64)swc_udiv32(-n, d) : (s64)swc_udiv32(n, d);
}

static __always_inline u64 swc_udiv64(u64 n, const struct swc_divisor *d)
{
	return n / d->div;
}

static __always_inline s64 swc_sdiv64(s64 n, const struct swc_divisor *d)
{
	return n / (s64)d->div;
}

#define SWC_NAME u8
#define SWC_ELEM u8
#define SWC_ACC u8
#define SWC_SIGNED u8
#define SWC_DIVIDE swc_udiv32
#include "reduce_template.h"

#define SWC_NAME i8
#define SWC_ELEM u8
#define SWC_ACC u8
#define SWC_SIGNED s8
#define SWC_DIVIDE swc_sdiv32
#define SWC_SHARES_UNSIGNED
#include "reduce_template.h"

#define SWC_NAME u16
#define SWC_ELEM u16
#define SWC_ACC u16
#define SWC_SIGNED u16
#define SWC_DIVIDE swc_udiv32
#include "reduce_template.h"

#define SWC_NAME i16
#define SWC_ELEM u16
#define SWC_ACC u16
#define SWC_SIGNED s16
#define SWC_DIVIDE swc_sdiv32
#define SWC_SHARES_UNSIGNED
#include "reduce_template.h"

#define SWC_NAME u32
#define SWC_ELEM u32
#define SWC_ACC u32
#define SWC_SIGNED u32
#define SWC_DIVIDE swc_udiv32
#include "reduce_template.h"

#define SWC_NAME i32
#define SWC_ELEM u32
#define SWC_ACC u32
#define SWC_SIGNED s32
#define SWC_DIVIDE swc_sdiv32
#define SWC_SHARES_UNSIGNED
#include "reduce_template.h"

#define SWC_NAME u64
#define SWC_ELEM u64
#define SWC_ACC u64
#define SWC_SIGNED u64
#define SWC_DIVIDE swc_udiv64
#include "reduce_template.h"

#define SWC_NAME i64
#define SWC_ELEM u64
#define SWC_ACC u64
#define SWC_SIGNED s64
#define SWC_DIVIDE swc_sdiv64
#define SWC_SHARES_UNSIGNED
#include "reduce_template.h"

#endif /* SWC_INTS */

#ifdef SWC_FLOATS

static __always_inline u32 swc_bits_of(float x)
{
	union { float f; u32 u; } v = { .f = x };

	return v.u;
}

static __always_inline float swc_f32_of(u32 x)
{
	union { u32 u; float f; } v = { .u = x };

	return v.f;
}

static __always_inline u64 swc_bits64_of(double x)
{
	union { double f; u64 u; } v = { .f = x };

	return v.u;
}

static __always_inline double swc_f64_of(u64 x)
{
	union { u64 u; double f; } v = { .u = x };

	return v.f;
}

/* f16 has 5 bits of exponent, biased by 15, and 10 of fraction; f32 has 8, biased by 127, and 23. */
static __always_inline float swc_f16_widen1(u16 x)
{
	u32 sign = (u32)(x & 0x8000) << 16;
	u32 exponent = x >> 10 & 0x1f;
	u32 fraction = x & 0x3ff;

	if (exponent == 0x1f)
		return swc_f32_of(sign | 0x7f800000 | fraction << 13);
	if (exponent == 0) {
		/* Subnormal: fraction * 2^-24, exact in f32. */
		float f = (float)(int)fraction * swc_f32_of((127 - 24) << 23);

		return swc_f32_of(sign | swc_bits_of(f));
	}
	return swc_f32_of(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

static __always_inline u16 swc_f16_narrow1(float x)
{
	u32 bits = swc_bits_of(x);
	u16 sign = bits >> 16 & 0x8000;
	u32 rest, shift, drop, half;

	bits &= 0x7fffffff;
	if (bits > 0x7f800000)
		return sign | 0x7e00;
	if (bits >= 0x477ff000)		/* 65520, from where it rounds to infinity */
		return sign | 0x7c00;
	if (bits < 0x33000000)		/* 2^-25, below which it rounds to zero */
		return sign;

	if (bits >= 0x38800000) {	/* 2^-14: normal */
		rest = bits - ((127 - 15) << 23);
		shift = 13;
	} else {			/* in units of 2^-24 */
		rest = (bits & 0x7fffff) | 0x800000;
		shift = 126 - (bits >> 23);
	}
	/* To nearest, ties to even; a carry out of the fraction is right to go to the exponent. */
	half = 1u << (shift - 1);
	drop = rest & (2 * half - 1);
	rest >>= shift;
	return sign | (rest + (drop > half || (drop == half && (rest & 1))));
}

#define SWC_NAME f16
#define SWC_ELEM u16
#define SWC_ACC float
#define SWC_HALF 1
#define SWC_BITS u32
#define SWC_BITS_OF swc_bits_of
#define SWC_OF_BITS swc_f32_of
#define SWC_NAN 0x7fc00000u
#include "reduce_template.h"

#define SWC_NAME bf16
#define SWC_ELEM u16
#define SWC_ACC float
#define SWC_HALF 2
#define SWC_BITS u32
#define SWC_BITS_OF swc_bits_of
#define SWC_OF_BITS swc_f32_of
#define SWC_NAN 0x7fc00000u
#include "reduce_template.h"

#define SWC_NAME f32
#define SWC_ELEM float
#define SWC_ACC float
#define SWC_BITS u32
#define SWC_BITS_OF swc_bits_of
#define SWC_OF_BITS swc_f32_of
#define SWC_NAN 0x7fc00000u
#include "reduce_template.h"

#define SWC_NAME f64
#define SWC_ELEM double
#define SWC_ACC double
#define SWC_BITS u64
#define SWC_BITS_OF swc_bits64_of
#define SWC_OF_BITS swc_f64_of
#define SWC_NAN (0x7ff8ull << 48)
#include "reduce_template.h"

#endif /* SWC_FLOATS */

/* Where wrapping makes signedness irrelevant, signed types use the kernels of the unsigned ones. */
#define SWC_INT_ROW(type, utype) { \
	[SWC_SUM] = sum_##utype, [SWC_PROD] = prod_##utype, \
	[SWC_MIN] = min_##type, [SWC_MAX] = max_##type, [SWC_AVG] = avg_##type, \
	[SWC_BAND] = band_##utype, [SWC_BOR] = bor_##utype, [SWC_BXOR] = bxor_##utype, \
}

#define SWC_FLOAT_ROW(type) { \
	[SWC_SUM] = sum_##type, [SWC_PROD] = prod_##type, \
	[SWC_MIN] = min_##type, [SWC_MAX] = max_##type, [SWC_AVG] = avg_##type, \
}

swc_reduce_table SWC_TABLE = {
#ifdef SWC_INTS
	[SWC_I8] = SWC_INT_ROW(i8, u8),
	[SWC_U8] = SWC_INT_ROW(u8, u8),
	[SWC_I16] = SWC_INT_ROW(i16, u16),
	[SWC_U16] = SWC_INT_ROW(u16, u16),
	[SWC_I32] = SWC_INT_ROW(i32, u32),
	[SWC_U32] = SWC_INT_ROW(u32, u32),
	[SWC_I64] = SWC_INT_ROW(i64, u64),
	[SWC_U64] = SWC_INT_ROW(u64, u64),
#endif
#ifdef SWC_FLOATS
	[SWC_F16] = SWC_FLOAT_ROW(f16),
	[SWC_BF16] = SWC_FLOAT_ROW(bf16),
	[SWC_F32] = SWC_FLOAT_ROW(f32),
	[SWC_F64] = SWC_FLOAT_ROW(f64),
#endif
};
