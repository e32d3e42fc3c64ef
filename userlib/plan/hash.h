/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * FNV-1a, 64 bits: of plans that belong together, of texts that must be equal on all ranks. (G.
 * Fowler, L. C. Noll, K.-P. Vo; public domain.) Against accidents only, not against forgers.
 */
#ifndef SWC_PLAN_HASH_H
#define SWC_PLAN_HASH_H

#include <stdint.h>

#define SWC_HASH_START 0xcbf29ce484222325ull

static inline uint64_t swc_hash_byte(uint64_t hash, uint8_t byte)
{
	return (hash ^ byte) * 0x100000001b3ull;
}

/* The bytes of a word, the lowest first. */
static inline uint64_t swc_hash_u32(uint64_t hash, uint32_t word)
{
	for (int shift = 0; shift < 32; shift += 8)
		hash = swc_hash_byte(hash, (uint8_t)(word >> shift));
	return hash;
}

/* A text without its NUL. */
static inline uint64_t swc_hash_text(uint64_t hash, const char *s)
{
	for (; *s; s++)
		hash = swc_hash_byte(hash, (uint8_t)*s);
	return hash;
}

#endif /* SWC_PLAN_HASH_H */
