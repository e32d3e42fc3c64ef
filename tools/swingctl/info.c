// SPDX-License-Identifier: GPL-2.0-only
/* swingctl info, stats and metrics: what the module reports about itself, and its counters. */
#include "swingctl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/device.h"
#include "common/json.h"
#include "common/number.h"

#define MAX_COUNTERS 256

static const char *const stat_names[SWC_STAT_NR] = {
	[SWC_STAT_OPS_SUBMITTED] = "ops_submitted",
	[SWC_STAT_OPS_COMPLETED] = "ops_completed",
	[SWC_STAT_OPS_FAILED] = "ops_failed",
	[SWC_STAT_BYTES] = "bytes",
	[SWC_STAT_STEPS_LOCAL] = "steps_local",
	[SWC_STAT_STEPS_NET] = "steps_net",
	[SWC_STAT_BYTES_REDUCED] = "bytes_reduced",
	[SWC_STAT_BYTES_COPIED] = "bytes_copied",
	[SWC_STAT_WORKER_INLINE] = "worker_inline",
	[SWC_STAT_WORKER_TASK] = "worker_task",
	[SWC_STAT_WORKER_KTHREAD] = "worker_kthread",
	[SWC_STAT_WORKER_EVENT] = "worker_event",
	[SWC_STAT_SPARSE_BYTES] = "sparse_bytes",
	[SWC_STAT_SPARSE_BYTES_REDUCED] = "sparse_bytes_reduced",
	[SWC_STAT_COMMS_CREATED] = "comms_created",
	[SWC_STAT_COMMS_ABORTED] = "comms_aborted",
	[SWC_STAT_TIMEOUTS] = "timeouts",
	[SWC_STAT_MISMATCHES] = "mismatches",
	[SWC_STAT_PLANS_LOADED] = "plans_loaded",
	[SWC_STAT_PLANS_REFUSED] = "plans_refused",
	[SWC_STAT_REGIONS_PINNED] = "regions_pinned",
	[SWC_STAT_REGIONS_UNPINNED] = "regions_unpinned",
	[SWC_STAT_PAGES_PINNED] = "pages_pinned",
	[SWC_STAT_PAGES_UNPINNED] = "pages_unpinned",
	[SWC_STAT_CACHE_HITS] = "cache_hits",
	[SWC_STAT_CACHE_MISSES] = "cache_misses",
	[SWC_STAT_CACHE_DROPS] = "cache_drops",
	[SWC_STAT_SLOT_SLEEPS] = "slot_sleeps",
	[SWC_STAT_SLOT_WAKES] = "slot_wakes",
	[SWC_STAT_CONTEXTS_OPENED] = "contexts_opened",
	[SWC_STAT_CONTEXTS_CLOSED] = "contexts_closed",
	[SWC_STAT_CONNS_OPENED] = "conns_opened",
	[SWC_STAT_CONNS_CLOSED] = "conns_closed",
	[SWC_STAT_CONNS_REFUSED] = "conns_refused",
	[SWC_STAT_CONNS_RESUMED] = "conns_resumed",
	[SWC_STAT_BYTES_RESENT] = "bytes_resent",
	[SWC_STAT_MSGS_SENT] = "msgs_sent",
	[SWC_STAT_MSGS_RECEIVED] = "msgs_received",
	[SWC_STAT_BYTES_SENT] = "bytes_sent",
	[SWC_STAT_BYTES_RECEIVED] = "bytes_received",
	[SWC_STAT_BYTES_DIRECT] = "bytes_direct",
	[SWC_STAT_CREDIT_STALLS] = "credit_stalls",
	[SWC_STAT_RTR_EARLY] = "rtr_early",
	[SWC_STAT_UNEXPECTED_BUFFERED] = "unexpected_buffered",
	[SWC_STAT_UNEXPECTED_REFUSED] = "unexpected_refused",
	[SWC_STAT_DMA_CHANS_ACQUIRED] = "dma_chans_acquired",
	[SWC_STAT_DMA_CHANS_RELEASED] = "dma_chans_released",
	[SWC_STAT_DMA_PREPARED] = "dma_jobs_prepared",
	[SWC_STAT_DMA_JOBS] = "dma_jobs",
	[SWC_STAT_DMA_BYTES] = "dma_bytes",
	[SWC_STAT_DMA_FALLBACKS] = "dma_fallbacks",
};

static const char *const feature_names[] = { "local", "cancel", "slots", "rdma",
					     "tcp",   "tls",	"copy" };

/* ------------------------------------------------------------------ info */

static void info_json(const struct swc_info *info, const char *version)
{
	cJSON *o = cJSON_CreateObject(), *features = cJSON_CreateArray();
	size_t i;

	cJSON_AddStringToObject(o, "module_version", version);
	cJSON_AddNumberToObject(o, "abi_version", info->abi_version);
	cJSON_AddNumberToObject(o, "desc_bytes", info->desc_bytes);
	for (i = 0; i < sizeof(feature_names) / sizeof(feature_names[0]); i++)
		if (info->features >> i & 1)
			cJSON_AddItemToArray(features, cJSON_CreateString(feature_names[i]));
	cJSON_AddItemToObject(o, "features", features);
	cJSON_AddStringToObject(o, "reduce", info->reduce);
	cJSON_AddNumberToObject(o, "max_ranks", info->max_ranks);
	cJSON_AddNumberToObject(o, "max_local_ranks", info->max_local_ranks);
	cJSON_AddNumberToObject(o, "max_inflight", info->max_inflight);
	cJSON_AddNumberToObject(o, "max_plan_bytes", info->max_plan_bytes);
	cJSON_AddNumberToObject(o, "max_regions", info->max_regions);
	cJSON_AddNumberToObject(o, "max_plans", info->max_plans);
	cJSON_AddNumberToObject(o, "ring_entries", info->ring_entries);
	json_document(stdout, o);
}

static void info_text(const struct swc_info *info, const char *version)
{
	char size[NUMBER_TEXT];
	size_t i;

	printf("module version      %s\n", version);
	printf("interface version   %u (this program: %u)\n", info->abi_version, SWC_ABI_VERSION);
	printf("features           ");
	for (i = 0; i < sizeof(feature_names) / sizeof(feature_names[0]); i++)
		if (info->features >> i & 1)
			printf(" %s", feature_names[i]);
	if (info->features >> i)
		printf(" and unknown 0x%llx", (unsigned long long)info->features >> i << i);
	printf("\nreduction kernels   %s\n", info->reduce);
	printf("ranks               %u, on one node %u\n", info->max_ranks, info->max_local_ranks);
	printf("operations          %u in flight per communicator and rank\n", info->max_inflight);
	printf("plans               %u per communicator and rank, of %s\n", info->max_plans,
	       number_bytes(info->max_plan_bytes, size));
	printf("regions             %u per context\n", info->max_regions);
	printf("completion ring     %u entries\n", info->ring_entries);
}

int ctl_info(const struct ctl *ctl)
{
	struct swc_info info = { 0 };
	char version[64];
	int fd = device_open_or_explain("swingctl"), ret;

	if (fd < 0)
		return 2;
	ret = device_ioctl(fd, SWC_IOC_INFO, &info);
	close(fd);
	if (ret) {
		device_ioctl_failed("swingctl", "SWC_IOC_INFO", ret);
		return 2;
	}
	info.reduce[SWC_NAME_BYTES - 1] = 0;
	if (!device_read_line(DEVICE_MODULE_DIR "/version", version, sizeof(version)))
		snprintf(version, sizeof(version), "not given");
	if (ctl->json)
		info_json(&info, version);
	else
		info_text(&info, version);
	return 0;
}

/* ------------------------------------------------------------------ stats */

/* Read the counters. Returns how many there are, or -1 when an error has been reported. */
static int read_counters(uint64_t *values)
{
	int fd = device_open_or_explain("swingctl"), n;

	if (fd < 0)
		return -1;
	n = device_stats(fd, values, MAX_COUNTERS);
	close(fd);
	if (n < 0) {
		device_ioctl_failed("swingctl", "SWC_IOC_STATS", n);
		return -1;
	}
	return n < MAX_COUNTERS ? n : MAX_COUNTERS;
}

/* A newer module has counters that this program does not know. @text has room for their names. */
static const char *counter_name(int i, char *text, size_t bytes)
{
	if (i < SWC_STAT_NR && stat_names[i])
		return stat_names[i];
	snprintf(text, bytes, "counter_%d", i);
	return text;
}

int ctl_stats(const struct ctl *ctl)
{
	uint64_t values[MAX_COUNTERS] = { 0 };
	int n = read_counters(values);
	char text[32];
	cJSON *o;

	if (n < 0)
		return 2;
	o = ctl->json ? cJSON_CreateObject() : NULL;
	for (int i = 0; i < n; i++) {
		const char *name = counter_name(i, text, sizeof(text));

		if (o)
			cJSON_AddNumberToObject(o, name, (double)values[i]);
		else
			printf("%-20s %llu\n", name, (unsigned long long)values[i]);
	}
	if (o)
		json_document(stdout, o);
	return 0;
}

/*
 * The text format of OpenMetrics 1.0, without its type info: node_exporter's textfile collector, which takes an older
 * format, refuses a file with that. It takes counters as untyped, since their types have names without _total.
 */
int ctl_metrics(const struct ctl *ctl)
{
	uint64_t values[MAX_COUNTERS] = { 0 };
	int n = read_counters(values);
	char text[64];

	(void)ctl;
	if (n < 0)
		return 2;
	if (!device_read_line(DEVICE_MODULE_DIR "/version", text, sizeof(text)))
		snprintf(text, sizeof(text), "not given");
	printf("# TYPE swingcoll_module_info gauge\n"
	       "# HELP swingcoll_module_info The module that is loaded.\n"
	       "swingcoll_module_info{version=\"%s\"} 1\n",
	       text);
	for (int i = 0; i < n; i++) {
		const char *name = counter_name(i, text, sizeof(text));

		printf("# TYPE swingcoll_%s counter\n"
		       "# HELP swingcoll_%s Since the module was loaded, see COUNTERS in swingctl(8).\n"
		       "swingcoll_%s_total %llu\n",
		       name, name, name, (unsigned long long)values[i]);
	}
	printf("# EOF\n");
	return 0;
}
