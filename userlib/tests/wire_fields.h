/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tests of the wire format share: values for single fields, random damage, and memory of exactly the
 * size of what is parsed, so that the sanitizers see a read beyond its end.
 */
#ifndef SWC_TESTS_WIRE_FIELDS_H
#define SWC_TESTS_WIRE_FIELDS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "kmod/core/wire.h"

/* For the longest message of a test, and what is appended to it. */
#define ROOM 8192

/* A value for one field, little-endian as on the wire, and the expected result. */
struct trial {
	const char *what;
	size_t at;
	size_t size;
	uint64_t value;
	int want;
};

#define FIELD(type, field) offsetof(struct type, field), sizeof(((struct type *)0)->field)

static inline void put(uint8_t *to, const struct trial *t)
{
	for (size_t i = 0; i < t->size; i++)
		to[t->at + i] = (uint8_t)(t->value >> 8 * i);
}

/* In memory that ends where the data ends. */
static inline void *exactly(const void *data, size_t bytes)
{
	void *copy = malloc(bytes ? bytes : 1);

	if (!copy)
		abort();
	memcpy(copy, data, bytes);
	return copy;
}

/* Change one byte, bit or number at random. */
static inline void damage(uint8_t *data, size_t bytes)
{
	static const uint64_t odd[] = {
		0,	    1,		SWC_WIRE_DIRECT,      0x7fffffff,
		0x80000000, 0xffffffff, SWC_MAX_VECTOR_BYTES, SWC_MAX_VECTOR_BYTES + 1,
		1ull << 63, -1ull
	};
	size_t i = rnd((uint32_t)bytes), size = 1u << rnd(4);
	struct trial t = { .size = size, .at = i & ~(size - 1) };

	switch (rnd(5)) {
	case 0:
		data[i] = (uint8_t)rnd(256);
		break;
	case 1:
		data[i] ^= (uint8_t)(1 << rnd(8));
		break;
	case 2:
		data[i] = (uint8_t)(data[i] + (rnd(2) ? 1 : -1));
		break;
	case 3: /* lengths that almost fit */
		t.value = rnd(300);
		put(data, &t);
		break;
	default:
		t.value = odd[rnd(sizeof(odd) / sizeof(odd[0]))];
		put(data, &t);
		break;
	}
}

#endif /* SWC_TESTS_WIRE_FIELDS_H */
