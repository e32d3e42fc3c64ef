// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the choice does not compute cannot win: it is the same as from the costs of all candidates. And
 * what it computes without plans is what the model finds in them. SWC_TEST_SHORT=1: one type and number
 * of choices for each size, and fewer networks of many ranks. TAP on stdout.
 */
#include <math.h>
#include <stdlib.h>

#include "plan/model/bruck_cost.h"
#include "plan/model/by_nodes_cost.h"
#include "plan/model/bucket_cost.h"
#include "plan/model/butterfly_cost.h"
#include "plan/select/choose.h"
#include "kmod/core/plan_check.h"
#include "random.h"
#include "tap.h"
#include "topos.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
/* Plans that are built for a cost; as in choose.c. */
#define MOST_RANKS 512
#define SMALL (COUNT(shapes) - 3)

static const char *const shapes[] = {
	"ring:2",
	"ring:7",
	"ring:16",
	"switch:5",
	"switch:16",
	"mesh:4x4",
	"mesh:9",
	"torus:4x4",
	"torus:2x8",
	"torus:3x5",
	"torus:2x3x4",
	"torus:2x16@400Gbps/100Gbps",
	"torus:5x5@100Gbps/25Gbps,2us",
	"torus:4x2x2@100Gbps/50Gbps/10Gbps",
	"torus:4x4*2",
	"ring:6*3",
	"ring:4*2",
	"ring:8*4",
	"switch:8*2",
	"ring:3*1,2,3",
	/* The rest: for costs without plans only. */
	"torus:9x9",
	"torus:2x60",
	"torus:3x301",
};

/* ---- the choice ---- */

/* Candidates with their costs, so that none has to be guessed. */
static void know_all(struct swc_choices *c, enum swc_coll coll, uint32_t most_ranks)
{
	struct swc_candidate *cand = calloc(SWC_ALGO_NR * SWC_ALGO_PARAMS, sizeof(*cand));
	unsigned int n = 0;

	if (!cand)
		abort();
	for (enum swc_algo algo = 0; algo < SWC_ALGO_NR; algo++) {
		struct swc_plan_args a = {
			.coll = coll, .algo = algo, .topo = c->topo, .nranks = c->topo->nranks
		};

		if (!(swc_algo_info(algo)->colls & 1u << coll) || swc_algo_info(algo)->one_node)
			continue;
		for (uint32_t i = 0; swc_algo_param(algo, coll, i, &a.param); i++) {
			cand[n] = (struct swc_candidate){ .algo = algo, .param = a.param };
			/* Of Bruck's, rank 0 alone lacks a message that goes on at the first rank. */
			if (swc_bruck_cost(&a, &cand[n].cost) &&
			    swc_cost_estimate(&a, most_ranks, &cand[n].cost, NULL, NULL, NULL, 0))
				break;
			cand[n].known = true;
			cand[n].steps = cand[n].cost.eager.steps;
			cand[n].order_varies = cand[n].cost.order_varies;
			n++;
		}
	}
	c->coll[coll].cand = cand;
	c->coll[coll].n = n;
}

/*
 * The same choice? Where two candidates are equal in everything, which of them is chosen follows from
 * their order: not compared.
 */
static bool same_choice(const struct swc_topo *t, enum swc_coll coll, enum swc_dtype dtype,
			uint64_t bytes, unsigned int best, struct swc_choices *all)
{
	struct swc_choices some;
	struct swc_choice a, b;
	bool same;

	swc_choices_init(&some, t, false);
	a = swc_choices_take(&some, coll, dtype, SWC_SUM, bytes, best);
	b = swc_choices_take(all, coll, dtype, SWC_SUM, bytes, best);
	same = a.reason == b.reason && fabs(a.ns - b.ns) <= 2e-6 * b.ns;
	if (!same)
		printf("# collective %d, %llu bytes: %s:%d in %g ns, of all %s:%d in %g\n", coll,
		       (unsigned long long)bytes, swc_algo_name(a.algo), a.param, a.ns,
		       swc_algo_name(b.algo), b.param, b.ns);
	swc_choices_free(&some);
	return same;
}

static bool same_choices(const char *text)
{
	static unsigned int turn;
	/* Where dimensions have different rates, a choice takes long. */
	uint64_t factor = short_form() && strchr(text, '@') ? 1 << 21 : 128;
	struct swc_topo t = topo_of(text);
	bool good = true;

	for (enum swc_coll coll = 0; coll < SWC_COLL_NR; coll++) {
		struct swc_choices all;

		swc_choices_init(&all, &t, false);
		know_all(&all, coll, MOST_RANKS);
		for (uint64_t bytes = 8; bytes <= 1ull << 35; bytes *= factor, turn++) {
			if (!short_form() || turn % 3 == 0)
				good &= same_choice(&t, coll, SWC_I32, bytes, 1, &all);
			if (!short_form() || turn % 3 == 1)
				good &= same_choice(&t, coll, SWC_F32, 4 * bytes, 1, &all);
			if (!short_form() || turn % 3 == 2)
				good &= same_choice(&t, coll, SWC_F32, bytes, SWC_CHOICES_BEST,
						    &all);
		}
		swc_choices_free(&all);
	}
	if (!good)
		printf("# on %s\n", text);
	swc_topo_free(&t);
	return good;
}

static void test_choices(void)
{
	bool good = true;

	for (size_t i = 0; i < SMALL; i++)
		good &= same_choices(shapes[i]);
	ok(good, "the choice is that of all candidates");
}

/*
 * So many ranks that some costs are estimated: by the costs of all plans, what was chosen is hardly slower
 * than the best.
 */
static bool chooses_well(const struct swc_topo *t, enum swc_coll coll, double most)
{
	struct swc_choices all, some;
	bool good = true;

	swc_choices_init(&all, t, false);
	swc_choices_init(&some, t, false);
	know_all(&all, coll, t->nranks);
	for (uint64_t bytes = 32; bytes <= 1ull << 29; bytes *= 64) {
		struct swc_choice got = swc_choices_take(&some, coll, SWC_I32, SWC_SUM, bytes, 1);
		double best = 0, ns = 0;

		for (unsigned int i = 0; i < all.coll[coll].n; i++) {
			const struct swc_candidate *cand = &all.coll[coll].cand[i];
			double is = swc_cost_time(&cand->cost, (double)bytes, &all.net, NULL);

			best = best > 0 && best < is ? best : is;
			ns = cand->algo == got.algo && cand->param == got.param ? is : ns;
		}
		if (ns > 0 && ns <= most * best)
			continue;
		printf("# collective %d, %llu bytes: %s:%d in %g ns, the best in %g\n", coll,
		       (unsigned long long)bytes, swc_algo_name(got.algo), got.param, ns, best);
		good = false;
	}
	swc_choices_free(&all);
	swc_choices_free(&some);
	return good;
}

static void test_estimated(void)
{
	static const char *const large[] = { "torus:25x21", "switch:576", "mesh:24x24" };
	static const char *const larger[] = { "mesh:25x27", "ring:701" };
	bool good = true;

	for (size_t i = 0; i < COUNT(large); i++) {
		struct swc_topo t = topo_of(large[i]);

		for (enum swc_coll coll = 0; coll < SWC_COLL_NR; coll++)
			if (swc_coll_has_root(coll))
				good &= chooses_well(&t, coll, 1.0201);
		if (!good)
			printf("# on %s\n", large[i]);
		swc_topo_free(&t);
	}
	for (size_t i = 0; i < (short_form() ? 1 : COUNT(larger)); i++) {
		struct swc_topo t = topo_of(larger[i]);

		for (enum swc_coll coll = 0; coll < SWC_COLL_NR; coll++)
			if (swc_coll_has_root(coll))
				good &= chooses_well(&t, coll, 1.0201);
		if (!good)
			printf("# on %s\n", larger[i]);
		swc_topo_free(&t);
	}
	ok(good, "of trees, the best is chosen");
}

/* Folded butterflies, and Swing on odd sides. */
static void test_folded(void)
{
	static const char *const odd[] = { "ring:521", "torus:25x21", "mesh:23x23" };
	bool good = true;

	for (size_t i = 0; i < (short_form() ? 1 : COUNT(odd)); i++) {
		struct swc_topo t = topo_of(odd[i]);

		good &= chooses_well(&t, SWC_REDUCE_SCATTER, 1.0201) &&
			chooses_well(&t, SWC_ALLGATHER, 1.0201);
		if (!good)
			printf("# on %s\n", odd[i]);
		swc_topo_free(&t);
	}
	ok(good, "of folded butterflies, the best is chosen");
}

/* Plans that a choice has built, but for rings and trees: these are small. */
static uint32_t plans_built(struct swc_choices *c, enum swc_coll coll)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < c->coll[coll].n; i++) {
		const struct swc_candidate *cand = &c->coll[coll].cand[i];
		struct swc_plan_args a = { .coll = coll,
					   .algo = cand->algo,
					   .param = cand->param,
					   .topo = c->topo,
					   .nranks = c->topo->nranks };
		uint32_t plans = swc_cost_plans(&a, MOST_RANKS);
		struct swc_bucket_cost none;
		struct swc_cost known;
		bool without = swc_algo_info(cand->algo)->serial ||
			       !swc_bucket_cost(&none, c->topo, coll, cand->algo, cand->param) ||
			       (plans > 1 && !swc_butterfly_cost(&a, &known)) ||
			       !swc_bruck_cost(&a, &known) || !swc_by_nodes_cost(&a, &known);

		if (!without && cand->algo != SWC_ALGO_TREE && cand->algo != SWC_ALGO_DTREE)
			n += plans == 1 ? 1 : 3 + (cand->known ? plans : 0);
	}
	return n;
}

static void test_work(void)
{
	static const char *const large[] = { "torus:64x64", "ring:4096",     "switch:4096@4rails",
					     "mesh:64x64",  "mesh:16x16x16", "torus:63x65" };
	bool good = true;

	for (size_t i = 0; i < COUNT(large); i++) {
		struct swc_topo t = topo_of(large[i]);

		for (enum swc_coll coll = 0; coll < SWC_COLL_NR; coll++) {
			struct swc_choices c;
			uint32_t n;

			if (coll == SWC_ALLREDUCE || swc_coll_has_root(coll))
				continue;
			swc_choices_init(&c, &t, false);
			swc_choices_take(&c, coll, SWC_F32, SWC_SUM, 1 << 18, 1);
			n = plans_built(&c, coll);
			if (n > 40) {
				printf("# %s, collective %d: %u plans\n", large[i], coll, n);
				good = false;
			}
			swc_choices_free(&c);
		}
		swc_topo_free(&t);
	}
	ok(good, "the first choice on 4096 ranks builds few plans");
}

/* Has each rank that is tried a plan of what is chosen? */
static bool has_plans(const struct swc_topo *t, enum swc_coll coll, const struct swc_choice *ch)
{
	for (uint32_t k = 0; k < 6; k++) {
		struct swc_plan_args a = { .coll = coll,
					   .algo = ch->algo,
					   .param = ch->param,
					   .topo = t,
					   .nranks = t->nranks,
					   .rank = k ? rnd(t->nranks) : 12345 };
		size_t bytes;
		void *plan;

		if (swc_plan_build(&a, &plan, &bytes, NULL, 0)) {
			printf("# collective %d, %s:%d: rank %u has no plan\n", coll,
			       swc_algo_name(ch->algo), ch->param, a.rank);
			return false;
		}
		free(plan);
	}
	return true;
}

/* Plans of a million ranks are not all equally long, and the longest ones may be too long. */
static void test_plans(void)
{
	static const char *const large[] = { "torus:98x102x104", "torus:1024x1022",
					     "torus:101x99x97", "ring:1048574" };
	static const enum swc_coll colls[] = { SWC_ALLREDUCE, SWC_REDUCE_SCATTER, SWC_BROADCAST };
	bool good = true;

	for (size_t i = 0; i < COUNT(large); i++) {
		struct swc_topo t = topo_of(large[i]);

		for (size_t k = 0; k < COUNT(colls); k++) {
			struct swc_choices c;

			swc_choices_init(&c, &t, false);
			for (uint64_t bytes = 32; bytes <= 1ull << 29; bytes *= 256) {
				struct swc_choice got = swc_choices_take(&c, colls[k], SWC_I32,
									 SWC_SUM, bytes, 1);

				good &= has_plans(&t, colls[k], &got);
			}
			swc_choices_free(&c);
		}
		if (!good)
			printf("# on %s\n", large[i]);
		swc_topo_free(&t);
	}
	ok(good, "all ranks have plans of what is chosen");
}

/* ---- costs without plans ---- */

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-5 * fabs(b);
}

static bool same_timing(const struct swc_timing *a, const struct swc_timing *b)
{
	return a->steps == b->steps && a->hops == b->hops && near(a->load, b->load);
}

/* Is the plan of rank 0 as large as the cost says? */
static bool same_size(const struct swc_plan_args *a, uint64_t bytes)
{
	size_t size;
	void *plan;

	if (swc_plan_build(a, &plan, &size, NULL, 0))
		return bytes > SWC_MAX_PLAN_BYTES;
	free(plan);
	return size == bytes;
}

static bool same_cost(const struct swc_topo *t, enum swc_coll coll, enum swc_algo algo,
		      int32_t param)
{
	struct swc_plan_args a = {
		.coll = coll, .algo = algo, .param = param, .topo = t, .nranks = t->nranks
	};
	struct swc_bucket_cost fast;
	struct swc_cost cost;
	bool good;

	if (swc_bucket_cost(&fast, t, coll, algo, param))
		return t->kind != SWC_TOPO_TORUS || t->nnodes < 2 ||
		       swc_cost_estimate(&a, UINT32_MAX, &cost, NULL, NULL, NULL, 0);
	if (fast.plan_bytes && !same_size(&a, fast.plan_bytes))
		return false;
	if (swc_cost_estimate(&a, UINT32_MAX, &cost, NULL, NULL, NULL, 0))
		return true;
	if (t->nlocal != 1)
		return fast.eager.steps <= cost.eager.steps && !fast.connections &&
		       !fast.plan_bytes &&
		       fast.eager.load <= 1.00001 * fmin(cost.eager.load, cost.phased.load);
	good = same_timing(&fast.eager, &cost.eager) && same_timing(&fast.phased, &cost.phased) &&
	       near(fast.reduced, cost.reduced) && fast.connections == cost.connections;
	if (!good)
		printf("# %s:%d, collective %d: %u steps, load %g or %g, reduced %g, %u connections;"
		       " by plans %u, %g or %g, %g, %u\n",
		       swc_algo_name(algo), param, coll, fast.eager.steps, fast.eager.load,
		       fast.phased.load, fast.reduced, fast.connections, cost.eager.steps,
		       cost.eager.load, cost.phased.load, cost.reduced, cost.connections);
	return good;
}

static void test_buckets(void)
{
	bool good = true;

	for (size_t i = 0; i < COUNT(shapes); i++) {
		struct swc_topo t = topo_of(shapes[i]);

		for (enum swc_coll coll = SWC_ALLREDUCE; coll <= SWC_ALLGATHER; coll++) {
			good &= same_cost(&t, coll, SWC_ALGO_BUCKET, SWC_PARAM_DEFAULT) &&
				same_cost(&t, coll, SWC_ALGO_BUCKET2, SWC_PARAM_DEFAULT);
			for (int32_t pieces = 1; pieces <= 128; pieces += pieces > 3 ? pieces : 1)
				good &= same_cost(&t, coll, SWC_ALGO_SPLIT, pieces);
		}
		if (!good)
			printf("# on %s\n", shapes[i]);
		swc_topo_free(&t);
	}
	ok(good, "bucket, bucket2, split: the cost of their plans, without them");
}

/* swing-b where sides are odd: how far two plans are from all. */
static void test_odd(void)
{
	static const char *const odd[] = { "ring:101", "torus:2x51", "torus:9x11", "torus:3x33",
					   "torus:15x15" };
	bool good = true;

	for (size_t i = 0; i < COUNT(odd); i++) {
		struct swc_topo t = topo_of(odd[i]);
		struct swc_plan_args a = { .coll = SWC_ALLREDUCE,
					   .algo = SWC_ALGO_SWING_B,
					   .param = SWC_PARAM_DEFAULT,
					   .topo = &t,
					   .nranks = t.nranks };
		struct swc_cost all, some;
		double ratio;

		if (swc_cost_compute(&a, &all, NULL, NULL, NULL, 0) ||
		    swc_cost_estimate(&a, 2, &some, NULL, NULL, NULL, 0))
			abort();
		ratio = some.eager.load / all.eager.load;
		if (some.sampled != 2 || some.eager.steps != all.eager.steps || ratio < 0.8 ||
		    ratio > 1.2 || some.connections != all.connections) {
			printf("# %s: %u plans, %u and %u steps, %u and %u connections, load %g\n",
			       odd[i], some.sampled, some.eager.steps, all.eager.steps,
			       some.connections, all.connections, ratio);
			good = false;
		}
		swc_topo_free(&t);
	}
	ok(good, "swing-b on odd sides: load from two plans");
}

int main(void)
{
	test_choices();
	test_estimated();
	test_folded();
	test_work();
	test_plans();
	test_buckets();
	test_odd();
	return done();
}
