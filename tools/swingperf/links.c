// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingperf --tune: measures the rate of the links of each dimension, by nodes that send their shards to their
 * neighbours along it. Two sizes are measured, and the rate is that of what one has more than the other, so what
 * does not depend on the size does not count.
 */
#include "swingperf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plan/algo/exchange.h"
#include "plan/format/plan_text.h"
#include "plan/select/tuning.h"

/* All ranks must name the file alike; what is below may be open on some only. */
#define PLANS_FD 200

/* Of a shard of the smaller size: below, headers and fixed costs of messages decide. */
#define LEAST_BYTES 4096

/* All plans of an exchange along a dimension as text. 0 or a negative errno. */
static int print_plans(const struct swc_topo *t, uint32_t dim, struct swc_text *text)
{
	void **plan = calloc(t->nranks, sizeof(*plan));
	size_t *bytes = calloc(t->nranks, sizeof(*bytes));
	char why[SWC_TEXT_BYTES];
	int ret = plan && bytes ? 0 : -ENOMEM;

	for (uint32_t r = 0; !ret && r < t->nranks; r++)
		ret = swc_exchange_build(t, dim, r, &plan[r], &bytes[r]);
	if (!ret)
		ret = swc_plan_text_print(text, (const void *const *)plan, bytes, t->nranks, why,
					  sizeof(why));
	for (uint32_t r = 0; plan && r < t->nranks; r++)
		free(plan[r]);
	free(plan);
	free(bytes);
	return ret;
}

/* A file in memory with the plans; or a negative errno. */
static int open_plans(const struct swc_topo *t, uint32_t dim)
{
	struct swc_text text = { 0 };
	int ret = print_plans(t, dim, &text), fd = -1, named;
	size_t done = 0;

	if (!ret)
		fd = memfd_create("swingperf-links", MFD_CLOEXEC);
	if (!ret && fd < 0)
		ret = -errno;
	while (!ret && done < text.used) {
		ssize_t n = write(fd, text.at + done, text.used - done);

		if (n < 0)
			ret = -errno;
		else
			done += (size_t)n;
	}
	free(text.at);
	named = ret ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, PLANS_FD);
	if (!ret && named < 0)
		ret = -errno;
	if (fd >= 0)
		close(fd);
	if (named > PLANS_FD) {
		close(named);
		ret = -EBUSY;
	}
	return ret ? ret : named;
}

/* The rate of the links of a dimension in Gbit/s, 0 if times do not tell; on an open communicator. */
static int measure(struct perf_rank *r, double share, double *gbps)
{
	size_t bytes[2] = { r->opt->max_bytes / 2, r->opt->max_bytes };
	struct perf_row row[2];
	double bits, ns;
	int ret = 0;

	for (int i = 0; !ret && i < 2; i++)
		ret = perf_rank_row(r, bytes[i], false, &row[i]);
	if (ret)
		return ret;
	bits = 8 * share * (double)(row[1].bytes - row[0].bytes) / r->team->nranks;
	ns = (row[1].t.time_us - row[0].t.time_us) * 1e3;
	*gbps = ns > 0 ? bits / ns : 0;
	return 0;
}

static int measure_dim(const struct perf_options *all, struct team *team, const struct swc_topo *t,
		       uint32_t dim, unsigned int number, double *gbps)
{
	struct perf_options opt = *all;
	struct perf_rank r = { .opt = &opt, .team = team };
	int fd = open_plans(t, dim), ret;
	char algo[64];

	if (fd < 0)
		return team_error(team, NULL, "the plans that measure links", fd);
	snprintf(algo, sizeof(algo), "file:/proc/self/fd/%d", fd);
	opt.coll = SWINGCOLL_ALLGATHER;
	opt.algo = algo;
	opt.check = false; /* it is no allgather */
	opt.nonblocking = false;
	ret = perf_rank_open_number(&r, number);
	if (!ret)
		ret = measure(&r, swc_exchange_share(t, dim), gbps);
	perf_rank_close(&r);
	close(fd);
	return ret;
}

static void report(const struct swc_topo *t, uint32_t dim, double gbps)
{
	char where[32] = "";

	if (t->ndims > 1)
		snprintf(where, sizeof(where), " of dimension %u", dim);
	if (gbps > 0)
		fprintf(stderr, "swingperf: links%s: %.4g Gbit/s\n", where, gbps);
	else
		fprintf(stderr,
			"swingperf: links%s: not measured: times do not grow with the size\n",
			where);
}

static void write_line(FILE *f, struct swc_topo *t, const double *gbps)
{
	char text[PERF_TOPO_TEXT];

	if (swc_tuning_rates(t, gbps) &&
	    swc_topo_format(t, text, sizeof(text)) < (int)sizeof(text)) {
		fprintf(f, "links %s\n", text);
		fflush(f);
	}
}

/* All dimensions that have links. */
static int measure_all(const struct perf_options *opt, struct team *team, struct swc_topo *t,
		       unsigned int *number, FILE *f)
{
	double gbps[SWC_TOPO_DIMS] = { 0 };
	int ret = 0;

	for (uint32_t i = 0; !ret && i < t->ndims; i++) {
		if (t->dim[i] < 2)
			continue;
		ret = measure_dim(opt, team, t, i, (*number)++, &gbps[i]);
		if (!ret && f)
			report(t, i, gbps[i]);
	}
	if (!ret && f)
		write_line(f, t, gbps);
	return ret;
}

/* The topology, if the ranks are on its nodes: without links its text is empty. */
static int find_topo(const struct perf_options *all, struct team *team, unsigned int *number,
		     char *text)
{
	struct perf_options opt = *all;
	struct perf_rank r = { .opt = &opt, .team = team };
	int ret;

	opt.algo = NULL;
	opt.tuning = NULL;
	ret = perf_rank_open_number(&r, (*number)++);
	*text = 0;
	if (!ret && swingcoll_comm_nodes(r.comm) > 1)
		perf_topo_text(r.comm, text);
	perf_rank_close(&r);
	return ret;
}

int perf_tune_links(const struct perf_options *opt, struct team *team, unsigned int *number,
		    FILE *f)
{
	char text[PERF_TOPO_TEXT], why[SWC_TEXT_BYTES];
	struct swc_topo t;
	int ret = find_topo(opt, team, number, text);

	if (ret || !*text)
		return ret;
	if (opt->max_bytes / 2 / (size_t)team->nranks < LEAST_BYTES) {
		if (f)
			fprintf(stderr,
				"swingperf: links: not measured: needs sizes of %zu bytes and more\n",
				2 * LEAST_BYTES * (size_t)team->nranks);
		return 0;
	}
	if (swc_topo_parse(&t, text, why, sizeof(why))) {
		fprintf(stderr, "swingperf: topology %s: %s\n", text, why);
		return -EINVAL;
	}
	ret = measure_all(opt, team, &t, number, f);
	swc_topo_free(&t);
	return ret;
}
