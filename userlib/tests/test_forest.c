// SPDX-License-Identifier: GPL-2.0-only
/*
 * Forests on random graphs: bounds against all cuts, trees that span and keep to their links, plans
 * that are right for every collective; text of graphs that is damaged. TAP on stdout.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>

#include "plan/forest/algorithm.h"
#include "plan/forest/roots.h"
#include "plan/forest/schedule.h"
#include "plan/forest/simplex.h"
#include "plan/select/choose.h"
#include "plans.h"
#include "random.h"
#include "tap.h"

/* ---- graphs ---- */

struct lines {
	char text[8192];
	size_t used;
};

static void __attribute__((format(printf, 2, 3))) add(struct lines *l, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	l->used += (size_t)vsnprintf(l->text + l->used, sizeof(l->text) - l->used, format, args);
	va_end(args);
	if (l->used >= sizeof(l->text))
		abort();
}

/* Connected; ranks r0 and up, and switches, which pass on what they get. */
static void random_lines(struct lines *l, uint32_t ranks, uint32_t switches, bool one_way)
{
	uint32_t n = ranks + switches, most = 1 + (rnd(8) ? rnd(6) : rnd(1000000000));

	l->used = 0;
	for (uint32_t s = 0; s < switches; s++)
		add(l, "switch %u # no rank\n", ranks + s);
	for (uint32_t v = 1; v < n; v++)
		add(l, "%u %u %u\n", v, rnd(v), 1 + rnd(rnd(4) ? most : 3));
	for (uint32_t i = rnd(2 * n); i; i--) {
		uint32_t a = rnd(n), b = rnd(n);

		if (a != b)
			add(l, "%u %u %u\n", a, b, 1 + rnd(most));
	}
	for (uint32_t i = one_way ? rnd(n) : 0; i; i--) {
		uint32_t a = rnd(ranks), b = rnd(ranks);

		if (a != b)
			add(l, "%u > %u %u\n", a, b, 1 + rnd(most));
	}
}

static void parse(struct swc_graph *g, const struct lines *l)
{
	char why[200] = "";

	if (swc_graph_parse(g, l->text, l->used, why, sizeof(why))) {
		printf("# %s\n%s", why, l->text);
		abort();
	}
}

/* The bound by its definition. */
static bool is_bound(const struct swc_graph *g, struct swc_fraction inv_x)
{
	int64_t p = 0, q = 1;

	for (uint32_t set = 1; set < 1u << g->nnodes; set++) {
		int64_t ranks = __builtin_popcount(set & ((1u << g->nranks) - 1)), out = 0;

		if (ranks == g->nranks)
			continue;
		for (uint32_t i = 0; i < g->nlinks; i++)
			if (set >> g->link[i].from & 1 && !(set >> g->link[i].to & 1))
				out += g->link[i].capacity;
		if (ranks * q > p * out) {
			p = ranks;
			q = out;
		}
	}
	return p * inv_x.q == q * inv_x.p;
}

/* Trees span, none uses more of a link than there is, and each root has its number. */
static bool judge(const struct swc_phase *p, const int64_t *weight)
{
	const struct swc_graph *g = &p->splitting.direct;
	int64_t *left = calloc(g->nlinks + 1, sizeof(*left)), roots[64] = { 0 };
	bool good = true;

	for (uint32_t i = 0; i < g->nlinks; i++)
		left[i] = g->link[i].capacity;
	for (uint32_t k = 0; k < p->forest.ntrees; k++) {
		const struct swc_tree *t = &p->forest.tree[k];
		uint64_t holds = 1ull << t->root;

		for (uint32_t i = 1; i < g->nranks; i++) {
			uint32_t v = t->order[i], link = swc_graph_find(g, t->parent[v], v);

			good &= link < g->nlinks && holds >> t->parent[v] & 1 && !(holds >> v & 1);
			holds |= 1ull << v;
			left[link] -= t->weight;
		}
		good &= holds == (1ull << g->nranks) - 1 && t->weight > 0;
		roots[t->root] += t->weight;
	}
	for (uint32_t i = 0; i < g->nlinks; i++)
		good &= left[i] >= 0;
	for (uint32_t r = 0; r < g->nranks; r++)
		good &= roots[r] == weight[r];
	free(left);
	return good;
}

/* ---- plans ---- */

/* Are the plans of a schedule right, out of place and in place? */
static bool plans_right(enum swc_coll coll, uint32_t root, const struct swc_phase *down,
			const struct swc_phase *up)
{
	struct swc_schedule_args args = { .coll = coll,
					  .root = root,
					  .down = down,
					  .up = up,
					  .pieces = 1 + rnd(7),
					  .channels = 1 };
	uint32_t n = (down ? down : up)->forest.nranks;
	struct swc_verdict v = { 0 };
	struct swc_schedule s;
	char why[200] = "";
	struct set set;
	bool good;

	args.channels += rnd(args.pieces);
	good = !swc_schedule_make(&s, &args, why, sizeof(why));
	memset(&set, 0, sizeof(set));
	alloc_set(&set, n);
	for (uint32_t r = 0; r < n && good; r++) {
		set.in_place[r] = rnd(2);
		good = !swc_schedule_plan(&s, r, &set.plan[r], &set.bytes[r], why, sizeof(why)) &&
		       !swc_plan_check(set.plan[r], set.bytes[r], &set.view[r], why, sizeof(why));
	}
	if (good)
		good = !swc_plan_verify((const void *const *)set.plan, set.bytes, set.in_place, n,
					NULL, &v);
	if (!good)
		printf("# %s: %s%s\n", swc_coll_name(coll), why, v.text);
	free_set(&set);
	swc_schedule_free(&s);
	return good;
}

/* Bounds, trees and plans of one graph with equal roots, and with one. */
static bool try_graph(const struct swc_graph *g, bool small)
{
	int64_t weight[64] = { 0 }, rate;
	struct swc_bound bound[2];
	struct swc_phase phase[2], more;
	struct swc_graph reverse;
	uint32_t root = rnd(g->nranks);
	bool good = !swc_graph_reverse(&reverse, g);

	for (int up = 0; up < 2 && good; up++) {
		const struct swc_graph *way = up ? &reverse : g;

		good = !swc_bound_find(&bound[up], way) &&
		       (!small || is_bound(way, bound[up].inv_x));
		for (uint32_t r = 0; r < g->nranks; r++)
			weight[r] = bound[up].k;
		good = good &&
		       !swc_phase_make(&phase[up], g, up, bound[up].slots, weight, NULL, NULL) &&
		       judge(&phase[up], weight);
	}
	good = good && plans_right(SWC_ALLGATHER, 0, &phase[0], NULL) &&
	       plans_right(SWC_REDUCE_SCATTER, 0, NULL, &phase[1]) &&
	       plans_right(SWC_ALLREDUCE, 0, &phase[0], &phase[1]);
	for (int up = 0; up < 2 && good; up++) {
		swc_phase_free(&phase[up]);
		swc_bound_free(&bound[up]);
		memset(weight, 0, sizeof(weight));
		good = !swc_bound_broadcast(up ? &reverse : g, root, &rate);
		weight[root] = rate;
		good = good &&
		       !swc_phase_make(&phase[up], g, up, swc_fraction_of(1, 1), weight, NULL,
				       NULL) &&
		       judge(&phase[up], weight) &&
		       plans_right(up ? SWC_REDUCE : SWC_BROADCAST, root, up ? NULL : &phase[0],
				   up ? &phase[1] : NULL);
		/* One tree more than that is too many. */
		weight[root]++;
		good = good && swc_phase_make(&more, g, up, swc_fraction_of(1, 1), weight, NULL,
					      NULL) == -EINVAL;
		swc_phase_free(&phase[up]);
	}
	swc_graph_free(&reverse);
	return good;
}

static void test_graphs(void)
{
	struct lines *l = calloc(1, sizeof(*l));
	bool good = true;

	for (uint32_t i = 0; i < rounds_of(300) && good; i++) {
		bool small = rnd(2);
		uint32_t most = small ? 6 : 12, switches = rnd(2) ? rnd(4) : 0;
		struct swc_graph g;

		random_lines(l, 2 + rnd(most - 1 - switches), switches, rnd(2));
		parse(&g, l);
		good = try_graph(&g, small);
		if (!good)
			printf("# %s", l->text);
		swc_graph_free(&g);
	}
	ok(good, "random graphs: bounds, trees and plans");
	free(l);
}

/* ---- any roots ---- */

/* Returns the rate, or a negative number if trees or plans are wrong. */
static double any_rate(const struct swc_graph *g)
{
	struct swc_lp *lp = swc_simplex_new();
	struct swc_phase down = { 0 }, up = { 0 };
	int64_t all = 0;
	struct swc_roots r;
	double rate;
	int ret = swc_roots_find(&r, g, lp, NULL, NULL);

	swc_simplex_free(lp);
	if (ret) {
		printf("# program: %d\n", ret);
		return -1;
	}
	rate = r.rate;
	for (uint32_t v = 0; v < g->nranks; v++)
		all += r.weight[v];
	if (fabs((double)all / r.trees / rate - 1) > 1e-6 ||
	    swc_phase_make_slots(&down, &r.down, false, r.weight, NULL, NULL) ||
	    swc_phase_make_slots(&up, &r.up, true, r.weight, NULL, NULL) ||
	    !judge(&down, r.weight) || !judge(&up, r.weight) ||
	    !plans_right(SWC_ALLREDUCE, 0, &down, &up))
		rate = -1;
	for (uint32_t i = 0; i < g->nlinks; i++) {
		uint32_t from = g->link[i].from, to = g->link[i].to;
		uint32_t a = swc_graph_find(&r.down, from, to), b = swc_graph_find(&r.up, from, to);
		int64_t used = (a < r.down.nlinks ? r.down.link[a].capacity : 0) +
			       (b < r.up.nlinks ? r.up.link[b].capacity : 0);

		if ((double)used > (double)g->link[i].capacity * r.trees * (1 + 1e-9))
			rate = -1;
	}
	swc_phase_free(&down);
	swc_phase_free(&up);
	swc_roots_free(&r);
	return rate;
}

static void test_any_roots(void)
{
	static const struct {
		const char *topo;
		double time;
	} known[] = { { "mesh:2x4", 0.7 },   { "mesh:4", 1 },	    { "mesh:3x3", 2 / 3.0 },
		      { "ring:8", 7 / 8.0 }, { "mesh:4x4", 0.625 }, { "torus:2x4", 7 / 16.0 },
		      { "ring:3", 2 / 3.0 }, { "mesh:5x5", 0.6 },   { "switch:5", 1.6 } };
	struct lines *l = calloc(1, sizeof(*l));
	bool good = true;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct swc_topo topo;
		struct swc_graph g;
		double unit, rate;

		if (swc_topo_parse(&topo, known[i].topo, NULL, 0) ||
		    swc_graph_of_topo(&g, &topo, NULL, &unit, NULL, 0))
			abort();
		rate = any_rate(&g);
		if (fabs(rate * known[i].time - 1) > 1e-6) {
			printf("# %s: rate %g\n", known[i].topo, rate);
			good = false;
		}
		swc_graph_free(&g);
		swc_topo_free(&topo);
	}
	ok(good, "any roots: known rates");
	good = true;
	for (uint32_t i = 0; i < rounds_of(60) && good; i++) {
		struct swc_bound down, up = { 0 };
		struct swc_graph g, reverse;
		double equal, rate;

		random_lines(l, 2 + rnd(6), 0, rnd(2));
		parse(&g, l);
		rate = any_rate(&g);
		if (swc_graph_reverse(&reverse, &g) || swc_bound_find(&down, &g) ||
		    swc_bound_find(&up, &reverse))
			abort();
		equal = ((double)down.inv_x.p / (double)down.inv_x.q +
			 (double)up.inv_x.p / (double)up.inv_x.q) /
			g.nranks;
		/* From equal roots to twice as fast. */
		good = rate * equal > 1 - 1e-9 && rate * equal < 2 + 1e-9;
		if (!good)
			printf("# rate %g, equal roots %g\n# %s", rate, 1 / equal, l->text);
		swc_bound_free(&down);
		swc_bound_free(&up);
		swc_graph_free(&reverse);
		swc_graph_free(&g);
	}
	ok(good, "any roots: trees and plans of random graphs");
	free(l);
}

/* ---- as an algorithm ---- */

static bool algorithm_right(const char *text, enum swc_coll coll)
{
	struct swc_plan_args args = { .coll = coll };
	struct swc_verdict v = { 0 };
	struct swc_topo topo;
	char why[200] = "";
	struct set set;
	void *one = NULL;
	size_t bytes;
	int ret;

	if (swc_topo_parse(&topo, text, why, sizeof(why)))
		abort();
	if (!(swc_forest_colls(&topo) & 1u << coll)) {
		swc_topo_free(&topo);
		return true;
	}
	args.topo = &topo;
	args.nranks = topo.nranks;
	args.root = swc_coll_has_root(coll) ? rnd(topo.nranks) : 0;
	memset(&set, 0, sizeof(set));
	alloc_set(&set, topo.nranks);
	ret = swc_forest_plans(&args, rnd(3), set.plan, set.bytes, why, sizeof(why));
	if (!ret)
		ret = swc_plan_verify((const void *const *)set.plan, set.bytes, NULL, topo.nranks,
				      &topo, &v);
	/* Each rank finds the same by itself. */
	args.rank = topo.nranks - 1;
	if (!ret && !swc_forest_plan(&args, 2, &one, &bytes, why, sizeof(why)))
		free(one);
	else
		ret = ret ? ret : -EINVAL;
	if (ret)
		printf("# %s, %s: %s%s\n", text, swc_coll_name(coll), why, v.text);
	free_set(&set);
	swc_topo_free(&topo);
	return !ret;
}

/* ---- ports that are slower one way ---- */

#define STAR 4

/*
 * A linear program over all sets of nodes of a switch, with what a phase may use of each port as variables.
 */
struct star {
	struct swc_lp *lp;
	uint32_t n;
	double cap[2 * STAR]; /* to the switch, from it */
};

static void add_star_row(struct star *s, const double *row, double bound, bool equal)
{
	uint32_t variable[5 * STAR], terms = 0;
	double coefficient[5 * STAR];

	for (uint32_t i = 0; i < 5 * STAR; i++)
		if (row[i] != 0) {
			variable[terms] = i;
			coefficient[terms++] = row[i];
		}
	if (s->lp->add_row(s->lp, terms, variable, coefficient, bound, equal))
		abort();
}

/* The ports of a phase begin at variable @first. Bit n of a set is the switch. @x: by rank, its variable. */
static void add_star_phase(struct star *s, uint32_t first, bool up, const uint32_t *x,
			   uint32_t root)
{
	double row[5 * STAR] = { 0 };

	for (uint32_t v = 0; v < s->n; v++) {
		row[first + v] = 1;
		row[first + s->n + v] = -1;
	}
	add_star_row(s, row, 0, true);
	for (uint32_t set = 1; set < 1u << (s->n + 1); set++) {
		bool hub = set >> s->n, whole = (set & ((1u << s->n) - 1)) == (1u << s->n) - 1;

		if (whole || (root < s->n && !(set >> root & 1)))
			continue;
		memset(row, 0, sizeof(row));
		for (uint32_t v = 0; v < s->n; v++) {
			bool in = set >> v & 1;

			if (in && (root == s->n || v == root))
				row[x[v]] += 1;
			/* Out of the set, or against the links if @up. */
			if (in && !hub)
				row[first + (up ? s->n : 0) + v] = -1;
			if (!in && hub)
				row[first + (up ? 0 : s->n) + v] = -1;
		}
		add_star_row(s, row, 0, false);
	}
}

/* The rate of a collective in Gbit/s: of each root, or of all together for an allreduce. */
static double star_rate(struct star *s, enum swc_coll coll, uint32_t root)
{
	bool rooted = coll == SWC_BROADCAST || coll == SWC_REDUCE, all = coll == SWC_ALLREDUCE;
	double upper[5 * STAR], gain[5 * STAR] = { 0 }, value[5 * STAR], rate = 0;
	uint32_t x[STAR];

	for (uint32_t i = 0; i < 5 * s->n; i++)
		upper[i] = i < 4 * s->n ? s->cap[i % (2 * s->n)] : 1000;
	for (uint32_t v = 0; v < s->n; v++) {
		x[v] = 4 * s->n + (all ? v : 0);
		gain[x[v]] = 1;
	}
	s->lp = swc_simplex_new();
	if (!s->lp || s->lp->begin(s->lp, 5 * s->n, upper, gain))
		abort();
	if (all || coll == SWC_ALLGATHER || coll == SWC_BROADCAST)
		add_star_phase(s, 0, false, x, rooted ? root : s->n);
	if (all || coll == SWC_REDUCE_SCATTER || coll == SWC_REDUCE)
		add_star_phase(s, 2 * s->n, true, x, rooted ? root : s->n);
	for (uint32_t i = 0; i < 2 * s->n; i++) {
		double row[5 * STAR] = { 0 };

		row[i] = row[2 * s->n + i] = 1;
		add_star_row(s, row, s->cap[i], false);
	}
	if (s->lp->solve(s->lp, value))
		abort();
	for (uint32_t v = 0; v < (all ? s->n : 1); v++)
		rate += value[x[v]];
	swc_simplex_free(s->lp);
	return rate;
}

/* The rate of the trees of a topology. */
static double tree_rate(const struct swc_topo *topo, enum swc_coll coll, uint32_t root)
{
	bool shards = coll == SWC_ALLGATHER || coll == SWC_REDUCE_SCATTER;
	struct swc_graph_use use = { coll, root };
	struct swc_trees t;
	struct swc_graph g;
	double rate, unit;

	if (swc_trees_find(&t, topo, coll, root, NULL, 0))
		abort();
	rate = t.unit / t.time / (shards ? topo->nranks : 1);
	swc_trees_free(&t);
	if (coll == SWC_ALLREDUCE) {
		/* The library takes equal roots where they are nearly as fast. */
		if (swc_graph_of_topo(&g, topo, &use, &unit, NULL, 0))
			abort();
		rate = any_rate(&g) * unit;
		swc_graph_free(&g);
	}
	return rate;
}

static void test_ways(void)
{
	static const enum swc_coll colls[] = { SWC_ALLREDUCE, SWC_REDUCE_SCATTER, SWC_ALLGATHER,
					       SWC_BROADCAST, SWC_REDUCE };
	bool good = true;

	for (uint32_t i = 0; i < rounds_of(200) && good; i++) {
		enum swc_coll coll = colls[i % 5];
		struct star s = { .n = 2 + rnd(STAR - 1) };
		uint32_t root = coll == SWC_BROADCAST || coll == SWC_REDUCE ? rnd(s.n) : 0;
		char text[200], *at = text + sprintf(text, "switch:%u@10Gbps", s.n);
		struct swc_topo topo;
		double want, rate;
		bool right;

		for (uint32_t v = 0; v < 2 * s.n; v++) {
			s.cap[v] = 1 + rnd(10);
			if (s.cap[v] < 10)
				at += sprintf(at, v < s.n ? ",%u>=%gGbps" : ",>%u=%gGbps", v % s.n,
					      s.cap[v]);
		}
		if (swc_topo_parse(&topo, text, NULL, 0))
			abort();
		want = star_rate(&s, coll, root);
		rate = tree_rate(&topo, coll, root);
		right = algorithm_right(text, coll);
		/* A little of a broadcast is lost to a link that is of no use. */
		good = right && rate < want * (1 + 1e-6) &&
		       rate > want * (coll >= SWC_BROADCAST ? 0.99 : 1 - 1e-6);
		if (!good)
			printf("# %s, %d from %u: %g, wanted %g%s\n", text, coll, root, rate, want,
			       right ? "" : ", wrong plans");
		swc_topo_free(&topo);
	}
	ok(good,
	   "ports of a switch, each way with a rate of its own: as fast as a program over all sets");
}

static void test_algorithm(void)
{
	static const char *const topos[] = { "ring:2",
					     "mesh:3",
					     "torus:2x3",
					     "mesh:3x3",
					     "switch:5",
					     "torus:4x3@3Gbps/1Gbps",
					     "torus:3x3@4Gbps,1-4=1Gbps",
					     "mesh:2x3@4Gbps,0>1=1Gbps",
					     "switch:4@8Gbps,3=2Gbps,0>=4Gbps",
					     "ring:3*2",
					     "mesh:2x2*3,1,2,4",
					     "switch:3*2@3rails" };
	static const char *const refused[] = { "ring:65", "switch:1*4" };
	struct swc_plan_args args = { .coll = SWC_ALLREDUCE };
	bool good = true;
	uint32_t pieces;
	size_t bytes;
	void *plan;

	for (size_t i = 0; i < sizeof(topos) / sizeof(topos[0]); i++)
		for (enum swc_coll coll = 0; coll < SWC_COLL_NR; coll++)
			good &= algorithm_right(topos[i], coll);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct swc_topo topo;
		char why[200] = "";

		if (swc_topo_parse(&topo, refused[i], NULL, 0))
			abort();
		args.topo = &topo;
		args.nranks = topo.nranks;
		good &= swc_forest_plan(&args, 0, &plan, &bytes, why, sizeof(why)) == -EOPNOTSUPP &&
			*why;
		swc_topo_free(&topo);
	}
	good &= swc_forest_parse("forest", &pieces) && !pieces;
	good &= swc_forest_parse("forest:7", &pieces) && pieces == 7;
	good &= !swc_forest_parse("forest:0", &pieces) && !swc_forest_parse("forests", &pieces);
	ok(good, "as an algorithm of topologies");
}

/* ---- costs ---- */

/* Is the time of trees that of their plans, and no less than the least? */
static bool time_right(const char *text, enum swc_coll coll, uint32_t pieces)
{
	struct swc_topo topo;
	struct swc_network net;
	struct swc_plan_args args = { .coll = coll, .topo = &topo };
	struct swc_trees trees;
	struct swc_cost cost;
	double bytes = 1 << 24, ns, least, of_plans;
	char why[200] = "";
	struct set set;
	bool good;

	if (swc_topo_parse(&topo, text, why, sizeof(why)))
		abort();
	net = swc_network_of(&topo);
	net.step_ns = 5000;
	args.nranks = topo.nranks;
	memset(&set, 0, sizeof(set));
	alloc_set(&set, topo.nranks);
	if (swc_forest_find(&trees, &topo, coll, 0, why, sizeof(why)) ||
	    swc_forest_plans(&args, pieces, set.plan, set.bytes, why, sizeof(why)))
		abort();
	args.given = (const void *const *)set.plan;
	args.given_bytes = set.bytes;
	if (swc_cost_compute(&args, &cost, NULL, NULL, why, sizeof(why)))
		abort();
	ns = swc_trees_time(&trees, bytes, pieces, &net);
	/* Segments follow one another, so there are no phases that begin together. */
	cost.phased = cost.eager;
	of_plans = swc_cost_time(&cost, bytes, &net, NULL);
	least = swc_trees_least(&topo, coll, bytes, &net);
	good = ns < 1.1 * of_plans && ns > 0.9 * of_plans && least <= 1.001 * fmin(ns, of_plans) &&
	       swc_trees_connections(&trees, pieces) >= cost.connections &&
	       swc_trees_connections(&trees, pieces) <= 2 * cost.connections;
	if (!good)
		printf("# %s, %s, %u segments: %g ns, by plans %g, at least %g, %u connections, %u\n",
		       text, swc_coll_name(coll), pieces, ns, of_plans, least,
		       swc_trees_connections(&trees, pieces), cost.connections);
	swc_trees_free(&trees);
	free_set(&set);
	swc_topo_free(&topo);
	return good;
}

static void test_times(void)
{
	static const char *const topos[] = { "mesh:3x3@100Gbps", "torus:3x3@100Gbps,1-4=25Gbps",
					     "switch:4@100Gbps,3=25Gbps", "ring:5",
					     "torus:4x3@300Gbps/100Gbps" };
	static const enum swc_coll colls[] = { SWC_ALLREDUCE, SWC_ALLGATHER, SWC_REDUCE_SCATTER };
	bool good = true;

	for (size_t i = 0; i < sizeof(topos) / sizeof(topos[0]); i++)
		for (size_t k = 0; k < sizeof(colls) / sizeof(colls[0]); k++)
			good &= time_right(topos[i], colls[k], 32) &&
				time_right(topos[i], colls[k], 6);
	ok(good, "the time of trees is that of their plans");
}

/* ---- the automatic choice ---- */

static struct swc_choice chosen(const char *text, uint64_t bytes, double *without)
{
	struct swc_choices c;
	struct swc_choice with;
	struct swc_topo topo;

	if (swc_topo_parse(&topo, text, NULL, 0))
		abort();
	swc_choices_init(&c, &topo, false);
	c.net.reduce_gbps = 0;
	with = swc_choices_take(&c, SWC_ALLREDUCE, SWC_F32, SWC_SUM, bytes, 1);
	swc_choices_free(&c);
	swc_choices_init(&c, &topo, false);
	c.net.reduce_gbps = 0;
	c.forest = false;
	*without = swc_choices_take(&c, SWC_ALLREDUCE, SWC_F32, SWC_SUM, bytes, 1).ns;
	swc_choices_free(&c);
	swc_topo_free(&topo);
	return with;
}

/* A forest is chosen where a link is slow or missing, for large vectors, and it is clearly faster. */
static void test_auto(void)
{
	static const struct {
		const char *topo;
		bool forest;
	} rows[] = {
		{ "torus:4x4@100Gbps", false },		  { "torus:4x4@100Gbps,5-6=50Gbps", true },
		{ "torus:4x4@100Gbps,5>6=50Gbps", true }, { "mesh:4x4@100Gbps", true },
		{ "mesh:3x3*2@100Gbps", true },		  { "switch:8@100Gbps", false },
		{ "switch:8@100Gbps,5=25Gbps", true },	  { "switch:40@100Gbps,5=25Gbps", true }
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int large = 0; large < 2; large++) {
			double without;
			struct swc_choice c = chosen(rows[i].topo, large ? 256 << 20 : 4096,
						     &without);
			bool forest = c.algo == SWC_ALGO_FOREST;

			if (forest == (rows[i].forest && large) &&
			    (forest ? c.ns < without / 1.1 && c.param > 1 : c.ns <= without))
				continue;
			printf("# %s, %d: algorithm %d:%d, %g ns, without forests %g\n",
			       rows[i].topo, large, c.algo, c.param, c.ns, without);
			good = false;
		}
	ok(good, "the automatic choice takes a forest where it is clearly faster");
}

/* ---- damaged text ---- */

static void damage(struct lines *l)
{
	static const char *const words[] = {
		">",   "switch", "-1",	       "0",    "99999999999999999999",
		"#",   "\n",	 "1000000000", "a b",  "\t",
		"1.5", "r",	 "\x80",       "a > b"
	};
	const char *word = words[rnd(sizeof(words) / sizeof(words[0]))];
	uint32_t at = rnd((uint32_t)l->used + 1), n = (uint32_t)strlen(word);

	switch (rnd(4)) {
	case 0:
		if (l->used)
			l->text[at % l->used] = (char)rnd(256);
		break;
	case 1:
		l->used = at;
		break;
	case 2:
		memmove(l->text + at, l->text + l->used - rnd((uint32_t)l->used - at + 1),
			l->used - at);
		break;
	default:
		if (l->used + n > sizeof(l->text))
			break;
		memmove(l->text + at + n, l->text + at, l->used - at);
		memcpy(l->text + at, word, n);
		l->used += n;
	}
}

static void test_damage(void)
{
	struct lines *l = calloc(1, sizeof(*l));
	unsigned long refused = 0, taken = 0;
	bool good = true;
	char name[120];

	for (uint32_t i = 0; i < rounds_of(20000) && good; i++) {
		struct swc_graph g;
		char why[200] = "", *exact;
		int ret;

		random_lines(l, 2 + rnd(5), rnd(3), rnd(2));
		for (uint32_t k = 1 + rnd(3); k; k--)
			damage(l);
		/* In memory of exactly its size, so that a look beyond its end is seen. */
		exact = malloc(l->used ? l->used : 1);
		memcpy(exact, l->text, l->used);
		ret = swc_graph_parse(&g, exact, l->used, why, sizeof(why));
		free(exact);
		if (ret)
			good = ret == -EINVAL && *why && !strchr(why, '\n') && !g.link && !g.name;
		else if (g.nranks <= 12 && !(taken % 50))
			good = try_graph(&g, g.nnodes < 8);
		++*(ret ? &refused : &taken);
		swc_graph_free(&g);
		if (!good)
			printf("# %d %s\n%.*s", ret, why, (int)l->used, l->text);
	}
	snprintf(name, sizeof(name), "damaged graphs: %lu refused, %lu taken", refused, taken);
	ok(good && refused > taken, name);
	free(l);
}

int main(void)
{
	printf("TAP version 13\n");
	seed_rnd();
	test_graphs();
	test_any_roots();
	test_ways();
	test_algorithm();
	test_times();
	test_auto();
	test_damage();
	return done();
}
