// SPDX-License-Identifier: GPL-2.0-only
#include "trainer.h"

#include <stdio.h>
#include <stdlib.h>

int trainer_number(const char *prog, const char *option, const char *value, int min, int max)
{
	char *end;
	long v = strtol(value, &end, 10);

	if (end == value || *end || v < min || v > max) {
		fprintf(stderr, "%s: %s %s: expected a number from %d to %d\n", prog, option, value,
			min, max);
		exit(2);
	}
	return (int)v;
}

uint64_t trainer_hash(const float *w, size_t n)
{
	const unsigned char *p = (const unsigned char *)w;
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < n * sizeof(*w); i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}
