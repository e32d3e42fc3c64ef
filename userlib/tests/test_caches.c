// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups of ranks that share a last-level cache or a NUMA node, from trees of files as sysfs has them. TAP
 * on stdout.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/shm/caches.h"
#include "tap.h"

static char root[] = "/tmp/swingcoll-caches-XXXXXX";

/* Write a file and the folders above it. */
static void put(uint32_t value, const char *fmt, ...)
{
	char path[300];
	va_list args;
	FILE *f;
	size_t n = (size_t)snprintf(path, sizeof(path), "%s/devices/system/", root);

	va_start(args, fmt);
	vsnprintf(path + n, sizeof(path) - n, fmt, args);
	va_end(args);
	for (char *at = path + strlen(root); (at = strchr(at + 1, '/'));) {
		*at = 0;
		if (mkdir(path, 0700) && errno != EEXIST)
			abort();
		*at = '/';
	}
	f = fopen(path, "w");
	if (!f || fprintf(f, "%u,%u-%u\n", value, value + 1, value + 2) < 0 || fclose(f))
		abort();
}

/* CPUs with first and second level caches of their own, a third level for @llc CPUs, and nodes of @node. */
static void make_cpus(uint32_t ncpus, uint32_t llc, uint32_t node)
{
	for (uint32_t cpu = 0; cpu < ncpus; cpu++) {
		for (uint32_t i = 0; i < 3; i++) {
			put(i < 2 ? 1 : 2, "cpu/cpu%u/cache/index%u/level", cpu, i);
			put(cpu, "cpu/cpu%u/cache/index%u/shared_cpu_list", cpu, i);
		}
		if (llc) {
			put(3, "cpu/cpu%u/cache/index3/level", cpu);
			put(cpu - cpu % llc, "cpu/cpu%u/cache/index3/shared_cpu_list", cpu);
		}
		if (node) {
			put(0, "cpu/cpu%u/node%u/there", cpu, cpu / node);
			put(cpu - cpu % node, "node/node%u/cpulist", cpu / node);
		}
	}
}

static void remove_all(void)
{
	char command[60];

	snprintf(command, sizeof(command), "rm -rf %s/devices", root);
	if (system(command))
		abort();
}

/* Groups of ranks, one on each CPU, @stride CPUs apart. */
static uint32_t groups(uint32_t nranks, uint32_t stride, uint32_t ncpus)
{
	struct swc_member_cpus cpus[64];

	for (uint32_t r = 0; r < nranks; r++)
		cpus[r].first = cpus[r].last = (uint16_t)(r * stride % ncpus + r * stride / ncpus);
	return swc_caches_groups(root, cpus, nranks);
}

static void test_bound(void)
{
	make_cpus(16, 8, 0);
	ok(groups(16, 1, 16) == 2 && groups(8, 2, 16) == 2 && groups(4, 4, 16) == 2,
	   "two caches of 8 CPUs");
	ok(groups(8, 1, 16) == 1 && groups(12, 1, 16) == 1 && groups(2, 8, 16) == 1,
	   "one cache, groups that differ, too few ranks: no groups");
	ok(groups(16, 8, 16) == 1, "ranks placed in turn: no groups");
	remove_all();
	make_cpus(16, 4, 8);
	ok(groups(16, 1, 16) == 4 && groups(8, 2, 16) == 4 && groups(4, 4, 16) == 2,
	   "four caches in two nodes: caches, or nodes if each rank has a cache of its own");
	remove_all();
	make_cpus(16, 0, 4);
	ok(groups(16, 1, 16) == 4, "no shared cache: nodes");
	remove_all();
	make_cpus(16, 0, 0);
	ok(groups(16, 1, 16) == 1, "neither: no groups");
	remove_all();
	ok(groups(16, 1, 16) == 1, "nothing is told: no groups");
}

/* Ranks that may run on several CPUs. */
static void test_wide(void)
{
	struct swc_member_cpus halves[4] = { { 0, 3 }, { 4, 7 }, { 8, 11 }, { 12, 15 } };
	struct swc_member_cpus all[4] = { { 0, 15 }, { 0, 15 }, { 0, 15 }, { 0, 15 } };
	struct swc_member_cpus across[4] = { { 0, 3 }, { 4, 8 }, { 8, 11 }, { 12, 15 } };
	struct swc_member_cpus none[4] = { { 0, 0 } };

	make_cpus(16, 8, 0);
	ok(swc_caches_groups(root, halves, 4) == 2, "bound to some CPUs of a cache");
	ok(swc_caches_groups(root, all, 4) == 1, "not bound: no groups");
	ok(swc_caches_groups(root, across, 4) == 1, "bound across caches: no groups");
	ok(swc_caches_groups(root, none, 4) == 1, "a module that does not tell: no groups");
	remove_all();
}

int main(void)
{
	if (!mkdtemp(root))
		abort();
	test_bound();
	test_wide();
	if (rmdir(root))
		abort();
	return done();
}
