/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Block geometry: where the blocks of a plan lie in a vector of a given size.
 *
 * A plan has no size; this turns block numbers into byte offsets once the element count is known. The
 * formula is part of the ABI (see "Blocks" in uapi/linux/swingcoll.h): boundaries fall on multiples of 64
 * bytes inside a shard, so that two workers never share a cache line of an aligned vector.
 */
#ifndef SWC_CORE_BLOCKS_H
#define SWC_CORE_BLOCKS_H

#include "types.h"

#define SWC_UNIT_BYTES 64

/* Largest vector, so that no offset arithmetic below can overflow. */
#define SWC_MAX_VECTOR_BYTES (1ull << 46)

struct swc_blocks {
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
	u64 units, rem, total;

	if (check_mul_overflow(shard_elems, (u64)elem_bytes, &g->shard_bytes) ||
	    check_mul_overflow(g->shard_bytes, (u64)nshards, &total) ||
	    total > SWC_MAX_VECTOR_BYTES)
		return -EOVERFLOW;
	units = (g->shard_bytes + SWC_UNIT_BYTES - 1) / SWC_UNIT_BYTES;
	g->unit_q = div64_u64_rem(units, shard_blocks, &rem);
	g->unit_r = (u32)rem;
	g->shard_blocks = shard_blocks;
	g->nshards = nshards;
	return 0;
}

static inline u64 swc_blocks_total_bytes(const struct swc_blocks *g)
{
	return g->shard_bytes * g->nshards;
}

/* Byte offset of block @b in the vector; b == nshards * shard_blocks gives the end. */
static inline u64 swc_blocks_offset(const struct swc_blocks *g, u32 b)
{
	u32 shard = b / g->shard_blocks, k = b % g->shard_blocks;
	u64 at = (k * g->unit_q + (k < g->unit_r ? k : g->unit_r)) * SWC_UNIT_BYTES;

	return shard * g->shard_bytes + (at < g->shard_bytes ? at : g->shard_bytes);
}

static inline u64 swc_blocks_bytes(const struct swc_blocks *g, u32 first, u32 n)
{
	return swc_blocks_offset(g, first + n) - swc_blocks_offset(g, first);
}

#endif /* SWC_CORE_BLOCKS_H */
