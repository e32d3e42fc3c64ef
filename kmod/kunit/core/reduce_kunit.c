// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reductions: each type, operation and implementation that this machine can run, at odd lengths and
 * misaligned addresses, against results computed here with integers only. Floats are checked with small
 * whole numbers, which each type represents exactly, and with the special values that the rules in reduce.h
 * name.
 */
#include <linux/prandom.h>

#include "compat.h"
#include "core/reduce.h"
#include "kunit/harness.h"

#define MAX_ELEMS	300
#define SOURCES	5
#define GUARD	64

static const u32 lengths[] = { 0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 300 };

static bool is_float(u32 type)
{
	return type >= SWC_F16;
}

static u64 load(const void *p, u32 size)
{
	u64 v = 0;

	memcpy(&v, p, size);
	return v;
}

static s64 sign_extend(u64 v, u32 type)
{
	switch (type) {
	case SWC_I8:
		return (s8)v;
	case SWC_I16:
		return (s16)v;
	case SWC_I32:
		return (s32)v;
	default:
		return v;
	}
}

static u64 cut(u64 v, u32 size)
{
	return size == 8 ? v : v & ((1ull << 8 * size) - 1);
}

/* a op b on integers of this type, in 64-bit arithmetic. */
static u64 naive(u64 a, u64 b, u32 type, u32 op)
{
	bool is_signed = type < SWC_F16 && !(type & 1);
	u64 bits = is_signed ? sign_extend(a, type) : a, other = is_signed ? sign_extend(b, type) : b;

	switch (op) {
	case SWC_PROD:
		return bits * other;
	case SWC_MIN:
		return (is_signed ? (s64)bits < (s64)other : bits < other) ? bits : other;
	case SWC_MAX:
		return (is_signed ? (s64)bits > (s64)other : bits > other) ? bits : other;
	case SWC_BAND:
		return bits & other;
	case SWC_BOR:
		return bits | other;
	case SWC_BXOR:
		return bits ^ other;
	default:
		return bits + other;
	}
}

/* A whole number as a float of this type, as bits; exact up to 2^8 (bf16), 2^11 (f16) and more. */
static u64 encode(s64 v, u32 type)
{
	static const struct { u8 exponent, mantissa; } formats[] = {
		[SWC_F16 - SWC_F16] = { 5, 10 }, [SWC_BF16 - SWC_F16] = { 8, 7 },
		[SWC_F32 - SWC_F16] = { 8, 23 }, [SWC_F64 - SWC_F16] = { 11, 52 },
	};
	u32 e = formats[type - SWC_F16].exponent, m = formats[type - SWC_F16].mantissa, top;
	u64 a = v < 0 ? -v : v, sign = (u64)(v < 0) << (e + m);

	if (!v)
		return 0;
	top = fls64(a) - 1;
	a ^= 1ull << top;
	return sign | (u64)(top + (1 << (e - 1)) - 1) << m | (top > m ? a >> (top - m) : a << (m - top));
}

struct bench {
	u8 *src[SOURCES], *dst[3];
	s64 number[SOURCES][MAX_ELEMS];
	u64 want[MAX_ELEMS];
};

static void run(const struct swc_reduce_impl *impl, u32 type, u32 op, void **dst, u32 ndst, const void **src,
		u32 nsrc, u32 n, u32 div)
{
	swc_reduce_fn fn = swc_reduce_impl_get(impl, type, op);

	if (swc_reduce_impl_needs_fpu(impl, type))
		swc_fpu_begin();
	fn(dst, ndst, src, nsrc, n, div);
	if (swc_reduce_impl_needs_fpu(impl, type))
		swc_fpu_end();
}

static u64 expected(struct bench *b, const u8 *const *src, u32 type, u32 op, u32 nsrc, u32 i, u32 div)
{
	u32 size = swc_dtype_size(type), s;
	u64 v;

	if (is_float(type)) {
		s64 acc = b->number[0][i];

		for (s = 1; s < nsrc; s++)
			acc = naive(acc, b->number[s][i], SWC_I64, op);
		return encode(acc, type);
	}
	v = load(src[0] + i * size, size);
	for (s = 1; s < nsrc; s++)
		v = cut(naive(v, load(src[s] + i * size, size), type, op == SWC_AVG ? SWC_SUM : op), size);
	if (op == SWC_AVG)
		v = type & 1 ? v / div : (u64)(sign_extend(v, type) / (s64)div);
	return cut(v, size);
}

/* One type and operation at one length, misaligned by @shift elements. */
static void reduce_one(struct kunit *test, const struct swc_reduce_impl *impl, struct bench *b, u32 type,
		       u32 op, u32 n, u32 shift, struct rnd_state *rnd, bool in_place)
{
	u32 size = swc_dtype_size(type), nsrc = 1 + prandom_u32_state(rnd) % SOURCES, i, s, d;
	u32 ndst = 1 + prandom_u32_state(rnd) % 3, div = 1 + prandom_u32_state(rnd) % 7;
	const void *src[SOURCES];
	void *dst[3];
	u64 *want = b->want;

	if (is_float(type) && op == SWC_AVG) {
		/* The average of a number and itself is exact. */
		nsrc = 2;
		div = 2;
	}
	for (s = 0; s < nsrc; s++) {
		src[s] = b->src[s] + GUARD + (shift + s) * size;
		for (i = 0; i < n; i++) {
			u64 v = prandom_u32_state(rnd) | (u64)prandom_u32_state(rnd) << 32;

			if (is_float(type)) {
				/* Products of five stay below 2^8. */
				b->number[s][i] = op == SWC_PROD ? (s64)(v % 5) - 2 : (s64)(v % 41) - 20;
				if (op == SWC_AVG && s)
					b->number[s][i] = b->number[0][i];
				v = encode(b->number[s][i], type);
			}
			memcpy((void *)src[s] + i * size, &v, size);
		}
	}
	for (d = 0; d < ndst; d++) {
		memset(b->dst[d], 0xa5, 2 * GUARD + MAX_ELEMS * 8);
		dst[d] = b->dst[d] + GUARD + (3 - d) * size;
	}
	if (in_place)
		dst[0] = (void *)src[nsrc - 1];
	for (i = 0; i < n; i++)
		want[i] = is_float(type) && op == SWC_AVG ? encode(b->number[0][i], type) :
			  expected(b, (const u8 *const *)src, type, op, nsrc, i, div);
	run(impl, type, op, dst, ndst, src, nsrc, n, div);
	for (d = 0; d < ndst; d++) {
		for (i = 0; i < n; i++) {
			u64 got = load(dst[d] + i * size, size);
			u64 sign = 1ull << (8 * size - 1);

			/* The sign of a zero product depends on the signs of its factors: not checked. */
			if (got == want[i] || (is_float(type) && op == SWC_PROD && !want[i] && got == sign))
				continue;
			KUNIT_FAIL(test, "%s %s %s: %u sources, %u elements, element %u: %llx, not %llx",
				   impl->name, swc_dtype_name(type), swc_redop_name(op), nsrc, n, i, got,
				   want[i]);
			return;
		}
		if (d || !in_place) {
			u8 *end = dst[d] + n * size, *start = dst[d];

			KUNIT_EXPECT_EQ(test, *end, 0xa5);
			KUNIT_EXPECT_EQ(test, start[-1], 0xa5);
		}
	}
}

static struct bench *bench(struct kunit *test)
{
	struct bench *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, b);
	for (i = 0; i < SOURCES + 3; i++) {
		u8 *p = kunit_kzalloc(test, 2 * GUARD + (MAX_ELEMS + SOURCES + 8) * 8, GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, p);
		if (i < SOURCES)
			b->src[i] = p;
		else
			b->dst[i - SOURCES] = p;
	}
	return b;
}

static void reduce_all(struct kunit *test)
{
	const struct swc_reduce_impl *impl;
	struct bench *b = bench(test);
	struct rnd_state rnd;
	u32 k, type, op, i;

	prandom_seed_state(&rnd, 99);
	for (k = 0; (impl = swc_reduce_impl_at(k)); k++) {
		if (!impl->valid())
			continue;
		for (type = 0; type < SWC_DTYPE_NR; type++) {
			for (op = 0; op < SWC_REDOP_NR; op++) {
				if (!swc_reduce_supported(type, op))
					continue;
				for (i = 0; i < ARRAY_SIZE(lengths); i++) {
					reduce_one(test, impl, b, type, op, lengths[i], i % 4, &rnd, false);
					reduce_one(test, impl, b, type, op, lengths[i], i % 3, &rnd, true);
				}
			}
			cond_resched();
		}
	}
}

struct special {
	u64 nan, other_nan, one, inf, minus_zero;
};

static const struct special specials[] = {
	{ 0x7e00, 0xfd01, 0x3c00, 0x7c00, 0x8000 },
	{ 0x7fc0, 0xff81, 0x3f80, 0x7f80, 0x8000 },
	{ 0x7fc00000, 0xff800001, 0x3f800000, 0x7f800000, 0x80000000 },
	{ 0x7ff8000000000000, 0xfff0000000000001, 0x3ff0000000000000, 0x7ff0000000000000,
	  0x8000000000000000 },
};

/* The result of any NaN is the canonical NaN; -0 is less than +0; infinities of both signs add up to NaN. */
static void reduce_special(struct kunit *test)
{
	const struct swc_reduce_impl *impl;
	u32 k, type, i, swap;

	for (k = 0; (impl = swc_reduce_impl_at(k)); k++) {
		if (!impl->valid())
			continue;
		for (type = SWC_F16; type <= SWC_F64; type++) {
			const struct special *s = &specials[type - SWC_F16];
			u32 size = swc_dtype_size(type);
			u64 minus_inf = s->inf | s->minus_zero;
			const struct { u64 a, b; u32 op; u64 want; } t[] = {
				{ s->other_nan, s->one, SWC_SUM, s->nan },
				{ s->other_nan, s->one, SWC_PROD, s->nan },
				{ s->other_nan, s->one, SWC_MIN, s->nan },
				{ s->other_nan, s->one, SWC_MAX, s->nan },
				{ s->other_nan, s->inf, SWC_MAX, s->nan },
				{ s->inf, minus_inf, SWC_SUM, s->nan },
				{ s->inf, 0, SWC_PROD, s->nan },
				{ s->inf, s->one, SWC_SUM, s->inf },
				{ 0, s->minus_zero, SWC_MIN, s->minus_zero },
				{ 0, s->minus_zero, SWC_MAX, 0 },
				{ minus_inf, s->inf, SWC_MIN, minus_inf },
			};

			for (i = 0; i < ARRAY_SIZE(t); i++) {
				for (swap = 0; swap < 2; swap++) {
					u64 got = 0;
					const void *src[2] = { swap ? &t[i].b : &t[i].a,
							       swap ? &t[i].a : &t[i].b };
					void *dst[1] = { &got };

					run(impl, type, t[i].op, dst, 1, src, 2, 1, 0);
					KUNIT_EXPECT_EQ_MSG(test, got, cut(t[i].want, size),
							    "%s %s %s of case %u", impl->name,
							    swc_dtype_name(type),
							    swc_redop_name(t[i].op), i);
				}
			}
		}
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE_SLOW(reduce_all),
	KUNIT_CASE(reduce_special),
	{}
};

struct kunit_suite swc_reduce_suite = { .name = "swc_reduce", .test_cases = cases };
