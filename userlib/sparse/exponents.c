// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Of 64 values each: the largest exponent, a byte of sign and mantissa of each, and four bits of how far its
 * exponent is below the largest. 15 stands for the exponent 0, of zeros and subnormal numbers. Exponents
 * further below are escapes: their places and exponents follow behind all blocks, where there is room for a
 * few. Gaussian values have one in 8000. Loops are over whole blocks, for the compiler to vectorise.
 */
#include <errno.h>
#include <string.h>

#include "sparse/exponents.h"

#define BLOCK 64
#define HALF (BLOCK / 2)
/* Of a block: largest exponent, signs and mantissas, differences. */
#define LOW 1
#define DIFF (LOW + BLOCK)
#define BLOCK_BYTES (DIFF + HALF)
#define ZERO 15
/* Room for one escape of so many values: a place of four bytes and an exponent. */
#define ESCAPES_OF 256
#define NONE UINT32_MAX

struct header {
	uint32_t escapes; /* or NONE */
	uint32_t reserved;
};

static uint64_t blocks_of(uint64_t count)
{
	return count / BLOCK + (count % BLOCK != 0);
}

static uint64_t room_of(uint64_t count)
{
	return count / ESCAPES_OF + 1;
}

uint64_t swc_exponents_bytes(uint64_t count)
{
	uint64_t bytes = sizeof(struct header) + blocks_of(count) * BLOCK_BYTES +
			 room_of(count) * 5;

	return (bytes + 7) / 8 * 8;
}

/* Where places and exponents of escapes are. */
static uint8_t *places_of(void *code, uint64_t count)
{
	return (uint8_t *)code + sizeof(struct header) + blocks_of(count) * BLOCK_BYTES;
}

static uint8_t *exponents_of(void *code, uint64_t count)
{
	return places_of(code, count) + room_of(count) * 4;
}

/* Returns whether some values are out of range; @exponent has all exponents. */
static bool encode_block(const uint16_t *v, uint8_t *to, uint8_t exponent[BLOCK])
{
	uint8_t diff[BLOCK], most = 0, out = 0;

	for (int i = 0; i < BLOCK; i++) {
		exponent[i] = (uint8_t)(v[i] >> 7);
		to[LOW + i] = (uint8_t)((v[i] >> 8 & 0x80) | (v[i] & 0x7f));
	}
	for (int i = 0; i < BLOCK; i++)
		most = exponent[i] > most ? exponent[i] : most;
	for (int i = 0; i < BLOCK; i++) {
		uint8_t below = (uint8_t)(most - exponent[i]);
		uint8_t near = below < ZERO ? below : ZERO;

		diff[i] = exponent[i] ? near : ZERO;
		out |= (uint8_t)(exponent[i] && below >= ZERO);
	}
	for (int i = 0; i < HALF; i++)
		to[DIFF + i] = (uint8_t)(diff[i] | diff[i + HALF] << 4);
	to[0] = most;
	return out;
}

static void decode_block(const uint8_t *from, uint16_t *v)
{
	uint8_t diff[BLOCK], most = from[0];

	for (int i = 0; i < HALF; i++) {
		diff[i] = from[DIFF + i] & 15;
		diff[i + HALF] = from[DIFF + i] >> 4;
	}
	for (int i = 0; i < BLOCK; i++) {
		uint8_t exponent = diff[i] == ZERO ? 0 : (uint8_t)(most - diff[i]);

		v[i] = (uint16_t)((from[LOW + i] & 0x80) << 8 | exponent << 7 |
				  (from[LOW + i] & 0x7f));
	}
}

/* The escapes of a block. Returns false if there is no room for them. */
static bool add_escapes(void *code, uint64_t count, uint64_t first, const uint8_t exponent[BLOCK])
{
	struct header *h = code;
	uint8_t most = 0;

	for (int i = 0; i < BLOCK; i++)
		most = exponent[i] > most ? exponent[i] : most;
	for (int i = 0; i < BLOCK; i++) {
		uint32_t place = (uint32_t)(first + (uint64_t)i);

		if (!exponent[i] || most - exponent[i] < ZERO)
			continue;
		if (h->escapes == room_of(count))
			return false;
		memcpy(places_of(code, count) + h->escapes * 4, &place, 4);
		exponents_of(code, count)[h->escapes++] = exponent[i];
	}
	return true;
}

void swc_exponents_none(void *code)
{
	*(struct header *)code = (struct header){ .escapes = NONE };
}

bool swc_exponents_held(const void *code)
{
	return ((const struct header *)code)->escapes != NONE;
}

bool swc_exponents_encode(const uint16_t *v, uint64_t count, void *code)
{
	uint8_t *to = (uint8_t *)code + sizeof(struct header), exponent[BLOCK];

	*(struct header *)code = (struct header){ 0 };
	for (uint64_t i = 0; i < count; i += BLOCK, to += BLOCK_BYTES) {
		uint16_t last[BLOCK] = { 0 };
		const uint16_t *from = v + i;

		if (count - i < BLOCK)
			from = memcpy(last, v + i, (count - i) * sizeof(*v));
		if (encode_block(from, to, exponent) && !add_escapes(code, count, i, exponent)) {
			swc_exponents_none(code);
			return false;
		}
	}
	return true;
}

int swc_exponents_decode(const void *code, uint64_t count, uint16_t *v)
{
	const uint8_t *from = (const uint8_t *)code + sizeof(struct header);
	const uint8_t *places = from + blocks_of(count) * BLOCK_BYTES;
	const uint8_t *exponents = places + room_of(count) * 4;
	const struct header *h = code;

	if (h->escapes > room_of(count))
		return -EPROTO;
	for (uint64_t i = 0; i < count; i += BLOCK, from += BLOCK_BYTES) {
		uint16_t last[BLOCK];

		if (count - i >= BLOCK) {
			decode_block(from, v + i);
			continue;
		}
		decode_block(from, last);
		memcpy(v + i, last, (count - i) * sizeof(*v));
	}
	for (uint32_t k = 0; k < h->escapes; k++) {
		uint32_t place;

		memcpy(&place, places + k * 4, 4);
		if (place >= count)
			return -EPROTO;
		v[place] = (uint16_t)((v[place] & 0x807f) | exponents[k] << 7);
	}
	return 0;
}
