// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingperf --tune, --tune-links: measures the rate of each link, by a node that sends its shard over it,
 * while other nodes do so over links of theirs; plan/algo/exchange.c says which at a time. Two sizes are
 * measured, and the rate is that of what one has more than the other, so what does not depend on the size
 * does not count.
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

/* All plans of a round as text. 0 or a negative errno. */
static int print_plans(const struct swc_topo *t, uint32_t round, struct swc_text *text)
{
	void **plan = calloc(t->nranks, sizeof(*plan));
	size_t *bytes = calloc(t->nranks, sizeof(*bytes));
	char why[SWC_TEXT_BYTES];
	int ret = plan && bytes ? 0 : -ENOMEM;

	for (uint32_t r = 0; !ret && r < t->nranks; r++)
		ret = swc_exchange_build(t, round, r, &plan[r], &bytes[r]);
	if (!ret)
		ret = swc_plan_text_print(text, (const void *const *)plan, bytes, t->nranks, NULL,
					  NULL, why, sizeof(why));
	for (uint32_t r = 0; plan && r < t->nranks; r++)
		free(plan[r]);
	free(plan);
	free(bytes);
	return ret;
}

/* A file in memory with the plans; or a negative errno. */
static int open_plans(const struct swc_topo *t, uint32_t round)
{
	struct swc_text text = { 0 };
	int ret = print_plans(t, round, &text), fd = -1, named;
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

/**
 * struct link_rates - the links of a topology
 * @link: each one way, by its ends. On a switch, those of nodes to it and from it
 */
struct link_rates {
	const struct swc_topo *t;
	struct swc_topo_slow *link;
	uint32_t n;
};

static int list_links(struct link_rates *l, const struct swc_topo *t)
{
	uint32_t nodes = t->nnodes + (t->kind == SWC_TOPO_SWITCH);

	*l = (struct link_rates){ .t = t };
	l->link = calloc(2ull * t->nnodes * t->ndims + 1, sizeof(*l->link));
	for (uint32_t a = 0; l->link && a < nodes; a++)
		for (uint32_t b = 0; b < nodes; b++)
			if (a != b && swc_topo_dim(t, a, b) < t->ndims)
				l->link[l->n++] = (struct swc_topo_slow){ a, b, 0 };
	return l->link ? 0 : -ENOMEM;
}

/* A transfer shows what a link can do at least: between nodes of a switch, each of its two links. */
static void raise_rate(struct link_rates *l, uint32_t from, uint32_t to, double gbps)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->link[i].from == from && l->link[i].to == to && l->link[i].gbps < gbps)
			l->link[i].gbps = gbps;
}

/*
 * The times of the links of a round for both sizes, by the node that sends, which all ranks learn. @time: 0
 * where there is no link. The later of a link's two ends counts.
 */
static int share_times(struct perf_rank *r, const struct swc_topo *t, uint32_t round,
		       const double own[2], double (*time)[2])
{
	uint32_t me = swc_topo_node_of(t, (uint32_t)r->team->rank), from, to;
	bool mine = r->team->rank == (int)swc_topo_first(t, me);
	int ret = 0;

	for (uint32_t v = 0; !ret && v < t->nnodes; v++) {
		bool sends = swc_exchange_link(t, round, v, &from, &to) && v == from;

		for (int i = 0; !ret && sends && i < 2; i++) {
			time[v][i] = mine && (me == from || me == to) ? own[i] : 0;
			ret = team_max(r->team, &time[v][i]);
		}
	}
	return ret;
}

static void add_rates(struct link_rates *l, uint32_t round, double bits, double (*time)[2])
{
	const struct swc_topo *t = l->t;
	uint32_t from, to;

	for (uint32_t v = 0; v < t->nnodes; v++) {
		double ns = (time[v][1] - time[v][0]) * 1e3;

		if (!swc_exchange_link(t, round, v, &from, &to) || v != from || !(ns > 0))
			continue;
		raise_rate(l, from, t->kind == SWC_TOPO_SWITCH ? t->nnodes : to, bits / ns);
		if (t->kind == SWC_TOPO_SWITCH)
			raise_rate(l, t->nnodes, to, bits / ns);
	}
}

/* On an open communicator. */
static int measure(struct perf_rank *r, struct link_rates *l, uint32_t round)
{
	const size_t bytes[2] = { r->opt->max_bytes / 2, r->opt->max_bytes };
	double(*time)[2] = calloc(l->t->nnodes, sizeof(*time)), own[2];
	size_t measured[2];
	int ret = time ? 0 : -ENOMEM;

	for (int i = 0; !ret && i < 2; i++)
		ret = perf_rank_own(r, bytes[i], &own[i], &measured[i]);
	if (!ret)
		ret = share_times(r, l->t, round, own, time);
	if (!ret)
		add_rates(l, round,
			  8 * swc_exchange_share(l->t, round) *
				  (double)(measured[1] - measured[0]) / r->team->nranks,
			  time);
	free(time);
	return ret;
}

static int measure_round(const struct perf_options *all, struct team *team, struct link_rates *l,
			 uint32_t round, unsigned int number)
{
	struct perf_options opt = *all;
	struct perf_rank r = { .opt = &opt, .team = team };
	int fd = open_plans(l->t, round), ret;
	char algo[64];

	if (fd < 0)
		return team_error(team, NULL, "the plans that measure links", fd);
	snprintf(algo, sizeof(algo), "file:/proc/self/fd/%d", fd);
	opt.coll = SWINGCOLL_ALLGATHER;
	opt.algo = algo;
	opt.tuning = NULL;
	opt.check = false; /* it is no allgather */
	opt.nonblocking = false;
	ret = perf_rank_open_number(&r, number);
	if (!ret)
		ret = measure(&r, l, round);
	perf_rank_close(&r);
	close(fd);
	return ret;
}

static void report(const struct swc_topo *t)
{
	for (uint32_t i = 0; i < t->ndims; i++) {
		char where[32] = "";

		if (t->dim[i] < 2)
			continue;
		if (t->ndims > 1)
			snprintf(where, sizeof(where), " of dimension %u", i);
		fprintf(stderr, "swingperf: links%s: %.4g Gbit/s\n", where,
			t->gbps / swc_topo_slowness(t, i));
	}
	for (uint32_t i = 0; i < t->nslow; i++) {
		const struct swc_topo_slow *s = &t->slow[i];

		if (s->to == t->nnodes)
			fprintf(stderr, "swingperf: node %u sends", s->from);
		else if (s->from == t->nnodes)
			fprintf(stderr, "swingperf: node %u receives", s->to);
		else
			fprintf(stderr, "swingperf: link from node %u to node %u", s->from, s->to);
		fprintf(stderr, ": %.4g Gbit/s\n", s->gbps);
	}
}

/* Put the rates into the topology and print it. Rank 0, which has @f, says what all have learnt. */
static int take_rates(FILE *f, struct swc_topo *t, const struct link_rates *l, char **text)
{
	int ret = swc_tuning_slow(t, l->link, l->n), len;

	if (ret == -EINVAL) {
		if (f)
			fprintf(stderr,
				"swingperf: links: not measured: times do not grow with the size\n");
		return 0;
	}
	len = ret ? 0 : swc_topo_format(t, NULL, 0);
	*text = ret || len < 0 ? NULL : malloc((size_t)len + 1);
	if (!*text)
		return -ENOMEM;
	swc_topo_format(t, *text, (size_t)len + 1);
	if (f) {
		fprintf(f, "links %s\n", *text);
		fflush(f);
		report(t);
	}
	return 0;
}

static int measure_all(const struct perf_options *opt, struct team *team, struct swc_topo *t,
		       unsigned int *number, FILE *f, char **measured)
{
	struct link_rates l;
	int ret = list_links(&l, t);

	for (uint32_t i = 0; !ret && i < swc_exchange_rounds(t); i++)
		ret = measure_round(opt, team, &l, i, (*number)++);
	if (!ret)
		ret = take_rates(f, t, &l, measured);
	free(l.link);
	return ret;
}

/* The topology, if the ranks are on its nodes: without links *text is NULL. Freed by the caller. */
static int find_topo(const struct perf_options *all, struct team *team, unsigned int *number,
		     char **text)
{
	struct perf_options opt = *all;
	struct perf_rank r = { .opt = &opt, .team = team };
	int ret;

	opt.algo = NULL;
	opt.tuning = NULL;
	ret = perf_rank_open_number(&r, (*number)++);
	*text = NULL;
	if (!ret && swingcoll_comm_nodes(r.comm) > 1)
		*text = perf_topo_text(r.comm);
	perf_rank_close(&r);
	return ret;
}

/* Of the topology with this text. */
static int measure_topo(const struct perf_options *opt, struct team *team, const char *text,
			unsigned int *number, FILE *f, char **measured)
{
	char why[SWC_TEXT_BYTES];
	struct swc_topo t;
	int ret;

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
	ret = measure_all(opt, team, &t, number, f, measured);
	swc_topo_free(&t);
	return ret;
}

int perf_tune_links(const struct perf_options *opt, struct team *team, unsigned int *number,
		    FILE *f, char **measured)
{
	char *text;
	int ret = find_topo(opt, team, number, &text);

	*measured = NULL;
	if (!ret && !text && opt->links_only && f)
		fprintf(stderr,
			"swingperf: --tune-links: all ranks are on one node: there are no links\n");
	if (!ret && text)
		ret = measure_topo(opt, team, text, number, f, measured);
	free(text);
	return ret;
}
