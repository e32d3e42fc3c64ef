// SPDX-License-Identifier: LGPL-2.1-or-later
/* Scan, pack and unpack in plain C: the reference, and what machines without vector units run. */
#include <string.h>

#include "sparse/codec.h"

static inline bool is_zero(const unsigned char *p, unsigned int size)
{
	uint64_t bits = 0;

	memcpy(&bits, p, size);
	return !bits;
}

/* Of eight elements. */
static inline bool all_zero(const unsigned char *p, unsigned int size)
{
	uint64_t any = 0, bits;

	for (unsigned int k = 0; k < size; k++) {
		memcpy(&bits, p + k * 8, 8);
		any |= bits;
	}
	return !any;
}

/* Inlined for each constant size. Most elements are zero: eight of them at a time are passed over. */
static inline __attribute__((always_inline)) void scan_size(const unsigned char *v, uint64_t count,
							    unsigned int size, uint64_t *index)
{
	for (uint64_t i = 0; i < count; i += 64, index++) {
		unsigned int n = count - i < 64 ? (unsigned int)(count - i) : 64, k = 0;
		uint64_t word = 0;

		for (; k + 8 <= n; k += 8, v += 8 * size) {
			if (all_zero(v, size))
				continue;
			for (unsigned int j = 0; j < 8; j++)
				word |= (uint64_t)!is_zero(v + j * size, size) << (k + j);
		}
		for (; k < n; k++, v += size)
			word |= (uint64_t)!is_zero(v, size) << k;
		*index = word;
	}
}

static inline __attribute__((always_inline)) void pack_size(const unsigned char *v,
							    const uint64_t *index, uint64_t count,
							    unsigned int size,
							    unsigned char *packed)
{
	uint64_t words = swc_sparse_words(count);

	for (uint64_t w = 0; w < words; w++)
		for (uint64_t bits = index[w]; bits; bits &= bits - 1, packed += size)
			memcpy(packed, v + (w * 64 + (unsigned int)__builtin_ctzll(bits)) * size,
			       size);
}

static inline __attribute__((always_inline)) void scatter_size(const uint64_t *index,
							       uint64_t count, unsigned int size,
							       const unsigned char *packed,
							       unsigned char *v, bool clear)
{
	for (uint64_t i = 0; i < count; i += 64, index++) {
		uint64_t n = count - i < 64 ? count - i : 64;

		if (clear)
			memset(v + i * size, 0, n * size);
		for (uint64_t bits = *index; bits; bits &= bits - 1, packed += size)
			memcpy(v + (i + (unsigned int)__builtin_ctzll(bits)) * size, packed, size);
	}
}

#define BY_SIZE(call)                                                                              \
	switch (size) {                                                                            \
	case 1:                                                                                    \
		call(1);                                                                           \
		break;                                                                             \
	case 2:                                                                                    \
		call(2);                                                                           \
		break;                                                                             \
	case 4:                                                                                    \
		call(4);                                                                           \
		break;                                                                             \
	default:                                                                                   \
		call(8);                                                                           \
	}

static void scan(const void *v, uint64_t count, unsigned int size, uint64_t *index)
{
#define SCAN(constant) scan_size(v, count, constant, index)
	BY_SIZE(SCAN)
}

static void pack(const void *v, const uint64_t *index, uint64_t count, unsigned int size,
		 void *packed)
{
#define PACK(constant) pack_size(v, index, count, constant, packed)
	BY_SIZE(PACK)
}

static void unpack(const uint64_t *index, uint64_t count, unsigned int size, const void *packed,
		   void *v)
{
#define UNPACK(constant) scatter_size(index, count, constant, packed, v, true)
	BY_SIZE(UNPACK)
}

void swc_sparse_scatter(const uint64_t *index, uint64_t count, unsigned int size,
			const void *packed, void *v)
{
#define SCATTER(constant) scatter_size(index, count, constant, packed, v, false)
	BY_SIZE(SCATTER)
}

static bool always(void)
{
	return true;
}

const struct swc_sparse_codec swc_sparse_scalar = {
	.name = "scalar",
	.valid = always,
	.scan = scan,
	.pack = pack,
	.unpack = unpack,
};
