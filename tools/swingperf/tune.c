// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingperf --tune: measures the links, and every algorithm at every size, each by a communicator of its own,
 * and writes rates and times to a tuning file for the library's automatic choice.
 */
#include "swingperf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Numbers that follow the name of an algorithm are tried up to this one; the library refuses impossible ones. Owners
 * (direct2) are tried by powers of two.
 */
#define TUNE_MAX_STEPS 20

static void write_line(FILE *f, const struct perf_options *opt, const struct swingcoll_comm *comm,
		       const char *algo, const struct perf_row *row)
{
	char *topo = perf_topo_text(comm);

	fprintf(f, "%s %s %s %zu %s %.3f\n", swingcoll_coll_name(opt->coll),
		swingcoll_dtype_name(opt->dtype), topo, row->bytes, algo, row->t.time_us);
	fflush(f);
	free(topo);
}

/* All sizes with one algorithm. 0; -EOPNOTSUPP if it is not possible here; or an error after a message. */
static int tune_algo(const struct perf_options *all, struct team *team, const char *algo,
		     unsigned int number, FILE *f)
{
	struct perf_options opt = *all;
	struct perf_rank r = { .opt = &opt, .team = team };
	struct perf_row row;
	int ret;

	opt.algo = algo;
	ret = perf_rank_open_number(&r, number);
	for (size_t i = 0; !ret && i < opt.nsizes; i++) {
		ret = perf_rank_row(&r, opt.sizes[i], opt.in_place_only, &row);
		if (!ret && row.wrong)
			ret = -EBADMSG;
		/* The library took another algorithm, which is measured under its own name. */
		if (!ret && strcmp(row.algo, algo))
			ret = -EOPNOTSUPP;
		if (!ret && !team->rank)
			write_line(f, &opt, r.comm, algo, &row);
	}
	perf_rank_close(&r);
	if (!team->rank)
		fprintf(stderr, "swingperf: %-14s %s\n", algo,
			ret == -EOPNOTSUPP ? "not possible here"
			: ret		   ? "failed"
					   : "measured");
	return ret;
}

/* Trees follow the rates of links, so they are those of the topology with what was measured. */
static int tune_forest(const struct perf_options *all, struct team *team, char *measured,
		       unsigned int number, FILE *f)
{
	struct perf_options opt = *all;

	if (measured)
		opt.topo = measured;
	return tune_algo(&opt, team, "forest", number, f);
}

/* Each algorithm, by itself and with each number that it takes. */
static int tune_algos(const struct perf_options *opt, struct team *team, unsigned int *number,
		      FILE *f)
{
	const char *name;
	int ret = 0;

	for (int i = 0; (!ret || ret == -EOPNOTSUPP) && (name = swingcoll_algo_name(i)); i++) {
		char hybrid[64];

		ret = tune_algo(opt, team, name, (*number)++, f);
		for (int j = 0; j <= TUNE_MAX_STEPS; j++) {
			if (j & (j - 1) && !strcmp(name, "direct2"))
				continue;
			snprintf(hybrid, sizeof(hybrid), "%s:%d", name, j);
			if ((ret && ret != -EOPNOTSUPP) ||
			    swingcoll_opts_check(
				    &(struct swingcoll_comm_opts){
					    .algo = hybrid,
					    .topo = opt->anywhere ? NULL : opt->topo },
				    team->nranks, NULL, 0))
				break;
			ret = tune_algo(opt, team, hybrid, (*number)++, f);
			if (ret == -EOPNOTSUPP && j)
				break;
		}
	}
	return ret == -EOPNOTSUPP ? 0 : ret;
}

int perf_tune(const struct perf_options *opt, struct team *team)
{
	FILE *f = team->rank ? NULL : fopen(opt->tune, "w");
	unsigned int number = 1;
	char *measured;
	int ret;

	if (!team->rank && !f) {
		fprintf(stderr, "swingperf: %s: %s\n", opt->tune, strerror(errno));
		team_fail(team);
		return 2;
	}
	ret = perf_tune_links(opt, team, &number, f, &measured);
	if (!ret && opt->links_only && !measured)
		ret = -EINVAL;
	if (!ret && !opt->links_only)
		ret = tune_algos(opt, team, &number, f);
	if (!ret && !opt->links_only)
		ret = tune_forest(opt, team, measured, number, f);
	free(measured);
	if (f && ferror(f) | fclose(f)) {
		fprintf(stderr, "swingperf: cannot write %s\n", opt->tune);
		ret = -EIO;
	}
	return ret && ret != -EOPNOTSUPP ? 2 : 0;
}
