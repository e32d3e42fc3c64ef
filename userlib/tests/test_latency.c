// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whole vectors from both sides: twosided, radix between it and reduce-scatter + allgather, and
 * ordered. Plans of all ranks are verified on symbols on every ring up to 64, on tori and on random
 * tori; their steps and hops are compared with known figures. TAP on stdout.
 */
#include <math.h>
#include <time.h>

#include "plan/algo/sides.h"
#include "plan/model/model.h"
#include "plans.h"
#include "random.h"
#include "tap.h"

static uint32_t log3(uint32_t n)
{
	uint32_t k = 0;

	for (uint32_t reach = 1; reach < n; reach *= 3)
		k++;
	return k;
}

/* Steps of the whole network if each dimension of d members takes log3 d. */
static uint32_t log3_steps(const struct swc_topo *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->ndims; i++)
		n += log3(t->dim[i]);
	return n;
}

/* Does an algorithm refuse, or have right plans? Hybrids with as many stages as asked for. */
static int check(const char *topo, const char *algo, uint32_t channels, enum placing placing)
{
	struct swc_plan_args a = args_of(algo, SWC_ALLREDUCE, 0);
	struct set s;
	int ret;

	a.channels = channels;
	ret = build_set(&s, topo, a, placing);
	if (!ret)
		ret = verify_both(&s);
	if (ret && ret != -EOPNOTSUPP)
		print_set(&s, ret);
	free_set(&s);
	return ret == -EOPNOTSUPP ? 0 : ret;
}

static const char *const algos[] = { "twosided", "twosided:4", "ordered",
				     "radix:1",	 "radix:2",    "radix" };
#define NALGOS (sizeof(algos) / sizeof(algos[0]))

static int check_all(const char *topo)
{
	int bad = 0;

	for (size_t i = 0; i < NALGOS; i++)
		bad |= check(topo, algos[i], 0, MIXED);
	return bad;
}

static void test_rings(void)
{
	static const uint32_t primes[] = { 83, 89, 97, 109, 113, 127, 157, 193, 199, 239, 257 };
	char topo[20];
	int bad = 0;

	for (uint32_t d = 2; d <= 64; d++) {
		snprintf(topo, sizeof(topo), "%s:%u", d % 5 ? "ring" : "switch", d);
		bad |= check_all(topo);
		for (size_t i = 0; d <= 16 && i < NALGOS; i++)
			bad |= check(topo, algos[i], 0, OUT_OF_PLACE) |
			       check(topo, algos[i], 0, IN_PLACE);
	}
	ok(!bad, "rings and switches of 2 to 64");
	bad = 0;
	for (uint32_t d = 65; d <= 250; d += 37) {
		snprintf(topo, sizeof(topo), "ring:%u", d);
		bad |= check(topo, "twosided", 0, MIXED) | check(topo, "ordered", 0, MIXED);
	}
	/* Two stages of 11 and 13, which take two steps each. */
	bad |= check("ring:121", "twosided", 0, MIXED) | check("ring:143", "twosided", 0, MIXED) |
	       check("ring:190", "twosided", 0, MIXED) | check("ring:203", "twosided", 0, MIXED);
	ok(!bad, "rings of up to 250: twosided and ordered");
	bad = 0;
	for (size_t i = 0; i < sizeof(primes) / sizeof(primes[0]); i++) {
		snprintf(topo, sizeof(topo), "ring:%u", primes[i]);
		bad |= check(topo, "twosided", 0, MIXED) | check(topo, "twosided:4", 0, MIXED);
	}
	ok(!bad, "twosided on rings of a prime number, up to 257");
}

static void test_tori(void)
{
	static const char *const tori[] = {
		"torus:4x4",   "torus:8x8",   "torus:6x6",     "torus:12x12",	"torus:3x3x3",
		"torus:5x3",   "torus:16x4",  "torus:4x4x4",   "torus:2x2x2",	"torus:8x1x8",
		"torus:7x8",   "torus:13x4",  "torus:2x3x2x5", "torus:1x7x2x3", "mesh:4x5",
		"torus:2x8",   "torus:9x3",   "torus:32x2",    "torus:6x10",	"torus:10x4x2",
		"torus:27x3",  "torus:8x4x2", "torus:5x7",     "torus:3x3*2",	"ring:9*3",
		"ring:3*1,2,3"
	};
	char topo[40];
	int bad = 0;

	for (size_t i = 0; i < sizeof(tori) / sizeof(tori[0]); i++)
		bad |= check_all(tori[i]);
	ok(!bad, "tori, with several ranks per node too");
	bad = check("torus:3x5", "twosided", 1, MIXED) | check("torus:3x5", "twosided", 5, MIXED) |
	      check("torus:3x5", "ordered", 5, MIXED) | check("torus:4x6", "radix", 7, MIXED);
	ok(!bad, "more and fewer channels than dimensions");
	bad = 0;
	for (int i = 0; i < 200; i++) {
		int n = snprintf(topo, sizeof(topo), "torus:%u", 1 + rnd(9));

		for (uint32_t k = 0, dims = 1 + rnd(2); k < dims; k++)
			n += snprintf(topo + n, sizeof(topo) - (size_t)n, "x%u", 1 + rnd(5));
		bad |= check(topo, algos[rnd(NALGOS)], rnd(4) ? 0 : 1 + rnd(5), MIXED);
	}
	ok(!bad, "200 random tori");
}

/* ---- figures ---- */

static bool cost_of(const char *topo, const char *algo, struct swc_topo *t, struct swc_cost *c)
{
	struct swc_plan_args a = args_of(algo, SWC_ALLREDUCE, 0);

	if (swc_topo_parse(t, topo, NULL, 0))
		abort();
	a.topo = t;
	a.nranks = t->nranks;
	return !swc_cost_compute(&a, c, NULL, NULL, NULL, 0);
}

static void test_figures(void)
{
	static const struct {
		const char *topo, *algo;
		uint32_t steps, hops;
	} rows[] = {
		{ "ring:5", "twosided", 2, 3 },	     { "ring:7", "twosided", 2, 3 },
		{ "ring:8", "twosided", 2, 4 },	     { "ring:27", "twosided", 3, 13 },
		{ "ring:32", "twosided", 4, 16 },    { "ring:64", "twosided", 4, 32 },
		{ "ring:65", "twosided", 3, 32 },    { "ring:121", "twosided", 4, 60 },
		{ "ring:143", "twosided", 4, 71 },   { "ring:169", "twosided", 4, 84 },
		{ "ring:200", "twosided", 4, 100 },  { "ring:1331", "twosided", 6, 665 },
		{ "ring:97", "twosided", 5, 50 },    { "ring:109", "twosided", 4, 54 },
		{ "ring:131", "twosided", 4, 65 },   { "ring:157", "twosided", 5, 78 },
		{ "ring:199", "twosided", 4, 99 },   { "ring:257", "twosided", 6, 130 },
		{ "ring:4", "twosided:4", 1, 2 },    { "ring:16", "twosided:4", 2, 8 },
		{ "ring:32", "twosided:4", 3, 16 },  { "ring:64", "twosided:4", 3, 34 },
		{ "torus:4x4", "twosided:4", 2, 4 }, { "torus:16x16", "twosided:4", 4, 16 },
		{ "torus:4x4", "twosided", 4, 4 },   { "torus:8x8", "twosided", 4, 8 },
		{ "torus:6x6", "twosided", 4, 6 },   { "torus:12x12", "twosided", 6, 12 },
		{ "torus:3x3x3", "twosided", 3, 3 }, { "torus:4x4x4", "twosided", 6, 6 },
		{ "torus:2x2x2", "twosided", 3, 3 }, { "torus:8x1x8", "twosided", 4, 8 },
		{ "torus:7x8", "twosided", 4, 7 },   { "torus:2x8", "twosided", 3, 5 },
		{ "torus:9x3", "twosided", 3, 5 },   { "torus:32x2", "twosided", 5, 17 },
		{ "torus:6x10", "twosided", 5, 9 },  { "torus:10x4x2", "twosided", 6, 9 },
		{ "torus:16x4", "twosided", 5, 10 }, { "torus:9x3", "radix", 6, 10 },
		{ "torus:27x3", "radix", 8, 28 },    { "torus:9x9", "radix", 8, 16 },
		{ "torus:9x3", "ordered", 3, 5 },    { "ring:27", "ordered", 3, 13 },
		{ "torus:27x27", "ordered", 6, 26 }, { "torus:64x64", "ordered", 8, 70 },
		{ "torus:8x8", "ordered", 4, 10 },   { "torus:4x4", "ordered", 4, 4 },
	};
	struct swc_topo t;
	struct swc_cost c;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char name[80];
		bool good = cost_of(rows[i].topo, rows[i].algo, &t, &c);

		snprintf(name, sizeof(name), "%s on %s: at most %u steps and %u hops", rows[i].algo,
			 rows[i].topo, rows[i].steps, rows[i].hops);
		if (!ok(good && c.phased.steps <= rows[i].steps && c.phased.hops <= rows[i].hops,
			name))
			printf("# %u steps, %llu hops\n", c.phased.steps,
			       (unsigned long long)c.phased.hops);
		swc_topo_free(&t);
	}
}

/* Steps on every ring; twosided and ordered have no more than log3 d, radix twice the factors. */
static void test_steps(void)
{
	bool good = true;
	char topo[20];

	for (uint32_t d = 2; d <= 81; d++) {
		struct swc_topo t;
		struct swc_cost c;

		snprintf(topo, sizeof(topo), "ring:%u", d);
		good &= cost_of(topo, "twosided", &t, &c) && c.phased.steps <= log3_steps(&t);
		good &= 2 * c.phased.hops >= d - 1;
		swc_topo_free(&t);
		/* Members that skip a step may be ahead of others, which then adds one. */
		good &= cost_of(topo, "ordered", &t, &c) && c.phased.steps <= log3_steps(&t) + 1;
		swc_topo_free(&t);
	}
	ok(good, "steps on rings of 2 to 81");
	good = true;
	for (uint32_t d = 3; d <= 243; d *= 3) {
		struct swc_topo t;
		struct swc_cost c;

		snprintf(topo, sizeof(topo), "ring:%u", d);
		good &= cost_of(topo, "radix", &t, &c) && c.phased.steps == 2 * log3(d) &&
			c.phased.hops == d - 1 && c.sent < 2;
		swc_topo_free(&t);
	}
	ok(good,
	   "radix on powers of three: 2 log3 d steps, d - 1 hops, less than two vectors sent");
}

/* ---- channels ---- */

static bool has_channels(const char *topo, const char *algo, uint32_t ports, uint32_t n)
{
	struct swc_plan_args a = args_of(algo, SWC_ALLREDUCE, 0);
	struct set s;
	bool good;

	a.ports = ports;
	if (build_set(&s, topo, a, OUT_OF_PLACE))
		abort();
	good = header(&s, 0)->nchannels == n && !verify_set(&s);
	if (!good)
		printf("# %s on %s with %u ports: %u channels\n", algo, topo, ports,
		       header(&s, 0)->nchannels);
	free_set(&s);
	return good;
}

/* The share of the vector that a channel reduces one sum after the other. */
static double reduced(const char *topo, const char *algo)
{
	struct swc_topo t;
	struct swc_cost c;

	return cost_of(topo, algo, &t, &c) ? c.reduced : -1;
}

static void test_channels(void)
{
	ok(has_channels("torus:9x3", "radix:2", 0, 4) && has_channels("torus:9x3", "radix", 4, 4) &&
		   has_channels("torus:11x3", "radix:1", 0, 4) &&
		   has_channels("torus:9x3x1", "radix:2", 0, 4) &&
		   has_channels("ring:9", "radix", 0, 2) && has_channels("mesh:5x3", "radix", 0, 4),
	   "radix: all links reduce at once, with mirrored channels");
	ok(has_channels("switch:12", "radix", 0, 2) && has_channels("switch:9", "radix:1", 0, 2) &&
		   has_channels("switch:12", "radix", 1, 1) &&
		   has_channels("switch:6@4rails", "radix", 0, 8) &&
		   has_channels("switch:4*4", "radix", 0, 2),
	   "radix: two channels on a switch");
	ok(has_channels("torus:9x3", "radix:0", 0, 2) &&
		   has_channels("torus:9x3", "twosided", 0, 2) &&
		   has_channels("switch:12", "twosided", 0, 1) &&
		   has_channels("torus:9x3", "radix", 1, 1) &&
		   has_channels("torus:9x3", "radix", 3, 2) &&
		   has_channels("torus:4x4", "radix", 3, 3),
	   "no mirrored ones for whole vectors, nor on some ports only, but where a stage goes one way");
	ok(fabs(reduced("torus:9x3", "radix") - 26. / 27 / 4) < 1e-6 &&
		   fabs(reduced("switch:12", "radix") - 11. / 12 / 2) < 1e-6,
	   "radix: a channel of 2D reduces 1/2D of the vector");
}

/* ---- search ---- */

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The model builds plans of thousands of ranks, all with the same sizes: these cost one search. */
static void test_search(void)
{
	static struct swc_sides first[80], again;
	uint64_t hops = 0;
	double begin, one;
	bool good = true;

	for (uint32_t k = 0; k < 80; k++)
		good &= !swc_sides_find(&first[k], 2 + k, false);
	for (uint32_t k = 0; k < 80; k++)
		good &= !swc_sides_find(&again, 2 + k * 29 % 80, false) &&
			!memcmp(&again, &first[k * 29 % 80], sizeof(again));
	ok(good, "a search finds the same again");
	good = !swc_sides_find(&again, 604800, false) && again.nsteps <= 13;
	for (uint32_t k = 0; good && k < again.nsteps; k++)
		hops += swc_sides_hops(&again, k);
	ok(good && hops == 302400, "of a number with many factors: half the ring");

	begin = cpu_seconds();
	swc_sides_find(&again, 1024, false);
	one = cpu_seconds() - begin;
	begin = cpu_seconds();
	for (int i = 0; i < 1000; i++) {
		swc_sides_find(&again, 1024, false);
		swc_sides_find(&again, 80, false);
	}
	ok(cpu_seconds() - begin < 100 * one, "it finds the last sizes again without searching");
}

/* ---- order ---- */

/* Is the mark that the order varies set exactly where it does? */
static bool marked(const char *topo, const char *algo, bool varies)
{
	struct set s;
	bool good;

	if (build_set(&s, topo, args_of(algo, SWC_ALLREDUCE, 0), IN_PLACE))
		abort();
	good = varies == !!(header(&s, 0)->flags & SWC_PLAN_ORDER_VARIES);
	for (uint32_t r = 0; r < s.nranks; r++)
		header(&s, r)->flags &= ~(uint32_t)SWC_PLAN_ORDER_VARIES;
	good &= varies == !!verify_set(&s);
	if (!good)
		printf("# %s on %s: the mark is wrong\n", algo, topo);
	free_set(&s);
	return good;
}

static void test_order(void)
{
	ok(marked("ring:2", "twosided", false) && marked("torus:4x4", "twosided", false) &&
		   marked("torus:2x1x4x2", "twosided", false) &&
		   marked("ring:3", "twosided", true) && marked("ring:8", "twosided", true) &&
		   marked("torus:4x5", "twosided", true) && marked("torus:9x3", "radix:1", true) &&
		   marked("torus:9x3", "radix", false) && marked("torus:6x10", "radix", false),
	   "twosided, radix: the order of additions varies unless all is of 2 and 4, or scattered");
	ok(marked("ring:4", "twosided:4", true) && marked("torus:4x4", "twosided:4", true) &&
		   marked("ring:16", "twosided:4", true),
	   "twosided:4: it varies even then");
	ok(marked("ring:13", "ordered", false) && marked("torus:9x3", "ordered", false) &&
		   marked("torus:8x8", "ordered", false) && marked("torus:5x7", "ordered", false),
	   "ordered: all members add in one order");
}

static void test_refused(void)
{
	struct set s;

	ok(build_set(&s, "ring:11", args_of("radix", SWC_ALLREDUCE, 0), OUT_OF_PLACE) ==
			   -EOPNOTSUPP &&
		   strstr(s.why, "factors of 4, 2, 3, 5 and 7"),
	   "radix needs a factor");
	free_set(&s);
	ok(build_set(&s, "torus:9x3", args_of("radix:4", SWC_ALLREDUCE, 0), OUT_OF_PLACE) ==
			   -EOPNOTSUPP &&
		   strstr(s.why, "from 0 to 3"),
	   "more stages than factors are refused");
	free_set(&s);
	ok(build_set(&s, "torus:8x8", args_of("twosided:4", SWC_ALLREDUCE, 0), OUT_OF_PLACE) ==
			   -EOPNOTSUPP &&
		   strstr(s.why, "save no step"),
	   "twosided:4 is refused where it is no other plan");
	free_set(&s);
	ok(build_set(&s, "ring:16", args_of("twosided:3", SWC_ALLREDUCE, 0), OUT_OF_PLACE) ==
			   -EOPNOTSUPP &&
		   strstr(s.why, "must be 4"),
	   "and with any other number");
	free_set(&s);
}

int main(void)
{
	printf("TAP version 13\n");
	seed_rnd();
	test_rings();
	test_tori();
	test_figures();
	test_steps();
	test_channels();
	test_search();
	test_order();
	test_refused();
	return done();
}
