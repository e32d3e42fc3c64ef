// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The linear program, with cuts that are added as they are violated. Let f be the part of each link's
 * capacity b that broadcasts have, b - f what reductions have, and x what each rank is root of. Trees
 * for x exist if and only if for each set S of nodes without some rank
 *
 *	x(S) <= f(links out of S)  and  x(S) <= (b - f)(links into S)
 *
 * and f is the same into each switch and out of it. The sum of x is maximised. A cut that a solution
 * violates is found as a minimum cut: for each rank, of what all x can send to it.
 *
 * If the graph is symmetric, then with f, b - f turned round is a solution, and so is the mean of both:
 * in that, reductions go by the links of broadcasts the other way. So f(a -> b) + f(b -> a) = b is
 * demanded from the beginning: half the variables, and no second kind of cuts.
 */
#include "plan/forest/roots.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forest/bound.h"
#include "plan/forest/maxflow.h"
#include "plan/forest/shares.h"
#include "plan/hash.h"
#include "plan/table.h"

#define MOST_ROUNDS 1000
#define VIOLATED 1e-8 /* of the rate */
#define CENTRES 1e-6  /* of the rate, that roots in the middle are worth */
#define WHOLE 1e15    /* flows are counted in parts of the unit */

/**
 * struct program - the linear program
 * @share: how each link's part for broadcasts follows from a variable
 * @n: ranks; their variables come first, then the rate, then those of links
 * @value: by variable, in parts of @unit, which is about the rate
 * @seen: hashes of the cuts that there are
 */
struct program {
	const struct swc_graph *g;
	struct swc_lp *lp;
	struct swc_share *share;
	uint32_t n, rate, nvars;
	double *value, *coefficient, unit;
	uint32_t *variable, terms;
	double bound;
	uint64_t *seen;
	uint32_t ncuts, room;
	bool symmetric;
};

/* ---- rows ---- */

static void add_term(struct program *p, uint32_t variable, double coefficient)
{
	p->variable[p->terms] = variable;
	p->coefficient[p->terms++] = coefficient;
}

/* Add @factor times a link's part for broadcasts to the left side. */
static void add_share(struct program *p, uint32_t link, double factor)
{
	const struct swc_share *s = &p->share[link];

	add_term(p, s->variable, factor * s->factor);
	p->bound -= factor * s->constant;
}

static int end_row(struct program *p, bool equal)
{
	int ret = p->lp->add_row(p->lp, p->terms, p->variable, p->coefficient, p->bound, equal);

	p->terms = 0;
	p->bound = 0;
	return ret;
}

/* The left side gets x(S), in few terms. */
static void add_roots(struct program *p, const bool *side)
{
	uint32_t inside = 0;
	bool most;

	for (uint32_t r = 0; r < p->n; r++)
		inside += side[r];
	most = inside > p->n / 2;
	if (most)
		add_term(p, p->rate, 1);
	for (uint32_t r = 0; r < p->n; r++)
		if (side[r] != most)
			add_term(p, r, most ? -1 : 1);
}

/* Has this cut been added before? Else it counts as added. */
static int is_new(struct program *p, const bool *side, bool up)
{
	uint64_t hash = swc_hash_byte(SWC_HASH_START, up);

	for (uint32_t v = 0; v < p->g->nnodes; v++)
		hash = swc_hash_byte(hash, side[v]);
	for (uint32_t i = 0; i < p->ncuts; i++)
		if (p->seen[i] == hash)
			return 0;
	if (!swc_table_reserve(&p->seen, p->ncuts, &p->room, sizeof(*p->seen)))
		return -ENOMEM;
	p->seen[p->ncuts++] = hash;
	return 1;
}

/* Add the cut of a set. Returns 1 if it was not there. */
static int add_cut(struct program *p, const bool *side, bool up)
{
	int ret = is_new(p, side, up);

	if (ret <= 0)
		return ret;
	add_roots(p, side);
	for (uint32_t i = 0; i < p->g->nlinks; i++) {
		const struct swc_link *l = &p->g->link[i];

		if (side[l->from] == side[l->to] || side[l->from] == up)
			continue;
		if (up)
			p->bound += (double)l->capacity / p->unit;
		add_share(p, i, up ? 1 : -1);
	}
	ret = end_row(p, false);
	return ret ? ret : 1;
}

static int add_first(struct program *p, bool *side)
{
	int ret = 0;

	for (uint32_t r = 0; r < p->n; r++)
		add_term(p, r, 1);
	add_term(p, p->rate, -1);
	ret = end_row(p, true);
	for (uint32_t w = p->n; !ret && w < p->g->nnodes; w++) {
		for (uint32_t i = 0; i < p->g->nlinks; i++) {
			if (p->g->link[i].from == w)
				add_share(p, i, 1);
			if (p->g->link[i].to == w)
				add_share(p, i, -1);
		}
		ret = end_row(p, true);
	}
	for (int k = 0; k < 4 && ret >= 0; k++) {
		bool all_but = k & 1, up = k & 2;

		if (up && p->symmetric)
			break;
		memset(side, all_but, p->g->nnodes);
		for (uint32_t r = 0; r < p->n && ret >= 0; r++) {
			side[r] = !all_but;
			ret = add_cut(p, side, up);
			side[r] = all_but;
		}
	}
	return ret < 0 ? ret : 0;
}

/* ---- rounds ---- */

/* Flows by the present solution; of reductions, against the links. */
static void set_flow(const struct program *p, struct swc_maxflow *f, const struct swc_graph *g,
		     bool up)
{
	for (uint32_t i = 0; i < g->nlinks; i++) {
		const struct swc_link *l = &g->link[i];
		uint32_t at = up ? swc_graph_find(p->g, l->to, l->from) : i;
		const struct swc_share *s = &p->share[at];
		double share = s->constant + s->factor * p->value[s->variable];

		if (up)
			share = (double)l->capacity / p->unit - share;
		f->capacity[i] = (int64_t)(WHOLE * fmin(fmax(share, 0), 4));
	}
	for (uint32_t r = 0; r < p->n; r++)
		f->supply[r] = (int64_t)(WHOLE * fmin(fmax(p->value[r], 0), 1));
}

/* Add what is violated. Returns how many cuts, or an error. */
static int add_violated(struct program *p, struct swc_maxflow *f, const struct swc_graph *g,
			bool up, bool *side)
{
	int64_t all = 0, least;
	int n = 0, ret;

	set_flow(p, f, g, up);
	for (uint32_t r = 0; r < p->n; r++)
		all += f->supply[r];
	least = all - (int64_t)(VIOLATED * (double)all);
	for (uint32_t sink = 0; sink < p->n; sink++) {
		if (swc_maxflow_run(f, sink) >= least)
			continue;
		swc_maxflow_cut(f, side);
		ret = add_cut(p, side, up);
		if (ret < 0)
			return ret;
		n += ret;
	}
	return n;
}

static int solve(struct program *p, struct swc_roots *r, swc_forest_progress *progress, void *arg)
{
	struct swc_graph reverse = { 0 };
	struct swc_maxflow f[2] = { 0 };
	bool *side = calloc(p->g->nnodes, sizeof(*side));
	int ret = side ? swc_maxflow_init(&f[0], p->g) : -ENOMEM, n = 1;

	if (!ret && !p->symmetric)
		ret = swc_graph_reverse(&reverse, p->g);
	if (!ret && !p->symmetric)
		ret = swc_maxflow_init(&f[1], &reverse);
	if (!ret)
		ret = add_first(p, side);
	for (r->rounds = 0; !ret && n && r->rounds < MOST_ROUNDS; r->rounds++) {
		ret = p->lp->solve(p->lp, p->value);
		for (int up = 0; up < 2 - p->symmetric && !ret; up++) {
			n = up ? n : 0;
			ret = add_violated(p, &f[up], up ? &reverse : p->g, up, side);
			n += ret > 0 ? ret : 0;
			ret = ret > 0 ? 0 : ret;
		}
		/* Nobody knows how many rounds there will be. */
		if (progress)
			progress(arg, 1 - 1 / (1 + 0.2 * r->rounds));
	}
	r->cuts = p->ncuts;
	swc_maxflow_free(&f[0]);
	swc_maxflow_free(&f[1]);
	swc_graph_free(&reverse);
	free(side);
	return ret;
}

/* How many links there are from a rank to the farthest one. */
static uint32_t farthest(const struct swc_graph *g, uint32_t from, uint32_t *distance)
{
	uint32_t most = 0;
	bool more = true;

	for (uint32_t v = 0; v < g->nnodes; v++)
		distance[v] = UINT32_MAX;
	distance[from] = 0;
	for (uint32_t d = 0; more; d++) {
		more = false;
		for (uint32_t i = 0; i < g->nlinks; i++) {
			uint32_t to = g->link[i].to;

			if (distance[g->link[i].from] != d || distance[to] != UINT32_MAX)
				continue;
			distance[to] = d + 1;
			more = true;
			most = to < g->nranks ? d + 1 : most;
		}
	}
	return most;
}

/* Of optima, one with roots in the middle of the network, as their trees are shallow. */
static int prefer_centres(const struct program *p, double *gain)
{
	uint32_t *distance = calloc(p->g->nnodes, sizeof(*distance));
	double most = 0;

	if (!distance)
		return -ENOMEM;
	for (uint32_t r = 0; r < p->n; r++) {
		gain[r] = -(double)farthest(p->g, r, distance);
		most = fmin(most, gain[r]);
	}
	for (uint32_t r = 0; r < p->n; r++)
		gain[r] *= -CENTRES / most;
	free(distance);
	return 0;
}

/* Variables of links: one for each, or for each pair of a symmetric graph. */
static int begin(struct program *p)
{
	double *upper, *gain;
	int ret;

	for (uint32_t i = 0; i < p->g->nlinks; i++) {
		const struct swc_link *l = &p->g->link[i];
		struct swc_share *s = &p->share[i];

		*s = (struct swc_share){ .factor = 1 };
		if (p->symmetric && l->from > l->to) {
			s->variable = p->share[swc_graph_find(p->g, l->to, l->from)].variable;
			s->constant = (double)l->capacity / p->unit;
			s->factor = -1;
		} else {
			s->variable = p->nvars++;
		}
	}
	upper = calloc(2 * (size_t)p->nvars, sizeof(*upper));
	gain = upper ? upper + p->nvars : NULL;
	ret = upper ? prefer_centres(p, gain) : -ENOMEM;
	if (ret) {
		free(upper);
		return ret;
	}
	gain[p->rate] = 1;
	for (uint32_t v = 0; v <= p->rate; v++)
		upper[v] = 1 + 1e-9;
	for (uint32_t i = 0; i < p->g->nlinks; i++)
		upper[p->share[i].variable] = (double)p->g->link[i].capacity / p->unit;
	ret = p->lp->begin(p->lp, p->nvars, upper, gain);
	free(upper);
	return ret;
}

static int take_result(const struct program *p, struct swc_roots *r)
{
	double *f = calloc(p->g->nlinks + 1u, sizeof(*f));
	int ret;

	r->x = calloc(p->n, sizeof(*r->x));
	if (!f || !r->x) {
		free(f);
		return -ENOMEM;
	}
	r->rate = p->value[p->rate] * p->unit;
	for (uint32_t v = 0; v < p->n; v++)
		r->x[v] = fmax(p->value[v], 0) * p->unit;
	for (uint32_t i = 0; i < p->g->nlinks; i++) {
		const struct swc_share *s = &p->share[i];

		f[i] = (s->constant + s->factor * p->value[s->variable]) * p->unit;
	}
	ret = swc_shares_round(r, p->g, f);
	free(f);
	return ret;
}

/* The rate is from that of equal roots to twice that. */
static int most_rate(const struct swc_graph *g, double *rate)
{
	struct swc_bound bound[2] = { 0 };
	struct swc_graph reverse;
	int ret = swc_graph_reverse(&reverse, g);

	if (ret)
		return ret;
	ret = swc_bound_find(&bound[0], g);
	if (!ret)
		ret = swc_bound_find(&bound[1], &reverse);
	if (!ret)
		*rate = 2.0 * g->nranks /
			((double)bound[0].inv_x.p / (double)bound[0].inv_x.q +
			 (double)bound[1].inv_x.p / (double)bound[1].inv_x.q);
	swc_bound_free(&bound[0]);
	swc_bound_free(&bound[1]);
	swc_graph_free(&reverse);
	return ret;
}

/*
 * No link needs more than the rate in each phase. So that numbers do not differ by more than doubles can
 * tell, others get so much only; but not where that would make a switch pass on less than it gets.
 */
static struct swc_link *limit_links(const struct swc_graph *g, double rate, bool symmetric)
{
	struct swc_link *link = calloc(g->nlinks + 1u, sizeof(*link));
	int64_t most = (int64_t)ceil(2 * rate) + 1;

	for (uint32_t i = 0; link && i < g->nlinks; i++) {
		link[i] = g->link[i];
		if (link[i].capacity > most && (symmetric || g->nnodes == g->nranks))
			link[i].capacity = most;
	}
	return link;
}

int swc_roots_find(struct swc_roots *r, const struct swc_graph *graph, struct swc_lp *lp,
		   swc_forest_progress *progress, void *arg)
{
	struct swc_graph limited = *graph, *g = &limited;
	struct program p = { .g = g, .lp = lp, .n = g->nranks, .rate = g->nranks };
	uint32_t terms = g->nranks + 2 * g->nlinks + 2;
	int ret;

	*r = (struct swc_roots){ 0 };
	p.symmetric = r->mirrored = swc_graph_symmetric(g);
	p.nvars = p.rate + 1;
	ret = most_rate(g, &p.unit);
	if (ret)
		return ret;
	g->link = limit_links(graph, p.unit, p.symmetric);
	if (!g->link)
		return -ENOMEM;
	ret = -ENOMEM;
	p.share = calloc(g->nlinks + 1u, sizeof(*p.share));
	p.variable = calloc(terms, sizeof(*p.variable));
	p.coefficient = calloc(terms, sizeof(*p.coefficient));
	p.value = calloc(p.nvars + g->nlinks, sizeof(*p.value));
	if (p.share && p.variable && p.coefficient && p.value)
		ret = begin(&p);
	if (!ret)
		ret = solve(&p, r, progress, arg);
	if (!ret)
		ret = take_result(&p, r);
	free(p.share);
	free(p.variable);
	free(p.coefficient);
	free(p.value);
	free(p.seen);
	free(g->link);
	if (ret)
		swc_roots_free(r);
	return ret;
}

void swc_roots_free(struct swc_roots *r)
{
	free(r->x);
	free(r->weight);
	swc_graph_free(&r->down);
	swc_graph_free(&r->up);
	*r = (struct swc_roots){ 0 };
}
