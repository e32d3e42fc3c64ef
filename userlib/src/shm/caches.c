// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The last-level cache of a CPU, from sysfs. A cache is known by the lowest of its CPUs, and so is a NUMA
 * node; a cache does not reach beyond a node. If there is only a cache for each CPU (and its sibling
 * threads), it groups no ranks, so then the node counts.
 *
 * Reads a few small files for each rank. Runs in the caller's thread.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/shm/caches.h"

#define UNKNOWN UINT32_MAX
#define MAX_CACHES 16 /* of a CPU */

/* The number with which a file begins; UNKNOWN if there is none. */
static uint32_t first_number(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned int n;
	bool good;

	if (!f)
		return UNKNOWN;
	good = fscanf(f, "%u", &n) == 1;
	fclose(f);
	return good ? n : UNKNOWN;
}

/* The lowest CPU that shares the last-level cache; it has the highest level. */
static uint32_t cache_of(const char *sys, uint32_t cpu)
{
	uint32_t highest = 0, found = UNKNOWN;

	for (uint32_t i = 0; i < MAX_CACHES; i++) {
		char path[256];
		uint32_t level;

		snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%u/cache/index%u/level", sys,
			 cpu, i);
		level = first_number(path);
		if (level == UNKNOWN)
			break;
		if (level <= highest)
			continue;
		highest = level;
		snprintf(path, sizeof(path),
			 "%s/devices/system/cpu/cpu%u/cache/index%u/shared_cpu_list", sys, cpu, i);
		found = first_number(path);
	}
	return found;
}

/* The lowest CPU of the NUMA node: the folder of a CPU has a link node<N>. */
static uint32_t node_of(const char *sys, uint32_t cpu)
{
	uint32_t found = UNKNOWN;
	struct dirent *entry;
	char path[256];
	DIR *dir;

	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%u", sys, cpu);
	dir = opendir(path);
	while (dir && found == UNKNOWN && (entry = readdir(dir))) {
		unsigned int node;

		if (sscanf(entry->d_name, "node%u", &node) != 1)
			continue;
		snprintf(path, sizeof(path), "%s/devices/system/node/node%u/cpulist", sys, node);
		found = first_number(path);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Where a member is bound to; UNKNOWN if it may run elsewhere, too. */
static uint32_t place_of(const char *sys, const struct swc_member_cpus *cpus,
			 uint32_t (*of)(const char *sys, uint32_t cpu))
{
	uint32_t place = of(sys, cpus->first);

	return cpus->first == cpus->last || of(sys, cpus->last) == place ? place : UNKNOWN;
}

/* Groups by one kind of place; 1 if there are none of two ranks or more. */
static uint32_t groups_by(const char *sys, const struct swc_member_cpus *cpus, uint32_t nranks,
			  uint32_t (*of)(const char *sys, uint32_t cpu))
{
	uint32_t *place = calloc(nranks, sizeof(*place)), size = 1;
	bool good = place;

	for (uint32_t r = 0; good && r < nranks; r++) {
		place[r] = place_of(sys, &cpus[r], of);
		good = place[r] != UNKNOWN;
	}
	while (good && size < nranks && place[size] == place[0])
		size++;
	good = good && size > 1 && size < nranks && nranks % size == 0;
	for (uint32_t r = 0; good && r < nranks; r++) {
		good = place[r] == place[r - r % size];
		/* A place of its own. */
		for (uint32_t first = 0; good && r % size == 0 && first < r; first += size)
			good = place[first] != place[r];
	}
	free(place);
	return good ? nranks / size : 1;
}

uint32_t swc_caches_groups(const char *sys, const struct swc_member_cpus *cpus, uint32_t nranks)
{
	uint32_t n = nranks < 4 ? 1 : groups_by(sys, cpus, nranks, cache_of);

	return n > 1 || nranks < 4 ? n : groups_by(sys, cpus, nranks, node_of);
}
