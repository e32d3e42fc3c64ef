// SPDX-License-Identifier: GPL-2.0-only
/*
 * split: exactly once on tori of the literature and random ones, with random rates, in any number of
 * pieces; its time by the model against the closed form; what the library chooses.
 * SWC_TEST_SHORT=1: fewer random ones, and one collective on each of the others. TAP on stdout.
 */
#include <math.h>

#include "plan/algo/bucket.h"
#include "plan/model/model.h"
#include "plan/select/choose.h"
#include "plan/orders.h"
#include "plans.h"
#include "random.h"
#include "tap.h"

static const enum swc_coll colls[] = { SWC_ALLREDUCE, SWC_REDUCE_SCATTER, SWC_ALLGATHER };

static struct swc_plan_args split(enum swc_coll coll, int32_t pieces)
{
	struct swc_plan_args a = args_of("split", coll, 0);

	a.param = pieces;
	return a;
}

static void test_known_tori(void)
{
	static const char *const tori[] = {
		"torus:4x4",
		"torus:2x8",
		"torus:2x2",
		"torus:16x4",
		"torus:9x3",
		"torus:5x7",
		"torus:6x10",
		"torus:8x4x2",
		"torus:3x3x3",
		"torus:3x1x2",
		"torus:2x2x2x2",
		"torus:8x4@60Gbps/30Gbps,1us",
		"torus:4x2@10Gbps/40Gbps",
		"torus:8x2x2@10Gbps/30Gbps/20Gbps",
		"torus:4x3x2@60Gbps/30Gbps/10Gbps",
		"torus:4x4*2@80Gbps/20Gbps",
		"torus:2x3*1,2,3,2,1,2@80Gbps/20Gbps",
	};
	char name[100];

	for (size_t i = 0; i < sizeof(tori) / sizeof(tori[0]); i++) {
		int bad = 0;

		for (int k = 0; k < 3; k++) {
			bool nodes = strchr(tori[i], '*');

			if (nodes && colls[k] != SWC_ALLREDUCE)
				continue;
			if (short_form() && !nodes && k != (int)i % 3)
				continue;
			bad |= check_set(tori[i], split(colls[k], 1 + k), (enum placing)k);
			if (k != 2)
				bad |= check_set(tori[i], split(colls[k], 4), MIXED);
			if (k != 1)
				bad |= check_set(tori[i], split(colls[k], 11), OUT_OF_PLACE);
		}
		snprintf(name, sizeof(name), "exactly once on %s", tori[i]);
		ok(!bad, name);
	}
}

/* A torus of up to 64 nodes, with a rate for each dimension. */
static void random_torus(char *text, size_t bytes)
{
	uint32_t n = 2 + rnd(3), left = 64;
	int used = snprintf(text, bytes, "torus:");

	for (uint32_t i = 0; i < n; i++) {
		uint32_t most = left >> (n - 1 - i), d = i < 2 || rnd(4) ? 2 + rnd(most / 2) : 1;

		d = d > most ? most : d;
		left /= d;
		used += snprintf(text + used, bytes - (size_t)used, "%s%u", i ? "x" : "", d);
	}
	for (uint32_t i = 0; i < n; i++)
		used += snprintf(text + used, bytes - (size_t)used, "%s%uGbps", i ? "/" : "@",
				 1 + rnd(20));
}

static void test_random_tori(void)
{
	char text[120];
	uint32_t n = rounds_of(200);
	char name[60];
	int bad = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct swc_plan_args a = split(colls[rnd(3)],
					       1 + (int32_t)rnd(short_form() ? 6 : 20));

		random_torus(text, sizeof(text));
		a.ports = rnd(3) ? 0 : 1 + rnd(6);
		a.channels = rnd(4) ? 0 : 1 + rnd(9);
		bad |= check_set(text, a, (enum placing)rnd(PLACINGS));
	}
	snprintf(name, sizeof(name), "exactly once on %u random tori", n);
	ok(!bad, name);
}

/* The load of a link in units of the closed form: reduce-scatter on two links of each dimension. */
static double over_best(const char *text, int32_t pieces, uint32_t *steps)
{
	double rate[SWC_TOPO_DIMS], best;
	struct swc_plan_args a = split(SWC_ALLREDUCE, pieces);
	struct swc_topo t;
	struct swc_cost c;

	if (swc_topo_parse(&t, text, NULL, 0))
		abort();
	for (uint32_t i = 0; i < t.ndims; i++)
		rate[i] = 1 / swc_topo_slowness(&t, i);
	best = swc_orders_time(t.dim, rate, t.ndims, 1);
	a.topo = &t;
	a.nranks = t.nranks;
	if (swc_cost_estimate(&a, UINT32_MAX, &c, NULL, NULL, NULL, 0))
		return INFINITY;
	*steps = c.phased.steps;
	return fmin(c.phased.load, c.eager.load) / best;
}

/* How many times the closed form the whole blocks take that each channel has of a piece. */
static double rounding(const char *text, int32_t pieces)
{
	double rate[SWC_TOPO_DIMS], load[SWC_TOPO_DIMS], sum[SWC_TOPO_DIMS] = { 0 };
	uint32_t size[SWC_TOPO_DIMS], at[SWC_TOPO_DIMS], n = 0, blocks = 0;
	struct swc_bucket_shares s;
	double most = 0;
	struct swc_topo t;

	if (swc_topo_parse(&t, text, NULL, 0) || !swc_split_shares(&s, &t, (uint32_t)pieces))
		abort();
	for (uint32_t i = 0; i < t.ndims; i++) {
		if (t.dim[i] < 2)
			continue;
		size[n] = t.dim[i];
		rate[n] = 1 / swc_topo_slowness(&t, i);
		at[i] = n++;
	}
	for (uint32_t c = 0; c < s.n; c++) {
		uint8_t order[SWC_TOPO_DIMS];

		for (uint32_t i = 0; i < n; i++)
			order[i] = (uint8_t)at[s.order[c][i]];
		swc_order_loads(size, rate, n, order, load);
		for (uint32_t i = 0; i < n; i++)
			sum[i] += load[i] * s.weight[c];
		blocks += s.weight[c];
	}
	for (uint32_t i = 0; i < n; i++)
		most = fmax(most, sum[i] / blocks);
	return most / swc_orders_time(size, rate, n, 1);
}

/*
 * Never less than the closed form; more by the shares' rounding, and by as many steps as it takes to
 * fill the pipeline.
 */
static bool is_near(const char *text)
{
	for (int32_t pieces = 1; pieces <= 64; pieces *= 4) {
		uint32_t steps;
		double over = over_best(text, pieces, &steps);
		double fill = (steps + 1.0 - pieces) / pieces;

		if (over < 1 - 1e-4 || over > (1.001 + fill) * rounding(text, pieces)) {
			printf("# %s, %d pieces: %g times the closed form\n", text, pieces, over);
			return false;
		}
	}
	return true;
}

static void test_times(void)
{
	static const struct {
		const char *topo;
		double most;
	} rows[] = {
		{ "torus:4x4", 1.0001 },
		{ "torus:4x2@10Gbps/40Gbps", 1.03 },
		{ "torus:8x2x2@10Gbps/30Gbps/20Gbps", 1.05 },
		{ "torus:8x4x4@60Gbps/30Gbps/10Gbps", 1.02 },
		{ "torus:4x2x2", 1.03 },
		{ "torus:4x4@80Gbps/20Gbps", 1.05 },
		{ "torus:16x4", 1.04 },
	};
	bool good = true;
	char text[120];
	uint32_t steps;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double over = over_best(rows[i].topo, 128, &steps);

		if (over > rows[i].most)
			printf("# %s: %g times the closed form\n", rows[i].topo, over);
		good &= over <= rows[i].most && is_near(rows[i].topo);
	}
	ok(good, "known networks: near the closed form");
	good = true;
	for (int i = 0; i < 30; i++) {
		random_torus(text, sizeof(text));
		good &= is_near(text);
	}
	ok(good, "30 random networks: near the closed form");
}

/* Where dimensions are alike, nothing can be gained: one piece is bucket2. */
static void test_no_gain(void)
{
	static const char *const topos[] = { "torus:4x4", "torus:8x8", "torus:4x4x4" };
	bool good = true;

	for (size_t i = 0; i < 3; i++) {
		struct swc_plan_args a = split(SWC_ALLREDUCE, 1), b = a;
		struct swc_cost x, y;
		struct swc_topo t;

		if (swc_topo_parse(&t, topos[i], NULL, 0))
			abort();
		a.topo = &t;
		a.nranks = t.nranks;
		b = a;
		b.algo = SWC_ALGO_BUCKET2;
		b.param = SWC_PARAM_DEFAULT;
		good &= !swc_cost_compute(&a, &x, NULL, NULL, NULL, 0) &&
			!swc_cost_compute(&b, &y, NULL, NULL, NULL, 0) &&
			x.phased.steps == y.phased.steps && x.phased.hops == y.phased.hops &&
			fabs(x.phased.load - y.phased.load) < 1e-6;
	}
	ok(good, "dimensions that are alike: as bucket2");
}

static struct swc_choice choice_on(const char *text, uint64_t bytes)
{
	struct swc_choices c;
	struct swc_choice got;
	struct swc_topo t;

	if (swc_topo_parse(&t, text, NULL, 0))
		abort();
	swc_choices_init(&c, &t, false);
	got = swc_choices_take(&c, SWC_ALLREDUCE, SWC_F32, SWC_SUM, bytes, 1);
	swc_choices_free(&c);
	swc_topo_free(&t);
	return got;
}

static void test_choice(void)
{
	ok(choice_on("torus:4x4@80Gbps/20Gbps", 64 << 20).algo == SWC_ALGO_SPLIT &&
		   choice_on("torus:8x4x4@6Gbps/3Gbps/1Gbps", 64 << 20).algo == SWC_ALGO_SPLIT &&
		   choice_on("torus:8x4x2@10Gbps", 512 << 20).algo == SWC_ALGO_SPLIT,
	   "taken where dimensions differ");
	ok(choice_on("torus:4x4@80Gbps/20Gbps", 64).algo != SWC_ALGO_SPLIT &&
		   choice_on("torus:8x8", 512 << 20).algo != SWC_ALGO_SPLIT,
	   "not for small vectors, nor where dimensions are alike");
}

/* Ranks that disagree about rates must not run together: their plans are of other families. */
static void test_family(void)
{
	static const char *const topos[] = { "torus:4x4@80Gbps/20Gbps", "torus:4x4@20Gbps/80Gbps" };
	struct set a, b;

	ok(!build_set(&a, topos[0], split(SWC_ALLREDUCE, 4), MIXED) &&
		   !build_set(&b, topos[1], split(SWC_ALLREDUCE, 4), MIXED) &&
		   header(&a, 0)->family == header(&a, 1)->family &&
		   header(&a, 0)->family != header(&b, 0)->family,
	   "rates are part of the family");
	free_set(&a);
	free_set(&b);
}

static void test_refused(void)
{
	static const struct {
		const char *topo;
		int32_t pieces;
		const char *says;
	} rows[] = {
		{ "ring:8", 4, "two dimensions or more" },
		{ "switch:8", 4, "two dimensions or more" },
		{ "mesh:4x4", 4, "two dimensions or more" },
		{ "torus:1x8", 4, "two dimensions or more" },
		{ "torus:4x4", 0, "at least one piece" },
		{ "torus:1024x1024", 4, "too many blocks" },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct swc_plan_args a = split(SWC_ALLREDUCE, rows[i].pieces);
		struct swc_topo t;
		char why[200] = "";
		size_t bytes;
		void *plan;

		if (swc_topo_parse(&t, rows[i].topo, NULL, 0))
			abort();
		a.topo = &t;
		a.nranks = t.nranks;
		good &= swc_plan_build(&a, &plan, &bytes, why, sizeof(why)) == -EOPNOTSUPP &&
			strstr(why, rows[i].says);
		swc_topo_free(&t);
	}
	ok(good, "refused in words where it is not possible");
}

int main(void)
{
	printf("TAP version 13\n");
	seed_rnd();
	test_known_tori();
	test_random_tori();
	test_times();
	test_no_gain();
	test_choice();
	test_family();
	test_refused();
	return done();
}
