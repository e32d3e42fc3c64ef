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

/*
 * What is left in a cell, in one word: the XOR of the places in the lower bits, and how many they are
 * above. Vectors have fewer than 2^48 elements. More than 65535 elements in a cell, which only a damaged
 * index can name, make a wrong word; so a place is looked up in the index before it is used.
 */
#define PLACE_BITS 48
#define ONE (1ull << PLACE_BITS)

static inline uint64_t place_in(uint64_t left)
{
	return left & (ONE - 1);
}

uint64_t swc_sparse_peel_bytes(uint64_t cells)
{
	return cells * 2 * sizeof(uint64_t);
}

/* One peeling: of a cell whose last element is known, and of those that it makes so. */
struct peel {
	uint64_t *index, *left, *stack;
	uint64_t count, cells;
	unsigned int size;
	void *cell, *v;
};

static void peel_from(const struct peel *p, uint64_t c)
{
	uint64_t depth = 0, at[3];

	p->stack[depth++] = c;
	while (depth) {
		uint64_t place, x;

		c = p->stack[--depth];
		place = place_in(p->left[c]);
		if (p->left[c] >> PLACE_BITS != 1 || place >= p->count ||
		    !(p->index[place / 64] >> place % 64 & 1))
			continue;
		x = load(p->cell, c, p->size);
		store(p->v, place, p->size, x);
		p->index[place / 64] &= ~(1ull << place % 64);
		cells_of(place, p->cells / 3, at);
		for (int k = 0; k < 3; k++) {
			store(p->cell, at[k], p->size, load(p->cell, at[k], p->size) - x);
			p->left[at[k]] = (p->left[at[k]] ^ place) - ONE;
			if (p->left[at[k]] >> PLACE_BITS == 1 && depth < p->cells)
				p->stack[depth++] = at[k];
		}
	}
}

int swc_sparse_peel(uint64_t *index, uint64_t count, unsigned int size, uint64_t cells, void *cell,
		    void *scratch, void *v)
{
	struct peel p = { .index = index,
			  .left = scratch,
			  .stack = (uint64_t *)scratch + cells,
			  .count = count,
			  .cells = cells,
			  .size = size,
			  .cell = cell,
			  .v = v };
	uint64_t words = swc_sparse_words(count), bits, at[3];
	int ret = swc_sparse_count(index, count, &bits);

	if (ret)
		return ret;
	memset(p.left, 0, cells * sizeof(*p.left));
	for (uint64_t w = 0; w < words; w++)
		for (bits = index[w]; bits; bits &= bits - 1) {
			uint64_t place = w * 64 + (unsigned int)__builtin_ctzll(bits);

			cells_of(place, cells / 3, at);
			for (int k = 0; k < 3; k++)
				p.left[at[k]] = (p.left[at[k]] ^ place) + ONE;
		}
	for (uint64_t c = 0; c < cells; c++)
		if (p.left[c] >> PLACE_BITS == 1)
			peel_from(&p, c);
	return 0;
}
