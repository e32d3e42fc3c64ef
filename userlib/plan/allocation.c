// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bandwidths. With the time of each kind of phase as a variable t of its own, the sum of the times is linear, and
 * t b_i >= v_i is convex: there are no other minima than the least one. It is found by a barrier method (Boyd and
 * Vandenberghe, "Convex optimization", 2004, chapter 11): Newton's method makes
 *
 *	tau (sum w t + c . b) - sum log(t b_i - v_i) - sum log(bound - a . b)
 *
 * least for growing tau. All these barriers are self-concordant, so Newton's method needs no good start, whatever
 * the scales of the bandwidths; and the result is at most the number of constraints over tau from the least value.
 *
 * Equations hold at the base, and steps go along directions that do not change them. A point within all other rows
 * comes from the same method: it makes a slack least that all rows get.
 *
 * Each t stands in the constraints of its kind only. So it is eliminated from Newton's equations, which are then no
 * larger than the number of dimensions.
 */
#include "plan/allocation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VARS (SWC_TOPO_DIMS + 1) /* bandwidths and the slack */
#define ROWS (SWC_ALLOCATION_ROWS + 1)
#define DEPENDENT 1e-9 /* what is left of an equation that follows from others, of its length */
#define CONTRADICTS 1e-6
#define GAP 1e-9     /* of the value, at the end */
#define GROWTH 10    /* of tau */
#define NEWTON 100   /* steps for each tau */
#define TINY 1e-12   /* a value that is as good as 0 */
#define CENTRED 1e-6 /* Newton decrement, squared */

struct row {
	double a[VARS], bound;
};

/* The point of a kind in Newton's method, and what a step needs of it. */
struct kind {
	const struct swc_allocation_kind *k;
	double t, dt, gradient, curvature, mixed[VARS];
};

/**
 * struct program - what Newton's method works on
 * @dir: directions in which it goes, of length 1, and to none of the equations
 * @b, @db: variables; the step
 */
struct program {
	uint32_t nvars, ndirs;
	unsigned int nkinds, nrows;
	struct kind *kind;
	struct row row[ROWS];
	double linear[VARS], dir[VARS][VARS], b[VARS], db[VARS];
};

static double dot(const double *a, const double *b, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static void add(double *to, double factor, const double *a, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] += factor * a[i];
}

/* ---- equations ---- */

/*
 * Adds what is left of a vector, apart from those before it, to a basis of @n vectors of length 1. Twice: what rounding
 * leaves of them is gone then. Returns its length before, 0 if nothing is left.
 */
static double extend(double basis[][VARS], uint32_t n, const double *v, uint32_t nvars)
{
	double rest[VARS], length;

	memcpy(rest, v, sizeof(rest));
	for (uint32_t k = 0; k < 2 * n; k++)
		add(rest, -dot(rest, basis[k % n], nvars), basis[k % n], nvars);
	length = sqrt(dot(rest, rest, nvars));
	if (length < DEPENDENT)
		return 0;
	for (uint32_t i = 0; i < nvars; i++)
		basis[n][i] = rest[i] / length;
	return length;
}

static double largest(const double *v, uint32_t n)
{
	double most = 0;

	for (uint32_t i = 0; i < n; i++)
		most = fmax(most, fabs(v[i]));
	return most;
}

/* The base, directions and rows. False if equations contradict each other. */
static bool set_up(struct program *p, const struct swc_allocation *a)
{
	double basis[VARS][VARS] = { 0 };
	uint32_t n = 0, nequal;

	p->nvars = a->ndims;
	for (unsigned int k = 0; k < a->nrows; k++) {
		const struct swc_allocation_row *from = &a->row[k];
		double scale = largest(from->coefficient, a->ndims), v[VARS] = { 0 }, length, miss;

		if (!(scale > 0)) {
			if (from->equal ? fabs(from->bound) > CONTRADICTS
					: from->bound < -SWC_ALLOCATION_LOOSE)
				return false;
			continue;
		}
		add(v, 1 / scale, from->coefficient, a->ndims);
		if (!from->equal) {
			struct row *r = &p->row[p->nrows++];

			memcpy(r->a, v, sizeof(v));
			r->bound = from->bound / scale + SWC_ALLOCATION_LOOSE;
			continue;
		}
		miss = from->bound / scale - dot(v, p->b, a->ndims);
		length = extend(basis, n, v, a->ndims);
		if (length > 0)
			add(p->b, miss / length, basis[n++], a->ndims);
		else if (fabs(miss) > CONTRADICTS)
			return false;
	}
	nequal = n;
	for (uint32_t i = 0; i < a->ndims; i++) {
		double v[VARS] = { 0 };

		v[i] = 1;
		if (n == a->ndims || !(extend(basis, n, v, a->ndims) > 0))
			continue;
		memcpy(p->dir[n - nequal], basis[n], sizeof(v));
		n++;
	}
	p->ndirs = n - nequal;
	return true;
}

/* ---- Newton's method ---- */

static double value(const struct program *p, double tau, double along)
{
	double b[VARS], sum = 0, barrier = 0, product = 1;

	memcpy(b, p->b, sizeof(b));
	add(b, along, p->db, p->nvars);
	for (unsigned int j = 0; j < p->nrows; j++) {
		double slack = p->row[j].bound - dot(p->row[j].a, b, p->nvars);

		if (!(slack > 0))
			return INFINITY;
		barrier -= log(slack);
	}
	for (unsigned int k = 0; k < p->nkinds; k++) {
		double t = p->kind[k].t + along * p->kind[k].dt;

		sum += p->kind[k].k->weight * t;
		for (uint32_t i = 0; i < p->nvars; i++) {
			double g = t * b[i] - p->kind[k].k->v[i];

			if (!(p->kind[k].k->v[i] > 0))
				continue;
			if (!(t > 0) || !(g > 0))
				return INFINITY;
			product *= g;
			/* Logarithms take most of the time: few of them, as long as the product is exact. */
			if (!(product > 1e-100 && product < 1e100)) {
				barrier -= log(product);
				product = 1;
			}
		}
	}
	return tau * (sum + dot(p->linear, b, p->nvars)) + barrier - log(product);
}

/* Solves m x = y for a positive definite m, which is scaled to a diagonal of 1. */
static void solve(double m[VARS][VARS], const double *y, double *x, uint32_t n)
{
	double scale[VARS];

	for (uint32_t i = 0; i < n; i++)
		scale[i] = m[i][i] > 0 ? 1 / sqrt(m[i][i]) : 1;
	for (uint32_t i = 0; i < n; i++) {
		x[i] = y[i] * scale[i];
		for (uint32_t j = 0; j < n; j++)
			m[i][j] *= scale[i] * scale[j];
	}
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j <= i; j++) {
			double rest = m[i][j] - dot(m[i], m[j], j);

			m[i][j] = i == j ? sqrt(fmax(rest, 1e-15)) : rest / m[j][j];
		}
		x[i] = (x[i] - dot(m[i], x, i)) / m[i][i];
	}
	for (uint32_t i = n; i-- > 0;) {
		x[i] /= m[i][i];
		for (uint32_t j = 0; j < i; j++)
			x[j] -= m[i][j] * x[i];
	}
	for (uint32_t i = 0; i < n; i++)
		x[i] *= scale[i];
}

/* Adds a kind's part of the derivatives, without its t. */
static void add_kind(struct kind *k, const double *b, uint32_t nvars, double tau, double *gradient,
		     double *reduced, double m[VARS][VARS])
{
	k->gradient = tau * k->k->weight;
	k->curvature = 0;
	for (uint32_t i = 0; i < nvars; i++) {
		double v = i < SWC_TOPO_DIMS ? k->k->v[i] : 0, g = k->t * b[i] - v;

		k->mixed[i] = 0;
		if (!(v > 0))
			continue;
		k->gradient -= b[i] / g;
		k->curvature += b[i] * b[i] / (g * g);
		k->mixed[i] = v / (g * g);
		gradient[i] -= k->t / g;
		reduced[i] -= k->t / g;
		m[i][i] += k->t * k->t / (g * g);
	}
	add(reduced, -k->gradient / k->curvature, k->mixed, nvars);
	for (uint32_t i = 0; i < nvars; i++)
		add(m[i], -k->mixed[i] / k->curvature, k->mixed, nvars);
}

/* Finds the step. Returns the Newton decrement, squared. */
static double find_step(struct program *p, double tau)
{
	double gradient[VARS] = { 0 }, reduced[VARS] = { 0 }, m[VARS][VARS] = { 0 };
	double along[VARS][VARS], y[VARS], x[VARS], decrement;
	uint32_t n = p->nvars;

	add(gradient, tau, p->linear, n);
	add(reduced, tau, p->linear, n);
	for (unsigned int j = 0; j < p->nrows; j++) {
		const double *a = p->row[j].a;
		double slack = p->row[j].bound - dot(a, p->b, n);

		add(gradient, 1 / slack, a, n);
		add(reduced, 1 / slack, a, n);
		for (uint32_t i = 0; i < n; i++)
			add(m[i], a[i] / (slack * slack), a, n);
	}
	for (unsigned int k = 0; k < p->nkinds; k++)
		add_kind(&p->kind[k], p->b, n, tau, gradient, reduced, m);
	for (uint32_t i = 0; i < p->ndirs; i++) {
		double part[VARS];

		for (uint32_t j = 0; j < n; j++)
			part[j] = dot(m[j], p->dir[i], n);
		for (uint32_t j = 0; j < p->ndirs; j++)
			along[i][j] = dot(part, p->dir[j], n);
		y[i] = -dot(reduced, p->dir[i], n);
	}
	solve(along, y, x, p->ndirs);
	memset(p->db, 0, sizeof(p->db));
	for (uint32_t i = 0; i < p->ndirs; i++)
		add(p->db, x[i], p->dir[i], n);
	decrement = -dot(gradient, p->db, n);
	for (unsigned int k = 0; k < p->nkinds; k++) {
		struct kind *kind = &p->kind[k];

		kind->dt = -(kind->gradient + dot(kind->mixed, p->db, n)) / kind->curvature;
		decrement -= kind->gradient * kind->dt;
	}
	return decrement;
}

/* The least value for this tau, from the point of the last one. */
static void centre(struct program *p, double tau)
{
	double now = value(p, tau, 0);

	for (int i = 0; i < NEWTON; i++) {
		double decrement = find_step(p, tau), part = 1, next;

		if (!(decrement > CENTRED))
			return;
		while (!((next = value(p, tau, part)) <= now - part * decrement / 10)) {
			part /= 2;
			/* Rounding hides what is left to gain. */
			if (part < 1e-9)
				return;
		}
		add(p->b, part, p->db, p->nvars);
		for (unsigned int k = 0; k < p->nkinds; k++)
			p->kind[k].t += part * p->kind[k].dt;
		now = next;
	}
}

static unsigned int count_constraints(const struct program *p)
{
	unsigned int n = p->nrows;

	for (unsigned int k = 0; k < p->nkinds; k++)
		for (uint32_t i = 0; i < SWC_TOPO_DIMS; i++)
			n += p->kind[k].k->v[i] > 0;
	return n;
}

/* ---- both phases ---- */

/* The least slack with which all rows hold, until it is clearly below 0. False if it does not get there. @q: memory */
static bool get_inside(struct program *p, struct program *q)
{
	double most = 0, n = p->nrows + 1;
	bool inside = !p->nrows;

	*q = *p;
	q->nvars = SWC_TOPO_DIMS + 1;
	memset(q->linear, 0, sizeof(q->linear));
	q->linear[SWC_TOPO_DIMS] = 1;
	for (unsigned int j = 0; j < p->nrows; j++) {
		most = fmax(most, dot(p->row[j].a, p->b, p->nvars) - p->row[j].bound);
		q->row[j].a[SWC_TOPO_DIMS] = -1;
	}
	q->b[SWC_TOPO_DIMS] = most + 1;
	q->row[q->nrows++] = (struct row){ .a[SWC_TOPO_DIMS] = -1, .bound = 1 };
	memset(q->dir[q->ndirs], 0, sizeof(q->dir[0]));
	q->dir[q->ndirs++][SWC_TOPO_DIMS] = 1;
	for (double tau = 1; !inside && n / tau > SWC_ALLOCATION_LOOSE / 100; tau *= GROWTH) {
		centre(q, tau);
		inside = q->b[SWC_TOPO_DIMS] < -n / tau / 4;
	}
	if (inside)
		memcpy(p->b, q->b, SWC_TOPO_DIMS * sizeof(double));
	return inside;
}

static void make_least(struct program *p)
{
	double n = count_constraints(p), now = fabs(dot(p->linear, p->b, p->nvars)) + TINY;

	for (unsigned int k = 0; k < p->nkinds; k++) {
		struct kind *kind = &p->kind[k];

		for (uint32_t i = 0; i < p->nvars; i++)
			kind->t = fmax(kind->t, 2 * kind->k->v[i] / p->b[i]);
		now += kind->t * kind->k->weight;
	}
	for (double tau = n / now;; tau *= GROWTH) {
		centre(p, tau);
		now = fabs(dot(p->linear, p->b, p->nvars)) + TINY;
		for (unsigned int k = 0; k < p->nkinds; k++)
			now += p->kind[k].t * p->kind[k].k->weight;
		if (n / tau <= GAP * now)
			return;
	}
}

int swc_allocation_find(const struct swc_allocation *a, double *b)
{
	struct program *p = calloc(2, sizeof(*p));
	struct kind *kind = calloc(a->nkinds + 1, sizeof(*kind));
	int ret = p && kind ? 0 : -ENOMEM;

	if (!ret && !set_up(p, a))
		ret = -EDOM;
	for (unsigned int j = 0; !ret && j < p->nrows && !p->ndirs; j++)
		if (dot(p->row[j].a, p->b, p->nvars) > p->row[j].bound)
			ret = -EDOM;
	if (!ret && p->ndirs && !get_inside(p, p + 1))
		ret = -EDOM;
	if (!ret && p->ndirs) {
		p->kind = kind;
		p->nkinds = a->nkinds;
		for (unsigned int k = 0; k < a->nkinds; k++)
			kind[k].k = &a->kind[k];
		memcpy(p->linear, a->linear, sizeof(a->linear));
		make_least(p);
	}
	if (!ret)
		memcpy(b, p->b, a->ndims * sizeof(*b));
	free(kind);
	free(p);
	return ret;
}
