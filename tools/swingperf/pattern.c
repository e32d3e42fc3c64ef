// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test data and the expected results. The reference shares no code with the library: it folds the ranks'
 * contributions one by one in 64-bit integers or doubles.
 *
 * Every reduction is exact in any order, so results are compared for equality:
 *   integers	all bits, wrapping; factors are odd, so that no product becomes zero
 *   float sum	small integers; any partial sum is an integer that the type represents exactly
 *   float prod	1 and -1, and on eight ranks also 2 and 1/2: within the range of f16
 *   avg	as the sum; for floats every sum is a multiple of the number of ranks
 *
 * The data repeats every 65521 elements. That number is a prime, so data that arrives in a wrong block, page
 * or shard does not meet an equal value, and filling and checking run at the speed of memcpy and memcmp.
 */
#include "pattern.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD 65521u

static bool is_float(enum swingcoll_dtype t)
{
	return t == SWINGCOLL_F16 || t == SWINGCOLL_BF16 || t == SWINGCOLL_F32 ||
	       t == SWINGCOLL_F64;
}

static bool is_signed(enum swingcoll_dtype t)
{
	return t == SWINGCOLL_I8 || t == SWINGCOLL_I16 || t == SWINGCOLL_I32 || t == SWINGCOLL_I64;
}

static size_t elem_size(enum swingcoll_dtype t)
{
	switch (t) {
	case SWINGCOLL_I8:
	case SWINGCOLL_U8:
		return 1;
	case SWINGCOLL_I16:
	case SWINGCOLL_U16:
	case SWINGCOLL_F16:
	case SWINGCOLL_BF16:
		return 2;
	case SWINGCOLL_I32:
	case SWINGCOLL_U32:
	case SWINGCOLL_F32:
		return 4;
	default:
		return 8;
	}
}

/* The type represents integers up to this one exactly. */
static int64_t exact_limit(enum swingcoll_dtype t)
{
	switch (t) {
	case SWINGCOLL_I8:
	case SWINGCOLL_U8:
		return 127;
	case SWINGCOLL_BF16:
		return 256;
	case SWINGCOLL_F16:
		return 2048;
	case SWINGCOLL_I16:
	case SWINGCOLL_U16:
		return 32767;
	default:
		return 1 << 24;
	}
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t hash(int rank, size_t i)
{
	return mix((uint64_t)i * 0x9e3779b97f4a7c15ull + (uint64_t)rank * 0xd1342543de82ef95ull +
		   1);
}

static bool reduces(const struct pattern *p)
{
	return p->coll == SWINGCOLL_ALLREDUCE || p->coll == SWINGCOLL_REDUCE ||
	       p->coll == SWINGCOLL_REDUCE_SCATTER;
}

static int64_t small(uint64_t h, int64_t limit, bool negative)
{
	if (limit < 1)
		limit = 1;
	if (!negative)
		return (int64_t)(h % (uint64_t)(limit + 1));
	return (int64_t)(h % (uint64_t)(2 * limit + 1)) - limit;
}

static int64_t small_for_avg(const struct pattern *p, int rank, size_t i)
{
	int64_t limit = exact_limit(p->dtype), n = p->nranks;
	bool neg = is_float(p->dtype) || is_signed(p->dtype);

	if (!is_float(p->dtype) || !(n & (n - 1)))
		return small(hash(rank, i), limit / n, neg);
	if (n * n <= limit)
		return small(hash(rank, i), limit / (n * n), neg) * n;
	return small(hash(0, i), limit / n, neg);
}

static double float_value(const struct pattern *p, int rank, size_t i)
{
	static const double factors[] = { 1, -1, 2, 0.5, -2, -0.5, 1, -1 };
	uint64_t h = hash(rank, i);

	if (reduces(p) && p->op == SWINGCOLL_PROD)
		return factors[h % (rank < 8 ? 8 : 2)];
	if (reduces(p) && p->op == SWINGCOLL_AVG)
		return (double)small_for_avg(p, rank, i);
	if (reduces(p) && p->op == SWINGCOLL_SUM)
		return (double)small(h, exact_limit(p->dtype) / p->nranks, true);
	return (double)small(h, exact_limit(p->dtype), true);
}

static uint64_t int_value(const struct pattern *p, int rank, size_t i)
{
	uint64_t h = hash(rank, i);

	if (reduces(p) && p->op == SWINGCOLL_PROD)
		return h | 1;
	if (reduces(p) && p->op == SWINGCOLL_AVG)
		return (uint64_t)small_for_avg(p, rank, i);
	return h;
}

/* ------------------------------------------------------------------ representation */

/* v is exact in the type and no subnormal: pattern values and their reductions all are. */
static void put_float(enum swingcoll_dtype t, double v, char *dst)
{
	float f = (float)v;
	uint32_t bits;
	uint16_t half;

	if (t == SWINGCOLL_F64) {
		memcpy(dst, &v, 8);
		return;
	}
	if (t == SWINGCOLL_F32) {
		memcpy(dst, &f, 4);
		return;
	}
	memcpy(&bits, &f, 4);
	if (t == SWINGCOLL_BF16) {
		half = (uint16_t)(bits >> 16);
	} else {
		half = (uint16_t)(bits >> 16 & 0x8000);
		if (bits & 0x7fffffff)
			half |= (uint16_t)((((bits >> 23 & 0xff) - 127 + 15) << 10) |
					   (bits >> 13 & 0x3ff));
	}
	memcpy(dst, &half, 2);
}

static void put_int(size_t elem, uint64_t v, char *dst)
{
	uint32_t v4 = (uint32_t)v;
	uint16_t v2 = (uint16_t)v;
	uint8_t v1 = (uint8_t)v;

	switch (elem) {
	case 1:
		memcpy(dst, &v1, 1);
		break;
	case 2:
		memcpy(dst, &v2, 2);
		break;
	case 4:
		memcpy(dst, &v4, 4);
		break;
	default:
		memcpy(dst, &v, 8);
	}
}

/* Truncate to the width of the type, then extend by its sign. */
static uint64_t wrap(enum swingcoll_dtype t, uint64_t v)
{
	unsigned int unused = 64 - 8 * (unsigned int)elem_size(t);

	if (is_signed(t))
		return (uint64_t)((int64_t)(v << unused) >> unused);
	return v << unused >> unused;
}

static uint64_t fold_int(const struct pattern *p, uint64_t a, uint64_t b)
{
	bool less = is_signed(p->dtype) ? (int64_t)a < (int64_t)b : a < b;

	switch (p->op) {
	case SWINGCOLL_PROD:
		return wrap(p->dtype, a * b);
	case SWINGCOLL_MIN:
		return less ? a : b;
	case SWINGCOLL_MAX:
		return less ? b : a;
	case SWINGCOLL_BAND:
		return a & b;
	case SWINGCOLL_BOR:
		return a | b;
	case SWINGCOLL_BXOR:
		return a ^ b;
	default:
		return wrap(p->dtype, a + b);
	}
}

static double fold_float(const struct pattern *p, double a, double b)
{
	switch (p->op) {
	case SWINGCOLL_PROD:
		return a * b;
	case SWINGCOLL_MIN:
		return a < b ? a : b;
	case SWINGCOLL_MAX:
		return a < b ? b : a;
	default:
		return a + b;
	}
}

/* ------------------------------------------------------------------ tables */

int pattern_init(struct pattern *p, enum swingcoll_coll coll, enum swingcoll_dtype dtype,
		 enum swingcoll_redop op, int nranks, size_t total)
{
	memset(p, 0, sizeof(*p));
	p->coll = coll;
	p->dtype = dtype;
	p->op = op;
	p->nranks = nranks;
	p->elem = elem_size(dtype);
	p->period = PERIOD;
	p->used = total < PERIOD ? total : PERIOD;
	p->own = malloc(p->used * p->elem + 1);
	p->expect = malloc(p->used * p->elem + 1);
	if (p->own && p->expect)
		return 0;
	pattern_free(p);
	return -ENOMEM;
}

void pattern_free(struct pattern *p)
{
	free(p->own);
	free(p->expect);
	p->own = NULL;
	p->expect = NULL;
}

static void contribution(const struct pattern *p, int rank, char *table)
{
	size_t i;

	for (i = 0; i < p->used; i++) {
		if (is_float(p->dtype))
			put_float(p->dtype, float_value(p, rank, i), table + i * p->elem);
		else
			put_int(p->elem, int_value(p, rank, i), table + i * p->elem);
	}
}

void pattern_own(struct pattern *p, int rank)
{
	contribution(p, rank, p->own);
}

void pattern_expect_from(struct pattern *p, int from)
{
	contribution(p, from, p->expect);
}

static void expect_int(struct pattern *p, size_t i)
{
	uint64_t v = wrap(p->dtype, int_value(p, 0, i));
	int rank;

	for (rank = 1; rank < p->nranks; rank++)
		v = fold_int(p, v, wrap(p->dtype, int_value(p, rank, i)));
	if (p->op == SWINGCOLL_AVG) {
		if (is_signed(p->dtype))
			v = (uint64_t)((int64_t)v / p->nranks);
		else
			v /= (uint64_t)p->nranks;
	}
	put_int(p->elem, v, p->expect + i * p->elem);
}

static void expect_float(struct pattern *p, size_t i)
{
	double v = float_value(p, 0, i);
	int rank;

	for (rank = 1; rank < p->nranks; rank++)
		v = fold_float(p, v, float_value(p, rank, i));
	if (p->op == SWINGCOLL_AVG)
		v /= p->nranks;
	put_float(p->dtype, v, p->expect + i * p->elem);
}

void pattern_expect_reduced(struct pattern *p)
{
	size_t i;

	for (i = 0; i < p->used; i++) {
		if (is_float(p->dtype))
			expect_float(p, i);
		else
			expect_int(p, i);
	}
}

/* ------------------------------------------------------------------ bulk */

void pattern_fill(const struct pattern *p, const char *table, void *dst, size_t first, size_t n)
{
	char *d = dst;
	size_t at, now;

	for (; n; n -= now, first += now, d += now * p->elem) {
		at = first % p->period;
		now = p->period - at < n ? p->period - at : n;
		memcpy(d, table + at * p->elem, now * p->elem);
	}
}

size_t pattern_wrong(const struct pattern *p, const char *table, const void *buf, size_t first,
		     size_t n)
{
	const char *b = buf, *t;
	size_t at, now, i, wrong = 0;

	for (; n; n -= now, first += now, b += now * p->elem) {
		at = first % p->period;
		now = p->period - at < n ? p->period - at : n;
		t = table + at * p->elem;
		if (!memcmp(b, t, now * p->elem))
			continue;
		for (i = 0; i < now; i++)
			wrong += !!memcmp(b + i * p->elem, t + i * p->elem, p->elem);
	}
	return wrong;
}

static double half_value(uint16_t h)
{
	int exp = h >> 10 & 31, mant = h & 0x3ff;
	double v = exp ? 1024 + mant : mant, sign = h & 0x8000 ? -1 : 1;

	for (exp = (exp ? exp : 1) - 25; exp > 0; exp--)
		v *= 2;
	for (; exp < 0; exp++)
		v /= 2;
	return sign * v;
}

void pattern_show(const struct pattern *p, const void *elem, char *text, size_t size)
{
	uint64_t v = 0;
	uint32_t w;
	double d;
	float f;

	memcpy(&v, elem, p->elem); /* little-endian, as every supported machine is */
	switch (p->dtype) {
	case SWINGCOLL_F16:
		snprintf(text, size, "%g", half_value((uint16_t)v));
		break;
	case SWINGCOLL_BF16:
		w = (uint32_t)v << 16;
		memcpy(&f, &w, 4);
		snprintf(text, size, "%g", (double)f);
		break;
	case SWINGCOLL_F32:
		memcpy(&f, elem, 4);
		snprintf(text, size, "%.9g", (double)f);
		break;
	case SWINGCOLL_F64:
		memcpy(&d, elem, 8);
		snprintf(text, size, "%.17g", d);
		break;
	default:
		if (is_signed(p->dtype))
			snprintf(text, size, "%lld", (long long)wrap(p->dtype, v));
		else
			snprintf(text, size, "%llu", (unsigned long long)v);
	}
}
