/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Reductions: n sources to m destinations in one pass over memory.
 *
 * There are several implementations of one table of functions (AVX-512, AVX2, NEON, plain C); the best that
 * the machine can run is chosen once, when the module is loaded or the process starts. By the rules below
 * all of them agree to the bit, on every architecture.
 *
 * Order:    dst[i] = ((src[0] op src[1]) op src[2]) ..., element by element, left to right, whatever
 *           the vector width. One source is a copy, bit for bit (unless AVG divides it by 2 or more).
 * Integers: arithmetic wraps, as if done in the unsigned type of the same size.
 * AVG:      the SUM, and then one division by div. Integers divide the wrapped sum (as a number of
 *           its own signedness), truncating toward zero, by div as a number from 1 to 2^32-1, not cut to
 *           the element type. Floats divide by div converted to the accumulation type, correctly rounded.
 *           A div of 0 counts as 1.
 * Floats:   IEEE 754, round to nearest even, subnormals kept, no fused multiply-add. F16 and BF16 are
 *           widened to f32, accumulated in f32 over all sources (AVG divides there, too) and rounded
 *           once, at the store.
 * MIN, MAX: on floats, those of IEEE 754-2019 "minimum" and "maximum": a NaN in any source gives NaN,
 *           and -0 is less than +0. Hence min and max do not depend on the order of the sources.
 * NaN:      a reduction that results in NaN stores the one canonical NaN: quiet, positive, no payload
 *           (0x7e00, 0x7fc0, 0x7fc00000, 0x7ff8000000000000). CPUs differ in which payload and sign survive
 *           an operation on NaNs; this removes the difference.
 *
 * In the kernel, files compiled with vector instructions include this one, so it must not contain inline
 * code.
 */
#ifndef SWC_CORE_REDUCE_H
#define SWC_CORE_REDUCE_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include "types.h"
#endif

#include <linux/swingcoll.h>

/**
 * typedef swc_reduce_fn - reduce nsrc sources to ndst destinations
 * @dst: @ndst pointers, each to @nelem elements; a destination may be equal to a source (or to another
 *	destination), any other overlap is forbidden
 * @ndst: at least 1
 * @src: @nsrc pointers, each to @nelem elements
 * @nsrc: at least 1
 * @nelem: number of elements, 0 allowed
 * @div: divisor for SWC_AVG, ignored by all others
 *
 * All pointers are aligned to the element size. Never sleeps, never faults by itself. In the kernel the
 * caller must be in an FPU section if swc_reduce_needs_fpu() says so.
 */
typedef void (*swc_reduce_fn)(void *const *dst, unsigned int ndst, const void *const *src,
			      unsigned int nsrc, size_t nelem, unsigned int div);

/*
 * Rows are data types, columns operations; NULL where an operation makes no sense. Both numbers are powers
 * of two, so that an index can be masked: types and operations come from users, and a mispredicted range
 * check must not lead to a call through a pointer outside the table.
 */
#define SWC_REDUCE_ROWS 16
#define SWC_REDUCE_COLS 8

typedef const swc_reduce_fn swc_reduce_table[SWC_REDUCE_ROWS][SWC_REDUCE_COLS];

/**
 * struct swc_reduce_impl - one implementation of all reductions
 * @name: "avx512", "avx2", "neon" or "scalar"
 * @valid: whether this machine can run it
 * @ints: functions for the integer types
 * @floats: functions for the floating point types
 * @ints_need_fpu: whether @ints use vector registers (@floats always do)
 */
struct swc_reduce_impl {
	const char *name;
	bool (*valid)(void);
	swc_reduce_table *ints;
	swc_reduce_table *floats;
	bool ints_need_fpu;
};

/*
 * Choose the best valid implementation; until then it is the scalar one. Neither this nor
 * swc_reduce_force() may run concurrently with other users of this file.
 */
void swc_reduce_init(void);

/* Return: 0; -EINVAL for an unknown name; -EOPNOTSUPP if this machine cannot run it (nothing changes). */
int swc_reduce_force(const char *name);

const struct swc_reduce_impl *swc_reduce_chosen(void);

/* The i-th implementation compiled in, valid or not, best first; NULL past the end. */
const struct swc_reduce_impl *swc_reduce_impl_at(unsigned int i);

/* Whether the order of the operands shows in the last bits of the result. */
bool swc_reduce_order_matters(enum swc_dtype dtype, enum swc_redop redop);

/* NULL if swc_reduce_supported() is false, or for values outside the enums. */
swc_reduce_fn swc_reduce_impl_get(const struct swc_reduce_impl *impl, enum swc_dtype dtype,
				  enum swc_redop redop);
swc_reduce_fn swc_reduce_get(enum swc_dtype dtype, enum swc_redop redop);

/*
 * Whether the functions for this type must run between swc_fpu_begin() and swc_fpu_end(). Keep such a
 * section to a few KiB of elements per pointer: nothing else runs on the CPU meanwhile. Use swc_copy() for
 * one source.
 */
bool swc_reduce_impl_needs_fpu(const struct swc_reduce_impl *impl, enum swc_dtype dtype);
bool swc_reduce_needs_fpu(enum swc_dtype dtype);

/* Bitwise operations are for integers, all others for every type. */
bool swc_reduce_supported(enum swc_dtype dtype, enum swc_redop redop);

/* Bytes per element; 0 for an unknown type. */
size_t swc_dtype_size(enum swc_dtype dtype);

/* "f32", "sum"; "?" for an unknown value. */
const char *swc_dtype_name(enum swc_dtype dtype);
const char *swc_redop_name(enum swc_redop redop);

/* Copy @bytes from @src to every dst that is not @src itself. Needs no FPU section. */
void swc_copy(void *const *dst, unsigned int ndst, const void *src, size_t bytes);

/* Tables of the leaf files, for reduce.c only. Which exist depends on the architecture. */
extern swc_reduce_table swc_reduce_avx512_table;
extern swc_reduce_table swc_reduce_avx2_table;
extern swc_reduce_table swc_reduce_neon_table;
extern swc_reduce_table swc_reduce_scalar_table;
extern swc_reduce_table swc_reduce_scalar_fp_table;

#endif /* SWC_CORE_REDUCE_H */
