// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/bootstrap/pack.h"

#define WORD sizeof(uint64_t)
/* As many words as there are bits in a byte. */
#define GROUP (8 * WORD)

static size_t words(size_t bytes)
{
	return bytes / WORD + !!(bytes % WORD);
}

static size_t bitmap(size_t bytes)
{
	return (words(bytes) + 7) / 8;
}

size_t swc_pack_bound(size_t bytes)
{
	return bitmap(bytes) + words(bytes) * WORD;
}

/* Has what is at a place a record before it? Not if that begins within the word itself. */
static bool has_before(size_t at, size_t record)
{
	return at >= record && record >= WORD;
}

/* Up to a word of what lies a record before a place. */
static uint64_t word_before(const char *all, size_t at, size_t n, size_t record)
{
	uint64_t word = 0;

	if (has_before(at, record))
		memcpy(&word, all + at - record, n);
	return word;
}

size_t swc_pack(void *to, const void *from, size_t bytes, size_t record)
{
	uint8_t *bit = to, *end = bit + bitmap(bytes);
	const char *all = from;

	memset(bit, 0, bitmap(bytes));
	for (size_t at = 0, n; at < bytes; at += n) {
		uint64_t word = 0;

		/* Most groups of most records. */
		n = GROUP;
		if (at % GROUP == 0 && bytes - at >= GROUP && has_before(at, record) &&
		    !memcmp(all + at, all + at - record, GROUP))
			continue;
		n = bytes - at < WORD ? bytes - at : WORD;
		memcpy(&word, all + at, n);
		word ^= word_before(all, at, n, record);
		if (!word)
			continue;
		bit[at / GROUP] |= (uint8_t)(1u << at / WORD % 8);
		memcpy(end, &word, WORD);
		end += WORD;
	}
	return (size_t)(end - bit);
}

/* What a group has in common with the record before it, if it is of one record and not of the next. */
static bool copy_group(char *all, size_t at, size_t record)
{
	if (record < GROUP)
		return false;
	if (at >= record)
		memcpy(all + at, all + at - record, GROUP);
	else if (at + GROUP <= record)
		memset(all + at, 0, GROUP);
	else
		return false;
	return true;
}

int swc_unpack(void *to, size_t bytes, size_t record, const void *from, size_t packed)
{
	const uint8_t *bit = from, *next = bit + bitmap(bytes), *end = bit + packed;
	char *all = to;

	if (packed < bitmap(bytes))
		return -EPROTO;
	for (size_t at = 0, n; at < bytes; at += n) {
		uint64_t word = 0;

		n = GROUP;
		if (at % GROUP == 0 && !bit[at / GROUP] && bytes - at >= GROUP &&
		    copy_group(all, at, record))
			continue;
		n = bytes - at < WORD ? bytes - at : WORD;
		if (bit[at / GROUP] & 1u << at / WORD % 8) {
			if (end - next < (ptrdiff_t)WORD)
				return -EPROTO;
			memcpy(&word, next, WORD);
			next += WORD;
		}
		word ^= word_before(all, at, n, record);
		memcpy(all + at, &word, n);
	}
	return next == end ? 0 : -EPROTO;
}
