// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sketch and peel (invertible Bloom lookup table, M. Goodrich and M. Mitzenmacher 2011). Beside each
 * cell, peeling keeps how many elements are left in it and the XOR of their places: a cell with one
 * element names it, which makes the whole linear in the number of elements.
 */
#include <errno.h>
#include <string.h>

#include "sparse/codec.h"

/* Below these loads a table of so many elements peels completely, nearly always. */
#define LOAD_PERCENT 75
#define LOAD_PERCENT_SMALL 50
#define SMALL 1000

uint64_t swc_sparse_cells(uint64_t elements)
{
	uint64_t load = elements < SMALL ? LOAD_PERCENT_SMALL : LOAD_PERCENT;

	return (elements * 100 / load / 3 + 1) * 3;
}

/* Finaliser of splitmix64 (S. Vigna, public domain). */
static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline uint64_t below(uint64_t hash, uint64_t n)
{
	return (uint64_t)((unsigned __int128)hash * n >> 64);
}

/* The three cells of a place, one in each third, so always different. */
static inline void cells_of(uint64_t place, uint64_t third, uint64_t at[3])
{
	uint64_t hash = mix(place + 0x9e3779b97f4a7c15ull);

	at[0] = below(hash, third);
	at[1] = below(hash * 0xd1342543de82ef95ull, third) + third;
	at[2] = below(mix(hash), third) + 2 * third;
}

static inline uint64_t load(const void *v, uint64_t i, unsigned int size)
{
	uint64_t x = 0;

	switch (size) {
	case 1:
		return ((const uint8_t *)v)[i];
	case 2:
		return ((const uint16_t *)v)[i];
	case 4:
		return ((const uint32_t *)v)[i];
	default:
		memcpy(&x, (const char *)v + i * 8, 8);
		return x;
	}
}

static inline void store(void *v, uint64_t i, unsigned int size, uint64_t x)
{
	switch (size) {
	case 1:
		((uint8_t *)v)[i] = (uint8_t)x;
		break;
	case 2:
		((uint16_t *)v)[i] = (uint16_t)x;
		break;
	case 4:
		((uint32_t *)v)[i] = (uint32_t)x;
		break;
	default:
		memcpy((char *)v + i * 8, &x, 8);
	}
}

void swc_sparse_sketch(const void *v, const uint64_t *index, uint64_t count, unsigned int size,
		       uint64_t cells, void *cell)
{
	uint64_t words = swc_sparse_words(count), at[3];

	for (uint64_t w = 0; w < words; w++)
		for (uint64_t bits = index[w]; bits; bits &= bits - 1) {
			uint64_t place = w * 64 + (unsigned int)__builtin_ctzll(bits);
			uint64_t x = load(v, place, size);

			cells_of(place, cells / 3, at);
			for (int k = 0; k < 3; k++)
				store(cell, at[k], size, load(cell, at[k], size) + x);
		}
}

/* Of each cell: the XOR of the places left in it, and how many they are. */
struct left {
	uint64_t places;
	uint64_t n;
};

uint64_t swc_sparse_peel_bytes(uint64_t cells)
{
	return cells * (sizeof(struct left) + sizeof(uint64_t));
}

int swc_sparse_peel(uint64_t *index, uint64_t count, unsigned int size, uint64_t cells, void *cell,
		    void *scratch, void *v)
{
	struct left *left = scratch;
	uint64_t *queue = (uint64_t *)(left + cells); /* each cell enters at most once */
	uint64_t words = swc_sparse_words(count), queued = 0, bits, at[3];
	int ret = swc_sparse_count(index, count, &bits);

	if (ret)
		return ret;
	memset(left, 0, cells * sizeof(*left));
	for (uint64_t w = 0; w < words; w++)
		for (bits = index[w]; bits; bits &= bits - 1) {
			uint64_t place = w * 64 + (unsigned int)__builtin_ctzll(bits);

			cells_of(place, cells / 3, at);
			for (int k = 0; k < 3; k++) {
				left[at[k]].places ^= place;
				left[at[k]].n++;
			}
		}
	/* Counts only fall, so a cell has the count 1 once, now or later. */
	for (uint64_t c = 0; c < cells; c++)
		if (left[c].n == 1)
			queue[queued++] = c;
	while (queued) {
		uint64_t c = queue[--queued], place = left[c].places, x;

		if (left[c].n != 1)
			continue;
		x = load(cell, c, size);
		store(v, place, size, x);
		index[place / 64] &= ~(1ull << place % 64);
		cells_of(place, cells / 3, at);
		for (int k = 0; k < 3; k++) {
			store(cell, at[k], size, load(cell, at[k], size) - x);
			left[at[k]].places ^= place;
			if (--left[at[k]].n == 1)
				queue[queued++] = at[k];
		}
	}
	return 0;
}
