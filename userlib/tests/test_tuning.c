// SPDX-License-Identifier: GPL-2.0-only
/* Tuning files, and the choice of algorithms by measured times and by the model. TAP on stdout. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <swingcoll.h>

#include "kmod/core/plan_check.h"
#include "plan/algo/exchange.h"
#include "plan/select/choose.h"
#include "src/files.h"
#include "tap.h"
#include "topos.h"

static int read_text(struct swc_tuning *t, const char *text, const char *topo_text, char *why,
		     size_t why_bytes)
{
	char path[] = "/tmp/swingcoll-tuning-XXXXXX";
	int fd = mkstemp(path), ret;
	struct swc_topo topo;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f || fputs(text, f) < 0 || fclose(f))
		abort();
	if (swc_topo_parse(&topo, topo_text, why, why_bytes))
		abort();
	ret = swc_file_tuning(t, path, &topo, why, why_bytes);
	swc_topo_free(&topo);
	unlink(path);
	return ret;
}

static const char good[] = "# a comment\n"
			   "\n"
			   "allreduce f32 torus:4x4 1024 ring 90.5 # behind\n"
			   "allreduce f32 torus:4x4 1024 swing-h:2\t80\n"
			   "allreduce f32 torus:4x4 1048576 bucket2 1e3\n"
			   "allreduce i32 torus:4x4 1048576 swing-l 500\n"
			   "allreduce f32 ring:16 1024 recdoub 1\n"
			   "allgather f32 torus:4x4 1024 circulant 5\n";

/* Of a side of 1, and of figures, lines say nothing else than without them. */
static void test_same_shape(void)
{
	static const char text[] = "allreduce f32 torus:1x8 1024 tree 1.5\n"
				   "allreduce f32 torus:8x1@25Gbps 1024 ring 2.5\n"
				   "allreduce f32 ring:8 1024 recdoub 3.5\n"
				   "allreduce f32 torus:2x8 1024 ring2 4.5\n";
	static const char *const topos[] = { "ring:8", "torus:1x8", "torus:8x1x1@100Gbps" };
	bool good = true;

	for (size_t i = 0; i < sizeof(topos) / sizeof(topos[0]); i++) {
		struct swc_tuning t;
		char why[200];

		good &= !read_text(&t, text, topos[i], why, sizeof(why)) && t.n == 3;
		swc_tuning_free(&t);
	}
	ok(good, "lines of the same network with other sides of 1");
}

static bool no_hybrid(const struct swc_tuned *e, void *arg)
{
	(void)arg;
	return e->algo != SWC_ALGO_SWING_H;
}

/* Topologies whose texts differ only far behind: 200 nodes, of which two have other numbers of ranks. */
static void test_long_shapes(void)
{
	static char shape[2][600], text[2000];
	struct swc_tuning t;
	char why[200];

	for (int i = 0; i < 2; i++) {
		int n = sprintf(shape[i], "switch:200*1");

		for (int node = 1; node < 200; node++)
			n += sprintf(shape[i] + n, ",%d", node == 199 - i ? 2 : 1);
	}
	sprintf(text, "allreduce f32 %s 1024 ring 90\nlinks %s@10Gbps\nlinks %s@20Gbps\n", shape[0],
		shape[0], shape[1]);
	ok(!read_text(&t, text, shape[0], why, sizeof(why)) && t.n == 1 && t.gbps > 9 &&
		   t.gbps < 11,
	   "the lines of a topology with a long text, and no others");
	swc_tuning_free(&t);
}

static void test_read(void)
{
	const struct swc_tuned *e;
	struct swc_tuning t;
	char why[200];

	ok(!read_text(&t, good, "torus:4x4@100Gbps", why, sizeof(why)) && t.n == 5,
	   "a file is read; lines of other topologies are skipped");
	e = swc_tuning_best(&t, SWC_ALLREDUCE, SWC_F32, 2000, NULL, NULL);
	ok(e && e->algo == SWC_ALGO_SWING_H && e->param == 2,
	   "the fastest algorithm at the nearest size");
	e = swc_tuning_best(&t, SWC_ALLREDUCE, SWC_F32, 2000, no_hybrid, NULL);
	ok(e && e->algo == SWC_ALGO_RING, "an unusable algorithm is skipped");
	e = swc_tuning_best(&t, SWC_ALLREDUCE, SWC_BF16, 1u << 30, NULL, NULL);
	ok(e && e->algo == SWC_ALGO_BUCKET2, "other types of the same kind count");
	e = swc_tuning_best(&t, SWC_ALLREDUCE, SWC_U8, 1, NULL, NULL);
	ok(e && e->algo == SWC_ALGO_SWING_L, "integer types do not count for floats");
	ok(!swc_tuning_best(&t, SWC_BROADCAST, SWC_F32, 1, NULL, NULL),
	   "no measurement, no choice");
	swc_tuning_free(&t);
}

/* The measured rates of links decide the choice, and how split splits. */
static void test_links(void)
{
	static const char links[] = "links torus:4x4@1Gbps,5us\n"
				    "links ring:16@7Gbps\n"
				    "links torus:4x4@8Gbps/2Gbps # of the running system\n";
	struct swc_choices even, uneven;
	struct swc_choice a, b;
	struct swc_topo topo, measured;
	struct swc_tuning t;
	char why[200];

	if (swc_topo_parse(&topo, "torus:4x4@8Gbps", why, sizeof(why)))
		abort();
	measured = topo;
	ok(!read_text(&t, links, "torus:4x4@8Gbps", why, sizeof(why)) && !t.n, "lines about links");
	if (swc_tuning_links(&t, &measured))
		abort();
	ok(swc_topo_slowness(&measured, 0) < 1.001 && swc_topo_slowness(&measured, 1) > 3.999 &&
		   swc_topo_slowness(&measured, 1) < 4.001 && measured.hop_ns > 4999,
	   "the last rates, and the delay of an earlier line");
	swc_choices_init(&even, &topo, false);
	swc_choices_init(&uneven, &measured, false);
	a = swc_choices_take(&even, SWC_ALLREDUCE, SWC_I32, SWC_SUM, 256 << 20, 1);
	b = swc_choices_take(&uneven, SWC_ALLREDUCE, SWC_I32, SWC_SUM, 256 << 20, 1);
	ok(a.algo != SWC_ALGO_SPLIT && b.algo == SWC_ALGO_SPLIT,
	   "split where the measured rates differ");
	swc_choices_free(&even);
	swc_choices_free(&uneven);
	swc_tuning_free(&t);
	swc_topo_free(&measured);
	swc_topo_free(&topo);
}

/* What is measured becomes a line, which is read as the same rates. */
static void test_written(void)
{
	static const struct {
		const char *topo, *links;
		double gbps[SWC_TOPO_DIMS];
	} rows[] = {
		{ "torus:4x4", "torus:4x4@57.3Gbps/14.1Gbps", { 57.3, 14.1 } },
		{ "torus:4x4@400Gbps/100Gbps", "torus:4x4@3Gbps", { 3, 3 } },
		{ "torus:2x3x1", "torus:2x3@0.000203125Gbps/0.1Gbps", { 2.03125e-4, .1 } },
		{ "switch:4*2@1Gbps", "switch:4*2@93.75Gbps", { 93.75 } },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct swc_topo t = topo_of(rows[i].topo), again = topo_of(rows[i].topo);
		struct swc_tuning read;
		char text[200], line[220], why[200];

		good &= swc_tuning_rates(&t, rows[i].gbps);
		swc_topo_format(&t, text, sizeof(text));
		good &= !strcmp(text, rows[i].links);
		snprintf(line, sizeof(line), "links %s\n", text);
		good &= !read_text(&read, line, rows[i].topo, why, sizeof(why));
		if (swc_tuning_links(&read, &again))
			abort();
		for (uint32_t k = 0; k < t.ndims; k++) {
			double gbps = again.gbps / swc_topo_slowness(&again, k);
			double want = rows[i].gbps[k] > 0 ? rows[i].gbps[k] : t.gbps;

			good &= fabs(gbps / want - 1) < 1e-9;
		}
		if (!good)
			printf("# %s\n", text);
		swc_tuning_free(&read);
		swc_topo_free(&t);
		swc_topo_free(&again);
	}
	ok(good, "measured rates are written and read");
	ok(!swc_tuning_rates(&(struct swc_topo){ .ndims = 2 }, (double[SWC_TOPO_DIMS]){ 0 }),
	   "no rates, no line");
}

/* Does a node's plan send over the link of a round, and nothing else? *busy counts messages. */
static bool sends_over(const struct swc_topo *t, uint32_t round, uint32_t rank, uint32_t *count)
{
	uint32_t node = swc_topo_node_of(t, rank), from, to, blocks = 0;
	bool has = swc_exchange_link(t, round, node, &from, &to), good = true;
	const struct swc_plan_step *s;
	struct swc_plan_view v;
	char why[200];
	size_t bytes;
	void *plan;

	if (swc_exchange_build(t, round, rank, &plan, &bytes) ||
	    swc_plan_check(plan, bytes, &v, why, sizeof(why)))
		return false;
	s = &v.steps[v.channels[0].first_step];
	for (uint32_t i = 0; s->kind == SWC_STEP_NET && i < s->nsend; i++) {
		const struct swc_plan_xfer *x = &v.xfers[s->first_xfer + i];
		struct swc_topo_leg leg[SWC_TOPO_DIMS];
		uint32_t n = swc_topo_route(t, x->path, from, to, leg);

		good &= has && node == from && swc_topo_first(t, to) == x->rank &&
			(t->kind == SWC_TOPO_SWITCH || (n == 1 && leg[0].hops == 1)) &&
			x->path < (t->kind == SWC_TOPO_SWITCH ? 1 : swc_topo_npaths(t, from, to)) &&
			x->nblocks == swc_exchange_share(t, round) * v.hdr->shard_blocks;
		blocks += x->nblocks;
	}
	good &= blocks ==
		(has && node == from && rank == swc_topo_first(t, node) ? v.hdr->shard_blocks : 0);
	*count += blocks > 0;
	free(plan);
	return good;
}

/* How often each pair of nodes is the two ends of a link, in all rounds. @pair: nnodes times nnodes. */
static bool all_rounds(const struct swc_topo *t, uint32_t *pair, uint32_t *count)
{
	bool good = true;

	for (uint32_t round = 0; round < swc_exchange_rounds(t); round++) {
		for (uint32_t r = 0; r < t->nranks; r++)
			good &= sends_over(t, round, r, count);
		for (uint32_t v = 0; v < t->nnodes; v++) {
			uint32_t from, to, f, g;

			if (!swc_exchange_link(t, round, v, &from, &to))
				continue;
			good &= from != to && (from == v || to == v) &&
				swc_exchange_link(t, round, from == v ? to : from, &f, &g) &&
				f == from && g == to;
			pair[from * t->nnodes + to] += v == from;
		}
	}
	return good;
}

/* In rounds, all links are measured once, and no node has two at a time. */
static void test_exchange(void)
{
	static const char *const shapes[] = { "torus:4x4",    "torus:2x3", "torus:2x2x4",
					      "ring:5",	      "mesh:3x2",  "switch:2",
					      "switch:5*3",   "ring:2",	   "torus:3x4*2",
					      "ring:3*1,2,3", "mesh:1x2",  "switch:8" };
	bool good = true;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct swc_topo t = topo_of(shapes[i]);
		uint32_t *pair = calloc((size_t)t.nnodes * t.nnodes, sizeof(*pair)), count = 0;

		if (!pair)
			abort();
		good &= all_rounds(&t, pair, &count);
		for (uint32_t v = 0; v < t.nnodes; v++) {
			uint32_t out = 0, in = 0;

			for (uint32_t u = 0; u < t.nnodes; u++) {
				bool link = swc_topo_dim(&t, v, u) < t.ndims;

				out += pair[v * t.nnodes + u];
				in += pair[u * t.nnodes + v];
				count -= pair[v * t.nnodes + u];
				good &= t.kind == SWC_TOPO_SWITCH || pair[v * t.nnodes + u] == link;
			}
			good &= out && in;
		}
		good &= !count;
		if (!good)
			printf("# on %s\n", shapes[i]);
		free(pair);
		swc_topo_free(&t);
	}
	ok(good, "an exchange measures each link once");
	ok(!swc_exchange_rounds(&(struct swc_topo){
		   .kind = SWC_TOPO_TORUS, .ndims = 1, .dim = { 1 }, .nnodes = 1 }),
	   "no links, no rounds");
}

/* ---- slow links ---- */

/* All links of a topology at @gbps, but for one way of one of them. */
static void test_slow(void)
{
	static const struct {
		double usual, slow;
		const char *want;
	} rows[] = {
		{ 0.2, 0.1, "torus:3x4@0.2Gbps,5>6=0.1Gbps" },
		{ 0.2, 0.19, "torus:3x4@0.2Gbps" },
		{ 8, 1.95, "torus:3x4@8Gbps,5>6=2Gbps" },
		{ 8, 0.001, "torus:3x4@8Gbps,5>6=0.5Gbps" },
		{ 8, 0, "torus:3x4@8Gbps" },
	};
	struct swc_topo_slow link[48];
	struct swc_topo t = topo_of("torus:3x4"), again;
	char text[200], line[220], why[200];
	struct swc_tuning read;
	bool good = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t n = 0;

		for (uint32_t a = 0; a < 12; a++)
			for (uint32_t b = 0; b < 12; b++)
				if (swc_topo_dim(&t, a, b) < t.ndims) {
					/* Some are measured as a little faster. */
					double noise = n * 7 % 10 < 3 ? 1.02 : 1;

					link[n++] = (struct swc_topo_slow){
						a, b,
						a == 5 && b == 6 ? rows[i].slow
								 : rows[i].usual * noise
					};
				}
		good &= n == 48 && !swc_tuning_slow(&t, link, n);
		swc_topo_format(&t, text, sizeof(text));
		good &= !strcmp(text, rows[i].want);
		snprintf(line, sizeof(line), "links %s\n", text);
		good &= !read_text(&read, line, "torus:3x4", why, sizeof(why));
		again = topo_of("torus:3x4@1Gbps,0-1=0.5Gbps");
		good &= !swc_tuning_links(&read, &again);
		swc_topo_format(&again, line, sizeof(line));
		good &= !strcmp(text, line);
		if (!good)
			printf("# %s, %s, wanted %s\n", text, line, rows[i].want);
		swc_tuning_free(&read);
		swc_topo_free(&again);
	}
	ok(good, "slow links are told from noise, written and read");
	memset(link, 0, sizeof(link));
	ok(swc_tuning_slow(&t, link, 0) == -EINVAL, "nothing measured");
	swc_topo_free(&t);
}

/*
 * However few links a dimension has, one that is slow both ways is told from the others, and a dimension is
 * slow where all of its links are. A rate that nothing confirms does not count.
 */
static void test_few_links(void)
{
	static const struct {
		const char *topo;
		uint32_t a, b; /* the slow link */
		int dim;       /* or a dimension, if they are equal */
		double outlier;
		const char *want;
		double slow;
	} rows[] = {
		{ "mesh:3x2", 2, 3, 0, 8, "mesh:3x2@8Gbps,2-3=2Gbps", 2 },
		{ "mesh:3x2", 0, 2, 0, 8, "mesh:3x2@8Gbps,0-2=2Gbps", 2 },
		{ "torus:2x2", 0, 1, 0, 8, "torus:2x2@8Gbps,0-1=2Gbps", 2 },
		{ "mesh:2x4", 0, 4, 0, 8, "mesh:2x4@8Gbps,0-4=2Gbps", 2 },
		{ "ring:3", 0, 2, 0, 8, "ring:3@8Gbps,0-2=2Gbps", 2 },
		{ "switch:3", 1, 3, 0, 8, "switch:3@8Gbps,1=2Gbps", 2 },
		{ "mesh:2x4", 0, 0, 0, 8, "mesh:2x4@2Gbps/8Gbps", 2 },
		{ "mesh:2x4", 0, 0, 1, 8, "mesh:2x4@8Gbps/2Gbps", 2 },
		{ "mesh:3x2", 2, 3, 0, 20, "mesh:3x2@8Gbps,2-3=2Gbps", 2 },
		{ "mesh:2x4", 0, 0, 1, 8, "mesh:2x4@8Gbps/5Gbps", 4.9 },
		{ "mesh:2x4", 0, 0, 1, 8, "mesh:2x4@8Gbps", 7.4 },
		{ "mesh:2x4", 0, 0, 0, 8, "mesh:2x4@1Gbps/8Gbps", 0.99 },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct swc_topo t = topo_of(rows[i].topo);
		uint32_t nodes = t.nnodes + (t.kind == SWC_TOPO_SWITCH), n = 0;
		struct swc_topo_slow link[48];
		char text[200];

		for (uint32_t a = 0; a < nodes; a++)
			for (uint32_t b = 0; b < nodes; b++) {
				bool slow = rows[i].a == rows[i].b
						    ? (int)swc_topo_dim(&t, a, b) == rows[i].dim
						    : (a == rows[i].a && b == rows[i].b) ||
							      (a == rows[i].b && b == rows[i].a);

				if (a != b && swc_topo_dim(&t, a, b) < t.ndims)
					link[n++] = (struct swc_topo_slow){ a, b,
									    slow ? rows[i].slow
										 : 8 };
			}
		if (link[0].gbps >= 8)
			link[0].gbps = rows[i].outlier;
		good &= !swc_tuning_slow(&t, link, n);
		swc_topo_format(&t, text, sizeof(text));
		if (strcmp(text, rows[i].want))
			printf("# %s, wanted %s\n", text, rows[i].want);
		good &= !strcmp(text, rows[i].want);
		swc_topo_free(&t);
	}
	ok(good, "a slow link of few, and a slow dimension");
}

static void test_faults(void)
{
	static const struct {
		const char *text, *says;
	} faults[] = {
		{ "allreduce f32 torus:4x4 1024 ring\n", "line 1: expected operation" },
		{ "\nallreduce f32 torus:4x4 1024 ring 1 2\n", "line 2: expected operation" },
		{ "allreduced f32 torus:4x4 1024 ring 1\n", "an operation" },
		{ "allreduce f33 torus:4x4 1024 ring 1\n", "an element type" },
		{ "allreduce f32 torus:4y4 1024 ring 1\n", "a topology" },
		{ "allreduce f32 torus:4x4 -1 ring 1\n", "bytes" },
		{ "allreduce f32 torus:4x4 10k ring 1\n", "bytes" },
		{ "allreduce f32 torus:4x4 1024 rung 1\n", "an algorithm" },
		{ "allreduce f32 torus:4x4 1024 ring:2 1\n", "an algorithm" },
		{ "links torus:4x4\n", "figures of its links" },
		{ "links torus:4x4@1Gbps/2Gbps/3Gbps\n", "figures of its links" },
		{ "links torus:4x4@-1Gbps\n", "figures of its links" },
		{ "links torus:4x4@1Gbps,0-5=0.5Gbps\n", "figures of its links" },
		{ "allreduce f32 torus:4x4 1024 forest:0 1\n", "an algorithm" },
		{ "allreduce f32 torus:4x4 1024 ring fast\n", "microseconds" },
		{ "allreduce f32 torus:4x4 1024 ring 0\n", "microseconds" },
	};
	struct swc_topo topo = swc_topo_flat(2);
	struct swc_tuning t;
	char why[200];

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		int ret = read_text(&t, faults[i].text, "torus:4x4", why, sizeof(why));

		ok(ret == -EINVAL && strstr(why, faults[i].says), faults[i].says);
	}
	ok(swc_file_tuning(&t, "/nowhere/at/all", &topo, why, sizeof(why)) == -ENOENT &&
		   strstr(why, "/nowhere"),
	   "a missing file is named in the error");
}

static bool chooses(struct swc_choices *c, enum swc_coll coll, uint64_t bytes, enum swc_algo algo,
		    int32_t param)
{
	struct swc_choice got = swc_choices_take(c, coll, SWC_F32, SWC_SUM, bytes, 1);

	return got.algo == algo && got.param == param && got.reason == SWC_REASON_ONE_NODE;
}

/* 64 ranks of one node on 64 CPUs, and on 2. */
static void test_few_cpus(void)
{
	struct swc_topo topo = swc_topo_flat(1);
	struct swc_choices c;

	topo.nlocal = topo.nranks = 64;
	swc_choices_init(&c, &topo, false);
	c.ncpus = 64;
	ok(chooses(&c, SWC_ALLREDUCE, 3072, SWC_ALGO_DIRECT1, SWC_PARAM_DEFAULT) &&
		   chooses(&c, SWC_ALLREDUCE, 1 << 20, SWC_ALGO_DIRECT2, SWC_PARAM_DEFAULT),
	   "a CPU for each rank: all ranks work");
	swc_choices_free(&c);
	swc_choices_init(&c, &topo, false);
	c.ncpus = 2;
	ok(chooses(&c, SWC_ALLREDUCE, 8, SWC_ALGO_DIRECT2, 2) &&
		   chooses(&c, SWC_ALLREDUCE, 3072, SWC_ALGO_DIRECT2, 2) &&
		   chooses(&c, SWC_ALLREDUCE, 1 << 20, SWC_ALGO_DIRECT2, 16) &&
		   chooses(&c, SWC_BROADCAST, 1 << 20, SWC_ALGO_DIRECT2, 16) &&
		   chooses(&c, SWC_REDUCE, 8, SWC_ALGO_DIRECT1, SWC_PARAM_DEFAULT) &&
		   chooses(&c, SWC_ALLGATHER, 1 << 20, SWC_ALGO_DIRECT2, SWC_PARAM_DEFAULT),
	   "more ranks than CPUs: few owners");
	swc_choices_free(&c);
	topo.nlocal = topo.nranks = 4;
	swc_choices_init(&c, &topo, false);
	c.ncpus = 2;
	ok(chooses(&c, SWC_ALLREDUCE, 8, SWC_ALGO_DIRECT2, 2) &&
		   chooses(&c, SWC_ALLREDUCE, 32 << 10, SWC_ALGO_DIRECT2, 4) &&
		   chooses(&c, SWC_ALLREDUCE, 256 << 10, SWC_ALGO_DIRECT2, 8) &&
		   chooses(&c, SWC_ALLREDUCE, 1 << 20, SWC_ALGO_DIRECT2, SWC_PARAM_DEFAULT),
	   "4 ranks on 2 CPUs: all of them own blocks, and several of large vectors");
	swc_choices_free(&c);
}

/* 16 ranks of one node, in groups that share caches. */
static void test_caches(void)
{
	struct swc_topo topo = swc_topo_flat(1);
	struct swc_choices c;
	bool good;

	topo.nlocal = topo.nranks = 16;
	swc_choices_init(&c, &topo, false);
	c.ngroups = 2;
	good = chooses(&c, SWC_ALLREDUCE, 1 << 20, SWC_ALGO_GROUPED, 2) &&
	       chooses(&c, SWC_ALLREDUCE, 16384, SWC_ALGO_DIRECT2, 16) &&
	       chooses(&c, SWC_BROADCAST, 1 << 20, SWC_ALGO_DIRECT2, SWC_PARAM_DEFAULT);
	swc_choices_free(&c);
	swc_choices_init(&c, &topo, false);
	c.ngroups = 8;
	good &= chooses(&c, SWC_ALLREDUCE, 1 << 20, SWC_ALGO_DIRECT2, SWC_PARAM_DEFAULT);
	swc_choices_free(&c);
	swc_choices_init(&c, &topo, false);
	c.ngroups = 2;
	c.ncpus = 8;
	good &= chooses(&c, SWC_ALLREDUCE, 1 << 20, SWC_ALGO_DIRECT2, SWC_PARAM_DEFAULT);
	swc_choices_free(&c);
	ok(good, "large vectors: groups that share a cache, if they have several ranks with CPUs");
}

static void test_choice(void)
{
	struct swc_choices c;
	struct swc_choice got;
	struct swc_topo topo;
	char why[200];

	if (swc_topo_parse(&topo, "torus:4x4", why, sizeof(why)))
		abort();
	swc_choices_init(&c, &topo, false);
	if (read_text(&c.tuning, good, "torus:4x4", why, sizeof(why)))
		abort();
	got = swc_choices_take(&c, SWC_ALLREDUCE, SWC_F32, SWC_SUM, 1 << 20, 1);
	ok(got.algo == SWC_ALGO_BUCKET2 && got.reason == SWC_REASON_MEASURED,
	   "measured times come first");
	got = swc_choices_take(&c, SWC_ALLREDUCE, SWC_F32, SWC_SUM, 1 << 20, 1);
	ok(got.algo == SWC_ALGO_BUCKET2 && got.reason == SWC_REASON_MEASURED,
	   "the same choice again");
	got = swc_choices_take(&c, SWC_REDUCE_SCATTER, SWC_F32, SWC_SUM, 1 << 20, 1);
	ok(got.reason == SWC_REASON_MODEL && got.ns > 0, "the model, if nothing was measured");
	got = swc_choices_take(&c, SWC_BROADCAST, SWC_F32, SWC_SUM, 64, SWC_CHOICES_BEST);
	ok(got.reason == SWC_REASON_MODEL, "the model for broadcast");
	swc_choices_free(&c);
	swc_topo_free(&topo);

	if (swc_topo_parse(&topo, "ring:16", why, sizeof(why)))
		abort();
	swc_choices_init(&c, &topo, false);
	got = swc_choices_take(&c, SWC_ALLREDUCE, SWC_F32, SWC_SUM, 32, 1);
	ok(got.algo != SWC_ALGO_SWING_L && got.algo != SWC_ALGO_TWOSIDED,
	   "float sums: no algorithm with varying order");
	got = swc_choices_take(&c, SWC_ALLREDUCE, SWC_F32, SWC_MAX, 32, 1);
	ok(got.algo == SWC_ALGO_TWOSIDED, "float maximum: the order does not matter");
	swc_choices_free(&c);

	swc_choices_init(&c, &topo, true);
	got = swc_choices_take(&c, SWC_ALLREDUCE, SWC_F32, SWC_SUM, 32, 1);
	ok(got.algo == SWC_ALGO_TWOSIDED, "float sums, reordering allowed");
	swc_choices_free(&c);
	swc_topo_free(&topo);

	if (swc_topo_parse(&topo, "torus:2x2*2", why, sizeof(why)))
		abort();
	swc_choices_init(&c, &topo, false);
	got = swc_choices_take(&c, SWC_ALLREDUCE, SWC_I32, SWC_SUM, 2004, 1);
	ok(got.algo == SWC_ALGO_RECDOUB, "times within 2 %: the plan with fewest connections");
	got = swc_choices_take(&c, SWC_ALLREDUCE, SWC_I32, SWC_SUM, 64 << 10, 1);
	ok(got.algo != SWC_ALGO_RECDOUB, "more connections where they are faster");
	swc_choices_free(&c);
	swc_topo_free(&topo);

	topo = swc_topo_flat(2);
	swc_choices_init(&c, &topo, false);
	got = swc_choices_take(&c, SWC_ALLREDUCE, SWC_F32, SWC_SUM, 8, 1);
	ok(got.algo == SWC_ALGO_RECDOUB, "two ranks, small: recursive doubling");
	got = swc_choices_take(&c, SWC_ALLREDUCE, SWC_F32, SWC_SUM, 4 << 20, 1);
	ok(got.algo != SWC_ALGO_RECDOUB, "two ranks, large: not recursive doubling");
	swc_choices_free(&c);

	topo = swc_topo_flat(1);
	topo.nlocal = topo.nranks = 4;
	swc_choices_init(&c, &topo, false);
	got = swc_choices_take(&c, SWC_ALLREDUCE, SWC_F32, SWC_SUM, 1 << 20, 1);
	ok(got.algo == SWC_ALGO_DIRECT2 && got.reason == SWC_REASON_ONE_NODE,
	   "one node: direct2 for large vectors");
	swc_choices_free(&c);
	test_few_cpus();
	test_caches();
}

int main(void)
{
	printf("TAP version 13\n");
	test_read();
	test_long_shapes();
	test_same_shape();
	test_links();
	test_written();
	test_exchange();
	test_slow();
	test_few_links();
	test_faults();
	test_choice();
	return done();
}
