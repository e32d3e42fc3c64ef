// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "src/bootstrap/pack.h"

#define WORD sizeof(uint64_t)

static size_t words(size_t bytes)
{
	return bytes / WORD + !!(bytes % WORD);
}

static size_t bitmap(size_t bytes)
{
	return (words(bytes) + 7) / 8;
}

/* Bytes of word i, of so many bytes in all. */
static size_t word_bytes(size_t i, size_t bytes)
{
	return bytes - i * WORD < WORD ? bytes - i * WORD : WORD;
}

size_t swc_pack_bound(size_t bytes)
{
	return bitmap(bytes) + words(bytes) * WORD;
}

size_t swc_pack(void *to, const void *from, size_t bytes)
{
	uint8_t *bit = to, *at = bit + bitmap(bytes);

	memset(bit, 0, bitmap(bytes));
	for (size_t i = 0; i < words(bytes); i++) {
		uint64_t word = 0;

		memcpy(&word, (const char *)from + i * WORD, word_bytes(i, bytes));
		if (!word)
			continue;
		bit[i / 8] |= (uint8_t)(1u << i % 8);
		memcpy(at, &word, WORD);
		at += WORD;
	}
	return (size_t)(at - bit);
}

/* Eight words, some of which follow at @at: those in @mask. Reads as if all did. */
static const uint8_t *unpack_eight(char *to, unsigned int mask, const uint8_t *at)
{
	uint64_t word;

	for (int i = 0; i < 8; i++, mask >>= 1) {
		memcpy(&word, at, WORD);
		word &= -(uint64_t)(mask & 1);
		memcpy(to + i * (int)WORD, &word, WORD);
		at += WORD * (mask & 1);
	}
	return at;
}

int swc_unpack(void *to, size_t bytes, const void *from, size_t packed)
{
	const uint8_t *bit = from, *at = bit + bitmap(bytes), *end = bit + packed;
	size_t i = 0;

	if (packed < bitmap(bytes))
		return -EPROTO;
	for (; i / 8 < bytes / (8 * WORD) && end - at >= 8 * (ptrdiff_t)WORD; i += 8)
		at = unpack_eight((char *)to + i * WORD, bit[i / 8], at);
	for (; i < words(bytes); i++) {
		uint64_t word = 0;

		if (bit[i / 8] & 1u << i % 8) {
			if (end - at < (ptrdiff_t)WORD)
				return -EPROTO;
			memcpy(&word, at, WORD);
			at += WORD;
		}
		memcpy((char *)to + i * WORD, &word, word_bytes(i, bytes));
	}
	return at == end ? 0 : -EPROTO;
}
