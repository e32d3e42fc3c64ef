/* SPDX-License-Identifier: GPL-2.0-only */
/* FNV-1a, 64 bits: a hash for comparing results and naming files, of no cryptographic strength. */
#ifndef TOOLS_HASH_H
#define TOOLS_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t hash_bytes(const void *data, size_t n)
{
	const unsigned char *p = data;
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}

#endif /* TOOLS_HASH_H */
