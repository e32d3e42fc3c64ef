// SPDX-License-Identifier: GPL-2.0-only
/*
 * What all files of the module share, as swingcoll.h declares it: limits, work queues, counters, tracepoints.
 * This file calls no other one, so that every file may use it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>
#include <linux/module.h>

#include "swingcoll.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* ------------------------------------------------------------------ limits */

unsigned int swc_max_regions = 4096;
module_param_named(max_regions, swc_max_regions, uint, 0444);
MODULE_PARM_DESC(max_regions, "memory registrations that an open file may hold by handle (default 4096)");

unsigned int swc_max_plans = 1024;
module_param_named(max_plans, swc_max_plans, uint, 0444);
MODULE_PARM_DESC(max_plans, "plans that a rank may have loaded on a communicator, 1 to 65535 (default 1024)");

unsigned int swc_max_comms = 256;
module_param_named(max_comms, swc_max_comms, uint, 0444);
MODULE_PARM_DESC(max_comms, "communicators that an open file may be a member of, 1 to 65536 (default 256)");

unsigned int swc_ring_entries = 1024;
module_param_named(ring_entries, swc_ring_entries, uint, 0444);
MODULE_PARM_DESC(ring_entries, "entries of each completion ring, a power of two from 8 to 65536 (default 1024)");

/* Changes apply to what is charged from then on. */
unsigned int swc_user_limit[SWC_QUOTA_NR] = {
	[SWC_QUOTA_CONTEXTS] = 4096,
	[SWC_QUOTA_COMMS] = 4096,
	[SWC_QUOTA_CONNS] = 16384,
};
module_param_named(user_contexts, swc_user_limit[SWC_QUOTA_CONTEXTS], uint, 0644);
MODULE_PARM_DESC(user_contexts, "open files of a user (default 4096)");
module_param_named(user_comms, swc_user_limit[SWC_QUOTA_COMMS], uint, 0644);
MODULE_PARM_DESC(user_comms, "communicators that the processes of a user have made (default 4096)");
module_param_named(user_conns, swc_user_limit[SWC_QUOTA_CONNS], uint, 0644);
MODULE_PARM_DESC(user_conns, "connections of a user's communicators to other nodes (default 16384)");
module_param_named(user_memory_mib, swc_user_limit[SWC_QUOTA_MEMORY], uint, 0644);
MODULE_PARM_DESC(user_memory_mib, "kernel memory of a user in MiB, 0: half of the machine's (default 0)");

unsigned int swc_trace_records = 4096;
module_param_named(trace_records, swc_trace_records, uint, 0444);
MODULE_PARM_DESC(trace_records, "events that are kept of each communicator, a power of two from 64 to 1048576, or 0: none (default 4096)");

unsigned int swc_trace_keep = 64;
module_param_named(trace_keep, swc_trace_keep, uint, 0644);
MODULE_PARM_DESC(trace_keep, "ended communicators whose events are kept (default 64)");

unsigned int swc_trace_keep_user = 16;
module_param_named(trace_keep_user, swc_trace_keep_user, uint, 0644);
MODULE_PARM_DESC(trace_keep_user, "ended communicators of one user whose events are kept (default 16)");

unsigned int swc_trace_keep_s = 600;
module_param_named(trace_keep_s, swc_trace_keep_s, uint, 0644);
MODULE_PARM_DESC(trace_keep_s, "seconds for which events of ended communicators are kept (default 600)");

/* Return: 0; -EINVAL if the value of a module parameter is out of range: the log says what to give. */
int swc_param_check(const char *name, u32 value, u32 least, u32 most)
{
	if (value >= least && value <= most)
		return 0;
	pr_err("%s=%u: give %u to %u\n", name, value, least, most);
	return -EINVAL;
}

/* The same for the limits. */
int swc_limits_check(void)
{
	if (!is_power_of_2(swc_ring_entries) || swc_ring_entries < 8 || swc_ring_entries > 1 << 16) {
		pr_err("ring_entries=%u: give a power of two from 8 to 65536\n", swc_ring_entries);
		return -EINVAL;
	}
	if (swc_trace_records &&
	    (!is_power_of_2(swc_trace_records) || swc_trace_records < 64 || swc_trace_records > 1 << 20)) {
		pr_err("trace_records=%u: give 0 or a power of two from 64 to 1048576\n", swc_trace_records);
		return -EINVAL;
	}
	return swc_param_check("max_comms", swc_max_comms, 1, 1 << 16) ?:
	       swc_param_check("max_plans", swc_max_plans, 1, SWC_PLANS_MOST);
}

/* ------------------------------------------------------------------ work queues and counters */

struct workqueue_struct *swc_wq, *swc_free_wq;

DEFINE_PER_CPU(struct swc_stats_cpu, swc_stats);

/* The sum over all CPUs; not a snapshot, for the CPUs go on counting. */
u64 swc_stat_read(enum swc_stat which)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(swc_stats, cpu).v[which]);
	return sum;
}
