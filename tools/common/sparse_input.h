/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sparse vectors that anyone can make again from a seed: which elements of a rank are not zero, by
 * how the ranks' places overlap, and their values. Sums of the floating-point values are exact in
 * every order.
 */
#ifndef TOOLS_SPARSE_INPUT_H
#define TOOLS_SPARSE_INPUT_H

#include <stdbool.h>
#include <stdint.h>

enum sparse_overlap {
	SPARSE_INDEPENDENT,
	SPARSE_IDENTICAL,
	SPARSE_DISJOINT,
	SPARSE_ROWS,  /* rows of @width elements, independent */
	SPARSE_MIXED, /* @share of the density is common to all ranks, the rest independent */
};

struct sparse_input {
	uint64_t seed;
	double density;
	enum sparse_overlap overlap;
	uint64_t width;
	double share;
};

/*
 * DENSITY[,OVERLAP], or OVERLAP alone: independent, identical, disjoint, rows:W or mixed:SHARE. Return
 * 0 or -EINVAL. sparse_input.c
 */
int sparse_parse(const char *text, struct sparse_input *in);
int sparse_parse_overlap(const char *text, struct sparse_input *in);
#define SPARSE_OVERLAPS "independent, identical, disjoint, rows:W or mixed:SHARE"

/* Finaliser of splitmix64 (S. Vigna, public domain). */
static inline uint64_t sparse_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline uint64_t sparse_hash(const struct sparse_input *in, uint64_t tag, uint64_t rank,
				   uint64_t i)
{
	return sparse_mix(sparse_mix(sparse_mix(in->seed + tag) + rank) + i);
}

/* Is the hash below a share of all hashes? */
static inline bool sparse_below(uint64_t hash, double share)
{
	return share >= 1 || hash < (uint64_t)(share * 0x1p64);
}

static inline bool sparse_is_set(const struct sparse_input *in, uint64_t rank, uint64_t i)
{
	double d = in->density, common;

	switch (in->overlap) {
	case SPARSE_IDENTICAL:
		return sparse_below(sparse_hash(in, 1, 0, i), d);
	case SPARSE_DISJOINT:
		return d >= 1 ||
		       sparse_below(sparse_hash(in, 1, 0, i) - rank * (uint64_t)(d * 0x1p64), d);
	case SPARSE_ROWS:
		return sparse_below(sparse_hash(in, 1, rank, i / in->width), d);
	case SPARSE_MIXED:
		common = d * in->share;
		return sparse_below(sparse_hash(in, 1, UINT32_MAX, i), common) ||
		       (common < 1 &&
			sparse_below(sparse_hash(in, 2, rank, i), (d - common) / (1 - common)));
	default:
		return sparse_below(sparse_hash(in, 1, rank, i), d);
	}
}

/* The values: of an integer type its lowest bits, of f32 and f64 a multiple of 1/8 up to 128. */
static inline uint32_t sparse_int(const struct sparse_input *in, uint64_t rank, uint64_t i)
{
	uint32_t v = (uint32_t)sparse_hash(in, 3, rank, i);

	return v ? v : 1;
}

static inline float sparse_float(const struct sparse_input *in, uint64_t rank, uint64_t i)
{
	int v = (int)(sparse_hash(in, 3, rank, i) & 2047) - 1024;

	return v ? (float)v / 8 : 1;
}

/* Density of the union of so many ranks' places, on average. */
static inline double sparse_union(const struct sparse_input *in, unsigned int nranks)
{
	double d = in->density, common = 0, none = 1;

	if (in->overlap == SPARSE_IDENTICAL)
		return d;
	if (in->overlap == SPARSE_DISJOINT)
		return d * nranks < 1 ? d * nranks : 1;
	if (in->overlap == SPARSE_MIXED) {
		common = d * in->share;
		d = common < 1 ? (d - common) / (1 - common) : 0;
	}
	for (unsigned int r = 0; r < nranks; r++)
		none *= 1 - d;
	return common + (1 - common) * (1 - none);
}

#endif /* TOOLS_SPARSE_INPUT_H */
