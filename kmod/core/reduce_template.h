/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Reductions: the kernels for one element type. reduce_family.h includes this file once per type.
 *
 * In:	SWC_NAME	suffix of all names made here: u8, f32, ...
 *	SWC_ELEM	type of an element in memory, unsigned for all integers (arithmetic wraps)
 *	SWC_ACC		type of the accumulator: SWC_ELEM, or float for f16 and bf16
 *	SWC_SIGNED	integers: the type that comparison and division see
 *	SWC_BITS	floats: the unsigned type of the size of SWC_ACC
 *	SWC_NAN		floats: the canonical NaN of SWC_ACC as SWC_BITS
 *	SWC_HALF	f16 and bf16: 1 and 2; undefined otherwise
 *	SWC_VBYTES	width of a vector register; undefined for plain C
 *	SWC_UNROLL	accumulators held in registers per block (even)
 *
 * A block of every source is read, left to right, into the accumulators; the result is written to every
 * destination; then comes the next block. Hence one pass over memory, and in-place use is harmless.
 * What does not fill a vector is done element by element.
 *
 * Users may write to the sources meanwhile, and the compiler may load an element twice. That can spoil the
 * value of that element and nothing else: no address, no length and no branch of consequence depends on data.
 */
#define F(x) SWC_PASTE(x, SWC_NAME)

/* Buffers belong to users and may hold objects of any type: these may alias them. */
typedef SWC_ELEM F(elem) __attribute__((may_alias));

/* Elements per round in plain C: enough to amortise the loops, few enough for a kernel stack. */
#define SWC_ROUND 64

/* ---- one element ---- */

static __always_inline SWC_ACC F(widen1)(SWC_ELEM x)
{
#if !defined(SWC_HALF)
	return x;
#elif SWC_HALF == 1
	return swc_f16_widen1(x);
#else
	return swc_f32_of((u32)x << 16);
#endif
}

static __always_inline SWC_ELEM F(finish1)(SWC_ACC acc, const struct swc_divisor *d, enum swc_redop op)
{
#ifdef SWC_SIGNED
	if (op == SWC_AVG)
		return (SWC_ELEM)(SWC_SIGNED)SWC_DIVIDE((SWC_SIGNED)acc, d);
	return acc;
#else
	if (op == SWC_AVG)
		acc /= (SWC_ACC)d->div;
	if (acc != acc)
		acc = SWC_OF_BITS(SWC_NAN);
#if !defined(SWC_HALF)
	return acc;
#elif SWC_HALF == 1
	return swc_f16_narrow1(acc);
#else
	return (swc_bits_of(acc) + 0x7fff + (swc_bits_of(acc) >> 16 & 1)) >> 16;
#endif
#endif
}

static __always_inline SWC_ACC F(apply1)(SWC_ACC a, SWC_ACC b, enum swc_redop op)
{
#ifdef SWC_SIGNED
	switch (op) {
	case SWC_PROD:
		/* u16 would be promoted to int, and 65535 squared does not fit one. */
		return (SWC_ACC)(1u * a * b);
	case SWC_MIN:
		return (SWC_SIGNED)a < (SWC_SIGNED)b ? a : b;
	case SWC_MAX:
		return (SWC_SIGNED)a > (SWC_SIGNED)b ? a : b;
	case SWC_BAND:
		return a & b;
	case SWC_BOR:
		return a | b;
	case SWC_BXOR:
		return a ^ b;
	default:
		return a + b;
	}
#else
	switch (op) {
	case SWC_PROD:
		return a * b;
	case SWC_MIN:
		/* Equal numbers have equal bits, but for the zeros; and NaN | anything is NaN. */
		if (a < b)
			return a;
		return b < a ? b : SWC_OF_BITS(SWC_BITS_OF(a) | SWC_BITS_OF(b));
	case SWC_MAX:
		if (a > b)
			return a;
		if (b > a)
			return b;
		return a == b ? SWC_OF_BITS(SWC_BITS_OF(a) & SWC_BITS_OF(b)) : SWC_OF_BITS(SWC_NAN);
	default:
		return a + b;
	}
#endif
}

static __always_inline void F(plain)(void *const *dst, unsigned int ndst, const void *const *src,
				     unsigned int nsrc, size_t from, size_t to,
				     const struct swc_divisor *d, enum swc_redop op)
{
	SWC_ACC acc[SWC_ROUND];
	SWC_ELEM out[SWC_ROUND];
	unsigned int s, k, now;

	for (; from < to; from += now) {
		now = to - from < SWC_ROUND ? to - from : SWC_ROUND;

		for (k = 0; k < now; k++)
			acc[k] = F(widen1)(((const F(elem) *)src[0])[from + k]);
		for (s = 1; s < nsrc; s++) {
			const F(elem) *p = (const F(elem) *)src[s] + from;

			for (k = 0; k < now; k++)
				acc[k] = F(apply1)(acc[k], F(widen1)(p[k]), op);
		}

		for (k = 0; k < now; k++)
			out[k] = F(finish1)(acc[k], d, op);
		for (s = 0; s < ndst; s++) {
			F(elem) *p = (F(elem) *)dst[s] + from;

			for (k = 0; k < now; k++)
				p[k] = out[k];
		}
	}
}

/* So few that the loops above would cost more than the work: each element by itself. */
#define SWC_FEW 4

static __always_inline void F(few)(void *const *dst, unsigned int ndst, const void *const *src,
				   unsigned int nsrc, size_t nelem, const struct swc_divisor *d,
				   enum swc_redop op)
{
	unsigned int s;
	size_t i;

	for (i = 0; i < nelem; i++) {
		SWC_ACC acc = F(widen1)(((const F(elem) *)src[0])[i]);
		SWC_ELEM out;

		for (s = 1; s < nsrc; s++)
			acc = F(apply1)(acc, F(widen1)(((const F(elem) *)src[s])[i]), op);
		out = F(finish1)(acc, d, op);
		for (s = 0; s < ndst; s++)
			((F(elem) *)dst[s])[i] = out;
	}
}

/* ---- vectors ---- */

#ifdef SWC_VBYTES

#define SWC_VECTOR(type, bytes, name) \
	typedef type name __attribute__((vector_size(bytes))); \
	typedef type SWC_PASTE(name, mem) \
		__attribute__((vector_size(bytes), aligned(sizeof(SWC_ELEM)), may_alias))

SWC_VECTOR(SWC_ACC, SWC_VBYTES, F(vec));

#define SWC_LANES (SWC_VBYTES / sizeof(SWC_ACC))

/* packed: what accumulators are stored as; SWC_PER_PACKED of them make one. */
#if !defined(SWC_HALF)
#define SWC_PER_PACKED 1
SWC_VECTOR(SWC_ACC, SWC_VBYTES, F(packed));
#elif SWC_HALF == 1
#define SWC_PER_PACKED 1
SWC_VECTOR(u16, SWC_VBYTES / 2, F(packed));
#else
#define SWC_PER_PACKED 2
SWC_VECTOR(u32, SWC_VBYTES, F(packed));
#endif
typedef SWC_PASTE(F(packed), mem) F(packed_mem);

#ifdef SWC_SIGNED
typedef SWC_SIGNED F(svec) __attribute__((vector_size(SWC_VBYTES)));
#else
typedef SWC_BITS F(bits) __attribute__((vector_size(SWC_VBYTES)));
typedef __typeof__((F(vec)){} < (F(vec)){}) F(sbits);
#endif

/* The k-th accumulator's worth of the block at p. */
static __always_inline F(vec) F(load)(const u8 *p, unsigned int k)
{
	F(packed) m = *(const F(packed_mem) *)(p + k / SWC_PER_PACKED * sizeof(F(packed)));

#if !defined(SWC_HALF)
	return m;
#elif SWC_HALF == 1
	return swc_f16_widen(m);
#else
	/* Two elements to a 32-bit lane, each made an f32 by putting zeros below it: no shuffling. */
	return (F(vec))(k & 1 ? m & 0xffff0000 : m << 16);
#endif
}

/* Floats: max(a, b) = -min(-a, -b), and F(apply) knows only min. Used on the way in and out. */
static __always_inline F(vec) F(mirror)(F(vec) x, enum swc_redop op)
{
#ifdef SWC_SIGNED
	(void)op;
	return x;
#else
	if (op != SWC_MAX)
		return x;
	return (F(vec))((F(bits))x ^ ((SWC_BITS)1 << (8 * sizeof(SWC_BITS) - 1)));
#endif
}

static __always_inline F(vec) F(apply)(F(vec) a, F(vec) b, enum swc_redop op)
{
#ifdef SWC_SIGNED
	F(vec) m;

	switch (op) {
	case SWC_PROD:
		return a * b;
	case SWC_MIN:
		m = (F(vec))((F(svec))a < (F(svec))b);
		return (a & m) | (b & ~m);
	case SWC_MAX:
		m = (F(vec))((F(svec))a > (F(svec))b);
		return (a & m) | (b & ~m);
	case SWC_BAND:
		return a & b;
	case SWC_BOR:
		return a | b;
	case SWC_BXOR:
		return a ^ b;
	default:
		return a + b;
	}
#else
	switch (op) {
	case SWC_PROD:
		return a * b;
	case SWC_MIN:
	case SWC_MAX:
		/*
		 * a where a < b, b where b < a, else a | b. "Else" is equality, where a | b is either of
		 * them, or -0 if they are zeros of different sign; or a NaN, and NaN | anything is NaN.
		 */
		return (F(vec))(((F(bits))a & ~(F(bits))(b < a)) | ((F(bits))b & ~(F(bits))(a < b)));
	default:
		return a + b;
	}
#endif
}

static __always_inline F(vec) F(finish)(F(vec) acc, const struct swc_divisor *d, enum swc_redop op)
{
#ifdef SWC_SIGNED
	SWC_ELEM lane[SWC_LANES];
	unsigned int i;

	if (op != SWC_AVG)
		return acc;
	/* In an array: of lanes that are changed in a vector gcc 14 warns that they may be uninitialized. */
	__builtin_memcpy(lane, &acc, sizeof(acc));
	for (i = 0; i < SWC_LANES; i++)
		lane[i] = (SWC_ELEM)(SWC_SIGNED)SWC_DIVIDE((SWC_SIGNED)lane[i], d);
	__builtin_memcpy(&acc, lane, sizeof(acc));
	return acc;
#else
	/* The canonical NaN has one bit more than infinity; what lies above infinity is a NaN. */
	const SWC_BITS inf = SWC_NAN & SWC_NAN << 1, magnitude = (SWC_BITS)-1 >> 1;

	F(bits) nan;

	acc = F(mirror)(acc, op);
	if (op == SWC_AVG)
		acc /= (SWC_ACC)d->div;
	nan = (F(bits))((F(sbits))((F(bits))acc & magnitude) > (F(sbits))((F(bits)){} + inf));
	return (F(vec))(((F(bits))acc & ~nan) | (SWC_NAN & nan));
#endif
}

static __always_inline F(packed) F(pack)(const F(vec) *acc)
{
#if !defined(SWC_HALF)
	return acc[0];
#elif SWC_HALF == 1
	return swc_f16_narrow(acc[0]);
#else
	F(bits) low = (F(bits))acc[0], high = (F(bits))acc[1];

	low += 0x7fff + (low >> 16 & 1);
	high += 0x7fff + (high >> 16 & 1);
	return low >> 16 | (high & 0xffff0000);
#endif
}

/* One block of nacc accumulators (a constant), at the given byte. */
static __always_inline void F(block)(void *const *dst, unsigned int ndst, const void *const *src,
				     unsigned int nsrc, size_t at, const struct swc_divisor *d,
				     enum swc_redop op, const unsigned int nacc)
{
	F(vec) acc[SWC_UNROLL];
	F(packed) out[SWC_UNROLL];
	const u8 *p = (const u8 *)src[0] + at;
	unsigned int s, k;

#pragma GCC unroll 16
	for (k = 0; k < nacc; k++)
		acc[k] = F(mirror)(F(load)(p, k), op);

	for (s = 1; s < nsrc; s++) {
		p = (const u8 *)src[s] + at;
#pragma GCC unroll 16
		for (k = 0; k < nacc; k++)
			acc[k] = F(apply)(acc[k], F(mirror)(F(load)(p, k), op), op);
	}

#pragma GCC unroll 16
	for (k = 0; k < nacc; k++)
		acc[k] = F(finish)(acc[k], d, op);
#pragma GCC unroll 16
	for (k = 0; k < nacc / SWC_PER_PACKED; k++)
		out[k] = F(pack)(&acc[k * SWC_PER_PACKED]);

	for (s = 0; s < ndst; s++) {
		u8 *q = (u8 *)dst[s] + at;

#pragma GCC unroll 16
		for (k = 0; k < nacc / SWC_PER_PACKED; k++)
			*(F(packed_mem) *)(q + k * sizeof(F(packed))) = out[k];
	}
}

#endif /* SWC_VBYTES */

/* ---- whole buffers ---- */

static __always_inline void F(run)(void *const *dst, unsigned int ndst, const void *const *src,
				   unsigned int nsrc, size_t nelem, unsigned int div,
				   enum swc_redop op)
{
	struct swc_divisor d = { 1, 0 };
	size_t from = 0;

	if (nsrc == 1 && (op != SWC_AVG || div <= 1)) {
		swc_copy(dst, ndst, src[0], nelem * sizeof(SWC_ELEM));
		return;
	}
	if (op == SWC_AVG)
		d = swc_divisor_of(div);
	if (nelem <= SWC_FEW) {
		F(few)(dst, ndst, src, nsrc, nelem, &d, op);
		return;
	}

#ifdef SWC_VBYTES
	for (; nelem - from >= SWC_UNROLL * SWC_LANES; from += SWC_UNROLL * SWC_LANES)
		F(block)(dst, ndst, src, nsrc, from * sizeof(SWC_ELEM), &d, op, SWC_UNROLL);
	for (; nelem - from >= SWC_PER_PACKED * SWC_LANES; from += SWC_PER_PACKED * SWC_LANES)
		F(block)(dst, ndst, src, nsrc, from * sizeof(SWC_ELEM), &d, op, SWC_PER_PACKED);
#endif
	if (from < nelem)
		F(plain)(dst, ndst, src, nsrc, from, nelem, &d, op);
}

#define SWC_KERNEL(opname, op) \
	static void F(opname)(void *const *dst, unsigned int ndst, const void *const *src, \
			      unsigned int nsrc, size_t nelem, unsigned int div) \
	{ \
		F(run)(dst, ndst, src, nsrc, nelem, div, op); \
	}

SWC_KERNEL(min, SWC_MIN)
SWC_KERNEL(max, SWC_MAX)
SWC_KERNEL(avg, SWC_AVG)
#ifndef SWC_SHARES_UNSIGNED
SWC_KERNEL(sum, SWC_SUM)
SWC_KERNEL(prod, SWC_PROD)
#ifdef SWC_SIGNED
SWC_KERNEL(band, SWC_BAND)
SWC_KERNEL(bor, SWC_BOR)
SWC_KERNEL(bxor, SWC_BXOR)
#endif
#endif

#undef F
#undef SWC_ROUND
#undef SWC_FEW
#undef SWC_VECTOR
#undef SWC_LANES
#undef SWC_PER_PACKED
#undef SWC_KERNEL
#undef SWC_NAME
#undef SWC_ELEM
#undef SWC_ACC
#undef SWC_SIGNED
#undef SWC_DIVIDE
#undef SWC_SHARES_UNSIGNED
#undef SWC_BITS
#undef SWC_NAN
#undef SWC_BITS_OF
#undef SWC_OF_BITS
#undef SWC_HALF
