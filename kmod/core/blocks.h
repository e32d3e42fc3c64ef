/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Block geometry: where the blocks of a plan lie in a vector of a given size.
 *
 * A plan has no size; this turns block numbers into byte offsets once the element count is known. The
 * formula is part of the ABI (see "Blocks" in uapi/linux/swingcoll_plan.h): boundaries fall on multiples of
 * 64 bytes inside a shard, so that two workers never share a cache line of an aligned vector.
 */
#ifndef SWC_CORE_BLOCKS_H
#define SWC_CORE_BLOCKS_H

#include "types.h"

#define SWC_UNIT_BYTES 64

/* Largest vector, so that no offset arithmetic below can overflow. */
#define SWC_MAX_VECTOR_BYTES (1ull << 46)

struct swc_blocks {
	const u64 *starts;	/* where each shard begins, and the end; NULL: all have shard_bytes */
	u64 total_bytes;
	u64 shard_bytes;
	u64 unit_q;		/* 64-byte units per block; */
	u32 unit_r;		/* the first unit_r blocks of a shard have one more */
	u32 shard_blocks;
	u32 nshards;
};

/**
 * swc_blocks_init() - geometry of @nshards shards of @shard_elems elements in @shard_blocks blocks
 *
 * Return: 0, or -EOVERFLOW if the vector would be larger than SWC_MAX_VECTOR_BYTES.
 */
static inline int swc_blocks_init(struct swc_blocks *g, u64 shard_elems, u32 elem_bytes, u32 nshards,
				  u32 shard_blocks)
{
	u64 units, rem;

	g->starts = NULL;
	if (check_mul_overflow(shard_elems, (u64)elem_bytes, &g->shard_bytes) ||
	    check_mul_overflow(g->shard_bytes, (u64)nshards, &g->total_bytes) ||
	    g->total_bytes > SWC_MAX_VECTOR_BYTES)
		return -EOVERFLOW;
	units = (g->shard_bytes + SWC_UNIT_BYTES - 1) / SWC_UNIT_BYTES;
	g->unit_q = div64_u64_rem(units, shard_blocks, &rem);
	g->unit_r = (u32)rem;
	g->shard_blocks = shard_blocks;
	g->nshards = nshards;
	return 0;
}

/**
 * swc_blocks_init_uneven() - the same for shards of different sizes
 * @starts: the elements of each of the @nshards shards, and room for one more number; becomes where they
 *	begin, in bytes, and must outlive @g
 *
 * Return: as swc_blocks_init().
 */
static inline int swc_blocks_init_uneven(struct swc_blocks *g, u64 *starts, u32 elem_bytes, u32 nshards,
					 u32 shard_blocks)
{
	u64 at = 0, bytes;
	u32 i;

	for (i = 0; i < nshards; i++) {
		if (check_mul_overflow(starts[i], (u64)elem_bytes, &bytes) ||
		    bytes > SWC_MAX_VECTOR_BYTES - at)
			return -EOVERFLOW;
		starts[i] = at;
		at += bytes;
	}
	starts[nshards] = at;
	*g = (struct swc_blocks){ .starts = starts, .total_bytes = at, .shard_blocks = shard_blocks,
				  .nshards = nshards };
	return 0;
}

/* A hash of the sizes of shards; 0 where each has shard_bytes. */
static inline u64 swc_blocks_hash(const struct swc_blocks *g)
{
	u64 hash = 0;
	u32 i;

	for (i = 1; g->starts && i <= g->nshards; i++) {
		hash = (hash ^ g->starts[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return hash;
}

static inline u64 swc_blocks_total_bytes(const struct swc_blocks *g)
{
	return g->total_bytes;
}

/* Byte offset of block @k of a shard that has its own size; the shard behind the last one is empty. */
static inline u64 swc_blocks_uneven_offset(const struct swc_blocks *g, u32 shard, u32 k)
{
	u64 start = g->starts[shard], bytes, q, r, at;

	if (!k)
		return start;
	bytes = g->starts[shard + 1] - start;
	q = div64_u64_rem((bytes + SWC_UNIT_BYTES - 1) / SWC_UNIT_BYTES, g->shard_blocks, &r);
	at = (k * q + (k < r ? k : r)) * SWC_UNIT_BYTES;
	return start + (at < bytes ? at : bytes);
}

/* Byte offset of block @b in the vector; b == nshards * shard_blocks gives the end. */
static inline u64 swc_blocks_offset(const struct swc_blocks *g, u32 b)
{
	u32 shard = 0, k = b;
	u64 at;

	/* Plans that copy many blocks have whole shards: no division for each. */
	if (g->shard_blocks == 1 && !g->starts)
		return b * g->shard_bytes;
	/* Nor for those of the first shard, which is all of an allreduce. */
	if (b >= g->shard_blocks) {
		shard = b / g->shard_blocks;
		k = b % g->shard_blocks;
	}
	if (g->starts)
		return swc_blocks_uneven_offset(g, shard, k);
	at = (k * g->unit_q + (k < g->unit_r ? k : g->unit_r)) * SWC_UNIT_BYTES;

	return shard * g->shard_bytes + (at < g->shard_bytes ? at : g->shard_bytes);
}

static inline u64 swc_blocks_bytes(const struct swc_blocks *g, u32 first, u32 n)
{
	return swc_blocks_offset(g, first + n) - swc_blocks_offset(g, first);
}

#endif /* SWC_CORE_BLOCKS_H */
