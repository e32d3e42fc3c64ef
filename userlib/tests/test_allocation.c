// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocation of bandwidth: closed forms of one kind of phase, and of kinds that use dimensions of their own, over many
 * scales; on random programs the answer respects all constraints, and is no worse than any of the mixtures of it
 * with points that the constraints were made for, which convexity would show; constraints that follow from each other, that
 * leave one point, and that contradict each other. TAP on stdout.
 */
#include <errno.h>
#include <float.h>
#include <math.h>

#include "plan/allocation.h"
#include "random.h"
#include "tap.h"

#define KINDS 12
#define POINTS 6

static struct swc_allocation_kind kinds[KINDS];

static double value(const struct swc_allocation *a, const double *b)
{
	double sum = 0;

	for (unsigned int k = 0; k < a->nkinds; k++) {
		double t = 0;

		for (uint32_t i = 0; i < a->ndims; i++)
			t = fmax(t, a->kind[k].v[i] / b[i]);
		sum += a->kind[k].weight * t;
	}
	for (uint32_t i = 0; i < a->ndims; i++)
		sum += a->linear[i] * b[i];
	return sum;
}

/* By how much a point misses the rows, in units of their largest coefficient. */
static double missed(const struct swc_allocation *a, const double *b)
{
	double worst = 0;

	for (unsigned int j = 0; j < a->nrows; j++) {
		const struct swc_allocation_row *r = &a->row[j];
		double sum = -r->bound, most = DBL_MIN;

		for (uint32_t i = 0; i < a->ndims; i++) {
			sum += r->coefficient[i] * b[i];
			most = fmax(most, fabs(r->coefficient[i]));
		}
		worst = fmax(worst, (r->equal ? fabs(sum) : sum) / most);
	}
	return worst;
}

static struct swc_allocation_row *add_row(struct swc_allocation *a, double bound, bool equal)
{
	struct swc_allocation_row *r = &a->row[a->nrows++];

	*r = (struct swc_allocation_row){ .bound = bound, .equal = equal };
	return r;
}

/* A sum of 1, and each at least 1e-7. */
static struct swc_allocation fresh(uint32_t ndims)
{
	struct swc_allocation a = { .ndims = ndims, .kind = kinds };
	struct swc_allocation_row *sum = add_row(&a, 1, true);

	for (uint32_t i = 0; i < ndims; i++) {
		sum->coefficient[i] = 1;
		add_row(&a, -1e-7, false)->coefficient[i] = -1;
	}
	for (unsigned int k = 0; k < KINDS; k++)
		kinds[k] = (struct swc_allocation_kind){ .weight = 0 };
	return a;
}

/* 1 down to 10^-decades. */
static double scaled(uint32_t decades)
{
	return pow(10, -(double)rnd(1000 * decades + 1) / 1000);
}

static void test_closed_forms(void)
{
	double worst = 0;

	for (int round = 0; round < 500; round++) {
		uint32_t ndims = 1 + rnd(SWC_TOPO_DIMS);
		struct swc_allocation a = fresh(ndims);
		double b[SWC_TOPO_DIMS], want = 0;
		bool apart = round % 2;

		a.nkinds = apart ? ndims : 1;
		for (uint32_t i = 0; i < ndims; i++) {
			double v = i ? scaled(5) : 1;

			kinds[apart ? i : 0].v[i] = v;
			want += apart ? sqrt(v) : v;
		}
		for (unsigned int k = 0; k < a.nkinds; k++)
			kinds[k].weight = 1;
		want = apart ? want * want : want;
		if (swc_allocation_find(&a, b) || missed(&a, b) > SWC_ALLOCATION_LOOSE)
			worst = INFINITY;
		else
			worst = fmax(worst, fabs(value(&a, b) / want - 1));
	}
	printf("# at most %g from the closed forms\n", worst);
	ok(worst < 1e-6, "one kind, and kinds that use dimensions of their own: closed forms");
}

/* Points with a sum of 1. */
static void make_points(double point[POINTS][SWC_TOPO_DIMS], uint32_t ndims)
{
	for (unsigned int p = 0; p < POINTS; p++) {
		double sum = 0;

		for (uint32_t i = 0; i < ndims; i++)
			sum += point[p][i] = scaled(3);
		for (uint32_t i = 0; i < ndims; i++)
			point[p][i] /= sum;
	}
}

static double dot(const double *a, const double *b, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* All points respect it, one of them only just. */
static void add_random_row(struct swc_allocation *a, double point[POINTS][SWC_TOPO_DIMS])
{
	struct swc_allocation_row *r = add_row(a, -INFINITY, false);

	for (uint32_t i = 0; i < a->ndims; i++)
		r->coefficient[i] = (double)rnd(5) - 2;
	for (unsigned int p = 0; p < POINTS; p++)
		r->bound = fmax(r->bound, dot(r->coefficient, point[p], a->ndims));
}

static void test_random(void)
{
	double worst = 0, misses = 0;
	int found = 0;

	for (int round = 0; round < 600; round++) {
		uint32_t ndims = 2 + rnd(SWC_TOPO_DIMS - 1), rows = rnd(8);
		struct swc_allocation a = fresh(ndims);
		double point[POINTS][SWC_TOPO_DIMS], b[SWC_TOPO_DIMS], least;

		make_points(point, ndims);
		while (rows--)
			add_random_row(&a, point);
		for (a.nkinds = 0; a.nkinds < 1 + rnd(KINDS); a.nkinds++) {
			kinds[a.nkinds].weight = scaled(3);
			for (uint32_t i = 0; i < ndims; i++)
				kinds[a.nkinds].v[i] = rnd(3) ? scaled(4) : 0;
			kinds[a.nkinds].v[rnd(ndims)] = 1;
		}
		if (round % 5 == 0)
			for (uint32_t i = 0; i < ndims; i++)
				a.linear[i] = scaled(2);
		if (swc_allocation_find(&a, b))
			continue;
		found++;
		misses = fmax(misses, missed(&a, b));
		least = value(&a, b);
		for (unsigned int p = 0; p < POINTS; p++)
			for (double part = 1; part > 1e-6; part /= 3) {
				double x[SWC_TOPO_DIMS];

				for (uint32_t i = 0; i < ndims; i++)
					x[i] = (1 - part) * b[i] + part * point[p][i];
				worst = fmax(worst, 1 - value(&a, x) / least);
			}
	}
	printf("# %d found; missed by %g; %g better nearby\n", found, misses, worst);
	ok(found == 600 && misses <= SWC_ALLOCATION_LOOSE * 1.001 && worst < 1e-7,
	   "600 random programs: nothing better in the way of points that are possible");
}

/* Three dimensions of which the last ones are alike, and a kind that wants twice as much of the first. */
static struct swc_allocation three(void)
{
	struct swc_allocation a = fresh(3);

	a.nkinds = 1;
	kinds[0] = (struct swc_allocation_kind){ .v = { 1, 0.5, 0.5 }, .weight = 1 };
	return a;
}

static bool gives(const struct swc_allocation *a, double b0, double b1, double b2)
{
	double b[SWC_TOPO_DIMS];

	return !swc_allocation_find(a, b) && fabs(b[0] - b0) < 1e-6 && fabs(b[1] - b1) < 1e-6 &&
	       fabs(b[2] - b2) < 1e-6;
}

static void test_rows(void)
{
	static const double sum[] = { 1, 1, 1 }, twice[] = { -2, -2, -2 }, first[] = { 1, 0, 0 },
			    back[] = { -1, 0, 0 }, second[] = { 0, 1, 0 }, nothing[] = { 0 };
	static const struct {
		const char *what;
		const double *row[2];
		double bound[2];
		bool equal;
		double b[3]; /* 0: not possible */
	} cases[] = {
		{ "no more rows", { NULL }, { 0 }, false, { 0.5, 0.25, 0.25 } },
		{ "the sum again, twice", { sum, twice }, { 1, -2 }, true, { 0.5, 0.25, 0.25 } },
		{ "the sum as a limit, too",
		  { sum, twice },
		  { 1, -2 },
		  false,
		  { 0.5, 0.25, 0.25 } },
		{ "one dimension from both sides",
		  { first, back },
		  { 0.2, -0.2 },
		  false,
		  { 0.2, 0.4, 0.4 } },
		{ "one point", { first, second }, { 0.2, 0.7 }, true, { 0.2, 0.7, 0.1 } },
		{ "a limit", { first, NULL }, { 0.4 }, false, { 0.4, 0.3, 0.3 } },
		{ "no coefficients", { nothing, NULL }, { 0 }, true, { 0.5, 0.25, 0.25 } },
		{ "no coefficients, but a number", { nothing, NULL }, { 1 }, true, { 0 } },
		{ "another sum", { sum, NULL }, { 1.1 }, true, { 0 } },
		{ "a larger sum", { twice, NULL }, { -2.1 }, false, { 0 } },
		{ "nothing between two limits", { first, back }, { 0.2, -0.3 }, false, { 0 } },
		{ "more than there is", { first, second }, { 0.5, 0.6 }, true, { 0 } },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct swc_allocation a = three();
		double b[SWC_TOPO_DIMS];
		char name[80];

		for (int j = 0; j < 2 && cases[i].row[j]; j++) {
			struct swc_allocation_row *r = add_row(&a, cases[i].bound[j],
							       cases[i].equal);

			for (int k = 0; k < 3 && cases[i].row[j] != nothing; k++)
				r->coefficient[k] = cases[i].row[j][k];
		}
		snprintf(name, sizeof(name), "%s: %s", cases[i].b[0] > 0 ? "rows" : "refused",
			 cases[i].what);
		ok(cases[i].b[0] > 0 ? gives(&a, cases[i].b[0], cases[i].b[1], cases[i].b[2])
				     : swc_allocation_find(&a, b) == -EDOM,
		   name);
	}
}

int main(void)
{
	printf("TAP version 13\n");
	seed_rnd();
	test_closed_forms();
	test_random();
	test_rows();
	return done();
}
