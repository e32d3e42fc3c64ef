// SPDX-License-Identifier: GPL-2.0-only
/*
 * Costs by symmetry: equal to those from the plans of all ranks, for every algorithm on every small
 * shape; from a few plans on networks of any size; and estimates from a sample. SWC_TEST_SHORT=1: few
 * shapes of 64 and more ranks. TAP on stdout.
 */
#include <math.h>
#include <time.h>

#include "plan/model/model.h"
#include "plan/model/symmetry.h"
#include "plan/select/choose.h"
#include "plans.h"
#include "random.h"
#include "tap.h"
#include "topos.h"

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-5 * fabs(b) + 1e-9;
}

static bool same_timing(const struct swc_timing *a, const struct swc_timing *b)
{
	return a->steps == b->steps && a->hops == b->hops && near(a->load, b->load) &&
	       a->last_hops == b->last_hops && near(a->last_share, b->last_share);
}

static bool same_cost(const struct swc_cost *a, const struct swc_cost *b)
{
	return same_timing(&a->phased, &b->phased) && same_timing(&a->eager, &b->eager) &&
	       near(a->psi_xi, b->psi_xi) && a->messages == b->messages && near(a->sent, b->sent) &&
	       a->connections == b->connections && near(a->reduced, b->reduced) &&
	       a->order_varies == b->order_varies;
}

static bool compare(struct swc_plan_args a)
{
	struct swc_cost all, some;
	int ret = swc_cost_compute(&a, &all, NULL, NULL, NULL, 0);

	if (swc_cost_estimate(&a, UINT32_MAX, &some, NULL, NULL, NULL, 0) != ret)
		return false;
	if (a.algo != SWC_ALGO_CIRCULANT && a.algo != SWC_ALGO_BRUCK &&
	    some.max_runs != all.max_runs)
		return false;
	if (!ret && (!same_cost(&some, &all) || some.sampled)) {
		printf("# %s:%d collective %d: %u/%llu/%g, all plans %u/%llu/%g\n",
		       swc_algo_name(a.algo), a.param, a.coll, some.phased.steps,
		       (unsigned long long)some.phased.hops, some.phased.load, all.phased.steps,
		       (unsigned long long)all.phased.hops, all.phased.load);
		return false;
	}
	return true;
}

/* Every algorithm by every collective and parameter, on all ports and on one. */
static bool compare_all(const char *text)
{
	struct swc_topo t;
	bool good = true;

	if (swc_topo_parse(&t, text, NULL, 0))
		abort();
	for (unsigned int algo = 0; algo < SWC_ALGO_NR; algo++)
		for (unsigned int coll = 0; coll < SWC_COLL_NR; coll++) {
			const struct swc_algo_info *info = swc_algo_info(algo);
			bool hybrid = info->hybrid && coll == SWC_ALLREDUCE;
			struct swc_plan_args a = { .coll = (enum swc_coll)coll,
						   .algo = (enum swc_algo)algo,
						   .topo = &t,
						   .nranks = t.nranks };

			if (!(info->colls & 1u << coll) || info->one_node)
				continue;
			for (a.param = SWC_PARAM_DEFAULT; a.param < (hybrid ? 7 : 0); a.param++)
				good &= compare(a);
			a.param = SWC_PARAM_DEFAULT;
			a.ports = 1;
			good &= compare(a);
		}
	if (!good)
		printf("# on %s\n", text);
	swc_topo_free(&t);
	return good;
}

static void test_shapes(void)
{
	static const char *const shapes[] = { "torus:4x4",
					      "torus:16x4",
					      "torus:2x8",
					      "torus:2x2x2",
					      "torus:8x4x2",
					      "torus:3x5",
					      "torus:9x3",
					      "torus:6x4",
					      "torus:5x7",
					      "torus:1x8",
					      "mesh:4x4",
					      "mesh:7",
					      "mesh:8",
					      "mesh:10",
					      "mesh:2x8",
					      "mesh:5x6",
					      "mesh:3x9",
					      "mesh:13",
					      "mesh:1x14",
					      "mesh:4x8@400Gbps/100Gbps",
					      "torus:4x4*2",
					      "ring:3*1,2,3",
					      "torus:2x2x2x2",
					      "torus:4x4@400Gbps/100Gbps",
					      "torus:9x3@10Gbps/30Gbps" };
	static const char *const large[] = { "torus:8x8", "torus:4x16", "mesh:8x4x2", "torus:32x2",
					     "mesh:7x5x2x3" };
	bool good = true;
	char text[20];

	for (uint32_t n = 2; n <= 18; n++) {
		snprintf(text, sizeof(text), "ring:%u", n);
		good &= compare_all(text);
		snprintf(text, sizeof(text), "switch:%u", n);
		good &= compare_all(text);
	}
	ok(good && compare_all("ring:32"), "rings and switches: as from the plans of all ranks");
	good = true;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		good &= compare_all(shapes[i]);
	for (size_t i = 0; !short_form() && i < sizeof(large) / sizeof(large[0]); i++)
		good &= compare_all(large[i]);
	ok(good, "tori and meshes: as from the plans of all ranks");
}

/* Many dimensions of one size. Of rings, whose routes are counted link by link, larger ones too. */
static void test_cubes(void)
{
	static const char *const small[] = { "torus:2x2x2x2x2",
					     "torus:3x3x3",
					     "torus:4x4x2",
					     "mesh:3x3x3",
					     "mesh:2x2x2x2x2",
					     "torus:1x4x4x1",
					     "torus:3x3x3@10Gbps/30Gbps/30Gbps" };
	static const char *const large[] = {
		"torus:2x2x2x2x2x2x2x2", "torus:3x3x3x3x3", "torus:4x4x4x4",
		"torus:4x4x4x2",	 "torus:6x6x6",	    "torus:16x16",
		"mesh:3x3x3x3x3",	 "mesh:4x4x4x4",    "torus:4x4x4@30Gbps/10Gbps/30Gbps"
	};
	static const enum swc_algo rings[] = { SWC_ALGO_RING, SWC_ALGO_RING2,
					       SWC_ALGO_HAMILTONIAN };
	bool good = true;

	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
		good &= compare_all(small[i]);
	ok(good, "many equal dimensions: as from the plans of all ranks");
	good = true;
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		struct swc_topo t = topo_of(large[i]);

		for (size_t k = 0; k < sizeof(rings) / sizeof(rings[0]); k++)
			for (enum swc_coll coll = SWC_ALLREDUCE; coll <= SWC_ALLGATHER; coll++)
				good &= compare((struct swc_plan_args){ .coll = coll,
									.algo = rings[k],
									.param = SWC_PARAM_DEFAULT,
									.topo = &t,
									.nranks = t.nranks });
		swc_topo_free(&t);
	}
	ok(good, "rings on many equal dimensions: likewise, if they have plans");
}

/* A million ranks: what is known of small networks holds. */
static void test_large(void)
{
	static const struct {
		const char *topo, *algo;
		uint32_t steps;
		double psi_xi;
	} rows[] = {
		{ "torus:1024x1024", "swing-b", 40, 1.199 },
		{ "torus:1024x1024", "bucket2", 2048, 1 },
		{ "torus:1024x1024", "recdoub", 20, 0 },
		{ "switch:1048576", "swing-b", 40, 2 },
		{ "switch:1048576", "recdoub", 20, 20 },
		{ "ring:1048576", "mirrored", 40, 10 },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct swc_plan_args a = args_of(rows[i].algo, SWC_ALLREDUCE, 0);
		struct swc_topo t;
		struct swc_cost c;

		if (swc_topo_parse(&t, rows[i].topo, NULL, 0))
			abort();
		a.topo = &t;
		a.nranks = t.nranks;
		if (swc_cost_estimate(&a, 1, &c, NULL, NULL, NULL, 0) || c.sampled ||
		    c.phased.steps != rows[i].steps ||
		    (rows[i].psi_xi > 0 && fabs(c.psi_xi / rows[i].psi_xi - 1) > 0.002)) {
			printf("# %s on %s: %u steps, %g, %u sampled\n", rows[i].algo, rows[i].topo,
			       c.phased.steps, c.psi_xi, c.sampled);
			good = false;
		}
		swc_topo_free(&t);
	}
	ok(good, "a million ranks, from one plan");
}

/* Are costs from one plan those of all plans, but for the ranges of blocks? */
static bool one_plan(const char *shape, const char *algo, enum swc_coll coll)
{
	struct swc_plan_args a = args_of(algo, coll, 0);
	struct swc_cost all, some;
	struct swc_topo t;
	bool good;

	if (swc_topo_parse(&t, shape, NULL, 0))
		abort();
	a.topo = &t;
	a.nranks = t.nranks;
	good = !swc_cost_compute(&a, &all, NULL, NULL, NULL, 0) &&
	       !swc_cost_estimate(&a, 1, &some, NULL, NULL, NULL, 0);
	some.phased.last_share = all.phased.last_share;
	some.eager.last_share = all.eager.last_share;
	good = good && !some.sampled && same_cost(&some, &all);
	if (!good)
		printf("# %s, collective %d, on %s: %u sampled\n", algo, coll, shape, some.sampled);
	swc_topo_free(&t);
	return good;
}

/* Swing on sides that are even: ranks send as much in each step, if not in the same ranges. */
static void test_even(void)
{
	static const char *const shapes[] = {
		"ring:6",     "ring:10",     "ring:14",
		"switch:18",  "torus:6x4",   "torus:6x10",
		"torus:12x2", "torus:4x2x6", "torus:10x6@10Gbps/30Gbps",
		"mesh:14",    "mesh:6x10"
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (enum swc_coll coll = SWC_ALLREDUCE; coll <= SWC_ALLGATHER; coll++)
			good &= one_plan(shapes[i], "swing-b", coll);
	ok(good, "swing-b on even sides: from one plan");
}

/* Butterflies whose blocks have owners, on powers of two: the same. */
static void test_owners(void)
{
	static const char *const shapes[] = { "ring:16",   "switch:8",	  "torus:8x4",
					      "torus:2x8", "torus:4x2x4", "torus:4x8@10Gbps/30Gbps",
					      "mesh:16",   "mesh:4x16" };
	static const char *const algos[] = { "rabenseifner", "mirrored", "swing-b" };
	bool good = true;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (size_t k = 0; k < sizeof(algos) / sizeof(algos[0]); k++)
			good &= one_plan(shapes[i], algos[k], SWC_ALLGATHER) &&
				one_plan(shapes[i], algos[k], SWC_REDUCE_SCATTER);
	ok(good, "reduce-scatter and allgather on powers of two: from one plan");
}

static void test_sample(void)
{
	/* The steps of the first ones are aligned: a sample cannot find more than there is. */
	static const char *const algos[] = { "twosided", "circulant", "ordered" };
	bool good = true;

	for (size_t i = 0; i < sizeof(algos) / sizeof(algos[0]); i++) {
		struct swc_plan_args a = args_of(algos[i], SWC_ALLREDUCE, 0);
		struct swc_cost all, some;
		struct swc_topo t;

		if (swc_topo_parse(&t, "torus:10x13", NULL, 0))
			abort();
		a.topo = &t;
		a.nranks = t.nranks;
		good &= !swc_cost_compute(&a, &all, NULL, NULL, NULL, 0) &&
			!swc_cost_estimate(&a, 20, &some, NULL, NULL, NULL, 0) &&
			some.sampled == 8 && some.phased.steps > 0 && some.phased.load > 0;
		if (i < 2)
			good &= some.phased.steps <= all.phased.steps &&
				some.phased.hops <= all.phased.hops &&
				some.phased.load <= all.phased.load * 1.00001;
		if (!good)
			printf("# %s: %u sampled, %u/%llu/%g of %u/%llu/%g\n", algos[i],
			       some.sampled, some.phased.steps,
			       (unsigned long long)some.phased.hops, some.phased.load,
			       all.phased.steps, (unsigned long long)all.phased.hops,
			       all.phased.load);
		swc_topo_free(&t);
	}
	ok(good, "a sample says that it is one");
}

/* A tree on so many nodes that it is estimated: its rounds are known. */
static bool estimated_tree(const char *shape, const char *algo, enum swc_coll coll, bool full)
{
	struct swc_plan_args a = args_of(algo, coll, 0);
	struct swc_cost all, some;
	struct swc_topo t;
	double load;
	bool good;

	if (swc_topo_parse(&t, shape, NULL, 0))
		abort();
	a.topo = &t;
	a.nranks = t.nranks;
	a.root = swc_coll_has_root(coll) ? 5 : 0;
	good = !swc_cost_compute(&a, &all, NULL, NULL, NULL, 0) &&
	       !swc_cost_estimate(&a, 20, &some, NULL, NULL, NULL, 0) && some.sampled;
	load = some.eager.load / all.eager.load;
	if (full)
		good = good && some.eager.steps == all.eager.steps &&
		       some.eager.hops <= all.eager.hops &&
		       4 * some.eager.hops >= 3 * all.eager.hops;
	else
		good = good && some.eager.steps <= all.eager.steps + 2 &&
		       some.eager.steps + 2 >= all.eager.steps;
	good = good && load > 0.45 && load < 1.35;
	if (!good)
		printf("# %s, collective %d, on %s: %u/%llu/%g of %u/%llu/%g\n", algo, coll, shape,
		       some.eager.steps, (unsigned long long)some.eager.hops, some.eager.load,
		       all.eager.steps, (unsigned long long)all.eager.hops, all.eager.load);
	swc_topo_free(&t);
	return good;
}

static void test_trees(void)
{
	static const char *const full[] = { "torus:16x16", "ring:256", "switch:256" };
	static const char *const others[] = { "torus:10x13", "ring:301", "switch:201",
					      "mesh:12x11" };
	static const char *const algos[] = { "tree", "dtree", "bine" };
	bool good = true;

	for (size_t i = 0; i < sizeof(algos) / sizeof(algos[0]); i++)
		for (enum swc_coll coll = 0; coll < SWC_COLL_NR; coll++) {
			struct swc_plan_args a = args_of(algos[i], coll, 0);

			if (!(swc_algo_info(a.algo)->colls & 1u << coll) || coll == SWC_ALLTOALL)
				continue;
			for (size_t k = 0; k < sizeof(full) / sizeof(full[0]); k++)
				good &= estimated_tree(full[k], algos[i], coll, true);
			for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
				good &= estimated_tree(others[k], algos[i], coll, false);
		}
	ok(good, "trees: a sample has the rounds of all plans");
}

/*
 * The double tree on so many ranks that it is estimated, beside what all of its messages make: steps, hops and load,
 * computed once with room for the loads of all links.
 */
static void test_tall_trees(void)
{
	static const struct {
		const char *topo;
		uint32_t steps, hops;
		double psi_xi;
	} rows[] = {
		{ "torus:181x181", 31, 1654, 28.25 },	  { "torus:255x257", 33, 2164, 27.75 },
		{ "torus:40x41x40", 35, 813, 29.25 },	  { "torus:4093x16", 33, 7238, 20.75 },
		{ "torus:8191x8", 33, 14366, 19 },	  { "torus:256x256", 35, 2166, 23.75 },
		{ "ring:65521", 33, 114686, 15 },	  { "ring:59049", 33, 114686, 15 },
		{ "torus:101x103x100", 41, 2193, 39.75 },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct swc_plan_args a = args_of("dtree", SWC_ALLREDUCE, 0);
		struct swc_topo t = topo_of(rows[i].topo);
		struct swc_cost c;

		a.topo = &t;
		a.nranks = t.nranks;
		if (swc_cost_estimate(&a, 512, &c, NULL, NULL, NULL, 0) || !c.sampled ||
		    c.eager.steps != rows[i].steps || c.eager.hops > rows[i].hops ||
		    (double)c.eager.hops < 0.95 * rows[i].hops ||
		    fabs(c.psi_xi / rows[i].psi_xi - 1) > 0.25) {
			printf("# on %s: %u steps, %llu hops, %g\n", rows[i].topo, c.eager.steps,
			       (unsigned long long)c.eager.hops, c.psi_xi);
			good = false;
		}
		swc_topo_free(&t);
	}
	ok(good, "the double tree on many ranks: a sample shows its longest messages");
}

/* Is an estimate near to the cost by all plans? */
static bool is_near(const char *shape, const char *algo)
{
	struct swc_plan_args a = args_of(algo, SWC_ALLREDUCE, 0);
	struct swc_topo t = topo_of(shape);
	struct swc_cost all, some;
	bool good;

	a.topo = &t;
	a.nranks = t.nranks;
	good = !swc_cost_compute(&a, &all, NULL, NULL, NULL, 0) &&
	       !swc_cost_estimate(&a, 8, &some, NULL, NULL, NULL, 0) && some.sampled &&
	       some.eager.steps == all.eager.steps &&
	       fabs((double)some.eager.hops / (double)all.eager.hops - 1) < 0.03 &&
	       fabs(some.psi_xi / all.psi_xi - 1) < 0.15;
	if (!good)
		printf("# %s on %s: %u/%llu/%g of %u/%llu/%g\n", algo, shape, some.eager.steps,
		       (unsigned long long)some.eager.hops, some.psi_xi, all.eager.steps,
		       (unsigned long long)all.eager.hops, all.psi_xi);
	swc_topo_free(&t);
	return good;
}

static void test_mesh_sample(void)
{
	ok(is_near("mesh:37x41", "circulant") && is_near("mesh:100x17", "circulant") &&
		   is_near("torus:37x41", "circulant"),
	   "shifts of a sample on a mesh: the load in its middle");
}

/* Has an estimate of an algorithm's hops what it takes from one rank to the farthest one? */
static bool is_far(const struct swc_topo *t, enum swc_algo algo, enum swc_coll coll)
{
	struct swc_plan_args a = { .coll = coll,
				   .algo = algo,
				   .param = SWC_PARAM_DEFAULT,
				   .topo = t,
				   .nranks = t->nranks };
	struct swc_cost c;
	bool good;

	if (!(swc_algo_info(algo)->colls & 1u << coll) || swc_algo_info(algo)->one_node ||
	    swc_algo_info(algo)->serial || swc_cost_estimate(&a, 8, &c, NULL, NULL, NULL, 0))
		return true;
	good = c.eager.hops >= swc_topo_diameter(t) && c.phased.hops >= swc_topo_diameter(t);
	if (!good)
		printf("# %s, collective %d: %llu hops, %u sampled\n", swc_algo_name(algo), coll,
		       (unsigned long long)c.eager.hops, c.sampled);
	return good;
}

static void test_diameter(void)
{
	static const char *const shapes[] = {
		"torus:127x129", "torus:25x25x25", "torus:16x4095",
		"ring:59049",	 "mesh:130x131",   "torus:1021x1024"
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct swc_topo t = topo_of(shapes[i]);

		for (enum swc_algo algo = 0; algo < SWC_ALGO_NR; algo++) {
			good &= is_far(&t, algo, SWC_ALLREDUCE);
			good &= is_far(&t, algo, SWC_ALLGATHER);
			good &= is_far(&t, algo, SWC_BARRIER);
		}
		if (!good)
			printf("# on %s\n", shapes[i]);
		swc_topo_free(&t);
	}
	ok(good, "no estimate has fewer hops than there are between two ranks");
}

/* An allreduce of many ranks needs no tree. */
static void test_choice(void)
{
	static const char *const topos[] = { "torus:64x64", "ring:4096", "switch:4096",
					     "torus:30x30", "ring:600" };
	bool good = true;

	for (size_t i = 0; i < sizeof(topos) / sizeof(topos[0]); i++)
		for (double bytes = 32; bytes < 1e9; bytes *= 256) {
			struct swc_choices c;
			struct swc_choice got;
			struct swc_topo t;

			if (swc_topo_parse(&t, topos[i], NULL, 0))
				abort();
			swc_choices_init(&c, &t, false);
			got = swc_choices_take(&c, SWC_ALLREDUCE, SWC_F32, SWC_SUM, (uint64_t)bytes,
					       1);
			good &= got.reason == SWC_REASON_MODEL && got.algo != SWC_ALGO_TREE &&
				got.algo != SWC_ALGO_DTREE;
			got = swc_choices_take(&c, SWC_BROADCAST, SWC_F32, SWC_SUM, (uint64_t)bytes,
					       1);
			good &= got.reason == SWC_REASON_MODEL;
			swc_choices_free(&c);
			swc_topo_free(&t);
		}
	ok(good, "the choice on large networks");
}

/* CPU time to add many messages from node 0 to another one of a long side. */
static double adding(uint32_t to)
{
	struct swc_topo t = topo_of("torus:1024x4");
	struct swc_plan_args a = args_of("twosided", SWC_ALLREDUCE, 0);
	struct swc_symmetric sym;
	clock_t begin;
	uint32_t hops;

	a.topo = &t;
	a.nranks = t.nranks;
	swc_symmetric_begin(&sym, &a, &t, SWC_SYMMETRY_LINES, 2048);
	if (sym.kind != SWC_SYMMETRY_LINES || swc_symmetric_open(&sym, &a, 1))
		abort();
	begin = clock();
	for (int i = 0; i < 20000; i++)
		if (swc_symmetric_add(&sym, 0, 0, 0, 0, to, 1, false, &hops))
			abort();
	begin = clock() - begin;
	if (swc_symmetric_peak(&sym, 0) < 19999 || swc_symmetric_peak(&sym, 0) > 20001)
		abort();
	swc_symmetric_free(&sym);
	swc_topo_free(&t);
	return (double)begin / CLOCKS_PER_SEC;
}

static void test_far(void)
{
	double one = adding(4), far = adding(4 * 500);

	if (!ok(far < 10 * one + 1e-3, "a message over 500 links takes no more time than others"))
		printf("# %g s, over one %g s\n", far, one);
}

int main(void)
{
	printf("TAP version 13\n");
	test_shapes();
	test_cubes();
	test_large();
	test_even();
	test_owners();
	test_sample();
	test_trees();
	test_tall_trees();
	test_mesh_sample();
	test_diameter();
	test_choice();
	test_far();
	return done();
}
