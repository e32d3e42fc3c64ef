// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Reductions: the table of implementations and the choice among them; names and sizes of types.
 *
 * Compiled with ordinary flags. The choice is made at start-up and constant afterwards, so no locks are
 * needed; everything else is pure. Rules of arithmetic: reduce.h. The loops: reduce_template.h.
 */
#include "reduce.h"
#include "types.h"

#if defined(__KERNEL__) && defined(CONFIG_X86_64) && !defined(CONFIG_UML)
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>
#include <asm/fpu/types.h>
#define SWC_REDUCE_X86 1
#elif defined(__KERNEL__) && defined(CONFIG_ARM64) && defined(CONFIG_KERNEL_MODE_NEON)
#include <asm/neon.h>
#define SWC_REDUCE_NEON 1
#elif !defined(__KERNEL__) && defined(__x86_64__)
#define SWC_REDUCE_X86 1
#elif !defined(__KERNEL__) && defined(__aarch64__)
#define SWC_REDUCE_NEON 1
#endif

_Static_assert(SWC_DTYPE_NR <= SWC_REDUCE_ROWS, "table of reductions has too few rows");
_Static_assert(SWC_REDOP_NR <= SWC_REDUCE_COLS, "table of reductions has too few columns");

static const struct {
	const char *name;
	u8 size;
	bool is_float;
} dtypes[SWC_REDUCE_ROWS] = {
	[SWC_I8] = { "i8", 1, false },	   [SWC_U8] = { "u8", 1, false },
	[SWC_I16] = { "i16", 2, false },   [SWC_U16] = { "u16", 2, false },
	[SWC_I32] = { "i32", 4, false },   [SWC_U32] = { "u32", 4, false },
	[SWC_I64] = { "i64", 8, false },   [SWC_U64] = { "u64", 8, false },
	[SWC_F16] = { "f16", 2, true },	   [SWC_BF16] = { "bf16", 2, true },
	[SWC_F32] = { "f32", 4, true },	   [SWC_F64] = { "f64", 8, true },
};

static const char *const redops[SWC_REDUCE_COLS] = {
	[SWC_SUM] = "sum",   [SWC_PROD] = "prod", [SWC_MIN] = "min", [SWC_MAX] = "max",
	[SWC_AVG] = "avg",   [SWC_BAND] = "band", [SWC_BOR] = "bor", [SWC_BXOR] = "bxor",
};

#ifdef SWC_REDUCE_X86
#ifdef __KERNEL__
static bool avx2_valid(void)
{
	return boot_cpu_has(X86_FEATURE_AVX2) && boot_cpu_has(X86_FEATURE_F16C) &&
	       cpu_has_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM, NULL);
}

static bool avx512_valid(void)
{
	return avx2_valid() && boot_cpu_has(X86_FEATURE_AVX512F) &&
	       boot_cpu_has(X86_FEATURE_AVX512BW) && boot_cpu_has(X86_FEATURE_AVX512DQ) &&
	       boot_cpu_has(X86_FEATURE_AVX512VL) && cpu_has_xfeatures(XFEATURE_MASK_AVX512, NULL);
}
#else
/* The builtin checks that the operating system supports the registers, too. */
static bool avx2_valid(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
}

static bool avx512_valid(void)
{
	return avx2_valid() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}
#endif
#endif /* SWC_REDUCE_X86 */

#ifdef SWC_REDUCE_NEON
static bool neon_valid(void)
{
#ifdef __KERNEL__
	return cpu_has_neon();
#else
	return true;
#endif
}
#endif

static bool scalar_valid(void)
{
	return true;
}

static const struct swc_reduce_impl impls[] = {
#ifdef SWC_REDUCE_X86
	{ "avx512", avx512_valid, &swc_reduce_avx512_table, &swc_reduce_avx512_table, true },
	{ "avx2", avx2_valid, &swc_reduce_avx2_table, &swc_reduce_avx2_table, true },
#endif
#ifdef SWC_REDUCE_NEON
	{ "neon", neon_valid, &swc_reduce_neon_table, &swc_reduce_neon_table, true },
#endif
	{ "scalar", scalar_valid, &swc_reduce_scalar_table, &swc_reduce_scalar_fp_table, false },
};

static const struct swc_reduce_impl *chosen = &impls[ARRAY_SIZE(impls) - 1];

const struct swc_reduce_impl *swc_reduce_impl_at(unsigned int i)
{
	return i < ARRAY_SIZE(impls) ? &impls[i] : NULL;
}

void swc_reduce_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(impls); i++) {
		if (impls[i].valid()) {
			chosen = &impls[i];
			return;
		}
	}
}

int swc_reduce_force(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(impls); i++) {
		if (strcmp(impls[i].name, name) == 0) {
			if (!impls[i].valid())
				return -EOPNOTSUPP;
			chosen = &impls[i];
			return 0;
		}
	}
	return -EINVAL;
}

const struct swc_reduce_impl *swc_reduce_chosen(void)
{
	return chosen;
}

bool swc_reduce_supported(enum swc_dtype dtype, enum swc_redop redop)
{
	if ((unsigned int)dtype >= SWC_DTYPE_NR || (unsigned int)redop >= SWC_REDOP_NR)
		return false;

	if (redop == SWC_BAND || redop == SWC_BOR || redop == SWC_BXOR)
		return !dtypes[dtype & (SWC_REDUCE_ROWS - 1)].is_float;
	return true;
}

bool swc_reduce_order_matters(enum swc_dtype dtype, enum swc_redop redop)
{
	/* Minimum and maximum are exact, NaN and signed zero included. */
	return dtypes[dtype & (SWC_REDUCE_ROWS - 1)].is_float && redop != SWC_MIN &&
	       redop != SWC_MAX;
}

swc_reduce_fn swc_reduce_impl_get(const struct swc_reduce_impl *impl, enum swc_dtype dtype,
				  enum swc_redop redop)
{
	unsigned int row = dtype & (SWC_REDUCE_ROWS - 1);
	unsigned int col = redop & (SWC_REDUCE_COLS - 1);

	if (!swc_reduce_supported(dtype, redop))
		return NULL;
	return dtypes[row].is_float ? (*impl->floats)[row][col] : (*impl->ints)[row][col];
}

swc_reduce_fn swc_reduce_get(enum swc_dtype dtype, enum swc_redop redop)
{
	return swc_reduce_impl_get(chosen, dtype, redop);
}

bool swc_reduce_impl_needs_fpu(const struct swc_reduce_impl *impl, enum swc_dtype dtype)
{
	return impl->ints_need_fpu || dtypes[dtype & (SWC_REDUCE_ROWS - 1)].is_float;
}

bool swc_reduce_needs_fpu(enum swc_dtype dtype)
{
	return swc_reduce_impl_needs_fpu(chosen, dtype);
}

size_t swc_dtype_size(enum swc_dtype dtype)
{
	/* Rows past the last type have size 0. */
	return (unsigned int)dtype < SWC_DTYPE_NR ? dtypes[dtype & (SWC_REDUCE_ROWS - 1)].size : 0;
}

const char *swc_dtype_name(enum swc_dtype dtype)
{
	return (unsigned int)dtype < SWC_DTYPE_NR ? dtypes[dtype].name : "?";
}

const char *swc_redop_name(enum swc_redop redop)
{
	return (unsigned int)redop < SWC_REDOP_NR ? redops[redop] : "?";
}
