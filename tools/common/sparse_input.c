// SPDX-License-Identifier: GPL-2.0-only
/* Sparse inputs as text. */
#include "common/sparse_input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/number.h"

int sparse_parse_overlap(const char *text, struct sparse_input *in)
{
	static const char *const names[] = { "independent", "identical", "disjoint" };
	long long width;

	for (int i = 0; i < 3; i++)
		if (!strcmp(text, names[i])) {
			in->overlap = (enum sparse_overlap)i;
			return 0;
		}
	if (!strncmp(text, "rows:", 5) && !number_parse(text + 5, 1, (1 << 28) - 1, &width)) {
		in->overlap = SPARSE_ROWS;
		in->width = (uint64_t)width;
		return 0;
	}
	if (!strncmp(text, "mixed:", 6) && !number_parse_real(text + 6, 0, 1, &in->share)) {
		in->overlap = SPARSE_MIXED;
		return 0;
	}
	return -EINVAL;
}

int sparse_parse(const char *text, struct sparse_input *in)
{
	const char *comma = strchr(text, ',');
	char density[NUMBER_TEXT];

	if (comma && sparse_parse_overlap(comma + 1, in))
		return -EINVAL;
	snprintf(density, sizeof(density), "%.*s", (int)strcspn(text, ","), text);
	return number_parse_real(density, 0, 1, &in->density);
}
