// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The dual simplex method on a dense table. Each row says what a basic variable is:
 *
 *	basic = rest - sum of coefficient * other
 *
 * where all others are 0. At first the others are the variables. As soon as what more of each would
 * gain is not positive, the table is optimal but for rows whose basic variable is negative; each is
 * exchanged for the variable that costs least, until there is none. A row that is added is written in
 * the present others first, so that what was found stays.
 *
 * Many variables gain nothing; small losses, different for each, decide among those that would be
 * equal, and so keep it from going in a circle.
 */
#include "plan/forest/simplex.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ZERO 1e-11
#define LOSS 1e-9
#define MOST_PIVOTS 200000

/**
 * struct simplex - a program
 * @n: variables; those of rows are numbered from there on
 * @table: by row: coefficients, then the rest; the last row is what is gained
 * @where: by variable: its column; or, if it is basic, ~row
 * @basic, @other: variables by row and by column
 */
struct simplex {
	struct swc_lp lp;
	uint32_t n, rows, room;
	double **table, *gain;
	int64_t *where;
	uint32_t *basic, *other;
};

static struct simplex *of(struct swc_lp *lp)
{
	return (struct simplex *)lp;
}

/* Room for one more row. */
static int grow(struct simplex *s)
{
	uint32_t room = s->rows < s->room ? s->room : s->room + 64;
	double **table = reallocarray(s->table, room, sizeof(*table));
	uint32_t *basic;
	int64_t *where;

	if (!table)
		return -ENOMEM;
	s->table = table;
	basic = reallocarray(s->basic, room, sizeof(*basic));
	if (!basic)
		return -ENOMEM;
	s->basic = basic;
	where = reallocarray(s->where, (size_t)s->n + room, sizeof(*where));
	if (!where)
		return -ENOMEM;
	s->where = where;
	s->room = room;
	s->table[s->rows] = calloc(s->n + 1u, sizeof(double));
	return s->table[s->rows] ? 0 : -ENOMEM;
}

static void subtract(double *row, const double *from, double factor, uint32_t n)
{
	for (uint32_t j = 0; j <= n; j++)
		row[j] -= factor * from[j];
}

static int add_le(struct simplex *s, uint32_t n, const uint32_t *variable,
		  const double *coefficient, double bound, double sign)
{
	int ret = grow(s);
	double *row;

	if (ret)
		return ret;
	row = s->table[s->rows];
	row[s->n] = sign * bound;
	for (uint32_t i = 0; i < n; i++) {
		int64_t at = s->where[variable[i]];

		/* basic = rest - coefficients * others */
		if (at < 0)
			subtract(row, s->table[~at], sign * coefficient[i], s->n);
		else
			row[at] += sign * coefficient[i];
	}
	s->basic[s->rows] = s->n + s->rows;
	s->where[s->n + s->rows] = ~(int64_t)s->rows;
	s->rows++;
	return 0;
}

static int add_row(struct swc_lp *lp, uint32_t n, const uint32_t *variable,
		   const double *coefficient, double bound, bool equal)
{
	int ret = add_le(of(lp), n, variable, coefficient, bound, 1);

	return ret || !equal ? ret : add_le(of(lp), n, variable, coefficient, bound, -1);
}

/* Exchange a basic variable for another. */
static void pivot(struct simplex *s, uint32_t r, uint32_t c)
{
	double *row = s->table[r], by = 1 / row[c];
	uint32_t out = s->basic[r], in = s->other[c];

	for (uint32_t j = 0; j <= s->n; j++)
		row[j] *= by;
	row[c] = by;
	for (uint32_t i = 0; i <= s->rows; i++) {
		double *other = i < s->rows ? s->table[i] : s->gain, factor = other[c];

		if (i == r || fabs(factor) < 1e-14)
			continue;
		other[c] = 0;
		subtract(other, row, factor, s->n);
	}
	s->basic[r] = in;
	s->other[c] = out;
	s->where[in] = ~(int64_t)r;
	s->where[out] = c;
}

/* Small losses that look like chance, but are the same everywhere. */
static double loss_of(uint32_t variable)
{
	return LOSS * (1 + (double)(variable * 2654435761u >> 16) / 65536);
}

static int begin(struct swc_lp *lp, uint32_t n, const double *upper, const double *gain)
{
	struct simplex *s = of(lp);
	double one = 1;
	int ret = 0;

	s->n = n;
	s->gain = calloc(n + 1u, sizeof(*s->gain));
	s->other = calloc(n, sizeof(*s->other));
	s->where = calloc(n + 1u, sizeof(*s->where));
	if (!s->gain || !s->other || !s->where)
		return -ENOMEM;
	/* What is gained is written as the rows are: less with positive coefficients. */
	for (uint32_t j = 0; j < n; j++) {
		s->gain[j] = -gain[j] + (gain[j] > 0 ? 0 : loss_of(j));
		s->other[j] = j;
		s->where[j] = j;
	}
	for (uint32_t j = 0; j < n && !ret; j++)
		ret = add_le(s, 1, &j, &one, upper[j], 1);
	/* Variables that gain are at their bounds first. */
	for (uint32_t j = 0; j < n && !ret; j++)
		if (gain[j] > 0)
			pivot(s, j, j);
	return ret;
}

/* The row that is farthest from being possible; rows if all are. */
static uint32_t worst_row(const struct simplex *s)
{
	uint32_t worst = s->rows;
	double least = -ZERO;

	for (uint32_t i = 0; i < s->rows; i++)
		if (s->table[i][s->n] < least) {
			least = s->table[i][s->n];
			worst = i;
		}
	return worst;
}

/* The column that costs least; n if there is none: nothing is possible. */
static uint32_t cheapest(const struct simplex *s, uint32_t r)
{
	const double *row = s->table[r];
	double least = INFINITY, most = 0;
	uint32_t best = s->n;

	for (uint32_t j = 0; j < s->n; j++) {
		double cost;

		if (row[j] > -1e-9)
			continue;
		cost = fmax(s->gain[j], 0) / -row[j];
		/* Of equal ones the largest, which is safest to divide by. */
		if (cost < least - 1e-15 || (cost < least + 1e-15 && -row[j] > most)) {
			least = cost;
			most = -row[j];
			best = j;
		}
	}
	return best;
}

static int solve(struct swc_lp *lp, double *value)
{
	struct simplex *s = of(lp);
	uint32_t r;

	for (uint32_t k = 0; (r = worst_row(s)) < s->rows; k++) {
		uint32_t c = cheapest(s, r);

		if (c == s->n || k == MOST_PIVOTS)
			return -EIO;
		pivot(s, r, c);
	}
	for (uint32_t j = 0; j < s->n; j++)
		value[j] = s->where[j] < 0 ? fmax(s->table[~s->where[j]][s->n], 0) : 0;
	return 0;
}

struct swc_lp *swc_simplex_new(void)
{
	struct simplex *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->lp = (struct swc_lp){ begin, add_row, solve };
	return &s->lp;
}

void swc_simplex_free(struct swc_lp *lp)
{
	struct simplex *s = of(lp);

	if (!s)
		return;
	for (uint32_t i = 0; i < s->rows; i++)
		free(s->table[i]);
	free(s->table);
	free(s->gain);
	free(s->where);
	free(s->basic);
	free(s->other);
	free(s);
}
