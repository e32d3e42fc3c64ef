// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counters: one set per CPU, added up when somebody looks.
 */
#include "swingcoll.h"

DEFINE_PER_CPU(struct swc_stats_cpu, swc_stats);

u64 swc_stat_read(enum swc_stat which)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(swc_stats, cpu).v[which]);
	return sum;
}
