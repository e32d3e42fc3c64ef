// SPDX-License-Identifier: LGPL-2.1-or-later
/* Codecs: their list, checks of an index, and rows, which need no code of their own. */
#include <errno.h>
#include <string.h>

#include "sparse/codec.h"

const struct swc_sparse_codec *const swc_sparse_codecs[] = {
	&swc_sparse_scalar,
#ifdef __x86_64__
	&swc_sparse_avx2,
	&swc_sparse_avx512,
#endif
#ifdef __aarch64__
	&swc_sparse_neon,
#endif
	NULL,
};

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

int swc_sparse_rows_unpack(const uint64_t *index, uint64_t count, unsigned int size, uint64_t width,
			   const void *packed, uint64_t values, void *v)
{
	uint64_t rows = swc_sparse_rows(count, width), bits;
	const char *from = packed;
	int ret = swc_sparse_count(index, rows, &bits);

	if (ret)
		return ret;
	if (swc_sparse_rows_values(index, count, width, bits) != values)
		return -EPROTO;
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
	return 0;
}
