// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reductions: every implementation that this machine can run, every type and operation, compared
 * bit for bit with a reference that shares no code and no method with them (integers by 64-bit
 * arithmetic and masks, small floats by scaling and rounding to an integer, f32 by way of double).
 * Rules: kmod/core/reduce.h.
 *
 * TAP on stdout. The first argument, if given, is the seed, to repeat a run. SWC_TEST_SHORT=1: one number of
 * destinations for each number of sources and length instead of all, a third of what is tried with all
 * values.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "kmod/core/reduce.h"
#include "kmod/core/types.h"
#include "random.h"

#define MAX_SRC 9
#define MAX_DST 4
#define MAX_LEN 65536
#define GUARD 16 /* elements before and after each buffer that must not change */
#define GUARD_BYTE 0xa5

static u64 rng_state;

static u64 rng(void)
{
	/* splitmix64 */
	u64 z = rng_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* ---- types as bits ---- */

struct format {
	unsigned int size;     /* bytes */
	unsigned int fraction; /* bits of fraction, 0 for integers */
	bool is_signed;
};

static const struct format formats[SWC_DTYPE_NR] = {
	[SWC_I8] = { 1, 0, true },   [SWC_U8] = { 1, 0, false },  [SWC_I16] = { 2, 0, true },
	[SWC_U16] = { 2, 0, false }, [SWC_I32] = { 4, 0, true },  [SWC_U32] = { 4, 0, false },
	[SWC_I64] = { 8, 0, true },  [SWC_U64] = { 8, 0, false }, [SWC_F16] = { 2, 10, true },
	[SWC_BF16] = { 2, 7, true }, [SWC_F32] = { 4, 23, true }, [SWC_F64] = { 8, 52, true },
};

static u64 low_bits(unsigned int n)
{
	return n == 64 ? ~(u64)0 : ((u64)1 << n) - 1;
}

static u64 get(const void *p, size_t i, unsigned int size)
{
	u64 v = 0;

	memcpy(&v, (const u8 *)p + i * size, size); /* little endian, as all supported machines */
	return v;
}

static void put(void *p, size_t i, unsigned int size, u64 v)
{
	memcpy((u8 *)p + i * size, &v, size);
}

static unsigned int exponent_bits(const struct format *f)
{
	return 8 * f->size - 1 - f->fraction;
}

static int bias(const struct format *f)
{
	return (1 << (exponent_bits(f) - 1)) - 1;
}

/* Every format but f64 fits a double with room to spare. */
static double decode(const struct format *f, u64 bits)
{
	int exponent = bits >> f->fraction & low_bits(exponent_bits(f));
	u64 fraction = bits & low_bits(f->fraction);
	double v;

	if (exponent == (int)low_bits(exponent_bits(f)))
		v = fraction ? NAN : INFINITY;
	else if (exponent == 0)
		v = ldexp((double)fraction, 1 - bias(f) - (int)f->fraction);
	else
		v = ldexp((double)(fraction | (u64)1 << f->fraction),
			  exponent - bias(f) - (int)f->fraction);
	return bits >> (8 * f->size - 1) & 1 ? -v : v;
}

/* Round to nearest even into f; NaN becomes the canonical one. */
static u64 encode(const struct format *f, double v)
{
	u64 infinity = low_bits(exponent_bits(f)) << f->fraction;
	u64 sign = signbit(v) ? (u64)1 << (8 * f->size - 1) : 0;
	int exponent;
	u64 n;

	if (isnan(v))
		return infinity | (u64)1 << (f->fraction - 1);
	if (isinf(v))
		return sign | infinity;
	v = fabs(v);
	if (v == 0)
		return sign;

	/* v in units of its own last place, but not of smaller ones than subnormals have */
	frexp(v, &exponent);
	exponent -= 1;
	if (exponent < 1 - bias(f))
		exponent = 1 - bias(f);
	n = (u64)nearbyint(ldexp(v, (int)f->fraction - exponent));

	/*
	 * n has the implicit bit if it is normal: adding carries it, and any overflow, into the
	 * exponent.
	 */
	n += (u64)(exponent + bias(f) - 1) << f->fraction;
	return sign | (n >= infinity ? infinity : n);
}

/* ---- the reference ---- */

static s64 sign_extend(const struct format *f, u64 v)
{
	unsigned int shift = 64 - 8 * f->size;

	return f->is_signed ? (s64)(v << shift) >> shift : (s64)v;
}

static bool int_less(const struct format *f, u64 a, u64 b)
{
	return f->is_signed ? sign_extend(f, a) < sign_extend(f, b) : a < b;
}

static u64 ref_int(const struct format *f, enum swc_redop op, const u64 *x, unsigned int n, u32 div)
{
	u64 mask = low_bits(8 * f->size), acc = x[0];
	unsigned int i;

	for (i = 1; i < n; i++) {
		switch (op) {
		case SWC_PROD:
			acc *= x[i];
			break;
		case SWC_MIN:
			acc = int_less(f, x[i], acc) ? x[i] : acc;
			break;
		case SWC_MAX:
			acc = int_less(f, acc, x[i]) ? x[i] : acc;
			break;
		case SWC_BAND:
			acc &= x[i];
			break;
		case SWC_BOR:
			acc |= x[i];
			break;
		case SWC_BXOR:
			acc ^= x[i];
			break;
		default:
			acc += x[i];
			break;
		}
		acc &= mask;
	}
	if (op == SWC_AVG && div > 1) {
		if (f->is_signed)
			acc = (u64)(sign_extend(f, acc) / (s64)div);
		else
			acc /= div;
	}
	return acc & mask;
}

/*
 * One operation in the accumulation format. f32: doubles are wide enough that rounding twice equals
 * rounding once, for + * and /. f64: the operation of the machine itself, kept from being merged
 * with another.
 */
static double ref_op(bool wide, enum swc_redop op, double a, double b)
{
	volatile double r;

	switch (op) {
	case SWC_PROD:
		r = a * b;
		break;
	case SWC_MIN:
	case SWC_MAX:
		if (isnan(a) || isnan(b))
			return NAN;
		if (a == b)
			return (op == SWC_MIN) == !!signbit(a) ? a : b;
		return (op == SWC_MIN) == (a < b) ? a : b;
	default:
		r = a + b;
		break;
	}
	return wide ? r : decode(&formats[SWC_F32], encode(&formats[SWC_F32], r));
}

static u64 ref_float(enum swc_dtype dtype, enum swc_redop op, const u64 *x, unsigned int n, u32 div)
{
	const struct format *f = &formats[dtype], *single = &formats[SWC_F32];
	bool wide = dtype == SWC_F64;
	volatile double acc;
	unsigned int i;

	if (n == 1 && (op != SWC_AVG || div <= 1))
		return x[0];

	acc = decode(f, x[0]);
	for (i = 1; i < n; i++)
		acc = ref_op(wide, op, acc, decode(f, x[i]));
	if (op == SWC_AVG) {
		double d = div ? div : 1;

		acc /= wide ? d : decode(single, encode(single, d));
		if (!wide)
			acc = decode(single, encode(single, acc));
	}
	return encode(f, acc);
}

static u64 reference(enum swc_dtype dtype, enum swc_redop op, const u64 *x, unsigned int n, u32 div)
{
	return formats[dtype].fraction ? ref_float(dtype, op, x, n, div)
				       : ref_int(&formats[dtype], op, x, n, div);
}

/* ---- input ---- */

static u64 special(const struct format *f)
{
	u64 top = (u64)1 << (8 * f->size - 1);
	u64 sign = rng() & 1 ? top : 0;
	u64 one = (u64)1 << f->fraction;
	u64 infinity = low_bits(exponent_bits(f)) * one;

	if (!f->fraction) {
		const u64 ints[] = { 0, 1, 2, top, top - 1, top + 1, ~(u64)0, ~(u64)1 };

		return ints[rng() % ARRAY_SIZE(ints)] & low_bits(8 * f->size);
	}

	switch (rng() % 10) {
	case 0:
		return sign | infinity;
	case 1:
		return sign | infinity | 1; /* signalling NaN */
	case 2:
		return sign | infinity | one >> 1; /* quiet NaN */
	case 3:
		return sign | infinity | (rng() & (one - 1)); /* payload */
	case 4:
		return sign | 1; /* least subnormal */
	case 5:
		return sign | (one - 1); /* greatest subnormal */
	case 6:
		return sign | one; /* least normal */
	case 7:
		return sign | (infinity - 1); /* greatest finite */
	case 8:
		return sign | (u64)bias(f) * one; /* 1 */
	default:
		return sign;
	}
}

enum fill {
	FILL_BITS,
	FILL_NEAR,
	FILL_SPECIAL,
	FILL_ZEROS,
	FILL_NR
};

static u64 value(const struct format *f, enum fill fill)
{
	u64 mask = low_bits(8 * f->size), bits = rng() & mask;

	if (fill == FILL_SPECIAL && rng() % 8 == 0)
		return special(f);
	if (fill == FILL_ZEROS)
		return f->fraction ? bits & ~(mask >> 1) : bits & 1;
	if (fill == FILL_BITS || !f->fraction)
		return bits;

	/* Close exponents: sums cancel, round and tie. */
	bits &= ~(low_bits(exponent_bits(f)) << f->fraction);
	if (rng() & 1) /* few bits of fraction */
		bits &= ~low_bits(f->fraction - 2);
	return bits | (u64)(bias(f) - 3 + (int)(rng() % 7)) << f->fraction;
}

static const u32 divisors[] = {
	2, 3, 7, 1, 0, 10, 255, 256, 1000, 65537, 0x7fffffff, 0x80000000, 0xffffffff, 16777217,
};

/* ---- the check of one call ---- */

static u8 *pool[MAX_SRC + MAX_DST]; /* sources as drawn, then room for destinations */
static u8 *work[MAX_SRC];	    /* sources that the function gets */
static u64 *expected;
static char why[256];

static bool complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	return false;
}

static u8 *at(u8 *base, unsigned int size, unsigned int shift)
{
	return base + (GUARD / 2 + shift) * (size_t)size;
}

/*
 * pool[] has the sources and expected[] the results. Buffers start at odd elements, each at another
 * one; in_place makes destinations out of sources, the last of them twice.
 */
static bool check_call(swc_reduce_fn fn, enum swc_dtype dtype, unsigned int nsrc, unsigned int ndst,
		       size_t len, u32 div, bool in_place)
{
	unsigned int size = formats[dtype].size, s, d, shift[MAX_SRC + MAX_DST];
	size_t room = (len + 2 * GUARD) * size, i;
	unsigned int first = rng() % nsrc;
	const void *src[MAX_SRC];
	u8 *base[MAX_DST];
	void *dst[MAX_DST];

	for (s = 0; s < nsrc; s++) {
		shift[s] = rng() % (GUARD / 2);
		memset(work[s], GUARD_BYTE, room);
		memcpy(at(work[s], size, shift[s]), pool[s], len * size);
		src[s] = at(work[s], size, shift[s]);
	}
	for (d = 0; d < ndst; d++) {
		if (in_place) {
			s = d < nsrc ? (first + d) % nsrc : first;
			base[d] = work[s];
		} else {
			base[d] = pool[MAX_SRC + d];
			s = MAX_SRC + d;
			shift[s] = rng() % (GUARD / 2);
			memset(base[d], GUARD_BYTE, room);
		}
		dst[d] = at(base[d], size, shift[s]);
	}

	fn(dst, ndst, src, nsrc, len, div);

	for (d = 0; d < ndst; d++) {
		for (i = 0; i < len; i++) {
			if (get(dst[d], i, size) != expected[i])
				return complain(
					"dst %u of %u, element %zu of %zu: %#llx, not %#llx (%u sources, first two %#llx %#llx, div %u, in place %d)",
					d, ndst, i, len, (unsigned long long)get(dst[d], i, size),
					(unsigned long long)expected[i], nsrc,
					(unsigned long long)get(pool[0], i, size),
					(unsigned long long)get(pool[nsrc > 1], i, size), div,
					in_place);
		}
		for (i = 0; i < room; i++) {
			if ((base[d] + i < (u8 *)dst[d] ||
			     base[d] + i >= (u8 *)dst[d] + len * size) &&
			    base[d][i] != GUARD_BYTE)
				return complain("dst %u of %u: byte %zd outside of it changed", d,
						ndst, base[d] + i - (u8 *)dst[d]);
		}
	}
	for (s = 0; s < nsrc; s++) {
		bool is_dst = false;

		for (d = 0; d < ndst; d++)
			is_dst |= dst[d] == src[s];
		if (!is_dst && memcmp(src[s], pool[s], len * size) != 0)
			return complain("source %u of %u changed", s, nsrc);
	}
	return true;
}

static void expect(enum swc_dtype dtype, enum swc_redop op, unsigned int nsrc, size_t len, u32 div)
{
	unsigned int size = formats[dtype].size, s;
	u64 x[MAX_SRC];
	size_t i;

	for (i = 0; i < len; i++) {
		for (s = 0; s < nsrc; s++)
			x[s] = get(pool[s], i, size);
		expected[i] = reference(dtype, op, x, nsrc, div);
	}
}

static bool check_random(swc_reduce_fn fn, enum swc_dtype dtype, enum swc_redop op,
			 unsigned int nsrc, size_t len)
{
	const struct format *f = &formats[dtype];
	enum fill fill = rng() % FILL_NR;
	u32 div = rng() % 3 ? nsrc : divisors[rng() % ARRAY_SIZE(divisors)];
	unsigned int s, ndst;
	size_t i;

	for (s = 0; s < nsrc; s++) {
		for (i = 0; i < len; i++)
			put(pool[s], i, f->size, value(f, fill));
	}
	expect(dtype, op, nsrc, len, div);

	if (short_form())
		return check_call(fn, dtype, nsrc, 1 + rng() % MAX_DST, len, div, rng() & 1);
	for (ndst = 1; ndst <= MAX_DST; ndst++) {
		if (!check_call(fn, dtype, nsrc, ndst, len, div, rng() & 1))
			return false;
	}
	return true;
}

/* All 65536 values of a 16-bit type, alone with each divisor, and with each of a few partners. */
static bool check_all_values(swc_reduce_fn fn, enum swc_dtype dtype, enum swc_redop op)
{
	const struct format *f = &formats[dtype];
	unsigned int step = short_form() ? 3 : 1, first = rng() % step, k;
	u64 partner;
	size_t i;

	for (i = 0; i < MAX_LEN; i++)
		put(pool[0], i, f->size, i);

	for (k = first; op == SWC_AVG && k < ARRAY_SIZE(divisors); k += step) {
		expect(dtype, op, 1, MAX_LEN, divisors[k]);
		if (!check_call(fn, dtype, 1, 1, MAX_LEN, divisors[k], false))
			return false;
	}
	for (k = first; k < 6; k += step) {
		partner = k < 2 ? special(f) : value(f, k < 4 ? FILL_BITS : FILL_NEAR);
		for (i = 0; i < MAX_LEN; i++)
			put(pool[1], i, f->size, partner);
		expect(dtype, op, 2, MAX_LEN, 2);
		if (!check_call(fn, dtype, 2, 1, MAX_LEN, 2, k & 1))
			return false;
	}
	return true;
}

static bool check_op(swc_reduce_fn fn, enum swc_dtype dtype, enum swc_redop op)
{
	static const size_t large[] = { 127, 251, 257, 521, 1031, 4099 };
	unsigned int nsrc;
	size_t i;

	for (nsrc = 1; nsrc <= MAX_SRC; nsrc++) {
		for (i = 0; i <= 67; i++) {
			if (!check_random(fn, dtype, op, nsrc, i))
				return false;
		}
		for (i = 0; i < ARRAY_SIZE(large); i++) {
			if (!check_random(fn, dtype, op, nsrc, large[i]))
				return false;
		}
	}
	return formats[dtype].size != 2 || check_all_values(fn, dtype, op);
}

static bool check_impl(const struct swc_reduce_impl *impl, enum swc_dtype dtype)
{
	enum swc_redop op;

	for (op = 0; op < SWC_REDOP_NR; op++) {
		bool bitwise = op == SWC_BAND || op == SWC_BOR || op == SWC_BXOR;
		swc_reduce_fn fn = swc_reduce_impl_get(impl, dtype, op);
		char detail[sizeof(why)];

		if (!fn != (bitwise && formats[dtype].fraction) ||
		    !fn == swc_reduce_supported(dtype, op))
			return complain("%s: function %s", swc_redop_name(op),
					fn ? "there" : "missing");
		if (fn && !check_op(fn, dtype, op)) {
			memcpy(detail, why, sizeof(detail));
			return complain("%s: %.200s", swc_redop_name(op), detail);
		}
	}
	return true;
}

/* ---- the rest of the interface ---- */

static bool check_names(void)
{
	static const char *const types[] = { "i8",  "u8",  "i16", "u16",  "i32", "u32",
					     "i64", "u64", "f16", "bf16", "f32", "f64" };
	static const char *const ops[] = {
		"sum", "prod", "min", "max", "avg", "band", "bor", "bxor"
	};
	unsigned int i;

	for (i = 0; i < SWC_DTYPE_NR; i++) {
		if (strcmp(swc_dtype_name(i), types[i]) != 0 ||
		    swc_dtype_size(i) != formats[i].size)
			return complain("type %u: %s, %zu bytes", i, swc_dtype_name(i),
					swc_dtype_size(i));
	}
	for (i = 0; i < SWC_REDOP_NR; i++) {
		if (strcmp(swc_redop_name(i), ops[i]) != 0)
			return complain("operation %u: %s", i, swc_redop_name(i));
	}
	for (i = SWC_DTYPE_NR; i < 300; i++) {
		if (swc_dtype_size(i) != 0 || strcmp(swc_dtype_name(i), "?") != 0 ||
		    swc_reduce_supported(i, SWC_SUM) || swc_reduce_get(i, SWC_SUM))
			return complain("type %u is unknown and yet accepted", i);
	}
	for (i = SWC_REDOP_NR; i < 300; i++) {
		if (strcmp(swc_redop_name(i), "?") != 0 || swc_reduce_supported(SWC_I8, i) ||
		    swc_reduce_get(SWC_I8, i))
			return complain("operation %u is unknown and yet accepted", i);
	}
	return true;
}

static bool check_choice(void)
{
	const struct swc_reduce_impl *impl, *best = NULL;
	unsigned int i;

	if (strcmp(swc_reduce_chosen()->name, "scalar") != 0)
		return complain("%s in force before swc_reduce_init()", swc_reduce_chosen()->name);

	for (i = 0; (impl = swc_reduce_impl_at(i)) != NULL; i++) {
		const struct swc_reduce_impl *before = swc_reduce_chosen();
		bool valid = impl->valid();
		int ret = swc_reduce_force(impl->name);

		if (ret != (valid ? 0 : -EOPNOTSUPP))
			return complain("forcing %s: %d", impl->name, ret);
		if (swc_reduce_chosen() != (valid ? impl : before))
			return complain("forcing %s: %s chosen", impl->name,
					swc_reduce_chosen()->name);
		if (valid &&
		    swc_reduce_get(SWC_I32, SWC_SUM) != swc_reduce_impl_get(impl, SWC_I32, SWC_SUM))
			return complain("forcing %s: functions are not its own", impl->name);
		if (valid && (!swc_reduce_needs_fpu(SWC_F32) ||
			      swc_reduce_needs_fpu(SWC_U8) != (strcmp(impl->name, "scalar") != 0)))
			return complain("%s: wrong about FPU sections", impl->name);
		if (valid && !best)
			best = impl;
	}
	if (swc_reduce_force("mmx") != -EINVAL || swc_reduce_force("") != -EINVAL)
		return complain("unknown name accepted");

	swc_reduce_init();
	if (swc_reduce_chosen() != best)
		return complain("%s chosen, not %s", swc_reduce_chosen()->name, best->name);
	return true;
}

static bool check_copy(void)
{
	static const size_t sizes[] = { 0, 1, 63, 8191, 8192, 8193, 50021 };
	unsigned int k, ndst, d;
	size_t i;

	for (k = 0; k < ARRAY_SIZE(sizes); k++) {
		for (ndst = 1; ndst <= MAX_DST; ndst++) {
			void *dst[MAX_DST];

			for (i = 0; i < sizes[k] + 1; i++)
				work[0][i] = pool[0][i] = rng();
			for (d = 0; d < ndst; d++) {
				dst[d] = d == 1 ? work[0] : pool[MAX_SRC + d];
				if (d != 1)
					memset(dst[d], GUARD_BYTE, sizes[k] + 1);
			}
			swc_copy(dst, ndst, work[0], sizes[k]);
			for (d = 0; d < ndst; d++) {
				if (memcmp(dst[d], pool[0], sizes[k]) != 0 ||
				    (d != 1 && ((u8 *)dst[d])[sizes[k]] != GUARD_BYTE))
					return complain("%zu bytes, dst %u of %u", sizes[k], d,
							ndst);
			}
		}
	}
	return true;
}

static unsigned int tests, failed;

static void report(bool ok, const char *name)
{
	tests++;
	failed += !ok;
	printf("%s %u - %s\n", ok ? "ok" : "not ok", tests, name);
	if (!ok)
		printf("# %s\n", why);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const struct swc_reduce_impl *impl;
	unsigned int i, n = 0;
	enum swc_dtype dtype;
	char name[64];

	rng_state = argc > 1 ? strtoull(argv[1], NULL, 0) : (u64)time(NULL);
	while (swc_reduce_impl_at(n))
		n++;
	printf("TAP version 13\n1..%u\n# seed %llu\n", 3 + n * SWC_DTYPE_NR,
	       (unsigned long long)rng_state);

	for (i = 0; i < ARRAY_SIZE(pool); i++)
		pool[i] = malloc((MAX_LEN + 2 * GUARD) * sizeof(u64));
	for (i = 0; i < ARRAY_SIZE(work); i++)
		work[i] = malloc((MAX_LEN + 2 * GUARD) * sizeof(u64));
	expected = malloc(MAX_LEN * sizeof(u64));

	report(check_names(), "names, sizes and refusals");
	report(check_choice(), "choice of an implementation");
	report(check_copy(), "copy to several destinations");

	for (i = 0; i < n; i++) {
		impl = swc_reduce_impl_at(i);
		for (dtype = 0; dtype < SWC_DTYPE_NR; dtype++) {
			snprintf(name, sizeof(name), "%s %s", impl->name, swc_dtype_name(dtype));
			if (impl->valid()) {
				report(check_impl(impl, dtype), name);
			} else {
				printf("ok %u - %s # SKIP this CPU cannot run it\n", ++tests, name);
			}
		}
	}

	for (i = 0; i < ARRAY_SIZE(pool); i++)
		free(pool[i]);
	for (i = 0; i < ARRAY_SIZE(work); i++)
		free(work[i]);
	free(expected);
	return failed != 0;
}
