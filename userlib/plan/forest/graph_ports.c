// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ports of a switch that are slower one way than the other. Trees need a switch that passes on as much as it
 * gets. A node's port to the switch is of use up to a limit only, which depends on the collective. With N
 * nodes of which each is root of x:
 *
 *	allgather: each node gets (N - 1) x, all together send as much, and a node sends x at least. So x is the
 *	least of out, in / (N - 1), and all out / N (N - 1)
 *	broadcast of x from a root: each other node gets x, so x is the least of their in, the root's out, and
 *	all out / (N - 1)
 *	allreduce with roots of X together: node v gets X - x(v) broadcast, and sends it up; what it gets in
 *	reductions, and sends in broadcasts, is x(v) at least, and (N - 1) X of all nodes. So X is the least
 *	of in, of out, and of all of each / 2 (N - 1), whatever the x(v) are
 *
 * and reductions are the same turned round. What a port has beyond that is taken from it, the fastest first,
 * so that no node gets less than it needs.
 */
#include "plan/forest/links.h"

#include <errno.h>
#include <stdlib.h>

#include "kmod/core/plan_check.h"
#include "plan/forest/bound.h"

/**
 * struct ports - of the nodes of a switch, by node
 * @in, @out: capacity from the switch, and to it. Of reductions, the reverse
 */
struct ports {
	uint32_t n;
	int64_t *in, *out;
};

#define NONE UINT32_MAX
#define LITTLE 100 /* of a unit of capacity */

static int64_t sum(const int64_t *c, uint32_t n)
{
	int64_t all = 0;

	while (n)
		all += c[--n];
	return all;
}

/* Of all but one. */
static int64_t least(const int64_t *c, uint32_t n, uint32_t but)
{
	int64_t x = INT64_MAX;

	for (uint32_t i = 0; i < n; i++)
		if (i != but && c[i] < x)
			x = c[i];
	return x;
}

static void lower(struct swc_fraction *f, int64_t p, int64_t q)
{
	if ((__int128)p * f->q < (__int128)f->p * q)
		*f = swc_fraction_of(p, q);
}

/* Take from the largest, not from @but, until there is @all in sum. None gets below 1. */
static void level(int64_t *c, uint32_t n, uint32_t but, int64_t all)
{
	int64_t excess = sum(c, n) - all;

	while (excess > 0) {
		int64_t most = 1, next = 1, high = 0, each;

		for (uint32_t i = 0; i < n; i++)
			if (i != but && c[i] > most)
				most = c[i];
		for (uint32_t i = 0; i < n; i++) {
			high += i != but && c[i] == most;
			if (i != but && c[i] < most && c[i] > next)
				next = c[i];
		}
		if (most == 1)
			break;
		each = excess / high < most - next ? excess / high : most - next;
		for (uint32_t i = 0; i < n && excess; i++) {
			/* The last ones, if there is less than one for each. */
			int64_t d = each ? each : 1;

			if (i == but || c[i] != most)
				continue;
			c[i] -= d;
			excess -= d;
		}
	}
	if (excess > 0 && but != NONE)
		c[but] -= excess;
}

static struct swc_fraction rate_of(const struct ports *p, enum swc_coll coll, uint32_t root)
{
	int64_t n = p->n;
	struct swc_fraction x = { least(p->out, p->n, NONE), 1 };

	if (root != NONE) {
		x = (struct swc_fraction){ p->out[root], 1 };
		lower(&x, least(p->in, p->n, root), 1);
		/* A little of what all send is lost to the root, as graphs have links to all ranks. */
		lower(&x, LITTLE * sum(p->out, p->n) - 1, LITTLE * (n - 1));
	} else if (coll == SWC_ALLREDUCE) {
		lower(&x, least(p->in, p->n, NONE), 1);
		lower(&x, sum(p->out, p->n), 2 * (n - 1));
		lower(&x, sum(p->in, p->n), 2 * (n - 1));
	} else {
		lower(&x, least(p->in, p->n, NONE), n - 1);
		lower(&x, sum(p->out, p->n), n * (n - 1));
	}
	return x;
}

/* Capacities are such that the rate @x is a whole number. */
static void balance(struct ports *p, enum swc_coll coll, uint32_t root, int64_t x)
{
	int64_t n = p->n, in, out;

	if (coll != SWC_ALLREDUCE)
		for (uint32_t i = 0; i < p->n; i++)
			p->in[i] = i == root ? 1 : root == NONE ? (n - 1) * x : x;
	in = sum(p->in, p->n);
	out = sum(p->out, p->n);
	level(p->out, p->n, root, in);
	level(p->in, p->n, NONE, out);
}

/* As slow as the slower of both ways. */
static void make_equal(struct ports *p)
{
	for (uint32_t i = 0; i < p->n; i++) {
		int64_t c = p->in[i] < p->out[i] ? p->in[i] : p->out[i];

		p->in[i] = p->out[i] = c;
	}
}

static void make_balanced(struct ports *p, const struct swc_graph_use *use, double *unit)
{
	uint32_t root = use && swc_coll_has_root(use->coll) ? use->root : NONE;
	struct swc_fraction x;

	if (sum(p->in, p->n) == sum(p->out, p->n))
		return;
	x = use ? rate_of(p, use->coll, root) : (struct swc_fraction){ 0, 1 };
	if (x.p <= 0 || x.q > SWC_GRAPH_MAX_CAPACITY / (sum(p->in, p->n) + sum(p->out, p->n))) {
		make_equal(p);
		return;
	}
	for (uint32_t i = 0; i < p->n; i++) {
		p->in[i] *= x.q;
		p->out[i] *= x.q;
	}
	*unit /= (double)x.q;
	balance(p, use->coll, root, x.p);
}

int swc_ports_balance(struct swc_graph *g, const struct swc_graph_use *use, double *unit)
{
	bool up = use && (use->coll == SWC_REDUCE || use->coll == SWC_REDUCE_SCATTER);
	uint32_t hub = g->nranks;
	struct ports p = { .n = g->nranks };

	p.in = calloc(2 * (size_t)p.n, sizeof(*p.in));
	if (!p.in)
		return -ENOMEM;
	p.out = p.in + p.n;
	for (int take = 0; take < 2; take++) {
		for (uint32_t i = 0; i < g->nlinks; i++) {
			struct swc_link *l = &g->link[i];
			bool leaves = l->to == hub;
			int64_t *c = leaves == up ? p.in : p.out;

			c += leaves ? l->from : l->to;
			if (take)
				l->capacity = *c;
			else
				*c = l->capacity;
		}
		if (!take)
			make_balanced(&p, use, unit);
	}
	free(p.in);
	return 0;
}
