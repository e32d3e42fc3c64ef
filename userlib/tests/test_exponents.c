// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The code of bf16 exponents: every value comes back as it was, in buffers that have no byte more than
 * the code needs; values out of range are escapes until there is no room; damaged codes are refused or
 * give other values, and memory errors show under ASan. TAP on stdout.
 */
#include <errno.h>
#include <string.h>

#include "random.h"
#include "sparse/exponents.h"
#include "tap.h"

/* Encode and decode. Returns whether the code holds the values; *@same: they came back. */
static bool round_trip(const uint16_t *v, uint64_t count, bool *same)
{
	uint64_t bytes = swc_exponents_bytes(count);
	uint16_t *back = malloc(count * 2);
	void *code = malloc(bytes);
	bool held = swc_exponents_encode(v, count, code);

	*same = held == swc_exponents_held(code) &&
		swc_exponents_decode(code, count, back) == (held ? 0 : -EPROTO) &&
		(!held || !memcmp(v, back, count * 2));
	free(code);
	free(back);
	return held;
}

/* Each of the 65536 values alone, and beside a large one: NaN, -0.0 and subnormal numbers, too. */
static void test_values(void)
{
	bool good = true, same;
	uint16_t v[2];

	for (uint32_t x = 0; x < 65536; x++) {
		v[0] = (uint16_t)x;
		v[1] = 0x4f80;
		good &= round_trip(v, 1, &same) && same;
		good &= round_trip(v, 2, &same) && same;
	}
	ok(good, "every value, alone and beside a large one");
}

/* Exponents of some range: held while it is below 15, with zeros at will. */
static void test_ranges(void)
{
	unsigned int held[2] = { 0, 0 };
	bool good = true, same;

	for (int i = 0; i < 2000; i++) {
		uint64_t count = rnd(5) ? rnd(700) : 4000 + rnd(5000);
		uint32_t range = 1 + rnd(30), zeros = rnd(3) * 30;
		uint16_t *v = malloc(count * 2);
		bool is_held;

		for (uint64_t k = 0; k < count; k++) {
			v[k] = (uint16_t)(rnd(2) << 15 | (100 + rnd(range)) << 7 | rnd(128));
			if (rnd(100) < zeros)
				v[k] &= 0x807f;
		}
		is_held = round_trip(v, count, &same);
		good &= same && (is_held || range > 15);
		held[0] += range > 25 && count > 300 && is_held;
		held[1] += is_held;
		free(v);
	}
	ok(good,
	   "values of any range of exponents come back, or the code says that it has no room");
	ok(!held[0] && held[1] > 500,
	   "the code has room exactly where values are of like magnitude");
}

/* The room for escapes is used up to its end. */
static void test_room(void)
{
	enum {
		COUNT = 2048,
		ROOM = COUNT / 256 + 1
	};
	uint16_t v[COUNT];
	bool good = true, same;

	for (unsigned int escapes = 0; escapes < ROOM + 3; escapes++) {
		for (unsigned int i = 0; i < COUNT; i++)
			v[i] = 0x3f80;
		for (unsigned int i = 0; i < escapes; i++)
			v[i * 150 + 7] = (uint16_t)(0x0080 * (i + 1) + i);
		good &= round_trip(v, COUNT, &same) == (escapes <= ROOM) && same;
	}
	ok(good, "escapes have the room that the code says");
	ok(swc_exponents_bytes(1 << 20) < (2 << 20) * 77 / 100, "77 % of the bytes");
}

static void test_damage(void)
{
	unsigned int refused = 0, wrong = 0, rounds = 5000;

	for (unsigned int i = 0; i < rounds; i++) {
		uint64_t count = 1 + rnd(600), bytes = swc_exponents_bytes(count);
		uint16_t *v = malloc(count * 2);
		uint8_t *code = malloc(bytes);
		int ret;

		for (uint64_t k = 0; k < count; k++)
			v[k] = (uint16_t)(rnd(200) ? 0x3f80 : rnd(65536));
		swc_exponents_encode(v, count, code);
		/* Half of them where the escapes are counted. */
		for (unsigned int k = 1 + rnd(4); k; k--)
			code[rnd(2) ? rnd(4) : rnd((uint32_t)bytes)] ^= (uint8_t)(1u << rnd(8));
		ret = swc_exponents_decode(code, count, v);
		refused += ret == -EPROTO;
		wrong += ret && ret != -EPROTO;
		free(v);
		free(code);
	}
	ok(!wrong && refused > rounds / 4, "damaged codes are refused, or decoded within bounds");
}

int main(void)
{
	seed_rnd();
	test_values();
	test_ranges();
	test_room();
	test_damage();
	return done();
}
