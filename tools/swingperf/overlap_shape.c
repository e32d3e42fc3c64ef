// SPDX-License-Identifier: GPL-2.0-only
/*
 * One shape: all schedules in turn, round after round, so that other load on the machine affects all alike.
 * Every element of each schedule's result is compared with one product of the whole matrices.
 */
#include "overlap.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/perfloop.h"

/* One rank's matrices. */
struct matrices {
	size_t m, n, k;
	struct swingcoll_overlap_range own;
	float *shard, *b, *c, *expect;
	float *stacked; /* result of a piece whose rows are not neighbours */
	char *mem;
};

/* Small integers: additions in any order give the same exact sum. */
static float a_at(size_t r, size_t c)
{
	return (float)((r * 7 + c * 13) % 11) - 5;
}

static float b_at(size_t r, size_t c)
{
	return (float)((r * 5 + c * 3) % 13) - 6;
}

/* Copy, or add, the stacked rows to their places. */
static void scatter(struct matrices *x, const struct swingcoll_overlap_piece *p)
{
	const float *from = x->stacked;

	for (unsigned int i = 0; i < p->nruns; i++) {
		size_t count = p->run[i].rows * x->n;
		float *to = x->c + p->run[i].row * x->n;

		if (p->accumulate)
			for (size_t e = 0; e < count; e++)
				to[e] += from[e];
		else
			memcpy(to, from, count * sizeof(*to));
		from += count;
	}
}

static int consume(void *arg, const struct swingcoll_overlap_piece *p)
{
	struct matrices *x = arg;
	const float *b = x->b + p->col * x->n;

	if (p->nruns == 1) {
		ov_blas_multiply(p->rows, x->n, p->cols, p->a, p->lda, b,
				 x->c + p->run[0].row * x->n, p->accumulate);
		return 0;
	}
	ov_blas_multiply(p->rows, x->n, p->cols, p->a, p->lda, b, x->stacked, false);
	scatter(x, p);
	return 0;
}

static size_t bytes_of(size_t rows, size_t cols)
{
	return (rows * cols * sizeof(float) + 4095) & ~(size_t)4095;
}

static int matrices_init(struct matrices *x, const struct ov_rank *r, const struct ov_row *row)
{
	size_t m = row->m, n = row->n, k = row->k, i;
	float *a;
	char *p;

	*x = (struct matrices){ .m = m, .n = n, .k = k };
	swingcoll_overlap_rows(m, r->team->nranks, r->team->rank, &x->own);
	i = bytes_of(x->own.rows + 1, k) + bytes_of(k, n) + 3 * bytes_of(m, n);
	x->mem = p = aligned_alloc(4096, i);
	a = malloc(m * k * sizeof(*a));
	if (!p || !a) {
		free(a);
		return -ENOMEM;
	}
	x->shard = (float *)p;
	x->b = (float *)(p += bytes_of(x->own.rows + 1, k));
	x->c = (float *)(p += bytes_of(k, n));
	x->expect = (float *)(p += bytes_of(m, n));
	x->stacked = (float *)(p + bytes_of(m, n));
	for (i = 0; i < m * k; i++)
		a[i] = a_at(i / k, i % k);
	memcpy(x->shard, a + x->own.row * k, x->own.rows * k * sizeof(*a));
	for (i = 0; i < k * n; i++)
		x->b[i] = b_at(i / n, i % n);
	ov_blas_multiply(m, n, k, a, k, x->b, x->expect, false);
	free(a);
	return 0;
}

static int call(struct ov_rank *r, struct matrices *x, enum swingcoll_overlap_schedule schedule,
		struct swingcoll_overlap_result *result)
{
	const struct swingcoll_overlap_call c = {
		.m = x->m,
		.n = x->n,
		.k = x->k,
		.dtype = SWINGCOLL_F32,
		.schedule = schedule,
		.shard = x->shard,
		.consume = consume,
		.arg = x,
	};

	return swingcoll_overlap_run(r->overlap, &c, result);
}

/* One call, and a check of its result. */
static int check(struct ov_rank *r, struct matrices *x, enum swingcoll_overlap_schedule schedule,
		 uint64_t *wrong)
{
	struct swingcoll_overlap_result result;
	uint64_t n = 0;
	int ret;

	memset(x->c, 0xff, x->m * x->n * sizeof(*x->c));
	ret = call(r, x, schedule, &result);
	for (size_t i = 0; !ret && i < x->m * x->n; i++)
		n += x->c[i] != x->expect[i];
	if (n)
		fprintf(stderr,
			"swingperf overlap: rank %d: wrong result by %s, %zu x %zu x %zu: %llu elements\n",
			r->team->rank, swingcoll_overlap_name(schedule), x->m, x->n, x->k,
			(unsigned long long)n);
	*wrong += n;
	return ret;
}

struct samples {
	double *time[OV_SCHEDULES], *wait[OV_SCHEDULES];
};

static int one_round(struct ov_rank *r, struct matrices *x, struct samples *s, unsigned int i)
{
	unsigned int n = OV_SCHEDULES - SWINGCOLL_OVERLAP_SERIAL;
	struct swingcoll_overlap_result result = { 0 };
	int ret = 0;

	/* Each round begins with another schedule, so that none always follows the same one. */
	for (unsigned int j = 0; !ret && j < n; j++) {
		unsigned int k = SWINGCOLL_OVERLAP_SERIAL + (i + j) % n;
		double *t = &s->time[k][i], *w = &s->wait[k][i];

		ret = team_barrier(r->team);
		if (!ret)
			ret = swingcoll_barrier(r->comm);
		if (!ret)
			ret = call(r, x, (enum swingcoll_overlap_schedule)k, &result);
		*t = (double)result.time_ns * 1e-9;
		*w = (double)result.wait_ns * 1e-9;
		if (!ret)
			ret = team_max(r->team, t);
		if (!ret)
			ret = team_max(r->team, w);
	}
	return ret;
}

/* Let the library make its choice, as for any caller. */
static int choose(struct ov_rank *r, struct matrices *x, struct ov_row *row)
{
	struct swingcoll_overlap_result result = { .trial = 1 };
	int ret = 0;

	while (!ret && result.trial)
		ret = call(r, x, SWINGCOLL_OVERLAP_AUTO, &result);
	row->choice = result.schedule;
	return ret;
}

static int time_rounds(struct ov_rank *r, struct matrices *x, struct ov_row *row, struct samples *s)
{
	double busy = clock_all_cpus_busy(), own = clock_process_cpu(), begin = clock_now(), took;
	int ret = choose(r, x, row);

	for (unsigned int i = 0; !ret && i < r->opt->repeats; i++)
		ret = one_round(r, x, s, i);
	took = clock_now() - begin;
	row->own = (clock_process_cpu() - own) / took;
	row->cpu = (clock_all_cpus_busy() - busy) / took / (double)sysconf(_SC_NPROCESSORS_ONLN);
	return ret;
}

/* Medians of the even and of the odd rounds; before condense(), which sorts the rounds. */
static int take_halves(const struct ov_rank *r, struct ov_row *row, const struct samples *s)
{
	unsigned int n = r->opt->repeats;
	double *v = malloc((n + 1) / 2 * sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (int k = SWINGCOLL_OVERLAP_SERIAL; k < OV_SCHEDULES; k++) {
		for (unsigned int h = 0; h < 2; h++) {
			unsigned int count = 0;

			for (unsigned int i = n > 1 ? h : 0; i < n; i += 2)
				v[count++] = s->time[k][i];
			row->half[h][k] = perf_quantile(v, count, 0.5);
		}
	}
	free(v);
	return 0;
}

static void condense(const struct ov_rank *r, struct ov_row *row, struct samples *s)
{
	unsigned int n = r->opt->repeats;

	row->best = row->model = SWINGCOLL_OVERLAP_SERIAL;
	for (int k = SWINGCOLL_OVERLAP_SERIAL; k < OV_SCHEDULES; k++) {
		row->median[k] = perf_quantile(s->time[k], n, 0.5);
		row->iqr[k] = perf_quantile(s->time[k], n, 0.75) -
			      perf_quantile(s->time[k], n, 0.25);
		row->wait[k] = perf_quantile(s->wait[k], n, 0.5);
		row->noise += row->iqr[k] / row->median[k] / (OV_SCHEDULES - 1);
		if (row->median[k] < row->median[row->best])
			row->best = (enum swingcoll_overlap_schedule)k;
		if (row->forecast.time_s[k] < row->forecast.time_s[row->model])
			row->model = (enum swingcoll_overlap_schedule)k;
	}
}

/* Multiply all sides by one factor, so that a product takes target_ms. */
static void scale(const struct ov_rank *r, const struct ov_shape *shape, struct ov_row *row)
{
	double mflop = 2e-6 * shape->m * shape->n * shape->k;
	double f = r->opt->target_ms > 0 ? cbrt(r->mflop / mflop) : 1;

	*row = (struct ov_row){ .shape = shape };
	row->m = (size_t)fmax(1, round(shape->m * f));
	row->n = (size_t)fmax(1, round(shape->n * f));
	row->k = (size_t)fmax(1, round(shape->k * f));
}

int ov_measure(struct ov_rank *r, const struct ov_shape *shape, struct ov_row *row)
{
	double *values = calloc(2 * OV_SCHEDULES * (size_t)r->opt->repeats, sizeof(*values));
	struct samples s;
	struct matrices x;
	int ret;

	scale(r, shape, row);
	ret = matrices_init(&x, r, row);
	if (!values)
		ret = -ENOMEM;
	if (!ret)
		ret = swingcoll_overlap_forecast(r->overlap, row->m, row->n, row->k, SWINGCOLL_F32,
						 &row->forecast);
	for (int k = 0; !ret && k < OV_SCHEDULES; k++) {
		s.time[k] = values + (size_t)(2 * k) * r->opt->repeats;
		s.wait[k] = s.time[k] + r->opt->repeats;
	}
	for (int k = SWINGCOLL_OVERLAP_SERIAL; !ret && k < OV_SCHEDULES; k++)
		ret = check(r, &x, (enum swingcoll_overlap_schedule)k, &row->wrong);
	if (!ret)
		ret = time_rounds(r, &x, row, &s);
	if (!ret)
		ret = check(r, &x, SWINGCOLL_OVERLAP_AUTO, &row->wrong);
	if (!ret)
		ret = team_sum(r->team, &row->wrong);
	if (!ret)
		ret = take_halves(r, row, &s);
	if (!ret)
		condense(r, row, &s);
	free(x.mem);
	free(values);
	return ret;
}
