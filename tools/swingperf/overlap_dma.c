// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sets whether the module moves data by CPUs or by DMA engines, and finds out whether there is an engine.
 */
#include "overlap.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "common/device.h"
#include "common/perfloop.h"

#define MODE DEVICE_MODULE_DIR "/parameters/dma"
#define RATE "/sys/module/swc_dma_provider/parameters/rate_mbps"
#define PROBE_BYTES (1u << 20)
#define PROBES 100
#define WHAT "looking for a DMA engine"

static char old_mode[32], old_rate[32];

bool ov_dma_can_set(void)
{
	return !access(MODE, W_OK);
}

struct ov_engines ov_dma_engines(void)
{
	uint64_t v[SWC_STAT_NR] = { 0 };
	int fd = device_open();

	if (fd >= 0) {
		device_stats(fd, v, SWC_STAT_NR);
		close(fd);
	}
	return (struct ov_engines){ v[SWC_STAT_DMA_BYTES], v[SWC_STAT_BYTES_COPIED],
				    v[SWC_STAT_DMA_FALLBACKS] };
}

/*
 * The module looks for an engine when one is first wanted, while CPUs copy, so some transfers may be needed.
 * 0, 1 if there is no engine, or an error after a message.
 */
static int find_engine(struct ov_rank *r, char *mem)
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
			usleep(50000); /* while the module looks */
	}
	return ret ? team_error(r->team, r->comm, WHAT, ret) : 1;
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
		device_write(MODE, dma == OV_DMA_ALWAYS ? "always" : "never");
		if (r->opt->rate_mbps >= 0 && !access(RATE, W_OK)) {
			snprintf(text, sizeof(text), "%d", r->opt->rate_mbps);
			device_write(RATE, text);
		}
	}
	ret = team_barrier(r->team);
	if (ret || dma == OV_DMA_NEVER)
		return ret;
	mem = perf_alloc(((size_t)r->team->nranks + 1) * PROBE_BYTES, (unsigned int)r->team->rank);
	return mem ? find_engine(r, mem) : team_error(r->team, r->comm, WHAT, -ENOMEM);
}

/* After an interrupted run the module is as it was before. */
static void on_signal(int sig)
{
	ov_dma_restore();
	raise(sig); /* with its default action, see SA_RESETHAND */
}

void ov_dma_save(void)
{
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	if (!device_read_line(MODE, old_mode, sizeof(old_mode)))
		*old_mode = 0;
	if (!device_read_line(RATE, old_rate, sizeof(old_rate)))
		*old_rate = 0;
	sigaction(SIGHUP, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
}

void ov_dma_restore(void)
{
	if (*old_mode)
		device_write(MODE, old_mode);
	if (*old_rate)
		device_write(RATE, old_rate);
}
