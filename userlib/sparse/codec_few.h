/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pack where few bits are set: reading all elements would cost more. What a value costs then is its line
 * from memory, and the branch that the number of bits in a word mispredicts. So first the places of a
 * block of the index are written down, always two of a word though it may have fewer, and their lines
 * asked for; the values follow one block later. For files that are compiled for a vector unit.
 */
#ifndef SWC_SPARSE_CODEC_FEW_H
#define SWC_SPARSE_CODEC_FEW_H

#include <string.h>

#include "sparse/codec.h"

/* Faster than reading all elements up to so many bits a word, on average of a run of words. */
#define FEW 2
#define FEW_RUN 256
/* Words whose places are written down at once: their lines fit in the first two caches. */
#define FEW_BLOCK 128
/* Places of a word that are always written down. */
#define FEW_ALWAYS 2

/* The first bit; any number if there is none, without a branch. */
static inline unsigned int first_bit(uint64_t bits)
{
	return (unsigned int)__builtin_ctzll(bits | 1ull << 63);
}

static inline unsigned int few_places(const uint64_t *index, unsigned int words, uint16_t *place)
{
	unsigned int n = 0;

	for (unsigned int w = 0; w < words; w++) {
		uint64_t bits = index[w];
		unsigned int set = (unsigned int)__builtin_popcountll(bits), first = w * 64;

		/* What is written behind the last bit is overwritten, or never read. */
		for (unsigned int k = 0; k < FEW_ALWAYS; k++, bits &= bits - 1)
			place[n + k] = (uint16_t)(first + first_bit(bits));
		for (unsigned int k = FEW_ALWAYS; k < set; k++, bits &= bits - 1)
			place[n + k] = (uint16_t)(first + first_bit(bits));
		n += set;
	}
	return n;
}

/* Pack whole words of an index. Returns the end of the packed values. @size is constant. */
static inline __attribute__((always_inline)) char *
pack_few(const char *v, const uint64_t *index, uint64_t words, unsigned int size, char *to)
{
	uint16_t place[2][FEW_BLOCK * 64 + FEW_ALWAYS];
	unsigned int n[2] = { 0, 0 };
	const char *from = v;

	/* One round more than there are blocks: values are copied one block behind. */
	for (uint64_t w = 0, now = 0; w < words + FEW_BLOCK; w += FEW_BLOCK, now ^= 1) {
		uint64_t some = w < words ? words - w : 0;

		n[now] = few_places(index + w, some < FEW_BLOCK ? (unsigned int)some : FEW_BLOCK,
				    place[now]);
		for (unsigned int k = 0; k < n[now]; k++)
			__builtin_prefetch(v + (w * 64 + place[now][k]) * size);
		for (unsigned int k = 0; k < n[now ^ 1]; k++, to += size)
			memcpy(to, from + place[now ^ 1][k] * size, size);
		from = v + w * 64 * size;
	}
	return to;
}

/* Has a run of an index few bits? */
static inline bool is_few(const uint64_t *index, uint64_t words)
{
	uint64_t bits = 0;

	for (uint64_t w = 0; w < words; w++)
		bits += (unsigned int)__builtin_popcountll(index[w]);
	return bits <= words * FEW;
}

#endif /* SWC_SPARSE_CODEC_FEW_H */
