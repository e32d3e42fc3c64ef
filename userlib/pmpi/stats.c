// SPDX-License-Identifier: LGPL-2.1-or-later
/* What has become of the calls: SWINGCOLL_PMPI_STATS=1 prints it on rank 0 before MPI ends. */
#include <inttypes.h>
#include <stdio.h>

#include "pmpi/pmpi.h"

struct pmpi_counts pmpi_counts[PMPI_NR_NAMES];
bool pmpi_threads;

static void print(const char *name, const struct pmpi_counts *n)
{
	uint64_t sum = 0;
	char reasons[512] = "";
	size_t at = 0;

	for (int i = 0; i < PMPI_NR_REASONS; i++) {
		if (!n->fallback[i])
			continue;
		at += (size_t)snprintf(reasons + at, sizeof(reasons) - at, "%s%s %" PRIu64,
				       sum ? ", " : " (", pmpi_reasons[i], n->fallback[i]);
		sum += n->fallback[i];
	}
	if (n->offloaded || sum)
		fprintf(stderr,
			"swingcoll-pmpi: %s: %" PRIu64 " offloaded, %" PRIu64 " fallback%s%s\n",
			name, n->offloaded, sum, reasons, sum ? ")" : "");
}

void pmpi_stats_print(void)
{
	pmpi_memos_count();
	for (int i = 0; pmpi_world.stats && i < PMPI_NR_NAMES; i++)
		print(pmpi_names[i], &pmpi_counts[i]);
}
