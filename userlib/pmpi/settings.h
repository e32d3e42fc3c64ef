/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The values of the variables SWINGCOLL_PMPI and SWINGCOLL_PMPI_MIN. Pure. */
#ifndef PMPI_SETTINGS_H
#define PMPI_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "pmpi/names.h"

#define PMPI_MEASURE (-1) /* what is too small is found out by measurement */

_Static_assert(PMPI_NR_SELECTABLE <= 64, "a bit for each function");

/* Functions to offload, as bits by enum pmpi_name, and the least size of a call in bytes. */
struct pmpi_settings {
	uint64_t mask;
	int64_t min;
};

/*
 * Parse the two values, of which NULL and "" mean that the variable is not set. 0, or -1 and a line
 * in text that names the fault and what would be accepted; then nothing is to be offloaded.
 */
int pmpi_settings_parse(struct pmpi_settings *s, const char *names, const char *min, char *text,
			size_t bytes);

#endif /* PMPI_SETTINGS_H */
