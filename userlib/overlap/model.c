// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The model behind the choice of an overlap schedule. A schedule is a pipeline of two stages,
 * transfers and products. Cutting costs what smaller products lose (decomposition loss),
 * overlapping costs what the two take from each other (contention loss). The terms are those of
 * FiCCO (Pal, Aga, Pati, Islam, John: arXiv 2512.10236); the schedules and the model are written
 * from the description there.
 */
#include <math.h>
#include <string.h>

#include "overlap/model.h"

/* Of two forecasts within this factor, either schedule may be the faster one. */
#define CLOSE 1.25

const size_t swc_ov_grid[SWC_OV_GRID] = { 8, 32, 128, 512 };

/* ---- cutting ---- */

void swc_ov_rows(size_t m, unsigned int nranks, unsigned int rank, size_t *row, size_t *rows)
{
	size_t less = m / nranks, more = m % nranks;

	*row = rank * less + (rank < more ? rank : more);
	*rows = less + (rank < more);
}

size_t swc_ov_most_rows(const struct swc_ov_shape *s)
{
	return s->m / s->nranks + (s->m % s->nranks != 0);
}

bool swc_ov_own_first(enum swingcoll_overlap_schedule schedule)
{
	return schedule == SWINGCOLL_OVERLAP_SHARD || schedule == SWINGCOLL_OVERLAP_ROWS_OWN ||
	       schedule == SWINGCOLL_OVERLAP_ROWS_SEPARATE;
}

unsigned int swc_ov_transfers(enum swingcoll_overlap_schedule schedule,
			      const struct swc_ov_shape *s)
{
	size_t most = schedule == SWINGCOLL_OVERLAP_COLUMNS ? s->k : swc_ov_most_rows(s);

	if (schedule == SWINGCOLL_OVERLAP_SERIAL)
		return 1;
	if (schedule == SWINGCOLL_OVERLAP_SHARD)
		return s->nranks;
	return s->pieces < most ? s->pieces : (unsigned int)most;
}

/* Piece i of n of a length. */
static void piece_of(size_t length, unsigned int n, unsigned int i, size_t *first, size_t *count)
{
	*first = length * i / n;
	*count = length * (i + 1) / n - *first;
}

struct swc_ov_cut swc_ov_cut(enum swingcoll_overlap_schedule schedule, const struct swc_ov_shape *s,
			     unsigned int i)
{
	struct swc_ov_cut cut = { .rows = swc_ov_most_rows(s), .cols = s->k };
	unsigned int n = swc_ov_transfers(schedule, s);
	size_t row;

	if (schedule == SWINGCOLL_OVERLAP_COLUMNS)
		piece_of(s->k, n, i, &cut.col, &cut.cols);
	else if (schedule == SWINGCOLL_OVERLAP_SHARD)
		swc_ov_rows(s->m, s->nranks, i, &row, &cut.rows);
	else
		piece_of(cut.rows, n, i, &cut.row, &cut.rows);
	return cut;
}

/* ---- interpolation between measurements ---- */

/* The interval of the grid that has x, and the place in it, 0 to 1. */
static unsigned int locate(double x, double *t)
{
	unsigned int i = 0;

	while (i < SWC_OV_GRID - 2 && x > (double)swc_ov_grid[i + 1])
		i++;
	*t = log(x / (double)swc_ov_grid[i]) /
	     log((double)swc_ov_grid[i + 1] / (double)swc_ov_grid[i]);
	if (!(*t > 0))
		*t = 0;
	if (*t > 1)
		*t = 1;
	return i;
}

double swc_ov_product(const struct swc_ov_rates *rates, double m, double n, double k)
{
	double tm, tn, tk, sum = 0;
	unsigned int im = locate(m, &tm), in = locate(n, &tn), ik = locate(k, &tk);

	if (!(m > 0) || !(n > 0) || !(k > 0))
		return 0;
	for (unsigned int c = 0; c < 8; c++) {
		unsigned int a = c & 1, b = c >> 1 & 1, d = c >> 2;

		sum += (a ? tm : 1 - tm) * (b ? tn : 1 - tn) * (d ? tk : 1 - tk) *
		       rates->log_rate[im + a][in + b][ik + d];
	}
	return 2 * m * n * k / exp(sum);
}

double swc_ov_curve_at(const struct swc_ov_curve *curve, double bytes)
{
	unsigned int i = 0;
	double slope, s;

	if (!(bytes > 0))
		return 0;
	while (i < SWC_OV_POINTS - 2 && bytes > curve->bytes[i + 1])
		i++;
	slope = (curve->s[i + 1] - curve->s[i]) / (curve->bytes[i + 1] - curve->bytes[i]);
	s = curve->s[i] + (bytes - curve->bytes[i]) * (slope > 0 ? slope : 0);
	/* Not less than the start-up time, of which the first point is the best estimate. */
	return s > 0 ? s : curve->s[0];
}

double swc_ov_dil(const struct swc_ov_rates *rates, const struct swc_ov_shape *s, unsigned int cuts,
		  bool columns)
{
	double m = (double)s->m, n = (double)s->n, k = (double)s->k;
	double piece = columns ? swc_ov_product(rates, m, n, k / cuts)
			       : swc_ov_product(rates, m / cuts, n, k);

	return cuts * piece / swc_ov_product(rates, m, n, k);
}

/* ---- the pipeline ---- */

/* Time of work that begins at @start and is slowed down until the last transfer ends. */
static double slowed(double comp, double start, double last, double cil_g)
{
	double until = last - start;

	if (until <= 0)
		return comp;
	return comp * cil_g <= until ? comp * cil_g : until + comp - until / cil_g;
}

static double comm_time(const struct swc_ov_step *step, unsigned int i, double cil_c, bool all)
{
	bool beside_work = all || i > 1 || (i == 1 && step[0].comp > 0);

	return step[i].comm * (beside_work ? cil_c : 1);
}

double swc_ov_pipeline(const struct swc_ov_step *step, unsigned int n, double cil_g, double cil_c,
		       bool throughout)
{
	double c = 0, g = 0, last = 0;

	for (unsigned int i = 0; i < n; i++)
		last += comm_time(step, i, cil_c, throughout);
	for (unsigned int i = 0; i < n; i++) {
		c += comm_time(step, i, cil_c, throughout);
		if (c > g)
			g = c;
		g += throughout ? step[i].comp * cil_g : slowed(step[i].comp, g, last, cil_g);
	}
	return g;
}

struct inputs {
	const struct swc_ov_shape *s;
	const struct swc_ov_figures *f;
};

static double product(const struct inputs *x, double m, double k)
{
	return x->f->crowd * swc_ov_product(&x->f->rates, m, (double)x->s->n, k);
}

static double copy(const struct inputs *x, double elems)
{
	return x->f->copy > 0 ? elems * (double)x->s->elem / x->f->copy : 0;
}

/* One step of the schedules that cut shards, for a rank with the largest shard. */
static struct swc_ov_step piece_step(const struct inputs *x,
				     enum swingcoll_overlap_schedule schedule, unsigned int i)
{
	struct swc_ov_cut cut = swc_ov_cut(schedule, x->s, i);
	double rows = (double)cut.rows, cols = (double)cut.cols, p = x->s->nranks;
	double n = (double)x->s->n;
	struct swc_ov_step step = {
		.comm = swc_ov_curve_at(&x->f->gather[i > 0], rows * cols * (double)x->s->elem),
	};

	switch (schedule) {
	case SWINGCOLL_OVERLAP_ROWS_SEPARATE:
		step.comp = (p - 1) * product(x, rows, cols);
		break;
	case SWINGCOLL_OVERLAP_ROWS_OWN:
		step.comp = product(x, (p - 1) * rows, cols);
		/*
		 * The result is copied to its rows, and one rank's share of A to the place of the
		 * own one.
		 */
		if (x->s->nranks > 2)
			step.comp += copy(x, (p - 1) * rows * n) + copy(x, rows * cols);
		break;
	case SWINGCOLL_OVERLAP_ROWS:
		/* The own share is copied, too. */
		step.comp = product(x, p * rows, cols) + copy(x, p * rows * n) +
			    copy(x, rows * cols);
		break;
	default:
		/*
		 * Columns are packed before they are sent, and the own ones are copied from there.
		 */
		step.comp = product(x, (double)x->s->m, cols) + 2 * copy(x, rows * cols);
	}
	step.comp += x->f->handling;
	return step;
}

static double predict_shard(const struct inputs *x)
{
	struct swc_ov_step step[3];
	double rows = (double)swc_ov_most_rows(x->s), k = (double)x->s->k, g, c;
	double bytes = rows * k * (double)x->s->elem, comp = product(x, rows, k);
	double first = swc_ov_curve_at(&x->f->broadcast[0], bytes);
	double comm = swc_ov_curve_at(&x->f->broadcast[1], bytes);

	/*
	 * All steps but the first two are alike. The rank whose own shard goes first waits for
	 * most.
	 */
	step[0] = (struct swc_ov_step){ .comp = comp };
	comp += x->f->handling;
	step[1] = (struct swc_ov_step){ .comm = first + comm, .comp = comp };
	step[2] = (struct swc_ov_step){ .comm = comm, .comp = comp };
	if (x->s->nranks < 3)
		return swc_ov_pipeline(step, x->s->nranks, x->f->cil_g, x->f->cil_c, false);
	g = swc_ov_pipeline(step, 3, x->f->cil_g, x->f->cil_c, false);
	c = comm * x->f->cil_c;
	comp *= x->f->cil_g;
	return g + (x->s->nranks - 3) * (c > comp ? c : comp);
}

double swc_ov_predict(enum swingcoll_overlap_schedule schedule, const struct swc_ov_shape *s,
		      const struct swc_ov_figures *f)
{
	struct inputs x = { s, f };
	struct swc_ov_step step[SWC_OV_PIECES + 1];
	unsigned int n = swc_ov_transfers(schedule, s), k = 0;

	if (s->nranks == 1)
		return product(&x, (double)s->m, (double)s->k);
	if (schedule == SWINGCOLL_OVERLAP_SHARD)
		return predict_shard(&x);
	if (schedule == SWINGCOLL_OVERLAP_SERIAL)
		/* The own share is copied during the transfer. */
		return fmax(swc_ov_curve_at(&f->gather[0],
					    (double)(swc_ov_most_rows(s) * s->k * s->elem)),
			    copy(&x, (double)(swc_ov_most_rows(s) * s->k))) +
		       product(&x, (double)s->m, (double)s->k) + f->handling;
	if (swc_ov_own_first(schedule))
		step[k++] = (struct swc_ov_step){ .comp = product(&x, (double)swc_ov_most_rows(s),
								  (double)s->k) };
	for (unsigned int i = 0; i < n; i++)
		step[k++] = piece_step(&x, schedule, i);
	return swc_ov_pipeline(step, k, f->cil_g, f->cil_c, false);
}

/* The fastest schedule that is not in the list; 0 if all are. */
static uint8_t next_best(const double *predicted, const uint8_t *list, unsigned int n)
{
	uint8_t best = 0;

	for (uint8_t i = SWINGCOLL_OVERLAP_SERIAL; i < SWINGCOLL_OVERLAP_SCHEDULES; i++)
		if (!memchr(list, i, n) && (!best || predicted[i] < predicted[best]))
			best = i;
	return best;
}

unsigned int swc_ov_candidates(const double *predicted, uint8_t *out)
{
	unsigned int n = 0;
	double limit;
	uint8_t next;

	out[n++] = SWINGCOLL_OVERLAP_SERIAL;
	if (!predicted) {
		for (int i = SWINGCOLL_OVERLAP_SERIAL + 1; i < SWINGCOLL_OVERLAP_SCHEDULES; i++)
			out[n++] = (uint8_t)i;
		return n;
	}
	limit = CLOSE * fmin(predicted[out[0]], predicted[next_best(predicted, out, n)]);
	while ((next = next_best(predicted, out, n)) && (n < 3 || predicted[next] <= limit))
		out[n++] = next;
	return n;
}
