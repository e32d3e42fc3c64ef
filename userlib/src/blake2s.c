// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * BLAKE2s. Names and section numbers are those of RFC 7693.
 */
#include <string.h>

#include "src/blake2s.h"

#define ROUNDS 10

/* Section 2.6: the fractions of the square roots of the first eight primes. */
static const uint32_t iv[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
	0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

/* Section 2.7. */
static const uint8_t sigma[ROUNDS][16] = {
	{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	{ 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
	{ 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 },
	{ 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
	{ 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 },
	{ 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
	{ 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 },
	{ 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
	{ 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 },
	{ 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
};

static uint32_t ror(uint32_t x, unsigned int n)
{
	return x >> n | x << (32 - n);
}

static uint32_t load(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Section 3.1. */
static void mix(uint32_t *v, int a, int b, int c, int d, uint32_t x, uint32_t y)
{
	v[a] += v[b] + x;
	v[d] = ror(v[d] ^ v[a], 16);
	v[c] += v[d];
	v[b] = ror(v[b] ^ v[c], 12);
	v[a] += v[b] + y;
	v[d] = ror(v[d] ^ v[a], 8);
	v[c] += v[d];
	v[b] = ror(v[b] ^ v[c], 7);
}

/* Section 3.2, of the block in @s. */
static void compress(struct swc_blake2s *s, uint32_t last)
{
	uint32_t v[16], m[16];

	for (int i = 0; i < 16; i++)
		m[i] = load(s->block + 4 * i);
	memcpy(v, s->h, sizeof(s->h));
	memcpy(v + 8, iv, sizeof(iv));
	v[12] ^= (uint32_t)s->bytes;
	v[13] ^= (uint32_t)(s->bytes >> 32);
	v[14] ^= last;
	for (int r = 0; r < ROUNDS; r++) {
		const uint8_t *k = sigma[r];

		for (int i = 0; i < 4; i++)
			mix(v, i, i + 4, i + 8, i + 12, m[k[2 * i]], m[k[2 * i + 1]]);
		for (int i = 0; i < 4; i++)
			mix(v, i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12,
			    m[k[2 * i + 8]], m[k[2 * i + 9]]);
	}
	for (int i = 0; i < 8; i++)
		s->h[i] ^= v[i] ^ v[i + 8];
	explicit_bzero(m, sizeof(m));
	explicit_bzero(v, sizeof(v));
}

void swc_blake2s_init(struct swc_blake2s *s, size_t out_bytes, const void *key, size_t key_bytes)
{
	memset(s, 0, sizeof(*s));
	memcpy(s->h, iv, sizeof(iv));
	s->h[0] ^= 0x01010000 ^ (uint32_t)key_bytes << 8 ^ (uint32_t)out_bytes;
	s->out_bytes = out_bytes;
	/* The key is the first block, padded. */
	if (key_bytes) {
		memcpy(s->block, key, key_bytes);
		s->have = sizeof(s->block);
	}
}

void swc_blake2s_update(struct swc_blake2s *s, const void *data, size_t bytes)
{
	const uint8_t *at = data;

	while (bytes) {
		size_t room = sizeof(s->block) - s->have, n = bytes < room ? bytes : room;

		/* A full block waits until more comes: the last one is compressed as such. */
		if (!n) {
			s->bytes += sizeof(s->block);
			compress(s, 0);
			s->have = 0;
			continue;
		}
		memcpy(s->block + s->have, at, n);
		s->have += n;
		at += n;
		bytes -= n;
	}
}

void swc_blake2s_final(struct swc_blake2s *s, uint8_t *out)
{
	memset(s->block + s->have, 0, sizeof(s->block) - s->have);
	s->bytes += s->have;
	compress(s, 0xffffffff);
	for (size_t i = 0; i < s->out_bytes; i++)
		out[i] = (uint8_t)(s->h[i / 4] >> 8 * (i % 4));
	explicit_bzero(s, sizeof(*s));
}
