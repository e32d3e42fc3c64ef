// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Orders of dimensions. A part of the vector that visits the dimensions in some order loads the
 * i-th of them with 1/Q (1 - 1/g) of its bytes: g is the size of the group there, Q the product of
 * the groups before it. An allgather goes the same way back. Which shares should take which order,
 * so that the dimension that takes longest takes least? (The static counterpart of Themis, ISCA
 * 2022, and of LIBRA, arXiv 2109.11762, which chooses rates instead.)
 *
 * That is a linear program over all orders, but its answer has a closed form: the dimensions of a
 * set T together move at least V(T) = bytes / (product of the groups outside T) * (1 - 1 / product
 * of those in T), which they do if T comes last; V is supermodular, so nothing else binds. Hence
 * the time is the maximum of V(T) over the rates of T.
 *
 * The shares come from the simplex method with columns made as they are needed. Its basis has one
 * row for each dimension and one for the sum of the shares; the time is always in it, so at most as
 * many orders as dimensions have a share. For prices of the dimensions, the cheapest order visits
 * those with the least price per rate first, where most bytes go: a sort finds it.
 */
#include "plan/orders.h"

#include <math.h>
#include <string.h>

#define ROWS (SWC_TOPO_DIMS + 1)
#define MAX_PIVOTS 1000
#define TINY 1e-12

struct column {
	enum {
		TIME,
		SLACK,
		ORDER
	} kind;
	uint32_t row; /* of a slack */
	uint8_t dim[SWC_TOPO_DIMS];
	double a[ROWS];
};

struct program {
	uint32_t ndims;
	const uint32_t *size;
	const double *rate;
	struct column basis[ROWS];
	double inverse[ROWS][ROWS];
};

void swc_order_loads(const uint32_t *size, const double *rate, uint32_t ndims, const uint8_t *dim,
		     double *load)
{
	double left = 1;

	for (uint32_t i = 0; i < ndims; i++) {
		double g = size[dim[i]];

		load[dim[i]] = left * (1 - 1 / g) / rate[dim[i]];
		left /= g;
	}
}

static void loads(const struct program *p, const uint8_t *dim, double *a)
{
	swc_order_loads(p->size, p->rate, p->ndims, dim, a);
}

static double longest(const double *a, uint32_t n)
{
	double most = 0;

	for (uint32_t i = 0; i < n; i++)
		most = fmax(most, a[i]);
	return most;
}

static void add_order(const struct program *p, struct column *c, const uint8_t *dim)
{
	memset(c, 0, sizeof(*c));
	c->kind = ORDER;
	memcpy(c->dim, dim, p->ndims);
	loads(p, dim, c->a);
	c->a[p->ndims] = 1;
}

/* Gauss-Jordan on the basis; it is never singular, as each pivot keeps it regular. */
static void invert(struct program *p)
{
	uint32_t n = p->ndims + 1;
	double m[ROWS][2 * ROWS] = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < n; j++)
			m[i][j] = p->basis[j].a[i];
		m[i][n + i] = 1;
	}
	for (uint32_t k = 0; k < n; k++) {
		uint32_t best = k;
		double row[2 * ROWS], by;

		for (uint32_t i = k; i < n; i++)
			best = fabs(m[i][k]) > fabs(m[best][k]) ? i : best;
		memcpy(row, m[best], sizeof(row));
		memcpy(m[best], m[k], sizeof(row));
		by = row[k];
		for (uint32_t j = 0; j < 2 * n; j++)
			m[k][j] = row[j] / by;
		for (uint32_t i = 0; i < n; i++) {
			by = m[i][k];
			for (uint32_t j = 0; i != k && j < 2 * n; j++)
				m[i][j] -= by * m[k][j];
		}
	}
	for (uint32_t i = 0; i < n; i++)
		memcpy(p->inverse[i], m[i] + n, n * sizeof(double));
}

/* The order that is cheapest at these prices of time in each dimension. */
static void cheapest(const struct program *p, const double *price, uint8_t *dim)
{
	for (uint32_t i = 0; i < p->ndims; i++) {
		uint32_t at = i;

		for (; at && price[dim[at - 1]] / p->rate[dim[at - 1]] > price[i] / p->rate[i];
		     at--)
			dim[at] = dim[at - 1];
		dim[at] = (uint8_t)i;
	}
}

/* A column whose value would make the time less; false if there is none. */
static bool enter(const struct program *p, uint32_t time_row, struct column *c)
{
	const double *dual = p->inverse[time_row];
	double price[SWC_TOPO_DIMS], cost = -dual[p->ndims];
	uint8_t dim[SWC_TOPO_DIMS] = { 0 };

	for (uint32_t i = 0; i < p->ndims; i++)
		price[i] = fmax(-dual[i], 0);
	for (uint32_t i = 0; i < p->ndims; i++)
		if (dual[i] > TINY) {
			*c = (struct column){ .kind = SLACK, .row = i };
			c->a[i] = 1;
			return true;
		}
	cheapest(p, price, dim);
	add_order(p, c, dim);
	for (uint32_t i = 0; i < p->ndims; i++)
		cost += price[i] * c->a[i];
	return cost < -TINY * fabs(dual[p->ndims]);
}

/* The row that a column replaces: the first whose value would become negative; ROWS: none. */
static uint32_t leave(const struct program *p, const struct column *c)
{
	uint32_t n = p->ndims + 1, row = ROWS;
	double least = INFINITY;

	for (uint32_t i = 0; i < n; i++) {
		double by = 0, value = p->inverse[i][p->ndims];

		for (uint32_t j = 0; j < n; j++)
			by += p->inverse[i][j] * c->a[j];
		if (p->basis[i].kind != TIME && by > TINY && value / by < least) {
			least = value / by;
			row = i;
		}
	}
	return row;
}

/* Begin with one order: its share is 1, the time is that of its slowest dimension. */
static uint32_t begin(struct program *p)
{
	uint8_t dim[SWC_TOPO_DIMS] = { 0 };
	double a[SWC_TOPO_DIMS] = { 0 };
	uint32_t slowest = 0;

	for (uint32_t i = 0; i < p->ndims; i++)
		dim[i] = (uint8_t)i;
	loads(p, dim, a);
	for (uint32_t i = 0; i < p->ndims; i++)
		slowest = a[i] > a[slowest] ? i : slowest;
	for (uint32_t i = 0; i < p->ndims; i++) {
		p->basis[i] = (struct column){ .kind = SLACK, .row = i };
		p->basis[i].a[i] = 1;
	}
	p->basis[slowest] = (struct column){ .kind = TIME };
	for (uint32_t i = 0; i < p->ndims; i++)
		p->basis[slowest].a[i] = -1;
	add_order(p, &p->basis[p->ndims], dim);
	invert(p);
	return slowest;
}

static void compare(struct swc_orders *o, const struct program *p, uint8_t *dim, uint32_t at,
		    double bytes)
{
	double a[SWC_TOPO_DIMS] = { 0 };

	if (at == p->ndims) {
		loads(p, dim, a);
		o->single = fmin(o->single, bytes * longest(a, p->ndims));
		return;
	}
	for (uint32_t i = at; i < p->ndims; i++) {
		uint8_t x = dim[i];

		dim[i] = dim[at];
		dim[at] = x;
		compare(o, p, dim, at + 1, bytes);
		dim[at] = dim[i];
		dim[i] = x;
	}
}

void swc_orders_find(struct swc_orders *o, const uint32_t *size, const double *rate, uint32_t ndims,
		     double bytes)
{
	struct program p = { .ndims = ndims, .size = size, .rate = rate };
	uint32_t time_row = begin(&p), row;
	uint8_t dim[SWC_TOPO_DIMS];
	double a[SWC_TOPO_DIMS] = { 0 }, product = 1, rates = 0, sum = 0;
	struct column c;

	memset(o, 0, sizeof(*o));
	memcpy(dim, p.basis[ndims].dim, sizeof(dim));
	loads(&p, dim, a);
	o->fixed = bytes * longest(a, ndims);
	for (int i = 0; i < MAX_PIVOTS && enter(&p, time_row, &c); i++) {
		row = leave(&p, &c);
		if (row == ROWS)
			break;
		p.basis[row] = c;
		invert(&p);
	}
	for (uint32_t i = 0; i <= ndims; i++) {
		double share = p.inverse[i][ndims];

		if (p.basis[i].kind != ORDER || share <= TINY)
			continue;
		memcpy(o->order[o->n].dim, p.basis[i].dim, sizeof(dim));
		o->order[o->n++].fraction = share;
		sum += share;
	}
	for (uint32_t i = 0; i < o->n; i++)
		o->order[i].fraction /= sum;
	o->time = bytes * p.inverse[time_row][ndims];
	o->single = INFINITY;
	compare(o, &p, dim, 0, bytes);
	for (uint32_t i = 0; i < ndims; i++) {
		product *= size[i];
		rates += rate[i];
	}
	o->bound = bytes * (1 - 1 / product) / rates;
}

double swc_orders_time(const uint32_t *size, const double *rate, uint32_t ndims, double bytes)
{
	double most = 0;

	for (uint32_t set = 1; set < 1u << ndims; set++) {
		double in = 1, out = 1, rates = 0;

		for (uint32_t i = 0; i < ndims; i++) {
			if (set >> i & 1) {
				in *= size[i];
				rates += rate[i];
			} else {
				out *= size[i];
			}
		}
		most = fmax(most, bytes / out * (1 - 1 / in) / rates);
	}
	return most;
}
