// SPDX-License-Identifier: GPL-2.0-only
/*
 * By the costs of all algorithms, what the automatic choice takes is at most 2 % behind the best: the envelope's
 * standard, here for all collectives, from 32 B to 512 MiB, on all lines, rings, switches, tori and meshes of 2 to
 * 64 nodes, on larger tori, and on random networks of up to 512 nodes. The worst choice is printed.
 *
 * The costs are exact: those that the model finds in the plans of all ranks, or what is shown elsewhere to be
 * the same (test_symmetry, test_choices, test_exact_cost).
 *
 * SWC_TEST_SHAPES=all takes all shapes, and 200 random ones; else a sample of them, by SWC_TEST_SEED; and
 * SWC_TEST_SHORT=1 a smaller one. TAP on stdout.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/model/bruck_cost.h"
#include "plan/model/bucket_cost.h"
#include "plan/model/butterfly_cost.h"
#include "plan/model/tree_cost.h"
#include "plan/names.h"
#include "plan/select/choose.h"
#include "random.h"
#include "tap.h"
#include "topos.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MOST_BEHIND 1.02
#define NODES 64
#define RANDOM_NODES 512 /* above, the choice of long plans rests on a sample of them */
#define RANDOM 200
/* Of the sample: so many shapes on average. */
#define SAMPLE 60
#define SAMPLE_RANDOM 4

struct known {
	enum swc_algo algo;
	int32_t param;
	struct swc_cost cost;
};

/* The choice that is farthest behind, and choices in all. */
static struct {
	double ratio;
	char text[200];
	unsigned int choices;
} worst;

/* False if there is no such plan. */
static bool find_cost(const struct swc_plan_args *a, struct swc_cost *cost)
{
	struct swc_bucket_cost bucket;

	if (!swc_bucket_cost(&bucket, a->topo, a->coll, a->algo, a->param) && bucket.plan_bytes) {
		*cost = (struct swc_cost){ .eager = bucket.eager,
					   .phased = bucket.phased,
					   .reduced = bucket.reduced };
		return bucket.plan_bytes <= SWC_MAX_PLAN_BYTES;
	}
	/* An estimate of bruck lacks what ranks have whose blocks wrap around. */
	if (!swc_butterfly_cost(a, cost) || !swc_tree_cost(a, cost) || !swc_bruck_cost(a, cost))
		return true;
	return !swc_cost_estimate(a, a->nranks, cost, NULL, NULL, NULL, 0) && !cost->sampled;
}

static unsigned int find_costs(const struct swc_topo *t, enum swc_coll coll, struct known *known)
{
	unsigned int n = 0;

	for (enum swc_algo algo = 0; algo < SWC_ALGO_NR; algo++) {
		struct swc_plan_args a = {
			.coll = coll, .algo = algo, .topo = t, .nranks = t->nranks
		};

		if (!(swc_algo_info(algo)->colls & 1u << coll) || swc_algo_info(algo)->one_node)
			continue;
		for (uint32_t i = 0; swc_algo_param(algo, coll, i, &a.param); i++, n++) {
			known[n] = (struct known){ .algo = algo, .param = a.param };
			if (!find_cost(&a, &known[n].cost))
				break;
		}
	}
	return n;
}

/* How far a choice is behind the best that may be used, 1 or more; infinite if it has no plan. */
static double behind(const struct swc_choices *c, enum swc_coll coll, struct swc_choice got,
		     bool in_order, const struct known *known, unsigned int n, uint64_t bytes)
{
	double best = INFINITY, ns = INFINITY;

	for (unsigned int i = 0; i < n; i++) {
		double is = swc_cost_time(&known[i].cost, (double)bytes, &c->net, NULL);

		if ((in_order && known[i].cost.order_varies) ||
		    !swc_choices_has_room(c, coll, known[i].algo, known[i].param, bytes))
			continue;
		best = fmin(best, is);
		if (known[i].algo == got.algo && known[i].param == got.param)
			ns = is;
	}
	return n ? ns / best : 1;
}

static void try_collective(const struct swc_topo *t, const char *text, enum swc_coll coll)
{
	struct known *known = calloc(SWC_ALGO_NR * SWC_ALGO_PARAMS, sizeof(*known));
	unsigned int n;

	if (!known)
		abort();
	n = find_costs(t, coll, known);
	for (int in_order = 0; in_order <= swc_coll_reduces((uint8_t)coll); in_order++) {
		enum swc_dtype dtype = in_order ? SWC_F32 : SWC_I32;
		struct swc_choices c;

		swc_choices_init(&c, t, false);
		c.forest = false;
		for (uint64_t bytes = 32; bytes <= 512u << 20; bytes *= 8, worst.choices++) {
			struct swc_choice got = swc_choices_take(&c, coll, dtype, SWC_SUM, bytes,
								 1);
			double ratio = behind(&c, coll, got, in_order, known, n, bytes);

			if (ratio <= worst.ratio)
				continue;
			worst.ratio = ratio;
			snprintf(worst.text, sizeof(worst.text), "%s of %llu bytes on %s: %s:%d",
				 swc_coll_name(coll), (unsigned long long)bytes, text,
				 swc_algo_name(got.algo), got.param);
		}
		swc_choices_free(&c);
	}
	free(known);
}

static void try_shape(const char *text)
{
	struct swc_topo t = topo_of(text);

	for (enum swc_coll coll = 0; coll < SWC_COLL_NR; coll++)
		try_collective(&t, text, coll);
	swc_topo_free(&t);
}

static void report(const char *name)
{
	char text[300];

	printf("# worst: %.4f of the best time: %s\n", worst.ratio, worst.text);
	snprintf(text, sizeof(text), "%s: of %u choices, none is more than 2 %% behind the best",
		 name, worst.choices);
	ok(worst.choices && worst.ratio <= MOST_BEHIND + 1e-6, text);
	worst.ratio = 0;
	worst.choices = 0;
}

/* ---- shapes ---- */

static bool all_shapes(void)
{
	const char *shapes = getenv("SWC_TEST_SHAPES");

	return shapes && !strcmp(shapes, "all");
}

/* Of about so many shapes, is this one in the sample? */
static bool is_taken(uint32_t of)
{
	return all_shapes() || rnd(of) < (short_form() ? SAMPLE / 3 : SAMPLE);
}

/* All tori and meshes of so many nodes more, with sides that do not grow. Returns how many there are. */
static uint32_t try_products(const char *sides, uint32_t left, uint32_t most, uint32_t ndims,
			     uint32_t of)
{
	uint32_t n = 0;

	for (uint32_t d = left < most ? left : most; d > 1; d--) {
		char text[80], shape[100];

		if (left % d || ndims == SWC_TOPO_DIMS)
			continue;
		snprintf(text, sizeof(text), "%s%s%u", sides, *sides ? "x" : "", d);
		if (d < left) {
			n += try_products(text, left / d, d, ndims + 1, of);
			continue;
		}
		for (int mesh = 0; mesh < 2; mesh++, n++) {
			snprintf(shape, sizeof(shape), "%s:%s", mesh ? "mesh" : "torus", text);
			if (of && is_taken(of))
				try_shape(shape);
		}
	}
	return n;
}

static void test_small(void)
{
	uint32_t all = NODES - 1;

	for (uint32_t p = 2; p <= NODES; p++)
		all += try_products("", p, p, 0, 0);
	for (uint32_t p = 2; p <= NODES; p++) {
		char text[32];

		snprintf(text, sizeof(text), "switch:%u%s", p, rnd(2) ? "" : "@2rails");
		if (is_taken(all))
			try_shape(text);
		try_products("", p, p, 0, all);
	}
	report("2 to 64 nodes");
}

static void test_sheet(void)
{
	static const char *const tori[] = { "torus:9x3",  "torus:27x3",
					    "torus:32x2", "torus:6x10",
					    "torus:16x4", "torus:10x4x2",
					    "torus:9x9",  "torus:27x27",
					    "ring:16",	  "torus:8x4x2@60Gbps/30Gbps/10Gbps" };

	for (size_t i = 0; i < COUNT(tori); i++)
		if (all_shapes() || rnd(COUNT(tori)) < (short_form() ? 2 : 5))
			try_shape(tori[i]);
	try_shape("torus:5x7");
	report("larger tori");
}

/* Nodes of several ranks, 2^k of each among them: messages within a node are free, others are not. */
static void test_nodes(void)
{
	static const char *const shapes[] = { "ring:4*2",    "ring:8*4",    "ring:5*3",
					      "torus:4x4*2", "torus:3x5*4", "torus:2x3*8",
					      "switch:8*2",  "switch:4*4",  "switch:5*3" };

	for (size_t i = 0; i < COUNT(shapes); i++)
		try_shape(shapes[i]);
	report("nodes of several ranks");
}

/* Sides, or nodes of a switch, for at most so many nodes. */
static void random_shape(char *text, size_t bytes)
{
	static const char *const kinds[] = { "torus", "mesh", "switch" };
	uint32_t kind = rnd(3), ndims = kind == 2 ? 1 : 1 + rnd(4), left = RANDOM_NODES;
	int n = snprintf(text, bytes, "%s:", kinds[kind]);

	for (uint32_t k = ndims; k-- > 0;) {
		uint32_t most = k ? (uint32_t)(2 * pow(left, 1.0 / (k + 1))) : left, d;

		d = 2 + rnd(most > 2 ? most - 1 : 1);
		d = d > left ? left : d;
		left /= d;
		n += snprintf(text + n, bytes - (size_t)n, "%u%s", d, k && left > 1 ? "x" : "");
		if (left < 2)
			break;
	}
	if (kind == 2 && rnd(2))
		snprintf(text + n, bytes - (size_t)n, "@%urails", 2 + rnd(3));
}

static void test_random(void)
{
	int n = all_shapes() ? RANDOM : short_form() ? 1 : SAMPLE_RANDOM;

	for (int i = 0; i < n; i++) {
		char text[80];

		random_shape(text, sizeof(text));
		try_shape(text);
	}
	report("random networks");
}

int main(void)
{
	seed_rnd();
	test_small();
	test_sheet();
	test_nodes();
	test_random();
	return done();
}
