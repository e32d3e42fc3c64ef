// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Scan, pack and unpack with AVX-512, whose compress and expand are just that, for elements of all sizes:
 * those of one and two bytes need VBMI2 (2019).
 */
#ifdef __x86_64__
#pragma GCC target("avx512f,avx512bw,avx512vbmi2,bmi,bmi2,popcnt")

#include <immintrin.h>

#include "sparse/codec_few.h"

/* Lanes that are not zero. */
static inline __attribute__((always_inline)) uint64_t set_lanes(const char *v, unsigned int size)
{
	__m512i x = _mm512_loadu_si512(v);

	return size == 1   ? _mm512_test_epi8_mask(x, x)
	       : size == 2 ? _mm512_test_epi16_mask(x, x)
	       : size == 4 ? _mm512_test_epi32_mask(x, x)
			   : _mm512_test_epi64_mask(x, x);
}

/* Stored whole: storing only the set lanes is slow on some processors. */
static inline __attribute__((always_inline)) void compress(char *to, const char *v, uint64_t set,
							   unsigned int size)
{
	__m512i x = _mm512_loadu_si512(v);

	x = size == 1	? _mm512_maskz_compress_epi8(set, x)
	    : size == 2 ? _mm512_maskz_compress_epi16((__mmask32)set, x)
	    : size == 4 ? _mm512_maskz_compress_epi32((__mmask16)set, x)
			: _mm512_maskz_compress_epi64((__mmask8)set, x);
	_mm512_storeu_si512(to, x);
}

static inline __attribute__((always_inline)) void expand(char *v, const char *from, uint64_t set,
							 unsigned int size)
{
	__m512i x = _mm512_loadu_si512(from);

	x = size == 1	? _mm512_maskz_expand_epi8(set, x)
	    : size == 2 ? _mm512_maskz_expand_epi16((__mmask32)set, x)
	    : size == 4 ? _mm512_maskz_expand_epi32((__mmask16)set, x)
			: _mm512_maskz_expand_epi64((__mmask8)set, x);
	_mm512_storeu_si512(v, x);
}

/* Bits of the k-th vector of a word. */
static inline __attribute__((always_inline)) uint64_t part(uint64_t bits, unsigned int k,
							   unsigned int size)
{
	return size == 1 ? bits : bits >> 64 / size * k & ((1ull << 64 / size) - 1);
}

static inline __attribute__((always_inline)) void scan_size(const char *v, uint64_t words,
							    unsigned int size, uint64_t *index)
{
	for (uint64_t w = 0; w < words; w++) {
		uint64_t bits = 0;

		for (unsigned int k = 0; k < size; k++, v += 64)
			bits |= set_lanes(v, size) << 64 / size % 64 * k;
		index[w] = bits;
	}
}

static inline __attribute__((always_inline)) char *
pack_size(const char *v, const uint64_t *index, uint64_t words, unsigned int size, char *to)
{
	for (uint64_t w = 0; w < words; w += FEW_RUN) {
		uint64_t n = words - w < FEW_RUN ? words - w : FEW_RUN;

		if (is_few(index + w, n)) {
			to = pack_few(v + w * 64 * size, index + w, n, size, to);
			continue;
		}
		for (uint64_t k = w; k < w + n; k++)
			for (unsigned int i = 0; i < size; i++) {
				uint64_t set = part(index[k], i, size);

				compress(to, v + (k * size + i) * 64, set, size);
				to += (uint64_t)_mm_popcnt_u64(set) * size;
			}
	}
	return to;
}

static inline __attribute__((always_inline)) const char *
unpack_size(const uint64_t *index, uint64_t words, unsigned int size, const char *from, char *v)
{
	for (uint64_t w = 0; w < words; w++)
		for (unsigned int i = 0; i < size; i++, v += 64) {
			uint64_t set = part(index[w], i, size);

			expand(v, from, set, size);
			from += (uint64_t)_mm_popcnt_u64(set) * size;
		}
	return from;
}

/* A call for each constant size. */
#define BY_SIZE(size, call)                                                                        \
	((size) == 1 ? call(1) : (size) == 2 ? call(2) : (size) == 4 ? call(4) : call(8))

static void scan(const void *v, uint64_t count, unsigned int size, uint64_t *index)
{
	uint64_t words = count / 64;

#define SCAN(constant) scan_size(v, words, constant, index)
	BY_SIZE(size, SCAN);
	swc_sparse_scalar.scan((const char *)v + words * 64 * size, count % 64, size,
			       index + words);
}

static void pack(const void *v, const uint64_t *index, uint64_t count, unsigned int size,
		 void *packed)
{
	uint64_t words = count / 64;

#define PACK(constant) pack_size(v, index, words, constant, packed)
	packed = BY_SIZE(size, PACK);
	swc_sparse_scalar.pack((const char *)v + words * 64 * size, index + words, count % 64, size,
			       packed);
}

static void unpack(const uint64_t *index, uint64_t count, unsigned int size, const void *packed,
		   void *v)
{
	uint64_t words = count / 64;

#define UNPACK(constant) unpack_size(index, words, constant, packed, v)
	packed = BY_SIZE(size, UNPACK);
	swc_sparse_scalar.unpack(index + words, count % 64, size, packed,
				 (char *)v + words * 64 * size);
}

static bool valid(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("bmi2");
}

const struct swc_sparse_codec swc_sparse_avx512 = {
	.name = "avx512",
	.valid = valid,
	.scan = scan,
	.pack = pack,
	.unpack = unpack,
};
#endif
