// SPDX-License-Identifier: GPL-2.0-only
/* Has the module move data by the CPU or by DMA engines, and finds out whether there is one. */
#include "overlap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/swingcoll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/perfloop.h"

#define MODE "/sys/module/swingcoll/parameters/dma"
#define RATE "/sys/module/swc_dma_provider/parameters/rate_mbps"
#define PROBE_BYTES (1u << 20)
#define PROBES 100

static char old_mode[32], old_rate[32];

static int read_text(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	int ret = -1;

	if (f && fgets(text, (int)size, f)) {
		text[strcspn(text, "\n")] = 0;
		ret = 0;
	}
	if (f)
		fclose(f);
	return ret;
}

/* May be called from a signal handler. */
static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret = -1;

	if (fd < 0)
		return -1;
	if (write(fd, text, strlen(text)) == (ssize_t)strlen(text))
		ret = 0;
	close(fd);
	return ret;
}

bool ov_dma_can_set(void)
{
	return !access(MODE, W_OK);
}

struct ov_engines ov_dma_engines(void)
{
	uint64_t v[SWC_STAT_NR] = { 0 };
	struct swc_stats stats = { .max = SWC_STAT_NR, .values = (uintptr_t)v };
	int fd = open("/dev/swingcoll", O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		if (ioctl(fd, SWC_IOC_STATS, &stats))
			memset(v, 0, sizeof(v));
		close(fd);
	}
	return (struct ov_engines){ v[SWC_STAT_DMA_BYTES], v[SWC_STAT_BYTES_COPIED],
				    v[SWC_STAT_DMA_FALLBACKS] };
}

static int say(struct ov_rank *r, int ret)
{
	if (ret != -ECANCELED) {
		fprintf(stderr, "swingperf overlap: rank %d: looking for a DMA engine: %s\n",
			r->team->rank, swingcoll_strerror(ret));
		team_fail(r->team);
	}
	return ret;
}

/* The first use of an engine only has the module look for one, so some transfers may be needed. */
static int look(struct ov_rank *r, char *mem)
{
	size_t n = (size_t)r->team->nranks;
	uint64_t before = ov_dma_engines().bytes;
	int ret = 0;

	for (int i = 0; !ret && i < PROBES; i++) {
		struct swingcoll_req *req;
		double found = 0;

		ret = swingcoll_iallgather(mem + n * PROBE_BYTES, mem, PROBE_BYTES, SWINGCOLL_U8,
					   r->comm, &req);
		if (!ret)
			ret = swingcoll_wait(req, NULL);
		if (!ret && !r->team->rank)
			found = ov_dma_engines().bytes > before;
		if (!ret)
			ret = team_max(r->team, &found);
		if (!ret && found > 0)
			return 0;
		if (i)
			usleep(50000); /* while it looks */
	}
	return ret ? say(r, ret) : 1;
}

int ov_dma_set(struct ov_rank *r, enum ov_dma dma)
{
	char text[32];
	char *mem;
	int ret;

	r->dma = dma;
	if (dma == OV_DMA_AS_IS)
		return 0;
	if (!r->team->rank) {
		write_text(MODE, dma == OV_DMA_ALWAYS ? "always" : "never");
		if (r->opt->rate_mbps >= 0 && !access(RATE, W_OK)) {
			snprintf(text, sizeof(text), "%d", r->opt->rate_mbps);
			write_text(RATE, text);
		}
	}
	ret = team_barrier(r->team);
	if (ret || dma == OV_DMA_NEVER)
		return ret;
	mem = perf_alloc(((size_t)r->team->nranks + 1) * PROBE_BYTES, (unsigned int)r->team->rank);
	return mem ? look(r, mem) : say(r, -ENOMEM);
}

/* Who interrupts a run finds the module as it was. */
static void on_signal(int sig)
{
	ov_dma_restore();
	raise(sig); /* with its default action, see SA_RESETHAND */
}

void ov_dma_save(void)
{
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	if (read_text(MODE, old_mode, sizeof(old_mode)))
		*old_mode = 0;
	if (read_text(RATE, old_rate, sizeof(old_rate)))
		*old_rate = 0;
	sigaction(SIGHUP, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
}

void ov_dma_restore(void)
{
	if (*old_mode)
		write_text(MODE, old_mode);
	if (*old_rate)
		write_text(RATE, old_rate);
}
