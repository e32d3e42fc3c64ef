// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingperf overlap: the course of a rank. Each way to move data has a handle of its own, because the library
 * measures transfers when it creates one.
 */
#include "overlap.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"

/* All shapes, with data moved in one way. */
static int section(struct ov_rank *r, uint64_t *wrong)
{
	const struct swingcoll_overlap_opts oopts = {
		.table = r->opt->table,
		.product = ov_blas_product,
		.dtype = SWINGCOLL_F32,
		.pieces = r->opt->pieces,
		.trials = r->opt->trials,
	};
	struct ov_row *row = calloc(r->opt->nshapes, sizeof(*row));
	int ret = row ? 0 : -ENOMEM;

	if (!ret)
		ret = swingcoll_overlap_create(&r->overlap, r->comm, &oopts);
	if (ret) {
		free(row);
		return team_error(r->team, r->comm,
				  ret == -EINVAL && r->opt->table ? r->opt->table
								  : "measuring the machine",
				  ret);
	}
	if (!r->team->rank)
		ov_print_figures(r);
	for (unsigned int i = 0; !ret && i < r->opt->nshapes; i++) {
		ret = ov_measure(r, &r->opt->shape[i], &row[i]);
		if (ret)
			team_error(r->team, r->comm, r->opt->shape[i].name, ret);
		else if (!r->team->rank)
			ov_print_row(r, &row[i]);
		*wrong += row[i].wrong;
	}
	if (!ret && !r->team->rank)
		ov_print_summary(r, row, r->opt->nshapes);
	swingcoll_overlap_destroy(r->overlap);
	r->overlap = NULL;
	free(row);
	return ret;
}

static int sections(struct ov_rank *r, uint64_t *wrong)
{
	int ret = 0;

	for (int dma = 0; ret >= 0 && dma < 3; dma++) {
		if (!r->opt->use[dma])
			continue;
		ret = ov_dma_set(r, (enum ov_dma)dma);
		r->before = ov_dma_engines();
		if (!ret)
			ret = section(r, wrong);
		else if (ret > 0 && !r->team->rank)
			fprintf(stderr,
				"swingperf overlap: no DMA engine found, so DMA is not measured\n"
				"  next: load the driver of an engine, or for a test insmod "
				"swc_dma_provider.ko rate_mbps=400\n");
		if (ret > 0 && r->opt->must)
			return -ENODEV;
	}
	return ret < 0 ? ret : 0;
}

/* Where the times of products on this machine are kept, per host and BLAS; NULL if there is no place. */
static const char *default_table(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	static char path[PATH_MAX];
	char host[64] = "", dir[PATH_MAX - 128];
	int n;

	if (cache && *cache == '/')
		n = snprintf(dir, sizeof(dir), "%s", cache);
	else if (home && *home == '/')
		n = snprintf(dir, sizeof(dir), "%s/.cache", home);
	else
		return NULL;
	if (n >= (int)sizeof(dir) - 16)
		return NULL;
	/* If this fails the table cannot be written later, which is no error. */
	mkdir(dir, 0700);
	strcat(dir, "/swingcoll");
	mkdir(dir, 0755);
	gethostname(host, sizeof(host) - 1);
	snprintf(path, sizeof(path), "%s/overlap-%s-%016llx", dir, host,
		 (unsigned long long)hash_bytes(ov_blas_name(), strlen(ov_blas_name())));
	/* A default that cannot be read is no error either. */
	return access(path, R_OK) && errno != ENOENT ? NULL : path;
}

static int body(struct team *team, void *arg)
{
	struct ov_rank r = { .opt = arg, .team = team };
	struct swingcoll_comm_opts opts = { .flags = r.opt->urgent ? SWINGCOLL_URGENT : 0 };
	uint64_t wrong = 0;
	double mflops;
	int ret;

	if (r.opt->bind) {
		int cpus[OV_MAX_CPUS];

		team_bind(team, cpus, team_cpus(cpus, OV_MAX_CPUS));
	}
	ret = swingcoll_comm_create(&r.comm, &team->id, team->nranks, team->rank, &opts);
	if (ret) {
		r.comm = NULL;
		team_error(team, NULL, "joining the communicator", ret);
		return 2;
	}
	/* On all ranks at once, as during the measurements. */
	ret = team_barrier(team);
	mflops = ov_blas_mflops();
	if (!ret)
		ret = team_max(team, &mflops);
	r.mflop = mflops * r.opt->target_ms * 1e-3;
	if (!ret && !team->rank)
		ov_print_header(&r);
	if (!ret)
		ret = sections(&r, &wrong);
	if (!ret && !team->rank && r.opt->json && (fflush(r.opt->json) || ferror(r.opt->json))) {
		fprintf(stderr, "swingperf overlap: cannot write JSON\n");
		ret = -EIO;
	}
	swingcoll_comm_destroy(r.comm);
	return ret ? 2 : wrong ? 1 : 0;
}

int perf_overlap(int argc, char **argv)
{
	static struct ov_options opt = { .repeats = 20, .pieces = 8, .rate_mbps = -1 };
	struct team team = { .prog = "swingperf overlap", .nranks = 2 };
	int ret;

	ov_parse(&opt, &team, argc, argv);
	if (ov_blas_open(opt.blas))
		return 2;
	if (!opt.table)
		opt.table = default_table();
	else if (!strcmp(opt.table, "none"))
		opt.table = NULL;
	ret = swingcoll_unique_id(&team.id);
	if (ret) {
		fprintf(stderr, "swingperf overlap: no random id: %s\n", swingcoll_strerror(ret));
		return 2;
	}
	ov_dma_save();
	ret = team_run(&team, body, &opt);
	ov_dma_restore();
	return ret;
}
