// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingctl: look at the module and at what runs on it. This file has the command line, the helpers that
 * the subcommands share, and the two short ones: info and stats.
 */
#include "swingctl.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char usage_text[] =
	"Usage: swingctl [options] COMMAND\n"
	"\n"
	"  doctor   check whether this user can use swingcoll here, and say what to do if not\n"
	"  status   communicators, their members, operations in flight, and who is late\n"
	"  stats    counters since the module was loaded\n"
	"  info     interface version, limits, features, reduction kernels\n"
	"\n"
	"  -j, --json           for machines\n"
	"      --need BYTES     doctor: memory a program is going to pin (default 64M)\n"
	"  -h, --help           this text\n"
	"\n"
	"Exit status: 0, 1 if doctor found something that must be repaired, 2 on errors.\n";

static const char *const stat_names[SWC_STAT_NR] = {
	[SWC_STAT_OPS_SUBMITTED] = "ops_submitted",
	[SWC_STAT_OPS_COMPLETED] = "ops_completed",
	[SWC_STAT_OPS_FAILED] = "ops_failed",
	[SWC_STAT_BYTES] = "bytes",
	[SWC_STAT_STEPS_LOCAL] = "steps_local",
	[SWC_STAT_STEPS_NET] = "steps_net",
	[SWC_STAT_BYTES_REDUCED] = "bytes_reduced",
	[SWC_STAT_BYTES_COPIED] = "bytes_copied",
	[SWC_STAT_RUN_INLINE] = "run_inline",
	[SWC_STAT_RUN_TASK] = "run_task",
	[SWC_STAT_RUN_WORKER] = "run_worker",
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
	[SWC_STAT_MSGS_SENT] = "msgs_sent",
	[SWC_STAT_MSGS_RECEIVED] = "msgs_received",
	[SWC_STAT_BYTES_SENT] = "bytes_sent",
	[SWC_STAT_BYTES_RECEIVED] = "bytes_received",
	[SWC_STAT_BYTES_DIRECT] = "bytes_direct",
	[SWC_STAT_CREDIT_STALLS] = "credit_stalls",
	[SWC_STAT_EARLY_OFFERS] = "early_offers",
	[SWC_STAT_SEGS_SPILLED] = "segments_spilled",
	[SWC_STAT_SPILLS_REFUSED] = "spills_refused",
	[SWC_STAT_DMA_CHANS_TAKEN] = "dma_channels_taken",
	[SWC_STAT_DMA_CHANS_GIVEN] = "dma_channels_given_back",
	[SWC_STAT_DMA_PREPARED] = "dma_moves_prepared",
	[SWC_STAT_DMA_JOBS] = "dma_moves",
	[SWC_STAT_DMA_BYTES] = "dma_bytes",
	[SWC_STAT_DMA_FALLBACKS] = "dma_fallbacks",
};

static const char *const feature_names[] = { "local", "cancel", "slots", "rdma" };

/* ------------------------------------------------------------------ helpers */

int ctl_open(void)
{
	int fd = open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int ctl_open_or_say(void)
{
	int fd = ctl_open();

	if (fd < 0)
		fprintf(stderr, "swingctl: %s: %s; next: swingctl doctor\n", SWC_DEVICE_PATH,
			strerror(-fd));
	return fd;
}

int ctl_ioctl(int fd, unsigned long cmd, void *arg)
{
	int ret;

	do {
		ret = ioctl(fd, cmd, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

bool ctl_read_line(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = fgets(text, (int)size, f);
	fclose(f);
	if (ok)
		text[strcspn(text, "\n")] = 0;
	return ok;
}

void ctl_print_json(cJSON *o)
{
	char *text = cJSON_Print(o);

	if (text)
		puts(text);
	free(text);
	cJSON_Delete(o);
}

const char *ctl_bytes(uint64_t bytes, char *text, size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double v = (double)bytes;
	unsigned int u = 0;

	while (v >= 1024 && u < 5) {
		v /= 1024;
		u++;
	}
	snprintf(text, size, "%.*f %s", u && v < 100 && v != (double)(uint64_t)v ? 1 : 0, v,
		 units[u]);
	return text;
}

const char *ctl_age(uint64_t ns, char *text, size_t size)
{
	double s = (double)ns * 1e-9;

	if (s < 1e-3)
		snprintf(text, size, "%.0f us", s * 1e6);
	else if (s < 1)
		snprintf(text, size, "%.0f ms", s * 1e3);
	else if (s < 120)
		snprintf(text, size, "%.1f s", s);
	else
		snprintf(text, size, "%.0f min", s / 60);
	return text;
}

static int ioctl_failed(const char *name, int err)
{
	fprintf(stderr, "swingctl: %s: %s%s\n", name, strerror(-err),
		err == -ENOTTY ? "; the loaded module is older than this program: reload it" : "");
	return 2;
}

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
	ctl_print_json(o);
}

static void info_text(const struct swc_info *info, const char *version)
{
	char size[32];
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
	       ctl_bytes(info->max_plan_bytes, size, sizeof(size)));
	printf("regions             %u per context\n", info->max_regions);
	printf("completion ring     %u entries\n", info->ring_entries);
}

int ctl_info(const struct ctl *ctl)
{
	struct swc_info info = { 0 };
	char version[64];
	int fd = ctl_open_or_say(), ret;

	if (fd < 0)
		return 2;
	ret = ctl_ioctl(fd, SWC_IOC_INFO, &info);
	close(fd);
	if (ret)
		return ioctl_failed("SWC_IOC_INFO", ret);
	info.reduce[SWC_NAME_BYTES - 1] = 0;
	if (!ctl_read_line(SWC_MODULE_DIR "/version", version, sizeof(version)))
		snprintf(version, sizeof(version), "not given");
	if (ctl->json)
		info_json(&info, version);
	else
		info_text(&info, version);
	return 0;
}

/* ------------------------------------------------------------------ stats */

int ctl_stats(const struct ctl *ctl)
{
	uint64_t values[256] = { 0 };
	struct swc_stats stats = { .max = 256, .values = (uintptr_t)values };
	cJSON *o = ctl->json ? cJSON_CreateObject() : NULL;
	int fd = ctl_open_or_say(), ret;
	char number[32];
	unsigned int i;

	if (fd < 0)
		return 2;
	ret = ctl_ioctl(fd, SWC_IOC_STATS, &stats);
	close(fd);
	if (ret)
		return ioctl_failed("SWC_IOC_STATS", ret);
	for (i = 0; i < stats.count && i < stats.max; i++) {
		const char *name = i < SWC_STAT_NR ? stat_names[i] : NULL;

		if (!name) {
			/* A newer module counts more than this program knows. */
			snprintf(number, sizeof(number), "counter_%u", i);
			name = number;
		}
		if (o)
			cJSON_AddNumberToObject(o, name, (double)values[i]);
		else
			printf("%-20s %llu\n", name, (unsigned long long)values[i]);
	}
	if (o)
		ctl_print_json(o);
	return 0;
}

/* ------------------------------------------------------------------ command line */

static bool bytes_arg(const char *s, unsigned long long *out)
{
	char *end;

	errno = 0;
	*out = strtoull(s, &end, 10);
	if (errno || end == s || *s == '-')
		return false;
	switch (*end) {
	case 'G':
		*out <<= 10;
		/* fall through */
	case 'M':
		*out <<= 10;
		/* fall through */
	case 'K':
		*out <<= 10;
		end++;
	}
	return !*end;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const struct ctl *ctl);
	} commands[] = {
		{ "doctor", ctl_doctor },
		{ "status", ctl_status },
		{ "stats", ctl_stats },
		{ "info", ctl_info },
	};
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "need", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct ctl ctl = { .need_memlock = 64 << 20 };
	size_t i;
	int c;

	while ((c = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			ctl.json = true;
			break;
		case 'n':
			if (bytes_arg(optarg, &ctl.need_memlock))
				break;
			fprintf(stderr, "swingctl: --need %s: expected a size such as 64M\n",
				optarg);
			return 2;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		default:
			fputs("swingctl: see --help\n", stderr);
			return 2;
		}
	}
	if (optind + 1 != argc) {
		fputs(usage_text, stderr);
		return 2;
	}
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[optind], commands[i].name))
			return commands[i].run(&ctl);
	fprintf(stderr, "swingctl: no command \"%s\": doctor, status, stats or info\n",
		argv[optind]);
	return 2;
}
