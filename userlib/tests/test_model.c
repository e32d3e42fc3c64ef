// SPDX-License-Identifier: GPL-2.0-only
/*
 * The models of the network against published and computed figures: steps, hops and loads of known
 * algorithms on tori, times that follow from them, and small cases by hand. TAP on stdout.
 *
 * The reference figures send all messages that go half the way round a ring the same way; here they
 * go half each way. It makes no difference where mirrored ports use both ways, but with one port
 * the step that goes half the way has half the load. The tests add the difference before they
 * compare: ties(). SWC_TEST_SHORT=1: without what takes seconds on 4096 ranks.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/model/model.h"
#include "random.h"
#include "tap.h"
#include "topos.h"

#define KIB 1024.0
#define MIB (1024.0 * 1024)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static unsigned int skipped;

static bool near(double got, double want, double part)
{
	return fabs(got - want) <= part * fabs(want);
}

static struct swc_plan_args args_of(const struct swc_topo *t, enum swc_coll coll, const char *algo)
{
	struct swc_plan_args a = { .coll = coll, .topo = t, .nranks = t->nranks };

	a.algo = (enum swc_algo)swc_algo_parse(algo, &a.param);
	return a;
}

/* Costs computed so far. */
static struct known {
	const char *topo, *algo;
	int ret;
	struct swc_cost cost;
	char why[200];
} known[200];

static const struct known *cost_of(const char *topo, const char *algo)
{
	struct known *k = known;
	struct swc_topo t;
	struct swc_plan_args a;

	for (; k->topo; k++)
		if (!strcmp(k->topo, topo) && !strcmp(k->algo, algo))
			return k;
	if (k == known + COUNT(known) - 1) {
		printf("Bail out! more than %zu costs\n", COUNT(known));
		exit(1);
	}
	t = topo_of(topo);
	a = args_of(&t, SWC_ALLREDUCE, algo);
	k->topo = topo;
	k->algo = algo;
	k->ret = swc_cost_compute(&a, &k->cost, NULL, NULL, k->why, sizeof(k->why));
	swc_topo_free(&t);
	return k;
}

/* Was it refused? Then the test is skipped. Any other error fails. */
static bool refused(const struct known *k, const char *name)
{
	if (k->ret != -EOPNOTSUPP || !*k->why)
		return false;
	printf("ok %d - %s # SKIP %s\n", ++tap_tests, name, k->why);
	skipped++;
	return true;
}

/*
 * Unequal dimensions: the reference keeps all ports of bucket in the same phase, as long as the
 * longest dimension takes (60/60/1.172 on 16x4). Without waiting, ports that begin in a short
 * dimension continue at once with the long one: fewer steps, but a step lasts as long as its
 * largest message, and their first ones are larger. On 16x4, with a quarter of the vector per port:
 * three steps of 1/16, twelve of 1/64 + 1/256, three of 1/256, all twice. That is faster for
 * vectors of up to a few MiB.
 */
#define BUCKET_16X4 (2 * (3 / 16.0 + 12 * 5 / 256.0 + 3 / 256.0))

static const struct row {
	const char *topo, *algo;
	uint32_t steps, hops;
	double psi_xi;
} rows[] = {
	{ "ring:8", "swing-b", 6, 10, 1.125 },
	{ "ring:8", "swing-l", 3, 5, 2.5 },
	{ "ring:8", "mirrored", 6, 14, 1.5 },
	{ "ring:8", "rabenseifner", 6, 14, 3 },
	{ "ring:8", "recdoub", 3, 7, 7 },
	{ "ring:8", "ring2", 14, 14, 0.875 },
	{ "ring:8", "bucket2", 8, 8, 0.875 },
	{ "ring:64", "swing-b", 12, 84, 2.11 },
	{ "ring:64", "swing-l", 6, 42, 21 },
	{ "ring:64", "mirrored", 12, 126, 3 },
	{ "ring:64", "rabenseifner", 12, 126, 6 },
	{ "ring:64", "recdoub", 6, 63, 63 },
	{ "ring:64", "ring2", 126, 126, 0.984 },
	{ "ring:64", "bucket2", 64, 64, 0.984 },
	{ "torus:4x4", "swing-b", 8, 8, 0.9375 },
	{ "torus:4x4", "swing-l", 4, 4, 2 },
	{ "torus:4x4", "mirrored", 8, 12, 1.125 },
	{ "torus:4x4", "rabenseifner", 8, 12, 4.5 },
	{ "torus:4x4", "recdoub", 4, 6, 12 },
	{ "torus:4x4", "bucket", 12, 12, 0.9375 },
	{ "torus:4x4", "bucket2", 8, 8, 0.9375 },
	{ "torus:8x8", "swing-b", 12, 20, 1.078 },
	{ "torus:8x8", "swing-l", 6, 10, 5 },
	{ "torus:8x8", "mirrored", 12, 28, 1.31 },
	{ "torus:8x8", "rabenseifner", 12, 28, 5.25 },
	{ "torus:8x8", "recdoub", 6, 14, 28 },
	{ "torus:8x8", "bucket", 28, 28, 0.984 },
	{ "torus:8x8", "bucket2", 16, 16, 0.984 },
	{ "torus:16x4", "swing-b", 12, 24, 1.281 },
	{ "torus:16x4", "swing-l", 6, 12, 10 },
	{ "torus:16x4", "mirrored", 12, 36, 1.625 },
	{ "torus:16x4", "rabenseifner", 12, 36, 5.5 },
	{ "torus:16x4", "recdoub", 6, 18, 36 },
	/* Reference: 60 60 1.172 and 32 32 1.172. */
	{ "torus:16x4", "bucket", 60, 60, 1.172 },
	{ "torus:16x4", "bucket2", 32, 32, 1.172 },
	{ "torus:16x4", "hamiltonian", 126, 126, 0.984 },
	/* Phases that begin together: 2 (7/8 + 7/16 + 7/64) / 2. */
	{ "torus:8x4x2", "bucket", 42, 42, 1.422 },
	{ "torus:8x4x2", "bucket2", 24, 24, 1.422 },
	{ "torus:8x8x8", "swing-b", 18, 30, 1.025 },
	{ "torus:8x8x8", "swing-l", 9, 15, 7.5 },
	{ "torus:8x8x8", "mirrored", 18, 42, 1.15 },
	{ "torus:8x8x8", "rabenseifner", 18, 42, 6.9 },
	{ "torus:8x8x8", "recdoub", 9, 21, 63 },
	{ "torus:8x8x8", "bucket", 42, 42, 0.998 },
	{ "torus:8x8x8", "bucket2", 24, 24, 0.998 },
	{ "torus:64x64", "swing-b", 24, 168, 1.184 },
	{ "torus:64x64", "swing-l", 12, 84, 42 },
	{ "torus:64x64", "mirrored", 24, 252, 1.477 },
	{ "torus:64x64", "rabenseifner", 24, 252, 5.91 },
	{ "torus:64x64", "recdoub", 12, 126, 252 },
	{ "torus:64x64", "bucket", 252, 252, 1 },
	{ "torus:64x16", "swing-b", 20, 104, 1.221 },
	{ "torus:64x16", "swing-l", 10, 52, 42 },
	{ "torus:64x16", "mirrored", 20, 156, 1.53 },
	{ "torus:64x16", "rabenseifner", 20, 156, 5.88 },
	{ "torus:64x16", "recdoub", 10, 78, 156 },
	{ "torus:128x8", "swing-b", 20, 180, 1.408 },
	{ "torus:128x8", "swing-l", 10, 90, 85 },
	{ "torus:128x8", "mirrored", 20, 268, 1.81 },
	{ "torus:128x8", "rabenseifner", 20, 268, 6.25 },
	{ "torus:128x8", "recdoub", 10, 134, 268 },
	{ "torus:256x4", "swing-b", 20, 344, 1.951 },
	{ "torus:256x4", "swing-l", 10, 172, 170 },
	{ "torus:256x4", "mirrored", 20, 516, 2.63 },
	{ "torus:256x4", "rabenseifner", 20, 516, 7.5 },
	{ "torus:256x4", "recdoub", 10, 258, 516 },
};

/* In the short form. */
static bool is_left_out(const struct row *r)
{
	return short_form() && !strcmp(r->topo, "torus:64x64") &&
	       (!strcmp(r->algo, "bucket") || !strcmp(r->algo, "twosided"));
}

static void test_rows(void)
{
	for (unsigned int i = 0; i < COUNT(rows); i++) {
		const struct row *r = &rows[i];
		const struct known *k;
		const struct swc_cost *c;
		char name[100];

		if (is_left_out(r))
			continue;
		k = cost_of(r->topo, r->algo);
		c = &k->cost;
		snprintf(name, sizeof(name), "%s %s: %u/%u/%g", r->topo, r->algo, r->steps, r->hops,
			 r->psi_xi);
		if (refused(k, name))
			continue;
		if (!ok(!k->ret && c->phased.steps == r->steps && c->phased.hops == r->hops &&
				near(c->psi_xi, r->psi_xi, 0.005),
			name))
			printf("# %d %s: %u/%llu/%g\n", k->ret, k->why, c->phased.steps,
			       (unsigned long long)c->phased.hops, c->psi_xi);
	}
}

/* Two-sided: steps and hops. */
static void test_twosided(void)
{
	static const struct row two[] = { { "ring:8", "twosided", 2, 4, 0 },
					  { "torus:8x8", "twosided", 4, 8, 0 },
					  { "torus:8x8x8", "twosided", 6, 12, 0 },
					  { "torus:64x64", "twosided", 8, 64, 0 } };

	for (unsigned int i = 0; i < COUNT(two); i++) {
		const struct known *k;
		char name[100];

		if (is_left_out(&two[i]))
			continue;
		k = cost_of(two[i].topo, two[i].algo);
		snprintf(name, sizeof(name), "%s twosided: %u steps, %u hops", two[i].topo,
			 two[i].steps, two[i].hops);
		if (!refused(k, name))
			ok(!k->ret && k->cost.phased.steps == two[i].steps &&
				   k->cost.phased.hops == two[i].hops,
			   name);
	}
}

static const struct swc_network paper = { .gbps = 400, .hop_ns = 400, .step_ns = 600 };
static const struct swc_network acked = {
	.gbps = 400, .hop_ns = 400, .step_ns = 600, .ack_bytes = 10
};

/* The time in microseconds with the reference's additional load; 0 if the algorithm is refused. */
static double us_of(const char *topo, const char *algo, double bytes)
{
	const struct known *k = cost_of(topo, algo);
	return k->ret ? 0 : swc_cost_time(&k->cost, bytes, &paper, NULL) / 1e3;
}

static void test_time(const char *topo, double bytes, const char *a, const char *b, double want)
{
	double ta = us_of(topo, a, bytes), tb = b ? us_of(topo, b, bytes) : ta;
	double got = tb < ta ? tb : ta;
	char name[100];

	snprintf(name, sizeof(name), "%s %.10g KiB: %s%s%s takes %g us", topo, bytes / KIB, a,
		 b ? " or " : "", b ? b : "", want);
	if (refused(cost_of(topo, a), name) || (b && refused(cost_of(topo, b), name)))
		return;
	if (!ok(near(got, want, 0.01), name))
		printf("# %.3f us\n", got);
}

static void test_times(void)
{
	static const struct times {
		const char *topo;
		double bytes;
		char variant; /* of Swing: the faster one */
		double swing, one_port, mirrored, bucket;
	} times[] = {
		{ "torus:4x4", 32, 'l', 4.00, 4.80, 4.80, 12.0 },
		{ "torus:4x4", 128 * KIB, 'l', 6.62, 15.5, 8.73, 13.2 },
		{ "torus:4x4", 512 * KIB, 'b', 12.9, 33.2, 15.5, 16.9 },
		{ "torus:4x4", 128 * MIB, 'b', 1266, 6049, 1520, 1270 },
		{ "torus:8x8", 32, 'l', 7.60, 9.21, 9.20, 28.0 },
		/*
		 * Mirrored: the reference has 11.5 and 18.4. Its swaps of whole vectors have a load
		 * of 3.5, the plans' 4, for which all ranks add in the same order.
		 */
		{ "torus:8x8", 32 * KIB, 'l', 9.24, 18.4, 9.2 + 4 * 0.65536, 28.3 },
		{ "torus:8x8", 128 * KIB, 'l', 14.2, 25.3, 9.2 + 4 * 2.62144, 29.3 },
		{ "torus:8x8", 512 * KIB, 'b', 20.9, 45.9, 25.3, 33.2 },
		{ "torus:8x8", 2 * MIB, 'b', 37.8, 128.5, 45.9, 48.6 },
		{ "torus:8x8", 8 * MIB, 'b', 105.6, 459, 128.5, 110.6 },
		{ "torus:8x8", 128 * MIB, 'b', 1462, 7065, 1780, 1349 },
		/*
		 * Bucket: the reference has 60.0, 61.5, 66.1, 84.6 below 8 MiB, because its
		 * channels wait.
		 */
		{ "torus:16x4", 32, 'l', 8.40, 10.8, 10.8, 36.0 },
		{ "torus:16x4", 128 * KIB, 'b', 18.5, 28.8, 23.7, 36 + BUCKET_16X4 * 2.62144 },
		{ "torus:16x4", 512 * KIB, 'b', 23.5, 50.4, 30.1, 36 + BUCKET_16X4 * 10.48576 },
		{ "torus:16x4", 2 * MIB, 'b', 43.7, 137, 55.7, 36 + BUCKET_16X4 * 41.94304 },
		{ "torus:16x4", 8 * MIB, 'b', 124.3, 483, 157.9, 158.3 },
		{ "torus:16x4", 128 * MIB, 'b', 1736, 7404, 2203, 1633 },
		{ "torus:64x64", 32, 'l', 40.8, 57.7, 57.6, 252 },
		{ "torus:64x64", 2 * MIB, 'b', 106, 239, 146, 273 },
		{ "torus:64x64", 8 * MIB, 'b', 181, 611, 239, 336 },
		{ "torus:64x64", 128 * MIB, 'b', 1671, 8042, 2097, 1594 },
	};

	for (unsigned int i = 0; i < COUNT(times); i++) {
		const struct times *t = &times[i];
		char name[100];

		test_time(t->topo, t->bytes, "swing-l", "swing-b", t->swing);
		snprintf(name, sizeof(name), "%s %.10g KiB: of Swing, %c is faster", t->topo,
			 t->bytes / KIB, t->variant);
		if (!refused(cost_of(t->topo, "swing-l"), name) &&
		    !refused(cost_of(t->topo, "swing-b"), name))
			ok((us_of(t->topo, "swing-l", t->bytes) <
			    us_of(t->topo, "swing-b", t->bytes)) == (t->variant == 'l'),
			   name);
		test_time(t->topo, t->bytes, "recdoub", "rabenseifner", t->one_port);
		test_time(t->topo, t->bytes, "mirrored:0", "mirrored", t->mirrored);
		test_time(t->topo, t->bytes, "bucket", NULL, t->bucket);
	}
	test_time("torus:16x4", 128 * MIB, "hamiltonian", NULL, 1447);
}

static bool cost(const char *topo, enum swc_coll coll, const char *algo, struct swc_cost *c)
{
	struct swc_topo t = topo_of(topo);
	struct swc_plan_args a = args_of(&t, coll, algo);
	int ret = swc_cost_compute(&a, c, NULL, NULL, NULL, 0);

	swc_topo_free(&t);
	return !ret;
}

/* ns by the flow model, negative if it fails. */
static double flow_on(const struct swc_network *net, const char *topo, enum swc_coll coll,
		      const char *algo, double bytes)
{
	struct swc_topo t = topo_of(topo);
	struct swc_plan_args a = args_of(&t, coll, algo);
	struct swc_flow f;
	int ret = swc_flow_time(&a, bytes, net, &f, NULL, NULL, NULL, 0);

	swc_topo_free(&t);
	return ret ? ret : f.ns;
}

static double flow(const char *topo, enum swc_coll coll, const char *algo, double bytes)
{
	return flow_on(&paper, topo, coll, algo, bytes);
}

static bool is(const struct swc_cost *c, uint32_t steps, uint64_t hops, double load)
{
	if (c->phased.steps == steps && c->phased.hops == hops && near(c->phased.load, load, 1e-6))
		return true;
	printf("# %u/%llu/%.9g\n", c->phased.steps, (unsigned long long)c->phased.hops,
	       c->phased.load);
	return false;
}

static void test_by_hand(void)
{
	double bytes = 50e3, t = 1e3; /* 1 us for the vector */
	struct swc_cost c;

	ok(cost("switch:2", SWC_ALLREDUCE, "recdoub", &c) && is(&c, 1, 1, 1) && c.messages == 1 &&
		   near(c.sent, 1, 1e-9) && near(c.reduced, 1, 1e-9) && c.max_runs == 1 &&
		   !c.order_varies,
	   "recdoub on two ranks: 1/1/1, one message of the whole vector");
	ok(cost("switch:2", SWC_ALLREDUCE, "ring2", &c) && near(c.sent, 1, 1e-9) &&
		   near(c.reduced, 0.25, 1e-9),
	   "ring2 on two ranks: a channel reduces a quarter of the vector");
	ok(cost("switch:8", SWC_ALLGATHER, "ring", &c) && c.reduced == 0,
	   "an allgather reduces nothing");
	ok(cost("switch:8", SWC_ALLREDUCE, "ring", &c) && is(&c, 14, 14, 1.75) &&
		   c.messages == 14 && near(c.sent, 1.75, 1e-9) && near(c.psi_xi, 1.75, 1e-6),
	   "ring on a switch: 14/14/1.75");
	/* The message that closes the ring goes back over all links. */
	ok(cost("mesh:8", SWC_ALLREDUCE, "ring", &c) && is(&c, 14, 98, 1.75),
	   "ring on a mesh: one message goes back 7 hops, on links of the other direction");
	ok(cost("switch:8", SWC_BARRIER, "rotate", &c) && is(&c, 3, 3, 0),
	   "a barrier has steps and hops and no load");
	/*
	 * The root sends to 2, and then to 1 while 2 sends to 3. In the flow model 2 begins before 1
	 * has received.
	 */
	ok(cost("mesh:4", SWC_BROADCAST, "tree", &c) && is(&c, 2, 3, 2),
	   "broadcast in a row of 4: 2/3/2");
	ok(near(flow("mesh:4", SWC_BROADCAST, "tree", bytes), 2400 + 2 * t, 1e-9),
	   "flow model: broadcast in a row of 4");
	/* Both ranks send into the root's link at once. */
	ok(cost("switch:3", SWC_REDUCE, "tree", &c) && is(&c, 1, 1, 2) &&
		   near(flow("switch:3", SWC_REDUCE, "tree", bytes), 1000 + 2 * t, 1e-9),
	   "reduce from two ranks on a switch: 1/1/2, also in the flow model");
	/*
	 * The root sends to 2, and then to 4 and 1, whose messages take turns on the first link.
	 * Meanwhile 2 sends to 3.
	 */
	ok(cost("mesh:5", SWC_BROADCAST, "tree", &c) && is(&c, 2, 6, 3) &&
		   near(flow("mesh:5", SWC_BROADCAST, "tree", bytes), 2800 + 3 * t, 1e-9),
	   "broadcast in a row of 5: 2/6/3");
	/*
	 * Up: distances 1, 2 and 4: load 3. Down: the same backwards. Members with children receive
	 * from them in one step, so their steps are not those of the others.
	 */
	ok(cost("ring:8", SWC_ALLREDUCE, "tree", &c) && is(&c, 6, 14, 6),
	   "steps that are not aligned: tree on a ring of 8");
	/* Rank 2 folds onto 0, which swaps with 1, and back. */
	ok(cost("switch:3", SWC_ALLREDUCE, "recdoub", &c) && is(&c, 3, 3, 3),
	   "steps that are not aligned: a fold adds one at each end");
}

static void test_flow(void)
{
	static const struct {
		const char *topo, *algo;
	} same[] = {
		{ "switch:8", "ring" },	   { "switch:16", "recdoub" },
		{ "ring:8", "ring2" },	   { "torus:4x4", "bucket" },
		{ "torus:8x8", "bucket" }, { "torus:4x4", "hamiltonian" },
	},
	  skewed[] = {
		  { "switch:5", "ring2" },     { "ring:8", "recdoub" },	    { "torus:8x8", "bucket2" },
		  { "torus:8x8", "swing-b" },  { "torus:8x8", "swing-l" },  { "torus:8x8", "mirrored" },
		  { "ring:8", "circulant" },   { "torus:16x4", "bucket" }, { "torus:16x4", "bucket2" }, { "torus:16x4", "swing-b" },
		  { "torus:8x8", "tree" },    { "torus:8x8", "dtree" },	   { "switch:13", "dtree" },
		  { "mesh:4x4", "bucket" },   { "torus:5x3", "bucket2" },  { "torus:9x9", "twosided" },
		  { "switch:13", "recdoub" }, { "torus:4x4*3", "ring" },   { "switch:3*2,1,4", "dtree" },
	  };
	static const double sizes[] = { 0, 32, 512 * KIB, 128 * MIB };
	struct swc_cost c;

	for (unsigned int i = 0; i < COUNT(same); i++) {
		const struct known *k = cost_of(same[i].topo, same[i].algo);
		char name[100];
		bool good = !k->ret;

		snprintf(name, sizeof(name),
			 "%s %s: no link is shared: the flow model takes as long as the step model",
			 same[i].topo, same[i].algo);
		if (refused(k, name))
			continue;
		for (unsigned int j = 0; j < COUNT(sizes); j++)
			good &= near(flow(same[i].topo, SWC_ALLREDUCE, same[i].algo, sizes[j]),
				     swc_cost_time(&k->cost, sizes[j], &paper, NULL), 1e-6);
		good &= near(flow_on(&acked, same[i].topo, SWC_ALLREDUCE, same[i].algo, MIB),
			     swc_cost_time(&k->cost, MIB, &acked, NULL), 1e-6);
		good &= swc_cost_time(&k->cost, MIB, &acked, NULL) >
			swc_cost_time(&k->cost, MIB, &paper, NULL);
		ok(good, name);
	}
	/*
	 * From row to row it is two hops. Ranks that receive from a neighbour do not wait for
	 * those.
	 */
	ok(near(flow("torus:4x4", SWC_ALLREDUCE, "ring", 0), 30 * 600 + 38 * 400, 1e-9) &&
		   cost("torus:4x4", SWC_ALLREDUCE, "ring", &c) && is(&c, 30, 60, c.phased.load),
	   "a ring over a torus: 30 steps in sequence are 38 hops, in common steps 60");
	/*
	 * Shards are numbered by rank, so a message along the first dimension has a run for each
	 * row.
	 */
	ok(cost("torus:4x4", SWC_REDUCE_SCATTER, "bucket", &c) && is(&c, 6, 6, 15 / 32.0 / 2) &&
		   c.max_runs > 1 && c.messages == 24 &&
		   near(flow("torus:4x4", SWC_REDUCE_SCATTER, "bucket", MIB),
			swc_cost_time(&c, MIB, &paper, NULL), 1e-6),
	   "all runs of a message count, as one message");
	/*
	 * Where messages share links, one goes on while the other waits. In general neither model is
	 * a bound of the other, but these gain from not waiting, or lose 1 % at most. Less than
	 * a rank's bytes on all its links, or than a hop and a fixed cost, it cannot be.
	 */
	for (unsigned int i = 0; i < COUNT(skewed); i++) {
		const struct known *k = cost_of(skewed[i].topo, skewed[i].algo);
		struct swc_topo t = topo_of(skewed[i].topo);
		uint32_t ports = t.kind == SWC_TOPO_SWITCH ? 1 : 2 * t.ndims;
		char name[100];
		bool good = !k->ret;
		double last = -1;

		swc_topo_free(&t);
		snprintf(
			name, sizeof(name),
			"%s %s: the flow model takes at most as long as the step model (1 %%), and grows with the bytes",
			skewed[i].topo, skewed[i].algo);
		if (refused(k, name))
			continue;
		for (unsigned int j = 0; j < COUNT(sizes); j++) {
			double ns = flow(skewed[i].topo, SWC_ALLREDUCE, skewed[i].algo, sizes[j]);
			double least = k->cost.sent * sizes[j] * 8 / paper.gbps / ports;
			double most = 1.01 * swc_cost_time(&k->cost, sizes[j], &paper, NULL);

			if (ns > most * (1 + 1e-9) || ns < least || ns < 1000 || ns < last) {
				printf("# %g bytes: flows %.1f ns, steps %.1f, least %.1f\n",
				       sizes[j], ns, most, least);
				good = false;
			}
			last = ns;
		}
		ok(good, name);
	}
}

static void test_hierarchy(void)
{
	struct swc_cost c, one;
	double ns, several;

	/* Shards of the vector on as many channels are together what one rank per node sends. */
	ok(cost("torus:4x4", SWC_ALLREDUCE, "bucket", &one) &&
		   cost("torus:4x4*4", SWC_ALLREDUCE, "bucket", &c) &&
		   is(&c, one.phased.steps, one.phased.hops, one.phased.load) &&
		   near(c.sent, one.sent / 4, 1e-9) && near(c.reduced, one.reduced / 4, 1e-9),
	   "several ranks per node load the network like one, and each sends and reduces its share");
	ns = flow("torus:4x4", SWC_ALLREDUCE, "bucket", MIB);
	several = flow("torus:4x4*4", SWC_ALLREDUCE, "bucket", MIB);
	ok(several > c.phased.load * MIB * 8 / paper.gbps + 1000 && several < ns,
	   "flow model: several ranks per node hide delays of each other");
	ok(cost("switch:3*2,1,4", SWC_ALLREDUCE, "ring", &c) && c.phased.steps >= 4 &&
		   c.phased.hops == c.phased.steps && c.phased.load >= 4 / 3.0 - 1e-6,
	   "unequal nodes: at least the steps and the load of a ring of nodes");
	ok(cost("switch:1*4", SWC_REDUCE_SCATTER, "ring", &c) && c.phased.steps == 3 &&
		   !c.phased.hops && near(c.phased.load + 1, 1, 1e-9) &&
		   near(flow("switch:1*4", SWC_REDUCE_SCATTER, "ring", MIB) + 1, 1, 1e-9),
	   "network steps within a node use no link");
	/* Ranks 0 1 | 2 3: of a ring of 4, two messages cross, each a quarter per step. */
	ok(cost("switch:2*2", SWC_ALLGATHER, "ring", &c) && is(&c, 3, 3, 0.75),
	   "messages between nodes of several ranks are counted once");
}

/* Along the second dimension links have a quarter of the rate. */
static void test_rates(void)
{
	struct swc_cost even, slow;
	double bytes = MIB, ns;

	/* Reduce-scatter and allgather by each of two ports: 2 * (3/8 + 4 * 3/32), or the reverse. */
	ok(cost("torus:4x4", SWC_ALLREDUCE, "bucket", &even) &&
		   cost("torus:4x4@400Gbps/100Gbps", SWC_ALLREDUCE, "bucket", &slow) &&
		   slow.phased.steps == even.phased.steps &&
		   near(slow.phased.load, 4 * even.phased.load, 1e-6),
	   "a slow dimension decides where channels begin in different ones");
	ok(cost("torus:4x4@100Gbps/400Gbps", SWC_ALLREDUCE, "bucket", &even) &&
		   near(slow.phased.load, even.phased.load, 1e-6),
	   "slow links in the other dimension");
	ns = flow("torus:4x4@400Gbps/100Gbps", SWC_ALLREDUCE, "swing-b", bytes);
	ok(cost("torus:4x4@400Gbps/100Gbps", SWC_ALLREDUCE, "swing-b", &slow) &&
		   ns < swc_cost_time(&slow, bytes, &paper, NULL) &&
		   ns > 2 * flow("torus:4x4", SWC_ALLREDUCE, "swing-b", bytes),
	   "flow model: slow links");
}

static void count_calls(void *arg, double done)
{
	double *last = arg;

	/* -1 stays: out of range or backward. */
	*last = *last < 0 || done < *last - 1e-9 || done > 1 + 1e-9 ? -1 : done;
}

static void test_errors(void)
{
	struct swc_topo t = topo_of("ring:8");
	struct swc_plan_args a = args_of(&t, SWC_ALLREDUCE, "hamiltonian");
	struct swc_cost c;
	char why[200] = "";
	struct swc_flow flow = { 0 };
	double last = 0;

	ok(swc_cost_compute(&a, &c, NULL, NULL, why, sizeof(why)) == -EOPNOTSUPP &&
		   strstr(why, "two dimensions"),
	   "a refused algorithm, with the reason");
	*why = 0;
	ok(swc_flow_time(&a, 1, &paper, &flow, NULL, NULL, why, sizeof(why)) == -EOPNOTSUPP &&
		   strstr(why, "two dimensions"),
	   "flow model: a refused algorithm, with the reason");
	ok(swc_cost_compute(&a, &c, NULL, NULL, NULL, 0) == -EOPNOTSUPP &&
		   swc_flow_time(&a, 1, &paper, &flow, NULL, NULL, NULL, 0) == -EOPNOTSUPP,
	   "a refused algorithm, without room for the reason");
	a = args_of(&t, SWC_ALLREDUCE, "ring");
	a.nranks = 7;
	*why = 0;
	ok(swc_cost_compute(&a, &c, NULL, NULL, why, sizeof(why)) == -EINVAL && *why,
	   "a topology for another number of ranks is refused");
	a.nranks = 0;
	a.topo = NULL;
	*why = 0;
	ok(swc_cost_compute(&a, &c, NULL, NULL, why, sizeof(why)) == -EINVAL && *why &&
		   swc_flow_time(&a, 1, &paper, &flow, NULL, NULL, why, sizeof(why)) == -EINVAL,
	   "0 ranks are refused");
	a.nranks = 1;
	ok(!swc_cost_compute(&a, &c, NULL, NULL, NULL, 0) && !c.phased.steps && !c.phased.hops &&
		   !c.messages && !swc_flow_time(&a, 1, &paper, &flow, NULL, NULL, NULL, 0) &&
		   !(flow.ns > 0),
	   "one rank costs nothing");
	a.nranks = 256;
	ok(!swc_cost_compute(&a, &c, count_calls, &last, NULL, 0) && last > 0 &&
		   is(&c, 510, 510, 2 * 255 / 256.0),
	   "no topology is a switch; progress grows");
	last = 0;
	ok(!swc_flow_time(&a, MIB, &paper, &flow, count_calls, &last, NULL, 0) && last > 0 &&
		   near(flow.ns, swc_cost_time(&c, MIB, &paper, NULL), 1e-6),
	   "flow model: no topology is a switch; progress grows");
	swc_topo_free(&t);
}

static void test_network(void)
{
	struct swc_topo t = topo_of("torus:4x4");
	struct swc_network n = swc_network_of(&t);
	struct swc_cost c = { .phased = { 2, 3, 0.5 }, .eager = { 2, 3, 0.5 } };

	ok(near(n.gbps, 400, 1e-9) && near(n.hop_ns, 400, 1e-9) && near(n.step_ns, 600, 1e-9),
	   "default figures of a network");
	swc_topo_free(&t);
	t = topo_of("torus:4x4@100Gbps,1us");
	n = swc_network_of(&t);
	ok(near(n.gbps, 100, 1e-9) && near(n.hop_ns, 1000, 1e-9) && near(n.step_ns, 600, 1e-9),
	   "figures from the topology");
	ok(near(swc_cost_time(&c, 1000, &n, NULL), 2 * 600 + 3 * 1000 + 0.5 * 1000 * 8 / 100, 1e-9),
	   "time from cost and figures");
	n = swc_network_in_kernel(&t);
	ok(near(n.gbps, 100, 1e-9) && n.step_ns > 600 && n.reduce_gbps > 0,
	   "figures of the kernel: longer steps, and reductions take time");
	t.tcp = true;
	n = swc_network_in_kernel(&t);
	ok(near(n.gbps, 100, 1e-9) && near(n.step_ns, 35000, 1e-9), "figures of TCP: longer steps");
	t.gbps = 0;
	n = swc_network_in_kernel(&t);
	ok(near(n.gbps, 25, 1e-9), "and slower links, if their rate is not given");
	t.gbps = 100;
	t.tcp = false;
	n = swc_network_in_kernel(&t);
	n.step_ns = 600;
	n.reduce_gbps = 50;
	c.reduced = 1.5;
	ok(near(swc_cost_time(&c, 1000, &n, NULL),
		2 * 600 + 3 * 1000 + 0.5 * 1000 * 8 / 100 + 1.5 * 1000 * 8 / 50, 1e-9),
	   "time of reductions");
	n = swc_network_of(&t);
	c.phased.last_hops = c.eager.last_hops = 2;
	c.phased.last_share = c.eager.last_share = 0.25;
	n.ack_bytes = 251;
	ok(near(swc_cost_time(&c, 1000, &n, NULL), 2 * 600 + 3 * 1000 + 0.5 * 1000 * 8 / 100, 1e-9),
	   "small transfers do not wait for acknowledgements");
	n.ack_bytes = 250;
	ok(near(swc_cost_time(&c, 1000, &n, NULL), 2 * 600 + 5 * 1000 + 0.5 * 1000 * 8 / 100, 1e-9),
	   "large transfers wait for acknowledgements");
	swc_topo_free(&t);
}

int main(void)
{
	test_network();
	test_by_hand();
	test_rows();
	test_twosided();
	test_times();
	test_flow();
	test_hierarchy();
	test_rates();
	test_errors();
	printf("# %u skipped, as plans were refused\n", skipped);
	return done();
}
