// SPDX-License-Identifier: LGPL-2.1-or-later
/* Scan, pack and unpack in plain C: the reference, and what machines without vector units run. */
#include <errno.h>
#include <string.h>

#include "sparse/codec.h"

static inline bool is_zero(const unsigned char *p, unsigned int size)
{
	uint64_t bits = 0;

	memcpy(&bits, p, size);
	return !bits;
}

/* Inlined for each constant size. */
static inline __attribute__((always_inline)) void scan_size(const unsigned char *v, uint64_t count,
							    unsigned int size, uint64_t *index)
{
	for (uint64_t i = 0; i < count; i += 64, index++) {
		unsigned int n = count - i < 64 ? (unsigned int)(count - i) : 64;
		uint64_t word = 0;

		for (unsigned int k = 0; k < n; k++, v += size)
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

static const struct swc_sparse_codec scalar = {
	.name = "scalar",
	.valid = always,
	.scan = scan,
	.pack = pack,
	.unpack = unpack,
};

const struct swc_sparse_codec *const swc_sparse_codecs[] = {
	&scalar,
#ifdef __x86_64__
	&swc_sparse_avx2,
#endif
	NULL,
};

const struct swc_sparse_codec *swc_sparse_codec_best(void)
{
	const struct swc_sparse_codec *best = &scalar;

	for (int i = 0; swc_sparse_codecs[i]; i++)
		if (swc_sparse_codecs[i]->valid())
			best = swc_sparse_codecs[i];
	return best;
}

int swc_sparse_count(const uint64_t *index, uint64_t count, uint64_t *bits)
{
	uint64_t words = swc_sparse_words(count), n = 0;

	if (count % 64 && index[words - 1] >> count % 64)
		return -EPROTO;
	for (uint64_t w = 0; w < words; w++)
		n += (unsigned int)__builtin_popcountll(index[w]);
	*bits = n;
	return 0;
}

int swc_sparse_unpack(const struct swc_sparse_codec *c, const uint64_t *index, uint64_t count,
		      unsigned int size, const void *packed, uint64_t values, void *v)
{
	uint64_t bits;
	int ret = swc_sparse_count(index, count, &bits);

	if (ret)
		return ret;
	if (bits != values)
		return -EPROTO;
	c->unpack(index, count, size, packed, v);
	return 0;
}

/* ---- rows ---- */

static bool all_zero(const unsigned char *p, uint64_t bytes)
{
	uint64_t word, any = 0;

	for (; bytes >= 8; bytes -= 8, p += 8) {
		memcpy(&word, p, 8);
		any |= word;
	}
	for (; bytes; bytes--)
		any |= *p++;
	return !any;
}

void swc_sparse_rows_scan(const void *v, uint64_t count, unsigned int size, uint64_t width,
			  uint64_t *index)
{
	uint64_t rows = swc_sparse_rows(count, width);

	memset(index, 0, swc_sparse_words(rows) * 8);
	for (uint64_t r = 0; r < rows; r++) {
		uint64_t first = r * width, n = count - first < width ? count - first : width;

		if (!all_zero((const unsigned char *)v + first * size, n * size))
			index[r / 64] |= 1ull << r % 64;
	}
}

uint64_t swc_sparse_rows_values(const uint64_t *index, uint64_t count, uint64_t width,
				uint64_t bits)
{
	uint64_t rows = swc_sparse_rows(count, width);

	/* The last row may be shorter. */
	if (rows && index[(rows - 1) / 64] >> (rows - 1) % 64 & 1)
		return bits * width - (rows * width - count);
	return bits * width;
}

void swc_sparse_rows_pack(const void *v, const uint64_t *index, uint64_t count, unsigned int size,
			  uint64_t width, void *packed)
{
	uint64_t words = swc_sparse_words(swc_sparse_rows(count, width));
	char *to = packed;

	for (uint64_t w = 0; w < words; w++)
		for (uint64_t bits = index[w]; bits; bits &= bits - 1) {
			uint64_t first = (w * 64 + (unsigned int)__builtin_ctzll(bits)) * width;
			uint64_t n = count - first < width ? count - first : width;

			memcpy(to, (const char *)v + first * size, n * size);
			to += n * size;
		}
}

void swc_sparse_rows_unpack(const uint64_t *index, uint64_t count, unsigned int size,
			    uint64_t width, const void *packed, void *v)
{
	uint64_t rows = swc_sparse_rows(count, width);
	const char *from = packed;

	for (uint64_t r = 0; r < rows; r++) {
		uint64_t first = r * width, n = count - first < width ? count - first : width;
		char *to = (char *)v + first * size;

		if (index[r / 64] >> r % 64 & 1) {
			memcpy(to, from, n * size);
			from += n * size;
		} else {
			memset(to, 0, n * size);
		}
	}
}
