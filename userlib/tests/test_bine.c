// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bine trees, gather and scatter along them, scatter and allgather, and all-to-all over Swing's
 * butterfly: steps, hops and load of the links that are known, the shape of trees, plans of all ranks verified on symbols for every number of
 * ranks and on tori of any sides, and the choice. SWC_TEST_SEED repeats the random ones,
 * SWC_TEST_SHORT=1: fewer of them. TAP on stdout.
 */
#include <math.h>
#include <time.h>

#include "plan/model/model.h"
#include "plan/select/choose.h"
#include "plans.h"
#include "random.h"
#include "tap.h"
#include "topos.h"

static const enum swc_coll rooted[] = { SWC_BROADCAST, SWC_REDUCE };
static const enum swc_coll gathers[] = { SWC_GATHER, SWC_SCATTER };

/* ---- steps, hops and load ---- */

struct want {
	uint32_t steps, hops;
	double load; /* psi_xi */
};

static bool costs(const char *text, const char *algo, enum swc_coll coll, uint32_t ports,
		  uint32_t root, struct want w)
{
	struct swc_topo t = topo_of(text);
	struct swc_plan_args a = args_of(algo, coll, ports);
	struct swc_cost c;
	bool good;

	a.topo = &t;
	a.nranks = t.nranks;
	a.root = root;
	good = !swc_cost_compute(&a, &c, NULL, NULL, NULL, 0) && c.phased.steps == w.steps &&
	       c.phased.hops == w.hops && fabs(c.psi_xi - w.load) < 1e-6;
	if (!good)
		printf("# %s %s %s, root %u, ports %u: %u/%llu/%g\n", text, algo,
		       swc_coll_name(coll), root, ports, c.phased.steps,
		       (unsigned long long)c.phased.hops, c.psi_xi);
	swc_topo_free(&t);
	return good;
}

/* On one port and on all: trees, all-to-all; on all ports: scatter and allgather. */
static void test_costs(void)
{
	static const struct {
		const char *topo;
		struct want tree[2], sag, alltoall[2];
	} rows[] = {
		{ "ring:8",
		  { { 3, 5, 3 }, { 3, 5, 1.5 } },
		  { 6, 10, 1.125 },
		  { { 3, 5, 2 }, { 3, 5, 1.25 } } },
		{ "ring:16",
		  { { 4, 10, 4 }, { 4, 10, 2 } },
		  { 8, 20, 1.4375 },
		  { { 4, 10, 3.5 }, { 4, 10, 2.5 } } },
		{ "ring:64",
		  { { 6, 42, 6 }, { 6, 42, 3 } },
		  { 12, 84, 2.109375 },
		  { { 6, 42, 12 }, { 6, 42, 10.5 } } },
		{ "torus:4x4",
		  { { 4, 4, 8 }, { 4, 4, 2 } },
		  { 8, 8, 0.9375 },
		  { { 4, 4, 4 }, { 4, 4, 1 } } },
		{ "torus:8x8",
		  { { 6, 10, 12 }, { 6, 10, 3 } },
		  { 12, 20, 1.078125 },
		  { { 6, 10, 8 }, { 6, 10, 2.5 } } },
		{ "torus:16x4",
		  { { 6, 12, 12 }, { 6, 12, 4 } },
		  { 12, 24, 1.28125 },
		  { { 6, 12, 9 }, { 6, 12, 5 } } },
		{ "torus:4x4x4",
		  { { 6, 6, 18 }, { 6, 6, 3 } },
		  { 12, 12, 0.984375 },
		  { { 6, 6, 9 }, { 6, 6, 1.5 } } },
		{ "ring:13", { { 4, 10, 4 }, { 4, 10, 3 } }, { 0 }, { { 0 } } },
		{ "torus:3x5", { { 5, 6, 10 }, { 5, 6, 3 } }, { 0 }, { { 0 } } },
	};
	char name[80];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *topo = rows[i].topo;
		bool good = true;

		for (uint32_t k = 0; k < 8; k++) {
			uint32_t one = k & 1, root = k & 2 ? 5 : 0;
			enum swc_coll coll = rooted[k / 4];

			good &= costs(topo, "bine", coll, one, root, rows[i].tree[!one]);
			if (rows[i].sag.steps && !one)
				good &= costs(topo, "bine-sag", coll, 0, root, rows[i].sag);
		}
		for (uint32_t one = 0; one < 2 && rows[i].sag.steps; one++)
			good &= costs(topo, "bine", SWC_ALLTOALL, one, 0, rows[i].alltoall[!one]);
		snprintf(name, sizeof(name), "steps, hops and load on %s", topo);
		ok(good, name);
	}
}

/* Gather and scatter, on one port and on all. */
static void test_gather_costs(void)
{
	static const struct {
		const char *topo;
		struct want want[2];
	} rows[] = {
		{ "ring:16", { { 4, 10, 0.9375 }, { 4, 10, 0.46875 } } },
		{ "torus:8x8", { { 6, 10, 1.96875 }, { 6, 10, 0.4921875 } } },
		{ "torus:16x4", { { 6, 12, 1.96875 }, { 6, 12, 0.8671875 } } },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t k = 0; k < 8; k++)
			good &= costs(rows[i].topo, "bine", gathers[k / 4], k & 1, k & 2 ? 5 : 0,
				      rows[i].want[!(k & 1)]);
	ok(good, "gather and scatter: steps, hops and load");
}

/* The load of tree's broadcast is that of its reduction. */
static void test_tree(void)
{
	static const struct {
		const char *topo;
		struct want tree;
	} rows[] = { { "ring:16", { 4, 15, 4 } },
		     { "torus:4x4", { 4, 6, 8 } },
		     { "torus:8x8", { 6, 14, 12 } },
		     { "ring:12", { 3, 7, 3 } } };
	bool good = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int k = 0; k < 2; k++)
			good &= costs(rows[i].topo, "tree", rooted[k], 0, 0, rows[i].tree);
	ok(good, "tree: the same steps, hops and load down as up");
}

/* ---- shapes ---- */

/* The rank that a rank receives from in a broadcast on a ring, by the first port. */
static uint32_t parent_of(const struct set *s, uint32_t r)
{
	const struct swc_plan_view *v = &s->view[r];
	const struct swc_plan_step *first = &v->steps[v->channels[0].first_step];

	return first->nrecv ? v->xfers[first->first_xfer + first->nsend].rank : r;
}

static void test_shapes(void)
{
	static const uint32_t eight[] = { 0, 0, 3, 0, 3, 4, 7, 0 };
	struct set s;
	bool good = true;

	if (build_set(&s, "ring:8", args_of("bine", SWC_BROADCAST, 1), OUT_OF_PLACE))
		abort();
	for (uint32_t r = 0; r < 8; r++)
		good &= parent_of(&s, r) == eight[r];
	free_set(&s);
	ok(good, "the tree of 8 ranks");

	for (uint32_t p = 2; p <= 64; p++) {
		char topo[20];
		uint32_t log = 0;

		while (1u << log < p)
			log++;
		snprintf(topo, sizeof(topo), "ring:%u", p);
		if (build_set(&s, topo, args_of("bine", SWC_BROADCAST, 1), OUT_OF_PLACE))
			abort();
		for (uint32_t r = 0; r < p; r++) {
			uint32_t depth = 0, far = (r + p - parent_of(&s, r)) % p;

			for (uint32_t up = r; up && depth <= log; up = parent_of(&s, up))
				depth++;
			far = far < p - far ? far : p - far;
			good &= depth <= log && 3 * far <= (1u << log) + 1;
		}
		free_set(&s);
	}
	ok(good,
	   "2 to 64 ranks: no branch has more than log2 p messages, none is longer than p / 3");
}

/* ---- proofs ---- */

static int check_roots(const char *topo, const char *algo, uint32_t nranks)
{
	int bad = 0;

	for (int k = 0; k < 2; k++) {
		struct swc_plan_args a = args_of(algo, rooted[k], 0);

		for (a.root = 0; a.root < nranks; a.root++) {
			if (nranks > 9 && a.root && a.root != nranks / 3 && a.root != nranks - 1)
				continue;
			bad |= check_set(topo, a, MIXED);
			for (int placing = OUT_OF_PLACE; nranks <= 9 && placing < MIXED; placing++)
				bad |= check_set(topo, a, placing);
		}
		a.root = nranks / 2;
		a.ports = 1;
		bad |= check_set(topo, a, MIXED);
	}
	return bad;
}

static int check_alltoall(const char *topo, uint32_t nranks)
{
	struct swc_plan_args a = args_of("bine", SWC_ALLTOALL, 0);
	int bad = check_set(topo, a, MIXED);

	for (int placing = OUT_OF_PLACE; nranks <= 32 && placing < MIXED; placing++)
		bad |= check_set(topo, a, placing);
	a.ports = 1;
	return bad | check_set(topo, a, MIXED);
}

/* Does a copy name the same blocks at both ends? */
static bool copies_to_same(const struct swc_plan_view *v)
{
	for (uint32_t i = 0; i < v->hdr->nsteps; i++) {
		const struct swc_plan_xfer *x = &v->xfers[v->steps[i].first_xfer];

		if (v->steps[i].kind == SWC_STEP_LOCAL && x[0].first_block != x[1].first_block)
			return false;
	}
	return true;
}

/*
 * Do the ends of each message, and of each copy, name the same blocks? Then shards need not have the
 * same size.
 */
static bool same_blocks(const struct set *s)
{
	uint32_t n = s->nranks, nch = s->view[0].hdr->nchannels;
	uint64_t *sum = calloc((size_t)n * n * nch, 2 * sizeof(*sum));
	bool good = true;

	for (uint32_t r = 0; r < n; r++)
		good &= copies_to_same(&s->view[r]);
	for (uint32_t r = 0; r < n; r++)
		for (uint32_t c = 0; c < nch; c++)
			for (uint32_t i = 0; i < s->view[r].channels[c].nsteps; i++) {
				const struct swc_plan_step *step =
					&s->view[r].steps[s->view[r].channels[c].first_step + i];
				const struct swc_plan_xfer *x = &s->view[r].xfers[step->first_xfer];

				for (uint32_t k = 0; step->kind == SWC_STEP_NET &&
						     k < (uint32_t)step->nsend + step->nrecv;
				     k++) {
					bool recv = k >= step->nsend;
					size_t at = recv ? (size_t)x[k].rank * n + r
							 : (size_t)r * n + x[k].rank;
					uint64_t *h = &sum[2 * (at * nch + c) + recv];

					*h = *h * 1000003 + x[k].first_block * 4099ull +
					     x[k].nblocks;
				}
			}
	for (size_t i = 0; i < (size_t)n * n * nch; i++)
		good &= sum[2 * i] == sum[2 * i + 1];
	free(sum);
	return good;
}

static int check_uneven(const char *topo, struct swc_plan_args a)
{
	struct set s;
	int ret;

	a.uneven = true;
	ret = build_set(&s, topo, a, MIXED);
	if (!ret && !same_blocks(&s))
		ret = -EINVAL;
	if (!ret)
		ret = swc_plan_keeps_places((const void *const *)s.plan, s.bytes, s.nranks, s.why,
					    sizeof(s.why));
	if (!ret)
		ret = verify_both(&s);
	if (ret)
		print_set(&s, ret);
	free_set(&s);
	return ret;
}

static int check_gathers(const char *topo, const char *algo, uint32_t nranks)
{
	int bad = 0;

	for (int k = 0; k < 2; k++)
		for (uint32_t root = 0; root < nranks; root++) {
			struct swc_plan_args a = args_of(algo, gathers[k], root & 1);

			if (nranks > rounds_of(64) / 4 && root && root != nranks / 3 &&
			    root != nranks - 1)
				continue;
			a.root = root;
			bad |= check_set(topo, a, MIXED);
			bad |= check_uneven(topo, a);
		}
	return bad;
}

static void test_gathers(void)
{
	static const char *const topos[] = {
		"torus:4x4", "torus:8x8", "torus:3x5",	 "torus:2x2x2", "torus:6x10",
		"torus:7x4", "torus:1x6", "mesh:4x6",	 "mesh:5",	"torus:3x2x5",
		"switch:12", "switch:7",  "torus:2x2*2", "switch:3*4",
	};
	static const char *const algos[] = { "bine", "tree", "linear" };
	bool good = true;

	for (uint32_t p = 2; p <= 64; p++)
		for (size_t k = 0; k < sizeof(algos) / sizeof(algos[0]); k++) {
			char topo[20];

			snprintf(topo, sizeof(topo), "ring:%u", p);
			good &= !check_gathers(topo, algos[k], p);
		}
	ok(good, "gather and scatter, 2 to 64 ranks: bine, tree and linear, of unequal shards too");
	for (size_t i = 0; i < sizeof(topos) / sizeof(topos[0]); i++) {
		struct swc_topo t = topo_of(topos[i]);

		good &= !check_gathers(topos[i], "bine", t.nranks);
		swc_topo_free(&t);
	}
	ok(good, "gather and scatter by bine on tori, meshes and switches");
}

/* On one port of a ring, a message is one range of shards, or two where it wraps around. */
static void test_gather_ranges(void)
{
	bool good = true;

	for (uint32_t p = 2; p <= 64; p++)
		for (int k = 0; k < 2; k++) {
			struct swc_plan_args a = args_of("bine", gathers[k], 1);
			struct set s;
			char topo[20];

			snprintf(topo, sizeof(topo), "ring:%u", p);
			a.root = p / 3;
			if (build_set(&s, topo, a, OUT_OF_PLACE))
				abort();
			for (uint32_t r = 0; r < p; r++) {
				const struct swc_plan_view *v = &s.view[r];
				uint32_t wrapped = 0, nrecv = 0;

				for (uint32_t i = 0; i < v->hdr->nsteps; i++)
					nrecv += v->steps[i].kind == SWC_STEP_NET;
				for (uint32_t i = 0; i < v->hdr->nxfers; i++)
					for (uint32_t j = 0; j < i; j++)
						wrapped += v->xfers[i].rank != r &&
							   v->xfers[i].rank == v->xfers[j].rank;
				good &= nrecv && wrapped <= 2;
			}
			free_set(&s);
		}
	ok(good, "on one port of a ring a message is one range, or two");
}

static void test_rings(void)
{
	int tree = 0, sag = 0, alltoall = 0;

	for (uint32_t p = 2; p <= 64; p++) {
		char topo[20];

		snprintf(topo, sizeof(topo), "ring:%u", p);
		tree |= check_roots(topo, "bine", p);
		if (p <= rounds_of(128))
			sag |= check_roots(topo, "bine-sag", p);
		if (p % 2 == 0)
			alltoall |= check_alltoall(topo, p);
	}
	ok(!tree, "bine, 2 to 64 ranks");
	ok(!sag, "bine-sag, up to 64 ranks");
	ok(!alltoall, "all-to-all, 2 to 64 ranks");
}

static void test_tori(void)
{
	static const char *const topos[] = {
		"torus:4x4",  "torus:8x8", "torus:16x4", "torus:4x4x4", "torus:3x5",  "torus:2x2x2",
		"torus:6x10", "torus:7x4", "torus:1x6",	 "mesh:4x6",	"mesh:5",     "torus:3x2x5",
		"switch:12",  "switch:7",  "switch:1*6", "torus:2x2*2", "switch:3*4",
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(topos) / sizeof(topos[0]); i++) {
		struct swc_topo t = topo_of(topos[i]);
		bool even = t.nranks % 2 == 0;

		for (uint32_t k = 0; k < t.ndims && t.nlocal == 1; k++)
			even &= t.dim[k] % 2 == 0 || t.dim[k] == 1;
		good &= !check_roots(topos[i], "bine", t.nranks);
		good &= !check_roots(topos[i], "bine-sag", t.nranks);
		good &= !even || !check_alltoall(topos[i], t.nranks);
		swc_topo_free(&t);
	}
	ok(good, "tori, meshes and switches");

	for (uint32_t i = 0; i < rounds_of(32); i++) {
		uint32_t d[] = { 1 + rnd(8), 1 + rnd(6), 1 + rnd(3) }, n = d[0] * d[1] * d[2];
		struct swc_plan_args a = args_of(i % 2 ? "bine" : "bine-sag", rooted[rnd(2)], 0);
		char topo[40];

		a.ports = rnd(7);
		a.root = rnd(n);
		snprintf(topo, sizeof(topo), "torus:%ux%ux%u", d[0], d[1], d[2]);
		good &= !check_set(topo, a, (enum placing)rnd(PLACINGS));
		a = args_of("bine", SWC_ALLTOALL, rnd(7));
		snprintf(topo, sizeof(topo), "torus:%ux%ux%u", d[0] + d[0] % 2, d[1] + d[1] % 2,
			 d[2] + d[2] % 2);
		if (n <= 48)
			good &= !check_set(topo, a, (enum placing)rnd(PLACINGS));
	}
	ok(good, "random tori");
}

/* ---- limits ---- */

static bool refused(const char *topo, enum swc_coll coll, const char *because)
{
	struct swc_topo t = topo_of(topo);
	struct swc_plan_args a = args_of("bine", coll, 0);
	char why[120] = "";
	size_t bytes;
	void *plan;
	int ret;

	a.topo = &t;
	a.nranks = t.nranks;
	ret = swc_plan_build(&a, &plan, &bytes, why, sizeof(why));
	swc_topo_free(&t);
	if (ret != -EOPNOTSUPP || !strstr(why, because))
		printf("# %s: %d '%s'\n", topo, ret, why);
	return ret == -EOPNOTSUPP && strstr(why, because) && !strchr(why, '\n');
}

/* Does a plan of one of 2^20 ranks take little CPU time? The least of three, as others use the caches, too. */
static bool is_soon(const char *topo, enum swc_coll coll)
{
	struct swc_topo t = topo_of(topo);
	struct swc_plan_args a = args_of("bine-sag", coll, 0);
	double least = 1;

	a.topo = &t;
	a.nranks = t.nranks;
	a.rank = 5;
	for (int i = 0; i < 3; i++) {
		clock_t begin = clock();
		size_t bytes;
		void *plan;

		if (swc_plan_build(&a, &plan, &bytes, NULL, 0))
			return false;
		least = fmin(least, (double)(clock() - begin) / CLOCKS_PER_SEC);
		free(plan);
	}
	if (least > 0.1)
		printf("# %s: %g s\n", topo, least);
	return least <= 0.1;
}

static void test_limits(void)
{
	struct swc_plan_args a = args_of("bine", SWC_REDUCE, 0);
	bool good = true;

	ok(refused("ring:7", SWC_ALLTOALL, "even sizes, not 7") &&
		   refused("torus:4x3", SWC_ALLTOALL, "even sizes, not 3") &&
		   refused("switch:9", SWC_ALLTOALL, "even sizes, not 9"),
	   "all-to-all of odd sizes is refused");
	ok(refused("torus:256x256", SWC_ALLTOALL, "bytes") &&
		   refused("torus:4x4", SWC_ALLREDUCE, "does not offer"),
	   "all-to-all of too many ranks, and an allreduce");

	for (uint32_t n = 0; n < 40; n++) {
		size_t bytes = 0;
		void *plan;

		a.nranks = n < 2 ? SWC_PLAN_MAX_RANKS - n : 1000 + 25931 * n;
		a.rank = a.nranks / 3;
		a.root = a.nranks - 1;
		good &= !swc_plan_build(&a, &plan, &bytes, NULL, 0) && bytes < 3000;
		if (bytes)
			free(plan);
	}
	ok(good, "trees of up to 2^20 ranks");
	ok(is_soon("ring:1048576", SWC_BROADCAST) && is_soon("switch:1048576", SWC_REDUCE) &&
		   is_soon("torus:1024x1024", SWC_BROADCAST),
	   "scatter and allgather of 2^20 ranks: a plan takes a tenth of a second at most");
}

/* ---- the choice ---- */

static bool chooses(const char *topo, enum swc_coll coll, uint64_t bytes, const char *algo)
{
	struct swc_topo t = topo_of(topo);
	struct swc_choices c;
	struct swc_choice got;

	swc_choices_init(&c, &t, false);
	got = swc_choices_take(&c, coll, SWC_F32, SWC_SUM, bytes, 1);
	if (strcmp(swc_algo_name(got.algo), algo))
		printf("# %s %s of %llu bytes: %s\n", topo, swc_coll_name(coll),
		       (unsigned long long)bytes, swc_algo_name(got.algo));
	swc_choices_free(&c);
	swc_topo_free(&t);
	return !strcmp(swc_algo_name(got.algo), algo);
}

static void test_choice(void)
{
	ok(chooses("torus:8x8", SWC_BROADCAST, 1024, "bine") &&
		   chooses("torus:8x8", SWC_REDUCE, 1024, "bine") &&
		   chooses("torus:8x8", SWC_BROADCAST, 64 << 20, "bine-sag") &&
		   chooses("torus:8x8", SWC_ALLTOALL, 1 << 20, "bine"),
	   "bine and bine-sag on a torus");
	ok(chooses("torus:8x8", SWC_GATHER, 1024, "bine") &&
		   chooses("torus:8x8", SWC_SCATTER, 64 << 20, "bine") &&
		   chooses("switch:4", SWC_GATHER, 1024, "linear") &&
		   chooses("ring:8", SWC_SCATTER, 1024, "linear") &&
		   chooses("switch:4*4", SWC_SCATTER, 1 << 20, "tree") &&
		   chooses("switch:1*9", SWC_GATHER, 1024, "direct1") &&
		   chooses("switch:1*9", SWC_GATHER, 1 << 20, "direct2"),
	   "gather and scatter: bine on a torus, linear for few ranks, direct on one node");
	ok(chooses("switch:8*8", SWC_BROADCAST, 1024, "tree") &&
		   chooses("torus:4x4*2", SWC_BROADCAST, 16 << 20, "bine-sag") &&
		   chooses("switch:16", SWC_BROADCAST, 1024, "tree") &&
		   chooses("switch:16", SWC_ALLTOALL, 65536, "rotate"),
	   "bine-sag between nodes with several ranks, too, but no bine on a switch");
}

int main(void)
{
	printf("TAP version 13\n");
	seed_rnd();
	test_costs();
	test_gather_costs();
	test_tree();
	test_shapes();
	test_gathers();
	test_gather_ranges();
	test_rings();
	test_tori();
	test_limits();
	test_choice();
	return done();
}
