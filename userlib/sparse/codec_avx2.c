// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Scan, pack and unpack with AVX2. Elements of four and eight bytes are packed and unpacked eight
 * and four at a time, by a permutation that a table holds for each pattern of bits. Those of one and
 * two bytes are packed one by one.
 */
#ifdef __x86_64__
#pragma GCC target("avx2,bmi,bmi2,popcnt")

#include <immintrin.h>
#include <string.h>

#include "sparse/codec_few.h"

/* Lanes of the set bits in order, then anything; and for each lane the rank of its bit. */
static uint8_t gather8[256][8], spread8[256][8];

static __attribute__((constructor)) void make_tables(void)
{
	for (unsigned int m = 0; m < 256; m++) {
		uint8_t n = 0;

		for (uint8_t lane = 0; lane < 8; lane++) {
			spread8[m][lane] = n;
			if (m >> lane & 1)
				gather8[m][n++] = lane;
		}
	}
}

static inline __m256i lanes(const uint8_t *table)
{
	return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)table));
}

/* All bits of a lane set where @mask has its bit. */
static inline __m256i lane_mask(unsigned int mask)
{
	const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);

	return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)mask), bit), bit);
}

/* Each bit of four twice: elements of eight bytes are two lanes. */
static inline unsigned int twice(unsigned int four)
{
	return _pdep_u32(four, 0x55) * 3;
}

static inline uint64_t zeros(const unsigned char *p, unsigned int size)
{
	const __m256i zero = _mm256_setzero_si256();
	const __m256i *v = (const __m256i *)p;
	uint64_t bits = 0;

	for (unsigned int k = 0; k < 2 * size; k++) {
		__m256i x = _mm256_loadu_si256(v + k);

		if (size == 1) {
			bits |= (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(x, zero))
				<< 32 * k;
		} else if (size == 2) {
			uint32_t m = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi16(x, zero));

			bits |= (uint64_t)_pext_u32(m, 0x55555555) << 16 * k;
		} else if (size == 4) {
			bits |= (uint64_t)(unsigned int)_mm256_movemask_ps(
					_mm256_castsi256_ps(_mm256_cmpeq_epi32(x, zero)))
				<< 8 * k;
		} else {
			bits |= (uint64_t)(unsigned int)_mm256_movemask_pd(
					_mm256_castsi256_pd(_mm256_cmpeq_epi64(x, zero)))
				<< 4 * k;
		}
	}
	return bits;
}

static inline __attribute__((always_inline)) uint64_t
scan_size(const unsigned char *v, uint64_t count, unsigned int size, uint64_t *index)
{
	uint64_t words = count / 64;

	for (uint64_t w = 0; w < words; w++)
		index[w] = ~zeros(v + w * 64 * size, size);
	return words;
}

static void scan(const void *v, uint64_t count, unsigned int size, uint64_t *index)
{
	uint64_t words = size == 1   ? scan_size(v, count, 1, index)
			 : size == 2 ? scan_size(v, count, 2, index)
			 : size == 4 ? scan_size(v, count, 4, index)
				     : scan_size(v, count, 8, index);

	swc_sparse_scalar.scan((const char *)v + words * 64 * size, count % 64, size,
			       index + words);
}

static inline __attribute__((always_inline)) char *pack_word(const char *v, uint64_t bits,
							     unsigned int size, char *to)
{
	unsigned int step = 32 / size;

	for (; bits; bits >>= step, v += 32) {
		unsigned int m = (unsigned int)bits & ((1u << step) - 1);
		__m256i x = _mm256_loadu_si256((const __m256i *)v);
		const uint8_t *table = gather8[size == 4 ? m : twice(m)];

		_mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(x, lanes(table)));
		to += (unsigned int)_mm_popcnt_u32(m) * size;
	}
	return to;
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
			to = pack_word(v + k * 64 * size, index[k], size, to);
	}
	return to;
}

static void pack(const void *v, const uint64_t *index, uint64_t count, unsigned int size,
		 void *packed)
{
	uint64_t words = size < 4 ? 0 : count / 64;

	if (size == 4)
		packed = pack_size(v, index, words, 4, packed);
	else if (size == 8)
		packed = pack_size(v, index, words, 8, packed);
	swc_sparse_scalar.pack((const char *)v + words * 64 * size, index + words,
			       count - words * 64, size, packed);
}

static inline __attribute__((always_inline)) const char *
unpack_word(uint64_t bits, unsigned int size, const char *from, char *v)
{
	unsigned int step = 32 / size;

	for (unsigned int k = 0; k < 2 * size; k++, bits >>= step) {
		unsigned int m = (unsigned int)bits & ((1u << step) - 1);
		unsigned int m8 = size == 4 ? m : twice(m);
		__m256i x = _mm256_loadu_si256((const __m256i *)from);

		x = _mm256_permutevar8x32_epi32(x, lanes(spread8[m8]));
		_mm256_storeu_si256((__m256i *)v + k, _mm256_and_si256(x, lane_mask(m8)));
		from += (unsigned int)_mm_popcnt_u32(m) * size;
	}
	return from;
}

static inline __attribute__((always_inline)) void
unpack_size(const uint64_t *index, uint64_t count, unsigned int size, const char *from, char *v)
{
	for (uint64_t w = 0; w < count / 64; w++, v += 64 * size) {
		uint64_t bits = index[w];

		if (bits & (bits - 1)) {
			from = unpack_word(bits, size, from, v);
			continue;
		}
		memset(v, 0, 64 * size);
		for (; bits; bits = _blsr_u64(bits), from += size)
			memcpy(v + _tzcnt_u64(bits) * size, from, size);
	}
	if (count % 64)
		swc_sparse_scalar.unpack(index + count / 64, count % 64, size, from, v);
}

static void unpack(const uint64_t *index, uint64_t count, unsigned int size, const void *packed,
		   void *v)
{
	if (size == 4)
		unpack_size(index, count, 4, packed, v);
	else if (size == 8)
		unpack_size(index, count, 8, packed, v);
	else
		swc_sparse_scalar.unpack(index, count, size, packed, v);
}

static bool valid(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}

const struct swc_sparse_codec swc_sparse_avx2 = {
	.name = "avx2",
	.valid = valid,
	.scan = scan,
	.pack = pack,
	.unpack = unpack,
};
#endif
