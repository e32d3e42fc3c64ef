// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trees, nodes with several ranks, and topologies as text: plans of all ranks are verified on
 * symbols, and their steps and roles are counted. TAP on stdout.
 */
#include <locale.h>
#include <unistd.h>

#include "plans.h"
#include "src/files.h"
#include "tap.h"

static struct swc_plan_args args(enum swc_algo algo, enum swc_coll coll, int32_t param)
{
	return (struct swc_plan_args){ .algo = algo, .coll = coll, .param = param };
}

/* The number of network steps of a channel; *step, if not NULL, is set to the i-th one. */
static uint32_t net_steps(const struct swc_plan_view *v, uint32_t chan, uint32_t i,
			  const struct swc_plan_step **step)
{
	const struct swc_plan_step *s = v->steps + v->channels[chan].first_step;
	uint32_t n = 0;

	for (uint32_t k = 0; k < v->channels[chan].nsteps; k++, s++)
		if (s->kind == SWC_STEP_NET && n++ == i && step)
			*step = s;
	return n;
}

/* ---- trees ---- */

static const enum swc_coll tree_colls[] = { SWC_ALLREDUCE, SWC_BROADCAST, SWC_REDUCE };

static int check_tree(enum swc_algo algo, enum swc_coll coll, uint32_t n, int32_t param)
{
	struct swc_plan_args a = args(algo, coll, param);
	char topo[20];
	int bad = 0;

	snprintf(topo, sizeof(topo), "switch:%u", n);
	for (a.root = 0; a.root < (coll == SWC_ALLREDUCE ? 1 : n); a.root++) {
		if (n > 12 && a.root && a.root != n / 3 && a.root != n - 1)
			continue;
		for (int placing = OUT_OF_PLACE; placing <= MIXED; placing++)
			if (n <= 32 || placing == MIXED)
				bad |= check_set(topo, a, placing);
	}
	a.root = 0;
	a.channels = 3;
	return bad | (n <= 32 ? check_set(topo, a, MIXED) : 0);
}

static void test_trees(void)
{
	static const uint32_t large[] = { 96, 100, 127, 128 };
	char name[80];

	for (int algo = SWC_ALGO_TREE; algo <= SWC_ALGO_DTREE; algo++) {
		for (int i = 0; i < 3; i++) {
			int bad = 0;

			for (uint32_t n = 2; n <= 64; n++)
				bad |= check_tree(algo, tree_colls[i], n, SWC_PARAM_DEFAULT);
			for (uint32_t k = 0; k < 4; k++)
				bad |= check_tree(algo, tree_colls[i], large[k], SWC_PARAM_DEFAULT);
			snprintf(name, sizeof(name), "%s, collective %d", swc_algo_name(algo),
				 tree_colls[i]);
			ok(!bad, name);
		}
	}
	for (int32_t pieces = 1; pieces <= 8; pieces++) {
		int bad = 0;

		for (int i = 0; i < 3; i++)
			for (uint32_t n = 2; n <= 20; n++)
				bad |= check_tree(SWC_ALGO_DTREE, tree_colls[i], n, pieces);
		snprintf(name, sizeof(name), "dtree:%d", pieces);
		ok(!bad, name);
	}
}

/* Has a rank children in the tree of a channel? */
static bool is_inner(const struct set *s, uint32_t r, uint32_t chan)
{
	struct swc_plan_view v = s->view[r];
	const struct swc_plan_step *step = v.steps + v.channels[chan].first_step;
	bool up = s->args.coll != SWC_BROADCAST;

	for (uint32_t k = 0; k < v.channels[chan].nsteps; k++, step++) {
		const struct swc_plan_xfer *x = v.xfers + step->first_xfer;

		if (step->kind != SWC_STEP_NET)
			continue;
		if (!up && step->nsend)
			return true;
		for (uint32_t i = 0; up && i < step->nrecv; i++)
			if (x[step->nsend + i].flags & SWC_XFER_REDUCE)
				return true;
	}
	return false;
}

static void test_roles(void)
{
	bool once = true, few = true;

	for (uint32_t n = 2; n <= 128; n++) {
		for (int i = 0; i < 3; i++) {
			struct swc_plan_args a = args(SWC_ALGO_DTREE, tree_colls[i], 3);
			struct set s;
			uint32_t log = 0;
			char topo[20];

			while (1u << log < n)
				log++;
			snprintf(topo, sizeof(topo), "switch:%u", n);
			if (build_set(&s, topo, a, OUT_OF_PLACE))
				abort();
			for (uint32_t r = 0; r < n; r++) {
				struct swc_plan_view v = s.view[r];
				bool above = s.args.coll != SWC_ALLREDUCE && r == s.args.root;

				once &= above || !is_inner(&s, r, 0) || !is_inner(&s, r, 1);
				for (uint32_t c = 0; c < 2; c++)
					few &= net_steps(&v, c, 0, NULL) <= 3 + 2 * log + 1;
			}
			free_set(&s);
		}
	}
	ok(once, "dtree: every rank is an inner node of at most one tree");
	ok(few, "dtree: at most pieces + 2 log p + 1 steps");
}

static void test_large(void)
{
	struct swc_plan_args a = args(SWC_ALGO_DTREE, SWC_ALLREDUCE, 256);
	bool good = true;
	char why[100];

	a.nranks = SWC_PLAN_MAX_RANKS;
	for (int i = 0; i < 3; i++) {
		struct swc_plan_view v;
		size_t bytes;
		void *plan;
		int ret;

		a.algo = i == 0 ? SWC_ALGO_DTREE : i == 1 ? SWC_ALGO_TREE : SWC_ALGO_TWOSIDED;
		a.param = i == 0 ? 256 : SWC_PARAM_DEFAULT;
		a.rank = 699050;
		ret = swc_plan_build(&a, &plan, &bytes, why, sizeof(why));
		good &= !ret && !swc_plan_check(plan, bytes, &v, why, sizeof(why)) && bytes < 80000;
		if (!ret)
			free(plan);
	}
	ok(good, "dtree, tree and twosided: small plans for 2^20 ranks");
	a.algo = SWC_ALGO_DTREE;
	a.param = 0;
	ok(swc_plan_build(&a, &(void *){ NULL }, &(size_t){ 0 }, why, sizeof(why)) == -EOPNOTSUPP,
	   "dtree:0 is refused");
}

/* ---- several ranks per node ---- */

static void test_hierarchy(void)
{
	static const char *const topos[] = {
		"torus:2x2*4",	 "switch:3*2,1,4",	  "ring:4*2",
		"switch:2*3",	 "ring:3*1,2,3",	  "switch:2*7,3",
		"mesh:2x2*3",	 "switch:3*20,1,2",	  "ring:5*3,3,4,3,5",
		"switch:2*1,64", "torus:2x3*2,1,3,1,2,2", "ring:8*2"
	};
	static const char *const algos[] = { "ring",	"recdoub",  "tree",
					     "dtree:3", "twosided", "ordered" };
	char name[80];

	for (size_t k = 0; k < sizeof(algos) / sizeof(algos[0]); k++) {
		int32_t param;
		int algo = swc_algo_parse(algos[k], &param), bad = 0;

		for (size_t i = 0; i < sizeof(topos) / sizeof(topos[0]); i++) {
			struct swc_plan_args a = args(algo, SWC_ALLREDUCE, param);

			for (int placing = OUT_OF_PLACE; placing <= MIXED; placing++)
				bad |= check_set(topos[i], a, placing);
			a.channels = 2;
			bad |= check_set(topos[i], a, MIXED);
		}
		snprintf(name, sizeof(name), "%s between nodes with several ranks", algos[k]);
		ok(!bad, name);
	}
}

/*
 * Other ranks write a rank's result, so it may not end before they have. The verifier cannot find
 * that, because no step accesses the result later.
 */
static void test_hierarchy_end(void)
{
	struct set s;
	bool good = !build_set(&s, "switch:3*2,1,4",
			       args(SWC_ALGO_DTREE, SWC_ALLREDUCE, SWC_PARAM_DEFAULT), MIXED);

	for (uint32_t r = 0; good && r < s.topo.nranks; r++) {
		struct swc_plan_view v = s.view[r];

		good = v.hdr->nchannels == 4 * 2;
		for (uint32_t c = 0; good && c < v.hdr->nchannels; c++)
			good = v.channels[c].nsteps &&
			       v.steps[v.channels[c].first_step + v.channels[c].nsteps - 1].kind ==
				       SWC_STEP_SYNC;
	}
	ok(good, "hierarchy: every channel ends with a barrier of the node");
	free_set(&s);
}

/* Blocks that a rank sends in network steps, or reads in local steps. */
static uint32_t load(const struct set *s, uint32_t r, uint8_t kind)
{
	struct swc_plan_view v = s->view[r];
	uint32_t sum = 0;

	for (uint32_t k = 0; k < v.hdr->nsteps; k++)
		for (uint32_t i = 0; v.steps[k].kind == kind && i < v.steps[k].nsend; i++)
			sum += v.xfers[v.steps[k].first_xfer + i].nblocks;
	return sum;
}

static void test_hierarchy_load(void)
{
	struct swc_plan_args a = args(SWC_ALGO_RING, SWC_ALLREDUCE, SWC_PARAM_DEFAULT);
	struct swc_topo topo;
	struct set s;
	bool good = !build_set(&s, "ring:4*3", a, IN_PLACE);
	char why[120] = "";
	size_t bytes;
	void *plan;

	/* 3 shards of 4 blocks: a ring sends 2 * 3, and a shard is read 3 times and once more. */
	for (uint32_t r = 0; good && r < 12; r++)
		good = s.view[r].hdr->shard_blocks == 12 && load(&s, r, SWC_STEP_NET) == 6 &&
		       load(&s, r, SWC_STEP_LOCAL) == 3 * 4 + 4;
	ok(good, "hierarchy: the ranks of a node share the work");
	free_set(&s);

	ok(!build_set(&s, "switch:1*4", a, IN_PLACE) && load(&s, 0, SWC_STEP_NET) == 2 * 3,
	   "on one node every rank is a member of the algorithm");
	free_set(&s);

	a = args(SWC_ALGO_TREE, SWC_BROADCAST, SWC_PARAM_DEFAULT);
	ok(!check_set("torus:2x2*2", a, MIXED), "other collectives treat ranks as nodes");
	a.nranks = 7;
	if (swc_topo_parse(&topo, "ring:4*2", why, sizeof(why)))
		abort();
	a.topo = &topo;
	ok(swc_plan_build(&a, &plan, &bytes, why, sizeof(why)) == -EINVAL && strstr(why, "8 ranks"),
	   "a topology for another number of ranks is refused");
	swc_topo_free(&topo);
}

/* ---- topologies ---- */

static bool same(const struct swc_topo *a, const struct swc_topo *b)
{
	for (uint32_t i = 0; a->first && b->first && i <= a->nnodes; i++)
		if (a->first[i] != b->first[i])
			return false;
	for (uint32_t i = 0; a->nslow == b->nslow && i < a->nslow; i++)
		if (a->slow[i].from != b->slow[i].from || a->slow[i].to != b->slow[i].to ||
		    memcmp(&a->slow[i].gbps, &b->slow[i].gbps, sizeof(double)))
			return false;
	return a->nslow == b->nslow && a->kind == b->kind && a->ndims == b->ndims &&
	       a->nnodes == b->nnodes && !memcmp(a->dim, b->dim, sizeof(a->dim)) &&
	       a->nranks == b->nranks && a->nlocal == b->nlocal && !a->first == !b->first &&
	       !memcmp(&a->gbps, &b->gbps, sizeof(double)) &&
	       !memcmp(a->dim_gbps, b->dim_gbps, sizeof(a->dim_gbps)) &&
	       !memcmp(&a->hop_ns, &b->hop_ns, sizeof(double)) && a->rails == b->rails &&
	       a->tcp == b->tcp;
}

/* Parse, format and parse a topology: is it the same, and is the text the expected one? */
static bool round_trip(const char *text, const char *want)
{
	struct swc_topo a, b = { 0 };
	char why[120] = "", out[200], cut[8] = "";
	bool good;
	int n;

	if (swc_topo_parse(&a, text, why, sizeof(why))) {
		printf("# '%s': %s\n", text, why);
		return false;
	}
	n = swc_topo_format(&a, out, sizeof(out));
	good = n == (int)strlen(out) && swc_topo_format(&a, NULL, 0) == n &&
	       swc_topo_format(&a, cut, sizeof(cut)) == n && !strncmp(cut, out, 7) && !cut[7] &&
	       !swc_topo_parse(&b, out, why, sizeof(why)) && same(&a, &b) && !strcmp(out, want);
	if (!good)
		printf("# '%s' became '%s' %s\n", text, out, why);
	swc_topo_free(&a);
	swc_topo_free(&b);
	return good;
}

static void test_topo_text(void)
{
	static const char *const texts[][2] = {
		{ "ring:5", "ring:5" },
		{ "torus:5", "ring:5" },
		{ "torus:4x4", "torus:4x4" },
		{ "mesh:1x2x3x4x1x2x1x2", "mesh:2x3x4x2x2" },
		{ "torus:1x5", "ring:5" },
		{ "torus:4x1x6*2", "torus:4x6*2" },
		{ "torus:1x1x1", "ring:1" },
		{ "torus:1x4x3@90Gbps/30Gbps/30Gbps", "torus:4x3@30Gbps" },
		{ "torus:4x1x3@10Gbps/90Gbps/30Gbps", "torus:4x3@10Gbps/30Gbps" },
		{ "torus:1x4@8Gbps,0-1=4Gbps", "ring:4@8Gbps,0-1=4Gbps" },
		{ "mesh:7", "mesh:7" },
		{ "switch:1", "switch:1" },
		{ "switch:1048576", "switch:1048576" },
		{ "torus:4x4*8@400Gbps,400ns", "torus:4x4*8@400Gbps,400ns" },
		{ "switch:3*2,1,4", "switch:3*2,1,4" },
		{ "switch:3*2,2,2", "switch:3*2" },
		{ "switch:3*1,1,1", "switch:3" },
		{ "switch:3*1,1,1048574", "switch:3*1,1,1048574" },
		{ "switch:3*1048574,1,1", "switch:3*1048574,1,1" },
		{ "ring:4@0.4us,100000Mbps", "ring:4@100Gbps,400ns" },
		{ "torus:8x4@60Gbps/30Gbps,1us", "torus:8x4@60Gbps/30Gbps,1000ns" },
		{ "torus:8x4@1us,60Gbps/30000Mbps", "torus:8x4@60Gbps/30Gbps,1000ns" },
		{ "torus:8x4@30Gbps/30Gbps", "torus:8x4@30Gbps" },
		{ "switch:4@4rails", "switch:4@4rails" },
		{ "switch:4*2@1rails,25Gbps", "switch:4*2@25Gbps,1rails" },
		{ "switch:4@tcp", "switch:4@tcp" },
		{ "switch:4@2rails,tcp", "switch:4@tcp,2rails" },
		{ "torus:2x2@tcp,1us,25Gbps", "torus:2x2@25Gbps,1000ns,tcp" },
		{ "switch:2@1us,16rails,25Gbps", "switch:2@25Gbps,1000ns,16rails" },
		{ "ring:4@1ms", "ring:4@1e+06ns" },
		{ "ring:4@0.1Gbps", "ring:4@0.1Gbps" },
		{ "ring:4@123456789.123456789Gbps", "ring:4@123456789.12345679Gbps" },
		{ "ring:4@0.30000000000000004ns", "ring:4@0.30000000000000004ns" },
		{ "ring:4@1e12Gbps,1e12ns", "ring:4@1e+12Gbps,1e+12ns" },
		{ "ring:4@1e-9ns", "ring:4@1e-09ns" },
		{ "torus:4x4@2Gbps,6-5=1Gbps,1us", "torus:4x4@2Gbps,1000ns,5-6=1Gbps" },
		{ "torus:4x4@0-12=500Mbps,1Gbps", "torus:4x4@1Gbps,0-12=0.5Gbps" },
		{ "mesh:3@2Gbps,1>0=1Gbps,0>1=1Gbps", "mesh:3@2Gbps,0-1=1Gbps" },
		{ "mesh:3@2Gbps,1>0=1Gbps,0>1=2Gbps", "mesh:3@2Gbps,0>1=2Gbps,1>0=1Gbps" },
		{ "torus:2x3@4Gbps/2Gbps,0-1=1Gbps,0>3=4Gbps",
		  "torus:2x3@4Gbps/2Gbps,0-1=1Gbps,0>3=4Gbps" },
		{ "switch:3@8Gbps,2=2Gbps,0>=1Gbps,>1=4Gbps,2rails",
		  "switch:3@8Gbps,2rails,0>=1Gbps,2=2Gbps,>1=4Gbps" },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		good &= round_trip(texts[i][0], texts[i][1]);
	ok(good, "topologies are parsed and formatted");

	good = true;
	srand(1);
	for (int i = 0; i < 3000; i++) {
		struct swc_topo t = { .kind = SWC_TOPO_TORUS,
				      .ndims = 1,
				      .dim = { 3 },
				      .nnodes = 3,
				      .nranks = 3,
				      .nlocal = 1 },
				u;
		char text[100], why[100];

		t.gbps = (double)rand() / (rand() + 1.0) * (double)rand() / 3;
		t.hop_ns = 3.0 / (rand() + 1.0);
		if (t.gbps < 1e-9)
			continue;
		swc_topo_format(&t, text, sizeof(text));
		good &= !swc_topo_parse(&u, text, why, sizeof(why)) && same(&t, &u);
	}
	ok(good, "3000 random figures are formatted and parsed to the same bits");
	if (setlocale(LC_ALL, "de_DE.UTF-8"))
		ok(round_trip("ring:4@0.5Gbps,0.25ns", "ring:4@0.5Gbps,0.25ns"), "decimal points");
	else
		ok(1, "decimal points # SKIP there is no locale de_DE.UTF-8 with decimal commas");
	setlocale(LC_ALL, "C");
}

static void test_topo_errors(void)
{
	static const char *const cases[][2] = {
		{ "", "begin with" },
		{ "rings:4", "begin with" },
		{ "ring", "begin with" },
		{ " ring:4", "begin with" },
		{ "ring:", "a size from 1" },
		{ "ring:0", "at '0'" },
		{ "ring:04", "at '04'" },
		{ "ring:-4", "at '-4'" },
		{ "ring:1048577", "at '1048577'" },
		{ "ring:99999999999999999999999", "a size from 1" },
		{ "torus:4x", "at ''" },
		{ "torus:4xx4", "at 'x4'" },
		{ "torus:2048x2048", "more than 1048576 nodes" },
		{ "torus:1x1x1x1x1x1x1x1x1", "more than 8 dimensions" },
		{ "ring:2x2", "a ring has one size" },
		{ "switch:2x2", "a switch has one size" },
		{ "ring:4*", "ranks per node" },
		{ "ring:4*0", "ranks per node" },
		{ "ring:4*1048577", "ranks per node" },
		{ "ring:4*524288", "more than 1048576 ranks" },
		{ "ring:3*1,2", "one for each of the 3 nodes" },
		{ "ring:3*1,2,", "one for each of the 3 nodes" },
		{ "ring:3*1,2,x", "one for each of the 3 nodes" },
		{ "ring:3*1,0,2", "0 ranks, or all together more than" },
		{ "ring:3*1,1,1048575", "0 ranks, or all together more than" },
		{ "ring:3*1048576,1,1", "0 ranks, or all together more than" },
		{ "ring:3*1,2,3,4", "nothing may follow 'ring:3*1,2,3'" },
		{ "ring:2,3", "nothing may follow 'ring:2'" },
		{ "ring:4 ", "nothing may follow 'ring:4'" },
		{ "ring:4@", "is not a figure" },
		{ "ring:4@nanGbps", "is not a figure" },
		{ "ring:4@infns", "is not a figure" },
		{ "ring:4@-1ns", "is not a figure" },
		{ "ring:4@ 1ns", "is not a figure" },
		{ "ring:4@1Gbps,", "is not a figure" },
		{ "ring:4@0Gbps", "out of range" },
		{ "ring:4@1e-400ns", "out of range" },
		{ "ring:4@0.99e-9ns", "out of range" },
		{ "ring:4@4.9e-324Mbps", "out of range" },
		{ "ring:4@2e12ns", "out of range" },
		{ "ring:4@1e7ms", "out of range" },
		{ "ring:4@1e999Gbps", "out of range" },
		{ "ring:4@400", "is not a unit" },
		{ "ring:4@400GBps", "is not a unit" },
		{ "ring:4@2rails", "only nodes on a switch have rails" },
		{ "switch:4@17rails", "1 to 16 rails" },
		{ "switch:4@1.5rails", "1 to 16 rails" },
		{ "switch:4@0rails", "expected 1 to 16 rails" },
		{ "switch:4@2rails,1ns,3rails", "a second number of rails" },
		{ "switch:4@1Gbps/2rails", "one for each of the 1 dimensions" },
		{ "ring:4@tcp,1ns,tcp", "a second tcp" },
		{ "ring:4@tcp4", "nothing may follow" },
		{ "ring:4@1ns,2us", "a second delay" },
		{ "ring:4@1Gbps,1ns,2Mbps", "a second rate" },
		{ "ring:4@1Gbps,1ns.", "nothing may follow" },
		{ "ring:4@1Gbps,0-2=1Gbps", "is no link" },
		{ "ring:4@1Gbps,0-4=1Gbps", "is no link" },
		{ "ring:4@1Gbps,0-0=1Gbps", "is no link" },
		{ "ring:4@1Gbps,0=1Gbps", "is no link" },
		{ "ring:4@1Gbps,>1=1Gbps", "is no link" },
		{ "ring:4@1Gbps,0>=1Gbps", "is no link" },
		{ "ring:4@1Gbps,0-1=", "is not a figure" },
		{ "ring:4@1Gbps,0-1=1ns", "expected a rate" },
		{ "ring:4@1Gbps,0-1", "is no link" },
		{ "ring:4@0-1=1Gbps", "give that of all others" },
		{ "ring:4@1Gbps,0-1=2Gbps", "is faster than the others" },
		{ "torus:4x4@2Gbps/1Gbps,0-1=2Gbps", "is faster than the others" },
		{ "ring:4@1Gbps,0-1=0.5Gbps,1>0=0.1Gbps", "a second rate of the link from 1 to 0" },
		{ "mesh:4@1Gbps,3-0=0.5Gbps", "is no link" },
		{ "switch:4@1Gbps,0-1=0.5Gbps", "is no link" },
		{ "switch:4@1Gbps,>=0.5Gbps", "is no link" },
		{ "switch:4@1Gbps,4=0.5Gbps", "is no link" },
		{ "ring:4@1Gbps/2Gbps", "one for each of the 1 dimensions" },
		{ "torus:4x4@1Gbps/2Gbps/3Gbps", "one for each of the 2 dimensions" },
		{ "torus:4x4x4@1Gbps/2Gbps", "one for each of the 3 dimensions" },
		{ "torus:4x4@1Gbps/", "is not a figure" },
		{ "torus:4x4@1Gbps/-1Gbps", "is not a figure" },
		{ "torus:4x4@1Gbps/2ns", "one for each of the 2 dimensions" },
		{ "torus:4x4@1ns/2ns", "nothing may follow" },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct swc_topo t;
		char why[120] = "";
		int ret = swc_topo_parse(&t, cases[i][0], why, sizeof(why));

		if (ret != -EINVAL || !strstr(why, cases[i][1]) || t.first) {
			printf("# '%s': %d '%s'\n", cases[i][0], ret, why);
			good = false;
		}
		good &= swc_topo_parse(&t, cases[i][0], NULL, 0) == -EINVAL;
	}
	ok(good, "faults in topologies are named");
}

static int read_text(const char *text, struct swc_topo *t, char *why, size_t bytes)
{
	char path[] = "@/tmp/swc_topo_XXXXXX";
	int fd = mkstemp(path + 1), ret;

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
	close(fd);
	ret = swc_file_topo(t, path, why, bytes);
	unlink(path + 1);
	return ret;
}

static void test_topo_files(void)
{
	struct swc_topo t;
	char why[200] = "";

	ok(!read_text("# a comment\n\n  \nswitch:3*2,1,4 \r\n", &t, why, sizeof(why)) &&
		   t.nranks == 7,
	   "a topology from a file");
	swc_topo_free(&t);
	ok(!read_text("ring:4", &t, why, sizeof(why)) && t.nranks == 4, "without a newline");
	ok(read_text("# nothing\n", &t, why, sizeof(why)) == -EINVAL &&
		   strstr(why, "no line has a topology") &&
		   read_text("", &t, why, sizeof(why)) == -EINVAL,
	   "a file without a topology");
	ok(read_text("\nring:x\n", &t, why, sizeof(why)) == -EINVAL && strstr(why, "at 'x'"),
	   "a file with a fault");
	ok(swc_file_topo(&t, "@/nonexistent/x", why, sizeof(why)) == -ENOENT &&
		   strstr(why, "No such") && swc_file_topo(&t, "@/", why, sizeof(why)) == -EISDIR &&
		   strstr(why, "directory"),
	   "files that cannot be read");
}

static void test_topo_places(void)
{
	struct swc_topo t;
	bool good = !swc_topo_parse(&t, "torus:3x1x4*2,1,4,1,1,3,1,1,1,2,1,1", NULL, 0);
	uint32_t rank = 0;

	for (uint32_t node = 0; good && node < t.nnodes; node++) {
		uint32_t coord[SWC_TOPO_DIMS];

		swc_topo_coords(&t, node, coord);
		good = swc_topo_node_at(&t, coord) == node && coord[0] == node / 4 &&
		       coord[1] == node % 4 && swc_topo_first(&t, node) == rank;
		for (uint32_t i = 0; i < swc_topo_local(&t, node); i++)
			good &= swc_topo_node_of(&t, rank++) == node;
	}
	ok(good && rank == t.nranks && rank == 19, "nodes, coordinates and ranks");
	swc_topo_free(&t);
}

int main(void)
{
	printf("TAP version 13\n");
	test_topo_text();
	test_topo_errors();
	test_topo_files();
	test_topo_places();
	test_trees();
	test_roles();
	test_large();
	test_hierarchy();
	test_hierarchy_end();
	test_hierarchy_load();
	return done();
}
