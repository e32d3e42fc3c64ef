// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of butterflies, trees and all-to-alls that is computed without plans is the one that the
 * model finds in the plans of all ranks: on lines, tori, meshes and switches, folded or not. SWC_TEST_SEED
 * repeats the random ones. SWC_TEST_SHORT=1: a third of these. TAP on stdout.
 */
#include <math.h>
#include <stdlib.h>

#include "kmod/core/plan_check.h"
#include "plan/model/bruck_cost.h"
#include "plan/model/butterfly_cost.h"
#include "plan/model/rotate_cost.h"
#include "plan/model/tree_cost.h"
#include "random.h"
#include "tap.h"
#include "topos.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define RANDOM 12

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-5 * fabs(b) + 1e-12;
}

static bool same_timing(const struct swc_timing *a, const struct swc_timing *b)
{
	return a->steps == b->steps && a->hops == b->hops && near(a->load, b->load);
}

static int find_cost(const struct swc_plan_args *args, struct swc_cost *cost)
{
	if (!swc_butterfly_cost(args, cost) || !swc_tree_cost(args, cost))
		return 0;
	return swc_bruck_cost(args, cost) ? swc_rotate_cost(args, cost) : 0;
}

/* The cost, or none, as by all plans. */
static bool same_cost(const struct swc_plan_args *args, bool *none)
{
	struct swc_cost fast, all;
	int ret = find_cost(args, &fast);
	bool good;

	*none = swc_cost_compute(args, &all, NULL, NULL, NULL, 0);
	if (ret || *none) {
		if (!ret != !*none)
			printf("# a cost: %d, plans: %d\n", !ret, !*none);
		return !ret == !*none;
	}
	/* Of a broadcast, a pair whose two ways round are equally long may need one connection less. */
	good = same_timing(&fast.eager, &all.eager) && same_timing(&fast.phased, &all.phased) &&
	       near(fast.reduced, all.reduced) && near(fast.psi_xi, all.psi_xi) &&
	       fast.order_varies == all.order_varies && fast.extra == all.extra &&
	       (args->coll != SWC_ALLTOALL ||
		(fast.copy_steps == all.copy_steps && fast.copies == all.copies &&
		 near(fast.copied, all.copied))) &&
	       (fast.connections == all.connections ||
		(args->coll == SWC_BROADCAST && fast.connections > all.connections));
	if (!good)
		printf("# %u steps, %llu hops, load %g, reduced %g, %u connections, %llu more messages,"
		       " %llu copies (%g); by plans %u, %llu, %g, %g, %u, %llu, %llu (%g)\n",
		       fast.eager.steps, (unsigned long long)fast.eager.hops, fast.eager.load,
		       fast.reduced, fast.connections, (unsigned long long)fast.extra,
		       (unsigned long long)fast.copies, fast.copied, all.eager.steps,
		       (unsigned long long)all.eager.hops, all.eager.load, all.reduced,
		       all.connections, (unsigned long long)all.extra,
		       (unsigned long long)all.copies, all.copied);
	return good;
}

static bool same_params(struct swc_plan_args *a)
{
	bool good = true, none = false;

	for (uint32_t i = 0; !none && swc_algo_param(a->algo, a->coll, i, &a->param); i++)
		good &= same_cost(a, &none);
	if (a->algo == SWC_ALGO_DTREE) {
		a->param = 1 + (int32_t)rnd(9);
		good &= same_cost(a, &none);
	}
	return good;
}

static bool has_rotate_cost(const struct swc_topo *t, enum swc_coll coll)
{
	return coll == SWC_ALLTOALL && t->kind != SWC_TOPO_SWITCH;
}

static bool same_costs(const char *text)
{
	static const enum swc_algo algos[] = {
		SWC_ALGO_RECDOUB, SWC_ALGO_RABENSEIFNER, SWC_ALGO_MIRRORED, SWC_ALGO_SWING_L,
		SWC_ALGO_SWING_B, SWC_ALGO_SWING_H,	 SWC_ALGO_BINE_SAG, SWC_ALGO_BINE,
		SWC_ALGO_BRUCK,	  SWC_ALGO_ROTATE,
	};
	struct swc_topo t = topo_of(text);
	bool good = true;

	for (size_t k = 0; k < COUNT(algos); k++)
		for (enum swc_coll coll = 0; coll < SWC_COLL_NR; coll++) {
			struct swc_plan_args a = {
				.coll = coll, .algo = algos[k], .topo = &t, .nranks = t.nranks
			};

			if (!(swc_algo_info(a.algo)->colls & 1u << coll) ||
			    (a.algo == SWC_ALGO_ROTATE && !has_rotate_cost(&t, coll)))
				continue;
			good &= same_params(&a);
			a.root = swc_coll_has_root(coll) ? rnd(t.nranks) : 0;
			good &= !a.root || same_params(&a);
			if (!good)
				printf("# %s, collective %d on %s, root %u\n",
				       swc_algo_name(a.algo), coll, text, a.root);
		}
	swc_topo_free(&t);
	return good;
}

static void test_shapes(void)
{
	static const char *const shapes[] = {
		"ring:2",	   "ring:3",
		"ring:5",	   "ring:6",
		"ring:8",	   "ring:13",
		"ring:30",	   "ring:33",
		"torus:3x5",	   "torus:4x6",
		"torus:1x5",	   "torus:2x3x4",
		"torus:3x3x3",	   "torus:7x9",
		"mesh:7",	   "mesh:5x6",
		"mesh:4x4",	   "mesh:3x1x7",
		"mesh:4x3x6",	   "mesh:2x2x2x5",
		"switch:7",	   "switch:8",
		"switch:12",	   "switch:21",
		"switch:5@3rails", "switch:12@2rails",
		"torus:2x17",	   "torus:6x6@100Gbps/25Gbps",
		"torus:2x2x2",	   "torus:4x4x4",
		"torus:6x1x4",	   "torus:4x3x2@10Gbps/90Gbps/40Gbps",
	};
	bool good = true;

	for (size_t i = 0; i < COUNT(shapes); i++)
		good &= same_costs(shapes[i]);
	ok(good, "costs without plans are those of all plans");
}

static void test_random(void)
{
	bool good = true;

	for (int i = 0; i < (short_form() ? RANDOM / 3 : RANDOM); i++) {
		uint32_t kind = rnd(3), ndims = 1 + rnd(3),
			 most = ndims == 1   ? 90
				: ndims == 2 ? 11
					     : 5;
		char text[64];
		int n = kind == 2 ? sprintf(text, "switch:%u", 2 + rnd(90))
				  : sprintf(text, "%s:%u", kind ? "torus" : "mesh", 2 + rnd(most));

		for (uint32_t k = 1; kind < 2 && k < ndims; k++)
			n += sprintf(text + n, "x%u", 2 + rnd(most));
		good &= same_costs(text);
	}
	ok(good, "the same on random shapes");
}

/* The load of a tree's plans; 0 if there is none. */
static double tree_load(const struct swc_topo *t, enum swc_coll coll, uint32_t root)
{
	struct swc_plan_args a = { .coll = coll,
				   .algo = SWC_ALGO_TREE,
				   .param = SWC_PARAM_DEFAULT,
				   .root = root,
				   .topo = t,
				   .nranks = t->nranks };
	struct swc_cost cost;

	return swc_cost_compute(&a, &cost, NULL, NULL, NULL, 0) ? 0 : cost.eager.load;
}

/* On networks of one and two dimensions. */
static void test_mirror(void)
{
	bool good = true;

	for (uint32_t i = 1; i < 9 * 9 * 2; i++) {
		uint32_t d = 1 + i % 9, e = 1 + i / 9 % 9, root;
		char text[32];
		struct swc_topo t;
		double down, up;

		if (d * e < 2)
			continue;
		snprintf(text, sizeof(text), "%s:%ux%u", i < 81 ? "torus" : "mesh", d, e);
		t = topo_of(text);
		root = rnd(t.nranks);
		down = tree_load(&t, SWC_BROADCAST, root);
		up = tree_load(&t, SWC_REDUCE, root);
		if (!(down > 0) || down > up * (1 + 1e-9)) {
			printf("# %s, root %u: %g down, %g up\n", text, root, down, up);
			good = false;
		}
		swc_topo_free(&t);
	}
	ok(good, "a tree's broadcast loads no link more than its reduction");
}

/* What it cannot tell, it refuses. */
static void test_others(void)
{
	static const char *const others[] = { "torus:4x4*2", "torus:4x4@10Gbps,3-2=5Gbps",
					      "ring:1048576", "switch:1" };
	bool good = true;

	for (size_t i = 0; i < COUNT(others); i++) {
		struct swc_topo t = topo_of(others[i]);
		struct swc_plan_args a = { .coll = SWC_ALLREDUCE,
					   .algo = SWC_ALGO_SWING_B,
					   .param = SWC_PARAM_DEFAULT,
					   .topo = &t,
					   .nranks = t.nranks };
		struct swc_cost cost;

		good &= swc_butterfly_cost(&a, &cost) == -EOPNOTSUPP;
		a.algo = SWC_ALGO_TREE;
		good &= swc_tree_cost(&a, &cost) == -EOPNOTSUPP;
		swc_topo_free(&t);
	}
	ok(good, "nodes of several ranks, slow links and a million ranks are left to the plans");
}

/* How long can a plan be whose cost is known? */
static void test_largest(void)
{
	static const char *const largest[] = { "torus:90x90", "switch:4001@16rails", "switch:89000",
					       "switch:91000" };
	bool good = true;

	for (size_t i = 0; i < COUNT(largest); i++) {
		struct swc_topo t = topo_of(largest[i]);

		for (int k = 0; k < 4; k++) {
			static const enum swc_algo algos[] = { SWC_ALGO_SWING_B, SWC_ALGO_BINE,
							       SWC_ALGO_BRUCK, SWC_ALGO_ROTATE };
			struct swc_plan_args a = { .coll = k ? SWC_ALLTOALL : SWC_ALLREDUCE,
						   .algo = algos[k],
						   .param = SWC_PARAM_DEFAULT,
						   .topo = &t,
						   .nranks = t.nranks,
						   .rank = t.nranks - 1 };
			struct swc_cost cost;
			size_t bytes;
			void *plan;

			if (find_cost(&a, &cost))
				continue;
			good &= !swc_plan_build(&a, &plan, &bytes, NULL, 0);
			if (good)
				free(plan);
		}
		swc_topo_free(&t);
	}
	ok(good, "what has a cost has a plan");
}

int main(void)
{
	seed_rnd();
	test_shapes();
	test_random();
	test_mirror();
	test_others();
	test_largest();
	return done();
}
