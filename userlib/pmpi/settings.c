// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The environment of the preload library, as numbers. A name selects a function in all its forms:
 * allreduce stands for MPI_Allreduce and MPI_Iallreduce, iallreduce for the latter alone.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "pmpi/settings.h"

const char *const pmpi_names[] = {
#define X(id, text) text,
	PMPI_NAMES(X)
#undef X
};

const char *const pmpi_reasons[] = {
#define X(id, text) text,
	PMPI_REASONS(X)
#undef X
};

static bool equal(const char *name, size_t length, const char *text)
{
	return strlen(text) == length && !strncasecmp(name, text, length);
}

/* The functions that a name selects; 0: there are none. */
static uint64_t select_name(const char *name, size_t length)
{
	uint64_t mask = 0;

	if (length > 4 && !strncasecmp(name, "mpi_", 4)) {
		name += 4;
		length -= 4;
	}
	for (int i = 0; i < PMPI_NR_SELECTABLE; i++) {
		const char *text = pmpi_names[i] + strlen("MPI_");

		if (equal(name, length, text) ||
		    (i >= PMPI_IALLREDUCE && equal(name, length, text + 1)))
			mask |= 1ull << i;
	}
	return mask;
}

static int parse_names(struct pmpi_settings *s, const char *names, char *text, size_t bytes)
{
	s->mask = 0;
	while (*names) {
		size_t length = strcspn(names, ",");
		uint64_t mask = select_name(names, length);

		if (!mask && length) {
			snprintf(text, bytes,
				 "SWINGCOLL_PMPI: '%.*s' is no collective of MPI; nothing is "
				 "offloaded: give off, or names with commas between them, such as "
				 "allreduce,bcast",
				 (int)(length < 40 ? length : 40), names);
			return -1;
		}
		s->mask |= mask;
		names += length + (names[length] == ',');
	}
	return 0;
}

static int parse_min(struct pmpi_settings *s, const char *min, char *text, size_t bytes)
{
	static const char suffixes[] = "KMG";
	char *end;
	long long n = strtoll(min, &end, 10);
	const char *suffix = end > min && *end ? strchr(suffixes, *end) : NULL;

	if (suffix && n >= 0 && n < 1ll << 32) {
		n <<= 10 * (suffix - suffixes + 1);
		end++;
	}
	if (end == min || *end || n < 0) {
		snprintf(text, bytes,
			 "SWINGCOLL_PMPI_MIN: '%.40s' is no size; nothing is offloaded: give a "
			 "number of bytes, such as 0, 4096 or 64K",
			 min);
		return -1;
	}
	s->min = n;
	return 0;
}

int pmpi_settings_parse(struct pmpi_settings *s, const char *names, const char *min, char *text,
			size_t bytes)
{
	int ret = 0;

	*s = (struct pmpi_settings){ .mask = UINT64_MAX, .min = PMPI_MEASURE };
	*text = 0;
	if (names && !strcasecmp(names, "off"))
		s->mask = 0;
	else if (names && *names)
		ret = parse_names(s, names, text, bytes);
	if (!ret && min && *min)
		ret = parse_min(s, min, text, bytes);
	if (ret)
		s->mask = 0;
	return ret;
}
